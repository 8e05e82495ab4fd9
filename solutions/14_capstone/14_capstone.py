# %% [markdown]
# # Exercises 14 · A training script
#
# Here are the parts of another training script for the digits. You make them fast or small, build two tools
# that you may keep, and find out why a script that somebody made fast does not learn the same any more.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. Hidden tests run when your notebook is graded: other shapes, edge
# cases, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/14_capstone.ipynb). 38 points, about 100 minutes.

# %% id="setup" role="given"
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from autograder import check, costs, race

torch.backends.cudnn.allow_tf32 = False  # a GPU's convolutions keep all digits of float32 (chapter 05)

with np.load(Path("../../data/digits.npz")) as file:
    digits = torch.from_numpy(file["images"])  # (1797, 8, 8), uint8, values 0 to 16
    digit_labels = torch.from_numpy(file["labels"]).long()


def some_digits(number, generator, device):
    chosen = torch.randperm(len(digits), generator=generator)[:number]
    return digits[chosen].to(device), digit_labels[chosen].to(device)


# %% [markdown]
# ## 1. Batches
#
# *Easy, 10 minutes.* Write `batches(pictures, labels, orders)`, which collects the pictures of all steps.
#
# - `pictures`: `uint8` tensor of shape `(N, H, W)`, values 0 to 16. `labels`: `int64` tensor of shape `(N,)`.
#   `orders`: `int64` tensor of shape `(steps, size)`: row *s* says which pictures step *s* uses, and in which
#   order. All are on the same device; `steps` may be 0.
# - returns: a tuple of a `float32` tensor of shape `(steps, size, H, W)` with values from 0 to 1 (that is,
#   divided by 16) and an `int64` tensor of shape `(steps, size)`, both on that device.
# - A number in `orders` outside 0 to *N* − 1 must raise `IndexError`, also a negative one.


# %% id="batches_given" role="given"
def batches_slow(pictures, labels, orders):
    steps, size = orders.shape
    x = torch.zeros(0, *pictures.shape[1:], device=pictures.device)
    y = torch.zeros(0, dtype=torch.int64, device=pictures.device)
    for i in orders.flatten():
        if not 0 <= i < len(pictures):
            raise IndexError(f"there is no picture {i} among {len(pictures)}")
        x = torch.cat([x, pictures[i][None] / 16])
        y = torch.cat([y, labels[i][None]])
    return x.reshape(steps, size, *pictures.shape[1:]), y.reshape(steps, size)


def four_steps(generator, device):
    return *some_digits(1797, generator, device), torch.randint(1797, (4, 64), generator=generator).to(device)


def no_steps(generator, device):
    return *some_digits(5, generator, device), torch.zeros(0, 3, dtype=torch.int64, device=device)


def number_too_large(generator, device):
    return *some_digits(9, generator, "cpu"), torch.tensor([[0, 8], [9, 1]])  # a GPU would stop for good


def number_below_zero(generator, device):
    return *some_digits(9, generator, "cpu"), torch.tensor([[0, 8, -1]])


# %% [markdown]
# <details><summary>Hint 1</summary>What shape comes back when you index a tensor with a tensor of two
# dimensions?</details>
# <details><summary>Hint 2</summary>A negative index counts from the end and raises nothing. And on a GPU an
# index that is too large stops the whole process. So look at the smallest and the largest one first; mind
# that an empty tensor has neither.</details>
# <details><summary>Hint 3</summary>Choose first and convert afterwards, or the other way round? Count the
# bytes that each moves.</details>


# %% id="batches" role="answer"
def batches(pictures, labels, orders):
    ### BEGIN SOLUTION
    if orders.numel():
        lowest, highest = torch.aminmax(orders)
        if lowest < 0 or highest >= len(pictures):
            raise IndexError(f"orders must hold numbers from 0 to {len(pictures) - 1}")
    return pictures[orders] / 16, labels[orders]
    ### END SOLUTION


# %% id="batches_check" role="test"
check(batches, like=batches_slow, on=[four_steps, no_steps], points=1)

# %% id="batches_range" role="test"
check(batches, like=batches_slow, on=[number_too_large, number_below_zero], raises=IndexError, points=1)


# %% id="batches_hidden" role="test"
# Hidden test: steps of one picture, no steps, pictures that are not square. 1 point, when graded.
### BEGIN HIDDEN TESTS
def one_picture_a_step(generator, device):
    return *some_digits(5, generator, device), torch.tensor([[4], [0], [4]], device=device)


def wide_pictures(generator, device):
    pictures = torch.randint(17, (6, 3, 5), generator=generator, dtype=torch.uint8).to(device)
    labels = torch.randint(10, (6,), generator=generator).to(device)
    return pictures, labels, torch.randint(6, (2, 9), generator=generator).to(device)


