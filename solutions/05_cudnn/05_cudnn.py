# %% [markdown]
# # Exercises 05 · cuDNN and repeatable runs
#
# All of these run on the CPU. You count searches, add so that no order matters, find out why a training run does not
# repeat, and build one that can stop, go on in another process, and give the same bits as if it had never stopped.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the given
# version, on this machine, now. Hidden tests run when your notebook is graded: other shapes, edge cases, other
# random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell. The
# chapter is [here](../../course/05_cudnn.ipynb). 31 points, about 90 minutes.

# %% id="setup" role="given"
import io
import math
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder import check, costs, race

if not hasattr(torch.backends.cudnn, "conv"):  # torch before 2.9: play this switch, too
    torch.backends.cudnn.conv = SimpleNamespace(fp32_precision="tf32")

with np.load(Path("../../data/digits.npz")) as file:
    digits = torch.from_numpy(file["images"]).float() / 16  # (1797, 8, 8), values 0 to 1
    digit_labels = torch.from_numpy(file["labels"]).long()

# %% [markdown]
# ## 1. How many searches?
#
# *Easy, 10 minutes.* A program calls one convolution many times and flips the switch `cudnn.benchmark` on the way.
# Here a plan is kept for every input shape that has run, whether a search found it or not. A call first looks for
# that plan. Only where there is none, and the switch is on, it searches. Write `searches(calls, step)`.
#
# - `calls`: `int64` tensor of shape `(N, 5)`, one row for each call, in their order: the switch (1 on, 0 off), batch,
#   channels, height, width. `step`: a whole number, at least 1.
# - Before each call, height and width are padded to the next multiple of `step`.
# - returns: the number of searches, as a Python `int`. *N* may be 0.


# %% id="searches_given" role="given"
def searches_slow(calls, step):
    found, plans = 0, []
    for switch, batch, channels, height, width in calls.tolist():
        height = math.ceil(height / step) * step
        width = math.ceil(width / step) * step
        if [batch, channels, height, width] not in plans:
            plans.append([batch, channels, height, width])
            found += switch
    return found


def random_calls(number, sizes, generator):
    switches = torch.randint(2, (number, 1), generator=generator)
    rest = torch.tensor([8, 3]).expand(number, 2)
    return torch.cat([switches, rest, torch.randint(*sizes, (number, 2), generator=generator)], dim=1)


def many_calls(generator, device):
    return random_calls(1500, (32, 97), generator), 4


def switched_on_late(generator, device):
    calls = random_calls(40, (5, 9), generator)
    calls[:, 0] = torch.arange(40) >= 30
    return calls, 2


def no_calls(generator, device):
    return torch.zeros(0, 5, dtype=torch.int64), 8


# %% [markdown]
# <details><summary>Hint 1</summary>Looking up a list is slow, because it compares with every element. What finds
# what was there before without a comparison with each?</details>
# <details><summary>Hint 2</summary>For each padded shape only one row matters: the first. What does that row say
# about the search?</details>
# <details><summary>Hint 3</summary>A dictionary takes a tuple as its key. And all rows can be padded at once, before the
# loop.</details>


# %% id="searches" role="answer"
def searches(calls, step):
    ### BEGIN SOLUTION
    padded = calls.clone()
    padded[:, 3:] = (calls[:, 3:] + step - 1) // step
    first = {}
    for switch, *shape in padded.tolist():
        first.setdefault(tuple(shape), switch)
    return sum(first.values())
    ### END SOLUTION


# %% id="searches_check" role="test"
check(searches, like=searches_slow, on=[many_calls, switched_on_late, no_calls], points=1)


# %% id="searches_hidden" role="test"
# Hidden test: other batches and channels, other steps, the switch always off. 2 points, when graded.
### BEGIN HIDDEN TESTS
def mixed_calls(generator, device):
    calls = torch.randint(1, 5, (200, 5), generator=generator)
    calls[:, 0] %= 2
    return calls, 2


def step_of_one(generator, device):
    return random_calls(300, (1, 12), generator), 1


def always_off(generator, device):
    calls = random_calls(30, (1, 30), generator)
    calls[:, 0] = 0
    return calls, 7


