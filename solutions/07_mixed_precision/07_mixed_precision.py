# %% [markdown]
# # Exercises 07 · Mixed precision
#
# Numbers in 16 bits that come out right, and fast. Two of the tools are worth keeping: a loss scaler that never
# waits for the device, and weights in 16 bits that lose nothing.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. You get points for a right answer, and more for a fast one. From 1.4 times
# as fast on, but below the ratio asked for, a race gives a part of its points. Hidden tests run when your notebook
# is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# `costs`, which the chapter uses, counts what a call costs: `from autograder import costs`, then
# `print(costs(function, *inputs))`.
# The chapter is [here](../../course/07_mixed_precision.ipynb). 37 points, about 100 minutes.

# %% id="setup" role="given"
import math
import struct
from itertools import pairwise

import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. A normalisation for every finite number
#
# *Medium, 20 minutes.* Language models divide each row by its root mean square. Write `rms_norm(x, weight, eps)`.
#
# - `x`: tensor of shape `(…, D)` with one or more dimensions, in `float16`, `bfloat16` or `float32`. `weight`:
#   shape `(D,)`, same dtype and device, values from −2 to 2. `eps`: a number from 1e-12 to 1; it may be too small
#   for `float16`. The arguments stay unchanged.
# - returns: `x / sqrt(mean(x²) + eps) * weight`, the mean over the last dimension; shape, dtype and device of `x`.
# - Every finite number is allowed in `x`, in each of the three types. The result must be as exact as its type
#   allows, but for a few units in the last place (the tests allow about ten).
# - Copies and syncs are not counted. The race is run with 128 long rows in `float32`. The given loop is not as slow
#   as it looks: what it does to a row, done to all rows at once, earns a part of the race's points at most. Measure.


# %% id="rms_norm_given" role="given"
def rms_norm_slow(x, weight, eps):
    result = torch.empty_like(x)
    for row, new in zip(x.reshape(-1, x.shape[-1]), result.view(-1, x.shape[-1]), strict=True):
        wide = row.double()
        wide /= torch.sqrt((wide * wide).mean() + eps)
        new.copy_(wide * weight)
    return result


def activations(generator, device):
    x = 10 * torch.randn(256, 256, generator=generator)
    weight = torch.rand(256, generator=generator)
    return x.half().to(device), weight.half().to(device), 1e-6


def many_numbers(generator, device):
    x = 10 * torch.randn(128, 4096, generator=generator)
    return x.to(device), torch.rand(4096, generator=generator).to(device), 1e-6


def loud_activations(generator, device):
    x = 2000 * torch.randn(16, 64, generator=generator)
    weight = torch.rand(64, generator=generator)
    return x.half().to(device), weight.half().to(device), 1e-6


def huge_in_bfloat16(generator, device):
    x = 1e37 * torch.randn(4, 24, generator=generator)
    weight = torch.rand(24, generator=generator)
    return x.bfloat16().to(device), weight.bfloat16().to(device), 1e-5


def mixed_in_float32(generator, device):
    x = torch.randn(3, 2, 10, generator=generator) * torch.tensor([[[1e38]], [[1.0]], [[1e-6]]])
    return x.to(device), torch.rand(10, generator=generator).to(device), 1e-9


# %% [markdown]
# <details><summary>Hint 1</summary>In what type is the square of 300 taken? And the square of 10<sup>30</sup>?
# Convert <em>before</em> the first operation that can overflow, and back after the last.</details>
# <details><summary>Hint 2</summary>All rows at once: a mean over the last dimension that keeps that dimension
# (<code>keepdim=True</code>) divides by broadcasting.</details>
# <details><summary>Hint 3</summary><code>bfloat16</code> reaches as far as <code>float32</code>, and so the
# square of a large one is infinite in both. Which type reaches further?</details>
# <details><summary>Hint 4</summary>Right, and hardly faster than the loop? Time the parts on <code>many_numbers</code>:
# the conversion, the squares and their mean, the division, the product. Then time each of them once more in
# <code>float32</code>. How many bytes does each read and write?</details>
# <details><summary>Hint 5</summary>Which of the intermediate values do not fit a <code>float32</code>? Note that the root
# mean square of a row is not larger than its largest number. Only what does not fit needs the long type.</details>
# <details><summary>Hint 6</summary>A new large tensor costs time, too; look at the peak that <code>costs</code> shows. One of
# your own that is not needed any more can take the next result (<code>square_</code>, <code>mul_</code>); and operations
# that sum up, norms too, take a <code>dtype</code> to sum up in. (They may convert within, where
# <code>costs</code> does not look; a stopwatch does.) Mind that <code>x.float()</code> of a <code>float32</code> tensor
# is no copy: it is <code>x</code>.</details>


