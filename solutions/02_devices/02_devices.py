# %% [markdown]
# # Exercises 02 · Devices
#
# Five small programs. They fail on another device, send too much, or wait where nobody needs to wait. Mend them.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` lines there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. Hidden tests run when your notebook is graded.
#
# You need no GPU. Some tests put the inputs on the `meta` device: an answer that makes a tensor in the wrong
# place, or asks for a value, fails there as it would on a GPU. Some tests count transfers and syncs.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/02_devices.ipynb). 30 points, about 70 minutes.

# %% id="setup" role="given"
import math

import torch
from torch import nn

from autograder import check, race

# %% [markdown]
# ## 1. Coordinates as channels
#
# *Easy, 10 minutes.* A convolution does not know where in a picture it is. One remedy is to add two channels
# that say so. Write `with_coordinates(images)`.
#
# - `images`: floating-point tensor of shape `(N, C, H, W)`, on any device; all sizes at least 1.
# - returns: tensor of shape `(N, C + 2, H, W)`, of the same dtype and on the same device: the channels of
#   `images`, then one with the height, then one with the width. Heights go from -1 in the first row to 1 in
#   the last, in equal steps; widths the same from left to right. A single row or column gets -1.
# - Nothing may travel between devices.


# %% id="with_coordinates_given" role="given"
def with_coordinates_slow(images):
    _, _, height, width = images.shape
    results = []
    for image in images:
        ys = [[2 * i / max(height - 1, 1) - 1 for j in range(width)] for i in range(height)]
        xs = [[2 * j / max(width - 1, 1) - 1 for j in range(width)] for i in range(height)]
        grid = torch.tensor([ys, xs], dtype=torch.float64).to(images.device).to(images.dtype)
        results.append(torch.cat([image, grid]))
    return torch.stack(results)


def pictures(generator, device):
    return torch.rand(8, 3, 32, 32, generator=generator).to(device)


def pictures_on_meta(generator, device):
    return torch.empty(2, 3, 8, 6, dtype=torch.float64, device="meta")


# %% [markdown]
# <details><summary>Hint 1</summary>All pictures get the same two channels. One row of numbers is enough for
# each, and <code>torch.linspace</code> makes such a row.</details>
# <details><summary>Hint 2</summary>Functions that create tensors take <code>device=</code> and
# <code>dtype=</code>. The input knows both.</details>
# <details><summary>Hint 3</summary><code>view</code> gives the row the right number of dimensions,
# <code>expand</code> repeats it without a copy, and one <code>torch.cat</code> joins all.</details>


# %% id="with_coordinates" role="answer"
def with_coordinates(images):
    ### BEGIN SOLUTION
    batch, _, height, width = images.shape
    like = {"device": images.device, "dtype": images.dtype}
    ys = torch.linspace(-1, 1, height, **like).view(1, 1, height, 1).expand(batch, 1, height, width)
    xs = torch.linspace(-1, 1, width, **like).view(1, 1, 1, width).expand(batch, 1, height, width)
    return torch.cat([images, ys, xs], dim=1)
    ### END SOLUTION


# %% id="with_coordinates_check" role="test"
check(with_coordinates, like=with_coordinates_slow, on=pictures, points=1)

# %% id="with_coordinates_meta" role="test"
check(
    with_coordinates,
    like=with_coordinates_slow,
    on=pictures_on_meta,
    at_most={"transfers": 0},
    points=1,
)


# %% id="with_coordinates_hidden" role="test"
# Hidden test: other sizes and types, a single row, a single pixel. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def wide_doubles(generator, device):
    return torch.rand(2, 1, 5, 17, generator=generator, dtype=torch.float64).to(device)


def half_precision(generator, device):
    return torch.rand(3, 2, 9, 4, generator=generator).to(torch.bfloat16).to(device)


def single_row(generator, device):
    return torch.rand(2, 3, 1, 7, generator=generator).to(device)


def single_pixel(generator, device):
    return torch.rand(1, 1, 1, 1, generator=generator).to(device)


check(
    with_coordinates,
    like=with_coordinates_slow,
    on=[wide_doubles, half_precision, single_row, single_pixel],
    points=2,
)
### END HIDDEN TESTS

# %% id="with_coordinates_race" role="test"
race(
    with_coordinates,
    against=with_coordinates_slow,
    on=pictures,
    at_least={"cpu": 10, "cuda": 5},
    points=2,
)

