# %% [markdown]
# # 08 · Many GPUs
#
# Two GPUs hold two copies of a model. Each works on a part of the batch. Then they must agree on one
# gradient. How they agree decides whether the second GPU was worth its price.
#
# **You will be able to**
# - start one process for each device, and say who is who,
# - give each process its own part of the data, and get the gradients of the whole batch,
# - count what travels in a step, and make it travel less often,
# - tell beforehand when a second process cannot help.
#
# **Time:** 35 minutes to read and run. **Needs:** CPU, two processes. Everything here runs live: the two
# talk over the loopback interface. Two cells use GPUs where there are two: the training program of section
# 4, and a step with `DataParallel` in section 10.
#
# **Claims tested:** *B5* "`nn.DataParallel` for several GPUs"; *B6* "`DistributedDataParallel` with
# `init_process_group("nccl")`".

# %%
import copy
import inspect
import json
import os
import runpy
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
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from torch.utils.flop_counter import FlopCounterMode

from autograder import article_code, behaviour, compare, costs, devices, documented, verdicts

print("devices here:", *devices(), "· processors:", os.cpu_count(), "· GPUs:", torch.cuda.device_count())

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
# `DistributedDataParallel` (DDP) takes the plain mean, as section 5 will show. So it is your task to keep
# the parts equal.

# %% [markdown]
# ## 2. Two lines that do not say who is who
#
# The article shows two lines: `init_process_group("nccl")`, then `DistributedDataParallel(model)`. Run them
# here, as they stand:

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
# say is **which device** a process should use, and **which samples** are its own. DDP decides neither. We
# begin with the samples.

# %% [markdown]
# ## 3. Which samples are mine?
#
# Every process runs the same program, so every process opens the same data set. Without further care each
# reads *all* of it: two processes do the same work twice. `DistributedSampler` deals the indices out like
# cards. It can be tried without any second process, because it takes rank and world size as arguments.


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
# Ten samples for *four* ranks do not come out even. How many does each get? Guess, then run.

# %%
print("filled up:", hands(10, 4, shuffle=False))
print("drop_last:", hands(10, 4, shuffle=False, drop_last=True))
assert {len(hand) for hand in hands(10, 4)} == {3}
assert {len(hand) for hand in hands(10, 4, drop_last=True)} == {2}

# %% [markdown]
# Every hand has the same length: ranks take their steps together, and one without a batch would keep the
# others waiting. So the sampler deals samples 0 and 1 twice, or with `drop_last=True` leaves two out. In
# training that matters little. In *evaluation* it is wrong: an accuracy over 12 dealt samples is not the
# accuracy over the 10 that you have.
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
# Here is the whole of it. `torchrun` starts it as often as you say, and puts rank, world size and
# address into each process's environment. Read `main` from top to bottom; there is nothing hidden.

# %%
TRAIN = """
import json, os, sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SAMPLES, BATCH, EPOCHS = 96, 16, 2


def make_model(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


def make_data():
    x = torch.randn(SAMPLES, 8, generator=torch.Generator().manual_seed(1))
    return x, x.square().mean(1, keepdim=True)


def main(folder):
    rank = int(os.environ["RANK"])                # number among all processes
    local_rank = int(os.environ["LOCAL_RANK"])    # number among those on this machine
    gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", local_rank) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    elif torch.cuda.is_available():               # NCCL refuses two ranks on one GPU
        print("fewer GPUs than processes: all on the CPU", file=sys.stderr)
    dist.init_process_group("nccl" if gpus else "gloo")

    data = TensorDataset(*make_data())
    sampler = DistributedSampler(data)            # asks the group for rank and world size
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler)

    plain = make_model(seed=rank).to(device)      # every rank starts with other weights!
    before = plain[0].weight[0, 0].item()
    model = DistributedDataParallel(plain, device_ids=[local_rank] if gpus else None)
    after = plain[0].weight[0, 0].item()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    seen = 0
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x.to(device)), y.to(device)).backward()    # gradients are averaged here
            optimizer.step()
            seen += len(x)

    report = {"rank": rank, "world": dist.get_world_size()}
    report |= {"device": str(device), "backend": dist.get_backend()}
    report |= {"before": before, "after": after, "seen": seen, "last": plain[0].weight[0, 0].item()}
    Path(folder, f"rank{rank}.json").write_text(json.dumps(report))
    if rank == 0:                                 # one file, one writer
        torch.save(model.state_dict(), Path(folder, "wrapped.pt"))
        torch.save(model.module.state_dict(), Path(folder, "plain.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
"""


