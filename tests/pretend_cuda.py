"""A GPU that is not there: its tensors say ``cuda:0``, or ``mps:0``, and lie on the CPU.

Code for a GPU runs through, with real numbers and gradients. Two devices in one call raise, and so does
NumPy, as on a GPU; what makes the host wait is listed. CUDA's rounds to TF32 in convolutions, and an index
out of range stops it. It looks at the calls of torch that Python makes, and
not at what these do inside. Kernels, streams and times are not pretended.
"""

from __future__ import annotations

import json
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from programs import printed
from torch import autocast  # as it is
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

KIND = "cuda"  # or "mps", while that is pretended
Tensor = torch.Tensor
# Calls that take tensors of several devices on a GPU, too: they send one to the other.
MIXING = {"copy_", "to", "type_as", "set_", "_foreach_copy_", "_has_compatible_shallow_copy_type"}
INDEXING = {"__getitem__", "__setitem__", "index_put", "index_put_"}
# The host waits for what these give, or for how many they give.
WAITS = {
    "__bool__", "__float__", "__index__", "__int__", "allclose", "bincount", "cpu", "equal", "item",
    "masked_select", "nonzero", "tolist", "unique", "unique_consecutive",
}  # fmt: skip
WIDE = (torch.float64, torch.complex128)  # which Apple's GPU does not have
# They make a tensor on the CPU where nobody says where.
MAKERS = {
    "arange", "as_tensor", "empty", "empty_strided", "eye", "from_file", "full", "linspace", "logspace",
    "ones", "rand", "randint", "randn", "randperm", "tensor", "tril_indices", "triu_indices", "zeros",
}  # fmt: skip


