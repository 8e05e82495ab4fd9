"""Judges whether one function is right, and so many times as fast as another one, with a stated error rate.

For anybody's code: it needs no course, no notebook and no nbgrader. ``judge`` is the door; the command
``python -m autograder race`` and the fixture ``race`` of the pytest plug-in use the same one. It is imported from
here, and not from ``autograder``: there, this package has the name.
"""

from .api import judge
from .verdict import Verdict

__all__ = ["Verdict", "judge"]
