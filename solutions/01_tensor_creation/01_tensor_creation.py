# %% [markdown]
# # Exercises 01 · Creating tensors
#
# Five functions, each given in a slow version that is right, and a table that grows. Write fast ones.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden tests
# run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# `costs`, which the chapter uses, counts what a call costs: `from autograder import costs`, then
# `print(costs(function, *inputs))`.
# The chapter is [here](../../course/01_tensor_creation.ipynb). 40 points, about 93 minutes.

# %% id="setup" role="given"
import math

import numpy as np
import torch

from autograder import check, costs, race

# %% [markdown]
# ## 1. One-hot rows
#
# *Easy, 8 minutes.* Write `one_hot(labels, classes)`.
#
# - `labels`: `int64` tensor of shape `(N,)`, on any device; values from 0 to `classes - 1`.
# - returns: `float32` tensor of shape `(N, classes)` on the same device. Row *i* holds 1 at `labels[i]` and 0
#   elsewhere.
# - A label outside the range must raise `IndexError` or `RuntimeError`, not give a wrong row. (On a GPU, to wait for
#   the answer is allowed.)


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
# *Hard, 20 minutes.* Transformers add a table of sines and cosines to their inputs. Write
# `positional_table(length, width, base, device)`.
#
# - `length`, `width`: whole numbers, at least 1. `base`: a number, often 10,000. `device`: a string.
# - returns: `float32` tensor of shape `(length, width)` on `device`, where
#   `table[p, 2 * i] = sin(p / base ** (2 * i / width))` and `table[p, 2 * i + 1]` is the cosine of the same angle.
# - Every number must be right to five digits (to 0.00001), also in a text of 30,000 words.
# - An odd `width` must raise `ValueError`.
#
# A first right answer earns only a part of the race's points on most machines. Measure.


