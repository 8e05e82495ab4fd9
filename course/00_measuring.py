# %% [markdown]
# # 00 · Measuring
#
# This course says what is fast and what is not. Why should you believe it? Because every statement is timed in
# front of you. But a stopwatch can lie. This chapter shows how it lies, and how the other chapters prevent it.
#
# "The articles" are five widely read articles on fast PyTorch from 2017–2021 whose claims the course measures; the
# IDs such as *A1* are the course's numbers for them, listed in [claims](claims.ipynb). `compare`, which times
# things in every chapter, is explained here in section 5, and `costs`, which counts, in sections 3 and 6.
#
# **You will be able to**
# - say why a first timing, a single timing and a timing without synchronisation are wrong,
# - say what a clock measures where launching takes longer than the work,
# - compare two functions in pairs, and read a ratio with its interval,
# - predict a time from calls, bytes and arithmetic,
# - go through a routine: measure, find the largest part, predict, name a cause, take it away, verify.
#
# **Time:** 50 minutes to read and run, 5 more for the part Further. **Needs:** CPU, GPU if any.
#
# **Claims tested:** none from the articles. This chapter tests the tools that test them.
#
# **How to guess:** write a number, or the word that is asked for in quotes, in place of the dots in `guess = ...`, and
# run that cell and the next one. Until then, what was measured stays folded. A guess is *right* where it is exact, or
# within a fifth of what was measured; *near* is within a factor of 2.

# %%
import inspect
import logging
import math
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import torch
from parts.waiting import draw_pairs, draw_queue, launch_20, neighbours

from autograder import compare, costs, devices, guessed, picture

cores = os.cpu_count()
torch.set_num_threads(1)
print("devices here:", *devices(), "· cores:", cores)

# %% [markdown]
# ## 1. The first call
#
# We call some functions five times each, and note every time. How many times as long as the fifth matrix product
# does the first one take?

# %%
guess = ...


# %%
def five_times(function):
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return seconds


square = torch.rand(100, 100)
weight = torch.rand(100, 100, requires_grad=True)
first_calls = {
    "matrix product": five_times(lambda: square @ square),
    "Fourier transform": five_times(lambda: torch.fft.fft(square)),
    "backward": five_times(lambda: (weight @ square).sum().backward()),
}
pictures, filters = torch.rand(4, 8, 24, 24), torch.rand(16, 8, 3, 3)
torch.conv2d(pictures[:2], filters)  # the first convolution of all: below, only its shape is new
first_calls["convolution"] = five_times(lambda: torch.conv2d(pictures, filters))
modules = len(sys.modules)
first_calls["make an optimizer"] = five_times(lambda: torch.optim.Adam([weight]))

product = first_calls["matrix product"]
guessed(
    "the first matrix product, times as long as the fifth",
    guess,
    product[0] / product[4],
    f"{'microseconds':18}" + "".join(f"{f'call {number}':>11}" for number in range(1, 6)),
    *(f"{name:18}" + "".join(f"{1e6 * one:11,.0f}" for one in row) for name, row in first_calls.items()),
    f"The first optimizer loaded {len(sys.modules) - modules:,} modules of Python.",
)

# %% [markdown]
# **Why.** Torch does much of its work only when it is needed for the first time: the matrix library, the autograd
# engine, Python's modules for an optimizer, a GPU's context and kernels. So its own [recipe for
# timing](https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html) calls once before. Other caches are filled
# for every new *shape*: oneDNN and cuDNN prepare a convolution once for each.
#
# So: **call once before you time** ("warm up"). The exception is a program that runs once. Then the first call is what
# you pay. (Run the cell again: the slow calls are gone until you restart the kernel.)

# %% [markdown]
# ### Memory has a first time, too
#
# The system gives out memory as a promise. Only when a program first writes to a page (4 kB, often) does the
# system find one and clear it: a *page fault*. We fill 40 MB, once in new memory, once in memory that was
# written before. How many times faster is the second?
#
# Here `compare` does the timing for the first time. Read only *times faster*; section 5 explains the rest.

# %%
guess = ...


# %%
def memory_in_use(generator, device):
    return torch.ones(10_000_000, device=device)


filled = compare(
    "measuring: 40 MB in new memory, or in memory in use",
    {
        "new memory": lambda target: torch.empty(10_000_000, device=target.device).fill_(1),
        "memory in use": lambda target: target.fill_(1),
    },
    inputs=memory_in_use,
    guess=guess,
    because="page faults",
)


