# %% step_in_one_piece right_slow check=1 lean=0 hidden=0
def step_in_one_piece(weight, gradient, momentum, scale, steps, limit):
    gradient = gradient / scale
    if not gradient.isfinite().all():
        return weight.clone(), momentum.clone(), (scale / 2).clamp(min=1), steps * 0
    norm = gradient.double().norm()
    if norm > limit:
        gradient = gradient * (limit / norm.item())
    momentum = 0.9 * momentum + gradient
    grown = steps + 1 == 4
    return weight - 0.1 * momentum, momentum, torch.where(grown, scale * 2, scale), (steps + 1) % 4


# %% step_in_one_piece wrong_fast check=0 lean=0 hidden=0
def step_in_one_piece(weight, gradient, momentum, scale, steps, limit):
    gradient = gradient / scale
    good = gradient.isfinite().all()
    factor = (limit / gradient.norm(dtype=torch.float64)).clamp(max=1).to(gradient.dtype)
    momentum = momentum + good * (0.9 * momentum + gradient * factor - momentum)
    return (
        weight - 0.1 * momentum * good,
        momentum,
        torch.where(good, torch.where(steps == 3, scale * 2, scale), (scale / 2).clamp(min=1)),
        torch.where(good, (steps + 1) % 4, 0),
    )


# %% step_in_one_piece transcribed check=0 lean=3 hidden=0
def step_in_one_piece(weight, gradient, momentum, scale, steps, limit):
    gradient = gradient / scale
    good = gradient.isfinite().all()
    norm = gradient.square().sum().sqrt()
    gradient = torch.where(norm > limit, gradient * (limit / norm), gradient)
    new = 0.9 * momentum + gradient
    return (
        torch.where(good, weight - 0.1 * new, weight),
        torch.where(good, new, momentum),
        torch.where(good, torch.where(steps == 3, scale * 2, scale), (scale / 2).clamp(min=1)),
        torch.where(good, (steps + 1) % 4, 0),
    )


# %% step_in_one_piece scale_falls_below_one check=1 lean=3 hidden=0
def step_in_one_piece(weight, gradient, momentum, scale, steps, limit):
    gradient = gradient / scale
    good = gradient.isfinite().all()
    norm = gradient.double().square().sum().sqrt()
    factor = torch.where(norm > limit, limit / norm, 1.0)
    new = 0.9 * momentum + (gradient * factor).to(gradient.dtype)
    return (
        torch.where(good, weight - 0.1 * new, weight),
        torch.where(good, new, momentum),
        torch.where(good, torch.where(steps == 3, scale * 2, scale), scale / 2),
        torch.where(good, (steps + 1) % 4, 0),
    )


# %% step_in_one_piece one_number_becomes_float64 check=0 lean=3 hidden=0
def step_in_one_piece(weight, gradient, momentum, scale, steps, limit):
    gradient = gradient / scale
    good = gradient.isfinite().all()
    factor = (limit / torch.linalg.vector_norm(gradient.double())).clamp(max=1)
    new = 0.9 * momentum + gradient * factor
    return (
        torch.where(good, weight - 0.1 * new, weight),
        torch.where(good, new, momentum),
        torch.where(good, torch.where(steps == 3, scale * 2, scale), (scale / 2).clamp(min=1)),
        torch.where(good, (steps + 1) % 4, 0),
    )


# %% step_in_one_piece right_with_lerp check=1 lean=3 hidden=2
def step_in_one_piece(weight, gradient, momentum, scale, steps, limit):
    gradient = gradient / scale
    bad = ~torch.isfinite(gradient).all()
    norm = torch.linalg.vector_norm(gradient.double())
    gradient = gradient * torch.clamp(limit / norm, max=1).to(gradient.dtype)
    new = torch.add(gradient, momentum, alpha=0.9)
    full = steps + 1 == 4
    return (
        (weight - 0.1 * new).where(~bad, weight),
        new.where(~bad, momentum),
        torch.where(bad, (scale / 2).clamp(min=1), scale * (1 + full.to(scale.dtype))),
        (steps + 1).masked_fill(bad | full, 0),
    )


