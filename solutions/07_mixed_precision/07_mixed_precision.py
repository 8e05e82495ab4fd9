# %% [markdown]
# # Exercises 07 · Mixed precision
#
# Four functions that have to be right in 16 bits, and fast. Each is given in a slow version that is right.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden tests
# run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/07_mixed_precision.ipynb). 27 points, about 60 minutes.

# %% id="setup" role="given"
import itertools
import math

import torch
import torch.nn.functional as F

from autograder import check, race

# %% [markdown]
# ## 1. The largest safe scale
#
# *Easy, 12 minutes.* You know the gradients of a model, in `float32`. By what can you multiply them, so that none
# leaves the range of `float16`? Write `choose_scale(gradients)`.
#
# - `gradients`: list of one or more `float32` tensors of any shape, each with at least one value, all on the same
#   device.
# - returns: a Python number, the largest of 1, 2, 4, …, 2²⁴ for which no scaled value is larger in size than
#   65504. Where even 1 is too large, return 1.
# - If any value is `inf` or `nan`, raise `ValueError`.
#
# On a GPU, each time that Python asks for a tensor's value, the program waits for the GPU (a *sync*). One point
# is for a solution that waits only once.


# %% id="choose_scale_given" role="given"
def choose_scale_slow(gradients):
    for gradient in gradients:
        if not gradient.isfinite().all():
            raise ValueError("a gradient is inf or nan")
    scale = 2.0**24
    while scale > 1:
        if all((gradient * scale).abs().max().item() <= 65504 for gradient in gradients):
            return scale
        scale /= 2
    return 1.0


def gradients_of_a_model(generator, device):
    sizes = torch.randint(100, 2000, (60,), generator=generator).tolist()
    large_at_the_end = torch.linspace(0.001, 1, 60).tolist()
    return (
        [
            (torch.randn(n, generator=generator) * factor).to(device)
            for n, factor in zip(sizes, large_at_the_end, strict=True)
        ],
    )


def broken_gradients(generator, device):
    gradients = [torch.randn(3, 4, generator=generator).to(device) for _ in range(5)]
    gradients[int(torch.randint(5, (), generator=generator))][1, 2] = float("nan")
    return (gradients,)


# %% [markdown]
# <details><summary>Hint 1</summary>Only one number among all the gradients matters. Once you have it, the rest is
# arithmetic with Python numbers, and costs nothing.</details>
# <details><summary>Hint 2</summary>Leave the largest values of the single tensors on the device, as tensors; put
# them together there (<code>torch.stack</code>), and ask for a value at the very end.</details>
# <details><summary>Hint 3</summary><code>max</code> passes <code>nan</code> on. So the check for
# <code>inf</code> and <code>nan</code> needs no second look at the gradients (<code>math.isfinite</code>).</details>


# %% id="choose_scale" role="answer"
def choose_scale(gradients):
    ### BEGIN SOLUTION
    largest = torch.stack([gradient.abs().amax() for gradient in gradients]).amax().item()
    if not math.isfinite(largest):
        raise ValueError("a gradient is inf or nan")
    scale = 2.0**24
    while scale > 1 and largest * scale > 65504:
        scale /= 2
    return scale
    ### END SOLUTION


# %% id="choose_scale_check" role="test"
check(choose_scale, like=choose_scale_slow, on=gradients_of_a_model, points=1)

# %% id="choose_scale_broken" role="test"
check(choose_scale, like=choose_scale_slow, on=broken_gradients, raises=ValueError, points=1)


# %% id="choose_scale_hidden" role="test"
# Hidden test: values exactly at the limit, all zero, very large, a single number. 2 points, when graded.
### BEGIN HIDDEN TESTS
def at_the_limit(generator, device):
    power = int(torch.randint(1, 20, (), generator=generator))
    return ([torch.tensor([0.1 / 2**power, -65504 / 2**power], device=device)],)


