"""Hostile submissions get no points that they did not earn and hurt nobody; innocent ones lose none.

All files of tests/adversaries are handed in as one class and graded by one real ``nbgrader autograde``.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_class import LAST, Adversary, Aftermath, catalogue, grade

ROOT = Path(__file__).resolve().parents[2]
ADVERSARIES = catalogue()
NEAR = 0.05

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """The graded class, with secrets wherever an adversary could want to look."""
    kinds = ("solution", "hidden", "gradebook", "submission", "environment")
    tokens = {kind: f"token-{kind}-{secrets.token_hex(8)}" for kind in kinds}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADING_SECRET", tokens["environment"])
        return grade(tmp_path_factory.mktemp("adversaries"), ROOT, ADVERSARIES, tokens)


@pytest.fixture(scope="module")
def report(aftermath: Aftermath) -> str:
    """The report for the instructor, as HTML."""
    course, assignment = aftermath.graded.course, aftermath.graded.assignment
    subprocess.run(
        [sys.executable, "-m", "autograder", "report", assignment], cwd=course.folder, check=True, timeout=120
    )
    return max(course.folder.rglob("*.html"), key=lambda path: path.stat().st_mtime).read_text()


def cards(aftermath: Aftermath, student: str) -> str:
    """What the test cells of a student showed, for a message."""
    return "\n".join(
        f"{cell.metadata.nbgrader.grade_id}: {output.get('data', {}).get('text/plain', '')}"
        for cell in aftermath.graded.autograded(student).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
        for output in cell.outputs
    )


def test_the_command_succeeds(aftermath: Aftermath) -> None:
    assert aftermath.failure is None


@pytest.mark.parametrize("name", ADVERSARIES)
def test_points(name: str, aftermath: Aftermath) -> None:
    adversary = ADVERSARIES[name]
    got = aftermath.graded.points[name]
    wrong = {
        test: (got.get(test), f"instead of {wanted}")
        for test, wanted in adversary.points(aftermath.most).items()
        if not adversary.allows(test, wanted, got.get(test), NEAR)
    }
    assert not wrong, cards(aftermath, name)


@pytest.mark.parametrize("name", [name for name, one in ADVERSARIES.items() if one.suspicious is not None])
def test_suspicious_events(name: str, aftermath: Aftermath) -> None:
    events = aftermath.graded.autograded(name).metadata.autograder.events
    assert bool(events) == ADVERSARIES[name].suspicious, events


def test_the_report_names_them(report: str) -> None:
    for name, adversary in ADVERSARIES.items():
        if adversary.suspicious:
            assert name in report


@pytest.mark.parametrize("student", ["aa_honest", LAST])
def test_the_honest_before_and_after_them_get_everything(student: str, aftermath: Aftermath) -> None:
    assert aftermath.graded.points[student] == aftermath.most, cards(aftermath, student)


def test_no_process_lives_on(aftermath: Aftermath) -> None:
    assert aftermath.processes == []


def test_no_file_was_changed(aftermath: Aftermath) -> None:
    assert aftermath.changed == []


@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_secret_is_shown(name: str, aftermath: Aftermath) -> None:
    graded = aftermath.graded
    folder = graded.course.folder / "feedback" / name
    shown = "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
    # The autograded notebooks keep the hidden tests, for the instructor.
    shown += "".join(str(cell.get("outputs", "")) for cell in graded.autograded(name).cells)
    assert [kind for kind, token in aftermath.secrets.items() if token in shown] == []


def test_the_catalogue_is_complete() -> None:
    assert len(ADVERSARIES) >= 45
    assert all(isinstance(one, Adversary) and one.parts for one in ADVERSARIES.values())
