"""Binder: what repo2docker makes of the repository, without building it."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest
from jupyter_core.paths import jupyter_path
from programs import run
from repository import ROOT

POST_BUILD = ROOT / "postBuild"


@pytest.mark.slow
def test_repo2docker_takes_the_environment() -> None:
    if not importlib.util.find_spec("repo2docker"):
        pytest.skip("jupyter-repo2docker is not installed")
    done = run(sys.executable, "-m", "repo2docker", "--no-build", "--debug", ".", cwd=ROOT)
    said = done.stderr + done.stdout
    assert done.returncode == 0, said
    assert "Building conda environment for python=3.11\n" in said, said
    steps = said.splitlines()
    environment = next(number for number, step in enumerate(steps) if '--file "environment.yml"' in step)
    # The course's own package is installed from the repository, so its files must be there before.
    assert steps.index("COPY --chown=0:0 src/ ${REPO_DIR}/") < environment < steps.index("RUN ./postBuild")
    assert not re.search("cuda|nvidia", said, re.IGNORECASE)


def test_nothing_of_cuda_is_asked_for() -> None:
    environment = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert re.search(r"- pytorch \S+ cpu\*$", environment, re.MULTILINE)
    assert not re.search("cuda|nvidia", environment, re.IGNORECASE)


def test_post_build_turns_off_what_there_is() -> None:
    """A plugin that got another name would be left on, and nothing would say so."""
    script = POST_BUILD.read_text(encoding="utf-8")
    assert os.access(POST_BUILD, os.X_OK)
    names = re.search(r"for plugin in (.*);", script)[1].split()
    folders = [Path(folder) / "labextensions/@jupyter/nbgrader/static" for folder in jupyter_path()]
    code = "".join(file.read_text(encoding="utf-8") for folder in folders for file in folder.glob("*.js"))
    there = set(re.findall(r"@jupyter/nbgrader:([a-z-]+)", code))
    assert there - set(names) == {"validate-assignment"}
    assert set(names) < there
