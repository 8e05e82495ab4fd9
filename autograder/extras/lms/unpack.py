"""Unpacks an archive that a student handed in, in a process of its own that has little time and memory."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

MOST_BYTES, MOST_MEMBERS, MOST_DEPTH = 200_000_000, 1_000, 20
MOST_MEMORY, MOST_SECONDS = 1 << 30, 60.0  # bytes of address space


def unpack(archive: Path, folder: Path) -> None:
    """Put an archive's files into a new folder. Raises ValueError, with the reason, where that may not be."""
    command = [sys.executable, "-I", __file__, str(archive), str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=MOST_SECONDS)
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done.returncode else None
    except subprocess.TimeoutExpired:
        why = f"that takes more than {MOST_SECONDS:g} s"
    if why:
        shutil.rmtree(folder, ignore_errors=True)
        raise ValueError(why)


def _unpack(archive: Path, folder: Path) -> None:
    """Look at all that is in it before anything is written."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as content:
            _refuse_much((one.filename, one.file_size) for one in content.infolist())
            content.extractall(folder)  # which keeps within the folder, and makes no links
        return
    with tarfile.open(archive) as packed:
        _refuse_much((one.name, one.size) for one in packed)
        for one in packed:
            if not (one.isreg() or one.isdir()) or not (folder / one.name).resolve().is_relative_to(folder):
                raise ValueError(f"{one.name!r} is a link or a device, or leads out of the folder")
        for one in packed:
            place = folder / one.name
            (place if one.isdir() else place.parent).mkdir(parents=True, exist_ok=True)
            if (data := packed.extractfile(one)) is not None:
                with data, place.open("wb") as file:
                    shutil.copyfileobj(data, file)


def _refuse_much(members: Iterable[tuple[str, int]]) -> None:
    """Raise ValueError for too many names, too deep ones, or too many bytes, as soon as that is known."""
    total = 0
    for number, (name, size) in enumerate(members, 1):
        total += size
        if name.count("/") > MOST_DEPTH:
            raise ValueError(f"it has folders in more than {MOST_DEPTH} others")
        if number > MOST_MEMBERS:
            raise ValueError(f"it has more than {MOST_MEMBERS:,} files")
        if total > MOST_BYTES:
            raise ValueError(f"it would take more than {MOST_BYTES // 10**6} MB")


if __name__ == "__main__":
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    try:
        _unpack(Path(sys.argv[1]), Path(sys.argv[2]).resolve())
    except Exception as error:  # a student wrote it, so it can be anything
        sys.exit(" ".join(f"{error}".split()) or type(error).__name__)
