# %% [markdown]
# # 13 · The CPU
#
# A CPU can be fast in several ways at once: cores that work side by side, instructions that handle many
# numbers, caches, a compiler. Most programs use a small part of this. Which part is missing in yours?
#
# **You will be able to**
# - choose the number of threads, and see when more of them do harm,
# - tell whether an operation is held up by memory, by arithmetic or by neither, and draw it,
# - save passes over memory: in place, with `out=`, with fused operations and with `torch.compile`.
#
# **Time:** 35 minutes to read and run. **Needs:** CPU, and a C++ compiler for one section.
#
# **Claims tested** (of a page about memory formats): *E7* "CPU performance comes from memory format,
# parallelisation (threads) and vectorisation (one instruction, many data)". We test the three, and look for
# what the list leaves out.

# %%
import io
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from statistics import median

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch.utils.data import DataLoader, Dataset

from autograder import compare, costs, devices, verdicts
from autograder.measuring.clocks import run_block
from autograder.measuring.limits import rates
from autograder.show import show_picture

logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # it looks for CUDA, too

cores = torch.get_num_threads()  # before any change: restart the kernel to run this cell again
print("devices here:", *devices())
print("threads that torch takes by default:", cores, "· logical cores:", os.cpu_count())
print("vector instructions:", torch.backends.cpu.get_cpu_capability())

# %% [markdown]
# By default torch takes one thread for each physical core, at least on most machines. The system may show
# twice as many *logical* cores; two of them share the arithmetic of one core. Nobody asked whether the cores
# are free. Nearly all measurements before this chapter used a single thread, because that is what can be
# measured on a busy machine. In sections 1 and 2 we use more, and measure with the **wall clock**.
#
# In this chapter, "all cores" means as many threads as torch takes by default.
#
# ## 1. Threads
#
# A product of two 512 × 512 matrices: 268 million multiplications and additions. One thread, or as many as
# there are cores. How many times faster are all cores? (The line above tells how many you have.)

# %%
guess = 2.0


# %%
def on_threads(number, function):
    """The function, set to run on so many threads."""

    def run(*arguments):
        if torch.get_num_threads() != number:
            torch.set_num_threads(number)
        return function(*arguments)

    return run


def two_matrices(side):
    return lambda generator, device: (
        torch.rand(side, side, generator=generator),
        torch.rand(side, side, generator=generator),
    )


products = compare(
    "cpu: a product of 512 × 512 on one thread or on all cores",
    {"1 thread": on_threads(1, torch.mm), "all cores": on_threads(cores, torch.mm)},
    inputs=two_matrices(512),
    guess=guess,
    claim="E7",
    when="the threads share large operations on free cores",
    only="cpu",
    clock="wall",
    threads=None,
)

# %% [markdown]
# **Why.** Every thread computes its own part of the result, and none waits for another before the end. On
# idle cores the ratio comes near to their number. But at the end all wait for the slowest. If another program
# has one of the cores, its part comes late, and the ratio falls, even far below 1. So more threads are a gain
# on free cores, and a loss when another program has one of them. Above you see the median, with whatever ran
# beside it. Here are the quickest blocks, which were disturbed least:

# %%
if products.samples:
    alone, all_cores = (min(products.samples["cpu"].seconds(name)) for name in ("1 thread", "all cores"))
    print(f"the quickest block of each: {alone * 1e3:.2f} ms and {all_cores * 1e3:.2f} ms")
    print(f"ratio of these two: {alone / all_cores:.2f}")
    if cores > 1:
        print("(Where even this ratio is near 1 or below, the other cores were never really free.)")

# %% [markdown]
# ### When it does not help
#
# Adding 1,000 numbers. How many times faster are all cores?

# %%
guess = 1.0

# %%
compare(
    "cpu: adding 1,000 numbers on one thread or on all cores",
    {"1 thread": on_threads(1, torch.add), "all cores": on_threads(cores, torch.add)},
    inputs=lambda generator, device: (
        torch.rand(1000, generator=generator),
        torch.rand(1000, generator=generator),
    ),
    guess=guess,
    claim="E7",
    unless="the threads share large operations on free cores",
    only="cpu",
    clock="wall",
    threads=None,
    seconds=0.5,
)

