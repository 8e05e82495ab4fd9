# %% [markdown]
# # 05 · cuDNN: search once, or repeat exactly
#
# On NVIDIA GPUs, most convolutions run in a library called cuDNN. It knows several algorithms for the same
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
# **Claims tested**, from [five articles](claims.ipynb): *A5*, *D2* "`benchmark = True` pays off when shapes stay fixed"; *D1* what cuDNN speeds up;
# *D3* "with changing sizes, leave it off"; *D4* "`deterministic = True` gives the same result each run, and may
# cost speed"; *D5* "also switch `benchmark` off and seed everything"; *D6* "determinism across machines is not
# promised".

# %%
import os
import random
import subprocess
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from autograder import behaviour, compare, documented, verdicts

gpu = torch.cuda.is_available()
print("cuDNN here:", torch.backends.cudnn.version() if gpu else "no NVIDIA GPU")
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
def with_library(on, layer, *inputs):
    """``layer(*inputs)`` with cuDNN and oneDNN switched on or off; float32 stays float32."""
    torch.backends.mkldnn.enabled = on
    try:
        with torch.backends.cudnn.flags(enabled=on, allow_tf32=False):
            return layer(*inputs)
    finally:
        torch.backends.mkldnn.enabled = True


def convolve(images, weight):
    return F.conv2d(images, weight, padding=1)


compare(
    "a 3 × 3 convolution without and with the library",
    {
        "without": lambda images, weight: with_library(False, convolve, images, weight),
        "with": lambda images, weight: with_library(True, convolve, images, weight),
    },
    inputs=lambda generator, device: (
        torch.rand(4, 32, 56, 56, generator=generator).to(device),
        torch.rand(32, 32, 3, 3, generator=generator).to(device),
    ),
    guess=guess,
    claim="D1",
    when="the layer is an ordinary convolution",
)

# %% [markdown]
# A convolution of this size is 116 million multiplications and as many additions. The library arranges them so
# that a number that was loaded is used many times. The claim is about cuDNN, so only the row of a GPU, live or
# recorded, counts for it; on the CPU you see what oneDNN is worth.
#
# What about something that has hardly any arithmetic, such as max-pooling?

# %%
guess = 1.5


# %%
def pool(images):
    return F.max_pool2d(images, 2)


compare(
    "max-pooling with the library switched off and on",
    {
        "off": lambda images: with_library(False, pool, images),
        "on": lambda images: with_library(True, pool, images),
    },
    inputs=lambda generator, device: torch.rand(4, 32, 56, 56, generator=generator).to(device),
    guess=guess,
    claim="D1",
    unless="the layer is an ordinary convolution",
)

# %% [markdown]
# Nothing. PyTorch calls its own code for max-pooling either way. A library helps where it is called.

# %% [markdown]
# ## 2. Several algorithms for one convolution
#
# What is there to search? We can see it on any machine, because a convolution can be computed in several ways:
#
# - **direct**: what `F.conv2d` does on a CPU (on a GPU, cuDNN decides),
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
    differ="each rounds in its own way",
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
    differ="each rounds in its own way",
    seconds=0.5,
)

# %% [markdown]
# The order has turned round. No algorithm is the best for all shapes. (31 × 31 means 961 multiplications for each
# output and channel. The matrix product copies each pixel 961 times first. The FFT's work hardly depends on the size
# of the kernel.)
#
# So there are two ways to choose: by a rule of thumb, or by trying. Trying is what `benchmark = True` does. At the
# first call of a configuration, torch lets cuDNN run several algorithms, and keeps the fastest. A configuration is
# everything that matters: shapes of input and weight, stride, padding, dtype, layout, device.

# %%
print("benchmark:      ", torch.backends.cudnn.benchmark, "(the default)")
print("benchmark_limit:", torch.backends.cudnn.benchmark_limit, "(at most so many are tried; 0: all)")

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
# every algorithm, the slow ones too, and a careful one runs them several times. The article says in its
# introduction that `benchmark` is a great help with *varying* sizes, and later the opposite. The later sentence agrees
# with this model.
#
# ### The real one
#
# Three comparisons with cuDNN's own search. The inputs of the first two stay fixed, those of the third change with
# every call. Without a GPU you see recordings, where there are any.
#
# One thing is easy to get wrong. Torch keeps the plan of *every* configuration that has run, found by a search or
# not, and looks there before it looks at the switch. So **set `benchmark` before the first call**: a shape that has
# run without it is not searched any more. That is also why we cannot try both on the same shape in one process. The
# second variant therefore gets the same pictures on their side: another configuration, with the same arithmetic.
#
# PyTorch's guide says what to expect:

# %%
for claim in ("A5", "D2"):
    documented(
        claim,
        "For a given input size, the search selects the algorithm that is fastest on this hardware.",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    )

