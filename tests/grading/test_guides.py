"""The guides, run: every command in their order, with twelve students, and what each of them promises.

A section with code has a function here that runs it and looks at what came out. ``INSTEAD`` has what a test
cannot type as it stands there, with the reason.
"""

from __future__ import annotations

import ast
import csv
import glob
import importlib
import importlib.util
import inspect
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import nbformat
import pytest
from guide import Block, Section, read_guide
from lab_server import PATIENCE, listens, mark_installed
from learning_platforms import (
    TOKEN,
    CanvasCourse,
    archive_of_moodle,
    canvas,
    exported_by_canvas,
    imported_by_canvas,
    imported_by_moodle,
)
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from postgres import Postgres
from pretend_class import hand_in

from autograder.authoring.answers import Answers, answers_to, submission
from autograder.authoring.builder import build
from autograder.authoring.git import git
from autograder.authoring.links import address
from autograder.authoring.rehearsal import mix, points_table
from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.command import _parser
from autograder.roles import solution_cells

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")

ROOT = Path(__file__).resolve().parents[2]
GUIDES = {name: read_guide(ROOT / "docs" / f"{name}.md") for name in ("instructors", "grading")}
A = "01_tensor_creation"
# Ids and names as people have them. The last one hands in nothing.
CLASS = {
    "ada": ("Ada", "Lovelace"),
    "bo": ("Bo", "Babbage"),
    "o'brien": ("Flann", "O'Brien"),
    "josé-ñ": ("José María", "Ñandú"),
    "0012345": ("Agent", "Zero"),
    "chen": ("Chen", "Li"),
    "dalia": ("Dalia", "Haddad"),
    "emeka": ("Emeka", "Obi"),
    "fumi": ("Fumi", "Sato"),
    "goran": ("Goran", "Kos"),
    "hana": ("Hana", "Novak"),
    "ines": ("Inês", "Costa"),
}
AT_WORK = [student for student in CLASS if student != "ines"]
LATE = 26  # hours: the second day has begun

# A command of the guides -> what is run in its place ("" is nothing), and why.
INSTEAD = {
    f"git clone {address(ROOT)}": ("", "the files of this checkout are copied, as they are now"),
    "cd fast-pytorch": ("", "the test runs everything in that folder"),
    "source .venv/bin/activate": ("", "the environment of the tests is on the PATH"),
    'make rehearsal ARGS="--students 3"': (
        'make rehearsal ARGS="--students 1"',
        "one takes less time; test_rehearsal.py has three",
    ),
    f'make rehearsal ARGS="--assignment {A}"': (
        f'make rehearsal ARGS="--assignment {A} --students 1"',
        "one takes less time; test_rehearsal.py has three",
    ),
    "sudo install --directory --mode=1777 /usr/local/share/nbgrader/exchange": (
        "install --directory --mode=1777 {exchange}",
        "the exchange of the test is in its own folder",
    ),
    f"systemd-run --user --scope -p Delegate=yes make grade ASSIGNMENT={A}": (
        f"make grade ASSIGNMENT={A}",
        "a container has no systemd; it would run the same command",
    ),
    "dask scheduler --port 8786": (
        "dask scheduler --host 127.0.0.1 --port {port} --no-dashboard",
        "port 8786 may be taken",
    ),
    "dask worker tcp://host:8786 --nthreads 1 --nworkers 8": (
        "dask worker tcp://127.0.0.1:{port} --nthreads 1 --nworkers 2 --no-dashboard",
        "two workers are enough for twelve students",
    ),
    f"python -m autograder grade {A} --scheduler tcp://host:8786": (
        f"python -m autograder grade {A} --scheduler tcp://127.0.0.1:{{port}}",
        "as for the scheduler",
    ),
    f"nbgrader export --exporter=autograder.lms.CanvasUpload --assignment \"['{A}']\" "
    "--CanvasUpload.url=https://canvas.example.edu --CanvasUpload.course=1234": (
        f"nbgrader export --exporter=autograder.lms.CanvasUpload --assignment \"['{A}']\" "
        "--CanvasUpload.url={canvas} --CanvasUpload.course=7",
        "a stand-in for Canvas takes the grades",
    ),
}
INSTEAD |= dict.fromkeys(
    ("make watch", f'make watch ASSIGNMENT={A} ARGS="--release --require-sandbox"'),
    ("", "it runs until somebody stops it; test_watch.py does"),
)
# Those that run until they are stopped.
ENDLESS = ("dask scheduler", "dask worker")
# What sentences name and no block has, and why nothing runs it here.
NAMED = {
    "nbgrader fetch_assignment": "the class does its part with it, in `everybody_hands_in`",
    "nbgrader autograde": "test_grading.py and the rehearsal grade with it",
    "make gpu": "it is for a machine with a GPU; test_gpu.py rehearses it",
    "make record": "it is for a machine with a GPU; test_authoring.py records",
    "apt install bubblewrap": "it needs root and a network",
    'pip install -e ".[course]"': "the environment of the tests was made by it",
    'pip install "autograder[similar]"': "the environment of the tests has it",
    "make gradescope ASSIGNMENT=… ARGS=--without-sandbox": "test_gradescope.py makes such an archive",
    "nbgrader collect --update": "late submissions are collected so",
    f"make grade ASSIGNMENT={A} ARGS=--force": "test_what_a_grade_is_for.py grades with --force",
    "make watch ARGS=--release": "test_watch.py releases at once",
    "python -m autograder watch": "it is `make watch`",
    "chmod 600": "the test of PostgreSQL makes the file with these rights",
}


