"""Races between processes, whose verdicts decide the points for speed."""
