"""The guides, run: every command in their order, with twelve students, and what each of them promises.

A section with code has a function here that runs it and looks at what came out. ``INSTEAD`` and ``NOT_RUN``
have what a test cannot type as it stands there.
"""

import csv
import glob
import os
import re
import shutil
import socket
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from textwrap import dedent

import learning_platforms as platforms
import nbformat
import programs
import pytest
from grading_class import scores
from lab_server import listens, mark_installed
from nbformat import NotebookNode
from nbgrader.api import Assignment, Gradebook
from postgres import Postgres
from pretend_class import hand_in
from repository import ROOT, all_files, copy_files

from autograder.authoring.answers import answers_to, submission
from autograder.authoring.builder import build
from autograder.authoring.scratch_course import ScratchCourse, mix, points_table
from autograder.authoring.sources import address
from autograder.class_grading.class_commands import grade
from autograder.nbgrader_plugin.execute import RunEveryCell
from autograder.roles import solution_cells


@dataclass(frozen=True)
class Block:
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a shell's block, each on one line and without remarks."""
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        return [plain for line in lines if (plain := re.sub(r"(^|\s+)#.*$", "", line).strip())]


def read_guide(path: Path) -> dict[str, list[Block]]:
    """The sections of a page that have code, in their order: heading -> blocks."""
    # With one more sign, the page's title is a heading too; a remark in a shell's block has just one.
    _, *parts = re.split(r"(?m)^##+ (.*)$", f"#{path.read_text(encoding='utf-8')}")
    fence = re.compile(r"(?ms)^( *)```(\w+)\n(.*?)^\1```$")
    found = {heading: fence.findall(part) for heading, part in zip(parts[::2], parts[1::2], strict=True)}
    blocks = {head: [Block(kind, dedent(text)) for _, kind, text in each] for head, each in found.items()}
    return {heading: each for heading, each in blocks.items() if each}


A = "01_tensor_creation"
# Ids and names as people have them. The last one hands in nothing.
CLASS = {
    "ada": ("Ada", "Lovelace"),
    "bo": ("Bo", "Babbage"),
    "o'brien": ("Flann", "O'Brien"),
    "josé-ñ": ("José María", "Ñandú"),
    "0012345": ("Stu", "Zero"),
    "chen": ("Chen", "Li"),
    "dalia": ("Dalia", "Haddad"),
    "emeka": ("Emeka", "Obi"),
    "fumi": ("Fumi", "Sato"),
    "goran": ("Goran", "Kos"),
    "hana": ("Hana", "Novak"),
    "ines": ("Inês", "Costa"),
}
AT_WORK = [student for student in CLASS if student != "ines"]

# What a command of the guides has -> what stands there here, where a test cannot type it.
INSTEAD = {
    '--students 3"': '--students 1"',  # one takes less time; test_jupyterhub.py has two
    f'rehearsal ARGS="--assignment {A}"': f'rehearsal ARGS="--assignment {A} --students 1"',
    "sudo install": "install",
    "/usr/local/share/nbgrader/exchange": "{exchange}",
    "systemd-run --user --scope -p Delegate=yes ": "",  # a container has no systemd
    "scheduler --port 8786": "scheduler --host 127.0.0.1 --port {port} --no-dashboard",
    "tcp://host:8786": "tcp://127.0.0.1:{port}",
    "--nworkers 8": "--nworkers 2 --no-dashboard",
    "https://canvas.example.edu": "{canvas}",  # a stand-in for Canvas, which has course 7
    "Upload.course=1234": "Upload.course=7",
    "$HOME/.ssh/id_ed25519": "../key",
}
NOT_RUN = {
    f"git clone {address(ROOT)}": "the files of this checkout are copied, as they are now",
    "cd fast-pytorch": "the test runs everything in that folder",
    "source .venv/bin/activate": "the environment of the tests is on the PATH",
    "make watch": "it runs until somebody stops it; test_watch_command.py does",
    f"make watch ASSIGNMENT={A} ARGS=--release": "the same",
}
# Those that run until they are stopped.
ENDLESS = ("dask scheduler", "dask worker")


