# %% polynomial right_slow check=1 empty=1 memory=0 hidden=2 race=0
def polynomial(coefficients, x):
    if not coefficients:
        raise ValueError("no coefficients")
    total = torch.zeros_like(x)
    for power, coefficient in enumerate(coefficients):
        total = total + coefficient * x**power
    return total


# %% polynomial wrong_fast check=0 empty=0 memory=0 hidden=0 race=0
def polynomial(coefficients, x):
    total = torch.zeros_like(x)
    for coefficient in coefficients:
        total.mul_(x).add_(coefficient)
    return total


# %% polynomial right_in_new_tensors check=1 empty=1 memory=0 hidden=2 race=2
def polynomial(coefficients, x):
    if not coefficients:
        raise ValueError("no coefficients")
    total = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


# %% polynomial overwrites_its_input check=0 empty=1 memory=0 hidden=0 race=0
def polynomial(coefficients, x):
    if not coefficients:
        raise ValueError("no coefficients")
    powers = x.clone()
    total = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total.add_(powers, alpha=coefficient)
        powers.mul_(x)
    return x.copy_(total)


# %% column_ranges right_slow check=1 hidden=2 race=0
def column_ranges(table):
    ranges = table.new_zeros(table.shape[1])
    for i in range(table.shape[1]):
        ranges[i] = table[:, i].max() - table[:, i].min()
    return ranges


# %% column_ranges wrong_fast check=0 hidden=0 race=0
def column_ranges(table):
    return table.amax(1) - table.amin(1)


# %% column_ranges starts_from_zero check=1 hidden=0 race=0
def column_ranges(table):
    lowest, highest = table.new_zeros(table.shape[1]), table.new_zeros(table.shape[1])
    for row in table:
        torch.minimum(lowest, row, out=lowest)
        torch.maximum(highest, row, out=highest)
    return highest - lowest


# %% window_sums right_slow check=1 width=1 hidden=2 race=0
def window_sums(x, width):
    if not 1 <= width <= len(x):
        raise ValueError("no such window")
    return torch.stack([x[i : i + width].sum() for i in range(len(x) - width + 1)])


# %% window_sums wrong_fast check=0 width=0 hidden=0 race=0
def window_sums(x, width):
    totals = x.cumsum(0)
    return totals[width - 1 :] - totals[: len(x) - width + 1]


# %% window_sums right_but_rounds check=1 width=1 hidden=0 race=0
def window_sums(x, width):
    if not 1 <= width <= len(x):
        raise ValueError("no such window")
    totals = torch.cat([x.new_zeros(1), x.cumsum(0)])
    return totals[width:] - totals[:-width]


# %% product right_slow check=1 empty=1 order=0 hidden=2 race=0
def product(matrices):
    if not matrices:
        raise ValueError("no matrices")
    return functools.reduce(torch.matmul, matrices)


# %% product wrong_fast check=0 empty=0 order=0 hidden=0 race=0
def product(matrices):
    return torch.zeros(1, 1)


# %% product from_the_right check=1 empty=1 order=0 hidden=2 race=1
def product(matrices):
    if not matrices:
        raise ValueError("no matrices")
    result = matrices[-1]
    for matrix in reversed(matrices[:-1]):
        result = matrix @ result
    return result


# %% product forgets_one_matrix check=1 empty=1 order=1 hidden=0 race=0
def product(matrices):
    if not matrices:
        raise ValueError("no matrices")
    return torch.linalg.multi_dot(matrices)


# %% crowding right_slow check=1 memory=1 hidden=2 race=0
def crowding(points, others):
    return torch.stack([torch.exp(-(point - others).abs()).sum() for point in points])


# %% crowding wrong_fast check=0 memory=0 hidden=0 race=0
def crowding(points, others):
    return torch.exp(-(points - others.mean()).abs()) * len(others)


# %% crowding all_at_once check=1 memory=0 hidden=2 race=2
def crowding(points, others):
    return torch.exp(-(points[:, None] - others).abs()).sum(1)


# %% crowding drops_the_last_block check=1 memory=1 hidden=0 race=0
def crowding(points, others):
    if len(points) < 50:
        return crowding(torch.cat([points, points.new_zeros(50 - len(points))]), others)[: len(points)]
    whole = points[: len(points) // 50 * 50].view(-1, 50)
    return torch.cat([(part[:, None] - others).abs_().neg_().exp_().sum(1) for part in whole])
