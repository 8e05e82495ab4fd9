"""Submissions in the archives of learning platforms reach the students whose they are, and nobody else."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from grading_class import a_class, nbgrader
from learning_platforms import CanvasCourse, Upload, archive_of_canvas, archive_of_moodle, exported_by_canvas
from nbgrader.api import Gradebook
from nbgrader.apps import ZipCollectApp

from autograder.authoring.scratch_course import CommandFailed, ScratchCourse

NAME = "traps"
FILE = f"{NAME}.ipynb"
STUDENTS = [
    ("ada", "Ada", "Lovelace"),
    ("o'brien", "Flann", "O'Brien"),
    ("josé-ñ", "José María", "Ñandú"),
    ("0012345", "Agent", "Zero"),
    ("twin1", "Kim", "Lee"),
    ("twin2", "Kim", "Lee"),
]


@pytest.fixture
def course(tmp_path: Path, root: Path) -> ScratchCourse:
    """A course with students, to whom nothing belongs yet."""
    made = a_class(tmp_path / "class", root, students=())
    with Gradebook(made.db_url) as gradebook:
        for student, first, last in STUDENTS:
            gradebook.add_student(student, first_name=first, last_name=last)
    (made.folder / "downloaded" / NAME / "archive").mkdir(parents=True)
    return made


def archive(course: ScratchCourse) -> Path:
    return course.folder / "downloaded" / NAME / "archive" / "Fast PyTorch-traps-4711.zip"


def collect(course: ScratchCourse, collector: str) -> str:
    return nbgrader(course, ZipCollectApp, NAME, "--force", f"--collector=autograder.lms.{collector}")


def refused(course: ScratchCourse, collector: str) -> str:
    """What the command says that cannot do it."""
    with pytest.raises(CommandFailed) as failed:
        collect(course, collector)
    assert collected(course) == {} and "Traceback" not in str(failed.value)
    return str(failed.value)


def collected(course: ScratchCourse) -> dict[str, dict[str, bytes]]:
    """What each student has handed in: file -> content."""
    found: dict[str, dict[str, bytes]] = {}
    for path in (course.folder / "submitted").glob(f"*/{NAME}/*"):
        found.setdefault(path.parts[-3], {})[path.name] = path.read_bytes()
    return found


def zipped(*files: tuple[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as inner:
        for name, data in files:
            inner.writestr(name, data)
    return content.getvalue()


# Full name -> what is uploaded. In a packed file nobody hands in for another.
OTHER = f"Ada Lovelace_51009_assignsubmission_file_/{FILE}"
OF_MOODLE: list[Upload] = [
    ("Ada Lovelace", FILE, b"ada"),
    ("Ada Lovelace", f"{NAME} (1).ipynb", b"a copy"),
    ("Ada Lovelace", "helpers.py", b"help"),
    ("Ada Lovelace", "timestamp.txt", b"2020-01-01 00:00:00 UTC"),
    ("O'Brien Flann", f"{NAME} (1).ipynb", b"flann"),  # some sites show the last name first
    ("Ñandú, José María", f"{NAME}(2).ipynb", b"jose"),
    ("Agent Zero", "work.zip", zipped((OTHER, b"zero"), (f"__MACOSX/in/._{FILE}", b"mac"))),
    ("Kim Lee", FILE, b"one of two"),
    ("Mallory Unknown", FILE, b"nobody"),
]


@pytest.mark.parametrize("folders", [True, False])
def test_moodles_archive(course: ScratchCourse, folders: bool) -> None:
    archive_of_moodle(archive(course), OF_MOODLE, folders=folders)
    said = collect(course, "MoodleArchive")
    assert collected(course) == {
        "ada": {FILE: b"ada", f"{NAME} (1).ipynb": b"a copy", "helpers.py": b"help"},
        "o'brien": {FILE: b"flann"},
        "josé-ñ": {FILE: b"jose"},
        "0012345": {FILE: b"zero"},
    }
    assert "2 students in the gradebook have the name 'Kim Lee'" in said
    assert "No student in the gradebook has the name 'Mallory Unknown'" in said
    assert "Put it into submitted/ID/traps/ yourself" in said


def test_an_archive_that_cannot_be_unpacked_stops_nobody_else(course: ScratchCourse) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as inner, inner.open("zeros", "w") as zeros:
        for _ in range(201):
            zeros.write(bytes(1_000_000))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as inner:
        info = tarfile.TarInfo("zeros")
        info.size = 201_000_000
        inner.addfile(info, io.BytesIO(bytes(info.size)))
    uploads = [
        ("Agent Zero", "work.zip", zipped((FILE, b"zero"))[:40]),
        ("Ada Lovelace", "work.zip", bomb.getvalue()),
        ("Ada Lovelace", "more.tar.gz", packed.getvalue()),
        ("O'Brien Flann", FILE, b"flann"),
    ]
    archive_of_moodle(archive(course), uploads)
    said = collect(course, "MoodleArchive")
    assert collected(course) == {"o'brien": {FILE: b"flann"}}
    assert said.count("cannot be unpacked and is left out") == 3
    assert said.count("it would take more than 200 MB") == 2
    assert not list(course.folder.rglob("zeros"))


def test_a_download_that_broke_off_is_said(course: ScratchCourse) -> None:
    archive_of_moodle(archive(course), OF_MOODLE)
    archive(course).write_bytes(archive(course).read_bytes()[:-30])
    assert "cannot be unpacked. Download it once more." in refused(course, "MoodleArchive")


PEOPLE = {
    11: {"name": "Lovelace, Ada", "login_id": "ADA"},
    12: {"name": "O'Brien, Flann", "login_id": "o'brien"},
    13: {"name": "Ñandú, José María", "login_id": "jn12", "sis_user_id": "josé-ñ"},
    14: {"name": "Zero, Agent", "login_id": "0012345"},
    16: {"name": "Guest, Some", "login_id": "guest"},
}
OF_CANVAS: list[Upload] = [
    ("ADA", f"{NAME}-1.ipynb", b"ada, the second time"),
    ("ADA", f"{NAME}-2.ipynb", b"once more"),
    ("o'brien", FILE, b"flann"),
    ("o'brien", "data-2.csv", b"1"),
    ("o'brien", "timestamp.txt", b"2020-01-01 00:00:00 UTC"),
    ("jn12", FILE, b"jose"),
    ("0012345", "work.zip", zipped((f"x_11_7009_{FILE}", b"not Ada's"), (FILE, b"zero"))),
    ("guest", FILE, b"nobody"),
]


def test_canvass_archive(course: ScratchCourse) -> None:
    canvas = CanvasCourse(PEOPLE, {})
    archive_of_canvas(archive(course), canvas, OF_CANVAS, late=["jn12"])
    assert "There is no canvas.csv." in refused(course, "CanvasArchive")
    (course.folder / "canvas.csv").write_text(exported_by_canvas(canvas), encoding="utf-8")
    said = collect(course, "CanvasArchive")
    assert collected(course) == {
        "ada": {FILE: b"ada, the second time"},
        "o'brien": {FILE: b"flann", "data-2.csv": b"1"},
        "josé-ñ": {FILE: b"jose"},
        "0012345": {FILE: b"zero", f"x_11_7009_{FILE}": b"not Ada's"},
    }
    assert "Canvas's user 16 has no login or SIS id in canvas.csv that a student" in said
    assert "ada handed in more than one traps.ipynb; this one is left out" in said
