"""What is served over HTTP on this machine: a folder, as a website would be, or what a handler gives."""

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Quiet(http.server.BaseHTTPRequestHandler):
    """A handler that says nothing."""

    def log_message(self, *_: object) -> None:
        pass


class Files(Quiet, http.server.SimpleHTTPRequestHandler):
    """A server of files."""


@contextmanager
def serving(handler: Callable[..., Quiet]) -> Iterator[str]:
    """Serve what a handler gives; gives the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; gives its address, which ends with a slash."""
    with serving(functools.partial(Files, directory=str(folder))) as address:
        yield f"{address}/"