check(batches, like=batches_slow, on=[one_picture_a_step, no_steps, wide_pictures], points=1)
### END HIDDEN TESTS

# %% id="batches_race" role="test"
race(batches, against=batches_slow, on=four_steps, at_least={"cpu": 20, "cuda": 20}, points=2)

# %% [markdown]
# ## 2. Move the pictures
#
# *Hard, 25 minutes.* A network should know a digit wherever it stands. So each picture is moved by some
# pixels before it is used. Write `shift(pictures, moves)`. In the race there are 300 pictures of 28 × 28. The obvious
# way without a loop earns a part of the race's points. Measure.
#
# - `pictures`: floating-point tensor of shape `(N, H, W)`. `moves`: `int64` tensor of shape `(N, 2)` on the
#   same device: by how many pixels picture *i* moves down and to the right. A negative number moves it up or
#   to the left. *N* may be 0; a move may be larger than the picture.
# - returns: tensor of the same shape, type and device. What leaves the picture is lost, and 0 comes in: pixel
#   `(r, c)` is `pictures[i, r - down, c - right]`, or 0 where that is outside. A pixel may be infinite or NaN;
#   what comes in is 0 all the same.
# - Your function must not wait for the device: no syncs (chapter 02).
# - A `moves` of another shape than `(N, 2)` must raise `ValueError`.


# %% id="shift_given" role="given"
def shift_slow(pictures, moves):
    number, height, width = pictures.shape
    if tuple(moves.shape) != (number, 2):
        raise ValueError(f"moves must have the shape {(number, 2)}, not {tuple(moves.shape)}")
    result = torch.zeros_like(pictures)
    for i, (down, right) in enumerate(moves.tolist()):
        if abs(down) < height and abs(right) < width:
            rows = slice(max(down, 0), height + min(down, 0))
            columns = slice(max(right, 0), width + min(right, 0))
            rows_before = slice(max(-down, 0), height - max(down, 0))
            columns_before = slice(max(-right, 0), width - max(right, 0))
            result[i, rows, columns] = pictures[i, rows_before, columns_before]
    return result


def moved_pictures(generator, device):
    moves = torch.randint(-5, 6, (300, 2), generator=generator)
    return torch.rand(300, 28, 28, generator=generator).to(device), moves.to(device)


def infinite_pixels(generator, device):
    pictures = torch.rand(6, 4, 5, generator=generator)
    pictures[:, 0, 0], pictures[:, 3, 4] = float("inf"), float("nan")
    moves = torch.tensor([[1, 1], [-1, -1], [0, 2], [3, 0], [-4, 0], [9, -9]])
    return pictures.to(device), moves.to(device)


def no_pictures(generator, device):
    return torch.zeros(0, 4, 6, device=device), torch.zeros(0, 2, dtype=torch.int64, device=device)


def moves_of_another_shape(generator, device):
    return torch.rand(3, 4, 4, generator=generator).to(device), torch.zeros(
        2, 2, dtype=torch.int64, device=device
    )


# %% [markdown]
# <details><summary>Hint 1</summary>Do not ask where each pixel goes. Ask where each pixel of the result comes
# from: a row number and a column number. An index must never lie outside; make it lie inside first. (And zeros are
# chosen, not multiplied: infinity times 0 is NaN.) When that is right, time its lines one by one.</details>
# <details><summary>Hint 2</summary>Most of the time goes into looking up: one look-up for each pixel, each with its
# own numbers of 8 bytes, for a pixel of 4. But pixels that were neighbours in a row are neighbours afterwards. How many
# look-ups are needed, if one of them brings all that lie side by side?</details>
# <details><summary>Hint 3</summary>Lay all rows of all pictures in one long line, with zeros between them. Then every row
# of the result is a piece of that line, zeros included. How many zeros are needed between two rows, if moves that are too
# large are clamped? Where does the piece begin for a row that comes from outside its picture?</details>
# <details><summary>Hint 4</summary><code>Tensor.unfold</code> shows all pieces of one length of a line as the rows of a
# matrix, and copies nothing. There are two ways to choose rows of a matrix by their numbers: an index in brackets, and
# <code>index_select</code>. Compare them.</details>


