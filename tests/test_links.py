"""What stands in many files, and one command that changes it everywhere: the repository's address, for which
there is one place, and the version.
"""

import re
import shutil
from datetime import date
from pathlib import Path

import nbformat
import pytest
from programs import commit, git
from repository import ROOT, copy_files

from autograder.__main__ import main
from autograder.authoring import builder, links
from autograder.authoring.release import SAID_IN
from autograder.files import write_whole

pytestmark = pytest.mark.needs("git")

OURS = links.repository(ROOT)
LAUNCH = "course/index.ipynb"
SOURCES = ("course/index.py", "solutions/00_measuring/00_measuring.py")
# A page that says where the repository is in every way, and speaks of others.
PAGE = """\
Code: https://github.com/{0}/blob/main/README.md, git@github.com:{0}.git, (https://github.com/{0}).
Launch: https://colab.research.google.com/github/{0}/blob/main/a.ipynb https://mybinder.org/v2/gh/{0}/HEAD
Hub: https://hub.org/hub/user-redirect/git-pull?repo=https%3A%2F%2Fgithub.com%2F{1}%2F{2}&urlpath=lab%2Ftree%2F{2}%2Fcourse
Others' machines: https://codespaces.new/{0} https://kaggle.com/kernels/welcome?src=https://github.com/{0}/blob/main/a.ipynb
Site: https://{1}.github.io/{2}/ and https://github.com/{0}.
Others: https://github.com/pytorch/pytorch https://github.com/{0}-and-more https://github.com/{0}.js
"""


def test_every_address_is_that_of_the_project() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    owner, name = OURS.split("/")
    theirs = rf"(?:{owner}|your_name)/[\w.-]*\w|[\w.-]+/(?:{name}|fast-pytorch)\b"
    address = re.compile(rf"(?i)(?:github\.com[/:]|/github/|/gh/)({theirs})|([\w-]+)\.github\.io/{name}\b")
    for path, text in links.tracked_texts(ROOT).items():
        found = {(found[1] or f"{found[2]}/{name}").removesuffix(".git") for found in address.finditer(text)}
        assert found <= {OURS}, path


def test_the_readme_launches_the_front_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"](https://mybinder.org/v2/gh/{OURS}/HEAD?urlpath=lab/tree/{LAUNCH})" in readme
    assert f"](https://colab.research.google.com/github/{OURS}/blob/main/{LAUNCH})" in readme
    assert (ROOT / LAUNCH).is_file()


# make links.


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small course under git: a chapter with its outputs, an exercise, a page, a picture."""
    tmp_path = tmp_path_factory.mktemp("course")
    copy_files(tmp_path, SOURCES)
    address = f'[project.urls]\nRepository = "https://github.com/{OURS}"\n'
    (tmp_path / "pyproject.toml").write_text(address)
    for source in (tmp_path / name for name in SOURCES):
        nbformat.write(builder.build(source), source.with_suffix(".ipynb"))
    released = (tmp_path / SOURCES[1]).with_suffix(".ipynb").read_text(encoding="utf-8")
    write_whole(tmp_path / "exercises/00_measuring/00_measuring.ipynb", released)
    write_whole(tmp_path / "docs/page.md", PAGE.format(OURS, *OURS.split("/")))
    (tmp_path / "docs/picture.png").write_bytes(b"\x89PNG\0" + f"github.com/{OURS}".encode())
    commit(tmp_path)
    return tmp_path


@pytest.fixture
def checkout(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as the current folder."""
    copy = shutil.copytree(original, tmp_path / "checkout")
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def refused(capsys: pytest.CaptureFixture):
    """Calls `make links`, which must fail; gives what it says."""

    def call(*arguments: str) -> str:
        assert main(["links", *arguments]) == 1, arguments
        return capsys.readouterr().err

    return call


