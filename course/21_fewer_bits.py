# %% [markdown]
# # 21 · Fewer bits
#
# A weight has 32 bits, and a trained model rarely needs them all. In 8 bits or in 4 it takes a quarter of the memory,
# or an eighth. What does that do to the results, and to the time? Less memory is sure, less time is not: there
# are cases in which 8 bits are faster and others in which they are slower, and this chapter says what parts them.
#
# The course measures the claims of five widely read articles, and here those of PyTorch, of torchao and of libraries
# that serve models; their *F* numbers are listed in [the score](claims.ipynb). `compare`, `costs` and `guess` are
# explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - turn floats into whole numbers with a scale and back, pack two of 4 bits into a byte, and foretell the error,
# - say whose scale it should be, and what one large weight does to all others,
# - say when int8 is faster than float32, when it is slower, and take the reason away,
# - read what a float8 format can hold, and keep a sum from standing still in it,
# - count what a cache of keys and values saves with fewer bits, and what that does to the likelihood.
#
# **Time:** 55 minutes to read and run, 15 more for the part Further. **Needs:** CPU, GPU if any. Section 7 needs
# torchao: `pip install torchao`, or the course's extra `bits`; without it, the section says so and the others go on.
# Chapter 20 says what a cache of keys and values is.
#
# **Claims tested:** *F54* "a 4x reduction in the model size"; *F55* "2 to 4 times faster compared to FP32 compute";
# *F56* dynamic quantization where "loading weights from memory" takes the time; *F57* "will be removed in 2.10"; *F58*
# "better accuracy than weight-only"; *F59* "symmetric-per-channel quantization provides better accuracies"; *F60*
# E4M3's "dynamic range (±240.0)"; *F62* a cache in fewer bits has "minimal impact on quality"; *F63* it "can be
# extremely slow if dequantization is not fused"; in *Further* *F61* gradients "are best stored using E5M2".

# %%
import copy
import functools
import importlib.util
import logging
import timeit
import warnings
from statistics import mean

import torch
import torch.nn.functional as F
from parts.inputs import normal
from parts.letters import NUMBERS, TEXT, Writer, loss, taught
from parts.quantized import bytes_of, draw_losses, draw_steps, dynamic, has_vnni, product_times
from torch import nn

from autograder import behaviour, compare, costs, devices, fewer, guessed, recall, verdicts, without

warnings.filterwarnings("ignore", message="torch.quantize_per|.*qnnpack")  # deprecated, and its ranges
torch.set_num_threads(1)
attend = F.scaled_dot_product_attention
print("devices here:", *devices(), "· torch", torch.__version__)
print("vector instructions:", torch.backends.cpu.get_cpu_capability(), end="; ")
print("for products of int8 (VNNI or AMX):", "yes" if has_vnni() else "torch knows of none")
recall("21", ..., ..., ...)

# %% [markdown]
# ## 1. By hand
#
# **Quantising** makes whole numbers of floats: divide by a **scale**, round, and keep the scale. The largest weight
# becomes the largest number that the bits allow: 127 with 8 bits.


# %%
def quantized(weights, bits=8, dim=()):
    """Whole numbers, and their scale: one for all, or one for each slice along ``dim``."""
    most = 2 ** (bits - 1) - 1
    scale = (weights.abs().amax(dim, keepdim=True) / most).clamp(min=1e-12)
    return (weights / scale).round().clamp(-most, most).to(torch.int8), scale


def error(one, other):
    """How far two tensors are apart (root mean square), as a share of the second one's size."""
    return ((one - other).square().mean() / other.square().mean()).sqrt().item()


torch.manual_seed(21)
weights = torch.randn(512, 512)
numbers, scale = quantized(weights)
restored = numbers * scale  # dequantized
print("weights", weights[0, :4].tolist(), "\nnumbers", numbers[0, :4].tolist())
largest = (restored - weights).abs().max() / scale
print(f"the largest error is {largest.item():.2f} of a step; the error is {error(restored, weights):.2%}")
assert largest <= 0.5001

# %% [markdown]
# No error is larger than half a step, and a step is as large as the scale. So the error is a matter of the largest
# weight and of the bits. How many times as large is it with 4 bits?

# %%
guess = ...

# %%
errors = {}
for bits in (8, 6, 4, 3, 2):
    numbers, scale = quantized(weights, bits)
    errors[bits] = error(numbers * scale, weights)
lines = [f"{bits} bits: {2**bits - 1:3} numbers, error {found:.2%}" for bits, found in errors.items()]
guessed("times the error of 8 bits", guess, errors[4] / errors[8], *lines)

# %%
assert 0.9 < errors[4] / errors[8] / (127 / 7) < 1.1 and errors[2] < 1

# %% [markdown]
# **Why.** The largest weight is 127 steps with 8 bits and 7 with 4: 18 times as wide a step. Each bit less about doubles
# the error, as long as there are steps to speak of.


# %%
def with_zero_point(x, bits=8):
    """Whole numbers from 0 on, their scale, and the number that stands for 0."""
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    scale = (high - low) / (2**bits - 1)
    zero = (-low / scale).round()
    return ((x / scale).round() + zero).clamp(0, 2**bits - 1).to(torch.uint8), scale, zero


positive = torch.randn(512, 512).relu()
numbers, scale = quantized(positive)
moved, step, zero = with_zero_point(positive)
both = error(numbers * scale, positive), error((moved - zero) * step, positive)
print(f"after a ReLU: {numbers.min()} to {numbers.max()}, error {both[0]:.2%}")
print(f"with a zero point: {moved.min()} to {moved.max()}, error {both[1]:.2%}")
assert 1.8 < both[0] / both[1] < 2.2

# %% [markdown]
# What comes out of a ReLU is never negative, so half of the numbers stay unused, and the error is twice as large as it
# need be. A **zero point** mends that: a whole number that stands for 0, which stays exact. Weights mostly lie on both
# sides of 0, and do without one: a product of numbers with zero points has three terms more.
#
# ### Two in a byte
#
# The smallest whole numbers that torch computes with take a byte, so two numbers of 4 bits are packed into one. To keep
# the error small, each group of 32 weights has a scale of its own, in 16 bits. How many bits does a weight take then?