# %% id="shift" role="answer"
def shift(pictures, moves):
    ### BEGIN SOLUTION
    number, height, width = pictures.shape
    if moves.shape != (number, 2):
        raise ValueError(f"moves must have the shape {(number, 2)}, not {tuple(moves.shape)}")
    # One line of all rows, with a row of zeros before each; the last two rows are zeros only.
    line = pictures.new_zeros(number * height + 2, 2 * width)
    line[:-2, width:] = pictures.reshape(-1, width)
    rows = torch.arange(height, device=pictures.device) - moves[:, :1]
    numbers = torch.arange(number, device=pictures.device)[:, None] * height + rows
    numbers = torch.where((rows >= 0) & (rows < height), numbers, number * height)
    starts = numbers * (2 * width) + width - moves[:, 1:].clamp(-width, width)
    pieces = line.view(-1).unfold(0, width, 1)  # a view: the piece of this width at each start
    return pieces.index_select(0, starts.view(-1)).view(number, height, width)
    ### END SOLUTION


# %% id="shift_check" role="test"
check(
    shift, like=shift_slow, on=[moved_pictures, infinite_pixels, no_pictures], at_most={"syncs": 0}, points=1
)

# %% id="shift_bad" role="test"
check(shift, like=shift_slow, on=moves_of_another_shape, raises=ValueError, points=1)


# %% id="shift_hidden" role="test"
# Hidden test: large moves, pictures that are not square, no pictures, float64. 2 points, when graded.
### BEGIN HIDDEN TESTS
def large_moves(generator, device):
    moves = torch.randint(-9, 10, (40, 2), generator=generator)
    return torch.rand(40, 5, 5, generator=generator).to(device), moves.to(device)


def one_row(generator, device):
    moves = torch.tensor([[0, 2], [0, -2], [1, 0], [0, 0]])
    return torch.rand(4, 1, 7, generator=generator).to(device), moves.to(device)


def double_pictures(generator, device):
    pictures = torch.rand(3, 6, 4, generator=generator, dtype=torch.float64)
    return pictures.to(device), torch.tensor([[1, -1], [-2, 3], [5, 0]], device=device)


check(
    shift,
    like=shift_slow,
    on=[large_moves, one_row, no_pictures, double_pictures],
    at_most={"syncs": 0},
    points=2,
)
### END HIDDEN TESTS

# %% id="shift_race" role="test"
race(shift, against=shift_slow, on=moved_pictures, at_least={"cpu": 2.1, "cuda": 10}, points=3)

# %% [markdown]
# ## 3. Small and fast
#
# *Hard, 20 minutes.* Data to gradients: a step takes small pictures, enlarges them, sends them through a network
# with a convolution, and finds the loss and its gradients. Two versions are given. `loss_and_gradients_slow`
# takes one picture at a time: little memory, much time. `loss_and_gradients_large` takes all pictures at once:
# little time, much memory. Write `loss_and_gradients(weights, pictures, labels)`, which needs little of both.
#
# - `weights`: list of four floating-point tensors of one dtype, of shapes `(C, 1, 3, 3)`, `(C,)`, `(classes, C *
#   2H * 2W)` and `(classes,)`. `pictures`: `uint8` tensor of shape `(N, H, W)`, values 0 to 16. `labels`: `int64`
#   tensor of shape `(N,)`; -1 says that nobody knows the label. All are on the same device.
# - returns: a tuple of the loss (a tensor without dimensions) and a list of four tensors, its gradients with
#   respect to the weights, all in the dtype of the weights. The loss is the mean of the cross-entropy over all
#   pictures that have a label.
# - The given weights must be left as they are.
# - If no picture has a label, raise `ValueError`.
# - Memory: for 600 pictures of 8 × 8 and 8 filters, at most 1.4 MB of new memory at once. It must not grow with
#   the number of pictures, except for a few bytes for each label.


# %% id="loss_and_gradients_given" role="given"
def enlarged(pictures, dtype):
    return F.interpolate(pictures[:, None].to(dtype) / 16, scale_factor=2, mode="bilinear")


def network(weights, x):
    filters, shifts, layer, offset = weights
    hidden = F.conv2d(x, filters, shifts, padding=1).relu()
    return F.linear(hidden.flatten(1), layer, offset)


def loss_and_gradients_slow(weights, pictures, labels):
    leaves = [weight.detach().requires_grad_() for weight in weights]
    known = int((labels >= 0).sum())
    if not known:
        raise ValueError("no picture has a label")
    total = torch.zeros((), dtype=weights[0].dtype, device=weights[0].device)
    sums = [torch.zeros_like(weight) for weight in weights]
    for picture, label in zip(pictures, labels, strict=True):
        if label >= 0:
            scores = network(leaves, enlarged(picture[None], weights[0].dtype))
            loss = F.cross_entropy(scores, label[None]) / known
            for part, gradient in zip(sums, torch.autograd.grad(loss, leaves), strict=True):
                part += gradient
            total += loss.detach()
    return total, sums


