# %% [markdown]
# # Exercises 17 · The memory of a training step
#
# Five functions, as they stand in somebody's training. Each is given in a version that is right, and hungry or slow.
# Write a better one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. Where memory counts, it also says the most
# new memory that your answer has at once: all tensors that operations make and that are still alive, the results
# among them. `race` times your answer against the given version, on this machine, now. Hidden tests run when your
# notebook is graded: other shapes and other random numbers. They ask for right results, and for no syncs where the task
# does; memory is weighed in the open tests only.
#
# *No syncs*: the host must not wait for a value that the device has computed. `.item()`, an `if` that asks a tensor, and
# an index with a mask all wait; so does whatever makes a Python number of a tensor, such as an argument `alpha=`.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell. Leave the
# inputs as they are: their values, and what they require. `costs`, which the chapter uses, counts what a call costs:
# `from autograder import costs`, then `print(costs(function, *inputs))`.
# The chapter is [here](../../course/17_training_memory.ipynb). 32 points, about 103 minutes.

# %% id="setup" role="given"
from itertools import pairwise

import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. A large vocabulary behind a body
#
# *Medium, 28 minutes.* A model has a body, whose rows depend on each other, and a head with many classes. The given
# version makes whole tables of scores. Write `train_gradients(x, body, head, labels, z)`.
#
# - `x`: `(N, A)`, `body`: `(A, D)`, `head`: `(C, D)`, all `float32`. `labels`: `(N,)`, `int64`: from 0 to `C - 1`, or -100
#   for a row that does not count. All on one device. None of them requires a gradient. `z` is a number.
# - The body gives `hidden = torch.tanh(x @ body)`, and subtracts from it the mean of *all* rows: `hidden -
#   hidden.mean(0)`. The scores of a row are `row @ head.T`.
# - The loss of a row is its cross entropy plus `z` times the square of the `logsumexp` of its scores. (That holds scores
#   near 0.) The loss is the mean over all rows that count; where none does, it is 0, and so are the gradients. A row that
#   does not count adds neither of the two terms, but is in the mean that the body subtracts.
# - returns: the loss, shape `()`, and its gradients with respect to `body` and `head`.
# - In the test, a table of scores (512 rows, 4,000 classes) has 8.2 MB. At most 2.4 MB of new memory at once for all
#   points; the gradient of the head is 0.5 MB of these. The given version has 41 MB.
# - No syncs.


# %% id="train_gradients_given" role="given"
def train_gradients_slow(x, body, head, labels, z):
    body, head = body.detach().requires_grad_(), head.detach().requires_grad_()
    hidden = torch.tanh(x @ body)
    hidden = hidden - hidden.mean(0)
    scores = hidden @ head.T
    each = F.cross_entropy(scores, labels, ignore_index=-100, reduction="none")
    counted = labels != -100
    each = each + z * scores.logsumexp(1).square() * counted
    loss = each.sum() / counted.sum().clamp(min=1)
    return loss.detach(), *torch.autograd.grad(loss, (body, head))


def labelled_rows(rows, inner, width, classes, unlabelled, z, generator, device):
    labels = torch.randint(classes, (rows,), generator=generator)
    none = torch.rand(rows, generator=generator) < unlabelled
    return (
        (torch.randn(rows, inner, generator=generator) + 0.3).to(device),
        (torch.randn(inner, width, generator=generator) / inner**0.5).to(device),
        (torch.randn(classes, width, generator=generator) / width**0.5).to(device),
        labels.masked_fill(none, -100).to(device),
        z,
    )


def large_vocabulary(generator, device):
    return labelled_rows(512, 16, 32, 4000, 0.25, 0.01, generator, device)


def nothing_counts(generator, device):
    return labelled_rows(9, 3, 4, 7, 1, 0.1, generator, device)


