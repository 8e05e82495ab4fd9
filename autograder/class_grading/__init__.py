"""Grades a whole class at once."""