def loss_and_gradients_large(weights, pictures, labels):
    if not (labels >= 0).any():
        raise ValueError("no picture has a label")
    leaves = [weight.detach().requires_grad_() for weight in weights]
    scores = network(leaves, enlarged(pictures, weights[0].dtype))
    loss = F.cross_entropy(scores, labels, ignore_index=-1)
    return loss.detach(), list(torch.autograd.grad(loss, leaves))


def conv_weights(filters, side, classes, generator, device):
    weights = [
        torch.randn(filters, 1, 3, 3, generator=generator) / 2,
        torch.randn(filters, generator=generator) / 10,
        torch.randn(classes, filters * side**2, generator=generator) / (filters**0.5 * side),
        torch.randn(classes, generator=generator) / 10,
    ]
    return [weight.to(device) for weight in weights]


def step_of(number, generator, device, unknown=0.0):
    weights = conv_weights(8, 16, 10, generator, device)
    pictures, labels = some_digits(number, generator, device)
    hidden = torch.rand(number, generator=generator) < unknown
    return weights, pictures, labels.masked_fill(hidden.to(device), -1)


def a_step(generator, device):
    return step_of(64, generator, device)


def some_unknown(generator, device):
    weights, pictures, labels = step_of(70, generator, device, unknown=0.3)
    labels[:40] = -1
    return weights, pictures, labels


def a_large_step(generator, device):
    return step_of(600, generator, device, unknown=0.1)


def in_doubles(generator, device):
    weights, pictures, labels = step_of(45, generator, device, unknown=0.5)
    labels[3] = 7
    return [weight.double() for weight in weights], pictures, labels


def all_unknown(generator, device):
    return step_of(5, generator, device, unknown=1.1)


# %% [markdown]
# <details><summary>Hint 1</summary>Between one picture and all pictures there are other numbers. Measure some of
# them: <code>costs(...).peak_bytes</code> and <code>compare</code>.</details>
# <details><summary>Hint 2</summary>Sums can be added up piece by piece; means cannot, where the pieces differ.
# What differs between two pieces of the same length?</details>
# <details><summary>Hint 3</summary>Everything that grows with the number of pictures belongs into the loop, the
# conversion to floating-point numbers, too. And look at what is still alive when the next piece
# begins.</details>
# <details><summary>Hint 4</summary><code>cross_entropy</code> can leave a label out
# (<code>ignore_index</code>), and can give a sum (<code>reduction</code>). The number by which it is to be
# divided is known before the first piece.</details>


# %% id="loss_and_gradients" role="answer"
def loss_and_gradients(weights, pictures, labels):
    ### BEGIN SOLUTION
    known = (labels >= 0).sum()
    if not known:
        raise ValueError("no picture has a label")
    leaves = [weight.detach().requires_grad_() for weight in weights]
    sums, total = None, 0
    for some, of_some in zip(pictures.split(32), labels.split(32), strict=True):
        scores = network(leaves, enlarged(some, weights[0].dtype))
        loss = F.cross_entropy(scores, of_some, ignore_index=-1, reduction="sum") / known
        found = torch.autograd.grad(loss, leaves)
        sums = list(found) if sums is None else [a.add_(b) for a, b in zip(sums, found, strict=True)]
        total = total + loss.detach()
    return total, sums
    ### END SOLUTION


# %% id="loss_and_gradients_check" role="test"
check(loss_and_gradients, like=loss_and_gradients_slow, on=[a_step, some_unknown, in_doubles], points=1)

# %% id="loss_and_gradients_unknown" role="test"
check(loss_and_gradients, like=loss_and_gradients_slow, on=all_unknown, raises=ValueError, points=1)

# %% id="loss_and_gradients_memory" role="test"
# How much new memory is alive at once? Points grow from none, for as much as loss_and_gradients_large, to all.
check(
    loss_and_gradients,
    like=loss_and_gradients_large,
    on=a_large_step,
    peak=1_400_000,
    tolerance=1e-3,
    points=3,
)


# %% id="loss_and_gradients_hidden" role="test"
# Hidden test: one picture, few known labels, float64, other sizes. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_picture(generator, device):
    return step_of(1, generator, device)


def the_last_is_known(generator, device):
    weights, pictures, labels = step_of(131, generator, device)
    labels[:-1] = -1
    return weights, pictures, labels


def three_classes(generator, device):
    labels = torch.randint(-1, 3, (100,), generator=generator)
    labels[0] = 2
    pictures = torch.randint(17, (100, 4, 4), generator=generator, dtype=torch.uint8)
    return conv_weights(3, 8, 3, generator, device), pictures.to(device), labels.to(device)


