# %% [markdown]
# # Fast PyTorch, measured
#
# This course teaches how to make PyTorch code fast. It takes the advice that everybody gives, and times it:
# some of it holds, some depends, some is wrong. You see the time on this machine, and the time on others.
#
# You need Python and a little PyTorch: what a tensor is, and how to call a function on it. You do not need a
# GPU.
#
# ## How to use a chapter
#
# 1. **Guess.** Before each measurement there is a line `guess = …`. Change the number to what you believe.
# 2. **Run** the next cell (Shift + Enter). It times the variants on this machine.
# 3. **Compare.** The chart shows your guess beside the truth, and what other machines gave. Then read why.
#
# A wrong guess that you made is worth more than a right number that you read. Take your time for it.
#
# ## Chapters
#
# - [00 · Measuring](00_measuring.ipynb): why a stopwatch lies, and what to do about it
# - [01 · Creating tensors](01_tensor_creation.ipynb): from lists, from NumPy, from nothing
# - [02 · Devices](02_devices.ipynb): what travels between CPU and GPU, and what waits
# - [03 · Autograd](03_autograd.ipynb): the graph, its memory, and how to do without
# - [04 · Loading data](04_data_loading.ipynb): folders, workers, pinned memory
# - [05 · cuDNN](05_cudnn.ipynb): search once, or repeat exactly
# - [06 · Memory format](06_memory_format.ipynb): strides, channels_last, and who gains
# - [07 · Mixed precision](07_mixed_precision.ipynb): 16 bits: where they help, where they hurt
# - [08 · Many GPUs](08_many_gpus.ipynb): one process for each device, and what they say to each other
# - [09 · Distances](09_distances.ipynb): matrix multiplication, and the digits that it costs
# - [10 · Selection](10_selection.ipynb): masks, where and scatter
# - [11 · Modules](11_modules.ipynb): parts, hooks and optimisers
# - [12 · Images](12_images.ipynb): resizing, grids and transforms, in batches
# - [13 · The CPU](13_cpu.ipynb): threads, vectors, memory and the compiler
# - [14 · Capstone](14_capstone.ipynb): a slow training script made fast
#
# And the score: [what holds](claims.ipynb), every claim that the chapters test, with what became of it.
#
# ## Exercises
#
# Each chapter ends with a link to its exercises. They are in the folder `exercises`, one notebook for each
# chapter:
#
# - [Exercises 00 · Measuring](../exercises/00_measuring/00_measuring.ipynb)
# - [Exercises 01 · Creating tensors](../exercises/01_tensor_creation/01_tensor_creation.ipynb)
# - [Exercises 02 · Devices](../exercises/02_devices/02_devices.ipynb)
# - [Exercises 03 · Autograd](../exercises/03_autograd/03_autograd.ipynb)
# - [Exercises 04 · Loading data](../exercises/04_data_loading/04_data_loading.ipynb)
# - [Exercises 05 · cuDNN](../exercises/05_cudnn/05_cudnn.ipynb)
# - [Exercises 06 · Memory format](../exercises/06_memory_format/06_memory_format.ipynb)
# - [Exercises 07 · Mixed precision](../exercises/07_mixed_precision/07_mixed_precision.ipynb)
# - [Exercises 08 · Many GPUs](../exercises/08_many_gpus/08_many_gpus.ipynb)
# - [Exercises 09 · Distances](../exercises/09_distances/09_distances.ipynb)
# - [Exercises 10 · Selection](../exercises/10_selection/10_selection.ipynb)
# - [Exercises 11 · Modules](../exercises/11_modules/11_modules.ipynb)
# - [Exercises 12 · Images](../exercises/12_images/12_images.ipynb)
# - [Exercises 13 · The CPU](../exercises/13_cpu/13_cpu.ipynb)
# - [Exercises 14 · Capstone](../exercises/14_capstone/14_capstone.ipynb)
#
# An exercise gives you a function that is right and slow. You write one that is right and fast, run the test
# cells below it, and see at once how you did.
#
# ## How points work
#
# - `check` gives its points for a right answer: right values, shapes and types, also for unusual inputs. If
#   something is wrong, it shows the first place where your answer differs.
# - `race` gives its points for a fast answer: how many times as fast as the given version, on this machine,
#   now. Between "as fast as given" and the ratio asked for, the points grow with the logarithm of the ratio.
#   An answer that is wrong does not race.
# - Where a machine lacks what a test needs, such as a GPU, its points are not counted against you.
# - When your notebook is graded, hidden tests try other inputs. A right answer passes them too.