# %%
def show_faults(comparison):
    for name, blocks in comparison.samples["cpu"].blocks.items():
        faults = median(block.faults / block.calls for block in blocks)
        print(f"{name}: {faults:,.0f} page faults for each call, on the CPU")


show_faults(filled)

# %% [markdown]
# **Why.** Both calls write the same 40 MB. The rest is the system's work. Torch [keeps memory of a
# GPU](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management) and hands it out again: on an H200 both
# take 11 µs.

# %% [markdown]
# ## 2. Stopped too early
#
# A GPU works *asynchronously*. A call puts work into a queue and returns. The GPU takes it from there. Here is a queue
# with one worker: a thread that computes while we go on. It gets ten matrix products. The stopwatch is read after the
# last one was *launched*. What part of the real time does it show, in percent?

# %%
guess = ...

# %%
worker = ThreadPoolExecutor(1)
matrix = torch.rand(1024, 1024)
worker.submit(torch.mm, matrix, matrix).result()  # warm up

start = time.perf_counter()
queued = [worker.submit(torch.mm, matrix, matrix) for _ in range(10)]
launched = time.perf_counter() - start
queued[-1].result()  # synchronize: wait for the last one
finished = time.perf_counter() - start

guessed(
    "percent of the time that the early stopwatch shows",
    guess,
    100 * launched / finished,
    f"all launched after {launched * 1e3:8.2f} ms",
    f"all finished after {finished * 1e3:8.2f} ms",
)
assert launched < finished

# %% [markdown]
# The first figure measures the queue, not the work: how long it takes to ask. A slow *kernel* (a function that runs on
# the GPU) and a fast one take the same time to ask for.
#
# With a GPU, the cure is `torch.cuda.synchronize()`, before the start and before the stop.
#
# There is also a stopwatch on the GPU itself. A `torch.cuda.Event` goes into the queue like other work. The GPU
# notes the time when it gets there.
#
# ### What do events measure?
#
# Here is the queue again, as a model. The worker's "kernels" are naps, and so is what Python does for each launch:
# 2 ms. (True launches take microseconds; such short naps would not be exact. `nap` sleeps, and notes when.) We launch
# 20 kernels of 0.5 ms each: 10 ms of work. How many milliseconds lie between two events, one before and one after?

# %%
guess = ...


# %%
print(inspect.getsource(launch_20))
traces = {
    "20 kernels of 5 ms": launch_20(worker, 0.005),
    "20 kernels of 0.5 ms": launch_20(worker, 0.0005),
    "20 kernels of 0.5 ms, behind 100 ms of other work": launch_20(worker, 0.0005, 0.1),
}
guessed(
    "milliseconds between the two events",
    guess,
    traces["20 kernels of 0.5 ms"].clocks["events"],
    f"{'milliseconds':52}launched  ended  events",
    *(
        f"{name:52}{t.clocks['launched']:8.0f} {t.clocks['ended']:6.0f} {t.clocks['events']:7.0f}"
        for name, t in traces.items()
    ),
    "Who worked, who waited, and what each clock saw of it:",
    drawing=draw_queue(traces),
)

# %% [markdown]
# - **Long kernels.** Python runs ahead, then waits. The early stopwatch shows the launches, the events show the work.
# - **Short kernels.** Each has ended before the next one is launched. All three clocks show the launches. The events
#   include the time in which the worker had nothing to do. Such code is *launch-bound*: a faster kernel changes nothing.
# - **Behind other work.** When the worker gets to the short kernels, all of them are in the queue already. Now the
#   events show the work alone.
#
# So events show the work only while the queue is never empty. How do you see that code is launch-bound? It takes
# as long for half the data; or a profile shows gaps between the kernels (chapter 18); or "launched" is hardly less than "ended",
# without any sync. (The last counts for some hundred launches only. A GPU's queue holds about 1,000: when it is full,
# launching waits as well.) What helps is to launch less: larger operations, or a CUDA graph, which launches many kernels
# at once (in [`torch.compile`](https://docs.pytorch.org/docs/stable/generated/torch.compile.html),
# `mode="reduce-overhead"` makes one).

# %%
if torch.cuda.is_available():
    print("100 additions of      launched    ended   events")
    for numbers in (1000, 100_000_000):
        many = torch.rand(numbers, device="cuda")
        many + 1
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start = time.perf_counter()
        before.record()
        for _ in range(100):
            many + 1
        after.record()
        launched = time.perf_counter() - start
        torch.cuda.synchronize()
        ended = time.perf_counter() - start
        events = before.elapsed_time(after)
        print(f"{numbers:11,} numbers {launched * 1e3:9.2f} {ended * 1e3:8.2f} {events:8.2f}   ms")
