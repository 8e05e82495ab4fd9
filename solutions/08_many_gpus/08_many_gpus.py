# %% [markdown]
# # Exercises 08 · Many GPUs
#
# Five exercises on what runs inside every data-parallel program. Each function but one is given in a slow version
# that is right. No second process is needed: your functions get what every rank has, and you write what the
# ranks do with it.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one. From 1.4
# times as fast on, but below the ratio asked for, a race gives a part of its points. Hidden tests run when your
# notebook is graded: other shapes, other types, other random numbers. If a hidden test finds a wrong answer, the
# race of that function gives no points either.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution
# cell. The chapter is [here](../../course/08_many_gpus.ipynb). 40 points, about 95 minutes.

# %% id="setup" role="given"
import io
import pickle
from pathlib import PurePosixPath

import torch

from autograder import check, costs, race

# %% [markdown]
# ## 1. Parts of unequal size
#
# *Easy, 12 minutes.* Each rank has computed the gradients of its *mean* loss over its own samples. The last
# batch is uneven: the ranks had different numbers of samples. Write `average_gradients(gradients, counts)`,
# which gives the gradients that one process would get for the mean loss over *all* samples.
#
# - `gradients`: list with one entry for each rank. An entry is a list of floating-point tensors, one for
#   each parameter; shapes and types are the same on all ranks. All are on the same device. Parameters may
#   have different types.
# - `counts`: list of Python integers, the number of samples of each rank, 0 or more.
# - returns: list of tensors, one for each parameter, with its shape, type and device.
# - A rank with a count of 0 has computed the mean of nothing. Whatever its gradients hold, `nan` included,
#   must not matter.
# - A result in 16 bits must be the true average, rounded *once*: no number may be further from it than about half
#   of the distance between two neighbouring numbers of that type. (The given version is not held to this.)
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


def idle_rank(generator, device):
    full = [torch.randn(4, 3, generator=generator).to(device), torch.ones((), device=device)]
    return [[torch.full_like(tensor, float("nan")) for tensor in full], full], [0, 5]


def many_ranks_in_16_bits(generator, device):
    counts = torch.randint(1, 9, (24,), generator=generator).tolist()
    ranks = [[torch.randn(2000, generator=generator).bfloat16().to(device)] for _ in counts]
    return ranks, counts


# %% [markdown]
# <details><summary>Hint 1</summary>Adding a tensor 20 times is one multiplication.</details>
# <details><summary>Hint 2</summary>Each rank's gradients have one weight, a Python number, the same for all
# its tensors. The weights of all ranks add up to 1. And 0 times <code>nan</code> is
# <code>nan</code>.</details>
# <details><summary>Hint 3</summary>Every operation on a <code>bfloat16</code> tensor rounds its result to
# <code>bfloat16</code>. In which type can you add up 24 of them, so that its own rounding is far smaller than half
# a step of <code>bfloat16</code>? (<code>float32</code> numbers need no longer type.)</details>
# <details><summary>Hint 4</summary><code>add_</code> takes a factor: <code>alpha</code>; and the tensor that
# it adds may have another type than the one that grows.</details>


# %% id="average_gradients" role="answer"
def average_gradients(gradients, counts):
    ### BEGIN SOLUTION
    samples = sum(counts)
    if samples == 0:
        raise ValueError("no rank has a sample")
    ranks = [(tensors, count / samples) for tensors, count in zip(gradients, counts, strict=True) if count]
    (first, weight), *others = ranks
    averages = [tensor.to(torch.promote_types(tensor.dtype, torch.float32)) * weight for tensor in first]
    for tensors, weight in others:
        for average, tensor in zip(averages, tensors, strict=True):
            average.add_(tensor, alpha=weight)
    return [average.to(tensor.dtype) for average, tensor in zip(averages, first, strict=True)]
    ### END SOLUTION


# %% id="average_gradients_check" role="test"
check(average_gradients, like=average_gradients_slow, on=uneven_ranks, points=2)

# %% id="average_gradients_edges" role="test"
check(
    average_gradients,
    like=average_gradients_slow,
    on=[idle_rank, many_ranks_in_16_bits],
    tolerance=4e-3,
    points=1,
)

# %% id="average_gradients_empty" role="test"
check(average_gradients, like=average_gradients_slow, on=no_samples, raises=ValueError, points=1)


