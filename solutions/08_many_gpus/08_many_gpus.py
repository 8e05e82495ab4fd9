# %% [markdown]
# # Exercises 08 · Many GPUs
#
# Five functions, in four exercises, that run inside every data-parallel program. Each is given in a slow
# version that is right. No second process is needed: your functions get what every rank has, and you write
# what the ranks do with it.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden
# tests run when your notebook is graded: other shapes, other types, other random numbers. If a hidden test
# finds a wrong answer, the race of that function gives no points either.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution
# cell. The chapter is [here](../../course/08_many_gpus.ipynb). 29 points, about 60 minutes.

# %% id="setup" role="given"
import io
import pickle
from pathlib import PurePosixPath

import torch

from autograder import check, race

# %% [markdown]
# ## 1. Parts of unequal size
#
# *Easy, 12 minutes.* Each rank has computed the gradients of its *mean* loss over its own samples. The last
# batch is uneven: the ranks had different numbers of samples. Write `average_gradients(gradients, counts)`,
# which gives the gradients that one process would get for the mean loss over *all* samples.
#
# - `gradients`: list with one entry for each rank. An entry is a list of floating-point tensors, one for
#   each parameter; shapes and types are the same on all ranks. All are on the same device.
# - `counts`: list of Python integers, the number of samples of each rank, 0 or more.
# - returns: list of tensors, one for each parameter, with its shape, type and device.
# - A rank with a count of 0 has computed the mean of nothing. Whatever its gradients hold, `nan` included,
#   must not matter.
# - If all counts are 0, raise `ValueError`. The given tensors must not be changed.


# %% id="average_gradients_given" role="given"
def average_gradients_slow(gradients, counts):
    if sum(counts) == 0:
        raise ValueError("no rank has a sample")
    averages = []
    for i in range(len(gradients[0])):
        total = torch.zeros_like(gradients[0][i])
        for rank in range(len(counts)):
            for _ in range(counts[rank]):  # each sample has one say
                total += gradients[rank][i]
        averages.append(total / sum(counts))
    return averages


def uneven_ranks(generator, device):
    counts = torch.randint(20, 60, (3,), generator=generator).tolist()
    shapes = [(16, 16), (16,)] * 8
    ranks = [[torch.randn(shape, generator=generator).to(device) for shape in shapes] for _ in counts]
    return ranks, counts


def no_samples(generator, device):
    return [[torch.zeros(3, device=device)], [torch.ones(3, device=device)]], [0, 0]


# %% [markdown]
# <details><summary>Hint 1</summary>Adding a tensor 20 times is one multiplication.</details>
# <details><summary>Hint 2</summary>Each rank's gradients have one weight, a Python number, the same for all
# its tensors. The weights of all ranks add up to 1.</details>
# <details><summary>Hint 3</summary>0 times <code>nan</code> is <code>nan</code>. And <code>add_</code> takes
# a factor: <code>alpha</code>.</details>


# %% id="average_gradients" role="answer"
def average_gradients(gradients, counts):
    ### BEGIN SOLUTION
    samples = sum(counts)
    if samples == 0:
        raise ValueError("no rank has a sample")
    ranks = [(tensors, count / samples) for tensors, count in zip(gradients, counts, strict=True) if count]
    (first, weight), *others = ranks
    averages = [tensor * weight for tensor in first]
    for tensors, weight in others:
        for average, tensor in zip(averages, tensors, strict=True):
            average.add_(tensor, alpha=weight)
    return averages
    ### END SOLUTION


# %% id="average_gradients_check" role="test"
check(average_gradients, like=average_gradients_slow, on=uneven_ranks, points=2)

# %% id="average_gradients_empty" role="test"
check(average_gradients, like=average_gradients_slow, on=no_samples, raises=ValueError, points=1)


# %% id="average_gradients_hidden" role="test"
# Hidden test: ranks without samples, a single rank, other shapes and types.
# 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def rank_without_samples(generator, device):
    full = [
        torch.randn(4, 3, generator=generator).to(device),
        torch.randn((), generator=generator).to(device),
    ]
    empty = [torch.full_like(tensor, float("nan")) for tensor in full]
    return [empty, full, [tensor + 1 for tensor in full], empty], [0, 5, 2, 0]


