# %% [markdown]
# # 10 · Selection
#
# Which numbers? Those above the mean, those that are not padding, those that belong to group 7. There are
# many ways to write it. They differ in what they cost, and a few of them are wrong where nobody looks.
#
# **You will be able to**
# - choose between `masked_select`, a boolean index, a product with the mask, and `where`,
# - see to it that what nobody chose does no harm, in values and in gradients,
# - write values to given places with `scatter`, and say what happens when two want the same place,
# - replace a loop over groups, bins or classes by one call.
#
# **Time:** 50 minutes to read and run, 15 more for the part Further. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *C9* "`masked_select` and `data[mask]` select, `data * mask` fills with 0; gradients flow"; *C10*
# "`torch.where` joins two tensors; gradients flow"; *C11* "`Tensor.scatter` writes values at given positions". They are of
# [five widely read articles](claims.ipynb). For `compare`, `costs` and `guess` see [chapter 00](00_measuring.ipynb).

# %%
import time
import warnings
from statistics import median

import torch
import torch.nn.functional as F
from parts.inputs import in_groups, normal, whole_numbers
from parts.selection import added, draw_moves, draw_shares, gathered, joined, masked, scattered

from autograder import article_code, behaviour, compare, costs, devices, guessed, picture, verdicts, without
from autograder.teaching.recall import recall

print("devices here:", *devices())
recall("10", ..., ..., ...)

# %% [markdown]
# ## 1. Three ways to select
#
# We want the numbers that are larger than the mean of all. A comparison gives a mask: a tensor of `True` and
# `False`. Three ways to use it:

# %%
data = torch.tensor([[1.0, 8.0, 2.0], [9.0, 3.0, 7.0]], requires_grad=True)
mask = data > data.mean()
print("mean            ", data.mean().item())
print("masked_select   ", torch.masked_select(data, mask).tolist())
print("data[mask]      ", data[mask].tolist())
print("data * mask     ", (data * mask).tolist())

# %% [markdown]
# The first two give the same: a new tensor of one dimension, a copy. The third does not select. It keeps the
# shape, and puts 0 in the other places. Its sum is the sum of the chosen; its mean, its minimum and its length
# are not. (`behaviour` checks one sentence of an article's claim, and prints what it found.)

# %%
product = (data * mask).tolist()
assert data[mask].untyped_storage().data_ptr() != data.untyped_storage().data_ptr()
assert (data * mask).sum() == data[mask].sum()
assert (data * mask).mean() != data[mask].mean() and (data * mask).min() != data[mask].min()
behaviour(
    "C9",
    "masked_select and data[mask] give the chosen numbers, in their order.",
    torch.masked_select(data, mask).tolist() == data[mask].tolist() == [8.0, 9.0, 7.0],
)

# %% [markdown]
# `torch.where(mask, x, 0)` keeps the shape, too: where the mask is true it takes from `x`, elsewhere it puts 0.
# To **pack**, each number must know how many chosen ones stand before it. To **stay in place**, it needs to know
# nothing. Section 4 is about this difference; section 3 finds another one.

# %%
x = torch.tensor([3.0, 8.0, 1.0, 9.0, 2.0, 7.0])
picture(*draw_moves(masked(x, x > x.mean()), joined(x, x > x.mean(), 0)))

# %% [markdown]
# Do gradients flow? Yes, through all three: 1 where the mask is true, 0 elsewhere. (None flows through the
# mask itself: a comparison has no gradient.)

# %%
gradients = [
    torch.autograd.grad(select().sum(), data)[0]
    for select in (lambda: torch.masked_select(data, mask), lambda: data[mask], lambda: data * mask)
]
print(gradients[0].tolist())
behaviour(
    "C9",
    "Gradients flow through all three ways: 1 for the chosen, 0 for the others.",
    all(torch.equal(gradient, mask.float()) for gradient in gradients),
)

# %% [markdown]
# ## 2. The values, or a number about them?
#
# Often nobody needs the chosen values. A mean of them is enough, and a mean is two sums: the sum of
# `data * mask`, and the number of `True`. That works on all numbers, wanted or not. A million normally
# distributed numbers; about half of them are above the mean.
#
# The two sums are the baseline. How many times as fast is `masked_select(…).mean()`?

# %%
guess = ...


# %%
def two_sums(data):
    mask = data > data.mean()
    return (data * mask).sum() / mask.sum()


def index_first(data):
    return data[data > data.mean()].mean()


def select_first(data):
    return torch.masked_select(data, data > data.mean()).mean()


compare(
    "the mean of the numbers above the mean, of 1,000,000",
    {"two sums": two_sums, "data[mask].mean()": index_first, "masked_select().mean()": select_first},
    inputs=normal(1_000_000),
    guess=guess,
    bytes=8e6,
)

# %%
data = torch.randn(1_000_000)
for function in (two_sums, index_first, select_first):
    print(f"{function.__name__}:", costs(function, data), sep="\n", end="\n\n")

# %% [markdown]
# (The limit is the time to read the 4 MB twice, once for the mean and once for the rest.)
#
# The counts do not explain it. Selecting first takes fewer operations, and its results take less memory. So where
# does the time go?
#
# ## 3. The same length, another mask
#
# Here is an experiment. The same million numbers and two masks with the same number of `True`. In one they are
# shuffled. In the other, all `False` come first. How many times as fast is `masked_select` with the second mask?

# %%
guess = ...


# %%
def values_and_masks(generator, device):
    values = torch.randn(1_000_000, generator=generator)
    shuffled = torch.rand(1_000_000, generator=generator) < 0.5
    return values.to(device), shuffled.to(device), shuffled.sort().values.to(device)


