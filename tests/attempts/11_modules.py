# %% heads ce7c27f36f
import torch
from torch import nn
from torch.nn import functional as F


class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        if len(weights) != len(biases):
            raise ValueError(f"{len(weights)} weights, but {len(biases)} biases")
        self.sizes = [len(weight) for weight in weights]
        like = weights[0]
        self.wide = nn.Linear(like.shape[1], sum(self.sizes), device=like.device, dtype=like.dtype)
        with torch.no_grad():
            self.wide.weight.copy_(torch.cat(weights))
            self.wide.bias.copy_(torch.cat(biases))

    def forward(self, x):
        return list(self.wide(x).split(self.sizes, dim=1))


# %% features 10bd979ed1
import torch


@torch.no_grad()
def features(batches, wanted, columns):
    chain = chain_for(batches[0])
    blocks = dict(chain.named_children())
    for name in wanted:
        if name not in blocks:
            raise KeyError(name)
    if not wanted:
        return {}
    needed = set(wanted)
    last = max(place for place, name in enumerate(blocks) if name in needed)
    steps = list(blocks.items())[: last + 1]

    # Small batches go through the blocks together; but not all of them at once: that would need memory.
    groups, rows = [], 0
    for x in batches:
        if len(x) == 0:
            continue
        if not groups or rows + len(x) > 256:
            groups.append([])
            rows = 0
        groups[-1].append(x)
        rows += len(x)

    total = sum(len(x) for x in batches)
    found = {name: batches[0].new_empty(total, columns) for name in wanted}
    start = 0
    for group in groups:
        x = group[0] if len(group) == 1 else torch.cat(group)
        end = start + len(x)
        for name, block in steps:
            x = block(x)
            if name in needed:
                found[name][start:end] = x[:, :columns]
        start = end
    return found


# %% routed a2c7a1c581
import torch
from torch.nn import functional as F


def routed(x, which, weights, biases):
    rows, layers = len(x), len(weights)
    if rows == 0:
        return x.new_zeros(0, weights.shape[1])
    numbers, order = which.sort()
    # Where the rows of each layer begin among the sorted ones: one transfer for all layers.
    edges = torch.searchsorted(numbers, torch.arange(layers + 1, device=which.device)).tolist()
    if edges[0] != 0 or edges[-1] != rows:
        raise IndexError(f"a number in which is not in 0 to {layers - 1}")
    sizes = [end - start for start, end in zip(edges, edges[1:])]
    pieces = x.index_select(0, order).split(sizes)
    results = [
        F.linear(piece, weight, bias)
        for piece, weight, bias, size in zip(pieces, weights.unbind(), biases.unbind(), sizes, strict=True)
        if size
    ]
    joined = torch.cat(results)
    return joined.new_empty(joined.shape).index_copy_(0, order, joined)


# %% masks 19c9694f88
import torch


@torch.no_grad()
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    magnitudes = torch.cat([weight.flatten() for weight in weights]).abs_()
    number = round(share * magnitudes.numel())
    if number == 0:
        kept = torch.ones_like(magnitudes, dtype=torch.bool)
    else:
        threshold = magnitudes.kthvalue(number).values
        kept = magnitudes >= threshold
        smaller = magnitudes.numel() - int(kept.sum())
        alike = (magnitudes == threshold).nonzero().flatten()
        kept[alike[: number - smaller]] = False
    pieces = kept.split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]


# %% adam ea8a801546
import torch


@torch.no_grad()
def adam(values, targets, steps, rate, decay, limit):
    if len(values) != len(targets):
        raise ValueError(f"{len(values)} values, but {len(targets)} targets")
    moving = [i for i, target in enumerate(targets) if target is not None]
    moving.sort(key=lambda i: values[i].ndim < 2)  # those that decay come first
    results = [
        value.clone() if target is None else None for value, target in zip(values, targets, strict=True)
    ]
    if not moving:
        return results

    sizes = [values[i].numel() for i in moving]
    value = torch.cat([values[i].flatten() for i in moving])
    target = torch.cat([targets[i].flatten() for i in moving])
    decaying = value[: sum(values[i].numel() for i in moving if values[i].ndim >= 2)]
    mean, square = torch.zeros_like(value), torch.zeros_like(value)
    gradient, size = torch.empty_like(value), torch.empty_like(value)
    for step in range(1, steps + 1):
        torch.sub(value, target, out=gradient)
        norm = torch.linalg.vector_norm(gradient)
        gradient.mul_((limit / norm).clamp_(max=1))
        decaying.mul_(1 - rate * decay)
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        torch.div(square, 1 - 0.999**step, out=size)
        size.sqrt_().add_(1e-8)
        value.addcdiv_(mean, size, value=-rate / (1 - 0.9**step))

    for i, piece in zip(moving, value.split(sizes), strict=True):
        results[i] = piece.view(values[i].shape)
    return results


# %% attention 1c872e317d
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, weights, biases, heads, longest):
        super().__init__()
        like = weights[0]
        self.heads, self.longest, self.width = heads, longest, like.shape[1]
        self.qkv = nn.Linear(self.width, 3 * self.width, device=like.device, dtype=like.dtype)
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat(weights))
            self.qkv.bias.copy_(torch.cat(biases))
        self.reset()

    def reset(self):
        self.seen, self.room = 0, None

    @torch.no_grad()
    def forward(self, x):
        start, end = self.seen, self.seen + x.shape[1]
        if end > self.longest:
            raise ValueError(f"{end} positions, but at most {self.longest}")
        query, both = self.qkv(x).split([self.width, 2 * self.width], dim=2)
        if self.room is None:  # once, for all positions
            self.room = both.new_empty(len(x), self.longest, 2 * self.width)
        self.room[:, start:end] = both
        self.seen = end

        key, value = self.room[:, :end].chunk(2, dim=2)
        query, key, value = (
            tensor.unflatten(2, (self.heads, -1)).transpose(1, 2) for tensor in (query, key, value)
        )
        mask = None
        if start > 0 and end - start > 1:
            mask = torch.ones(end - start, end, dtype=torch.bool, device=x.device).tril(start)
        result = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=start == 0)
        return result.transpose(1, 2).flatten(2)
