import contextlib
import math
import re
import sys
from unittest.mock import Mock

import pytest
import torch
from known_work import busy_for

from autograder import check, race
from autograder.judging import calls
from autograder.measuring import duel


@pytest.fixture(autouse=True)
def a_quiet_machine(monkeypatch):
    """What a machine that is too noisy does, tests/measuring/test_limits.py tells."""
    monkeypatch.setattr("autograder.judging.race.check_here", lambda: None)


numbers = lambda generator, device: torch.rand(300, generator=generator).to(device)
slow = lambda values: torch.stack([value * 2 for value in values])
fast = lambda values: values * 2


def run(function, **more):
    asked = {"against": slow, "on": numbers, "at_least": {"cpu": 4}, "points": 3}
    return race(function, **(asked | more))


def test_a_fast_answer_gets_all_points_and_a_picture(capsys):
    outcome = run(fast)
    assert (outcome.word, outcome.points) == ("passed", 3)
    assert list(outcome.bars) == ["given", "asked for", "yours"] and "width:100.0%" in outcome.html()
    text = capsys.readouterr().out
    assert "as fast as given on cpu, 4× asked for" in text and "█" in text


def test_the_given_version_itself_gets_nothing_and_is_told_what_it_does(capsys, monkeypatch):
    monkeypatch.setattr("autograder.judging.progress.note_outcome", lambda word: 2)
    outcome = run(lambda values: slow(values))
    assert (outcome.word, outcome.points) == ("failed", 0) and "below 1.4× there are none" in outcome.text()
    said = capsys.readouterr().out
    assert "One call of yours asks torch for 301 operations" in said and "the hints below" in said


@pytest.fixture
def decided(monkeypatch):
    """Decides races beforehand: the ratios that launches gave, and how long a call of the answer took."""

    def decide(word, ratios, asked=4, seconds=1.0):
        logs = [math.log(ratio) for ratio in ratios]
        taken = {"slow": [8 * seconds], "fast": [seconds]}
        verdict = duel.Verdict(word, duel.ratio_of_logs(logs), asked, taken, "cpu", logs)
        monkeypatch.setattr("autograder.judging.race.duel_here", lambda *_, **__: verdict)

    return decide


