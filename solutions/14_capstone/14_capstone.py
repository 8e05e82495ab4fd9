# %% [markdown]
# # Exercises 14 · A training script
#
# Here is another training script for the digits, with other faults than that of the chapter. It moves the
# pictures about, trains a network of two layers, and compares pictures with each other. Everything in it is
# right. You mend it part by part, and in the end as a whole.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. Hidden tests run when your notebook is graded: other shapes, edge
# cases, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/14_capstone.ipynb). 30 points, about 55 minutes.

# %% id="setup" role="given"
from pathlib import Path

import numpy as np
import torch

from autograder import check, race

with np.load(Path("../../data/digits.npz")) as file:
    digits = torch.from_numpy(file["images"])  # (1797, 8, 8), uint8, values 0 to 16
    digit_labels = torch.from_numpy(file["labels"]).long()


def some_digits(number, generator, device):
    chosen = torch.randperm(len(digits), generator=generator)[:number]
    return digits[chosen].to(device), digit_labels[chosen].to(device)


# %% [markdown]
# ## 1. Batches
#
# *Easy, 8 minutes.* Write `batches(pictures, labels, orders)`, which collects the pictures of all steps.
#
# - `pictures`: `uint8` tensor of shape `(N, H, W)`, values 0 to 16. `labels`: `int64` tensor of shape `(N,)`.
#   `orders`: `int64` tensor of shape `(steps, size)`: row *s* says which pictures step *s* uses, and in which
#   order. All are on the same device; `steps` may be 0.
# - returns: a tuple of a `float32` tensor of shape `(steps, size, H, W)` with values from 0 to 1 (that is,
#   divided by 16) and an `int64` tensor of shape `(steps, size)`, both on that device.
# - A number in `orders` outside 0 to *N* − 1 must raise `IndexError`, also a negative one.


# %% id="batches_given" role="given"
def batches_slow(pictures, labels, orders):
    rows, answers, device = pictures.tolist(), labels.tolist(), pictures.device
    steps, size = orders.shape
    x = torch.zeros(0, *pictures.shape[1:], device=device)
    y = torch.zeros(0, dtype=torch.int64, device=device)
    for i in orders.flatten().tolist():
        if not 0 <= i < len(rows):
            raise IndexError(f"there is no picture {i} among {len(rows)}")
        x = torch.cat([x, torch.tensor([rows[i]], dtype=torch.float32, device=device) / 16])
        y = torch.cat([y, torch.tensor([answers[i]], device=device)])
    return x.reshape(steps, size, *pictures.shape[1:]), y.reshape(steps, size)


def four_steps(generator, device):
    return *some_digits(200, generator, device), torch.randint(200, (4, 64), generator=generator).to(device)


def number_too_large(generator, device):
    return *some_digits(9, generator, device), torch.tensor([[0, 8], [9, 1]], device=device)


def number_below_zero(generator, device):
    return *some_digits(9, generator, device), torch.tensor([[0, 8, -1]], device=device)


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
check(batches, like=batches_slow, on=four_steps, points=1)

# %% id="batches_range" role="test"
check(batches, like=batches_slow, on=[number_too_large, number_below_zero], raises=IndexError, points=1)


# %% id="batches_hidden" role="test"
# Hidden test: no steps, steps of one picture, pictures that are not square. 1 point, when graded.
### BEGIN HIDDEN TESTS
def no_steps(generator, device):
    return *some_digits(5, generator, device), torch.zeros(0, 3, dtype=torch.int64, device=device)


def one_picture_a_step(generator, device):
    return *some_digits(5, generator, device), torch.tensor([[4], [0], [4]], device=device)


def wide_pictures(generator, device):
    pictures = torch.randint(17, (6, 3, 5), generator=generator, dtype=torch.uint8).to(device)
    labels = torch.randint(10, (6,), generator=generator).to(device)
    return pictures, labels, torch.randint(6, (2, 9), generator=generator).to(device)


check(batches, like=batches_slow, on=[no_steps, one_picture_a_step, wide_pictures], points=1)
### END HIDDEN TESTS

# %% id="batches_race" role="test"
race(batches, against=batches_slow, on=four_steps, at_least={"cpu": 10, "cuda": 10}, points=1)

# %% [markdown]
# ## 2. Move the pictures
#
# *Hard, 15 minutes.* A network should know a digit wherever it stands. So each picture is moved by some
# pixels before it is used. Write `shift(pictures, moves)`.
#
# - `pictures`: floating-point tensor of shape `(N, H, W)`. `moves`: `int64` tensor of shape `(N, 2)` on the
#   same device: by how many pixels picture *i* moves down and to the right. A negative number moves it up or
#   to the left. *N* may be 0; a move may be larger than the picture.
# - returns: tensor of the same shape, type and device. What leaves the picture is lost, and 0 comes in: pixel
#   `(r, c)` is `pictures[i, r - down, c - right]`, or 0 where that is outside.
# - A `moves` of another shape than `(N, 2)` must raise `ValueError`.


