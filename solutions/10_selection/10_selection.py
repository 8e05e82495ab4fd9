# %% [markdown]
# # Exercises 10 · Selection
#
# Five functions. Each is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one.
# Hidden tests run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/10_selection.ipynb). 44 points, about 87 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. The entropy of each row
#
# *Easy, 8 minutes.* How sure is a classifier? The entropy of its probabilities tells. Write `entropy(p)`.
#
# - `p`: floating-point tensor of shape `(N, K)`, on any device, of any floating-point type. No number is
#   negative; many are exactly 0. `N` may be 0.
# - returns: tensor of shape `(N,)`, of that type and on that device: the sum of `-p * log(p)` over each
#   row, where a 0 counts as 0. A row of zeros only has the entropy 0.
# - The gradient must be `-log(p) - 1` where `p` is not 0. Where it is 0, it must be 0.
# - No sync. (Here and below, syncs are those that `costs` counts.)
# - If `p` does not have two dimensions, raise `ValueError`.


# %% id="entropy_given" role="given"
def entropy_slow(p):
    if p.ndim != 2:
        raise ValueError(f"p must have 2 dimensions, not {p.ndim}")
    sums = []
    for row in p:
        there = row[row > 0]
        sums.append(-(there * there.log()).sum())
    return torch.stack(sums) if sums else p.sum(dim=1)


def sparse_rows(generator, device):
    p = torch.rand(200, 50, generator=generator) * (torch.rand(200, 50, generator=generator) < 0.5)
    return (p / p.sum(dim=1, keepdim=True)).to(device)


def rows_of_zeros(generator, device):
    p = torch.rand(4, 6, generator=generator)
    p[1] = 0
    p[3, :5] = 0
    return p.to(device)


def no_rows_at_all(generator, device):
    return torch.zeros(0, 4, device=device)


def one_row_only(generator, device):
    return torch.rand(5, generator=generator).to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>The values alone are easy. Let the check tell you about the gradients,
# then read section 6 of the chapter again.</details>
# <details><summary>Hint 2</summary>The logarithm must never see a 0. Which number could it see in its
# place, and do you have to throw anything away afterwards?</details>


# %% id="entropy" role="answer"
def entropy(p):
    ### BEGIN SOLUTION
    if p.ndim != 2:
        raise ValueError(f"p must have 2 dimensions, not {p.ndim}")
    there = torch.where(p > 0, p, 1.0)
    return -(there * there.log()).sum(dim=1)
    ### END SOLUTION


# %% id="entropy_check" role="test"
check(entropy, like=entropy_slow, on=[sparse_rows, rows_of_zeros, no_rows_at_all], gradients=True, points=2)

# %% id="entropy_syncs" role="test"
check(entropy, like=entropy_slow, on=sparse_rows, gradients=True, at_most={"syncs": 0}, points=1)


# %% id="entropy_hidden" role="test"
# Hidden test: other sizes, float64, certain rows, tiny numbers. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def float64_rows(generator, device):
    return torch.rand(7, 3, generator=generator).double().clamp(min=0.4).sub(0.4).to(device)


def certain_rows(generator, device):
    return torch.eye(5)[torch.randint(5, (9,), generator=generator)].to(device)


def tiny_probabilities(generator, device):
    return (torch.rand(6, 4, generator=generator) * 1e-30).to(device)


check(
    entropy,
    like=entropy_slow,
    on=[float64_rows, certain_rows, tiny_probabilities],
    gradients=True,
    points=2,
)
### END HIDDEN TESTS

# %% id="entropy_shape" role="test"
check(entropy, like=entropy_slow, on=one_row_only, raises=ValueError, points=1)

# %% id="entropy_race" role="test"
race(entropy, against=entropy_slow, on=sparse_rows, at_least={"cpu": 10, "cuda": 10}, points=2)