# %% id="rms_norm" role="answer"
def rms_norm(x, weight, eps):
    ### BEGIN SOLUTION
    # The squares need the range of float64; nothing else does.
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float64)
    size = (norm.square() / x.shape[-1] + eps).sqrt().float()
    return (x.float() / size).mul_(weight).to(x.dtype)
    ### END SOLUTION


# %% id="rms_norm_check" role="test"
check(rms_norm, like=rms_norm_slow, on=[activations, loud_activations], points=1)

# %% id="rms_norm_huge" role="test"
check(rms_norm, like=rms_norm_slow, on=huge_in_bfloat16, points=1)

# %% id="rms_norm_exact" role="test"
check(rms_norm, like=rms_norm_slow, on=mixed_in_float32, tolerance=1e-6, points=1)


# %% id="rms_norm_hidden" role="test"
# Hidden test: more and fewer dimensions, rows of 0, the smallest and the largest numbers. 1 point, when graded.
### BEGIN HIDDEN TESTS
def sentences_in_bfloat16(generator, device):
    x = 100 * torch.randn(3, 5, 32, generator=generator)
    return x.bfloat16().to(device), torch.rand(32, generator=generator).bfloat16().to(device), 1e-5


def one_row_in_float32(generator, device):
    return (
        torch.randn(17, generator=generator).to(device),
        torch.randn(17, generator=generator).clamp(-2, 2).to(device),
        1e-3,
    )


def rows_of_zeros(generator, device):
    x = torch.randn(4, 8, generator=generator)
    x[1:3] = 0
    return x.half().to(device), torch.ones(8, dtype=torch.float16, device=device), 1e-9


def quiet_activations(generator, device):
    x = 1e-4 * torch.randn(6, 40, generator=generator)
    return x.half().to(device), torch.rand(40, generator=generator).half().to(device), 1e-12


def largest_values(generator, device):
    x = torch.full((2, 3, 24), 65504.0, dtype=torch.float16, device=device)
    return x, torch.rand(24, generator=generator).half().to(device), 1e-6


def largest_in_bfloat16(generator, device):
    x = torch.full((3, 8), torch.finfo(torch.bfloat16).max, dtype=torch.bfloat16, device=device)
    return x, torch.rand(8, generator=generator).bfloat16().to(device), 1e-6


check(
    rms_norm,
    like=rms_norm_slow,
    on=[
        sentences_in_bfloat16,
        one_row_in_float32,
        rows_of_zeros,
        quiet_activations,
        largest_values,
        largest_in_bfloat16,
    ],
    points=1,
)
### END HIDDEN TESTS

# %% id="rms_norm_race" role="test"
race(rms_norm, against=rms_norm_slow, on=many_numbers, at_least={"cpu": 2, "cuda": 5}, points=2)

# %% [markdown]
# ## 2. The mean of each class
#
# *Medium, 15 minutes.* A network gives each picture a row of numbers in 16 bits. What is the mean row of each class?
# Write `class_means(x, labels, classes)`.
#
# - `x`: tensor of shape `(N, D)` in `float16`, `bfloat16` or `float32`; any finite `float16`, sizes up to 1e30 in
#   the other types. `labels`: `int64` tensor of shape `(N,)` on the same device, values from 0 to `classes - 1`. *N*
#   may be 0.
# - returns: tensor of shape `(classes, D)`, dtype and device of `x`: row *c* is the mean of the rows whose label is
#   *c*, or 0 where there is none. It must be as exact as the type allows, but for a few units in the last place.
# - No syncs: the function must not wait for the device. Two of the tests call it with tensors on `meta`, too, where
#   nobody can wait for a value.
# - Memory: for 20,000 rows of 64 numbers in `float16`, at most 2 MB of new memory at once.


