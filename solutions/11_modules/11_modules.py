# %% [markdown]
# # Exercises 11 · Modules
#
# Six tasks: merge layers, take a network apart, prune it, train it, and build two parts that you may keep: a bank
# of layers, and an attention that remembers. Each is given in a version that is right and slow, or large. Write a
# better one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. Hidden tests run when your notebook is graded: other shapes, other
# types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/11_modules.ipynb). 46 points, about 105 minutes.

# %% id="setup" role="given"
import functools

import torch
from torch import nn
from torch.nn import functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. Many heads, one layer
#
# *Easy, 10 minutes.* The given function sends one input through several linear layers, one by one. Write
# the module `Heads(weights, biases)` that does it with a single layer.
#
# - `weights`: list of one or more trained weights, tensors of shape `(outputs_i, inputs)`. The numbers of
#   outputs may differ. `biases`: list of as many tensors of shape `(outputs_i,)`. All are of one dtype, on
#   one device.
# - `Heads(weights, biases)` is an `nn.Module`. It has one linear layer, called `wide`, that holds copies of
#   the weights and biases, in their order. So its `state_dict` has the keys `wide.weight` and `wide.bias`.
# - Calling it with `x` of shape `(N, inputs)` gives a list of tensors of shape `(N, outputs_i)`, equal to
#   those of the given function. The gradient must reach `x`. After `module.to(dtype)`, `x` has that dtype, too.
# - A call may ask torch for one operation only. (Views are free.) Making the module may take 15. Among them are
#   those by which `nn.Linear` fills its parameters at first, and those by which the test makes its numbers.
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
# The state_dict, and the results of the module after a conversion to float64.
def run_heads_converted(x, seed, sizes):
    module = Heads(*trained(x, seed, sizes))
    state = dict(module.state_dict())
    module.to(torch.float64)
    return state, module(x.double())


def run_heads_converted_slow(x, seed, sizes):
    weights, biases = trained(x, seed, sizes)
    state = {"wide.weight": torch.cat(weights), "wide.bias": torch.cat(biases)}
    return state, heads_slow(x.double(), [w.double() for w in weights], [b.double() for b in biases])


check(run_heads_converted, like=run_heads_converted_slow, on=three_even, points=1)


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


check(run_heads_converted, like=run_heads_converted_slow, on=[one_head, doubles, no_rows], points=1)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Right, but slow and large
#
# *Hard, 20 minutes.* A chain of 24 blocks is given. Somebody wants the first numbers that some of its blocks
# give, for many batches. The given `features_slow` is right. It takes too long. And it needs many times the memory
# of its result, although it keeps nothing but small pieces, and no graph. Find out why (`costs` and `compare` may
# help), and write `features(batches, wanted, columns)`.
#
# - `batches`: list of one or more tensors of shape `(N_i, 48)`, of one dtype, on one device. An `N_i` may be 0.
#   `wanted`: list of names of blocks, such as `["block7", "block3"]`, in any order; a name may occur twice.
#   `columns`: a number from 1 to 48.
# - returns: dictionary that maps each wanted name to a tensor of shape `(N_0 + N_1 + …, columns)`: the first
#   `columns` columns of what that block gives, for all batches in their order. No wanted names give an empty
#   dictionary.
# - A name that the chain does not have must raise `KeyError`.
# - `chain_for(x)` gives you the chain, on the device of `x` and with its dtype. Its parameters require gradients;
#   that and everything else of it must stay as it is. The results require no gradient.
# - No block may run that nobody needs, and none twice for the same row: a block is two operations.
# - Memory: for 24 batches of 128 rows, three blocks and four columns, at most 420 kB of new memory at once.
# - Time: the race has 24 batches of 1 to 8 rows. To leave out what nobody needs is the obvious way. It earns
#   little more than half of the race's points at best. Measure.


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
    return chain.to(device, dtype)


def chain_for(x):
    return make_chain(x.device, x.dtype)


def features_slow(batches, wanted, columns):
    found = {name: [] for name in wanted}

    def keep(module, inputs, output, name):
        found[name].append(output.detach()[:, :columns])

    for x in batches:
        chain = chain_for(x)
        blocks = dict(chain.named_children())
        blocks = {name: blocks[name] for name in found}
        handles = [
            block.register_forward_hook(functools.partial(keep, name=name)) for name, block in blocks.items()
        ]
        chain(x)
        for handle in handles:
            handle.remove()
    return {name: torch.cat(pieces) for name, pieces in found.items()}


def wanted_among(sizes, first, generator, device):
    """Batches of these sizes, and three different blocks among the first so many."""
    numbers = torch.randperm(first, generator=generator)[:3].tolist()
    batches = [torch.randn(size, 48, generator=generator).to(device) for size in sizes]
    return batches, [f"block{number}" for number in numbers], 4