class Term:
    """A copy of the repository with a class, where a guide's blocks are run; ``ran`` has their commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fast-pytorch"
        for name in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
            if name and (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        shorten(self.folder)
        self.course = ScratchCourse(self.folder)
        mark_installed(self.folder)
        self.exchange = folder / "exchange"
        settings = self.folder / "jupyter" / "nbgrader_config.py"
        settings.parent.mkdir()
        settings.write_text(
            "c = get_config()\n"
            f"c.Exchange.root = {str(self.exchange)!r}\nc.Exchange.cache = {str(folder / 'cache')!r}\n"
        )
        hidden = ("MAKE", "MFLAGS", "JUPYTER")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        self.environment |= {
            "JUPYTER_CONFIG_DIR": str(settings.parent),
            "MAKEFLAGS": "PYTHON=" + sys.executable.replace(" ", r"\ "),
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
        }
        self.course.environment |= self.environment
        self.answers: Answers = answers_to(A, self.folder)
        self.mixes = {student: mix(self.answers, number) for number, student in enumerate(AT_WORK, 2)}
        self.by_hand: dict[tuple[str, str], float] = {}
        self.db_url = self.course.db_url
        self.places = {"exchange": str(self.exchange)}
        self.ran: list[str] = []

    def run(self, block: Block, *more: str) -> str:
        """Run a block's commands, the last with ``more`` arguments; gives all that they printed."""
        said = ""
        with ExitStack() as endless:
            for command in block.commands:
                text = INSTEAD.get(command, (command, ""))[0]
                start = time.monotonic()
                for name, place in self.places.items():
                    text = text.replace(f"{{{name}}}", place)
                if command.startswith(ENDLESS):
                    endless.enter_context(self._running(text))
                elif text:
                    done = subprocess.run(
                        ["bash", "-c", " ".join([text, *(more if command == block.commands[-1] else ())])],
                        cwd=self.folder,
                        env=self.environment,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                    )
                    said += done.stdout
                    print(f"{time.monotonic() - start:6.1f} s  {text}", flush=True)
                    assert done.returncode == 0, f"{command}\n{done.stdout}"
                self.ran.append(command)
        return said

    @contextmanager
    def _running(self, command: str) -> Iterator[None]:
        with open(self.folder / "endless.log", "a") as log:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            end = time.monotonic() + PATIENCE
            while not listens(int(self.places["port"])):
                assert process.poll() is None and time.monotonic() < end, Path(log.name).read_text()
                time.sleep(0.1)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    # The class.

    def students_file(self, example: str) -> None:
        """Write students.csv with everybody, in the form of the guide's example."""
        header, ada = example.splitlines()
        lines = [f"{one},{first},{last},{one}@example.org" for one, (first, last) in CLASS.items()]
        assert ada == lines[0]
        (self.folder / "students.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")

    def work_of(self, student: str) -> NotebookNode:
        """What a student hands in: right, slow, wrong and missing answers, which the class may be shown."""
        notebook = submission(self.course.released(A), self.answers, self.mixes[student])
        for exercise, cell in solution_cells(notebook).items():
            if self.answers[exercise][self.mixes[student][exercise]].code is not None:
                cell.source = f"# you may show this\n{cell.source}"
        return notebook

    @contextmanager
    def gradebook(self) -> Iterator[Gradebook]:
        with Gradebook(self.db_url) as gradebook:
            yield gradebook

    def due(self) -> datetime | None:
        with self.gradebook() as gradebook:
            return gradebook.find_assignment(A).duedate

    def scores(self) -> dict[str, float]:
        """Everybody's points, less the penalty."""
        with self.gradebook() as gradebook:
            return {
                one.student_id: one.score - (one.late_submission_penalty or 0.0)
                for one in gradebook.assignment_submissions(A)
            }

    def penalties(self) -> dict[str, float]:
        """Those that are not 0."""
        with self.gradebook() as gradebook:
            return {
                one.student_id: one.late_submission_penalty
                for one in gradebook.assignment_submissions(A)
                if one.late_submission_penalty
            }

    def most(self) -> float:
        with self.gradebook() as gradebook:
            return gradebook.find_assignment(A).max_score

    def see_that_all_is_right(self) -> None:
        """Everybody has the points that the answers are worth, or those given by hand."""
        points = self.course.points(A, self.db_url)
        assert points.keys() == set(AT_WORK)
        for (student, test), given in self.by_hand.items():
            assert points[student][test] == given
            points[student][test] = self.answers[test.removesuffix("_check")]["solution"].points[test].high
        rows, right = points_table(self.answers, self.mixes, points)
        assert right, rows

    def see_the_pages(self) -> None:
        """Each has a page with the points of the gradebook, and the exchange has the same."""
        scores = self.scores()
        released = {path.read_text() for path in self.exchange.glob("*/feedback/*.html")}
        for student in AT_WORK:
            page = self.course.page(student, A).read_text()
            assert f"(Score: {round(scores[student], 2)} / {round(self.most(), 2)})" in page, student
            assert page in released, student
        assert not self.course.page("ines", A).exists()


