"""Types that an operation takes on a CPU and not on a GPU, by PyTorch's own list of operations."""

import json
import subprocess
import sys
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Importing the list changes torch's settings, so another process does. Whether bfloat16 is there is asked of
# a device, so nothing is said of it.
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
    done = subprocess.run([sys.executable, "-c", LACKING], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class CudaTypes(TorchDispatchMode):
    """While it lasts, an operation that no GPU does for its first tensor's type raises, as there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__.removesuffix("_")
        first = next((one for one in args if isinstance(one, torch.Tensor)), None)
        if first is not None and str(first.dtype) in lacking().get(name, ()):
            raise NotImplementedError(f'"{name}_cuda" not implemented for {first.dtype}')
        return func(*args, **(kwargs or {}))
