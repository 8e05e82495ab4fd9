# %% [markdown]
# # 13 · The CPU
#
# A CPU can be fast in several ways at once: cores that work side by side, instructions that handle many
# numbers, caches, a compiler. Most programs use a small part of this. Which part is missing in yours?
#
# IDs such as *E7* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, `costs`
# and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - choose the number of threads, and see when more of them do harm,
# - tell whether an operation is held up by memory, by arithmetic or by neither, and draw it,
# - save passes over memory: in place, with `out=`, with fused operations and with `torch.compile`,
# - work in blocks, so that a large table never exists as a whole.
#
# **Time:** 50 minutes to read and run; 15 more for the part *Further*, which can be skipped. **Needs:** CPU,
# and a C++ compiler for one section.
#
# **Claims tested** (of an article about memory formats): *E7* "CPU performance comes from memory format,
# parallelisation (threads) and vectorisation (one instruction, many data)". We test the three, and look for
# what the list leaves out.

# %%
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from parts.inputs import tensors
from parts.roofline import draw_roofline
from torch.utils.data import DataLoader, Dataset

from autograder import compare, costs, devices, guessed, picture, recall, verdicts
from autograder.measuring.clocks import run_block
from autograder.measuring.limits import rates

logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # it looks for CUDA, too

cores = torch.get_num_threads()  # before any change: restart the kernel to run this cell again
print("devices here:", *devices())
print("threads that torch takes by default:", cores, "· logical cores:", os.cpu_count())
print("vector instructions:", torch.backends.cpu.get_cpu_capability())
recall("13", ..., ..., ...)

# %% [markdown]
# By default torch takes one thread for each physical core, at least on most machines. The system may show
# twice as many *logical* cores; two of them share the arithmetic of one core. Nobody asked whether the cores
# are free. Nearly all measurements before this chapter used a single thread, because that is what can be
# measured on a busy machine. In sections 1 and 2 we use more, and measure with the **wall clock**. "All cores"
# means as many threads as torch takes by default.
#
# ## 1. Threads
#
# Are the other cores free? For each core, a worker multiplies matrices on a thread of its own, first one worker alone,
# then all side by side. On free cores they do not hinder each other:


# %%
def seconds_of(workers):
    """Wall seconds for 20 products in each of so many workers."""
    a, b = torch.rand(2, 512, 512)
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        list(pool.map(lambda _: a @ b, range(workers)))
        start = time.perf_counter()
        list(pool.map(lambda _: [a @ b for _ in range(20)], range(workers)))
        return time.perf_counter() - start


one_alone, side_by_side = (median(seconds_of(workers) for _ in range(5)) for workers in (1, cores))
cores_are_free = cores > 1 and side_by_side < 1.25 * one_alone
print(f"one worker alone: {one_alone * 1e3:.0f} ms; {cores} side by side: {side_by_side * 1e3:.0f} ms each")
print("So the cores are free." if cores_are_free else "So the cores are not free, or are halves of one.")

# %% [markdown]
# A product of two 512 × 512 matrices: 134 million multiplications and as many additions. One thread, or as many
# as there are cores. How many times as fast are all cores?

# %%
guess = ...


# %%
def on_threads(number, function):
    """The function, set to run on so many threads."""

    def run(*arguments):
        if torch.get_num_threads() != number:
            torch.set_num_threads(number)
        return function(*arguments)

    return run


if cores_are_free:
    products = compare(
        "cpu: a product of 512 × 512 on one thread or on all cores",
        {"1 thread": on_threads(1, torch.mm), "all cores": on_threads(cores, torch.mm)},
        inputs=tensors((512, 512), (512, 512)),
        guess=guess,
        claim="E7",
        only="cpu",
        clock="wall",
        threads=None,
    )
else:
    print("The other cores have other work, so there is nothing to compare.")

