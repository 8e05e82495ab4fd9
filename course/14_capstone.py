# %% [markdown]
# # 14 · Capstone: a slow training script made fast
#
# One script, correct and slow in a dozen ways. You know every one of them from an earlier chapter. The
# question of this chapter is another one: **where do you start, and when do you stop?** It goes through the six steps
# of chapter 00's routine, each by its name, from beginning to end.
#
# IDs such as *B3* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, `costs`
# and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - find out where the time of a whole script goes,
# - change one thing at a time, and prove that the script still learns the same,
# - foretell what a change is worth to the whole, before you make it,
# - bound the memory of an evaluation, without changing its result,
# - say no to a famous trick.
#
# **Time:** 50 minutes to read and run; 15 more for the part *Further*, which can be skipped. **Needs:** CPU, GPU if any.
#
# **Claims tested:** none of its own. Three old ones meet this script: *B3* (`no_grad`), and in *Further* *B7* (mixed
# precision) and *E6* (channels_last).

# %%
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from statistics import median

os.environ["KINETO_LOG_LEVEL"] = "6"  # the profiler's log, which is read when torch is loaded

import numpy as np
import torch
import torch.nn.functional as F
from parts.gains import chart_of_gains, gains
from torch.profiler import ProfilerActivity, profile, record_function

from autograder import compare, costs, devices, guessed, picture, recall, verdicts

torch.set_num_threads(1)
torch.backends.cudnn.allow_tf32 = False  # a GPU's convolutions keep all digits of float32 (chapter 05)
print("devices here:", *devices())
recall("14", ..., ..., ...)

# %% [markdown]
# ## 1. The script, and step 1: measure the whole
#
# It learns to read digits: pictures of 8 × 8 pixels with values 0 to 16, enlarged to 16 × 16. 192 of them are
# for learning, 128 for the test. A step takes 32 pictures; 12 steps show each picture twice.

# %%
with np.load("../data/digits.npz") as file:
    digits = torch.from_numpy(file["images"])
    digit_labels = torch.from_numpy(file["labels"]).long()

STEPS, BATCH, LEARN, TEST = 12, 32, 192, 128


def draw_orders(generator, learn=LEARN, epochs=2, batch=BATCH):
    """The pictures of each step: every epoch in an order of its own."""
    orders = [torch.randperm(learn, generator=generator).split(batch) for _ in range(epochs)]
    return torch.stack([order for epoch in orders for order in epoch if len(order) == batch])


def first_weights(device, dtype):
    """The same numbers at each call: 8 filters of 3 × 3, then a layer from 512 numbers to 10 scores."""
    generator = torch.Generator().manual_seed(14)
    filters = torch.randn(8, 1, 3, 3, generator=generator) * 0.5
    layer = torch.randn(10, 512, generator=generator) * 0.06
    weights = [filters, torch.zeros(8), layer, torch.zeros(10)]
    return [weight.to(device, dtype).requires_grad_() for weight in weights]


assert draw_orders(torch.Generator().manual_seed(0)).shape == (STEPS, BATCH)

# %% [markdown]
# The order of the pictures is an *input*. So is every other random number of a script that you want to
# change: two versions can be compared only if they see the same numbers.
#
# The script is cut into seven parts. Any of them can be replaced, and nothing else changes.


# %%
@dataclass(frozen=True)
class Script:
    dtype: torch.dtype  # of pictures and weights
    prepare: Callable  # what is done with all pictures, before the first step
    collect: Callable  # the pictures and labels of one step
    loss: Callable  # how wrong is the network?
    update: Callable  # one step of Adam
    note: Callable  # what is kept of a loss
    evaluate: Callable  # which digits are taken for which?


def train(script, orders, device, learn=LEARN, test=TEST):
    """Run the whole script: the loss of every step, and a table of the answers to the test."""
    weights = first_weights(device, script.dtype)
    learning = script.prepare(digits[:learn], digit_labels[:learn], device, script.dtype)
    testing = script.prepare(digits[-test:], digit_labels[-test:], device, script.dtype)
    memory, curve = {}, []
    for order in orders:
        x, y = script.collect(learning, order, device, script.dtype)
        loss = script.loss(weights, x, y)
        script.update(weights, torch.autograd.grad(loss, weights), memory)
        curve.append(script.note(loss))
    table = script.evaluate(weights, testing, script.collect, device, script.dtype)
    return torch.tensor([float(loss) for loss in curve]), table


# %% [markdown]
# Now the slow parts. Read them, and count what you would change. None is silly: all were seen in real projects.


# %%
def keep_lists(pictures, labels, device, dtype):
    return pictures.tolist(), labels.tolist()


def one_by_one(data, order, device, dtype):
    pictures, labels = data
    x = torch.zeros(0, 1, 16, 16, device=device, dtype=dtype)
    y = torch.zeros(0, device=device, dtype=torch.int64)
    for i in order.tolist():
        picture = torch.tensor(pictures[i], device=device, dtype=dtype)
        picture = F.interpolate(picture[None, None], size=16, mode="bilinear")
        picture[picture < 1] = 0  # faint grey is paper
        mean, deviation = (torch.tensor(number, device=device, dtype=dtype) for number in (5.0, 6.0))
        x = torch.cat([x, (picture - mean) / deviation])
        y = torch.cat([y, torch.tensor([labels[i]], device=device)])
    return x, y


