# %% [markdown]
# # Project after 09: pictures that are alike
#
# Another hundred lines, right and slow in more than one place. The journal, the two dates, and how points grow, are those of
# [the first project](project_04.ipynb).
#
# **Time:** 5 minutes here, about 4 hours there.

# %% [markdown]
# ## What it is
#
# A library of thumbnails is searched for those that are like another one. Fixed filters turn each into a row of numbers, and
# the nearest rows are found. Then each query is averaged with its three nearest, and searched again: what they share counts
# for more. All numbers on this way are whole, so no answer is nearly right.
#
# ## How good is such a search?
#
# That is one number a class. At each place where a right picture was found, look at all up to there: which share of them is
# right? The mean of these shares is the *average precision* of a query. The mean over all queries of a class is its *mean
# average precision*.

# %%
import torch

for found in ([1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 1, 0], [0, 0, 0, 1, 1, 1]):
    right = torch.tensor(found)
    shares = right.cumsum(0) / torch.arange(1, 7)
    print(found, f"average precision {shares[right == 1].mean():.2f}")

# %% [markdown]
# Three of six are right each time. It is the order that counts.
#
# **Now you:** [the project](../exercises/project_09/project_09.ipynb).
