# %% [markdown]
# # Exercises 22 · Sharding a model
#
# A norm of what nobody has whole, a loss whose classes lie on many ranks, messages for another placement, a
# pipeline's clock, and a calculator to keep. Each is given in a version that is right, and slow or large. Write a
# better one. No second process is needed: your functions get what every rank has, in the order of the ranks.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. It tries every input in other memory layouts,
# too. Some checks also count what your answer costs: its new memory in all, or the most at once. `race` times it
# against the given version, on this machine, now. Hidden tests run when your notebook is graded: other shapes and
# other random numbers.
#
# Keep the names. Helper functions and imports of your own are welcome, in the solution cell. Leave the tensors that
# you get as they are. `costs`, from chapter 00, counts what a call costs: `from autograder import costs`, then
# `print(costs(function, *inputs))`. *Cut as `torch.chunk` cuts* means: every rank gets as much as the first, for as
# long as there is something; then one gets the rest, and those after it nothing. The chapter is
# [here](../../course/22_sharding.ipynb). 37 points, about 140 minutes.

# %% id="setup" role="given"
from collections import deque

import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. A norm of what nobody has whole
#
# *Easy, 15 minutes.* To clip gradients, one needs the norm of all of them together. With a sharded model no rank has
# them whole. The given version gathers each on every rank first. Write `norm(placed)`.
#
# - `placed`: a list with one pair for each gradient, at least one: its placement, and a list with each rank's piece.
#   `"shard"`: the pieces are parts, cut along their first dimension; some may have no rows. `"replicate"`: each rank
#   has the whole. `"partial"`: each piece is an addend of the gradient, with its shape.
# - All pieces are of one type, `float32` or `float64`, on one device; no square of them is too large or too small for
#   it. There are the same number of ranks for all, at least one.
# - returns: the root of the sum of the squares of all numbers of all gradients, each counted once: a tensor without
#   dimensions, of that type, on that device.
# - In the test with 8 ranks, the shards have 288 kB, and the given version makes them whole eight times. At most 30
#   kB of new memory in all operations together, for all points. In the race, with 8 ranks and 17 gradients, most of
#   them shards: 2 times as fast as given for all points.


# %% id="norm_given" role="given"
def norm_slow(placed):
    total = 0.0
    for placement, pieces in placed:
        if placement == "shard":
            wholes = [torch.cat(pieces) for _ in pieces]
        elif placement == "partial":
            wholes = [torch.stack(pieces).sum(0) for _ in pieces]
        else:
            wholes = pieces
        total = total + wholes[0].double().square().sum()
    return total.sqrt().to(placed[0][1][0].dtype)


