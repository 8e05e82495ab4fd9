"""Grades a whole class: submissions run in parallel in a pool of workers, one process writes the grades.

For each submission the cells run in a worker's sandbox; then nbgrader's own Autograde, in this process, takes
their outputs in place of running anything. What noise left undecided is timed once more at the end.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any, TypeVar

from ..nbgrader_plugin.reading import extra_files
from ..sandbox import Executed, PlannedCell
from ..show import did_you_mean, first_of
from .course import Course, Reason, Submission, SubmissionError
from .gradebook import GradebookAway, GradingError
from .grader import Prepared
from .html_page import render
from .pool import Pool
from .results import read_results
from .status import Status, shown

# How long to wait for a gradebook that is away, and between two looks.
OUTAGE_SECONDS, LOOK_SECONDS = 600.0, 1.0
MOST_TOLD = 10  # submissions of each kind

Result = TypeVar("Result")


@dataclass(eq=False)
class Job:
    """One notebook of a submission, and what running it gave."""

    submission: Submission
    prepared: Prepared | None
    together: list["Job"] = field(default_factory=list)  # all of the submission, this one, too
    only: list[int] | None = None  # of the tests; all, if it is None
    executed: Executed | None = None
    failure: str | None = None
    ended: bool = False

    @property
    def cells(self) -> list[PlannedCell]:
        return self.prepared.cells if self.prepared else []


@dataclass
class Summary:
    """How a run went; ``failed`` has a sentence for each student.

    ``again`` says why those who had a grade are graded again. Those of ``timeless`` came without a time, so
    nothing says whether they are late. ``left`` is how many a run did not come to that was ``stopped``.
    """

    graded: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    again: dict[str, Reason] = field(default_factory=dict)
    timeless: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stopped: str | None = None
    left: int = 0


def grade(
    course: Course,
    *,
    students: Iterable[str] = (),
    force: bool = False,
    connect: Callable[[bool], Pool],
    say: Callable[[str], None] = print,
    between: Callable[[], None] = lambda: None,
) -> Summary:
    """Grade the submissions of the course's assignment that are still to be graded.

    ``connect`` gives the pool, if there is anything to do; who makes it closes it. ``between`` is called
    after each submission; what it raises stops the run.

    Raises GradingError or PoolError where that cannot go on. What was graded until then is kept, and the
    next run goes on from there.
    """
    summary, start = Summary(), monotonic()
    wanted = set(students)
    chosen = choose(course.submissions(), wanted)
    if not wanted:
        summary.failed.update(course.grader.refused)
    since = course.forced_since(wanted) if force else ""
    reasons = {submission: course.reason(submission, since) for submission in chosen}
    todo = [submission for submission, why in reasons.items() if why]
    if course.shuffled:
        Random(0).shuffle(todo)
    summary.skipped = [submission.student for submission, why in reasons.items() if not why]
    summary.again = {one.student: why for one, why in reasons.items() if why and why is not Reason.NOT_GRADED}
    if by_other_tests := [student for student, why in summary.again.items() if why is Reason.OTHER_TESTS]:
        what = f"The tests or points of {course.assignment} changed since submissions were graded"
        say(f"{what} ({len(by_other_tests)}): these are graded again; points given by hand stay.")
    if replaced := [student for student, why in summary.again.items() if why is Reason.OTHER_FILES]:
        late = "Beside them is no new timestamp.txt, so they count as late as before."
        what = "Graded again, because the files in submitted/ are not those that were graded"
        say(f"{what}: {first_of(replaced)}. {late}")
    if force and summary.skipped:
        began = since[:16].replace("T", " ")
        say(f"--force goes on where it was stopped: begun at {began} UTC, {len(summary.skipped)} are done.")
    try:
        if todo:
            pool = connect(course.without_sandbox)
            for warning in pool.warnings:
                say(f"warning: {warning}")
            status = Status(len(todo))
            with shown(status, pool):
                jobs = (job for submission in todo for job in jobs_of(course, submission, status))
                for job in run_all(pool, jobs, course, status):
                    job.ended = True
                    if all(one.ended for one in job.together):
                        finish(course, job.together, summary, status)
                        status.graded += 1
                        between()
        if force:
            course.forced_to_the_end()
    except BaseException as error:
        summary.stopped = "Stopped by hand." if isinstance(error, KeyboardInterrupt) else str(error)
        summary.left = len(todo) - len(summary.graded)
        if summary.graded:
            say(f"{len(summary.graded)} were graded in this run, {summary.left} are left.")
        raise
    finally:
        summary.seconds = monotonic() - start
        course.record(asdict(summary))
    return summary


def choose(submissions: list[Submission], students: set[str]) -> list[Submission]:
    """Those of the given students; all, if none are given. Raises GradingError for an unknown one."""
    known = [submission.student for submission in submissions]
    for student in sorted(students.difference(known)):
        hint = did_you_mean(student, known, f"Submissions are there from {len(known)} others.")
        raise GradingError(f"Student {student!r} has not handed in this assignment. {hint}")
    return [submission for submission in submissions if not students or submission.student in students]


def jobs_of(course: Course, submission: Submission, status: Status) -> list[Job]:
    """The notebooks of a submission, with the cells that are to be run: none in one that cannot be read."""
    try:
        read = through_outages(course, status, partial(course.read, submission))
        jobs = [Job(submission, prepared) for prepared in read]
    except SubmissionError as error:
        jobs = [Job(submission, None, failure=str(error))]
    for job in jobs:
        job.together = jobs
        status.opened(job, submission.student, job.cells)
    return jobs


def through_outages(course: Course, status: Status, act: Callable[[], Result]) -> Result:
    """Do something with the gradebook; where it is away, wait until it is back, and do it again.

    Raises GradebookAway where that takes too long, and what ``act`` raises else.
    """
    until = monotonic() + OUTAGE_SECONDS
    while True:
        try:
            if status.trouble:
                course.open_again()
            result = act()
            status.trouble = None
            return result
        except GradebookAway:
            if monotonic() > until:
                raise
        status.trouble = f"waiting for the gradebook {course.gradebook.name}, which does not answer"
        sleep(LOOK_SECONDS)


def run_all(pool: Pool, jobs: Iterable[Job], course: Course, status: Status) -> Iterator[Job]:
    """Run all jobs; gives each when it is done, those that noise left undecided last."""

    def start(job: Job, **how: Any) -> None:
        files, tell = extra_files(job.submission.folder), partial(status.tell, job)
        settings = {"assignment": course.assignment, "files": files, **course.limits}
        pool.start(job, job.cells, tell=tell, **how, **settings)

    todo = iter(jobs)
    again: list[Job] = []
    running = 0
    while True:
        while running < 2 * pool.workers and (new := next(todo, None)):
            if not new.cells:
                yield new
                continue
            start(new, races="now", only=new.only)
            running += 1
        if not running:
            break
        job, result = pool.wait()
        running -= 1
        status.ran(job)
        if isinstance(result, str):
            job.failure = result
            yield job
            continue
        job.executed = result
        if result.undecided:
            again.append(job)
            undecided = [cell for cell in job.cells if cell.index in result.undecided]
            status.opened(job, job.submission.student, undecided)
        else:
            yield job
    for job in again:  # nothing else runs now
        assert job.executed  # it ran
        start(job, races="again", only=job.executed.undecided)
        _, result = pool.wait()
        status.ran(job)
        if isinstance(result, Executed):  # else what is undecided is for the instructor to decide
            job.executed = job.executed.merged(result)
        yield job


def finish(course: Course, jobs: list[Job], summary: Summary, status: Status) -> None:
    student = jobs[0].submission.student
    for failure in (job.failure for job in jobs if job.failure):
        summary.failed[student] = failure
        return
    ran = [(job.prepared, job.executed) for job in jobs if job.prepared]
    try:
        through_outages(course, status, partial(course.save, student, ran))
    except SubmissionError as error:
        summary.failed[student] = str(error)
        return
    summary.graded.append(student)
    if course.due and not course.directory.get_existing_timestamp(jobs[0].submission.folder):
        summary.timeless.append(student)


def tell(course: Course, summary: Summary) -> str:
    return render(
        Path(__file__).with_name("summary.txt.j2"),
        assignment=course.assignment,
        summary=summary,
        again=Counter(summary.again[student] for student in summary.graded if student in summary.again),
        results=read_results(course) if summary.graded else None,
        most_told=MOST_TOLD,
    ).rstrip()
