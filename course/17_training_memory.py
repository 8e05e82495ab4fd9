# %% [markdown]
# # 17 · The memory of a training step
#
# A training that is too slow gets there in the end. One that needs too much memory stops. So this
# chapter weighs: which bytes does a training step hold, when, and which of them can you do without?
#
# Most chapters test five widely read articles; this one tests PyTorch's own documentation. IDs such as *F17* are the
# course's numbers for its claims, listed in [the score](claims.ipynb). `compare`, which times, `costs`, which counts,
# and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - say what fills the memory, weights, gradients, the optimiser's state or activations, and in which moment,
# - choose the remedy that works on just that part, and foretell what it saves,
# - keep less for the backward pass: compute it again, keep half of its bits, or never make the table,
# - tell where a famous remedy saves nothing, or makes it worse.
#
# **Time:** 50 minutes to read and run; 10 more for the part *Further*, which can be skipped. **Needs:** CPU, GPU if
# any. Chapter 03, sections 2 to 6 and 8: the graph, what it keeps, parts of a batch, `checkpoint_sequential`.
#
# **Claims tested:** *F17* "checkpoint activation functions"; *F19* "most memory is needed in the optimiser's step; stepping
# inside of backward saves it"; *F21* "accumulating over parts is one large batch"; *F22* "a name keeps its tensor alive after
# the loop"; *F23* "`grad = None` instead of `zero_grad()`"; in *Further* *F18* "the reentrant checkpoint gives no gradients
# if no input requires them", *F20* "`save_on_cpu` copies nothing on a CPU", *F24* "expandable segments lose less memory".

# %%
import functools
import gc
import os
import tempfile
import warnings
from pathlib import Path

os.environ["KINETO_LOG_LEVEL"] = "6"  # the profiler's log, which is read when torch is loaded

import torch
import torch.nn.functional as F
from parts.memory import Watch, draw_steps, profiled_peak, reserved_after
from parts.overhead import page_faults
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from autograder import behaviour, compare, costs, devices, documented, fewer, guessed, recall, verdicts

torch.set_num_threads(1)
print("devices here:", *devices())
recall("17", ..., ..., ...)

# %% [markdown]
# ## 1. Where are the bytes?
#
# A training step holds four things: the **weights**, their **gradients**, the **optimiser's state** (Adam keeps two
# averages for each weight), and the **activations**: what the graph keeps of the forward pass for the backward pass.
# Here is a model of eight blocks, such as transformers have between their attention layers: a norm, a layer to four
# times the width, GELU, and back.


# %%
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def eight_blocks(device="cpu", width=128):
    torch.manual_seed(17)
    return nn.Sequential(*[Block(width) for _ in range(8)]).to(device)


def rows_of(rows, width=128):
    return lambda generator, device: torch.randn(rows, width, generator=generator).to(device)


model = eight_blocks()
weights = sum(parameter.nbytes for parameter in model.parameters())
print(f"{sum(parameter.numel() for parameter in model.parameters()):,} weights: {weights / 1e6:.1f} MB")

# %% [markdown]
# One step with a batch of 16 rows, and one with 512 rows. Which of the four is the largest in each, such as
# `guess = "gradients", "weights"`? (And in which phase is the peak: forward, backward, or the optimiser's step?)

# %%
guess = ...


# %%
def state_of(*optimisers):
    return [
        value
        for optimiser in optimisers
        for state in optimiser.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    ]


def watched_step(model, x, optimiser):
    """One step, watched by a tool of this chapter: it notes when each tensor is made, and when it is gone.

    Weights, state and gradients are named to it. What the forward pass leaves alive counts as activations, and
    all the rest as short-lived.
    """
    there = {"weights": list(model.parameters()), "optimiser state": state_of(optimiser)}
    with Watch(**there) as watch:
        loss = model(x).square().mean()
        watch.phase("forward", kept="activations")
        loss.backward()
        watch.name("gradients", [parameter.grad for parameter in model.parameters()])
        watch.phase("backward")
        optimiser.step()
        watch.phase("step")
    optimiser.zero_grad()
    return watch


optimiser = torch.optim.Adam(model.parameters())
watched_step(model, torch.randn(16, 128), optimiser)  # Adam makes its state in the first step
watches = {f"{rows} rows": watched_step(model, torch.randn(rows, 128), optimiser) for rows in (16, 512)}
lines, largest = [], []
for title, watch in watches.items():
    most = {kind: max(watch.alive(kind)) / 1e6 for kind in watch.kinds()}
    largest.append(max(most.keys() - {"short-lived"}, key=most.get))
    lines.append(f"{title}: " + ", ".join(f"{kind} {size:.2f} MB" for kind, size in most.items()))
    peaks = {name: watch.peak_of(name) / 1e6 for name, _ in watch.phases}
    lines.append("  peak in the " + ", ".join(f"{name} {size:.1f} MB" for name, size in peaks.items()))
guessed("the largest with 16 rows, and with 512", guess, tuple(largest), *lines, drawing=draw_steps(watches))

# %% [markdown]
# Forward, activations pile up. Backward takes them away, block by block, and lays down the
# gradients. The step needs a little: this Adam goes from weight to weight (section 3 has the other one). Below lie the
# weights and the state, all the time.
#
# The four follow different rules. Weights, gradients and state do not ask how large the batch is. Activations do: 32 times
# the rows, 32 times the bytes. So ask first which band is wide: each remedy works on one.

# %%
small, large = (max(watch.alive("activations")) for watch in watches.values())
assert 31 < large / small < 33
for kind in ("weights", "gradients", "optimiser state"):
    assert len({max(watch.alive(kind)) for watch in watches.values()}) == 1

