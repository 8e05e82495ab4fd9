# %% [markdown]
# # 03 · Autograd
#
# Autograd computes gradients for you. To do so, it writes down what you compute, and keeps what it will need.
# Writing costs time, keeping costs memory. Both are well spent when you want a gradient, and wasted otherwise.
#
# IDs such as *B1* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, which
# times, and `costs`, which counts, are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - read the graph that torch records, and say what `backward()` will do with it, and what that costs,
# - switch the recording off where nobody needs it, and say what you gain: memory, time, or neither,
# - find a graph that is held by mistake, and mend the errors that in-place operations cause,
# - get many gradients at once without a Python loop.
#
# **Time:** 50 minutes to read and run, and 20 more for the part Further. **Needs:** CPU, GPU if any. Chapter 00 or 01.
#
# **Claims tested:** *B1* "autograd records a graph in the forward pass; `backward()` fills `.grad`"; *B2* "the graph
# is dynamic: Python control flow works"; *B3* "`torch.no_grad()` for inference takes less memory and is faster".

# %%
import inspect

import torch
from parts.graph import draw_graph, kept_by, name_of, nodes
from parts.inputs import normal
from torch import nn
from torch.func import grad, jacrev, vmap
from torch.utils.checkpoint import checkpoint_sequential

from autograder import article_code, behaviour, compare, costs, devices, fewer, guessed, picture, verdicts
from autograder.measuring.causes import without
from autograder.teaching.recall import recall

print("devices here:", *devices())
recall("03", ..., ..., ...)

# %% [markdown]
# ## 1. What is it good for?
#
# A function takes 300 numbers and gives one. You want to know how it changes with each of them. You can move each
# number a little and compute the function again: finite differences. Or you call autograd.
#
# How many times as fast is autograd?

# %%
guess = ...


# %%
def wave(x):
    return (x.sin() * x).sum()


def finite_differences(x, step=1e-3):
    slopes, base = torch.empty_like(x), wave(x)
    for i in range(len(x)):
        moved = x.clone()
        moved[i] += step
        slopes[i] = (wave(moved) - base) / step
    return slopes


def with_autograd(x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(wave(x), x)[0]


compare(
    "autograd: 300 slopes of one function",
    {"finite differences": finite_differences, "autograd": with_autograd},
    inputs=300,
    guess=guess,
    differ="finite differences are not exact",
    because="prices",
)

# %% [markdown]
# **Why.** Finite differences call the function 301 times. Autograd calls it once and walks back through it once,
# however many inputs there are: calls predict most of the ratio. (Predicted is more: to start the walk back costs as
# much as many calls, and has no price.) And autograd is more exact: it differentiates each operation by its formula,
# while finite differences subtract two numbers that are almost equal. (The derivative is `cos(x) * x + sin(x)`.)

# %%
for count in (10, 300):
    x = torch.rand(count, generator=torch.Generator().manual_seed(0))
    exact = x.double().cos() * x.double() + x.double().sin()
    for function in (finite_differences, with_autograd):
        number, error = costs(function, x).operations.total(), (function(x) - exact).abs().max()
        print(f"{count} inputs, {function.__name__}: {number:,} operations, largest error {error:.0e}")
assert (with_autograd(x) - exact).abs().max() < 1e-5 < (finite_differences(x) - exact).abs().max()

# %% [markdown]
# ## 2. What is recorded?
#
# A tensor with `requires_grad=True` that you made yourself is a **leaf**. A number computed from it gets a `grad_fn`: a node
# that knows how to go one step back, and which nodes come next. Those nodes are the graph. This function finds them all:

# %%
print(inspect.getsource(nodes))

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x * 3).exp().sum()
print(" → ".join(map(name_of, nodes(y))))
assert x.is_leaf and x.grad_fn is None and not y.is_leaf
assert (x > 0).grad_fn is None  # booleans and integers have no slope

# %% [markdown]
# The graph is walked from the result back to the leaf. `AccumulateGrad` is its last node: it adds what arrives to
# the leaf's `.grad`.

# %%
y.backward()
print(x.grad)
behaviour(
    "B1",
    "The forward pass records nodes, and backward() fills the .grad of leaves with the right slopes.",
    y.grad_fn is not None and torch.allclose(x.grad, 3 * torch.exp(3 * x.detach())),
)

# %% [markdown]
# ### What a node keeps
#
# Many derivatives need numbers from the forward pass: that of `square` is `2 * input`, that of `tanh` is `1 - result²`,
# and that of a product with a weight needs the other factor. So a node keeps tensors. Here is the graph of a model with
# two layers, and all that it keeps.

# %%
x = torch.randn(64, 256)
first = (torch.randn(256, 128) / 16).requires_grad_()
second = (torch.randn(128, 1) / 11).requires_grad_()

product = x @ first
hidden = torch.tanh(product)
output = hidden @ second
squares = output.square()
loss = squares.mean()

picture(
    *draw_graph(
        given={"x": x, "first": first, "second": second},
        made={"product": product, "hidden": hidden, "output": output, "squares": squares, "loss": loss},
    )
)

# %% [markdown]
# - `hidden` is kept once, and two nodes need it. `product` and `squares` are not kept: no derivative needs them.
# - `mean` keeps no tensor. It needs to know how many numbers there were, and no more.
# - Nobody keeps `first` for the backward pass. It would be needed for the slopes of `x`, and `x` requires none.
#
# So recording costs what the boxes marked "new" hold (orange; grey was there before and costs nothing). They can be
# freed only when the graph is: by `backward()`, or when nobody holds its result any more. The picture asked each node:

# %%
print(inspect.getsource(kept_by))
kept = {tensor.data_ptr() for node in nodes(loss) for tensor in kept_by(node).values()}
assert kept == {tensor.data_ptr() for tensor in (x, second, hidden, output)}

# %% [markdown]
# Only leaves get a `.grad`. For a tensor in between you ask: `retain_grad()` before `backward()`, or
# `torch.autograd.grad`, which gives the gradients back and leaves every `.grad` as it is.

# %%
loss = (torch.tanh(x @ first) @ second).square().mean()
of_first, of_second = torch.autograd.grad(loss, (first, second))
hidden = torch.tanh(x @ first)
hidden.retain_grad()
(hidden @ second).square().mean().backward()
print(of_first.shape, of_second.shape, hidden.grad.shape)
assert torch.allclose(of_first, first.grad) and hidden.grad_fn is not None

# %% [markdown]
# ### The article's example
#
# The article says that a "Grad" attribute tells whether tracking is on. That is `requires_grad`; `.grad` holds the
# gradient. Its example multiplies a tensor of one dimension with `mm`. `mm` takes matrices only. `@` (`torch.matmul`)
# takes vectors, too.

# %%
assert not hasattr(first, "Grad") and first.requires_grad is True
matrix, vector = torch.ones(3, 2), torch.tensor([1.0, 2.0], requires_grad=True)
article_code("B1", "torch.mm with a tensor of one dimension", lambda: torch.mm(matrix, vector))
(matrix @ vector).sum().backward()
print("matrix @ vector:", (matrix @ vector).tolist(), "gradient:", vector.grad.tolist())

# %% [markdown]
# ## 3. What does the backward pass cost?
#
# Three layers of 512 × 512, a batch of 128. Three functions: one computes the loss and the gradients of all three weights,
# one the loss and the gradient of the last weight, one the loss alone. How many times as fast as the first is the loss alone?

# %%
guess = ...


# %%
def loss_of(x, weights):
    for weight in weights:
        x = torch.relu(x @ weight)
    return x.square().mean()


def all_gradients(x, *weights):
    weights = [weight.detach().requires_grad_() for weight in weights]
    return torch.autograd.grad(loss_of(x, weights), weights)


def last_gradient(x, *weights):
    *frozen, last = weights
    last = last.detach().requires_grad_()
    return torch.autograd.grad(loss_of(x, [*frozen, last]), last)


def three_layers(generator, device):
    weights = [torch.randn(512, 512, generator=generator) / 22 for _ in range(3)]
    return tuple(tensor.to(device) for tensor in (torch.randn(128, 512, generator=generator), *weights))


compare(
    "autograd: three layers, forward and back",
    {
        "loss and all gradients": all_gradients,
        "loss and last gradient": last_gradient,
        "loss alone": lambda x, *weights: loss_of(x, weights),
    },
    inputs=three_layers,
    guess=guess,
    differ="each computes less than the one before",
    because="prices",
)

# %% [markdown]
# **Why.** Most of the time goes into matrix products. Forward there are 3. In the backward pass, each layer needs two:
# the gradient of its weight is `input.T @ slopes`, that of its input is `slopes @ weight.T`, where `slopes` is what
# arrives from above. The first layer's input needs none, so there are 5. Together 8 against 3: about 2.7 times the work.
# The rest (`relu` and its derivative, new memory) comes on top. On an H200 the ratio is 6: these products are short
# there, and you pay for calls, of which the backward pass has more. The last three lines below check the first of these
# formulas on section 2's layer.

# %%
inputs = three_layers(torch.Generator(), "cpu")
for function in (all_gradients, last_gradient, lambda x, *weights: loss_of(x, weights)):
    cost = costs(function, *inputs)
    print(f"{cost.operations['aten.mm']} products, at most {cost.peak_bytes / 1e6:.1f} MB at once")
assert costs(all_gradients, *inputs).operations["aten.mm"] == 8
assert costs(last_gradient, *inputs).operations["aten.mm"] == 4

output = x @ first
slopes, of_first = torch.autograd.grad(output.square().mean(), (output, first))
assert torch.allclose(of_first, x.T @ slopes, atol=1e-6)

# %% [markdown]
# The middle line is worth remembering. Autograd goes back only as far as something requires a gradient. If you train
# the last layer of a large model, switch it off for the others (`parameter.requires_grad_(False)`): one product in the
# backward pass instead of five, and one gradient to hold instead of three. (Further freezes the first layer instead.)

# %% [markdown]
# ## 4. Calling `backward()` again
#
# Three times forward, three times back. What will this cell print?

# %%
weight = torch.tensor([1.0], requires_grad=True)
for _ in range(3):
    (weight * 2).sum().backward()
    print(weight.grad.item())

# %% [markdown]
# `backward()` does not set `.grad`, it adds to it. So a training loop has to clear it: `optimizer.zero_grad()`, or
# `weight.grad = None`.
#
# Adding up has a use. If a batch of 2,048 rows is too large for the memory, send it in 16 parts of 128, and call
# `backward()` after each. Each loss is divided by 16, so the sum is the gradient of the mean. How many times less memory
# does that need at once?

# %%
guess = ...


# %%
def in_one_go(x, weights):
    for weight in weights:
        weight.grad = None
    loss_of(x, weights).backward()
    return [weight.grad for weight in weights]


def in_parts(x, weights, parts=16):
    for weight in weights:
        weight.grad = None
    for part in x.chunk(parts):
        (loss_of(part, weights) / parts).backward()
    return [weight.grad for weight in weights]


def large_batch(generator, device):
    weights = [torch.randn(128, 128, generator=generator) / 11 for _ in range(3)]
    x = torch.randn(2048, 128, generator=generator)
    return x.to(device), [weight.to(device).requires_grad_() for weight in weights]