def shorten(course: Path) -> None:
    """Leave the first exercise of the assignment: six for everybody, seven times over, take too long."""
    script = course / "solutions" / A / f"{A}.py"
    first, second, _ = script.read_text(encoding="utf-8").partition("# %% [markdown]\n# ## 2. ")
    assert second
    text = re.sub(r"\d+ points, about \d+ minutes", "Its first exercise", first)
    script.write_text(text, encoding="utf-8")
    nbformat.write(build(script), script.with_suffix(".ipynb"))
    answers = course / "tests" / "answers" / f"{A}.py"
    text = answers.read_text(encoding="utf-8").partition("# %% positional_table ")[0]
    answers.write_text(text, encoding="utf-8")


# What happens between the commands.


def everybody_hands_in(term: Term) -> None:
    """All fetch the assignment and submit it, through the exchange."""
    home = term.folder.parent / "students"
    first, *others = AT_WORK
    term.course.nbgrader("fetch_assignment", A, f"--Exchange.assignment_dir={home / first}")
    for student in others:
        shutil.copytree(home / first, home / student)
    with ThreadPoolExecutor(2) as two:
        list(two.map(lambda student: submit(term, student), AT_WORK))


def submit(term: Term, student: str) -> None:
    home = term.folder.parent / "students" / student
    nbformat.write(term.work_of(student), home / A / f"{A}.ipynb")
    term.course.nbgrader("submit", A, f"--Exchange.assignment_dir={home}", f"--student={student}")


