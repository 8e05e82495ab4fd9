"""A process with torch loaded, from which all others of a submission are forked. Runs inside the sandbox.

It never reads a submission: a fork of it becomes the judge and does that, and whatever the judge asks it to
start is a fork of this clean process.
"""

from __future__ import annotations

import gc
import os
import select
import shutil
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module

from . import linux
from .answer_link import NUMBER, kill, take
from .channel import Channel, Gone, pair

# The first folder is the one for temporary files. With rooms, each room has these folders to itself.
PRIVATE = os.environ.get("AUTOGRADER_PRIVATE", "").split(":")
TEMPORARY = PRIVATE[0]
ROOMS = os.environ.get("AUTOGRADER_ROOMS") == "yes"


_used = 0


def main() -> None:
    """Serve the grader over standard input until it goes away."""
    control = take(os.dup(0))
    import numpy.random  # noqa: F401  numpy loads it at its first use, which would be in every fork
    import torch

    import autograder
    from autograder.measuring.launches import warm_up_parent

    from . import judge, student  # noqa: F401
    from .cells import make_shell

    for name in autograder.__all__:
        getattr(autograder, name)
    shell = make_shell()
    first = control.receive().fields  # what the first notebook needs, the next ones will need, too
    for name in first["modules"]:
        with suppress(Exception):  # then the cell that needs it will say so
            import_module(name)
    for source in first["sources"]:
        shell.transform_cell(source)
    autograder.costs(torch.neg, torch.ones(1))  # the first count loads what counting needs
    if any("meta" in source for source in first["sources"]):
        torch.neg(torch.ones(1, device="meta"))  # so does the first operation there: a thousand modules
    torch.set_num_threads(1)
    warm_up_parent()
    linux.set_dumpable(False)
    linux.adopt_orphans()
    global _used
    _used = linux.address_space()
    rooms = ROOMS and _rooms_work()
    # The garbage collector of a fork would touch, and so copy, every page that holds an object.
    gc.collect()
    gc.freeze()
    control.send({"ready": True, "rooms": rooms})
    while True:
        try:
            # Look, but leave the message to the judge.
            select.select([control.socket], [], [])
            if not control.socket.recv(1, 2):  # MSG_PEEK
                return
        except OSError:
            return
        _submission(control, rooms)
        with suppress(Gone):
            control.send({"over": True})


def _rooms_work() -> bool:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            linux.set_dumpable(True)
            linux.enter_room(PRIVATE)
            status = 0
        except OSError as error:
            print(f"no rooms: {error}", file=sys.stderr)
        os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def _submission(control: Channel, rooms: bool) -> None:
    """Fork a judge for the next message, start processes for it until it ends, and clean up after it."""
    requests, other = pair()
    judge = os.fork()
    if judge == 0:
        status = 1
        try:
            requests.close()
            _judge(control, Channel(other))
            status = 0
        except Gone:
            pass
        except BaseException:
            import traceback

            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    other.close()
    rooms_made: list[int] = []
    while True:
        try:
            message = requests.receive()
            pid = _spawn(message.fields["home"], *message.files, rooms)
            rooms_made.append(pid)
            for file in message.files:
                os.close(file)
            requests.send({"pid": pid, "rooms": rooms})
        except Gone:
            break
    requests.close()
    for pid in rooms_made:
        kill(pid)
    _end_all()
    for name in os.listdir(TEMPORARY):
        path = os.path.join(TEMPORARY, name)
        with suppress(OSError):
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)


def _end_all() -> None:
    """End every descendant, also those whose parents ended."""
    me = os.getpid()
    while True:
        for pid in linux.family(me)[1:]:
            kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _judge(control: Channel, spawner: Channel) -> None:
    from .judge import Judge

    work = control.receive().fields
    if work.get("op") == "selfcheck":
        control.send(_selfcheck())
        return
    _go_home(work["home"])
    linux.limit_memory(_used + 2 * linux.MEMORY)
    Judge(control, spawner, work).run()


def _selfcheck() -> dict:
    """The noise of this machine, and its limits, for the grader to keep."""
    from dataclasses import asdict

    from autograder.measuring import limits
    from autograder.measuring.selfcheck import TooNoisy, check_launches

    kept = {"limits": [limits.kept_as("cpu", 1), limits.rates("cpu", 1)]}
    try:
        return kept | {"noise": asdict(check_launches())}
    except TooNoisy as problem:
        return kept | {"noisy": str(problem)}


def _spawn(home: str, file: int, warden: int, rooms: bool) -> int:
    """Start a process that serves the judge over ``file``; gives the first process of its room.

    Over ``warden``, that one tells the judge what happens in the room.
    """
    if not rooms:
        pid = os.fork()
        if pid == 0:
            _serve(home, file)
        return pid
    reading, writing = os.pipe()
    mover = os.fork()
    if mover == 0:
        with suppress(BaseException):
            linux.set_dumpable(True)
            linux.enter_room(PRIVATE)
            first = os.fork()
            if first == 0:
                _first(home, file, warden)
            os.write(writing, str(first).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(mover, 0)
    with os.fdopen(reading) as pipe:
        return int(pipe.read() or 0)


def _first(home: str, file: int, warden: int) -> None:
    """The first process of a room. When it ends, the kernel ends all others.

    It ends with the process that runs the code, or when the judge goes away.
    """
    with suppress(BaseException):
        linux.set_dumpable(False)
        linux.furnish_room()
        main_child = os.fork()
        if main_child == 0:
            _serve(home, file)
        linux.quiet_files(warden)
        judge = socket.socket(fileno=warden)
        while True:
            if select.select([judge], [], [], 0.1)[0]:
                if not judge.recv(1):
                    break
                judge.send(NUMBER.pack(linux.last_pid()))
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) not in (0, main_child):
                pass
            if ended == main_child:
                break
    os._exit(0)


def _serve(home: str, file: int) -> None:
    """The life of a process that runs a student's code, or the given version."""
    with suppress(BaseException):
        linux.quiet_files(file)
        linux.set_dumpable(True)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        linux.drop_rights()
        linux.limit_resources(_used)
        _go_home(home)
        from .cells import CellShell
        from .student import Agent

        channel = take(file)
        channel.send({"hello": True})
        Agent(channel, CellShell.instance()).serve()
    os._exit(0)


def _go_home(home: str) -> None:
    """A folder like the one that a student works in: exercises/NN_topic, with ../../data in reach."""
    course = os.path.join(TEMPORARY, f"course-{os.getpid()}")
    folder = os.path.join(course, "exercises", os.path.basename(home) or "exercise")
    os.makedirs(folder)
    if data := os.environ.get("AUTOGRADER_DATA"):
        os.symlink(data, os.path.join(course, "data"))
    os.chdir(folder)


if __name__ == "__main__":
    main()
