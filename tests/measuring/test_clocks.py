import contextlib
import random
import time

import pytest
import torch

from autograder.measuring.clocks import (
    BLOCK_SECONDS,
    LONGEST_BLOCK,
    BlockSearch,
    calibrate,
    default_clock,
    devices,
    run_block,
    threads,
)


def test_a_block_counts_its_calls_and_all_its_clocks_run():
    seen = []
    block = run_block(lambda tensor: seen.append(tensor.sum()), (torch.ones(1000),), calls=7)
    assert len(seen) == block.calls == 7
    assert block.cpu > 0
    assert block.wall > 0
    assert block.cuda is None
    assert block.per_call("wall") == block.wall / 7


def test_sleeping_takes_wall_time_but_no_cpu_time():
    block = run_block(lambda: time.sleep(0.05), (), calls=1)
    assert block.wall > 5 * block.cpu


def test_touching_new_memory_shows_as_page_faults():
    pytest.importorskip("resource")
    import mmap

    pages = mmap.mmap(-1, 4000 * mmap.PAGESIZE)
    with contextlib.suppress(AttributeError, OSError):  # a kernel may give many pages at one fault
        pages.madvise(mmap.MADV_NOHUGEPAGE)

    def touch():
        for page in range(4000):
            pages[page * mmap.PAGESIZE] = 1

    first, again = run_block(touch, (), calls=1), run_block(touch, (), calls=1)
    assert first.faults > again.faults + 3500


def search(seconds_of, **most):
    found = BlockSearch(**most)
    while not found.found:
        found.take(seconds_of(found.calls))
    return found.calls


def test_blocks_are_long_enough_in_a_thousand_of_a_thousand_calibrations():
    """On a made-up clock, that one reading in five shows far too much, as on a busy machine."""
    source = random.Random(1)
    for _ in range(1000):
        once = 10 ** source.uniform(-7, -2)

        def seconds_of(calls, once=once):
            return (
                once * calls * (source.uniform(1, 100) if source.random() < 0.2 else source.uniform(1, 1.1))
            )

        calls = search(seconds_of)
        assert once * calls >= BLOCK_SECONDS
        assert calls == 1 or once * calls < 15 * BLOCK_SECONDS, "no longer than it need be"


def test_a_block_has_no_more_calls_than_allowed():
    assert search(lambda calls: 1e-9, most=200) == 200
    assert search(lambda calls: 1e-9, most=1) == 1


def test_calibration_asks_the_clock_that_judges():
    """A function that sleeps takes wall time and hardly any CPU time."""
    assert calibrate(time.sleep, (2 * BLOCK_SECONDS,), clock="wall") == 1
    assert calibrate(time.sleep, (1e-4,), clock="cpu") > 1.5 * calibrate(time.sleep, (1e-4,), clock="wall")
    assert calibrate(time.sleep, (LONGEST_BLOCK,), clock="cpu") == 1


def test_threads_are_put_back_even_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), threads(1):
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_devices_and_clocks_agree_with_torch():
    assert ("cuda" in devices()) == torch.cuda.is_available()
    assert devices()[0] == "cpu"
    assert default_clock("cuda:0") == "cuda"