measured = compare(
    "masked_select with half of 1,000,000 chosen",
    {
        "shuffled mask": lambda values, shuffled, ordered: torch.masked_select(values, shuffled),
        "ordered mask": lambda values, shuffled, ordered: torch.masked_select(values, ordered),
    },
    inputs=values_and_masks,
    guess=guess,
    differ="the two masks choose other numbers",
    because=without(
        "a branch", variants={"shuffled": lambda v, s, o: v * s, "ordered": lambda v, s, o: v * o}
    ),
)

# %% [markdown]
# **Why.** The same bytes, the same operation, the same length of the result. Only the *order* differs. A CPU reads
# ahead in the program. At every "is this one chosen?" it guesses the answer and goes on. After a wrong guess it throws
# away what it had begun. In a shuffled mask, half of the guesses are wrong. A product with the mask asks nothing, and
# there the order costs nothing. That gives the price of one guess:

# %%
shuffled, ordered = (
    median(measured.samples["cpu"].seconds(name)) for name in ("shuffled mask", "ordered mask")
)
print(f"{(shuffled - ordered) / 500_000 * 1e9:.1f} ns for each of 500,000 wrong guesses")

# %% [markdown]
# So the cost must depend on the *share* of `True`, and be worst in the middle. We look at four operations,
# with shuffled and with ordered masks. `x * mask` computes the same for every element. So there is nothing to
# guess, and its line should be flat.


# %%
def best_time(function, *args):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    torch.set_num_threads(threads)
    return min(times) * 1e3


operations = {
    "masked_select": torch.masked_select,
    "x[mask]": lambda x, mask: x[mask],
    "where(mask, x, 0)": lambda x, mask: torch.where(mask, x, 0),
    "x * mask": lambda x, mask: x * mask,
}
shares = [0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0]
x, chances = torch.randn(1_000_000), torch.rand(1_000_000)
milliseconds = {
    (order, name): [best_time(call, x, (numbers < share)) for share in shares]
    for order, numbers in (("shuffled", chances), ("ordered", chances.sort().values))
    for name, call in operations.items()
}
picture(*draw_shares(shares, milliseconds))

# %% [markdown]
# Look at `where`. It keeps every number in its place, and its line had a hump all the same on the CPU that built this
# notebook. So *deciding* number by number is enough for a hump, without packing. Multiplying decides nothing: half
# chosen and shuffled, it was far faster. So where you need a mask several times, decide once, and multiply then.
# `x[mask]` pays for each chosen number besides, in whatever order: it first writes down the place of each, and then
# fetches the numbers by their places. All this is about CPUs: on an H200 both masks of the experiment took 50 µs. On a
# GPU the price of selecting is another one: section 4.
#
# ### When multiplying does not help
#
# Because it is wrong. 0 times NaN is NaN, and 0 times infinity too. One bad number among those that nobody
# chose, and the sum is gone. `where` drops it, and costs what the picture shows.

# %%
values = torch.tensor([1.0, float("nan"), 3.0, float("inf")])
chosen = torch.tensor([True, False, True, False])
print("product:", (values * chosen).sum().item(), " where:", torch.where(chosen, values, 0).sum().item())
assert (values * chosen).sum().isnan() and torch.where(chosen, values, 0).sum() == 4
behaviour(
    "C9",
    "data * mask keeps the chosen numbers in their places, and gives 0 in the others.",
    product == [[0.0, 8.0, 0.0], [9.0, 0.0, 7.0]],
    when="data * mask drops finite numbers only",
)
behaviour(
    "C9",
    "data * mask gives 0 in the place of NaN and infinity, too.",
    torch.equal((values * chosen)[~chosen], torch.zeros(2)),
    unless="data * mask drops finite numbers only",
)

# %% [markdown]
# ## 4. How long is the result?
#
# `x[mask]` has as many elements as there are `True`. To allocate it, somebody must count them first. On a
# GPU the host has to wait for that number: a sync (chapter 02). Here are eleven lines; `mask` is `x > 0.5`.

# %%
x, labels = torch.rand(6), torch.tensor([2, 0, 1, 2, 2, 0])


def assign_number(x):
    result = x.clone()
    result[x > 0.5] = 0.0
    return result


def assign_tensor(x):
    result = x.clone()
    result[x > 0.5] = x[x > 0.5] * 2
    return result


lines = {
    "torch.masked_select(x, mask)": lambda x: torch.masked_select(x, x > 0.5),
    "x[mask]": lambda x: x[x > 0.5],
    "x * mask": lambda x: x * (x > 0.5),
    "torch.where(mask, x, 0)": lambda x: torch.where(x > 0.5, x, 0),
    "x[mask] = 0.0": assign_number,
    "x[mask] = x[mask] * 2": assign_tensor,
    "(x > 0.5).nonzero()": lambda x: (x > 0.5).nonzero(),
    "x.topk(3)": lambda x: x.topk(3),
    "torch.nonzero_static(mask, size=3)": lambda x: torch.nonzero_static(x > 0.5, size=3),
    "zeros(3).index_add(0, labels, x)": lambda x: x.new_zeros(3).index_add(0, labels.to(x.device), x),
    "labels.bincount(minlength=3)": lambda x: labels.to(x.device).bincount(minlength=3),
}

# %% [markdown]
# How many of the eleven lines wait? Ask of each step: do you know how long its result is, without seeing the values?
#
# (`costs` estimates syncs on a CPU, from names of operations and types of indices: to read `x[mask]` is one, `x[places]`
# none. The exercises go by it. On a GPU, `torch.cuda.set_sync_debug_mode("warn")` names the lines that really wait.)

# %%
guess = ...

# %%
syncs = {line: costs(call, x).syncs for line, call in lines.items()}
guessed(
    f"of {len(lines)} lines, those that wait",
    guess,
    sum(number > 0 for number in syncs.values()),
    *(f"{line:36} syncs: {number}" for line, number in syncs.items()),
)

