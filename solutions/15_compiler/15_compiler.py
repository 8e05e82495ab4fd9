# %% [markdown]
# # Exercises 15 · The compiler
#
# Four functions around the compiler: one that it can record in a piece, one that foretells what it will do, one that
# spares it work, and one that beats it. Each is given in a version that is right.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. Some checks also count what your
# answer costs: its syncs, its operations, or the most new memory that it has at once. `race` times it against the
# given version, on one thread of this machine, now. Hidden tests run when your notebook is graded: other sizes, other
# types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell. No answer
# needs `torch.compile` itself, nor a C++ compiler. Leave the tensors that you are given as they are.
# The chapter is [here](../../course/15_compiler.ipynb). 30 points, about 100 minutes.

# %% id="setup" role="given"
import torch

from autograder import check, costs, race


def graphs_of(function, *inputs):
    """How many graphs torch.compile records for this call. A tool for you; the tests do not use it."""
    torch._dynamo.reset()
    graphs = []

    def keep(graph, given):
        graphs.append(graph)
        return graph.forward

    torch.compile(function, backend=keep)(*inputs)
    return len(graphs)


# %% [markdown]
# ## 1. A step without questions
#
# *Medium, 18 minutes.* A step of a training in 16 bits. The loss was multiplied by `scale`, so the gradient is too large
# by this factor. Sometimes it overflows; then the step is left out, and the next scale is smaller. The given version
# asks tensors for their values in four places, two or three of them in one call, and there the graph breaks. Write
# `step_in_one_piece(weight, gradient, momentum, scale, steps, limit)`, which gives the same and asks for none.
#
# - `weight`, `gradient`, `momentum`: tensors of the same shape, all `float32` or all `float64`; the shape may be any.
#   `gradient` may hold infinities and NaN. Its finite numbers may be as large as `1e30`: so their norm is computed in
#   `float64`. `scale`: tensor of shape `()`, of the same type, a power of two from 1 up. `steps`: `int64` tensor of
#   shape `()`, from 0 to 3. All on one device. `limit`: a number above 0.
# - First the gradient is divided by `scale`. If a number of it is not finite, `weight` and `momentum` stay as they are,
#   `scale` is halved, but never below 1, and `steps` becomes 0.
# - If all are finite: where the norm (the square root of the sum of all squares) is above `limit`, the gradient is
#   multiplied by `limit / norm`. The new momentum is `0.9 * momentum + gradient`, the new weight is
#   `weight - 0.1 * momentum`, with the new momentum. `steps` grows by 1. When it reaches 4, `scale` is doubled, and
#   `steps` becomes 0.
# - returns: the new weight, momentum, scale and steps, in the shapes and types of the old ones.
# - No syncs: the second test and the hidden one allow none. Syncs are what the tests count, and not graphs. (You can:
#   for `*usual_step(torch.Generator(), "cpu")`, `graphs_of` should say 1.)


# %% id="step_in_one_piece_given" role="given"
def step_in_one_piece_slow(weight, gradient, momentum, scale, steps, limit):
    gradient = gradient / scale
    if not gradient.isfinite().all():
        scale = scale / 2 if scale > 1 else scale.clone()
        return weight.clone(), momentum.clone(), scale, torch.zeros_like(steps)
    norm = gradient.double().square().sum().sqrt().item()
    if norm > limit:
        gradient = gradient * (limit / norm)
    momentum = 0.9 * momentum + gradient
    steps = steps + 1
    if steps == 4:
        scale, steps = scale * 2, steps * 0
    return weight - 0.1 * momentum, momentum, scale.clone(), steps


def some_step(shape, factor, limit, generator, device, dtype=torch.float32):
    tensors = [torch.randn(shape, generator=generator).to(device, dtype) for _ in range(3)]
    scale = 2.0 ** torch.randint(1, 12, (), generator=generator)
    steps = torch.randint(0, 4, (), generator=generator)
    tensors[1] *= factor * scale
    return *tensors, scale.to(device, dtype), steps.to(device), limit


