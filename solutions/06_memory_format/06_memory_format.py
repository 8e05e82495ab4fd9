# %% [markdown]
# # Exercises 06 · Memory format
#
# Five functions. Each is given in a version that is right, but slow or hungry. Write a better one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. Where it says so, it also counts:
# operations, copies, or the most new memory that is alive at once. `race` times your answer against the given
# version, on this machine, now. You get points for a right answer, and more for a fast or a sparing one. Hidden
# tests run when your notebook is graded: other shapes, other orders in memory, other random numbers.
#
# `check` gives your function the same tensors several times: as the input function makes them, with gaps between
# the numbers, and (where there are four dimensions) in channels_last order. The answer must be right, and within
# the limits, for all of them. Rounding is allowed: in `float32`, errors of 0.01 % of a typical value.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/06_memory_format.ipynb). 37 points, about 95 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. Predict the strides
#
# *Easy, 10 minutes.* Write `strides(shape, memory_format)`, which computes the strides without making a tensor.
#
# - `shape`: tuple of one to five sizes, all 1 or larger.
# - `memory_format`: `"contiguous_format"` (any number of dimensions), `"channels_last"` (four dimensions only) or
#   `"channels_last_3d"` (five dimensions only: *N, C, D, H, W*, with *C* innermost in memory).
# - returns: tuple of whole numbers, the strides that a new tensor of this shape and format has.
# - A format that does not fit the number of dimensions must raise `ValueError` or `RuntimeError`.
# - No torch operation is allowed, not even on the `meta` device. The test counts them.


# %% id="strides_given" role="given"
def strides_slow(shape, memory_format):
    return torch.zeros(shape).to(memory_format=getattr(torch, memory_format)).stride()


def four_sizes(generator, device):
    sizes = torch.randint(2, 20, (4,), generator=generator).tolist()
    return tuple(sizes), "channels_last"


def default_order(generator, device):
    sizes = torch.randint(2, 20, (4,), generator=generator).tolist()
    return tuple(sizes), "contiguous_format"


def five_sizes(generator, device):
    return tuple(torch.randint(2, 9, (5,), generator=generator).tolist()), "channels_last_3d"


def one_row(generator, device):
    return (4, 3, 1, 6), "channels_last"


def one_size(generator, device):
    return (7,), "contiguous_format"


def photographs(generator, device):
    height, width = torch.randint(600, 700, (2,), generator=generator).tolist()
    return (2, 3, height, width), "channels_last"


def three_sizes(generator, device):
    return (3, 32, 32), "channels_last"


# %% [markdown]
# <details><summary>Hint 1</summary>First write down the dimensions in the order in which memory has them, from
# the outermost to the innermost. Section 1 says what to do with this list.</details>
# <details><summary>Hint 2</summary>For channels_last that is <i>N, H, W, C</i>: positions 0, 2, 3, 1 of the
# shape. Walk through that list from its end. The innermost dimension has
# stride 1. Multiply by each size that you pass.</details>


# %% id="strides" role="answer"
def strides(shape, memory_format):
    ### BEGIN SOLUTION
    dimensions = len(shape)
    if dimensions != {"channels_last": 4, "channels_last_3d": 5}.get(memory_format, dimensions):
        raise ValueError(f"{memory_format} does not fit {dimensions} dimensions")
    outer_to_inner = list(range(dimensions))
    if memory_format != "contiguous_format":
        outer_to_inner.append(outer_to_inner.pop(1))
    result, step = [0] * dimensions, 1
    for dimension in reversed(outer_to_inner):
        result[dimension] = step
        step *= shape[dimension]
    return tuple(result)
    ### END SOLUTION


# %% id="strides_check" role="test"
check(
    strides,
    like=strides_slow,
    on=[four_sizes, default_order, five_sizes, one_row, one_size],
    at_most={"operations": 0},
    points=1,
)


