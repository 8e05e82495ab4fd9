# %% [markdown]
# # 09 · Distances
#
# How far is every point from every other? Nearest neighbours, clusters and search by similarity all ask
# this. A thousand points have a million distances. The ways to compute them differ widely, in time and in the
# digits that are left.
#
# IDs such as *C5* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, `costs`
# and `guess` are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - compute all distances, or all cosine similarities, with one matrix product,
# - see when that product loses digits, and get them back,
# - normalise rows without NaN,
# - find nearest neighbours when the matrix of distances does not fit in memory.
#
# **Time:** 50 minutes to read and run, 10 more for the part Further. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *C5* "`torch.cdist` is faster because it uses matrix multiplication"; *C6* "all
# cosine similarities by `F.cosine_similarity` with broadcasting"; *C7* "`F.normalize` instead of dividing by
# the norm".

# %%
import warnings
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from parts.distances import chart_of_errors, draw_mistakes
from parts.inputs import normal
from torch.utils.checkpoint import checkpoint

from autograder import article_code, behaviour, compare, costs, devices, guessed, picture, verdicts, without
from autograder.teaching.recall import recall

print("devices here:", *devices())


def points(rows, columns, others=None):
    """Inputs for a comparison: two sets of random points."""
    return lambda generator, device: (
        torch.randn(rows, columns, generator=generator).to(device),
        torch.randn(others or rows, columns, generator=generator).to(device),
    )


recall("09", ..., ..., ...)

# %% [markdown]
# ## 1. All pairs at once
#
# Two sets of 512 points, with 64 numbers each. We want the 512 × 512 Euclidean distances. No Python loop is
# needed: `a[:, None] - b` broadcasts to all differences, and the rest is arithmetic. `torch.cdist(a, b)`
# gives the same. How many times as fast is `cdist`? (Below 1 means slower, here and in all later guesses.)

# %%
guess = ...


# %%
def by_broadcasting(a, b):
    return (a[:, None] - b).square().sum(-1).sqrt()


def by_product(a, b):
    squares = a.square().sum(1)[:, None] + b.square().sum(1)
    return torch.addmm(squares, a, b.T, alpha=-2).clamp_min(0).sqrt()


compare(
    "distances: 512 × 512 pairs of 64 numbers",
    {"broadcasting": by_broadcasting, "a product, by hand": by_product, "cdist": torch.cdist},
    inputs=points(512, 64),
    guess=guess,
    because="page faults",
    flops=2 * 512 * 512 * 64,
)

# %% [markdown]
# **Why.** Look at what has to be stored. (New memory is a part of the difference; for the rest, no cause was taken away.)

# %%
a, b = points(512, 64)(torch.Generator().manual_seed(0), "cpu")
print(f"differences: 512 × 512 × 64 × 4 bytes = {512 * 512 * 64 * 4 / 1e6:.0f} MB", end="\n\n")
for name, function in {
    "broadcasting": by_broadcasting,
    "by hand": by_product,
    "cdist": torch.cdist,
}.items():
    print(f"{name}: {costs(function, a, b)}", end="\n\n")

# %% [markdown]
# Broadcasting writes every difference to memory, reads it to square it, writes it again, and reads it to
# add. The result is 1 MB; on the way there, twice 67 MB are written. On a CPU that is new memory in every call, which
# costs page faults (chapter 00, section 1). The line below the table says how much of the gain they are.
#
# The other two never form a difference. They use
#
# > |a − b|² = |a|² + |b|² − 2 a·b
#
# The first two terms are one number for each *point*. Only the last one is a number for each *pair*. And a sum over
# the columns of (something of *a*) × (something of *b*) is, for all pairs together, one matrix product. The line *limit*
# says how long this machine needs for the arithmetic of the product alone.
#
# Our own version writes four matrices of 1 MB (sum, product, clamp, root). `cdist` makes one, and works in place.
# (`costs` counts what operations return. Inside, `cdist` also copies both sets of points, with two columns more, the
# squared lengths and ones: so one product gives all three terms.)

# %%
assert torch.allclose(by_broadcasting(a, b), torch.cdist(a, b), rtol=1e-4)
assert torch.allclose(by_product(a, b), torch.cdist(a, b), rtol=1e-4)

# %% [markdown]
# ## 2. The product against the direct way
#
# `cdist` has two ways inside, and `compute_mode` chooses. The direct way takes one pair at a time,
# subtracts, squares and adds. It stores no differences either, so both need the same memory.
#
# An article measured both on 512 points with **2** numbers each. How many times as fast is the product here?