def scores(weights, x):
    filters, shift, layer, offset = weights
    hidden = F.conv2d(x, filters, shift, stride=2, padding=1).relu()
    return F.linear(hidden.flatten(1), layer, offset)


def loss_one_by_one(weights, x, y):
    total = 0
    for i in range(len(x)):
        total = total + F.cross_entropy(scores(weights, x[i : i + 1]), y[i : i + 1])
    return total / len(x)


def adam_by_hand(weights, gradients, memory):
    memory["steps"] = steps = memory.get("steps", 0) + 1
    with torch.no_grad():
        for i, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            mean, square = memory.get(i, (torch.zeros_like(weight), torch.zeros_like(weight)))
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            memory[i] = mean, square
            mean, square = mean / (1 - 0.9**steps), square / (1 - 0.999**steps)
            weight -= 0.01 * mean / (square.sqrt() + 1e-8)


def note_number(loss):
    return loss.item()


def evaluate_one_by_one(weights, data, collect, device, dtype):
    table = torch.zeros(10, 10, dtype=torch.int64, device=device)
    for i in range(len(data[1])):
        x, y = collect(data, torch.tensor([i]), device, dtype)
        answer = scores(weights, x).argmax()
        table[y.item(), answer.item()] += 1
    return table


slow = Script(
    torch.float64, keep_lists, one_by_one, loss_one_by_one, adam_by_hand, note_number, evaluate_one_by_one
)

# %%
orders = draw_orders(torch.Generator().manual_seed(1))
start = time.perf_counter()
curve, table = train(slow, orders, "cpu")
print(f"time:               {time.perf_counter() - start:.2f} s")
print("loss of each step: ", *(f"{loss:.2f}" for loss in curve))
print(f"right in the test:  {table.trace() / table.sum():.0%}")

# %% [markdown]
# ## 2. A safety test, for step 6: verify
#
# You are about to change every part of a program that works. Before the first change, write the test that
# tells you when you broke it. For a training script that is the *curve*: the same losses at the same steps.
#
# The same to how many digits? `float32` keeps about seven. A sum in another order changes the last ones, and each step
# builds on the one before. Most mistakes change the first ones. The limit of 1e-3 lies between; a mistake that changes
# less would pass. (The curve sees the learning only; section 6 tests the evaluation.)


# %%
several_orders = [draw_orders(torch.Generator().manual_seed(seed)) for seed in range(3)]
expected = [train(slow, orders, "cpu")[0] for orders in several_orders]


def furthest(script, device):
    """The largest relative difference of a loss from that of the slow script, over three orders."""
    got = [train(script, orders, device)[0] for orders in several_orders]
    return max(float(((g - e).abs() / e).max()) for g, e in zip(got, expected, strict=True))


def accept(script):
    """The script itself, if it learns the same on every device with float64; else AssertionError."""
    for device in (name for name in devices() if name != "mps"):
        difference = furthest(script, device)
        print(f"{device}: the curve differs by at most {difference:.1e}")
        assert difference < 1e-3, "this script learns something else"
    return script


assert accept(slow) is slow

# %% [markdown]
# Does the test find a mistake? Here is a change that is easy to make: take all pictures at once, and give
# `cross_entropy` probabilities instead of scores. It runs, it is fast, it raises nothing, and the loss falls.


# %%
def loss_of_probabilities(weights, x, y):
    return F.cross_entropy(scores(weights, x).softmax(1), y)


mistaken = replace(slow, loss=loss_of_probabilities)
wrong_curve, wrong_table = train(mistaken, orders, "cpu")
print("loss of each step: ", *(f"{loss:.2f}" for loss in wrong_curve))
print(f"right in the test:  {wrong_table.trace() / wrong_table.sum():.0%}")
assert wrong_curve[-1] < wrong_curve[0]

try:
    accept(mistaken)
except AssertionError as error:
    print("refused:", error)

# %% [markdown]
# "The loss falls" is no test. The accuracy after a short run is a rough one: training forgives a lot, and 128
# pictures count in steps of almost 1 %. Here even it shows the mistake; a smaller one it may not show. The
# curve of the first steps is a sharp test, and it takes only a short run.

# %% [markdown]
# ## 3. Step 2: name the largest part
#
# Which of the seven parts, or the backward pass, takes the most time? Write its name and its share in percent,
# such as `guess = "prepare", 50`.

# %%
guess = ...

# %% [markdown]
# The profiler (chapter 18) names *operations*. We want *parts* first. `record_function` puts a name of your
# own on a stretch of time. The backward pass is not in a part; it is in what remains of the whole.


# %%
def named(name, function):
    def call(*args):
        with record_function(name):
            return function(*args)

    return call


