# %% [markdown]
# # Exercises 09 · Distances
#
# You make three functions fast, build a search for nearest neighbours that fits into memory, and find out why a
# fast k-means goes wrong on some data.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. Hidden tests run when your notebook is graded: other shapes, edge
# cases, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/09_distances.ipynb). 38 points, about 95 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. Rows of length 1
#
# *Easy, 8 minutes.* Write `unit_rows(x)`, which divides each row by its length and leaves rows of zeros
# alone.
#
# - `x`: tensor of shape `(N, D)`, `float16`, `float32` or `float64`, on any device. *N* may be 0.
# - returns: a new tensor of the same shape and type on the same device. A row of zeros stays a row of zeros.
#   Every other row gets the length 1, also a very short one: in `float32` its length may be as small as
#   1e-15. (In `float16` the tests have no other row shorter than 0.1.)
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


def short_rows(generator, device):
    x = torch.randn(7, 5, generator=generator)
    x[::2] *= 1e-14
    return x.to(device)


def half_rows(generator, device):
    x = torch.randn(6, 9, generator=generator)
    x[2] = 0
    return x.half().to(device)


def double_rows(generator, device):
    return torch.randn(5, 3, generator=generator, dtype=torch.float64).to(device)


def no_rows(generator, device):
    return torch.zeros(0, 4, device=device)


# %% [markdown]
# <details><summary>Hint 1</summary>All lengths at once: the norm along one dimension, with
# <code>keepdim=True</code>.</details>
# <details><summary>Hint 2</summary><code>F.normalize</code> with its default <code>eps</code> is wrong here: the
# chapter shows why. What could you divide a row of zeros by, so that it stays as it is?</details>
# <details><summary>Hint 3</summary><code>torch.where</code> chooses between two values, element by
# element.</details>


# %% id="unit_rows" role="answer"
def unit_rows(x):
    ### BEGIN SOLUTION
    length = x.norm(dim=1, keepdim=True)
    return x / torch.where(length > 0, length, 1)
    ### END SOLUTION


# %% id="unit_rows_check" role="test"
check(
    unit_rows,
    like=unit_rows_slow,
    on=[some_rows, some_zero_rows, short_rows, half_rows, double_rows, no_rows],
    points=1,
)

# %% id="unit_rows_gradients" role="test"
check(unit_rows, like=unit_rows_slow, on=some_zero_rows, gradients=True, points=1)


# %% id="unit_rows_hidden" role="test"
# Hidden test: rows of other lengths, one column, only zeros, no rows. 2 points, when graded.
### BEGIN HIDDEN TESTS
def rows_of_all_lengths(generator, device):
    x = torch.randn(9, 3, generator=generator) * 10 ** torch.linspace(-14, 3, 9)[:, None]
    return x.to(device)


def one_column_of_doubles(generator, device):
    x = torch.randn(6, 1, generator=generator, dtype=torch.float64)
    x[3] = 0
    return x.to(device)


def only_zeros(generator, device):
    return torch.zeros(3, 4, device=device)


check(
    unit_rows,
    like=unit_rows_slow,
    on=[rows_of_all_lengths, one_column_of_doubles, only_zeros, half_rows, no_rows],
    points=2,
)
### END HIDDEN TESTS

# %% id="unit_rows_race" role="test"
race(unit_rows, against=unit_rows_slow, on=some_rows, at_least={"cpu": 26, "cuda": 10}, points=1)

# %% [markdown]
# ## 2. Cosines of many pairs
#
# *Medium, 12 minutes.* Some hundred words are vectors. A list says which words occurred together, pair by pair.
# Write `pair_cosines(x, pairs)`, which says how similar the words of each pair are. The given version does it by
# the function that is made for rows with rows.
#
# - `x`: tensor of shape `(N, D)`, `float32` or `float64`. *N* is at most 500. Each row is longer than 1e-6, or
#   holds zeros only.
# - `pairs`: `int64` tensor of shape `(2, E)` on the same device, with row numbers from 0 to *N* − 1. *E* may be 0,
#   or many thousands. A pair may occur more than once, and a row may be paired with itself.
# - returns: tensor of shape `(E,)`, of the type of `x`, on its device: the cosine of the angle between the rows
#   `pairs[0, e]` and `pairs[1, e]`. Where one of the two holds zeros only, it is 0.
# - A row number outside 0 to *N* − 1 must raise `IndexError`, also a negative one.


