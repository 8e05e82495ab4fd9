"""What is handed in is graded at once: in order, once, and never for fewer points than before."""

import json
import os
import re
import resource
import shutil
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest
from grading_class import INBOUND, configure, decide, due, gradebook, half_written, scores, small_files
from nbgrader.exchange import ExchangeError
from pretend_class import answered, hand_in
from pretend_pools import graded, stop
from watched_class import FULL, LESS, POOR, START, Judging, page, queue, send, to_the_end, watched, watching

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.course import Course
from autograder.class_grading.grader import Grader
from autograder.class_grading.pool import PoolError
from autograder.class_grading.results import read_results
from autograder.extras.watch import intake, trial
from autograder.extras.watch import watcher as watcher_module
from autograder.nbgrader_plugin import collect
from autograder.nbgrader_plugin.submissions import only_one

pytestmark = pytest.mark.slow  # a gradebook for each test


@pytest.fixture
def course(inbox: ScratchCourse, monkeypatch: pytest.MonkeyPatch) -> ScratchCourse:
    monkeypatch.setattr(intake, "SETTLED_SECONDS", 0.0)
    return inbox


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """``events`` happen in the pauses of a watcher, one after another; when none is left, it is stopped."""
    clock = SimpleNamespace(events=[])

    def sleep(_: float) -> None:
        (clock.events.pop(0) if clock.events else stop)()

    monkeypatch.setattr(watcher_module, "sleep", sleep)
    return clock


code = lambda step, student: Path(step, student, "traps", "traps.ipynb").read_text()
stages = lambda: {place.student: place.stage for place in queue().places}