# %%
folder = tempfile.TemporaryDirectory()
script = Path(folder.name, "train.py")
script.write_text(TRAIN)
environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # one thread for each process
if sys.platform in ("linux", "darwin"):  # talk over the loopback interface only
    environment["GLOO_SOCKET_IFNAME"] = {"linux": "lo", "darwin": "lo0"}[sys.platform]

# As on the command line: torchrun --standalone --nproc-per-node 2 train.py FOLDER
torchrun = [sys.executable, "-m", "torch.distributed.run"]  # with the Python that runs this notebook
command = [*torchrun, "--standalone", "--nproc-per-node", "2", script, folder.name]
start = time.perf_counter()
done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
print(
    f"torchrun took {time.perf_counter() - start:.1f} s, return code {done.returncode}", done.stderr[-2000:]
)
reports = [json.loads(Path(folder.name, f"rank{rank}.json").read_text()) for rank in (0, 1)]
for report in reports:
    print(report)

# %% [markdown]
# Most of those seconds went into `import torch`, in the launcher and then in each process. You pay them once
# per run.
#
# Look at the reports. The two ranks began with different weights (`before`). DDP's constructor sent those of
# rank 0 to all (`after`). Each rank has `seen` half of the samples of two epochs. And after six steps the
# weight is still the same on both (`last`).

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
train = runpy.run_path(str(script))
alone = train["make_model"](seed=0)
x, y = train["make_data"]()
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

# %%
behaviour(
    "B6",
    "Two processes under torchrun, with a device and a sampler, get the weights of one with the whole batch.",
    max(differences) < 1e-5 and first["last"] == second["last"],
    when=numbered,
)

# %% [markdown]
# Note what this means for your settings. `batch_size` in the script is the batch *per process*. On two
# processes the model sees batches of 32, and takes half as many steps in an epoch. The learning rate may
# need another value.
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
# DDP is a module with your model inside, under the name `module`. Save `model.module.state_dict()`, and the
# file fits everywhere. Save it on one rank only: two processes that write one file at the same time can
# spoil it.

# %% [markdown]
# ## 5. A team that stays
#
# To time steps we need two ranks that stay alive and do what we ask. Each opens a socket to this notebook,
# reads the name of a task, does it, and answers. The script is long; `TASKS` near its end lists what the
# ranks can do, and the rest is read best together with the sections below.

