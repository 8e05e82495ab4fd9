# %% [markdown]
# # Clinic after 04: where is the time?
#
# In the exercises so far, somebody had found the slow function for you. In your own code nobody has. A clinic is ten
# pieces of code as they stand in real repositories. You say of each whether something is wrong with it, and if so:
#
# - **where**: the line;
# - **why**: the cause, one of those in chapters 00 to 04;
# - **how much**: how many times as fast the piece will be without it.
#
# Only then do you mend it. This page shows one case, from the first look to the last.
#
# **Time:** 5 minutes.

# %%
import torch

from autograder import compare, costs

# %% [markdown]
# ## The case
#
# A buffer keeps what an agent has seen, and a training loop draws batches from it. All numbers are right.


# %%
def targets(states, rewards, ends, draws, discount=0.99):
    """What an agent should have expected of the states drawn, and how far apart they lie."""
    found = []
    for picks in draws:
        batch = torch.stack([states[pick] for pick in picks])
        reward = torch.as_tensor(rewards[picks], dtype=torch.float32)
        value = torch.tanh(batch).mean(dim=1)
        value = torch.where(ends[picks], torch.zeros(()), value)
        spread = (batch - batch.mean(dim=0)).norm(dim=1)
        found.append(torch.stack([reward + discount * value, spread]))
    return torch.stack(found)


def a_buffer(generator, device):
    states = torch.randn(5_000, 64, generator=generator)
    rewards = torch.randn(5_000, generator=generator)
    ends = torch.rand(5_000, generator=generator) < 0.1
    return states, rewards, ends, torch.randint(5_000, (8, 256), generator=generator)


# %% [markdown]
# ## 1. What must it do, and what does it?
#
# For each of 8 batches there are a handful of operations to do: 100 in all, say. Count what it asks for.

# %%
count = costs(targets, *a_buffer(torch.Generator().manual_seed(0), "cpu"))
print(count)
assert count.operations.total() > 2000

# %% [markdown]
# A count does not say what each operation takes. But one line runs 2,048 times, and all others 8 times: take a
# closer look at that one.
#
# ## 2. Take it away
#
# Leave the line out, so that all the rest stays, and compare. Here the states are drawn already.


# %%
def without_the_line(states, rewards, ends, draws, discount=0.99):
    found = []
    for picks in draws:
        batch = states[:256]
        reward = torch.as_tensor(rewards[picks], dtype=torch.float32)
        value = torch.tanh(batch).mean(dim=1)
        value = torch.where(ends[picks], torch.zeros(()), value)
        spread = (batch - batch.mean(dim=0)).norm(dim=1)
        found.append(torch.stack([reward + discount * value, spread]))
    return torch.stack(found)


trial = compare(
    "a case: the line left out",
    {"as it is": targets, "without the line": without_the_line},
    inputs=a_buffer,
    differ="a line is left out",
    only="cpu",
)

# %% [markdown]
# So much is to be had at most. If the line took the share *s* of the time, it is 1 / (1 − *s*) times as fast without it. What
# mends it must do something, too: it gains a little less.
#
# ## 3. Say it, then mend it
#
# The line is `batch = torch.stack([states[pick] for pick in picks])`, the cause is "one by one": Python asks for one row at
# a time. How many times as fast will it be?

# %%
guess = ...


# %%
def mended(states, rewards, ends, draws, discount=0.99):
    found = []
    for picks in draws:
        batch = states[picks]
        reward = torch.as_tensor(rewards[picks], dtype=torch.float32)
        value = torch.tanh(batch).mean(dim=1)
        value = torch.where(ends[picks], torch.zeros(()), value)
        spread = (batch - batch.mean(dim=0)).norm(dim=1)
        found.append(torch.stack([reward + discount * value, spread]))
    return torch.stack(found)


compare(
    "a case: one index for a batch",
    {"as it is": targets, "mended": mended},
    inputs=a_buffer,
    guess=guess,
    only="cpu",
)

# %% [markdown]
# What looked bad too, and costs nothing here: the loop over 8 batches, `as_tensor` (it gives back what is there), a new
# tensor of one zero for each batch, and the stacks of what is small.
#
# **Now you:** [ten cases](../exercises/clinic_04/clinic_04.ipynb). Some have nothing wrong.