def a_few_batches(generator, device):
    return wanted_among([32, 32, 7, 0], 8, generator, device)


def many_batches(generator, device):
    return wanted_among([128] * 24, 8, generator, device)


def small_batches(generator, device):
    sizes = torch.randint(1, 9, (24,), generator=generator).tolist()
    return wanted_among(sizes, 24, generator, device)


def all_and_one_twice(generator, device):
    names = [f"block{number}" for number in reversed(range(24))]
    return [torch.randn(3, 48, generator=generator).to(device)], [*names, "block5"], 48


def no_names(generator, device):
    return [torch.randn(2, 48, generator=generator).to(device)], [], 2


def in_float64(generator, device):
    batches = [torch.randn(2, 48, generator=generator, dtype=torch.float64).to(device)]
    return batches, ["block9", "block1"], 48


def unknown_block(generator, device):
    return [torch.randn(4, 48, generator=generator).to(device)], ["block2", "block24"], 3


# %% [markdown]
# <details><summary>Hint 1</summary>After the last of the wanted blocks, nothing more is needed. You may call the
# blocks yourself: <code>named_children</code> gives them with their names.</details>
# <details><summary>Hint 2</summary>While <code>chain(x)</code> runs, who keeps the results of all blocks? The
# input needs no gradient. But something else does.</details>
# <details><summary>Hint 3</summary>Look at <code>untyped_storage().nbytes()</code> of one of the pieces that
# <code>found</code> keeps. What does the chapter say about the pieces of <code>chunk</code>?</details>
# <details><summary>Hint 4</summary>Now the time. Let <code>compare</code> tell what one block takes for 4 rows, and
# what for 40. Which part of it do the rows take, and which part the call? Section 4 had the same two parts.</details>
# <details><summary>Hint 5</summary>A block treats every row alike: it does not care whose row it is. So several
# batches can share a call. But ask <code>costs</code> for the peak if all of them do, with 24 batches of 128 rows.
# There is something between one batch and all; how many rows a call takes is up to you.</details>


# %% id="features" role="answer"
def features(batches, wanted, columns):
    ### BEGIN SOLUTION
    found = {name: [] for name in wanted}
    with torch.no_grad():
        for x in in_groups(batches, 256):
            missing = set(found)
            for name, block in chain_for(x).named_children():
                if not missing:
                    break
                x = block(x)
                if name in missing:
                    found[name].append(x[:, :columns].clone())
                    missing.remove(name)
            if missing:
                raise KeyError(*missing)
    return {name: torch.cat(pieces) for name, pieces in found.items()}


def in_groups(batches, rows):
    """Join neighbours until there are so many rows or more."""
    group, size = [], 0
    for x in batches:
        group.append(x)
        size += len(x)
        if size >= rows:
            yield torch.cat(group)
            group, size = [], 0
    if group:
        yield torch.cat(group)
    ### END SOLUTION


# %% id="features_check" role="test"
check(features, like=features_slow, on=[a_few_batches, all_and_one_twice, no_names, in_float64], points=1)

# %% id="features_unknown" role="test"
check(features, like=features_slow, on=unknown_block, raises=KeyError, points=1)

# %% id="features_memory" role="test"
check(features, like=features_slow, on=many_batches, peak=420_000, points=2)

# %% id="features_counted" role="test"
# A block is two operations. The wanted ones are among the first eight. Four passes from end to end take 192.
check(features, like=features_slow, on=a_few_batches, at_most={"operations": 100}, points=1)


# %% id="features_hidden" role="test"
# Hidden test: the last block, one name twice, batches of all sizes, no names, float64. 1 point, when graded.
### BEGIN HIDDEN TESTS
def last_block(generator, device):
    return [torch.randn(2, 48, generator=generator).to(device)], ["block23"], 1


def one_name_twice(generator, device):
    batches = [torch.randn(rows, 48, generator=generator).to(device) for rows in (1, 3)]
    return batches, ["block5", "block0", "block5"], 7


def all_sizes(generator, device):
    return wanted_among([0, 3, 700, 0, 1, 255, 2, 300, 0], 24, generator, device)


def no_rows(generator, device):
    return wanted_among([0, 0], 4, generator, device)


check(
    features,
    like=features_slow,
    on=[last_block, one_name_twice, all_sizes, no_rows, no_names, in_float64],
    points=1,
)
### END HIDDEN TESTS

# %% id="features_race" role="test"
race(features, against=features_slow, on=small_batches, at_least={"cpu": 6.5, "cuda": 6.5}, points=2)

