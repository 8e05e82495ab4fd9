"""How every command of the course is called: its help, its options, its errors, its exit status.

Nothing but Python is imported, so that ``--help`` is quick: a command imports what it needs when it runs.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

PROGRAM = "python -m autograder"
# Command -> the module that has it (as ``main``, if no other name is given), and what it does.
COMMANDS = {
    "race": ("judge.race_command", "judge whether a function gives what another gives, and is fast enough"),
    "notebooks": ("authoring.course_commands:notebooks", "build the notebooks from the percent scripts"),
    "record": ("authoring.course_commands:record", "record this machine's timings"),
    "new-chapter": ("authoring.course_commands:chapter", "start a chapter with its exercises"),
    "rehearsal": ("authoring.scratch_course:rehearsal", "take a pretend class through the whole of nbgrader"),
    "grade": ("class_grading.class_commands:grade", "grade a class, in parallel"),
    "again": ("class_grading.class_commands:again", "judge one exercise again, after a dispute"),
    "late": ("class_grading.class_commands:late", "count lateness anew for a graded class"),
    "report": ("class_grading.class_commands:report", "write a page about a graded class"),
    "watch": ("extras.watch", "grade what is handed in, as soon as it is there, until Ctrl-C"),
    "term": ("extras.term", "write a page about the whole term, and one for each student"),
    "similar": ("extras.similar", "write a page about answers that look alike: a hint, never a penalty"),
    "fastest": ("extras.fastest", "write a page for the class about the fastest answers, without names"),
    "gradescope": ("extras.gradescope", "make an archive that grades on Gradescope"),
}


class CommandError(Exception):
    """What was asked for cannot be done: ``words`` say why and what to do. ``again``: then to start again."""

    def __init__(self, words: str, *, again: bool = False) -> None:
        super().__init__(f"{words} Then start again." if again else words)
        self.words = words


class Misuse(Exception):
    """The options of a command contradict each other."""


Option = tuple[tuple[str, ...], dict[str, Any]]


def option(*names: str, **settings: Any) -> Option:
    """An option, or an argument, as ``ArgumentParser.add_argument`` takes it."""
    return names, settings


ASSIGNMENT = option("assignment", metavar="ASSIGNMENT")
DB = option("--db", metavar="URL", help="the gradebook (default: the one in nbgrader_config.py)")


class _Parser(argparse.ArgumentParser):
    misused = 2  # the exit status

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(self.misused, f"{self.prog}: error: {message}\n")


Command = Callable[..., int]  # of the words that were typed (by default sys.argv); gives the exit status


def command(
    name: str, *options: Option, more: str = "", stopped: str = "Stopped.", failed: int | None = None
) -> Callable[[Callable[..., int | None]], Command]:
    """Makes one of the COMMANDS of a function, which gets its options by their names.

    What it returns is the status, and nothing is 0. Of a CommandError and an OSError the words are told, and
    the status is 1; of Ctrl-C ``stopped`` is, and the status is 130. A misuse is told as argparse does, with
    2. ``failed`` takes the place of this 1 and 2 where they say something else.
    """
    about = COMMANDS[name][1]
    parser = _Parser(prog=f"{PROGRAM} {name}", description=f"{about[0].upper()}{about[1:]}. {more}")
    parser.misused = failed or 2
    for names, settings in options:
        parser.add_argument(*names, **settings)

    def made(function: Callable[..., int | None]) -> Command:
        def run(argv: Sequence[str] | None = None) -> int:
            options = vars(parser.parse_args(argv))
            try:
                return reported(lambda: function(**options), stopped, failed or 1)
            except Misuse as error:
                parser.error(str(error))

        return run

    return made


def reported(act: Callable[[], int | None], stopped: str = "Stopped.", failed: int = 1) -> int:
    """Do something; what goes wrong in a known way is told in a sentence. Gives the exit status."""
    # SQLAlchemy finds fault with what nbgrader does at every new submission.
    warnings.filterwarnings("ignore", module=r"nbgrader\.")
    try:
        return act() or 0
    except (CommandError, OSError, ImportError) as error:
        if isinstance(error, ImportError) and error.name != "autograder.sandbox":  # which says what it needs
            raise
        print(f"error: {error}", file=sys.stderr)
        return failed
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        return 130


def extra(name: str) -> ModuleType:
    """One of the extras, found by its name. Raises CommandError where its folder is not there."""
    module = f"autograder.extras.{name}"
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in ("autograder.extras", module):
            raise
        why = f"{name} was left out of this installation: there is no autograder/extras/{name}."
        raise CommandError(why) from None
