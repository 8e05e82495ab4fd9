# %% [markdown]
# # 01 · Creating tensors
#
# Every program starts by making tensors. The same tensor can cost microseconds or many milliseconds.
#
# IDs such as *A1* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, `costs`
# and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - choose the cheapest way into a tensor from a Python list, a NumPy array or nothing at all,
# - say when two objects share memory, and use that or avoid it,
# - tell a real saving from one that only moves the cost somewhere else,
# - collect rows whose number nobody knows beforehand.
#
# **Time:** 40 minutes to read and run; 10 more for the part *Further*, which can be skipped. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *A1* "create tensors directly in torch, not from Python lists or NumPy"; *A3* "use
# `from_numpy` and `as_tensor` instead of `torch.tensor`, which copies"; *C2* "use the `*_like` functions".
# Some of them hold under a condition only.

# %%
import os
import subprocess
import sys
import warnings
from statistics import median

import numpy as np
import torch

from autograder import article_code, behaviour, compare, costs, devices, guessed, recall, verdicts, without

print("devices here:", *devices())
recall("01", ..., ..., ...)

# %% [markdown]
# ## 1. From a Python list
#
# You need 100,000 numbers, all 0.5. One way builds a Python list and converts it. The other asks torch
# directly. How many times faster is the second? (Here and in all such questions, below 1 means slower.)

# %%
guess = ...


# %%
def full(device):
    return torch.full((100_000,), 0.5, device=device)


array = np.full(100_000, 0.5, dtype=np.float32)  # the same numbers, and no objects
from_array = {"torch.tensor(array)": lambda device: torch.tensor(array, device=device), "torch.full": full}
compare(
    "100,000 equal numbers",
    {
        "torch.tensor(list)": lambda device: torch.tensor([0.5] * 100_000, device=device),
        "torch.full": full,
    },
    guess=guess,
    claim="A1",
    because=without("a list of objects", variants=from_array),
)

# %% [markdown]
# **Why.** The result is the same 400 kB. But a Python list does not hold numbers. It holds pointers to objects, and
# torch has to follow every pointer, ask the object what it is, and convert it. (NumPy has to do that, too, and is
# quicker at it: section 2.) From an array, which has the bare numbers, `torch.tensor` is nearly as fast as
# `torch.full`, which writes 4 bytes for each.
#
# Can we see it in what torch counts?

# %%
numbers = [0.5] * 100_000
print("from a list", costs(torch.tensor, numbers), sep="\n", end="\n\n")
print("torch.full", costs(torch.full, (100_000,), 0.5), sep="\n")

# %% [markdown]
# We cannot. Both allocate 400 kB, and the list needs no torch operation at all. (The view is `lift_fresh`, with which
# torch hands over a tensor made of Python's data; it moves nothing.) The list is read before the first operation, where
# nothing is counted. So you need both: to count, and to measure.
#
# Torch has a function for every regular pattern, and for random numbers. These eight are the article's:

# %%
print(torch.zeros(3), torch.ones(3), torch.full((3,), 7.0))
print(torch.eye(2))
print(torch.rand(2), torch.randn(2), torch.randint(10, (2,)))
print(torch.empty(2).shape, "with whatever the memory held before")
print("and two more:", torch.arange(0, 10, 2), torch.linspace(0, 1, 5))
article_code(
    "A1",
    "empty, zeros, full, ones, eye, randint, rand and randn",
    lambda: [
        *(make((2, 3)) for make in (torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn)),
        torch.full((2, 3), 7.0),
        torch.eye(2, 3),
        torch.randint(10, (2, 3)),
    ],
    right=lambda made: all(tensor.shape == (2, 3) for tensor in made),
)

# %% [markdown]
# Patterns can be combined: a column compared with a row gives a table. A column of three and a row of four make twelve
# places: what is done to the column is done three times, what is done to the table twelve times.

# %%
print((torch.arange(3)[:, None] >= torch.arange(4)).int())

# %% [markdown]
# One thing to watch: the type. A list of integers gives `int64`, a list with one float in it gives the default float
# type. And `float32` keeps about seven digits of a number, however large it is:

# %%
assert torch.tensor([1, 2, 3]).dtype == torch.int64
assert torch.tensor([1, 2, 3.0]).dtype == torch.float32 == torch.get_default_dtype()
assert torch.arange(3).dtype == torch.int64
assert torch.arange(3.0).dtype == torch.float32
assert torch.full((3,), 1).dtype == torch.int64

