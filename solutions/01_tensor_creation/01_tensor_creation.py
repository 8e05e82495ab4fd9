# %% [markdown]
# # Exercises 01 · Creating tensors
#
# Five functions. Each is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden tests
# run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/01_tensor_creation.ipynb). 30 points, about 60 minutes.

# %% id="setup" role="given"
import math

import numpy as np
import torch

from autograder import check, race

# %% [markdown]
# ## 1. One-hot rows
#
# *Easy, 8 minutes.* Write `one_hot(labels, classes)`.
#
# - `labels`: `int64` tensor of shape `(N,)`, on any device; values from 0 to `classes - 1`.
# - returns: `float32` tensor of shape `(N, classes)` on the same device. Row *i* holds 1 at `labels[i]` and 0
#   elsewhere.
# - A label outside the range must raise `IndexError` or `RuntimeError`, not give a wrong row.


# %% id="one_hot_given" role="given"
def one_hot_slow(labels, classes):
    table = torch.zeros(len(labels), classes, device=labels.device)
    for i, label in enumerate(labels.tolist()):
        if not 0 <= label < classes:
            raise IndexError(f"label {label} is not in 0 to {classes - 1}")
        table[i, label] = 1
    return table


def many_labels(generator, device):
    return torch.randint(10, (1000,), generator=generator).to(device), 10


def label_out_of_range(generator, device):
    return torch.tensor([0, 3, 1]), 3


def negative_label(generator, device):
    return torch.tensor([-1, 0, 1]), 3


# %% [markdown]
# <details><summary>Hint 1</summary>Make the zeros once. Then write all the ones with a single call.</details>
# <details><summary>Hint 2</summary>Look up <code>Tensor.scatter_</code>, or think of the rows of
# <code>torch.eye</code> and how you would pick some of them. (Mind that a negative index counts from the end.)</details>


# %% id="one_hot" role="answer"
def one_hot(labels, classes):
    ### BEGIN SOLUTION
    table = torch.zeros(len(labels), classes, device=labels.device)
    return table.scatter_(1, labels[:, None], 1)
    ### END SOLUTION


# %% id="one_hot_check" role="test"
check(one_hot, like=one_hot_slow, on=many_labels, points=1)


# %% id="one_hot_hidden" role="test"
# Hidden test: other sizes, no labels at all, one class. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def few_labels(generator, device):
    return torch.randint(3, (7,), generator=generator).to(device), 5


def no_labels(generator, device):
    return torch.zeros(0, dtype=torch.int64, device=device), 4


def one_class(generator, device):
    return torch.zeros(6, dtype=torch.int64, device=device), 1


check(one_hot, like=one_hot_slow, on=[few_labels, no_labels, one_class], points=2)
### END HIDDEN TESTS

# %% id="one_hot_range" role="test"
check(
    one_hot,
    like=one_hot_slow,
    on=[label_out_of_range, negative_label],
    raises=(IndexError, RuntimeError),
    points=1,
)

# %% id="one_hot_race" role="test"
race(one_hot, against=one_hot_slow, on=many_labels, at_least={"cpu": 15, "cuda": 20}, points=2)

# %% [markdown]
# ## 2. A positional table
#
# *Medium, 12 minutes.* Transformers add a table of sines and cosines to their inputs. Write
# `positional_table(length, width, base, device)`.
#
# - `length`, `width`: numbers, at least 1; `width` is even. `base`: a number, often 10,000. `device`: a string.
# - returns: `float32` tensor of shape `(length, width)` on `device`, where
#   `table[p, 2 * i] = sin(p / base ** (2 * i / width))` and `table[p, 2 * i + 1]` is the cosine of the same angle.
#   `float32` angles are exact enough.
# - An odd `width` must raise `ValueError`.


# %% id="positional_table_given" role="given"
def positional_table_slow(length, width, base, device):
    if width % 2:
        raise ValueError(f"width must be even, not {width}")
    rows = []
    for p in range(length):
        row = []
        for i in range(width // 2):
            angle = p / base ** (2 * i / width)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows, device=device)


def sentence(generator, device):
    base = float(torch.empty(()).uniform_(5_000, 20_000, generator=generator))
    return 256, 64, base, device


def odd_width(generator, device):
    return 4, 5, 10_000, device


# %% [markdown]
# <details><summary>Hint 1</summary>All positions are one <code>torch.arange</code>, all frequencies another.
# A column times a row gives the whole table of angles.</details>
# <details><summary>Hint 2</summary>Allocate the result once with <code>torch.empty</code>. Its even columns
# are a slice that you can write to.</details>


# %% id="positional_table" role="answer"
def positional_table(length, width, base, device):
    ### BEGIN SOLUTION
    if width % 2:
        raise ValueError(f"width must be even, not {width}")
    positions = torch.arange(length, device=device, dtype=torch.float32)
    frequencies = base ** (-torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)
    angles = positions[:, None] * frequencies
    table = torch.empty(length, width, device=device)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table
    ### END SOLUTION


