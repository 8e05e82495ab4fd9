# %% [markdown]
# # Exercises 05 · cuDNN and repeatable runs
#
# All of these run on the CPU. The speed exercises are about the bookkeeping around a training run; the others are
# about getting the same bits again. The chapter is [here](../../course/05_cudnn.ipynb). 21 points, about 50
# minutes.
#
# Replace the `raise` line in each solution cell, then run the test cells below it. Keep the names of the functions.

# %% id="setup" role="given"
import math

import torch

from autograder import check, race

# %% [markdown]
# ## 1. How many searches?
#
# *Easy, 12 minutes.* With `cudnn.benchmark = True` every new input shape costs a search. Padding the sizes to
# multiples of a step makes fewer shapes. Write `searches(shapes, step)`.
#
# - `shapes`: `int64` tensor of shape `(N, 4)`; each row is one call's input shape: batch, channels, height, width.
#   `step`: a whole number, at least 1.
# - Height and width are first rounded up to the next multiple of `step`.
# - returns: the number of different shapes after rounding, as a Python `int`. No rows give 0.


# %% id="searches_given" role="given"
def searches_slow(shapes, step):
    seen = []
    for batch, channels, height, width in shapes.tolist():
        height = math.ceil(height / step) * step
        width = math.ceil(width / step) * step
        if [batch, channels, height, width] not in seen:
            seen.append([batch, channels, height, width])
    return len(seen)


def many_calls(generator, device):
    sizes = torch.randint(32, 97, (1500, 2), generator=generator)
    return torch.cat([torch.tensor([8, 3]).expand(1500, 2), sizes], dim=1), 4


# %% [markdown]
# <details><summary>Hint 1</summary>Whole numbers can be rounded up without floating point:
# <code>(n + step - 1) // step</code> counts the steps.</details>
# <details><summary>Hint 2</summary>Looking up a list is slow, because it compares with every element. What finds
# duplicates faster: a set of tuples, or one of torch's functions for unique rows?</details>


# %% id="searches" role="answer"
def searches(shapes, step):
    ### BEGIN SOLUTION
    rounded = shapes.clone()
    rounded[:, 2:] = (shapes[:, 2:] + step - 1) // step * step
    return len(set(map(tuple, rounded.tolist())))
    ### END SOLUTION


# %% id="searches_check" role="test"
check(searches, like=searches_slow, on=many_calls, points=1)


# %% id="searches_hidden" role="test"
# Hidden test: other steps, different batches and channels, no calls at all. 2 points, when graded.
### BEGIN HIDDEN TESTS
def mixed_calls(generator, device):
    return torch.randint(1, 5, (200, 4), generator=generator), 2


def step_of_one(generator, device):
    return torch.randint(1, 30, (50, 4), generator=generator), 1


def no_calls(generator, device):
    return torch.zeros(0, 4, dtype=torch.int64), 8


check(searches, like=searches_slow, on=[mixed_calls, step_of_one, no_calls], points=2)
### END HIDDEN TESTS

# %% id="searches_race" role="test"
race(searches, against=searches_slow, on=many_calls, at_least={"cpu": 3}, points=3)

# %% [markdown]
# ## 2. Is the search worth it?
#
# *Easy, 8 minutes.* A training run calls one convolution with inputs of several shapes. Write
# `seconds_saved(calls, usual, best, search)`.
#
# - `calls`: list of numbers; how often each shape comes. `usual`: seconds of one call of each shape without a
#   search. `best`: seconds of one call with the algorithm that the search finds. `search`: seconds of one search.
#   All lists are of the same length.
# - returns: what `benchmark = True` saves over the whole run, in seconds, as a `float`; negative where it costs more
#   than it saves. A shape that never comes is never searched. The search is in addition to the calls.
# - Lists of different lengths must raise `ValueError`.


# %% id="seconds_saved_given" role="given"
def seconds_saved_given(calls, usual, best, search):
    if not len(calls) == len(usual) == len(best):
        raise ValueError("all lists must have the same length")
    without = with_search = 0.0
    for number, slow, fast in zip(calls, usual, best, strict=True):
        for call in range(number):
            without += slow
            with_search += fast + (search if call == 0 else 0)
    return without - with_search


