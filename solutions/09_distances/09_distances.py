# %% [markdown]
# # Exercises 09 · Distances
#
# Five functions. Each is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden
# tests run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/09_distances.ipynb). 30 points, about 60 minutes.

# %% id="setup" role="given"
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from autograder import check, race

data = Path("../../data")

# %% [markdown]
# ## 1. Rows of length 1
#
# *Easy, 8 minutes.* Write `unit_rows(x)`, which divides each row by its length and leaves rows of zeros
# alone.
#
# - `x`: tensor of shape `(N, D)`, `float16`, `float32` or `float64`, on any device.
# - returns: a new tensor of the same shape and type on the same device. A row of zeros stays a row of zeros.
#   Every other row gets the length 1, also a very short one: in `float32` its length may be as small as
#   1e-15.
# - Gradients: autograd must find those of the given version. For a row of zeros, that is the gradient of the
#   result, unchanged: it is neither NaN nor huge.


# %% id="unit_rows_given" role="given"
def unit_rows_slow(x):
    rows = []
    for row in x:
        length = row.norm()
        rows.append(row / length if length > 0 else row)
    return torch.stack(rows) if rows else torch.empty_like(x)


def some_rows(generator, device):
    return torch.randn(400, 64, generator=generator).to(device)


def some_zero_rows(generator, device):
    x = torch.randn(20, 8, generator=generator)
    x[torch.randperm(20, generator=generator)[:5]] = 0
    return x.to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>All lengths at once: the norm along one dimension, with
# <code>keepdim=True</code>.</details>
# <details><summary>Hint 2</summary><code>F.normalize</code> with its default <code>eps</code> is wrong here,
# in three ways that the chapter shows. What could you divide a row of zeros by, so that it stays as it
# is?</details>
# <details><summary>Hint 3</summary><code>torch.where</code> chooses between two values, element by
# element.</details>


# %% id="unit_rows" role="answer"
def unit_rows(x):
    ### BEGIN SOLUTION
    length = x.norm(dim=1, keepdim=True)
    return x / torch.where(length > 0, length, 1)
    ### END SOLUTION


# %% id="unit_rows_check" role="test"
check(unit_rows, like=unit_rows_slow, on=[some_rows, some_zero_rows], points=1)

# %% id="unit_rows_gradients" role="test"
check(unit_rows, like=unit_rows_slow, on=some_zero_rows, gradients=True, points=1)


# %% id="unit_rows_hidden" role="test"
# Hidden test: very short rows, float16 and float64, no rows. 2 points, when graded.
### BEGIN HIDDEN TESTS
def short_rows(generator, device):
    x = torch.randn(7, 5, generator=generator)
    x[::2] *= 1e-14
    return x.to(device)


def half_rows(generator, device):
    x = torch.randn(6, 9, generator=generator)
    x[2] = 0
    return x.half().to(device)


def double_rows(generator, device):
    x = torch.randn(6, 1, generator=generator, dtype=torch.float64)
    x[3] = 0
    return x.to(device)


def only_zeros(generator, device):
    return torch.zeros(3, 4, device=device)


def no_rows(generator, device):
    return torch.zeros(0, 4, device=device)


check(
    unit_rows,
    like=unit_rows_slow,
    on=[short_rows, half_rows, double_rows, only_zeros, no_rows],
    points=2,
)
### END HIDDEN TESTS

# %% id="unit_rows_race" role="test"
race(unit_rows, against=unit_rows_slow, on=some_rows, at_least={"cpu": 10, "cuda": 10}, points=1)

# %% [markdown]
# ## 2. All cosines
#
# *Easy, 8 minutes.* Write `cosine_matrix(a, b)`.
#
# - `a`: tensor of shape `(N, D)`, `b`: tensor of shape `(M, D)`; both `float32` or both `float64`, on the
#   same device.
# - returns: tensor of shape `(N, M)` of that type on that device: the cosine of the angle between row *i* of
#   `a` and row *j* of `b`. Where one of the two is a row of zeros, it is 0.
# - All rows are longer than 1e-6, except rows of zeros.


# %% id="cosine_matrix_given" role="given"
def cosine_matrix_slow(a, b):
    rows = [F.cosine_similarity(row[None], b) for row in a]
    return torch.stack(rows) if rows else a.new_empty(0, len(b))


def two_sets(generator, device):
    a, b = (torch.randn(100, 64, generator=generator) for _ in range(2))
    return a.to(device), b.to(device)


def with_zero_rows(generator, device):
    a, b = torch.randn(12, 6, generator=generator), torch.randn(9, 6, generator=generator)
    a[3] = 0
    b[-1] = 0
    return a.to(device), b.to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>A row has one length, however many partners it has. Compute it