# %% [markdown]
# ## 2. Bytes for each weight
#
# The bands that do not depend on the batch can be counted in bytes for each weight. A weight in `float32` has 4, and so
# has its gradient. How many bytes for each weight does a training with Adam hold? And if weights and gradients are in
# `bfloat16`, with a copy of the weights in `float32` for the optimiser?

# %%
guess = ...


# %%
def bytes_for_each_weight(dtype, optimiser_of, copy=False):
    weight = nn.Parameter(torch.ones(100, 100, dtype=dtype))
    weight.grad = torch.ones_like(weight)
    held = [weight, weight.grad]
    if copy:
        held.append(copy_of := nn.Parameter(weight.detach().float()))
        copy_of.grad = weight.grad.float()  # there in the step only, so not counted
        optimiser = optimiser_of([copy_of])
    else:
        optimiser = optimiser_of([weight])
    optimiser.step()
    return sum(one.nbytes for one in held + state_of(optimiser) if one.numel() > 1) / weight.numel()


momentum = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9)
recipes = {
    "float32, plain SGD": (torch.float32, functools.partial(torch.optim.SGD, lr=0.1)),
    "float32, SGD with momentum": (torch.float32, momentum),
    "float32, Adam": (torch.float32, torch.optim.Adam),
    "float32, Adafactor": (torch.float32, torch.optim.Adafactor),
    "bfloat16 with a float32 copy, Adam": (torch.bfloat16, torch.optim.Adam, True),
    "bfloat16 and nothing else, Adam": (torch.bfloat16, torch.optim.Adam),
}
held = {name: bytes_for_each_weight(*recipe) for name, recipe in recipes.items()}
assert held["bfloat16 and nothing else, Adam"] < held["bfloat16 with a float32 copy, Adam"]
adam = tuple(int(held[name]) for name in ("float32, Adam", "bfloat16 with a float32 copy, Adam"))
lines = (f"{name:36} {number:g} bytes" for name, number in held.items())
guessed("bytes for each weight with Adam, and with a copy", guess, adam, *lines)

# %% [markdown]
# Adafactor keeps one number for each row and column of a weight. (The library
# [torchao](https://github.com/pytorch/ao/tree/main/torchao/optim) has an Adam with averages of one byte.) The copy takes all that 16 bits have saved: 2 + 2 + 4 + 8 are as many as 4 + 4 + 8. (And in the step there are
# 4 more, a gradient in `float32`.) `autocast` of [chapter 07](07_mixed_precision.ipynb) leaves weights and gradients in
# `float32`: 4 + 4 + 8. And its graph keeps a 16-bit copy of nearly every weight, 2 more until backward is done (section
# 8 there). What both save are activations and time.
#
# **Why not leave the copy out**, as in the last line? A step that is small beside its weight is rounded away, each time:
# [chapter 07](07_mixed_precision.ipynb), section 7, shows it. The copy adds up what is too small to see.
#
# ## 3. The step inside of backward
#
# Gradients are a quarter of the 16 bytes. Must all of them exist at once? A hook can step as soon as a gradient is there,
# and throw it away. PyTorch's tutorial says of its example: "The peak memory usage is during the optimizer step!"
# (*F19*), and its remedy is such a hook, with one optimiser for each weight. How many times less memory does it need in
# all, with 16 rows? With 512?

# %%
guess = ...


# %%
def step_in_backward(model):
    """Let hooks do the optimiser's work; give the optimisers back, one for each parameter."""
    each = {parameter: torch.optim.Adam([parameter]) for parameter in model.parameters()}

    def step(parameter):
        each[parameter].step()
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    return list(each.values())


def peak_with_hooks(model, optimisers, x):
    with Watch(weights=list(model.parameters()), state=state_of(*optimisers)) as watch:
        model(x).square().mean().backward()
    return watch.peak()


hooked, as_lists = eight_blocks(), torch.optim.Adam(model.parameters(), foreach=True)  # the default on CUDA
optimisers = step_in_backward(hooked)
hooked(torch.randn(16, 128)).sum().backward()  # makes the state
in_lists = [watched_step(model, torch.randn(16, 128), as_lists) for _ in range(2)][1].peak()
peaks = {
    rows: (watches[f"{rows} rows"].peak(), peak_with_hooks(hooked, optimisers, torch.randn(rows, 128)))
    for rows in (16, 512)
}
guessed(
    "times less memory with 16 rows, and with 512",
    guess,
    tuple(after / inside for after, inside in peaks.values()),
    *(
        f"{rows} rows: at most {after / 1e6:.1f} MB, {inside / 1e6:.1f} MB with steps inside of backward"
        for rows, (after, inside) in peaks.items()
    ),
    f"16 rows, one step at the end with foreach=True: {in_lists / 1e6:.1f} MB",
)

# %%
few_rows = "the activations are small beside the weights"
fewer("F19", "bytes alive at once, 16 rows", without=peaks[16][0], following=peaks[16][1], when=few_rows)
fewer("F19", "bytes alive at once, 16 rows, foreach", without=in_lists, following=peaks[16][1], when=few_rows)
fewer("F19", "bytes alive at once, 512 rows", without=peaks[512][0], following=peaks[512][1], unless=few_rows)
assert peaks[16][0] / peaks[16][1] > peaks[512][0] / peaks[512][1] and in_lists > peaks[16][0]

# %% [markdown]
# **Why.** With 16 rows the peak is in the step, where all gradients lie. With 512 rows it is where backward begins, and
# there is no gradient yet. And with 16 rows it saves less than all: when the first weight steps, its own gradient is
# there, and so are the activations. With `foreach=True` the step makes its sums for all weights at once.
#
# Does it cost time?