# %% id="strides_hidden" role="test"
# Hidden test: other numbers of dimensions, more sizes of 1. 2 points, when graded.
### BEGIN HIDDEN TESTS
def three_dimensions(generator, device):
    return tuple(torch.randint(2, 9, (3,), generator=generator).tolist()), "contiguous_format"


def five_in_default_order(generator, device):
    return tuple(torch.randint(2, 9, (5,), generator=generator).tolist()), "contiguous_format"


def one_channel(generator, device):
    return (4, 1, 5, 6), "channels_last"


def one_pixel(generator, device):
    return (4, 3, 1, 1), "channels_last"


def one_slice(generator, device):
    return (2, 3, 1, 5, 4), "channels_last_3d"


check(
    strides,
    like=strides_slow,
    on=[three_dimensions, five_in_default_order, one_channel, one_pixel, one_slice],
    at_most={"operations": 0},
    points=2,
)
### END HIDDEN TESTS

# %% id="strides_misfit" role="test"
check(strides, like=strides_slow, on=three_sizes, raises=(ValueError, RuntimeError), points=1)

# %% id="strides_race" role="test"
race(strides, against=strides_slow, on=photographs, at_least={"cpu": 8}, points=1)

# %% [markdown]
# ## 2. Smooth many signals
#
# *Medium, 15 minutes.* Each row of a table holds one signal, each column one moment. Smooth all signals at once:
# each value moves a little from the smoothed value before it towards the new one. Write `smooth(signals, amount)`.
#
# - `signals`: `float32` tensor of shape `(signals, moments)`, in any order in memory, with one moment or more.
#   `amount`: a number from 0 to 1.
# - returns: tensor of the same shape, dtype and device. Column 0 is `amount * signals[:, 0]`. Column *t* is
#   `s + amount * (signals[:, t] - s)`, where *s* is column *t* - 1 of the result. Its strides do not matter.
# - `signals` must stay as they are. An `amount` outside 0 to 1 must raise `ValueError`.
# - Memory counts: all points where the new memory that is alive at once is at most 1.4 times that of the result.