# %% id="average_gradients_hidden" role="test"
# Hidden test: ranks without samples, a single rank, other shapes and types.
# 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def ranks_without_samples(generator, device):
    full = [
        torch.randn(4, 3, generator=generator).to(device),
        torch.randn((), generator=generator).to(device),
        torch.randn(2000, generator=generator).to(device).bfloat16(),
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
    on=[ranks_without_samples, single_rank, double_precision],
    points=1,
)
### END HIDDEN TESTS

# %% id="average_gradients_race" role="test"
race(
    average_gradients,
    against=average_gradients_slow,
    on=uneven_ranks,
    at_least={"cpu": 3, "cuda": 3},
    points=2,
)

# %% [markdown]
# ## 2. DDP's buckets
#
# *Hard, 25 minutes.* The ranks must average their gradients, and may talk to each other only through
# `all_reduce` in the cell below. It is a real ring, played in one process. Like the real one it has a price for every
# call, however small the tensors are. Build what DDP builds: `all_reduce_gradients(ranks, cap)`, which sends
# the gradients in buckets, *one* call of `all_reduce` for each bucket.
#
# - `ranks`: list with one entry for each rank, at least one. An entry is a list of floating-point tensors,
#   one for each parameter; shapes and types are the same on all ranks, all on the same device. Parameters
#   may have different types.
# - `cap`: a number of bytes. The buckets are filled from the *last* parameter to the first, the order of a
#   backward pass. Every type has at most one open bucket. A gradient goes whole into the open bucket of its
#   type, behind those that are there already, its numbers in row-major order. A bucket that holds `cap` bytes
#   or more is closed then, and the next gradient of its type opens a new one. At the end the open ones are sent as
#   they are.
# - returns: list of tensors, one for each parameter in the order of `ranks[0]`: the mean over the ranks, with
#   the parameter's shape, type and device. The ring decides in which order numbers are added. The result
#   must be that of the ring on these buckets, also where the order of additions matters.
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


def neighbours(gradients, i, cap):
    """The parameters that share a bucket with parameter i, in the order in which they lie there."""
    members, size = [], 0
    for j in reversed(range(len(gradients))):
        if gradients[j].dtype == gradients[i].dtype:
            members.append(j)
            size += gradients[j].numel() * gradients[j].element_size()
            if size >= cap:
                if i in members:
                    break
                members, size = [], 0
    return members


def all_reduce_gradients_slow(ranks, cap):
    if any(len(gradients) != len(ranks[0]) for gradients in ranks):
        raise ValueError("the ranks have different numbers of gradients")
    averages = []
    for i, shape in enumerate(gradient.shape for gradient in ranks[0]):
        members = neighbours(ranks[0], i, cap)
        buffers = []
        for gradients in ranks:  # the whole bucket travels, but only this gradient is in it
            parts = [gradients[j].flatten() * (j == i) for j in members]
            buffers.append(torch.cat(parts))
        all_reduce(buffers)
        start = sum(ranks[0][j].numel() for j in members[: members.index(i)])
        average = buffers[0][start : start + shape.numel()] / len(ranks)
        averages.append(average.view(shape))
    return averages


def six_ranks(generator, device):
    shapes = [(8, 16), (16,)] * 15
    ranks = [[torch.randn(shape, generator=generator).to(device) for shape in shapes] for _ in range(6)]
    return ranks, 4000


def order_matters(generator, device):
    """Three ranks; of each number, one has 1e20 and one has -1e20."""
    ranks = [[], [], []]
    for shape in [(3, 5), (7,), (2, 2, 3), (4,), (11,), ()]:
        small = torch.randn(shape, generator=generator, dtype=torch.float64)
        values = torch.stack([small, torch.full_like(small, 1e20), torch.full_like(small, -1e20)])
        order = torch.rand(values.shape, generator=generator).argsort(0)
        for rank, tensor in zip(ranks, values.gather(0, order), strict=True):
            rank.append(tensor.to(device))
    return ranks, 128


def two_types(generator, device):
    types = [torch.float64, torch.float32, torch.float32, torch.float64]
    sizes = [(3, 2), (4,), (5,), (6,)]
    ranks = [
        [torch.randn(size, generator=generator).to(device, t) for size, t in zip(sizes, types, strict=True)]
        for _ in range(2)
    ]
    return ranks, 1000


def missing_gradient(generator, device):
    return [[torch.ones(2, device=device)] * 3, [torch.ones(2, device=device)] * 2], 100