def trouble(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line about what was in the way, but for a bar's progress; in the end all was well again."""
    said = capsys.readouterr()
    (line,) = (line for line in said.err.splitlines() if not line.startswith("grading: "))
    assert said.out.count("All is well again.") == 1
    return line


def test_what_comes_in_is_graded_and_points_given_by_hand_stay(course: ScratchCourse, capsys) -> None:
    send(course, "ada")
    send(course, "bo", negate=POOR)
    watched()
    assert scores() == {"ada": FULL, "bo": LESS}
    assert "# poor" in code("submitted", "bo") and "# poor" in code("autograded", "bo")
    assert not list(Path(".grading/new").glob("*/traps")) and not list(Path(".grading/trial").glob("*/traps"))
    with Course("traps") as opened:
        assert read_results(opened).missing == {}
    said = capsys.readouterr().out
    for words, waiting in (("ada  16", 1), ("bo  13", 0)):
        line = rf"traps  {words} of 16 points, \d+ s after it was handed in; {waiting} wait"
        assert re.search(rf"(?m)^[-\d]+ [:\d]+  {line}$", said)
    assert graded(Judging()).skipped == ["ada", "bo"]
    decide("bo", "negate_hidden", 1.5)
    send(course, "bo")
    watched()
    assert scores()["bo"] == FULL - 0.5  # in place of the two that the test gives now


def test_as_many_points_or_more_count_and_fewer_if_the_instructor_wants_it(course, capsys) -> None:
    for returned in ("x  # poor", "x  # poor, too", "0 - x"):
        send(course, "ada", negate=f"def negate(x):\n    return {returned}")
        watched()
        assert f'return {returned}"' in code("autograded", "ada")
    assert scores() == {"ada": FULL} and not Path(".grading/passed_over/ada/traps").exists()
    before = {step: code(step, "ada") for step in ("submitted", "autograded")}
    send(course, "ada", negate=POOR)
    pool = Judging()
    watched(pool)
    assert scores() == {"ada": FULL} and {step: code(step, "ada") for step in before} == before
    assert "# poor" in code(".grading/passed_over", "ada")
    assert "ada  13 of 16 points; the earlier submission counts, with 16, " in capsys.readouterr().out
    assert pool.graded == ["ada"]
    again = Judging()
    watched(again)  # not after a restart either
    assert again.graded == [] and graded(Judging()).skipped == ["ada"]
    graded(Judging(), force=True)
    assert scores() == {"ada": FULL}
    send(course, "ada", negate=POOR)
    watched(best=False)
    assert scores() == {"ada": LESS}
    assert "# poor" in code("submitted", "ada") and "# poor" in code("autograded", "ada")


def test_being_late_costs_points_in_the_comparison(course: ScratchCourse) -> None:
    due(percent_a_day=50)
    send(course, "ada", START - timedelta(hours=1), negate=POOR)
    watched()
    send(course, "ada", START + timedelta(hours=1))
    watched()
    assert scores() == {"ada": LESS}  # 8 of 16 would be fewer
    with gradebook() as opened:
        assert opened.find_submission("traps", "ada").total_seconds_late == 0


def test_of_several_the_newest_is_graded_and_one_that_comes_meanwhile_too(course: ScratchCourse) -> None:
    def change(*_: object) -> None:
        if len(pool.log) == 1:
            assert "x + x" in code(".grading/new", "ada")
            send(course, "ada", double="def double(x):\n    return (x + x)")

    pool = Judging(change=change)
    send(course, "ada", negate=POOR)
    send(course, "ada", double="def double(x):\n    return x + x")
    watched(pool)
    assert pool.graded == ["ada", "ada"]
    assert "(x + x)" in code("submitted", "ada") and "(x + x)" in code("autograded", "ada")
    assert scores() == {"ada": FULL}


def test_who_hands_in_again_while_waiting_keeps_the_place(course: ScratchCourse) -> None:
    pool = Judging(broken=["ada"])
    send(course, "ada")
    with watching(pool) as watcher:
        to_the_end(watcher)  # it could not be graded, and waits
        for student in ("bo", "ada"):
            time.sleep(0.01)
            send(course, student)
        pool.broken.clear()
        to_the_end(watcher)
    assert pool.graded == ["ada", "ada", "bo"]


def test_what_is_only_there_by_half_is_left_until_all_of_it_is(course: ScratchCourse) -> None:
    folder = send(course, "ada")
    content = (folder / "traps.ipynb").read_bytes()
    (folder / "traps.ipynb").write_bytes(content[:100])
    (folder / "timestamp.txt").unlink()
    folder.chmod(0o755)
    send(course, "bo")
    pool = Judging()
    with watching(pool) as watcher:
        to_the_end(watcher)
        assert pool.graded == ["bo"]
        (folder / "traps.ipynb").write_bytes(content)
        (folder / "timestamp.txt").write_text(folder.name.split("+")[2])
        folder.chmod(0o777)
        to_the_end(watcher)
    assert scores() == {"ada": FULL, "bo": FULL}


def test_a_link_leads_nowhere(course: ScratchCourse) -> None:
    folder = send(course, "ada")
    (folder / "grades.txt").symlink_to(Path("gradebook.db").resolve())
    (folder / "others").symlink_to(Path("solutions").resolve())
    (folder / "mine").mkdir()
    (folder / "mine" / "helpers.py").write_text("mine = 1")
    (folder / "mine" / "theirs.ipynb").symlink_to(Path("solutions/traps/traps.ipynb").resolve())
    send(course, "bo").rename(target := Path("elsewhere"))
    (INBOUND / "bo+traps+2027-03-05 12:00:00 UTC+a").symlink_to(target.resolve())
    watched()
    assert scores() == {"ada": FULL}
    found = {str(path.relative_to("submitted/ada/traps")) for path in Path("submitted/ada/traps").rglob("*")}
    assert found == {"traps.ipynb", "timestamp.txt", "submission_secret.txt", "mine", "mine/helpers.py"}


def test_names_that_no_submission_can_have_are_said_once(course: ScratchCourse, capsys) -> None:
    time_and_chance = "+traps+2027-03-05 12:00:00 UTC+a"
    refused = {
        "..": "The student id '..' is empty or begins with a dot",
        "": "The student id '' is empty or begins with a dot",
        "a<b": "The student id 'a<b' has characters that no id may have",
        "new\nline": r"The student id 'new\nline' has characters",
    }
    passed_over = ["bo+traps+some day+a", "bo+traps+9999-12-31 23:59:59 -1200+a", "traps"]
    for name in [*(student + time_and_chance for student in refused), *passed_over]:
        send(course, "bo").rename(INBOUND / name)
    send(course, "ada")
    before = set(Path().iterdir())
    with watching() as watcher:
        for _ in range(3):
            to_the_end(watcher)
    assert scores() == {"ada": FULL}
    assert set(Path().iterdir()) - before <= {Path("autograded"), Path("submitted"), Path(".grading")}
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("grading: ")]
    assert len(said) == len(refused)
    assert all("".join(said).count(sentence) == 1 for sentence in refused.values())


