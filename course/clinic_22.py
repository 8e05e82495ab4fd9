# %% [markdown]
# # Clinic after 22: where is the time?
#
# Ten pieces of code again, as [after 04](clinic_04.ipynb): line, cause and gain of each, before you mend any. Now they are what
# goes on around large models: training, compiling, fewer bits, many ranks, serving. A cause may be of any chapter. This
# page shows one case.
#
# **Time:** 5 minutes.

# %%
import torch

from autograder import compare, costs

# %% [markdown]
# ## The case
#
# A model listens to speech, step by step. One layer of it looks back 32 steps. The keys and values of the whole talk are
# kept, because another layer reads them at the end.


# %%
def listened(weight, x, keys, values, steps):
    """What the layer gives in each of so many steps, and all keys and values."""
    found = []
    for _ in range(steps):
        query, key, value = (x @ weight).chunk(3)
        keys = torch.cat([keys, key[None]])
        values = torch.cat([values, value[None]])
        scores = keys[-32:] @ query / 8
        x = torch.tanh(x + scores.softmax(dim=0) @ values[-32:])
        found.append(x)
    return torch.stack(found), keys, values


def a_talk(generator, device):
    weight = torch.randn(64, 192, generator=generator) / 8
    keys, values = torch.randn(2, 3_000, 64, generator=generator)
    return weight, torch.randn(64, generator=generator), keys, values, 40


# %% [markdown]
# ## What must it do?
#
# Three things look wasteful: a loop with small operations, a list that grows, and `cat`.
#
# The loop has to be: each step begins with what the last one gave. The list grows by a reference in each step. And `cat`?
# Compare what is new in memory with what the answer holds.

# %%
count = costs(listened, *(example := a_talk(torch.Generator().manual_seed(0), "cpu")))
answer = sum(tensor.nbytes for tensor in listened(*example))
print(
    f"{count.operations.total()} operations; {count.bytes / 1e6:.1f} MB made, {answer / 1e6:.1f} MB given back"
)
assert count.bytes > 20 * answer

# %% [markdown]
# So nearly all that is made is thrown away. What is the most that can be gained? Leave `cat` out:


# %%
def without_cat(weight, x, keys, values, steps):
    found = []
    for _ in range(steps):
        query = (x @ weight).chunk(3)[0]
        scores = keys[-32:] @ query / 8
        x = torch.tanh(x + scores.softmax(dim=0) @ values[-32:])
        found.append(x)
    return torch.stack(found), keys, values


compare(
    "a fourth case: the line left out",
    {"as it is": listened, "without cat": without_cat},
    inputs=a_talk,
    differ="a line is left out",
    only="cpu",
)

# %% [markdown]
# The line is `keys = torch.cat([keys, key[None]])`, or that of the values: both share the guilt. The cause is "growing". What
# mends it must still copy once, into places for all steps. How many times as fast will it be?

# %%
guess = ...


# %%
def mended(weight, x, keys, values, steps):
    end = len(keys)
    keys, values = (torch.cat([old, old.new_empty(steps, 64)]) for old in (keys, values))
    found = []
    for _ in range(steps):
        query, keys[end], values[end] = (x @ weight).chunk(3)
        end += 1
        scores = keys[end - 32 : end] @ query / 8
        x = torch.tanh(x + scores.softmax(dim=0) @ values[end - 32 : end])
        found.append(x)
    return torch.stack(found), keys, values


compare(
    "a fourth case: places for all steps",
    {"as it is": listened, "mended": mended},
    inputs=a_talk,
    guess=guess,
    only="cpu",
)

# %% [markdown]
# It gains less than leaving the line out: to write into a place is an operation, too. A bound says what cannot be more.
# Foretell what the mended piece still has to do.
#
# **Now you:** [ten cases](../exercises/clinic_22/clinic_22.ipynb). Some have nothing wrong.
