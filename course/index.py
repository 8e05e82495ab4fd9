# %% [markdown]
# # Fast PyTorch, measured
#
# This course teaches how to make PyTorch code fast. It takes the advice that everybody gives, and times it:
# some of it holds, some depends, some is wrong. You see the time on this machine, and the time on others.
#
# You need Python and a little PyTorch: what a tensor is, and how to call a function on it. You do not need a
# GPU. Some sections of 15, 19 and 20 need a C++ compiler.
#
# ## How to use a chapter
#
# 1. **Recall.** From 01 on, a chapter begins with three questions about earlier ones, new each time.
# 2. **Guess.** Before each measurement there is a line `guess = …`. Write a number in place of the dots, or
#    the word that is asked for, in quotes.
# 3. **Run** the next cell (Shift + Enter). It times the variants on this machine.
# 4. **Compare.** The chart shows your guess beside the truth, and what other machines gave. Then open
#    what is folded below, and read why.
#
# A wrong guess that you made is worth more than a right number that you read. Take your time for it.
#
# ## The course
#
# Start with 00 or 01; after that, any order will do, but 03 before 17, and 14 after those before it. 00 to 14 test what
# five widely read articles say, 15 to 22 what the documentation of PyTorch, Triton and others says about newer things.

# %% jupyter={"source_hidden": true} tags=["remove-cell"]
# Click here and press Shift + Enter: the map then shows how far you are.
from autograder import course_map

course_map(
    {
        "00_measuring": "why a stopwatch lies, and what to do about it",
        "01_tensor_creation": "from lists, from NumPy, from nothing",
        "02_devices": "what travels between CPU and GPU, and what waits",
        "03_autograd": "the graph, its memory, and how to do without",
        "04_data_loading": "folders, workers, pinned memory",
        "clinic_04": "ten pieces of code, and where their time is",
        "project_04": "from a folder to batches, as fast as you can",
        "05_cudnn": "search once, or repeat exactly",
        "06_memory_format": "strides, channels_last, and who gains",
        "07_mixed_precision": "16 bits: where they help, where they hurt",
        "08_many_gpus": "one process for each device, and what they say to each other",
        "09_distances": "matrix multiplication, and the digits that it costs",
        "clinic_09": "ten more, with the causes of 05 to 09",
        "project_09": "pictures that are alike, found as fast as you can",
        "10_selection": "masks, where and scatter",
        "11_modules": "parts, hooks and optimisers",
        "12_images": "resizing, grids and transforms, in batches",
        "13_cpu": "threads, vectors, memory and the compiler",
        "14_capstone": "a slow training script made fast",
        "clinic_14": "ten pieces of code around recommenders and pictures, and where their time is",
        "project_14": "how good the lists of a recommender are, as fast as you can",
        "15_compiler": "what it records, and what it costs",
        "16_attention": "with its table, and without",
        "17_training_memory": "what fills it, and what can go",
        "18_launch_overhead": "what a call costs before it computes",
        "19_first_kernel": "loops in C++, tiles in Triton, and when they pay",
        "clinic_19": "ten pieces of code around language models, and where their time is",
        "project_19": "how a text goes on, as fast as you can",
        "20_serving": "batches, caches and guesses while users wait",
        "21_fewer_bits": "int8, int4 and float8: what they save, and what they cost",
        "22_sharding": "a model cut over many ranks, its bytes counted",
        "clinic_22": "ten pieces of code around large models, and where their time is",
    }
)

# %% [markdown]
# Each chapter ends with a link to its exercises. An exercise gives you a function that is right and slow. You
# write one that is right and fast, run the test cells below it, and see at once how you did. The last one asks
# you to foretell what three functions cost; two of them are of earlier chapters.
#
# In a clinic nobody names the slow function: you say where the time of ten pieces goes, and why, before you mend them. In a
# project you take a hundred lines as far as you can.
#
# And the score: [what holds](claims.ipynb), every claim that the chapters test, with what became of it.
#
# Something of your own is too slow? [Bring it](your_own.ipynb): one page takes it through the routine of chapter 00.
#
# ## How points work
#
# - `check` gives its points for a right answer: right values, shapes and types, also for unusual inputs. If
#   something is wrong, it shows the first place where your answer differs.
# - `race` gives its points for a fast answer: how many times as fast as the given version, on this machine,
#   now. Below 1.4 times as fast there are none; from there to the ratio asked for, they grow with the logarithm of
#   the ratio. An amber card says: right, not fast yet. An answer that is wrong does not race.
# - A passed race earns a medal, too: bronze for what was asked, silver from 80 % of the course's best answer on, gold
#   beyond it. No points hang on it.
# - Where a machine lacks what a test needs, such as a GPU, its points are not counted against you.
# - When your notebook is graded, hidden tests try other inputs. A right answer passes them too.
