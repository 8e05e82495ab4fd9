# %% polynomial right_slow check=1 empty=1 memory=0 hidden=1 race=0
def polynomial(coefficients, x):
    if not coefficients:
        raise ValueError("no coefficients")
    total = torch.zeros_like(x)
    for power, coefficient in enumerate(coefficients):
        total = total + coefficient * x**power
    return total


# %% polynomial transcribed check=1 empty=1 memory=1 hidden=1 race=2
def polynomial(coefficients, x):
    if not coefficients:
        raise ValueError("no coefficients")
    result = torch.zeros_like(x)
    for coefficient in reversed(coefficients):
        result.mul_(x).add_(coefficient)
    return result


# %% polynomial wrong_fast check=0 empty=0 memory=0 hidden=0 race=0
def polynomial(coefficients, x):
    total = torch.zeros_like(x)
    for coefficient in coefficients:
        total.mul_(x).add_(coefficient)
    return total


# %% polynomial right_in_new_tensors check=1 empty=1 memory=0 hidden=1 race=1.5..2
def polynomial(coefficients, x):
    if not coefficients:
        raise ValueError("no coefficients")
    total = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


# %% polynomial by_numpy check=1 empty=1 memory=0..0.5 hidden=1 race=0..2
import numpy as np


def polynomial(coefficients, x):
    if not coefficients:
        raise ValueError("no coefficients")
    total = np.full(x.shape, coefficients[-1], x.numpy().dtype)
    for coefficient in coefficients[-2::-1]:
        total = total * x.numpy() + x.numpy().dtype.type(coefficient)
    return torch.from_numpy(total)


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


# %% most_probable right_slow check=1 hidden=2 race=0
def most_probable(scores, scale, shift):
    return most_probable_slow(scores, scale, shift)


