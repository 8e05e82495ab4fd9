# %% [markdown]
# # Exercises 03 · Autograd
#
# Five functions that compute gradients. Each is given in a version that is right, and slow or hungry for memory.
# Write a better one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. Some checks also count what your
# answer costs, in bytes and syncs. `race` times it against the given version, on this machine, now. Hidden tests
# run when your notebook is graded: other shapes and other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# All functions get plain tensors: none of them requires a gradient before you say so. Do not change them.
# The chapter is [here](../../course/03_autograd.ipynb). 28 points, about 65 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, race

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


def eight_layers(generator, device):
    weights = [torch.randn(192, 192, generator=generator) / 10 for _ in range(8)]
    rows = torch.randn(2, 64, 192, generator=generator).to(device)
    return [weight.to(device) for weight in weights], rows[0], rows[1]


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
check(last_gradient, like=last_gradient_slow, on=eight_layers, points=1)


# %% id="last_gradient_hidden" role="test"
# Hidden test: other sizes, a model of one layer. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def three_layers(generator, device):
    weights = [torch.randn(7, 7, generator=generator).to(device) for _ in range(3)]
    rows = torch.randn(2, 5, 7, generator=generator).to(device)
    return weights, rows[0], rows[1]


def one_layer(generator, device):
    rows = torch.randn(2, 11, 4, generator=generator).to(device)
    return [torch.randn(4, 4, generator=generator).to(device)], rows[0], rows[1]


check(last_gradient, like=last_gradient_slow, on=[three_layers, one_layer], points=2)
### END HIDDEN TESTS

# %% id="last_gradient_race" role="test"
race(last_gradient, against=last_gradient_slow, on=eight_layers, at_least={"cpu": 1.5, "cuda": 1.3}, points=2)

# %% [markdown]
# ## 2. A gradient for every picture
#
# *Medium, 12 minutes.* Which picture pulls the model in which direction? Write
# `picture_gradients(weight, bias, pictures, labels)`.
#
# - `weight`: `(C, D)`, `bias`: `(C,)`, `pictures`: `(N, D)`, all `float32`. `labels`: `(N,)`, `int64`, from 0 to
#   `C - 1`. All on one device; `N` is at least 1.
# - The loss of one picture is the cross entropy (`F.cross_entropy`) of `weight @ picture + bias` with its label.
# - returns: two tensors of shapes `(N, C, D)` and `(N, C)`. Entry *n* is the gradient of the loss of picture *n*
#   with respect to `weight` and to `bias`.


# %% id="picture_gradients_given" role="given"
def picture_gradients_slow(weight, bias, pictures, labels):
    weight, bias = weight.detach().requires_grad_(), bias.detach().requires_grad_()
    of_weight, of_bias = [], []
    for picture, label in zip(pictures, labels, strict=True):
        loss = F.cross_entropy(weight @ picture + bias, label)
        gradients = torch.autograd.grad(loss, (weight, bias))
        of_weight.append(gradients[0])
        of_bias.append(gradients[1])
    return torch.stack(of_weight), torch.stack(of_bias)


def many_pictures(generator, device):
    return (
        (torch.randn(10, 64, generator=generator) / 8).to(device),
        torch.randn(10, generator=generator).to(device),
        torch.randn(80, 64, generator=generator).to(device),
        torch.randint(10, (80,), generator=generator).to(device),
    )


# %% [markdown]
# <details><summary>Hint 1</summary>Write a function that gives the loss of <em>one</em> picture. The chapter turns
# such a function into one that gives all the gradients.</details>
# <details><summary>Hint 2</summary><code>torch.func.grad</code> takes <code>argnums</code> for more than one
# gradient, <code>torch.func.vmap</code> takes <code>in_dims</code>: <code>None</code> for what all pictures share.
# </details>
# <details><summary>Hint 3</summary>There are other ways. Give every picture its own copy of the weights
# (<code>expand</code> copies nothing). Then the gradient of the <em>sum</em> of all losses with respect to those
# copies holds them all.</details>


# %% id="picture_gradients" role="answer"
def picture_gradients(weight, bias, pictures, labels):
    ### BEGIN SOLUTION
    def loss_of_one(w, b, picture, label):
        return F.cross_entropy(w @ picture + b, label)

    each = torch.func.vmap(torch.func.grad(loss_of_one, argnums=(0, 1)), in_dims=(None, None, 0, 0))
    return each(weight, bias, pictures, labels)
    ### END SOLUTION


