# %% [markdown]
# # Exercises 06 · Memory format
#
# Five functions. Each is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden tests
# run when your notebook is graded: other shapes, other orders in memory, other random numbers.
#
# `check` gives your function the same tensors several times: as the input function makes them, with gaps between
# the numbers, and (where there are four dimensions) in channels_last order. The answer must be right for all of them.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/06_memory_format.ipynb). 28 points, about 65 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, race

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


def photographs(generator, device):
    height, width = torch.randint(400, 500, (2,), generator=generator).tolist()
    return (2, 3, height, width), "channels_last"


def three_sizes(generator, device):
    return (3, 32, 32), "channels_last"


# %% [markdown]
# <details><summary>Hint 1</summary>First write down the dimensions in the order in which memory has them, from
# the outermost to the innermost. For channels_last that is <i>N, H, W, C</i>: positions 0, 2, 3, 1 of the
# shape.</details>
# <details><summary>Hint 2</summary>Now walk through that list from its end. The innermost dimension has
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
check(strides, like=strides_slow, on=[four_sizes, default_order], at_most={"operations": 0}, points=1)


# %% id="strides_hidden" role="test"
# Hidden test: other numbers of dimensions, sizes of 1. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_size(generator, device):
    return (7,), "contiguous_format"


def three_dimensions(generator, device):
    return tuple(torch.randint(2, 9, (3,), generator=generator).tolist()), "contiguous_format"


def five_dimensions(generator, device):
    return tuple(torch.randint(2, 9, (5,), generator=generator).tolist()), "channels_last_3d"


def five_in_default_order(generator, device):
    return tuple(torch.randint(2, 9, (5,), generator=generator).tolist()), "contiguous_format"


def one_row(generator, device):
    return (4, 3, 1, 6), "channels_last"


def one_channel(generator, device):
    return (4, 1, 5, 6), "channels_last"


def one_pixel(generator, device):
    return (4, 3, 1, 1), "channels_last"


check(
    strides,
    like=strides_slow,
    on=[
        one_size,
        three_dimensions,
        five_dimensions,
        five_in_default_order,
        one_row,
        one_channel,
        one_pixel,
    ],
    at_most={"operations": 0},
    points=2,
)
### END HIDDEN TESTS

# %% id="strides_misfit" role="test"
check(strides, like=strides_slow, on=three_sizes, raises=(ValueError, RuntimeError), points=1)

# %% id="strides_race" role="test"
race(strides, against=strides_slow, on=photographs, at_least={"cpu": 8}, points=1)

# %% [markdown]
# ## 2. Cut pictures into patches
#
# *Medium, 15 minutes.* A vision transformer reads a picture as a row of square patches. Write
# `patches(images, size)`.
#
# - `images`: tensor of shape `(N, C, H, W)`, of any type, in any order in memory, on any device. `size`: the
#   number of rows, and of columns, of a patch. `H` and `W` are multiples of `size`.
# - returns: tensor of shape `(N, H // size * W // size, size * size * C)`. Patches come row by row, from the top
#   left to the bottom right. Within a patch the pixels come row by row, and each pixel brings its *C* numbers:
#   red, green, blue, next pixel.
# - If `H` or `W` is not a multiple of `size`, raise `ValueError` or `RuntimeError`.
# - One copy is needed. More are not allowed.


# %% id="patches_given" role="given"
def patches_slow(images, size):
    pictures, _, height, width = images.shape
    if height % size or width % size:
        raise ValueError(f"{height} × {width} cannot be cut into patches of {size} × {size}")
    result = []
    for top in range(0, height, size):
        for left in range(0, width, size):
            patch = images[:, :, top : top + size, left : left + size]
            result.append(patch.permute(0, 2, 3, 1).reshape(pictures, -1))
    return torch.stack(result, dim=1)


def small_pictures(generator, device):
    return torch.rand(2, 3, 8, 12, generator=generator).to(device), 4


def camera_pictures(generator, device):
    images = torch.rand(4, 3, 112, 112, generator=generator)
    return images.to(device, memory_format=torch.channels_last), 8


