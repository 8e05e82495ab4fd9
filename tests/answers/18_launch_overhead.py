# %% health right_slow check=1 hidden=2 race=0
def health(gradients):
    rows = []
    for gradient in gradients:
        flat = gradient.reshape(-1)
        good = flat.isfinite()
        kept = flat.masked_fill(~good, 0)
        count = good.sum(dtype=gradient.dtype)
        largest = torch.cat([kept.abs(), kept.new_zeros(1)]).amax()
        rows.append(
            torch.stack([kept.norm(), largest, kept.sum() / count.clamp(min=1), gradient.numel() - count])
        )
    return torch.stack(rows) if rows else torch.zeros(0, 4)


# %% health transcribed check=0 hidden=0 race=0
def health(gradients):
    lengths = torch.stack(torch._foreach_norm(gradients))
    largest = torch.stack(torch._foreach_norm(gradients, float("inf")))
    means = torch.stack([gradient.mean() for gradient in gradients])
    broken = torch.stack([(~gradient.isfinite()).sum() for gradient in gradients])
    return torch.stack([lengths, largest, means, broken], 1)


# %% health asks_the_device check=0 hidden=0 race=1.5..3
def health(gradients):
    if not gradients:
        return torch.zeros(0, 4)
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    sizes = torch.tensor([gradient.numel() for gradient in gradients], device=flat.device)
    owners = torch.repeat_interleave(torch.arange(len(gradients), device=flat.device), sizes)
    good = flat.isfinite()
    kept, owners = flat[good], owners[good]
    empty = flat.new_zeros(len(gradients))
    counts = empty.index_add(0, owners, torch.ones_like(kept))
    squares = empty.index_add(0, owners, kept.square())
    means = empty.index_add(0, owners, kept) / counts.clamp(min=1)
    largest = empty.scatter_reduce(0, owners, kept.abs(), "amax")
    return torch.stack([squares.sqrt(), largest, means, sizes - counts], 1)


# %% health waits_for_the_total check=0 hidden=0 race=1.5..3
def health(gradients):
    if not gradients:
        return torch.zeros(0, 4)
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    sizes = torch.tensor([gradient.numel() for gradient in gradients], device=flat.device)
    owners = torch.repeat_interleave(torch.arange(len(gradients), device=flat.device), sizes)
    good = flat.isfinite()
    kept = torch.where(good, flat, 0)
    empty = flat.new_zeros(len(gradients))
    counts = empty.index_add(0, owners, good.to(flat.dtype))
    squares = empty.index_add(0, owners, kept.square())
    means = empty.index_add(0, owners, kept) / counts.clamp(min=1)
    largest = empty.scatter_reduce(0, owners, kept.abs(), "amax")
    return torch.stack([squares.sqrt(), largest, means, sizes - counts], 1)


# %% health divides_by_all check=0 hidden=0 race=0
def health(gradients):
    if not gradients:
        return torch.zeros(0, 4)
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    sizes = torch.tensor([gradient.numel() for gradient in gradients], device=flat.device)
    owners = torch.repeat_interleave(torch.arange(len(gradients), device=flat.device), sizes)
    good = flat.isfinite()
    kept = torch.where(good, flat, 0)
    empty = flat.new_zeros(len(gradients))
    counts = empty.index_add(0, owners, good.to(flat.dtype))
    squares = empty.index_add(0, owners, kept.square())
    means = empty.index_add(0, owners, kept) / sizes.clamp(min=1)
    largest = empty.scatter_reduce(0, owners, kept.abs(), "amax")
    return torch.stack([squares.sqrt(), largest, means, sizes - counts], 1)


# %% health right_lists check=1 hidden=2 race=0.5..3
def health(gradients):
    if not gradients:
        return torch.zeros(0, 4)
    kept = [torch.nan_to_num(gradient, 0, 0, 0) for gradient in gradients]
    broken = torch.stack([gradient.numel() - gradient.isfinite().sum() for gradient in gradients])
    sizes = torch.tensor([gradient.numel() for gradient in gradients], device=gradients[0].device)
    lengths = torch.stack(torch._foreach_norm(kept))
    full = [one if one.numel() else one.new_zeros(1) for one in kept]
    largest = torch.stack(torch._foreach_norm(full, float("inf")))
    sums = torch.stack([one.sum() for one in kept])
    return torch.stack([lengths, largest, sums / (sizes - broken).clamp(min=1), broken], 1)