large = torch.tensor(30_000.0)
step = torch.nextafter(large, torch.tensor(torch.inf)) - large
print(f"the next float32 after 30,000 is 30,000 + {step.item():.4f}")

# %% [markdown]
# ## 2. The list is already there
#
# Sometimes you are given a list: numbers from a JSON file, say. There is nothing to create directly, so *A1* is
# no help. Somebody must read the list. Should that be torch, or is a detour through NumPy worth it?
#
# How many times faster is the direct way?

# %%
guess = ...


# %%
def list_of_floats(generator, device):
    return torch.rand(100_000, generator=generator).tolist()


compare(
    "a given list of 100,000 floats",
    {
        "through NumPy": lambda values: torch.from_numpy(np.array(values, dtype=np.float32)),
        "torch.tensor(list)": lambda values: torch.tensor(values),
    },
    inputs=list_of_floats,
    guess=guess,
    only="cpu",
)

# %% [markdown]
# NumPy reads a long list several times faster than torch does, and handing its array to torch is nearly free.
#
# What about a list of *arrays*? Torch itself has something to say:

# %%
arrays = [np.full((64, 64), i, dtype=np.float32) for i in range(20)]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.tensor(arrays)
print(str(caught[0].message).split(" (")[0] if caught else "no warning from this version of torch")

# %% [markdown]
# How many times faster is `np.stack`, which makes one array of the 20, and then `torch.from_numpy`?

# %%
guess = ...


# %%
def np_stack(arrays):
    return torch.from_numpy(np.stack(arrays))


def stacked_first(arrays):
    return torch.tensor(np.stack(arrays))


def twenty_arrays(generator, device):
    return list(torch.rand(20, 64, 64, generator=generator).numpy())


compare(
    "20 arrays of 64 × 64",
    {"torch.tensor(list of arrays)": torch.tensor, "from_numpy(np.stack)": np_stack},
    inputs=twenty_arrays,
    guess=guess,
    only="cpu",
    because=without("many arrays", variants={"torch.tensor(array)": stacked_first, "np.stack": np_stack}),
)

# %% [markdown]
# **Why.** `torch.tensor` walks through the arrays number by number, as if they were lists. `np.stack` copies whole
# arrays. Give `torch.tensor` one array, and next to nothing of the difference is left.

# %% [markdown]
# ## 3. From a NumPy array
#
# `torch.tensor(array)` copies the array. `torch.from_numpy(array)` makes a tensor that uses the array's own
# memory. The array has a million `float32`. How many times faster is the second?

# %%
guess = ...


# %%
def array_of(size, dtype=torch.float32):
    def inputs(generator, device):
        return torch.rand(size, generator=generator, dtype=dtype).numpy()

    return inputs


compare(
    "a NumPy array of 1,000,000 float32",
    {"torch.tensor": torch.tensor, "torch.from_numpy": torch.from_numpy},
    inputs=array_of(1_000_000),
    guess=guess,
    claim="A3",
    only="cpu",
    bytes=8e6,
    because="prices",
)

# %% [markdown]
# **Why.** Here the count tells the story, and predicts it: 4 MB of new memory and a copy, against nothing. (Measured may
# be more: a byte has the best price that was seen, and a copy into new memory is slower, even without page faults.)

# %%
array = np.zeros(1_000_000, dtype=np.float32)
print(costs(torch.tensor, array), end="\n\n")
print(costs(torch.from_numpy, array))

# %% [markdown]
# A copy reads 4 MB and writes 4 MB. The line *limit* says how long this machine needs at least to move 8 MB: the
# course has measured how fast it moves memory. `torch.tensor` is not many times slower than that, so there is
# little to mend in *how* it copies. `from_numpy` beats the limit because it does not copy. It makes a small object
# that points to the array, whatever its size.
#
# `torch.as_tensor` shares memory too, where it can. It also takes lists (and copies them), and converts types
# (and copies then).

# %%
array = np.zeros(4, dtype=np.float32)
assert torch.as_tensor(array).data_ptr() == torch.from_numpy(array).data_ptr() == array.ctypes.data
assert torch.tensor(array).data_ptr() != array.ctypes.data
assert torch.as_tensor(array, dtype=torch.float64).data_ptr() != array.ctypes.data
article_code(
    "A3",
    "torch.from_numpy(numpy_array) and torch.as_tensor(others)",
    lambda: (torch.from_numpy(array), torch.as_tensor([0.0, 0.0])),
    right=lambda made: made[0].data_ptr() == array.ctypes.data and made[1].tolist() == [0.0, 0.0],
)