# %%
guess = 1.2


# %%
def upright_and_on_its_side(*shapes, dtype=torch.float32):
    """Pictures and weights twice, each run once: upright with benchmark off, on its side with benchmark on."""

    def make(generator, device):
        upright = [torch.rand(shape, generator=generator).to(device, dtype) for shape in shapes]
        on_its_side = [tensor.mT.contiguous() for tensor in upright]
        convolve(*upright)  # the rule of thumb chooses
        torch.backends.cudnn.benchmark = True
        convolve(*on_its_side)  # the search chooses, where this configuration has not run yet
        torch.backends.cudnn.benchmark = False
        return upright, on_its_side

    return make


by_rule_or_search = {
    "benchmark = False": lambda upright, on_its_side: convolve(*upright),
    "benchmark = True": lambda upright, on_its_side: convolve(*on_its_side).mT,
}

compare(
    "cuDNN with fixed shapes: chosen by rule or by search",
    by_rule_or_search,
    inputs=upright_and_on_its_side((32, 64, 56, 64), (64, 64, 3, 3)),
    guess=guess,
    differ="another algorithm rounds differently",
    claim="A5",
    only="cuda",
)

# %%
guess = 1.2

# %%
compare(
    "cuDNN with fixed shapes in float16: chosen by rule or by search",
    by_rule_or_search,
    inputs=upright_and_on_its_side((64, 128, 24, 32), (128, 128, 5, 5), dtype=torch.float16),
    guess=guess,
    differ="another algorithm rounds differently",
    claim="D2",
    only="cuda",
)

# %%
guess = 1.0
fresh_size = iter(range(20, 100_000))


# %%
def convolve_new_size_with(benchmark):
    def run(weight):
        # Never the same width twice in this session, so that nothing is known about it.
        images = torch.rand(1, 16, 8, next(fresh_size), device=weight.device)
        with torch.backends.cudnn.flags(enabled=True, benchmark=benchmark):
            return convolve(images, weight)

    return run