class Term:
    """A copy of the repository with a class, where a guide's blocks are run; ``ran`` has their commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fast-pytorch"
        copy_files(self.folder, all_files())
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
        self.answers = answers_to(A, self.folder)
        self.mixes = {student: mix(self.answers, number) for number, student in enumerate(AT_WORK, 2)}
        self.by_hand: dict[tuple[str, str], float] = {}
        self.db_url = self.course.db_url
        self.places = {"{exchange}": str(self.exchange)}
        self.ran: list[str] = []

    def run(self, block: Block) -> str:
        """Run a block's commands; gives all that they printed."""
        said = ""
        with ExitStack() as endless:
            for command in block.commands:
                text, start = command, time.monotonic()
                for there, here in [*INSTEAD.items(), *self.places.items()]:
                    text = text.replace(there, here)
                if command.startswith(ENDLESS):
                    log = self.folder / f"{command.split()[1]}.log"
                    listening = partial(listens, int(self.places["{port}"]))
                    shell = (log, listening, "bash", "-c", f"exec {text}")
                    endless.enter_context(programs.running(*shell, cwd=self.folder, env=self.environment))
                elif command not in NOT_RUN:
                    shell = ("bash", "-c", f"exec 2>&1; {text}")
                    done = programs.run(*shell, cwd=self.folder, env=self.environment)
                    said += done.stdout
                    print(f"{time.monotonic() - start:6.1f} s  {text}", flush=True)
                    assert done.returncode == 0, f"{command}\n{done.stdout}"
                self.ran.append(command)
        return said

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

    gradebook = lambda self: Gradebook(self.db_url)
    scores = lambda self: scores(self.db_url, A)  # less the penalties

    def penalties(self) -> dict[str, float]:
        """Those that are not 0."""
        with self.gradebook() as gradebook:
            all_of_it = gradebook.assignment_submissions(A)
            found = {one.student_id: one.late_submission_penalty for one in all_of_it}
        return {student: penalty for student, penalty in found.items() if penalty}

    def report(self, name: str) -> str:
        return (self.folder / "reports" / f"{name}.html").read_text()

    def assignment(self) -> Assignment:
        with self.gradebook() as gradebook:
            return gradebook.find_assignment(A)

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
        scores, most = self.scores(), round(self.assignment().max_score, 2)
        released = {path.read_text() for path in self.exchange.glob("*/feedback/*.html")}
        for student in AT_WORK:
            page = self.course.page(student, A).read_text()
            assert f"(Score: {round(scores[student], 2)} / {most})" in page, student
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


GUIDES = {name: read_guide(ROOT / "docs" / f"{name}.md") for name in ("instructors", "grading")}
LATE = 26  # hours: the second day has begun


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


def the_first_time_in_ten_minutes(term: Term, install: Block, table: Block, *rest: Block) -> None:
    enter, hand_out, grade, upload = rest
    assert "All points are as expected." in term.run(install)
    enter_the_students(term, table, enter)
    term.run(hand_out)
    assert term.assignment().duedate == datetime(2027, 3, 5, 22, 59)

    archive = term.folder / "downloaded" / A / "archive" / f"Fast PyTorch-{A}-4711.zip"
    archive.parent.mkdir(parents=True)
    work = {" ".join(CLASS[student]): nbformat.writes(term.work_of(student)) for student in AT_WORK}
    platforms.archive_of_moodle(archive, [(name, f"{A}.ipynb", text.encode()) for name, text in work.items()])
    all_are_graded(term, grade, reported=True)
    term.run(upload)
    see_what_moodle_takes(term)


def enter_the_students(term: Term, table: Block, enter: Block) -> None:
    term.students_file(table.text)
    term.run(enter)
    with term.gradebook() as gradebook:
        assert {one.id: (one.first_name, one.last_name) for one in gradebook.students} == CLASS


