"""What a timing cell shows of what it measured here, and of what was recorded elsewhere."""

import json
import math
import re

import pytest
import torch
from known_work import busy_for
from repository import CHAPTERS

from autograder import compare, guessed, recall, verdicts, without
from autograder.measuring.device import device_name
from autograder.teaching import recordings
from autograder.teaching.chart import draw
from autograder.teaching.recall import questions
from autograder.teaching.scripts import CAUSES_MIME

VARIANTS = {"loop": lambda numbers: torch.stack([number.sin() for number in numbers]), "one call": torch.sin}


@pytest.fixture(autouse=True)
def forget_findings(monkeypatch):
    monkeypatch.setattr("autograder.teaching.verdicts._found", {})


def test_it_shows_times_ratio_guess_and_claim_as_plain_text(capsys):
    comparison = compare("sines", VARIANTS, inputs=100, guess=2.0, claim="F6", seconds=0.1)
    text = capsys.readouterr().out
    assert comparison.ratio().low > 5
    verdict = "here, on cpu; it holds (1.1× or more, with the whole interval, would hold)"
    for wanted in ("sines", "loop", "one call", "1 (baseline)", "You said 2×, it was ", verdict):
        assert wanted in text
    assert re.search(r"[\d.]+ [mµn]s", text)


def test_nonsense_gets_one_clear_sentence():
    for change, error, sentence in [
        ({"variants": {"one": torch.sin}}, ValueError, "two callables or more"),
        ({"inputs": "3"}, TypeError, "inputs must be a shape, or a function"),
        ({"claim": "Z9"}, ValueError, "There is no claim 'Z9'"),
        ({"variants": {"sine": torch.sin, "cosine": torch.cos}}, ValueError, "'cosine' does not give what"),
        ({"variants": {"a": torch.sin, "b": lambda x: x.double().sin()}}, ValueError, "say why with differ"),
    ]:
        with pytest.raises(error, match=sentence):
            compare("sines", **({"variants": VARIANTS, "inputs": 100, "seconds": 0.01} | change))


@pytest.mark.parametrize("guess", ["two", 0, -2.0, [2.0], math.nan, math.inf, True, None])
def test_what_is_no_guess_gets_one_sentence_and_is_measured(guess, capsys):
    compare("sines", VARIANTS, inputs=100, guess=guess, seconds=0.01)
    text = capsys.readouterr().out
    assert "one call" in text and "You said" not in text
    assert text.count("A guess is one number above 0") == (guess is not None)


def test_without_a_guess_it_measures_and_says_that_none_was_made(capsys):
    compare("sines", VARIANTS, inputs=100, guess=..., claim="F6", seconds=0.05)
    text = capsys.readouterr().out
    assert "No guess yet." in text and "it holds" in text
    guessed("waits", ..., 63, "It waits 63 times.")
    assert capsys.readouterr().out == "waits: 63. No guess yet.\nIt waits 63 times.\n"


def test_a_guess_is_right_near_or_far_off(capsys):
    for truth, *guesses in (
        (7, [7, 7.0], [6, 8], [5, 9, "seven", True]),
        (1000, [1000], [901, 1100], [899, 1101]),
        (2.5, [2.1, 2.9, "2.5"], [1.25, 5], [1.2, 5.1, -2.5]),
        ("calls", ["calls", " Calls"], [], ["bytes", 1]),
        (("state", 50.0), [("state", 50), ["State", 45]], [("state", 30)], [("graph", 50), "state"]),
    ):
        for word, those in zip(("right", "near", "far off"), guesses, strict=True):
            for guess in those:
                guessed("asked", guess, truth)
                assert f": {word}." in capsys.readouterr().out, (guess, truth)