# %% health right_joined_by_column check=1 hidden=2 race=2..3
def health(gradients):
    if not gradients:
        return torch.zeros(0, 4)
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    number, sizes = len(gradients), [gradient.numel() for gradient in gradients]
    table = torch.tensor(sizes, device=flat.device)
    owners = torch.arange(number, device=flat.device).repeat_interleave(table, output_size=sum(sizes))
    broken = flat.isnan() | flat.isinf()
    kept = torch.where(broken, 0, flat)
    empty = torch.zeros(number, dtype=flat.dtype, device=flat.device)
    bad = empty.scatter_add(0, owners, broken.to(flat.dtype))
    squares = empty.scatter_add(0, owners, kept * kept)
    sums = empty.scatter_add(0, owners, kept)
    largest = empty.scatter_reduce(0, owners, kept.abs(), "amax")
    return torch.stack([squares**0.5, largest, sums / (table - bad).clamp(min=1), bad], 1)


# %% solve_all right_slow check=1 sizes=1 hidden=2 race=0
def solve_all(numbers, rights, sizes):
    if sum(size**2 for size in sizes) != len(numbers) or sum(sizes) != len(rights):
        raise ValueError("the sizes do not fit")
    result, begin, top = torch.zeros_like(rights), 0, 0
    for size in sizes:
        matrix = numbers[begin : begin + size**2].reshape(size, size)
        factors, pivots = torch.linalg.lu_factor(matrix)
        right = rights[top : top + size]
        result[top : top + size] = torch.linalg.lu_solve(factors, pivots, right[:, None])[:, 0]
        begin, top = begin + size**2, top + size
    return result


# %% solve_all transcribed check=0 sizes=0 hidden=0 race=0
def solve_all(numbers, rights, sizes):
    matrices = numbers.view(len(sizes), sizes[0], sizes[0])
    return torch.vmap(torch.linalg.solve)(matrices, rights.view(len(sizes), sizes[0])).flatten()


# %% solve_all in_the_order_of_sizes check=0 sizes=1 hidden=0 race=0
def solve_all(numbers, rights, sizes):
    squares = [size * size for size in sizes]
    if sum(squares) != len(numbers) or sum(sizes) != len(rights):
        raise ValueError("the sizes do not fit")
    matrices, columns, solved = numbers.split(squares), rights.split(sizes), [rights[:0]]
    for size in sorted(set(sizes)):
        chosen = [place for place, other in enumerate(sizes) if other == size]
        batch = torch.stack([matrices[place].view(size, size) for place in chosen])
        solved.append(torch.linalg.solve(batch, torch.stack([columns[place] for place in chosen])).flatten())
    return torch.cat(solved)


# %% solve_all only_neighbours check=1 sizes=1 hidden=2 race=0..0.7
def solve_all(numbers, rights, sizes):
    squares = [size * size for size in sizes]
    if sum(squares) != len(numbers) or sum(sizes) != len(rights):
        raise ValueError("the sizes do not fit")
    solved, first, begin, top = [rights[:0]], 0, 0, 0
    for place in range(1, len(sizes) + 1):
        if place == len(sizes) or sizes[place] != sizes[first]:
            size, number = sizes[first], place - first
            batch = numbers[begin : begin + number * size**2].reshape(number, size, size)
            columns = rights[top : top + number * size].reshape(number, size)
            solved.append(torch.linalg.solve(batch, columns).flatten())
            first, begin, top = place, begin + number * size**2, top + number * size
    return torch.cat(solved)


# %% solve_all forgets_the_sizes check=1 sizes=0 hidden=2 race=0
def solve_all(numbers, rights, sizes):
    if not sizes:
        return rights.clone()
    all_sizes = torch.tensor(sizes)
    corners, tops = all_sizes.square().cumsum(0), all_sizes.cumsum(0)
    result = rights.clone()
    for size in sorted(set(sizes)):
        which = (all_sizes == size).nonzero()
        cells = corners[which] - size**2 + torch.arange(size**2)
        lines = tops[which] - size + torch.arange(size)
        cells, lines = cells.to(rights.device), lines.to(rights.device)
        result[lines] = torch.linalg.solve(numbers[cells].unflatten(1, (size, size)), rights[lines])
    return result