x, weights = large_batch(torch.Generator(), "cpu")
peaks = [costs(function, x, weights).peak_bytes / 1e6 for function in (in_one_go, in_parts)]
for one, other in zip(in_one_go(x, weights), in_parts(x, weights), strict=True):
    assert torch.allclose(one, other, atol=1e-6)
guessed(
    "times less memory at once, in 16 parts",
    guess,
    peaks[0] / peaks[1],
    f"In one go: at most {peaks[0]:.2f} MB at once. In 16 parts: {peaks[1]:.2f} MB. The gradients are the same.",
    f"They have {sum(weight.nbytes for weight in weights) / 1e6:.2f} MB, in one go as in parts.",
)

# %% [markdown]
# Not 16 times less: the gradients do not get smaller, and are a good part of what the parts need. And the new gradient of
# a weight lies beside its `.grad` until it is added. The rest are the tables of one part, 66 kB each. Whether the parts
# save time, too, is asked in the part Further.
#
# The parts must be of equal size, or each must count by its size. And each row must be computed without the others.
# (The part Further shows a model where it is not.)

# %% [markdown]
# ## 5. The graph is dynamic
#
# The graph is recorded anew each time, while your Python code runs. So `if`, `for` and `while` need no special
# support: what runs is recorded, what does not run is not. Here each doubling is a node, and `AccumulateGrad` one more.


# %%
def double_until_large(x):
    while x.norm() < 100:
        x = x * 2
    return x


lengths = []
for start in (1.0, 20.0, 500.0):
    x = torch.tensor([start], requires_grad=True)
    result = double_until_large(x)
    if result is not x:
        result.sum().backward()
    lengths.append(len(nodes(result)))
    slope = "none: no step" if x.grad is None else x.grad.item()
    print(f"from {start:5}: {lengths[-1]} nodes, slope {slope}")
behaviour(
    "B2",
    "A while loop is recorded as far as it runs: the graph's length depends on the data.",
    lengths[0] > lengths[1] > lengths[2],
)

# %% [markdown]
# ### A switch
#
# The article's example for a "conditional" is `torch.where(condition, a, b)`. Below, a switch (one boolean) decides
# between an expensive and a cheap result. It is off, so the cheap one is wanted. How many matrix products does
# `torch.where` compute?

# %%
guess = ...


# %%
def expensive(x):
    for _ in range(10):
        x = torch.tanh(x @ x)
    return x


def with_where(switch, x):
    return torch.where(switch, expensive(x), x * 2)


def with_if(switch, x):
    return expensive(x) if switch else x * 2


def off(generator, device):
    return torch.tensor(False, device=device), (torch.rand(128, 128, generator=generator) / 64).to(device)


switch, x = off(torch.Generator(), "cpu")
counts = {function.__name__: costs(function, switch, x) for function in (with_where, with_if)}
guessed(
    "products that torch.where computes",
    guess,
    counts["with_where"].operations["aten.mm"],
    *(f"{name}: {cost.operations['aten.mm']} products, {cost.syncs} syncs" for name, cost in counts.items()),
)

# %%
compare(
    "autograd: a switch that is off",
    {"torch.where": with_where, "if": with_if},
    inputs=off,
    because="prices",
)

# %% [markdown]
# **Why.** `torch.where` is not a condition. It takes *three tensors* (numbers will do for the last two) and picks from the
# second or third, element by element. Both have been computed before, for nothing. `if` ran the one multiplication that was
# wanted, and asked for the value of the switch. That is a **sync**: on a GPU, Python waits until the device has computed
# it. (Predicted is less: `tanh` is priced by its bytes, and it computes, too.) Both results are right; as a conditional,
# the article's example is not, because the side that is not chosen runs:

# %%
article_code(
    "B2",
    "torch.where as a conditional: the side that is not chosen should not run",
    lambda: costs(with_where, switch, x).operations["aten.mm"],
    right=lambda products: products == 0,
)

# %% [markdown]
# ### 500 switches
#
# Now each of 500 numbers has its own condition. A Python loop with `if` works, and its gradient is right. How many
# times as fast is `torch.where`?

# %%
guess = ...


# %%
def bend_with_if(x):
    x = x.detach().requires_grad_()
    bent = torch.stack([value * value if value > 0 else value / 2 for value in x])
    return torch.autograd.grad(bent.sum(), x)[0]


def bend_with_where(x):
    x = x.detach().requires_grad_()
    bent = torch.where(x > 0, x * x, x / 2)
    return torch.autograd.grad(bent.sum(), x)[0]