def long_run(generator, device):
    calls = torch.randint(0, 2000, (30,), generator=generator).tolist()
    usual, best = torch.rand(2, 30, generator=generator).double().tolist()
    return calls, usual, best, 5.0


def different_lengths(generator, device):
    return [1, 2], [0.1, 0.1], [0.1], 1.0


# %% [markdown]
# <details><summary>Hint 1</summary>What does one shape save if it comes <i>n</i> times? There is no need to walk
# through the calls.</details>


# %% id="seconds_saved" role="answer"
def seconds_saved(calls, usual, best, search):
    ### BEGIN SOLUTION
    if not len(calls) == len(usual) == len(best):
        raise ValueError(f"lengths differ: {len(calls)}, {len(usual)}, {len(best)}")
    return math.fsum(
        n * (slow - fast) - search for n, slow, fast in zip(calls, usual, best, strict=True) if n
    )
    ### END SOLUTION


# %% id="seconds_saved_check" role="test"
check(seconds_saved, like=seconds_saved_given, on=[long_run], points=1)

# %% id="seconds_saved_lengths" role="test"
check(seconds_saved, like=seconds_saved_given, on=different_lengths, raises=ValueError, points=1)


# %% id="seconds_saved_hidden" role="test"
# Hidden test: one call of each shape, shapes that never come, no shapes. 1 point, when graded.
### BEGIN HIDDEN TESTS
def once_each(generator, device):
    usual, best = torch.rand(2, 8, generator=generator).double().tolist()
    return [1] * 8, usual, best, 0.25


def never(generator, device):
    return [0, 3, 0], [0.5, 0.5, 0.5], [0.25, 0.25, 0.25], 2.0


def nothing(generator, device):
    return [], [], [], 1.0


check(seconds_saved, like=seconds_saved_given, on=[once_each, never, nothing], points=1)
### END HIDDEN TESTS

# %% id="seconds_saved_race" role="test"
race(seconds_saved, against=seconds_saved_given, on=long_run, at_least={"cpu": 5}, points=1)

# %% [markdown]
# ## 3. A run that repeats
#
# *Medium, 15 minutes.* The given training run gives the same losses for the same seed, whatever ran before. It is
# slow, because it builds its data number by number. Write `train(seed, steps)`, with **exactly** the same losses, to
# the last bit.
#
# - `seed`, `steps`: numbers. returns: `float32` tensor of shape `(steps,)`: the loss of each step.
# - The random numbers must come from a generator with this seed, in the same order: first `weight`, then `data`,
#   then `noise`.
# - Leave the draws as they are: other shapes may give other numbers.


# %% id="train_given" role="given"
def train_slow(seed, steps):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(16, generator=generator)
    data = torch.rand(512, 16, generator=generator)
    noise = torch.rand(512, generator=generator)
    target = torch.empty(512)
    for i in range(512):
        target[i] = data[i, 0] - 2 * data[i, 1] + 0.1 * noise[i]
    losses = []
    for _ in range(steps):
        error = data @ weight - target
        losses.append((error * error).mean())
        weight = weight - 0.01 * (data.T @ error)
    return torch.stack(losses)


def short_run(generator, device):
    return int(torch.randint(10_000, (), generator=generator)), 10


# %% [markdown]
# <details><summary>Hint 1</summary>Which loop is the slow one? Its body is the same for every row.</details>
# <details><summary>Hint 2</summary>Element-wise arithmetic on whole columns does the same additions, in the same
# order, for each row. So the bits stay the same. A matrix product may add in another order.</details>


# %% id="train" role="answer"
def train(seed, steps):
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(16, generator=generator)
    data = torch.rand(512, 16, generator=generator)
    noise = torch.rand(512, generator=generator)
    target = data[:, 0] - 2 * data[:, 1] + 0.1 * noise
    losses = torch.empty(steps)
    for step in range(steps):
        error = data @ weight - target
        torch.mean(error * error, dim=0, out=losses[step])
        weight = weight - 0.01 * (data.T @ error)
    return losses
    ### END SOLUTION


