# %% [markdown]
# # Exercises 00 · Measuring
#
# Five functions about measuring. The first three work on readings and counts, so they give the same answer on
# every machine. The last two are given slow; count, and make them fast.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden tests
# run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/00_measuring.ipynb). 28 points, about 60 minutes.

# %% id="setup" role="given"
import math
import time
from statistics import median

import torch

from autograder import check, costs, race

# %% [markdown]
# ## 1. Mend a broken timer
#
# *Easy, 10 minutes.* `readings` below is a stopwatch for matrix products, on any device. For every block of calls
# it notes when the block started, when the last call was launched, and when the device had finished.
# `seconds_per_call_broken` makes a result of these readings, and a wrong one. Write `seconds_per_call(blocks)`.
#
# - `blocks`: list of *N* dicts with the keys `"calls"` (how many calls the block has; blocks may differ),
#   `"start"`, `"launched"` and `"finished"` (seconds on one clock).
# - returns: a dict of three numbers.
#   - `"seconds"`: the time of **one call** until the device has finished it: the median over all blocks but the
#     first one, which is the warm-up.
#   - `"warm_up"`: how many seconds longer the first block took than its calls should, at `"seconds"` each. 0 if
#     it was not slower.
#   - `"missed"`: the part of the time (0 to 1) that a stopwatch without synchronisation does not see: the median
#     of `(finished - launched) / (finished - start)`, again without the first block.
# - The median of an even number of values is the mean of the two in the middle.
# - Fewer than two blocks must raise `ValueError`.


# %% id="seconds_per_call_given" role="given"
def readings(matrix, calls, blocks):
    notes = []
    for _ in range(blocks):
        start = time.perf_counter()
        for _ in range(calls):
            matrix @ matrix
        launched = time.perf_counter()
        if matrix.is_cuda:
            torch.cuda.synchronize()
        notes.append({"calls": calls, "start": start, "launched": launched, "finished": time.perf_counter()})
    return notes


def seconds_per_call_broken(blocks):
    times = [block["launched"] - block["start"] for block in blocks]
    return {"seconds": sum(times) / len(times), "warm_up": 0.0, "missed": 0.0}


def three_blocks(generator, device):
    blocks = [
        {"calls": 2, "start": 0.0, "launched": 7.0, "finished": 8.0},
        {"calls": 4, "start": 10.0, "launched": 11.0, "finished": 14.0},
        {"calls": 2, "start": 20.0, "launched": 21.0, "finished": 26.0},
    ]
    return (blocks,)


def one_block(generator, device):
    return ([{"calls": 2, "start": 0.0, "launched": 1.0, "finished": 2.0}],)


print(seconds_per_call_broken(readings(torch.rand(200, 200), calls=10, blocks=5)))

# %% [markdown]
# By hand, for `three_blocks`: the second block takes 4 s for 4 calls, the third 6 s for 2. So one call takes
# 1 s and 3 s, the median is 2 s. The first block took 8 s, and its 2 calls should take 4 s.
#
# <details><summary>Hint 1</summary>Look at <code>seconds_per_call_broken</code> line by line. Which reading ends
# the block? Who divides by the number of calls? Which block should not be there? What does one disturbed block
# do to the result?</details>
# <details><summary>Hint 2</summary>Leave the first item of a list out with <code>blocks[1:]</code>.
# <code>median</code> is imported above.</details>


# %% id="seconds_per_call" role="answer"
def seconds_per_call(blocks):
    ### BEGIN SOLUTION
    if len(blocks) < 2:
        raise ValueError("one block to warm up, and one or more to measure")
    first, *others = blocks
    each = median((block["finished"] - block["start"]) / block["calls"] for block in others)
    return {
        "seconds": each,
        "warm_up": max(0.0, first["finished"] - first["start"] - each * first["calls"]),
        "missed": median(
            (block["finished"] - block["launched"]) / (block["finished"] - block["start"]) for block in others
        ),
    }
    ### END SOLUTION


# %% id="seconds_per_call_check" role="test"
def by_hand(blocks):
    return {"seconds": 2.0, "warm_up": 4.0, "missed": (3 / 4 + 5 / 6) / 2}


check(seconds_per_call, like=by_hand, on=three_blocks, points=1)


# %% id="seconds_per_call_hidden" role="test"
# Hidden test: other readings, disturbed blocks, a warm-up that costs nothing. 3 points, when graded.
### BEGIN HIDDEN TESTS
def proper_seconds_per_call(blocks):
    timed = blocks[1:]
    lasted = [b["finished"] - b["start"] for b in timed]
    usual = torch.tensor([t / b["calls"] for t, b in zip(lasted, timed, strict=True)], dtype=torch.float64)
    usual = usual.quantile(0.5).item()
    excess = (blocks[0]["finished"] - blocks[0]["start"]) - usual * blocks[0]["calls"]
    unseen = [(b["finished"] - b["launched"]) / t for t, b in zip(lasted, timed, strict=True)]
    return {"seconds": usual, "warm_up": excess if excess > 0 else 0.0, "missed": median(unseen)}


