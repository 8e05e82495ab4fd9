"""A page about the fastest answers: the command ``python -m autograder fastest``."""

from ...command_line import ASSIGNMENT, DB, command


@command("fastest", ASSIGNMENT, DB)
def main(assignment: str, db: str | None) -> None:
    from ...class_grading.html_page import publish
    from .fastest_page import page

    publish(page, assignment, db, "_fastest")
