"""Verdicts follow from evidence: made-up cells about real claims."""

import warnings
from unittest.mock import Mock

import pytest
from repository import ROOT

from autograder.measuring.duel import Ratio
from autograder.teaching import claims, verdicts
from autograder.teaching.claims import CLAIMS, ScoreError
from autograder.teaching.evidence import Advice, Code, Evidence, Score, decides, holds, judge

SPEED, SMALLER, ON_A_GPU, BEHAVIOUR, COST = "F6", "E3", "A2", "C3", "D4"


def timed(claim: str, times: float, what: str = "a cell", **sides: str) -> Evidence:
    """A timing that gave this ratio, exactly."""
    ratio = Ratio(times, times, times)
    return Evidence(claim, what, "timing", holds(claim, ratio), ratio=ratio, device="Abacus", **sides)


seen = lambda claim, holds: Evidence(claim, "It is so.", "behaviour", holds)


def test_each_claim_has_its_own_threshold_and_device_and_the_whole_interval_counts() -> None:
    assert holds(SMALLER, Ratio(1.09, 1.08, 1.2)) and not holds(SPEED, Ratio(1.09, 1.08, 1.2))
    assert not holds(SPEED, Ratio(1.5, 1.05, 2.0))
    assert decides(SPEED, "cpu") and decides(SPEED, "cuda")
    assert decides(ON_A_GPU, "cuda") and not decides(ON_A_GPU, "cpu")


def test_cells_that_disagree_need_a_condition_that_parts_them() -> None:
    assert judge(BEHAVIOUR, [seen(BEHAVIOUR, False)]) == Score(Advice.WRONG, {"": "It is not so."}, None)
    with pytest.raises(ScoreError, match="F6: 'small' and 'large' say opposite things"):
        judge(SPEED, [timed(SPEED, 2, "small"), timed(SPEED, 0.5, "large")])
    parted = [timed(SPEED, 2, "small", when="it is small"), timed(SPEED, 0.5, "large", unless="it is small")]
    rule = "When it is small: 2× faster; otherwise 2× slower."
    assert judge(SPEED, parted) == Score(Advice.HOLDS_WHEN, {"": rule}, None)
    with pytest.raises(ScoreError, match="the condition 'it is small' does not part"):
        judge(SPEED, [*parted, timed(SPEED, 3, "huge", unless="it is small")])
    with pytest.raises(ScoreError, match="a cell without a condition does not hold: 'never'"):
        judge(SPEED, [*parted, timed(SPEED, 1, "never")])
    with pytest.raises(ScoreError, match="one side of one condition"):
        timed(SPEED, 2, when="it is small", unless="it is large")


def test_documentation_decides_nothing_about_speed_but_gives_a_rule_where_nothing_was_measured() -> None:
    said = Evidence(ON_A_GPU, "It is faster.", "documentation", True, link="https://pytorch.org")
    found = judge(ON_A_GPU, [said])
    assert found.word == "not measured (needs a GPU)"
    assert found.rule == f"When {CLAIMS[ON_A_GPU].use}: so the documentation; there is no figure yet."
    measured = judge(ON_A_GPU, [said, timed(ON_A_GPU, 1.0)])
    assert measured.word == "does not pay" and measured.rule.endswith(": about as fast (1×).")


def test_a_count_says_what_was_counted() -> None:
    def kept(times: float, **sides: str) -> Evidence:
        ratio = Ratio(times, times, times)
        return Evidence("B3", "bytes kept, 20 layers", "counting", times > 1, ratio=ratio, **sides)

    assert judge("B3", [kept(10)]).rule == f"When {CLAIMS['B3'].use}: 10× fewer bytes kept."
    rule = "When it is wide: 10× fewer bytes kept; otherwise 10× more bytes kept."
    assert judge("B3", [kept(10, when="it is wide"), kept(0.1, unless="it is wide")]).rule == rule


def test_a_cost_speaks_neither_for_nor_against() -> None:
    found = judge(COST, [seen(COST, True), timed(COST, 0.006)])
    assert found.word == "holds" and "167× slower" in found.rule


def test_the_articles_code_has_a_verdict_of_its_own() -> None:
    code = lambda holds, **more: Evidence(SPEED, "its example", "code", holds, **more)
    found = judge(SPEED, [timed(SPEED, 2), code(False)])
    assert (found.word, found.code) == ("holds", "wrong")
    assert judge(SPEED, [code(True), code(True, outdated=True)]).code == "outdated"
    assert judge(SPEED, [code(True)]) == Score(Advice.UNKNOWN, {}, Code.RUNS)


def test_cells_without_a_stopwatch_say_what_they_found(capsys: pytest.CaptureFixture[str]) -> None:
    old = lambda: warnings.warn("use the new one", FutureWarning, stacklevel=1) or True
    deprecated = "The parameter 'pretrained' is deprecated since 0.13"
    old_in_torchvision = lambda: warnings.warn(deprecated, UserWarning, stacklevel=1) or True
    refuses = Mock(side_effect=RuntimeError("self must be a matrix\nand more"))
    verdicts.behaviour("C3", "A buffer moves with the module.", True)
    verdicts.fewer("B3", "results that are kept", without=20, following=2)
    verdicts.documented("D6", "Nothing is promised.", "https://pytorch.org")
    verdicts.article_code("B7", "its import", old)
    verdicts.article_code("C4", "pretrained=", old_in_torchvision)
    verdicts.article_code("B1", "mm with a vector", refuses)
    verdicts.article_code("B1", "its assertion", Mock(side_effect=AssertionError))
    assert capsys.readouterr().out.splitlines() == [
        "C3 holds: A buffer moves with the module.",
        "B3 holds: results that are kept (10×)",
        "D6 documented: Nothing is promised.",
        "B7 code outdated: its import",
        "C4 code outdated: pretrained=",
        "B1 code wrong: mm with a vector: RuntimeError: self must be a matrix",
        "B1 code wrong: its assertion: AssertionError: no message",
    ]


def test_a_mistake_in_the_file_of_claims_gets_one_sentence(tmp_path) -> None:
    text = (ROOT / "autograder/teaching/claims.toml").read_text(encoding="utf-8")
    for old, new, sentence in [
        ('promises = "speed"', 'promises = "sped"', "A1: Invalid enum value 'sped' - at `[$].promises`"),
        ("device =", "gpu =", "A1: Object contains unknown field `gpu`"),
        ('promises = "speed"\n', "", "A1: Object missing required field `promises`"),
        ("at_least = 1.08", 'at_least = "much"', "E3: Expected `float`, got `str` - at `[$].at_least`"),
        ("[claims.A1]", "[claims.Z1]", "Z1: there is no source 'Z'"),
        ("[claims.A1]", "[claim.A1]", "Object contains unknown field `claim`"),
        ('kind = "documentation"', 'kind = "rumour"', "F: Invalid enum value 'rumour' - at `[$].kind`"),
        ("[claims.A2]", "[claims.A1]", r"claims\.toml: .* \(at line \d+"),
    ]:
        assert old in text
        (tmp_path / "claims.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(ScoreError, match=sentence):
            claims.read(tmp_path / "claims.toml")