# %% [markdown]
# <details><summary>Hint 1</summary>Decide first, without any tensor, which parameters lie in which bucket: a
# list of lists of indices. All ranks have the same one.</details>
# <details><summary>Hint 2</summary>A dict from a type to its open bucket. What happens to the entry when the
# bucket is full?</details>
# <details><summary>Hint 3</summary>For each bucket and each rank, <code>torch.cat</code> makes one long
# tensor (and it is a copy, so the ring may change it). <code>split</code> takes a list of lengths and cuts it
# up again; its parts are views.</details>
# <details><summary>Hint 4</summary>The buckets come from the back, the result is in the order of the
# parameters: make a list of the right length first, and put each part where it belongs.</details>


# %% id="all_reduce_gradients" role="answer"
def all_reduce_gradients(ranks, cap):
    ### BEGIN SOLUTION
    first = ranks[0]
    if any(len(gradients) != len(first) for gradients in ranks):
        raise ValueError("the ranks have different numbers of gradients")
    averages = [None] * len(first)
    for members in buckets_of(first, cap):
        joined = [torch.cat([gradients[i].flatten() for i in members]) for gradients in ranks]
        all_reduce(joined)
        parts = joined[0].div_(len(ranks)).split([first[i].numel() for i in members])
        for i, part in zip(members, parts, strict=True):
            averages[i] = part.view(first[i].shape)
    return averages


def buckets_of(gradients, cap):
    closed, filling = [], {}
    for i in reversed(range(len(gradients))):
        kind = gradients[i].dtype
        members, size = filling.pop(kind, ([], 0))
        members.append(i)
        size += gradients[i].numel() * gradients[i].element_size()
        if size >= cap:
            closed.append(members)
        else:
            filling[kind] = members, size
    return closed + [members for members, _ in filling.values()]
    ### END SOLUTION


# %% id="all_reduce_gradients_check" role="test"
check(all_reduce_gradients, like=all_reduce_gradients_slow, on=[six_ranks, order_matters], points=2)

# %% id="all_reduce_gradients_types" role="test"
check(all_reduce_gradients, like=all_reduce_gradients_slow, on=two_types, points=1)

# %% id="all_reduce_gradients_missing" role="test"
check(
    all_reduce_gradients,
    like=all_reduce_gradients_slow,
    on=missing_gradient,
    raises=ValueError,
    points=1,
)


# %% id="all_reduce_gradients_hidden" role="test"
# Hidden test: one rank, many ranks, scalars and empty tensors, mixed types, buckets of many sizes.
# 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_rank(generator, device):
    shapes = [(3, 2), (5,)]
    return [[torch.randn(shape, generator=generator).to(device) for shape in shapes]], 8


def odd_shapes(generator, device):
    shapes = [(), (0,), (1, 1, 1), (2, 0), (2, 3, 4, 5)]
    return [[torch.rand(shape, generator=generator).to(device) for shape in shapes] for _ in range(5)], 64


def mixed_types(generator, device):
    types = [torch.float64, torch.float32, torch.float64, torch.float32, torch.bfloat16]
    ranks = [
        [torch.randn(3, i + 1, generator=generator).to(device, t) for i, t in enumerate(types)]
        for _ in range(2)
    ]
    return ranks, 40


def small_buckets(generator, device):
    return order_matters(generator, device)[0], 1


def closes_just_full(generator, device):
    return order_matters(generator, device)[0], 8 * (1 + 11)


def one_bucket(generator, device):
    return order_matters(generator, device)[0], 10**6


check(
    all_reduce_gradients,
    like=all_reduce_gradients_slow,
    on=[one_rank, odd_shapes, mixed_types, small_buckets, closes_just_full, one_bucket],
    points=2,
)
### END HIDDEN TESTS

# %% id="all_reduce_gradients_race" role="test"
race(
    all_reduce_gradients,
    against=all_reduce_gradients_slow,
    on=six_ranks,
    at_least={"cpu": 5.5, "cuda": 5},
    points=3,
)