# %%
guess = ...


# %%
def direct(a, b):
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def product(a, b):
    return torch.cdist(a, b, compute_mode="use_mm_for_euclid_dist")


compare(
    "distances: cdist of 512 × 512 pairs of 2 numbers",
    {"direct": direct, "matrix product": product},
    inputs=points(512, 2),
    guess=guess,
    claim="C5",
)

# %% [markdown]
# The article has 867 µs without the product and 417 µs with it: 2.1×. Yours depends on the machine. Two
# numbers a point are very few. With 64 numbers each, how many times as fast is the product?

# %%
guess = ...

# %%
compare(
    "distances: cdist of 512 × 512 pairs of 64 numbers",
    {"direct": direct, "matrix product": product},
    inputs=points(512, 64),
    guess=guess,
    claim="C5",
    flops=2 * 512 * 512 * 64,
    because=without("reuse of rows", inputs=points(1, 64, 10_000)),
)

# %% [markdown]
# **Why.** The direct way spends three operations on each number (subtract, multiply, add) and fetches both rows again
# for every pair. The product spends two (multiply, add), often in a single instruction. And it works in blocks: a few
# rows of `a` and of `b` are loaded once and used for all their pairs. Where there is one query, nothing is used twice,
# and the gain is gone.
#
# This is not all of the gain: on a CPU the direct code of `cdist` is also far from the best possible (*Further*
# compares it with `pdist`).
#
# Now look at the first table again. On a CPU, broadcasting takes many times longer than even the direct way. So there
# the claim tells half of the story: `cdist` gains once by storing no differences, and once more by the product. On an
# H200 the direct way is the slowest: 340 µs, against 150 for broadcasting and 110 for `cdist`.
#
# ## 3. Other numbers of points
#
# 26 points with 2 numbers have 676 distances. How many times as fast as the direct way is `cdist`, with its
# product?

# %%
guess = ...

# %%
compare(
    "distances: cdist of 26 × 26 pairs of 2 numbers",
    {"direct": direct, "cdist": torch.cdist},
    inputs=points(26, 2),
    guess=guess,
    claim="C5",
)

# %% [markdown]
# It loses, on a CPU and more so on an H200 (12 µs against 120). Before the product can start, the squares must be
# summed and the pieces put together. On a CPU, each of these steps costs a microsecond or more, and the whole direct
# computation takes only a few. On a GPU each is a launch.
#
# torch knows that few points are better off without. If you give no `compute_mode`, it decides by the
# number of points. `costs` shows which way was taken:

# %%
ways = {"_cdist_forward": "direct", "_euclidean_dist": "matrix product"}


def way(rows, others, **options):
    """Which of its two ways cdist takes for so many points."""
    counted = costs(lambda: torch.cdist(torch.ones(rows, 2), torch.ones(others, 2), **options))
    return next(word for name, word in ways.items() if counted.operations["aten." + name])


for rows, others in [(25, 25), (26, 25), (26, 1), (1, 26)]:
    print(f"{rows} × {others} points: {way(rows, others)}")
assert way(25, 25) == "direct" and way(26, 1) == way(1, 26) == "matrix product"

# %% [markdown]
# More than 25 points on *one* side are enough for the product. Keep this number in mind. The rule looks neither at the
# other side nor at the size of a point. A single query against 10,000 points of 64 numbers: how many times as fast as
# the direct way is `cdist`?

# %%
guess = ...

# %%
compare(
    "distances: cdist of one query and 10,000 points of 64 numbers",
    {"direct": direct, "cdist": torch.cdist},
    inputs=points(1, 64, 10_000),
    guess=guess,
    claim="C5",
)

# %% [markdown]
# It gains nothing: the recorded CPUs take as long or longer, up to three times, and an H200 loses, too (17 µs against 160).
# Each of the 10,000 points is used once. A product gains by using a row for many others, and here there is only one other.
# But `cdist` still makes its copy of all points first (section 1). So ask for the direct way here. (On a GPU it
# [refuses](https://github.com/pytorch/pytorch/issues/128791) 2³¹ distances or more.) With hundreds of points on both sides
# the product won (section 2); in between, measure.
#
# **Other distances.** The identity above holds for the Euclidean distance only. For `p=1`, the sum of
# absolute differences, there is no product to use:

# %%
print("512 points, p=1:", way(512, 512, p=1))
assert way(512, 512, p=1) == "direct"

