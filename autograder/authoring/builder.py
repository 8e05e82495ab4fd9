"""Build the notebooks from the percent scripts, the only text that people edit.

course/NN_topic.py               → course/NN_topic.ipynb                 executed, outputs kept
solutions/NN_topic/NN_topic.py   → solutions/NN_topic/NN_topic.ipynb     not executed
the solutions, through nbgrader  → exercises/NN_topic/NN_topic.ipynb     what students get

A chapter is executed when its code changed; otherwise it keeps the outputs that it has. Of the id and
the role that the headers of cells say, the build makes nbgrader's metadata (headers.py).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import jupytext
import msgspec
import nbformat
from nbformat import NotebookNode

from ..files import write_whole
from ..roles import is_test
from . import records, whys
from .colab import colab_cell, is_colab_cell
from .headers import apply_header, lighter
from .sources import BuildError, address, chapter_sources, find_root, solution_sources, write_address

METADATA = msgspec.toml.decode(Path(__file__).with_name("notebook_metadata.toml").read_bytes())
SECONDS_A_CELL = 600
PROCESSES = 5  # that measure each comparison: one tells nothing of what changes from process to process
PAGES = ("claims", "index")  # show what the chapters and exercises say, so they are built after any of them

# Folders in which people and systems keep their own files: a path there says something about one machine.
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<])/(?:home|root|tmp|usr|opt|var|mnt|srv|work|workspace|media|private|Users)/[\w.-]+"
    r"|\b[A-Z]:\\[\w.-]+\\"
)
# What the head of an exercise notebook says of all of it.
_SUM = re.compile(r"\b(\d+(?:\.\d+)?) points, about \d+ minutes\b")
# A picture within HTML: its letters mean nothing, and there are very many of them.
PICTURE = re.compile(r'(src="data:[^"]*")')


def build(source: Path) -> NotebookNode:
    """The notebook of one percent script: cells, metadata and ids, not executed.

    A chapter or a solution gets the cell for Google Colab on top.
    Raises BuildError for a header that says something wrong, an id that occurs twice, and a text with another
    sum of points than the tests give.
    """
    notebook = jupytext.reads(lighter(source.read_text(encoding="utf-8")), fmt="py:percent")
    # JupyterLab writes this cell into a script when somebody saves the notebook.
    notebook.cells = [cell for cell in notebook.cells if not is_colab_cell(cell)]
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for position, cell in enumerate(notebook.cells):
        cell.metadata.pop("lines_to_next_cell", None)  # jupytext's note on blank lines in the script
        cell.id = cell.metadata.get("id") or f"cell-{position}"
        try:
            apply_header(cell)
        except ValueError as error:
            raise BuildError(f"{source.name}: {_where(cell)}: {error}") from None
    place = _place_of_readers(source)
    if place == "course":
        for why in whys.whys(notebook.cells):
            if not why.kind:
                needed = "It needs because=… in its comparison, an assert in a cell beside it, or a link."
                raise BuildError(f"{source.name}: nothing shows why: {why.sentence!r} {needed}")
    if place in ("course", None):  # an exercise asks for no guess
        whys.fold_answers(notebook.cells)
    if place:
        notebook.cells.insert(0, colab_cell(address(find_root(source.parent)), place))
    ids = [cell.id for cell in notebook.cells]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise BuildError(f"{source.name}: more than one cell has the id {', '.join(sorted(twice))}")
    points = sum(cell.metadata.nbgrader.points for cell in notebook.cells if is_test(cell))
    for said in _SUM.findall("\n".join(cell.source for cell in notebook.cells)):
        if points and float(said) != points:
            raise BuildError(f"{source.name}: its text says {said} points, and its tests give {points:g}")
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        raise BuildError(f"{source.name}: not a valid notebook: {error.message}") from None
    return notebook


def _place_of_readers(source: Path) -> str | None:
    """The folder in which readers have the notebook of a chapter or of a solution; None for other scripts."""
    *_, above, folder, _ = source.resolve().parts
    if (above, folder) == ("solutions", source.stem):
        return f"exercises/{source.stem}"  # what becomes of the solution
    return folder if folder == "course" else None


def inputs(notebook: NotebookNode) -> NotebookNode:
    """All of a notebook but what running it adds: outputs and execution counts."""
    bare = deepcopy(notebook)
    for cell in code_cells(bare):
        cell.outputs, cell.execution_count = [], None
    return bare


def is_current(notebook: Path, fresh: NotebookNode) -> bool:
    """Whether the notebook on disk has the cells, ids and metadata of the fresh build."""
    return notebook.is_file() and inputs(nbformat.read(notebook, as_version=4)) == inputs(fresh)


def keep_outputs(fresh: NotebookNode, notebook: Path, root: Path) -> bool:
    """Take the outputs of the notebook on disk over into the fresh build, where it is the same code that ran.

    Gives whether that could be done. Text, metadata and the cell for Google Colab may differ.
    """
    ran = code_cells(nbformat.read(notebook, as_version=4)) if notebook.is_file() else []
    runs = code_cells(fresh)
    before, now = ([cell.source for cell in cells if not is_colab_cell(cell)] for cells in (ran, runs))
    from_top_to_bottom = [cell.execution_count for cell in ran] == list(range(1, len(runs) + 1))
    raised = any(output.output_type == "error" for cell in ran for output in cell.outputs)
    if before != now or not from_top_to_bottom or raised:
        return False
    for old, cell in zip(ran, runs, strict=True):
        cell.outputs, cell.execution_count = old.outputs, old.execution_count
    try:
        tidy_outputs(fresh, root)
    except BuildError:
        return False
    return True


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def execute(notebook: NotebookNode, folder: Path, extra_env: dict[str, str] | None = None) -> None:
    """Run all cells in `folder`; keep the outputs. Raises BuildError when one raises, or never ends."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    started: list[NotebookNode] = []
    client = NotebookClient(
        notebook,
        timeout=SECONDS_A_CELL,
        kernel_name=METADATA["kernelspec"]["name"],
        resources={"metadata": {"path": str(folder)}},
        force_raise_errors=True,
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        on_cell_start=lambda cell, cell_index: started.append(cell),
        extra_arguments=["--log-level=ERROR"],  # not the kernel's warning about local, unencrypted sockets
    )
    with tempfile.TemporaryDirectory() as settings:
        # Nothing of this machine's user must reach the outputs: no settings, progress or own timings.
        env = {**os.environ, **(extra_env or {}), "IPYTHONDIR": settings, "XDG_CACHE_HOME": settings}
        for name in ("PYTHONDONTWRITEBYTECODE", "MPLBACKEND"):
            env.pop(name, None)
        try:
            client.execute(env=env)
        except CellExecutionError as error:
            line = line_that_raised(error.traceback)
            where = f"{_where(started[-1])}{f', line {line[1]!r}' if line else ''}"
            raise BuildError(f"{where}: {error.ename}: {error.evalue}") from None
        except CellTimeoutError:
            raise BuildError(f"{_where(started[-1])}: more than {SECONDS_A_CELL} s") from None
        except DeadKernelError:
            raise BuildError(f"{_where(started[-1])}: the kernel died") from None
    notebook.metadata = nbformat.from_dict(METADATA)


