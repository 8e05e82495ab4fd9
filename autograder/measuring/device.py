"""The processor behind a torch device: its name, and what is to be known about timings taken on it."""

import functools
import os
import platform
import re
import subprocess
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import torch

from .gpus import is_rocm

FAMILY = ("cpu family", "model", "stepping")


def device_name(device: str) -> str:
    """The name of the processor behind a torch device, as its maker gives it."""
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.get_device_name(device)
    if platform.system() == "Darwin":
        chip = _answer(["sysctl", "-n", "machdep.cpu.brand_string"]) or "Apple"
        return f"{chip} GPU" if kind == "mps" else chip
    return _cpuinfo("model name") or platform.processor() or platform.machine() or "CPU"


def processor() -> dict[str, str]:
    """What tells this processor from others of its name, which a hypervisor may give to many: "family" (as
    "25-17-1", with model and stepping), "vector" (the instructions that torch uses), "caches"; what is known.
    """
    parts = [*map(_cpuinfo, FAMILY)]
    found = {"family": "-".join(parts)} if all(parts) else {}
    found["vector"] = torch.backends.cpu.get_cpu_capability()
    with suppress(OSError):
        sizes = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
        if sizes:
            found["caches"] = " ".join(size.read_text(encoding="utf-8").strip() for size in sizes)
    return found


def provenance(device: str) -> dict[str, Any]:
    """What somebody needs to know to trust or repeat a timing taken on ``device`` today. A processor's name
    has in brackets what tells it from others of that name.
    """
    name, kind = device_name(device), torch.device(device).type
    known = processor() if kind == "cpu" else {}
    told = [fact.split()[-1] for fact in known.values()]  # of the caches the last one: it may be shared out
    facts: dict[str, Any] = {
        "kind": kind,
        "name": f"{name} ({' '.join(told)})" if told else name,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": date.today().isoformat(),
    }
    if "caches" in known:
        facts["caches"] = known["caches"]
    if facts["kind"] == "mps":
        facts["macos"] = platform.mac_ver()[0]
    elif facts["kind"] == "cuda" and is_rocm():
        facts["rocm"] = torch.version.hip
    elif facts["kind"] == "cuda":
        facts |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), **_driver(device)}
    return facts


def compute_mode(device: str) -> str | None:
    """Who may use a GPU, in its driver's words; "Default" is several processes. None where nobody says."""
    return _told(torch.device(device).index or 0).get("compute_mode")


def _driver(device: str) -> dict[str, Any]:
    """Driver and clocks (MHz), as far as nvidia-smi tells them."""
    told = _told(torch.device(device).index or 0)
    clocks = {"clock_mhz": told.get("clocks.max.sm", ""), "memory_clock_mhz": told.get("clocks.max.mem", "")}
    driver = {"driver": told.get("driver_version", "")}
    known = {name: int(clock) for name, clock in clocks.items() if clock.isdigit()}
    return (driver if driver["driver"][:1].isdigit() else {}) | known


@functools.cache
def _told(index: int) -> dict[str, str]:
    """What nvidia-smi tells of a GPU, without what it does not know: on some that is "[N/A]"."""
    names = ("driver_version", "clocks.max.sm", "clocks.max.mem", "compute_mode")
    command = ["nvidia-smi", "-i", str(index), f"--query-gpu={','.join(names)}"]
    answers = (answer.strip() for answer in _answer([*command, "--format=csv,noheader,nounits"]).split(","))
    return {name: answer for name, answer in zip(names, answers, strict=False) if answer[:1] not in ("[", "")}


@functools.cache
def _cpuinfo(fact: str) -> str:
    """What Linux tells of the first processor; nothing where it does not."""
    with suppress(OSError):
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        if found := re.search(rf"^{fact}\s*:\s*(.+)$", told, re.MULTILINE):
            return found[1].strip()
    return ""


def _answer(command: list[str]) -> str:
    """What a program prints; nothing where it is not there, or fails."""
    with suppress(OSError, subprocess.CalledProcessError):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return ""
