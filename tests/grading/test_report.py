"""The pages about a class, its fastest answers and a term: what they show, and nothing from elsewhere."""

from pathlib import Path

import programs
import pytest
from bs4 import BeautifulSoup
from grading_class import STUDENTS, Says, a_class, autograded, decide, due, gradebook
from pretend_class import answered, hand_in
from pretend_pools import RACE, Instant, graded, pretend

from autograder.class_grading.class_commands import report
from autograder.class_grading.class_report import page
from autograder.class_grading.course import Course
from autograder.class_grading.results import ClassResults, Graded, Lap, Verdict, read_results
from autograder.extras import fastest, term
from autograder.extras.fastest.fastest_page import may_be_shown
from autograder.extras.term.term_pages import too_hard_or_easy
from autograder.judging.outcome import MIME
from autograder.sandbox import Executed


class Eventful(Instant):
    """Ada does something suspicious, the machine checks itself, one runs without the sandbox."""

    def start(self, job, cells: list[dict], **settings: object) -> None:
        student = job.submission.student
        done = Executed(**pretend(cells, undecided=student == "bo", **settings))
        if student == "ada":
            done.events = [{"cell": "double_check", "what": "Tried <b>this</b>."}]
        done.noise = {"spread": 0.1, "bias": 0.0, "when": "today"}
        done.sandboxed = student != "dalia"
        self.jobs.append((job, "its <worker> died" if student == "chen" else done))


class Text:
    """What a reader sees, and every address in the page."""

    def __init__(self, html: str) -> None:
        page = BeautifulSoup(html, "html.parser")
        self.text = " ".join(page.get_text(" ").split())
        self.tags = {tag.name for tag in page.find_all(True)}
        self.addresses = [tag.get("src") or tag.get("href") for tag in page.select("[src], [href]")]


def test_the_page_says_what_was_seen_and_needs_nothing_from_elsewhere(course) -> None:
    graded(Eventful())
    with Course("traps") as opened:
        shown = Text(html := page(read_results(opened)))
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
        "square_hidden 1.5 1 1 undecided: as told All 5 submissions",
        "12.8 to 14.4 0 14.4 to 16 5",  # of the points, the last two bars
        "Times as fast Students 2× to 2.3× 0",
        "3.5× to 4.02× 5",
    ):
        assert sentence in shown.text, sentence
    assert not shown.tags & {"script", "link", "iframe", "object", "b-this"}
    assert not [foreign for foreign in ("<b>this</b>", "@import", "url(") if foreign in html]
    assert not shown.addresses


def test_nothing_in_the_page_is_taken_for_html_and_odd_figures_can_be_drawn() -> None:
    odd = "<b-this>&amp;"
    noise = [{"spread": 0.1, "bias": 0.0, "when": odd, "strays": 0.31, "signs_only": True}]
    laps = [Lap(odd, ratio, 2.0) for ratio in (0.01, 1.99, 2.0, 5000.0)]
    tests = [Verdict(1, "undecided", odd, odd, laps)]
    events = [{"cell": odd, "what": odd}]
    one = Graded(odd, 1, tests, events, noise=noise, unreadable=[(odd,)], put_back=[(odd,)])
    one.decided, one.feedback = [(odd, "1", "none", "")], "feedback/a b"
    verdict = {"points": 1.0, "outcome": odd, "message": odd}
    test = {"test": odd, "before": verdict, "now": verdict, "by_hand": None, "counts": odd}
    dispute = {"student": odd, "exercise": odd, "when": odd, "tests": [test]}
    shown = Text(page(ClassResults(odd, {odd: 1}, [odd], [one], {odd: odd}, {}, {odd: odd * 2}, [dispute])))
    assert "b-this" not in shown.tags and shown.addresses == ["../feedback/a%20b"]
    for sentence in (
        f"Grades of {odd}",
        f"Student Test Why {odd} {odd} {odd} Suspicious",
        f"Student Where What {odd} {odd} {odd}",
        f"{odd} {odd * 2}",
        f"Student Why {odd} {odd}",
        f"Student Test When Before New verdict Which counts {odd} {odd} {odd} 1 points, {odd}: {odd}",
        f"at worst ({odd})",
        "In 1 of 1 notebooks with races, launches were off by more than 1.5× so often (up to 31 % of them)",
    ):
        assert sentence in shown.text, sentence
    assert f"On {odd}, 2 of 4" in shown.text
    below, above = shown.text.split(" 2× to ")  # an answer of 1.99 times is no longer there
    assert below.endswith(" 1") and above.split()[1] == "1"


