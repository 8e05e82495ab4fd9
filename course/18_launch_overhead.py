# %% [markdown]
# # 18 · Launch overhead
#
# An operation on ten numbers takes about as long as one on a thousand. Nearly all of that time goes into the way to the
# operation: Python, looking up what to run, making a tensor for the result. This chapter takes that way less often.
#
# *F* numbers are claims of PyTorch's documentation, beside those of five widely read articles; all are in [the
# score](claims.ipynb). `compare`, `costs` and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - say from which size on the numbers cost more than the call,
# - make many calls few: one table, a list of tensors, one buffer, `vmap`; foretell when that gains nothing or fails,
# - find the largest part with the profiler, read a trace, and see that a device is starved,
# - say what a CUDA graph repeats, and what it silently does not.
#
# **Time:** 55 minutes to read and run, 15 more for the part Further. **Needs:** CPU, GPU if any; chapters 00 and 10.
#
# **Claims tested:** *F28* "for-looping is usually slower than our foreach implementations"; *F29* "we default to
# foreach over for-loop"; *F26* `vmap` "should be faster than running a function in a for-loop", *F27* "and competitive
# with manual batching"; *F31* `vmap` "executes `f` a single time"; *F25* CUDA graphs for "greatly reduced CPU
# overhead"; in *Further* *F30* `inference_mode`, "a free performance win", and *F43* `chunk_size` for "memory issues".

# %%
import functools
import json
import os
import tempfile
import timeit
import warnings
from pathlib import Path

os.environ["KINETO_LOG_LEVEL"] = "6"  # the profiler's log, which is read when torch is loaded

import torch
import torch.nn.functional as F
from parts.overhead import Tape, busy, draw_crossing, draw_gaps, page_faults, refusal, rmsprop_anew, spans_of
from torch import nn
from torch.func import grad, vmap
from torch.profiler import ProfilerActivity, profile

from autograder import article_code, behaviour, compare, costs, devices, fewer, guessed, picture, verdicts
from autograder.teaching.recall import recall

torch.set_num_threads(1)
torch.manual_seed(18)
print("devices here:", *devices(), "· torch", torch.__version__)
recall("18", ..., ..., ...)

# %% [markdown]
# ## 1. One number or a thousand
#
# Two tensors are added. How many times as fast is that with 1 number in each as with 1,000?

# %%
guess = ...

# %%
SIZES = (1_000, 1_000_000, 100_000, 10_000, 100, 10, 1)


def label(size):
    return f"{size:,} number{'s' * (size > 1)}"


def adder(size):
    return lambda pairs: torch.add(*pairs[size])


def pairs_of_all_sizes(generator, device):
    return ({size: torch.rand(2, size, generator=generator).to(device).unbind() for size in SIZES},)


sweep = compare(
    "overhead: one addition, seven sizes",
    {label(size): adder(size) for size in SIZES},
    inputs=pairs_of_all_sizes,
    guess=guess,
    differ="seven sizes",
)

# %%
first = next(iter(sweep.samples.values()))
taken = {size: min(first.seconds(label(size))) for size in SIZES}  # the shortest block: the least disturbed
picture(*draw_crossing(taken))
assert taken[1_000] < 3 * taken[1]

# %% [markdown]
# **Why.** A call has two prices: one for being a call, and one for each number. The dashed lines are the two alone; the
# measured line is about their sum. Left of the crossing you pay for calls, and the numbers are nearly free. Right of it
# you pay for numbers. **This chapter is about the left side.** On an H200 all seven sizes lie there: a million numbers
# take the same 7 or 8 µs as one.

# %% [markdown]
# ## 2. What is in the price of a call?
#
# Five calls for one number each. `w` requires a gradient, so autograd writes down what is done to it. Somebody does not
# need the gradient, and puts a `with torch.no_grad():` around each single addition. How many times as fast is it so?

# %%
guess = ...


# %%
def two_numbers_and_a_weight(generator, device):
    a, b = torch.rand(2, 1, generator=generator).to(device)
    return a, b, torch.rand(1, generator=generator).to(device).requires_grad_()


def without_recording(a, b, w):
    with torch.no_grad():
        return w + b


one_number = compare(
    "overhead: five calls for one number",
    {
        "w + b, recorded": lambda a, b, w: w + b,
        "a + b": lambda a, b, w: a + b,
        "a.add_(b)": lambda a, b, w: a.add_(b),
        "a.dim()": lambda a, b, w: a.dim(),
        "no_grad around w + b": without_recording,
    },
    inputs=two_numbers_and_a_weight,
    guess=guess,
    differ="five different calls",
)

# %%
seconds = {name: min(one_number.samples["cpu"].seconds(name)) for name in one_number.samples["cpu"].blocks}
empty, in_place, new, recorded = (
    1e9 * seconds[name] for name in ("a.dim()", "a.add_(b)", "a + b", "w + b, recorded")
)
print(f"the least that Python and torch need for a call: {empty:5.0f} ns")
print(f"it reads arguments, is looked up, and computes: + {in_place - empty:4.0f} ns")
print(f"its result is a new tensor:                     + {new - in_place:4.0f} ns")
print(f"autograd writes it down:                        + {recorded - new:4.0f} ns")
print(f"one number more to add:                         + {1e4 * (taken[100_000] - taken[1]):7.2f} ns")
assert empty < in_place < recorded

