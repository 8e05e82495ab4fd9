# %% [markdown]
# # 02 · Devices
#
# A GPU has memory of its own. Every number that it works on was either made there or sent there. This chapter
# is about the sending: how to write a program that runs on any device, what a transfer costs, and which
# harmless-looking lines make a fast device wait.
#
# **You will be able to**
# - write functions and modules that run on every device without a change,
# - estimate what a transfer costs from its size, and count the transfers of a program without a GPU,
# - give a module constants that move with it, and decide whether they are saved,
# - find hidden synchronisations, and say which of them are worth removing.
#
# **Time:** 40 minutes to read and run. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *A2* "create tensors on the target device; avoid round trips"; *B4* "one line moves model
# and data to the GPU"; *C2* "use the `*_like` functions, and few `.to(device)`"; *C3* "`register_buffer` for
# constants that move with the module and are saved". One of them names a function that does not exist.

# %%
import warnings

import torch
import torch.nn.functional as F
from torch import nn

from autograder import article_code, behaviour, compare, costs, devices, documented, verdicts

print("devices here:", *devices())

# %% [markdown]
# ## 1. One program for every device
#
# Many tutorials say `.cuda()`. On a machine without a CUDA GPU that line ends the program:

# %%
try:
    torch.ones(2).cuda()
    cuda_raised = False
    print("there is a GPU here: .cuda() works")
except (RuntimeError, AssertionError) as error:
    cuda_raised = True
    print(f"{type(error).__name__}: {str(error).split('.')[0]}.")
assert cuda_raised != torch.cuda.is_available()

# %% [markdown]
# So choose the device once, at the top of the program, and pass it on. Two ways to choose:

# %%
device = "cuda" if torch.cuda.is_available() else "cpu"
found = torch.accelerator.current_accelerator(check_available=True)  # also knows mps, xpu and others
print("device:", device, "| accelerator found:", found)
assert torch.ones(2).to(device).device.type == device

# %% [markdown]
# Do not forget `check_available=True`. Without it you learn which accelerator this *build* of torch was made
# for, whether there is one or not:

# %%
print("this build was made for:", torch.accelerator.current_accelerator())
assert (found is not None) == torch.accelerator.is_available()

# %% [markdown]
# Inside a function, do not choose again. Take the device from an input: `x.device`. Then the function works
# wherever its input is.
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
    grey_failed = False
except RuntimeError as error:
    grey_failed = True
    print(f"meta: {type(error).__name__}: {error}")
assert grey_failed


# %% [markdown]
# The fix: make the constant where the input is, and of its type. (It is still made at every call. Section 7 does
# better.)


# %%
def grey_anywhere(images):
    weights = images.new_tensor([0.299, 0.587, 0.114]).view(3, 1, 1)
    return (images * weights).sum(dim=1)


result = grey_anywhere(torch.rand(2, 3, 4, 4, device="meta", dtype=torch.float64))
assert result.device.type == "meta" and result.dtype == torch.float64
assert torch.equal(grey(images := torch.rand(2, 3, 4, 4)), grey_anywhere(images))

# %% [markdown]
# Such an error, with two devices in it, proves a mistake. Silence proves less: some operations do not look at the
# device there. A matrix product of both kinds passes on `meta`, and would fail on a GPU:

# %%
print((torch.ones(2, 3, device="meta") @ torch.ones(3, 4)).device)

# %% [markdown]
# That is why we also count. `costs` counts an operation that copies from one device to another as a
# *transfer*. With `meta` in the role of the GPU, it counts what would travel. One limit: values that Python
# itself hands over, as in `torch.tensor([1, 2], device=…)`, do not show up in the count. On a GPU they travel
# too.

# %%
moved = costs(lambda: torch.zeros(1000).to("meta"))
created = costs(lambda: torch.zeros(1000, device="meta"))
print("zeros, then .to:", moved, "", "zeros(device=):", created, sep="\n")
assert (moved.transfers, created.transfers) == (1, 0)
assert costs(lambda: torch.tensor([1.0, 2.0], device="meta")).transfers == 0  # the limit of the count

# %% [markdown]
# ## 2. Create it where you need it
#
# Both programs above give the same zeros. Now a million random numbers: how many times faster is
# `torch.rand(…, device=device)` than `torch.rand(…).to(device)`? Your guess is compared with the CPU, here and
# everywhere in this chapter.

