# %% health 975bb52a61
import torch


def health(gradients):
    if not gradients:
        return torch.zeros(0, 4)
    sizes = [gradient.numel() for gradient in gradients]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    numbers = torch.tensor(sizes, device=flat.device)
    owner = torch.repeat_interleave(numbers, output_size=sum(sizes))  # which tensor each number belongs to
    kept = flat.nan_to_num(0.0, 0.0, 0.0)
    broken, squares, sums, largest = flat.new_zeros(4, len(sizes)).unbind()
    broken.index_add_(0, owner, flat.isfinite().logical_not().to(flat.dtype))
    squares.index_add_(0, owner, kept.square())
    sums.index_add_(0, owner, kept)
    largest.scatter_reduce_(0, owner, kept.abs(), "amax")
    mean = sums / (numbers - broken).clamp(min=1)
    return torch.stack([squares.sqrt(), largest, mean, broken], 1)


# %% solve_all dba8ac984e
import torch


def solve_all(numbers, rights, sizes):
    if sum(size * size for size in sizes) != len(numbers) or sum(sizes) != len(rights):
        raise ValueError(f"{len(numbers)} numbers and {len(rights)} right sides do not fit the sizes")
    groups = {}  # size: where its matrices begin, and where its right sides begin
    matrix = right = 0
    for size in sizes:
        if size not in groups:
            groups[size] = [], []
        matrices, sides = groups[size]
        matrices.append(matrix)
        sides.append(right)
        matrix += size * size
        right += size
    device = rights.device
    solutions = torch.empty_like(rights)
    for size, starts in groups.items():
        matrices, sides = torch.tensor(starts, device=device)[:, :, None]
        places = torch.arange(size * size, device=device)
        table = numbers[matrices + places].view(-1, size, size)
        where = sides + places[:size]
        solutions[where] = torch.linalg.solve(table, rights[where][:, :, None])[:, :, 0]
    return solutions


# %% sweep a3a6f2335d
import torch


@torch.no_grad()
def sweep(inputs, targets, firsts, seconds, rates, limit, steps):
    first, second = firsts.clone(), seconds.clone()
    rates = rates[:, None, None]
    scale = 2 / targets.numel()
    across = inputs.mT
    history = []
    for _ in range(steps):
        hidden = torch.tanh(inputs @ first)
        missed = hidden @ second - targets
        history.append(missed.square().mean((1, 2)))
        missed = missed * scale
        slope_second = hidden.mT @ missed
        slope_first = across @ ((missed @ second.mT) * (1 - hidden * hidden))
        length = (slope_first.square().sum((1, 2), True) + slope_second.square().sum((1, 2), True)).sqrt()
        factor = rates * (limit / length).clamp(max=1)
        first = first - factor * slope_first
        second = second - factor * slope_second
    errors = torch.stack(history) if history else inputs.new_zeros(0, len(firsts))
    return first, second, errors


# %% forest 8b5fe143ba
import torch


def forest(x, feature, threshold, left, right, value, depth):
    trees, nodes = feature.shape
    own = torch.arange(trees * nodes, device=x.device).view(trees, nodes)  # the number of each node among all
    roots = own[:, :1]
    ends = left == -1
    feature = feature.masked_fill(ends, 0).flatten()
    left = torch.where(ends, own, left + roots).flatten()  # where a walk ends, it stays
    right = torch.where(ends, own, right + roots).flatten()
    threshold = threshold.flatten()
    at = roots[:, 0].expand(len(x), -1)
    for _ in range(depth):
        goes_left = x.gather(1, feature[at]) <= threshold[at]
        at = torch.where(goes_left, left[at], right[at])
    return value.flatten()[at].mean(1)


# %% recurrence 6176db32c8
import torch


def recurrence(keep, new):
    length = len(new)
    if length == 1:
        return new + 0 * keep  # keep has no influence, but a gradient (of 0)
    # states[t]: what the last `reach` steps gave; kept[t - reach]: the product of the last `reach` factors
    states, kept, reach = new, keep[1:], 1
    while reach < length:
        states = torch.cat((states[:reach], torch.addcmul(states[reach:], kept, states[:-reach])))
        if 2 * reach < length:
            kept = kept[reach:] * kept[:-reach]
        reach *= 2
    return states
