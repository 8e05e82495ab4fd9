# %% [markdown]
# # Exercises 13 · The CPU
#
# Five functions. Each is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on one thread of this machine, now. Hidden tests run when your notebook is graded: other
# shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# Do it without `torch.compile`: it starts processes, and a race allows none.
# The chapter is [here](../../course/13_cpu.ipynb). 30 points, about 60 minutes.

# %% id="setup" role="given"
import functools
import itertools

import torch

from autograder import check, race

# %% [markdown]
# ## 1. A polynomial
#
# *Easy, 10 minutes.* Write `polynomial(coefficients, x)`.
#
# - `coefficients`: list of one or more numbers *c₀, c₁, c₂, …*
# - `x`: tensor of any shape, `float32` or `float64`, on any device.
# - returns: a new tensor like `x` with the values *c₀ + c₁x + c₂x² + …*
# - An empty list must raise `ValueError`. `x` must not be changed.
# - For full points, allocate no more than the result (test *memory*).


# %% id="polynomial_given" role="given"
def polynomial_slow(coefficients, x):
    if not coefficients:
        raise ValueError("a polynomial needs one coefficient or more")
    total = torch.zeros_like(x)
    for power, coefficient in enumerate(coefficients):
        total = total + coefficient * x**power
    return total


def degree_eleven(generator, device):
    coefficients = (torch.rand(12, generator=generator) - 0.5).tolist()
    return coefficients, torch.rand(100_000, generator=generator).to(device) * 2 - 1


def no_coefficients(generator, device):
    return [], torch.rand(5, generator=generator).to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>A power is expensive, and nearly the same power was computed in the round
# before. Can a bracket avoid all powers? Write <em>a + bx + cx²</em> with two products.</details>
# <details><summary>Hint 2</summary>That is Horner's rule. It starts with the <em>last</em>
# coefficient.</details>
# <details><summary>Hint 3</summary>Section 6 of the chapter has methods that overwrite a tensor. Overwrite
# one of your own, not <code>x</code>.</details>


# %% id="polynomial" role="answer"
def polynomial(coefficients, x):
    ### BEGIN SOLUTION
    if not coefficients:
        raise ValueError("a polynomial needs one coefficient or more")
    total = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total.mul_(x).add_(coefficient)
    return total
    ### END SOLUTION


# %% id="polynomial_check" role="test"
check(polynomial, like=polynomial_slow, on=degree_eleven, points=1)

# %% id="polynomial_empty" role="test"
check(polynomial, like=polynomial_slow, on=no_coefficients, raises=ValueError, points=1)

# %% id="polynomial_memory" role="test"
check(polynomial, like=polynomial_slow, on=degree_eleven, at_most={"bytes": 400_000}, points=1)


# %% id="polynomial_hidden" role="test"
# Hidden test: a single coefficient, other shapes, float64, no numbers at all. 2 points, when graded.
### BEGIN HIDDEN TESTS
def constant(generator, device):
    return [2.5], torch.rand(4, 3, generator=generator).to(device)


def line_in_double(generator, device):
    return [1, -2], torch.randn(2, 3, 5, generator=generator, dtype=torch.float64).to(device)


def with_a_zero(generator, device):
    return [0.5, 0.0, -1.0, 0.25], torch.randn(33, generator=generator).to(device)


def no_numbers(generator, device):
    return [1.0, 2.0], torch.zeros(0, 7, device=device)


check(
    polynomial,
    like=polynomial_slow,
    on=[constant, line_in_double, with_a_zero, no_numbers],
    points=2,
)
### END HIDDEN TESTS

# %% id="polynomial_race" role="test"
race(
    polynomial,
    against=polynomial_slow,
    on=degree_eleven,
    at_least={"cpu": 2.5},
    points=2,
)

