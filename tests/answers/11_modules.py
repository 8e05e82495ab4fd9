# %% heads right_slow check=1 uneven=1 counted=0 state=0 lengths=1 hidden=0
class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        if len(weights) != len(biases):
            raise ValueError("lists of different lengths")
        self.weights = [weight.clone() for weight in weights]
        self.biases = [bias.clone() for bias in biases]

    def forward(self, x):
        return [F.linear(x, weight, bias) for weight, bias in zip(self.weights, self.biases, strict=True)]


# %% heads wrong_fast check=1 uneven=0 counted=2 state=1 lengths=0 hidden=0
class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        self.count = len(weights)
        self.wide = nn.Linear(weights[0].shape[1], sum(map(len, weights)), device=weights[0].device)
        self.wide.weight.data = torch.cat(weights)
        self.wide.bias.data = torch.cat(biases) if len(biases) == len(weights) else self.wide.bias.data

    def forward(self, x):
        return list(self.wide(x).chunk(self.count, dim=1))


# %% heads merged_at_each_call check=1 uneven=1 counted=0 state=0 lengths=1 hidden=0
class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        if len(weights) != len(biases):
            raise ValueError("lists of different lengths")
        self.weights, self.biases = weights, biases

    def forward(self, x):
        wide = F.linear(x, torch.cat(self.weights), torch.cat(self.biases))
        return list(wide.split([len(bias) for bias in self.biases], dim=1))


# %% heads transcribed check=1 uneven=1 counted=2 state=1 lengths=1 hidden=1
class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        if len(weights) != len(biases):
            raise ValueError("lists of different lengths")
        self.sizes = [len(weight) for weight in weights]
        self.wide = nn.Linear(weights[0].shape[1], sum(self.sizes)).to(weights[0])
        with torch.no_grad():
            self.wide.weight.copy_(torch.cat(weights))
            self.wide.bias.copy_(torch.cat(biases))

    def forward(self, x):
        return list(self.wide(x).split(self.sizes, dim=-1))


# %% features right_slow check=1 unknown=1 memory=0 counted=0 hidden=1 race=0
def features(batches, wanted, columns):
    return features_slow(batches, wanted, columns)


# %% features transcribed check=1 unknown=1 memory=0.1..1 counted=0 hidden=1 race=0..0.8
def features(batches, wanted, columns):
    chain, seen = chain_for(batches[0]), {name: [] for name in wanted}
    if not set(wanted) <= dict(chain.named_children()).keys():
        raise KeyError("no such block")
    handles = []
    for name, block in chain.named_children():
        if name in seen:
            handles.append(
                block.register_forward_hook(
                    lambda module, inputs, output, name=name: seen[name].append(output.detach()[:, :columns])
                )
            )
    with torch.no_grad():
        for x in batches:
            chain(x)
    for handle in handles:
        handle.remove()
    return {name: torch.cat(pieces) for name, pieces in seen.items()}


# %% features wrong_fast check=0 unknown=0 memory=0 counted=0 hidden=0 race=0
def features(batches, wanted, columns):
    return {name: torch.cat(batches)[:, :columns] for name in wanted}


# %% features right_but_keeps_views check=1 unknown=1 memory=0.1..1 counted=1 hidden=1 race=0..1.2
def features(batches, wanted, columns):
    found = {name: [] for name in wanted}
    with torch.no_grad():
        for x in batches:
            missing = set(wanted)
            for name, block in chain_for(x).named_children():
                if not missing:
                    break
                x = block(x)
                if name in missing:
                    found[name].append(x[:, :columns])
                    missing.remove(name)
            if missing:
                raise KeyError("no such block")
    return {name: torch.cat(pieces) for name, pieces in found.items()}


# %% features right_with_room_made_first check=1 unknown=1 memory=2 counted=1 hidden=1 race=0..1.2
@torch.no_grad()
def features(batches, wanted, columns):
    chain = dict(chain_for(batches[0]).named_children())
    for name in wanted:
        chain[name]
    last = max((list(chain).index(name) for name in wanted), default=-1)
    rows = sum(map(len, batches))
    found = {name: batches[0].new_empty(rows, columns) for name in wanted}
    start = 0
    for x in batches:
        end = start + len(x)
        for name, block in list(chain.items())[: last + 1]:
            x = block(x)
            if name in found:
                found[name][start:end] = x[:, :columns]
        start = end
    return found


