# %% [markdown]
# # 16 · Attention
#
# Attention is two matrix products with a softmax between them. Written so, it makes a table of length × length. In a
# long text this table is most of the cost. One call of torch does the same without the table. This chapter asks when it really
# does, what its arguments mean, and what to change where it does not help.
#
# The course measures the claims of five widely read articles, and here those of PyTorch's own documentation, whose
# *F* numbers are listed in [the score](claims.ipynb). `compare`, `costs` and `guess` are explained in
# [chapter 00](00_measuring.ipynb); `behaviour` checks a claim, and `when=` or `unless=` names a condition for its verdict.
#
# **You will be able to**
# - write attention by hand, with and without its table, and say what each way costs,
# - say who may attend to whom: causal, padded, with a cache; and avoid mistakes that raise no error,
# - see which implementation was taken, and get the fast one back where it was lost,
# - say when a cache, grouped heads or unpadded batches pay.
#
# **Time:** 55 minutes to read and run, 10 more for the part Further. **Needs:** CPU, GPU if any. Chapter 00 or 01;
# others go deeper where they are named.
#
# **Claims tested:** *F9* on a CPU, choosing a backend "will have no effect"; *F10* the boolean mask is "the inverse
# of `MultiheadAttention`'s"; *F11* the causal mask "has the form of the upper left causal bias"; *F12* a block of "causal
# self attention"; *F13* "the output corresponding to fully masked rows […] will be 0"; *F14* `need_weights=False` for
# "the best performance"; in *Further* *F15* nested tensors "when padding rate is high".

# %%
import functools
import timeit
import warnings

import torch
import torch.nn.functional as F
from parts.attention import draw_growth, draw_weights
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from autograder import behaviour, compare, costs, devices, guessed, picture, recall, verdicts

torch.set_num_threads(1)
torch.manual_seed(16)
attend = F.scaled_dot_product_attention  # a long name for a short call
print("devices here:", *devices())
recall("16", ..., ..., ...)

# %% [markdown]
# ## 1. By hand
#
# A text has 6 positions; each is a row of 32 numbers. Three matrix products turn each row into a **query** (what it
# looks for), a **key** (what it can be found by) and a **value** (what it has to give). Their columns are cut into
# heads, here 4 of 8 numbers. (Chapter 11 makes the three products one.)

# %%
x = torch.randn(1, 6, 32)
query, key, value = (x @ (torch.randn(32, 32) / 6) for _ in range(3))
query, key, value = (table.unflatten(2, (4, 8)).transpose(1, 2) for table in (query, key, value))
print("query, key and value: (texts, heads, positions, width) =", tuple(query.shape))

# %% [markdown]
# In each head, every query is compared with every key: an inner product, divided by the square root of the width.
# The softmax makes weights of these scores. The result for a query is the mean of all values with its weights.


