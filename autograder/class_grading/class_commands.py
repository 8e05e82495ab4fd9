"""The commands about a class: ``grade``, ``again``, ``late``, ``report``; each has a module for its work."""

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command_line import ASSIGNMENT, DB, Misuse, command, extra, option

if TYPE_CHECKING:
    from .pool import Pool

# Where submissions run, and in which gradebook the grades go.
WHERE = (
    option("--workers", type=int, metavar="N", help="workers here (default: one a core)"),
    option("--scheduler", metavar="ADDRESS", help="use this Dask cluster, as in tcp://host:8786"),
    DB,
)


def connector(ending: ExitStack, workers: int | None, scheduler: str | None) -> Callable[[bool], "Pool"]:
    """What makes the pool that these options ask for. Its sandboxes load torch from now on, until ``ending``.

    Raises Misuse; and CommandError without the extra ``dask``, if that is asked for.
    """
    from ..sandbox.racing.machine_lock import cores
    from . import pool

    if workers is not None and workers < 1:
        raise Misuse("--workers must be 1 or more")
    if workers and scheduler:
        raise Misuse("--workers is for this machine; a scheduler has its own")
    if scheduler:
        return partial(extra("dask").DaskPool, scheduler)
    number = workers or len(cores())
    begun = [ending.enter_context(sandbox) for sandbox in pool.begun(number)]

    def connect(unconfined: bool) -> "Pool":
        sandboxes = begun.copy()
        begun.clear()
        if not sandboxes or (unconfined and sandboxes[0].refusal):  # there was a pool, or it has no walls
            sandboxes = pool.begun(number, unconfined=unconfined)
        return pool.LocalPool(sandboxes)

    return connect


@contextmanager
def interrupts(*more: signal.Signals) -> Iterator[Callable[[], None]]:
    """Gives a function that raises KeyboardInterrupt if Ctrl-C was pressed, or one of ``more`` came.

    It has raised it where it came, too; but where Python runs callbacks of a library, that is ignored.
    """
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    def stop_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    with ExitStack() as ending:
        for one in (signal.SIGINT, *more):
            ending.callback(signal.signal, one, signal.signal(one, ask))
        yield stop_if_asked


@command(
    "grade",
    ASSIGNMENT,
    option("--student", nargs="+", default=[], metavar="ID", help="only these"),
    option("--force", action="store_true", help="also those that are graded already"),
    *WHERE,
    stopped="Stopped. The same command goes on from here.",
)
def grade(assignment: str, student: list[str], force: bool, db: str | None, **where: Any) -> int:
    with ExitStack() as ending:
        stop_if_asked = ending.enter_context(interrupts())
        connect = connector(ending, **where)
        from . import engine  # while torch is loaded elsewhere
        from .course import Course

        gc.freeze()  # the collector need not look at what was loaded, again and again
        course = ending.enter_context(Course(assignment, db))
        ending.enter_context(course.locked())
        summary = engine.grade(
            course,
            students=student,
            force=force,
            connect=lambda unconfined: ending.enter_context(closing(connect(unconfined))),
            between=stop_if_asked,
        )
        print(engine.tell(course, summary))
    return 1 if summary.failed else 0


@command(
    "again",
    ASSIGNMENT,
    option("--student", nargs="+", required=True, metavar="ID", help="of these"),
    option("--exercise", required=True, metavar="NAME", help="this one, as in one_hot"),
    option(
        "--keep",
        choices=("better", "new"),
        help="let the new verdict count, if it gives more points or in any case (default: the old one does)",
    ),
    DB,
    stopped="Stopped. What is shown above is done, and nothing else.",
)
def again(assignment: str, student: list[str], exercise: str, keep: str | None, db: str | None) -> int:
    from . import pool
    from .again import judge_again, known_exercise
    from .course import Course, SubmissionError
    from .engine import choose

    changed, failed = 0, 0
    with Course(assignment, db) as course, course.locked():
        chosen = choose(course.submissions(), set(student))
        exercise = known_exercise(course, exercise)
        with closing(pool.LocalPool(pool.begun(1, unconfined=course.without_sandbox))) as made:
            for warning in made.warnings:
                print(f"warning: {warning}")
            for submission in chosen:
                try:
                    text, new = judge_again(course, submission, exercise, made, keep)
                    changed += new
                    print(text)
                except SubmissionError as error:
                    failed += 1
                    print(f"error: {submission.student}: {error}", file=sys.stderr)
    if changed:
        print(f"The new verdict counts for {changed} of {len(chosen)}. Make and release their feedback anew.")
    else:
        print("No points were changed.")
    if not keep:
        print("To judge once more, and let the better verdict count: the same with --keep better")
    return 1 if failed else 0


@command(
    "late",
    ASSIGNMENT,
    option("--apply", action="store_true", help="change the grades; otherwise only list the changes"),
    DB,
)
def late(assignment: str, apply: bool, db: str | None) -> None:
    from ..show import table_text
    from .again import recount
    from .course import Course

    with Course(assignment, db) as course, course.locked():
        found = recount(course, apply=apply)
    if found:
        print(table_text(("student", "hours late", "penalty so far", "by the table"), found))
    then = "changed. Feedback pages are to be made and released anew."
    print(
        f"{len(found)} penalties {then if apply else 'would change. To change them: the same with --apply'}"
    )


@command(
    "report",
    ASSIGNMENT,
    option("--output", type=Path, metavar="FILE", help="default: reports/ASSIGNMENT.html"),
    DB,
)
def report(assignment: str, output: Path | None, db: str | None) -> None:
    from .class_report import page
    from .html_page import publish
    from .results import read_graded

    publish(lambda course: page(read_graded(course)), assignment, db, to=output)
