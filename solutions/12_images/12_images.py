# %% [markdown]
# # Exercises 12 · Images
#
# Five functions on batches of pictures. Each is given in a slow version that is right; one also in a fast version that
# is wrong. The last one is a tool that you may keep.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one.
# Hidden tests run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/12_images.ipynb). 38 points, about 105 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, costs, race

torch.backends.cudnn.allow_tf32 = False  # a GPU's convolutions keep all digits of float32 (chapter 05)

# %% [markdown]
# ## 1. A contact sheet
#
# *Easy, 10 minutes.* Write `contact_sheet(batch, columns, gap)`, which puts pictures on one page of bytes.
#
# - `batch`: floating-point tensor of shape `(N, C, H, W)` on any device. `columns`: a number, at least 1. `gap`:
#   a number, 0 or more.
# - returns: a `uint8` tensor on the same device, of shape
#   `(C, rows * (H + gap) + gap, columns * (W + gap) + gap)`, with as many rows as are needed.
# - A value *v* becomes the whole number closest to 255 *v*. What is below 0 becomes 0, what is above 1 becomes 255.
# - The pictures stand in rows from left to right, with `gap` zeros around and between them. Where the last
#   row is not full, or there are fewer pictures than columns, the rest is zeros.
# - An empty batch, or fewer than one column, must raise `ValueError`.