# %% [markdown]
# **Why.** Every thread [computes its own
# part](https://docs.pytorch.org/docs/2.1/notes/cpu_threading_torchscript_inference.html) of the result. On idle
# cores the ratio comes near to their number. But at the end all wait for the slowest. If another program has one of the
# cores, its part comes late, and the ratio falls, even far below 1. Above you see the median, with whatever ran beside
# it. Here are the quickest blocks, which were disturbed least. (Where the cores are not free, nothing is said of *E7*:
# its condition is not met.)

# %%
if cores_are_free and products.samples:
    alone, all_cores = (min(products.samples["cpu"].seconds(name)) for name in ("1 thread", "all cores"))
    quickest = f"The quickest block of each: {alone * 1e3:.2f} ms and {all_cores * 1e3:.2f} ms."
    guessed("times as fast on all cores, by the quickest blocks", guess, alone / all_cores, quickest)

# %% [markdown]
# ### A small sum
#
# Adding 1,000 numbers. How many times as fast are all cores?

# %%
guess = ...

# %%
compare(
    "cpu: adding 1,000 numbers on one thread or on all cores",
    {"1 thread": on_threads(1, torch.add), "all cores": on_threads(cores, torch.add)},
    inputs=tensors(1000, 1000),
    guess=guess,
    claim="E7",
    only="cpu",
    clock="wall",
    threads=None,
    seconds=0.5,
)

# %% [markdown]
# Threads **do not help** here, and do no harm either: both variants run the same code. torch does not split
# element-wise work of up to 32,768 numbers. It takes for granted that handing out the parts and waiting for them would
# cost more than it saves. On Linux we can see it: every thread of this process has an entry in `/proc/self/task`, and
# torch starts threads when it first needs them.

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
# Fewer are started than asked for: the main thread is one of them, others are there from the first measurement, and
# threads that are there are used again. If you run the cell a second time, the last line may say 0.
#
# ## 2. More threads than cores
#
# If threads are good, are more threads better? We multiply matrices of 256 × 256: with eight threads for each
# core, and with a single thread. How many times as fast is the single thread?

# %%
guess = ...

# %%
compare(
    "cpu: a product of 256 × 256 with too many threads",
    {
        "8 for each core": on_threads(8 * cores, torch.mm),
        "1 thread": on_threads(1, torch.mm),
    },
    inputs=tensors((256, 256), (256, 256)),
    guess=guess,
    only="cpu",
    clock="wall",
    threads=None,
    seconds=0.7,
)
torch.set_num_threads(1)

# %% [markdown]
# **Why.** The arithmetic is the same. But the threads must meet at the end, and a thread that has no core cannot
# arrive. The system has to switch between them, and each works on other data in the cache. This is
# [*oversubscription*](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cpu-oversubscription): one thread
# alone can do better than a crowd. Where a neighbour keeps a core busy, even one thread for each core is one too many.
#
# Nobody writes `set_num_threads(8 * cores)`. It happens by multiplication: several **processes**, each with
# threads for all cores. Four training runs on one machine, a web server with eight workers, a test suite in
# parallel. The cure is `torch.set_num_threads` in each of them, or the environment variable `OMP_NUM_THREADS`
# before they start. Or each process is *pinned* to cores of its own, on a large machine next to its memory, with `taskset`
# or `numactl` ([tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html));
# `python -m torch.backends.xeon.run_cpu` shares the cores out. A process takes no more threads than it may use cores.
#
# A `DataLoader` knows the problem. What does a worker get, and what a process on one core?

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
    pinned = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"
    program = f"{pinned}; import torch; print(torch.get_num_threads())"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    print("threads of a process that is pinned to one core:", told.strip())
    assert int(told) == 1
torch.set_num_threads(1)

# %% [markdown]
# One thread each. So count like this: threads of the main process, plus one for each worker that is busy. If
# that is more than you have cores, take some away from the main process, and measure. (Workers that wait for a disk
# or a network need no core; see [chapter 04](04_data_loading.ipynb).)
#
# ## 3. One instruction, many numbers
#
# Back to one thread. A core has *vector* instructions, which take 4, 8 or 16 `float32` at once. They are made
# for numbers that lie side by side. We compute the sigmoid of the same 20,000 numbers: stored as every second
# one of 40,000, or as neighbours. How many times as fast are neighbours?