check(
    loss_and_gradients,
    like=loss_and_gradients_slow,
    on=[one_picture, the_last_is_known, in_doubles, three_classes],
    points=2,
)
### END HIDDEN TESTS

# %% id="loss_and_gradients_race" role="test"
race(
    loss_and_gradients,
    against=loss_and_gradients_slow,
    on=a_step,
    at_least={"cpu": 3.4, "cuda": 10},
    points=2,
)

# %% [markdown]
# ## 4. An evaluation that never waits
#
# *Medium, 15 minutes.* A test set comes in batches, one after the other, and is too large to be kept. Write a
# class `Evaluation` that takes them and can say at any time how good the network is so far.
#
# - `Evaluation(classes, device)`: starts with nothing.
# - `add(scores, labels)`: takes a batch into account. `scores`: tensor of shape `(N, classes)`, `float32`,
#   `float64`, `float16` or `bfloat16`; `labels`: `int64` tensor of shape `(N,)`, from 0 to `classes - 1`, or -1 for
#   "nobody knows"; such a row is not counted. *N* may be 0. All are on `device`. Returns nothing.
# - `result()`: a dictionary of three new tensors on `device`. `"table"`: `int64`, shape `(classes, classes)`; entry
#   `(a, b)` says how many rows with the label *a* have their largest score at *b*; of equal ones, the first.
#   `"accuracy"`: `float64`, without dimensions: the share of rows whose largest score is at the label. `"loss"`:
#   `float64`, without dimensions: the mean cross-entropy, with five right digits for scores of any type. The last
#   two are NaN as long as no row counts.
# - `add` and `result` may be called in any order, and as often as one likes.
# - Scores that are not of shape `(N, classes)`, for *N* labels, must raise `ValueError`, and leave the evaluation as
#   it was.
# - No method may wait for the device: no syncs. The constructor may take 6 operations, `add` 14 and `result`
#   10; as in `costs`, views do not count. For batches of 200 rows and 10 classes, at most 80 kB of new memory may be
#   alive at once, however many batches there are.


# %% id="evaluation_given" role="given"
class EvaluationSlow:
    def __init__(self, classes, device):
        self.classes, self.device, self.rows = classes, device, []

    def add(self, scores, labels):
        if tuple(scores.shape) != (len(labels), self.classes):
            raise ValueError(f"scores must have the shape {(len(labels), self.classes)}")
        for row, label in zip(scores, labels, strict=True):
            if label >= 0:
                loss = F.cross_entropy(row.double()[None], label[None]).item()
                self.rows.append((label.item(), row.argmax().item(), loss))

    def result(self):
        table = torch.zeros(self.classes, self.classes, dtype=torch.int64, device=self.device)
        for label, given, _ in self.rows:
            table[label, given] += 1
        number = len(self.rows)
        right = sum(label == given for label, given, _ in self.rows) / number if number else float("nan")
        loss = sum(loss for *_, loss in self.rows) / number if number else float("nan")
        right, loss = (torch.tensor(x, dtype=torch.float64, device=self.device) for x in (right, loss))
        return {"table": table, "accuracy": right, "loss": loss}


def scored_batches(sizes, classes, generator, device, dtype=torch.float32, unknown=0.2):
    batches = []
    for size in sizes:
        labels = torch.randint(classes, (size,), generator=generator)
        scores = torch.randn(size, classes, generator=generator)
        scores += 2 * F.one_hot(labels, classes)
        labels[torch.rand(size, generator=generator) < unknown] = -1
        batches.append((scores.to(device, dtype), labels.to(device)))
    return batches, classes


def four_batches(generator, device):
    return scored_batches([32, 0, 32, 5], 10, generator, device)


def all_labels_known(generator, device):
    return scored_batches([20, 20], 10, generator, device, unknown=0.0)


def nobody_knows(generator, device):
    return scored_batches([6, 2], 5, generator, device, unknown=1.1)


def half_precision(generator, device):
    return scored_batches([40, 24], 10, generator, device, dtype=torch.bfloat16)


def eight_batches(generator, device):
    return scored_batches([200] * 8, 10, generator, device)


def evaluate_slow(batches, classes):
    evaluation = EvaluationSlow(classes, batches[0][0].device)
    for scores, labels in batches:
        evaluation.add(scores, labels)
    return evaluation.result()


def results_on_the_way_slow(batches, classes):
    evaluation = EvaluationSlow(classes, batches[0][0].device)
    results = []
    for scores, labels in batches:
        evaluation.add(scores, labels)
        results.append(evaluation.result())
    return results