# %% [markdown]
# ## 4. The distance of a point to itself
#
# Thirty points in three dimensions. They lie within a few units of each other, but all around (1000, 1000,
# 1000). `cdist(x, x)` has the distance of each point to itself on its diagonal. What is the largest number
# there?

# %%
guess = ...

# %%
generator = torch.Generator().manual_seed(0)
x = torch.randn(30, 3, generator=generator) + 1000
guessed(
    "the largest distance of a point to itself",
    guess,
    torch.cdist(x, x).diagonal().max().item(),
    f"the same, by the direct way: {direct(x, x).diagonal().max():.3g}",
    f"a typical distance:          {direct(x, x).mean():.3g}",
)

# %% [markdown]
# **Why.** The product computes |a|² + |b|² − 2 a·b. Each of the three terms is some millions, and `float32`
# has 24 bits for it:

# %%
large = x.square().sum(1)[0]
gap = torch.nextafter(large, large + 1) - large
print(f"|a|² = {large.item():,}; the next number in float32 is {gap.item()} away")
assert gap == 0.25 and torch.cdist(x, x).diagonal().max() > 0.1 > direct(x, x).diagonal().max() == 0

# %% [markdown]
# So the *squared* distance comes in steps of 0.25. The distance, its root, can be wrong by 0.5 or more. The
# difference is small, the terms are large, and subtracting them leaves only what was rounded. It can even
# come out below 0. That is what `clamp_min(0)` in our version is for: the root of a negative number is NaN.

# %%
squares = x.square().sum(1)[:, None] + x.square().sum(1)
print("smallest squared distance without clamp_min:", torch.addmm(squares, x, x.T, alpha=-2).min().item())
assert torch.cdist(x, x).isfinite().all() and by_product(x, x).isfinite().all()

# %% [markdown]
# How fast does it get worse? The picture shows the largest error of all distances of 200 points, for points
# around 1, 10, … 10,000. The truth is computed in `float64`. One line belongs to a remedy, of which more below.


# %%
def shifted(a, b):
    middle = b.mean(0)
    return torch.cdist(a - middle, b - middle)


ways_to_try = {"matrix product": product, "shifted, then product": shifted, "direct": direct}
offsets = [1, 10, 100, 1000, 10_000]
errors = {name: [] for name in ways_to_try}
for offset in offsets:
    cloud = torch.randn(200, 3, generator=generator) + offset
    truth = direct(cloud.double(), cloud.double())
    for name, function in ways_to_try.items():
        errors[name].append((function(cloud, cloud) - truth).abs().max().item())
typical = truth.mean().item()  # nearly the same for every offset
picture(*chart_of_errors(offsets, errors, typical))

# %% [markdown]
# The error of the product grows with the offset: ten times as far from 0, ten times as wrong. At 10,000 it
# is larger than the distances. Is that a rare case? Kelvin, years, map coordinates in metres, prices: many columns have
# a mean far larger than their spread. (On newer GPUs, products may be computed in
# [TF32](https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere) if you allow it, with ten bits of each
# number. That is said of `@`, and [meets `cdist`, too](https://github.com/pytorch/pytorch/issues/57690): on an H200, the
# largest error of 25,000,000 distances near 9 grew from 0.00003 to 0.008, and points were up to 0.37 away from themselves.)

# %%
near = "points are not much farther from 0 than from each other (subtract their mean first)"
right = {name: [error < 0.01 * typical for error in values] for name, values in errors.items()}
behaviour(
    "C5",
    "200 points around 1: each distance is right to 1 % of a typical one.",
    right["matrix product"][0],
    when=near,
)
behaviour(
    "C5",
    "200 points around 1,000, their mean subtracted: each distance is right to 1 % of a typical one.",
    right["shifted, then product"][3],
    when=near,
)
behaviour(
    "C5",
    "200 points around 1,000, as they are: each distance is right to 1 % of a typical one.",
    right["matrix product"][3],
    unless=near,
)

# %% [markdown]
# The line of the shifted points falls at its end, and that is no merit of shifting. Around 10,000, `float32` stores
# coordinates so coarsely that the squares of what is left need no rounding:

# %%
coarse = cloud - cloud.mean(0)  # the last cloud of the picture, around 10,000
assert torch.equal((coarse * coarse).double(), coarse.double() * coarse.double())

# %% [markdown]
# It is not only the last digit of a number. Who is the nearest neighbour? 500 points around 1000 again. For how many
# percent of them does the product name a wrong one?

# %%
guess = ...

# %%
x = torch.randn(500, 3, generator=generator) + 1000


