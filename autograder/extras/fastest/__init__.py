"""A page about the fastest answers: the command ``python -m autograder fastest``."""

from ...command_line import ASSIGNMENT, DB, command


@command(
    "fastest",
    "Write a page for the class about the fastest answers. It names nobody, and shows the code of those "
    "alone who have written '# you may show this' into the solution's cell.",
    ASSIGNMENT,
    DB,
)
def main(assignment: str, db: str | None) -> None:
    from ...class_grading.html_page import publish
    from .fastest_page import page

    publish(page, assignment, db, "_fastest")
