"""An archive for Gradescope, unpacked and run as Gradescope does it: what it holds, and what it says."""

import json
import os
import shutil
import sys
import tempfile
import zipfile
from copy import deepcopy
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import programs
import pytest
from grading_class import a_class, command
from hostile_class import ASSIGNMENT, catalogue
from nbgrader.api import Gradebook
from pretend_class import find, hand_in
from pretend_pools import Instant
from repository import ROOT, copy_files

from autograder.__main__ import main
from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.course import Course
from autograder.class_grading.engine import grade
from autograder.class_grading.results import read_results
from autograder.extras.gradescope import in_container
from autograder.extras.gradescope.archive import CONTENTS, course_files
from autograder.extras.gradescope.in_container import NOT_FINAL

pytestmark = pytest.mark.slow
NAME = ASSIGNMENT.stem
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "simple_format", "html", "md", "ansi"]}
POINTS = {"type": "number", "minimum": 0}
TEXT = {"type": "string"}


def closed(kinds: dict[str, dict]):
    """The schema of an object that has these properties at most."""
    properties = {name: kind for names, kind in kinds.items() for name in names.split()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


# What is sent, as https://gradescope-autograders.readthedocs.io/en/latest/specs/ describes results.json.
ONE_TEST = {
    "score max_score": POINTS,
    "name number output": TEXT,
    "output_format": FORMAT,
    "tags": {"type": "array", "items": TEXT},
    "visibility": VISIBILITY,
}
RESULTS = {
    "score": POINTS,
    "execution_time": {"type": "number"},
    "output": TEXT,
    "output_format": FORMAT,
    "visibility stdout_visibility": VISIBILITY,
    "extra_data": {"type": "object"},
    "tests": {"type": "array", "items": {**closed(ONE_TEST), "required": ["score"]}},
}
SCHEMA = {**closed(RESULTS), "anyOf": [{"required": ["score"]}, {"required": ["tests"]}]}
SLOW = """\
def total(x):
    rows = [row.sum() for row in x]
    return torch.stack(rows) if rows else x.sum(dim=1)"""
# It answers as long as it finds nothing that it should not.
NOSY = """\
import os, pathlib

found = ["root"] if os.getuid() == 0 else []
for folder, _, names in os.walk({place!r}):
    for name in names:
        try:
            found += [name] if b"TOKEN-" + b"HIDDEN" in pathlib.Path(folder, name).read_bytes() else []
        except OSError:
            pass
for folder in pathlib.Path({place!r}).glob("*"):
    for name in ("results/results.json", "results/more.json", "source/gradebook.db"):
        try:
            (folder / name).write_text("{{}}")
            found.append(name)
        except OSError:
            pass


def total(x):
    assert not found, found
    return x.sum(dim=1)"""


tries_this = lambda student, done: done.events.append({"cell": "double_check", "what": "Tried this."})


def test_it_says_points_and_only_to_instructors_what_it_saw(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(a_class(tmp_path, students=(in_container.STUDENT,)).folder)
    with Course("traps") as opened, opened.locked():
        grade(opened, connect=Instant(undecided=2, change=tries_this))
        results = read_results(opened)
        found, said = in_container.in_their_format(opened, results, 12.3), in_container.remarks(results)
    jsonschema.validate(found, SCHEMA)
    tests = {test["name"]: test for test in found["tests"]}
    assert (tests["double_check"]["score"], tests["double_check"]["max_score"]) == (1, 1)
    assert (tests["square_hidden"]["score"], tests["square_hidden"]["max_score"]) == (0.5, 2)
    assert [test["number"] for test in found["tests"][:6]] == ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]
    assert tests["square_check"]["tags"] == tests["square_hidden"]["tags"] == ["square"]
    assert found["execution_time"] == 12

    assert tests["square_hidden"]["output"].endswith(NOT_FINAL)
    assert NOT_FINAL not in tests["square_check"]["output"]
    assert "square_hidden" in found["extra_data"]["undecided"]
    assert any("Undecided: square_hidden" in sentence for sentence in said)

    assert found["extra_data"]["events"] == [{"cell": "double_check", "what": "Tried this."}]
    assert "Suspicious: double_check: Tried this." in said
    assert found["stdout_visibility"] == "hidden"
    assert not any("Tried this." in test["output"] for test in found["tests"])
    # One hidden test, and students do not see their sum.
    assert {test["visibility"] for test in found["tests"]} == {"visible"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with the assignment of the catalogue of attacks, and another one."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    here = tmp_path_factory.mktemp("checkout")
    other = "solutions/01_tensor_creation/01_tensor_creation.py"
    copy_files(here, [*course_files(ROOT), "nbgrader_config.py", other])
    (here / "solutions" / NAME).mkdir()
    shutil.copy(ASSIGNMENT, here / "solutions" / NAME)
    (here / "course").mkdir()
    with (here / "nbgrader_config.py").open("a") as file:
        file.write("c.RunEveryCell.timeout = 59\n")
        file.write('c.CourseDirectory.db_url = "postgresql+psycopg://me:password@127.0.0.1:1/grades"\n')
    programs.commit(here)
    (here / "autograder" / "my notes.txt").write_text("nobody else's business\n")
    return here


@pytest.fixture(scope="module")
def archive(checkout: Path) -> Path:
    said = programs.printed(sys.executable, "-m", "autograder", "gradescope", NAME, cwd=checkout)
    archive = checkout / "build" / f"gradescope-{NAME}.zip"
    assert said.startswith(f"{archive}: ") and "keep it to yourself" in said
    return archive


def test_the_archive_holds_what_grades_and_no_more(archive: Path, checkout: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        inside = {about.filename: packed.read(about) for about in packed.infolist()}
        modes = {about.filename: about.external_attr >> 16 for about in packed.infolist()}
    tops = {name.partition("/")[0] for name in inside}
    assert tops == {*CONTENTS, "setup.sh", "run_autograder", "nbgrader_config.py", "gradebook.db"}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    everything = b"\n".join(inside.values())
    for secret in (b"nobody else's", b"me:password", str(checkout).encode(), str(ROOT).encode()):
        assert secret not in everything, secret
    assert str(Path(tempfile.gettempdir(), "gradescope-")).encode() not in everything
    assert b"TOKEN-HIDDEN" in inside["gradebook.db"] and b"TOKEN-SOLUTION" not in everything
    assert b"c.RunEveryCell.timeout = 59" in inside["nbgrader_config.py"]
    (tmp_path / "gradebook.db").write_bytes(inside["gradebook.db"])
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        assert [one.name for one in gradebook.assignments] == [NAME] and not gradebook.students
    checks = [["bash", "-n"], *([["shellcheck", "-"]] if shutil.which("shellcheck") else [])]
    scripts = [inside[name].decode() for name in ("setup.sh", "run_autograder")]
    for script, check in product(scripts, checks):
        programs.printed(*check, input=script)
    assert "--without-sandbox" not in scripts[1]
    for part in ("bubblewrap", "--torch-backend cpu", "--constraint constraints.txt"):
        assert part in scripts[0]


@pytest.fixture(scope="module")
def place():
    """A folder that every user can look into, as /autograder is, and one in it for temporary files."""
    with tempfile.TemporaryDirectory(prefix="autograder-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        Path(folder, "tmp").mkdir()
        Path(folder, "tmp").chmod(0o1777)
        yield Path(folder)


def unpack(archive: Path, root: Path) -> Path:
    """As Gradescope: the archive in source, the script that runs beside it."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(root / "source")
    shutil.copy(root / "source" / "run_autograder", root)
    (root / "run_autograder").chmod(0o755)
    (root / "results").mkdir()
    return root


def container(place: Path) -> list[str]:
    """What Gradescope's container is to a command: no network, and nothing but this place to write to.

    Every user can start this Python there. It may lie in root's home, which others cannot enter.
    """
    bwrap = str(shutil.which("bwrap"))
    python = Path(sys.base_prefix).resolve()
    folders = list(reversed(python.parents))
    shut = [number for number, folder in enumerate(folders) if not folder.stat().st_mode & 0o001]
    in_reach = []
    if shut:
        in_reach += ["--tmpfs", str(folders[shut[0]])]
        for folder in folders[shut[0] + 1 :]:
            in_reach += ["--perms", "0755", "--dir", str(folder)]
        in_reach += ["--ro-bind", str(python), str(python)]
    own = "--unshare-net --unshare-ipc --unshare-pid --die-with-parent --ro-bind / / --proc /proc --dev /dev"
    writable = f"--perms 1777 --tmpfs /dev/shm --bind {place} {place}"
    rights = "--cap-add ALL" + (" --unshare-user --uid 0 --gid 0" if os.geteuid() else "")
    # A sandbox within this one needs a /proc of which nothing is hidden.
    start = ["sh", "-c", 'mount -t proc proc /proc && exec "$@"', "sh"]
    return [bwrap, *own.split(), *in_reach, *writable.split(), *rights.split(), "--", *start]


def run(root: Path, submission: Path | None, **environment: str) -> SimpleNamespace:
    """The results of one run, the points in them, and what it printed."""
    shutil.rmtree(root / "submission", ignore_errors=True)
    if submission:
        shutil.copytree(submission, root / "submission", symlinks=True)
    (root / "results" / "results.json").unlink(missing_ok=True)
    given = {"AUTOGRADER_ROOT": str(root), "HOME": str(root), "TMPDIR": str(root.parent / "tmp")}
    given["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    start = (*container(root.parent), root / "run_autograder")
    done = programs.run(*start, cwd=root, env={**given, **environment})
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    text = (root / "results" / "results.json").read_text(encoding="utf-8")
    results = json.loads(text)
    jsonschema.validate(results, SCHEMA)
    # Nothing of a hidden test, neither its lines nor its names.
    assert "TOKEN" not in text and "cases = [" not in text and "one_batch" not in text
    assert results["stdout_visibility"] == "hidden"
    points = {test["name"]: test["score"] for test in results.get("tests", ())}
    return SimpleNamespace(results=results, points=points, printed=printed)


@pytest.fixture(scope="module")
def submissions(checkout: Path, place: Path, tmp_path_factory: pytest.TempPathFactory) -> ScratchCourse:
    """The same submissions in a course that is graded by the ordinary command."""
    folder = tmp_path_factory.mktemp("class")
    course = ScratchCourse(folder, ROOT)
    assignment = course.add_assignment(checkout / "solutions" / NAME / f"{NAME}.py")
    course.nbgrader("generate_assignment", assignment)
    known, release = catalogue(), course.released(NAME)
    totals = {"wrong": "def total(x):\n    return x.sum(dim=1) + 1", "slow": SLOW}
    for student, code in {**totals, "nosy": NOSY.format(place=str(place))}.items():
        notebook = deepcopy(release)
        find(notebook, "total").source = code
        hand_in(course, NAME, student, notebook)
    for student in ("honest", "patched_judging", "forged_cards"):
        known[student].hand_in(course, NAME, release, student)
    hand_in(course, NAME, "broken", b'{"cells": [')
    missing = hand_in(course, NAME, "renamed", None)
    missing.with_name("final version.ipynb").write_text(json.dumps(release))
    done = command(course, "grade", NAME)
    assert done.returncode == 0, done.stderr
    return course


HANDED_IN = ("honest", "wrong", "slow", "broken", "renamed", "nosy", "patched_judging", "forged_cards")


@pytest.mark.attack
@pytest.mark.parametrize("student", HANDED_IN)
def test_a_submission_gets_the_points_of_make_grade(student: str, submissions, archive, place) -> None:
    root = place / "sandboxed"
    if not root.exists():
        unpack(archive, root)
    ran = run(root, submissions.folder / "submitted" / student / NAME)
    wanted = submissions.points(NAME)[student]
    # On a busy machine noise decides of a slow answer's points for speed, up to a third of all.
    assert ran.points == {test: pytest.approx(wanted[test], abs=1.0 * ("race" in test)) for test in wanted}
    assert ran.results["extra_data"]["sandboxed"] in ([True], [])
    if student == "honest":
        assert ran.points["total_race"] == 3 and "All submissions ran inside the sandbox" in ran.printed
    if student in ("broken", "renamed"):
        page = submissions.folder / "autograded" / student / NAME / f"{NAME}.ipynb"
        problem = json.loads(page.read_text())["metadata"]["autograder"]["problem"]
        assert ran.results["output"].startswith(problem) and not any(ran.points.values())


@pytest.fixture(scope="module")
def no_namespaces(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH whose bubblewrap says what it says in a container without the right to make namespaces."""
    folder = tmp_path_factory.mktemp("bin")
    says = "echo 'bwrap: No permissions to create a new namespace' >&2"
    (folder / "bwrap").write_text(f"#!/bin/sh\n{says}\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    return os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.mark.attack
def test_without_a_sandbox_it_refuses_and_faults_are_said(submissions, archive, place, no_namespaces) -> None:
    root = unpack(archive, place / "refuses")
    ran = run(root, submissions.folder / "submitted" / "honest" / NAME, PATH=no_namespaces)
    assert (ran.results["score"], ran.results["output"]) == (0, in_container.REFUSED)
    assert "tests" not in ran.results
    assert "No permissions to create a new namespace" in ran.printed and "--without-sandbox" in ran.printed

    (root / "source" / "gradebook.db").write_bytes(b"no database")
    ran = run(root, None)
    assert (ran.results["score"], ran.results["output"]) == (0, in_container.FAILED)
    assert "tests" not in ran.results
    assert "error: " in ran.printed and "gradebook" in ran.printed


@pytest.mark.attack
def test_where_that_is_allowed_it_grades(submissions, checkout, place, no_namespaces, monkeypatch) -> None:
    """As root, what is handed in runs as a user who can neither read hidden tests nor write results."""
    if os.geteuid():
        pytest.skip("only root can let submissions run as another user")
    monkeypatch.chdir(checkout)
    assert main(["gradescope", NAME, "--without-sandbox"]) == 0
    root = unpack(checkout / "build" / f"gradescope-{NAME}.zip", place / "open")
    right = run(root, submissions.folder / "submitted" / "honest" / NAME, PATH=no_namespaces)
    assert right.points["total_check"] == 1 and right.points["Batches_hidden"] == 2
    assert right.results["extra_data"]["sandboxed"] == [False]
    assert "1 of 1 notebooks ran without the sandbox" in right.printed

    nosy = run(root, submissions.folder / "submitted" / "nosy" / NAME, PATH=no_namespaces)
    assert nosy.points["total_check"] == 1 and nosy.points["shift_check"] == 0
    assert b"TOKEN-HIDDEN" in (root / "source" / "gradebook.db").read_bytes()