def test_first_guesses_are_kept_and_told_how_near_they_come(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("autograder.teaching.guess.in_notebook", lambda: True)
    for question, guess, truth in ("a", 3, 1.2), ("b", 5, 4.0), ("c", 9, 2), ("d", "x", "x"), ("a", 1, 1.2):
        guessed(question, guess, truth)
    told = "Your guesses so far: 1 right and 1 near (within 2×) of 4, mostly too high."
    assert told in capsys.readouterr().out, "the second guess on a question does not count"
    compare("sines", VARIANTS, inputs=100, guess=0.001, seconds=0.01)
    verdicts("F6")
    assert capsys.readouterr().out.count("(within 2×) of 5, mostly") == 2


def test_a_claim_does_not_hold_where_the_advised_way_is_slower(capsys):
    backwards = dict(reversed(VARIANTS.items()))
    compare("sines backwards", backwards, inputs=100, claim="F6", seconds=0.1)
    assert re.search(r"Claim F6: 0[.\d]+× here, on cpu; it does not hold", capsys.readouterr().out)
    compare("sines", VARIANTS, inputs=100, claim="F6", seconds=0.1)
    verdicts("F6", "A2")
    table = capsys.readouterr().out
    assert "does not hold; holds" in table and "not measured (needs a GPU)" in table
    compare("sines backwards", VARIANTS, inputs=100, claim="F6", seconds=0.1)
    verdicts("F6")  # a cell that is run again replaces what it found
    assert "does not hold" not in capsys.readouterr().out
    compare("sines", VARIANTS, inputs=100, claim="A2", seconds=0.05)
    assert torch.cuda.is_available() or "Claim" not in capsys.readouterr().out, "a CPU decides nothing there"


def test_a_condition_parts_cells_that_hold_from_those_that_do_not(capsys):
    backwards = dict(reversed(VARIANTS.items()))
    compare("sines of 3 float32", VARIANTS, inputs=100, claim="A3", seconds=0.1)
    compare("sines backwards, of float64", backwards, inputs=100, claim="A3", seconds=0.1)
    assert "Claim A3, when the array keeps its dtype: " in capsys.readouterr().out
    verdicts("A3")
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "On one CPU, in one process, when the array keeps its dtype: " in said


def test_variants_may_differ_and_change_their_inputs_which_are_numbers_of_a_shape_or_the_device(capsys):
    unequal = {"sine": torch.sin, "cosine": torch.cos}
    compare("curves", unequal, inputs=100, seconds=0.01, differ="they are two functions")
    in_place = {"new": torch.sin, "in place": torch.Tensor.sin_}
    compare("each gets its own inputs", in_place, inputs=100, seconds=0.01)
    assert "each gets its own inputs" in capsys.readouterr().out
    both = dict.fromkeys(("one", "two"), (seen := list[torch.Tensor]()).append)
    compare("of a shape", both, inputs=(2, 3), seconds=0)
    assert {one.shape for one in seen} == {(2, 3)} and len({one.sum().item() for one in seen}) > 3
    compare("of the device", both, only="cpu", seconds=0)
    assert seen[-1] == "cpu"


RECORDED = {
    "recorded": lambda numbers: busy_for(0.006 if torch.is_grad_enabled() else 0.003),
    "not recorded": lambda numbers: busy_for(0.003),
}
NEEDS_A_TAPE = dict.fromkeys(("one", "two"), lambda numbers: numbers.requires_grad_().sum().backward())


def test_a_cause_is_taken_away_and_what_went_with_it_is_told(capsys):
    also = without("size", inputs=lambda generator, device: torch.zeros(10, device=device))
    found = compare("busy", RECORDED, inputs=100, because=["recording", also], only="cpu", seconds=0)
    text = capsys.readouterr().out
    gone, refuted = found.shares
    assert found.ratio("cpu").median > 1.6 > 1.2 > gone.gone.median
    assert re.search(r"Without recording, on cpu: [\d.]+× instead of [\d.]+×. (All|Most) of the diff", text)
    assert refuted.word == "none" and "Without size, on cpu: " in text and "refuted (" in text


def test_a_cause_is_drawn_and_folded_under_the_guess(monkeypatch):
    shown = []
    monkeypatch.setattr("autograder.teaching.compare.in_notebook", lambda: True)
    monkeypatch.setattr("autograder.teaching.compare.show", lambda *told: shown.append(told))
    found = compare("busy", RECORDED, inputs=100, because="recording", guess=..., only="cpu", seconds=0)
    ((_, html, data),) = shown
    (kept,) = data[CAUSES_MIME]
    assert kept["cause"] == "recording" and kept["device"] == "cpu" and 0.7 < kept["share"] < 1.3
    summary, _, inside = html.partition("</summary>")
    assert html.startswith("<details>") and "Without" not in summary
    assert "Without recording, on cpu:" in inside
    assert re.search(r"not recorded, without recording: [\d.n]+", inside), "in words, for the chart"
    rows = re.findall(r"<b>([^<]+)</b>", draw(found.timings, None))
    assert rows == ["not recorded", "not recorded, without recording"]


def test_a_comparison_stands_where_its_cause_cannot_be_taken_away(capsys):
    other_then = dict.fromkeys(("one", "the same"), lambda numbers: numbers + torch.is_grad_enabled())
    changes = r"'one, without recording' does not give what 'one' gives: result\[0\] is "
    unequal = without("sines", variants={"sine": torch.sin, "cosine": torch.cos})
    for variants, because, sentence in [
        (RECORDED, "the moon", "Without the moon, on cpu: not measured. Causes with a name are page faults,"),
        (RECORDED, "threads", "Without threads, on cpu: not measured. There is one thread already."),
        (other_then, "recording", f"Without recording, on cpu: not measured. {changes}"),
        (NEEDS_A_TAPE, "recording", "Without recording, on cpu: not measured. element 0 of tensors does not"),
        (VARIANTS, unequal, "Without sines, on cpu: not measured. 'cosine, without sines' does not give"),
    ]:
        found = compare("stands", variants, inputs=100, because=because, only="cpu", seconds=0)
        text = capsys.readouterr().out
        assert re.search(sentence, text), text
        assert found.shares == [] and "1 (baseline)" in text


def test_a_ratio_is_predicted_and_told_beside_the_measured_one(capsys):
    pair = {"one by one": lambda x: [one + 1 for one in x], "at once": lambda x: x + 1}
    how = {"inputs": 100, "because": "prices", "only": "cpu", "seconds": 0}
    found = compare("adding", pair, differ="a list", guess="bytes", **how)
    told = r"Predicted from prices, on cpu: [\d.,]+× \(one by one: calls [^;]+; at once: calls .*\). Measur"
    text = capsys.readouterr().out
    assert re.search(told, text) and "You said bytes, it is mostly calls: far off." in text
    assert all("prices" not in name for timing in found.timings for name in timing.seconds)
    compare("busy", RECORDED, **how)
    assert "on cpu: not measured. 'recorded' asks torch for nothing" in capsys.readouterr().out


TAKEN = recordings.Timing("here", "Abacus", {"loop": [4e-3] * 3 + [8e-3] * 4, "one call": [1e-6] * 7})


def test_recorded_devices_are_shown_as_recorded(tmp_path, monkeypatch, capsys):
    path = recordings.add_recording(tmp_path, "cpu", "sines", TAKEN, clock="cpu")
    content = json.loads(path.read_text())
    content["device"] |= {"name": "Some CPU", "driver": "600.1", "torch": "9.9", "date": "2026-01-31"}
    content["timings"]["sines"]["processes"] = [3, 4]
    path.write_text(json.dumps(content))
    monkeypatch.setattr(recordings, "TIMINGS", tmp_path)
    comparison = compare("sines", VARIANTS, inputs=100, seconds=0.05)
    text = capsys.readouterr().out
    assert "recorded: Some CPU, driver 600.1, torch 9.9, 2026-01-31, 2" in text and "8,000× (50 %)" in text
    assert "Outside what was recorded: 4,000× to 8,000× on one CPU." in text
    assert " faster, Some CPU</span>" in (chart := draw(comparison.timings, 3.0)) and "you said 3×" in chart


def test_without_the_only_device_the_recordings_speak(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(recordings, "TIMINGS", tmp_path)
    monkeypatch.setattr("autograder.teaching.compare.devices", lambda: ["cpu"])
    arguments = {"inputs": 100, "guess": 3.0, "claim": "F6", "only": "cuda", "seconds": 0.01}
    assert compare("sines", VARIANTS, **arguments).timings == []
    assert "needs a cuda device. There is none here, and no recording yet." in capsys.readouterr().out
    recordings.add_recording(tmp_path, "cpu", "sines", TAKEN, clock="cuda")
    compare("sines", VARIANTS, **arguments)
    text = capsys.readouterr().out
    assert "here:" not in text and "You said 3×, it was 8,000×: far off." in text


def test_blocks_of_one_call_are_not_recorded_and_have_no_causes(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_RECORD", str(tmp_path))
    monkeypatch.setenv("AUTOGRADER_SECONDS", "cpu=0")
    comparison = compare("sines", VARIANTS, inputs=100, claim="F6", because="recording", seconds=0.05)
    assert comparison.samples["cpu"].blocks["loop"][0].calls == 1 and not comparison.shares
    assert not list(tmp_path.iterdir())


def test_what_was_shown_is_recorded_and_found_again_with_its_origin(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_RECORD", str(tmp_path))
    comparison = compare("sines", VARIANTS, inputs=100, claim="F6", seconds=0.05)
    path = recordings.add_recording(tmp_path, "cpu", "another", TAKEN, clock="cpu")
    timings = json.loads(path.read_text())["timings"]
    assert set(timings) == {"sines", "another"} and timings["sines"]["claim"] == "F6"
    (found,) = recordings.recordings_of("sines", VARIANTS, tmp_path)
    assert found.seconds["loop"] == pytest.approx(comparison.samples["cpu"].seconds("loop"), rel=1e-3)
    origin = torch.__version__, found.facts["date"], found.facts["name"]
    assert all(fact in found.device for fact in origin)
    assert not recordings.recordings_of("sines", {"loop": None, "new": None}, tmp_path), "it lacks a variant"
    assert not recordings.recordings_of("no such title", VARIANTS, tmp_path)


def test_two_processors_that_share_a_name_have_a_record_each(tmp_path, monkeypatch):
    for vector in ("AVX2", "AVX512"):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda vector=vector: vector)
        recordings.add_recording(tmp_path, "cpu", "sines", TAKEN, clock="cpu")
    names = [one.facts["name"] for one in recordings.recordings(tmp_path)["sines"]]
    assert len(names) == 2 and all(device_name("cpu") in name for name in names)


# Questions at a chapter's head about earlier chapters.


def test_each_question_has_one_right_answer():
    for asked in [question.drawn() for question in questions() for _ in range(20)]:
        assert asked.chapter in CHAPTERS and asked.told(asked.answer).startswith("Right. ")
        assert asked.told("no") == f"It is {asked.answer}, not 'no'. {asked.because} ({asked.chapter})"


def test_questions_are_new_until_they_are_answered(capsys):
    asked = [(recall("19", ..., ..., ...), capsys.readouterr().out)[1] for _ in range(4)]
    recall("19", "no", ..., ...)
    told = capsys.readouterr().out
    assert len({*asked}) > 1 and told.startswith("Right: 0 of 3.") and told.count("not 'no'") == 1
    assert asked[-1].rpartition("\n\n")[2].strip() in told, "the same questions"
    with pytest.raises(TypeError, match="takes 3 answers"):
        recall("19", 1)
