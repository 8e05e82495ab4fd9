# %% [markdown]
# # 02 · Devices
#
# A GPU has memory of its own. Every number that it works on was either made there or sent there. This chapter
# is about the sending: how to write a program that runs on any device, what a transfer costs, and which
# harmless-looking lines make a fast device wait.
#
# IDs such as *A2* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, `costs`
# and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - write functions and modules that run on every device without a change,
# - estimate what a transfer costs from its size, and count the transfers of a program without a GPU,
# - give a module constants that move with it, and decide whether they are saved,
# - find hidden synchronisations, and say which of them are worth removing.
#
# **Time:** 50 minutes to read and run, 15 more for the part Further. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *A2* "create tensors on the target device; avoid round trips"; *B4* "one line moves model
# and data to the GPU"; *C2* "use the `*_like` functions, and few `.to(device)`"; *C3* "`register_buffer` for
# constants that move with the module and are saved". One of the articles names a function that does not exist.

# %%
import warnings

import torch
import torch.nn.functional as F
from parts.inputs import tensors
from torch import nn

from autograder import article_code, behaviour, compare, costs, devices, documented, guessed, verdicts
from autograder.measuring.causes import without
from autograder.teaching.recall import recall

print("devices here:", *devices())
recall("02", ..., ..., ...)

# %% [markdown]
# ## 1. One program for every device
#
# Many tutorials say `.cuda()`. On a machine without a CUDA GPU that line ends the program:

# %%
try:
    print("there is a GPU here:", torch.ones(2).cuda().device)
except (RuntimeError, AssertionError) as error:
    print(f"{type(error).__name__}: {str(error).split('.')[0]}.")
    assert not torch.cuda.is_available()

# %% [markdown]
# So choose the device once, at the top of the program, and pass it on. The second way to choose also knows `mps`,
# `xpu` and others. Ask `is_available` first: without a device, `current_accelerator` raises an error, or names what
# this *build* of torch was made for, as the version has it.

# %%
device = "cuda" if torch.cuda.is_available() else "cpu"
found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
print("device:", device, "| found:", found)

# %% [markdown]
# Inside a function, do not choose again. Take the device from an input: `x.device`. Then it works wherever that is.
#
# ### A second device for everybody: `meta`
#
# How can you test that on a laptop? Torch has a device that exists everywhere. A tensor on `meta` has a shape,
# a dtype and a device, but no numbers and no memory. Operations on it find out what the result would look like
# (shape, dtype, strides), and nothing else.

# %%
huge = torch.empty(1_000_000, 1_000_000, device="meta")  # 4 TB, if it had memory
print((huge @ huge.T).shape, huge.sum().device)

# %% [markdown]
# Here is a function with a mistake that no CPU shows. Its weights are made on the CPU, always. On `meta` it
# fails, with the same kind of error that you would get from a GPU later.


# %%
def grey(images):
    weights = torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)
    return (images * weights).sum(dim=1)


print("CPU: ", grey(torch.rand(2, 3, 4, 4)).shape)
try:
    grey(torch.rand(2, 3, 4, 4, device="meta"))
    raise AssertionError("grey works on meta")
except RuntimeError as error:
    print(f"meta: {type(error).__name__}: {error}")


# %% [markdown]
# The fix: make the constant where the input is, and of its type. (On a GPU three Python numbers still travel at every
# call. Section 6 sends them only once.)


# %%
def grey_anywhere(images):
    weights = images.new_tensor([0.299, 0.587, 0.114]).view(3, 1, 1)
    return (images * weights).sum(dim=1)


result = grey_anywhere(torch.rand(2, 3, 4, 4, device="meta", dtype=torch.float64))
assert result.device.type == "meta" and result.dtype == torch.float64
assert torch.equal(grey(images := torch.rand(2, 3, 4, 4)), grey_anywhere(images))

# %% [markdown]
# Such an error, with two devices in it, proves a mistake. Silence proves less: some operations do not look at the
# device there. A matrix product of both kinds passes on `meta`, and would fail on a GPU.
#
# That is why we also count. `costs` counts an operation that copies from one device to another as a *transfer*. With
# `meta` in the role of the GPU, it counts what would travel. One limit: values that Python itself hands over, as in
# `torch.tensor([1, 2], device=…)`, do not show up in the count. On a GPU they travel too.

# %%
print("CPU @ meta passes:", (torch.ones(2, 3, device="meta") @ torch.ones(3, 4)).device)
moved = costs(lambda: torch.zeros(1000).to("meta"))
created = costs(lambda: torch.zeros(1000, device="meta"))
print("zeros, then .to:", moved, "", "zeros(device=):", created, sep="\n")
assert (moved.transfers, created.transfers) == (1, 0)
assert costs(lambda: torch.tensor([1.0, 2.0], device="meta")).transfers == 0  # the limit of the count

# %% [markdown]
# ## 2. Create it where you need it
#
# Both programs above give the same zeros. Now a million random numbers: how many times as fast is
# `torch.rand(…, device=device)` as `torch.rand(…).to(device)`? Your guess is compared with the CPU, here and in this
# whole chapter. (What is said of an H200 is measured; of GPUs in general, counted, documented, or a rule of thumb.)

# %%
guess = ...

# %%
compare(
    "1,000,000 random numbers on a device",
    {
        "rand, then .to(device)": lambda device: torch.rand(1_000_000).to(device),
        "rand(device=device)": lambda device: torch.rand(1_000_000, device=device),
    },
    guess=guess,
    claim="A2",
    differ="random numbers",
)

