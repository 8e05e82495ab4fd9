# %% [markdown]
# # Exercises 21 · Fewer bits
#
# Five weights in a byte, a model that becomes smaller as it is loaded, attention over keys and values of 8 bits, rounding by
# chance, and a scale that cuts off what is too large. Each is given in a version that is right, and slow or large. Write a better
# one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. It tries every input in other memory layouts,
# too. Some checks also count the most new memory that your answer has at once. `race` times it against the given version, on this
# machine, now. Hidden tests run when your notebook is graded: other shapes and other random numbers.
#
# Keep the names. Helper functions, classes and imports of your own are welcome, anywhere in the solution cell. Leave the
# tensors that you get as they are. `costs`, from chapter 00, counts what a call costs: `from autograder import costs`, then
# `print(costs(function, *inputs))`.
# The chapter is [here](../../course/21_fewer_bits.ipynb). 31 points, about 130 minutes.

# %% id="setup" role="given"
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

from autograder import check, costs, race

# %% [markdown]
# ## 1. Five in a byte
#
# *Easy, 15 minutes.* Some models have weights of three values only: -1, 0 and 1, times a scale for each row. A byte has 256
# values, and 3 × 3 × 3 × 3 × 3 are 243: so five such weights go into a byte. Write `unpack_five(packed, scales, columns)`.
#
# - `packed`: `uint8` of shape `(N, B)`. A byte is `a + 3 b + 9 c + 27 d + 81 e`, where `a` to `e` are five weights in their
#   order, each plus 1. Weights beyond `columns` in the last byte of a row are filled with anything.
# - `scales`: `float32` or `float64` of shape `(N,)`. `columns`: a whole number from `5 B - 4` to `5 B`. *N* may be 0; *B* is at
#   least 1.
# - returns: `(N, columns)`, of the type and on the device of `scales`: the weights times their row's scale.
# - In the race: 60 rows of 800 weights; 15 times as fast as given for all points.


# %% id="unpack_five_given" role="given"
def unpack_five_slow(packed, scales, columns):
    table = []
    for row, scale in zip(packed.tolist(), scales.tolist(), strict=True):
        weights = []
        for byte in row:
            for _ in range(5):
                weights.append((byte % 3 - 1) * scale)
                byte //= 3
        table.append(weights[:columns])
    return torch.tensor(table, dtype=scales.dtype, device=scales.device).view(len(packed), columns)