def test_each_name_is_read_once_and_of_unknown_assignments_none(course, monkeypatch) -> None:
    """However many there are: what is kept of them goes with them."""
    parse, parsed = collect.parse_utc, list[str]()
    monkeypatch.setattr(collect, "parse_utc", lambda said: parsed.append(said) or parse(said))
    for turn in range(200):
        for name in (f"bo+traps+some day {turn}+a", f"bo+essay+2027-03-05 12:00:{turn % 60:02} UTC+{turn}"):
            (INBOUND / name).mkdir()
            (INBOUND / name).chmod(0o777)
    send(course, "ada")
    with watching() as watcher:
        to_the_end(watcher)
        assert len(parsed) == 201
        to_the_end(watcher)
        assert len(parsed) == 201
        send(course, "bo")
        to_the_end(watcher)
        assert len(parsed) == 202
        for name in INBOUND.glob("bo+traps+some*"):
            name.rmdir()
        watcher.intake.look()
        assert len(watcher.intake._known) == 2
    assert scores() == {"ada": FULL, "bo": FULL}


def test_a_folder_of_another_account_is_left_there(course: ScratchCourse, capsys) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder to another account")
    send(course, "bo")
    watched()
    forged = send(course, "bo", START + timedelta(days=9), negate=POOR)
    os.chown(forged, 65534, 65534)
    with watching(best=False) as watcher:
        to_the_end(watcher)
        to_the_end(watcher)
    assert scores() == {"bo": FULL}
    assert capsys.readouterr().err.count("It says that it is of bo, but the account nobody put it there") == 1
    assert "# poor" not in code("submitted", "bo")
    course.nbgrader("collect", "traps", "--update")
    assert "# poor" not in code("submitted", "bo")
    configure(course, "c.ExchangeCollect.check_owner = False")
    watched(best=False)
    assert scores() == {"bo": LESS}


def test_who_is_not_enrolled_is_added_unless_the_course_says_otherwise(course: ScratchCourse, capsys) -> None:
    send(course, "ada")
    watched()
    assert scores() == {"ada": FULL}
    configure(course, "c.Autograde.create_student = False")
    send(course, "bo")
    send(course, "ada")
    pool = Judging()
    with watching(pool) as watcher:
        to_the_end(watcher)
        to_the_end(watcher)
        assert pool.graded == ["ada"]
        assert capsys.readouterr().err.count("Handed in, but not in the gradebook: 'bo'.") == 1
        with gradebook() as opened:
            opened.add_student("bo")
        to_the_end(watcher)
    assert scores() == {"ada": FULL, "bo": FULL}