def single_rank(generator, device):
    return [[torch.randn(7, generator=generator).to(device), torch.zeros(0, 2, device=device)]], [3]


def double_precision(generator, device):
    ranks = [[torch.randn(2, 3, 4, 5, generator=generator).double().to(device)] for _ in range(5)]
    return ranks, [1, 2, 3, 4, 50]


check(
    average_gradients,
    like=average_gradients_slow,
    on=[rank_without_samples, single_rank, double_precision],
    points=2,
)
### END HIDDEN TESTS

# %% id="average_gradients_race" role="test"
race(
    average_gradients,
    against=average_gradients_slow,
    on=uneven_ranks,
    at_least={"cpu": 4, "cuda": 4},
    points=2,
)

# %% [markdown]
# ## 2. One bucket
#
# *Hard, 20 minutes.* The ranks must average their gradients, and may talk to each other only through the
# given `all_reduce`. It is a real ring, played in one process: in each step, every rank passes one piece of
# its tensor to its neighbour. Like the real one it has a price for every call, however small the tensors
# are. Write `all_reduce_gradients(ranks)`, which calls it as seldom as possible.
#
# - `ranks`: list with one entry for each rank, at least one. An entry is a list of floating-point tensors,
#   one for each parameter; shapes and types are the same on all ranks, all on the same device. Parameters
#   may have different types.
# - returns: list of tensors, one for each parameter: the mean over the ranks, with the parameter's shape,
#   type and device.
# - `all_reduce(buffers)` takes a list of tensors of one dimension, one for each rank, all of the same length
#   and type. It *changes* them: afterwards each holds the sum.
# - If the ranks do not have the same number of gradients, raise `ValueError` (in a real program they would
#   wait for each other for ever). The given tensors must not be changed.


# %% id="all_reduce_gradients_given" role="given"
def all_reduce(buffers):
    n = len(buffers)
    pieces = [buffer.tensor_split(n) for buffer in buffers]  # views: piece i of each rank
    for step in range(n - 1):  # add up
        for rank in range(n):
            i = (rank - step) % n
            pieces[(rank + 1) % n][i].add_(pieces[rank][i])
    for step in range(n - 1):  # hand the sums round
        for rank in range(n):
            i = (rank + 1 - step) % n
            pieces[(rank + 1) % n][i].copy_(pieces[rank][i])


def all_reduce_gradients_slow(ranks):
    if any(len(gradients) != len(ranks[0]) for gradients in ranks):
        raise ValueError("the ranks have different numbers of gradients")
    averages = []
    for i in range(len(ranks[0])):
        buffers = [gradients[i].flatten().clone() for gradients in ranks]
        all_reduce(buffers)
        averages.append((buffers[0] / len(ranks)).view(ranks[0][i].shape))
    return averages


def six_ranks(generator, device):
    shapes = [(8, 16), (16,)] * 12
    return ([[torch.randn(shape, generator=generator).to(device) for shape in shapes] for _ in range(6)],)


def missing_gradient(generator, device):
    return ([[torch.ones(2, device=device)] * 3, [torch.ones(2, device=device)] * 2],)


# %% [markdown]
# <details><summary>Hint 1</summary>Put all gradients of a rank one after the other into one long tensor.
# Every rank does it in the same order.</details>
# <details><summary>Hint 2</summary><code>torch.cat</code> makes the long tensor (and it is a copy, so the
# ring may change it). <code>split</code> takes a list of lengths and cuts it up again; its parts are
# views.</details>
# <details><summary>Hint 3</summary><code>torch.cat</code> of <code>float32</code> and <code>float64</code>
# gives <code>float64</code>. So make one bucket for each type, and remember which gradient went into
# which.</details>


# %% id="all_reduce_gradients" role="answer"
def all_reduce_gradients(ranks):
    ### BEGIN SOLUTION
    first = ranks[0]
    if any(len(gradients) != len(first) for gradients in ranks):
        raise ValueError("the ranks have different numbers of gradients")
    members = {}
    for i, gradient in enumerate(first):
        members.setdefault(gradient.dtype, []).append(i)
    averages = [None] * len(first)
    for indices in members.values():
        buckets = [torch.cat([gradients[i].flatten() for i in indices]) for gradients in ranks]
        all_reduce(buckets)
        parts = (buckets[0] / len(ranks)).split([first[i].numel() for i in indices])
        for i, part in zip(indices, parts, strict=True):
            averages[i] = part.view(first[i].shape)
    return averages
    ### END SOLUTION