def usual_step(generator, device):
    return some_step((20, 30), 1, 5.0, generator, device)


def small_gradient(generator, device):
    return some_step((7,), 0.01, 2.0, generator, device)


def fourth_step(generator, device):
    given = some_step((3, 4), 1, 1.0, generator, device)
    return *given[:4], torch.full_like(given[4], 3), given[5]


def overflow(generator, device):
    weight, gradient, *others = some_step((6, 5), 1, 1.0, generator, device)
    gradient[2, 3] = torch.inf
    return weight, gradient, *others


def one_number(generator, device):
    return some_step((), 1, 0.1, generator, device)


def very_large(generator, device):
    weight, gradient, momentum, scale, *others = some_step((40,), 1e28, 3.0, generator, device)
    return weight, gradient / scale, momentum, torch.ones_like(scale), *others


# %% [markdown]
# <details><summary>Hint 1</summary>Section 2 of the chapter: both sides are computed, and one is chosen. Which four
# results have to be chosen here? Compute the step as if all were well, and choose at the end.</details>
# <details><summary>Hint 2</summary>An infinity times 0 is NaN. So a mask that multiplies does not throw a bad number
# away; choosing does.</details>
# <details><summary>Hint 3</summary><code>if norm &gt; limit</code> needs no choice: a factor that is at most 1 says the
# same. What is it when the norm is 0? And of which type is its product with a gradient, when both have the shape
# <code>()</code>?</details>
# <details><summary>Hint 4</summary>Which Python functions ask a tensor for its value without saying so?
# <code>if</code>, <code>float()</code>, <code>max()</code>, <code>.item()</code>. Tensors have <code>clamp</code>,
# <code>where</code>, <code>%</code> and <code>==</code>.</details>


# %% id="step_in_one_piece" role="answer"
def step_in_one_piece(weight, gradient, momentum, scale, steps, limit):
    ### BEGIN SOLUTION
    unscaled = gradient / scale
    good = unscaled.isfinite().all()
    length = torch.linalg.vector_norm(unscaled, dtype=torch.float64)
    moved = 0.9 * momentum + unscaled * (limit / length).clamp(max=1).to(unscaled.dtype)
    grown = torch.where(steps == 3, scale * 2, scale)
    return (
        torch.where(good, weight - 0.1 * moved, weight),
        torch.where(good, moved, momentum),
        torch.where(good, grown, (scale / 2).clamp(min=1)),
        torch.where(good, (steps + 1) % 4, 0),
    )
    ### END SOLUTION


# %% id="step_in_one_piece_check" role="test"
check(
    step_in_one_piece,
    like=step_in_one_piece_slow,
    on=[usual_step, small_gradient, fourth_step, overflow, one_number, very_large],
    points=1,
)

# %% id="step_in_one_piece_lean" role="test"
check(
    step_in_one_piece, like=step_in_one_piece_slow, on=[usual_step, overflow], at_most={"syncs": 0}, points=3
)


# %% id="step_in_one_piece_hidden" role="test"
# Hidden test: NaN, a gradient of zeros, scale 1 that overflows, float64, a single number, no syncs. 2 points, when graded.
### BEGIN HIDDEN TESTS
def not_a_number(generator, device):
    weight, gradient, *others = some_step((2, 3, 2), 1, 4.0, generator, device)
    gradient[1, 2, 0] = torch.nan
    return weight, gradient, *others


def no_gradient(generator, device):
    weight, gradient, *others = some_step((9,), 1, 0.5, generator, device)
    return weight, torch.zeros_like(gradient), *others


def overflow_at_scale_one(generator, device):
    weight, gradient, momentum, scale, *others = some_step((5,), 1, 1.0, generator, device)
    gradient[0] = -torch.inf
    return weight, gradient, momentum, torch.ones_like(scale), *others