# %% [markdown]
# ### Who sees the change?
#
# An array holds 1, 2 and 3. We make two tensors of it. Then we write 100 into the array's first place, and 200 into the
# second place of the tensor that shares its memory. What is the sum of that tensor now?

# %%
guess = ...

# %%
array = np.array([1.0, 2.0, 3.0])
shared, copied = torch.from_numpy(array), torch.tensor(array)
array[0] = 100.0
shared[1] = 200.0
assert shared.tolist() == array.tolist() and (shared != copied).tolist() == [True, True, False]
guessed(
    "the sum of the tensor that shares",
    guess,
    int(shared.sum()),
    f"array:  {array.tolist()}",
    f"shared: {shared.tolist()}, sum {shared.sum():g}",
    f"copied: {copied.tolist()}, sum {copied.sum():g}",
)

# %% [markdown]
# Sharing cuts both ways. If somebody else may still change the array, the copy is what you want. It is not slow
# code, it is a decision. (`Tensor.numpy()` shares in the other direction, with the same consequences.)
#
# Not every array can be shared. A read-only one gives a warning, because torch would let you write to it. One
# with negative strides, such as a reversed view, is refused, and so is one in the byte order of other machines.

# %%
read_only = np.arange(3.0)
read_only.flags.writeable = False
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.from_numpy(read_only)
print(
    "read-only:", str(caught[0].message).split(",")[0] if caught else "no warning (it comes once a session)"
)

swapped = np.arange(3.0).astype(np.dtype(np.float64).newbyteorder())
for name, array in {"reversed": np.arange(3.0)[::-1], "byte order": swapped}.items():
    try:
        torch.from_numpy(array)
        raise AssertionError(name)
    except ValueError as error:
        print(f"{name}:", str(error).split(".")[0])

# %% [markdown]
# `array.copy()` mends the first two: the copy is writable and its strides are positive. The third takes a
# conversion: `array.astype(np.float64)`.
#
# ### Another type
#
# Your array is `float64`, your model wants `float32`. How many times faster than `torch.tensor` with `dtype=` is
# sharing first and converting then?

# %%
guess = ...

# %%
compare(
    "a NumPy array of 300,000 float64, wanted as float32",
    {
        "torch.tensor(dtype=)": lambda array: torch.tensor(array, dtype=torch.float32),
        "from_numpy().float()": lambda array: torch.from_numpy(array).float(),
    },
    inputs=array_of(300_000, torch.float64),
    guess=guess,
    claim="A3",
    only="cpu",
)

# %% [markdown]
# Here it does not help: each way reads 2.4 MB and writes 1.2 MB once. Sharing saves a copy only where there was one to save.

# %% [markdown]
# ## 4. Random numbers: who is faster?
#
# "Create directly in torch, not from NumPy." We fill a million `float32` with uniform random numbers. NumPy's
# current generator is `np.random.default_rng()`. How many times faster is torch?

# %%
guess = ...
random_numbers = np.random.default_rng()
assert type(random_numbers.bit_generator).__name__ == "PCG64"

# %%
compare(
    "1,000,000 uniform random numbers",
    {
        "NumPy": lambda device: torch.from_numpy(random_numbers.random(1_000_000, dtype=np.float32)).to(
            device
        ),
        "torch.rand": lambda device: torch.rand(1_000_000, device=device),
    },
    guess=guess,
    claim="A1",
    differ="random numbers",
    only="cpu",
)

# %% [markdown]
# Another generator is at work: NumPy's is PCG64, torch's on a CPU a Mersenne Twister. So NumPy's numbers do not follow
# `torch.manual_seed`, either.
#
# And normally distributed numbers? How many times faster is torch there?

# %%
guess = ...

# %%
compare(
    "1,000,000 normally distributed numbers",
    {
        "NumPy": lambda device: torch.from_numpy(
            random_numbers.standard_normal(1_000_000, dtype=np.float32)
        ).to(device),
        "torch.randn": lambda device: torch.randn(1_000_000, device=device),
    },
    guess=guess,
    claim="A1",
    differ="random numbers",
)

