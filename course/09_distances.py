# %% [markdown]
# # 09 · Distances
#
# How far is every point from every other? Nearest neighbours, clusters and search by similarity all ask
# this. A thousand points have a million distances. One way to compute them can take a hundred times longer
# than another. And the fastest way can lose most of the digits.
#
# **You will be able to**
# - compute all distances, or all cosine similarities, with one matrix product,
# - see when that product loses digits, and mend it for almost nothing,
# - normalise rows without NaN,
# - find nearest neighbours when the matrix of distances does not fit in memory.
#
# **Time:** 35 minutes to read and run. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *C5* "`torch.cdist` is faster because it uses matrix multiplication"; *C6* "all
# cosine similarities by `F.cosine_similarity` with broadcasting"; *C7* "`F.normalize` instead of dividing by
# the norm".

# %%
import io
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure

from autograder import article_code, behaviour, compare, costs, devices, verdicts
from autograder.show import show_picture

data = Path("../data")
print("devices here:", *devices())


def points(rows, columns, others=None):
    """Inputs for a comparison: two sets of random points."""
    return lambda generator, device: (
        torch.randn(rows, columns, generator=generator).to(device),
        torch.randn(others or rows, columns, generator=generator).to(device),
    )


# %% [markdown]
# ## 1. All pairs at once
#
# Two sets of 512 points, with 64 numbers each. We want the 512 × 512 Euclidean distances. No Python loop is
# needed: `a[:, None] - b` broadcasts to all differences, and the rest is arithmetic. `torch.cdist(a, b)`
# gives the same.
#
# How many times faster is `cdist`?

# %%
guess = 2.0


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
    flops=2 * 512 * 512 * 64,
)

# %% [markdown]
# **Why.** Look at what has to be stored.

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
# add. The result is 1 MB; on the way there, twice 67 MB are written.
#
# The other two never form a difference. They use
#
# > |a − b|² = |a|² + |b|² − 2 a·b
#
# The first two terms are one number for each *point*. Only the last one is a number for each *pair*, and
# all of those together are one matrix product, `a @ b.T`. Processors and libraries are tuned for nothing as
# much as for that. The line *limit* says how long this machine needs for the arithmetic of the product
# alone. Our own version writes four matrices of 1 MB (add, product, clamp, root). `cdist` makes one, and
# works in place.
#
# `costs` counts only what an operation returns. Inside, `cdist` also makes changed copies of both sets of
# points, but no further matrix of pairs.

# %%
assert torch.allclose(by_broadcasting(a, b), torch.cdist(a, b), rtol=1e-4)
assert torch.allclose(by_product(a, b), torch.cdist(a, b), rtol=1e-4)

# %% [markdown]
# ## 2. The product against the direct way
#
# `cdist` has two ways inside, and `compute_mode` chooses. The direct way takes one pair at a time,
# subtracts, squares and adds. It stores no differences either. So the comparison is fair in memory. How
# much faster is the way with the product?
#
# An article measured it on 512 points with **2** numbers each: 867 µs without the product, 417 µs with it.
# What do you expect here?

# %%
guess = 2.0


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
    when="both sides have hundreds of points",
)

# %% [markdown]
# The article's numbers are a gain of 2.1×. Yours depends on the machine.
#
# Two numbers a point are very few. With 64 numbers each, does the product gain more, or less?

# %%
guess = 2.0

# %%
compare(
    "distances: cdist of 512 × 512 pairs of 64 numbers",
    {"direct": direct, "matrix product": product},
    inputs=points(512, 64),
    guess=guess,
    claim="C5",
    when="both sides have hundreds of points",
    flops=2 * 512 * 512 * 64,
)

# %% [markdown]
# **Why.** The direct way spends three operations on each number (subtract, multiply, add) and fetches both
# rows again for every pair: 17 million numbers of each set. The product spends two (multiply, add), often in
# a single instruction. And it works in blocks: a few rows of `a` and of `b` are loaded once and used for all
# their pairs, out of the fastest memory there is.
#
# This is not all of the gain. On a CPU the direct code of `cdist` is also far from the best possible, as
# section 3 will show with `pdist`.
#
# With 2 numbers a point the arithmetic is little, and each pair costs what it costs to start and end a loop.
#
# Now compare with the first table. Broadcasting takes many times longer than even the direct way. So on a
# CPU the claim tells half of the story: `cdist` gains once by storing no differences, and once more by the
# way with the product.

