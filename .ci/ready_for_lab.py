"""Whether JupyterLab can start in this folder, and which GPU its notebooks will find.

Where one runs here already, say at which address, and exit with 3; with 1 and the reason where it cannot run.
"""

import os
import platform
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir, jupyter_runtime_dir
from jupyter_server.serverapp import list_running_servers


def device() -> str:
    """What PyTorch will find here; without importing it, which takes seconds."""
    spec = find_spec("torch")
    assert spec is not None and spec.origin is not None  # it is installed before this runs
    built = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    name = seen() or ("AMD's" if os.path.exists("/dev/kfd") else "")
    if name and (built["cuda"] or built["hip"]):
        through = f"CUDA {built['cuda']}" if built["cuda"] else f"ROCm {built['hip']}"
        return f"GPU: {name}, through {through}."
    if name:
        return (
            f"GPU: {name}, which is NOT used: this PyTorch is built for the CPU alone. "
            "How to get another: docs/start.md, 'A PyTorch for your GPU'."
        )
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return "GPU: Apple's (mps). This course was not tried on one yet."
    return "GPU: none. Everything runs on the CPU, beside figures that were recorded elsewhere."


def seen() -> str:
    """The name of NVIDIA's GPU here, in its driver's words."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return ""


for folder in map(Path, (jupyter_runtime_dir(), jupyter_data_dir())):
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(there, os.W_OK):
        sys.exit(
            f"error: JupyterLab keeps its files in your home folder, and {there} cannot be written. "
            "With another one: HOME=/path/to/folder make lab"
        )
here = Path.cwd().resolve()
for server in list_running_servers():
    if Path(server["root_dir"]).resolve() == here:
        token = f"?token={server['token']}" if server["token"] else ""
        print(f"JupyterLab runs here already: {server['url']}lab/tree/course/index.ipynb{token}")
        print(f"To stop it: press Ctrl-C twice where it runs, or: jupyter server stop {server['port']}")
        sys.exit(3)
print(device())
