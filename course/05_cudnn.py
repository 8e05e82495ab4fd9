# %% [markdown]
# # 05 · cuDNN: search once, or repeat exactly
#
# On NVIDIA GPUs, convolutions run in a library called cuDNN. It knows several algorithms for the same
# convolution. Two switches decide which one you get: `benchmark` and `deterministic`. One asks for speed, the
# other for the same bits each time.
#
# **You will be able to**
# - say what `cudnn.benchmark = True` searches, what the search costs, and when it pays,
# - make a training run repeat bit for bit, and say what that does not promise,
# - name the default precision of convolutions and matrix products on a GPU.
#
# **Time:** 30 minutes. **Needs:** CPU; the switches act on NVIDIA GPUs. Without one you see
# recorded figures where there are some, and a model of the search that you run on the CPU.
#
# **Claims tested:** *A5*, *D2* "`benchmark = True` pays off when shapes stay fixed"; *D1* what cuDNN speeds up;
# *D3* "with changing sizes, leave it off"; *D4* "`deterministic = True` gives the same result each run, and may
# cost speed"; *D5* "also switch `benchmark` off and seed everything"; *D6* "determinism across machines is not
# promised".

# %%
import os
import random
import time
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from autograder import compare, verdict, verdicts

print("cuDNN here:", torch.backends.cudnn.version() if torch.cuda.is_available() else "no NVIDIA GPU")
print("its counterpart for CPUs, oneDNN:", "yes" if torch.backends.mkldnn.is_available() else "no")

# %% [markdown]
# ## 1. What such a library is worth
#
# cuDNN holds tuned code for convolution, pooling, normalisation, activation and recurrent networks. PyTorch has
# a plain version of a convolution too, and uses it when the library is switched off. On the CPU, oneDNN has the
# same place as cuDNN on the GPU. How many times faster is a convolution with the library?

# %%
guess = 1.5


# %%
@contextmanager
def no_library():
    """Switch cuDNN and oneDNN off for a while."""
    torch._C._set_mkldnn_enabled(False)
    try:
        with torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        torch._C._set_mkldnn_enabled(True)


def without_library(images, weight):
    with no_library():
        return F.conv2d(images, weight, padding=1)


compare(
    "a 3 × 3 convolution without and with the library",
    {
        "without": without_library,
        "with": lambda images, weight: F.conv2d(images, weight, padding=1),
    },
    inputs=lambda generator, device: (
        torch.rand(4, 32, 56, 56, generator=generator).to(device),
        torch.rand(32, 32, 3, 3, generator=generator).to(device),
    ),
    guess=guess,
    claim="D1",
)

# %% [markdown]
# A convolution of this size is 116 million multiplications and as many additions. The library arranges them so
# that each number is loaded once and used many times. On the CPU the claim is about oneDNN; the row of a GPU, live
# or recorded, is about cuDNN itself.
#
# What about something that has hardly any arithmetic, such as max-pooling?

# %%
guess = 1.5


# %%
def pool_without_library(images):
    with no_library():
        return F.max_pool2d(images, 2)


compare(
    "max-pooling without and with the library",
    {"without": pool_without_library, "with": lambda images: F.max_pool2d(images, 2)},
    inputs=lambda generator, device: torch.rand(4, 32, 56, 56, generator=generator).to(device),
    guess=guess,
    claim="D1",
)

# %% [markdown]
# Not worth mentioning. PyTorch calls its own code for max-pooling either way. A library helps where it is called.

# %% [markdown]
# ## 2. Several algorithms for one convolution
#
# What is there to search? We can see it on any machine, because a convolution can be computed in several ways:
#
# - **direct**: what `F.conv2d` does here,
# - **matrix product**: copy all patches into a large matrix (`F.unfold`), then multiply once,
# - **FFT**: transform picture and kernel, multiply, transform back.
#
# All three give the same numbers, up to rounding.