# %% [markdown]
# **Why.** "Looked up" is the *dispatcher*: which kernel is made for this device, and for what else is switched on, such
# as autograd? Then the operation compares shapes, types and strides, chooses the loop for the type, and plans it. All
# that happens before the first number is read. A new tensor needs memory and a Python object. Autograd adds a node. The
# last line is the arithmetic. (On a GPU the launch comes on top: 7 µs for `a + b` on an H200.)
#
# Entering a `with` and leaving it are calls, too. So put it around the whole loop, where it is paid once; around a
# single small operation it costs more than it saves.

# %% [markdown]
# ## 3. A thousand calls or one
#
# A table has 1,000 rows of 16 numbers, and we want the sum of each row. In a loop, a row can be had by its index, or
# all rows at once with `unbind`. Or no loop: `table.sum(1)`. How many times as fast is the last?

# %%
guess = ...

# %%
compare(
    "overhead: the sums of 1,000 rows",
    {
        "for i: table[i].sum()": lambda table: torch.stack([table[i].sum() for i in range(len(table))]),
        "for row in unbind": lambda table: torch.stack([row.sum() for row in table.unbind()]),
        "table.sum(1)": lambda table: table.sum(1),
    },
    inputs=(1000, 16),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** An index makes a view, which is one more call for each row. `unbind` makes all views in one call from Python,
# and `for row in table` does the same: that is the way to walk over a tensor, if you must. The single operation has one
# price in all. (Predicted is more: 1,000 short sums take longer than to read them.)
#
# The same holds for reading. Python wants 1,000 numbers of a tensor. One by one, or all together with `tolist`?


# %%
def microseconds(call):
    """The time of one call in microseconds: in the shortest, least disturbed of nine turns of 2 ms or more."""
    timer, number = timeit.Timer(call), 1
    while timer.timeit(number) < 0.002:
        number *= 2
    return 1e6 * min(timer.repeat(9, number)) / number


table, values = torch.rand(1000, 16), torch.rand(1000)
walks = (lambda: [table[i] for i in range(1000)]), table.unbind, (lambda: [row for row in table])
calls = [costs(walk).views.total() for walk in walks]
print("calls that make views: {:,} by index, {} by unbind, {} by 'for row in table'".format(*calls))
single = microseconds(lambda: [values[i].item() for i in range(1000)])
together = microseconds(values.tolist)
print(f"one by one {single:.0f} µs, together {together:.0f} µs: {single / together:.0f} times as fast")
assert [values[i].item() for i in range(1000)] == values.tolist() and single > 5 * together
assert calls == [1000, 1, 1]

# %% [markdown]
# ## 4. A list of tensors
#
# Often the numbers are no table: 1,000 parameters, each a tensor of its own. Next to each we keep a running mean of its
# values, as many trainings do: `mean.lerp_(parameter, 0.1)`. Three ways:
#
# - a Python loop,
# - `torch._foreach_lerp_(means, parameters, 0.1)`, one call for the two *lists*; the optimisers' argument `foreach` is
#   made of such calls. (An underscore in front means: nobody promises that it stays as it is.)
# - one flat buffer with all numbers, in which the means are views: `flat_means.lerp_(flat_parameters, 0.1)`.
#
# 1,000 tensors of 20 numbers. How many times as fast as the loop is the buffer?

# %%
guess = ...


# %%
def in_a_loop(means, parameters, flat_means, flat_parameters):
    for mean, parameter in zip(means, parameters, strict=True):
        mean.lerp_(parameter, 0.1)
    return flat_means


def as_lists(means, parameters, flat_means, flat_parameters):
    torch._foreach_lerp_(means, parameters, 0.1)
    return flat_means


def in_one_buffer(means, parameters, flat_means, flat_parameters):
    return flat_means.lerp_(flat_parameters, 0.1)


def tensors_in_two_buffers(number, size):
    def make(generator, device):
        buffers = torch.rand(2, number * size, generator=generator).to(device).unbind()
        return *(list(buffer.split(size)) for buffer in buffers), *buffers

    return make


compare(
    "overhead: running means of 1,000 small tensors",
    {"loop": in_a_loop, "foreach": as_lists, "one buffer": in_one_buffer},
    inputs=tensors_in_two_buffers(1000, 20),
    guess=guess,
)

# %% [markdown]
# **Why** is `foreach` in between? `costs` counts one operation. The profiler looks deeper:

# %%
means, parameters, *_ = tensors_in_two_buffers(1000, 20)(torch.Generator(), "cpu")
print("costs:", dict(costs(torch._foreach_lerp_, means, parameters, 0.1).operations))
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    torch._foreach_lerp_(means, parameters, 0.1)
counts = {row.key: row.count for row in profiled.key_averages()}
print("profiler:", counts)
assert counts["aten::lerp_"] == 1000

# %% [markdown]
# On a CPU the list operation is a loop in C++: 1,000 operations are looked up and run as before. Saved are, for each,
# Python, the reading of its arguments, and autograd's check. (On an H200 it is 18 times as fast as the loop: there it is to
# "run the big chunks of computation all at once", says [torch](https://docs.pytorch.org/docs/stable/optim.html).)
#
# The buffer is one operation in earnest. A model can be moved into one: its parameters become views.

# %%
model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(50)))
x = torch.rand(4, 8)
before = model(x)
parameters = list(model.parameters())
flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
pieces = flat.split([parameter.numel() for parameter in parameters])
for parameter, piece in zip(parameters, pieces, strict=True):
    parameter.data = piece.view_as(parameter)