# %%
guess = 1.0

# %%
compare(
    "1,000,000 random numbers on a device",
    {
        "rand, then .to(device)": lambda device: torch.rand(1_000_000).to(device),
        "rand(device=device)": lambda device: torch.rand(1_000_000, device=device),
    },
    inputs=lambda generator, device: device,
    guess=guess,
    claim="A2",
    differ="random numbers",
)

# %% [markdown]
# On the CPU there is no difference, because there is no journey. `.to` gives back the very same tensor where
# there is nothing to do:

# %%
x = torch.zeros(3)
assert x.to("cpu") is x and x.to(torch.float32) is x
assert x.to("cpu", copy=True) is not x

# %% [markdown]
# That has a side to watch: on a CPU `y = x.to(device)` is a second name for `x`, on a GPU it is a copy. A
# program that then writes to `y` in place changes `x` on one device and not on the other. `copy=True` makes
# it a copy everywhere.

# %%
y = x.to("cpu")
y[0] = 7.0
print("x after y[0] = 7:", x)
assert x[0] == 7.0

# %% [markdown]
# On a GPU the first variant makes the numbers on the CPU and sends 4 MB. The second sends an order: "make a
# million random numbers there". That is what *A2* means. PyTorch's own guide to fast programs advises the same:

# %%
documented(
    "A2",
    "Tensors should be made on the device where they are needed, not moved there.",
    "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
)

# %% [markdown]
# The article behind *A2* also recommends a function named `to_device`. Let us look for it:

# %%
places = {"torch": torch, "Tensor": torch.Tensor, "Module": nn.Module, "torch.nn": nn}
for name, place in places.items():
    print(f"{name:9} has to_device: {hasattr(place, 'to_device')}")

# %%
article_code("A2", "x.to_device(device), which is to be x.to(device)", lambda: x.to_device(device))
assert not any(hasattr(place, "to_device") for place in places.values())

# %% [markdown]
# ## 3. What a transfer costs
#
# We copy blocks of five sizes from main memory to the device. On a machine without a GPU the copy stays in
# main memory: the shortest journey there is, and it has the same two parts as a long one.
#
# The largest block has 4 million times the bytes of the smallest. How many times faster is the smallest?

# %%
guess = 10_000.0
SIZES = {"16 MB": 4_000_000, "4 MB": 1_000_000, "400 kB": 100_000, "4 kB": 1000, "4 bytes": 1}


# %%
def sender(name):
    return lambda sources, targets: targets[name].copy_(sources[name])


sweep = compare(
    "copying blocks of five sizes to a device",
    {name: sender(name) for name in SIZES},
    inputs=lambda generator, device: (
        {name: torch.ones(size) for name, size in SIZES.items()},
        {name: torch.ones(size, device=device) for name, size in SIZES.items()},
    ),
    guess=guess,
    differ="five sizes",
)

# %% [markdown]
# **Why.** A transfer costs a fixed price, for the call and for getting things going, and a price for each
# byte. We can read both off the table: the smallest block pays the fixed price only. In the larger ones the
# bytes dominate. Their price is not the same for all sizes: 400 kB may stay in a cache, 16 MB go through main
# memory.

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
# Far below that size the *number* of transfers matters, far above it the bytes. To a GPU the fixed price is
# higher and the rate is that of the bus: PCIe 4.0 with 16 lanes carries 32 GB/s at most, one way. 4 MB need
# 125 µs at least. (Chapter 04 comes closer to that limit, with pinned memory.)
#
# So: 500 small tensors of 400 bytes shall be one batch on the device. They can be sent one by one and joined
# there, or joined first and sent once. `copy=True` makes sure that something is copied on the CPU, too.

# %%
guess = 1.0

# %%
compare(
    "a batch of 500 small tensors on a device",
    {
        "one by one, then stacked": lambda parts, device: torch.stack(
            [part.to(device, copy=True) for part in parts]
        ),
        "stacked, then one transfer": lambda parts, device: torch.stack(parts).to(device, copy=True),
    },
    inputs=lambda generator, device: ([torch.rand(100, generator=generator) for _ in range(500)], device),
    guess=guess,
)

# %%
parts = [torch.rand(100) for _ in range(500)]
one_by_one = costs(lambda: torch.stack([part.to("meta") for part in parts]))
together = costs(lambda: torch.stack(parts).to("meta"))
print("one by one:", one_by_one, "", "stacked:", together, sep="\n")
assert (one_by_one.transfers, together.transfers) == (500, 1)