# %% id="contact_sheet_given" role="given"
def contact_sheet_slow(batch, columns, gap):
    if len(batch) == 0 or columns < 1:
        raise ValueError("contact_sheet needs a picture and a column")
    count, channels, height, width = batch.shape
    rows = -(-count // columns)
    high, wide = rows * (height + gap) + gap, columns * (width + gap) + gap
    page = torch.zeros(channels, high, wide, dtype=torch.uint8, device=batch.device)
    for i in range(count):
        top = i // columns * (height + gap) + gap
        left = i % columns * (width + gap) + gap
        pixels = (batch[i].clamp(0, 1) * 255).round()
        page[:, top : top + height, left : left + width] = pixels.to(torch.uint8)
    return page


def pictures_from(lowest, highest, shape, generator):
    """Numbers that float32 holds exactly."""
    return torch.randint(round(64 * lowest), round(64 * highest) + 1, shape, generator=generator) / 64


def tiny_pictures(generator, device):
    return pictures_from(-0.25, 1.25, (308, 3, 8, 8), generator).to(device), 25, 1


def few_pictures(generator, device):
    return pictures_from(0, 1, (3, 2, 4, 6), generator).to(device), 8, 2


def no_pictures(generator, device):
    return torch.zeros(0, 3, 8, 8, device=device), 4, 1


def no_columns(generator, device):
    return torch.zeros(2, 3, 8, 8, device=device), 0, 1


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter has a page for full rows. What could you add to the batch, so that
# its rows are full? (Writing into views of a page of zeros is another good way.)</details>
# <details><summary>Hint 2</summary><code>F.pad</code> takes pairs of numbers, the last dimension first.
# With four pairs it reaches the batch dimension, too.</details>
# <details><summary>Hint 3</summary>Think of the page as an array with the dimensions row of the page,
# column of the page, channel, row of the picture, column of the picture. In which order must they stand
# before you join them? And where are there fewest bytes to move: before or after the conversion?</details>


# %% id="contact_sheet" role="answer"
def contact_sheet(batch, columns, gap):
    ### BEGIN SOLUTION
    if len(batch) == 0 or columns < 1:
        raise ValueError("contact_sheet needs a picture and a column")
    rows = -(-len(batch) // columns)
    in_bytes = batch.clamp(0, 1).mul_(255).round_().to(torch.uint8)
    framed = F.pad(in_bytes, (gap, 0, gap, 0, 0, 0, 0, rows * columns - len(batch)))
    channels, height, width = framed.shape[1:]
    cells = framed.unflatten(0, (rows, columns)).permute(2, 0, 3, 1, 4)
    return F.pad(cells.reshape(channels, rows * height, columns * width), (0, gap, 0, gap))
    ### END SOLUTION


# %% id="contact_sheet_check" role="test"
check(contact_sheet, like=contact_sheet_slow, on=[tiny_pictures, few_pictures], points=1)

# %% id="contact_sheet_empty" role="test"
check(contact_sheet, like=contact_sheet_slow, on=[no_pictures, no_columns], raises=ValueError, points=1)


# %% id="contact_sheet_hidden" role="test"
# Hidden test: full rows, one column, fewer pictures than columns, no gap, float64. 2 points, when your notebook
# is graded.
### BEGIN HIDDEN TESTS
def full_rows(generator, device):
    return pictures_from(-1, 2, (12, 3, 5, 7), generator).to(device), 4, 2


def one_column(generator, device):
    return pictures_from(0, 1, (5, 1, 4, 3), generator).double().to(device), 1, 3


def without_gap(generator, device):
    return pictures_from(0.5, 1.5, (7, 3, 4, 4), generator).to(device), 3, 0


def one_of_many_columns(generator, device):
    return pictures_from(-0.5, 1, (1, 1, 6, 5), generator).to(device), 3, 1


check(
    contact_sheet,
    like=contact_sheet_slow,
    on=[full_rows, one_column, few_pictures, without_gap, one_of_many_columns],
    points=2,
)
### END HIDDEN TESTS

# %% id="contact_sheet_race" role="test"
race(
    contact_sheet,
    against=contact_sheet_slow,
    on=tiny_pictures,
    at_least={"cpu": 8.3, "cuda": 10},
    points=2,
)

# %% [markdown]
# ## 2. Grey and normalised
#
# *Medium, 15 minutes.* A network wants grey pictures with mean 0 and standard deviation 1. Two versions are given:
# `to_network_slow` takes one picture at a time, `to_network_large` all at once, with a lot of memory. Write
# `to_network(batch, mean, std)`, which needs little of both.
#
# - `batch`: `uint8` tensor of shape `(N, 3, H, W)` on any device, red, green and blue, *N* at least 1.
#   `mean`, `std`: two numbers, `std` above 0.
# - returns: `float32` tensor of shape `(N, 1, H, W)` on the same device. With red, green and blue from 0 to
#   1, grey is 0.299 red + 0.587 green + 0.114 blue. The result is (grey - mean) / std.
# - A `std` of 0 or below must raise `ValueError`.
# - Memory: for 64 pictures of 64 × 64, at most 1.6 MB of new memory at once (the result has 1.05 MB). The test counts
#   the tensors that come out of operations, as `costs` does, and not what a kernel uses inside.


# %% id="to_network_given" role="given"
def to_network_slow(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    results = []
    for picture in batch:
        red, green, blue = picture.float() / 255
        grey = 0.299 * red + 0.587 * green + 0.114 * blue
        results.append(((grey - mean) / std)[None])
    return torch.stack(results)


def to_network_large(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    red, green, blue = (batch.float() / 255).split(1, dim=1)
    return (0.299 * red + 0.587 * green + 0.114 * blue - mean) / std


def coloured(shape, generator, device):
    batch = torch.randint(256, shape, generator=generator, dtype=torch.uint8)
    mean, std = torch.empty(2).uniform_(0.2, 0.6, generator=generator).tolist()
    return batch.to(device), mean, std


def colour_pictures(generator, device):
    return coloured((100, 3, 24, 24), generator, device)


def large_pictures(generator, device):
    return coloured((64, 3, 64, 64), generator, device)


def std_of_zero(generator, device):
    return torch.zeros(2, 3, 4, 4, dtype=torch.uint8, device=device), 0.5, 0.0


# %% [markdown]
# <details><summary>Hint 1</summary>Write down the whole calculation for one pixel, and simplify: it is one
# weighted sum and one constant. Only numbers of Python are needed to find them.</details>
# <details><summary>Hint 2</summary>How large is <code>batch.float()</code>, compared to the result? The last cell
# of section 7 shows that no such tensor is needed.</details>
# <details><summary>Hint 3</summary>One channel times a number is a tensor with the shape of the result. What comes
# next can be done in it. <code>add_</code> takes a tensor of another type, and has an argument
# <code>alpha</code>.</details>


# %% id="to_network" role="answer"
def to_network(batch, mean, std):
    ### BEGIN SOLUTION
    if std <= 0:
        raise ValueError("std must be above 0")
    red, green, blue = batch.split(1, dim=1)
    of_red, of_green, of_blue = (part / (255 * std) for part in (0.299, 0.587, 0.114))
    grey = red * of_red
    return grey.add_(green, alpha=of_green).add_(blue, alpha=of_blue).sub_(mean / std)
    ### END SOLUTION


# %% id="to_network_check" role="test"
check(to_network, like=to_network_slow, on=colour_pictures, points=1)

# %% id="to_network_zero" role="test"
check(to_network, like=to_network_slow, on=std_of_zero, raises=ValueError, points=1)

# %% id="to_network_memory" role="test"
# How much new memory is alive at once? Points grow from none, for as much as to_network_large, to all.
check(to_network, like=to_network_large, on=large_pictures, peak=1_600_000, points=3)


# %% id="to_network_hidden" role="test"
# Hidden test: a single picture, one pixel, the typical numbers. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_wide_picture(generator, device):
    return torch.randint(256, (1, 3, 5, 31), generator=generator, dtype=torch.uint8).to(device), 0.45, 0.22


def single_pixels(generator, device):
    return torch.randint(256, (9, 3, 1, 1), generator=generator, dtype=torch.uint8).to(device), 0.0, 1.0


def negative_mean(generator, device):
    return torch.randint(256, (4, 3, 6, 6), generator=generator, dtype=torch.uint8).to(device), -0.7, 3.5


check(to_network, like=to_network_slow, on=[one_wide_picture, single_pixels, negative_mean], points=1)
### END HIDDEN TESTS

# %% id="to_network_race" role="test"
race(to_network, against=to_network_slow, on=colour_pictures, at_least={"cpu": 10, "cuda": 10}, points=2)

# %% [markdown]
# ## 3. A head for two scales
#
# *Medium, 15 minutes.* A segmentation network has fine features with little depth, and coarse features with
# much. Both are enlarged, joined along the channels and normalised. A 1 × 1 convolution makes classes of them, and a
# ReLU follows. Write `head(fine, coarse, mean, std, weight, bias, size)`.
#
# - `fine`: `(N, A, H, W)`, `coarse`: `(N, B, h, w)`, `mean`, `std`: `(A + B,)`, `weight`: `(K, A + B, 1, 1)`, `bias`:
#   `(K,)`; all `float32` on the same device. `size`: a number, which may be smaller than `H`, `W`, `h` or `w`.
# - returns: `(N, K, size, size)`: what the given version gives, up to rounding. Its strides do not matter.
# - Gradients must flow back into all six tensors.
# - A `weight` for another number of channels must raise `RuntimeError` or `ValueError`.


# %% id="head_given" role="given"
def head_slow(fine, coarse, mean, std, weight, bias, size):
    fine = F.interpolate(fine, (size, size), mode="bilinear")
    coarse = F.interpolate(coarse, (size, size), mode="bilinear")
    features = torch.cat([fine, coarse], dim=1)
    features = (features - mean[:, None, None]) / std[:, None, None]
    return F.conv2d(features, weight, bias).relu()


def features_of(fine, coarse, classes, size, generator, device, channels=None):
    both = fine[1] + coarse[1]
    shapes = fine, coarse, (both,), (both,), (classes, channels or both, 1, 1), (classes,)
    fine, coarse, mean, std, weight, bias = (torch.randn(shape, generator=generator) for shape in shapes)
    weight /= both**0.5
    return *(one.to(device) for one in (fine, coarse, mean, std.abs() + 0.5, weight, bias)), size


def two_scales(generator, device):
    return features_of((2, 32, 16, 16), (2, 64, 8, 8), 4, 64, generator, device)


def two_small_scales(generator, device):
    return features_of((2, 3, 6, 5), (2, 4, 3, 2), 2, 10, generator, device)


def fine_is_larger(generator, device):
    return features_of((2, 4, 40, 30), (2, 8, 5, 5), 3, 16, generator, device)


def too_few_weights(generator, device):
    return features_of((2, 3, 6, 6), (2, 4, 3, 3), 2, 12, generator, device, channels=6)


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter swaps an interpolation and a 1 × 1 convolution. Which of the four
# steps here may be swapped with an interpolation, and which may not?</details>
# <details><summary>Hint 2</summary>Two inputs of different sizes are in the way. The convolution is a weighted sum
# over A + B channels. A sum can be cut in two.</details>
# <details><summary>Hint 3</summary>The bias must be added once. It does not matter to which of the two. Mean and
# deviation belong to channels, so each input has its own part of them.</details>


# %% id="head" role="answer"
def head(fine, coarse, mean, std, weight, bias, size):
    ### BEGIN SOLUTION
    cut = fine.shape[1]
    shift, scale = mean[:, None, None], std[:, None, None]
    of_fine = F.conv2d((fine - shift[:cut]) / scale[:cut], weight[:, :cut], bias)
    of_coarse = F.conv2d((coarse - shift[cut:]) / scale[cut:], weight[:, cut:])
    larger = [F.interpolate(one, (size, size), mode="bilinear") for one in (of_fine, of_coarse)]
    return (larger[0] + larger[1]).relu()
    ### END SOLUTION


# %% id="head_check" role="test"
check(head, like=head_slow, on=[two_scales, fine_is_larger], points=1)

# %% id="head_gradients" role="test"
check(head, like=head_slow, on=two_small_scales, gradients=True, points=1)

# %% id="head_weights" role="test"
check(head, like=head_slow, on=too_few_weights, raises=(RuntimeError, ValueError), points=1)


# %% id="head_hidden" role="test"
# Hidden test: one class, one channel each, features larger than the result. 1 point, when your notebook is
# graded.
### BEGIN HIDDEN TESTS
def one_class(generator, device):
    return features_of((3, 5, 8, 8), (3, 2, 4, 4), 1, 24, generator, device)


def one_channel_each(generator, device):
    return features_of((1, 1, 7, 9), (1, 1, 2, 3), 6, 20, generator, device)


def both_are_larger(generator, device):
    return features_of((2, 4, 11, 30), (2, 3, 9, 10), 3, 7, generator, device)


check(head, like=head_slow, on=[one_class, one_channel_each, both_are_larger], points=1)
### END HIDDEN TESTS

# %% id="head_race" role="test"
race(head, against=head_slow, on=two_scales, at_least={"cpu": 3.4}, points=2)

# %% [markdown]
# ## 4. Fast, but not the same
#
# *Hard, 25 minutes.* `views_slow` makes a training batch: each picture is cut at its own place, some are flipped, each
# gets its own brightness, and all get the same size. A colleague made `views_hasty` of it. It is much faster, nothing
# is raised, and the pictures look all right. But they are not the same pictures. Find out what differs, and write a
# `views` that is right **and** fast.
#
# The rules, which `views_slow` follows: `views(batch, tops, lefts, flips, factors, side, size)`
#
# - `batch`: `uint8` tensor of shape `(N, C, H, W)`, *N* at least 1. `tops`, `lefts`: `int64` tensors of shape `(N,)`.
#   `flips`: `bool` tensor of shape `(N,)`. `factors`: `float32` tensor of shape `(N,)`, above 0. All are on the same
#   device. `side`, `size`: numbers, at least 1; `size` may be smaller or larger than `side`.
# - returns: a `float32` tensor of shape `(N, C, size, size)` on that device.
# - Picture *i* of the result starts with the `side` × `side` pixels of `batch[i]` whose upper left corner is at row
#   `tops[i]` and column `lefts[i]`. They always lie inside the picture. Where `flips[i]` is true, left and right are
#   swapped.
# - The pixels are divided by 255 and multiplied by `factors[i]`. What is then above 1 becomes 1. After that, the
#   picture is resized to `size` × `size`, in mode bilinear with antialias.
# - Your function must not wait for the device: no syncs (chapter 02).
#
# If a test finds a wrong answer, the race gives no points either. And right is not yet fast: to mend `views_hasty`
# in the obvious way earns two of the race's three points at best, on some processors none. Measure.


# %% id="views_given" role="given"
def views_slow(batch, tops, lefts, flips, factors, side, size):
    results = []
    for picture, top, left, flip, factor in zip(batch, tops, lefts, flips, factors, strict=True):
        view = picture[:, top : top + side, left : left + side]
        if flip:
            view = view.flip(-1)
        view = (view / 255 * factor).clamp(max=1)
        results.append(F.interpolate(view[None], (size, size), mode="bilinear", antialias=True))
    return torch.cat(results)


def views_hasty(batch, tops, lefts, flips, factors, side, size):
    top, left = tops[0], lefts[0]
    view = batch[:, :, top : top + side, left : left + side]
    view = torch.where(flips[:, None, None, None], view.flip(-1), view)
    view = (view * factors[:, None, None, None]).to(torch.uint8)
    return F.interpolate(view / 255, (size, size), mode="bilinear")


def drawn_for(shape, side, size, generator, device, largest=1.6):
    count, _, height, width = shape
    drawn = (
        torch.randint(256, shape, generator=generator, dtype=torch.uint8),
        torch.randint(height - side + 1, (count,), generator=generator),
        torch.randint(width - side + 1, (count,), generator=generator),
        torch.rand(count, generator=generator) < 0.5,
        torch.rand(count, generator=generator) * (largest - 0.4) + 0.4,
    )
    return *(one.to(device) for one in drawn), side, size


def many_views(generator, device):
    return drawn_for((100, 3, 40, 40), 32, 16, generator, device)


def many_larger_views(generator, device):
    return drawn_for((100, 3, 32, 32), 24, 32, generator, device)


def larger_views(generator, device):
    return drawn_for((8, 2, 7, 11), 5, 9, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Run both on the same inputs, and compare. Then make the inputs simple: all places
# 0, no flips, all factors 1, <code>size</code> as large as <code>side</code>. Now they are equal. Change one thing at
# a time; three of the changes part them.</details>
# <details><summary>Hint 2</summary>The chapter says which byte 1.01 becomes, and what a smaller picture is made
# of.</details>
# <details><summary>Hint 3</summary>Slices take one place for all pictures, and a loop over slices is slow and needs
# numbers of Python, so it waits. With index tensors you can pick any pixels in one call, and whole numbers in them
# do not make it wait (a boolean mask would). In a flattened picture, a pixel has a single position, made of its row,
# its column and the width.</details>
# <details><summary>Hint 4</summary><code>gather</code> (chapter 10) reads along one dimension, each picture with
# positions of its own. All channels of a picture share them: <code>expand</code> costs nothing. A flip is another
# order of the columns, so it may be part of the positions. Indexing by several tensors at once works, too. And
# <code>Tensor.unfold</code> shows all windows of a picture as a view, so that each picture needs one place only.
# Time them with <code>compare</code>, on the inputs of the race: <code>many_larger_views</code>.</details>
# <details><summary>Hint 5</summary>Then time the steps one by one. Is the last one, the resizing, the longest? All
# pictures have one size before it and one size after it, in both directions. So the weights of section 4 are the
# same for all pictures, and for rows and columns: one small matrix. Section 4 also shows how to ask
# <code>F.interpolate</code> itself for its weights.</details>


# %% id="views" role="answer"
def views(batch, tops, lefts, flips, factors, side, size):
    ### BEGIN SOLUTION
    count, channels, _, width = batch.shape
    steps = torch.arange(side, device=batch.device)
    columns = lefts[:, None] + torch.where(flips[:, None], steps.flip(0), steps)
    rows = tops[:, None] + steps
    positions = (rows[:, :, None] * width + columns[:, None]).view(count, 1, -1)
    view = batch.flatten(2).gather(2, positions.expand(-1, channels, -1)).view(count, channels, side, side)
    bright = (view * (factors / 255)[:, None, None, None]).clamp_(max=1)
    lines = torch.eye(side, device=batch.device)[:, None, None]
    weights = F.interpolate(lines, (1, size), mode="bilinear", antialias=True)[:, 0, 0]
    return weights.T @ (bright @ weights)
    ### END SOLUTION


# %% id="views_check" role="test"
check(views, like=views_slow, on=[many_views, larger_views], points=1)

# %% id="views_waits" role="test"
check(views, like=views_slow, on=many_views, at_most={"syncs": 0}, points=1)


# %% id="views_hidden" role="test"
# Hidden test: one picture, one pixel, whole pictures, pictures that are not square. 2 points, when your notebook is
# graded.
### BEGIN HIDDEN TESTS
def one_tall_picture(generator, device):
    return drawn_for((1, 1, 30, 9), 8, 3, generator, device)


def one_pixel(generator, device):
    return drawn_for((9, 3, 4, 5), 1, 1, generator, device, largest=3.0)


def whole_pictures(generator, device):
    return drawn_for((5, 4, 10, 10), 10, 7, generator, device)


check(views, like=views_slow, on=[one_tall_picture, one_pixel, whole_pictures, larger_views], points=2)
### END HIDDEN TESTS

# %% id="views_race" role="test"
race(views, against=views_slow, on=many_larger_views, at_least={"cpu": 2.8, "cuda": 5}, points=3)

# %% [markdown]
# ## 5. Cut out and resize
#
# *Hard, 30 minutes.* A detector has found a box in each picture of a batch, and the boxes have all sizes. A second
# network wants them as one batch. The same tool makes the famous "random resized crop" for a whole batch. Write
# `crop_and_resize(batch, boxes, size)`.
#
# - `batch`: `float32` or `float64` tensor of shape `(N, C, H, W)`, all numbers finite; *N* may be 0. `boxes`: `int64`
#   tensor of shape `(N, 4)` on the same device: top, left, bottom, right. The box of picture *i* has the rows from top
#   to bottom − 1 and the columns from left to right − 1. `size`: two numbers, height and width.
# - returns: tensor of shape `(N, C, *size)` of that type on that device, with the precision of that type: each box,
#   resized in mode bilinear with antialias. Boxes may become smaller or larger. Pixels outside a box have no
#   influence.
# - Gradients must flow back into `batch`.
# - A box that leaves its picture, or has no pixel, and `boxes` of another shape must raise `ValueError`.
# - Your function may wait for the device once: at most 1 sync. (One `tolist()` is one sync, however many numbers
#   it fetches.)
#
# The obvious way without a loop earns two of the race's three points at best, on some processors none. Measure.


# %% id="crop_and_resize_given" role="given"
def crop_and_resize_slow(batch, boxes, size):
    height, width = batch.shape[2:]
    if tuple(boxes.shape) != (len(batch), 4):
        raise ValueError(f"boxes must have the shape {(len(batch), 4)}, not {tuple(boxes.shape)}")
    results = [batch.new_zeros(0, batch.shape[1], *size)]
    for picture, box in zip(batch, boxes.tolist(), strict=True):
        top, left, bottom, right = box
        if not (0 <= top < bottom <= height and 0 <= left < right <= width):
            raise ValueError(f"the box {box} does not lie inside a picture of {height} × {width}")
        inside = picture[None, :, top:bottom, left:right]
        results.append(F.interpolate(inside, tuple(size), mode="bilinear", antialias=True))
    return torch.cat(results)


def boxes_in(shape, size, least, generator, device, most=1000):
    count, _, *sides = shape
    edges = []
    for side in sides:
        lengths = torch.randint(least, min(most, side) + 1, (count,), generator=generator)
        starts = (torch.rand(count, generator=generator) * (side - lengths + 1)).long()
        edges += [starts, starts + lengths]
    top, bottom, left, right = edges
    boxes = torch.stack([top, left, bottom, right], dim=1)
    return torch.rand(shape, generator=generator).to(device), boxes.to(device), size


def many_boxes(generator, device):
    return boxes_in((400, 1, 80, 80), (8, 8), 4, generator, device, most=8)


def small_boxes(generator, device):
    return boxes_in((12, 2, 9, 13), (6, 4), 1, generator, device)


def double_pictures(generator, device):
    batch, boxes, size = boxes_in((6, 2, 15, 12), (1, 7), 2, generator, device)
    return batch.double(), boxes, size


def no_boxes(generator, device):
    return boxes_in((0, 3, 8, 8), (4, 4), 2, generator, device)


def box_too_low(generator, device):
    batch = torch.rand(2, 3, 8, 9, generator=generator).to(device)
    return batch, torch.tensor([[0, 0, 8, 9], [5, 0, 9, 9]], device=device), (4, 4)


def box_left_of_the_edge(generator, device):
    batch = torch.rand(2, 3, 8, 9, generator=generator).to(device)
    return batch, torch.tensor([[0, -1, 4, 4], [1, 1, 5, 5]], device=device), (4, 4)


def box_without_a_pixel(generator, device):
    batch = torch.rand(2, 3, 8, 9, generator=generator).to(device)
    return batch, torch.tensor([[0, 0, 4, 4], [3, 2, 3, 5]], device=device), (4, 4)


def a_box_for_all(generator, device):
    return torch.rand(2, 3, 8, 9, device=device), torch.tensor([0, 0, 4, 4], device=device), (4, 4)


# %% [markdown]
# <details><summary>Hint 1</summary>Boxes of different sizes cannot be stacked. But the results have one size, and
# the pictures have one size. What leads from the one to the other, in section 4 of the chapter?</details>
# <details><summary>Hint 2</summary>A product of matrices works on batches, each with a matrix of its own. So you
# need a tensor of row weights, shape <code>(N, height of the result, H)</code>, and one of column weights.</details>
# <details><summary>Hint 3</summary>Follow <code>tents</code> line by line. What was a number, the scale, is now a
# tensor with one number for each box; what was a matrix of distances has a third dimension. Where is the centre,
# if the box does not begin at 0?</details>
# <details><summary>Hint 4</summary>A tent may reach over the edge of its box. There the weights must be 0
# <em>before</em> each row is divided by its sum. The result is a product of three matrices; all channels of a
# picture share the outer two. For the boxes that must be refused, find all faults as one tensor, and ask it
# once.</details>
# <details><summary>Hint 5</summary>This is right, and perhaps no faster than the loop. Time the parts, on the inputs of
# the race. Then count: how many of the weights are 0? Who multiplies by them, and who does not?</details>
# <details><summary>Hint 6</summary>Exercise 4 takes pixels out of each picture, at a place of its own, in one call. The
# boxes differ in size, but if you take as many pixels for each of them as the largest one needs, they can be stacked;
# what is too much gets the weight 0 (and must not lie outside the picture). The sizes of the largest box are two more
# numbers to ask the device for. Can they come in the same answer as the faults?</details>


# %% id="crop_and_resize" role="answer"
def crop_and_resize(batch, boxes, size):
    ### BEGIN SOLUTION
    def pixels_and_weights(starts, lengths, most, side, new_length):
        """For each box, in one direction: `most` pixels from its start on, and the weights (new_length, most)."""
        steps = torch.arange(most, device=batch.device)
        scale = lengths.to(batch.dtype)[:, None, None] / new_length
        centres = (torch.arange(new_length, device=batch.device)[:, None] + 0.5) * scale
        weights = (1 - (steps + 0.5 - centres).abs_() / scale.clamp(min=1)).clamp_(min=0)
        weights = weights * (steps < lengths[:, None, None])
        return (starts[:, None] + steps).clamp_(max=side - 1), weights / weights.sum(2, keepdim=True)

    count, channels, height, width = batch.shape
    if boxes.shape != (count, 4):
        raise ValueError(f"boxes must have the shape {(count, 4)}, not {tuple(boxes.shape)}")
    if count == 0:
        return batch.new_zeros(0, channels, *size)
    top, left, bottom, right = boxes.unbind(1)
    high, wide = bottom - top, right - left
    bad = (top < 0) | (high <= 0) | (bottom > height) | (left < 0) | (wide <= 0) | (right > width)
    refused, highest, widest = torch.stack([bad.any(), high.max(), wide.max()]).tolist()
    if refused:
        raise ValueError(f"every box must lie inside a picture of {height} × {width} and have a pixel")
    rows, of_rows = pixels_and_weights(top, high, highest, height, size[0])
    columns, of_columns = pixels_and_weights(left, wide, widest, width, size[1])
    positions = (rows[:, :, None] * width + columns[:, None]).view(count, 1, -1).expand(-1, channels, -1)
    inside = batch.flatten(2).gather(2, positions).view(count, channels * highest, widest)
    narrow = (inside @ of_columns.mT).view(count, channels, highest, size[1])
    return of_rows[:, None] @ narrow
    ### END SOLUTION


# %% id="crop_and_resize_check" role="test"
check(
    crop_and_resize,
    like=crop_and_resize_slow,
    on=[many_boxes, small_boxes, double_pictures, no_boxes],
    at_most={"syncs": 1},
    points=2,
)

# %% id="crop_and_resize_gradients" role="test"
check(crop_and_resize, like=crop_and_resize_slow, on=small_boxes, gradients=True, points=1)

# %% id="crop_and_resize_bad" role="test"
check(
    crop_and_resize,
    like=crop_and_resize_slow,
    on=[box_too_low, box_left_of_the_edge, box_without_a_pixel, a_box_for_all],
    raises=ValueError,
    points=1,
)


# %% id="crop_and_resize_hidden" role="test"
# Hidden test: whole pictures, boxes of one pixel, boxes that become larger, float64. 2 points, when your notebook is
# graded.
### BEGIN HIDDEN TESTS
def whole_pictures_smaller(generator, device):
    batch = torch.randn(4, 3, 21, 17, generator=generator).to(device)
    return batch, torch.tensor([[0, 0, 21, 17]] * 4, device=device), (5, 6)


def boxes_of_one_pixel(generator, device):
    batch = torch.randn(3, 1, 6, 6, generator=generator).to(device)
    return batch, torch.tensor([[0, 0, 1, 1], [5, 5, 6, 6], [2, 3, 3, 4]], device=device), (3, 2)


def larger_boxes(generator, device):
    return boxes_in((7, 4, 10, 8), (25, 30), 1, generator, device)


check(
    crop_and_resize,
    like=crop_and_resize_slow,
    on=[whole_pictures_smaller, boxes_of_one_pixel, larger_boxes, double_pictures, no_boxes],
    at_most={"syncs": 1},
    points=2,
)
### END HIDDEN TESTS

# %% id="crop_and_resize_race" role="test"
race(
    crop_and_resize,
    against=crop_and_resize_slow,
    on=many_boxes,
    at_least={"cpu": 3.1, "cuda": 6},
    points=3,
)

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
def halved(x):
    short = x.bfloat16()
    return (short @ short.T).float()


def chosen(x):
    return x[x > 1].mean()


def doubled(x):
    return F.interpolate(x[None, None], scale_factor=2)[0, 0, ::2]


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (halved, chosen, doubled)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>halved</code> is of chapter 07, <code>chosen</code> is of chapter 10,
# <code>doubled</code> is of chapter 12.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(doubled, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "halved": {"operations": 3, "bytes": 2 * n * d + 2 * n * n + 4 * n * n, "syncs": 0},
        "chosen": {"operations": 3, "bytes": 5 * n * d + 4, "syncs": 1},
        "doubled": {"operations": 1, "bytes": 16 * n * d, "syncs": 0},
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
