"""What runs where and when: notebooks count as slow tests, and the longest files start first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Grading needs the sandbox, and that needs Linux.
LINUX_ONLY = [
    "tests/grading",
    "tests/test_device_judge.py",
    "tests/test_fuzzing.py",
    "tests/test_gpu.py",
    "tests/test_jupyterhub.py",
]

# In about this order; whatever is not here comes after them, and takes less than half a minute.
LONGEST = [
    "tests/grading/test_adversaries.py",
    "tests/grading/test_faults.py",
    "tests/grading/test_isolated.py",
    "tests/grading/test_gradescope.py",
    "tests/grading/test_new_chapter.py",
    "tests/grading/test_guides.py",
    "tests/grading/test_all_answers.py",
    "tests/grading/test_grading.py",
    "tests/grading/test_bad_inputs.py",
    "tests/browser/test_class.py",
    "course/",
]
# Their tests have nothing in common, and any process may take one.
EACH_FOR_ITSELF = [
    "tests/grading/test_all_answers.py",
    "tests/grading/test_guides.py",
    "tests/grading/test_new_chapter.py",
]


def on_linux() -> bool:
    return sys.platform.startswith("linux")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    there = collection_path.relative_to(config.rootpath).as_posix()
    return True if there in LINUX_ONLY and not on_linux() else None


def pytest_report_header() -> list[str]:
    return [] if on_linux() else [f"left out, because grading needs Linux: {', '.join(LINUX_ONLY)}"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("slow")
    items.sort(key=lambda item: place(item.nodeid))


def place(test: str) -> int:
    """Where in the order a test comes; those of one file keep theirs."""
    return next((number for number, name in enumerate(LONGEST) if test.startswith(name)), len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give a process whole files, as `--dist loadfile` does, but not those whose tests share nothing."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return nodeid if file in EACH_FOR_ITSELF else file

    return Scheduling(config, log) if config.option.dist == "loadfile" else None