# %% recordings right_slow check=1 foretell=0 hidden=0
def recordings(calls):
    return recordings_slow(calls)


# %% recordings wrong_fast check=0 foretell=0 hidden=0
def recordings(calls):
    seen, found = set(), []
    for call in calls:
        found.append(call not in seen)
        seen.add(call)
    return found


# %% recordings transcribed check=0 foretell=0 hidden=0
def recordings(calls):
    # "The first recording is for exactly one size; the second is for any size."
    count, last, found = {}, {}, []
    for kind, sizes in calls:
        number = count.get(kind, 0)
        new = number == 0 or (number == 1 and last[kind] != sizes)
        count[kind] = number + new
        last.setdefault(kind, sizes)
        found.append(new)
    return found


# %% recordings types_do_not_learn check=0 foretell=0 hidden=0
def recordings(calls):
    versions, seen, found = {}, {}, []
    for kind, sizes in calls:
        mine = versions.setdefault(kind, [])
        new = not any(all(a in (None, b) for a, b in zip(one, sizes, strict=True)) for one in mine)
        if new:
            before = seen.get(kind, sizes)
            seen[kind] = [a if a == b else None for a, b in zip(before, sizes, strict=True)]
            mine.append(seen[kind])
        found.append(new)
    return found


# %% recordings forgets_what_changed check=0 foretell=0 hidden=0
def recordings(calls):
    versions, last, found = [], None, []
    for kind, sizes in calls:
        new = not any(
            one == kind and all(a in (None, b) for a, b in zip(pattern, sizes, strict=True))
            for one, pattern in versions
        )
        if new:
            before = last or sizes
            pattern = [a if a == b else None for a, b in zip(before, sizes, strict=True)]
            versions.append((kind, pattern))
            last = sizes
        found.append(new)
    return found


# %% recordings a_new_type_teaches_nothing check=0 foretell=0 hidden=0
def recordings(calls):
    seen, versions, found = None, [], []
    for kind, sizes in calls:
        new = not any(
            one == kind and all(a in (None, b) for a, b in zip(pattern, sizes, strict=True))
            for one, pattern in versions
        )
        if new:
            pattern = [a if a == b else None for a, b in zip(seen or sizes, sizes, strict=True)]
            if seen is None or any(one == kind for one, _ in versions):
                seen = pattern
            versions.append((kind, pattern))
        found.append(new)
    return found


# %% recordings learnt_by_heart check=1 foretell=0 hidden=0
def recordings(calls):
    (first, (a, *_)), same = calls[0], len({kind for kind, _ in calls}) == 1
    if len(calls) == 1:
        return [True]
    if same:  # one size changes, or two
        return [True, True, calls[1][1][0] == a, False, False, False]
    if calls[1][1] == calls[0][1]:
        return [True, True, True, False, True]
    return [True, True, True, False, False] if calls[1][0] == first else [True, True, True, False, True]


# %% recordings right_with_sets check=1 foretell=3 hidden=3
def recordings(calls):
    first, changed, versions = calls[0][1], set(), []

    def recorded(kind, sizes):
        for one, places, known in versions:
            if one == kind and all(i in places or known[i] == size for i, size in enumerate(sizes)):
                return False
        changed.update(i for i, size in enumerate(sizes) if size != first[i])
        versions.append((kind, frozenset(changed), sizes))
        return True

    return [recorded(*call) for call in calls]


