"""When a submission was handed in: what it says counts, unless it came later and the exchange shows that."""

import os
import subprocess
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from grading_class import Says, configure, due, nbgrader, scores
from nbgrader.apps import CollectApp
from pretend_pools import Instant, graded
from watched_class import FULL, Judging, queue, send, to_the_end, watched, watching

from autograder.__main__ import main
from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.course import Course
from autograder.class_grading.engine import tell

pytestmark = pytest.mark.slow  # a gradebook for each test

HALF = FULL / 2  # what is left to who is late
NOW, DAY = datetime.now(timezone.utc), timedelta(days=1)


@pytest.fixture
def course(inbox: ScratchCourse) -> ScratchCourse:
    """What is handed in now is an hour late."""
    global NOW
    NOW = datetime.now(timezone.utc)  # and not when all tests were collected
    due(f"{NOW - timedelta(hours=1)}", percent_a_day=50)
    return inbox


def by_collect(course: ScratchCourse, *more: str) -> str:
    """Take what there is by `nbgrader collect`, and grade it: what both say."""
    said = nbgrader(course, CollectApp, "traps", "--update", *more)
    with Course("traps") as opened:
        return said + tell(opened, graded(Instant()))


@pytest.fixture(params=["collect", "watch"])
def take(request: pytest.FixtureRequest, course: ScratchCourse, capsys):
    """Take what there is and grade it, by either command: what it says."""
    if request.param == "collect":
        return lambda: by_collect(course)

    def watch() -> str:
        watched(best=False)
        said = capsys.readouterr()
        return said.out + said.err

    return watch


def test_a_date_before_the_arrival_makes_nobody_punctual(course, take, says: Says) -> None:
    """Neither in the folder's name, nor in its timestamp.txt."""
    for student in ("bo", "chen"):
        folder = send(course, student, NOW)
    (folder / "timestamp.txt").write_text(f"{NOW - DAY:%Y-%m-%d %H:%M:%S} UTC")
    send(course, "ada", NOW - 2 * DAY)
    said = take()
    assert scores() == {"ada": HALF, "bo": HALF, "chen": HALF}
    assert f"ada: the submission of traps says {NOW - 2 * DAY:%Y-%m-%d %H:%M:%S}" in said
    says(main, "report", "traps")
    assert "Arrived later than they say (1)" in Path("reports/traps.html").read_text()
    take()
    assert scores()["ada"] == HALF
    Path("late.csv").write_text("assignment,student,extension_days,percent_a_day\n*,*,,50\n*,ada,1,\n")
    says(main, "late", "traps", "--apply")  # the instructor believes it
    take()
    assert scores() == {"ada": FULL, "bo": HALF, "chen": HALF}


def test_an_exchange_that_was_restored_makes_nobody_late(course, take) -> None:
    """All that is in it has arrived just now. Who hands in afterwards arrives when it says."""
    for days, student in enumerate(["ada", "bo", "chen"], 1):
        send(course, student, NOW - days * DAY)
    said = take()
    assert scores() == dict.fromkeys(["ada", "bo", "chen"], FULL)
    assert "ada, bo, chen: the submission of traps arrived later than it says, and so did most" in said
    for number in range(4):
        send(course, f"new{number}", NOW)
    send(course, "zoe", NOW - DAY)
    take()
    late = dict.fromkeys(["new0", "new1", "new2", "new3", "zoe"], HALF)
    assert scores() == dict.fromkeys(["ada", "bo", "chen"], FULL) | late


def test_what_came_before_tells_about_what_comes_later(course: ScratchCourse) -> None:
    """To a watcher that has taken the others long ago, too; and a clock that is ahead tells nothing."""
    with watching(Judging(), best=False) as watcher:
        send(course, "ahead", NOW + DAY)
        send(course, "ada", NOW - DAY)
        to_the_end(watcher)
        for student in ("bo", "chen"):
            send(course, student, NOW)
        to_the_end(watcher)
        send(course, "dalia", NOW - DAY)
        to_the_end(watcher)
    assert scores() == {"ahead": 0, "ada": FULL, "bo": HALF, "chen": HALF, "dalia": HALF}


def test_no_other_student_needs_to_be_asked_for(course: ScratchCourse) -> None:
    """Nor is what counts as handed in before the due date said by the student."""
    configure(course, "c.ExchangeCollect.before_duedate = True")
    send(course, "bo", NOW)
    send(course, "ada", NOW - DAY)
    by_collect(course, "--student=ada")
    assert scores() == {"ada": HALF}
    by_collect(course)
    assert scores() == {"ada": HALF, "bo": HALF}


def test_a_file_that_is_put_there_later_is_when_it_arrived(course: ScratchCourse) -> None:
    folder = send(course, "ada", NOW)
    for place in (folder / "traps.ipynb", folder / "parts" / "more.py"):
        place.parent.mkdir(exist_ok=True)
        place.touch()
        time.sleep(0.02)
        place.write_bytes(place.read_bytes())
        assert place.stat().st_ctime > folder.stat().st_ctime
    watched()
    arrived = datetime.fromisoformat(queue().places[0].arrived).timestamp()
    assert arrived == pytest.approx(os.stat(place).st_ctime, abs=1e-3)


def test_a_folder_without_an_end_stops_nobody(course: ScratchCourse) -> None:
    folder = send(course, "ada", NOW)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("in", dir_fd=here)
        below = os.open("in", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    send(course, "bo", NOW)
    try:
        watched()
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)  # pytest cannot
    assert scores() == {"ada": HALF, "bo": HALF}


def test_names_of_files_forge_no_lines_of_a_log(course: ScratchCourse) -> None:
    configure(course, "c.CourseDirectory.max_file_size = 1")
    folder = send(course, "ada", NOW)
    (folder / "large\nforged").write_bytes(bytes(5000))
    (folder / "in\nforged").mkdir()
    (folder / "in\nforged" / "large").write_bytes(bytes(5000))
    (folder / "large").write_bytes(bytes(5000))
    said = by_collect(course)
    assert "large'" in said
    assert not [line for line in said.splitlines() if line.lstrip().startswith("forged")]