# %% [markdown]
# No difference. Waking a thread takes some microseconds; the sum takes less. So torch does not split
# element-wise work of up to 32,768 numbers. On Linux we can see it: every thread of this process has an entry
# in `/proc/self/task`, and torch starts threads when it first needs them.

# %%
if sys.platform == "linux":
    torch.set_num_threads(4 * cores)
    print("threads asked for:", torch.get_num_threads(), "· all cores, as in section 1:", cores)
    for numbers in (32_768, 32_769):
        before = len(os.listdir("/proc/self/task"))
        torch.ones(numbers).add(1)
        started = len(os.listdir("/proc/self/task")) - before
        print(f"adding to {numbers:,} numbers: {started} threads started")
torch.set_num_threads(1)

# %% [markdown]
# The cell asks for 4 threads per core, but fewer are started. The main thread is one of them. Others may be
# there from section 1, where "all cores" started them. Threads that are there are used again. So if you run
# the cell a second time, the last line may say 0.
#
# ## 2. Too many threads
#
# If threads are good, are more threads better? We multiply matrices of 256 × 256: with eight threads for each
# core, and with a single thread. How many times faster is the single thread than the crowd?

# %%
guess = 1.0

# %%
compare(
    "cpu: a product of 256 × 256 with too many threads",
    {
        "8 for each core": on_threads(8 * cores, torch.mm),
        "1 thread": on_threads(1, torch.mm),
    },
    inputs=two_matrices(256),
    guess=guess,
    only="cpu",
    clock="wall",
    threads=None,
    seconds=0.7,
)
torch.set_num_threads(1)

# %% [markdown]
# **Why.** The arithmetic is the same. But the threads must meet at the end, and a thread that has no core
# cannot arrive. The system has to switch between them, and each works on other data in the cache. This is
# *oversubscription*: one thread alone can do better than a crowd. Where a neighbour keeps a core busy, even
# one thread for each core is one too many. You may have seen that in section 1.
#
# Nobody writes `set_num_threads(8 * cores)`. It happens by multiplication: several **processes**, each with
# threads for all cores. Four training runs on one machine, a web server with eight workers, a test suite in
# parallel. The cure is `torch.set_num_threads` in each of them, or the environment variable `OMP_NUM_THREADS`
# before they start.
#
# A `DataLoader` knows the problem. What does a worker get?

