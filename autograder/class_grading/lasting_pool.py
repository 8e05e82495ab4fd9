"""A pool that is there for many runs: sandboxes take some seconds to start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..sandbox import Sandbox
from .pool import LocalPool, Pool


class OwnSandboxes(LocalPool):
    """So many sandboxes on this machine, which start at once and end with the pool.

    Raises PoolError or SandboxError where there can be none. ``unconfined`` is for Sandbox.
    """

    def __init__(self, number: int, *, unconfined: bool = False) -> None:
        self._own = [Sandbox(unconfined=unconfined) for _ in range(number)]
        super().__init__(self._own)
        for sandbox in self._own:
            sandbox.begin()

    def close(self) -> None:
        super().close()
        for sandbox in self._own:
            sandbox.close()


class LastingPool:
    """Called, it gives a pool that only ends when it is closed here. ``connect`` makes it."""

    def __init__(self, connect: Callable[[bool], Pool]) -> None:
        self._connect = connect
        self._pool: Pool | None = None

    def __call__(self, unconfined: bool) -> Pool:
        if self._pool is None:
            self._pool = self._connect(unconfined)
        return cast(Pool, _Lent(self._pool))

    def close(self) -> None:
        """End the pool and what still runs there; the next call makes another one."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


class _Lent:
    """A pool that does not end when it is closed."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def close(self) -> None:
        pass
