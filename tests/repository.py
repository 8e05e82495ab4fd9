"""What many tests look at: the repository's own notebooks and scripts, each read once."""

from functools import cache
from pathlib import Path

import nbformat

from autograder.authoring import builder

ROOT = Path(__file__).resolve().parent.parent
# Scripts; those of the numbered chapters begin with a digit.
COURSE = builder.chapter_sources(ROOT)
SOLUTIONS = builder.solution_sources(ROOT)
CHAPTERS = [path.stem for path in COURSE if path.stem[0].isdigit()]
EXERCISES = [builder.exercise_notebook(source, ROOT) for source in SOLUTIONS]


@cache
def notebook(path: Path) -> nbformat.NotebookNode:
    """A notebook as it is on the disk; nobody may change it. For a script, the notebook beside it."""
    # Without nbformat's validation, which takes longer than all the rest.
    return nbformat.v4.reads(path.with_suffix(".ipynb").read_text(encoding="utf-8"))


@cache
def built(source: Path) -> nbformat.NotebookNode:
    """The notebook that a script says; nobody may change it."""
    return builder.build(source)