# %% id="shift_given" role="given"
def shift_slow(pictures, moves):
    number, height, width = pictures.shape
    if tuple(moves.shape) != (number, 2):
        raise ValueError(f"moves must have the shape {(number, 2)}, not {tuple(moves.shape)}")
    result = []
    for picture, (down, right) in zip(pictures.tolist(), moves.tolist(), strict=True):
        moved = []
        for r in range(height):
            for c in range(width):
                inside = 0 <= r - down < height and 0 <= c - right < width
                moved.append(picture[r - down][c - right] if inside else 0.0)
        result.append(torch.tensor(moved, dtype=pictures.dtype, device=pictures.device))
    return torch.stack(result).reshape(pictures.shape) if result else torch.zeros_like(pictures)


def moved_pictures(generator, device):
    moves = torch.randint(-3, 4, (200, 2), generator=generator)
    return torch.rand(200, 12, 12, generator=generator).to(device), moves.to(device)


def moves_of_another_shape(generator, device):
    return torch.rand(3, 4, 4, generator=generator).to(device), torch.zeros(
        2, 2, dtype=torch.int64, device=device
    )


# %% [markdown]
# <details><summary>Hint 1</summary>Do not ask where each pixel goes. Ask where each pixel of the result comes
# from: a row number and a column number for each, as tensors.</details>
# <details><summary>Hint 2</summary>The row of the source depends on the picture and on <code>r</code> only: a
# table of shape <code>(N, H)</code>. The same for columns. Indexing with three tensors broadcasts
# them.</details>
# <details><summary>Hint 3</summary>An index must never lie outside. Make it lie inside first
# (<code>clamp</code>), and put the zeros in afterwards (chapter 10).</details>


# %% id="shift" role="answer"
def shift(pictures, moves):
    ### BEGIN SOLUTION
    number, height, width = pictures.shape
    if moves.shape != (number, 2):
        raise ValueError(f"moves must have the shape {(number, 2)}, not {tuple(moves.shape)}")
    rows = torch.arange(height, device=pictures.device) - moves[:, :1]
    columns = torch.arange(width, device=pictures.device) - moves[:, 1:]
    rows_there, columns_there = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    inside = (rows == rows_there)[:, :, None] & (columns == columns_there)[:, None, :]
    which = torch.arange(number, device=pictures.device)[:, None, None]
    return torch.where(inside, pictures[which, rows_there[:, :, None], columns_there[:, None, :]], 0)
    ### END SOLUTION


# %% id="shift_check" role="test"
check(shift, like=shift_slow, on=moved_pictures, points=1)

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


def no_pictures(generator, device):
    return torch.zeros(0, 4, 6, device=device), torch.zeros(0, 2, dtype=torch.int64, device=device)


def double_pictures(generator, device):
    pictures = torch.rand(3, 6, 4, generator=generator, dtype=torch.float64)
    return pictures.to(device), torch.tensor([[1, -1], [-2, 3], [5, 0]], device=device)


check(shift, like=shift_slow, on=[large_moves, one_row, no_pictures, double_pictures], points=2)
### END HIDDEN TESTS

# %% id="shift_race" role="test"
race(shift, against=shift_slow, on=moved_pictures, at_least={"cpu": 4, "cuda": 4}, points=2)

# %% [markdown]
# ## 3. The loss and its gradients
#
# *Medium, 10 minutes.* The network: `hidden = relu(x @ w1 + b1)`, `scores = hidden @ w2 + b2`. The loss is
# the mean cross-entropy of the scores. Write `loss_and_gradients(weights, pictures, labels)`.
#
# - `weights`: list of four tensors `w1`, `b1`, `w2`, `b2` of shapes `(H * W, hidden)`, `(hidden,)`, `(hidden,
#   classes)`, `(classes,)`. `pictures`: tensor of shape `(N, H, W)` of the same type. `labels`: `int64`
#   tensor of shape `(N,)`. All are on the same device.
# - returns: a tuple of the loss (a tensor without dimensions) and a list of four tensors, its gradients with
#   respect to the weights. The given weights must not be changed. Scores may be large.
# - A batch without pictures must raise `ValueError`.