# %% id="pair_cosines_given" role="given"
def pair_cosines_slow(x, pairs):
    if pairs.numel() and (pairs.min() < 0 or pairs.max() >= len(x)):
        raise IndexError(f"row numbers must be from 0 to {len(x) - 1}")
    return F.cosine_similarity(x[pairs[0]], x[pairs[1]])


def words(rows, columns, number, generator, device, dtype=torch.float32):
    x = torch.randn(rows, columns, generator=generator, dtype=dtype)
    x[rows // 2] = 0
    return x.to(device), torch.randint(rows, (2, number), generator=generator).to(device)


def twenty_thousand_pairs(generator, device):
    return words(200, 64, 20_000, generator, device)


def few_words(generator, device):
    return words(5, 7, 60, generator, device, dtype=torch.float64)


def no_pairs(generator, device):
    return words(4, 3, 0, generator, device)


def number_too_large(generator, device):
    return torch.ones(3, 2), torch.tensor([[0, 1], [3, 2]])  # on the CPU: a GPU would stop for good


def number_below_zero(generator, device):
    return torch.ones(3, 2), torch.tensor([[0, -1], [1, 2]])


# %% [markdown]
# <details><summary>Hint 1</summary>How many numbers does the given version copy, before it computes anything? And
# how often does it compute the length of the same row?</details>
# <details><summary>Hint 2</summary>"Nothing is shared between the pairs", says the chapter of rows with rows. Is
# that so here? How many <em>different</em> pairs can there be among <em>N</em> rows?</details>
# <details><summary>Hint 3</summary>Compare the number of different pairs with the number of elements that the given
# version copies. Section 6 of the chapter computes the cosines of all pairs for very little. Then each pair is one
# number to look up.</details>


# %% id="pair_cosines" role="answer"
def pair_cosines(x, pairs):
    ### BEGIN SOLUTION
    if pairs.numel():
        lowest, highest = torch.aminmax(pairs)
        if lowest < 0 or highest >= len(x):
            raise IndexError(f"row numbers must be from 0 to {len(x) - 1}")
    units = F.normalize(x)
    return (units @ units.T)[pairs[0], pairs[1]]
    ### END SOLUTION


# %% id="pair_cosines_check" role="test"
check(pair_cosines, like=pair_cosines_slow, on=[twenty_thousand_pairs, few_words, no_pairs], points=1)

# %% id="pair_cosines_range" role="test"
check(
    pair_cosines,
    like=pair_cosines_slow,
    on=[number_too_large, number_below_zero],
    raises=IndexError,
    points=1,
)


# %% id="pair_cosines_hidden" role="test"
# Hidden test: one column, float64, one word, fewer pairs than words. 1 point, when graded.
### BEGIN HIDDEN TESTS
def one_column(generator, device):
    return words(6, 1, 40, generator, device)


def in_doubles(generator, device):
    return words(30, 5, 100, generator, device, dtype=torch.float64)


def one_word(generator, device):
    return torch.randn(1, 9, generator=generator).to(device), torch.zeros(
        2, 3, dtype=torch.int64, device=device
    )


def few_pairs(generator, device):
    return words(400, 20, 3, generator, device)


check(
    pair_cosines, like=pair_cosines_slow, on=[one_column, in_doubles, one_word, few_pairs, no_pairs], points=1
)
### END HIDDEN TESTS

# %% id="pair_cosines_race" role="test"
race(
    pair_cosines,
    against=pair_cosines_slow,
    on=twenty_thousand_pairs,
    at_least={"cpu": 6.5},
    points=3,
)

# %% [markdown]
# ## 3. Distances with gaps
#
# *Hard, 20 minutes.* In real tables numbers are missing: NaN says that nobody knows. Two rows can still be
# compared by the columns that both of them have. Write `gappy_distances(a, b)`.
#
# - `a`: tensor of shape `(N, D)`, `b`: tensor of shape `(M, D)`; both `float32` or both `float64`, on the same
#   device. Any number may be NaN, even a whole row or a whole column. None is infinite. *N* may be 0; *M* and *D*
#   are at least 1.
# - returns: tensor of shape `(N, M)`, of that type, on that device. Entry *(i, j)* looks at the columns where
#   neither `a[i]` nor `b[j]` is NaN: the root of the *mean* of the squared differences there. Where there is no
#   such column, it is NaN.
# - A column may lie far from 0: around 1000, say, with a spread of 1, and each column elsewhere. Errors of 0.5 % of
#   the typical distance (the root mean square of all that you return) are allowed, no more.


# %% id="gappy_distances_given" role="given"
def gappy_distances_slow(a, b):
    rows = []
    for row in a:
        squares = (b - row).square()
        rows.append(squares.nanmean(1).sqrt())
    return torch.stack(rows) if rows else a.new_empty(0, len(b))


def with_gaps(n, m, columns, generator, device, around=0.0, missing=0.2, dtype=torch.float32):
    middle = around * torch.randn(columns, generator=generator)
    sets = []
    for rows in (n, m):
        x = torch.randn(rows, columns, generator=generator) + middle
        x[torch.rand(rows, columns, generator=generator) < missing] = float("nan")
        sets.append(x.to(device, dtype))
    return tuple(sets)


def two_tables(generator, device):
    return with_gaps(200, 200, 32, generator, device)


def hardly_anything_known(generator, device):
    a, b = with_gaps(30, 40, 3, generator, device, missing=0.7, dtype=torch.float64)
    b[:, 1] = float("nan")
    return a, b


def no_rows_in_a(generator, device):
    return with_gaps(0, 5, 4, generator, device)


def far_from_zero(generator, device):
    a, b = with_gaps(60, 50, 16, generator, device, around=1000.0)
    b[:30] = a[:30]
    return a, b


# %% [markdown]
# <details><summary>Hint 1</summary>Write the squared difference of one column as three terms. Each is a product of
# something that belongs to a row of <code>a</code> and something that belongs to a row of <code>b</code>. In the
# chapter two of them are the same for all partners. Why not here?</details>
# <details><summary>Hint 2</summary>Let a number say whether an element is known: 1 or 0. What is the sum, over the
# columns, of "known in <em>i</em>" times "known in <em>j</em>"?</details>
# <details><summary>Hint 3</summary>So a², known, and a on one side, and the same three on the other: each term is
# a matrix product, and so is the number of common columns. NaN times 0 is NaN: what must stand in the
# gaps?</details>
# <details><summary>Hint 4</summary>Far from 0, think of section 5. The mean of a column that has gaps is another
# one than that of a column whose gaps are filled; and a column without any number must harm nobody. Look for a mean that
# leaves NaN out; both tables must move by the same vector. And a squared distance that should be 0 may come out below.</details>


# %% id="gappy_distances" role="answer"
def gappy_distances(a, b):
    ### BEGIN SOLUTION
    middle = b.nanmean(0).nan_to_num()
    a, b = a - middle, b - middle
    in_a, in_b = (x.isnan().logical_not().to(x.dtype) for x in (a, b))
    a, b = a.nan_to_num(), b.nan_to_num()
    left = torch.cat([a.square(), in_a, -2 * a], dim=1)
    right = torch.cat([in_b, b.square(), b], dim=1)
    return ((left @ right.T).clamp_min(0) / (in_a @ in_b.T)).sqrt()
    ### END SOLUTION


# %% id="gappy_distances_check" role="test"
check(
    gappy_distances,
    like=gappy_distances_slow,
    on=[two_tables, hardly_anything_known, no_rows_in_a],
    tolerance=5e-3,
    points=1,
)

# %% id="gappy_distances_far" role="test"
check(gappy_distances, like=gappy_distances_slow, on=far_from_zero, tolerance=5e-3, points=1)


# %% id="gappy_distances_hidden" role="test"
# Hidden test: no gaps, only gaps, one column, equal rows, far from 0 in other ways, float64. 2 points, when graded.
### BEGIN HIDDEN TESTS
def no_gaps(generator, device):
    return with_gaps(20, 9, 5, generator, device, missing=0.0)


def only_gaps(generator, device):
    return with_gaps(3, 4, 5, generator, device, missing=1.1)


def single_column(generator, device):
    return with_gaps(40, 30, 1, generator, device)


def equal_rows(generator, device):
    a = with_gaps(60, 60, 16, generator, device)[0]
    return a, a.clone()


def all_around_minus_3000(generator, device):
    a, b = with_gaps(45, 70, 6, generator, device)
    return a - 3000, b - 3000


def double_tables(generator, device):
    return with_gaps(13, 11, 8, generator, device, around=1000.0, dtype=torch.float64)


check(
    gappy_distances,
    like=gappy_distances_slow,
    on=[no_gaps, only_gaps, single_column, equal_rows, all_around_minus_3000, double_tables],
    tolerance=5e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="gappy_distances_race" role="test"
race(
    gappy_distances,
    against=gappy_distances_slow,
    on=two_tables,
    at_least={"cpu": 5.6, "cuda": 15},
    tolerance=5e-3,
    points=3,
)

# %% [markdown]
# ## 4. A search that fits
#
# *Hard, 25 minutes.* Build a tool that you may keep: `neighbours(queries, points, k)` finds the `k` nearest points of
# each query, however many queries and points there are. Two versions are given. `neighbours_slow` takes one query
# at a time: little memory, much time. `neighbours_large` takes all at once: little time, much memory.
#
# - `queries`: tensor of shape `(N, D)`; `points`: tensor of shape `(M, D)`; both `float32` or both `float64`, on the
#   same device. *N* may be 0; *M* and *D* are at least 1. `k`: a number from 1 to *M*.
# - returns: a tuple of two tensors of shape `(N, k)` on that device: the Euclidean distances to the `k` nearest
#   points, from near to far, in the type of the queries, and the row numbers of these points, `int64`. The tests
#   have no two points that are equally near.
# - The data may lie far from 0: around 1000, say, with distances between neighbours of about 1. From the mean of
#   the points, nothing in the tests is farther than about 250, but for data that are whole numbers. Each distance
#   may be off by 0.5 %.
# - Memory: for 30 queries and 200,000 points, and for 2,000 queries and 6,000 points, with 8 numbers each and `k = 3`,
#   at most 560 kB of new memory at once, the result included. It is counted as by `costs(...).peak_bytes` (`costs`
#   can be imported from `autograder`): what `cdist` copies inside does not count.
# - Another `k` than 1 to *M*, and different numbers of columns, must raise `ValueError`.


# %% id="neighbours_given" role="given"
def refuse(queries, points, k):
    if not 1 <= k <= len(points):
        raise ValueError(f"k must be from 1 to {len(points)}, not {k}")
    if queries.shape[1] != points.shape[1]:
        raise ValueError(f"queries have {queries.shape[1]} columns, points have {points.shape[1]}")


def neighbours_slow(queries, points, k):
    refuse(queries, points, k)
    distances = queries.new_empty(len(queries), k)
    places = torch.empty(len(queries), k, dtype=torch.int64, device=queries.device)
    for i, query in enumerate(queries):
        distances[i], places[i] = (points - query).square().sum(1).sqrt().topk(k, largest=False)
    return distances, places


def neighbours_large(queries, points, k):
    refuse(queries, points, k)
    middle = points.mean(0)
    found = torch.cdist(queries - middle, points - middle).topk(k, largest=False)
    return found.values, found.indices


def search(n, m, columns, k, generator, device, around=0.0):
    """Each query has k points of its own, at distances from 1 to 2; all other points are much farther away."""
    side = 1
    while side ** min(columns, 3) < n:
        side += 1
    queries = 0.1 * torch.randn(n, columns, generator=generator)
    for column in range(min(columns, 3)):
        queries[:, column] += 8 * (torch.arange(n) // side**column % side - side / 2)
    own = F.normalize(torch.randn(n, k, columns, generator=generator), dim=2)
    own = queries[:, None] + own * (1 + torch.arange(k) / k)[:, None]
    others = 5 * torch.randn(max(m - n * k, 0), columns, generator=generator)
    others[:, 0] = -4 * side - 10 - 10 * torch.rand(len(others), generator=generator)
    points = torch.cat([own.flatten(0, 1), others])
    points = points[torch.randperm(len(points), generator=generator)]
    middle = around * torch.randn(columns, generator=generator)
    return (queries + middle).to(device), (points + middle).to(device), k


def some_queries(generator, device):
    return search(64, 4000, 64, 5, generator, device, around=1000.0)


def close_to_zero(generator, device):
    queries, points, k = search(10, 700, 3, 4, generator, device)
    return queries.double(), points.double(), k


def all_points(generator, device):
    points = torch.randperm(3001, generator=generator).float()[:, None]
    return torch.full((1, 1), -1.0, device=device), points.to(device), 3001


def no_queries(generator, device):
    queries, points, k = search(2, 40, 5, 3, generator, device)
    return queries[:0], points, k


def many_points(generator, device):
    return search(30, 200_000, 8, 3, generator, device, around=1000.0)


def many_queries(generator, device):
    return search(2000, 6000, 8, 3, generator, device)


def k_too_large(generator, device):
    return torch.ones(2, 3, device=device), torch.ones(4, 3, device=device), 5


def k_of_zero(generator, device):
    return torch.ones(2, 3, device=device), torch.ones(4, 3, device=device), 0


def other_columns(generator, device):
    return torch.ones(2, 3, device=device), torch.ones(4, 1, device=device), 1


# %% [markdown]
# <details><summary>Hint 1</summary>Count the bytes of everything that has one number for each point:
# <code>costs(...).peak_bytes</code> shows them. What of it is there only because all points are used at
# once?</details>
# <details><summary>Hint 2</summary>Pieces of queries alone are not enough. Take pieces of the points, too. Points
# far from 0 can be moved near it piece by piece, as long as all pieces move by the same vector. (The direct way
# needs no move. Is it fast enough for the race?)</details>
# <details><summary>Hint 3</summary>A piece has <code>k</code> best points. The pieces before had <code>k</code>
# best points. The best of them all are among these 2 <code>k</code>. Mind what <code>topk</code> says about places:
# they count from the beginning of what it was given. <code>gather</code> fetches numbers at such places.</details>
# <details><summary>Hint 4</summary>A piece may have fewer than <code>k</code> points. Some hundred kilobytes of
# distances at once are a good size. A new piece is made while the old one is still there, as long as a variable holds
# it. Where there are no queries, there are no pieces to put together.</details>


# %% id="neighbours" role="answer"
def neighbours(queries, points, k):
    ### BEGIN SOLUTION
    refuse(queries, points, k)
    distances = queries.new_empty(len(queries), k)
    places = torch.empty(len(queries), k, dtype=torch.int64, device=queries.device)
    middle = points.mean(0)
    for first in range(0, len(queries), 64):
        some = queries[first : first + 64] - middle
        best, where = some.new_empty(len(some), 0), places.new_empty(len(some), 0)
        for start in range(0, len(points), 1024):
            matrix = torch.cdist(some, points[start : start + 1024] - middle)
            found = matrix.topk(min(k, matrix.shape[1]), largest=False)
            del matrix
            best = torch.cat([best, found.values], dim=1)
            best, order = best.topk(min(k, best.shape[1]), largest=False)
            where = torch.cat([where, found.indices + start], dim=1).gather(1, order)
        distances[first : first + 64], places[first : first + 64] = best, where
    return distances, places
    ### END SOLUTION


# %% id="neighbours_check" role="test"
check(
    neighbours,
    like=neighbours_slow,
    on=[some_queries, close_to_zero, all_points, no_queries],
    tolerance=5e-3,
    points=1,
)

# %% id="neighbours_bad" role="test"
check(
    neighbours,
    like=neighbours_slow,
    on=[k_too_large, k_of_zero, other_columns],
    raises=ValueError,
    points=1,
)

# %% id="neighbours_memory" role="test"
# How much new memory is alive at once? Points grow from none, for as much as neighbours_large, to all.
check(
    neighbours,
    like=neighbours_large,
    on=[many_points, many_queries],
    peak=560_000,
    tolerance=5e-3,
    points=4,
)


# %% id="neighbours_hidden" role="test"
# Hidden test: one point, all of many points, one column, numbers of queries and points that are not round, float64.
# 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_point(generator, device):
    return search(1, 1, 6, 1, generator, device)


def all_of_few_points(generator, device):
    return search(2, 10, 4, 5, generator, device)


def one_number(generator, device):
    return search(30, 2000, 1, 1, generator, device)


def odd_numbers(generator, device):
    return search(131, 2053, 9, 7, generator, device, around=-2000.0)


def in_float64(generator, device):
    queries, points, k = search(33, 1025, 4, 9, generator, device, around=1000.0)
    return queries.double(), points.double(), k


check(
    neighbours,
    like=neighbours_slow,
    on=[one_point, all_of_few_points, all_points, one_number, odd_numbers, in_float64, no_queries],
    tolerance=5e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="neighbours_race" role="test"
race(
    neighbours,
    against=neighbours_slow,
    on=some_queries,
    at_least={"cpu": 2.2, "cuda": 2},
    flops=2 * 64 * 4000 * 64,
    tolerance=5e-3,
    points=2,
)

# %% [markdown]
# ## 5. Fast, but not everywhere
#
# *Hard, 20 minutes.* k-means looks for *K* centres: each point belongs to its nearest centre, and each centre moves to
# the mean of its points, step by step. `kmeans_slow` is right and slow. A colleague wrote `kmeans_hasty`. On his own
# data, it gives the same. On the data of others, it gives other clusters, and no error. Find out what differs, and
# write a `kmeans` that is right **and** fast.
#
# The rules, which `kmeans_slow` follows: `kmeans(points, centres, steps)`
#
# - `points`: tensor of shape `(N, D)`; `centres`: tensor of shape `(K, D)`; both `float32` or both `float64`, on the
#   same device. *N*, *K* and *D* are at least 1. `steps`: a number, 0 or more.
# - A step gives each point to its nearest centre, and moves each centre to the mean of its points. A centre that got
#   no point stays where it is.
# - returns: a tuple of the centres after the last step, shape `(K, D)`; the number of the nearest one of *these* for
#   each point, `int64`, shape `(N,)`; and the mean distance of the points to *these* nearest centres, a tensor without
#   dimensions. All on that device, centres and distance in that type.
# - The data may lie anywhere: around 10,000, say, with clusters that lie 10 apart. The tests have no ties, and no
#   mean distance of 0. Centres and mean distance may be off by 0.1 % of what they are, labels not at all.
# - The given tensors must be left as they are.


# %% id="kmeans_given" role="given"
def kmeans_slow(points, centres, steps):
    centres = centres.clone()

    def nearest(point):
        return (centres - point).square().sum(1).sqrt().min(0)

    for _ in range(steps):
        sums, counts = torch.zeros_like(centres), [0] * len(centres)
        for point in points:
            place = int(nearest(point).indices)
            sums[place] += point
            counts[place] += 1
        for i, count in enumerate(counts):
            if count:
                centres[i] = sums[i] / count
    found = [nearest(point) for point in points]
    labels = torch.stack([one.indices for one in found])
    return centres, labels, torch.stack([one.values for one in found]).mean()


def kmeans_hasty(points, centres, steps):
    for _ in range(steps):
        # |a|² is the same for all centres, and a root changes no order
        labels = (centres.square().sum(1) - 2 * points @ centres.T).argmin(1)
        members = F.one_hot(labels, len(centres)).float()
        centres = members.T @ points / members.sum(0)[:, None].clamp_min(1)
    return centres, labels, torch.cdist(points, centres).amin(1).mean()


def clouds(n, k, columns, steps, generator, device, around=0.0, lost=0):
    """n points around k places that lie 10 apart; a first centre near each place, and ``lost`` near none."""
    places = torch.randn(k, columns, generator=generator)
    places[:, 0] = 10.0 * (torch.arange(k) % 6)
    places[:, 1] = 10.0 * (torch.arange(k) // 6)
    members = torch.cat([torch.arange(k), torch.randint(k, (n,), generator=generator)])[:n]
    points = places[members] + 0.6 * torch.randn(n, columns, generator=generator)
    centres = places + 0.1 * torch.randn(k, columns, generator=generator)
    centres = torch.cat([centres, 2000 + torch.randn(lost, columns, generator=generator)])
    centres = centres[torch.randperm(k + lost, generator=generator)]
    middle = around * torch.randn(columns, generator=generator)
    return (points + middle).to(device), (centres + middle).to(device), steps


def his_own_data(generator, device):
    return clouds(100, 8, 16, 2, generator, device)


def far_away(generator, device):
    return clouds(240, 36, 48, 2, generator, device, around=10_000.0)


def two_lost_centres(generator, device):
    points, centres, steps = clouds(11, 5, 24, 1, generator, device, lost=2)
    return points.double(), centres.double(), steps


def still_moving(generator, device):
    places = torch.tensor([0.0, 10.0, 13.0]).repeat_interleave(20)
    points = 0.05 * torch.randn(60, 3, generator=generator)
    points[:, 0] += places
    centres = torch.tensor([[0.0, 0.0, 0.0], [24.0, 0.0, 0.0]])
    return points[torch.randperm(60, generator=generator)].to(device), centres.to(device), 1


def no_steps(generator, device):
    return clouds(30, 4, 3, 0, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Do not read first. Run both versions on each of the five inputs above, and compare
# the three results one by one. On four of them the hasty one differs or stops, and where it stops, it may have a second
# fault behind the first.</details>
# <details><summary>Hint 2</summary>Data around 10,000: what are the two terms there that are subtracted, and what is
# left of their digits? Section 5 of the chapter has a remedy: move the data. Which of the three results must be moved
# back at the end?</details>
# <details><summary>Hint 3</summary>After the last step the centres have moved once more. To which centres do the
# labels of that step belong?</details>
# <details><summary>Hint 4</summary><code>clamp_min(1)</code> keeps NaN out. But where does it put a centre
# without points? <code>torch.where</code> can keep the old one. And one type is written into the hasty
# version.</details>


# %% id="kmeans" role="answer"
def kmeans(points, centres, steps):
    ### BEGIN SOLUTION
    middle = points.mean(0)
    points, centres = points - middle, centres - middle
    for _ in range(steps):
        members = F.one_hot(torch.cdist(points, centres).argmin(1), len(centres)).to(points.dtype)
        counts = members.sum(0)[:, None]
        centres = torch.where(counts > 0, members.T @ points / counts, centres)
    distances, labels = torch.cdist(points, centres).min(1)
    return centres + middle, labels, distances.mean()
    ### END SOLUTION


# %% id="kmeans_check" role="test"
check(kmeans, like=kmeans_slow, on=his_own_data, tolerance=1e-3, points=1)

# %% id="kmeans_others" role="test"
check(
    kmeans,
    like=kmeans_slow,
    on=[far_away, two_lost_centres, still_moving, no_steps],
    tolerance=1e-3,
    points=2,
)


# %% id="kmeans_hidden" role="test"
# Hidden test: one centre, few points, float64, a lost centre in data far away. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_centre(generator, device):
    return clouds(40, 1, 5, 3, generator, device, around=3000.0)


def few_points(generator, device):
    return clouds(12, 8, 16, 2, generator, device, lost=1)


def lost_and_far(generator, device):
    return clouds(90, 12, 40, 2, generator, device, around=10_000.0, lost=1)


def double_clouds(generator, device):
    points, centres, steps = clouds(50, 6, 7, 3, generator, device, around=10_000.0, lost=1)
    return points.double(), centres.double(), steps


check(
    kmeans,
    like=kmeans_slow,
    on=[one_centre, few_points, lost_and_far, double_clouds, still_moving],
    tolerance=1e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="kmeans_race" role="test"
race(kmeans, against=kmeans_slow, on=far_away, at_least={"cpu": 8.1, "cuda": 15}, tolerance=1e-3, points=3)

# %% [markdown]
# ## 6. Foretell the costs
#
# *Easy, 10 minutes.* Three functions: two are of earlier chapters, the last is of this one. Each gets `x`, a
# tensor of `float32` with the shape `(n, d)`, whose numbers are all 2. Write `foretold(n, d)`, which says what
# `costs` counts then.
#
# - `n`, `d`: integers from 2 on.
# - returns: a dict with the names of the three functions. Each value is a dict of three integers: `"operations"` (views
#   are not counted), `"bytes"` of all new tensors together, and `"syncs"`, where the host would wait for a GPU.
# - `foretold` asks torch for nothing.


# %% id="foretold_given" role="given"
def pixels(x):
    return x.to(torch.uint8).float().div_(255)


def halved(x):
    short = x.bfloat16()
    return (short @ short.T).float()


def distances(x):
    return ((x[:, None] - x) ** 2).sum(-1).sqrt_()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (pixels, halved, distances)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>pixels</code> is of chapter 04, <code>halved</code> is of chapter 07,
# <code>distances</code> is of chapter 09.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(distances, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "pixels": {"operations": 3, "bytes": n * d + 4 * n * d, "syncs": 0},
        "halved": {"operations": 3, "bytes": 2 * n * d + 2 * n * n + 4 * n * n, "syncs": 0},
        "distances": {"operations": 4, "bytes": 8 * n * n * d + 4 * n * n, "syncs": 0},
    }
    ### END SOLUTION


# %% id="foretold_check" role="test"
check(foretold, like=counted, on=[any_size, any_size], at_most={"operations": 0}, points=1)


# %% id="foretold_hidden" role="test"
# Hidden test: long and narrow, short and wide. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def narrow(generator, device):
    return 200 + any_size(generator, device)[0], 2


def wide(generator, device):
    return 2, 200 + any_size(generator, device)[0]


check(foretold, like=counted, on=[narrow, wide, any_size], at_most={"operations": 0}, points=1)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