# %% [markdown]
# On the CPU there is no journey: `.to` gives back the very same tensor where there is nothing to do.
#
# That has a side to watch: on a CPU `y = x.to(device)` is a second name for `x`, on a GPU it is a copy. A program that
# then writes to `y` in place changes `x` on one device and not on the other. `copy=True` makes it a copy everywhere.

# %%
x = torch.zeros(3)
assert x.to("cpu") is x and x.to(torch.float32) is x
assert x.to("cpu", copy=True) is not x
y = x.to("cpu")
y[0] = 7.0
print("x after y[0] = 7:", x)
assert x[0] == 7.0

# %% [markdown]
# On a GPU the first variant makes the numbers on the CPU and sends 4 MB. The second sends an order: "make a million
# random numbers there". On an H200 that is 390 times as fast. (Most of it is that one CPU thread makes the numbers.)
# That is what *A2* means. PyTorch's own guide to fast programs advises the same. The article also recommends a function
# named `to_device`. There is none:

# %%
documented(
    "A2",
    "Tensors should be made on the device where they are needed, not moved there.",
    "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
)
article_code("A2", "x.to_device(device), which is to be x.to(device)", lambda: x.to_device(device))
assert not any(hasattr(place, "to_device") for place in (torch, torch.Tensor, nn, nn.Module))

# %% [markdown]
# ## 3. What a transfer costs
#
# We copy blocks of five sizes from main memory to the device. On a machine without a GPU the copy stays in
# main memory: the shortest journey there is, and it has the same two parts as a long one.
#
# The largest block has 4 million times the bytes of the smallest. How many times as fast is the smallest?

# %%
guess = ...

# %%
SIZES = {"16 MB": 4_000_000, "4 MB": 1_000_000, "400 kB": 100_000, "4 kB": 1000, "4 bytes": 1}


def sender(name):
    return lambda sources, targets: targets[name].copy_(sources[name])


def sources_and_targets(generator, device):
    sources = {name: torch.ones(size) for name, size in SIZES.items()}
    return sources, {name: torch.ones(size, device=device) for name, size in SIZES.items()}


sweep = compare(
    "copying blocks of five sizes to a device",
    {name: sender(name) for name in SIZES},
    inputs=sources_and_targets,
    guess=guess,
    differ="five sizes",
    because="prices",
)

# %% [markdown]
# **Why.** A transfer costs a fixed price for the call, and a price for each byte: so the prediction adds them up. We
# can read both off the table: the smallest block pays the fixed price only, in the larger ones the bytes dominate. On a
# CPU a byte costs less in 400 kB than in 16 MB: it depends on the cache that holds the block. (So measured may be more:
# 16 MB are priced as if a cache held them. And a call that writes into a tensor is cheaper than the priced one, which
# makes one. The rates below are those of the fastest blocks, and count a byte once; chapter 01 counted a copy twice.)

# %%
for where, samples in sweep.samples.items():
    least = {name: min(samples.seconds(name)) for name in SIZES}
    fixed = least["4 bytes"]
    small, large = (4 * SIZES[name] / (least[name] - fixed) / 1e9 for name in ("400 kB", "16 MB"))  # GB/s
    print(
        f"to {where}: {fixed * 1e6:.1f} µs, and {small:.1f} GB/s for 400 kB, {large:.1f} GB/s for 16 MB. "
        f"Both prices are equal at about {fixed * small * 1e6:,.0f} kB."
    )

# %% [markdown]
# Far below that size the *number* of transfers matters, far above it the bytes. To a GPU the fixed price is higher,
# 9 µs to an H200, and the bus limits the rate: PCIe 4.0 with 16 lanes carries 32 GB/s at most, one way, and 5.0 twice
# that. To the H200, 16 MB stay far below, at 10 to 15 GB/s: the blocks are not in pinned memory (chapter 04).
#
# So: 500 small tensors of 400 bytes shall be one batch on the device. They can be sent one by one and joined there, or
# joined first and sent once. (`copy=True`: the CPU copies, too.) How many times as fast is the second way?

# %%
guess = ...


# %%
def small_tensors_and_device(generator, device):
    return [torch.rand(100, generator=generator) for _ in range(500)], device


compare(
    "a batch of 500 small tensors on a device",
    {
        "one by one, then stacked": lambda parts, device: torch.stack(
            [part.to(device, copy=True) for part in parts]
        ),
        "stacked, then one transfer": lambda parts, device: torch.stack(parts).to(device, copy=True),
    },
    inputs=small_tensors_and_device,
    guess=guess,
)

parts = [torch.rand(100) for _ in range(500)]
one_by_one = costs(lambda: torch.stack([part.to("meta") for part in parts]))
together = costs(lambda: torch.stack(parts).to("meta"))
print("transfers:", one_by_one.transfers, "and", together.transfers)
assert (one_by_one.transfers, together.transfers) == (500, 1) and one_by_one.bytes == together.bytes

# %% [markdown]
# **Why.** Both ways move every byte twice: once to join (`stack`, which the counter does not call a copy), once to
# send. But one sends 500 times, the other once. Each time costs the fixed price.
#
# ### One parcel for tensors that do not match
#
# `stack` needs equal shapes, and makes one dtype of all: labels come out as floats. A parcel of *bytes* has no such
# needs: `x.view(torch.uint8)` are the bytes of `x`, without a copy, and `view` with another dtype reads them back. The
# first wants a last dimension whose numbers lie side by side; the second, a start at a multiple of the dtype's
# size. (So the labels, of 8 bytes each, come first.)

