# %% [markdown]
# # NN · New topic
#
# *This is the template of a chapter: replace its contents and keep its order.* Say in two sentences what people
# do, or are told to do, and what it may cost.
#
# "The articles" are five widely read articles on fast PyTorch from 2017–2021 whose claims the course measures; the
# IDs such as *A1* are the course's numbers for them, listed in [claims](claims.ipynb). `compare` and `costs` are
# explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - work on all rows of a table with one call,
# - say when that saves nothing.
#
# **Time:** 5 minutes to read and run. **Needs:** a CPU; a GPU is used where there is one.
#
# **Claims tested:** none. (Where a cell tests one, give it `claim="C5"`, and show `verdicts("C5")` at the end.)

# %%
import torch

from autograder import compare, costs, devices, recall

print("devices here:", *devices())

# %%
recall("NN", ..., ..., ...)

# %% [markdown]
# ## 1. Row by row, or all at once?
#
# A table has 500 rows of 64 numbers. We add up each row: in a loop over the rows, or with one call for all of them.
# How many times faster is the second?

# %%
guess = ...


# %%
def row_by_row(table):
    return torch.stack([row.sum() for row in table])


def all_at_once(table):
    return table.sum(dim=1)


compare(
    "the sum of each row: 500 rows of 64",
    {"row by row": row_by_row, "all at once": all_at_once},
    inputs=lambda generator, device: torch.rand(500, 64, generator=generator).to(device),
    guess=guess,
)

# %% [markdown]
# **Why.** Both do the same arithmetic. But every call of torch costs some microseconds before it computes
# anything, and the loop makes one for each row. What is said is shown:

# %%
table = torch.rand(500, 64)
assert costs(row_by_row, table).operations.total() > 500 * costs(all_at_once, table).operations.total()
assert torch.allclose(row_by_row(table), all_at_once(table))

# %% [markdown]
# ### When it does not help
#
# A million numbers, as a single row. How many times faster is one call for all rows?

# %%
guess = ...

# %%
compare(
    "the sum of each row: 1 row of 1,000,000",
    {"row by row": row_by_row, "all at once": all_at_once},
    inputs=lambda generator, device: torch.rand(1, 1_000_000, generator=generator).to(device),
    guess=guess,
)

# %% [markdown]
# There is hardly anything to save: adding up takes nearly all of the time, and it is the same. The gain grows with
# the number of calls, not with the number of elements.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** calls are the largest part; predict from their number, take them away, verify the sums.
#
# | you have | use | because |
# |---|---|---|
# | many short rows | one call with `dim=1` | each call costs microseconds before it computes |
# | one long row | either | there is one call to make |

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/NN_topic/NN_topic.ipynb). One function, given slow; make
# it right and fast.
