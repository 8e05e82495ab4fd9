# %% [markdown]
# # Project after 04: as fast as you can
#
# An exercise has a ratio that is asked for. A project has none. It is one piece of code of a hundred lines, right and slow in
# more than one place; nobody names them, and you go as far as you like. This page says how it counts.
#
# **Time:** 5 minutes here, about 4 hours there.

# %% [markdown]
# ## Points for the way that you went
#
# Twice as fast is as much work at the end as at the beginning, or more. So the points grow with the logarithm of what you reach.
# All of them are for two thirds of what the course's own answer reached; below 1.4 there are none, since that much can be luck.

# %%
import math

enough, most = 12, 13
for reached in (1.3, 1.5, 3, 6, 12):
    points = most * math.log(reached) / math.log(enough) if reached >= 1.4 else 0
    print(f"{reached:>4} times as fast: {points:4.1f} of {most} points")

# %% [markdown]
# ## A journal
#
# Before you change anything, name the largest part, and foretell two gains: that of mending it alone, and that of all that you
# mean to do. You hand in both versions, and the grader measures both. [The routine](00_measuring.ipynb) is the way: leave a part
# out, and measure the whole. What is gone then is the most that mending it can bring.
#
# ## Two times
#
# There are two dates. After the first, your instructor may show the three fastest answers whose authors agree: a line
# `# you may show this` in the cell says so. No names are shown. Then you have time until the second date: take what you
# like of them, or stay with yours. What is handed in last counts.
#
# ## What it is
#
# Ten pictures, as a folder gave them, become an epoch of batches: cut out, mirrored, standardised, with sixty features each.
#
# **Now you:** [the project](../exercises/project_04/project_04.ipynb).
