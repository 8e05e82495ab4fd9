"""A page about answers that look alike: the command ``python -m autograder similar``."""

from ...command_line import ASSIGNMENT, DB, CommandError, command


@command("similar", ASSIGNMENT, DB)
def main(assignment: str, db: str | None) -> None:
    from ...class_grading.html_page import publish

    try:
        from .alike import page
    except ModuleNotFoundError:
        raise CommandError('copydetect is not installed: pip install "autograder[similar]"') from None
    publish(page, assignment, db, "_similar")