# %%
guess = ...


# %%
def packed(numbers):
    """Two whole numbers from -8 to 7 in each byte; rows of even length."""
    low, high = (numbers & 15).view(torch.uint8).unflatten(1, (-1, 2)).unbind(2)
    return low | (high << 4)


def unpacked(pairs):
    """The numbers that ``packed`` has packed, as int8."""
    nibbles = torch.stack([pairs & 15, pairs >> 4], 2).flatten(1).view(torch.int8)
    return (nibbles ^ 8) - 8  # the fourth bit is the sign


groups, group_scales = quantized(weights.unflatten(1, (-1, 32)), bits=4, dim=2)
pairs, group_scales = packed(groups.flatten(1)), group_scales.half()
taken = 8 * (pairs.nbytes + group_scales.nbytes) / weights.numel()
back = (unpacked(pairs).unflatten(1, (-1, 32)) * group_scales.float()).flatten(1)
lines = (
    f"{pairs.nbytes:,} bytes of pairs, {group_scales.nbytes:,} of scales, {weights.nbytes:,} as float32",
    f"error with a scale for 32: {error(back, weights):.2%}; with one for all: {errors[4]:.2%}",
)
guessed("bits a weight", guess, taken, *lines)

# %%
assert torch.equal(unpacked(pairs), groups.flatten(1)) and error(back, weights) < errors[4]

# %% [markdown]
# The scale costs half a bit for each weight, and halves the error, which is worth a whole one. With smaller groups the
# error is smaller, and there are more scales. Real formats are such a bargain: torchao has groups of 32 to 256.

# %% [markdown]
# ## 2. Whose scale is it?
#
# Here is the small language model of chapter 20, with two layers, that has learnt a few texts. We round its weights
# (those of its `Linear` layers) and look at the loss: minus the logarithm of the likelihood that it gives to the next
# letter. (Rounded and turned back into floats, which is called *fake quantisation*: it shows the error and saves
# nothing.)

# %%
torch.manual_seed(21)
writer = taught(64, layers=2, steps=900)
FLOAT_LOSS = loss(writer)
print(f"{len(TEXT)} letters; loss {FLOAT_LOSS:.3f}")


# %%
def rounded(weights, bits, each):
    """What so many bits can hold of weights, with a scale for each "tensor", "row" or "group" of 16."""
    slices = weights.unflatten(1, (-1, 16)) if each == "group" else weights
    numbers, scale = quantized(slices, bits, () if each == "tensor" else -1)
    return (numbers * scale).view_as(weights)


def loss_with(model, bits, each):
    """The loss of a copy of the model with rounded weights."""
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.weight.copy_(rounded(layer.weight, bits, each))
    return loss(model)


# %% [markdown]
# Each output of a layer has its row of weights, its **channel**. One scale for the whole tensor, one for each row (*per
# channel*), or one for each group of 16. Down to how many bits does the loss rise by less than 0.05, with a scale for
# each row?

# %%
guess = ...

# %%
BITS = (8, 7, 6, 5, 4, 3, 2)
losses = {each: {bits: loss_with(writer, bits, each) for bits in BITS} for each in ("tensor", "row", "group")}
fine = min(bits for bits in BITS if losses["row"][bits] < FLOAT_LOSS + 0.05)
lines = [
    f"a scale for each {each:6}: " + ", ".join(f"{bits} bits {value:.3f}" for bits, value in line.items())
    for each, line in losses.items()
]
guessed("bits that are enough", guess, fine, *lines, drawing=draw_losses(losses, FLOAT_LOSS))

# %%
assert losses["row"][8] < FLOAT_LOSS + 0.05 < losses["tensor"][2]

# %% [markdown]
# Not the number of bits is astonishing, but how suddenly the loss rises: as long as the errors of many weights average
# out, they hardly count. So measure the loss of your model and do not look at errors of weights alone.
#
# ### An outlier, put in and taken out
#
# PyTorch's blog: "For weights quantization, symmetric-per-channel quantization provides better accuracies; per-tensor
# quantization performs poorly" (*F59*). Here its reason: [large models](https://arxiv.org/abs/2208.07339) have a few
# features that are many times as large as the rest. We put some in that *change nothing* in floats. First a row: one
# hidden unit whose output nobody reads (its way out is 0) gets weights that are 128 times as large. Then a column: a
# feature comes out of the LayerNorm 128 times smaller, and all weights that read it are 128 times larger.


# %%
def with_outliers(model, where, factor=128.0):
    """A copy with large weights in one "row" or one "column" of each layer; in floats it does the same."""
    model = copy.deepcopy(model)
    for layer in model.layers:
        layer.narrow.weight[:, 3] = 0
        if where == "row":
            layer.widen.weight[3] *= factor
        elif where == "column":
            for norm, reader in ((layer.before, layer.inward), (layer.between, layer.widen)):
                norm.weight[5] /= factor
                norm.bias[5] /= factor
                reader.weight[:, 5] *= factor
    return model


# %% [markdown]
# With 8 bits, a scale for each row: how much does the outlying *column* add to the loss, compared with the outlying
# *row* ("more", "less" or "the same")?

# %%
guess = ...

# %%
table, rises = [], {}
for where in ("nowhere", "row", "column"):
    model = with_outliers(writer, where)
    found = {each: loss_with(model, 8, each) for each in ("tensor", "row", "group")}
    rises[where] = {each: value - loss(model) for each, value in found.items()}
    table.append(f"{where:8} floats {loss(model):.3f}; ")
    table[-1] += ", ".join(f"a scale for each {each} {value:.3f}" for each, value in found.items())
apart = rises["column"]["row"] - rises["row"]["row"]
word = "the same" if abs(apart) < 0.005 else "more" if apart > 0 else "less"
guessed("the column adds", guess, word, *table)