def nearest_other(distances):
    return distances.fill_diagonal_(torch.inf).argmin(1)


truth = nearest_other(direct(x.double(), x.double()))
wrong = {
    name: (nearest_other(function(x, x)) != truth).float().mean().item()
    for name, function in ways_to_try.items()
}
lines = (f"{name:22} {share:5.0%} of the nearest neighbours are wrong" for name, share in wrong.items())
guessed("percent that the product gets wrong", guess, 100 * wrong["matrix product"], *lines)
assert wrong["matrix product"] > 15 * wrong["shifted, then product"]

# %% [markdown]
# ### And it switches silently
#
# Remember the 25 points. Your test uses ten points and passes. Then the data grow.

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = torch.randn(26, 3, generator=generator) + 1000
    diagonals = {rows: torch.cdist(x[:rows], x[:rows]).diagonal().max().item() for rows in (10, 25, 26)}
for rows, largest in diagonals.items():
    print(f"{rows} points: largest distance of a point to itself {largest:.2g}")
print("warnings:", len(caught))
assert diagonals[25] == 0 and diagonals[26] > 0.1 and not caught

# %% [markdown]
# ## 5. Mended
#
# Distances do not change when all points move together. So move them to where the squares are small:
# subtract the mean first. That is `shifted` above. Another way is to compute in `float64`. How many times as fast as
# the direct way is the product, with shifting?

# %%
guess = ...


# %%
def in_float64(a, b):
    return torch.cdist(a.double(), b.double()).float()


compare(
    "distances: ways that keep the digits, 512 × 512 pairs of 64 numbers",
    {"direct": direct, "float64": in_float64, "shifted": shifted},
    inputs=points(512, 64),
    guess=guess,
    claim="C5",
)

# %% [markdown]
# On a CPU about as many times as without shifting (section 2): the shift is work for each *point*, not for each pair.
# On an H200 both ways took 140 µs, the direct way 340. Shift whenever you do not know where the data lie.
#
# **Around 0, the product is still not exact.** Rounding leaves up to about 1e-6 · |a|² in the squared
# distance. The root of that is 1e-3 · |a|. So two equal points can seem to be a thousandth of their length
# apart. Do not test for "distance 0". With `float64` the error is far smaller, but not 0 either. The direct
# way gives exact zeros for all finite data: the differences of equal points are 0.

# %%
x = torch.randn(512, 64, generator=generator)
print(f"length of a point: about {x.norm(dim=1).mean():.1f}")
print("distance of a point to itself, up to")
for name, function in {"shifted": shifted, "float64": in_float64, "direct": direct}.items():
    print(f"  {name:8} {function(x, x).diagonal().max():.1g}")
assert 0 < shifted(x, x).diagonal().max() < 0.05
assert 0 < in_float64(x, x).diagonal().max() < 1e-5 and direct(x, x).diagonal().max() == 0

# %% [markdown]
# **Two groups far apart** have their mean in the middle, far from both. Shifting does not help them;
# `float64` or the direct way does. (Within a group, a typical distance is about 2.)

# %%
x = torch.randn(200, 3, generator=generator)
x[:100] += 1000
x[100:] -= 1000
truth = direct(x.double(), x.double())
for name, function in {**ways_to_try, "float64": in_float64}.items():
    print(f"{name:22} largest error {(function(x, x) - truth).abs().max():.1g}")
assert (shifted(x, x) - truth).abs().max() > 0.1 > (in_float64(x, x) - truth).abs().max()

# %% [markdown]
# ## 6. Cosine similarity
#
# The cosine of the angle between two vectors is their product divided by their lengths.
# `F.cosine_similarity` works along one dimension and broadcasts. So an article advises: for all pairs, give
# it `a[:, None]` and `b[None]`. No loop. Are the values right? Each pair by the formula, in `float64`:


# %%
def row_by_row(a, b):
    return torch.stack([F.cosine_similarity(row[None], b) for row in a])


def broadcast(a, b):
    return F.cosine_similarity(a[:, None], b[None], dim=-1)


a, b = points(64, 32)(generator, "cpu")
formula = torch.stack([torch.stack([x @ y / (x.norm() * y.norm()) for y in b.double()]) for x in a.double()])
article_code(
    "C6",
    "F.cosine_similarity of (N, 1, D) and (1, N, D)",
    lambda: broadcast(a, b),
    right=lambda cosines: torch.allclose(cosines.double(), formula, atol=1e-5),
)
behaviour(
    "C6",
    "Broadcasting gives the right values for the cosines of all pairs.",
    torch.allclose(broadcast(a, b).double(), formula, atol=1e-5),
)

