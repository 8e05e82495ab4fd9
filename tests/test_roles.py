"""What in a student's code an instructor looks at: words, also beside IPython's own commands."""

import ast
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from autograder.sandbox.submissions.suspicious_words import unusual_words

# Code, and the word in it that is nobody's business; None where there is no such word.
WORDS = {
    "import ctypes\n%matplotlib inline": "ctypes",
    "%%time\nimport torch._C as c": "_C",
    "%timeit sys._getframe()": "_getframe",
    "found = !cat /proc/1/maps": "/proc/",
    "open('/proc/statm/../self/maps')": "/proc/",
    "%%writefile m.py\nfrom autograder import sandbox": "autograder.sandbox",
    "gc.get_objects(\n": "get_objects",
    "torch._C._x?": "_C",
    "%%time\nN_CLASSES, IN_CHANNELS = 10, 3": None,
    "torch.roll?\nN_CLASSES = 10": None,
    "# neither ctypes nor sys._getframe\n%pwd": None,
    "def unfinished(\n    N_CLASSES = 10": None,
    "x = '" + "%" * 100_000: None,
    " " * 1_000_000 + "(\n?": None,
    "(" * 100_000: None,
    "\0": None,
    "open('/proc/meminfo')": None,
    "sandbox = vars(x), x.__dict__, eval('1'), globals(), sys.modules, inspect, types": None,
}


def test_words_that_are_nobodys_business_are_found_and_no_others() -> None:
    for source, word in WORDS.items():
        found = unusual_words(source)
        assert word in found if word else found == [], source[:80]


@pytest.mark.parametrize("code", ["x = a{}", "x = a{} +", "a{} = 1"])
def test_long_chains_of_names_take_no_longer_than_their_length(code: str) -> None:
    def seconds(parts: int) -> float:
        source, start = code.format(".a" * parts), time.process_time()
        unusual_words(source)
        return time.process_time() - start

    short = min(seconds(1500) for _ in range(3))
    assert min(seconds(15_000) for _ in range(3)) < 40 * short  # ten times as long; not a hundred times


def test_many_threads_may_look_at_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's parser sometimes fails where two threads use it: submissions that are graded side by side."""
    at_work, parse = [], ast.parse

    def slowly(source: str) -> ast.Module:
        at_work.append(source)
        time.sleep(0.001)
        assert at_work.pop() == source and not at_work
        return parse(source)

    monkeypatch.setattr(ast, "parse", slowly)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(unusual_words, [f"ctypes.a(b{number})" for number in range(20)]))
    assert found == [["ctypes"]] * 20
