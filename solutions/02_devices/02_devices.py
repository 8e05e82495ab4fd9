# %% [markdown]
# # Exercises 02 · Devices
#
# Five programs. They fail on another device, send too much, wait where nobody needs to wait, or do work for
# nothing. Mend them. The last one is a tool that you can keep.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` lines there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. Hidden tests run when your notebook is graded.
#
# You need no GPU. Some tests put the inputs on the `meta` device: an answer that makes a tensor in the wrong
# place, or asks for a value, fails there as it would on a GPU. Some tests count transfers and syncs. They
# count what `costs` counts in the chapter; `from autograder import costs`, and you can look yourself.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/02_devices.ipynb). 41 points, about 130 minutes.

# %% id="setup" role="given"
import math

import torch
from torch import nn

from autograder import check, costs, race

# %% [markdown]
# ## 1. Coordinates as channels
#
# *Medium, 20 minutes.* A convolution does not know where in a picture it is. One remedy is to add two channels
# that say so, to the picture or to what a layer made of it. Write `with_coordinates(images)`.
#
# - `images`: floating-point tensor of shape `(N, C, H, W)`, on any device and in any memory format; all sizes at
#   least 1.
# - returns: tensor of shape `(N, C + 2, H, W)`, of the same dtype and on the same device: the channels of
#   `images`, then one with the height, then one with the width. Heights go from -1 in the first row to 1 in
#   the last, in equal steps; widths the same from left to right. A single row or column gets -1. The memory format
#   of the result is yours to choose.
# - Nothing may travel between devices.
#
# Two races, both in `bfloat16`: one with images in the ordinary format, one with images in `channels_last`. An
# answer that is fast enough for the first may earn only half of the points of the second, or none. Measure.


# %% id="with_coordinates_given" role="given"
def with_coordinates_slow(images):
    _, _, height, width = images.shape
    ys = [[2 * i / max(height - 1, 1) - 1] * width for i in range(height)]
    xs = [[2 * j / max(width - 1, 1) - 1 for j in range(width)]] * height
    grid = torch.tensor([ys, xs], dtype=torch.float64).to(images.device).to(images.dtype)
    return torch.stack([torch.cat([image, grid]) for image in images])


def pictures(generator, device):
    images = torch.rand(2, 64, 128, 128, generator=generator)
    return images.to(torch.bfloat16).to(device)


def pictures_channels_last(generator, device):
    return pictures(generator, device).to(memory_format=torch.channels_last)


def pictures_on_meta(generator, device):
    return torch.empty(2, 3, 8, 6, dtype=torch.float64, device="meta")


# %% [markdown]
# <details><summary>Hint 1</summary>All pictures get the same two channels. One row of numbers is enough for
# each, and <code>torch.linspace</code> makes such a row. (Made in <code>bfloat16</code>, it is rounded on the way,
# too; made in a wider type and then converted, only once. The tests allow both.)</details>
# <details><summary>Hint 2</summary>Functions that create tensors take <code>device=</code> and
# <code>dtype=</code>. The input knows both.</details>
# <details><summary>Hint 3</summary><code>view</code> gives the row the right number of dimensions,
# <code>expand</code> repeats it without a copy, and one <code>torch.cat</code> joins all.</details>
# <details><summary>Hint 4</summary>Give <code>compare</code> (<code>from autograder import compare</code>) your
# function with the same images in both formats. Making two rows of numbers takes as long for both; what else is
# there? Look at <code>stride()</code> of what goes in, and of what comes out.</details>
# <details><summary>Hint 5</summary>If the parts differ in their memory format, <code>torch.cat</code> makes an ordinary
# tensor: all channels of the images are read in jumps. In the images' own format neighbours stay neighbours. You can
# make an empty result with a <code>memory_format=</code> of your choice, and write the parts into
# it.</details>