def step_in_doubles(generator, device):
    return some_step((4, 6), 1, 2.0, generator, device, dtype=torch.float64)


check(
    step_in_one_piece,
    like=step_in_one_piece_slow,
    on=[
        not_a_number,
        no_gradient,
        overflow_at_scale_one,
        step_in_doubles,
        one_number,
        very_large,
        fourth_step,
    ],
    at_most={"syncs": 0},
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Foretell the compilations
#
# *Hard, 22 minutes.* A function of one tensor, `x * 2`, is compiled with the default settings. A list says with which
# types and sizes it will be called. At which calls will torch record it? The given version finds out by trying. Write
# `recordings(calls)`, which knows.
#
# - `calls`: list of one or more pairs: a dtype, and a tuple of sizes. All tuples have the same length, 1 to 3. All sizes
#   are 2 or more, and within a tuple no two are equal. (So none of the special cases of sizes comes up.) The tensors are
#   contiguous. No list leads to more than seven recordings.
# - returns: a list of `bool`, one for each call: whether it is recorded.
# - All tests but the first allow no operation of torch at all.
# - The tests ask the torch that is installed. From 2.6 to 2.15 its rules for such calls were the same.
#
# Section 3 of the chapter has the first rules. For the rest, try: `recordings_slow([(torch.float32, (4, 5)), …])` answers
# any question.


# %% id="recordings_given" role="given"
def recordings_slow(calls):
    graphs, found = [], []

    def keep(graph, given):
        graphs.append(graph)
        return graph.forward

    with torch._dynamo.config.patch(disable=False):  # whatever the environment says
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: x * 2, backend=keep)
        for dtype, sizes in calls:
            before = len(graphs)
            compiled(torch.zeros(sizes, dtype=dtype))
            found.append(len(graphs) > before)
    return found


def one_size_changes(generator, device):
    sizes = torch.randperm(30, generator=generator)[:6].tolist()
    return ([(torch.float32, (2 + size, 40)) for size in sizes],)


def two_sizes_change(generator, device):
    a, b, c, d, e = (torch.randperm(40, generator=generator)[:5] + 2).tolist()
    sizes = [(a, b), (a, c), (d, c), (e, b), (a, b), (b, e)]
    return ([(torch.float32, size) for size in sizes],)


def two_types(generator, device):
    a, b, c, d = (torch.randperm(40, generator=generator)[:4] + 2).tolist()
    single, double = torch.float32, torch.float64
    return ([(single, (a, b)), (double, (a, b)), (single, (c, b)), (double, (a, b)), (double, (d, b))],)


def a_late_type(generator, device):
    a, b, c, d = (torch.randperm(40, generator=generator)[:4] + 2).tolist()
    single, double = torch.float32, torch.float64
    return ([(single, (a, b)), (single, (c, b)), (double, (a, b)), (double, (d, b)), (single, (d, b))],)


def size_and_type_change(generator, device):
    a, b, c, d, e = (torch.randperm(40, generator=generator)[:5] + 2).tolist()
    single, double = torch.float32, torch.float64
    return ([(single, (a, b)), (double, (c, b)), (single, (a, d)), (single, (c, e)), (double, (a, e))],)


def any_calls(generator, device):
    drawn = torch.randint(3, (7, 3), generator=generator).tolist()
    return ([((torch.float32, torch.float64)[kind % 2], (4 + a, 40 + b)) for kind, a, b in drawn],)


def one_call(generator, device):
    return ([(torch.float32, (5,))],)


# %% [markdown]
# <details><summary>Hint 1</summary>Keep a list of versions. A version is a type and, for each dimension, either one size
# or "any". A call is recorded when no version fits.</details>
# <details><summary>Hint 2</summary>What is new in a version? It has "any" where a size has changed. Only where it has
# changed just now, or also where it changed once before? Try three calls that change one size each.</details>
# <details><summary>Hint 3</summary>Do two types learn from each other? Let a size change with the one type, and call with
# the other type for the first time after that. Then change the size.</details>
# <details><summary>Hint 4</summary>Besides the versions you need one more thing, which all types share: for each
# dimension the size of all calls so far, or "any" as soon as two of them differed.</details>