# %%
TEAM = '''
import copy, json, socket, sys, time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

dist.init_process_group("gloo")
rank = dist.get_rank()


class Training:
    """One model, plain and in DDP; a batch, and this rank's half of it."""

    def __init__(self, make, *shape):
        torch.manual_seed(0)
        self.plain = make()
        self.ddp = DistributedDataParallel(copy.deepcopy(self.plain))
        self.x, self.y = torch.randn(32, *shape), torch.randint(10, (32,))
        half = slice(16 * rank, 16 * (rank + 1))
        self.part = self.x[half], self.y[half]

    def step(self, model, x, y):
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()

    def alone(self):                        # all 32 samples in one process
        self.step(self.plain, self.x, self.y)

    def alone_with_two_threads(self):
        torch.set_num_threads(2)            # for this task only, see the last lines
        self.alone()

    def alone_with_half(self):              # 16 samples in one process
        self.step(self.plain, *self.part)

    def together(self):                     # 16 samples in each of two processes
        self.step(self.ddp, *self.part)

    def four_parts(self):                   # four small batches, one step: all-reduce after each
        self.ddp.zero_grad()
        for x, y in zip(*(t.chunk(4) for t in self.part)):
            (F.cross_entropy(self.ddp(x), y) / 4).backward()

    def four_parts_no_sync(self):           # all-reduce after the last one only
        self.ddp.zero_grad()
        parts = list(zip(*(t.chunk(4) for t in self.part)))
        with self.ddp.no_sync():
            for x, y in parts[:-1]:
                (F.cross_entropy(self.ddp(x), y) / 4).backward()
        x, y = parts[-1]
        (F.cross_entropy(self.ddp(x), y) / 4).backward()

    def off(self):
        """How far the gradients of `ddp` are from those of `plain`, relative to the largest of these."""
        pairs = [(q.grad, p.grad) for q, p in zip(self.ddp.parameters(), self.plain.parameters())]
        return (max((got - right).abs().max() for got, right in pairs)
                / max(right.abs().max() for _, right in pairs)).item()

    def uneven(self):                       # 24 and 8 samples
        self.alone()
        half = slice(0, 24) if rank == 0 else slice(24, 32)
        self.step(self.ddp, self.x[half], self.y[half])
        return self.off()

    def gradients_off(self):
        """The largest error of the gradients, for each way to work together."""
        self.alone()
        found = {}
        for way in (self.together, self.four_parts, self.four_parts_no_sync):
            way()
            found[way.__name__] = self.off()
        return found


def convolutions():
    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))


def wide():
    layers = [nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(1024, 10))


def deep():
    return nn.Sequential(*[nn.Linear(32, 32) for _ in range(60)])


def normalised():
    return nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))


trainings = {
    "convolutions": Training(convolutions, 3, 32, 32),
    "wide": Training(wide, 1024),
    "deep": Training(deep, 32),
    "batch norm": Training(normalised, 64),
}


def two_lines():                            # no sampler: which samples does each rank read?
    model = DistributedDataParallel(deep())
    seen, everyone = [], [None, None]
    for batch in DataLoader(range(6), batch_size=2):
        model(torch.ones(len(batch), 32)).sum().backward()
        seen += batch.tolist()
    dist.all_gather_object(everyone, seen)
    return everyone


def running_means():
    """How far apart the ranks' are: after a step, and after the next forward pass."""
    training = trainings["batch norm"]
    mean = training.ddp.module[1].running_mean

    def apart():
        means = [torch.empty_like(mean), torch.empty_like(mean)]
        dist.all_gather(means, mean)
        return (means[0] - means[1]).abs().max().item()

    training.together()
    found = [apart()]
    training.ddp.eval()                     # in this mode BatchNorm does not change its buffers
    with torch.no_grad():
        training.ddp(training.x)
    training.ddp.train()
    return [*found, apart()]


def synchronised():
    """What SyncBatchNorm says here."""
    model = nn.SyncBatchNorm.convert_sync_batchnorm(normalised())
    try:
        DistributedDataParallel(model)(trainings["batch norm"].x)
    except ValueError as error:
        return f"{type(model[1]).__name__}: {error}"


one_by_one = DistributedDataParallel(deep(), bucket_cap_mb=1e-6)
gradients = {
    "many small": [torch.zeros(1000) for _ in range(60)],
    "few large": [torch.zeros(1_000_000) for _ in range(3)],
}


def one_call_each(tensors):
    for tensor in tensors:
        dist.all_reduce(tensor)


def one_call(tensors):
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat)
    torch._foreach_copy_(tensors, flat.split([tensor.numel() for tensor in tensors]))


def cost_of_a_message():
    """Median seconds of an all-reduce, by the number of bytes."""
    seconds = {}
    for numbers in (1, 1000, 10_000, 100_000, 1_000_000, 5_000_000):
        tensor, times = torch.zeros(numbers), []
        for _ in range(7):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(tensor)
            times.append(time.perf_counter() - start)
        seconds[4 * numbers] = sorted(times)[3]
    return seconds


def send_nothing(sizes, bucket):            # called instead of the all-reduce
    sizes.append(4 * bucket.buffer().numel())
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def buckets(name, make, **settings):
    """Bytes of each bucket that DDP sends in the first step, and in the second."""
    sizes, found = [], []
    model = DistributedDataParallel(make(), **settings)
    model.register_comm_hook(sizes, send_nothing)
    for _ in range(2):
        sizes.clear()
        trainings[name].step(model, *trainings[name].part)
        found.append(sizes.copy())
    return found


def blocks_of_memory(**settings):
    """In how many blocks of memory the gradients lie, after two steps."""
    model = DistributedDataParallel(wide(), **settings)
    for _ in range(2):
        trainings["wide"].step(model, *trainings["wide"].part)
    return len({parameter.grad.untyped_storage().data_ptr() for parameter in model.parameters()})


def sharded():
    """Bytes of weights that this rank holds, and how far its gradients are off."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    training, mesh = trainings["wide"], init_device_mesh("cpu", (2,))
    model = copy.deepcopy(training.plain)
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    training.step(model, *training.part)
    training.alone()
    pairs = [(q.grad.full_tensor(), p.grad) for q, p in zip(model.parameters(), training.plain.parameters())]
    off = max(((got - right).abs().max() / right.abs().max()).item() for got, right in pairs)
    return sum(4 * parameter.to_local().numel() for parameter in model.parameters()), off


silent = DistributedDataParallel(wide())
silent.register_comm_hook([], send_nothing)


impatient = dist.new_group(timeout=timedelta(seconds=1))


def missing_rank():
    if rank == 1:
        time.sleep(1.5)                     # does something else, and never joins
        return None
    start = time.perf_counter()
    try:
        dist.all_reduce(torch.ones(1), group=impatient)
    except RuntimeError as error:
        return f"after {time.perf_counter() - start:.1f} s: RuntimeError: ... {str(error).split('] ')[-1]}"


TASKS = {
    "message": cost_of_a_message,
    "two lines": two_lines,
    "running means": running_means,
    "SyncBatchNorm": synchronised,
    "buckets": lambda: buckets("wide", wide),
    "buckets 25": lambda: buckets("wide", wide, bucket_cap_mb=25),
    "buckets, deep": lambda: buckets("deep", deep),
    "buckets, deep, one gradient each": lambda: buckets("deep", deep, bucket_cap_mb=1e-6),
    "blocks": blocks_of_memory,
    "blocks, as views": lambda: blocks_of_memory(gradient_as_bucket_view=True),
    "sharded": sharded,
    "one gradient in a bucket": lambda: trainings["deep"].step(one_by_one, *trainings["deep"].part),
    "wide, no messages": lambda: trainings["wide"].step(silent, *trainings["wide"].part),
    "missing rank": missing_rank,
}
for name, tensors in gradients.items():
    TASKS[f"{name}, one call each"] = lambda tensors=tensors: one_call_each(tensors)
    TASKS[f"{name}, one call"] = lambda tensors=tensors: one_call(tensors)
for name, training in trainings.items():
    for way in dir(training):
        if callable(getattr(training, way)) and not way.startswith("_"):
            TASKS[f"{name}, {way}"] = getattr(training, way)

notebook = socket.create_connection(("127.0.0.1", int(sys.argv[1]))).makefile("rw")
print(rank, file=notebook, flush=True)
for line in notebook:                       # until the notebook closes the connection
    torch.set_num_threads(1)
    print(json.dumps(TASKS[line.strip()]()), file=notebook, flush=True)
dist.destroy_process_group()
'''