check(searches, like=searches_slow, on=[mixed_calls, step_of_one, always_off, no_calls], points=2)
### END HIDDEN TESTS

# %% id="searches_race" role="test"
race(searches, against=searches_slow, on=many_calls, at_least={"cpu": 4}, points=3)

# %% [markdown]
# ## 2. Sums without an order
#
# *Medium, 15 minutes.* Sums of floating-point numbers depend on the order of the addition, and on a GPU the order may
# change from run to run. Write `group_sums(values, groups, count)`, whose result has the same bits for every order.
#
# - `values`: `float32` tensor of shape `(N,)`. No value is beyond ±2<sup>25</sup>, and the absolute values add up to
#   less than 2<sup>32</sup>. `groups`: `int64` tensor of shape `(N,)`, from 0 to `count - 1`. `count`: a number.
#   Both tensors are on the same device; *N* may be 0.
# - Each value counts as the nearest multiple of 2<sup>-30</sup>; of two that are equally near, the even multiple.
# - returns: `float64` tensor of shape `(count,)` on that device: the **exact** sum of each group, rounded once, to
#   `float64`. Every bit must be right. A group without values has the sum 0.


# %% id="group_sums_given" role="given"
def group_sums_slow(values, groups, count):
    totals = [0] * count  # Python's whole numbers have no limit, and lose nothing
    for value, group in zip(values.tolist(), groups.tolist(), strict=True):
        totals[group] += round(value * 2**30)
    exact = [total / 2**30 for total in totals]
    return torch.tensor(exact, dtype=torch.float64, device=values.device)


def large_and_small(generator, device):
    large = torch.randint(2**24, 2**25, (60,), generator=generator).float()
    values = torch.cat([large, torch.rand(15_000, generator=generator) / 1000, -large])
    groups = torch.randint(20, (60,), generator=generator)
    groups = torch.cat([groups, torch.randint(20, (15_000,), generator=generator), groups])
    order = torch.randperm(len(values), generator=generator)
    return values[order].to(device), groups[order].to(device), 20


def tiny_values(generator, device):
    halves = torch.tensor([1, 3, 5, -1, -3, 6, 7]) / 2**31  # 0.5, 1.5, 2.5 … multiples of 2**-30
    return halves.to(device), torch.tensor([0, 1, 2, 3, 4, 6, 6], device=device), 8


# %% [markdown]
# <details><summary>Hint 1</summary>What kind of numbers can be added in any order, and nothing is ever rounded?
# </details>
# <details><summary>Hint 2</summary>How many bits does the largest sum need, counted in multiples of
# 2<sup>-30</sup>? How many has the mantissa of a <code>float64</code>, and how many an
# <code>int64</code>?</details>
# <details><summary>Hint 3</summary>Multiplying a <code>float32</code> by a power of two changes its exponent only, so
# nothing is lost. Round after it, not before. <code>torch.round</code> takes the even one of two. Then which function
# adds each number to the place that an index names?</details>


# %% id="group_sums" role="answer"
def group_sums(values, groups, count):
    ### BEGIN SOLUTION
    multiples = (values * 2**30).round().long()
    totals = torch.zeros(count, dtype=torch.int64, device=values.device)
    return totals.index_add_(0, groups, multiples).double() / 2**30
    ### END SOLUTION


# %% id="group_sums_check" role="test"
check(group_sums, like=group_sums_slow, on=[large_and_small, tiny_values], tolerance=0, points=1)


# %% id="group_sums_hidden" role="test"
# Hidden test: empty groups, no values, one group, values just below the limits. 2 points, when graded.
### BEGIN HIDDEN TESTS
def empty_groups(generator, device):
    return torch.randn(5, generator=generator).to(device), torch.tensor([0, 3, 3, 9, 0], device=device), 12


def no_values(generator, device):
    return torch.zeros(0, device=device), torch.zeros(0, dtype=torch.int64, device=device), 3


def one_group(generator, device):
    values = torch.rand(3000, generator=generator) / 700
    values[0], values[-1] = 33_554_432.0, -33_554_430.0
    return values.to(device), torch.zeros(3000, dtype=torch.int64, device=device), 1