# %% [markdown]
# ## 3. A bank of layers
#
# *Hard, 15 minutes.* Some networks have a bank of linear layers of one size, and each row goes through *one* of
# them: a layer for each language, or an "expert" that another layer chose. The given function takes row by row.
# Write `routed(x, which, weights, biases)`.
#
# - `x`: floating-point tensor of shape `(N, inputs)`. `which`: `int64` tensor of shape `(N,)` with numbers from 0
#   to *E* − 1. `weights`: tensor of shape `(E, outputs, inputs)`; `biases`: `(E, outputs)`. All are on one device;
#   `x`, `weights` and `biases` have one dtype.
# - returns: tensor of shape `(N, outputs)`. Row *i* is row *i* of `x`, sent through layer `which[i]`.
# - *N* may be 0; *E* is at least 1. A layer may get no row, or all.
# - The gradients must reach `x`, `weights` and `biases` (where there are rows).
# - A number in `which` outside 0 to *E* − 1 must raise `IndexError`, also a negative one.
# - However many layers there are: at most 6 syncs a call (chapter 02).


# %% id="routed_given" role="given"
def routed_slow(x, which, weights, biases):
    results = []
    for i, number in enumerate(which.tolist()):
        if not 0 <= number < len(weights):
            raise IndexError(f"there is no layer {number} among {len(weights)}")
        results.append(F.linear(x[i : i + 1], weights[number], biases[number]))
    return torch.cat(results) if results else x.new_zeros(0, weights.shape[1])


def a_bank(number, layers, inputs, outputs, generator, device, dtype=torch.float32):
    x = torch.randn(number, inputs, generator=generator)
    which = torch.randint(layers, (number,), generator=generator)
    weights = torch.randn(layers, outputs, inputs, generator=generator) / inputs**0.5
    biases = torch.randn(layers, outputs, generator=generator)
    return x.to(device, dtype), which.to(device), weights.to(device, dtype), biases.to(device, dtype)


def sixteen_layers(generator, device):
    return a_bank(512, 16, 128, 128, generator, device)


def layers_without_rows(generator, device):
    return a_bank(4, 9, 6, 5, generator, device, torch.float64)


def no_row_at_all(generator, device):
    return a_bank(0, 3, 4, 2, generator, device)


def unknown_layer(generator, device):
    x, which, weights, biases = a_bank(7, 4, 3, 2, generator, "cpu")  # a GPU would stop for good
    which[5] = 4
    return x, which, weights, biases


def negative_layer(generator, device):
    x, which, weights, biases = a_bank(7, 4, 3, 2, generator, "cpu")
    which[2] = -1
    return x, which, weights, biases


# %% [markdown]
# <details><summary>Hint 1</summary>How much arithmetic is needed at least? One wide layer that computes all
# layers for all rows does 16 times as much. And choosing a weight for each row copies 512
# weights.</details>
# <details><summary>Hint 2</summary>A layer that gets its rows side by side needs one product. Put the rows in an
# order in which that is so, and back again afterwards.</details>
# <details><summary>Hint 3</summary>A mask for each layer waits for the device for each layer. The numbers of rows
# of all layers can be known at once: <code>bincount</code>, then <code>tolist</code>. The chapter names the
# function that cuts into pieces of given sizes. (Check the range first: <code>bincount</code> has an error of its
# own for a negative number, a <code>RuntimeError</code>, and takes one that is too large.)</details>
# <details><summary>Hint 4</summary><code>argsort</code> gives the order. If <code>sorted = rows[order]</code>,
# then <code>result[order] = sorted</code> undoes it.</details>


# %% id="routed" role="answer"
def routed(x, which, weights, biases):
    ### BEGIN SOLUTION
    if len(which):
        lowest, highest = torch.stack(torch.aminmax(which)).tolist()
        if lowest < 0 or highest >= len(weights):
            raise IndexError(f"layers have numbers from 0 to {len(weights) - 1}")
    order = which.argsort()
    counts = torch.bincount(which, minlength=len(weights)).tolist()
    pieces = x[order].split(counts)
    by_layer = [F.linear(*part) for part in zip(pieces, weights, biases, strict=True)]
    result = torch.empty(len(x), weights.shape[1], dtype=x.dtype, device=x.device)
    result[order] = torch.cat(by_layer)
    return result
    ### END SOLUTION


# %% id="routed_check" role="test"
check(routed, like=routed_slow, on=[sixteen_layers, layers_without_rows], gradients=True, points=1)

# %% id="routed_empty" role="test"
check(routed, like=routed_slow, on=no_row_at_all, points=1)

# %% id="routed_syncs" role="test"
check(routed, like=routed_slow, on=[sixteen_layers, layers_without_rows], at_most={"syncs": 6}, points=2)

# %% id="routed_bad" role="test"
check(routed, like=routed_slow, on=[unknown_layer, negative_layer], raises=IndexError, points=1)