# %% id="picture_gradients_check" role="test"
check(picture_gradients, like=picture_gradients_slow, on=many_pictures, points=1)


# %% id="picture_gradients_hidden" role="test"
# Hidden test: other sizes, a single picture, two classes. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def pictures_of(number, classes, pixels):
    def case(generator, device):
        return (
            torch.randn(classes, pixels, generator=generator).to(device),
            torch.randn(classes, generator=generator).to(device),
            torch.randn(number, pixels, generator=generator).to(device),
            torch.randint(classes, (number,), generator=generator).to(device),
        )

    case.__name__ = f"{number}_pictures_{classes}_classes"
    return case


check(
    picture_gradients,
    like=picture_gradients_slow,
    on=[pictures_of(6, 5, 9), pictures_of(1, 4, 3), pictures_of(8, 2, 1)],
    points=2,
)
### END HIDDEN TESTS

# %% id="picture_gradients_race" role="test"
race(
    picture_gradients,
    against=picture_gradients_slow,
    on=many_pictures,
    at_least={"cpu": 2.5, "cuda": 4},
    points=3,
)

# %% [markdown]
# ## 3. A leak mended
#
# *Medium, 15 minutes.* A batch is too large for the memory, so it comes in parts. The given version adds up the
# loss of all parts, as in `total = total + loss`, and calls autograd once at the end. That does not save
# anything: the total holds on to the graph of every part. Write `large_batch(weight, head, parts, targets)`.
#
# - `weight`: `(D, H)`, `head`: `(H, 1)`, `parts`: `(K, N, D)`, `targets`: `(K, N, 1)`, all `float32` on one
#   device. `K` is at least 1.
# - returns: the mean loss over the *K* parts (shape `()`), and its gradients with respect to `weight` and `head`.
# - The memory in use at one time must not grow with *K*. For 32 parts as in the test, at most 600 kB; the given
#   version takes more than 2 MB.
# - The host must not wait for the device in each step: no syncs, so no `.item()`.


# %% id="large_batch_given" role="given"
def large_batch_slow(weight, head, parts, targets):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    total = 0.0
    for part, target in zip(parts, targets, strict=True):
        predicted = torch.tanh(part @ weight) @ head
        loss = (predicted - target).square().mean()
        total = total + loss / len(parts)
    of_weight, of_head = torch.autograd.grad(total, (weight, head))
    return total.detach(), of_weight, of_head


def thirty_two_parts(generator, device):
    return (
        (torch.randn(32, 256, generator=generator) / 6).to(device),
        (torch.randn(256, 1, generator=generator) / 16).to(device),
        torch.randn(32, 64, 32, generator=generator).to(device),
        torch.randn(32, 64, 1, generator=generator).to(device),
    )


# %% [markdown]
# <details><summary>Hint 1</summary>When is the graph of a part no longer needed? After its own backward pass. What
# happens to <code>.grad</code> when there is a second one?</details>
# <details><summary>Hint 2</summary>The gradient of a mean is the mean of the gradients: divide each loss before its
# backward pass.</details>
# <details><summary>Hint 3</summary>The running total is wanted as a number only. Which method gives a tensor's
# values without its graph, and without waiting?</details>


# %% id="large_batch" role="answer"
def large_batch(weight, head, parts, targets):
    ### BEGIN SOLUTION
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    mean = torch.zeros((), dtype=parts.dtype, device=parts.device)
    for rows, wanted in zip(parts, targets, strict=True):
        share = F.mse_loss(torch.tanh(rows @ weight) @ head, wanted) / len(parts)
        share.backward()
        mean += share.detach()
    return mean, weight.grad, head.grad
    ### END SOLUTION


# %% id="large_batch_check" role="test"
check(large_batch, like=large_batch_slow, on=thirty_two_parts, points=1)

# %% id="large_batch_cheap" role="test"
check(
    large_batch,
    like=large_batch_slow,
    on=thirty_two_parts,
    at_most={"peak_bytes": 600_000, "syncs": 0},
    points=3,
)