# %% [markdown]
# ## 3. In the middle of an epoch
#
# *Medium, 15 minutes.* A program was stopped in the middle of an epoch. It goes on with another number of
# ranks than before. Write `indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last)`: the samples
# that a rank works on until the epoch ends.
#
# - `length`, `done`, `ranks`, `rank`, `seed`, `epoch`: Python integers; at least one rank; `length` may be 0;
#   `done` is from 0 to `length`.
# - The samples 0 to `length - 1` are shuffled with `torch.randperm` and a CPU generator whose seed is the sum
#   of `seed` and `epoch`: all ranks shuffle alike, before and after the stop. The first `done` samples of
#   this order were worked on before the stop. The *rest* is dealt like cards: the first to rank 0, the
#   second to rank 1, and so on.
# - All ranks get the same number. With `drop_last` the cards left over at the end are not dealt; with fewer
#   cards than ranks nobody gets one, and the tensor is empty. Without it, the dealing goes on with the *rest*
#   from its beginning until all hands are equally long; that may be more than once around, if there are few
#   cards. A rest of no cards gives an empty tensor.
# - returns: `int64` CPU tensor of one dimension, the rank's samples in the order in which they were dealt.
# - A `rank` outside 0 to `ranks - 1` must raise `ValueError`.


# %% id="indices_of_rank_given" role="given"
def indices_of_rank_slow(length, done, ranks, rank, seed, epoch, drop_last):
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} is not in 0 to {ranks - 1}")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    rest = length - done
    dealt = rest // ranks * ranks if drop_last else (rest + ranks - 1) // ranks * ranks
    mine = []
    for card in range(dealt):
        if card % ranks == rank:
            mine.append(order[done + card % rest].item())
    return torch.tensor(mine, dtype=torch.int64)


def some_epoch(generator, device):
    seed, epoch, rank = torch.randint(4, (3,), generator=generator).tolist()
    length = int(torch.randint(7000, 8000, (), generator=generator))
    return length, 1001, 4, rank, 1000 * seed, epoch, False


def leave_out(generator, device):
    return int(torch.randint(20, 40, (), generator=generator)), 10, 7, 2, 5, 1, True


def few_cards(generator, device):
    return 12, 10, 7, int(torch.randint(7, (), generator=generator)), 5, 1, False


def rank_too_large(generator, device):
    return 10, 0, 4, 4, 0, 0, False


def negative_rank(generator, device):
    return 10, 0, 4, -1, 0, 0, False


# %% [markdown]
# <details><summary>Hint 1</summary>Every fourth card, from the second one on, is a slice with a
# step.</details>
# <details><summary>Hint 2</summary>First make the row of all cards that are dealt: take the rest, cut it off
# or make it longer. Then take the slice.</details>
# <details><summary>Hint 3</summary>Two cards and seven ranks: the row is the two cards three and a half times
# over. Positions modulo the number of cards do that, or <code>repeat</code>. Mind a rest of
# nothing.</details>


# %% id="indices_of_rank" role="answer"
def indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last):
    ### BEGIN SOLUTION
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} is not in 0 to {ranks - 1}")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    cards = order[done:]
    full = len(cards) // ranks * ranks
    if drop_last or full == len(cards):
        return cards[rank:full:ranks].clone()
    return cards[torch.arange(rank, full + ranks, ranks) % len(cards)]
    ### END SOLUTION


# %% id="indices_of_rank_check" role="test"
check(indices_of_rank, like=indices_of_rank_slow, on=[some_epoch, leave_out], points=2)

# %% id="indices_of_rank_few" role="test"
check(indices_of_rank, like=indices_of_rank_slow, on=few_cards, points=1)

# %% id="indices_of_rank_range" role="test"
check(
    indices_of_rank,
    like=indices_of_rank_slow,
    on=[rank_too_large, negative_rank],
    raises=ValueError,
    points=1,
)


# %% id="indices_of_rank_hidden" role="test"
# Hidden test: few cards, no cards, one rank, rests that come out even.
# 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def fewer_samples_than_ranks(generator, device):
    return int(torch.randint(1, 4, (), generator=generator)), 0, 11, 9, 3, 2, False


def nothing_left(generator, device):
    return 30, 27, 5, 1, 3, 2, True


def all_done(generator, device):
    return 9, 9, 2, 1, 0, 0, False


def no_samples_at_all(generator, device):
    return 0, 0, 2, 1, 0, 0, False


def only_rank(generator, device):
    return 13, 4, 1, 0, 9, int(torch.randint(100, (), generator=generator)), False


def comes_out_even(generator, device):
    rank = int(torch.randint(6, (), generator=generator))
    return 30, 6, 6, rank, 1, 1, bool(torch.rand((), generator=generator) < 0.5)


check(
    indices_of_rank,
    like=indices_of_rank_slow,
    on=[fewer_samples_than_ranks, nothing_left, all_done, no_samples_at_all, only_rank, comes_out_even],
    points=1,
)
### END HIDDEN TESTS