# %% [markdown]
# Both ways move every byte twice: once to join (`stack`, which the counter does not call a copy), once to send.
# But one pays the fixed price of sending 500 times, the other once. Where the bytes dominate, the order should
# not matter:

# %%
guess = 1.0

# %%
compare(
    "a batch of 4 large tensors on a device",
    {
        "one by one, then stacked": lambda parts, device: torch.stack(
            [part.to(device, copy=True) for part in parts]
        ),
        "stacked, then one transfer": lambda parts, device: torch.stack(parts).to(device, copy=True),
    },
    inputs=lambda generator, device: ([torch.ones(500_000) for _ in range(4)], device),
    guess=guess,
)

# %% [markdown]
# With a GPU it may matter again: there, joining on the device is the quicker place for it.

# %% [markdown]
# ## 4. Round trips, and journeys not worth making
#
# A step of a program works on 100,000 numbers, which are on the device. Before it, they go down to the CPU and up
# again, because some function in between wanted to see them there. How many times faster is it to stay?

# %%
guess = 1.0

# %%
compare(
    "a power of 100,000 numbers, after a round trip or without",
    {
        ".cpu(), .to(device), power": lambda x: x.cpu().to(x.device) ** 1.5,
        "stay": lambda x: x**1.5,
    },
    inputs=lambda generator, device: torch.rand(100_000, generator=generator).to(device),
    guess=guess,
    claim="A2",
)

# %% [markdown]
# On the CPU, a round trip is free: `.cpu()` and `.to` find nothing to do. On a GPU it is two transfers of
# 400 kB, and Python waits for the first of them before it can launch anything else.
#
# Now the opposite question. The data is on the CPU, and the result is wanted there. Is a GPU worth the trip?
# The work is one addition for every number. Without a GPU nothing travels here, and the second variant only
# makes three calls that have nothing to do; look at the recorded devices if the table has any.

# %%
guess = 1.0

# %%
compare(
    "adding 1,000 numbers: on the CPU, or there and back",
    {
        "on the CPU": lambda a, b, device: a + b,
        "there and back": lambda a, b, device: (a.to(device) + b.to(device)).cpu(),
    },
    inputs=lambda generator, device: (*torch.rand(2, 1000, generator=generator), device),
    guess=guess,
)

# %% [markdown]
# On a CPU, three calls that do nothing cost about as much as adding 1,000 numbers. On a GPU there is a true
# journey. An addition reads 8 bytes and writes 4 for a single operation. The journey moves the same 12 bytes, and
# pays the fixed price three times. Over PCIe 4.0 (32 GB/s each way at most) that is about what one core can move in
# main memory without it. So there is little to win at any size, and much to lose at small ones.
#
# A product of two 512 × 512 matrices does 2 × 512³ = 268 million operations for 3 MB that travel: 85
# operations for each byte. (The CPU variant uses one thread, here and in the recorded runs.)

# %%
guess = 1.0

# %%
compare(
    "multiplying matrices of 512 × 512: on the CPU, or there and back",
    {
        "on the CPU": lambda a, b, device: a @ b,
        "there and back": lambda a, b, device: (a.to(device) @ b.to(device)).cpu(),
    },
    inputs=lambda generator, device: (*torch.rand(2, 512, 512, generator=generator), device),
    guess=guess,
    flops=2 * 512**3,
)

# %%
n = 512
print(f"addition: {1 / 12:.2f} operations for each byte that travels; matrix product: {2 * n / 12:.0f}")

# %% [markdown]
# The rule of thumb: send once, do much there, bring back little. For a model that means: parameters once, a
# batch at each step, and of the results only the few numbers that you want to read.

# %% [markdown]
# ## 5. `*_like` and `new_*`
#
# A tensor knows its dtype, its device and the order of its numbers in memory (its *memory format*, chapter 06).
# The `*_like` functions take over all three, and the shape. The `new_*` methods take over dtype and device; you
# give the shape.