# %%
def by_hand(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value


assert torch.allclose(by_hand(query, key, value), attend(query, key, value), atol=1e-6)
for name, function in {"by hand": by_hand, "one call": attend}.items():
    print(f"{name:9}", *costs(function, query, key, value).operations)

# %% [markdown]
# `torch.nn.functional.scaled_dot_product_attention`, here `attend`, gives the same. By hand it is two products, a
# division and a softmax: each writes a table, or reads one, or both. The call is a single operation: **fused**.
#
# 8 heads, 1,024 positions, width 64. How many times as fast is the call?

# %%
guess = ...


# %%
def heads(texts, number, queries, keys=None, width=64, groups=None):
    """Inputs of attention: a query, a key and a value, with this many positions."""

    def make(generator, device):
        shapes = [(texts, number, queries, width)] + 2 * [(texts, groups or number, keys or queries, width)]
        return tuple(torch.randn(shape, generator=generator).to(device) for shape in shapes)

    return make


compare(
    "attention: 8 heads, 1,024 positions",
    {"by hand": by_hand, "one call": attend},
    inputs=heads(1, 8, 1024),
    guess=guess,
    flops=4 * 8 * 1024 * 1024 * 64,
    because="page faults",
)

# %% [markdown]
# **Why.** The arithmetic of the two products is the same; the *limit* is the time that it takes at least. The rest is
# the table of scores: it is written, divided, turned into weights and read again. So by hand there are three such
# tables and a result, each in new memory, in every call. On a CPU most of the difference is that: page faults (chapter
# 00), and not reading and writing. Here each table is larger than the queries, keys and values together:

# %%
inputs = heads(1, 8, 1024)(torch.Generator(), "cpu")
table, given = 4 * 8 * 1024 * 1024, sum(tensor.nbytes for tensor in inputs)
print(f"queries, keys, values: {given / 1e6:.1f} MB; one table of scores: {table / 1e6:.1f} MB")
for name, function in {"by hand": by_hand, "one call": attend}.items():
    print(f"{name}: {costs(function, *inputs).bytes / 1e6:.1f} MB of new tensors")
assert table > 5 * given

# %% [markdown]
# ### One query
#
# A model that writes a text asks with *one* query at a time: the newest position looks back at all before it. 8 heads,
# 8,192 keys, one query. How many times as fast is the call?

# %%
guess = ...

# %%
compare(
    "attention: 8 heads, 8,192 keys, one query",
    {"by hand": by_hand, "one call": attend},
    inputs=heads(1, 8, 1, 8192),
    guess=guess,
    bytes=2 * 4 * 8 * 8192 * 64,
    because="prices",
)

# %% [markdown]
# **Why not?** The table is one row for each head: 262 kB beside 33.6 MB of keys and values. Whoever computes it must read
# those, once each: the limit counts that. There is no large table to save, so little can be won by saving it, and the
# call may even lose. On a CPU take it all the same: it is shorter, and the same code serves many queries. On an H200 it
# lost by far: 890 µs, against 99 by hand.

# %% [markdown]
# ## 2. Memory that grows with the square
#
# Twice as many positions, four times as large a table. By hand, two tables are there at a time: one is read, the next
# written. 4 heads, 256 to 4,096 positions. How many times less memory than by hand does the call need for 4,096?

# %%
guess = ...

# %%
lengths, peaks = (256, 512, 1024, 2048, 4096), {"by hand": [], "one call": []}
for length in lengths:
    inputs = heads(1, 4, length)(torch.Generator(), "cpu")
    for name, function in {"by hand": by_hand, "one call": attend}.items():
        peaks[name].append(costs(function, *inputs).peak_bytes / 1e6)
lines = [
    f"{length:5,} positions: {hand:7.1f} MB by hand, {call:4.1f} MB in one call"
    for length, hand, call in zip(lengths, *peaks.values(), strict=True)
]
less = peaks["by hand"][-1] / peaks["one call"][-1]
guessed("times less memory for 4,096 positions", guess, less, *lines, drawing=draw_growth(lengths, peaks))
assert 14 < peaks["by hand"][-1] / peaks["by hand"][-3] < 18  # four times the length
assert 3.9 < peaks["one call"][-1] / peaks["one call"][-3] < 4.1

# %% [markdown]
# The call's memory grows with the length, as its result does. The steeper line is the square. (`costs` sees what
# operations hand back, not the scratch memory inside one. That exists too, but it is a fixed number of small blocks.)
#
# ### Training
#
# The backward pass needs the weights again. By hand, autograd keeps their table (chapter 03). What does the call keep?


# %%
def kept_by(function, inputs):
    """The shapes of what autograd keeps for the way back, beside the inputs."""
    kept = {}

    def note(tensor):  # autograd calls it with each tensor that it keeps
        kept[tensor.data_ptr()] = tuple(tensor.shape)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        function(*inputs)
    return [shape for place, shape in kept.items() if place not in [tensor.data_ptr() for tensor in inputs]]


inputs = [tensor.requires_grad_() for tensor in heads(1, 4, 1024)(torch.Generator(), "cpu")]
for name, function in {"by hand": by_hand, "one call": attend}.items():
    print(f"{name}: keeps", kept_by(function, inputs))
scores = torch.randn(4, 8)
assert torch.allclose((scores - scores.logsumexp(-1, keepdim=True)).exp(), scores.softmax(-1))

# %% [markdown]
# Its result, and one number for each query: the logarithm of the sum under its softmax. With it, the backward pass can
# compute any weight again from its query and its key: `exp(score - that number)` (the last line checks it). So the table
# exists at no time. (The part Further times it.)

# %% [markdown]
# ## 3. Without the table
#
# How can there be a softmax without all scores? A softmax divides by a sum over all keys, and before that it takes
# away the highest score, so that `exp` does not overflow. Both can be kept up to date, key by key or block by block:
# when a higher score arrives, what was summed up so far shrinks by one common factor. After a score of 1 the sum is
# `exp(1 - 1)`. Then a 3 arrives: times `exp(1 - 3)`, the sum is what it would be with 3 from the start. The sum of the
# values shrinks with it. (Exercise 13.5 has the same idea.)


# %%
def in_blocks(query, key, value, block=256):
    scale = query.shape[-1] ** -0.5
    highest = query.new_full((*query.shape[:-1], 1), -torch.inf)
    total, result = torch.zeros_like(highest), torch.zeros_like(query)
    for keys, values in zip(key.split(block, -2), value.split(block, -2), strict=True):
        scores = query @ keys.transpose(-2, -1) * scale
        new = torch.maximum(highest, scores.amax(-1, keepdim=True))
        shrink, weights = (highest - new).exp(), (scores - new).exp()
        total = total * shrink + weights.sum(-1, keepdim=True)
        result = result * shrink + weights @ values
        highest = new
    return result / total


inputs = heads(1, 2, 2048)(torch.Generator(), "cpu")
assert torch.allclose(in_blocks(*inputs), by_hand(*inputs), atol=1e-5)
for function in (by_hand, in_blocks, attend):
    cost = costs(function, *inputs)
    print(f"{cost.operations.total():3} operations, at most {cost.peak_bytes / 1e6:5.1f} MB at once")

# %% [markdown]
# That is the **online softmax**, and it is exact: no weight is left out. Fused kernels do the same in a compiled loop,
# with blocks that fit a cache. How many times as fast as by hand is the one call?

# %%
guess = ...

# %%
compare(
    "attention: the whole table, blocks in Python, one call",
    {"by hand": by_hand, "blocks in Python": in_blocks, "one call": attend},
    inputs=heads(1, 2, 2048),
    guess=guess,
)

# %% [markdown]
# On a CPU, even blocks in Python can be faster than the table, which is new memory in each call (section 1). But they
# run many more operations. On an H200 by hand won: 160 µs, against 220 for the call and 1,300 for blocks in Python. 128
# positions, blocks of 32: how many times as fast as by hand are the blocks?

# %%
guess = ...

# %%
compare(
    "attention: 128 positions, the whole table or blocks in Python",
    {"by hand": by_hand, "blocks in Python": lambda *inputs: in_blocks(*inputs, block=32)},
    inputs=heads(1, 2, 128),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Small tables stay in the cache: there is nothing to win, and the calls of the loop to pay. So write this loop
# yourself only where no kernel takes your case and the table is large. (Exercise 3 is such a case.)

# %% [markdown]
# ## 4. Causal: who may look where
#
# In a text that is being written, a position may not look at later ones. A mask of `True` and `False` says so,
# or `is_causal=True`. 4 heads, 2,048 positions; the mask is made beforehand. How many times as fast is `is_causal`?

# %%
guess = ...


# %%
def causal_heads(generator, device):
    mask = torch.ones(2048, 2048, dtype=torch.bool, device=device).tril()
    return *heads(1, 4, 2048)(generator, device), mask


compare(
    "attention: causal, by a mask or by is_causal",
    {
        "mask": lambda query, key, value, mask: attend(query, key, value, attn_mask=mask),
        "is_causal": lambda query, key, value, mask: attend(query, key, value, is_causal=True),
    },
    inputs=causal_heads,
    guess=guess,
)

# %% [markdown]
# **Why.** Half of the scores are never used. A kernel that is told so in one word skips the blocks that are all
# forbidden. A mask is data: the kernel must read it, and compute every score before it is thrown away. Does it really
# skip? Only the last query may see the last value. We make that NaN: even times a weight of 0, it gives NaN.

# %%
query, key, value, mask = causal_heads(torch.Generator(), "cpu")
value[:, :, -1] = torch.nan
touched = {}
for name, how in {"mask": {"attn_mask": mask}, "is_causal": {"is_causal": True}}.items():
    touched[name] = attend(query, key, value, **how)[0, 0].isnan().any(-1).sum().item()
    print(f"{name}: the NaN reached {touched[name]:,} of 2,048 queries")
assert touched["is_causal"] < touched["mask"]

# %% [markdown]
# With the mask, every query took part. With `is_causal`, only those did whose block reaches the last keys.
#
# ### Fewer queries than keys
#
# The last three of 8 positions are new; keys and values of the first five lie in a cache. May we say `is_causal=True`?
# To see the weights, let the values be a table with ones on its diagonal: the result *is* the weights then.


# %%
def weights_of(query, key, **how):
    ones = torch.eye(key.shape[-2]).expand(*key.shape[:-2], -1, -1)
    return attend(query, key, ones, **how)


query, key = torch.randn(2, 1, 1, 8, 16)
from_scratch = weights_of(query, key, is_causal=True)[0, 0]
by_flag = weights_of(query[:, :, 5:], key, is_causal=True)[0, 0]
mask = torch.ones(3, 8, dtype=torch.bool).tril(5)
by_mask = weights_of(query[:, :, 5:], key, attn_mask=mask)[0, 0]
shown = {"all 8 queries, is_causal": from_scratch, "queries 5 to 7, is_causal": by_flag}
picture(*draw_weights(shown | {"queries 5 to 7, a mask": by_mask}, last=7))

# %% [markdown]
# In the middle, query 5 sees key 0 alone. No error, no warning, and nonsense. The flag puts the triangle into the upper
# left corner: the first query meets the first key. With a cache you want the *lower right* corner: the last query meets
# the last key, as on the right. (`tril(5)` moves the triangle five columns to the right, as many as the cache has.)

# %%
behaviour(
    "F11",
    "With 3 queries and 8 keys, is_causal lets the queries see 1, 2 and 3 keys.",
    (by_flag > 0).sum(1).tolist() == [1, 2, 3],
)
assert torch.allclose(by_mask, from_scratch[5:], atol=1e-6)
assert not torch.allclose(by_flag, from_scratch[5:], atol=0.1)

# %% [markdown]
# One new position needs no mask at all: it may see everything. (But `is_causal=True` would let it see key 0 only.)
# Both together, a mask and the flag, are refused; or, in older versions of torch, the flag wins without a word:

# %%
one = weights_of(query[:, :, 7:], key)[0, 0]
assert torch.allclose(one, from_scratch[7:], atol=1e-6)
assert (weights_of(query[:, :, 7:], key, is_causal=True) > 0).sum() == 1
try:
    together = attend(query[:, :, 5:], key, key, attn_mask=mask, is_causal=True)
except RuntimeError as error:
    print(str(error).split("\n")[0])
else:
    print("taken, as if there were no mask")
    assert torch.allclose(together, attend(query[:, :, 5:], key, key, is_causal=True), atol=1e-6)

# %% [markdown]
# ## 5. Padding
#
# Texts of different lengths share a tensor: short ones are padded, and a mask tells the padding apart. What does
# `True` mean in it?
#
# - in `nn.MultiheadAttention`'s `key_padding_mask`: **leave this key out**,
# - in `scaled_dot_product_attention`'s `attn_mask`: **this key takes part**.
#
# Here is one layer, and the same by hand, with the mask turned round and as it is.

# %%
layer = nn.MultiheadAttention(32, 4, batch_first=True)
nn.init.normal_(layer.out_proj.bias)  # as after training; new ones are 0
x, lengths = torch.randn(2, 6, 32), torch.tensor([6, 4])
padding = torch.arange(6) >= lengths[:, None]  # True: filling


def the_same_layer(x, mask):
    projected = F.linear(x, layer.in_proj_weight, layer.in_proj_bias)
    query, key, value = projected.unflatten(2, (3, 4, 8)).permute(2, 0, 3, 1, 4)
    return layer.out_proj(attend(query, key, value, attn_mask=mask[:, None, None]).transpose(1, 2).flatten(2))


by_layer = layer(x, x, x, key_padding_mask=padding, need_weights=False)[0]
turned, as_it_is = the_same_layer(x, ~padding), the_same_layer(x, padding)
print("differences:", *[f"{(one - by_layer).abs().max().item():.1g}" for one in (turned, as_it_is)])
behaviour(
    "F10",
    "key_padding_mask leaves out what is True, attn_mask what is False.",
    torch.allclose(turned, by_layer, atol=1e-5) and not torch.allclose(as_it_is, by_layer, atol=1e-3),
)

# %% [markdown]
# The wrong one computes without complaint. The first text has no padding, so its mask says that *nobody* takes part.
#
# ### A row without anybody
#
# What is a mean of nothing? The softmax of `-inf` alone is 0 / 0. PyTorch's tutorial says that the result "will be 0", in
# the function and in the layer, if that does not take its *shortcut for inference*, the *fast path*. (In evaluation and
# without gradients, the layer may run as one operation of its own.) `sdpa_kernel` demands one of the function's
# implementations (section 7): `FLASH_ATTENTION`, on a CPU its own fused kernel, or `MATH`, the plain formula.

# %%
nobody = torch.tensor([[False], [True]]).repeat(1, 6)  # all of the second text is filling
plainly = "nobody asks for the weights, and the layer takes no shortcut"
inputs = heads(2, 4, 6, width=8)(torch.Generator(), "cpu")
for name, backend in {"fused": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}.items():
    with sdpa_kernel(backend):
        second = attend(*inputs, attn_mask=~nobody[:, None, None])[1]
    behaviour(
        "F13",
        f"The function gives zeros for a row without anybody ({name}).",
        bool((second == 0).all()),
        when=plainly,
    )

# %% [markdown]
# And the layer? It ends with a linear layer, so zeros become the bias of that. Once without, once with the weights as a
# second result; the latter is the default:

# %%
for need_weights in (False, True):
    second = layer(x, x, x, key_padding_mask=nobody, need_weights=need_weights)[0][1]
    behaviour(
        "F13",
        f"The layer gives its bias alone for a row without anybody (need_weights={need_weights}).",
        torch.equal(second, layer.out_proj.bias.expand_as(second)),
        when=None if need_weights else plainly,
        unless=plainly if need_weights else None,
    )
    print(f"need_weights={need_weights}: {second[0, 0].item():.2f}; its bias: {layer.out_proj.bias[0]:.2f}")
layer.eval()
with torch.no_grad():  # now the layer takes its shortcut
    second = layer(x, x, x, key_padding_mask=nobody, need_weights=False)[0][1]
layer.train()
print(f"need_weights=False, in evaluation and without gradients: {second[0, 0].item():.2f}")

# %% [markdown]
# A NaN in a place that nobody uses is not harmless. Here the loss is made of the first text alone:

# %%
for need_weights in (False, True):
    layer.zero_grad()
    layer(x, x, x, key_padding_mask=nobody, need_weights=need_weights)[0][0].sum().backward()
    broken = layer.in_proj_weight.grad.isnan().float().mean().item()
    print(f"need_weights={need_weights}: {broken:.0%} of the gradient is NaN")

# %% [markdown]
# The backward pass multiplies the second text's gradient, 0, with its weights, NaN: that is NaN, and is added to the
# gradient of a layer that both texts share. Before torch 2.5 the function gave NaN, too ([says the
# tutorial](https://docs.pytorch.org/tutorials/intermediate/transformer_building_blocks.html)), and you have just seen what
# the layer's shortcut gives. So rest on none of it. Let every query see something (a filled place may look at anything),
# and overwrite its result with `masked_fill`. (A product with 0 would keep a NaN.)
#
# ### What the padding costs
#
# 16 texts: one of 512 positions, the others of 32 to 60. A tensor for all of them is mostly padding. The mask tells the
# call what is padding. What does it save to take the texts one by one, most of all: `"calls"`, `"bytes"` or
# `"arithmetic"`?

# %%
guess = ...


# %%
def texts(lengths):
    def make(generator, device):
        count, longest = len(lengths), max(lengths)
        valid = torch.arange(longest) < torch.tensor(lengths)[:, None]
        return *heads(count, 4, longest, width=32)(generator, device), valid.to(device), lengths

    return make


def padded(query, key, value, valid, lengths):
    result = attend(query, key, value, attn_mask=valid[:, None, None])
    return result.masked_fill(~valid[:, None, :, None], 0)


def one_by_one(query, key, value, valid, lengths):
    result = torch.zeros_like(query)
    for i, n in enumerate(lengths):
        result[i, :, :n] = attend(query[i : i + 1, :, :n], key[i : i + 1, :, :n], value[i : i + 1, :, :n])[0]
    return result


compare(
    "attention: 16 texts, one of them long",
    {"padded, with a mask": padded, "one by one": one_by_one},
    inputs=texts([512, *range(32, 62, 2)]),
    guess=guess,
    because="prices",
)

# %% [markdown]
# Now 64 texts of 14 to 16 positions. How many times as fast is it to take them one by one?

# %%
guess = ...

# %%
compare(
    "attention: 64 texts of much the same length",
    {"padded, with a mask": padded, "one by one": one_by_one},
    inputs=texts([14, 15, 15, 16] * 16),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** With padding, each text costs the square of the longest; alone, the square of its own length, and one call
# more. (Predicted is a larger loss: products of 16 × 16 do not reach the priced rate, and softmax and `masked_fill`
# take many times as long as their bytes: padding pays that, too.) The scores to compute tell which counts:

# %%
for name, lengths in {"one long": [512, *range(32, 62, 2)], "much the same": [14, 15, 15, 16] * 16}.items():
    whole, own = len(lengths) * max(lengths) ** 2, sum(n * n for n in lengths)
    print(f"{name}: {whole:9,} scores padded, {own:7,} alone: {whole / own:.1f} times; {len(lengths)} calls")

# %% [markdown]
# Unpadding is a trick for uneven batches. Between the two extremes: sort by length, and pad groups (exercise 4). On an
# H200 padding won both times (180 µs against 670 for the uneven texts): a call more costs more there. For a GPU, newer
# versions of torch have `torch.nn.attention.varlen`, which takes texts of any length end to end.

# %% [markdown]
# ## 6. A cache, and fewer heads in it
#
# The newest position asks all before it. Their keys and values stay the same, so a model keeps them. (Exercise 11.6
# writes such a cache.) One layer, 4 heads, 512 positions, then one more. What does the cache save most: `"calls"`,
# `"bytes"` or `"arithmetic"`?

# %%
guess = ...


# %%
def without_cache(x, weight, keys, values):
    query, key, value = (x @ weight).unflatten(2, (3, 4, 64)).permute(2, 0, 3, 1, 4)
    return attend(query, key, value, is_causal=True)[:, :, -1:]


def with_cache(x, weight, keys, values):
    query, key, value = (x[:, -1:] @ weight).unflatten(2, (3, 4, 64)).permute(2, 0, 3, 1, 4)
    keys[:, :, -1:], values[:, :, -1:] = key, value
    return attend(query, keys, values)


def a_text(generator, device):
    x = torch.randn(1, 513, 256, generator=generator).to(device)
    weight = (torch.randn(256, 768, generator=generator) / 16).to(device)
    _, keys, values = (x @ weight).unflatten(2, (3, 4, 64)).permute(2, 0, 3, 1, 4)
    keys, values = keys.contiguous(), values.contiguous()
    return x, weight, keys, values


compare(
    "attention: one more position after 512",
    {"all again": without_cache, "cache": with_cache},
    inputs=a_text,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Without a cache, a step pays for all positions: their three products, and all their scores. With it, the
# products are for one row. What is left is to read the weights and the cache, once each. The weights stay as they are,
# and serve all texts of a batch. So in long texts the price of a step is the *size of the cache*. (Predicted is
# more: for one row, product and attention take longer than to read weights and cache, and each slice is Python's work.
# On an H200, 512 positions are not many: 77 µs without a cache, 70 with it.)
#
# ### Grouped heads
#
# That is why many models have fewer heads of keys and values than of queries: here 8 queries' heads share 2, four
# each. `enable_gqa=True` takes them as they are. The alternative copies each key and value four times. How many times
# as fast is `enable_gqa`, for one query and 2,048 keys?

# %%
guess = ...


# %%
def repeated(query, key, value):
    share = query.shape[1] // key.shape[1]
    return attend(query, key.repeat_interleave(share, 1), value.repeat_interleave(share, 1))


def grouped(query, key, value):
    return attend(query, key, value, enable_gqa=True)


compare(
    "attention: 8 heads share the keys of 2, one query",
    {"repeat_interleave": repeated, "enable_gqa": grouped},
    inputs=heads(1, 8, 1, 2048, groups=2),
    guess=guess,
)

# %%
inputs = heads(1, 8, 1, 2048, groups=2)(torch.Generator(), "cpu")
whole = heads(1, 8, 1, 2048)(torch.Generator(), "cpu")
print(f"a cache of 8 heads: {(whole[1].nbytes + whole[2].nbytes) / 1e6:.1f} MB")
print(f"a cache of 2 heads: {(inputs[1].nbytes + inputs[2].nbytes) / 1e6:.1f} MB")
for function in (repeated, grouped):
    cost = costs(function, *inputs)
    print(f"{function.__name__}: {cost.bytes / 1e6:.2f} MB of new tensors;", *cost.operations)

# %% [markdown]
# The last line says what this version of torch does on the CPU. If it names `_scaled_dot_product_flash_attention_for_cpu`,
# the kernel reads each key where it lies. If it names plain operations, or copies, torch repeats the keys for you, and
# only the cache is smaller.
#
# Is a quarter of the cache a quarter of the time? Here is the least of 20 turns, also for a cache of 8 heads, and for a
# third way: four heads that share their keys are one head with four queries.


# %%
def as_queries(query, key, value):
    folded = query.reshape(len(query), key.shape[1], -1, query.shape[-1])
    return attend(folded, key, value).reshape(query.shape)


for keys in (2048, 8192):
    shared = heads(1, 8, 1, keys, groups=2)(torch.Generator(), "cpu")
    own = shared[0], *(tensor.repeat_interleave(4, 1) for tensor in shared[1:])
    assert torch.allclose(as_queries(*shared), attend(*own), atol=1e-5)
    for name, function in {"8 heads": attend, "2 grouped": grouped, "2 as queries": as_queries}.items():
        given = own if name == "8 heads" else shared
        turns = timeit.repeat(functools.partial(function, *given), number=1, repeat=20)
        print(f"{keys:,} keys; {name}: {1e6 * min(turns):,.0f} µs")

# %% [markdown]
# The memory is saved in any case; the time, where each key is read once. A kernel that takes shared keys as they are still
# goes through them for every head of queries; queries of one head share the reading.

# %% [markdown]
# ## 7. Which implementation was taken?
#
# One name, several implementations, and a choice that nobody tells you. The documentation lists three: FlashAttention,
# Memory-Efficient Attention, and a formula in C++, the *math* backend. `sdpa_kernel` says which are allowed. But "if you
# don’t have a GPU and are running on CPU", says the tutorial, "the context manager will have no effect". Ask `costs`:


# %%
def taken(query, key, value, **how):
    """What attention ran as: the fused operation, or the plain ones."""
    operations = costs(attend, query, key, value, **how).operations
    fused = [name for name in operations if "scaled_dot_product" in name]
    return fused[0].removeprefix("aten._") if fused else f"{operations.total()} plain operations"


inputs = heads(1, 8, 1024)(torch.Generator(), "cpu")
found = {"as you like": (taken(*inputs), costs(attend, *inputs).peak_bytes)}
with sdpa_kernel(SDPBackend.MATH):
    found["math"] = taken(*inputs), costs(attend, *inputs).peak_bytes
for name, (operation, peak) in found.items():
    print(f"{name}: {operation}, at most {peak / 1e6:.1f} MB at once")
behaviour(
    "F9",
    "On a CPU, forcing the math backend changes neither the operations nor the memory.",
    found["as you like"] == found["math"],
)

# %% [markdown]
# The CPU has a fused kernel of its own. It takes most cases; the math backend takes the rest. Which of these
# eight lose it? Guess how many, and write down which.

# %%
guess = ...

# %%
query, key, value = heads(2, 4, 16, width=8)(torch.Generator(), "cpu")
boolean = torch.ones(16, 16, dtype=torch.bool).tril()
cases = {
    "causal": (query, key, value, {"is_causal": True}),
    "a boolean mask": (query, key, value, {"attn_mask": boolean}),
    "float64": (query.double(), key.double(), value.double(), {}),
    "one text alone, three dimensions": (query[0], key[0], value[0], {}),
    "narrower values": (query, key, value[..., :4].contiguous(), {}),
    "numbers of a position lie apart": (query.mT.contiguous().mT, key, value, {}),
    "dropout": (query, key, value, {"dropout_p": 0.1}),
    "a mask that is trained": (query, key, value, {"attn_mask": torch.zeros(16, 16, requires_grad=True)}),
}
found = {name: taken(*rest, **how) for name, (*rest, how) in cases.items()}
lost = sum("plain" in kernel for kernel in found.values())
guessed(
    "of the eight, those that lose it",
    guess,
    lost,
    *(f"{name + ':':34}{kernel}" for name, kernel in found.items()),
)

# %% [markdown]
# Numbers that lie apart are common: think of pictures. A convolution gives `(texts, width, pixels)`, and a `transpose`
# makes the pixels positions. It copies nothing, so the numbers of one position are far from each other, and the table is
# back. 8 heads, 1,024 positions. How many times as fast is it to copy all three tensors first?

# %%
guess = ...


# %%
def from_a_convolution(generator, device):
    made = torch.randn(3, 1, 8, 64, 1024, generator=generator).to(device)
    return tuple(made.transpose(3, 4).unbind())


compare(
    "attention: the numbers of a position lie apart",
    {
        "as they come": attend,
        "contiguous first": lambda *tensors: attend(*(tensor.contiguous() for tensor in tensors)),
    },
    inputs=from_a_convolution,
    guess=guess,
    because="page faults",
)

# %% [markdown]
# **Why.** Three copies against a table: mostly copies are a cost, and here they are the cure. To make sure, say in a test
# which backends are allowed. Then a case that loses its kernel raises an error there. (Its reasons come as warnings.)

# %%
with sdpa_kernel(SDPBackend.FLASH_ATTENTION), warnings.catch_warnings(record=True) as reasons:
    warnings.simplefilter("always")
    attend(query, key, value)
    try:
        attend(*cases["narrower values"][:3])
    except RuntimeError as error:
        print(str(error).split("\n")[0])
    else:
        raise AssertionError("narrower values should be refused")
print(*[str(reason.message).split("(Triggered")[0] for reason in reasons], sep="\n")

# %% [markdown]
# ### In evaluation
#
# `dropout_p` is an argument of a function, and a function knows nothing of `model.eval()`:


# %%
class Forgetful(nn.Module):
    def forward(self, x):
        return weights_of(x, x, dropout_p=0.25)


model = Forgetful().eval()
with torch.no_grad():
    dropped = (model(torch.ones(1, 1, 64, 64)) == 0).float().mean().item()
print(f"weights that are 0, in evaluation: {dropped:.0%}")
assert 0.2 < dropped < 0.3

# %% [markdown]
# So pass `0.0` in evaluation yourself. On the CPU, forgetting it costs twice: a noisy result, and the math backend with
# its table. PyTorch's tutorial does it in "an example implementation of a multi-headed causal self attention block".
# Here is its `forward`, with the projections left out. Do you see what is wrong with it?


# %%
class CausalSelfAttention(nn.Module):
    def __init__(self, is_causal, dropout):
        super().__init__()
        self.is_causal, self.dropout = is_causal, dropout

    def forward(self, query, key, value):
        if self.training:
            dropout = self.dropout
            is_causal = self.is_causal
        else:
            dropout = 0.0
            is_causal = False
        return attend(query, key, value, attn_mask=None, dropout_p=dropout, is_causal=is_causal)


# %% [markdown]
# In a causal model, the first position knows nothing of the last. So change the last value, and look at the first result:

# %%
block = CausalSelfAttention(is_causal=True, dropout=0.0)
query, key, value = heads(1, 2, 8, width=8)(torch.Generator(), "cpu")
other = value.index_fill(2, torch.tensor(7), 9.0)
in_training = "the block is in training mode"
for training in (True, False):
    block.train(training)
    before, after = block(query, key, value)[:, :, 0], block(query, key, other)[:, :, 0]
    print(f"training={training}: the first result changed by {(before - after).abs().max().item():.2g}")
    behaviour(
        "F12",
        f"The tutorial's block hides the last position from the first (training={training}).",
        torch.equal(before, after),
        when=in_training if training else None,
        unless=None if training else in_training,
    )

# %% [markdown]
# In evaluation it looks into the future: what a language model has to foretell lies open before it. So its validation
# loss is not that of the model which was trained. Dropout belongs to training; the mask belongs to the model.

# %% [markdown]
# ## 8. The layer that asks for weights
#
# `nn.MultiheadAttention` returns the weights, too, if you do not say `need_weights=False`. Weights are a table. A
# text of 1,024 positions, 8 heads, in training: forward and back. How many times as fast is it without them?

# %%
guess = ...


# %%
def layer_step(need_weights):
    def run(x, layer):
        layer.zero_grad()
        result, _ = layer(x, x, x, need_weights=need_weights)
        result.square().mean().backward()
        return result.detach()

    return run


def layer_and_texts(count, length):
    def make(generator, device):
        torch.manual_seed(0)
        layer = nn.MultiheadAttention(256, 8, batch_first=True).to(device)
        return torch.randn(count, length, 256, generator=generator).to(device), layer

    return make


compare(
    "attention: a layer's training step, 1,024 positions",
    {"need_weights=True": layer_step(True), "need_weights=False": layer_step(False)},
    inputs=layer_and_texts(1, 1024),
    guess=guess,
    claim="F14",
    because="page faults",
)

# %% [markdown]
# **Why.** A table of scores in new memory, in each step. And 32 texts of 32 positions, as many rows in all?

# %%
guess = ...

# %%
compare(
    "attention: a layer's training step, 32 positions",
    {"need_weights=True": layer_step(True), "need_weights=False": layer_step(False)},
    inputs=layer_and_texts(32, 32),
    guess=guess,
    claim="F14",
    because="prices",
)

# %% [markdown]
# **Why.** Both sides have the same four products; the table is the difference: written, kept for the backward pass, and
# its mean over the heads returned; on a CPU it is mostly the page faults of that. The products grow with the number of
# positions, attention with its square. Its share says in how much of the step there is something to gain. In short
# texts it is hardly anything, and the call may lose a little. (On an H200 all four steps took about 1.5 ms.)

# %%
for length, count in ((1024, 1), (32, 32)):
    products, scores = 4 * 2 * count * length * 256 * 256, 2 * 2 * count * length * length * 256
    inputs = layer_and_texts(count, length)(torch.Generator(), "cpu")
    most = [costs(layer_step(need), *inputs).peak_bytes / 1e6 for need in (True, False)]
    print(
        f"{count:2} of {length:5,} positions: {scores / (products + scores):.0%} of the arithmetic is attention;"
    )
    print(f"   at most {most[0]:.1f} MB at once with the weights, {most[1]:.1f} MB without")

# %% [markdown]
# ## Further
#
# You can skip this part: the exercises do not need it. It times the layers that unpad by themselves, and counts
# memory on a GPU.
#
# ### Padding, left to the layer
#
# Section 5 took uneven texts apart by hand. In evaluation and without gradients, `nn.TransformerEncoder` does so itself,
# by default: it packs the texts into a nested tensor. "This will improve the overall performance […] when padding rate
# is high", says its documentation. Two layers; 16 texts, one of 128 positions, the others of 8. How many times as fast is
# it with nested tensors?

# %%
guess = ...


# %%
@functools.cache
def encoders(device):
    """Two encoders with the same weights: without nested tensors, and with them."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    both = [nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested) for nested in (False, True)]
    both[1].load_state_dict(both[0].state_dict())
    return [one.to(device).eval() for one in both]


def encode(which, gradients=False):
    def run(x, padding, both):
        with torch.set_grad_enabled(gradients):
            result = both[which](x, src_key_padding_mask=padding)
        return result.detach().masked_fill(padding[:, :, None], 0)

    return run


def encoder_texts(lengths):
    def make(generator, device):
        padding = torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]
        x = torch.randn(len(lengths), max(lengths), 128, generator=generator)
        return x.to(device), padding.to(device), encoders(device)

    return make


warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
compare(
    "attention: an encoder, nearly nine tenths are padding",
    {"padded": encode(0), "nested tensor": encode(1)},
    inputs=encoder_texts([128] + 15 * [8]),
    guess=guess,
    claim="F15",
)

# %% [markdown]
# The same encoder, still in evaluation mode, but gradients are recorded: as in fine-tuning, or where somebody forgot
# `no_grad`. How many times as fast now?

# %%
guess = ...

# %%
compare(
    "attention: an encoder, gradients are recorded",
    {"padded": encode(0, gradients=True), "nested tensor": encode(1, gradients=True)},
    inputs=encoder_texts([128] + 15 * [8]),
    guess=guess,
    claim="F15",
)

# %% [markdown]
# **Why.** Packed, the linear layers gain, too: they see only the rows that exist. But only the shortcut for inference
# (section 5) packs. It needs, [among other
# things](https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html), evaluation mode, no
# gradients, and the padding at the end; without these three the flag gains nothing, and says nothing. (Compare the two
# baselines, too: a shortcut that does not pack may even lose.) On an H200 nested tensors lost both times: 1.3 ms
# against 0.60 where they packed, 1.9 against 1.7 where they did not. They are "in prototype stage", warns torch itself
# (we have switched that off). For new code, section 5's way is the safer one.
#
# ### On a GPU
#
# There, the allocator sees scratch memory, too. And there are more backends to choose from.

# %%
if torch.cuda.is_available():
    inputs = [tensor.half() for tensor in heads(1, 8, 4096)(torch.Generator(), "cuda")]
    for backend in (SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        try:
            with sdpa_kernel(backend):
                attend(*inputs)
        except RuntimeError as error:
            print(f"{backend.name}: {str(error).splitlines()[0]}")
        else:
            print(f"{backend.name}: {(torch.cuda.max_memory_allocated() - before) / 1e6:.1f} MB more")
else:
    print("No GPU here. On one, this cell shows what each backend needs for 4,096 positions.")

# %% [markdown]
# ### A rule that no argument knows
#
# For masks that follow a rule (a window, a document's borders, a distance) torch has
# [`flex_attention`](https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html): the rule is a
# Python function, which `torch.compile` makes into a kernel (chapter 15 is about compiling). Without compiling it makes
# the whole table. On a CPU, the exercises show what can be had with blocks.
#
# ## Summary
#
# **Chapter 00's routine here:** predict from the flops and from the bytes of the table. `costs` names the cause: is there a
# table? Each row takes it away, or work on what is masked. Verify with two lengths that differ.
#
# | you want | use | because |
# |---|---|---|
# | attention | `scaled_dot_product_attention` | no table: memory grows with the length, not its square |
# | speed, one query at a time | a smaller cache: grouped heads | less to read, where each key is read once |
# | causal, as many queries as keys | `is_causal=True`, no mask | what is forbidden is skipped |
# | causal, with a cache | a mask, `tril(seen)`; one new position: none | the flag's triangle sits in the upper left |
# | padding | `attn_mask`: `True` takes part | the inverse of `key_padding_mask` |
# | a position without anything to see | let it see something, drop its result | 0 or NaN, by version and backend |
# | an uneven batch on a CPU | groups of like lengths, or one by one | a mask does not save what it hides |
# | the fused kernel on the CPU | equal widths, numbers together, no dropout, no trained mask | or the table is back, silently |
# | to be sure | `costs`, or `sdpa_kernel(…)` in a test | nobody tells you |
# | evaluation | `dropout_p=0.0` yourself | a function knows no `eval()` |
# | `nn.MultiheadAttention` on long texts | `need_weights=False` | weights are a table |

# %%
verdicts("F9", "F10", "F11", "F12", "F13", "F14", "F15")

# %% [markdown]
# *F10* and *F11* say how it is, and it is as they say. They are here because the other way round reads as well, and raises
# no error. *F9* was true of torch 2.0: [the CPU's kernel came later](https://github.com/pytorch/pytorch/issues/106519).
#
# **Now you:** [the exercises of this chapter](../exercises/16_attention/16_attention.ipynb). Four functions and a class,
# given slow or large: two conventions, a window, a shared beginning, an uneven batch, and a cache that forgets.