else:
    print("No GPU here. With one, this cell shows the three clocks for small and for large additions on it.")

# %% [markdown]
# `compare` does all this by itself: on a GPU it warms up, waits until the device is idle, and uses events. So for
# small operations its figures are the price of launching, 7 to 15 µs for each on an H200. That is what your program
# pays, too, unless other work keeps the GPU busy meanwhile.

# %% [markdown]
# ## 3. Hidden synchronisation
#
# Some calls need a *value* on the Python side. On a GPU they must wait until the queue is empty. Such a point
# is called a sync. While Python waits, it launches nothing, and afterwards the GPU waits for Python.
#
# `costs` estimates, on any machine, how many syncs a function would have on a GPU: it counts the operations that
# ask for a value. Which of these lines have one?

# %%
values = torch.rand(1000)
lines = {
    "x.sum().item()": lambda x: x.sum().item(),
    "float(x.sum())": lambda x: float(x.sum()),
    "if x.sum() > 0: ...": lambda x: bool(x.sum() > 0),
    "x.tolist()": lambda x: x.tolist(),
    "x[x > 0.5]": lambda x: x[x > 0.5],
    "x.nonzero()": lambda x: x.nonzero(),
    "x[x.argmax()]": lambda x: x[x.argmax()],
    "torch.where(x > 0.5, x, 0)": lambda x: torch.where(x > 0.5, x, 0),
    "x.clamp(max=0.5)": lambda x: x.clamp(max=0.5),
    "torch.linalg.inv(…)": lambda x: torch.linalg.inv(x[:100].view(10, 10)),
}
for line, function in lines.items():
    print(f"{line:28}syncs: {costs(function, values).syncs}")

# %% [markdown]
# `item`, `float`, `if` and `tolist` need the numbers themselves. `x[x > 0.5]` and `nonzero` need to know how many there
# are, because somebody must allocate the result. `argmax` gives a tensor without dimensions, and such an index is read
# as a number. `where` and `clamp` have results of a known shape, so they need no answer.
#
# Another test that runs anywhere is the `meta` device. A meta tensor has a shape and a type, but no values. So code that
# asks for one cannot run there. Which of the two tests is stricter?

# %%
for line, function in lines.items():
    try:
        print(f"{line:28}runs: {function(values.to('meta')).shape}")
    except (RuntimeError, NotImplementedError) as error:
        print(f"{line:28}{type(error).__name__}")
print(torch.linalg.inv.__doc__.partition("note:: ")[2].partition(". ")[0])

# %% [markdown]
# Neither: both miss that `inv` waits on a GPU, and that a printed tensor is read (chapter 02 has more). They are
# estimates. The judge is a GPU, with `torch.cuda.set_sync_debug_mode("warn")`: it warns at most lines that wait, as
# chapter 02 shows at its end.
#
# We add up the sums of 100 rows. One way asks for each sum with `item`. The other adds tensors and asks once. How many
# times faster is the second, on the CPU, where nothing has to be waited for?

# %%
guess = ...


# %%
def ask_each_time(rows):
    total = 0.0
    for row in rows:
        total += row.sum().item()
    return total


def ask_once(rows):
    total = 0.0
    for row in rows:
        total = total + row.sum()
    return total.item()


def hundred_rows(generator, device):
    return list(torch.rand(100, 1000, generator=generator).to(device))


compare(
    "measuring: 100 sums with 100 syncs, or with one",
    {"100 syncs": ask_each_time, "one sync": ask_once},
    inputs=hundred_rows,
    guess=guess,
)
rows = list(torch.rand(100, 1000))
print(costs(ask_each_time, rows), costs(ask_once, rows), sep="\n\n")

# %% [markdown]
# **When it does not help.** On the CPU the advice "remove every `item`" makes this code *slower*. The CPU has nothing
# to wait for: the sum is done when the call returns. And adding two Python numbers is cheaper than adding two tensors.
# Removing syncs is advice for a GPU, where the queue must not run empty. On an H200 it gains a tenth here, and no more:
# probably because the loop is launch-bound, so the queue is nearly empty anyway.
# %% [markdown]
# ## 4. One timing is no timing
#
# Two functions run once each, and we note who is faster. We do that 200 times. But both
# functions are **the same function**. In how many of the 200 does one of them win by more than 10 %?

# %%
guess = ...

