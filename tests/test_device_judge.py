"""The judge for a GPU, with the CPU in its place where there is none."""

import ctypes
import shutil
from pathlib import Path

import pytest
import torch
from programs import run

from autograder.gpu import device_judge, device_memory
from autograder.gpu.device_judge import Work, judge_on_device
from autograder.judging.calls import AnswerError
from autograder.measuring.duel import DuelError

pytestmark = [pytest.mark.slow, pytest.mark.attack]

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
DEVICES = ["cpu", pytest.param("cuda", marks=NO_GPU)]
GIVEN = """
import torch

def slow(x):
    for _ in range(1500):
        x = x.mul(1.0)
    return x + 1
"""
QUICK = f"""{GIVEN}
def quick(x):
    for _ in range(500):
        x = x.mul(1.0)
    return x + 1
"""
# The process that runs this is the module below.
IN_ITS_PROCESS = f"""{QUICK}
import sys, threading
here = sys.modules["__main__"]
"""


@pytest.fixture(autouse=True)
def impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy CPU a call that does nothing may take as long as one that works."""
    if "short" not in request.node.name:
        monkeypatch.setattr(device_judge, "FEWEST_TIMES", 0)


def numbers(generator: torch.Generator, device: str) -> torch.Tensor:
    return torch.rand(1 << (20 if device == "cuda" else 16), generator=generator).to(device)


def race(cell: str, device: str, name: str = "work"):
    return judge_on_device(Work([GIVEN], "slow"), Work([cell], name), numbers, threshold=1.5, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_a_fast_answer_is_faster_and_the_given_version_itself_is_not(device: str) -> None:
    verdict = race(QUICK, device, "quick")
    assert verdict.word == "faster" and verdict.clock == "wall" and verdict.ratio.median > 1.5
    assert len(verdict.logs) >= 11 and all(len(taken) >= 33 for taken in verdict.seconds.values())
    verdict = race(GIVEN, device, "slow")
    assert verdict.word == "slower" and 0.6 < verdict.ratio.median < 1.5


WRONG = "a result was wrong|a result was not ready"
# What a cheat does, and how it ends: a verdict, or the words of an error.
CHEATS = {
    "replies before the work is done": (
        """
def call(self, request, call=here._Answer._call):
    if request.args is None:
        return call(self, request)
    given = [self._arguments.value(node) for node in request.args]
    results = here._ResultsOnDevice(self._arguments.storages, self._results)
    node = results.node(torch.empty_like(given[0]))

    def later():
        self._results[: results.size].copy_(slow(*given).view(torch.uint8))

    threading.Thread(target=later).start()
    return node

here._Answer._call = call
work = slow
""",
        WRONG,
    ),
    "works on another stream, and nobody waits": (
        """
if torch.cuda.is_available():
    torch.cuda.synchronize = lambda *_: None

def work(x):
    if not x.is_cuda:
        return slow(x)
    with torch.cuda.stream(torch.cuda.Stream()):
        return slow(x)
""",
        f"slower|{WRONG}",
    ),
    "computes when it is looked at": (
        """
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*(slow(a.of) if isinstance(a, Lazy) else a for a in args), **(kwargs or {}))

def work(x):
    lazy = torch.empty_like(x).as_subclass(Lazy)
    lazy.of = x
    return lazy
""",
        WRONG,
    ),
    "replays the results of earlier inputs, by their place": (
        """
known = {}

def work(x):
    return known.setdefault(x.data_ptr(), slow(x))
""",
        f"slower|{WRONG}",
    ),
    "replays without a look": (
        """
known = []

def work(x):
    if not known:
        known.append(slow(x))
    return known[0]
""",
        WRONG,
    ),
    "does the first half": (
        """
