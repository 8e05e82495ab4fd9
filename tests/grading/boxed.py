"""Cells as a sandbox takes them."""


def cells(*cells: tuple[str, str], exercise: str = "", names: list[str] | None = None) -> list[dict]:
    """Each of an exercise of its own where none is given; tests find these names of the student's, or all."""
    return [
        {"index": i, "role": role, "source": source, "grade_id": f"t{i}", "exercise": exercise or f"e{i}"}
        | ({} if names is None else {"names": names if role == "test" else []})
        for i, (role, source) in enumerate(cells)
    ]
