# %% [markdown]
# # Exercises NN · New topic
#
# One function. It is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the
# given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden tests
# run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# The chapter is [here](../../course/NN_topic.ipynb). 6 points, about 10 minutes.

# %% id="setup" role="given"
import torch

from autograder import check, race

# %% [markdown]
# ## 1. Rows of one size
#
# *Easy, 10 minutes.* Write `scale_rows(table)`: every row is divided by its largest absolute value.
#
# - `table`: `float32` or `float64` tensor of shape `(N, M)`, on any device; *N* may be 0, *M* is at least 1.
# - returns: a tensor of the same shape and type on the same device. A row of zeros stays as it is.
# - A tensor that does not have two dimensions must raise `ValueError`. The given tensor must not be changed.


# %% id="scale_rows_given" role="given"
def scale_rows_slow(table):
    if table.ndim != 2:
        raise ValueError(f"scale_rows needs a table, not a tensor of {table.ndim} dimensions")
    result = torch.empty_like(table)
    for i in range(len(table)):
        largest = max(table[i].max().item(), -table[i].min().item())
        result[i] = table[i] / largest if largest else table[i]
    return result


def many_rows(generator, device):
    return torch.randn(500, 64, generator=generator).to(device)


def no_table(generator, device):
    return torch.randn(2, 3, 4, generator=generator).to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>A reduction such as <code>mean</code> takes <code>dim=1</code>, and gives one
# number for each row. Which one gives the largest?</details>
# <details><summary>Hint 2</summary>With <code>keepdim=True</code> the result is a column, and a table can be
# divided by a column. Replace the zeros in it first.</details>


# %% id="scale_rows" role="answer"
def scale_rows(table):
    ### BEGIN SOLUTION
    if table.ndim != 2:
        raise ValueError("scale_rows needs two dimensions")
    largest = table.abs().amax(dim=1, keepdim=True)
    return table / largest.masked_fill_(largest == 0, 1)
    ### END SOLUTION


# %% id="scale_rows_check" role="test"
check(scale_rows, like=scale_rows_slow, on=many_rows, points=1)

# %% id="scale_rows_shape" role="test"
check(scale_rows, like=scale_rows_slow, on=no_table, raises=ValueError, points=1)


# %% id="scale_rows_hidden" role="test"
# Hidden test: another type, a row of zeros, a single row, no rows. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def exact_rows(generator, device):
    return torch.randn(7, 3, generator=generator, dtype=torch.float64).to(device)


def one_row_of_zeros(generator, device):
    return torch.randn(4, 5, generator=generator).mul_(torch.tensor([[1], [0], [1], [1]])).to(device)


def one_row(generator, device):
    return torch.randn(1, 9, generator=generator).to(device)


def no_rows(generator, device):
    return torch.zeros(0, 3, device=device)


check(scale_rows, like=scale_rows_slow, on=[exact_rows, one_row_of_zeros, one_row, no_rows], points=2)
### END HIDDEN TESTS

# %% id="scale_rows_race" role="test"
race(scale_rows, against=scale_rows_slow, on=many_rows, at_least={"cpu": 20, "cuda": 20}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