# %% [markdown]
# Three of the lines are worth a second look.
#
# - `x[mask] = 0.0` waits for nobody: torch turns it into `masked_fill_`, which writes in place, in known
# places. `x[mask] = tensor` must find the places. `torch.where(mask, x * 2, x)` says the same without a sync.
# - `bincount` waits in spite of `minlength`: a larger label would make the result longer. `index_add` into a
#   tensor of known size does not.
# - `topk` and `nonzero_static` have a length that *you* give.

# %%
print(costs(assign_number, x).operations)
# Older versions of torch fill within index_put_.
assert {"aten.masked_fill_", "aten.index_put_"} & costs(assign_number, x).operations.keys()
assert torch.equal(assign_tensor(x), torch.where(x > 0.5, x * 2, x))
assert len(labels.bincount(minlength=3)) == 3 and len(torch.tensor([7]).bincount(minlength=3)) == 8

# %% [markdown]
# ## 5. `where` takes two finished tensors
#
# `torch.where(condition, a, b)` takes from `a` where the condition is true, and from `b` elsewhere. All three
# broadcast. But somebody must have computed `a` and `b` before: all of their elements.
#
# Here one branch is expensive (`lgamma`), and only 1 % of the elements want it. We can select them, compute, and
# write them back to their places. How many times as fast as `where` is that?

# %%
guess = ...


# %%
def both_branches(condition, a):
    return torch.where(condition, torch.lgamma(a), a)


def only_the_chosen(condition, a):
    places = condition.nonzero()[:, 0]
    return a.index_put((places,), torch.lgamma(a[places]))


def cheap_for_all(condition, a):
    return torch.where(condition, a.exp(), a)


def cheap_for_the_chosen(condition, a):
    places = condition.nonzero()[:, 0]
    return a.index_put((places,), a[places].exp())


def condition_and_numbers(generator, device):
    condition = torch.rand(500_000, generator=generator) < 0.01
    return condition.to(device), torch.rand(500_000, generator=generator).to(device)


compare(
    "an expensive branch for 1 % of 500,000",
    {"where": both_branches, "select, compute, put back": only_the_chosen},
    inputs=condition_and_numbers,
    guess=guess,
    because=without("a dear branch", variants={"where": cheap_for_all, "select": cheap_for_the_chosen}),
)

# %%
condition, a = torch.rand(500_000) < 0.01, torch.rand(500_000)
print("syncs:", costs(both_branches, condition, a).syncs, "and", costs(only_the_chosen, condition, a).syncs)

# %% [markdown]
# **Why.** 5,000 logarithms of the gamma function instead of 500,000. The price is a sync. On an H200 it does not pay:
# `where` took 22 µs, selecting 130. Now a cheap branch, `exp`. How many times as fast as `where` is the same trick?

# %%
guess = ...


# %%
compare(
    "a cheap branch for 1 % of 500,000",
    {"where": cheap_for_all, "select, compute, put back": cheap_for_the_chosen},
    inputs=condition_and_numbers,
    guess=guess,
)

# %% [markdown]
# Little is left of the gain, or it is a loss (below 1): the machines differ. And when half of all elements are
# chosen? Change `0.01` to `0.5` in `condition_and_numbers`, run both comparisons again, and see. (If a choice has a
# name, as "the larger of two" has, it needs no `where`: *Further*.)

# %% [markdown]
# ## 6. The gradient of a choice
#
# Gradients flow through `where`: from `a` where it was chosen, and from `b` elsewhere.

# %%
a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = torch.tensor([10.0, 20.0, 30.0], requires_grad=True)
condition = torch.tensor([True, False, True])
both = torch.where(condition, a, b)
to_a, to_b = torch.autograd.grad(both.sum(), (a, b))
print(both.tolist(), to_a.tolist(), to_b.tolist())

# %% [markdown]
# Now a square root that shall be 0 for everything that is not positive. The values are right. What is the gradient
# at the second element, which is 0? (The root was not chosen there.) Write a number, or a word such as `"inf"`.

# %%
guess = ...

# %%
x = torch.tensor([4.0, 0.0, 9.0], requires_grad=True)


def leaking_root(x):
    return torch.where(x > 0, x.sqrt(), 0.0)


(leaked,) = torch.autograd.grad(leaking_root(x).sum(), x)
lines = f"values    {leaking_root(x).tolist()}", f"gradients {leaked.tolist()}"
guessed("the gradient at the second element", guess, str(leaked[1].item()), *lines)

# %% [markdown]
# **Why.** In the backward pass, `where` sends 0 to the branch that was not chosen. That is right. Then the chain rule
# multiplies this 0 by the derivative of the root at 0, which is infinite. And 0 times infinity is NaN. `where` hides
# a bad *value*; it cannot hide a bad *derivative*. A weight with a NaN gradient is NaN itself after the next step.

# %%
assert leaked[1].isnan() and x.sqrt()[1].isfinite()
behaviour(
    "C10",
    "Each element's gradient goes to the tensor that it came from; the other one gets 0.",
    torch.equal(to_a, condition.float()) and torch.equal(to_b, (~condition).float()),
    when="the derivatives of both branches are finite, chosen or not",
)
behaviour(
    "C10",
    "Where the root of 0 was not chosen, 0 comes back.",
    torch.equal(leaked, torch.tensor([1 / 4, 0, 1 / 6])),
    unless="the derivatives of both branches are finite, chosen or not",
)

# %% [markdown]
# Which ways are clean? What counts is what the root sees.

# %%
positive = x > 0
ways = {
    "where(mask, x.sqrt(), 0)": lambda: leaking_root(x),
    "x.sqrt() * mask": lambda: x.sqrt() * positive,
    "x.sqrt().masked_fill(~mask, 0)": lambda: x.sqrt().masked_fill(~positive, 0.0),
    "x.sqrt()[mask]": lambda: x.sqrt()[positive],
    "x[mask].sqrt()": lambda: x[positive].sqrt(),
    "double where": lambda: torch.where(positive, torch.where(positive, x, 1.0).sqrt(), 0.0),
    "x.clamp(min=1e-12).sqrt()": lambda: x.clamp(min=1e-12).sqrt(),
}
reached = {way: torch.autograd.grad(call().sum(), x)[0] for way, call in ways.items()}
for way, call in ways.items():
    values, slopes = ([f"{number:.3g}" for number in t.tolist()] for t in (call(), reached[way]))
    print(f"{way:32} values {', '.join(values):18} gradients {', '.join(slopes)}")