# %% id="with_coordinates" role="answer"
def with_coordinates(images):
    ### BEGIN SOLUTION
    batch, channels, height, width = images.shape
    like = {"device": images.device, "dtype": images.dtype}
    # The channels of a pixel lie side by side, or the pixels of a channel do. So shall they in the result.
    order = torch.channels_last if images.stride(1) == 1 else torch.contiguous_format
    result = torch.empty(batch, channels + 2, height, width, memory_format=order, **like)
    result[:, :channels] = images
    result[:, channels] = torch.linspace(-1, 1, height, **like)[:, None]
    result[:, channels + 1] = torch.linspace(-1, 1, width, **like)
    return result
    ### END SOLUTION


# %% id="with_coordinates_check" role="test"
check(with_coordinates, like=with_coordinates_slow, on=[pictures, pictures_channels_last], points=1)

# %% id="with_coordinates_meta" role="test"
check(
    with_coordinates,
    like=with_coordinates_slow,
    on=pictures_on_meta,
    at_most={"transfers": 0},
    points=1,
)


# %% id="with_coordinates_hidden" role="test"
# Hidden test: other sizes, types and formats, a single row, a single pixel. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def wide_doubles(generator, device):
    return torch.rand(2, 1, 5, 17, generator=generator, dtype=torch.float64).to(device)


def half_precision(generator, device):
    return torch.rand(3, 2, 9, 4, generator=generator).to(torch.bfloat16).to(device)


def single_row(generator, device):
    return torch.rand(2, 3, 1, 7, generator=generator).to(device)


def single_pixel(generator, device):
    return torch.rand(1, 1, 1, 1, generator=generator).to(device)


def every_second_pixel(generator, device):
    return torch.rand(2, 3, 6, 8, generator=generator).to(device)[:, :, ::2, ::2]


def transposed(generator, device):
    images = torch.rand(2, 3, 6, 8, generator=generator, dtype=torch.float64)
    return images.to(device).to(memory_format=torch.channels_last).mT


check(
    with_coordinates,
    like=with_coordinates_slow,
    on=[wide_doubles, half_precision, single_row, single_pixel, every_second_pixel, transposed],
    points=1,
)
### END HIDDEN TESTS

# %% id="with_coordinates_race" role="test"
race(
    with_coordinates,
    against=with_coordinates_slow,
    on=pictures,
    at_least={"cpu": 2},
    points=1,
)

# %% id="with_coordinates_channels_last" role="test"
race(
    with_coordinates,
    against=with_coordinates_slow,
    on=pictures_channels_last,
    at_least={"cpu": 2.7},
    points=2,
)

# %% [markdown]
# ## 2. A module that arrives
#
# *Hard, 25 minutes.* The given function scales its input and adds a table of sines and cosines, which it
# makes anew at every call. Write the module `Positions(length, width, scale, device=None)` that does the same.
#
# - `length`, `width`: integers, at least 1; `width` is even. `scale`: a float. `device`: where the module's tensors
#   are made, as in torch's own modules; `"meta"` is possible.
# - Calling it with `x` of shape `(N, n, width)`, where `n` is at most `length`, gives `x * scale` plus the first
#   `n` rows of the table, on the device of `x` and of its dtype. A larger `n` must raise `ValueError`.
# - The `state_dict` has exactly one key: `scale`, a tensor of no dimensions. Loading another scale must change what
#   the module does. The table is not saved. Nothing in the module is a parameter.
# - `scale` and `x` are on one device and of one dtype whenever the module is called. How `scale` got there is not
#   yours to choose: built there, `.to(device)`, `.to(dtype)`, or built on `meta` and then either
#   `load_state_dict(…, assign=True)` or `.to_empty(device=…)` and `load_state_dict`. The values that are assigned may
#   lie on another device than the one that the module was built on.
# - In all these cases the table has the values that `float64` gives, rounded once to the dtype of `x`. So has it
#   after `.to(torch.bfloat16)` and `.to(torch.float32)`.
# - The first call, and one with another device or dtype than the call before, may do work for the table. All others move
#   nothing, and launch the two operations that are left.