def bytes_of_five(number, columns, generator, device, dtype=torch.float32):
    packed = torch.randint(243, (number, -(-columns // 5)), generator=generator).to(torch.uint8)
    scales = torch.rand(number, generator=generator, dtype=dtype)
    return packed.to(device), scales.to(device), columns


def a_few_rows(generator, device):
    return bytes_of_five(6, 20, generator, device)


def last_byte_half_full(generator, device):
    return bytes_of_five(4, 18, generator, device, torch.float64)


def many_rows(generator, device):
    return bytes_of_five(60, 800, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>All bytes at once, and all five of each at once. What must be divided by what?</details>
# <details><summary>Hint 2</summary>What has no sign cannot hold -1. When do you take the 1 away?</details>


# %% id="unpack_five" role="answer"
def unpack_five(packed, scales, columns):
    ### BEGIN SOLUTION
    divisors = torch.tensor([1, 3, 9, 27, 81], dtype=torch.uint8, device=packed.device)
    digits = (packed[:, :, None] // divisors % 3).flatten(1)[:, :columns]
    return (digits.to(scales.dtype) - 1) * scales[:, None]
    ### END SOLUTION


# %% id="unpack_five_check" role="test"
check(unpack_five, like=unpack_five_slow, on=[a_few_rows, last_byte_half_full], points=1)


# %% id="unpack_five_hidden" role="test"
# Hidden test: no row, one weight, one byte, all weights the same. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def no_row(generator, device):
    return bytes_of_five(0, 7, generator, device)


def one_weight(generator, device):
    return bytes_of_five(3, 1, generator, device)


def one_byte(generator, device):
    return bytes_of_five(1, 5, generator, device, torch.float64)


def all_the_same(generator, device):
    packed, scales, columns = bytes_of_five(3, 11, generator, device)
    return torch.full_like(packed, 242), scales, columns


check(unpack_five, like=unpack_five_slow, on=[no_row, one_weight, one_byte, all_the_same], points=1)
### END HIDDEN TESTS

# %% id="unpack_five_race" role="test"
race(unpack_five, against=unpack_five_slow, on=many_rows, at_least={"cpu": 15}, points=2)

# %% [markdown]
# ## 2. `quantize(model)`
#
# *Hard, 35 minutes.* A thing to keep. Six models are needed at once, and their floats do not fit into memory together. Each
# becomes small before the next is made. Write `quantize(model)`, which gives the model back with another layer in the place of
# every `Linear` layer. It keeps int8 weights and a scale for each row. The given version rounds the weights and keeps floats:
# right, and not smaller.
#
# - `model`: a `torch.nn.Module` that nobody else uses, so you may change it. Its `Linear` layers may be nested in other modules
#   and may have no bias. One that is used in several places must be one layer afterwards, too. The model may be a `Linear` layer
#   itself. All its floats are `float64`, so that it is clear what rounds where.
# - A row's scale is its largest number (without sign) divided by 127, at least `1e-12`. A weight becomes the nearest whole number
#   of scales.
# - Tests call `models_at_work(specifications, x)`: the given `at_work` makes the models one after the other, calls your
#   `quantize` with each, and then all of them with `x`. What a model gives must be the same as with the rounded floats.
# - returns (`models_at_work`): a list of `float64` tensors, what each model gives for `x`.
# - Memory: six models with four layers of 256 × 256 have 12.6 MB of floats together. At most 6.5 MB of new memory at once for
#   all points, the floats of the model that is being made included. No gradients are needed.


# %% id="models_at_work_given" role="given"
def build(specification):
    """A model: each part is (left, right, bias) with the weight left @ right, or the number of a part to use again."""
    found = []
    for part in specification:
        if isinstance(part, int):
            found.append(found[part])
            continue
        left, right, bias = part
        layer = nn.Linear(right.shape[1], len(left), bias=bias is not None, device="meta", dtype=left.dtype)
        layer.weight = nn.Parameter(left @ right, requires_grad=False)
        if bias is not None:
            layer.bias = nn.Parameter(bias.clone(), requires_grad=False)
        found.append(layer)
    if len(found) == 1:
        return found[0]
    blocks = nn.ModuleList(nn.Sequential(layer, nn.Tanh()) for layer in found)
    return nn.Sequential(*blocks[:-1], nn.ModuleDict({"last": blocks[-1]})["last"])


def at_work(quantize, specifications, x):
    """What each model gives, after all of them were made and quantised."""
    models = [quantize(build(specification)) for specification in specifications]
    return [model(x) for model in models]


def quantize_slow(model):
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            weight = layer.weight.detach()
            scale = (weight.abs().amax(1, keepdim=True) / 127).clamp(min=1e-12)
            layer.weight = nn.Parameter((weight / scale).round() * scale, requires_grad=False)
    return model


def models_at_work_slow(specifications, x):
    return at_work(quantize_slow, specifications, x)


def specification(widths, generator, device, rank=4, biases=True):
    def numbers(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device) / 4

    return [
        [numbers(to, rank), numbers(rank, of), numbers(to) if biases else None] for of, to in pairwise(widths)
    ]


def inputs_of(width, generator, device, *batch):
    return torch.randn(*batch, width, generator=generator, dtype=torch.float64).to(device)


def two_models(generator, device):
    models = [specification(widths, generator, device) for widths in ((8, 12, 5), (8, 7, 7, 3))]
    return models, inputs_of(8, generator, device, 6)


def without_bias(generator, device):
    return [specification((9, 4, 6), generator, device, biases=False)], inputs_of(9, generator, device, 3)


def six_models(generator, device):
    models = [specification((256,) * 5, generator, device) for _ in range(6)]
    return models, inputs_of(256, generator, device, 2)


# %% [markdown]
# <details><summary>Hint 1</summary>A module of your own: two buffers, a bias, and a <code>forward</code>. In which order must
# scale and product come, so that no second table of floats is needed?</details>
# <details><summary>Hint 2</summary>A module's children stand in its <code>_modules</code>, by name; whoever replaces one replaces
# it there. Go down as deep as there are modules. (<code>named_children</code> names each child once, even if it stands in two
# places.)</details>
# <details><summary>Hint 3</summary>A layer that is met a second time must become the same new layer. Whatever remembers old
# layers also keeps them, and their floats, alive: for how long?</details>
# <details><summary>Hint 4</summary>If <code>forward</code> keeps what it has made of the numbers, each later call is faster. What
# is in memory then?</details>


# %% id="models_at_work" role="answer"
def models_at_work(specifications, x):
    return at_work(quantize, specifications, x)


def quantize(model):
    ### BEGIN SOLUTION
    return replaced(model, {})


class Int8Linear(nn.Module):
    """A Linear layer whose weights are int8, with a scale for each row."""

    def __init__(self, layer):
        super().__init__()
        weight = layer.weight.detach()
        scale = (weight.abs().amax(1, keepdim=True) / 127).clamp(min=1e-12)
        self.register_buffer("numbers", (weight / scale).round_().to(torch.int8))
        self.register_buffer("scale", scale.flatten())
        self.bias = layer.bias

    def forward(self, x):
        y = F.linear(x, self.numbers.to(x.dtype)) * self.scale
        return y if self.bias is None else y + self.bias


def replaced(module, known):
    """The module with int8 layers in it; ``known`` has what became of modules that were met before."""
    if id(module) not in known:
        if isinstance(module, nn.Linear):
            known[id(module)] = Int8Linear(module)
        else:
            known[id(module)] = module
            for name, child in module._modules.items():
                module._modules[name] = replaced(child, known)
    return known[id(module)]
    ### END SOLUTION


# %% id="models_at_work_check" role="test"
check(models_at_work, like=models_at_work_slow, on=[two_models, without_bias], points=1)

# %% id="models_at_work_lean" role="test"
check(models_at_work, like=models_at_work_slow, on=six_models, peak=6_500_000, points=4)


# %% id="models_at_work_hidden" role="test"
# Hidden test: layers used twice, a model that is one layer, rows of zeros, several dimensions, no model. 2 points.
### BEGIN HIDDEN TESTS
def used_twice(generator, device):
    first, second = specification((6, 6, 6), generator, device)
    return [[first, second, 0, 1, 0]], inputs_of(6, generator, device, 4)


def one_layer(generator, device):
    models = [
        specification((5, 7), generator, device),
        specification((5, 2), generator, device, biases=False),
    ]
    return models, inputs_of(5, generator, device, 2, 3)


def rows_of_zeros(generator, device):
    first, second = specification((6, 8, 4), generator, device)
    first[0][2] = second[0][1] = 0
    return [[first, second]], inputs_of(6, generator, device)


def no_model(generator, device):
    return [], inputs_of(3, generator, device, 2)


check(models_at_work, like=models_at_work_slow, on=[used_twice, one_layer, rows_of_zeros, no_model], points=2)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Attention over a cache of 8 bits
#
# *Hard, 30 minutes.* Keys and values are int8, with a scale for each position and head. The given version makes floats of all of
# them, in each step. Write `attend_int8(query, keys, key_scales, values, value_scales, lengths)`, which never has them all as
# floats.
#
# - `query`: `(N, H, 1, E)`. `keys`, `values`: `int8` of shape `(N, H, T, E)`. `key_scales`, `value_scales`: `(N, H, T)`.
#   `lengths`: `int64` of shape `(N,)`, from 1 to *T*. Query and scales are `float32` or `float64`, all on one device; all sizes
#   are at least 1.
# - A key is its whole numbers times its scale, and so is a value. Text *n* sees the first `lengths[n]` positions. What stands
#   behind them is left over from other texts: any finite numbers.
# - returns: `(N, H, 1, E)`, of the type and on the device of `query`: attention with the scores divided by the root of *E*.
# - Memory: in the test *N* = 2, *H* = 4, *T* = 16,000, *E* = 32: keys and values would have 33 MB as floats. At most 3 MB of new
#   memory at once for all points.


# %% id="attend_int8_given" role="given"
def attend_int8_slow(query, keys, key_scales, values, value_scales, lengths):
    keys = keys.to(query.dtype) * key_scales[..., None]
    values = values.to(query.dtype) * value_scales[..., None]
    places = torch.arange(keys.shape[2], device=keys.device)
    mask = (places < lengths[:, None])[:, None, None]
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


def a_cache(texts, heads, places, width, generator, device, dtype=torch.float32):
    query = torch.randn(texts, heads, 1, width, generator=generator, dtype=dtype)
    keys, values = torch.randint(-127, 128, (2, texts, heads, places, width), generator=generator).to(
        torch.int8
    )
    key_scales, value_scales = torch.rand(2, texts, heads, places, generator=generator, dtype=dtype) / 50
    lengths = torch.randint(1, places + 1, (texts,), generator=generator)
    return tuple(one.to(device) for one in (query, keys, key_scales, values, value_scales, lengths))


def a_short_cache(generator, device):
    return a_cache(3, 2, 10, 4, generator, device)


def one_position(generator, device):
    return a_cache(2, 3, 1, 5, generator, device, torch.float64)


def a_long_cache(generator, device):
    return a_cache(2, 4, 16_000, 32, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>A scale is one number for each key, and not one for each number of a key. Is the table of keys
# the only place where it can be multiplied?</details>
# <details><summary>Hint 2</summary>The same question for values: what does each of them meet, and when?</details>
# <details><summary>Hint 3</summary>Products want floats. Which part of the keys must be floats at the same time? All scores of a
# step are few numbers: they may stay.</details>


# %% id="attend_int8" role="answer"
def attend_int8(query, keys, key_scales, values, value_scales, lengths):
    ### BEGIN SOLUTION
    size, width = 512, query.shape[3]
    scores = query.new_empty(*key_scales.shape)
    for first in range(0, keys.shape[2], size):
        piece = keys[:, :, first : first + size].to(query.dtype)
        scores[:, :, first : first + size] = (query @ piece.mT)[:, :, 0]
    scores.mul_(key_scales).div_(width**0.5)
    places = torch.arange(keys.shape[2], device=keys.device)
    scores.masked_fill_((places >= lengths[:, None])[:, None], -torch.inf)
    weights = scores.softmax(2).mul_(value_scales)[:, :, None]
    mixed = torch.zeros_like(query)
    for first in range(0, keys.shape[2], size):
        mixed += weights[..., first : first + size] @ values[:, :, first : first + size].to(query.dtype)
    return mixed
    ### END SOLUTION


# %% id="attend_int8_check" role="test"
check(attend_int8, like=attend_int8_slow, on=[a_short_cache, one_position], points=1)

# %% id="attend_int8_lean" role="test"
check(attend_int8, like=attend_int8_slow, on=a_long_cache, peak=3_000_000, points=4)


# %% id="attend_int8_hidden" role="test"
# Hidden test: texts of length 1, full ones, large numbers behind the end, more positions than a piece. 2 points.
### BEGIN HIDDEN TESTS
def of_length_one(generator, device):
    *rest, lengths = a_cache(4, 1, 7, 3, generator, device)
    return *rest, torch.ones_like(lengths)


def full(generator, device):
    *rest, lengths = a_cache(2, 2, 1500, 8, generator, device, torch.float64)
    return *rest, torch.full_like(lengths, 1500)


def large_behind_the_end(generator, device):
    query, keys, key_scales, values, value_scales, lengths = a_cache(3, 2, 40, 6, generator, device)
    behind = torch.arange(40, device=device) >= lengths[:, None]
    key_scales = key_scales.masked_fill(behind[:, None], 1e6)
    return query, keys, key_scales, values, value_scales.masked_fill(behind[:, None], 1e6), lengths


check(attend_int8, like=attend_int8_slow, on=[of_length_one, full, large_behind_the_end], points=2)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Rounded by chance
#
# *Medium, 20 minutes.* Each number goes to the next number of `torch.float8_e4m3fn` below or above, the nearer one with the
# larger chance. Write `by_chance(x, chances)`.
#
# - `x`: `float64` of any shape, from -448 to 448. `chances`: the same shape and type, from 0 on and below 1. Any device.
# - Let `low` be the largest number of the format that is not above the number, and `high` the next one after it. The result is
#   `high` where the chance is less than `(x - low) / (high - low)`, and else `low`. 448 stays 448.
# - returns: `float64`, the same shape and device: numbers of the format. (0 has no sign here.)
# - In the race: 1,000 numbers; 20 times as fast as given for all points.


# %% id="by_chance_given" role="given"
def by_chance_slow(x, chances):
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
    known = sorted({value for value in codes.tolist() if value == value})
    found = []
    for value, chance in zip(x.flatten().tolist(), chances.flatten().tolist(), strict=True):
        place = 0
        while place + 1 < len(known) and known[place + 1] <= value:
            place += 1
        low = known[place]
        high = known[min(place + 1, len(known) - 1)]
        found.append(high if high > low and chance < (value - low) / (high - low) else low)
    return torch.tensor(found, dtype=x.dtype, device=x.device).view(x.shape)


def some_numbers(shape, generator, device, largest=448.0):
    spread = torch.rand(shape, generator=generator, dtype=torch.float64) * 12 - 12
    x = torch.randn(shape, generator=generator, dtype=torch.float64).sign() * largest * spread.exp2()
    return x.to(device), torch.rand(shape, generator=generator, dtype=torch.float64).to(device)


def a_table(generator, device):
    return some_numbers((6, 7), generator, device)


def small_ones(generator, device):
    return some_numbers((40,), generator, device, largest=0.02)


def many_numbers(generator, device):
    return some_numbers((1000,), generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>The format has few numbers. What can be done with all of them, before you look at the first of
# <code>x</code>?</details>
# <details><summary>Hint 2</summary>Torch can find the places of many numbers in a sorted table in one call. On which side do you
# want to be when a number is in the table itself? And what comes after the last one?</details>


# %% id="by_chance" role="answer"
def by_chance(x, chances):
    ### BEGIN SOLUTION
    codes = torch.arange(127, dtype=torch.uint8, device=x.device).view(torch.float8_e4m3fn).double()
    known = torch.cat([-codes.flip(0)[:-1], codes])
    place = torch.searchsorted(known, x.contiguous(), right=True) - 1
    low, high = known[place], known[(place + 1).clamp(max=len(known) - 1)]
    return torch.where(chances * (high - low) < x - low, high, low)
    ### END SOLUTION


# %% id="by_chance_check" role="test"
check(by_chance, like=by_chance_slow, on=[a_table, small_ones], points=1)


# %% id="by_chance_hidden" role="test"
# Hidden test: numbers of the format, the ends, 0, chances of 0, no dimension, no number. 2 points, when graded.
### BEGIN HIDDEN TESTS
def numbers_of_the_format(generator, device):
    x, chances = some_numbers((60,), generator, device)
    return x.float().to(torch.float8_e4m3fn).double(), chances


def the_ends(generator, device):
    x = torch.tensor([-448.0, 448.0, 0.0, 447.0, -447.0, 0.001, -0.001], dtype=torch.float64, device=device)
    return x, torch.rand(7, generator=generator, dtype=torch.float64).to(device)


def chances_of_zero(generator, device):
    x, chances = some_numbers((5, 4, 3), generator, device)
    return x, torch.zeros_like(chances)


def no_dimension(generator, device):
    return some_numbers((), generator, device)


def no_number(generator, device):
    return some_numbers((0, 3), generator, device)


check(
    by_chance,
    like=by_chance_slow,
    on=[numbers_of_the_format, the_ends, chances_of_zero, no_dimension, no_number],
    points=2,
)
### END HIDDEN TESTS

# %% id="by_chance_race" role="test"
race(by_chance, against=by_chance_slow, on=many_numbers, at_least={"cpu": 20}, points=3)

# %% [markdown]
# ## 5. A scale that cuts
#
# *Medium, 20 minutes.* With few bits it can be better to cut off the largest weights: they get a large error, and all others a
# smaller step. Write `best_scales(weights, bits)`.
#
# - `weights`: `float64` of shape `(N, C)`, no row all 0, on any device. `bits`: a whole number from 2 to 8. *N* may be 0; *C* is
#   at least 1.
# - Let *m* be `2 ** (bits - 1) - 1`. For a row with the largest number *w* (without sign) there are 20 scales: `k / 20 * w / m`,
#   with *k* from 1 to 20. With a scale, a weight becomes the nearest whole number of scales, from `-m` to `m`. The error of a row
#   is the sum of its squared differences.
# - returns: `float64` of shape `(N,)`: for each row the scale with the smallest error; of several the largest one.
# - In the race: 30 rows of 64, 4 bits; 30 times as fast as given for all points.


# %% id="best_scales_given" role="given"
def best_scales_slow(weights, bits):
    most = 2 ** (bits - 1) - 1
    found = []
    for row in weights:
        best = None
        for k in range(20, 0, -1):
            scale = k / 20 * row.abs().max() / most
            cut = (row / scale).round().clamp(-most, most) * scale
            wrong = (cut - row).square().sum()
            if best is None or wrong < best[0]:
                best = wrong, scale
        found.append(best[1])
    return torch.stack(found) if found else weights.new_zeros(0)


def long_tails(number, columns, generator, device):
    return torch.randn(number, columns, generator=generator, dtype=torch.float64).pow(3).to(device)


def four_bits(generator, device):
    return long_tails(5, 30, generator, device), 4


def two_bits(generator, device):
    return long_tails(7, 12, generator, device), 2


def many_weights(generator, device):
    return long_tails(30, 64, generator, device), 4


# %% [markdown]
# <details><summary>Hint 1</summary>All rows at once is one dimension. All scales at once is one more.</details>
# <details><summary>Hint 2</summary><code>argmin</code> does not promise which of several it gives. What could you do to the
# order, or to the errors, so that the largest scale is taken?</details>


# %% id="best_scales" role="answer"
def best_scales(weights, bits):
    ### BEGIN SOLUTION
    most = 2 ** (bits - 1) - 1
    parts = torch.arange(20, 0, -1, device=weights.device, dtype=weights.dtype)[:, None] / 20
    scales = (parts * weights.abs().amax(1) / most)[..., None]
    wrong = (weights / scales).round_().clamp_(-most, most).mul_(scales).sub_(weights).square_().sum(2)
    first = (wrong == wrong.amin(0)).int().argmax(0)
    return scales[first, torch.arange(len(weights), device=weights.device), 0]
    ### END SOLUTION


# %% id="best_scales_check" role="test"
check(best_scales, like=best_scales_slow, on=[four_bits, two_bits], points=1)


# %% id="best_scales_hidden" role="test"
# Hidden test: no row, one weight, 3 and 8 bits, weights of three values. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def no_weights(generator, device):
    return long_tails(0, 6, generator, device), 3


def one_column(generator, device):
    return long_tails(6, 1, generator, device), 5


def three_bits(generator, device):
    return long_tails(9, 40, generator, device), 3


def eight_bits(generator, device):
    return long_tails(4, 50, generator, device), 8


def three_values(generator, device):
    signs = torch.randint(-1, 2, (8, 20), generator=generator, dtype=torch.float64).to(device)
    signs[:, 0] = 1
    return signs * 2, 3


check(
    best_scales,
    like=best_scales_slow,
    on=[no_weights, one_column, three_bits, eight_bits, three_values],
    points=1,
)
### END HIDDEN TESTS

# %% id="best_scales_race" role="test"
race(best_scales, against=best_scales_slow, on=many_weights, at_least={"cpu": 30}, points=3)

# %% [markdown]
# ## 6. Foretell the costs
#
# *Easy, 10 minutes.* Three functions: two are of earlier chapters, the last is of this one. Each gets `x`, a
# tensor of `float32` with the shape `(n, d)`, whose numbers are all 2. Write `foretold(n, d)`, which says what
# `costs` counts then.
#
# - `n`, `d`: integers from 2 on.
# - returns: a dict with the names of the three functions. Each value is a dict of three integers: `"operations"` (views are not
#   counted), `"bytes"` of all new tensors together, those included that are gone at the end, and `"syncs"`, where the host would
#   wait for a GPU.
# - `foretold` asks torch for nothing.


# %% id="foretold_given" role="given"
def in_halves(x):
    return (x.bfloat16() @ x.bfloat16().T).float()


def the_large_ones(x):
    mask = x > 1
    return x[mask], mask.sum()


def in_int8(x):
    scale = x.abs().amax(1, keepdim=True) / 127
    return (x / scale).round().to(torch.int8), scale.half()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (in_halves, the_large_ones, in_int8)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>in_halves</code> is of chapter 07, <code>the_large_ones</code> is of chapter 10,
# <code>in_int8</code> is of chapter 21.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(in_int8, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "in_halves": {"operations": 4, "bytes": 4 * n * d + 6 * n * n, "syncs": 0},
        "the_large_ones": {"operations": 3, "bytes": n * d + 4 * n * d + 8, "syncs": 1},
        "in_int8": {"operations": 7, "bytes": 13 * n * d + 10 * n, "syncs": 0},
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

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
