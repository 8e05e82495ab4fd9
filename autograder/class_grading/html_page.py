"""Pages about a class: HTML with nothing to load from elsewhere, and the pictures in them.

A page's template lies beside the module that works out what it shows, and extends ``base.html.j2``.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..files import write_whole
from ..show import INK
from .course import Course
from .gradebook import GradingError
from .status import length

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALE = "#D9D9D9"


def render(template: Path, **values: object) -> str:
    """A page as HTML."""
    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"ink": INK, "pale": PALE, "as_length": length}
    return environment.get_template(template.name).render(**values)


def write_page(path: Path, html: str) -> None:
    """Put a page into a file. Raises GradingError where that is not possible."""
    try:
        write_whole(path, html)
    except OSError as error:
        raise GradingError(
            f"The page cannot be written: {error}. Make room, or give this account the right to write there."
        ) from None


def publish(
    page: Callable[[Course], str],
    assignment: str,
    db_url: str | None,
    ending: str = "",
    to: Path | None = None,
) -> None:
    """Make a page about an assignment, by default in the course's folder, and print where it is.

    Raises GradingError where that is not possible.
    """
    with Course(assignment, db_url, write=False) as course:
        path = to or course.root / "reports" / f"{assignment}{ending}.html"
        write_page(path, page(course))
    print(path)


def figure_of(height: float) -> tuple[Figure, Axes]:
    """A figure for a page, ``height`` inches high, and what to draw in."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(4.4, height), layout="constrained")
    axes = figure.add_subplot()
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def picture_of(figure: Figure, alternative: str) -> Markup:
    """A figure as an image that the page holds whole, with its facts as alternative text."""
    import matplotlib

    image = io.BytesIO()
    with matplotlib.rc_context(
        {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "report"}
    ):
        figure.savefig(image, format="svg", metadata={"Date": None})
    data = base64.b64encode(image.getvalue()).decode()
    return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">').format(alternative, data)