# %%
assert abs(loss(with_outliers(writer, "row")) - loss(with_outliers(writer, "column"))) < 0.01
assert rises["nowhere"]["tensor"] < 0.01 < rises["row"]["tensor"] and rises["row"]["row"] < 0.01
assert max(0.01, rises["column"]["group"]) < rises["column"]["row"]
for where in ("row", "column"):
    sentence = f"With a large {where}, a scale for each row gives a lower loss than one for the tensor."
    behaviour("F59", sentence, rises[where]["row"] < rises[where]["tensor"])

# %% [markdown]
# **Why.** One large weight makes the step wide for all that share its scale. Without it ("nowhere") the loss is that of
# the floats again. A row with its own scale keeps its outlier to itself. A column has one weight in *every* row: a
# scale for each row is still the better one, since no row's is larger than the tensor's, but no row is spared. Groups
# help there: only the group with that column pays.

# %% [markdown]
# ## 3. The bytes
#
# "PyTorch supports INT8 quantization compared to typical FP32 models allowing for a 4x reduction in the model size"
# (*F54*). A file with the numbers and a scale for each row, in the place of the weights of all `Linear` layers: how
# many times smaller is it for a model of 4 layers that knows 30,000 words?

# %%
guess = ...


# %%
def in_int8(model):
    """What a file must hold: numbers and scales in the place of the weights of Linear layers."""
    kept = dict(model.state_dict())
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear):
            kept[f"{name}.weight"] = quantized(layer.weight, dim=1)
    return kept


sizes = {}
for name, model in (("letters", Writer(384, 4)), ("words", Writer(384, 4, letters=30_000))):
    sizes[name] = bytes_of(model.state_dict()), bytes_of(in_int8(model.requires_grad_(False)))
lines = [
    f"{name:8} {before / 1e6:5.1f} MB, then {after / 1e6:4.1f}" for name, (before, after) in sizes.items()
]
guessed("times smaller, with words", guess, sizes["words"][0] / sizes["words"][1], *lines)

# %%
for name, side in (("letters", "when"), ("words", "unless")):
    fewer(
        "F54",
        f"bytes of a file, of a model of {name}",
        without=sizes[name][0],
        following=sizes[name][1],
        **{side: "nearly all weights are those of Linear layers"},
    )

# %% [markdown]
# A table of words is no `Linear` layer. In a small model it is most of the bytes. So count before you hope: a quarter
# of what is quantised, and all of the rest.

# %% [markdown]
# ## 4. Dynamic quantisation
#
# Torch has `torch.ao.quantization.quantize_dynamic`. Weights are int8 from the start, and each input is made
# so in each call: its range is looked for, it is rounded, multiplied as whole numbers, and the result is scaled back.
# Torch's own warning says that all of `torch.ao.quantization` "will be removed in 2.10" (*F57*):

# %%
there = importlib.util.find_spec("torch.ao.quantization") is not None
newer = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 10)
print(torch.ao.quantization.utils.DEPRECATION_WARNING.partition("\n")[0] if there else "It is gone.")
behaviour("F57", "From torch 2.10 on there is no torch.ao.quantization.", not (newer and there))

# %% [markdown]
# (Its page today: "in 2.10 if there are no blockers, or in the earliest PyTorch version until all the blockers are
# cleared".) For new code there is torchao; section 7 compares the two.
#
# Its documentation says that it is "used for situations where the model execution time is dominated by loading weights
# from memory rather than computing the matrix multiplications" (*F56*). Four layers of 2,048 × 2,048 (67 MB in floats)
# and one row, as when a model writes one letter. How many times as fast is int8?

# %%
guess = ...


# %%
def layers(width, number):
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(number))).eval().requires_grad_(False)


ROUNDING = "8 bits round"
works = there and torch.backends.quantized.engine != "none"
print("engines for int8 products:", *torch.backends.quantized.supported_engines, end="; ")
print("taken:", torch.backends.quantized.engine, "" if works else "(nothing to measure in this section)")
if works:
    large = layers(2048, 4)
    large_int8 = dynamic(large)
    compare(
        "fewer bits: one row through 4 layers of 2048 × 2048, dynamic int8",
        {"float32": large, "int8": large_int8},
        inputs=normal(1, 2048),
        guess=guess,
        claim="F56",
        only="cpu",
        differ=ROUNDING,
        because=without("one row", inputs=normal(256, 2048)),
        seconds=0.6,
    )

# %% [markdown]
# **Why?** One row uses each weight once, and there are a quarter of the bytes to read. (They may even fit into a cache
# that the floats do not fit into.) That is the documentation's reason. But with 256 rows each weight that is read is
# used 256 times, reading decides no longer, and the card says what is left of the difference then. On a processor that
# multiplies int8 fast it is nearly as much: there int8 has less to read, *and* less to compute (section 5).
#
# ### Small layers
#
# One row again, and one layer of width 64. How many times as fast is int8?

# %%
guess = ...


# %%
def with_ready_input(generator, device):
    """A row, and the same row as int8 already."""
    x = torch.randn(1, 64, generator=generator)
    return x, torch.quantize_per_tensor(x, x.abs().max().item() / 127, 128, torch.quint8)


if works:
    small = layers(64, 1)
    small_int8 = dynamic(small)
    weights_64 = small_int8[0]._packed_params._packed_params
    compare(
        "fewer bits: one row through a layer of width 64, dynamic int8",
        {"float32": lambda x, ready: small(x), "int8": lambda x, ready: small_int8(x)},
        inputs=with_ready_input,
        guess=guess,
        claim="F56",
        only="cpu",
        differ=ROUNDING,
        because=without(
            "making int8 of the input",
            variants={
                "float32": lambda x, ready: small(x),
                "int8": lambda x, ready: torch.ops.quantized.linear(ready, weights_64, 0.05, 128),
            },
        ),
        seconds=0.6,
    )