# %% [markdown]
# <details><summary>Hint 1</summary>What must be kept of a batch? Not its rows. A table and one number are enough
# for all three results.</details>
# <details><summary>Hint 2</summary>A result whose length depends on the values makes the host wait. A mask as an
# index has one, and so has <code>bincount</code>, which cannot know that no number is larger. Chapter 10 has
# other ways to add at given places, into a tensor that is there already.</details>
# <details><summary>Hint 3</summary>Rows without a label need not be taken out. They can be counted with a weight of 0, or
# in an extra place where they do no harm. (In some functions an index of -1 means the last place; others, such as
# <code>scatter_add_</code>, refuse it.)</details>
# <details><summary>Hint 4</summary><code>index_put_</code> can accumulate. <code>cross_entropy</code> can leave a
# label out and give a sum. A division of two <code>int64</code> tensors gives <code>float32</code>.</details>


# %% id="evaluation" role="answer"
class Evaluation:
    def __init__(self, classes, device):
        ### BEGIN SOLUTION
        # The last row collects what has no label: an index of -1 leads there.
        self.table = torch.zeros(classes + 1, classes, dtype=torch.int64, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)
        self.one = torch.ones((), dtype=torch.int64, device=device)
        ### END SOLUTION

    def add(self, scores, labels):
        ### BEGIN SOLUTION
        if scores.shape != (len(labels), self.table.shape[1]):
            raise ValueError(f"scores must have the shape {(len(labels), self.table.shape[1])}")
        self.table.index_put_((labels, scores.argmax(1)), self.one, accumulate=True)
        self.total += F.cross_entropy(scores.double(), labels, ignore_index=-1, reduction="sum")
        ### END SOLUTION

    def result(self):
        ### BEGIN SOLUTION
        table = self.table[:-1].clone()
        number = table.sum().double()
        return {"table": table, "accuracy": table.trace() / number, "loss": self.total / number}
        ### END SOLUTION


# %% id="evaluation_check" role="test"
def evaluate(batches, classes):
    evaluation = Evaluation(classes, batches[0][0].device)
    for scores, labels in batches:
        evaluation.add(scores, labels)
    return evaluation.result()


check(
    evaluate,
    like=evaluate_slow,
    on=[four_batches, all_labels_known, nobody_knows, half_precision],
    tolerance=1e-5,
    points=1,
)


# %% id="evaluation_bad" role="test"
def a_bad_batch(batches, classes):
    evaluation = Evaluation(classes, batches[0][0].device)
    for scores, labels in batches:
        evaluation.add(scores, labels)
        try:
            evaluation.add(scores[:, :-1], labels)
        except ValueError:
            continue
        return "no ValueError was raised"
    return evaluation.result()


check(a_bad_batch, like=evaluate_slow, on=four_batches, tolerance=1e-5, points=1)


# %% id="evaluation_counted" role="test"
# Eight times add, eight times result: 6 + 8 * 14 + 8 * 10 = 198 operations, no sync, at most 80 kB at once.
def results_on_the_way(batches, classes):
    evaluation = Evaluation(classes, batches[0][0].device)
    results = []
    for scores, labels in batches:
        evaluation.add(scores, labels)
        results.append(evaluation.result())
    return results


check(
    results_on_the_way,
    like=results_on_the_way_slow,
    on=eight_batches,
    at_most={"syncs": 0, "operations": 198, "peak_bytes": 80_000},
    tolerance=1e-5,
    points=3,
)


# %% id="evaluation_hidden" role="test"
# Hidden test: empty batches, no known label, one class, float64, float16. 2 points, when graded.
### BEGIN HIDDEN TESTS
def an_empty_batch(generator, device):
    return scored_batches([7, 0, 3], 4, generator, device)


def one_class(generator, device):
    return scored_batches([9, 1], 1, generator, device)


def double_scores(generator, device):
    return scored_batches([11, 12, 13], 3, generator, device, dtype=torch.float64)


def half_scores(generator, device):
    return scored_batches([30, 1], 12, generator, device, dtype=torch.float16)


