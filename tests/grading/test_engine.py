"""The engine grades a class as nbgrader does, goes on where it stopped, and refuses bad input."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from grading_class import (
    RACE,
    STUDENTS,
    Instant,
    autograded,
    configure,
    graded,
    grades,
    half_written,
    small_files,
)
from nbformat.v4 import new_code_cell
from pretend_class import FULL, answered, hand_in

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading import command, dask_pool, engine
from autograder.class_grading.command import main
from autograder.class_grading.grader import Grader
from autograder.nbgrader_plugin import execute, reading, restore, verdicts
from autograder.nbgrader_plugin.submissions import only_one
from autograder.sandbox import Executed

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


def test_everybody_is_graded_and_what_is_graded_is_left_alone(course: ScratchCourse) -> None:
    graded(students=["ada"])
    before = autograded("ada").read_bytes()
    pool = Instant()
    summary = graded(pool)
    assert summary.skipped == ["ada"] and summary.failed == {}
    assert sorted(summary.graded) == sorted(STUDENTS[1:])
    assert ("now", "ada") not in pool.log
    assert autograded("ada").read_bytes() == before
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)
    assert graded().skipped == list(STUDENTS)
    assert sorted(graded(force=True).graded) == sorted(STUDENTS)


@pytest.mark.parametrize("damage", ["no mark", "cut off", "gone"])
def test_what_was_not_finished_is_graded_again(course: ScratchCourse, damage: str) -> None:
    graded()
    spoil(autograded("chen"), damage)
    assert graded().graded == ["chen"]
    assert grades(course)["chen"] == FULL


def spoil(path: Path, damage: str) -> None:
    """What a crash may leave in place of an autograded notebook."""
    notebook = json.loads(path.read_text())
    del notebook["metadata"]["autograder"]["finished"]
    path.chmod(0o644)
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(json.dumps(notebook)[: None if damage == "no mark" else 500])


@pytest.mark.slow
def test_plain_nbgrader_also_grades_again_what_was_not_finished(course: ScratchCourse) -> None:
    graded()
    spoil(autograded("chen"), "no mark")
    with only_one(course.folder):  # somebody may just be working on it
        assert "Skipping" in course.nbgrader("autograde", "traps", "--student=chen", "--log-level=INFO")
    course.nbgrader("autograde", "traps")
    assert "finished" in json.loads(autograded("chen").read_text())["metadata"]["autograder"]


def test_a_student_cannot_bring_the_mark_along(course: ScratchCourse) -> None:
    notebook = answered(course.released("traps"))
    notebook.metadata["autograder"] = {"finished": "2030", "problem": "none", "events": [{"what": "mine"}]}
    hand_in(course, "traps", "zoe", notebook)
    graded(students=["zoe"])
    notes = json.loads(autograded("zoe").read_text())["metadata"]["autograder"]
    assert notes["finished"] != "2030"
    assert notes["events"] == []
    assert "problem" not in notes
    assert grades(course)["zoe"] == FULL


def test_what_noise_left_undecided_is_timed_once_more_at_the_end(course: ScratchCourse) -> None:
    pool = Instant(undecided=1)
    summary = graded(pool)
    assert summary.undecided == []
    assert sorted(summary.graded) == sorted(STUDENTS)
    assert sorted(pool.log[: len(STUDENTS)]) == sorted(("now", student) for student in STUDENTS)
    assert sorted(pool.log[len(STUDENTS) :]) == sorted(("again", student) for student in STUDENTS)
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)


def test_what_stays_undecided_is_for_the_instructor(
    course: ScratchCourse, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = graded(Instant(undecided=2))
    assert sorted(summary.undecided) == [(student, RACE) for student in sorted(STUDENTS)]
    with sqlite3.connect("gradebook.db") as database:
        marked = database.execute("SELECT count(*) FROM grade WHERE needs_manual_grade AND auto_score = 0.5")
        assert marked.fetchone()[0] == len(STUDENTS)


def test_one_that_cannot_be_run_does_not_stop_the_others(course: ScratchCourse) -> None:
    summary = graded(Instant(broken=["dalia"]))
    assert summary.failed == {"dalia": "it broke"}
    assert len(summary.graded) == len(STUDENTS) - 1
    assert not Path("autograded/dalia").exists()
    record = json.loads(Path(".grading/traps.json").read_text())  # for the report
    assert record["failed"] == {"dalia": "it broke"} and record["seconds"] > 0
    assert graded().graded == ["dalia"]
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)


@pytest.mark.parametrize(
    ("place", "name", "sentence"),
    [
        (verdicts.SaveVerdicts, "preprocess", "nbgrader could not grade it: KeyError: 'no such cell'"),
        (restore, "restore", "nbgrader could not grade it: KeyError: 'no such cell'"),
        (engine, "plan", "its cells could not be put together: KeyError: 'no such cell'"),
    ],
)
def test_an_error_of_ours_costs_one_submission(
    course: ScratchCourse, monkeypatch: pytest.MonkeyPatch, place: object, name: str, sentence: str
) -> None:
    real = getattr(place, name)

    def stumble(*given: object) -> object:
        if "# fumi" in str(given):
            raise KeyError("no such cell")
        return real(*given)

    with monkeypatch.context() as patched:
        patched.setattr(place, name, stumble)
        summary = graded()
    assert list(summary.failed) == ["fumi"] and sentence in summary.failed["fumi"]
    assert len(summary.graded) == len(STUDENTS) - 1
    assert ("in stumble" in Path(".grading/traps.log").read_text()) == sentence.startswith("nbgrader")
    assert graded().graded == ["fumi"]


def test_a_submission_is_read_restored_and_planned_once(
    course: ScratchCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[tuple[str, str]] = Counter()

    def count(place: object, name: str) -> None:
        function = getattr(place, name)

        def counted(given: object, *rest: object, **settings: object) -> object:
            calls[name, next(student for student in STUDENTS if f"# {student}" in str(given))] += 1
            return function(given, *rest, **settings)

        monkeypatch.setattr(place, name, counted)

    for place, name in [(reading, "notebook_of"), (restore, "restore"), (engine, "plan"), (execute, "plan")]:
        count(place, name)
    graded(Instant(undecided=1))
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)
    steps = ("notebook_of", "restore", "plan")
    assert calls == {(name, student): 1 for name in steps for student in STUDENTS}


def test_outputs_of_other_cells_are_refused(course: ScratchCourse) -> None:
    class Confused(Instant):
        def wait(self) -> tuple[engine.Job, Executed | str]:
            job, executed = super().wait()
            if job.submission.student == "ada":
                executed.sources = {index: f"{source}#" for index, source in executed.sources.items()}
            return job, executed

    summary = graded(Confused())
    assert list(summary.failed) == ["ada"]
    assert summary.failed["ada"].startswith("traps has other cells than those that were run.")
    assert not autograded("ada").exists()
    assert half_written(course) == 0
    assert graded().graded == ["ada"]
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)


def test_who_hands_in_while_it_is_graded_is_graded_by_the_next_run(course: ScratchCourse) -> None:
    class Slow(Instant):
        def start(self, job: engine.Job, cells: list[dict], **settings: object) -> None:
            super().start(job, cells, **settings)
            if self.log[-1] == ("now", "bo"):
                shutil.rmtree("submitted/bo")
                path = hand_in(course, "traps", "bo", answered(course.released("traps"), double="new = 1"))
                path.with_name("timestamp.txt").write_text("2030-01-02 10:00:00 UTC")

    summary = graded(Slow())
    assert list(summary.failed) == ["bo"]
    assert summary.failed["bo"].startswith("traps.ipynb was handed in again while it was graded.")
    assert not autograded("bo").exists()
    assert graded().graded == ["bo"]
    assert "new = 1" in autograded("bo").read_text()


@pytest.mark.parametrize("moment", ["init_assignment", "write_single_notebook", "set_permissions"])
def test_a_crash_leaves_all_of_a_grade_or_nothing(
    course: ScratchCourse, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Grader, moment, crash)
        with pytest.raises(KeyboardInterrupt):
            graded()
    assert half_written(course) == 0
    graded()
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)


def test_a_second_command_is_refused(course: ScratchCourse, capsys: pytest.CaptureFixture[str]) -> None:
    with only_one(course.folder) as alone:
        assert alone
        assert main(["traps"]) == 1
    assert "Another grade command is at work" in capsys.readouterr().err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says when it cannot do what it is asked to."""
    files = {path for path in Path().rglob("*") if "autograded" in path.parts}
    assert main([*arguments]) == 1
    assert {path for path in Path().rglob("*") if "autograded" in path.parts} == files
    said = capsys.readouterr().err.splitlines()[-1]  # nbgrader may have its say before
    assert said.startswith("error: "), said
    assert "Traceback" not in said
    return said


