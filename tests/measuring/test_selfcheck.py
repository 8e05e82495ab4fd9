import json
import random
import time

import pytest

from autograder import race
from autograder.measuring import selfcheck


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    selfcheck.check_here.cache_clear()
    yield tmp_path
    selfcheck.check_here.cache_clear()


def test_it_keeps_what_it_saw(fresh):
    noise = selfcheck.check_here()
    (path,) = fresh.rglob("selfcheck-notebook.json")
    assert json.loads(path.read_text())["spread"] == noise.spread < selfcheck.MOST_NOISE


def test_a_machine_that_is_too_noisy_does_not_judge(fresh, monkeypatch, capsys):
    # One call fills a block: several would come nearer to their mean.
    def unsteady(matrix):
        end = time.process_time() + 3e-3 * 2 ** random.uniform(0, 4)
        while time.process_time() < end:
            pass

    monkeypatch.setattr(selfcheck, "_work", unsteady)
    outcome = race(
        lambda numbers: numbers + 1,
        against=lambda numbers: sum(numbers for _ in range(9)) - 8 * numbers + 1,
        on=selfcheck._inputs,
        at_least={"cpu": 3},
        points=1,
    )
    assert outcome.word == "undecided"
    assert "too noisy to judge speed just now: the same function against itself" in capsys.readouterr().out