# %% [markdown]
# This time we do without `torchrun`. It has no secret: it sets environment variables and starts a process
# for each rank. Our ranks need four of them: `RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`. (Section 4
# also read `LOCAL_RANK` and `LOCAL_WORLD_SIZE`. `torchrun` can also restart processes after a failure
# (`--max-restarts`), and it works across machines. So use it for real work.)


# %%
class Team:
    """Two ranks that do tasks by name."""

    def __init__(self, script):
        log = Path(folder.name, "team.log")
        with socket.create_server(("127.0.0.1", 0)) as meeting_point:
            port = meeting_point.getsockname()[1]  # free again at the end of this block
        with socket.create_server(("127.0.0.1", 0)) as server, open(log, "w") as output:
            server.settimeout(120)
            self.processes = []
            for rank in (0, 1):
                who = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, script, str(server.getsockname()[1])],
                        env=environment | {name: str(value) for name, value in who.items()},
                        stdout=output,
                        stderr=output,
                    )
                )
            lines = [server.accept()[0].makefile("rw") for _ in range(2)]
        self.ranks = {int(line.readline()): line for line in lines}

    def do(self, task, ranks=(0, 1)):
        """Ask these ranks for a task, wait for all, give the answer of the first."""
        for rank in ranks:
            print(task, file=self.ranks[rank], flush=True)
        answers = [json.loads(self.ranks[rank].readline()) for rank in ranks]
        return answers[0]

    def close(self):
        for line in self.ranks.values():
            line.close()
        for process in self.processes:
            process.wait(30)