# %% features first_attempt check=1 unknown=1 memory=2 counted=1 hidden=1 race=0..1.2
@torch.no_grad()
def features(batches, wanted, columns):
    chain = chain_for(batches[0])
    blocks = dict(chain.named_children())
    total = sum(len(x) for x in batches)
    found = {}
    for name in wanted:
        blocks[name]  # a KeyError for a name that is not there
        found[name] = batches[0].new_empty(total, columns)
    start = 0
    for x in batches:
        stop, missing = start + len(x), set(found)
        for name, block in blocks.items():
            if not missing:
                break
            x = block(x)
            if name in missing:
                found[name][start:stop] = x[:, :columns]
                missing.remove(name)
        start = stop
    return found


# %% features right_but_all_at_once check=1 unknown=1 memory=0.1..0.6 counted=1 hidden=1 race=2
@torch.no_grad()
def features(batches, wanted, columns):
    blocks = dict(chain_for(batches[0]).named_children())
    found = {name: blocks[name] for name in wanted}
    x, missing = torch.cat(batches), set(wanted)
    for name, block in blocks.items():
        if not missing:
            break
        x = block(x)
        if name in missing:
            found[name] = x[:, :columns].clone()
            missing.remove(name)
    return found


# %% features right_with_room_and_groups check=1 unknown=1 memory=2 counted=1 hidden=1 race=2
@torch.no_grad()
def features(batches, wanted, columns):
    blocks = dict(chain_for(batches[0]).named_children())
    for name in wanted:
        blocks[name]
    found = {name: batches[0].new_empty(sum(map(len, batches)), columns) for name in wanted}
    groups, start = [[]], 0
    for x in batches:
        if sum(map(len, groups[-1])) + len(x) > 300 and groups[-1]:
            groups.append([])
        groups[-1].append(x)
    for group in groups:
        x, missing = torch.cat(group), set(wanted)
        end = start + len(x)
        for name, block in blocks.items():
            if not missing:
                break
            x = block(x)
            if name in missing:
                found[name][start:end] = x[:, :columns]
                missing.remove(name)
        start = end
    return found


# %% routed right_slow check=1 empty=1 syncs=0 bad=1 hidden=1 race=0
def routed(x, which, weights, biases):
    results = []
    for row, number in zip(x, which, strict=True):
        if not 0 <= number < len(weights):
            raise IndexError("no such layer")
        results.append(F.linear(row[None], weights[number], biases[number]))
    return torch.cat(results) if results else x.new_zeros(0, weights.shape[1])


# %% routed transcribed check=1 empty=1 syncs=2 bad=1 hidden=1 race=0..1.3
def routed(x, which, weights, biases):
    if len(which) and (which.min() < 0 or which.max() >= len(weights)):
        raise IndexError("no such layer")
    layers, outputs, inputs = weights.shape
    wide = F.linear(x, weights.reshape(layers * outputs, inputs), biases.reshape(-1))
    pieces = wide.view(len(x), layers, outputs)
    return pieces[torch.arange(len(x), device=x.device), which]


# %% routed right_but_waits_for_each_layer check=1 empty=1 syncs=0 bad=1 hidden=1 race=0.5..2
def routed(x, which, weights, biases):
    if len(which) and (which.min() < 0 or which.max() >= len(weights)):
        raise IndexError("no such layer")
    result = x.new_empty(len(x), weights.shape[1])
    for number in range(len(weights)):
        rows = (which == number).nonzero()[:, 0]
        result[rows] = F.linear(x[rows], weights[number], biases[number])
    return result


# %% routed right_by_weights_for_each_row check=1 empty=1 syncs=2 bad=1 hidden=1 race=0
def routed(x, which, weights, biases):
    if len(which) and (which.min() < 0 or which.max() >= len(weights)):
        raise IndexError("no such layer")
    return torch.baddbmm(biases[which][:, :, None], weights[which], x[:, :, None])[:, :, 0]


# %% routed wrong_fast check=0 empty=1 syncs=0 bad=0 hidden=0 race=0
def routed(x, which, weights, biases):
    order = which.argsort()
    counts = torch.bincount(which.clamp(0, len(weights) - 1), minlength=len(weights)).tolist()
    pieces = x[order].split(counts)
    return torch.cat([F.linear(*part) for part in zip(pieces, weights, biases, strict=True)])