# %% [markdown]
# They are. Now the time, for 256 × 256 pairs of 128 numbers. One call instead of 256: how many times as fast as the
# loop over the rows is it?

# %%
guess = ...

# %%
compare(
    "cosine similarity: 256 × 256 pairs of 128 numbers",
    {"row by row": row_by_row, "broadcast": broadcast},
    inputs=points(256, 128),
    guess=guess,
    because="page faults",
)

# %% [markdown]
# On a CPU the loop wins. "No loops" is no law. The cause is *memory*, not the loop: broadcasting makes the whole block
# of 256 × 256 × 128 numbers, three times, and the system gives and takes back so large a piece in every call. The loop
# writes 131 kB again and again. `because=` times both once more, in a copy of this process that keeps its memory: most
# of the difference is gone. On an H200, where torch keeps memory, broadcasting wins by far, 0.14 ms against 22: the
# loop is thousands of launches. (*Further* tries fewer and shorter rows.)

# %%
a, b = points(256, 128)(generator, "cpu")
print(f"256 × 256 × 128 × 4 bytes = {256 * 256 * 128 * 4 / 1e6:.1f} MB", end="\n\n")
print(f"row by row: {costs(row_by_row, a, b)}", end="\n\n")
print(f"broadcast: {costs(broadcast, a, b)}")

# %% [markdown]
# Both miss the point. Which work belongs to a *pair*, and which to a *row*? The lengths belong to rows: 512
# of them, not 65,536. Divide each row by its length once. After that, cosine similarity *is* the matrix
# product. How many times as fast as broadcasting?

# %%
guess = ...


# %%
def normalise_and_multiply(a, b):
    return F.normalize(a) @ F.normalize(b).T


compare(
    "cosine similarity: broadcast or multiplied, 256 × 256 pairs of 128 numbers",
    {"broadcast": broadcast, "normalise, multiply": normalise_and_multiply},
    inputs=points(256, 128),
    guess=guess,
    flops=2 * 256 * 256 * 128,
)

# %% [markdown]
# The same values; `compare` has looked. Where one side stays the same (a search index, say), normalise it once and
# keep it. Then a query costs one product.
#
# ### Row with row
#
# You have 2,000 *pairs*: row *i* of `a` belongs to row *i* of `b`, and you want 2,000 numbers, not four
# million. How many times as fast as `F.cosine_similarity(a, b)` is it to normalise first?

# %%
guess = ...

# %%
compare(
    "cosine similarity: 2,000 rows of 128 numbers, row with row",
    {
        "cosine_similarity": F.cosine_similarity,
        "normalise, multiply, sum": lambda a, b: (F.normalize(a) * F.normalize(b)).sum(1),
    },
    inputs=points(2000, 128),
    guess=guess,
)

# %% [markdown]
# There is next to nothing to gain, on an H200 as well. Nothing is shared between the pairs, so there is nothing to
# save. This is what `F.cosine_similarity` is made for.
#
# ## 7. `normalize`, and the vector without a length
#
# `F.normalize(x)` divides each row by its length. How many times as fast is it as dividing all rows by their norms at
# once?

# %%
guess = ...


# %%
def divide(x):
    return x / x.norm(dim=1, keepdim=True)


compare(
    "normalising 2,000 rows of 128 numbers, divided or F.normalize",
    {"divided by the norm": divide, "F.normalize": F.normalize},
    inputs=normal(2000, 128),
    guess=guess,
)

# %% [markdown]
# There is no gain in time; it does one small operation more. (On an H200 that is a launch more: 29 µs against 18.) That
# operation is the reason to use it. A row of zeros has the length 0:

# %%
x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
print("divided:    ", divide(x).tolist())
print("F.normalize:", F.normalize(x).tolist())

# %% [markdown]
# One empty picture, one unknown word, one dead layer: a single NaN, and after a few more operations
# everything is NaN. `F.normalize` divides by `max(length, eps)`, with `eps=1e-12`. Zeros stay zeros.

# %%
eps = 1e-12
assert torch.equal(F.normalize(x), x / x.norm(dim=1, keepdim=True).clamp_min(eps))
holds_eps = "the type can hold eps (float16 cannot hold 1e-12)"
for dtype in (torch.float32, torch.bfloat16, torch.float64):
    row = torch.zeros(1, 2, dtype=dtype)
    behaviour(
        "C7",
        f"A row of zeros in {dtype} gives zeros, where dividing by the norm gives NaN.",
        bool(divide(row).isnan().all() and (F.normalize(row) == 0).all()),
        when=holds_eps,
    )

