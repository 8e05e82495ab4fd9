# %% [markdown]
# # 19 · A first kernel
#
# A *kernel* is the loop that does the work of an operation. This chapter writes a few of its own: loops in C++ for the
# CPU, and programs in Triton, a language for kernels on GPUs. When is that worth it, and what has to be right before?
#
# *F* numbers are claims of PyTorch's and of Triton's documentation, beside those of five widely read articles; all are in
# [the score](claims.ipynb). `compare`, `costs` and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - put a loop of your own in place of several operations, and say beforehand whether it pays,
# - make an operator of it that autograd and `torch.compile` understand,
# - write a kernel in Triton: programs, tiles, masks, strides, a loop over tiles,
# - test it on a computer without a GPU.
#
# **Time:** 55 minutes to read and run, 10 more for the part Further. **Needs:** a C++ compiler for sections 1 to 3;
# Triton for sections 4 to 6 (on Linux, torch from PyPI brings it along, and for builds without CUDA `pip install triton`
# does; there is none for Windows and macOS); a GPU to time what Triton makes. What is missing is said and skipped.
#
# **Claims tested:** *F32* "rewrite parts in C++ (or CUDA) and fuse"; *F33* "write it as a Python function"; *F34* a data
# pointer "doesn't compose"; *F35* what `opcheck` finds; *F37* tiles are powers of two; *F38* what Triton's interpreter cannot
# do; *F40* a softmax "significantly faster than PyTorch's native op"; in *Further* *F36* `no_implicit_headers` and *F39*.

# %%
import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
import timeit
import weakref
from pathlib import Path

import torch

# Triton has an interpreter, which runs kernels on the CPU. It must be asked for before Triton is imported.
where = "cuda" if torch.cuda.is_available() else "cpu"  # where kernels in Triton run
interpreted = where == "cpu"
os.environ["TRITON_INTERPRET"] = str(int(interpreted))
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

from parts.inputs import normal
from parts.kernels import draw_product, draw_tiles, interpreter_fits, lines_to_read, seconds_of_load_inline

from autograder import behaviour, compare, costs, devices, fewer, guessed, picture, recall, verdicts

torch.set_num_threads(1)
torch.manual_seed(19)
command = shlex.split(os.environ.get("CXX") or "c++")
compiler = shutil.which(command[0])
print("devices here:", *devices(), "· torch", torch.__version__)
print("C++ compiler:", "found" if compiler else "none found, so sections 1 to 3 are skipped")
if triton and interpreted and not interpreter_fits():
    print(f"Triton {triton.__version__} is too old for this NumPy, so sections 4 to 6 are skipped")
    triton = None
elif triton:
    print(
        "Triton:", triton.__version__, "· interpreted on the CPU" if interpreted else "· compiled for the GPU"
    )
else:
    print("Triton: none found, so sections 4 to 6 are skipped")
recall("19", ..., ..., ...)

# %% [markdown]
# ## 1. One loop in place of five operations
#
# Shrinking moves every number towards 0 by the same amount, and what would pass 0 becomes 0. In torch:


# %%
def shrink(x, by=0.5):
    return x.sign() * (x.abs() - by).clamp(min=0)


numbers = torch.randn(1_000_000)
print(shrink(torch.tensor([-2.0, -0.3, 0.1, 0.7])).tolist())
print(costs(shrink, numbers))

# %% [markdown]
# Five operations. Each reads a table of 4 MB or two, and writes one. In C++ it is one loop.

# %%
source = """
#include <cmath>

extern "C" void shrink(const float* x, float* result, long long number, float by) {
  for (long long i = 0; i < number; i++) {
    float size = std::fabs(x[i]) - by;
    result[i] = size > 0 ? std::copysign(size, x[i]) : 0;
  }
}

extern "C" void softmax(const float* x, float* result, long long rows, long long columns) {
  for (long long row = 0; row < rows; row++, x += columns, result += columns) {
    float highest = x[0], total = 0;
    for (long long i = 1; i < columns; i++) highest = x[i] > highest ? x[i] : highest;
    for (long long i = 0; i < columns; i++) total += result[i] = std::exp(x[i] - highest);
    for (long long i = 0; i < columns; i++) result[i] /= total;
  }
}

extern "C" void product(const float* a, const float* b, float* c, long long size) {
  for (long long i = 0; i < size; i++)
    for (long long k = 0; k < size; k++)
      for (long long j = 0; j < size; j++) c[i * size + j] += a[i * size + k] * b[k * size + j];
}
"""

# %% [markdown]
# The compiler makes a *shared library* of it, and `ctypes`, a part of Python, calls its functions. They know nothing of
# tensors: they get the address of the first number, and how many there are.


# %%
def build(source, *options):
    """A library with the functions of a C++ source."""
    place = Path(tempfile.mkdtemp(dir=libraries.name))
    (place / "source.cpp").write_text(source, encoding="utf-8")
    for line in (
        ["-O3", "-fPIC", *options, "-c", "source.cpp", "-o", "source.o"],
        ["-shared", "source.o", "-o", "library.so"],
    ):
        subprocess.run([*command, *line], cwd=place, check=True, capture_output=True)
    return ctypes.CDLL(str(place / "library.so"))


