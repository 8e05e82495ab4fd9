"""A process with torch loaded, from which all others of a submission are forked. Runs inside bubblewrap.

It never reads a submission: a fork of it becomes the judge and does that, and whatever the judge asks it to
start is a fork of this clean process.
"""

import gc
import inspect
import os
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import FunctionType

from ..answers.answer_handle import NUMBER
from ..walls import linux, memory_cgroup, memory_use, seccomp
from ..wire import messages
from ..wire.channel import Channel, Gone, over_file, pair

# The first folder is the one for temporary files. In namespaces of its own, every submission has these to
# itself.
PRIVATE = os.environ.get("AUTOGRADER_PRIVATE", "").split(":")
TEMPORARY = PRIVATE[0]
NAMESPACES = os.environ.get("AUTOGRADER_NAMESPACES") == "yes"
CGROUP = os.environ.get("AUTOGRADER_CGROUP")


def main() -> None:
    """Serve the supervisor over standard input until it goes away."""
    gc.disable()  # little of what is loaded is garbage, and looking takes a quarter of the time
    control = over_file(os.dup(0))
    # Python looks for modules in the folder that it was started in. Only answers may have modules there.
    sys.path[:] = [folder for folder in sys.path if folder not in ("", os.getcwd())]
    import torch  # noqa: F401  now, while the grader finds out what else is needed

    _load(messages.parse(control.receive(), messages.Load))
    linux.make_safe_to_fork()
    linux.set_dumpable(False)
    linux.adopt_orphans()
    used = linux.address_space()
    namespaces = NAMESPACES and _works(lambda: linux.enter_namespaces(PRIVATE))
    filtered = seccomp.is_supported() and _works(_restrict)
    # The garbage collector of a fork would touch, and so copy, every page that holds an object. Freed now,
    # garbage would leave holes in these pages, for forks to write into.
    gc.freeze()
    gc.enable()
    memory_use.set_apart()
    control.send(messages.Ready(namespaces, filtered))
    while True:
        try:
            # Look, but leave the message to the judge.
            select.select([control.socket], [], [])
            if not control.socket.recv(1, socket.MSG_PEEK):
                return
        except OSError:
            return
        _submission(control, namespaces, filtered, used)
        with suppress(Gone):
            control.send(messages.Over())


def _load(first: messages.Load) -> None:
    """Load what all forks need; what the first notebook needs, the next ones will need, too."""
    import numpy.random  # noqa: F401  numpy loads it at its first use, which would be in every fork
    import torch

    from ...measuring.costs import costs
    from ..answers import answer_process
    from ..answers.cells import make_shell
    from ..racing import self_check  # noqa: F401
    from ..wire.decode import PROBES

    front = import_module("autograder")  # what notebooks import; nothing in the package depends on it
    for name in front.__all__:
        with suppress(ModuleNotFoundError):  # where only the core is installed there is no matplotlib
            getattr(front, name)
    with suppress(ModuleNotFoundError):
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # no thread beside a progress bar: a process with threads cannot be copied
    messages.prepare()
    shell = make_shell()
    for name in first.modules:
        with suppress(Exception):  # then the cell that needs it will say so
            import_module(name)
    for source in first.given:
        shell.transform_cell(source)
    for number in range(len(PROBES)):
        costs(answer_process.probe, number)  # the first count loads what counting needs
    if any("meta" in source for source in first.given):  # torch's meta device
        with suppress(Exception):  # it is about torch's inside, and without it starting takes longer
            _show_to_compiler()
        torch.neg(torch.ones(1, device="meta"))  # so does the first operation there: 500 modules


def _show_to_compiler() -> None:
    """Let torch not hide operations on the meta device from torch.compile, for which it would load all of
    that at the first of them: 900 modules.
    """
    import torch

    hiding = torch._disable_dynamo(_load).__code__
    for found in gc.get_objects():
        if type(found) is FunctionType and found.__code__ is hiding:
            hidden = inspect.getclosurevars(found).nonlocals.get("fn")
            if hidden and hidden.__module__.startswith("torch._refs"):
                hidden.__dynamo_disable = hidden  # what torch keeps there once it was loaded


