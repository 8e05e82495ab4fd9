# %% [markdown]
# # What holds
#
# Five widely read articles on PyTorch say what makes it fast. The chapters test all of it. This page keeps the
# score.
#
# Nothing here is typed by hand. A figure tells how many times faster the advice was than doing without, as a
# range where a chapter tries it more than once. The recorded devices were measured with `make record`. The column
# *this machine* fills up when you run the chapters.
#
# - **holds**: every cell that tests it found it so. Speed counts from 10 % on.
# - **depends**: some cells found it so, others did not. Look at the findings.
# - **does not hold**: no cell found it so.
# - **wrong**: the function does not exist, or the documentation says the opposite.

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