def just_above_the_limit(generator, device):
    power = int(torch.randint(1, 20, (), generator=generator))
    limit = torch.tensor(65504 / 2**power)
    return ([torch.nextafter(limit, torch.tensor(math.inf)).to(device), torch.zeros(2, 2, device=device)],)


def all_zero(generator, device):
    return ([torch.zeros(3, device=device), torch.zeros(2, 2, device=device)],)


def very_large(generator, device):
    return ([torch.randn(4, 4, generator=generator).to(device), torch.full((2,), -1e30, device=device)],)


def single_number(generator, device):
    return ([torch.randn((), generator=generator).to(device)],)


check(
    choose_scale,
    like=choose_scale_slow,
    on=[at_the_limit, just_above_the_limit, all_zero, very_large, single_number],
    points=2,
)
### END HIDDEN TESTS

# %% id="choose_scale_race" role="test"
race(
    choose_scale,
    against=choose_scale_slow,
    on=gradients_of_a_model,
    at_least={"cpu": 3, "cuda": 4},
    points=2,
)

# %% id="choose_scale_syncs" role="test"
check(choose_scale, like=choose_scale_slow, on=gradients_of_a_model, at_most={"syncs": 1}, points=1)

# %% [markdown]
# ## 2. A normalisation that is safe in 16 bits
#
# *Easy, 12 minutes.* Language models divide each row by its root mean square. Write `rms_norm(x, weight, eps)`.
#
# - `x`: tensor of shape `(…, D)` with one or more dimensions, in `float16`, `bfloat16` or `float32`. `weight`:
#   shape `(D,)`, same dtype and device. `eps`: a number above 0.
# - returns: `x / sqrt(mean(x²) + eps) * weight`, the mean over the last dimension; shape, dtype and device of `x`.
# - All finite `float16` values are allowed; in the other types sizes up to 1e18, whose squares fit into `float32`. The
#   result must be as exact as its type allows: compute in `float32`, and round once. `eps` may be too small for `float16`.


# %% id="rms_norm_given" role="given"
def rms_norm_slow(x, weight, eps):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        wide = row.float()
        wide = wide / torch.sqrt((wide * wide).mean() + eps)
        rows.append((wide * weight).to(x.dtype))
    return torch.stack(rows).reshape(x.shape)


def activations(generator, device):
    x = 10 * torch.randn(256, 256, generator=generator)
    weight = torch.rand(256, generator=generator)
    return x.half().to(device), weight.half().to(device), 1e-6


def loud_activations(generator, device):
    x = 2000 * torch.randn(16, 64, generator=generator)
    weight = torch.rand(64, generator=generator)
    return x.half().to(device), weight.half().to(device), 1e-6


# %% [markdown]
# <details><summary>Hint 1</summary>In what type is the square of 300 taken? Convert <em>before</em> the first
# operation that can overflow, and back after the last.</details>
# <details><summary>Hint 2</summary>All rows at once: a mean over the last dimension that keeps that dimension
# (<code>keepdim=True</code>) divides by broadcasting.</details>


# %% id="rms_norm" role="answer"
def rms_norm(x, weight, eps):
    ### BEGIN SOLUTION
    values = x.float()
    factor = torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
    return (values * factor * weight).to(x.dtype)
    ### END SOLUTION


# %% id="rms_norm_check" role="test"
check(rms_norm, like=rms_norm_slow, on=[activations, loud_activations], points=1)


# %% id="rms_norm_hidden" role="test"
# Hidden test: bfloat16 and float32, more and fewer dimensions, rows of 0, very small values. 2 points, when graded.
### BEGIN HIDDEN TESTS
def sentences_in_bfloat16(generator, device):
    x = 100 * torch.randn(3, 5, 32, generator=generator)
    return x.bfloat16().to(device), torch.rand(32, generator=generator).bfloat16().to(device), 1e-5