# %% id="large_batch_hidden" role="test"
# Hidden test: other sizes, a single part. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def five_parts(generator, device):
    return (
        torch.randn(4, 7, generator=generator).to(device),
        torch.randn(7, 1, generator=generator).to(device),
        torch.randn(5, 3, 4, generator=generator).to(device),
        torch.randn(5, 3, 1, generator=generator).to(device),
    )


def one_part(generator, device):
    return (
        torch.randn(2, 3, generator=generator).to(device),
        torch.randn(3, 1, generator=generator).to(device),
        torch.randn(1, 6, 2, generator=generator).to(device),
        torch.randn(1, 6, 1, generator=generator).to(device),
    )


check(large_batch, like=large_batch_slow, on=[five_parts, one_part], points=2)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. An in-place error mended
#
# *Medium, 15 minutes.* A leaky tank: every hour it keeps the share `decay` of its level and gets the inflow.
# Level 0 is `inflow[0]`, and `level[t] = decay * level[t - 1] + inflow[t]`. Somebody wrote the levels into one
# tensor:
#
# ```python
# levels = torch.empty_like(inflow)
# levels[0] = inflow[0]
# for t in range(1, len(inflow)):
#     levels[t] = decay * levels[t - 1] + inflow[t]
# ```
#
# The forward pass works; the backward pass raises an error. The given version is right, because it copies all
# levels before each step. Write a faster `tank(inflow, wanted, decay)`.
#
# - `inflow` and `wanted`: `(T, C)`, `T` hours (at least 2) for `C` tanks; `decay`: `(C,)`, from 0 to 1. All
#   `float32` on one device.
# - returns: the levels, shape `(T, C)`, and the gradient of the mean of `(levels - wanted) ** 2` with respect to
#   `decay`, shape `(C,)`.


# %% id="tank_given" role="given"
def tank_slow(inflow, wanted, decay):
    decay = decay.detach().requires_grad_()
    levels = torch.zeros_like(inflow)
    levels[0] = inflow[0]
    for t in range(1, len(inflow)):
        following = levels.clone()
        following[t] = decay * levels[t - 1] + inflow[t]
        levels = following
    loss = (levels - wanted).square().mean()
    return levels.detach(), torch.autograd.grad(loss, decay)[0]


def many_tanks(generator, device):
    return (
        torch.rand(56, 1024, generator=generator).to(device),
        torch.rand(56, 1024, generator=generator).to(device),
        (torch.rand(1024, generator=generator) * 0.8 + 0.1).to(device),
    )


# %% [markdown]
# <details><summary>Hint 1</summary>For the gradient of <code>decay * level</code>, autograd keeps the level. A row
# that is never overwritten, and shares no memory with anything that is, can be kept.</details>
# <details><summary>Hint 2</summary>Chapter 01 had rows that come one by one. What does it advise to collect them
# in?</details>


# %% id="tank" role="answer"
def tank(inflow, wanted, decay):
    ### BEGIN SOLUTION
    decay = decay.detach().requires_grad_()
    rows = [inflow[0]]
    for row in inflow[1:]:
        rows.append(decay * rows[-1] + row)
    stacked = torch.stack(rows)
    error = F.mse_loss(stacked, wanted)
    return stacked.detach(), torch.autograd.grad(error, decay)[0]
    ### END SOLUTION


# %% id="tank_check" role="test"
check(tank, like=tank_slow, on=many_tanks, points=1)


# %% id="tank_hidden" role="test"
# Hidden test: other sizes, two hours, a single tank. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def two_hours(generator, device):
    return (
        torch.rand(2, 3, generator=generator).to(device),
        -torch.rand(2, 3, generator=generator).to(device),
        torch.rand(3, generator=generator).to(device),
    )


def one_tank(generator, device):
    return (
        torch.rand(9, 1, generator=generator).to(device),
        -torch.rand(9, 1, generator=generator).to(device),
        torch.rand(1, generator=generator).to(device),
    )


def keeps_nothing_or_all(generator, device):
    return (
        torch.rand(6, 2, generator=generator).to(device),
        -torch.rand(6, 2, generator=generator).to(device),
        torch.tensor([0.0, 1.0], device=device),
    )


