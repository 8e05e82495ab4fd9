# %% [markdown]
# # Exercises 19 · A first kernel
#
# Three kernels in Triton, one loop in C++, and one question about tiles. Each is given in a version that is right, and
# takes more memory or more time than it must. Write a better one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. It tries every input in other memory layouts,
# too: that is what *any strides* means. `by_kernels` in a test makes sure that torch computes nothing there, and that a
# kernel is launched. `race` times your answer against the given version, on this machine, now.
# Hidden tests run when your notebook is graded: other shapes and other random numbers.
#
# Exercises 1 to 3 need Triton, and no GPU: the cell below switches its interpreter on, also where there is a GPU. Exercise
# 4 needs a C++ compiler. Where one is missing, these points are not counted against you. Exercise 5 needs neither.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell. Leave the
# inputs as they are. The chapter is [here](../../course/19_first_kernel.ipynb). 30 points, about 100 minutes.

# %% id="setup" role="given"
import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

import autograder
from autograder import costs
from autograder.judging.outcome import Outcome

if os.environ.get("TRITON_INTERPRET") != "1":
    os.environ["TRITON_INTERPRET"] = "1"
    # Torch may have imported Triton already. The interpreter needs it anew, except for its compiled part.
    for name in [name for name in sys.modules if name.split(".")[0] == "triton"]:
        if not name.startswith("triton._C"):
            del sys.modules[name]
try:
    triton, tl = import_module("triton"), import_module("triton.language")
    interpreter = import_module("triton.runtime.interpreter")
    if "int(self.handle.data)" in Path(interpreter.__file__).read_text(encoding="utf-8"):
        int(np.ones(1))  # older interpreters count on that, and NumPy refuses it from 2.4 on
except (ImportError, TypeError):
    triton = tl = None

compiler = shutil.which(shlex.split(os.environ.get("CXX") or "c++")[0])
libraries = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


TYPES = {
    "pointer": ctypes.c_void_p,
    "long long": ctypes.c_longlong,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}


def build(source, name, types):
    """The function ``name`` of a C++ source, which is declared extern "C" void; ``types`` of its arguments, by name."""
    place = Path(tempfile.mkdtemp(dir=libraries.name))
    (place / "source.cpp").write_text(source, encoding="utf-8")
    command = [compiler, "-O3", "-shared", "-fPIC", "source.cpp", "-o", "library.so"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip()[:2000])
    function = getattr(ctypes.CDLL(str(place / "library.so")), name)
    function.argtypes, function.restype = [TYPES[type] for type in types], None
    return function


# Operations of torch that compute nothing. The interpreter uses them, too.
PLUMBING = {
    f"aten.{name}"
    for name in ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "set_", "copy_")
} | {"aten._to_copy", "aten.detach", "aten.lift_fresh", "aten.resize_"}


def by_kernels(function):
    """The same function, which may not let torch compute, nor need half as much memory again as its results."""

    def call(*inputs):
        results = []
        cost = costs(lambda: results.append(function(*inputs)))
        if others := cost.operations.keys() - PLUMBING:
            raise RuntimeError(f"torch itself computed or copied something here: {', '.join(sorted(others))}")
        if not cost.operations["aten.set_"]:  # with it, the interpreter takes over the tensors of a launch
            raise RuntimeError("no kernel was launched here")
        tensors = results[0] if isinstance(results[0], (tuple, list)) else results
        most = 1.5 * sum(tensor.nbytes for tensor in tensors) + 1000
        # What lies on a GPU, the interpreter itself copies.
        if cost.peak_bytes > most and tensors[0].is_cpu:
            raise RuntimeError(f"{cost.peak_bytes:,} bytes of new memory at once: more than the results need")
        return results[0]

    return call


def not_here(points):
    sentence = "what this needs is not here (see the first cell); the points are not counted against you."
    return Outcome("not available", points, points, sentence).show()


def check(function, *, points, needs=True, **how):
    """autograder's check. Where what it needs is missing (None), its points are not counted against you."""
    return not_here(points) if needs is None else autograder.check(function, points=points, **how)


def race(function, *, points, needs=True, **how):
    """autograder's race, likewise."""
    return not_here(points) if needs is None else autograder.race(function, points=points, **how)


print("Triton:", triton.__version__ if triton else "none here", "· C++ compiler:", compiler or "none here")

