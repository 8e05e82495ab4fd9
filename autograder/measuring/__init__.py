"""Time and cost of PyTorch code: blocks of calls, ratios with intervals, verdicts, counted costs, limits.

It never knows of courses, notebooks, students or nbgrader, and never judges on a single reading.
Begin with ``duel`` (two callables against each other) and ``decide`` (when the evidence is enough).
"""