# %% id="all_reduce_gradients_check" role="test"
check(all_reduce_gradients, like=all_reduce_gradients_slow, on=six_ranks, points=2)

# %% id="all_reduce_gradients_missing" role="test"
check(
    all_reduce_gradients,
    like=all_reduce_gradients_slow,
    on=missing_gradient,
    raises=ValueError,
    points=1,
)


# %% id="all_reduce_gradients_hidden" role="test"
# Hidden test: one rank, many ranks, scalars and empty tensors, mixed types.
# 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_rank(generator, device):
    return (
        [[torch.randn(3, 2, generator=generator).to(device), torch.randn(5, generator=generator).to(device)]],
    )


def odd_shapes(generator, device):
    shapes = [(), (0,), (1, 1, 1), (2, 0), (2, 3, 4, 5)]
    return ([[torch.randn(shape, generator=generator).to(device) for shape in shapes] for _ in range(5)],)


def mixed_types(generator, device):
    types = [torch.float64, torch.float32, torch.float64, torch.float32]
    return (
        [
            [torch.randn(3, i + 1, generator=generator).to(device, t) for i, t in enumerate(types)]
            for _ in range(2)
        ],
    )


check(
    all_reduce_gradients,
    like=all_reduce_gradients_slow,
    on=[one_rank, odd_shapes, mixed_types],
    points=2,
)
### END HIDDEN TESTS

# %% id="all_reduce_gradients_race" role="test"
race(
    all_reduce_gradients,
    against=all_reduce_gradients_slow,
    on=six_ranks,
    at_least={"cpu": 2.5, "cuda": 2.5},
    points=3,
)

# %% [markdown]
# ## 3. Which samples are mine?
#
# *Medium, 15 minutes.* Write `indices_of_rank(length, ranks, rank, seed, epoch, drop_last)`: the samples
# that a rank works on in an epoch.
#
# - `length`, `ranks`, `rank`, `seed`, `epoch`: Python integers; at least one rank; `length` may be 0.
# - The samples 0 to `length - 1` are shuffled with `torch.randperm` and a CPU generator whose seed is the sum
#   of `seed` and `epoch`: all ranks shuffle alike. Then they are dealt like cards: the first to rank 0, the
#   second to rank 1, and so on.
# - All ranks get the same number. With `drop_last` the cards left over at the end are not dealt; with fewer
#   samples than ranks nobody gets a card, and the tensor is empty. Without it, the dealing goes on with the
#   shuffled samples from their beginning until all hands are equally long; that may be more than once
#   around, if there are few samples.
# - returns: `int64` CPU tensor of one dimension, the rank's samples in the order in which they were dealt.
# - A `rank` outside 0 to `ranks - 1` must raise `ValueError`.


# %% id="indices_of_rank_given" role="given"
def indices_of_rank_slow(length, ranks, rank, seed, epoch, drop_last):
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} is not in 0 to {ranks - 1}")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    dealt = length // ranks * ranks if drop_last else (length + ranks - 1) // ranks * ranks
    mine = []
    for card in range(dealt):
        if card % ranks == rank:
            mine.append(order[card % length].item())
    return torch.tensor(mine, dtype=torch.int64)


def some_epoch(generator, device):
    seed, epoch, rank = torch.randint(4, (3,), generator=generator).tolist()
    length = int(torch.randint(6000, 7000, (), generator=generator))
    return length, 4, rank, 1000 * seed, epoch, False


def leave_out(generator, device):
    return int(torch.randint(20, 40, (), generator=generator)), 7, 2, 5, 1, True


def rank_too_large(generator, device):
    return 10, 4, 4, 0, 0, False


def negative_rank(generator, device):
    return 10, 4, -1, 0, 0, False


