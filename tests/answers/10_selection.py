# %% entropy right_slow check=2 syncs=0 hidden=2 shape=1 race=0
def entropy(p):
    if p.ndim != 2:
        raise ValueError("not two dimensions")
    sums = []
    for row in p:
        there = row[row > 0]
        sums.append(-(there * there.log()).sum())
    return torch.stack(sums) if sums else p.sum(dim=1)


# %% entropy wrong_fast check=0 syncs=0 hidden=0 shape=0 race=0
def entropy(p):
    return torch.where(p > 0, -p * p.log(), 0).sum(dim=1)


# %% entropy infinite_gradient check=0 syncs=0 hidden=0 shape=1 race=0
def entropy(p):
    if p.ndim != 2:
        raise ValueError("not two dimensions")
    return torch.special.entr(p).sum(dim=1)


# %% entropy clamped_gradient check=0 syncs=0 hidden=0 shape=1 race=0
def entropy(p):
    if p.ndim != 2:
        raise ValueError("not two dimensions")
    return -(p * p.clamp(min=1e-38).log()).sum(dim=1)


# %% entropy transcribed check=2 syncs=1 hidden=2 shape=1 race=2
def entropy(p):
    if p.ndim != 2:
        raise ValueError("not two dimensions")
    there = p > 0
    safe = torch.where(there, p, 0.5)
    return torch.where(there, -safe * safe.log(), 0.0).sum(dim=1)


# %% entropy one_where check=2 syncs=1 hidden=2 shape=1 race=2
def entropy(p):
    if p.ndim != 2:
        raise ValueError("not two dimensions")
    safe = p.masked_fill(p == 0, 1.0)
    return -(safe * safe.log()).sum(dim=1)


# %% standardise right_slow check=0 values=1 gradients=2 hidden=0 sizes=1 race=0
def standardise(x, mask):
    result = torch.zeros_like(x)
    for i in range(len(x)):
        numbers = x[i, mask[i]]
        if len(numbers) > 1 and numbers.min() < numbers.max():
            centred = numbers - numbers.mean()
            result[i, mask[i]] = centred / centred.square().mean().sqrt()
    return result


# %% standardise wrong_fast check=1 values=0 gradients=0 hidden=0 sizes=1 race=0
def standardise(x, mask):
    return standardise_draft(x, mask)


# %% standardise transcribed check=1 values=1 gradients=0 hidden=0 sizes=1 race=0
def standardise(x, mask):
    count = mask.sum(dim=1, keepdim=True)
    mean = torch.where(mask, x, 0.0).sum(dim=1, keepdim=True) / count
    centred = torch.where(mask, x - mean, 0.0)
    variance = centred.square().sum(dim=1, keepdim=True) / count.clamp(min=1)
    return centred / variance.clamp(min=1e-12).sqrt()


# %% standardise double_where_behind_the_root check=1 values=0 gradients=0 hidden=0 sizes=1 race=0
def standardise(x, mask):
    count = mask.sum(dim=1, keepdim=True).clamp(min=1)
    mean = torch.where(mask, x, 0.0).sum(dim=1, keepdim=True) / count
    centred = torch.where(mask, x - mean, 0.0)
    spread = (centred.square().sum(dim=1, keepdim=True) / count).sqrt()
    safe = torch.where(spread > 0, spread, 1.0)
    return torch.where(spread > 0, centred / safe, 0.0)


# %% standardise only_the_products check=1 values=0 gradients=0 hidden=0 sizes=1 race=0
def standardise(x, mask):
    count = mask.sum(dim=1, keepdim=True)
    mean = torch.where(mask, x, 0.0).sum(dim=1, keepdim=True) / count
    centred = torch.where(mask, x - mean, 0.0)
    spread = (centred.square().sum(dim=1, keepdim=True) / count).sqrt()
    return torch.where(spread > 0, centred / spread, 0.0)


# %% standardise a_rounded_mean check=1 values=0 gradients=0 hidden=0 sizes=1 race=0
def standardise(x, mask):
    count = mask.sum(dim=1, keepdim=True).clamp(min=1)
    mean = torch.where(mask, x, 0.0).sum(dim=1, keepdim=True) / count
    centred = torch.where(mask, x - mean, 0.0)
    variance = centred.square().sum(dim=1, keepdim=True) / count
    spreads = variance > 0
    return torch.where(spreads, centred / torch.where(spreads, variance, 1.0).sqrt(), 0.0)


