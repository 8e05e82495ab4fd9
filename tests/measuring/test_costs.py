import operator

import numpy as np
import pytest
import torch
from programs import python

from autograder import costs

NUMBERS = torch.rand(100, 100)
ARRAY, ORDER = np.ones(1000, dtype=np.float32), torch.arange(100)


# Function -> operations, bytes and copies.
COUNTS = {
    lambda: torch.tensor(ARRAY): (1, 4000, 1),
    lambda: torch.from_numpy(ARRAY): (0, 0, 0),
    lambda: torch.zeros(100): (1, 400, 0),
    lambda: NUMBERS.t(): (0, 0, 0),
    lambda: NUMBERS.t().contiguous(): (1, 40_000, 1),
    lambda: NUMBERS.to(torch.float64): (1, 80_000, 1),
    lambda: NUMBERS.to(torch.float32): (0, 0, 0),
    lambda: NUMBERS + 1 + 1: (2, 80_000, 0),
    # Copies by other names, and what is equal by chance.
    lambda: NUMBERS * 1 + torch.zeros(()): (3, 80_004, 2),
    lambda: torch.cat([NUMBERS])[ORDER]: (2, 80_000, 2),
    lambda: torch.add(NUMBERS, 0, out=torch.empty(100, 100, dtype=torch.float64)): (2, 80_000, 1),
    lambda: torch._foreach_mul([NUMBERS, NUMBERS[:50]], 1): (1, 60_000, 1),
    lambda: NUMBERS.relu().clamp(-1, 1) * torch.ones(100, 100): (4, 160_000, 0),
    lambda: (NUMBERS + torch.zeros(100, 1)).masked_fill(NUMBERS > 2, 0): (4, 90_400, 0),
    lambda: torch.ones(100) * torch.ones(100): (3, 1200, 0),
}


def test_counts():
    found = {function: costs(function) for function in COUNTS}
    assert {way: (one.figure("operations"), one.bytes, one.copies) for way, one in found.items()} == COUNTS


def test_the_peak_counts_what_is_alive_at_once_and_a_tensor_that_grows():
    def chain(numbers):
        for _ in range(10):
            numbers = numbers + 1
        return numbers

    found = costs(chain, NUMBERS)
    assert (found.bytes, found.peak_bytes) == (10 * 40_000, 2 * 40_000)
    grown = torch.empty(0)
    assert costs(lambda: torch.add(NUMBERS, 1, out=torch.empty(0))).peak_bytes == 40_000
    assert costs(lambda: [grown.resize_(size) for size in (10, 5, 20)]).bytes == 80


OWN, MASK, REPEATS = NUMBERS.clone(), NUMBERS > 0.5, torch.tensor([1, 0, 2])
FAR, THREE = torch.empty(3, device="meta"), torch.arange(3)
WAIT = [
    lambda: NUMBERS.sum().item(),
    lambda: NUMBERS[NUMBERS > 0.5],
    lambda: NUMBERS.nonzero(),
    lambda: torch.allclose(NUMBERS, NUMBERS),
    lambda: NUMBERS[0, 0].tolist(),
    lambda: memoryview(NUMBERS.numpy()),
    lambda: np.asarray(NUMBERS),
    lambda: np.from_dlpack(NUMBERS),
    lambda values=NUMBERS[MASK]: operator.setitem(OWN, MASK, values),
    lambda: operator.setitem(OWN, MASK, torch.zeros(1, device="meta")),
    lambda: THREE.repeat_interleave(REPEATS),  # for the number of all repeats
    lambda: FAR.copy_(torch.ones(3)),
]
DO_NOT_WAIT = [
    # A mask is not looked through to write one number.
    lambda: operator.setitem(OWN, MASK, 0.0),
    lambda: operator.setitem(OWN, MASK, torch.tensor(0.0)),
    lambda: THREE.repeat_interleave(REPEATS, output_size=3),
    lambda: THREE.repeat_interleave(2),
    lambda: FAR.copy_(torch.ones(3), non_blocking=True),
    lambda: torch.ones(3).to("meta", non_blocking=True),
]


def test_waiting_for_a_value_counts_as_a_sync_and_a_copy_to_another_device_as_a_transfer():
    assert [costs(function).syncs for function in WAIT] == [1] * len(WAIT)
    assert [costs(function).syncs for function in DO_NOT_WAIT] == [0] * len(DO_NOT_WAIT)
    assert costs(lambda: str(NUMBERS)).syncs
    found = costs(lambda: NUMBERS.to("meta"))
    assert (found.transfers, found.copies) == (1, 1)
    assert costs(lambda: NUMBERS.clone()).transfers == 0


def test_inference_mode_hides_nothing():
    more = (
        lambda: torch.nn.functional.one_hot(ORDER, 100),
        lambda: torch.einsum("ij,kj->ik", NUMBERS, NUMBERS),
    )
    ways = [*COUNTS, *WAIT, *DO_NOT_WAIT, NUMBERS.bfloat16, *more]
    assert [str(costs(torch.inference_mode()(way))) for way in ways] == [str(costs(way)) for way in ways]


def test_the_text_names_what_was_done_most():
    text = str(costs(lambda: NUMBERS.sin().sin().cos()))
    assert text.startswith("3 operations (aten.sin 2, aten.cos 1)") and "120 kB allocated" in text


@pytest.mark.slow
def test_operations_of_threads_count_where_threads_are_watched():
    """In a process that sees also what importing the package and counting load: each takes a second."""
    done = python("""
import os
import sys
import threading
from autograder import *
print([name for name in ("matplotlib", "nbgrader", "IPython", "distributed") if name in sys.modules])
import torch
from concurrent.futures import ThreadPoolExecutor
from autograder.measuring.costs import count_in_threads, costs

def alone():
    thread = threading.Thread(target=lambda: torch.ones(3) + 1)
    thread.start()
    thread.join()

print(costs(alone).operations.total(), costs(torch.neg, torch.ones(1)).operations.total())
print("torch._dynamo" in sys.modules)
count_in_threads()
pool = ThreadPoolExecutor(1)
pool.submit(print, end="").result()
torch.ones(3) + 1
print(costs(lambda: pool.submit(torch.neg, torch.ones(3)).result()).operations.total())
print(costs(alone).operations.total())
pool.submit(torch.neg, torch.ones(3)).result()
sys.stdout.flush()
os._exit(0)  # as the processes of answers end: torch may abort where a thread ends after the interpreter
""")
    assert (done.returncode, done.stdout.split()) == (0, ["[]", "0", "1", "False", "2", "2"]), done.stderr
