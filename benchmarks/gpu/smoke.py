"""What does not work on this machine, within a minute, before anything is measured.

``python benchmarks/gpu/smoke.py CHECK DEVICE`` does one of ``CHECKS`` and ends with an error where it fails.
Each has a process of its own: some of what fails on a GPU takes its process along.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module

import torch

from autograder.measuring.device import compute_mode

SECONDS = 60.0
MODULES = (
    "ipykernel",
    "torchvision",
    "kernel",
    "autograder.teaching.compare",
    "autograder.teaching.chart",
    "autograder.gpu.device_judge",
)


def _packages(device: str) -> None:
    missing = []
    for module in MODULES:
        try:
            import_module(module)
        except ImportError as error:
            missing.append(f"{module}: {error}")
    if missing:
        raise ImportError("; ".join(missing))


def _kernel(device: str) -> None:
    assert torch.ones(9, device=device).sum().item() == 9


def _two_processes(device: str) -> None:
    from autograder.gpu import device_memory

    mode = compute_mode(device) if device == "cuda" else None
    if mode not in (None, "Default"):
        raise RuntimeError(f"its compute mode is {mode}: branches fail, too, as two cannot be on it")
    made = device_memory.allocate(4096, device)
    command = [sys.executable, __file__, "other process", device, made.ticket.hex()]
    subprocess.run([*command, *map(str, made.files)], pass_fds=made.files, check=True)
    assert made.contents[7].item() == 42


def _other_process(device: str, ticket: str, *files: str) -> None:
    from autograder.gpu import device_memory

    memory = device_memory.opened(4096, device, bytes.fromhex(ticket), [int(file) for file in files])
    memory[7] = 42
    memory.cpu()  # waits until it is there


def _compile(device: str) -> None:
    assert torch.compile(lambda x: 2 * x + 1)(torch.ones(9, device=device)).sum().item() == 27


def _triton(device: str) -> None:
    os.environ["TRITON_INTERPRET"] = str(int(device == "cpu"))
    from triton_launch import doubled

    assert doubled(torch.ones(8, device=device)).sum().item() == 16


# What each tries, and what does not work where it fails.
CHECKS = {
    "packages": (_packages, "what needs this package"),
    "kernel": (_kernel, "all that is on the device"),
    "two processes": (_two_processes, "judge-busy, apart and apart-busy"),
    "compile": (_compile, "what chapters 13, 15 and 19 compile"),
    "triton": (_triton, "the kernels in Triton of chapter 19"),
}


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    if name in CHECKS:
        CHECKS[name][0](*words)
    else:
        _other_process(*words)
    print(json.dumps({"errors": []}))
