"""Grades what is handed in, one look after another, until it is stopped."""

import glob
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache, partial
from time import monotonic, sleep
from typing import Any, TextIO

import msgspec
from nbgrader.auth import Authenticator
from nbgrader.converters import GenerateFeedback, NbGraderException
from nbgrader.exchange import ExchangeError, ExchangeFactory
from sqlalchemy.exc import DBAPIError
from tqdm import tqdm

from ...class_grading.course import Course, require_known
from ...class_grading.engine import grade
from ...class_grading.gradebook import GradebookAway
from ...class_grading.pool import Pool
from ...class_grading.status import length
from ...command_line import CommandError
from ...files import write_whole
from ...nbgrader_plugin.collect import changed_settings
from ...nbgrader_plugin.patches import autograded_folder
from ...nbgrader_plugin.submissions import only_one
from .intake import Intake
from .queue_file import QUEUE, Place, Queue, read_queue
from .trial import Trial

EVERY_SECONDS = 5.0  # between two looks
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0  # seconds, after something went wrong
AT_ONCE = 8  # submissions for each worker in one round, after which others may use the course
MOST_REMEMBERED = 1000  # sentences that are not said again
TRIES = 3  # of a submission that cannot be graded
TRY_AGAIN_SECONDS = 60.0
# What may be over when it is tried again.
TROUBLE = (CommandError, ExchangeError, NbGraderException, DBAPIError, OSError)


