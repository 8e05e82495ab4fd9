# %% [markdown]
# # 11 · Modules
#
# A network is made of modules, and modules can be taken apart: cut one off, look inside one, merge several into one.
# An optimiser, too, is a loop over parts. This chapter asks what each of these changes costs, and what it saves.
#
# IDs such as *C8* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, `costs`
# and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - take features from the end or from the middle of a network, and pay only for the layers that you need,
# - merge several linear layers into one, and say when that is faster,
# - use hooks and pruning masks, and say what each costs at every call,
# - choose an implementation of your optimiser.
#
# **Time:** 50 minutes to read and run, 15 more for the part Further. **Needs:** CPU, GPU if any. Chapter 00 or 01.
#
# **Claims tested** (of two articles): *C4* "`nn.Identity` cuts a layer off"; *C8* "one wide `Linear` and `torch.chunk`
# instead of several `Linear`s"; *E9* "pruning with a mask that is computed once and multiplied in a forward pre-hook".

# %%
import copy
import functools
import inspect
import timeit
import warnings
from unittest import mock

import torch
from parts.inputs import normal
from torch import nn
from torch.nn.utils import prune
from torch.utils.flop_counter import FlopCounterMode
from torchvision.models import ResNet50_Weights, resnet50
from torchvision.models.feature_extraction import create_feature_extractor

from autograder import article_code, behaviour, compare, costs, devices, guessed, recall, verdicts, without

print("devices here:", *devices())
recall("11", ..., ..., ...)

# %% [markdown]
# ## 1. Cut the last layer off
#
# ResNet-50 ends with a linear layer, `fc`, that turns 2,048 features into 1,000 class scores. You want the
# features. `nn.Identity` gives back what it gets. Put one in the place of `fc`:

# %%
network = resnet50(weights=None).eval()
picture = torch.rand(1, 3, 224, 224)
with torch.no_grad():
    scores = network(picture)

features_only = copy.deepcopy(network)
features_only.fc = nn.Identity()
with torch.no_grad():
    features = features_only(picture)
    same_scores = network.fc(features)
print("scores:", tuple(scores.shape), " features:", tuple(features.shape))
assert torch.equal(same_scores, scores)

# %%
behaviour(
    "C4",
    "ResNet-50 with Identity in place of fc gives what goes into fc: features of shape (1, 2048).",
    features.shape == (1, 2048) and torch.equal(same_scores, scores),
)

# %% [markdown]
# `weights=None` means random weights: enough for shapes and times, and nothing is downloaded. The article
# writes `pretrained=True`. What does torchvision say to that argument?

# %%
with warnings.catch_warnings(record=True) as caught, torch.device("meta"):
    warnings.simplefilter("always")
    resnet50(pretrained=False)
for warning in caught:
    print("-", str(warning.message).split(". ")[0])
print("\nnow:", *inspect.signature(resnet50).parameters.values(), sep="\n  ")

# %% [markdown]
# It still works, with a warning. But `pretrained=True` and `weights="DEFAULT"` are *not* the same weights: there are
# two sets by now. Which one does the old argument want? (In place of the download, it gets our random weights.)


# %%
def article_features():
    model = resnet50(pretrained=True)
    model.fc = nn.Identity()
    return model(torch.rand((1, 3, 224, 224)))


from_web = "torchvision.models._api.load_state_dict_from_url"
with mock.patch(from_web, return_value=network.state_dict()) as download:
    article_code(
        "C4",
        "resnet50(pretrained=True), with Identity for fc",
        article_features,
        right=lambda features: features.shape == (1, 2048),
    )
for weights in ResNet50_Weights:
    print(
        weights.name,
        "= DEFAULT" * (weights is ResNet50_Weights.DEFAULT),
        "= pretrained=True" * (weights.url == download.call_args.args[0]),
    )

# %% [markdown]
# "Outdated": the code ran, and torchvision warned (of `pretrained`). The shape is right. The features are not what you
# want: the article forgets `eval()`. In training mode, batch normalisation takes mean and variance from the batch. So
# the features of a picture depend on its company (and each call changes the running statistics):

# %%
forgetful = copy.deepcopy(features_only).train()
pair = torch.cat([picture, picture.square()])
with torch.no_grad():
    for name, model in {"train()": forgetful, "eval()": features_only}.items():
        alone, in_a_pair = model(picture), model(pair)[:1]
        apart = ((alone - in_a_pair).norm() / alone.norm()).item()
        print(f"{name:8} features alone and in a pair differ by {apart:.1%}")
assert apart < 1e-4
assert forgetful.bn1.num_batches_tracked == 2  # the running statistics have changed twice

# %% [markdown]
# And the time? One small picture, no gradients. How many times as fast is it without `fc`? (Below 1 means slower.)

# %%
guess = ...


# %%
@functools.cache
def on_device(device, which):
    return copy.deepcopy({"whole": network, "features": features_only}[which]).to(device)


@torch.no_grad()
def whole_network(x):
    return on_device(x.device, "whole")(x)


@torch.no_grad()
def without_last_layer(x):
    return on_device(x.device, "features")(x)


def one_picture(generator, device):
    return torch.rand(1, 3, 64, 64, generator=generator).to(device)


compare(
    "modules: ResNet-50 with and without its last layer",
    {"whole network": whole_network, "Identity for fc": without_last_layer},
    inputs=one_picture,
    guess=guess,
    differ="scores or features",
)