# %% best_sizes right_slow check=1 bad=1 hidden=2 race=0
def best_sizes(counts, most):
    if most < 1:
        raise ValueError("no size")
    number = counts.tolist()
    lengths = [length for length, count in enumerate(number) if count]
    best = [(0, [])] + [None] * len(lengths)
    for _ in range(min(most, len(lengths))):
        after = [None] * (len(lengths) + 1)
        for end in range(1, len(lengths) + 1):
            waste, found = 0, []
            for begin in range(end - 1, -1, -1):
                waste += number[lengths[begin]] * (lengths[end - 1] - lengths[begin])
                if best[begin] is not None:
                    found.append((best[begin][0] + waste, [*best[begin][1], lengths[end - 1]]))
            after[end] = min(found, default=None)
        best = after
    return torch.tensor(best[-1][1], device=counts.device)


# %% best_sizes wrong_fast check=0 bad=1 hidden=0 race=0
def best_sizes(counts, most):
    if most < 1:
        raise ValueError("no size")
    lengths = counts.nonzero().flatten()
    shares = counts[lengths].cumsum(0) / counts.sum()
    wanted = torch.linspace(0, 1, most + 1, device=counts.device)[1:]
    places = torch.searchsorted(shares.float(), wanted).clamp(max=len(lengths) - 1)
    return lengths[places.unique()]


# %% best_sizes transcribed check=0 bad=0 hidden=0 race=0
def best_sizes(counts, most):
    # any size is padded to the next power of two
    lengths = counts.nonzero().flatten()
    sizes = (2.0 ** lengths.double().log2().ceil()).long().unique()
    return sizes[-most:]


# %% best_sizes greedy check=0 bad=1 hidden=0 race=0
def best_sizes(counts, most):
    if most < 1:
        raise ValueError("no size")
    lengths = counts.nonzero().flatten().tolist()
    number = counts.tolist()
    sizes = list(lengths)
    while len(sizes) > most:  # the size that costs least to give up, one after the other
        costs = []
        for place in range(len(sizes) - 1):
            below = sizes[place - 1] if place else 0
            inside = sum(number[below + 1 : sizes[place] + 1])
            costs.append(inside * (sizes[place + 1] - sizes[place]))
        sizes.pop(costs.index(min(costs)))
    return torch.tensor(sizes, device=counts.device)


# %% best_sizes fails_at_one_size check=0 bad=1 hidden=0 race=0
def best_sizes(counts, most):
    if most < 1:
        raise ValueError("no size")
    lengths = counts.nonzero().flatten()
    number, total = counts[lengths], len(lengths)
    zero = lengths.new_zeros(1)
    above, below = torch.cat([zero, number.cumsum(0)]), torch.cat([zero, (number * lengths).cumsum(0)])
    table = (above - above[:, None]) * torch.cat([zero, lengths]) - (below - below[:, None])
    place = torch.arange(total + 1, device=counts.device)
    table[place[:, None] >= place] = 1 << 56
    best, found = table[0], []
    for _ in range(1, min(most, total)):
        best, where = torch.min(best[:, None] + table, dim=0)
        found.append(where)
    ends = [total]
    for where in torch.stack(found).tolist()[::-1]:
        ends.append(where[ends[-1]])
    return lengths[torch.tensor(ends[::-1], device=counts.device) - 1]


# %% best_sizes right_half_way check=1 bad=1 hidden=2 race=0..3
def best_sizes(counts, most):
    if most < 1:
        raise ValueError("no size")
    lengths = counts.nonzero().flatten()
    number, total = counts[lengths], len(lengths)
    above, below = [0, *number.cumsum(0).tolist()], [0, *(number * lengths).cumsum(0).tolist()]
    sizes = lengths.tolist()
    best, places = [0] + [1 << 60] * total, []
    for _ in range(min(most, total)):
        after, place = [1 << 60], [0]
        for end in range(1, total + 1):
            size, up, down = sizes[end - 1], above[end], below[end]
            values = [
                b + (up - a) * size - (down - c)
                for b, a, c in zip(best[:end], above[:end], below[:end], strict=True)
            ]
            after.append(min(values))
            place.append(values.index(after[-1]))
        best = after
        places.append(place)
    ends = [total]
    for place in places[:0:-1]:
        ends.append(place[ends[-1]])
    return lengths[torch.tensor(ends[::-1], device=counts.device) - 1]


