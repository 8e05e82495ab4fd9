# %% [markdown]
# # Exercises 18 · Launch overhead
#
# Five functions that make thousands of small calls. Each is given in a version that is right, and slow. Write one with
# few calls.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. `race` times it against the given version,
# on this machine, now. Hidden tests run when your notebook is graded: other shapes and other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell. Leave the
# tensors that you get as they are. Every function must work for `float32` and `float64`, on any device, and return the
# type that it was given. `costs`, which the chapter uses, counts what a call costs: `from autograder import costs`, then
# `print(costs(function, *inputs))`.
# The chapter is [here](../../course/18_launch_overhead.ipynb). 34 points, about 135 minutes.

# %% id="setup" role="given"
import torch

from autograder import check, costs, race

# %% [markdown]
# ## 1. All gradients in one look
#
# *Medium, 25 minutes.* Before each step somebody wants to know how the gradients of all parameters are: how long, how
# large, and whether something is broken. Looking takes longer than the step. Write `health(gradients)`.
#
# - `gradients`: a list of *N* tensors of any shapes, all of one floating-point type and on one device. *N* may be 0. A
#   tensor may have no dimension, or no number at all. Numbers may be NaN or infinite.
# - returns: a table `(N, 4)` of the same type, on the same device: for each tensor the length (the root of the sum of all
#   squares), the largest absolute value, the mean, and how many numbers are *not* finite. The first three are those of the
#   finite numbers alone; where there are none, they are 0. An empty list gives `torch.zeros(0, 4)`.
# - No syncs: the host must not wait for a value that the device has computed.


# %% id="health_given" role="given"
def health_slow(gradients):
    rows = []
    for gradient in gradients:
        finite = gradient.isfinite()
        kept = torch.where(finite, gradient, 0)
        number = finite.sum()
        largest = kept.abs().max() if kept.numel() else kept.new_zeros(())
        mean = kept.sum() / number.clamp(min=1)
        broken = (gradient.numel() - number).to(gradient.dtype)
        rows.append(torch.stack([kept.square().sum().sqrt(), largest, mean, broken]))
    return torch.stack(rows) if rows else torch.zeros(0, 4)


def tensors_of(shapes, broken, generator, device, dtype=torch.float32):
    """Tensors of these shapes, in which a share of the numbers is NaN or infinite."""
    made = []
    for shape in shapes:
        tensor = torch.randn(shape, generator=generator, dtype=dtype)
        places = torch.rand(shape, generator=generator)
        tensor = tensor.masked_fill(places < broken / 2, torch.nan).masked_fill(
            places > 1 - broken / 2, torch.inf
        )
        made.append(tensor.to(device))
    return (made,)


def a_few_tensors(generator, device):
    return tensors_of([(3, 4), (5,), (), (2, 3, 2), (1, 1)], 0, generator, device)


def some_broken(generator, device):
    return tensors_of([(6, 5), (8,), (4, 4), (3,)], 0.4, generator, device)


def empty_and_all_broken(generator, device):
    (made,) = tensors_of([(0, 3), (4,), (0,)], 0, generator, device)
    return ([*made, made[1] * torch.inf, made[1]],)


def nothing(generator, device):
    return ([],)