# %% [markdown]
# **Why.** Count the arithmetic. The share of `fc` in the work is much smaller than its share in the parameters:
# each of its weights is used once for a picture. A weight of a convolution is used again at every pixel.

# %%
with FlopCounterMode(display=False) as counter, torch.no_grad():
    network(torch.rand(1, 3, 64, 64))
work = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
size_of_fc = sum(p.numel() for p in network.fc.parameters())
size_of_all = sum(p.numel() for p in network.parameters())
print(f"parameters in fc: {size_of_fc / size_of_all:.1%}")
print(f"arithmetic in fc: {work['ResNet.fc'] / work['Global']:.1%}")
assert work["ResNet.fc"] == 2 * 2048 * 1000

# %% [markdown]
# So `Identity` is a way to get features, not a way to get speed. (A few percent may show, for a small picture: then reading
# `fc`'s parameters counts for more than its arithmetic.) Two things to know about it:
#
# - It changes the network that you give it. Work on a copy if somebody else still wants the scores.
# - The layer's entries leave the `state_dict`. So load the weights first, and cut afterwards.

# %%
try:
    features_only.load_state_dict(network.state_dict())
    loads_after_cutting = True
except RuntimeError as error:
    loads_after_cutting = False
    print(*str(error).split("\n")[:2], sep="\n")
assert not loads_after_cutting
assert nn.Identity(54, unused="arguments are accepted and ignored")(picture) is picture

# %% [markdown]
# ## 2. Features from the middle
#
# Now you want the features after `layer2`, the middle of the network. A **forward hook** is a function that a module
# calls after each of its forward passes, with its inputs and its output. So a hook on `layer2` can keep the output.
#
# The alternative is to build a network that ends there. How many times as fast is that?

# %%
guess = ...


# %%
@functools.cache
def with_hook(device):
    model, seen = copy.deepcopy(network).to(device), {}

    def keep(module, inputs, output):
        seen["layer2"] = output

    model.layer2.register_forward_hook(keep)
    return model, seen


@functools.cache
def first_half(device):
    layers = list(network.named_children())
    names = [name for name, _ in layers]
    return copy.deepcopy(nn.Sequential(*[layer for _, layer in layers[: names.index("layer2") + 1]])).to(
        device
    )


@torch.no_grad()
def by_hook(x):
    model, seen = with_hook(x.device)
    model(x)
    return seen["layer2"]


@torch.no_grad()
def by_first_half(x):
    return first_half(x.device)(x)


compare(
    "modules: ResNet-50 features after layer2",
    {"hook, whole network": by_hook, "first half only": by_first_half},
    inputs=one_picture,
    guess=guess,
)
x = one_picture(torch.Generator(), torch.device("cpu"))
assert torch.equal(by_hook(x), by_first_half(x)) and by_hook(x).shape == (1, 512, 8, 8)
ran = [costs(way, x).operations["aten.convolution"] for way in (by_hook, by_first_half)]
assert ran[0] == sum(isinstance(part, nn.Conv2d) for part in network.modules()) > ran[1]

# %% [markdown]
# **Why.** A hook only listens. The layers after it run as before, and their result is thrown away.

# %%
for name in ("layer1", "layer2", "layer3", "layer4"):
    share = sum(p.numel() for p in getattr(network, name).parameters()) / size_of_all
    print(
        f"{name}: {work['ResNet.' + name] / work['Global']:4.0%} of the arithmetic, {share:4.0%} of the parameters"
    )
first_part = sum(work["ResNet." + name] for name in ("conv1", "layer1", "layer2"))
print(f"whole network / first half, in arithmetic: {work['Global'] / first_part:.2f}")

# %% [markdown]
# The measured ratio can be larger than that of the arithmetic. A likely reason: with a small picture, the late layers
# read most of the parameters for a handful of pixels.
#
# If you want the scores *and* the features, the hook is the right tool: one pass gives both.
#
# Cutting by hand works only where the network runs its children one after the other. `forward` may do more
# than that. ResNet-50 flattens its features just before `fc`, and that is no module:

# %%
try:
    with torch.no_grad():
        nn.Sequential(*network.children())(x)
    children_suffice = True
except RuntimeError as error:
    children_suffice = False
    print("RuntimeError:", error)
assert not children_suffice

# %% [markdown]
# torchvision's `create_feature_extractor` follows the whole `forward` and drops what the wanted features do not need.

# %%
extractor = create_feature_extractor(network, ["layer2", "flatten"])
with torch.no_grad():
    found = extractor(x)
print({name: tuple(value.shape) for name, value in found.items()})
assert torch.equal(found["layer2"], by_first_half(x))
assert not any("fc" in name for name, _ in extractor.named_modules())

# %% [markdown]
# Several copies of ResNet-50 are in memory by now, about 100 MB each. Let them go.

# %%
del extractor
for copies in (on_device, with_hook, first_half):
    copies.cache_clear()

# %% [markdown]
# ## 3. What does a hook cost?
#
# Twenty tiny layers, 16 → 16, for four rows. Each has a hook that does nothing. How many times as fast is the
# same network without hooks?

# %%
guess = ...


# %%
def nothing(module, inputs, output):
    pass


@functools.cache
def chain(device, count, width, hooks):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(count)]).to(device)
    for layer in model if hooks else ():
        layer.register_forward_hook(nothing)
    return model