def the_time_is_over(term: Term, *late: str) -> None:
    """All had handed in when the assignment was due; now some seem to have done so a day later."""
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    with term.gradebook() as gradebook:
        gradebook.update_or_create_assignment(A, duedate=now)
    then = f"{now + timedelta(hours=LATE)} UTC"
    for student in late:
        (folder,) = term.exchange.glob(f"*/inbound/{glob.escape(student)}+{A}+*")
        (folder / "timestamp.txt").write_text(then)
        name, _, chance = folder.name.rsplit("+", 2)
        folder.rename(folder.with_name(f"{name}+{then}+{chance}"))


def hand_in_without_exchange(term: Term, at: str) -> None:
    for student in AT_WORK:
        shutil.rmtree(term.folder / "submitted" / student, ignore_errors=True)
        path = hand_in(term.course, A, student, term.work_of(student))
        path.with_name("timestamp.txt").write_text(at)


# The sections, in the order of the guides.


def the_first_time(term: Term, install: Block, table: Block, *rest: Block) -> None:
    enter, hand_out, grade, upload = rest
    assert "All points are as expected." in term.run(install)
    enter_the_students(term, table, enter)
    term.run(hand_out)
    assert term.due() == datetime(2027, 3, 5, 22, 59)

    archive = term.folder / "downloaded" / A / "archive" / f"Fast PyTorch-{A}-4711.zip"
    archive.parent.mkdir(parents=True)
    work = {" ".join(CLASS[student]): nbformat.writes(term.work_of(student)) for student in AT_WORK}
    archive_of_moodle(archive, [(name, f"{A}.ipynb", text.encode()) for name, text in work.items()])
    assert f"{len(AT_WORK)} graded, 0 skipped (graded before), 0 failed" in term.run(grade)
    term.see_that_all_is_right()
    assert f"{len(AT_WORK)} of {len(AT_WORK)}" in (term.folder / "reports" / f"{A}.html").read_text()

    term.run(upload)
    see_what_moodle_takes(term)


def enter_the_students(term: Term, table: Block, enter: Block) -> None:
    term.students_file(table.text)
    term.run(enter)
    with term.gradebook() as gradebook:
        assert {one.id: (one.first_name, one.last_name) for one in gradebook.students} == CLASS


def see_what_moodle_takes(term: Term) -> None:
    text = (term.folder / "moodle.csv").read_text(encoding="utf-8")
    taken = imported_by_moodle(set(CLASS), {A: term.most()}, text)
    assert {student: found[A] for student, found in taken.items()} == pytest.approx(term.scores(), abs=0.006)


def before_the_first_release(term: Term, exchange: Block) -> None:
    term.run(exchange)
    assert term.exchange.stat().st_mode & 0o7777 == 0o1777


def each_week(term: Term, hand_out: Block, take_in: Block, all_so_far: Block) -> None:
    term.run(hand_out)
    assert term.due() == datetime(2027, 3, 5, 22, 59)
    (released,) = term.exchange.glob(f"*/outbound/{A}/{A}.ipynb")
    assert "### BEGIN" not in released.read_text()

    everybody_hands_in(term)
    the_time_is_over(term, "bo", "fumi")
    assert f"{len(AT_WORK)} graded, 0 skipped (graded before), 0 failed" in term.run(take_in)
    term.see_that_all_is_right()
    assert term.penalties() == {}
    assert f"{len(AT_WORK)} of {len(AT_WORK)}" in (term.folder / "reports" / f"{A}.html").read_text()
    term.see_the_pages()

    term.run(all_so_far)
    page = (term.folder / "reports" / "term.html").read_text()
    assert all(student in page for student in ("ada", "bo", "chen", "ines"))
    assert len(list((term.folder / "reports" / "students").glob("*.html"))) == len(CLASS)


def races_that_stay_undecided(term: Term, again: Block) -> None:
    assert "2 graded, 0 skipped" in term.run(again)
    term.see_that_all_is_right()


