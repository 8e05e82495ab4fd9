"""What makes the course: notebooks from scripts, answers of known worth, rehearsals, the bundle.

It never runs while a class is graded, and never writes a notebook of which a cell fails.
Begin with ``builder`` (``make notebooks``).
"""