# %% id="smooth_given" role="given"
def smooth_slow(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError(f"amount must be from 0 to 1, not {amount}")
    state = torch.zeros_like(signals[:, 0])
    columns = []
    for column in signals.unbind(1):
        state = state + amount * (column - state)
        columns.append(state)
    return torch.stack(columns, dim=1)


def some_signals(generator, device):
    return torch.rand(20_000, 60, generator=generator).to(device), 0.3


def many_signals(generator, device):
    return torch.rand(4096, 128, generator=generator).to(device), 0.1


def one_moment(generator, device):
    return torch.randn(5, 1, generator=generator).to(device), 0.3


def nothing_new(generator, device):
    return torch.randn(4, 7, generator=generator).to(device), 0


def too_much(generator, device):
    return torch.rand(3, 4, generator=generator).to(device), 1.5


# %% [markdown]
# <details><summary>Hint 1</summary>How far apart in memory are two numbers of one column? The chapter's section on
# walks says what to do if a loop must go along the wrong dimension. It applies to reading and to
# writing.</details>
# <details><summary>Hint 2</summary>Count the tables that are alive at the end of your loop. Once a moment was
# read, nobody needs its old values again.</details>
# <details><summary>Hint 3</summary>One copy in the other order is both what you read and what you write. (A table
# that comes transposed is in that order already, and must be copied all the same.) Give it
# back as a view in the right shape.</details>
# <details><summary>Hint 4</summary>The three operations of a step are one function of torch:
# <code>torch.lerp</code>. It takes <code>out=</code>, also when that is one of its inputs.</details>


# %% id="smooth" role="answer"
def smooth(signals, amount):
    ### BEGIN SOLUTION
    if not 0 <= amount <= 1:
        raise ValueError(f"amount must be from 0 to 1, not {amount}")
    moments = signals.t().clone(memory_format=torch.contiguous_format)
    rows = moments.unbind()
    rows[0].mul_(amount)
    for moment in range(1, len(rows)):
        torch.lerp(rows[moment - 1], rows[moment], amount, out=rows[moment])
    return moments.t()
    ### END SOLUTION


# %% id="smooth_check" role="test"
check(smooth, like=smooth_slow, on=[some_signals, one_moment, nothing_new], points=1)

# %% id="smooth_range" role="test"
check(smooth, like=smooth_slow, on=too_much, raises=ValueError, points=1)

# %% id="smooth_memory" role="test"
check(smooth, like=smooth_slow, on=some_signals, peak=int(1.4 * 20_000 * 60 * 4), points=2)


# %% id="smooth_hidden" role="test"
# Hidden test: a single signal, a transposed table, an amount of 1. 1 point, when graded.
### BEGIN HIDDEN TESTS
def one_signal(generator, device):
    return torch.randn(1, 40, generator=generator).to(device), 0.7


def transposed_table(generator, device):
    return torch.randn(9, 6, generator=generator).to(device).t(), 0.5


def only_new(generator, device):
    return torch.randn(4, 7, generator=generator).to(device), 1


check(smooth, like=smooth_slow, on=[one_signal, transposed_table, only_new], points=1)
### END HIDDEN TESTS

# %% id="smooth_race" role="test"
race(smooth, against=smooth_slow, on=many_signals, at_least={"cpu": 2}, points=2)

# %% [markdown]
# ## 3. Collate pictures of many sizes
#
# *Medium, 15 minutes.* A loader hands over decoded pictures of different sizes; a network wants one normalised
# batch in channels_last. Write `collate(pictures, mean, std)`.
#
# - `pictures`: list of one or more `uint8` tensors of shape `(height, width, C)`, each with its own height and
#   width, on one device and **in any order in memory**.
# - `mean`, `std`: `float32` tensors of shape `(C,)` on the same device; `C` is 1 or more.
# - returns: a tuple of two things: the batch, and `batch.stride()`. The batch is `float32` of shape
#   `(N, C, H, W)`, where `H` and `W` are the largest height and width. Picture *i* stands in the top left corner
#   of `batch[i]` with the values `(picture / 255 - mean) / std`; the rest of `batch[i]` is 0.
# - The strides are those of channels_last, as `torch.empty(…, memory_format=torch.channels_last)` has them; for
#   one channel, too.
# - A picture whose number of channels is not that of `mean` must raise `ValueError`.
# - `pictures`, `mean` and `std` must stay as they are.
# - Memory counts: all points where the new memory that is alive at once is at most 1.4 times that of the batch.


# %% id="collate_given" role="given"
def collate_slow(pictures, mean, std):
    height = max(picture.shape[0] for picture in pictures)
    width = max(picture.shape[1] for picture in pictures)
    padded = []
    for picture in pictures:
        if picture.shape[2] != len(mean):
            raise ValueError(f"{picture.shape[2]} channels, but {len(mean)} means")
        values = (picture.permute(2, 0, 1) / 255 - mean[:, None, None]) / std[:, None, None]
        padded.append(F.pad(values, (0, width - picture.shape[1], 0, height - picture.shape[0])))
    batch = torch.stack(padded).to(memory_format=torch.channels_last)
    return batch, batch.stride()


def decoded(generator, device, number, channels, low, high):
    """Pictures of random sizes; the first has the largest height, the last the largest width."""
    sizes = torch.randint(low, high + 1, (number, 2), generator=generator).tolist()
    sizes[0][0] = sizes[-1][1] = high
    pictures = [
        torch.randint(256, (*size, channels), generator=generator, dtype=torch.uint8).to(device)
        for size in sizes
    ]
    mean, std = torch.rand(channels, generator=generator), torch.rand(channels, generator=generator) + 0.2
    return pictures, mean.to(device), std.to(device)


def thumbnails(generator, device):
    return decoded(generator, device, 8, 3, 30, 40)


def grey_pictures(generator, device):
    return decoded(generator, device, 3, 1, 5, 9)


def photographs_of_many_sizes(generator, device):
    return decoded(generator, device, 16, 3, 96, 128)


def large_photographs(generator, device):
    return decoded(generator, device, 16, 3, 192, 256)


def single_rows(generator, device):
    pictures, mean, std = decoded(generator, device, 3, 3, 4, 8)
    return [picture[:1] for picture in pictures], mean, std


def colour_and_grey(generator, device):
    colour, mean, std = decoded(generator, device, 2, 3, 5, 9)
    grey, _, _ = decoded(generator, device, 1, 1, 5, 9)
    return [*colour, *grey], mean, std


# %% [markdown]
# <details><summary>Hint 1</summary>Count the batches of floats that the given version holds: the list, what
# <code>stack</code> makes of it, what <code>to</code> makes of that. Only the last one is asked for.</details>
# <details><summary>Hint 2</summary>Make the result first, in the order that it should have, and write each picture
# to its place. A part of a tensor is a view.</details>
# <details><summary>Hint 3</summary>Operations that end in an underscore, and <code>out=</code>, write into the
# tensor that they are given. And multiplying by one number for each channel and adding another is enough: work
# these numbers out first; they are tiny.</details>
# <details><summary>Hint 4</summary>Still not fast enough? The chapter says what three numbers side by side are for
# a processor. In memory a row of a picture is one long line: <code>width * C</code> numbers. What would the
# factors of a whole line look like?</details>


# %% id="collate" role="answer"
def collate(pictures, mean, std):
    ### BEGIN SOLUTION
    channels = len(mean)
    if any(picture.shape[2] != channels for picture in pictures):
        raise ValueError(f"each picture needs {channels} channels, as many as there are means")
    height = max(picture.shape[0] for picture in pictures)
    width = max(picture.shape[1] for picture in pictures)
    lines = torch.zeros(len(pictures), height, width * channels, device=mean.device)
    scale, shift = (1 / (255 * std)).repeat(width), (mean / std).repeat(width)
    for line, picture in zip(lines, pictures, strict=True):
        used = picture.shape[1] * channels
        place = line[: picture.shape[0], :used]
        torch.mul(picture.flatten(1), scale[:used], out=place).sub_(shift[:used])
    batch = lines.view(len(pictures), height, width, channels).permute(0, 3, 1, 2)
    return batch, batch.stride()
    ### END SOLUTION


# %% id="collate_check" role="test"
check(collate, like=collate_slow, on=[thumbnails, grey_pictures, single_rows], points=1)

# %% id="collate_channels" role="test"
check(collate, like=collate_slow, on=colour_and_grey, raises=ValueError, points=1)

# %% id="collate_memory" role="test"
check(collate, like=collate_slow, on=large_photographs, peak=int(1.4 * 16 * 3 * 256 * 256 * 4), points=2)


# %% id="collate_hidden" role="test"
# Hidden test: one picture, four channels, pictures that lie channel by channel. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_picture(generator, device):
    return decoded(generator, device, 1, 3, 6, 11)


def four_channels(generator, device):
    return decoded(generator, device, 4, 4, 2, 7)


def from_planes(generator, device):
    pictures, mean, std = decoded(generator, device, 3, 2, 5, 8)
    return [picture.permute(2, 0, 1).contiguous().permute(1, 2, 0) for picture in pictures], mean, std


check(collate, like=collate_slow, on=[one_picture, four_channels, from_planes], points=2)
### END HIDDEN TESTS

# %% id="collate_race" role="test"
race(
    collate,
    against=collate_slow,
    on=photographs_of_many_sizes,
    at_least={"cpu": 2.2},
    points=2,
)

# %% [markdown]
# ## 4. Find where the format is lost
#
# *Medium, 20 minutes.* Somebody read about channels_last, and converted at the start and at the end of the given
# function. It did not become faster. Find out why, and write `enlarge(images, channels)`, which computes the same.
# The format is not all that makes it slow: measure.
#
# - `images`: `float32` tensor of shape `(N, C, H, W)`, in any order in memory, `H` and `W` of 2 or more.
#   `channels`: `int64` tensor of shape `(K,)` on the same device, with `K` of 2 or more; channels may come twice.
# - returns: a tuple of two things: the result of shape `(N, K, 2 * H, 2 * W)` in channels_last order, and its
#   `stride()`. The result: pick the channels; where a number is less than the maximum of the 21 × 21 numbers with it
#   in the middle (fewer at the border), put -9; take the softmax over the channels; double the size (bilinear).
# - `images` must stay as they are.
# - One call may make **at most one copy**: the test counts the operations that do nothing but copy (`clone`,
#   `contiguous`, `to`, `copy_` and their like, where they copy). Picking channels is none of them. Nor may it hand
#   values to NumPy or Python (**no syncs**): what these copy, the test cannot count.


# %% id="enlarge_given" role="given"
def enlarge_slow(images, channels):
    images = images.to(memory_format=torch.channels_last)
    picked = images[:, channels]
    peaks = F.max_pool2d(picked, 21, stride=1, padding=10)
    kept = picked.masked_fill(picked < peaks, -9)
    shares = kept.softmax(1)
    large = F.interpolate(shares, scale_factor=2, mode="bilinear")
    large = large.to(memory_format=torch.channels_last)
    return large, large.stride()


def feature_maps(generator, device):
    images = torch.rand(1, 64, 32, 32, generator=generator)
    channels = torch.randint(64, (48,), generator=generator)
    return images.to(device, memory_format=torch.channels_last), channels.to(device)


def small_maps(generator, device):
    images = torch.rand(2, 6, 26, 24, generator=generator)
    return images.to(device), torch.randint(6, (4,), generator=generator).to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>Print <code>stride()</code> after each line of the given version. More than one
# line loses the format.</details>
# <details><summary>Hint 2</summary>A loser can be mended in two ways: by a conversion right behind it, or by
# another operation with the same meaning that keeps the format. You have one copy; so all but one need the
# second way. The chapter shows it for two of them (sections 5 and 8); the third can have the copy.</details>
# <details><summary>Hint 3</summary>The first line is a copy, too, if <code>images</code> come in another order.
# Is it needed if you convert behind the next line?</details>
# <details><summary>Hint 4</summary>Or spend no copy at all: after a <code>permute</code> the channels are the last
# dimension, and <code>index_select</code> gives its result in the order of the dimensions that it is
# given.</details>
# <details><summary>Hint 5</summary>The format is kept, and it is still not fast enough? Give the steps one by one
# to <code>compare</code>: one of them takes most of the time. For <code>costs</code> it is one operation, so count
# yourself how many numbers it looks at for each place. Two places side by side look at nearly the same ones. What
# if the largest number of each line of 21 were known already?</details>


# %% id="enlarge" role="answer"
def enlarge(images, channels):
    ### BEGIN SOLUTION
    picked = images.permute(0, 2, 3, 1).index_select(3, channels).permute(0, 3, 1, 2)
    # The largest number of a square is the largest of the largest of its rows: 21 + 21 numbers, not 21 * 21.
    rows = F.max_pool2d(picked, (1, 21), stride=1, padding=(0, 10))
    peaks = F.max_pool2d(rows, (21, 1), stride=1, padding=(10, 0))
    kept = torch.where(picked < peaks, -9, picked)
    shares = kept.permute(0, 2, 3, 1).softmax(-1).permute(0, 3, 1, 2)
    large = F.interpolate(shares, scale_factor=2, mode="bilinear")
    return large, large.stride()
    ### END SOLUTION


# %% id="enlarge_check" role="test"
check(enlarge, like=enlarge_slow, on=[feature_maps, small_maps], points=1)

# %% id="enlarge_copies" role="test"
check(enlarge, like=enlarge_slow, on=small_maps, at_most={"copies": 1, "syncs": 0}, points=2)


# %% id="enlarge_hidden" role="test"
# Hidden test: other sizes, a single picture, negative numbers; at most one copy. 2 points, when graded.
### BEGIN HIDDEN TESTS
def odd_sizes(generator, device):
    images = torch.rand(3, 5, 23, 27, generator=generator)
    return images.to(device), torch.randint(5, (3,), generator=generator).to(device)


def one_map(generator, device):
    images = torch.randn(1, 4, 6, 5, generator=generator)
    return images.to(device), torch.tensor([3, 3, 0, 1, 2, 3], device=device)


check(enlarge, like=enlarge_slow, on=[odd_sizes, one_map], at_most={"copies": 1, "syncs": 0}, points=2)
### END HIDDEN TESTS

# %% id="enlarge_race" role="test"
race(enlarge, against=enlarge_slow, on=feature_maps, at_least={"cpu": 8}, points=2)

# %% [markdown]
# ## 5. Convert a whole checkpoint
#
# *Hard, 25 minutes.* A network's weights arrive as NumPy arrays, and should become tensors in channels_last before
# the first batch comes. Much of it need not be moved at all. Write `convert(arrays)`.
#
# - `arrays`: dict from names to NumPy arrays of 0 to 5 dimensions, of any dtype that torch knows, in any order in
#   memory (without negative strides). No size is 0.
# - returns: a tuple of two dicts with the same names: the tensors, and their `stride()`.
# - Shapes, dtypes and values stay. An array of four dimensions becomes a tensor with exactly the strides that
#   `torch.empty(shape, memory_format=torch.channels_last)` has, one of five dimensions with those of
#   `torch.channels_last_3d`; also where a size is 1. All others keep the strides that `torch.from_numpy` gives.
# - Several names may stand for the same numbers (*tied weights*): arrays that start at the same address, with the
#   same dtype, shape and strides, though they may be different Python objects. They stay the same numbers in one
#   place.
# - The tensors may share memory with the arrays, which must stay as they are.
# - Memory counts: all points for at most 1.4 times the bytes of what must be moved. An array of four or five
#   dimensions must be moved unless its numbers lie in the order that is asked for, without gaps. Tied arrays must
#   be moved once.


# %% id="convert_given" role="given"
def convert_slow(arrays):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    tensors = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if tensor.ndim in formats:
            tensors[name] = tensor.to(memory_format=formats[tensor.ndim], copy=True)
        else:
            tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


def numbers(generator, *shape):
    return torch.rand(shape, generator=generator).numpy()


def network(generator, wide, tied):
    """A stem, a block of one kernel for each channel and one for each pixel, and a head used three times."""
    head = numbers(generator, tied, tied, 3, 3)
    return {
        "stem.weight": numbers(generator, 16, 3, 3, 3),
        "depthwise.weight": numbers(generator, wide, 1, 3, 3),
        "pointwise.weight": numbers(generator, wide, wide, 1, 1),
        "pointwise.bias": numbers(generator, wide),
        "large.weight": head,
        "middle.weight": head[:],
        "small.weight": head[:],
        "classes.weight": numbers(generator, 10, wide),
    }


def small_network(generator, device):
    return network(generator, 64, 16)


def half_in_order(generator, device):
    return network(generator, 1360, 320)


def wide_network(generator, device):
    return network(generator, 2400, 96)


def volumes(generator, device):
    return {
        "volume": numbers(generator, 3, 4, 2, 5, 6),
        "one slice": numbers(generator, 2, 3, 1, 4, 4),
        "one channel": numbers(generator, 2, 1, 3, 4, 5),
        "batches seen": torch.tensor(7).numpy(),
    }


def other_orders(generator, device):
    whole = numbers(generator, 4, 3, 5, 5)
    return {
        "whole": whole,
        "first half, at the same address": whole[:2],
        "channels_last already": numbers(generator, 4, 6, 6, 3).transpose(0, 3, 1, 2),
        "rows, columns, in, out": numbers(generator, 3, 3, 4, 8).transpose(3, 2, 0, 1),
        "a transposed matrix": numbers(generator, 5, 6).T,
        "bytes": torch.randint(256, (2, 3, 4, 4), generator=generator, dtype=torch.uint8).numpy(),
    }


# What must be moved of half_in_order: the stem, and the head once.
MOVED = (16 * 3 * 3 * 3 + 320 * 320 * 3 * 3) * 4

# %% [markdown]
# <details><summary>Hint 1</summary>Go through the names of <code>network</code>: which of these arrays lie in
# channels_last order already? The chapter's section on two formats at once has two kinds of them.</details>
# <details><summary>Hint 2</summary><code>contiguous</code> leaves these as they are, and their strides, too;
# <code>to</code> sets the strides, and copies. Which functions of the chapter give other strides to the same
# memory?</details>
# <details><summary>Hint 3</summary><code>reshape</code> gives a view where it can, and copies where it must. It
# keeps the numbers in index order. So first bring the dimensions into the order that memory should have. Strides
# may stay unusual where a size is 1. One long row has a single stride, and what <code>view</code> cuts from it has
# the usual ones.</details>
# <details><summary>Hint 4</summary>For tied arrays keep a dict of what is done. Its keys are what makes two arrays
# the same numbers: <code>data_ptr()</code>, dtype, shape and strides of the tensor.</details>


# %% id="convert" role="answer"
def convert(arrays):
    ### BEGIN SOLUTION
    tensors, done = {}, {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if tensor.ndim in (4, 5):
            place = tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()
            if place not in done:
                pixels = tensor.movedim(1, -1)
                # A view where the numbers lie in this order, a copy where they do not; the strides are new.
                done[place] = pixels.reshape(-1).view(pixels.shape).movedim(-1, 1)
            tensor = done[place]
        tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}
    ### END SOLUTION


# %% id="convert_check" role="test"
check(convert, like=convert_slow, on=[small_network, volumes, other_orders], points=1)

# %% id="convert_memory" role="test"
check(convert, like=convert_slow, on=half_in_order, peak=int(1.4 * MOVED), points=3)


# %% id="convert_hidden" role="test"
# Hidden test: one row, one column, one pixel, one number; dtypes; tied volumes. 2 points, when graded.
### BEGIN HIDDEN TESTS
def sizes_of_one(generator, device):
    shapes = [(4, 3, 1, 5), (4, 3, 5, 1), (1, 1, 4, 1), (1, 5, 1, 1), (1, 1, 1, 1), (1, 3, 1, 1, 1), (1,)]
    return {str(shape): numbers(generator, *shape) for shape in shapes}


def dtypes(generator, device):
    return {
        str(dtype): torch.randint(9, (2, 3, 4, 5), generator=generator).to(dtype).numpy()
        for dtype in (torch.float64, torch.float16, torch.int64, torch.bool)
    }


def tied_volumes(generator, device):
    volume = numbers(generator, 2, 3, 4, 5, 6)
    return {"one": volume, "two": volume[:], "half": volume[:1], "turned": volume.transpose(0, 1, 2, 4, 3)}


check(convert, like=convert_slow, on=[sizes_of_one, dtypes, tied_volumes], points=2)
### END HIDDEN TESTS

# %% id="convert_race" role="test"
race(convert, against=convert_slow, on=wide_network, at_least={"cpu": 2}, points=2)

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
def numbered(x):
    return x[:, 0] + torch.arange(len(x)).float()


def pixels(x):
    return x.to(torch.uint8).float().div_(255)


def turned(x):
    return x.T.contiguous().view(-1) + x.reshape(-1)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (numbered, pixels, turned)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>numbered</code> is of chapter 01, <code>pixels</code> is of chapter 04,
# <code>turned</code> is of chapter 06.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(turned, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "numbered": {"operations": 3, "bytes": 8 * n + 4 * n + 4 * n, "syncs": 0},
        "pixels": {"operations": 3, "bytes": n * d + 4 * n * d, "syncs": 0},
        "turned": {"operations": 2, "bytes": 8 * n * d, "syncs": 0},
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