# %%
table = torch.rand(200, 200)


def work():
    return table @ table


def one_timing():
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def faster_by(a, b):
    return max(a, b) / min(a, b)


work()
duels = [(one_timing(), one_timing()) for _ in range(200)]
wrong = sum(faster_by(a, b) > 1.1 for a, b in duels)
a, b = sorted(max(duels, key=lambda duel: faster_by(*duel)))
guessed(
    "of 200, won by more than 10 % by one of two equal functions",
    guess,
    float(wrong),
    f"The clearest victory: {a * 1e6:.0f} µs against {b * 1e6:.0f} µs, {faster_by(a, b):.1f} times faster.",
)

# %% [markdown]
# The right answer is 0. Whoever looks at one timing of each, and finds the difference they hoped for, has
# measured luck.
#
# Where does it come from? The system interrupts. Other programs use the same core, cache and memory. The processor
# changes its frequency. Python and the allocator tidy up now and then. Most of these make a call slower.
#
# ### Two clocks
#
# `time.perf_counter` reads the clock on the wall. `time.process_time` reads how long processors worked for this
# program, all its threads together. It stands still while another program has the core, and while we wait.
#
# Four things to time, the last with `neighbours()`, who keep the processor busy. For which will the clocks differ?

# %%
threads = max(2, cores)
large = torch.rand(768, 768)


def on_both_clocks(function):
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


def products(number_of_threads):
    torch.set_num_threads(number_of_threads)
    for _ in range(5):
        large @ large
    torch.set_num_threads(1)


def show_clocks(name, function):
    function()
    wall, cpu = (median(column) for column in zip(*(on_both_clocks(function) for _ in range(3)), strict=True))
    print(f"{name:32} wall {wall * 1e3:7.1f} ms   CPU {cpu * 1e3:7.1f} ms")


show_clocks("sleep", lambda: time.sleep(0.05))
show_clocks("5 products, 1 thread", lambda: products(1))
show_clocks(f"5 products, {threads} threads", lambda: products(threads))
print(inspect.getsource(neighbours))
with neighbours():
    show_clocks("5 products, 1 thread, neighbours", lambda: products(1))

# %% [markdown]
# - **Sleep**: waiting for a disk or a network looks the same. (Waiting for a GPU may not: a driver that asks again and
#   again whether it is done uses CPU time.)
# - **Neighbours**: the wall time grows with what others do. The CPU time stays near the quiet one. Where the clocks
#   of one thread differ without `neighbours()`, the machine had other work, too.
# - **Several threads**: at best, with a free core for each, the wall time is divided by their number. Where a core is
#   not free, little is gained, or nothing. The CPU time stays: the work is the same.
#
# *How long must I wait?* is the wall. *How much work is it?* is the CPU clock. On the CPU, `compare` (and `race`, which
# times the answers to the exercises) uses one thread and the CPU clock, because we ask about your code and not about
# your neighbours. Where threads are the subject, the wall clock is used, and the text says so.
#
# ### Pairs
#
# The machine changes while we measure. Suppose we time one function ten times, and then the other ten times.
# Meanwhile, somebody starts a program. Both functions are the same. What ratio do we find on the wall clock?

# %%
guess = ...


# %%
def block(calls=20):
    """Some calls, on both clocks: seconds per call."""
    wall, cpu = on_both_clocks(lambda: [work() for _ in range(calls)])
    return wall / calls, cpu / calls


first_side = [block(100)[0] for _ in range(10)]
with neighbours():
    second_side = [block(100)[0] for _ in range(10)]
before_and_after = median(second_side) / median(first_side)
guessed("the same function, ten times after / ten times before", guess, before_and_after)

# %% [markdown]
# More timings do not help here: every timing of one side is quiet, every timing of the other is disturbed. (Where
# there are more free cores than neighbours, the ratio stays near 1.) It helps to take turns: A, B, B, A, B, A, …
# Then a change of the machine meets both.
#
# Four words that all chapters use:
#
# - A **block** is a number of calls timed together, 2 ms or more. The clock's own steps and costs vanish in it.
# - A **pair** is one block of each side, one right after the other, in random order.
# - A **ratio** is A's time divided by B's *within a pair*. Both had the same machine for that moment. From many
#   pairs we take the median: how far away a disturbed pair lies does not count.
# - An **interval** tells how sure we are (below).
#
# The CPU clock does not see who has the core meanwhile. So why pairs? Because some changes reach it as well: another
# frequency, a cache or a memory bus that others fill. Here is one. 60 blocks of one function are timed on the CPU clock.
# After 30 of them, neighbours come who copy memory without a pause. First we call the first 30 blocks A and the others
# B. Then we take the same 60 timings in turn: A, B, A, B, …

