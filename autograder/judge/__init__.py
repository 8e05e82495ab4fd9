"""Judges whether one function is right, and so many times as fast as another one, with a stated error rate.

It needs no course and no notebook. ``python -m autograder race`` and the pytest plug-in call the same
``judge``. It is imported from here: in ``autograder``, the name is this package's.
"""

from .api import judge
from .verdict import Verdict

__all__ = ["Verdict", "judge"]