def load(source, *options):
    """The library, whose functions know what they are given."""
    library = build(source, *options)
    library.shrink.argtypes = [address, address, integer, ctypes.c_float]
    library.softmax.argtypes = [address, address, integer, integer]
    library.product.argtypes = [address, address, address, integer]
    return library


address, integer = ctypes.c_void_p, ctypes.c_longlong
libraries = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
try:
    kernels = load(source) if compiler else None
except (OSError, subprocess.CalledProcessError) as error:
    kernels = None
    print("The compiler cannot build a library, so sections 1 to 3 are skipped:", type(error).__name__)


def shrink_loop(x, by=0.5):
    result = torch.empty_like(x)
    kernels.shrink(x.data_ptr(), result.data_ptr(), x.numel(), by)
    return result


if kernels:
    assert torch.equal(shrink_loop(numbers), shrink(numbers))
    print(costs(shrink_loop, numbers))

# %% [markdown]
# `-O3` lets the compiler treat several numbers at once. Our loops run on one core, so the first cell gave torch one
# thread, too. A million numbers: what does the loop save most, `"calls"`, `"bytes"` or `"arithmetic"`?

# %%
guess = ...


# %%
if kernels:
    compare(
        "kernel: shrink 1,000,000 numbers, five operations or a loop",
        {"five operations": shrink, "loop in C++": shrink_loop},
        inputs=normal(1_000_000),
        guess=guess,
        claim="F32",
        only="cpu",
        bytes=2 * 4 * 1_000_000,
        because=["prices", "page faults"],
    )

# %% [markdown]
# **Why.** The tables in between are gone. (Predicted is less: new memory has no price, and each table is priced as if it
# lay in a cache, where together they may not fit.) What is left is to read the numbers and to write the result: the
# *limit*, with one thread. How near is our loop? A copy reads and writes as much, and computes nothing:

# %%
if kernels:
    for name, call in {"loop in C++": lambda: shrink_loop(numbers), "copy": numbers.clone}.items():
        print(
            f"{name:12} {1e6 * min(timeit.repeat(call, number=1, repeat=30)):4.0f} µs, the shortest of 30 calls"
        )

# %% [markdown]
# Where the two are close, no loop that writes a new table can do much better.
#
# ### Look first
#
# Is there a shorter formula? What is left of a number is the number without its middle part: `x - x.clamp(-by, by)`, two
# operations. And shrinking has a name: torch has `softshrink`. How many times as fast as our loop is this one?

# %%
guess = ...


# %%
def shrink_in_two(x, by=0.5):
    return x - x.clamp(-by, by)


if kernels:
    compare(
        "kernel: shrink 1,000,000 numbers, a loop, two operations, softshrink",
        {
            "loop in C++": shrink_loop,
            "two operations": shrink_in_two,
            "softshrink": lambda x: torch.nn.functional.softshrink(x, 0.5),
        },
        inputs=normal(1_000_000),
        guess=guess,
        only="cpu",
        bytes=2 * 4 * 1_000_000,
    )

# %% [markdown]
# Two operations win back much of what five have lost. `softshrink` is about as fast as our loop, or faster: it is the same
# loop, written by others, for more types and more kinds of processors. And it knows cases that we did not think of. What
# becomes of a number that is not a number?

# %%
strange = torch.tensor([float("nan"), float("inf"), -0.25])
print("five operations:", shrink(strange).tolist())
print("softshrink:     ", torch.nn.functional.softshrink(strange, 0.5).tolist())
if kernels:
    print("loop in C++:    ", shrink_loop(strange).tolist())
    assert shrink(strange)[0].isnan() and not shrink_loop(strange)[0].isnan()

# %% [markdown]
# Ours says 0, because a comparison with NaN is false. A training that has gone wrong would look well. Every `if` in a kernel
# needs this question. Here it is enough to turn ours round:

# %%
if kernels:
    kernels = load(
        source.replace(
            "size > 0 ? std::copysign(size, x[i]) : 0", "size <= 0 ? 0 : std::copysign(size, x[i])"
        )
    )
    assert shrink_loop(strange)[0].isnan() and torch.equal(shrink_loop(numbers), shrink(numbers))

# %% [markdown]
#
# ### A product of two matrices
#
# A product of two matrices is three loops, and one operation of torch. 256 × 256: how many times as fast as torch are
# our three loops?

# %%
guess = ...


# %%
def product_loop(a, b):
    result = torch.zeros_like(a)
    kernels.product(a.data_ptr(), b.data_ptr(), result.data_ptr(), len(a))
    return result


def two_tensors(*shape):
    return lambda generator, device: tuple(torch.randn(2, *shape, generator=generator).to(device))


if kernels:
    compare(
        "kernel: a product of 256 × 256, torch or three loops",
        {"torch": torch.mm, "three loops in C++": product_loop},
        inputs=two_tensors(256, 256),
        guess=guess,
        only="cpu",
        seconds=0.6,
    )