# %% [markdown]
# ## 2. After some hours, all weights were NaN
#
# *Medium, 17 minutes.* 150 sensors each send 1,000 readings, and many readings never arrive. Before training,
# each row is standardised: mean 0 and spread 1. Somebody wrote `standardise_draft` for that. It is fast, and it
# was right on every batch that anybody looked at. `standardise_slow` is always right. Find out on which inputs
# the draft goes wrong, in values or in gradients, and write `standardise(x, mask)`.
#
# - `x`: `float32` or `float64` tensor of shape `(N, T)`; `N` may be 0, `T` is 1 or more. `mask`: `bool` tensor
#   of that shape, on the same device. Where the mask is true, `x` holds a finite number. Where it is false
#   (anywhere in a row) there is a gap: memory that nobody filled, so anything may stand there, NaN and infinity
#   included.
# - returns: tensor like `x`. In the place of a number: the number minus the mean of the row's numbers, divided
#   by their spread. The spread is the square root of the mean of the squared differences from the mean. In
#   the place of a gap: 0.
# - Where all numbers of a row are equal (seven times 0.1, say), or there is only one, or none, the whole row of
#   the result is 0. Where they are not equal, their spread is more than a thousandth of the largest magnitude
#   among them: far more than an error of rounding. Squares of numbers do not overflow, and the square of a spread
#   above 0 does not become 0.
# - Gradients must be right. For gaps, and in a row that is 0 by the rule above, they are 0. Here and in the
#   result, the tests allow for rounding: an error of about 1e-4 in `float32` and 1e-9 in `float64`, relative to
#   the size.
# - No sync.


# %% id="standardise_given" role="given"
def standardise_slow(x, mask):
    result = torch.zeros_like(x)
    for i in range(len(x)):
        numbers = x[i, mask[i]]
        if len(numbers) > 1 and numbers.min() < numbers.max():
            centred = numbers - numbers.mean()
            result[i, mask[i]] = centred / centred.square().mean().sqrt()
    return result


def standardise_draft(x, mask):
    count = mask.sum(dim=1, keepdim=True)
    mean = (x * mask).sum(dim=1, keepdim=True) / count
    centred = (x - mean) * mask
    spread = (centred.square().sum(dim=1, keepdim=True) / count).sqrt()
    return torch.where(spread > 0, centred / spread, 0.0)


def readings(generator, device):
    mask = torch.rand(150, 1000, generator=generator) < 0.5
    return torch.randn(150, 1000, generator=generator).to(device), mask.to(device)


def short_and_unfilled(generator, device):
    x = torch.randn(9, 9, generator=generator).double()
    x[1], x[6:] = 3.0, 0.1
    mask = torch.arange(9) < torch.tensor([[9], [7], [1], [0], [4], [2], [7], [9], [6]])
    mask = mask[:, torch.randperm(9, generator=generator)]
    x = torch.where(mask, x, torch.tensor([torch.nan, torch.inf, 0.0]).repeat(3))
    return x.to(device), mask.to(device)


def no_rows_to_standardise(generator, device):
    return torch.zeros(0, 4, device=device), torch.zeros(0, 4, dtype=torch.bool, device=device)


# %% [markdown]
# <details><summary>Hint 1</summary>Call the draft with <code>short_and_unfilled</code>, and look at the rows
# one by one. Then ask <code>torch.autograd.grad</code> for the gradients of the sum of the squared
# result.</details>
# <details><summary>Hint 2</summary>There are three faults. One is in what a product with a mask makes of NaN
# (section 3 of the chapter), another in what a square root sends back (section 6). The draft has both in more than one
# line. The third is a mean that is rounded: is the variance of equal numbers exactly 0?</details>
# <details><summary>Hint 3</summary>Which rows are to be 0? The slow version compares their smallest number with the
# largest. Or use what the task promises of numbers that are not equal: from which spread on are they
# surely not?</details>
# <details><summary>Hint 4</summary>What may the root and the division see in a row without spread, so that their
# derivatives are finite?</details>
# <details><summary>Hint 5</summary>Right, and not fast enough? Count how often your answer decides, element by
# element, about the whole table, and look at the picture in section 3 again: which operation has a hump with a
# shuffled mask, and which has none? <code>costs</code> lists your passes, <code>compare</code> times two
# variants on <code>readings</code>.</details>
# <details><summary>Hint 6</summary>Once there is a finite number in each gap, a product with the mask can do no
# harm. How many <code>where</code> over the whole table are left then? If you compare the smallest number of a row
# with the largest, the gaps must not win. A sum can move them out of the way, too. (Mind that infinity times 0 is
# NaN.)</details>