# %%
labels, pixels = torch.arange(4), torch.rand(6)
assert torch.stack([labels, pixels[:4]]).dtype == torch.float32
parcel = torch.cat([labels.view(torch.uint8), pixels.view(torch.uint8)])
sent = parcel.to(device)
assert torch.equal(sent[:32].view(torch.int64).cpu(), labels)
assert torch.equal(sent[32:].view(torch.float32).cpu(), pixels)
alone, together = costs(lambda: (labels.to("meta"), pixels.to("meta"))), costs(lambda: parcel.to("meta"))
print("transfers: each on its own", alone.transfers, "| in one parcel", together.transfers)

# %% [markdown]
# Some bytes should not be in a parcel twice. A tensor is a view of a piece of memory, its *storage*. `x` and its
# transpose are two views of one. Sent on their own they travel as two, and are strangers when they arrive: who
# writes to the one no longer changes the other.

# %%
x = torch.rand(100, 100)
arrived = x.to(device, copy=True), x.T.to(device, copy=True)
starts = [tensor.untyped_storage().data_ptr() for tensor in (x, x.T, *arrived)]
assert starts[0] == starts[1] and starts[2] != starts[3]
sent = costs(lambda: (x.to("meta"), x.T.to("meta"))).bytes
print(f"here: one storage of {x.untyped_storage().nbytes():,} bytes; sent: two, of {sent:,} bytes")

# %% [markdown]
# Last: must Python wait until the parcel is there? By default it does. With `non_blocking=True` it gives the order
# and goes on. (To a GPU that needs pinned memory; chapter 04 measures it.) `costs` counts such a wait as a *sync*:

# %%
print("blocking:    ", costs(lambda: parcel.to("meta")).syncs, "sync")
print("non_blocking:", costs(lambda: parcel.to("meta", non_blocking=True)).syncs, "syncs")

# %% [markdown]
# And what is worth a journey? The rule of thumb: send once, do much there, bring back little. For a model that means:
# parameters once, a batch at each step, and only the few results that you want to read. Further measures two journeys.

# %% [markdown]
# ## 4. `*_like` and `new_*`
#
# A tensor knows its dtype, its device and the order of its numbers in memory (its *memory format*, chapter 06). The
# `*_like` functions take over all three, and the shape. `new_*` take over dtype and device; you give the shape.

# %%
given = torch.rand(4, 3, 8, 8, device=device, dtype=torch.float64).to(memory_format=torch.channels_last)
like = [torch.empty_like, torch.zeros_like, torch.ones_like, torch.rand_like, torch.randn_like]
alike = [make(given) for make in like] + [torch.full_like(given, 0.5), torch.randint_like(given, 10)]
new = given.new_zeros(4, 3, 8, 8)
assert (new.dtype, new.device) == (given.dtype, given.device)
print("strides of the images, zeros_like, new_zeros:", given.stride(), alike[1].stride(), new.stride())

# %% [markdown]
# The memory format of `new_zeros` is the ordinary one. So is that of `torch.ones(images.shape, …)`. Does that matter?
# We multiply `channels_last` images by ones, made in two ways. How many times as fast is it with `ones_like`?

# %%
guess = ...


# %%
def channels_last_images(generator, device):
    images = torch.rand(8, 32, 32, 32, generator=generator).to(device)
    return images.to(memory_format=torch.channels_last)


compare(
    "channels_last images times ones, on their device",
    {
        "ones(shape, device=)": lambda images: images * torch.ones(images.shape, device=images.device),
        "ones_like": lambda images: images * torch.ones_like(images),
    },
    inputs=channels_last_images,
    guess=guess,
    because=without("a second format", inputs=(8, 32, 32, 32)),
)

# %% [markdown]
# **Why?** Both variants allocate the same, and launch two operations. But with two different memory formats no walk
# through memory suits both: one of the two tensors is read in jumps, and vector instructions cannot load neighbours
# together. With images in the default format, nothing is left. On an H200 one sees launches only. (Larger tensors: chapter 06.)

# %%
images = torch.rand(8, 32, 32, 32).to(memory_format=torch.channels_last)
with_ones = costs(lambda: images * torch.ones(images.shape))
with_ones_like = costs(lambda: images * torch.ones_like(images))
assert with_ones.bytes == with_ones_like.bytes
assert with_ones.operations.total() == with_ones_like.operations.total() == 2
described = {(made.shape, made.dtype, made.device, made.stride()) for made in [given, *alike]}
behaviour(
    "C2",
    "All seven *_like functions take over shape, dtype, device and memory format.",
    len(alike) == 7 and len(described) == 1,
)

# %% [markdown]
# ## 5. `.to` of a module, `.to` of a tensor
#
# The same two letters do two different things. What do you expect these lines to print?

# %%
tensor = torch.ones(3)
module = nn.Linear(3, 2)
weight = module.weight

tensor.to(torch.float64)
module.to(torch.float64)
print("tensor:", tensor.dtype, "| module:", module.weight.dtype)

# %% [markdown]
# The tensor is as it was. `Tensor.to` gives a new tensor, and here nobody kept it. `Module.to` changes the
# module itself and gives it back. The rule is the same for a dtype and for a device:

# %%
assert weight.dtype == torch.float64  # the parameter from before .to, changed from within
assert module.to(torch.float64) is module
tensor.to("meta")
module.to("meta")
print("tensor:", tensor.device, "| module:", module.weight.device)
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
net.to("meta")
behaviour(
    "B4",
    "One line, model.to(device), moves all parameters and buffers of a model, in place.",
    {part.device.type for part in [*net.parameters(), *net.buffers()]} == {"meta"},
    when="the model's tensors are parameters or buffers",
)
behaviour("B4", "One line, x = x.to(device), moves a tensor.", tensor.to("meta").device.type == "meta")
if torch.cuda.is_available():
    article_code(
        "B4",
        "model = model.cuda() and data = data.cuda()",
        lambda: (nn.Linear(3, 2).cuda(), torch.ones(3).cuda()),
        right=lambda moved: moved[0].weight.is_cuda and moved[1].is_cuda,
    )

# %% [markdown]
# `Module.to` keeps the parameter objects and exchanges what is in them. An optimizer that was made before still holds
# the right ones. But its own state, such as Adam's averages, does not go with the module. So the usual order is: make
# the module, move it, then make the optimizer.
#
# `meta` is an exception. A module that goes there gets new parameter objects, and there is no way back:

# %%
module = nn.Linear(3, 2)
optimizer = torch.optim.Adam(module.parameters())
module(torch.ones(1, 3)).sum().backward()
optimizer.step()
module.to(device=device, dtype=torch.float64)
assert optimizer.param_groups[0]["params"][0] is module.weight
print("weight:", module.weight.dtype, "| Adam's average:", optimizer.state[module.weight]["exp_avg"].dtype)

module.to("meta")
assert optimizer.param_groups[0]["params"][0] is not module.weight
try:
    module.to("cpu")
except NotImplementedError as error:
    print(f"NotImplementedError: {str(error).split(';')[0]}.")

# %% [markdown]
# ### Create a module where you need it
#
# Torch's modules take `device=`, too. For a whole model there is a shorter way: inside `with torch.device(…):`
# functions such as `torch.zeros` and `torch.rand` make everything on that device, unless they are told another
# one. The model's code needs no word about it.
#
# It is useful with `meta`. Usually you build a model and then load its weights. But building fills the weights with
# random numbers, loading copies the true ones over them, and the random ones are gone. If you build on `meta`, nothing
# is filled, and `load_state_dict(…, assign=True)` takes the given tensors as they are. How many times as fast is that?

# %%
guess = ...


# %%
def build():
    return nn.Sequential(nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 500))


def build_and_load(weights, device):
    model = build().to(device)
    model.load_state_dict(weights)
    return model


def load_into_meta(weights, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(weights, assign=True)
    return model


def weights_and_device(generator, device):
    return build().to(device).state_dict(), device


compare(
    "loading weights into a new model on a device",
    {"build, move, load": build_and_load, "build on meta, assign": load_into_meta},
    inputs=weights_and_device,
    guess=guess,
    differ="modules have no equality; their weights are compared below",
)

# %% [markdown]
# The price: the model does not own a copy. It and the loaded dictionary share memory.

# %%
first = build().state_dict()
second = dict(first)  # the same tensors
copied, shared = build_and_load(first, "cpu"), load_into_meta(second, "cpu")
for one, other in zip(copied.parameters(), shared.parameters(), strict=True):
    assert torch.equal(one, other) and one.data_ptr() != other.data_ptr()
assert shared[0].weight.data_ptr() == first["0.weight"].data_ptr()
print(
    "copies:", costs(build_and_load, first, "cpu").copies, "and", costs(load_into_meta, second, "cpu").copies
)

# %% [markdown]
# ## 6. Constants that travel along: `register_buffer`
#
# `Module.to` moves parameters. What about a constant that you keep in the module? Here are three ways to keep
# one, with the integers and the float of the article's example, `weights` and `alpha`.


# %%
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = torch.ones(3)
        self.register_buffer("weights", torch.tensor([1, 2, 3]))
        self.register_buffer("alpha", torch.tensor(0.5))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)

    def forward(self, x):
        return x + self.weights + self.alpha + self.scratch


shift = Shift().to("meta")
print({name: str(getattr(shift, name).device) for name in ("plain", "weights", "alpha", "scratch")})
assert shift(torch.ones(3, device="meta")).device.type == "meta"

behaviour(
    "B4",
    "A tensor that is a plain attribute moves, too.",
    not shift.plain.is_cpu,
    unless="the model's tensors are parameters or buffers",
)

# %% [markdown]
# The three buffers moved. The plain attribute stayed behind, and would raise the error of section 1 if `forward` used
# it.
#
# With a dtype, only floating-point (and complex) buffers are converted. Integers stay integers, which is what you
# want for indices and counts. A buffer is not a parameter: no optimizer will change it. It is saved with the module,
# unless you say `persistent=False`.

# %%
shift = Shift().to(torch.float64)
assert (shift.weights.dtype, shift.alpha.dtype) == (torch.int64, torch.float64)
assert list(shift.parameters()) == []
print("buffers:   ", [name for name, _ in shift.named_buffers()])
print("state_dict:", list(shift.state_dict()))
behaviour(
    "C3",
    "Buffers move with the module, also those that are not persistent.",
    [str(buffer.device) for buffer in Shift().to("meta").buffers()] == ["meta"] * 3,
)
behaviour(
    "C3",
    "Buffers are saved in the state_dict, except with persistent=False.",
    list(shift.state_dict()) == ["weights", "alpha"],
)
article_code(
    "C3",
    "the buffers weights and alpha, added in forward",
    lambda: Shift()(torch.zeros(3)),
    right=lambda result: result.tolist() == [1.5, 2.5, 3.5],
)