# %% id="indices_of_rank_race" role="test"
race(indices_of_rank, against=indices_of_rank_slow, on=some_epoch, at_least={"cpu": 13}, points=2)

# %% [markdown]
# ## 4. BatchNorm over all ranks
#
# *Hard, 22 minutes.* For a BatchNorm over all ranks, each rank sends only how many samples it has, and the
# mean and the variance of each channel over them. Write `whole_batch(counts, means, variances)`, which finds
# the mean and the variance of each channel over the samples of *all* ranks.
#
# - `counts`: `int64` tensor with one number of samples for each rank, 0 or more; at least one rank has a
#   sample.
# - `means`, `variances`: tensors of shape (ranks, channels), both `float32` or both `float64`, on the device of
#   `counts`. A variance is the mean of the squared distances from the rank's own mean.
# - returns: a tuple of two tensors of shape (channels,), of that type: the mean over all samples, and the mean
#   of the squared distances from it.
# - What a rank without samples sends, `nan` included, must not matter.
# - It must stay accurate where means are large and their differences small: 5000 on one rank and 5001 on
#   another.
# - It runs in every layer of every step: it must not make the host wait for the device (0 `syncs` in `costs`,
#   which you can import from `autograder`). The given tensors must not be changed.
# - The race has 256 ranks and 2048 channels: tables of 2 MB, of which the given version takes one row at a time. A few
#   operations on whole tables gain less than one expects: most of the obvious ones earn only a part of the race's 3 points.
#   Measure.


# %% id="whole_batch_given" role="given"
def whole_batch_slow(counts, means, variances):
    seen = 0
    mean = torch.zeros_like(means[0])
    squares = torch.zeros_like(means[0])  # of the distances from the mean, added up
    for rank in range(len(counts)):  # one rank after the other joins
        count = counts[rank].item()
        if count == 0:
            continue
        away = means[rank] - mean
        both = seen + count
        squares = squares + variances[rank] * count + away * away * (seen * count / both)
        mean = mean + away * (count / both)
        seen = both
    return mean, squares / seen


def many_ranks(generator, device):
    counts = torch.randint(1, 65, (256,), generator=generator).to(device)
    means = torch.randn(256, 2048, generator=generator).to(device)
    return counts, means, torch.rand(256, 2048, generator=generator).to(device)


def far_from_zero(generator, device):
    counts = torch.randint(1, 65, (8,), generator=generator).to(device)
    means = 5000 + torch.randn(8, 16, generator=generator).to(device)
    return counts, means, torch.rand(8, 16, generator=generator).to(device)


def idle_ranks(generator, device):
    counts, means, variances = far_from_zero(generator, device)
    idle = torch.tensor([1, 4], device=device)
    counts[idle], means[idle], variances[idle] = 0, float("nan"), float("nan")
    return counts, means - 5000, variances


def in_double_precision(generator, device):
    counts, means, variances = far_from_zero(generator, device)
    return counts, means.double(), variances.double()


# %% [markdown]
# <details><summary>Hint 1</summary>Two ranks, no spread within either: means of 0 and 10, variances of 0. The
# whole batch does have a variance.</details>
# <details><summary>Hint 2</summary>A sample's squared distance from the common mean has, on average over its
# rank, two parts: one is the variance of the rank. What is the other?</details>
# <details><summary>Hint 3</summary>The mean of all squares less the square of the mean is right on paper; at
# 5000 it takes one number of 25 million from another. Subtract the means before you square.</details>
# <details><summary>Hint 4</summary>A mask of ranks makes a result whose size the host must know: it waits.
# <code>torch.where</code> keeps the size. The weights of the ranks times a matrix is one product. (Counts
# divided by counts are <code>float32</code>. Which type do the means have?)</details>
# <details><summary>Hint 5</summary>Let <code>costs</code> count the new memory of one call with the race's inputs. Each
# new table must be found and written once more. Which operation could write its result into a table that you have made
# before? Is <code>float64</code> needed, where the mean is subtracted before anything is squared? Then time each
# operation alone: leaving out the idle ranks need not look at every number.</details>
# <details><summary>Hint 6</summary>Two new tables are enough, one for the means and one for the variances: after the
# copy that leaves the idle ranks out, all operations can work in place (<code>addcmul_</code> is two of them in
# one).</details>
# <details><summary>Hint 7</summary>Time that copy alone, made number by number or by whole rows.
# <code>index_select</code> takes row numbers, and in the place of an idle rank any busy one will do: the busiest is one.
# Who finds it without making the host wait?</details>