# %% id="standardise" role="answer"
def standardise(x, mask):
    ### BEGIN SOLUTION
    there = mask.to(x.dtype)
    x = torch.where(mask, x, 0.0)
    far = (1 - there) * torch.finfo(x.dtype).max
    differ = (x + far).amin(dim=1, keepdim=True) < (x - far).amax(dim=1, keepdim=True)
    count = there.sum(dim=1, keepdim=True).clamp(min=1)
    centred = (x - x.sum(dim=1, keepdim=True) / count) * there
    variance = centred.square().sum(dim=1, keepdim=True) / count
    return centred * (differ / torch.where(differ, variance, 1.0).sqrt())
    ### END SOLUTION


# %% id="standardise_check" role="test"
check(standardise, like=standardise_slow, on=readings, at_most={"syncs": 0}, points=1)

# %% id="standardise_values" role="test"
# The values only, of short rows, and with gaps that nobody filled.
check(standardise, like=standardise_slow, on=[short_and_unfilled, no_rows_to_standardise], points=1)

# %% id="standardise_gradients" role="test"
check(standardise, like=standardise_slow, on=short_and_unfilled, gradients=True, points=2)


# %% id="standardise_hidden" role="test"
# Hidden test: few numbers in a row, rows of equal numbers, one number in a row. 1 point, when your notebook is
# graded.
### BEGIN HIDDEN TESTS
def holes(generator, device):
    x = torch.randn(40, 12, generator=generator).double()
    mask = torch.rand(40, 12, generator=generator) < 0.3
    return x.masked_fill(~mask, -torch.inf).to(device), mask.to(device)


def equal_numbers(generator, device):
    x = (torch.randint(-3, 4, (30, 1), generator=generator).double() / 10).repeat(1, 11)
    x[0] = torch.randn(11, generator=generator)
    mask = torch.rand(30, 11, generator=generator) < 0.7
    mask[0] = True
    return x.to(device), mask.to(device)


def mostly_one_number(generator, device):
    x = torch.randn(20, 6, generator=generator).double()
    mask = torch.eye(6, dtype=torch.bool).repeat(4, 1)[:20]
    mask[7] = True
    return x.masked_fill(~mask, torch.nan).to(device), mask.to(device)


def one_column(generator, device):
    mask = torch.ones(5, 1, dtype=torch.bool, device=device)
    return torch.randn(5, 1, generator=generator).to(device), mask


check(
    standardise,
    like=standardise_slow,
    on=[holes, equal_numbers, mostly_one_number],
    gradients=True,
    at_most={"syncs": 0},
    points=1,
)
### END HIDDEN TESTS

# %% id="standardise_sizes" role="test"
# Hidden test: one column, float32. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(standardise, like=standardise_slow, on=one_column, points=1)
### END HIDDEN TESTS

# %% id="standardise_race" role="test"
race(standardise, against=standardise_slow, on=readings, at_least={"cpu": 2.5, "cuda": 14}, points=2)

# %% [markdown]
# ## 3. A softmax for each group
#
# *Medium, 15 minutes.* In a graph, every node weighs its neighbours: the scores of the edges that arrive at
# a node are turned into weights with sum 1. There are several sets of scores ("heads"), each with weights of
# its own. Write `group_softmax(scores, groups, count)`.
#
# - `scores`: floating-point tensor of shape `(N, H)`: a row for each edge, a column for each head. `groups`:
#   `int64` tensor of shape `(N,)`: the node at which the edge arrives, from 0 to `count - 1`, in any order.
#   Both on the same device. `count`: a number. A group may be empty, and `N` may be 0.
# - returns: tensor like `scores`. Element `[i, h]` is `exp(scores[i, h])`, divided by the sum of the `exp` of
#   all scores of its group in column `h`.
# - Scores may be as large as 1,000, or as small as -1,000. Differences between groups may be as large.
# - A score may also be -infinity: this edge is not there, for this head. Its weight is 0, even where all
#   scores of its group are -infinity in this column.
# - Gradients must be right; where a score is -infinity, its gradient is 0. No sync.
# - A group of `count` or more, or a negative one, must raise `IndexError` or `RuntimeError` (on the CPU).


