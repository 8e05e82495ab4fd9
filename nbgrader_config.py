"""The course as nbgrader sees it. Every plain ``nbgrader`` command run in this folder reads this file."""

from autograder.nbgrader_plugin import configure

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.course_id = "fast-pytorch"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
# Text sources stay with the instructors, and caches with nobody.
c.CourseDirectory.ignore = [
    "*.py", "*.pyc", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache", "feedback",
]  # fmt: skip

# For nbgrader's own exchange, a folder. Leave this line out where another one is in its place.
c.ExchangeFactory.collect = "autograder.nbgrader_plugin.collect.Collect"

c.ClearSolutions.code_stub = {
    "python": 'raise NotImplementedError("Write your solution here, then delete this line.")'
}

c.RunEveryCell.timeout = 60  # seconds for one cell
c.RunEveryCell.notebook_timeout = 600  # seconds for all cells of a notebook

configure(c)