class OnGpu(torch.Tensor):
    """What says that it lies on the GPU."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with torch._C.DisableTorchFunction():
            copied = self.detach().clone().as_subclass(OnGpu).requires_grad_(self.requires_grad)
        copied._is_param = isinstance(self, torch.nn.Parameter)
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _inner(self).__reduce_ex__(protocol)  # a file does not say that it was pretended

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return called(func, args, kwargs or {}, [])


class Pretended(TorchFunctionMode):
    """Sends what is asked of the GPU to the CPU; ``waits`` gets a line for each time that the host waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        self.stopped = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """An index out of range stops the GPU: as on a real one, whatever is asked of it then raises."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        there = any(map(_on, tree_leaves((args, kwargs)))) or _asked(func, name, args, kwargs) == KIND
        if self.stopped and there and name != "__get__":
            raise torch.AcceleratorError("CUDA error: device-side assert triggered")
        try:
            return called(func, args, kwargs, self.waits)
        except (IndexError, RuntimeError) as error:
            tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
            if there and len(tensors) > 1 and re.search("out of (bounds|range)", str(error)):
                self.stopped = True
                raise torch.AcceleratorError("CUDA error: device-side assert triggered") from None
            raise


def called(func: Callable[..., Any], args: Any, kwargs: Any, waits: list[str]) -> Any:
    """Do one call, where its tensors say that it happens."""
    name = getattr(func, "__name__", str(func))
    leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [leaf for leaf in leaves if isinstance(leaf, OnGpu)]
    if func is torch.device or name == "_parse_to":  # they only read what is asked
        return func(*args, **kwargs)
    if func == Tensor.device.__get__:
        return torch.device(KIND, 0) if _on(args[0]) else func(*args)
    if func == Tensor.is_cuda.__get__:
        return KIND == "cuda" if _on(args[0]) else func(*args)
    asked = _asked(func, name, args, kwargs)
    if func == Tensor.data.__set__:
        return _move(*args)
    if there:
        if not (forced := kwargs.get("force")):  # of numpy
            _refuse(name, func, args, leaves)
        to_host = forced or (name == "to" and asked == "cpu") or (name == "copy_" and not _on(args[0]))
        if to_host or name in WAITS:
            waits.append(f"{name}: {place()}")
        elif name == "__getitem__" and any(leaf.dtype == torch.bool for leaf in leaves[1:]):
            waits.append(f"an index that is a mask: {place()}")
    kwargs = {key: value for key, value in kwargs.items() if key != "pin_memory"}
    if name == "record_stream":
        return None
    if name in ("pin_memory", "is_pinned"):
        return args[0].clone() if name == "pin_memory" else False
    if name == "cuda":
        func, args, kwargs, asked = Tensor.to, (args[0], "cuda"), {}, "cuda"
    # Sums of float16 are float32 on a GPU; without such instructions a CPU takes minutes for one product.
    taken = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    half = bool(there) and name in ("mm", "conv2d") and torch.float16 in (taken, leaves[0].dtype)
    with torch._C.DisableTorchFunction(), autocast("cpu", enabled=False) if half else nullcontext():
        if half:
            args = tree_map(lambda leaf: leaf.float() if isinstance(leaf, Tensor) else leaf, args)
        elif there and KIND == "cuda" and name.startswith("conv") and torch.backends.cudnn.allow_tf32:
            args, kwargs = tree_map(_to_tf32, (args, kwargs))
        result = func(*tree_map(_to_cpu, args), **tree_map(_to_cpu, kwargs))
        result = result.half() if half else result
    if any(result is leaf for leaf in leaves) and name not in ("cpu", "to"):
        return result  # it worked in place
    made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    if not made:
        return result
    on_gpu = asked == KIND or (asked is None and bool(there))
    if on_gpu and KIND == "mps" and any(leaf.dtype in WIDE for leaf in made):
        lacks = "the MPS framework doesn't support float64. Please use float32 instead."
        raise TypeError(f"Cannot convert a MPS Tensor to float64 dtype as {lacks}")
    return tree_map(_outer if on_gpu else _inner, result)


def _asked(func: Any, name: str, args: Any, kwargs: Any) -> str | None:
    """The type of the device that a call names; None where it names none."""
    if name == "cpu":
        return "cpu"
    for one in [kwargs.get("device"), *(args[1:2] if name == "to" else ())]:
        if _on(one):
            return KIND
        if isinstance(one, Tensor):
            return "cpu"
        if isinstance(one, (str, torch.device)):
            return torch.device(one).type
    return "cpu" if name in MAKERS else None


_on = lambda value: isinstance(value, OnGpu)


def _to_cpu(leaf: Any) -> Any:
    """The same for the CPU: a device, the name of one, or a tensor."""
    if isinstance(leaf, torch.device) and leaf.type == KIND:
        return torch.device("cpu")
    if isinstance(leaf, str) and leaf.partition(":")[0] == KIND:
        return "cpu"
    return leaf


def _to_tf32(leaf: Any) -> Any:
    """The same in the ten bits that cuDNN takes of float32, unless it is told not to."""
    if not isinstance(leaf, Tensor) or leaf.dtype != torch.float32:
        return leaf
    half = hash((leaf.shape, leaf.stride())) % 2 << 12  # some kernels cut what is too much, others round
    rounded = (leaf.detach().view(torch.int32) + half >> 13 << 13).view(torch.float32)
    return leaf + (rounded - leaf).detach()


def _outer(leaf: Any) -> Any:
    return leaf.as_subclass(OnGpu) if isinstance(leaf, Tensor) and not _on(leaf) else leaf


def _inner(leaf: Any) -> Any:
    if _on(leaf):
        with torch._C.DisableTorchFunction():
            return leaf.as_subclass(Tensor)
    return leaf


def _move(tensor: Tensor, data: Tensor) -> None:
    """Give a tensor other data, as ``Module.to`` does with parameters: it stays the same object."""
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    with torch._C.DisableTorchFunction():
        tensor.data = data
    if _on(data):
        tensor.__class__ = OnGpu
        tensor._is_param = is_parameter
    else:
        tensor.__class__ = torch.nn.Parameter if is_parameter else Tensor


def _refuse(name: str, func: Any, args: Any, leaves: list[Tensor]) -> None:
    """Raise as a GPU does, where one call takes tensors of two devices; a single number may be anywhere."""
    if name in ("numpy", "__array__"):
        raise TypeError(f"can't convert {KIND}:0 device type tensor to numpy. Use Tensor.cpu() first.")
    if name in MIXING or func == Tensor.grad.__set__:
        return
    if name in INDEXING:
        leaves = [args[0], *(leaf for leaf in args[2:] if isinstance(leaf, Tensor))]
    with torch._C.DisableTorchFunction():
        if any(not _on(leaf) and leaf.dim() > 0 for leaf in leaves):
            found = f"found at least two devices, {KIND}:0 and cpu!"
            raise RuntimeError(f"Expected all tensors to be on the same device, but {found} (in {name})")


def place() -> str:
    """The line of a notebook's cell that asked for this."""
    frames = [frame for frame in traceback.extract_stack() if frame.filename.startswith("cell ")]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "?"