def uneven_pictures(generator, device):
    return torch.rand(2, 3, 8, 10, generator=generator).to(device), 4


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter cuts a matrix into tiles: cut both dimensions in two, swap,
# join. Here <i>N</i> stays in front and <i>C</i> goes to the end.</details>
# <details><summary>Hint 2</summary>Start with <i>N, H, W, C</i>. Cutting gives six dimensions: picture, patch row,
# row in the patch, patch column, column in the patch, channel. Which two must change places?</details>


# %% id="patches" role="answer"
def patches(images, size):
    ### BEGIN SOLUTION
    pictures, channels, height, width = images.shape
    if height % size or width % size:
        raise ValueError(f"{height} × {width} cannot be cut into patches of {size} × {size}")
    pixels = images.permute(0, 2, 3, 1)
    pieces = pixels.unflatten(1, (height // size, size)).unflatten(3, (width // size, size))
    return pieces.transpose(2, 3).reshape(pictures, -1, size * size * channels)
    ### END SOLUTION


# %% id="patches_check" role="test"
check(patches, like=patches_slow, on=small_pictures, at_most={"copies": 1}, points=1)


# %% id="patches_hidden" role="test"
# Hidden test: other sizes and types, one channel, patches of one pixel. 2 points, when graded.
### BEGIN HIDDEN TESTS
def tall_pictures(generator, device):
    return torch.randn(3, 5, 12, 6, generator=generator).to(device), 3


def grey_bytes(generator, device):
    return torch.randint(256, (2, 1, 8, 4), generator=generator, dtype=torch.uint8).to(device), 2


def single_pixels(generator, device):
    return torch.rand(2, 3, 4, 5, generator=generator).to(device), 1


def whole_picture(generator, device):
    return torch.rand(1, 4, 6, 6, generator=generator).to(device), 6


check(
    patches,
    like=patches_slow,
    on=[tall_pictures, grey_bytes, single_pixels, whole_picture],
    at_most={"copies": 1},
    points=2,
)
### END HIDDEN TESTS

# %% id="patches_uneven" role="test"
check(patches, like=patches_slow, on=uneven_pictures, raises=(ValueError, RuntimeError), points=1)

# %% id="patches_race" role="test"
race(patches, against=patches_slow, on=camera_pictures, at_least={"cpu": 5, "cuda": 5}, points=2)

# %% [markdown]
# ## 3. From bytes to a normalised batch
#
# *Medium, 15 minutes.* A decoder gives bytes in the order *H, W, C*; a network wants normalised floats. Write
# `normalise(pictures, mean, std)`.
#
# - `pictures`: `uint8` tensor of shape `(N, H, W, C)`, on any device and **in any order in memory**.
# - `mean`, `std`: `float32` tensors of shape `(C,)` on the same device. `C` is 2 or more, and so are `H` and `W`.
# - returns: a tuple of two things: the batch, and `batch.stride()`. The batch is `float32` of shape `(N, C, H, W)`
#   in channels_last order, with `(pictures / 255 - mean) / std` for each channel. `pictures`, `mean` and `std`
#   must stay as they are.
# - There may be only one float batch: the test counts the bytes that are allocated, and allows 1.3 times those
#   of the result.


# %% id="normalise_given" role="given"
def normalise_slow(pictures, mean, std):
    batch = []
    for picture in pictures:
        channels = []
        for channel in range(picture.shape[2]):
            values = picture[:, :, channel].to(mean.dtype) / 255
            channels.append((values - mean[channel]) / std[channel])
        batch.append(torch.stack(channels))
    batch = torch.stack(batch).to(memory_format=torch.channels_last)
    return batch, batch.stride()


def thumbnails(generator, device):
    pictures = torch.randint(256, (24, 24, 24, 3), generator=generator, dtype=torch.uint8)
    mean, std = torch.rand(3, generator=generator), torch.rand(3, generator=generator) + 0.5
    return pictures.to(device), mean.to(device), std.to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter's section on pictures that arrive in channels_last has the first
# half: rename the dimensions, then convert dtype and order in one call.</details>
# <details><summary>Hint 2</summary>Operations that end in an underscore write into the tensor that they are called
# on. For values of shape <code>(N, C, H, W)</code>, the three means need the shape
# <code>(C, 1, 1)</code>.</details>
# <details><summary>Hint 3</summary>Three passes over the batch can become two: multiply by one number for each
# channel, and add another. Work these numbers out first; they are tiny.</details>


# %% id="normalise" role="answer"
def normalise(pictures, mean, std):
    ### BEGIN SOLUTION
    batch = pictures.permute(0, 3, 1, 2).to(mean.dtype, memory_format=torch.channels_last)
    scale, shift = 1 / (255 * std), mean / std
    batch.mul_(scale[:, None, None]).sub_(shift[:, None, None])
    return batch, batch.stride()
    ### END SOLUTION


# %% id="normalise_check" role="test"
check(normalise, like=normalise_slow, on=thumbnails, points=1)


# %% id="normalise_bytes" role="test"
check(
    normalise,
    like=normalise_slow,
    on=thumbnails,
    at_most={"bytes": int(1.3 * 4 * 24 * 24 * 24 * 3)},
    points=1,
)


# %% id="normalise_hidden" role="test"
# Hidden test: other sizes, other numbers of channels, a single picture. 2 points, when graded.
### BEGIN HIDDEN TESTS
def wide_pictures(generator, device):
    pictures = torch.randint(256, (3, 5, 17, 3), generator=generator, dtype=torch.uint8)
    mean, std = torch.rand(3, generator=generator), torch.rand(3, generator=generator) + 0.1
    return pictures.to(device), mean.to(device), std.to(device)


def four_channels(generator, device):
    pictures = torch.randint(256, (1, 6, 4, 4), generator=generator, dtype=torch.uint8)
    mean, std = torch.randn(4, generator=generator), torch.rand(4, generator=generator) + 0.1
    return pictures.to(device), mean.to(device), std.to(device)


def from_planes(generator, device):
    pictures = torch.randint(256, (5, 2, 7, 9), generator=generator, dtype=torch.uint8).permute(0, 2, 3, 1)
    mean, std = torch.rand(2, generator=generator), torch.rand(2, generator=generator) + 0.1
    return pictures.to(device), mean.to(device), std.to(device)


check(normalise, like=normalise_slow, on=[wide_pictures, four_channels, from_planes], points=2)
### END HIDDEN TESTS

# %% id="normalise_race" role="test"
race(normalise, against=normalise_slow, on=thumbnails, at_least={"cpu": 3, "cuda": 6}, points=2)

# %% [markdown]
# ## 4. Find where the format is lost
#
# *Medium, 10 minutes.* Somebody read about channels_last, and converted at the start and at the end of the given
# function. It did not become faster. Write `enlarge(images, channels)`, which computes the same and keeps
# channels_last where it counts.
#
# - `images`: `float32` tensor of shape `(N, C, H, W)`, in any order in memory. `channels`: `int64` tensor of shape
#   `(K,)`, with `K` of 2 or more; channels may come twice.
# - returns: a tuple of two things: the result of shape `(N, K, 2 * H, 2 * W)` in channels_last order, and its
#   `stride()`. The result: pick the channels, take the maximum over 3 × 3 neighbours, set what is 0.9 or below to 0,
#   double the size (bilinear).
# - `images` must stay as they are.


# %% id="enlarge_given" role="given"
def enlarge_slow(images, channels):
    images = images.to(memory_format=torch.channels_last)
    picked = images[:, channels]
    peaks = F.max_pool2d(picked, 3, stride=1, padding=1)
    kept = peaks.masked_fill(peaks <= 0.9, 0)
    large = F.interpolate(kept, scale_factor=2, mode="bilinear")
    large = large.to(memory_format=torch.channels_last)
    return large, large.stride()


def feature_maps(generator, device):
    images = torch.rand(2, 64, 40, 40, generator=generator)
    channels = torch.randint(64, (32,), generator=generator)
    return images.to(device, memory_format=torch.channels_last), channels.to(device)


def small_maps(generator, device):
    images = torch.rand(2, 6, 10, 8, generator=generator)
    return images.to(device), torch.randint(6, (4,), generator=generator).to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>Print <code>stride()</code> after each line of the given version. More than one
# line loses the format.</details>
# <details><summary>Hint 2</summary>For each loser there are two ways: another operation with the same meaning that
# keeps the format (the chapter's list has one of them), or a conversion right behind it.</details>
# <details><summary>Hint 3</summary>The channels are the last dimension after a <code>permute</code>. Picking from
# the last dimension of a contiguous tensor gives a contiguous tensor.</details>


# %% id="enlarge" role="answer"
def enlarge(images, channels):
    ### BEGIN SOLUTION
    pixels = images.permute(0, 2, 3, 1).contiguous()
    picked = pixels[..., channels].permute(0, 3, 1, 2)
    peaks = F.max_pool2d(picked, 3, stride=1, padding=1)
    large = F.interpolate(F.threshold(peaks, 0.9, 0), scale_factor=2, mode="bilinear")
    return large, large.stride()
    ### END SOLUTION


# %% id="enlarge_check" role="test"
check(enlarge, like=enlarge_slow, on=[feature_maps, small_maps], points=1)


# %% id="enlarge_hidden" role="test"
# Hidden test: other sizes, a single picture, negative numbers. 2 points, when graded.
### BEGIN HIDDEN TESTS
def odd_sizes(generator, device):
    images = torch.rand(3, 5, 7, 9, generator=generator)
    return images.to(device), torch.randint(5, (3,), generator=generator).to(device)


def one_picture(generator, device):
    images = torch.randn(1, 4, 6, 5, generator=generator)
    return images.to(device), torch.tensor([3, 3, 0, 1, 2, 3], device=device)


check(enlarge, like=enlarge_slow, on=[odd_sizes, one_picture], points=2)
### END HIDDEN TESTS

# %% id="enlarge_race" role="test"
race(enlarge, against=enlarge_slow, on=feature_maps, at_least={"cpu": 2}, points=2)

# %% [markdown]
# ## 5. Walk along the right dimension
#
# *Medium, 15 minutes.* Each row of a table holds one signal, each column one moment. Smooth all signals at once:
# each value moves a little from the smoothed value before it towards the new one. Write `smooth(signals, amount)`.
#
# - `signals`: `float32` tensor of shape `(signals, moments)`, with one moment or more. `amount`: a number from 0
#   to 1.
# - returns: tensor of the same shape, dtype and device. Column 0 is `amount * signals[:, 0]`. Column *t* is
#   `s + amount * (signals[:, t] - s)`, where *s* is column *t* - 1 of the result. Its strides do not matter.
# - `signals` must stay as they are. An `amount` outside 0 to 1 must raise `ValueError`.


# %% id="smooth_given" role="given"
def smooth_slow(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError(f"amount must be from 0 to 1, not {amount}")
    result = torch.empty_like(signals)
    state = torch.zeros_like(signals[:, 0])
    for moment in range(signals.shape[1]):
        state = state + amount * (signals[:, moment] - state)
        result[:, moment] = state
    return result


def many_signals(generator, device):
    return torch.rand(4096, 128, generator=generator).to(device), 0.1


def too_much(generator, device):
    return torch.rand(3, 4, generator=generator).to(device), 1.5


# %% [markdown]
# <details><summary>Hint 1</summary>How far apart in memory are two numbers of one column? The chapter's section on
# walks says what to do if a loop must go along the wrong dimension. It applies to reading and to
# writing.</details>
# <details><summary>Hint 2</summary>Work on the transposed table in a loop over its rows. Transpose the result back
# with <code>.t()</code>: a view, without a copy.</details>
# <details><summary>Hint 3</summary>The three operations of a step are one function of torch:
# <code>torch.lerp</code>. It takes <code>out=</code>.</details>


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
check(smooth, like=smooth_slow, on=many_signals, points=1)

# %% id="smooth_range" role="test"
check(smooth, like=smooth_slow, on=too_much, raises=ValueError, points=1)


# %% id="smooth_hidden" role="test"
# Hidden test: a single moment, a single signal, a transposed table, amounts of 0 and 1. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_moment(generator, device):
    return torch.randn(5, 1, generator=generator).to(device), 0.3


def one_signal(generator, device):
    return torch.randn(1, 40, generator=generator).to(device), 0.7


def transposed_table(generator, device):
    return torch.randn(9, 6, generator=generator).to(device).t(), 0.5


def nothing_new(generator, device):
    return torch.randn(4, 7, generator=generator).to(device), 0


def only_new(generator, device):
    return torch.randn(4, 7, generator=generator).to(device), 1


check(
    smooth,
    like=smooth_slow,
    on=[one_moment, one_signal, transposed_table, nothing_new, only_new],
    points=2,
)
### END HIDDEN TESTS

# %% id="smooth_race" role="test"
race(smooth, against=smooth_slow, on=many_signals, at_least={"cpu": 1.8}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
