"""A page about answers that look alike: the command ``python -m autograder similar``."""

from __future__ import annotations

from ...command_line import ASSIGNMENT, DB, CommandError, command


@command(
    "similar",
    "Write a page about answers that look alike: a hint for a person, and never a penalty.",
    ASSIGNMENT,
    DB,
)
def main(assignment: str, db: str | None) -> None:
    from ...class_grading.course import Course
    from ...class_grading.html_page import write_page
    from .alike import look_alikes_page, read_handed_in

    with Course(assignment, db, write=False) as course:
        path = course.root / "reports" / f"{assignment}_similar.html"
        try:
            write_page(path, look_alikes_page(assignment, read_handed_in(course)))
        except ModuleNotFoundError as error:
            if error.name != "copydetect":
                raise
            raise CommandError('copydetect is not installed: pip install "autograder[similar]"') from None
    print(path)
