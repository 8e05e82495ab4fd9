# %% [markdown]
# # 07 · Mixed precision
#
# A `float32` takes four bytes. Two bytes are often enough. That is half the memory, and on some hardware much more
# speed; on other hardware it is the other way round.
#
# IDs such as *B7* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, `costs`,
# `fewer` and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - say what `float16` and `bfloat16` can and cannot hold, and find the sum or update that goes wrong,
# - write a training step with `torch.amp.autocast` and, where it is needed, `torch.amp.GradScaler`,
# - find out whether two bytes pay on the machine that you have.
#
# **Time:** 50 minutes to read and run; 15 more for the part *Further*, which can be skipped. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *B7* "mixed precision takes less memory and is faster"; in *Further* *E3* "channels_last with
# mixed precision is 8 % to 35 % faster".

# %%
import copy
import platform
import warnings

import torch
import torch.nn.functional as F
from parts.bits import bits_of, draw_bits
from parts.half_types import instructions, result_types
from torch import nn

from autograder import article_code, compare, costs, devices, documented, fewer, guessed, picture, verdicts
from autograder.teaching.recall import recall

device = devices()[-1]
half = {"cpu": torch.bfloat16, "cuda": torch.float16, "mps": torch.float16}  # section 6 says why
if torch.cuda.is_bf16_supported(including_emulation=False):
    half["cuda"] = torch.bfloat16
print("devices here:", *devices())
recall("07", ..., ..., ...)

# %% [markdown]
# ## 1. Two ways to spend 16 bits
#
# A floating-point number has a sign, an exponent (how large?) and a fraction (how exactly?). `float16` and
# `bfloat16` have 16 bits for all three, and share them out differently. These are real bits:

# %%
figure, words = draw_bits(1001.3)
picture(figure, words)

# %% [markdown]
# `float16` spends its bits on **precision**, and ends at 65,504. `bfloat16` spends them on **range**: its exponent is
# that of `float32`. Its 16 bits are the upper half of a `float32`, rounded to the nearest.
#
# `view` reads the bits of a tensor as whole numbers; it copies nothing. So you can look for yourself:

# %%
for value in (1001.3, 1003.0):
    number = torch.tensor(value)
    upper = number.view(torch.int32) >> 16  # without the lower 16 bits
    rounded = number.bfloat16().view(torch.int16)
    print(f"{value}: upper half {upper.item():#x}, as bfloat16 {rounded.item():#x}", end=", ")
    print(f"which is {number.bfloat16().item():g}")
    assert rounded - upper == (value == 1003)  # 1003 is nearer to 1004 than to 1000
assert bits_of(torch.tensor(1001.3))[:16] == bits_of(torch.tensor(1001.3).bfloat16())

# %% [markdown]
# Now count up from 0 by ones, in `bfloat16`. Every step is rounded. At which number does the count stop growing?

# %%
guess = ...


# %%
def count(dtype):
    total = torch.zeros((), dtype=dtype)
    for _ in range(4000):
        total = total + 1
    return int(total)


ends = {dtype: count(dtype) for dtype in (torch.float16, torch.bfloat16)}
lines = (f"{dtype}: counting to 4000 ends at {end}" for dtype, end in ends.items())
guessed("the count in bfloat16 ends at", guess, ends[torch.bfloat16], *lines)

# %% [markdown]
# `bfloat16` has 8 significant bits: the 7 of the fraction, and a leading 1 that is not stored. So 257 has no place. It
# lies between 256 and 258, and what lies in the middle goes to the one whose last bit is 0: 256 again.
#
# Too large and too small look like this:

# %%
values = torch.tensor([70_000.0, 257.0, 259.0, 1e-8])
print("float32 ", values.tolist())
print("float16 ", values.half().tolist())
print("bfloat16", values.bfloat16().tolist())
assert (ends[torch.float16], ends[torch.bfloat16]) == (2048, 256)
assert values.half()[0].isinf() and values.half()[3] == 0
assert values.half()[1:3].tolist() == [257, 259] and values.bfloat16()[1:3].tolist() == [256, 260]
assert values.bfloat16()[0].isfinite() and values.bfloat16()[3] != 0

# %% [markdown]
# Keep the two failures in mind. **`float16` fails by range:** large values become `inf`, small ones become 0.
# **`bfloat16` fails by precision:** close values become equal.
#
# ## 2. Half the bytes
#
# Adding two tensors reads both and writes one. The arithmetic is nothing; the time goes into moving bytes. Eight million
# numbers (on a GPU 64 million, because its cache could hold eight): how many times as fast is it with two bytes each?

# %%
guess = ...
numbers = {"cpu": 8_000_000, "cuda": 64_000_000, "mps": 16_000_000}[device]