assert torch.equal(model(x), before)
scaled = costs(lambda: flat.mul_(0.5)).operations.total()
print("scaling all weights:", scaled, "operation for", len(parameters))
assert not torch.equal(model(x), before) and parameters[7].data_ptr() == pieces[7].data_ptr()
model.double()
print("after .double(), still views of the buffer:", parameters[7].data_ptr() == pieces[7].data_ptr())
assert parameters[7].data_ptr() != pieces[7].data_ptr()

# %% [markdown]
# They must *stay* views. Whatever makes new tensors, such as `.double()` or another device, leaves the buffer behind,
# and nobody says so. Move first, flatten afterwards.
#
# ### Optimisers
#
# The same page: "For-looping is usually slower than our foreach implementations". RMSprop with 200 parameters of 64
# numbers. How many times as fast as the loop is `foreach`?

# %%
guess = ...


# %%
@functools.cache
def rmsprop(device, number, size, foreach):
    parameters = [nn.Parameter(torch.linspace(-1, 1, size, device=device)) for _ in range(number)]
    for parameter in parameters:
        parameter.grad = torch.linspace(1, 2, size, device=device)
    return torch.optim.RMSprop(parameters, lr=1e-6, foreach=foreach)


def steps(number, size):
    return {
        name: lambda device, foreach=foreach: rmsprop(device, number, size, foreach).step()
        for name, foreach in {"for-loop": False, "foreach": True}.items()
    }


compare(
    "overhead: RMSprop, 200 parameters of 64 numbers",
    steps(200, 64),
    guess=guess,
    claim="F28",
)

# %% [markdown]
# And 16 parameters of 262,144 numbers each?

# %%
guess = ...

# %%
torch.ones(7_500_000)  # 30 MB, thrown away at once; below you see why
compare(
    "overhead: RMSprop, 16 parameters of 262,144 numbers",
    steps(16, 262_144),
    guess=guess,
    claim="F28",
    only="cpu",
)

# %% [markdown]
# **Why?** 16 parameters need few calls, so there is little to save. And a list operation makes its intermediate results
# for *all* parameters at once. That need not be slow. But where [the C
# library](https://man7.org/linux/man-pages/man3/mallopt.3.html) gives so much memory back after each step, the next one
# pays a *page fault* for each piece of it. Does it? The same two in a new process, and again after 30 MB were thrown away:

# %%
for name, step in steps(16, 262_144).items():
    print(f"{name:8} {costs(step, 'cpu').peak_bytes / 1e6:4.1f} MB of intermediate results at once, ", end="")
    print(f"{page_faults(step, 'cpu'):,.0f} page faults in a step of this notebook")
print(rmsprop_anew())

# %% [markdown]
# Linux's glibc learns: once it has freed 30 MB, it keeps up to twice as much (chapter 13 sets that by hand). Then
# little of the loss is left: count your faults. (On an H200, chapter 11 finds `foreach` 4.6 times as fast, for Adam.)
#
# Which one do you get if you say nothing? The same page: "So when applicable, we default to foreach over for-loop."
# Applicable means, it goes on, that there is one, that you asked for no other, "and all tensors are native". It also speaks
# of "the generally fastest implementation for the current device". What RMSprop does on a CPU, and what its docstring says:

# %%
parameter = nn.Parameter(torch.ones(3))
parameter.grad = torch.ones(3)
used = costs(torch.optim.RMSprop([parameter]).step).operations
print("RMSprop without a wish, on a CPU:", *used)
said = " ".join(torch.optim.RMSprop.__doc__.split())
said = said[said.index("we will try to use foreach") :].partition(",")[0]
print("Its argument foreach, without a wish:", said)
took, tried = any("foreach" in name for name in used), "on CUDA" in said
gpu = "the parameters are on a GPU"
behaviour("F29", "On a CPU, an optimiser without a wish takes foreach.", took, unless=gpu)
behaviour("F29", "On a GPU, says its docstring, it takes foreach.", tried, when=gpu)

# %% [markdown]
# The loop. So on a CPU, with many small parameters, ask for `foreach`; or better for `fused=True` (chapter 11).

# %% [markdown]
# ## 5. `vmap`: write it for one, run it for all
#
# `vmap(f)` makes of a function for one example a function for a batch of them (chapter 03 takes gradients so). A
# [tutorial](https://docs.pytorch.org/tutorials/intermediate/ensembling.html) says that it, "in general", "should be
# faster than running a function in a for-loop and competitive with manual batching. There are some exceptions though":
# an operation without a rule for it, older GPUs. 1,000 inner products: how many times as fast as the loop is `vmap`?

# %%
guess = ...


# %%
def two_lists(number, width):
    return lambda generator, device: torch.rand(2, number, width, generator=generator).to(device).unbind()


def dot_loop(a, b):
    return torch.stack([torch.dot(one, other) for one, other in zip(a, b, strict=True)])


def dot_by_hand(a, b):
    return (a * b).sum(1)


dot_vmap = vmap(torch.dot)
compare(
    "overhead: 1,000 inner products, a loop or vmap",
    {"loop": dot_loop, "vmap": dot_vmap},
    inputs=two_lists(1000, 32),
    guess=guess,
    claim="F26",
    because="prices",
)