# %% [markdown]
# ## 2. The range of each column
#
# *Easy, 8 minutes.* Before scaling the features of a data set you need their ranges. Write
# `column_ranges(table)`.
#
# - `table`: `float32` tensor of shape `(rows, columns)`, on any device, with one row or more.
# - returns: tensor of shape `(columns,)`: the largest value of each column minus the smallest.


# %% id="column_ranges_given" role="given"
def column_ranges_slow(table):
    ranges = table.new_zeros(table.shape[1])
    for i in range(table.shape[1]):
        ranges[i] = table[:, i].max() - table[:, i].min()
    return ranges


def features(generator, device):
    return torch.randn(500, 500, generator=generator).to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>Memory goes along the rows, the loop goes along the columns. And it calls
# torch thousands of times.</details>
# <details><summary>Hint 2</summary>Reductions take a <code>dim</code>. Which one disappears here?</details>
# <details><summary>Hint 3</summary>There are several functions for extremes, and some also return positions,
# which you do not need. Time them. One function that does two things may be slower than two that do one
# each.</details>


# %% id="column_ranges" role="answer"
def column_ranges(table):
    ### BEGIN SOLUTION
    return table.amax(0) - table.amin(0)
    ### END SOLUTION


# %% id="column_ranges_check" role="test"
check(column_ranges, like=column_ranges_slow, on=features, points=1)


# %% id="column_ranges_hidden" role="test"
# Hidden test: one row, one column, no columns, values far from zero. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_row(generator, device):
    return torch.randn(1, 9, generator=generator).to(device)


def one_column(generator, device):
    return torch.randn(31, 1, generator=generator).to(device)


def no_columns(generator, device):
    return torch.zeros(4, 0, device=device)


def all_negative(generator, device):
    return torch.rand(12, 7, generator=generator).to(device) - 10


check(
    column_ranges,
    like=column_ranges_slow,
    on=[one_row, one_column, no_columns, all_negative],
    points=2,
)
### END HIDDEN TESTS

# %% id="column_ranges_race" role="test"
race(
    column_ranges,
    against=column_ranges_slow,
    on=features,
    at_least={"cpu": 8, "cuda": 20},
    points=2,
)

# %% [markdown]
# ## 3. Sums in a window
#
# *Medium, 12 minutes.* A moving sum: at each position, the sum of `width` neighbours. Write `window_sums(x,
# width)`.
#
# - `x`: `float32` tensor of shape `(N,)`, on any device. `width`: whole number from 1 to *N*.
# - returns: `float32` tensor of shape `(N - width + 1,)`, where `result[i] = x[i] + … + x[i + width - 1]`.
# - A `width` outside 1 to *N* must raise `ValueError`.
# - Mind the rounding: `x` may be long, and its values may be far from zero.


# %% id="window_sums_given" role="given"
def window_sums_slow(x, width):
    if not 1 <= width <= len(x):
        raise ValueError(f"width must be from 1 to {len(x)}, not {width}")
    return torch.stack([x[i : i + width].sum() for i in range(len(x) - width + 1)])


def signal(generator, device):
    width = torch.randint(1900, 2100, (), generator=generator).item()
    return torch.randn(8000, generator=generator).to(device), width


def too_wide(generator, device):
    return torch.randn(5, generator=generator).to(device), 6


def too_narrow(generator, device):
    return torch.randn(5, generator=generator).to(device), 0


# %% [markdown]
# <details><summary>Hint 1</summary>Two neighbouring windows share nearly all numbers. How can you get the sum
# of <em>any</em> stretch from sums that all start at the beginning?</details>
# <details><summary>Hint 2</summary>Running totals are a <em>prefix scan</em>; torch has one,
# <code>cumsum</code>. A window is the difference of two totals. The first window starts from nothing: where
# does its zero come from?</details>
# <details><summary>Hint 3</summary>Totals grow, and the difference of two large <code>float32</code> numbers
# has few good digits. <code>cumsum</code> takes a <code>dtype</code>.</details>


