"""The command ``python -m autograder grade``."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from ..sandbox import Sandbox, SandboxError
from ..sandbox.racing.machine_lock import cores
from .lasting_pool import OwnSandboxes
from .pool import LocalPool, Pool, PoolError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m autograder grade", description="Grade a class in parallel, in the course's folder."
    )
    parser.add_argument("assignment", metavar="ASSIGNMENT")
    parser.add_argument("--student", nargs="+", default=[], metavar="ID", help="only these")
    parser.add_argument("--force", action="store_true", help="also those that are graded already")
    add_pool_options(parser)
    return parser


def add_pool_options(parser: argparse.ArgumentParser) -> None:
    """The options that say where submissions run, and in which gradebook the grades go."""
    parser.add_argument("--workers", type=int, metavar="N", help="workers here (default: one a core)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="use this Dask cluster, as in tcp://host:8786")
    parser.add_argument("--db", metavar="URL", help="the gradebook (default: the one in nbgrader_config.py)")


def check_pool_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the command, with a sentence, where these options contradict each other."""
    if options.workers is not None and options.workers < 1:
        parser.error("--workers must be 1 or more")
    if options.workers and options.scheduler:
        parser.error("--workers is for this machine; a scheduler has its own")


def connector(options: argparse.Namespace, here: Callable[..., Pool]) -> Callable[[bool], Pool]:
    """What makes the pool that these options ask for; ``here`` makes the one of this machine."""

    def connect(unconfined: bool) -> Pool:
        if options.scheduler:
            from .dask_pool import DaskPool

            return DaskPool(options.scheduler, unconfined=unconfined)
        return here(unconfined=unconfined)

    return connect


def main(argv: list[str] | None = None) -> int:
    """Grade; 0 if every submission is graded at the end, else 1 (130 if stopped by hand)."""
    parser = _parser()
    options = parser.parse_args(argv)
    check_pool_options(parser, options)
    try:
        with ExitStack() as ending:
            stop_if_asked = ending.enter_context(interrupts())
            number = 0 if options.scheduler else options.workers or len(cores())
            sandboxes = [ending.enter_context(Sandbox()) for _ in range(number)]
            for sandbox in sandboxes:  # torch is loaded there while nbgrader is loaded here
                if not sandbox.refusal:
                    sandbox.begin()
            return _grade(options, sandboxes, stop_if_asked)
    except SandboxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        return 130


@contextmanager
def interrupts(*more: signal.Signals) -> Iterator[Callable[[], None]]:
    """Gives a function that raises KeyboardInterrupt if Ctrl-C was pressed, or one of ``more`` came.

    It has raised it where it came, too; but where Python runs callbacks of a library, that is ignored.
    """
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    def stop_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    before = {one: signal.signal(one, ask) for one in (signal.SIGINT, *more)}
    try:
        yield stop_if_asked
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _here(sandboxes: list[Sandbox], *, unconfined: bool) -> Pool:
    """The pool of this machine: these sandboxes, or others where the settings let them run without walls."""
    if unconfined and sandboxes[0].refusal:
        return OwnSandboxes(len(sandboxes), unconfined=True)
    return LocalPool(sandboxes)


def _grade(options: argparse.Namespace, sandboxes: list[Sandbox], stop_if_asked: Callable[[], None]) -> int:
    from sqlalchemy.exc import SAWarning

    from .course import Course, GradingError
    from .engine import grade, tell

    gc.freeze()  # the collector need not look at what was loaded, again and again
    warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, at every new submission

    try:
        with Course(options.assignment, options.db) as course, course.locked():
            before = course.record()
            try:
                summary = grade(
                    course,
                    students=options.student,
                    force=options.force,
                    connect=connector(options, partial(_here, sandboxes)),
                    between=stop_if_asked,
                )
            except BaseException:
                if (now := course.record()) != before:
                    print(f"{len(now['graded'])} were graded in this run, {now['left']} are left.")
                raise
            print(tell(course, summary))
    except (GradingError, PoolError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 1 if summary.failed else 0
