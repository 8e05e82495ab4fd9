"""The process that runs an answer, and the judge's ways to it."""