leaks = [way for way in ways if reached[way].isnan().tolist() == [False, True, False]]
assert leaks == list(ways)[:4] and all(reached[way].isfinite().all() for way in list(ways)[4:])

# %% [markdown]
# Whoever selects *after* the root leaks. The last three are clean. The first of them selects before the root. The
# **double where** puts a harmless number, here 1, into the places that will be thrown away, takes the root, and
# then throws them away. Its values and its gradients are exact, it needs no sync, and it works for every function
# that has a harmless number to put in (value and derivative finite). `clamp` is shorter, but not quite 0 there.

# %% [markdown]
# ## 7. `gather` reads from places, `scatter` writes to places
#
# Both take an index. For `gather` an entry says *from where* a number of the result comes. For `scatter` it says
# *to where* a value goes.

# %%
x = torch.tensor([3.0, 8.0, 1.0, 9.0, 2.0, 7.0])
picture(
    *draw_moves(
        gathered(x, torch.tensor([3, 0, 3, 5])),
        scattered(x, torch.tensor([4, 0, 3, 5]), torch.tensor([10.0, 20.0, 30.0, 40.0])),
    )
)

# %% [markdown]
# In one dimension, `data.scatter(0, index, values)` is this loop. (On a CPU a place that does not exist is an error, and
# so is a negative one, which `data[index]` allows: *Further*.)

# %%
data, index, values = torch.zeros(6), torch.tensor([4, 0, 3]), torch.tensor([10.0, 20.0, 30.0])

by_hand = data.tolist()
for i in range(len(index)):
    by_hand[index[i]] = values[i].item()

print(by_hand)
print(data.scatter(0, index, values).tolist())
assert data.scatter(0, index, values).tolist() == by_hand
assert data.sum() == 0, "data is as it was; scatter_ with an underscore writes into it"

# %% [markdown]
# In two dimensions the index has the shape of the values, and an entry replaces one of the two coordinates,
# the one that `dim` names. The other stays:


# %%
def scatter_by_hand(data, dim, index, values):
    result = data.clone()
    for i in range(index.shape[0]):
        for j in range(index.shape[1]):
            if dim == 0:
                result[index[i, j], j] = values[i, j]
            else:
                result[i, index[i, j]] = values[i, j]
    return result


values = torch.arange(1.0, 7.0).view(2, 3)
rows, columns = torch.tensor([[3, 0, 1], [0, 2, 2]]), torch.tensor([[4, 0, 1], [2, 3, 0]])
down = torch.zeros(4, 3).scatter(0, rows, values)
along = torch.zeros(2, 5).scatter(1, columns, values)
print(values, down, along, sep="\n")

# %% [markdown]
# With `dim=0` each value stays in its column and moves to the row that the index says. With `dim=1` it
# stays in its row. `gather` is the way back: it reads from where `scatter` wrote.

# %%
assert torch.equal(down.gather(0, rows), values) and torch.equal(along.gather(1, columns), values)
in_one_dimension = data.scatter(0, index, torch.tensor([10.0, 20.0, 30.0])).tolist() == by_hand
down_by_hand = scatter_by_hand(torch.zeros(4, 3), 0, rows, values)
along_by_hand = scatter_by_hand(torch.zeros(2, 5), 1, columns, values)

# %% [markdown]
# ### Few values, much data
#
# 100 values go into a million places. `scatter` gives you a *new* tensor with a million numbers. `scatter_`
# writes into the old one. How many times as fast is it?

# %%
guess = ...


# %%
def copied(data, index, values):
    return data.scatter(0, index, values)


def cloned(data, index, values):
    return data.clone().scatter_(0, index, values)


def data_index_and_values(generator, device):
    data = torch.rand(1_000_000, generator=generator)
    index = torch.randperm(1_000_000, generator=generator)[:100]
    return data.to(device), index.to(device), torch.rand(100, generator=generator).to(device)


compare(
    "100 values to places among 1,000,000",
    {
        "scatter": copied,
        "scatter_": lambda data, index, values: data.scatter_(0, index, values),
    },
    inputs=data_index_and_values,
    guess=guess,
    because=without("the copy", variants={"scatter": copied, "clone, scatter_": cloned}),
)

# %% [markdown]
# **Why.** The copy of 4 MB is the cost; the 100 writes are nothing. (On an H200 the copy is a launch more.) In place
# needs a tensor that nobody else wants unchanged, autograd included: chapter 03 shows what happens otherwise.

# %% [markdown]
# ## 8. Two values for one place
#
# Several values go to the same place. Which one stays? In the Python loop it is the last one. In torch? Four
# threads write 100,000 values to 100 places with `data[index] = values`. In how many of the 100 places does the last
# value stand? We repeat it 40 times: guess the fewest.

# %%
guess = ...

# %%
values = torch.arange(100_000.0)
index = torch.randint(100, (100_000,))
last = torch.zeros(100).scatter_reduce(0, index, values, "amax")  # values grow, so the largest is the last


def assign(index, values):
    data = torch.zeros(100)
    data[index] = values
    return data


found = []
threads = torch.get_num_threads()
for number in (1, 4):
    torch.set_num_threads(number)
    for name, call in {
        "scatter": lambda: torch.zeros(100).scatter(0, index, values),
        "data[index] = values": lambda: assign(index, values),
    }.items():
        same = [(call() == last).sum().item() for _ in range(40)]
        found.append(
            f"threads: {number}  {name:20}  the last value is there: {min(same)} to {max(same)} of 100"
        )
