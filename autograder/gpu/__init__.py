"""The judge of a race on a GPU: processes with contexts of their own, and memory that they share."""