# %%
@functools.cache
def trained(device, inside):
    model = eight_blocks(device)
    return model, step_in_backward(model) if inside else torch.optim.Adam(model.parameters())


def one_step_at_the_end(x):
    model, optimiser = trained(x.device, False)
    optimiser.zero_grad()
    model(x).square().mean().backward()
    optimiser.step()


def steps_inside(x):
    trained(x.device, True)[0](x).square().mean().backward()


compare(
    "memory: Adam after backward, or inside of it",
    {"one step at the end": one_step_at_the_end, "steps inside of backward": steps_inside},
    inputs=rows_of(16),
)

# %% [markdown]
# The arithmetic is the same. But 48 optimisers step instead of one, and each `step()` runs some Python first. (On a GPU
# it also takes away `foreach`: [chapter 11](11_modules.ipynb).)
#
# Is it safe to change a weight while backward still runs? The hook waits for all parts of the gradient that *one*
# backward pass knows of. A weight is used twice, once as it is and once in two reentrant checkpoints (see *Further*):


# %%
def note_and_step(weight):
    seen.append(weight.grad)
    weight.sub_(weight.grad)


x, weight = torch.randn(4, 8, requires_grad=True), nn.Parameter(torch.randn(8, 8))
weight.register_post_accumulate_grad_hook(note_and_step)
layer, reentrant = lambda x: x @ weight, functools.partial(checkpoint, use_reentrant=True)
for times, of_two in (1, lambda: layer(layer(x))), (2, lambda: reentrant(layer, reentrant(layer, x))):
    seen, weight.grad = [], None
    of_two().sum().backward()
    print("times that the hook ran:", len(seen))
    assert len(seen) == times

# %% [markdown]
# Such a checkpoint has a backward pass of its own. So the hook steps with half of the gradient, the other checkpoint
# computes its forward pass again with the *changed* weight, and nobody complains. `use_reentrant=False` is safe.
#
# There is another price. What needs *all* gradients at once sees none:

# %%
hooked(torch.randn(16, 128)).sum().backward()
print("length of all gradients:", nn.utils.clip_grad_norm_(hooked.parameters(), 1.0).item())
assert all(parameter.grad is None for parameter in hooked.parameters())

# %% [markdown]
# Clipping finds nothing to clip, and says nothing. And gradients cannot be added up over parts of a batch: each
# `backward()` has stepped already. (One of the exercises clips all the same.)
#
# ## 4. What lives on without a reason
#
# ### `grad = None`
#
# The Performance Tuning Guide: "Use parameter.grad = None instead of model.zero_grad() or optimizer.zero_grad()" (*F23*).
# How many times as fast is a loop that sets `None`, in a forward and backward pass for 64 rows?

# %%
guess = ...


# %%
@functools.cache
def cleared(device):
    model = eight_blocks(device)
    return model, torch.optim.Adam(model.parameters())


def set_to_none(model, optimiser):
    for parameter in model.parameters():
        parameter.grad = None


def forward_and_backward(clear):
    def run(x):
        model, optimiser = cleared(x.device)
        clear(model, optimiser)
        model(x).square().mean().backward()
        return model[0].up.weight.grad

    return run


ways = {
    "optimizer.zero_grad()": forward_and_backward(lambda model, optimiser: optimiser.zero_grad()),
    "model.zero_grad()": forward_and_backward(lambda model, optimiser: model.zero_grad()),
    "grad = None": forward_and_backward(set_to_none),
}
compare("memory: three ways to clear gradients", ways, inputs=rows_of(64), guess=guess, claim="F23")
x = torch.randn(64, 128)
counts = [costs(way, x).operations.total() for way in ways.values()]
print("operations:", *counts)
assert len(set(counts)) == 1

# %% [markdown]
# They do the same: `zero_grad()` itself sets `None`, unless you ask for zeros. ([Chapter 11](11_modules.ipynb) times
# zeros.) The *place* matters more. Two passes with 512 rows each, cleared in three ways, without the weights and the
# state of section 1:


# %%
def two_steps(model, x, clear):
    for _ in range(2):
        if clear in ("before forward", "with zeros"):
            model.zero_grad(set_to_none=clear == "before forward")
        loss = model(x).square().mean()
        if clear == "before backward":
            model.zero_grad()
        loss.backward()
    model.zero_grad()


x, peaks = torch.randn(512, 128), {}
for clear in ("before forward", "before backward", "with zeros"):
    model.zero_grad()
    peaks[clear] = costs(two_steps, model, x, clear).peak_bytes
    print(f"cleared {clear:16} at most {peaks[clear] / 1e6:.1f} MB")
assert peaks["before forward"] < peaks["before backward"] <= peaks["with zeros"]
assert 0.9 < (peaks["with zeros"] - peaks["before forward"]) / weights < 1.1  # gradients: as large as weights

# %% [markdown]
# While the activations pile up, the old gradients should be gone. So clear right after the step, or before the forward
# pass. Cleared before backward, they are gone at least when backward makes its own first tables.
#
# ### A name
#
# The documentation's FAQ shows a loop like this one, with `f`, `g` and `h`, and says: "Here, `intermediate` remains live
# even while `h` is executing, because its scope extrudes past the end of the loop." (*F22*). Each tensor here has 8 MB.
# How many times less memory does the version with `del` need?

# %%
guess = ...


# %%
f, g, h = lambda x: x * 2, torch.sum, lambda x: torch.ones(2_000_000) * x


def with_the_name(inputs):
    result = 0
    for x in inputs:
        intermediate = f(x)
        result += g(intermediate)
    return h(result)


