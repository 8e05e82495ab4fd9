# %% [markdown]
# # Exercises 12 · Images
#
# Five functions. Each is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one.
# Hidden tests run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/12_images.ipynb). 30 points, about 60 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, race

# %% [markdown]
# ## 1. A contact sheet
#
# *Medium, 12 minutes.* Write `contact_sheet(batch, columns, gap)`.
#
# - `batch`: tensor of shape `(N, C, H, W)`, any type, any device. `columns`: a number, at least 1. `gap`: a
#   number, 0 or more.
# - returns: a tensor of the same type on the same device, of shape
#   `(C, rows * (H + gap) + gap, columns * (W + gap) + gap)`, with as many rows as are needed.
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
    page = torch.zeros(channels, high, wide, dtype=batch.dtype, device=batch.device)
    for i in range(count):
        top = i // columns * (height + gap) + gap
        left = i % columns * (width + gap) + gap
        page[:, top : top + height, left : left + width] = batch[i]
    return page


def tiny_pictures(generator, device):
    batch = torch.randint(256, (308, 3, 8, 8), generator=generator, dtype=torch.uint8)
    return batch.to(device), 25, 1


def no_pictures(generator, device):
    return torch.zeros(0, 3, 8, 8, device=device), 4, 1


def no_columns(generator, device):
    return torch.zeros(2, 3, 8, 8, device=device), 0, 1


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter has the same page for full rows. What is missing for the
# last row?</details>
# <details><summary>Hint 2</summary><code>F.pad</code> takes pairs of numbers, the last dimension first.
# With four pairs it reaches the batch dimension, too.</details>
# <details><summary>Hint 3</summary>Think of the page as an array with the dimensions row of the page,
# column of the page, channel, row of the picture, column of the picture. In which order must they stand
# before you join them?</details>