# %% id="positions_given" role="given"
def positions_slow(x, length, width, scale):
    if x.shape[1] > length:
        raise ValueError(f"at most {length} positions, not {x.shape[1]}")
    rows = []
    for p in range(x.shape[1]):
        row = []
        for i in range(width // 2):
            angle = p / 10000 ** (2 * i / width)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return x * scale + torch.tensor(rows, dtype=x.dtype, device=x.device).view(-1, width)


def sentences(generator, device):
    return torch.rand(4, 20, 16, generator=generator).to(device), 50, 16, 1.5


def sentences_on_meta(generator, device):
    return torch.empty(4, 20, 16, dtype=torch.bfloat16, device="meta"), 50, 16, 1.5


def too_long(generator, device):
    return torch.rand(2, 9, 4, generator=generator).to(device), 8, 4, 1.0


def arguments_only(generator, device):
    return 50, 16, 1.5


# %% [markdown]
# <details><summary>Hint 1</summary><code>scale</code> is a case for a buffer. Is the table one? A buffer is
# something that torch moves, converts, empties and exchanges. Which of these does the table survive?</details>
# <details><summary>Hint 2</summary>The one place where the module can be sure of device and dtype is
# <code>forward</code>: it has <code>x</code>. What must it keep, so that the second call has nothing to
# do?</details>
# <details><summary>Hint 3</summary>Keep the finished table in a plain attribute, which torch leaves alone.
# <code>forward</code> looks whether there is one, and whether its device and dtype are those of
# <code>x</code>; if not, it makes it.</details>
# <details><summary>Hint 4</summary>For the table: positions as a column, frequencies as a row, both in
# <code>float64</code>; their product is the table of angles. (It may differ from the given quotient in the last
# digit. The tests allow that.) Its sines belong in columns 0, 2, 4, …, its cosines in columns 1, 3, 5, … Convert
# at the end.</details>


# %% id="positions" role="answer"
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        ### BEGIN SOLUTION
        self.length, self.width = length, width
        self.register_buffer("scale", torch.tensor(float(scale), device=device))
        self.table = None  # a plain attribute: nobody but forward touches it
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        if x.shape[1] > self.length:
            raise ValueError(f"at most {self.length} positions, not {x.shape[1]}")
        if self.table is None or (self.table.device, self.table.dtype) != (x.device, x.dtype):
            self.table = self.new_table(x)
        return x * self.scale + self.table[: x.shape[1]]

    def new_table(self, x):
        exact = {"device": x.device, "dtype": torch.float64}
        frequencies = 10000 ** (-torch.arange(0, self.width, 2, **exact) / self.width)
        angles = torch.arange(self.length, **exact)[:, None] * frequencies
        return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).to(x.dtype)
        ### END SOLUTION


# %% id="positions_check" role="test"
def use(x, length, width, scale):
    module = Positions(length, width, scale)
    module.to(x.device)
    return module(x)


check(use, like=positions_slow, on=sentences, points=1)


# %% id="positions_moves" role="test"
# The module is moved once and called 50 times. That makes 100 operations, and some for the table.
def move_and_use(x, length, width, scale):
    module = Positions(length, width, scale)
    module.to(x.device)
    module.to(x.dtype)
    return [module(x) for _ in range(50)]


def use_50_times(x, length, width, scale):
    return [positions_slow(x, length, width, scale) for _ in range(50)]


check(
    move_and_use,
    like=use_50_times,
    on=sentences_on_meta,
    at_most={"transfers": 4, "operations": 140},
    points=2,
)


# %% id="positions_saved" role="test"
def saved(length, width, scale):
    module = Positions(length, width, scale)
    return dict(module.state_dict()), [parameter for parameter in module.parameters()]


def only_scale(length, width, scale):
    return {"scale": torch.tensor(scale)}, []


check(saved, like=only_scale, on=arguments_only, points=1)

# %% id="positions_length" role="test"
check(use, like=positions_slow, on=too_long, raises=ValueError, points=1)


