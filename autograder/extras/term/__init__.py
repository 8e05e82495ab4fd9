"""Pages about the whole term: the command ``python -m autograder term``."""

from ...command_line import DB, command


@command("term", DB)
def main(db: str | None) -> None:
    from .term_pages import read_term, write_pages

    term, root = read_term(db)
    first, *students = write_pages(term, root / "reports")
    print(f"{first}, and a page for each of {len(students)} students in {first.parent / 'students'}")