def with_del(inputs):
    result = 0
    for x in inputs:
        intermediate = f(x)
        result += g(intermediate)
        del intermediate
    return h(result)


inputs = list(torch.randn(5, 2_000_000))
named, deleted = (costs(function, inputs).peak_bytes for function in (with_the_name, with_del))
guessed("times less memory with del", guess, named / deleted, f"With it: {deleted / 1e6:.0f} MB at most.")

# %%
fewer("F22", "bytes alive at once, the FAQ's loop", without=named, following=deleted)

# %% [markdown]
# `h` makes two tensors itself: these are left with `del`. A language model computes a score for each word of its
# vocabulary. Here are 512 rows and 8,192 words, so a table of scores has 16.8 MB.


# %%
def named_scores(hidden, head, labels, delete=False):
    scores = hidden @ head.T
    loss = F.cross_entropy(scores, labels)
    if delete:
        del scores
    return torch.autograd.grad(loss, (hidden, head))


def unnamed_scores(hidden, head, labels):
    loss = F.cross_entropy(hidden @ head.T, labels)
    return torch.autograd.grad(loss, (hidden, head))


def vocabulary(rows, words=8192, width=64):
    def make(generator, device):
        hidden = torch.randn(rows, width, generator=generator)
        head = torch.randn(words, width, generator=generator) / 8
        labels = torch.randint(words, (rows,), generator=generator)
        return hidden.to(device).requires_grad_(), head.to(device).requires_grad_(), labels.to(device)

    return make


inputs = vocabulary(512)(torch.Generator().manual_seed(0), "cpu")
named, unnamed = (costs(function, *inputs).peak_bytes for function in (named_scores, unnamed_scores))
table = 512 * 8192 * 4
print(f"with a name: {named / table:.2f} tables of scores at once; without: {unnamed / table:.2f}")
fewer("F22", "bytes alive at once, scores with a name", without=named, following=unnamed)
assert costs(named_scores, *inputs, delete=True).peak_bytes == unnamed

# %% [markdown]
# Autograd does not need the scores any more: it keeps their logarithmic softmax. The name keeps them all the same, until
# after the backward pass. `del scores` before it helps, too.
#
# ## 5. Activations: compute again
#
# A **checkpoint** keeps what goes into a function, and throws away what is inside. In the backward pass the function is
# computed once more. [Chapter 03](03_autograd.ipynb) cuts a model into segments with it. What to put into a checkpoint?
# The Tuning Guide: "The example target layers are activation functions (e.g. `ReLU`, `Sigmoid`, `Tanh`)" (*F17*). They
# are cheap to compute again, after all.
#
# A chain of 16 times layer and ReLU, 256 rows, and the forward pass only. How many times as much memory does it
# need when each ReLU is checkpointed? (Below 1 is less.)

# %%
guess = ...


# %%
def silu_in_steps(x):
    return x * torch.sigmoid(x)


class Chain(nn.Module):
    def __init__(self, activation, again):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(16)])
        self.activation, self.again = activation, again

    def forward(self, x):
        for layer in self.layers:
            if self.again:
                x = checkpoint(self.activation, layer(x), use_reentrant=False)
            else:
                x = self.activation(layer(x))
        return x


def forward_only(chain, x):
    return chain(x).square().mean()


kept, x = {}, torch.randn(256, 64)
for activation in (torch.relu, torch.sigmoid, torch.tanh, F.gelu, F.silu, silu_in_steps):
    kept[activation.__name__] = [
        costs(forward_only, Chain(activation, again), x).peak_bytes for again in (False, True)
    ]
guessed(
    "times as much memory with ReLU checkpointed",
    guess,
    kept["relu"][1] / kept["relu"][0],
    *(
        f"{name:13} {without / 1e6:.2f} MB; checkpointed {following / 1e6:.2f} MB: {following / without:.2f} times as much"
        for name, (without, following) in kept.items()
    ),
)

# %%
in_steps = "the activation function is several operations"
for name, (without, following) in kept.items():
    side = {"when": in_steps} if name == "silu_in_steps" else {"unless": in_steps}
    fewer("F17", f"bytes kept, {name}", without=without, following=following, **side)
    assert (without > following) == (name == "silu_in_steps")

# %% [markdown]
# **Why.** `relu`, `sigmoid` and `tanh` find their derivative from their *result*. The next layer keeps that anyway: one
# table for a layer. The checkpoint has to keep the *input*, too: two tables. `gelu` and `silu` keep their input
# themselves, so nothing changes. Only the one that is written out in steps wins: three tables were kept, now two.
#
# So do not checkpoint what is cheap to compute, but what *keeps much and needs little to come back*: a stretch of the
# model whose input is small beside all that is kept inside. A whole block, for example. For each number of its input,
# our block keeps ten: one for the norm, one for the layer up, four for GELU and four for the layer down.
#
# And there is a middle way: keep the results of the products, which are the expensive part, and compute the rest again. All
# three, for 512 rows. How many times as fast is the checkpoint of whole blocks? (A number below 1 means slower.)

# %%
guess = ...

# %%
PRODUCTS = [torch.ops.aten.addmm.default, torch.ops.aten.mm.default]
keep_products = functools.partial(create_selective_checkpoint_contexts, PRODUCTS)


@functools.cache
def blocks_on(device):
    return eight_blocks(device)


def gradients(model, loss):
    return torch.autograd.grad(loss, list(model.parameters()))


def all_kept(x):
    model = blocks_on(x.device)
    return gradients(model, model(x).square().mean())


def checkpointed(x, **how):
    model = blocks_on(x.device)
    for block in model:
        x = checkpoint(block, x, use_reentrant=False, **how)
    return gradients(model, x.square().mean())