# %%
given = torch.rand(4, 3, 8, 8, device=device, dtype=torch.float64).to(memory_format=torch.channels_last)
like = {
    "empty_like": torch.empty_like(given),
    "zeros_like": torch.zeros_like(given),
    "ones_like": torch.ones_like(given),
    "full_like": torch.full_like(given, 0.5),
    "rand_like": torch.rand_like(given),
    "randn_like": torch.randn_like(given),
    "randint_like": torch.randint_like(given, 10),
}
new = given.new_zeros(4, 3, 8, 8)
assert (new.dtype, new.device) == (given.dtype, given.device)
print(
    "strides of the images, zeros_like, new_zeros:", given.stride(), like["zeros_like"].stride(), new.stride()
)

# %% [markdown]
# The memory format of `new_zeros` is the ordinary one. So it is with `torch.ones(images.shape, …)`, even with the
# right dtype and device. Does that matter? We multiply `channels_last` images by ones, made in two ways.

# %%
guess = 1.0

# %%
compare(
    "channels_last images times ones, on their device",
    {
        "ones(shape, device=)": lambda images: images * torch.ones(images.shape, device=images.device),
        "ones_like": lambda images: images * torch.ones_like(images),
    },
    inputs=lambda generator, device: (
        torch.rand(8, 32, 32, 32, generator=generator).to(device).to(memory_format=torch.channels_last)
    ),
    guess=guess,
)

# %% [markdown]
# **Why.** Both variants allocate the same, and launch the same two operations:

# %%
images = torch.rand(8, 32, 32, 32).to(memory_format=torch.channels_last)
print(costs(lambda: images * torch.ones(images.shape)), end="\n\n")
print(costs(lambda: images * torch.ones_like(images)))

# %% [markdown]
# But with two different memory formats no walk through memory suits both. One of the two tensors is read in
# jumps, so the CPU's vector instructions cannot load neighbours together. With equal formats the multiplication
# runs through both from start to end.
#
# One caution: tensors that have holes or overlaps are not imitated to the last stride. The copy is dense.

# %%
every_other = torch.ones(3, 4)[:, ::2]
print("strides:", every_other.stride(), "and of zeros_like:", torch.zeros_like(every_other).stride())
assert torch.zeros_like(every_other).is_contiguous() and not every_other.is_contiguous()

# %% [markdown]
# ### When it does not help
#
# "Few `.to(device)`", says the article. What does one cost that has nothing to do, because the tensor is there
# already? The work beside it is the sine of 100,000 numbers.

# %%
guess = 1.0

# %%
compare(
    "a .to(device) that has nothing to do",
    {
        "x.to(device).sin()": lambda x: x.to(x.device).sin(),
        "x.sin()": lambda x: x.sin(),
    },
    inputs=lambda generator, device: torch.rand(100_000, generator=generator).to(device),
    guess=guess,
)

# %% [markdown]
# Nothing that you would notice: one call, about a microsecond. It is the transfers that cost, not the word
# `.to`. The reason to write few of them is another: a `.to(device)` in the middle of a function hides that
# something was made in the wrong place.

# %%
behaviour(
    "C2",
    "All seven *_like functions take over shape, dtype, device and memory format.",
    len(like) == 7
    and all(
        (made.shape, made.dtype, made.device, made.stride())
        == (given.shape, given.dtype, given.device, given.stride())
        for made in like.values()
    ),
)

# %% [markdown]
# ## 6. `.to` of a module, `.to` of a tensor
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
assert tensor.dtype == torch.float32 and tensor.to(torch.float64).dtype == torch.float64
assert module.to(torch.float64) is module

tensor.to("meta")
module.to("meta")
print("tensor:", tensor.device, "| module:", module.weight.device)

# %%
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
net.to("meta")
behaviour(
    "B4",
    "One line, model.to(device), moves all parameters and buffers of a model, in place.",
    {part.device.type for part in [*net.parameters(), *net.buffers()]} == {"meta"},
    when="the model's tensors are parameters or buffers",
)
behaviour(
    "B4",
    "One line, x = x.to(device), moves a tensor.",
    tensor.to("meta").device.type == "meta",
)
if torch.cuda.is_available():
    article_code(
        "B4",
        "model = model.cuda() and data = data.cuda()",
        lambda: (nn.Linear(3, 2).cuda(), torch.ones(3).cuda()),
        right=lambda moved: moved[0].weight.is_cuda and moved[1].is_cuda,
    )

# %% [markdown]
# "In place" has a good consequence. `Module.to` keeps the parameter objects and exchanges what is in them. An
# optimizer that was made before still holds the right ones (asserted below for a change of dtype, and for your
# GPU if you have one). Its own state, such as Adam's averages, does not move with the module. So the usual
# order is: make the module, move it, then make the optimizer.

