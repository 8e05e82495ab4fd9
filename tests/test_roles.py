"""Signs in a student's code that its counted costs, or what it shares, may be made up."""

from __future__ import annotations

import gc
import json
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder.roles import unusual_words, ways_inside, words_of_sharing

ROOT = Path(__file__).resolve().parents[1]
OURS = [*ROOT.glob("solutions/*/*.py"), *ROOT.glob("tests/answers/*.py"), *ROOT.glob("exercises/*/*.ipynb")]


@pytest.mark.parametrize(
    ("source", "signs"),
    [
        ("torch.Tensor.clone = f", {"torch.Tensor.clone"}),
        ("from collections import Counter as C\nC.__setitem__ = f", {"C.__setitem__"}),
        ("import torch.nn.functional as F\nF.relu += 1", {"F.relu"}),
        ("def f(x): return vars(x), x.__dict__, eval('1')", {"vars", "__dict__", "eval"}),
        ("import sys\nx = sys.modules['a']", {"sys.modules"}),
        ("%%writefile a.py\nimport importlib", {"importlib"}),
        ("x['__builtins__'], getattr(f, '__globals__')", {"__builtins__", "__globals__"}),
        ("f(globals=eval(globals()))", {"eval", "globals"}),
        ("%time torch.sum = f", {"torch.sum"}),
        ("%timeit -n1 exec(x)\n!python -m inspect", {"exec", "inspect"}),
        ("this is no Python: exec(x), sys.modules", {"exec", "sys.modules"}),
    ],
)
def test_ways_to_change_what_is_counted(source: str, signs: set[str]) -> None:
    assert ways_inside(source) == signs


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nif 'google.colab' in sys.modules: pass",
        "torch.backends.cudnn.benchmark = True\nmodel.eval()\ngetattr(torch, kind)",
        "self.x = layer.weight.data = 1\nN_CLASSES = 3\n%timeit f(N_CLASSES)",
        "'vars(x)'  # eval(x)",
        "Timer('f()', globals=globals()).timeit()",
        "messages = ['a'.encode()]",
    ],
)
def test_what_is_no_sign(source: str) -> None:
    assert ways_inside(source) == words_of_sharing(source) == set()


@pytest.mark.parametrize("code", ["x = a{}", "x = a{} +", "a{} = 1"])
def test_long_chains_of_names_take_no_longer_than_their_length(code: str) -> None:
    def seconds(parts: int) -> float:
        source, start = code.format(".a" * parts), time.process_time()
        for look in (unusual_words, ways_inside, words_of_sharing):
            look(source)
        return time.process_time() - start

    short = min(seconds(1500) for _ in range(3))
    assert min(seconds(15_000) for _ in range(3)) < 40 * short  # ten times as long; not a hundred times


class _Circle:
    """Collecting it takes a while, in which another thread may go on."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        sum(range(300))


def test_many_threads_may_look_at_code() -> None:
    """Where submissions are graded side by side, each has a thread, and garbage is collected at any time."""
    code = "\n".join(f"x{line} = ctypes.a(b{line}, [c, {{'d': e + {line}}}])" for line in range(60))

    def look(_number: int) -> list[str]:
        circles = [_Circle() for _ in range(50)]
        assert circles
        return unusual_words(code)

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(look, range(400)))
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
    assert found == [["ctypes"]] * 400


def test_what_could_change_what_is_said_of_shared_memory() -> None:
    assert words_of_sharing("from autograder.sandbox import encode as e, student\nimport mmap") == {
        "autograder.sandbox.encode",
        "mmap",
    }
    assert words_of_sharing("student.Results._alias = f") == {"Results", "_alias"}


def is_students(cell: dict) -> bool:
    return cell["cell_type"] == "code" and not cell["metadata"].get("nbgrader", {}).get("locked")


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_the_courses_own_answers_and_cells_have_no_signs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if is_students(cell)]
    else:
        # What is given is the author's own, and nobody looks for signs in it.
        cells = [
            cell for cell in re.split(r"(?m)^(?=# %%)", text) if 'role="given"' not in cell.partition("\n")[0]
        ]
    assert [ways_inside(cell) | words_of_sharing(cell) for cell in cells] == [set()] * len(cells)
