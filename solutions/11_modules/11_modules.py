# %% [markdown]
# # Exercises 11 · Modules
#
# Five tasks: take networks apart, and put them together again. Each is given in a slow version that is right.
# Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. Hidden tests run when your notebook is graded: other shapes, other
# types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/11_modules.ipynb). 30 points, about 60 minutes.

# %% id="setup" role="given"
import functools

import torch
from torch import nn
from torch.nn import functional as F

from autograder import check, race

# %% [markdown]
# ## 1. Many heads, one layer
#
# *Medium, 15 minutes.* The given function sends one input through several linear layers, one by one. Write
# the module `Heads(weights, biases)` that does it with a single layer.
#
# - `weights`: list of one or more trained weights, tensors of shape `(outputs_i, inputs)`. The numbers of
#   outputs may differ. `biases`: list of as many tensors of shape `(outputs_i,)`. All are of one dtype, on
#   one device.
# - `Heads(weights, biases)` is an `nn.Module`. It has one linear layer, called `wide`, that holds copies of
#   the weights and biases, in their order. So its `state_dict` has the keys `wide.weight` and `wide.bias`.
# - Calling it with `x` of shape `(N, inputs)` gives a list of tensors of shape `(N, outputs_i)`, equal to
#   those of the given function. The gradient must reach `x`.
# - A call may ask torch for one operation only. (Views are free.)
# - Lists of different lengths must raise `ValueError`.


# %% id="heads_given" role="given"
def heads_slow(x, weights, biases):
    return [F.linear(x, weight, bias) for weight, bias in zip(weights, biases, strict=True)]


