"""Nothing of the instructor's beyond the given cells is in the memory of the process that runs an answer."""

import os
import secrets
import threading
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from grading_class import cells

from autograder.sandbox import Executed, Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.attack]

GIVEN = """
import torch
from autograder import check
def double(x): return 2 * x
def numbers(generator, device): return torch.rand(5, generator=generator)
"""
# Reads all memory that its process can read, or another one's, in pieces. The pattern does not find itself.
SEARCH = """
import re
planted = re.compile(rb"plant[-_]([a-z]+)[-_][0-9a-f]{16}")

def found(pid="self"):
    words = set()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps.readlines():
            place, permissions, *_ = line.split()
            if "w" not in permissions and ".so" in line:
                continue  # what a library holds, and nobody may write to: gigabytes on a disk
            start, end = (int(part, 16) for part in place.split("-"))
            while start < end:
                size = min(end - start, 1 << 24)
                try:
                    memory.seek(start)
                    words |= {match[1].decode() for match in planted.finditer(memory.read(size))}
                except (OSError, OverflowError, ValueError):
                    pass
                start += size if start + size == end else size - 100
    return sorted(words)

def twice(x): return 2 * x
"""


@pytest.fixture(scope="module")
def words() -> dict[str, str]:
    """What is planted, by its place."""
    places = ("given", "answer", "hidden", "input", "expected", "name", "environment", "before")
    words = {place: f"plant-{place}-{secrets.token_hex(8)}" for place in places}
    return words | {"module": f"plant_module_{secrets.token_hex(8)}"}


@pytest.fixture(scope="module")
def box(words: dict[str, str]):
    """A sandbox that has graded a submission with a planted word, below an environment with one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADING_SECRET", words["environment"])
        with Sandbox() as box:
            run(box, words, f"WORD = '{words['before']}'\ndef twice(x): return 2 * x")
            yield box


def run(box: Sandbox, words: dict[str, str], student: str, given: str = GIVEN) -> Executed:
    hidden = f"""
# {words["hidden"]}
try: import {words["module"]}
except ImportError: pass
import numpy as np
planted_input = torch.from_numpy(np.frombuffer(b"{words["input"]}", np.uint8).copy())
planted_result = torch.from_numpy(np.frombuffer(b"{words["expected"]}", np.uint8).copy())
check(twice, like=double, on=numbers, points=1)
"""
    roles = [("given", given), ("student", student), ("test", hidden)]
    if "def found" in student:
        roles += [("test", "found()")]
    work = cells(*roles, exercise="twice", names=["twice", "found"])
    work[2:] = [msgspec.structs.replace(test, grade_id=words["name"]) for test in work[2:]]
    return box.run(work, assignment="memory")


def result(executed: Executed) -> str:
    return executed.outputs[3][-1].get("data", {}).get("text/plain", str(executed.outputs[3]))


def test_an_answer_that_searches_its_process_finds_only_its_own(box: Sandbox, words: dict[str, str]) -> None:
    assert result(run(box, words, SEARCH + f"WORD = '{words['answer']}'")) == "['answer']"


def test_it_would_find_what_is_there(words: dict[str, str]) -> None:
    """The given cells are in the memory of all: they are sent to the fork server, and run in each process."""
    with Sandbox() as box:
        executed = run(box, words, SEARCH, given=f"{GIVEN}\nWORD = '{words['given']}'")
        assert result(executed) == "['given']"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read the memory of these processes")
def test_from_outside_only_the_judge_is_seen_to_know(box: Sandbox, words: dict[str, str]) -> None:
    student = f"WORD = '{words['answer']}'\nimport time\ndef twice(x):\n    time.sleep(15)\n    return 2 * x"
    judges, answers, known = [], [], {}
    with Sandbox() as another:
        working = threading.Thread(target=run, args=(another, words, student))
        working.start()
        while working.is_alive() and not (judges and answers):
            pids = [process.pid for process in psutil.Process().children(recursive=True)]
            known = {pid: found for pid in pids if (found := searched(pid)) is not None}
            judges = [pid for pid, found in known.items() if "hidden" in found]
            answers = [pid for pid, found in known.items() if "answer" in found and pid not in judges]
        another.stop()
        working.join()
    assert len(judges) == len(answers) == 1, known
    assert known[answers[0]] == {"answer"}
    others = {word for pid, found in known.items() if pid not in judges + answers for word in found}
    assert others == set(), known


def searched(pid: int) -> set[str] | None:
    """The places whose words are in a process's memory, its command line or its environment."""
    search: dict[str, Any] = {}
    exec(SEARCH, search)
    try:
        read = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        return {match[1].decode() for match in search["planted"].finditer(read)} | {*search["found"](pid)}
    except OSError:
        return None
