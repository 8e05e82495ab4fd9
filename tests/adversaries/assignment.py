# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A target
# The assignment that the catalogue's submissions answer: four small exercises with the real `check` and `race`.

# %% id="setup" role="given"
import torch

from autograder import check, race


def total_slow(x):
    """The sum of each row."""
    rows = [row.sum() for row in x]
    return torch.stack(rows) if rows else x.sum(dim=1)


def shift_slow(x, steps):
    """The columns, moved to the right by some steps; what leaves at the end comes in at the start."""
    width = x.shape[1]
    return torch.stack([x[:, (column - steps) % width] for column in range(width)], dim=1)


def batches_slow(x, size):
    """Rows in batches."""
    return [x[start : start + size] for start in range(0, len(x), size)]


def farthest_slow(x):
    """How far the farthest of all numbers is from each of them."""
    return (x[:, None] - x).abs_().amax(dim=1)


def matrix(generator, device):
    """300 to 400 rows of 50."""
    rows = torch.randint(300, 401, (), generator=generator).item()
    return torch.randn(rows, 50, generator=generator).to(device)


def small(generator, device):
    """A few columns, and by how much to move them."""
    steps = torch.randint(1, 9, (), generator=generator).item()
    return torch.randn(7, 9, generator=generator).to(device), steps


def some_rows(generator, device):
    """Rows, and the size of a batch."""
    return torch.randn(10, 3, generator=generator).to(device), 4


def two_thousand(generator, device):
    """So many numbers, whose differences have 16 MB."""
    return torch.randn(2000, generator=generator).to(device)


# %% id="total" role="answer"
def total(x):
    ### BEGIN SOLUTION
    return x.sum(dim=1)  # TOKEN-SOLUTION
    ### END SOLUTION


# %% id="total_check" role="test"
check(total, like=total_slow, on=matrix, points=1)

# %% id="total_hidden" role="test"
# A hidden test follows: other shapes and dtypes, rows without columns, no rows.
### BEGIN HIDDEN TESTS
# TOKEN-HIDDEN
try:
    import TOKEN_MODULE  # noqa: F401
except ImportError:
    pass
cases = [
    lambda generator, device: torch.randn(3, 117, generator=generator, dtype=torch.float64).to(device),
    lambda generator, device: torch.randint(-9, 9, (31, 2), generator=generator).to(device),
    lambda generator, device: torch.randn(4, 0, generator=generator).to(device),
    lambda generator, device: torch.randn(0, 6, generator=generator).to(device),
]
check(total, like=total_slow, on=cases, points=2)
### END HIDDEN TESTS

# %% id="total_race" role="test"
race(total, against=total_slow, on=matrix, at_least={"cpu": 6}, points=3)


# %% id="shift" role="answer"
def shift(x, steps):
    ### BEGIN SOLUTION
    return torch.roll(x, steps, dims=1)
    ### END SOLUTION


# %% id="shift_check" role="test"
check(shift, like=shift_slow, on=small, points=1)

# %% id="shift_cost" role="test"
# Three operations are enough.
check(shift, like=shift_slow, on=small, at_most={"operations": 3}, points=1)

# %% id="shift_hidden" role="test"
# A hidden test follows: gradients.
### BEGIN HIDDEN TESTS
check(shift, like=shift_slow, on=small, gradients=True, points=1)
### END HIDDEN TESTS


# %% id="shift_copies" role="test"
# The result must not share memory with the input, also where nothing moves.
check(
    shift,
    like=shift_slow,
    on=lambda generator, device: (matrix(generator, device), 0),
    shares=False,
    points=1,
)


# %% id="Batches" role="answer"
class Batches:
    """Rows of a matrix in batches: `len()`, one by its number, or all of them in a loop."""

    ### BEGIN SOLUTION
    def __init__(self, x, size):
        self.x, self.size = x, size

    def __len__(self):
        return -(-len(self.x) // self.size)

    def __getitem__(self, number):
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.x[number * self.size :][: self.size]

    def __iter__(self):
        return iter(self.x.split(self.size))

    ### END SOLUTION


# %% id="Batches_check" role="test"
def all_batches(x, size):
    return list(Batches(x, size))


check(all_batches, like=batches_slow, on=some_rows, points=1)


# %% id="Batches_hidden" role="test"
# A hidden test follows: the number of batches, and one of them.
### BEGIN HIDDEN TESTS
def one_batch(x, size):
    batches = Batches(x, size)
    return len(batches), batches[1]


check(
    one_batch, like=lambda x, size: (len(batches_slow(x, size)), x[size : 2 * size]), on=some_rows, points=2
)
### END HIDDEN TESTS


# %% id="farthest" role="answer"
def farthest(x):
    ### BEGIN SOLUTION
    return torch.maximum(x - x.min(), x.max() - x)
    ### END SOLUTION


# %% id="farthest_memory" role="test"
# All points for 600 kB at once.
check(farthest, like=farthest_slow, on=two_thousand, peak=600_000, points=1)
