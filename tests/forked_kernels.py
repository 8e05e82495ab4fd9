"""Kernels for nbval that are copied from one process which has torch, Jupyter and the course loaded.

A notebook's kernel starts in 0.1 s then, and ends without taking torch down: both take two seconds otherwise.
``use`` says whether this process starts its kernels so; as a script, this is what they are copied from.
"""

import json
import os
import select
import signal
import subprocess
import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

NAME = "forked"
# Not torchvision: it loads Triton, which looks once whether it is to interpret its kernels.
LOADED = ("ipykernel.kernelapp", "matplotlib.pyplot", "matplotlib_inline.backend_inline")


def use(copies: bool) -> None:
    """Whether the kernels that this process starts from now on are copies."""
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = EntryPoint(NAME, f"{__name__}:{ForkedKernel.__name__}", factory.GROUP_NAME)
    factory.default_provisioner_name = NAME if copies else "local-provisioner"


class Copied:
    """A copied process, for what a LocalProvisioner asks of a Popen. It is no child of this process."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._end = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return 0 if select.select([self._end], [], [], 0)[0] else None

    def wait(self) -> int:
        select.select([self._end], [], [])
        os.close(self._end)
        return 0

    def send_signal(self, number: int) -> None:
        signal.pidfd_send_signal(self._end, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkedKernel(LocalProvisioner):
    """Asks this process's original for a copy that becomes the kernel."""

    original: subprocess.Popen[str] | None = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        if ForkedKernel.original is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            ForkedKernel.original = subprocess.Popen([sys.executable, __file__], text=True, **pipes)
        original = ForkedKernel.original
        assert original.stdin and original.stdout
        asked = {"file": cmd[cmd.index("-f") + 1], "folder": kwargs["cwd"], "environment": kwargs["env"]}
        print(json.dumps(asked), file=original.stdin, flush=True)
        self.process = Copied(int(original.stdout.readline()))
        self.pid = self.pgid = self.process.pid
        self.cwd = kwargs["cwd"]
        return self.connection_info


def main() -> None:
    """Copy this process for each line on standard input, until that ends."""
    import torch  # noqa: F401  (before the others: it decides which thread pools there are)

    for name in LOADED:
        import_module(name)
    front = import_module("autograder")
    for name in front.__all__:
        getattr(front, name)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be copied"
    assert "triton" not in sys.modules
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the copies
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become_kernel(**json.loads(line))
        print(pid, flush=True)


def become_kernel(file: str, folder: str | None, environment: dict[str, str]) -> None:
    """What ``python -m ipykernel_launcher -f FILE`` does."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder or os.getcwd())
        sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
        sys.argv = ["ipykernel_launcher", "-f", file]
        import_module("ipykernel.kernelapp").launch_new_instance()
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy starts its threads when it is loaded
    main()
