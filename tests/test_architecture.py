"""How the package is built, beside the contracts in pyproject.toml, which `make check` looks at."""

import graphlib
import inspect
import math
import re
from collections import defaultdict
from statistics import median

import grimp
import pytest
import yaml
from programs import python
from repository import ROOT, published
from test_notebooks import LINES, WORDS

from autograder.gpu import device_judge
from autograder.measuring.clocks import BLOCK_SECONDS
from autograder.measuring.decide import FAR, RARE, SAME, Strays, decide
from autograder.sandbox.answers import answer_handle
from autograder.sandbox.racing import launches, side, undisturbed
from autograder.sandbox.submissions.supervisor import ERRORS

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
    for way in ("A submission's way", "A timing cell's way", "A test cell's way"):
        steps = re.findall(r"(?m)^\d\. (.*)$", PAGE.partition(f"## {way}\n")[2].partition("\n## ")[0])
        assert 3 <= len(steps) <= 8, way
        for step in steps:
            for name in re.findall(r"`([\w/]+\.py)`", step.partition(":")[0]):
                if "NN_topic" not in name:
                    assert (ROOT / "autograder" / name).is_file(), name
    packages = set(re.findall(r"(?m)^\| `(\w+)` \|", PAGE))
    there = (place for room in ("", "extras") for place in (ROOT / "autograder" / room).glob("*/__init__.py"))
    assert packages == {path.parent.name for path in there}


def test_the_instructors_process_does_without_torch() -> None:
    """It takes seconds to load, and nbgrader's commands load these packages every time."""
    names = ("nbgrader_plugin.execute", "class_grading.class_commands", "class_grading.engine", "__main__")
    imports = "".join(f"import autograder.{name}; " for name in names)
    look = f"{imports}import sys; print({{'torch', 'matplotlib', 'distributed'}} & sys.modules.keys())"
    done = python(look)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr


# Every number on the page, of GPUs, and in the glossary, as the code or the data has it.

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NUMBER = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905


def listed(items: list[str]) -> str:
    *most, last = items
    return f"{', '.join(most)} and {last}"


def of_reading() -> list[str]:
    """How long the page takes, and the code that a test cell's way names; and of the sandbox."""
    way = PAGE.partition("## A test cell's way\n")[2].partition("\n[Functions")[0]
    names = {name.rpartition("/")[2] for name in re.findall(r"`([\w/]+\.py)`", way)} - {"NN_topic.py"}
    files = [path for path in (ROOT / "autograder").rglob("*.py") if path.name in names]
    assert len(files) == len(names)
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    about = round(lines, -3)
    assert about == pytest.approx(lines, rel=0.15)
    assert answer_handle._WATCH_SECONDS == 1 / 4
    (depth,) = re.findall(r"assert most <= (\d)", (ROOT / "tests/grading/test_isolated.py").read_text())
    return [
        f"This page takes {5 * math.ceil(len(PAGE.split()) / WORDS / 5)} minutes",
        f"in {len(files)} files with {about:,} lines, which take {about / LINES / 60:g} hours",
        f"it is {NUMBER[int(depth)]} calls at most",
        "memory may be over its limit for a quarter of a second",
    ]


def of_judges() -> list[str]:
    now, again = ERRORS["now"], ERRORS["again"]
    equal, clear = (len(decide([2.0] * 99, now, strays_are_rare=rare).ratios) for rare in (False, True))
    assert len(decide([2.0] * 99, device_judge.ERROR).ratios) == equal
    cheats = yaml.safe_load((ROOT / "tests/adversaries/on_a_device.yaml").read_text(encoding="utf-8"))
    watched = inspect.signature(Strays).parameters["kept"].default
    return [
        f"within {100 * (SAME - 1):.0f} % of the ratio asked for",
        "reaches 1 / `error`",
        f"the error of 1 in {1 / (now + again):,.0f} for each kind of wrong verdict",
        f"({now * 1e3:g} and {again * 1e3:g} of it)",
        f"Then {NUMBER[equal]} equal signs are enough",
        f"ends after {NUMBER[clear]} launches",
        f"by more than a factor of {FAR:g}, with a probability of at most {RARE:g} each",
        f"over the last {watched} launches",
        f"up to {NUMBER[side.WAYS]} calls do all but the work",
        f"at most {100 * side.MOST_WAY:g} % of what was read",
        f"takes more than {FAR:g} times as long as before the launches",
        f"takes {FAR:g} times as long as in its best launch",
        f"no more than {NUMBER[undisturbed.FEW]} more of these",
        # And on a GPU.
        f"draws {device_judge.PICKS} places",
        f"must take {NUMBER[device_judge.FEWEST_TIMES]} times as long",
        f"lasts {1e3 * device_judge.BLOCK_SECONDS:g} ms, if {device_judge.MOST_CALLS} calls take as long",
        f"takes {device_judge.SLOWER:g} times as long as before the launch",
        f"{NUMBER[equal].capitalize()} launches of equal sign decide",
        f"has {len(cheats)} cheats",
    ]