check(tank, like=tank_slow, on=[two_hours, one_tank, keeps_nothing_or_all], points=2)
### END HIDDEN TESTS

# %% id="tank_race" role="test"
race(tank, against=tank_slow, on=many_tanks, at_least={"cpu": 2.5, "cuda": 1.8}, points=3)

# %% [markdown]
# ## 5. Through control flow
#
# *Hard, 15 minutes.* Plants grow: every day a plant of size `x` becomes `x + rate * x * (1 - x)`. Plant *i*
# grows for `days[i]` days, and each has its own rate. The given version uses what the chapter shows: a plain Python
# loop, recorded. Write `grow(size, rate, days)` without a loop over the plants. A loop over days is fine.
#
# - `size` and `rate`: `(N,)`, `float32`, from 0 to 1. `days`: `(N,)`, `int64`, 0 or more. All on one device; `N`
#   is at least 1.
# - returns: the final sizes, shape `(N,)`, and the derivative of each final size with respect to its own rate,
#   shape `(N,)`. After 0 days that is 0. It can happen that *all* plants grow for 0 days.


# %% id="grow_given" role="given"
def grow_slow(size, rate, days):
    sizes, slopes = [], []
    for i in range(len(size)):
        r = rate[i].detach().requires_grad_()
        x = size[i]
        for _ in range(int(days[i])):
            x = x + r * x * (1 - x)
        slope = torch.autograd.grad(x, r)[0] if x.requires_grad else torch.zeros_like(r)
        sizes.append(x.detach())
        slopes.append(slope)
    return torch.stack(sizes), torch.stack(slopes)


def plants(generator, device):
    return (
        (torch.rand(32, generator=generator) / 2).to(device),
        (torch.rand(32, generator=generator) / 5).to(device),
        torch.randint(12, (32,), generator=generator).to(device),
    )


def zero_days(generator, device):
    size, rate = torch.rand(2, 3, generator=generator).to(device)
    return size, rate, torch.zeros(3, dtype=torch.int64, device=device)


# %% [markdown]
# <details><summary>Hint 1</summary>Let all plants grow one day with one expression. Then decide, plant by plant,
# who keeps the new size and who keeps the old one. That is a selection, not control flow.</details>
# <details><summary>Hint 2</summary>Plant <em>i</em> depends on no rate except its own. What then is the gradient
# of the sum of all sizes with respect to <code>rate</code>?</details>
# <details><summary>Hint 3</summary>If nobody grows, the result does not depend on <code>rate</code>, and autograd
# raises an error. <code>torch.autograd.grad</code> has arguments for that (<code>materialize_grads</code>), but
# the result must require a gradient. Or return zeros.</details>


# %% id="grow" role="answer"
def grow(size, rate, days):
    ### BEGIN SOLUTION
    longest = int(days.max())
    if longest == 0:
        return size.clone(), torch.zeros_like(rate)
    rate = rate.detach().requires_grad_()
    now = size
    for day in range(longest):
        now = torch.where(days > day, now + rate * now * (1 - now), now)
    return now.detach(), torch.autograd.grad(now.sum(), rate)[0]
    ### END SOLUTION


# %% id="grow_check" role="test"
check(grow, like=grow_slow, on=[plants, zero_days], points=1)


# %% id="grow_hidden" role="test"
# Hidden test: other numbers of plants and days, a single plant. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def few_plants(generator, device):
    return (
        (torch.rand(7, generator=generator) / 2).to(device),
        (torch.rand(7, generator=generator) / 5).to(device),
        torch.randint(1, 25, (7,), generator=generator).to(device),
    )


def one_plant(generator, device):
    return (
        (torch.rand(1, generator=generator) / 2).to(device),
        (torch.rand(1, generator=generator) / 5).to(device),
        torch.tensor([5], device=device),
    )


def one_day_or_none(generator, device):
    return (
        (torch.rand(4, generator=generator) / 2).to(device),
        (torch.rand(4, generator=generator) / 5).to(device),
        torch.tensor([0, 1, 1, 0], device=device),
    )


check(grow, like=grow_slow, on=[few_plants, one_plant, one_day_or_none], points=2)
### END HIDDEN TESTS

# %% id="grow_race" role="test"
race(grow, against=grow_slow, on=plants, at_least={"cpu": 5, "cuda": 5}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