torch.set_num_threads(threads)
guessed("of 100 places, the fewest that hold the last value", guess, float(min(same)), *found)

# %% [markdown]
# With one thread the last value stays. With four, `data[index] = values` lets each of them write its part of the
# values, and whoever comes later wins: look at the last line. (If it shows nothing but 100, run the cell again.
# That is the point.) `scatter` shows nothing but 100 here, with four threads as with one. None of it is a promise. The
# documentation says: for `scatter`, one of the values is picked arbitrarily; for `index_put_` (which is
# `data[index] = values`), the behaviour is undefined. On a GPU thousands of threads write at once.
#
# The documentation also says that the gradient will be wrong. Three values go to place 1. Only one of them
# is in the result, so only one of them should get a gradient:

# %%
rivals = torch.tensor([5.0, 6.0, 7.0], requires_grad=True)
place = torch.tensor([1, 1, 1])
result = torch.zeros(3).scatter(0, place, rivals)
(to_rivals,) = torch.autograd.grad(result.sum(), rivals)
print("result", result.tolist(), " gradients", to_rivals.tolist())
assert result.count_nonzero() == 1
behaviour(
    "C11",
    "In one and in two dimensions scatter gives what the plain Python loop gives.",
    in_one_dimension and torch.equal(down, down_by_hand) and torch.equal(along, along_by_hand),
    when="no place occurs twice",
)
behaviour(
    "C11",
    "Of three values for one place, the one that is there gets the gradient.",
    to_rivals.count_nonzero() == 1,
    unless="no place occurs twice",
)

# %% [markdown]
# Now we count, with `count[place] += 1`. Place 1 occurs three times, and its count starts at 0. What will it be?

# %%
guess = ...

# %%
count = torch.zeros(3)
count[place] += 1
guessed("the count of place 1", guess, int(count[1]), f"{place.tolist()} counted: {count.tolist()}")

# %% [markdown]
# The line reads the three counts (all 0), adds 1 to each, and writes the three results to the same place. If you
# mean a sum, say so. Three functions do, and duplicates are their purpose. (If you mean "the newest one", say
# that, too: it is an exercise.)

# %%
print("scatter_add", torch.zeros(3).scatter_add(0, place, torch.ones(3)).tolist())
print("index_add  ", torch.zeros(3).index_add(0, place, torch.ones(3)).tolist())
print("index_put  ", torch.zeros(3).index_put((place,), torch.ones(3), accumulate=True).tolist())
(to_rivals,) = torch.autograd.grad(torch.zeros(3).scatter_add(0, place, rivals).sum(), rivals)
assert to_rivals.tolist() == [1, 1, 1], "here it is right: each of the three is in the sum"
index, values = torch.tensor([4, 1, 1, 1]), torch.tensor([10.0, 20.0, 30.0, 40.0])
picture(*draw_moves(scattered(torch.zeros(6), index, values), added(torch.zeros(6), index, values)))

# %% [markdown]
# ## 9. Groups
#
# 50,000 numbers belong to 1,000 groups, and we want the sum of each group. The usual first draft makes one
# mask for each group. The other way is one `scatter_add`. What does it save most: `"calls"`, `"bytes"` or `"arithmetic"`?

# %%
guess = ...


# %%
def sums_with_masks(values, groups):
    return torch.stack([values[groups == group].sum() for group in range(1000)])


def sums_at_once(values, groups):
    return values.new_zeros(1000).scatter_add(0, groups, values)


compare(
    "50,000 numbers, 1,000 sums",
    {"one mask per group": sums_with_masks, "scatter_add": sums_at_once},
    inputs=in_groups(1000, 50_000),
    guess=guess,
    because="prices",
)

# %%
values, groups = torch.rand(50_000), torch.randint(1000, (50_000,))
print(costs(sums_with_masks, values, groups), end="\n\n")
print(costs(sums_at_once, values, groups))

# %% [markdown]
# **Why.** Every mask looks at all 50,000 group numbers, 8 bytes each: 1,000 masks read 400 MB to add up 200 kB of
# numbers. On a GPU there are 1,000 syncs besides. `scatter_add` looks at each number once. (Measured is more: a
# comparison and a mask take several times as long as to read their bytes.)
#
# ### Whole rows
#
# Now 10,000 rows with 64 numbers each, in 1,000 groups. There is a way with a matrix product: a one-hot table,
# transposed, times the rows. `scatter_add` wants an index of the shape of the rows: repeated, or expanded as a
# view. And `index_add` wants one number for each row. How many times as fast is the last as the first?

# %%
guess = ...


# %%
def rows_by_product(rows, groups):
    return F.one_hot(groups, 1000).to(rows.dtype).T @ rows


def rows_by_scatter(rows, groups):
    wide = groups[:, None].repeat(1, rows.shape[1])
    return rows.new_zeros(1000, rows.shape[1]).scatter_add(0, wide, rows)


def rows_by_scatter_view(rows, groups):
    wide = groups[:, None].expand(-1, rows.shape[1])
    return rows.new_zeros(1000, rows.shape[1]).scatter_add(0, wide, rows)


def rows_by_index(rows, groups):
    return rows.new_zeros(1000, rows.shape[1]).index_add(0, groups, rows)


compare(
    "10,000 rows of 64, 1,000 sums of rows",
    {
        "one-hot, then @": rows_by_product,
        "scatter_add, index repeated": rows_by_scatter,
        "scatter_add, index expanded": rows_by_scatter_view,
        "index_add": rows_by_index,
    },
    inputs=in_groups(1000, 10_000, 64),
    guess=guess,
    bytes=2.9e6,
    because="prices",
)

