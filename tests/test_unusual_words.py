"""Which words in a student's code an instructor looks at, also beside IPython's own commands."""

from __future__ import annotations

import pytest

from autograder.roles import unusual_words


@pytest.mark.parametrize(
    "innocent",
    [
        "N_CLASSES = 10",
        "N_CLASSES = 10\n%matplotlib inline",
        "%%time\nN_CLASSES, IN_CHANNELS = 10, 3",
        "N_CPUS = !nproc\nN_CLASSES = 10",
        "torch.roll?\nN_CLASSES = 10",
        "%timeit -n 1 f(N_CLASSES)",
        "# neither ctypes nor sys._getframe\n%pwd",
        "def unfinished(\n    N_CLASSES = 10",
        "x = '" + "%" * 100_000,
        " " * 1_000_000 + "(\n?",
        "(" * 100_000,
        "\0",
        "!cat /proc/cpuinfo",
        "open('/proc/meminfo')",
    ],
)
def test_innocent_names_are_none(innocent: str) -> None:
    assert unusual_words(innocent) == []


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("import ctypes", "ctypes"),
        ("import ctypes\n%matplotlib inline", "ctypes"),
        ("%%time\nimport torch._C as c", "_C"),
        ("%timeit sys._getframe()", "_getframe"),
        ("!cat /proc/1/maps", "/proc/"),
        ("found = !cat /proc/1/maps", "/proc/"),
        ("open('/proc/statm/../self/maps')", "/proc/"),
        ("%%writefile m.py\nfrom autograder import sandbox", "autograder.sandbox"),
        ("%run -m autograder.sandbox.forkserver", "autograder.sandbox"),
        ("gc.get_objects(\n", "get_objects"),
        ("torch._C._x?", "_C"),
    ],
)
def test_the_others_are_found(code: str, word: str) -> None:
    assert word in unusual_words(code)
