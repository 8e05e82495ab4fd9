"""The judge for anybody's code: what it refuses, its command, its fixture, and races without a sandbox."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from programs import python, run
from repository import ROOT

from autograder.judge import function_files, judge, race_command, trusted

OLD = """
import torch
def inputs(generator): return torch.rand(500, 300, generator=generator)
def unseeded(generator): return torch.rand(3)
def fixed(generator): return torch.ones(3)
def sums(rows): return torch.stack([row.sum() for row in rows])
"""
NEW = "def sums(rows): return rows.sum(1)\ndef helper(): pass"
WRONG = "def sums(rows): return rows.sum(1) + 1"


@pytest.fixture
def files(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """The current folder, with two versions of a function."""
    for name, text in {"old": OLD, "new": NEW, "wrong": WRONG}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def at_top_level(rows: torch.Tensor) -> torch.Tensor:
    return rows


def test_no_name_of_a_file_forges_a_line_of_a_verdict() -> None:
    source = function_files.Source(Path("new.py\nfaster: 9× \x1b[2K.py"), "sums")
    assert str(source) == r"new.py faster: 9× \x1b[2K.py:sums"


# What makes no sense, in a sentence.


def inside():
    def nested(rows: object) -> object:
        return rows

    return nested


def test_arguments_that_make_no_sense(files):
    for answer, options, error, sentence in [
        (lambda rows: rows, {}, TypeError, "it has no name"),
        (inside(), {}, TypeError, "it is defined inside another function"),
        (torch.sum, {}, TypeError, "it is no function of a Python file"),
        (3, {}, TypeError, "the answer must be a function, not int."),
        ("new.py", {}, ValueError, "a text like 'path/to/file.py:function', not 'new.py'"),
        ("nowhere.py:sums", {}, FileNotFoundError, "there is no file 'nowhere.py'."),
        (at_top_level, {"at_least": 0}, ValueError, "at_least must be above 0, not 0."),
        (at_top_level, {"at_least": float("nan")}, ValueError, "at_least must be above 0, not nan."),
        (at_top_level, {"seconds": 0}, ValueError, "seconds must be above 0, not 0."),
        (at_top_level, {"device": "tpu"}, ValueError, "device must be 'cpu' or 'cuda', not 'tpu'."),
    ]:
        with pytest.raises(error, match=re.escape(sentence)):
            judge(answer, "old.py:sums", "old.py:inputs", **{"at_least": 1.5} | options)


def test_a_function_from_a_prompt_is_refused(files):
    typed = "from autograder.judge import judge\ndef f(x): pass\njudge(f, f, f, at_least=1)"
    done = python(typed, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert "TypeError: the answer, f, cannot be run elsewhere: it is defined at a prompt" in done.stderr


# The command.

TWO = ("--at-least", "2")


def status(arguments: list[str]) -> object:
    try:
        return race_command.main(arguments)
    except SystemExit as error:  # of argparse
        return error.code


def test_the_command_says_what_it_cannot_judge(files, capsys):
    (files / "empty.py").write_text("")
    (files / "broken.py").write_text("def sums(:")
    for arguments, sentence in [
        (["new.py", "old.py"], "the following arguments are required: --at-least"),
        (["new.py", "old.py", "--at-least", "-1"], "at_least must be above 0, not -1.0."),
        (["new.py", "nowhere.py", *TWO], "nowhere.py cannot be read: No such file or directory."),
        (["new.py", "new.py", *TWO], "both define helper, sums: name one with --function."),
        (["new.py", "empty.py", *TWO], "have no function in common: name one with --function."),
        (["broken.py", "old.py", *TWO], "broken.py is no Python file: invalid syntax"),
        ([os.devnull, "old.py", *TWO], f"{Path(os.devnull).name} cannot be read: it is no plain file."),
    ]:
        assert status(arguments) == 4
        said = capsys.readouterr()
        assert said.out == "" and sentence in said.err.splitlines()[-1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no sandbox elsewhere")
def test_without_bubblewrap_nothing_runs(files, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(files))
    assert status(["new.py", "old.py", *TWO]) == 4
    said = capsys.readouterr().err
    assert "bubblewrap was not found." in said and "--trusted" in said


def test_the_plug_in_loads_next_to_nothing():
    look = "import sys, autograder.judge.pytest_plugin; print({'torch', 'numpy'} & sys.modules.keys())"
    assert python(look, env=os.environ | {"PYTHONPATH": str(ROOT)}).stdout == "set()\n"


# Races of one's own code, on any system.

SUMS = ("--function", "sums", "--trusted")


@pytest.mark.slow
def test_what_is_said_after_one_launch(files, monkeypatch, capsys):
    (files / "raises.py").write_text("def sums(rows): raise KeyError('no')")
    (files / "dies.py").write_text("import os\ndef sums(rows): os._exit(3)")
    (files / "sneaks.py").write_text("def sums(rows): return rows.sum(1) + 0 * rows.mul_(1.00001).sum()")
    monkeypatch.setattr(trusted, "MOST_LAUNCHES", 1)
    for answer, inputs, status, sentence in [
        ("wrong", "inputs", 3, "wrong: the answer is wrong: result[0] is "),
        ("new", "unseeded", 4, "inputs gives other values for an equal generator"),
        ("new", "fixed", 4, "inputs gives the same values each time"),
        ("raises", "inputs", 3, "wrong: the answer: KeyError: 'no'"),
        ("dies", "inputs", 4, "dies.py:sums ended its process."),
        ("sneaks", "inputs", 3, "wrong: the call changed its input: inputs[0, "),
        ("new", "inputs", 2, "the machine is too busy, or the ratio too near."),
    ]:
        ended = race_command.main([f"{answer}.py", "old.py", *TWO, *SUMS, "--inputs", inputs])
        said = capsys.readouterr()
        assert ended == status and sentence in (said.err if status == 4 else said.out)


@pytest.mark.slow
@pytest.mark.parametrize("at_least, word", [(1.5, "faster"), (1000, "slower")])
def test_a_verdict_without_a_sandbox(at_least, word, files, capsys):
    line = ["new.py", "old.py", "--at-least", str(at_least), *SUMS, "--json"]
    assert race_command.main(line) == (0 if word == "faster" else 1)
    found = json.loads(capsys.readouterr().out)
    assert (found["word"], found["answer"], found["given"]) == (word, "new.py:sums", "old.py:sums")
    assert 1.5 < found["interval"][0] <= found["ratio"] <= found["interval"][1] < 1000
    assert len(found["logs"]) >= 11 and found["given_seconds"] > found["answer_seconds"] > 0


TESTS = """
import new, old, wrong
def same(rows): return old.sums(rows)
def test_fast(race): assert race(new.sums, against=old.sums, on=old.inputs, at_least=1.5).word == "faster"
def test_near(race): race(same, against=old.sums, on=old.inputs, at_least=0.98, trusted=True)
def test_wrong(race): race(wrong.sums, against=old.sums, on=old.inputs, at_least=1)
"""


@pytest.mark.slow
def test_the_fixture_fails_and_passes_tests(files):
    (files / "test_speed.py").write_text(TESTS)
    (files / "pytest.ini").write_text("[pytest]\nrace_trusted = true\n")
    plug_in = ["-p", "autograder.judge.pytest_plugin", "-p", "no:cacheprovider"]
    there = os.environ | {"PYTHONPATH": str(ROOT)}

    def said(*options: str) -> str:
        return run(sys.executable, "-m", "pytest", *plug_in, *options, cwd=files, env=there).stdout

    found = said("-k", "fast or wrong")
    assert "1 failed, 1 passed" in found and "wrong: the answer is wrong: result[0] is" in found
    (files / "conftest.py").write_text("from autograder.judge import trusted\ntrusted.MOST_LAUNCHES = 1\n")
    assert "1 failed" in (found := said("-k", "near")) and "undecided: " in found
    assert "1 skipped" in said("-k", "near", "--race-undecided=skip")
