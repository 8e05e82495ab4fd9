"""Two ranks that stay alive, and do tasks that a notebook asks for by name.

``Team`` starts this file once for each rank. Each rank opens a socket to the notebook, reads the name of a
task from it, does the task, and answers. ``tasks()`` lists what they can do.
"""

import copy
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

Task = Callable[[], Any]


def own_environment() -> dict[str, str]:
    """This process's variables, for ranks that have one thread each and talk over the loopback interface."""
    loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
    interface = {"GLOO_SOCKET_IFNAME": loopback} if loopback else {}
    return {**os.environ, "OMP_NUM_THREADS": "1", **interface}


class Team:
    """Two ranks that do tasks by name."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.log = Path(self.folder.name, "team.log")
        with socket.create_server(("127.0.0.1", 0)) as meeting_point:
            port = meeting_point.getsockname()[1]  # free again at the end of this block
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            open(self.log, "w", encoding="utf-8") as output,
        ):
            self.processes = [
                subprocess.Popen(
                    [sys.executable, __file__, str(server.getsockname()[1])],
                    env=own_environment() | who_is_who(rank, 2, port),
                    stdout=output,
                    stderr=output,
                )
                for rank in (0, 1)
            ]
            lines = [self._next(server).makefile("rw") for _ in self.processes]
        self.ranks = {int(line.readline()): line for line in lines}

    def _next(self, server: socket.socket) -> socket.socket:
        """The connection to a rank that is ready. Raises RuntimeError where one ended before."""
        server.settimeout(1)
        while True:
            try:
                return server.accept()[0]
            except TimeoutError:
                if any(process.poll() is not None for process in self.processes):
                    raise RuntimeError(f"a rank ended:\n{self._last_words()}") from None

    def _last_words(self) -> str:
        return self.log.read_text(encoding="utf-8")[-2000:]

    def do(self, task: str, ranks: Sequence[int] = (0, 1)) -> Any:
        """Ask these ranks for a task, wait for all, give the answer of the first."""
        for rank in ranks:
            print(task, file=self.ranks[rank], flush=True)
        answers = [self.ranks[rank].readline() for rank in ranks]
        if not all(answers):
            raise RuntimeError(f"a rank ended in the task {task!r}:\n{self._last_words()}")
        return json.loads(answers[0])

    def close(self) -> None:
        """Let the ranks end."""
        for line in self.ranks.values():
            line.close()
        for process in self.processes:
            process.wait(30)
        self.folder.cleanup()


def who_is_who(rank: int, ranks: int, port: int) -> dict[str, str]:
    """What a process must find in its environment to join the others."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


# ---- What follows runs in the ranks. ----


class Training:
    """One model, plain and in DDP; a batch, and this rank's half of it."""

    def __init__(self, make: Callable[[], nn.Module], *shape: int) -> None:
        torch.manual_seed(0)
        self.plain = make()
        self.ddp = DistributedDataParallel(copy.deepcopy(self.plain))
        self.x, self.y = torch.randn(32, *shape), torch.randint(10, (32,))
        half = slice(16 * dist.get_rank(), 16 * (dist.get_rank() + 1))
        self.part = self.x[half], self.y[half]

    def step(self, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()

    def alone(self) -> None:
        """All 32 samples in one process."""
        self.step(self.plain, self.x, self.y)

    def alone_with_two_threads(self) -> None:
        torch.set_num_threads(2)  # for this task only, see ``serve``
        self.alone()

    def alone_with_half(self) -> None:
        """16 samples in one process."""
        self.step(self.plain, *self.part)

    def together(self) -> None:
        """16 samples in each of two processes."""
        self.step(self.ddp, *self.part)

    def four_parts(self) -> None:
        """Four small batches, one step: all-reduce after each."""
        self.ddp.zero_grad()
        for x, y in zip(*(t.chunk(4) for t in self.part), strict=True):
            (F.cross_entropy(self.ddp(x), y) / 4).backward()

    def four_parts_no_sync(self) -> None:
        """All-reduce after the last one only."""
        self.ddp.zero_grad()
        *others, last = zip(*(t.chunk(4) for t in self.part), strict=True)
        with self.ddp.no_sync():
            for x, y in others:
                (F.cross_entropy(self.ddp(x), y) / 4).backward()
        x, y = last
        (F.cross_entropy(self.ddp(x), y) / 4).backward()

    def uneven(self) -> float:
        """How far off the gradients are with 24 and 8 samples."""
        self.alone()
        half = slice(0, 24) if dist.get_rank() == 0 else slice(24, 32)
        self.step(self.ddp, self.x[half], self.y[half])
        return self._off()

    def gradients_off(self) -> dict[str, float]:
        """The largest error of the gradients, for each way to work together."""
        self.alone()
        found = {}
        for way in (self.together, self.four_parts, self.four_parts_no_sync):
            way()
            found[way.__name__] = self._off()
        return found

    def _off(self) -> float:
        """How far the gradients of ``ddp`` are from those of ``plain``, relative to the largest of these."""
        pairs = [
            (q.grad, p.grad) for q, p in zip(self.ddp.parameters(), self.plain.parameters(), strict=True)
        ]
        largest = max(right.abs().max() for _, right in pairs)
        return (max((got - right).abs().max() for got, right in pairs) / largest).item()


def convolutions() -> nn.Sequential:
    """Few weights, much arithmetic."""
    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))