# %% solve_all right_stacked check=1 sizes=1 hidden=2 race=0.6..2
def solve_all(numbers, rights, sizes):
    squares = [size * size for size in sizes]
    if sum(squares) != len(numbers) or sum(sizes) != len(rights):
        raise ValueError("the sizes do not fit")
    if not sizes:
        return rights.clone()
    matrices, columns, solved = numbers.split(squares), rights.split(sizes), [None] * len(sizes)
    for size in set(sizes):
        chosen = [place for place, other in enumerate(sizes) if other == size]
        batch = torch.stack([matrices[place] for place in chosen]).view(-1, size, size)
        results = torch.linalg.solve(batch, torch.stack([columns[place] for place in chosen])).unbind()
        for place, result in zip(chosen, results, strict=True):
            solved[place] = result
    return torch.cat(solved)


# %% sweep right_slow check=1 hidden=3 race=0
def sweep(inputs, targets, firsts, seconds, rates, limit, steps):
    firsts, seconds = list(firsts.clone().unbind()), list(seconds.clone().unbind())
    errors = torch.zeros(steps, len(firsts), dtype=inputs.dtype, device=inputs.device)
    for step in range(steps):
        for k in range(len(firsts)):
            first, second = firsts[k].clone().requires_grad_(), seconds[k].clone().requires_grad_()
            error = torch.nn.functional.mse_loss(torch.tanh(inputs @ first) @ second, targets)
            error.backward()
            length = torch.cat([first.grad.flatten(), second.grad.flatten()]).norm()
            factor = rates[k] * (limit / length).clamp(max=1)
            firsts[k] = (first - factor * first.grad).detach()
            seconds[k] = (second - factor * second.grad).detach()
            errors[step, k] = error.detach()
    return torch.stack(firsts), torch.stack(seconds), errors


# %% sweep transcribed check=0 hidden=0 race=0
def sweep(inputs, targets, firsts, seconds, rates, limit, steps):
    def loss(first, second):
        return (torch.tanh(inputs @ first) @ second - targets).square().mean()

    gradients = torch.vmap(torch.func.grad_and_value(loss, argnums=(0, 1)))
    errors = []
    for _ in range(steps):
        (first, second), error = gradients(firsts, seconds)
        firsts = firsts - rates[:, None, None] * first
        seconds = seconds - rates[:, None, None] * second
        errors.append(error)
    return firsts, seconds, torch.stack(errors)


# %% sweep clips_all_together check=0 hidden=0 race=0
def sweep(inputs, targets, firsts, seconds, rates, limit, steps):
    firsts, seconds = firsts.clone(), seconds.clone()
    errors = inputs.new_zeros(steps, len(rates))
    for step in range(steps):
        first, second = firsts.requires_grad_(), seconds.requires_grad_()
        error = (torch.tanh(inputs @ first) @ second - targets).square().mean((1, 2))
        error.sum().backward()
        length = (first.grad.square().sum() + second.grad.square().sum()).sqrt()
        factor = (rates * (limit / length).clamp(max=1))[:, None, None]
        firsts = (first - factor * first.grad).detach()
        seconds = (second - factor * second.grad).detach()
        errors[step] = error.detach()
    return firsts, seconds, errors


# %% sweep mean_of_all_errors check=0 hidden=0 race=0
def sweep(inputs, targets, firsts, seconds, rates, limit, steps):
    firsts, seconds = firsts.clone(), seconds.clone()
    errors = inputs.new_zeros(steps, len(rates))
    for step in range(steps):
        first, second = firsts.requires_grad_(), seconds.requires_grad_()
        error = (torch.tanh(inputs @ first) @ second - targets).square().mean((1, 2))
        error.mean().backward()
        length = (first.grad.square().sum((1, 2)) + second.grad.square().sum((1, 2))).sqrt()
        factor = (rates * (limit / length).clamp(max=1))[:, None, None]
        firsts = (first - factor * first.grad).detach()
        seconds = (second - factor * second.grad).detach()
        errors[step] = error.detach()
    return firsts, seconds, errors


# %% sweep right_vmap check=1 hidden=3 race=1..3
def sweep(inputs, targets, firsts, seconds, rates, limit, steps):
    def loss(first, second):
        return (torch.tanh(inputs @ first) @ second - targets).square().mean()

    def update(first, second, rate):
        (down, across), error = torch.func.grad_and_value(loss, argnums=(0, 1))(first, second)
        length = (down.square().sum() + across.square().sum()).sqrt()
        factor = rate * (limit / length).clamp(max=1)
        return first - factor * down, second - factor * across, error

    firsts, seconds, errors = firsts.clone(), seconds.clone(), []
    for _ in range(steps):
        firsts, seconds, error = torch.vmap(update)(firsts, seconds, rates)
        errors.append(error)
    return firsts, seconds, torch.stack(errors) if errors else inputs.new_zeros(0, len(rates))