# %% [markdown]
# ## 1. Add and normalise
#
# *Medium, 18 minutes.* In a transformer, the result of a layer is added to what came in, and the sum is normalised. Both
# are needed afterwards. The given version writes six tables. Write `add_layer_norm(x, residual, weight, bias, eps)` with
# one Triton kernel.
#
# - `x`, `residual`: `(N, D)`, `weight`, `bias`: `(D,)`, all `float32`, all on one device. Any strides. `N` and `D` are at
#   least 1, and `D` at most 5,000. `eps` is a number above 0.
# - The sum is `x + residual`. Each of its rows is normalised: minus its mean, divided by `sqrt(variance + eps)`, times
#   `weight`, plus `bias`. The variance is the mean of the squared differences from the mean.
# - returns: the normalised table and the sum, both `(N, D)`.
# - Rows may lie far from 0, such as 1,000 ± 1. The result must be right to three digits of its size there, too.
# - For all points, torch computes and copies nothing, and neither does NumPy: `empty` and views are all that you need of
#   torch. And at most 1.5 times the memory of the two results is new at once.


# %% id="add_layer_norm_given" role="given"
def add_layer_norm_slow(x, residual, weight, bias, eps):
    total = x + residual
    centred = total - total.mean(1, keepdim=True)
    variance = centred.square().mean(1, keepdim=True)
    return centred / torch.sqrt(variance + eps) * weight + bias, total


def norm_rows(rows, width, middle, generator, device):
    x, residual = torch.randn(2, rows, width, generator=generator)
    weight, bias = torch.rand(2, width, generator=generator) + 0.5
    return (x + middle).to(device), residual.to(device), weight.to(device), bias.to(device), 1e-5


def sixty_rows(generator, device):
    return norm_rows(60, 200, 0.5, generator, device)


def far_from_zero(generator, device):
    return norm_rows(3, 100, 1000.0, generator, device)


