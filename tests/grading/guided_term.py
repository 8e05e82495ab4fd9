"""The guides as a test reads them, and a copy of the repository with a class that runs them."""

import os
import re
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import nbformat
import programs
from grading_class import scores
from lab_server import listens, mark_installed
from markdown_it import MarkdownIt
from nbformat import NotebookNode
from nbgrader.api import Assignment, Gradebook
from repository import ROOT, all_files, copy_files

from autograder.authoring.answers import Answers, answers_to, submission
from autograder.authoring.builder import build
from autograder.authoring.rehearsal import mix, points_table
from autograder.authoring.scratch_course import ScratchCourse
from autograder.authoring.sources import address
from autograder.roles import solution_cells


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a shell's block, each on one line and without remarks."""
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        plain = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in lines)
        return [line for line in plain if line]


@dataclass
class Section:
    """What stands between one heading and the next."""

    heading: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def commands(self) -> list[str]:
        """Those of all blocks for a shell."""
        return [command for block in self.blocks if block.language == "sh" for command in block.commands]


def read_guide(path: Path) -> list[Section]:
    """The sections of a page, in their order."""
    tokens = MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8"))
    sections = [Section("")]
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following:
            sections.append(Section(following.content))
        elif token.type == "fence":
            sections[-1].blocks.append(Block(token.info.strip(), token.content))
    return sections


A = "01_tensor_creation"
# Ids and names as people have them. The last one hands in nothing.
CLASS = {
    "ada": ("Ada", "Lovelace"),
    "bo": ("Bo", "Babbage"),
    "o'brien": ("Flann", "O'Brien"),
    "josé-ñ": ("José María", "Ñandú"),
    "0012345": ("AnswerProcess", "Zero"),
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
        self.answers: Answers = answers_to(A, self.folder)
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

    def gradebook(self) -> Gradebook:
        return Gradebook(self.db_url)

    def scores(self) -> dict[str, float]:
        """Everybody's points, less the penalty."""
        return scores(self.db_url, A)

    def penalties(self) -> dict[str, float]:
        """Those that are not 0."""
        with self.gradebook() as gradebook:
            return {
                one.student_id: one.late_submission_penalty
                for one in gradebook.assignment_submissions(A)
                if one.late_submission_penalty
            }

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
