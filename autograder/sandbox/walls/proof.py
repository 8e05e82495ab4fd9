"""Whether bubblewrap keeps what runs inside apart from this machine. It is shown anew, not believed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import bubblewrap

NOT_FOUND = "bubblewrap was not found. On Debian and Ubuntu: apt install bubblewrap."
NOT_ALLOWED = "bubblewrap is there, but this machine does not let it start a sandbox ({}). {}"
NO_WALLS = "bubblewrap starts, but what runs inside {}."
UBUNTU = (
    "Ubuntu keeps namespaces from programs that it does not know: sysctl -w "
    "kernel.apparmor_restrict_unprivileged_userns=0 allows them until the next start."
)
CONTAINER = "User namespaces must be allowed; in a container, by the one who starts it."
UBUNTUS_SWITCH = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
NAMESPACES = ("user", "pid", "net", "ipc")
# What a student's code would try first. It says what it could do.
PROBE = Path(__file__).with_name("probe.txt").read_text(encoding="utf-8")


def why_not() -> str | None:
    """Why nothing hostile may run on this machine, in a sentence or two; None where the sandbox holds."""
    program = shutil.which("bwrap")
    if program is None:
        return NOT_FOUND
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
        return NOT_ALLOWED.format(why, UBUNTU if forbidden else CONTAINER)
    return NO_WALLS.format(trial.stdout) if trial.stdout else None
