"""A release: one command writes the version everywhere, or says why it does not."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest
from programs import commit, git
from repository import ROOT

from autograder.__main__ import main
from autograder.authoring.release import SAID_IN, make_release


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    for name in [*SAID_IN, "CHANGELOG.md"]:
        shutil.copy(ROOT / name, tmp_path)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ada@example.org")
    commit(tmp_path)
    monkeypatch.setattr("autograder.authoring.builder.find_root", lambda: tmp_path)
    return tmp_path


def test_a_release_says_its_version_everywhere_and_is_tagged(course: Path) -> None:
    make_release(course, "7.8.9")
    assert 'version = "7.8.9"' in (course / "pyproject.toml").read_text()
    assert "version: 7.8.9" in (course / "CITATION.cff").read_text()
    assert "cff-version: 1.2.0" in (course / "CITATION.cff").read_text()
    changes = (course / "CHANGELOG.md").read_text()
    assert f"## Unreleased\n\n## 7.8.9 ({date.today().isoformat()})\n\n- " in changes
    assert git(course, "describe") == "v7.8.9\n"
    assert not git(course, "status", "--porcelain")


def test_what_is_no_version_and_what_is_not_committed_is_refused(course: Path, capsys) -> None:
    for version in ("", "1.2", "v1.2.0", "1.2.0rc1", "1.2.0\n"):
        assert main(["release", version]) == 1, version
        assert "error: " in capsys.readouterr().err
        assert not git(course, "status", "--porcelain")
    with (course / "CITATION.cff").open("a") as file:
        file.write("# more\n")
    assert main(["release", "7.8.9"]) == 1
    assert "CITATION.cff" in capsys.readouterr().err
    assert not git(course, "tag", "--list") and git(course, "rev-list", "--count", "HEAD") == "1\n"


def test_nothing_new_and_the_same_twice_are_refused(course: Path, capsys) -> None:
    assert main(["release", "7.8.9"]) == 0
    assert main(["release", "7.8.9"]) == 1
    assert "there is a version 7.8.9 already" in capsys.readouterr().err
    assert main(["release", "7.9.0"]) == 1
    assert "lists nothing below '## Unreleased'" in capsys.readouterr().err


def test_the_files_agree_on_the_version() -> None:
    said = {name: line.search((ROOT / name).read_text(encoding="utf-8"))[0] for name, line in SAID_IN.items()}
    assert len({"".join(c for c in text if c in "0123456789.") for text in said.values()}) == 1, said