# %% id="whole_batch" role="answer"
def whole_batch(counts, means, variances):
    ### BEGIN SOLUTION
    weights = counts.to(means.dtype)
    weights = weights / weights.sum()
    # An idle rank, whose weight is 0, has the numbers of a busy one.
    rows = torch.where(counts > 0, torch.arange(len(counts), device=counts.device), counts.argmax())
    away = means.index_select(0, rows)  # new memory, which is written over from here on
    mean = weights @ away
    away -= mean
    return mean, weights @ variances.index_select(0, rows).addcmul_(away, away)
    ### END SOLUTION


# %% id="whole_batch_check" role="test"
check(whole_batch, like=whole_batch_slow, on=[many_ranks, in_double_precision], points=2)

# %% id="whole_batch_edges" role="test"
check(
    whole_batch,
    like=whole_batch_slow,
    on=[far_from_zero, idle_ranks],
    tolerance=5e-3,  # float32 at 5000
    points=1,
)

# %% id="whole_batch_waits" role="test"
check(whole_batch, like=whole_batch_slow, on=idle_ranks, at_most={"syncs": 0}, points=1)


# %% id="whole_batch_hidden" role="test"
# Hidden test: one rank, one sample each, no channels, idle ranks far from zero.
# 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def single_rank_of_five(generator, device):
    counts = torch.tensor([5], device=device)
    return counts, *(torch.rand(1, 3, generator=generator).to(device) for _ in range(2))


def one_sample_each(generator, device):
    counts = torch.ones(6, dtype=torch.int64, device=device)
    return counts, torch.randn(6, 4, generator=generator).to(device), torch.zeros(6, 4, device=device)


def no_channels(generator, device):
    return torch.tensor([3, 2], device=device), *(torch.zeros(2, 0, device=device) for _ in range(2))


def idle_and_far(generator, device):
    counts, means, variances = idle_ranks(generator, device)
    return counts, means - 5000, variances


check(
    whole_batch,
    like=whole_batch_slow,
    on=[single_rank_of_five, one_sample_each, no_channels, idle_and_far],
    tolerance=5e-3,
    points=1,
)
### END HIDDEN TESTS

# %% id="whole_batch_race" role="test"
race(whole_batch, against=whole_batch_slow, on=many_ranks, at_least={"cpu": 2.5, "cuda": 14}, points=3)

# %% [markdown]
# ## 5. Save on one rank, resume anywhere
#
# *Medium, 11 minutes.* Write two functions, in one cell.
#
# `snapshot(state, rank)` is called on every rank. It takes a copy of the model, which another thread may
# write to a file while the training goes on.
#
# - `state`: dict from names to tensors on any device, the `state_dict` of a model. If the model is wrapped
#   in DDP, *every* name begins with `module.`.
# - returns: on rank 0 a dict from names without that prefix to CPU tensors that share no memory with `state`.
#   (With each other they may, where two names stand for one tensor.) On every other rank `None`, without any work.
#
# `resume(data, wrapped)` reads a file. No version of it is given.
#
# - `data`: the bytes of a whole, undamaged file that `torch.save` wrote: such a dict, with the prefix or without.
#   `wrapped`: `True` if the model that will load it is wrapped in DDP.
# - returns: dict from names to CPU tensors; every name with one prefix if `wrapped`, without it if not.
# - A file from elsewhere may hold Python objects that run code when they are loaded. A file with an object that is
#   neither a tensor nor plain Python (a container, number or text) must raise `ValueError`.
#
# A model may have a submodule that is itself called `module`. If every name begins with `module.`, take it
# for the prefix and remove it once. If one name does not, there is no prefix. So `head.module.weight` keeps
# its `module`.


# %% id="snapshot_given" role="given"
def snapshot_slow(state, rank):
    file = io.BytesIO()
    torch.save(state, file)
    copy = torch.load(io.BytesIO(file.getvalue()), map_location="cpu", weights_only=True)
    if copy and all(name.startswith("module.") for name in copy):
        copy = {name.removeprefix("module."): tensor for name, tensor in copy.items()}
    return copy if rank == 0 else None


def wrapped_state(generator, device):
    names = [f"module.{i}.{kind}" for i in range(25) for kind in ("weight", "bias")]
    return {name: torch.randn(32, generator=generator).to(device) for name in names}, 0


