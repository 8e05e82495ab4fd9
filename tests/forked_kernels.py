"""Kernels for nbval that are copied from one process which has torch, Jupyter and the course loaded.

A notebook's kernel starts in 0.1 s then, and ends without taking torch down: both take two seconds otherwise.
"""

import multiprocessing
import os
import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from multiprocessing.context import ForkServerProcess
from typing import Any
from unittest.mock import patch

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

import autograder

NAME = "forked"
ORIGINAL = multiprocessing.get_context("forkserver")
# torch before the others: it decides which thread pools there are. Not torchvision: it loads Triton, which
# looks once whether it is to interpret its kernels.
LOADED = ["torch", "ipykernel.kernelapp", "matplotlib.pyplot", "matplotlib_inline.backend_inline"]


def use(copies: bool) -> None:
    """Whether the kernels that this process starts from now on are copies."""
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = EntryPoint(NAME, f"{__name__}:{ForkedKernel.__name__}", factory.GROUP_NAME)
    factory.default_provisioner_name = NAME if copies else "local-provisioner"
    ORIGINAL.set_forkserver_preload([*LOADED, *(f"autograder.{home}" for home in autograder._HOMES.values())])


class Copied(ForkServerProcess):
    """A copied process, with what a LocalProvisioner asks of a Popen."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        return self.exitcode

    wait = ForkServerProcess.join


class ForkedKernel(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        asked = cmd[cmd.index("-f") + 1], kwargs["cwd"], kwargs["env"]
        self.process = Copied(target=become_kernel, args=asked)
        with patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"):  # NumPy starts its threads when it is loaded
            self.process.start()
        self.pid = self.pgid = self.process.pid
        self.cwd = kwargs["cwd"]
        return self.connection_info


def become_kernel(file: str, folder: str | None, environment: dict[str, str]) -> None:
    """What ``python -m ipykernel_launcher -f FILE`` does."""
    assert len(os.listdir(f"/proc/{os.getppid()}/task")) == 1, "a process with threads cannot be copied"
    assert "triton" not in sys.modules
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder or os.getcwd())
    sys.path.remove(os.path.dirname(__file__))
    sys.argv = ["ipykernel_launcher", "-f", file]
    import_module("ipykernel.kernelapp").launch_new_instance()
    os._exit(0)
