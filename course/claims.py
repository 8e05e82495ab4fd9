# %% [markdown]
# # What holds
#
# Five widely read articles on PyTorch say what makes it fast. So does the documentation of PyTorch, of Triton, and of libraries
# that serve models, about what is newer than they are. The chapters test it. This page keeps the score.
#
# Ten things to remember first, then the score of all claims. A figure is that of the sizes in its chapter, on the devices that
# were recorded, most in one process so far: take the rule along, and measure yours.

# %% jupyter={"source_hidden": true} tags=["remove-input"]
from autograder import published_figures, scoreboard, ten_things

ten_things()

# %% [markdown]
# ## The score
#
# Nothing here is typed by hand: verdicts follow from what the chapters' cells found out, and figures are those of the
# devices that were measured with `make record`. Run the chapters, and lines with *this machine* appear.

# %% jupyter={"source_hidden": true} tags=["remove-input"]
scoreboard()

# %% [markdown]
# <details><summary>How a verdict comes about</summary>
#
# - **Holds**: every cell that tests it found it so. A claim of speed holds where the whole interval says 10 % or more,
#   unless the source itself names another figure.
# - **Holds when …**: it holds on one side of a condition and not on the other, or on a CPU and not on a GPU, or the other
#   way round.
# - **Does not pay**: what it promises is not there, or is too little to change code for.
# - **Wrong**: it is not so.
# - **Not measured**: there is no figure of these cells on a GPU yet; some need two. A figure of a CPU decides nothing
#   about them.
#
# A range is that of all cells, of all devices, and of all processes in which each was measured; what rests on one process
# says so. *Every finding* below a part names them one by one, with the source's own words. Where these are Chinese, the
# claim above them says the same in English.
# The source's own code has a verdict of its own where it does not run as it stands: it is wrong, or outdated.
#
# **Published by others** are figures from pages and repositories that anybody can read, and tables of thousands of pairs made
# from open data. Nobody here has measured them, and they change no verdict of ours. Their own word follows from [written
# rules](../docs/published.md), which also say which figures are not counted, and why. *Their own* are sources that make or
# sell what the claim is about. You can [add one, or dispute one](../docs/published.md#to-add-a-figure-or-to-dispute-one).
#
# </details>

# %% [markdown]
# ### Holds

# %% jupyter={"source_hidden": true} tags=["remove-input"]
scoreboard("holds")

# %% [markdown]
# ### Holds under a condition

# %% jupyter={"source_hidden": true} tags=["remove-input"]
scoreboard("holds when …")

# %% [markdown]
# ### Does not pay

# %% jupyter={"source_hidden": true} tags=["remove-input"]
scoreboard("does not pay")

# %% [markdown]
# ### Wrong

# %% jupyter={"source_hidden": true} tags=["remove-input"]
scoreboard("wrong")

# %% [markdown]
# ### Not measured

# %% jupyter={"source_hidden": true} tags=["remove-input"]
scoreboard("not measured (needs a GPU)")

# %% [markdown]
# ## How to read somebody else's benchmark
#
# The same advice stands in print as 0.3× and as 6×. Often both are right, about different things. Seven questions tell
# which; each has its published example.
#
# **1. Did the clock wait for the work?** A GPU works on while Python goes on. Without a wait, the clock reads how long an
# order takes. The advice of A2 was published as "a factor 2000" that way, and as a few per cent of a whole program:

# %% jupyter={"source_hidden": true} tags=["remove-input"]
published_figures("A2-03", "A2-02")

# %% [markdown]
# **2. What is the other side?** From the A100 on, "FP32" may mean TF32, which is most of the gain of 16 bits. In the first
# two lines one program was run with TF32 and with 16 bits, both against true FP32: nearly the same. In the last two one
# benchmark has a gain on a V100, which has no TF32, and hardly any on a B200:

# %% jupyter={"source_hidden": true} tags=["remove-input"]
published_figures("B7-23", "B7-24", "B7-10", "B7-13")

# %% [markdown]
# **3. How large is the batch, and is it the same on both sides?** One table, one GPU, two batches: the sign changes. In the
# last line, 16 bits got twice the batch:

# %% jupyter={"source_hidden": true} tags=["remove-input"]
published_figures("B7-03", "B7-04", "B7-06")

# %% [markdown]
# **4. What did the fast side wait for?** One script, run by two people. In the first run the fast side waited for its
# pictures:

# %% jupyter={"source_hidden": true} tags=["remove-input"]
published_figures("E3-19", "E3-20")

# %% [markdown]
# **5. Is it one thing that changed?** Here CUDA graphs came with another cache, and with a compiler:

# %% jupyter={"source_hidden": true} tags=["remove-input"]
published_figures("F25-12", "F2-10")

# %% [markdown]
# **6. Which release?** One width, one page, two builds of it:

# %% jupyter={"source_hidden": true} tags=["remove-input"]
published_figures("F40-06", "F40-09")

# %% [markdown]
# **7. Picked out of how many?** One shape out of all, against the median of all models:

# %% jupyter={"source_hidden": true} tags=["remove-input"]
published_figures("E3-18", "E3-09")
