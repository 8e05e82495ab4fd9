"""What runs where and when: notebooks count as slow tests, and the longest files start first."""

import re
import sys
from collections import Counter
from pathlib import Path

import forked_kernels
import programs
import pytest

ROOT = Path(__file__).parent
# What `make test` takes of the slow tests; `make test-all` takes all of them.
OF_EACH_KIND = ROOT / "tests" / "of_each_kind.txt"

# Grading needs the sandbox, and that needs Linux.
LINUX_ONLY = [
    "tests/grading",
    "tests/judge/test_sandboxed.py",
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
ON_LINUX = sys.platform.startswith("linux")
left_out: dict[str, int] = {}  # file -> how many of its slow tests


def pytest_addoption(parser: pytest.Parser) -> None:
    what = f"of the slow tests, only those of {OF_EACH_KIND.name}"
    parser.addoption("--of-each-kind", action="store_true", help=what)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    there = collection_path.relative_to(config.rootpath).as_posix()
    return True if there in LINUX_ONLY and not ON_LINUX else None


def pytest_report_header() -> list[str]:
    return [] if ON_LINUX else [f"left out, because grading needs Linux: {', '.join(LINUX_ONLY)}"]


@pytest.hookimpl(trylast=True)  # when the others have taken out what was not asked for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.of_each_kind:
        chosen = of_each_kind()
        gone = {item for item in items if item.get_closest_marker("slow") and not chosen(item.nodeid)}
        config.hook.pytest_deselected(items=gone)
        left_out.update(Counter(item.nodeid.partition("::")[0] for item in gone))
        items[:] = [item for item in items if item not in gone]
    items.sort(key=lambda item: place(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.suffix == ".ipynb":
        item.add_marker("slow")


def of_each_kind():
    """Whether `make test` takes a slow test: its id begins as one of the lines says."""
    lines = OF_EACH_KIND.read_text(encoding="utf-8").splitlines()
    return re.compile("|".join(f"(?:{line})" for line in lines if line and line[0] != "#")).match


def place(test: str) -> int:
    """Where in the order a test comes; those of one file keep theirs."""
    return next((number for number, name in enumerate(LONGEST) if test.startswith(name)), len(LONGEST))


@pytest.hookimpl(tryfirst=True)  # before nbval starts a kernel
def pytest_runtest_setup(item: pytest.Item) -> None:
    programs.guard(item)
    if ON_LINUX:
        forked_kernels.use(item.path.suffix == ".ipynb")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    """What a process of pytest-xdist left out, which all of them do alike."""
    left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One short list of what was left out, and what would bring it back."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    lacking = Counter(found for why in reasons for found in re.findall(r"needs (\S+: .*)", why))
    if lacking:
        terminalreporter.section("left out on this machine")
        for what, number in lacking.most_common():
            terminalreporter.line(f"{number:5} tests need {what}")
        terminalreporter.line(f"To have them run, on Debian and Ubuntu: {programs.INSTALL}")
    if left_out:
        terminalreporter.section("left out here, run by make test-all")
        notebooks = sum(file.endswith(".ipynb") for file in left_out)
        terminalreporter.line(f"{notebooks:5} notebooks of course/ and solutions/")
        for file, number in Counter(left_out).most_common():
            if not file.endswith(".ipynb"):
                terminalreporter.line(f"{number:5} tests of {file}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give a process whole files, as `--dist loadfile` does, but not those whose tests share nothing."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return nodeid if file in EACH_FOR_ITSELF else file

    return Scheduling(config, log) if config.option.dist == "loadfile" else None