compare(
    "autograd: 500 conditions",
    {"if in a loop": bend_with_if, "torch.where": bend_with_where},
    inputs=normal(500),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** 500 conditions are thousands of calls, `where` is a few. (Both take longer than predicted: what autograd
# does for a call has no price.) So: one decision about whole tensors is for `if`, one for each element is for
# `torch.where`. Chapter 10 has more on `where`, and on a trap in its gradient.

# %% [markdown]
# ## 6. Not recording: memory
#
# For inference nobody calls `backward()`. `torch.no_grad()` switches the recording off. A model of 20 layers is
# given 256 rows of 256 numbers. Each layer makes 262 kB twice: once by the product, once by `relu`. How many times
# less memory does it need without recording? (`inference_mode`, a stricter `no_grad`, is explained in section 7.)

# %%
guess = ...


# %%
def deep(layers, width):
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*parts)


def recorded(model, x):
    return model(x)


def without_grad(model, x):
    with torch.no_grad():
        return model(x)


def in_inference_mode(model, x):
    with torch.inference_mode():
        return model(x)


x, lines = torch.rand(256, 256), ["layers   recorded    no_grad   inference_mode"]
for layers in (5, 10, 20):
    model = deep(layers, 256)
    peaks = [costs(f, model, x).peak_bytes for f in (recorded, without_grad, in_inference_mode)]
    lines.append(f"{layers:6}   " + "   ".join(f"{peak / 1e6:5.2f} MB" for peak in peaks))
guessed("times less memory for 20 layers", guess, peaks[0] / peaks[1], *lines)

# %% [markdown]
# **Why.** With recording, each `relu` keeps its result, because its derivative and the next product's need it. That is
# 262 kB for every layer, and it grows with the depth. Without recording, a result is freed as soon as the next layer
# has used it. Two are alive at a time, however deep the model is. This is the strong half of the claim: it does not
# depend on the machine.

# %%
fewer("B3", "bytes alive at once, forward through 20 layers", without=peaks[0], following=peaks[1])
assert peaks[2] == peaks[1]

# %% [markdown]
# `model.eval()` is something else. It changes how dropout and batch normalisation work, and it records as before.

# %%
assert model.eval()(x).requires_grad and not without_grad(model, x).requires_grad

# %% [markdown]
# ### Training with less memory: record later
#
# Training needs the graph. But it need not keep all of it from the start. **Activation checkpointing** cuts a model
# into segments, keeps what goes *into* a segment, and throws away what is inside. When `backward()` arrives there, the
# segment is computed once more, this time with recording. 64 layers in 8 segments: how many times less memory?

# %%
guess = ...


# %%
def step(model, x):
    model(x).square().mean().backward()


def step_in_segments(model, x, segments=8):
    checkpoint_sequential(model, segments, x, use_reentrant=False).square().mean().backward()


model, x, gradients, peaks, lines = deep(64, 128), torch.rand(256, 128), [], [], []
for function in (step, step_in_segments):
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)  # allocated before, so that it does not count
    cost = costs(function, model, x)
    gradients.append([parameter.grad for parameter in model.parameters()])
    peaks.append(cost.peak_bytes)
    lines.append(
        f"{function.__name__:16} at most {cost.peak_bytes / 1e6:.2f} MB at once, "
        f"{cost.operations['aten.addmm']} products forward, {cost.operations['aten.mm']} back"
    )
assert all(map(torch.equal, *gradients))
guessed("times less memory in 8 segments", guess, peaks[0] / peaks[1], *lines)

# %% [markdown]
# The price: about 1.3 times the products. Of 64 results, those between the segments are kept, and those inside the
# segment that is at work: 8 + 8 of them, 131 kB each, are 2.1 MB. The remainder is what backward needs for one layer. The
# last segment is not computed twice, because its graph is needed at once. The gradients are the same to the last bit. (The
# [documentation](https://docs.pytorch.org/docs/stable/checkpoint.html) recommends `use_reentrant=False`.)
#
# It does not help where weights fill the memory, or the optimizer's state. And if a smaller batch fits, the parts of
# section 4 compute nothing twice.

# %% [markdown]
# ## 7. Not recording: time
#
# And "faster"? We try three cases. First 30 small operations: a product and a `tanh`, 15 times, on 10 numbers.
# How many times as fast is it without recording?

# %%
guess = ...


# %%
def chain(steps):
    def run(x, weight):
        for _ in range(steps):
            x = torch.tanh(x * weight)
        return x

    return run


def unrecorded(function, mode=torch.no_grad):
    def run(*arguments):
        with mode():
            return function(*arguments)

    return run


def numbers(size):
    def make(generator, device):
        x, weight = torch.randn(2, size, generator=generator).to(device)
        return x, weight.clone().requires_grad_()

    return make


short, single = chain(15), lambda x, weight: x * weight
small = compare(
    "autograd: 30 operations on 10 numbers, recorded or not",
    {
        "recorded": short,
        "inference_mode": unrecorded(short, torch.inference_mode),
        "no_grad": unrecorded(short),
    },
    inputs=numbers(10),
    guess=guess,
    claim="B3",
    because=without("small operations", inputs=numbers(200_000)),
)

