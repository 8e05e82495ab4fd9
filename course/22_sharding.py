# %% [markdown]
# # 22 · Sharding a model
#
# Chapter 08 gave each process a copy of the model and a part of the data. A model that fits on no device must be cut
# itself. It can be cut across its weights, across its layers, or only between two steps. Each way sends other bytes
# at another time, and leaves a part of the memory on each device. This chapter counts both.
#
# The course measures the claims of five widely read articles, and here those of PyTorch's documentation and of a paper;
# their *F* numbers are listed in [the score](claims.ipynb). `compare` and `guess` are explained in
# [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - read a tensor's placement, and say what an operation makes of it, and which message it needs,
# - count the bytes that a step sends and the memory that a rank holds, for four ways to share a model,
# - draw a pipeline, and say how much of it is idle, and why more microbatches do not always help,
# - calculate from a link's bandwidth which way pays, before you rent it.
#
# **Time:** 55 minutes to read and run, 10 more for the part Further. **Needs:** CPU, four small processes,
# torch 2.7 or later. Chapter 08 says what ranks, all-reduce and DDP are.
#
# **Claims tested:** *F64* "`Shard(src_dim)` -> `Shard(dst_dim)`: `all_to_all`"; *F65* "as if it's a single-device
# program"; *F66* "FSDP reduces GPU memory footprint"; *F67* "a decomposition of DDP's all-reduce"; *F68* "not call
# `fully_shard()` only on the topmost root module"; *F69* "only one allreduce"; *F70* "further save activation
# memory"; *F71* "negligible when M ≥ 4 × K"; *F72* "bandwidth-limited clusters"; *F73* `reshard_after_forward` "can
# trade off memory and communication".

# %%
import inspect
import os
import re
import time
import timeit
from collections import deque
from itertools import pairwise
from pathlib import Path