def wide() -> nn.Sequential:
    """Two layers of 1024 × 1024: many weights."""
    layers = [nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(1024, 10))


def deep() -> nn.Sequential:
    """60 small layers."""
    return nn.Sequential(*[nn.Linear(32, 32) for _ in range(60)])


def normalised() -> nn.Sequential:
    """A network with BatchNorm."""
    return nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))


def one_call_each(tensors: list[torch.Tensor]) -> None:
    """An all-reduce for each tensor."""
    for tensor in tensors:
        dist.all_reduce(tensor)


def one_call(tensors: list[torch.Tensor]) -> None:
    """One all-reduce for all tensors, in one bucket."""
    bucket = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(bucket)
    torch._foreach_copy_(tensors, bucket.split([tensor.numel() for tensor in tensors]))


def cost_of_a_message() -> dict[int, float]:
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


def two_lines() -> list[list[int]]:
    """Without a sampler: which of six samples each rank reads."""
    model = DistributedDataParallel(deep())
    seen: list[int] = []
    everyone: list[Any] = [None, None]
    for batch in DataLoader(range(6), batch_size=2):
        model(torch.ones(len(batch), 32)).sum().backward()
        seen += batch.tolist()
    dist.all_gather_object(everyone, seen)
    return everyone


def running_means(training: Training) -> list[float]:
    """How far apart the ranks' are: after a step, and after the next forward pass."""
    mean = training.ddp.module[1].running_mean

    def apart() -> float:
        means = [torch.empty_like(mean), torch.empty_like(mean)]
        dist.all_gather(means, mean)
        return (means[0] - means[1]).abs().max().item()

    training.together()
    found = [apart()]
    training.ddp.eval()  # in this mode BatchNorm does not change its buffers
    with torch.no_grad():
        training.ddp(training.x)
    training.ddp.train()
    return [*found, apart()]


def synchronised(training: Training) -> str | None:
    """What SyncBatchNorm says here."""
    model = nn.SyncBatchNorm.convert_sync_batchnorm(normalised())
    try:
        DistributedDataParallel(model)(training.x)
    except ValueError as error:
        return f"{type(model[1]).__name__}: {error}"
    return None