def products_kept(x):
    return checkpointed(x, context_fn=keep_products)


kept = {"all kept": all_kept, "products kept": products_kept, "blocks' inputs kept": checkpointed}
compare(
    "memory: eight blocks, what is kept, 512 rows", kept, inputs=rows_of(512), guess=guess, because="prices"
)

# %%
x, peaks, counts = torch.randn(512, 128), {}, []
for name, function in kept.items():
    cost = costs(function, x)
    peaks[name] = cost.peak_bytes
    products = cost.operations["aten.addmm"] + cost.operations["aten.mm"]
    counts.append(products)
    print(f"{name:20} at most {cost.peak_bytes / 1e6:5.1f} MB new memory, {products} products")
assert peaks["all kept"] > peaks["products kept"] > peaks["blocks' inputs kept"]
assert counts[0] == counts[1] == counts[2] - 8
assert round(large / (8 * x.nbytes)) == 10  # in section 1: what a block keeps for each number of its input

# %% [markdown]
# **Why.** The checkpoint makes 8 products more, one for each block: it stops as soon as all that was thrown away is
# there again, and the last product of a block is not needed for that.
#
# The middle way computes no product twice, and saves less. Is it faster than the checkpoint? Where the two last rows of
# the table are close, hardly: it spares 8 products, and adds Python that looks at each operation. On an H200 it is
# slower. (`torch.compile` can [choose by itself](https://pytorch.org/blog/activation-checkpointing-techniques/)
# what to compute again: set the share of memory in `torch._functorch.config.activation_memory_budget`.)
#
# ### When it does not help
#
# With 16 rows there is little to save:

# %%
compare(
    "memory: eight blocks, what is kept, 16 rows",
    {"all kept": all_kept, "blocks' inputs kept": checkpointed},
    inputs=rows_of(16),
)
x = torch.randn(16, 128)
peaks = [costs(function, x).peak_bytes / 1e6 for function in (all_kept, checkpointed)]
print(f"at most {peaks[0]:.1f} MB of new memory, checkpointed {peaks[1]:.1f} MB")
assert peaks[0] < 1.2 * peaks[1]

# %% [markdown]
# On the CPU it costs more, as a ratio, than with 512 rows. And next to nothing is saved.
#
# ### Or a smaller batch at a time?
#
# 512 rows in 4 parts of 128, with `backward()` after each, have the activations of a quarter of the rows at once, and
# compute nothing twice. Are they faster than the checkpoint?


# %%
def in_parts(x, parts=4):
    model = blocks_on(x.device)
    model.zero_grad()
    for part in x.chunk(parts):
        (model(part).square().mean() / parts).backward()
    return [parameter.grad for parameter in model.parameters()]


two = {"blocks' inputs kept": checkpointed, "4 parts": in_parts}
compare("memory: checkpoint, or the batch in parts", two, inputs=rows_of(512), because="prices", seconds=2)
x = torch.randn(512, 128)
blocks_on(x.device).zero_grad()
for name, function in two.items():
    print(f"{name:20} at most {costs(function, x).peak_bytes / 1e6:.1f} MB")
    blocks_on(x.device).zero_grad()

# %% [markdown]
# **Why.** The parts make no product twice, but start each operation four times, and add each gradient to that of the
# parts before. These gradients lie there meanwhile: so the parts hold more than the checkpoint. And they need rows to
# cut; the checkpoint also helps where one row is too long.
#
# Cutting has a rule. The documentation: "Gradient accumulation adds gradients over an effective batch of size
# `batch_per_iter * iters_to_accumulate`" (*F21*). Two parts of 6 rows: once all rows have a label, and once four of the
# first part have none (label -100).

# %%
layer, rows = nn.Linear(8, 3), torch.randn(12, 8)
labels = torch.randint(3, (12,))
some = labels.clone()
some[:4] = -100


def mean_of_means(scores, wanted, labels):
    return F.cross_entropy(scores, wanted) / 2


def share_of_all(scores, wanted, labels):
    return F.cross_entropy(scores, wanted, reduction="sum") / (labels != -100).sum()


def same_as_whole(labels, loss_of_part=mean_of_means, model=layer):
    whole = torch.autograd.grad(F.cross_entropy(model(rows), labels), layer.weight)[0]
    layer.zero_grad()
    for part, wanted in zip(rows.chunk(2), labels.chunk(2), strict=True):
        loss_of_part(model(part), wanted, labels).backward()
    return torch.allclose(layer.weight.grad, whole, atol=1e-6)


equal = "all parts count as many rows, which do not know of each other"
normed = nn.Sequential(layer, nn.BatchNorm1d(3))
behaviour("F21", "The mean of the parts' gradients is that of the batch.", same_as_whole(labels), when=equal)
behaviour("F21", "The same with labels of which some do not count.", same_as_whole(some), unless=equal)
behaviour("F21", "The same with batch normalisation.", same_as_whole(labels, model=normed), unless=equal)
assert same_as_whole(labels) and not same_as_whole(some) and not same_as_whole(labels, model=normed)
assert same_as_whole(labels, share_of_all) and same_as_whole(some, share_of_all)

# %% [markdown]
# The 2 rows of the first part weigh as much as the 6 of the second. So divide sums by the count of *all* rows with a label:
# `share_of_all`. Batch normalisation has no such mend: it computes mean and variance of the part, and not of the batch.
#
# ## 6. Activations: keep fewer bits
#
# What autograd keeps goes through your hands, if you like: `saved_tensors_hooks(pack, unpack)` calls `pack` for each
# tensor that it wants to keep, keeps what that returns, and gives it to `unpack` in the backward pass. So activations
# can be kept in 16 bits, while everything is *computed* in 32. (Weights are kept for the backward pass, too. They are
# there anyway; a copy would be a loss. And why `detach()`? Without it a result could hold itself: see *Further*.)


