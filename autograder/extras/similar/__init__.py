"""A page about answers that look alike: the command ``python -m autograder similar``."""

from ...command_line import ASSIGNMENT, DB, command


@command("similar", ASSIGNMENT, DB)
def main(assignment: str, db: str | None) -> None:
    from ...class_grading.html_page import publish
    from .alike import page

    publish(page, assignment, db, "_similar")