def late_submissions(term: Term, update: Block, table: Block, late: Block) -> None:
    term.mixes["chen"] = dict.fromkeys(term.answers, "solution")
    submit(term, "chen")
    assert f"1 graded, {len(AT_WORK) - 1} skipped" in term.run(update)
    term.see_that_all_is_right()
    assert term.penalties() == {}

    (term.folder / "late.csv").write_text(table.text)
    before = term.scores()
    assert before["bo"] > 0 and before["fumi"] > 0
    said = term.run(late)
    assert said.index("1 penalties would change.") < said.index("1 penalties changed.")
    # Two days are begun; bo has an extension, and chen is within the hour of grace.
    assert term.penalties() == pytest.approx({"fumi": 0.2 * before["fumi"]})


def the_fastest_answers(term: Term, page: Block) -> None:
    table = term.folder / "late.csv"
    text = table.read_text()
    table.write_text(text.replace(f"{A},bo,2,,,\n", ""))  # as if that extension were over
    assert table.read_text() != text
    term.run(page)
    table.write_text(text)
    shown = (term.folder / "reports" / f"{A}_fastest.html").read_text()
    assert "times as fast" in shown and "def one_hot(" in shown
    assert not [last for _, last in CLASS.values() if re.search(rf"\b{last}\b", shown)]


def answers_that_look_alike(term: Term, page: Block) -> None:
    term.run(page)
    shown = (term.folder / "reports" / f"{A}_similar.html").read_text()
    assert "All that was handed in was compared." in shown


def disputes(term: Term, again: Block, anew: Block) -> None:
    assert "No points were changed." in term.run(again)
    term.see_that_all_is_right()
    term.by_hand["ada", "one_hot_check"] = 0.25
    with term.gradebook() as gradebook:
        gradebook.find_grade("one_hot_check", A, A, "ada").manual_score = 0.25
        gradebook.db.commit()
    term.run(anew)
    page = term.course.page("ada", A).read_text()
    assert f"(Score: {round(term.scores()['ada'], 2)} / " in page
    assert page in {path.read_text() for path in term.exchange.glob("*/feedback/*.html")}


def a_test_was_wrong(term: Term, build: Block, again: Block, anew: Block) -> None:
    source = term.folder / "solutions" / A / f"{A}.py"
    text = source.read_text(encoding="utf-8")
    wrong, mended = "on=[few_labels, no_labels, one_class]", "on=[few_labels, one_class]"
    assert text.count(wrong) == 1
    source.write_text(text.replace(wrong, mended), encoding="utf-8")
    assert "All points are as expected." in term.run(build)
    assert mended in source.with_suffix(".ipynb").read_text(encoding="utf-8")

    assert f"{len(AT_WORK)} graded, 0 skipped" in term.run(again)
    term.see_that_all_is_right()
    for student in AT_WORK:
        notebook = term.folder / "autograded" / student / A / f"{A}.ipynb"
        assert mended in notebook.read_text(encoding="utf-8"), student
    term.see_the_pages()

    (released,) = term.exchange.glob(f"*/outbound/{A}/{A}.ipynb")
    before = released.stat().st_ctime_ns
    term.run(anew)
    assert released.stat().st_ctime_ns > before
    assert released.read_bytes() == (term.folder / "exercises" / A / f"{A}.ipynb").read_bytes()


def grades_for_your_lms(term: Term, everything: Block, header: Block, *platforms: Block) -> None:
    moodle, canvas_file, canvas_upload = platforms
    term.run(everything)
    scores = term.scores() | {"ines": 0.0}
    for name in ("grades.csv", "one.csv"):
        with (term.folder / name).open(encoding="utf-8") as file:
            table = csv.DictReader(file)
            assert ",".join(table.fieldnames or []) == header.text.strip()
            assert {row["student_id"]: float(row["score"]) for row in table} == pytest.approx(scores)

    term.run(moodle)
    see_what_moodle_takes(term)

    people = {
        number: {"name": f"{last}, {first}", "login_id": student}
        for number, (student, (first, last)) in enumerate(CLASS.items(), 11)
    }
    wanted = {(3, number): scores[student] for number, student in enumerate(CLASS, 11) if student != "ines"}
    by_file = CanvasCourse(people, {3: (A, term.most())})
    (term.folder / "canvas.csv").write_text(exported_by_canvas(by_file), encoding="utf-8")
    term.run(canvas_file)
    imported_by_canvas(by_file, (term.folder / "upload.csv").read_text(encoding="utf-8"))
    assert by_file.scores == pytest.approx(wanted, abs=0.006)

    itself = CanvasCourse(people, {3: (A, term.most())})
    term.environment["CANVAS_TOKEN"] = TOKEN
    with canvas(itself) as term.places["canvas"]:
        assert "Nothing was changed." in term.run(canvas_upload)
        assert itself.scores == {}
        term.run(canvas_upload, "--CanvasUpload.really=True")
    assert itself.scores == pytest.approx(wanted, abs=0.006)


