"""nbgrader for everybody on the hub; the instructor's course folder has the course's own settings."""

from pathlib import Path

c = get_config()  # noqa: F821  (nbgrader defines it)
home = Path.home() / "fast-pytorch"

c.CourseDirectory.course_id = "fast-pytorch"
c.Exchange.root = "/srv/nbgrader/exchange"
# Where the Assignment List puts what it fetches: beside course/ and data/, which the exercises look for.
c.Exchange.assignment_dir = str(home / "exercises")
if (home / "nbgrader_config.py").exists():
    c.CourseDirectory.root = str(home)

# Validate runs the notebook beside those of the whole class.
c.Execute.timeout = c.Execute.startup_timeout = 120  # seconds