# %% id="class_means_given" role="given"
def class_means_slow(x, labels, classes):
    sums = torch.zeros(classes, x.shape[1], dtype=torch.float64, device=x.device)
    counts = [0] * classes
    for row, label in zip(x, labels.tolist(), strict=True):
        sums[label] += row
        counts[label] += 1
    return torch.stack([row / max(count, 1) for row, count in zip(sums, counts, strict=True)]).to(x.dtype)


def features(generator, device, rows=2000, width=64, classes=4, size=1.0, dtype=torch.bfloat16):
    x = size * (0.5 + torch.rand(rows, width, generator=generator))
    labels = torch.randint(classes, (rows,), generator=generator)
    return x.to(device, dtype), labels.to(device), classes


def many_rows(generator, device):
    return features(generator, device)


def class_without_rows(generator, device):
    x, labels, classes = features(generator, device, rows=12, width=5)
    return x, labels.clamp(max=2), classes


def large_numbers(generator, device):
    return features(generator, device, rows=300, width=8, size=20_000, dtype=torch.float16)


def no_rows(generator, device):
    return features(generator, device, rows=0, width=3, dtype=torch.float16)


def very_many_rows(generator, device):
    return features(generator, device, rows=20_000, dtype=torch.float16)


def without_values(generator, device):
    return features(generator, "meta", rows=2000)


def means_or_shapes(x, labels, classes):
    if x.is_meta:  # no values: only shapes, types and devices are compared
        return x.new_empty(classes, x.shape[1])
    return class_means_slow(x, labels, classes)


# %% [markdown]
# <details><summary>Hint 1</summary>Three numbers must not be rounded to 16 bits on the way: the sums, the counts,
# and the quotient before the end. Which of them leave the range of their type, and which stop growing?</details>
# <details><summary>Hint 2</summary>A tensor of sums in another type (<code>float32</code> will do) is filled by
# <code>index_add_</code> or <code>scatter_add_</code>. Both want rows of its type.</details>
# <details><summary>Hint 3</summary>All rows converted at once would be 5 MB. How many rows must be converted at
# the same time? (<code>x.split</code>)</details>
# <details><summary>Hint 4</summary><code>bincount</code> waits for the device: the length of its result depends
# on values. Ones can be added at places that are there already, like rows.</details>


# %% id="class_means" role="answer"
def class_means(x, labels, classes):
    ### BEGIN SOLUTION
    sums = torch.zeros(classes, x.shape[1] + 1, device=x.device)
    for some, of_some in zip(x.split(1000), labels.split(1000), strict=True):
        rows = F.pad(some.float(), (0, 1), value=1.0)  # one more column: it counts
        sums.scatter_add_(0, of_some[:, None].expand_as(rows), rows)
    return (sums[:, :-1] / sums[:, -1:].clamp(min=1)).to(x.dtype)
    ### END SOLUTION


# %% id="class_means_check" role="test"
check(class_means, like=class_means_slow, on=[many_rows, class_without_rows, no_rows], points=1)

# %% id="class_means_large" role="test"
check(class_means, like=class_means_slow, on=large_numbers, points=1)

# %% id="class_means_memory" role="test"
check(
    class_means,
    like=means_or_shapes,
    on=[very_many_rows, without_values],
    at_most={"peak_bytes": 2_000_000},
    points=2,
)


# %% id="class_means_hidden" role="test"
# Hidden test: one class, float32, the largest numbers, many rows in one class. 2 points, when graded.
### BEGIN HIDDEN TESTS
def single_class(generator, device):
    return features(generator, device, rows=3000, width=2, classes=1)


def in_float32(generator, device):
    return features(generator, device, rows=100, width=7, classes=3, size=1e29, dtype=torch.float32)


def the_largest(generator, device):
    x, labels, classes = features(generator, device, rows=40, width=3, dtype=torch.float16)
    return torch.full_like(x, -65504.0), labels, classes


