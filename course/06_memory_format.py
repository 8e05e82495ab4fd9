# %% [markdown]
# # 06 · Memory format
#
# A batch of pictures has four dimensions, but memory has only one. Somebody must decide which number comes
# next. The decision changes no result beyond rounding. It changes how long some operations take, in both
# directions.
#
# IDs such as *E1* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, which
# times, its line *limit*, and `costs`, which counts, are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - read and predict strides, and say which calls copy and which do not,
# - convert tensors and modules to channels_last, and see where a program loses the format again,
# - name operations that gain from channels_last on a CPU, and operations that lose.
#
# **Time:** 55 minutes to read and run, 20 more for the part Further. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *E1* "strides tell the memory format; the shape does not change"; *E2* "`view` and
# `reshape` adapt a tensor to memory formats"; *E4* "`contiguous`, `clone` and `zeros_like` take a memory format"; *E5*
# "`Module.to(memory_format=)` converts a module"; *E6* "convolution, pooling and upsampling gain on a CPU";
# *E8* "`Tensor.pinned()` and `torch.cuda.set_memory_format()`". Some of them will not hold. (*E3* is in chapter 07,
# *E7* in chapter 13.)

# %%
import copy

import numpy as np
import torch
import torch.nn.functional as F
from parts.strides import draw_formats
from PIL import Image
from torch import nn

from autograder import article_code, behaviour, compare, costs, devices, guessed, picture, verdicts, without
from autograder.teaching.recall import recall

torch.backends.cudnn.allow_tf32 = False  # a GPU's convolutions keep all digits of float32 (chapter 05)
print("devices here:", *devices())
recall("06", ..., ..., ...)

# %% [markdown]
# ## 1. Which number comes next?
#
# Twelve numbers as one picture with 3 channels of 2 × 2 pixels. The shape is written *N, C, H, W*: pictures,
# channels, rows, columns.

# %%
small = torch.arange(12).view(1, 3, 2, 2)
converted = small.to(memory_format=torch.channels_last)
picture(*draw_formats(small, converted))

# %% [markdown]
# By default, a whole channel comes first, then the next one: *NCHW*. In channels_last, the three channels of
# one pixel lie side by side, then comes the next pixel: *NHWC*. Is it still the same tensor?

# %%
assert converted.shape == small.shape == (1, 3, 2, 2)
assert torch.equal(converted, small)
assert converted[0, 1, 0, 1] == small[0, 1, 0, 1] == 5
print(small.stride(), converted.stride())

# %% [markdown]
# For every index it is. Only the **strides** differ. A stride says how many numbers you must go forward in
# memory to get from one index to the next along this dimension: the arrows in the picture.
#
# The rule: walk through the dimensions in memory order, from the innermost to the outermost. The first stride
# is 1. Every other stride is the product of the sizes that were passed on the way. The memory order of
# channels_last is *N, H, W, C*, with *C* innermost. The strides are still listed in the order *N, C, H, W*.
#
# Now the example that claim *E1* came with, ten pictures of 3 × 32 × 32. In channels_last, how many numbers is it
# from one pixel to the one below it?

# %%
guess = ...

# %%
images = torch.rand(10, 3, 32, 32)
last = images.to(memory_format=torch.channels_last)
guessed(
    "numbers from a pixel to the one below it, in channels_last",
    guess,
    last.stride(2),
    f"All strides: {last.stride()} in channels_last, {images.stride()} by default.",
)

# %%
assert last.stride() == (32 * 32 * 3, 1, 32 * 3, 3)
assert images.stride() == (3 * 32 * 32, 32 * 32, 32, 1)
assert images.is_contiguous() and not images.is_contiguous(memory_format=torch.channels_last)
assert last.is_contiguous(memory_format=torch.channels_last) and not last.is_contiguous()
behaviour(
    "E1",
    "The strides of (10, 3, 32, 32) are (3072, 1024, 32, 1), in channels_last (3072, 1, 96, 3); "
    "shape and values stay.",
    images.stride() == (3072, 1024, 32, 1)
    and last.stride() == (3072, 1, 96, 3)
    and last.shape == images.shape
    and torch.equal(last, images),
)

# %% [markdown]
# ## 2. The right and the wrong way to walk
#
# Does the order matter? A matrix of 4096 × 4096 numbers lies in memory row by row. We sum 64 of its columns, one after
# the other, or 64 of its rows. Both read 262,144 numbers. (The matrix is symmetric, so even the sums are the same.) How
# many times as fast are rows?

# %%
guess = ...