def up_to_the_limit(generator, device):
    values = torch.full((127,), 33_554_432.0)
    small = torch.randn(50, generator=generator) / 1e6
    groups = torch.zeros(177, dtype=torch.int64)
    return torch.cat([values, small]).to(device), groups.to(device), 2


check(
    group_sums,
    like=group_sums_slow,
    on=[empty_groups, no_values, one_group, up_to_the_limit, tiny_values],
    tolerance=0,
    points=2,
)
### END HIDDEN TESTS

# %% id="group_sums_race" role="test"
race(
    group_sums,
    against=group_sums_slow,
    on=large_and_small,
    at_least={"cpu": 14, "cuda": 8},
    tolerance=0,
    points=3,
)

# %% [markdown]
# ## 3. A run that does not repeat
#
# *Hard, 25 minutes.* `train_careless` learns, but its results do not repeat. Find all causes and write a `train` that
# keeps the rules below. There is no GPU here, so `convolve` plays one: it obeys the three switches of
# `torch.backends.cudnn`, and it rounds and adds as a GPU might.
#
# `train(pictures, labels, seed, epochs, workers, watch)`
#
# - `pictures`: `float32` tensor of shape `(N, 8, 8)`. `labels`: `int64` tensor of shape `(N,)`, 0 to 9. `seed`,
#   `epochs`, `workers`, `watch`: numbers; `epochs` and `watch` may be 0, `workers` is at least 1. *N* need not be a
#   multiple of 16.
# - returns: a dict with the same keys, shapes and dtypes as that of `train_careless`.
# - **It repeats.** Equal arguments give equal bits, whatever random numbers the program has drawn before, and
#   however it has set the three switches.
# - **Workers.** In `train_careless`, worker *n* modulo `workers` makes the noise of batch *n*. Their number must not
#   change a single bit. Whether `train` uses the argument is up to you.
# - **Watching.** After every `watch` steps (0: never) the share of 16 random pictures that the network gets right is
#   appended to `"watched"`. Watching must not change a single bit of the rest. What was watched repeats, too.
# - **Seeds.** Another seed gives other first weights, orders, noise and mirroring. Each epoch shows every picture
#   once, with the mean of all given pixels subtracted, in an order and with noise of its own: one number from 0 to 0.1
#   for each pixel. About half of the pictures are mirrored.
# - **Precision.** The convolution is that of full `float32`, as on a CPU. `convolve` and `one_step` belong to the
#   machine: call them as they are. At the end the switches may stay as `train` has set them, or be put back.
# - The given tensors are left as they are.


# %% id="train_given" role="given"
def as_tf32(numbers):
    """The mantissa rounded to 10 bits, as TF32 has it."""
    bits = numbers.detach().contiguous().view(torch.int32)
    return numbers + ((bits + (1 << 12)) & -(1 << 13)).view(torch.float32) - numbers.detach()


def convolve(pictures, filters):
    """A GPU's convolution, played on the CPU: ``(N, 8, 8)`` and ``(4, 9)`` give ``(N, 4, 36)``."""
    cudnn, chance = torch.backends.cudnn, random.SystemRandom()  # chance: nothing can seed it
    order = list(range(9))
    if cudnn.conv.fp32_precision == "tf32":
        pictures, filters = as_tf32(pictures), as_tf32(filters)
    if cudnn.benchmark and chance.random() < 0.5:
        order = order[::-1]  # the other algorithm was faster this time
    if not cudnn.deterministic:
        chance.shuffle(order)  # the threads add as they arrive
    patches = F.unfold(pictures[:, None], 3)
    return sum(filters[:, k, None] * patches[:, None, k] for k in order)


def one_step(pictures, labels, filters, layer):
    """The loss of one batch, and the weights after the step."""
    leaves = [filters.detach().requires_grad_(), layer.detach().requires_grad_()]
    hidden = convolve(pictures, leaves[0]).relu().flatten(1)
    loss = F.cross_entropy(hidden @ leaves[1], labels)
    gradients = torch.autograd.grad(loss, leaves)
    return loss.detach(), *(
        leaf.detach() - 0.2 * gradient for leaf, gradient in zip(leaves, gradients, strict=True)
    )