# %% [markdown]
# ### What `eps` does not do
#
# Four surprises. **In `float16`** the default `eps` does not exist: 1e-12 is rounded to 0.

# %%
zeros = torch.zeros(1, 2, dtype=torch.float16)
print(
    "float16, default eps:", F.normalize(zeros).tolist(), "· eps=1e-6:", F.normalize(zeros, eps=1e-6).tolist()
)
print("float16, cosine_similarity:", F.cosine_similarity(zeros, zeros + 1).tolist())
assert torch.tensor(1e-12, dtype=torch.float16) == 0
behaviour(
    "C7",
    "A row of zeros in torch.float16 gives zeros.",
    bool((F.normalize(zeros) == 0).all()),
    unless=holds_eps,
)

# %% [markdown]
# **Very short rows** are not normalised. Their length is below `eps`, so they are divided by `eps`.

# %%
short = torch.tensor([[3e-14, 4e-14]])
print("length afterwards:", F.normalize(short).norm().item(), "· with a smaller eps:", end=" ")
print(F.normalize(short, eps=1e-30).norm().item())
assert F.normalize(short).norm() < 0.1

# %% [markdown]
# **The gradient** of a row of zeros is finite, but it is 1 / `eps`. A single such row, and plain gradient descent
# takes a step to nowhere.

# %%
row = torch.zeros(1, 2, requires_grad=True)
F.normalize(row).sum().backward()
print("gradient of a row of zeros:", row.grad.tolist())
assert row.grad.min() > 1e11

# %% [markdown]
# To keep that gradient small, choose the divisor yourself: the length where there is one, and 1 where there
# is none. The gradient of the result then passes through unchanged. (A root of 0 would send NaN through this `where`:
# chapter 10, section 6. The norm does not: torch defines its gradient at a row of zeros as 0.)


# %%
def own_divisor(x):
    length = x.norm(dim=1, keepdim=True)
    return x / torch.where(length > 0, length, 1)


row = torch.zeros(1, 2, requires_grad=True)
own_divisor(row).sum().backward()
print("own divisor, gradient of a row of zeros:", row.grad.tolist())
assert torch.equal(row.grad, torch.ones(1, 2))

# %% [markdown]
# **The dimension.** The default is `dim=1`. For a batch of sequences `(batch, steps, features)` that is the
# wrong one, and no error tells you.

# %%
sequences = torch.randn(2, 5, 3, generator=generator)
print("lengths with the default:", [round(n, 2) for n in F.normalize(sequences)[0].norm(dim=-1).tolist()])
print(
    "lengths with dim=-1:     ",
    [round(n, 2) for n in F.normalize(sequences, dim=-1)[0].norm(dim=-1).tolist()],
)

# %% [markdown]
# ## 8. When the matrix does not fit
#
# 100,000 points against each other: how many bytes does the matrix of distances take, in GB?

# %%
guess = ...

# %%
guessed(
    "GB for all distances, 4 bytes each",
    guess,
    100_000**2 * 4 // 10**9,
    f"the points themselves, with 64 numbers each: {100_000 * 64 * 4 / 1e6:.1f} MB",
    f"the 5 nearest of each, distance and index: {100_000 * 5 * (4 + 8) / 1e6:.0f} MB",
)

# %% [markdown]
# The input is small and the answer is small. Only the step between them is large. So do it in pieces: take
# some queries, compute their distances to all points, keep the nearest, forget the rest.
#
# A size that fits here: 1,000 queries, 10,000 points of 16 numbers, the 5 nearest. The whole matrix has 40
# MB. How many times as fast is it to work in pieces of 128 queries?

# %%
guess = ...


# %%
def nearest(queries, points, chunk):
    return torch.cat(
        [torch.cdist(some, points).topk(5, largest=False).indices for some in queries.split(chunk)]
    )


def by(chunk):
    return lambda queries, points: nearest(queries, points, chunk)


compare(
    "nearest neighbours: 1,000 queries, 10,000 points",
    {"all at once": by(1000), "4 at a time": by(4), "128 at a time": by(128)},
    inputs=points(1000, 16, 10_000),
    guess=guess,
    differ="pieces may round otherwise, and swap two points that are equally near",
    because=["page faults", without("small pieces", variants={"all at once": by(1000), "512": by(512)})],
)