def gradients_of(kinds, ranks, generator, device, dtype=torch.float32, largest=12):
    placed = []
    for placement in kinds:
        rows, columns = torch.randint(1, largest, (2,), generator=generator).tolist()
        if placement == "shard":
            whole = torch.randn(rows, columns, generator=generator, dtype=dtype).to(device)
            each = -(-rows // ranks)
            pieces = [whole[rank * each : (rank + 1) * each].clone() for rank in range(ranks)]
        elif placement == "partial":
            pieces = list(torch.randn(ranks, rows, columns, generator=generator, dtype=dtype).to(device))
        else:
            whole = torch.randn(columns, generator=generator, dtype=dtype).to(device)
            pieces = [whole.clone() for _ in range(ranks)]
        placed.append((placement, pieces))
    return (placed,)


def three_kinds(generator, device):
    return gradients_of(["shard", "replicate", "partial", "shard"], 4, generator, device)


def large_shards(generator, device):
    placed, wholes = [], torch.randn(9, 80, 100, generator=generator).to(device)
    placed += [("shard", [piece.clone() for piece in whole.chunk(8)]) for whole in wholes]
    (others,) = gradients_of(["replicate", "partial"], 8, generator, device)
    return (placed + others,)


def many_gradients(generator, device):
    kinds = ["shard"] * 15 + ["replicate", "partial"]
    return gradients_of(kinds, 8, generator, device, largest=500)


# %% [markdown]
# <details><summary>Hint 1</summary>Of parts, squares can be added up where they are. Of what all ranks have alike, one is enough. And of
# addends? Is the square of a sum the sum of the squares?</details>
# <details><summary>Hint 2</summary>So what must really be whole is few. All the rest is one long row of numbers, whoever has them.
# </details>
# <details><summary>Hint 3</summary>A norm of norms is a norm. And there is a call that gives one for each tensor of a list.</details>


# %% id="norm" role="answer"
def norm(placed):
    ### BEGIN SOLUTION
    own = []
    for placement, pieces in placed:
        if placement == "shard":
            own += [piece for piece in pieces if len(piece)]
        elif placement == "replicate":
            own.append(pieces[0])
        else:
            own.append(torch.stack(pieces).sum(0))
    return torch.stack(torch._foreach_norm(own)).norm()
    ### END SOLUTION


# %% id="norm_check" role="test"
check(norm, like=norm_slow, on=three_kinds, points=1)

# %% id="norm_counted" role="test"
check(norm, like=norm_slow, on=large_shards, at_most={"bytes": 30_000}, points=2)


# %% id="norm_hidden" role="test"
# Hidden test: one rank, one kind only, more ranks than rows, float64. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_rank(generator, device):
    return gradients_of(["partial", "shard", "replicate"], 1, generator, device)


def addends_only(generator, device):
    return gradients_of(["partial"] * 3, 5, generator, device)


def more_ranks_than_rows(generator, device):
    return gradients_of(["shard"] * 4 + ["replicate"], 16, generator, device)


def in_float64(generator, device):
    return gradients_of(["replicate", "replicate", "shard"], 3, generator, device, torch.float64)


check(norm, like=norm_slow, on=[one_rank, addends_only, more_ranks_than_rows, in_float64], points=2)
### END HIDDEN TESTS

# %% id="norm_race" role="test"
race(norm, against=norm_slow, on=many_gradients, at_least={"cpu": 2}, points=2)

# %% [markdown]
# ## 2. A loss over sharded classes
#
# *Hard, 30 minutes.* A language model's last layer is large, and cut column-wise: each rank has the scores of some
# classes. The given version gathers them, which takes the memory that was saved. Write `sharded_loss(pieces,
# targets)`.
#
# - `pieces`: a list with each rank's scores, `(N, C_r)`, all of one floating-point type on one device; *N* is at
#   least 1. The numbers of classes may differ, and be 0 on some ranks, not on all. A score may be minus infinity, but
#   no row has only those, and no target has such a score.
# - `targets`: `int64` of shape `(N,)`, on that device: a class, counted over all ranks.
# - returns: a pair. First the mean cross-entropy, a tensor without dimensions of that type. Then a list: the gradient of
#   the loss for each rank's scores, with their shape.
# - With ranks of their own, only a few numbers for each row would travel. Here, memory is what is tested: with *N* =
#   128 and 8 ranks with 1,000 classes each, where the gradients take 4.1 MB, at most 5.2 MB of new memory at once for
#   all points. The given version has 16 MB.


# %% id="sharded_loss_given" role="given"
def sharded_loss_slow(pieces, targets):
    with torch.enable_grad():
        whole = torch.cat(pieces, 1).detach().requires_grad_()
        loss = F.cross_entropy(whole, targets)
        (gradient,) = torch.autograd.grad(loss, whole)
    parts = gradient.split([piece.shape[1] for piece in pieces], 1)
    return loss.detach(), [part.clone() for part in parts]


def classes(rows, widths, generator, device, dtype=torch.float32, scale=3.0):
    pieces = [scale * torch.randn(rows, width, generator=generator, dtype=dtype) for width in widths]
    targets = torch.randint(sum(widths), (rows,), generator=generator)
    return [piece.to(device) for piece in pieces], targets.to(device)


def four_ranks(generator, device):
    return classes(9, [5, 5, 5, 2], generator, device)


def large_scores(generator, device):
    return classes(6, [3, 4, 3], generator, device, scale=400.0)


def many_classes(generator, device):
    return classes(128, [1000] * 8, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>What does softmax need of the other ranks? Two numbers for each row. Which, and in which order?
# </details>
# <details><summary>Hint 2</summary>The gradient for a score is its probability, less 1 for the target, by <em>N</em>. A rank that does
# not have the target's class subtracts nothing.</details>
# <details><summary>Hint 3</summary>The gradients are the result, so their memory is yours from the start: what can be computed in
# place there?</details>


# %% id="sharded_loss" role="answer"
def sharded_loss(pieces, targets):
    ### BEGIN SOLUTION
    rows = len(targets)
    highest = torch.stack([piece.amax(1) for piece in pieces if piece.shape[1]]).amax(0)
    gradients = [(piece - highest[:, None]).exp_() for piece in pieces]
    sums = torch.stack([gradient.sum(1) for gradient in gradients]).sum(0)
    chosen, first = torch.zeros_like(highest), 0
    for piece, gradient in zip(pieces, gradients, strict=True):
        width = piece.shape[1]
        gradient.div_((rows * sums)[:, None])
        if width:
            place = (targets - first).clamp(0, width - 1)[:, None]
            here = (targets >= first) & (targets < first + width)
            chosen = torch.where(here, piece.gather(1, place)[:, 0], chosen)
            gradient.scatter_add_(1, place, here[:, None].to(piece.dtype).div_(-rows))
        first += width
    return (sums.log() + highest - chosen).mean(), gradients
    ### END SOLUTION


# %% id="sharded_loss_check" role="test"
check(sharded_loss, like=sharded_loss_slow, on=[four_ranks, large_scores], points=1)

# %% id="sharded_loss_lean" role="test"
check(sharded_loss, like=sharded_loss_slow, on=many_classes, peak=5_200_000, points=3)


# %% id="sharded_loss_hidden" role="test"
# Hidden test: a rank without classes, one rank, one row, very high and very low scores, float64. 3 points, when graded.
### BEGIN HIDDEN TESTS
def empty_ranks(generator, device):
    return classes(7, [0, 4, 0, 3], generator, device)


def one_rank_alone(generator, device):
    return classes(1, [6], generator, device)


def forbidden_classes(generator, device):
    pieces, targets = classes(8, [4, 4, 4], generator, device)
    pieces[0].fill_(-torch.inf)
    pieces[2][:, 1] = -torch.inf
    return pieces, targets.clamp(4, 7)


def higher_scores(generator, device):
    return classes(5, [2, 6, 2], generator, device, scale=1000.0)


def classes_in_float64(generator, device):
    return classes(20, [11, 11, 3], generator, device, torch.float64)


check(
    sharded_loss,
    like=sharded_loss_slow,
    on=[empty_ranks, one_rank_alone, forbidden_classes, higher_scores, classes_in_float64],
    points=3,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Messages for another placement
#
# *Medium, 25 minutes.* From `Shard(0)` to `Shard(dim)`, without a gather. Write `reshard(pieces, dim)`, which says
# what each rank has then, and how much each has sent to each. The given version lets every rank gather everything.
#
# - `pieces`: a list with each rank's piece, all of one type on one device: a tensor with two dimensions or more, cut
#   along its first as `torch.chunk` cuts; pieces may have no rows, but the first has some. All other sizes are at
#   least 1.
# - `dim`: the dimension along which to cut, 1 or more, and less than the number of dimensions.
# - returns: a pair. First a list with each rank's new piece, cut along `dim` as `torch.chunk` cuts; those without
#   anything have the size 0 there. The pieces share no memory with those given. Then `int64` of shape `(ranks,
#   ranks)` on the CPU: how many numbers the rank of the row must send to the rank of the column. No rank sends to
#   itself.
# - In the test, with 8 ranks and 1.05 MB in all, at most 1.2 MB of new memory in all operations together, for all
#   points. In the race, with the same: 4 times as fast as given for all points.


# %% id="reshard_given" role="given"
def reshard_slow(pieces, dim):
    ranks = len(pieces)
    shards, sent = [], torch.zeros(ranks, ranks, dtype=torch.int64)
    for receiver in range(ranks):
        whole = torch.cat(pieces)
        owner = torch.cat([torch.full(piece.shape, rank) for rank, piece in enumerate(pieces)])
        parts, owners = whole.chunk(ranks, dim), owner.chunk(ranks, dim)
        if receiver >= len(parts):
            shards.append(whole.narrow(dim, 0, 0).clone())
            continue
        shards.append(parts[receiver].clone())
        for sender in range(ranks):
            if sender != receiver:
                sent[sender, receiver] = (owners[receiver] == sender).sum()
    return shards, sent


def cut(ranks, shape, dim, generator, device, dtype=torch.float32):
    whole = torch.randn(shape, generator=generator).to(device, dtype)
    each = -(-shape[0] // ranks)
    return [whole[rank * each : (rank + 1) * each].clone() for rank in range(ranks)], dim


def four_pieces(generator, device):
    return cut(4, (8, 12), 1, generator, device)


def uneven_pieces(generator, device):
    return cut(4, (9, 10, 3), 1, generator, device)


def eight_pieces(generator, device):
    return cut(8, (512, 512), 1, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Of each sender's piece, a receiver needs one block. Where does it begin along <code>dim</code>, and
# where does it end? The same for all senders.</details>
# <details><summary>Hint 2</summary>To look at a block costs nothing. Only the new pieces are new memory.</details>
# <details><summary>Hint 3</summary>How much is sent follows from shapes. No tensor is needed to count it.</details>


# %% id="reshard" role="answer"
def reshard(pieces, dim):
    ### BEGIN SOLUTION
    ranks, width = len(pieces), pieces[0].shape[dim]
    each = -(-width // ranks)
    begins = [min(rank * each, width) for rank in range(ranks)]
    sizes = [min(each, width - begin) for begin in begins]
    shards = [
        torch.cat([piece.narrow(dim, begin, size) for piece in pieces])
        for begin, size in zip(begins, sizes, strict=True)
    ]
    column = [piece.numel() // width for piece in pieces]
    sent = [
        [0 if sender == receiver else column[sender] * sizes[receiver] for receiver in range(ranks)]
        for sender in range(ranks)
    ]
    return shards, torch.tensor(sent)
    ### END SOLUTION


# %% id="reshard_check" role="test"
check(reshard, like=reshard_slow, on=[four_pieces, uneven_pieces], shares=False, points=1)

# %% id="reshard_counted" role="test"
check(reshard, like=reshard_slow, on=eight_pieces, at_most={"bytes": 1_200_000}, points=2)


# %% id="reshard_hidden" role="test"
# Hidden test: ranks without rows, more ranks than columns, one rank, the last dimension, float64. 2 points, when graded.
### BEGIN HIDDEN TESTS
def ranks_without_rows(generator, device):
    return cut(6, (3, 20), 1, generator, device)


def more_ranks_than_columns(generator, device):
    return cut(5, (12, 3), 1, generator, device)


def alone(generator, device):
    return cut(1, (4, 5), 1, generator, device)


def last_dimension(generator, device):
    return cut(3, (7, 2, 3, 8), 3, generator, device, torch.float64)


check(
    reshard,
    like=reshard_slow,
    on=[ranks_without_rows, more_ranks_than_columns, alone, last_dimension],
    shares=False,
    points=2,
)
### END HIDDEN TESTS

# %% id="reshard_race" role="test"
race(reshard, against=reshard_slow, on=eight_pieces, at_least={"cpu": 4}, points=2)

# %% [markdown]
# ## 4. A pipeline's clock
#
# *Medium, 25 minutes.* Ranks of different speed, and messages that take time: how long does a step take, and how long
# is each rank idle? The given version moves a clock by one microsecond at a time. Write `clock(forward, backward,
# delay, microbatches)`.
#
# - `forward`, `backward`: lists of whole numbers, at least 1: the microseconds that each rank needs for a
#   microbatch's forward and for its backward pass. One rank or more.
# - `delay`: a whole number, at least 0: the microseconds that a message takes between two neighbours. It keeps no
#   rank from working. `microbatches`: a whole number, at least 1.
# - Each rank does its work in the order that `orders(ranks, microbatches)` gives (1F1B), each piece as soon as it
#   can. A forward pass needs the message of the rank before, a backward pass that of the rank behind; on the last
#   rank, a backward pass needs its own forward pass.
# - returns: a list of whole numbers. First the microseconds until all ranks are done; then, for each rank, how many
#   of these it is idle.
# - In the race, with 4 ranks and 16 microbatches: 8 times as fast as given for all points.


# %% id="clock_given" role="given"
def orders(ranks, microbatches):
    """For each rank its work, in order: ("F" or "B", the number of the microbatch)."""
    all_work = []
    for rank in range(ranks):
        ahead = min(ranks - rank, microbatches)
        work = [("F", number) for number in range(ahead)]
        for number in range(microbatches):
            work.append(("B", number))
            if number + ahead < microbatches:
                work.append(("F", number + ahead))
        all_work.append(work)
    return all_work


def clock_slow(forward, backward, delay, microbatches):
    ranks = len(forward)
    waiting = [deque(work) for work in orders(ranks, microbatches)]
    there = {(0, "F", number): 0 for number in range(microbatches)}
    now, free, busy = 0, [0] * ranks, [0] * ranks
    while any(waiting):
        for rank in range(ranks):
            if not waiting[rank] or free[rank] > now:
                continue
            kind, number = waiting[rank][0]
            if there.get((rank, kind, number), now + 1) > now:
                continue
            waiting[rank].popleft()
            length = forward[rank] if kind == "F" else backward[rank]
            free[rank] = now + length
            busy[rank] += length
            if kind == "F" and rank == ranks - 1:
                there[rank, "B", number] = free[rank]
            elif kind == "F":
                there[rank + 1, "F", number] = free[rank] + delay
            elif rank:
                there[rank - 1, "B", number] = free[rank] + delay
        now += 1
    end = max(free)
    return [end, *(end - work for work in busy)]


def pipeline(ranks, microbatches, longest, delay, generator):
    forward, backward = torch.randint(1, longest + 1, (2, ranks), generator=generator).tolist()
    return forward, backward, delay, microbatches


def three_stages(generator, device):
    return pipeline(3, 5, 9, 2, generator)


def no_delay(generator, device):
    return pipeline(4, 6, 12, 0, generator)


def a_long_step(generator, device):
    forward, backward, delay, microbatches = pipeline(4, 16, 40, 30, generator)
    return [100 + one for one in forward], [200 + one for one in backward], delay, microbatches


# %% [markdown]
# <details><summary>Hint 1</summary>Nothing happens between two ends of work. When a piece of work can start follows from two times that are
# known before: which?</details>
# <details><summary>Hint 2</summary>Its rank's last end, and the arrival of what it needs. In which order can you go through all the work, so
# that both are known? Those that are not known yet can wait for the next round.</details>
# <details><summary>Hint 3</summary>The chapter's <code>timeline</code> does the first half. It knows nothing of delays, nor of ranks that
# differ.</details>


# %% id="clock" role="answer"
def clock(forward, backward, delay, microbatches):
    ### BEGIN SOLUTION
    ranks = len(forward)
    work = orders(ranks, microbatches)
    done, free = [0] * ranks, [0] * ranks
    ends = {
        "F": [[None] * microbatches for _ in range(ranks)],
        "B": [[None] * microbatches for _ in range(ranks)],
    }
    left = 2 * ranks * microbatches
    while left:
        for rank, pieces in enumerate(work):
            while done[rank] < len(pieces):
                kind, number = pieces[done[rank]]
                if kind == "F":
                    needed = ends["F"][rank - 1][number] if rank else -delay
                elif rank == ranks - 1:
                    needed = ends["F"][rank][number] - delay
                else:
                    needed = ends["B"][rank + 1][number]
                if needed is None:
                    break
                start = max(free[rank], needed + delay)
                free[rank] = ends[kind][rank][number] = start + (forward if kind == "F" else backward)[rank]
                done[rank] += 1
                left -= 1
    end = max(free)
    both = zip(forward, backward, strict=True)
    return [end, *(end - microbatches * (there + back) for there, back in both)]
    ### END SOLUTION


# %% id="clock_check" role="test"
check(clock, like=clock_slow, on=[three_stages, no_delay], points=1)


# %% id="clock_hidden" role="test"
# Hidden test: one rank, fewer microbatches than ranks, one slow rank, long messages. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_stage(generator, device):
    return pipeline(1, 4, 9, 5, generator)


def few_microbatches(generator, device):
    return pipeline(6, 2, 9, 1, generator)


def one_slow_rank(generator, device):
    forward, backward, delay, microbatches = pipeline(5, 9, 6, 3, generator)
    forward[2] += 30
    return forward, backward, delay, microbatches


def long_messages(generator, device):
    return pipeline(4, 12, 5, 70, generator)


check(clock, like=clock_slow, on=[one_stage, few_microbatches, one_slow_rank, long_messages], points=2)
### END HIDDEN TESTS

# %% id="clock_race" role="test"
race(clock, against=clock_slow, on=a_long_step, at_least={"cpu": 8}, points=3)

# %% [markdown]
# ## 5. The calculator
#
# *Medium, 35 minutes.* Bytes, memory and seconds of a step, for four ways to share a model: the table of section 7,
# for any model and any link. Keep it: it answers before you rent. The given version cuts every weight of every rank.
# Write `plan(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory)`.
#
# - `blocks`: a list with one list for each block, at least one: its weights, each `(cut, rows, columns)`, whole
#   numbers of at least 1; a block has at least one weight. `cut` is what tensor parallel does with it: `"column"`
#   cuts the rows (which are the outputs of an `nn.Linear`), `"row"` cuts the columns, `"none"` cuts nothing. A bias
#   or a norm is `("none", size, 1)`. All is cut as `torch.chunk` cuts, also where PyTorch's tensor parallel would
#   refuse.
# - `ranks`, `positions`, `width`, `microbatches`: whole numbers, at least 1. All ranks together compute `positions`
#   positions a step, and what goes from block to block has `width` numbers for each. `bandwidth` (bytes a second),
#   `flops` (operations a second), `memory` (bytes for each rank): numbers above 0.
# - returns: a dict. For each way a tuple `(sent, held, seconds)`: the bytes that the rank sends that sends most, the
#   bytes that the rank holds that holds most (weight, gradient and two means of Adam, all in `float32`), and the
#   seconds below. And `"best"`: the way that takes the fewest seconds of those that hold at most `memory` (the first
#   of equals, in the order below), or `None`. Numbers are compared to within rounding.
# - Of *n* ranks, an all-reduce of *b* bytes sends 2 (*n* - 1) / *n* · *b*, an all-gather or a reduce-scatter half of
#   it. All weights together compute 6 operations for each weight and position; `work` is that, divided by `ranks` and
#   `flops`; `travel` is `sent / bandwidth`.
#   - `"DDP"`: one all-reduce of all gradients. Seconds: the longer of `work` and `travel`.
#   - `"FSDP2"`: each weight has its rows cut. Two all-gathers and one reduce-scatter of every weight. While they
#     travel, all pieces are as large as the first one, filled up where they are not. Seconds: the longer of both.
#   - `"tensor parallel"`: for each weight cut as `"row"`, two all-reduces of `positions · width` numbers (one
#     forward, one backward). Seconds: the sum of both.
#   - `"pipeline"`: the blocks, in their order, are cut over the ranks; ranks that get none take no part. Over each
#     cut go `positions · width` numbers forward, and as many back. So a rank between two others sends two such
#     messages, with two stages each sends one, and one stage sends none. `work` is the 6 operations for the weights
#     of the largest stage and all positions, divided by `flops` alone, times `(microbatches + stages - 1) /
#     microbatches`. Seconds: the longer of both.
# - For the chapter's model, 4 ranks and 128 positions it says what the chapter counted (of tensor parallel: in the
#   row *one input*).
# - In the race, with 32 blocks and 64 ranks: 40 times as fast as given for all points.


# %% id="plan_given" role="given"
def cut_sizes(size, ranks):
    """How much of a size each rank gets."""
    sizes = [len(part) for part in torch.empty(size, device="meta").chunk(ranks)]
    return sizes + [0] * (ranks - len(sizes))


def plan_slow(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory):
    ring = (ranks - 1) / ranks
    passed = 4 * positions * width
    sent, held = dict.fromkeys(("DDP", "FSDP2", "tensor parallel", "pipeline"), 0.0), {}
    whole = [sum(rows * columns for _, rows, columns in block) for block in blocks]
    shards, slices = [0] * ranks, [0] * ranks
    for block in blocks:
        for kind, rows, columns in block:
            own = [part * columns for part in cut_sizes(rows, ranks)]
            sent["DDP"] += 2 * ring * 4 * rows * columns
            sent["FSDP2"] += 3 * ring * 4 * ranks * own[0]
            shards = [before + more for before, more in zip(shards, own, strict=True)]
            if kind == "row":
                own = [part * rows for part in cut_sizes(columns, ranks)]
                sent["tensor parallel"] += 2 * 2 * ring * passed
            elif kind == "none":
                own = [rows * columns] * ranks
            slices = [before + more for before, more in zip(slices, own, strict=True)]
    stages, first = [], 0
    for number in cut_sizes(len(blocks), ranks):
        stages.append(sum(whole[first : first + number]))
        first += number
    used = sum(stage > 0 for stage in stages)
    sent["pipeline"] = float(passed * min(2, used - 1))
    most = {"DDP": sum(whole), "FSDP2": max(shards), "tensor parallel": max(slices), "pipeline": max(stages)}
    result, best = {}, None
    for way, weights in most.items():
        held[way] = 16 * weights
        work, travel = 6 * sum(whole) * positions / ranks / flops, sent[way] / bandwidth
        if way == "pipeline":
            work = 6 * weights * positions / flops * (microbatches + used - 1) / microbatches
        seconds = work + travel if way == "tensor parallel" else max(work, travel)
        result[way] = sent[way], held[way], seconds
        if held[way] <= memory and (best is None or seconds < result[best][2]):
            best = way
    return result | {"best": best}


def a_block(width, hidden):
    return [
        ("none", width, 1),
        ("none", width, 1),
        ("column", hidden, width),
        ("column", hidden, width),
        ("row", width, hidden),
    ]


def the_chapters(generator, device):
    return [a_block(256, 512)] * 4, 4, 128, 256, 8, 1e9, 1e11, 10e6


def odd_sizes(generator, device):
    rows, columns = (
        4 * torch.randint(1, 10, (2,), generator=generator) + 1
    ).tolist()  # 4 ranks do not divide them
    blocks = [[("column", rows, columns), ("row", columns, rows), ("none", rows, 1)] for _ in range(5)]
    return blocks, 4, 100, columns, 6, 1e8, 1e10, 1e9


def a_large_model(generator, device):
    width, hidden = (64 * torch.randint(20, 60, (2,), generator=generator)).tolist()
    return [a_block(width, hidden) for _ in range(32)], 64, 4096, width, 32, 1e10, 1e14, 8e10


# %% [markdown]
# <details><summary>Hint 1</summary>Who holds most, if everything is cut as <code>torch.chunk</code> cuts? Always the same rank. How large is
# its part?</details>
# <details><summary>Hint 2</summary>Of a pipeline it need not be the first: blocks differ. How many blocks does a stage have, and how many stages
# are there then?</details>
# <details><summary>Hint 3</summary>Most of the given version's time goes for lists with an entry for each rank. Whole numbers are
# enough.</details>


# %% id="plan" role="answer"
def plan(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory):
    ### BEGIN SOLUTION
    whole, shard, piece, rows_cut, stages = 0, 0, 0, 0, []
    for block in blocks:
        before = whole
        for kind, rows, columns in block:
            size = rows * columns
            first = -(-rows // ranks) * columns
            whole += size
            shard += first
            piece += first if kind == "column" else size if kind == "none" else rows * -(-columns // ranks)
            rows_cut += kind == "row"
        stages.append(whole - before)
    each = -(-len(blocks) // ranks)
    stages = [sum(stages[begin : begin + each]) for begin in range(0, len(blocks), each)]
    ring, passed = 4 * (ranks - 1) / ranks, 4 * positions * width
    rate = 6 * positions / flops
    work = rate * whole / ranks
    bubble = (microbatches + len(stages) - 1) / microbatches
    facts = {
        "DDP": (2 * ring * whole, whole, work),
        "FSDP2": (3 * ring * ranks * shard, shard, work),
        "tensor parallel": (rows_cut * ring * passed, piece, work),
        "pipeline": (float(passed * min(2, len(stages) - 1)), max(stages), rate * max(stages) * bubble),
    }
    result = {}
    for way, (sent, weights, needed) in facts.items():
        both = needed, sent / bandwidth
        result[way] = sent, 16 * weights, sum(both) if way == "tensor parallel" else max(both)
    fitting = [way for way, (_, held, _) in result.items() if held <= memory]
    return result | {"best": min(fitting, key=lambda way: result[way][2], default=None)}
    ### END SOLUTION


# %% id="plan_check" role="test"
check(plan, like=plan_slow, on=[the_chapters, odd_sizes], points=2)


# %% id="plan_hidden" role="test"
# Hidden test: one rank, more ranks than blocks, blocks that differ, too little memory for any way. 3 points, when graded.
### BEGIN HIDDEN TESTS
def one_rank_for_all(generator, device):
    return [a_block(16, 24)] * 3, 1, 50, 16, 4, 1e8, 1e9, 1e8


def more_ranks_than_blocks(generator, device):
    return [a_block(30, 50)] * 5, 8, 64, 30, 3, 1e8, 1e10, 2e5


def blocks_that_differ(generator, device):
    return [a_block(24, 10 * number) for number in (1, 2, 9, 3, 1, 1, 2)], 3, 200, 24, 5, 1e7, 1e10, 5e5


def two_stages(generator, device):
    return [a_block(8, 9), a_block(8, 33)], 2, 32, 8, 1, 1e6, 1e8, 1e6


def too_little_memory(generator, device):
    return [a_block(64, 64)] * 4, 4, 64, 64, 4, 1e8, 1e10, 1000.0


check(
    plan,
    like=plan_slow,
    on=[one_rank_for_all, more_ranks_than_blocks, blocks_that_differ, two_stages, too_little_memory],
    points=3,
)
### END HIDDEN TESTS

# %% id="plan_race" role="test"
race(plan, against=plan_slow, on=a_large_model, at_least={"cpu": 40}, points=3)

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
def weighted(x):
    table = torch.mm(x, x.T)
    return torch.mm(table.softmax(1), x)


def largest(x):
    place = x.sum(1).argmax()
    return x[place.item()].half()


def two_ranks(x):
    left, right = x.chunk(2, 1)
    whole = torch.mm(left, left.T)
    whole += torch.mm(right, right.T)
    return whole.relu()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (weighted, largest, two_ranks)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>weighted</code> is of chapter 16, <code>largest</code> is of chapter 02,
# <code>two_ranks</code> is of chapter 22.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(two_ranks, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "weighted": {"operations": 3, "bytes": 8 * n * n + 4 * n * d, "syncs": 0},
        "largest": {"operations": 4, "bytes": 4 * n + 8 + 2 * d, "syncs": 1},
        "two_ranks": {"operations": 4, "bytes": 12 * n * n, "syncs": 0},
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