# %% [markdown]
# **Why.** A thousand calls, or a few. (`vmap`'s own work, in Python, has no price in the prediction.) And as fast as
# what you would write by hand, `(a * b).sum(1)`?

# %%
guess = ...

# %%
compare(
    "overhead: 1,000 inner products, by hand or vmap",
    {"by hand": dot_by_hand, "vmap": dot_vmap},
    inputs=two_lists(1000, 32),
    guess=guess,
    claim="F27",
)

# %% [markdown]
# **Why.** Each time, `vmap` runs your function on tensors that only look like one example, and replaces every operation
# by its form for batches: the same work for each call. So the more work each example is, the less it counts: the last
# line has 200 products of larger tables.

# %%
for number in (1, 10, 100, 1000):
    inputs = two_lists(number, 32)(torch.Generator(), "cpu")
    figures = (microseconds(lambda f=f, i=inputs: f(*i)) for f in (dot_loop, dot_vmap, dot_by_hand))
    print("{:5,} × dot: loop {:7.1f} µs, vmap {:7.1f} µs, by hand {:5.1f} µs".format(number, *figures))
assert costs(dot_vmap, *inputs).views == costs(dot_vmap, *two_lists(1, 32)(torch.Generator(), "cpu")).views
tables = torch.rand(2, 200, 128, 128).unbind()
loop = microseconds(lambda: torch.stack([one @ other for one, other in zip(*tables, strict=True)]))
print(f"  200 × mm:  loop {loop:7.1f} µs, vmap {microseconds(lambda: vmap(torch.mm)(*tables)):7.1f} µs")

# %% [markdown]
# ### Ten networks
#
# Ten networks of one shape get the same 64 rows. Their weights are stacked. (For modules,
# `torch.func.stack_module_state` does that, and `functional_call` runs a module with given weights.) The width is 512,
# so each network has much to compute. How many times as fast as by hand is `vmap`? And the loop?

# %%
guess = ...


# %%
def network(x, first, bias, second):
    return torch.relu(F.linear(x, first, bias)) @ second


def networks(number, width, rows):
    def make(generator, device):
        shapes = (rows, width), (number, width, width), (number, width), (number, width, width)
        scales = 1, width**-0.5, 1, width**-0.5
        return tuple(
            (torch.randn(shape, generator=generator) * scale).to(device)
            for shape, scale in zip(shapes, scales, strict=True)
        )

    return make


def networks_loop(x, *weights):
    return torch.stack([network(x, *one) for one in zip(*weights, strict=True)])


def networks_by_hand(x, first, bias, second):
    hidden = torch.baddbmm(bias[:, None], x.expand(len(first), -1, -1), first.mT)
    return torch.relu(hidden) @ second


compare(
    "overhead: ten networks of width 512",
    {
        "by hand": networks_by_hand,
        "loop": networks_loop,
        "vmap": vmap(network, in_dims=(None, 0, 0, 0)),
    },
    inputs=networks(10, 512, 64),
    guess=guess,
    claim="F27",
    only="cpu",
    because="prices",
)

# %% [markdown]
# **Why.** This is the right side of the crossing: ten calls or one, the products take the time. So on a CPU take the
# one that reads best. On a GPU measure: a loop has ten times the launches.
#
# ### Once, and not for each
#
# `vmap` is no loop. [The page on its limits](https://docs.pytorch.org/docs/stable/func.ux_limitations.html) says that
# it "executes `f` a single time, so all side effects only happen once." How many entries does the list get from six
# examples? And with `chunk_size=2`? (Two numbers, such as `guess = 6, 6`.)

# %%
guess = ...


# %%
def noted(x):
    seen.append("here")
    return 2 * x


lengths = {}
for chunk_size in (None, 2):
    seen = []
    vmap(noted, chunk_size=chunk_size)(torch.rand(6))
    lengths[chunk_size] = len(seen)
guessed("entries from six examples, and with chunk_size=2", guess, tuple(lengths.values()))

# %%
for chunk_size, side in ((None, "when"), (2, "unless")):
    said = f"With chunk_size={chunk_size}, vmap calls its function once for six examples."
    behaviour("F31", said, lengths[chunk_size] == 1, **{side: "there is no chunk_size"})

# %% [markdown]
# The function ran once, for all examples together. With `chunk_size=2` it ran three times, for two examples each. So a
# counter or a log in the function counts chunks, and not examples.
#
# On the page, an example comes before that sentence. Its list is an *argument*, and is to lose one number:


# %%
def f(x, list):
    list.pop()
    return x.sum(0)


lst = [0, 1, 2, 3]
vmap(f, in_dims=(0, None))(torch.randn(3, 1), lst)
print("the list afterwards:", lst)
article_code("F31", "the example that pops one element", lambda: lst, right=lambda left: left == [0, 1, 2])

# %% [markdown]
# `vmap` takes lists apart, to find the tensors in them, and builds new ones for the function. Your list stays as it was.
#
# What cannot be said for all examples together is refused: a value (`.item()`), a decision by a value, a result whose
# size depends on values. A random operation must be told whether all examples share its numbers (`randomness="same"`,
# or `"different"`):

# %%
refused = {
    "x.item()": lambda x: x * x.item(),
    "if x > 0": lambda x: x if x > 0 else -x,
    "x.nonzero()": lambda x: x.nonzero(),
    "x + torch.rand(())": lambda x: x + torch.rand(()),
}
for name, function in refused.items():
    print(f"{name:19} {refusal(lambda function=function: vmap(function)(torch.rand(3)))[:95]}")