# %% sweep right_by_hand check=1 hidden=3 race=2..3
def sweep(inputs, targets, firsts, seconds, rates, limit, steps):
    firsts, seconds = firsts.clone(), seconds.clone()
    errors = inputs.new_zeros(steps, len(rates))
    for step in range(steps):
        hidden = torch.tanh(inputs @ firsts)
        wrong = hidden @ seconds - targets
        errors[step] = wrong.square().mean((1, 2))
        wrong = wrong * (2 / targets.numel())
        across = hidden.mT @ wrong
        down = inputs.T @ ((wrong @ seconds.mT) * (1 - hidden * hidden))
        length = (down.square().sum((1, 2)) + across.square().sum((1, 2))).sqrt()
        factor = (rates * (limit / length).clamp(max=1))[:, None, None]
        firsts, seconds = firsts - factor * down, seconds - factor * across
    return firsts, seconds, errors


# %% forest right_slow check=0 hidden=0 race=0
def forest(x, feature, threshold, left, right, value, depth):
    results = []
    for sample in x.tolist():
        said = []
        for tree in range(len(feature)):
            node = 0
            while left[tree, node].item() != -1:
                go_left = sample[feature[tree, node].item()] <= threshold[tree, node].item()
                node = (left if go_left else right)[tree, node].item()
            said.append(value[tree, node])
        results.append(torch.stack(said).mean())
    return torch.stack(results)


# %% forest transcribed check=0 hidden=0 race=0
def forest(x, feature, threshold, left, right, value, depth):
    def walk(sample, feature, threshold, left, right, value):
        node = 0
        while left[node] != -1:
            node = left[node] if sample[feature[node]] <= threshold[node] else right[node]
        return value[node]

    trees = torch.vmap(walk, in_dims=(None, 0, 0, 0, 0, 0))
    return torch.vmap(trees, in_dims=(0, None, None, None, None, None))(
        x, feature, threshold, left, right, value
    ).mean(1)


# %% forest nan_goes_left check=0 hidden=0 race=0
def forest(x, feature, threshold, left, right, value, depth):
    end = left < 0
    stay = torch.arange(left.shape[1], device=x.device)
    lefts, rights = torch.where(end, stay, left), torch.where(end, stay, right)
    columns, tree = torch.where(end, 0, feature), torch.arange(len(feature), device=x.device)
    node = torch.zeros(len(x), len(feature), dtype=torch.int64, device=x.device)
    for _ in range(depth):
        goes_right = x.gather(1, columns[tree, node]) > threshold[tree, node]
        node = torch.where(goes_right, rights[tree, node], lefts[tree, node])
    return value[tree, node].mean(1)


# %% forest goes_on_at_the_end check=0 hidden=0 race=0
def forest(x, feature, threshold, left, right, value, depth):
    tree = torch.arange(len(feature), device=x.device)
    node = torch.zeros(len(x), len(feature), dtype=torch.int64, device=x.device)
    for _ in range(depth):
        column = feature[tree, node].clamp(min=0)
        goes_left = x.gather(1, column) <= threshold[tree, node]
        node = torch.where(goes_left, left[tree, node], right[tree, node])
        node = node.clamp(0, left.shape[1] - 1)
    return value[tree, node].mean(1)


# %% forest asks_the_ends_for_their_feature check=0 hidden=0 race=0
def forest(x, feature, threshold, left, right, value, depth):
    tree = torch.arange(len(feature), device=x.device)
    sample = torch.arange(len(x), device=x.device)[:, None]
    node = torch.zeros(len(x), len(feature), dtype=torch.int64, device=x.device)
    for _ in range(depth):
        goes_left = x[sample, feature[tree, node]] <= threshold[tree, node]
        after = torch.where(goes_left, left[tree, node], right[tree, node])
        node = torch.where(left[tree, node] == -1, node, after)
    return value[tree, node].mean(1)


# %% forest right_tree_by_tree check=1 hidden=2 race=0.5..3
def forest(x, feature, threshold, left, right, value, depth):
    total = torch.zeros(len(x), dtype=x.dtype, device=x.device)
    stay = torch.arange(left.shape[1], device=x.device)
    for tree in range(len(feature)):
        end = left[tree] < 0
        lefts, rights = torch.where(end, stay, left[tree]), torch.where(end, stay, right[tree])
        columns = torch.where(end, 0, feature[tree])
        node = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        for _ in range(depth):
            goes_left = x.gather(1, columns[node][:, None])[:, 0] <= threshold[tree][node]
            node = torch.where(goes_left, lefts[node], rights[node])
        total = total + value[tree][node]
    return total / len(feature)