# %% id="positional_table_check" role="test"
check(positional_table, like=positional_table_slow, on=sentence, points=1)


# %% id="positional_table_hidden" role="test"
# Hidden test: other sizes, a single position, the smallest width. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def some_sizes(generator, device):
    length = int(torch.randint(2, 50, (), generator=generator))
    return length, 2 * int(torch.randint(2, 20, (), generator=generator)), 500.0, device


def one_position(generator, device):
    return 1, 10, 10_000, device


def two_columns(generator, device):
    return 9, 2, 10_000, device


check(positional_table, like=positional_table_slow, on=[some_sizes, one_position, two_columns], points=2)
### END HIDDEN TESTS

# %% id="positional_table_odd" role="test"
check(positional_table, like=positional_table_slow, on=odd_width, raises=ValueError, points=1)

# %% id="positional_table_race" role="test"
race(
    positional_table,
    against=positional_table_slow,
    on=sentence,
    at_least={"cpu": 8, "cuda": 8},
    points=2,
)

# %% [markdown]
# ## 3. Wrap an array
#
# *Easy, 10 minutes.* Write `wrap(array)`, which makes a tensor of a NumPy array, and copies only where it must.
#
# - `array`: a NumPy array of numbers, of any shape.
# - returns: a CPU tensor with the same values, shape and type.
# - Where the array is writable and none of its strides is negative, the tensor must share its memory.
# - A read-only array must be copied, or somebody could write to it through the tensor. A reversed array
#   (`array[::-1]`) must be copied, because torch knows no negative strides.


# %% id="wrap_given" role="given"
def wrap_slow(array):
    return torch.tensor(array.copy())


def large_array(generator, device):
    return torch.rand(1_000_000, generator=generator).numpy()


def read_only_array(generator, device):
    array = torch.rand(5, 3, generator=generator).numpy()
    array.flags.writeable = False
    return array


# %% [markdown]
# <details><summary>Hint 1</summary><code>torch.from_numpy</code> shares. When is it allowed to?</details>
# <details><summary>Hint 2</summary>An array knows: <code>array.flags.writeable</code> and
# <code>array.strides</code>.</details>


# %% id="wrap" role="answer"
def wrap(array):
    ### BEGIN SOLUTION
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)
    ### END SOLUTION


# %% id="wrap_check" role="test"
check(wrap, like=wrap_slow, on=large_array, shares=True, points=1)

# %% id="wrap_copies" role="test"
check(wrap, like=wrap_slow, on=read_only_array, shares=False, points=1)


# %% id="wrap_hidden" role="test"
# Hidden test: reversed arrays, other shapes and types. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def reversed_array(generator, device):
    return torch.rand(11, generator=generator).numpy()[::-1]


def flipped_columns(generator, device):
    return torch.randint(100, (4, 6), generator=generator).numpy()[:, ::-1]


def read_only_integers(generator, device):
    array = torch.randint(100, (4, 6), generator=generator).numpy()
    array.flags.writeable = False
    return array


check(
    wrap,
    like=wrap_slow,
    on=[reversed_array, flipped_columns, read_only_integers],
    shares=False,
    points=2,
)
### END HIDDEN TESTS


# %% id="wrap_hidden_shares" role="test"
# Hidden test: more arrays that must be shared. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def every_other(generator, device):
    return torch.rand(20, 4, generator=generator).double().numpy()[::2]


def transposed(generator, device):
    return torch.rand(3, 5, generator=generator).numpy().T


def truth_values(generator, device):
    return (torch.rand(2, 3, 4, generator=generator) < 0.5).numpy()


check(wrap, like=wrap_slow, on=[every_other, transposed, truth_values], shares=True, points=1)
### END HIDDEN TESTS

# %% id="wrap_race" role="test"
race(wrap, against=wrap_slow, on=large_array, at_least={"cpu": 7}, points=1)

# %% [markdown]
# ## 4. A batch of pictures
#
# *Medium, 12 minutes.* A loader gives you a list of pictures as NumPy arrays. Write `stack_images(images)`.
#
# - `images`: list of *N* arrays of shape `(H, W, 3)` and type `uint8`, all of the same size.
# - returns: `float32` CPU tensor of shape `(N, 3, H, W)` with values from 0 to 1 (255 becomes 1). Its strides
#   do not matter.
# - An empty list, or pictures of different sizes, must raise `ValueError`.


# %% id="stack_images_given" role="given"
def stack_images_slow(images):
    if not images or any(image.shape != images[0].shape for image in images):
        raise ValueError("stack_images needs one picture or more, all of the same size")
    batch = torch.tensor([image.tolist() for image in images], dtype=torch.float32)
    return batch.permute(0, 3, 1, 2) / 255