# %% [markdown]
# ## 3. When it does not help
#
# **Few points.** 26 points with 2 numbers have 676 distances. How many times faster is `cdist`, with its
# product, than the direct way?

# %%
guess = 2.0

# %%
compare(
    "distances: cdist of 26 × 26 pairs of 2 numbers",
    {"direct": direct, "cdist": torch.cdist},
    inputs=points(26, 2),
    guess=guess,
    claim="C5",
    unless="both sides have hundreds of points",
)

# %% [markdown]
# On a CPU it loses. Before the product can start, the squares must be summed and the pieces put together;
# each of these steps costs a microsecond or more, and the whole direct computation takes only a few. (Change
# the 2 to 1,024 and run it again. The work grows, the start does not.)
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
# More than 25 points on *one* side are enough. Keep this number in mind. The rule looks neither at the
# other side nor at the size of a point. So what about a single query against 10,000 points of 64 numbers?

# %%
guess = 2.0

# %%
compare(
    "distances: cdist of one query and 10,000 points of 64 numbers",
    {"direct": direct, "cdist": torch.cdist},
    inputs=points(1, 64, 10_000),
    guess=guess,
    claim="C5",
    unless="both sides have hundreds of points",
)

# %% [markdown]
# On a CPU it loses again. Each of the 10,000 points is used once. A product gains by using a row for many
# others, and here there is only one other. But `cdist` still makes its changed copy of all points first. So
# give it some dozens of queries at once, or ask for the direct way.
#
# **Other distances.** The identity above holds for the Euclidean distance only. For `p=1`, the sum of
# absolute differences, there is no product to use:

# %%
print("512 points, p=1:", way(512, 512, p=1))
assert way(512, 512, p=1) == "direct"

# %% [markdown]
# **Half of the work.** Within one set, the distance from *i* to *j* is the distance from *j* to *i*.
# `torch.pdist` computes each pair once: 130,816 distances instead of 262,144. How many times faster is it
# than `cdist(a, a)`?

# %%
guess = 2.0

# %%
compare(
    "distances: within a set of 512 points of 64 numbers",
    {"cdist": lambda a: torch.cdist(a, a), "cdist, direct": lambda a: direct(a, a), "pdist": torch.pdist},
    inputs=lambda generator, device: torch.randn(512, 64, generator=generator).to(device),
    guess=guess,
    differ="pdist gives each pair once",
)

# %% [markdown]
# On the CPU it has half of the pairs, and takes more time. `pdist` has no product. Its own direct code is
# several times faster for each of these pairs than the direct way of `cdist`, but the product is faster
# still. What `pdist` does save is half of the memory:

# %%
x = torch.randn(512, 64)
print(f"cdist: {costs(torch.cdist, x, x)}", end="\n\n")
print(f"pdist: {costs(torch.pdist, x)}")
assert torch.pdist(x).shape == (512 * 511 // 2,)

# %% [markdown]
# ## 4. The price: digits
#
# Thirty points in three dimensions. They lie within a few units of each other, but all around (1000, 1000,
# 1000). `cdist(x, x)` has the distance of each point to itself on its diagonal. What is the largest number
# there?

# %%
guess = 0.0

# %%
generator = torch.Generator().manual_seed(0)
x = torch.randn(30, 3, generator=generator) + 1000
print(
    "largest distance of a point to itself:",
    torch.cdist(x, x).diagonal().max().item(),
    "· your guess:",
    guess,
)
print("the same, direct:                     ", direct(x, x).diagonal().max().item())
print("a typical distance:                   ", round(direct(x, x).mean().item(), 2))

# %%
assert torch.cdist(x, x).diagonal().max() > 0.1
assert direct(x, x).diagonal().max() == 0

# %% [markdown]
# **Why.** The product computes |a|² + |b|² − 2 a·b. Each of the three terms is some millions, and `float32`
# has 24 bits for it:

# %%
large = x.square().sum(1)[0]
gap = torch.nextafter(large, large + 1) - large
print(f"|a|² = {large.item():,}; the next number in float32 is {gap.item()} away")
assert gap == 0.25

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
# around 1, 10, … 10,000. The truth is computed in `float64`.


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

figure = Figure(figsize=(6.5, 3.2), dpi=110, layout="constrained")
axes = figure.subplots()
for (name, values), (colour, marker) in zip(
    errors.items(), [("#D55E00", "o"), ("#0072B2", "s"), ("#009E73", "^")], strict=True
):
    axes.plot(offsets, values, marker=marker, color=colour, label=name)
axes.axhline(truth.mean().item(), color="#999999", lw=1, ls="--")
axes.annotate("a typical distance", (1, truth.mean().item()), (0, 3), textcoords="offset points", fontsize=8)
axes.set(xscale="log", yscale="log", xlabel="where the points lie", ylabel="largest error", ylim=(1e-7, 30))
axes.legend(fontsize=8, loc=(0.03, 0.22))
file = io.BytesIO()
figure.savefig(file, format="png", facecolor="white")
told = "\n".join(
    f"{name:22}" + "".join(f"{value:10.1g}" for value in values) for name, values in errors.items()
)
print(f"{'points around':22}" + "".join(f"{offset:10,}" for offset in offsets), told, sep="\n")
show_picture(file.getvalue(), f"Chart: largest error of a distance against the offset of the points. {told}")

# %% [markdown]
# The error of the product grows with the offset: ten times as far from 0, ten times as wrong. At 10,000 it
# is larger than the distances. (The second line falls at the end, because so far out the coordinates
# themselves have few bits behind the point, and squares of such numbers are exact.) Is that a rare case?
# Kelvin, years, map coordinates in metres, pixel values without normalisation, prices: many columns have a
# mean far larger than their spread.

# %%
near = "points are not much farther from 0 than from each other (subtract their mean first)"
typical = truth.mean().item()  # nearly the same for every offset
right = {name: [error < 0.01 * typical for error in values] for name, values in errors.items()}
behaviour(
    "C5",
    "200 points around 1: each distance is right to 1 % of a typical one.",
    right["matrix product"][0],
    when=near,
)
behaviour(
    "C5",
    "200 points around 1,000, their mean subtracted: the same.",
    right["shifted, then product"][3],
    when=near,
)
behaviour("C5", "200 points around 1,000, as they are: the same.", right["matrix product"][3], unless=near)

# %% [markdown]
# It is not only the last digit of a number. Who is the nearest neighbour? 500 points around 1000 again:

# %%
x = torch.randn(500, 3, generator=generator) + 1000


def nearest_other(distances):
    return distances.fill_diagonal_(torch.inf).argmin(1)


truth = nearest_other(direct(x.double(), x.double()))
for name, function in ways_to_try.items():
    wrong = (nearest_other(function(x, x)) != truth).float().mean().item()
    print(f"{name:22} {wrong:5.0%} of the nearest neighbours are wrong")

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
# subtract the mean first. That is `shifted` above. It takes more work for each *point*, not for each pair.
# Another way is to compute in `float64`. How many times faster than the direct way is the product,
# with shifting?

# %%
guess = 10.0


# %%
def in_float64(a, b):
    return torch.cdist(a.double(), b.double()).float()


compare(
    "distances: ways that keep the digits, 512 × 512 pairs of 64 numbers",
    {"direct": direct, "float64": in_float64, "shifted": shifted},
    inputs=points(512, 64),
    guess=guess,
    claim="C5",
    when="both sides have hundreds of points",
)

# %% [markdown]
# About as many times as without shifting (section 2). Shift whenever you do not know where the data lie. The
# rest is worth knowing, too.
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
# `float64` or the direct way does.

# %%
x = torch.randn(200, 3, generator=generator)
x[:100] += 1000
x[100:] -= 1000
truth = direct(x.double(), x.double())
for name, function in {**ways_to_try, "float64": in_float64}.items():
    print(f"{name:22} largest error {(function(x, x) - truth).abs().max():.1g}")
assert (shifted(x, x) - truth).abs().max() > 0.1 > (in_float64(x, x) - truth).abs().max()

# %% [markdown]
# **Small integers are exact.** Sums of their squares are whole numbers, and `float32` holds all of those up
# to 2²⁴. Our digits have 64 pixels from 0 to 16: at most 16,384.

# %%
with np.load(data / "digits.npz") as file:
    digits = torch.from_numpy(file["images"]).flatten(1).float()
    labels = torch.from_numpy(file["labels"]).long()
print(len(digits), "digits, distance to itself at most", torch.cdist(digits, digits).diagonal().max().item())
assert torch.cdist(digits, digits).diagonal().max() == 0

# %% [markdown]
# ## 6. Cosine similarity
#
# The cosine of the angle between two vectors is their product divided by their lengths.
# `F.cosine_similarity` works along one dimension and broadcasts. So an article advises: for all pairs, give
# it `a[:, None]` and `b[None]`. No loop.
#
# First 64 × 64 pairs of 32 numbers. How many times faster is broadcasting than a loop over the rows of `a`?

# %%
guess = 10.0


# %%
def row_by_row(a, b):
    return torch.stack([F.cosine_similarity(row[None], b) for row in a])


def broadcast(a, b):
    return F.cosine_similarity(a[:, None], b[None], dim=-1)


compare(
    "cosine similarity: 64 × 64 pairs of 32 numbers",
    {"row by row": row_by_row, "broadcast": broadcast},
    inputs=points(64, 32),
    guess=guess,
)

# %% [markdown]
# One call instead of 64. And the values? Each pair by the formula, in `float64`:

# %%
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
    "Broadcasting gives the cosines of all pairs.",
    torch.allclose(broadcast(a, b).double(), formula, atol=1e-5),
)

