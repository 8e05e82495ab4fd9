"""Markdown that takes a parser hours, or more memory than there is: nested, repeated, never closed.

# points:
"""

# %% notebook edit
from nbformat.v4 import new_markdown_cell

LONG = 60_000
for text in [
    "".join(f"<b x{number}>" for number in range(3000)) + 9000 * "<p>",
    5000 * "<div>" + "deep" + 5000 * "<blockquote>",
    "[a]: data:image/png;base64," + 40_000 * "A" + "\n\n" + 4_000 * "![][a]",
    "[a]: https://x.invalid/" + 20_000 * "A" + "\n\n" + 9_000 * "[x][a]",
    LONG // 4 * "**a ",
    LONG // 4 * "_a*b",
    LONG * "[",
    LONG // 2 * "![",
    LONG // 2 * "> ",
    LONG // 2 * "- ",
    LONG // 3 * "<a ",
    LONG // 9 * "\\begin{a}",
    LONG * "`" + LONG // 6 * "`a``b",
    LONG // 3 * "\\\\[",
    LONG // 5 * "<!--<",
    LONG // 8 * "|a|b|\n|-|-|\n"[:8],
    "```python\n" + LONG * "'\"\\" + "\n```",
    "`$" * (LONG // 2),
    "data:image/png;base64," + LONG * "A ",
]:
    notebook.cells.append(new_markdown_cell(text))
for number in range(60):
    notebook.cells.append(new_markdown_cell(2_400 * "**a "))