@torch.no_grad()
def run_chain(x, count, hooks):
    return chain(x.device, count, x.shape[1], hooks)(x)


compare(
    "modules: a hook on each of 20 tiny layers",
    {"20 hooks": lambda x: run_chain(x, 20, True), "no hooks": lambda x: run_chain(x, 20, False)},
    inputs=(4, 16),
    guess=guess,
    because=without("tiny layers", inputs=(256, 512)),
)

# %% [markdown]
# **Why.** A module without hooks calls `forward` at once. With a hook, it takes a longer way through Python, which
# costs a microsecond or two for each layer. On a CPU, these layers take only a few microseconds themselves; in 512
# numbers of 256 rows, nothing of it is to be seen.
#
# ### What hooks do, and what they do not
#
# `register_forward_hook` gives a handle; `remove()` takes the hook away. A hook that returns a value replaces
# the output. And a hook runs only when you call the module: `model.forward(x)` skips it.

# %%
layer, row = nn.Linear(2, 2), torch.ones(1, 2)
handle = layer.register_forward_hook(lambda module, inputs, output: output * 0)
assert layer(row).abs().sum() == 0
assert layer.forward(row).abs().sum() > 0
handle.remove()
assert layer(row).abs().sum() > 0

# %% [markdown]
# The trap is memory. A hook that collects outputs also holds the graph behind them (chapter 03), for as long
# as the list lives. `detach` keeps the numbers and lets the graph go.

# %%
outputs, numbers = [], []
small = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
small[1].register_forward_hook(lambda module, inputs, output: outputs.append(output))
small[1].register_forward_hook(lambda module, inputs, output: numbers.append(output.detach()))
small(torch.ones(1, 8))
print("kept as it is:", outputs[0].grad_fn.name(), "| detached:", numbers[0].grad_fn)
assert outputs[0].grad_fn is not None and numbers[0].grad_fn is None

# %% [markdown]
# ## 4. Several layers in one
#
# Attention makes three things of the same input: queries, keys and values. So three linear layers read the same
# `x`. The advice: make *one* layer with three times the outputs, and cut its result into three with `torch.chunk`.
#
# The article says that this usually brings more speed. Its sizes are 8 rows of 1,024 numbers, and three
# layers of 128 outputs. It reports 289 µs against 202 µs, which is 1.4×. What will you get?

# %%
guess = ...


# %%
@functools.cache
def heads(device, inputs, outputs, count):
    torch.manual_seed(0)
    separate = nn.ModuleList([nn.Linear(inputs, outputs) for _ in range(count)])
    wide = nn.Linear(inputs, count * outputs)
    with torch.no_grad():
        wide.weight.copy_(torch.cat([head.weight for head in separate]))
        wide.bias.copy_(torch.cat([head.bias for head in separate]))
    return separate.to(device), wide.to(device)


def several_layers(outputs, count):
    @torch.no_grad()
    def run(x):
        separate, _ = heads(x.device, x.shape[1], outputs, count)
        return [head(x) for head in separate]

    return run


def one_wide_layer(outputs, count):
    @torch.no_grad()
    def run(x):
        _, wide = heads(x.device, x.shape[1], outputs, count)
        return wide(x).chunk(count, dim=-1)

    return run


compare(
    "modules: 8 × 1024 → 3 × 128",
    {"three Linear": several_layers(128, 3), "one Linear + chunk": one_wide_layer(128, 3)},
    inputs=normal(8, 1024),
    guess=guess,
    flops=2 * 8 * 1024 * 3 * 128,
)

# %% [markdown]
# On the CPUs that we measured it is next to nothing; on an H200 it is 2.1×. (The **limit**: chapter 00, section 6.) The
# result is the same, up to rounding: the wide layer's weights are the three layers' weights, one below the other.

# %%
x = torch.randn(8, 1024)
parts, pieces = several_layers(128, 3)(x), one_wide_layer(128, 3)(x)
assert all(torch.allclose(part, piece, atol=1e-5) for part, piece in zip(parts, pieces, strict=True))


def article_chunks():
    one_layer = nn.Linear(1024, 128 * 3, bias=False)
    return torch.chunk(one_layer(torch.rand((8, 1024))), 3, dim=1)


article_code(
    "C8",
    "one Linear and torch.chunk for three pieces of 8 × 128",
    article_chunks,
    right=lambda pieces: [tuple(piece.shape) for piece in pieces] == [(8, 128)] * 3,
)

# %% [markdown]
# Now twelve layers of 32 outputs, for 8 rows of 256 numbers. What does one layer save there, most of all: `"calls"`,
# `"bytes"` or `"arithmetic"`?

# %%
guess = ...

# %%
compare(
    "modules: 8 × 256 → 12 × 32",
    {"twelve Linear": several_layers(32, 12), "one Linear + chunk": one_wide_layer(32, 12)},
    inputs=normal(8, 256),
    guess=guess,
    claim="C8",
    flops=2 * 8 * 256 * 12 * 32,
    because="prices",
)

# %% [markdown]
# **Why.** Both do the same arithmetic, and both read the same weights. What the wide layer saves is *calls*: each
# call of a module costs some microseconds of Python and of preparing a product, before the first multiplication.