# %% [markdown]
# Now 256 × 256 pairs of 128 numbers. One call instead of 256. Is the advantage
# larger?

# %%
guess = 10.0

# %%
compare(
    "cosine similarity: 256 × 256 pairs of 128 numbers",
    {"row by row": row_by_row, "broadcast": broadcast},
    inputs=points(256, 128),
    guess=guess,
)

# %% [markdown]
# On a CPU the loop wins. "No loops" is no law. Each step of the loop works on 131 kB, which stay in the
# cache. Broadcasting makes the whole block of 256 × 256 × 128 numbers, more than once:

# %%
a, b = points(256, 128)(generator, "cpu")
print(f"256 × 256 × 128 × 4 bytes = {256 * 256 * 128 * 4 / 1e6:.1f} MB", end="\n\n")
print(f"row by row: {costs(row_by_row, a, b)}", end="\n\n")
print(f"broadcast: {costs(broadcast, a, b)}")

# %% [markdown]
# Both miss the point. Which work belongs to a *pair*, and which to a *row*? The lengths belong to rows: 512
# of them, not 65,536. Divide each row by its length once. After that, cosine similarity *is* the matrix
# product.

# %%
guess = 10.0


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
# The same values, many times faster.
#
# Where one side stays the same (a search index, say), normalise it once and keep it. Then a query costs one
# product.
#
# ### When it does not help
#
# You have 2,000 *pairs*: row *i* of `a` belongs to row *i* of `b`, and you want 2,000 numbers, not four
# million. Is normalising first still faster than `F.cosine_similarity(a, b)`?

# %%
guess = 1.0

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
# No. Nothing is shared between the pairs, so there is nothing to save. This is what `F.cosine_similarity` is
# made for.

# %% [markdown]
# ## 7. `normalize`, and the vector without a length
#
# `F.normalize(x)` divides each row by its length. Do not do it row by row: 512 rows of 128, how many times
# faster is one call?

# %%
guess = 50.0

# %%
compare(
    "normalising 512 rows of 128 numbers, one by one or at once",
    {
        "row by row": lambda x: torch.stack([row / row.norm() for row in x]),
        "F.normalize": F.normalize,
    },
    inputs=lambda generator, device: torch.randn(512, 128, generator=generator).to(device),
    guess=guess,
)