def gradescope(term: Term, archive: Block) -> None:
    git(term.folder, "init", "--quiet")  # as a clone is
    git(term.folder, "add", "--all")
    term.run(archive)
    (made,) = (term.folder / "build").glob(f"gradescope-{A}*.zip")
    with zipfile.ZipFile(made) as found:
        assert {"setup.sh", "run_autograder"} <= set(found.namelist())


def grading_on_submit(term: Term, watch: Block) -> None:
    term.run(watch)


def grading_a_class(term: Term, grade_and_report: Block) -> None:
    assert f"{len(AT_WORK)} graded, 0 skipped (graded before), 0 failed" in term.run(grade_and_report)
    term.see_that_all_is_right()
    assert f"{len(AT_WORK)} of {len(AT_WORK)}" in (term.folder / "reports" / f"{A}.html").read_text()


def one_machine(term: Term, grade: Block) -> None:
    assert "Nothing was left to do" in term.run(grade)


def a_dask_cluster(term: Term, cluster: Block, slurm: Block, kubernetes: Block) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        term.places["port"] = str(free.getsockname()[1])
    hand_in_without_exchange(term, "2027-03-05 12:00:00 UTC")
    assert f"{len(AT_WORK)} graded, 0 skipped (graded before), 0 failed" in term.run(cluster)
    term.see_that_all_is_right()
    for block in (slurm, kubernetes):
        assert block.language == "python"
        see_that_calls_are_right(block.text)


def see_that_calls_are_right(code: str) -> None:
    """Compile it; call nothing, but where a library is installed, see that its classes take the arguments."""
    tree = ast.parse(code)
    compile(tree, "<guide>", "exec")
    known: dict[str, Callable] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.ImportFrom) and node.module):
            continue
        if importlib.util.find_spec(node.module.partition(".")[0]):
            module = importlib.import_module(node.module)
            known |= {one.asname or one.name: getattr(module, one.name) for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            given = {one.arg: None for one in node.keywords if one.arg}
            inspect.signature(known[node.func.id]).bind_partial(*node.args, **given)


def postgresql(term: Term, setting: Block, password: Block) -> None:
    try:
        server = Postgres()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    try:
        *_, role, secret = password.text.strip().split(":")
        server.database("gradebook")
        server.require_password(secret)
        here = f"@/gradebook?host={server.folder}"
        text = setting.text.replace("@host/gradebook", here)
        assert text != setting.text and secret not in text
        with (term.folder / "nbgrader_config.py").open("a") as file:
            file.write(text)
        known = term.folder.parent / "pgpass"
        known.write_text(password.text.replace("host:", f"{server.folder}:"))
        known.chmod(0o600)
        enter, generate, grade = (
            Block("sh", "nbgrader db student import students.csv"),
            Block("sh", f"nbgrader generate_assignment {A} --force"),
            Block("sh", f"make grade ASSIGNMENT={A}"),
        )
        with pytest.raises(AssertionError, match="no password supplied"):
            term.run(enter)
        term.environment["PGPASSFILE"] = str(known)
        term.db_url = f"postgresql+psycopg://{role}:{secret}{here}"
        shutil.rmtree(term.folder / "autograded")
        (term.folder / "gradebook.db").unlink()
        for block in (enter, generate):
            term.run(block)
        assert f"{len(AT_WORK)} graded, 0 skipped (graded before), 0 failed" in term.run(grade)
        term.see_that_all_is_right()
        assert not (term.folder / "gradebook.db").exists()
    finally:
        server.close()


SECTIONS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "instructors": {
        "The first time, in ten minutes": the_first_time,
        "Before the first release": before_the_first_release,
        "Each week": each_week,
        "Races that stay undecided": races_that_stay_undecided,
        "Late submissions": late_submissions,
        "The fastest answers": the_fastest_answers,
        "Answers that look alike": answers_that_look_alike,
        "Disputes": disputes,
        "A test was wrong: grade everybody again": a_test_was_wrong,
        "Grades for your LMS": grades_for_your_lms,
        "Gradescope": gradescope,
    },
    "grading": {
        "Grading a class": grading_a_class,
        "Grading on submit": grading_on_submit,
        "One machine": one_machine,
        "A Dask cluster": a_dask_cluster,
        "PostgreSQL": postgresql,
    },
}


