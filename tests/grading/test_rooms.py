"""What a process with a student's code has room for: system calls, outputs, files of the judge, memory.

That the kernel takes the filter is shown by the attacks ``room_calls`` and ``room_sockets_of_other_kinds``.
"""

import os
import struct
import time
from pathlib import Path

import pytest
from grading_class import cells
from hostile_class import adopted

from autograder.sandbox import Sandbox
from autograder.sandbox.walls import memory_cgroup, seccomp

ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def answer_to(code: bytes, number: int, *arguments: int, audit: int = 0xC000003E) -> int:
    """What the kernel would do with a system call: a small interpreter of its filter language."""
    data = struct.pack("=IIQ6Q", number, audit, 0, *(arguments + (0,) * 6)[:6])
    instructions = [struct.unpack_from("=HBBI", code, place) for place in range(0, len(code), 8)]
    loaded = place = 0
    while True:
        kind, if_true, if_false, value = instructions[place]
        place += 1
        if kind == 0x20:
            loaded = struct.unpack_from("=I", data, value)[0]
        elif kind == 0x06:
            return value
        else:
            holds = {
                0x15: loaded == value, 0x25: loaded > value,
                0x35: loaded >= value, 0x45: bool(loaded & value),
            }[kind]  # fmt: skip
            place += if_true if holds else if_false


NAMESPACE, THREAD = 0x10000000, 0x003D0F00
CALLS = [  # number, arguments, what is to come of it
    (0, (), ALLOW), (1, (), ALLOW), (59, (), ALLOW), (202, (), ALLOW), (334, (), ALLOW), (436, (), ALLOW),
    (56, (THREAD,), ALLOW), (56, (NAMESPACE,), ERROR | 1), (435, (), ERROR | 38),
    (41, (1, 1, 0), ALLOW), (41, (2, 1, 0), ALLOW), (41, (10, 2, 0), ALLOW), (41, (16, 3, 0), ALLOW),
    (41, (16, 3, 4), ERROR | 97), (41, (40, 1, 0), ERROR | 97), (41, (38, 5, 0), ERROR | 97),
    (53, (1, 1, 0), ALLOW), (53, (30, 1, 0), ERROR | 97),
    (16, (0, 0x5401), ALLOW), (16, (0, 0x5412), ERROR | 1), (16, (0, (1 << 32) | 0x5412), ERROR | 1),
    (157, (15,), ALLOW), (157, (22, 2), ERROR | 1), (188, (), ERROR | 95),
    *((number, (), ERROR | 38) for number in (
        101, 135, 155, 161, 165, 246, 248, 249, 250, 272, 298, 303, 304, 308, 310, 311, 312, 313, 317, 319,
        321, 323, 425, 426, 427, 438, 447, 0x40000000, 0x40000000 + 59, 1000,
    )),
]  # fmt: skip


def test_the_filter_allows_what_is_on_its_list_and_calls_of_another_architecture_end_the_process() -> None:
    intel = seccomp.program("x86_64")
    for number, arguments, wanted in CALLS:
        assert answer_to(intel, number, *arguments) == wanted, (number, arguments)
    assert answer_to(intel, 1, audit=0x40000003) == KILL  # 32-bit x86
    write, clone, socket, keyctl = (64,), (220, NAMESPACE), (198, 40), (219,)
    arm = seccomp.program("aarch64")
    found = [answer_to(arm, *call, audit=0xC00000B7) for call in (write, clone, socket, keyctl)]
    assert found == [ALLOW, ERROR | 1, ERROR | 97, ERROR | 38]


def a_tree(root: Path, controllers: str = "cpu memory pids") -> Path:
    """What the kernel shows of control groups, as plain files."""
    own = root / "sys/fs/cgroup/user.slice/run-1.scope"
    own.mkdir(parents=True)
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("1:name=systemd:/\n0::/user.slice/run-1.scope\n")
    (root / "proc/self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n")
    (own / "cgroup.controllers").write_text(controllers)
    (own / "cgroup.procs").write_text("41\n42\n")
    return own


def delegate(folder: Path) -> None:
    """Mark a control group as systemd does."""
    try:
        os.setxattr(folder, "user.delegate", b"1")
    except OSError:
        pytest.skip("this file system has no user attributes")


find = memory_cgroup.delegated.__wrapped__  # again and again


def test_memory_is_bounded_in_a_delegated_group(tmp_path: Path) -> None:
    own = a_tree(tmp_path)
    assert find(tmp_path) is None  # nobody gave it to us
    delegate(own)
    assert find(tmp_path) == own
    assert (own / "graders/cgroup.procs").read_text() == "42"  # the last one that was moved
    assert (own / "cgroup.subtree_control").read_text() == "+memory"
    group = memory_cgroup.make(own, "answers-1")
    assert (group / "memory.max").read_text() == str(memory_cgroup.MOST)
    assert (group / "memory.oom.group").read_text() == "1"
    memory_cgroup.join(str(group))
    assert (group / "cgroup.procs").read_text() == "0"


def test_without_a_group_there_is_a_sentence(tmp_path: Path) -> None:
    assert find(tmp_path) is None
    delegate(a_tree(tmp_path, controllers="cpu pids"))
    assert find(tmp_path) is None
    with Sandbox() as box:
        assert (box.notice is None) == bool(memory_cgroup.delegated() or box.warning or box.refusal)


LOUD = """
import os
from autograder.sandbox.submissions.judge_process import JudgeProcess
real = JudgeProcess._run_answer
def loud(self, cell):
    os.write(2, b'word ' * 100_000)
    return real(self, cell)
JudgeProcess._run_answer = loud
"""


@pytest.mark.attack
@pytest.mark.slow
def test_whatever_the_judge_writes_on_stderr_it_goes_on(box: Sandbox) -> None:
    work = cells(("given", LOUD), ("student", "1"), ("student", "2"), ("test", "3"))
    executed = box.run(work, assignment="here", notebook_seconds=5)
    assert executed.events == [] and executed.outputs[3][0]["data"]["text/plain"] == "3"


@pytest.mark.attack
@pytest.mark.slow
def test_what_all_cells_of_a_notebook_show_is_limited(box: Sandbox) -> None:
    loud = ("student", "print('x' * 999_000)")
    executed = box.run(cells(*[loud] * 30, ("test", "3")), assignment="here")
    assert sum(len(str(outputs)) for outputs in executed.outputs.values()) < 25_000_000
    assert "had shown more than 20 MB" in str(executed.outputs[29])
    assert executed.outputs[30][0]["data"]["text/plain"] == "3"


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_nothing_is_left_of_a_sandbox_that_is_closed_while_it_starts() -> None:
    """bubblewrap in two: its second process waits for the first, which may be killed before it says go."""
    with adopted() as left:
        for milliseconds in range(40):
            box = Sandbox()
            box.begin()
            time.sleep(milliseconds / 2000)
            box.close()
    assert left == []