# %% id="routed_hidden" role="test"
# Hidden test: one layer, one row, all rows in one layer, many layers, float64. 1 point, when graded.
### BEGIN HIDDEN TESTS
def one_layer(generator, device):
    return a_bank(5, 1, 3, 4, generator, device)


def one_row(generator, device):
    return a_bank(1, 6, 3, 1, generator, device)


def all_in_one(generator, device):
    x, which, weights, biases = a_bank(20, 5, 8, 3, generator, device)
    return x, torch.full_like(which, 3), weights, biases


def many_layers(generator, device):
    return a_bank(90, 40, 5, 7, generator, device, torch.float64)


check(
    routed,
    like=routed_slow,
    on=[one_layer, one_row, all_in_one, many_layers],
    gradients=True,
    points=1,
)
### END HIDDEN TESTS

# %% id="routed_race" role="test"
race(
    routed,
    against=routed_slow,
    on=sixteen_layers,
    at_least={"cpu": 3.5, "cuda": 3.5},
    points=2,
    flops=2 * 512 * 128 * 128,
)

# %% [markdown]
# ## 4. One ranking for all layers
#
# *Medium, 15 minutes.* Global pruning puts the weights of all layers in one ranking. Write `masks(weights,
# share)`.
#
# - `weights`: list of one or more `float32` tensors of any shapes, on one device.
#   `share`: a number from 0 to 1.
# - returns: list of `bool` tensors of the same shapes, on the same device: `False` for the weights to prune.
#   These are the `round(share * n)` weights of smallest magnitude, of all *n* weights in the list together.
# - Many weights may have the same magnitude: they were rounded, or pruned to 0 before. Of these, the first are
#   pruned first: those of earlier tensors in the list, and in a tensor those with the lower index (in the order
#   of `flatten()`).
# - A share outside 0 to 1 must raise `ValueError`. `weights` must stay as they are.
# - Time: the race has 34,176 weights with four digits after the point. The obvious way is to let torch make the
#   ranking. It earns less than half of the points or most of them, depending on the processor. Measure.


# %% id="masks_given" role="given"
def masks_slow(weights, share):
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    magnitudes = torch.cat([weight.flatten() for weight in weights]).abs()
    values = magnitudes.tolist()
    ranking = sorted(range(len(values)), key=values.__getitem__)
    kept = torch.ones_like(magnitudes, dtype=torch.bool)
    kept[ranking[: round(share * len(ranking))]] = False
    pieces = kept.split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]


def rounded(shapes, generator, device, parts=8):
    """Weights of these shapes, rounded to so many parts of 1: some are alike, and some may be 0."""
    weights = [torch.randn(shape, generator=generator) for shape in shapes]
    return [(parts * weight).round().div(parts).to(device) for weight in weights]


def four_layers(generator, device):
    shapes = [(128, 64), (128,), (64, 128), (10, 64)]
    return rounded(shapes, generator, device), 0.3 + 0.5 * float(torch.rand((), generator=generator))


def larger_layers(generator, device):
    shapes = [(128, 128), (128,), (128, 128), (10, 128)]
    weights = rounded(shapes, generator, device, parts=10_000)
    return weights, 0.3 + 0.5 * float(torch.rand((), generator=generator))


def too_large_a_share(generator, device):
    return rounded([(3, 4)], generator, device), 1.1


def prune_nothing(generator, device):
    return rounded([(4, 3, 2, 1), (5,)], generator, device), 0


# %% [markdown]
# <details><summary>Hint 1</summary>A ranking is an order. A function of torch gives it for a tensor of numbers; read
# there what happens to equal ones. It is the obvious way. Now let <code>compare</code> tell which share of your time
# this one function takes.</details>
# <details><summary>Hint 2</summary>The ranking tells which weight comes 11,312th and which comes 11,313th. Who
# asks for that? If all magnitudes differed, one number would be enough to make all masks: which one?</details>
# <details><summary>Hint 3</summary>torch finds the smallest number, or the one at a certain place of the ranking,
# without the ranking: look for functions next to <code>sort</code> and <code>median</code>.</details>
# <details><summary>Hint 4</summary>That number parts the weights in three: smaller ones, larger ones, and those that
# are alike. Only the last are left to decide, and they are few. How many of them must go?
# <code>nonzero</code> gives their places, and these come in order.</details>


# %% id="masks" role="answer"
def masks(weights, share):
    ### BEGIN SOLUTION
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    magnitudes = torch.cat([weight.reshape(-1) for weight in weights]).abs()
    count = round(share * len(magnitudes))
    kept = torch.ones_like(magnitudes, dtype=torch.bool)
    if count:
        limit = magnitudes.kthvalue(count).values
        kept = magnitudes > limit
        alike = (magnitudes == limit).nonzero()[:, 0]
        smaller = len(magnitudes) - int(kept.sum()) - len(alike)
        kept[alike[count - smaller :]] = True
    pieces = kept.split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]
    ### END SOLUTION