# %% id="loss_and_gradients_given" role="given"
def loss_and_gradients_slow(weights, pictures, labels):
    if not len(pictures):
        raise ValueError("a batch needs one picture or more")
    leaves = [weight.clone().requires_grad_() for weight in weights]
    w1, b1, w2, b2 = leaves
    total = torch.zeros((), dtype=w1.dtype, device=w1.device)
    for picture, label in zip(pictures, labels, strict=True):
        hidden = picture.flatten() @ w1 + b1
        hidden = hidden * (hidden > 0)
        scores = hidden @ w2 + b2
        scores = scores - scores.max().item()
        chosen = torch.arange(len(scores), device=scores.device) == label
        total = total + scores.exp().sum().log() - scores[chosen].sum()
    loss = total / len(pictures)
    return loss.detach(), list(torch.autograd.grad(loss, leaves))


def new_weights(pixels, hidden, classes, generator, device):
    w1 = torch.randn(pixels, hidden, generator=generator) / pixels**0.5
    w2 = torch.randn(hidden, classes, generator=generator) / hidden**0.5
    b1, b2 = (torch.randn(n, generator=generator) / 10 for n in (hidden, classes))
    return [weight.to(device) for weight in (w1, b1, w2, b2)]


def a_batch(generator, device):
    weights = new_weights(64, 32, 10, generator, device)
    pictures, labels = some_digits(64, generator, device)
    return weights, pictures / 16, labels


def empty_batch(generator, device):
    weights = new_weights(64, 32, 10, generator, device)
    pictures, labels = some_digits(0, generator, device)
    return weights, pictures / 16, labels


# %% [markdown]
# <details><summary>Hint 1</summary>The same formulas hold for a matrix with one picture a row.</details>
# <details><summary>Hint 2</summary><code>torch.nn.functional</code> has one function for everything that
# happens to the scores: safe for large ones, and it takes the mean.</details>
# <details><summary>Hint 3</summary>Autograd needs leaves that ask for gradients. To ask it of the caller's
# own tensors would change them. A detached one shares the memory, and is a new leaf.</details>


# %% id="loss_and_gradients" role="answer"
def loss_and_gradients(weights, pictures, labels):
    ### BEGIN SOLUTION
    if not len(pictures):
        raise ValueError("a batch needs one picture or more")
    w1, b1, w2, b2 = leaves = [weight.detach().requires_grad_() for weight in weights]
    hidden = torch.addmm(b1, pictures.flatten(1), w1).relu()
    loss = torch.nn.functional.cross_entropy(torch.addmm(b2, hidden, w2), labels)
    return loss.detach(), list(torch.autograd.grad(loss, leaves))
    ### END SOLUTION


# %% id="loss_and_gradients_check" role="test"
check(loss_and_gradients, like=loss_and_gradients_slow, on=a_batch, points=1)

# %% id="loss_and_gradients_empty" role="test"
check(loss_and_gradients, like=loss_and_gradients_slow, on=empty_batch, raises=ValueError, points=1)


# %% id="loss_and_gradients_hidden" role="test"
# Hidden test: a single picture, other sizes, scores in the hundreds. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_picture(generator, device):
    weights = new_weights(64, 5, 10, generator, device)
    pictures, labels = some_digits(1, generator, device)
    return weights, pictures / 16, labels


def three_classes(generator, device):
    weights = new_weights(12, 7, 3, generator, device)
    labels = torch.randint(3, (20,), generator=generator)
    return weights, torch.rand(20, 3, 4, generator=generator).to(device), labels.to(device)


def large_scores(generator, device):
    weights = new_weights(64, 16, 10, generator, device)
    pictures, labels = some_digits(12, generator, device)
    return [*weights[:2], 300 * weights[2], weights[3]], pictures / 16, labels


