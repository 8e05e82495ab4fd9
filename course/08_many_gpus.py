# %% [markdown]
# # 08 · Many GPUs
#
# Two GPUs hold two copies of a model. Each works on a part of the batch. Then they must agree on one
# gradient. How they agree decides whether the second GPU was worth its price.
#
# "The articles" are five widely read articles on fast PyTorch from 2017–2021, whose claims this course
# measures; *B5* is the course's number for a claim, and `claims.ipynb` lists them all. `compare` times code,
# and `costs` counts what it asks of torch; [chapter 00](00_measuring.ipynb) explains both.
#
# **You will be able to**
# - start one process for each device, and say who is who,
# - give each process its own part of the data, and get the gradients of the whole batch,
# - count what travels in a step, and make it travel less often,
# - tell beforehand when a second process cannot help.
#
# **Time:** 45 minutes to read and run, 15 more for the part Further. **Needs:** CPU, two processes.
# Everything here runs live: the two talk over the loopback interface. Two cells use GPUs where there are two:
# the training program of section 4, and a step with `DataParallel` in the part Further.
#
# **Claims tested:** *B5* "`nn.DataParallel` for several GPUs"; *B6* "`DistributedDataParallel` with
# `init_process_group("nccl")`".

# %%
import copy
import inspect
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
import torch.nn.functional as F
from parts import team as ranks
from parts import train_ddp
from parts.ring import buckets_picture, ring_all_reduce, ring_picture
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from torch.utils.flop_counter import FlopCounterMode

from autograder import (
    article_code,
    behaviour,
    compare,
    costs,
    devices,
    documented,
    guessed,
    picture,
    recall,
    verdicts,
)

print("devices here:", *devices(), "· processors:", os.cpu_count(), "· GPUs:", torch.cuda.device_count())
recall("08", ..., ..., ...)

# %% [markdown]
# ## 1. One batch, two halves
#
# A loss is usually a *mean* over the batch. Split a batch of 32 into two halves of 16. Compute the gradient
# of each half alone, with the same weights. What is the mean of the two gradients?

# %%
torch.manual_seed(0)
model = nn.Linear(8, 1)
x, y = torch.randn(32, 8), torch.randn(32, 1)


def gradient(x, y):
    return torch.autograd.grad(F.mse_loss(model(x), y), model.weight)[0]


halves = (gradient(x[:16], y[:16]) + gradient(x[16:], y[16:])) / 2
print("largest difference from the whole batch:", (halves - gradient(x, y)).abs().max().item())
assert torch.allclose(halves, gradient(x, y), atol=1e-6)

# %% [markdown]
# The gradient of the whole batch, up to rounding. That is all there is to *data parallelism*: same weights
# everywhere, different samples, average the gradients, and every copy takes the same step.
#
# It holds for two reasons. The output for a sample depends on that sample alone (section 5 has a layer for
# which it does not). And the halves are equally large. Split 24 + 8 and the plain mean is wrong: 8 samples
# get as much say as 24. Weights by sample counts mend it.

# %%
large, small = gradient(x[:24], y[:24]), gradient(x[24:], y[24:])
print("plain mean, off by   ", ((large + small) / 2 - gradient(x, y)).abs().max().item())
print("weighted mean, off by", ((24 * large + 8 * small) / 32 - gradient(x, y)).abs().max().item())
assert not torch.allclose((large + small) / 2, gradient(x, y), atol=1e-3)
assert torch.allclose((24 * large + 8 * small) / 32, gradient(x, y), atol=1e-6)

# %% [markdown]
# `DistributedDataParallel` (DDP) takes the plain mean, as section 5 will show. So keep the parts equal.

# %% [markdown]
# ## 2. Two lines that do not say who is who
#
# The article shows two lines: `init_process_group("nccl")`, then `DistributedDataParallel(model)`. Run them here:

# %%
numbered = "each process has a rank, the world size and an address (torchrun gives all three)"
messages = {}
for name, line in {
    "nccl": lambda: dist.init_process_group("nccl"),
    "gloo": lambda: dist.init_process_group("gloo"),
    "DDP": lambda: nn.parallel.DistributedDataParallel(model),
}.items():
    try:
        line()
    except (ValueError, RuntimeError) as error:
        messages[name] = str(error).split(": ")[-1]
        print(f"{name}: {messages[name]}")
behaviour(
    "B6",
    "The two lines start in a process that nobody has numbered.",
    not {"gloo", "DDP"} & set(messages),
    unless=numbered,
)

# %% [markdown]
# *Whichever* library carries the messages (NCCL between GPUs, Gloo between CPUs), a process must know
#
# - its **rank**: its number among all processes, from 0,
# - the **world size**: how many there are,
# - an address where they meet.
#
# Let us give all three, for a world of two. What happens?

# %%
with socket.create_server(("127.0.0.1", 0)) as free:
    address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
start = time.perf_counter()
try:
    dist.init_process_group("gloo", init_method=address, rank=0, world_size=2, timeout=timedelta(seconds=1))
except dist.DistError as error:
    print(f"after {time.perf_counter() - start:.0f} s: {error}")
assert not dist.is_initialized()

# %% [markdown]
# It waits for the other one. Nobody has started it: one program is one process. (We allowed one second. This
# waiting counts in full seconds, and ends when they are *more* than allowed: after two.) Without our
# `timeout` it would wait much longer:

# %%
help_text = " ".join(inspect.getdoc(dist.init_process_group).split())
default = "Default value is 10 minutes for NCCL and 30 minutes for other backends"
assert default in help_text
print(f"timeout: {default}.")

# %% [markdown]
# So a forgotten process looks like a program that hangs.
#
# `torchrun` sets all three for every process (section 4), and then the two lines do start. What they never
# say is **which device** a process should use, and **which samples** are its own. DDP decides neither. First the samples.

# %% [markdown]
# ## 3. Which samples are mine?
#
# Every process runs the same program, so every process opens the same data set. Without further care each
# reads *all* of it. `DistributedSampler` deals the indices out like cards. It can be tried without a second
# process, because it takes rank and world size as arguments.


# %%
def hands(samples, ranks, epoch=0, **settings):
    """The indices that each rank gets."""
    dealt = []
    for rank in range(ranks):
        sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank, **settings)
        sampler.set_epoch(epoch)
        dealt.append(list(sampler))
    return dealt


print("no sampler, any rank:", [int(sample) for sample in DataLoader(range(10), batch_size=None)])
for rank, hand in enumerate(hands(10, 2, shuffle=False)):
    print(f"sampler, rank {rank}:     ", hand)
zero, one = hands(10, 2)
assert sorted(zero + one) == list(range(10))

# %% [markdown]
# Ten samples for *four* ranks do not come out even. How many samples do the four ranks get, all together?

# %%
guess = ...

# %%
filled, left_out = hands(10, 4, shuffle=False), hands(10, 4, shuffle=False, drop_last=True)
guessed(
    "samples that four ranks get",
    guess,
    sum(map(len, filled)),
    str(filled),
    f"With drop_last=True {sum(map(len, left_out))}: {left_out}",
)
assert len({*map(len, filled)}) == len({*map(len, left_out)}) == 1

# %% [markdown]
# Every hand has the same length: ranks take their steps together, and one without a batch would keep the others waiting.
# So the sampler deals some samples twice, or with `drop_last=True` leaves some out. In training that matters little. In
# *evaluation* it is wrong: an accuracy over samples of which some count twice is not the accuracy over the data set.
#
# One more trap. The shuffle is seeded with the seed plus the epoch's number, so that all ranks shuffle
# alike. The sampler must be told the epoch:

# %%
same_order = hands(10, 2, epoch=0)[0]
print("rank 0, epoch 0        ", same_order)
print("rank 0, epoch 1        ", hands(10, 2, epoch=1)[0])
sampler = DistributedSampler(range(10), num_replicas=2, rank=0)
print("set_epoch forgotten    ", list(sampler), "in every epoch")
assert list(sampler) == list(sampler) == same_order != hands(10, 2, epoch=1)[0]

# %% [markdown]
# ## 4. The program that starts
#
# Here is the whole of it: `parts/train_ddp.py`. `torchrun` starts it as often as you say, and puts rank,
# world size and address into each process's environment. `main` does the rest:

# %%
print(inspect.getsource(train_ddp.main))

