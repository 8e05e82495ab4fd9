"""A submission's way: supervisor → fork server → judge's process, which asks the answer's process."""
