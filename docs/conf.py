"""The website, as `make site` builds it.

Its source folder is the whole repository, so that links between pages lead the same way as they do there.
"""

from __future__ import annotations

import json
import re
import sys
from html import escape, unescape
from itertools import takewhile
from pathlib import Path
from string import Template

import nbformat
from sphinx.application import Sphinx

from autograder.teaching.chart import GUESS
from autograder.teaching.guess import FAR, LATER, WITHIN

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = SETTINGS["project"]["urls"]["Repository"]

project = "Fast PyTorch, measured"
extensions = ["myst_nb"]
include_patterns = ["index.md", "CONTRIBUTING.md", "docs/*.md", "course/*.ipynb", "exercises/*/*.ipynb"]
exclude_patterns = [".venv", "build"]
templates_path = ["_templates"]

nb_execution_mode = "off"  # the notebooks hold their outputs
nb_render_markdown_format = "myst"
suppress_warnings = ["mystnb.unknown_mime_type"]  # what cells found out, for the page of claims
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "sphinx_book_theme"
html_title = project
html_logo = html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
RULE = {"within": WITHIN, "beyond": FAR, "colour": GUESS}
html_js_files = ["site.js", ("guess.js", {"data-rule": json.dumps(RULE)})]
html_copy_source = False
html_use_index = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": project},
    "navbar_persistent": [],
    "footer_content_items": [],
    "repository_url": REPOSITORY,
    "repository_branch": "main",
    "use_repository_button": True,
    "use_download_button": False,
    "launch_buttons": {
        "binderhub_url": "https://mybinder.org",
        "colab_url": "https://colab.research.google.com",
        "notebook_interface": "jupyterlab",
    },
}


def chapters() -> str:
    """The map in the course's index without the reader's progress; its links as the front page needs them."""
    index = nbformat.read(ROOT / "course" / "index.ipynb", as_version=4)
    shown = [output.get("data", {}) for cell in index.cells for output in cell.get("outputs", ())]
    table = next(data["text/markdown"] for data in shown if "| chapter |" in data.get("text/markdown", ""))
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    kept = [column for column, name in enumerate(rows[0]) if name.strip() != "you passed"]
    table = "\n".join(f"|{'|'.join(row[column] for column in kept)}|" for row in rows)
    return table.replace("](", "](course/").replace("](course/../", "](")


CAUSES = ("calls", "bytes", "arithmetic")
SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
PART = re.compile(rf"({'|'.join(CAUSES)}) ([\d.,]+) ([nµm]?s)")
PREDICTED = re.compile(r"Predicted from prices, [^<]*?× \(([^;<]*); ([^<]*)\)\. Measured")
ROW = re.compile(f"<tr>{'<td[^>]*>(.*?)</td>' * 5}</tr>")


def mostly(html: str) -> str:
    """What most of a predicted difference is for."""
    first, last = (
        {of: float(number.replace(",", "")) * SECONDS[unit] for of, number, unit in PART.findall(bill)}
        for bill in PREDICTED.search(html).groups()
    )
    return max(CAUSES, key=lambda of: abs(first.get(of, 0.0) - last.get(of, 0.0)))


def asked(html: str, question: str) -> str:
    """A fold with a comparison, with what guess.js needs to ask for its ratio and to judge a guess; or for
    its cause, where the question does.
    """
    rows = [[unescape(cell) for cell in row] for row in ROW.findall(html)]
    if not (rows and LATER in html):
        return html
    (where, first, *_), *others = rows
    *_, (_, last, _, ratio, between) = [row for row in takewhile(lambda row: not row[0], others) if row[4]]
    data = {
        "title": unescape(re.search("<caption[^>]*>(.*?)</caption>", html)[1]),
        "device": where.partition(": ")[2].partition(",")[0],
        "first": first,
        "last": last,
        "truths": [float(ratio.rstrip("×").replace(",", ""))],
        "whole": [False],
        "range": between,
    }
    if '"arithmetic"' in question:
        data |= {"truths": [mostly(html)], "choices": CAUSES}
    return html.replace("<details", f'<details data-asked="{escape(json.dumps(data))}"', 1)


def fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the map and the repository's address into the front page, and questions into chapters."""
    if docname == app.config.root_doc:
        source[0] = Template(source[0]).substitute(chapters=chapters(), repository=REPOSITORY)
    elif docname.startswith("course/"):
        notebook = nbformat.reads(source[0], as_version=4)
        question = ""
        for cell in notebook.cells:
            question = cell.source if cell.cell_type == "markdown" else question
            for output in cell.get("outputs", ()):
                if html := output.get("data", {}).get("text/html"):
                    output["data"]["text/html"] = asked(html, question)
        source[0] = nbformat.writes(notebook)


def setup(app: Sphinx) -> None:
    app.connect("source-read", fill_in)
