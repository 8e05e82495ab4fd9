"""The engine grades a class as nbgrader does, goes on where it stopped, and refuses bad input."""

import json
import shutil
import socket
import sqlite3
from pathlib import Path

import pytest
from grading_class import STUDENTS, Says, autograded, configure, grades, half_written, handed_in, small_files
from nbformat.v4 import new_code_cell
from pretend_class import FULL, answered, hand_in
from pretend_pools import Instant, graded

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading import grader, pool
from autograder.class_grading.class_commands import grade as main
from autograder.extras import dask as dask_pool
from autograder.nbgrader_plugin import reading, restore
from autograder.nbgrader_plugin.submissions import only_one

pytestmark = pytest.mark.slow  # a gradebook for each test


def test_everybody_is_graded_and_only_what_was_not_finished_is_graded_again(course: ScratchCourse) -> None:
    graded(students=["ada"])
    before = autograded("ada").read_bytes()
    pool = Instant()
    summary = graded(pool)
    assert summary.skipped == ["ada"] and summary.failed == {}
    assert sorted(summary.graded) == sorted(STUDENTS[1:]) and ("now", "ada") not in pool.log
    assert autograded("ada").read_bytes() == before
    assert grades(course) == dict.fromkeys(STUDENTS, FULL) and graded().skipped == list(STUDENTS)
    assert sorted(graded(force=True).graded) == sorted(STUDENTS)
    for student, damage in zip(STUDENTS, ("no mark", "cut off", "gone"), strict=False):
        spoil(autograded(student), damage)
    assert sorted(graded().graded) == sorted(STUDENTS[:3])
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)


def spoil(path: Path, damage: str) -> None:
    """What a crash may leave in place of an autograded notebook."""
    notebook = json.loads(path.read_text())
    del notebook["metadata"]["autograder"]["finished"]
    path.chmod(0o644)
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(json.dumps(notebook)[: None if damage == "no mark" else 500])


@pytest.mark.needs("bubblewrap")
def test_plain_nbgrader_also_grades_again_what_was_not_finished(course: ScratchCourse) -> None:
    graded()
    before = notes("chen")
    spoil(autograded("chen"), "no mark")
    with only_one(course.folder):  # somebody may just be working on it
        assert "Skipping" in course.nbgrader("autograde", "traps", "--student=chen", "--log-level=INFO")
    course.nbgrader("autograde", "traps")
    for version in ("tests", "submitted", "put_back"):
        assert notes("chen")[version] == before[version]
    assert graded().skipped == list(STUDENTS)
    handed_in("chen").with_name("helpers.py").write_text("LIMIT = 3")
    assert graded().graded == ["chen"]


def notes(student: str) -> dict[str, object]:
    """What grading noted in an autograded notebook."""
    return json.loads(autograded(student).read_text())["metadata"]["autograder"]


def test_what_noise_left_undecided_is_timed_once_more_at_the_end(course: ScratchCourse) -> None:
    pool = Instant(undecided=1)
    assert sorted(graded(pool).graded) == sorted(STUDENTS)
    assert sorted(pool.log[: len(STUDENTS)]) == sorted(("now", student) for student in STUDENTS)
    assert sorted(pool.log[len(STUDENTS) :]) == sorted(("again", student) for student in STUDENTS)
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)


def test_what_fails_costs_one_submission_and_is_graded_next_time(course: ScratchCourse, monkeypatch) -> None:
    def change(student: str, done) -> None:
        if student == "ada":
            done.sources = {index: f"{source}#" for index, source in done.sources.items()}
        if student == "bo":  # who hands in again while it is graded
            handed_in("bo").write_text(json.dumps(answered(course.released("traps"), double="new = 1")))
            handed_in("bo").with_name("timestamp.txt").write_text("2030-01-02 10:00:00 UTC")

    def stumbling_over(student: str, function):
        def stumble(*given: object) -> object:
            if f"# {student}" in str(given):
                raise KeyError("no such cell")
            return function(*given)

        return stumble

    with monkeypatch.context() as patched:
        for student, place, name in (("chen", restore, "restore"), ("emeka", grader, "plan")):
            patched.setattr(place, name, stumbling_over(student, getattr(place, name)))
        summary = graded(Instant(broken=["dalia"], change=change))
    assert summary.graded == ["fumi"] and grades(course)["fumi"] == FULL
    sentences = {
        "ada": "traps has other cells than those that ran",
        "bo": "traps.ipynb was handed in again meanwhile.",
        "chen": "nbgrader failed: KeyError('no such cell')",
        "dalia": "it broke",
        "emeka": "nbgrader failed: KeyError('no such cell')",
    }
    assert summary.failed.keys() == sentences.keys()
    for student, sentence in sentences.items():
        assert sentence in summary.failed[student] and not autograded(student).exists()
    assert half_written(course) == 0 and "in stumble" in Path(".grading/traps.log").read_text()
    record = json.loads(Path(".grading/traps.json").read_text())  # for the report
    assert record["failed"] == summary.failed and record["seconds"] > 0
    assert sorted(graded().graded) == sorted(sentences)
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)
    assert "new = 1" in autograded("bo").read_text()