# %% routed right_another_way check=1 empty=1 syncs=2 bad=1 hidden=1 race=2
def routed(x, which, weights, biases):
    if which.numel() and not 0 <= int(which.min()) <= int(which.max()) < len(weights):
        raise IndexError("no such layer")
    order = torch.argsort(which, stable=True)
    numbers = torch.arange(len(weights), device=x.device)
    counts = (which[:, None] == numbers).sum(0).tolist()
    rows, results, start = x[order], [], 0
    for number, count in enumerate(counts):
        if count:
            results.append(torch.addmm(biases[number], rows[start : start + count], weights[number].t()))
        start += count
    if not results:
        return x @ weights[0].t() if len(weights) else x
    return torch.cat(results)[order.argsort()]


# %% masks right_slow check=1 share=1 hidden=2 race=0
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    ranking = []
    for number, weight in enumerate(weights):
        for place, value in enumerate(weight.flatten().tolist()):
            ranking.append((abs(value), number, place))
    ranking = sorted(ranking, reverse=True)[::-1]
    kept = [[True] * weight.numel() for weight in weights]
    for _, number, place in ranking[: round(share * len(ranking))]:
        kept[number][place] = False
    return [
        torch.tensor(flags, dtype=torch.bool, device=weight.device).view(weight.shape)
        for flags, weight in zip(kept, weights, strict=True)
    ]


# %% masks transcribed check=0 share=1 hidden=0 race=0
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    magnitudes = torch.cat([weight.flatten() for weight in weights]).abs()
    count = round(share * len(magnitudes))
    if count == 0:
        return [torch.ones_like(weight, dtype=torch.bool) for weight in weights]
    limit = magnitudes.kthvalue(count).values
    return [weight.abs() > limit for weight in weights]


# %% masks wrong_fast check=0 share=1 hidden=0 race=0
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    limits = [
        weight.abs().flatten().kthvalue(max(1, round(share * weight.numel()))).values for weight in weights
    ]
    return [weight.abs() > limit for weight, limit in zip(weights, limits, strict=True)]


# %% masks wrong_ties check=0 share=1 hidden=0 race=0
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    magnitudes = torch.cat([weight.flatten() for weight in weights]).abs()
    kept = torch.zeros_like(magnitudes, dtype=torch.bool)
    count = round(share * len(magnitudes))
    kept[magnitudes.argsort(descending=True, stable=True)[: len(magnitudes) - count]] = True
    pieces = kept.split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]


# %% masks right_by_counting check=1 share=1 hidden=2 race=2
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    magnitudes = torch.cat([weight.flatten() for weight in weights]).abs()
    count = round(share * len(magnitudes))
    if count == 0:
        return [torch.ones_like(weight, dtype=torch.bool) for weight in weights]
    limit = magnitudes.kthvalue(count).values
    alike = magnitudes == limit
    kept = (magnitudes > limit) | (alike & (alike.cumsum(0) > count - (magnitudes < limit).sum()))
    pieces = kept.split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]


# %% masks right_another_way check=1 share=1 hidden=2 race=2
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    magnitudes = torch.cat([weight.flatten() for weight in weights]).abs()
    count = round(share * len(magnitudes))
    kept = torch.ones_like(magnitudes, dtype=torch.bool)
    if count:
        limit = magnitudes.kthvalue(count).values
        kept = magnitudes >= limit
        places = (magnitudes == limit).nonzero()[:, 0]
        kept[places[: count - int((magnitudes < limit).sum())]] = False
    pieces = kept.split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]


# %% masks first_attempt check=1 share=1 hidden=2 race=0.8..1.9
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    magnitudes = torch.cat([weight.detach().flatten() for weight in weights]).abs()
    order = magnitudes.argsort(stable=True)
    keep = torch.ones_like(magnitudes, dtype=torch.bool)
    keep[order[: round(share * len(order))]] = False
    pieces = keep.split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]


# %% adam right_slow check=1 lengths=1 hidden=2 race=0
def adam(values, targets, steps, rate, decay, limit):
    return adam_slow(values, targets, steps, rate, decay, limit)