# %% [markdown]
# ## 6. The profiler, and what a starved device looks like
#
# Step 2 of [chapter 00](00_measuring.ipynb)'s routine: name the largest part. `score` is three lines: `permute` changes
# the order of the dimensions, `reshape` flattens each picture, `matmul` (`@`) multiplies. Which takes the most time?

# %%
guess = ...


# %%
def score(images, weights):
    reordered = images.permute(0, 2, 3, 1)
    flat = reordered.reshape(len(images), -1)
    return flat @ weights


images, weights = torch.rand(64, 3, 64, 64), torch.rand(3 * 64 * 64)
for _ in range(2):  # the profiler needs a warm-up, too
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(20):
            score(images, weights)
rows = {row.key: row for row in profiled.key_averages() if row.key.startswith("aten::")}
whole = sum(row.self_cpu_time_total for row in rows.values())
most = sorted(rows.values(), key=lambda row: -row.self_cpu_time_total)[:4]
lines = {name: rows[f"aten::{name}"].cpu_time_total / whole for name in ("permute", "reshape", "matmul")}
guessed(
    "the line that takes the most time",
    guess,
    max(lines, key=lines.get),
    "with what it calls   by itself   operation",
    *(f"{r.cpu_time_total / whole:18.0%} {r.self_cpu_time_total / whole:11.0%}   {r.key}" for r in most),
    *(f"line with {name}: {share:.0%}" for name, share in lines.items()),
)

# %% [markdown]
# `reshape` looks like nothing, but it must copy here: after `permute` the numbers lie in memory in another order than
# the flat rows need. The column *by itself* shows who works, *with what it calls* who asked for it. The profiler also
# knows *when* each call ran. `export_chrome_trace` writes that into a *trace*: a JSON file with an entry for each call,
# which [Perfetto](https://ui.perfetto.dev) draws as bars, below each bar those that it called. One call of `score`, read:

# %%
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    score(images, weights)
with tempfile.TemporaryDirectory() as folder:
    profiled.export_chrome_trace(f"{folder}/trace.json")
    events = json.loads(Path(folder, "trace.json").read_text(encoding="utf-8"))["traceEvents"]
called = [one for one in events if one.get("cat") == "cpu_op"]
print("an entry:", {key: called[0][key] for key in ("name", "tid", "ts", "dur")}, "(begin and length in µs)")
for call in sorted(called, key=lambda one: (one["ts"], -one["dur"])):
    end = call["ts"] + call["dur"]
    depth = sum(one["ts"] <= call["ts"] and end <= one["ts"] + one["dur"] for one in called)
    print(f"{call['ts'] - called[0]['ts']:8.1f} µs{'  ' * depth}{call['name']}, {call['dur']:.1f} µs")
assert "aten::copy_" in [call["name"] for call in called]

# %% [markdown]
# ### Starved
#
# Three programs run the same loop, a product and a `tanh`: with tables of 16 × 16, of 400 × 400, and of 16 × 16 with
# some Python in between. In how many percent of the time does an operation run, in the third?

# %%
guess = ...


# %%
def looked_at(width, python):
    x, weight = torch.rand(width, width), torch.rand(width, width) / width
    for number in range(60):
        if number == 30:
            with profile(activities=[ProfilerActivity.CPU]):
                x = torch.tanh(x @ weight)
        x = torch.tanh(x @ weight)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(30):
            x = torch.tanh(x @ weight)
            if python:
                sorted(str(number) for number in range(100))
    return spans_of(profiled)


traces = {
    "400 × 400": looked_at(400, python=False),
    "16 × 16": looked_at(16, python=False),
    "16 × 16, and Python in between": looked_at(16, python=True),
}
third, lines = (
    busy(traces["16 × 16, and Python in between"]),
    (f"{n}: {busy(s):.0%}" for n, s in traces.items()),
)
guessed("percent of the time in the third", guess, 100 * third, *lines, drawing=draw_gaps(traces))

# %% [markdown]
# Blue is an operation, grey is everything else: Python, and what the profiler itself does between operations. With
# large tables there is hardly any grey. With small ones, whose is it? One turn, without the profiler and with it:

# %%
for width in (400, 16, 1):
    x, looks = torch.rand(width, width), [looked_at(width, python=False) for _ in range(5)]
    spans = min(looks, key=lambda spans: spans[-1][2])  # the least disturbed, as for the call alone
    alone, profiled = microseconds(lambda x=x: torch.tanh(x @ x)), spans[-1][2] / 30
    blue = profiled * busy(spans)
    print(f"{width:3} × {width:3}: {alone:6.1f} µs; profiled {profiled:6.1f} µs, {blue:6.1f} µs of it blue")

# %% [markdown]
# Without the profiler, a turn with small tables takes about as long as its blue part alone, or less: most of that grey
# is the profiler's own. (So never compare a time from a profile with one without.) And most of the blue is the price of
# the two calls: tables of 1 × 1 have it, too. No faster kernel would change either. In the third, the grey is Python's.
#
# On a GPU the picture has two rows. Python's row launches; the device's row computes, later. A **starved** device has
# gaps in *its* row: each kernel ends before the next has been launched. The total of the kernels' times is then far
# below the time on the wall. (Chapter 00 draws both rows.) The next cell measures it where there is a GPU.