# %% id="masks_check" role="test"
check(masks, like=masks_slow, on=[four_layers, larger_layers, prune_nothing], points=1)

# %% id="masks_share" role="test"
check(masks, like=masks_slow, on=too_large_a_share, raises=ValueError, points=1)


# %% id="masks_hidden" role="test"
# Hidden test: shares of 0 and 1, one weight, weights that are all alike, four dimensions. 2 points.
### BEGIN HIDDEN TESTS
def prune_everything(generator, device):
    return rounded([(4, 3), (5,)], generator, device), 1


def one_weight(generator, device):
    return rounded([(1,)], generator, device), 0.4


def all_alike(generator, device):
    signs = [2.0 * torch.randint(2, shape, generator=generator) - 1 for shape in ((3, 5), (4,), (2, 2))]
    return [sign.to(device) for sign in signs], 0.75


def convolutions(generator, device):
    return rounded([(4, 3, 3, 2), (2, 4, 5, 3)], generator, device), 0.25


check(
    masks,
    like=masks_slow,
    on=[prune_nothing, prune_everything, one_weight, all_alike, convolutions],
    points=2,
)
### END HIDDEN TESTS

# %% id="masks_race" role="test"
race(masks, against=masks_slow, on=larger_layers, at_least={"cpu": 5.7, "cuda": 7.5}, points=2)

# %% [markdown]
# ## 5. Adam for many small tensors
#
# *Medium, 15 minutes.* Write `adam(values, targets, steps, rate, decay, limit)`, which moves tensors towards their
# targets, as a training with Adam does.
#
# - `values`: list of `float32` tensors of any shapes, on one device. `targets`: list of as many entries: a tensor of
#   the same shape, or `None`. `steps`: number of steps, 0 or more. `rate`, `decay`, `limit`: numbers above 0.
# - At each step:
#   1. The gradient of a value is `value - target`. A value without a target has no gradient: it is left as it is.
#   2. If the norm of all gradients together (the root of the sum of all their squares) is above `limit`, all are
#      multiplied by `limit / norm`.
#   3. A value with a gradient and with two dimensions or more is multiplied by `1 - rate * decay`.
#   4. Then comes Adam's update, that of the given function.
# - returns: list of new tensors, the values after the last step. `values` and `targets` must stay as they
#   are, and no result may share memory with them. (With each other, results may.)
# - Lists of different lengths must raise `ValueError`. Empty lists give an empty list. All targets may be `None`.
# - `torch.optim.Adam(fused=True)` is allowed. For the list as it is, it earns only a part of the race's points:
#   from few to nearly all, depending on the processor.


# %% id="adam_given" role="given"
def adam_slow(values, targets, steps, rate, decay, limit):
    if len(values) != len(targets):
        raise ValueError(f"{len(values)} values, but {len(targets)} targets")
    values = [value.clone() for value in values]
    means = [torch.zeros_like(value) for value in values]
    squares = [torch.zeros_like(value) for value in values]
    for step in range(1, steps + 1):
        gradients = {i: values[i] - target for i, target in enumerate(targets) if target is not None}
        norm = sum(float(gradient.square().sum()) for gradient in gradients.values()) ** 0.5
        for i, gradient in gradients.items():
            if norm > limit:
                gradient = gradient * (limit / norm)
            if values[i].ndim >= 2:
                values[i] = values[i] * (1 - rate * decay)
            means[i] = 0.9 * means[i] + 0.1 * gradient
            squares[i] = 0.999 * squares[i] + 0.001 * gradient * gradient
            size = (squares[i] / (1 - 0.999**step)).sqrt() + 1e-8
            values[i] = values[i] - rate * (means[i] / (1 - 0.9**step)) / size
    return values


def tensors_of(shapes, steps, generator, device, limit=3.0, without=()):
    """Values of these shapes, each with a target above it; those at the places ``without`` have none."""
    values = [torch.randn(shape, generator=generator).to(device) for shape in shapes]
    targets = [value + 1 + torch.rand(value.shape, generator=generator).to(device) for value in values]
    targets = [None if place in without else target for place, target in enumerate(targets)]
    return values, targets, steps, 0.05, 0.3, limit


def small_tensors(generator, device):
    without = torch.randperm(30, generator=generator)[:4].tolist()
    return tensors_of([(6, 6), (6,), (4, 3), (10,), (3, 2, 2)] * 6, 12, generator, device, without=without)


def short_gradients(generator, device):
    return tensors_of([(2, 2), (3,)], 5, generator, device, limit=100.0)