# %% [markdown]
# That is due to the batch, not to the function. Against a division of all rows at once:

# %%
guess = 1.0


# %%
def divide(x):
    return x / x.norm(dim=1, keepdim=True)


compare(
    "normalising 2,000 rows of 128 numbers, divided or F.normalize",
    {"divided by the norm": divide, "F.normalize": F.normalize},
    inputs=lambda generator, device: torch.randn(2000, 128, generator=generator).to(device),
    guess=guess,
)

# %% [markdown]
# No gain in time; it does one small operation more. That operation is the reason to use it. A row of zeros
# has the length 0:

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
# **The gradient** of a row of zeros is finite, but it is 1 / `eps`. A single such row, and the optimiser
# takes a step to nowhere.

# %%
row = torch.zeros(1, 2, requires_grad=True)
F.normalize(row).sum().backward()
print("gradient of a row of zeros:", row.grad.tolist())
assert row.grad.min() > 1e11

# %% [markdown]
# To keep that gradient small, choose the divisor yourself: the length where there is one, and 1 where there
# is none. The gradient of the result then passes through unchanged. If the row must not learn at all, put in
# a constant there.


# %%
def own_divisor(x):
    length = x.norm(dim=1, keepdim=True)
    return x / torch.where(length > 0, length, 1)


def constant_zeros(x):
    length = x.norm(dim=1, keepdim=True)
    divisor = torch.where(length > 0, length, 1)
    return torch.where(length > 0, x / divisor, 0.0)


for name, function in {"own divisor": own_divisor, "a constant": constant_zeros}.items():
    other = torch.zeros(1, 2, requires_grad=True)
    function(other).sum().backward()
    print(f"{name:11} gradient of a row of zeros:", other.grad.tolist())
    assert torch.equal(other.grad, torch.full((1, 2), 1.0 if function is own_divisor else 0.0))

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
guess = 4.0

# %%
print(f"100,000² × 4 bytes = {100_000**2 * 4 / 1e9:.0f} GB · your guess: {guess}")
print(f"the points themselves, with 64 numbers each: {100_000 * 64 * 4 / 1e6:.1f} MB")
print(f"the 5 nearest of each, distance and index: {100_000 * 5 * (4 + 8) / 1e6:.0f} MB")

# %% [markdown]
# The input is small and the answer is small. Only the step between them is large. So do it in pieces: take
# some queries, compute their distances to all points, keep the nearest, forget the rest.
#
# A size that fits here: 1,000 queries, 10,000 points of 16 numbers, the 5 nearest. The whole matrix has 40
# MB. What does it cost to work in pieces of 128 queries? (1 means nothing, below 1 means slower.)

# %%
guess = 0.8


# %%
def nearest(queries, points, chunk):
    return torch.cat(
        [torch.cdist(some, points).topk(5, largest=False).indices for some in queries.split(chunk)]
    )


compare(
    "nearest neighbours: 1,000 queries, 10,000 points",
    {
        "all at once": lambda queries, points: nearest(queries, points, 1000),
        "4 at a time": lambda queries, points: nearest(queries, points, 4),
        "128 at a time": lambda queries, points: nearest(queries, points, 128),
    },
    inputs=points(1000, 16, 10_000),
    guess=guess,
    differ="pieces may round otherwise, and swap two points that are equally near",
    seconds=2.0,
)

# %%
queries, targets = points(1000, 16, 10_000)(generator, "cpu")
for chunk in (1000, 128, 4):
    cost = costs(nearest, queries, targets, chunk)
    megabytes, operations = cost.peak_bytes / 1e6, cost.operations.total()
    print(f"{chunk:5} at a time: at most {megabytes:5.1f} MB, {operations:4} operations")

# %% [markdown]
# **Why.** An eighth of the memory, and often faster. A block of 128 × 10,000 distances is 5 MB: it may still
# be in the cache when `topk` reads it. 40 MB are not. Very small pieces lose again: every piece starts
# several operations, and `cdist` prepares all 10,000 points anew each time.
#
# Begin with pieces whose matrix has a few megabytes on a CPU. On a GPU, begin with far larger ones: each
# operation needs more work there. Then measure two other sizes.
#
# ### Must it be the distance?
#
# Here is a famous saving. For the *nearest* point, the root does not matter: the order of the squares is
# the same. Nor does |a|², which is the same for all candidates. So |b|² − 2 a·b will do. How much faster is
# that?