def of_the_published_table() -> list[str]:
    rows, same = map(published("judge").get, ("rows", "same"))
    least, most = min(row["least"] for row in same), max(row["most"] for row in same)
    counts = [sum(row[of] for row in rows if "drawn" in row) for of in ("verdicts", "wrong", "undecided")]
    low, *_, high = sorted(row["median"] for row in same)
    ratios = listed([f"{ratio:g}" for ratio in sorted({row["ratio"] for row in rows})])
    return [
        f"work of {NUMBER[len({row['work'] for row in rows})]} kinds, at {ratios} times the ratio asked for",
        f"code of {NUMBER[len(same)]} kinds, which came out {least:g} to {most:g} times as fast",
        "Of {:,} verdicts {} were wrong, and {} undecided".format(*counts),
        f"Identical code came out {low:.2g} to {high:g} times as fast in the medians of its kinds",
    ]


def of_gpus() -> list[str]:
    """From their reports: what both judges said, alone on the GPU or not, by ratio."""
    line = re.compile(r"(?m)^\| (quiet|busy) \| [\d.]+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) \|$")
    said: dict[str, list[list[float]]] = defaultdict(list)
    for gpu in ("h200", "h100-80gb-hbm3"):
        report = (ROOT / f"data/gpu/nvidia-{gpu}.md").read_text(encoding="utf-8")
        for judge in report.split("## The judge ")[1:]:
            for load, *figures in line.findall(judge):
                said[f"{gpu[:4]} {judge.split()[0]} {load}"].append([*map(float, figures)])
    alone, apart, beside = (said[f"h200 {which}"] for which in ("of quiet", "outside quiet", "of busy"))
    looked, refused = (said[f"h100 {which} busy"] for which in ("of", "outside"))
    assert not any(sum(row[1:4]) for row in (*alone, *apart))
    assert all(row[0] == row[3] for row in (*looked, *refused))
    counts = [f"{sum(row[0] for row in rows):g}" for rows in (alone, apart, looked, refused)]
    races, wrong = (NUMBER[int(figure)] for figure in beside[1][:2])
    return [
        "right in {1} of {1} races of products".format(*counts),
        f"in {median(row[4] for row in apart):.0f} s each",
        "ran {0} races there, alone on the GPU, and was right in {0}".format(*counts),
        f"{wrong} of {races} were wrong, for the answer, at 0.9 times",
        "{2} of {2} races beside that process ended so, and the other judge refused {3} of {3}".format(
            *counts
        ),
    ]


HELD = [of_reading, of_judges, of_the_published_table, of_gpus]


def test_the_page_says_what_is_so() -> None:
    text = " ".join((PAGE + (ROOT / "docs" / "judge.md").read_text(encoding="utf-8")).split())
    assert [words for figures in HELD for words in figures() if words not in text] == []


def test_no_other_sentence_of_the_page_has_a_number() -> None:
    text = " ".join(re.sub(r"(?m)^\d\. |\]\([^)]*\)", " ", PAGE).split())
    for words in (words for figures in HELD for words in figures()):
        text = text.replace(words, "")
    text = re.sub(r"`[^`]*`|H[12]00|L2", "", text)
    assert re.findall(rf".{{,40}}\b(?:[\d.]*[1-9]|(?:{'|'.join(NUMBER[3:])})\b).{{,20}}", text) == []


def test_the_glossary_is_short_and_has_the_same_numbers() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert 20 <= text.count("\n| ") - 1 <= 40
    assert f"as take {1e3 * BLOCK_SECONDS:g} ms or more" in text
    assert f"off by more than a factor of {FAR:g} |" in text
    assert f"within {100 * (SAME - 1):.0f} % of the ratio" in text
    assert launches.PAIRS == 3 and "two that count, or three where the third can change" in text
    for page in ("index.md", "CONTRIBUTING.md", "docs/architecture.md"):
        assert "glossary.md" in (ROOT / page).read_text(encoding="utf-8"), page
