# %% [markdown]
# # What holds
#
# Five widely read articles on PyTorch say what makes it fast. So does the documentation of PyTorch and of Triton, about
# what is newer than they are. The chapters test it. This page keeps the score.
#
# Nothing here is typed by hand. A row says what the source says, and quotes its own words or its code. Then two
# verdicts. The first is on the *advice*:
#
# - **holds**: every cell that tests it found it so. A claim of speed holds where the whole interval says 10 % or
#   more, unless the source itself names another figure.
# - **holds when …**: it holds on one side of a condition and not on the other, or on a CPU and not on a GPU, or the
#   other way round. The rule says where.
# - **does not pay**: what it promises is not there, or is too little to change code for.
# - **wrong**: it is not so.
# - **not measured (needs a GPU)**: there is no figure of these cells on a GPU yet; some need two. A figure of a CPU
#   decides nothing about them.
#
# The second is on the source's *own code*: it runs, it is wrong, or it is outdated.
#
# A figure tells how many times faster the advice was than doing without, as a range where a chapter tries it more
# than once, on the devices that were measured with `make record`. *Every finding* below a table names them one by
# one. Run the chapters, and a column *this machine* appears with figures of your own.

# %%
from autograder import scoreboard

scoreboard()

# %% [markdown]
# ## A · Creating and moving

# %%
scoreboard("A")

# %% [markdown]
# ## B · Graphs, devices, precision

# %%
scoreboard("B")

# %% [markdown]
# ## C · Thirteen features

# %%
scoreboard("C")

# %% [markdown]
# ## D · cuDNN

# %%
scoreboard("D")

# %% [markdown]
# ## E · Memory format and CPU

# %%
scoreboard("E")

# %% [markdown]
# ## F · From the documentation

# %%
scoreboard("F")
