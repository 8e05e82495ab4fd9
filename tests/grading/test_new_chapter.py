"""A new chapter is complete from the start: it builds, passes the tests, and its answers get their points."""

import sys

import pytest
from lab_server import mark_installed
from programs import environment, printed
from repository import ROOT, all_files, copy_files
from test_all_answers import grade

from autograder.__main__ import main
from autograder.authoring.course_commands import new_chapter
from autograder.files import write_whole

NAME = "77_sparse_rows"
MAP = 'course_map(\n    {\n        "01_one": "one",\n    }\n)\n'
SCRIPTS = [f"course/{NAME}.py", f"solutions/{NAME}/{NAME}.py", f"tests/answers/{NAME}.py"]


ODD = ("", "topic", "15", "1_topic", "15_", "15_Topic", "15-topic", "15_a__b", "15_topic.py", "../15_topic")
REFUSED = {
    **{name: f"{name!r} is no name for a chapter" for name in ODD},
    "01_two": "01_two cannot be added: there is course/01_one.py",
    "15_one": "15_one cannot be added: there is course/01_one.py",
    "02_two": "02_two cannot be added: there is tests/answers/02_other.py",
}


def test_a_name_of_another_form_or_one_that_exists_is_refused(tmp_path, monkeypatch, capsys):
    for folder in ("course", "solutions/01_one", "tests/answers"):
        write_whole(tmp_path / folder / "01_one.py", "")
    write_whole(tmp_path / "course/index.py", MAP)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / "course")
    (tmp_path / "tests/answers/02_other.py").touch()
    before = set(tmp_path.rglob("*"))
    for name, why in REFUSED.items():
        assert main(["new-chapter", name]) == 1 and f"error: {why}" in capsys.readouterr().err
        assert set(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_a_new_chapter_builds_and_passes_the_tests(tmp_path):
    scratch = tmp_path / "scratch"
    copy_files(scratch, all_files())
    mark_installed(scratch)

    def run(*command: str) -> None:
        env = {key: value for key, value in environment().items() if not key.startswith("PYTEST")}
        printed(*command, cwd=scratch, env=env)

    make = ("make", f"PYTHON={sys.executable}")
    run(*make, "new-chapter", f"NAME={NAME}")
    run(*make, "notebooks")
    texts = [(scratch / script).read_text(encoding="utf-8") for script in SCRIPTS]
    assert not any("NN" in text or "New topic" in text for text in texts)
    assert (scratch / "README.md").read_bytes() == (ROOT / "README.md").read_bytes()
    # What `make check` runs, as far as it looks at this chapter.
    run(sys.executable, "-m", "ruff", "format", "--check", *SCRIPTS)
    run(sys.executable, "-m", "ruff", "check", *SCRIPTS)
    looks = f"{NAME} or test_every or (test_notebooks and not links)"
    looked_at = ("test_notebooks.py", "grading/test_answers.py")
    tests = ("pytest", "-m", "not slow", "-k", looks, "-p", "no:cacheprovider")
    run(sys.executable, "-m", *tests, *(f"tests/{file}" for file in looked_at))


@pytest.mark.slow
def test_its_answers_get_what_they_are_worth(tmp_path, one_sandbox):
    for folder in ("solutions", "tests/answers"):
        (tmp_path / folder).mkdir(parents=True)
    copy_files(tmp_path, ("pyproject.toml", "nbgrader_config.py", "course/index.py"))
    new_chapter(tmp_path, NAME)
    assert grade(NAME, tmp_path / "class", one_sandbox, tmp_path) == []