# %% id="window_sums" role="answer"
def window_sums(x, width):
    ### BEGIN SOLUTION
    if not 1 <= width <= len(x):
        raise ValueError(f"width must be from 1 to {len(x)}, not {width}")
    totals = x.new_zeros(len(x) + 1, dtype=torch.float64)
    torch.cumsum(x, 0, dtype=torch.float64, out=totals[1:])
    return (totals[width:] - totals[:-width]).to(x.dtype)
    ### END SOLUTION


# %% id="window_sums_check" role="test"
check(window_sums, like=window_sums_slow, on=signal, points=1)

# %% id="window_sums_width" role="test"
check(window_sums, like=window_sums_slow, on=[too_wide, too_narrow], raises=ValueError, points=1)


# %% id="window_sums_hidden" role="test"
# Hidden test: the narrowest and the widest window, a single number, a long signal. 2 points, when graded.
### BEGIN HIDDEN TESTS
def narrowest(generator, device):
    return torch.randn(20, generator=generator).to(device), 1


def widest(generator, device):
    return torch.randn(20, generator=generator).to(device), 20


def single_number(generator, device):
    return torch.randn(1, generator=generator).to(device), 1


def long_and_far_from_zero(generator, device):
    return torch.randn(20_000, generator=generator).to(device) + 1000, 2


check(
    window_sums,
    like=window_sums_slow,
    on=[narrowest, widest, single_number, long_and_far_from_zero],
    points=2,
)
### END HIDDEN TESTS

# %% id="window_sums_race" role="test"
race(window_sums, against=window_sums_slow, on=signal, at_least={"cpu": 100, "cuda": 50}, points=2)

# %% [markdown]
# ## 4. A chain of matrices
#
# *Medium, 12 minutes.* The brackets in *ABC* do not change the result, but they change the work. Write
# `product(matrices)`.
#
# - `matrices`: list of one or more tensors of two dimensions, `float32`, all on the same device. The columns
#   of each are as many as the rows of the next.
# - returns: their matrix product, from the first to the last.
# - For a list with one matrix, return this matrix; it need not be a copy.
# - An empty list must raise `ValueError`.
# - The test *order* has a chain where neither "from the left" nor "from the right" is best. It allows few
#   bytes.


# %% id="product_given" role="given"
def product_slow(matrices):
    if not matrices:
        raise ValueError("a product needs one matrix or more")
    return functools.reduce(torch.matmul, matrices)


def narrow_at_the_end(generator, device):
    matrices = [torch.randn(320, 320, generator=generator) / 18 for _ in range(5)]
    return ([matrix.to(device) for matrix in [*matrices, torch.randn(320, 2, generator=generator)]],)


def narrow_in_the_middle(generator, device):
    sizes = (40, 300, 2, 300, 40)
    matrices = [torch.randn(a, b, generator=generator) for a, b in itertools.pairwise(sizes)]
    return ([matrix.to(device) for matrix in matrices],)


def no_matrices(generator, device):
    return ([],)


# %% [markdown]
# <details><summary>Hint 1</summary>A product of (a × b) and (b × c) takes about 2abc operations. Compute the
# cost of both brackets for the sizes 320 × 320, 320 × 320, 320 × 2.</details>
# <details><summary>Hint 2</summary>The best brackets can be found from the sizes alone. This is a textbook
# example of dynamic programming, and somebody has written it: look into <code>torch.linalg</code>.</details>
# <details><summary>Hint 3</summary>That function wants two matrices or more.</details>


# %% id="product" role="answer"
def product(matrices):
    ### BEGIN SOLUTION
    if not matrices:
        raise ValueError("a product needs one matrix or more")
    return torch.linalg.multi_dot(matrices) if len(matrices) > 1 else matrices[0]
    ### END SOLUTION


# %% id="product_check" role="test"
check(product, like=product_slow, on=narrow_at_the_end, points=1)

# %% id="product_empty" role="test"
check(product, like=product_slow, on=no_matrices, raises=ValueError, points=1)