def one_row_in_float32(generator, device):
    return (
        torch.randn(17, generator=generator).to(device),
        torch.randn(17, generator=generator).to(device),
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


check(
    rms_norm,
    like=rms_norm_slow,
    on=[sentences_in_bfloat16, one_row_in_float32, rows_of_zeros, quiet_activations, largest_values],
    points=2,
)
### END HIDDEN TESTS

# %% id="rms_norm_race" role="test"
race(rms_norm, against=rms_norm_slow, on=activations, at_least={"cpu": 14, "cuda": 20}, points=3)

# %% [markdown]
# ## 3. The step of a gradient scaler
#
# *Medium, 20 minutes.* Write what `GradScaler.step` and `update` do, for plain gradient descent:
# `scaled_step(weights, gradients, state, rate)`.
#
# - `weights`: list of `float32` tensors. `gradients`: list of as many tensors of the same shapes, in `float16`,
#   already multiplied by the scale. All on the same device.
# - `state`: dict with three numbers: `"scale"`; `"good_steps"`, the number of good steps in a row; `"interval"`,
#   after how many of those the scale is doubled. `rate`: the learning rate.
# - returns: `(new_weights, new_state)`, a list and a dict with the same keys. The arguments stay unchanged.
# - If any gradient holds `inf` or `nan`, the step is skipped: the new weights equal the old ones, the scale is
#   halved, `good_steps` is 0.
# - Otherwise each new weight is `weight - rate * gradient / scale`, computed in `float32`, and `good_steps` is one
#   more. If it has then reached `interval`, the scale is doubled and `good_steps` is 0.
#
# Again, one point is for a solution with one sync only. A sum of all values is no safe way to find `inf`: in
# `float16` the sum may overflow where no value does.


# %% id="scaled_step_given" role="given"
def scaled_step_slow(weights, gradients, state, rate):
    scale, good_steps, interval = state["scale"], state["good_steps"], state["interval"]
    for gradient in gradients:
        for value in gradient.flatten():
            if not math.isfinite(value.item()):
                return weights, {"scale": scale / 2, "good_steps": 0, "interval": interval}
    new_weights = []
    for weight, gradient in zip(weights, gradients, strict=True):
        true_gradient = gradient.float() / scale
        new_weights.append(weight - rate * true_gradient)
    good_steps += 1
    if good_steps == interval:
        scale, good_steps = scale * 2, 0
    return new_weights, {"scale": scale, "good_steps": good_steps, "interval": interval}


def training(generator, device, scale=65536.0, good_steps=7, size=1.0, layers=12, numbers=400):
    weights = [torch.randn(numbers, generator=generator).to(device) for _ in range(layers)]
    gradients = [(size * torch.randn(numbers, generator=generator)).half().to(device) for _ in range(layers)]
    return weights, gradients, {"scale": scale, "good_steps": good_steps, "interval": 2000}, 1e5


def a_good_step(generator, device):
    return training(generator, device)


def an_overflow(generator, device):
    arguments = training(generator, device)
    arguments[1][3][17] = math.inf
    return arguments


# %% [markdown]
# <details><summary>Hint 1</summary><code>isfinite().all()</code> of one tensor is a tensor with one truth value.
# Asking for it in an <code>if</code> is a sync. Collect these first, or look at all gradients
# at once (<code>torch.cat</code> of the flattened ones).</details>
# <details><summary>Hint 2</summary>A gradient of 1e-3 divided by 65,536 is 0 in <code>float16</code>. Where does
# the division have to stand, after what conversion?</details>
# <details><summary>Hint 3</summary><code>torch.sub</code> has an argument <code>alpha</code>, and converts to
# the wider of two types by itself.</details>


# %% id="scaled_step" role="answer"
def scaled_step(weights, gradients, state, rate):
    ### BEGIN SOLUTION
    scale, good_steps, interval = state["scale"], state["good_steps"], state["interval"]
    if not torch.cat([gradient.flatten() for gradient in gradients]).isfinite().all():
        return list(weights), dict(state, scale=scale / 2, good_steps=0)
    factor = rate / scale
    moved = [torch.sub(w, g, alpha=factor) for w, g in zip(weights, gradients, strict=True)]
    good_steps = (good_steps + 1) % interval
    return moved, dict(state, scale=scale if good_steps else 2 * scale, good_steps=good_steps)
    ### END SOLUTION


# %% id="scaled_step_check" role="test"
check(scaled_step, like=scaled_step_slow, on=[a_good_step, an_overflow], points=2)


# %% id="scaled_step_hidden" role="test"
# Hidden test: nan, infinities that cancel, tiny and huge gradients, a scale that grows, other shapes. 2 points.
### BEGIN HIDDEN TESTS
def not_a_number(generator, device):
    arguments = training(generator, device, layers=4, numbers=9)
    arguments[1][-1][-1] = math.nan
    return arguments


def opposite_infinities(generator, device):
    arguments = training(generator, device, layers=3, numbers=9)
    arguments[1][0][0], arguments[1][0][1] = math.inf, -math.inf
    return arguments


def tiny_gradients(generator, device):
    weights, gradients, state, _ = training(generator, device, size=1e-3, layers=3, numbers=40)
    return weights, gradients, state, 1e8


def huge_gradients(generator, device):
    weights, gradients, state, rate = training(generator, device, layers=3, numbers=40)
    return weights, [torch.full_like(gradient, 60_000) for gradient in gradients], state, rate


def the_scale_grows(generator, device):
    return training(generator, device, scale=1024.0, good_steps=1999, layers=2, numbers=5)


def a_layer_and_a_number(generator, device):
    weights = [
        torch.randn(4, 3, generator=generator).to(device),
        torch.randn((), generator=generator).to(device),
    ]
    gradients = [torch.ones(4, 3, device=device).half(), torch.ones((), device=device).half()]
    return weights, gradients, {"scale": 2.0, "good_steps": 0, "interval": 1}, 0.5


check(
    scaled_step,
    like=scaled_step_slow,
    on=[
        not_a_number,
        opposite_infinities,
        tiny_gradients,
        huge_gradients,
        the_scale_grows,
        a_layer_and_a_number,
    ],
    points=2,
)
### END HIDDEN TESTS

# %% id="scaled_step_race" role="test"
race(scaled_step, against=scaled_step_slow, on=a_good_step, at_least={"cpu": 8, "cuda": 8}, points=2)

# %% id="scaled_step_syncs" role="test"
check(scaled_step, like=scaled_step_slow, on=[a_good_step, an_overflow], at_most={"syncs": 1}, points=1)

# %% [markdown]
# ## 4. A classifier in mixed precision
#
# *Medium, 18 minutes.* Write `classify(x, layers, labels, kind)`, the forward pass of a classifier under autocast.
#
# - `x`: `float32`, shape `(N, D)`. `layers`: list of one or more pairs `(weight, bias)` in `float32`, as
#   `F.linear` takes them. `labels`: `int64`, shape `(N,)`. All on the same device.
# - `kind`: `"float16"` or `"bfloat16"`, the type for the products. Anything else must raise `ValueError`.
# - All layers are linear, with a ReLU between them and none after the last. They run under autocast.
# - returns a dict: `"logits"`, the last layer's output, in the 16-bit type; `"probabilities"`, their softmax,
#   computed in `float32`; `"loss"`, the mean cross entropy, computed in `float32`; `"types"`, a list of strings: the
#   type of each layer's linear output, then that of the probabilities, then that of the loss, such as
#   `"float32"`.
#
# It must give the same types on a CPU and on a GPU. The tests use numbers that 16 bits hold exactly, so that a
# softmax in 16 bits shows.


# %% id="classify_given" role="given"
def classify_slow(x, layers, labels, kind):
    if kind not in ("float16", "bfloat16"):
        raise ValueError(f"kind must be float16 or bfloat16, not {kind!r}")
    logits, losses = [], []
    for sample, label in zip(x, labels, strict=True):
        types = []
        with torch.autocast(x.device.type, dtype=getattr(torch, kind)):
            for number, (weight, bias) in enumerate(layers):
                sample = F.linear(F.relu(sample) if number else sample, weight, bias)
                types.append(str(sample.dtype).split(".")[1])
        logits.append(sample)
        losses.append(F.cross_entropy(sample.float(), label))
    logits, loss = torch.stack(logits), torch.stack(losses).mean()
    probabilities = logits.float().softmax(-1)
    types += [str(tensor.dtype).split(".")[1] for tensor in (probabilities, loss)]
    return {"logits": logits, "probabilities": probabilities, "loss": loss, "types": types}


def classifier(generator, device, kind="bfloat16", samples=64, widths=(32, 64, 10)):
    def small_integers(*shape):
        return torch.randint(-1, 2, shape, generator=generator).float()

    layers = [
        (small_integers(there, here).to(device), small_integers(there).to(device))
        for here, there in itertools.pairwise(widths)
    ]
    layers[-1] = tuple(tensor / 8 for tensor in layers[-1])
    labels = torch.randint(widths[-1], (samples,), generator=generator)
    return small_integers(samples, widths[0]).to(device), layers, labels.to(device), kind


def in_bfloat16(generator, device):
    return classifier(generator, device)


def in_float16(generator, device):
    return classifier(generator, device, kind="float16", samples=5, widths=(8, 16, 4))


def in_int8(generator, device):
    return classifier(generator, device, kind="int8", samples=5, widths=(8, 16, 4))


# %% [markdown]
# <details><summary>Hint 1</summary>All samples can go through a layer together. Then autocast converts each weight
# once, not once for each sample.</details>
# <details><summary>Hint 2</summary>Which of softmax and cross entropy is <code>float32</code> under autocast on the
# CPU? The table in section 4 of the chapter says. What can you do about the other?</details>
# <details><summary>Hint 3</summary><code>str(torch.float32)</code> is <code>"torch.float32"</code>, and
# <code>getattr</code> finds a dtype by its name.</details>


# %% id="classify" role="answer"
def classify(x, layers, labels, kind):
    ### BEGIN SOLUTION
    if kind not in ("float16", "bfloat16"):
        raise ValueError(f"there is no 16-bit floating-point type {kind!r}")
    made = []
    with torch.autocast(x.device.type, dtype=getattr(torch, kind)):
        for weight, bias in layers:
            made.append(F.linear(made[-1].relu() if made else x, weight, bias))
        probabilities = made[-1].softmax(-1, dtype=torch.float32)
        loss = F.cross_entropy(made[-1], labels)
    types = [str(tensor.dtype).removeprefix("torch.") for tensor in (*made, probabilities, loss)]
    return {"logits": made[-1], "probabilities": probabilities, "loss": loss, "types": types}
    ### END SOLUTION


# %% id="classify_check" role="test"
check(classify, like=classify_slow, on=[in_bfloat16, in_float16], points=2)

# %% id="classify_int8" role="test"
check(classify, like=classify_slow, on=in_int8, raises=ValueError, points=1)


# %% id="classify_hidden" role="test"
# Hidden test: a single layer, three layers, one sample, other sizes. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def single_layer(generator, device):
    return classifier(generator, device, kind="float16", samples=7, widths=(12, 3))


def three_layers(generator, device):
    return classifier(generator, device, samples=6, widths=(4, 5, 6, 7))


def single_sample(generator, device):
    return classifier(generator, device, kind="float16", samples=1, widths=(6, 9, 2))


check(classify, like=classify_slow, on=[single_layer, three_layers, single_sample], points=2)
### END HIDDEN TESTS

# %% id="classify_race" role="test"
race(classify, against=classify_slow, on=in_bfloat16, at_least={"cpu": 4.5, "cuda": 8}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
