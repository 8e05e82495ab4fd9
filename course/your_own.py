# %% [markdown]
# # Bring your own
#
# A function of yours is too slow. This page goes through [the routine](00_measuring.ipynb) with it: what you say, what
# you foretell, and what it was, side by side. It runs as it is, with a function that smooths signals: run it once, then
# put your own in its place. Take a copy of the file first (File, Save Notebook As …).
#
# **Time:** 10 minutes with ours, an evening with yours. **Needs:** the chapters that you have read.

# %%
import torch
import torch.nn.functional as F

import autograder
from autograder import compare, costs

# %% [markdown]
# ## 1. The function, and what goes in
#
# Put it here as it is. It takes tensors and gives tensors; files and models are opened outside of it. `inputs` makes
# what it will get at work: the same sizes, the same kinds of numbers, on the device that it is asked for.


# %%
def as_it_is(signals):
    """The mean of each value and of the 31 before it; what is before the first is zero."""
    padded = F.pad(signals, (31, 0))
    smooth = torch.empty_like(signals)
    for end in range(signals.shape[1]):
        smooth[:, end] = padded[:, end : end + 32].mean(dim=1)
    return smooth


def inputs(generator, device):
    return torch.randn(64, 1000, generator=generator).to(device)


# %% [markdown]
# ## 2. What must it do, and what does it?
#
# First say it: how many operations should that take, how many bytes must be read and written once? Then count.

# %%
print(costs(as_it_is, inputs(torch.Generator().manual_seed(0), "cpu")))

# %% [markdown]
# Ours must read 256 kB and write as much. It asks for some thousands of operations, and does little in each.
#
# ## 3. Where is its time?
#
# Name one part. Then leave that part out, however wrong the result is, and compare: so much is to be had there, and no
# more. If the time stays, it was not the part: name another one.


# %%
def without_the_part(signals):
    padded = F.pad(signals, (31, 0))
    smooth = torch.empty_like(signals)
    for end in range(signals.shape[1]):
        smooth[:, end] = padded[:, end]
    return smooth


# %%
guess = ...

# %%
compare(
    "your own: a part left out",
    {"as it is": as_it_is, "without the part": without_the_part},
    inputs=inputs,
    guess=guess,
    differ="a part is left out",
    only="cpu",
)

# %% [markdown]
# ## 4. One idea, one line in the journal
#
# An idea has a name, a cause, and a gain that you foretell. `tried` looks whether it is right, also for inputs in another
# order of memory and on every device that is here, measures it against the function as it is, and keeps the line. What is
# wrong is not measured. The card also says what calls, bytes and arithmetic predict: was it your cause?

# %%
journal = []


def tried(idea, cause, gain):
    right = autograder.check(idea, like=as_it_is, on=inputs, points=1)
    if right.word != "passed":
        return
    name = idea.__name__.replace("_", " ")
    sides = {"as it is": as_it_is, name: idea}
    found = compare(f"your own: {name}", sides, inputs=inputs, guess=gain, because="prices", only="cpu")
    journal.append((name, cause, gain, found.ratio().median))


# %% [markdown]
# ### Our first idea
#
# The loop asks for four operations a value. All windows at once are one view, and one mean.


# %%
def all_windows(signals):
    return F.pad(signals, (31, 0)).unfold(1, 32, 1).mean(dim=-1)


tried(all_windows, "calls", ...)

# %% [markdown]
# ### Our second
#
# All windows together read each number 32 times, which the prices do not know. A running sum reads it once, and a window
# is the difference of two sums.


# %%
def running_sums(signals):
    sums = F.pad(signals, (32, 0)).cumsum(dim=1)
    return (sums[:, 32:] - sums[:, :-32]) / 32


tried(running_sums, "bytes", ...)

# %% [markdown]
# Such a sum loses digits where it grows large. `check` did not mind with these numbers: with yours, it may.
#
# ## 5. What became of it

# %%
for name, cause, said, was in journal:
    told = "nothing" if said is ... else f"{said:g}×"
    print(f"{name:>16}: {was:6.1f}×, you said {told}, for {cause}")

# %% [markdown]
# Now again from 3, with the best one as it is; or stop:
#
# - where the limit is near ([chapter 13](13_cpu.ipynb)), or the function is no longer the largest part of your program,
# - where you would not want to read the code in a year.
#
# Then measure **the whole program** before and after, in turns, in fresh processes. A function that is 20 times as fast, and
# took a tenth of the time, makes a program 1.1 times as fast.