def test_bad_settings(course: ScratchCourse, capsys: pytest.CaptureFixture[str]) -> None:
    config = Path("nbgrader_config.py")
    text = config.read_text()
    config.write_text(text + "c.CourseDirectory.db_url = 7\n")
    assert "nbgrader refuses" in refused(capsys, "traps")
    config.write_text(text + "c.RunEveryCell.timeout = 'long'\n")
    assert "nbgrader refuses" in refused(capsys, "traps")
    config.write_text("c = get_config(\n")
    assert "nbgrader_config.py cannot be read: SyntaxError" in refused(capsys, "traps")
    config.unlink()
    assert "There is no nbgrader_config.py in" in refused(capsys, "traps")


def test_unknown_names(course: ScratchCourse, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "trap")
    assert "has no assignment 'trap'. Did you mean traps?" in said
    assert "nbgrader generate_assignment trap" in said
    assert "Student 'chan' has not handed in this assignment. Did you mean chen?" in refused(
        capsys, "traps", "--student", "chan"
    )
    shutil.rmtree("submitted")
    assert "Nobody has handed in traps" in refused(capsys, "traps")


def test_no_gradebook(course: ScratchCourse, capsys: pytest.CaptureFixture[str]) -> None:
    Path("gradebook.db").unlink()
    assert "There is no gradebook at" in refused(capsys, "traps")
    assert not Path("gradebook.db").exists()
    assert "which is no address of a database" in refused(capsys, "traps", "--db", "gradebook.db")
    Path("gradebook.db").touch()
    assert "is empty" in refused(capsys, "traps")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("ALTER TABLE student DROP COLUMN lms_user_id", "it has no student.lms_user_id"),
        ("DROP TABLE comment", "it has no comment"),
        ("UPDATE alembic_version SET version_num = '50a4d84c131a'", "made by another version"),
        ("UPDATE alembic_version SET version_num = 'from 2099'", "made by a newer nbgrader"),
    ],
)
def test_a_gradebook_from_another_version(
    course: ScratchCourse, capsys: pytest.CaptureFixture[str], change: str, sentence: str
) -> None:
    with sqlite3.connect("gradebook.db") as database:
        database.execute(change)
    before = Path("gradebook.db").read_bytes()
    assert sentence in refused(capsys, "traps")
    assert Path("gradebook.db").read_bytes() == before


