"""What a test cell asks of results, inputs and costs, and the card that says what it found."""

import math
import re
import warnings
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from autograder import check
from autograder.judging.outcome import Outcome

rows = lambda generator, device: torch.rand(5, 4, generator=generator).to(device)
picture = lambda generator, device: torch.rand(2, 3, 4, 5, generator=generator).to(device)
array = lambda generator, device: torch.rand(6, generator=generator).numpy()
many = lambda generator, device: torch.rand(1 << 16, generator=generator).to(device)  # 256 KiB
double = lambda numbers: numbers * 2
shapes_only = lambda generator, device: torch.empty(3, device="meta")


def lookup(function, on=rows, like=double, **more):
    return check(function, like=like, on=on, points=2, **more)


def overwritten(numbers):
    root = numbers.sqrt()
    result = root * 1
    root.zero_()
    return result * result * 2


def spoil(values):
    values[0] = 7
    return torch.from_numpy(values)


spoiled = lambda values: torch.tensor(np.r_[7, values[1:]], dtype=torch.float32)


COPIES = {"on": array, "like": lambda values: torch.tensor(values)}
UNATTEMPTED = Mock(side_effect=NotImplementedError("Write your solution here."))
CONSTANT, ONE_CALL = torch.ones(3), {"at_most": {"operations": 1}}
# What is right beside the values: gradients, memory that is shared or not, what a call costs, errors.
RIGHT = [
    (double, {"gradients": True}),
    (torch.from_numpy, COPIES | {"shares": True}),
    (torch.tensor, COPIES | {"shares": False}),
    (double, ONE_CALL),
    (double, {"on": shapes_only}),
    (Mock(side_effect=ValueError("no")), {"raises": ValueError}),
    (Mock(side_effect=ValueError("no")), {"raises": (KeyError, ValueError)}),
]
WRONG = [
    (lambda n: n + 2, {}, "failed", "result[0, 0] is"),
    (lambda n: (n * 2).double(), {}, "failed", "has the dtype torch.float64, expected torch.float32"),
    (lambda n: (n * 2)[1:], {}, "failed", "has the shape (4, 4), expected (5, 4)"),
    (lambda n: (n * 2).tolist(), {}, "failed", "is of type list, expected a tensor of shape (5, 4)"),
    (lambda n: None, {}, "failed", "Does your function end with a return?"),
    (lambda n: n * float("nan"), {}, "failed", "is nan, expected"),
    (lambda n: (n * 2).to("meta"), {}, "failed", "has the device meta, expected cpu"),
    (spoil, {"on": array, "like": spoiled}, "failed", "changed its input"),
    (lambda n: 1 / 0, {}, "error", "ZeroDivisionError: division by zero"),
    (lambda n: n.view(-1).mul(2).view(5, 4), {}, "error", "not contiguous"),
    (UNATTEMPTED, {}, "not attempted", "not attempted"),
    (UNATTEMPTED, {"raises": RuntimeError}, "not attempted", "not attempted"),
    (lambda n: n.detach() * 2, {"gradients": True}, "failed", ""),
    (lambda n: n + n.detach(), {"gradients": True}, "failed", "gradient[0][0, 0] is 0.5, expected 1"),
    (overwritten, {"gradients": True}, "error", "the backward pass failed: one of the variables needed for"),
    (torch.tensor, COPIES | {"shares": True}, "failed", ""),
    (torch.from_numpy, COPIES | {"shares": False}, "failed", ""),
    (lambda n: n + 0 + n, ONE_CALL, "failed", "right, but with 2 operations; at most 1 operation allowed"),
    (lambda n: n * CONSTANT * 2, {"on": shapes_only}, "error", "tensor of shape (3,)"),
    (Mock(side_effect=ValueError("no")), {"raises": KeyError}, "failed", "expected KeyError"),
    (double, {"raises": KeyError}, "failed", "expected KeyError, but got a result of type Tensor"),
]


def test_a_right_answer_gets_all_points_and_so_does_what_is_right_beside_the_values(capsys):
    outcome = lookup(lambda numbers: numbers + numbers)
    assert (outcome.word, outcome.points, repr(outcome)) == ("passed", 2, "2")
    assert "✓ passed" in capsys.readouterr().out
    double(torch.empty(3, device="meta"))  # the first such call imports a great deal, and takes too long
    assert [number for number, (function, asked) in enumerate(RIGHT) if not lookup(function, **asked)] == []


@pytest.mark.parametrize(("function", "asked", "word", "message"), WRONG)
def test_a_wrong_answer_gets_nothing_and_is_told_why(function, asked, word, message, capsys):
    outcome = lookup(function, **asked)
    assert (outcome.word, outcome.points) == (word, 0)
    text = capsys.readouterr().out
    assert message in text and ("Input: " in text or word == "not attempted")


def test_pictures_come_in_channels_last_order_too():
    strides = []
    lookup(lambda pictures: strides.append(pictures.stride()) or pictures * 2, on=picture)
    assert len(set(strides)) == 3