# %% [markdown]
# Now it is the other way round. (Torch makes these several at once, with vector instructions, where the processor has
# them.) So *A1* has a condition on the CPU: it depends on what you create. For a GPU there is another reason:
# `torch.randn` makes the numbers there, a thousand times as fast on an H200. NumPy's are made on the CPU, and must travel.

# %% [markdown]
# ## 5. Ten million zeros
#
# The same 40 MB of zeros, NumPy's way against torch's. How many times faster is NumPy's?

# %%
guess = ...

# %%
compare(
    "10,000,000 zeros",
    {
        "torch.zeros": lambda device: torch.zeros(10_000_000),
        "from_numpy(np.zeros)": lambda device: torch.from_numpy(np.zeros(10_000_000, dtype=np.float32)),
    },
    guess=guess,
    only="cpu",
    because="prices",
)

# %% [markdown]
# **Why.** Too good to be true. Divide 40 MB by NumPy's time: no CPU's memory is so fast. NumPy cannot have written
# anything, and the prediction, which lets it write nothing, comes near. What happens if we use the zeros once, by
# adding 1 to them? How many times faster is torch then?

# %%
guess = ...

# %%
used = compare(
    "10,000,000 zeros and their first use",
    {
        "from_numpy(np.zeros)": lambda device: torch.from_numpy(np.zeros(10_000_000, dtype=np.float32)).add_(
            1
        ),
        "torch.zeros": lambda device: torch.zeros(10_000_000).add_(1),
    },
    guess=guess,
    claim="A1",
    only="cpu",
    because="page faults",
)
for name, blocks in used.samples["cpu"].blocks.items():
    print(f"{name}: {median(block.faults / block.calls for block in blocks):,.0f} page faults for each call")

# %% [markdown]
# Of the factor of a thousand a small one is left. `np.zeros` asks the operating system for pages that are promised to be
# zero. The system finds the memory when somebody first touches a page, and clears it then (a *page fault*). That cost
# had only moved to the next line, outside the stopwatch.
#
# **Why.** What is left is a real gain. `torch.zeros` writes zeros to pages that the system has just cleared. And look
# at the faults: for large arrays NumPy asks Linux for pages of 2 MB, torch takes the usual ones of 4 kB. In memory in
# use, both must write their zeros, and most of the gain is gone. (Linux need not obey: in large pages alone, 40 MB would be 20
# faults. *Further* shows how torch gets large ones, too.)
#
# Remember it when a measurement looks too good: **time the work together with its first use.**

# %% [markdown]
# ## 6. `empty`, and the `*_like` family
#
# `torch.empty` reserves memory and writes nothing. It helps where every element is overwritten anyway. The price is
# trust: forget one element, and it holds whatever was in that memory. Perhaps that is the sevens that we throw away
# here; perhaps torch gets another piece of memory, with something older in it. `zeros` is the safe default.

# %%
before = torch.full((1000,), 7.0)
del before
print("an empty tensor, just after one of sevens was thrown away:", torch.empty(1000)[500:503].tolist())

# %% [markdown]
# The `*_like` functions make a tensor with the shape, dtype, device and memory order of another one.

# %%
images = torch.rand(8, 3, 32, 32, dtype=torch.float64).to(memory_format=torch.channels_last)
like = torch.zeros_like(images)
assert (like.shape, like.dtype, like.device) == (images.shape, images.dtype, images.device)
assert like.stride() == images.stride() != torch.zeros(8, 3, 32, 32).stride()
assert torch.zeros_like(images.requires_grad_()).requires_grad is False

# %% [markdown]
# `new_zeros`, `new_full` and `new_tensor` take dtype and device from a tensor, but have a shape of their own.

# %%
row = images.new_zeros(5)
assert row.dtype == torch.float64 and row.shape == (5,)

# %% [markdown]
# The advice is to use them instead of creating a tensor and moving it. The example is `float64`. How many times
# faster is `zeros_like` than creating zeros and converting them?

# %%
guess = ...


# %%
def right_at_once(example):
    return torch.zeros(example.shape, dtype=example.dtype, device=example.device)


def million_float64(generator, device):
    return torch.ones(1_000_000, dtype=torch.float64, device=device)