team_script = Path(folder.name, "team.py")
team_script.write_text(TEAM)
team = Team(team_script)
print("ranks:", sorted(team.ranks))

# %% [markdown]
# Do they compute the right thing? The gradients of the whole batch in one process, against those of two
# processes with half of it each, for three networks and three ways that we shall meet below. And how far off
# are they with parts of 24 and 8 samples? (All errors are relative to the largest gradient.)

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
# With 24 + 8 samples DDP is wrong: it takes the plain mean. And without a sampler? Our ranks have what
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
# BatchNorm divides by the spread *of the batch*. Each rank knows only its half. How far off are the
# gradients now, with equal halves?

# %%
mixed = team.do("batch norm, gradients_off")["together"]
print(f"with BatchNorm: off by {mixed:.0%}")
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
# That costs a small message in each such layer, in the forward and in the backward pass. It works on GPUs
# only, as its answer here says.
#
# The buffers tell the rest. Each rank moves its running mean by its own half. Then the next forward pass
# begins with rank 0 *sending its buffers to all*, and what the others have seen is lost. All ranks must take
# part in this message, also in evaluation. So let rank 0 evaluate alone with `model.module`, never with
# `model`: it would wait. (`forward_sync_buffers=False` switches the message off; before torch 2.13 it was
# `broadcast_buffers=False`.)

# %% [markdown]
# ## 6. What a message costs
#
# The gradients are summed by an *all-reduce*: every rank brings a tensor, every rank gets the sum. Sixty
# gradients of 1,000 numbers each, summed over two ranks. Either one all-reduce for each, or all of them
# copied into one tensor (a *bucket*), one all-reduce, and copied back. The bytes are the same. How many
# times faster is the bucket?

# %%
guess = 2.0