def test_what_cannot_be_graded_is_tried_three_times(course: ScratchCourse, capsys, monkeypatch) -> None:
    send(course, "ada")
    send(course, "bo")
    pool = Judging(broken=["ada"])
    with watching(pool) as watcher:
        to_the_end(watcher)
        assert sorted(pool.graded) == ["ada", "bo"]  # not again at once
        assert stages() == {"ada": "waiting", "bo": "graded"}
        monkeypatch.setattr(watcher_module, "TRY_AGAIN_SECONDS", 0.0)
        watcher._again = {one: (tries, 0.0) for one, (tries, _) in watcher._again.items()}
        to_the_end(watcher)
    assert pool.graded.count("ada") == 3 and scores() == {"bo": FULL}
    said = capsys.readouterr().out
    assert said.count("ada  not graded: it broke It is tried again in a minute.") == 2
    assert said.count("python -m autograder grade traps --student ada") == 1
    assert stages() == {"ada": "failed", "bo": "graded"} and graded(Judging()).graded == ["ada"]


def test_it_keeps_out_of_the_way_of_others_and_lets_them_in_between(course, capsys, monkeypatch) -> None:
    monkeypatch.setattr(watcher_module, "AT_ONCE", 2)
    students = ["ada", "bo", "chen"]
    for student in students:
        send(course, student)
    with gradebook() as opened:
        opened.update_or_create_assignment("other")
    with watching(names=["other"]) as watcher:
        assert not watcher.round(), "only the given assignments are watched"
    pool = Judging()
    with watching(pool) as watcher:
        with only_one(course.folder):
            assert not watcher.round() and not watcher.round()
        assert capsys.readouterr().err.count("Another grade command is at work. This one goes on when") == 1
        assert pool.graded == [] and not Path("submitted").exists()
        assert stages() == dict.fromkeys(students, "waiting")
        assert watcher.round() and len(scores()) == 2
        with only_one(course.folder) as alone:
            assert alone
        assert watcher.round() and not watcher.round()
        assert graded(Judging()).skipped == students  # it keeps nobody out while it waits
    assert scores() == dict.fromkeys(students, FULL)


def test_a_full_disk(course: ScratchCourse, capsys, clock: SimpleNamespace) -> None:
    send(course, "ada")
    with watching() as watcher, small_files(40_000):  # the gradebook is larger
        full = resource.getrlimit(resource.RLIMIT_FSIZE)
        clock.events += [lambda: None, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (full[1], full[1]))]
        with pytest.raises(KeyboardInterrupt):
            watcher.run()
    assert "What is handed in waits" in trouble(capsys) and scores() == {"ada": FULL}
    assert half_written(course) == 0


def test_after_trouble_there_is_another_pool(course: ScratchCourse, capsys, clock: SimpleNamespace) -> None:
    """What still ran in the old one would come back to the wrong submission."""

    class Lost(Judging):
        def wait(self):
            raise PoolError("The Dask scheduler is gone. Start it.", again=True)

    lost = Lost()
    pools = iter([lost, Judging()])
    send(course, "ada")
    with watching(lambda _: next(pools)) as watcher:
        clock.events.append(lambda: None)
        with pytest.raises(KeyboardInterrupt):
            watcher.run()
    assert scores() == {"ada": FULL} and not lost.jobs
    assert "The Dask scheduler is gone. Start it. What is handed in waits" in trouble(capsys)


MOVED = "replace_folder"
IN_GRADING = [(Grader, name) for name in ("init_assignment", "write_single_notebook", "set_permissions")]


@pytest.mark.parametrize("better", [True, False])
@pytest.mark.parametrize(("place", "moment"), [*IN_GRADING, (trial, MOVED), (intake, MOVED)])
def test_a_crash_leaves_the_old_grade_or_the_new_one(course, monkeypatch, place, moment, better) -> None:
    send(course, "ada", **({"negate": POOR} if better else {}))
    watched()
    old = scores()
    send(course, "ada", **({} if better else {"negate": POOR}))
    send(course, "bo")
    with monkeypatch.context() as patched:
        patched.setattr(place, moment, stop)
        with suppress(KeyboardInterrupt):
            watched()
    assert half_written(course) == 0 and scores()["ada"] in (old["ada"], FULL)
    watched()
    assert scores() == {"ada": FULL, "bo": FULL}
    assert "# poor" not in code("autograded", "ada") and "# poor" not in code("submitted", "ada")
    assert graded(Judging()).skipped == ["ada", "bo"]


