"""Ranks that run a notebook's functions, what they send and hold, a link that is pretended, and a pipeline's picture."""

from __future__ import annotations

import gc
import inspect
import multiprocessing
import os
import pickle
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.show import HERE, INK, RECORDED

# What the ranks have beside this file, as the chapter imports it. Linux loads it once, in a process that it copies.
TOOLS = {
    "itertools": ["pairwise"],
    "torch.distributed.device_mesh": ["init_device_mesh"],
    "torch.distributed.fsdp": ["fully_shard"],
    "torch.distributed.pipelining": ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"],
    "torch.distributed.tensor": ["DTensor", "Partial", "Replicate", "Shard", "distribute_tensor"],
    "torch.distributed.tensor.parallel": [
        *("ColwiseParallel", "PrepareModuleInput", "RowwiseParallel", "SequenceParallel"),
        "parallelize_module",
    ],
    "torch.nn.parallel": ["DistributedDataParallel"],
}
PATIENCE = 60  # seconds that a rank waits for the others


class Ranks:
    """Processes that know each other through gloo, and run functions that a notebook has shown them.

    They end with ``close``, or with the process that made them, however that ends.
    """

    def __init__(self, number: int) -> None:
        copied = sys.platform == "linux"  # elsewhere each loads torch itself
        context: Any = multiprocessing.get_context("forkserver" if copied else "spawn")
        if copied:
            context.set_forkserver_preload([*TOOLS, __name__])
        with socket.create_server(("127.0.0.1", 0)) as meeting_point:
            port = meeting_point.getsockname()[1]  # free again at the end of this block
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.log = Path(self.folder.name, "ranks.log")
        self.lines: list[Connection] = []
        self.processes = []
        for rank in range(number):
            mine, its = context.Pipe()
            given = its, rank, number, port, str(self.log)
            self.processes.append(context.Process(target=serve, args=given, daemon=True))
            self.processes[-1].start()
            its.close()
            self.lines.append(mine)
        self._answers()

    def know(self, function: Callable) -> Callable:
        """Show a function to all ranks: they get its text. For use as a decorator in a cell."""
        text = inspect.getsource(function)
        self._ask(text[text.index("def ") :], None)
        return function

    def do(self, function: Callable, *given: Any) -> list[Any]:
        """What each rank's call of the function gives. Raises RuntimeError with what a rank said that failed."""
        return self._ask(function.__name__, given)

    def close(self) -> None:
        """Let the ranks end."""
        for line in self.lines:
            line.close()
        for process in self.processes:
            process.join(10)
        self.folder.cleanup()

    def _ask(self, text: str, given: tuple | None) -> list[Any]:
        asked = pickle.dumps((text, given))
        for line in self.lines:
            line.send_bytes(asked)
        return self._answers()

    def _answers(self) -> list[Any]:
        try:
            replies = [pickle.loads(line.recv_bytes()) for line in self.lines]
        except EOFError:
            raise RuntimeError(f"a rank ended:\n{self.log.read_text(encoding='utf-8')[-2000:]}") from None
        for rank, (well, answer) in enumerate(replies):
            if not well:
                raise RuntimeError(f"rank {rank}:\n{answer}")
        return [answer for _, answer in replies]


def serve(notebook: Connection, rank: int, ranks: int, port: int, log: str) -> None:
    """What a rank does: run functions until the notebook closes the connection."""
    with open(log, "a", encoding="utf-8") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    threading.Thread(target=end_with_the_notebook, daemon=True).start()
    if loopback := {"linux": "lo", "darwin": "lo0"}.get(sys.platform):
        os.environ["GLOO_SOCKET_IFNAME"] = loopback
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    patience = timedelta(seconds=PATIENCE)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks, timeout=patience)
    tools = {name: getattr(import_module(home), name) for home, names in TOOLS.items() for name in names}
    known = globals() | tools
    notebook.send_bytes(pickle.dumps((True, None)))
    gc.freeze()  # what is here stays, and no collection looks at it
    while True:
        try:
            text, given = pickle.loads(notebook.recv_bytes())
        except EOFError:
            break
        torch.manual_seed(0)
        try:
            answer = exec(text, known) if given is None else known[text](*given)
            reply = pickle.dumps((True, answer))
        except Exception:
            reply = pickle.dumps((False, traceback.format_exc()))
        gc.collect()  # models hold themselves in cycles
        notebook.send_bytes(reply)
    dist.destroy_process_group()


