# %% [markdown]
# # Exercises 03 · Autograd
#
# Five functions that compute gradients. Each is given in a version that is right, and slow or hungry for memory.
# Write a better one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. Some checks also count what your
# answer costs: its syncs, and the most new memory that it has at once. `race` times it against the given version,
# on this machine, now. Hidden tests run when your notebook is graded: other shapes and other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# All functions get plain tensors: none of them requires a gradient. Leave them as they are: their values, and what
# they require. `costs`, which the chapter uses, counts what a call costs: `from autograder import costs`, then
# `print(costs(function, *inputs))`.
# The chapter is [here](../../course/03_autograd.ipynb). 33 points, about 88 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. The last layer only
#
# *Easy, 8 minutes.* A large model is given and stays as it is. Only its last layer is trained. Write
# `last_gradient(weights, inputs, targets)`.
#
# - `weights`: list of one or more tensors of shape `(D, D)`, `float32`, on any device. `inputs` and `targets`:
#   `(N, D)`, same type and device.
# - The model multiplies by each weight in turn. `relu` follows every product except the last. The loss is the
#   mean of the squared differences to `targets`.
# - returns: the gradient of the loss with respect to `weights[-1]`, shape `(D, D)`.


# %% id="last_gradient_given" role="given"
def last_gradient_slow(weights, inputs, targets):
    weights = [weight.detach().requires_grad_() for weight in weights]
    hidden = inputs
    for weight in weights[:-1]:
        hidden = torch.relu(hidden @ weight)
    loss = (hidden @ weights[-1] - targets).square().mean()
    loss.backward()
    return weights[-1].grad


def twelve_layers(generator, device):
    weights = [torch.randn(160, 160, generator=generator) / 9 for _ in range(12)]
    rows = torch.randn(2, 64, 160, generator=generator).to(device)
    return [weight.to(device) for weight in weights], rows[0], rows[1]


def one_layer(generator, device):
    rows = torch.randn(2, 11, 4, generator=generator).to(device)
    return [torch.randn(4, 4, generator=generator).to(device)], rows[0], rows[1]


# %% [markdown]
# <details><summary>Hint 1</summary>How many matrix products does the backward pass of the given version make?
# How many of them does the result need?</details>
# <details><summary>Hint 2</summary>Autograd works backwards only as far as something requires a gradient. Which
# tensor must, and which need not?</details>


# %% id="last_gradient" role="answer"
def last_gradient(weights, inputs, targets):
    ### BEGIN SOLUTION
    *frozen, last = weights
    features = inputs
    for matrix in frozen:
        features = torch.relu(features @ matrix)
    last = last.detach().requires_grad_()
    error = F.mse_loss(features @ last, targets)
    return torch.autograd.grad(error, last)[0]
    ### END SOLUTION


# %% id="last_gradient_check" role="test"
check(last_gradient, like=last_gradient_slow, on=[twelve_layers, one_layer], points=1)


# %% id="last_gradient_hidden" role="test"
# Hidden test: other sizes, again a model of one layer. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def three_layers(generator, device):
    weights = [torch.randn(7, 7, generator=generator).to(device) for _ in range(3)]
    rows = torch.randn(2, 5, 7, generator=generator).to(device)
    return weights, rows[0], rows[1]


check(last_gradient, like=last_gradient_slow, on=[three_layers, one_layer], points=1)
### END HIDDEN TESTS

# %% id="last_gradient_race" role="test"
race(
    last_gradient,
    against=last_gradient_slow,
    on=twelve_layers,
    at_least={"cpu": 1.4, "cuda": 1.2},
    flops=42_598_400,
    points=2,
)