# %% id="group_softmax_given" role="given"
def group_softmax_slow(scores, groups, count):
    if len(groups) and not 0 <= groups.min() <= groups.max() < count:
        raise IndexError(f"the groups are not in 0 to {count - 1}")
    weights = torch.zeros_like(scores)
    for group in range(count):
        for head in range(scores.shape[1]):
            members = (groups == group) & (scores[:, head] > -torch.inf)
            weights[members, head] = scores[members, head].softmax(dim=0)
    return weights


def edges(generator, device):
    groups = torch.randint(100, (3000,), generator=generator)
    return torch.randn(3000, 4, generator=generator).to(device), groups.to(device), 100


def distant_groups(generator, device):
    groups = torch.randint(4, (40,), generator=generator)
    scores = torch.randn(40, 2, generator=generator)
    scores += torch.tensor([[1000.0], [-1000.0], [0.0], [500.0]])[groups]
    return scores.to(device), groups.to(device), 6


def missing_edges(generator, device):
    groups = torch.randint(5, (40,), generator=generator)
    scores = torch.randn(40, 3, generator=generator)
    scores[torch.rand(40, 3, generator=generator) < 0.3] = -torch.inf
    scores[groups == 3, 1] = -torch.inf
    return scores.to(device), groups.to(device), 5


def no_edges(generator, device):
    return torch.zeros(0, 2, device=device), torch.zeros(0, dtype=torch.int64, device=device), 3


def group_out_of_range(generator, device):
    return torch.randn(3, 2, generator=generator), torch.tensor([0, 2, 1]), 2


def negative_group(generator, device):
    return torch.randn(3, 2, generator=generator), torch.tensor([0, -1, 1]), 2


# %% [markdown]
# <details><summary>Hint 1</summary>Three steps: the largest score of each group, the sum of the
# <code>exp</code> of what is left, a division. How does a number about a group come back to its
# members?</details>
# <details><summary>Hint 2</summary><code>scatter_reduce</code> knows <code>"amax"</code>, and its index has
# the shape of the values. Subtracting the same number from all scores of a group does not change the result. So
# no gradient is needed through that number.</details>
# <details><summary>Hint 3</summary>Take a group in which all scores are -infinity, and go through the three
# steps by hand: -infinity minus -infinity is NaN, and so is 0 / 0. From which finite number could the maximum
# start instead? And section 6 of the chapter says what to do about the division, so that the gradient is clean,
# too.</details>


# %% id="group_softmax" role="answer"
def group_softmax(scores, groups, count):
    ### BEGIN SOLUTION
    shape = (count, scores.shape[1])
    lowest = torch.finfo(scores.dtype).min
    wide = groups[:, None].expand_as(scores)
    largest = scores.new_full(shape, lowest).scatter_reduce(0, wide, scores.detach(), "amax")
    powers = (scores - largest[groups]).exp()
    sums = scores.new_zeros(shape).index_add(0, groups, powers)
    return powers / torch.where(sums > 0, sums, 1.0)[groups]
    ### END SOLUTION


# %% id="group_softmax_check" role="test"
check(group_softmax, like=group_softmax_slow, on=edges, gradients=True, at_most={"syncs": 0}, points=1)

# %% id="group_softmax_distant" role="test"
check(group_softmax, like=group_softmax_slow, on=[distant_groups, no_edges], points=1)

# %% id="group_softmax_missing" role="test"
check(group_softmax, like=group_softmax_slow, on=missing_edges, gradients=True, points=2)


# %% id="group_softmax_hidden" role="test"
# Hidden test: empty groups, one group, one head, large scores beside missing edges, float64. 2
# points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def empty_groups(generator, device):
    groups = torch.tensor([7, 3, 3, 7, 0, 3], device=device)
    return torch.randn(6, 1, generator=generator).double().to(device) - 5, groups, 9


def single_group(generator, device):
    scores = torch.randn(30, 2, generator=generator)
    scores[::3] = -torch.inf
    return scores.to(device), torch.zeros(30, dtype=torch.int64, device=device), 1


def large_and_missing(generator, device):
    groups = torch.randint(5, (60,), generator=generator)
    scores = torch.randn(60, 2, generator=generator)
    scores += torch.tensor([1000.0, -1000.0, 0.0, 500.0, -300.0])[groups, None]
    scores[torch.rand(60, 2, generator=generator) < 0.5] = -torch.inf
    scores[groups == 1] = -torch.inf
    return scores.to(device), groups.to(device), 6