# once.</details>
# <details><summary>Hint 2</summary>When all rows have length 1, what is left is an operation that every
# library does at full speed.</details>


# %% id="cosine_matrix" role="answer"
def cosine_matrix(a, b):
    ### BEGIN SOLUTION
    return F.normalize(a) @ F.normalize(b).T
    ### END SOLUTION


# %% id="cosine_matrix_check" role="test"
check(cosine_matrix, like=cosine_matrix_slow, on=[two_sets, with_zero_rows], points=1)


# %% id="cosine_matrix_hidden" role="test"
# Hidden test: other shapes, long vectors, a single column, no rows, zeros in float64. 2 points, when graded.
### BEGIN HIDDEN TESTS
def long_vectors(generator, device):
    a, b = torch.randn(5, 40, generator=generator), torch.randn(30, 40, generator=generator)
    return (a * 1000).to(device), (b * 0.001).to(device)


def one_column(generator, device):
    return (
        torch.randn(4, 1, generator=generator).to(device),
        torch.randn(3, 1, generator=generator).to(device),
    )


def nothing_to_compare(generator, device):
    return torch.zeros(0, 5, device=device), torch.randn(3, 5, generator=generator).to(device)


def in_doubles(generator, device):
    a, b = (torch.randn(7, 11, generator=generator, dtype=torch.float64) for _ in range(2))
    a[2] = 0
    return a.to(device), b.to(device)


check(
    cosine_matrix,
    like=cosine_matrix_slow,
    on=[long_vectors, one_column, nothing_to_compare, in_doubles],
    points=2,
)
### END HIDDEN TESTS

# %% id="cosine_matrix_race" role="test"
race(
    cosine_matrix,
    against=cosine_matrix_slow,
    on=two_sets,
    at_least={"cpu": 10, "cuda": 10},
    points=2,
)

# %% [markdown]
# ## 3. All distances, and the digits kept
#
# *Medium, 15 minutes.* Write `pairwise(a, b)`.
#
# - `a`: tensor of shape `(N, D)`, `b`: tensor of shape `(M, D)`; `float32`, on the same device. *N* may be 0;
#   *M* is at least 1.
# - returns: `float32` tensor of shape `(N, M)` on that device: the Euclidean distances.
# - The points may lie far from 0: around 1000, say, with a spread of 1. Errors of 0.5 % of the typical
#   distance are allowed, no more.
# - Different numbers of columns must raise `ValueError` or `RuntimeError`.


# %% id="pairwise_given" role="given"
def pairwise_slow(a, b):
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"a has {a.shape[1]} columns, b has {b.shape[1]}")
    rows = [(b - row).square().sum(1).sqrt() for row in a]
    return torch.stack(rows) if rows else a.new_empty(0, len(b))


def around_zero(generator, device):
    a, b = (torch.randn(256, 32, generator=generator) for _ in range(2))
    return a.to(device), b.to(device)


def far_from_zero(generator, device):
    middle = 1000 * torch.randn(16, generator=generator)
    a, b = (torch.randn(60, 16, generator=generator) + middle for _ in range(2))
    return a.to(device), b.to(device)


def different_columns(generator, device):
    return torch.ones(4, 3, device=device), torch.ones(5, 1, device=device)


def one_column_in_a(generator, device):
    return torch.ones(4, 1, device=device), torch.ones(5, 3, device=device)


# %% [markdown]
# <details><summary>Hint 1</summary>For all pairs the fast way is a matrix product. <code>torch.cdist</code>
# takes it for more than 25 points. What does it lose when the points lie far from 0?</details>
# <details><summary>Hint 2</summary>Distances stay the same when both sets move by the same vector. Which
# vector? Subtraction broadcasts. Make sure that it does not hide different numbers of columns.</details>
# <details><summary>Hint 3</summary>If your own version gives NaN: what did rounding make of a squared
# distance that should be 0?</details>


# %% id="pairwise" role="answer"
def pairwise(a, b):
    ### BEGIN SOLUTION
    if a.shape[1] != b.shape[1]:
        raise ValueError("a and b must have equally many columns")
    middle = b.mean(0)
    return torch.cdist(a - middle, b - middle)
    ### END SOLUTION


# %% id="pairwise_check" role="test"
check(pairwise, like=pairwise_slow, on=around_zero, tolerance=5e-3, points=1)

# %% id="pairwise_offset" role="test"
check(pairwise, like=pairwise_slow, on=far_from_zero, tolerance=5e-3, points=2)

