"""The repository's address, for which there is one place, and where it stands besides."""

import re
from pathlib import Path

import nbformat
import pytest
from repository import ROOT, all_files, copy_files

from autograder.__main__ import main
from autograder.authoring import builder
from autograder.authoring.sources import address

OURS = address(ROOT).removeprefix("https://github.com/")
LAUNCH = "course/index.ipynb"
CHAPTER = "course/08_many_gpus.ipynb"
SOLUTION = "solutions/08_many_gpus/08_many_gpus.py"
EXERCISE = "exercises/08_many_gpus/08_many_gpus.ipynb"
# A page that says where the repository is in every way, and speaks of others.
PAGE = """\
Code: https://github.com/{0}/blob/main/README.md, git@github.com:{0}.git, (https://github.com/{0}).
Launch: https://colab.research.google.com/github/{0}/blob/main/a.ipynb https://mybinder.org/v2/gh/{0}/HEAD
Hub: https://hub.org/hub/user-redirect/git-pull?repo=https%3A%2F%2Fgithub.com%2F{1}%2F{2}&urlpath=lab%2Ftree%2F{2}%2Fcourse
Others' machines: https://codespaces.new/{0} https://kaggle.com/kernels/welcome?src=https://github.com/{0}/blob/main/a.ipynb
Others: https://github.com/pytorch/pytorch https://github.com/{3}-and-more
<!-- three of them: built by make notebooks -->
"""


@pytest.mark.needs("git")
def test_every_address_is_that_of_the_project() -> None:
    owner, name = OURS.split("/")
    theirs = rf"(?:{owner}|your_name)/[\w.-]*\w|[\w.-]+/(?:{name}|fast-pytorch)\b"
    address = re.compile(rf"(?i)(?:github\.com[/:]|/github/|/gh/)({theirs})")
    for file in all_files():
        text = (ROOT / file).read_bytes().decode(errors="replace")
        assert {found[1].removesuffix(".git") for found in address.finditer(text)} <= {OURS}, file


def test_the_readme_launches_the_front_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"](https://mybinder.org/v2/gh/{OURS}/HEAD?urlpath=lab/tree/{LAUNCH})" in readme
    assert f"](https://colab.research.google.com/github/{OURS}/blob/main/{LAUNCH})" in readme
    assert (ROOT / LAUNCH).is_file()


@pytest.mark.slow
def test_a_fork_has_its_address_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_files(tmp_path, ["nbgrader_config.py", CHAPTER, CHAPTER.replace("ipynb", "py"), SOLUTION, EXERCISE])
    repository = "ada-l/my.notes_2"
    (tmp_path / "pyproject.toml").write_text(
        f'[project.urls]\nRepository = "https://github.com/{repository}"\n'
    )
    (tmp_path / "docs").mkdir()
    for page in ("README.md", "docs/page.md"):
        (tmp_path / page).write_text(
            f"{PAGE.format(OURS, *OURS.split('/'), OURS)}<!-- end of the three -->\n"
        )
    monkeypatch.chdir(tmp_path)
    before = nbformat.read(CHAPTER, as_version=4)
    assert main(["notebooks"]) == 0
    for page in ("README.md", "docs/page.md"):
        text = (tmp_path / page).read_text()
        assert text.startswith(PAGE.format(repository, *repository.split("/"), OURS)), page
    for notebook in (CHAPTER, SOLUTION.replace(".py", ".ipynb"), EXERCISE):
        assert f'"https://github.com/{repository}"' in nbformat.read(notebook, as_version=4).cells[0].source
    after = nbformat.read(CHAPTER, as_version=4)
    assert [cell.get("outputs") for cell in after.cells] == [cell.get("outputs") for cell in before.cells]


def test_without_an_address_nothing_is_built(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project.urls]\n")
    with pytest.raises(builder.BuildError, match="lacks a line `Repository = "):
        address(tmp_path)