# %%
for name, run in {"twelve": several_layers(32, 12), "one   ": one_wide_layer(32, 12)}.items():
    counted = costs(run, torch.randn(8, 256))
    print(f"{name}: {counted.operations['aten.addmm']} products, {counted.bytes:,} bytes of results")

# %% [markdown]
# Twelve calls became one. The eleven that are saved were a large part of the time. At the article's size only two
# calls are saved, a few microseconds each (on an H200 about 20). On a CPU, the products take most of the time there.
#
# ### Larger layers
#
# Make the layers larger: three times 1,024 outputs. Their weights are 12.6 MB, and every call has to read
# them. How many times as fast is one layer now?

# %%
guess = ...

# %%
compare(
    "modules: 8 × 1024 → 3 × 1024",
    {"three Linear": several_layers(1024, 3), "one Linear + chunk": one_wide_layer(1024, 3)},
    inputs=normal(8, 1024),
    guess=guess,
    claim="C8",
    only="cpu",
    bytes=4 * 1024 * 3 * 1024,
    because="prices",
)

# %% [markdown]
# **Why.** Both ways read the same 12.6 MB of weights and do the same arithmetic. On a CPU this takes so long that two
# calls fewer hardly show; one wide product may even be a little slower than three. (It takes longer than the limit, too,
# which is the time to read the weights, at the rate of the cache where they fit into one.)
#
# And if you need only some of the pieces? Take twelve layers of 128 outputs, of which only one is wanted this
# time. How many times as fast as that layer alone is the wide one?

# %%
guess = ...

