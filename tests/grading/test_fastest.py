"""The page about the fastest answers: what it shows, and whom it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from grading_class import (
    RACE,
    Instant,
    Says,
    a_class,
    autograded,
    built_once,
    copied,
    gradebook,
    graded,
    pretend,
)
from pretend_class import answered, hand_in
from test_report import Text

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.engine import Job
from autograder.class_grading.fastest import made_of, main, may_be_shown
from autograder.judging.outcome import MIME
from autograder.nbgrader_plugin.entries import utc
from autograder.sandbox import Executed

SHOWN = "# you may show this\n"
# Student -> the ratio measured, and the answer to the race's exercise.
CLASS = {
    "ada": (9.0, "def square(x):\n    return x**2  # by Ada"),
    "bo": (7.0, SHOWN + 'def square(x):\n    """Bo did it."""\n    # Bo, again\n    return pow(x, 2)'),
    "chen": (5.0, SHOWN + "def square(x):\n    return sum(x for _ in range(x))"),
    "dalia": (4.0, SHOWN + "def square(x):\n    return pow(x,  2)"),
    "emeka": (1.0, "def square(x):\n    return x * x"),
}


class Measured(Instant):
    """Everybody is as fast as CLASS says."""

    def start(self, job: Job, cells: list[dict], **settings: object) -> None:
        done = Executed.from_dict(pretend(cells, **settings))
        for outputs in done.outputs.values():
            for output in outputs:
                for lap in output.get("data", {}).get(MIME, {}).get("laps", []):
                    lap["ratio"], lap["of_limit"] = CLASS[job.submission.student][0], 0.25
        self.jobs.append((job, done))


def as_fast_as_that(folder: Path, root: Path) -> None:
    course = a_class(folder, root, students=())
    for student, (_, code) in CLASS.items():
        hand_in(course, "traps", student, answered(course.released("traps"), square=code))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course.folder)
        graded(Measured())


@pytest.fixture
def course(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchCourse:
    """A copy of that class, in the current folder."""
    made = copied(built_once("fastest", lambda new: as_fast_as_that(new, root)), tmp_path / "class", root)
    monkeypatch.chdir(made.folder)
    due("2026-01-01 12:00 UTC")
    return made


def due(when: str | None) -> None:
    with gradebook() as opened:
        opened.find_assignment("traps").duedate = utc(when)
        opened.db.commit()


def test_it_shows_the_fastest_of_those_who_agree_and_names_nobody(course: ScratchCourse, says: Says) -> None:
    shown = Text(Path(says(main, "traps").strip()).read_text())
    assert f"{RACE} 4 of 5 answers are 2× as fast as the given version, or faster." in shown.text
    first, second = shown.text.index("7 times as fast"), shown.text.index("5 times as fast")
    assert first < second and "9 times as fast" not in shown.text
    assert "It calls pow. It has no loop. It reaches 25% of the machine's limit." in shown.text
    assert "It calls sum, range. It has one loop." in shown.text
    assert shown.text.count("return pow(x, 2)") == 1  # two handed it in
    words = shown.text.lower().replace(".", " ").replace(",", " ").split()
    assert not {student for student in CLASS if student in words}
    assert shown.alternatives and not shown.tags & {"script", "link"}

    for path in map(autograded, CLASS):
        path.chmod(0o644)
        path.write_text(path.read_text().replace("# you may show this", "# mine"))
    shown = Text(Path(says(main, "traps").strip()).read_text())
    assert "Nobody has allowed to show an answer." in shown.text


def test_it_waits_for_the_deadline_of_all(course: ScratchCourse, says: Says) -> None:
    due("2999-01-01 12:00 UTC")
    assert "is due on 2999-01-01 12:00 UTC" in says(main, "traps", status=1)
    due(None)
    assert "has no due date" in says(main, "traps", status=1)
    due("2026-01-01 12:00 UTC")
    table, head = Path("late.csv"), "assignment,student,extension_days\nanother,*,999999\n"
    table.write_text(f"{head}traps,bo,360000\n")
    assert "on 2026-01-01 12:00 UTC, for somebody on 3011-08-" in says(main, "traps", status=1)
    table.write_text(f"{head}traps,bo,soon\n")
    assert "late.csv, line 3: extension_days is 'soon'" in says(main, "traps", status=1)
    assert not list(Path("reports").glob("*.html"))
    table.write_text(f"{head}traps,bo,0\n")
    says(main, "traps")


def test_only_code_is_shown_and_only_if_that_is_allowed() -> None:
    for source, code in {
        "def f(x):\n    return x": "",
        "#You may show this, please\ndef f(x):\n    'words'\n    return x # mine": "def f(x):\n    return x",
        "# you may show this\ndef f(x)": "",
        "x = '# you may show this'": "",
        "# you may show this\ndef f():\n    'all'": "def f():\n    pass",
    }.items():
        assert may_be_shown(source) == code


def test_what_an_answer_is_made_of() -> None:
    code = "def f(x):\n    g = lambda y: torch.where(y > 0, y, 0)\n    while x: x = [g(y) for y in x]"
    assert made_of(code, None) == "It calls where, g. It has 2 loops."