# %% id="pairwise_columns" role="test"
check(
    pairwise,
    like=pairwise_slow,
    on=[different_columns, one_column_in_a],
    raises=(ValueError, RuntimeError),
    points=1,
)


# %% id="pairwise_hidden" role="test"
# Hidden test: other shapes, no points in a, one column, farther from 0, equal points. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_and_many(generator, device):
    return (
        torch.randn(1, 7, generator=generator).to(device),
        torch.randn(83, 7, generator=generator).to(device),
    )


def one_number(generator, device):
    return (
        torch.rand(40, 1, generator=generator).to(device),
        torch.rand(50, 1, generator=generator).to(device),
    )


def none_in_a(generator, device):
    return torch.zeros(0, 4, device=device), torch.randn(6, 4, generator=generator).to(device)


def farther(generator, device):
    a, b = (torch.randn(45, 2, generator=generator) - 3000 for _ in range(2))
    return a.to(device), b.to(device)


def equal_points(generator, device):
    a = torch.randn(60, 16, generator=generator)
    return a.to(device), a.clone().to(device)


check(
    pairwise,
    like=pairwise_slow,
    on=[one_and_many, one_number, none_in_a, farther, equal_points],
    tolerance=5e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="pairwise_race" role="test"
race(
    pairwise,
    against=pairwise_slow,
    on=around_zero,
    at_least={"cpu": 6, "cuda": 8},
    tolerance=5e-3,
    points=2,
)

# %% [markdown]
# ## 4. Strange digits
#
# *Medium, 12 minutes.* A digit is strange when even its nearest neighbours are far away. Write
# `strangeness(queries, points, k)`.
#
# - `queries`: `float32` tensor of shape `(N, D)`; `points`: `float32` tensor of shape `(M, D)`, on the same
#   device. `k`: a number from 1 to *M*.
# - returns: `float32` tensor of shape `(N,)` on that device: for each query the mean of its Euclidean
#   distances to the `k` nearest points. The inputs here are small whole numbers, so there is no offset to
#   fear.
# - Memory: one call may have at most 1.5 MB of new tensors alive at once (`peak_bytes` of `costs`). The
#   matrix of all distances can be larger than that. *M* is below 2,000.


# %% id="strangeness_given" role="given"
with np.load(data / "digits.npz") as file:
    digits = torch.from_numpy(file["images"]).flatten(1).float()


def strangeness_slow(queries, points, k):
    scores = []
    for query in queries:
        distances = (points - query).square().sum(1).sqrt()
        scores.append(distances.topk(k, largest=False).values.mean())
    return torch.stack(scores) if scores else queries.new_empty(0)


def digits_and_digits(generator, device):
    order = torch.randperm(len(digits), generator=generator)
    return digits[order[:120]].to(device), digits[order[120:620]].to(device), 5


def many_digits(generator, device):
    order = torch.randperm(len(digits), generator=generator)
    return digits[order[:700]].to(device), digits[order[700:]].to(device), 3


# %% [markdown]
# <details><summary>Hint 1</summary>One query at a time needs little memory and many operations; all at once
# the reverse. There is something between.</details>
# <details><summary>Hint 2</summary><code>queries.split(…)</code> gives pieces. How many rows of how many
# bytes may a piece have, so that its distances stay well below 1.5 MB?</details>
# <details><summary>Hint 3</summary><code>topk</code> returns values and indices. How many bytes do they have
# beside the distances, when <code>k</code> is large?</details>


# %% id="strangeness" role="answer"
def strangeness(queries, points, k):
    ### BEGIN SOLUTION
    parts = [torch.cdist(some, points).topk(k, largest=False).values.mean(1) for some in queries.split(32)]
    return torch.cat(parts) if parts else queries.new_empty(0)
    ### END SOLUTION


# %% id="strangeness_check" role="test"
check(strangeness, like=strangeness_slow, on=digits_and_digits, points=1)

# %% id="strangeness_memory" role="test"
check(strangeness, like=strangeness_slow, on=many_digits, at_most={"peak_bytes": 1_500_000}, points=1)


# %% id="strangeness_hidden" role="test"
# Hidden test: one query, all points as neighbours (even 1,700), no queries, memory. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_query(generator, device):
    order = torch.randperm(len(digits), generator=generator)
    return digits[order[:1]].to(device), digits[order[1:]].to(device), 7


def all_are_neighbours(generator, device):
    order = torch.randperm(len(digits), generator=generator)
    return digits[order[:65]].to(device), digits[order[65:75]].to(device), 10


def all_of_many_are_neighbours(generator, device):
    order = torch.randperm(len(digits), generator=generator)
    return digits[order[:150]].to(device), digits[order[-1700:]].to(device), 1700


def no_queries(generator, device):
    return digits[:0].to(device), digits[:50].to(device), 2


def more_queries(generator, device):
    order = torch.randperm(len(digits), generator=generator)
    return digits[order[:999]].to(device), digits[order[1000:1500]].to(device), 1


check(
    strangeness,
    like=strangeness_slow,
    on=[one_query, all_are_neighbours, all_of_many_are_neighbours, no_queries, more_queries],
    at_most={"peak_bytes": 1_500_000},
    points=2,
)
### END HIDDEN TESTS

# %% id="strangeness_race" role="test"
race(
    strangeness,
    against=strangeness_slow,
    on=digits_and_digits,
    at_least={"cpu": 2.5, "cuda": 5},
    points=2,
)

# %% [markdown]
# ## 5. One step of k-means
#
# *Hard, 17 minutes.* k-means looks for *K* centres. One step gives each point to its nearest centre, and
# moves each centre to the mean of its points. Write `kmeans_step(points, centres)`.
#
# - `points`: `float32` tensor of shape `(N, D)`; `centres`: `float32` tensor of shape `(K, D)`, on the same
#   device. *N* and *K* are at least 1.
# - returns: the new centres, a `float32` tensor of shape `(K, D)` on that device. A centre that got no point
#   stays where it was.
# - The tests have no ties, and all data lie around 0. The inputs must not be changed.


# %% id="kmeans_step_given" role="given"
def kmeans_step_slow(points, centres):
    sums, counts = torch.zeros_like(centres), [0] * len(centres)
    for point in points:
        nearest = int((centres - point).square().sum(1).argmin())
        sums[nearest] += point
        counts[nearest] += 1
    rows = [sums[i] / counts[i] if counts[i] else centres[i] for i in range(len(centres))]
    return torch.stack(rows)


def clouds(generator, device, n, k, columns, lost=0):
    """n points around k centres far apart; a guess near each centre, and ``lost`` guesses near none."""
    true = 4 * torch.randn(k, columns, generator=generator)
    points = true[torch.randint(k, (n,), generator=generator)] + torch.randn(n, columns, generator=generator)
    guesses = true + 0.1 * torch.randn(k, columns, generator=generator)
    guesses = torch.cat([guesses, 100 + torch.randn(lost, columns, generator=generator)])
    return points.to(device), guesses[torch.randperm(len(guesses), generator=generator)].to(device)


def eight_clouds(generator, device):
    return clouds(generator, device, 300, 8, 32)


def two_lost_centres(generator, device):
    return clouds(generator, device, 100, 5, 24, lost=2)


# %% [markdown]
# <details><summary>Hint 1</summary>Two parts: the nearest centre of all points, then a sum for each centre.
# Neither needs a loop.</details>
# <details><summary>Hint 2</summary>For the sums: <code>index_add_</code> adds rows at given places. Or write
# who belongs to whom as a matrix of zeros and ones; then the sums are a product, too.</details>
# <details><summary>Hint 3</summary>Empty centres: 0 / 0 is NaN. Divide by something else there, and put the
# old centre in afterwards.</details>


# %% id="kmeans_step" role="answer"
def kmeans_step(points, centres):
    ### BEGIN SOLUTION
    nearest = torch.cdist(points, centres).argmin(1)
    members = F.one_hot(nearest, len(centres)).to(points.dtype)
    counts = members.sum(0)[:, None]
    return torch.where(counts > 0, members.T @ points / counts.clamp_min(1), centres)
    ### END SOLUTION


# %% id="kmeans_step_check" role="test"
check(kmeans_step, like=kmeans_step_slow, on=eight_clouds, points=1)

# %% id="kmeans_step_empty" role="test"
check(kmeans_step, like=kmeans_step_slow, on=two_lost_centres, points=1)


# %% id="kmeans_step_hidden" role="test"
# Hidden test: one centre, more centres than points, other sizes. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_centre(generator, device):
    return clouds(generator, device, 40, 1, 5)


def one_point(generator, device):
    return clouds(generator, device, 1, 3, 16, lost=1)


def more_clouds(generator, device):
    return clouds(generator, device, 211, 12, 40, lost=1)


check(kmeans_step, like=kmeans_step_slow, on=[one_centre, one_point, more_clouds], points=2)
### END HIDDEN TESTS

# %% id="kmeans_step_race" role="test"
race(kmeans_step, against=kmeans_step_slow, on=eight_clouds, at_least={"cpu": 7, "cuda": 10}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