# %% forest right_two_indices check=1 hidden=2 race=1.5..3
def forest(x, feature, threshold, left, right, value, depth):
    tree = torch.arange(len(feature), device=x.device)
    node = torch.zeros(len(x), len(feature), dtype=torch.int64, device=x.device)
    for _ in range(depth):
        to = left[tree, node]
        end = to < 0
        column = feature[tree, node].masked_fill(end, 0)
        goes_left = x.gather(1, column) <= threshold[tree, node]
        node = torch.where(end, node, torch.where(goes_left, to, right[tree, node]))
    return value[tree, node].mean(1)


# %% recurrence right_slow check=2 hidden=2 race=0
def recurrence(keep, new):
    states = [new[0]]
    for step in range(1, len(new)):
        states.append(torch.addcmul(new[step], keep[step], states[-1]))
    return torch.stack(states)


# %% recurrence transcribed check=0 hidden=0 race=0
def recurrence(keep, new):
    products = keep.cumprod(0)
    return products * (new / products).cumsum(0)


# %% recurrence in_place check=0 hidden=0 race=0
def recurrence(keep, new):
    reach = 1
    while reach < len(new):
        new[reach:] += keep[reach:] * new[:-reach]
        keep[reach:] *= keep[:-reach].clone()
        reach *= 2
    return new


# %% recurrence without_a_way_back check=0 hidden=0 race=0
def recurrence(keep, new):
    with torch.no_grad():
        keep, new, reach = keep.clone(), new.clone(), 1
        while reach < len(new):
            new[reach:] += keep[reach:] * new[:-reach]
            keep[reach:] = keep[reach:] * keep[:-reach]
            reach *= 2
    return new


# %% recurrence stops_too_early check=0 hidden=0 race=0
def recurrence(keep, new):
    reach = 1
    while 2 * reach < len(new):
        new = torch.cat([new[:reach], new[reach:] + keep[reach:] * new[:-reach]])
        keep = torch.cat([keep[:reach], keep[reach:] * keep[:-reach]])
        reach *= 2
    return new


# %% recurrence right_in_blocks check=2 hidden=2 race=0.8..3
def recurrence(keep, new):
    length, width = new.shape
    block = max(1, int(length**0.5))
    more = -length % block
    keep = torch.nn.functional.pad(keep, (0, 0, 0, more)).view(-1, block, width)
    new = torch.nn.functional.pad(new, (0, 0, 0, more)).view(-1, block, width)
    state, states = torch.zeros_like(new[:, 0]), []
    for kept, added in zip(keep.unbind(1), new.unbind(1), strict=True):
        state = kept * state + added
        states.append(state)
    inside, factors = torch.stack(states, 1), keep.cumprod(1)
    before, starts = torch.zeros_like(new[0, 0]), []
    for factor, end in zip(factors[:, -1].unbind(), inside[:, -1].unbind(), strict=True):
        starts.append(before)
        before = factor * before + end
    return (inside + factors * torch.stack(starts)[:, None]).flatten(0, 1)[:length]


# %% recurrence right_by_halves check=2 hidden=2 race=1..3
def recurrence(keep, new):
    length = len(new)
    if length == 1:
        return new * 1
    if length % 2:
        head = recurrence(keep[:-1], new[:-1])
        return torch.cat([head, keep[-1:] * head[-1:] + new[-1:]])
    pairs = recurrence(keep[1::2] * keep[::2], keep[1::2] * new[::2] + new[1::2])
    before = torch.cat([torch.zeros_like(pairs[:1]), pairs[:-1]])
    return torch.stack([keep[::2] * before + new[::2], pairs], 1).flatten(0, 1)


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "polynomial": {"operations": 4, "bytes": 96, "syncs": 0},
        "masked": {"operations": 4, "bytes": 45, "syncs": 0},
        "lengths": {"operations": 5, "bytes": 28, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "polynomial": {"operations": 4, "bytes": 4 * n * d, "syncs": 0},
        "masked": {"operations": 4, "bytes": 4 * n * n, "syncs": 0},
        "lengths": {"operations": n + 2, "bytes": 4, "syncs": 0},
    }
