# %% [markdown]
# # Exercises 10 · Selection
#
# Four functions. Each is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one.
# Hidden tests run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/10_selection.ipynb). 30 points, about 55 minutes.

# %% id="setup" role="given"
import torch

from autograder import check, race

# %% [markdown]
# ## 1. The entropy of each row
#
# *Easy, 12 minutes.* How sure is a classifier? The entropy of its probabilities tells. Write `entropy(p)`.
#
# - `p`: floating-point tensor of shape `(N, K)`, on any device, of any floating-point type. No number is
#   negative; **many are exactly 0**.
# - returns: tensor of shape `(N,)`, of that type and on that device: the sum of `-p * log(p)` over each
#   row, where a 0 counts as 0. A row of zeros only has the entropy 0.
# - The gradient must be `-log(p) - 1` where `p` is not 0. Where it is 0, it must be 0: not NaN, not infinite.
# - No sync.
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
check(entropy, like=entropy_slow, on=sparse_rows, gradients=True, points=2)

# %% id="entropy_syncs" role="test"
check(entropy, like=entropy_slow, on=sparse_rows, gradients=True, at_most={"syncs": 0}, points=1)


# %% id="entropy_hidden" role="test"
# Hidden test: other sizes, float64, rows of zeros, certain rows, no rows. 2 points, when your notebook is
# graded.
### BEGIN HIDDEN TESTS
def float64_rows(generator, device):
    return torch.rand(7, 3, generator=generator).double().clamp(min=0.4).sub(0.4).to(device)


def rows_of_zeros(generator, device):
    p = torch.rand(4, 6, generator=generator)
    p[1] = 0
    p[3, :5] = 0
    return p.to(device)


def certain_rows(generator, device):
    return torch.eye(5)[torch.randint(5, (9,), generator=generator)].to(device)


def no_rows_at_all(generator, device):
    return torch.zeros(0, 4, device=device)


def tiny_probabilities(generator, device):
    return (torch.rand(6, 4, generator=generator) * 1e-30).to(device)


check(
    entropy,
    like=entropy_slow,
    on=[float64_rows, rows_of_zeros, certain_rows, no_rows_at_all, tiny_probabilities],
    gradients=True,
    points=2,
)
### END HIDDEN TESTS

# %% id="entropy_shape" role="test"
check(entropy, like=entropy_slow, on=one_row_only, raises=ValueError, points=1)

# %% id="entropy_race" role="test"
race(entropy, against=entropy_slow, on=sparse_rows, at_least={"cpu": 5, "cuda": 5}, points=2)

# %% [markdown]
# ## 2. A softmax for each group
#
# *Medium, 15 minutes.* In a graph, every node weighs its neighbours: the scores of the edges that arrive at
# a node are turned into weights with sum 1. Write `group_softmax(scores, groups, count)`.
#
# - `scores`: floating-point tensor of shape `(N,)`. `groups`: `int64` tensor of shape `(N,)` with values
#   from 0 to `count - 1`, in any order. Both on the same device. `count`: a number. A group may be empty.
# - returns: tensor of shape `(N,)`, of the type of `scores`. Element *i* is `exp(scores[i])`, divided by
#   the sum of the `exp` of all scores of its group.
# - Scores may be as large as 1,000, or as small as -1,000. Differences between groups may be as large.
# - Gradients must be right. No sync.
# - A group of `count` or more, or a negative one, must raise `IndexError` or `RuntimeError` (on the CPU).


# %% id="group_softmax_given" role="given"
def group_softmax_slow(scores, groups, count):
    if len(groups) and not 0 <= groups.min() <= groups.max() < count:
        raise IndexError(f"the groups are not in 0 to {count - 1}")
    weights = torch.zeros_like(scores)
    for group in range(count):
        members = groups == group
        weights[members] = scores[members].softmax(dim=0)
    return weights


def edges(generator, device):
    groups = torch.randint(200, (3000,), generator=generator)
    return torch.randn(3000, generator=generator).to(device), groups.to(device), 200


def group_out_of_range(generator, device):
    return torch.randn(3, generator=generator), torch.tensor([0, 2, 1]), 2


def negative_group(generator, device):
    return torch.randn(3, generator=generator), torch.tensor([0, -1, 1]), 2


# %% [markdown]
# <details><summary>Hint 1</summary>Three steps: the largest score of each group, the sum of the
# <code>exp</code> of what is left, a division. How does a number about a group come back to its
# members?</details>
# <details><summary>Hint 2</summary><code>scatter_reduce</code> knows <code>"amax"</code>. With what must
# the tensor be filled that it starts from, if all scores of a group are negative?</details>
# <details><summary>Hint 3</summary>Subtracting the same number from all scores of a group does not change
# the result. So no gradient is needed through that number.</details>


# %% id="group_softmax" role="answer"
def group_softmax(scores, groups, count):
    ### BEGIN SOLUTION
    largest = scores.new_full((count,), -torch.inf)
    largest = largest.scatter_reduce(0, groups, scores.detach(), "amax")
    powers = (scores - largest[groups]).exp()
    sums = scores.new_zeros(count).index_add(0, groups, powers)
    return powers / sums[groups]
    ### END SOLUTION