def test_values_are_compared_in_higher_precision(capsys):
    exact, one_by_one = torch.sum, lambda numbers: numbers.cumsum(0)[-1]
    assert lookup(one_by_one, on=many, like=exact).word == "passed"
    # A sum in 16 bits is a multiple of 32: by chance it may be right to five digits, but not to seven.
    short = lookup(lambda numbers: numbers.half().sum().float(), on=many, like=exact, tolerance=1e-7)
    assert short.word == "failed"
    capsys.readouterr()
    assert lookup(lambda numbers: numbers * 2 + 2e-7, tolerance=0.0).word == "failed"
    got, expected = re.search(r"is (\S+), expected (\S+)\.", capsys.readouterr().out).groups()
    assert got != expected, "numbers that look alike are shown in full"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_numbers_with_no_square_are_compared(dtype):
    for got, expected in [
        ([1e38, 1e38], [1e38, 2e38]),
        ([1e200, 1e200], [1e200, 2e200]),  # both are inf in float32
        ([1.0, 5.0], [1.0, math.inf]),
        ([1.0, math.inf], [1.0, -math.inf]),
        ([1e-200, 1e-200], [1e-200, 2e-200]),
    ]:
        one, other = torch.tensor(got, dtype=dtype), torch.tensor(expected, dtype=dtype)
        gives = lambda value: lambda numbers: value.clone()
        assert lookup(gives(other), like=gives(other)).points == 2
        assert lookup(gives(one), like=gives(other)).points == 2 * torch.equal(one, other), (got, expected)


def test_points_grow_with_the_memory_that_is_saved(capsys):
    parts = lambda number: lambda values: sum(part.exp().sum() for part in values.chunk(number))
    asked = 40_000  # between a fourth and an eighth of what is given
    found = {number: lookup(parts(number), on=many, like=parts(1), peak=asked) for number in (8, 4, 1)}
    assert (found[8].word, found[8].points) == ("passed", 2)
    assert (found[4].word, found[1].points) == ("failed", 0)
    assert found[4].points == pytest.approx(2 * math.log(4) / math.log(262144 / asked), abs=0.03)
    text = capsys.readouterr().out
    assert "of 2 points: they grow with the logarithm, from 0 at 262 kB and more to all at 40 kB." in text
    assert lookup(lambda values: values.exp().sum() + 1, on=many, like=parts(1), peak=asked).points == 0
    with pytest.raises(ValueError, match="peak must be below what the given version has at once"):
        lookup(parts(8), on=many, like=parts(8), peak=asked)


def test_warnings_cost_nothing_and_are_passed_on(capsys):
    assert lookup(lambda numbers: warnings.warn("mind the gap", stacklevel=1) or numbers * 2).points == 2
    captured = capsys.readouterr()
    assert (captured.out.count("mind the gap"), captured.err) == (1, "")


def test_the_first_difference_in_nested_results_is_named_and_equal_ones_are_equal(capsys):
    for got, expected, message in [
        ({"a": 1}, {"b": 1}, "result has the keys ['a'], expected ['b']."),
        ((1, 2), (1, 2, 3), "result has 2 items, expected 3."),
        (True, 1, "result is of type bool, expected the number 1."),
        ("x" * 999, "y", "xxx …, expected 'y'."),
        ([0, torch.tensor([1, 4])], [0, torch.tensor([1, 3])], "result[1][1] is 4, expected 3."),
    ]:
        assert lookup(lambda numbers, it=got: it, like=lambda numbers, it=expected: it).word == "failed"
        assert message in capsys.readouterr().out
    for value in (math.nan, math.inf, 3, "text", (), {"k": [torch.zeros(0)]}, None):
        assert lookup(lambda numbers, it=value: it, like=lambda numbers, it=value: it).points == 2, value


def test_a_test_cell_written_wrongly_is_told_so():
    for arguments, sentence in [
        ({"function": 3}, "the answer must be a function to call, not int"),
        ({"on": [rows, "x"]}, "on must be a function to call, not str"),
        ({"points": 0}, "points must be above 0"),
    ]:
        with pytest.raises((TypeError, ValueError), match=sentence):
            check(**({"function": double, "like": double, "on": rows, "points": 1} | arguments))


# The card shows what an answer said as text, whatever characters are in it.

SAYS = "✓ passed: right in all 4 cases. (1 of 1 points)"


def test_what_does_not_show_is_written_out() -> None:
    for said, shown in {
        "wrong \u202e dessap": r"wrong \u202e dessap",
        "a\u2066b\u2069\u200f\u061c": r"a\u2066b\u2069\u200f\u061c",
        "a\u200bb\ufeff\u00ad\U000e0041": r"a\u200bb\ufeff\xad\U000e0041",
        "\x1b[2J\x08\r\x00": r"\x1b[2J\x08\r\x00",
        "a\u2028b\x85\x0c": r"a\u2028b\x85\x0c",
        "\ud800": "\ufffd",
        "Grüße, 你好, שלום, 3\u00a0ms, é\u0301, 👍🏽": "Grüße, 你好, שלום, 3\u00a0ms, é\u0301, 👍🏽",
    }.items():
        card = Outcome("failed", 0, 1, said, [said])
        for form in (card.text(), card.html()):
            assert form.count(shown) == 2
            form.encode()


def test_the_first_line_is_the_cards_own_and_no_formula_is_typeset() -> None:
    card = Outcome("failed", 0, 1, f"wrong\n{SAYS}", [f"and\n{SAYS}"])
    assert [line for line in card.text().split("\n") if line.startswith("✓")] == []
    assert card.text().startswith("✗ failed: wrong ✓ passed")
    classes = card.html().partition('class="')[2].partition('"')[0].split()
    assert {"tex2jax_ignore", "mathjax_ignore"} <= set(classes)