# %% id="recordings" role="answer"
def recordings(calls):
    ### BEGIN SOLUTION
    seen, versions, answers = None, [], []
    for kind, sizes in calls:
        fits = any(
            known == kind
            and all(wanted in ("any", size) for wanted, size in zip(pattern, sizes, strict=True))
            for known, pattern in versions
        )
        answers.append(not fits)
        if not fits:
            seen = [old if old == size else "any" for old, size in zip(seen or sizes, sizes, strict=True)]
            versions.append((kind, seen))
    return answers
    ### END SOLUTION


# %% id="recordings_check" role="test"
check(
    recordings,
    like=recordings_slow,
    on=[one_size_changes, two_sizes_change, two_types, a_late_type, size_and_type_change, one_call],
    points=1,
)

# %% id="recordings_foretell" role="test"
check(
    recordings,
    like=recordings_slow,
    on=[
        one_size_changes,
        two_sizes_change,
        two_types,
        a_late_type,
        size_and_type_change,
        any_calls,
        any_calls,
    ],
    at_most={"operations": 0, "views": 0},
    points=3,
)


# %% id="recordings_hidden" role="test"
# Hidden test: three dimensions, three types, calls that return to old sizes, no operations. 3 points, when graded.
### BEGIN HIDDEN TESTS
def three_sizes(generator, device):
    sizes = (torch.randperm(50, generator=generator)[:12] + 2).tolist()
    a, b, c, d, e, f, *more = sizes
    calls = [
        (a, b, c),
        (a, b, d),
        (a, b, e),
        (f, b, c),
        (a, d, c),
        (a, b, c),
        tuple(more[:3]),
        tuple(more[3:]),
    ]
    return ([(torch.float32, size) for size in calls],)


def a_type_that_comes_late(generator, device):
    a, b, c, d = (torch.randperm(40, generator=generator)[:4] + 2).tolist()
    single, double, half = torch.float32, torch.float64, torch.bfloat16
    calls = [(single, a), (single, b), (double, a), (double, c), (half, d), (half, a), (single, d)]
    return ([(kind, (size, 50)) for kind, size in calls],)


def back_and_forth(generator, device):
    a, b, c = (torch.randperm(40, generator=generator)[:3] + 2).tolist()
    single, double = torch.float32, torch.float64
    calls = [(single, (a, 50)), (double, (a, 60)), (single, (a, 50)), (single, (a, 60)), (single, (a, 70))]
    return ([*calls, (double, (a, 50)), (double, (b, 50)), (single, (c, 50))],)