@pytest.mark.parametrize(("best", "medal"), [(7, "Gold"), (9, "Silver"), (11, "Bronze")])
def test_what_passed_earns_a_medal_and_the_best_so_far_is_kept(best, medal, decided, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("autograder.judging.race.in_notebook", lambda: True)
    monkeypatch.setattr("autograder.judging.race.BEST", tmp_path / "best.json")
    known = f'{{"machine": {{"name": "Abacus"}}, "races": {{"<lambda> on <lambda>": {best}}}}}'
    (tmp_path / "best.json").write_text(known)
    decided("faster", [7, 8, 9])
    said = run(fast).details
    assert said[0].startswith(f"{medal}. The course's best answer: {best}×")
    assert ("you may show this" in said[-1]) == (medal == "Gold")
    decided("faster", [5, 6, 7])
    assert run(fast).details[-1] == "Your best so far: 8×."


def test_the_card_says_what_share_of_the_limit_is_reached_and_nothing_beyond_it_is_paid(decided, monkeypatch):
    monkeypatch.setattr("autograder.judging.race.limit", lambda *_, **__: 1e-3)
    decided("faster", [7, 8, 9], seconds=2e-3)
    outcome = run(fast, bytes=1e6)
    assert (outcome.word, outcome.points) == ("passed", 3)
    assert "It reaches 50% of this machine's limit." in outcome.summary
    assert list(outcome.bars)[-1] == "limit of this machine"
    decided("faster", [7, 8, 9], seconds=0.8e-3)
    assert run(fast, bytes=1e6).points == 3, "a limit is measured to within some 20 %"
    decided("faster", [7, 8, 9], seconds=0.5e-3)
    outcome = run(fast, bytes=1e6)
    assert (outcome.word, outcome.points) == ("undecided", 0)
    assert "faster than this machine can be. Your instructor looks at it." in outcome.text()
    assert [lap["too_fast"] for lap in outcome.facts["laps"]] == [True]


def test_short_numbers_are_compared_in_higher_precision():
    coarse = lambda generator, device: torch.rand(4096, generator=generator).bfloat16().to(device)

    def one_by_one(values):
        total = torch.zeros((), dtype=values.dtype)
        for value in values:
            total = total + value
        return total

    assert abs(one_by_one(coarse(torch.Generator(), "cpu")) - 2048) > 1000
    assert run(torch.sum, against=one_by_one, on=coarse).word == "passed"


def test_points_grow_with_the_logarithm_of_the_ratio():
    takes = lambda seconds: lambda values: busy_for(seconds) or values * 2
    outcome = run(takes(0.01), against=takes(0.02), at_least={"cpu": 16}, points=4)
    assert outcome.word == "failed" and outcome.text().startswith("◐ right, not fast yet: ")
    assert outcome.points == pytest.approx(1, abs=0.1), "twice as fast is a quarter of the way from 1 to 16"
    how = "they grow with the logarithm, from 0 at 1× (below 1.4× there are none) to all at 16×"
    assert f"{outcome.points:g} of 4 points: {how}" in outcome.text()


def test_what_is_undecided_or_as_fast_as_asked_for_gets_points_for_what_was_shown(decided, capsys):
    decided("undecided", (2, 3, 4, 5, 8), asked=16)
    outcome = run(fast, at_least={"cpu": 16}, points=4)
    assert (outcome.word, outcome.points) == ("undecided", 1), "twice as fast was shown, four times was seen"
    decided("as fast", (3.95, 3.98, 3.99))
    outcome = run(fast, points=4)
    assert (outcome.word, outcome.points) == ("passed", 4)
    assert "what was asked for, to within 3%: it counts in full" in capsys.readouterr().out


def test_an_answer_that_a_check_found_wrong_is_not_timed_until_it_is_mended():
    broken = [True]

    def sometimes(values):
        return values * 2 if len(values) == 300 or not broken[0] else values

    def few(generator, device):
        return torch.rand(3, generator=generator)

    check(sometimes, like=slow, on=[numbers, few], points=1)
    outcome = run(sometimes)
    assert outcome.word == "failed"
    assert "the test on few found the answer wrong. Mend that first." in outcome.summary
    broken[0] = False
    check(sometimes, like=slow, on=[numbers, few], points=1)
    assert run(sometimes).word == "passed"


def test_a_check_that_passes_does_not_undo_another_one_on_the_same_inputs():
    no_gradients = lambda values: (values * 2).detach()
    assert check(no_gradients, like=slow, on=numbers, points=1, gradients=True).word == "failed"
    assert check(no_gradients, like=slow, on=numbers, points=1).word == "passed"
    assert run(no_gradients).word == "failed"
    # A right answer that costs too much may still race.
    assert check(fast, like=slow, on=numbers, points=1, at_most={"operations": 0}).word == "failed"
    assert run(fast).word == "passed"


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a CUDA device")
def test_a_device_that_is_not_here_costs_no_points(capsys):
    outcome = run(fast, at_least={"cuda": 20})
    assert (outcome.word, outcome.points) == ("not available", 3)
    assert "not counted against you" in capsys.readouterr().out


def test_answers_that_cannot_race_are_told_why(capsys):
    for function, word, message in [
        (lambda values: values * 3, "failed", "not timed, because the answer is wrong: result[0] is"),
        (lambda n: n * 2 + 0 * n.mul_(1.00001), "failed", "not timed, because the call changed its input"),
        (lambda values: (values * 2).double(), "failed", "has the dtype torch.float64"),
        (lambda values: values[1000], "error", "IndexError"),
        (Mock(side_effect=NotImplementedError), "not attempted", ""),
    ]:
        outcome = run(function)
        assert (outcome.word, outcome.points) == (word, 0) and message in capsys.readouterr().out


def test_an_answer_that_takes_too_long_to_be_timed_is_told_so(monkeypatch, capsys):
    monkeypatch.setattr(duel, "LONGEST_CALL", 0.2)
    outcome = run(lambda values: busy_for(0.3) or values * 2)
    assert (outcome.word, outcome.points) == ("failed", 0)
    told = r"your function takes [\d.]+ s for one call; at most 0\.2 s can be timed here"
    assert re.search(told, capsys.readouterr().out)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timer signals")
def test_an_answer_that_never_returns_is_stopped(request, capsys):
    before = calls.call_limit.set(calls.CallLimit(seconds=0.2))
    request.addfinalizer(lambda: calls.call_limit.reset(before))

    def endless(values):
        while True:
            with contextlib.suppress(Exception):
                values = values + 1

    assert run(endless).word == "error" and "did not return within 0.2 s" in capsys.readouterr().out


def test_a_ratio_that_asks_for_nothing_is_refused():
    with pytest.raises(ValueError, match="must be above 1"):
        run(fast, at_least={"cpu": 1})
