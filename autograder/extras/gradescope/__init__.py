"""Grading on Gradescope: the command ``python -m autograder gradescope``, which the container calls, too."""

from pathlib import Path

from ...command_line import ASSIGNMENT, command, option


@command(
    "gradescope",
    ASSIGNMENT,
    option(
        "--without-sandbox",
        action="store_true",
        help="grade where bubblewrap does not work, too (docs/instructors.md says what that means)",
    ),
    option("--grade", type=Path, metavar="ROOT", help="in the container: grade what was handed in there"),
)
def main(assignment: str, without_sandbox: bool, grade: Path | None) -> None:
    if grade:
        from .in_container import write_results

        write_results(grade.resolve(), assignment, without_sandbox)
        return
    from ...authoring.sources import find_root
    from .archive import make_archive

    made = make_archive(find_root(), assignment, without_sandbox=without_sandbox)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB. It has the hidden tests: keep it to yourself.")