def made_up_blocks(generator, number, warm_up, disturbed):
    now, blocks = 100.0, []
    for i in range(number):
        draw = torch.rand(4, generator=generator, dtype=torch.float64).tolist()
        calls = 1 + int(draw[0] * 20)
        work = calls * 1e-3 * (1 + 0.2 * draw[1])
        if i == 0:
            work *= warm_up
        elif draw[2] < disturbed:
            work *= 30
        launched = now + work * (0.05 + 0.5 * draw[3])
        blocks.append({"calls": calls, "start": now, "launched": launched, "finished": now + work})
        now += work + 0.01
    return blocks


def odd_number(generator, device):
    return (made_up_blocks(generator, 10, 40, 0.2),)


def even_number(generator, device):
    return (made_up_blocks(generator, 13, 40, 0.2),)


def quick_warm_up(generator, device):
    return (made_up_blocks(generator, 8, 0.1, 0.0),)


def two_blocks(generator, device):
    return (made_up_blocks(generator, 2, 5, 0.0),)


check(
    seconds_per_call,
    like=proper_seconds_per_call,
    on=[odd_number, even_number, quick_warm_up, two_blocks],
    points=3,
)
### END HIDDEN TESTS

# %% id="seconds_per_call_few" role="test"
check(seconds_per_call, like=by_hand, on=one_block, raises=ValueError, points=1)

# %% [markdown]
# ## 2. Compare in pairs
#
# *Medium, 15 minutes.* Write `compare_pairs(slow, fast)`: what `compare` does with its readings.
#
# - `slow`, `fast`: lists of *N* numbers above 0. `slow[i]` and `fast[i]` are the times of one pair.
# - returns: a dict of three numbers.
#   - `"ratio"`: the median of the ratios `slow[i] / fast[i]`. For an even *N*, that is the **geometric** mean of
#     the two in the middle: the square root of their product.
#   - `"low"` and `"high"`: the 95 % interval. Sort the ratios. Leave out *k* at each end; `"low"` is the smallest
#     ratio that is left, `"high"` the largest. *k* is the largest number for which the chance that at most *k* of
#     *N* coins show heads is 2.5 % or less.
# - Fewer than 6 pairs, or lists of different length, must raise `ValueError`.


# %% id="compare_pairs_given" role="given"
def nine_pairs(generator, device):
    slow = [3.0, 20.0, 5.0, 12.0, 2.0, 40.0, 4.0, 4.0, 6.0]
    fast = [1.0, 10.0, 2.0, 20.0, 2.0, 10.0, 1.0, 8.0, 1.0]
    return slow, fast


def five_pairs(generator, device):
    return [2.0] * 5, [1.0] * 5


def odd_one_out(generator, device):
    return [2.0] * 8, [1.0] * 7


# %% [markdown]
# By hand, for `nine_pairs`: the sorted ratios are 0.5, 0.6, 1, 2, 2.5, 3, 4, 4, 6. The median is 2.5. The chance of
# at most 1 head among 9 coins is (1 + 9) / 512 = 2.0 %, of at most 2 heads (1 + 9 + 36) / 512 = 9.0 %. So *k* is 1,
# and the interval is 0.6 to 4.
#
# <details><summary>Hint 1</summary>Make one list of ratios first. The ratio of two medians is not the median of
# the ratios.</details>
# <details><summary>Hint 2</summary><code>math.comb(N, heads)</code> of the 2<sup>N</sup> results have so many
# heads. Start with no heads, and add while the sum stays small enough.</details>
# <details><summary>Hint 3</summary>The square root of a product is <code>exp</code> of the mean of two
# logarithms. For an odd <em>N</em> the two in the middle are the same.</details>


