"""The Triton kernels of chapter 19 and its exercises compile for GPUs, old and new, without one."""

import os
import sys

import pytest
from programs import printed
from repository import COURSE, ROOT, SOLUTIONS

COMPILE = """
import kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

for name, (signature, constants) in kernels.LAUNCHED.items():
    kernel = getattr(kernels, name)
    places = {(kernel.arg_names.index(key),): value for key, value in constants.items()}
    for capability in (75, 90):
        triton.compile(ASTSource(kernel, signature, places), target=GPUTarget("cuda", capability, 32))
        print(name, capability)
"""


@pytest.mark.slow
@pytest.mark.parametrize("source", [path for path in COURSE + SOLUTIONS if "19" in path.stem], ids=str)
def test_kernels_compile_for_a_t4_and_an_h100(source, tmp_path) -> None:
    pytest.importorskip("triton", reason="it comes for Linux")
    places = {"PYTHONPATH": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    there = {**os.environ, **places, "AUTOGRADER_SECONDS": "0", "MPLBACKEND": "agg"}
    collect = [sys.executable, "tests/triton_kernels.py", source, tmp_path / "kernels.py"]
    printed(*collect, cwd=ROOT, env={**there, "TRITON_INTERPRET": "1"})
    said = printed(sys.executable, "-c", COMPILE, cwd=tmp_path, env=there)
    assert len(said.splitlines()) >= 6