# %%
def sum_columns(matrix):
    return [matrix[:, i].sum() for i in range(0, matrix.shape[1], matrix.shape[1] // 64)]


def sum_rows(matrix):
    return [matrix[i].sum() for i in range(0, matrix.shape[0], matrix.shape[0] // 64)]


def symmetric(side):
    def inputs(generator, device):
        numbers = torch.rand(side, generator=generator).to(device)
        return numbers + numbers[:, None]

    return inputs


compare(
    "summing 64 columns or rows of 4096 numbers",
    {"columns": sum_columns, "rows": sum_rows},
    inputs=symmetric(4096),
    guess=guess,
    because=without("a matrix larger than the cache", inputs=symmetric(128)),
)

# %% [markdown]
# **Why.** On most processors memory comes in lines of 64 bytes: 16 numbers of 4 bytes. Along a row, one line serves 16
# additions, and the processor sees the pattern and fetches the next lines ahead. Down a column, the next number is 16
# kB away. (A matrix of 128 × 128 fits into the cache, where a jump costs almost nothing.) Each line is fetched for one
# number, and 15 of 16 numbers go unused:

# %%
matrix = torch.ones(4096, 4096)
print("from one number of a column to the next:", matrix[:, 0].stride(0) * 4, "bytes")
print("from one number of a row to the next:   ", matrix[0].stride(0) * 4, "bytes")
print("counted operations, columns:", costs(sum_columns, matrix).operations.total())
print("counted operations, rows:   ", costs(sum_rows, matrix).operations.total())

# %% [markdown]
# The counts are equal. The difference is in the memory, so only a clock can see it. (On an H200 it hardly shows: each
# of the 64 sums takes about 10 µs in either order, which is its launch.)
#
# And if torch gets the whole matrix in a single call? `sum(0)` adds up the columns, `sum(1)` the rows. How many times
# as fast are the rows?

# %%
guess = ...

# %%
compare(
    "one call for all sums of a 1024 × 1024 matrix",
    {"sum(0), columns": lambda matrix: matrix.sum(0), "sum(1), rows": lambda matrix: matrix.sum(1)},
    inputs=symmetric(1024),
    guess=guess,
    bytes=1024 * 1024 * 4,
)

# %% [markdown]
# On the CPU the gap is much smaller. In one call torch chooses the walk. It need not go down one column after the
# other. It can go through the rows as they lie in memory, and add row after row to one row of 1024 running sums, or to
# a strip of it. Then every number of a line is used. Order is your problem where **you** write the loop. If a loop must
# go along the wrong dimension, make one copy in the other order first (`matrix.t().contiguous()`, which copies only
# what is not in that order already: section 4), and walk through that.

# %% [markdown]
# ## 3. `view` and `reshape`
#
# `view` gives other sizes and strides to the same memory. It never copies. Where no strides can describe the
# result, it raises. `reshape` gives a view where it can, and otherwise copies.

# %%
assert images.view(10, 3, 1024).data_ptr() == images.data_ptr()
assert images.reshape(10, -1).data_ptr() == images.data_ptr()

try:
    last.view(10, -1)
except RuntimeError as error:
    print("view raises:", str(error).split(" (")[0])

copied = last.reshape(10, -1)
assert copied.data_ptr() != last.data_ptr()
assert torch.equal(copied, images.reshape(10, -1))

# %% [markdown]
# **Neither is a conversion.** To get *N, H, W, C* from *N, C, H, W* you may be tempted to write `reshape`: the sizes
# come out right. Look at the numbers of the picture above.

# %%
right = small.permute(0, 2, 3, 1)
wrong = small.reshape(1, 2, 2, 3)
assert right.shape == wrong.shape == (1, 2, 2, 3)
print("first pixel with permute:", right[0, 0, 0].tolist())
print("first pixel with reshape:", wrong[0, 0, 0].tolist(), "<- three pixels of channel 0")

# %% [markdown]
# `permute` moves dimensions. `view` and `reshape` keep the numbers in index order (the last index runs fastest) and
# only cut the row of numbers into other pieces. With the same shape, neither changes the order in memory.
#
# `permute` and `reshape` together can save a copy. A table with one row for each pixel is a view of a channels_last
# batch, but must be copied from a default one:

# %%
assert last.view(last.shape).stride() == last.reshape(last.shape).stride() == last.stride()
assert images.reshape(images.shape).stride() == images.stride()

pixels = last.permute(0, 2, 3, 1).reshape(-1, 3)
assert pixels.shape == (10 * 32 * 32, 3) and pixels.data_ptr() == last.data_ptr()
assert images.permute(0, 2, 3, 1).reshape(-1, 3).data_ptr() != images.data_ptr()  # here it had to copy

# %%
behaviour(
    "E2",
    "view or reshape gives a default batch the strides of channels_last.",
    last.stride() in (images.view(images.shape).stride(), images.reshape(images.shape).stride()),
)
behaviour("E2", "reshape to N, H, W, C puts the channels of a pixel side by side.", torch.equal(wrong, right))

# %% [markdown]
# ## 4. Copies that keep the order, and copies that change it
#
# Which strides come out of each call? The tensor that goes in is channels_last.

# %%
for name, result in {
    "contiguous()": last.contiguous(),
    "contiguous(memory_format=channels_last)": last.contiguous(memory_format=torch.channels_last),
    "clone()": last.clone(),
    "clone(memory_format=preserve_format)": last.clone(memory_format=torch.preserve_format),
    "clone(memory_format=contiguous_format)": last.clone(memory_format=torch.contiguous_format),
    "double()": last.double(),
    "zeros_like(…)": torch.zeros_like(last),
    "zeros_like(…, memory_format=contiguous_format)": torch.zeros_like(
        last, memory_format=torch.contiguous_format
    ),
    "new_zeros(….shape)": last.new_zeros(last.shape),
}.items():
    print(f"{name:48}{result.stride()}  {'no copy' if result is last else ''}")

# %% [markdown]
# `clone`, `zeros_like` and conversions of type have the default `preserve_format`: dense tensors keep
# their strides. `contiguous` has the default `contiguous_format`. So a `.contiguous()` that somebody added to be
# safe silently takes channels_last away. And not everything takes the argument:

# %%
for name, call in {
    "zeros(memory_format=)": lambda: torch.zeros(10, 3, 32, 32, memory_format=torch.channels_last),
    "contiguous(preserve_format)": lambda: last.contiguous(memory_format=torch.preserve_format),
    "three dimensions": lambda: last[0].to(memory_format=torch.channels_last),
}.items():
    try:
        call()
        print(f"{name}: accepted by this version of torch")
    except (TypeError, RuntimeError) as error:
        print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:70]}")

assert torch.empty(10, 3, 32, 32, memory_format=torch.channels_last).stride() == last.stride()

# %%
in_channels_last = [
    images.contiguous(memory_format=torch.channels_last),
    images.clone(memory_format=torch.channels_last),
    torch.zeros_like(images, memory_format=torch.channels_last),
    torch.zeros_like(last, memory_format=torch.preserve_format),
]
behaviour(
    "E4",
    "contiguous, clone and zeros_like give the memory format that they are asked for.",
    all(result.stride() == last.stride() for result in in_channels_last)
    and last.clone(memory_format=torch.contiguous_format).stride() == images.stride(),
)

# %% [markdown]
# Is it only tidiness? You need a copy of a channels_last batch. How many times as fast is the copy that keeps the
# order?

# %%
guess = ...


# %%
def channels_last_batch(*shape):
    def inputs(generator, device):
        return torch.rand(shape, generator=generator).to(device, memory_format=torch.channels_last)

    return inputs


compare(
    "copying a channels_last batch of 8 × 64 × 56 × 56",
    {
        "clone(memory_format=contiguous_format)": lambda batch: batch.clone(
            memory_format=torch.contiguous_format
        ),
        "clone()": lambda batch: batch.clone(),
    },
    inputs=channels_last_batch(8, 64, 56, 56),
    guess=guess,
    bytes=2 * 8 * 64 * 56 * 56 * 4,
    because=without("two orders", inputs=(8, 64, 56, 56)),
)

# %% [markdown]
# **Why.** Both read 6.4 MB and write 6.4 MB. One of them reads or writes with jumps, like the columns above. From the
# default order, the same line copies without jumps, and as fast as the other.

# %% [markdown]
# ## 5. Which operations gain, and which lose?
#
# Now each function gets the same numbers twice: in the default order, and in channels_last. First
# max-pooling of 64 channels. How many times as fast is channels_last?

# %%
guess = ...


# %%
def both_formats(*shape):
    def inputs(generator, device):
        batch = torch.rand(shape, generator=generator).to(device)
        return batch, batch.to(memory_format=torch.channels_last)

    return inputs


pooling = {
    "default": lambda default, last: F.max_pool2d(default, 3, stride=2, padding=1),
    "channels_last": lambda default, last: F.max_pool2d(last, 3, stride=2, padding=1),
}
compare(
    "max-pooling 64 channels",
    pooling,
    inputs=both_formats(8, 64, 28, 28),
    guess=guess,
    claim="E6",
    only="cpu",
    because=without("many channels", inputs=both_formats(8, 3, 28, 28)),
)

# %% [markdown]
# **Why.** A processor has instructions that work on 8 or 16 numbers at once, if these lie side by side. In
# channels_last, 16 channels of one pixel do, and all of them ask the same question: which of the nine neighbours
# is the largest? In the default order, the neighbours in memory are pixels that belong to different,
# overlapping windows. Torch's code for this order goes through them one by one.
#
# The bytes are the same in both orders. So this is not about memory, but about how many numbers an instruction
# handles. A picture has three channels. How many times as fast is channels_last for pictures?

# %%
guess = ...

# %%
compare(
    "max-pooling 3 channels",
    pooling,
    inputs=both_formats(32, 3, 28, 28),
    guess=guess,
    claim="E6",
    only="cpu",
)

# %% [markdown]
# The gain is gone, and the default order is the faster one. So it depends on the number of channels: three numbers
# side by side are not enough for one instruction, and the extra loops cost time. Channels_last wants channels.
#
# Now the operation that most people have in mind: a convolution, 64 channels in and 64 out. Both the input
# and the weights are converted. How many times as fast is it?

# %%
guess = ...


# %%
def input_and_weights(batch_shape, weight_shape):
    def inputs(generator, device):
        batch = torch.rand(batch_shape, generator=generator).to(device)
        weight = torch.rand(weight_shape, generator=generator).to(device)
        last = torch.channels_last
        return batch, weight, batch.to(memory_format=last), weight.to(memory_format=last)

    return inputs


def convolution(**arguments):
    return {
        "default": lambda x, weight, x_last, weight_last: F.conv2d(x, weight, **arguments),
        "channels_last": lambda x, weight, x_last, weight_last: F.conv2d(x_last, weight_last, **arguments),
    }


compare(
    "a 3 × 3 convolution, 64 channels to 64",
    convolution(padding=1),
    inputs=input_and_weights((2, 64, 28, 28), (64, 64, 3, 3)),
    guess=guess,
    only="cpu",
)

# %% [markdown]
# Little, compared with pooling, and on the recorded CPUs between a twentieth and a fifth: no side of a rule. Each number
# that is loaded is used in hundreds of multiplications. So a library can afford to rearrange the input into a blocked order
# of its own, compute, and rearrange the result. Channels_last can save a part of that, not of the arithmetic.
#
# The softmax over channels divides each pixel by the sum over its own channels, which in channels_last lie side by
# side. That should be ideal, should it not? The strides give a hint:

# %%
batch = torch.rand(8, 64, 28, 28).to(memory_format=torch.channels_last)
result = batch.softmax(1)
print("into softmax:  ", batch.stride())
print("out of softmax:", result.stride())

# %% [markdown]
# Default order comes out. So somewhere inside, the order was changed. If `softmax` does that itself, what
# does it cost to change the order beforehand? And there is another way. Permute by hand, and the numbers that
# belong together *are* the last dimension of a contiguous tensor. How many times as fast is the last way?

# %%
guess = ...

# %%
compare(
    "softmax over the channels of a channels_last batch",
    {
        "softmax(1)": lambda batch: batch.softmax(1),
        "contiguous, softmax(1)": lambda batch: batch.contiguous().softmax(1),
        "permute, softmax(-1), permute back": lambda batch: (
            batch.permute(0, 2, 3, 1).softmax(-1).permute(0, 3, 1, 2)
        ),
    },
    inputs=channels_last_batch(8, 64, 28, 28),
    guess=guess,
    bytes=2 * 8 * 64 * 28 * 28 * 4,
)

# %% [markdown]
# On the CPU and on an H200 the first two take about the same time: `softmax` seems to make the copy anyway, inside its
# C++ code, where `costs` would not see it. The third way stays far above the limit, too: that counts only bytes, and
# each number needs an exponential. By hand there is no copy, and the result keeps the format:

# %%
by_hand = batch.permute(0, 2, 3, 1).softmax(-1).permute(0, 3, 1, 2)
assert torch.allclose(by_hand, result)
assert by_hand.stride() == batch.stride()

# %% [markdown]
# Further below there are more operations, with other results again. They lead to three conditions for claim *E6*: many
# channels, each with a window of its own, and a result that keeps the format. If it does not keep it, the numbers were put
# into another order on the way. That is quickly looked up; how much is gained, only a measurement tells.

# %% [markdown]
# ## 6. What the conversion costs
#
# Your batch of 64 channels is in default order and the next function wants the default order back. You convert there
# and back for one max-pooling. How many times as fast is that? (Below 1, it is slower.)

# %%
guess = ...

# %%
compare(
    "max-pooling, with conversion there and back",
    {
        "stay in default order": lambda batch: F.max_pool2d(batch, 3, stride=2, padding=1),
        "convert, pool, convert back": lambda batch: F.max_pool2d(
            batch.to(memory_format=torch.channels_last), 3, stride=2, padding=1
        ).contiguous(),
    },
    inputs=(8, 64, 28, 28),
    guess=guess,
)

# %% [markdown]
# On the CPU it pays for this one slow operation alone. On an H200 it does not, 0.32×: there are three launches instead
# of one. Further below, the same is tried with a cheap operation, ReLU.
#
# ### Pictures arrive in channels_last
#
# Often nothing needs converting at all. A decoded picture is an array of rows of pixels of three colours: *H, W,
# C*. Renaming the dimensions with `permute` gives a channels_last tensor, and copies nothing.

# %%
coffee = torch.from_numpy(np.array(Image.open("../data/images/cup/coffee.jpg")))
print("decoded: ", tuple(coffee.shape), coffee.stride(), coffee.dtype)
batch = coffee[None].permute(0, 3, 1, 2)
print("as batch:", tuple(batch.shape), batch.stride())
assert batch.data_ptr() == coffee.data_ptr()
assert batch.is_contiguous(memory_format=torch.channels_last)

# %% [markdown]
# A network wants `float32` from 0 to 1. A loader that goes through default order turns everything round twice, once
# as bytes and once as `float32`. (`torchvision.transforms.ToTensor` makes each picture contiguous in *C, H, W*.)
# How many times as fast is staying in order?

# %%
guess = ...


# %%
def through_default(pictures):
    default = pictures.permute(0, 3, 1, 2).contiguous()
    return default.to(torch.float32).div_(255).to(memory_format=torch.channels_last)


def stay_in_order(pictures):
    batch = pictures.permute(0, 3, 1, 2)
    return batch.to(torch.float32, memory_format=torch.channels_last).div_(255)


def rolled_pictures(generator, device):
    return torch.roll(pictures, int(torch.randint(128, (), generator=generator)), 1).to(device)


pictures = torch.stack([coffee[i : i + 128, i : i + 128] for i in range(0, 256, 32)])
assert torch.equal(through_default(pictures), stay_in_order(pictures))
assert through_default(pictures).stride() == stay_in_order(pictures).stride()

compare(
    "8 pictures of 128 × 128 as a channels_last batch, divided in place",
    {"through default order": through_default, "stay in order": stay_in_order},
    inputs=rolled_pictures,
    guess=guess,
    bytes=8 * 128 * 128 * 3 * (1 + 4),
)

# %%
print("through default order", costs(through_default, pictures), sep="\n", end="\n\n")
print("stay in order", costs(stay_in_order, pictures), sep="\n", end="\n\n")
print("with / 255 instead of div_(255)", costs(lambda: pictures.permute(0, 3, 1, 2).float() / 255), sep="\n")

# %% [markdown]
# `div_` works in place: with a division that makes a new tensor, two `float32` batches are alive at once.
# `memory_format=` in the same `.to` as the dtype makes sure of the result, whatever the order of `pictures` was.

# %% [markdown]
# ## 7. A whole network
#
# `Module.to(memory_format=)` converts parameters and buffers with four dimensions. What happens to the others?


# %%
class Example(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(8, 16, 3)
        self.linear = nn.Linear(16, 4)
        self.register_buffer("grid", torch.rand(1, 2, 6, 6))
        self.register_buffer("table", torch.rand(5, 6))


example = Example()
assert example.to(memory_format=torch.channels_last) is example  # in place, as with any Module.to
for name, value in example.state_dict().items():
    order = value.ndim == 4 and value.is_contiguous(memory_format=torch.channels_last)
    print(
        f"{name:20}{tuple(value.shape)!s:16}{value.stride()!s:18}{'channels_last' if order else 'as before'}"
    )

# %% [markdown]
# A 3-D convolution has weights with five dimensions, and needs the other name. Asking for the wrong one raises.

# %%
try:
    nn.Conv3d(3, 8, 3).to(memory_format=torch.channels_last)
except RuntimeError as error:
    print("Conv3d, channels_last:", str(error).splitlines()[0])
print(
    "Conv3d, channels_last_3d:", nn.Conv3d(3, 8, 3).to(memory_format=torch.channels_last_3d).weight.stride()
)
behaviour(
    "E5",
    "Module.to(memory_format=) converts parameters and buffers with four dimensions and leaves the others.",
    example.convolution.weight.stride() == (72, 1, 24, 8)
    and example.grid.stride() == (72, 1, 12, 2)
    and example.table.is_contiguous(),
)

# %% [markdown]
# Now a small network for pictures. You can convert its weights, its input, both or neither. How many times as fast is
# "both" as "neither"? And do you need both, or does one alone give a part of the gain?

# %%
guess = ...

# %%
network = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(32, 32, 3, padding=1, groups=32),
    nn.Conv2d(32, 64, 1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(64, 64, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10),
)


def both_networks(network, *shape):
    networks = {
        device: copy.deepcopy(network).eval().requires_grad_(False).to(device) for device in devices()
    }
    converted = {
        device: copy.deepcopy(networks[device]).to(memory_format=torch.channels_last) for device in networks
    }

    def inputs(generator, device):
        batch = torch.rand(shape, generator=generator).to(device)
        return networks[device], converted[device], batch, batch.to(memory_format=torch.channels_last)

    return inputs


WAYS = {
    "neither": lambda plain, converted, batch, batch_last: plain(batch),
    "weights only": lambda plain, converted, batch, batch_last: converted(batch),
    "input only": lambda plain, converted, batch, batch_last: plain(batch_last),
    "both": lambda plain, converted, batch, batch_last: converted(batch_last),
}
compare(
    "a small network in channels_last",
    WAYS,
    inputs=both_networks(network, 4, 3, 64, 64),
    guess=guess,
)

# %% [markdown]
# Compare the three ways that convert something. On the CPU they are nearly the same. Why is one enough? Let us
# watch the format travel through the network whose weights alone are converted. (*Both* formats at once: section 9.)


# %%
def format_of(tensor):
    if tensor.ndim != 4:
        return f"{tensor.ndim} dimensions"
    default = tensor.is_contiguous()
    last = tensor.is_contiguous(memory_format=torch.channels_last)
    if default and last:
        return "both"
    return "default" if default else "channels_last" if last else "neither"


x = torch.rand(4, 3, 64, 64)
print(f"{'input':20}{format_of(x)}")
for layer in copy.deepcopy(network).eval().to(memory_format=torch.channels_last):
    x = layer(x)
    print(f"{type(layer).__name__:20}{format_of(x)}")

# %% [markdown]
# The input is in default order, and already the first convolution gives channels_last. It does so when its
# input **or** its weights are channels_last:

# %%
for input_format in (torch.contiguous_format, torch.channels_last):
    for weight_format in (torch.contiguous_format, torch.channels_last):
        x = torch.rand(2, 8, 6, 6).to(memory_format=input_format)
        weight = torch.rand(4, 8, 3, 3).to(memory_format=weight_format)
        result = format_of(F.conv2d(x, weight))
        print(f"input {format_of(x):14} weights {format_of(weight):14} -> result {result}")

# %% [markdown]
# The layers after it pass the format on. So converting the weights alone leaves one conversion, of the three-channel
# input, to the first layer. What counts is **where the first convolution stands**.
#
# Here is a network that does something else first: it doubles the size of a feature map and pools, as decoders and
# pyramids do. How many times as fast is "both" as "neither" now? And what will "weights only" bring?

# %%
guess = ...

# %%
resizing_first = nn.Sequential(
    nn.Upsample(scale_factor=2, mode="bilinear"),
    nn.MaxPool2d(3, stride=2, padding=1),
    nn.Conv2d(32, 16, 3, padding=1),
    nn.ReLU(),
)
compare(
    "a network that resizes before its first convolution",
    WAYS,
    inputs=both_networks(resizing_first, 2, 32, 28, 28),
    guess=guess,
)

# %% [markdown]
# On the CPU, converting the weights alone comes too late, and the input alone is nearly as good as both. "Convert
# both" is a good habit there: it is right in each case. Whether one alone gives the whole gain depends on the network.
# On an H200 both small networks become slower, in `float32` without TF32. (Chapter 07 has a larger one that gains.)
#
# Training runs backwards, too. Here the gradients come in the format of what they belong to:

# %%
x = torch.rand(2, 8, 6, 6).to(memory_format=torch.channels_last).requires_grad_()
weight = torch.rand(4, 8, 3, 3).to(memory_format=torch.channels_last).requires_grad_()
F.conv2d(x, weight).square().sum().backward()
assert x.grad.stride() == x.stride()
assert weight.grad.stride() == weight.stride()

# %% [markdown]
# ## 8. Who passes the format on?
#
# One step in the wrong place and the rest of the network runs in default order, without a word. Below, 24 steps get
# a channels_last tensor `x`, and some a default one beside it. How many of the 24 give a result in default order?

# %%
guess = ...

# %%
x = torch.rand(2, 8, 6, 6).to(memory_format=torch.channels_last)
default = torch.rand(2, 8, 6, 6)
order = torch.tensor([3, 1, 2])
ones = torch.ones(8)
steps = {
    "relu": F.relu(x),
    "max_pool2d": F.max_pool2d(x, 2),
    "interpolate": F.interpolate(x, scale_factor=2),
    "batch_norm": F.batch_norm(x, ones, ones, ones, ones),
    "group_norm": F.group_norm(x, 2),
    "instance_norm": F.instance_norm(x),
    "softmax(1)": x.softmax(1),
    "pad": F.pad(x, (1, 1, 1, 1)),
    "flip(3)": x.flip(3),
    "x + number for each channel": x + torch.rand(8, 1, 1),
    "x + default": x + default,
    "default + x": default + x,
    "cat of two channels_last": torch.cat([x, x], 1),
    "cat with a default": torch.cat([x, default], 1),
    "where(x > 0.5, x, 0)": torch.where(x > 0.5, x, 0),
    "where(default > 0.5, x, 0)": torch.where(default > 0.5, x, 0),
    "masked_fill": x.masked_fill(x < 0.5, 0),
    "x[:2], the first pictures": x[:2],
    "x[:, order], other channels": x[:, order],
    "pixel_shuffle": F.pixel_shuffle(x, 2),
    "stack of its pictures": torch.stack(list(x)),
    "contiguous()": x.contiguous(),
    "numpy and back": torch.from_numpy(x.numpy()),
    "cumsum(1)": x.cumsum(1),
}
found = {name: format_of(result) for name, result in steps.items()}
lines = []
for group in ("channels_last", "default"):
    names = [name for name in found if found[name] == group]
    lines.append(f"{len(names)} give {group}:")
    lines += ["   " + "".join(f"{name:36}" for name in names[i : i + 2]) for i in range(0, len(names), 2)]
guessed("of 24 steps, those that give default order", guess, list(found.values()).count("default"), *lines)

# %% [markdown]
# There is no rule that you could learn once. It differs by operation and by version of torch. Some are plausible:
# where two formats meet, one must give way. Others are not: `masked_fill` loses the format, `where` with the
# same meaning keeps it. `torch.stack` matters because loaders call it: it makes a default batch
# from pictures that lie in memory as *H, W, C*.
#
# So check, with `format_of` or `x.stride()`, after each step. Here is a piece of a program that drops pixels below a
# threshold, pools and enlarges. The input is channels_last. How many times as fast is it if one line is changed?

# %%
guess = ...


# %%
def loses(batch):
    batch = batch.masked_fill(batch < 0.5, 0)
    batch = F.max_pool2d(batch, 3, stride=2, padding=1)
    return F.interpolate(batch, scale_factor=2, mode="bilinear")


def keeps(batch):
    batch = torch.where(batch < 0.5, 0, batch)
    batch = F.max_pool2d(batch, 3, stride=2, padding=1)
    return F.interpolate(batch, scale_factor=2, mode="bilinear")


x = torch.rand(4, 64, 28, 28).to(memory_format=torch.channels_last)
assert torch.allclose(loses(x), keeps(x))
print("loses:", format_of(loses(x)), "  keeps:", format_of(keeps(x)))

compare(
    "channels_last lost at the start of three steps",
    {"with masked_fill": loses, "with where": keeps},
    inputs=channels_last_batch(4, 64, 28, 28),
    guess=guess,
    because=without("a format to lose", inputs=(4, 64, 28, 28)),
)

# %% [markdown]
# **Why.** The steps after the first work in the order that it hands on; on pictures in default order both ways are
# alike. If no operation of the same meaning keeps the format, convert again right behind the one that loses it. On the
# CPU one copy costs less than one max-pooling in the wrong order (section 6). Converting the *end* result does not
# help.

# %% [markdown]
# ## 9. Two formats at once
#
# With one channel there is nothing to interleave. With one pixel there is nothing to walk along. Then the memory
# is the same in both formats, and both tests say yes:

# %%
for shape in [(4, 1, 5, 5), (4, 3, 1, 1), (4, 3, 1, 5)]:
    plain = torch.rand(shape)
    print(f"{shape}: {format_of(plain)}")
    print("    as made                  ", plain.stride())
    print("    contiguous(channels_last)", plain.contiguous(memory_format=torch.channels_last).stride())
    print("    to(channels_last)        ", plain.to(memory_format=torch.channels_last).stride())

# %% [markdown]
# One row alone, the third shape, is not enough: 3 channels of 5 pixels still can lie in two orders.
#
# Note the strides. The stride of a dimension of size 1 is never used to find a number, so any value would do.
# `contiguous` sees that nothing needs to be done, and leaves it. `to` makes a copy with the strides that channels_last
# would have. Does it matter? A convolution of grey pictures chooses its output's format by the strides:

# %%
grey = torch.rand(4, 1, 8, 8)
weight = torch.rand(16, 1, 3, 3)
with_contiguous = grey.contiguous(memory_format=torch.channels_last)
with_to = grey.to(memory_format=torch.channels_last)
assert with_contiguous is grey and with_to is not grey
assert with_to.data_ptr() != grey.data_ptr()
print("after contiguous:", format_of(F.conv2d(with_contiguous, weight)))
print("after to:        ", format_of(F.conv2d(with_to, weight)))

# %% [markdown]
# So convert with `.to(memory_format=torch.channels_last)`, and a network for grey pictures gets what you meant.
# Where the copy is too much, let `view` put a dimension of size 1 behind the others, and let `permute` move it to the
# channels' place: both give views. And do not
# trust `is_contiguous(memory_format=...)` alone when a size is 1: print the strides.

# %%
as_view = grey.view(4, 8, 8, 1).permute(0, 3, 1, 2)
assert as_view.stride() == with_to.stride() and as_view.data_ptr() == grey.data_ptr()

# %% [markdown]
# ## 10. Two functions of the article
#
# The article also recommends `Tensor.pinned()` and `torch.cuda.set_memory_format()`.

# %%
article_code("E8", "torch.rand(3).pinned()", lambda: torch.rand(3).pinned())
article_code(
    "E8",
    "torch.cuda.set_memory_format(torch.channels_last)",
    lambda: torch.cuda.set_memory_format(torch.channels_last),
)
behaviour(
    "E8",
    "Tensor.pinned and torch.cuda.set_memory_format exist.",
    hasattr(torch.Tensor, "pinned") and hasattr(torch.cuda, "set_memory_format"),
)

# %% [markdown]
# No switch sets the format for all tensors: you set it for each module and each input, and the operations carry it
# from there. And `Tensor.pin_memory()` makes a copy in page-locked memory of the host, from which a GPU can fetch by
# itself (chapter 04). It has nothing to do with the memory format.

# %% [markdown]
# ## Further: small data, mixed formats, and more operations
#
# You can skip this part. It is for readers who want to know whether *their* operation gains, and to see the rest of
# the evidence for claim *E6*.
#
# ### Flattening
#
# A classifier flattens its features before the last layer. The call is the same. How many times as fast is it
# for a batch in the default order as for one in channels_last?

# %%
guess = ...

# %%
compare(
    "flattening 8 × 64 × 28 × 28 features",
    {
        "of a channels_last batch": lambda default, last: last.flatten(1),
        "of a default batch": lambda default, last: default.flatten(1),
    },
    inputs=both_formats(8, 64, 28, 28),
    guess=guess,
)

# %%
features = torch.rand(8, 64, 28, 28)
print("default", costs(features.flatten, 1), sep="\n", end="\n\n")
features = features.to(memory_format=torch.channels_last)
print("channels_last", costs(features.flatten, 1), sep="\n")

# %% [markdown]
# A default batch is already in the order that `flatten(1)` promises: a view. From channels_last, all 1.6 MB must be
# read and written in another order. Most networks average each channel to one number first; then nearly nothing is
# left to copy.
#
# ### Two formats in one operation
#
# We add two batches. Both are default, or one is channels_last. How many times as fast is the sum of equals?

# %%
guess = ...


# %%
def batches_to_add(generator, device):
    shape = 8, 64, 56, 56
    default, other = (torch.rand(shape, generator=generator).to(device) for _ in range(2))
    return default, other, other.to(memory_format=torch.channels_last)


compare(
    "adding two batches of 8 × 64 × 56 × 56",
    {
        "default + channels_last": lambda default, other, last: default + last,
        "default + default": lambda default, other, last: default + other,
    },
    inputs=batches_to_add,
    guess=guess,
    bytes=3 * 8 * 64 * 56 * 56 * 4,
)

# %%
assert (images + last).stride() == images.stride()
assert (last + images).stride() == last.stride()

# %% [markdown]
# No error and no warning, just time. With `+` the first operand decides the format of the result. That is no rule for
# all operations: `cat` in section 8 had the channels_last tensor first.
#
# ### Bilinear upsampling, 64 channels
#
# How many times as fast is channels_last?

# %%
guess = ...

# %%
compare(
    "bilinear upsampling of 64 channels",
    {
        "default": lambda default, last: F.interpolate(default, scale_factor=2, mode="bilinear"),
        "channels_last": lambda default, last: F.interpolate(last, scale_factor=2, mode="bilinear"),
    },
    inputs=both_formats(2, 64, 28, 28),
    guess=guess,
    claim="E6",
    only="cpu",
)

# %% [markdown]
# The reason is that of max-pooling. Four pixels are mixed with four weights, and the weights are equal for all
# channels of the pixel.
#
# ### Two other convolutions
#
# A *depthwise* convolution uses one filter for each channel: 9 multiplications for a number instead of 576. A
# convolution of 1 × 1 has no neighbours: it multiplies a matrix with each pixel. How many times as fast is
# channels_last for the depthwise one? And for the other?

# %%
guess = ...

# %%
compare(
    "a 3 × 3 depthwise convolution, 64 channels",
    convolution(padding=1, groups=64),
    inputs=input_and_weights((4, 64, 28, 28), (64, 1, 3, 3)),
    guess=guess,
    claim="E6",
    only="cpu",
    flops=2 * 4 * 64 * 28 * 28 * 9,
)

# %%
guess = ...

# %%
compare(
    "a 1 × 1 convolution, 64 channels to 64",
    convolution(),
    inputs=input_and_weights((4, 64, 28, 28), (64, 64, 1, 1)),
    guess=guess,
    claim="E6",
    only="cpu",
    flops=2 * 4 * 64 * 28 * 28 * 64,
)

# %% [markdown]
# Little arithmetic for each number: the depthwise convolution gains. For 1 × 1 nothing is gained; the recorded CPUs
# take as long, or up to a third longer. There are no windows that overlap, and in either order this is a product of
# matrices: so there is no gain to expect. Where the loss comes from, these figures do not say.
#
# ### Batch normalisation
#
# In evaluation it multiplies each channel with one number and adds another. First 8 pictures, then 128. How many times
# as fast is channels_last?

# %%
guess = ...


# %%
def batch_norm(batch, per_channel):
    return F.batch_norm(batch, per_channel, per_channel, per_channel, per_channel)


def both_formats_and_factors(pictures):
    def inputs(generator, device):
        batches = both_formats(pictures, 16, 28, 28)(generator, device)
        return *batches, torch.linspace(0.5, 1.5, 16, device=device)

    return inputs


both_norms = {
    "default": lambda default, last, factors: batch_norm(default, factors),
    "channels_last": lambda default, last, factors: batch_norm(last, factors),
}
compare(
    "evaluation batch norm of 16 channels, 8 pictures",
    both_norms,
    inputs=both_formats_and_factors(8),
    guess=guess,
    bytes=2 * 8 * 16 * 28 * 28 * 4,
)

# %%
guess = ...

# %%
compare(
    "evaluation batch norm of 16 channels, 128 pictures",
    both_norms,
    inputs=both_formats_and_factors(128),
    guess=guess,
    bytes=2 * 128 * 16 * 28 * 28 * 4,
)

# %% [markdown]
# For 8 pictures the default order is the better one on the CPU. A whole channel of 784 numbers lies together, so the
# two factors are loaded once and used 784 times. In channels_last each number needs other factors than its neighbour,
# and they are loaded again for each pixel. With 128 pictures it depends on the
# caches. Where 6.4 MB do not fit into them, as on the recorded processor (its limit grew far more than the bytes), both
# orders wait for the same bytes, and loading factors again costs little beside that. A processor with larger caches
# loses as much as before. (On an H200 the order hardly matters; 128 pictures take no longer than 8.)
#
# ### Average pooling in three dimensions
#
# The last example of claim *E6* is `AvgPool3d`. For tensors with five dimensions the format is called
# `channels_last_3d`. How many times as fast is it?

# %%
guess = ...


# %%
def both_formats_3d(generator, device):
    batch = torch.rand(1, 16, 16, 32, 32, generator=generator).to(device)
    return batch, batch.to(memory_format=torch.channels_last_3d)


compare(
    "average pooling in 3-D, 16 channels",
    {
        "default": lambda default, last: F.avg_pool3d(default, 2),
        "channels_last_3d": lambda default, last: F.avg_pool3d(last, 2),
    },
    inputs=both_formats_3d,
    guess=guess,
    claim="E6",
    only="cpu",
)

# %% [markdown]
# On the CPU it loses. As for softmax, look at the order that comes out, here beside that of max-pooling in 3-D:

# %%
volumes = both_formats_3d(torch.Generator().manual_seed(0), "cpu")[1]
for name, pool in {"average": F.avg_pool3d, "maximum": F.max_pool3d}.items():
    kept = pool(volumes, 2).is_contiguous(memory_format=torch.channels_last_3d)
    print(f"{name}: the result is in {'channels_last_3d' if kept else 'default order'}")

# %% [markdown]
# The average comes out in default order: the numbers change their order on the way, and that takes time.
#
# ### A cheap operation, converted there and back
#
# For one max-pooling it paid to convert there and back. ReLU reads each number once, in any order. How many times as
# fast is it with both conversions?

# %%
guess = ...

# %%
compare(
    "ReLU, with conversion there and back",
    {
        "stay in default order": F.relu,
        "convert, ReLU, convert back": lambda batch: F.relu(
            batch.to(memory_format=torch.channels_last)
        ).contiguous(),
    },
    inputs=(8, 64, 28, 28),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** There was nothing to gain, and two conversions to pay. They cost more than predicted, because the prices do
# not know the order of bytes: a conversion reads or writes with jumps.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** measure the whole network, print strides to name the cause, convert once, verify both.
#
# | question | answer |
# |---|---|
# | What is the memory format? | the order of strides; shape, indices and values stay |
# | Strides of channels_last? | stride 1 for *C*, then *W*, *H*, *N* |
# | How do I convert? | `x.to(memory_format=torch.channels_last)`, `module.to(memory_format=torch.channels_last)` |
# | Which calls change the format unasked? | `contiguous()`, `new_zeros`, `stack`, many that meet a default tensor, and some others: print the strides |
# | `view` or `reshape`? | `view` raises where `reshape` copies; neither converts; `permute` moves dimensions |
# | What gains on a CPU? | max-pooling, and (Further) bilinear upsampling, depthwise convolution; with many channels, and a result in channels_last |
# | What gains little? | plain convolution, by processor: arithmetic is most of its time; 1 × 1 gains nothing, or loses (Further) |
# | What loses on a CPU? | pooling of 3 channels, and (Further) evaluation batch norm, 3-D average pooling, `flatten`; softmax over channels gains nothing unless you permute by hand |
# | Weights, input or both? | both; one alone is as good if it reaches the slow layers |
# | One channel or one pixel? | both formats at once; convert with `to`, not with `contiguous` |
#
# "Gains" and "loses" are said of the CPU, on one thread. A GPU has other code for each of these operations: the tables
# above say what an H200 does, for which many of these sizes are hardly more than a launch. Chapter 07 adds half
# precision. In the table below, the rule of a *wrong* claim only names when one would think of it; it is no advice.

# %%
verdicts("E1", "E2", "E4", "E5", "E6", "E8")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/06_memory_format/06_memory_format.ipynb). Five
# functions, given slow or hungry; make them right and fast.
