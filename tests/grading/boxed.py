"""Cells as a sandbox takes them."""

from autograder.sandbox import PlannedCell


def cells(*cells: tuple[str, str], exercise: str = "", names: list[str] | None = None) -> list[PlannedCell]:
    """Each of an exercise of its own where none is given; tests find these names of the student's, or all."""
    return [
        PlannedCell(
            i, role, source, f"t{i}", exercise or f"e{i}", names if names is None or role == "test" else []
        )
        for i, (role, source) in enumerate(cells)
    ]