# %%
def two_tensors(generator, device):
    a, b = (torch.rand(1000, generator=generator).repeat(numbers // 1000).to(device) for _ in range(2))
    short = half[torch.device(device).type]
    return a, b, torch.ones_like(a), a.to(short), b.to(short), torch.ones_like(a, dtype=short)


adding = {
    "float32": lambda a, b, out, a2, b2, out2: torch.add(a, b, out=out),
    "16 bits": lambda a, b, out, a2, b2, out2: torch.add(a2, b2, out=out2),
}
compare(
    f"mixed precision: adding {numbers:,} numbers",
    adding,
    inputs=two_tensors,
    guess=guess,
    differ="16 bits round earlier",
    only=device,
    bytes=3 * 2 * numbers,
    because="prices",
)

# %% [markdown]
# **Why.** Eight million numbers of four bytes: 96 MB to move. Of two bytes: 48 MB, so the bytes predict 2; the *limit*
# line is for those. On the CPUs even 16 bits stay well above it, on an H200 they come near theirs (2.0×). (The card
# may predict more: it takes a byte of smaller tensors for cheaper, as in a cache.)
#
# ### A tensor that fits the cache
#
# Now 50,000 numbers. In `float32` the three tensors have 0.6 MB. How many times as fast are 16 bits here?

# %%
guess = ...

# %%
numbers = 50_000
compare(
    "mixed precision: adding 50,000 numbers",
    adding,
    inputs=two_tensors,
    guess=guess,
    differ="16 bits round earlier",
    only="cpu",
)

# %% [markdown]
# **When it does not help.** In the caches next to the core, bytes are no longer what takes the time. And CPUs mostly
# add in `float32`: each 16-bit number is converted, added, rounded and converted back.
#
# ## 3. Half the bytes, the same arithmetic
#
# Multiplying two matrices of 256 × 256 takes 33 million operations on 0.8 MB. Here the arithmetic takes the
# time. How many times as fast is `bfloat16`?

# %%
guess = ...


# %%
def on_device(generator, device):
    """The generator, or its like on a GPU: large inputs are made where they are used."""
    return generator if device == "cpu" else torch.Generator(device).manual_seed(generator.initial_seed())


def two_matrices(generator, device):
    """The same two matrices in three types."""
    side = 256 if device == "cpu" else 4096
    generator = on_device(generator, device)
    a, b = (torch.rand(side, side, generator=generator, device=device) for _ in range(2))
    return {dtype: (a.to(dtype), b.to(dtype)) for dtype in (torch.float32, torch.float16, torch.bfloat16)}


compare(
    "mixed precision: a product of two matrices, 256 × 256 (on a GPU 4096 × 4096)",
    {
        "float32": lambda pairs: torch.mm(*pairs[torch.float32]),
        "float16": lambda pairs: torch.mm(*pairs[torch.float16]),
        "bfloat16": lambda pairs: torch.mm(*pairs[torch.bfloat16]),
    },
    inputs=two_matrices,
    guess=guess,
    differ="16 bits round earlier",
)

# %% [markdown]
# **Why.** It depends on the instructions that the processor has; [oneDNN's
# list](https://uxlfoundation.github.io/oneDNN/dev_guide_data_types.html) says which for CPUs.
#
# - A GPU with tensor cores has them: for `float16`, and since 2020 (NVIDIA's Ampere) for `bfloat16` as well. On an H200
#   both are 17 times as fast as full `float32`. (Sizes in [multiples of 8](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/)
#   suit its units. From 2022 on they multiply FP8, too: `torch.float8_e4m3fn`, with scales that [torchao](https://github.com/pytorch/ao) keeps.)
# - A CPU with instructions for `bfloat16` (AVX-512 BF16, AMX; on ARM, BF16) gains with `bfloat16`. `float16` needs
#   instructions of its own: look at its lines. On a CPU, try `bfloat16` first.
# - Without them, torch's 16-bit routines compute in `float32`, and are slow: compare the lines of the recorded CPUs.
#
# Which kind is yours? Ask, and expect no answer on some systems:

# %%
print("processor:", platform.machine(), "· vector instructions used by torch:", end=" ")
print(torch.backends.cpu.get_cpu_capability())
print("for 16-bit arithmetic:", *sorted(instructions()) or ["none found"])
cpu_has_bfloat16 = bool({"amx_bf16", "avx512_bf16", "bf16", "sve_bf16"} & instructions())

# %% [markdown]
# A flag says what the processor can do, not what it gains, nor whether torch uses it for your operation. The
# measurement above is the answer that counts. When you get a new machine, run that cell first.
#
# ### One sample, many weights
#
# Now a layer of 2048 × 2048 weights, and a single input vector, as when a language model writes one word. Each weight is
# read once and used once: it is about bytes again. Three ways: `float32`; the same with *autocast*, which converts the
# weights when they are used (section 4); and weights stored in 16 bits. How many times as fast as `float32` is the last?

# %%
guess = ...


# %%
def large_layer(generator, device):
    weight = torch.rand(2048, 2048, generator=generator).to(device)
    vector = torch.rand(2048, generator=generator).to(device)
    short = half[torch.device(device).type]
    return weight, vector, weight.to(short), vector.to(short)


def with_autocast(weight, vector, *_):
    with torch.autocast(weight.device.type, dtype=half[weight.device.type]):
        return F.linear(vector, weight)


compare(
    "mixed precision: one sample through a layer of 2048 × 2048",
    {
        "float32": lambda weight, vector, *_: F.linear(vector, weight),
        "autocast": with_autocast,
        "weights stored in 16 bits": lambda w, v, weight, vector: F.linear(vector, weight),
    },
    inputs=large_layer,
    guess=guess,
    differ="16 bits round earlier",
    bytes=2 * 2048 * 2048,
    because="prices",
)

# %% [markdown]
# **Why.** Storing the weights in 16 bits halves the bytes. (Measured may be more: 16.8 MB are priced as if a cache held
# them.) On an H200 it is no faster, 0.82×: bytes do not set the pace there. Autocast first reads 16.8 MB of `float32`
# weights and writes 8.4 MB of 16-bit ones:

# %%
large = large_layer(torch.Generator().manual_seed(0), device)
converting, stored = costs(with_autocast, *large), costs(F.linear, large[3], large[2])
print(converting, stored, sep="\n\n")
assert (converting.copies, stored.copies) == (2, 0)

# %% [markdown]
# One layer used again and again is no model: its weights may wait in a cache, the short ones sooner. Eight in turn, 134 MB:


# %%
def in_turn(weights):
    def run(x):
        for weight in weights:
            x = F.linear(x.to(weight.dtype), weight)
        return x

    return run


layers = [torch.rand(2048, 2048) / 1024 for _ in range(8)]
compare(
    "mixed precision: one sample through eight layers of 2048 × 2048",
    {"float32": in_turn(layers), "weights stored in 16 bits": in_turn([one.bfloat16() for one in layers])},
    inputs=2048,
    differ="16 bits round earlier",
    only="cpu",
    because="prices",
)

# %% [markdown]
# **Why.** All weights come from memory now, and half the bytes are worth twice the speed, or less, where conversions
# take the time. What the single layer gained beyond that, it gained from the cache.
#
# So for *inference*, converting the weights once (`model.to(torch.bfloat16)`) saves memory, bytes and conversions. For
# *training* it does not do, as section 7 shows. That is what autocast is for.
#
# ## 4. What autocast does
#
# Inside `with torch.autocast(device_type):` each operation has its inputs converted to a type that suits it.
# Matrix products and convolutions get 16 bits. Some operations that need precision or range get `float32`.
# Most take what they are given. Your parameters stay as they are.

# %%
torch.manual_seed(0)
layer = nn.Linear(8, 4).to(device)
x = torch.randn(3, 8, device=device)

with torch.autocast(device, dtype=half[device]):
    hidden = layer(x)
    hidden.retain_grad()
    loss = hidden.float().square().mean()
loss.backward()

print("output", hidden.dtype, "· its gradient", hidden.grad.dtype)
print("weight", layer.weight.dtype, "· its gradient", layer.weight.grad.dtype)
assert hidden.dtype == hidden.grad.dtype == half[device]
assert layer.weight.dtype == layer.weight.grad.dtype == torch.float32

# %% [markdown]
# `backward()` stands outside the region: each operation's gradient uses the types that its forward pass had.
#
# Which operations stay in `float32`? The lists differ between CPU and GPU. Here are the types of results of some
# operations on a 16-bit `h`, with both lists. (Without a GPU, tensors without values stand in for the GPU's.)

# %%
types = {"cpu": result_types("cpu")}
try:
    types["cuda"] = result_types("cuda")
except (ImportError, RuntimeError, AssertionError) as error:
    print("the GPU's list cannot be shown here:", str(error).splitlines()[0][:80])

print(f"{'':26}", *(f"{name:10}" for name in types))
for name in types["cpu"]:
    print(f"{name:26}", *(f"{str(column[name]).removeprefix('torch.'):10}" for column in types.values()))
assert all(types["cpu"][name] == torch.float32 for name in ("cross_entropy", "mse_loss"))
assert all(types["cpu"][name] == torch.bfloat16 for name in ("h.softmax(-1)", "h.sum()", "layer_norm"))
if "cuda" in types:
    wide = ("h.softmax(-1)", "h.sum()", "layer_norm", "cross_entropy", "mse_loss", "h.exp()")
    assert all(types["cuda"][name] == torch.float32 for name in wide)

# %% [markdown]
# The losses are `float32` on both. **But `softmax`, `sum` and `layer_norm` are `float32` only on the GPU.** On the CPU
# they give 16 bits back. Code that relies on autocast for them gives other results when it moves. Ask for what you need:

# %%
with torch.autocast(device, half[device]):
    h = layer(x)
    probabilities = h.softmax(-1, dtype=torch.float32)
    total = h.sum(dtype=torch.float32)
    with torch.autocast(device, enabled=False):  # a region where nothing is converted for you
        scores = h.float() @ h.float().T
assert probabilities.dtype == total.dtype == scores.dtype == torch.float32

# %% [markdown]
# ### What the conversions cost
#
# A layer with weight and bias is used three times in one region, then in three regions. The input is converted each
# time. How many conversions are there in each case? And in one region under `no_grad`, or if the layer is frozen
# (`requires_grad_(False)`)? Work them out, then look.


# %%
def one_region():
    with torch.autocast(device, half[device]):
        return [layer(x) for _ in range(3)]


def three_regions():
    results = []
    for _ in range(3):
        with torch.autocast(device, half[device]):
            results.append(layer(x))
    return results


kept, anew = costs(one_region).copies, costs(three_regions).copies
with torch.no_grad():
    inferred = costs(one_region).copies
layer.requires_grad_(False)
frozen = costs(one_region).copies
layer.requires_grad_(True)
print(
    f"one region: {kept} conversions, under no_grad {inferred}, frozen layer {frozen} · three regions: {anew}"
)
assert kept == inferred == 3 + 2  # three times the input, once weight and bias
assert anew == frozen == 3 * 3

# %% [markdown]
# A parameter that requires a gradient is converted once in a region, also where no graph is made: the copy is kept until
# the region ends. A frozen one is converted at each use.
#
# ## 5. The recipe, then and now
#
# The article of *B7* imports `autocast` and `GradScaler` from `torch.cuda.amp`. Does this still work?

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    region = torch.cuda.amp.autocast()
    scaler = torch.cuda.amp.GradScaler()
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message!s}")

# %% [markdown]
# It is deprecated: it still runs, with a `FutureWarning`, and may be taken away. It also names one kind of device.
# Without a GPU it switches itself off, and everything runs in `float32`:

# %%
if not torch.cuda.is_available():
    with region:
        print("in the old region, without a GPU:", nn.Linear(2, 2)(torch.ones(1, 2)).dtype)
    assert not scaler.is_enabled()


def article_training():
    """The losses of 20 steps with what the article imports."""
    from torch.cuda.amp import GradScaler, autocast

    torch.manual_seed(0)
    model = nn.Linear(16, 4).to(device)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), GradScaler()
    x, losses = torch.randn(64, 16, device=device), []
    for _ in range(20):
        optimizer.zero_grad()
        with autocast():
            loss = F.cross_entropy(model(x), x[:, :4].argmax(-1))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


