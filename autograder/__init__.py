"""Fast PyTorch, measured: what a notebook imports.

``compare`` times callables and shows the result, ``costs`` counts what a call asks of torch, ``check`` and
``race`` test an answer for being right and for being fast, ``devices`` names the devices to run on.
"""

from .judging.check import check
from .judging.race import race
from .measuring.clocks import devices
from .measuring.costs import costs
from .teaching.claims import verdict, verdicts
from .teaching.compare import compare

__all__ = ["check", "compare", "costs", "devices", "race", "verdict", "verdicts"]