# %% [markdown]
# ## 2. A module that travels
#
# *Medium, 20 minutes.* The given function scales its input and adds a table of sines and cosines, which it
# makes anew at every call. Write the module `Positions(length, width, scale)` that does the same.
#
# - `length`, `width`: integers, at least 1; `width` is even. `scale`: a float.
# - Calling it with `x` of shape `(N, n, width)`, where `n` is at most `length`, gives `x * scale` plus the first
#   `n` rows of the table. A larger `n` must raise `ValueError`.
# - `.to(device)` and `.to(dtype)` move everything. After that, a call moves nothing: the result has the dtype and
#   the device of the module and of `x`, which agree.
# - The `state_dict` has exactly one key: `scale`, a tensor of no dimensions. Loading another scale must change what
#   the module does. The table is not saved.
# - Nothing in it is a parameter.


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
    return x * scale + torch.tensor(rows, dtype=x.dtype, device=x.device)


def sentences(generator, device):
    return torch.rand(4, 20, 16, generator=generator).to(device), 50, 16, 1.5


def sentences_on_meta(generator, device):
    return torch.empty(4, 20, 16, dtype=torch.bfloat16, device="meta"), 50, 16, 1.5


def too_long(generator, device):
    return torch.rand(2, 9, 4, generator=generator).to(device), 8, 4, 1.0


def arguments_only(generator, device):
    return 50, 16, 1.5


# %% [markdown]
# <details><summary>Hint 1</summary>The table depends on the arguments of <code>__init__</code> only. Make it
# there, once, for all positions; <code>forward</code> takes a slice.</details>
# <details><summary>Hint 2</summary>Two buffers: one that is saved, and one that is not.
# Look at <code>persistent</code>.</details>
# <details><summary>Hint 3</summary>For the table: positions as a column, frequencies as a row, their product is
# the table of angles. Its sines belong in columns 0, 2, 4, …, its cosines in columns 1, 3, 5, …</details>


# %% id="positions" role="answer"
class Positions(nn.Module):
    def __init__(self, length, width, scale):
        super().__init__()
        ### BEGIN SOLUTION
        frequencies = 10000 ** (-torch.arange(0, width, 2) / width)
        angles = torch.arange(length)[:, None] * frequencies
        table = torch.stack([angles.sin(), angles.cos()], dim=2).view(length, width)
        self.register_buffer("table", table, persistent=False)
        self.register_buffer("scale", torch.tensor(float(scale)))
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        if x.shape[1] > len(self.table):
            raise ValueError(f"at most {len(self.table)} positions, not {x.shape[1]}")
        return x * self.scale + self.table[: x.shape[1]]
        ### END SOLUTION


# %% id="positions_check" role="test"
def use(x, length, width, scale):
    module = Positions(length, width, scale)
    module.to(x.device)
    return module(x)


check(use, like=positions_slow, on=sentences, points=1)


# %% id="positions_moves" role="test"
# The module is moved once and called ten times. Only its own tensors may travel, and only once.
def move_and_use(x, length, width, scale):
    module = Positions(length, width, scale)
    module.to(x.device)
    module.to(x.dtype)
    return [module(x) for _ in range(10)]


def use_ten_times(x, length, width, scale):
    return [positions_slow(x, length, width, scale) for _ in range(10)]


check(move_and_use, like=use_ten_times, on=sentences_on_meta, at_most={"transfers": 4}, points=2)


# %% id="positions_saved" role="test"
def saved(length, width, scale):
    return dict(Positions(length, width, scale).state_dict())


def only_scale(length, width, scale):
    return {"scale": torch.tensor(scale)}


check(saved, like=only_scale, on=arguments_only, points=1)

# %% id="positions_length" role="test"
check(use, like=positions_slow, on=too_long, raises=ValueError, points=1)


# %% id="positions_hidden" role="test"
# Hidden test: other sizes, and a module whose scale was loaded. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def use_loaded(x, length, width, scale):
    module = Positions(length, width, 1.0)
    module.load_state_dict({"scale": torch.tensor(scale)})
    module.to(x.device)
    return module(x)


def full_length(generator, device):
    return torch.rand(2, 8, 4, generator=generator).to(device), 8, 4, -2.0


def one_position(generator, device):
    return torch.rand(3, 1, 2, generator=generator).to(device), 1, 2, 3.0


def no_position(generator, device):
    return torch.rand(3, 0, 6, generator=generator).to(device), 5, 6, 3.0


def use_both(x, length, width, scale):
    return use(x, length, width, scale), use_loaded(x, length, width, scale)


def slow_twice(x, length, width, scale):
    if x.shape[1] == 0:
        return x * scale, x * scale
    return positions_slow(x, length, width, scale), positions_slow(x, length, width, scale)


check(use_both, like=slow_twice, on=[full_length, one_position, no_position], points=2)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Clip without asking
#
# *Easy, 10 minutes.* The given function reads the norm of every row into Python to decide about the row. Write
# `clip_rows(rows, limit)`, which decides on the device.
#
# - `rows`: floating-point tensor of shape `(N, D)`, on any device. `limit`: a number above 0.
# - returns: a new tensor like `rows`. A row whose Euclidean norm is above `limit` is scaled down so that its norm
#   is `limit`. All other rows, those of zeros too, stay as they are.
# - No sync is allowed, and nothing may travel. `rows` itself must not change.