# %%
if torch.cuda.is_available():
    for width in (16, 2048):
        x = weight = torch.rand(width, width, device="cuda") / width
        for _ in range(2):
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
                for _ in range(30):
                    x = torch.tanh(x @ weight)
                torch.cuda.synchronize()
        print(f"{width} × {width}: the GPU works {busy(spans_of(profiled, 'cuda')):.0%} of the time")
else:
    print("No GPU here. On one, this cell says in which share of the time it works.")

# %% [markdown]
# What to look for in a profile, in this order: an operation that is called once for each sample, row or parameter;
# calls of a few microseconds each; much more time on the wall than in operations.

# %% [markdown]
# ## 7. CUDA graphs: launch once, replay often
#
# Some programs cannot be batched: forty small layers, one after the other. For these a GPU has another way. It
# *captures* the launches of a piece of your program once, and repeats all with a single launch. The documentation
# promises "greatly reduced CPU overhead". (`torch.compile` does it with `mode="reduce-overhead"`: chapter 15.)
#
# [Its rules](https://docs.pytorch.org/docs/stable/notes/cuda.html): "Every replay reads from and writes to the same
# (virtual) memory addresses." "CPU work is not captured." `Tape`, in this course, shows what follows from them, on any
# device: it records operations, and not what Python does; `replay` runs them again on the same tensors. (It is not fast.)
# It differs from a CUDA graph. It computes while it records. It keeps your tensors alive,
# while a CUDA graph remembers addresses only: drop the input, and a replay reads what lies there by then. (In torch 2.15
# `torch.cuda.graph(…, check_input_liveness=True)` raises instead.) And it refuses fewer waits.
#
# The block below is recorded with `x` full of 1, `step` being 1. Then `step` becomes 2, `x` is *filled* with 10, and
# the tape is replayed. Which number is in `y`, three times?

# %%
guess = ...

# %%
x, step, log = torch.ones(3), 1, []
with Tape() as tape:
    step_here = step
    y = x * 2 + step_here
    log.append("recorded")
assert y.tolist() == [3.0] * 3  # a CUDA graph's capture would compute nothing
step = 2
x.fill_(10)
tape.replay()
guessed("each number in y", guess, int(y[0]), f"y = {y.tolist()}; the log has {len(log)} line")

# %% [markdown]
# 2 × 10 + 1. The new values in `x` were read, since they lie where the old ones lay. `step` was a Python number; the
# tape has the 1 that it was. And the log is Python's.
#
# Four ways to get it wrong. With `Tape`, all but the last run without an error:

# %%
assert y.tolist() == [21.0] * 3 and log == ["recorded"]
given = torch.ones(3)


def fresh(function):
    """Record a function of ``given``, which holds ones; give the tape and the result."""
    given.fill_(1)
    with Tape() as tape:
        result = function(given)
    return tape, result


tape, y = fresh(lambda x: x * 2)
given = torch.full((3,), 10.0)  # another tensor with the same name
tape.replay()
print("a new tensor, and not a new content:", y.tolist(), "instead of", [20.0] * 3)
assert y.tolist() == [2.0] * 3

given = torch.ones(3)
tape, y = fresh(lambda x: x * 2)
kept = []
for value in (10, 20):
    given.fill_(value)
    tape.replay()
    kept.append(y)  # y.clone() would keep it
print("a result kept without clone:        ", [one.tolist() for one in kept])
assert kept[0].tolist() == kept[1].tolist() == [40.0] * 3

rates = iter([0.1, 0.2])
tape, y = fresh(lambda x: x * next(rates))
tape.replay()
print("a rate from Python:                 ", y.tolist(), "instead of", [0.2] * 3)
assert torch.allclose(y, torch.full((3,), 0.1))

print("a decision by a value:              ", refusal(lambda: fresh(lambda x: x if x.sum() > 0 else -x)))

# %% [markdown]
# So what changes from replay to replay must be *in a tensor that stays*: copy the batch into it, keep the learning rate
# in one (for an optimiser with `fused=True` or `capturable=True`; the others ask it for its value), decide with
# `torch.where` (or with `torch.cond`, under `torch.compile(backend="cudagraphs")` of 2.15). "Dynamic shapes are
# prohibited": a last, smaller batch needs its own graph, or padding, or runs without one. Results are read, or cloned,
# before the next replay.
#
# A whole training step can be captured, since a backward pass and an optimiser are operations, too. Twenty batches, and
# SGD with momentum: one step is recorded, the first or the second, and those after it are replays.


# %%
def errors(batches, recorded, **options):
    """Train on all batches. The step of this number is recorded; all after it repeat it."""
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), **options)
    batch, history = batches[0].clone(), []

    def step():
        optimizer.zero_grad()
        error = model(batch).square().mean()
        error.backward()
        optimizer.step()
        return error

    for number, new in enumerate(batches):
        batch.copy_(new)
        if number < recorded:
            error = step()
        elif number == recorded:
            with Tape() as tape:
                error = step()
        else:
            tape.replay()
        history.append(error.item())
    return history


batches, options = torch.rand(20, 16, 8), {"lr": 0.1, "momentum": 0.9}
plain, first, second = (errors(batches, recorded, **options) for recorded in (20, 0, 1))
for name, history in {"no replay": plain, "first recorded": first, "second recorded": second}.items():
    print(f"{name:16} errors", *(f"{error:.4f}" for error in history[:4]), "…", f"{history[-1]:.4f}")