# %%
folder = tempfile.TemporaryDirectory()
# As on the command line: torchrun --standalone --nproc-per-node 2 train_ddp.py FOLDER
torchrun = [sys.executable, "-m", "torch.distributed.run"]  # with the Python that runs this notebook
command = [*torchrun, "--standalone", "--nproc-per-node", "2", train_ddp.__file__, folder.name]
start = time.perf_counter()
done = subprocess.run(command, env=ranks.own_environment(), capture_output=True, text=True, timeout=120)
print(f"torchrun took {time.perf_counter() - start:.1f} s, code {done.returncode}", done.stderr[-2000:])
reports = [json.loads(Path(folder.name, f"rank{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]
for report in reports:
    print(report)

# %% [markdown]
# Much of that time is start-up: the launcher and then each process run `import torch`. You pay it once per run.
#
# The two ranks began with different weights (`before`). DDP's constructor sent those of rank 0 to all (`after`). Each
# rank has `seen` half of the samples of two epochs. And after six steps the weight is still the same on both (`last`).

# %%
first, second = reports
assert first["before"] != second["before"]
assert first["after"] == second["after"] == first["before"]
assert first["seen"] == second["seen"] == 96
assert first["last"] == second["last"]

# %% [markdown]
# Same as each other; but are they *right*? We train one model in this process, alone. Each of its batches
# holds the 16 samples of rank 0 and the 16 of rank 1.

# %%
alone = train_ddp.make_model(seed=0)
x, y = train_ddp.make_data()
optimizer = torch.optim.SGD(alone.parameters(), lr=0.05)
for epoch in range(2):
    zero, one = hands(96, 2, epoch)
    for i in range(0, 48, 16):
        batch = zero[i : i + 16] + one[i : i + 16]
        optimizer.zero_grad()
        F.mse_loss(alone(x[batch]), y[batch]).backward()
        optimizer.step()

together = torch.load(Path(folder.name, "plain.pt"), map_location="cpu")
differences = [(value - together[name]).abs().max().item() for name, value in alone.state_dict().items()]
print("largest difference of any weight:", max(differences))
behaviour(
    "B6",
    "Two processes under torchrun, with a device and a sampler, get the weights of one with the whole batch.",
    max(differences) < 1e-5 and first["last"] == second["last"],
    when=numbered,
)

# %% [markdown]
# `batch_size` in the program is the batch *per process*. On two processes the model sees batches of 32, and
# takes half as many steps in an epoch. The learning rate may need another value.
#
# ### The prefix
#
# Rank 0 saved the weights twice. Load the first file into a plain model:

# %%
try:
    alone.load_state_dict(torch.load(Path(folder.name, "wrapped.pt")))
except RuntimeError as error:
    print(str(error)[:230], "…")

wrapped = torch.load(Path(folder.name, "wrapped.pt"))
print("\nwrapped:", list(wrapped), "\nplain:  ", list(together))
assert alone.load_state_dict(together)
assert all(name.startswith("module.") for name in wrapped)

# %% [markdown]
# DDP is a module with your model inside, under the name `module`. Save `model.module.state_dict()`, and the file
# fits everywhere. Save it on one rank only: two processes that write one file at the same time can spoil it.

# %% [markdown]
# ## 5. A team that stays
#
# To time steps we need two ranks that stay alive and do what we ask. `parts/team.py` starts them, this time without
# `torchrun`. It has no secret: it sets environment variables, and starts a process for each rank. These four are needed.
# (`torchrun` can also restart processes after a failure, and it works across machines. So use it for real work.) What we
# ask for by name, as with `team.do("two lines")`, is a function in that file; `tasks` there lists them all.

# %%
print(ranks.who_is_who(rank=1, ranks=2, port=29500))
team = ranks.Team()
print("ranks:", sorted(team.ranks))

# %% [markdown]
# Do they compute the right thing? The gradients of the whole batch in one process, against those of two
# processes with half of it each, for three networks and three ways: `together` (one part for each rank) and
# `four_parts`, without and with `no_sync` (section 10). And how far off are they with parts of 24 and 8 samples? (All
# errors are relative to the largest gradient.)

# %%
own_part = "each rank works on its own, equally large part of the batch"
off = {net: team.do(f"{net}, gradients_off") for net in ("convolutions", "wide", "deep")}
for net, found in off.items():
    print(f"{net:13}", {way: f"{error:.0e}" for way, error in found.items()})
right = max(max(found.values()) for found in off.values()) < 1e-4
behaviour("B6", "DDP's gradients are those of the whole batch.", right, when=own_part)

uneven = team.do("convolutions, uneven")
print(f"\n24 + 8 samples: off by {uneven:.0%}")
behaviour(
    "B6", "DDP's gradients are those of the whole batch, for 24 + 8 samples.", uneven < 1e-4, unless=own_part
)

# %% [markdown]
# With 24 + 8 samples DDP is wrong: it takes the plain mean. (A rank can make up for it in its loss: multiply it by the
# rank's own count and the number of ranks, divide by the count of all.) And without a sampler? Our ranks have what
# `torchrun` would have told them. So the article's two lines run (with `"gloo"`, because there need not be a
# GPU). Six samples, an ordinary `DataLoader`: which of them does each rank read?

# %%
article_code(
    "B6",
    "the two lines alone, in two numbered processes with an ordinary DataLoader, which share six samples",
    lambda: team.do("two lines"),
    right=lambda seen: not set(seen[0]) & set(seen[1]),
)
print("rank 0 and rank 1 read:", *team.do("two lines"))

# %% [markdown]
# Both read everything. No error, no warning: two processes do the work of one, twice.
#
# ### A layer that mixes the samples
#
# BatchNorm divides by the spread *of the batch*. Each rank knows only its half. With equal halves, by how
# many percent of the largest gradient are DDP's gradients off?

# %%
guess = ...

# %%
mixed = team.do("batch norm, gradients_off")["together"]
guessed("percent that the gradients are off", guess, 100 * mixed)

# %%
no_mixing = "no layer takes statistics over its part of the batch, as BatchNorm does (SyncBatchNorm does not)"
behaviour("B6", "The gradients of convolutions and of linear layers are right.", right, when=no_mixing)
behaviour("B6", "The gradients are right with BatchNorm, too.", mixed < 1e-4, unless=no_mixing)
documented(
    "B6",
    "SyncBatchNorm takes its statistics over all ranks.",
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html",
)
print("running means apart after a step, and after the next forward pass:", team.do("running means"))
print(team.do("SyncBatchNorm"))

# %% [markdown]
# Each half is normalised by statistics of its own. This is not an error, but another computation: that of
# batches of 16. With one or two pictures on each GPU such statistics are worth little.
# `nn.SyncBatchNorm.convert_sync_batchnorm(model)`, before DDP wraps it, takes the statistics over all ranks.
# That costs a small message in each such layer. It works on GPUs only, as its answer here says.
#
# The buffers tell the rest. Each rank moves its running mean by its own half. Then the next forward pass
# begins with rank 0 *sending its buffers to all*, and what the others have seen is lost. All ranks must take
# part in this message, also in evaluation. So let rank 0 evaluate alone with `model.module`, never with
# `model`: it would wait. (`forward_sync_buffers=False` switches the message off, says
# [DDP's documentation](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html);
# in older versions it is `broadcast_buffers=False`.)

# %% [markdown]
# ## 6. The ring
#
# The gradients are summed by an *all-reduce*: every rank brings a tensor, every rank gets the sum. Nobody
# collects all of them. Instead, the tensor is cut into as many pieces as there are ranks, and in every step
# each rank passes *one piece* to its neighbour. Here are three ranks with three pieces, played in this
# process. An arrow is a piece that travels; what leaves at the bottom comes in at the top.

# %%
picture(*ring_picture([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0]]))
print(inspect.getsource(ring_all_reduce))

# %% [markdown]
# All ranks send in every step. With two ranks each sends its tensor once: one half
# to add, one half to hand round. With 64 ranks, how many times its own tensor does each rank send?

# %%
guess = ...

# %%
sent = {}
for n in (2, 3, 8, 64):
    buffers = [torch.ones(6400) for _ in range(n)]
    sizes = [len(piece) for piece in buffers[0].tensor_split(n)]
    sent[n] = (
        sum(sizes[i] for moves in ring_all_reduce(buffers) for sender, _, i in moves if sender == 0) / 6400
    )
    assert all(buffer.eq(n).all() for buffer in buffers)
lines = (f"{n:2} ranks: each sends {times:.2f} times its tensor." for n, times in sent.items())
guessed("times its tensor, with 64 ranks", guess, sent[64], *lines)

# %% [markdown]
# 2 · (n − 1) / n times, never more than twice. The number of *steps* grows with the ranks, the bytes hardly.
#
# Look at the picture once more. Each piece begins its way at another rank, so each is added up in another
# order. That can be seen, because sums of floating-point numbers depend on the order:

# %%
buffers = [torch.full((6,), value) for value in (1e8, 1.0, -1e8)]
for _ in ring_all_reduce(buffers):
    pass
print("three ranks bring six times 1e8, 1 and -1e8; sums:", buffers[0].tolist())
assert buffers[0].tolist() == [0, 0, 0, 0, 1, 1]

# %% [markdown]
# So the last bits of a gradient depend on *where in a message* it travels.
#
# ## 7. What a message costs
#
# Sixty gradients of 1,000 numbers each, summed over two ranks. Either one all-reduce for each, or all of them
# copied into one tensor (a *bucket*), one all-reduce, and copied back. The bytes are the same.

# %%
print(inspect.getsource(ranks.one_call_each), inspect.getsource(ranks.one_call), sep="\n")

# %% [markdown]
# How many times faster is the bucket?

# %%
guess = ...

# %%
compare(
    "60 small gradients, two ranks",
    {
        "one all-reduce each": lambda device: team.do("many small, one call each"),
        "one bucket": lambda device: team.do("many small, one call"),
    },
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# *Times faster* is the median of the ratios of runs made one after the other. So it can differ a little from
# the ratio of the two printed medians. Where its interval contains 1, this run shows no difference.
#
# **Why.** A message has a price of its own, whatever its size: the ranks must meet, system calls are made,
# threads wake up. We ask the team for one all-reduce at a time:

# %%
message = {int(size): seconds for size, seconds in team.do("message").items()}
for size, seconds in message.items():
    print(f"{size:>12,} bytes: {seconds * 1e6:>9,.0f} µs, {size / seconds / 1e6:>8,.1f} MB/s")
assert max(message.values()) / min(message.values()) < max(message) / min(message) / 10

# %% [markdown]
# From 4 to 40,000 bytes the time grows little, compared with the bytes (and it jumps about: two processes must be
# woken). Only large messages are paid by the byte. So a rough model is
#
# *time = start-up + bytes / bandwidth*, once for each call.
#
# It tells you what to look at, and not how many milliseconds. A message of a size between those of the list, or
# one in a program, can take several times as long as the model says. Sixty calls take longer than sixty start-ups
# of this list. Before each message of the list the ranks met, and that was not timed. So the list leaves out how
# long they wait for each other, and sixty calls in a row contain it. Between GPUs the two numbers are others; the
# shape of the model is the same.
#
# All timings in this chapter are wall-clock times (`clock="wall"`), because two processes or two threads work. They
# change with what else your machine does. When `compare` times the team, they contain the way from the notebook to
# the ranks and back.
#
# ### Large gradients
#
# Three gradients of a million numbers each: 12 MB. How many times faster is one bucket?

# %%
guess = ...

# %%
compare(
    "3 large gradients, two ranks",
    {
        "one all-reduce each": lambda device: team.do("few large, one call each"),
        "one bucket": lambda device: team.do("few large, one call"),
    },
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Nothing gained, perhaps something lost. Two start-ups are saved of a time that the bytes decide, and a
# bucket costs two more copies of 12 MB. A bucket is for small gradients.
#
# ## 8. Buckets in DDP
#
# DDP makes such buckets for you. It fills them in the order in which gradients become ready, the last layer
# first, and sends each as soon as it is full. From the second step on, a bucket is closed when it holds 25 MiB, the
# first one at 1 MiB already. `bucket_cap_mb` sets one size for all.
#
# A network of 60 small layers has 120 gradients. With a tiny cap, each is sent alone. How many times faster is the default?

# %%
guess = ...

# %%
compare(
    "DDP, one step of 60 small layers",
    {
        "one gradient in a bucket": lambda device: team.do("one gradient in a bucket"),
        "the default": lambda device: team.do("deep, together"),
    },
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# **Why.** 120 start-ups against one. Let us count the messages. And let us look at the buckets of a network
# with two layers of 1024 × 1024, four megabytes each, and a small last layer:

# %%
messages = [len(team.do(task)[1]) for task in ("buckets, deep, one gradient each", "buckets, deep")]
print("messages in a step of the 60 layers: one gradient in a bucket {}, the default {}".format(*messages))
assert messages == [120, 1]
found = {"default": team.do("buckets"), "bucket_cap_mb=25": team.do("buckets 25")}
for setting, steps in found.items():
    for number, sizes in enumerate(steps, 1):
        print(f"{setting}, step {number}: {[f'{size / 1e6:.2f} MB' for size in sizes]}")
    assert sum(steps[0]) == sum(steps[1])
assert len(found["default"][1]) > len(found["bucket_cap_mb=25"][1])

# %% [markdown]
# In the first step DDP does not know yet in which order the gradients come, and takes one bucket for all. After it, it
# makes the buckets anew. (So leave the first step out when you time it.) A gradient is never cut in two: that is why
# the first bucket of the default is larger than 1 MiB.
#
# ### Buckets over time
#
# **Why not one bucket for all?** Because a full bucket travels [while the backward pass goes
# on](https://docs.pytorch.org/docs/stable/notes/ddp.html). We put a watch into both ranks, and draw one step of a
# network of five such layers, for three sizes of bucket.

# %%
picture(*buckets_picture(team.do("timelines")))

# %% [markdown]
# One bucket for all is full when the backward pass is over: nothing hides its journey. Small buckets leave
# early, and most of their journey is over in time. Only the last bucket, with the gradients of the *first*
# layer, can hide behind nothing. So small buckets hide more, and large ones save start-ups.
#
# Now look at the *end* of the three steps. Does it come earlier with smaller buckets? A few milliseconds in one step say
# little, and on this kind of machine it may come later. The messages are carried by the very processors that compute, so the backward pass
# becomes longer meanwhile: see when the last gradients are ready. GPUs have links of their own for messages; there the
# overlap can pay, which no cell here can show.
#
# The gradients are copied into the buckets and back. With `gradient_as_bucket_view=True` they stay *in* the
# buckets after the step, and do not take memory twice. In how many blocks of memory do the six gradients (three
# weights, three biases) of the network with two wide layers lie?

# %%
blocks = {"default": team.do("blocks"), "gradient_as_bucket_view=True": team.do("blocks, as views")}
print(blocks)
assert blocks == {"default": 6, "gradient_as_bucket_view=True": 2}

# %% [markdown]
# In two: the two buckets above.
#
# ## 9. Does a second process pay?
#
# A network of two convolutions, a batch of 32 pictures of 32 × 32. One process works through all 32 with one
# thread. Or with two threads. Or two processes take 16 each and average their gradients. How many times
# faster are the two processes than the one thread?

# %%
guess = ...

# %%
compare(
    "DDP: convolutions, 32 pictures",
    {
        "one process": lambda device: team.do("convolutions, alone", ranks=[0]),
        "one process, two threads": lambda device: team.do("convolutions, alone_with_two_threads", ranks=[0]),
        "two processes, DDP": lambda device: team.do("convolutions, together"),
    },
    guess=guess,
    only="cpu",
    clock="wall",
    seconds=2.0,
)

# %% [markdown]
# **Why.** Let us count what travels and what is computed in a step with the batch of 32, for this network and
# for one with wide layers:

# %%
networks = {"convolutions": ranks.convolutions(), "wide layers": ranks.wide()}
batches = {"convolutions": torch.randn(32, 3, 32, 32), "wide layers": torch.randn(32, 1024)}
gradient_bytes = {}
for name, network in networks.items():
    with FlopCounterMode(display=False) as counter:
        network(batches[name]).sum().backward()
    gradient_bytes[name] = sum(4 * parameter.numel() for parameter in network.parameters())
    print(
        f"{name:12}: {gradient_bytes[name] / 1e3:7,.0f} kB of gradients,",
        f"{counter.get_total_flops() / 1e9:.1f} GFLOP",
    )
assert gradient_bytes["wide layers"] > 10 * gradient_bytes["convolutions"]

# %% [markdown]
# The convolutions send some kilobytes and share some gigaflops. How much remains of the factor of two is up to your
# machine: are there two idle cores, two halves of one, or none to spare? Two *threads* of one process share such work
# without any message; where they gain, there is a second core to be had. What DDP then gains less is its own price: its
# work around each step, two processes that must meet, and a cache that both use. (If another program holds one of the
# cores, threads wait for each other after every operation, and can be several times slower than one.) So on one CPU, DDP
# is rarely the way to go faster. It is a way to use a second *device*, or a second machine.
#
# ### More to send, less to compute
#
# Now the wide layers. How many times faster are two processes? (Two rows more, for later: half of the batch in
# one process; and DDP with the all-reduce left out. It does all its other work; its gradients are of no use.)

# %%
guess = ...

# %%
wide_steps = compare(
    "DDP: wide layers, 32 rows",
    {
        "one process": lambda device: team.do("wide, alone", ranks=[0]),
        "one process, two threads": lambda device: team.do("wide, alone_with_two_threads", ranks=[0]),
        "one process, half of the batch": lambda device: team.do("wide, alone_with_half", ranks=[0]),
        "two processes, no messages": lambda device: team.do("wide, no messages"),
        "two processes, DDP": lambda device: team.do("wide, together"),
    },
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Two processes save at most what one process saves with half of the batch. If the gradients travel longer than that,
# and nothing hides the journey, you lose. The model of section 7 estimates the journey (`wide_steps` holds the
# `samples` of the comparison):

# %%
size = max(message)
bandwidth = size / message[size]
journey = gradient_bytes["wide layers"] / bandwidth
wide_times = {
    name: median(wide_steps.samples["cpu"].seconds(name)) for name in wide_steps.samples["cpu"].blocks
}
half = wide_times["one process, half of the batch"]
whole = wide_times["one process"]
print(f"half of the batch in one process: {half * 1e3:.1f} ms; all of it: {whole * 1e3:.1f} ms")
print(f"{gradient_bytes['wide layers'] / 1e6:.1f} MB at {bandwidth / 1e6:,.0f} MB/s: {journey * 1e3:.1f} ms")
print(f"sum: {(half + journey) * 1e3:.1f} ms; measured: {wide_times['two processes, DDP'] * 1e3:.1f} ms")

# %% [markdown]
# Half of the batch does not take half of the time: for 16 rows as for 32, all weights must be read and all
# gradients written. So there was little to save, and the journey alone takes longer than that. Nor is it the whole
# loss: look at the row *no messages*. Where it is below 1, two processes would lose even with free messages. DDP copies
# the gradients into its buckets and back, and both ranks share one memory. Two devices with memories of their own keep
# the journey, but not that contest.
#
# Compare two times before you rent the second GPU: *what half of the batch saves* and *bytes of gradients /
# bandwidth*. A larger batch for each device helps, because the work grows with it and the message does not.
# Gradients in 16 bits halve the message (a [communication
# hook](https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html) does it). Or you send it less often.
#
# ## 10. `no_sync`: send less often
#
# The batch that you want does not fit into memory. So you take it in four parts, let `.grad` add up (chapter
# 03), and take one step. DDP does not know your plan: it averages after *every* backward pass. `with
# model.no_sync():` around all but the last says: not yet.

# %%
print(inspect.getsource(ranks.Training.four_parts_no_sync))

# %% [markdown]
# How many times faster is the step with the wide layers?

# %%
guess = ...

# %%
four_parts = compare(
    "DDP: four parts, one step",
    {
        "all-reduce after each part": lambda device: team.do("wide, four_parts"),
        "no_sync for three of four": lambda device: team.do("wide, four_parts_no_sync"),
    },
    guess=guess,
    only="cpu",
    clock="wall",
    seconds=1.5,
)

# %% [markdown]
# **Why.** [One journey of the
# gradients](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html) instead of
# four. The result is the same, because a mean of sums is the sum of the means; section 5 has compared both ways with
# one process.
#
# In section 9 each rank took its 16 samples in one part, with one journey, too:

# %%
in_parts = median(four_parts.samples["cpu"].seconds("no_sync for three of four"))
print(f"one part:             {wide_times['two processes, DDP'] * 1e3:.1f} ms")
print(f"four parts, no_sync:  {in_parts * 1e3:.1f} ms")

# %% [markdown]
# Each part reads all weights and adds to all gradients, however few samples it holds. For wide layers that is most of
# the work, so take parts of them only if the batch does not fit into memory. (Layers with few weights and much
# arithmetic lose less, and can gain, where a small part stays in the cache: compare the next table with the
# convolutions of section 9.)
#
# The forward pass must stand inside `no_sync` too: DDP prepares there what the backward pass will do.

# %%
advice = inspect.getdoc(nn.parallel.DistributedDataParallel.no_sync)
print(" ".join(advice.split(".. warning::")[1].split()))
assert "forward pass should be included" in advice

# %% [markdown]
# ### Small gradients
#
# The gradients of the convolutions are some kilobytes. How many times faster is their step with `no_sync`?

# %%
guess = ...

# %%
compare(
    "DDP: four parts, one step, small gradients",
    {
        "all-reduce after each part": lambda device: team.do("convolutions, four_parts"),
        "no_sync for three of four": lambda device: team.do("convolutions, four_parts_no_sync"),
    },
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Less than for the wide layers: the bytes are hardly worth mentioning. What is gained is more than three start-ups of
# the list in section 7. It may be waiting: an all-reduce is a meeting, and the faster rank waits there for the slower
# one.
#
# ### A rank that does not come
#
# An all-reduce needs *all* ranks. One that has fewer batches, or that takes another branch, leaves the
# others waiting. Here rank 1 stays away, and the time-out is one second instead of many minutes:

# %%
waited = team.do("missing rank")
print(waited)
assert "Timed out" in waited

# %% [markdown]
# This is why the sampler makes all hands equally long, and why `if rank == 0:` may stand around a
# `torch.save`, but never around a backward pass.

# %% [markdown]
# ## Further
#
# You can skip this part. It is for those whose model does not fit on one device, and for those who meet
# `DataParallel` in older code, and want to know why it was left behind.
#
# ### When one device cannot hold it: FSDP
#
# DDP keeps *all* weights, all gradients and all the optimiser's numbers on every device. Where they do not
# fit, `torch.distributed.fsdp.fully_shard` (FSDP) leaves each rank a part of them. A layer's weights are
# gathered just before they are needed, and of the summed gradients each rank gets its part only. More has to
# travel, and less memory is needed. With DDP, the wide layers' weights take 8.4 MB on each rank. How many MB
# does each of two ranks keep with FSDP?

# %%
guess = ...

# %%
if torch.__version__ < "2.7":
    print(f"fully_shard works on a CPU since torch 2.7; this is {torch.__version__}")
else:
    held, sharded_off = team.do("sharded")
    with_ddp = f"With DDP: {gradient_bytes['wide layers'] / 1e6:.2f} MB"
    guessed("MB on each of two ranks, with FSDP", guess, held / 1e6, with_ddp)
    assert 2 * held == gradient_bytes["wide layers"] and sharded_off < 1e-4
print(inspect.getsource(ranks.sharded))
team.close()

# %% [markdown]
# ### Why `DataParallel` was left behind
#
# `nn.DataParallel(model)` needs only one line: no `torchrun`, no ranks. One process drives all GPUs. Without
# a GPU it wraps your model and does nothing at all, without a word:

# %%
wrapper = nn.DataParallel(nn.Linear(8, 1))
print("devices in use:", wrapper.device_ids)
print(
    "its own documentation:",
    " ".join(inspect.getdoc(nn.DataParallel).split(".. warning::")[1].split()[:12]),
    "…",
)
assert len(wrapper.device_ids) == torch.cuda.device_count()

# %% [markdown]
# In *every* step it sends all weights from the first GPU to the others, builds a new twin of the model on
# each, runs one Python thread for each, collects all outputs on the first GPU, and sums all gradients
# there. DDP keeps a copy on each device; only gradients travel. What does that cost?
#
# - **When.** The weights must arrive before the forward pass can start. And the gradients travel when *all*
#   of them are there (below). DDP sends buckets while the backward pass goes on.
# - **Python.** All threads share one interpreter, which runs the code of one thread at a time.
# - **Memory.** The first GPU also holds all outputs, and usually the loss.
#
# The number of bytes need *not* be the difference. If the GPUs pass them on to each other, the weights leave the first
# one once and the gradients enter it once, however many GPUs there are. A ring all-reduce moves as much at each GPU, or
# more: with *n* of them each sends 2 (*n* - 1) / *n* times the gradients (section 6). Of 2 that is once, of 8 it is 1.75
# times.

# %%
replicate = inspect.getsource(sys.modules["torch.nn.parallel.replicate"])
apply = inspect.getsource(sys.modules["torch.nn.parallel.parallel_apply"])
print([line.strip() for line in replicate.splitlines() if "Broadcast.apply" in line])
print([line.strip() for line in apply.splitlines() if "threading.Thread" in line])

# %% [markdown]
# *One* autograd function broadcasts all weights. When does its backward part run? We put such a function
# before three layers, and note what happens.

# %%
events = []


class Send(torch.autograd.Function):
    """Stands for DataParallel's Broadcast: all weights go through one function."""

    @staticmethod
    def forward(ctx, *weights):
        return tuple(weight.clone() for weight in weights)

    @staticmethod
    def backward(ctx, *gradients):
        events.append("all travel")
        return gradients


weights = [torch.randn(4, 4, requires_grad=True) for _ in range(3)]
x = torch.randn(2, 4)
for number, weight in enumerate(Send.apply(*weights), 1):
    x = x @ weight
    x.grad_fn.register_hook(lambda *_, number=number: events.append(f"gradient of layer {number} is there"))
x.sum().backward()
print(" → ".join(events))
assert events.index("all travel") == len(weights)

# %% [markdown]
# After the last gradient. Nothing is left to hide the journey behind.
#
# The point about Python can be timed without a GPU. We rebuild the forward pass: copy the weights into a
# twin of the model, a thread for each half of the batch, join the outputs. (That flatters `DataParallel`,
# which also builds the twin anew in each step. On a real pair of GPUs, however, each half has its own
# hardware. Here they share your processors.) A network of 60 small layers: how many times faster are the
# two threads? And how long does the model alone take for half of the batch?

# %%
guess = ...


# %%
@torch.no_grad()
def as_data_parallel(model, twin, x):
    """The forward pass in the steps of DataParallel, for two replicas on one device."""
    torch._foreach_copy_(list(twin.parameters()), list(model.parameters()))
    outputs = [None, None]

    def run(i, replica, part):
        torch.set_num_threads(1)
        with torch.no_grad():  # that of the caller does not reach into a new thread
            outputs[i] = replica(part)

    halves = zip((0, 1), (model, twin), x.chunk(2), strict=True)
    threads = [threading.Thread(target=run, args=half) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return torch.cat(outputs)


@torch.no_grad()
def whole_batch(model, twin, x):
    return model(x)


@torch.no_grad()
def half_batch(model, twin, x):
    return model(x[:16])


deep = nn.Sequential(*[nn.Linear(32, 32) for _ in range(60)])
deep_twin = copy.deepcopy(deep)
example = deep, deep_twin, torch.randn(32, 32)


def deep_twins_and_rows(generator, device):
    return deep, deep_twin, torch.randn(32, 32, generator=generator)


compare(
    "DataParallel's steps on one CPU: 60 small layers",
    {
        "the whole batch": whole_batch,
        "half of the batch": half_batch,
        "copy, two threads, join": as_data_parallel,
    },
    inputs=deep_twins_and_rows,
    guess=guess,
    differ="half of the batch gives half of the result",
    only="cpu",
    clock="wall",
)

# %%
print("the whole batch:\n" + str(costs(whole_batch, *example)))
with torch.no_grad():
    assert torch.allclose(as_data_parallel(*example), whole_batch(*example), atol=1e-5)
    two_halves = costs(lambda: [example[i](part) for i, part in enumerate(example[2].chunk(2))])
print("\nthe two halves:\n" + str(two_halves))
assert two_halves.operations.total() == 120

# %% [markdown]
# **Why.** Two halves need twice as many calls: each half needs all layers, and a small layer takes nearly as
# long for 16 rows as for 32. The calls overlap little: around so small an operation there is much Python, and Python
# code runs in one thread at a time. On top come two threads to start, and a copy of all weights, in each step.
#
# torch lets go of the interpreter inside an operation. That helps where an operation takes long. So with convolutions?

# %%
guess = ...


# %%
convolutions = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()
)
twin = copy.deepcopy(convolutions)


def twins_and_pictures(generator, device):
    return convolutions, twin, torch.randn(32, 3, 32, 32, generator=generator)


compare(
    "DataParallel's steps on one CPU: convolutions",
    {"the whole batch": whole_batch, "copy, two threads, join": as_data_parallel},
    inputs=twins_and_pictures,
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Now the copies weigh little, and each thread has long operations to compute without the interpreter. What you gain
# depends on idle processors, as in section 9: the recorded CPU gains, others may lose. (If the interval contains 1,
# this run shows nothing.)
#
# So large operations *can* hide what `DataParallel` costs, and small ones do not. Where there are two GPUs, the
# next cell measures the real thing.

# %%
wrapped_layer = nn.DataParallel(nn.Linear(8, 1).to(devices()[-1]))
rows = torch.randn(4, 8, device=devices()[-1])
article_code(
    "B5",
    "nn.DataParallel(model) gives what the model gives",
    lambda: wrapped_layer(rows),
    right=lambda result: torch.allclose(result, wrapped_layer.module(rows), atol=1e-5),
)


def step(model, pictures):
    model.zero_grad()
    model(pictures).square().mean().backward()
    return [parameter.grad for parameter in model.parameters()]


if torch.cuda.device_count() > 1:
    on_gpu = copy.deepcopy(convolutions).cuda()
    on_all_gpus = nn.DataParallel(on_gpu)

    def many_pictures(generator, device):
        return torch.randn(256, 3, 64, 64, generator=generator).to(device)

    compare(
        "DataParallel: a step with 256 pictures on all GPUs",
        {"one GPU": lambda x: step(on_gpu, x), "DataParallel": lambda x: step(on_all_gpus, x)},
        inputs=many_pictures,
        differ="convolutions in TF32 round otherwise for a part of the batch",
        claim="B5",
        only="cuda",
        clock="wall",
    )
else:
    print("GPUs here:", torch.cuda.device_count(), "· the step with DataParallel needs two.")

# %% [markdown]
# We have not recorded it, but others have: 32 models of torchvision on 2 to 4 GPUs of four kinds, with a batch of 12
# for each GPU. With N GPUs, N would be perfect. How many times as many pictures in a second do most models get?

# %%
guess = ...

# %%
from autograder import published

published("B5", guess)

# %% [markdown]
# With two GPUs, three models in ten were slower than with one. The worst is a VGG: it has many weights, and they are copied
# in each step. In double precision (hollow) the arithmetic of a step takes many times as long beside the same copies, and
# the same machines gained most of what they could. So it is the work for each copied weight that parts the two sides.
# PyTorch's documentation calls DDP "significantly faster" even on one machine, and recommends it instead. There is little
# reason left to begin with `DataParallel`.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** measure one process alone. Predict a message from its start and its bytes. The causes are
# messages, waiting for the slowest, and threads without a core: each row takes one away. Verify the gradients.
#
# | you have | use | because |
# |---|---|---|
# | several GPUs | `torchrun` and DDP, one process for each | `DataParallel` builds all copies anew in each step, and hides no message |
# | the two-line snippet | `torchrun`, a device, a sampler | without them it does not start, or works twice on the same samples |
# | GPUs / CPUs only | backend `"nccl"` / `"gloo"` | both carry DDP's messages |
# | data for many ranks | `DistributedSampler`, and `set_epoch` | equal parts; another order each epoch |
# | parts of unequal size | means weighted by sample counts (in each rank's loss) | DDP's plain mean gives small parts too much say |
# | BatchNorm, few samples on each GPU | `SyncBatchNorm` | each rank knows only the statistics of its part |
# | many small gradients | buckets (DDP's default) | a message has a price of its own |
# | few large gradients | no bucket of your own | copies cost more than start-ups |
# | a batch in several parts | `no_sync` for all but the last | gradients travel once |
# | large weights, little work | one process, or a larger batch for each | half of the batch saves less time than the message takes |
# | a model too large for one device | FSDP (`fully_shard`) | each rank keeps a part of weights, gradients and optimiser |
# | two idle cores of one CPU | two threads, where they measure better | they share memory and need no messages |
# | a checkpoint | rank 0 saves `model.module.state_dict()` | one writer; no prefix |

# %%
verdicts("B5", "B6")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/08_many_gpus/08_many_gpus.ipynb). Five exercises
# on what runs inside every data-parallel program: among them DDP's buckets, which you build.
