"""How the package is built, beside the contracts in pyproject.toml, which `make check` looks at."""

import graphlib
import re

import grimp
from programs import python
from repository import ROOT

MOST_FILES, MOST_ARROWS = 14, 40  # of a package


def test_no_module_imports_itself_in_a_circle_and_no_room_is_too_full() -> None:
    """Not through the ``__init__`` of a package either, where import-linter does not look."""
    graph = grimp.build_graph("autograder", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert imports["autograder.sandbox"] >= {"autograder.sandbox.submissions.supervisor"}
    assert list(graphlib.TopologicalSorter(imports).static_order())
    for room in (module for module in graph.modules if graph.find_children(module)):
        files = {file for file in graph.find_children(room) if not graph.find_children(file)}
        arrows = sum(len(imports[file] & files) for file in files)
        assert len(files) <= MOST_FILES and arrows <= MOST_ARROWS, (room, len(files), arrows)


def test_the_page_on_the_architecture_names_files_that_are_there() -> None:
    """Each way has eight files at most, and the drawing is there."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for way in ("A submission's way", "A timing cell's way", "A test cell's way"):
        steps = re.findall(r"(?m)^\d\. (.*)$", page.partition(f"## {way}\n")[2].partition("\n## ")[0])
        assert 3 <= len(steps) <= 8, way
        for step in steps:
            for name in re.findall(r"`([\w/]+\.py)`", step.partition(":")[0]):
                if "NN_topic" not in name:
                    assert (ROOT / "autograder" / name).is_file(), name
    packages = set(re.findall(r"(?m)^\| `(\w+)` \|", page))
    there = [*(ROOT / "autograder").glob("*/__init__.py")]
    there += (ROOT / "autograder" / "extras").glob("*/__init__.py")
    assert packages == {path.parent.name for path in there}
    assert (ROOT / "docs" / "architecture.svg").is_file()


def test_the_instructors_process_does_without_torch() -> None:
    """It takes seconds to load, and nbgrader's commands load these packages every time."""
    names = ("nbgrader_plugin.execute", "class_grading.class_commands", "class_grading.engine", "__main__")
    imports = "".join(f"import autograder.{name}; " for name in names)
    look = f"{imports}import sys; print({{'torch', 'matplotlib', 'distributed'}} & sys.modules.keys())"
    done = python(look)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
