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


# %% entropy double_where check=2 syncs=1 hidden=2 shape=1 race=2
def entropy(p):
    if p.ndim != 2:
        raise ValueError("not two dimensions")
    there = p > 0
    safe = torch.where(there, p, 0.5)
    return torch.where(there, -safe * safe.log(), 0.0).sum(dim=1)


# %% group_softmax right_slow check=1 gradients=0 hidden=2 range=1 race=0
def group_softmax(scores, groups, count):
    if len(groups) and not 0 <= groups.min() <= groups.max() < count:
        raise IndexError("a group out of range")
    weights = torch.zeros_like(scores)
    for group in range(count):
        members = groups == group
        weights[members] = scores[members].softmax(dim=0)
    return weights


# %% group_softmax wrong_fast check=1 gradients=1 hidden=0 range=1 race=0
def group_softmax(scores, groups, count):
    powers = scores.exp()
    return powers / scores.new_zeros(count).scatter_add(0, groups, powers)[groups]


# %% group_softmax one_maximum_for_all check=1 gradients=1 hidden=0 range=1 race=0
def group_softmax(scores, groups, count):
    powers = (scores - scores.max()).exp() if len(scores) else scores.exp()
    return powers / scores.new_zeros(count).scatter_add(0, groups, powers)[groups]


# %% group_softmax maximum_with_zero check=1 gradients=1 hidden=0 range=1 race=0
def group_softmax(scores, groups, count):
    largest = scores.new_zeros(count).scatter_reduce(0, groups, scores.detach(), "amax")
    powers = (scores - largest[groups]).exp()
    return powers / scores.new_zeros(count).scatter_add(0, groups, powers)[groups]


# %% confusion right_slow check=1 syncs=1 hidden=2 shapes=1 race=0
def confusion(truth, guesses, classes):
    if truth.shape != guesses.shape:
        raise ValueError("different shapes")
    cells = [((truth == t) & (guesses == g)).sum() for t in range(classes) for g in range(classes)]
    return torch.stack(cells).view(classes, classes)


# %% confusion wrong_fast check=0 syncs=0 hidden=0 shapes=0 race=0
def confusion(truth, guesses, classes):
    bins = (truth.clamp(min=0) * classes + guesses).reshape(-1)
    counts = torch.zeros(classes * classes, dtype=torch.int64, device=truth.device)
    return counts.scatter_add_(0, bins, torch.ones_like(bins)).view(classes, classes)


# %% confusion last_one_counts check=0 syncs=0 hidden=0 shapes=1 race=0
def confusion(truth, guesses, classes):
    if truth.shape != guesses.shape:
        raise ValueError("different shapes")
    known = truth != -100
    table = torch.zeros(classes, classes, dtype=torch.int64, device=truth.device)
    table[truth[known], guesses[known]] += 1
    return table


# %% confusion fast_but_waits check=1 syncs=0 hidden=2 shapes=1 race=2
def confusion(truth, guesses, classes):
    if truth.shape != guesses.shape:
        raise ValueError("different shapes")
    known = truth != -100
    bins = truth[known] * classes + guesses[known]
    return torch.bincount(bins, minlength=classes**2).view(classes, classes)


# %% replay right_slow check=1 gradients=0 hidden=2 range=1 race=0
def replay(table, places, values):
    last = {}
    for i, place in enumerate(places.tolist()):
        if not 0 <= place < len(table):
            raise IndexError("a place out of range")
        last[place] = i
    cells = [values[last[place]] if place in last else table[place] for place in range(len(table))]
    return torch.stack(cells) if cells else table.clone()


# %% replay wrong_fast check=1 gradients=0 hidden=0 range=1 race=0
def replay(table, places, values):
    return table.scatter(0, places, values)


# %% replay adds_up check=0 gradients=0 hidden=0 range=1 race=0
def replay(table, places, values):
    return table.scatter_reduce(0, places, values, "sum", include_self=False)


# %% replay with_where check=1 gradients=2 hidden=2 range=1 race=2
def replay(table, places, values):
    if not len(values):
        return table + 0 * values.sum()
    last = torch.full((len(table),), -1, device=table.device)
    last = last.scatter_reduce(0, places, torch.arange(len(places), device=table.device), "amax")
    return torch.where(last >= 0, values[last.clamp(min=0)], table)