# %% id="positions_loaded" role="test"
# Four modules that got their scale in other ways: on the device of x, and on meta.
def arrive(x, length, width, scale):
    weights = {"scale": torch.tensor(scale, device=x.device, dtype=x.dtype)}
    assigned = Positions(length, width, 1.0, device="meta")
    assigned.load_state_dict(weights, assign=True)
    emptied = Positions(length, width, 1.0, device="meta")
    emptied.to(x.dtype)
    emptied.to_empty(device=x.device)
    emptied.load_state_dict(weights)
    elsewhere = Positions(length, width, 1.0, device="cpu")
    elsewhere.load_state_dict(weights, assign=True)
    converted = Positions(length, width, scale, device=x.device)
    converted.to(torch.bfloat16)
    converted.to(x.dtype)
    return [module(x) for module in (assigned, emptied, elsewhere, converted)]


def use_four_times(x, length, width, scale):
    return [positions_slow(x, length, width, scale) for _ in range(4)]


check(arrive, like=use_four_times, on=[sentences, sentences_on_meta], points=2)


# %% id="positions_hidden" role="test"
# Hidden test: other sizes and types; the same ways to a scale, also between calls. 2 points, when graded.
### BEGIN HIDDEN TESTS
def arrive_between_calls(x, length, width, scale):
    module = Positions(length, width, 1.0)
    module.to(x.device)
    module.to(x.dtype)
    module(x)
    module.to(torch.bfloat16)
    module(x.to(torch.bfloat16))
    module.to(x.dtype)
    module.load_state_dict({"scale": torch.tensor(scale, device=x.device, dtype=x.dtype)})
    return [*arrive(x, length, width, scale), module(x)]


def use_five_times(x, length, width, scale):
    return [positions_slow(x, length, width, scale) for _ in range(5)]


def full_length(generator, device):
    return torch.rand(2, 8, 4, generator=generator).to(device), 8, 4, -2.0


def one_position(generator, device):
    return torch.rand(3, 1, 2, generator=generator).to(device), 1, 2, 3.0


def no_position(generator, device):
    return torch.rand(3, 0, 6, generator=generator).to(device), 5, 6, 3.0


def doubles(generator, device):
    return torch.rand(2, 30, 6, generator=generator, dtype=torch.float64).to(device), 40, 6, 0.5


