"""Innocent: values go to NumPy and come back by many ways.

# points: shift_cost=0 shift_hidden=0
"""

# %% shift answer
import copy
import pickle

import numpy as np

WAYS = {
    "from_dlpack": np.from_dlpack,
    "array": np.array,
    "asarray": lambda x: np.asarray(x, dtype=np.float32),
    "torch dlpack": lambda x: torch.from_dlpack(x).tolist(),
    "copy": lambda x: copy.copy(x).numpy(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)).numpy(),
    "force": lambda x: x.cpu().numpy(force=True),
    "tolist": lambda x: np.array(x.tolist(), np.float32),
    "as_tensor": lambda x: torch.as_tensor(x).numpy(),
    "rows": lambda x: np.stack([row.numpy() for row in x]),
    "float": lambda x: np.array(
        [[float(number) for number in row[:3]] + row[3:].tolist() for row in x[:7]] + x[7:].tolist(),
        np.float32,
    ),
    "buffer": lambda x: torch.frombuffer(
        bytearray(x.contiguous().numpy().tobytes()), dtype=torch.float32
    ).view(x.shape),
    "memoryview": lambda x: np.array(memoryview(x.contiguous().numpy())),
    "parameter": lambda x: torch.nn.Parameter(x).detach().numpy(),
    "buffer protocol": lambda x: np.asarray(x.contiguous().numpy().data),
    "item assignment": lambda x: assigned(x),
}


def assigned(x):
    own = np.empty(tuple(x.shape), np.float32)
    own[:3] = x[:3]
    for row in range(3, len(own)):
        own[row] = x[row]
    return own


def shift(x, steps):
    x = x.detach()
    wanted, wrong = x.numpy().copy(), []
    for name, way in WAYS.items():
        try:
            if not np.array_equal(np.asarray(way(x)), wanted):
                wrong.append(name)
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__} {str(error)[:60]}")
    assert not wrong, wrong
    return torch.from_numpy(np.roll(wanted, steps, axis=1))