# %%
times = {name: sorted(small.samples["cpu"].seconds(name)) for name in ("recorded", "no_grad")}
middle = {name: seconds[len(seconds) // 2] for name, seconds in times.items()}
print(f"One operation on the CPU: {middle['no_grad'] / 30 * 1e6:.1f} µs.")
more = middle["recorded"] - middle["no_grad"]
print(f"Recording it takes {more / 30 * 1e6:.1f} µs more: {more / middle['no_grad']:.0%} of that.")

# %% [markdown]
# **Why.** On a CPU, making a node costs about half to three quarters of what a small operation itself costs. So
# recording is a real part of the time where the operations do almost nothing, and little of it on 200,000 numbers. On
# an H200 it is a sixth: a launch costs much more than a node. (`small`, from `compare`, holds all its times.)
#
# Next, a real model: 4 layers of 512, a batch of 256 (16,384 on a GPU). How many times as fast without recording?

# %%
guess = ...

# %%
four_layers = deep(4, 512)


def rows_of_512(generator, device):
    rows = 256 if device == "cpu" else 16_384  # enough work for the device
    return four_layers.to(device), torch.randn(rows, 512, generator=generator).to(device)


compare(
    "autograd: a model of 4 × 512, recorded or not",
    {"recorded": recorded, "inference_mode": in_inference_mode, "no_grad": without_grad},
    inputs=rows_of_512,
    guess=guess,
    claim="B3",
)

# %% [markdown]
# A node costs the same for 10 numbers as for 100,000; the arithmetic does not. So there is little to gain here.
#
# Last, one single operation on 10 numbers. How many times as fast is it under `torch.no_grad()`?

# %%
guess = ...

# %%
compare(
    "autograd: one operation on 10 numbers, recorded or not",
    {
        "recorded": single,
        "inference_mode": unrecorded(single, torch.inference_mode),
        "no_grad": unrecorded(single),
    },
    inputs=numbers(10),
    guess=guess,
    claim="B3",
)

# %% [markdown]
# `no_grad` itself is not free: entering and leaving it runs Python code. Together with the call of `run`, which holds
# the `with` here, that costs more than recording one operation. Put it around the whole loop, not inside it. As for the
# claim: less memory, wherever the graph keeps results; clearly faster, only where the operations are many and small.
#
# ### `inference_mode`
#
# `inference_mode` leaves out more of the bookkeeping. The price: autograd cannot keep its results for a backward pass.

# %%
weight = torch.ones(2, requires_grad=True)
with torch.inference_mode():
    feature = torch.ones(2) * 2
with torch.no_grad():
    ordinary = torch.ones(2) * 2
try:
    (feature * weight).sum().backward()
except RuntimeError as error:
    print("inference_mode:", str(error).split(". ")[0])
(ordinary * weight).sum().backward()
(feature.clone() * weight).sum().backward()
assert weight.grad.tolist() == [4.0, 4.0]

# %% [markdown]
# `clone()` mends it, with a copy. If the result goes into training later, use `no_grad`; otherwise `inference_mode`.
#
# `detach()` gives one tensor without its graph: the same values, not recorded. It copies nothing. So a change of one is a
# change of the other. And as long as a detached tensor lives, so does the memory that it looks into, all of it.

# %%
x = torch.ones(1000, 3, requires_grad=True)
result = x * 2
loose = result[0].detach()
assert not loose.requires_grad and loose.grad_fn is None
assert loose.data_ptr() == result.data_ptr() and costs(lambda: result[0].detach()).bytes == 0
loose[0] = 7
assert result[0, 0] == 7
print(f"3 numbers, which keep {loose.untyped_storage().nbytes():,} bytes alive;", end=" ")
print(f"after clone(): {loose.clone().untyped_storage().nbytes()} bytes")

# %% [markdown]
# ## 8. A graph that nobody frees
#
# A tensor holds its `grad_fn`, the node holds what it saved and the nodes before it. As long as *one* result is
# alive, all of its graph is. `backward()` frees what was saved, so a second call has nothing to work with. (If you need
# two, the first takes `retain_graph=True`.) Without `backward()`, everything stays until the last result goes.

# %%
loss = (torch.ones(2, requires_grad=True) ** 2).sum()
loss.backward()
try:
    loss.backward()
except RuntimeError as error:
    print("the second time:", str(error).split(" (")[0])

# %% [markdown]
# The classic leak: a running total of the losses. Here over 5, 10 and 20 batches, without `backward()`.


# %%
def total_with_graph(model, batches):
    total = 0
    for batch in batches:
        total = total + model(batch).square().mean()
    return total


def total_detached(model, batches):
    total = 0
    for batch in batches:
        total = total + model(batch).square().mean().detach()
    return total


small_model = deep(2, 256)
for function in (total_with_graph, total_detached):
    peaks = [costs(function, small_model, torch.rand(count, 64, 256)).peak_bytes for count in (5, 10, 20)]
    print(f"{function.__name__:17}", *(f"{peak / 1e6:6.2f} MB" for peak in peaks))
    assert peaks[2] > 1.8 * peaks[1] if function is total_with_graph else peaks[2] < 1.1 * peaks[1]


# %% [markdown]
# The first grows with every batch. With enough batches it fills the memory. Where nobody needs the graph, as here,
# `no_grad` around the loop mends the leak, too; `detach()` and `.item()` mend it everywhere. `.item()` costs one sync
# for each batch, `detach()` none: the total stays on the device, and you call `.item()` once, at the end. Further times
# both, and looks at a total in training, where `backward()` frees what was saved.

# %% [markdown]
# ## 9. In-place operations
#
# An operation that ends in `_` writes over its input. That saves memory. But autograd may have kept exactly this
# tensor. It keeps what the derivative needs, and no more. Which of these can be overwritten?

# %%
for name in ("exp", "tanh", "relu", "sin", "square"):
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    y = getattr(torch, name)(x)
    saved = [field.removeprefix("_saved_") for field in dir(y.grad_fn) if field.startswith("_saved_")]
    y.add_(1)
    try:
        y.sum().backward()
        outcome = "fine"
    except RuntimeError as error:
        outcome = "error: what it keeps " + str(error).partition("computation ")[2].partition(":")[0]
    print(f"{name:6} keeps {', '.join(saved):15} then add_(1): {outcome}")

# %% [markdown]
# `exp`, `tanh` and `relu` compute their derivative from their own *result*. If you overwrite the result, the
# derivative would be wrong. Torch counts the changes of each tensor (`y._version`), notices, and refuses. `sin` and
# `square` keep their input, so their result is free. The fix: write `y = y + 1`. (Further times what in-place saves.)
#
# Another error of this kind: a leaf that requires a gradient cannot be changed in place while recording. What
# would its gradient mean? Under `no_grad` it can: that is how an optimizer steps.

# %%
weight = torch.ones(2, requires_grad=True)
try:
    weight.sub_(0.1)
except RuntimeError as error:
    print("while recording:", error)
with torch.no_grad():
    weight.sub_(0.1)
print("under no_grad:", weight)

# %% [markdown]
# ## 10. Many gradients, no loop
#
# `backward()` gives the gradient of *one* number. What if you want many?
#
# The easiest case: each result depends on its own input only. Then the gradient of the **sum** holds all slopes, and
# no loop is needed.

# %%
points = torch.rand(3, requires_grad=True)
slopes = torch.autograd.grad((points.sin() * points).sum(), points)[0]
print("slopes:", slopes.tolist())
assert torch.allclose(slopes, points.cos() * points + points.sin())

# %% [markdown]
# Weights are shared by all samples of a batch. There the sum adds the gradients up, and you cannot take it apart
# again. `torch.func` helps, in two steps:
#
# - `grad(f)` is a new function: the gradient of `f` with respect to its first argument (or those in `argnums`).
# - `vmap(f, in_dims=…)` is a new function that runs `f` for every entry along a dimension, in one pass.
#   `in_dims` has a number for each argument: the dimension to split, or `None` for what all share.
#
# A network of two small layers, 50 samples. What does `vmap` save most: `"calls"`, `"bytes"` or `"arithmetic"`?

# %%
guess = ...


# %%
def sample_loss(first, second, x, target):
    return (torch.tanh(x @ first) @ second - target).square().sum()


def loop_over_samples(first, second, inputs, targets):
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
    pairs = [
        torch.autograd.grad(sample_loss(first, second, x, target), (first, second))
        for x, target in zip(inputs, targets, strict=True)
    ]
    return torch.stack([pair[0] for pair in pairs]), torch.stack([pair[1] for pair in pairs])


gradient_of_one = grad(sample_loss, argnums=(0, 1))
gradient_of_each = vmap(gradient_of_one, in_dims=(None, None, 0, 0))


def samples(number, width):
    def make(generator, device):
        first = torch.randn(width, width, generator=generator) / width**0.5
        second = torch.randn(width, 10, generator=generator) / width**0.5
        inputs = torch.randn(number, width, generator=generator)
        targets = torch.randn(number, 10, generator=generator)
        return tuple(tensor.to(device) for tensor in (first, second, inputs, targets))

    return make


compare(
    "autograd: gradients of 50 samples, 32 wide",
    {"loop": loop_over_samples, "vmap(grad)": gradient_of_each},
    inputs=samples(50, 32),
    guess=guess,
    because="prices",
)

# %%
inputs = samples(50, 32)(torch.Generator(), "cpu")
for name, function in {"loop": loop_over_samples, "vmap(grad)": gradient_of_each}.items():
    cost = costs(function, *inputs)
    print(f"{name:10} {cost.operations.total():4} operations, {cost.bytes / 1e6:.2f} MB allocated")

# %% [markdown]
# **Why.** The loop starts all operations for every sample. `vmap` starts each once, on 50 samples together. (Its own
# work in Python has no price in the prediction.)
#
# But mind the memory: one gradient for each sample is as many copies of the model as there are samples. That is why
# `backward()` adds them up. (What 8 samples of a wider model gain, the part Further asks.)
#
# And inside `vmap`, Python cannot look at a value. Section 5's `if` does not work there; `torch.where` does.

# %%
try:
    vmap(lambda x: x if x > 0 else -x)(torch.randn(3))
except RuntimeError as error:
    print(str(error).split(". ")[0])
assert (vmap(lambda x: torch.where(x > 0, x, -x))(torch.randn(3)) >= 0).all()

# %% [markdown]
# ## Further
#
# You can skip this part: the exercises do not need it. It is for those who want more measurements of what the
# chapter says: other layers frozen, parts, large tensors, totals, in-place operations, wide layers; and for those who
# need all slopes of many results.
#
# ### A test for a gradient
#
# Finite differences have a good use: as a test for a gradient that you wrote yourself. In `float64` they are exact
# enough. `torch.autograd.gradcheck` does it; here it tests autograd's own gradient of `wave`.

# %%
assert torch.autograd.gradcheck(wave, torch.rand(5, dtype=torch.float64, requires_grad=True))

# %% [markdown]
# ### The first layer frozen
#
# Section 3 froze all layers but the last. Now the *first* one is frozen, and the others are trained. What does that save
# of all gradients' time, most of all: `"calls"`, `"bytes"` or `"arithmetic"`? (And how much is there to save?)

# %%
guess = ...


# %%
def all_but_first(x, *weights):
    first, *others = weights
    others = [weight.detach().requires_grad_() for weight in others]
    return torch.autograd.grad(loss_of(x, [first, *others]), others)


compare(
    "autograd: three layers, the first one frozen",
    {"loss and all gradients": all_gradients, "first layer frozen": all_but_first},
    inputs=three_layers,
    guess=guess,
    differ="one gradient is left out",
    because="prices",
)
assert costs(all_but_first, *three_layers(torch.Generator(), "cpu")).operations["aten.mm"] == 6

# %% [markdown]
# **Why.** Two products of eight are saved: the gradient of the first weight, and that of the second layer's input,
# which nobody needs any more. But the backward pass still goes through all the layers after it.

# %% [markdown]
# ### A batch in parts: time
#
# The batch of 2,048 rows of section 4, in 16 parts. How many times as fast are the parts?

# %%
guess = ...

# %%
compare(
    "autograd: a batch of 2,048 rows in parts",
    {"in one go": in_one_go, "in 16 parts": in_parts},
    inputs=large_batch,
    guess=guess,
    flops=8 * 2 * 2048 * 128 * 128,
    because="prices",
)

# %% [markdown]
# **Why not?** The arithmetic is the same: eight products of the same total size, whose least time is the *limit*. But
# 16 times as many operations must be started, and 15 times a gradient is added. On a CPU the smaller tensors may stay
# in the cache, which can make up for some of that. (Predicted is a part of the loss; where the rest comes from, the
# cell does not show.) On an H200 the parts take 16 times as long. Parts save memory; that is what they are for.

# %% [markdown]
# ### When the parts give something else
#
# Batch normalisation computes no row without the others: it subtracts the mean of the rows that come together, and each
# part has its own.

# %%
network = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
rows, weight = torch.randn(64, 16), network[0].weight
whole = torch.autograd.grad(network(rows).square().mean(), weight)[0]
parts = sum(torch.autograd.grad(network(part).square().mean() / 4, weight)[0] for part in rows.chunk(4))
print(f"with batch normalisation the gradients differ by {(whole - parts).norm() / whole.norm():.0%}")
assert not torch.allclose(whole, parts, rtol=0.01)

# %% [markdown]
# ### The same count on a GPU
#
# `costs` counted the memory of section 6 on the CPU. On a GPU, the allocator knows.

# %%
if torch.cuda.is_available():
    model, x = deep(20, 1024).to("cuda"), torch.rand(8192, 1024, device="cuda")
    for function in (recorded, without_grad, in_inference_mode):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function(model, x)
        more = (torch.cuda.max_memory_allocated() - before) / 1e6
        print(f"{function.__name__:18} {more:8.1f} MB more on the GPU")
else:
    print("No GPU here. On one, this cell shows torch.cuda.max_memory_allocated() for the three variants.")

# %% [markdown]
# ### 30 operations on 200,000 numbers
#
# The 30 operations of section 7 on larger tensors. A third variant does not record, but keeps in a list what the
# graph would keep: the result of each `tanh`. How many times as fast is it without recording?

# %%
guess = ...


# %%
def keeping(x, weight):
    kept = [x]
    for _ in range(15):
        kept.append(torch.tanh(kept[-1] * weight))
    return kept


compare(
    "autograd: 30 operations on 200,000 numbers, recorded or not",
    {
        "recorded": short,
        "no_grad, results kept": unrecorded(keeping),
        "no_grad": unrecorded(short),
    },
    inputs=numbers(200_000),
    guess=guess,
    differ="one hands back all results",
    because="prices",
)

# %% [markdown]
# **Why.** A node costs the same for 10 numbers as for 200,000, so 30 nodes explain some tens of microseconds. The variant
# in the middle keeps the same 12 MB without a graph, and is nearly as fast as `no_grad`. Where recording costs much more
# (in the recordings, on one of the processors), what the graph keeps may be new memory in each call. On an H200, 200,000
# numbers take as long as 10, so the gain is section 7's. For large tensors, `no_grad` is there to save memory.

# %% [markdown]
# ### A running total: `item()` or `detach()`
#
# Section 8 says that `.item()` mends the leak of a running total, too. It costs a sync for each batch:


# %%
def total_of_items(model, batches):
    total = 0
    for batch in batches:
        total = total + model(batch).square().mean().item()
    return total


assert costs(total_of_items, small_model, torch.rand(20, 64, 256)).syncs == 20
assert costs(total_detached, small_model, torch.rand(20, 64, 256)).syncs == 0

# %% [markdown]
# A CPU has nobody to wait for. On a GPU each sync waits until the queue of work is empty (chapter 02).
#
# In training each loss gets its `backward()`, which frees what was saved. Is `total = total + loss` still a leak?


# %%
def train(model, batches, keep_graph):
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)  # allocated before, so that it does not count below
    total = 0
    for batch in batches:
        loss = model(batch).square().mean()
        loss.backward()
        total = total + (loss if keep_graph else loss.detach())
    return total


for keep_graph in (True, False):
    print("total + loss:" if keep_graph else "total + loss.detach():")
    for count in (5, 10, 20):
        batches = torch.rand(count, 64, 256)
        held = train(small_model, batches, keep_graph)
        number = len(nodes(held)) if held.requires_grad else 0
        peak = costs(train, small_model, batches, keep_graph).peak_bytes
        print(f"{count:6} batches: {number:4} nodes held, at most {peak / 1e6:.2f} MB of tensors at once")

batches = torch.rand(20, 64, 256)
extra = (
    costs(train, small_model, batches, True).peak_bytes - costs(train, small_model, batches, False).peak_bytes
)
assert abs(extra) < 100_000
assert len(nodes(train(small_model, batches, True))) > 5 * 20
assert not train(small_model, batches, False).requires_grad

# %% [markdown]
# A small one. The large tensors are gone, the nodes are not: nine for each batch here, as long as the total lives. It
# takes far longer to notice. The fix is the same.

# %% [markdown]
# ### One number in a large memory
#
# A detached tensor keeps the memory that it looks into (section 7). Even a loss, which is one number, may lie in a
# larger one:

# %%
x, target = torch.ones(1000, 3, requires_grad=True), torch.rand(1000, 3)
for loss in (nn.functional.mse_loss(x, target), (x - target).square().mean()):
    print(f"{loss.grad_fn.name():15} gave one number, in {loss.untyped_storage().nbytes():6,} bytes")
assert nn.functional.mse_loss(x, target).untyped_storage().nbytes() == x.nbytes

# %% [markdown]
# The result of `mse_loss` has room for all 3,000 squares. torch makes a result as large as the input first. Then it makes
# one number of it, and keeps the memory. So look before you keep a thousand losses; `clone()` helps here, too.

# %% [markdown]
# ### What in-place saves
#
# `sin(x) + 1` on a million numbers, forward and back. How many times as fast is it with `add_(1)`?

# %%
guess = ...


# %%
def out_of_place(x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad((x.sin() + 1).sum(), x)[0]


def in_place(x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(x.sin().add_(1).sum(), x)[0]


compare(
    "autograd: sin(x) + 1, in place or not",
    {"out of place": out_of_place, "in place": in_place},
    inputs=normal(1_000_000),
    guess=guess,
)

# %%
x = torch.randn(1_000_000)
for function in (out_of_place, in_place):
    print(f"{function.__name__:12} {costs(function, x).bytes / 1e6:.0f} MB allocated")

# %% [markdown]
# One new tensor of 4 MB is saved, among several. Use it where memory is short, not by habit.

# %% [markdown]
# ### Rows of one tensor
#
# An in-place error that is harder to see. Results are written into one tensor, row by row. Each row is computed from
# the row before, which autograd keeps. The next write changes the same tensor.

# %%
shrink = torch.tensor(0.5, requires_grad=True)
table = torch.ones(4, 2)
for i in range(1, 4):
    table[i] = table[i - 1] * shrink
try:
    table.sum().backward()
except RuntimeError as error:
    print("rows of one tensor:", str(error).split(": [")[0])

# %% [markdown]
# The rows are views of one memory with one counter. Rows that are tensors of their own do not have the problem.
# (`clone()` before every write mends it too, and copies everything each time.)

# %%
assert table[0]._version == table._version == 3
row, rows = torch.ones(2), []
for _ in range(3):
    row = row * shrink
    rows.append(row)
torch.stack(rows).sum().backward()
print("rows of their own: gradient", shrink.grad.item())
assert shrink.grad == 2 * (1 + 2 * 0.5 + 3 * 0.5**2)

# %% [markdown]
# ### Few samples, wide layers
#
# The gradients of section 10, for 8 samples that are 512 wide. The results alone are 8 × 512 × 522 numbers, 8.6 MB. How
# many times as fast is `vmap`?

# %%
guess = ...

# %%
compare(
    "autograd: gradients of 8 samples, 512 wide",
    {"loop": loop_over_samples, "vmap(grad)": gradient_of_each},
    inputs=samples(8, 512),
    guess=guess,
    because="prices",
)

# %%
inputs = samples(8, 512)(torch.Generator(), "cpu")
for name, function in {"loop": loop_over_samples, "vmap(grad)": gradient_of_each}.items():
    cost = costs(function, *inputs)
    print(f"{name:10} {cost.operations.total():4} operations, {cost.bytes / 1e6:.2f} MB allocated")

# %% [markdown]
# **Why.** There are about a hundred operations to save instead of 800, and each has real work to do: more bytes than
# calls are on both bills. So the recorded CPUs gain from nothing to 2.3×, and one loses a little. (On an H200 only the
# number of operations counts: `vmap` takes about as long as in section 10.)

# %% [markdown]
# ### All slopes of all results: the Jacobian
#
# A function from 64 numbers to 32 numbers has 32 × 64 slopes. With `torch.autograd.grad`, each call gives one row, and
# `retain_graph=True` keeps the graph for the next one. `jacrev` gives all rows in one pass back. How many times as fast
# is it?

# %%
guess = ...


# %%
def two_layers(x, first, second):
    return torch.tanh(torch.tanh(x @ first) @ second)


def row_by_row(x, first, second):
    x = x.detach().requires_grad_()
    results = two_layers(x, first, second)
    return torch.stack([torch.autograd.grad(value, x, retain_graph=True)[0] for value in results])


def numbers_and_weights(generator, device):
    x = torch.randn(64, generator=generator)
    first = torch.randn(64, 64, generator=generator) / 8
    second = torch.randn(64, 32, generator=generator) / 8
    return x.to(device), first.to(device), second.to(device)


compare(
    "autograd: a Jacobian of 32 × 64",
    {"row by row": row_by_row, "jacrev": jacrev(two_layers)},
    inputs=numbers_and_weights,
    guess=guess,
)

# %%
x, first, second = torch.randn(64), torch.randn(64, 64) / 8, torch.randn(64, 32) / 8
assert torch.allclose(row_by_row(x, first, second), jacrev(two_layers)(x, first, second), atol=1e-6)

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** measure seconds *and* peak memory of a step. Predict from operations, and from what the
# graph keeps. The cause is work, or memory, that nobody asked for: each row takes one away. Verify the gradients.
#
# | you want | use | because |
# |---|---|---|
# | a gradient | autograd, not finite differences | one backward pass, however many inputs |
# | gradients of some layers | `requires_grad` only for those, the last ones | the backward pass stops early |
# | a batch too large for the memory | parts, `backward()` after each | `.grad` adds up; saves memory, not time |
# | training that does not fit | `checkpoint_sequential(…, use_reentrant=False)` | what is inside a segment is computed again, not kept |
# | one decision | `if` | what is not chosen is not computed; one sync on a GPU |
# | one decision for each element | `torch.where` | one operation; both sides are computed |
# | inference | `inference_mode`, or `no_grad` if training uses the result | memory stays flat; time only with many small operations |
# | a running total | `total + loss.detach()`, one `item()` at the end | no graph is held, no sync for each batch |
# | to keep a small piece | `piece.detach().clone()` | a view keeps all of its memory alive |
# | rows that depend on each other (Further) | a list, then `torch.stack` | writing in place changes what autograd kept |
# | a gradient for each sample | `vmap(grad(f))` | each operation starts once; memory for all of them |

# %%
verdicts("B1", "B2", "B3")

# %% [markdown]
# What *B1* and *B2* say about the graph is right; "wrong" is the article's code: *B1*'s stops with an error, and *B2*'s
# computes the right numbers, but shows no conditional.
# *B3* is two claims: less memory holds, less time depends on the size and number of the operations.
#
# **Now you:** [the exercises of this chapter](../exercises/03_autograd/03_autograd.ipynb). Five functions, given slow
# or hungry for memory; make them right and lean.