@pytest.mark.slow
def test_the_command_writes_the_page(course, says: Says) -> None:
    said = says(report, "traps", status=1)
    assert "Nothing of traps is graded yet. Run `python -m autograder grade traps`" in said
    assert "Run `python -m autograder grade ASSIGNMENT` first." in says(term.main, status=1)
    graded()
    path = Path(says(report, "traps").strip())
    assert path == course.folder / "reports" / "traps.html"
    assert f"{len(STUDENTS)} of {len(STUDENTS)} submissions graded" in Text(path.read_text()).text
    assert "'/proc/." in says(report, "traps", "--output", "/proc/report.html", status=1)
    assert "Did you mean traps?" in says(report, "trap", status=1)


# The page about the fastest answers: what it shows, and whom it does not.

SHOWN = "# you may show this\n"
# Student -> the ratio measured, and the answer to the race's exercise.
CLASS = {
    "ada": (9.0, "def square(x):\n    return x**2  # by Ada"),
    "bo": (7.0, SHOWN + 'def square(x):\n    """Bo did it."""\n    # Bo, again\n    return pow(x, 2)'),
    "chen": (5.0, SHOWN + "def square(x):\n    return sum(x for _ in range(x))"),
    "dalia": (4.0, SHOWN + "def square(x):\n    return pow(x,  2)"),
    "emeka": (1.0, "def square(x):\n    return x * x"),
}


def measured(student: str, done: Executed) -> None:
    """Everybody is as fast as CLASS says."""
    for output in (output for outputs in done.outputs.values() for output in outputs):
        for lap in output.get("data", {}).get(MIME, {}).get("laps", []):
            lap["ratio"], lap["of_limit"] = CLASS[student][0], 0.25


def test_after_the_deadline_of_all_the_fastest_who_agree_are_shown_and_nobody_is_named(inbox, says) -> None:
    for student, (_, code) in CLASS.items():
        hand_in(inbox, "traps", student, answered(inbox.released("traps"), square=code))
    graded(Instant(change=measured))
    due("2999-01-01 12:00 UTC")
    assert "is due on 2999-01-01 12:00 UTC" in says(fastest.main, "traps", status=1)
    due(None)
    assert "has no due date" in says(fastest.main, "traps", status=1)
    due("2026-01-01 12:00 UTC")
    table, head = Path("late.csv"), "assignment,student,extension_days\nanother,*,999999\n"
    table.write_text(f"{head}traps,bo,360000\n")
    assert "on 2026-01-01 12:00 UTC, for somebody on 3011-08-" in says(fastest.main, "traps", status=1)
    table.write_text(f"{head}traps,bo,soon\n")
    assert "late.csv, line 3: extension_days is 'soon'" in says(fastest.main, "traps", status=1)
    assert not list(Path("reports").glob("*.html"))
    table.write_text(f"{head}traps,bo,0\n")

    shown = Text(Path(says(fastest.main, "traps").strip()).read_text())
    assert f"{RACE} 4 of 5 answers are at least 2× as fast as the given one." in shown.text
    first, second = shown.text.index("7 times as fast"), shown.text.index("5 times as fast")
    assert first < second and "9 times as fast" not in shown.text
    assert "It calls pow. It has no loop. It reaches 25% of the machine's limit." in shown.text
    assert "It calls sum, range. It has one loop." in shown.text
    assert shown.text.count("return pow(x, 2)") == 1  # two handed it in
    words = shown.text.lower().replace(".", " ").replace(",", " ").split()
    assert not {student for student in CLASS if student in words}
    assert not shown.tags & {"script", "link"}

    for path in map(autograded, CLASS):
        path.chmod(0o644)
        path.write_text(path.read_text().replace("# you may show this", "# mine"))
    shown = Text(Path(says(fastest.main, "traps").strip()).read_text())
    assert "Nobody has allowed to show an answer." in shown.text


