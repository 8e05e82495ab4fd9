"""Keeps the hidden tests out of the pages that students get. The autograded notebooks keep them."""

import re
from html import escape
from time import perf_counter
from typing import Any

from nbconvert.filters.ansi import strip_ansi
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.utils.base import NbConvertBase
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import List, Unicode

from ..judging.outcome import WARNED
from ..roles import is_test
from .patches import remove_hidden_tests
from .points import as_text

REMARK = "# The hidden tests are not shown, nor what your code wrote while they ran."
# Such a line in a card, as HTML and as text.
WARNING = re.compile(rf"<div[^<>]*>{re.escape(WARNED)}[^<]*</div>|\n  {re.escape(WARNED)}.*")
CARD = ("text/html", "text/plain")
MOST_CHARACTERS = 5000  # longer cells stay without colours
MOST_SECONDS = 2.0  # after so long, all other cells of a page do


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
            hidden.update(lines(cell.source))
            if remove_hidden_tests(cell, self):
                cell.source = f"{cell.source.rstrip()}\n{REMARK}".lstrip()
                cell.outputs = [output for output in cell.outputs if output.output_type != "stream"]
                for data in (output.data for output in cell.outputs if "data" in output):
                    data.update({kind: WARNING.sub("", as_text(data[kind])) for kind in CARD if kind in data})
            cell.outputs = [output for output in cell.outputs if output.output_type != "error"]
        # What students can see anyway is no secret, and short lines such as ")" give nothing away.
        hidden -= {line for cell in nb.cells for line in lines(cell.source)}
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
        if len(source) > MOST_CHARACTERS or self._spent > MOST_SECONDS:
            return f'<div class="highlight"><pre>{escape(source)}</pre></div>'
        start = perf_counter()
        try:
            return self._highlight(source, language=language, metadata=metadata)
        finally:
            self._spent += perf_counter() - start


def lines(source: str) -> set[str]:
    return {line.strip() for line in source.splitlines()}


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
