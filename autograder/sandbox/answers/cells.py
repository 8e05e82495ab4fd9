"""Runs a notebook's cells in this process, as a kernel would, and keeps what they show in order."""

import fcntl
import functools
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import traitlets
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from ..wire.outputs import MOST_CHARACTERS, Outputs


class _Stream(io.TextIOBase):
    """A sys.stdout or sys.stderr that writes into the outputs."""

    encoding = "utf-8"

    def __init__(self, shell: "CellShell", name: str) -> None:
        self._shell, self._name = shell, name

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._shell.outputs.stream(self._name, text)
        return len(text)

    def fileno(self) -> int:
        return {"stdout": 1, "stderr": 2}[self._name]


class _Publisher(DisplayPublisher):
    def publish(
        self, data: dict[str, Any], metadata: dict[str, Any] | None = None, *_: Any, **__: Any
    ) -> None:
        self.shell.outputs.bundle("display_data", dict(data), dict(metadata or {}))

    def clear_output(self, wait: bool = False) -> None:
        self.shell.outputs.items.clear()


class _Hook(DisplayHook):
    def __call__(self, result: Any = None) -> None:
        if result is None or self.quiet():
            return
        data, metadata = self.compute_format_data(result)
        self.update_user_ns(result)
        assert self.shell is not None
        self.shell.outputs.bundle("execute_result", data, metadata)


class CellShell(InteractiveShell):
    """IPython without a kernel and without a terminal."""

    kernel = traitlets.Any(None)  # its presence says that displays are kept
    outputs: Outputs
    # What C code prints on stdout and stderr: of each its number, its name, a file, and what it was before.
    files: Sequence[tuple[int, str, int, int]] = ()

    display_pub_class = traitlets.Type(_Publisher)
    displayhook_class = traitlets.Type(_Hook)

    def _showtraceback(self, etype: type[BaseException], evalue: object, stb: list[str]) -> None:
        self.outputs.error(etype.__name__, str(evalue), [line for part in stb for line in part.split("\n")])

    def enable_gui(self, gui: str | None = None) -> None:
        pass

    def ask_exit(self) -> None:
        """What exit() and quit() call: a kernel ends."""
        os._exit(0)

    @functools.cache  # noqa: B019 (there is one shell, and it lives as long as its process)
    def transform_cell(self, raw_cell: str) -> str:
        """Python for a cell with IPython's own syntax; forks of this process know what it saw."""
        return str(super().transform_cell(raw_cell))

    def run(self, source: str) -> list[dict[str, Any]]:
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