# %%
assert weight.dtype == torch.float64  # the parameter from before .to, changed from within

module = nn.Linear(3, 2)
optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
module.to(device=device, dtype=torch.float64)
assert optimizer.param_groups[0]["params"][0] is module.weight

# %% [markdown]
# `meta` is the exception. A module that goes there gets new parameters. And there is no way back, because there
# are no numbers to bring back:

# %%
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

# %%
with torch.device("meta"):
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))
assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
print(model(torch.rand(7, 10, device="meta")).shape)

# %% [markdown]
# This is useful with `meta` itself. Usually you build a model and then load its weights. But building fills
# the weights with random numbers, loading copies the true ones over them, and the random ones are gone. If you
# build on `meta`, nothing is filled, and `load_state_dict(…, assign=True)` takes the given tensors as they
# are. How many times faster?

# %%
guess = 2.0


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


compare(
    "loading weights into a new model on a device",
    {"build, move, load": build_and_load, "build on meta, assign": load_into_meta},
    inputs=lambda generator, device: (build().to(device).state_dict(), device),
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
    assert torch.equal(one, other)
assert copied[0].weight.data_ptr() != first["0.weight"].data_ptr()
assert shared[0].weight.data_ptr() == first["0.weight"].data_ptr()
print(costs(build_and_load, first, "cpu"), end="\n\n")
print(costs(load_into_meta, second, "cpu"))

# %% [markdown]
# The second count lists the random numbers (`uniform_`) and 2 MB, too. But these are operations on `meta`: they
# ask for memory that is never there, and fill nothing. The four copies are truly gone.
#
# One trap: `assign=True` leaves a mark in a `state_dict`. Whoever loads from the same one later, without `assign`,
# may share its memory, too:

# %%
load_into_meta(first, "cpu")
later = build_and_load(first, "cpu")
print("a later load shares memory:", later[0].weight.data_ptr() == first["0.weight"].data_ptr())

# %% [markdown]
# ## 7. Constants that travel along: `register_buffer`
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
assert shift.plain.device.type == "cpu"

# %% [markdown]
# The three buffers moved. The plain attribute stayed behind, and would raise the error of section 1 when
# `forward` used it. This is the limit of *B4*: one line moves what the module knows of, its parameters and
# buffers.

# %%
behaviour(
    "B4",
    "A tensor that is a plain attribute moves, too.",
    not shift.plain.is_cpu,
    unless="the model's tensors are parameters or buffers",
)

# %% [markdown]
# With a dtype, only floating-point (and complex) buffers are converted. Integers stay integers, which is what you
# want for indices and counts.

# %%
shift = Shift().to(torch.float64)
print(shift.weights.dtype, shift.alpha.dtype)
assert (shift.weights.dtype, shift.alpha.dtype) == (torch.int64, torch.float64)

# %% [markdown]
# A buffer is not a parameter: no optimizer will change it. It is saved with the module, unless you say
# `persistent=False`.

# %%
assert list(shift.parameters()) == []
print("buffers:   ", [name for name, _ in shift.named_buffers()])
print("state_dict:", list(shift.state_dict()))

# %%
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
# A key in the `state_dict` is a promise. A file that was saved before the buffer was added does not load any
# more (unless with `strict=False`):

# %%
old_file = Shift().state_dict()
del old_file["alpha"]
try:
    Shift().load_state_dict(old_file)
    old_file_loads = True
except RuntimeError as error:
    old_file_loads = False
    print(" ".join(str(error).split()))
assert not old_file_loads

# %% [markdown]
# So save what cannot be computed again, such as running averages. A table that `__init__` computes from its
# arguments needs no place in the file. Four thousand positions of 512 numbers would take 8 MB in every
# checkpoint:

# %%
table = torch.zeros(4096, 512)
module = nn.Module()
module.register_buffer("saved", table)
module.register_buffer("not_saved", table.clone(), persistent=False)
print({key: f"{value.nbytes / 1e6:.1f} MB" for key, value in module.state_dict().items()})

# %% [markdown]
# But such a table does not go together with the fast way to load of section 6. A module that was built on `meta`
# has its table there, and no file brings the numbers. `load_state_dict` finds nothing missing:

# %%
with torch.device("meta"):
    module = Shift()
print(module.load_state_dict(Shift().state_dict(), assign=True))
print({name: str(buffer.device) for name, buffer in module.named_buffers()})
try:
    module(torch.ones(3))
    still_on_meta = False
except RuntimeError as error:
    still_on_meta = True
    print(f"{type(error).__name__}: {str(error).split(',')[0]}")
assert still_on_meta

# %% [markdown]
# So compute such tables again after loading, or make them on a true device: `torch.zeros(3, device="cpu")` in
# `__init__` is stronger than the `with`.

# %% [markdown]
# Assigning a tensor later keeps the name a buffer. A number is refused:

# %%
shift.alpha = torch.tensor(2.0)
assert "alpha" in shift.state_dict()
try:
    shift.alpha = 2.0
except TypeError as error:
    print(f"TypeError: {error}")

# %% [markdown]
# ### What does it save?
#
# A small picture is normalised: minus a mean, divided by a standard deviation for each colour. The constants
# are made in `forward`; or kept as plain attributes and sent on every call, to be safe; or kept as buffers.

# %%
guess = 2.0
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


# %%
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


compare(
    "normalising a picture of 32 × 32 with constants",
    {"made in forward": caller(0), "sent in forward": caller(1), "buffers": caller(2)},
    inputs=lambda generator, device: (
        torch.rand(1, 3, 32, 32, generator=generator).to(device),
        [module().to(device) for module in (MadeInForward, SentInForward, Buffers)],
    ),
    guess=guess,
)

# %% [markdown]
# **Why.** Making the constants converts six Python numbers at every call, and on a GPU sends them. The plain
# attributes cost no more than the buffers on a CPU: `.to` has nothing to do there, and finding a buffer takes a
# Python call, too, because buffers are kept in a dictionary of their own. On another device the plain attributes
# travel at every call. That we can count:

# %%
picture = torch.rand(1, 3, 32, 32, device="meta")
for module in (SentInForward, Buffers):
    ready = module().to("meta")
    print(f"{module.__name__:14} {costs(ready, picture).transfers} transfers a call")
assert "mean" in vars(SentInForward()) and "mean" not in vars(Buffers())
assert costs(SentInForward().to("meta"), picture).transfers == 2
assert costs(Buffers().to("meta"), picture).transfers == 0

# %% [markdown]
# ### When it does not help
#
# A single number that never changes, such as `alpha`, needs no tensor and no buffer to be everywhere. A Python
# number is sent with the command. So does a CPU tensor of no dimensions: it may meet a tensor of any
# device.

# %%
everywhere = torch.rand(10, device="meta")
print("Python number:       ", costs(lambda: everywhere * 0.5).transfers, "transfers")
print(
    "CPU tensor, shape ():", costs(lambda half: everywhere * half, torch.tensor(0.5)).transfers, "transfers"
)

# %% [markdown]
# Make it a buffer if it must be saved, or if it changes during training.

# %% [markdown]
# ## 8. Hidden synchronisations
#
# A GPU works off a queue. Python puts orders into it and goes on at once, often far ahead. That is what hides
# the cost of Python. But when Python wants to *know* a value, it must wait until the queue is empty. Such a
# point is a synchronisation, *sync* for short. Nothing in the code says "wait". Which of these lines do it?
# (`costs` estimates it here from the operations that run on the CPU.)

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
for line, number in found.items():
    print(f"{line:26} {number} syncs" if number != 1 else f"{line:26} 1 sync")

# %% [markdown]
# Besides copies between devices there are two kinds. Some lines give Python a value: `.item()`, `float()`, an `if`,
# `torch.equal`. Others give a tensor whose *size* depends on the values: `x[mask]`, `nonzero`, `one_hot(labels)`
# without the number of classes. Python must know the size to make the tensor.
#
# Operations with results of known size do not wait, as a rule. Two exceptions: `y[mask] = values` must find the
# places first (not where the value is a single number). And `torch.linalg.inv`, `solve` and `cholesky` look whether they succeeded, and so wait on CUDA, as
# their [documentation](https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html) says. The count does
# not know that.

# %%
assert found["x.sum().item()"] == found["float(x.sum())"] == found["if x.sum() > 1: …"] == 1
assert found["x[mask]"] == found["mask.nonzero()"] == found["torch.equal(x, x)"] == 1
assert found["F.one_hot(labels)"] > 0
assert found["x.sum()"] == found["torch.where(mask, x, 0)"] == found["x[labels]"] == 0
y, chosen = x.clone(), x[mask]
assert costs(y.__setitem__, mask, chosen).syncs == 1 and costs(y.__setitem__, mask, 0.0).syncs == 0
assert (
    costs(torch.linalg.inv, torch.eye(3)).syncs == 0 < costs(F.one_hot, labels, 10).syncs
)  # both wrong for CUDA

# %% [markdown]
# The counter has more blind spots on the CPU: `x.numpy()` reads the memory directly, and `print(x)` reads the values
# while torch keeps counters out. On a GPU all three kinds of reading wait (`.numpy()` after `.cpu()`). It also
# counts too much: with `F.one_hot(labels, 10)` torch looks at the labels on the CPU, but not on CUDA.

# %%
print(
    "counted for str(x), x.tolist(), x.numpy():", *(costs(c).syncs for c in (x.__repr__, x.tolist, x.numpy))
)

# %% [markdown]
# `meta` is the stricter judge. It has no values, so whoever asks for one gets an error:

# %%
nothing = torch.empty(10, device="meta")
for line, call in {
    "x.sum().item()": lambda x: x.sum().item(),
    "x.tolist()": lambda x: x.tolist(),
    "x[x > 0]": lambda x: x[x > 0],
    "torch.where(x > 0, x, 0)": lambda x: torch.where(x > 0, x, 0),
}.items():
    try:
        call(nothing)
        print(f"{line:26} works")
    except (RuntimeError, NotImplementedError) as error:
        print(f"{line:26} raises {type(error).__name__}")

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
# ### Reading the loss at every step
#
# The best-known hidden sync: a running total of losses. One loop reads a number at each of 100 steps. The
# other adds tensors and reads the total once. How many times faster is the second on the CPU?

# %%
guess = 1.5


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
    inputs=lambda generator, device: (
        torch.rand(100, 16, 32, generator=generator).to(device),
        torch.rand(32, 8, generator=generator).to(device),
    ),
    guess=guess,
)