def sections(guide: str) -> dict[str, Section]:
    """The sections of a guide that have code, in their order."""
    return {section.heading: section for section in GUIDES[guide] if section.blocks}


def walk(term: Term, guide: str, *headings: str) -> None:
    """Go through sections of a guide, and see that each of their commands was run."""
    there = sections(guide)
    for heading in headings:
        before = len(term.ran)
        SECTIONS[guide][heading](term, *there[heading].blocks)
        assert set(there[heading].commands) <= set(term.ran[before:]), heading


FIRST, *REST = sections("instructors")


@pytest.mark.slow
def test_the_first_time(tmp_path: Path) -> None:
    walk(Term(tmp_path), "instructors", FIRST)


@pytest.mark.slow
def test_a_term(tmp_path: Path) -> None:
    term = Term(tmp_path)
    _, table, enter, *_ = sections("instructors")[FIRST].blocks
    enter_the_students(term, table, enter)
    walk(term, "instructors", *REST)


@pytest.mark.slow
def test_grading(tmp_path: Path) -> None:
    term = Term(tmp_path)
    _, table, enter, *_ = sections("instructors")[FIRST].blocks
    enter_the_students(term, table, enter)
    term.course.nbgrader("generate_assignment", A, "--force")
    hand_in_without_exchange(term, "2027-03-04 12:00:00 UTC")
    walk(term, "grading", *sections("grading"))


# Nothing in the guides is left out, and nothing is here that they do not have.


def test_every_section_with_code_is_run_in_its_order() -> None:
    assert {guide: list(sections(guide)) for guide in GUIDES} == {
        guide: list(found) for guide, found in SECTIONS.items()
    }


def all_commands() -> set[str]:
    return {command for guide in GUIDES for section in GUIDES[guide] for command in section.commands}


def test_the_table_of_replacements_has_commands_of_the_guides_only() -> None:
    assert set(INSTEAD) <= all_commands()
    assert all(reason for _, reason in INSTEAD.values())


def test_what_sentences_name_is_run_or_has_a_reason() -> None:
    named = {name for guide in GUIDES for section in GUIDES[guide] for name in section.named}
    commands = all_commands()
    alone = {name for name in named if not any(f"{command} ".startswith(f"{name} ") for command in commands)}
    assert alone == set(NAMED)


def test_the_options_of_grade_are_those_of_the_guide() -> None:
    text, *_ = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8").split("\n## ")
    named = {words.split()[0] for words in re.findall(r"(?m)^\| `(--[^`]+)` \|", text)}
    there = {name for action in _parser()._actions for name in action.option_strings}
    assert named == there - {"-h", "--help"}


def test_git_passes_over_all_that_names_students() -> None:
    text = "".join((ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8") for guide in GUIDES)
    tables = set(re.findall(r"\b\w+\.csv\b", text))
    assert {"students.csv", "late.csv", "moodle.csv", "canvas.csv"} <= tables
    folders = ("downloaded", "submitted", "autograded", "feedback", "reports", ".grading")
    others = {"gradebook.db", *(f"{folder}/a" for folder in folders)}
    asked = sorted(tables | others)
    assert sorted(git(ROOT, "check-ignore", *asked).split()) == asked