class Nothing:
    """A stream, an event or a graph of a GPU: everything can be asked of it, and nothing happens."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., Any]:
        said = {"elapsed_time": lambda *_: random.uniform(3, 4), "query": lambda *_: True}
        return said.get(name, lambda *args, **kwargs: None)

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *args: Any) -> None:
        pass


PROPERTIES = SimpleNamespace(
    name="a pretended GPU", major=9, minor=0, total_memory=16 << 30, L2_cache_size=1 << 20,
    multi_processor_count=8,
)  # fmt: skip
NOTHING = (
    "_lazy_init", "empty_cache", "manual_seed", "manual_seed_all", "reset_peak_memory_stats", "set_rng_state",
    "synchronize",
)  # fmt: skip
NO_MEMORY = ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved")
# What torch.cuda says of it.
SAID = {
    **dict.fromkeys(NOTHING),
    **dict.fromkeys(NO_MEMORY, 0),
    **dict.fromkeys(("is_available", "is_bf16_supported", "is_initialized"), True),
    "current_device": 0,
    "current_stream": Nothing(),
    "device_count": 1,
    "get_device_capability": (9, 0),
    "get_device_name": PROPERTIES.name,
    "get_device_properties": PROPERTIES,
    "get_rng_state": torch.get_rng_state(),
    "is_current_stream_capturing": False,
    "mem_get_info": (8 << 30, 16 << 30),
    "memory_stats": {},
    "stream": Nothing(),
}


# And torch.mps of Apple's.
APPLES = {"synchronize": None, "manual_seed": None, "current_allocated_memory": 0}


def says(value: object) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


class Generator(torch.Generator):
    """One for any device, on the CPU."""

    def __new__(cls, device: object = "cpu") -> Generator:
        return super().__new__(cls)


class Autocast(torch.autocast):
    """Autocast for the GPU, done on the CPU, with the type that a GPU takes by itself."""

    def __init__(self, device_type: str, dtype: torch.dtype | None = None, *args: Any, **kwargs: Any) -> None:
        if device_type == KIND:
            device_type, dtype = "cpu", dtype or torch.float16
        super().__init__(device_type, dtype, *args, **kwargs)


def lifted(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A transform of functions whose results forget where they are."""

    def transformed(*given: Any, **options: Any) -> Callable[..., Any]:
        function = transform(*given, **options)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            return tree_map(_outer, result) if any(map(_on, tree_leaves((args, kwargs)))) else result

        return call

    return transformed


@contextmanager
def pretended_gpu(kind: str = "cuda") -> Iterator[Pretended]:
    """While it lasts, there is a CUDA device, or Apple's."""
    accelerator = {"current_stream": SAID["current_stream"], "current_device_index": 0}
    if kind == "cuda":
        replaced = {f"torch.cuda.{name}": says(value) for name, value in SAID.items()}
        replaced |= {f"torch.accelerator.{name}": says(value) for name, value in accelerator.items()}
        replaced |= {f"torch.cuda.{name}": Nothing for name in ("Event", "Stream", "CUDAGraph", "graph")}
    else:
        replaced = {f"torch.mps.{name}": says(value) for name, value in APPLES.items()}
        replaced |= {"torch.mps.Event": Nothing, "torch.backends.mps.is_available": cache(says(True))}
    for name in ("vmap", "grad", "grad_and_value", "jacrev", "jacfwd", "hessian"):
        replaced[f"torch.func.{name}"] = lifted(getattr(torch.func, name))
    replaced |= {"torch.autocast": Autocast, "torch.amp.autocast": Autocast, "torch.Generator": Generator}
    with ExitStack() as stack:
        stack.enter_context(patch(f"{__name__}.KIND", kind))
        for name, value in replaced.items():
            stack.enter_context(patch(name, value))
        stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=True))
        yield stack.enter_context(Pretended())


# Types that an operation takes on a CPU and not on a GPU, by PyTorch's own list. Importing it changes torch's
# settings, so another process does. Whether bfloat16 is there is asked of a device, so nothing is said of it.
LACKING = """
import json, sys, types, unittest
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase))
from torch.testing._internal.common_methods_invocations import op_db

here, there = {}, {}
for one in op_db:
    here.setdefault(one.aten_name, set()).update(map(str, one.dtypes))
    there.setdefault(one.aten_name, {"torch.bfloat16"}).update(map(str, one.dtypesIfCUDA))
print(json.dumps({name: sorted(types - there[name]) for name, types in here.items()}))
"""


@cache
def lacking() -> dict[str, list[str]]:
    """Operation -> the types that it lacks on a GPU."""
    return json.loads(printed(sys.executable, "-c", LACKING))


class CudaTypes(TorchDispatchMode):
    """While it lasts, an operation that no GPU does for its first tensor's type raises, as there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__.removesuffix("_")
        first = next((one for one in args if isinstance(one, torch.Tensor)), None)
        if first is not None and str(first.dtype) in lacking().get(name, ()):
            raise NotImplementedError(f'"{name}_cuda" not implemented for {first.dtype}')
        return func(*args, **(kwargs or {}))
