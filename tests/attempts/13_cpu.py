# %% polynomial fd7ad21ce4
import torch


def polynomial(coefficients, x):
    if not coefficients:
        raise ValueError("a polynomial needs one coefficient or more")
    *lower, highest = torch.tensor(coefficients, dtype=x.dtype, device=x.device).unbind()
    result = torch.empty_like(x).copy_(highest)
    for coefficient in reversed(lower):
        torch.addcmul(coefficient, result, x, out=result)
    return result


# %% most_probable e8d512b780
import torch


def most_probable(scores, scale, shift):
    number, classes = scores.shape
    chosen = torch.zeros(number, dtype=torch.uint8, device=scores.device)
    best = column = None
    for k in range(classes):
        # one class after the other: reading has gaps, but all that follows has long rows of neighbours
        column = torch.mul(scores[:, k], scale[k]).add_(shift[k])
        if best is None:
            best = column
            continue
        better = torch.gt(column, best).view(torch.uint8).mul_(k)  # k where it is better, else 0
        torch.maximum(chosen, better, out=chosen)  # k grows, so the last class that was better wins
        torch.maximum(best, column, out=best)
    return chosen.long()


# %% adapted a7fe0301d9
import torch


def adapted(matrix, ups, downs, which, vectors):
    users, rows, rank = ups.shape
    columns = matrix.shape[1]
    same = vectors @ matrix.T
    small = vectors @ downs.reshape(users * rank, columns).T  # for all users, (N, K R)
    own = which[:, None] == torch.arange(users, device=which.device)
    small = small * own.repeat_interleave(rank, dim=1)
    return torch.addmm(same, small, ups.transpose(1, 2).reshape(users * rank, rows))


# %% product 0b0949e3ae
import torch


def best_splits(sizes):
    """For each product of the matrices i to j - 1, the place where its last multiplication cuts it."""
    n = len(sizes) - 1
    rows = [[0] for _ in range(n + 1)]  # rows[i]: the costs of (i, i + 1), (i, i + 2), ...
    columns = [[0] for _ in range(n + 1)]  # columns[j]: the costs of (j - 1, j), (j - 2, j), ...
    splits = {}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length
            outer = sizes[i] * sizes[j]
            costs = [
                left + right + outer * middle
                for left, right, middle in zip(rows[i], reversed(columns[j]), sizes[i + 1 : j])
            ]
            least = min(costs)
            splits[i, j] = i + 1 + costs.index(least)
            rows[i].append(least)
            columns[j].append(least)
    return splits


def product(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("a product needs one matrix or more")
    columns = None
    for factor in factors:
        if columns is not None and factor.shape[0] != columns:
            raise ValueError(f"{columns} columns, but {factor.shape[0]} rows in the next factor")
        columns = factor.shape[-1]

    matrices, between, sizes = [], {}, []  # between[k]: the diagonal before matrix k
    for factor in factors:
        if factor.ndim == 1:
            place = len(matrices)
            between[place] = between[place] * factor if place in between else factor
        else:
            matrices.append(factor)
            sizes.append(factor.shape[0])
    sizes.append(matrices[-1].shape[1])
    splits = best_splits(sizes)

    def part(i, j):
        if j == i + 1:
            return matrices[i]
        k = splits[i, j]
        left, right = part(i, k), part(k, j)
        if k in between:
            if len(left) <= right.shape[1]:
                left = left * between[k]
            else:
                right = between[k][:, None] * right
        return left @ right

    result = part(0, len(matrices))
    if 0 in between:
        result = between[0][:, None] * result
    if len(matrices) in between:
        result = result * between[len(matrices)]
    return result


# %% loss_and_entropy aa6e5c2281
import torch


def of_some_states(states, words, offsets, targets):
    number = len(states)
    highest = states.new_full((number,), -1e4)  # below every score, and finite
    total, mean = (
        torch.zeros_like(highest),
        torch.zeros_like(highest),
    )  # of exp(s - highest), times (s - highest)
    block = max(1, 16_384 // max(1, number))
    for some, their_offsets in zip(words.split(block), offsets.split(block), strict=True):
        table = (states @ some.T).add_(their_offsets)
        new = torch.maximum(highest, table.amax(1))
        change = highest - new
        factor = change.exp()
        mean = factor * (mean + change * total)
        total = factor * total
        table.sub_(new[:, None]).clamp_(min=-1e4)  # -inf times 0 would not be 0
        weights = table.exp()
        total += weights.sum(1)
        mean += table.mul_(weights).sum(1)
        highest = new
    own = (states * words[targets]).sum(1) + offsets[targets]
    logarithm = total.log()
    return highest - own + logarithm, logarithm - mean / total


def loss_and_entropy(states, words, offsets, targets):
    parts = [
        of_some_states(some, words, offsets, their)
        for some, their in zip(states.split(64), targets.split(64), strict=True)
    ]
    losses, entropies = zip(*parts, strict=True)
    return torch.cat(losses), torch.cat(entropies)