# %% id="clip_rows_given" role="given"
def clip_rows_slow(rows, limit):
    result = rows.clone()
    for i in range(len(rows)):
        norm = rows[i].norm().item()
        if norm > limit:
            result[i] = rows[i] * (limit / norm)
    return result


def shape_of_rows(rows, limit):
    return torch.empty_like(rows)


def many_rows(generator, device):
    sizes = 4 * torch.rand(300, 1, generator=generator)
    return (sizes * torch.randn(300, 16, generator=generator)).to(device), 8.0


def rows_on_meta(generator, device):
    return torch.empty(12, 5, device="meta"), 2.0


# %% [markdown]
# <details><summary>Hint 1</summary>All norms at once: <code>norm</code> takes <code>dim</code>, and
# <code>keepdim=True</code> keeps the shape ready for broadcasting.</details>
# <details><summary>Hint 2</summary>Every row can be multiplied by a factor. What is the factor of a row that
# stays? What happens to it in a row of zeros?</details>


# %% id="clip_rows" role="answer"
def clip_rows(rows, limit):
    ### BEGIN SOLUTION
    norms = rows.norm(dim=1, keepdim=True)
    return torch.where(norms > limit, rows * (limit / norms), rows)
    ### END SOLUTION


# %% id="clip_rows_check" role="test"
check(clip_rows, like=clip_rows_slow, on=many_rows, at_most={"syncs": 0, "transfers": 0}, points=1)

# %% id="clip_rows_meta" role="test"
check(clip_rows, like=shape_of_rows, on=rows_on_meta, at_most={"transfers": 0}, points=1)


# %% id="clip_rows_hidden" role="test"
# Hidden test: rows of zeros, no rows, doubles, all rows below the limit. 2 points, when graded.
### BEGIN HIDDEN TESTS
def rows_of_zeros(generator, device):
    rows = torch.randn(6, 4, generator=generator)
    rows[::2] = 0
    return rows.to(device), 0.5


def no_rows(generator, device):
    return torch.zeros(0, 4, device=device), 1.0


def small_doubles(generator, device):
    return torch.rand(7, 3, generator=generator, dtype=torch.float64).to(device), 10.0


def large_doubles(generator, device):
    return 50 + torch.rand(7, 3, generator=generator, dtype=torch.float64).to(device), 1


check(clip_rows, like=clip_rows_slow, on=[rows_of_zeros, no_rows, small_doubles, large_doubles], points=2)
### END HIDDEN TESTS

# %% id="clip_rows_race" role="test"
race(clip_rows, against=clip_rows_slow, on=many_rows, at_least={"cpu": 15, "cuda": 20}, points=2)

# %% [markdown]
# ## 4. The mean of what is there
#
# *Medium, 15 minutes.* Sentences of different lengths were padded to one length, and a mask says which places
# are true ones. The given function takes the rows one by one, with a boolean index. Write
# `masked_mean(x, mask)` without one.
#
# - `x`: floating-point tensor of shape `(N, L, D)`, on any device. `mask`: `bool` tensor of shape `(N, L)`, on the
#   same device.
# - returns: tensor of shape `(N, D)`, dtype and device of `x`: for each row the mean of the places where `mask`
#   is true, and 0 where there is none.
# - The other places may hold anything, NaN and infinity too. It must not reach the result.
# - Gradients must reach `x`. No sync is allowed.


# %% id="masked_mean_given" role="given"
def masked_mean_slow(x, mask):
    means = []
    for row, chosen in zip(x, mask, strict=True):
        count = int(chosen.sum())
        means.append(row[chosen].sum(dim=0) / max(count, 1))
    return torch.stack(means)


def shape_of_means(x, mask):
    return x.new_empty(x.shape[0], x.shape[2])


def padded(generator, device):
    lengths = torch.randint(1, 33, (200, 1), generator=generator)
    mask = torch.arange(32) < lengths
    return torch.randn(200, 32, 8, generator=generator).to(device), mask.to(device)


def padded_with_nan(generator, device):
    x = torch.randn(5, 6, 3, generator=generator)
    mask = torch.arange(6) < torch.tensor([[6], [1], [3], [4], [2]])
    x[~mask] = float("nan")
    return x.to(device), mask.to(device)


def padded_on_meta(generator, device):
    return torch.empty(5, 6, 3, device="meta"), torch.empty(5, 6, dtype=torch.bool, device="meta")


