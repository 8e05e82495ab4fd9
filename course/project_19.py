# %% [markdown]
# # Project after 19: how a text goes on
#
# One piece of code, right and slow in more than one place; nobody names them, and you go as far as you like. [The project after
# 04](project_04.ipynb) says how points grow with what you reach, what the journal is, and why there are two dates.
#
# **Time:** 2 minutes here, about 4 hours there.
#
# ## What it is
#
# Somebody has begun a text. A small language model says how likely each of several endings is. A search box does so at
# every key, and has some milliseconds for it.

# %%
from pathlib import Path

files = sorted(Path("../data/texts").glob("*/*.txt"))
begun = files[0].read_text()[:24]
print(f"{len(files)} texts. {begun!r} …")

# %% [markdown]
# Texts have different lengths, endings share what stands before them, and of most of what is computed nobody reads a number. What
# must be done at least? Count that first, in multiplications: it tells you how far you may get.
#
# **Now you:** [the project](../exercises/project_19/project_19.ipynb).