# %%
source, target = torch.ones(2_000_000), torch.empty(2_000_000)
copy_block = lambda: on_both_clocks(lambda: target.copy_(source).add_(source))[1]
blocks = [copy_block() for _ in range(31)][1:]
with neighbours(copying=True):
    blocks += [copy_block() for _ in range(30)]
print(f"30 A, then 30 B:  B / A = {median(blocks[30:]) / median(blocks[:30]):.2f}×")
in_turn = [b / a for a, b in zip(blocks[::2], blocks[1::2], strict=True)]
print(f"A and B in turn:  B / A = {median(in_turn):.2f}×, the median of {len(in_turn)} pairs")
copy_or_compute = lambda: median(copy_block() / block()[1] for _ in range(15))
quiet = copy_or_compute()
with neighbours(copying=True):
    print(f"copying / computing, in pairs: quiet {quiet:.1f}×, beside who copies {copy_or_compute():.1f}×")

# %% [markdown]
# The last line is another thing. Two functions meet the same neighbours, and one of them waits for memory. So a ratio,
# too, is that of a machine in a state. And of a *process*: where its memory lies, is decided anew in the next one. So
# `make record`, which writes what the course publishes, measures in five; what rests on one process says so.
#
# Back to neighbours who compute: 31 pairs, one dot for a block.

# %%
with neighbours():
    pairs = [(block(), block()) for _ in range(31)]
picture(*draw_pairs(pairs))

# %% [markdown]
# Left: times that jump. Right: the sorted ratios, on each clock. The median does not care *how* far away the others
# are. But where nearly all pairs are disturbed, as on this wall clock, it may itself lie off 1. Pairs do not replace the
# right clock.
#
# ### The interval
#
# Sort the ratios of 15 pairs. Where is the true median ratio? Each pair lands above it or below it, like a coin
# with heads and tails. So the question becomes: how likely is it that at most 3 of 15 coins show heads?

# %%
at_most_3 = sum(math.comb(15, heads) for heads in range(4)) / 2**15
at_most_4 = sum(math.comb(15, heads) for heads in range(5)) / 2**15
print(f"at most 3 of 15: {at_most_3:.2%}, at most 4 of 15: {at_most_4:.2%}")
assert 2 * at_most_3 <= 0.05 < 2 * at_most_4

# %% [markdown]
# If the truth lies below the 4th smallest ratio, at most 3 pairs were below it: 1.8 %. The same holds on the
# other side. So from the 4th smallest to the 4th largest ratio is an interval that misses the truth in 3.5 % of
# all experiments. Leaving out 4 on each side would miss it in more than 5 %. This **95 % interval** needs no
# bell curve, which is good, because timings have none. Further tests it.
#
# With 5 pairs or fewer there is no such interval: all five on one side happens in 2 · 1/32, more than 5 %.
# `compare` takes 7 pairs or more, and up to 101.

# %% [markdown]
# ## 5. What the tables and charts mean
#
# Now the real `compare`, with the same function on both sides. Which ratio will it show, to three digits?

# %%
guess = ...

# %%
null_test = compare(
    "measuring: the same function twice",
    {"one": lambda x: x @ x, "the same": lambda x: x @ x},
    inputs=(200, 200),
    guess=guess,
)

# %% [markdown]
# - **device** names the processor. **variant** names the function; the first one is the baseline.
# - **median time** is for one call: CPU seconds of one thread, or event seconds on a GPU.
# - **times faster** is the median ratio of the pairs, first variant divided by this one. It need not be exactly
#   the ratio of the two median times.
# - **95 % interval**: if it contains 1 (the table rounds), we saw no difference. That is no proof that there is none.
#   One interval in twenty may miss the truth, and it knows nothing of other processes and machines (section 4). So do
#   not believe in a few percent.
# - In the chart, the thin black line is the interval, and the dashed line is your guess. The axis is
#   logarithmic: twice as fast and half as fast lie equally far from 1.
# - Lines marked *recorded* come from other machines, with date, versions and the number of processes. With several,
#   the interval reaches from the least of their ratios to the most: of five, that is one of 94 %. *Outside what was
#   recorded*: your whole interval lies beyond those of all such machines.
# - A claim of speed *holds* in a comparison if the whole interval is 1.1 or more (or what the claim itself promises).
#   Where comparisons disagree, they must name the condition that parts them, and the claim **holds when …**.