# %%
if sys.platform == "linux":

    class HowManyThreads(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return torch.get_num_threads()

    torch.set_num_threads(cores)
    loader = DataLoader(HowManyThreads(), batch_size=1, num_workers=1, multiprocessing_context="fork")
    in_worker = [int(batch) for batch in loader]
    print("threads here:", torch.get_num_threads(), "· threads in a worker:", in_worker[0])
    assert set(in_worker) == {1}
torch.set_num_threads(1)

# %% [markdown]
# One thread each. So count like this: threads of the main process, plus one for each worker that is busy. If
# that is more than you have cores, take some away from the main process, and measure. If *you* call
# `set_num_threads(4)` in a `worker_init_fn`, four workers have 16 threads. (Workers that wait for a disk or a
# network need no core; see [chapter 04](04_data_loading.ipynb).)
#
# ## 3. One instruction, many numbers
#
# Back to one thread. A core has *vector* instructions, which take 4, 8 or 16 `float32` at once. They are made
# for numbers that lie side by side. We compute the sigmoid of the same 20,000 numbers: stored as every second
# one of 40,000, or as neighbours. How many times faster are neighbours?

# %%
guess = 2.0


# %%
def numbers_and_space(generator, device):
    numbers = torch.rand(40_000, generator=generator)[::2]
    return numbers, numbers.contiguous(), torch.empty(20_000)


compare(
    "cpu: the sigmoid of 20,000 numbers, with gaps or without",
    {
        "every second": lambda gaps, neighbours, out: torch.sigmoid(gaps, out=out),
        "neighbours": lambda gaps, neighbours, out: torch.sigmoid(neighbours, out=out),
    },
    inputs=numbers_and_space,
    guess=guess,
    claim="E7",
    only="cpu",
    seconds=0.5,
)

# %%
gaps, neighbours, out = numbers_and_space(torch.Generator(), "cpu")
print(costs(torch.sigmoid, gaps, out=out), end="\n\n")
print(costs(torch.sigmoid, neighbours, out=out))

# %% [markdown]
# **Why.** One operation each, and no copy. With gaps, the numbers and the result are 240 kB together; the
# second cache (L2) of most cores holds that. So it is neither memory nor Python: with gaps, torch's code takes
# the numbers one by one.
#
# ### When it does not help
#
# Then copy the numbers together first, with `contiguous()`, and compute without gaps? For a cheap operation,
# a product:

# %%
guess = 2.0

# %%
compare(
    "cpu: a product of 20,000 numbers with gaps, or copied first",
    {
        "as they are": lambda numbers, out: torch.mul(numbers[::2], numbers[1::2], out=out),
        "contiguous() first": lambda numbers, out: torch.mul(
            numbers[::2].contiguous(), numbers[1::2].contiguous(), out=out
        ),
    },
    inputs=lambda generator, device: (torch.rand(40_000, generator=generator), torch.empty(20_000)),
    guess=guess,
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# The copy has to pick up the numbers one by one as well. It pays if the copy is used several times, or by an
# expensive operation such as the sigmoid. Better: store the numbers together from the start.
#
# ### Without vectors
#
# How much of torch's speed is this? Torch holds its own operations several times, compiled for different
# instructions, and chooses when it starts. The environment variable `ATEN_CPU_CAPABILITY` overrides the
# choice: `default` is code that every processor of this kind can run. We start Python twice, with and without
# it. (The first one also gets `OMP_NUM_THREADS=1`, to see that it works.) How many times faster is a sigmoid
# with the best instructions?

# %%
guess = 4.0

# %%
program = """
import json, torch
from autograder.measuring.clocks import run_block
threads = torch.get_num_threads()
torch.set_num_threads(1)
x, y, out = torch.rand(20_000), torch.rand(20_000), torch.empty(20_000)
square = torch.rand(200, 200)
work = {
    "sigmoid": lambda: torch.sigmoid(x, out=out),
    "largest (amax)": lambda: x.amax(),
    "product": lambda: torch.mul(x, y, out=out),
    "sum": lambda: x.sum(),
    "exp": lambda: torch.exp(x, out=out),
    "matrix product": lambda: square @ square,
}
times = {}
for name, function in work.items():
    run_block(function, (), 50)
    times[name] = min(run_block(function, (), 50).per_call("cpu") for _ in range(9))
print(json.dumps([torch.backends.cpu.get_cpu_capability(), times, threads]))
"""


def start(program, **settings):
    """What a new Python prints, which runs the program with these environment variables."""
    environment = {**os.environ, **settings}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout


without = start(program, ATEN_CPU_CAPABILITY="default", OMP_NUM_THREADS="1")
plain, plain_times, plain_threads = json.loads(without)
best, best_times, best_threads = json.loads(start(program))
print(f"{'µs per call':16}{plain:>10}{best:>10}    times faster")
for name in plain_times:
    slow, fast = plain_times[name] * 1e6, best_times[name] * 1e6
    print(f"{name:16}{slow:10.1f}{fast:10.1f}{slow / fast:12.1f}")
print(f"Your guess for sigmoid: {guess:.1f}")
print(f"Threads at the start, with OMP_NUM_THREADS=1: {plain_threads}, without: {best_threads}")

# %% [markdown]
# The table has two parts. `sigmoid`, `amax`, the product and the sum are code of torch itself (its library
# ATen). Without the wide instructions they take much longer. On a processor of the x86 family even `default`
# may use vectors of 4 numbers; on ARM, `default` has vectors, too, and the columns can be equal.
#
# The matrix product hardly changes, and on most x86 machines neither does `exp`: torch hands them to another
# library (there, Intel's MKL), which looks at the processor for itself. So the switch does not turn off *all*
# vectors.
#
# There is nothing to set here. Torch has chosen the best already. What you can do is to give it neighbours.
#
# ## 4. Memory format
#
# The third item of the claim has [a chapter of its own](06_memory_format.ipynb). One measurement to complete
# the list: average pooling of 64 channels, in the default order and in channels_last, where the 64 channels
# of a pixel are neighbours.

# %%
guess = 3.0

# %%
compare(
    "cpu: average pooling of 64 channels",
    {
        "default": lambda default, last: F.avg_pool2d(default, 2),
        "channels_last": lambda default, last: F.avg_pool2d(last, 2),
    },
    inputs=lambda generator, device: (
        batch := torch.rand(8, 64, 28, 28, generator=generator).to(device),
        batch.to(memory_format=torch.channels_last),
    ),
    guess=guess,
    claim="E7",
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# It is the same reason once more: neighbours that are treated alike. On the CPU, memory format often *is*
# vectorisation.
#
# ## 5. Memory or arithmetic?
#
# So much for the claim. What does it leave out? A matrix of 2048 × 2048 numbers is multiplied by 64 vectors,
# one after the other or all at once. Both ways do the same 537 million multiplications and additions, on one
# thread, with vector instructions, on contiguous memory. How many times faster is "all at once"?

# %%
guess = 2.0


# %%
def one_by_one(matrix, vectors):
    return torch.stack([matrix @ vector for vector in vectors])


compare(
    "cpu: a matrix times 64 vectors",
    {"one by one": one_by_one, "all at once": lambda matrix, vectors: vectors @ matrix.T},
    inputs=lambda generator, device: (
        torch.rand(2048, 2048, generator=generator).to(device),
        torch.rand(64, 2048, generator=generator).to(device),
    ),
    guess=guess,
    only="cpu",
    bytes=4 * (2048 * 2048 + 2 * 64 * 2048),
    flops=2 * 64 * 2048 * 2048,
)

# %% [markdown]
# **Why.** The matrix has 16.8 MB. One by one, it travels from memory (or a far cache) 64 times: about 1 GB.
# All at once, a block of it is used for 64 vectors while it is near. The arithmetic waits for the bytes.
#
# The ratio *operations per byte* says who waits. We let 1, 2, 4, … 256 vectors meet the matrix. Each time the
# work doubles, but the bytes hardly change. Does the time double, too?

# %%
matrix = torch.rand(2048, 2048)
measured = rates("cpu", 1)
bandwidth = dict(measured["bytes_per_second"])[1 << 24]
points = []
print("vectors  operations per byte  ms per call  billion operations per second")
for vectors in (1, 2, 4, 8, 16, 32, 64, 128, 256):
    right = torch.rand(2048, vectors)
    operations = 2 * 2048 * 2048 * vectors
    moved = 4 * (2048 * 2048 + 2 * 2048 * vectors)
    run_block(torch.mm, (matrix, right), 1)
    seconds = min(run_block(torch.mm, (matrix, right), 1).per_call("cpu") for _ in range(7))
    points.append((operations / moved, operations / seconds, vectors))
    print(f"{vectors:7}{operations / moved:21.1f}{seconds * 1e3:13.2f}{operations / seconds / 1e9:31.0f}")

# %%
numbers, out = torch.rand(4_000_000), torch.ones(4_000_000)
seconds = min(run_block(lambda: torch.add(numbers, 1, out=out), (), 2).per_call("cpu") for _ in range(7))
added = len(numbers) / seconds / 1e9
peak = measured["flops_per_second"] / 1e9
ridge = measured["flops_per_second"] / bandwidth
print(
    f"x + 1 for 4,000,000 numbers: {added:.1f} billion operations per second; the peak is {peak:.0f} billion"
)

# %% [markdown]
# Read down the column *ms per call*: from 2 vectors on it stays about level for several rows, then it doubles
# from row to row. The picture of this is called a *roofline*. The slope is what memory can feed, the flat
# part is what the arithmetic can do. The course has measured both on this machine. The *limit* lines in the tables
# are points on such a roof.


# %%
def draw_roofline():
    figure = Figure(figsize=(7.5, 3.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    ends = (0.06, 300)
    axes.plot(
        [ends[0], ridge, ends[1]], [ends[0] * bandwidth / 1e9, peak, peak], "-", color="#333333", lw=1.5
    )
    axes.axvline(ridge, color="#999999", lw=1, ls=":")
    axes.annotate("memory is the limit", (0.09, peak * 1.15), fontsize=8, color="#333333")
    axes.annotate("arithmetic is the limit", (ridge * 1.2, peak * 1.15), fontsize=8, color="#333333")
    axes.plot([x for x, _, _ in points], [y / 1e9 for _, y, _ in points], "o", color="#0072B2", ms=6)
    for x, y, vectors in points:
        axes.annotate(
            f"{vectors}",
            (x, y / 1e9),
            xytext=(5, -10),
            textcoords="offset points",
            fontsize=8,
            color="#0072B2",
        )
    axes.plot([1 / 8], [added], "s", color="#D55E00", ms=6)
    axes.annotate(
        "x + 1", (1 / 8, added), xytext=(6, -10), textcoords="offset points", fontsize=8, color="#D55E00"
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=(added / 3, peak * 2.2),
        xlabel="operations per byte",
        ylabel="billion operations per second",
        title="Matrix × 1 to 256 vectors (numbers), under this machine's roof",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


show_picture(
    draw_roofline(),
    f"Roofline, log-log. The roof rises to {peak:.0f} billion operations per second at {ridge:.1f} "
    f"operations per byte, then stays flat. One vector reaches {points[0][1] / 1e9:.0f} billion, 256 vectors "
    f"{points[-1][1] / 1e9:.0f} billion. Adding 1 to four million numbers reaches {added:.1f} billion.",
)
print(f"The roof bends at {ridge:.1f} operations per byte.")
print(f"x + 1 has {1 / 8} operations per byte and reaches {added / peak:.1%} of the peak.")

# %% [markdown]
# One vector has a routine of its own; it lies on or near the slope. Two or more use the routine for products
# of matrices. It has a fixed cost: for a few vectors the time is nearly the same. So these points may lie
# below the roof: neither the memory nor the arithmetic of this model explains their time. With many vectors
# the points come near to the flat part.
#
# Adding 1 to each number is one operation for 8 bytes (read 4, write 4). The arithmetic of the core is idle
# nearly all the time. So for cheap element-wise operations (sums, products) on large tensors there is mainly
# one question: **how often do the bytes pass by?** A sigmoid or an exponential has more arithmetic for each
# byte; there vectors count as well (section 3).
#
# ## 6. Where do results go?
#
# A polynomial of third degree, five element-wise operations, for 10 million numbers. Written as a formula,
# each operation makes a new tensor of 40 MB. With the underscore methods, the first one makes a tensor and
# the others overwrite it. With `out=`, all use memory that was there before. How many times faster is the
# last?

# %%
guess = 2.0


# %%
def formula(x):
    return ((x * 0.5 + 1) * x - 0.25) * x


def in_place(x):
    return x.mul(0.5).add_(1).mul_(x).sub_(0.25).mul_(x)


def into(x, out):
    return torch.mul(x, 0.5, out=out).add_(1).mul_(x).sub_(0.25).mul_(x)


many = compare(
    "cpu: a polynomial of 10,000,000 numbers, three ways to store it",
    {
        "new tensors": lambda x, out: formula(x),
        "in place": lambda x, out: in_place(x),
        "into a buffer": into,
    },
    inputs=lambda generator, device: (
        torch.rand(10_000_000, generator=generator).to(device),
        torch.ones(10_000_000, device=device),
    ),
    guess=guess,
    only="cpu",
    seconds=1.5,
    bytes=2 * 4 * 10_000_000,
)
for name, blocks in many.samples["cpu"].blocks.items():
    print(f"{name:14} {blocks[0].faults / blocks[0].calls:8,.0f} page faults for each call on the CPU")

# %%
x = torch.rand(1000)
out = torch.empty(1000)
assert torch.allclose(formula(x), in_place(x)) and torch.allclose(formula(x), into(x, out))
for function, arguments in ((formula, (x,)), (in_place, (x,)), (into, (x, out))):
    print(f"{function.__name__:9} {costs(function, *arguments).bytes // x.nbytes} new tensors")

# %% [markdown]
# **Why.** All three compute the same, in five passes. (The limit counts one.) But large new memory is
# expensive, as in [chapter 00](00_measuring.ipynb): the system must find and clear every page. A page is 4 kB
# on most machines, so 40 MB are nearly 10,000 page faults, each about a microsecond. (On a GPU torch keeps
# freed memory for itself, and hands it out again without asking the system.)
#
# The price has conditions: autograd may need the old values ([chapter 03](03_autograd.ipynb)), and the next
# call overwrites the last result.
#
# ### When it does not help
#
# The same with 20,000 numbers. How many times faster is the buffer?

# %%
guess = 1.5

# %%
compare(
    "cpu: a polynomial of 20,000 numbers, three ways to store it",
    {
        "new tensors": lambda x, out: formula(x),
        "in place": lambda x, out: in_place(x),
        "into a buffer": into,
    },
    inputs=lambda generator, device: (
        torch.rand(20_000, generator=generator).to(device),
        torch.ones(20_000, device=device),
    ),
    guess=guess,
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# Little is left. A small tensor gets memory that another one has just given back, and it is still in the
# cache. Where is the border? We start Python once more, so that nothing was freed before. The program fills
# new tensors of growing size, each size 20 times, and counts page faults:

# %%
fills = """
import json, torch
from autograder.measuring.clocks import run_block
torch.set_num_threads(1)
fill_new = lambda length: torch.empty(length).fill_(1)
faults = [
    (kilobytes, [run_block(fill_new, (kilobytes * 256,), 1).faults for _ in range(20)])
    for kilobytes in (1024, 4096, 16_384, 65_536)
]
print(json.dumps(faults))
"""
faults = json.loads(start(fills))
print("new tensor of   faults: 1st call   2nd call   20th call")
for kilobytes, counted in faults:
    print(f"{kilobytes:10,} kB{counted[0]:16,}{counted[1]:11,}{counted[-1]:12,}")

# %% [markdown]
# On Linux with its usual C library (glibc), the program keeps freed memory up to a border, and gives larger
# blocks back to the system. The border starts at 128 kB and grows with the sizes that are freed, up to 32 MB.
# So a size that faults at first can be free of faults later, and the same line can be slow in one program and
# fast in another. Blocks above 32 MB fault always, unless you reuse a buffer. Other systems have other rules.
#
# Look at the second call of 4,096 kB. With pages of 4 kB the tensor has 1,024 pages, but the line may show
# 256 faults fewer: the 256 pages of the smaller tensor are still there. The table has one tensor at a time.
# When several are freed together, the system may get memory back even below the border.
#
# ## 7. Fused operations
#
# `c + 0.5 * a * b` is three operations: three passes, two temporary tensors. `torch.addcmul` does it in one.
# With 2 million numbers, how many times faster is it?

# %%
guess = 2.0


# %%
def three_tensors(length):
    return lambda generator, device: tuple(
        torch.rand(length, generator=generator).to(device) for _ in range(3)
    )


compare(
    "cpu: c + 0.5 · a · b, three operations or addcmul",
    {
        "c + 0.5 * a * b": lambda a, b, c: c + 0.5 * a * b,
        "addcmul": lambda a, b, c: torch.addcmul(c, a, b, value=0.5),
    },
    inputs=three_tensors(2_000_000),
    guess=guess,
    only="cpu",
    bytes=4 * 4 * 2_000_000,
    seconds=0.7,
)

# %%
a, b, c = (torch.rand(2_000_000) for _ in range(3))
print(costs(lambda: c + 0.5 * a * b), end="\n\n")
print(costs(lambda: torch.addcmul(c, a, b, value=0.5)))
assert torch.allclose(c + 0.5 * a * b, torch.addcmul(c, a, b, value=0.5))
assert torch.allclose(a + 0.1 * (b - a), torch.lerp(a, b, 0.1))

# %% [markdown]
# **Why.** Count the passes. `0.5 * a` reads one and writes one tensor; `· b` reads two and writes one; `c +`
# the same: 8 times 8 MB. `addcmul` reads three and writes one: 4 times 8 MB. Two temporary tensors are saved
# as well. `torch.lerp(a, b, w)` does the same for `a + w * (b - a)`; an exponential moving average is
# `average.lerp_(new, w)`.
#
# ### When it does not help
#
# `torch.addmm(bias, x, weight)` fuses a matrix product and the sum with a bias. x is 256 × 512, the weight
# 512 × 512. How many times faster is it than `x @ weight + bias`?

# %%
guess = 1.5

# %%
compare(
    "cpu: x @ weight + bias, or addmm",
    {
        "x @ weight + bias": lambda x, weight, bias: x @ weight + bias,
        "addmm": lambda x, weight, bias: torch.addmm(bias, x, weight),
    },
    inputs=lambda generator, device: (
        torch.rand(256, 512, generator=generator).to(device),
        torch.rand(512, 512, generator=generator).to(device),
        torch.rand(512, generator=generator).to(device),
    ),
    guess=guess,
    only="cpu",
    flops=2 * 256 * 512 * 512,
    seconds=0.5,
)

# %% [markdown]
# Next to nothing. The product has 134 million operations, the sum 0.1 million. A fused operation saves passes
# over memory; it cannot save arithmetic. (If `x` has 8 columns only, the product is cheap, and you may
# see a small gain.)
#
# ## 8. `torch.compile`
#
# There is no ready-made fused operation for our polynomial. `torch.compile` makes one: it records the
# operations of the function, writes C++ code with one loop, and calls the compiler of your machine. That
# needs a compiler, and time. What do the first calls cost? We use an empty folder for compiled code, so that
# nothing is prepared.

# %%
compiled_code = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = compiled_code.name
torch.set_num_threads(1)
compiled = torch.compile(formula)


def seconds_of(function, argument):
    begin = time.perf_counter()
    function(argument)
    return time.perf_counter() - begin


large, smaller, tiny = torch.rand(4_000_000), torch.rand(3_000_000), torch.rand(10)
try:
    first_call = seconds_of(compiled, large)
except Exception as error:
    compiled = None
    reason = str(error).strip().splitlines()[0]
    print("torch.compile is not available here:", type(error).__name__, reason[:80])
    print("C++ compiler:", shutil.which("c++") or "none found")
else:
    print(f"first call                  {first_call * 1e3:11,.2f} ms")
    print(f"second call                 {seconds_of(compiled, large) * 1e3:11,.2f} ms")
    print(f"first call of another size  {seconds_of(compiled, smaller) * 1e3:11,.2f} ms")
    print(f"first call of a third size  {seconds_of(compiled, tiny) * 1e3:11,.2f} ms")
    assert torch.allclose(compiled(large), formula(large), atol=1e-6)

# %% [markdown]
# The first call compiles for exactly this size. When another size comes, torch compiles once more, now for
# any size (or nearly any). So the third is quick. The second compilation is much shorter than the first. So
# most of the first call was preparation: torch loads its compiler, tests what yours can do, and prepares
# headers. Most of that stays in a folder on disk, and the next program needs less.
#
# And after that? Four million numbers, how many times faster is the compiled function than the formula?

# %%
guess = 3.0

# %%
if compiled:
    fused = compare(
        "cpu: a polynomial of 4,000,000 numbers, compiled",
        {"formula": formula, "in place": in_place, "compiled": compiled},
        inputs=lambda generator, device: torch.rand(4_000_000, generator=generator).to(device),
        guess=guess,
        only="cpu",
        bytes=2 * 4 * 4_000_000,
    )
    blocks = fused.samples["cpu"]
    saved = median(blocks.seconds("formula")) - median(blocks.seconds("compiled"))
    if saved > 0:
        print(f"The first call is paid back after {first_call / saved:,.0f} calls.")
else:
    print("Skipped: not available here.")

# %% [markdown]
# **Why.** The formula reads 7 and writes 5 times 16 MB. The compiled loop reads once and writes once. All the
# steps in between happen in registers. The limit counts the same two passes. Whether the new result costs
# page faults depends on what the program has freed before (section 6).
#
# ### When it does not help
#
# Ten numbers. How many times faster is the compiled function?

# %%
guess = 1.0

# %%
if compiled:
    compare(
        "cpu: a polynomial of 10 numbers, compiled",
        {"formula": formula, "compiled": compiled},
        inputs=lambda generator, device: torch.rand(10, generator=generator).to(device),
        guess=guess,
        only="cpu",
        seconds=0.5,
    )
else:
    print("Skipped: not available here.")

# %% [markdown]
# Before the compiled code may run, torch checks that its assumptions still hold: type, device, number of
# dimensions and more. That takes about as long as a handful of small operations. Compile what is called
# often, with large tensors and several element-wise steps. A single matrix product has nothing to fuse.
#
# ## 9. Blocks by hand
#
# A famous trick from numerical code: do not send all 4 million numbers through five operations. Take a block
# that fits into the cache, do all five, then take the next. The passes 2 to 5 find their numbers near. We do
# it with small blocks of 16,384 numbers (64 kB) and with larger ones of 131,072 (512 kB), all with `out=`.
# How many times faster are the larger blocks than the whole?

# %%
guess = 2.0


# %%
def in_blocks(x, out, numbers):
    for part, result in zip(x.split(numbers), out.split(numbers), strict=True):
        into(part, result)
    return out


compare(
    "cpu: a polynomial of 4,000,000 numbers, in small or larger blocks",
    {
        "whole": into,
        "blocks of 16,384": lambda x, out: in_blocks(x, out, 16_384),
        "blocks of 131,072": lambda x, out: in_blocks(x, out, 131_072),
    },
    inputs=lambda generator, device: (
        torch.rand(4_000_000, generator=generator).to(device),
        torch.ones(4_000_000, device=device),
    ),
    guess=guess,
    only="cpu",
    bytes=2 * 4 * 4_000_000,
    seconds=0.7,
)

# %%
x, out = torch.rand(4_000_000), torch.empty(4_000_000)
print(f"whole: {costs(into, x, out).operations.total():,} operations")
for numbers in (16_384, 131_072):
    assert torch.equal(in_blocks(x, out, numbers), formula(x))
    print(f"blocks of {numbers:,}: {costs(in_blocks, x, out, numbers).operations.total():,} operations")

# %% [markdown]
# **Why.** A block needs five calls of torch and two pieces from `split`, whatever its size. For small blocks
# this is a large part of the time: what the cache gives, Python takes away. With larger blocks there are
# fewer calls, and the blocks can win as long as they fit into the cache of a core (L2). So the block size is
# something to measure: caches differ, and so does the memory behind them. A compiler needs no such calls: its
# loop in section 8 takes every number through all steps while it is in a register. And on a GPU, small blocks
# are many small launches.
#
# Blocks pay even more where the **intermediate** results are much larger than input and output. You will meet
# that in the exercises.
#
# ## Summary
#
# | you see | do | because |
# |---|---|---|
# | large products, idle cores | one thread for each core | the parts are independent |
# | several processes, all slow | fewer threads in each | threads without a core make the others wait |
# | tensors of up to 32,768 numbers | nothing about threads | torch does not split them |
# | gaps (strides) in element-wise work | store neighbours; copy if used often | vector instructions need neighbours |
# | few operations per byte | fewer passes over the bytes | arithmetic waits for memory |
# | the same matrix, many vectors | one product | the matrix travels once |
# | large new tensors in a loop | `out=`, in place | no page faults |
# | `c + s·a·b`, `a + w·(b − a)` | `addcmul`, `lerp` | one pass, no temporaries |
# | long element-wise chains, large tensors, many calls | `torch.compile` | one loop; the first call takes seconds |
#
# So the claim is right about its three. Vectors and format gave several times; threads give at most the number
# of free cores, and do harm without them. It leaves out how often the bytes travel (sections 5 to 9).

# %%
verdicts("E7")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/13_cpu/13_cpu.ipynb). Five functions, given slow;
# make them right and fast, on one thread.
