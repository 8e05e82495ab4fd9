"""Nothing of a student's, and no attack, runs where the sandbox has not just shown that it holds."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from grading_class import a_class, command, configure
from pretend_class import answered, hand_in
from programs import run
from repository import ROOT

from autograder.authoring.scratch_course import ScratchCourse
from autograder.sandbox import Sandbox, SandboxError
from autograder.sandbox.walls import proof

PYTHON = str(Path(sys.executable).parent)  # a PATH with Python and nbgrader, and no other program
ALLOWED = "c.RunEveryCell.without_sandbox = True"
# Programs called bwrap, as a machine may have them, and what is said of each.
STANDS_IN = {
    "nothing is there": (None, "bubblewrap was not found. On Debian and Ubuntu: apt install bubblewrap."),
    "a container without namespaces": (
        "echo 'bwrap: No permissions to create a new namespace' >&2; exit 1",
        "does not let it start a sandbox (bwrap: No permissions to create a new namespace). User namespaces",
    ),
    "Ubuntu's AppArmor": (
        "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    "walls of air": ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "sees this account's files"),
}


@pytest.mark.needs("bubblewrap")
def test_the_sandbox_shows_that_it_holds() -> None:
    assert proof.why_not() is None
    assert Sandbox().refusal is None and Sandbox(unconfined=True).warning is None


@pytest.mark.parametrize("name", STANDS_IN)
def test_where_it_does_not_hold_nothing_runs(name: str, tmp_path: Path, monkeypatch) -> None:
    script, why = STANDS_IN[name]
    if script:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bwrap").chmod(0o755)
    if "Ubuntu" in name:
        (tmp_path / "switch").write_text("1\n")
        monkeypatch.setattr(proof, "UBUNTUS_SWITCH", tmp_path / "switch")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{PYTHON}")
    box = Sandbox()
    with pytest.raises(SandboxError) as refused:
        box.run([], assignment="here")
    assert why in str(refused.value) and "Nothing was run." in str(refused.value)
    warning = Sandbox(unconfined=True).warning
    assert warning and why in warning and "this account's files" in warning


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> ScratchCourse:
    """Ada's answer leaves a file, where it can."""
    course = a_class(tmp_path_factory.mktemp("walls"), students=())
    leave = f"def double(x):\n    open({str(course.folder / 'mark')!r}, 'w').close()\n    return 2 * x\n"
    leave += "import os\nfor _ in range(1200):\n    os.mkdir('a')\n    os.chdir('a')"  # Python stops at 1,000
    hand_in(course, "traps", "ada", answered(course.released("traps"), double=leave))
    return course


COMMANDS = ("nbgrader autograde", "autograder grade", "autograder watch", "autograder again")


def call(course: ScratchCourse, name: str):
    """A command where there is no bubblewrap."""
    program, word = name.split()
    one = ("--student", "ada", "--exercise", "double") if word == "again" else ()
    return command(course, word, "traps", *one, program=program, PATH=PYTHON)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_refuse_in_one_sentence_and_run_nothing(name: str, course: ScratchCourse) -> None:
    done = call(course, name)
    said = done.stdout + done.stderr
    assert done.returncode and "Traceback" not in said
    assert said.count("apt install bubblewrap.") == 1 and said.count(ALLOWED) == 1
    assert not (course.folder / "mark").exists() and not (course.folder / "autograded").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS[:2])
def test_who_wants_it_all_the_same_says_so_and_is_warned(name: str, course: ScratchCourse) -> None:
    settings = course.folder / "nbgrader_config.py"
    before = settings.read_text()
    configure(course, ALLOWED)
    done = call(course, name)
    settings.write_text(before)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "submissions run without a sandbox" in said and "apt install bubblewrap." in said
    assert (course.folder / "mark").exists()  # so the answer does what the other test looks for
    (course.folder / "mark").unlink()
    shutil.rmtree(course.folder / "autograded")


@pytest.mark.slow
def test_all_attacks_are_left_out_without_it_and_named_at_the_end() -> None:
    pytest_q = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q")
    done = run(*pytest_q, "-m", "attack", "tests", cwd=ROOT, env={**os.environ, "PATH": PYTHON})
    *_, last = done.stdout.strip().splitlines()
    assert re.fullmatch(r"\d{3,} skipped, \d+ deselected in .*", last), done.stdout[-2000:]
    _, _, end = done.stdout.partition("left out on this machine")
    assert re.search(r"\d{3,} tests need bubblewrap: bubblewrap was not found\.", end)
    assert "sudo make programs" in end