# %%
rows, groups = torch.rand(10_000, 64), torch.randint(1000, (10_000,))
for function in (rows_by_product, rows_by_scatter, rows_by_scatter_view, rows_by_index):
    print(f"{function.__name__}:", costs(function, rows, groups), sep="\n", end="\n\n")

# %% [markdown]
# **Why.** 640,000 additions are needed. The matrix product does a thousand times that, most of it with
# zeros, and its table has 10 million entries, 80 MB as `int64` and 40 MB more as `float32`. The repeated
# index is 5 MB of numbers that say the same 64 times. `expand` gives `scatter_add` a view of the same 10,000
# numbers: no copy. `index_add` takes these 10,000 as they are, and is about as fast. (With rows of 4 numbers it may not:
# time both.) The limit: 2.56 MB of rows and 0.08 MB of groups are read, 0.26 MB of sums written, once. Two syncs stand
# in the first count: on a CPU, `one_hot` reads the smallest and largest label. On a GPU, with classes given, it does not.
#
# ### Other than sums
#
# `scatter_reduce` knows `"sum"`, `"mean"`, `"prod"`, `"amax"` and `"amin"`. One thing to watch: the data
# you scatter into takes part, unless you say no. Zeros are harmless in a sum. In a maximum they are not:

# %%
group, negative = torch.tensor([0, 0, 2]), torch.tensor([-5.0, -3.0, -4.0])
with_zeros = torch.zeros(3).scatter_reduce(0, group, negative, "amax")
alone = torch.zeros(3).scatter_reduce(0, group, negative, "amax", include_self=False)
print("include_self=True: ", with_zeros.tolist(), "\ninclude_self=False:", alone.tolist())
assert with_zeros.tolist() == [0, 0, 0] and alone.tolist() == [-3, 0, -4]

# %% [markdown]
# Group 1 is empty. It keeps what was there before, so start with a value that you will recognise.
#
# ### The members of each group
#
# Sometimes one number for a group is not enough: we want to know who is in it. 20,000 labels, 1,000 groups. One
# way asks each group for its members. The other **sorts** the labels: then members of a group stand beside each
# other, and `split` cuts the list into pieces. How many times as fast is it?

# %%
guess = ...


# %%
def members_by_mask(labels):
    return [(labels == group).nonzero()[:, 0] for group in range(1000)]


def members_by_sorting(labels):
    counts = torch.bincount(labels, minlength=1000)
    return list(labels.argsort(stable=True).split(counts.tolist()))


compare(
    "the members of each of 1,000 groups, 20,000 labels",
    {"one mask per group": members_by_mask, "argsort and split": members_by_sorting},
    inputs=whole_numbers(1000, 20_000),
    guess=guess,
)

# %% [markdown]
# A small example shows the two numbers to remember of each group: where it *starts* in the sorted order, and how
# many members it has. `stable=True` promises that equal labels stay in the order in which they were. The list of
# lengths for `split` makes the host wait, and so does `bincount` (section 4); `scatter_add` and `cumsum` do not.

# %%
labels = torch.tensor([2, 0, 2, 1, 0, 2])
order = labels.argsort(stable=True)
counts = torch.zeros(3, dtype=torch.int64).scatter_add(0, labels, torch.ones_like(labels))
starts = counts.cumsum(0) - counts
print("syncs of the way with split:", costs(members_by_sorting, labels).syncs)
print("order ", order.tolist(), "\nlabels", labels[order].tolist())
print("starts", starts.tolist(), "\ncounts", counts.tolist())
assert order[starts[2] : starts[2] + counts[2]].tolist() == (labels == 2).nonzero()[:, 0].tolist()

# %% [markdown]
# ## 10. Counting, and one-hot tables
#
# A histogram counts how often each number occurs: a sum by group in which every value is 1. We have 20,000
# numbers from 0 to 255. How many times as fast is `bincount` as one comparison for each of the 256 bins?

# %%
guess = ...


# %%
compare(
    "256 bins, 20,000 numbers",
    {
        "one comparison per bin": lambda numbers: torch.stack([(numbers == i).sum() for i in range(256)]),
        "scatter_add of ones": lambda numbers: numbers.new_zeros(256).scatter_add(
            0, numbers, torch.ones_like(numbers)
        ),
        "bincount": lambda numbers: torch.bincount(numbers, minlength=256),
    },
    inputs=whole_numbers(256, 20_000),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Neither looks at the numbers 256 times. (Predicted is more: counting takes a step for each number, and only
# its bytes are priced. `numbers.sum()` reads the same, many times faster.) `bincount` is shorter to write, but waits
# (section 4). `scatter_add` of ones does not, and was the faster one on the CPUs that we measured, and on an H200 (31 to 67 µs).
#
# ### One-hot
#
# `F.one_hot(labels, classes)` or `scatter_` makes a table with a single 1 in each row. Before you make one:
# what will happen to it? Most often it is multiplied by something, to pick one entry of each row. 1,024
# rows with 1,000 log-probabilities each; we want the one of the label. How many times as fast is `gather`?

# %%
guess = ...


# %%
def rows_and_labels(generator, device):
    rows = torch.randn(1024, 1000, generator=generator).to(device)
    return rows, torch.randint(1000, (1024,), generator=generator).to(device)


compare(
    "one of 1,000 numbers, in 1,024 rows",
    {
        "one_hot * x, summed": lambda x, labels: (F.one_hot(labels, 1000) * x).sum(dim=1),
        "gather": lambda x, labels: x.gather(1, labels[:, None])[:, 0],
    },
    inputs=rows_and_labels,
    guess=guess,
)

# %%
x, labels = torch.randn(1024, 1000), torch.randint(1000, (1024,))
print(costs(lambda: (F.one_hot(labels, 1000) * x).sum(dim=1)), end="\n\n")
print(costs(lambda: x.gather(1, labels[:, None])[:, 0]))
weights = torch.randn(1000, 8)
assert torch.equal(F.one_hot(labels, 1000).float() @ weights, weights[labels])

# %% [markdown]
# A million products for 1,024 numbers. One-hot rows *times a matrix* are the same mistake: `weights[labels]` picks
# the same rows (the last line), as `nn.Embedding` does.

# %% [markdown]
# ## Further
#
# You can skip this part. It is for those who found `where` or `scatter_add` in a profile, who hunt a NaN in a large
# model, or who want to see the article's own code run.
#
# ### The article's own code


# %%
def article_selects():
    data = torch.rand((3, 3)).requires_grad_()
    mask = data > data.mean()
    return torch.masked_select(data, mask), data[mask], data * mask


article_code(
    "C9",
    "masked_select, data[mask] and data * mask, for what is above the mean of 3 × 3 numbers",
    article_selects,
    right=lambda results: (
        torch.equal(results[0], results[1])
        and results[0].sum().isclose(results[2].sum())
        and all(result.requires_grad for result in results)
    ),
)


def article_joins():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], requires_grad=True)
    y = -x
    return torch.where(x <= 3.0, x, y)