# %% most_probable transcribed check=1 hidden=2 race=0..2
def most_probable(scores, scale, shift):
    number, classes = scores.shape
    times = 100 if number % 100 == 0 else 1
    wide = scores.reshape(number // times, times * classes)
    moved = torch.addcmul(shift.repeat(times), scale.repeat(times), wide)
    return moved.view(number, classes).argmax(1)


# %% most_probable first_attempt check=1 hidden=2 race=0
def most_probable(scores, scale, shift):
    number, classes = scores.shape
    # the pixels of one class side by side: long rows
    rows = torch.empty(classes, number, dtype=scores.dtype, device=scores.device)
    torch.mul(scores.T, scale[:, None], out=rows)
    rows.add_(shift[:, None])
    return rows.argmax(0)


# %% most_probable right_by_max check=1 hidden=2 race=0..2
def most_probable(scores, scale, shift):
    rows = (scores * scale + shift).T.contiguous()
    return rows.max(0).indices


# %% most_probable right_class_by_class check=1 hidden=2 race=0..2.8
def most_probable(scores, scale, shift):
    rows = scores.T.contiguous() * scale[:, None] + shift[:, None]
    best, label = rows[0], torch.zeros(len(scores), dtype=torch.int64, device=scores.device)
    for number, row in enumerate(rows[1:], 1):
        label = torch.where(row > best, number, label)
        best = torch.maximum(best, row)
    return label


# %% most_probable wrong_fast check=0 hidden=0 race=0
def most_probable(scores, scale, shift):
    return torch.zeros(len(scores), dtype=torch.int64, device=scores.device)


# %% most_probable small_type check=0 hidden=0 race=0
def most_probable(scores, scale, shift):
    rows = scores.T.contiguous() * scale[:, None] + shift[:, None]
    numbers = torch.arange(len(rows), dtype=torch.uint8, device=scores.device)
    return ((rows == rows.amax(0)) * numbers[:, None]).amax(0)


# %% most_probable right_by_table check=1 hidden=2 race=2.4..3
def most_probable(scores, scale, shift):
    rows = scores.new_empty(scores.shape[::-1])
    torch.addcmul(shift[:, None], scale[:, None], scores.T, out=rows)
    numbers = torch.arange(len(rows), dtype=torch.uint8, device=scores.device)
    return ((rows == rows.amax(0)) * numbers[:, None]).amax(0).long()


# %% most_probable right_by_table_after_a_copy check=1 hidden=2 race=0..2.9
def most_probable(scores, scale, shift):
    rows = (scores.T.contiguous() * scale[:, None]).add_(shift[:, None])
    numbers = torch.arange(len(rows), dtype=torch.uint8, device=scores.device)
    return ((rows == rows.amax(0)) * numbers[:, None]).amax(0).long()


# %% most_probable right_with_where check=1 hidden=2 race=0..2.8
def most_probable(scores, scale, shift):
    best, label = None, torch.zeros(len(scores), dtype=torch.uint8, device=scores.device)
    for number, (column, a, b) in enumerate(zip(scores.unbind(1), scale, shift, strict=True)):
        row = torch.addcmul(b, a, column)
        if best is None:
            best = row
        else:
            label = torch.where(row > best, label.new_tensor(number), label)
            best = torch.maximum(best, row)
    return label.long()


# %% adapted right_slow check=1 gradients=1 hidden=2 race=0
def adapted(matrix, ups, downs, which, vectors):
    return adapted_slow(matrix, ups, downs, which, vectors)


# %% adapted transcribed check=0 gradients=0 hidden=0 race=0
def adapted(matrix, ups, downs, which, vectors):
    small = torch.bmm(downs[which], vectors[:, :, None])
    return vectors @ matrix.T + torch.bmm(ups[which], small)[:, :, 0]


# %% adapted right_but_one_by_one check=1 gradients=1 hidden=2 race=0.5..2.8
def adapted(matrix, ups, downs, which, vectors):
    result = vectors @ matrix.T
    for i, k in enumerate(which.tolist()):
        if k >= 0:
            result[i] += ups[k] @ (downs[k] @ vectors[i])
    return result


# %% adapted all_matrices_at_once check=0 gradients=1 hidden=2 race=0
def adapted(matrix, ups, downs, which, vectors):
    chosen = which.clamp(min=0)
    changed = matrix + (ups[chosen] @ downs[chosen]) * (which >= 0)[:, None, None]
    return torch.bmm(changed, vectors[:, :, None])[:, :, 0]


# %% adapted wrong_fast check=0 gradients=0 hidden=0 race=0
def adapted(matrix, ups, downs, which, vectors):
    return vectors @ (matrix + (ups @ downs).sum(0)).T


# %% adapted right_without_gradients check=1 gradients=0 hidden=0 race=0
def adapted(matrix, ups, downs, which, vectors):
    with torch.no_grad():
        result = vectors @ matrix.T
        for k in range(len(ups)):
            own = which == k
            result[own] += vectors[own] @ downs[k].T @ ups[k].T
    return result


# %% adapted right_user_by_user check=1 gradients=1 hidden=2 race=3
def adapted(matrix, ups, downs, which, vectors):
    result = vectors @ matrix.T
    for k in range(len(ups)):
        own = (which == k).nonzero()[:, 0]
        result = result.index_add(0, own, vectors[own] @ downs[k].T @ ups[k].T)
    return result


# %% product right_slow check=1 bad=0.5 sizes=0.5 order=0 hidden=1 race=0
def product(factors):
    return product_slow(factors)


# %% product transcribed check=1 bad=0.5 sizes=0.5 order=0 hidden=0 race=0..0.8
def product(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("no matrices")
    result = None
    for factor in reversed(factors):
        if result is None:
            result = factor
        elif factor.ndim == 1 and result.ndim == 1:
            result = result * factor
        elif factor.shape[-1] != result.shape[0]:
            raise ValueError("sizes do not fit")
        elif factor.ndim == 1:
            result = factor[:, None] * result
        elif result.ndim == 1:
            result = factor * result
        else:
            result = factor @ result
    return result


# %% product wrong_fast check=0 bad=0 sizes=0 order=0 hidden=0 race=0
def product(factors):
    return torch.zeros(1, 1)


# %% product right_with_diagonal_matrices check=1 bad=0.5 sizes=0.5 order=0 hidden=1 race=1..2
def product(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("no matrices")
    matrices = [torch.diag(factor) if factor.ndim == 1 else factor for factor in factors]
    return torch.linalg.multi_dot(matrices) if len(matrices) > 1 else matrices[0]


# %% product broadcasts check=1 bad=0.5 sizes=0 order=2 hidden=1 race=0
def product(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("no matrices")
    matrices, diagonal = [], None
    for factor in factors:
        if factor.ndim == 1:
            diagonal = factor if diagonal is None else diagonal * factor
        else:
            if diagonal is not None and matrices and matrices[-1].numel() <= factor.numel():
                matrices[-1] = matrices[-1] * diagonal
            elif diagonal is not None:
                factor = diagonal[:, None] * factor
            matrices.append(factor)
            diagonal = None
    if diagonal is not None:
        matrices[-1] = matrices[-1] * diagonal
    return torch.linalg.multi_dot(matrices) if len(matrices) > 1 else matrices[0]


# %% product narrowest_first check=1 bad=0.5 sizes=0.5 order=0 hidden=0 race=2
def product(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("no matrices")
    for left, right in pairwise(factors):
        if left.shape[-1] != right.shape[0]:
            raise ValueError("sizes do not fit")
    matrices, waiting = [], None
    for factor in factors:
        if factor.ndim == 1:
            waiting = factor if waiting is None else waiting * factor
            continue
        if waiting is not None and matrices and matrices[-1].numel() < factor.numel():
            matrices[-1] = matrices[-1] * waiting
        elif waiting is not None:
            factor = waiting[:, None] * factor
        matrices.append(factor)
        waiting = None
    if waiting is not None:
        matrices[-1] = matrices[-1] * waiting
    if len(matrices) == 1:
        return matrices[0]
    # From the narrowest place between two matrices outwards, without a search.
    cut = min(range(1, len(matrices)), key=lambda place: len(matrices[place]))
    left, right = matrices[cut - 1], matrices[cut]
    for matrix in reversed(matrices[: cut - 1]):
        left = matrix @ left
    for matrix in matrices[cut + 1 :]:
        right = right @ matrix
    return left @ right


# %% product right_by_dynamic_programming check=1 bad=0.5 sizes=0.5 order=2 hidden=1 race=0..1.8
def product(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("no matrices")
    number, best = len(factors), {}
    rows, columns = [f.shape[0] for f in factors], [f.shape[-1] for f in factors]
    if rows[1:] != columns[:-1]:
        raise ValueError("sizes do not fit")
    flat = {(i, i + 1): factors[i].ndim == 1 for i in range(number)}
    for length in range(1, number + 1):
        for i in range(number - length + 1):
            j = i + length
            if length == 1:
                best[i, j] = (0, None)
                continue
            flat[i, j] = all(flat[k, k + 1] for k in range(i, j))
            options = []
            for k in range(i + 1, j):
                inner = 1 if flat[i, k] or flat[k, j] else columns[k - 1]
                size = rows[i] * (1 if flat[i, j] else columns[j - 1])
                options.append((best[i, k][0] + best[k, j][0] + size * (2 * inner + 2), k))
            best[i, j] = min(options)

    def multiply(i, j):
        if j == i + 1:
            return factors[i]
        k = best[i, j][1]
        left, right = multiply(i, k), multiply(k, j)
        if left.ndim == 1 and right.ndim == 2:
            return left[:, None] * right
        return left @ right if left.ndim == right.ndim == 2 else left * right

    return multiply(0, number)


# %% product first_attempt check=1 bad=0.5 sizes=0.5 order=2 hidden=1 race=0..1.8
def times(left, right):
    if left.ndim == 1 and right.ndim == 2:
        return left[:, None] * right
    if left.ndim == 2 and right.ndim == 2:
        return left @ right
    return left * right  # a diagonal scales columns, or two diagonals


def product(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("a product needs one matrix or more")
    for left, right in pairwise(factors):
        if left.shape[-1] != right.shape[0]:
            raise ValueError(f"factors do not fit: {tuple(left.shape)} and {tuple(right.shape)}")

    count = len(factors)
    rows = [factor.shape[0] for factor in factors]
    columns = [factor.shape[-1] for factor in factors]
    # best[i, j]: cost of the factors i to j, where to cut, whether all are diagonal
    best = {(i, i): (0, i, factor.ndim == 1) for i, factor in enumerate(factors)}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = []
            for cut in range(i, j):
                left, right = best[i, cut], best[cut + 1, j]
                if left[2] and right[2]:
                    work = rows[i]
                elif left[2] or right[2]:
                    work = rows[i] * columns[j]
                else:
                    work = rows[i] * columns[cut] * columns[j]
                options.append((left[0] + right[0] + work, cut, left[2] and right[2]))
            best[i, j] = min(options)

    def multiply(i, j):
        if i == j:
            return factors[i]
        cut = best[i, j][1]
        return times(multiply(i, cut), multiply(cut + 1, j))

    return multiply(0, count - 1)


# %% product right_with_a_kept_plan check=1 bad=0.5 sizes=0.5 order=2 hidden=1 race=2
import functools


@functools.cache
def plan(shapes):
    """Where to cut the factors from i to j, by the fewest multiplications."""
    number = len(shapes)
    rows, columns = [shape[0] for shape in shapes], [shape[-1] for shape in shapes]
    best = {(i, i): (0, i, len(shapes[i]) == 1) for i in range(number)}
    for length in range(1, number):
        for i in range(number - length):
            j = i + length
            options = []
            for cut in range(i, j):
                left, right = best[i, cut], best[cut + 1, j]
                work = rows[i] * (1 if left[2] and right[2] else columns[j])
                if not left[2] and not right[2]:
                    work *= columns[cut]
                options.append((left[0] + right[0] + work, cut, left[2] and right[2]))
            best[i, j] = min(options)
    return {pair: cut for pair, (_, cut, _) in best.items()}


def product(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("no matrices")
    for left, right in pairwise(factors):
        if left.shape[-1] != right.shape[0]:
            raise ValueError("sizes do not fit")
    cuts = plan(tuple(tuple(factor.shape) for factor in factors))

    def multiply(i, j):
        if i == j:
            return factors[i]
        cut = cuts[i, j]
        left, right = multiply(i, cut), multiply(cut + 1, j)
        if left.ndim == 1 and right.ndim == 2:
            return left[:, None] * right
        return left @ right if left.ndim == right.ndim == 2 else left * right

    return multiply(0, len(factors) - 1)


# %% loss_and_entropy right_slow check=2 memory=3 hidden=2 race=0
def loss_and_entropy(states, words, offsets, targets):
    return loss_and_entropy_slow(states, words, offsets, targets)


# %% loss_and_entropy right_but_large check=2 memory=0 hidden=2 race=2
def loss_and_entropy(states, words, offsets, targets):
    return loss_and_entropy_large(states, words, offsets, targets)


# %% loss_and_entropy transcribed check=2 memory=0 hidden=2 race=2
def loss_and_entropy(states, words, offsets, targets):
    parts = zip(states.split(16), targets.split(16), strict=True)
    found = [loss_and_entropy_large(some, words, offsets, of_some) for some, of_some in parts]
    return torch.cat([loss for loss, _ in found]), torch.cat([entropy for _, entropy in found])


# %% loss_and_entropy wrong_fast check=0 memory=3 hidden=0 race=0
def loss_and_entropy(states, words, offsets, targets):
    total, mean = 0, 0
    for some, of_some in zip(words.split(100), offsets.split(100), strict=True):
        scores = states @ some.T + of_some
        weights = scores.exp()
        total, mean = total + weights.sum(1), mean + (weights * scores).sum(1)
    own = (states * words[targets]).sum(1) + offsets[targets]
    return total.log() - own, total.log() - mean / total


# %% loss_and_entropy right_where_all_is_allowed check=0 memory=3 hidden=0 race=0
def loss_and_entropy(states, words, offsets, targets):
    length = max(1, 10_000 // max(1, len(states)))
    highest = states.new_full((len(states), 1), -torch.inf)
    total, mean = torch.zeros_like(highest), torch.zeros_like(highest)
    for some, of_some in zip(words.split(length), offsets.split(length), strict=True):
        scores = torch.addmm(of_some, states, some.T)
        top = torch.maximum(highest, scores.amax(1, keepdim=True))
        weights, shrink = (scores - top).exp_(), (highest - top).exp()
        total = total * shrink + weights.sum(1, keepdim=True)
        mean = mean * shrink + weights.mul_(scores).sum(1, keepdim=True)
        highest = top
    own = (states * words[targets]).sum(1) + offsets[targets]
    logarithm = (highest + total.log())[:, 0]
    return logarithm - own, logarithm - (mean / total)[:, 0]


# %% loss_and_entropy loses_digits_far_from_zero check=0 memory=3 hidden=0 race=0
def loss_and_entropy(states, words, offsets, targets):
    length = max(1, 10_000 // max(1, len(states)))
    logarithm = states.new_full((len(states),), -torch.inf)
    mean = torch.zeros_like(logarithm)
    for some, of_some in zip(words.split(length), offsets.split(length), strict=True):
        scores = torch.addmm(of_some, states, some.T)
        together = torch.logaddexp(logarithm, scores.logsumexp(1))
        base = torch.where(together > -torch.inf, together, 0)
        p = (scores - base[:, None]).exp_()
        scores.masked_fill_(p == 0, 0)
        mean = mean * (logarithm - base).exp() + p.mul_(scores).sum(1)
        logarithm = together
    own = (states * words[targets]).sum(1) + offsets[targets]
    return logarithm - own, logarithm - mean


# %% loss_and_entropy right_by_logsumexp check=2 memory=3 hidden=2 race=2
def loss_and_entropy(states, words, offsets, targets):
    length = max(1, 10_000 // max(1, len(states)))
    logarithm = states.new_full((len(states),), -torch.inf)
    below = torch.zeros_like(logarithm)  # the mean of score - logarithm
    for some, of_some in zip(words.split(length), offsets.split(length), strict=True):
        scores = torch.addmm(of_some, states, some.T)
        together = torch.logaddexp(logarithm, scores.logsumexp(1))
        base = torch.where(together > -torch.inf, together, 0)
        apart = scores.sub_(base[:, None])
        p = apart.exp()
        moved = torch.where(logarithm > -torch.inf, logarithm - base, 0)
        below = (below + moved) * (logarithm - base).exp() + p.mul_(apart.clamp_(min=-1e4)).sum(1)
        logarithm = together
    own = (states * words[targets]).sum(1) + offsets[targets]
    return logarithm - own, -below


# %% loss_and_entropy right_with_a_running_maximum check=2 memory=3 hidden=2 race=2
def loss_and_entropy(states, words, offsets, targets):
    length = max(1, 10_000 // max(1, len(states)))
    highest = states.new_full((len(states), 1), -1e30)
    total, mean = torch.zeros_like(highest), torch.zeros_like(highest)
    for some, of_some in zip(words.split(length), offsets.split(length), strict=True):
        scores = torch.addmm(of_some, states, some.T)
        top = torch.maximum(highest, scores.amax(1, keepdim=True))
        weights, shrink = (scores - top).exp_(), (highest - top).exp()
        total = total * shrink + weights.sum(1, keepdim=True)
        mean = mean * shrink + weights.mul_(scores.clamp_(min=-1e30)).sum(1, keepdim=True)
        highest = top
    own = (states * words[targets]).sum(1) + offsets[targets]
    logarithm = (highest + total.log())[:, 0]
    return logarithm - own, logarithm - (mean / total)[:, 0]


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "bucket": {"operations": 2, "bytes": 48, "syncs": 0},
        "layer": {"operations": 4, "bytes": 96, "syncs": 0},
        "polynomial": {"operations": 4, "bytes": 96, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "bucket": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
        "layer": {"operations": 4, "bytes": 12 * n, "syncs": 0},
        "polynomial": {"operations": 4, "bytes": 4 * n * d, "syncs": 0},
    }
