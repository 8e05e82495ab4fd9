# %% searches right_slow check=1 hidden=2 race=0
def searches(shapes, step):
    seen = []
    for row in shapes.tolist():
        rounded = row[:2] + [math.ceil(size / step) * step for size in row[2:]]
        if rounded not in seen:
            seen.append(rounded)
    return len(seen)


# %% searches wrong_fast check=1 hidden=0 race=0
def searches(shapes, step):
    return len(set(map(tuple, (-(-shapes[:, 2:] // step)).tolist())))


# %% searches right_unique check=1 hidden=2 race=3
def searches(shapes, step):
    rounded = torch.cat([shapes[:, :2], (shapes[:, 2:] + step - 1) // step], dim=1)
    return len(torch.unique(rounded, dim=0)) if len(rounded) else 0


# %% seconds_saved right_slow check=1 lengths=1 hidden=1 race=0
def seconds_saved(calls, usual, best, search):
    return seconds_saved_given(calls, usual, best, search)


# %% seconds_saved wrong_fast check=1 lengths=1 hidden=0 race=0
def seconds_saved(calls, usual, best, search):
    if len({len(calls), len(usual), len(best)}) > 1:
        raise ValueError("lengths differ")
    return float(sum(n * (a - b) - search for n, a, b in zip(calls, usual, best, strict=True)))


# %% train right_slow check=1 hidden=2 race=0
def train(seed, steps):
    return train_slow(seed, steps)


# %% train wrong_fast check=0 hidden=0 race=0
def train(seed, steps):
    torch.manual_seed(seed)
    data, weight, noise = torch.rand(512, 16), torch.rand(16), torch.rand(512)
    target = data[:, 0] - 2 * data[:, 1] + 0.1 * noise
    losses = []
    for _ in range(steps):
        error = data @ weight - target
        losses.append((error * error).mean())
        weight = weight - 0.01 * (data.T @ error)
    return torch.stack(losses)


# %% group_sums right_slow check=1 hidden=2 race=0
def group_sums(values, groups, count):
    sums = [math.fsum(values[groups == group].tolist()) for group in range(count)]
    return torch.tensor(sums, dtype=torch.float32, device=values.device)


# %% group_sums wrong_fast check=0 hidden=0 race=0
def group_sums(values, groups, count):
    return torch.zeros(count, device=values.device).index_add_(0, groups, values)