# %%
compare(
    "modules: 64 × 1024, one piece of 12 × 128 wanted",
    {
        "its own Linear": lambda x: several_layers(128, 1)(x)[0],
        "one Linear + chunk": lambda x: one_wide_layer(128, 12)(x)[0],
    },
    inputs=normal(64, 1024),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** The wide layer computes all twelve, whoever asks. Merge what is always used together.
#
# ### What `chunk` gives you
#
# The pieces are *views* of the wide result. Nothing is copied, so their rows lie far apart. They are not contiguous:

# %%
pieces = one_wide_layer(128, 3)(x)
print([(tuple(piece.shape), piece.stride(), piece.is_contiguous()) for piece in pieces[:1]])
assert pieces[0].untyped_storage().data_ptr() == pieces[1].untyped_storage().data_ptr()
try:
    pieces[0].view(-1)
except RuntimeError as error:
    print("view:", str(error).split(" (")[0])
else:
    raise AssertionError("view should refuse this")
for name, counted in {
    "view(8, 4, 32)": costs(pieces[0].view, 8, 4, 32),
    "reshape(-1)": costs(pieces[0].reshape, -1),
}.items():
    print(f"{name:14} copies: {counted.copies}")
assert costs(pieces[0].view, 8, 4, 32).copies == 0 and costs(pieces[0].reshape, -1).copies == 1

# %% [markdown]
# Cutting the last dimension, into heads for instance, needs no copy. Joining rows with columns does (`reshape`).
#
# As a view, one piece keeps the *whole* result in memory, as long as you hold it. A copy of it (`clone`) does not:

# %%
first = pieces[0]
print(f"the piece: {first.nbytes:,} bytes; the memory it holds: {first.untyped_storage().nbytes():,} bytes")
assert first.untyped_storage().nbytes() == 3 * first.nbytes
assert first.clone().untyped_storage().nbytes() == first.nbytes

# %% [markdown]
# You ask `chunk` for a number of pieces. For 12 columns in 4 pieces, each is 3 wide. For 10 columns in 4, how wide is the
# last? And for 6 columns in 4? Write two numbers, such as `guess = 3, 3`.

# %%
guess = ...

# %%
lines = []
for columns in (12, 10, 6):
    table = torch.zeros(1, columns)
    by_chunk, by_split = table.chunk(4, dim=1), table.tensor_split(4, dim=1)
    lines.append(
        f"{columns:2} columns in 4: chunk {[piece.shape[1] for piece in by_chunk]}, "
        f"tensor_split {[piece.shape[1] for piece in by_split]}"
    )
last = tuple(len(torch.zeros(columns).chunk(4)[-1]) for columns in (10, 6))
guessed("the width of the last piece, of 10 columns and of 6", guess, last, *lines)

# %% [markdown]
# `chunk` rounds the size of a piece up and cuts until nothing is left. `tensor_split` always gives as many pieces as
# you ask for. For layers of different widths, say the sizes: `split` checks that they add up.

# %%
assert len(torch.zeros(6).chunk(4)) == 3
assert [len(piece) for piece in torch.zeros(10).chunk(4)] == [3, 3, 3, 1]
query, key, gate = torch.zeros(8, 128 + 64 + 1).split([128, 64, 1], dim=1)
print(query.shape[1], key.shape[1], gate.shape[1])
try:
    torch.zeros(8, 100).split([50, 40], dim=1)
except RuntimeError as error:
    print("split:", str(error)[:75], "…")
else:
    raise AssertionError("split should refuse this")

# %% [markdown]
# ## 5. Pruning
#
# Pruning sets the weights that matter least to zero: here, the 90 % with the smallest magnitudes. The article
# (*E9*) prints a class that computes a mask once, keeps it, and multiplies weight and mask in a *forward
# pre-hook*, a hook that runs before `forward`. It is PyTorch's own `torch.nn.utils.prune`, with its comments
# translated. Look at what it makes of a layer (`mock.patch` only counts how often the mask is computed):

# %%
layer = nn.Linear(256, 256)
compute_mask = prune.L1Unstructured.compute_mask
with mock.patch.object(
    prune.L1Unstructured, "compute_mask", autospec=True, side_effect=compute_mask
) as calls:
    prune.l1_unstructured(layer, "weight", amount=0.9)
    for _ in range(3):
        layer(torch.rand(4, 256))
print("masks computed for three calls:", calls.call_count)
print("parameters:", [name for name, _ in layer.named_parameters()])
print("buffers:   ", [name for name, _ in layer.named_buffers()])
print("pre-hooks: ", [type(hook).__name__ for hook in layer._forward_pre_hooks.values()])
print(f"zeros:      {(layer.weight == 0).float().mean():.1%}")
assert torch.equal(layer.weight, layer.weight_mask * layer.weight_orig)
article_code(
    "E9",
    "the listing is torch.nn.utils.prune; it prunes 90 % of a Linear",
    lambda: prune.l1_unstructured(nn.Linear(256, 256), "weight", amount=0.9),
    right=lambda layer: (layer.weight == 0).float().mean().isclose(torch.tensor(0.9), atol=1e-4),
)

# %% [markdown]
# The mask is computed once, and kept as a buffer (chapter 02). Before each forward pass, a pre-hook sets `weight` to
# `weight_mask * weight_orig`. So `weight_orig` can be trained, and what is masked stays zero (`when`: see *Further*):

# %%
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
before = layer.weight.detach().clone()
layer(torch.ones(4, 256)).square().sum().backward()
optimizer.step()
layer(torch.ones(4, 256))
behaviour(
    "E9",
    "After one mask for three calls and a step of training, the pruned weights of a Linear are still zero.",
    calls.call_count == 1
    and not torch.equal(layer.weight, before)
    and torch.equal(layer.weight == 0, layer.weight_mask == 0),
    when="the weight is contiguous, or you bring a mask of your own",
)

# %% [markdown]
# `prune.remove` ends it: `weight` becomes an ordinary parameter with zeros in it. How many times as fast is a
# layer after `prune.remove`?

# %%
guess = ...


# %%
@functools.cache
def pruned(device, how):
    torch.manual_seed(0)
    layer = nn.Linear(512, 512).to(device)
    if how != "dense":
        prune.l1_unstructured(layer, "weight", amount=0.9)
        if how == "removed":
            prune.remove(layer, "weight")
    return layer


def run_pruned(how):
    return torch.no_grad()(lambda x: pruned(x.device, how)(x))


compare(
    "modules: 90 % pruned, 64 × 512 → 512",
    {"prune": run_pruned("prune"), "prune, then remove": run_pruned("removed")},
    inputs=normal(64, 512),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** The results are the same. But the hook multiplies with the mask at each call: it reads 2 MB and
# writes 1 MB. After `remove` there is nothing to multiply. So: prune while you train, remove before you deploy.
#
# ### The pruned layer and the dense one
#
# 90 % of the weights are zero. How many times as fast as the dense layer is the pruned one?

# %%
guess = ...

# %%
compare(
    "modules: a layer of zeros, 64 × 512 → 512",
    {"dense": run_pruned("dense"), "90 % zeros": run_pruned("removed")},
    inputs=normal(64, 512),
    guess=guess,
    differ="other weights",
    because="prices",
)

# %% [markdown]
# **Why not?** The *dense* product multiplies whatever is there. A zero is a number like any other: 4 bytes to
# read, one multiplication. The product does not look for zeros.
#
# Three things do save the work: a format that stores only what is not zero, a pattern that the hardware knows, and a
# smaller matrix. *Further* shows what each needs, and what happens to pruned weights in `channels_last`.

# %% [markdown]
# ## 6. One step of Adam
#
# Adam keeps two running averages for each parameter, and uses about ten operations to update one tensor.
# torch has three implementations of it. You choose by an argument:
#
# - `foreach=False`: a Python loop over the parameters, about ten operations for each,
# - `foreach=True`: each operation once, for a whole *list* of tensors,
# - `fused=True`: one operation that does everything.
#
# A network with 200 small parameters of 16 × 16. How many times as fast as the loop is `fused`?

# %%
guess = ...


# %%
WAYS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


@functools.cache
def adam(device, count, width, way):
    torch.manual_seed(0)
    parameters = [nn.Parameter(torch.randn(width, width, device=device)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    return torch.optim.Adam(parameters, **WAYS[way])


compare(
    "modules: Adam, 200 parameters of 16 × 16",
    {way: lambda device, way=way: adam(device, 200, 16, way).step() for way in WAYS},
    guess=guess,
)

# %%
counted = {way: costs(adam("cpu", 200, 16, way).step) for way in WAYS}
for way, cost in counted.items():
    print(f"{way:8}", cost, end="\n\n", sep="\n")
assert counted["loop"].operations.total() > 1000 and counted["fused"].operations.total() == 2

# %% [markdown]
# **Why.** The counts tell it: well over a thousand operations, each for 256 numbers, against two. Each
# operation costs a microsecond or more before it touches a number. With `foreach` some of that is left: on a
# CPU, each list operation goes through its list one tensor at a time, in C++ instead of Python. `fused` goes from
# tensor to tensor, too, but only once. (The syncs are reads of the step counters, which lie on the CPU: nothing waits.)
#
# All three compute the same step:

# %%
results = []
for way in WAYS:
    parameter = nn.Parameter(torch.linspace(-1, 1, 100))
    optimizer = torch.optim.Adam([parameter], lr=0.1, **WAYS[way])
    for _ in range(5):
        optimizer.zero_grad()
        parameter.square().sum().backward()
        optimizer.step()
    results.append(parameter.detach())
assert torch.allclose(results[0], results[1]) and torch.allclose(results[0], results[2], atol=1e-6)

# %% [markdown]
# Now larger parameters: 16 of 512 × 512. How many times as fast as the loop is `fused` now?

# %%
guess = ...

# %%
compare(
    "modules: Adam, 16 parameters of 512 × 512",
    {way: lambda device, way=way: adam(device, 16, 512, way).step() for way in WAYS},
    guess=guess,
    bytes=7 * 4 * 16 * 512 * 512,
)

# %%
for way in WAYS:
    peak = costs(adam("cpu", 16, 512, way).step).peak_bytes
    print(f"{way:8} at most {peak / 1e6:4.1f} MB of intermediate results at once")

# %% [markdown]
# `foreach` gains nothing on a CPU: it saves calls, and there are few to save. It may even lose, because it holds its
# intermediate results for all 16 parameters at once. (On an H200, where launches count, it gains 4.6×.) `fused` still
# gains, for another reason: *memory*. A step must read parameter, gradient and two averages, and write three of them
# back: 7 × 16.8 MB. That is the limit in the table. (Its rate was measured, too, with some noise: a time may lie a
# little below.) The loop goes through memory again for each of its operations.
#
# Which one do you get without asking? On a CPU the loop, on a GPU
# [`foreach`](https://docs.pytorch.org/docs/stable/optim.html). And not every optimiser has a fused form:

# %%
optimizers = {
    name: cls
    for name, cls in vars(torch.optim).items()
    if inspect.isclass(cls) and issubclass(cls, torch.optim.Optimizer) and cls is not torch.optim.Optimizer
}
print("fused:", *[name for name, cls in optimizers.items() if "fused" in inspect.signature(cls).parameters])
print(
    "not:  ", *[name for name, cls in optimizers.items() if "fused" not in inspect.signature(cls).parameters]
)

parameter = nn.Parameter(torch.ones(1))
parameter.grad = torch.ones(1)
counted = costs(torch.optim.Adam([parameter]).step)
assert not any("foreach" in name or "fused" in name for name in counted.operations)

# %% [markdown]
# A step of the optimiser is a part of a training step. *Further* asks how much of the gain is left there.
#
# ## 7. `zero_grad`
#
# `optimizer.zero_grad()` sets `.grad` to `None`. With `set_to_none=False` it fills the old gradients with zeros instead.
# Chapter 01 says: time the work together with its first use. So we time it with the backward pass that follows.
#
# Eight layers of 512 × 512, one row. How many times as fast is `None`?

# %%
guess = ...


# %%
@functools.cache
def eight_layers(device):
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)]).to(device)
    return model, torch.optim.SGD(model.parameters())


def clear_and_go_back(x, set_to_none):
    model, optimizer = eight_layers(x.device)
    optimizer.zero_grad(set_to_none=set_to_none)
    model(x).square().mean().backward()


compare(
    "modules: zero_grad, forward and backward",
    {
        "zeros": lambda x: clear_and_go_back(x, False),
        "None": lambda x: clear_and_go_back(x, True),
    },
    inputs=normal(1, 512),
    guess=guess,
)

# %% [markdown]
# **Why.** With `None`, the new gradient simply becomes `.grad`. With zeros, the old one is written (8 × 1
# MB), and then the new one is added to it, which reads both and writes one. Count the operations:

# %%
x = torch.rand(1, 512)
for set_to_none in (False, True):
    clear_and_go_back(x, set_to_none)
    counted = costs(clear_and_go_back, x, set_to_none).operations
    zeroed = counted["aten.zero_"] + counted["aten._foreach_zero_"]
    print(f"set_to_none={set_to_none!s:5} {zeroed} to zero, {counted['aten.add_']} to add")
    assert (zeroed == 0) == set_to_none

# %% [markdown]
# It is a fixed cost for each step: where a step computes more, its share is smaller. (Try `normal(1024, 512)`.)
#
# The two also *mean* different things. A parameter with gradient `None` is skipped by the optimiser. One with
# a gradient of zeros is not: its momentum, or its weight decay, still moves it.

# %%
for set_to_none in (True, False):
    used, unused = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adam([used, unused], lr=0.1)
    (used + unused).sum().backward()
    optimizer.step()
    after_one = unused.item()
    optimizer.zero_grad(set_to_none=set_to_none)
    used.sum().backward()
    optimizer.step()
    print(f"set_to_none={set_to_none!s:5} unused: {after_one:.3f}, then {unused.item():.3f}")
    assert (unused.item() == after_one) == set_to_none

# %% [markdown]
# And code that reads `parameter.grad` between the two calls must expect `None`.

# %% [markdown]
# ## Further
#
# This part can be skipped. It is for readers who want to measure the same in larger pieces (hooks in larger layers, the
# optimiser in a whole training step), and for those who prune: three ways to save work, and a trap.
#
# ### Hooks in larger layers
#
# Four layers of 512 → 512, for 64 rows, each with the hook that does nothing. How many times as fast is the network
# without hooks?

# %%
guess = ...

# %%
compare(
    "modules: a hook on each of 4 larger layers",
    {"4 hooks": lambda x: run_chain(x, 4, True), "no hooks": lambda x: run_chain(x, 4, False)},
    inputs=(64, 512),
    guess=guess,
)

# %% [markdown]
# On a CPU, a layer computes so much longer here that the hook is lost in it. On an H200 it shows as before: 1.1×.
#
# ### The optimiser in a whole training step
#
# A step of the optimiser is a part of a training step. Here is a whole one: three layers of 256 → 256, a
# batch of 1,024, forward, backward and Adam. How many times as fast does `fused` make it?

# %%
guess = ...


# %%
@functools.cache
def training(device, way):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)]).to(device)
    return model, torch.optim.Adam(model.parameters(), **WAYS[way])