def more_classes_than_rows(generator, device):
    return features(generator, device, rows=5, width=1, classes=30, dtype=torch.float16)


def one_row_in_bfloat16(generator, device):
    return features(generator, device, rows=1, width=9, classes=2)


cases = [single_class, in_float32, the_largest, more_classes_than_rows, one_row_in_bfloat16, no_rows]
check(class_means, like=means_or_shapes, on=[*cases, without_values], points=2)
### END HIDDEN TESTS

# %% id="class_means_race" role="test"
race(class_means, against=class_means_slow, on=many_rows, at_least={"cpu": 16, "cuda": 16}, points=2)

# %% [markdown]
# ## 3. A loss scaler that never waits
#
# *Hard, 20 minutes.* Write what `GradScaler.step` and `update` do, for plain gradient descent:
# `scaled_step(weights, gradients, state, rate, interval)`.
#
# - `weights`: list of one or more `float32` tensors. `gradients`: list of as many tensors of the same shapes, in
#   `float16`, already multiplied by the scale. `state`: dict of two tensors without dimensions: `"scale"`, `float32`,
#   and `"good_steps"`, `int64`, the number of good steps in a row. All on the same device. `rate`: the learning rate.
#   `interval`: after how many good steps the scale is doubled; `good_steps` is less.
# - returns: `(new_weights, new_state)`, a list and a dict like the given ones. The arguments stay unchanged.
# - If any gradient holds `inf` or `nan`, the step is skipped: *all* new weights equal the old ones, the scale is
#   halved, but not below 1, and `good_steps` is 0.
# - Otherwise each new weight is `weight - rate * gradient / scale`, computed in `float32`, and `good_steps` is one
#   more. If that is `interval`, the scale is doubled, but not above 2²⁴, and `good_steps` is 0.
# - The given inputs have a `rate` of 1e5, so that a step changes the weights visibly.
# - No syncs: whether the step is skipped is decided on the device.


# %% id="scaled_step_given" role="given"
def scaled_step_slow(weights, gradients, state, rate, interval):
    def new_state(scale, good_steps):
        return {
            "scale": torch.full_like(state["scale"], min(max(scale, 1.0), 2.0**24)),
            "good_steps": torch.full_like(state["good_steps"], good_steps),
        }

    scale, good_steps = state["scale"].item(), state["good_steps"].item()
    for gradient in gradients:
        for value in gradient.flatten():
            if not math.isfinite(value.item()):
                return [weight.clone() for weight in weights], new_state(scale / 2, 0)
    new_weights = []
    for weight, gradient in zip(weights, gradients, strict=True):
        true_gradient = gradient.to(weight.dtype) / scale
        new_weights.append(weight - rate * true_gradient)
    if good_steps + 1 == interval:
        return new_weights, new_state(2 * scale, 0)
    return new_weights, new_state(scale, good_steps + 1)


def training(generator, device, scale=65536.0, good_steps=7, size=1.0, layers=12, numbers=800):
    weights = [torch.randn(numbers, generator=generator).to(device) for _ in range(layers)]
    gradients = [(size * torch.randn(numbers, generator=generator)).half().to(device) for _ in range(layers)]
    state = {
        "scale": torch.tensor(scale, device=device),
        "good_steps": torch.tensor(good_steps, device=device),
    }
    return weights, gradients, state, 1e5, 2000


def a_good_step(generator, device):
    return training(generator, device)


def an_overflow(generator, device):
    arguments = training(generator, device)
    arguments[1][3][17] = math.inf
    return arguments


def the_scale_grows(generator, device):
    return training(generator, device, scale=1024.0, good_steps=1999, layers=2, numbers=5)


def the_scale_is_largest(generator, device):
    return training(generator, device, scale=2.0**24, good_steps=1999, size=1e3, layers=2, numbers=5)