# %%
def direct(images, weight):
    return F.conv2d(images, weight, padding=weight.shape[-1] // 2)


def matrix_product(images, weight):
    n, _, height, width = images.shape
    patches = F.unfold(images, weight.shape[-1], padding=weight.shape[-1] // 2)
    return (weight.flatten(1) @ patches).view(n, len(weight), height, width)


def fft(images, weight):
    height, width = images.shape[-2:]
    size = weight.shape[-1]
    room = (height + size - 1, width + size - 1)
    spectrum = torch.einsum(
        "nchw,ochw->nohw", torch.fft.rfft2(images, room), torch.fft.rfft2(weight.flip(-1, -2), room)
    )
    half = size // 2
    return torch.fft.irfft2(spectrum, room)[..., half : half + height, half : half + width]


images, weight = torch.rand(1, 4, 32, 32), torch.rand(4, 4, 5, 5)
for algorithm in (matrix_product, fft):
    assert torch.allclose(direct(images, weight), algorithm(images, weight), rtol=1e-4)

# %% [markdown]
# Which one is the fastest? First a small kernel, 3 × 3. The guess is for the last row: how many times faster than
# FFT is the direct way?

# %%
guess = 3.0

# %%
compare(
    "three algorithms for a 3 × 3 kernel",
    {"FFT": fft, "matrix product": matrix_product, "direct": direct},
    inputs=lambda generator, device: (
        torch.rand(1, 16, 64, 64, generator=generator).to(device),
        torch.rand(16, 16, 3, 3, generator=generator).to(device),
    ),
    guess=guess,
)

# %% [markdown]
# And a large kernel, 31 × 31? (A number below 1 means that direct is slower than FFT.)

# %%
guess = 3.0

# %%
compare(
    "three algorithms for a 31 × 31 kernel",
    {"FFT": fft, "matrix product": matrix_product, "direct": direct},
    inputs=lambda generator, device: (
        torch.rand(1, 2, 96, 96, generator=generator).to(device),
        torch.rand(2, 2, 31, 31, generator=generator).to(device),
    ),
    guess=guess,
    seconds=0.5,
)

# %% [markdown]
# The order has turned round. No algorithm is the best for all shapes. (31 × 31 means 961 multiplications for each
# output and channel. The matrix product copies each pixel 961 times first. The FFT's work hardly depends on the size
# of the kernel.)
#
# So there are two ways to choose: by a rule of thumb, or by trying. Trying is what `benchmark = True` does. At the
# first call of a configuration, cuDNN runs several algorithms, and keeps the fastest. A configuration is
# everything that matters: shapes of input and weight, stride, padding, dtype, layout, device.

# %%
print("benchmark:      ", torch.backends.cudnn.benchmark, "(the default)")
print("benchmark_limit:", torch.backends.cudnn.benchmark_limit, "algorithms are tried at most")

# %% [markdown]
# ## 3. What the search costs
#
# Here is the search in miniature. It runs on any device. A real one is more careful, but pays in the same way.


# %%
class SearchingConv:
    """Try two algorithms at the first call of a configuration; then use the faster one."""

    def __init__(self):
        self.chosen = {}
        self.searches = 0

    def __call__(self, images, weight):
        key = (tuple(images.shape), tuple(weight.shape), images.dtype, images.device)
        if key not in self.chosen:
            self.searches += 1
            self.chosen[key] = min((direct, fft), key=lambda way: self.time(way, images, weight))
        return self.chosen[key](images, weight)

    @staticmethod
    def time(way, images, weight):
        way(images, weight)  # warm up
        if images.is_cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        way(images, weight)
        if images.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - start


# %% [markdown]
# Twelve pictures of the same size, with a 31 × 31 kernel. The search runs once and finds the FFT. Is it worth it?
# The guess is: how many times faster than always *direct* is the searching version, search included?

# %%
guess = 2.0


# %%
def convolve_all(convolve, seed, device, sizes):
    generator = torch.Generator().manual_seed(seed)
    kernel = torch.rand(4, 4, 31, 31, generator=generator).to(device)
    for size in sizes:
        convolve(torch.rand(1, 4, size, size, generator=generator).to(device), kernel)


FIXED = [96] * 12
CHANGING = list(range(85, 97))

compare(
    "12 pictures of one size: no search, or search",
    {
        "direct": lambda seed, device: convolve_all(direct, seed, device, FIXED),
        "search, then the best": lambda seed, device: convolve_all(SearchingConv(), seed, device, FIXED),
    },
    inputs=lambda generator, device: (int(torch.randint(1000, (), generator=generator)), device),
    guess=guess,
    seconds=0.5,
)

# %% [markdown]
# And twelve pictures of twelve different sizes? Here the search is the baseline: how many times faster is *direct*?

# %%
guess = 1.0

# %%
compare(
    "12 pictures of 12 sizes: no search, or search",
    {
        "search, then the best": lambda seed, device: convolve_all(SearchingConv(), seed, device, CHANGING),
        "direct": lambda seed, device: convolve_all(direct, seed, device, CHANGING),
    },
    inputs=lambda generator, device: (int(torch.randint(1000, (), generator=generator)), device),
    guess=guess,
    seconds=0.5,
)

# %%
for name, sizes in (("one size", FIXED), ("12 sizes", CHANGING)):
    searching = SearchingConv()
    convolve_all(searching, 0, "cpu", sizes)
    print(f"{name}: {searching.searches} searches")

# %% [markdown]
# With changing sizes every picture pays for a search and uses its result once. A search costs at least one run of
# every algorithm, the slow ones too, and a careful one runs them several times. A widely read article says in its
# introduction that `benchmark` is a great help with *varying* sizes, and later the opposite. The later sentence is
# right. The introduction is wrong.

# %%
one_size, many_sizes = SearchingConv(), SearchingConv()
convolve_all(one_size, 0, "cpu", FIXED)
convolve_all(many_sizes, 0, "cpu", CHANGING)
verdict(
    "D3",
    "holds",
    "in the model of the search every new shape is searched again: 12 sizes, 12 searches; one size, one search.",
    shown=(one_size.searches, many_sizes.searches) == (1, 12),
)

# %% [markdown]
# ### The real one
#
# Three comparisons with cuDNN's own search. The inputs of the first two stay fixed, those of the third change with every
# call. Here `benchmark` really is switched on. Without a GPU you see recordings, where there are any.

# %%
guess = 1.2


# %%
def convolve_with(benchmark):
    def convolve(images, weight):
        with torch.backends.cudnn.flags(enabled=True, benchmark=benchmark):
            return F.conv2d(images, weight, padding=1)

    return convolve


compare(
    "cuDNN with fixed shapes: benchmark off and on",
    {"benchmark = False": convolve_with(False), "benchmark = True": convolve_with(True)},
    inputs=lambda generator, device: (
        torch.rand(32, 64, 56, 56, generator=generator).to(device),
        torch.rand(64, 64, 3, 3, generator=generator).to(device),
    ),
    guess=guess,
    claim="A5",
    only="cuda",
)

# %%
guess = 1.2

# %%
compare(
    "cuDNN with fixed shapes and a large batch: benchmark off and on",
    {"benchmark = False": convolve_with(False), "benchmark = True": convolve_with(True)},
    inputs=lambda generator, device: (
        torch.rand(64, 128, 28, 28, generator=generator).half().to(device),
        torch.rand(128, 128, 5, 5, generator=generator).half().to(device),
    ),
    guess=guess,
    claim="D2",
    only="cuda",
)

# %%
guess = 1.0
fresh_size = iter(range(20, 100_000))


# %%
def convolve_new_size_with(benchmark):
    convolve = convolve_with(benchmark)

    def run(weight):
        # Never the same width twice in this session, so that nothing is known about it.
        return convolve(torch.rand(1, 16, 8, next(fresh_size), device=weight.device), weight)

    return run


compare(
    "cuDNN with a new shape at every call: benchmark on and off",
    {"benchmark = True": convolve_new_size_with(True), "benchmark = False": convolve_new_size_with(False)},
    inputs=lambda generator, device: torch.rand(16, 16, 3, 3, generator=generator).to(device),
    guess=guess,
    claim="D3",
    clock="wall",
    only="cuda",
)

# %% [markdown]
# What to do when sizes vary, but not much? Pad them to a few sizes. Then there are only a few searches. The first
# exercise counts how many.

# %% [markdown]
# ## 4. The same bits again
#
# Floating-point addition is not associative. Another order of summation gives other last bits:

# %%
print((0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3))
assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)

# %% [markdown]
# That is the main cause of results that do not repeat. GPU kernels that let thousands of threads add to
# the same place (`scatter_add`, `index_add`, some backward passes) add in the order in which the threads arrive.
# It differs from run to run. On the CPU `index_add_` and `scatter_add_` have one order, and give the same bits each time.

# %%
groups, values = torch.randint(100, (100_000,)), torch.rand(100_000)
once, again = (torch.zeros(100).index_add_(0, groups, values) for _ in range(2))
assert torch.equal(once, again)

order = torch.randperm(100_000)
shuffled = torch.zeros(100).index_add_(0, groups[order], values[order])
assert torch.allclose(once, shuffled)
print(
    "other order, same sums up to rounding; sums with other bits:", (once != shuffled).sum().item(), "of 100"
)

# %% [markdown]
# Summing in `float64` and rounding once at the end makes the order matter far less: what is lost lies below the last
# bits of `float32`.


# %%
def sum_wide(groups, values):
    return torch.zeros(100, dtype=torch.float64).index_add_(0, groups, values.double()).float()


wide, wide_shuffled = sum_wide(groups, values), sum_wide(groups[order], values[order])
print("summed in float64, sums with other bits:", (wide != wide_shuffled).sum().item(), "of 100")

# %% [markdown]
# There are two switches, and a variable that the second one needs on a GPU:
#
# 1. `torch.backends.cudnn.deterministic = True`: cuDNN may use only algorithms that repeat. It covers cuDNN and
#    nothing else.
# 2. `torch.use_deterministic_algorithms(True)`: covers all of PyTorch. Where there is a deterministic form, it is used;
#    an operation that has none raises an error, so that nothing slips through.
# 3. The environment variable `CUBLAS_WORKSPACE_CONFIG=:4096:8`: matrix products on the GPU need it for the
#    second switch. Set it before CUDA starts, for example with `os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"`
#    as the first line of the program.
#
# The second switch works on the CPU too, and catches what is undefined. `put_` with an index twice is such a case:
# which value wins?

# %%
torch.use_deterministic_algorithms(True)
try:
    torch.zeros(4).put_(torch.tensor([1, 1]), torch.tensor([5.0, 6.0]))
except RuntimeError as error:
    print("RuntimeError:", str(error).split(",")[0])
finally:
    torch.use_deterministic_algorithms(False)

# %%
torch.backends.cudnn.deterministic = True
torch.zeros(4).put_(torch.tensor([1, 1]), torch.tensor([5.0, 6.0]))  # not cuDNN's business: nothing is raised
verdict(
    "D4",
    "depends",
    "cudnn.deterministic covers cuDNN only: with it, put_ still runs; use_deterministic_algorithms covers the rest.",
    shown=torch.backends.cudnn.deterministic and not torch.are_deterministic_algorithms_enabled(),
)
torch.backends.cudnn.deterministic = False

# %% [markdown]
# ### The price
#
# "May cost speed". The second switch does one more thing: it fills new memory from `torch.empty` with NaN, so that
# a forgotten element shows. A million numbers: how many times faster is `empty` without the switch?

# %%
guess = 2.0


# %%
def deterministic(function):
    def run(*inputs):
        torch.use_deterministic_algorithms(True)
        try:
            return function(*inputs)
        finally:
            torch.use_deterministic_algorithms(False)

    return run


compare(
    "empty memory with and without deterministic algorithms",
    {
        "deterministic": deterministic(lambda device: torch.empty(1_000_000, device=device)),
        "not": lambda device: torch.empty(1_000_000, device=device),
    },
    inputs=lambda generator, device: device,
    guess=guess,
    claim="D4",
)

# %% [markdown]
# A hundred times or more on a CPU, for a debugging aid. If you want the switch and not the filling, there is a setting
# for it:

# %%
print("fill_uninitialized_memory:", torch.utils.deterministic.fill_uninitialized_memory, "(the default)")

# %% [markdown]
# For most operations the price is small, because their usual form is deterministic already. (Here it is mostly the
# switching itself, some microseconds.) A sum by groups on
# the CPU:

# %%
guess = 1.0

# %%
compare(
    "sums by group with and without deterministic algorithms",
    {
        "deterministic": deterministic(lambda i, v: torch.zeros(100, device=v.device).index_add_(0, i, v)),
        "not": lambda i, v: torch.zeros(100, device=v.device).index_add_(0, i, v),
    },
    inputs=lambda generator, device: (
        torch.randint(100, (100_000,), generator=generator).to(device),
        torch.rand(100_000, generator=generator).to(device),
    ),
    guess=guess,
    claim="D4",
)

# %% [markdown]
# ## 5. Seed everything
#
# Equal algorithms are half of it. The other half is equal random numbers. Python, NumPy and torch each have their
# own. A small training run, twice, with all three seeded:


# %%
def train(seed, steps=20):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # the CPU and all GPUs
    pictures = torch.tensor(np.random.rand(256, 1, 8, 8), dtype=torch.float32)
    labels = torch.tensor([random.randrange(10) for _ in range(256)])
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(288, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(pictures, labels), batch_size=64, shuffle=True)
    losses = []
    while len(losses) < steps:
        for batch, target in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses[:steps]


assert train(seed=1) == train(seed=1)
assert train(seed=1) != train(seed=2)
print("20 steps, equal to the last bit:", train(seed=1)[-1])

# %% [markdown]
# The loader shuffles with torch's global generator, and gives each worker process a seed of its own, derived from
# it. If other code also draws from the global generator, the order changes. A generator of its own keeps the
# loader apart:


# %%
def first_batches(extra_draw, own_generator):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0) if own_generator else None
    loader = DataLoader(TensorDataset(torch.arange(1000)), batch_size=10, shuffle=True, generator=generator)
    if extra_draw:
        torch.rand(1)
    return [batch[0].tolist() for batch in loader]


