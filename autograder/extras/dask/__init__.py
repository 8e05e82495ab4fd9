"""A class graded by the workers of a Dask scheduler: what ``--scheduler`` asks for."""

from .dask_pool import DaskPool

__all__ = ["DaskPool"]