# %% id="group_softmax_check" role="test"
check(group_softmax, like=group_softmax_slow, on=edges, points=1)

# %% id="group_softmax_gradients" role="test"
check(group_softmax, like=group_softmax_slow, on=edges, gradients=True, at_most={"syncs": 0}, points=1)


# %% id="group_softmax_hidden" role="test"
# Hidden test: large scores, empty groups, one group, no scores, float64. 2 points, when your notebook is
# graded.
### BEGIN HIDDEN TESTS
def large_scores(generator, device):
    groups = torch.randint(5, (40,), generator=generator)
    scores = (
        torch.randn(40, generator=generator) + torch.tensor([1000.0, -1000.0, 0.0, 500.0, -300.0])[groups]
    )
    return scores.to(device), groups.to(device), 5


def empty_groups(generator, device):
    groups = torch.tensor([7, 3, 3, 7, 0, 3], device=device)
    return torch.randn(6, generator=generator).double().to(device) - 5, groups, 9


def single_group(generator, device):
    return (
        torch.randn(30, generator=generator).to(device),
        torch.zeros(30, dtype=torch.int64, device=device),
        1,
    )


def no_scores(generator, device):
    return torch.zeros(0, device=device), torch.zeros(0, dtype=torch.int64, device=device), 3


check(
    group_softmax, like=group_softmax_slow, on=[large_scores, empty_groups, single_group, no_scores], points=2
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
race(group_softmax, against=group_softmax_slow, on=edges, at_least={"cpu": 12, "cuda": 10}, points=2)

# %% [markdown]
# ## 3. A confusion matrix
#
# *Medium, 13 minutes.* Which class is taken for which? Write `confusion(truth, guesses, classes)`.
#
# - `truth`, `guesses`: `int64` tensors of the same shape, on the same device; any number of dimensions.
#   `guesses` are from 0 to `classes - 1`. `truth` is as well, or it is -100: **such a place is not
#   counted** (nobody knows what is there).
# - returns: `int64` tensor of shape `(classes, classes)` on that device. Entry `[t, g]` counts the places
#   where the truth is `t` and the guess is `g`.
# - No sync: the function is called at every step of a training. (The given version has none either.)
# - Tensors of different shapes must raise `ValueError`.


# %% id="confusion_given" role="given"
def confusion_slow(truth, guesses, classes):
    if truth.shape != guesses.shape:
        raise ValueError(f"the shapes differ: {tuple(truth.shape)} and {tuple(guesses.shape)}")
    cells = [((truth == t) & (guesses == g)).sum() for t in range(classes) for g in range(classes)]
    return torch.stack(cells).view(classes, classes)


def label_maps(generator, device):
    truth, guesses = torch.randint(16, (2, 4, 32, 32), generator=generator)
    unknown = torch.rand(4, 32, 32, generator=generator) < 0.1
    return truth.masked_fill(unknown, -100).to(device), guesses.to(device), 16


def different_shapes(generator, device):
    return torch.tensor([0, 1, 1], device=device), torch.tensor([0, 1], device=device), 2


# %% [markdown]
# <details><summary>Hint 1</summary>Make one number out of two. Then it is a histogram with
# <code>classes</code> squared bins.</details>
# <details><summary>Hint 2</summary>Places that do not count need not be taken out. They could count 0, or
# go into a bin of their own that you cut off at the end.</details>
# <details><summary>Hint 3</summary><code>bincount</code> waits. Which function adds into a tensor of known
# size?</details>


# %% id="confusion" role="answer"
def confusion(truth, guesses, classes):
    ### BEGIN SOLUTION
    if truth.shape != guesses.shape:
        raise ValueError(f"the shapes differ: {tuple(truth.shape)} and {tuple(guesses.shape)}")
    truth, guesses = truth.reshape(-1), guesses.reshape(-1)
    known = truth != -100
    bins = torch.where(known, truth * classes + guesses, 0)
    counts = torch.zeros(classes * classes, dtype=torch.int64, device=truth.device)
    return counts.scatter_add_(0, bins, known.long()).view(classes, classes)
    ### END SOLUTION


# %% id="confusion_check" role="test"
check(confusion, like=confusion_slow, on=label_maps, points=1)

# %% id="confusion_syncs" role="test"
check(confusion, like=confusion_slow, on=label_maps, at_most={"syncs": 0}, points=1)


# %% id="confusion_hidden" role="test"
# Hidden test: other shapes, only unknown places, a class that never occurs, no places, one class. 2 points,
# when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_line(generator, device):
    truth, guesses = torch.randint(3, (2, 50), generator=generator)
    return truth.to(device), guesses.to(device), 7


def only_unknown(generator, device):
    return torch.full((6,), -100, device=device), torch.randint(4, (6,), generator=generator).to(device), 4


def unknown_and_zero(generator, device):
    truth = torch.tensor([[-100, 0], [0, -100]], device=device)
    return truth, torch.zeros(2, 2, dtype=torch.int64, device=device), 2


def no_places(generator, device):
    return (
        torch.zeros(0, 3, dtype=torch.int64, device=device),
        torch.zeros(0, 3, dtype=torch.int64, device=device),
        2,
    )


def only_one_class(generator, device):
    return torch.tensor([0, -100, 0], device=device), torch.zeros(3, dtype=torch.int64, device=device), 1


check(
    confusion,
    like=confusion_slow,
    on=[one_line, only_unknown, unknown_and_zero, no_places, only_one_class],
    points=2,
)
### END HIDDEN TESTS

# %% id="confusion_shapes" role="test"
check(confusion, like=confusion_slow, on=different_shapes, raises=ValueError, points=1)

# %% id="confusion_race" role="test"
race(confusion, against=confusion_slow, on=label_maps, at_least={"cpu": 10, "cuda": 20}, points=2)

# %% [markdown]
# ## 4. The last write wins
#
# *Hard, 15 minutes.* A log holds writes to a table, oldest first: "put this value there". Many places are
# written more than once. `scatter` does not promise who wins, and its gradients are wrong. Write
# `replay(table, places, values)`, where **the last write wins**: on every device, with any number of
# threads, and with right gradients.
#
# - `table`: floating-point tensor of shape `(size,)`. `places`: `int64` tensor of shape `(W,)` with values
#   from 0 to `size - 1`. `values`: tensor of shape `(W,)` and of the type of `table`. All on the same
#   device. `W` may be 0.
# - returns: a new tensor like `table`. A place that was written holds the last value that was sent there;
#   any other place holds what it held in `table`.
# - The gradient of a value that was overwritten is 0. No sync.
# - A place outside the table, negative or too large, must raise `IndexError` or `RuntimeError` (on the CPU).


# %% id="replay_given" role="given"
def replay_slow(table, places, values):
    last = {}
    for i, place in enumerate(places.tolist()):
        if not 0 <= place < len(table):
            raise IndexError(f"place {place} is not in 0 to {len(table) - 1}")
        last[place] = i
    cells = [values[last[place]] if place in last else table[place] for place in range(len(table))]
    return torch.stack(cells) if cells else table.clone()


def log_of_writes(generator, device):
    table, values = torch.rand(1000, generator=generator), torch.rand(2000, generator=generator)
    places = torch.randint(1000, (2000,), generator=generator)
    return table.to(device), places.to(device), values.to(device)


def place_out_of_range(generator, device):
    return torch.rand(3, generator=generator), torch.tensor([0, 3]), torch.rand(2, generator=generator)


def negative_place(generator, device):
    return torch.rand(3, generator=generator), torch.tensor([0, -1]), torch.rand(2, generator=generator)


# %% [markdown]
# <details><summary>Hint 1</summary>Do not scatter the values. For each place, find the <em>number</em> of
# the write that wins. Then read its value.</details>
# <details><summary>Hint 2</summary>Among the numbers of all writes to a place, the last is the
# largest.</details>
# <details><summary>Hint 3</summary>A place without a write is no special case, if the table's own numbers
# are lined up before the values, and each place starts out pointing at itself.</details>


# %% id="replay" role="answer"
def replay(table, places, values):
    ### BEGIN SOLUTION
    size = len(table)
    numbers = torch.arange(size + len(values), device=table.device)
    source = numbers[:size].scatter_reduce(0, places, numbers[size:], "amax")
    return torch.cat([table, values])[source]
    ### END SOLUTION


# %% id="replay_check" role="test"
check(replay, like=replay_slow, on=log_of_writes, points=1)

# %% id="replay_gradients" role="test"
check(replay, like=replay_slow, on=log_of_writes, gradients=True, at_most={"syncs": 0}, points=2)


# %% id="replay_hidden" role="test"
# Hidden test: all writes to one place, no writes, every place once, float64, special values. 2 points, when
# your notebook is graded.
### BEGIN HIDDEN TESTS
def one_place(generator, device):
    places = torch.full((20,), 3, device=device)
    return (
        torch.rand(5, generator=generator).to(device),
        places,
        torch.randn(20, generator=generator).to(device),
    )


def no_writes(generator, device):
    nothing = torch.zeros(0, device=device)
    return (
        torch.rand(4, generator=generator).to(device),
        torch.zeros(0, dtype=torch.int64, device=device),
        nothing,
    )


def every_place_once(generator, device):
    table, values = torch.randn(2, 12, generator=generator).double()
    return table.to(device), torch.randperm(12, generator=generator).to(device), values.to(device)


def overwritten_nan(generator, device):
    values = torch.tensor([float("nan"), 2.0, -1.0, float("inf"), 0.0], device=device)
    return torch.rand(3, generator=generator).to(device), torch.tensor([0, 0, 2, 2, 2], device=device), values


check(
    replay,
    like=replay_slow,
    on=[one_place, no_writes, every_place_once, overwritten_nan],
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
race(replay, against=replay_slow, on=log_of_writes, at_least={"cpu": 12, "cuda": 10}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