# %% id="positional_table_given" role="given"
def positional_table_slow(length, width, base, device):
    if width % 2:
        raise ValueError(f"width must be even, not {width}")
    positions = torch.arange(length, dtype=torch.float64, device=device)
    columns = []
    for i in range(width // 2):
        angles = positions / base ** (2 * i / width)
        columns += [angles.sin(), angles.cos()]
    return torch.stack(columns, dim=1).float()


def sentence(generator, device):
    base = float(torch.empty(()).uniform_(5_000, 20_000, generator=generator))
    return 256, 64, base, device


def chapter_of_a_book(generator, device):
    base = float(torch.empty(()).uniform_(5_000, 20_000, generator=generator))
    return 2048, 128, base, device


def long_text(generator, device):
    return 30_000, 8, 10_000, device


def odd_width(generator, device):
    return 4, 5, 10_000, device


# %% [markdown]
# <details><summary>Hint 1</summary>All positions are one <code>torch.arange</code>, all frequencies another.
# A column times a row gives the whole table of angles.</details>
# <details><summary>Hint 2</summary>Right for a sentence, wrong for a long text? The sine of an angle of 29,999.5
# depends on the digits after the point. The chapter prints the next <code>float32</code> after 30,000. What type
# does the given version calculate in, and which numbers of yours must be of that type?</details>
# <details><summary>Hint 3</summary>Which step takes the time? Compare your function with the sines of such a table
# alone, in <code>float64</code> and in <code>float32</code>, and with a product of two tables. Once its whole turns
# are taken off, an angle is small. That helps, but the race asks for more.</details>
# <details><summary>Hint 4</summary>The result has a sine or a cosine in each of its places. Must each be calculated
# from its angle? Position 1,234 is 34 steps after position 1,200, and what you learnt at school about the sine of the
# sum of two angles needs products only. So how many positions need sines and cosines of their own? (The same
# holds for the cosine of the sum.)</details>


# %% id="positional_table" role="answer"
def positional_table(length, width, base, device):
    ### BEGIN SOLUTION
    if width % 2:
        raise ValueError(f"width must be even, not {width}")
    # sin(far + near) = sin(far) * cos(near) + cos(far) * sin(near), and
    # cos(far + near) = cos(far) * cos(near) - sin(far) * sin(near): products, once two short tables are there.
    step = math.isqrt(length)
    frequencies = base ** (-torch.arange(0, width, 2, dtype=torch.float64, device=device) / width)
    far = torch.arange(0, length, step, dtype=torch.float64, device=device)[:, None] * frequencies
    near = torch.arange(step, dtype=torch.float64, device=device)[:, None] * frequencies
    sines, cosines = far.sin().float(), far.cos().float()
    first = torch.stack([sines, cosines], dim=2).flatten(1)
    second = torch.stack([cosines, -sines], dim=2).flatten(1)
    table = first[:, None] * near.cos().float().repeat_interleave(2, dim=1)
    table.addcmul_(second[:, None], near.sin().float().repeat_interleave(2, dim=1))
    return table.flatten(0, 1)[:length]
    ### END SOLUTION


# %% id="positional_table_check" role="test"
check(positional_table, like=positional_table_slow, on=sentence, points=1)

# %% id="positional_table_exact" role="test"
check(positional_table, like=positional_table_slow, on=long_text, tolerance=1e-5, points=1)


# %% id="positional_table_hidden" role="test"
# Hidden test: other sizes, another long text, a single position, two columns. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def some_sizes(generator, device):
    length = int(torch.randint(2, 50, (), generator=generator))
    return length, 2 * int(torch.randint(2, 20, (), generator=generator)), 500.0, device


def another_long_text(generator, device):
    return 25_000, 8, 5_000.0, device


def one_position(generator, device):
    return 1, 10, 10_000, device


def two_columns(generator, device):
    return 9, 2, 10_000, device


check(
    positional_table,
    like=positional_table_slow,
    on=[some_sizes, another_long_text, one_position, two_columns],
    tolerance=1e-5,
    points=1,
)
### END HIDDEN TESTS

# %% id="positional_table_odd" role="test"
check(positional_table, like=positional_table_slow, on=odd_width, raises=ValueError, points=1)

# %% id="positional_table_race" role="test"
race(
    positional_table,
    against=positional_table_slow,
    on=chapter_of_a_book,
    at_least={"cpu": 2.2, "cuda": 2.2},
    points=2,
)

# %% [markdown]
# ## 3. Wrap an array
#
# *Medium, 12 minutes.* Other programs hand you arrays: cameras, files, tables of records. Write `wrap(array)`,
# which makes a tensor of any of them, and copies only where it must.
#
# - `array`: a NumPy array of numbers, of any shape, of a type that torch has, too.
# - returns: a CPU tensor with the same values, the same shape, and the same type (in this machine's byte order).
# - Where the array is writable and `torch.from_numpy` takes it as it is, the tensor must share its memory.
#   Otherwise the tensor must be a copy.
# - No array of numbers is refused: not a read-only one, not one with negative strides, not one in the byte order of
#   another machine, not one column of a table of records.
# - An array of anything but numbers, such as text, must raise `TypeError`.


# %% id="wrap_given" role="given"
def wrap_slow(array):
    if array.dtype.kind not in "biufc":
        raise TypeError(f"wrap takes numbers, not {array.dtype}")
    return torch.tensor(array.astype(array.dtype.newbyteorder("=")))


def large_array(generator, device):
    return torch.rand(3_000_000, generator=generator).numpy()


def small_array(generator, device):
    return torch.rand(9_000, generator=generator).numpy()


def every_other_row(generator, device):
    return torch.rand(20, 4, generator=generator).numpy()[::2]


def read_only_array(generator, device):
    array = torch.rand(5, 3, generator=generator).numpy()
    array.flags.writeable = False
    return array


def reversed_array(generator, device):
    return torch.rand(11, generator=generator).numpy()[::-1]


def column_of_records(generator, device):
    records = np.zeros(9, dtype=[("good", "u1"), ("weight", "f4")])
    records["weight"] = torch.rand(9, generator=generator).numpy()
    return records["weight"]


def other_byte_order(array):
    return array.astype(array.dtype.newbyteorder())


def words(generator, device):
    return np.array(["one", "two"])


# %% [markdown]
# <details><summary>Hint 1</summary><code>torch.from_numpy</code> shares. When is it allowed to, and what does it
# say when it cannot? Try it with each of the given inputs.</details>
# <details><summary>Hint 2</summary>An array knows much about itself: <code>array.flags.writeable</code>,
# <code>array.strides</code>, <code>array.itemsize</code>, <code>array.dtype.isnative</code>.</details>
# <details><summary>Hint 3</summary>The records of the given input lie packed in 5 bytes each. What is the stride of
# one column, and what is it not a multiple of? You can ask beforehand, or catch the error that comes. (At which
# address an array begins, <code>torch.from_numpy</code> does not ask.)</details>
# <details><summary>Hint 4</summary><code>astype</code> copies, even where the type stays the same; the given version
# shows how to name a type in this machine's byte order.</details>


# %% id="wrap" role="answer"
def wrap(array):
    ### BEGIN SOLUTION
    in_steps = all(stride >= 0 and stride % array.itemsize == 0 for stride in array.strides)
    if not (array.flags.writeable and array.dtype.isnative and in_steps):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    return torch.from_numpy(array)
    ### END SOLUTION


# %% id="wrap_check" role="test"
check(wrap, like=wrap_slow, on=[small_array, every_other_row], shares=True, points=1)

# %% id="wrap_copies" role="test"
check(wrap, like=wrap_slow, on=[read_only_array, reversed_array, column_of_records], shares=False, points=1)


# %% id="wrap_order" role="test"
def wrap_swapped(array):
    return wrap(other_byte_order(array))


check(wrap_swapped, like=wrap_slow, on=[every_other_row, reversed_array], points=1)

# %% id="wrap_text" role="test"
check(wrap, like=wrap_slow, on=words, raises=TypeError, points=1)


# %% id="wrap_hidden" role="test"
# Hidden test: more arrays that must be copied, of other shapes and types. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def flipped_columns(generator, device):
    return torch.randint(100, (4, 6), generator=generator).numpy()[:, ::-1]


def read_only_integers(generator, device):
    array = torch.randint(100, (4, 6), generator=generator).numpy()
    array.flags.writeable = False
    return array


def column_of_long_records(generator, device):
    records = np.zeros((3, 4), dtype=[("name", "S3"), ("value", "f8"), ("number", "i2")])
    records["value"] = torch.rand(3, 4, generator=generator).numpy()
    return records["value"]


check(
    wrap,
    like=wrap_slow,
    on=[flipped_columns, read_only_integers, column_of_long_records],
    shares=False,
    points=1,
)
### END HIDDEN TESTS


# %% id="wrap_hidden_shares" role="test"
# Hidden test: more arrays that must be shared. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def transposed(generator, device):
    return torch.rand(3, 5, generator=generator).double().numpy().T


def truth_values(generator, device):
    return (torch.rand(2, 3, 4, generator=generator) < 0.5).numpy()


check(wrap, like=wrap_slow, on=[transposed, truth_values], shares=True, points=1)
### END HIDDEN TESTS

# %% id="wrap_race" role="test"
race(wrap, against=wrap_slow, on=large_array, at_least={"cpu": 10}, points=1)

# %% [markdown]
# ## 4. A batch of pictures
#
# *Easy, 8 minutes.* A loader gives you a list of pictures as NumPy arrays. Write `stack_images(images)`.
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


def two_sizes(generator, device):
    return ([np.zeros((4, 6, 3), dtype=np.uint8), np.zeros((4, 1, 3), dtype=np.uint8)],)


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
check(stack_images, like=stack_images_slow, on=[no_pictures, two_sizes], raises=ValueError, points=1)


# %% id="stack_images_hidden" role="test"
# Hidden test: other sizes, a single picture, pictures cut out of larger ones. 1 point, when graded.
### BEGIN HIDDEN TESTS
def wide_pictures(generator, device):
    return (list(torch.randint(256, (3, 5, 17, 3), generator=generator, dtype=torch.uint8).numpy()),)


def one_picture(generator, device):
    return (list(torch.randint(256, (1, 8, 8, 3), generator=generator, dtype=torch.uint8).numpy()),)


def cut_outs(generator, device):
    large = torch.randint(256, (3, 20, 20, 3), generator=generator, dtype=torch.uint8).numpy()
    return ([picture[2:9, 4:15] for picture in large],)


check(stack_images, like=stack_images_slow, on=[wide_pictures, one_picture, cut_outs], points=1)
### END HIDDEN TESTS

# %% id="stack_images_race" role="test"
race(stack_images, against=stack_images_slow, on=pictures, at_least={"cpu": 9}, points=2)

# %% [markdown]
# ## 5. Rows of different lengths
#
# *Hard, 15 minutes.* Sentences have different lengths; a batch is a rectangle. Write `pad(rows, value)`.
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
    lengths = torch.randint(1, 24, (300,), generator=generator).tolist()
    return [torch.randint(50_000, (n,), generator=generator).to(device) for n in lengths], 0


def few_sentences(generator, device):
    many, value = sentences(generator, device)
    return many[:30], value


def some_without_words(generator, device):
    return [torch.rand(n, generator=generator).to(device) for n in (3, 0, 5, 1, 0)], 0.5


def no_rows(generator, device):
    return [], 0


# %% [markdown]
# <details><summary>Hint 1</summary>How large is the result? You know before you copy the first row.</details>
# <details><summary>Hint 2</summary>Allocated once and filled in a loop, it is right, but the race asks for more. What
# does every call of torch cost, and how many calls do 300 rows need?</details>
# <details><summary>Hint 3</summary>torch has a function for exactly this, which the chapter does not show: look in
# the documentation of <code>torch.nn.utils.rnn</code>, its tools for recurrent networks. It copies row by row,
# too, but not in Python. Mind the empty list.</details>
# <details><summary>Hint 4</summary>Faster still: all numbers of all rows can be joined by one call. In which
# places of the result do they belong, read from left to right and from top to bottom? A place holds a number where
# its column is less than the length of its row: one comparison of a column with a row of numbers gives a table of
# truth values. <code>masked_scatter_</code> (not in the chapter either) takes such a table and a row of numbers,
# and writes them, in their order, to the places that are true.</details>


# %% id="pad" role="answer"
def pad(rows, value):
    ### BEGIN SOLUTION
    if not rows:
        raise ValueError("pad needs one row or more")
    sizes = [row.numel() for row in rows]
    lengths = torch.tensor(sizes, device=rows[0].device)
    filled = torch.arange(max(sizes), device=rows[0].device) < lengths[:, None]
    return rows[0].new_full(filled.shape, value).masked_scatter_(filled, torch.cat(rows))
    ### END SOLUTION


# %% id="pad_check" role="test"
check(pad, like=pad_slow, on=[few_sentences, some_without_words], points=1)

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
race(pad, against=pad_slow, on=sentences, at_least={"cpu": 6, "cuda": 6}, points=3)

# %% [markdown]
# ## 6. A table that grows
#
# *Hard, 20 minutes.* A simulation, an experiment or a conversation adds rows, nobody knows how many, and at any
# time somebody wants to see all of them. Write a class `Rows`, which you may keep.
#
# - `Rows(width, dtype, device)`: an empty table.
# - `append(rows)`: adds all rows of a tensor of shape `(K, width)`, of that dtype and on that device. *K* may be 0,
#   and it may be larger than the table. Returns nothing.
# - `all()`: returns a tensor of shape `(N, width)` with all rows so far, the oldest first. What it has returned
#   before keeps its shape and its values (nobody writes to it).
# - A tensor of another shape or dtype must raise `ValueError`, and leave the table as it was. (None comes from
#   another device.)
# - Memory: `all()` allocates none. In its whole life, whatever the portions and however often `all()` is called, a
#   table allocates at most five times the bytes of the rows that it holds in the end, and 4 kB.


# %% id="rows_given" role="given"
class RowsSlow:
    def __init__(self, width, dtype, device):
        self.table = torch.zeros(0, width, dtype=dtype, device=device)

    def append(self, rows):
        if rows.ndim != 2 or rows.shape[1] != self.table.shape[1] or rows.dtype != self.table.dtype:
            raise ValueError(f"these rows are of shape {tuple(rows.shape)} and {rows.dtype}")
        self.table = torch.cat([self.table, rows])

    def all(self):
        return self.table


def in_portions(sizes, width, generator, device):
    return [torch.rand(size, width, generator=generator).to(device) for size in sizes]


def small_portions(generator, device):
    return (in_portions([3, 1, 0, 4, 2], 5, generator, device),)


def a_large_one_later(generator, device):
    return (in_portions([0, 2, 100, 1], 3, generator, device),)


def many_portions(generator, device):
    return (in_portions([14 * k % 24 for k in range(13)], 32, generator, device),)


def many_portions_on_meta(generator, device):
    return (in_portions([14 * k % 24 for k in range(13)], 32, generator, "meta"),)


def collected_slow(portions):
    table = RowsSlow(portions[0].shape[1], portions[0].dtype, portions[0].device)
    seen = []
    for portion in portions:
        table.append(portion)
        seen.append(table.all())
    return seen


# %% [markdown]
# <details><summary>Hint 1</summary>Count the bytes of the given version with <code>costs(collected_slow,
# portions)</code>. Then say why a Python list that grows is cheap.</details>
# <details><summary>Hint 2</summary>Keep a tensor that is larger than the table, and a number that says how many of
# its rows are in use. Which operation shows some of its rows without copying?</details>
# <details><summary>Hint 3</summary>When it is full, a larger one takes its place. If it is larger by a fixed number of
# rows, how often does that happen for a million rows? And if it is twice as large? What if even that is too
# small?</details>
# <details><summary>Hint 4</summary>Writing to a slice forgives too much: it repeats a row that is too short, and it
# converts types. So look at shape and dtype first.</details>


# %% id="rows" role="answer"
class Rows:
    def __init__(self, width, dtype, device):
        ### BEGIN SOLUTION
        self.memory = torch.empty(0, width, dtype=dtype, device=device)
        self.used = 0
        ### END SOLUTION

    def append(self, rows):
        ### BEGIN SOLUTION
        if rows.ndim != 2 or rows.shape[1] != self.memory.shape[1] or rows.dtype != self.memory.dtype:
            raise ValueError(f"these rows are of shape {tuple(rows.shape)} and {rows.dtype}")
        needed = self.used + len(rows)
        if needed > len(self.memory):
            larger = self.memory.new_empty(max(needed, 2 * len(self.memory)), self.memory.shape[1])
            larger[: self.used] = self.all()
            self.memory = larger
        self.memory[self.used : needed] = rows
        self.used = needed
        ### END SOLUTION

    def all(self):
        ### BEGIN SOLUTION
        return self.memory[: self.used]
        ### END SOLUTION


# %% id="rows_check" role="test"
def collected(portions):
    table = Rows(portions[0].shape[1], portions[0].dtype, portions[0].device)
    seen = []
    for portion in portions:
        table.append(portion)
        seen.append(table.all())
    return seen


check(collected, like=collected_slow, on=[small_portions, a_large_one_later], points=1)


# %% id="rows_refused" role="test"
def with_bad_rows(portions):
    table = Rows(portions[0].shape[1], portions[0].dtype, portions[0].device)
    seen = []
    for portion in portions:
        table.append(portion)
        for bad in (portion[:, :1], portion[:, 0], portion[:, :, None], portion.double()):
            try:
                table.append(bad)
            except ValueError:
                continue
            return f"no ValueError for rows of shape {tuple(bad.shape)} and {bad.dtype}"
        seen.append(table.all())
    return seen


check(with_bad_rows, like=collected_slow, on=small_portions, points=1)

# %% id="rows_lean" role="test"
# In the end the table holds 132 rows of 32 numbers of 4 bytes. (A tensor on "meta" has a shape, but no values: it
# cannot leave its device, not even by way of NumPy.)
check(
    collected,
    like=collected_slow,
    on=[many_portions, many_portions_on_meta],
    at_most={"bytes": 5 * 132 * 32 * 4 + 4000},
    points=2,
)


# %% id="rows_hidden" role="test"
# Hidden test: other widths and types, no row at all. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def integers(generator, device):
    return ([torch.randint(99, (size, 7), generator=generator).to(device) for size in (1, 1, 5, 0, 40, 2)],)


def one_column_of_doubles(generator, device):
    return ([portion.double() for portion in in_portions([4, 9, 1], 1, generator, device)],)


def no_rows_yet(generator, device):
    return (in_portions([0, 0], 2, generator, device),)


check(
    collected,
    like=collected_slow,
    on=[integers, one_column_of_doubles, no_rows_yet, a_large_one_later],
    points=2,
)
### END HIDDEN TESTS


# %% id="rows_hidden_lean" role="test"
# Hidden test: the bytes of a table of 272 rows that came in equal portions. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def equal_portions(generator, device):
    return (in_portions([16] * 17, 64, generator, device),)


check(collected, like=collected_slow, on=equal_portions, at_most={"bytes": 5 * 272 * 64 * 4 + 4000}, points=1)
### END HIDDEN TESTS

# %% [markdown]
# ## 7. Foretell the costs
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
def similar(x):
    return (x @ x.T).softmax(dim=1)


def report(x):
    return [row.sum().item() for row in x]


def numbered(x):
    return x[:, 0] + torch.arange(len(x)).float()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (similar, report, numbered)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>similar</code> is of chapter 00, <code>report</code> is of chapter 00,
# <code>numbered</code> is of chapter 01.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(numbered, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "similar": {"operations": 2, "bytes": 8 * n * n, "syncs": 0},
        "report": {"operations": 2 * n, "bytes": 4 * n, "syncs": n},
        "numbered": {"operations": 3, "bytes": 8 * n + 4 * n + 4 * n, "syncs": 0},
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