check(
    group_softmax,
    like=group_softmax_slow,
    on=[empty_groups, single_group, large_and_missing],
    points=2,
)
### END HIDDEN TESTS

# %% id="group_softmax_range" role="test"
check(
    group_softmax,
    like=group_softmax_slow,
    on=[group_out_of_range, negative_group],
    raises=(IndexError, RuntimeError),
    points=1,
)

# %% id="group_softmax_race" role="test"
race(group_softmax, against=group_softmax_slow, on=edges, at_least={"cpu": 18, "cuda": 18}, points=2)

# %% [markdown]
# ## 4. The newest write wins
#
# *Hard, 17 minutes.* A log holds writes to a table: "put this value there". It was collected from several
# machines, so it is in no order; but each write has a time stamp. Many places are written more than once.
# Write `replay(table, places, values, times)`, where **the newest write wins**: on every device, with any
# number of threads, and with right gradients.
#
# - `table`: floating-point tensor of shape `(size,)`. `places`: `int64` tensor of shape `(W,)` with values
#   from 0 to `size - 1`. `values`: tensor of shape `(W,)` and of the type of `table`. `times`: `int64` tensor
#   of shape `(W,)`, nanoseconds since 1970 (as `time.time_ns()` gives them), none of them negative. All on the
#   same device. `W` may be 0.
# - returns: a new tensor like `table`. A place that was written holds the value of the newest write to it. Of
#   writes with the same time, the one that is later in the log counts as newer. Any other place holds what it
#   held in `table`.
# - The gradient of a value that is not in the result is 0. No sync.
# - A place outside the table, negative or too large, must raise `IndexError` or `RuntimeError` (on the CPU).


# %% id="replay_given" role="given"
def replay_slow(table, places, values, times):
    newest = {}
    for i, (place, time) in enumerate(zip(places.tolist(), times.tolist(), strict=True)):
        if not 0 <= place < len(table):
            raise IndexError(f"place {place} is not in 0 to {len(table) - 1}")
        newest[place] = max(newest.get(place, (time, i)), (time, i))
    cells = [values[newest[place][1]] if place in newest else table[place] for place in range(len(table))]
    return torch.stack(cells) if cells else table.clone()


NOW = 1_900_000_000_000_000_000


def log_of_writes(generator, device):
    table, values = torch.rand(1000, generator=generator), torch.rand(3000, generator=generator)
    places = torch.randint(1000, (3000,), generator=generator)
    times = NOW + torch.randint(10**12, (3000,), generator=generator)
    return table.to(device), places.to(device), values.to(device), times.to(device)


def nanoseconds_apart(generator, device):
    table, values = torch.rand(9, generator=generator), torch.rand(60, generator=generator)
    places = torch.randint(8, (60,), generator=generator)
    times = NOW + torch.randint(5, (60,), generator=generator)
    return table.to(device), places.to(device), values.to(device), times.to(device)


def empty_log(generator, device):
    none = torch.zeros(0, dtype=torch.int64, device=device)
    return torch.rand(4, generator=generator).to(device), none, torch.zeros(0, device=device), none


def place_out_of_range(generator, device):
    values = torch.rand(2, generator=generator)
    return torch.rand(3, generator=generator), torch.tensor([0, 3]), values, torch.tensor([NOW, NOW + 1])


def negative_place(generator, device):
    values = torch.rand(2, generator=generator)
    return torch.rand(3, generator=generator), torch.tensor([0, -1]), values, torch.tensor([NOW, NOW + 1])


# %% [markdown]
# <details><summary>Hint 1</summary>Do not scatter the values. For each place, find the <em>number</em> of
# the write that wins. Then read its value. Section 8 of the chapter says why.</details>
# <details><summary>Hint 2</summary>There are two ways. Sort the writes by time first; then the last of a
# place has the largest number, and you have to find the way back from numbers in that order. Or ask twice for
# something largest: first for the time, then for the number, among those writes that have this time.</details>
# <details><summary>Hint 3</summary>If you think of one key made of time and number: it does not fit into 64 bits, and
# <code>float64</code> holds 53 of them.</details>
# <details><summary>Hint 4</summary>A place without a write, and a log without writes, are no special cases, if
# the table's own numbers are lined up before the values, and each place starts out pointing at itself.</details>