check(
    recordings,
    like=recordings_slow,
    on=[three_sizes, a_type_that_comes_late, back_and_forth, size_and_type_change, one_call],
    at_most={"operations": 0, "views": 0},
    points=3,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Few sizes for many lengths
#
# *Hard, 32 minutes.* A server gets sequences of all lengths. Its model is compiled for fixed sizes (or recorded as CUDA
# graphs), so each sequence is padded with zeros up to the next size. Each size costs a compilation, so there may only be
# a few. Which sizes waste the least? Write `best_sizes(counts, most)`.
#
# - `counts`: `int64` tensor of shape `(L + 1,)`, on any device: `counts[n]` is the number of sequences of length *n*. None
#   is negative, `counts[0]` is 0, at least one is not 0; at most 10⁹ each, and *L* is at most 200. (So the waste stays
#   below 10¹⁴, whatever the sizes.) `most`: an `int`. You may work on the CPU, wherever `counts` is.
# - returns: `int64` tensor with at most `most` sizes, in rising order, on that device. Each sequence is padded to the
#   smallest size that is not below its length, and every sequence must fit into one. The sum of all that is added, over
#   all sequences, is the least possible.
# - Only lengths that occur are sizes. Where `most` is at least the number of lengths that occur, these are the sizes.
#   In all tests only one choice is best.
# - `most` below 1 must raise `ValueError`.


# %% id="best_sizes_given" role="given"
def best_sizes_slow(counts, most):
    if most < 1:
        raise ValueError("there must be one size or more")
    number = counts.tolist()
    lengths = [length for length, count in enumerate(number) if count]
    best = {0: (0, [])}  # so many of the lengths are served: the least waste, and the sizes
    for _ in range(min(most, len(lengths))):
        after = {}
        for end in range(1, len(lengths) + 1):
            waste = 0
            for begin in range(end - 1, -1, -1):
                waste += number[lengths[begin]] * (lengths[end - 1] - lengths[begin])
                if begin in best:
                    total = best[begin][0] + waste
                    if end not in after or total < after[end][0]:
                        after[end] = (total, [*best[begin][1], lengths[end - 1]])
        best = after
    return torch.tensor(best[len(lengths)][1], device=counts.device)


def some_counts(longest, share, generator, device):
    """Counts of lengths, of which about this share occurs; the longest occurs."""
    counts = torch.randint(1, 10**9, (longest + 1,), generator=generator)
    counts[torch.rand(longest + 1, generator=generator) > share] = 0
    counts[0], counts[-1] = 0, counts[-1].clamp(min=7)
    return counts.to(device)


def many_lengths(generator, device):
    return some_counts(120, 0.95, generator, device), 8


def few_lengths(generator, device):
    return some_counts(30, 0.2, generator, device), 3


def more_sizes_than_lengths(generator, device):
    return some_counts(12, 0.4, generator, device), 40


def one_size(generator, device):
    return some_counts(25, 0.7, generator, device), 1


def no_size_allowed(generator, device):
    return some_counts(12, 0.4, generator, device), 0


# %% [markdown]
# <details><summary>Hint 1</summary>The given version is a good plan in slow steps. With one size more, the best for the
# first <em>j</em> lengths is the best for the first <em>i</em> with one size less, plus the waste of all lengths from
# <em>i</em> to <em>j</em> in one size. Which of its three loops must stay?</details>
# <details><summary>Hint 2</summary>The waste of each pair (i, j) is the same in all rounds: a table, made once. What was
# added is what was sent less what was there. Two running sums (<code>cumsum</code>) have all that both need.</details>
# <details><summary>Hint 3</summary>One round is then: a column plus the table, and the smallest of each column, with its
# place. Forbidden pairs get a waste that is too large to win, and small enough not to overflow.</details>
# <details><summary>Hint 4</summary>Keep the places of each round. At the end walk back from the last length: its place
# says how many lengths the sizes before it serve.</details>


# %% id="best_sizes" role="answer"
def best_sizes(counts, most):
    ### BEGIN SOLUTION
    if most < 1:
        raise ValueError("there must be one size or more")
    lengths = counts.nonzero().flatten()
    occurring = counts[lengths]
    sequences = torch.nn.functional.pad(occurring.cumsum(0), (1, 0))
    letters = torch.nn.functional.pad((occurring * lengths).cumsum(0), (1, 0))
    waste = (sequences[1:] - sequences[:-1, None]) * lengths - (letters[1:] - letters[:-1, None])
    never = 1 << 55
    waste.masked_fill_(torch.ones_like(waste, dtype=torch.bool).tril_(-1), never)
    least, places = waste[0], []
    for _ in range(min(most, len(lengths)) - 1):
        least, place = (least[:-1, None] + waste[1:]).min(0)
        places.append(place)
    ends = [len(lengths) - 1]
    for place in torch.stack(places[::-1]).tolist() if places else []:
        ends.append(place[ends[-1]])
    return lengths[torch.tensor(ends[::-1], device=counts.device)]
    ### END SOLUTION


# %% id="best_sizes_check" role="test"
check(
    best_sizes,
    like=best_sizes_slow,
    on=[many_lengths, few_lengths, more_sizes_than_lengths, one_size],
    points=1,
)

# %% id="best_sizes_bad" role="test"
check(best_sizes, like=best_sizes_slow, on=no_size_allowed, raises=ValueError, points=1)


# %% id="best_sizes_hidden" role="test"
# Hidden test: one size, one length, 200 lengths, as many sizes as lengths. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_length(generator, device):
    counts = torch.zeros(10, dtype=torch.int64, device=device)
    counts[6] = 3
    return counts, 2


def two_hundred(generator, device):
    return some_counts(200, 1.0, generator, device), 5


def as_many_sizes(generator, device):
    counts = some_counts(15, 1.0, generator, device)
    return counts, 15


check(best_sizes, like=best_sizes_slow, on=[one_size, one_length, two_hundred, as_many_sizes], points=2)
### END HIDDEN TESTS

# %% id="best_sizes_race" role="test"
race(best_sizes, against=best_sizes_slow, on=many_lengths, at_least={"cpu": 10}, points=3)

# %% [markdown]
# ## 4. What the compiler does not find
#
# *Medium, 18 minutes.* How probable is each of *N* points under each of *K* normal distributions? The given version makes
# tables of all points, all distributions and all dimensions. The compiler would fuse it into one loop without tables,
# and do the same arithmetic. You can do better: change the formula. Write `log_densities(points, means, deviations)`.
#
# - `points`: `(N, D)`, `means`: `(K, D)`, `deviations`: `(K, D)`, all `float32` or all `float64`, on one device. *N* may be
#   0; *K* and *D* are at least 1. Deviations lie between 0.5 and 2.
# - returns: `(N, K)`, the same type and device: the sum over all dimensions of
#   `-((point - mean) / deviation)² / 2 - log(deviation)`.
# - Points and means may all lie far away from 0: in each dimension around an offset, the same one for all points and all
#   means, between -1,000 and 1,000. You are not told it. From their offset they are at most 6 away. The result must be
#   as exact there as anywhere. In `float32` no number may be further from the exact one than 1/10,000 of the sum of two
#   things: its own size, and the root mean square of all results. In `float64`, than a billionth.
# - Memory: for the 600 points, 50 distributions and 32 dimensions of the test at most 450 kB of new memory at once. The
#   result has 120 kB.


# %% id="log_densities_given" role="given"
def log_densities_slow(points, means, deviations):
    standard = (points[:, None] - means) / deviations
    return (-standard.square() / 2 - deviations.log()).sum(2)


def some_points(number, kinds, width, offset, generator, device, dtype=torch.float32):
    centre = offset * (2 * torch.rand(width, generator=generator) - 1)
    points = torch.randn(number, width, generator=generator).clamp(-5, 5) + centre
    means = torch.randn(kinds, width, generator=generator).clamp(-5, 5) + centre
    deviations = 0.5 + 1.5 * torch.rand(kinds, width, generator=generator)
    return tuple(tensor.to(device, dtype) for tensor in (points, means, deviations))


def points_around_zero(generator, device):
    return some_points(600, 50, 32, 0, generator, device)


def points_far_away(generator, device):
    return some_points(40, 6, 9, 1000, generator, device)


def no_points(generator, device):
    return some_points(0, 3, 4, 0, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Write the square out: three terms. Which of them need a point and a distribution
# together?</details>
# <details><summary>Hint 2</summary>A sum over <em>d</em> of something with <em>n</em> and <em>d</em> times something with
# <em>k</em> and <em>d</em> is a matrix product. Two of the three terms are. What is left depends on <em>k</em>
# only.</details>
# <details><summary>Hint 3</summary>Far away from 0, large terms cancel, and few digits are left. (Chapter 09 has met
# this.) The result does not change when points and means move together. Where would you move them?</details>
# <details><summary>Hint 4</summary><code>torch.addmm</code> adds to a product, and a row that it adds may be
# broadcast; it also takes factors. With its method <code>addmm_</code> the second product needs no table of its own. What
# you made yourself, and do not need any more, you may write over.</details>


# %% id="log_densities" role="answer"
def log_densities(points, means, deviations):
    ### BEGIN SOLUTION
    middle = means.mean(0)
    points, means = points - middle, means - middle
    weights = deviations.square().reciprocal_()
    slopes = means * weights
    constant = (means * slopes).sum(1).mul_(-0.5).sub_(deviations.log().sum(1))
    result = torch.addmm(constant, points, slopes.T)
    return result.addmm_(points.square_(), weights.T, alpha=-0.5)
    ### END SOLUTION


# %% id="log_densities_check" role="test"
check(log_densities, like=log_densities_slow, on=[points_around_zero, points_far_away, no_points], points=1)

# %% id="log_densities_memory" role="test"
check(log_densities, like=log_densities_slow, on=points_around_zero, peak=450_000, points=2)


# %% id="log_densities_hidden" role="test"
# Hidden test: one distribution, one dimension, one point, float64, far away. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_distribution(generator, device):
    return some_points(17, 1, 5, 300, generator, device)


def one_dimension(generator, device):
    return some_points(30, 4, 1, 1000, generator, device)


def one_point(generator, device):
    return some_points(1, 7, 12, 1000, generator, device)


def points_in_doubles(generator, device):
    return some_points(21, 5, 16, 1000, generator, device, dtype=torch.float64)


check(
    log_densities,
    like=log_densities_slow,
    on=[one_distribution, one_dimension, one_point, points_in_doubles, points_far_away],
    points=2,
)
### END HIDDEN TESTS

# %% id="log_densities_race" role="test"
race(
    log_densities,
    against=log_densities_slow,
    on=points_around_zero,
    at_least={"cpu": 4},
    points=3,
)

# %% [markdown]
# ## 5. Foretell the costs
#
# *Easy, 10 minutes.* Three functions: two are of earlier chapters, the last is of this one. Each gets `x`, a
# tensor of `float32` with the shape `(n, d)`, whose numbers are all 2. Write `foretold(n, d)`, which says what
# `costs` counts then.
#
# - `n`, `d`: integers from 2 on.
# - returns: a dict with the names of the three functions. Each value is a dict of three integers: `"operations"` (views
#   are not counted), `"bytes"` of all new tensors together, and `"syncs"`, where the host would wait for a GPU.
# - `foretold` asks torch for nothing.


# %% id="foretold_given" role="given"
def chosen(x):
    return x[x > 1].mean()


def polynomial(x):
    return (x * 3 + 2).mul_(x).add_(1)


def activated(x):
    return x * torch.sigmoid(x) + x.amax(1, keepdim=True)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (chosen, polynomial, activated)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>chosen</code> is of chapter 10, <code>polynomial</code> is of chapter 13,
# <code>activated</code> is of chapter 15.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(activated, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "chosen": {"operations": 3, "bytes": 5 * n * d + 4, "syncs": 1},
        "polynomial": {"operations": 4, "bytes": 8 * n * d, "syncs": 0},
        "activated": {"operations": 4, "bytes": 12 * n * d + 4 * n, "syncs": 0},
    }
    ### END SOLUTION


# %% id="foretold_check" role="test"
check(foretold, like=counted, on=[any_size, any_size], at_most={"operations": 0}, points=1)


# %% id="foretold_hidden" role="test"
# Hidden test: long and narrow, short and wide. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def narrow(generator, device):
    return 200 + any_size(generator, device)[0], 2


def wide(generator, device):
    return 2, 200 + any_size(generator, device)[0]


check(foretold, like=counted, on=[narrow, wide, any_size], at_most={"operations": 0}, points=1)
### END HIDDEN TESTS