def many_tensors(generator, device):
    return tensors_of([(8, 8), (8,), (8, 4), (4,)] * 60, 0.02, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>No number has to know in which shape it was, only in which tensor. So one long tensor of
# all numbers, and for each number the place of its tensor in the list.</details>
# <details><summary>Hint 2</summary>Chapter 10 adds up by groups. It also has an operation for the largest of a group.
# </details>
# <details><summary>Hint 3</summary>The sizes are known to Python; a tensor of them can be made without asking the device.
# <code>repeat_interleave</code> makes a place for each number of it; <code>output_size</code> tells it the total, so that
# nobody waits.</details>


# %% id="health" role="answer"
def health(gradients):
    ### BEGIN SOLUTION
    if not gradients:
        return torch.zeros(0, 4)
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    sizes = torch.tensor([gradient.numel() for gradient in gradients], device=flat.device)
    owners = torch.arange(len(gradients), device=flat.device).repeat_interleave(
        sizes, output_size=flat.numel()
    )
    good = flat.isfinite()
    flat = flat.masked_fill(~good, 0)
    sums = flat.new_zeros(len(gradients), 3)
    sums.index_add_(0, owners, torch.stack([flat.square(), flat, good.to(flat.dtype)], 1))
    peaks = flat.new_zeros(len(gradients)).scatter_reduce_(0, owners, flat.abs(), "amax")
    squares, totals, counts = sums.unbind(1)
    return torch.stack([squares.sqrt(), peaks, totals / counts.clamp(min=1), sizes - counts], 1)
    ### END SOLUTION


# %% id="health_check" role="test"
check(
    health,
    like=health_slow,
    on=[a_few_tensors, some_broken, empty_and_all_broken, nothing],
    at_most={"syncs": 0},
    points=1,
)


# %% id="health_hidden" role="test"
# Hidden test: one tensor, only empty ones, float64, more broken numbers. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_tensor(generator, device):
    return tensors_of([(7, 2)], 0.3, generator, device)


def only_empty(generator, device):
    return tensors_of([(0,), (2, 0)], 0, generator, device)


def double_tensors(generator, device):
    return tensors_of([(5, 3), (), (0, 2), (9,), (2, 2, 2)], 0.6, generator, device, torch.float64)


check(
    health,
    like=health_slow,
    on=[one_tensor, only_empty, double_tensors, some_broken],
    at_most={"syncs": 0},
    points=2,
)
### END HIDDEN TESTS

# %% id="health_race" role="test"
race(health, against=health_slow, on=many_tensors, at_least={"cpu": 4.5}, points=3)

# %% [markdown]
# ## 2. Systems of many sizes
#
# *Medium, 20 minutes.* Hundreds of small systems of linear equations, of a few sizes, in any order, packed one behind the
# other. A profile of the given version shows one call of `linalg_solve_ex` for each. Write `solve_all(numbers, rights,
# sizes)`.
#
# - `sizes`: a list of whole numbers, at least 1: system *i* has `sizes[i]` equations. The list may be empty.
# - `numbers`: one dimension; the matrices of all systems, one behind the other, each row after row. All can be inverted.
#   `rights`: one dimension; all right sides, one behind the other. Both of one type and on one device.
# - returns: all solutions, one behind the other, in the order of the systems: one dimension, like `rights`.
# - Where the sizes do not add up to what `numbers` or `rights` hold, raise `ValueError`.


# %% id="solve_all_given" role="given"
def solve_all_slow(numbers, rights, sizes):
    squares = [size * size for size in sizes]
    if sum(squares) != len(numbers) or sum(sizes) != len(rights):
        raise ValueError(f"{len(numbers)} numbers and {len(rights)} right sides do not fit the sizes")
    solutions = []
    for size, matrix, right in zip(sizes, numbers.split(squares), rights.split(sizes), strict=True):
        solutions.append(torch.linalg.solve(matrix.view(size, size), right))
    return torch.cat(solutions) if solutions else rights.clone()


def systems(sizes, generator, device, dtype=torch.float32):
    matrices = [
        torch.rand(size, size, generator=generator, dtype=dtype) + 2 * size * torch.eye(size, dtype=dtype)
        for size in sizes
    ]
    numbers = torch.cat([torch.zeros(0, dtype=dtype), *(matrix.flatten() for matrix in matrices)])
    rights = torch.randn(sum(sizes), generator=generator, dtype=dtype)
    return numbers.to(device), rights.to(device), list(sizes)


def a_few_systems(generator, device):
    return systems([2, 5, 2, 1, 3, 5, 2], generator, device)


def no_systems(generator, device):
    return systems([], generator, device)


def one_size_too_many(generator, device):
    numbers, rights, sizes = systems([2, 3, 2], generator, device)
    return numbers, rights, [*sizes, 2]


def many_systems(generator, device):
    sizes = torch.randint(2, 7, (400,), generator=generator).tolist()
    return systems(sizes, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary><code>torch.linalg.solve</code> takes a batch, of systems of one size.</details>
# <details><summary>Hint 2</summary>A running sum of the sizes, and of their squares, says where each system begins. A
# column of beginnings plus a row of steps is a table of places.</details>
# <details><summary>Hint 3</summary>An index with a table of places reads a batch in one call, and in an assignment it writes
# one.</details>


# %% id="solve_all" role="answer"
def solve_all(numbers, rights, sizes):
    ### BEGIN SOLUTION
    counts = torch.tensor(sizes, dtype=torch.int64)
    areas = counts.square()
    if areas.sum() != len(numbers) or counts.sum() != len(rights):
        raise ValueError("the sizes do not fit")
    corners, tops = areas.cumsum(0) - areas, counts.cumsum(0) - counts
    answers = torch.empty_like(rights, memory_format=torch.contiguous_format)
    for size in set(sizes):
        members = counts == size
        cells = (corners[members, None] + torch.arange(size * size)).to(numbers.device)
        lines = (tops[members, None] + torch.arange(size)).to(numbers.device)
        batch = numbers[cells].view(-1, size, size)
        answers[lines] = torch.linalg.solve(batch, rights[lines])
    return answers
    ### END SOLUTION


# %% id="solve_all_check" role="test"
check(solve_all, like=solve_all_slow, on=[a_few_systems, no_systems], points=1)

# %% id="solve_all_sizes" role="test"
check(solve_all, like=solve_all_slow, on=one_size_too_many, raises=ValueError, points=1)


# %% id="solve_all_hidden" role="test"
# Hidden test: one system, as many systems as unknowns, float64, other sizes. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_system(generator, device):
    return systems([4], generator, device)


def as_many_as_unknowns(generator, device):
    return systems([3, 3, 3], generator, device)


def double_systems(generator, device):
    return systems([6, 1, 9, 1, 6, 2, 9, 9], generator, device, torch.float64)


check(solve_all, like=solve_all_slow, on=[one_system, as_many_as_unknowns, double_systems], points=2)
### END HIDDEN TESTS

# %% id="solve_all_race" role="test"
race(solve_all, against=solve_all_slow, on=many_systems, at_least={"cpu": 4.5}, points=2)

# %% [markdown]
# ## 3. Sixteen trainings in one
#
# *Hard, 25 minutes.* Which learning rate is the best one? Somebody trains the same small network with many rates, one after
# the other. Write `sweep(inputs, targets, firsts, seconds, rates, limit, steps)`, which trains all at once.
#
# - `inputs`: `(N, D)`; `targets`: `(N, C)`: the same for all *K* networks. `firsts`: `(K, D, H)`; `seconds`: `(K, H, C)`: the
#   weights that each begins with. `rates`: `(K,)`. All of one type and on one device; all sizes are at least 1. `limit`: a
#   number above 0; `steps`: a whole number, 0 or more.
# - Network *k* gives `torch.tanh(inputs @ first) @ second`. Its error is the mean of the squared differences to `targets`.
# - A step of network *k*: the gradients of its error; their length, the root of the sum of the squares of all numbers in
#   both; where it is above `limit`, both are multiplied by `limit / length`; then each weight becomes
#   `weight - rates[k] * gradient`.
# - returns: the weights after the last step, `(K, D, H)` and `(K, H, C)`, and the errors, each from before its step,
#   `(steps, K)`. The weights share no memory with what was given.


# %% id="sweep_given" role="given"
def sweep_slow(inputs, targets, firsts, seconds, rates, limit, steps):
    ends, errors = [], []
    for first, second, rate in zip(firsts, seconds, rates, strict=True):
        history = []
        for _ in range(steps):
            first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
            error = (torch.tanh(inputs @ first) @ second - targets).square().mean()
            slopes = torch.autograd.grad(error, (first, second))
            length = (slopes[0].square().sum() + slopes[1].square().sum()).sqrt()
            factor = rate * (limit / length).clamp(max=1)
            first, second = first - factor * slopes[0], second - factor * slopes[1]
            history.append(error.detach())
        ends.append((first.detach().clone(), second.detach().clone()))
        errors.append(torch.stack(history) if history else inputs.new_zeros(0))
    return *(torch.stack(weights) for weights in zip(*ends, strict=True)), torch.stack(errors, 1)


def trainings(number, rows, sizes, limit, steps, generator, device, dtype=torch.float32):
    width, hidden, classes = sizes
    shapes = (rows, width), (rows, classes), (number, width, hidden), (number, hidden, classes)
    tensors = [torch.randn(shape, generator=generator, dtype=dtype).to(device) for shape in shapes]
    rates = torch.logspace(-3, -0.5, number, dtype=dtype).to(device)
    return *tensors, rates, limit, steps


def a_few_trainings(generator, device):
    return trainings(4, 6, (3, 5, 2), 0.7, 5, generator, device)


def nothing_to_clip(generator, device):
    return trainings(3, 5, (2, 4, 1), 1000.0, 4, generator, device)


def no_steps(generator, device):
    return trainings(3, 4, (3, 2, 2), 1.0, 0, generator, device)


def sixteen_trainings(generator, device):
    return trainings(16, 16, (8, 16, 4), 0.5, 4, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>A product of a table with a stack of tables is a stack of products: the networks can be
# one more dimension in front.</details>
# <details><summary>Hint 2</summary>Autograd wants one number. Which number has, as its gradient with respect to one network's
# weights, just the gradient of this network's error?</details>
# <details><summary>Hint 3</summary>Lengths, factors and rates are one number for each network. To multiply a stack of tables
# they need two more dimensions behind.</details>
# <details><summary>Hint 4</summary>Or go back by hand: two layers need no autograd.</details>


# %% id="sweep" role="answer"
def sweep(inputs, targets, firsts, seconds, rates, limit, steps):
    ### BEGIN SOLUTION
    firsts, seconds = firsts.detach().clone(), seconds.detach().clone()
    history = inputs.new_zeros(steps, len(rates))
    for step in range(steps):
        firsts.requires_grad_(), seconds.requires_grad_()
        differences = torch.tanh(inputs @ firsts) @ seconds - targets
        each = differences.square().mean((1, 2))
        uphill = torch.autograd.grad(each.sum(), (firsts, seconds))
        with torch.no_grad():
            lengths = sum(one.square().sum((1, 2)) for one in uphill).sqrt()
            factors = (rates * (limit / lengths).clamp(max=1))[:, None, None]
            firsts = torch.addcmul(firsts, factors, uphill[0], value=-1)
            seconds = torch.addcmul(seconds, factors, uphill[1], value=-1)
            history[step] = each
    return firsts, seconds, history
    ### END SOLUTION


# %% id="sweep_check" role="test"
check(
    sweep,
    like=sweep_slow,
    on=[a_few_trainings, nothing_to_clip, no_steps],
    tolerance=1e-3,
    shares=False,
    points=1,
)


# %% id="sweep_hidden" role="test"
# Hidden test: one network, sizes of 1, other limits, no step, float64. 3 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_training(generator, device):
    return trainings(1, 7, (4, 3, 2), 0.3, 6, generator, device)


def sizes_of_one(generator, device):
    return trainings(5, 1, (1, 1, 1), 0.5, 3, generator, device)


def double_trainings(generator, device):
    return trainings(6, 9, (5, 7, 3), 1.0, 6, generator, device, torch.float64)


check(
    sweep,
    like=sweep_slow,
    on=[one_training, sizes_of_one, double_trainings, no_steps],
    tolerance=1e-3,
    shares=False,
    points=3,
)
### END HIDDEN TESTS

# %% id="sweep_race" role="test"
race(sweep, against=sweep_slow, on=sixteen_trainings, at_least={"cpu": 4}, tolerance=1e-3, points=3)

# %% [markdown]
# ## 4. A forest
#
# *Medium, 20 minutes.* A forest of decision trees says a number for each sample: the mean of what its trees say. The given
# version walks each sample down each tree. Write `forest(x, feature, threshold, left, right, value, depth)`.
#
# - `x`: `(N, F)`, the samples; *N* is at least 1. There are *T* trees with *M* nodes each, some of them perhaps unused:
#   `feature`, `left`, `right`: `(T, M)`, `int64`; `threshold`, `value`: `(T, M)`, of the type of `x`. All on one device.
# - A walk begins at node 0. At a node whose `left` is -1 it ends: the tree says `value` there. At any other node it goes on
#   to `left` where `x[sample, feature] <= threshold`, and otherwise to `right`. So a NaN goes to the right.
# - `depth`: no walk takes more than so many steps; 0 or more. Most are shorter. Where `left` is -1, `feature`, `right` and
#   `threshold` may hold anything. (An unused node holds what a used one might.)
# - returns: `(N,)`, the mean over the trees.
# - No syncs.


# %% id="forest_given" role="given"
def forest_slow(x, feature, threshold, left, right, value, depth):
    trees = list(zip(feature.tolist(), threshold.tolist(), left.tolist(), right.tolist(), strict=True))
    means = []
    for sample in x:
        said = []
        for tree, (features, thresholds, lefts, rights) in enumerate(trees):
            node = 0
            while lefts[node] != -1:
                goes_left = sample[features[node]].item() <= thresholds[node]
                node = lefts[node] if goes_left else rights[node]
            said.append(value[tree, node])
        means.append(torch.stack(said).mean())
    return torch.stack(means)


def grow(trees, depth, features, samples, generator, device, dtype=torch.float32, missing=0.0):
    """A forest of trees that end early here and there, and its samples; a share of their numbers is NaN."""
    nodes = 2 ** (depth + 1) - 1
    feature, left, right = torch.full((3, trees, nodes), -1)
    for tree in range(trees):
        for node in range(2**depth - 1):
            if node == 0 or torch.rand((), generator=generator) < 0.8:
                feature[tree, node] = torch.randint(features, (), generator=generator)
                left[tree, node], right[tree, node] = 2 * node + 1, 2 * node + 2
    ends = left == -1
    right.masked_fill_(ends, 10**6), feature.masked_fill_(ends, 10**6)
    threshold, value = torch.randn(2, trees, nodes, generator=generator, dtype=dtype) * 0.7
    x = torch.randn(samples, features, generator=generator, dtype=dtype)
    x.masked_fill_(torch.rand(x.shape, generator=generator) < missing, torch.nan)
    return *(tensor.to(device) for tensor in (x, feature, threshold, left, right, value)), depth


def small_forest(generator, device):
    return grow(3, 3, 4, 6, generator, device)


def forest_with_gaps(generator, device):
    return grow(2, 4, 3, 8, generator, device, missing=0.4)


def only_roots(generator, device):
    return grow(4, 0, 2, 3, generator, device)


def large_forest(generator, device):
    return grow(16, 5, 6, 60, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>All samples can take their step at the same time, and so can all trees. What do you have
# to know for each of these walks?</details>
# <details><summary>Hint 2</summary>A table of nodes, <code>(N, T)</code>. Chapter 10's <code>gather</code> reads at places
# that differ; an index with two tensors that broadcast does as well.</details>
# <details><summary>Hint 3</summary>A walk that has ended can go on taking steps, if each leads to where it is. Which numbers of
# a node at the end must not be used as an index?</details>


# %% id="forest" role="answer"
def forest(x, feature, threshold, left, right, value, depth):
    ### BEGIN SOLUTION
    count = feature.shape[1]
    ends = left == -1
    roots = torch.arange(len(feature), device=x.device)[:, None] * count
    here = roots + torch.arange(count, device=x.device)
    to_left = torch.where(ends, here, roots + left).flatten()
    to_right = torch.where(ends, here, roots + right).flatten()
    column, bound = feature.masked_fill(ends, 0).flatten(), threshold.flatten()
    walks = roots.T.expand(len(x), -1)
    for _ in range(depth):
        below = x.gather(1, column[walks]) <= bound[walks]
        walks = torch.where(below, to_left[walks], to_right[walks])
    return value.flatten()[walks].mean(1)
    ### END SOLUTION


# %% id="forest_check" role="test"
check(
    forest, like=forest_slow, on=[small_forest, forest_with_gaps, only_roots], at_most={"syncs": 0}, points=1
)


# %% id="forest_hidden" role="test"
# Hidden test: one sample, one tree, one column, float64, gaps. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def one_sample(generator, device):
    return grow(5, 4, 3, 1, generator, device, missing=0.3)


def one_tree(generator, device):
    return grow(1, 3, 1, 9, generator, device)


def double_forest(generator, device):
    return grow(4, 5, 7, 11, generator, device, torch.float64, missing=0.2)


check(forest, like=forest_slow, on=[one_sample, one_tree, double_forest], at_most={"syncs": 0}, points=2)
### END HIDDEN TESTS

# %% id="forest_race" role="test"
race(forest, against=forest_slow, on=large_forest, at_least={"cpu": 8}, points=3)

# %% [markdown]
# ## 5. A recurrence without its thousand steps
#
# *Hard, 35 minutes.* Each state is made of the one before it: `state[t] = keep[t] * state[t - 1] + new[t]`, from a state of 0.
# (Many models of sequences have such a layer.) It looks as if one step had to wait for the other. Write
# `recurrence(keep, new)`.
#
# - `keep` and `new`: `(T, D)`, of one type and on one device; *T* and *D* are at least 1. Numbers in `keep` lie between -1
#   and 1, and may be 0.
# - returns: all states, `(T, D)`.
# - Gradients reach `keep` and `new`.


# %% id="recurrence_given" role="given"
def recurrence_slow(keep, new):
    state, states = torch.zeros_like(new[0]), []
    for kept, added in zip(keep.unbind(), new.unbind(), strict=True):
        state = kept * state + added
        states.append(state)
    return torch.stack(states)


def sequences(length, width, zeros, generator, device, dtype=torch.float32):
    keep = torch.rand(length, width, generator=generator, dtype=dtype) * 2 - 1
    keep = keep.masked_fill(torch.rand(length, width, generator=generator) < zeros, 0)
    new = torch.randn(length, width, generator=generator, dtype=dtype)
    return keep.to(device), new.to(device)


def short_sequence(generator, device):
    return sequences(8, 3, 0, generator, device)


def sequence_with_zeros(generator, device):
    return sequences(21, 4, 0.3, generator, device)


def slowly_fading(generator, device):
    _, new = sequences(50, 2, 0, generator, device)
    return torch.full_like(new, 0.99), new


def one_state(generator, device):
    return sequences(1, 2, 0, generator, device)


def a_thousand_states(generator, device):
    return sequences(1000, 8, 0.01, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>A product of all <code>keep</code> so far, and a division by it, is a famous way. What does it
# do with a zero, and what is a product of a thousand numbers below 1?</details>
# <details><summary>Hint 2</summary>Two steps together are one step of the same form: <code>keep</code> and <code>new</code> of the
# pair can be computed from those of the two, for all neighbouring pairs at once.</details>
# <details><summary>Hint 3</summary>Another way is to keep all places. When each knows what the last 2 steps do together, what do
# you get from a place and the one two before it? And after that?</details>
# <details><summary>Hint 4</summary>The first places have nobody that far before them: they are done already. Autograd wants old
# values to stay, so make new tensors at each level.</details>


# %% id="recurrence" role="answer"
def recurrence(keep, new):
    ### BEGIN SOLUTION
    reach, length = 1, len(new)
    while reach < length:
        added = torch.addcmul(new[reach:], keep[reach:], new[:-reach])
        new = torch.cat([new[:reach], added])
        if 2 * reach < length:
            keep = torch.cat([keep[:reach], keep[reach:] * keep[:-reach]])
        reach *= 2
    return new.clone() if length == 1 else new
    ### END SOLUTION


# %% id="recurrence_check" role="test"
check(
    recurrence,
    like=recurrence_slow,
    on=[short_sequence, sequence_with_zeros, slowly_fading, one_state],
    gradients=True,
    tolerance=1e-3,
    points=2,
)


# %% id="recurrence_hidden" role="test"
# Hidden test: lengths around powers of two, only zeros, a long sequence, float64. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def length_of_two(generator, device):
    return sequences(2, 3, 0, generator, device)


def length_of_sixty_four(generator, device):
    return sequences(64, 2, 0.1, generator, device)


def only_zeros(generator, device):
    return sequences(9, 2, 1.1, generator, device)


def long_double_sequence(generator, device):
    return sequences(333, 5, 0.05, generator, device, torch.float64)


check(
    recurrence,
    like=recurrence_slow,
    on=[length_of_two, length_of_sixty_four, only_zeros, long_double_sequence],
    gradients=True,
    tolerance=1e-3,
    points=2,
)
### END HIDDEN TESTS

# %% id="recurrence_race" role="test"
race(recurrence, against=recurrence_slow, on=a_thousand_states, at_least={"cpu": 7}, tolerance=1e-3, points=3)

# %% [markdown]
# ## 6. Foretell the costs
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
def polynomial(x):
    return (x * 3 + 2).mul_(x).add_(1)


def masked(x):
    later = torch.ones(len(x), len(x), dtype=torch.bool).triu_(1)
    return (x @ x.T).masked_fill_(later, -torch.inf)


def lengths(x):
    return torch.stack([row.norm() for row in x]).max()


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (polynomial, masked, lengths)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>polynomial</code> is of chapter 13, <code>masked</code> is of chapter 16,
# <code>lengths</code> is of chapter 18.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(lengths, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "polynomial": {"operations": 4, "bytes": 8 * n * d, "syncs": 0},
        "masked": {"operations": 4, "bytes": n * n + 4 * n * n, "syncs": 0},
        "lengths": {"operations": n + 2, "bytes": 8 * n + 4, "syncs": 0},
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

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