def shares(script, runs=1, orders=orders):
    """Profile some runs: the share of each part of the script, and the rows of all operations."""
    parts = [field.name for field in fields(script) if field.name != "dtype"]
    labelled = replace(script, **{part: named(part, getattr(script, part)) for part in parts})
    # Evaluation collects, too: there it counts as evaluation.
    labelled = replace(
        labelled, evaluate=named("evaluate", lambda w, d, _, *a: script.evaluate(w, d, script.collect, *a))
    )
    with profile(activities=[ProfilerActivity.CPU]) as profiled, record_function("everything"):
        for _ in range(runs):
            train(labelled, orders, "cpu")
    rows = {row.key: row for row in profiled.key_averages()}
    total = rows["everything"].cpu_time_total
    found = {part: rows[part].cpu_time_total / total for part in parts}
    found["backward and the rest"] = 1 - sum(found.values())
    return found, rows


shares(slow, orders=orders[:1])  # the first profile also starts the profiler
before, rows = shares(slow)


def bars(parts):
    return [
        f"{part:22} {p:6.1%}  {'█' * round(50 * p)}" for part, p in sorted(parts.items(), key=lambda x: -x[1])
    ]


largest = max(before, key=before.get)
guessed("the largest part and its percent", guess, (largest, 100 * before[largest]), *bars(before))

# %% [markdown]
# A profile is itself a little slow, most of all where there are many small operations. So take the shares as
# a direction, not as a measurement. They say where to begin. **Step 3: predict.** How much is there to do?


# %%
def busiest(rows, number=5):
    operations = [row for row in rows.values() if row.key.startswith("aten::")]
    for row in sorted(operations, key=lambda row: -row.self_cpu_time_total)[:number]:
        own = row.self_cpu_time_total
        print(
            f"{row.key:30} {row.count:6,} calls, {own / row.count:6.1f} µs each by itself,",
            f"{own / 1e3:4.1f} ms together",
        )


busiest(rows)
print()
print(costs(train, slow, orders, "cpu"))

# %% [markdown]
# Thousands of operations of some microseconds each. None of them is slow: the time goes into *asking*, not computing.
#
# How much arithmetic is it? A step multiplies and adds: for the filters 32 pictures × 64 places × 8 filters ×
# 9 numbers, for the layer 32 × 512 × 10, and as much again for each gradient. The pictures need no gradient,
# so the filters count twice and the layer three times. The evaluation is left out. The next section gives
# this to `compare`, which draws the limit of the machine.

# %%
filters_flops, layer_flops = 2 * BATCH * 64 * 8 * 9, 2 * BATCH * 512 * 10
flops = STEPS * (2 * filters_flops + 3 * layer_flops)
print(f"one training: {flops / 1e6:.0f} million operations of arithmetic")

# %% [markdown]
# ## 4. First change: the loss of a whole batch
#
# **Step 4: name the cause.** In the largest part, loss and backward pass, it is a call for each picture. **Step 5: take it
# away**, and nothing else: one call for the batch. How many times faster does **the whole script** become?

# %%
guess = ...


# %%
def loss_of_batch(weights, x, y):
    return F.cross_entropy(scores(weights, x), y)


def running(script):
    return lambda orders, device: train(script, orders, device)


def fresh_orders(generator, device):
    return draw_orders(generator), device


with_batch_loss = accept(replace(slow, loss=loss_of_batch))
compare(
    "capstone: the loss of a batch",
    {"slow": running(slow), "loss of a batch": running(with_batch_loss)},
    inputs=fresh_orders,
    guess=guess,
    flops=flops,
    because="prices",
)

# %% [markdown]
# **Step 6: verify.** `accept` tests the curve, `compare` the whole. Does the curve differ by exactly 0, although sums are
# made in another order? The scripts compute in float64, the curve is kept in float32: the 16th digit is rounded away.
#
# **Why.** The same arithmetic, asked for once instead of 32 times, forward and backward:

# %%
for name, script in {"slow": slow, "loss of a batch": with_batch_loss}.items():
    x, y = script.collect(
        script.prepare(digits, digit_labels, "cpu", script.dtype), orders[0], "cpu", script.dtype
    )
    weights = first_weights("cpu", script.dtype)
    cost = costs(lambda: torch.autograd.grad(script.loss(weights, x, y), weights))  # noqa: B023
    print(f"{name:16} {cost.operations.total():5,} operations in the loss of one step and its backward pass")

# %% [markdown]
# The loss and its backward pass need many times fewer operations. The script became faster by less, because it has other
# parts. The line *limit* is the time of the arithmetic alone: a very small part. So there is room, but hardly any there.
#
# **How much can a change bring?** Let a part take the share *p* of the time, and become *k* times faster. The
# rest stays. Then the whole becomes 1 / (1 − *p* + *p* / *k*) times faster, and however large *k* is, never
# more than 1 / (1 − *p*). This is Amdahl's law. Use it before you write code, as the next section does.

# %%
p = before["loss"] + before["backward and the rest"]
print(f"loss and backward pass take {p:.0%} of the profile: at most {1 / (1 - p):.1f}× for the whole")
p = before["update"]
print(f"the update takes            {p:.0%} of the profile: at most {1 / (1 - p):.2f}× for the whole")

# %% [markdown]
# ## 5. Second change: pictures as tensors
#
# Again from step 2, with a new profile: after each change the shares are new. Which part is next?

# %%
parts = shares(with_batch_loss)[0]
print(*bars(parts)[:3], sep="\n")

