# %% average_gradients 1f7431885d
import torch


def average_gradients(gradients, counts):
    total = sum(counts)
    if total == 0:
        raise ValueError("no rank has a sample")
    if not gradients[0]:
        return []
    types = [gradient.dtype for gradient in gradients[0]]
    short = any(gradient.element_size() < 4 for gradient in gradients[0])
    averages = None
    for own, count in zip(gradients, counts, strict=True):
        if count == 0:
            continue
        if short:  # added up in double, rounded once at the end
            own = [gradient.double() if gradient.element_size() < 4 else gradient for gradient in own]
        if averages is None:
            averages = list(torch._foreach_mul(own, count / total))
        else:
            torch._foreach_add_(averages, own, alpha=count / total)
    if short:
        averages = [average.to(kind) for average, kind in zip(averages, types, strict=True)]
    return averages


# %% all_reduce_gradients 9722aff28a
import torch


def all_reduce_gradients(ranks, cap):
    if any(len(gradients) != len(ranks[0]) for gradients in ranks):
        raise ValueError("the ranks have different numbers of gradients")
    first = ranks[0]
    buckets, opened, sizes = [], {}, {}
    for i in reversed(range(len(first))):
        kind = first[i].dtype
        if kind not in opened:
            opened[kind], sizes[kind] = [], 0
            buckets.append(opened[kind])
        opened[kind].append(i)
        sizes[kind] += first[i].numel() * first[i].element_size()
        if sizes[kind] >= cap:
            del opened[kind]

    averages = [None] * len(first)
    for members in buckets:
        buffers = [torch.cat([gradients[i].flatten() for i in members]) for gradients in ranks]
        all_reduce(buffers)
        mean = buffers[0].div_(len(ranks))
        parts = mean.split([first[i].numel() for i in members])
        for i, part in zip(members, parts, strict=True):
            averages[i] = part.view(first[i].shape)
    return averages


# %% indices_of_rank 47736fcc75
import torch


def indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last):
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} is not in 0 to {ranks - 1}")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    cards = order[done:]
    rest = length - done
    if drop_last:
        return cards[: rest // ranks * ranks][rank::ranks].clone()
    count = -(-rest // ranks)
    mine = cards[rank::ranks]
    if len(mine) < count:  # one card more, from the beginning of the rest
        again = (rank + (count - 1) * ranks) % rest
        return torch.cat([mine, cards[again : again + 1]])
    return mine.clone()


# %% whole_batch a28446f10a
import torch


def whole_batch(counts, means, variances):
    kind = means.dtype
    if means.element_size() < 4:
        means, variances = means.float(), variances.float()
    weights = (counts / counts.sum()).to(means.dtype)
    # An idle rank's row is replaced by that of the rank with most samples; its weight stays 0.
    best = counts.argmax(0, keepdim=True)
    rows = torch.where(counts > 0, torch.arange(len(counts), device=counts.device), best)
    # Distances from one rank's mean: small where all means are large and alike.
    start = means.index_select(0, best)
    away = means.index_select(0, rows).sub_(start)
    shift = weights @ away
    squares = variances.index_select(0, rows).addcmul_(away, away)
    variance = (weights @ squares).sub_(shift * shift).clamp_(min=0)
    mean = shift + start[0]
    return mean.to(kind), variance.to(kind)


# %% snapshot b457f9c0f7
import io
import pickle

import torch


def without_prefix(state):
    if state and all(name.startswith("module.") for name in state):
        return {name.removeprefix("module."): tensor for name, tensor in state.items()}
    return dict(state)


def snapshot(state, rank):
    if rank != 0:
        return None
    plain = without_prefix(state)
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in plain.items()}


def resume(data, wrapped):
    try:
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError("the file holds more than weights") from error
    state = without_prefix(state)
    return {f"module.{name}" if wrapped else name: tensor for name, tensor in state.items()}