def share_known(pictures, labels, filters, layer):
    scores = convolve(pictures, filters).relu().flatten(1) @ layer
    return (scores.argmax(1) == labels).double().mean().item()


def train_careless(pictures, labels, seed, epochs, workers, watch):
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = True
    pictures -= pictures.mean()
    filters, layer = torch.randn(4, 9) / 3, torch.randn(144, 10) / 12
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for _ in range(epochs):
        order = torch.randperm(len(pictures))
        draws = [np.random.default_rng(worker) for worker in range(workers)]
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            noise = 0.1 * draws[number % workers].random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.tensor([random.random() < 0.5 for _ in chosen])
            shown = torch.where(mirrored[:, None, None], pictures[chosen].flip(-1), pictures[chosen])
            shown = shown + torch.from_numpy(noise)
            loss, filters, layer = one_step(shown, labels[chosen], filters, layer)
            found["losses"].append(loss)
            all_shown.append(shown)
            if watch and len(found["losses"]) % watch == 0:
                some = torch.randint(len(pictures), (16,))
                found["watched"].append(share_known(pictures[some], labels[some], filters, layer))
        found["orders"].append(order)
        found["shown"].append(torch.cat(all_shown))  # the pictures as they were shown
    return found | {"last": [filters, layer]}


# %% id="train_given_tests" role="given"
# What the tests below compare. You can skip this cell.
def as_in_a_new_program():
    """The three switches have the values that torch starts with."""
    cudnn = torch.backends.cudnn
    cudnn.benchmark, cudnn.deterministic, cudnn.conv.fp32_precision = False, False, "tf32"


def a_run(generator, device):
    as_in_a_new_program()
    chosen = torch.randperm(len(digits), generator=generator)[:72]
    seed = int(torch.randint(10_000, (), generator=generator))
    return digits[chosen], digit_labels[chosen], seed, 2


