import contextlib
import time

import pytest
import torch

from autograder.measuring.clocks import BLOCK_SECONDS, calibrate, default_clock, devices, run_block, threads


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


@pytest.mark.parametrize("size", [1, 3_000_000])
def test_calibrated_blocks_are_long_enough_on_the_whole(size):
    tensor = torch.ones(size)
    calls = calibrate(torch.sum, (tensor,))
    longest = max(run_block(torch.sum, (tensor,), calls).wall for _ in range(9))
    assert longest >= BLOCK_SECONDS / 2
    assert calls > 1 or size > 1


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