# %%
queries, targets = points(1000, 16, 10_000)(generator, "cpu")
for chunk in (1000, 128, 4):
    cost = costs(nearest, queries, targets, chunk)
    megabytes, operations = cost.peak_bytes / 1e6, cost.operations.total()
    print(f"{chunk:5} at a time: at most {megabytes:5.1f} MB, {operations:4} operations")


def peak_with_gradients(chunk, run):
    def total(queries, points):
        pieces = queries.requires_grad_().split(chunk)
        return sum(run(lambda some: torch.cdist(some, points).amin(1).sum(), piece) for piece in pieces)

    return costs(lambda: total(*points(1000, 16)(generator, "cpu")).backward()).peak_bytes / 1e6


plainly, anew = (lambda function, some: function(some)), partial(checkpoint, use_reentrant=False)
ways = {"at once": (1000, plainly), "50 at a time": (50, plainly), "50 at a time, checkpoints": (50, anew)}
peaks = {name: peak_with_gradients(*way) for name, way in ways.items()}
print(*(f"{name:25} at most {peak:4.1f} MB, with gradients" for name, peak in peaks.items()), sep="\n")
assert peaks["50 at a time"] > 4 > 4 * peaks["50 at a time, checkpoints"]

# %% [markdown]
# **Why.** About an eighth of the memory, and on most CPUs faster. A block of 128 × 10,000 distances is 5 MB. Does it
# stay in the cache, where 40 MB do not? Then 512 at a time, with 20 MB, would gain hardly anything. It gains nearly as
# much. But malloc keeps pieces of up to 32 MB (on Linux) for the next call, and gives 40 MB back: without page faults
# little of the gain is left. Very small pieces lose again: every piece starts several operations, and `cdist` copies all
# 10,000 points anew each time. (These copies, less than a megabyte in every line, are not counted: section 1.)
#
# Begin with pieces whose matrix has 5 to 20 MB on a CPU. Take far larger ones on a GPU: on an H200, all at once
# was 7 times as fast as 128 at a time. Then measure two other sizes. For millions of points there is
# [FAISS](https://github.com/facebookresearch/faiss/wiki), which searches all of them in pieces of its own, or a part by
# an index, and then may miss a neighbour.
#
# With **gradients**, pieces alone do not help: autograd keeps each one for the backward pass, of 1,000 × 1,000 distances 4
# MB or more. A checkpoint around each piece (chapter 17) lets it go, and computes it anew.
#
# ## 9. On real digits
#
# Each of 1,797 handwritten digits, 8 × 8 pixels with values from 0 to 16, is compared with all others and gets the
# label of the nearest one. Three measures: the Euclidean distance, the sum of absolute differences, the cosine. How
# many digits does the best of them get wrong?

# %%
guess = ...

# %%
with np.load("../data/digits.npz") as file:
    digits = torch.from_numpy(file["images"]).flatten(1).float()
    labels = torch.from_numpy(file["labels"]).long()
measures = {
    "Euclidean": torch.cdist(digits, digits),
    "absolute": torch.cdist(digits, digits, p=1),
    "cosine": -normalise_and_multiply(digits, digits),
}
found = {name: nearest_other(distances) for name, distances in measures.items()}
mistakes = {name: (labels[neighbours] != labels).sum().item() for name, neighbours in found.items()}
lines = (f"{name:10} {n} of {len(labels)} wrong" for name, n in mistakes.items())
guessed("digits that the best gets wrong", guess, float(min(mistakes.values())), *lines)

# %% [markdown]
# A good baseline without any training. One digit more or less of 1,797 is chance, and makes no winner. Here
# are some of the mistakes of the Euclidean distance.

# %%
wrong = (labels[found["Euclidean"]] != labels).nonzero().flatten()[:8].tolist()
picture(*draw_mistakes(digits.view(-1, 8, 8), labels, [(i, found["Euclidean"][i].item()) for i in wrong]))

# %% [markdown]
# Must such data be shifted? **Small integers are exact.** Sums of their squares are whole numbers, and `float32` holds
# all of those up to 2²⁴; here they are at most 64 · 16² = 16,384. And cosine and Euclidean distance are relatives: for
# rows of length 1, |a − b|² = 2 − 2 cos, so they give the same order.

# %%
assert torch.cdist(digits, digits).diagonal().max() == 0
units = F.normalize(digits)
assert torch.allclose(direct(units, units).square(), 2 - 2 * units @ units.T, atol=1e-5)