def submodule_called_module(generator, device):
    tensor = torch.randn(2, generator=generator).to(device)
    return {"stem.weight": tensor, "module.module.weight": tensor + 1, "head.module.bias": tensor + 2}, 0


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


def file_with_submodule(generator, device):
    state = {"module.module.weight": torch.randn(2, generator=generator), "module.bias": torch.zeros(1)}
    return saved_file(state), False


def foreign_file(generator, device):
    return saved_file({"weight": torch.zeros(2), "folder": PurePosixPath("somewhere")}), False


# %% [markdown]
# <details><summary>Hint 1</summary>Nobody wants a file here, only copies. Which methods copy a tensor, also
# to another device? <code>.cpu()</code> of a CPU tensor does not.</details>
# <details><summary>Hint 2</summary>The prefix stands only at the beginning of a name, and it is there for
# all names or for none. <code>str.removeprefix</code> takes it away once.</details>
# <details><summary>Hint 3</summary><code>resume</code> is tested for right answers, and not raced. Mind what
# <code>torch.load</code> raises for a foreign file: it is no <code>ValueError</code> yet.</details>


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
check(
    snapshot,
    like=snapshot_slow,
    on=[wrapped_state, other_rank, submodule_called_module],
    shares=False,
    points=1,
)

# %% id="snapshot_resume" role="test"
# What the names in the three files become.
BECOMES = {
    "module.weight": "weight",
    "module.bias": "bias",
    "weight": "module.weight",
    "bias": "module.bias",
    "module.module.weight": "module.weight",
}


def with_new_names(data, wrapped):
    state = torch.load(io.BytesIO(data), weights_only=True)
    return {BECOMES[name]: tensor for name, tensor in state.items()}


check(resume, like=with_new_names, on=[old_file, file_for_ddp, file_with_submodule], points=1)

# %% id="snapshot_foreign" role="test"
check(resume, like=with_new_names, on=foreign_file, raises=ValueError, points=1)


# %% id="snapshot_hidden" role="test"
# Hidden test: snapshots of states wrapped twice, of an empty dict, other types, views.
# 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
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
    on=[wrapped_twice, nothing, other_types],
    shares=False,
    points=1,
)
### END HIDDEN TESTS


# %% id="snapshot_hidden_resume" role="test"
# Hidden test: files of such states, for plain and for wrapped models. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def proper_resume(data, wrapped):
    state = torch.load(io.BytesIO(data), weights_only=True)
    has_prefix = all(name.startswith("module.") for name in state)
    plain = {name.removeprefix("module.") if has_prefix else name: one for name, one in state.items()}
    return {f"module.{name}": one for name, one in plain.items()} if wrapped else plain


def file_with_inner_module(generator, device):
    return saved_file(submodule_called_module(generator, "cpu")[0]), False


def file_for_inner_module(generator, device):
    return saved_file(submodule_called_module(generator, "cpu")[0]), True


def file_wrapped_twice(generator, device):
    return saved_file(wrapped_twice(generator, "cpu")[0]), False


def file_stays_wrapped(generator, device):
    return saved_file(other_types(generator, "cpu")[0]), True


def empty_file(generator, device):
    return saved_file({}), True


check(
    resume,
    like=proper_resume,
    on=[file_with_inner_module, file_for_inner_module, file_wrapped_twice, file_stays_wrapped, empty_file],
    points=1,
)
### END HIDDEN TESTS

# %% id="snapshot_race" role="test"
race(snapshot, against=snapshot_slow, on=wrapped_state, at_least={"cpu": 4.5, "cuda": 2}, points=2)

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
def gradient(x):
    weights = torch.ones(x.shape[1], requires_grad=True)
    (x @ weights).sum().backward()
    return weights.grad


def turned(x):
    return x.T.contiguous().view(-1) + x.reshape(-1)


def bucket(x):
    return torch.cat([row.reshape(-1) for row in x]).div_(4)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (gradient, turned, bucket)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>gradient</code> is of chapter 03, <code>turned</code> is of chapter 06,
# <code>bucket</code> is of chapter 08.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(bucket, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "gradient": {"operations": 5, "bytes": 8 * d + 4 * n + 8, "syncs": 0},
        "turned": {"operations": 2, "bytes": 8 * n * d, "syncs": 0},
        "bucket": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
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
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the
# start.