# %%
guess = ...


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
# **Why.** One operation each, and no copy. With gaps, the numbers and the result are 240 kB together; the second cache
# (L2) of most cores holds that. So it is neither memory nor Python: with gaps, torch's code takes [the loop without
# vectors](https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cpu/Loops.h).
#
# ### Short rows
#
# 100,000 points in space, 3 numbers each, contiguous. We subtract their middle: a row of 3 numbers, which broadcasts.
# Or we write the middle 100 times in a row, and see the points as rows of 300 numbers. It is the same memory, the same
# one operation, the same subtractions. How many times as fast are the long rows?

# %%
guess = ...


# %%
def points_middle_and_space(generator, device):
    points, middle = torch.rand(100_000, 3, generator=generator), torch.rand(3, generator=generator)
    return points, middle, torch.empty(100_000, 3)


compare(
    "cpu: subtracting a row of 3 numbers, or of 300",
    {
        "rows of 3": lambda points, middle, out: torch.sub(points, middle, out=out),
        "rows of 300": lambda points, middle, out: torch.sub(
            points.view(-1, 300), middle.repeat(100), out=out.view(-1, 300)
        ).view(-1, 3),
    },
    inputs=points_middle_and_space,
    guess=guess,
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# **Why.** The arithmetic is the same, and only the rows are longer. It looks as if torch's inner loop started anew in
# each row, as the second operand does. A row of 3 is shorter than one vector. How long must a row be?

# %%
points, middle = torch.rand(320_000, 3), torch.rand(3)
out = torch.empty_like(points)
print("numbers in a row    subtract a row    add up each row")
for times in (1, 2, 4, 8, 16, 32):
    rows, row, into_rows = points.view(-1, 3 * times), middle.repeat(times), out.view(-1, 3 * times)
    microseconds = []
    for function, arguments in ((partial(torch.sub, out=into_rows), (rows, row)), (torch.sum, (rows, 1))):
        run_block(function, arguments, 3)
        best = min(run_block(function, arguments, 3).per_call("cpu") for _ in range(7))
        microseconds.append(best * 1e6)
    print(f"{3 * times:16} {microseconds[0]:14.0f} µs {microseconds[1]:15.0f} µs")
assert torch.equal(out, points - middle)

# %% [markdown]
# For the subtraction a few vectors long is enough. The sums may gain from still longer rows: each row has a result of
# its own to finish. (So they are not the same work; but all read the same 960,000 numbers.) So "contiguous" is not all:
# the numbers that get the *same treatment* should be many, and neighbours. And `costs` shows nothing of it: one
# operation, no copy.
#
# Vector instructions need not be switched on: torch holds its operations several times, compiled for different
# instructions, and chooses the best when it starts. (In *Further* we forbid it, to see how much of its speed this is.)
# What you can do is to give it neighbours. But where an operation has no such code, neighbours do not help: time each
# one alone.
#
# ## 4. Memory format
#
# The third item of the claim has [a chapter of its own](06_memory_format.ipynb). One measurement to complete
# the list: average pooling of 64 channels, in the default order and in channels_last, where the 64 channels
# of a pixel are neighbours. How many times as fast is channels_last?

# %%
guess = ...


# %%
def in_both_formats(generator, device):
    batch = torch.rand(8, 64, 28, 28, generator=generator).to(device)
    return batch, batch.to(memory_format=torch.channels_last)


compare(
    "cpu: average pooling of 64 channels",
    {
        "default": lambda default, last: F.avg_pool2d(default, 2),
        "channels_last": lambda default, last: F.avg_pool2d(last, 2),
    },
    inputs=in_both_formats,
    guess=guess,
    claim="E7",
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# It fits the same reason: in channels_last, neighbours are treated alike. (The two orders also have different loops in
# torch, so not all of the ratio need be vectors.) On the CPU, what a memory format brings is often vectorisation.
#
# ## 5. Memory or arithmetic?
#
# So much for the claim. What does it leave out? A matrix of 2048 × 2048 numbers is multiplied by 64 vectors,
# one after the other or all at once. Both ways do the same 268 million multiplications, on one
# thread, with vector instructions, on contiguous memory. How many times as fast is "all at once"?

# %%
guess = ...


# %%
def one_by_one(matrix, vectors):
    return torch.stack([matrix @ vector for vector in vectors])


compare(
    "cpu: a matrix times 64 vectors",
    {"one by one": one_by_one, "all at once": lambda matrix, vectors: vectors @ matrix.T},
    inputs=tensors((2048, 2048), (64, 2048)),
    guess=guess,
    only="cpu",
    bytes=4 * (2048 * 2048 + 2 * 64 * 2048),
    flops=2 * 64 * 2048 * 2048,
    seconds=0.6,
    because="prices",
)

# %% [markdown]
# **Why.** The matrix has 16.8 MB. One by one, it travels from memory (or a far cache) 64 times: about 1 GB.
# All at once, a block of it is used for 64 vectors while it is near. The arithmetic waits for the bytes.
#
# The ratio *operations per byte* sets a limit: where it is low, memory cannot feed the arithmetic; where it is high,
# the arithmetic itself is the limit. We let 1, 2, 4, … 256 vectors meet the matrix. Each time the work doubles, but the
# bytes hardly change. Does the time double, too?

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
# Read down the column *ms per call*: from 2 vectors on it stays about level for several rows (or even falls), then it
# nearly doubles from row to row. The picture of this is called a *roofline*. The slope is what memory can feed. The
# flat part is what the arithmetic can do: the better of a large product and a convolution, which another library
# computes, on some processors twice as fast. The course has measured both on this machine; the *limit* lines in the
# tables are points on such a roof. It is a limit and no forecast: something else may hold an operation up. The round
# points are the products, with their number of vectors:

# %%
named = [(x, y, str(vectors)) for x, y, vectors in points]
picture(*draw_roofline(bandwidth, measured["flops_per_second"], named, [(1 / 8, added * 1e9, "x + 1")]))
print(f"The roof bends at {ridge:.1f} operations per byte.")
print(f"x + 1 has {1 / 8} operations per byte and reaches {added / peak:.1%} of the peak.")

# %% [markdown]
# One vector has a routine of its own; it lies on or near the slope. Two or more use the routine for products
# of matrices. It seems to have a fixed cost: for a few vectors the time is nearly the same. So these points may lie
# far below the roof: neither the memory nor the arithmetic of this model explains their time. A few vectors may even
# be quicker one by one: for each row of the table, take the time of the first row as often as the row has vectors, and
# compare. With many vectors the points come to a level of their own: what this routine reaches on this processor.
#
# Adding 1 to each number is one operation for 8 bytes (read 4, write 4). The arithmetic of the core is idle
# nearly all the time. So for cheap element-wise operations (sums, products) on large tensors there is mainly
# one question: **how often do the bytes pass by?** A sigmoid or an exponential has more arithmetic for each
# byte; there vectors count as well (section 3).
#
# And the arithmetic itself? Sometimes it can be left out. *A* and *B* are matrices of 512 × 512, *x* has 512 numbers.
# How many times fewer multiplications does *A (B x)* take than *(A B) x*?

# %%
guess = ...

# %%
n = 512
A, B, x = torch.rand(n, n), torch.rand(n, n), torch.rand(n)
assert torch.allclose((A @ B) @ x, A @ (B @ x), rtol=1e-3)
first, second = n**3 + n**2, 2 * n**2
left, right = (
    min(run_block(function, (), 3).per_call("cpu") for _ in range(7))
    for function in (lambda: (A @ B) @ x, lambda: A @ (B @ x))
)
guessed(
    "times fewer multiplications",
    guess,
    first / second,
    f"{first:,} against {second:,} multiplications",
    f"{left * 1e6:.0f} µs against {right * 1e6:.0f} µs: {left / right:.0f} times as fast.",
)

# %% [markdown]
# Brackets change the work, not the result. In time the gain is smaller: now the bytes of *A* and *B* are what counts.
# There are two operations for each number, and one vector lies on the slope of the roof.
#
# ## 6. Where do results go?
#
# A polynomial of third degree, five element-wise operations, for 10 million numbers. Written as a formula, each
# operation makes a new tensor of 40 MB. With the underscore methods, the first one makes a tensor and the
# others overwrite it. With `out=`, all use memory that was there before. How many times as fast is the last?

# %%
guess = ...


# %%
def numbers_and_buffer(length):
    return lambda generator, device: (
        torch.rand(length, generator=generator).to(device),
        torch.ones(length, device=device),
    )


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
    inputs=numbers_and_buffer(10_000_000),
    guess=guess,
    only="cpu",
    seconds=0.8,
    bytes=2 * 4 * 10_000_000,
    because="page faults",
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
# on most machines, so 40 MB are nearly 10,000 page faults. By the times above, each takes a microsecond or two. (On a
# GPU torch keeps freed memory for itself, and hands it out again without asking the system.)
#
# The price has conditions: autograd may need the old values ([chapter 03](03_autograd.ipynb)), and the next
# call overwrites the last result.
#
# Whether the same holds for small tensors, and where the border lies, is measured in *Further*.
#
# ## 7. Fused operations
#
# `c + 0.5 * a * b` is three operations: three passes, two temporary tensors. `torch.addcmul` does it in one.
# With 2 million numbers, what does that save, most of all: `"calls"`, `"bytes"` or `"arithmetic"`?

# %%
guess = ...

# %%
compare(
    "cpu: c + 0.5 · a · b, three operations or addcmul",
    {
        "c + 0.5 * a * b": lambda a, b, c: c + 0.5 * a * b,
        "addcmul": lambda a, b, c: torch.addcmul(c, a, b, value=0.5),
    },
    inputs=tensors(2_000_000, 2_000_000, 2_000_000),
    guess=guess,
    only="cpu",
    bytes=4 * 4 * 2_000_000,
    seconds=0.7,
    because="prices",
)

# %%
a, b, c = (torch.rand(2_000_000) for _ in range(3))
print(costs(lambda: c + 0.5 * a * b), end="\n\n")
print(costs(lambda: torch.addcmul(c, a, b, value=0.5)))
assert torch.allclose(c + 0.5 * a * b, torch.addcmul(c, a, b, value=0.5))
assert torch.allclose(a + 0.1 * (b - a), torch.lerp(a, b, 0.1))

# %% [markdown]
# **Why.** Count the passes. `0.5 * a` reads one and writes one tensor; `· b` reads two and writes one; `c +` the
# same: 8 times 8 MB. `addcmul` reads three and writes one: 4 times 8 MB. Two temporary tensors are saved as well.
# `torch.lerp(a, b, w)` does the same for `a + w * (b - a)`; an exponential moving average is `average.lerp_(new, w)`.
#
# A fused operation saves passes over memory; it cannot save arithmetic. `addmm` fuses a matrix product and a sum: what
# will that gain? (*Further* measures it.)
#
# ## 8. `torch.compile`
#
# There is no ready-made fused operation for our polynomial. `torch.compile` makes one: it records the operations
# of the function, writes C++ code with one loop, and calls the compiler of your machine. That needs a compiler,
# and time. What do the first calls cost? We use an empty folder for compiled code, so that nothing is prepared.

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
# The first call compiles for exactly this size. When another size comes, torch compiles once more, now for any size (or
# nearly any). So the third is quick. The second compilation is much shorter than the first. So most of the first call
# was preparation that a program needs once. (Torch loads its compiler and tests yours, among other things; the times do
# not tell how long each of it takes.) Compiled code stays in a folder on disk, where the next program finds it.
#
# And after that? Four million numbers: how many times as fast is the compiled function as the formula?

# %%
guess = ...

# %%
if compiled:
    fused = compare(
        "cpu: a polynomial of 4,000,000 numbers, compiled",
        {"formula": formula, "in place": in_place, "compiled": compiled},
        inputs=4_000_000,
        guess=guess,
        only="cpu",
        bytes=2 * 4 * 4_000_000,
        seconds=0.7,
    )
    blocks = fused.samples["cpu"]
    saved = median(blocks.seconds("formula")) - median(blocks.seconds("compiled"))
    if saved > 0:
        print(f"The first call is paid back after {first_call / saved:,.0f} calls.")
else:
    print("Skipped: not available here.")

# %% [markdown]
# **Why.** The formula reads 7 and writes 5 times 16 MB. The compiled loop [reads once and writes
# once](https://docs.pytorch.org/docs/stable/torch.compiler_get_started.html); all the steps in between happen in
# registers. The limit counts the same two passes. Whether the new results cost page faults depends on what the program
# has freed before (section 6). Where an interval is wide, that may be the reason; then the number of calls that pay the
# first one back is a rough one, too.
#
# Before the compiled code may run, torch checks that its assumptions still hold: type, device, number of
# dimensions and more. That takes time at each call (*Further* measures it). Compile what is called often, with large
# tensors and several element-wise steps. A single matrix product has nothing to fuse.
#
# ## 9. Blocks by hand
#
# A famous trick from numerical code: do not send all 4 million numbers through five operations. Take a block
# that fits into the cache, do all five, then take the next. The passes 2 to 5 find their numbers near. We do
# it with small blocks of 16,384 numbers (64 kB) and with larger ones of 131,072 (512 kB), all with `out=`.
# How many times as fast as the whole are the larger blocks?

# %%
guess = ...


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
    inputs=numbers_and_buffer(4_000_000),
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
# **Why.** A block needs five calls of torch and two pieces from `split`, whatever its size. For small blocks this is
# a large part of the time: what the cache gives, Python takes away. With larger blocks there are fewer calls, and
# the blocks can win as long as they fit into the cache of a core (L2). So the block size is something to measure. A
# compiler needs no such calls: its loop in section 8 takes every number through all steps while it is in a register.
#
# ### A table that never exists
#
# Blocks save memory where what lies *between* input and output is much larger than both. What do they do to the time?
# How crowded is it around each of 2,000 points? Add up `exp(-distance)` to all 2,000 others. All at once, that is a
# table of 4 million numbers: 16 MB, for a result of 8 kB. We make it for all points at once, for one point at a time,
# or for 50. How many times as fast as "all at once" are the blocks of 50?

# %%
guess = ...


# %%
def points_and_others(generator, device):
    return (
        torch.randn(2000, generator=generator).to(device),
        torch.randn(2000, generator=generator).to(device),
    )


def crowding(points, others):
    return (points[:, None] - others).abs_().neg_().exp_().sum(1)


def crowding_in_blocks(points, others, rows):
    return torch.cat([crowding(some, others) for some in points.split(rows)])


ways = {
    "all at once": crowding,
    "one at a time": lambda points, others: crowding_in_blocks(points, others, 1),
    "blocks of 50": lambda points, others: crowding_in_blocks(points, others, 50),
}
table = compare(
    "cpu: sums over a table of 2,000 × 2,000, in blocks",
    ways,
    inputs=points_and_others,
    guess=guess,
    only="cpu",
    seconds=0.7,
)

# %%
points, others = torch.randn(2000), torch.randn(2000)
for name, way in ways.items():
    block = table.samples["cpu"].blocks[name][0]
    print(
        f"{name:14} at most {costs(way, points, others).peak_bytes / 1e6:6.2f} MB of new memory at once,"
        f"{block.faults / block.calls:8,.0f} page faults for each call"
    )

# %% [markdown]
# Blocks of 50 need a fortieth of the memory, and cost about no time, or even save some. (Not because 400 kB fit into a
# cache, it seems: each number needs an `exp`, which takes longer than to fetch it. The table of 16 MB may cost page
# faults, as in section 6.) One at a time needs still less memory, and pays for 2,000 rounds.
#
# ### What can be put together?
#
# A block of *points* gives finished results. What if there are too many *others*, or if they come one batch after the
# other? Then each block gives a part of each result, and the parts must be put together:

# %%
pieces = others.split(300)
assert len(pieces[-1]) < 300
total = sum(crowding(points, some) for some in pieces)
print("sums, added up:             ", torch.allclose(total, crowding(points, others), rtol=1e-4))
highest = torch.stack([some.amax() for some in pieces]).amax()
print("the largest of the largest: ", torch.equal(highest, others.amax()))
means = torch.stack([crowding(points, some) / len(some) for some in pieces]).mean(0)
print("the mean of the means:      ", torch.allclose(means, total / len(others), rtol=1e-4))
assert not torch.allclose(means, total / len(others), rtol=1e-4)

# %% [markdown]
# Sums can be added, maxima compared. A mean cannot be made of means, where the last block is shorter; carry the sum and
# the number, and divide at the end. And what was computed relative to a carried number must be converted when that
# number changes. Ask of each result that you want in blocks: **which few numbers must I carry, so that two parts can
# become one?**
#
# ## Further
#
# This part can be skipped. It is for readers who want to know how far the tricks of this chapter reach, and how
# much of torch's speed comes from vector instructions.
#
# ### Copy first?
#
# If gaps are slow (section 3): should one copy the numbers together first, with `contiguous()`, and compute without
# gaps? For a product of two such tensors: how many times as fast is that?

# %%
guess = ...


# %%
def pairs_and_space(generator, device):
    return torch.rand(40_000, generator=generator), torch.empty(20_000)


compare(
    "cpu: a product of 20,000 numbers with gaps, or copied first",
    {
        "as they are": lambda numbers, out: torch.mul(numbers[::2], numbers[1::2], out=out),
        "contiguous() first": lambda numbers, out: torch.mul(
            numbers[::2].contiguous(), numbers[1::2].contiguous(), out=out
        ),
    },
    inputs=pairs_and_space,
    guess=guess,
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# The copy has to pick up the numbers one by one as well. It can pay if it is used several times, or by an expensive
# operation such as the sigmoid (compare its times in section 3). Better: store the numbers together from the start.
#
# ### A small polynomial
#
# Section 6 once more, with 20,000 numbers instead of 10 million. How many times as fast is the buffer?

# %%
guess = ...

# %%
compare(
    "cpu: a polynomial of 20,000 numbers, three ways to store it",
    {
        "new tensors": lambda x, out: formula(x),
        "in place": lambda x, out: in_place(x),
        "into a buffer": into,
    },
    inputs=numbers_and_buffer(20_000),
    guess=guess,
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# Little is left: a small tensor gets memory that another one has just given back, and it is still in the cache. Where
# is the border? We start Python once more, so that nothing was freed before. The program fills new tensors of growing
# size, each size 20 times, and counts page faults:


# %%
def start(program, **settings):
    """What a new Python prints, which runs the program with these environment variables."""
    environment = {**os.environ, **settings}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout


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
# The border can be set before Python starts, with glibc's
# [tunables](https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html). (Or another allocator is
# put in its place with `LD_PRELOAD`: mostly jemalloc or tcmalloc, says the tuning guide of section 2.) The same program,
# told to give nothing back:

# %%
rules = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=4294967296"
kept = {size: counted[-1] for size, counted in json.loads(start(fills, GLIBC_TUNABLES=rules))}
print("faults at the 20th call:", {f"{size:,} kB": f"{count:,}" for size, count in kept.items()})

# %% [markdown]
# ### `addmm`
#
# `torch.addmm(bias, x, weight)` fuses a matrix product and the sum with a bias. x is 256 × 512, the weight
# 512 × 512. How many times as fast is it as `x @ weight + bias`?

# %%
guess = ...

# %%
compare(
    "cpu: x @ weight + bias, or addmm",
    {
        "x @ weight + bias": lambda x, weight, bias: x @ weight + bias,
        "addmm": lambda x, weight, bias: torch.addmm(bias, x, weight),
    },
    inputs=tensors((256, 512), (512, 512), 512),
    guess=guess,
    only="cpu",
    flops=2 * 256 * 512 * 512,
    seconds=0.5,
    because="prices",
)

# %% [markdown]
# **Why.** Next to nothing. The product has 134 million operations, the sum 0.1 million.
#
# ### Ten numbers, compiled
#
# How many times as fast as the formula is the compiled function of section 8?

# %%
guess = ...

# %%
if compiled:
    compare(
        "cpu: a polynomial of 10 numbers, compiled",
        {"formula": formula, "compiled": compiled},
        inputs=10,
        guess=guess,
        only="cpu",
        seconds=0.5,
    )
else:
    print("Skipped: not available here.")

# %% [markdown]
# About the same, on some CPUs slower: the checks before each call take about as long as the five small operations.
#
# ### Without vectors
#
# How much of torch's speed is vector instructions? The environment variable `ATEN_CPU_CAPABILITY` overrides torch's
# choice: `default` is code that every processor of this kind can run. We start Python twice, with and without
# it. (The first one also gets `OMP_NUM_THREADS=1`, to see that it works.) How many times as fast is a sigmoid
# with the best instructions?

# %%
guess = ...

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

without = start(program, ATEN_CPU_CAPABILITY="default", OMP_NUM_THREADS="1")
plain, plain_times, plain_threads = json.loads(without)
best, best_times, best_threads = json.loads(start(program))
guessed(
    "times as fast, the sigmoid with the best instructions",
    guess,
    plain_times["sigmoid"] / best_times["sigmoid"],
    f"{'µs per call':16}{plain:>10}{best:>10}    times as fast",
    *(
        f"{name:16}{slow * 1e6:10.1f}{best_times[name] * 1e6:10.1f}{slow / best_times[name]:12.1f}"
        for name, slow in plain_times.items()
    ),
)
print(f"Threads at the start, with OMP_NUM_THREADS=1: {plain_threads}, without: {best_threads}")

# %% [markdown]
# The table has two parts. `sigmoid`, `amax`, the product and the sum are code of torch itself (its library
# ATen). Without the wide instructions they take much longer. On a processor of the x86 family even `default`
# may use vectors of 4 numbers; on ARM, `default` has vectors, too, and the columns can be equal.
#
# The matrix product hardly changes, and on most x86 machines neither does `exp`: torch hands them to another library
# (there, Intel's MKL), which looks at the processor for itself. So the switch does not turn off *all* vectors.
#
# ## Summary
#
# **Chapter 00's routine here:** measure on the wall and on the CPU clock, with your number of threads. Predict from bytes
# and flops. *You see* names the cause, *do* takes it away; the limit says when to stop.
#
# | you see | do | because |
# |---|---|---|
# | large products, idle cores | one thread for each core | the parts are independent |
# | several processes, all slow | fewer threads in each | threads without a core make the others wait |
# | tensors of up to 32,768 numbers | nothing about threads | torch does not split them |
# | gaps (strides) in element-wise work | store neighbours; copy if used often | vector instructions need neighbours |
# | short rows, treated alike | longer rows, another order | each row starts the loop anew |
# | few operations per byte | fewer passes over the bytes | arithmetic waits for memory |
# | the same matrix, many vectors | one product (for a few, measure) | the matrix travels once |
# | a product with a vector at its end | brackets from there | less arithmetic |
# | large new tensors in a loop | `out=`; or in place, with one new tensor | no page faults, or fewer |
# | `c + s·a·b`, `a + w·(b − a)` | `addcmul`, `lerp` | one pass, no temporaries |
# | a huge table between small input and result | blocks; carry what can be put together | the table never exists |
# | long element-wise chains, large tensors, many calls | `torch.compile` | one loop; the first call takes seconds |
#
# So the claim is right about its three. Vectors and format gave several times; threads give at most the number
# of free cores, and do harm without them. It leaves out how often the bytes travel (sections 5 to 9).

# %%
verdicts("E7")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/13_cpu/13_cpu.ipynb). Five functions, given slow or large;
# make them right, fast and small, on one thread.