# %% adam transcribed check=1 lengths=1 hidden=2 race=0.3..1.8
def adam(values, targets, steps, rate, decay, limit):
    if len(values) != len(targets):
        raise ValueError("lists of different lengths")
    parameters = [nn.Parameter(value.clone()) for value in values]
    moved = [(p, t) for p, t in zip(parameters, targets, strict=True) if t is not None]
    if moved:
        groups = [
            {"params": [p for p, _ in moved if p.ndim >= 2], "weight_decay": decay},
            {"params": [p for p, _ in moved if p.ndim < 2], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=rate, fused=True)
        for _ in range(steps):
            for parameter, target in moved:
                parameter.grad = parameter.detach() - target
            nn.utils.clip_grad_norm_([p for p, _ in moved], limit)
            optimizer.step()
    return [parameter.detach() for parameter in parameters]


# %% adam wrong_fast check=0 lengths=0 hidden=0 race=0
def adam(values, targets, steps, rate, decay, limit):
    return [
        value if target is None else value + steps * rate * (target - value).sign()
        for value, target in zip(values, targets, strict=False)
    ]


# %% adam moves_those_without_target check=0 lengths=1 hidden=0 race=0
def adam(values, targets, steps, rate, decay, limit):
    if len(values) != len(targets):
        raise ValueError("lists of different lengths")
    if not values:
        return []
    value = torch.cat([v.reshape(-1) for v in values])
    pairs = zip(values, targets, strict=True)
    target = torch.cat([(v if t is None else t).reshape(-1) for v, t in pairs])
    shrink = torch.cat([value.new_full((v.numel(),), 1 - rate * decay * (v.ndim >= 2)) for v in values])
    mean, square = torch.zeros_like(value), torch.zeros_like(value)
    for step in range(1, steps + 1):
        gradient = value - target
        gradient.mul_((limit / gradient.norm()).clamp_(max=1))
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        size = (square / (1 - 0.999**step)).sqrt_().add_(1e-8)
        value.mul_(shrink).addcdiv_(mean, size, value=-rate / (1 - 0.9**step))
    pieces = value.split([v.numel() for v in values])
    return [piece.view_as(v) for piece, v in zip(pieces, values, strict=True)]


# %% adam right_with_flat_optimizer check=1 lengths=1 hidden=2 race=2
def adam(values, targets, steps, rate, decay, limit):
    if len(values) != len(targets):
        raise ValueError("lists of different lengths")
    results = [value.clone() for value in values]
    moved = sorted(
        (i for i, target in enumerate(targets) if target is not None), key=lambda i: values[i].ndim >= 2
    )
    if not moved:
        return results
    first = sum(values[i].numel() for i in moved if values[i].ndim < 2)
    value = torch.cat([values[i].flatten() for i in moved])
    target = torch.cat([targets[i].flatten() for i in moved])
    parameter = nn.Parameter(value)
    optimizer = torch.optim.Adam([parameter], lr=rate, fused=True)
    with torch.no_grad():
        for _ in range(steps):
            gradient = parameter - target
            parameter.grad = gradient * (limit / gradient.norm()).clamp(max=1)
            parameter[first:] *= 1 - rate * decay
            optimizer.step()
    sizes = [values[i].numel() for i in moved]
    for i, piece in zip(moved, parameter.detach().split(sizes), strict=True):
        results[i] = piece.view(values[i].shape)
    return results


# %% attention right_slow check=2 long=1 state=0 counted=0 hidden=2
class Attention(AttentionSlow):
    pass


# %% attention transcribed check=0 long=0 state=0 counted=0 hidden=0
class Attention(nn.Module):
    def __init__(self, weights, biases, heads, longest):
        super().__init__()
        width = weights[0].shape[0]
        self.qkv = nn.Linear(width, 3 * width).to(weights[0])
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat(weights))
            self.qkv.bias.copy_(torch.cat(biases))
        self.heads, self.longest = heads, longest
        self.reset()

    def reset(self):
        self.keys = self.values = None

    @torch.no_grad()
    def forward(self, x):
        pieces = self.qkv(x).chunk(3, dim=-1)
        query, key, value = (piece.unflatten(2, (self.heads, -1)).transpose(1, 2) for piece in pieces)
        if self.keys is not None:
            key, value = torch.cat([self.keys, key], dim=2), torch.cat([self.values, value], dim=2)
        if key.shape[2] > self.longest:
            raise ValueError("too many positions")
        self.keys, self.values = key, value
        result = F.scaled_dot_product_attention(query, key, value, is_causal=x.shape[1] > 1)
        return result.transpose(1, 2).flatten(2)


# %% attention right_but_joins check=2 long=1 state=1 counted=0 hidden=2
class Attention(nn.Module):
    def __init__(self, weights, biases, heads, longest):
        super().__init__()
        width = weights[0].shape[0]
        self.qkv = nn.Linear(width, 3 * width).to(weights[0])
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat(weights))
            self.qkv.bias.copy_(torch.cat(biases))
        self.heads, self.longest = heads, longest
        self.reset()

    def reset(self):
        self.keys = self.values = None

    @torch.no_grad()
    def forward(self, x):
        pieces = self.qkv(x).chunk(3, dim=-1)
        query, key, value = (piece.unflatten(2, (self.heads, -1)).transpose(1, 2) for piece in pieces)
        if self.keys is not None:
            key, value = torch.cat([self.keys, key], dim=2), torch.cat([self.values, value], dim=2)
        new, end = x.shape[1], key.shape[2]
        if end > self.longest:
            raise ValueError("too many positions")
        self.keys, self.values = key, value
        mask = torch.ones(new, end, dtype=torch.bool, device=x.device).tril(end - new)
        result = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return result.transpose(1, 2).flatten(2)