@dataclass
class Watcher:
    """Grades what is handed in, for these assignments or for all, until it is stopped.

    ``course``: the course, whichever assignment it was opened for. ``release``: feedback goes back at once.
    ``best``: of a student's submissions the one with most points counts; otherwise the last one does.
    """

    course: Course
    connect: Callable[[bool], Pool]
    names: Sequence[str] = ()
    db_url: str | None = None
    release: bool = False
    best: bool = True
    stop_if_asked: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._warn = partial(self._say, file=sys.stderr)
        self._warn_once = lru_cache(MOST_REMEMBERED)(self._warn)
        self.intake = Intake(self.course, self._warn_once)
        self._pool: Pool | None = None
        self._queue = self.course.root / QUEUE
        before = read_queue(self._queue)
        found = before.places if before else []
        self._ended = {one.key: one for one in found if one.ended}  # which stay in the file
        self._grading: dict[str, Place] = {}  # those of this round that are not done yet, by student
        self._again: dict[Place, tuple[int, float]] = {}  # how often it failed, and when it is tried again
        self._owe_again = 0.0  # when pages are handed back that could not be
        # Whom another watcher left when it was stopped: perhaps they are graded.
        self._left = [one for one in found if self.release and one.stage in ("waiting", "grading")]
        self._trouble: object = None  # its kind
        self._kept_out = False  # by another command

    def start(self) -> None:
        """Say what is watched, and start the workers. Raises GradingError or PoolError."""
        known = self._look_up()
        for name in self.names:
            require_known(name, known)
        self._lasting_pool(self.course.without_sandbox)
        where = "submitted/"
        if self.intake.inbound is None:
            advice = "let `nbgrader collect --update` bring what is there"
            where += f" (the exchange is not nbgrader's own: {advice})"
        elif self.intake.inbound.is_dir():
            where += f" and {self.intake.inbound}"
        self._say(f"Watching {where}, for {', '.join(self.intake.assignments) or 'no assignment so far'}.")

    def run(self) -> None:
        """Go on until KeyboardInterrupt comes. What goes wrong is said, and tried again."""
        pause = 0.0
        try:
            while True:
                self.stop_if_asked()
                try:
                    busy = self.round()
                except TROUBLE as error:
                    self._in_trouble(error)
                    pause = min(2 * pause, LONGEST_PAUSE) or FIRST_PAUSE
                    sleep(pause)
                    continue
                if self._trouble:
                    self._trouble, pause = None, 0.0
                    self._say("All is well again.")
                if not busy:
                    sleep(EVERY_SECONDS)
        finally:
            self._end_pool()
            with suppress(OSError):
                self._show(at_work=False)

    def round(self) -> bool:
        """Take in what is new, and grade some of what waits; whether any was graded.

        Raises one of ``TROUBLE`` where that cannot go on; what was graded is kept, what waits waits on.
        """
        self._look_up()
        if not (self.intake.look() or self._ready() or self._left or self._owed()):
            self._show()
            return False
        with only_one(self.course.root) as alone:
            if not (alone or self._kept_out):
                self._warn("Another grade command is at work. This one goes on when it is done.")
            self._kept_out = not alone
            if not alone:
                self._show()
                return False
            self.intake.take_in()
            for one in filter(self._may_have_a_page, self._left):
                self._end(one, stage="graded")
            self._left = []
            for one in self._owed():
                self._hand_back(one)
            self._show()
            if line := self._ready():
                most = AT_ONCE * self._lasting_pool(self.course.without_sandbox).workers
                self._grade([one for one in line if one.assignment == line[0].assignment][:most])
            return bool(line)

    def _owed(self) -> list[Place]:
        if not self.release or monotonic() < self._owe_again:
            return []
        graded = (one for one in self._ended.values() if one.stage == "graded" and not one.handed_back)
        return list(filter(self._may_have_a_page, graded))

    def _may_have_a_page(self, one: Place) -> bool:
        is_graded = autograded_folder(self.course.grader, *one.key).exists()
        return is_graded and one.key not in self.intake.waiting

    def _lasting_pool(self, unconfined: bool) -> Pool:
        """The pool for all rounds, until trouble ends it: its workers take some seconds to start."""
        if self._pool is None:
            self._pool = self.connect(unconfined)
        return self._pool

    def _end_pool(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _look_up(self) -> list[str]:
        """Ask the gradebook for assignments, and for students if they must be known; gives all its names."""
        if self._trouble:
            self.course.open_again()
        with self.course.opened() as gradebook:
            known = {one.name: [notebook.name for notebook in one.notebooks] for one in gradebook.assignments}
            if not self.course.grader.create_student:
                self.intake.students = {student.id for student in gradebook.students}
        self.intake.assignments = {name: known[name] for name in known if name in (self.names or known)}
        return list(known)

    def _ready(self) -> list[Place]:
        return [one for one in self.intake.line() if self._again.get(one, (0, 0))[1] <= monotonic()]

    def _grade(self, line: list[Place]) -> None:
        self._grading = {one.student: one for one in line}
        self._show()
        path = list(sys.path)
        try:
            trial = Trial(line, self.db_url, best=self.best)
            sys.path[:] = path  # where nbgrader puts the course's folder, each time
            with trial:

                def between() -> None:
                    while trial.graded:
                        self._done(trial.graded.pop())
                    self._show()
                    self.stop_if_asked()

                summary = grade(trial, connect=self._lasting_pool, say=self._warn_once, between=between)
            for student, one in self._grading.items():
                self._failed(one, summary.failed.get(student, "It was not found any more."))
        finally:
            self._grading = {}
        self._show()

    def _done(self, one: Place) -> None:
        """A submission was graded: put it where it belongs, hand back its page, and say so."""
        counts = one.stage == "graded"
        self._again.pop(self._grading.pop(one.student), None)
        self.intake.settle(one, counts=counts)
        text = f"{round(one.points or 0, 2):g} of {one.most:g} points"
        if not counts and one.before is not None:
            text += f"; the earlier submission counts, with {round(one.before, 2):g}"
        # The page of an earlier one that counts is there.
        one = self._end(one, handed_back=self.release and not counts)
        if self.release and counts:
            self._hand_back(one)
        took = datetime.now(timezone.utc) - datetime.fromisoformat(one.arrived)
        after = length(max(0.0, took.total_seconds()))
        waiting = len(self.intake.waiting) + len(self.intake.on_the_way())
        self._tell(one, f"{text}, {after} after it was handed in; {waiting} wait")

    def _end(self, one: Place, **how: Any) -> Place:
        """Keep how a submission ended, for the file."""
        self._ended[one.key] = ended = replace(one, ended=datetime.now(timezone.utc).isoformat(), **how)
        return ended

    def _failed(self, one: Place, sentence: str) -> None:
        """A submission could not be graded: try it again, or leave it to the instructor."""
        tries = self._again.pop(one, (0, 0.0))[0] + 1
        if tries < TRIES:
            self._again[one] = tries, monotonic() + TRY_AGAIN_SECONDS
            self._tell(one, f"not graded: {sentence} It is tried again in a minute.")
            return
        self.intake.settle(one, counts=True)
        self._end(one, stage="failed")
        again = f"python -m autograder grade {one.assignment} --student {one.student}"
        self._tell(one, f"not graded: {sentence} It is in submitted/, for you to try: {again}")

    def _hand_back(self, one: Place) -> None:
        """Make a student's page anew, and release it where there is an exchange, by nbgrader's own code."""
        directory, app = self.course.directory, self.course.grader.parent
        whose = {"assignment_id": one.assignment, "student_id": glob.escape(one.student)}
        try:
            with changed_settings(directory, **whose):
                GenerateFeedback(coursedir=directory, parent=app, force=True).start()
                if self.intake.inbound is None or self.intake.inbound.parent.is_dir():
                    release, who = ExchangeFactory(parent=app).ReleaseFeedback, Authenticator(parent=app)
                    release(coursedir=directory, authenticator=who, parent=app).start()
        except TROUBLE as error:
            self._owe_again = monotonic() + TRY_AGAIN_SECONDS
            what = f"The page of {one.student} for {one.assignment} could not be handed back"
            self._warn_once(f"{what}: {self._sentence(error)} It is tried again every minute.")
        else:
            self._ended[one.key] = replace(one, handed_back=True)

    def _show(self, at_work: bool = True) -> None:
        started = list(self._grading.values())[: self._pool.workers if self._pool else 1]
        line = [replace(one, stage="grading") for one in started]
        line += [one for one in self.intake.line() if one not in started]
        line += [*self.intake.on_the_way(), *self._ended.values()]
        now = datetime.now(timezone.utc).isoformat()
        write_whole(self._queue, msgspec.json.encode(Queue(now, at_work, self._trouble is not None, line)))

    def _in_trouble(self, error: BaseException) -> None:
        """Say what went wrong, once, and let go of what may be broken."""
        if isinstance(error, DBAPIError):
            error = self.course.gradebook.trouble(error)
        # Of what may pass the reason may be told in other words each time.
        passes = isinstance(error, (GradebookAway, OSError))
        kind = (type(error), getattr(error, "errno", None)) if passes else str(error)
        if kind != self._trouble:
            self._warn(f"{self._sentence(error)} What is handed in waits; this goes on by itself.")
        self._trouble = kind
        self._end_pool()
        with suppress(*TROUBLE):
            self._show()

    def _sentence(self, error: BaseException) -> str:
        if isinstance(error, DBAPIError):
            error = self.course.gradebook.trouble(error)
        if isinstance(error, CommandError):
            return error.words
        return f"A file cannot be read or written: {error}." if isinstance(error, OSError) else str(error)

    def _tell(self, one: Place, text: str) -> None:
        self._say(f"{one.assignment}  {one.student}  {text}")

    def _say(self, text: str, file: TextIO | None = None) -> None:
        tqdm.write(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {text}", file=file)
        (file or sys.stdout).flush()