# %% id="compare_pairs" role="answer"
def compare_pairs(slow, fast):
    ### BEGIN SOLUTION
    if len(slow) != len(fast) or len(slow) < 6:
        raise ValueError("6 pairs or more, please")
    ratios = sorted(a / b for a, b in zip(slow, fast, strict=True))
    number = len(ratios)
    left_out = 0
    while sum(math.comb(number, heads) for heads in range(left_out + 2)) / 2**number <= 0.025:
        left_out += 1
    middle = math.sqrt(ratios[(number - 1) // 2] * ratios[number // 2])
    return {"ratio": middle, "low": ratios[left_out], "high": ratios[-1 - left_out]}
    ### END SOLUTION


# %% id="compare_pairs_check" role="test"
def counted_by_hand(slow, fast):
    return {"ratio": 2.5, "low": 0.6, "high": 4.0}


check(compare_pairs, like=counted_by_hand, on=nine_pairs, points=1)


# %% id="compare_pairs_hidden" role="test"
# Hidden test: 6 to 101 pairs, odd and even, disturbed pairs, a machine that slows down. 4 points, when graded.
### BEGIN HIDDEN TESTS
def proper_comparison(slow, fast):
    logs = (
        (torch.tensor(slow, dtype=torch.float64) / torch.tensor(fast, dtype=torch.float64))
        .log()
        .sort()
        .values
    )
    n = len(logs)
    chances = torch.tensor([math.comb(n, i) / 2**n for i in range(n + 1)], dtype=torch.float64).cumsum(0)
    k = int((chances <= 0.025).sum()) - 1
    return {
        "ratio": logs.quantile(0.5).exp().item(),
        "low": logs[k].exp().item(),
        "high": logs[n - 1 - k].exp().item(),
    }


def times_of_pairs(generator, number):
    machine = torch.linspace(1, 10, number, dtype=torch.float64)
    noise = torch.randn(2, number, generator=generator, dtype=torch.float64).mul(0.2).exp()
    spikes = 1 + 20 * (torch.rand(2, number, generator=generator) < 0.1)
    slow, fast = machine * noise * spikes * torch.tensor([[1.7], [1.0]])
    return slow.tolist(), fast.tolist()


def six(generator, device):
    return times_of_pairs(generator, 6)


def even(generator, device):
    return times_of_pairs(generator, 2 * int(torch.randint(5, 50, (), generator=generator)))


def odd(generator, device):
    return times_of_pairs(generator, 2 * int(torch.randint(5, 50, (), generator=generator)) + 1)


def seventeen(generator, device):
    return times_of_pairs(generator, 17)


check(compare_pairs, like=proper_comparison, on=[six, even, odd, seventeen], points=4)
### END HIDDEN TESTS

# %% id="compare_pairs_few" role="test"
check(compare_pairs, like=counted_by_hand, on=[five_pairs, odd_one_out], raises=ValueError, points=1)

# %% [markdown]
# ## 3. Count before you run
#
# *Easy, 10 minutes.* `scores` below compares `n` queries with `m` keys of `d` numbers each. Write
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
# <em>d</em> pairs of numbers and adds them up. Section 12 of the chapter counts the same for a square.</details>


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
# ## 4. Cut the operations
#
# *Easy, 10 minutes.* Many trainings keep a moving average of all weights: after every step, each average moves a
# little towards the new value. Write `move_averages(averages, values, decay)`.
#
# - `averages`, `values`: lists of *N* tensors of the same floating-point type, on one device. Shapes differ from
#   tensor to tensor; `averages[i]` and `values[i]` have the same shape.
# - `decay`: a number from 0 to 1.
# - returns: list of *N* **new** tensors, `decay * averages[i] + (1 - decay) * values[i]`.
# - The given tensors must not be changed.
# - One call may ask torch for at most one operation for each tensor.


# %% id="move_averages_given" role="given"
def move_averages_slow(averages, values, decay):
    return [decay * average + (1 - decay) * value for average, value in zip(averages, values, strict=True)]


def two_hundred_weights(generator, device):
    widths = torch.randint(1, 65, (200,), generator=generator).tolist()
    averages = [torch.randn(width, generator=generator).to(device) for width in widths]
    values = [torch.randn(width, generator=generator).to(device) for width in widths]
    return averages, values, 0.9


# %% [markdown]
# <details><summary>Hint 1</summary>Count: how many operations does the given line ask for, for each tensor? The
# tensors are small, so the count is the time. (Views are not counted, but hundreds of them cost time, too.)</details>
# <details><summary>Hint 2</summary>Going a part of the way from one value to another is called linear
# interpolation. Torch has one function for it; its documentation says <code>start</code>, <code>end</code> and
# <code>weight</code>. Which of your two tensors is the start? How far do you go?</details>


# %% id="move_averages" role="answer"
def move_averages(averages, values, decay):
    ### BEGIN SOLUTION
    return [torch.lerp(old, new, 1 - decay) for old, new in zip(averages, values, strict=True)]
    ### END SOLUTION


# %% id="move_averages_check" role="test"
check(move_averages, like=move_averages_slow, on=two_hundred_weights, points=1)

# %% id="move_averages_operations" role="test"
check(move_averages, like=move_averages_slow, on=two_hundred_weights, at_most={"operations": 200}, points=2)


# %% id="move_averages_hidden" role="test"
# Hidden test: other shapes, types and decays, no tensors at all. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def matrices(generator, device):
    shapes = [(3, 4), (1,), (), (2, 3, 5), (0, 2)]
    averages = [torch.randn(shape, generator=generator, dtype=torch.float64).to(device) for shape in shapes]
    values = [torch.randn(shape, generator=generator, dtype=torch.float64).to(device) for shape in shapes]
    return averages, values, torch.rand((), generator=generator).item()


def keep_everything(generator, device):
    return [torch.randn(5, generator=generator).to(device)], [torch.ones(5, device=device)], 1.0


def keep_nothing(generator, device):
    return [torch.randn(5, generator=generator).to(device)], [torch.ones(5, device=device)], 0.0


def no_weights(generator, device):
    return [], [], 0.5


check(
    move_averages,
    like=move_averages_slow,
    on=[matrices, keep_everything, keep_nothing, no_weights],
    points=1,
)
### END HIDDEN TESTS

# %% id="move_averages_race" role="test"
race(
    move_averages,
    against=move_averages_slow,
    on=two_hundred_weights,
    at_least={"cpu": 1.4, "cuda": 1.5},
    points=2,
)

# %% [markdown]
# ## 5. Find the hidden syncs
#
# *Medium, 15 minutes.* One step of training with many small layers. Each row of `weights` is a layer. A gradient
# that is too long is shortened, and a gradient that is broken is left out. Write
# `careful_step(weights, gradients, rate, longest)` so that Python never waits for a value.
#
# - `weights`, `gradients`: floating-point tensors of shape `(layers, size)`, on any device.
# - `rate`, `longest`: numbers above 0.
# - returns: tensor like `weights`. For each row:
#   - if the length (`norm`) of the gradient's row is infinite or not a number, the weights stay as they are;
#   - if the length is more than `longest`, the gradient is scaled to the length `longest` first;
#   - then `rate` times the gradient is taken away from the weights.
# - The given tensors must not be changed. No syncs: the function must run on the `meta` device, too.


# %% id="careful_step_given" role="given"
def careful_step_slow(weights, gradients, rate, longest):
    rows = []
    for weight, gradient in zip(weights, gradients, strict=True):
        length = gradient.norm()
        if not torch.isfinite(length):
            rows.append(weight)
            continue
        if length > longest:
            gradient = gradient * (longest / length.item())
        rows.append(weight - rate * gradient)
    return torch.stack(rows)


def layers(generator, device):
    weights, gradients = torch.randn(2, 150, 64, generator=generator)
    gradients[3, 5], gradients[40, 0], gradients[41, 63] = math.nan, math.inf, -math.inf
    return weights.to(device), gradients.to(device), 0.1, 8.0


def without_values(generator, device):
    return torch.randn(150, 64, device="meta"), torch.randn(150, 64, device="meta"), 0.1, 8.0


# %% [markdown]
# <details><summary>Hint 1</summary>Which lines of the given version need a value in Python? There are three in
# each turn of the loop. <code>costs(careful_step_slow, …)</code> counts them.</details>
# <details><summary>Hint 2</summary>All lengths at once: <code>norm</code> takes <code>dim=</code> and
# <code>keepdim=</code>. The factor of a gradient that is short enough is 1, so every row has a factor, and
# <code>clamp</code> knows a <code>max</code>.</details>
# <details><summary>Hint 3</summary><code>torch.where</code> chooses without asking. Choose at the very end: 0 times
# <code>nan</code> is <code>nan</code>, so a factor of 0 does not remove a broken gradient.</details>


# %% id="careful_step" role="answer"
def careful_step(weights, gradients, rate, longest):
    ### BEGIN SOLUTION
    lengths = gradients.norm(dim=1, keepdim=True)
    factors = (longest / lengths).clamp(max=1) * rate
    return torch.where(lengths.isfinite(), weights - factors * gradients, weights)
    ### END SOLUTION


# %% id="careful_step_check" role="test"
check(careful_step, like=careful_step_slow, on=layers, points=1)


# %% id="careful_step_syncs" role="test"
def same_shape(weights, gradients, rate, longest):
    return torch.empty_like(weights)


# On the meta device there are no values to wait for: only shape, type and device are compared.
check(careful_step, like=same_shape, on=without_values, at_most={"syncs": 0}, points=2)


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
    return (
        torch.randn(4, 5, generator=generator).to(device),
        torch.full((4, 5), math.nan, device=device),
        0.1,
        1.0,
    )


def one_number_each(generator, device):
    weights, gradients = torch.randn(2, 9, 1, generator=generator)
    gradients[4] = math.inf
    return weights.to(device), gradients.to(device), 2.0, 0.5


check(careful_step, like=careful_step_slow, on=[some_zeros, one_layer, all_broken, one_number_each], points=2)
### END HIDDEN TESTS

# %% id="careful_step_race" role="test"
race(careful_step, against=careful_step_slow, on=layers, at_least={"cpu": 12, "cuda": 15}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