compare(
    "zeros like a million float64",
    {
        "zeros, then .to": lambda example: torch.zeros(example.shape).to(example.device).to(example.dtype),
        "zeros_like": torch.zeros_like,
    },
    inputs=million_float64,
    guess=guess,
    because=without("the conversion", variants={"zeros": right_at_once, "zeros_like": torch.zeros_like}),
)

# %% [markdown]
# **Why.** Creating and converting makes one tensor too many; without the conversion little is left. (On an H200
# `zeros_like` is 75 times as fast: the other zeros are made on the CPU, and travel.) `zeros_like` saves you from the
# wrong dtype or device. So *C2* is judged below by what the new tensor takes over, not by time. Two of the family
# refuse integers; `full_like` cuts 0.5 down to 0 without a word:

# %%
integers = torch.tensor([1, 2, 3])
for name, call in {
    "rand_like": lambda: torch.rand_like(integers),
    "randn_like": lambda: torch.randn_like(integers),
    "full_like with 0.5": lambda: torch.full_like(integers, 0.5),
}.items():
    try:
        print(f"{name} of int64 gives {call().tolist()}")
    except (RuntimeError, NotImplementedError) as error:
        print(f"{name} of int64 raises {type(error).__name__}: {str(error).splitlines()[0][:60]}")

assert torch.full_like(integers, 0.5).tolist() == [0, 0, 0]

# %%
behaviour(
    "C2",
    "zeros_like gives shape, dtype, device and memory format of its example.",
    (like.shape, like.dtype, like.device) == (images.shape, images.dtype, images.device)
    and like.stride() == images.stride(),
)

# %% [markdown]
# ## 7. Allocate once, and fill
#
# A result comes row by row: 500 rows of 256 numbers. You can let a tensor grow with `torch.cat`, collect the
# rows in a list and join them once, or allocate the result first and fill it. (`out=result[i]` lets the product
# write straight into that row.) What does the last way save over the first, most of all: `"calls"` of torch, `"bytes"`
# that are moved, or `"arithmetic"`?

# %%
guess = ...


# %%
def grow(rows):
    result = rows[:0]
    for i in range(len(rows)):
        result = torch.cat([result, rows[i : i + 1] * 2])
    return result


def collect(rows):
    return torch.cat([rows[i : i + 1] * 2 for i in range(len(rows))])


def fill(rows):
    result = torch.empty_like(rows)
    for i in range(len(rows)):
        torch.mul(rows[i], 2, out=result[i])
    return result