# %% [markdown]
# ## 2. A batch in uneven parts
#
# *Medium, 15 minutes.* A batch of rows is too large for the memory, so it comes in parts, and no two parts need
# be of one size. Some rows have no label; these do not count. The given version is right, but it needs as much memory
# as the whole batch. Write `accumulate(weight, head, parts, labels)`.
#
# - `weight`: `(D, H)` and `head`: `(H, C)`, `float32`. `parts`: list of one or more tensors; part *k* has the shape
#   `(N[k], D)`, `float32`, at least one row. `labels`: list of as many tensors of shape `(N[k],)`, `int64`: from 0 to
#   `C - 1`, or -100 for a row without a label. All on one device.
# - The model gives `torch.tanh(row @ weight) @ head` for a row. The loss is the mean cross entropy of all rows
#   with a label, in all parts together: each of these rows counts the same.
# - returns: the loss, shape `()`, and its gradients with respect to `weight` and `head`. Where no row at all has a
#   label, all three are 0.
# - The memory in use at one time must not grow with the number of parts. For the 40 parts of the test: at most 300 kB
#   of new memory at once for all points. The results count, too: two tables as large as `weight` and `head`, 83 kB. The
#   given version has 3.7 MB; the scores of its largest part (72 rows, 400 classes) are one table of 115 kB.
# - No syncs: the host must not wait for a value that the device has computed.