def test_only_code_is_shown_and_only_if_that_is_allowed() -> None:
    for source, code in {
        "def f(x):\n    return x": "",
        "#You may show this, please\ndef f(x):\n    'words'\n    return x # mine": "def f(x):\n    return x",
        "# you may show this\ndef f(x)": "",
        "x = '# you may show this'": "",
        "# you may show this\ndef f():\n    'all'": "def f():\n    pass",
        # What Python reads and does not write again, or the other way round.
        f"# you may show this\nx = 0x{'f' * 5000}": "",
        f"# you may show this\nx = 1{' + 1' * 20_000}": "",
        "# you may show this\nx = '\ud800'": "",
    }.items():
        assert may_be_shown(source) == code


# The page about a term, and each student's own.

ODD = "o'brien <b>&"


def test_the_page_about_a_term_and_each_students(tmp_path: Path, monkeypatch, says: Says) -> None:
    """Three have handed in one of two assignments, one of them late; one test is decided by hand."""
    monkeypatch.chdir(a_class(tmp_path, students=("ada", "bo", "chen")).folder)
    due(percent_a_day=50, bo="2027-03-06 00:00:00 UTC")
    with gradebook() as opened:
        opened.update_or_create_assignment("later", duedate="2027-04-05 12:00:00 UTC")
        opened.add_student(ODD)
    graded()
    decide("chen", "double_check", 0.25)
    reports = Path.cwd() / "reports"
    assert says(term.main).startswith(f"{reports / 'term.html'}, and a page for each of 4 students")
    shown = Text(html := (reports / "term.html").read_text())
    assert html.count("--part: 0.50") == 1 and html.count("--part: 1.00") == 1
    for words in (
        "4 students",
        "1 assignments graded",
        "ada 16 16",
        "bo 8 (late 12 h, −8) 8",
        "chen 15.25 15.25",
        f"{ODD} – 0",
        "traps 2027-03-05 12:00 UTC 3 of 4 1",
        "Decided by hand (1)",
        "traps chen double_check 0.25 1",
        "Nothing suspicious was seen.",
    ):
        assert words in shown.text, words
    assert not shown.tags & {"script", "link", "iframe"} and not shown.addresses
    assert len(list((reports / "students").glob("*.html"))) == 4

    shown = Text((reports / "students/bo.html").read_text())  # it tells of nobody else
    assert "8 of 16 points so far" in shown.text
    assert "double 3 3" in shown.text and "late by 12.0 hours −8" in shown.text
    assert not {"ada", "chen", "brien"} & set(shown.text.lower().split())


@pytest.mark.needs("ssh-keygen")
def test_a_certificate_is_its_signers_word_for_word(tmp_path: Path, monkeypatch, says: Says) -> None:
    monkeypatch.chdir(a_class(tmp_path, students=("ada",)).folder)
    for key in ("key", "other"):
        programs.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    with gradebook() as opened:
        opened.update_or_create_student("ada", first_name="Ada\n 99.0 of 16", last_name=None)
    graded()
    assert "1 certificates in" in says(term.main, "--sign", "key")
    check = ["--check", "reports/certificates/ada.txt", "--signers"]
    said = says(term.main, *check, "key.pub")
    assert "\nAda 99.0 of 16 (ada) got" in said and " 16.0 of 16\n" in said
    says(term.main, *check, "other.pub", status=1)
    Path(check[1]).write_text(Path(check[1]).read_text().replace("16.0 of", "99.0 of"))
    assert "or was changed" in says(term.main, *check, "key.pub", status=1)


def test_an_exercise_that_nearly_nobody_or_everybody_solves_is_named() -> None:
    for solved, listed in (2, True), (4, False), (20, True), (19, False):
        points = {f"s{i}": float(i < solved) for i in range(20)}
        found = [Graded(name, one, [Verdict(one, "", "", "pad_check")]) for name, one in points.items()]
        results = ClassResults("pads", {"pad_check": 1.0}, ["pad"], found, {}, {})
        assert bool(list(too_hard_or_easy(results))) == listed