@pytest.fixture
def refused(says: Says) -> Says:
    """What the command says when it cannot do what it is asked to; nothing is graded then."""

    def run(*arguments: str) -> str:
        files = {path for path in Path().rglob("*") if "autograded" in path.parts}
        said = says(main, *arguments, status=1).splitlines()[-1]  # nbgrader may have its say before
        assert {path for path in Path().rglob("*") if "autograded" in path.parts} == files
        assert said.startswith("error: "), said
        return said

    return run


def test_no_scheduler_and_bad_settings(course: ScratchCourse, refused: Says, monkeypatch) -> None:
    monkeypatch.setattr(dask_pool, "SCHEDULER_SECONDS", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert f"No Dask scheduler answers at {address}" in refused("traps", "--scheduler", address)
    assert "No Dask scheduler answers at nonsense" in refused("traps", "--scheduler", "nonsense")
    config = Path("nbgrader_config.py")
    configure(course, "c.RunEveryCell.timeout = 'long'")
    assert "nbgrader refuses" in refused("traps")
    config.write_text("c = get_config(\n")
    assert "nbgrader_config.py cannot be read: SyntaxError" in refused("traps")
    config.unlink()
    assert "There is no nbgrader_config.py in" in refused("traps")


def test_unknown_names_and_a_second_command(course: ScratchCourse, refused: Says) -> None:
    with only_one(course.folder):
        assert "Another grade command is at work" in refused("traps")
    said = refused("trap")
    assert "has no assignment 'trap'. Did you mean traps?" in said
    assert "nbgrader generate_assignment trap" in said
    said = refused("traps", "--student", "chan")
    assert "Student 'chan' has not handed in this assignment. Did you mean chen?" in said
    shutil.rmtree("submitted")
    assert "Nobody has handed in traps" in refused("traps")
    Path("gradebook.db").unlink()
    assert "There is no gradebook at" in refused("traps") and not Path("gradebook.db").exists()
    assert "which is no address of a database" in refused("traps", "--db", "gradebook.db")
    Path("gradebook.db").touch()
    assert "is empty" in refused("traps")


def test_a_gradebook_that_is_read_only_or_from_another_version(course, refused: Says, monkeypatch) -> None:
    monkeypatch.delattr(pool, "LocalPool")  # it is seen before anything is run
    url = f"sqlite:///file:{course.folder}/gradebook.db?mode=ro&uri=true"
    said = refused("traps", "--db", url)
    assert "attempt to write a readonly database. Give this account the right to write to it" in said
    whole = Path("gradebook.db").read_bytes()
    for change, sentence in (
        ("ALTER TABLE student DROP COLUMN lms_user_id", "it has no student.lms_user_id"),
        ("UPDATE alembic_version SET version_num = '50a4d84c131a'", "made by another nbgrader"),
        ("UPDATE alembic_version SET version_num = 'from 2099'", "made by another nbgrader"),
    ):
        Path("gradebook.db").write_bytes(whole)
        with sqlite3.connect("gradebook.db") as database:
            database.execute(change)
        before = Path("gradebook.db").read_bytes()
        assert sentence in refused("traps") and Path("gradebook.db").read_bytes() == before


def test_a_full_disk(course: ScratchCourse, monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    """There is room for the gradebook, and none for a notebook."""
    size = 2 * Path("gradebook.db").stat().st_size
    long = answered(course.released("traps"))
    long.cells += [new_code_cell("#" * reading.MOST_CELL)] * (size // reading.MOST_CELL + 1)
    shutil.rmtree("submitted/ada")
    hand_in(course, "traps", "ada", long)
    monkeypatch.setattr(pool, "LocalPool", lambda *_, **__: Instant())
    with small_files(size):
        said = says(main, "traps", status=1)
    assert "Make room on" in said.splitlines()[-1]
    assert half_written(course) == 0 and not autograded("ada").exists()
    assert "ada" in graded().graded and grades(course) == dict.fromkeys(STUDENTS, FULL)
