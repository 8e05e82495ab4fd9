"""Grades a whole class at once, as ``nbgrader autograde`` would one by one, and makes a page about it.

It never judges an answer itself, never leaves half a grade behind, and never grades again what is graded.
Begin with ``engine.grade``: the way of a submission from its folder to the gradebook.
"""
