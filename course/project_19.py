# %% [markdown]
# # Project after 19: a small text generator
#
# A transformer continues texts, a character at a time. Each text has a length of its own, and ends when it likes.
# [The first project](project_04.ipynb) says how points grow, what the journal is for, and why there are two dates.
#
# **Time:** 5 minutes here, about 4 hours there.

# %% [markdown]
# ## What it is
#
# The model is small, and knows which character follows which in the course's texts. Its layers are others each time. So
# what it writes is no English; it is what the given code would write, to the character.
#
# ## Why `float64`?
#
# A character is drawn: a number between 0 and 1 falls into the part of the line that belongs to it. Computed in another order, the
# ends of the parts are a little elsewhere, and now and then a draw falls on the other side. From there on all is different. How far
# do the ends move?

# %%
import torch

logits = torch.randn(200, 1000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
ends = logits.softmax(1).cumsum(1)
for dtype in (torch.float32, torch.float64):
    backwards = 1 - logits.to(dtype).softmax(1).flip(1).cumsum(1).flip(1)
    print(f"{dtype!s:>13}: {(backwards[:, 1:] - ends[:, :-1]).abs().max().item():.0e}")

# %% [markdown]
# So much is the chance, at most, that one draw is on the other side. In `float64` you may sum in any order.
# [Chapter 16](16_attention.ipynb) has the cache, [chapter 18](18_launch_overhead.ipynb) what a call costs.
#
# **Now you:** [the project](../exercises/project_19/project_19.ipynb).