# %%
def in_16_bits(model):
    weights = {parameter.data_ptr() for parameter in model.parameters()}

    def pack(tensor):
        short = tensor.dtype == torch.float32 and tensor.data_ptr() not in weights
        return tensor.dtype, tensor.detach().to(torch.bfloat16 if short else tensor.dtype)

    def unpack(packed):
        dtype, tensor = packed
        return tensor.to(dtype)

    return saved_tensors_hooks(pack, unpack)


def kept_short(x):
    model = blocks_on(x.device)
    with in_16_bits(model):
        loss = model(x).square().mean()
    return gradients(model, loss)


# %% [markdown]
# Forward through the eight blocks, 512 rows. How many times less new memory at once with these hooks? And through a
# chain of 16 layers with ReLU?

# %%
guess = ...


# %%
def short_forward(model, x):
    with in_16_bits(model):
        return forward_only(model, x)


models = {
    "eight blocks": (eight_blocks(), torch.randn(512, 128)),
    "layers with ReLU": (Chain(torch.relu, False), x[:, :64]),
}
ratios, lines = {}, []
for name, (network, rows) in models.items():
    peaks = [costs(function, network, rows).peak_bytes for function in (forward_only, short_forward)]
    ratios[name] = peaks[0] / peaks[1]
    lines.append(f"{name}: {peaks[0] / 1e6:.2f} MB at most; in 16 bits {peaks[1] / 1e6:.2f} MB")
guessed("times less memory, blocks and layers with ReLU", guess, tuple(ratios.values()), *lines)

# %% [markdown]
# With the blocks it is not quite half: what is at work at a moment has 32 bits, and its copy is there already.
#
# **Why does ReLU gain nothing?** Its result is wanted twice: by ReLU for its own derivative, and by the next layer. Autograd
# keeps the one tensor once. The hook does not know that, is called twice, and makes two copies of half the size. (A hook can
# remember what it packed. And ReLU needs no number at all, only whether it was above 0: one bit. That is an exercise.)
#
# What does it cost? Time for the conversions, and digits:

# %%
assert ratios["eight blocks"] > 1.6 and ratios["layers with ReLU"] < 1.1
compare(
    "memory: activations kept in 16 bits, 512 rows",
    {"float32": all_kept, "kept as bfloat16": kept_short},
    inputs=rows_of(512),
    differ="what was kept is rounded to 16 bits",
    seconds=2,
)
x = torch.randn(512, 128)
pairs = list(zip(all_kept(x), kept_short(x), strict=True))
error = max(((short - exact).norm() / exact.norm()).item() for exact, short in pairs)
print(f"the gradients differ by at most {error:.2%} of their length")
assert error < 0.02

# %% [markdown]
# The loss is exact, the gradients are a little off. And a hook is Python code for each kept tensor.
#
# ## 7. A table that need not exist
#
# Back to the vocabulary. Section 4 counted three tables of scores without a name: the logarithmic softmax, the gradient
# with respect to it, and the gradient with respect to the scores. For 50,000 words and 8,192 rows each would have 1.6 GB.
# But the rows do not know of each other. So send them in chunks: one chunk's scores, its loss, and its backward pass.
#
# There are two ways. `recomputed` puts a checkpoint around each chunk: its scores are made again in the backward pass.
# In `at_once`, each chunk goes forward *and* back before the next one, as the parts of a batch do. How many times as
# fast as the whole is `at_once`?

# %%
guess = ...


# %%
def whole(hidden, head, labels):
    loss = F.cross_entropy(hidden @ head.T, labels)
    return loss.detach(), *torch.autograd.grad(loss, (hidden, head))


def chunk_loss(rows, head, wanted):
    return F.cross_entropy(rows @ head.T, wanted, reduction="sum")


def recomputed(hidden, head, labels, size=64):
    loss = 0
    for rows, wanted in zip(hidden.split(size), labels.split(size), strict=True):
        loss = loss + checkpoint(chunk_loss, rows, head, wanted, use_reentrant=False) / len(labels)
    return loss.detach(), *torch.autograd.grad(loss, (hidden, head))


def at_once(hidden, head, labels, size=64):
    total, of_hidden, of_head = 0, torch.empty_like(hidden), torch.zeros_like(head)
    for first in range(0, len(labels), size):
        rows = hidden[first : first + size].detach().requires_grad_()
        loss = chunk_loss(rows, head, labels[first : first + size]) / len(labels)
        of_rows, more = torch.autograd.grad(loss, (rows, head))
        of_hidden[first : first + size] = of_rows
        of_head += more
        del more  # or it would be there while the next chunk goes forward and back
        total = total + loss.detach()
    return total, of_hidden, of_head


compare(
    "memory: the loss over a vocabulary, 512 rows",
    {"whole": whole, "chunks, recomputed": recomputed, "chunks, at once": at_once},
    inputs=vocabulary(512),
    guess=guess,
    because="page faults",
)

# %%
inputs, peaks = vocabulary(512)(torch.Generator().manual_seed(0), "cpu"), []
for function in (whole, recomputed, at_once):
    cost = costs(function, *inputs)
    peaks.append(cost.peak_bytes)
    print(f"{function.__name__:10} at most {cost.peak_bytes / 1e6:5.1f} MB, ", end="")
    print(
        f"{cost.operations['aten.mm']} products, {page_faults(function, *inputs, times=3):,.0f} page faults"
    )