def tidy_outputs(notebook: NotebookNode, root: Path) -> None:
    """Take this machine's folders out of outputs' text. Raises BuildError when an absolute path is left."""
    for cell in notebook.cells:
        for holder, key in texts(cell):
            cell_name = "&lt;cell&gt;" if key == "text/html" else "<cell>"
            parts = PICTURE.split(holder[key])
            for place in range(0, len(parts), 2):  # between the pictures
                text = re.sub(r"[^\s\"'<>]*ipykernel_\d+/\d+\.py", cell_name, parts[place])
                text = re.sub(r"/[^\s\"'<>]*/site-packages/", "", text)
                parts[place] = text.replace(f"{root}{os.sep}", "")
                for path in ABSOLUTE_PATH.findall(parts[place]):
                    raise BuildError(f"{_where(cell)}: its output has an absolute path, {path}")
            holder[key] = "".join(parts)


def release(sources: Sequence[Path], root: Path) -> tuple[dict[str, dict[Path, bytes]], str]:
    """Make the students' versions of solutions, as `nbgrader generate_assignment` makes them.

    Gives the files of each assignment's folder, none where nbgrader made no notebook, and what it said.
    nbgrader runs on a throwaway copy of the solutions with the course's configuration and without a
    database, so that neither the checkout nor a gradebook is touched.
    """
    with tempfile.TemporaryDirectory() as scratch:
        course = Path(scratch)
        for source in sources:
            folder = course / "solutions" / source.stem
            shutil.copytree(source.parent, folder, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
            nbformat.write(build(source), folder / f"{source.stem}.ipynb")
        shutil.copy(root / "nbgrader_config.py", course)
        # nbgrader's start costs seconds and its name argument is a glob: one start makes all assignments.
        command = [sys.executable, "-m", "nbgrader", "generate_assignment", "*", "--no-db", "--force"]
        command += [f"--CourseDirectory.root={course}"]
        env = {**os.environ, "JUPYTER_CONFIG_DIR": str(course / ".jupyter"), "JUPYTER_NO_CONFIG": "1"}
        nothing = subprocess.DEVNULL
        done = subprocess.run(command, cwd=course, env=env, stdin=nothing, capture_output=True, text=True)
        log = (done.stdout + done.stderr).replace(f"{course}{os.sep}", "")
        made = {source.stem: _files(course / "exercises" / source.stem) for source in sources}
    log = re.sub(r"Traceback \(most recent call last\):\n(?:[ \t]+.*\n)*?(?=[ \t]*[\w.]+: )", "", log)
    return {name: files if Path(f"{name}.ipynb") in files else {} for name, files in made.items()}, log


def make_notebooks(root: Path, names: Iterable[str] = (), everything: bool = False) -> int:
    """Build what changed, or everything, or the chapters named; one line each. Returns the exit status."""
    chapters, solutions = _selected(root, list(names))
    fresh: dict[Path, NotebookNode] = {}
    failed: list[object] = []
    for source in solutions + chapters:
        try:
            fresh[source] = build(source)
        except BuildError as error:
            print(f"error: {error}", file=sys.stderr)
            failed.append(source)
            continue
        script = source.read_text(encoding="utf-8")  # Jupytext may have written metadata into it
        if (light := lighter(script)) != script:
            source.write_text(light, encoding="utf-8")
            print(f"{source.relative_to(root)}: nbgrader's metadata in headers became id= and role=")
    # The chapters come last: the front page tells what the exercises are.
    for source in solutions:
        if source in fresh and not is_current(target := source.with_suffix(".ipynb"), fresh[source]):
            with told(target.relative_to(root), failed):
                nbformat.write(fresh[source], target)
    before = _files(root / "exercises")
    if built := [source for source in solutions if source in fresh]:
        with told("exercises", failed):
            released, log = release(built, root)
            for name in filter(released.get, released):
                _write_folder(root / "exercises" / name, released[name])
            if nothing := [name for name, files in released.items() if not files]:
                raise BuildError(f"nbgrader made nothing of {', '.join(nothing)}:\n{log}")
    asked, changed = everything or bool(names), before != _files(root / "exercises")
    for source in chapters:
        target, stale = source.with_suffix(".ipynb"), changed and source.stem in PAGES
        if source not in fresh or (is_current(target, fresh[source]) and not asked and not stale):
            continue
        with told(target.relative_to(root), failed):
            if asked or stale or not keep_outputs(fresh[source], target, root):
                execute(fresh[source], source.parent)
                tidy_outputs(fresh[source], root)
            changed = True
            nbformat.write(fresh[source], target)
    _write_pages(root, failed)
    return int(bool(failed))


def _write_pages(root: Path, failed: list[object]) -> None:
    """Put what to remember into the README, the address into pages, and list the recorded timings."""
    readme = root / "README.md"
    if not readme.is_file():
        return
    with told("README.md", failed):
        write_address(root)
        text = readme.read_text(encoding="utf-8")
        try:
            from ..teaching import evidence, remember, scoreboard  # read claims, whose author may be at work

            records.write_page(root)
            if (root / "docs").is_dir():
                write_whole(root / "docs" / "whys.md", whys.page(root))
            found = scoreboard.findings(root / "course", root / "data" / "timings")
            for claim in evidence.CLAIMS:
                evidence.judge(claim, found)  # cells that contradict each other
            scored = remember.with_three(text, found)
        except ValueError as error:
            raise BuildError(str(error)) from None
        if scored != text:
            readme.write_text(scored, encoding="utf-8")


def record(root: Path, names: Iterable[str] = (), processes: int = PROCESSES) -> int:
    """Run each chapter in fresh processes, and record their timings together. Returns the exit status."""
    from ..teaching import recordings  # loads torch

    timings, written = root / "data" / "timings", set[Path]()
    failed: list[object] = []
    for source in _selected(root, list(names))[0]:
        if source.stem in PAGES:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folders = [Path(scratch, str(number)) for number in range(processes)]
            for folder in folders:
                folder.mkdir()
                with told(source.relative_to(root), failed):
                    execute(build(source), source.parent, {"AUTOGRADER_RECORD": str(folder)})
            written |= recordings.join(folders, timings)
    for path in sorted(written):
        print(f"wrote {path.relative_to(root)}")
        for problem in records.shortcomings(path, root / "course"):
            print(f"  {problem}")
    if written:
        records.write_page(root)
        print("Such a file holds the device's name, versions, the date and seconds, and nothing about you.")
        print(f"To share it, drag it into the form at {address(root)}/issues/new?template=claim.yml")
    else:
        print("no timings were written")
    return int(bool(failed))


@contextmanager
def told(what: object, failed: list[object]) -> Iterator[None]:
    """Print one line for one thing that is done: its name, then the seconds it took, or why it failed."""
    print(f"{what!s:<56} ", end="", flush=True)
    start = time.perf_counter()
    try:
        yield
        print(f"{time.perf_counter() - start:.1f} s", flush=True)
    except BuildError as error:
        print(f"failed after {time.perf_counter() - start:.1f} s", flush=True)
        print(f"error: {what}: {error}", file=sys.stderr)
        failed.append(what)
    except BaseException:
        print("stopped")
        raise


def _selected(root: Path, names: list[str]) -> tuple[list[Path], list[Path]]:
    """Chapters and solutions whose names start with one of `names` (none: all), and pages about them all."""
    chapters, solutions = chapter_sources(root), solution_sources(root)
    for name in names:
        if not any(path.stem.startswith(name) for path in chapters + solutions):
            known = ", ".join(sorted({path.stem for path in chapters + solutions}))
            raise BuildError(f"no chapter is called {name!r}; there are: {known}")
    wanted = (*names, *PAGES) if names else ""
    chosen = lambda paths: [path for path in paths if path.stem.startswith(wanted)]
    return chosen(chapters), chosen(solutions)


def _where(cell: NotebookNode) -> str:
    first = next((line for line in cell.source.splitlines() if line.strip()), "")
    return f"cell {cell.id} ({first.strip()[:60]!r})"


def line_that_raised(traceback: str) -> tuple[str, str] | None:
    """The number and the text of the cell's line that raised, from IPython's traceback."""
    found = re.search(r"^-+> *(\d+) (.*)$", re.sub(r"\x1b\[[\d;]*m", "", traceback), re.MULTILINE)
    return (found[1], found[2].strip()) if found else None


def texts(cell: NotebookNode) -> Iterator[tuple[dict, str]]:
    """Where the texts of a cell's outputs are: what holds each, and by which key."""
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            yield output, "text"
        for kind, value in output.get("data", {}).items():
            if isinstance(value, str) and (kind.startswith("text/") or kind == "image/svg+xml"):
                yield output.data, kind


def _files(folder: Path) -> dict[Path, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


def _write_folder(folder: Path, files: dict[Path, bytes]) -> None:
    """Make `folder` hold exactly `files`, touching only what differs."""
    there = _files(folder)
    for path in there.keys() - files.keys():
        (folder / path).unlink()
    for path, content in files.items() - there.items():
        write_whole(folder / path, content)