# %% [markdown]
# <details><summary>Hint 1</summary>Every fourth card, from the second one on, is a slice with a
# step.</details>
# <details><summary>Hint 2</summary>First make the row of all cards that are dealt: cut it off, or make it
# longer. Then take the slice.</details>
# <details><summary>Hint 3</summary>One sample and four ranks: the row is four times the same sample. Indices
# modulo <code>length</code> do that, or <code>repeat</code>. With <code>drop_last</code> the same row is
# empty. Mind a <code>length</code> of 0.</details>


# %% id="indices_of_rank" role="answer"
def indices_of_rank(length, ranks, rank, seed, epoch, drop_last):
    ### BEGIN SOLUTION
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} is not in 0 to {ranks - 1}")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    each = length // ranks if drop_last else -(-length // ranks)
    cards = rank + ranks * torch.arange(each)
    return order[cards % max(length, 1)]
    ### END SOLUTION


# %% id="indices_of_rank_check" role="test"
check(indices_of_rank, like=indices_of_rank_slow, on=[some_epoch, leave_out], points=2)

# %% id="indices_of_rank_range" role="test"
check(
    indices_of_rank,
    like=indices_of_rank_slow,
    on=[rank_too_large, negative_rank],
    raises=ValueError,
    points=1,
)


# %% id="indices_of_rank_hidden" role="test"
# Hidden test: few samples, no samples, one rank, lengths that come out even.
# 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def fewer_samples_than_ranks(generator, device):
    return int(torch.randint(1, 4, (), generator=generator)), 11, 9, 3, 2, False


def nothing_left(generator, device):
    return 3, 5, 1, 3, 2, True


def no_samples_at_all(generator, device):
    return 0, 2, 1, 0, 0, False


def only_rank(generator, device):
    return 13, 1, 0, 9, int(torch.randint(100, (), generator=generator)), False


def comes_out_even(generator, device):
    return (
        24,
        6,
        int(torch.randint(6, (), generator=generator)),
        1,
        1,
        bool(torch.rand((), generator=generator) < 0.5),
    )


check(
    indices_of_rank,
    like=indices_of_rank_slow,
    on=[fewer_samples_than_ranks, nothing_left, no_samples_at_all, only_rank, comes_out_even],
    points=2,
)
### END HIDDEN TESTS

# %% id="indices_of_rank_race" role="test"
race(indices_of_rank, against=indices_of_rank_slow, on=some_epoch, at_least={"cpu": 4}, points=2)

# %% [markdown]
# ## 4. Save on one rank, resume anywhere
#
# *Medium, 15 minutes.* Write two functions, in one cell.
#
# `snapshot(state, rank)` is called on every rank. It takes a copy of the model, which another thread may
# write to a file while the training goes on.
#
# - `state`: dict from names to tensors on any device, the `state_dict` of a model. If the model is wrapped
#   in DDP, *every* name begins with `module.`.
# - returns: on rank 0 a dict from names without that prefix to CPU tensors with memory of their own. On
#   every other rank `None`, without any work.
#
# `resume(data, wrapped)` reads a file.
#
# - `data`: the bytes of a file that `torch.save` wrote: such a dict, with the prefix or without. `wrapped`:
#   `True` if the model that will load it is wrapped in DDP.
# - returns: dict from names to CPU tensors; every name with one prefix if `wrapped`, without it if not.
# - A file from elsewhere may hold Python objects that run code when they are loaded. A file with anything
#   but tensors and plain containers must raise `ValueError`.
#
# A model may have a submodule that is itself called `module`. If every name begins with `module.`, take it
# for the prefix and remove it once. If one name does not, there is no prefix. So `head.module.weight` keeps
# its `module`.


# %% id="snapshot_given" role="given"
def snapshot_slow(state, rank):
    file = io.BytesIO()
    torch.save(state, file)
    copy = resume_slow(file.getvalue(), False)
    return copy if rank == 0 else None


def resume_slow(data, wrapped):
    try:
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError("the file holds more than weights") from error
    if state and all(name.startswith("module.") for name in state):
        state = {name.removeprefix("module."): tensor for name, tensor in state.items()}
    return {f"module.{name}" if wrapped else name: tensor for name, tensor in state.items()}


def wrapped_state(generator, device):
    names = [f"module.{i}.{kind}" for i in range(25) for kind in ("weight", "bias")]
    return {name: torch.randn(32, generator=generator).to(device) for name in names}, 0