# %% [markdown]
# <details><summary>Hint 1</summary><code>isfinite().all()</code> of one tensor is a tensor with one truth value.
# Asking for it in an <code>if</code> is a sync. What can you do with it as a tensor?</details>
# <details><summary>Hint 2</summary><code>torch.where</code> takes the one or the other, number by number. A
# product does not: 0 times infinity is NaN.</details>
# <details><summary>Hint 3</summary>A gradient of 1e-3 divided by 65,536 is 0 in <code>float16</code>. Where does
# the division have to stand, after what conversion?</details>
# <details><summary>Hint 4</summary>One look at all gradients is cheaper than one at each: put the flattened ones
# together first. The new state has three cases; two <code>where</code> can tell them apart, and
# <code>clamp</code> sees to the limits.</details>


# %% id="scaled_step" role="answer"
def scaled_step(weights, gradients, state, rate, interval):
    ### BEGIN SOLUTION
    scale, good_steps = state["scale"], state["good_steps"] + 1
    fine = torch.cat([gradient.flatten() for gradient in gradients]).isfinite().all()
    factor = rate / scale
    moved = [
        torch.where(fine, weight - gradient.float() * factor, weight)
        for weight, gradient in zip(weights, gradients, strict=True)
    ]
    grows = good_steps == interval
    new_scale = torch.where(fine, torch.where(grows, scale * 2, scale), scale / 2).clamp(1, 2.0**24)
    return moved, {"scale": new_scale, "good_steps": torch.where(fine & ~grows, good_steps, 0)}
    ### END SOLUTION


# %% id="scaled_step_check" role="test"
check(
    scaled_step,
    like=scaled_step_slow,
    on=[a_good_step, an_overflow, the_scale_grows, the_scale_is_largest],
    points=1,
)

# %% id="scaled_step_waits" role="test"
check(scaled_step, like=scaled_step_slow, on=[a_good_step, an_overflow], at_most={"syncs": 0}, points=2)


# %% id="scaled_step_hidden" role="test"
# Hidden test: nan, infinities that cancel, tiny and huge gradients, the smallest scale, other shapes. 2 points.
### BEGIN HIDDEN TESTS
def not_a_number(generator, device):
    arguments = training(generator, device, layers=4, numbers=9)
    arguments[1][-1][-1] = math.nan
    return arguments


def opposite_infinities(generator, device):
    arguments = training(generator, device, layers=3, numbers=9)
    arguments[1][0][0], arguments[1][0][1] = math.inf, -math.inf
    return arguments


def overflow_instead_of_growing(generator, device):
    arguments = training(generator, device, good_steps=1999, layers=3, numbers=9)
    arguments[1][1][2] = math.inf
    return arguments


def tiny_gradients(generator, device):
    weights, gradients, state, _, interval = training(generator, device, size=1e-3, layers=3, numbers=40)
    return weights, gradients, state, 1e8, interval


def huge_gradients(generator, device):
    weights, gradients, *others = training(generator, device, layers=3, numbers=40)
    return weights, [torch.full_like(gradient, 60_000) for gradient in gradients], *others


def the_scale_is_smallest(generator, device):
    arguments = training(generator, device, scale=1.0, layers=1, numbers=3)
    arguments[1][0][0] = -math.inf
    return arguments


def a_layer_and_a_number(generator, device):
    shapes = ((4, 3), ())
    weights = [torch.randn(shape, generator=generator).to(device) for shape in shapes]
    gradients = [torch.ones(shape, dtype=torch.float16, device=device) for shape in shapes]
    state = {"scale": torch.tensor(2.0, device=device), "good_steps": torch.tensor(0, device=device)}
    return weights, gradients, state, 0.5, 1


check(
    scaled_step,
    like=scaled_step_slow,
    on=[
        not_a_number,
        opposite_infinities,
        overflow_instead_of_growing,
        tiny_gradients,
        huge_gradients,
        the_scale_is_smallest,
        a_layer_and_a_number,
    ],
    at_most={"syncs": 0},
    points=2,
)
### END HIDDEN TESTS

# %% id="scaled_step_race" role="test"
race(scaled_step, against=scaled_step_slow, on=a_good_step, at_least={"cpu": 7.5, "cuda": 7.5}, points=2)

