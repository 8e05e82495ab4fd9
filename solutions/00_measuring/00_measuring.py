# %% [markdown]
# # Exercises 00 · Measuring
#
# Find what a call costs, count before you run, step without a sync, follow a queue, and build a stopwatch to keep.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden tests
# run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/00_measuring.ipynb). 35 points, about 93 minutes.

# %% id="setup" role="given"
import math
import random
from statistics import median

import torch

from autograder import check, costs, race

# %% [markdown]
# ## 1. Mend a broken timer
#
# *Medium, 12 minutes.* A stopwatch beside a GPU noted, for every block of calls, when the block started, when its
# last call was launched, and when the GPU had finished. `seconds_per_call_broken` makes a result of these readings, and
# a wrong one. Write `seconds_per_call(blocks)`, which finds out what one call costs, and what a block costs beside its
# calls: to wake the GPU up, and to wait for it.
#
# - `blocks`: list of dicts with the keys `"calls"` (how many calls the block has), `"start"`, `"launched"` and
#   `"finished"` (seconds on one clock).
# - Undisturbed, a block of *n* calls takes `fixed + n * seconds` from its start until the GPU has finished, to
#   within 0.5 %. Neither part is small: in an undisturbed block with the fewest calls, `fixed` is a quarter of the
#   time or more; in one with the most calls, `n * seconds` is three quarters or more. Of the blocks with the same
#   number of calls, up to a third are disturbed, and take up to 30 times as long.
# - The first block is the warm-up. It took longer, and tells nothing about `seconds` and `fixed`.
# - returns: a dict of three numbers, each right to within 5 %:
#   - `"seconds"` and `"fixed"`, as above,
#   - `"warm_up"`: how much longer the first block took than it would have taken later.
# - Where all blocks but the first have the same number of calls, or there are no others, `ValueError` must be raised.


# %% id="seconds_per_call_given" role="given"
def seconds_per_call_broken(blocks):
    times = [(block["launched"] - block["start"]) / block["calls"] for block in blocks]
    return {"seconds": sum(times) / len(times), "fixed": 0.0, "warm_up": 0.0}