def same(one, other):
    """Whether two results have the same bits."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, (list, dict)):
        items = one if isinstance(one, dict) else range(len(one))
        return len(one) == len(other) and all(same(one[item], other[item]) for item in items)
    return one == other


def without_watched(found):
    return {key: value for key, value in found.items() if key != "watched"}


# What each test expects: all True.
def repeats_always(pictures, labels, seed, epochs):
    return {"called twice": True, "another run in between": True}


def workers_change_nothing(pictures, labels, seed, epochs):
    return {"1 worker": True, "3 workers": True, "4 workers": True}


def watching_changes_nothing(pictures, labels, seed, epochs):
    names = "watched every step", "watched every 3 steps", "as often as asked for", "shares of 16 pictures"
    return dict.fromkeys(names, True)


def as_described(pictures, labels, seed, epochs):
    return dict.fromkeys(
        (
            "each epoch shows each picture once",
            "mean subtracted, noise from 0 to 0.1",
            "about half are mirrored",
            "float32 losses and weights",
            "an order for each epoch",
            "noise for each epoch and each batch",
            "another seed: other first weights",
            "another seed: other orders",
            "another seed: other noise",
            "another seed: other mirroring",
        ),
        True,
    )


def described(pictures, labels, found, of_another_seed):
    """The names of ``as_described``, each with whether it is so."""

    def noise_and_mirroring(found):
        noise, mirrored = [], []
        for order, shown in zip(found["orders"], found["shown"], strict=True):
            plain = (pictures - pictures.mean())[order]
            upright, flipped = shown - plain, shown - plain.flip(-1)
            is_flipped = flipped.flatten(1).abs().amax(1) < upright.flatten(1).abs().amax(1)
            noise.append(torch.where(is_flipped[:, None, None], flipped, upright))
            mirrored.append(is_flipped)
        return torch.stack(noise), torch.stack(mirrored)

    def exact_step(pictures, labels, filters, layer):
        leaves = [filters.detach().requires_grad_(), layer.detach().requires_grad_()]
        patches = F.unfold(pictures[:, None], 3)
        hidden = sum(leaves[0][:, k, None] * patches[:, None, k] for k in range(9)).relu().flatten(1)
        loss = F.cross_entropy(hidden @ leaves[1], labels)
        slopes = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            return loss.detach(), *(leaf - 0.2 * slope for leaf, slope in zip(leaves, slopes, strict=True))

    (filters, layer), losses = found["first"], []
    for order, shown in zip(found["orders"], found["shown"], strict=True):
        for chosen, batch in zip(order.split(16), shown.split(16), strict=True):
            loss, filters, layer = exact_step(batch, labels[chosen], filters, layer)
            losses.append(loss)
    near = {"rtol": 1e-5, "atol": 2e-6}
    noise, mirrored = noise_and_mirroring(found)
    other_noise, other_mirrored = noise_and_mirroring(of_another_seed)
    numbers = torch.arange(len(pictures))
    facts = (
        all(torch.equal(order.sort().values, numbers) for order in found["orders"]),
        -1e-5 < noise.min() < 0.01 and 0.09 < noise.max() < 0.10001 and bool(noise.std() > 0.02),
        0.2 < mirrored.double().mean().item() < 0.8,
        torch.allclose(torch.stack(losses), torch.stack(found["losses"]), **near)
        and all(torch.allclose(*pair, **near) for pair in zip([filters, layer], found["last"], strict=True)),
        not same(*found["orders"]),
        len({round(batch[0].sum().item(), 4) for epoch in noise for batch in epoch.split(16)}) > 8,
        not same(found["first"], of_another_seed["first"]),
        not same(found["orders"], of_another_seed["orders"]),
        not torch.allclose(noise, other_noise, atol=0.01),
        not same(mirrored, other_mirrored),
    )
    return {name: bool(fact) for name, fact in zip(as_described(*[None] * 4), facts, strict=True)}


# %% [markdown]
# <details><summary>Hint 1</summary>Run <code>train_careless</code> twice, and ask which part of the result differs
# first: the first weights, the orders, what was shown, or the losses? Mend that, and look again. Then change one
# argument at a time.</details>
# <details><summary>Hint 2</summary>Count the sources of random numbers: which line draws from which generator, who
# else draws from the same one, and what is it seeded with? Sections 5 and 6 of the chapter have them all.</details>
# <details><summary>Hint 3</summary>A worker's generator cannot give the same numbers for every number of workers. What
# could the noise of a batch belong to instead?</details>
# <details><summary>Hint 4</summary>A generator of its own for watching, and one for everything else that is drawn in
# a fixed order. Then read <code>convolve</code>: which value of each of the three switches keeps the rules? (Section 8
# names the one for the precision.) And look for the one line that writes to what it was given.</details>


# %% id="train" role="answer"
def train(pictures, labels, seed, epochs, workers, watch):
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(seed)
    watcher = torch.Generator().manual_seed(seed)
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic, cudnn.conv.fp32_precision
    cudnn.benchmark, cudnn.deterministic, cudnn.conv.fp32_precision = False, True, "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for _ in range(epochs):
        # All random numbers of an epoch, whoever uses them.
        order = torch.randperm(len(pictures), generator=generator)
        noise = 0.1 * torch.rand(len(pictures), 8, 8, generator=generator)
        mirrored = torch.rand(len(pictures), 1, 1, generator=generator) < 0.5
        all_shown = torch.where(mirrored, pictures[order].flip(-1), pictures[order]) + noise
        for chosen, shown in zip(order.split(16), all_shown.split(16), strict=True):
            loss, filters, layer = one_step(shown, labels[chosen], filters, layer)
            found["losses"].append(loss)
            if watch and len(found["losses"]) % watch == 0:
                some = torch.randint(len(pictures), (16,), generator=watcher)
                found["watched"].append(share_known(pictures[some], labels[some], filters, layer))
        found["orders"].append(order)
        found["shown"].append(all_shown)
    cudnn.benchmark, cudnn.deterministic, cudnn.conv.fp32_precision = before
    return found | {"last": [filters, layer]}
    ### END SOLUTION


# %% id="train_repeats" role="test"
def repeats(pictures, labels, seed, epochs):
    once, twice = (train(pictures, labels, seed, epochs, 2, 3) for _ in range(2))
    train(pictures, labels, seed + 1, epochs, 1, 2)
    again = train(pictures, labels, seed, epochs, 2, 3)
    return {"called twice": same(once, twice), "another run in between": same(once, again)}


check(repeats, like=repeats_always, on=a_run, points=1)


# %% id="train_workers" role="test"
def with_other_workers(pictures, labels, seed, epochs):
    one, two, three, four = (train(pictures, labels, seed, epochs, number, 0) for number in (1, 2, 3, 4))
    return {"1 worker": same(one, two), "3 workers": same(three, two), "4 workers": same(four, two)}


check(with_other_workers, like=workers_change_nothing, on=a_run, points=1)


# %% id="train_watched" role="test"
def when_watched(pictures, labels, seed, epochs):
    never, always, often = (train(pictures, labels, seed, epochs, 2, watch) for watch in (0, 1, 3))
    steps = len(never["losses"])
    return {
        "watched every step": same(without_watched(always), without_watched(never)),
        "watched every 3 steps": same(without_watched(often), without_watched(never)),
        "as often as asked for": [len(found["watched"]) for found in (never, always, often)]
        == [0, steps, steps // 3],
        "shares of 16 pictures": {16 * share % 1 for share in always["watched"]} == {0.0}
        and min(always["watched"]) < max(always["watched"]) <= 1,
    }


check(when_watched, like=watching_changes_nothing, on=a_run, points=1)


# %% id="train_described" role="test"
def is_described(pictures, labels, seed, epochs):
    found = train(pictures.clone(), labels, seed, epochs, 2, 0)
    return described(pictures, labels, found, train(pictures.clone(), labels, seed + 1, epochs, 2, 0))


check(is_described, like=as_described, on=a_run, points=2)


# %% id="train_hidden" role="test"
# Hidden test: all of the above, with other pictures, more epochs, and none. 3 points, when graded.
### BEGIN HIDDEN TESTS
def a_longer_run(generator, device):
    as_in_a_new_program()
    chosen = torch.randperm(len(digits), generator=generator)[:90]
    seed = int(torch.randint(10_000, (), generator=generator))
    return digits[chosen] + 1, digit_labels[chosen], seed, 2


def everything(pictures, labels, seed, epochs):
    none = train(pictures, labels, seed, 0, 2, 1)
    none = [same(none["first"], none["last"]), *(none[key] == [] for key in ("orders", "losses", "watched"))]
    return (
        repeats(pictures, labels, seed, epochs)
        | with_other_workers(pictures, labels, seed, epochs)
        | when_watched(pictures, labels, seed, epochs)
        | is_described(pictures, labels, seed, epochs)
        | {"no epochs": all(none)}
    )


def everything_is_so(*arguments):
    return (
        repeats_always(*arguments)
        | workers_change_nothing(*arguments)
        | watching_changes_nothing(*arguments)
        | as_described(*arguments)
        | {"no epochs": True}
    )


check(everything, like=everything_is_so, on=[a_longer_run, a_run], points=3)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Stop, and go on
#
# *Hard, 30 minutes.* `Straight` trains a small network on the digits. It cannot be stopped: what is not in memory any
# more is lost. Write a class `Run` that gives the same numbers, **to the last bit**, and can be stopped after any step
# and go on later, in another process.
#
# - `Run(seed)`; `run.advance(steps)` makes so many steps and returns a `float64` tensor of shape `(steps, 2)`: just what
#   `Straight(seed).advance(steps)` returns. `steps` may be 0.
# - `run.state()` returns a dict that `torch.save` can write, and that `torch.load(file)` can read with its defaults:
#   tensors, numbers, text and `None`, in lists, tuples and dicts.
# - `run.load(state)` makes any `Run`, whatever its seed and its past, go on from that state. A state may be loaded
#   more than once.
# - Other code in the program may seed the generators of Python, NumPy and torch and draw from them, between any two
#   calls. Another `Run` is such other code.
# - No step is made twice: 24 steps with 12 stops ask torch for at most 3,300 operations. (In the test a `Run` makes one
#   step of its own after each stop, before it loads; these are among the 24.) What you do to take and to load a
#   state counts, too: `from autograder import costs`, and in a new cell below the first test
#   `print(costs(with_stops, 1, [1] * 12))` counts yours.


# %% id="run_given" role="given"
class Straight:
    """A run from its first step on; it must be the only one that draws random numbers."""

    def __init__(self, seed):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.model = nn.Sequential(
            nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 10)
        )
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.2, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, lambda step: (1 + step) ** -0.5)
        self.shuffle = torch.Generator().manual_seed(seed)
        self.batches = iter(())

    def next_batch(self):
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(torch.randperm(160, generator=self.shuffle).split(32))
            batch = next(self.batches)
        return batch

    def step(self):
        """The loss of one step, and afterwards the loss on pictures that are not trained on."""
        batch = self.next_batch()
        x = digits[batch].flatten(1) * (0.5 + random.random())
        x = x + 0.1 * torch.from_numpy(np.random.rand(32, 64)).float()
        loss = F.cross_entropy(self.model(x), digit_labels[batch])
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.schedule.step()
        self.model.eval()
        with torch.no_grad():
            test = F.cross_entropy(self.model(digits[200:300].flatten(1)), digit_labels[200:300])
        self.model.train()
        return [loss.item(), test.item()]

    def advance(self, steps):
        return torch.tensor([self.step() for _ in range(steps)], dtype=torch.float64).view(steps, 2)


def seed_and_parts(generator, device):
    return int(torch.randint(10_000, (), generator=generator)), [2, 1, 4, 6]


def stops_at_an_epoch(generator, device):
    return int(torch.randint(10_000, (), generator=generator)), [5, 0, 10, 1]


def without_stops(seed, parts):
    return Straight(seed).advance(sum(parts))


def one_after_the_other(seed, parts):
    return [Straight(seed).advance(sum(parts)), Straight(seed + 1).advance(sum(parts))]


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


# %% [markdown]
# <details><summary>Hint 1</summary>Make a list: what does the next step depend on? Go through <code>step</code> line by
# line. For each thing, ask what has changed since <code>__init__</code>. Section 6 of the chapter names six and
# three more: all nine are here, two of them in one <code>state_dict()</code>.</details>
# <details><summary>Hint 2</summary><code>class Run(Straight)</code> saves much typing. An iterator cannot be saved;
# what is left of it can, as long as taking it out does not use it up.</details>
# <details><summary>Hint 3</summary><code>state_dict()</code> of the network holds its running statistics, that of the
# optimiser its momentum. The schedule has one, too; it leaves the function out, which each <code>Run</code> has
# anyway. Each of the three global generators has a state; that of NumPy holds an array, which
# <code>torch.load</code> refuses; a list or a tensor will do.</details>
# <details><summary>Hint 4</summary>Other code disturbs the global generators between your calls. So note their states
# at the end of <code>__init__</code> and of <code>advance</code>, and put these back at the beginning of
# <code>advance</code>. A state may be loaded twice: is what you keep of it used up, or changed, when the run goes
# on? (To copy a tensor, <code>clone</code> is one operation; <code>copy.deepcopy</code> takes several.)</details>


# %% id="run" role="answer"
class Run:
    def __init__(self, seed):
        ### BEGIN SOLUTION
        def take_down():
            version, keys, *rest = np.random.get_state()
            numpy_state = version, keys.tolist(), *rest
            return {"python": random.getstate(), "numpy": numpy_state, "torch": torch.get_rng_state()}

        self.work, self.left = Straight(seed), []
        self.parts = self.work.model, self.work.optimiser, self.work.schedule
        self.take_down, self.generators = take_down, take_down()
        ### END SOLUTION

    def advance(self, steps):
        ### BEGIN SOLUTION
        random.setstate(self.generators["python"])
        np.random.set_state(self.generators["numpy"])
        torch.set_rng_state(self.generators["torch"])
        self.work.batches = iter(self.left)
        losses = self.work.advance(steps)
        self.left = list(self.work.batches)
        self.generators = self.take_down()
        return losses
        ### END SOLUTION

    def state(self):
        ### BEGIN SOLUTION
        return {
            "parts": [part.state_dict() for part in self.parts],
            "shuffle": self.work.shuffle.get_state(),
            "left": self.left,
            "generators": self.generators,
        }
        ### END SOLUTION

    def load(self, state):
        ### BEGIN SOLUTION
        for part, saved in zip(self.parts, state["parts"], strict=True):
            part.load_state_dict(saved)
        for memory in self.work.optimiser.state.values():
            memory["momentum_buffer"] = memory[
                "momentum_buffer"
            ].clone()  # SGD changes the one that it was given
        self.work.shuffle.set_state(state["shuffle"])
        self.left, self.generators = state["left"], state["generators"]
        ### END SOLUTION


# %% id="run_check" role="test"
def with_stops(seed, parts):
    run, losses = Run(seed), []
    for number, steps in enumerate(parts):
        losses.append(run.advance(steps))
        state = through_a_file(run.state())
        run = Run(seed + number + 1)
        run.advance(1)
        run.load(state)
    return torch.cat(losses)


check(with_stops, like=without_stops, on=[seed_and_parts, stops_at_an_epoch], tolerance=0, points=2)


# %% id="run_turns" role="test"
def in_turns(seed, parts):
    runs, losses = [Run(seed), Run(seed + 1)], [[], []]
    for steps in parts:
        for run, found in zip(runs, losses, strict=True):
            found.append(run.advance(steps))
    return [torch.cat(found) for found in losses]


check(in_turns, like=one_after_the_other, on=seed_and_parts, tolerance=0, points=2)


# %% id="run_counted" role="test"
# 24 steps and 12 stops: at most 3,300 operations.
def twelve_parts(generator, device):
    return int(torch.randint(10_000, (), generator=generator)), [1] * 12


check(with_stops, like=without_stops, on=twelve_parts, at_most={"operations": 3300}, tolerance=0, points=2)


# %% id="run_hidden" role="test"
# Hidden test: stops and turns at once, states that are loaded twice, before any step and after many; no step is
# made twice. 3 points, when graded.
### BEGIN HIDDEN TESTS
def stops_and_turns(seed, parts):
    runs, losses = [Run(seed), Run(seed + 1)], [[], []]
    first = through_a_file(runs[0].state())
    for number, steps in enumerate(parts):
        for run, found in zip(runs, losses, strict=True):
            found.append(run.advance(steps))
        states = [through_a_file(run.state()) for run in runs]
        runs = [Run(seed + number) for _ in runs]
        for run, saved in zip(runs, states, strict=True):
            run.load(saved)
    again = []
    for saved, more in ((first, 3), (states[0], 2)):
        for run in (Run(seed + 5), runs[1]):
            run.load(saved)
            again.append(run.advance(more))
    return [torch.cat(found) for found in losses] + again


def straight_and_again(seed, parts):
    losses, end = one_after_the_other(seed, [*parts, 2]), sum(parts)
    return [*(found[:end] for found in losses), *[losses[0][:3]] * 2, *[losses[0][end:]] * 2]


def many_parts(generator, device):
    return int(torch.randint(10_000, (), generator=generator)), [0, 3, *[1] * 12]


def epochs_of_five(generator, device):
    return int(torch.randint(10_000, (), generator=generator)), [5, 0, *[1] * 11]


check(
    stops_and_turns,
    like=straight_and_again,
    on=[many_parts, epochs_of_five],
    at_most={"operations": 7000},
    tolerance=0,
    points=3,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. Foretell the costs
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


def gradient(x):
    weights = torch.ones(x.shape[1], requires_grad=True)
    (x @ weights).sum().backward()
    return weights.grad


def edges(x):
    return F.conv2d(x[None, None], torch.ones(4, 1, 3, 3), padding=1)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (similar, gradient, edges)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>similar</code> is of chapter 00, <code>gradient</code> is of chapter 03,
# <code>edges</code> is of chapter 05.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(edges, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "similar": {"operations": 2, "bytes": 8 * n * n, "syncs": 0},
        "gradient": {"operations": 5, "bytes": 8 * d + 4 * n + 8, "syncs": 0},
        "edges": {"operations": 2, "bytes": 4 * 36 + 16 * n * d, "syncs": 0},
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