# %%
batches, weights = torch.rand(100, 16, 32), torch.rand(32, 8)
print("syncs:", costs(read_each, batches, weights).syncs, "and", costs(read_once, batches, weights).syncs)
assert abs(read_each(batches, weights) - read_once(batches, weights)) < 1e-3 * read_each(batches, weights)

# %% [markdown]
# On the CPU the famous advice does not pay. The CPU has no queue: a result is there when the line has run, and
# there is nobody to wait for. Adding two tensors even costs more than adding two Python numbers.
#
# On a GPU the first loop stops the queue 100 times. How much that costs depends on what the GPU could have done
# meanwhile. If one step takes the GPU 50 ms, a sync at its end is not noticeable. If a step is many short
# operations, Python no longer runs ahead, and the GPU waits for Python between all of them.
#
# (`total += loss` with a loss that needs gradients would keep all 100 graphs alive. Use `loss.detach()` there;
# chapter 03 shows why.)

# %% [markdown]
# But look at what the loops have in common: 100 steps in Python. Often the value was read only to decide
# something for one row. Then the way out is not to read later, it is to decide with tensors. Rows of numbers
# shall be halved where their sum is above a limit:

# %%
guess = 10.0


# %%
def halve_in_a_loop(rows, limit):
    result = rows.clone()
    for i in range(len(rows)):
        if rows[i].sum().item() > limit:
            result[i] /= 2
    return result