assert second == plain and first[:2] == plain[:2] and first[2] != plain[2]
tensor_rate = {"lr": torch.tensor(0.1), "fused": True}
assert errors(batches, 1, **tensor_rate) == errors(batches, 20, **tensor_rate)
print("a rate in a tensor, not fused:", refusal(lambda: errors(batches, 1, lr=torch.tensor(0.1))))

# %% [markdown]
# An optimiser makes its averages, here the momentum, in its first step. A recording of that makes them anew in every
# replay: no error, and another training. So take one step as usual, and record afterwards. `Adam` must be told
# `capturable=True`. And on a GPU the recording itself computes nothing: its batch has to be replayed, too.

# %% [markdown]
# On a GPU: forty small layers, one launch for each operation, or one replay. How many times as fast is the replay?
# (Without a GPU you see a recording. Before the capture, the work runs a few times on a stream of its own, as the
# documentation asks. [`torch.cuda.make_graphed_callables`](https://docs.pytorch.org/docs/stable/generated/torch.cuda.make_graphed_callables.html)
# does all that for a module, with its backward pass.)

# %%
guess = ...


# %%
@functools.cache
def layers_on(device):
    torch.manual_seed(0)
    return [torch.randn(64, 64, device=device) / 8 for _ in range(40)]


def forty_layers(x):
    for weight in layers_on(x.device.type):
        x = torch.relu(x @ weight)
    return x