def end_with_the_notebook() -> None:
    """End this rank when the process that started it is gone, even where it waits for other ranks."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


class Message(NamedTuple):
    """One collective as a rank sees it: its kind, and the bytes that this rank sends if a ring carries it."""

    kind: str
    sent: float


class Traffic(TorchDispatchMode):
    """Notes all messages of a ``with`` block, as torch's dispatcher sees them.

    ``messages`` has one Message for each; ``sent`` is the sum of what a rank sends, if rings carry them;
    ``written`` is what this process gave to the operating system meanwhile, or None where that is not told.
    """

    # How many times the bytes of the whole tensor a rank sends, of n ranks in a ring.
    KINDS: Mapping[str, Callable[[int], float]] = {
        "reduce_scatter": lambda n: (n - 1) / n,
        "all_gather": lambda n: (n - 1) / n,
        "all_reduce": lambda n: 2 * (n - 1) / n,
        "all_to_all": lambda n: (n - 1) / n,
        "send": lambda n: 1,
    }

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []
        self.written: int | None = None

    def __enter__(self) -> Traffic:
        self._before = written()
        super().__enter__()
        return self

    def __exit__(self, *how: Any) -> None:
        super().__exit__(*how)
        after = written()
        self.written = None if after is None or self._before is None else after - self._before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch.distributed.tensor import DTensor

        if any(issubclass(one, DTensor) for one in types):
            return NotImplemented  # it comes again, as what the DTensor does with its local tensors
        if "c10d" in func.namespace or func.namespace == "_dtensor":
            self._note(func, args)
        return func(*args, **(kwargs or {}))

    def _note(self, func: Any, args: Any) -> None:
        name = func._schema.name.split("::")[1].lstrip("_")
        for joined in ("all_gather", "all_reduce", "all_to_all"):  # the same by older names
            name = name.replace(joined.replace("_", ""), joined)
        kind = next((kind for kind in self.KINDS if name.startswith(kind)), None)
        if kind is None:
            return
        n = dist.get_world_size()
        sizes = [one.nbytes for one in tree_leaves(args) if isinstance(one, torch.Tensor)]
        # One kind of all-gather is called with the rank's own part alone.
        whole = {"all_gather": n * min(sizes), "all_reduce": sum(sizes)}.get(kind, max(sizes))
        self.messages.append(Message(kind, self.KINDS[kind](n) * whole))

    @property
    def sent(self) -> float:
        """Bytes that this rank sends in all, by the formulas."""
        return sum(message.sent for message in self.messages)

    @property
    def kinds(self) -> dict[str, int]:
        """How many messages of each kind there were."""
        return dict(Counter(message.kind for message in self.messages))


def written() -> int | None:
    """Bytes that this process has written so far, to sockets, too; None where the system does not say it."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


# ---- What the ranks train ----


class FeedForward(nn.Module):
    """The wide part of a transformer's block: two products side by side, and a third of both."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.w1, self.w3 = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, width) -> (…, width)."""
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    """Norm, feed-forward, and what came in beside them."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm, self.feed_forward = nn.LayerNorm(width), FeedForward(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, width) -> (…, width)."""
        return x + self.feed_forward(self.norm(x))


def make_model(width: int = 256, hidden: int = 512, blocks: int = 4) -> nn.Sequential:
    """The same weights wherever it is called."""
    torch.manual_seed(0)
    return nn.Sequential(*(Block(width, hidden) for _ in range(blocks)))


def make_texts(texts: int, places: int = 16, width: int = 256) -> torch.Tensor:
    """The same numbers wherever it is called: (texts, places, width)."""
    return torch.randn(texts, places, width, generator=torch.Generator().manual_seed(1))