def halve_at_once(rows, limit):
    too_large = rows.sum(dim=1, keepdim=True) > limit
    return torch.where(too_large, rows / 2, rows)


compare(
    "200 rows, decided with .item() or with where",
    {"loop with .item()": halve_in_a_loop, "torch.where": halve_at_once},
    inputs=lambda generator, device: (torch.rand(200, 50, generator=generator).to(device), 25.0),
    guess=guess,
)

# %%
rows = torch.rand(200, 50)
assert torch.equal(halve_in_a_loop(rows, 25.0), halve_at_once(rows, 25.0))
print("syncs:", costs(halve_in_a_loop, rows, 25.0).syncs, "and", costs(halve_at_once, rows, 25.0).syncs)

# %% [markdown]
# Here the CPU gains, too: not from the syncs that are gone, but from 200 rows done in a few operations.
# Note the price: `where` computes `rows / 2` for all rows, wanted or not.

# %% [markdown]
# ## 9. Masks without a boolean index
#
# A batch of 1,000 rows, padded to 1,000 numbers; a mask says where the true numbers are, about half of them. We
# want their sum: with a boolean index, or with `torch.where`, which puts 0 in place of the others. The second does
# work for numbers that nobody wants. How many times faster is it?

# %%
guess = 1.0

# %%
compare(
    "the sum of what a mask leaves of 1,000,000 numbers",
    {
        "x[mask].sum()": lambda x, mask: x[mask].sum(),
        "where(mask, x, 0).sum()": lambda x, mask: torch.where(mask, x, 0).sum(),
    },
    inputs=lambda generator, device: (
        torch.rand(1000, 1000, generator=generator).to(device),
        (torch.arange(1000) < torch.randint(1000, (1000, 1), generator=generator)).to(device),
    ),
    guess=guess,
    bytes=5e6,
)

