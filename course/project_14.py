# %% [markdown]
# # Project after 14: evaluating a recommender
#
# A recommender lists, for each user, the items that she may like best. How good are the lists? Some of what she liked is held
# out, and one looks whether the lists have it. That is run after each epoch of training, and is often slower than the epoch.
# [The first project](project_04.ipynb) says how points grow, what the journal is for, and why there are two dates.
#
# **Time:** 5 minutes here, about 4 hours there.

# %% [markdown]
# ## What it is
#
# Users are squares of the course's pictures, and items are colours. A square has seen the colours of its left half; those that only
# its right half has are held out. Groups are kinds of pictures: cats, cups, space, textures.
#
# ## Equal scores
#
# Factors are often kept as small whole numbers, to save memory. Then many items have equal scores, and a list is only well
# defined with a rule for them: here, the smaller number comes first. Does `topk` know it?

# %%
import torch

scores = torch.randint(3, (1000,), generator=torch.Generator().manual_seed(0)).float()
print("topk:       ", scores.topk(5).indices.tolist())
print("stable sort:", scores.sort(descending=True, stable=True).indices[:5].tolist())

# %% [markdown]
# Both are among the best, and the project's tests tell them apart. [Chapter 10](10_selection.ipynb) has what you need.
#
# **Now you:** [the project](../exercises/project_14/project_14.ipynb).
