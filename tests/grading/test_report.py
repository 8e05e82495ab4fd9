"""The report has what an instructor asks for, and needs nothing from elsewhere."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from grading_class import (
    STUDENTS,
    Instant,
    Says,
    a_class,
    autograded,
    built_once,
    command,
    copied,
    graded,
    half_undecided,
    pretend,
)

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading import report
from autograder.class_grading.course import Course
from autograder.class_grading.engine import Job
from autograder.class_grading.report import page
from autograder.class_grading.results import ClassResults, Graded, GradedTest, Lap, read_results
from autograder.sandbox import Executed


class Eventful(Instant):
    """Ada does something suspicious, the machine checks itself, one runs without the sandbox."""

    def start(self, job: Job, cells: list[dict], **settings: object) -> None:
        student = job.submission.student
        if student == "chen":
            self.jobs.append((job, "its <worker> died"))
            return
        done = Executed.from_dict(pretend(cells, undecided=student == "bo", **settings))
        if student == "ada":
            done.events = [{"cell": "double_check", "what": "Tried <b>this</b>."}]
        done.noise = {"setting": "launches", "spread": 0.1, "bias": 0.0, "samples": 8, "when": "today"}
        done.sandboxed = student != "dalia"
        self.jobs.append((job, done))


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """Such a class, graded."""
    course = a_class(tmp_path_factory.mktemp("eventful"), root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course.folder)
        graded(Eventful())
    return course.folder


@pytest.fixture
def results(eventful: Path, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> ClassResults:
    """What is read of a copy of that class, which is in the current folder."""
    monkeypatch.chdir(copied(eventful, tmp_path / "class", root).folder)
    with Course("traps") as opened:
        return read_results(opened)


class Text(HTMLParser):
    """What a reader sees, the pictures' alternative texts, and every address in the page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.alternatives: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = dict(attrs)
        self.addresses += [value for name in ("src", "href") if (value := values.get(name))]
        if tag == "img":
            self.alternatives.append(values["alt"] or "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_says_what_was_seen(results: ClassResults) -> None:
    shown = Text(page(results))
    for sentence in (
        "5 of 6 submissions graded",
        "15.7 of 16 points, mean",
        "Not graded, or to be graded again (1)",
        "chen its <worker> died",
        "Undecided races (1)",
        "bo square_hidden as told",
        "Suspicious (1)",
        "ada double_check Tried <b>this</b>.",
        "On cpu, 5 of 5 timed answers measured 2× (asked for) or more; median 4×.",
        "came out between 0.90× and 1.11× at worst (today)",
        "1 of 5 notebooks ran without the sandbox",
        "square 2.70 of 3 4 1 0",
    ):
        assert sentence in shown.text, sentence


def test_the_page_needs_nothing_from_elsewhere(results: ClassResults) -> None:
    html = page(results)
    shown = Text(html)
    assert not shown.tags & {"script", "link", "iframe", "object", "b-this"}
    for foreign in ("<b>this</b>", "@import", "url("):
        assert foreign not in html
    for address in shown.addresses:
        assert address.startswith("data:image/svg+xml;base64,")
        picture = base64.b64decode(address.partition(",")[2]).decode()
        ElementTree.fromstring(picture)
        assert "<script" not in picture and not re.search(r'href="(?!#)', picture)
    points, exercises, race = shown.alternatives  # every picture has its facts as text
    assert "Median 16.0" in points
    assert "square: 4 all, 1 some, 0 none" in exercises
    assert race.startswith("square_hidden: On cpu, 5 of 5")


@pytest.mark.parametrize("ratios", [[4.0], [0.01, 5000.0], [2.0] * 60, [1.99, 2.0]])
def test_ratios_of_any_size_can_be_drawn(ratios: list[float]) -> None:
    students = [
        Graded(f"student{i}", 1, [GradedTest("pad_race", 1, "passed", "", [Lap("cpu", ratio, 2.0)])])
        for i, ratio in enumerate(ratios)
    ]
    shown = Text(page(ClassResults("pads", {"pad_race": 1}, ["pad"], students, {}, {})))
    reached = sum(ratio >= 2 for ratio in ratios)
    assert f"{reached} of {len(ratios)} timed answers measured 2×" in shown.text
    assert "The machine did not check itself" in shown.text


def test_it_says_where_launches_were_off_too_often_for_an_early_end() -> None:
    noise = {"spread": 0.1, "bias": 0.0, "when": "today"}
    both = [noise | {"strays": 0.01, "signs_only": False}, noise | {"strays": 0.31, "signs_only": True}]
    two = [Graded(str(number), 1, [], [], noise=[one]) for number, one in enumerate(both)]
    shown = Text(page(ClassResults("pads", {"pad_race": 1}, ["pad"], two, {}, {})))
    said = "In 1 of 2 notebooks with races, launches were off by more than 1.5× so often (up to 31 % of them)"
    assert said in shown.text
    shown = Text(page(ClassResults("pads", {"pad_race": 1}, ["pad"], two[:1], {}, {})))
    assert "launches were off" not in shown.text


def test_nothing_in_the_page_is_taken_for_html() -> None:
    odd = "<b-this>&amp;"
    tests = [GradedTest(odd, 1, "undecided", odd, [Lap(odd, 3.0, 2.0)])]
    events = [{"cell": odd, "what": odd}]
    noise = [{"spread": 0.1, "bias": 0.0, "when": odd}]
    one = Graded(odd, 1, tests, events, noise=noise)
    shown = Text(page(ClassResults(odd, {odd: 1}, [odd], [one], {odd: odd}, {})))
    assert "b-this" not in shown.tags
    for sentence in (
        f"Grades of {odd}",
        f"Undecided races (1) They are marked “needs manual grade” in the formgrader. "
        f"Student Test Why {odd} {odd} {odd} Suspicious",
        f"Student Where What {odd} {odd} {odd} Exercises",
        f"On {odd}, 1 of 1 timed",
        f"at worst ({odd})",
    ):
        assert sentence in shown.text, sentence
    assert f"{odd}: On {odd}, 1 of 1" in shown.alternatives[-1]


def test_the_command_writes_the_page(course: ScratchCourse, says: Says) -> None:
    said = says(report.main, "traps", status=1)
    assert "Nothing of traps is graded yet. Run `python -m autograder grade traps`" in said
    graded()
    path = Path(says(report.main, "traps").strip())
    assert path == course.folder / "reports" / "traps.html"
    assert f"{len(STUDENTS)} of {len(STUDENTS)} submissions graded" in Text(path.read_text()).text
    said = says(report.main, "traps", "--output", "/proc/report.html", status=1)
    assert "The report cannot be written: " in said
    assert "Did you mean traps?" in says(report.main, "trap", status=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report", "fastest", "late", "similar", "term"])
def test_each_command_starts_by_itself(tmp_path: Path, root: Path, name: str) -> None:
    """The other tests call it in their own process."""
    course = copied(built_once("undecided", lambda new: half_undecided(new, root)), tmp_path, root)
    done = command(course, name, *(["traps"] if name != "term" else []))
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 penalties would change" in done.stdout or Path(done.stdout.split(",")[0].strip()).exists()


def test_notebooks_with_nonsense_in_their_cards_do_not_stop_it(results: ClassResults) -> None:
    path = autograded("ada")
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            for card in output.get("data", {}).values():
                if isinstance(card, dict):
                    card["laps"] = [{"device": "cpu", "ratio": "fast", "required": None}, {}, 7]
                    card["laps"] += [{"device": "cpu", "ratio": odd, "required": 2} for odd in (0, -1, 1e999)]
    path.chmod(0o644)
    path.write_text(json.dumps(notebook))
    with Course("traps") as opened:
        shown = Text(page(read_results(opened)))
    assert "On cpu, 4 of 4 timed answers" in shown.text
