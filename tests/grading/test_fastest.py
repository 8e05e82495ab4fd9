"""The page about the fastest answers: what it shows, and whom it does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from grading_class import RACE, Instant, a_class, command, pretend
from nbgrader.api import Gradebook
from pretend_class import answered, hand_in
from test_report import Text

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.course import Course
from autograder.class_grading.engine import Job, grade
from autograder.class_grading.fastest import made_of, may_be_shown
from autograder.judging.outcome import MIME
from autograder.sandbox import Executed

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")

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


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    course = a_class(tmp_path_factory.mktemp("fastest"), root, students=())
    for student, (_, code) in CLASS.items():
        hand_in(course, "traps", student, answered(course.released("traps"), square=code))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course.folder)
        with Course("traps") as opened, opened.locked():
            grade(opened, connect=Measured())
    return course.folder


@pytest.fixture
def course(template: Path, tmp_path: Path, root: Path) -> ScratchCourse:
    shutil.copytree(template, tmp_path / "class")
    return ScratchCourse(tmp_path / "class", root)


def due(course: ScratchCourse, when: str) -> None:
    with Gradebook(f"sqlite:///{course.folder / 'gradebook.db'}") as gradebook:
        gradebook.update_or_create_assignment("traps", duedate=when)


def test_it_shows_the_fastest_of_those_who_agree_and_names_nobody(course: ScratchCourse) -> None:
    due(course, "2026-01-01 12:00 UTC")
    done = command(course, "fastest", "traps")
    assert done.returncode == 0, done.stderr
    shown = Text(Path(done.stdout.strip()).read_text())
    assert f"{RACE} 4 of 5 answers are 2× as fast as the given version, or faster." in shown.text
    first, second = shown.text.index("7 times as fast"), shown.text.index("5 times as fast")
    assert first < second and "9 times as fast" not in shown.text
    assert "It calls pow. It has no loop. It reaches 25% of the machine's limit." in shown.text
    assert "It calls sum, range. It has one loop." in shown.text
    assert shown.text.count("return pow(x, 2)") == 1  # two handed it in
    words = shown.text.lower().replace(".", " ").replace(",", " ").split()
    assert not {student for student in CLASS if student in words}
    assert shown.alternatives and not shown.tags & {"script", "link"}


def test_it_waits_for_the_deadline(course: ScratchCourse) -> None:
    for when, sentence in (
        ("2999-01-01 12:00 UTC", "is due on 2999-01-01 12:00 UTC"),
        (None, "has no due date"),
    ):
        if when:
            due(course, when)
        else:
            with Gradebook(f"sqlite:///{course.folder / 'gradebook.db'}") as gradebook:
                gradebook.find_assignment("traps").duedate = None
                gradebook.db.commit()
        done = command(course, "fastest", "traps")
        assert done.returncode == 1 and sentence in done.stderr and "Traceback" not in done.stderr
    assert not list((course.folder / "reports").glob("*.html"))


def test_it_waits_for_those_who_have_more_time(course: ScratchCourse) -> None:
    due(course, "2026-01-01 12:00 UTC")
    table = course.folder / "late.csv"
    table.write_text("assignment,student,extension_days\nanother,*,999999\ntraps,bo,360000\n")
    done = command(course, "fastest", "traps")
    assert done.returncode == 1
    assert "is due on 2026-01-01 12:00 UTC, for somebody on 3011-08-" in done.stderr
    table.write_text("assignment,student,extension_days\ntraps,bo,soon\n")
    assert "late.csv, line 2: extension_days is 'soon'" in command(course, "fastest", "traps").stderr
    table.write_text("assignment,student,extension_days\nanother,*,999999\ntraps,bo,0\n")
    assert command(course, "fastest", "traps").returncode == 0


def test_where_nobody_agrees_it_says_so(course: ScratchCourse) -> None:
    due(course, "2026-01-01 12:00 UTC")
    for path in (course.folder / "autograded").glob("*/traps/traps.ipynb"):
        path.chmod(0o644)
        path.write_text(path.read_text().replace("# you may show this", "# mine"))
    done = command(course, "fastest", "traps")
    assert done.returncode == 0, done.stderr
    shown = Text(Path(done.stdout.strip()).read_text())
    assert "Nobody has allowed to show an answer." in shown.text


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("def f(x):\n    return x", ""),
        (
            "#You may show this, please\ndef f(x):\n    'words'\n    return x # mine",
            "def f(x):\n    return x",
        ),
        ("# you may show this\ndef f(x)", ""),
        ("x = '# you may show this'", ""),
        ("# you may show this\ndef f():\n    'all'", "def f():\n    pass"),
    ],
)
def test_only_code_is_shown_and_only_if_that_is_allowed(source: str, code: str) -> None:
    assert may_be_shown(source) == code


def test_what_an_answer_is_made_of() -> None:
    code = (
        "def f(x):\n    g = lambda y: torch.where(y > 0, y, 0)\n    while x:\n        x = [g(y) for y in x]"
    )
    assert made_of(code, None) == "It calls where, g. It has 2 loops."