def see_what_moodle_takes(term: Term) -> None:
    text = (term.folder / "moodle.csv").read_text(encoding="utf-8")
    taken = platforms.imported_by_moodle(set(CLASS), {A: term.assignment().max_score}, text)
    assert {student: found[A] for student, found in taken.items()} == pytest.approx(term.scores(), abs=0.006)


def all_are_graded(term: Term, grade: Block, reported: bool = False) -> None:
    assert f"{len(AT_WORK)} graded, 0 skipped (graded before), 0 failed" in term.run(grade)
    term.see_that_all_is_right()
    assert not reported or f"{len(AT_WORK)} of {len(AT_WORK)}" in term.report(A)


def before_the_first_release(term: Term, exchange: Block) -> None:
    term.run(exchange)
    assert term.exchange.stat().st_mode & 0o7777 == 0o1777


def each_week(term: Term, hand_out: Block, take_in: Block, all_so_far: Block) -> None:
    term.run(hand_out)
    assert term.assignment().duedate == datetime(2027, 3, 5, 22, 59)
    (released,) = term.exchange.glob(f"*/outbound/{A}/{A}.ipynb")
    assert "### BEGIN" not in released.read_text()

    everybody_hands_in(term)
    the_time_is_over(term, "bo", "fumi")
    all_are_graded(term, take_in, reported=True)
    assert term.penalties() == {}
    term.see_the_pages()

    term.run(all_so_far)
    assert all(student in term.report("term") for student in ("ada", "bo", "chen", "ines"))
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
    shown = term.report(f"{A}_fastest")
    assert "times as fast" in shown and "def one_hot(" in shown
    assert not [last for _, last in CLASS.values() if re.search(rf"\b{last}\b", shown)]


def answers_that_look_alike(term: Term, page: Block) -> None:
    term.run(page)
    assert "All that was handed in was compared." in term.report(f"{A}_similar")


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


def a_test_was_wrong_grade_everybody_again(term: Term, build: Block, again: Block, anew: Block) -> None:
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


def grades_for_your_lms(term: Term, everything: Block, header: Block, *files: Block) -> None:
    moodle, canvas_file, canvas_upload = files
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
    pretended = platforms.CanvasCourse(people, {3: (A, term.assignment().max_score)})
    (term.folder / "canvas.csv").write_text(platforms.exported_by_canvas(pretended), encoding="utf-8")
    term.run(canvas_file)
    platforms.imported_by_canvas(pretended, (term.folder / "upload.csv").read_text(encoding="utf-8"))
    assert pretended.scores == pytest.approx(wanted, abs=0.006)

    term.environment["CANVAS_TOKEN"] = platforms.TOKEN
    with platforms.canvas(pretended) as term.places["{canvas}"]:
        assert "Nothing was changed." in term.run(canvas_upload)


def certificates(term: Term, write: Block, check: Block) -> None:
    programs.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(term.folder.parent / "key"))
    term.run(write)
    assert "\nAda Lovelace (ada) got these points" in term.run(check)


def gradescope(term: Term, archive: Block) -> None:
    programs.git(term.folder, "init", "--quiet")  # as a clone is
    programs.git(term.folder, "add", "--all")
    term.run(archive)
    (made,) = (term.folder / "build").glob(f"gradescope-{A}*.zip")
    with zipfile.ZipFile(made) as found:
        assert {"setup.sh", "run_autograder"} <= set(found.namelist())


grading_on_submit = Term.run


def grading_a_class(term: Term, grade_and_report: Block) -> None:
    all_are_graded(term, grade_and_report, reported=True)


def one_machine(term: Term, allowing: Block, grade: Block) -> None:
    owner, _, name = allowing.text.partition(" = ")[0].rpartition(".")
    assert owner == "c.RunEveryCell" and name in RunEveryCell.class_trait_names(config=True)
    assert "Nothing was left to do" in term.run(grade)