article_code(
    "C10",
    "where joins x and -x",
    article_joins,
    right=lambda result: result.tolist() == [1, 2, 3, -4, -5] and result.requires_grad,
)


def article_scatters():
    data, values = torch.tensor([1, 2, 3, 4, 5]), torch.tensor([-1, -2, -3, -4, -5])
    return [data.scatter(0, torch.tensor(index), values).tolist() for index in ([0, 1], [0, 1, 4])]


article_code(
    "C11",
    "five values, and two or three places for them",
    article_scatters,
    right=lambda results: results == [[-1, -2, 3, 4, 5], [-1, -2, 3, 4, -3]],
)

# %% [markdown]
# One sentence of the article has `scatter` the other way round: "the index says at which position of `values` the
# *i*-th number of `data` should be put". Its code is right. But the last example does not say that values are
# missing: five values, two or three places. What do `scatter` and its relatives refuse, and what do they let pass?

# %%
zeros = torch.zeros(4)
attempts = {
    "a place that does not exist": lambda: zeros.scatter(0, torch.tensor([4]), torch.ones(1)),
    "a negative place": lambda: zeros.scatter(0, torch.tensor([-1]), torch.ones(1)),
    "a negative one, index_add": lambda: zeros.index_add(0, torch.tensor([-1]), torch.ones(1)),
    "a negative one, scatter_reduce": lambda: zeros.scatter_reduce(
        0, torch.tensor([-1]), torch.ones(1), "amax"
    ),
    "the same as zeros[[-1]] = 1": lambda: zeros.index_put((torch.tensor([-1]),), torch.ones(1)),
    "int64 values into float32 data": lambda: zeros.scatter(0, torch.tensor([1]), torch.tensor([1])),
    "a row of places for a table": lambda: torch.zeros(2, 4).scatter(1, torch.tensor([1, 2]), torch.ones(2)),
    "more values than places": lambda: zeros.scatter(0, torch.tensor([1]), torch.tensor([5.0, 6.0])),
}
outcome = {}
for attempt, call in attempts.items():
    try:
        outcome[attempt] = str(call().tolist())
    except (RuntimeError, IndexError) as error:
        outcome[attempt] = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
    print(f"{attempt:31} {outcome[attempt]}")

# %% [markdown]
# The last line is the dangerous one: the second value was dropped without a word, as in the article's example.
# Autograd does notice:

# %%
too_many = torch.ones(2, requires_grad=True)
try:
    zeros.scatter(0, torch.tensor([1]), too_many).sum().backward()
    trains = True
except RuntimeError as error:
    trains = False
    print(error)
assert not trains
assert outcome["more values than places"] == "[0.0, 5.0, 0.0, 0.0]"
assert all("Error" in outcome[attempt] for attempt in list(attempts) if attempt.startswith("a "))

# %% [markdown]
# ### A mask of fewer dimensions
#
# `masked_select` broadcasts the mask. An index does not; a mask with fewer dimensions chooses whole rows.

# %%
data, column_mask = torch.arange(6.0).view(2, 3), torch.tensor([True, False, True])
print("masked_select:", torch.masked_select(data, column_mask).tolist())
try:
    data[column_mask]
except IndexError as error:
    print("data[column_mask]:", error)
print("data[row_mask]:", data[torch.tensor([False, True])].tolist())

# %% [markdown]
# ### NaN in a large model
#
# How do you find the place that section 6 is about? Anomaly detection stops at the first function that sends NaN back.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns that it is slow
    try:
        with torch.autograd.detect_anomaly():
            leaking_root(torch.tensor([4.0, 0.0], requires_grad=True)).sum().backward()
    except RuntimeError as error:
        print(error)

# %% [markdown]
# What does the cure cost? Root and gradient of 200,000 numbers, a tenth of them 0. How many times as fast is
# the double `where` as selecting first and putting back?

# %%
guess = ...


# %%
def select_root(x):
    x.requires_grad_()
    places = (x > 0).nonzero()[:, 0]
    result = torch.zeros_like(x).index_put((places,), x[places].sqrt())
    return torch.autograd.grad(result.sum(), x)[0]


def clamped_root(x):
    x.requires_grad_()
    return torch.autograd.grad(x.clamp(min=1e-12).sqrt().sum(), x)[0]


def double_where_root(x):
    x.requires_grad_()
    positive = x > 0
    result = torch.where(positive, torch.where(positive, x, 1.0).sqrt(), 0.0)
    return torch.autograd.grad(result.sum(), x)[0]


def numbers_with_zeros(generator, device):
    return (torch.rand(200_000, generator=generator) - 0.1).clamp(min=0).to(device)


compare(
    "a root and its gradient, 200,000 numbers with zeros",
    {"select, put back": select_root, "clamp": clamped_root, "double where": double_where_root},
    inputs=numbers_with_zeros,
    guess=guess,
)