check(
    loss_and_gradients,
    like=loss_and_gradients_slow,
    on=[one_picture, three_classes, large_scores],
    tolerance=1e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="loss_and_gradients_race" role="test"
race(
    loss_and_gradients,
    against=loss_and_gradients_slow,
    on=a_batch,
    at_least={"cpu": 8, "cuda": 8},
    points=2,
)

# %% [markdown]
# ## 4. Who is taken for whom?
#
# *Medium, 12 minutes.* Before you believe in a network, ask what can be done without one: give each picture
# the label of the most similar picture that you know. Write `confusion(pictures, labels, known, known_labels,
# classes)`.
#
# - `pictures`, `known`: `uint8` tensors of shapes `(N, H, W)` and `(K, H, W)`, values 0 to 16; *K* is at
#   least 1, *N* may be 0. `labels`, `known_labels`: `int64` tensors of shapes `(N,)` and `(K,)`. `classes`: a
#   number; all labels are from 0 to `classes - 1`.
# - returns: `int64` tensor of shape `(classes, classes)` on the same device. Entry `(a, b)` says how many
#   pictures with the label *a* were given the label *b*.
# - The most similar picture is the one with the smallest sum of squared differences. If there are several,
#   the first of them in `known` counts.
# - An empty `known` must raise `ValueError`.


# %% id="confusion_given" role="given"
def confusion_slow(pictures, labels, known, known_labels, classes):
    if not len(known):
        raise ValueError("there is no picture to compare with")
    table = torch.zeros(classes, classes, dtype=torch.int64, device=pictures.device)
    for picture, label in zip(pictures, labels, strict=True):
        best, given = None, None
        for other, other_label in zip(known, known_labels, strict=True):
            distance = ((picture.double() - other.double()) ** 2).sum().item()
            if best is None or distance < best:
                best, given = distance, other_label.item()
        table[label.item(), given] += 1
    return table


def digits_to_know(generator, device):
    pictures, labels = some_digits(60, generator, device)
    return pictures[:20], labels[:20], pictures[20:], labels[20:], 10


def nothing_known(generator, device):
    pictures, labels = some_digits(6, generator, device)
    return pictures, labels, pictures[:0], labels[:0], 10


# %% [markdown]
# <details><summary>Hint 1</summary>Chapter 09: all distances between two sets of rows are one call. What type
# does <code>uint8</code> have to become first, so that differences below 0 exist?</details>
# <details><summary>Hint 2</summary>A pair of labels is one number: <code>a * classes + b</code>. How do you
# count how often each number occurs, without a loop?</details>


# %% id="confusion" role="answer"
def confusion(pictures, labels, known, known_labels, classes):
    ### BEGIN SOLUTION
    if not len(known):
        raise ValueError("there is no picture to compare with")
    distances = torch.cdist(pictures.flatten(1).float(), known.flatten(1).float())
    pairs = labels * classes + known_labels[distances.argmin(1)]
    return torch.bincount(pairs, minlength=classes**2).view(classes, classes)
    ### END SOLUTION


# %% id="confusion_check" role="test"
check(confusion, like=confusion_slow, on=digits_to_know, points=1)

# %% id="confusion_nothing" role="test"
check(confusion, like=confusion_slow, on=nothing_known, raises=ValueError, points=1)


# %% id="confusion_hidden" role="test"
# Hidden test: ties, no pictures, one known picture, other sizes. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def ties(generator, device):
    few = torch.randint(3, (40, 1, 2), generator=generator, dtype=torch.uint8).to(device)
    labels = torch.randint(5, (40,), generator=generator).to(device)
    return few[:15], labels[:15], few[15:], labels[15:], 5


def no_digits(generator, device):
    pictures, labels = some_digits(6, generator, device)
    return pictures[:0], labels[:0], pictures, labels, 10


def one_known(generator, device):
    pictures, labels = some_digits(6, generator, device)
    return pictures[1:], labels[1:], pictures[:1], labels[:1], 12


check(confusion, like=confusion_slow, on=[ties, no_digits, one_known], points=1)
### END HIDDEN TESTS

# %% id="confusion_race" role="test"
race(confusion, against=confusion_slow, on=digits_to_know, at_least={"cpu": 15, "cuda": 15}, points=2)

# %% [markdown]
# ## 5. The whole training
#
# *Medium, 10 minutes.* Now all of it: `train(pictures, labels, orders, moves, weights, rate, momentum)`.
#
# - `pictures`, `labels`, `orders`: as in exercise 1. `moves`: `int64` tensor of shape `(steps, size, 2)`.
#   `weights`: as in exercise 3. `rate`, `momentum`: numbers. All tensors are on the same device; `steps` may
#   be 0.
# - Each step takes the pictures of its row of `orders`, moves them by its `moves`, and finds the loss and its
#   gradients. Then, for each weight, `speed = momentum * speed + gradient` (it starts at 0), and
#   `weight = weight - rate * speed`.
# - returns: a tuple of a `float32` tensor of shape `(steps,)` with the loss of each step, taken before its
#   update, and the list of the four weights after the last step. The given weights must not be changed.
# - The losses and weights must be those of the given version up to rounding. Numbers of `float32` are exact
#   enough.
#
# Three races: 3×, 5× and 7×. Your own functions, put together, should pass all three. Then make it faster,
# for yourself: the hints say how. If a hidden test finds a wrong answer, the races of this exercise give no
# points either.


# %% id="train_given" role="given"
def train_slow(pictures, labels, orders, moves, weights, rate, momentum):
    dtype, weights = weights[0].dtype, [weight.double() for weight in weights]
    speeds = [torch.zeros_like(weight) for weight in weights]
    losses = []
    for order, step_moves in zip(orders, moves, strict=True):
        x, y = batches_slow(pictures, labels, order[None])
        x = shift_slow(x[0].double(), step_moves)
        loss, gradients = loss_and_gradients_slow(weights, x, y[0])
        for i, gradient in enumerate(gradients):
            speeds[i] = momentum * speeds[i] + gradient
            weights[i] = weights[i] - rate * speeds[i]
        losses.append(loss.item())
    losses = torch.tensor(losses, dtype=torch.float32, device=pictures.device)
    return losses, [weight.to(dtype) for weight in weights]


def a_training(steps, size, generator, device):
    pictures, labels = some_digits(64, generator, device)
    orders = torch.randint(64, (steps, size), generator=generator).to(device)
    moves = torch.randint(-1, 2, (steps, size, 2), generator=generator).to(device)
    return pictures, labels, orders, moves, new_weights(64, 32, 10, generator, device), 0.1, 0.9


def short_training(generator, device):
    return a_training(2, 56, generator, device)


def no_steps_at_all(generator, device):
    return a_training(0, 4, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Put your functions together first, and race. Then count: what does the
# loop do that does not depend on the weights?</details>
# <details><summary>Hint 2</summary>What does not depend on the weights can be done for all steps at once,
# before the loop.</details>
# <details><summary>Hint 3</summary>The rest is the number of operations a step. Keep the losses as tensors
# until the end. Let the update write to your own weights in place: <code>add_</code> has an
# <code>alpha</code>.</details>
# <details><summary>Hint 4</summary>Where is the copy of the weights made that you may write to: in each step,
# or once? (Autograd needs a leaf, and writing to it needs <code>torch.no_grad()</code>.)</details>


# %% id="train" role="answer"
def train(pictures, labels, orders, moves, weights, rate, momentum):
    ### BEGIN SOLUTION
    steps, size = orders.shape
    height, width = pictures.shape[1:]
    moved = shift(
        (pictures[orders] / 16).reshape(steps * size, height, width), moves.reshape(steps * size, 2)
    )
    x, y = moved.view(steps, size, height * width), labels[orders]
    w1, b1, w2, b2 = leaves = [weight.clone().requires_grad_() for weight in weights]
    speeds = [torch.zeros_like(weight) for weight in weights]
    losses = torch.zeros(steps, device=pictures.device)
    for step in range(steps):
        hidden = torch.addmm(b1, x[step], w1).relu()
        loss = torch.nn.functional.cross_entropy(torch.addmm(b2, hidden, w2), y[step])
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            losses[step] = loss
            for leaf, speed, gradient in zip(leaves, speeds, gradients, strict=True):
                leaf.sub_(speed.mul_(momentum).add_(gradient), alpha=rate)
    return losses, [leaf.detach() for leaf in leaves]
    ### END SOLUTION


# %% id="train_check" role="test"
check(train, like=train_slow, on=[short_training, no_steps_at_all], tolerance=1e-3, points=1)


# %% id="train_hidden" role="test"
# Hidden test: one step, more steps, no momentum, other sizes. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_step(generator, device):
    return a_training(1, 7, generator, device)


def more_steps(generator, device):
    return a_training(12, 6, generator, device)


def no_momentum(generator, device):
    return *a_training(3, 5, generator, device)[:-2], 0.5, 0.0


def wide_training(generator, device):
    pictures = torch.randint(17, (6, 3, 5), generator=generator, dtype=torch.uint8).to(device)
    labels = torch.randint(4, (6,), generator=generator).to(device)
    orders = torch.randint(6, (2, 9), generator=generator).to(device)
    moves = torch.randint(-4, 5, (2, 9, 2), generator=generator).to(device)
    return pictures, labels, orders, moves, new_weights(15, 3, 4, generator, device), 0.2, 0.5


check(
    train,
    like=train_slow,
    on=[one_step, more_steps, no_momentum, wide_training],
    tolerance=1e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="train_race_3" role="test"
race(train, against=train_slow, on=short_training, at_least={"cpu": 3, "cuda": 3}, tolerance=1e-3, points=2)

# %% id="train_race_5" role="test"
race(train, against=train_slow, on=short_training, at_least={"cpu": 5, "cuda": 5}, tolerance=1e-3, points=2)

# %% id="train_race_7" role="test"
race(train, against=train_slow, on=short_training, at_least={"cpu": 7, "cuda": 7}, tolerance=1e-3, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
# This was the last chapter. Take a script of your own next.