check(
    arrive_between_calls,
    like=use_five_times,
    on=[full_length, one_position, no_position, doubles],
    tolerance=1e-5,
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Clip without asking
#
# *Medium, 15 minutes.* The given function reads the norm of every row into Python to decide about the row. Write
# `clip_rows(rows, limit)`, which decides on the device.
#
# - `rows`: `float32` or `float64` tensor of shape `(N, D)`, on any device, of finite numbers. `limit`: a number
#   above 0.
# - returns: a new tensor like `rows`. A row whose Euclidean norm is above `limit` is scaled down so that its norm
#   is `limit`. All other rows, those of zeros too, stay as they are.
# - Gradients must reach `rows`, and be those of the given version for all rows (none has exactly the norm `limit`).
# - No sync is allowed, and nothing may travel. `rows` itself must not change.


# %% id="clip_rows_given" role="given"
def clip_rows_slow(rows, limit):
    result = []
    for row in rows:
        norm = row.norm()
        result.append(row * (limit / norm) if norm.item() > limit else row)
    return torch.stack(result) if result else rows.clone()


def shape_of_rows(rows, limit):
    return torch.empty_like(rows)


def many_rows(generator, device):
    sizes = 4 * torch.rand(600, 1, generator=generator)
    return (sizes * torch.randn(600, 64, generator=generator)).to(device), 16.0


def rows_on_meta(generator, device):
    return torch.empty(12, 5, device="meta"), 2.0


def rows_of_zeros(generator, device):
    rows = torch.randn(6, 4, generator=generator)
    rows[::2] = 0
    return rows.to(device), 0.5


def doubles_at_limit_1(generator, device):
    return torch.rand(7, 3, generator=generator, dtype=torch.float64).to(device), 1


# %% [markdown]
# <details><summary>Hint 1</summary>All norms at once: <code>norm</code> takes <code>dim</code>, and
# <code>keepdim=True</code> keeps the shape ready for broadcasting.</details>
# <details><summary>Hint 2</summary>Look at the row that a failing test names. Does your code compute something for
# that row that it does not use? Autograd goes back through that, too, and what is not finite there times 0 is
# NaN.</details>
# <details><summary>Hint 3</summary>Find one factor for each row that is finite for every row: a quotient whose
# denominator is never below <code>limit</code>.</details>


# %% id="clip_rows" role="answer"
def clip_rows(rows, limit):
    ### BEGIN SOLUTION
    norms = rows.norm(dim=1, keepdim=True)
    return rows * (limit / norms.clamp(min=limit))
    ### END SOLUTION


# %% id="clip_rows_check" role="test"
check(clip_rows, like=clip_rows_slow, on=many_rows, gradients=True, tolerance=1e-5, points=1)

# %% id="clip_rows_quiet" role="test"
check(
    clip_rows,
    like=clip_rows_slow,
    on=[many_rows, doubles_at_limit_1],
    at_most={"syncs": 0, "transfers": 0},
    tolerance=1e-5,
    points=1,
)

# %% id="clip_rows_meta" role="test"
check(clip_rows, like=shape_of_rows, on=rows_on_meta, at_most={"transfers": 0}, points=1)

# %% id="clip_rows_zeros" role="test"
check(clip_rows, like=clip_rows_slow, on=rows_of_zeros, gradients=True, tolerance=1e-5, points=2)


# %% id="clip_rows_hidden" role="test"
# Hidden test: no rows, only zeros, all rows above or below the limit. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def no_rows(generator, device):
    return torch.zeros(0, 4, device=device), 1.0


def only_zeros(generator, device):
    return torch.zeros(3, 5, device=device), 2


def all_below(generator, device):
    rows = torch.rand(7, 3, generator=generator)
    rows[3] = 0
    return rows.to(device), 10.0


def all_above(generator, device):
    return 50 + torch.rand(7, 3, generator=generator).to(device), 1


check(
    clip_rows,
    like=clip_rows_slow,
    on=[rows_of_zeros, no_rows, only_zeros, all_below, all_above],
    gradients=True,
    at_most={"syncs": 0, "transfers": 0},
    tolerance=1e-5,
    points=1,
)
### END HIDDEN TESTS

# %% id="clip_rows_race" role="test"
race(clip_rows, against=clip_rows_slow, on=many_rows, at_least={"cpu": 25, "cuda": 20}, points=2)

# %% [markdown]
# ## 4. A few of many
#
# *Hard, 30 minutes.* An expert in a large model takes only some rows of a batch, those that a mask names, and no more
# than a given number of them, so that its result has the same size for every batch. The given function waits for
# nothing, and multiplies all rows. Find a way that neither waits nor does more than it must. Write
# `through_matrix(x, mask, weights, capacity)`.
#
# - `x`: floating-point tensor of shape `(N, D)`; `mask`: `bool` tensor of shape `(N,)`; `weights`: shape `(D, E)`,
#   dtype of `x`; all on one device. `capacity`: an integer from 1 to `N`.
# - returns: a new tensor of shape `(capacity, E)`. Its first row is `x[i] @ weights` for the first true place `i` of the
#   mask, its second that for the second true place, and so on. If the mask has fewer true places than `capacity`, or
#   none, the other rows are zeros; if it has more, those come first that stand first.
# - No sync is allowed, and nothing may travel. `x` itself must not change.
#
# An answer that does not wait, but only multiplies fewer rows, earns only a part of the race's points. Measure.


# %% id="through_matrix_given" role="given"
def through_matrix_slow(x, mask, weights, capacity):
    products = x @ weights
    first = mask.to(torch.uint8).argsort(descending=True, stable=True)[:capacity]
    return torch.where(mask[first][:, None], products[first], 0)


def many_and_few(generator, device):
    x = torch.randn(100_000, 16, generator=generator)
    mask = torch.rand(100_000, generator=generator) < 0.01
    weights = torch.randn(16, 16, generator=generator) / 4
    return x.to(device), mask.to(device), weights.to(device), 200


def less_than_capacity(generator, device):
    mask = torch.tensor([True, False, False, True, True, False, False, False, True])
    x, weights = torch.randn(9, 4, generator=generator), torch.randn(4, 4, generator=generator)
    return x.to(device), mask.to(device), weights.to(device), 6


def more_than_capacity(generator, device):
    x, weights = torch.randn(50, 4, generator=generator), torch.randn(4, 4, generator=generator)
    mask = torch.arange(50) % 3 > 0
    return x.to(device), mask.to(device), weights.to(device), 7


def matrix_on_meta(generator, device):
    x, weights = torch.empty(9, 4, device="meta"), torch.empty(4, 4, device="meta")
    return x, torch.empty(9, dtype=torch.bool, device="meta"), weights, 6


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter's two ways fail here, each in its own way: one does too much work, the
# other waits for the <i>number</i> of rows. The given function knows the numbers of the rows before it
# needs a product.</details>
# <details><summary>Hint 2</summary>Take exactly <code>capacity</code> rows of <code>x</code>, by their numbers: an index
# of integers has a known size. The true places must come first, in their order; the rows that fill up may be any others,
# if zeros come out. The matrix has little to do now. Time each step that is left, alone.</details>
# <details><summary>Hint 3</summary>A sort puts 100,000 values in order for the sake of 200. <code>cumsum</code> walks
# through the mask once. What does it say at a place that you look for, and at the place before?</details>
# <details><summary>Hint 4</summary>A running count never falls: it is in order already, and <code>searchsorted</code>
# finds in it where 1, 2, 3, … is reached first. A number that is never reached is "found" behind the end: any
# row will do in its place.</details>


# %% id="through_matrix" role="answer"
def through_matrix(x, mask, weights, capacity):
    ### BEGIN SOLUTION
    # The count of true places never falls: the first place with count j is the j-th that is true.
    counts = mask.cumsum(0, dtype=torch.int32)
    ranks = torch.arange(1, capacity + 1, device=x.device, dtype=torch.int32)
    first = torch.searchsorted(counts, ranks).clamp(max=len(x) - 1)
    return torch.where((ranks <= counts[-1])[:, None], x[first] @ weights, 0)
    ### END SOLUTION


# %% id="through_matrix_check" role="test"
check(
    through_matrix,
    like=through_matrix_slow,
    on=[many_and_few, less_than_capacity, more_than_capacity],
    points=1,
)

# %% id="through_matrix_quiet" role="test"
check(
    through_matrix,
    like=through_matrix_slow,
    on=[many_and_few, matrix_on_meta],
    at_most={"syncs": 0, "transfers": 0},
    points=2,
)


# %% id="through_matrix_hidden" role="test"
# Hidden test: no true place, all true, room for all, doubles; no sync. 3 points, when graded.
### BEGIN HIDDEN TESTS
def sized(generator, device, mask, capacity):
    places, dtype = len(mask), torch.float64
    x = torch.randn(places, 3, generator=generator, dtype=dtype)
    weights = torch.randn(3, 3, generator=generator, dtype=dtype)
    return x.to(device), mask.to(device), weights.to(device), capacity


def none_true(generator, device):
    return sized(generator, device, torch.zeros(8, dtype=torch.bool), 3)


def all_true(generator, device):
    return sized(generator, device, torch.ones(8, dtype=torch.bool), 3)


def room_for_one(generator, device):
    return sized(generator, device, torch.rand(40, generator=generator) < 0.5, 1)


def room_for_all(generator, device):
    return sized(generator, device, torch.rand(40, generator=generator) < 0.5, 40)


def last_only(generator, device):
    return sized(generator, device, torch.arange(30) == 29, 5)


check(
    through_matrix,
    like=through_matrix_slow,
    on=[none_true, all_true, room_for_one, room_for_all, last_only],
    at_most={"syncs": 0, "transfers": 0},
    points=3,
)
### END HIDDEN TESTS

# %% id="through_matrix_race" role="test"
race(through_matrix, against=through_matrix_slow, on=many_and_few, at_least={"cpu": 4}, points=2)

# %% [markdown]
# ## 5. One parcel
#
# *Hard, 30 minutes.* A batch is rarely one tensor: it is a dict of lists of tensors, with names and numbers in
# between. The given function sends its tensors one by one. Write `move(batch, device)`, which sends them all at once.
#
# - `batch`: a CPU tensor, or any other value, or a list, tuple or dict of such, as deep as you like. No tensor
#   requires a gradient. Shapes and dtypes differ; a tensor may have no dimensions, or no elements, or not be
#   contiguous.
# - `device`: a string.
# - returns: the same structure. Each tensor is on `device`, with the same shape, dtype and values. All other values
#   are as they were.
# - The result is in new memory, on the CPU, too: whoever made the batch writes the next one into the same tensors.
# - At most one transfer, and Python does not wait for it (`costs` counts no sync). The given tensors must not change.
# - Tensors with one storage have one storage in the result, too, and it travels once. The same tensor in two places is
#   such a case, and so are a tensor and its views. (All may share one in the result.)
# - All memory that a call allocates, here and on `device` together, may be 2.2 times as large as the storages of
#   the batch, each counted once. In the test that is 564 kB.


# %% id="move_given" role="given"
def move_slow(batch, device):
    if isinstance(batch, dict):
        return {key: move_slow(item, device) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(move_slow(item, device) for item in batch)
    return batch.to(device, copy=True) if isinstance(batch, torch.Tensor) else batch


def mixed_batch(generator, device):
    batch = {
        "image": torch.rand(3, 5, generator=generator),
        "labels": [torch.randint(9, (4,), generator=generator), torch.rand(3, generator=generator) < 0.5],
        "weights": (torch.rand(2, 2, generator=generator, dtype=torch.float64), torch.zeros(0, 3)),
        "loss": torch.rand((), generator=generator).to(torch.bfloat16),
        "about": {"name": "cat", "size": (5, 3), "box": None},
    }
    return batch, device


def mixed_to_meta(generator, device):
    return mixed_batch(generator, "cpu")[0], "meta"


def tensor_to_meta(generator, device):
    return torch.rand(3, 4, generator=generator), "meta"


def numbers(generator, device):
    pixels, labels = torch.rand(64, 1000, generator=generator), torch.arange(64)
    return pixels.numpy(), labels.numpy(), device


def numbers_to_meta(generator, device):
    return *numbers(generator, device)[:2], "meta"


# %% [markdown]
# <details><summary>Hint 1</summary>You walk through the batch twice: once to find its tensors and pack them, once to
# put what arrived in their places.</details>
# <details><summary>Hint 2</summary>One parcel for all dtypes is a parcel of bytes. A view of bytes as another dtype
# must begin at a multiple of the dtype's size; 16 suits all, at the price of some bytes. What cannot be viewed
# as bytes: a tensor of no dimensions, and one whose numbers do not lie side by side.</details>
# <details><summary>Hint 3</summary>Pack memory, not tensors: what <code>untyped_storage()</code> gives, each once.
# Two are the same where both <code>data_ptr()</code> and <code>nbytes()</code>, place and size, are the same. A
# dict can hold where in the parcel each begins.</details>
# <details><summary>Hint 4</summary><code>set_</code> lets an empty tensor of bytes look at a whole storage, to be
# packed: also at one whose size is no multiple of a dtype's. And
# <code>tensor.as_strided(shape, strides, offset)</code> is any view of the memory that <code>tensor</code> lies
# in. With the given tensor's <code>shape</code>, <code>stride()</code> and <code>storage_offset()</code> (moved by
# where its memory begins in the parcel, counted in numbers of that dtype), and the parcel viewed as the right
# dtype, it is the tensor that arrived.</details>


# %% id="move" role="answer"
def move(batch, device):
    ### BEGIN SOLUTION
    starts, memories, end = {}, [], 0
    for tensor in tensors_in(batch):
        memory = tensor.untyped_storage()
        if place_of(memory) not in starts:
            starts[place_of(memory)] = end
            memories.append((end, memory.nbytes(), torch.empty(0, dtype=torch.uint8).set_(memory)))
            end += -(-memory.nbytes() // 16) * 16
    # Pinned memory lets the copy to a GPU run beside Python; torch keeps the parcel until it has arrived.
    parcel = torch.empty(end, dtype=torch.uint8, pin_memory=device.startswith("cuda"))
    for start, size, memory in memories:
        parcel[start : start + size] = memory
    arrived = parcel.to(device, non_blocking=True)

    def unpacked(tensor):
        start = starts[place_of(tensor.untyped_storage())] // tensor.element_size()
        offset = start + tensor.storage_offset()
        return arrived.view(tensor.dtype).as_strided(tensor.shape, tensor.stride(), offset)

    return with_tensors(batch, unpacked)


def place_of(memory):
    return memory.data_ptr(), memory.nbytes()  # two arrays of NumPy may begin at the same place


def tensors_in(batch):
    if isinstance(batch, torch.Tensor):
        return [batch]
    items = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else []
    return [tensor for item in items for tensor in tensors_in(item)]


def with_tensors(batch, change):
    if isinstance(batch, dict):
        return {key: with_tensors(item, change) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(with_tensors(item, change) for item in batch)
    return change(batch) if isinstance(batch, torch.Tensor) else batch
    ### END SOLUTION


# %% id="move_check" role="test"
check(move, like=move_slow, on=mixed_batch, shares=False, points=1)

# %% id="move_once" role="test"
check(
    move,
    like=move_slow,
    on=[mixed_to_meta, tensor_to_meta],
    at_most={"transfers": 1, "syncs": 0},
    points=2,
)


# %% id="move_shared" role="test"
# 256 kB of pixels in six places, and 512 bytes of labels.
def batch_of(pixels, labels):
    x = torch.from_numpy(pixels)
    views = [x[:32], x[32:], x[:, ::2]]
    return {"pixels": x, "again": (x, x.T), "views": views, "labels": torch.from_numpy(labels)}


def move_shared(pixels, labels, device):
    return move(batch_of(pixels, labels), device)


def move_shared_slow(pixels, labels, device):
    return move_slow(batch_of(pixels, labels), device)


check(
    move_shared,
    like=move_shared_slow,
    on=[numbers, numbers_to_meta],
    at_most={"bytes": 564_000, "transfers": 1, "syncs": 0},
    points=3,
)


# %% id="move_hidden" role="test"
# Hidden test: odd sizes of all types, nothing to send, only empty tensors. 2 points, when graded.
### BEGIN HIDDEN TESTS
def odd_sizes(generator, device):
    names = ["bool", "float64", "int16", "int64", "uint8", "float32", "bfloat16", "int32"]
    dtypes = [getattr(torch, name) for name in names]
    made = [torch.randint(2, (n + 1,), generator=generator).to(dtype) for n, dtype in enumerate(dtypes)]
    return (made, [[[made[3].view(2, 2)]]]), device


def odd_to_meta(generator, device):
    return odd_sizes(generator, device)[0], "meta"


def no_tensors(generator, device):
    return {"a": [1, 2.5, "three"], "b": (), "c": {}}, device


def no_tensors_to_meta(generator, device):
    return [None, {"a": []}], "meta"


def only_empty(generator, device):
    return [torch.zeros(0, 3), {"a": torch.zeros(2, 0, dtype=torch.int64)}], device


def one_number(generator, device):
    return torch.rand((), generator=generator), device


check(
    move,
    like=move_slow,
    on=[odd_sizes, odd_to_meta, no_tensors, no_tensors_to_meta, only_empty, one_number],
    at_most={"transfers": 1, "syncs": 0},
    shares=False,
    points=2,
)
### END HIDDEN TESTS

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
def centred(x):
    return x - x.mean(dim=0)


def numbered(x):
    return x[:, 0] + torch.arange(len(x)).float()


def shortened(x):
    largest = x.abs().max()
    return x / largest if largest > 1 else x


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (centred, numbered, shortened)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>centred</code> is of chapter 00, <code>numbered</code> is of chapter 01,
# <code>shortened</code> is of chapter 02.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(shortened, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "centred": {"operations": 2, "bytes": 4 * d + 4 * n * d, "syncs": 0},
        "numbered": {"operations": 3, "bytes": 8 * n + 4 * n + 4 * n, "syncs": 0},
        "shortened": {"operations": 5, "bytes": 8 * n * d + 5, "syncs": 1},
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