assert peaks[0] > 3 * max(peaks[1:])

# %% [markdown]
# **Why.** `at_once` computes the products of the whole, in smaller pieces. What it gains on a CPU are page faults
# (chapter 00): the system hands out the whole's tables anew in each call. `recomputed` computes a third more products.
# On an H200 `at_once` takes 13 times as long.
#
# What does `at_once` hold? The gradient of the head, and beside it three tables of one chunk; a little later one table, and
# a new contribution to that gradient. The gradient and a contribution are there however small the chunks are.
#
# So it does *not* pay where rows are few. A row has 64 numbers here. With fewer rows than that, the head's gradient is
# larger than a table of scores, and each chunk makes a contribution of that size. A small vocabulary does not change
# that, as both are smaller then:

# %%
for rows, words in ((32, 8192), (32, 64), (2048, 64)):
    given = vocabulary(rows, words)(torch.Generator().manual_seed(0), "cpu")
    peaks = [costs(function, *given).peak_bytes for function in (whole, functools.partial(at_once, size=8))]
    print(f"{rows:5,} rows, {words:5,} words: whole {peaks[0]:9,} bytes, chunks {peaks[1]:9,} bytes at most")
    assert (peaks[1] < peaks[0]) == (rows > 64)

# %% [markdown]
# ## 8. On a GPU: the snapshot
#
# On a GPU, PyTorch can record by itself what this chapter's `Watch` does:
# `torch.cuda.memory._record_memory_history()`, then some steps, then `torch.cuda.memory._dump_snapshot("file.pickle")`.
# Drag the file onto [pytorch.org/memory_viz](https://pytorch.org/memory_viz): it draws such a picture as section 1, and a
# click on a band shows the line of Python that made it. (This cell throws its file away; give yours a name that stays.)

# %%
if torch.cuda.is_available():
    torch.cuda.memory._record_memory_history()
    all_kept(torch.randn(512, 128, device="cuda"))
    with tempfile.TemporaryDirectory() as folder:
        torch.cuda.memory._dump_snapshot(str(Path(folder, "file.pickle")))
        print(f"a snapshot of {(Path(folder) / 'file.pickle').stat().st_size:,} bytes")
    torch.cuda.memory._record_memory_history(enabled=None)
else:
    print("No GPU here, so no snapshot.")

# %% [markdown]
# ## Further
#
# You can skip this part: the exercises do not need it. It tests three more claims (*F18*, *F20*, *F24*), and has a leak in
# hooks that look harmless, the profiler's view, and the loss over a vocabulary that newer versions of PyTorch have.
#
# ### A checkpoint without gradients
#
# There are two checkpoints. The documentation says of the older one, `use_reentrant=True`: "At least one input and output
# must have `requires_grad=True` [...]. If this condition is unmet, the checkpointed part of the model will not have
# gradients." (*F18*). The *first* layers of a model get plain data, which requires none.

# %%
found = {}
for reentrant in (True, False):
    first, second = nn.Linear(8, 8), nn.Linear(8, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        second(checkpoint(first, torch.randn(4, 8), use_reentrant=reentrant)).sum().backward()
    found[reentrant] = first.weight.grad is not None
    said = [str(warning.message).split(". ")[0] for warning in caught]
    print(
        f"use_reentrant={reentrant}: gradient {'there' if found[reentrant] else 'missing'}; warnings: {said}"
    )
behaviour(
    "F18",
    "With plain data, the reentrant checkpoint gives its layers no gradient; the other one does.",
    found == {True: False, False: True},
)

# %% [markdown]
# A warning is all that you get: `backward()` runs, the other layers learn, and the first ones stay as they were. Always
# write `use_reentrant=False`.

# %% [markdown]
# ### Kept on the CPU
#
# `save_on_cpu()` is such a pair of hooks: activations of a GPU wait in the memory of the CPU. Code that also runs without
# a GPU? "If the graph was already on CPU, no tensor copy is performed." (*F20*)

# %%
source = torch.randn(1_000_000, requires_grad=True)
for pinned in (False, True):
    with save_on_cpu(pin_memory=pinned):
        cost = costs(lambda: source.exp().sin().sum())
    print(f"pin_memory={pinned}: {cost.copies} copies, {cost.peak_bytes / 1e6:.0f} MB at most")
    behaviour(
        "F20",
        f"Nothing is copied under save_on_cpu(pin_memory={pinned}).",
        cost.copies == 0,
        **{"unless" if pinned else "when": "pin_memory is left at False"},
    )

# %% [markdown]
# `pin_memory=True` is for the copies between a GPU and the CPU ([chapter 04](04_data_loading.ipynb)). On a CPU alone it
# copies everything that is kept. So ask for it only where there is a GPU.

# %% [markdown]
# ### Slivers
#
# A GPU has one band more: memory that PyTorch has taken from the driver and cannot use, because the free pieces lie apart.
# It is a part of `memory_reserved() - memory_allocated()`, and grows where sizes change from step to step. (Another part
# are segments that are free as a whole: `empty_cache()` gives them back, and so does PyTorch before it says "out of
# memory".) The documentation on *expandable segments*: "This process does not create as many slivers of unusable memory"
# (*F24*). The picture shows [what others published](../docs/published.md): memory reserved without, over that with them.

# %%
from autograder import published

documented(
    "F24",
    "Expandable segments (PYTORCH_ALLOC_CONF) grow in place, so fewer pieces are left over.",
    "https://docs.pytorch.org/docs/stable/notes/cuda.html",
)
if torch.cuda.is_available():
    before, after = reserved_after(expandable=False), reserved_after(expandable=True)
    fewer("F24", "bytes reserved after tensors of many sizes", without=before, following=after)
else:
    print("No GPU here: the CPU's allocator has no such segments.")
published("F24")

# %% [markdown]
# ### A hook that keeps too much
#
# `exp` keeps its own *result*. If a hook returns the tensor that it got, the result holds its node, the node holds what
# was packed, and that is the result. Ten results, each thrown away at once, without `backward()`:


# %%
def ten_results(pack):
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        for _ in range(10):
            source.exp()


for title, pack in {
    "tensor": lambda tensor: tensor,
    "tensor.detach()": lambda tensor: tensor.detach(),
}.items():
    gc.collect()
    print(f"pack returns {title:16} {costs(ten_results, pack).peak_bytes / 1e6:.0f} MB at most")

# %% [markdown]
# ### The profiler's view
#
# `Watch` and `costs` see the tensors that operations hand back. What an operation takes for itself, as scratch, the
# profiler sees, with `profile_memory=True`. It adds up what each kind of operation took, minus what it gave back. These are
# sums over the whole call, so together they are more than there is at once. For the peak, `profiled_peak` goes through the
# profiler's events one by one.

# %%
with torch.profiler.profile(
    profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]
) as profiled:
    whole(*inputs)
