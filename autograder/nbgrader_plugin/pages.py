"""nbgrader's two pages about a submission, feedback and formgrader, without anything that acts by itself.

Students' pages are without the hidden tests; the autograded notebooks keep them.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import escape
from time import perf_counter
from typing import Any

from markupsafe import Markup
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.ansi import strip_ansi
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.utils.base import NbConvertBase
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import List, Unicode

from ..judging.outcome import MIME, WARNED
from ..roles import exercise_of, fetches_course, is_test, nbgrader_data
from . import patches
from .markdown import TooMuch, as_written, safe_card, safe_html, safe_markdown, text_size
from .points import as_text, outcomes

OF_A_TEST = {"error": "Error while the test ran", "execute_result": "Points"}
MOST_MARKDOWN = 100_000  # characters in all cells of a page; the rest is shown as it was written
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
GRADE_ID = re.compile(r"[\w-]+")
NBGRADER_DATA = ("grade_id", "grade", "solution", "task", "locked", "points")
# What of the formgrader's own entries a student or a file system may have named.
NAMES = ("assignment_id", "notebook_id", "student", "first_name", "last_name", "notebook_path")

REMARK = "# The hidden tests are not shown, nor what your code wrote while they ran."
# Such a line in a card, as HTML and as text.
WARNING = re.compile(rf"<div[^<>]*>{re.escape(WARNED)}[^<]*</div>|\n  {re.escape(WARNED)}.*")
MOST_COLOURED = 5000  # characters of a cell; longer ones stay without colours
MOST_SECONDS = 2.0  # after so long, all other cells of a page do


class SubmissionPage(HTMLExporter):
    """A page about a submission; ``kind`` is the name of nbgrader's template."""

    kind: str

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            template_name=self.kind,
            extra_template_basedirs=[str(patches.TEMPLATES)],
            extra_loaders=[patches.templates(self.kind)],
            default_preprocessors=[],  # some obey the tags of cells, others the first line of their source
            preprocessors=[harmless],
            **settings,
        )

    def default_filters(self) -> Iterator[tuple[str, Any]]:
        """nbconvert's filters, with other ones for Markdown, and two for how the page begins."""
        yield from super().default_filters()
        # A cell is HTML already; a comment is Markdown.
        yield "markdown2html", lambda text: text if isinstance(text, Markup) else safe_markdown(text)
        yield "strip_files_prefix", lambda html: html  # no link leads to a file
        yield "by_exercise", by_exercise
        yield "to_mend", to_mend

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[Any, dict[str, Any]]:
        nb.metadata = NotebookNode()  # with a language, a title, widgets
        resources = dict(resources or {})
        resources |= {name: escape(str(resources[name])) for name in NAMES if resources.get(name)}
        html, resources = super().from_notebook_node(nb, resources, **options)
        return html.encode("utf-8", "replace").decode(), resources