# %% id="replay" role="answer"
def replay(table, places, values, times):
    ### BEGIN SOLUTION
    size = len(table)
    newest = times.new_full((size,), -1).scatter_reduce(0, places, times, "amax")
    numbers = torch.arange(size + len(values), device=table.device)
    candidates = torch.where(times == newest[places], numbers[size:], -1)
    source = numbers[:size].scatter_reduce(0, places, candidates, "amax")
    return torch.cat([table, values])[source]
    ### END SOLUTION


# %% id="replay_check" role="test"
check(replay, like=replay_slow, on=[log_of_writes, nanoseconds_apart, empty_log], points=2)

# %% id="replay_gradients" role="test"
check(
    replay,
    like=replay_slow,
    on=[log_of_writes, nanoseconds_apart, empty_log],
    gradients=True,
    at_most={"syncs": 0},
    points=2,
)


# %% id="replay_hidden" role="test"
# Hidden test: all writes to one place, all at one time, the oldest last, every place once, float64, special
# values. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_place(generator, device):
    places, times = torch.full((20,), 3), NOW - torch.arange(20)
    values = torch.randn(20, generator=generator)
    return tuple(t.to(device) for t in (torch.rand(5, generator=generator), places, values, times))


def one_time(generator, device):
    table, values = torch.rand(6, generator=generator), torch.rand(40, generator=generator)
    places, times = torch.randint(6, (40,), generator=generator), torch.full((40,), NOW)
    return tuple(t.to(device) for t in (table, places, values, times))


def every_place_once(generator, device):
    table, values = torch.randn(2, 12, generator=generator).double()
    places, times = torch.randperm(12, generator=generator), NOW + torch.randperm(12, generator=generator)
    return tuple(t.to(device) for t in (table, places, values, times))


def overwritten_nan(generator, device):
    values = torch.tensor([float("nan"), 2.0, 0.0, float("inf"), -1.0])
    places, times = torch.tensor([0, 0, 2, 2, 2]), NOW + torch.tensor([1, 2, 9, 8, 7])
    return tuple(t.to(device) for t in (torch.rand(3, generator=generator), places, values, times))


check(
    replay,
    like=replay_slow,
    on=[one_place, one_time, every_place_once, overwritten_nan],
    gradients=True,
    points=2,
)
### END HIDDEN TESTS

# %% id="replay_range" role="test"
check(
    replay,
    like=replay_slow,
    on=[place_out_of_range, negative_place],
    raises=(IndexError, RuntimeError),
    points=1,
)

# %% id="replay_race" role="test"
race(replay, against=replay_slow, on=log_of_writes, at_least={"cpu": 6, "cuda": 8}, points=2)

# %% [markdown]
# ## 5. The best of each group
#
# *Hard, 20 minutes.* For every user the twenty best films, for every expert the tokens that it takes, for every
# class the boxes with the highest scores: groups of different sizes, and of each the `k` best. Build
# `top_by_group(scores, groups, count, k)`. You will want to keep it.
#
# - `scores`: floating-point tensor of shape `(N,)` with finite numbers. `groups`: `int64` tensor of shape
#   `(N,)` with values from 0 to `count - 1`, in any order. Both on the same device. `count` and `k`: numbers,
#   1 or more. `N` may be 0. A group may be empty, and may have fewer than `k` members.
# - returns: `int64` tensor of shape `(count, k)` on that device. Row `g` holds the positions (from 0 to
#   `N - 1`) of the `k` highest scores of group `g`, the highest first. Of equal scores, the one with the
#   smaller position comes first. Where the group has no more members, the row ends with -1.
# - No sync.


# %% id="top_by_group_given" role="given"
def top_by_group_slow(scores, groups, count, k):
    table = groups.new_full((count, k), -1)
    for group in range(count):
        members = (groups == group).nonzero()[:, 0]
        best = scores[members].argsort(descending=True, stable=True)[:k]
        table[group, : len(best)] = members[best]
    return table


def films(generator, device):
    scores = torch.rand(5000, generator=generator)
    return scores.to(device), torch.randint(400, (5000,), generator=generator).to(device), 400, 16