def a_dask_cluster(term: Term, cluster: Block, slurm: Block, kubernetes: Block) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        term.places["{port}"] = str(free.getsockname()[1])
    hand_in_without_exchange(term, "2027-03-05 12:00:00 UTC")
    all_are_graded(term, cluster)
    for block in (slurm, kubernetes):
        assert block.language == "python"
        compile(block.text, "<guide>", "exec")


def postgresql(term: Term, setting: Block, password: Block) -> None:
    server = Postgres()
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
        enter = Block("sh", "nbgrader db student import students.csv")
        with pytest.raises(AssertionError, match="no password supplied"):
            term.run(enter)
        term.environment["PGPASSFILE"] = str(known)
        term.db_url = f"postgresql+psycopg://{role}:{secret}{here}"
        shutil.rmtree(term.folder / "autograded")
        (term.folder / "gradebook.db").unlink()
        term.run(enter)
        term.run(Block("sh", f"nbgrader generate_assignment {A} --force"))
        all_are_graded(term, Block("sh", f"make grade ASSIGNMENT={A}"))
        assert not (term.folder / "gradebook.db").exists()
    finally:
        server.close()


def function_of(heading: str) -> str:
    """The name of the function that runs a section."""
    return re.sub(r"\W+", "_", heading).lower()


def walk(term: Term, guide: str, *headings: str) -> None:
    """Go through sections of a guide, and see that each of their commands was run."""
    for heading in headings:
        before, blocks = len(term.ran), GUIDES[guide][heading]
        globals()[function_of(heading)](term, *blocks)
        commands = {command for block in blocks if block.language == "sh" for command in block.commands}
        assert commands <= set(term.ran[before:]), heading


FIRST, *REST = GUIDES["instructors"]


def with_students(term: Term) -> Term:
    _, table, enter, *_ = GUIDES["instructors"][FIRST]
    enter_the_students(term, table, enter)
    return term


@pytest.mark.needs("bubblewrap")
@pytest.mark.slow
def test_the_first_time(tmp_path: Path) -> None:
    walk(Term(tmp_path), "instructors", FIRST)


@pytest.mark.needs("bubblewrap", "ssh-keygen")
@pytest.mark.slow
def test_a_term(tmp_path: Path) -> None:
    walk(with_students(Term(tmp_path)), "instructors", *REST)


@pytest.mark.needs("bubblewrap", "postgresql")
@pytest.mark.slow
def test_grading(tmp_path: Path) -> None:
    term = with_students(Term(tmp_path))
    term.course.nbgrader("generate_assignment", A, "--force")
    hand_in_without_exchange(term, "2027-03-04 12:00:00 UTC")
    walk(term, "grading", *GUIDES["grading"])


def test_every_section_with_code_has_a_function() -> None:
    assert {function_of(heading) for guide in GUIDES.values() for heading in guide} <= globals().keys()


def test_the_options_of_grade_are_those_of_the_guide(capsys) -> None:
    text, *_ = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8").split("\n## ")
    named = {words.split()[0] for words in re.findall(r"(?m)^\| `(--[^`]+)` \|", text)}
    with pytest.raises(SystemExit):
        grade(["--help"])
    there = set(re.findall(r"(?m)^  (--[a-z-]+)", capsys.readouterr().out))
    assert named == there and len(named) > 3


def test_git_passes_over_all_that_names_students() -> None:
    text = "".join((ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8") for guide in GUIDES)
    tables = set(re.findall(r"\b\w+\.csv\b", text))
    assert {"students.csv", "late.csv", "moodle.csv", "canvas.csv"} <= tables
    folders = ("downloaded", "submitted", "autograded", "feedback", "reports", ".grading")
    others = {"gradebook.db", *(f"{folder}/a" for folder in folders)}
    asked = sorted(tables | others)
    assert sorted(programs.git(ROOT, "check-ignore", *asked).split()) == asked