article_code(
    "B7",
    "A training with autocast and GradScaler from torch.cuda.amp, in which the loss must fall",
    article_training,
    right=lambda losses: losses[-1] < losses[0],
)

# %% [markdown]
# The mended recipe takes the device as an argument. A scaler that is switched off passes everything through, so
# one function serves `float16`, `bfloat16` and `float32`.


# %%
def train_step(model, optimizer, scaler, x, labels, dtype):
    """One training step in mixed precision; gives the loss."""
    optimizer.zero_grad()
    with torch.amp.autocast(x.device.type, dtype=dtype, enabled=dtype != torch.float32):
        loss = F.cross_entropy(model(x), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


with warnings.catch_warnings():
    warnings.simplefilter("error")  # nothing in it is deprecated
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler(device, enabled=dtype == torch.float16)
        x = torch.randn(64, 16, device=device)
        labels = x[:, :4].argmax(-1)
        losses = [train_step(model, optimizer, scaler, x, labels, dtype) for _ in range(60)]
        print(f"{dtype!s:15} loss {losses[0]:.3f} → {losses[-1]:.3f}")
        assert losses[-1] < 0.8 * losses[0]

# %% [markdown]
# The three arrive at about the same loss. What is the scaler for?
#
# ## 6. Why `float16` needs a scaler
#
# Gradients are often tiny, and `float16` rounds everything below 3e-8, half of its smallest number, to 0. We take a
# small network with a small loss and look at the gradient of the hidden layer. Half of its values are 0 in any type:
# that is the ReLU. What percentage is 0 in `float16`?

# %%
guess = ...


# %%
def hidden_gradient(dtype, scale=1.0):
    """Gradients of a small network, computed on the CPU: of the hidden layer, and of the first weights."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1024, 64, generator=generator)
    first = (torch.randn(64, 64, generator=generator) / 8).requires_grad_()
    second = torch.randn(64, 1, generator=generator) / 8
    with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
        hidden = x @ first
        hidden.retain_grad()
        output = hidden.relu() @ second
        loss = output.float().square().mean() * 2e-4
    (loss * scale).backward()
    return hidden.grad, first.grad / scale


def zeros_and_error(dtype, scale=1.0):
    hidden, weights = hidden_gradient(dtype, scale)
    _, exact = hidden_gradient(None)
    return (hidden == 0).float().mean().item(), ((weights - exact).norm() / exact.norm()).item()


cases = {
    "float32": (None, 1.0),
    "float16": (torch.float16, 1.0),
    "float16, scale 65536": (torch.float16, 65536.0),
    "bfloat16": (torch.bfloat16, 1.0),
}
found = {name: zeros_and_error(*case) for name, case in cases.items()}
guessed(
    "percent of the hidden gradients that are 0 in float16",
    guess,
    100 * found["float16"][0],
    *(
        f"{name:21} hidden gradients that are 0: {zeros:4.0%}   error of the weights' gradient: {error:.1%}"
        for name, (zeros, error) in found.items()
    ),
)

# %%
assert found["float16"][0] > found["float32"][0] + 0.2 and found["float16"][1] > 0.1
assert found["float16, scale 65536"][1] < 0.01 and found["bfloat16"][1] < 0.02
assert all(error > found["float32"][1] for name, (_, error) in found.items() if name != "float32")

# %% [markdown]
# **Why.** Most of the nonzero gradients were below half the smallest `float16`, and what became 0 is lost: nothing
# later in the backward pass brings it back. The mend is one multiplication. Multiply the *loss* by 65,536, and by the
# chain rule every gradient is 65,536 times as large; it now fits. Divide the weights' gradients, which are `float32`,
# by 65,536 at the end. `bfloat16` needs none of this: it has the range of `float32`.
#
# Which scale? Too small, and gradients vanish; too large, and they become `inf`. `GradScaler` finds it by trying. It
# starts at 65,536. A step with `inf` or `nan` in a gradient is **skipped**, and the scale is halved. After 2,000 good
# steps in a row the scale is doubled. Watch it with other numbers: a start at 4, doubled after 2 good steps.


# %%
def six_steps(fused):
    """Weight and scale after each of six steps, two of them with a bad gradient."""
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    history = []
    for gradient in (1.0, 1.0, float("inf"), 1.0, 1.0, float("nan")):
        optimizer.zero_grad()
        scaler.scale(weight * gradient).backward()
        scaler.step(optimizer)
        scaler.update()
        history.append((gradient, round(weight.item(), 3), scaler.get_scale()))
    return history


for gradient, weight, scale in six_steps(fused=False):
    print(f"gradient {gradient:3}   weight {weight}   next scale {scale:g}")
assert [scale for *_, scale in six_steps(fused=False)] == [4.0, 8.0, 4.0, 4.0, 8.0, 4.0]
scaler = torch.amp.GradScaler("cpu")
assert (scaler.get_scale(), scaler.get_growth_interval()) == (65536, 2000)

# %% [markdown]
# ### `bfloat16` first
#
# Where a device computes in `bfloat16`, try that first: no scaler, no skipped step, no overflow. Two things to know.
# Autocast's default on a GPU is `float16`, so name the dtype. And `torch.cuda.is_bf16_supported()` says yes to GPUs
# that only emulate `bfloat16`, such as the T4. With `including_emulation=False` it says yes to those that have
# instructions for it (NVIDIA since 2020). The first cell of this chapter asked so; without a GPU, `cuda` keeps `float16`.

# %%
for name, dtype in half.items():
    print(f"{name:5} autocast's default {torch.get_autocast_dtype(name)!s:15} this chapter's choice {dtype}")
assert torch.get_autocast_dtype("cuda") == torch.float16

# %% [markdown]
# ### What a scaler costs
#
# "Is there an `inf` in the gradients?" The answer is a value on the device. If Python asks for it, it waits: a *sync*
# (chapter 02). We count the syncs of a training step in `bfloat16`, and of one in `float16` with a scaler. One sync is
# that of `loss.item()`. How many more has the scaler?

# %%
guess = ...

# %%
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
x = torch.randn(64, 16)


def step_costs(dtype, fused):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
    step = model, optimizer, scaler, x, x[:, :4].argmax(-1), dtype
    train_step(*step)  # a scaler makes its scale in the first step
    return costs(train_step, *step)


counted = {
    name: step_costs(dtype, fused)
    for name, dtype, fused in (
        ("bfloat16", torch.bfloat16, False),
        ("float16 and a scaler", torch.float16, False),
        ("float16, a scaler, SGD(fused=True)", torch.float16, True),
    )
}
guessed(
    "syncs more with a scaler",
    guess,
    counted["float16 and a scaler"].syncs - counted["bfloat16"].syncs,
    *(
        f"{name:35} {cost.operations.total()} operations, syncs: {cost.syncs}"
        for name, cost in counted.items()
    ),
)

# %% [markdown]
# An ordinary optimizer is a row of Python calls, so Python must know whether to make them. A *fused* one is a single
# operation. It gets the answer as a tensor, and decides on the device whether the weights change. Whatever is decided
# by a tensor and not by an `if` needs no sync. It skips the same steps:

# %%
assert [cost.syncs for cost in counted.values()] == [1, 2, 1]
assert str(six_steps(fused=True)) == str(six_steps(fused=False))

# %% [markdown]
# ## 7. Sums and small updates
#
# Between operations everything is rounded to 16 bits. Inside *one* operation many sums are added in `float32` and
# rounded once, at the end. Many, not all. Four ways to add 4,000 ones in `bfloat16`, where the loop of section 1
# stopped at 256. In the last one a word occurs 4,000 times in a batch, and its gradient is the sum. (On a GPU even a
# product of matrices may round parts of its sums to 16 bits, unless you forbid it.)

# %%
for name in sorted({"cpu", "cuda"} & {*devices()}):
    with torch.device(name):
        ones, place = torch.ones(4000, dtype=torch.bfloat16), torch.zeros(4000, dtype=torch.int64)
        table, none = torch.zeros(1, 1).bfloat16().requires_grad_(), torch.zeros(1).bfloat16()
        F.embedding(place, table).sum().backward()
    added = ones.sum(), none.scatter_add(0, place, ones), none.index_add(0, place, ones), table.grad
    totals = [int(total) for total in added]
    print(f"{name}: sum, scatter_add, index_add, gradient of an embedding:", *totals)
    assert name != "cpu" or totals == [4000, 4000, 256, 256]
assert torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction  # False forbids it

# %% [markdown]
# That is the CPU's list. By torch's source, a GPU adds an embedding's gradient in `float32`, and each number of
# `scatter_add` and `index_add` to a 16-bit sum. The documentation promises neither. Use `float32` for all three.
#
# The result must fit, too. The mean of 70,000 ones in `float16` is 1. Their sum is not a `float16`:

# %%
ones = torch.ones(70_000, dtype=torch.float16)
sums = ones.sum(), ones.sum(dtype=torch.float32)
print(f"mean() {ones.mean():g}, sum() {sums[0]:g}, sum(dtype=torch.float32) {sums[1]:,.0f}")
assert ones.mean() == 1 and sums[0].isinf() and sums[1] == 70_000

# %% [markdown]
# Squares are the usual victims: 300² is already too large for `float16`. A norm by hand overflows, not so in `float32`:

# %%
x = torch.full((8,), 300.0, dtype=torch.float16)
by_hand = x / x.square().mean().sqrt()
in_between = (x.float() / x.float().square().mean().sqrt()).to(x.dtype)
print("by hand, all in float16: ", by_hand.tolist()[:3])
print("float32 in between:      ", in_between.tolist()[:3])
assert (by_hand == 0).all() and (in_between == 1).all()

# %% [markdown]
# Small *updates* vanish. That is why a model is not simply stored in `bfloat16` for training: the weight is 1,
# the step is 0.0001, and 1,000 steps change nothing.

# %%
updated = {}
for dtype in (torch.float32, torch.bfloat16):
    weight = torch.ones((), dtype=dtype)
    for _ in range(1000):
        weight -= 1e-4
    updated[dtype] = weight.item()
    print(f"{dtype!s:15} 1 − 1000 × 0.0001 = {weight.item():.4f}")
assert updated[torch.bfloat16] == 1.0 and abs(updated[torch.float32] - 0.9) < 1e-3

# %% [markdown]
# Autocast keeps the parameters, their gradients and the optimizer's state in `float32`, and computes the products
# with 16-bit copies. Hence the name *mixed*. (An exercise keeps what rounding drops, and gets along with 16-bit weights.)
#
# ## 8. Memory
#
# The forward pass keeps tensors for the backward pass. torch lets us count them. A network of four layers of
# 256, a batch of 4096: how many times fewer bytes are kept with autocast?

# %%
guess = ...


# %%
def kept_bytes(model, x, autocast):
    """Bytes that the forward pass keeps for the backward pass, parameters not counted: those exist anyway."""
    kept = {parameter.data_ptr(): None for parameter in model.parameters()}

    def keep(tensor):
        # Holding on to it, so that its memory is not used again.
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with hooks, torch.autocast(x.device.type, half[x.device.type], enabled=autocast):
        output = model(x)
    del output
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values() if tensor is not None)


def stack(width, layers=4):
    return nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())])


def kept_both(width, batch):
    """Bytes kept in float32 and with autocast; and both as text."""
    model, x = stack(width).to(device), torch.randn(batch, width, device=device)
    plain, mixed = (kept_bytes(model, x, autocast) for autocast in (False, True))
    return plain, mixed, f"float32 {plain / 1e6:.2f} MB, autocast {mixed / 1e6:.2f} MB."


plain, mixed, said = kept_both(256, 4096)
guessed("times fewer bytes kept, large batch", guess, plain / mixed, said)

# %% [markdown]
# ### Wide layers, a small batch
#
# The same kind of network with 1024 wide layers and a batch of 8. How many times fewer bytes now?

# %%
guess = ...

# %%
few_plain, few_mixed, said = kept_both(1024, 8)
guessed("times fewer bytes kept, wide layers", guess, few_plain / few_mixed, said)

# %% [markdown]
# **Why.** Autocast *adds* a copy of 2 bytes for each weight that the backward pass needs (not those of the first layer:
# its input requires no gradient), and saves 2 bytes for each activation that is kept. It pays where there are more
# activations than weights: large batches, long sequences, large pictures.

# %%
what, when = "bytes kept for the backward pass, layers of", "the batch is large"
fewer("B7", f"{what} 256, a batch of 4096", without=plain, following=mixed, when=when)
assert few_mixed > few_plain  # more weights than activations
fewer("B7", f"{what} 1024, a batch of 8", without=few_plain, following=few_mixed, unless=when)

# %% [markdown]
# Autocast never makes smaller what Adam trains: 16 bytes for each parameter ([chapter 17](17_training_memory.ipynb), section
# 2). For the four layers of 1024 that is 67 MB. Beside it, the 6 MB more that autocast keeps there are a tenth.
#
# ## 9. The time of a training step
#
# Forward and backward pass of a network of three layers, in `float32` and with autocast. The layers are 512 wide and
# the batch has 128 samples; on a GPU, 4096 and 8192. How many times as fast is autocast? (The title says what section 3
# found out about your CPU. Where `half` is `float16`, the loss is scaled.)

# %%
guess = ...


# %%
def network(width, classes=10):
    return nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes)
    )


scalers = {name: torch.amp.GradScaler(name, enabled=half[name] == torch.float16) for name in devices()}


def forward_backward(model, x, labels, autocast):
    place = x.device.type
    with torch.autocast(place, dtype=half[place], enabled=autocast):
        loss = F.cross_entropy(model(x), labels)
    (scalers[place].scale(loss) if autocast else loss).backward()
    for parameter in model.parameters():
        parameter.grad = None
    return loss.detach()


ways = {
    "float32": lambda model, x, labels: forward_backward(model, x, labels, False),
    "autocast": lambda model, x, labels: forward_backward(model, x, labels, True),
}


def batch_for(models, samples):
    """An inputs function: the model of the device, and a new batch for it."""

    def inputs(generator, device):
        model, generator = models[device], on_device(generator, device)
        x = torch.randn(samples, model[0].in_features, generator=generator, device=device)
        labels = torch.randint(model[-1].out_features, (samples,), generator=generator, device=device)
        return model, x, labels

    return inputs


medium_batch = batch_for({"cpu": network(512)}, 128)
if cpu_has_bfloat16:
    compare(
        "mixed precision: a training step of a wide network, 16-bit instructions",
        ways,
        inputs=medium_batch,
        guess=guess,
        claim="B7",
        differ="16 bits round earlier",
        only="cpu",
    )
else:
    compare(
        "mixed precision: a training step of a wide network, no 16-bit instructions",
        ways,
        inputs=medium_batch,
        guess=guess,
        claim="B7",
        differ="16 bits round earlier",
        only="cpu",
    )

compare(
    "mixed precision: a training step of a wide network, on a GPU",
    ways,
    inputs=batch_for({name: network(4096).to(name) for name in devices() if name == "cuda"}, 8192),
    guess=guess,
    claim="B7",
    differ="16 bits round earlier",
    only="cuda",
)

# %% [markdown]
# It follows the product of matrices in section 3: where 16-bit products are faster, the step can be. Where they are
# emulated, expect the opposite: *Further* has a training step on such a CPU, in its first and last table. (On a GPU the
# baseline matters as well: torch computes `float32` products in full `float32`, unless you allow it to shorten them.
# Against that an H200's step is 11 times as fast; TF32 alone makes a large product 7 times as fast there: chapter 05.)

# %%
assert torch.get_float32_matmul_precision() == "highest"

# %% [markdown]
# ### A tiny network
#
# 16 → 16 → 16 → 4, and 8 samples. How many times as fast is autocast now?

# %%
guess = ...

# %%
tiny_batch = batch_for({name: network(16, 4).to(name) for name in devices()}, 8)
compare(
    "mixed precision: a training step of a tiny network",
    ways,
    inputs=tiny_batch,
    guess=guess,
    claim="B7",
    differ="16 bits round earlier",
    because="prices",
)

# %%
tiny = tiny_batch(torch.Generator().manual_seed(0), device)
plain, mixed = (costs(way, *tiny) for way in ways.values())
print(f"float32  {plain.operations.total()} operations, {plain.copies} of them conversions")
print(f"autocast {mixed.operations.total()} operations, {mixed.copies} of them conversions")
assert mixed.operations.total() > 1.3 * plain.operations.total() and plain.copies == 0

# %% [markdown]
# **Why it does not help.** Each conversion is an operation of its own, forwards and backwards. Where an operation's start costs more
# than its arithmetic, more operations mean more time, on a GPU as on a CPU.
#
# ## Further
#
# You can skip this part. It is for those who clip gradients or normalise data in 16 bits, and for those who train
# convolutions on pictures and have read [chapter 06](06_memory_format.ipynb).
#
# ### Clipping: unscale first
#
# Until `scaler.step`, the gradients in `.grad` are the scaled ones. If you clip them, you clip the wrong numbers.
# `scaler.unscale_(optimizer)` divides them early; `step` then knows and does not divide again.

# %%
norms = {}
for unscale_first in (False, True):
    weight = nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale((weight * 0.25).sum()).backward()  # the true gradient has norm 0.5: nothing to clip at 1
    if unscale_first:
        scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_([weight], max_norm=1.0)
    before = weight.detach().clone()
    scaler.step(optimizer)
    norms[unscale_first] = (before - weight.detach()).norm().item()
    print(f"unscale_ first: {unscale_first!s:5}   length of the step: {norms[unscale_first]:.4f}")
assert norms[False] < 0.001 and abs(norms[True] - 0.5) < 1e-6

# %% [markdown]
# ### Small differences
#
# Small *differences* of large numbers are lost in `bfloat16`. A variance as "mean of squares minus square of
# the mean" subtracts two numbers that agree in their first digits:

# %%
x = (100 + torch.randn(10_000, generator=torch.Generator().manual_seed(0))).bfloat16()
wide = x.float()
print(f"variance in float32:                {wide.var().item():.3f}")
print(f"E[x²] − E[x]², rounded to bfloat16: {(x.square().mean() - x.mean().square()).item():.3f}")
print(f"x.var(), one operation:             {x.var().item():.3f}")
assert abs((x.square().mean() - x.mean().square()).item() - wide.var().item()) > 0.5
assert abs(x.var().item() - wide.var().item()) < 0.01

# %% [markdown]
# ### With channels_last
#
# An article says: channels_last with mixed precision is 8 % to 35 % faster, a ratio of 1.08 to 1.35. The
# figure comes from [PyTorch's tutorial](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html):
# 28 models on GPUs of the year 2017 (Volta), in `float16`. So a GPU decides. We measure the pair against mixed
# precision *without* channels_last, in `float16` on a GPU, and look at what `bfloat16` does on the CPU.

# %%
documented(
    "E3",
    "28 models on Volta GPUs gained 8 % to 35 %.",
    "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
)

# %% [markdown]
# The network is small: convolution, normalisation, ReLU, pooling, and again; forward and backward. First with 8
# channels and pictures of 112 × 112 (on a GPU 32 channels). How many times as fast is channels_last?

# %%
guess = ...


# %%
def convolutions(channels):
    def block():
        return [nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]

    return nn.Sequential(*block(), nn.MaxPool2d(2), *block(), nn.AdaptiveAvgPool2d(1))


def networks_and_pictures(shapes):
    """An inputs function: network and pictures in NCHW, then both in channels_last."""
    nchw = {name: convolutions(shapes[name][1]).to(name) for name in devices()}
    nhwc = {name: copy.deepcopy(net).to(memory_format=torch.channels_last) for name, net in nchw.items()}

    def inputs(generator, device):
        images = torch.rand(shapes[device], generator=on_device(generator, device), device=device)
        return nchw[device], images, nhwc[device], images.contiguous(memory_format=torch.channels_last)

    return inputs


article_half = {"cpu": torch.bfloat16, "cuda": torch.float16, "mps": torch.float16}


def step_on(net, images, autocast):
    with torch.autocast(images.device.type, dtype=article_half[images.device.type], enabled=autocast):
        output = net(images)
    output.float().sum().backward()
    for parameter in net.parameters():
        parameter.grad = None
    return output.detach()


mixed_pair = {
    "autocast, NCHW": lambda net, images, net2, images2: step_on(net, images, True),
    "autocast, channels_last": lambda net, images, net2, images2: step_on(net2, images2, True),
}
few_channels = networks_and_pictures(
    {"cpu": (2, 8, 112, 112), "cuda": (64, 32, 112, 112), "mps": (16, 32, 112, 112)}
)
compare(
    "mixed precision with channels_last: few channels, large pictures",
    mixed_pair,
    inputs=few_channels,
    guess=guess,
    claim="E3",
)

# %% [markdown]
# The two get along: autocast converts the type and keeps the memory format.

# %%
net, images = few_channels(torch.Generator().manual_seed(0), device)[2:]
with torch.autocast(device, dtype=half[device]):
    output = net[0](images)
assert output.dtype == half[device] and output.is_contiguous(memory_format=torch.channels_last)

# %% [markdown]
# Now the same network with 128 channels and pictures of 14 × 14 (on a GPU 512 channels), as in the later
# layers of a large model. How many times as fast is it now?

# %%
guess = ...

# %%
compare(
    "mixed precision with channels_last: many channels, small pictures",
    mixed_pair,
    inputs=networks_and_pictures(
        {"cpu": (2, 128, 14, 14), "cuda": (64, 512, 14, 14), "mps": (16, 512, 14, 14)}
    ),
    guess=guess,
    claim="E3",
    seconds=2.0,
)

# %% [markdown]
# Is a gain due to the pair, or to channels_last alone? The first network again, in `float32`. How many times as fast?

# %%
guess = ...

# %%
compare(
    "channels_last without mixed precision: few channels, large pictures",
    {
        "float32, NCHW": lambda net, images, net2, images2: step_on(net, images, False),
        "float32, channels_last": lambda net, images, net2, images2: step_on(net2, images2, False),
    },
    inputs=few_channels,
    guess=guess,
    seconds=2.0,
)

# %% [markdown]
# These are two small networks. A library of 796 vision models was trained with mixed precision on an RTX 3090, once
# with NCHW and once with channels_last, and others have published the like. How many times as fast is most of it?

# %%
guess = ...

# %%
from autograder import published

published("E3", guess)

# %% [markdown]
# What parts the two sides is the kind of model. The claim comes from 2020, from ResNets and their kin; it
# holds for *convolution*. Transformers and mixers (*attention*) have hardly a convolution, so there is little to gain. With
# group normalisation and other norms instead of batch normalisation (*norm*) more is lost than gained. *Grouped* convolutions
# lose in training with torch 1.12, and most gain in inference with later releases; which of the two makes the difference,
# these tables cannot say. (The last number of a row is the release. "Inference, 2.4" has an RTX 4090's models, too.)
#
# What about *B7*, mixed precision itself?

# %%
published("B7")

# %% [markdown]
# **Why.** Pooling and normalisation do little arithmetic; how their bytes lie in memory decides their time, in every type.
# The convolution's arithmetic for each number grows with the channels, so one expects less of the format where there are
# many. It is so on some of the CPUs, not on all. On a GPU with tensor cores a convolution itself may gain: that is where
# the figures of [torch's tutorial](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html) come from.
#
# And note what the ratio says: it compares autocast with autocast, and in `float32` channels_last gained, too: on an
# H200 as much, 1.9×. Lay the first table beside the last, and compare times; but they were measured at different moments,
# so believe large differences only. On the recorded CPU without instructions for `bfloat16` autocast cost much. With them
# it paid on one processor, in both formats. On another (AMD EPYC, AVX-512 BF16) it was slower than `float32` in NCHW, and
# in channels_last no slower: a little faster on one day, as fast on another. Measure yours.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** predict from bytes, flops *and* conversions; measure a whole step; verify that it learns.
#
# | you have | use | because |
# |---|---|---|
# | large products of matrices, a device that computes in `bfloat16` | `torch.amp.autocast(device, dtype=torch.bfloat16)` | range of `float32`: no scaler; fewer digits |
# | large products of matrices, an older GPU with tensor cores | `float16` and `torch.amp.GradScaler(device)` | small gradients become 0; a scaled loss keeps them |
# | gradient clipping and a scaler | `scaler.unscale_(optimizer)` first | until then the gradients are scaled |
# | a softmax, sum or norm on 16-bit values | `dtype=torch.float32`, `.float()` | range for squares and sums; CPU autocast does not do it for you |
# | `index_add`, `scatter_add`, the gradient of an embedding | `float32` | one or the other adds in 16 bits |
# | a CPU without instructions for the 16-bit type | `float32` for training | products are emulated, and slower |
# | inference that reads many weights for few samples | weights stored in 16 bits | half the bytes, no conversion in each call |
# | large weights and a small batch, or a tiny network | `float32` | the copies cost more than they save |
# | convolutions of few channels on a CPU | what is faster there | with instructions or without, autocast may lose (Further) |
# | `torch.cuda.amp` in old code | `torch.amp` | the old path is deprecated, and knows one device only |

# %%
verdicts("B7", "E3")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/07_mixed_precision/07_mixed_precision.ipynb). Among them: a
# loss scaler without a sync, and weights in 16 bits that lose nothing.