def one_row(generator, device):
    return norm_rows(1, 5, 0.0, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>One program takes one row, as in the chapter's softmax. It loads two rows, the
# weights and the bias, and stores two rows; each time with a mask.</details>
# <details><summary>Hint 2</summary>The places behind the end of the row hold what you say in <code>other</code>, and that
# is harmless in the first sum. What do they hold after the mean is subtracted?</details>
# <details><summary>Hint 3</summary>Rows of 8 numbers are right and rows of 5 are not? Then look at the divisor: the tile
# has more numbers than the row. Rows far from 0 are wrong? Look at which differences are squared.</details>
# <details><summary>Hint 4</summary>A tensor has two strides. In a transposed one it is the first that is 1, and in every
# second column of one none is.</details>


# %% id="add_layer_norm" role="answer"
def add_layer_norm(x, residual, weight, bias, eps):
    ### BEGIN SOLUTION
    result = torch.empty(2, *x.shape, device=x.device)
    norm_kernel[(len(x),)](
        x, residual, weight, bias, result[0], result[1], x.shape[1], eps,
        *x.stride(), *residual.stride(), weight.stride(0), bias.stride(0),
        TILE=triton.next_power_of_2(x.shape[1]),
    )  # fmt: skip
    return result[0], result[1]


if triton:

    @triton.jit
    def norm_kernel(
        x, residual, weight, bias, normal, total, width, eps, xr, xc, rr, rc, ws, bs, TILE: tl.constexpr
    ):
        row, place = tl.program_id(0), tl.arange(0, TILE)
        inside = place < width
        both = tl.load(x + row * xr + place * xc, mask=inside, other=0.0)
        both += tl.load(residual + row * rr + place * rc, mask=inside, other=0.0)
        away = tl.where(inside, both - tl.sum(both, axis=0) / width, 0.0)
        spread = tl.sqrt(tl.sum(away * away, axis=0) / width + eps)
        factor = tl.load(weight + place * ws, mask=inside, other=0.0)
        shift = tl.load(bias + place * bs, mask=inside, other=0.0)
        tl.store(total + row * width + place, both, mask=inside)
        tl.store(normal + row * width + place, away / spread * factor + shift, mask=inside)

    ### END SOLUTION


# %% id="add_layer_norm_check" role="test"
check(
    add_layer_norm,
    like=add_layer_norm_slow,
    on=[sixty_rows, far_from_zero, one_row],
    tolerance=1e-3,
    needs=triton,
    points=1,
)

# %% id="add_layer_norm_kernel" role="test"
check(by_kernels(add_layer_norm), like=add_layer_norm_slow, on=[sixty_rows, one_row], needs=triton, points=2)


# %% id="add_layer_norm_hidden" role="test"
# Hidden test: other widths, powers of two among them, a single number in a row. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def wide_rows(generator, device):
    return norm_rows(2, 4999, 3.0, generator, device)


def a_power_of_two(generator, device):
    return norm_rows(4, 64, 1000.0, generator, device)


def one_number(generator, device):
    return norm_rows(5, 1, 2.0, generator, device)


check(
    by_kernels(add_layer_norm),
    like=add_layer_norm_slow,
    on=[wide_rows, a_power_of_two, one_number, far_from_zero],
    tolerance=1e-3,
    needs=triton,
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Weights of one byte
#
# *Medium, 15 minutes.* A language model that writes one word at a time mostly waits for its weights. So they are kept as
# `int8`, with one factor for each output. The given version makes them `float32` again before it multiplies: all of
# them, each time. Write `int8_linear(x, weight, factors, bias)` with one Triton kernel, which does that tile by tile.
#
# - `x`: `(N, K)`, `float32`. `weight`: `(M, K)`, `int8`. `factors`, `bias`: `(M,)`, `float32`. All on one device. Any
#   strides, any sizes from 1 on.
# - returns: `x @ (weight * factors[:, None]).T + bias`, `(N, M)`, `float32`.
# - For all points, torch computes and copies nothing, and neither does NumPy. At most 1.5 times the memory of the result
#   is new at once: in the test (20 rows, 90 outputs of 250 inputs) the given version has 13 times as much.


# %% id="int8_linear_given" role="given"
def int8_linear_slow(x, weight, factors, bias):
    return x @ (weight * factors[:, None]).T + bias


def byte_weights(rows, outputs, inner, generator, device):
    x = torch.randn(rows, inner, generator=generator)
    weight = torch.randint(-127, 128, (outputs, inner), generator=generator).to(torch.int8)
    factors = (torch.rand(outputs, generator=generator) + 0.1) / 100
    bias = torch.randn(outputs, generator=generator)
    return x.to(device), weight.to(device), factors.to(device), bias.to(device)


def twenty_rows(generator, device):
    return byte_weights(20, 90, 250, generator, device)


def one_word(generator, device):
    return byte_weights(1, 33, 40, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter's tile of a product, with two changes: what is loaded from
# <code>weight</code> is no float yet; and something is left to do after the loop.</details>
# <details><summary>Hint 2</summary>The weights come as (outputs, inputs), and the product wants (inputs, outputs). No copy is
# needed for that: which stride belongs to which offset?</details>
# <details><summary>Hint 3</summary>A tile can be changed to another type with <code>.to(tl.float32)</code>.</details>
# <details><summary>Hint 4</summary>On which of the three indices, row, output and input, does a factor depend? So when is
# the best time for it?</details>


# %% id="int8_linear" role="answer"
def int8_linear(x, weight, factors, bias):
    ### BEGIN SOLUTION
    (rows, inner), outputs = x.shape, len(weight)
    result = torch.empty(rows, outputs, device=x.device)
    byte_kernel[(triton.cdiv(rows, 16), triton.cdiv(outputs, 32))](
        x, weight, factors, bias, result, rows, outputs, inner,
        *x.stride(), *weight.stride(), factors.stride(0), bias.stride(0),
        A=16, B=32, C=64,
    )  # fmt: skip
    return result


if triton:

    @triton.jit
    def byte_kernel(
        x, weight, factors, bias, result, rows, outputs, inner, xr, xc, wr, wc, fs, bs,
        A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
    ):  # fmt: skip
        row, output = tl.program_id(0) * A + tl.arange(0, A), tl.program_id(1) * B + tl.arange(0, B)
        sums = tl.zeros((A, B), dtype=tl.float32)
        for first in range(0, inner, C):
            k = first + tl.arange(0, C)
            left = tl.load(
                x + row[:, None] * xr + k[None, :] * xc,
                mask=(row[:, None] < rows) & (k[None, :] < inner),
                other=0.0,
            )
            right = tl.load(
                weight + output[None, :] * wr + k[:, None] * wc,
                mask=(output[None, :] < outputs) & (k[:, None] < inner),
                other=0,
            )
            sums += tl.dot(left, right.to(tl.float32), input_precision="ieee")
        there = output < outputs
        sums *= tl.load(factors + output * fs, mask=there, other=0.0)[None, :]
        sums += tl.load(bias + output * bs, mask=there, other=0.0)[None, :]
        tl.store(
            result + row[:, None] * outputs + output[None, :],
            sums,
            mask=(row[:, None] < rows) & there[None, :],
        )

    ### END SOLUTION


# %% id="int8_linear_check" role="test"
check(int8_linear, like=int8_linear_slow, on=[twenty_rows, one_word], needs=triton, points=1)

# %% id="int8_linear_kernel" role="test"
check(by_kernels(int8_linear), like=int8_linear_slow, on=[twenty_rows, one_word], needs=triton, points=3)


# %% id="int8_linear_hidden" role="test"
# Hidden test: other sizes, multiples of tiles and single numbers among them. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def multiples(generator, device):
    return byte_weights(32, 64, 128, generator, device)


def one_of_each(generator, device):
    return byte_weights(1, 1, 1, generator, device)


def many_rows(generator, device):
    return byte_weights(75, 17, 65, generator, device)


check(
    by_kernels(int8_linear),
    like=int8_linear_slow,
    on=[multiples, one_of_each, many_rows, one_word],
    needs=triton,
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Pieces of uneven length
#
# *Hard, 27 minutes.* In a graph, each node weighs its neighbours with a softmax, and has few of them or many. All scores
# stand in one long tensor, node after node. Torch's own ways take several passes, or nested tensors; the given version loops
# over the nodes.
# Write `piecewise_softmax(scores, starts)` with one Triton kernel, launched once.
#
# - `scores`: `(E,)`, `float32`. `starts`: `(P + 1,)`, `int64`, from 0 up to `E`, never falling. Both on one device, with any
#   strides. `P` and `E` are at least 1.
# - Piece `p` has the scores from `starts[p]` up to, and without, `starts[p + 1]`. It may be empty, and it may have several
#   thousand.
# - returns: a tensor like `scores`; in each piece the softmax of the piece's scores.
# - Scores may be large, such as 1,000, or all be small, such as -1,000.
# - For all points, torch computes and copies nothing, and neither does NumPy. So Python does not know how long the pieces
#   are: to ask for that would be a sync.


# %% id="piecewise_softmax_given" role="given"
def piecewise_softmax_slow(scores, starts):
    result = torch.empty_like(scores)
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        result[first:last] = torch.softmax(scores[first:last], 0)
    return result


def pieces_of(lengths, middle, generator, device):
    starts = torch.tensor([0, *lengths]).cumsum(0)
    scores = torch.randn(sum(lengths), generator=generator) * 3 + middle
    return scores.to(device), starts.to(device)


def uneven(generator, device):
    lengths = torch.randint(0, 40, (30,), generator=generator).tolist()
    return pieces_of([*lengths, 700, 0, 1], 0.0, generator, device)


def large_scores(generator, device):
    return pieces_of([5, 300, 2], 1000.0, generator, device)


def small_scores(generator, device):
    return pieces_of([0, 3, 200], -1000.0, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>One program takes one piece. The first thing that it loads is no score.</details>
# <details><summary>Hint 2</summary>A tile has a fixed size, and a piece has not. So the program walks over its piece tile by
# tile: a <code>range</code> in a kernel may have bounds that were loaded.</details>
# <details><summary>Hint 3</summary>Three walks are the simple way: one for the highest score, one for the sum, one to write.
# With the idea of chapter 16, section 3, the first two are one.</details>
# <details><summary>Hint 4</summary>A number that changes from one tile to the next begins as a number of the right type: a
# maximum as <code>float("-inf")</code>, a sum as <code>0.0</code>. (Of two of these, <code>tl.maximum</code> is the larger
# one.)</details>


# %% id="piecewise_softmax" role="answer"
def piecewise_softmax(scores, starts):
    ### BEGIN SOLUTION
    result = torch.empty(len(scores), device=scores.device)
    piece_kernel[(len(starts) - 1,)](scores, starts, result, scores.stride(0), starts.stride(0), TILE=128)
    return result


if triton:

    @triton.jit
    def piece_kernel(scores, starts, result, step, jump, TILE: tl.constexpr):
        start = tl.load(starts + tl.program_id(0) * jump)
        end = tl.load(starts + (tl.program_id(0) + 1) * jump)
        highest, total = float("-inf"), 0.0
        for first in range(start, end, TILE):
            place = first + tl.arange(0, TILE)
            tile = tl.load(scores + place * step, mask=place < end, other=float("-inf"))
            new = tl.maximum(highest, tl.max(tile, axis=0))
            total = total * tl.exp(highest - new) + tl.sum(tl.exp(tile - new), axis=0)
            highest = new
        for first in range(start, end, TILE):
            place = first + tl.arange(0, TILE)
            tile = tl.load(scores + place * step, mask=place < end, other=float("-inf"))
            tl.store(result + place, tl.exp(tile - highest) / total, mask=place < end)

    ### END SOLUTION


# %% id="piecewise_softmax_check" role="test"
check(
    piecewise_softmax,
    like=piecewise_softmax_slow,
    on=[uneven, large_scores, small_scores],
    needs=triton,
    points=1,
)

# %% id="piecewise_softmax_kernel" role="test"
check(
    by_kernels(piecewise_softmax),
    like=piecewise_softmax_slow,
    on=[uneven, large_scores, small_scores],
    needs=triton,
    points=2,
)


# %% id="piecewise_softmax_hidden" role="test"
# Hidden test: a single score, a single long piece, many empty ones. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_score(generator, device):
    return pieces_of([1], 0.0, generator, device)


def one_long_piece(generator, device):
    return pieces_of([5003], 1000.0, generator, device)


def mostly_empty(generator, device):
    return pieces_of([0, 0, 128, 0, 129, 0, 256, 0], -1000.0, generator, device)


check(
    by_kernels(piecewise_softmax),
    like=piecewise_softmax_slow,
    on=[one_score, one_long_piece, mostly_empty, uneven],
    needs=triton,
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. A loop through time
#
# *Medium, 20 minutes.* In reinforcement learning, the *advantage* of a step depends on that of the next one. So the given
# version goes backwards through time, some calls for each step. Write `advantages(rewards, values, done, gamma, decay)`,
# with a loop in C++. `build(source, name, types)`, from the first cell, compiles a source and gives the function of this
# name; `types` are those of its arguments, such as `["pointer", "long long", "float"]` (or `"double"`). A tensor goes to a
# pointer as `x.data_ptr()`, as in the chapter.
#
# - `rewards`: `(T, N)`, `values`: `(T + 1, N)`, `float32`. `done`: `(T, N)`, `bool`. All on the CPU, with any strides. `T` and
#   `N` are at least 1. `gamma` and `decay` are numbers from 0 to 1.
# - For each of the `N` columns, from the last step to the first: `goes_on` is 0 where `done`, else 1;
#   `surprise = rewards[t] + gamma * goes_on * values[t + 1] - values[t]`;
#   `advantage[t] = surprise + gamma * decay * goes_on * advantage[t + 1]`, where that of the step behind the last is 0.
# - returns: the advantages, `(T, N)`, `float32`.
# - In the race: 256 steps of 32 columns; 40 times as fast as given for all points.


# %% id="advantages_given" role="given"
def advantages_slow(rewards, values, done, gamma, decay):
    result, following = torch.empty_like(rewards), torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        goes_on = 1 - done[t].float()
        surprise = rewards[t] + gamma * goes_on * values[t + 1] - values[t]
        following = surprise + gamma * decay * goes_on * following
        result[t] = following
    return result


def played(steps, columns, ends, generator, device):
    rewards = torch.randn(steps, columns, generator=generator)
    values = torch.randn(steps + 1, columns, generator=generator)
    done = torch.rand(steps, columns, generator=generator) < ends
    return rewards, values, done, 0.99, 0.95


def many_steps(generator, device):
    return played(256, 32, 0.02, generator, device)


def few_steps(generator, device):
    return played(7, 3, 0.3, generator, device)


def one_step(generator, device):
    return played(1, 1, 0.5, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Compile when the cell runs, not when the function is called. And let the types that you
# name be those of the C++ function, one for one.</details>
# <details><summary>Hint 2</summary>A C++ function that gets an address counts numbers from there, one after the other. Which
# tensors does it understand? And how large is one <code>bool</code> of torch? A copy that no
# name holds is gone before the function begins (section 2).</details>
# <details><summary>Hint 3</summary>Two loops. With the columns in the inner one, the program reads memory in its order, and
# the compiler can treat several columns at once. The advantages of the next step are a row of the result already.</details>


# %% id="advantages" role="answer"
def advantages(rewards, values, done, gamma, decay):
    ### BEGIN SOLUTION
    rewards, values, done = rewards.contiguous(), values.contiguous(), done.contiguous()
    result = torch.empty(rewards.shape)
    backwards(
        rewards.data_ptr(),
        values.data_ptr(),
        done.data_ptr(),
        result.data_ptr(),
        *rewards.shape,
        gamma,
        decay,
    )
    return result


if compiler:
    backwards = build(
        """
    extern "C" void backwards(const float* rewards, const float* values, const bool* done, float* result,
                              long long steps, long long columns, float gamma, float decay) {
      for (long long t = steps - 1; t >= 0; t--)
        for (long long n = 0; n < columns; n++) {
          long long here = t * columns + n;
          float goes_on = done[here] ? 0.0f : gamma;
          float next = t + 1 < steps ? result[here + columns] : 0.0f;
          result[here] = rewards[here] + goes_on * values[here + columns] - values[here] + decay * goes_on * next;
        }
    }
    """,
        "backwards",
        ["pointer"] * 4 + ["long long"] * 2 + ["float"] * 2,
    )
    ### END SOLUTION


# %% id="advantages_check" role="test"
check(advantages, like=advantages_slow, on=[many_steps, few_steps, one_step], needs=compiler, points=1)


# %% id="advantages_hidden" role="test"
# Hidden test: other numbers of steps and columns; every step the last, none the last. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def never_done(generator, device):
    return (*played(50, 9, 0, generator, device)[:3], 1.0, 0.5)


def always_done(generator, device):
    return played(6, 20, 2, generator, device)


def one_column(generator, device):
    return (*played(300, 1, 0.1, generator, device)[:3], 0.9, 1.0)


check(
    advantages,
    like=advantages_slow,
    on=[never_done, always_done, one_column, few_steps],
    needs=compiler,
    points=2,
)
### END HIDDEN TESTS

# %% id="advantages_race" role="test"
race(advantages, against=advantages_slow, on=many_steps, at_least={"cpu": 40}, needs=compiler, points=3)

# %% [markdown]
# ## 5. The best tile
#
# *Medium, 10 minutes.* How large should the tiles of a matrix product be? The larger, the less is loaded, and the
# less space is left. The given version tries all tiles, and counts for each of its programs what that loads. Write
# `best_tile(rows, columns, inner, space)`.
#
# - A product of `(rows, inner)` by `(inner, columns)`; all are integers from 1 on. A tile has `a` rows and `b` columns of the
#   result; both are powers of two from 16 to 256. A program walks over `inner` in steps of 32.
# - A program needs space for its tile of the result and for one step of both factors: `a * b + 32 * (a + b)` numbers. That
#   may be at most `space`, an integer.
# - It loads what exists of its rows and of its columns, and nothing that a mask leaves out.
# - returns: the tuple `(a, b, loaded)` of the tile that fits and loads the fewest numbers, with this sum over all programs.
#   Among equal ones it is the one with fewer programs; and among these the one with the smaller `a`, then the smaller `b`.
# - Where no tile fits, raise a `ValueError`.
# - In the race: 60 times as fast as given for all points.


# %% id="best_tile_given" role="given"
def best_tile_slow(rows, columns, inner, space):
    found = []
    for a in (16, 32, 64, 128, 256):
        for b in (16, 32, 64, 128, 256):
            if a * b + 32 * (a + b) > space:
                continue
            loaded = programs = 0
            for top in range(0, rows, a):
                for left in range(0, columns, b):
                    for first in range(0, inner, 32):
                        step = min(32, inner - first)
                        loaded += min(a, rows - top) * step + step * min(b, columns - left)
                    programs += 1
            found.append((loaded, programs, a, b))
    if not found:
        raise ValueError("no tile fits")
    loaded, programs, a, b = min(found)
    return a, b, loaded


def some_product(generator, device):
    rows, columns = torch.randint(500, 900, (2,), generator=generator).tolist()
    space = torch.randint(4_000, 20_000, (1,), generator=generator).item()
    return rows, columns, 100, space


def small_product(generator, device):
    rows, columns, inner = torch.randint(1, 70, (3,), generator=generator).tolist()
    return rows, columns, inner, 100_000


def too_small(generator, device):
    return 100, 100, 100, 1279


# %% [markdown]
# <details><summary>Hint 1</summary>Take one number of the left factor. Which programs load it, and how many are
# these?</details>
# <details><summary>Hint 2</summary>All numbers of the left factor are loaded equally often; those of the right factor,
# too. So nothing has to be added up.</details>
# <details><summary>Hint 3</summary>Do not trust a formula that divides without rounding: try it with 17 rows.</details>


# %% id="best_tile" role="answer"
def best_tile(rows, columns, inner, space):
    ### BEGIN SOLUTION
    best = None
    for a in (16, 32, 64, 128, 256):
        down = -(-rows // a)
        for b in (16, 32, 64, 128, 256):
            if a * b + 32 * (a + b) <= space:
                across = -(-columns // b)
                one = ((rows * across + columns * down) * inner, down * across, a, b)
                if best is None or one < best:
                    best = one
    if best is None:
        raise ValueError("no tile fits into this space")
    return best[2], best[3], best[0]
    ### END SOLUTION


# %% id="best_tile_check" role="test"
check(best_tile, like=best_tile_slow, on=[some_product, small_product], points=1)


# %% id="best_tile_hidden" role="test"
# Hidden test: products of all shapes; space for everything, or for the smallest tile only. 2 points, when your notebook is
# graded.
### BEGIN HIDDEN TESTS
def narrow(generator, device):
    return 1000, 3, 65, 9_000


def just_enough(generator, device):
    return 100, 33, 17, 1280


def ties(generator, device):
    return 16, 16, 5, 1_000_000


def long_product(generator, device):
    rows, columns, inner = torch.randint(100, 700, (3,), generator=generator).tolist()
    return rows, columns, inner, 6_000


check(
    best_tile,
    like=best_tile_slow,
    on=[narrow, just_enough, ties, long_product, small_product, some_product],
    points=2,
)
### END HIDDEN TESTS

# %% id="best_tile_refuses" role="test"
check(best_tile, like=best_tile_slow, on=too_small, raises=ValueError, points=1)

# %% id="best_tile_race" role="test"
race(best_tile, against=best_tile_slow, on=some_product, at_least={"cpu": 60}, points=2)

# %% [markdown]
# ## 6. Foretell the costs
#
# *Easy, 10 minutes.* Three functions: two are of earlier chapters, the last is of this one. Each gets `x`, a
# tensor of `float32` with the shape `(n, d)`, whose numbers are all 2. Write `foretold(n, d)`, which says what
# `costs` counts then.
#
# - `n`, `d`: integers from 2 on.
# - returns: a dict with the names of the three functions. Each value is a dict of three integers: `"operations"` (views
#   are not counted), `"bytes"` of all new tensors together, and `"syncs"`, where the host would wait for a GPU.
# - `foretold` asks torch for nothing.


# %% id="foretold_given" role="given"
def some_rows(x):
    order = torch.randperm(len(x))
    return x[order[:2]].double()


def moments(x):
    first, second = torch.zeros_like(x), torch.zeros_like(x)
    return first.lerp_(x, 0.1), second.addcmul_(x, x)


def normalised(x):
    x = x - x.mean(1, keepdim=True)
    return x * (x.square().mean(1, keepdim=True) + 1e-5).rsqrt()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (some_rows, moments, normalised)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>some_rows</code> is of chapter 14, <code>moments</code> is of chapter 17,
# <code>normalised</code> is of chapter 19.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(normalised, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "some_rows": {"operations": 3, "bytes": 8 * n + 8 * d + 16 * d, "syncs": 0},
        "moments": {"operations": 4, "bytes": 8 * n * d, "syncs": 0},
        "normalised": {"operations": 7, "bytes": 12 * n * d + 16 * n, "syncs": 0},
    }
    ### END SOLUTION


# %% id="foretold_check" role="test"
check(foretold, like=counted, on=[any_size, any_size], at_most={"operations": 0}, points=1)


# %% id="foretold_hidden" role="test"
# Hidden test: long and narrow, short and wide. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def narrow(generator, device):
    return 200 + any_size(generator, device)[0], 2


def wide(generator, device):
    return 2, 200 + any_size(generator, device)[0]


check(foretold, like=counted, on=[narrow, wide, any_size], at_most={"operations": 0}, points=1)
### END HIDDEN TESTS