# %%
ratio, pairs_taken = null_test.ratio(), len(null_test.samples["cpu"].blocks["one"])
print(f"{pairs_taken} pairs, ratio {ratio.median:.3f}, interval {ratio.low:.3f} to {ratio.high:.3f}")
assert 7 <= pairs_taken <= 101

# %% [markdown]
# ### The right inputs
#
# A perfect stopwatch on the wrong data is wrong. We sort 100,000 numbers. In one variant they are random, in the
# other they are sorted already. What is the ratio?

# %%
guess = ...


# %%
def random_and_sorted(generator, device):
    numbers = torch.rand(100_000, generator=generator).to(device)
    return numbers, numbers.sort().values


compare(
    "measuring: sorting random numbers, or sorted ones",
    {"random": lambda numbers, ordered: numbers.sort(), "sorted": lambda numbers, ordered: ordered.sort()},
    inputs=random_and_sorted,
    guess=guess,
    differ="sort also says where each number was",
)

# %% [markdown]
# On the CPU the values matter; on an H200 both sorts take the same time. So use inputs like those you will have.
# `inputs` is a function that makes them, or a shape: then they are random numbers from 0 to 1. Without it, a variant is
# given the device. `compare` makes inputs anew for every block, and both sides of a pair get equal values. It refuses
# variants with different results, unless `differ=` says why.

# %% [markdown]
# ## 6. Predict what it should take
#
# To know whether a time is long, you need one to compare it with. It follows from what was asked for.
#
# `costs` counts what a function asks of torch: operations, memory, copies, syncs. The numbers have no noise: they are
# the same at every call, however busy the machine is.
#
# The length of a vector, written in two ways:


# %%
def by_hand(x):
    return (x * x).sum().sqrt()


vector = torch.rand(10)
print(costs(by_hand, vector), costs(torch.linalg.vector_norm, vector), sep="\n\n")

# %% [markdown]
# Three operations against one. How many times faster is the second, for 10 numbers?

# %%
guess = ...

