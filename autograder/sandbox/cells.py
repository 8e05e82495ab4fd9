"""Runs a notebook's cells in this process, as a kernel would, and keeps what they show in order."""

from __future__ import annotations

import fcntl
import functools
import io
import os
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Any, Type

# What one cell may show: characters that it prints, bytes of pictures and other displays, outputs of each
# kind.
MOST_CHARACTERS = 1_000_000
MOST_PICTURES = 10 << 20
MOST_OUTPUTS = {"stream": 300, "display_data": 500, "execute_result": 100, "error": 10}
LEFT_OUT = "(this cell showed more than a page can hold: the rest was left out)\n"


class Outputs:
    """The outputs of a cell, in nbformat's form, and no more of them than a page can hold."""

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._items: list[dict] = []
        self._more: list[str] = []  # text that belongs to the last item
        self._characters, self._pictures = most_characters, MOST_PICTURES
        self._left = dict(MOST_OUTPUTS)

    def stream(self, name: str, text: str) -> None:
        """Text on stdout or stderr; what goes over the limit is left out."""
        text = text[: max(0, self._characters)]
        self._characters -= len(text)
        if not text:
            return
        last = self._items[-1] if self._items else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            self._more.append(text)
        else:
            self._add({"output_type": "stream", "name": name, "text": text})

    @property
    def items(self) -> list[dict]:
        """All outputs so far."""
        if self._more:
            self._items[-1]["text"] += "".join(self._more)
            self._more.clear()
        return self._items

    def bundle(self, kind: str, data: dict, metadata: dict | None = None) -> None:
        """A display_data or an execute_result."""
        data = {
            key: b64encode(item).decode() if isinstance(item, bytes) else item for key, item in data.items()
        }
        size = sum(len(item) for item in data.values() if isinstance(item, str))
        if size > self._pictures:
            self.stream("stderr", "(a display was too large and was left out)\n")
            return
        self._pictures -= size
        item = {"output_type": kind, "data": data, "metadata": metadata or {}}
        self._add(item | {"execution_count": None} if kind == "execute_result" else item)

    def error(self, name: str, message: str, traceback: list[str]) -> None:
        self._add(
            {
                "output_type": "error",
                "ename": name,
                "evalue": message[:5000],
                "traceback": [line[:5000] for line in traceback[-50:]],
            }
        )

    def _add(self, item: dict) -> None:
        left = self._left[item["output_type"]]
        self._left[item["output_type"]] -= 1
        if left > 0:
            self.items.append(item)
        elif left == 0:
            self.items.append({"output_type": "stream", "name": "stderr", "text": LEFT_OUT})


class _Stream(io.TextIOBase):
    """A sys.stdout or sys.stderr that writes into the outputs."""

    encoding = "utf-8"

    def __init__(self, shell: CellShell, name: str) -> None:
        self._shell, self._name = shell, name

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._shell.outputs.stream(self._name, text)
        return len(text)

    def fileno(self) -> int:
        return {"stdout": 1, "stderr": 2}[self._name]


class _Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **kwargs):
        self.shell.outputs.bundle("display_data", dict(data), dict(metadata or {}))

    def clear_output(self, wait=False):
        self.shell.outputs.items.clear()


class _Hook(DisplayHook):
    def __call__(self, result=None):
        if result is None or self.quiet():
            return
        data, metadata = self.compute_format_data(result)
        self.update_user_ns(result)
        assert self.shell is not None
        self.shell.outputs.bundle("execute_result", data, metadata)


class CellShell(InteractiveShell):
    """IPython without a kernel and without a terminal."""

    kernel = Any(None)  # its presence says that displays are kept
    outputs: Outputs
    # What C code prints on stdout and stderr: of each its number, its name, a file, and what it was before.
    files: Sequence[tuple[int, str, int, int]] = ()

    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)

    def _showtraceback(self, etype, evalue, stb):
        self.outputs.error(etype.__name__, str(evalue), [line for part in stb for line in part.split("\n")])

    def enable_gui(self, gui=None):
        pass

    def ask_exit(self):
        """What exit() and quit() call: a kernel ends."""
        os._exit(0)

    @functools.cache  # noqa: B019 (there is one shell, and it lives as long as its process)
    def transform_cell(self, raw_cell: str) -> str:
        """Python for a cell with IPython's own syntax; forks of this process know what it saw."""
        return super().transform_cell(raw_cell)

    def run(self, source: str) -> list[dict]:
        """Run one cell; its outputs. What C code writes to files 1 and 2 comes last."""
        self.outputs = Outputs()
        with self.streams():
            self.run_cell(source, store_history=True)
        return self.outputs.items

    @contextmanager
    def streams(self) -> Iterator[None]:
        """Send prints, also those of C code, into the outputs."""
        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = _Stream(self, "stdout"), _Stream(self, "stderr")
        if not self.files:
            self.open_files()
        for number, _, file, _ in self.files:
            os.dup2(file, number)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            for number, name, file, old in self.files:
                os.dup2(old, number)
                with suppress(OSError):
                    if size := min(os.fstat(file).st_size, MOST_CHARACTERS):
                        self.outputs.stream(name, os.pread(file, size, 0).decode(errors="replace"))
                        os.ftruncate(file, 0)

    def open_files(self) -> None:
        """Make the files for what C code prints. Later, a process with a student's code can make none."""
        files = []
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.memfd_create(name)
            fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)  # so it begins anew where it was emptied
            files.append((number, name, file, os.dup(number)))
        self.files = files


def make_shell() -> CellShell:
    """The process's one shell, without history on disk and without colours."""
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.autoindent = False
    shell = CellShell.instance(config=config)
    shell.outputs = Outputs()
    return shell