# %% [markdown]
# ## 4. Weights in 16 bits that lose nothing
#
# *Hard, 20 minutes.* A network computes with `bfloat16` weights. In training, each weight needs its `float32` value,
# too: small updates must not vanish. To keep both takes 6 bytes a weight. It can be done with 4: beside the
# `bfloat16` keep only what it lacks. Write `add_exactly(top, rest, change)`, which changes weights that are kept so.
#
# - `top`: `bfloat16` tensor of any shape, `rest`: `int16` tensor of that shape. Together they are `float32` weights:
#   the bits of a weight, read as a whole number (`int32`), are 65,536 times the bits of its `top`, read as a whole
#   number (`int16`), plus its `rest`.
# - `change`: `float32` tensor of that shape. All are on the same device.
# - returns: `(top, rest)`, the same way, of the weights plus `change`: exactly what adding in `float32` gives, to the
#   last bit. Its `top` is the `bfloat16` nearest to the new weight. Where two are equally near, it is the one that is
#   larger in size.
# - All weights and changes are finite and not larger than 1e38 in size. The given tensors stay as they are.


# %% id="add_exactly_given" role="given"
def bits_of(number):
    return struct.unpack("<i", struct.pack("<f", number))[0]


def number_of(bits):
    return struct.unpack("<f", struct.pack("<i", bits))[0]


def add_exactly_slow(top, rest, change):
    tops, rests = [], []
    for near, lacks, add in zip(
        top.flatten().tolist(), rest.flatten().tolist(), change.flatten().tolist(), strict=True
    ):
        weight = number_of(bits_of(near) + lacks)  # the lower 16 bits of `near` are 0
        bits = bits_of(weight + add)
        upper = math.floor(bits / 65536 + 0.5)
        tops.append(number_of(65536 * upper))
        rests.append(bits - 65536 * upper)
    return (
        torch.tensor(tops, dtype=torch.bfloat16, device=top.device).view(top.shape),
        torch.tensor(rests, dtype=torch.int16, device=top.device).view(top.shape),
    )


def kept(weights, change, device):
    """`weights` as they are kept, and a change for them."""
    top, rest = add_exactly_slow(
        torch.zeros_like(weights).bfloat16(), torch.zeros_like(weights).short(), weights
    )
    return top.to(device), rest.to(device), change.to(device)


def odd_numbers(generator, device):
    """Odd multiples of 1/1024, from ½ to 1, changed by even ones: two bfloat16 are never equally near."""
    weights = torch.randint(2**18, 2**19, (2, 8000), generator=generator) * 2 + 1
    sign = torch.randint(2, (8000,), generator=generator) * 2 - 1
    change = (weights[1] - weights[0]) * sign / 2**20
    return kept(weights[0] * sign / 2**20, change, device)


def equally_near(generator, device):
    """New weights such as 257 and 259, in the middle between two bfloat16."""
    middle = 2.0 * torch.randint(-256, 256, (40, 5), generator=generator) + 1
    middle = middle + 256 * middle.sign()
    weights = torch.randn(40, 5, generator=generator).mul(8).round() / 8
    return kept(weights, middle - weights, device)


def very_small_steps(generator, device):
    return kept(torch.ones(2, 3), torch.full((2, 3), -1e-4), device)


# %% [markdown]
# For the weight 1001.3 the bits are 0x447A5333. Its `top` has the bits 0x447A, which is 1000, and its `rest` is 0x5333,
# which is 21,299. For 1003 they are 0x447AC000; the nearest `bfloat16` is 1004, 0x447B, and the rest −16,384.
#
# <details><summary>Hint 1</summary><code>view</code> with another dtype of the same size reads the same bits as
# numbers of that type. It copies nothing, and works in both directions.</details>
# <details><summary>Hint 2</summary>Three steps: put the bits together (mind the type in which you multiply by
# 65,536), add as <code>float32</code>, take the bits apart.</details>
# <details><summary>Hint 3</summary><code>.bfloat16()</code> has a rule of its own for what is equally near: 257 becomes
# 256. Round the whole number, not the weight.</details>
# <details><summary>Hint 4</summary>What must be added to the whole number, so that cutting off the lower 16 bits
# rounds? The sign has a bit of its own, so a larger whole number means larger in size for negative weights,
# too.</details>