# %%
compare(
    "measuring: the length of a vector of 10 numbers",
    {"by hand": by_hand, "vector_norm": torch.linalg.vector_norm},
    inputs=10,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** With 10 numbers the arithmetic is nothing. Each operation costs a microsecond or a few (on an H200 about ten,
# with the launch): Python calls torch, torch looks at types and devices, picks a kernel and makes a tensor for the
# result. The *count of operations* is the cost model: the line under the table counts, times the price of a call on
# this machine. (It leaves out Python's own work, new memory, and the order of bytes. Where it is off by more than 1.5,
# it says that it lacks something.)
#
# With many numbers the model changes. Then count **bytes**. For 4 million numbers (16 MB):

# %%
x = torch.rand(4_000_000)
print(costs(by_hand, x), costs(torch.linalg.vector_norm, x), sep="\n\n")

# %% [markdown]
# By hand, `x * x` reads 16 MB and writes 16 MB of new memory, and `sum` reads them again: 48 MB. `vector_norm`
# reads 16 MB. So 48 to 16: if bytes were all, `vector_norm` would be 3 times faster than *by hand*. How many times is it
# really? (A third way writes the products to memory that is in use.)

# %%
guess = ...


# %%
def by_hand_into(products, x):
    return torch.mul(x, x, out=products).sum().sqrt()


def numbers_and_memory(generator, device):
    numbers = torch.rand(4_000_000, generator=generator).to(device)
    return numbers, torch.ones_like(numbers)


lengths = compare(
    "measuring: the length of 4,000,000 numbers, in new memory or not",
    {
        "by hand": lambda x, products: by_hand(x),
        "by hand, memory in use": lambda x, products: by_hand_into(products, x),
        "vector_norm": lambda x, products: torch.linalg.vector_norm(x),
    },
    inputs=numbers_and_memory,
    guess=guess,
    bytes=16e6,
    because="prices",
)

# %%
show_faults(lengths)
taken = lengths.samples["cpu"].seconds
used, norm = (median(taken(name)) for name in ("by hand, memory in use", "vector_norm"))
print(f"by hand, memory in use / vector_norm: {used / norm:.1f}×")
pairs = [(on_both_clocks(x.norm)[1], on_both_clocks(x.sum)[1]) for _ in range(51)]
print(f"vector_norm / x.sum(), which reads the same bytes: {median(a / b for a, b in pairs):.1f}×")

# %% [markdown]
# **Why not 3?** The prediction knows the bytes, in a cache or not, and no more. But `vector_norm` is more than bytes:
# `x.sum()` reads the same 16 MB in less time, and the *limit* is far off. And new memory costs page faults, as in
# section 1: up to 3,906, at 4 kB a page, unless the allocator keeps it. On an H200 you still pay for launches.
#
# This is how every chapter goes on from a figure: **predict** it, **name the cause** of what is left, here the new
# memory, and **take it away**, here with memory in use. The whole routine is in the summary.
#
# ### Fewer operations
#
# Training programs often keep a moving average of all weights. Here are 200 small tensors and their new values; each
# average goes a tenth of the way (`lerp`). That takes 200 operations, or one, if all tensors are joined: in each call, or
# once for all, when they are made, as views of one buffer. How many times faster is the last?

# %%
guess = ...


# %%
def one_by_one(averages, values, average, value):
    for one, other in zip(averages, values, strict=True):
        one.lerp_(other, 0.1)
    return average


def joined_anew(averages, values, average, value):
    old, new = (torch.cat([tensor.view(-1) for tensor in tensors]) for tensors in (averages, values))
    return old.lerp_(new, 0.1)


def kept_joined(averages, values, average, value):
    return average.lerp_(value, 0.1)


def weights_and_values(generator, device):
    sizes = [n * n for n in torch.randint(1, 9, (200,), generator=generator).tolist()]
    buffers = torch.rand(2, sum(sizes), generator=generator).to(device).unbind()
    return *(list(buffer.split(sizes)) for buffer in buffers), *buffers


ways = {"one by one": one_by_one, "joined in each call": joined_anew, "kept joined": kept_joined}
compare(
    "measuring: 200 moving averages, one by one or joined",
    ways,
    inputs=weights_and_values,
    guess=guess,
    because="prices",
)
small_tensors = weights_and_values(torch.Generator(), "cpu")
print(*(costs(way, *small_tensors) for way in ways.values()), sep="\n\n")

# %% [markdown]
# **Why.** 200 calls against one. A **view** shares memory with its tensor, so it moves no data, but it is made by a
# call: joining anew makes 400 of them for three operations. (On an H200 that was 1.4 times as fast as one by one: a
# launch costs more than a view.) So join where it is paid once, as chapter 18 does with a model's parameters.
#
# ### The limit of the machine
#
# The table for 4,000,000 numbers has one more line: the **limit**. The course measures once how many bytes a second one
# thread of this machine moves, for small amounts (which stay in a cache and move faster) and large ones, and how many
# operations a second it computes. From `bytes=` or `flops=` of one call it draws the least time for so many. Code on
# more threads, or in fewer bits, can be below that line. (A GPU's operations may be TF32: fewer digits, see chapter 05.)
#
# The limit answers a question that no comparison of two variants can: *is there anything left to gain?* No more than
# the time of your best variant divided by the limit. That is a bound and no promise: such code may not exist.
#
# The second kind of limit is arithmetic. A product of two *n* × *n* matrices takes *n*³ multiplications and nearly as
# many additions: 2 *n*³ floating-point operations ("flops"). `@` is faster than broadcasting. What does it save, most of
# all: `"calls"`, `"bytes"` or `"arithmetic"`?

# %%
guess = ...

# %%
n = 128


def two_matrices(generator, device):
    return tuple(torch.rand(2, n, n, generator=generator).to(device))


compare(
    "measuring: a product of 128 × 128, by broadcasting or @",
    {
        "broadcast": lambda a, b: (a[:, :, None] * b).sum(dim=1),
        "a @ b": lambda a, b: a @ b,
    },
    inputs=two_matrices,
    guess=guess,
    flops=2 * n**3,
    because="prices",
)

# %% [markdown]
# **Why.** Both do the same arithmetic. The first writes all *n*³ products to memory and reads them again: 8 MB each
# way, so bytes are its price. `@` keeps its numbers in registers and cache, and comes near the limit. (On an H200 both
# stay far from it: these products are too small to be more than launches.) Close to the limit, stop: only computing
# less, or with fewer bits, is faster. What the prices lack here, this course has not found.
#
# A limit is only as good as its rates, which were measured here, with some noise: read "within 20 % of it" as "at it".

# %% [markdown]
# ## Further
#
# You can skip this part. It is for those who want to see the interval tested, and PyTorch's own stopwatch.
#
# ### Does the interval keep its promise?
#
# Here are 10,000 made-up experiments with a true ratio of 2 and ugly noise: one block in seven is disturbed and takes
# up to five times as long.

# %%
generator = torch.Generator().manual_seed(0)


def noise():
    small = torch.exp(0.05 * torch.randn(10_000, 15, generator=generator))
    disturbed = torch.rand(10_000, 15, generator=generator) < 1 / 7
    return small * (1 + 4 * disturbed * torch.rand(10_000, 15, generator=generator))


slow, fast = 2 * noise(), noise()
sorted_ratios = (slow / fast).sort(dim=1).values
inside = ((sorted_ratios[:, 3] <= 2) & (sorted_ratios[:, -4] >= 2)).float().mean().item()
print(f"The interval holds the true ratio in {inside:.1%} of the experiments.")

ways = {
    "median of ratios": sorted_ratios[:, 7],
    "ratio of medians": slow.median(dim=1).values / fast.median(dim=1).values,
    "ratio of means": slow.mean(dim=1) / fast.mean(dim=1),
}
for name, result in ways.items():
    far = ((result / 2).log().abs() > math.log(1.1)).float().mean().item()
    print(f"{name:17} more than 10 % off in {far:6.1%}")
assert inside >= 0.95

# %% [markdown]
# The interval keeps its promise. And the usual way, to average each side and divide, is far off much more often, from
# the same timings. (Two medians are as good here, where nothing changes half way; section 4 has the other case.)
#
# ### `torch.utils.benchmark`
#
# Torch has [a stopwatch of its own](https://docs.pytorch.org/docs/stable/benchmark_utils.html). It warms up, waits for
# the GPU, uses one thread unless you say otherwise, and chooses the number of calls in a block.

# %%
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # looks for a compiler we do not need
from torch.utils import benchmark

timer = benchmark.Timer("x @ x", globals={"x": torch.rand(200, 200)})
quiet = timer.blocked_autorange(min_run_time=0.5)
print(f"{len(quiet.times)} blocks of {quiet.number_per_run} calls, {quiet.num_threads} thread")
print(f"median {quiet.median * 1e6:.1f} µs, quartiles {quiet.iqr * 1e6:.1f} µs apart")
assert quiet.num_threads == 1

# %% [markdown]
# It is the right tool for "how long does this take?". For "which of two is faster?" it has two weaknesses: it reads
# the wall clock, and it finishes one statement before it begins the next. Once more the same statement, and neighbours
# who come in between:

# %%
with neighbours():
    busy = timer.blocked_autorange(min_run_time=0.5)
print(
    f"quiet {quiet.median * 1e6:.1f} µs, busy {busy.median * 1e6:.1f} µs: {busy.median / quiet.median:.2f}×"
)
print("It notices that something is wrong:", busy.has_warnings)

# %% [markdown]
# Whether it warns depends on the spread of the blocks. A change that meets all blocks alike goes unnoticed.

# %% [markdown]
# ## Summary
#
# | the stopwatch lies because | so |
# |---|---|
# | the first call loads, starts and allocates | warm up, unless the first call is your subject |
# | the call returns before the work is done | synchronize before start and stop, or use events |
# | launching takes longer than the work | more work for each launch, or fewer launches; compare half the data |
# | a single timing is luck | blocks of 2 ms and more, many of them |
# | the machine changes meanwhile | pairs in random order, ratio within the pair, median |
# | other programs take the core | CPU clock for "how much work", wall clock for "how long must I wait" |
# | the next process has its memory elsewhere | five processes, for a figure that others shall rely on |
# | the inputs are too kind | fresh inputs like those you will have |
#
# **The routine.** Something is too slow. Then, in this order:
#
# 1. **Measure the whole**, with inputs as you will have them: `compare`.
# 2. **Name the largest part**: `torch.profiler` ([chapter 18](18_launch_overhead.ipynb), section 6). No other part is
#    worth your time now.
# 3. **Predict** what it should take, from calls, bytes and flops: `costs`, a price for each, and the limit.
# 4. **Name the cause** of the difference to what it takes: page faults, a copy, a sync, jumps in memory, Python.
# 5. **Take it away**, and nothing else. If the time stays, it was not the cause: back to 4.
# 6. **Verify**: the same result, and the whole again, in pairs. Then again from 2, or stop at the limit.
#
# Chapter 14 does all of it with one script. The chapters between say what the causes are, and how each is taken away.

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/00_measuring/00_measuring.ipynb). Find the price of a call
# and of a block, count before you run, step without a sync, follow a queue, and build a stopwatch that can be trusted.
