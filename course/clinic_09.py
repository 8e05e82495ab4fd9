# %% [markdown]
# # Clinic after 09: where is the time?
#
# A second clinic, ten other pieces of code. [The first one](clinic_04.ipynb) shows how it goes: count, take a line away,
# say line, cause and gain, and only then mend. In the causes of chapters 05 to 09 a count often has nothing to tell: the
# operations are those that must be, and their bytes, too. This page shows such a case.
#
# **Time:** 5 minutes.

# %%
import torch
import torch.nn.functional as F

from autograder import compare, costs

# %% [markdown]
# ## The case
#
# Where would somebody look first in a picture? A network has made features, and a part of each picture does not count.
# The features lie in channels_last, because the network before works so. All numbers are right.


# %%
def salience(features, valid, k):
    """How strong the k strongest places of each picture are, after a look at what lies around them."""
    seen = features.masked_fill(~valid, 0)
    local = F.max_pool2d(seen, 3, stride=2, padding=1)
    smooth = F.interpolate(local, size=features.shape[2:], mode="bilinear")
    strength = smooth.square().mean(dim=1)
    return strength.flatten(1).topk(k, dim=1).values


def four_pictures(generator, device):
    features = torch.rand(4, 64, 28, 28, generator=generator).to(memory_format=torch.channels_last)
    return features, torch.rand(4, 1, 28, 28, generator=generator) < 0.7, 10


# %% [markdown]
# ## 1. What must it do, and what does it?

# %%
example = four_pictures(torch.Generator().manual_seed(0), "cpu")
count = costs(salience, *example)
print(count)
assert count.operations.total() < 20

# %% [markdown]
# A handful of operations for four pictures, each on all of them at once. There is no loop, and nothing is done twice. So
# the question is what each operation does inside. The pooling compares 9 numbers for each of 4 × 64 × 14 × 14 places, half
# a million comparisons. A processor does 8 or 16 in one instruction, if the numbers lie side by side.
#
# ## 2. Take it away
#
# Leave out one line after the other, so that all the rest stays. In place of the pooling, every second row and column:


# %%
def without_pooling(features, valid, k):
    seen = features.masked_fill(~valid, 0)
    local = seen[:, :, ::2, ::2]
    smooth = F.interpolate(local, size=features.shape[2:], mode="bilinear")
    strength = smooth.square().mean(dim=1)
    return strength.flatten(1).topk(k, dim=1).values


def without_smoothing(features, valid, k):
    seen = features.masked_fill(~valid, 0)
    local = F.max_pool2d(seen, 3, stride=2, padding=1)
    strength = local.square().mean(dim=1)
    return strength.flatten(1).topk(k, dim=1).values


compare(
    "a second case: a line left out",
    {"as it is": salience, "without smoothing": without_smoothing, "without pooling": without_pooling},
    inputs=four_pictures,
    differ="a line is left out",
    only="cpu",
)

# %% [markdown]
# The pooling is what takes the time, many times more than its comparisons need. But there is nothing to change in that
# line. What does it get? Look at the strides, after each line:

# %%
features, valid, _ = example
seen = features.masked_fill(~valid, 0)
chosen = torch.where(valid, features, torch.zeros(()))
for name, tensor in {"features": features, "masked_fill": seen, "where": chosen}.items():
    print(f"{name:12}", tensor.stride())
assert torch.equal(seen, chosen)
assert features.stride() == chosen.stride() != seen.stride()

# %% [markdown]
# ## 3. Say it, then mend it
#
# The line is `seen = features.masked_fill(~valid, 0)`: it loses channels_last, and what follows has to walk through pixels
# one by one. The line that costs the time, the pooling, counts as well: both are where somebody would look. The cause is
# "order". How many times as fast will it be?

# %%
guess = ...


# %%
def mended(features, valid, k):
    seen = torch.where(valid, features, torch.zeros(()))
    local = F.max_pool2d(seen, 3, stride=2, padding=1)
    smooth = F.interpolate(local, size=features.shape[2:], mode="bilinear")
    strength = smooth.square().mean(dim=1)
    return strength.flatten(1).topk(k, dim=1).values


compare(
    "a second case: the order kept",
    {"as it is": salience, "mended": mended},
    inputs=four_pictures,
    guess=guess,
    only="cpu",
)

# %% [markdown]
# It is not what a line asks for that told, but what it gets. So where a count shows nothing, ask three more questions: in
# which order do the numbers lie, in which type, and does the way suit the sizes?
#
# **Now you:** [ten cases](../exercises/clinic_09/clinic_09.ipynb). Some have nothing wrong.
