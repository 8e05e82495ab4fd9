"""Text, tables and pictures in a notebook, and as plain text where there is none."""

import difflib
import io
import textwrap
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Sequence[str]]

# Okabe and Ito's palette: distinguishable with every common kind of colour blindness.
HERE, RECORDED, GUESS, LIMIT, INK = "#0072B2", "#E69F00", "#CC79A7", "#009E73", "#333333"


def show(text: str, html: str, data: Mapping[str, object] = {}) -> None:
    """Display ``html``, and further ``data`` of its MIME bundle, in a notebook; print ``text`` elsewhere."""
    _display(text, {"text/html": html, **data})


def picture(figure: "Figure", alternative: str) -> None:
    """Display a figure of matplotlib in a notebook; ``alternative`` says in words what can be seen there."""
    if in_notebook():
        show(alternative, picture_html(figure, alternative))


def picture_html(figure: "Figure", alternative: str) -> str:
    """A figure as HTML with a PNG in it: JupyterLab gives image/png no alternative text."""
    png = io.BytesIO()
    figure.savefig(png, format="png", facecolor="white", metadata={"Software": None})
    source = f"data:image/png;base64,{b64encode(png.getvalue()).decode()}"
    return f'<img alt="{escape(alternative)}" style="max-width:100%;height:auto" src="{source}">'


def show_markdown(text: str) -> None:
    _display(text, {"text/markdown": text})


def _display(text: str, others: dict[str, Any]) -> None:
    if not in_notebook():
        print(text)
        return
    from IPython.display import display

    display({"text/plain": text, **others}, raw=True)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code."""
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def visible(text: str) -> str:
    """The text with escapes for all characters that do not show, or that change how others show.

    Line ends and tabs stay. A lone surrogate, which no file can hold, becomes the replacement character.
    """
    return "".join(char if char.isprintable() else _visible(char) for char in text)


def _visible(char: str) -> str:
    kind = unicodedata.category(char)
    if char in "\n\t" or kind == "Zs":
        return char
    return "\N{REPLACEMENT CHARACTER}" if kind == "Cs" else char.encode("unicode_escape").decode()


def first_of(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def did_you_mean(name: str, there: Iterable[str], otherwise: str) -> str:
    """A question whether the nearest of the names was meant; ``otherwise``, where none is near."""
    close = difflib.get_close_matches(name, there, 1)
    return f"Did you mean {close[0]}?" if close else otherwise


def table_text(header: Sequence[str], rows: Rows, width: int = 60) -> str:
    """A table in plain text; long cells are folded at ``width`` characters."""
    folded = [
        [[part for line in cell.split("\n") for part in textwrap.wrap(line, width) or [""]] for cell in row]
        for row in (header, *rows)
    ]
    widths = [max(len(part) for row in folded for part in row[i]) for i in range(len(header))]
    folded.insert(1, [["-" * width] for width in widths])
    lines = (parts for row in folded for parts in zip_longest(*row, fillvalue=""))
    return "\n".join("  ".join(map(str.ljust, parts, widths)).rstrip() for parts in lines)


def table_markdown(header: Sequence[str], rows: Rows) -> str:
    """The same table as Markdown; cells may hold links."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def table_html(header: Sequence[str], rows: Rows, caption: str = "") -> str:
    """The same table as HTML, with a caption and column headers that a screen reader can use."""
    left = 'style="text-align:left"'
    head = "".join(f'<th scope="col" {left}>{escape(cell)}</th>' for cell in header)
    lines = [[escape(cell).replace("\n", "<br>") for cell in row] for row in rows]
    body = "".join(f"<tr>{''.join(f'<td {left}>{cell}</td>' for cell in row)}</tr>" for row in lines)
    top = f'<caption style="text-align:left;font-weight:bold">{escape(caption)}</caption>' if caption else ""
    return f"<table>{top}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