assert first_batches(False, own_generator=False) != first_batches(True, own_generator=False)
assert first_batches(False, own_generator=True) == first_batches(True, own_generator=True)

# %% [markdown]
# And the worker processes? Each gets the loader's seed plus its own number, for torch, NumPy and Python alike. So
# augmentation in workers repeats too, if the loader's generator is seeded, and the number of workers stays the same.


# %%
class Draws(torch.utils.data.Dataset):
    """Every item is three random numbers, drawn in the worker that makes it."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.rand(()).item(), np.random.rand(), random.random()


def draws_in_workers(seed):
    loader = DataLoader(
        Draws(),
        batch_size=4,
        num_workers=2,
        generator=torch.Generator().manual_seed(seed),
        multiprocessing_context="fork",
    )
    return [numbers.tolist() for batch in loader for numbers in batch]


if "fork" in torch.multiprocessing.get_all_start_methods():  # not on Windows
    assert draws_in_workers(1) == draws_in_workers(1) != draws_in_workers(2)
    print("two workers, same seed: same numbers from torch, NumPy and Python")

# %%
verdict(
    "D5",
    "holds",
    "with every generator seeded a training run repeats bit for bit; with another seed it does not.",
    shown=train(seed=1) == train(seed=1) != train(seed=2),
)

# %% [markdown]
# `benchmark` belongs to it as well: the search takes times, times differ from run to run, so two runs may choose
# two algorithms, and these round differently. For a run that must repeat, switch it off.
#
# ## 6. What is not promised
#
# Same program, same seed, other machine: other bits, perhaps. Another library version or processor may choose
# another algorithm. You can see it on one machine, if you let it choose differently. A row of a matrix product,
# computed with the other 63 rows or alone:

# %%
rows, matrix = torch.rand(64, 333), torch.rand(333, 100)
together, alone = (rows @ matrix)[0], rows[0] @ matrix
print(
    "same bits:", torch.equal(together, alone), " largest difference:", (together - alone).abs().max().item()
)
assert torch.allclose(together, alone)

# %%
verdict(
    "D6",
    "holds",
    "equal mathematics in two algorithms agrees up to rounding only.",
    shown=torch.allclose(together, alone)
    and torch.allclose(once, shuffled)
    and not torch.equal(once, shuffled),
)

# %% [markdown]
# ## 7. TF32: a default that you should know
#
# GPUs since Ampere can multiply `float32` in a shorter format, TF32: the range of `float32`, but 10 bits of
# mantissa instead of 23. For convolutions PyTorch allows it by default, for matrix products it does not.

# %%
print("convolutions may use TF32:   ", torch.backends.cudnn.allow_tf32)
print("matrix products may use TF32:", torch.backends.cuda.matmul.allow_tf32)
print("float32 matmul precision:    ", torch.get_float32_matmul_precision())

# %% [markdown]
# What do 10 bits mean? We round the mantissa to 10 bits on the CPU (the
# last 13 bits become 0) and look at a product of two matrices:


# %%
def as_tf32(numbers):
    """float32 rounded to 10 bits of mantissa."""
    bits = numbers.view(torch.int32)
    return ((bits + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)


a, b = torch.rand(200, 200), torch.rand(200, 200)
exact = a.double() @ b.double()
for name, product in (("float32", a @ b), ("TF32", as_tf32(a) @ as_tf32(b))):
    error = ((product.double() - exact).abs() / exact).max().item()
    print(f"{name:8} largest relative error {error:.0e}")

# %% [markdown]
# About a hundred times less exact than `float32`, and usually enough to train a network. For a comparison with the CPU,
# or for a solver, it is not. What does it buy? On a GPU that has it:

# %%
guess = 3.0


# %%
def multiply_with(precision):
    def multiply(a, b):
        torch.set_float32_matmul_precision(precision)
        try:
            return a @ b
        finally:
            torch.set_float32_matmul_precision("highest")

    return multiply


compare(
    "a 2048 × 2048 matrix product in float32 and in TF32",
    {"float32": multiply_with("highest"), "TF32": multiply_with("high")},
    inputs=lambda generator, device: torch.rand(2, 2048, 2048, generator=generator).to(device).unbind(),
    guess=guess,
    only="cuda",
)

# %% [markdown]
# ## Summary
#
# | you want | set | and know that |
# |---|---|---|
# | speed, and shapes stay fixed | `cudnn.benchmark = True` | the first call of each shape pays for the search |
# | speed, and shapes change | leave it off, or pad to a few sizes | every new shape is a new search |
# | runs that repeat | all seeds, `benchmark = False`, `use_deterministic_algorithms(True)`, `CUBLAS_WORKSPACE_CONFIG` | it raises where torch has no deterministic form |
# | the loader to repeat | its own `generator=` | other code draws from the global one |
# | full `float32` in convolutions | `cudnn.allow_tf32 = False` | it is on by default |

# %%
print("CUBLAS_WORKSPACE_CONFIG here:", os.environ.get("CUBLAS_WORKSPACE_CONFIG", "not set"))
verdicts("A5", "D1", "D2", "D3", "D4", "D5", "D6")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/05_cudnn/05_cudnn.ipynb). They run on the CPU: count
# searches, repeat a training run, and sum so that the order does not matter.
