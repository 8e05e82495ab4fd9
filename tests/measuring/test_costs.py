import subprocess
import sys

import numpy as np
import pytest
import torch

from autograder import costs

NUMBERS = torch.rand(100, 100)
ARRAY = np.ones(1000, dtype=np.float32)


@pytest.mark.parametrize(
    ("function", "operations", "size", "copies"),
    [
        (lambda: torch.tensor(ARRAY), 1, 4000, 1),
        (lambda: torch.from_numpy(ARRAY), 0, 0, 0),
        (lambda: torch.tensor([1.0, 2.0]), 0, 8, 0),
        (lambda: torch.zeros(100), 1, 400, 0),
        (lambda: NUMBERS.t(), 0, 0, 0),
        (lambda: NUMBERS.t().contiguous(), 1, 40_000, 1),
        (lambda: NUMBERS.to(torch.float64), 1, 80_000, 1),
        (lambda: NUMBERS.to(torch.float32), 0, 0, 0),
        (lambda: NUMBERS + 1 + 1, 2, 80_000, 0),
    ],
)
def test_counts(function, operations, size, copies):
    found = costs(function)
    assert (found.figure("operations"), found.bytes, found.copies) == (operations, size, copies)


def test_the_peak_counts_what_is_alive_at_once():
    def chain(numbers):
        for _ in range(10):
            numbers = numbers + 1
        return numbers

    found = costs(chain, NUMBERS)
    assert found.bytes == 10 * 40_000
    assert found.peak_bytes == 2 * 40_000


@pytest.mark.parametrize(
    "function",
    [
        lambda: NUMBERS.sum().item(),
        lambda: NUMBERS[NUMBERS > 0.5],
        lambda: NUMBERS.nonzero(),
        lambda: bool((NUMBERS > 2).any()),
        lambda: torch.equal(NUMBERS, NUMBERS),
        lambda: torch.allclose(NUMBERS, NUMBERS),
        lambda: NUMBERS.tolist(),
        lambda: NUMBERS[0, 0].tolist(),
    ],
)
def test_waiting_for_a_value_counts_as_a_sync(function):
    assert costs(function).syncs == 1


def test_a_mask_is_not_looked_through_to_write_one_number():
    own, mask = NUMBERS.clone(), NUMBERS > 0.5
    for value in (0.0, torch.tensor(0.0)):
        assert costs(own.__setitem__, mask, value).syncs == 0
    assert costs(own.__setitem__, mask, own[mask]).syncs == 1
    assert costs(own.__setitem__, mask, torch.zeros(1, device="meta")).syncs == 1


def test_repeating_waits_for_the_number_of_all_repeats_unless_it_is_told():
    repeats = torch.tensor([1, 0, 2])
    assert costs(lambda: torch.arange(3).repeat_interleave(repeats)).syncs == 1
    assert costs(lambda: torch.repeat_interleave(repeats)).syncs == 1
    assert costs(lambda: torch.arange(3).repeat_interleave(repeats, output_size=3)).syncs == 0
    assert costs(lambda: torch.arange(3).repeat_interleave(2)).syncs == 0


def test_a_copy_to_another_device_is_a_transfer():
    found = costs(lambda: NUMBERS.to("meta"))
    assert (found.transfers, found.copies) == (1, 1)
    assert costs(lambda: NUMBERS.clone()).transfers == 0


def test_a_copy_that_does_not_block_is_no_sync():
    target = torch.empty(3, device="meta")
    assert costs(lambda: target.copy_(torch.ones(3))).syncs == 1
    assert costs(lambda: target.copy_(torch.ones(3), non_blocking=True)).syncs == 0
    assert costs(lambda: torch.ones(3).to("meta", non_blocking=True)).syncs == 0


def test_the_text_names_what_was_done_most():
    text = str(costs(lambda: NUMBERS.sin().sin().cos()))
    assert text.startswith("3 operations (aten.sin 2, aten.cos 1)")
    assert "120 kB allocated" in text


def test_operations_of_threads_count_where_threads_are_watched():
    program = """
import os
import sys
import threading
import torch
from concurrent.futures import ThreadPoolExecutor
from autograder.measuring.costs import count_in_threads, costs

def alone():
    thread = threading.Thread(target=lambda: torch.ones(3) + 1)
    thread.start()
    thread.join()

print(costs(alone).operations.total())
count_in_threads()
pool = ThreadPoolExecutor(1)
pool.submit(print, end="").result()
torch.ones(3) + 1
print(costs(lambda: pool.submit(torch.neg, torch.ones(3)).result()).operations.total())
print(costs(alone).operations.total())
pool.submit(torch.neg, torch.ones(3)).result()
sys.stdout.flush()
os._exit(0)  # as the processes of answers end: torch may abort where a thread ends after the interpreter
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "2", "2"]


def test_counting_does_not_load_the_compiler():
    """That would take a second at the first count of every notebook, and of every class that is graded."""
    program = (
        "import sys, torch, autograder; autograder.costs(torch.neg, torch.ones(1)); "
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