# %% [markdown]
# **Why.** A call of int8 does more: look for the range of the input, round, multiply, scale back. With an input that is
# int8 already, part of the difference is gone, and the call still does more than that of floats. In a small layer
# nothing can pay for it. (*Further* looks for the width at which it turns, and at "Quantized model much slower than
# float32", [pytorch#42113](https://github.com/pytorch/pytorch/issues/42113).)

# %% [markdown]
# ## 5. Whole numbers multiplied
#
# "Hardware support for INT8 computations is typically 2 to 4 times faster compared to FP32 compute" (*F55*). Torch
# multiplies int8 with `torch._int_mm`: an underscore, so it may change; there is no `torch.int_mm`. Two matrices of 768
# × 768: here arithmetic decides. How many times as fast as floats are whole numbers?

# %%
guess = ...


# %%
def matrices(side):
    """Two matrices of whole numbers, as float32 and as int8."""

    def make(generator, device):
        a, b = torch.randint(-127, 128, (2, side, side), generator=generator, dtype=torch.int8).to(device)
        return a.float(), b.float(), a, b

    return make


assert not hasattr(torch, "int_mm")
compare(
    "fewer bits: a product of 768 × 768",
    {
        "float32": lambda x, y, a, b: x @ y,
        "int8 × int8": lambda x, y, a, b: torch._int_mm(a, b),
    },
    inputs=matrices(768),
    guess=guess,
    claim="F55",
    differ="whole numbers are exact, and of another type",
    seconds=0.6,
)

# %% [markdown]
# ### The instruction, taken away
#
# The processor may have an instruction for this, *VNNI*: four products of int8 and their sum at once. A variable of the
# environment forbids it to oneDNN, the library below. How many times as fast as floats are whole numbers without it?

# %%
guess = ...

# %%
least = "AVX512_CORE" if torch.backends.cpu.get_cpu_capability() == "AVX512" else "AVX2"
products = {"as it is": product_times(None), "without VNNI": product_times(least)}
lines = [
    f"{how:12} float32 {one.floats:5.2f} ms, by oneDNN {one.by_onednn:5.2f} ms; "
    f"int8 {one.ints:5.2f} ms, {'exact' if one.exact else 'NOT exact'}"
    for how, one in products.items()
]
no_vnni = products["without VNNI"]
ratio = no_vnni.floats / no_vnni.ints
lines.append(f"MKL: {torch.backends.mkl.is_available()}; VNNI, as far as torch knows: {has_vnni()}")
guessed("times as fast without VNNI", guess, ratio, *lines)

# %%
assert not has_vnni() or products["as it is"].ints < no_vnni.ints

# %% [markdown]
# **Why.** A register holds four times as many int8 as floats, and with VNNI one instruction multiplies all of them and
# adds each four. Without it that takes several. Compare within one library: the floats that oneDNN multiplies, and
# int8. What the first comparison has beyond that is another library: torch gives floats to MKL where there is one.
#
# And look at the last word. Without VNNI, on such processors, two products are added in 16 bits, and what does not fit
# is [cut off](https://uxlfoundation.github.io/oneDNN/dev_guide_int8_computations.html): large numbers give wrong sums,
# with no warning. (torchao has `reduce_range` against that, 7 bits instead of 8.) So how fast int8 is, and even whether
# it is right, is a matter of one processor and its kernels.

# %% [markdown]
# ## 6. Floats again in each call
#
# The simplest way to use int8 weights is to make floats of them, and multiply these: `F.linear(x, numbers.float()) *
# scale`. One row, a layer of 2,048 × 2,048. How many times as fast as float32 weights is it?

# %%
guess = ...


# %%
def int8_layer(generator, device):
    weight = torch.randn(2048, 2048, generator=generator)
    numbers, scale = quantized(weight, dim=1)
    x = torch.randn(1, 2048, generator=generator)
    return tuple(one.to(device) for one in (x, weight, numbers, scale.flatten()))


def made_float(x, weight, numbers, scale):
    return F.linear(x, numbers.float()) * scale


def read_as_int8(x, weight, numbers, scale):
    """One kernel that reads int8, and makes bfloat16 of what is in its registers."""
    return torch._weight_int8pack_mm(x.bfloat16(), numbers, scale.bfloat16())


FLOATS = {"float32": lambda x, weight, numbers, scale: F.linear(x, weight)}
compare(
    "fewer bits: int8 weights, made floats in each call",
    FLOATS | {"int8, made float": made_float},
    inputs=int8_layer,
    guess=guess,
    differ=ROUNDING,
    because=without("the float copy", variants=FLOATS | {"int8, read as such": read_as_int8}),
    only="cpu",
    seconds=0.6,
)

# %% [markdown]
# **Why.** The numbers are read, floats of four times the bytes are written, and read again by the product: more memory
# than if they had been floats all along. A kernel that reads int8 and multiplies at once has no copy: look at the card.
# In [pytorch#144434](https://github.com/pytorch/pytorch/issues/144434) a whole model took 1.51 s as int8 and 0.022 s as
# floats. So look at what a call writes. `costs` of chapter 00 tells: new bytes as large as the float weights mean that
# somebody makes them again.
#
# The kernel above got its inputs as `bfloat16`. It takes `float32`, too. How many times as long does it take then?

# %%
guess = ...


# %%
def microseconds(call, calls=10, turns=7):
    """The shortest, least disturbed of some turns, for one call."""
    call()
    return 1e6 * min(timeit.repeat(call, number=calls, repeat=turns)) / calls


x, weight, numbers, scale = int8_layer(torch.Generator(), "cpu")
times = {
    kind: microseconds(lambda kind=kind: torch._weight_int8pack_mm(x.to(kind), numbers, scale.to(kind)))
    for kind in (torch.bfloat16, torch.float32)
}
lines = [f"inputs of {kind}: {time:7.1f} µs" for kind, time in times.items()]
new = {call.__name__: costs(call, x, weight, numbers, scale).bytes for call in (made_float, read_as_int8)}
lines += [f"{name}: {size:,} new bytes" for name, size in new.items()]
guessed("times as long with float32", guess, times[torch.float32] / times[torch.bfloat16], *lines)

