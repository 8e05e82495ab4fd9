# %% entropy eb704d00ab
import torch


def entropy(p):
    if p.ndim != 2:
        raise ValueError(f"p must have 2 dimensions, not {p.ndim}")
    safe = torch.where(p > 0, p, 1.0)  # 1 * log(1) is 0, so the harmless number needs no second where
    return -(safe * safe.log()).sum(dim=1)


# %% standardise ffb8d9fe22
import torch


def standardise(x, mask):
    known = mask.to(x.dtype)
    count = known.sum(dim=1, keepdim=True).clamp_min(1)
    clean = torch.where(mask, x, 0.0)
    mean = clean.sum(dim=1, keepdim=True) / count
    centred = (clean - mean) * known
    variance = centred.square().sum(dim=1, keepdim=True) / count
    with torch.no_grad():
        largest = clean.abs().amax(dim=1, keepdim=True)
        varied = variance.sqrt() > 1e-4 * largest
    scale = torch.where(varied, 1 / torch.where(varied, variance, 1.0).sqrt(), 0.0)
    return centred * scale


# %% group_softmax 5b4962dac9
import torch


def group_softmax(scores, groups, count):
    lowest = torch.finfo(scores.dtype).min
    wide = groups[:, None].expand(-1, scores.shape[1])
    highest = scores.new_full((count, scores.shape[1]), lowest)
    highest = highest.scatter_reduce(0, wide, scores.detach(), "amax")
    powers = (scores - highest[groups]).exp()
    sums = scores.new_zeros(count, scores.shape[1]).index_add(0, groups, powers)
    sums = torch.where(sums > 0, sums, 1.0)
    return powers / sums[groups]


# %% replay 646263e3b1
import torch


def replay(table, places, values, times):
    if len(places) == 0:
        return table.clone()
    order = times.argsort(stable=True)
    rank = torch.arange(len(order), device=order.device)
    newest = rank.new_full((len(table),), -1).scatter_reduce(0, places[order], rank, "amax")
    winner = order[newest.clamp_min(0)]
    return torch.where(newest >= 0, values.gather(0, winner), table)


# %% top_by_group c0c124cde3
import torch


def top_by_group(scores, groups, count, k):
    if len(scores) == 0:
        return groups.new_full((count, k), -1)
    order = scores.argsort(descending=True, stable=True)
    order = order[groups[order].argsort(stable=True)]
    counts = groups.new_zeros(count).scatter_add(0, groups, torch.ones_like(groups))
    starts = counts.cumsum(0) - counts
    steps = torch.arange(k, device=groups.device)
    places = (starts[:, None] + steps).clamp_max(len(scores) - 1)
    return torch.where(steps < counts[:, None], order[places], -1)