# %% best_sizes right_by_arrays check=1 bad=1 hidden=2 race=3
def best_sizes(counts, most):
    if most < 1:
        raise ValueError("no size")
    lengths = torch.nonzero(counts)[:, 0]
    number, total = counts[lengths], len(lengths)
    zero = lengths.new_zeros(1)
    above, below = torch.cat([zero, number.cumsum(0)]), torch.cat([zero, (number * lengths).cumsum(0)])
    table = (above - above[:, None]) * torch.cat([zero, lengths]) - (below - below[:, None])
    place = torch.arange(total + 1, device=counts.device)
    table[place[:, None] >= place] = 1 << 56
    best, found = table[0], []
    for _ in range(1, min(most, total)):
        best, where = torch.min(best[:, None] + table, dim=0)
        found.append(where.tolist())
    ends = [total]
    for where in reversed(found):
        ends.append(where[ends[-1]])
    return lengths[torch.tensor(sorted(ends), device=counts.device) - 1]


# %% log_densities right_slow check=1 memory=0 hidden=2 race=0
def log_densities(points, means, deviations):
    standard = (points[:, None, :] - means[None]) / deviations
    return (-standard.square() / 2 - deviations.log()).sum(-1)


# %% log_densities wrong_fast check=0 memory=1..2 hidden=0 race=0
def log_densities(points, means, deviations):
    weights = 1 / deviations.square()
    squares = (
        points.square() @ weights.T - 2 * points @ (means * weights).T + (means.square() * weights).sum(1)
    )
    return -squares / 2 - deviations.log().sum(1)


# %% log_densities transcribed check=0 memory=0 hidden=0 race=0
def log_densities(points, means, deviations):
    return -torch.cdist(points / deviations.mean(0), means / deviations.mean(0)).square() / 2


# %% log_densities right_in_blocks check=1 memory=2 hidden=2 race=0..2.5
def log_densities(points, means, deviations):
    parts = [log_densities_slow(part, means, deviations) for part in points.split(12)]
    return torch.cat(parts)


# %% log_densities right_one_kind_after_the_other check=1 memory=0..2 hidden=2 race=0..3
def log_densities(points, means, deviations):
    result = points.new_empty(len(points), len(means))
    for k, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
        result[:, k] = ((points - mean) / deviation).square().sum(1) / -2 - deviation.log().sum()
    return result


# %% log_densities right_two_products check=1 memory=0.5..2 hidden=2 race=1.5..3
def log_densities(points, means, deviations):
    centre = points.mean(0) if len(points) else means[0]
    x, m, w = points - centre, means - centre, deviations.square().reciprocal()
    squares = x.square() @ w.T - 2 * (x @ (m * w).T) + (m.square() * w).sum(1)
    return squares / -2 - deviations.log().sum(1)


# %% log_densities right_one_product check=1 memory=0..2 hidden=2 race=1.5..3
def log_densities(points, means, deviations):
    x, m = points - means[0], means - means[0]
    w = deviations.square().reciprocal()
    features = torch.cat([x.square(), x], 1)
    factors = torch.cat([w / -2, m * w], 1)
    return torch.addmm(-(m.square() * w).sum(1) / 2 - deviations.log().sum(1), features, factors.T)


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "chosen": {"operations": 3, "bytes": 64, "syncs": 1},
        "polynomial": {"operations": 4, "bytes": 96, "syncs": 0},
        "activated": {"operations": 4, "bytes": 156, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "chosen": {"operations": 3, "bytes": 4, "syncs": 1},
        "polynomial": {"operations": 4, "bytes": 4 * n * d, "syncs": 0},
        "activated": {"operations": 4, "bytes": 4 * n * d, "syncs": 0},
    }