# %% id="train_check" role="test"
check(train, like=train_slow, on=short_run, tolerance=0, points=1)


# %% id="train_hidden" role="test"
# Hidden test: other seeds and numbers of steps, and random numbers drawn before. 2 points, when graded.
### BEGIN HIDDEN TESTS
def after_other_draws(generator, device):
    torch.rand(int(torch.randint(1, 50, (), generator=generator)))
    return int(torch.randint(10_000, (), generator=generator)), 7


def single_step(generator, device):
    return 3, 1


check(train, like=train_slow, on=[after_other_draws, single_step], tolerance=0, points=2)
### END HIDDEN TESTS

# %% id="train_race" role="test"
race(train, against=train_slow, on=short_run, at_least={"cpu": 5}, points=3)

# %% [markdown]
# ## 4. Sums that do not depend on the order
#
# *Medium, 15 minutes.* Sums of `float32` depend on the order of the rows. The given version adds each group exactly
# (`math.fsum`) and rounds once at the end. Write a fast `group_sums(values, groups, count)` whose result differs
# from the exact one by at most the last rounding.
#
# - `values`: `float32` tensor of shape `(N,)`. `groups`: `int64` tensor of shape `(N,)`, from 0 to `count - 1`.
#   `count`: a number. Both tensors are on the same device.
# - returns: `float32` tensor of shape `(count,)` on that device. A group without values has the sum 0.
# - The values of a group can be large and of opposite sign, so that adding them in `float32` loses digits.


# %% id="group_sums_given" role="given"
def group_sums_slow(values, groups, count):
    members = [[] for _ in range(count)]
    for value, group in zip(values.tolist(), groups.tolist(), strict=True):
        members[group].append(value)
    return torch.tensor(
        [math.fsum(numbers) for numbers in members], dtype=torch.float32, device=values.device
    )


def large_and_small(generator, device):
    large = 1e4 * torch.randn(5000, generator=generator)
    values = torch.cat([large, torch.rand(10_000, generator=generator), -large])
    groups = torch.randint(50, (5000,), generator=generator)
    groups = torch.cat([groups, torch.randint(50, (10_000,), generator=generator), groups])
    order = torch.randperm(20_000, generator=generator)
    return values[order].to(device), groups[order].to(device), 50


# %% [markdown]
# <details><summary>Hint 1</summary>Which torch function adds each value to the place that an index names?</details>
# <details><summary>Hint 2</summary><code>float64</code> has 29 bits of mantissa more than <code>float32</code>. Where
# must the conversion stand?</details>


# %% id="group_sums" role="answer"
def group_sums(values, groups, count):
    ### BEGIN SOLUTION
    totals = torch.zeros(count, dtype=torch.float64, device=values.device)
    return totals.index_add_(0, groups, values.double()).float()
    ### END SOLUTION


# %% id="group_sums_check" role="test"
check(group_sums, like=group_sums_slow, on=large_and_small, tolerance=2e-7, points=1)


# %% id="group_sums_hidden" role="test"
# Hidden test: empty groups, no values, one group. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def empty_groups(generator, device):
    return torch.rand(5, generator=generator).to(device), torch.tensor([0, 3, 3, 9, 0], device=device), 12


def no_values(generator, device):
    return torch.zeros(0, device=device), torch.zeros(0, dtype=torch.int64, device=device), 3


def one_group(generator, device):
    values = torch.cat([torch.tensor([1e8]), torch.rand(1000, generator=generator), torch.tensor([-1e8])])
    return values.to(device), torch.zeros(1002, dtype=torch.int64, device=device), 1


check(group_sums, like=group_sums_slow, on=[empty_groups, no_values, one_group], tolerance=2e-7, points=2)
### END HIDDEN TESTS

# %% id="group_sums_race" role="test"
race(group_sums, against=group_sums_slow, on=large_and_small, at_least={"cpu": 8, "cuda": 8}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