# %% id="product_order" role="test"
check(product, like=product_slow, on=narrow_in_the_middle, at_most={"bytes": 20_000}, points=1)


# %% id="product_hidden" role="test"
# Hidden test: one matrix, two, a chain of many sizes. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_matrix(generator, device):
    return ([torch.randn(3, 4, generator=generator).to(device)],)


def two_matrices(generator, device):
    return ([torch.randn(n, 5 - n, generator=generator).to(device) for n in (1, 4)],)


def many_sizes(generator, device):
    sizes = torch.randint(1, 12, (8,), generator=generator).tolist()
    return ([torch.randn(a, b, generator=generator).to(device) for a, b in itertools.pairwise(sizes)],)


check(product, like=product_slow, on=[one_matrix, two_matrices, many_sizes], points=2)
### END HIDDEN TESTS

# %% id="product_race" role="test"
race(product, against=product_slow, on=narrow_at_the_end, at_least={"cpu": 2.5}, points=1)

# %% [markdown]
# ## 5. Sums of a kernel, in blocks
#
# *Hard, 18 minutes.* How crowded is it around each point? Write `crowding(points, others)`.
#
# - `points`: `float32` tensor of shape `(N,)`; `others`: of shape `(M,)`, on the same device. Each has one
#   value or more.
# - returns: `float32` tensor of shape `(N,)`, where
#   `result[i] = exp(-|points[i] - others[0]|) + … + exp(-|points[i] - others[M - 1]|)`.
#
# The given version takes one point at a time: little memory, many small operations. All points at once need a
# table of *N × M* numbers: few operations, much memory. The test *memory* allows 500 kB at once, for a table
# that has 2 MB. Go between.


# %% id="crowding_given" role="given"
def crowding_slow(points, others):
    return torch.stack([torch.exp(-(point - others).abs()).sum() for point in points])


def crowd(generator, device):
    return torch.randn(1000, generator=generator).to(device), torch.randn(500, generator=generator).to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>Write it for all points first, by broadcasting: a column of points against
# a row of others. Then do that for some points at a time.</details>
# <details><summary>Hint 2</summary><code>points.split(n)</code> gives pieces; the last may be shorter. How
# many rows of 500 numbers are 64 kB, or 128 kB?</details>
# <details><summary>Hint 3</summary>Within a block you own the table: overwrite it (section 6), so that it
# stays in the cache.</details>


# %% id="crowding" role="answer"
def crowding(points, others):
    ### BEGIN SOLUTION
    rows = max(1, 32_000 // len(others))
    sums = [(part[:, None] - others).abs_().neg_().exp_().sum(1) for part in points.split(rows)]
    return torch.cat(sums)
    ### END SOLUTION


# %% id="crowding_check" role="test"
check(crowding, like=crowding_slow, on=crowd, points=1)

# %% id="crowding_memory" role="test"
check(crowding, like=crowding_slow, on=crowd, at_most={"peak_bytes": 500_000}, points=1)


# %% id="crowding_hidden" role="test"
# Hidden test: odd numbers, a single point, a single other, many others. 2 points, when graded.
### BEGIN HIDDEN TESTS
def odd_numbers(generator, device):
    return torch.randn(1013, generator=generator).to(device), torch.randn(97, generator=generator).to(device)


def single_point(generator, device):
    return torch.randn(1, generator=generator).to(device), torch.randn(13, generator=generator).to(device)


def single_other(generator, device):
    return torch.randn(70, generator=generator).to(device), torch.randn(1, generator=generator).to(device)


def many_others(generator, device):
    return torch.randn(3, generator=generator).to(device), torch.randn(70_001, generator=generator).to(device)


check(
    crowding,
    like=crowding_slow,
    on=[odd_numbers, single_point, single_other, many_others],
    points=2,
)
### END HIDDEN TESTS

# %% id="crowding_race" role="test"
race(crowding, against=crowding_slow, on=crowd, at_least={"cpu": 5, "cuda": 5}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