# %%
assert new["made_float"] > weight.nbytes > 100 * new["read_as_int8"]

# %% [markdown]
# One name, two kernels, and what is there for `bfloat16` is not there for `float32`. (An underscore promises nothing.)

# %% [markdown]
# ## 7. torchao
#
# torchao does what we did by hand, for whole models: `quantize_(model, config)`. `Int8WeightOnlyConfig` keeps weights as
# int8 and inputs as floats. `Int8DynamicActivationInt8WeightConfig` makes int8 of the inputs, too, row by row. Its first
# example says of the second: "Dynamic quantization quantizes both weights and activations at runtime. This provides
# better accuracy than weight-only while still offering speedup" (*F58*). By hand, how many times as large is its error?

# %%
guess = ...


# %%
def errors_by_hand(x, weight):
    """Errors of a layer whose weights have 8 bits, of one whose inputs have them, too, and with 4 bits for the weights."""
    right = F.linear(x, weight)
    numbers, scale = quantized(weight, dim=1)
    whole, step = quantized(x, dim=1)
    few, few_scale = quantized(weight, bits=4, dim=1)
    return {
        "weights": error(F.linear(x, numbers * scale), right),
        "both": error(F.linear(whole * step, numbers * scale), right),
        "weights of 4 bits": error(F.linear(x, few * few_scale), right),
    }


x, weight = torch.randn(64, 1024), torch.randn(1024, 1024) / 32
found = errors_by_hand(x, weight)
outlying = x.clone()
outlying[:, 7] *= 64
with_feature = errors_by_hand(outlying, weight)
lines = [
    f"{name:15} " + ", ".join(f"{which} {value:.2%}" for which, value in values.items())
    for name, values in (("usual inputs:", found), ("a large feature:", with_feature))
]
guessed("times the error of weights alone", guess, found["both"] / found["weights"], *lines)

# %%
assert found["both"] > 1.2 * found["weights"] and with_feature["both"] > 2 * with_feature["weights"]
assert found["weights of 4 bits"] > found["both"]
for name, side in (("weights", "unless"), ("weights of 4 bits", "when")):
    sentence = f"Weights and inputs in 8 bits give a smaller error than {name} alone."
    behaviour("F58", sentence, found["both"] < found[name], **{side: "the weights alone have fewer bits"})

# %% [markdown]
# **Why.** The inputs are rounded on top of the weights: a second error beside the first. With a large feature among the
# inputs (large language models have them) it is much worse, as every row has its outlier. What one gets for it is
# arithmetic in whole numbers: speed, where section 5 says that there is any.
#
# Now torchao itself:

# %%
has_torchao = importlib.util.find_spec("torchao") is not None
if has_torchao:
    for name in ("torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)  # it looks for kernels of GPUs
    from torchao import quantization as ao

    def by_torchao(model, config):
        model = copy.deepcopy(model)
        ao.quantize_(model, config)
        return model

    blocks = layers(1024, 2)
    weight_only = by_torchao(blocks, ao.Int8WeightOnlyConfig())
    both_int8 = by_torchao(blocks, ao.Int8DynamicActivationInt8WeightConfig())
    kept = weight_only[0].weight
    ours, _ = quantized(blocks[0].weight, dim=1)
    step = (kept.qdata.int() - ours.int()).abs().max().item()
    print(f"{type(kept).__name__} of {kept.qdata.dtype}; its numbers are within {step} of ours")
    wrong = error(weight_only(x), blocks(x)), error(both_int8(x), blocks(x))
    print(f"error with weights in int8 {wrong[0]:.2%}, with inputs, too {wrong[1]:.2%}")
    floats, made = 2 * blocks[0].weight.nbytes, costs(weight_only, x[:1]).bytes
    print(f"new bytes in a call with one row: {made:,}; all weights as floats: {floats:,}")
    assert wrong[1] > wrong[0] and step <= 1 and made > floats
    try:
        by_torchao(blocks, ao.Int4WeightOnlyConfig())
    except Exception as refused:
        print(f"Int4WeightOnlyConfig: {refused}")
    models = {"float32": blocks, "weights int8": weight_only, "inputs, too": both_int8}
    models |= {"quantize_dynamic": dynamic(blocks)} if works else {}
    taken = {}
    for name, model in models.items():
        for number in (1, 256):
            call = functools.partial(model, torch.ones(number, 1024))
            taken[name, number] = microseconds(call, calls=3)
    for name, model in models.items():
        calls = costs(model, x[:1]).operations.total()
        print(
            f"{name:16} 1 row {taken[name, 1]:4.0f} µs, 256 rows {taken[name, 256]:5.0f} µs; {calls} operations"
        )
else:
    print("torchao is not installed: pip install torchao, then restart the kernel. The rest goes on.")

# %% [markdown]
# Compare the lines (without `torch.compile`). `Int8WeightOnlyConfig` makes floats of all weights in each call, as
# section 6 does. With inputs in int8, torchao multiplies with `torch._int_mm`: that pays with many rows (if section 5
# says so), and with one row its many small operations cost more. `quantize_dynamic` does all that in one operation for
# each layer. torchao is written for `torch.compile` and for GPUs, where such steps become part of the product. (What
# `Int4WeightOnlyConfig` takes is *not measured here*.)

# %% [markdown]
# ## 8. Floats of 8 bits
#
# Whole numbers have the same step everywhere. A float's step grows with the number. `torch.float8_e4m3fn` has 4 bits of
# exponent and 3 of fraction, `torch.float8_e5m2` has 5 and 2. Here are all their positive numbers, beside those of int8
# with a scale of 1/127. How many different finite numbers has `float8_e4m3fn`, negative ones and 0 included?

# %%
guess = ...

# %%
KINDS = {"e4m3fn": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
EVERY = {
    name: torch.arange(256, dtype=torch.uint8).view(kind).float().unique() for name, kind in KINDS.items()
}
EVERY = {name: numbers[numbers.isfinite()] for name, numbers in EVERY.items()}
positive = {"int8 / 127": [number / 127 for number in range(1, 128)]}
positive |= {name: numbers[numbers > 0].tolist() for name, numbers in EVERY.items()}
lines = [
    f"{name:10} {len(numbers)} positive numbers from {min(numbers):.2g} to {max(numbers):,.6g}"
    for name, numbers in positive.items()
]
guessed("finite numbers of e4m3fn", guess, len(EVERY["e4m3fn"]), *lines, drawing=draw_steps(positive))

# %%
assert len(EVERY["e4m3fn"]) == 253 and len(EVERY["e5m2"]) == 247

# %% [markdown]
# ### Too large
#
# SGLang's page on a cache in fewer bits, where it names `float8_e4m3fn`, says "E4M3 (4 exponent bits, 3 mantissa bits):
# Higher precision, smaller dynamic range (±240.0)" (*F60*). And beyond the largest: what becomes of 500 in
# `float8_e4m3fn` ("240", "448", "inf" or "nan")?

# %%
guess = ...

# %%
beyond = torch.tensor([440.0, 500.0, 70_000.0])
became = {name: beyond.to(kind).float().tolist() for name, kind in KINDS.items()}
lines = [f"{name}: {beyond.tolist()} become {found}" for name, found in became.items()]
guessed("500 becomes", guess, f"{became['e4m3fn'][1]:g}", *lines)

# %%
behaviour("F60", "The largest number of float8_e4m3fn is 240.", torch.finfo(torch.float8_e4m3fn).max == 240)
assert torch.finfo(torch.float8_e4m3fnuz).max == 240

# %% [markdown]
# 240 is the largest of `float8_e4m3fnuz`, which some AMD GPUs have. *fn* is for "finite": unlike E5M2 it has no
# infinity. What is too large for it becomes 448 since [torch 2.12](https://github.com/pytorch/pytorch/pull/178817), and
# became NaN before, without a word either way. So tensors are **scaled** before: their largest number becomes 448, and
# the scale is kept, as with int8.
#
# ### A sum that stands still
#
# A counter in `float8_e4m3fn` begins at 0 and gets 0.01 more, 1,000 times. Where does it end?

# %%
guess = ...


# %%
def nearest(x):
    return x.to(torch.float8_e4m3fn).float()


def by_chance(x):
    """The number below or above, the nearer one with the larger chance (stochastic rounding); from 0 to 448."""
    below = nearest(x)
    code = below.to(torch.float8_e4m3fn).view(torch.uint8) - (below > x).to(torch.uint8)
    codes = code, code + (code < 126).to(torch.uint8)
    below, above = (one.view(torch.float8_e4m3fn).float() for one in codes)
    share = (x - below) / (above - below).clamp(min=1e-9)
    return torch.where(torch.rand_like(x) < share, above, below)


def counted(rounding, counters=1):
    sums = torch.zeros(counters)
    for _ in range(1000):
        sums = rounding(sums + 0.01)
    return sums


still, moving = counted(nearest).item(), counted(by_chance, 200)
lines = (
    f"rounded by chance, 200 counters: from {moving.min():g} to {moving.max():g}, in the mean {moving.mean():.2f}",
    f"after 0.25 comes {EVERY['e4m3fn'][EVERY['e4m3fn'] > 0.25][0]:g}",
    f"rounded to the nearest bfloat16: {counted(lambda x: x.bfloat16().float()).item():g}",
)
guessed("1,000 times 0.01", guess, still, *lines)

# %%
assert still == 0.25 and 8 < moving.mean() < 12

# %% [markdown]
# **Why.** Above 0.25 the step is 1/32, and 0.01 is less than half of it: each addition is rounded away. **Stochastic
# rounding** takes the upper neighbour with a chance of 0.01 × 32 there, and of 0.01 × 16 where the step is twice as
# wide. So the sum is right *in the mean*, and each counter is off by its luck. In `bfloat16` the sum stops as well,
# later.

# %% [markdown]
# ## 9. Keys and values in fewer bits
#
# A cache of keys and values (chapter 20) grows with each letter, and with many users it may be larger than the weights.
# In 8 bits, with a scale in 16 bits for each position and head of 32 numbers: how many times fewer bytes is that than
# float32?

# %%
guess = ...


# %%
def quantized_cache(bits):
    """What attention sees of keys and values that keep so many bits, with a scale for each position and head."""

    def stored(key, value):
        both = (quantized(one, bits, dim=3) for one in (key, value))
        return tuple(numbers * scale.half().float() for numbers, scale in both)

    return stored


key = torch.randn(1, 2, 100, 32)
numbers, scale = quantized(key, dim=3)
fewer_bytes = key.nbytes / (numbers.nbytes + scale.half().nbytes)
in_pairs = packed(quantized(key, 4, dim=3)[0].flatten(0, 2)).nbytes + scale.half().nbytes
more = f"with 4 bits, two in a byte: {key.nbytes / in_pairs:.1f}"
guessed("times fewer bytes", guess, fewer_bytes, more)

# %% [markdown]
# ### The loss
#
# Hugging Face: "KV Cache Quantization reduces memory usage for long-context text generation in LLMs with minimal impact
# on quality" (*F62*). The same text, read by our model with a cache of fewer bits: down to
# how many does the loss rise by less than 0.01?

# %%
guess = ...

# %%
with_cache = {bits: loss(writer, quantized_cache(bits)) for bits in BITS}
enough = min(bits for bits in BITS if with_cache[bits] < FLOAT_LOSS + 0.01)
lines = [f"{bits} bits: loss {value:.3f}; floats {FLOAT_LOSS:.3f}" for bits, value in with_cache.items()]
drawing = draw_losses({"keys and values": with_cache}, FLOAT_LOSS, "bits of a number in the cache")
guessed("bits that are enough for a cache", guess, enough, *lines, drawing=drawing)

# %%
for bits, side in ((8, "when"), (2, "unless")):
    sentence = f"With keys and values of {bits} bits, the loss rises by less than 0.01."
    held = with_cache[bits] < FLOAT_LOSS + 0.01
    behaviour("F62", sentence, held, **{side: "enough bits are left"})

# %% [markdown]
# ### The time
#
# "When quantized KV cache must be dequantized before use in attention operations, performance can be
# extremely slow" (SGLang, *F63*). One more letter after 1,000, 4 texts: how many times as fast is a cache of floats,
# compared with one of int8 that is made float in each step?

# %%
guess = ...


# %%
def caches(generator, device):
    query, *both = (torch.randn(4, 8, places, 64, generator=generator) for places in (1, 1000, 1000))
    floats = [one.to(device) for one in both]
    return query.to(device), *floats, *(part.to(device) for one in both for part in quantized(one, dim=3))


def caches_in_floats(generator, device):
    return tuple(one.float() for one in caches(generator, device))


def made_float_first(query, key, value, k, k_scale, v, v_scale):
    return attend(query, k * k_scale, v * v_scale)


compare(
    "fewer bits: one more letter after 1,000, from a cache in int8 or in floats",
    {
        "int8, made float": made_float_first,
        "float32": lambda query, key, value, *ints: attend(query, key, value),
    },
    inputs=caches,
    guess=guess,
    claim="F63",
    differ=ROUNDING,
    because=["prices", without("int8", inputs=caches_in_floats)],
    seconds=0.6,
)

# %% [markdown]
# **Why.** It is the copies of all keys and values, which nobody needs afterwards, more than int8: with the same numbers
# as floats, multiplied by their scales in each step, most of the difference is still there. The scales could as well be
# multiplied to scores and weights, and no scaled copy is needed. Your third exercise does so. A cache in fewer bits has
# room for more texts; here it is not faster.

# %% [markdown]
# ## Further
#
# You can skip this part: the exercises do not need it. It asks which float8 is for gradients, where int8 is slower once
# more, how to move an outlier, and what 4 bits cost to unpack.
#
# ### Which of the two?
#
# NVIDIA's Transformer Engine: gradients "require higher dynamic range. Therefore they are best stored using E5M2 data
# format" (*F61*). Here are the gradients of our model's weights. Their error in E4M3, compared with E5M2, when both are
# scaled by their largest number: how many times as large is it?

# %%
guess = ...


# %%
def gradients(model):
    """The gradients of the weights of a model's Linear layers, for some letters."""
    model = copy.deepcopy(model).requires_grad_(True)
    letters = NUMBERS[:113][None]
    scores = model(letters[:, :-1])
    F.cross_entropy(scores.flatten(0, 1), letters[:, 1:].flatten()).backward()
    return [layer.weight.grad for layer in model.modules() if isinstance(layer, nn.Linear)]


def in_float8(x, kind, scaled):
    scale = x.abs().max() / torch.finfo(kind).max if scaled else 1.0
    return (x / scale).to(kind).float() * scale


def errors_of(tensors, scaled):
    return {
        name: mean(error(in_float8(one, kind, scaled), one) for one in tensors)
        for name, kind in KINDS.items()
    }


grads = gradients(writer)
table = {
    "gradients, scaled": errors_of(grads, True),
    "gradients as they are": errors_of(grads, False),
    "a thousandth of them, as they are": errors_of([one / 1000 for one in grads], False),
    "weights, scaled": errors_of(
        [one.weight for one in writer.modules() if isinstance(one, nn.Linear)], True
    ),
}
lines = [
    f"{name:33} " + ", ".join(f"{kind} {value:.2%}" for kind, value in found.items())
    for name, found in table.items()
]
scaled, small = table["gradients, scaled"], table["a thousandth of them, as they are"]
guessed("times the error of E5M2", guess, scaled["e4m3fn"] / scaled["e5m2"], *lines)

# %%
for how, found, side in (("scaled", scaled, "unless"), ("small and not scaled", small, "when")):
    sentence = f"In E5M2, gradients that are {how} have a smaller error than in E4M3."
    behaviour(
        "F61", sentence, found["e5m2"] < found["e4m3fn"], **{side: "nobody scales them, and they are small"}
    )
assert table["weights, scaled"]["e4m3fn"] < table["weights, scaled"]["e5m2"]

# %% [markdown]
# **Why.** E5M2 reaches further down, and has one bit of fraction less. Without a scale, small gradients fall below
# the least number of E4M3 and become 0. With a scale of their own, all tensors here lie where E4M3 is finer. A range is
# needed only where no scale provides it, or where one tensor holds very large and very small numbers.

# %% [markdown]
# ### The wrong library
#
# "Quantized model much slower than float32" ([pytorch#42113](https://github.com/pytorch/pytorch/issues/42113)): its
# author had chosen the engine `qnnpack`, which is made for phones. 64 rows, a layer of 1,024 × 1,024: how many times as
# fast is this machine's own engine, compared with that?

# %%
guess = ...

# %%
if works and "qnnpack" in torch.backends.quantized.supported_engines:
    middle = layers(1024, 1)
    by_qnnpack, by_own = dynamic(middle, "qnnpack"), dynamic(middle)
    compare(
        "fewer bits: 64 rows through a layer of width 1024, by engine",
        {"int8, qnnpack": by_qnnpack, "float32": middle, "int8, this machine's": by_own},
        inputs=normal(64, 1024),
        guess=guess,
        only="cpu",
        differ=ROUNDING,
        seconds=0.6,
    )

# %% [markdown]
# The same layer, in int8 both times: what differs is the kernel. Where int8 disappoints, look first at which code runs.

# %% [markdown]
# ### From which width on
#
# One row, one layer, dynamic int8 of section 4. From which width on is int8 faster? (32, 64, 128, …, 2048)

# %%
guess = ...


# %%
if works:
    WIDTHS = (32, 64, 128, 256, 512, 1024, 2048)
    found = {}
    for width in WIDTHS:
        model, x = layers(width, 1), torch.randn(1, width)
        found[width] = [microseconds(lambda model=model, x=x: model(x)) for model in (model, dynamic(model))]
    crossing = next((width for width, (floats, ints) in found.items() if ints < floats), 2 * WIDTHS[-1])
    lines = [
        f"width {width:4}: float32 {floats:6.1f} µs, int8 {ints:6.1f} µs"
        for width, (floats, ints) in found.items()
    ]
    guessed("width from which int8 is faster", guess, crossing, *lines)

# %% [markdown]
# Below that the fixed price of a call decides (section 4), and above it the weights.
#
# ### Small products
#
# What of products too small to fill anything: 32 × 32? How many times as fast as floats are whole numbers?

# %%
guess = ...

# %%
compare(
    "fewer bits: a product of 32 × 32",
    {
        "float32": lambda x, y, a, b: x @ y,
        "int8 × int8": lambda x, y, a, b: torch._int_mm(a, b),
    },
    inputs=matrices(32),
    guess=guess,
    claim="F55",
    differ="whole numbers are exact, and of another type",
    seconds=0.4,
)

# %% [markdown]
# ### An outlier that is moved
#
# The outlying column of section 2 changed nothing in floats. So one can go the other way: divide a large feature of the
# inputs (or let the layer before do so), and multiply the weights that read it.
# ([SmoothQuant](https://arxiv.org/abs/2211.10438) moves half of it, so that both sides are a little large.) Inputs with
# a feature 64 times as large, inputs and weights in 8 bits: how many times smaller is the error after the move?

# %%
guess = ...

# %%
factor = (outlying.abs().amax(0) / weight.abs().amax(0)).sqrt()
smooth = errors_by_hand(outlying / factor, weight * factor)
lines = [
    f"{name:8} {values['both']:.2%}, weights alone {values['weights']:.2%}"
    for name, values in (("before:", with_feature), ("after:", smooth))
]
guessed("times smaller", guess, with_feature["both"] / smooth["both"], *lines)

# %%
assert smooth["both"] < with_feature["both"]

# %% [markdown]
# The product is the same, as each number is divided on one side and multiplied on the other. What changes is whose
# scale the outlier spoils.
#
# ### Four bits, unpacked in each call
#
# One row, 2,048 × 2,048 weights of 4 bits in groups of 32. Unpacked and multiplied as floats: how many times as fast as
# float32 is that?

# %%
guess = ...


# %%
def int4_layer(generator, device):
    weight = torch.randn(2048, 2048, generator=generator)
    numbers, scale = quantized(weight.unflatten(1, (-1, 32)), bits=4, dim=2)
    fused = None
    if device == "cpu":
        both = torch.stack([scale[:, :, 0].T, torch.zeros_like(scale[:, :, 0].T)], 2)
        fused = torch._convert_weight_to_int4pack_for_cpu(numbers.flatten(1).int() + 8, 1), both
    return torch.randn(1, 2048, generator=generator), weight, packed(numbers.flatten(1)), scale, fused


def unpacked_and_multiplied(x, weight, pairs, scale, fused):
    return F.linear(x, (unpacked(pairs).unflatten(1, (-1, 32)) * scale).flatten(1))


compare(
    "fewer bits: 4 bits, unpacked in each call",
    {"float32": lambda x, weight, *rest: F.linear(x, weight), "4 bits, unpacked": unpacked_and_multiplied},
    inputs=int4_layer,
    guess=guess,
    only="cpu",
    differ="4 bits round",
    because=without(
        "unpacking",
        variants={
            "float32": lambda x, weight, *rest: F.linear(x, weight),
            "4 bits, one kernel": lambda x, weight, pairs, scale, fused: torch._weight_int4pack_mm_for_cpu(
                x.bfloat16(), fused[0], 32, fused[1].bfloat16()
            ),
        },
    ),
    seconds=0.6,
)

# %% [markdown]
# **Why.** Half a byte must be cut out, moved, given its sign, made a float and scaled, each an operation over all
# weights. Only a kernel that does so in its registers can win by a seventh of the bytes. What torch has of these
# carries an underscore, and changes.
#
# ## Summary
#
# **Chapter 00's routine here:** count the bytes that are read, and what a call writes; foretell the error from largest
# number and bits; measure the loss of the model, not of its weights; and see which kernel ran before you believe in
# fewer bits.
#
# | you have | do | because |
# |---|---|---|
# | weights that fill the memory | int8, a scale for each row | a quarter of the bytes, and hardly any loss where no feature is an outlier |
# | 4 bits or less | groups with a scale each; look at the loss | one large weight makes the step wide for all that share its scale |
# | one row, large layers, a CPU | a kernel that reads int8 (`quantize_dynamic`, fused ones) | the time is that of reading weights |
# | small layers, few rows | floats | a call of int8 does more, and has little to save |
# | int8 that is slower | which kernel, which types, what does a call write? | floats made again in each call; an engine for another processor; no instruction |
# | many rows | int8 inputs, too, if the processor multiplies int8 fast | arithmetic decides, and the second rounding costs accuracy |
# | large features among the inputs | move them into the weights, by halves | each row has its outlier |
# | float8 | a scale for each tensor, E4M3 | what is too large is cut off (or NaN), what is too small is 0 |
# | sums of small steps in few bits | stochastic rounding, or a wider sum | what is below half a step is rounded away |
# | a cache that fills the memory | 8 bits, a scale for each position and head | more texts; not faster where floats are made of it in each step |

# %%
verdicts("F54", "F55", "F56", "F57", "F58", "F59", "F60", "F61", "F62", "F63")

# %% [markdown]
# *F55* speaks of what "hardware support" can do. Whether torch reaches it is a matter of your processor and of the
# types on both sides (sections 5 and 6).
#
# **Now you:** [the exercises of this chapter](../exercises/21_fewer_bits/21_fewer_bits.ipynb). Five numbers in a byte,
# a model that is quantised as it loads, attention over a cache of int8, rounding by chance, and a scale that cuts.