# %% [markdown]
# Collecting and evaluating. Collecting makes the tensor of each picture from a list (chapter 01), makes two constants anew
# for each picture (02), enlarges them one by one (12), writes through a mask (10) and lets the batch grow with `cat` (01).
# Step 4: calls for each picture. Step 5: one index, and one call of each kind for all 32. Step 3, with the share above and
# Amdahl's law: how many times faster does the whole script become?

# %%
guess = ...


# %%
def keep_tensors(pictures, labels, device, dtype):
    return pictures.to(device), labels.to(device)


def by_index(data, order, device, dtype):
    pictures, labels = data
    order = order.to(device)
    x = F.interpolate(pictures[order][:, None].to(dtype), size=16, mode="bilinear")
    return (torch.where(x < 1, 0, x) - 5.0) / 6.0, labels[order]


with_tensors = accept(replace(with_batch_loss, prepare=keep_tensors, collect=by_index))
compare(
    "capstone: pictures as tensors",
    {"loss of a batch": running(with_batch_loss), "pictures as tensors": running(with_tensors)},
    inputs=fresh_orders,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** A picture as a tensor is one call, where a list was many: calls predict the gain. Did you measure more than
# the law allows? Evaluation collects its pictures, too. Once more, with the name "collect" for that as well:


# %%
def evaluate_named(weights, data, collect, *given):
    return evaluate_one_by_one(weights, data, named("collect", collect), *given)


everywhere = shares(replace(with_batch_loss, evaluate=evaluate_named))[0]["collect"]
for what, p in {"collect for the steps": parts["collect"], "collect everywhere": everywhere}.items():
    print(f"{what:22} {p:.0%} of the profile: at most {1 / (1 - p):.2f}× for the whole")

# %% [markdown]
# With the first share, the law allows too little. Was the law wrong? No, the share was: the profile counts
# what evaluation collects as evaluation. Before you use the law, ask which parts your change touches.

# %% [markdown]
# ## 6. Third change: evaluation
#
# Step 4: evaluation asks for one picture at a time, records a graph that nobody uses (chapter 03), waits for two
# numbers for each picture (02), and counts them one by one (10). Step 5 takes all of these away.


# %%
def evaluate_at_once(weights, data, collect, device, dtype):
    with torch.no_grad():
        x, y = collect(data, torch.arange(len(data[1])), device, dtype)
        pairs = y * 10 + scores(weights, x).argmax(1)
        return torch.bincount(pairs, minlength=100).view(10, 10)


with_evaluation = accept(replace(with_tensors, evaluate=evaluate_at_once))
for script in (with_tensors, with_evaluation):
    assert torch.equal(train(script, orders, "cpu")[1], table)

# %% [markdown]
# Step 6 is in the last two lines: the curve does not see the evaluation, so this change needs a test of its own.
#
# How many times faster does the whole script become?

# %%
guess = ...

# %%
compare(
    "capstone: evaluation at once",
    {"pictures as tensors": running(with_tensors), "evaluation at once": running(with_evaluation)},
    inputs=fresh_orders,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Calls again: one evaluation for all pictures. But step 5 says *nothing else*, and `no_grad` came in, too.
# "Use `no_grad` for inference, it is faster" is claim *B3*. So compare the forward pass of all test pictures, with and
# without it, and nothing else:

# %%
guess = ...


# %%
def weights_and_pictures(generator, device):
    pictures = torch.randn(TEST, 1, 16, 16, generator=generator, dtype=torch.float64)
    return first_weights(device, torch.float64), pictures.to(device)


def with_a_graph(weights, x):
    return scores(weights, x).argmax(1)


def without_a_graph(weights, x):
    with torch.no_grad():
        return scores(weights, x).argmax(1)


compare(
    "capstone: 128 pictures, with and without a graph",
    {"with a graph": with_a_graph, "no_grad": without_a_graph},
    inputs=weights_and_pictures,
    guess=guess,
    claim="B3",
)

# %% [markdown]
# In a batch, `no_grad` brings next to nothing on a CPU; about a tenth on an H200. (For its memory see section 11.)
# Several changes in one go do not tell which of them did it. From here on it is **one change at a time**.

# %% [markdown]
# ## 7. Fourth change: once instead of every time
#
# Each epoch enlarges the same pictures again. We can do it once, before the first step. With two epochs: how many
# times faster is the whole? (This time without step 2: no profile.)

# %%
guess = ...


# %%
def enlarge_all(pictures, labels, device, dtype):
    x = F.interpolate(pictures.to(device, dtype)[:, None], size=16, mode="bilinear")
    return (torch.where(x < 1, 0, x) - 5.0) / 6.0, labels.to(device)


def only_index(data, order, device, dtype):
    order = order.to(device)
    return data[0][order], data[1][order]


with_preparing = accept(replace(with_evaluation, prepare=enlarge_all, collect=only_index))
compare(
    "capstone: enlarge once",
    {"evaluation at once": running(with_evaluation), "enlarge once": running(with_preparing)},
    inputs=fresh_orders,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Count the pictures. Before: 12 × 32 = 384 for learning, in 12 calls. Now: 192, in one call.
#
# ### Three steps only
#
# You want to look at the first three steps only, of a data set with 1,600 pictures. Guess again.

# %%
guess = ...


# %%
def three_orders(generator, device):
    return draw_orders(generator, 1600, 1)[:3], device


compare(
    "capstone: enlarge once, for three steps",
    {
        "enlarge each batch": lambda orders, device: train(with_evaluation, orders, device, learn=1600),
        "enlarge once": lambda orders, device: train(with_preparing, orders, device, learn=1600),
    },
    inputs=three_orders,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Now it prepares 1,600 pictures to use 96. Preparing once pays for what is used more than once. It also needs
# the memory: enlarged pictures in `float32` have 16 times the bytes of the small `uint8` ones.

# %%
small, large = digits[:LEARN], enlarge_all(digits[:LEARN], digit_labels[:LEARN], "cpu", torch.float32)[0]
assert large.nbytes == 16 * small.nbytes

# %% [markdown]
# ## 8. Fifth change: `float32`
#
# `float64` needs twice the bytes, and a vector unit does half as many numbers at once (chapter 13). How many times
# faster is the whole script with `float32`?

# %%
guess = ...

# %%
with_float32 = accept(replace(with_preparing, dtype=torch.float32))
compare(
    "capstone: float32",
    {"float64": running(with_preparing), "float32": running(with_float32)},
    inputs=fresh_orders,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why not?** Half the bytes help where bytes or arithmetic take the time, and step 3, the prediction, says that calls do.
# On the CPUs where this was written it even became slower; on an H200 no difference shows. (Where from? *Further*.)
#
# We keep `float32` all the same, for another reason: a real network will be larger, its bytes and arithmetic will
# count, and many GPUs do `float64` many times more slowly. A script that stays this small, on a CPU, should take it out
# again. The losses differ in the seventh digit or so (chapter 07: when is that too much?).

# %% [markdown]
# ## 9. Sixth change: the optimiser
#
# In section 4, Amdahl's law said that the update is not worth a thought. Now the rest is gone. Step 2: what is its share?

# %%
now = shares(with_float32, runs=3)[0]
print(f"update: {before['update']:.0%} of the slow script, {now['update']:.0%} of this one")
print(f"at most {1 / (1 - now['update']):.2f}× for the whole, if the update took no time at all")

# %% [markdown]
# `torch.optim.Adam(fused=True)` does the whole update in a few operations (chapter 11). How much faster is the script?

# %%
guess = ...


# %%
def adam_fused(weights, gradients, memory):
    if "optimiser" not in memory:
        memory["optimiser"] = torch.optim.Adam(weights, lr=0.01, fused=True)
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient
    memory["optimiser"].step()


with_fused = accept(replace(with_float32, update=adam_fused))
compare(
    "capstone: a fused Adam",
    {"by hand": running(with_float32), "fused": running(with_fused)},
    inputs=fresh_orders,
    guess=guess,
)

# %% [markdown]
# On the CPU the share allows more than came. (An H200 gains 1.5×.) Perhaps the profile made the many small operations
# look longer (section 3), or the fused Adam has its own cost for each step and for being made anew in each run. (The slow script: *Further*.)

# %% [markdown]
# ## 10. Seventh change: no `item()` in the loop
#
# "Do not call `item()` in the loop" is famous. Keep the losses as tensors and read them at the end. (Detach them,
# or every step keeps its graph alive: chapter 03.) How many times faster is the whole script?

# %%
guess = ...

# %%
with_late_numbers = accept(replace(with_fused, note=torch.Tensor.detach))
compare(
    "capstone: no item() in the loop",
    {"item()": running(with_fused), "read at the end": running(with_late_numbers)},
    inputs=fresh_orders,
    guess=guess,
)

# %% [markdown]
# On a CPU the number is there already when Python asks for it. On a GPU `item()` waits for all work under way (chapter
# 02); no gain shows on an H200 either. The change stays in, for larger scripts. It costs nothing, and it is counted:

# %%
for name, script in {"item()": with_fused, "read at the end": with_late_numbers}.items():
    x, y = script.collect(
        script.prepare(digits, digit_labels, "cpu", script.dtype), orders[0], "cpu", script.dtype
    )
    loss = script.loss(first_weights("cpu", script.dtype), x, y)
    print(f"{name:16} {costs(script.note, loss).syncs} syncs a step")

# %% [markdown]
# ## 11. Memory
#
# Evaluation takes all pictures of the test at once. For 128 that is nothing; real test sets have more. Let the
# network look at all 1,797 digits, prepared before. How many MB of new memory are alive at once, at the most?

# %%
guess = ...


# %%
def evaluate_in_pieces(weights, data, collect, device, dtype, size=256):
    table = torch.zeros(10, 10, dtype=torch.int64, device=device)
    for piece in torch.arange(len(data[1])).split(size):
        with torch.no_grad():
            x, y = collect(data, piece, device, dtype)
            table += torch.bincount(y * 10 + scores(weights, x).argmax(1), minlength=100).view(10, 10)
    return table


def evaluate_with_a_graph(weights, data, collect, device, dtype):
    x, y = collect(data, torch.arange(len(data[1])), device, dtype)
    return torch.bincount(y * 10 + scores(weights, x).argmax(1), minlength=100).view(10, 10)


given = (enlarge_all(digits, digit_labels, "cpu", torch.float32), only_index, "cpu", torch.float32)
tables, peaks = [], []
ways = evaluate_with_a_graph, evaluate_at_once, evaluate_in_pieces, partial(evaluate_in_pieces, size=32)
for evaluate in ways:
    weights = first_weights("cpu", torch.float32)
    tables.append(evaluate(weights, *given))
    peaks.append(costs(evaluate, weights, *given).peak_bytes / 1e6)
assert all(torch.equal(tables[0], table) for table in tables) and peaks[1] > 0.99 * peaks[0]
lines = f"at once, no_grad:       {peaks[1]:5.2f} MB", f"no_grad, pieces of 256: {peaks[2]:5.2f} MB"
guessed("MB alive at once, with a graph", guess, peaks[0], *lines)

# %% [markdown]
# **Why.** A picture has 256 numbers and the hidden layer 512, before and after `relu`: all of them are alive at once, 5
# kB a picture in `float32`. So the graph adds nothing at the peak: this network has hardly a layer whose numbers could
# be given back earlier. In pieces, the memory no longer grows with the test set. How many times faster are pieces of
# 256 than all at once?

# %%
guess = ...


# %%
def weights_and_digits(generator, device):
    data = enlarge_all(digits, digit_labels, device, torch.float32)
    return first_weights(device, torch.float32), data, only_index, device, torch.float32


compare(
    "capstone: evaluation in pieces",
    {"at once": evaluate_at_once, "32": partial(evaluate_in_pieces, size=32), "256": evaluate_in_pieces},
    inputs=weights_and_digits,
    guess=guess,
    differ="in another batch size a GPU may round differently, and two scores nearly tie",
    because="prices",
)

# %% [markdown]
# **Why.** Pieces of 32 pay the price of every call 57 times instead of once. Pieces of 256 cost far less time, and it
# buys something: a seventh of the memory, and no more for a larger test set. (Predicted was a larger loss; what makes up
# for some of it, the table does not show.) Which size is right, is a measurement.
#
# ### When pieces do not add up
#
# The table is the same, because counts are sums. The loss is a *mean*:

# %%
weights = first_weights("cpu", torch.float32)
x, y = given[0]
with torch.no_grad():
    whole = loss_of_batch(weights, x, y).item()
    losses = [
        loss_of_batch(weights, *piece).item() for piece in zip(x.split(1024), y.split(1024), strict=True)
    ]
    sizes = [len(piece) for piece in y.split(1024)]
mean_of_means = sum(losses) / len(losses)
sum_of_sums = sum(loss * size for loss, size in zip(losses, sizes, strict=True)) / sum(sizes)
print(
    f"all at once {whole:.6f}, mean of two means {mean_of_means:.6f}, sum of sums / number {sum_of_sums:.6f}"
)
assert abs(sum_of_sums - whole) < 1e-5 < abs(mean_of_means - whole)

# %% [markdown]
# The pieces have 1,024 and 773 pictures, so their means must not count alike. Add up sums, and divide once. The
# same holds for gradients: a step that is too large for the memory can take its batch in pieces, too.

# %% [markdown]
# ## 12. When to stop
#
# Step 2 for the last time. What is left? The profile of the fast script, by part and by operation:

# %%
fast = with_late_numbers
parts, rows = shares(fast, runs=5)
print(*bars(parts), "", sep="\n")
busiest(rows)
print()
for name, script in {"slow": slow, "fast": fast}.items():
    print(f"{name}: {costs(train, script, orders, 'cpu').operations.total():6,} operations in one training")

# %% [markdown]
# The limit is still far away. But the time is no longer spread over thousands of calls. The convolution and its
# backward pass lead the table: in one run (it counts five) each takes longer than all arithmetic does by the limit of
# section 4. And most of the time goes into what the script is *for*: the loss, the backward pass and the update. There
# are still other ways to the same numbers: one is in *Further*; another is to compile parts of it (chapter 13), which we
# do not try here. After that you would have to change what is computed
# (then the curve changes), or buy another machine. These are decisions, not repairs: a good place to stop.

# %% [markdown]
# ## 13. Which lesson bought what?
#
# All versions once more, in turn, on the same inputs. First guess: how many times faster is the last than the first?

# %%
guess = ...

# %%
versions = {
    "slow": slow,
    "loss of a batch": with_batch_loss,
    "pictures as tensors": with_tensors,
    "evaluation at once": with_evaluation,
    "enlarge once": with_preparing,
    "float32": with_float32,
    "fused Adam": with_fused,
    "no item()": with_late_numbers,
}
result = compare(
    "capstone: all changes",
    {name: running(script) for name, script in versions.items()},
    inputs=fresh_orders,
    guess=guess,
    flops=flops,
    seconds=1.0,
)

# %% [markdown]
# Each bar stands for the changes so far. The next chart asks what each change *alone* brought, in two ways. Left: time
# saved (a difference of two medians), as a share of the slow script. Right: how many times faster it made the version
# before (the median over rounds, as in the table).

# %%
device = devices()[0]
samples = result.samples[device]
total = median(samples.seconds("slow"))
steps = gains(samples, list(versions), ["01", "01, 10, 12", "02, 03, 10", "04, 12", "07", "11", "02"])
spread = "{0.median:.2f}× ({0.low:.2f}× to {0.high:.2f}×)".format
told = [f"{name}: {round(100 * saved)} % saved, {spread(ratio)}" for name, saved, ratio in steps]
picture(chart_of_gains(steps), "Chart: what each change brought. " + "; ".join(told) + ".")
print(f"on {device}, of {total * 1e3:.0f} ms:", *told, sep="\n  ")
print("all together:", spread(result.ratio(device)))

# %% [markdown]
# The left chart is what you feel. There the first three changes are nearly everything: all three put many small calls
# into one large call. The right chart is what each change did to what was left of the script. A bar to the left of 1×
# is a loss; where the black line (the interval in brackets) crosses 1×, the change cannot be told from no change.
#
# In a quiet run the two charts agree on what is a gain and what a loss. Where one shows a gain and the other a loss, or intervals are wide, some rounds
# were disturbed; and eight versions have time for few rounds. Then believe only the large steps: of the small ones,
# sections 7 to 10 say more, which time two versions in more rounds. On a CPU the last version may be slower than
# "enlarge once": `float32` can cost more than the fused Adam brings.
#
# The bars on the right depend on the order. What could "evaluation at once" have brought as the *first* change?

# %%
ratio = samples.ratio("pictures as tensors", "evaluation at once").median
p = before["evaluate"]
print(f"evaluation took {p:.0%} of the slow script")
print(f"as the third change it brought {ratio:.2f}×")
print(f"as the first change it could have brought at most {1 / (1 - p):.2f}×")

# %% [markdown]
# ### What the time is for
#
# Ten epochs of 1,437 pictures, with 360 others for the test. The slow script would take at most about this
# long (the one evaluation is counted too often):

# %%
steps_now = len(draw_orders(torch.Generator().manual_seed(2), 1437, 10))
print(f"{steps_now} steps: about {total * steps_now / STEPS:.1f} s for the slow script")
start = time.perf_counter()
_, answers = train(fast, draw_orders(torch.Generator().manual_seed(2), 1437, 10), "cpu", 1437, 360)
print(f"the fast script on the CPU: {time.perf_counter() - start:.1f} s")
print(f"right in the test: {answers.trace() / answers.sum():.1%}")

# %% [markdown]
# ## Further
#
# This part can be skipped. It is for readers who want to try more famous tricks on this script, and another way to
# compute the same network.
#
# ### Why `float32` did not pay
#
# Which operations compute the convolution, and how long does a call of them take?

# %%
for name, script in {"float64": with_preparing, "float32": with_float32}.items():
    rows = shares(script, runs=2)[1]
    found = [row for row in rows.values() if "conv" in row.key and row.self_cpu_time_total > 0]
    most = sorted(found, key=lambda row: -row.self_cpu_time_total)[:2]
    each = (f"{row.key} {row.self_cpu_time_total / row.count:.0f} µs" for row in most)
    print(f"{name}: ", "; ".join(each))

# %% [markdown]
# The dtype decides who computes a convolution. On most CPUs, `float32` goes to a library (oneDNN, called *mkldnn*
# here), `float64` to torch's own code. Compare the times: where a call takes as long with half the bytes, or longer, it
# does not wait for bytes. The library is made for large layers; what it does in each call, the profile does not say.
# Nor need all of the loss be in these calls.

# %% [markdown]
# ### The fused Adam in the slow script
#
# There we might have made the change first, because it is so easy. How many times faster is the slow script?

# %%
guess = ...

# %%
compare(
    "capstone: a fused Adam in the slow script",
    {"slow": running(slow), "slow, fused": running(replace(slow, update=adam_fused))},
    inputs=fresh_orders,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why not?** The script has thousands of other calls: a saving of a few milliseconds or less is lost in the whole. A
# test of a trick in a slow script says little about the trick. Large parts first.
#
# ### Two more famous tricks
#
# **Use channels_last for convolutions.** How many times faster does the script become?

# %%
guess = ...


# %%
def scores_channels_last(weights, x):
    filters, shift, layer, offset = weights
    x, filters = (tensor.to(memory_format=torch.channels_last) for tensor in (x, filters))
    hidden = F.conv2d(x, filters, shift, stride=2, padding=1).relu()
    return F.linear(hidden.flatten(1), layer, offset)


def loss_channels_last(weights, x, y):
    return F.cross_entropy(scores_channels_last(weights, x), y)


with_channels_last = accept(replace(with_late_numbers, loss=loss_channels_last))
compare(
    "capstone: channels_last",
    {"contiguous": running(with_late_numbers), "channels_last": running(with_channels_last)},
    inputs=fresh_orders,
    guess=guess,
    claim="E6",
    only="cpu",
    seconds=0.6,
    because="prices",
)

# %% [markdown]
# **Why.** With one channel in and eight out there is hardly a channel to put last. And the layer behind it expects the
# numbers of a picture in the usual order, so `flatten` must copy:

# %%
hidden = torch.rand(BATCH, 8, 8, 8)
assert hidden.flatten(1).data_ptr() == hidden.data_ptr()
hidden = hidden.to(memory_format=torch.channels_last)
assert hidden.flatten(1).data_ptr() != hidden.data_ptr()

# %% [markdown]
# It goes out again. (`float32` halves the bytes of every operation, whatever the network; channels_last helps certain
# layers, and is tried again when they are there: chapter 06. Did you notice `.to` instead of `.contiguous`? With a
# single channel, `contiguous` finds nothing to do, and you would have measured a change that you did not make.)

# %%
grey = torch.rand(BATCH, 1, 16, 16)
assert grey.contiguous(memory_format=torch.channels_last).stride() == grey.stride()
assert grey.to(memory_format=torch.channels_last).stride() != grey.stride()

# %% [markdown]
# **Use mixed precision.** `bfloat16` needs half the bytes of `float32`. How many times faster does the script become?

# %%
guess = ...


# %%
def loss_in_bfloat16(weights, x, y):
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        return F.cross_entropy(scores(weights, x), y)


in_bfloat16 = replace(with_late_numbers, loss=loss_in_bfloat16)
compare(
    "capstone: autocast to bfloat16",
    {"float32": running(with_late_numbers), "bfloat16": running(in_bfloat16)},
    inputs=fresh_orders,
    guess=guess,
    claim="B7",
    differ="16 bits round earlier",
    seconds=0.6,
    because="prices",
)

# %%
try:
    accept(in_bfloat16)
except AssertionError as error:
    print("refused:", error)

# %% [markdown]
# **Why.** The conversions are operations, too, and here the operations are what we pay for. And the curve test refuses
# it: `bfloat16` keeps two to three digits, so the curve cannot be the same. That need not be wrong. But it is no longer
# a change of speed alone: you would have to show, with long runs and several seeds, that it learns as well. A change
# that needs such proof should bring more than this one.

# %% [markdown]
# ### Patches cut once
#
# Each filter sees a picture as 64 patches of 9 numbers. `unfold` can cut them out once, before the first step, as
# section 7 did with enlarging. Then the convolution is a product of matrices. How many times faster is the script?

# %%
guess = ...


# %%
def cut_all(pictures, labels, device, dtype):
    x, y = enlarge_all(pictures, labels, device, dtype)
    return F.unfold(x, 3, stride=2, padding=1), y  # for each picture 9 numbers × 64 patches


def scores_of_patches(weights, x):
    filters, shift, layer, offset = weights
    hidden = (filters.flatten(1) @ x + shift[:, None]).relu()
    return F.linear(hidden.flatten(1), layer, offset)


def loss_of_patches(weights, x, y):
    return F.cross_entropy(scores_of_patches(weights, x), y)


def evaluate_patches(weights, data, collect, device, dtype):
    with torch.no_grad():
        x, y = collect(data, torch.arange(len(data[1])), device, dtype)
        pairs = y * 10 + scores_of_patches(weights, x).argmax(1)
        return torch.bincount(pairs, minlength=100).view(10, 10)


with_patches = accept(replace(fast, prepare=cut_all, loss=loss_of_patches, evaluate=evaluate_patches))
assert torch.equal(train(with_patches, orders, "cpu")[1], table)
assert cut_all(digits[:1], digit_labels[:1], "cpu", torch.float32)[0].numel() == 576
compare(
    "capstone: patches cut once",
    {"convolution": running(fast), "product of patches": running(with_patches)},
    inputs=fresh_orders,
    guess=guess,
    seconds=0.6,
)

# %% [markdown]
# The same curve and the same table. The convolution's backward pass, which stood at the head of the profile, is a product of
# matrices now. (On the recorded CPUs it gains a fifth or less; on an H200 it loses, 0.81×.) The price: 576 numbers a picture instead
# of 256, and code that no longer says "convolution". Whether that is worth it, is for you to say. It is not among the
# versions of section 13.

# %% [markdown]
# ## Summary
#
# | the routine of chapter 00 | how | in this chapter |
# |---|---|---|
# | 1. measure the whole | a short run, random numbers as inputs; its curve is the safety test | one training, one table |
# | 2. name the largest part | `record_function` in a profile; it brings at most 1 / (1 − share) | the loop over pictures; the optimiser could wait |
# | 3. predict | calls, bytes and flops, at this machine's prices | thousands of calls, next to no arithmetic |
# | 4. name the cause | one sentence, which can be wrong | a call for each picture, not for each batch |
# | 5. take it away | replace one part, and nothing else | once in a batch, `no_grad` brought next to nothing |
# | 6. verify | the safety test, then `compare` the whole; keep what pays, or will: name where | two changes refused; channels_last and `bfloat16` went out |
# | again from 2, or stop | stop when what is left is what the script is for | forward and backward pass |
#
# | famous trick | here |
# |---|---|
# | whole batches instead of single pictures | most of the gain, in three places |
# | `no_grad` in evaluation | next to no time in a batch on a CPU, and no memory here; keep it for deeper networks |
# | evaluation in pieces | the memory no longer grows with the test set; sums add up, means do not |
# | prepare once | pays if it is used more than once |
# | no `item()` in the loop | nothing, on a CPU or an H200; keep it for a GPU that has more to do |
# | `float32` | a loss for such a small network on a CPU; kept for larger ones and for the GPU |
# | fused optimiser | little or nothing on a CPU, even after the large parts were gone; 1.5× on an H200 |
# | channels_last, `bfloat16` | no gain for such a small network |

# %%
verdicts("B3", "B7", "E6")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/14_capstone/14_capstone.ipynb). Another script
# with other faults. Make its parts fast, then the whole.