# %% id="add_exactly" role="answer"
def add_exactly(top, rest, change):
    ### BEGIN SOLUTION
    bits = (top.view(torch.int16).to(torch.int32) << 16) + rest
    bits = (bits.view(torch.float32) + change).view(torch.int32)
    upper = (bits + 0x8000) >> 16
    return upper.to(torch.int16).view(torch.bfloat16), (bits - (upper << 16)).to(torch.int16)
    ### END SOLUTION


# %% id="add_exactly_check" role="test"
check(add_exactly, like=add_exactly_slow, on=[odd_numbers, very_small_steps], tolerance=0.0, points=2)

# %% id="add_exactly_near" role="test"
check(add_exactly, like=add_exactly_slow, on=equally_near, tolerance=0.0, points=1)


# %% id="add_exactly_hidden" role="test"
# Hidden test: large and tiny weights, zeros, negative ones, other shapes. 2 points, when graded.
### BEGIN HIDDEN TESTS
def all_sizes(generator, device):
    powers = torch.randint(-120, 120, (2, 300), generator=generator)
    weights, change = torch.randn(2, 300, generator=generator) * 2.0**powers
    return kept(weights, change, device)


def to_zero_and_back(generator, device):
    weights = torch.randn(4, 1, 6, generator=generator)
    weights[0] = 0
    change = -weights
    change[2:] = torch.randn(2, 1, 6, generator=generator) * 1e-38
    return kept(weights, change, device)


def one_weight(generator, device):
    return kept(torch.tensor(-1003.0), torch.tensor(0.25), device)


check(
    add_exactly,
    like=add_exactly_slow,
    on=[all_sizes, to_zero_and_back, one_weight, equally_near],
    tolerance=0.0,
    points=2,
)
### END HIDDEN TESTS

# %% id="add_exactly_race" role="test"
race(
    add_exactly,
    against=add_exactly_slow,
    on=odd_numbers,
    at_least={"cpu": 40, "cuda": 40},
    tolerance=0.0,
    points=2,
)

# %% [markdown]
# ## 5. Slow, or wrong
#
# *Medium, 15 minutes.* A network that is trained and frozen moves a state on, step by step. `roll_out_slow` is right
# and slow. A colleague wrote `roll_out_hasty`, which is several times faster, and wrong. Find out what takes the time in
# the one (`costs`), and what goes wrong in the other. Write a `roll_out` that is right **and** saves the
# conversions: they are counted, not timed.
#
# The rules, which `roll_out_slow` follows: `roll_out(state, layers, steps)`
#
# - `state`: `float32` tensor of shape `(N, D)`. `layers`: list of one or more pairs `(weight, bias)` in `float32`, as
#   `F.linear` takes them; the last layer gives *D* numbers. None of them requires a gradient. All on the same device.
#   `steps`: a number, 0 or more.
# - In each step, the state goes through all layers, with a ReLU between them. What a layer takes and gives is
#   `bfloat16`. A 64th of the last layer's output is added to the state, which stays `float32`.
# - returns: `float32` tensor of shape `(steps, N, D)`, the state after each step. The arguments stay unchanged.
# - Conversions: at most one copy for each weight, each bias, and each step, as `costs` counts them. To convert a
#   tensor is one, and so is writing a finished tensor into a part of another. `torch.stack`, `out=`, and an
#   operation that takes two types are none. No syncs: what NumPy or Python convert, the test cannot count.


# %% id="roll_out_given" role="given"
def roll_out_slow(state, layers, steps):
    states = [state]
    for _ in range(steps):
        with torch.autocast(state.device.type, dtype=torch.bfloat16):
            hidden = states[-1]
            for number, (weight, bias) in enumerate(layers):
                hidden = F.linear(F.relu(hidden) if number else hidden, weight, bias)
        states.append(states[-1] + hidden / 64)
    return torch.stack(states)[1:]


def roll_out_hasty(state, layers, steps):
    layers = [(weight.bfloat16(), bias.bfloat16()) for weight, bias in layers]
    short = state.bfloat16()
    states = state.new_empty(steps, *state.shape)
    for step in range(steps):
        hidden = short
        for number, (weight, bias) in enumerate(layers):
            hidden = F.linear(F.relu(hidden) if number else hidden, weight, bias)
        short = short + hidden / 64
        states[step] = short
    return states