import psutil
import torch
import torch.distributed as dist
import torch.nn.functional as F
from parts.sharding import (
    Block,
    FeedForward,
    Link,
    Ranks,
    Span,
    Traffic,
    draw_pipelines,
    gradients_alone,
    held,
    kept_for_backward,
    make_model,
    make_texts,
    off,
    passes,
    two_steps,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.flop_counter import FlopCounterMode

from autograder import behaviour, compare, costs, devices, fewer, guessed, picture, recall, verdicts, without

torch.set_num_threads(1)
print("devices here:", *devices(), "· processors:", os.cpu_count(), "· torch", torch.__version__)
recall("22", ..., ..., ...)

# %% [markdown]
# ## 1. Four ranks that do what a cell says
#
# `Ranks(4)` starts four processes that know each other through gloo. `@ranks.know` shows them a function of a cell,
# and `ranks.do(function)` lets all four run it at the same time, and gives what each of them returned. They know the
# same names of `torch.distributed` as this notebook.

# %%
began = time.perf_counter()
ranks = Ranks(4)


@ranks.know
def who():
    return {"rank": dist.get_rank(), "of": dist.get_world_size(), "process": os.getpid()}


print(f"{time.perf_counter() - began:.1f} s until all four have answered")
print(*(team := ranks.do(who)), sep="\n")

# %% [markdown]
# Four processes on two processors are good for counting, and bad for timing: they take turns. So this chapter
# counts messages and bytes, and times only what one process does. `Traffic` notes each collective that torch's
# dispatcher sees, and calculates what a rank sends if a ring carries it (chapter 08): for an all-reduce 2 · (n − 1) /
# n times the tensor. A ring's two halves are operations of their own. In an **all-gather** each rank brings a part,
# and all get the whole: (n − 1) / n times the whole. In a **reduce-scatter** each brings a whole, and gets its part
# of the sum: the same.
#
# On Linux there is a second opinion: the system says how many bytes a process has written, to its sockets, too. A whole
# tensor has 8 MB. How many times 8 MB does each of four ranks *write* for a reduce-scatter?

# %%
guess = ...


# %%
@ranks.know
def collective(kind):
    whole, part = torch.ones(2_000_000), torch.ones(500_000)
    run = {
        "all-reduce": lambda: dist.all_reduce(whole),
        "all-gather": lambda: dist.all_gather_into_tensor(whole, part),
        "reduce-scatter": lambda: dist.reduce_scatter_tensor(part, whole),
    }[kind]
    dist.barrier()
    with Traffic() as traffic:
        run()
    return traffic.sent / whole.nbytes, traffic.written and traffic.written / whole.nbytes


times_sent = {kind: ranks.do(collective, kind) for kind in ("all-reduce", "all-gather", "reduce-scatter")}
lines = []
for kind, found in times_sent.items():
    wrote = ", ".join("unknown" if written is None else f"{written:.2f}" for _, written in found)
    lines.append(f"{kind:14}: a ring sends {found[0][0]:.2f} times the tensor; the ranks wrote {wrote} times")
formula, wrote = times_sent["reduce-scatter"][0]
guessed("times 8 MB, for a reduce-scatter", guess, wrote or formula, *lines)

# %%
for kind, promised in (("all-reduce", 2 * 3 / 4), ("all-gather", 3 / 4), ("reduce-scatter", 3 / 4)):
    assert all(abs(sent - promised) < 0.01 for sent, _ in times_sent[kind])

if wrote:
    assert all(abs(written - 1.5) < 0.01 for _, written in times_sent["reduce-scatter"])

# %% [markdown]
# An all-reduce and an all-gather write what the formulas say. But for a reduce-scatter, gloo writes as much as for an
# all-reduce: twice the bytes. So a formula is about an algorithm, and not about a library. What follows gives the
# bytes of the formulas, and beside them what was written here.
#
# ## 2. Placements
#
# A **DTensor** is a tensor of which each rank has a piece. Its *placement* says which: `Shard(0)`, a part of
# dimension 0; `Replicate()`, all of it; `Partial()`, an addend of it, so that the sum over all ranks is the tensor.
# Operations run on the pieces. Where that is not enough, a message comes first.
#
# Nine rows over four ranks, `Shard(0)`. How many rows has the last rank?

# %%
guess = ...


# %%
@ranks.know
def piece(rows):
    mesh = init_device_mesh("cpu", (4,))
    placed = distribute_tensor(torch.zeros(rows, 2), mesh, [Shard(0)])
    return placed.placements, tuple(placed.shape), tuple(placed.to_local().shape)


print("9 rows: placements, shape of all, and of the first piece:", *ranks.do(piece, 9)[0])
rows_of = {rows: [own[0] for _, _, own in ranks.do(piece, rows)] for rows in (8, 9, 5, 2)}
guessed(
    "rows of the last rank", guess, rows_of[9][-1], *(f"{all} rows: {own}" for all, own in rows_of.items())
)

# %% [markdown]
# `Shard` cuts as `torch.chunk` does: as large as the first part for as long as there is something, and then nothing.
# So sizes that the ranks divide are worth much. With others, some pieces are smaller, or empty.
#
# ### What operations make of them
#
# `rows` is `Shard(0)`, `columns` is `Shard(1)`, `whole` is `Replicate()`, all of shape 8 × 8. (`S(0)`, `R` and
# `P(sum)` are short for the three placements.) How many of these nine lines send a message?

# %%
assert rows_of[9] == [len(part) for part in torch.zeros(9).chunk(4)] + [0]
LINES = [
    "rows @ whole",
    "whole @ columns",
    "columns @ rows",
    "columns @ rows + columns @ rows",
    "(columns @ rows).relu()",
    "rows.relu()",
    "rows.sum(0)",
    "rows.softmax(1)",
    "rows.softmax(0)",
]
guess = ...


# %%
@ranks.know
def operations(lines):
    mesh, x = init_device_mesh("cpu", (4,)), torch.randn(8, 8)
    kinds = {"rows": Shard(0), "columns": Shard(1), "whole": Replicate()}
    names = {name: distribute_tensor(x, mesh, [placement]) for name, placement in kinds.items()}
    found = {}
    for line in lines:
        with Traffic() as traffic:
            result = eval(line, names)
        found[line] = str(result.placements[0]), traffic.kinds
    return found


made = ranks.do(operations, LINES)[0]
lines = [f"{line:32} -> {placement:16} {sent or ''}" for line, (placement, sent) in made.items()]
guessed("lines with a message", guess, sum(bool(sent) for _, sent in made.values()), *lines)

# %% [markdown]
# **Why.** A product sums over the inner dimension. If that one is sharded on both sides, each rank has an addend:
# `Partial`. Sums of addends are addends, so `+` needs nothing. But relu of a sum is not the sum of relus: first the
# addends must be added up. For a softmax over the rows, DTensor gathers all of them (less would do: exercise 2).

# %%
assert not torch.equal(torch.tensor([1.0, -2.0]).relu().sum(), torch.tensor([1.0, -2.0]).sum().relu())
assert made["columns @ rows + columns @ rows"][1] == {} and made["(columns @ rows).relu()"][1]

# %% [markdown]
# You ask for another placement with `redistribute`. The documentation says which collective each way takes. A tensor
# of 640 kB goes from `Shard(0)` to `Shard(1)`: of its quarter, each rank must send three quarters. How many times as
# many bytes does it send here?

# %%
guess = ...


# %%
@ranks.know
def redistributed():
    mesh, x = init_device_mesh("cpu", (4,)), torch.ones(400, 400)
    ways = [(Shard(0), Replicate()), (Shard(0), Shard(1)), (Replicate(), Shard(0))]
    found = []
    for before, after in [*ways, (Partial(), Replicate()), (Partial(), Shard(0))]:
        make = DTensor.from_local if before.is_partial() else distribute_tensor
        placed = make(x, mesh, [before])
        with Traffic() as traffic:
            placed.redistribute(mesh, [after])
        kinds = [*traffic.kinds] or ["local chunking"]
        found.append((f"{before} -> {after}", kinds[0], traffic.sent))
    return found


text = " ".join(inspect.getdoc(DTensor.redistribute).split())
said = re.findall(r"\d\. ``\S+?`` -> ``\S+?``: (?:``)?(local chunking|\w+)", text)[:5]
ways = ranks.do(redistributed)[0]
least = 400 * 400 * 4 / 4 * 3 / 4
lines = [
    f"{way:46}: documented {documented:14}, here {kind:14} {sent / 1e3:6.0f} kB"
    for (way, kind, sent), documented in zip(ways, said, strict=True)
]
guessed("times what must travel, from Shard(0) to Shard(1)", guess, ways[1][2] / least, *lines)

# %%
moving = "it is not from one dimension to another on CPUs"
assert "does not support alltoall yet" in ranks.log.read_text(encoding="utf-8")
for number, ((way, kind, _), documented) in enumerate(zip(ways, said, strict=True)):
    side = {"unless": moving} if number == 1 else {"when": moving}
    behaviour("F64", f"{way} takes {documented}, as documented.", kind == documented, **side)

# %% [markdown]
# On CPUs it gathers everything, and throws most of it away. Its log says: "CPU process group does not support
# alltoall yet".
#
# Does gloo not?


# %%
@ranks.know
def all_to_all():
    given, received = torch.full((4, 1000), dist.get_rank()), torch.empty(4, 1000, dtype=torch.int64)
    dist.all_to_all_single(received, given)
    return received[:, 0].tolist()


print("first numbers that rank 2 received:", ranks.do(all_to_all)[2])
assert ranks.do(all_to_all)[2] == [0, 1, 2, 3]

# %% [markdown]
# It does. So the detour is DTensor's. What it does on GPUs no cell here can show.
#
# DTensor's page promises to "write distributed program as if it's a **single-device program**". Same numbers, then?


# %%
@ranks.know
def program_there():
    mesh, x, w = init_device_mesh("cpu", (4,)), torch.randn(64, 64), torch.randn(64, 64)
    right = ((x @ w).relu() @ w.T).softmax(1).sum(0)
    x, w = distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(w, mesh, [Shard(1)])
    got = ((x @ w).relu() @ w.T).softmax(1).sum(0)
    return (got.full_tensor() - right).abs().max().item()


@ranks.know
def dropped(seeds):
    mesh = init_device_mesh("cpu", (4,))
    shard, whole = (distribute_tensor(torch.ones(1000), mesh, [one]) for one in (Shard(0), Replicate()))
    torch.manual_seed(0)
    kept = F.dropout(shard).full_tensor()
    torch.manual_seed(0)
    same = torch.equal(kept, F.dropout(torch.ones(1000)))
    torch.manual_seed(seeds[dist.get_rank()])
    return same, len(kept.view(4, 250).unique(dim=0)), F.dropout(whole).to_local().sum().item()


error, found = ranks.do(program_there)[0], ranks.do(dropped, [1, 2, 3, 4])
same, patterns, _ = found[0]
assert "DTensor random operators may not have complete support" in ranks.log.read_text(encoding="utf-8")
drawn = "no operation draws random numbers on CPUs"
print(f"products, relu, softmax and a sum: off by {error:.0e}")
print(f"dropout of 4 × 250 numbers: as on one device: {same}; different patterns among the four: {patterns}")
print("four seeds, Replicate(): the sums on the four ranks", [total for _, _, total in found])
behaviour("F65", "Products, relu, softmax and sums give the numbers of one device.", error < 1e-4, when=drawn)
behaviour("F65", "Dropout with the same seed gives the numbers of one device.", same, unless=drawn)

# %% [markdown]
# Each rank drew for its own piece, from the same seed. With other seeds, what is called `Replicate()` is not even the
# same everywhere. (It warns: "DTensor random operators may not have complete support on cpu device mesh".)
#
# ## 3. FSDP2: whole only while it computes
#
# `fully_shard` makes every parameter a DTensor with `Shard(0)`. Before a block computes, its weights are
# all-gathered; then they are thrown away (but not those of the outermost module). The backward pass gathers them
# again, and a reduce-scatter gives each rank its part of the summed gradients. Each rank has its own samples, as with
# DDP. Here is what we train. (`two_steps`, in `parts/sharding.py`, makes a step and compares its gradients with those
# of one process, then makes one more and counts.)

# %%
print(inspect.getsource(FeedForward))
print(inspect.getsource(Block))
weights = sum(weight.numel() for weight in make_model().parameters())
print(f"four blocks: {weights:,} weights, {4 * weights / 1e6:.1f} MB")


# %%
@ranks.know
def data_parallel(way, hidden=512, texts=8):
    model, x = make_model(hidden=hidden), make_texts(texts)
    right, mesh = gradients_alone(model, x), init_device_mesh("cpu", (4,))
    if way == "DDP":
        model = DistributedDataParallel(model)
    else:
        keep = {"reshard_after_forward": False} if way == "FSDP2, kept" else {}
        for block in model:
            fully_shard(block, mesh=mesh, **keep)
        fully_shard(model, mesh=mesh)
        assert all(weight.placements == (Shard(0),) for weight in model.parameters())
    return two_steps(model, x.chunk(4)[dist.get_rank()], right)


# %% [markdown]
# Weights, gradients and Adam's two means: with DDP every rank holds all of them. How many times fewer bytes does a
# rank hold with FSDP2, between two steps?

# %%
guess = ...

# %%
found = {way: ranks.do(data_parallel, way) for way in ("DDP", "FSDP2", "FSDP2, kept")}
assert all(one["off"] < 1e-3 and one["held"] == each[0]["held"] for each in found.values() for one in each)


def in_all(one):
    return sum(one["held"].values())


lines = [
    f"{way:12}: " + ", ".join(f"{what} {size / 1e6:.2f} MB" for what, size in each[0]["held"].items())
    for way, each in found.items()
]
ddp, sharded, kept = (found[way][0] for way in found)
guessed("times fewer bytes held", guess, in_all(ddp) / in_all(sharded), *lines)

# %%
fewer("F66", "bytes that a rank holds between two steps", without=in_all(ddp), following=in_all(sharded))

# %% [markdown]
# ### What it sends
#
# The price is bytes. The tutorial says: "FSDP can be considered a decomposition of DDP's all-reduce into
# reduce-scatter and all-gather operations" (*F67*). Then it would send as many bytes as DDP. How many times what DDP
# sends in a step does FSDP2 send, by the formulas?

# %%
guess = ...

# %%
lines = [
    f"{way:12}: {each[0]['kinds']}, {each[0]['sent'] / 1e6:5.2f} MB by the formulas, "
    f"{(each[0]['written'] or 0) / 1e6:5.2f} MB written"
    for way, each in found.items()
]
guessed("times what DDP sends", guess, sharded["sent"] / ddp["sent"], *lines)

# %%
once = "the weights stay gathered until the backward pass"
said = "sends what DDP sends, to within a percent."
behaviour("F67", f"FSDP2 as it is {said}", abs(sharded["sent"] / ddp["sent"] - 1) < 0.01, unless=once)
behaviour("F67", f"FSDP2 without resharding {said}", abs(kept["sent"] / ddp["sent"] - 1) < 0.01, when=once)
assert abs(2 * sharded["sent"] - 3 * kept["sent"]) < 1

# %% [markdown]
# **Why.** Two halves of an all-reduce, and one all-gather more: the weights are thrown away after the forward pass,
# so the backward pass needs them again. Without this (`reshard_after_forward=False`, the cause taken away) the bytes
# are DDP's. What was written here is more, because of gloo's reduce-scatter (section 1).
#
# ### What is whole meanwhile
#
# We look at each product: how many bytes of weights are whole then. `fully_shard` on each block and
# then on the model, or on the model alone: how many times more bytes are whole at once?

# %%
guess = ...


# %%
@ranks.know
def whole_weights(way):
    model, mesh = make_model(), init_device_mesh("cpu", (4,))
    keep = {"reshard_after_forward": False} if way == "each block, kept" else {}
    for block in model if way != "the model alone" else ():
        fully_shard(block, mesh=mesh, **keep)
    fully_shard(model, mesh=mesh)
    seen = []

    def look(*_):
        seen.append(sum(weight.nbytes for weight in model.parameters() if not isinstance(weight, DTensor)))

    for block in model:
        block.feed_forward.w2.register_forward_hook(look)
        block.feed_forward.w2.register_full_backward_pre_hook(look)
    model(make_texts(2)).square().mean().backward()
    return seen


whole = {
    way: ranks.do(whole_weights, way)[0] for way in ("each block", "each block, kept", "the model alone")
}
lines = [f"{way:17}: {', '.join(f'{size / 1e6:.1f}' for size in sizes)} MB" for way, sizes in whole.items()]
guessed("times more whole weights", guess, max(whole["the model alone"]) / max(whole["each block"]), *lines)

# %%
most = {way: max(sizes) for way, sizes in whole.items()}
what = "bytes of weights that are whole at once"
fewer("F68", what, without=most["the model alone"], following=most["each block"])
traded = most["each block, kept"] > most["each block"] and kept["sent"] < sharded["sent"]
behaviour("F73", "Weights that stay whole take more memory, and save messages.", traded)

# %% [markdown]
# The model alone is one group: it is gathered at once, and held whole. (What is gathered ahead for the next block is not
# counted here.)
#
# ## 4. Tensor parallel: cut inside a product
#
# Now all ranks have the *same* samples, and each has a part of every product. Cut the first weights by their outputs
# (*column-wise*): each rank gets a part of the hidden numbers, and needs no other. Cut the last weights by their inputs
# (*row-wise*): each rank gets addends of the result. By hand, in this process:

# %%
block, x = Block(8, 16), torch.randn(2, 3, 8)
feed = block.feed_forward
parts = zip(feed.w1.weight.chunk(4, 0), feed.w3.weight.chunk(4, 0), feed.w2.weight.chunk(4, 1), strict=True)
addends = [(F.silu(x @ w1.T) * (x @ w3.T)) @ w2.T for w1, w3, w2 in parts]
print("largest difference from the whole:", (sum(addends) - feed(x)).abs().max().item())
assert torch.allclose(sum(addends), feed(x), atol=1e-6)

# %% [markdown]
# `parallelize_module` does it with DTensors. The tutorial on a feed-forward layer like ours: "so that there is only
# one `allreduce` communication happening at the end of all the three layers" (*F69*). How many all-reduces does *one
# block* need in a whole step, with its backward pass?

# %%
guess = ...


# %%
@ranks.know
def tensor_parallel(way, texts=8, places=16, hidden=512):
    model, x, mesh = make_model(hidden=hidden), make_texts(texts, places), init_device_mesh("cpu", (4,))
    right = gradients_alone(model, x)
    layout = Shard(1) if way == "sequence" else Replicate()
    once = PrepareModuleInput(input_layouts=(layout,), desired_input_layouts=(Replicate(),))
    plan = {"feed_forward": once} if way != "plain" else {}
    plan |= {"feed_forward.w1": ColwiseParallel(), "feed_forward.w3": ColwiseParallel()}
    plan |= {"feed_forward.w2": RowwiseParallel(output_layouts=layout)}
    if way == "sequence":
        plan["norm"], x = SequenceParallel(), x.chunk(4, 1)[dist.get_rank()].clone()
    for block in model:
        parallelize_module(block, mesh, plan)
    with torch.no_grad(), Traffic() as forward:
        model(x)
    found = {"forward": forward.kinds, "kept": kept_for_backward(model, x)}
    return found | two_steps(
        model, x, right, scale=1 / 4 if way == "sequence" else 1
    )  # a quarter of the mean


parallel = {way: ranks.do(tensor_parallel, way)[0] for way in ("plain", "one input")}
lines = [
    f"{way:10}: forward {one['forward']}, whole step {one['kinds']}, for 4 blocks; off by {one['off']:.0e}"
    for way, one in parallel.items()
]
guessed("all-reduces of one block", guess, parallel["plain"]["kinds"]["all_reduce"] // 4, *lines)

# %%
alone = "only the forward pass is counted"
behaviour(
    "F69",
    "A forward pass has one all-reduce a block.",
    parallel["plain"]["forward"] == {"all_reduce": 4},
    when=alone,
)
behaviour(
    "F69", "A step has one all-reduce a block.", parallel["plain"]["kinds"] == {"all_reduce": 4}, unless=alone
)
assert all(one["off"] < 1e-3 for one in parallel.values())
assert parallel["plain"]["kinds"] == {"all_reduce": 12} and parallel["one input"]["kinds"] == {
    "all_reduce": 8
}

# %% [markdown]
# **Why.** Going back, the input's gradient is a sum over all ranks: an all-reduce again. And as the tutorial's plan
# is, `w1` and `w3` take the input each for itself, so each sends its own addend. Taken away: with
# `PrepareModuleInput` the input is made a DTensor once, both addends are added up before they travel, and one of the
# two all-reduces goes.
#
# ### When it sends more
#
# These messages hold activations and no weights, and grow with the texts. From how many
# positions a step on (all texts together) does tensor parallel (with one input) send more than FSDP2 did?

# %%
guess = ...

# %%
few, many = (ranks.do(tensor_parallel, "one input", 8, places)[0]["sent"] for places in (16, 64))
each = (many - few) / (8 * 48)
crossing = round(sharded["sent"] / each)
lines = (
    f"tensor parallel, {8 * 16} positions: {few / 1e6:.2f} MB; {8 * 64} positions: {many / 1e6:.2f} MB",
    f"FSDP2, however many: {sharded['sent'] / 1e6:.2f} MB",
)
guessed("positions a step", guess, crossing, *lines)
assert abs(many / few - 4) < 1e-6

# %% [markdown]
# Few positions: tensor parallel. Many positions: weights are the smaller thing to send.
#
# ## 5. A pipeline: cut between the layers
#
# Each rank has one block, and gives its result to the next. While a rank waits, it is idle: the *bubble*. So the
# batch is cut into microbatches. We measure a block's forward and backward pass in this process, for a batch of 32
# texts, and let a simulation put them in order. **GPipe** does all forward passes, and then all backward passes.
# **1F1B** goes back as soon as it can.


# %%
def gpipe(stage, stages, microbatches):
    return [(kind, number) for kind in "FB" for number in range(microbatches)]


def one_forward_one_backward(stage, stages, microbatches):
    ahead = min(stages - stage, microbatches)
    order = [("F", number) for number in range(ahead)]
    for number in range(microbatches):
        order.append(("B", number))
        if number + ahead < microbatches:
            order.append(("F", number + ahead))
    return order


def timeline(schedule, microbatches, forward, backward, stages=4):
    """Each rank does its work in order, each piece as soon as what it needs is there."""
    waiting = [deque(schedule(stage, stages, microbatches)) for stage in range(stages)]
    clocks, spans, ends = [0.0] * stages, [], {}
    while any(waiting):
        for stage, work in enumerate(waiting):
            while work:
                kind, number = work[0]
                before = (stage - 1, "F", number) if kind == "F" else (stage + 1, "B", number)
                if 0 <= before[0] < stages and before not in ends:
                    break
                start = max(clocks[stage], ends.get(before, 0.0))
                clocks[stage] = ends[stage, kind, number] = start + (forward if kind == "F" else backward)
                spans.append(Span(stage, kind, number, start, clocks[stage]))
                work.popleft()
    return spans


def idle(spans):
    whole = 4 * max(span.end for span in spans)
    return 1 - sum(span.end - span.start for span in spans) / whole


BATCH = 32
COUNTS = (1, 2, 4, 8, 16, 32)
texts = torch.randn(BATCH, 16, 256)
measured = {count: passes(Block(256, 512), texts[: BATCH // count]) for count in COUNTS}
print(
    *(f"{n:2} microbatches: forward {f:6.2f} ms, backward {b:6.2f} ms" for n, (f, b) in measured.items()),
    sep="\n",
)
drawn = {"GPipe, 1 microbatch": timeline(gpipe, 1, *measured[1])}
for name, schedule in (("GPipe", gpipe), ("1F1B", one_forward_one_backward)):
    drawn[f"{name}, 8 microbatches"] = timeline(schedule, 8, *measured[8])
picture(*draw_pipelines(drawn))

# %% [markdown]
# The first rank is ready for its second microbatch when the last has none yet. For *p* ranks of equal speed and *m*
# microbatches, (p − 1) / (m + p − 1) of the time is idle, where messages take none. GPipe's paper: "we found the
# bubble overhead to be negligible when M ≥ 4 × K" (*F71*; *K* ranks). With 16 microbatches on our four: how many
# percent?

# %%
guess = ...

# %%
bubbles = {count: idle(timeline(gpipe, count, *measured[count])) for count in COUNTS}
lines = [f"{n:2} microbatches: {share:5.1%} idle; formula {3 / (n + 3):5.1%}" for n, share in bubbles.items()]
guessed("percent idle", guess, 100 * bubbles[16], *lines)

# %%
assert all(abs(share - 3 / (n + 3)) < 1e-6 for n, share in bubbles.items())
behaviour(
    "F71", "With four times as many microbatches as ranks, less than a twentieth is idle.", bubbles[16] < 0.05
)

# %% [markdown]
# (For "negligible" we took a twentieth. The paper's own reason is partly another: it computes forward passes again,
# and can do so in the bubble.) So take more microbatches? The batch stays the same, so they become smaller. Of 1, 2,
# 4, 8, 16 and 32 microbatches: which number gives the shortest step, with the times measured above?

# %%
guess = ...

# %%
steps = {n: max(span.end for span in timeline(gpipe, n, *both)) for n, both in measured.items()}
whole = measured[1]
ideal = {n: max(span.end for span in timeline(gpipe, n, whole[0] / n, whole[1] / n)) for n in COUNTS}
lines = [
    f"{n:2} microbatches: {steps[n]:6.1f} ms; if halves took half the time: {ideal[n]:6.1f} ms"
    for n in COUNTS
]
guessed("microbatches with the shortest step", guess, min(steps, key=steps.get), *lines)

# %%
few, many = (costs(Block(256, 512), texts[:number]).operations for number in (1, BATCH))
assert few == many and min(ideal, key=ideal.get) == COUNTS[-1]

# %% [markdown]
# **Why.** A pass has a price that does not shrink: its calls. Taken away (the last column),
# the most microbatches would win.
#
# ### The real one
#
# `torch.distributed.pipelining` does it with our ranks. A microbatch that went forward and not yet back keeps its
# activations. How many of 8 microbatches does the first rank keep at most, with 1F1B?

# %%
guess = ...


# %%
@ranks.know
def piped(kind, hidden=512, texts=8, places=16):
    model, x, rank = make_model(hidden=hidden), make_texts(texts, places), dist.get_rank()
    right = gradients_alone(model, x)
    block, counts = model[rank], [0, 0]
    schedules = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}
    stage = PipelineStage(block, rank, 4, torch.device("cpu"))
    schedule = schedules[kind](stage, 8, loss_fn=lambda out, target: out.square().mean())
    given = ([x] if rank == 0 else []), ({"target": x} if rank == 3 else {})
    schedule.step(*given[0], **given[1])  # the first one finds out about shapes
    error = off(block, {name.removeprefix(f"{rank}."): one for name, one in right.items()})

    def forth(_, __, out):
        counts[0] += 1
        counts[1] = max(counts)
        out.register_hook(lambda _: counts.__setitem__(0, counts[0] - 1))

    block.register_forward_hook(forth)
    optimizer = torch.optim.Adam(block.parameters())
    optimizer.step()
    optimizer.zero_grad()
    with Traffic() as traffic:
        schedule.step(*given[0], **given[1])
    told = {"kinds": traffic.kinds, "sent": traffic.sent, "written": traffic.written}
    return told | {"off": error, "most": counts[1], "held": held(block, optimizer)}


pipes = {kind: ranks.do(piped, kind) for kind in ("GPipe", "1F1B")}
lines = [
    f"{kind:5} rank {rank}: {one['most']} microbatches kept, {one['kinds']}, {one['sent'] / 1e6:.2f} MB"
    for kind, each in pipes.items()
    for rank, one in enumerate(each)
]
guessed("microbatches kept by the first rank", guess, pipes["1F1B"][0]["most"], *lines)

# %%
assert all(one["off"] < 1e-3 for each in pipes.values() for one in each)
assert [one["most"] for one in pipes["GPipe"]] == [8] * 4

# %% [markdown]
# In the simulation, where messages take no time, both have the same bubble; here only the memory differs. And a rank
# sends activations once, and gradients once, at a cut: no sums, no weights.
#
# ### Which one sends less
#
# The documentation names "bandwidth-limited clusters" (*F72*), and "for example, the weight all-gather of FSDP".
# Beside our model, one with a 32nd of the hidden numbers, and four times as many texts:

# %%
narrow = {
    "FSDP2": ranks.do(data_parallel, "FSDP2", 16, 32)[0]["sent"],
    "pipeline": max(one["sent"] for one in ranks.do(piped, "1F1B", 16, 32)),
}
wide = {"FSDP2": sharded["sent"], "pipeline": max(one["sent"] for one in pipes["1F1B"])}
heavy = "the weights are more bytes than the activations at the cuts"
for name, sent, side in (("512 hidden numbers", wide, "when"), ("16 hidden numbers", narrow, "unless")):
    print(f"{name}: FSDP2 {sent['FSDP2'] / 1e6:.2f} MB, pipeline at most {sent['pipeline'] / 1e6:.2f} MB")
    said = f"With {name}, no rank of the pipeline sends as much as one of FSDP2."
    behaviour("F72", said, sent["pipeline"] < sent["FSDP2"], **{side: heavy})

# %% [markdown]
# ## 6. What hides behind what
#
# Bytes are not time. FSDP2's messages can leave early: the next block's weights do not depend on this block's result.
# So they can travel meanwhile. Here the processors that compute carry the messages, too (chapter 08), so there is
# little to see. So we pretend a link: a message takes its bytes / bandwidth, in another thread that sleeps. Here it
# is as fast as the processor: the weights of a layer arrive in about the time that a layer takes.

# %%
LAYERS = [torch.randn(512, 512) / 512**0.5 for _ in range(8)]


def waiting(x, link):
    for weight in LAYERS:
        x = x @ link.gather(weight).result()
    return x


def ahead(x, link):
    coming = link.gather(LAYERS[0])
    for following in [*LAYERS[1:], None]:
        weight = coming.result()
        if following is not None:
            coming = link.gather(following)
        x = x @ weight
    return x


x = torch.randn(256, 512)
layer_seconds = min(timeit.repeat(lambda: x @ LAYERS[0], number=1, repeat=20))
balanced = LAYERS[0].nbytes / layer_seconds
print(f"a layer takes {1e3 * layer_seconds:.1f} ms; so our link has {balanced / 1e6:,.0f} MB/s")

# %% [markdown]
# Eight layers. How many times as fast is it to ask for the next layer's weights before this one is computed?

# %%
guess = ...


# %%
def through(link):
    return lambda generator, device: (torch.randn(256, 512, generator=generator), link)


compare(
    "sharding: eight layers over a pretended link",
    {"ask when needed": waiting, "ask one layer ahead": ahead},
    inputs=through(Link(balanced)),
    guess=guess,
    only="cpu",
    clock="wall",
    because=without("the link's time", inputs=through(Link(1e15))),
)

# %% [markdown]
# **Why.** Waiting and computing take the longer of both instead of their sum; but the first message hides behind
# nothing. Taken away (a link without time), hardly anything is gained.
#
# ## 7. Which one?
#
# What was counted on four ranks, with the same model and the same texts:

# %%
tensor = parallel["one input"]
COUNTED = {
    "DDP": (ddp["sent"], in_all(ddp)),
    "FSDP2": (sharded["sent"], in_all(sharded)),
    "tensor parallel": (tensor["sent"], in_all(tensor)),
    "pipeline": (wide["pipeline"], in_all(pipes["1F1B"][0])),
}
for way, (sent, holds) in COUNTED.items():
    print(f"{way:16} sends {sent / 1e6:6.2f} MB a step, holds {holds / 1e6:6.2f} MB between two steps")

# %% [markdown]
# And on real links? The rest of this section is **calculated and not measured**: by the formulas of this chapter, the
# bandwidths of data sheets ([NVLink](https://www.nvidia.com/en-us/data-center/h100/) has 900 GB/s for both directions
# together, 400 Gb/s InfiniBand and 100 and 10 Gb/s Ethernet say it in their names), and the arithmetic that an H100
# reached in this course's record (in TF32; with more of it, links must be faster in proportion).

# %%
record = Path("../data/gpu/nvidia-h100-80gb-hbm3.md").read_text(encoding="utf-8")
flops = 1e12 * float(re.search(r"Arithmetic: (\d+) TFLOP/s", record)[1])
LINKS = {
    "NVLink": 900e9 / 2,
    "InfiniBand": 400e9 / 8,
    "Ethernet, 100 Gb/s": 100e9 / 8,
    "Ethernet, 10 Gb/s": 10e9 / 8,
}


def seconds_of(way, positions, bandwidth, n=8, width=4096, hidden=11008, blocks=32, size=2):
    """Seconds of arithmetic, and of messages, in a step: ``positions`` of all ranks together, no overlap."""
    weights = blocks * (4 * width**2 + 3 * width * hidden)
    activations = positions * width * size
    sent = {
        "DDP": 2 * (n - 1) / n * weights * size,
        "FSDP2": 3 * (n - 1) / n * weights * size,
        "tensor parallel": 4 * blocks * 2 * (n - 1) / n * activations,
        "pipeline": 2 * activations,
    }[way]
    return 6 * weights * positions / n / flops, sent / bandwidth


print(f"calculated for 8 GPUs of {flops / 1e12:.0f} TFLOP/s: messages in percent of the arithmetic")
for positions in (8 * 1024, 8 * 16 * 1024):
    print(f"\n{positions:,} positions a step" + "".join(f"{link:>20}" for link in LINKS))
    for way in COUNTED:
        shares = [seconds_of(way, positions, bandwidth) for bandwidth in LINKS.values()]
        print(f"{way:27}" + "".join(f"{travel / work:19.0%} " for work, travel in shares))

# %% [markdown]
# Above 100 percent, no overlap can hide it. Each GPU has a link of its own here, and the pipeline's bubble is left
# out. The model has 32 blocks, with weights in 16 bits; tensor parallel has four all-reduces a block here, because a
# transformer's block has an attention part, too.
#
# FSDP2 on 100 Gb/s Ethernet: from how many positions *for each GPU* on do its messages take no longer than the
# arithmetic?

# %%
guess = ...

# %%
enough = {}
for link, bandwidth in LINKS.items():
    work, travel = seconds_of("FSDP2", 8, bandwidth)
    enough[link] = round(travel / work)
lines = [f"{link:20}: {number:8,} positions" for link, number in enough.items()]
guessed("positions for each GPU", guess, enough["Ethernet, 100 Gb/s"], *lines)

# %%
with FlopCounterMode(display=False) as counter:
    Block(256, 512)(torch.randn(8, 256, requires_grad=True)).sum().backward()
assert counter.get_total_flops() == 6 * (3 * 256 * 512) * 8  # for each weight and position
assert abs(travel / work - 7 / 8 * flops / bandwidth) < 1

# %% [markdown]
# **Why.** 6 operations for each weight and position against 3 times 2 bytes for each weight: the weights cancel. What
# is left is operations a second / bytes a second, as in chapter 00's *limit*, but for the link. It does not depend on
# the model; of *n* GPUs it is (n − 1) / n. Tensor parallel is the other way round: its messages grow with the
# positions as its arithmetic does, so more positions do not help it. In the table above, only NVLink is fast enough.
#
# ## Further
#
# You can skip this part: the exercises do not need it. It is about what tensor parallel does not cut or cannot, about
# links that are too slow, about what FSDP2 asks for early, and about more ranks than there are processes.
#
# ### The part that was not cut
#
# Norms and what stands beside the blocks are computed by all ranks alike, on all positions. With `SequenceParallel`
# each rank does it for a part of the positions. "To further save activation memory", says the tutorial (*F70*). How
# many times less does a rank keep for the backward pass?

# %%
guess = ...

# %%
parallel["sequence"] = ranks.do(tensor_parallel, "sequence")[0]
assert parallel["sequence"]["off"] < 1e-3
lines = [
    f"{way:10}: kept {one['kept'] / 1e6:.2f} MB; {one['kinds']}, {one['sent'] / 1e6:.2f} MB by the formulas"
    for way, one in parallel.items()
]
sequence = parallel["sequence"]
guessed("times less kept", guess, tensor["kept"] / sequence["kept"], *lines)

# %%
fewer("F70", "bytes kept for the backward pass", without=tensor["kept"], following=sequence["kept"])

# %% [markdown]
# Each all-reduce became an all-gather and a reduce-scatter, so a ring sends the same bytes.
#
# ### Sizes that the ranks do not divide
#
# What happens with 509 hidden numbers, which four ranks do not divide?

# %%
try:
    ranks.do(tensor_parallel, "plain", 8, 16, 509)
except RuntimeError as error:
    refused = str(error)
    print("tensor parallel:", re.search(r"a and b must .*", refused)[0])
odd = ranks.do(data_parallel, "FSDP2", 509)[0]
print(
    f"FSDP2: off by {odd['off']:.0e}; {odd['sent'] / 1e6:.2f} MB, and {sharded['sent'] / 1e6:.2f} MB with 512"
)

# %% [markdown]
# Between the products, pieces are plain tensors, and the last layer takes them for equally large. FSDP2 fills the
# last piece up on its way.
#
# ### A slow link
#
# The eight layers of section 6, over a link of an eighth of that speed. How many times as fast is it to ask ahead?

# %%
guess = ...

# %%
compare(
    "sharding: eight layers over a slow pretended link",
    {"ask when needed": waiting, "ask one layer ahead": ahead},
    inputs=through(Link(balanced / 8)),
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Overlap saves the shorter of the two at most. Where the link needs eight times as long, that is little.
#
# ### What FSDP2 asks for early
#
# Does FSDP2 ask ahead on our ranks? We count how many all-gathers it has asked for when each block begins:


# %%
@ranks.know
def asked_for(early):
    model, mesh = make_model(), init_device_mesh("cpu", (4,))
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for block, following in pairwise(model) if early else ():
        block.set_modules_to_forward_prefetch([following])
    found = []
    with Traffic() as traffic:
        for block in model:
            block.feed_forward.register_forward_pre_hook(lambda *_: found.append(len(traffic.messages)))
        model(make_texts(2))
    return found


for early in (False, True):
    print("set_modules_to_forward_prefetch" if early else "as it is", ranks.do(asked_for, early)[0])
assert ranks.do(asked_for, False)[0] == [1, 2, 3, 4] and ranks.do(asked_for, True)[0] == [2, 3, 4, 4]

# %% [markdown]
# In the forward pass, as it is, it asks for nothing early. On a GPU it need not, [say its
# notes](https://docs.pytorch.org/docs/stable/notes/fsdp.html): gathers have a stream of their own, and overlap with
# what was asked for before them. The second line changes the order itself. On a CPU there are no streams.
#
# ### 64 ranks without 64 processes
#
# The backend `"fake"` sends nothing, and says that all went well. Numbers are wrong, but messages are the same. So
# one process can count what a rank of 64 would send. How many times what FSDP2 sends on 4 ranks does it send on 64?

# %%
guess = ...

# %%
from torch.testing._internal.distributed.fake_pg import FakeStore

counted = {}
for n in (4, 64):
    dist.init_process_group("fake", rank=0, world_size=n, store=FakeStore())
    model = make_model()
    for block in model:
        fully_shard(block, mesh=init_device_mesh("cpu", (n,)))
    fully_shard(model, mesh=init_device_mesh("cpu", (n,)))
    with Traffic() as traffic:
        model(make_texts(1)).square().mean().backward()
    counted[n] = traffic.sent
    own = sum(weight.to_local().nbytes for weight in model.parameters())
    print(
        f"{n:2} ranks: {traffic.kinds}, {traffic.sent / 1e6:.2f} MB sent, {own / 1e6:.2f} MB of weights held"
    )
    dist.destroy_process_group()
guessed("times what it sends on 4 ranks", guess, counted[64] / counted[4])

# %%
assert abs(counted[4] - sharded["sent"]) < 1

# %% [markdown]
# Memory shrinks with the ranks; bytes grow as (n − 1) / n, to three times the weights at most. (The number of steps
# of the ring grows, too: chapter 08.)
#
# ## Summary
#
# **Chapter 00's routine here:** predict bytes and memory by formulas; count them with four small processes; calculate seconds
# from the link; verify that gradients are those of one process. Only then rent.
#
# | you have | do | because |
# |---|---|---|
# | a model that fits, and many samples | DDP | two thirds of FSDP2's bytes, behind the backward pass (chapter 08) |
# | a model that fits, its optimiser does not | FSDP2, each block for itself | weights, gradients and means are shared out |
# | room for the weights, a slow link | `reshard_after_forward=False` | one all-gather less for each block |
# | few positions for each GPU | tensor parallel, inside NVLink | its messages are activations |
# | norms and residuals that fill the memory | `SequenceParallel` | the same bytes travel, and fewer are kept |
# | a slow link between machines | a pipeline across it | activations at the cuts only |
# | a bubble | more microbatches, measured | each pass has a price that does not shrink |
# | a pipeline short of memory | 1F1B | a rank keeps one microbatch for each rank from itself to the last |
# | a model that fits on no device | FSDP2; where its bytes take too long, a pipeline or tensor parallel beside it | the tables of section 7 |
# | a plan | counts on four ranks, or on `"fake"` ones | messages can be counted without the hardware |

# %%
own = sum(psutil.Process(one["process"]).memory_full_info().uss for one in team)
print(f"memory of the four ranks at the end, without what they share: {own / 1e6:,.0f} MB")
ranks.close()
verdicts("F64", "F65", "F66", "F67", "F68", "F69", "F70", "F71", "F72", "F73")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/22_sharding/22_sharding.ipynb). A norm that nobody has whole, a loss
# over sharded classes, messages for another placement, a pipeline's clock, and the calculator of section 7 to keep.