# %% standardise first_attempt check=1 values=1 gradients=2 hidden=1 sizes=1 race=0.1..2
def standardise(x, mask):
    lowest = torch.where(mask, x, torch.inf).amin(dim=1, keepdim=True)
    highest = torch.where(mask, x, -torch.inf).amax(dim=1, keepdim=True)
    varied = lowest < highest  # False for rows of equal numbers, of one number, and of none
    x = torch.where(mask, x, 0.0)
    count = mask.sum(dim=1, keepdim=True).clamp(min=1)
    mean = x.sum(dim=1, keepdim=True) / count
    centred = torch.where(mask, x - mean, 0.0)
    variance = centred.square().sum(dim=1, keepdim=True) / count
    spread = torch.where(varied, variance, 1.0).sqrt()
    return torch.where(varied, centred / spread, 0.0)


# %% standardise from_the_highest check=1 values=1 gradients=2 hidden=1 sizes=1 race=2
def standardise(x, mask):
    there = mask.to(x.dtype)
    x = torch.where(mask, x, -torch.inf)
    below = (x - x.detach().amax(dim=1, keepdim=True)).nan_to_num(0.0, 0.0, 0.0)
    count = there.sum(dim=1, keepdim=True).clamp(min=1)
    centred = (below - below.sum(dim=1, keepdim=True) / count) * there
    variance = centred.square().sum(dim=1, keepdim=True) / count
    varied = variance > 0
    return centred * (varied / torch.where(varied, variance, 1.0).sqrt())


# %% standardise nothing_to_guess check=1 values=1 gradients=2 hidden=1 sizes=1 race=2
def standardise(x, mask):
    there = mask.to(x.dtype)
    x = x.nan_to_num(0.0, 0.0, 0.0) * there
    highest = torch.add(x.detach(), there - 1, alpha=torch.finfo(x.dtype).max).amax(dim=1, keepdim=True)
    below = (x - highest) * there
    count = there.sum(dim=1, keepdim=True).clamp(min=1)
    centred = (below - below.sum(dim=1, keepdim=True) / count) * there
    variance = centred.square().sum(dim=1, keepdim=True) / count
    varied = variance > 0
    return centred * (varied * torch.where(varied, variance, 1.0).rsqrt())


# %% group_softmax right_slow check=0 distant=1 missing=2 hidden=2 range=1 race=0
def group_softmax(scores, groups, count):
    return group_softmax_slow(scores, groups, count)


# %% group_softmax wrong_fast check=1 distant=0 missing=0 hidden=0 range=1 race=0
def group_softmax(scores, groups, count):
    powers = scores.exp()
    return powers / scores.new_zeros(count, scores.shape[1]).index_add(0, groups, powers)[groups]


# %% group_softmax one_maximum_for_all check=1 distant=0 missing=0 hidden=0 range=1 race=0
def group_softmax(scores, groups, count):
    powers = (scores - scores.detach().amax(0)).exp() if len(scores) else scores.exp()
    return powers / scores.new_zeros(count, scores.shape[1]).index_add(0, groups, powers)[groups]


# %% group_softmax transcribed check=1 distant=1 missing=0 hidden=0 range=1 race=0
def group_softmax(scores, groups, count):
    wide = groups[:, None].expand(-1, scores.shape[1])
    largest = scores.new_full((count, scores.shape[1]), -torch.inf)
    largest = largest.scatter_reduce(0, wide, scores.detach(), "amax")
    powers = (scores - largest[groups]).exp()
    return powers / scores.new_zeros(count, scores.shape[1]).index_add(0, groups, powers)[groups]


# %% group_softmax nan_to_num_at_the_end check=1 distant=1 missing=0 hidden=2 range=1 race=0
def group_softmax(scores, groups, count):
    wide = groups[:, None].expand(-1, scores.shape[1])
    largest = scores.new_full((count, scores.shape[1]), -torch.inf)
    largest = largest.scatter_reduce(0, wide, scores.detach(), "amax")
    powers = (scores - largest[groups]).exp()
    weights = powers / scores.new_zeros(count, scores.shape[1]).index_add(0, groups, powers)[groups]
    return torch.where(scores > -torch.inf, weights, 0.0)


# %% group_softmax where_three_times check=1 distant=1 missing=2 hidden=2 range=1 race=2
def group_softmax(scores, groups, count):
    there = scores > -torch.inf
    safe = torch.where(there, scores, torch.finfo(scores.dtype).min)
    wide = groups[:, None].repeat(1, scores.shape[1])
    shape = (count, scores.shape[1])
    largest = scores.new_zeros(shape).scatter_reduce(0, wide, safe.detach(), "amax", include_self=False)
    powers = torch.where(there, (safe - largest[groups]).exp(), 0.0)
    sums = scores.new_zeros(shape).scatter_add(0, wide, powers)[groups]
    return torch.where(there, powers / torch.where(there, sums, 1.0), 0.0)


# %% replay right_slow check=2 gradients=0 hidden=2 range=1 race=0
def replay(table, places, values, times):
    return replay_slow(table, places, values, times)