def no_targets(generator, device):
    return tensors_of([(2, 3), ()], 3, generator, device, without=(0, 1))


def no_steps(generator, device):
    return tensors_of([(3,), (2, 2)], 0, generator, device)


def no_tensors(generator, device):
    return tensors_of([], 3, generator, device)


def one_target_too_few(generator, device):
    values, targets, *others = small_tensors(generator, device)
    return values, targets[:-1], *others


# %% [markdown]
# <details><summary>Hint 1</summary>The chapter's <code>torch.optim.Adam(fused=True)</code> does a step in one
# operation; but it still goes from tensor to tensor, and so do the gradients and their norm. Adam treats every
# number alike: it does not care which tensor a number is in.</details>
# <details><summary>Hint 2</summary>Flatten all tensors that have a target into a single one at the start.
# <code>split</code> and <code>view_as</code> undo it at the end.</details>
# <details><summary>Hint 3</summary>What differs from tensor to tensor is one factor. It can be a flat tensor,
# too, made once.</details>
# <details><summary>Hint 4</summary>"If above" need not be an <code>if</code>: what is the smaller of 1 and
# <code>limit / norm</code>? And many operations have a form that writes into its tensor:
# <code>lerp_</code>, <code>addcmul_</code>, <code>addcdiv_</code>.</details>


# %% id="adam" role="answer"
def adam(values, targets, steps, rate, decay, limit):
    ### BEGIN SOLUTION
    if len(values) != len(targets):
        raise ValueError(f"{len(values)} values, but {len(targets)} targets")
    results = [value.clone() for value in values]
    moved = [i for i, target in enumerate(targets) if target is not None]
    if not moved:
        return results
    value = torch.cat([values[i].reshape(-1) for i in moved])
    target = torch.cat([targets[i].reshape(-1) for i in moved])
    shrink = torch.cat(
        [value.new_full((values[i].numel(),), 1 - rate * decay * (values[i].ndim >= 2)) for i in moved]
    )
    mean, square = torch.zeros_like(value), torch.zeros_like(value)
    for step in range(1, steps + 1):
        gradient = value - target
        gradient.mul_((limit / gradient.norm()).clamp_(max=1))
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        size = (square / (1 - 0.999**step)).sqrt_().add_(1e-8)
        value.mul_(shrink).addcdiv_(mean, size, value=-rate / (1 - 0.9**step))
    pieces = value.split([values[i].numel() for i in moved])
    for i, piece in zip(moved, pieces, strict=True):
        results[i] = piece.view_as(values[i])
    return results
    ### END SOLUTION


# %% id="adam_check" role="test"
check(
    adam,
    like=adam_slow,
    on=[small_tensors, short_gradients, no_targets, no_steps, no_tensors],
    shares=False,
    tolerance=1e-3,
    points=1,
)

# %% id="adam_lengths" role="test"
check(adam, like=adam_slow, on=one_target_too_few, raises=ValueError, points=1)


# %% id="adam_hidden" role="test"
# Hidden test: one tensor, numbers without dimensions, no steps, no tensors, four dimensions. 2 points.
### BEGIN HIDDEN TESTS
def one_tensor(generator, device):
    return tensors_of([(4, 5)], 30, generator, device, limit=0.5)


def single_numbers(generator, device):
    return tensors_of([(), (), ()], 7, generator, device, without=(1,))


def filters(generator, device):
    return tensors_of([(2, 3, 4, 5), (2,), (3, 2, 1, 1)], 5, generator, device, without=(2,))