# %% [markdown]
# ### Saved or not?
#
# Save what cannot be computed again, such as running averages. A table that `__init__` computes from its
# arguments needs no place in the file: 4,096 positions of 512 numbers would take 8 MB in every checkpoint.
#
# But such a table does not go together with the fast way to load of section 5. A module that was built on `meta`
# has its table there, and no file brings the numbers. `load_state_dict` finds nothing missing:

# %%
with torch.device("meta"):
    module = Shift()
print(module.load_state_dict(Shift().state_dict(), assign=True))
print({name: str(buffer.device) for name, buffer in module.named_buffers()})
try:
    module(torch.ones(3))
    raise AssertionError("forward works")
except RuntimeError as error:
    print(f"{type(error).__name__}: {str(error).split(',')[0]}")

# %% [markdown]
# There is a second way from `meta` to a device, with the same hole: `module.to_empty(device=…)` gives every parameter
# and buffer memory, and no numbers. What no file brings is then whatever was in that memory, and nobody raises an
# error. One way out is to make such a table on a true device: `device="cpu"` in `__init__` is stronger than the `with`.
# That helps with `assign`, not with `to_empty`, which puts a new, empty tensor in place of every buffer and copies
# nothing. (A table that survives both is the subject of exercise 2.)

# %%
with torch.device("meta"):
    module = nn.Module()
    module.register_buffer("table", torch.arange(3.0, device="cpu"), persistent=False)
print("built on meta:", module.table)
print("what to_empty does:", dict(costs(module.to_empty, device="cpu").operations))

# %% [markdown]
# ### What does it save?
#
# A small picture is normalised: minus a mean, divided by a standard deviation for each colour. The constants
# are made in `forward`; or kept as plain attributes and sent on every call, to be safe; or kept as buffers. How many
# times as fast is the last way as the first?

# %%
guess = ...

# %%
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class MadeInForward(nn.Module):
    def forward(self, x):
        mean = torch.tensor(MEAN, device=x.device).view(3, 1, 1)
        std = torch.tensor(STD, device=x.device).view(3, 1, 1)
        return (x - mean) / std


class SentInForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.tensor(MEAN).view(3, 1, 1)
        self.std = torch.tensor(STD).view(3, 1, 1)

    def forward(self, x):
        return (x - self.mean.to(x.device)) / self.std.to(x.device)


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(STD).view(3, 1, 1))

    def forward(self, x):
        return (x - self.mean) / self.std


def caller(number):
    return lambda picture, modules: modules[number](picture)


def picture_and_modules(generator, device):
    modules = [module().to(device) for module in (MadeInForward, SentInForward, Buffers)]
    return torch.rand(1, 3, 32, 32, generator=generator).to(device), modules


