"""What the course needs of nbgrader's private parts is in the installed one, and in one of our files."""

import re

import pytest
from nbgrader.api import Gradebook
from repository import ROOT

from autograder.nbgrader_plugin import configure, patches

NAMES = [(owner, name) for owner, names in patches.PRIVATE.items() for name in names]


def test_what_is_missing_is_named_and_so_are_other_arguments(monkeypatch, tmp_path) -> None:
    for owner, name in NAMES:
        with monkeypatch.context() as patched:
            patched.delattr(owner, name)
            with pytest.raises(RuntimeError, match=rf"has no \S*{name}.* tried with nbgrader 0\."):
                configure(None)  # before it changes anything
    monkeypatch.setattr(Gradebook, "__init__", lambda self, url: None)
    monkeypatch.setattr(patches, "MIGRATIONS", tmp_path / "migrations")
    with pytest.raises(RuntimeError) as refused:
        patches.check_nbgrader()
    assert "has no Gradebook(db_url, course_id, authenticator), no folder migrations" in str(refused.value)


def test_the_formgraders_own_clicks_are_allowed() -> None:
    pages = [path.read_text() for path in patches.TEMPLATES.rglob("*") if path.is_file()]
    found = {code for page in pages for code in re.findall(r'(?i)\son[a-z]+="([^"]*)"', page)}
    assert found == set(patches.CLICKS)


def test_one_file_has_all_of_it() -> None:
    private = "|".join(name for _, name in NAMES if name.startswith("_"))
    replaced = r"patch\.object\(Gradebook|(?<!\.)\b(Autograde|Base\w+|Gradebook|\w+Handler)\.\w+ = "
    found = {
        path.relative_to(ROOT / "autograder").as_posix()
        for path in (ROOT / "autograder").rglob("*.py")
        if re.search(rf"\.({private})\b|{replaced}", path.read_text(encoding="utf-8"))
    }
    assert found == {"nbgrader_plugin/patches.py"}