check(
    adam,
    like=adam_slow,
    on=[one_tensor, single_numbers, no_steps, no_tensors, filters],
    shares=False,
    tolerance=1e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="adam_race" role="test"
race(adam, against=adam_slow, on=small_tensors, at_least={"cpu": 6, "cuda": 6}, tolerance=1e-3, points=2)

# %% [markdown]
# ## 6. Attention that remembers
#
# *Hard, 20 minutes.* A language model writes one word at a time. For each new position, attention needs the keys
# and values of *all* positions so far. The given class computes them again and again. Write a module that keeps
# them: `Attention(weights, biases, heads, longest)`.
#
# - `weights`: list of three tensors of shape `(D, D)`, for queries, keys and values. `biases`: list of three of
#   shape `(D,)`. All are of one dtype, on one device. `heads` divides *D*. `longest`: how many positions there
#   may be.
# - Calling the module with `x` of shape `(N, T, D)`, *T* at least 1, gives it the next *T* positions. It returns a
#   tensor of shape `(N, T, D)`: each new position attends to itself and to all positions before it, in this
#   call and in earlier ones. Positions after it do not count. *N* does not change from call to call.
# - `reset()` forgets all positions. Afterwards *N* may be another one.
# - More than `longest` positions in all must raise `ValueError`; the module then goes on as if that call had not
#   been.
# - It is an `nn.Module` with one linear layer, called `qkv`, that holds copies of the three weights and biases, in
#   their order. Its `state_dict` has the keys `qkv.weight` and `qkv.bias` and no others, also after calls.
# - `module.to(dtype)`, before the first call or after `reset()`, makes it compute in that dtype. It is used for
#   inference only: no gradients are asked for.
# - Memory: for *D* = 64, 4 heads, *N* = 2 and 128 positions, one in each call, at most 5 MB of new memory in all calls
#   together. (That is every new tensor that an operation returns, also one that is soon gone: `bytes` in `costs`.)
#   Nothing in them waits for a value (`syncs`).


# %% id="attention_given" role="given"
class AttentionSlow:
    def __init__(self, weights, biases, heads, longest):
        self.weights, self.biases, self.heads, self.longest = weights, biases, heads, longest
        self.seen = None

    def __call__(self, x):
        seen = x if self.seen is None else torch.cat([self.seen, x], dim=1)
        if seen.shape[1] > self.longest:
            raise ValueError(f"{seen.shape[1]} positions, but at most {self.longest}")
        self.seen = seen
        query, key, value = (
            F.linear(seen, weight, bias).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for weight, bias in zip(self.weights, self.biases, strict=True)
        )
        result = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return result.transpose(1, 2).flatten(2)[:, -x.shape[1] :]

    def reset(self):
        self.seen = None


def three_layers(width, seed, like):
    """Weights and biases for queries, keys and values, made from a seed, to go with a tensor."""
    generator = torch.Generator().manual_seed(seed)
    rows = 2 * torch.randn(3 * width, width + 1, generator=generator) / width**0.5
    pieces = rows.to(like).split(width)
    return [piece[:, 1:] for piece in pieces], [piece[:, 0] for piece in pieces]


def feed(module, x, sizes):
    """Give a module the positions of ``x`` in pieces of these sizes."""
    return [module(piece) for piece in x.split(sizes, dim=1)]


def run_slow(x, sizes, heads, seed):
    """All positions in pieces; then the first two again, of the first sequence alone."""
    module = AttentionSlow(*three_layers(x.shape[2], seed, x), heads, sum(sizes))
    results = feed(module, x, sizes)
    module.reset()
    return [*results, *feed(module, x[:1, :2], [1, 1])]


def positions(number, sizes, width, heads, generator, device, dtype=torch.float32):
    seed = int(torch.randint(1000, (), generator=generator))
    x = torch.randn(number, sum(sizes), width, generator=generator)
    return x.to(device, dtype), sizes, heads, seed


def one_by_one(generator, device):
    return positions(2, [1] * 9, 16, 4, generator, device)


def in_pieces(generator, device):
    return positions(3, [5, 1, 3, 2], 24, 3, generator, device)


def a_long_text(generator, device):
    return positions(2, [1] * 128, 64, 4, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>The first exercise made one layer of several; do it again. Of keys and values,
# only those of the new positions must be computed.</details>
# <details><summary>Hint 2</summary>Joining the old keys with the new ones by <code>cat</code> copies all of them in
# every call. <code>longest</code> tells you how much room will be needed: make it once, at the first call,
# and write into it. A part of it is a view.</details>
# <details><summary>Hint 3</summary>With fewer queries than keys, <code>is_causal=True</code> does not mean what is
# needed here: it lines up the first query with the first key. The argument <code>attn_mask</code> takes a mask.
# New position <em>i</em> stands at place <em>seen + i</em>. (For the 5 MB: <code>costs</code> shows what the
# attention ran as. One kernel returns little; several plain operations return a new tensor each.)</details>
# <details><summary>Hint 4</summary><code>state_dict</code> holds parameters and buffers. A plain attribute is
# neither.</details>


# %% id="attention" role="answer"
class Attention(nn.Module):
    def __init__(self, weights, biases, heads, longest):
        super().__init__()
        ### BEGIN SOLUTION
        weight = torch.cat(weights)
        self.qkv = nn.Linear(weight.shape[1], len(weight), device=weight.device, dtype=weight.dtype)
        with torch.no_grad():
            self.qkv.weight.copy_(weight)
            self.qkv.bias.copy_(torch.cat(biases))
        self.heads, self.longest = heads, longest
        self.reset()
        ### END SOLUTION

    def reset(self):
        ### BEGIN SOLUTION
        self.keys = self.values = None
        self.seen = 0
        ### END SOLUTION

    @torch.no_grad()
    def forward(self, x):
        ### BEGIN SOLUTION
        number, new, width = x.shape
        start, end = self.seen, self.seen + new
        if end > self.longest:
            raise ValueError(f"{end} positions, but at most {self.longest}")
        if self.keys is None:
            shape = number, self.heads, self.longest, width // self.heads
            self.keys, self.values = x.new_empty(shape), x.new_empty(shape)
        query, key, value = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        self.keys[:, :, start:end] = key
        self.values[:, :, start:end] = value
        self.seen = end
        mask = None
        if new > 1:
            mask = torch.ones(new, end, dtype=torch.bool, device=x.device).tril(start)
        result = F.scaled_dot_product_attention(
            query, self.keys[:, :, :end], self.values[:, :, :end], attn_mask=mask
        )
        return result.transpose(1, 2).flatten(2)
        ### END SOLUTION


# %% id="attention_check" role="test"
def run(x, sizes, heads, seed):
    module = Attention(*three_layers(x.shape[2], seed, x), heads, sum(sizes))
    results = feed(module, x, sizes)
    module.reset()
    return [*results, *feed(module, x[:1, :2], [1, 1])]


check(run, like=run_slow, on=[one_by_one, in_pieces], points=2)


# %% id="attention_long" role="test"
# There is room for all positions. After half of the pieces comes one that is too long.
def one_too_long(x, sizes, heads, seed):
    module = Attention(*three_layers(x.shape[2], seed, x), heads, sum(sizes))
    results = []
    for place, piece in enumerate(x.split(sizes, dim=1)):
        if 2 * place >= len(sizes):
            try:
                module(torch.cat([piece, x], dim=1))
            except ValueError:
                pass
            else:
                return "no ValueError was raised"
        results.append(module(piece))
    module.reset()
    return [*results, *feed(module, x[:1, :2], [1, 1])]


check(one_too_long, like=run_slow, on=in_pieces, points=1)


# %% id="attention_state" role="test"
# The state_dict after some calls, and the results of the module after a conversion to float64.
def state_and_doubles(x, sizes, heads, seed):
    module = Attention(*three_layers(x.shape[2], seed, x), heads, sum(sizes))
    feed(module, x, sizes)
    state = dict(module.state_dict())
    module.reset()
    module.to(torch.float64)
    return state, feed(module, x.double(), sizes)


def state_and_doubles_slow(x, sizes, heads, seed):
    weights, biases = three_layers(x.shape[2], seed, x)
    in_doubles = [weight.double() for weight in weights], [bias.double() for bias in biases]
    results = feed(AttentionSlow(*in_doubles, heads, sum(sizes)), x.double(), sizes)
    return {"qkv.weight": torch.cat(weights), "qkv.bias": torch.cat(biases)}, results


check(state_and_doubles, like=state_and_doubles_slow, on=in_pieces, points=1)


# %% id="attention_counted" role="test"
def only_feed(x, sizes, heads, seed):
    module = Attention(*three_layers(x.shape[2], seed, x), heads, sum(sizes))
    return feed(module, x, sizes)


def only_feed_slow(x, sizes, heads, seed):
    return feed(AttentionSlow(*three_layers(x.shape[2], seed, x), heads, sum(sizes)), x, sizes)


check(only_feed, like=only_feed_slow, on=a_long_text, at_most={"bytes": 5_000_000, "syncs": 0}, points=3)


# %% id="attention_hidden" role="test"
# Hidden test: one head, all positions at once, pieces of other sizes, one position, float64. 2 points.
### BEGIN HIDDEN TESTS
def one_head(generator, device):
    return positions(1, [2, 2, 1, 4], 6, 1, generator, device)


def all_at_once(generator, device):
    return positions(2, [7], 8, 2, generator, device)


def as_many_heads_as_numbers(generator, device):
    return positions(2, [1, 6, 1], 5, 5, generator, device)


def double_positions(generator, device):
    return positions(4, [3, 1, 1, 2], 12, 2, generator, device, torch.float64)


check(run, like=run_slow, on=[one_head, all_at_once, as_many_heads_as_numbers, double_positions], points=2)
### END HIDDEN TESTS

# %% [markdown]
# ## 7. Foretell the costs
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
def turned(x):
    return x.T.contiguous().view(-1) + x.reshape(-1)


def distances(x):
    return ((x[:, None] - x) ** 2).sum(-1).sqrt_()


def layer(x):
    weights, bias = torch.ones(3, x.shape[1]), torch.ones(3)
    return F.linear(x, weights, bias).relu_()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (turned, distances, layer)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>turned</code> is of chapter 06, <code>distances</code> is of chapter 09,
# <code>layer</code> is of chapter 11.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(layer, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "turned": {"operations": 2, "bytes": 8 * n * d, "syncs": 0},
        "distances": {"operations": 4, "bytes": 8 * n * n * d + 4 * n * n, "syncs": 0},
        "layer": {"operations": 4, "bytes": 12 * d + 12 + 12 * n, "syncs": 0},
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