def pictures(generator, device):
    return (list(torch.randint(256, (4, 48, 48, 3), generator=generator, dtype=torch.uint8).numpy()),)


def no_pictures(generator, device):
    return ([],)


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter has a list of arrays, too. Which NumPy function copies whole
# arrays into one?</details>
# <details><summary>Hint 2</summary>Move the bytes first and convert them afterwards: a <code>uint8</code> is a
# quarter of a <code>float32</code>. <code>permute</code> copies nothing.</details>


# %% id="stack_images" role="answer"
def stack_images(images):
    ### BEGIN SOLUTION
    batch = torch.from_numpy(np.stack(images))
    return batch.permute(0, 3, 1, 2) / 255
    ### END SOLUTION


# %% id="stack_images_check" role="test"
check(stack_images, like=stack_images_slow, on=pictures, points=1)

# %% id="stack_images_empty" role="test"
check(stack_images, like=stack_images_slow, on=no_pictures, raises=ValueError, points=1)


# %% id="stack_images_hidden" role="test"
# Hidden test: other sizes, a single picture, pictures cut out of larger ones. 2 points, when graded.
### BEGIN HIDDEN TESTS
def wide_pictures(generator, device):
    return (list(torch.randint(256, (3, 5, 17, 3), generator=generator, dtype=torch.uint8).numpy()),)


def one_picture(generator, device):
    return (list(torch.randint(256, (1, 8, 8, 3), generator=generator, dtype=torch.uint8).numpy()),)


def cut_outs(generator, device):
    large = torch.randint(256, (3, 20, 20, 3), generator=generator, dtype=torch.uint8).numpy()
    return ([picture[2:9, 4:15] for picture in large],)


check(stack_images, like=stack_images_slow, on=[wide_pictures, one_picture, cut_outs], points=2)
### END HIDDEN TESTS

# %% id="stack_images_race" role="test"
race(stack_images, against=stack_images_slow, on=pictures, at_least={"cpu": 12}, points=2)

# %% [markdown]
# ## 5. Rows of different lengths
#
# *Medium, 15 minutes.* Sentences have different lengths; a batch is a rectangle. Write `pad(rows, value)`.
#
# - `rows`: list of *N* tensors of one dimension, all of the same type and on the same device. Lengths differ
#   and may be 0.
# - returns: tensor of shape `(N, longest)` of that type and on that device: row *i* holds `rows[i]`, followed
#   by `value`.
# - An empty list must raise `ValueError`. The given tensors must not be changed.


# %% id="pad_given" role="given"
def pad_slow(rows, value):
    if not rows:
        raise ValueError("pad needs one row or more")
    longest = max(len(row) for row in rows)
    batch = rows[0].new_empty(0, longest)
    for row in rows:
        filler = torch.tensor([value] * (longest - len(row)), dtype=row.dtype, device=row.device)
        batch = torch.cat([batch, torch.cat([row, filler])[None]])
    return batch


def sentences(generator, device):
    lengths = torch.randint(1, 100, (100,), generator=generator).tolist()
    return [torch.randint(50_000, (n,), generator=generator).to(device) for n in lengths], 0


def no_rows(generator, device):
    return [], 0


# %% [markdown]
# <details><summary>Hint 1</summary>How large is the result? You know before you copy the first row.</details>
# <details><summary>Hint 2</summary><code>new_full</code> makes a tensor of the right type on the right device,
# filled with <code>value</code>.</details>
# <details><summary>Hint 3</summary>torch has a function for exactly this among its tools for recurrent
# networks: <code>torch.nn.utils.rnn</code>.</details>


# %% id="pad" role="answer"
def pad(rows, value):
    ### BEGIN SOLUTION
    if not rows:
        raise ValueError("pad needs one row or more")
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
    ### END SOLUTION


# %% id="pad_check" role="test"
check(pad, like=pad_slow, on=sentences, points=1)

# %% id="pad_empty" role="test"
check(pad, like=pad_slow, on=no_rows, raises=ValueError, points=1)


# %% id="pad_hidden" role="test"
# Hidden test: other types and values, empty rows, a single row. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def measurements(generator, device):
    lengths = torch.randint(0, 9, (6,), generator=generator).tolist()
    return [torch.randn(n, generator=generator).to(device) for n in [*lengths, 9]], -1.5


def single_row(generator, device):
    return [torch.arange(4, device=device)], 7


def only_empty_rows(generator, device):
    return [torch.zeros(0, device=device)] * 3, 1


check(pad, like=pad_slow, on=[measurements, single_row, only_empty_rows], points=2)
### END HIDDEN TESTS

# %% id="pad_race" role="test"
race(pad, against=pad_slow, on=sentences, at_least={"cpu": 2, "cuda": 2}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