# %% [markdown]
# There is nothing to fuse, so nothing is saved. And people have worked for decades on the library behind `torch.mm`: it
# has instructions for each processor, and uses a number many times while it is in a register. (Tiles for the cache
# count with larger matrices: these three fit into one.)
#
# Now a softmax along 1,000 rows of 1,000 numbers. There is something to save: its formula takes five operations. The third
# way is `torch.softmax`, the loop that torch has for it. How many times as fast as five operations is our loop?

# %%
guess = ...


# %%
def softmax_in_five(x):
    away = x - x.amax(1, keepdim=True)
    grown = away.exp()
    return grown / grown.sum(1, keepdim=True)


def softmax_loop(x):
    result = torch.empty_like(x)
    kernels.softmax(x.data_ptr(), result.data_ptr(), *x.shape)
    return result


if kernels:
    compare(
        "kernel: softmax of 1,000 rows, five operations, one call, a loop",
        {
            "five operations": softmax_in_five,
            "torch.softmax": lambda x: x.softmax(1),
            "loop in C++": softmax_loop,
        },
        inputs=normal(1000, 1000),
        guess=guess,
        claim="F32",
        only="cpu",
        because="page faults",
    )

# %% [markdown]
# **Why.** Ours is fused as well as `torch.softmax`, and far behind it: here the time goes into arithmetic. In memory in
# use, even five operations are no slower than ours. A C++ compiler treats several numbers at once only where that
# changes nothing. It may neither add floats in another order nor, because of NaN, compare them in another; and its
# `exp` takes one number. Torch's loops are written with vectors, and have an `exp` for them. So: **first ask what takes
# the time. If it is memory, fuse. If it is arithmetic, use what others have tuned.**
#
# There is an option that allows a compiler all that, `-ffast-math`. It also lets it assume that there is no NaN and no
# infinity. Then a test for NaN may be taken out of your program. (And older compilers that *link* with it make 0 of all
# very small numbers, in torch and Python, too. So `build` links without the option.)

# %%
if kernels:
    fast, rows = load(source, "-ffast-math"), numbers.view(1000, 1000)
    for name, library in {"-O3": kernels, "-O3 -ffast-math": fast}.items():
        result = torch.empty_like(rows)
        call = functools.partial(library.softmax, rows.data_ptr(), result.data_ptr(), *rows.shape)
        print(f"{name:16} {1e3 * min(timeit.repeat(call, number=1, repeat=10)):5.2f} ms for the softmax")
        assert torch.allclose(result, rows.softmax(1))

count_nan = (
    'extern "C" int nans(const float* x, int n) { int k = 0; while (n--) k += x[n] != x[n]; return k; }'
)
if kernels:
    for option in ("-fno-fast-math", "-ffinite-math-only"):  # the second one is a part of -ffast-math
        found = build(count_nan, option).nans
        found.argtypes = [address, ctypes.c_int]
        print(f"{option:20} NaNs found: {found(strange.data_ptr(), len(strange))} of 1")

# %% [markdown]
# ## 2. An address knows nothing
#
# `data_ptr()` is a number. Whoever calls a kernel with it has left behind all that torch knows of a tensor. Three calls of
# our loop that raise no error: which of them are right? Guess how many.

# %%
guess = ...

# %%
table = torch.randn(6, 8)
if kernels:
    calls = {
        "a transposed table": table.T,
        "every second column": table[:, ::2],
        "64-bit numbers": table[:, :4].double(),
    }
    right = {name: torch.allclose(shrink_loop(x), shrink(x)) for name, x in calls.items()}
    guessed("calls that are right", guess, sum(right.values()), *(f"{name}: {right[name]}" for name in right))

# %% [markdown]
# The transposed table is right because `empty_like` gave the result the same strides, so both are walked through in the
# order of memory. With `torch.empty(x.shape)` it would be wrong. In every second column the loop meets the columns in between; of 64-bit numbers it reads halves.
#
# Then call `contiguous()`? Yes, but keep a name for the copy. An address does not keep its memory. (Of a tensor that is
# contiguous already there is no copy. So this mistake passes most tests.)

# %%
assert not kernels or not (right["every second column"] or right["64-bit numbers"])
copy = table[:, ::2].contiguous()
place, still_there = copy.data_ptr(), weakref.ref(copy)
del copy  # in `f(x.contiguous().data_ptr())` the copy has no name at all, and is gone before `f` begins
print("the copy is gone, and its address is still there:", still_there() is None, f"· {place:#x}")
assert still_there() is None

# %% [markdown]
# And autograd? The documentation says that a kernel with a bare pointer "doesn't compose with PyTorch subsystems". Let us
# see what that looks like.

# %%
if kernels:
    x = torch.randn(5, requires_grad=True)
    behaviour(
        "F34", "The result of a loop with data_ptr() has no gradient.", not shrink_loop(x).requires_grad
    )
    for name, use in {
        "torch.compile without a graph break": torch.compile(shrink_loop, backend="eager", fullgraph=True),
        "torch.vmap": torch.vmap(shrink_loop),
    }.items():
        try:
            use(table)
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
        else:
            problem = ""
        print(f"{name}: {problem or 'works'}")
        behaviour("F34", f"{name} does not take such a loop.", bool(problem))