# %% [markdown]
# <details><summary>Hint 1</summary>A mean is a sum divided by a count. Both are sums along one dimension, for all
# rows together.</details>
# <details><summary>Hint 2</summary>What stands in the other places must become 0 before the sum. Multiplying by 0
# is not enough; the chapter shows why.</details>
# <details><summary>Hint 3</summary>The mask needs one more dimension, and a count of 0 must not divide:
# <code>clamp</code>.</details>


# %% id="masked_mean" role="answer"
def masked_mean(x, mask):
    ### BEGIN SOLUTION
    wanted = mask[:, :, None]
    return torch.where(wanted, x, 0).sum(dim=1) / wanted.sum(dim=1).clamp(min=1)
    ### END SOLUTION


# %% id="masked_mean_check" role="test"
check(
    masked_mean,
    like=masked_mean_slow,
    on=[padded, padded_with_nan],
    gradients=True,
    at_most={"syncs": 0, "transfers": 0},
    points=1,
)

# %% id="masked_mean_meta" role="test"
check(masked_mean, like=shape_of_means, on=padded_on_meta, at_most={"transfers": 0}, points=1)


# %% id="masked_mean_hidden" role="test"
# Hidden test: empty rows, holes in the mask, infinity, doubles. 3 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def holes_and_infinity(generator, device):
    x = torch.randn(9, 7, 4, generator=generator, dtype=torch.float64)
    mask = torch.rand(9, 7, generator=generator) < 0.5
    mask[0] = False
    mask[1] = True
    x[~mask] = float("inf")
    return x.to(device), mask.to(device)


def almost_nothing(generator, device):
    mask = torch.zeros(3, 4, dtype=torch.bool)
    mask[1, 2] = True
    return torch.randn(3, 4, 2, generator=generator).to(device), mask.to(device)


def one_place(generator, device):
    return torch.randn(6, 1, 1, generator=generator).to(device), torch.ones(
        6, 1, dtype=torch.bool, device=device
    )


check(
    masked_mean,
    like=masked_mean_slow,
    on=[holes_and_infinity, almost_nothing, one_place],
    gradients=True,
    points=3,
)
### END HIDDEN TESTS

# %% id="masked_mean_race" role="test"
race(masked_mean, against=masked_mean_slow, on=padded, at_least={"cpu": 8, "cuda": 10}, points=2)

# %% [markdown]
# ## 5. One parcel
#
# *Medium, 15 minutes.* Many small tensors must go to a device. The given function sends them one by one. Write
# `send(tensors, device)`, which makes a single transfer.
#
# - `tensors`: list of CPU tensors of one dtype. Their shapes differ: no dimensions, several, or no elements
#   at all. The list may be empty.
# - `device`: a string.
# - returns: a list of tensors on `device` with the same shapes and values, in the same order.
# - At most one transfer. The given tensors must not change.


# %% id="send_given" role="given"
def send_slow(tensors, device):
    return [tensor.to(device) for tensor in tensors]


def small_tensors(generator, device):
    shapes = [(3,), (2, 4), (), (5, 1, 2), (1,)]
    return [torch.rand(shape, generator=generator) for shape in shapes], device


def to_meta(generator, device):
    return [torch.rand(n, 3, generator=generator) for n in range(1, 40)], "meta"


# %% [markdown]
# <details><summary>Hint 1</summary>Tensors of different shapes can be joined when each has one
# dimension.</details>
# <details><summary>Hint 2</summary>After the journey: <code>split</code> takes a list of sizes and gives views.
# Their shapes you know from before.</details>


# %% id="send" role="answer"
def send(tensors, device):
    ### BEGIN SOLUTION
    if not tensors:
        return []
    parcel = torch.cat([tensor.reshape(-1) for tensor in tensors]).to(device)
    pieces = parcel.split([tensor.numel() for tensor in tensors])
    return [piece.view(tensor.shape) for piece, tensor in zip(pieces, tensors, strict=True)]
    ### END SOLUTION


# %% id="send_check" role="test"
check(send, like=send_slow, on=small_tensors, points=1)

# %% id="send_once" role="test"
check(send, like=send_slow, on=to_meta, at_most={"transfers": 1}, points=2)


# %% id="send_hidden" role="test"
# Hidden test: integers, tensors without elements, no tensors. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def integers(generator, device):
    return [torch.randint(100, (n, 2), generator=generator) for n in (4, 0, 1, 0)], device


def integers_to_meta(generator, device):
    return [torch.randint(100, (n, 2), generator=generator) for n in (4, 0, 1, 0)], "meta"


def only_empty(generator, device):
    return [torch.zeros(0, 3), torch.zeros(2, 0)], device


def no_tensors(generator, device):
    return [], device


check(
    send,
    like=send_slow,
    on=[integers, integers_to_meta, only_empty, no_tensors],
    at_most={"transfers": 1},
    points=1,
)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