def other_rank(generator, device):
    state, _ = wrapped_state(generator, device)
    return state, 1 + int(torch.randint(5, (), generator=generator))


def saved_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def old_file(generator, device):
    return saved_file(
        {"module.weight": torch.randn(3, generator=generator), "module.bias": torch.zeros(1)}
    ), False


def file_for_ddp(generator, device):
    return saved_file({"weight": torch.randn(3, generator=generator), "bias": torch.zeros(1)}), True


def foreign_file(generator, device):
    return saved_file({"weight": torch.zeros(2), "folder": PurePosixPath("somewhere")}), False


# %% [markdown]
# <details><summary>Hint 1</summary>Nobody wants a file here, only copies. Which methods copy a tensor, also
# to another device? <code>.cpu()</code> of a CPU tensor does not.</details>
# <details><summary>Hint 2</summary>The prefix stands only at the beginning of a name, and it is there for
# all names or for none. <code>str.removeprefix</code> takes it away once.</details>
# <details><summary>Hint 3</summary><code>io.BytesIO</code> is a file in memory. <code>torch.load</code> has
# arguments for the device and for refusing everything but weights; what it raises then is no
# <code>ValueError</code> yet.</details>


# %% id="snapshot" role="answer"
def snapshot(state, rank):
    ### BEGIN SOLUTION
    if rank != 0:
        return None
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in without_prefix(state).items()}


def without_prefix(state):
    if not all(name.startswith("module.") for name in state):
        return state
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}
    ### END SOLUTION


def resume(data, wrapped):
    ### BEGIN SOLUTION
    try:
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError("not a file of weights") from error
    state = without_prefix(state)
    return {"module." + name: tensor for name, tensor in state.items()} if wrapped else state
    ### END SOLUTION


# %% id="snapshot_check" role="test"
check(snapshot, like=snapshot_slow, on=[wrapped_state, other_rank], shares=False, points=1)

# %% id="snapshot_resume" role="test"
check(resume, like=resume_slow, on=[old_file, file_for_ddp], points=1)

# %% id="snapshot_foreign" role="test"
check(resume, like=resume_slow, on=foreign_file, raises=ValueError, points=1)


# %% id="snapshot_hidden" role="test"
# Hidden test: snapshots of states with submodules called module, of an empty dict, other types, views.
# 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def inner_module(generator, device):
    tensor = torch.randn(2, generator=generator).to(device)
    return {"stem.weight": tensor, "module.module.weight": tensor + 1, "head.module.bias": tensor + 2}, 0


def wrapped_twice(generator, device):
    tensor = torch.randn(2, generator=generator).to(device)
    return {"module.module.weight": tensor, "module.head.module.bias": tensor + 1}, 0


def nothing(generator, device):
    return {}, 0


def other_types(generator, device):
    wide = torch.randn(6, 8, generator=generator).to(device)
    steps = torch.tensor(7, device=device)
    return {"module.half": wide.half(), "module.steps": steps, "module.view": wide[:, ::2].T}, 0


check(
    snapshot,
    like=snapshot_slow,
    on=[inner_module, wrapped_twice, nothing, other_types],
    shares=False,
    points=1,
)
### END HIDDEN TESTS


# %% id="snapshot_hidden_resume" role="test"
# Hidden test: files of such states, for plain and for wrapped models. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def file_with_inner_module(generator, device):
    return saved_file(inner_module(generator, "cpu")[0]), False


def file_for_inner_module(generator, device):
    return saved_file(inner_module(generator, "cpu")[0]), True


def file_wrapped_twice(generator, device):
    return saved_file(wrapped_twice(generator, "cpu")[0]), False


def file_stays_wrapped(generator, device):
    return saved_file(other_types(generator, "cpu")[0]), True


def empty_file(generator, device):
    return saved_file({}), True


check(
    resume,
    like=resume_slow,
    on=[file_with_inner_module, file_for_inner_module, file_wrapped_twice, file_stays_wrapped, empty_file],
    points=1,
)
### END HIDDEN TESTS

# %% id="snapshot_race" role="test"
race(snapshot, against=snapshot_slow, on=wrapped_state, at_least={"cpu": 2.5, "cuda": 2}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the
# start.