def made_up_blocks(generator, seconds, fixed, warm_up, counts, each):
    """Blocks of a GPU with these costs: ``each`` blocks of each number of calls, in random order."""
    planned = [(calls, number < each // 3) for calls in counts for number in range(each)]
    order = torch.randperm(len(planned), generator=generator).tolist()
    now, blocks = 100.0, []
    for number, (calls, disturbed) in enumerate([(counts[0], False), *(planned[i] for i in order)]):
        noise, busy, launching = torch.rand(3, generator=generator, dtype=torch.float64).tolist()
        lasts = (fixed + calls * seconds) * (1 + 0.004 * (noise - 0.5))
        lasts = lasts + warm_up if number == 0 else lasts * (2 + 28 * busy) if disturbed else lasts
        times = {"start": now, "launched": now + 0.2 * launching * lasts, "finished": now + lasts}
        blocks.append({"calls": calls, **times})
        now += lasts + 0.01
    return blocks


def two_milliseconds(generator, device):
    return (made_up_blocks(generator, 0.002, 0.003, 0.5, counts=(4, 8, 16, 32), each=7),)


def one_number_of_calls(generator, device):
    return (made_up_blocks(generator, 0.002, 0.003, 0.5, counts=(8,), each=7),)


def new_number_after_warm_up(generator, device):
    first, *others = made_up_blocks(generator, 0.002, 0.003, 0.5, counts=(8,), each=7)
    return ([{**first, "calls": 4}, *others],)


def warm_up_alone(generator, device):
    return (one_number_of_calls(generator, device)[0][:1],)


print(seconds_per_call_broken(*two_milliseconds(torch.Generator(), "cpu")))

# %% [markdown]
# <details><summary>Hint 1</summary>Draw it in your mind: the number of calls to the right, the time of a block upwards.
# Where do the undisturbed blocks lie? Which reading ends a block?</details>
# <details><summary>Hint 2</summary>First get rid of what is disturbed: for each number of calls, find one usual time.
# Which kind of average does not care how far off a third of the values are?</details>
# <details><summary>Hint 3</summary>A block of 32 calls and one of 4 both have the fixed part. What is left of it in
# their difference?</details>


# %% id="seconds_per_call" role="answer"
def seconds_per_call(blocks):
    ### BEGIN SOLUTION
    lasted = {}
    for block in blocks[1:]:
        lasted.setdefault(block["calls"], []).append(block["finished"] - block["start"])
    if len(lasted) < 2:
        raise ValueError("two numbers of calls or more, beside the warm-up")
    fewest, most = min(lasted), max(lasted)
    short, long = median(lasted[fewest]), median(lasted[most])
    each = (long - short) / (most - fewest)
    fixed = short - fewest * each
    first = blocks[0]
    usual = fixed + first["calls"] * each
    return {"seconds": each, "fixed": fixed, "warm_up": first["finished"] - first["start"] - usual}
    ### END SOLUTION


# %% id="seconds_per_call_check" role="test"
def what_it_was_made_of(blocks):
    return {"seconds": 0.002, "fixed": 0.003, "warm_up": 0.5}


check(seconds_per_call, like=what_it_was_made_of, on=two_milliseconds, tolerance=0.05, points=1)


# %% id="seconds_per_call_hidden" role="test"
# Hidden test: other prices, other numbers of calls, only two of them. 3 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def proper_seconds_per_call(blocks):
    points = [(b["calls"], b["finished"] - b["start"]) for b in blocks]
    usual = {n: median(t for m, t in points[1:] if m == n) for n, _ in points[1:]}
    slope = median((usual[n] - usual[m]) / (n - m) for n in usual for m in usual if n > m)
    fixed = median(t - slope * n for n, t in usual.items())
    return {"seconds": slope, "fixed": fixed, "warm_up": points[0][1] - fixed - slope * points[0][0]}


def mostly_fixed(generator, device):
    return (made_up_blocks(generator, 1e-4, 5e-3, 2.0, counts=(40, 10, 80, 20, 160), each=6),)


def two_numbers(generator, device):
    return (made_up_blocks(generator, 0.01, 0.02, 1.0, counts=(2, 50), each=3),)


def nobody_disturbs(generator, device):
    return (made_up_blocks(generator, 3e-6, 2e-5, 1e-3, counts=(100, 7, 1), each=2),)


cases = [mostly_fixed, two_numbers, nobody_disturbs]
check(seconds_per_call, like=proper_seconds_per_call, on=cases, tolerance=0.05, points=3)
### END HIDDEN TESTS

# %% id="seconds_per_call_few" role="test"
few = [one_number_of_calls, new_number_after_warm_up, warm_up_alone]
check(seconds_per_call, like=what_it_was_made_of, on=few, raises=ValueError, points=1)

# %% [markdown]
# ## 2. Count before you run
#
# *Easy, 8 minutes.* `scores` below compares `n` queries with `m` keys of `d` numbers each. Write
# `scores_costs(n, m, d)`, which tells what `scores` costs.
#
# - `n`, `m`, `d`: whole numbers, 1 or more. The queries have the shape `(n, d)`, the keys `(m, d)`, both `float32`.
# - returns: a dict of four whole numbers.
#   - `"operations"`: operations that torch is asked for (views are not counted).
#   - `"allocated"`: bytes of all new tensors together.
#   - `"least_bytes"`: bytes that *any* way to compute this must move: the inputs are read once, the result is
#     written once.
#   - `"flops"`: floating-point operations of the matrix product alone.


# %% id="scores_costs_given" role="given"
def scores(queries, keys):
    products = queries @ keys.T
    scaled = products / 8
    return scaled.softmax(dim=1)


def small(generator, device):
    return 4, 3, 2


# %% [markdown]
# <details><summary>Hint 1</summary>Try <code>costs(scores, torch.rand(4, 2), torch.rand(3, 2))</code>, then other
# sizes. What doubles when <em>n</em> doubles?</details>
# <details><summary>Hint 2</summary>A <code>float32</code> takes 4 bytes. Every line of <code>scores</code> makes a
# new tensor of the same shape. <code>keys.T</code> does not.</details>
# <details><summary>Hint 3</summary>Each of the <em>n</em> · <em>m</em> products of a query with a key multiplies
# <em>d</em> pairs of numbers and adds them up. Section 6 of the chapter counts the same for a square.</details>


# %% id="scores_costs" role="answer"
def scores_costs(n, m, d):
    ### BEGIN SOLUTION
    result = 4 * n * m
    return {
        "operations": 3,
        "allocated": 3 * result,
        "least_bytes": 4 * n * d + 4 * m * d + result,
        "flops": 2 * n * m * d,
    }
    ### END SOLUTION


# %% id="scores_costs_check" role="test"
def for_the_small_size(n, m, d):
    return {"operations": 3, "allocated": 144, "least_bytes": 104, "flops": 48}


check(scores_costs, like=for_the_small_size, on=small, points=1)


# %% id="scores_costs_hidden" role="test"
# Hidden test: other sizes, some of them large. 3 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def proper_scores_costs(n, m, d):
    queries, keys = torch.empty(n, d, device="meta"), torch.empty(m, d, device="meta")
    seen = costs(scores, queries, keys)
    moved = sum(t.numel() * t.element_size() for t in (queries, keys, scores(queries, keys)))
    return {
        "operations": seen.figure("operations"),
        "allocated": seen.bytes,
        "least_bytes": moved,
        "flops": n * m * (d + d),
    }


def some_size(generator, device):
    return tuple(torch.randint(2, 40, (3,), generator=generator).tolist())


def one_of_each(generator, device):
    return 1, 1, 1


def wide(generator, device):
    return 3, 1000, 700


def large(generator, device):
    return 2000, 3000, 64


check(scores_costs, like=proper_scores_costs, on=[some_size, one_of_each, wide, large], points=3)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Find the hidden syncs
#
# *Medium, 18 minutes.* One step of training with many small layers. Each row of `weights` is a layer. A gradient
# that is too long is shortened, and a gradient that is broken is left out. Write
# `careful_step(weights, gradients, rate, longest)` so that Python never waits for a value.
#
# - `weights`, `gradients`: `float32` or `float64` tensors of shape `(layers, size)`, on any device.
# - `rate`, `longest`: numbers above 0.
# - returns: a tuple of two tensors.
#   - The new weights, a tensor like `weights`. For each row:
#     - if the length (`norm`) of the gradient's row is infinite or not a number, the weights stay as they are;
#     - if the length is more than `longest`, the gradient is scaled to the length `longest` first;
#     - then `rate` times the gradient is taken away from the weights.
#   - How many rows were left out, an `int64` tensor without dimensions, on the same device.
# - The given tensors must not be changed. No syncs: the function must run on the `meta` device, too.
# - Two points are for little memory: not much more than the new weights at once. Measure what your first right answer
#   takes.


# %% id="careful_step_given" role="given"
def careful_step_slow(weights, gradients, rate, longest):
    rows, left_out = [], 0
    for weight, gradient in zip(weights, gradients, strict=True):
        length = gradient.norm()
        if not torch.isfinite(length):
            rows.append(weight)
            left_out += 1
            continue
        if length > longest:
            gradient = gradient * (longest / length.item())
        rows.append(weight - rate * gradient)
    return torch.stack(rows), torch.tensor(left_out, device=weights.device)


def layers(generator, device):
    weights, gradients = torch.randn(2, 150, 64, generator=generator)
    gradients[3, 5], gradients[40, 0], gradients[41, 63] = math.nan, math.inf, -math.inf
    return weights.to(device), gradients.to(device), 0.1, 8.0


def long_layers(generator, device):
    weights, gradients = torch.randn(2, 50, 4000, generator=generator)
    gradients[7, 1000], gradients[8, 5] = math.inf, math.nan
    return weights.to(device), gradients.to(device), 0.1, 63.0


def without_values(generator, device):
    return torch.randn(150, 64, device="meta"), torch.randn(150, 64, device="meta"), 0.1, 8.0


def step_or_shapes(weights, gradients, rate, longest):
    if weights.is_meta:  # no values: only shapes, types and devices are compared
        return torch.empty_like(weights), torch.empty((), dtype=torch.int64, device="meta")
    return careful_step_slow(weights, gradients, rate, longest)


# %% [markdown]
# <details><summary>Hint 1</summary>Which lines of the given version need a value in Python?
# <code>costs(careful_step_slow, …)</code> counts them. What would the step be if no row were special?</details>
# <details><summary>Hint 2</summary>All lengths at once: <code>norm</code> takes <code>dim=</code> and
# <code>keepdim=</code>. The factor of a gradient that is short enough is 1, so every row has a factor, and
# <code>clamp</code> knows a <code>max</code>.</details>
# <details><summary>Hint 3</summary><code>torch.where</code> chooses without asking. Put broken rows away at the very
# beginning, or choose at the very end: in between, 0 times <code>nan</code> is <code>nan</code>, so a factor of 0 does
# not remove a broken gradient. And booleans have a <code>sum</code>.</details>
# <details><summary>Hint 4</summary>For the memory, see what <code>costs</code> says is there at once, and how many tables
# like <code>weights</code> that is. Whoever chooses at the end has a table to choose from, and a new one. A table
# that your own function made may be changed in place: by operations whose name ends in <code>_</code>
# (<code>masked_fill_</code> is one), or with <code>out=</code>.</details>


# %% id="careful_step" role="answer"
def careful_step(weights, gradients, rate, longest):
    ### BEGIN SOLUTION
    lengths = gradients.norm(dim=1, keepdim=True)
    factors = (longest / lengths).clamp(max=1) * rate
    broken = ~lengths.isfinite()
    changes = (factors * gradients).masked_fill_(broken, 0)
    return torch.sub(weights, changes, out=changes), broken.sum()
    ### END SOLUTION


# %% id="careful_step_check" role="test"
check(careful_step, like=careful_step_slow, on=layers, points=1)

# %% id="careful_step_syncs" role="test"
check(careful_step, like=step_or_shapes, on=[layers, without_values], at_most={"syncs": 0}, points=2)

# %% id="careful_step_memory" role="test"
check(careful_step, like=careful_step_slow, on=long_layers, peak=int(1.4 * 50 * 4000 * 4), points=2)


# %% id="careful_step_hidden" role="test"
# Hidden test: other sizes and types, gradients of 0, one row, only broken rows. 2 points, when graded.
### BEGIN HIDDEN TESTS
def some_zeros(generator, device):
    weights, gradients = torch.randn(2, 20, 7, generator=generator, dtype=torch.float64)
    gradients[::3] = 0
    gradients[1::3] *= 0.01
    return weights.to(device), gradients.to(device), 0.5, 0.3


def one_layer(generator, device):
    weights, gradients = torch.randn(2, 1, 3, generator=generator).to(device)
    return weights, gradients, 1.0, 100.0


def all_broken(generator, device):
    weights, gradients = torch.randn(4, 5, generator=generator), torch.full((4, 5), math.nan)
    return weights.to(device), gradients.to(device), 0.1, 1.0


def one_number_each(generator, device):
    weights, gradients = torch.randn(2, 9, 1, generator=generator)
    gradients[4] = math.inf
    return weights.to(device), gradients.to(device), 2.0, 0.5


check(careful_step, like=careful_step_slow, on=[some_zeros, one_layer, all_broken, one_number_each], points=2)
### END HIDDEN TESTS

# %% id="careful_step_race" role="test"
race(careful_step, against=careful_step_slow, on=layers, at_least={"cpu": 12, "cuda": 15}, points=2)

# %% [markdown]
# ## 4. Follow the queue
#
# *Hard, 25 minutes.* A profile of a training says when Python launched each kernel, and how long each kernel ran. From
# that follows who waited for whom: the picture in section 2 of the chapter, in numbers. Write
# `follow_queue(launches, works)`.
#
# - `launches`: tensor of shape `(N, T)`, `float64`: the moments, in milliseconds, when Python launched each of *N*
#   kernels in each of *T* steps; they rise in each column. `works`: tensor like it: how many milliseconds each kernel
#   runs, 0 or more. *N* and *T* are 1 or more.
# - The GPU runs the kernels of a step one after the other. A kernel starts as soon as it is launched and the one before
#   it has ended. The steps have nothing to do with each other.
# - returns: a dict of three tensors.
#   - `"ended"`, shape `(N, T)`: when each kernel ended.
#   - `"idle"`, shape `(T,)`: how long the GPU had nothing to do, from the first kernel's start to the last one's end.
#   - `"waited"`, shape `(T,)`: how long Python waits if it synchronises right after its last launch.
# - Works on any device, without a sync. The given tensors must not be changed.
# - The race is run on the CPU, with 16 kernels in each of 20,000 steps. A first right answer earns about half of
#   its points, or less. Measure. One more point is for little memory: not much more than the result at once.


# %% id="follow_queue_given" role="given"
def follow_queue_slow(launches, works):
    ended = []
    for i in range(len(works)):
        # Since some kernel j was launched, there was no gap. If it was j: how much work was there from j to i?
        work_since = works[: i + 1].flip(0).cumsum(0).flip(0)
        ended.append((launches[: i + 1] + work_since).amax(0))
    ended = torch.stack(ended)
    starts = ended - works
    idle = (starts[1:] - ended[:-1]).sum(0)
    return {"ended": ended, "idle": idle, "waited": ended[-1] - launches[-1]}


def steps(generator, device, kernels=16, number=20_000):
    pauses, works = torch.rand(2, kernels, number, generator=generator, dtype=torch.float64)
    works = 3 * works * torch.rand(number, generator=generator, dtype=torch.float64)
    return (0.1 + pauses.cumsum(0)).to(device), works.to(device)


def steps_without_values(generator, device):
    return torch.empty(9, 4, dtype=torch.float64, device="meta"), torch.empty(
        9, 4, dtype=torch.float64, device="meta"
    )


def queue_or_shapes(launches, works):
    if launches.is_meta:  # no values: only shapes, types and devices are compared
        return {"ended": torch.empty_like(launches), "idle": launches[0], "waited": launches[0]}
    return follow_queue_slow(launches, works)


# %% [markdown]
# <details><summary>Hint 1</summary>Begin with a right answer of your own, and look at what <code>costs</code> says of it
# on <code>steps(torch.Generator(), "cpu")</code>: one table of numbers has 2.6 MB. Then time its lines with
# <code>compare</code> (<code>from autograder import compare</code>). Which one takes the most, and which takes
# more than its bytes explain?</details>
# <details><summary>Hint 2</summary>Few operations are good where the tensors are small. Here a row of 20,000 numbers
# makes even one call for each row cheap. And what was just written is still in a cache, if it was not too much.
# Compare an operation that walks through the whole table (<code>cumsum</code>, <code>cummax</code>) with one for each
# row.</details>
# <details><summary>Hint 3</summary>What does a kernel need to know of all those before it? Only one moment: when the
# last of them ended. That is one row, for all steps at once.</details>
# <details><summary>Hint 4</summary>A list of rows that are stacked at the end is all of the result twice. Make the result
# at the start, and let each operation write to its place there (<code>out=</code>, or in place). The GPU is idle
# whenever it does not work: compare the time between its first start and its last end with the sum of the work.</details>


# %% id="follow_queue" role="answer"
def follow_queue(launches, works):
    ### BEGIN SOLUTION
    ended = torch.empty_like(works)
    free = launches[0]
    for launched, work, end in zip(launches, works, ended, strict=True):
        free = torch.maximum(launched, free, out=end).add_(work)
    busy = works.sum(0)
    return {"ended": ended, "idle": free - launches[0] - busy, "waited": free - launches[-1]}
    ### END SOLUTION


# %% id="follow_queue_check" role="test"
check(follow_queue, like=follow_queue_slow, on=steps, points=1)

# %% id="follow_queue_syncs" role="test"
check(follow_queue, like=queue_or_shapes, on=[steps, steps_without_values], at_most={"syncs": 0}, points=1)

# %% id="follow_queue_memory" role="test"
check(follow_queue, like=follow_queue_slow, on=steps, peak=int(1.4 * 16 * 20_000 * 8), points=1)


# %% id="follow_queue_hidden" role="test"
# Hidden test: one kernel, one step, kernels without work, always busy, hardly ever busy. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_kernel(generator, device):
    return steps(generator, device, 1, 5)


def one_step(generator, device):
    launches, works = steps(generator, device, 40, 1)
    return launches - 10, works


def no_work(generator, device):
    launches, works = steps(generator, device, 12, 6)
    return launches, works * (works > works.mean())


def busy_or_not(generator, device):
    launches, works = steps(generator, device, 20, 6)
    return launches, works * torch.tensor([1e-3, 0.1, 1, 3, 10, 100], dtype=torch.float64, device=device)


def follow(launches, works):
    found = follow_queue(launches, works)
    return {**found, "idle": found["idle"] + 1}  # rounding may make a little of nothing


def follow_slow(launches, works):
    found = follow_queue_slow(launches, works)
    return {**found, "idle": found["idle"] + 1}


check(follow, like=follow_slow, on=[one_kernel, one_step, no_work, busy_or_not], points=2)
### END HIDDEN TESTS

# %% id="follow_queue_race" role="test"
race(follow_queue, against=follow_queue_slow, on=steps, at_least={"cpu": 5.4}, points=3)

# %% [markdown]
# ## 5. A stopwatch that can be trusted
#
# *Hard, 20 minutes.* Build one to keep. It decides what is timed next, takes the readings, and says which of two
# functions is faster, or that it cannot tell. Write the class `Stopwatch`.
#
# - `Stopwatch(error)`: `error` is a number between 0 and 1, see below.
# - `next()` returns `"A"` or `"B"`: the function that the next block is to time.
# - `take(seconds)` takes the time of that block, a number above 0. After each `next()` there is one `take`.
# - Blocks 1 and 2 are a pair, blocks 3 and 4 the next one, and so on. Each pair has a block of A and one of B; its
#   ratio is A's seconds divided by B's. The first pair is the warm-up: it does not count, nor does half a pair.
# - `result()` returns a dict, of the *N* pairs that count. It may be asked for at any time.
#   - `"ratio"`: the median of the ratios (for an even *N*, the mean of the two in the middle). `None` if *N* is 0.
#   - `"low"` and `"high"`: sort the ratios and leave out *k* at each end; the smallest and the largest that are left.
#     *k* is the largest number for which the chance that at most *k* of *N* coins show heads is `error / 2` or less.
#     Both are `None` if there is no such *k*.
#   - `"faster"`: `"A"` if the whole interval is below 1, `"B"` if it is above 1, and `None` if the stopwatch cannot tell.
# - For two equal functions, `"faster"` must be `None`, except with the chance `error`. That must hold on every
#   machine: one that gets slower and slower, a busy one, one with a rhythm of any length, say with two slow blocks
#   in every four.


# %% id="stopwatch_given" role="given"
def time_on(machine, stopwatch):
    """Time two made-up functions: what ``result`` says then.

    The i-th block of A takes ``machine["A"][i]`` seconds, that of B ``machine["B"][i]``. But the t-th block of all
    takes ``machine["pace"][t]`` times as long, whichever function it times.
    """
    done = {"A": 0, "B": 0}
    for pace in machine["pace"]:
        side = stopwatch.next()
        if side not in done:
            raise ValueError(f"next() must return 'A' or 'B', not {side!r}")
        stopwatch.take(machine[side][done[side]] * pace)
        done[side] += 1
    return stopwatch.result()


def ten_pairs(generator, device):
    a = [9.0, 3.0, 20.0, 5.0, 12.0, 2.0, 40.0, 4.0, 4.0, 6.0]
    b = [1.0, 1.0, 10.0, 2.0, 20.0, 2.0, 10.0, 1.0, 8.0, 1.0]
    machine = {"A": [*a, 1.0], "B": [*b, 1.0], "pace": [1.0] * 21}
    return [machine] * 3, [0.05, 0.01, 0.001]


def made_up(generator, cost, pace):
    """A machine with this ``pace`` on which A takes ``cost`` times as long as B, but for a little noise."""
    noise = (0.01 * torch.randn(2, len(pace), generator=generator, dtype=torch.float64)).exp()
    return {"A": (cost * noise[0]).tolist(), "B": noise[1].tolist(), "pace": pace, "truth": cost}


def some_paces(generator, blocks=120):
    """What may happen to a machine in so many blocks."""
    busy = torch.rand(blocks, generator=generator) < 1 / 12
    return {
        "slower and slower": [1.02**t for t in range(blocks)],
        "busy now and then": (1 + 9 * busy * torch.rand(blocks, generator=generator)).tolist(),
        "every second block slow": [1.0, 1.3] * (blocks // 2),
        "two slow blocks in four": [1.0, 1.3, 1.3, 1.0] * (blocks // 4),
    }


def equal_functions(generator, device):
    return [made_up(generator, 1.0, pace) for pace in some_paces(generator).values()], [1e-4] * 4


def different_functions(generator, device):
    paces = some_paces(generator)
    slower, busy = paces["slower and slower"], paces["busy now and then"]
    pairs = [(1.3, slower), (1.3, busy), (0.75, slower), (0.75, busy)]
    return [made_up(generator, cost, pace) for cost, pace in pairs], [1e-4] * 4


def hardly_begun(generator, device):
    machine = {"A": [9.0, 3.0, 1.0], "B": [1.0, 2.0, 1.0]}
    return [{**machine, "pace": [1.0] * blocks} for blocks in range(6)], [0.05] * 6


# %% [markdown]
# By hand, for `ten_pairs`: without the warm-up, the sorted ratios are 0.5, 0.6, 1, 2, 2.5, 3, 4, 4, 6. The chance of at
# most 1 head among 9 coins is (1 + 9) / 512 = 2.0 %, of at most 2 heads (1 + 9 + 36) / 512 = 9.0 %. So for an error of
# 5 % *k* is 1, and the interval is 0.6 to 4. When it works, try it on functions of your own: `next()` says which of them
# to call some hundred times, and `time.process_time` what `take` gets.
#
# <details><summary>Hint 1</summary>Three things to remember: the readings of A, those of B, and which side this block is
# for. The last ones of the two lists belong together only if both are there.</details>
# <details><summary>Hint 2</summary>Whoever always comes first in a pair meets the same part of the machine's rhythm. So
# does whoever comes first in every second pair, with another rhythm. Which order has no rhythm at all?</details>
# <details><summary>Hint 3</summary><code>math.comb(N, heads)</code> of the 2<sup>N</sup> results have so many
# heads. Start with no heads, and add while the sum stays small enough. With no heads at all, it may be too much
# already.</details>


# %% id="stopwatch" role="answer"
class Stopwatch:
    def __init__(self, error):
        ### BEGIN SOLUTION
        self.error = error
        self.readings = {"A": [], "B": []}
        self.pair = []
        ### END SOLUTION

    def next(self):
        ### BEGIN SOLUTION
        if not self.pair:
            self.pair = random.sample(["A", "B"], 2)
        self.side = self.pair.pop()
        return self.side
        ### END SOLUTION

    def take(self, seconds):
        ### BEGIN SOLUTION
        self.readings[self.side].append(seconds)
        ### END SOLUTION

    def result(self):
        ### BEGIN SOLUTION
        pairs = zip(self.readings["A"][1:], self.readings["B"][1:], strict=False)
        ratios = sorted(a / b for a, b in pairs)
        number = len(ratios)
        left_out, ways = -1, 1
        while 2 * ways <= self.error * 2**number:
            left_out += 1
            ways += math.comb(number, left_out + 1)
        if left_out < 0:
            return {
                "ratio": median(ratios) if ratios else None,
                "low": None,
                "high": None,
                "faster": None,
            }
        low, high = ratios[left_out], ratios[-1 - left_out]
        faster = "A" if high < 1 else "B" if low > 1 else None
        return {"ratio": median(ratios), "low": low, "high": high, "faster": faster}
        ### END SOLUTION


# %% id="stopwatch_check" role="test"
def results(machines, errors):
    return [time_on(machine, Stopwatch(error)) for machine, error in zip(machines, errors, strict=True)]


def by_hand(machines, errors):
    intervals = ((0.6, 4.0), (0.5, 6.0), (None, None))
    return [{"ratio": 2.5, "low": low, "high": high, "faster": None} for low, high in intervals]


check(results, like=by_hand, on=ten_pairs, points=1)


# %% id="stopwatch_moods" role="test"
def who_is_faster(machines, errors):
    found = zip(machines, results(machines, errors), strict=True)
    return [(r["faster"], r["ratio"] if machine["truth"] != 1 else None) for machine, r in found]


def as_made(machines, errors):
    truths = [machine["truth"] for machine in machines]
    return [(None, None) if truth == 1 else ("B" if truth > 1 else "A", truth) for truth in truths]


check(who_is_faster, like=as_made, on=[equal_functions, different_functions], tolerance=0.04, points=2)


# %% id="stopwatch_begun" role="test"
def too_early_to_tell(machines, errors):
    unknown = {"low": None, "high": None, "faster": None}
    return [{"ratio": ratio, **unknown} for ratio in (None, None, None, None, 1.5, 1.5)]


check(results, like=too_early_to_tell, on=hardly_begun, points=1)


# %% id="stopwatch_hidden" role="test"
# Hidden test: more and fewer pairs, odd and even, other errors. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def proper_results(machines, errors):
    return [proper_result(machine, error) for machine, error in zip(machines, errors, strict=True)]


def proper_result(machine, error):
    number = len(machine["pace"]) // 2
    quotients = torch.tensor(machine["A"][1:number], dtype=torch.float64) / torch.tensor(
        machine["B"][1:number], dtype=torch.float64
    )
    quotients = quotients.sort().values.tolist()
    n = len(quotients)
    chances = [sum(math.comb(n, i) for i in range(k + 1)) / 2**n for k in range(n)]
    k = sum(chance <= error / 2 for chance in chances) - 1
    found = {"ratio": median(quotients) if n else None, "low": None, "high": None, "faster": None}
    if k >= 0:
        found["low"], found["high"] = quotients[k], quotients[n - 1 - k]
        found["faster"] = "A" if found["high"] < 1 else "B" if found["low"] > 1 else None
    return found


def steady(generator, cost, blocks):
    spread = (0.2 * torch.randn(2, blocks, generator=generator)).exp().double()
    return {"A": (cost * spread[0]).tolist(), "B": spread[1].tolist(), "pace": [1.0] * blocks}


def many_pairs(generator, device):
    errors = [0.05, 0.3, 1e-3, 1e-4, 1e-6, 0.05, 0.05, 0.9]
    lengths = [42, 43, 82, 121, 30, 12, 13, 20]
    costs_of_a = [1.0, 1.5, 1.2, 0.5, 0.9, 2.0, 2.0, 1.0]
    return [steady(generator, c, n) for c, n in zip(costs_of_a, lengths, strict=True)], errors


check(results, like=proper_results, on=many_pairs, points=2)
### END HIDDEN TESTS


# %% id="stopwatch_rhythms" role="test"
# Hidden test: machines with other moods. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def other_moods(generator, device):
    restless = torch.rand(120, generator=generator, dtype=torch.float64).add(1).tolist()
    faster = [1.03**-t for t in range(120)]
    rhythms = [[1.5, 1.0] * 60, [1.4, 1.0, 1.0, 1.4] * 30, [1.0, 1.0, 1.0, 1.4, 1.4, 1.4] * 20]
    equal = [made_up(generator, 1.0, pace) for pace in (*rhythms, restless, faster)]
    return [*equal, made_up(generator, 1.2, faster), made_up(generator, 0.8, [1.0] * 120)], [1e-4] * 7


check(who_is_faster, like=as_made, on=other_moods, tolerance=0.04, points=1)
### END HIDDEN TESTS

# %% [markdown]
# ## 6. Foretell the costs
#
# *Easy, 10 minutes.* Three functions. Each gets `x`, a tensor of `float32` with the shape `(n, d)`, whose
# numbers are all 2. Write `foretold(n, d)`, which says what `costs` counts then.
#
# - `n`, `d`: integers from 2 on.
# - returns: a dict with the names of the three functions. Each value is a dict of three integers: `"operations"` (views
#   are not counted), `"bytes"` of all new tensors together, and `"syncs"`, where the host would wait for a GPU.
# - `foretold` asks torch for nothing.


# %% id="foretold_given" role="given"
def similar(x):
    return (x @ x.T).softmax(dim=1)


def centred(x):
    return x - x.mean(dim=0)


def report(x):
    return [row.sum().item() for row in x]


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (similar, centred, report)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there?</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(report, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "similar": {"operations": 2, "bytes": 8 * n * n, "syncs": 0},
        "centred": {"operations": 2, "bytes": 4 * d + 4 * n * d, "syncs": 0},
        "report": {"operations": 2 * n, "bytes": 4 * n, "syncs": n},
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