# %% replay wrong_fast check=0 gradients=0 hidden=0 range=1 race=0
def replay(table, places, values, times):
    return table.scatter(0, places, values)


# %% replay transcribed check=2 gradients=0 hidden=0 range=1 race=0
def replay(table, places, values, times):
    order = times.argsort(stable=True)
    return table.scatter(0, places[order], values[order])


# %% replay one_key check=0 gradients=0 hidden=0 range=1 race=0
def replay(table, places, values, times):
    count = len(values)
    keys = times * max(count, 1) + torch.arange(count, device=times.device)
    newest = torch.full((len(table),), -1, device=table.device).scatter_reduce(0, places, keys, "amax")
    source = torch.where(newest >= 0, newest % max(count, 1) + len(table), torch.arange(len(table)))
    return torch.cat([table, values])[source]


# %% replay times_as_floats check=0 gradients=0 hidden=0 range=1 race=0
def replay(table, places, values, times):
    size = len(table)
    order = times.double().argsort(stable=True)
    numbers = torch.arange(size + len(values), device=table.device)
    source = numbers[:size].scatter_reduce(0, places[order], numbers[size:], "amax")
    return torch.cat([table, values[order]])[source]


# %% replay sorted_by_time check=2 gradients=2 hidden=2 range=1 race=2
def replay(table, places, values, times):
    size = len(table)
    order = times.argsort(stable=True)
    numbers = torch.arange(size + len(values), device=table.device)
    source = numbers[:size].scatter_reduce(0, places[order], numbers[size:], "amax")
    return torch.cat([table, values[order]])[source]


# %% top_by_group right_slow check=1 edges=1 syncs=0 hidden=2 race=0
def top_by_group(scores, groups, count, k):
    return top_by_group_slow(scores, groups, count, k)


# %% top_by_group wrong_fast check=0 edges=0 syncs=0 hidden=0 race=0
def top_by_group(scores, groups, count, k):
    return scores.argsort(descending=True)[: count * k].view(count, k)


# %% top_by_group transcribed check=1 edges=1 syncs=0 hidden=2 race=0..2
def top_by_group(scores, groups, count, k):
    table = groups.new_full((count, k), -1)
    members = groups.argsort(stable=True).split(groups.bincount(minlength=count).tolist())
    for group, its in enumerate(members):
        best = its[scores[its].argsort(descending=True, stable=True)[:k]]
        table[group, : len(best)] = best
    return table


# %% top_by_group one_wide_table check=1 edges=0 syncs=1 hidden=0 race=0
def top_by_group(scores, groups, count, k):
    here = groups == torch.arange(count, device=groups.device)[:, None]
    values, places = torch.where(here, scores, -torch.inf).topk(k, dim=1)
    return torch.where(values > -torch.inf, places, -1)


# %% top_by_group a_wide_sort check=1 edges=0 syncs=1 hidden=0 race=0
def top_by_group(scores, groups, count, k):
    here = groups == torch.arange(count, device=groups.device)[:, None]
    table = torch.where(here, scores, -torch.inf)
    values, places = table.sort(dim=1, descending=True, stable=True)
    return torch.where(values > -torch.inf, places, -1)[:, :k]


# %% top_by_group with_searchsorted check=1 edges=1 syncs=1 hidden=2 race=3
def top_by_group(scores, groups, count, k):
    by_score = scores.argsort(descending=True, stable=True)
    its, order = groups[by_score].sort(stable=True)
    order = by_score[order]
    starts = torch.searchsorted(its, torch.arange(count, device=groups.device))
    ranks = torch.arange(len(its), device=groups.device) - starts[its]
    table = groups.new_full((count, k + 1), -1)
    table[its, ranks.clamp(max=k)] = order
    return table[:, :k].contiguous()


# %% top_by_group right_but_wide check=1 edges=1 syncs=1 hidden=2 race=0
def top_by_group(scores, groups, count, k):
    here = groups == torch.arange(count, device=groups.device)[:, None]
    table = torch.where(here, scores, -torch.inf)
    table = torch.cat([table, table.new_full((count, k), -torch.inf)], dim=1)
    values, places = table.sort(dim=1, descending=True, stable=True)
    return torch.where(values > -torch.inf, places, -1)[:, :k]


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "edges": {"operations": 2, "bytes": 336, "syncs": 0},
        "bucket": {"operations": 2, "bytes": 48, "syncs": 0},
        "chosen": {"operations": 3, "bytes": 64, "syncs": 1},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "edges": {"operations": 2, "bytes": 16 * n * d, "syncs": 0},
        "bucket": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
        "chosen": {"operations": 3, "bytes": 4, "syncs": 1},
    }