def trained(x, seed, sizes):
    """Weights and biases of layers with these numbers of outputs, made from a seed, to go with ``x``."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(sum(sizes), x.shape[1] + 1, generator=generator).to(x).split(sizes)
    return [piece[:, 1:] for piece in rows], [piece[:, 0] for piece in rows]


def run_heads_slow(x, seed, sizes):
    return heads_slow(x, *trained(x, seed, sizes))


def run_heads_ten_times_slow(x, seed, sizes):
    return [run_heads_slow(x, seed, sizes) for _ in range(10)]


def three_even(generator, device):
    seed = int(torch.randint(1000, (), generator=generator))
    return torch.randn(8, 32, generator=generator).to(device), seed, [16, 16, 16]


def uneven(generator, device):
    seed = int(torch.randint(1000, (), generator=generator))
    return torch.randn(5, 12, generator=generator).to(device), seed, [7, 1, 10, 4]


# %% [markdown]
# <details><summary>Hint 1</summary>An output of a linear layer depends on one row of its weight and on one
# number of its bias. What happens if you put the rows of several layers below each other?</details>
# <details><summary>Hint 2</summary><code>nn.Linear</code> takes <code>device</code> and <code>dtype</code>.
# Copy into its parameters under <code>torch.no_grad()</code>.</details>
# <details><summary>Hint 3</summary><code>chunk</code> cuts into equal pieces. The chapter names a function
# that takes the sizes.</details>


# %% id="heads" role="answer"
class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        ### BEGIN SOLUTION
        if len(weights) != len(biases):
            raise ValueError(f"{len(weights)} weights, but {len(biases)} biases")
        weight = torch.cat(weights)
        self.sizes = [len(bias) for bias in biases]
        self.wide = nn.Linear(weight.shape[1], len(weight), device=weight.device, dtype=weight.dtype)
        with torch.no_grad():
            self.wide.weight.copy_(weight)
            self.wide.bias.copy_(torch.cat(biases))
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        return list(self.wide(x).split(self.sizes, dim=1))
        ### END SOLUTION


# %% id="heads_check" role="test"
def run_heads(x, seed, sizes):
    return Heads(*trained(x, seed, sizes))(x)


check(run_heads, like=run_heads_slow, on=three_even, gradients=True, points=1)

# %% id="heads_uneven" role="test"
check(run_heads, like=run_heads_slow, on=uneven, gradients=True, points=1)


# %% id="heads_counted" role="test"
# The module is made once and called ten times. Making it may take 15 operations, each call one.
def run_heads_ten_times(x, seed, sizes):
    module = Heads(*trained(x, seed, sizes))
    return [module(x) for _ in range(10)]


check(
    run_heads_ten_times,
    like=run_heads_ten_times_slow,
    on=three_even,
    at_most={"operations": 25},
    points=2,
)


# %% id="heads_state" role="test"
def state_of(x, seed, sizes):
    return dict(Heads(*trained(x, seed, sizes)).state_dict())


def state_expected(x, seed, sizes):
    weights, biases = trained(x, seed, sizes)
    return {"wide.weight": torch.cat(weights), "wide.bias": torch.cat(biases)}


check(state_of, like=state_expected, on=three_even, points=1)


# %% id="heads_lengths" role="test"
def one_bias_too_few(x, seed, sizes):
    weights, biases = trained(x, seed, sizes)
    return Heads(weights, biases[:-1])(x)


check(one_bias_too_few, like=run_heads_slow, on=three_even, raises=ValueError, points=1)


# %% id="heads_hidden" role="test"
# Hidden test: a single head, no rows, a module that is converted to float64. 1 point, when graded.
### BEGIN HIDDEN TESTS
def one_head(generator, device):
    return torch.randn(3, 6, generator=generator).to(device), 1, [4]


def doubles(generator, device):
    return torch.randn(4, 9, generator=generator, dtype=torch.float64).to(device), 2, [1, 30, 2]


def no_rows(generator, device):
    return torch.randn(0, 5, generator=generator).to(device), 3, [2, 3]


def run_heads_converted(x, seed, sizes):
    module = Heads(*trained(x, seed, sizes))
    module.to(torch.float64)
    return module(x.double())


def run_heads_converted_slow(x, seed, sizes):
    weights, biases = trained(x, seed, sizes)
    return heads_slow(x.double(), [w.double() for w in weights], [b.double() for b in biases])


check(run_heads_converted, like=run_heads_converted_slow, on=[one_head, doubles, no_rows], points=1)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Features on the way
#
# *Medium, 12 minutes.* A chain of 24 blocks is given. Somebody wants the outputs of some of its blocks. The
# given function runs the chain once for each wanted block, from end to end, with a hook. Write `features(x,
# wanted)`.
#
# - `x`: tensor of shape `(N, 48)`. `wanted`: list of names of blocks, such as `["block3", "block7"]`, in any
#   order.
# - returns: dictionary that maps each wanted name to the output of that block for `x`.
# - Blocks after the last wanted one must not run.
# - A name that the chain does not have must raise `KeyError`. No wanted names give an empty dictionary.
# - `chain_for(x)` gives you the chain, on the device of `x` and with its dtype. Leave it as it is: no hook
#   may stay.


# %% id="features_given" role="given"
@functools.cache
def make_chain(device, dtype):
    generator = torch.Generator().manual_seed(11)
    chain = nn.Sequential()
    for number in range(24):
        linear = nn.Linear(48, 48)
        with torch.no_grad():
            linear.weight.copy_(torch.randn(48, 48, generator=generator) / 48**0.5)
            linear.bias.copy_(torch.randn(48, generator=generator) / 10)
        chain.add_module(f"block{number}", nn.Sequential(linear, nn.Tanh()))
    return chain.requires_grad_(False).to(device, dtype)


def chain_for(x):
    return make_chain(x.device, x.dtype)


def features_slow(x, wanted):
    found = {}
    for name in wanted:
        chain = chain_for(x)
        blocks = dict(chain.named_children())
        handle = blocks[name].register_forward_hook(
            lambda module, inputs, output, name=name: found.__setitem__(name, output)
        )
        chain(x)
        handle.remove()
    return found


def three_of_the_first(generator, device):
    numbers = torch.randperm(10, generator=generator)[:3].tolist()
    return torch.randn(32, 48, generator=generator).to(device), [f"block{number}" for number in numbers]


def unknown_block(generator, device):
    return torch.randn(4, 48, generator=generator).to(device), ["block2", "block24"]


# %% [markdown]
# <details><summary>Hint 1</summary>One pass meets all the wanted blocks. After the last of them, nothing more
# is needed.</details>
# <details><summary>Hint 2</summary>You may call the blocks yourself, one after the other:
# <code>named_children</code> gives them with their names.</details>


# %% id="features" role="answer"
def features(x, wanted):
    ### BEGIN SOLUTION
    missing, found = set(wanted), {}
    for name, block in chain_for(x).named_children():
        if not missing:
            break
        x = block(x)
        if name in missing:
            found[name] = x
            missing.remove(name)
    if missing:
        raise KeyError(*missing)
    return found
    ### END SOLUTION


# %% id="features_check" role="test"
check(features, like=features_slow, on=three_of_the_first, gradients=True, points=1)

# %% id="features_unknown" role="test"
check(features, like=features_slow, on=unknown_block, raises=KeyError, points=1)

# %% id="features_counted" role="test"
# A block is two operations. The wanted ones are among the first ten. A pass from end to end takes 48.
check(features, like=features_slow, on=three_of_the_first, at_most={"operations": 24}, points=1)


# %% id="features_hidden" role="test"
# Hidden test: the last block, all blocks, one name twice, no names, float64. 1 point, when graded.
### BEGIN HIDDEN TESTS
def last_block(generator, device):
    return torch.randn(2, 48, generator=generator).to(device), ["block23"]


def all_blocks_backwards(generator, device):
    return torch.randn(3, 48, generator=generator).to(device), [f"block{n}" for n in reversed(range(24))]


def one_name_twice(generator, device):
    return torch.randn(1, 48, generator=generator).to(device), ["block5", "block0", "block5"]


def no_names(generator, device):
    return torch.randn(2, 48, generator=generator).to(device), []


def in_float64(generator, device):
    return torch.randn(2, 48, generator=generator, dtype=torch.float64).to(device), ["block9", "block1"]


check(
    features,
    like=features_slow,
    on=[last_block, all_blocks_backwards, one_name_twice, no_names, in_float64],
    points=1,
)
### END HIDDEN TESTS

# %% id="features_race" role="test"
race(features, against=features_slow, on=three_of_the_first, at_least={"cpu": 2.8, "cuda": 4}, points=2)

# %% [markdown]
# ## 3. Adam for many small tensors
#
# *Medium, 15 minutes.* Write `adam(values, targets, steps, rate)`, which moves tensors towards their targets
# with Adam, all at once.
#
# - `values`: list of `float32` tensors of any shapes, on one device. `targets`: list of as many tensors of
#   the same shapes. `steps`: number of steps, 0 or more. `rate`: the learning rate.
# - At each step the gradient of a value is `value - target`. The update is that of the given function.
# - returns: list of new tensors, the values after the last step. `values` and `targets` must stay as they
#   are.
# - Lists of different lengths must raise `ValueError`. Empty lists give an empty list.


# %% id="adam_given" role="given"
def adam_slow(values, targets, steps, rate):
    results = []
    for value, target in zip(values, targets, strict=True):
        value = value.clone()
        mean, square = torch.zeros_like(value), torch.zeros_like(value)
        for step in range(1, steps + 1):
            gradient = value - target
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient * gradient
            corrected = mean / (1 - 0.9**step)
            size = (square / (1 - 0.999**step)).sqrt() + 1e-8
            value = value - rate * corrected / size
        results.append(value)
    return results


def small_tensors(generator, device):
    shapes = [(6, 6), (6,), (4, 3), (10,), (3, 2, 2)] * 6
    values = [torch.randn(shape, generator=generator).to(device) for shape in shapes]
    targets = [value + 1 + torch.rand(value.shape, generator=generator).to(device) for value in values]
    return values, targets, 15, 0.05


def one_target_too_few(generator, device):
    values, targets, steps, rate = small_tensors(generator, device)
    return values, targets[:-1], steps, rate


# %% [markdown]
# <details><summary>Hint 1</summary>The update treats every number alike. It does not care which tensor a
# number is in.</details>
# <details><summary>Hint 2</summary>Flatten all tensors into a single one at the start. <code>split</code> and
# <code>view_as</code> undo it at the end.</details>
# <details><summary>Hint 3</summary>Or let <code>torch.optim.Adam</code> do the steps, and choose its
# implementation. That earns only a part of the race's points.</details>


# %% id="adam" role="answer"
def adam(values, targets, steps, rate):
    ### BEGIN SOLUTION
    if len(values) != len(targets):
        raise ValueError(f"{len(values)} values, but {len(targets)} targets")
    if not values:
        return []
    value = torch.cat([tensor.reshape(-1) for tensor in values])
    target = torch.cat([tensor.reshape(-1) for tensor in targets])
    mean, square = torch.zeros_like(value), torch.zeros_like(value)
    for step in range(1, steps + 1):
        gradient = value - target
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        size = (square / (1 - 0.999**step)).sqrt_().add_(1e-8)
        value.addcdiv_(mean, size, value=-rate / (1 - 0.9**step))
    pieces = value.split([tensor.numel() for tensor in values])
    return [piece.view_as(tensor) for piece, tensor in zip(pieces, values, strict=True)]
    ### END SOLUTION


# %% id="adam_check" role="test"
check(adam, like=adam_slow, on=small_tensors, tolerance=1e-3, points=1)

# %% id="adam_lengths" role="test"
check(adam, like=adam_slow, on=one_target_too_few, raises=ValueError, points=1)


# %% id="adam_hidden" role="test"
# Hidden test: one tensor, numbers without dimensions, no steps, no tensors, four dimensions. 2 points.
### BEGIN HIDDEN TESTS
def one_tensor(generator, device):
    value = torch.randn(4, 5, generator=generator).to(device)
    return [value], [value + 2], 40, 0.01


def single_numbers(generator, device):
    values = [torch.randn((), generator=generator).to(device) for _ in range(3)]
    return values, [value - 3 for value in values], 7, 0.1


def no_steps(generator, device):
    values = [
        torch.randn(3, generator=generator).to(device),
        torch.randn(2, 2, generator=generator).to(device),
    ]
    return values, [value + 1 for value in values], 0, 0.1


def no_tensors(generator, device):
    return [], [], 3, 0.1


def filters(generator, device):
    values = [torch.randn(2, 3, 4, 5, generator=generator).to(device) for _ in range(2)]
    return values, [value + 1.5 for value in values], 5, 0.02


check(
    adam,
    like=adam_slow,
    on=[one_tensor, single_numbers, no_steps, no_tensors, filters],
    tolerance=1e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="adam_race" role="test"
race(adam, against=adam_slow, on=small_tensors, at_least={"cpu": 5, "cuda": 5}, tolerance=1e-3, points=2)

# %% [markdown]
# ## 4. One limit for all layers
#
# *Medium, 12 minutes.* Global pruning puts the weights of all layers in one ranking. Write `masks(weights,
# share)`.
#
# - `weights`: list of one or more `float32` tensors of any shapes, on one device.
#   `share`: a number from 0 to 1.
# - returns: list of `bool` tensors of the same shapes, on the same device: `False` for the weights to prune.
#   These are the `round(share * n)` weights of smallest magnitude, of all *n* weights in the list together.
# - All magnitudes differ, so that the ranking is clear.
# - A share outside 0 to 1 must raise `ValueError`. `weights` must stay as they are.


# %% id="masks_given" role="given"
def masks_slow(weights, share):
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    ranking = []
    for number, weight in enumerate(weights):
        for place, value in enumerate(weight.flatten().tolist()):
            ranking.append((abs(value), number, place))
    ranking.sort()
    kept = [[True] * weight.numel() for weight in weights]
    for _, number, place in ranking[: round(share * len(ranking))]:
        kept[number][place] = False
    return [
        torch.tensor(flags, dtype=torch.bool, device=weight.device).view(weight.shape)
        for flags, weight in zip(kept, weights, strict=True)
    ]


def distinct(shapes, generator, device):
    """Tensors of these shapes; no two of their numbers have the same magnitude."""
    sizes = [torch.Size(shape).numel() for shape in shapes]
    numbers = (1 + torch.randperm(sum(sizes), generator=generator)).float() / sum(sizes)
    signs = 2.0 * torch.randint(2, numbers.shape, generator=generator) - 1
    pieces = (numbers * signs).split(sizes)
    return [piece.view(shape).to(device) for piece, shape in zip(pieces, shapes, strict=True)]


def four_layers(generator, device):
    shapes = [(48, 27), (48,), (32, 48), (10, 32)]
    return distinct(shapes, generator, device), 0.5 + 0.4 * float(torch.rand((), generator=generator))


def too_large_a_share(generator, device):
    return distinct([(3, 4)], generator, device), 1.1


# %% [markdown]
# <details><summary>Hint 1</summary>If you know the largest magnitude to prune, one comparison for each tensor
# makes its mask.</details>
# <details><summary>Hint 2</summary><code>kthvalue</code> finds it without sorting everything. It counts from
# 1. What if nothing is to be pruned?</details>


# %% id="masks" role="answer"
def masks(weights, share):
    ### BEGIN SOLUTION
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    magnitudes = torch.cat([weight.reshape(-1) for weight in weights]).abs()
    count = round(share * len(magnitudes))
    if count == 0:
        return [torch.ones_like(weight, dtype=torch.bool) for weight in weights]
    limit = magnitudes.kthvalue(count).values
    return [weight.abs() > limit for weight in weights]
    ### END SOLUTION


# %% id="masks_check" role="test"
check(masks, like=masks_slow, on=four_layers, points=1)

# %% id="masks_share" role="test"
check(masks, like=masks_slow, on=too_large_a_share, raises=ValueError, points=1)


# %% id="masks_hidden" role="test"
# Hidden test: shares of 0 and 1, one weight, a layer that loses all its weights, four dimensions. 2 points.
### BEGIN HIDDEN TESTS
def prune_nothing(generator, device):
    return distinct([(4, 3), (5,)], generator, device), 0


def prune_everything(generator, device):
    return distinct([(4, 3), (5,)], generator, device), 1


def one_weight(generator, device):
    return distinct([(1,)], generator, device), 0.4


def a_weak_layer(generator, device):
    strong, weak = distinct([(6, 5), (4, 5)], generator, device)
    return [strong + 2 * strong.sign(), weak], 0.5


def convolutions(generator, device):
    return distinct([(4, 3, 3, 2), (2, 4, 5, 3)], generator, device), 0.25


check(
    masks,
    like=masks_slow,
    on=[prune_nothing, prune_everything, one_weight, a_weak_layer, convolutions],
    points=2,
)
### END HIDDEN TESTS

# %% id="masks_race" role="test"
race(masks, against=masks_slow, on=four_layers, at_least={"cpu": 5, "cuda": 5}, points=2)

# %% [markdown]
# ## 5. Fold a normalisation away
#
# *Easy, 8 minutes.* In inference, batch normalisation multiplies each channel with one number and adds
# another. A linear layer or a convolution before it can do that itself. Write `fold(weight, bias, mean,
# variance, scale, shift)`.
#
# - `weight`: tensor of shape `(outputs, …)`: two dimensions for a linear layer, four for a convolution.
#   `bias`, `mean`, `variance`, `scale`, `shift`: tensors of shape `(outputs,)`. `variance` is positive.
# - The normalisation makes `(y - mean) / sqrt(variance + 1e-5) * scale + shift` of the layer's output `y`.
# - returns: the pair `(weight, bias)` of a layer that does both, as new tensors.
# - A `weight` whose number of outputs is not that of `mean` must raise `ValueError` or `RuntimeError`.


# %% id="fold_given" role="given"
def fold_slow(weight, bias, mean, variance, scale, shift):
    if len(weight) != len(mean):
        raise ValueError(f"{len(weight)} outputs, but {len(mean)} means")
    new_weight, new_bias = torch.empty_like(weight), torch.empty_like(bias)
    for output in range(len(weight)):
        factor = scale[output] / torch.sqrt(variance[output] + 1e-5)
        new_weight[output] = weight[output] * factor
        new_bias[output] = (bias[output] - mean[output]) * factor + shift[output]
    return new_weight, new_bias


def statistics(outputs, generator, device):
    variance = 0.1 + torch.rand(outputs, generator=generator)
    others = [torch.randn(outputs, generator=generator).to(device) for _ in range(4)]
    bias, mean, scale, shift = others
    return bias, mean, variance.to(device), scale, shift


def a_convolution(generator, device):
    weight = torch.randn(128, 8, 3, 3, generator=generator)
    return weight.to(device), *statistics(128, generator, device)


def too_many_outputs(generator, device):
    return torch.randn(6, 4, generator=generator).to(device), *statistics(5, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>All factors at once are one tensor of shape
# <code>(outputs,)</code>.</details>
# <details><summary>Hint 2</summary>To multiply each output's weights with its factor, give the factors as
# many dimensions as the weight has. <code>view</code> does it; so does an index with
# <code>None</code>.</details>


# %% id="fold" role="answer"
def fold(weight, bias, mean, variance, scale, shift):
    ### BEGIN SOLUTION
    if len(weight) != len(mean):
        raise ValueError(f"{len(weight)} outputs, but {len(mean)} means")
    factor = scale * torch.rsqrt(variance + 1e-5)
    return weight * factor.view(-1, *[1] * (weight.dim() - 1)), (bias - mean) * factor + shift
    ### END SOLUTION


# %% id="fold_check" role="test"
check(fold, like=fold_slow, on=a_convolution, points=1)

# %% id="fold_outputs" role="test"
check(fold, like=fold_slow, on=too_many_outputs, raises=(ValueError, RuntimeError), points=1)


# %% id="fold_hidden" role="test"
# Hidden test: a linear layer, as many inputs as outputs, a single output, three dimensions. 1 point.
### BEGIN HIDDEN TESTS
def a_linear_layer(generator, device):
    return torch.randn(7, 12, generator=generator).to(device), *statistics(7, generator, device)


def a_square_layer(generator, device):
    return torch.randn(9, 9, generator=generator).to(device), *statistics(9, generator, device)


def a_single_output(generator, device):
    return torch.randn(1, 3, 2, 2, generator=generator).to(device), *statistics(1, generator, device)


def in_one_dimension(generator, device):
    return torch.randn(5, 4, 3, generator=generator).to(device), *statistics(5, generator, device)


check(fold, like=fold_slow, on=[a_linear_layer, a_square_layer, a_single_output, in_one_dimension], points=1)
### END HIDDEN TESTS

# %% id="fold_race" role="test"
race(fold, against=fold_slow, on=a_convolution, at_least={"cpu": 8, "cuda": 8}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