# %%
guess = 1.5


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
# Little or nothing on a CPU. A vector instruction takes several roots at once; the product and the search
# for the smallest cost much more. Before you save an operation, ask how large its part is.

# %% [markdown]
# ## 9. On real digits
#
# Each of the 1,797 digits is compared with all others and gets the label of the nearest one. Which measure
# is best? The Euclidean distance, the sum of absolute differences, or the cosine?

# %%
guess = "Euclidean"

# %%
measures = {
    "Euclidean": torch.cdist(digits, digits),
    "absolute": torch.cdist(digits, digits, p=1),
    "cosine": -normalise_and_multiply(digits, digits),
}
found = {name: nearest_other(distances) for name, distances in measures.items()}
for name, neighbours in found.items():
    mistakes = (labels[neighbours] != labels).sum().item()
    print(f"{name:10} {mistakes} of {len(labels)} wrong, {1 - mistakes / len(labels):.1%} right")
print("your guess:", guess)

# %% [markdown]
# A good baseline without any training. One digit more or less of 1,797 is chance, and makes no winner. Here
# are some of the mistakes of the Euclidean distance.

# %%
wrong = (labels[found["Euclidean"]] != labels).nonzero().flatten()[:8].tolist()
pairs = [(i, found["Euclidean"][i].item()) for i in wrong]
figure = Figure(figsize=(7.5, 2.4), dpi=110, layout="constrained")
for column, pair in enumerate(pairs):
    for line, index in enumerate(pair):
        axes = figure.add_subplot(2, len(pairs), line * len(pairs) + column + 1)
        axes.imshow(digits[index].view(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"{('digit', 'nearest')[line]}: {labels[index]}", fontsize=8)
file = io.BytesIO()
figure.savefig(file, format="png", facecolor="white")
told = ", ".join(f"{labels[i]} and {labels[j]}" for i, j in pairs)
print("digit and nearest, from left to right:", told)
show_picture(file.getvalue(), f"Eight digits of 8 × 8 pixels, each above its nearest neighbour: {told}.")

# %% [markdown]
# Cosine and Euclidean distance are relatives. For rows of length 1, |a − b|² = 2 − 2 cos: they give the same
# order. They differ only in what they make of the length: how dark a digit is.

# %%
units = F.normalize(digits)
assert torch.allclose(direct(units, units).square(), 2 - 2 * units @ units.T, atol=1e-5)

# %% [markdown]
# ## Summary
#
# | you want | use | because |
# |---|---|---|
# | all Euclidean distances | `torch.cdist` | one matrix product; no block of differences |
# | … of data far from 0 | subtract the mean, then `cdist` | the product loses digits when squares are large |
# | … of groups far apart | `float64`, or `compute_mode="donot_use_mm_for_euclid_dist"` | more digits, or no large terms |
# | … with exact zeros | `compute_mode="donot_use_mm_for_euclid_dist"` | equal points give the difference 0 |
# | … of 25 points or fewer | `torch.cdist` | it takes the direct way by itself |
# | … of one query, or of some dozens of short points | `compute_mode="donot_use_mm_for_euclid_dist"` | the product cannot use a row often enough |
# | sums of absolute differences | `torch.cdist(p=1)` | there is no product for it: expect it to be slow |
# | all cosine similarities | `F.normalize(a) @ F.normalize(b).T` | lengths belong to rows, not to pairs |
# | cosines of row with row | `F.cosine_similarity` | nothing is shared, nothing to save |
# | rows of length 1 | `F.normalize(x, dim=-1)` | no NaN from zeros; choose `eps` for `float16` |
# | neighbours of very many points | pieces of some megabytes, `topk` in each | input and answer are small, the matrix is not |

# %%
verdicts("C5", "C6", "C7")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/09_distances/09_distances.ipynb). Five functions,
# given slow; make them right and fast.