def send_nothing(sizes: list[int], bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook: called instead of the all-reduce."""
    sizes.append(bucket.buffer().nbytes)
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def buckets(training: Training, **settings: float) -> list[list[int]]:
    """Bytes of each bucket that DDP sends in the first step, and in the second."""
    sizes: list[int] = []
    found = []
    model = DistributedDataParallel(copy.deepcopy(training.plain), **settings)
    model.register_comm_hook(sizes, send_nothing)
    for _ in range(2):
        sizes.clear()
        training.step(model, *training.part)
        found.append(sizes.copy())
    return found


def send_and_watch(
    sent: list[tuple[float, float, int]], bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """A communication hook: the all-reduce that DDP would do, with a watch."""
    buffer, left = bucket.buffer(), time.perf_counter()

    def arrived(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        sent.append((left, time.perf_counter(), buffer.nbytes))
        return future.value()[0]

    buffer /= 2
    return dist.all_reduce(buffer, async_op=True).get_future().then(arrived)


class Watched:
    """Five wide layers in DDP, 128 rows on each rank; says when gradients were ready and messages travelled."""

    def __init__(self, **settings: float) -> None:
        torch.manual_seed(0)
        layers = [layer for _ in range(5) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
        self.model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(1024, 10)), **settings)
        self.rows, self.classes = torch.randn(128, 1024), torch.randint(10, (128,))
        # The hooks know these lists and not this object, or its memory would never be free again.
        self.ready: list[float] = []
        ready = self.ready
        self.sent: list[tuple[float, float, int]] = []
        for parameter in self.model.parameters():
            parameter.register_hook(lambda gradient: ready.append(time.perf_counter()))
        self.model.register_comm_hook(self.sent, send_and_watch)

    def step(self) -> dict[str, Any]:
        """Seconds from the start of a backward pass: gradients ready; bytes, left, arrived of each; its end."""
        self.ready.clear()
        self.sent.clear()
        self.model.zero_grad()
        loss = F.cross_entropy(self.model(self.rows), self.classes)
        dist.barrier()
        start = time.perf_counter()
        loss.backward()
        return {
            "end": time.perf_counter() - start,
            "ready": [when - start for when in self.ready],
            "buckets": [(size, left - start, came - start) for left, came, size in sorted(self.sent)],
        }


def timelines() -> dict[str, Any]:
    """For three settings, that of nine steps whose end is the median; the settings take turns."""
    settings = {
        "one bucket for all (bucket_cap_mb=100)": {"bucket_cap_mb": 100},
        "the default (1 MiB first, then 25 MiB)": {},
        "bucket_cap_mb=4": {"bucket_cap_mb": 4},
    }
    watched = {name: Watched(**chosen) for name, chosen in settings.items()}
    rounds = [{name: one.step() for name, one in watched.items()} for _ in range(11)]
    rounds = rounds[2:]  # the first step has other buckets, see ``buckets``
    return {name: sorted((one[name] for one in rounds), key=lambda step: step["end"])[4] for name in settings}


def blocks_of_memory(training: Training, **settings: bool) -> int:
    """In how many blocks of memory the gradients lie, after two steps."""
    model = DistributedDataParallel(copy.deepcopy(training.plain), **settings)
    for _ in range(2):
        training.step(model, *training.part)
    return len({parameter.grad.untyped_storage().data_ptr() for parameter in model.parameters()})


def sharded(training: Training) -> tuple[int, float]:
    """Bytes of weights that this rank holds with FSDP, and how far its gradients are off."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    model = copy.deepcopy(training.plain)
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    training.step(model, *training.part)
    training.alone()
    pairs = [
        (q.grad.full_tensor(), p.grad)
        for q, p in zip(model.parameters(), training.plain.parameters(), strict=True)
    ]
    off = max(((got - right).abs().max() / right.abs().max()).item() for got, right in pairs)
    return sum(4 * parameter.to_local().numel() for parameter in model.parameters()), off


def missing_rank(impatient: dist.ProcessGroup) -> str | None:
    """Rank 1 does something else, and never joins; what rank 0 says of it."""
    if dist.get_rank() == 1:
        time.sleep(1.5)
        return None
    start = time.perf_counter()
    try:
        dist.all_reduce(torch.ones(1), group=impatient)
    except RuntimeError as error:
        return f"after {time.perf_counter() - start:.1f} s: RuntimeError: ... {str(error).split('] ')[-1]}"
    return None


def tasks() -> dict[str, Task]:
    """All that a rank can be asked for, by name."""
    trainings = {
        "convolutions": Training(convolutions, 3, 32, 32),
        "wide": Training(wide, 1024),
        "deep": Training(deep, 32),
        "batch norm": Training(normalised, 64),
    }
    one_by_one = DistributedDataParallel(deep(), bucket_cap_mb=1e-6)
    silent = DistributedDataParallel(wide())
    silent.register_comm_hook([], send_nothing)
    impatient = dist.new_group(timeout=timedelta(seconds=1))
    few, many = trainings["wide"], trainings["deep"]
    known: dict[str, Task] = {
        "message": cost_of_a_message,
        "two lines": two_lines,
        "running means": lambda: running_means(trainings["batch norm"]),
        "SyncBatchNorm": lambda: synchronised(trainings["batch norm"]),
        "buckets": lambda: buckets(few),
        "buckets 25": lambda: buckets(few, bucket_cap_mb=25),
        "buckets, deep": lambda: buckets(many),
        "buckets, deep, one gradient each": lambda: buckets(many, bucket_cap_mb=1e-6),
        "timelines": timelines,
        "blocks": lambda: blocks_of_memory(few),
        "blocks, as views": lambda: blocks_of_memory(few, gradient_as_bucket_view=True),
        "sharded": lambda: sharded(few),
        "one gradient in a bucket": lambda: many.step(one_by_one, *many.part),
        "wide, no messages": lambda: few.step(silent, *few.part),
        "missing rank": lambda: missing_rank(impatient),
    }
    gradients = {
        "many small": [torch.zeros(1000) for _ in range(60)],
        "few large": [torch.zeros(1_000_000) for _ in range(3)],
    }
    for name, tensors in gradients.items():
        known[f"{name}, one call each"] = lambda tensors=tensors: one_call_each(tensors)
        known[f"{name}, one call"] = lambda tensors=tensors: one_call(tensors)
    for name, training in trainings.items():
        for way in vars(Training):
            if not way.startswith("_") and way != "step":
                known[f"{name}, {way}"] = getattr(training, way)
    return known


def serve(port: int) -> None:
    """Do tasks until the notebook closes the connection."""
    dist.init_process_group("gloo")
    known = tasks()
    notebook = socket.create_connection(("127.0.0.1", port)).makefile("rw")
    print(dist.get_rank(), file=notebook, flush=True)
    for line in notebook:
        torch.set_num_threads(1)
        print(json.dumps(known[line.strip()]()), file=notebook, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