# %% id="accumulate_given" role="given"
def accumulate_slow(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    total, count = 0.0, 0
    for rows, wanted in zip(parts, labels, strict=True):
        logits = torch.tanh(rows @ weight) @ head
        total = total + F.cross_entropy(logits, wanted, ignore_index=-100, reduction="sum")
        count = count + (wanted != -100).sum()
    loss = total / count.clamp(min=1)
    return loss.detach(), *torch.autograd.grad(loss, (weight, head))


def parts_of(sizes, unlabelled, generator, device):
    """Parts of these sizes, where the given share of each part has no label."""
    width, hidden, classes = 32, 48, 400 if len(sizes) > 6 else 5
    labels = []
    for size, share in zip(sizes, unlabelled, strict=True):
        none = torch.rand(size, generator=generator) < share
        labels.append(torch.randint(classes, (size,), generator=generator).masked_fill(none, -100).to(device))
    return (
        (torch.randn(width, hidden, generator=generator) / 6).to(device),
        (torch.randn(hidden, classes, generator=generator) / 7).to(device),
        [torch.randn(size, width, generator=generator).to(device) for size in sizes],
        labels,
    )


def uneven_parts(generator, device):
    return parts_of((64, 16, 72, 40) * 10, [k / 39 for k in range(40)], generator, device)


def no_label_at_all(generator, device):
    return parts_of((3, 5), (1, 1), generator, device)


def one_part(generator, device):
    return parts_of((7,), (0.3,), generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>When is the graph of a part no longer needed? And what must be known before
# then, so that this part enters the result with the right weight?</details>
# <details><summary>Hint 2</summary>The mean of the parts' means is not the mean of all rows. Which number does each
# part's <em>sum</em> have to be divided by? All labels are there from the beginning.</details>
# <details><summary>Hint 3</summary>That number may stay a tensor: dividing by a tensor asks for no
# value.</details>
# <details><summary>Hint 4</summary>One backward pass for each part; <code>.grad</code> adds up. The running loss is
# wanted as a value only: which method gives a tensor's values without its graph, and without waiting? (If the results
# are right and the memory is still too much, the next hint is for you.)</details>
# <details><summary>Hint 5</summary>Call <code>costs</code> with the largest part alone, then with its first 16
# rows alone, and compare the peaks. How many tables as large as its scores does a part need on its way there and
# back? (And a name in your loop keeps its table alive until another table gets the name: the last part's scores
# may lie beside the next ones.)</details>
# <details><summary>Hint 6</summary>A sum over rows does not mind where the rows are cut: who says that you must take a
# part as it comes?</details>


# %% id="accumulate" role="answer"
def accumulate(weight, head, parts, labels):
    ### BEGIN SOLUTION
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    counted = sum((part != -100).sum() for part in labels).clamp(min=1)
    mean = torch.zeros((), dtype=weight.dtype, device=weight.device)
    pieces = [piece for part in parts for piece in part.split(16)]
    wanted = [piece for part in labels for piece in part.split(16)]
    for rows, classes in zip(pieces, wanted, strict=True):
        summed = F.cross_entropy(torch.tanh(rows @ weight) @ head, classes, reduction="sum")
        share = summed / counted
        share.backward()
        mean += share.detach()
    return mean, weight.grad, head.grad
    ### END SOLUTION


# %% id="accumulate_check" role="test"
check(accumulate, like=accumulate_slow, on=[uneven_parts, no_label_at_all, one_part], points=1)

# %% id="accumulate_lean" role="test"
check(accumulate, like=accumulate_slow, on=uneven_parts, at_most={"syncs": 0}, peak=300_000, points=3)


# %% id="accumulate_hidden" role="test"
# Hidden test: other sizes, again a single part and parts without any label, no syncs. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def some_parts_without_labels(generator, device):
    return parts_of((4, 9, 2, 6), (0, 1, 0.5, 1), generator, device)


check(
    accumulate,
    like=accumulate_slow,
    on=[some_parts_without_labels, one_part, no_label_at_all],
    at_most={"syncs": 0},
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. A training that eats memory
#
# *Medium, 15 minutes.* The first layer of a model stays as it is; its head is trained. At the end one wants the
# head, and also the *mean* of the heads after every step, because averaged weights often do better on new data. The
# given training gives right results. But each step needs more memory than the one before. Find out why, and write
# `train_head(frozen, head, batches, targets, rate)`, which gives the same.
#
# - `frozen`: `(D, H)`, `head`: `(H, C)`, `batches`: `(K, N, D)`, `targets`: `(K, N, C)`, all `float32` on one device.
#   `K` is at least 1. `rate` is a number.
# - A step takes one batch. The model gives `torch.tanh(batch @ frozen) @ head`, the loss is the mean of the
#   squared differences to the targets. Then the head becomes `head - rate * gradient`.
# - returns: the head after the last step, `(H, C)`; the mean of the `K` heads after each step, `(H, C)`; the `K`
#   losses, each from before its step, `(K,)`.
# - The memory in use at one time must not grow with `K`, except that the `K` losses take a few bytes
#   each. For the 40 steps of the test: at most 200 kB for all points (the given version has 3.7 MB).
# - No syncs.


# %% id="train_head_given" role="given"
def train_head_slow(frozen, head, batches, targets, rate):
    frozen, head = frozen.detach().requires_grad_(), head.detach().requires_grad_()
    losses, heads = [], []
    for batch, target in zip(batches, targets, strict=True):
        loss = (torch.tanh(batch @ frozen) @ head - target).square().mean()
        loss.backward(retain_graph=True)
        head = (head - rate * head.grad).detach().requires_grad_()
        losses.append(loss)
        heads.append(head)
    return head.detach(), torch.stack(heads).mean(0).detach(), torch.stack(losses).detach()


def training(steps, rows, width, hidden, classes, generator, device):
    return (
        (torch.randn(width, hidden, generator=generator) / width**0.5).to(device),
        (torch.randn(hidden, classes, generator=generator) / hidden**0.5).to(device),
        torch.randn(steps, rows, width, generator=generator).to(device),
        torch.randn(steps, rows, classes, generator=generator).to(device),
        0.5,
    )


def forty_steps(generator, device):
    return training(40, 64, 64, 128, 32, generator, device)


def one_step(generator, device):
    return training(1, 3, 4, 5, 2, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Call <code>costs</code> with 10, 20 and 40 steps: how much does a step leave
# behind? Compare that with the size of what it computes, and with the size of a head. There is more than one cause.
# </details>
# <details><summary>Hint 2</summary>What does <code>retain_graph=True</code> retain, and who holds on to it
# after the step? Does anybody walk through that graph a second time? And of which tensors do you need a
# gradient at all?</details>
# <details><summary>Hint 3</summary>A mean needs no list: which two numbers are enough for the mean of a long row of
# numbers that you see only once?</details>
# <details><summary>Hint 4</summary>Only for those who change the head in place (you need not): what else has the same
# memory? <code>detach()</code> copies nothing: neither for the head that you were given, nor for one that you want to
# keep.</details>


# %% id="train_head" role="answer"
def train_head(frozen, head, batches, targets, rate):
    ### BEGIN SOLUTION
    head = head.clone().requires_grad_()
    mean, losses = torch.zeros_like(head, requires_grad=False), []
    for rows, wanted in zip(batches, targets, strict=True):
        error = (torch.tanh(rows @ frozen) @ head - wanted).square().mean()
        (slope,) = torch.autograd.grad(error, head)
        losses.append(error.detach())
        with torch.no_grad():
            head.sub_(slope, alpha=rate)
            mean.add_(head, alpha=1 / len(batches))
    return head.detach(), mean, torch.stack(losses)
    ### END SOLUTION


# %% id="train_head_check" role="test"
check(train_head, like=train_head_slow, on=[forty_steps, one_step], points=1)

# %% id="train_head_lean" role="test"
check(train_head, like=train_head_slow, on=forty_steps, at_most={"syncs": 0}, peak=200_000, points=3)


# %% id="train_head_hidden" role="test"
# Hidden test: other sizes, again a single step. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def few_steps(generator, device):
    return training(7, 5, 3, 9, 1, generator, device)


check(train_head, like=train_head_slow, on=[few_steps, one_step], points=2)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. No sample pulls too hard
#
# *Hard, 20 minutes.* A training with privacy must not follow any single sample too far. So the gradient of each
# sample is cut down to the length `limit` before the mean is taken. The given version computes all these gradients at
# once, which fills the memory. Write `clipped_gradient(first, second, inputs, targets, limit)`.
#
# - `first`: `(D, H)`, `second`: `(H, C)`, `inputs`: `(N, D)`, `targets`: `(N, C)`, all `float32` on one device. `N` is at
#   least 1. `limit` is a number above 0.
# - The loss of a sample is the *sum* of the squared differences between `torch.tanh(x @ first) @ second` and its
#   target.
# - The *length* of a sample's gradient is the square root of the sum of the squares of all its numbers, those for
#   `first` and those for `second` together. Where it is above `limit`, both parts of the gradient are multiplied by
#   `limit / length`. Otherwise they stay as they are. A gradient may be 0 altogether.
# - returns: the mean over all samples of these gradients, of shapes `(D, H)` and `(H, C)`.
# - In the test, with 96 samples, at most 550 kB of new memory at once for all points (the given version has 19 MB).


# %% id="clipped_gradient_given" role="given"
def sample_loss(first, second, x, target):
    return (torch.tanh(x @ first) @ second - target).square().sum()


def clipped_gradient_slow(first, second, inputs, targets, limit):
    of_each = torch.func.vmap(torch.func.grad(sample_loss, argnums=(0, 1)), in_dims=(None, None, 0, 0))
    of_first, of_second = of_each(first, second, inputs, targets)
    length = (of_first.square().sum((1, 2)) + of_second.square().sum((1, 2))).sqrt()
    factor = (limit / length).clamp(max=1)[:, None, None]
    return (of_first * factor).mean(0), (of_second * factor).mean(0)


def samples_of(number, width, hidden, classes, limit, generator, device):
    """Samples of which some have short gradients, and the last one has none at all."""
    size = torch.rand(number, 1, generator=generator)
    size[-1] = 0
    return (
        (torch.randn(width, hidden, generator=generator) / width**0.5).to(device),
        (torch.randn(hidden, classes, generator=generator) / hidden**0.5).to(device),
        (torch.randn(number, width, generator=generator) * size).to(device),
        (torch.randn(number, classes, generator=generator) * size).to(device),
        limit,
    )


def many_samples(generator, device):
    return samples_of(96, 128, 128, 128, 100.0, generator, device)


def few_samples(generator, device):
    return samples_of(4, 5, 6, 3, 1.0, generator, device)


def one_sample(generator, device):
    first, second, inputs, targets, limit = samples_of(2, 4, 3, 2, 0.5, generator, device)
    return first, second, inputs[:1], targets[:1], limit


# %% [markdown]
# <details><summary>Hint 1</summary>You need the <em>length</em> of each sample's gradient, and the <em>sum</em> of the
# gradients, cut down. Neither asks for the gradients themselves.</details>
# <details><summary>Hint 2</summary>If the length of every sample were known, the result would be the gradient of one
# number: the mean of the losses, each times its factor. One backward pass for all of them; the race leaves time
# for it. Take care that the factors are plain numbers there.</details>
# <details><summary>Hint 3</summary>Now the lengths. Write down the gradient of a product <code>x @ weight</code> for
# <em>one</em> sample: every number of <code>x</code> times every slope of the loss with respect to the product. What is
# the sum of the squares of such a table? Try it with two numbers each.</details>
# <details><summary>Hint 4</summary>So for each of the two products you need what goes in, and the slope of the
# losses with respect to what comes out: two tables with a row for each sample. Autograd gives the slopes with respect to
# a tensor in between, too. A sample's products depend on no other sample, so the sum of the losses will do.
# </details>


# %% id="clipped_gradient" role="answer"
def clipped_gradient(first, second, inputs, targets, limit):
    ### BEGIN SOLUTION
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
    product = inputs @ first
    hidden = torch.tanh(product)
    output = hidden @ second
    losses = (output - targets).square().sum(1)
    slopes = torch.autograd.grad(losses.sum(), (product, output), retain_graph=True)
    squares = 0
    for given, slope in zip((inputs, hidden.detach()), slopes, strict=True):
        squares = squares + given.square().sum(1) * slope.square().sum(1)
    del slope, slopes
    share = (limit / squares.sqrt()).clamp(max=1)
    return torch.autograd.grad((losses * share).mean(), (first, second))
    ### END SOLUTION


# %% id="clipped_gradient_check" role="test"
check(clipped_gradient, like=clipped_gradient_slow, on=[many_samples, few_samples, one_sample], points=1)

# %% id="clipped_gradient_lean" role="test"
check(clipped_gradient, like=clipped_gradient_slow, on=many_samples, peak=550_000, points=2)


# %% id="clipped_gradient_hidden" role="test"
# Hidden test: other sizes and limits, again a single sample. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def short_limit(generator, device):
    return samples_of(9, 7, 4, 1, 0.01, generator, device)


def long_limit(generator, device):
    return samples_of(6, 3, 8, 5, 1e6, generator, device)


check(
    clipped_gradient,
    like=clipped_gradient_slow,
    on=[short_limit, long_limit, one_sample],
    points=2,
)
### END HIDDEN TESTS

# %% id="clipped_gradient_race" role="test"
race(
    clipped_gradient,
    against=clipped_gradient_slow,
    on=many_samples,
    at_least={"cpu": 3.8},
    flops=15_728_640,
    points=3,
)

# %% [markdown]
# ## 5. Round and round
#
# *Hard, 20 minutes.* Where is a planet? Kepler's equation says so: `angle = mean + eccentricity * sin(angle)`. `mean`
# grows evenly with time, `eccentricity` says how far the orbit is from a circle. The `angle` stands on both sides,
# so the given version puts it in, again and again, until it no longer changes. And it records every step, because the
# slopes are wanted, too. Write a faster `orbits(mean, eccentricity)`, which needs less memory.
#
# - `mean`: `(N,)`, from 0 to 6.3; `eccentricity`: `(N,)`, from 0 to 0.7. Both `float32` on one device; `N` is at least 1.
# - returns three tensors of shape `(N,)`: the angles, and the slopes of each planet's angle with respect to its
#   own `mean` and with respect to its own `eccentricity`. Each number may be off by 1e-4 times the root mean
#   square of all numbers of its tensor; what the given version has after 60 steps is exact enough.
# - In the test of memory, with 2,000 planets, at most 100 kB of new memory at once for all points (the given
#   version has 1 MB).
# - The race has 20,000 planets. For all of its points you need a better way to the angles than 60 such steps. The
#   chapter does not have it; hints 5 and 6 lead to it.


# %% id="orbits_given" role="given"
def orbits_slow(mean, eccentricity):
    mean, eccentricity = mean.detach().requires_grad_(), eccentricity.detach().requires_grad_()
    angle = mean
    for _ in range(60):
        angle = mean + eccentricity * angle.sin()
    return angle.detach(), *torch.autograd.grad(angle.sum(), (mean, eccentricity))


def planets(generator, device):
    mean, eccentricity = torch.rand(2, 2000, generator=generator).to(device)
    return mean * 6.3, eccentricity * 0.7


def many_planets(generator, device):
    mean, eccentricity = torch.rand(2, 20_000, generator=generator).to(device)
    return mean * 6.3, eccentricity * 0.7


def three_circles(generator, device):
    return torch.rand(3, generator=generator).to(device) * 6.3, torch.zeros(3, device=device)


# %% [markdown]
# <details><summary>Hint 1</summary>Do the <em>angles</em> need a graph? Find them first, and look at the slopes
# afterwards, when the angles are known.</details>
# <details><summary>Hint 2</summary>Recording only the last step is not enough, and the check shows it: the angle that
# goes into that step depends on <code>mean</code> and <code>eccentricity</code>, too.</details>
# <details><summary>Hint 3</summary>At the end the same angle goes into a step and comes out. Move <code>mean</code> a
# little. The angle that comes out moves, for two reasons:
# because <code>mean</code> moved, and because the angle that goes in moved, by just as much as the one that comes
# out. That is an equation for how much it moves. Autograd gives both numbers in it, from one recorded step whose three
# inputs require a gradient; or take the derivatives by hand.</details>
# <details><summary>Hint 4</summary>If <em>m</em> is the slope of one step with respect to <code>mean</code>, and
# <em>a</em> the one with respect to the angle, the slope <em>s</em> that is wanted satisfies
# <em>s = m + a s</em>.</details>
# <details><summary>Hint 5</summary>Is the race still ahead of you? Ask <code>costs</code> how many operations a call
# starts, and print how far the angles are from those of the given version after 10, 20, 40 steps. Each step comes nearer
# by a fixed share. You need steps that come nearer faster.</details>
# <details><summary>Hint 6</summary>After a step you know two things about an angle: by how much the two sides of the
# equation differ, and the slope of that difference with respect to the angle. You need that slope for the results,
# anyway. If it stayed as it is, how far would the angle have to move for the difference to be 0? Go there. (This is
# Newton's method.) Print how far off you are after 1, 2, 3 … such steps, and try another angle to begin
# with.</details>


# %% id="orbits" role="answer"
def orbits(mean, eccentricity):
    ### BEGIN SOLUTION
    angle = mean + eccentricity * mean.sin()
    for _ in range(4):
        apart = angle - eccentricity * angle.sin() - mean
        angle = angle - apart / (1 - eccentricity * angle.cos())
    of_mean = 1 / (1 - eccentricity * angle.cos())
    return angle, of_mean, angle.sin() * of_mean
    ### END SOLUTION


# %% id="orbits_check" role="test"
check(orbits, like=orbits_slow, on=[planets, three_circles], points=1)

# %% id="orbits_lean" role="test"
check(orbits, like=orbits_slow, on=planets, peak=100_000, points=2)


# %% id="orbits_hidden" role="test"
# Hidden test: other numbers of planets, circles among them. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_planet(generator, device):
    return torch.rand(1, generator=generator).to(device) * 6.3, torch.full((1,), 0.7, device=device)


def circles_among_them(generator, device):
    mean, eccentricity = torch.rand(2, 17, generator=generator).to(device)
    return mean * 6.3, (eccentricity - 0.3).clamp(min=0)


check(orbits, like=orbits_slow, on=[one_planet, circles_among_them], points=2)
### END HIDDEN TESTS

# %% id="orbits_race" role="test"
race(orbits, against=orbits_slow, on=many_planets, at_least={"cpu": 7.2, "cuda": 5}, points=2)

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
def report(x):
    return [row.sum().item() for row in x]


def numbered(x):
    return x[:, 0] + torch.arange(len(x)).float()


def gradient(x):
    weights = torch.ones(x.shape[1], requires_grad=True)
    (x @ weights).sum().backward()
    return weights.grad


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (report, numbered, gradient)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>report</code> is of chapter 00, <code>numbered</code> is of chapter 01,
# <code>gradient</code> is of chapter 03.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(gradient, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "report": {"operations": 2 * n, "bytes": 4 * n, "syncs": n},
        "numbered": {"operations": 3, "bytes": 8 * n + 4 * n + 4 * n, "syncs": 0},
        "gradient": {"operations": 5, "bytes": 8 * d + 4 * n + 8, "syncs": 0},
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