# %% [markdown]
# The missing gradient is the dangerous one: no error. A model trains, and the layers below this one stand still.
#
# ## 3. An operator that torch knows
#
# `torch.library.custom_op` makes an operator of a function. The annotations say what goes in and out, and
# `mutates_args` which inputs it writes to. `register_fake` says what comes out, without numbers, for the compiler;
# `register_autograd` says how to go back: first what is kept, then the gradient of each input. That of `x` passes where the
# result is not 0; `by` gets none. Here is the loop with all of it, and with the questions that section 2 asked.


# %%
@torch.library.custom_op("first_kernel::shrink", mutates_args=())
def shrink_op(x: torch.Tensor, by: float) -> torch.Tensor:
    if x.dtype != torch.float32 or x.device.type != "cpu":
        raise TypeError(f"shrink takes float32 on the CPU, not {x.dtype} on {x.device}")
    return shrink_loop(x.contiguous(), by)


@shrink_op.register_fake
def _(x, by):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def remember(ctx, inputs, output):
    ctx.save_for_backward(output)


def go_back(ctx, slopes):
    (output,) = ctx.saved_tensors
    return slopes * (output != 0), None


shrink_op.register_autograd(go_back, setup_context=remember)

if kernels:
    x = torch.randn(6, 8)[:, ::2].requires_grad_()
    assert torch.equal(shrink_op(x, 0.5), shrink(x))
    ours, theirs = (torch.autograd.grad(f(x, 0.5).square().sum(), x)[0] for f in (shrink_op, shrink))
    assert torch.allclose(ours, theirs)
    recorded = torch.compile(lambda x: shrink_op(x, 0.5) + 1, backend="eager", fullgraph=True)
    assert torch.equal(recorded(x), shrink(x) + 1)
    print("right with strides, with gradients, and recorded in one piece")

# %% [markdown]
# ### What does the test test?
#
# `torch.library.opcheck` looks for mistakes in what was said about an operator. Three operators; in each, something is
# wrong. One hides that it writes to its input, one says a wrong shape, one is called with strides that its loop does not
# know. How many of them are found? (Two of its tests are enough for that; the others are about gradients and the compiler.)

# %%
guess = ...


# %%
@torch.library.custom_op("first_kernel::hides_writing", mutates_args=())
def hides_writing(x: torch.Tensor, out: torch.Tensor) -> None:
    kernels.shrink(x.data_ptr(), out.data_ptr(), x.numel(), 0.5)


@torch.library.custom_op("first_kernel::wrong_shape", mutates_args=())
def wrong_shape(x: torch.Tensor) -> torch.Tensor:
    return shrink_loop(x)


@wrong_shape.register_fake
def _(x):
    return x.new_empty(x.shape[0])


@torch.library.custom_op("first_kernel::no_strides", mutates_args=())
def no_strides(x: torch.Tensor) -> torch.Tensor:
    return shrink_loop(x)


@no_strides.register_fake
def _(x):
    return torch.empty_like(x)


def what_opcheck_finds(operator, *arguments):
    try:
        torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))
    except Exception as error:
        return str(error).split(" (scroll")[0].replace("opcheck(op, ...): ", "")[:150]
    return "nothing"


if kernels:
    told = {
        "hides what it writes to": what_opcheck_finds(hides_writing, torch.randn(4), torch.empty(4)),
        "says a wrong shape": what_opcheck_finds(wrong_shape, torch.randn(6, 8)),
        "knows no strides": what_opcheck_finds(no_strides, torch.randn(6, 8)[:, ::2]),
    }
    found = sum(said != "nothing" for said in told.values())
    guessed("mistakes that are found", guess, found, *(f"{name}: {said}" for name, said in told.items()))

# %%
if kernels:
    behaviour(
        "F35",
        "opcheck finds an output that is not in mutates_args.",
        told["hides what it writes to"] != "nothing",
    )
    assert told["knows no strides"] == "nothing"

# %% [markdown]
# `opcheck` compares what an operator *says* with what it *does*: what it writes to, shapes, types. It does not know which
# numbers are right. For that you need a slow version, odd shapes, strides, and for gradients `torch.autograd.gradcheck`. It wants `float64`; of an operator that
# takes only `float32` it must ask less:

# %%
if kernels:
    away = torch.tensor([-2.0, -0.9, -0.1, 0.2, 1.1, 3.0], requires_grad=True)
    assert torch.autograd.gradcheck(shrink_op, (away, 0.5), eps=1e-2, atol=1e-2, rtol=1e-2)

# %% [markdown]
#
# ### What does such a call cost?
#
# Built-in operations go through torch's dispatcher in C++. Ours goes on into Python, where `custom_op` checks its arguments
# and calls us. (An operator that is registered in C++, with `TORCH_LIBRARY`, is spared that.) Our opponent is the formula with two operations
# now. (`softshrink` would beat both. Let us say that our formula had no name.) Ten numbers: how many times as fast as our
# operator are the two?

