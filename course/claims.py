# %% [markdown]
# # What holds
#
# Five widely read articles on PyTorch say what makes it fast. So does the documentation of PyTorch and of Triton, about
# what is newer than they are. The chapters test it. This page keeps the score.
#
# Ten things to remember first, then the score of all claims.

# %%
from autograder import published_figures, scoreboard, ten_things

ten_things()

# %% [markdown]
# ## The score
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
# A figure tells how many times faster the advice was than doing without, as a range over all the chapters' trials, the
# devices that were measured with `make record`, and the processes in which each was measured. What rests on one process
# says so. *Every finding* below a table names them one by one. Run the chapters, and a column *this machine* appears with figures of your own.
#
# The last column is **what others published**: figures from pages and repositories that anybody can read, and tables of
# thousands of pairs made from open data. Nobody here has measured them, and they change no verdict of ours. Their own word
# follows from [written rules](../docs/published.md), which also say what stands *aside* and why. *Their own* are sources
# that make or sell what the claim is about. *Every published figure* is named below each table. You can
# [add one, or dispute one](../docs/published.md#to-add-a-figure-or-to-dispute-one).

# %%
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

# %% [markdown]
# ## How to read somebody else's benchmark
#
# The same advice stands in print as 0.3× and as 6×. Often both are right, about different things. Seven questions tell
# which; each has its published example.
#
# **1. Did the clock wait for the work?** A GPU works on while Python goes on. Without a wait, the clock reads how long an
# order takes. The advice of A2 was published as "a factor 2000" that way, and as a few per cent of a whole program:

# %%
published_figures("A2-03", "A2-02")

# %% [markdown]
# **2. What is the other side?** From the A100 on, "FP32" may mean TF32, which is most of the gain of 16 bits. In the first
# two lines one program was run with TF32 and with 16 bits, both against true FP32: nearly the same. In the last two one
# benchmark has a gain on a V100, which has no TF32, and hardly any on a B200:

# %%
published_figures("B7-23", "B7-24", "B7-10", "B7-13")

# %% [markdown]
# **3. How large is the batch, and is it the same on both sides?** One table, one GPU, two batches: the sign changes. In the
# last line, 16 bits got twice the batch:

# %%
published_figures("B7-03", "B7-04", "B7-06")

# %% [markdown]
# **4. What did the fast side wait for?** One script, run by two people. In the first run the fast side waited for its
# pictures:

# %%
published_figures("E3-19", "E3-20")

# %% [markdown]
# **5. Is it one thing that changed?** Here CUDA graphs came with another cache, and with a compiler:

# %%
published_figures("F25-12", "F2-10")

# %% [markdown]
# **6. Which release?** One width, one page, two builds of it:

# %%
published_figures("F40-06", "F40-09")

# %% [markdown]
# **7. Picked out of how many?** One shape out of all, against the median of all models:

# %%
published_figures("E3-18", "E3-09")