compare(
    "cuDNN with a new shape at every call: benchmark on and off",
    {"benchmark = True": convolve_new_size_with(True), "benchmark = False": convolve_new_size_with(False)},
    inputs=lambda generator, device: torch.rand(16, 16, 3, 3, generator=generator).to(device),
    guess=guess,
    differ="every call has a width of its own",
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
# It may differ from run to run. On the CPU `index_add_` and `scatter_add_` have one order, and give the same bits each time.

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
# There are two switches:
#
# 1. `torch.backends.cudnn.deterministic = True`: cuDNN may use only algorithms that repeat. It covers cuDNN and
#    nothing else.
# 2. `torch.use_deterministic_algorithms(True)`: covers all of PyTorch. Where there is a deterministic form, it is used;
#    an operation that has none raises an error, so that nothing slips through.
#
# (Older versions of torch also asked for the environment variable `CUBLAS_WORKSPACE_CONFIG`. Torch 2.15 does not.)
#
# The claim is about the first one. What it covers, no CPU can show. The documentation says it, and a GPU shows that it
# works.

# %%
REPRODUCIBILITY = "https://docs.pytorch.org/docs/stable/notes/randomness.html"


def gradients_with(deterministic):
    def gradients(images, weight):
        with torch.backends.cudnn.flags(enabled=True, deterministic=deterministic):
            return torch.autograd.grad(convolve(images, weight).square().sum(), (images, weight))

    return gradients


def pictures_and_weight(generator, device):
    shapes = (16, 64, 56, 56), (64, 64, 3, 3)
    return tuple(torch.rand(shape, generator=generator).to(device).requires_grad_() for shape in shapes)


documented(
    "D4",
    "With cudnn.deterministic, cuDNN takes algorithms that repeat; it controls nothing else.",
    REPRODUCIBILITY,
)
if gpu:
    given = pictures_and_weight(torch.Generator(), "cuda")
    wanted, *again = (gradients_with(True)(*given) for _ in range(20))
    behaviour(
        "D4",
        "With cudnn.deterministic, the gradients of a convolution have the same bits 20 times.",
        all(torch.equal(a, b) for result in again for a, b in zip(wanted, result, strict=True)),
    )

# %% [markdown]
# The second switch works on the CPU too, and catches what is undefined. `put_` is such a case. If the index holds a
# position twice, which value wins? Torch does not look at the index: with the switch it refuses `put_` altogether.
# The first switch does not mind.


# %%
def put_twice():
    return torch.zeros(4).put_(torch.tensor([1, 1]), torch.tensor([5.0, 6.0]))


with torch.backends.cudnn.flags(enabled=True, deterministic=True):
    put_twice()
torch.use_deterministic_algorithms(True)
try:
    put_twice()
except RuntimeError as error:
    print("RuntimeError:", str(error).split(",")[0])
finally:
    torch.use_deterministic_algorithms(False)

# %% [markdown]
# ### The price
#
# "May cost speed". First cuDNN's own switch. How many times faster are the gradients with it? (Below 1: slower.)

# %%
guess = 1.0

# %%
compare(
    "gradients of a convolution: any algorithm, or one that repeats",
    {"any": gradients_with(False), "deterministic": gradients_with(True)},
    inputs=pictures_and_weight,
    guess=guess,
    differ="another algorithm rounds differently",
    claim="D4",
    only="cuda",
)

# %% [markdown]
# The second switch does one more thing: it fills new memory from `torch.empty` with NaN, so that a forgotten element
# shows. A hundred times a million numbers: how many times faster is `empty` without the switch?

# %%
guess = 2.0


# %%
def repeated(deterministic, times, function):
    """Call ``function`` several times in a row, the switch set once for all of them."""

    def run(*inputs):
        torch.use_deterministic_algorithms(deterministic)
        try:
            for _ in range(times):
                result = function(*inputs)
        finally:
            torch.use_deterministic_algorithms(False)
        return result

    return run


def new_memory(device):
    return torch.empty(1_000_000, device=device)


compare(
    "empty memory, 100 times, with and without deterministic algorithms",
    {"deterministic": repeated(True, 100, new_memory), "not": repeated(False, 100, new_memory)},
    inputs=lambda generator, device: device,
    guess=guess,
    differ="memory that nobody wrote to",
)
print("fill_uninitialized_memory:", torch.utils.deterministic.fill_uninitialized_memory, "(the default)")

# %% [markdown]
# Around a hundred times on a CPU, for a debugging aid. If you want the switch and not the filling, set
# `torch.utils.deterministic.fill_uninitialized_memory = False`.
#
# Most operations have one form only, which is deterministic already. They cost nothing more. A sum by groups on the
# CPU is one of them; on a GPU it is not, because there the usual form adds as the threads arrive.

# %%
guess = 1.0


# %%
def sums_by_group(groups, values):
    return torch.zeros(100, device=values.device).index_add_(0, groups, values)


compare(
    "sums by group, 10 times, with and without deterministic algorithms",
    {"deterministic": repeated(True, 10, sums_by_group), "not": repeated(False, 10, sums_by_group)},
    inputs=lambda generator, device: (
        torch.randint(100, (100_000,), generator=generator).to(device),
        torch.rand(100_000, generator=generator).to(device),
    ),
    guess=guess,
)

# %% [markdown]
# ## 5. Seed everything
#
# Equal algorithms are half of it. The other half is equal random numbers. Python, NumPy and torch each have their
# own. A small training run draws from all three: pictures from NumPy, labels from Python, weights, order and dropout
# from torch. We leave out one seed at a time.
#
# `benchmark` belongs to it as well: the search takes times, times differ from run to run, so two runs may choose
# two algorithms, and these round differently. For a run that must repeat, switch it off. (Only a GPU could show that.)


# %%
SEEDS = {
    "Python": random.seed,
    "NumPy": np.random.seed,
    "torch": torch.manual_seed,  # the CPU and all GPUs
}


def train(seed, without=None, steps=20):
    for name, set_seed in SEEDS.items():
        if name != without:
            set_seed(seed)
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


print("loss after 20 steps:", train(seed=1)[-1], "and once more:", train(seed=1)[-1])
for name in SEEDS:
    print(f"without a seed for {name}:", train(seed=1, without=name)[-1])
behaviour(
    "D5",
    "With all generators seeded a training run repeats to the last bit; without any one of the seeds it does not.",
    train(seed=1) == train(seed=1) and all(train(seed=1) != train(seed=1, without=name) for name in SEEDS),
)
documented(
    "D5", "With benchmark = False, cuDNN's algorithms are chosen in the same way each time.", REPRODUCIBILITY
)

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
# And the worker processes? For torch and Python, each gets the loader's seed plus its own number; for NumPy, a seed
# that is computed from both. So augmentation in workers repeats too, if the loader's generator is seeded, and the
# number of workers stays the same.


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

# %% [markdown]
# ## 6. What is not promised
#
# Same program, same seed, other machine: other bits, perhaps. Another library version or processor may choose
# another algorithm. Even on one machine the choice depends on the shape. A row of a matrix product, computed with the
# other 63 rows or alone:

# %%
rows, matrix = torch.rand(64, 333), torch.rand(333, 100)
together, alone = (rows @ matrix)[0], rows[0] @ matrix
print(
    "same bits:", torch.equal(together, alone), " largest difference:", (together - alone).abs().max().item()
)
assert torch.allclose(together, alone)

# %% [markdown]
# And another machine? One can play two. The variable `ATEN_CPU_CAPABILITY` makes torch use fewer of the processor's
# instructions; `default` means no vectors of eight or sixteen numbers. The same program, in two processes:

# %%
PROGRAM = "import torch; print(torch.linspace(-5, 5, 1001).sigmoid().double().sum().item())"


def printed(**variables):
    environment = os.environ | variables
    return subprocess.check_output([sys.executable, "-c", PROGRAM], env=environment, text=True).strip()


here, there = printed(), printed(ATEN_CPU_CAPABILITY="default")
print("this processor:", here, "· as on an older one:", there)
documented(
    "D6",
    "Results may differ between releases, platforms, and between CPU and GPU, seeds or not.",
    REPRODUCIBILITY,
)
if torch.backends.cpu.get_cpu_capability().startswith("AVX"):
    behaviour("D6", "With other vector instructions, the same program gives other bits.", here != there)

# %% [markdown]
# ## 7. TF32: a default that you should know
#
# GPUs since Ampere can multiply `float32` in a shorter format, TF32: the range of `float32`, but 10 bits of
# mantissa instead of 23. For convolutions PyTorch allows it by default, for matrix products it does not.

# %%
conv, products = torch.backends.cudnn.conv, torch.backends.cuda.matmul
print("convolutions:   ", conv.fp32_precision)
print("matrix products:", products.fp32_precision, "(nothing is set: full float32)")
assert (conv.fp32_precision, products.fp32_precision) == ("tf32", "none")

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
        products.fp32_precision = precision
        try:
            return a @ b
        finally:
            products.fp32_precision = "none"

    return multiply


compare(
    "a 2048 × 2048 matrix product in float32 and in TF32",
    {"float32": multiply_with("ieee"), "TF32": multiply_with("tf32")},
    inputs=lambda generator, device: torch.rand(2, 2048, 2048, generator=generator).to(device).unbind(),
    guess=guess,
    differ="TF32 has 10 bits of mantissa",
    only="cuda",
)

# %% [markdown]
# ### Old switches and new ones
#
# `fp32_precision` is the newer interface: `"ieee"`, `"tf32"`, or `"none"` for what a more general switch says. You will
# also meet the older ones: `cudnn.allow_tf32`, `cuda.matmul.allow_tf32` and `set_float32_matmul_precision`. What
# happens if a program sets the new ones, and a library asks the old ones?


# %%
def answer_of(ask):
    try:
        return ask()
    except RuntimeError as error:
        return f"RuntimeError: {str(error).split(',')[0]} …"


def flags():
    with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        return "works"


products.fp32_precision, conv.fp32_precision = "tf32", "ieee"
answers = {
    "torch.get_float32_matmul_precision()": answer_of(torch.get_float32_matmul_precision),
    "cudnn.allow_tf32": answer_of(lambda: torch.backends.cudnn.allow_tf32),
    "cudnn.flags(…)": answer_of(flags),
}
for question, answer in answers.items():
    print(f"{question}\n    {answer}")
assert all(answer.startswith("RuntimeError") for answer in answers.values())

torch.set_float32_matmul_precision("highest")  # the old ones can still set
torch.backends.cudnn.allow_tf32 = True
print("after the old setters:", products.fp32_precision, conv.fp32_precision, flags())

torch.backends.cudnn.fp32_precision = "ieee"  # one switch for all?
print("after cudnn.fp32_precision = 'ieee', convolutions:", conv.fp32_precision)
assert conv.fp32_precision == "tf32"
torch.backends.cudnn.fp32_precision = products.fp32_precision = "none"

# %% [markdown]
# The old questions raise an error, also in code that is not yours; even `cudnn.flags`, which asks them to put back what
# it found. The old setters overwrite the new ones without a word. So use one kind in a program. And the general switch
# does not reach convolutions: they have a setting of their own from the start, and the nearest one counts. Set
# `cudnn.conv.fp32_precision` itself.

# %% [markdown]
# ## Summary
#
# | you want | set | and know that |
# |---|---|---|
# | speed, and shapes stay fixed | `cudnn.benchmark = True`, before the first call | the first call of each shape pays for the search |
# | speed, and shapes change | leave it off, or pad to a few sizes | every new shape is a new search |
# | runs that repeat | all seeds, `benchmark = False`, `use_deterministic_algorithms(True)` | it raises where torch has no deterministic form |
# | the loader to repeat | its own `generator=` | other code draws from the global one |
# | full `float32` in convolutions | `cudnn.conv.fp32_precision = "ieee"` | TF32 is the default; old switches then raise |

# %%
verdicts("A5", "D1", "D2", "D3", "D4", "D5", "D6")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/05_cudnn/05_cudnn.ipynb). They run on the CPU: count
# searches, repeat a training run, and sum so that the order does not matter.