# %% [markdown]
# `clamp` is the cheapest, if its little error at 0 does not hurt. Of the two exact ways, the table says
# which one is faster here. On a GPU, `where` has no sync: on an H200 it took half the time.

# %% [markdown]
# ### Groups that are in order
#
# 1,000 groups of 1,000 numbers, one group after the other. Then a view with 1,000 rows will do, too. How many times
# as fast is it as `scatter_add`?

# %%
guess = ...


# %%
def values_and_groups_in_order(generator, device):
    values = torch.rand(1_000_000, generator=generator).to(device)
    return values, torch.arange(1000).repeat_interleave(1000).to(device)


compare(
    "1,000 groups of 1,000 numbers, in order",
    {
        "scatter_add": lambda values, groups: values.new_zeros(1000).scatter_add(0, groups, values),
        "view(1000, 1000).sum(1)": lambda values, groups: values.view(1000, 1000).sum(1),
    },
    inputs=values_and_groups_in_order,
    guess=guess,
    bytes=4e6,
)

# %% [markdown]
# The view reads 4 MB, with several additions at a time. `scatter_add` reads 8 MB of index besides, and
# every addition to a group has to wait for the one before it.

# %% [markdown]
# ### An old trick
#
# One of two tensors, the old way: `condition * a + ~condition * b`. It is four operations, and `where` is one. How
# many times as fast as the trick is `where`? The condition is shuffled.

# %%
guess = ...


# %%
def two_tensors(generator, device):
    condition, a, b = torch.rand(3, 1_000_000, generator=generator)
    return (condition < 0.5).to(device), a.to(device), b.to(device)


compare(
    "1,000,000 numbers from two tensors",
    {
        "c * a + ~c * b": lambda condition, a, b: condition * a + ~condition * b,
        "torch.where": torch.where,
    },
    inputs=two_tensors,
    guess=guess,
)

# %%
condition, a, b = two_tensors(torch.Generator(), "cpu")
for function in (lambda c, a, b: c * a + ~c * b, torch.where):
    print(costs(function, condition, a, b), end="\n\n")
for order, chosen in (("shuffled", condition), ("ordered", condition.sort().values)):
    print(f"where, {order} condition: {best_time(torch.where, chosen, a, b):.2f} ms")
assert (True * torch.tensor(2.0) + False * torch.tensor(torch.inf)).isnan()

# %% [markdown]
# The trick moves two to three times the bytes, so it should be slower. On an H200 it is: four launches against one.
# Where it is not, the reason is the shuffled condition: compare the two times of `where`. Still, prefer `where`: with
# one infinite number the trick gives NaN, as in section 3 (the last line of code). Use the trick only if a profile says
# that `where` matters, and if all numbers are finite.
#
# ### A choice that has a name
#
# "The larger of two" is `torch.maximum`. Others are `clamp`, `relu`, `abs`. How many times as fast as `where` is the name?

# %%
guess = ...


# %%
def two_rows(generator, device):
    return tuple(torch.rand(2, 1_000_000, generator=generator).to(device))


compare(
    "the larger of two, 1,000,000 times",
    {
        "where(a > b, a, b)": lambda a, b: torch.where(a > b, a, b),
        "torch.maximum": torch.maximum,
    },
    inputs=two_rows,
    guess=guess,
    bytes=12e6,
)

# %% [markdown]
# `maximum` is one pass, with instructions that compute several maxima at once. `where` needs a mask first, and
# then decides one by one. (The limit: two tensors are read, one is written.)
#
# ### Other histograms
#
# For two dimensions, make one number out of two: `row * columns + column`. The result is a table after a `view`.

# %%
across, up = torch.randint(4, (1000,)), torch.randint(3, (1000,))
table = torch.bincount(up * 4 + across, minlength=12).view(3, 4)
print(table)
assert all(table[i, j] == ((up == i) & (across == j)).sum() for i in range(3) for j in range(4))

# %% [markdown]
# For floating-point numbers in bins of equal width, `torch.histc` does the binning as well. Its result has
# a known length, so it does not wait:

# %%
uniform = torch.rand(1000)
assert torch.equal(torch.histc(uniform, 4, 0, 1), torch.bincount((uniform * 4).long(), minlength=4).float())
print("syncs:", costs(torch.histc, uniform, 4, 0, 1).syncs)

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** count passes, calls and syncs, and predict from them. Each row takes one away. Verify the
# values, and the gradients where nobody chose.
#
# | you want | use | because |
# |---|---|---|
# | a sum or a mean of some numbers | `x * mask` and two sums, if all numbers are finite; else `where(mask, x, 0)` | known size, no sync; on a CPU the product is the fast one |
# | the chosen values themselves | `x[mask]`, `masked_select` | a sync on a GPU; on a CPU slowest if the mask is shuffled and half of it is true |
# | one of two values | `where`; or the name: `maximum`, `clamp`, … | `where` computes both branches |
# | a costly function of a few | `nonzero`, compute, `index_put` | pays on a CPU if the function is expensive and the few are few |
# | `where` with gradients | a double `where` | 0 times an infinite derivative is NaN |
# | to write to given places | `scatter_`, `data[index] = values` | one operation; each place only once |
# | several values for one place | `scatter_add`, `index_add`, `scatter_reduce` | with `scatter` nobody knows who wins, and the gradient is wrong |
# | sums of rows by group | `index_add`, or `scatter_add` with an expanded index | one number a row; no one-hot table |
# | the members of each group | `argsort(stable=True)`, counts, starts | one sort for all groups |
# | counts | `scatter_add` of ones; `bincount` is shorter, with a sync | not one pass for each bin |
# | one entry of each row | `gather` | a one-hot table only to pick from is waste |

# %%
verdicts("C9", "C10", "C11")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/10_selection/10_selection.ipynb). Five
# functions, given slow; make them right and fast.