def _fork(life: Callable[[], object]) -> int:
    """Start a copy of this process that does this and ends; its status is 1 where that raised."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            life()
            status = 0
        except Gone:
            pass
        except BaseException:
            traceback.print_exc(limit=-20, file=sys.__stderr__)
        finally:
            os._exit(status)
    return pid


def _works(try_it: Callable[[], None]) -> bool:
    """Whether this machine allows a child of this process to do something."""

    def life() -> None:
        linux.set_dumpable(True)
        try_it()

    return os.waitpid(_fork(life), 0)[1] == 0


def _restrict() -> None:
    """Give up all rights, and most system calls."""
    linux.drop_rights()
    seccomp.restrict()


def _submission(control: Channel, namespaces: bool, filtered: bool, used: int) -> None:
    """Fork a judge for the next message, start processes for it until it ends, and clean up after it."""
    requests, other = pair()
    _fork(lambda: _judge(control, requests, Channel(other), used))
    other.close()
    with suppress(Gone):
        while True:
            frame = requests.receive()
            assignment = messages.parse(frame, messages.Spawn).assignment
            to_process, to_judge = frame.files
            life = partial(_serve, assignment, to_process, namespaces, filtered, used)
            pid = _spawn(life, to_judge, namespaces)
            for file in frame.files:
                os.close(file)
            requests.send(messages.Spawned(pid, namespaces))
    requests.close()
    linux.end_descendants()
    for entry in list(os.scandir(TEMPORARY)):
        with suppress(OSError, RecursionError):
            shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.remove(entry)


def _judge(control: Channel, requests: Channel, forkserver: Channel, used: int) -> None:
    """The life of a judge; ``requests`` is the fork server's end of the connection between them."""
    requests.close()
    from ..racing.self_check import check_machine
    from .judge_process import JudgeProcess

    work = messages.parse(control.receive(), messages.RunNotebook | messages.CheckMachine)
    if isinstance(work, messages.CheckMachine):
        control.send(check_machine(forkserver, work.cores))
        return
    _go_to_folder_of(work.assignment)
    linux.limit_memory(used + 2 * linux.MEMORY)
    JudgeProcess(control, forkserver, work).run()


def _spawn(life: Callable[[], None], to_judge: int, namespaces: bool) -> int:
    """Start a process that leads this life; gives the first process of its namespaces.

    Over ``to_judge``, that one tells the judge what happens there.
    """
    if not namespaces:
        return _fork(life)
    reading, writing = os.pipe()

    def move() -> None:
        linux.set_dumpable(True)
        if CGROUP:
            memory_cgroup.join(CGROUP)
        linux.enter_namespaces(PRIVATE)
        first = _fork(partial(_first, life, to_judge))
        os.write(writing, str(first).encode())

    mover = _fork(move)
    os.close(writing)
    os.waitpid(mover, 0)
    with os.fdopen(reading) as pipe:
        return int(pipe.read() or 0)


def _first(life: Callable[[], None], to_judge: int) -> None:
    """The first process of new namespaces. When it ends, the kernel ends all others.

    It ends with the process that runs the code, or when the judge goes away.
    """
    linux.set_dumpable(False)
    linux.prepare_first_process()
    main_child = _fork(life)
    linux.quiet_files(to_judge)
    judge = socket.socket(fileno=to_judge)
    while True:
        if select.select([judge], [], [], 0.1)[0]:
            if not judge.recv(1):
                return
            judge.send(NUMBER.pack(linux.last_pid()))
        while (ended := os.waitpid(-1, os.WNOHANG)[0]) not in (0, main_child):
            pass
        if ended == main_child:
            return


def _serve(assignment: str, file: int, namespaces: bool, filtered: bool, used: int) -> None:
    """The life of the answer's process, or of the given version's."""
    linux.quiet_files(file)
    linux.set_dumpable(True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    linux.drop_rights()
    if not namespaces:
        linux.keep_apart()
    linux.limit_memory(used + linux.MEMORY)
    linux.limit_resources()
    _go_to_folder_of(assignment)
    sys.path.insert(0, "")  # as in a kernel: modules beside the notebook
    from ..answers.answer_process import AnswerProcess
    from ..answers.cells import CellShell

    CellShell.instance().open_files()
    if filtered:
        seccomp.restrict()
    channel = over_file(file)
    channel.send(messages.Hello())
    AnswerProcess(channel, CellShell.instance()).serve()


def _go_to_folder_of(assignment: str) -> None:
    """A folder like the one that a student works in: exercises/NN_topic, with ../../data in reach."""
    course = os.path.join(TEMPORARY, f"course-{os.getpid()}")
    folder = os.path.join(course, "exercises", os.path.basename(assignment) or "exercise")
    os.makedirs(folder)
    if data := os.environ.get("AUTOGRADER_DATA"):
        os.symlink(data, os.path.join(course, "data"))
    os.chdir(folder)


if __name__ == "__main__":
    main()