def train(way):
    def step(x):
        model, optimizer = training(x.device, way)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


compare(
    "modules: a whole training step, batch of 1,024",
    {"Adam, loop": train("loop"), "Adam, fused": train("fused")},
    inputs=normal(1024, 256),
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** On a CPU, with a large batch the products take most of the time, and the optimiser's part is small. (On an
# H200, `fused` still gave 1.4×.) Change 1,024 to 16 and run it again: what is its part then?
#
# ### Three ways to gain from pruning
#
# One is a sparse format, which stores only the numbers that are not zero, each with its place:

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch calls its sparse formats "in beta state"
    sparse = pruned(torch.device("cpu"), "removed").weight.detach().to_sparse_csr()
parts = sparse.values(), sparse.col_indices(), sparse.crow_indices()
print(f"{sparse.numel():,} numbers, {sparse.values().numel():,} of them stored")
print(f"{4 * sparse.numel():,} bytes dense, {sum(part.nbytes for part in parts):,} sparse")

# %% [markdown]
# A place takes twice the bytes of its number, and the numbers lie all over the matrix. So fewer multiplications
# need not mean less time: measure `sparse @ x.T` at your size.
#
# The second way is a *pattern* that the hardware knows. NVIDIA GPUs of compute capability 8.0 (Ampere) or newer
# can skip zeros if of every four neighbours two are zero: **2:4 sparsity**, also called semi-structured. You
# prune to the pattern, and [`torch.sparse.to_sparse_semi_structured`](
# https://docs.pytorch.org/tutorials/advanced/semi_structured_sparse.html) packs the weight. Now `nn.Linear`
# takes half of the multiplications. What does the packed weight need, and what does the pattern lose?

# %%
weight = pruned(torch.device("cpu"), "dense").weight.detach().bfloat16()
fours = weight.view(-1, 4).abs()
in_pattern = torch.zeros_like(fours).scatter(1, fours.topk(2, dim=1).indices, 1).view_as(weight)
anywhere = weight.abs() > weight.abs().flatten().median()
packed = weight.nbytes // 2 + weight.numel() // 2 * 2 // 8  # half of the numbers, two bits for each place
print(f"{weight.nbytes:,} bytes dense, {packed:,} packed")
for name, chosen in {"2 of every 4": in_pattern, "half of all": anywhere}.items():
    kept = (weight * chosen).float().abs().sum() / weight.float().abs().sum()
    print(f"{name:12} {chosen.float().mean():4.0%} of the weights, {kept:.0%} of their magnitude")
try:
    torch.sparse.to_sparse_semi_structured(weight * in_pattern)
    raise AssertionError("this one is a tensor on the CPU")
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# Half of the arithmetic means at most 2×, and only for large products on such a GPU. A CPU has no such instructions, so this
# course does not time it. The pattern loses a little more than a free choice of half the weights. Train on after pruning.
#
# The third way needs no hardware: a smaller matrix. Structured pruning chooses whole rows, that is, whole
# outputs. We take them out of the matrix, nine of ten. How many times as fast is the layer?

# %%
guess = ...


# %%
@functools.cache
def smaller(device):
    layer = copy.deepcopy(pruned(torch.device("cpu"), "dense"))
    prune.ln_structured(layer, "weight", amount=0.9, n=2, dim=0)
    rows_left = layer.weight_mask.any(dim=1)
    result = nn.Linear(512, int(rows_left.sum()))
    with torch.no_grad():
        result.weight.copy_(layer.weight[rows_left])
        result.bias.copy_(layer.bias[rows_left])
    return result.to(device)


compare(
    "modules: a smaller layer, 64 × 512 → 51",
    {"dense": run_pruned("dense"), "rows taken out": torch.no_grad()(lambda x: smaller(x.device)(x))},
    inputs=normal(64, 512),
    guess=guess,
    differ="fewer outputs",
    because="prices",
)
x = torch.rand(64, 512)
for outputs in (smaller(torch.device("cpu")).out_features, 64):
    layer = nn.Linear(512, outputs).requires_grad_(False)
    seconds = min(timeit.repeat(functools.partial(layer, x), number=50, repeat=20)) / 50
    print(f"{outputs} outputs: {seconds * 1e6:.0f} µs")

# %% [markdown]
# **Why.** A tenth of the outputs is a tenth of the arithmetic. So the layer after it must lose the same columns: that
# is the price of the speed. (On an H200 there was none at this size: 37 µs, against 31 for the whole matrix. On a CPU
# predicted is more: 51 outputs do not reach the priced rate. It is not the size alone: are 64 any slower above?)
#
# ### The trap: memory format
#
# A module in `channels_last` order keeps its weights in that order (chapter 06). What happens if you prune a
# convolution in this order?

# %%
convolution = nn.Conv2d(16, 32, 3).to(memory_format=torch.channels_last)
try:
    prune.l1_unstructured(convolution, "weight", amount=0.5)
    refused = False
except RuntimeError as error:
    refused = True
    print("RuntimeError:", str(error).split(" (")[0])
behaviour(
    "E9",
    "prune.l1_unstructured prunes half of a convolution in channels_last.",
    not refused and (convolution.weight == 0).float().mean() == 0.5,
    unless="the weight is contiguous, or you bring a mask of your own",
)

# %% [markdown]
# It is refused: the magnitudes are flattened with `view`. With contiguous magnitudes to judge by
# (`importance_scores`) it runs, and the order is lost:

# %%
prune.l1_unstructured(
    convolution, "weight", amount=0.5, importance_scores=convolution.weight.detach().contiguous()
)
print("strides of weight_orig:", convolution.weight_orig.stride(), " of weight:", convolution.weight.stride())
assert convolution.weight.is_contiguous()

# %% [markdown]
# **Why is it lost?** The listing clones masks with `memory_format=torch.contiguous_format`. What happens to the
# product of such a mask and the weight?

# %%
weight = torch.randn(32, 16, 3, 3).to(memory_format=torch.channels_last)
keep = weight.abs() > 1
cloned = keep.clone(memory_format=torch.contiguous_format)
print("in channels_last order:")
for name, product in {
    "keep * weight": keep * weight,
    "cloned * weight": cloned * weight,
    "weight * cloned": weight * cloned,
}.items():
    print(f"  {name:15} {product.is_contiguous(memory_format=torch.channels_last)}")
assert (weight * cloned).is_contiguous(memory_format=torch.channels_last)
assert not (cloned * weight).is_contiguous(memory_format=torch.channels_last)

# %% [markdown]
# Where two layouts meet, the result takes that of the first factor. torch's `prune` puts the mask first:

# %%
assert "clone(memory_format=torch.contiguous_format)" in inspect.getsource(prune)
lines = inspect.getsource(prune.BasePruningMethod.apply_mask).splitlines()
print(*[line.strip() for line in lines if "* orig" in line])

# %% [markdown]
# The mend: make the mask yourself, and hand it over. A mask that is computed from the weight has its strides.
# (It helps once. For the next mask on the same weight, `apply` clones the first as contiguous.)

# %%
convolution = nn.Conv2d(16, 32, 3).to(memory_format=torch.channels_last)
magnitude = convolution.weight.detach().abs()
prune.custom_from_mask(convolution, "weight", magnitude > magnitude.flatten().median())
tensors = [getattr(convolution, name) for name in ("weight_orig", "weight_mask", "weight")]
behaviour(
    "E9",
    "prune.custom_from_mask prunes half of a convolution in channels_last, and keeps the order.",
    (convolution.weight == 0).float().mean() == 0.5
    and all(tensor.is_contiguous(memory_format=torch.channels_last) for tensor in tensors),
    when="the weight is contiguous, or you bring a mask of your own",
)
prune.custom_from_mask(convolution, "weight", magnitude > 2 * magnitude.flatten().median())
assert convolution.weight.is_contiguous()

# %% [markdown]
# The other mend: prune first, and convert the module afterwards. Then parameter and mask are converted
# together. `weight` itself, which is neither of them, follows at the next forward pass.

# %%
convolution = nn.Conv2d(16, 32, 3)
prune.l1_unstructured(convolution, "weight", amount=0.5)
convolution.to(memory_format=torch.channels_last)
before = convolution.weight.stride()
convolution(torch.rand(1, 16, 8, 8))
print("strides of weight:", before, "then", convolution.weight.stride())
assert convolution.weight.is_contiguous(memory_format=torch.channels_last)

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** flops and calls name the largest part; each row takes one away; verify the features.
#
# | you want | use | because |
# |---|---|---|
# | a network's last features | `nn.Identity()` for the last layer | same features; next to no time saved |
# | features from the middle | a network that ends there | a hook does not stop the layers after it |
# | features and the result | a forward hook, with `detach` | one pass gives both; no graph is held |
# | several small layers of one input | one wide `Linear` | one call, not many; on a CPU large layers gain nothing |
# | pieces of given sizes | `split` | `chunk` may give fewer or uneven pieces |
# | pruning | `prune`, then `prune.remove` | one mask for all calls; zeros in a dense weight are not faster |
# | pruning in `channels_last` | `prune.custom_from_mask` | `l1_unstructured` refuses or loses the order |
# | Adam, AdamW, SGD, Adagrad | `fused=True` | one pass through memory, one call |
# | fresh gradients | `zero_grad()` as it is | nothing to fill, nothing to add |
#
# The rule of *C8* comes from the second and the third size of section 4. At the article's own size, a CPU gained
# little, an H200 2.1×.

# %%
verdicts("C4", "C8", "E9")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/11_modules/11_modules.ipynb). Six tasks: parts
# to take apart, to merge, and to build.