# %%
guess = ...

# %%
both_ways = {"custom operator": lambda x: shrink_op(x, 0.5), "two operations": shrink_in_two}
if kernels:
    compare(
        "kernel: shrink 10 numbers, a custom operator or two operations",
        both_ways,
        inputs=normal(10),
        guess=guess,
        claim="F33",
        only="cpu",
        seconds=0.6,
    )

# %% [markdown]
# And four million numbers?

# %%
guess = ...

# %%
if kernels:
    compare(
        "kernel: shrink 4,000,000 numbers, a custom operator or two operations",
        both_ways,
        inputs=normal(4_000_000),
        guess=guess,
        claim="F33",
        only="cpu",
        seconds=0.6,
        because="prices",
    )

# %% [markdown]
# **Why.** For millions, the price of the call is small beside the bytes that the loop saves. For ten numbers it is all.
# There the documentation is right: "please write it as a Python function" where built-in operations can express it.
# (Before you write one, try `torch.compile`, [chapter 15](15_compiler.ipynb): it writes such loops by itself, if your
# users can wait for it.)

# %% [markdown]
# ## 4. Triton: one program for each tile
#
# On a GPU nobody writes one long loop. Many small programs run at once, and each does a piece: a **tile**. In Triton, you
# write the program for one tile, and work with the whole tile at a time, as with a small tensor. Ten numbers in
# tiles of four:

# %%
picture(*draw_tiles(10, 4))

# %% [markdown]
# `tl.program_id(0)` says which program this is. From that follow its places. The **mask** says which of them exist. This is a
# whole kernel, and the function that launches it. In the square brackets stands how many programs there shall be.

# %%
if triton:

    @triton.jit
    def add_kernel(x, y, result, number, TILE: tl.constexpr):
        place = tl.program_id(0) * TILE + tl.arange(0, TILE)
        inside = place < number
        total = tl.load(x + place, mask=inside) + tl.load(y + place, mask=inside)
        tl.store(result + place, total, mask=inside)


def add(x, y, tile=128):
    result = torch.empty_like(x)
    programs = triton.cdiv(len(x), tile)  # rounded up
    add_kernel[(programs,)](x, y, result, len(x), TILE=tile)
    return result


# %% [markdown]
# `x` is an address again; `x + place` is a tile of addresses. `TILE` is a constant: another one makes another program. What a
# load gives for a place outside is not said here, and nobody uses it.
#
# 1,000 numbers in tiles of 128. How many places are masked out?

# %%
guess = ...

# %%
if triton:
    programs = triton.cdiv(1000, 128)
    tiles = f"{programs} programs with 128 places"
    guessed("places that are masked out", guess, programs * 128 - 1000, tiles)
    for number in (1, 127, 128, 129, 1000):
        x, y = torch.randn(2, number, device=where)
        assert torch.equal(add(x, y), x + y)
    print("right for 1, 127, 128, 129 and 1,000 numbers, on", where)

# %% [markdown]
# Where there is no GPU, this ran in Triton's **interpreter**: it runs one program after the other, with NumPy in place of the
# GPU. So you can test a kernel on any Linux computer, and print in the middle of it.
#
# ### Without the mask
#
# The same kernel without masks, on the first ten of twelve numbers. The others are -1. What do they become?

# %%
guess = ...

# %%
if triton:

    @triton.jit
    def reckless_kernel(x, y, result, TILE: tl.constexpr):
        place = tl.program_id(0) * TILE + tl.arange(0, TILE)
        tl.store(result + place, tl.load(x + place) + tl.load(y + place))

    x, y = torch.ones(2, 12, device=where)
    memory = torch.full((12,), -1.0, device=where)
    reckless_kernel[(3,)](x[:10], y[:10], memory[:10], TILE=4)
    guessed("each of the two behind the ten", guess, int(memory[10]), f"{memory.tolist()}")

# %% [markdown]
# They were somebody else's. No error: a kernel may write wherever its process may. (Here we have put two spare numbers
# there. Without them it would have been whatever lies behind: another tensor, or nothing that exists, and a crash.)
#
# ### Which tiles are there?
#
# May a tile have exactly 1,000 numbers?

# %%
if triton:
    x, y = torch.randn(2, 1000, device=where)
    try:
        add(x, y, tile=1000)
    except Exception as error:
        problem = str(error.__cause__ or error).strip().splitlines()[-1]
    else:
        problem = ""
    print(problem or "a tile of 1,000 works")
    behaviour("F37", "A tile of 1,000 numbers is refused.", bool(problem))

# %% [markdown]
# Tiles are powers of two: 1,024 and a mask, here.
#
# ### What the interpreter is not
#
# Interpreted, the time says *nothing* about a GPU (*Further* shows it). The interpreter is a tool for right and wrong. Even
# there it has gaps. "It does not support operations on bfloat16", says its documentation. What happens?

