"""A cause that is taken away takes its share of a difference with it, and no other: on known code."""

import mmap
import os
import resource
import sys

import pytest
import torch
from known_work import busy_for

from autograder.measuring.causes import CAUSES, take_away, without
from autograder.measuring.clocks import run_block
from autograder.measuring.duel import Side

ones = lambda generator, device: torch.ones(100, device=device)
glibc = pytest.mark.skipif(sys.platform != "linux", reason="only the malloc of Linux is told to keep memory")


briefly = lambda x: busy_for(0.003)


def away(cause, pair, inputs=ones, **how):
    sides = {name: Side(function, inputs) for name, function in pair.items()}
    return take_away(cause, sides, lambda sides: None, clock="cpu", seconds=0.1, **how)


smallest_is_kept = lambda: (torch.tensor(1e-40) * 1).item() != 0


def huge_pages():
    """Whether the system gives new memory in pieces of 2 MB: 64 places in 4 MB lie on few pages."""
    with mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(getattr(mmap, "MADV_HUGEPAGE", 0))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        memory[:: 1 << 16] = bytes(64)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 48


# What shows that a cause is there.
SIGNS = {
    "recording": torch.is_grad_enabled,
    "threads": lambda: torch.get_num_threads() > 1,
    "denormals": smallest_is_kept,
    "huge pages": huge_pages,
}


@pytest.mark.parametrize("cause", SIGNS)
def test_a_setting_takes_a_cause_away_and_is_put_back(cause):
    if cause == "huge pages" and not huge_pages():
        pytest.skip("this system gives no huge pages")
    pair = {"slow": lambda x: busy_for(0.006 if SIGNS[cause]() else 0.003), "fast": briefly}
    share = away(cause, pair, num_threads=2)
    assert 1.6 < share.there.median < 2.4 and 0.8 < share.gone.median < 1.2
    assert share.share > 0.7 and share.word in ("all", "most")
    assert torch.is_grad_enabled() and smallest_is_kept() and (cause != "huge pages" or huge_pages())


def test_half_of_a_difference_is_called_part_of_it():
    pair = {"slow": lambda x: busy_for(0.012 if torch.is_grad_enabled() else 0.006), "fast": briefly}
    share = away("recording", pair)
    assert 0.3 < share.share < 0.7 and share.word in ("part", "most")


def test_what_turns_a_difference_round_is_more_than_all_of_it():
    turned = lambda x: busy_for(0.003 if torch.is_grad_enabled() else 0.012)
    share = away("recording", {"slow": lambda x: busy_for(0.006), "fast": turned})
    assert share.word == "more than all" and "More than all of the difference went with that" in str(share)


def test_a_first_call_is_taken_away_by_another_one_before():
    seen = []

    def slow_at_first(x):
        busy_for(0.003 if any(x is one for one in seen) else 0.009)
        seen.append(x)

    share = away("cold start", {"slow at first": slow_at_first, "fast": briefly})
    assert share.there.median > 2 and share.gone.median < 1.3
    assert share.word in ("all", "most")


@glibc
def test_page_faults_are_taken_away_in_a_copy_of_this_process():
    """Of 160 MB, new or in use: of less, caches hold a part, and more of one place than of malloc's two."""
    used = torch.ones(40_000_000)
    pair = {"new": lambda x: torch.empty(40_000_000).fill_(1), "in use": lambda x: used.fill_(1)}
    share = away("page faults", pair)
    assert share.there.median > 1.5 and share.gone.median < 1.3 and share.share > 0.7
    faults = {name: run_block(side, (None,), 1).faults for name, side in pair.items()}
    assert faults["new"] > 36_000 > 10 * faults["in use"], "here malloc gives memory back as before"


@pytest.mark.parametrize("cause", [pytest.param("page faults", marks=glibc), *SIGNS, "cold start"])
def test_a_cause_that_is_none_is_refuted(cause):
    pair = {"slow": lambda x: busy_for(0.009), "fast": briefly}
    share = away(cause, pair, num_threads=1 + (cause == "threads"))
    assert 2 < share.gone.median < 4
    assert share.word == "none" and "None of the difference went with that: refuted" in str(share)


def test_equals_have_no_difference_to_explain():
    pair = {"one": briefly, "the same": briefly}
    assert "There is no difference here that needs a cause." in str(away("recording", pair))


strided = lambda generator, device: (torch.ones(4_000_000)[::16], torch.ones(250_000))


def test_other_inputs_take_a_cause_away():
    pair = {"as it lies": lambda apart, near: apart + 1, "in a row": lambda apart, near: near + 1}
    in_a_row = lambda generator, device: (torch.ones(250_000),) * 2
    share = away(without("order of memory", inputs=in_a_row), pair, strided)
    assert share.cause == "order of memory" and share.there.median > 1.5 and share.share > 0.7
    fewer = lambda generator, device: tuple(one[:125_000] for one in strided(generator, device))
    assert away(without("size", inputs=fewer), pair, strided).share < 0.7


def test_another_pair_takes_a_cause_away():
    loop = lambda x: sum((one for one in x), start=torch.zeros(()))
    no_python = without("Python", variants={"one call": torch.sum, "again": torch.sum})
    share = away(no_python, {"loop": loop, "one call": torch.sum})
    assert share.there.median > 5 and share.share > 0.7


def test_what_cannot_be_taken_away_here_says_why_in_a_sentence(monkeypatch):
    pair = {"slow": briefly, "fast": lambda x: None}
    with pytest.raises(ValueError, match=r"It is a matter of the CPU, not of cuda\."):
        away("denormals", pair, device="cuda")
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ValueError, match="Only the malloc of Linux"):
        away("page faults", pair)


@glibc
def test_a_copy_that_breaks_is_a_sentence_and_no_end():
    here = os.getpid()
    pair = {"ends": lambda x: os.getpid() == here or os._exit(3), "fast": lambda x: None}
    with pytest.raises(ValueError, match="ended early"):
        away("page faults", pair)
    with pytest.raises(ValueError, match="which has one thread"):
        away("page faults", pair, num_threads=2)


def test_nonsense_gets_one_clear_sentence():
    for given in ({}, {"variants": {"one": torch.sum}}, {"inputs": ones, "variants": {"one": torch.sum}}):
        with pytest.raises(ValueError, match="needs inputs=…, or variants=… with the two, or both"):
            without("order of memory", **given)
    assert set(CAUSES) == {*SIGNS, "page faults", "cold start"}, "each is tried above"
