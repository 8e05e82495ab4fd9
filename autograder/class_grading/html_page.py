"""Pages about a class: HTML with nothing to load from elsewhere.

A page's template lies beside the module that works out what it shows, and extends ``base.html.j2``.
"""

from collections.abc import Callable
from math import exp
from pathlib import Path
from statistics import mean, median

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..files import write_whole
from ..measuring.units import times
from .course import Course
from .status import length


def render(template: Path, **values: object) -> str:
    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=lambda name: not str(name).endswith(".txt.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"as_length": length, "exp": exp, "mean": mean, "median": median, "times": times}
    return environment.get_template(template.name).render(**values)


def publish(
    page: Callable[[Course], str], assignment: str, db: str | None, ending: str = "", to: Path | None = None
) -> None:
    """Make a page about an assignment, by default in the course's folder, and print where it is."""
    with Course(assignment, db, write=False) as course:
        path = to or course.root / "reports" / f"{assignment}{ending}.html"
        write_whole(path, page(course))
    print(path)