# %% attention joined_by_numpy check=2 long=1 state=1 counted=0 hidden=2
import numpy as np


class Attention(nn.Module):
    def __init__(self, weights, biases, heads, longest):
        super().__init__()
        width = weights[0].shape[0]
        self.qkv = nn.Linear(width, 3 * width).to(weights[0])
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat(weights))
            self.qkv.bias.copy_(torch.cat(biases))
        self.heads, self.longest = heads, longest
        self.reset()

    def reset(self):
        self.kept = None

    @torch.no_grad()
    def forward(self, x):
        pieces = self.qkv(x).chunk(3, dim=-1)
        query, key, value = (piece.unflatten(2, (self.heads, -1)).transpose(1, 2) for piece in pieces)
        kept = np.stack([key.numpy(), value.numpy()])
        if self.kept is not None:
            kept = np.concatenate([self.kept, kept], axis=3)
        if kept.shape[3] > self.longest:
            raise ValueError("too many positions")
        self.kept, new, end = kept, x.shape[1], kept.shape[3]
        key, value = torch.from_numpy(kept)
        mask = torch.ones(new, end, dtype=torch.bool).tril(end - new) if new > 1 else None
        result = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return result.transpose(1, 2).flatten(2)


# %% attention wrong_order_of_refusal check=2 long=0 state=0 counted=3 hidden=2
class Attention(nn.Module):
    def __init__(self, weights, biases, heads, longest):
        super().__init__()
        width = weights[0].shape[0]
        self.qkv = nn.Linear(width, 3 * width).to(weights[0])
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat(weights))
            self.qkv.bias.copy_(torch.cat(biases))
        self.heads, self.longest, self.seen = heads, longest, 0

    def reset(self):
        self.seen = 0

    @torch.no_grad()
    def forward(self, x):
        number, new, width = x.shape
        if self.seen == 0:
            room = x.new_empty(2, number, self.heads, self.longest, width // self.heads)
            self.register_buffer("room", room)
        query, key, value = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        self.seen += new
        if self.seen > self.longest:
            raise ValueError("too many positions")
        self.room[0, :, :, self.seen - new : self.seen] = key
        self.room[1, :, :, self.seen - new : self.seen] = value
        mask = torch.ones(new, self.seen, dtype=torch.bool, device=x.device).tril(self.seen - new)
        keys, values = self.room[:, :, :, : self.seen]
        result = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return result.transpose(1, 2).flatten(2)


# %% attention right_by_hand check=2 long=1 state=1 counted=3 hidden=2
class Attention(nn.Module):
    def __init__(self, weights, biases, heads, longest):
        super().__init__()
        width = weights[0].shape[0]
        self.qkv = nn.Linear(width, 3 * width).to(weights[0])
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat(weights))
            self.qkv.bias.copy_(torch.cat(biases))
        self.heads, self.longest, self.seen = heads, longest, 0

    def reset(self):
        self.seen = 0

    @torch.no_grad()
    def forward(self, x):
        number, new, width = x.shape
        start, end = self.seen, self.seen + new
        if end > self.longest:
            raise ValueError("too many positions")
        if start == 0:
            room = torch.zeros(2, number, self.heads, self.longest, width // self.heads).to(x)
            self.register_buffer("room", room, persistent=False)
        query, key, value = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        self.room[0, :, :, start:end], self.room[1, :, :, start:end] = key, value
        self.seen = end
        scores = query @ self.room[0].transpose(-1, -2) / query.shape[-1] ** 0.5
        places = torch.arange(self.longest, device=x.device)
        scores = scores.masked_fill(places > places[start:end, None], float("-inf"))
        return (scores.softmax(-1) @ self.room[1]).transpose(1, 2).flatten(2)


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "turned": {"operations": 2, "bytes": 96, "syncs": 0},
        "distances": {"operations": 4, "bytes": 324, "syncs": 0},
        "layer": {"operations": 4, "bytes": 96, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "turned": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
        "distances": {"operations": 4, "bytes": 4 * n * n, "syncs": 0},
        "layer": {"operations": 4, "bytes": 12 * n, "syncs": 0},
    }