# %%
if triton and interpreted:
    x, y = torch.tensor([[1.0, 2, 3], [10, 20, 30]]).bfloat16()
    try:
        told, right = add(x, y).tolist(), torch.equal(add(x, y), x + y)
    except Exception as error:
        told, right = f"{type(error).__name__}: {error}", False
    print("1 + 10, 2 + 20, 3 + 30:", told)
    behaviour("F38", "The interpreter does not add numbers in bfloat16.", not right)
else:
    print("Skipped: this needs Triton's interpreter.")

# %% [markdown]
# If you see wrong numbers and no error: that is the worst way not to support something. Test kernels with `float32`, and
# `bfloat16` on a GPU; or let the kernel convert what it has loaded, with `.to(tl.float32)`.
#
# ## 5. A row: what stands in the padding?
#
# A softmax needs two numbers that take a whole row: the highest one, and the sum of what `exp` makes. In Triton these are
# `tl.max` and `tl.sum` of a tile. (`tl.maximum` takes the larger of two tiles, place by place; and there are `tl.where`,
# `tl.sqrt` and others, as in torch.) One program takes one row; the tile is the next power of two. Now it matters what
# stands in the places that the mask leaves out. `other` says it.

# %%
if triton:

    @triton.jit
    def softmax_kernel(x, result, columns, row_stride, column_stride, filler, TILE: tl.constexpr):
        row = tl.program_id(0)
        place = tl.arange(0, TILE)
        inside = place < columns
        numbers = tl.load(x + row * row_stride + place * column_stride, mask=inside, other=filler)
        grown = tl.exp(numbers - tl.max(numbers, axis=0))
        tl.store(result + row * columns + place, grown / tl.sum(grown, axis=0), mask=inside)


def softmax(x, filler=float("-inf")):
    rows, columns = x.shape
    result = torch.empty(rows, columns, device=x.device)
    tile = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, result, columns, *x.stride(), filler, TILE=tile)
    return result


# %% [markdown]
# A row of five zeros: all weights are 0.2. The tile has 8 places. What is each weight if the filler is 0?

# %%
guess = ...

# %%
if triton:
    rows = torch.zeros(2, 5, device=where)
    rows[1] = -200
    fillers = {"-inf": float("-inf"), "0": 0.0}
    lines = [
        f"filler {name:>4}: zeros give {weights[0, 0].item():.3f}, numbers of -200 give {weights[1, 0].item():.3f}"
        for name, weights in ((name, softmax(rows, filler)) for name, filler in fillers.items())
    ]
    guessed("each weight of the zeros, with filler 0", guess, softmax(rows, 0.0)[0, 0].item(), *lines)
    assert torch.allclose(softmax(rows), torch.full_like(rows, 0.2))

# %% [markdown]
# With 0, the three places of the padding take part: each adds `exp(0)`. In the second row they are even the highest numbers,
# and the others vanish beside them. The right filler changes nothing in what comes next: `-inf` for a maximum, 0 for a sum.
# And here one does both, because `exp` makes 0 of `-inf`. A row of 8 numbers shows nothing of this. **Test sizes that are no
# multiple of anything.**
#
# The kernel takes both strides, so it needs no copy, whatever lies in memory (within 2,147,483,647 numbers):

# %%
if triton:
    assert torch.allclose(softmax(rows, 0.0)[0], torch.full((5,), 0.125, device=where))
    table = torch.randn(37, 50, device=where)
    for x in (table, table.T, table[:, ::3], table[5:6, 3:4]):
        assert torch.allclose(softmax(x), x.softmax(1), atol=1e-6)
    print("right for a table, transposed, with every third column, and for a single number")

# %% [markdown]
# Is it also fast? Triton's tutorial calls its fused softmax "significantly faster than PyTorch's native op", where "rows can
# fit in the GPU's SRAM". 32,768 rows of 1,000 numbers, more than a GPU's cache holds. This needs a GPU. (Torch takes another
# kernel for rows above 1,024, and the tutorial's kernel does more than ours.) How many times as fast is the kernel?

# %%
guess = ...

# %%
if triton or interpreted:
    compare(
        "kernel: softmax of 32,768 rows in Triton",
        {"torch.softmax": lambda x: x.softmax(1), "kernel in Triton": softmax},
        inputs=normal(32_768, 1000),
        guess=guess,
        claim="F40",
        only="cuda",
        bytes=2 * 4 * 32_768 * 1000,
    )

# %% [markdown]
# On an H200 both take 69 µs, where the limit is 57. So no kernel can be much faster there.
#
# ## 6. A tile of a matrix product
#
# A program computes one tile of the result. For that it needs the rows of the left matrix and the columns of the right one
# that meet there. It walks along both, a tile at a time, and adds up small products: `tl.dot`. A tile has two directions
# now: `row[:, None]` and `column[None, :]`. `count` and `loaded` are for us alone: every program adds up how many numbers it
# has loaded. Many add to one place, so it takes `tl.atomic_add`, which adds in one step, however many programs do it.

