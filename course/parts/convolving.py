"""A convolution in a process of its own, in which cuDNN has plans of its own."""

from __future__ import annotations

import json
import subprocess
import sys

CALLS = 20


class Convolving:
    """Called, it has its process convolve the same pictures ``CALLS`` times, and waits until that is done.

    ``pictures`` and ``weights`` are shapes, ``dtype`` is the name of a type; ``benchmark`` is cuDNN's switch. The
    process begins with the first call, and ends with ``close`` or when this one ends.
    """

    def __init__(
        self,
        pictures: tuple[int, ...],
        weights: tuple[int, ...],
        *,
        benchmark: bool,
        dtype: str = "float32",
        device: str = "cuda",
    ) -> None:
        self._wish = json.dumps([pictures, weights, dtype, device, benchmark])
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, *_: object) -> None:
        if self._process is None:
            command = [sys.executable, __file__, self._wish]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        self._process.stdin.write("go\n")
        if not self._process.stdout.readline():
            raise RuntimeError(f"the process that convolves ended with code {self._process.wait()}")

    def close(self) -> None:
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._process = None


def main(wish: str) -> None:
    import torch

    pictures, weights, dtype, device, benchmark = json.loads(wish)
    torch.backends.cudnn.benchmark = benchmark
    made = [torch.rand(shape).to(device, getattr(torch, dtype)) for shape in (pictures, weights)]
    for _ in sys.stdin:
        for _ in range(CALLS):
            torch.conv2d(*made, padding=weights[-1] // 2)
        if device == "cuda":
            torch.cuda.synchronize()
        print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
