"""Each extra is a folder that can be deleted: the rest works, and says in a sentence what is not there."""

import os
import shutil
from pathlib import Path

import pytest
from grading_class import STUDENTS, a_class, command, scores
from programs import python, run
from repository import ROOT

from autograder.__main__ import COMMANDS

EXTRAS = sorted(path.parent.name for path in (ROOT / "autograder" / "extras").glob("*/__init__.py"))
# All other modules are imported, --help is shown, and what was left out is asked for.
LOOK = """
import sys
from importlib import import_module
from pkgutil import walk_packages
import autograder
from autograder.__main__ import main
from autograder.command_line import CommandError, extra

for module in walk_packages(autograder.__path__, "autograder."):
    import_module(module.name)
try:
    extra({left_out!r})
except CommandError as error:
    print(error)
for command in {commands}:
    assert main([command]) == 1, command
main(["--help"])
"""


def without(folder: Path, extras) -> dict[str, str]:
    """A copy of the package without these extras; gives the environment in which it is found."""
    shutil.copytree(ROOT / "autograder", folder / "autograder", ignore=shutil.ignore_patterns("__pycache__"))
    for extra in extras:
        shutil.rmtree(folder / "autograder" / "extras" / extra)
    return os.environ | {"PYTHONPATH": str(folder)}


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_the_rest_does_without_it(extra: str, tmp_path: Path) -> None:
    environment = without(tmp_path, [extra])
    commands = [name for name, (place, _) in COMMANDS.items() if place == f"extras.{extra}"]
    look = LOOK.format(left_out=extra, commands=commands)
    done = python(look, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    sentence = f"{extra} was left out of this installation: there is no autograder/extras/{extra}.\n"
    assert done.stdout.startswith(sentence) and "grade a class, in parallel" in done.stdout
    assert done.stderr == f"error: {sentence}" * len(commands)


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_a_class_is_graded_without_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = without(tmp_path / "package", EXTRAS)
    few = [ROOT / "tests" / "grading" / f"test_{name}.py" for name in ("pool", "restore", "verdicts")]
    done = run("python", "-m", "pytest", "-q", "-m", "not slow", *few, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout
    course = a_class(tmp_path / "class", STUDENTS[:1])
    monkeypatch.chdir(course.folder)
    where = {"PYTHONPATH": environment["PYTHONPATH"]}
    done = command(course, "grade", "traps", "--workers", "1", **where)
    assert done.returncode == 0 and "1 graded, 0 skipped" in done.stdout, done.stderr
    assert scores() == {STUDENTS[0]: 9.5}
    done = command(course, "grade", "traps", "--scheduler", "tcp://127.0.0.1:1", **where)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "error: dask was left out of this installation" in done.stderr


def test_the_help_of_commands_is_quick() -> None:
    look = f"""
import sys
from contextlib import redirect_stdout, suppress
from autograder.__main__ import find
for name in {[*COMMANDS]}:
    with suppress(SystemExit), redirect_stdout(sys.stderr):
        find(name)(["--help"])
"""
    done = python(look + "print({'torch', 'nbgrader', 'sqlalchemy'} & sys.modules.keys())")
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
