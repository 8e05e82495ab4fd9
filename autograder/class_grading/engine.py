"""Grades a whole class: submissions run in parallel in a pool of workers, one process writes the grades.

For each submission the cells run in a worker's sandbox; then nbgrader's own Autograde, in this process, takes
their outputs in place of running anything. What noise left undecided is timed once more at the end.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from ..nbgrader_plugin.extra_files import extra_files
from ..nbgrader_plugin.submissions import problem_of
from ..sandbox import Executed, plan
from .course import Course, GradingError, Submission, SubmissionError
from .grader import Prepared
from .pool import Pool
from .progress_bar import Progress, length


@dataclass(eq=False)
class Job:
    """One notebook of a submission: its cells, and what running them gave."""

    submission: Submission
    prepared: Prepared | None
    cells: list[dict]
    others: int = 0  # how many more notebooks the submission has
    executed: Executed | None = None
    failure: str | None = None


@dataclass
class Summary:
    """How a run went; ``failed`` has a sentence for each student."""

    graded: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    undecided: list[tuple[str, str]] = field(default_factory=list)
    suspicious: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stopped: str | None = None


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

    ``between`` is called after each of them; what it raises stops the run.

    Raises GradingError or PoolError where that cannot go on. What was graded until then is kept, and the
    next run goes on from there.
    """
    summary, start = Summary(), monotonic()
    wanted = set(students)
    chosen = choose(course.submissions(), wanted)
    if not wanted:
        summary.failed.update(course.refused)
    todo = [submission for submission in chosen if force or not course.graded(submission)]
    summary.skipped = [submission.student for submission in chosen if submission not in todo]
    try:
        if todo:
            with closing(connect(course.require_sandbox)) as pool:
                for warning in pool.warnings:
                    say(f"warning: {warning}")
                with Progress(len(todo), "grading", "submission") as progress:
                    jobs = (job for submission in todo for job in jobs_of(course, submission))
                    settings = {"assignment": course.assignment, **course.limits}
                    for done in by_submission(run_all(pool, jobs, settings)):
                        finish(course, done, summary)
                        progress.step()
                        between()
    except BaseException as error:
        summary.stopped = "Stopped by hand." if isinstance(error, KeyboardInterrupt) else str(error)
        raise
    finally:
        summary.seconds = monotonic() - start
        course.record(asdict(summary))
    return summary


def choose(submissions: list[Submission], students: set[str]) -> list[Submission]:
    """Those of the given students; all, if none are given. Raises GradingError for an unknown one."""
    known = [submission.student for submission in submissions]
    for student in sorted(students.difference(known)):
        close = difflib.get_close_matches(student, known, 1)
        hint = f" Did you mean {close[0]}?" if close else f" Submissions are there from {len(known)} others."
        raise GradingError(f"Student {student!r} has not handed in this assignment.{hint}")
    return [submission for submission in submissions if not students or submission.student in students]


def jobs_of(course: Course, submission: Submission) -> list[Job]:
    """The notebooks of a submission, with the cells that are to be run: none in one that cannot be read."""
    try:
        found = [(prepared, cells_of(prepared)) for prepared in course.read(submission)]
    except SubmissionError as error:
        return [Job(submission, None, [], failure=str(error))]
    return [Job(submission, prepared, cells, len(found) - 1) for prepared, cells in found]


def cells_of(prepared: Prepared) -> list[dict]:
    """What is to be run of a notebook. Raises SubmissionError."""
    try:
        return [] if problem_of(prepared.notebook) else plan(prepared.notebook)
    except Exception as error:  # whatever it is, the others are still to be graded
        raise SubmissionError(
            f"its cells could not be put together: {type(error).__name__}: {error}"
        ) from error


def run_all(pool: Pool, jobs: Iterable[Job], settings: dict[str, Any]) -> Iterator[Job]:
    """Run all jobs; gives each when it is done, those that noise left undecided last."""

    def start(job: Job, **how: Any) -> None:
        pool.start(job, job.cells, files=extra_files(job.submission.folder), **how, **settings)

    todo = iter(jobs)
    again: list[Job] = []
    running = 0
    while True:
        while running < 2 * pool.workers and (new := next(todo, None)):
            if not new.cells:
                yield new
                continue
            start(new, races="now")
            running += 1
        if not running:
            break
        job, result = pool.wait()
        running -= 1
        if isinstance(result, str):
            job.failure = result
            yield job
            continue
        job.executed = result
        if result.undecided:
            again.append(job)
        else:
            yield job
    for job in again:  # nothing else runs now
        assert job.executed  # it ran
        start(job, races="again", only=job.executed.undecided)
        _, result = pool.wait()
        if isinstance(result, Executed):  # else what is undecided is for the instructor to decide
            job.executed = job.executed.merged(result)
        yield job


def by_submission(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Collect the jobs of each submission until all its notebooks are there."""
    incomplete: dict[Path, list[Job]] = {}
    for job in jobs:
        together = incomplete.setdefault(job.submission.folder, [])
        together.append(job)
        if len(together) > job.others:
            yield incomplete.pop(job.submission.folder)


def finish(course: Course, jobs: list[Job], summary: Summary) -> None:
    """Write the grades of one submission."""
    student = jobs[0].submission.student
    for failure in (job.failure for job in jobs if job.failure):
        summary.failed[student] = failure
        return
    try:
        course.save(student, [(job.prepared, job.executed) for job in jobs if job.prepared])
    except SubmissionError as error:
        summary.failed[student] = str(error)
        return
    summary.graded.append(student)
    for job in jobs:
        if job.executed:
            names = {cell["index"]: cell["grade_id"] for cell in job.cells}
            summary.undecided += [(student, names[index]) for index in job.executed.undecided]
            if job.executed.events:
                summary.suspicious.append(student)


def tell(course: Course, summary: Summary) -> str:
    """What the instructor reads at the end."""
    lines = [
        f"{len(summary.graded)} graded, {len(summary.skipped)} skipped (graded before), "
        f"{len(summary.failed)} failed, in {length(summary.seconds)}"
    ]
    if summary.graded:
        mean, most = course.mean()
        lines.append(f"mean of all who handed in: {mean:.2f} of {most:g} points")
        lines.append(f"undecided races: {len(summary.undecided)} (marked for manual grading)")
        lines += few([f"  {student}: {cell}" for student, cell in summary.undecided])
        lines.append(f"submissions with suspicious events: {len(summary.suspicious)}")
        lines += few([f"  {student}" for student in summary.suspicious])
    elif not summary.failed:
        lines.append("Nothing was left to do. --force grades them again.")
    lines += [f"failed: {student}: {sentence}" for student, sentence in summary.failed.items()]
    lines.append(f"For a page with all of it: python -m autograder report {course.assignment}")
    return "\n".join(lines)


def few(lines: list[str], most: int = 10) -> list[str]:
    """The first of many lines; the report has all."""
    return lines[:most] + ([f"  and {len(lines) - most} more"] if len(lines) > most else [])
