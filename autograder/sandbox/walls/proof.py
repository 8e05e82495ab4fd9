"""Whether bubblewrap keeps what runs inside apart from this machine. It is shown anew, not believed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec

from . import bubblewrap

LACKS = msgspec.toml.decode(Path(__file__).with_name("lacks.toml").read_bytes(), type=dict[str, str])
UBUNTUS_SWITCH = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
NAMESPACES = ("user", "pid", "net", "ipc")
# What a student's code would try first. It says what it could do.
PROBE = Path(__file__).with_name("probe.txt").read_text(encoding="utf-8")


def why_not() -> str | None:
    """Why nothing hostile may run on this machine, in a sentence or two; None where the sandbox holds."""
    program = shutil.which("bwrap")
    if program is None:
        return LACKS["no_bubblewrap"]
    outside = [os.readlink(f"/proc/self/ns/{kind}") for kind in NAMESPACES]  # as in "pid:[4026531836]"
    with tempfile.NamedTemporaryFile(prefix="secret-") as secret:
        trial = subprocess.run(
            [*bubblewrap.command(program), "-I", "-S", "-c", PROBE, secret.name, *outside],
            capture_output=True,
            text=True,
        )
    if trial.returncode:
        why = (trial.stderr.strip().splitlines() or ["no reason given"])[-1]
        forbidden = UBUNTUS_SWITCH.exists() and UBUNTUS_SWITCH.read_text().strip() == "1"
        return LACKS["not_allowed"].format(why, LACKS["ubuntu" if forbidden else "elsewhere"])
    return LACKS["no_walls"].format(trial.stdout) if trial.stdout else None