def test_without_an_exchange_submitted_is_watched(course: ScratchCourse, monkeypatch) -> None:
    shutil.rmtree("exchange")
    path = hand_in(course, "traps", "ada", answered(course.released("traps"), negate=POOR))
    pool = Judging()
    with watching(pool) as watcher:
        with monkeypatch.context() as patched:
            patched.setattr(intake, "SETTLED_SECONDS", 3600.0)  # it may still be written to
            to_the_end(watcher)
        assert scores() == {}
        to_the_end(watcher)
        assert scores() == {"ada": LESS}
        to_the_end(watcher)
        assert pool.graded == ["ada"]
        path.write_text(json.dumps(answered(course.released("traps"))))
        to_the_end(watcher)
    assert scores() == {"ada": FULL} and pool.graded == ["ada"] * 2


def test_the_queue_shows_places_and_then_what_became_of_each(course: ScratchCourse) -> None:
    """They are graded in the order in which they came; what they say of their time is no place."""
    seen: list[dict[str, str]] = []

    class Looking(Judging):
        def wait(self):
            seen.append(stages())
            return super().wait()

    students = ["chen", "ada", "bo"]
    for days, student in enumerate(students):
        send(course, student, START - timedelta(days=days))
        time.sleep(0.01)
    pool = Looking()
    with watching(pool) as watcher:
        assert watcher.round()
        now = queue()
        assert now.at_work and not now.trouble and now.alive(datetime.now(timezone.utc))
        assert not now.alive(datetime.now(timezone.utc) + timedelta(hours=1))
        to_the_end(watcher)
    assert pool.graded == students
    assert seen[0] == {"chen": "grading", "ada": "waiting", "bo": "waiting"}
    assert {"chen": "graded", "ada": "grading", "bo": "waiting"} in seen
    assert stages() == dict.fromkeys(students, "graded")


def test_who_was_graded_sees_points_and_feedback_when_they_are_handed_back(course: ScratchCourse) -> None:
    first = send(course, "ada", negate=POOR)
    watched()
    ((place, before),) = queue().of("ada")
    assert (place.student, place.stage, place.points, place.most, before) == ("ada", "graded", None, None, 0)
    assert queue().of("nobody") == [] and not Path("feedback").exists()
    second, other = send(course, "ada"), send(course, "bo")
    hand_in(course, "traps", "chen", answered(course.released("traps")))
    graded(Judging(), students=["chen"])
    watched(release=True)
    assert {one: queue().of(one)[0][0].points for one in ("ada", "bo")} == {"ada": FULL, "bo": FULL}
    assert page(second).exists() and page(other).exists() and not page(first).exists()
    assert {path.name for path in Path("feedback").iterdir()} == {"ada", "bo"}
    written = page(second).read_text()
    third = send(course, "ada", negate=POOR)
    watched(release=True)
    assert page(second).read_text() == written and not page(third).exists()
    ((place, _),) = queue().of("ada")
    assert (place.stage, place.points, place.before) == ("passed over", LESS, FULL)


def test_a_page_that_cannot_be_handed_back_is_tried_again(course: ScratchCourse, monkeypatch, capsys) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ExchangeError("Unwritable directory")

    folder = send(course, "ada")
    with monkeypatch.context() as patched:
        patched.setattr(watcher_module, "GenerateFeedback", fail)
        watched(release=True)
    assert "The page of ada for traps could not be handed back: Unwritable" in capsys.readouterr().err
    assert scores() == {"ada": FULL} and not page(folder).exists()
    for _ in range(2):  # a watcher that is started later knows of it
        watched(release=True)
    assert page(folder).exists() and queue().of("ada")[0][0].points == FULL