def gradients_alone(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """What one process gets for the whole batch, by the names of the parameters."""
    model(x).square().mean().backward()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    return found


def local(tensor: torch.Tensor) -> torch.Tensor:
    """What of a tensor this rank has."""
    from torch.distributed.tensor import DTensor

    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def off(model: nn.Module, right: Mapping[str, torch.Tensor]) -> float:
    """How far gradients are from the right ones at most, relative to the largest of each."""
    from torch.distributed.tensor import DTensor

    worst = 0.0
    for name, parameter in model.named_parameters():
        got, wanted = parameter.grad, right[name.removeprefix("module.")]
        got = got.full_tensor() if isinstance(got, DTensor) else got
        worst = max(worst, ((got - wanted).abs().max() / wanted.abs().max()).item())
    return worst


def held(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """Bytes that this rank holds between two steps."""
    weights = list(model.parameters())
    states = [value for state in optimizer.state.values() for value in state.values()]
    return {
        "weights": sum(local(weight).nbytes for weight in weights),
        "gradients": sum(local(weight.grad).nbytes for weight in weights if weight.grad is not None),
        "optimiser": sum(local(value).nbytes for value in states if value.dim()),
    }


def two_steps(
    model: nn.Module, x: torch.Tensor, right: Mapping[str, torch.Tensor], scale: float = 1.0
) -> dict[str, Any]:
    """How far off gradients are in a first step, and what a rank sends and holds in a second one.

    ``scale`` is for ranks whose own mean loss is a part of the whole one.
    """
    optimizer = torch.optim.Adam(model.parameters())
    (model(x).square().mean() * scale).backward()
    error = off(model, right)
    optimizer.step()
    optimizer.zero_grad()
    with Traffic() as traffic:
        (model(x).square().mean() * scale).backward()
    told = {"kinds": traffic.kinds, "sent": traffic.sent, "written": traffic.written}
    return told | {"off": error, "held": held(model, optimizer)}


def kept_for_backward(model: nn.Module, x: torch.Tensor) -> int:
    """Bytes that a forward pass keeps for the backward pass on this rank, weights aside."""
    weights = {local(weight).untyped_storage().data_ptr() for weight in model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        own = local(tensor)
        own = own.wait() if hasattr(own, "wait") else own  # a message may still be on its way
        kept[own.untyped_storage().data_ptr()] = own
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = model(x)
    del result
    return sum(own.untyped_storage().nbytes() for at, own in kept.items() if at not in weights)


# ---- A link, and a pipeline ----


def passes(model: nn.Module, x: torch.Tensor, turns: int = 5) -> tuple[float, float]:
    """Milliseconds of a forward and of a backward pass, the least disturbed of some turns."""
    x = x.clone().requires_grad_()
    forward, backward = [], []
    for _ in range(turns):
        began = time.perf_counter()
        loss = model(x).square().mean()
        between = time.perf_counter()
        loss.backward()
        forward.append(between - began)
        backward.append(time.perf_counter() - between)
    return 1e3 * min(forward), 1e3 * min(backward)


class Link:
    """A link that we pretend: a message takes its bytes / bandwidth in seconds, and no processor."""

    def __init__(self, bandwidth: float) -> None:
        self.bandwidth = bandwidth
        self._line = ThreadPoolExecutor(1)

    def gather(self, weight: torch.Tensor) -> Future[torch.Tensor]:
        """The weight, when it has arrived."""

        def travel() -> torch.Tensor:
            time.sleep(weight.nbytes / self.bandwidth)
            return weight

        return self._line.submit(travel)


class Span(NamedTuple):
    """One piece of work: which stage does it, "F" or "B", for which microbatch, and from when to when."""

    stage: int
    kind: str
    microbatch: int
    start: float
    end: float


def draw_pipelines(timelines: Mapping[str, Sequence[Span]], unit: str = "ms") -> tuple[Figure, str]:
    """Who works when, one panel for each schedule; and the same in words."""
    figure = Figure(figsize=(7.5, 0.5 + 1.6 * len(timelines)), dpi=110, layout="constrained")
    rows = figure.subplots(len(timelines), 1, sharex=True, squeeze=False)[:, 0]
    told, last = [], max(span.end for spans in timelines.values() for span in spans)
    for axes, (name, spans) in zip(rows, timelines.items(), strict=True):
        stages = 1 + max(span.stage for span in spans)
        end = max(span.end for span in spans)
        busy = sum(span.end - span.start for span in spans)
        for span in spans:
            colour = HERE if span.kind == "F" else RECORDED
            length = span.end - span.start
            axes.barh(span.stage, length, left=span.start, height=0.8, color=colour, ec="white", lw=0.6)
            if length > last / 60:  # room for two digits
                middle = (span.start + span.end) / 2
                text = str(span.microbatch + 1)
                axes.text(middle, span.stage, text, ha="center", va="center", color="white", fontsize=7.5)
        idle = 1 - busy / (stages * end)
        said = f"{end:.3g} {unit}, {idle:.0%} of it idle"
        axes.set_title(f"{name}: {said}", fontsize=9.5, loc="left", color=INK)
        axes.set_yticks(range(stages), [f"rank {stage}" for stage in range(stages)], fontsize=8.5)
        axes.set_ylim(stages - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        told.append(f"{name}: {said}")
    label = f"{unit} (blue: forward; orange: backward; the number is that of the microbatch)"
    rows[-1].set_xlabel(label, fontsize=8.5)
    return figure, "Bars over time, a row for each rank. " + "; ".join(told) + "."
