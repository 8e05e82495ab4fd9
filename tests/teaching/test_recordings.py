import json
import subprocess
import sys

import torch

from autograder.teaching import recordings


def test_what_is_written_is_found_again_with_its_origin(tmp_path):
    seconds = {"slow": [4.0, 4.0, 4.0], "fast": [2.0, 1.0, 2.0]}
    path = recordings.add_recording(tmp_path, "cpu", "a title", seconds, clock="cpu", claim="A1")
    recordings.add_recording(tmp_path, "cpu", "another", seconds, clock="cpu")
    (found,) = recordings.recordings_of("a title", seconds, tmp_path)
    assert found.ratio("slow", "fast").median == 2
    assert found.device["torch"] == torch.__version__ in found.label
    assert found.device["date"] in found.label
    assert found.device["name"] == recordings.device_name("cpu") in found.label
    assert sorted(json.loads(path.read_text())["timings"]) == ["a title", "another"]


def test_a_recording_without_the_variants_of_the_cell_is_not_used(tmp_path):
    recordings.add_recording(tmp_path, "cpu", "a title", {"slow": [1.0], "fast": [1.0]}, clock="cpu")
    assert not recordings.recordings_of("a title", {"slow": None, "new": None}, tmp_path)
    assert not recordings.recordings_of("no such title", {"slow": None}, tmp_path)


def test_importing_the_package_loads_nothing_that_only_some_cells_need():
    heavy = ("matplotlib", "nbgrader", "IPython", "distributed")
    code = f"import sys; from autograder import *; print(*[n for n in {heavy} if n in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == ""