check(
    results_on_the_way,
    like=results_on_the_way_slow,
    on=[an_empty_batch, nobody_knows, one_class, double_scores, half_scores],
    tolerance=1e-5,
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. Fast, but not the same
#
# *Hard, 20 minutes.* `train_slow` is right and slow. It takes one picture at a time, and keeps an exponential
# moving average of the weights, which often does better in the test than the last weights. A colleague made
# `train_hasty`. It is much faster, its losses fall as well, and the accuracy after a long run is about the same.
# But it is not the same training. Find out what differs, and write a `train` that is right **and** fast.
#
# The rules, which `train_slow` follows: `train(pictures, labels, orders, weights, rate, decay, keep)`
#
# - `pictures`: `uint8` tensor of shape `(N, H, W)`, values 0 to 16. `labels`: `int64` tensor of shape `(N,)`.
#   `orders`: list of `int64` tensors, one for each step: which pictures it uses. They may have different lengths,
#   at least 1; the list may be empty. `weights`: list of matrices and biases in turn, of one floating-point dtype:
#   one, two or more layers, with a ReLU between two of them. `rate`, `decay`, `keep`: numbers. All tensors are on
#   the same device.
# - A step divides its pictures by 16, subtracts the mean of *all pixels of the step's pictures*, and divides by
#   their standard deviation (without correction). The loss is the mean cross-entropy of the step's pictures.
# - Then, for each weight: `speed = 0.9 * speed + gradient` (it starts at 0); a matrix, not a bias, is multiplied by
#   `1 - rate * decay`; `rate * speed` is subtracted from the weight; `average = keep * average + (1 - keep) *
#   weight` (it starts as the given weight).
# - returns: a tuple of a `float32` tensor of shape `(steps,)` with the loss of each step, taken before its update,
#   the list of the weights after the last step, and the list of the averages. Nothing in it requires a gradient.
# - The given weights must be left as they are.
# - No syncs.
#
# If a test finds a wrong answer, the race gives no points either.


# %% id="train_given" role="given"
def scores_of_layers(weights, x):
    for i in range(0, len(weights), 2):
        x = torch.addmm(weights[i + 1], x.relu() if i else x, weights[i])
    return x


def train_slow(pictures, labels, orders, weights, rate, decay, keep):
    weights = [weight.clone() for weight in weights]
    speeds = [torch.zeros_like(weight) for weight in weights]
    averages = list(weights)
    losses = []
    for order in orders:
        chosen = torch.stack([pictures[i].flatten() for i in order]).to(weights[0].dtype) / 16
        mean, deviation = chosen.mean(), chosen.std(correction=0)
        leaves = [weight.requires_grad_() for weight in weights]
        total = 0
        for i in order:
            x = (pictures[i].flatten().to(weights[0].dtype) / 16 - mean) / deviation
            total = total + F.cross_entropy(scores_of_layers(leaves, x[None]), labels[i][None])
        loss = total / len(order)
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            for i, gradient in enumerate(gradients):
                speeds[i] = 0.9 * speeds[i] + gradient
                shrink = 1 - rate * decay if weights[i].ndim == 2 else 1
                weights[i] = weights[i] * shrink - rate * speeds[i]
                averages[i] = keep * averages[i] + (1 - keep) * weights[i]
    losses = torch.tensor(losses, dtype=torch.float32, device=pictures.device)
    return losses, [weight.detach() for weight in weights], [average.detach() for average in averages]


def train_hasty(pictures, labels, orders, weights, rate, decay, keep):
    x = pictures.flatten(1).to(weights[0].dtype) / 16
    x = (x - x.mean()) / x.std(correction=0)
    leaves = [weight.clone().requires_grad_() for weight in weights]
    averages = [leaf.detach() for leaf in leaves]
    optimiser = torch.optim.SGD(leaves, lr=rate, momentum=0.9, weight_decay=decay)
    losses = torch.zeros(len(orders), device=pictures.device)
    for step, order in enumerate(orders):
        loss = F.cross_entropy(scores_of_layers(leaves, x[order]), labels[order])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses[step] = loss.detach()
        for average, leaf in zip(averages, leaves, strict=True):
            average.lerp_(leaf.detach(), 1 - keep)
    return losses, [leaf.detach() for leaf in leaves], averages


def a_training(sizes, widths, generator, device):
    pictures, labels = some_digits(64, generator, device)
    orders = [torch.randint(64, (size,), generator=generator).to(device) for size in sizes]
    weights = []
    for wide, narrow in pairwise(widths):
        weights.append((torch.randn(wide, narrow, generator=generator) / wide**0.5).to(device))
        weights.append((torch.randn(narrow, generator=generator) / 10).to(device))
    return pictures, labels, orders, weights, 0.1, 0.5, 0.8


def short_training(generator, device):
    return a_training([64, 64, 32], [64, 32, 10], generator, device)


def one_step(generator, device):
    return a_training([5], [64, 10], generator, device)


def no_steps_at_all(generator, device):
    return a_training([], [64, 12, 10], generator, device)


def three_layers(generator, device):
    return a_training([12, 12, 7], [64, 20, 14, 10], generator, device)


def double_weights(generator, device):
    pictures, labels, orders, weights, *numbers = a_training([9, 8, 9], [64, 5, 10], generator, device)
    return pictures, labels, orders, [weight.double() for weight in weights], *numbers


# %% [markdown]
# <details><summary>Hint 1</summary>Do what section 2 of the chapter does: run both on the same inputs, and compare
# the curves. At which step do they part? A loss that differs at the first step was computed from other numbers;
# one that differs from the second step on was followed by another update. Then compare the weights, and the
# averages. Mend one thing at a time.</details>
# <details><summary>Hint 2</summary>What is done once, before the loop, must not depend on what happens in the
# loop. Which numbers does <code>train_slow</code> take from the pictures of each step, and <code>train_hasty</code> from
# all?</details>
# <details><summary>Hint 3</summary>How does <code>torch.optim.SGD</code> use <code>weight_decay</code>, and on
# which weights? Its documentation has the formula. Compare it with the rules above, for two steps in a
# row.</details>
# <details><summary>Hint 4</summary>In <code>train_hasty</code> the averages equal the weights. Who shares memory
# with whom? <code>train_slow</code> makes new tensors in each step; an optimiser writes to those that are
# there.</details>


# %% id="train" role="answer"
def train(pictures, labels, orders, weights, rate, decay, keep):
    ### BEGIN SOLUTION
    leaves = [weight.clone().requires_grad_() for weight in weights]
    speeds = [torch.zeros_like(weight) for weight in weights]
    averages = [weight.clone() for weight in weights]
    losses = torch.zeros(len(orders), device=pictures.device)
    for step, order in enumerate(orders):
        x = pictures[order].flatten(1).to(weights[0].dtype) / 16
        x = (x - x.mean()) / x.std(correction=0)
        loss = F.cross_entropy(scores_of_layers(leaves, x), labels[order])
        gradients = torch.autograd.grad(loss, leaves)
        losses[step] = loss.detach()
        with torch.no_grad():
            for leaf, speed, average, gradient in zip(leaves, speeds, averages, gradients, strict=True):
                speed.mul_(0.9).add_(gradient)
                if leaf.ndim == 2:
                    leaf.mul_(1 - rate * decay)
                leaf.sub_(speed, alpha=rate)
                average.lerp_(leaf, 1 - keep)
    return losses, [leaf.detach() for leaf in leaves], averages
    ### END SOLUTION


# %% id="train_check" role="test"
check(
    train,
    like=train_slow,
    on=[short_training, one_step, no_steps_at_all, three_layers, double_weights],
    at_most={"syncs": 0},
    tolerance=1e-3,
    points=2,
)


# %% id="train_hidden" role="test"
# Hidden test: more steps, other pictures, other layers, keep of 0 and 1. 3 points, when graded.
### BEGIN HIDDEN TESTS
def more_steps(generator, device):
    return a_training([6, 3, 6, 1, 6, 3, 6, 2], [64, 9, 10], generator, device)


def wide_pictures_too(generator, device):
    pictures = torch.randint(17, (6, 3, 5), generator=generator, dtype=torch.uint8).to(device)
    labels = torch.randint(4, (6,), generator=generator).to(device)
    orders = [torch.randint(6, (size,), generator=generator).to(device) for size in (4, 2, 5)]
    weights = a_training([], [15, 8, 4], generator, device)[3]
    return pictures, labels, orders, weights, 0.2, 0.1, 0.0


def averages_that_stay(generator, device):
    *given, _ = a_training([9, 8], [64, 10], generator, device)
    return *given, 1.0


check(
    train,
    like=train_slow,
    on=[more_steps, three_layers, wide_pictures_too, averages_that_stay, double_weights],
    at_most={"syncs": 0},
    tolerance=1e-3,
    points=3,
)
### END HIDDEN TESTS

# %% id="train_race" role="test"
race(
    train, against=train_slow, on=short_training, at_least={"cpu": 6.5, "cuda": 6.5}, tolerance=1e-3, points=3
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
def distances(x):
    return ((x[:, None] - x) ** 2).sum(-1).sqrt_()


def doubled(x):
    return F.interpolate(x[None, None], scale_factor=2)[0, 0, ::2]


def some_rows(x):
    order = torch.randperm(len(x))
    return x[order[:2]].double()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (distances, doubled, some_rows)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>distances</code> is of chapter 09, <code>doubled</code> is of chapter 12,
# <code>some_rows</code> is of chapter 14.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(some_rows, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "distances": {"operations": 4, "bytes": 8 * n * n * d + 4 * n * n, "syncs": 0},
        "doubled": {"operations": 1, "bytes": 16 * n * d, "syncs": 0},
        "some_rows": {"operations": 3, "bytes": 8 * n + 8 * d + 16 * d, "syncs": 0},
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
# This was the last chapter. Take a script of your own next.