def test_the_address_changes_everywhere(checkout: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(checkout / "docs")
    picture = (checkout / "docs/picture.png").read_bytes()
    assert main(["links", "ada-l/my.notes_2"]) == 0
    assert "https://github.com/ada-l/my.notes_2: 5 files changed" in capsys.readouterr().out
    assert links.repository(checkout) == "ada-l/my.notes_2"
    expected = PAGE.format("ada-l/my.notes_2", "ada-l", "my.notes_2")
    for other in ("-and-more", ".js"):
        expected = expected.replace(f"ada-l/my.notes_2{other}", f"{OURS}{other}")
    assert (checkout / "docs/page.md").read_text() == expected
    assert (checkout / "docs/picture.png").read_bytes() == picture
    for source in (checkout / name for name in SOURCES):
        assert builder.is_current(source.with_suffix(".ipynb"), builder.build(source))
    exercise = nbformat.read(checkout / "exercises/00_measuring/00_measuring.ipynb", as_version=4)
    assert '"https://github.com/ada-l/my.notes_2"' in exercise.cells[0].source

    # Once more, and back: all as before.
    git(checkout, "commit", "--quiet", "--all", "--message", "Moved")
    assert main(["links", "ada-l/my.notes_2"]) == 0
    assert "0 files changed" in capsys.readouterr().out
    assert main(["links", "bob/fast"]) == 0
    assert "ada-l" not in git(checkout, "grep", "--no-color", "-I", "github.com")


def test_what_is_no_repository_is_refused(checkout: Path, refused) -> None:
    for repo in ("ada", "/notes", "github.com/ada/notes", "ada/notes.git", "your_name/notes", "ada/..", ""):
        message = refused(repo)
        assert "make links REPO=ada/fast-pytorch" in message and repo in message
    refused()
    assert not git(checkout, "status", "--porcelain")


def test_no_repository_no_git_and_no_address_are_refused(checkout, tmp_path, monkeypatch, refused) -> None:
    (checkout / "pyproject.toml").write_text("[project.urls]\n")
    assert "lacks a line `Repository = " in refused("ada/notes")
    git(checkout, "checkout", "--quiet", ".")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    shutil.rmtree(checkout / ".git")
    assert "not a git repository" in refused("ada/notes")
    monkeypatch.setenv("PATH", "")
    assert "git is not installed" in refused("ada/notes")
    monkeypatch.chdir(tmp_path)
    assert "not inside the course's repository" in refused("ada/notes")


@pytest.mark.parametrize("name", ["course/index.ipynb", "docs/page.md"])
def test_changes_that_are_not_committed_are_left_alone(checkout: Path, refused, name: str) -> None:
    path = checkout / name
    path.write_text(path.read_text() + "\n")
    before = git(checkout, "diff")
    assert f"commit or undo your changes first, in {name}" in refused("ada/notes")
    assert git(checkout, "diff") == before


# make release.


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy_files(tmp_path, [*SAID_IN, "CHANGELOG.md"])
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ada@example.org")
    commit(tmp_path)
    monkeypatch.setattr("autograder.authoring.builder.find_root", lambda: tmp_path)
    return tmp_path


def test_a_release_says_its_version_everywhere_and_is_tagged(released: Path, capsys) -> None:
    assert main(["release", "7.8.9"]) == 0
    assert 'version = "7.8.9"' in (released / "pyproject.toml").read_text()
    assert "version: 7.8.9" in (released / "CITATION.cff").read_text()
    assert "cff-version: 1.2.0" in (released / "CITATION.cff").read_text()
    changes = (released / "CHANGELOG.md").read_text()
    assert f"## Unreleased\n\n## 7.8.9 ({date.today().isoformat()})\n\n- " in changes
    assert git(released, "describe") == "v7.8.9\n"
    assert not git(released, "status", "--porcelain")
    for version, why in {"7.8.9": "there is a version 7.8.9 already", "7.9.0": "lists nothing below"}.items():
        assert main(["release", version]) == 1 and why in capsys.readouterr().err


def test_what_is_no_version_and_what_is_not_committed_is_refused(released: Path, capsys) -> None:
    for version in ("", "1.2", "v1.2.0", "1.2.0rc1", "1.2.0\n"):
        assert main(["release", version]) == 1, version
        assert "error: " in capsys.readouterr().err
        assert not git(released, "status", "--porcelain")
    with (released / "CITATION.cff").open("a") as file:
        file.write("# more\n")
    assert main(["release", "7.8.9"]) == 1
    assert "CITATION.cff" in capsys.readouterr().err
    assert not git(released, "tag", "--list") and git(released, "rev-list", "--count", "HEAD") == "1\n"


def test_the_files_agree_on_the_version() -> None:
    said = {name: line.search((ROOT / name).read_text(encoding="utf-8"))[0] for name, line in SAID_IN.items()}
    assert len({"".join(c for c in text if c in "0123456789.") for text in said.values()}) == 1, said