def work(x):
    result = torch.empty_like(x)
    result[: len(x) // 2] = quick(x[: len(x) // 2])
    return result
""",
        WRONG,
    ),
    "computes in sixteen bits": ("def work(x):\n    return quick(x.half()).float()", WRONG),
    "hopes for what is left in memory": ("def work(x):\n    return torch.empty_like(x)", WRONG),
    "changes the clocks": (
        """
import time

for name in ("perf_counter", "monotonic", "time", "process_time"):
    setattr(time, name, lambda now=getattr(time, name): now() / 10)
torch.cuda.Event.elapsed_time = lambda *_: 1e-3
work = slow
""",
        "slower",
    ),
    "works in its input": ("def work(x):\n    return x.copy_(slow(x))", WRONG),
    "changes its input afterwards": (
        "def work(x):\n    result = slow(x)\n    x.zero_()\n    return result",
        "changed its input",
    ),
    "begins when its input appears": (
        """
found = {}

def watch(self):
    seen = self._inputs[: 1 << 18].clone()
    while True:
        if not torch.equal(self._inputs[: 1 << 18], seen):
            seen = self._inputs[: 1 << 18].clone()
            found["result"] = seen.view(torch.float32)[:100].sum()

def serve(self, serve=here._Answer.serve):
    if self._device == "cpu":
        threading.Thread(target=watch, args=(self,), daemon=True).start()
    serve(self)

here._Answer.serve = serve
work = slow
""",
        "slower",
    ),
    "keeps the machine busy while the other works": (
        """
import os

if os.fork() == 0:
    while True:
        sum(range(1000))
work = slow
""",
        "slower",
    ),
    "leaves work on the device for the other's turn": (
        """
def work(x):
    result = slow(x)
    if x.is_cuda:
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(10**9)
    return result
""",
        "slower|something works on the device",
    ),
    "answers that its result lies elsewhere": (
        """
def values(self, data):
    return 1 << 40, data.numel() * data.itemsize

here._ResultsOnDevice._values = values
work = slow
""",
        "beyond its memory",
    ),
    "sends no message": (
        """
def send(self, message, *rest, send=here.Channel.send, **more):
    return send(self, "a text", *rest, **more)

here.Channel.send = send
work = slow
""",
        "does not fit its schema",
    ),
    "gives a result on the CPU": ("def work(x):\n    return slow(x).cpu()", "slower|on the device 'cpu'"),
    "ends": ("import os\n\ndef work(x):\n    os._exit(0)", "'fast' ended its process"),
    "raises": ("def work(x):\n    raise ValueError('no')", "'fast' raised ValueError"),
    "is not there": ("", "'fast' raised KeyError"),
    "gives too much": ("def work(x):\n    return x.new_empty(1 << 26)", "more than 128 MiB"),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cheat", CHEATS)
def test_no_cheat_is_faster(cheat: str, device: str) -> None:
    cell, end = CHEATS[cheat]
    try:
        said = race(IN_ITS_PROCESS + cell, device).word
    except (AnswerError, DuelError) as error:
        said = str(error)
    assert any(words in said for words in end.split("|")), said


@pytest.mark.parametrize("device", DEVICES)
def test_results_may_be_of_many_kinds(device: str) -> None:
    many = """
def {name}(x):
    result = {of}(x)
    return {{"views": (x[::2], x.expand(2, -1)), "numbers": [result.sum(), 3, 0.5, None, "text"],
            "empty": result[:0], "strided": result.view(2, -1).T, "bits": result > 1.5, "half": result.half(),
            "repeated": result[:1].expand(9), "complex": torch.complex(result, -result).conj()}}
"""
    given, answer = (many.format(name=f"{of}_many", of=of) for of in ("slow", "quick"))
    sides = Work([GIVEN, given], "slow_many"), Work([QUICK, answer], "quick_many")
    verdict = judge_on_device(*sides, numbers, threshold=1.2, device=device)
    assert verdict.word == "faster"


@pytest.mark.parametrize("device", DEVICES)
def test_short_calls_are_not_judged(device: str) -> None:
    cell = "def work(x):\n    return x + 1"
    with pytest.raises(DuelError, match=r"too little to be judged here: .* Take larger inputs"):
        judge_on_device(Work([cell], "work"), Work([cell], "work"), numbers, threshold=1.5, device=device)


@pytest.mark.parametrize(
    ("on", "threshold", "error", "said"),
    [
        (lambda generator, device: torch.ones(9), 2, ValueError, "the same inputs each time"),
        (lambda generator, device: torch.rand(9, generator=generator).numpy(), 2, TypeError, "plain values"),
        (numbers, -1, ValueError, "above 0"),
    ],
)
def test_nonsense_is_refused(on, threshold, error, said) -> None:
    with pytest.raises(error, match=said):
        judge_on_device(Work([GIVEN], "slow"), Work([QUICK], "quick"), on, threshold=threshold, device="cpu")


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        ("open('/var/tmp/left-behind', 'w')", "Read-only file system"),
        ("import socket; socket.create_connection(('127.0.0.1', 22), 5)", "refused|unreachable"),
        ("import os; assert len([p for p in os.listdir('/proc') if p.isdigit()]) > 9, 'few'", "few"),
    ],
)
def test_a_side_is_alone(attempt: str, said: str) -> None:
    with pytest.raises(DuelError) as found:
        race(f"{attempt}\n{GIVEN}", "cpu", "slow")
    assert any(words in str(found.value) for words in said.split("|")), found.value


DRIVER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct { char reserved[64]; } Handle;
static Handle last;
static size_t bytes;

static int map(unsigned long long *at, const char *name, size_t size) {
    int file = open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, size)) return 2;
    *at = (unsigned long long)mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return 0;
}
int cuMemAlloc_v2(unsigned long long *at, size_t size) {
    snprintf(last.reserved, 64, "%s", FILE_NAME);
    bytes = size;
    return map(at, last.reserved, size);
}
int cuIpcGetMemHandle(Handle *handle, unsigned long long at) { *handle = last; return at ? 0 : 1; }
int cuIpcOpenMemHandle_v2(unsigned long long *at, Handle handle, unsigned flags) {
    return flags == 1 && !strcmp(handle.reserved, last.reserved) ? map(at, handle.reserved, bytes) : 1;
}
int cuMemFree_v2(unsigned long long at) { return munmap((void *)at, bytes) ? 1 : 0; }
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no C compiler here")
def test_the_driver_is_called_as_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a library that has the driver's functions, and gives memory of the CPU."""
    (tmp_path / "driver.c").write_text(DRIVER)
    name = f'-DFILE_NAME="{tmp_path}/memory"'
    library = tmp_path / "libcuda.so.1"
    assert run("gcc", "-shared", "-fPIC", name, tmp_path / "driver.c", "-o", library).returncode == 0
    driver = ctypes.CDLL(str(library))

    def tensor(address: ctypes.c_uint64, size: int, device: str) -> torch.Tensor:
        content = (ctypes.c_uint8 * size).from_address(address.value or 0)
        return torch.frombuffer(content, dtype=torch.uint8)

    monkeypatch.setattr(device_memory.ctypes, "CDLL", lambda name: driver)
    monkeypatch.setattr(device_memory, "_begin", lambda device: None)
    monkeypatch.setattr(device_memory, "_tensor", tensor)
    made = device_memory.allocate(4096, "cuda")
    assert len(made.ticket) == 64 and made.files == []
    other = device_memory.opened(4096, "cuda", made.ticket, [])
    made.contents[7] = 42
    assert other[7] == 42 and other.data_ptr() != made.contents.data_ptr()
    with pytest.raises(device_memory.DeviceMemoryError, match=r"refused cuIpcOpenMemHandle_v2 \(error 1\)"):
        device_memory.opened(4096, "cuda", b"x" * 64, [])
    made.close()
