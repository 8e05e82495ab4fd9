"""Launches fork this process, so every test runs in a fresh one that has a single thread."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="launches need Linux"),
]

HEAD = """
import math, os, time, torch
from autograder.measuring.duel import DuelError
from autograder.measuring.launches import apart, duel_in_launches, launch, warm_up_parent

def inputs(generator, device):
    return torch.rand(100, 100, generator=generator)

def times(n):
    def work(matrix):
        for _ in range(n):
            matrix @ matrix
    return work

warm_up_parent()
"""


def run(code, **environment):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | environment
    command = [sys.executable, "-c", HEAD + textwrap.dedent(code)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split("\n")[:-1]


def test_clear_cases_are_decided_both_ways_with_few_launches():
    lines = run("""
        for threshold in (2.0, 8.0):
            verdict = duel_in_launches(times(40), times(10), inputs, threshold=threshold)
            print(verdict.word, len(verdict.logs))
            print(2.5 < verdict.ratio.median < 6)
    """)
    assert lines[0].split()[0] == "faster"
    assert lines[2].split()[0] == "slower"
    assert all(int(lines[i].split()[1]) < 20 for i in (0, 2))
    assert lines[1] == lines[3] == "True"


def test_identical_functions_are_not_called_different():
    (line,) = run("""
        verdict = duel_in_launches(times(10), times(10), inputs, threshold=1.0, most_launches=15)
        print(verdict.word, len(verdict.logs) if verdict.word == "undecided" else "")
    """)
    assert line == "undecided 15"


def test_both_sides_get_the_same_fresh_inputs_in_processes_of_their_own():
    lines = run("""
        log = os.open("/dev/stdout", os.O_WRONLY)

        def tell(matrix):
            os.write(log, f"{os.getpid()} {matrix[0, 0].item():.6f}\\n".encode())
            time.sleep(0.001)

        with apart() as core:
            launch({"a": tell, "b": tell}, inputs, {"a": 1, "b": 1}, core, pairs=2)
    """)
    processes, values = zip(*(line.split() for line in lines), strict=True)
    assert len(set(processes)) == 2
    assert len(values) == 8
    assert len(set(values)) == 4


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("lambda matrix: matrix[1000]", "'fast' raised IndexError: index 1000 is out of bounds"),
        ("lambda matrix: os._exit(3)", "'fast' ended its process"),
        ("lambda matrix: os.abort()", "'fast' ended its process"),
        ("lambda matrix: time.sleep(60)", "'fast' did not return within 0.5 s a call"),
    ],
)
def test_a_side_that_cannot_be_timed_is_named(function, message):
    (line,) = run(f"""
        try:
            duel_in_launches(times(10), {function}, inputs, threshold=1.0, call_seconds=0.5)
        except DuelError as error:
            print(error)
    """)
    assert message in line


@pytest.mark.parametrize("threshold", ["0", "-1", "float('nan')", "float('inf')"])
def test_a_threshold_must_be_a_ratio(threshold):
    (line,) = run(f"""
        try:
            duel_in_launches(times(1), times(1), inputs, threshold={threshold})
        except ValueError as error:
            print(error)
    """)
    assert line.startswith("a threshold is a ratio above 0, not")


def test_no_process_is_left_behind():
    (line,) = run("""
        try:
            duel_in_launches(times(1), lambda matrix: 1 / 0, inputs, threshold=1.0)
        except DuelError:
            pass
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("none")
    """)
    assert line == "none"


def test_a_process_with_threads_is_refused():
    (line,) = run(
        """
        torch.set_num_threads(4)
        torch.rand(1000, 1000) @ torch.rand(1000, 1000)
        try:
            warm_up_parent()
        except DuelError as error:
            print(error)
    """,
        OMP_NUM_THREADS="4",
    )
    assert "threads, so it cannot be forked safely" in line