taken = sorted(profiled.key_averages(), key=lambda one: -one.self_cpu_memory_usage)[:4]
for one in taken:
    print(f"{one.key:32} {one.self_cpu_memory_usage / 1e6:6.1f} MB in {one.count} calls")
seen = profiled_peak(whole, *inputs), costs(whole, *inputs).peak_bytes
print("at most {:.1f} MB at once; `costs` says {:.1f} MB".format(*(peak / 1e6 for peak in seen)))

# %% [markdown]
# ### What newer versions have
#
# `F.linear_cross_entropy` takes the hidden rows and the head, and can work in chunks by itself: here of 4 rows, so that
# their scores are as large as the hidden rows. Is it better than ours? Only chunks of equal size can say. They are made
# inside of one operation, where `costs` cannot look; the profiler can.

# %%
if hasattr(F, "linear_cross_entropy") and hasattr(nn, "LinearCrossEntropyOptions"):

    def built_in(hidden, head, labels, size=None):
        options = nn.LinearCrossEntropyOptions(batch_chunk_size=size)
        loss = F.linear_cross_entropy(hidden, head, labels, options=options)
        return loss.detach(), *torch.autograd.grad(loss, (hidden, head))

    chunked = {
        "ours, 64 rows": at_once,
        "ours, 4 rows": functools.partial(at_once, size=4),
        "built in, its own 4 rows": built_in,
        "built in, 64 rows": functools.partial(built_in, size=64),
    }
    compare("memory: the loss over a vocabulary, built in", chunked, inputs=vocabulary(512))
    for name, function in chunked.items():
        print(f"{name:25} at most {profiled_peak(function, *inputs) / 1e6:.1f} MB")
else:
    print(f"torch {torch.__version__} does not have it yet.")

# %% [markdown]
# At equal chunks the built-in one needs half of the memory: it adds each chunk to the head's gradient in place. And
# small chunks cost time, whoever makes them.

# %% [markdown]
# ### Activations elsewhere
#
# On a GPU: the eight blocks with all activations kept on the GPU, computed again (section 5), or kept in the CPU's pinned
# memory. How many times as fast is the last?

# %%
guess = ...


# %%
def kept_on_cpu(x):
    with save_on_cpu(pin_memory=True):
        loss = blocks_on(x.device)(x).square().mean()
    return gradients(blocks_on(x.device), loss)


compare(
    "memory: activations kept on the GPU, computed again, or kept on the CPU",
    {"on the GPU": all_kept, "computed again": checkpointed, "on the CPU": kept_on_cpu},
    inputs=rows_of(16_384),
    guess=guess,
    only="cuda",
)

# %% [markdown]
# Every number that is kept travels to the CPU and back. Which costs less, that or the checkpoint, is a question of how
# fast your GPU computes, and how fast the cable carries. On an H200 the cable loses: 34 ms to 11.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** measure the peak of one step, and name the largest part at that moment. *It saves* is the
# prediction. Take that part away, measure the peak again, and verify that the losses stay.
#
# | what is large | do | it saves | it costs |
# |---|---|---|---|
# | you do not know | watch one step; on a GPU take a snapshot | guessing | a minute |
# | optimiser's state | SGD, Adafactor, or an Adam in 8 bits | up to 8 of 16 bytes a weight | other steps: tune the training again |
# | gradients | step inside of backward | up to 4 of 16 bytes a weight | clipping, adding up parts |
# | old gradients, beside activations | `zero_grad()` right after the step | 4 bytes a weight in the forward pass | nothing |
# | activations | parts of the batch, `backward()` after each | all but one part | care with uneven parts |
# | activations | `checkpoint(block, x, use_reentrant=False)` | all but the block's input | the forward pass again |
# | activations | the same, products kept | some | norms and activations again |
# | activations | hooks that keep 16 bits | nearly half, if each is kept once | digits, conversions |
# | the scores | chunks of rows, if rows are many | all but one chunk | no product twice, if each goes back at once; more launches on a GPU |
# | a result that nobody needs | no name for it, or `del` | one table | nothing |
# | activations | *no* checkpoint for ReLU, sigmoid or tanh alone | a second table for each | nothing |

# %%
verdicts("F17", "F18", "F19", "F20", "F21", "F22", "F23", "F24")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/17_training_memory/17_training_memory.ipynb). Five functions,
# right as given, with more memory or time than they need.