compare(
    "normalising a picture of 32 × 32 with constants",
    {"made in forward": caller(0), "sent in forward": caller(1), "buffers": caller(2)},
    inputs=picture_and_modules,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Making the constants converts six Python numbers at every call, and on a GPU sends them. The plain
# attributes cost no more than the buffers on a CPU: `.to` has nothing to do there, and finding a buffer takes a
# Python call, too, because buffers are kept in a dictionary of their own. On another device the plain attributes
# travel at every call (on an H200, 11 µs for each). That we can count:

# %%
picture = torch.rand(1, 3, 32, 32, device="meta")
sent, kept = (costs(module().to("meta"), picture).transfers for module in (SentInForward, Buffers))
print("transfers a call: sent in forward", sent, "| buffers", kept)
assert (sent, kept) == (2, 0)
assert "mean" in vars(SentInForward()) and "mean" not in vars(Buffers())

# %% [markdown]
# ## 7. Hidden synchronisations
#
# Chapter 00 has shown what a *sync* is: Python wants to *know* a value, and must wait until the GPU's queue is empty.
# Nothing says "wait". How many of these eleven lines do it? (`costs` estimates it here from what runs on the CPU.)

# %%
guess = ...

# %%
x = torch.rand(1000)
mask = x > 0.5
labels = torch.tensor([2, 0, 1])
lines = {
    "x.sum()": lambda: x.sum(),
    "x.sum().item()": lambda: x.sum().item(),
    "float(x.sum())": lambda: float(x.sum()),
    "if x.sum() > 1: …": lambda: 1 if x.sum() > 1 else 0,
    "x[mask]": lambda: x[mask],
    "mask.nonzero()": lambda: mask.nonzero(),
    "torch.where(mask, x, 0)": lambda: torch.where(mask, x, 0),
    "x[labels]": lambda: x[labels],
    "x.masked_fill(mask, 0)": lambda: x.masked_fill(mask, 0),
    "torch.equal(x, x)": lambda: torch.equal(x, x),
    "F.one_hot(labels)": lambda: F.one_hot(labels),
}
found = {line: costs(call).syncs for line, call in lines.items()}
waits = sum(number > 0 for number in found.values())
guessed("lines that wait", guess, waits, *(f"{line:26} {number or '-'}" for line, number in found.items()))

# %% [markdown]
# There are two kinds. Some lines give Python a value: `.item()`, `float()`, an `if`, `torch.equal`. Others give a tensor
# whose *size* depends on the values: `x[mask]`, `nonzero`, `one_hot(labels)` without the number of classes. Python must
# know the size to make the tensor. Operations with results of known size do not wait, as a rule. Two exceptions: an
# index without dimensions is read as a number (`x[x.argmax()]`, chapter 00), and `y[mask] = values` must find the
# places first (not where the value is a single number).

# %%
going_on = {"x.sum()", "torch.where(mask, x, 0)", "x[labels]", "x.masked_fill(mask, 0)"}
assert {line for line in lines if found[line] == 0} == going_on
y, chosen = x.clone(), x[mask]
assert costs(y.__setitem__, mask, chosen).syncs == 1 and costs(y.__setitem__, mask, 0.0).syncs == 0

# %% [markdown]
# The counter has blind spots, which the part Further lists. `meta` is the stricter judge. It has no values, so whoever
# asks for one gets an error:

# %%
nothing = torch.empty(10, device="meta")
for call in (nothing.tolist, nothing.nonzero, lambda: torch.where(nothing > 0, nothing, 0)):
    try:
        print(call())
    except (RuntimeError, NotImplementedError) as error:
        print(type(error).__name__)

# %% [markdown]
# ### Reading the loss at every step
#
# A running total of losses. One loop reads a number at each of 100 steps. The other adds tensors and reads the total
# once. How many times as fast is the second on the CPU?

# %%
guess = ...


# %%
def read_each(batches, weights):
    total = 0.0
    for batch in batches:
        total += (batch @ weights).square().mean().item()
    return total


def read_once(batches, weights):
    total = torch.zeros((), device=weights.device)
    for batch in batches:
        total += (batch @ weights).square().mean()
    return total.item()


compare(
    "100 losses, read one by one or once",
    {".item() at every step": read_each, ".item() once": read_once},
    inputs=tensors((100, 16, 32), (32, 8)),
    guess=guess,
)

batches, weights = torch.rand(100, 16, 32), torch.rand(32, 8)
print("syncs:", costs(read_each, batches, weights).syncs, "and", costs(read_once, batches, weights).syncs)

# %% [markdown]
# As in chapter 00, the famous advice does not pay on the CPU: there is nobody to wait for, and adding two tensors costs
# more than an `.item()` and adding two Python numbers. On a GPU the first loop stops the queue 100 times. Where a step is
# launch-bound, as here, the GPU waits for Python anyway: on an H200 reading once gains a tenth. A sync costs most where
# Python would run ahead. (With a loss that needs gradients, add `loss.detach()`; chapter 03 shows why.)
#
# ### Decide with tensors
#
# Often a value is read only to decide something for one row. Then do not read later: decide with tensors. Rows of
# numbers shall be halved where their sum is above a limit. On a CPU, too, `torch.where` is much faster. What does it save
# there, most of all: `"calls"` of torch, `"bytes"` or `"arithmetic"`?

# %%
guess = ...


# %%
def halve_in_a_loop(rows, limit=25.0):
    result = rows.clone()
    for i in range(len(rows)):
        if rows[i].sum().item() > limit:
            result[i] /= 2
    return result


def halve_at_once(rows, limit=25.0):
    too_large = rows.sum(dim=1, keepdim=True) > limit
    return torch.where(too_large, rows / 2, rows)


compare(
    "200 rows, decided with .item() or with where",
    {"loop with .item()": halve_in_a_loop, "torch.where": halve_at_once},
    inputs=(200, 50),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Not by the syncs that are gone, for a CPU, but by 200 rows done in a few operations. (Predicted is more:
# `where` takes several times as long as its bytes, and a call with a Python number is dearer than the priced one.) Note
# that `where` computes `rows / 2` for all rows, wanted or not.
#
# ## 8. Masks without a boolean index
#
# A batch of 1,000 rows, padded to 1,000 numbers; a mask says where the true numbers are, about half of them. We
# want their sum: with a boolean index, or with `torch.where`, which puts 0 in place of the others. The second does
# work for numbers that nobody wants. How many times as fast is it?

# %%
guess = ...


# %%
def numbers_and_mask(generator, device):
    numbers = torch.rand(1000, 1000, generator=generator)
    mask = torch.arange(1000) < torch.randint(1000, (1000, 1), generator=generator)
    return numbers.to(device), mask.to(device)


compare(
    "the sum of what a mask leaves of 1,000,000 numbers",
    {
        "x[mask].sum()": lambda x, mask: x[mask].sum(),
        "where(mask, x, 0).sum()": lambda x, mask: torch.where(mask, x, 0).sum(),
    },
    inputs=numbers_and_mask,
    guess=guess,
    bytes=5e6,
)

x, mask = torch.rand(1000, 1000), torch.arange(1000) < torch.randint(1000, (1000, 1))
index, where = costs(lambda: x[mask].sum()), costs(lambda: torch.where(mask, x, 0).sum())
print("x[mask]:", index, "", "where:", where, sep="\n")
assert (index.syncs, where.syncs) == (1, 0)

# %% [markdown]
# **Why.** The index must find the chosen places first, keep a list of them (scratch memory, which the count does not
# see), and fetch the values one by one. `where` walks through everything in order and writes 4 MB, and `sum` reads
# them. The limit is the time to read all numbers and the mask once: both ways are far from it. (On an H200, where 4 MB
# are little, you see mostly launches, and the index's sync.)
#
# `(x * mask).sum()` is shorter, and wrong where a number that is not chosen is not finite: NaN times 0 is NaN:

# %%
x = torch.tensor([1.0, float("nan"), 3.0])
mask = torch.tensor([True, False, True])
print("x * mask:", (x * mask).sum(), "| where:", torch.where(mask, x, 0).sum())
assert (x * mask).sum().isnan() and torch.where(mask, x, 0).sum() == 4

# %% [markdown]
# ### Heavy work for a few rows
#
# 2,000 rows, 5 % chosen, each times a matrix of 256 × 256. How many times as fast as the index is `where`?

# %%
guess = ...


# %%
def rows_mask_and_weights(generator, device):
    rows = torch.rand(2000, 256, generator=generator)
    mask = torch.rand(2000, generator=generator) < 0.05
    weights = torch.rand(256, 256, generator=generator)
    return rows.to(device), mask.to(device), weights.to(device)


compare(
    "5 % of 2,000 rows through a matrix",
    {
        "x[mask] @ weights": lambda x, mask, weights: (x[mask] @ weights).sum(),
        "where(mask, x @ weights, 0)": lambda x, mask, weights: torch.where(
            mask[:, None], x @ weights, 0
        ).sum(),
    },
    inputs=rows_mask_and_weights,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** On the CPU the index wins: it multiplies 100 rows, and `where` does the work for all 2,000. On an H200
# `where` wins, 1.4 times as fast: there 2,000 such rows are light work. On a GPU one sync is cheap if it saves much
# heavy work, and expensive beside a few microseconds of light work. So a sync is not a mistake. It is a price. (Finding
# few rows may take longer than the work on them.) Chapter 10 compares more ways to select.

# %% [markdown]
# ## Further
#
# You can skip this part. It is for readers who have a GPU, or want to know where the rules above end: what a journey
# costs that was not worth making, and what the counters do not see.
#
# ### Round trips, and journeys not worth making
#
# A step of a program works on 100,000 numbers, which are on the device. Before it, they go down to the CPU and up
# again, because some function in between wanted to see them there. How many times as fast is it to stay? (Below the
# table: what others published on *A2*. [The rules](../docs/published.md) say what counts.)

# %%
guess = ...

# %%
from autograder import published

compare(
    "a power of 100,000 numbers, after a round trip or without",
    {
        ".cpu(), .to(device), power": lambda x: x.cpu().to(x.device) ** 1.5,
        "stay": lambda x: x**1.5,
    },
    inputs=100_000,
    guess=guess,
    claim="A2",
)
published("A2", guess)

# %% [markdown]
# On the CPU, a round trip is free: `.cpu()` and `.to` find nothing to do. On a GPU it is two transfers of
# 400 kB, and Python waits for the first of them before it can launch anything else.
#
# The two published figures that count are far apart: one program drew its random numbers on the CPU, the other had them
# in NumPy already. The hollow one has a clock that did not wait for the GPU.
#
# Now the opposite question. The data is on the CPU, and the result is wanted there. Is a GPU worth the trip?
# The work is one addition for every number. How many times as fast is there and back?

# %%
guess = ...


# %%
def two_on_the_cpu(*shape):
    def inputs(generator, device):
        return *torch.rand(2, *shape, generator=generator), device

    return inputs


compare(
    "adding 1,000 numbers: on the CPU, or there and back",
    {
        "on the CPU": lambda a, b, device: a + b,
        "there and back": lambda a, b, device: (a.to(device) + b.to(device)).cpu(),
    },
    inputs=two_on_the_cpu(1000),
    guess=guess,
)

# %% [markdown]
# Without a GPU nothing travels here: three calls that have nothing to do cost about as much as adding 1,000 numbers. On
# a GPU there is a true journey. An addition reads 8 bytes and writes 4 for a single operation. The journey moves the
# same 12 bytes, and pays the fixed price three times. PCIe 4.0 moves 32 GB/s each way at most. The CPU's own memory
# moves about as much: twice the rate for 16 MB in section 3, since a copy reads and writes. So even large tensors gain
# little or nothing, and small ones lose much: these take 27 times as long by way of an H200.
#
# A product of two 512 × 512 matrices does 2 × 512³ operations. (The CPU variant uses one thread, here and in the
# recorded runs.) How many times as fast is there and back?

# %%
n = 512
product = 2 * n**3 / (3 * 4 * n**2)
print(f"operations for each byte that travels: addition {1 / 12:.2f}; product of {n} × {n}: {product:.0f}")

# %%
guess = ...

# %%
compare(
    "multiplying matrices of 512 × 512: on the CPU, or there and back",
    {
        "on the CPU": lambda a, b, device: a @ b,
        "there and back": lambda a, b, device: (a.to(device) @ b.to(device)).cpu(),
    },
    inputs=two_on_the_cpu(512, 512),
    guess=guess,
    flops=2 * 512**3,
)

# %% [markdown]
# ### A `.to` that has nothing to do
#
# "Few `.to(device)`", says the article. What does one cost that has nothing to do, because the tensor is there
# already? The work beside it is the sine of 100,000 numbers. How many times as fast is it without?

# %%
guess = ...

# %%
compare(
    "a .to(device) that has nothing to do",
    {
        "x.to(device).sin()": lambda x: x.to(x.device).sin(),
        "x.sin()": lambda x: x.sin(),
    },
    inputs=100_000,
    guess=guess,
)

# %% [markdown]
# Nothing that you would notice: one call. It is the transfers that cost, not the word `.to`. The reason to write few is
# another: it hides that something was made in the wrong place.

# %% [markdown]
# ### A saved buffer is a promise
#
# A file that was saved before the buffer was added does not load any more (unless with `strict=False`):

# %%
old_file = Shift().state_dict()
del old_file["alpha"]
try:
    Shift().load_state_dict(old_file)
    raise AssertionError("the old file loads")
except RuntimeError as error:
    print(" ".join(str(error).split()))

# %% [markdown]
# ### Numbers that need no buffer
#
# A single number that never changes, such as `alpha`, needs no tensor and no buffer to be everywhere. A Python
# number is sent with the command. A CPU tensor of no dimensions may meet a tensor of any device, too. Make it a
# buffer if it must be saved, or if it changes during training.

# %%
everywhere = torch.rand(10, device="meta")
print("Python number:       ", costs(lambda: everywhere * 0.5).transfers, "transfers")
print(
    "CPU tensor, shape ():", costs(lambda half: everywhere * half, torch.tensor(0.5)).transfers, "transfers"
)

# %% [markdown]
# ### `assign=True` leaves a mark
#
# It stays in the `state_dict`. Whoever loads from the same one later, without `assign`, may share its memory, too:

# %%
first = build().state_dict()
load_into_meta(first, "cpu")
later = build_and_load(first, "cpu")
print("a later load shares memory:", later[0].weight.data_ptr() == first["0.weight"].data_ptr())

# %% [markdown]
# ### A mean for each row
#
# `where` works for each row of a batch, too. A mean for each row needs two sums of known size, one of the values and one
# of the mask. The boolean index alone cannot do that: where one row ends and the next begins is lost.

# %%
x, mask = torch.rand(3, 5), torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]).bool()
means = torch.where(mask, x, 0).sum(dim=1) / mask.sum(dim=1)
assert torch.allclose(means, torch.stack([row[chosen].mean() for row, chosen in zip(x, mask, strict=True)]))
print(means.shape, "syncs:", costs(lambda: torch.where(mask, x, 0).sum(dim=1) / mask.sum(dim=1)).syncs)

# %% [markdown]
# ### What the count of syncs does not know
#
# On the CPU, `x.numpy()` reads the memory directly, and `print(x)` reads the values while torch keeps counters out. On
# a GPU both wait (`.numpy()` after `.cpu()`). `torch.linalg.inv`, `solve` and `cholesky` look whether they succeeded,
# and so wait on CUDA, as their [documentation](https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html)
# says. And the count says too much: with `F.one_hot(labels, 10)` torch looks at the labels on the CPU, but not on CUDA.

# %%
calls = {
    "str(x)": x.__repr__,
    "x.tolist()": x.tolist,
    "x.numpy()": x.numpy,
    "linalg.inv": lambda: torch.linalg.inv(torch.eye(3)),
    "one_hot(labels, 10)": lambda: F.one_hot(labels, 10),
}
print("counted:", {name: costs(call).syncs for name, call in calls.items()})

# %% [markdown]
# On a GPU, torch itself can tell you of most places where it waits. The next cell does that if there is one here.

# %%
if torch.cuda.is_available():
    on_gpu = torch.rand(1000, device="cuda")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        on_gpu.sum().item()
        on_gpu[on_gpu > 0.5]
        torch.where(on_gpu > 0.5, on_gpu, 0)
        torch.cuda.set_sync_debug_mode("default")
    print(sum("called a synchronizing" in str(warning.message) for warning in caught), "warnings for 3 lines")
else:
    print("no GPU here: torch.cuda.set_sync_debug_mode('warn') would warn at every sync")

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** count syncs and transfers, predict from bytes; each row takes one away; verify on `meta`.
#
# | you want | use | because |
# |---|---|---|
# | code that runs everywhere | choose `device` once; in functions `x.device`, `new_*`, `*_like` | `.cuda()` fails without a GPU |
# | to test that without a GPU | inputs on `meta`, and counted transfers | an error with two devices in it comes on a GPU, too; silence is not yet a proof |
# | a tensor on the device | `torch.zeros(…, device=device)` | nothing travels; on a CPU it makes no difference |
# | to send many small tensors | join them, send once | each transfer has a fixed price |
# | a GPU to pay off | send once, compute much, bring back little | an addition does less than one operation for a byte |
# | zeros that suit `x` | `zeros_like(x)` | dtype, device and memory format; mixed formats are slow |
# | to move a model | `model.to(device)`, then make the optimizer | in place, and it keeps the parameter objects |
# | to move a tensor | `x = x.to(device)` | not in place; may be the same object |
# | to load weights | build on `meta`, `load_state_dict(…, assign=True)` | nothing is filled in vain; memory is shared; what no file holds stays on `meta` |
# | constants in a module | `register_buffer` | they move, plain attributes do not; saved unless `persistent=False` |
# | tensors of all kinds, sent at once | a parcel of bytes | one transfer; memory that is shared needs to travel once only |
# | a decision for each row | `torch.where`, not `if … .item()` | one operation for all rows, no sync |
# | a masked sum or mean | `where(mask, x, 0)` | known size, no sync; NaN stays out |
# | heavy work on few rows | `x[mask]` | one sync, but much less work; more is light work on a GPU |

# %%
verdicts("A2", "B4", "C2", "C3")

# %% [markdown]
# *A2* carries the word "wrong" for the article's code, because of the function that does not exist. Its advice is
# decided on a GPU: on a CPU there is nowhere to go.
#
# **Now you:** [the exercises of this chapter](../exercises/02_devices/02_devices.ipynb). Five programs that wait,
# send too much, or fail on another device.