# %% [markdown]
# ## Further
#
# This part can be skipped. It is for readers who want to see three more famous savings measured.
#
# ### Half of the pairs
#
# Within one set, the distance from *i* to *j* is the distance from *j* to *i*. `torch.pdist` computes each pair
# once: 130,816 distances instead of 262,144. How many times as fast as `cdist(a, a)` is it?

# %%
guess = ...


# %%
compare(
    "distances: within a set of 512 points of 64 numbers",
    {"cdist": lambda a: torch.cdist(a, a), "cdist, direct": lambda a: direct(a, a), "pdist": torch.pdist},
    inputs=normal(512, 64),
    guess=guess,
    differ="pdist gives each pair once",
)

# %% [markdown]
# Half of the pairs, and on no device that we measured twice as fast; on some CPUs it is slower, on others a little
# faster. `pdist` has no product. Its own direct code is faster for each pair than the direct way of `cdist`, on a CPU
# several times. Whether that makes up for the product, depends on the CPU. What `pdist` saves everywhere is half of the memory:

# %%
x = torch.randn(512, 64)
print(f"cdist: {costs(torch.cdist, x, x)}", end="\n\n")
print(f"pdist: {costs(torch.pdist, x)}")
assert torch.pdist(x).shape == (512 * 511 // 2,)

# %% [markdown]
# ### Cosines of few rows
#
# In section 6 the loop over the rows won. With 64 × 64 pairs of 32 numbers, how many times as fast is broadcasting?

# %%
guess = ...

# %%
compare(
    "cosine similarity: 64 × 64 pairs of 32 numbers",
    {"row by row": row_by_row, "broadcast": broadcast},
    inputs=points(64, 32),
    guess=guess,
    because="page faults",
)

# %% [markdown]
# The block of all pairs is half a megabyte here, which malloc keeps: no page faults. One call instead of 64 pays.
#
# ### Must it be the distance?
#
# For the *nearest* point, the root does not matter: the order of the squares is the same. Nor does |a|², which is
# the same for all candidates. So |b|² − 2 a·b will do. How many times as fast is that?

# %%
guess = ...


# %%
def nearest_without_root(queries, points):
    return torch.addmm(points.square().sum(1)[None], queries, points.T, alpha=-2).argmin(1)


compare(
    "the nearest point: 512 queries, 4,096 points of 64 numbers",
    {"cdist, argmin": lambda q, p: torch.cdist(q, p).argmin(1), "without root": nearest_without_root},
    inputs=points(512, 64, 4096),
    guess=guess,
    differ="roots may round to the same number, and then another point is the first",
)

# %% [markdown]
# Little on a CPU: a tenth or three. (On an H200 it is 2.0×, probably by fewer launches than in `cdist`.) Before you
# save an operation, ask how large its part is.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** predict from the product's flops and the bytes of its result. The causes of what is left
# are page faults, calls, and steps around the product. Take one away; verify against the direct way in `float64`.
#
# | you want | use | because |
# |---|---|---|
# | all Euclidean distances | `torch.cdist` | one matrix product; no block of differences |
# | … of data far from 0 | subtract the mean, then `cdist` | the product loses digits when squares are large |
# | … of groups far apart | `float64`, or `compute_mode="donot_use_mm_for_euclid_dist"` | more digits, or no large terms |
# | … with exact zeros | `compute_mode="donot_use_mm_for_euclid_dist"` | equal points give the difference 0 |
# | … of 25 points or fewer on both sides | `torch.cdist` | it takes the direct way by itself |
# | … of one query, or of a few more than 25 short points | `compute_mode="donot_use_mm_for_euclid_dist"` | the steps around the product cost more than it saves |
# | sums of absolute differences | `torch.cdist(p=1)` | there is no product for it: it takes the direct way |
# | all cosine similarities | `F.normalize(a) @ F.normalize(b).T` | lengths belong to rows, not to pairs |
# | cosines of row with row | `F.cosine_similarity` | nothing is shared, nothing to save |
# | rows of length 1 | `F.normalize(x, dim=-1)` | no NaN from zeros; choose `eps` for `float16` |
# | neighbours of very many points | pieces of 5 to 20 MB (larger on a GPU), `topk` in each | input and answer are small, the matrix is not |
#
# *C6* and *C7* are decided by right values, not by time. So *C6* holds, although the product was far faster (section 6),
# and *C7*, although `F.normalize` gains no time. *C7* is decided by rows of zeros; section 7 has other
# surprises.

# %%
verdicts("C5", "C6", "C7")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/09_distances/09_distances.ipynb). Three functions to make
# fast, a search to build that fits into memory, and a fast k-means that goes wrong on some data.