compare(
    "500 rows, one by one",
    {"grow with cat": grow, "collect, then cat": collect, "allocate, then fill": fill},
    inputs=(500, 256),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Growing copies everything that is there already, at every step. For *n* rows that is about *n*²/2
# rows copied instead of *n*. (Predicted is more: each way multiplies 500 times by a Python number, which is dearer
# than the call that is priced: it adds two tensors.) The counts show it:

# %%
rows = torch.rand(500, 256)
for function in (grow, collect, fill):
    made = costs(function, rows).bytes
    print(f"{function.__name__:8} {made / 1e6:6.1f} MB of new memory, {made / rows.nbytes:5.1f} × the result")

# %% [markdown]
# Collecting costs about as much as filling: both touch each row a few times only. So you need not know the length
# beforehand. A Python list that grows is cheap; a tensor that grows is not. Why is a list cheap? How often does it ask
# for more memory while 500 items are appended, one by one?

# %%
guess = ...

# %%
items, sizes = [], set()
for i in range(500):
    items.append(i)
    sizes.add(sys.getsizeof(items))
room = (max(sizes) - sys.getsizeof([])) // 8
guessed("times that it asked for memory", guess, len(sizes), f"Now it has room for {room} items.")

# %% [markdown]
# A list takes more than it needs, in proportion to its length. So most appends find a free place, and all copying
# together stays in proportion to the final length. Tensors do no such thing by themselves.
#
# And the question before all of these: must it be row by row? How many times faster than filling is one product
# of all rows?

# %%
guess = ...

# %%
compare(
    "500 rows, filled or all at once",
    {"allocate, then fill": fill, "rows * 2": lambda rows: rows * 2},
    inputs=(500, 256),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Each call of torch costs a microsecond or more before it computes anything: here 500 products and 1,000
# views. (So growing, with all its bytes, was only a few times slower.) One operation on all rows pays once: on an H200,
# 11 µs for all rows, and 15 µs for each. (Measured is more, for the same reason as above: 500 Python numbers.)

# %% [markdown]
# ## Further
#
# You can skip this part. It is for those who wonder where the savings of this chapter end.
#
# ### Three numbers
#
# A NumPy array of three `float32`, instead of a million. How many times faster is `from_numpy` now?

# %%
guess = ...

# %%
compare(
    "a NumPy array of 3 float32",
    {"torch.tensor": torch.tensor, "torch.from_numpy": torch.from_numpy},
    inputs=array_of(3),
    guess=guess,
    claim="A3",
    only="cpu",
)

# %% [markdown]
# The ratio is smaller, but still large. Look at the times instead: a microsecond saved, or a few. It matters if you do
# this 100,000 times. Then ask why you do it 100,000 times.
#
# ### Three ways to set numbers
#
# A million numbers, set to 2: with `zeros` and `fill_`, with `empty` and `fill_`, or with `full`. How many times
# faster is the last variant than the first?

# %%
guess = ...

# %%
compare(
    "1,000,000 numbers set to 2",
    {
        "zeros, then fill_": lambda device: torch.zeros(1_000_000, device=device).fill_(2),
        "empty, then fill_": lambda device: torch.empty(1_000_000, device=device).fill_(2),
        "full": lambda device: torch.full((1_000_000,), 2.0, device=device),
    },
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** `zeros` then `fill_` writes the memory twice, the others once. (On an H200, 4 MB are little, and it is the
# launches that you see: two against one.)
#
# ### Large pages
#
# How many page faults do 40 MB of zeros cost when torch, too, asks Linux for pages of 2 MB? It does so with
# `THP_MEM_ALLOC_ENABLE=1` in the environment. It reads that once, so we need a new process.

# %%
guess = ...

# %%
SCRIPT = """
import resource, time, torch
torch.set_num_threads(1)
torch.zeros(10)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.zeros(10_000_000)
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
seconds = []
for _ in range(9):
    start = time.process_time()
    torch.zeros(10_000_000).add_(1)
    seconds.append(time.process_time() - start)
print(f"{faults:,} page faults; made and used once: {sorted(seconds)[4] * 1e3:.1f} ms")
"""
if sys.platform == "linux":
    said = {
        setting: subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "THP_MEM_ALLOC_ENABLE": setting},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for setting in "01"
    }
    faults = float(said["1"].split()[0].replace(",", ""))
    lines = (f"THP_MEM_ALLOC_ENABLE={setting}: {words}" for setting, words in said.items())
    guessed("page faults when torch asks for large pages", guess, faults, *lines)
else:
    print("This setting is for Linux.")

# %% [markdown]
# The times are those of section 5: zeros, and their first use. (Where both lines are alike, this system gives large pages
# to all or to nobody.)

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** what share of the whole is making tensors? Predict it from bytes written, Python's
# objects read, and calls. The cause is one of these, or new pages. Each row takes one away; verify dtype and sharing.
#
# | you have | use | because |
# |---|---|---|
# | nothing, a pattern | `full`, `zeros`, `arange`, `eye`, … | reading a list costs a thousand times as much as writing the numbers |
# | millions of zeros on the CPU | `torch.from_numpy(np.zeros(…))`, where it measures better | the system clears new pages anyway, and may give large ones |
# | random numbers on the CPU | `randn`; for many uniform ones, NumPy's generator | torch's vectors against NumPy's quicker generator |
# | a long list | `torch.from_numpy(np.array(list, dtype=…))` | NumPy reads lists faster than torch |
# | a list of arrays | `torch.from_numpy(np.stack(arrays))` | whole arrays are copied, not single numbers |
# | an array that stays as it is | `torch.from_numpy`, `torch.as_tensor` | no copy; both names see every change |
# | an array that others change, or that is read-only | `torch.tensor` | here you want the copy |
# | a reversed array (negative strides) | `array.copy()` first | torch knows no negative strides |
# | a tensor to imitate | `zeros_like`, `new_zeros`, … | right dtype and device at once |
# | every element to be written | `empty`, then fill | memory is written once; nothing checks that you did |
# | rows that come one by one | a list, then `cat` or `stack` once | growing tensors copy themselves again and again |
# | rows that are all there | one operation on all of them | every call costs a microsecond or more |

# %%
verdicts("A1", "A3", "C2")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/01_tensor_creation/01_tensor_creation.ipynb). Five
# functions to make fast, and a table that grows, which you may keep.