def frozen_network(generator, device, samples=1, widths=(64, 96, 64), steps=12):
    layers = [
        (
            (torch.randn(there, here, generator=generator) / (8 * here**0.5)).to(device),
            (0.5 + torch.rand(there, generator=generator)).to(device),
        )
        for here, there in pairwise(widths)
    ]
    state = 8 + torch.randn(samples, widths[0], generator=generator)
    return state.to(device), layers, steps


def one_state(generator, device):
    return frozen_network(generator, device)


def three_layers(generator, device):
    return frozen_network(generator, device, samples=3, widths=(16, 24, 32, 16), steps=40)


def not_a_step(generator, device):
    return frozen_network(generator, device, samples=2, widths=(4, 4), steps=0)


# %% [markdown]
# <details><summary>Hint 1</summary><code>print(costs(roll_out_slow, *three_layers(torch.Generator(), "cpu")))</code>:
# how many conversions, and how many should there be? What does the chapter say about an autocast region and frozen
# parameters?</details>
# <details><summary>Hint 2</summary>Near 8, the next larger <code>bfloat16</code> is 8.0625. What becomes of an update
# of 0.01?</details>
# <details><summary>Hint 3</summary>What is multiplied may be short. What is added up must not be. Which tensors need
# a conversion in each step, and which only once? The states can be collected without a copy.</details>


# %% id="roll_out" role="answer"
def roll_out(state, layers, steps):
    ### BEGIN SOLUTION
    short = [(weight.bfloat16(), bias.bfloat16()) for weight, bias in layers]
    states = state.new_empty(steps, *state.shape)
    for step in range(steps):
        hidden = state.bfloat16()
        for number, (weight, bias) in enumerate(short):
            hidden = F.linear(hidden.relu() if number else hidden, weight, bias)
        state = torch.add(state, hidden, alpha=1 / 64, out=states[step])
    return states
    ### END SOLUTION


# %% id="roll_out_check" role="test"
check(roll_out, like=roll_out_slow, on=[one_state, three_layers, not_a_step], tolerance=2e-3, points=2)

# %% id="roll_out_conversions" role="test"
# Three layers and 40 steps: 3 weights, 3 biases, 40 states.
check(
    roll_out,
    like=roll_out_slow,
    on=three_layers,
    at_most={"copies": 3 + 3 + 40, "syncs": 0},
    tolerance=2e-3,
    points=3,
)


# %% id="roll_out_hidden" role="test"
# Hidden test: one layer, many steps, several samples, one step. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def a_single_layer(generator, device):
    return frozen_network(generator, device, samples=4, widths=(6, 6), steps=5)


def many_steps(generator, device):
    return frozen_network(generator, device, widths=(12, 20, 12), steps=150)


def a_single_step(generator, device):
    return frozen_network(generator, device, samples=5, widths=(7, 9, 5, 7), steps=1)


check(
    roll_out,
    like=roll_out_slow,
    on=[a_single_layer, many_steps, a_single_step, not_a_step],
    at_most={"copies": 2 + 2 + 150, "syncs": 0},
    tolerance=2e-3,
    points=2,
)
### END HIDDEN TESTS

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
def shortened(x):
    largest = x.abs().max()
    return x / largest if largest > 1 else x


def edges(x):
    return F.conv2d(x[None, None], torch.ones(4, 1, 3, 3), padding=1)


def halved(x):
    short = x.bfloat16()
    return (short @ short.T).float()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (shortened, edges, halved)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>shortened</code> is of chapter 02, <code>edges</code> is of chapter 05,
# <code>halved</code> is of chapter 07.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(halved, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "shortened": {"operations": 5, "bytes": 8 * n * d + 5, "syncs": 1},
        "edges": {"operations": 2, "bytes": 4 * 36 + 16 * n * d, "syncs": 0},
        "halved": {"operations": 3, "bytes": 2 * n * d + 2 * n * n + 4 * n * n, "syncs": 0},
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
