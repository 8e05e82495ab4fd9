"""The processes of chapter 22: none outlives its notebook, and what fails in one is told."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from repository import ROOT

NOTEBOOK = """
import os
import torch.distributed as dist
from parts.sharding import Ranks

def who(): return os.getpid()
def fails(): raise ValueError("a piece is missing")
def waits_for_rank_0(): return dist.barrier() if dist.get_rank() else None

if __name__ == "__main__":
    ranks = Ranks(2)
    for function in (who, waits_for_rank_0, fails):
        ranks.know(function)
    try:
        ranks.do(fails)
    except RuntimeError as error:
        print("a piece is missing" in str(error), flush=True)
    print(*ranks.do(who), flush=True)
    ranks.do(waits_for_rank_0)
"""


@pytest.mark.slow
def test_ranks_tell_errors_and_end_with_a_killed_notebook_even_where_one_waits(tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(NOTEBOOK, encoding="utf-8")
    command = [sys.executable, str(script)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "course")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as notebook:
        assert notebook.stdout and notebook.stdout.readline() == "True\n"
        team = [psutil.Process(int(number)) for number in notebook.stdout.readline().split()]
        assert len(team) == 2 and all(rank.is_running() for rank in team)
        notebook.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(team, timeout=30)
    assert alive == []