def one_row(generator, device):
    return labelled_rows(1, 3, 4, 7, 0, 0.1, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>The head treats each row by itself, the body does not. So which of the two can be cut
# into chunks of rows?</details>
# <details><summary>Hint 2</summary>What has the body to know about the head, so that it can go back? One table, as large
# as its own result. How large is that?</details>
# <details><summary>Hint 3</summary>Two graphs instead of one: the body's, and one for each chunk of the head, which
# begins at rows that are cut off from the body's graph.</details>
# <details><summary>Hint 4</summary>A graph can be walked from any tensor if the slopes that arrive there are given:
# <code>torch.autograd.grad</code> takes them as <code>grad_outputs</code>.</details>
# <details><summary>Hint 5</summary>Still too much? Count the tables of a chunk with <code>costs</code>, and how many
# tables as large as the head there are at once. Smaller chunks help with the first only; for the second ask where a
# chunk's contribution goes, and how long it stays after that.</details>


# %% id="train_gradients" role="answer"
def train_gradients(x, body, head, labels, z):
    ### BEGIN SOLUTION
    body, head = body.detach().requires_grad_(), head.detach().requires_grad_()
    bent = torch.tanh(x @ body)
    centred = bent - bent.mean(0)
    rows = centred.detach().requires_grad_()
    counted = labels != -100
    number = counted.sum().clamp(min=1)
    total = torch.zeros((), device=x.device)
    for first in range(0, len(labels), 8):
        piece = slice(first, first + 8)
        table = rows[piece] @ head.T
        logs = table.logsumexp(1)
        right = table.gather(1, labels[piece].clamp(min=0)[:, None])[:, 0]
        del table
        share = ((logs - right + z * logs.square()) * counted[piece]).sum() / number
        share.backward()
        total += share.detach()
    return total, torch.autograd.grad(centred, body, rows.grad)[0], head.grad
    ### END SOLUTION


# %% id="train_gradients_check" role="test"
check(train_gradients, like=train_gradients_slow, on=[large_vocabulary, nothing_counts, one_row], points=1)

# %% id="train_gradients_lean" role="test"
check(
    train_gradients,
    like=train_gradients_slow,
    on=large_vocabulary,
    at_most={"syncs": 0},
    peak=2_400_000,
    points=3,
)


# %% id="train_gradients_hidden" role="test"
# Hidden test: other sizes and another z, again a single row and no row that counts. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def other_sizes(generator, device):
    return labelled_rows(77, 5, 3, 11, 0.5, 0.5, generator, device)


def without_z(generator, device):
    return labelled_rows(20, 4, 6, 5, 0.2, 0, generator, device)


check(
    train_gradients,
    like=train_gradients_slow,
    on=[other_sizes, without_z, nothing_counts, one_row],
    at_most={"syncs": 0},
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. One bit for each number
#
# *Medium, 15 minutes.* ReLU's slope is 1 where its result is above 0, and 0 elsewhere. One bit would be enough to
# remember that. The given version lets autograd keep 32. Write `biased_relus(x, biases)`.
#
# - `x`: `(N, D)`, `biases`: `(K, D)`, both `float32` or both `float64`, on any device, contiguous or not. `K` is at least 1. All
#   numbers are finite.
# - Each bias in turn: `x = torch.relu(x + bias)`.
# - returns: the last `x`, `(N, D)`. It has the right gradients with respect to `x` and `biases`: where these require
#   one, they get it. Nobody asks for gradients of these gradients.
# - In the test (48 biases, 63 × 500 numbers), at most 900 kB of new memory at once for all points, from the call until the
#   gradients are there. So what is kept for the backward pass counts, and what that pass makes. The given version has
#   6.4 MB; a table of `float32` has 126 kB. (The test calls `its_way_back`, which is in the cell of your answer: leave it
#   there as it is.)


# %% id="biased_relus_given" role="given"
def biased_relus_slow(x, biases):
    for bias in biases:
        x = torch.relu(x + bias)
    return x


def there_and_back(function, x, biases, slopes):
    """What the function gives, and the gradients of ``x`` and ``biases``, where ``slopes`` arrive at its result."""
    x, biases = x.detach().requires_grad_(), biases.detach().requires_grad_()
    result = function(x, biases)
    return result.detach(), *torch.autograd.grad(result, (x, biases), slopes)


def there_and_back_slow(x, biases, slopes):
    return there_and_back(biased_relus_slow, x, biases, slopes)


def biased_rows(rows, width, number, dtype, generator, device):
    return (
        torch.randn(rows, width, generator=generator).to(device, dtype),
        (torch.randn(number, width, generator=generator) / 2).to(device, dtype),
    )


def many_biases(generator, device):
    return biased_rows(63, 500, 48, torch.float32, generator, device)


def many_biases_and_slopes(generator, device):
    return *many_biases(generator, device), torch.randn(63, 500, generator=generator).to(device)


def one_number(generator, device):
    return biased_rows(1, 1, 1, torch.float32, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>There are two ways to say what is kept: an <code>autograd.Function</code> of your
# own, or the chapter's hooks. (The addition keeps nothing; in a function of your own, the gradient of a bias is a sum over
# rows.) For the hooks ask: which number must come back, so that ReLU finds its slope?</details>
# <details><summary>Hint 2</summary>The smallest type has 8 bits, also <code>torch.bool</code>. So eight numbers share one
# <code>uint8</code>: the sum of different powers of 2. And how do you get a single bit out of it again?</details>
# <details><summary>Hint 3</summary>63 × 500 is no multiple of 8. Fill up.</details>
# <details><summary>Hint 4</summary>A sum of small integers is made in <code>int64</code>, unless you name another type.
# And a comparison, an addition and a result in a row are three tables: one of them can be the same as another.
# </details>


# %% id="biased_relus" role="answer"
def biased_relus(x, biases):
    ### BEGIN SOLUTION
    places = torch.arange(8, dtype=torch.uint8, device=x.device)

    def to_bits(result):
        positive = (result > 0).flatten()
        positive = F.pad(positive.to(torch.uint8), (0, -len(positive) % 8)).view(-1, 8)
        return positive.bitwise_left_shift_(places).sum(1, dtype=torch.uint8), result.shape, result.dtype

    def to_slopes(packed):
        bits, shape, dtype = packed
        return ((bits[:, None] >> places) & 1).flatten()[: shape.numel()].view(shape).to(dtype)

    with torch.autograd.graph.saved_tensors_hooks(to_bits, to_slopes):
        for shift in biases:
            x = torch.relu(x + shift)
    return x
    ### END SOLUTION


def its_way_back(x, biases, slopes):  # the test of memory calls it
    return there_and_back(biased_relus, x, biases, slopes)


# %% id="biased_relus_check" role="test"
check(biased_relus, like=biased_relus_slow, on=[many_biases, one_number], gradients=True, points=1)

# %% id="biased_relus_lean" role="test"
check(its_way_back, like=there_and_back_slow, on=many_biases_and_slopes, peak=900_000, points=3)


# %% id="biased_relus_hidden" role="test"
# Hidden test: other sizes, float64, again a single number. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def few_biases(generator, device):
    return biased_rows(5, 11, 3, torch.float64, generator, device)


def a_multiple_of_eight(generator, device):
    return biased_rows(4, 6, 2, torch.float32, generator, device)


check(
    biased_relus,
    like=biased_relus_slow,
    on=[few_biases, a_multiple_of_eight, one_number],
    gradients=True,
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Clip without holding the gradients
#
# *Medium, 20 minutes.* The chapter steps inside of backward, and loses clipping: it needs the length of *all* gradients
# before the first step. The given version holds them all. Write `clipped_training(weights, batches, targets, rate,
# limit)`, which does not.
#
# - `weights`: list of one or more `(D, D)`. `batches` and `targets`: `(K, N, D)`, `K` at least 1. All `float32` on one
#   device. `rate` and `limit` are numbers above 0.
# - The model multiplies by each weight in turn; `tanh` follows every product except the last. The loss of a batch is
#   the mean of the squared differences to its targets.
# - A step takes one batch: the gradients with respect to all weights; their length, the square root of the sum of the
#   squares of all numbers in them; where it is above `limit`, all are multiplied by `limit / length`; then each weight
#   becomes `weight - rate * gradient`.
# - returns: the list of the weights after the last step, and the losses, each from before its step, `(K,)`.
# - In the test, the 12 weights have 786 kB. The new ones, which you give back, have as much. At most 1.15 MB of new memory
#   at once for all points (the given version has 2.4 MB). Computing something twice is allowed.
# - No syncs.


# %% id="clipped_training_given" role="given"
def clipped_training_slow(weights, batches, targets, rate, limit):
    losses = []
    for batch, target in zip(batches, targets, strict=True):
        weights = [weight.detach().requires_grad_() for weight in weights]
        hidden = batch
        for weight in weights[:-1]:
            hidden = torch.tanh(hidden @ weight)
        loss = (hidden @ weights[-1] - target).square().mean()
        slopes = torch.autograd.grad(loss, weights)
        length = torch.sqrt(sum(slope.square().sum() for slope in slopes))
        factor = (limit / length).clamp(max=1)
        weights = [
            (weight - rate * factor * slope).detach() for weight, slope in zip(weights, slopes, strict=True)
        ]
        losses.append(loss.detach())
    return weights, torch.stack(losses)


def deep_training(layers, width, steps, rows, rate, limit, generator, device):
    weights = [torch.randn(width, width, generator=generator) * 1.2 / width**0.5 for _ in range(layers)]
    data = torch.randn(2, steps, rows, width, generator=generator).to(device)
    return [weight.to(device) for weight in weights], data[0], data[1], rate, limit


def twelve_weights(generator, device):
    return deep_training(12, 128, 3, 8, 5.0, 0.1, generator, device)


def one_weight(generator, device):
    return deep_training(1, 3, 2, 4, 5.0, 0.1, generator, device)


def nothing_to_clip(generator, device):
    return deep_training(3, 6, 2, 4, 0.1, 1000.0, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>What of the gradients do you need for the length? One number of each. What may happen to
# a gradient after that?</details>
# <details><summary>Hint 2</summary>Then the factor is known, and the gradients are gone. How did the chapter bring back
# what it had thrown away?</details>
# <details><summary>Hint 3</summary>So there are two ways back for each batch. What is done with a gradient differs, and
# the chapter's hook can do either. (It runs under <code>no_grad</code>.) For the second backward pass, go forward once
# more, or keep the graph. Or go back by hand, once: of which two small tables is a weight's gradient the
# product?</details>
# <details><summary>Hint 4</summary>You need new weights, because those that you get must stay as they are. After that, all
# steps may write over the new ones.</details>


# %% id="clipped_training" role="answer"
def clipped_training(weights, batches, targets, rate, limit):
    ### BEGIN SOLUTION
    weights = [weight.clone().requires_grad_() for weight in weights]
    do, losses = [None], []

    def act(weight):
        do[0](weight)
        weight.grad = None

    for weight in weights:
        weight.register_post_accumulate_grad_hook(act)

    def go(rows, wanted):
        for weight in weights[:-1]:
            rows = torch.tanh(rows @ weight)
        error = F.mse_loss(rows @ weights[-1], wanted)
        error.backward()
        return error.detach()

    for rows, wanted in zip(batches, targets, strict=True):
        squares = torch.zeros((), device=rows.device)
        do[0] = lambda weight, squares=squares: squares.add_(weight.grad.square().sum())
        losses.append(go(rows, wanted))
        share = rate * (limit / squares.sqrt()).clamp(max=1)
        do[0] = lambda weight, share=share: weight.sub_(weight.grad.mul_(share))
        go(rows, wanted)
    return [weight.detach() for weight in weights], torch.stack(losses)
    ### END SOLUTION


# %% id="clipped_training_check" role="test"
check(
    clipped_training,
    like=clipped_training_slow,
    on=[twelve_weights, one_weight, nothing_to_clip],
    points=1,
)

# %% id="clipped_training_lean" role="test"
check(
    clipped_training,
    like=clipped_training_slow,
    on=twelve_weights,
    at_most={"syncs": 0},
    peak=1_150_000,
    points=3,
)


# %% id="clipped_training_hidden" role="test"
# Hidden test: other sizes and limits, again a single weight, and a limit that is never reached. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def four_weights(generator, device):
    return deep_training(4, 7, 5, 3, 5.0, 0.05, generator, device)


check(
    clipped_training,
    like=clipped_training_slow,
    on=[four_weights, one_weight, nothing_to_clip],
    at_most={"syncs": 0},
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Foretell what is kept
#
# *Easy, 10 minutes.* Will the batch fit? The given version finds out the hard way: it makes the model, goes forward, and
# weighs what autograd keeps. Write `kept_bytes(rows, sizes, functions, dtype)`, which says so without the work.
#
# - `rows`: an integer from 1 on. `sizes`: list of two or more integers from 1 on. `functions`: list of one name less than
#   there are sizes, each `"relu"`, `"tanh"`, `"sigmoid"`, `"gelu"`, `"silu"` or `"none"`. `dtype`: `torch.float32`,
#   `torch.float64` or `torch.bfloat16`.
# - The model gets plain data of the shape `(rows, sizes[0])`. Layer *k* is `F.linear` with a weight and a bias that
#   require gradients, from `sizes[k]` to `sizes[k + 1]`, followed by the function with the name `functions[k]` (`"none"`:
#   by nothing). All have the given type.
# - returns: an integer, the bytes that autograd keeps for the backward pass, once the last layer's result is there.
#   Memory that is kept twice counts once. The data, the weights and the biases do not count: they were there before.


# %% id="kept_bytes_given" role="given"
FUNCTIONS = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
    "silu": F.silu,
    "none": lambda x: x,
}


def kept_bytes_slow(rows, sizes, functions, dtype):
    x = torch.zeros(rows, sizes[0], dtype=dtype)
    weights = [
        (
            torch.zeros(after, before, dtype=dtype, requires_grad=True),
            torch.zeros(after, dtype=dtype, requires_grad=True),
        )
        for before, after in pairwise(sizes)
    ]
    there = {tensor.untyped_storage().data_ptr() for tensor in (x, *sum(weights, ()))}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for (weight, bias), name in zip(weights, functions, strict=True):
            x = FUNCTIONS[name](F.linear(x, weight, bias))
    return sum(storage.nbytes() for place, storage in kept.items() if place not in there)


def some_model(generator, layers, least, most, dtype, last=None):
    sizes = torch.randint(least, most + 1, (layers + 1,), generator=generator).tolist()
    numbers = torch.randint(len(FUNCTIONS), (layers,), generator=generator).tolist()
    names = [list(FUNCTIONS)[number] for number in numbers]
    if last:
        names[0], names[-1] = "gelu", last
    rows = torch.randint(least, most + 1, (), generator=generator).item()
    return rows, sizes, names, dtype


def large_models(generator, device):
    return some_model(generator, 3, 600, 700, torch.float32, "silu")


def small_models(generator, device):
    return some_model(generator, 5, 1, 9, torch.bfloat16, "none")


def one_layer(generator, device):
    return some_model(generator, 1, 1, 5, torch.float32)


# %% [markdown]
# <details><summary>Hint 1</summary>Two ways lead there. One is to know for each function what its derivative needs: its
# input, or its result. Section 5 of the chapter has most of it, and <code>dir(y.grad_fn)</code> shows the
# rest.</details>
# <details><summary>Hint 2</summary>For that way: who keeps a layer's result, if its function does not? And is there
# always somebody?</details>
# <details><summary>Hint 3</summary>The other way is to let autograd tell you, as the given version does, on a device where
# nothing is computed: tensors there have a shape and a type, but no numbers. (They have no address either, so you need
# another name for a piece of memory.)</details>


# %% id="kept_bytes" role="answer"
def kept_bytes(rows, sizes, functions, dtype):
    ### BEGIN SOLUTION
    total = 0
    for place, (size, name) in enumerate(zip(sizes[1:], functions, strict=True)):
        last = place == len(functions) - 1
        by_itself = name in ("gelu", "silu")  # these keep their input, which nobody else needs
        result = name in ("relu", "tanh", "sigmoid") or not last  # kept by them, or by the next layer
        total += (by_itself + result) * rows * size * dtype.itemsize
    return total
    ### END SOLUTION


# %% id="kept_bytes_check" role="test"
check(kept_bytes, like=kept_bytes_slow, on=[large_models, small_models, one_layer], points=1)


# %% id="kept_bytes_hidden" role="test"
# Hidden test: other sizes, float64, again a single layer. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def other_models(generator, device):
    return some_model(generator, 12, 2, 20, torch.float64)


check(kept_bytes, like=kept_bytes_slow, on=[other_models, other_models, one_layer, small_models], points=2)
### END HIDDEN TESTS

# %% id="kept_bytes_race" role="test"
race(kept_bytes, against=kept_bytes_slow, on=large_models, at_least={"cpu": 3}, points=3)

# %% [markdown]
# ## 5. A long backward pass
#
# *Hard, 20 minutes.* A state follows a path of 300 small steps (a differential equation, solved by its simplest method),
# and the gradient goes back through all of them. The given version keeps two tables for each step. Write
# `long_gradients(start, weight, inputs)`.
#
# - `start`: `(N, D)`, `weight`: `(D, D)`, `inputs`: `(T, N, D)`, all `float32` on one device. `T` is at least 1.
# - Step *t* is `state = state + 0.01 * torch.tanh(state @ weight + inputs[t])`. The loss is the mean of the squares of the last
#   state.
# - returns: the loss, shape `()`, and its gradients with respect to `start` and `weight`.
# - In the test (300 steps, a state of 33 kB), at most 1.04 MB of new memory at once for all points. The given version
#   has 20 MB. Time is no matter, but computing all from the start for each of the 300 steps takes too long for anybody.


# %% id="long_gradients_given" role="given"
def long_gradients_slow(start, weight, inputs):
    start, weight = start.detach().requires_grad_(), weight.detach().requires_grad_()
    state = start
    for x in inputs:
        state = state + 0.01 * torch.tanh(state @ weight + x)
    loss = state.square().mean()
    return loss.detach(), *torch.autograd.grad(loss, (start, weight))


def long_way(steps, rows, width, generator, device):
    return (
        torch.randn(rows, width, generator=generator).to(device),
        (torch.randn(width, width, generator=generator) * 1.2 / width**0.5).to(device),
        torch.randn(steps, rows, width, generator=generator).to(device),
    )


def three_hundred_steps(generator, device):
    return long_way(300, 128, 64, generator, device)


def one_step(generator, device):
    return long_way(1, 3, 4, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>With a checkpoint every 17 steps there are 18 states at the checkpoints, and twice 17
# tables inside of the segment that is at work. That is not enough for all points. What could be done with
# such a segment, so that fewer are alive at once?</details>
# <details><summary>Hint 2</summary>Cut the way in the middle, not in 17 pieces. If you know the state in the middle, and the
# gradient with respect to the last state: which half do you go back through first, and what does that give you for the
# other?</details>
# <details><summary>Hint 3</summary>Each half is the same task again, but shorter, so one function can call itself. How many
# states are alive at once then? A few steps, four say, need no more cutting: go through them as the given version does. To
# find the state in the middle, nothing has to be recorded.</details>
# <details><summary>Hint 4</summary>Still too much? While a function calls itself, its own names stay alive, and so do those
# of whoever called it. Which tables do these names hold that nobody will need again?</details>


# %% id="long_gradients" role="answer"
def long_gradients(start, weight, inputs):
    ### BEGIN SOLUTION
    weight = weight.detach().requires_grad_()
    of_weight = torch.zeros_like(weight, requires_grad=False)

    def go(state, first, last):
        for place in range(first, last):
            state = state + 0.01 * torch.tanh(state @ weight + inputs[place])
        return state

    def back(state, first, last, slopes):
        if last - first <= 4:
            state = state.detach().requires_grad_()
            below, more = torch.autograd.grad(go(state, first, last), (state, weight), slopes)
            of_weight.add_(more)
            return below
        middle = (first + last) // 2
        with torch.no_grad():
            between = go(state, first, middle)
        slopes = back(between, middle, last, slopes)
        del between
        return back(state, first, middle, slopes)

    with torch.no_grad():
        end = go(start, 0, len(inputs))
    mean, slopes = end.square().mean(), end * (2 / end.numel())
    del end
    return mean, back(start, 0, len(inputs), slopes), of_weight
    ### END SOLUTION


# %% id="long_gradients_check" role="test"
check(long_gradients, like=long_gradients_slow, on=[three_hundred_steps, one_step], points=1)

# %% id="long_gradients_lean" role="test"
check(long_gradients, like=long_gradients_slow, on=three_hundred_steps, peak=1_040_000, points=3)


# %% id="long_gradients_hidden" role="test"
# Hidden test: other sizes, again a single step. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def seven_steps(generator, device):
    return long_way(7, 2, 5, generator, device)


def fifty_steps(generator, device):
    return long_way(50, 1, 3, generator, device)


check(long_gradients, like=long_gradients_slow, on=[seven_steps, fifty_steps, one_step], points=2)
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
def doubled(x):
    return F.interpolate(x[None, None], scale_factor=2)[0, 0, ::2]


def activated(x):
    return x * torch.sigmoid(x) + x.amax(1, keepdim=True)


def moments(x):
    first, second = torch.zeros_like(x), torch.zeros_like(x)
    return first.lerp_(x, 0.1), second.addcmul_(x, x)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (doubled, activated, moments)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>doubled</code> is of chapter 12, <code>activated</code> is of chapter 15,
# <code>moments</code> is of chapter 17.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(moments, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "doubled": {"operations": 1, "bytes": 16 * n * d, "syncs": 0},
        "activated": {"operations": 4, "bytes": 12 * n * d + 4 * n, "syncs": 0},
        "moments": {"operations": 4, "bytes": 8 * n * d, "syncs": 0},
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