# %% id="contact_sheet" role="answer"
def contact_sheet(batch, columns, gap):
    ### BEGIN SOLUTION
    if len(batch) == 0 or columns < 1:
        raise ValueError("contact_sheet needs a picture and a column")
    rows = -(-len(batch) // columns)
    framed = F.pad(batch, (gap, 0, gap, 0, 0, 0, 0, rows * columns - len(batch)))
    channels, height, width = framed.shape[1:]
    cells = framed.unflatten(0, (rows, columns)).permute(2, 0, 3, 1, 4)
    return F.pad(cells.reshape(channels, rows * height, columns * width), (0, gap, 0, gap))
    ### END SOLUTION


# %% id="contact_sheet_check" role="test"
check(contact_sheet, like=contact_sheet_slow, on=tiny_pictures, points=1)

# %% id="contact_sheet_empty" role="test"
check(contact_sheet, like=contact_sheet_slow, on=[no_pictures, no_columns], raises=ValueError, points=1)


# %% id="contact_sheet_hidden" role="test"
# Hidden test: full rows, one column, fewer pictures than columns, no gap, other types. 2 points, when your
# notebook is graded.
### BEGIN HIDDEN TESTS
def full_rows(generator, device):
    return torch.rand(12, 3, 5, 7, generator=generator).to(device), 4, 2


def one_column(generator, device):
    return torch.rand(5, 1, 4, 3, generator=generator).to(device), 1, 3


def few_pictures(generator, device):
    return torch.randint(-9, 9, (3, 2, 4, 6), generator=generator).to(device), 8, 1


def without_gap(generator, device):
    return torch.rand(7, 3, 4, 4, generator=generator).to(device), 3, 0


check(
    contact_sheet,
    like=contact_sheet_slow,
    on=[full_rows, one_column, few_pictures, without_gap],
    points=2,
)
### END HIDDEN TESTS

# %% id="contact_sheet_race" role="test"
race(
    contact_sheet,
    against=contact_sheet_slow,
    on=tiny_pictures,
    at_least={"cpu": 4, "cuda": 4},
    points=2,
)

# %% [markdown]
# ## 2. Grey and normalised
#
# *Easy, 10 minutes.* A network wants grey pictures with mean 0 and standard deviation 1. Write
# `to_network(batch, mean, std)`.
#
# - `batch`: `uint8` tensor of shape `(N, 3, H, W)` on any device, red, green and blue, *N* at least 1.
#   `mean`, `std`: two numbers, `std` above 0.
# - returns: `float32` tensor of shape `(N, 1, H, W)` on the same device. With red, green and blue from 0 to
#   1, grey is 0.299 red + 0.587 green + 0.114 blue. The result is (grey - mean) / std.
# - A `std` of 0 or below must raise `ValueError`.
# - One test counts: your answer may ask torch for at most 6 operations, however many pictures there are.
#   Views do not count.


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


def colour_pictures(generator, device):
    batch = torch.randint(256, (100, 3, 16, 16), generator=generator, dtype=torch.uint8)
    mean, std = torch.empty(2).uniform_(0.2, 0.6, generator=generator).tolist()
    return batch.to(device), mean, std


def std_of_zero(generator, device):
    return torch.zeros(2, 3, 4, 4, dtype=torch.uint8, device=device), 0.5, 0.0


# %% [markdown]
# <details><summary>Hint 1</summary>Write down the whole calculation for one pixel, and simplify: it is one
# weighted sum and one constant. Only numbers of Python are needed to find them.</details>
# <details><summary>Hint 2</summary>A weighted sum of the channels at every pixel is what a 1 × 1
# convolution computes. It is also a product of matrices, if the pixels of a picture lie in one dimension.
# One of the two is much faster here. A third way needs no tensor of weights: <code>add_</code> has an
# argument <code>alpha</code>. Measure all three.</details>


# %% id="to_network" role="answer"
def to_network(batch, mean, std):
    ### BEGIN SOLUTION
    if std <= 0:
        raise ValueError("std must be above 0")
    weights = [part / (255 * std) for part in (0.299, 0.587, 0.114)]
    grey = torch.tensor([weights], device=batch.device) @ batch.flatten(2).float()
    return grey.sub_(mean / std).view(len(batch), 1, *batch.shape[2:])
    ### END SOLUTION


# %% id="to_network_check" role="test"
check(to_network, like=to_network_slow, on=colour_pictures, points=1)

# %% id="to_network_zero" role="test"
check(to_network, like=to_network_slow, on=std_of_zero, raises=ValueError, points=1)

# %% id="to_network_few" role="test"
check(to_network, like=to_network_slow, on=colour_pictures, at_most={"operations": 6}, points=1)


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
race(to_network, against=to_network_slow, on=colour_pictures, at_least={"cpu": 8, "cuda": 8}, points=2)

# %% [markdown]
# ## 3. A crop for each picture
#
# *Medium, 12 minutes.* A random crop of a batch takes the same place in every picture. Here each picture
# has its own. Write `crops(batch, tops, lefts, size)`.
#
# - `batch`: tensor of shape `(N, C, H, W)`, any type, any device. `tops`, `lefts`: `int64` tensors of shape
#   `(N,)` on the same device. `size`: a number, at least 1.
# - returns: tensor of shape `(N, C, size, size)` of that type on that device. Picture *i* is cut out of
#   `batch[i]`, with its upper left corner at row `tops[i]` and column `lefts[i]`. Its strides do not
#   matter.
# - A crop that leaves its picture, on any side, must raise `IndexError` or `ValueError`.
# - Gradients must flow back into `batch`.


# %% id="crops_given" role="given"
def crops_slow(batch, tops, lefts, size):
    height, width = batch.shape[2:]
    results = []
    for picture, top, left in zip(batch, tops.tolist(), lefts.tolist(), strict=True):
        if not (0 <= top <= height - size and 0 <= left <= width - size):
            raise IndexError(f"no {size} × {size} pixels at row {top}, column {left}")
        results.append(picture[:, top : top + size, left : left + size])
    return torch.stack(results)


def byte_pictures(generator, device):
    batch = torch.randint(256, (500, 2, 12, 12), generator=generator, dtype=torch.uint8)
    tops, lefts = torch.randint(5, (2, 500), generator=generator)
    return batch.to(device), tops.to(device), lefts.to(device), 8


def float_pictures(generator, device):
    batch = torch.randn(6, 3, 9, 12, generator=generator)
    tops, lefts = torch.randint(4, (6,), generator=generator), torch.randint(7, (6,), generator=generator)
    return batch.to(device), tops.to(device), lefts.to(device), 6


def too_low(generator, device):
    return torch.rand(2, 3, 8, 8, device=device), *torch.tensor([[0, 5], [1, 1]], device=device), 4


def left_of_the_edge(generator, device):
    return torch.rand(2, 3, 8, 8, device=device), *torch.tensor([[0, 2], [-1, 1]], device=device), 4


# %% [markdown]
# <details><summary>Hint 1</summary>With index tensors you can pick any pixels in one call. In a flattened
# picture, a pixel has a single position, made of its row, its column and the width.</details>
# <details><summary>Hint 2</summary>Compare the positions of two crops. They differ by one number each; the
# pattern is the same. Which shapes must corners and pattern have, to be added?</details>
# <details><summary>Hint 3</summary><code>Tensor.gather</code> reads along one dimension, each picture with
# positions of its own. All channels of a picture share them: <code>expand</code> costs nothing.</details>


# %% id="crops" role="answer"
def crops(batch, tops, lefts, size):
    ### BEGIN SOLUTION
    count, channels, height, width = batch.shape
    inside = (tops >= 0) & (tops <= height - size) & (lefts >= 0) & (lefts <= width - size)
    if not inside.all():
        raise IndexError(f"not every crop of {size} × {size} pixels lies inside its picture")
    steps = torch.arange(size, device=batch.device)
    pattern = (steps[:, None] * width + steps).flatten()
    positions = (tops * width + lefts)[:, None, None] + pattern
    pixels = batch.flatten(2).gather(2, positions.expand(-1, channels, -1))
    return pixels.view(count, channels, size, size)
    ### END SOLUTION


# %% id="crops_check" role="test"
check(crops, like=crops_slow, on=byte_pictures, points=1)

# %% id="crops_gradients" role="test"
check(crops, like=crops_slow, on=float_pictures, gradients=True, points=1)

# %% id="crops_range" role="test"
check(
    crops,
    like=crops_slow,
    on=[too_low, left_of_the_edge],
    raises=(IndexError, ValueError),
    points=1,
)


# %% id="crops_hidden" role="test"
# Hidden test: crops as large as the picture, crops of one pixel, one picture. 1 point, when your notebook
# is graded.
### BEGIN HIDDEN TESTS
def whole_pictures(generator, device):
    nothing = torch.zeros(4, dtype=torch.int64, device=device)
    return torch.randn(4, 2, 7, 7, generator=generator).to(device), nothing, nothing.clone(), 7


def one_pixel(generator, device):
    batch = torch.randint(1000, (8, 1, 5, 3), generator=generator)
    tops, lefts = torch.randint(5, (8,), generator=generator), torch.randint(3, (8,), generator=generator)
    return batch.to(device), tops.to(device), lefts.to(device), 1


def one_tall_picture(generator, device):
    batch = torch.randn(1, 5, 30, 4, generator=generator)
    tops, lefts = torch.randint(27, (1,), generator=generator), torch.randint(2, (1,), generator=generator)
    return batch.to(device), tops.to(device), lefts.to(device), 3


check(crops, like=crops_slow, on=[whole_pictures, one_pixel, one_tall_picture], points=1)
### END HIDDEN TESTS

# %% id="crops_race" role="test"
race(crops, against=crops_slow, on=byte_pictures, at_least={"cpu": 3, "cuda": 3}, points=2)

# %% [markdown]
# ## 4. Thumbnails
#
# *Medium, 12 minutes.* Pictures of a few different sizes arrive in any order. Write `thumbnails(pictures,
# size)`.
#
# - `pictures`: list of *N* `uint8` tensors of shape `(3, H, W)`, all on one device. There are few different
#   sizes among many pictures.
# - returns: `float32` tensor of shape `(N, 3, size, size)` on that device, with values from 0 to 1, in the
#   order of the list. The pictures are resized in mode bilinear, with antialias.
# - Resize in `float32`: resizing in bytes, as in the chapter, rounds each value to one of 256 steps, and the
#   test does not accept that.
# - An empty list must raise `ValueError`.


# %% id="thumbnails_given" role="given"
def thumbnails_slow(pictures, size):
    if not pictures:
        raise ValueError("thumbnails needs one picture or more")
    results = []
    for picture in pictures:
        values = picture[None].float() / 255
        results.append(F.interpolate(values, (size, size), mode="bilinear", antialias=True))
    return torch.cat(results)


def mixed_sizes(generator, device):
    sizes = [(16, 16), (12, 20), (20, 12)]
    order = torch.randint(3, (150,), generator=generator).tolist()
    return [
        torch.randint(256, (3, *sizes[i]), generator=generator, dtype=torch.uint8).to(device) for i in order
    ], 8


def nothing_at_all(generator, device):
    return [], 8


# %% [markdown]
# <details><summary>Hint 1</summary>Pictures of the same size can be stacked and resized in one call. Put
# the positions of the pictures in the list into a dictionary, by shape.</details>
# <details><summary>Hint 2</summary>Allocate the result for all pictures. A list of positions can be used as
# an index to write a whole group into it.</details>
# <details><summary>Hint 3</summary>Resizing is linear. When are there fewest numbers to divide by
# 255?</details>


# %% id="thumbnails" role="answer"
def thumbnails(pictures, size):
    ### BEGIN SOLUTION
    if not pictures:
        raise ValueError("thumbnails needs one picture or more")
    groups = {}
    for i, picture in enumerate(pictures):
        groups.setdefault(picture.shape, []).append(i)
    result = torch.empty(len(pictures), 3, size, size, device=pictures[0].device)
    for positions in groups.values():
        batch = torch.stack([pictures[i] for i in positions]).float()
        result[positions] = F.interpolate(batch, (size, size), mode="bilinear", antialias=True)
    return result.div_(255)
    ### END SOLUTION


# %% id="thumbnails_check" role="test"
check(thumbnails, like=thumbnails_slow, on=mixed_sizes, points=1)

# %% id="thumbnails_empty" role="test"
check(thumbnails, like=thumbnails_slow, on=nothing_at_all, raises=ValueError, points=1)


# %% id="thumbnails_hidden" role="test"
# Hidden test: all sizes different, all equal, one picture, thumbnails larger than the pictures. 2 points,
# when your notebook is graded.
### BEGIN HIDDEN TESTS
def all_different(generator, device):
    return [
        torch.randint(256, (3, 9 + i, 30 - i), generator=generator, dtype=torch.uint8).to(device)
        for i in range(7)
    ], 6


def all_equal(generator, device):
    return list(torch.randint(256, (5, 3, 11, 13), generator=generator, dtype=torch.uint8).to(device)), 4


def one_large_picture(generator, device):
    return [torch.randint(256, (3, 100, 40), generator=generator, dtype=torch.uint8).to(device)], 5


def enlarged(generator, device):
    sizes = [(5, 5), (6, 4), (5, 5), (4, 6), (6, 4)]
    return [
        torch.randint(256, (3, *size), generator=generator, dtype=torch.uint8).to(device) for size in sizes
    ], 9


check(
    thumbnails,
    like=thumbnails_slow,
    on=[all_different, all_equal, one_large_picture, enlarged],
    points=2,
)
### END HIDDEN TESTS

# %% id="thumbnails_race" role="test"
race(thumbnails, against=thumbnails_slow, on=mixed_sizes, at_least={"cpu": 1.8, "cuda": 2}, points=2)

# %% [markdown]
# ## 5. A head for two scales
#
# *Hard, 14 minutes.* A segmentation network has fine features with little depth, and coarse features with
# much. Both are enlarged, joined along the channels, and a 1 × 1 convolution makes classes of them. Write
# `head(fine, coarse, weight, bias, size)`.
#
# - `fine`: `(N, A, H, W)`, `coarse`: `(N, B, h, w)`, `weight`: `(K, A + B, 1, 1)`, `bias`: `(K,)`; all
#   `float32` on the same device. `size`: a number.
# - returns: `(N, K, size, size)`: the classes of the given version below (up to rounding). Its strides do
#   not matter.
# - Gradients must flow back into all four tensors.
# - A `weight` for another number of channels must raise `RuntimeError` or `ValueError`.


# %% id="head_given" role="given"
def head_slow(fine, coarse, weight, bias, size):
    fine = F.interpolate(fine, (size, size), mode="bilinear")
    coarse = F.interpolate(coarse, (size, size), mode="bilinear")
    return F.conv2d(torch.cat([fine, coarse], dim=1), weight, bias)


def two_scales(generator, device):
    shapes = (2, 32, 16, 16), (2, 64, 8, 8), (4, 96, 1, 1), (4,)
    return *(torch.randn(shape, generator=generator).to(device) for shape in shapes), 64


def two_small_scales(generator, device):
    shapes = (2, 3, 6, 5), (2, 4, 3, 2), (2, 7, 1, 1), (2,)
    return *(torch.randn(shape, generator=generator).to(device) for shape in shapes), 10


def too_few_weights(generator, device):
    shapes = (2, 3, 6, 6), (2, 4, 3, 3), (2, 6, 1, 1), (2,)
    return *(torch.randn(shape, generator=generator).to(device) for shape in shapes), 12


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter swaps an interpolation and a 1 × 1 convolution. Here two
# inputs with different sizes are in the way.</details>
# <details><summary>Hint 2</summary>The convolution is a weighted sum over A + B channels. A sum can be cut
# in two.</details>
# <details><summary>Hint 3</summary>The bias must be added once. It does not matter where.</details>


# %% id="head" role="answer"
def head(fine, coarse, weight, bias, size):
    ### BEGIN SOLUTION
    cut = fine.shape[1]
    of_fine = F.conv2d(fine, weight[:, :cut], bias)
    of_coarse = F.conv2d(coarse, weight[:, cut:])
    return F.interpolate(of_fine, (size, size), mode="bilinear") + F.interpolate(
        of_coarse, (size, size), mode="bilinear"
    )
    ### END SOLUTION


# %% id="head_check" role="test"
check(head, like=head_slow, on=two_scales, points=1)

# %% id="head_gradients" role="test"
check(head, like=head_slow, on=two_small_scales, gradients=True, points=1)

# %% id="head_weights" role="test"
check(head, like=head_slow, on=too_few_weights, raises=(RuntimeError, ValueError), points=1)


# %% id="head_hidden" role="test"
# Hidden test: one class, one channel each, features larger than the result. 1 point, when your notebook is
# graded.
### BEGIN HIDDEN TESTS
def one_class(generator, device):
    shapes = (3, 5, 8, 8), (3, 2, 4, 4), (1, 7, 1, 1), (1,)
    return *(torch.randn(shape, generator=generator).to(device) for shape in shapes), 24


def one_channel_each(generator, device):
    shapes = (1, 1, 7, 9), (1, 1, 2, 3), (6, 2, 1, 1), (6,)
    return *(torch.randn(shape, generator=generator).to(device) for shape in shapes), 20


def fine_is_larger(generator, device):
    shapes = (2, 4, 40, 30), (2, 8, 5, 5), (3, 12, 1, 1), (3,)
    return *(torch.randn(shape, generator=generator).to(device) for shape in shapes), 16


check(head, like=head_slow, on=[one_class, one_channel_each, fine_is_larger], points=1)
### END HIDDEN TESTS

# %% id="head_race" role="test"
race(head, against=head_slow, on=two_scales, at_least={"cpu": 3, "cuda": 2}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