@functools.cache
def captured():
    x = torch.zeros(16, 64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            forty_layers(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = forty_layers(x)
    return graph, x, result


def replayed(x):
    graph, place, result = captured()
    place.copy_(x)
    graph.replay()
    return result.clone()


compare(
    "overhead: forty small layers on a GPU, replayed",
    {"a launch for each": forty_layers, "one replay": replayed},
    inputs=(16, 64),
    guess=guess,
    claim="F25",
    only="cuda",
)

# %% [markdown]
# On an H200, each of the 80 operations takes 19 µs launched by Python, and 2 µs in the replay.
#
# When does it not help? The documentation says: try it if "you suspect its runtime is at least somewhat CPU-limited".
# Where kernels are long, Python runs ahead, and its time is hidden behind the device's.

# %% [markdown]
# ## Further
#
# You can skip this part: the exercises do not need it. It asks what `inference_mode` saves, what `vmap` does with a few
# examples and with an operation that it does not know, and how much memory it needs.
#
# ### What others found with CUDA graphs
#
# [What others published](../docs/published.md) on *F25*, from a kernel alone to whole trainings:

# %%
from autograder import published

published("F25")

# %% [markdown]
# Crosses are kernels that take much longer than a launch. (Hollow: the answers of a language model were kept in another way,
# too, so nobody knows which of the two helped.)
#
# ### `inference_mode`
#
# Section 2 counted what autograd adds. `no_grad` takes away its graph; `inference_mode` takes away more: tensors made
# in it count no versions, and their views are not tracked. "If it works out of the box for your use case it's a free
# performance win", says [the documentation](https://docs.pytorch.org/docs/stable/notes/autograd.html). 100 views of a
# tensor made in it: how many times as fast as under `no_grad`?

# %%
guess = ...


# %%
def views_under(mode):
    def run(x):
        with mode():
            x = x.clone()  # made in the mode
            return [x[place] for place in range(100)][-1].clone()

    return run


def layers_under(mode):
    def run(x, weight):
        with mode():
            for _ in range(10):
                x = torch.relu(x @ weight)
            return x

    return run


MODES = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}
compare(
    "overhead: 100 views, without gradients",
    {name: views_under(mode) for name, mode in MODES.items()},
    inputs=(100, 16),
    guess=guess,
    claim="F30",
)

# %% [markdown]
# And ten layers of 256 × 256?

# %%
guess = ...


# %%
def rows_and_a_weight(generator, device):
    return (
        torch.rand(32, 256, generator=generator).to(device),
        (torch.rand(256, 256, generator=generator) / 128).to(device),
    )


compare(
    "overhead: ten layers, without gradients",
    {name: layers_under(mode) for name, mode in MODES.items()},
    inputs=rows_and_a_weight,
    guess=guess,
    claim="F30",
    only="cpu",
)

# %% [markdown]
# What is saved for each view? And with layers as small as these?

# %%
x = torch.rand(100, 16)
no_grad, inference = (microseconds(functools.partial(views_under(mode), x)) for mode in MODES.values())
print(f"views of a tensor made in it: {10 * (no_grad - inference):.0f} ns saved for each")
for width in (16, 256):
    tables = torch.rand(16, width), torch.rand(width, width) / width
    no_grad, inference = (microseconds(functools.partial(layers_under(m), *tables)) for m in MODES.values())
    print(f"ten layers of {width} × {width}: {no_grad / inference:.2f} times as fast")

# %% [markdown]
# That is a gain where there are hardly any operations but such views. Layers of 256 × 256 do not notice; where a layer is
# so small that its calls are the price, each call saves a little, too. And "free" has a price: what is made in it cannot
# be kept for a backward pass. `clone()` mends that, with a copy (chapter 03).
#
# ### A few examples
#
# `vmap`'s own calls are the same for a few examples as for many. 5 products: how many times as fast as the loop?

# %%
guess = ...

# %%
compare(
    "overhead: 5 inner products, a loop or vmap",
    {"loop": dot_loop, "vmap": dot_vmap},
    inputs=two_lists(5, 32),
    guess=guess,
    claim="F26",
    only="cpu",
)

# %% [markdown]
# ### An operation without a rule
#
# `vmap` replaces each operation by its form for batches. Where torch has no such form, which is the tutorial's
# exception, it mostly falls back to a loop, and warns; `torch.equal` it refuses. Histograms of 200 rows: how many times
# as fast as a loop is `vmap`?

# %%
guess = ...


# %%
def histogram(row):
    return torch.histc(row, 10, 0, 1)


with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    vmap(histogram)(torch.rand(3, 16))
equal = refusal(lambda: vmap(lambda row: row if torch.equal(row, row) else -row)(torch.rand(3, 16)))
print("torch.equal:", equal)
messages = [str(warning.message).split(" (Triggered")[0] for warning in told]
print(*messages or ["no warning: this version of torch has a rule for it"])
warnings.filterwarnings("ignore", "There is a performance drop")
compare(
    "overhead: 200 histograms, a loop or vmap",
    {
        "loop": lambda rows: torch.stack([histogram(row) for row in rows.unbind()]),
        "vmap": vmap(histogram),
    },
    inputs=(200, 16),
    guess=guess,
)
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    vmap(histogram)(torch.rand(200, 16))
counts = {row.key: row.count for row in profiled.key_averages()}
print("calls of histc in one call of vmap:", counts["aten::histc"])

# %% [markdown]
# Where the warning comes, the profiler counts one call for each row: the loop has moved, and is still there.
#
# ### The memory of `vmap`
#
# All examples together also means: all intermediate results together. [The
# documentation](https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html): "If you run into memory issues
# computing the vmap, please try a non-None chunk_size." Two functions for 256 examples. One makes a long row on its way
# to a short result. The other is the gradient for each example, and its *result* is long. How many times less
# memory at once does the first need with `chunk_size=16`?

# %%
guess = ...

# %%
wide, narrow = torch.randn(64, 1024), torch.randn(1024, 4)
square = torch.randn(64, 64)


def short_result(x):
    return torch.tanh(x @ wide).square() @ narrow


def loss(weight, x):
    return torch.tanh(x @ weight).square().sum()


examples = torch.rand(256, 64)
peaks = {}
for chunk_size in (None, 16):
    whole = vmap(short_result, chunk_size=chunk_size)
    gradients = vmap(grad(loss), in_dims=(None, 0), chunk_size=chunk_size)
    peaks["short result", chunk_size] = costs(whole, examples).peak_bytes
    peaks["gradients", chunk_size] = costs(gradients, square, examples).peak_bytes
lines = [f"{name:12}, chunk_size={size!s:4}: {peak / 1e6:5.2f} MB" for (name, size), peak in peaks.items()]
guessed("times less memory", guess, peaks["short result", None] / peaks["short result", 16], *lines)

# %%
fewer(
    "F43",
    "bytes at once, a wide layer on the way",
    without=peaks["short result", None],
    following=peaks["short result", 16],
    when="results are much smaller than what is made on the way to them",
)
fewer(
    "F43",
    "bytes at once, gradients of each example",
    without=peaks["gradients", None],
    following=peaks["gradients", 16],
    unless="results are much smaller than what is made on the way to them",
)

# %% [markdown]
# The chunks' results are joined at the end: a copy of all of them. Where results are the memory, that makes it more.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** profile, predict calls × the price of one, and take calls away; verify with the clock.
#
# | you see | do | because |
# |---|---|---|
# | tensors left of the crossing (section 1) | count calls, not numbers | a call has its price before the first number |
# | a loop over rows | one operation with `dim=`; else `unbind` | each index is a call as well |
# | `.item()` in a loop | `tolist`, once | one call reads all |
# | a `with no_grad()` in the inner loop | around the loop | entering costs more than one small operation saves |
# | a list of small tensors | one buffer with views; else `foreach` | on a CPU, `foreach` is a loop in C++ |
# | few large tensors on a CPU | keep the loop | no calls to save; intermediate results of a list need more memory |
# | a function for one example, many examples | `vmap`; by hand if it is the bottleneck | `vmap` has a fixed price per call |
# | few examples | a loop | on one CPU thread as fast or faster, and easier to read |
# | `vmap` needs too much memory | `chunk_size`, if results are small | chunks are joined by a copy |
# | gaps in a profile that are not the profiler's own | fewer calls, less Python in between | no faster kernel fills them |
# | a GPU that is starved, fixed shapes | CUDA graphs, or `mode="reduce-overhead"` | one launch in place of many |
# | anything that changes, in a graph | a tensor that stays, filled anew | Python is not replayed |

# %%
verdicts("F25", "F26", "F27", "F28", "F29", "F30", "F31", "F43")

# %% [markdown]
# *F29*: right on a GPU, by the docstring; the page's sentence names no device. *F31*: right without `chunk_size`; the
# example above that sentence on the page does something else.
#
# **Now you:** [the exercises of this chapter](../exercises/18_launch_overhead/18_launch_overhead.ipynb). Gradients in
# one look, systems of many sizes, sixteen trainings in one, a forest, and a recurrence without its thousand steps.