# %%
if triton:

    @triton.jit
    def product_kernel(a, b, c, rows, columns, inner, ar, ac, br, bc, loaded, TILE: tl.constexpr):
        row = tl.program_id(0) * TILE + tl.arange(0, TILE)
        column = tl.program_id(1) * TILE + tl.arange(0, TILE)
        total = tl.zeros((TILE, TILE), dtype=tl.float32)
        count = tl.zeros((TILE, TILE), dtype=tl.int32)
        for first in range(0, inner, TILE):
            k = first + tl.arange(0, TILE)
            left_there = (row[:, None] < rows) & (k[None, :] < inner)
            left = tl.load(a + row[:, None] * ar + k[None, :] * ac, mask=left_there, other=0.0)
            right_there = (k[:, None] < inner) & (column[None, :] < columns)
            right = tl.load(b + k[:, None] * br + column[None, :] * bc, mask=right_there, other=0.0)
            total += tl.dot(left, right, input_precision="ieee")
            count += left_there.to(tl.int32) + right_there.to(tl.int32)
        there = (row[:, None] < rows) & (column[None, :] < columns)
        tl.store(c + row[:, None] * columns + column[None, :], total, mask=there)
        tl.atomic_add(loaded, tl.sum(tl.sum(count, axis=1), axis=0))


def product(a, b, tile=32):
    """The product, and how many numbers all programs have loaded together."""
    (rows, inner), columns = a.shape, b.shape[1]
    c = torch.empty(rows, columns, device=a.device)
    loaded = torch.zeros(1, dtype=torch.int32, device=a.device)
    grid = triton.cdiv(rows, tile), triton.cdiv(columns, tile)
    product_kernel[grid](a, b, c, rows, columns, inner, *a.stride(), *b.stride(), loaded, TILE=tile)
    return c, loaded


if triton:
    for rows, columns, inner in ((64, 64, 64), (33, 50, 70), (1, 17, 5)):
        a, b = torch.randn(rows, inner, device=where), torch.randn(columns, inner, device=where).T
        assert torch.allclose(product(a, b)[0], a @ b, atol=1e-3)
    print("right for 64 × 64 × 64, 33 × 50 × 70 and 1 × 17 × 5, with the second matrix transposed")

# %% [markdown]
# `input_precision="ieee"` asks for full `float32`; on newer GPUs the default rounds the inputs to fewer digits (chapter 07).
#
# Here the fillers are 0, on both sides, because products with 0 add nothing. And now the point of tiles. Two matrices of
# 128 × 128, tiles of 16 or of 32. How many times fewer numbers are loaded with the larger ones?

# %%
guess = ...