class FeedbackPage(SubmissionPage):
    """The page that a student gets."""

    kind = "feedback"

    def from_notebook_node(self, nb: NotebookNode, *rest: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
        nb.cells = [cell for cell in nb.cells if not fetches_course(cell)]
        return super().from_notebook_node(nb, *rest, **options)


class FormgraderPage(SubmissionPage):
    """The page on which an instructor looks at a submission, changes points and writes comments."""

    kind = "formgrade"


def by_exercise(nb: NotebookNode) -> dict[str, list[dict[str, Any]]]:
    """nbgrader's notes on graded cells and on answers with a comment, in order, by exercise (or by cell)."""
    graded = [data for cell in nb.cells if "grade_id" in (data := nbgrader_data(cell))]
    solutions = [data["grade_id"] for data in graded if data.get("solution")]
    found: dict[str, list[dict[str, Any]]] = {}
    for data in graded:
        name = data["grade_id"]
        exercise = name if name in solutions else exercise_of(name, solutions) or name
        if data.get("grade") or data.get("comment"):
            found.setdefault(exercise, []).append(data)
    return found


def to_mend(nb: NotebookNode) -> list[tuple[dict[str, Any], str]]:
    """The three tests that cost most points, with what their cards say."""
    found = []
    for cell in filter(is_test, nb.cells):
        said = [one["message"] for one in outcomes(cell) if one["outcome"] != "passed"]
        found.append((nbgrader_data(cell), said[0] if said else "the test gave no result."))
    lost = lambda one: one[0].get("points", 0) - (one[0].get("score") or 0)
    return sorted(filter(lambda one: lost(one) > 0, found), key=lost, reverse=True)[:3]


def harmless(nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
    """A preprocessor that makes every cell anew of what a page may show; raw cells are left out."""
    left = MOST_MARKDOWN
    cells = []
    for number, cell in enumerate(nb.cells):
        made = NotebookNode(id=str(number), cell_type=cell.cell_type, metadata=NotebookNode())
        data = nbgrader_data(cell)
        if GRADE_ID.fullmatch(str(data.get("grade_id"))):
            made.metadata.nbgrader = NotebookNode({key: data[key] for key in NBGRADER_DATA if key in data})
        if cell.cell_type == "markdown":
            left -= text_size(text := cell.source)
            made.source = safe_markdown(text, cell.get("attachments")) if left >= 0 else as_written(text)
        elif cell.cell_type == "code":
            count = cell.get("execution_count")
            made.execution_count = count if isinstance(count, int) else None
            made.source = cell.source
            made.outputs = [plain for output in cell.outputs if (plain := _plain(output, is_test(cell)))]
        else:
            continue
        cells.append(made)
    nb.cells = cells
    return nb, resources


def _plain(output: NotebookNode, test: bool) -> NotebookNode | None:
    """An output with what a page may show, and the ``label`` of its box; None where that is nothing."""
    made = NotebookNode(output_type=output.output_type, metadata=NotebookNode(), label="Output of this cell")
    if test:
        made.label = OF_A_TEST.get(output.output_type, "Printed while the test ran")
    if output.output_type == "stream":
        made.update(name="stderr" if output.name == "stderr" else "stdout", text=as_text(output.text))
        return made
    if output.output_type == "error":
        made.update(ename="", evalue="", traceback=list(map(str, output.traceback)))
        return made
    made.execution_count = None
    if test and isinstance(card := output.data.get(MIME), dict):
        made.update(label="Result of the test", verdict=True)
        said = {name: str(card.get(name, "")) for name in ("outcome", "message")}
        html = str(safe_card(as_text(output.data.get("text/html", ""))))
        made.data = NotebookNode({"text/html": html, MIME: said})
    else:
        made.data = _shown(output.data)
    return made if made.data else None


def _shown(data: Mapping[str, Any]) -> NotebookNode:
    """The one form of a display that a page shows: the first of these that there is and that may be shown."""
    found = {kind: as_text(value) for kind, value in data.items() if isinstance(value, (str, list))}
    for kind in ("text/html", "text/markdown", "image/png", "image/jpeg", "text/latex", "text/plain"):
        if kind not in found:
            continue
        if kind == "text/html":
            with suppress(TooMuch):
                html = safe_html(found[kind])
                if html.striptags() or "<img" in html:
                    return NotebookNode({kind: str(html)})
        elif kind == "text/markdown":
            return NotebookNode({"text/html": str(safe_markdown(found[kind]))})
        elif not kind.startswith("image/"):
            return NotebookNode({"text/plain": found[kind]})
        elif BASE64.fullmatch(found[kind]):
            return NotebookNode({kind: found[kind]})
    return NotebookNode()


class HideTests(NbGraderPreprocessor):
    """Removes the hidden test regions, and their lines wherever an output repeats them.

    What an answer wrote while a hidden test ran is left out, too, as that can be the inputs. A traceback and
    a warning both quote source lines. The card of a test cell says all that a student needs, so the
    tracebacks of test cells are left out altogether.
    """

    # nbgrader sets it for all preprocessors, and warns where one does not have it.
    display_data_priority = List(Unicode()).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        hidden: set[str] = set()
        for cell in filter(is_test, nb.cells):
            hidden.update(map(str.strip, cell.source.splitlines()))
            if patches.remove_hidden_tests(cell, self):
                cell.source = f"{cell.source.rstrip()}\n{REMARK}".lstrip()
                cell.outputs = [output for output in cell.outputs if output.output_type != "stream"]
                for data in (output.data for output in cell.outputs if "data" in output):
                    for kind in data.keys() & {"text/html", "text/plain"}:
                        data[kind] = WARNING.sub("", as_text(data[kind]))
            cell.outputs = [output for output in cell.outputs if output.output_type != "error"]
        # What students can see anyway is no secret, and short lines such as ")" give nothing away.
        hidden -= {line.strip() for cell in nb.cells for line in cell.source.splitlines()}
        secrets = sorted((line for line in hidden if len(line) > 5), key=len, reverse=True)
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs = [without(secrets, output) for output in cell.outputs]
        return nb, resources


class Highlight(NbConvertBase):
    """The filter that colours code, for one page: it gives up where that takes long.

    Pygments needs hours for some texts of a hundred kilobytes, blank lines among them.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._highlight = Highlight2HTML(pygments_lexer="ipython3", parent=self.parent)
        self._spent = 0.0

    def __call__(self, source: str, language: str | None = None, metadata: Any = None) -> str:
        if len(source) > MOST_COLOURED or self._spent > MOST_SECONDS:
            return f'<div class="highlight"><pre>{escape(source)}</pre></div>'
        start = perf_counter()
        try:
            return self._highlight(source, language=language, metadata=metadata)
        finally:
            self._spent += perf_counter() - start


def without(secrets: list[str], value: Any) -> Any:
    """The same output with the secret lines taken out of every text in it."""
    if isinstance(value, dict):
        return NotebookNode({key: without(secrets, item) for key, item in value.items()})
    if isinstance(value, list):
        return [without(secrets, item) for item in value]
    if not isinstance(value, str):
        return value
    plain = strip_ansi(value)  # colours may stand between any two words
    if not any(secret in plain or escape(secret) in plain for secret in secrets):
        return value
    for secret in secrets:
        for form in (secret, escape(secret), escape(secret, quote=False)):
            plain = plain.replace(form, "(hidden test)")
    return plain