# %%
x, mask = torch.rand(1000, 1000), torch.arange(1000) < torch.randint(1000, (1000, 1))
print(costs(lambda: x[mask].sum()), end="\n\n")
print(costs(lambda: torch.where(mask, x, 0).sum()))

# %% [markdown]
# **Why.** The index must find the chosen places first, keep a list of them (scratch memory, which the count does
# not see), and fetch the values one by one. `where` walks through everything once, in order. The limit in the
# table is the time to read all numbers and the mask once: both ways are far from it.
#
# A shorter spelling is `(x * mask).sum()`. It is wrong where a number that is not chosen is not finite, because
# NaN times 0 is NaN:

# %%
x = torch.tensor([1.0, float("nan"), 3.0])
mask = torch.tensor([True, False, True])
print("x * mask:", (x * mask).sum(), "| where:", torch.where(mask, x, 0).sum())
assert (x * mask).sum().isnan() and torch.where(mask, x, 0).sum() == 4

# %% [markdown]
# The same works for a batch with a mask for each row. A mean for each row needs two sums of known size, one of
# the values and one of the mask. The boolean index alone cannot do that: it gives all values in one row, and where
# one row ends and the next begins is lost.

# %%
x, mask = torch.rand(3, 5), torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]).bool()
means = torch.where(mask, x, 0).sum(dim=1) / mask.sum(dim=1)
assert torch.allclose(means, torch.stack([row[chosen].mean() for row, chosen in zip(x, mask, strict=True)]))
print(means.shape, "syncs:", costs(lambda: torch.where(mask, x, 0).sum(dim=1) / mask.sum(dim=1)).syncs)

# %% [markdown]
# ### When it does not help
#
# `where` does the work for everything. If the work for each row is large and few rows are chosen, that is
# waste. 2,000 rows, 5 % chosen, each to be multiplied by a matrix of 256 × 256. How many times faster is
# `where`?

# %%
guess = 1.0

# %%
compare(
    "5 % of 2,000 rows through a matrix",
    {
        "x[mask] @ weights": lambda x, mask, weights: (x[mask] @ weights).sum(),
        "where(mask, x @ weights, 0)": lambda x, mask, weights: torch.where(
            mask[:, None], x @ weights, 0
        ).sum(),
    },
    inputs=lambda generator, device: (
        torch.rand(2000, 256, generator=generator).to(device),
        (torch.rand(2000, generator=generator) < 0.05).to(device),
        torch.rand(256, 256, generator=generator).to(device),
    ),
    guess=guess,
)

# %% [markdown]
# The index wins: it multiplies 100 rows instead of 2,000. On a GPU one sync is cheap if it saves much heavy
# work, and expensive beside a few microseconds of light work. So a sync is not a mistake. It is a price. Chapter
# 10 compares the ways to select in more detail.

# %% [markdown]
# ## Summary
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
# | a decision for each row | `torch.where`, not `if … .item()` | one operation for all rows, no sync |
# | a masked sum or mean | `where(mask, x, 0)` | known size, no sync; NaN stays out |
# | heavy work on few rows | `x[mask]` | one sync, but much less work |

# %%
verdicts("A2", "B4", "C2", "C3")

# %% [markdown]
# *A2* carries the word "wrong" for the article's code, because of the function that does not exist. Its advice is
# decided on a GPU: on a CPU there is nowhere to go.
#
# **Now you:** [the exercises of this chapter](../exercises/02_devices/02_devices.ipynb). Five small programs
# that wait, send too much, or fail on another device.