# %%
if triton:
    a, b = torch.randn(2, 128, 128, device=where)
    loads = {tile: product(a, b, tile)[1].item() for tile in (16, 32, 64)}
    lines = [f"tiles of {tile}: {number:9,} numbers loaded" for tile, number in loads.items()]
    there = f"there are {a.numel() + b.numel():,} numbers"
    drawn = draw_product(8, (2, 4), 3, 4)
    guessed("times fewer numbers loaded", guess, loads[16] // loads[32], *lines, there, drawing=drawn)

# %% [markdown]
# A number is loaded once by every program that needs it. Tiles twice as large are a quarter of the programs, and each loads
# twice as many: half in all. That is why products can be fast at all: **a tile on the chip is used many times for each
# load.** The tile itself must fit there, so it cannot grow for ever. (Exercise 5 looks for the best one.)
#
# 1,024 × 1,024 on a GPU: how many times as fast as our kernel is torch?

# %%
guess = ...

# %%
if triton or interpreted:
    compare(
        "kernel: a product of 1,024 × 1,024 in Triton",
        {"kernel in Triton": lambda a, b: product(a, b)[0], "torch": torch.mm},
        inputs=two_tensors(1024, 1024),
        guess=guess,
        only="cuda",
        flops=2 * 1024**3,
    )

# %% [markdown]
# A tuned kernel also chooses sizes for each GPU, and orders its programs so that neighbours find each other's numbers in the
# cache. On an H200 torch was 1.4 times as fast. (The *limit* has the rate of TF32, with fewer digits than both have
# here.) Do not write a plain product. Write one for which torch has no public function, such as exercise 2.

# %% [markdown]
# ## Further
#
# You can skip this part. It is about what others measured, about the compiler's time, for those who write C++ that knows
# tensors, and about the interpreter.
#
# ### Triton's own figures
#
# Triton's pages print a table of this softmax, made anew with each build. Here are rows of eleven widths from three builds,
# with two figures of other kernels (hollow; [the rules](../docs/published.md)):

# %%
from autograder import published, published_figures

published("F40")
published_figures("F40-06", "F40-09")

# %% [markdown]
# The text beside these tables says that Triton is noticeably faster. The two lines are the same width in two builds, with
# other versions of PyTorch and Triton: the sign changes.
#
# ### The official way, and its price
#
# `torch.utils.cpp_extension.load_inline(name, source, functions=[…])` compiles C++ that knows tensors. Such a
# function is called without `ctypes`, takes tensors, and can be registered in C++ (`TORCH_LIBRARY`). Its price is the
# first line that it puts before your source: `#include <torch/extension.h>`. How many lines of C++ must the compiler
# read then, before it comes to yours?

# %%
guess = ...

# %%
HEADERS = {
    "load_inline": ["torch/extension.h"],
    "no_implicit_headers, and what an operator needs": [
        "ATen/core/Tensor.h",
        "ATen/ops/empty_like.h",
        "torch/library.h",
    ],
    "our loop": ["cmath"],
}

if kernels:
    read = {name: lines_to_read(command, headers) for name, headers in HEADERS.items()}
    if None in read.values():
        print("Skipped: the compiler does not find all headers (of Python, or of torch).")
    else:
        lines = (f"{number:9,} lines: {name}" for name, number in read.items())
        guessed("lines before yours", guess, float(read["load_inline"]), *lines)
        light = read["no_implicit_headers, and what an operator needs"]
        fewer("F36", "lines that the compiler reads", without=read["load_inline"], following=light)

# %% [markdown]
# All these lines for a few of yours. (Counted are lines, not seconds. Later calls with the same source find the library in a
# folder.) With `no_implicit_headers=True` you name the headers. A project builds its library once, when it is
# installed, and then the price is small. Here you can try it:

# %%
try_it = False  # True: half a minute, or some
if kernels and try_it:
    print(f"{seconds_of_load_inline(libraries.name):.0f} seconds")
else:
    print("Not tried.")

# %% [markdown]
# ### The interpreter's time
#
# 100,000 numbers in tiles of 1,024. How many times as fast as the kernel is torch's own addition? (In the interpreter, if
# you have no GPU.)

# %%
guess = ...

# %%
if triton:
    compare(
        f"kernel: add 100,000 numbers in Triton, {'interpreted' if interpreted else 'compiled'}",
        {"kernel": lambda x, y: add(x, y, 1024), "torch": torch.add},
        inputs=two_tensors(100_000),
        guess=guess,
        only=where,
        seconds=0.6,
    )

# %% [markdown]
# In one addition there is nothing to fuse, so there is nothing to win on a GPU either. On an H200 the kernel took 21 µs and
# torch 7: starting it from Python costs more, probably. And interpreted, the kernel's time is that of Python and NumPy.

# %% [markdown]
# ### Pointers to pointers
#
# Section 4 showed a gap of Triton's interpreter. A second one, says its documentation, is "indirect memory access": pointers
# that are loaded from memory. Two tensors, and a third with their addresses:

# %%
if triton and interpreted:

    @triton.jit
    def gather_kernel(addresses, result, TILE: tl.constexpr):
        x = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32))
        place = tl.arange(0, TILE)
        tl.store(result + tl.program_id(0) * TILE + place, tl.load(x + place))

    parts, together = (torch.randn(4), torch.randn(4)), torch.zeros(8)
    try:
        gather_kernel[(2,)](torch.tensor([part.data_ptr() for part in parts]), together, TILE=4)
        works = torch.equal(together, torch.cat(parts))
    except Exception as error:
        works = False
        print(f"{type(error).__name__}: {error}")
    print("loaded through loaded addresses:", works)
    behaviour("F39", "The interpreter cannot load through addresses that were loaded.", not works)

# %% [markdown]
# Where it says `True`, this version can do more than it promises.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** predict from the bytes of the tables in between; verify odd sizes before you measure.
#
# | you have | do | because |
# |---|---|---|
# | many element-wise steps, large tensors | a shorter formula; `torch.compile`; a loop of your own | tables in between are traffic |
# | a formula with a name | torch's function | somebody has written that loop, for NaN and all floating types, too |
# | a product, a softmax, a convolution | torch's function | arithmetic, and decades of tuning |
# | ten numbers | plain operations | a call of an operator registered in Python costs more than they do |
# | a loop through time, pieces of uneven length | a kernel | torch takes detours, in several passes (exercises 3 and 4) |
# | a kernel that gets `data_ptr()` | check type, device, strides; say how to go back | an address knows nothing, and nobody complains |
# | an operator | `custom_op`, `register_fake`, `register_autograd`, `opcheck` | then the compiler and autograd know it |
# | tiles | powers of two, a mask at each load and store | without it, neighbours are read and overwritten |
# | a sum or a maximum over a tile | the filler that changes nothing | padding takes part |
# | a test | sizes like 1, 33, 50; strides; the interpreter | 64 × 64 hides all these mistakes |
# | a stopwatch | a GPU | the interpreter's time says nothing |

# %%
verdicts("F32", "F33", "F34", "F35", "F36", "F37", "F38", "F39", "F40")

# %% [markdown]
# *F32* comes from a tutorial that its authors call deprecated, in favour of *F33*'s page. That page does not speak of
# speed: what we measured is what each costs.
#
# **Now you:** [the exercises of this chapter](../exercises/19_first_kernel/19_first_kernel.ipynb). A normalisation, a product
# with weights of one byte, a softmax over uneven pieces, a loop through time, and the best tile.