# %%
compare(
    "60 small gradients, two ranks",
    {
        "one all-reduce each": lambda what: team.do(f"{what}, one call each"),
        "one bucket": lambda what: team.do(f"{what}, one call"),
    },
    inputs=lambda generator, device: "many small",
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

# %% [markdown]
# Up to some kilobytes the time hardly depends on the size (and it jumps about: two processes must be woken).
# Only large messages are paid by the byte. So a useful model is
#
# *time = start-up + bytes / bandwidth*, once for each call.
#
# Sixty calls pay sixty start-ups. Between GPUs, NCCL has a shorter start-up and a higher bandwidth; the
# shape of the model is the same.
#
# All timings in this chapter are wall-clock times, because two processes or two threads work. They change
# with what else your machine does. When `compare` times the team, they contain the way from the notebook to
# the ranks and back.
#
# ### When it does not help
#
# Three gradients of a million numbers each: 12 MB. How many times faster is one bucket?

# %%
guess = 2.0

# %%
compare(
    "3 large gradients, two ranks",
    {
        "one all-reduce each": lambda what: team.do(f"{what}, one call each"),
        "one bucket": lambda what: team.do(f"{what}, one call"),
    },
    inputs=lambda generator, device: "few large",
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Nothing gained, perhaps something lost. Two start-ups are saved of a time that the bytes decide, and a
# bucket costs two more copies of 12 MB. A bucket is for small gradients.
#
# ## 7. Buckets in DDP
#
# DDP does this for you. It fills buckets in the order in which gradients become ready, and sends each as
# soon as it is full, *while the backward pass goes on*. Buckets are closed at 25 MB, the very first one at 1
# MB already: its journey can begin early. `bucket_cap_mb` sets one size for all. A network of 60 small
# layers has 120 gradients. With a cap of almost nothing, each is sent alone. How many times faster is the
# default?

# %%
guess = 2.0

# %%
compare(
    "DDP, one step of 60 small layers",
    {
        "one gradient in a bucket": lambda: team.do("one gradient in a bucket"),
        "the default": lambda: team.do("deep, together"),
    },
    inputs=lambda generator, device: (),
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# **Why.** 120 start-ups against one. A larger bucket is not always better: one bucket for all gradients is
# full only when the backward pass is over, and then nothing is left to hide its journey behind. Let us count
# the messages, and look at the buckets of a network with two layers of 1024 × 1024, four megabytes each:

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
# In the first step DDP does not know yet in which order the gradients come. After it, it makes the buckets
# anew. (So leave the first step out when you time it.) Then the default sends half of the gradients early;
# the setting by hand waits for the last one. A gradient is never cut in two: that is why the first bucket is
# larger than 1 MB.
#
# ## 8. Does a second process pay?
#
# A network of two convolutions, a batch of 32 pictures of 32 × 32. One process works through all 32 with one
# thread. Or with two threads. Or two processes take 16 each and average their gradients. How many times
# faster are the two processes than the one thread?

# %%
guess = 2.0

# %%
compare(
    "DDP: convolutions, 32 pictures",
    {
        "one process": lambda net: team.do(f"{net}, alone", ranks=[0]),
        "one process, two threads": lambda net: team.do(f"{net}, alone_with_two_threads", ranks=[0]),
        "two processes, DDP": lambda net: team.do(f"{net}, together"),
    },
    inputs=lambda generator, device: "convolutions",
    guess=guess,
    only="cpu",
    clock="wall",
    seconds=2.0,
)

# %% [markdown]
# **Why.** This network has few weights and much arithmetic. Let us count both for a step with the batch of
# 32:

# %%
networks = {
    "convolutions": nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10),
    ),
    "wide layers": nn.Sequential(
        nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    ),
}
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

# %% [markdown]
# Some kilobytes travel, some gigaflops are shared. How much remains of the factor of two is up to your
# machine: are there two idle cores, two halves of one, or none to spare? Two *threads* of one process share
# such work without any message, if two cores are idle. (If another program holds one of them, the threads
# wait for each other after every operation, and can be several times slower than one.) So on one CPU, DDP is
# rarely the way to go faster. It is a way to use a second *device*, or a second machine.
#
# ### When it does not help
#
# Now the wide layers: more than a hundred times as many bytes of gradients, and less work. How many times
# faster are two processes? (Two rows more, for later: half of the batch in one process; and DDP with the
# all-reduce left out. It does all its other work; its gradients are of no use.)

# %%
guess = 1.5

# %%
wide_steps = compare(
    "DDP: wide layers, 32 rows",
    {
        "one process": lambda net: team.do(f"{net}, alone", ranks=[0]),
        "one process, two threads": lambda net: team.do(f"{net}, alone_with_two_threads", ranks=[0]),
        "one process, half of the batch": lambda net: team.do(f"{net}, alone_with_half", ranks=[0]),
        "two processes, no messages": lambda net: team.do(f"{net}, no messages"),
        "two processes, DDP": lambda net: team.do(f"{net}, together"),
    },
    inputs=lambda generator, device: "wide",
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Slower than one process alone. (Where an interval contains 1, this run shows nothing.) The model of section
# 6 says so in advance. Two processes save what one process saves with half of the batch. If the gradients
# travel longer than that, and nothing hides the journey, you lose:

# %%
size = max(message)
bandwidth = size / message[size]
journey = gradient_bytes["wide layers"] / bandwidth
wide_times = {
    name: median(wide_steps.samples["cpu"].seconds(name)) for name in wide_steps.samples["cpu"].blocks
}
half = wide_times["one process, half of the batch"]
print(
    f"half of the batch in one process: {half * 1e3:.1f} ms; all of it: {wide_times['one process'] * 1e3:.1f} ms"
)
print(f"{gradient_bytes['wide layers'] / 1e6:.1f} MB at {bandwidth / 1e6:,.0f} MB/s: {journey * 1e3:.1f} ms")
print(f"sum: {(half + journey) * 1e3:.1f} ms; measured: {wide_times['two processes, DDP'] * 1e3:.1f} ms")

# %% [markdown]
# Half of the batch does not take half of the time: for 16 rows as for 32, all weights must be read and all
# gradients written. So there was little to save. And the measured step is longer than the sum: DDP copies
# the gradients into its buckets and back, and both ranks share one memory. See the row *no messages*.
#
# The way back can be saved. With `gradient_as_bucket_view=True` the gradients stay *in* the buckets after
# the step, and do not take memory twice. In how many blocks of memory do the six gradients of the wide
# layers lie?

# %%
blocks = {"default": team.do("blocks"), "gradient_as_bucket_view=True": team.do("blocks, as views")}
print(blocks)
assert blocks == {"default": 6, "gradient_as_bucket_view=True": 2}

# %% [markdown]
# In two: the two buckets of section 7.
#
# Compare two times before you rent the second GPU: *what half of the batch saves* and *bytes of gradients /
# bandwidth*. DDP can hide a part of the journey behind the backward pass, never more than that pass is long.
#
# A larger batch for each device helps, because the work grows with it and the message does not. Gradients in
# 16 bits halve the message. Or you send it less often.
#
# ## 9. `no_sync`: send less often
#
# The batch that you want does not fit into memory. So you take it in four parts, let `.grad` add up (chapter
# 03), and take one step. DDP does not know your plan: it averages after *every* backward pass. `with
# model.no_sync():` around all but the last says: not yet. How many times faster is the step with the wide
# layers?

# %%
guess = 2.0

# %%
four_parts = compare(
    "DDP: four parts, one step",
    {
        "all-reduce after each part": lambda net: team.do(f"{net}, four_parts"),
        "no_sync for three of four": lambda net: team.do(f"{net}, four_parts_no_sync"),
    },
    inputs=lambda generator, device: "wide",
    guess=guess,
    only="cpu",
    clock="wall",
    seconds=1.5,
)

# %% [markdown]
# **Why.** One journey of the gradients instead of four. The result is the same, because a mean of sums is
# the sum of the means; section 5 has shown it for both ways.
#
# Compare with section 8. There each rank took its 16 samples in one part, with one journey, too:

# %%
in_parts = median(four_parts.samples["cpu"].seconds("no_sync for three of four"))
print(f"one part:             {wide_times['two processes, DDP'] * 1e3:.1f} ms")
print(f"four parts, no_sync:  {in_parts * 1e3:.1f} ms")

# %% [markdown]
# Each part reads all weights and adds to all gradients, however few samples it holds. So take parts only if
# the batch does not fit into memory.
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
guess = 1.0

# %%
compare(
    "DDP: four parts, one step, small gradients",
    {
        "all-reduce after each part": lambda net: team.do(f"{net}, four_parts"),
        "no_sync for three of four": lambda net: team.do(f"{net}, four_parts_no_sync"),
    },
    inputs=lambda generator, device: "convolutions",
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Less. The bytes are hardly worth mentioning, and three start-ups are short beside a step of many
# milliseconds. What may remain is waiting: an all-reduce is a meeting, and the faster rank waits there for
# the slower one. With one part in each step there is nothing to save at all.
#
# ### When one device cannot hold it: FSDP
#
# DDP keeps *all* weights, all gradients and all the optimiser's numbers on every device. Where they do not
# fit, `torch.distributed.fsdp.fully_shard` (FSDP) leaves each rank a part of them. A layer's weights are
# gathered just before they are needed, and of the summed gradients each rank gets its part only. More has to
# travel, and less memory is needed. How many MB of the wide layers' weights does each of two ranks keep?

# %%
held, sharded_off = team.do("sharded")
print(f"DDP: {gradient_bytes['wide layers'] / 1e6:.2f} MB · FSDP: {held / 1e6:.2f} MB")
assert 2 * held == gradient_bytes["wide layers"] and sharded_off < 1e-4

# %% [markdown]
# ### A rank that does not come
#
# An all-reduce needs *all* ranks. One that has fewer batches, or that takes another branch, leaves the
# others waiting. Here rank 1 stays away, and the time-out is one second instead of many minutes:

# %%
waited = team.do("missing rank")
print(waited)
assert "Timed out" in waited
team.close()

# %% [markdown]
# This is why the sampler makes all hands equally long, and why `if rank == 0:` may stand around a
# `torch.save`, but never around a backward pass.
#
# ## 10. Why `DataParallel` was left behind
#
# `nn.DataParallel(model)` is older and needs only one line: no `torchrun`, no ranks. One process drives all
# GPUs. Without a GPU it wraps your model and does nothing at all, without a word:

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
# The number of bytes is *not* the difference. With NCCL the weights leave the first GPU once and the
# gradients enter it once, however many GPUs there are. A ring all-reduce moves as much at each GPU, or
# more.

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
guess = 1.5


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
compare(
    "DataParallel's steps on one CPU: 60 small layers",
    {
        "the whole batch": whole_batch,
        "half of the batch": half_batch,
        "copy, two threads, join": as_data_parallel,
    },
    inputs=lambda generator, device: (deep, deep_twin, torch.randn(32, 32, generator=generator)),
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
# long for 16 rows as for 32. The calls cannot overlap much: they are mostly Python, and Python code runs in
# one thread at a time. On top come two threads to start, and a copy of all weights, in each step.
#
# Large operations let go of the interpreter while they compute. So with convolutions?

# %%
guess = 1.5


# %%
convolutions = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()
)
twin = copy.deepcopy(convolutions)
compare(
    "DataParallel's steps on one CPU: convolutions",
    {"the whole batch": whole_batch, "copy, two threads, join": as_data_parallel},
    inputs=lambda generator, device: (convolutions, twin, torch.randn(32, 3, 32, 32, generator=generator)),
    guess=guess,
    only="cpu",
    clock="wall",
)

# %% [markdown]
# Now the copies weigh little, and each thread has long operations to compute without the interpreter. What
# you gain depends on idle processors, as in section 8. (If the interval contains 1, this run shows nothing.)
#
# So large operations hide what `DataParallel` costs, and small ones do not. Where there are two GPUs, the
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
    compare(
        "DataParallel: a step with 256 pictures on all GPUs",
        {"one GPU": lambda x: step(on_gpu, x), "DataParallel": lambda x: step(on_all_gpus, x)},
        inputs=lambda generator, device: torch.randn(256, 3, 64, 64, generator=generator).to(device),
        differ="convolutions in TF32 round otherwise for a part of the batch",
        claim="B5",
        only="cuda",
        clock="wall",
    )
else:
    print("GPUs here:", torch.cuda.device_count(), "· the step with DataParallel needs two.")

# %% [markdown]
# We have not recorded it: what `DataParallel` gains over one GPU stays open here. PyTorch's documentation
# calls DDP "significantly faster" even on one machine, and recommends it instead. There is little reason
# left to begin with `DataParallel`.

# %% [markdown]
# ## Summary
#
# | you have | use | because |
# |---|---|---|
# | several GPUs | `torchrun` and DDP, one process for each | `DataParallel` builds all copies anew in each step, and hides no message |
# | the two-line snippet | `torchrun`, a device, a sampler | without them it does not start, or works twice on the same samples |
# | GPUs / CPUs only | backend `"nccl"` / `"gloo"` | both carry DDP's messages |
# | data for many ranks | `DistributedSampler`, and `set_epoch` | equal parts; another order each epoch |
# | parts of unequal size | means weighted by sample counts | DDP's plain mean gives small parts too much say |
# | BatchNorm, few samples on each GPU | `SyncBatchNorm` | each rank knows only the statistics of its part |
# | many small gradients | buckets (DDP's default) | a message has a price of its own |
# | few large gradients | no bucket of your own | copies cost more than start-ups |
# | a batch in several parts | `no_sync` for all but the last | gradients travel once |
# | large weights, little work | one process, or a larger batch for each | the message takes longer than half of the batch saves |
# | a model too large for one device | FSDP (`fully_shard`) | each rank keeps a part of weights, gradients and optimiser |
# | two idle cores of one CPU | two threads | they share memory and need no messages |
# | a checkpoint | rank 0 saves `model.module.state_dict()` | one writer; no prefix |

# %%
verdicts("B5", "B6")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/08_many_gpus/08_many_gpus.ipynb). Five functions,
# in four exercises, as they run inside every data-parallel program.
