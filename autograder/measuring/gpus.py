"""GPUs that torch may use, by the type of their device: whether one works, and how to wait for it.

"cuda" is one of NVIDIA's, or of AMD's in a PyTorch for ROCm; "mps" is Apple's.
"""

import functools
import warnings

import torch

KINDS = {"cuda": "the GPU", "mps": "Apple's GPU"}
# What the driver says -> what that means.
REASONS = {
    "no kernel image": "this PyTorch has no code for it",
    "busy or unavailable": "another program has it for itself",
    "out of memory": "its memory is full",
}


def is_gpu(device: str | torch.device) -> bool:
    return torch.device(device).type in KINDS


def works(kind: str) -> bool:
    """Whether there is a GPU of this kind that does what it is asked to. Warns of one that does not, once."""
    announced = torch.cuda.is_available() if kind == "cuda" else torch.backends.mps.is_available()
    return announced and _runs(kind)


@functools.cache
def _runs(kind: str) -> bool:
    try:
        return torch.ones(2, device=kind).add(1).sum().item() == 4
    except Exception as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        why = next((reason for words, reason in REASONS.items() if words in str(error)), said)
        name = torch.cuda.get_device_name() if kind == "cuda" else kind
        warnings.warn(f"The GPU {name} is not used: {why}.", stacklevel=2)
        return False


def wait(device: str | torch.device) -> None:
    """Wait until a GPU has done all that it was asked to; a CPU has when a call returns."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    elif is_gpu(device):
        torch.mps.synchronize()


def is_rocm() -> bool:
    """Whether "cuda" stands for AMD's ROCm: its library for convolutions is MIOpen, and not cuDNN."""
    return torch.version.hip is not None


def with_float64(device: str) -> str:
    """A device that has float64, to calculate there what comes out on ``device``."""
    return "cpu" if torch.device(device).type == "mps" else device


def is_full(error: BaseException | None) -> bool:
    """Whether an error says that a GPU has no memory left."""
    return isinstance(error, RuntimeError) and "out of memory" in str(error)


def refused(device: str, error: BaseException | None) -> str | None:
    """What a GPU does not have that a call needed; None for another error, or the CPU."""
    if is_gpu(device) and is_full(error):
        return "its memory is full"
    while error and torch.device(device).type == "mps":
        if isinstance(error, TypeError) and "float64" in str(error):
            return "it has no float64"
        if isinstance(error, NotImplementedError) and "MPS device" in str(error):
            return str(error).partition(". ")[0]
        error = error.__cause__
    return None