def equal_scores(generator, device):
    scores = torch.randint(3, (50,), generator=generator) / 2
    return scores.to(device), torch.randint(1, 6, (50,), generator=generator).to(device), 8, 12


def nothing_to_rank(generator, device):
    return torch.zeros(0, device=device), torch.zeros(0, dtype=torch.int64, device=device), 3, 2


# %% [markdown]
# <details><summary>Hint 1</summary>Bring everything into one order first: group after group, and inside a group
# the best first. A sort that is <em>stable</em> keeps what an earlier sort did.</details>
# <details><summary>Hint 2</summary>In that order, the column of a member is its rank in its group: how far is it
# from the place where its group starts? The chapter's section 9 says where the groups start. There are two ways from
# here: each cell of the table looks up its member, or each member goes to its cell.</details>
# <details><summary>Hint 3</summary>If the cells look up: which of them have no member, how do you know, and from which
# place may these read without harm? And what if there are no members at all?</details>
# <details><summary>Hint 4</summary>If the members go: row and column together are one number, a place to scatter to.
# Members with a rank of <code>k</code> or more have no cell, and taking them out would need a sync. Let them all go to
# a place of their own, behind the table, that you cut off at the end.</details>


# %% id="top_by_group" role="answer"
def top_by_group(scores, groups, count, k):
    ### BEGIN SOLUTION
    order = scores.argsort(descending=True, stable=True)
    order = order[groups[order].argsort(stable=True)]
    groups_in_order = groups[order]
    counts = groups.new_zeros(count).scatter_add(0, groups, torch.ones_like(groups))
    starts = counts.cumsum(0) - counts
    ranks = torch.arange(len(order), device=order.device) - starts[groups_in_order]
    cells = torch.where(ranks < k, groups_in_order * k + ranks, count * k)
    return groups.new_full((count * k + 1,), -1).scatter(0, cells, order)[:-1].view(count, k)
    ### END SOLUTION


# %% id="top_by_group_check" role="test"
check(top_by_group, like=top_by_group_slow, on=films, points=1)

# %% id="top_by_group_edges" role="test"
check(top_by_group, like=top_by_group_slow, on=[equal_scores, nothing_to_rank], points=1)

# %% id="top_by_group_syncs" role="test"
check(top_by_group, like=top_by_group_slow, on=films, at_most={"syncs": 0}, points=1)


# %% id="top_by_group_hidden" role="test"
# Hidden test: one group, as many groups as members, more asked for than there is, negative scores, one score
# for all, float64. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_group(generator, device):
    return (
        torch.randn(30, generator=generator).to(device),
        torch.zeros(30, dtype=torch.int64, device=device),
        1,
        5,
    )


def each_its_own_group(generator, device):
    scores = -torch.rand(12, generator=generator).double()
    return scores.to(device), torch.randperm(12, generator=generator).to(device), 12, 1


def more_than_there_is(generator, device):
    scores = torch.randn(7, generator=generator) * 1e30
    return scores.to(device), torch.randint(3, (7,), generator=generator).to(device), 4, 9


def one_score_for_all(generator, device):
    return (
        torch.full((300,), -2.5, device=device),
        torch.randint(9, (300,), generator=generator).to(device),
        9,
        20,
    )


check(
    top_by_group,
    like=top_by_group_slow,
    on=[one_group, each_its_own_group, more_than_there_is, one_score_for_all],
    points=2,
)
### END HIDDEN TESTS

# %% id="top_by_group_race" role="test"
race(top_by_group, against=top_by_group_slow, on=films, at_least={"cpu": 4.5, "cuda": 10}, points=3)

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
def edges(x):
    return F.conv2d(x[None, None], torch.ones(4, 1, 3, 3), padding=1)


def bucket(x):
    return torch.cat([row.reshape(-1) for row in x]).div_(4)


def chosen(x):
    return x[x > 1].mean()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (edges, bucket, chosen)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>edges</code> is of chapter 05, <code>bucket</code> is of chapter 08,
# <code>chosen</code> is of chapter 10.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(chosen, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "edges": {"operations": 2, "bytes": 4 * 36 + 16 * n * d, "syncs": 0},
        "bucket": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
        "chosen": {"operations": 3, "bytes": 5 * n * d + 4, "syncs": 1},
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