def test_a_gradebook_that_cannot_be_written(
    course: ScratchCourse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(command, "LocalPool")  # it is seen before anything is run
    url = f"sqlite:///file:{course.folder}/gradebook.db?mode=ro&uri=true"
    said = refused(capsys, "traps", "--db", url)
    assert "attempt to write a readonly database. Give this account the right to write to it" in said


@pytest.mark.slow
def test_no_scheduler(
    course: ScratchCourse, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_pool, "SCHEDULER_SECONDS", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert f"No Dask scheduler answers at {address}" in refused(capsys, "traps", "--scheduler", address)
        silent.listen()
        assert f"No Dask scheduler answers at {address}" in refused(capsys, "traps", "--scheduler", address)
    assert "No Dask scheduler answers at nonsense" in refused(capsys, "traps", "--scheduler", "nonsense")


@pytest.mark.parametrize("full_for", ["the gradebook", "the notebooks"])
def test_a_full_disk(
    course: ScratchCourse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], full_for: str
) -> None:
    """Files that cannot grow behave as on a full disk."""
    size = 1000
    if full_for == "the notebooks":
        size = 2 * Path("gradebook.db").stat().st_size
        long = answered(course.released("traps"))
        long.cells += [new_code_cell("#" * reading.MOST_CELL)] * (size // reading.MOST_CELL + 1)
        shutil.rmtree("submitted/ada")
        hand_in(course, "traps", "ada", long)
    monkeypatch.setattr(command, "LocalPool", lambda *_, **__: Instant())
    with small_files(size):
        said = refused(capsys, "traps")
    assert "Make room on" in said
    assert half_written(course) == 0
    assert not autograded("ada").exists()
    assert "ada" in graded().graded
    assert grades(course) == dict.fromkeys(STUDENTS, FULL)


def test_the_sandbox_is_required(
    course: ScratchCourse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    class Refusing(Instant):
        def __init__(self, *_: object, require: bool, **__: object) -> None:
            asked.append(require)
            super().__init__()

    monkeypatch.setattr(command, "LocalPool", Refusing)
    assert main(["traps", "--student", "ada", "--require-sandbox"]) == 0
    configure(course, "c.RunEveryCell.require_sandbox = True")
    assert main(["traps", "--student", "bo"]) == 0
    assert asked == [True, True]


def test_without_bubblewrap_it_is_refused_if_required(
    course: ScratchCourse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "This machine cannot run submissions: bubblewrap was not found" in refused(
        capsys, "traps", "--require-sandbox", "--workers", "1"
    )


WITHOUT_DASK = """
import sys
from autograder.class_grading import command
code = command.main(["traps", "--student", "ada", "--workers", "1"])
print({name.partition(".")[0] for name in sys.modules} & {"dask", "distributed"})
sys.exit(code)
"""


@pytest.mark.slow
def test_one_machine_needs_no_dask(course: ScratchCourse) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_DASK], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 graded" in done.stdout
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "ada\n\u202e"])
def test_a_student_id_with_markup_is_refused_and_costs_nobody_else(
    course: ScratchCourse, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree("submitted/ada", Path("submitted", name))
    summary = graded()
    assert sorted(summary.graded) == sorted(STUDENTS)
    (sentence,) = summary.failed.values()
    assert sentence.startswith(f"The student id {name!a} has characters that no id may have")
    assert grades(course).keys() == set(STUDENTS)
    assert main(["traps"]) == 1  # something is left
    assert f"failed: {name!a}: The student id" in capsys.readouterr().out
