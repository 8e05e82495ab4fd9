# %% [markdown]
# # Exercises 13 · The CPU
#
# Five functions. Each is given in a version that is right and slow, or right and large. Write one that is fast,
# and small where it is asked for. The last one you may want to keep.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on one thread of this machine, now. Hidden tests run when your notebook is graded: other
# shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# Do it without `torch.compile`: it starts processes, and a race allows none. Gradients are asked for only where a task
# says so.
# The chapter is [here](../../course/13_cpu.ipynb). 37 points, about 102 minutes.

# %% id="setup" role="given"
from itertools import pairwise

import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. A polynomial
#
# *Easy, 8 minutes.* Write `polynomial(coefficients, x)`.
#
# - `coefficients`: list of one or more numbers *c₀, c₁, c₂, …*
# - `x`: tensor of any shape, `float32` or `float64`, on any device. All its numbers are finite.
# - returns: a new tensor with the values *c₀ + c₁x + c₂x² + …*, of the shape and type of `x`, on its device.
# - An empty list must raise `ValueError`. `x` must be left as it is.
# - Memory: for 1,000,000 numbers in `float32`, at most 5.6 MB of new memory at once. The result has 4 MB.


# %% id="polynomial_given" role="given"
def polynomial_slow(coefficients, x):
    if not coefficients:
        raise ValueError("a polynomial needs one coefficient or more")
    total = torch.zeros_like(x)
    for power, coefficient in enumerate(coefficients):
        total = total + coefficient * x**power
    return total


def degree_eleven(generator, device):
    coefficients = (torch.rand(12, generator=generator) - 0.5).tolist()
    return coefficients, torch.rand(100_000, generator=generator).to(device) * 2 - 1


def many_numbers(generator, device):
    return [0.5, -1.0, 0.25, 2.0], torch.rand(1_000_000, generator=generator).to(device)


def constant_table(generator, device):
    return [2.5], torch.rand(4, 3, generator=generator).to(device)


def no_coefficients(generator, device):
    return [], torch.rand(5, generator=generator).to(device)


# %% [markdown]
# <details><summary>Hint 1</summary>A power is expensive, and nearly the same power was computed in the round
# before. Can a bracket avoid all powers? Write <em>a + bx + cx²</em> with two products.</details>
# <details><summary>Hint 2</summary>That is Horner's rule. The formula in section 6 of the chapter has this form.
# It starts with the <em>last</em> coefficient.</details>
# <details><summary>Hint 3</summary>Section 6 also has methods that overwrite a tensor. Overwrite one of your own,
# not <code>x</code>.</details>


# %% id="polynomial" role="answer"
def polynomial(coefficients, x):
    ### BEGIN SOLUTION
    if not coefficients:
        raise ValueError("a polynomial needs one coefficient or more")
    total = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total.mul_(x).add_(coefficient)
    return total
    ### END SOLUTION


# %% id="polynomial_check" role="test"
check(polynomial, like=polynomial_slow, on=[degree_eleven, constant_table], points=1)

# %% id="polynomial_empty" role="test"
check(polynomial, like=polynomial_slow, on=no_coefficients, raises=ValueError, points=1)

# %% id="polynomial_memory" role="test"
check(polynomial, like=polynomial_slow, on=many_numbers, peak=5_600_000, points=1)


# %% id="polynomial_hidden" role="test"
# Hidden test: a single coefficient, other shapes, float64, no numbers at all. 1 point, when graded.
### BEGIN HIDDEN TESTS
def line_in_double(generator, device):
    return [1, -2], torch.randn(2, 3, 5, generator=generator, dtype=torch.float64).to(device)


def with_a_zero(generator, device):
    return [0.5, 0.0, -1.0, 0.25], torch.randn(33, generator=generator).to(device)


def no_numbers(generator, device):
    return [1.0, 2.0], torch.zeros(0, 7, device=device)


check(
    polynomial,
    like=polynomial_slow,
    on=[constant_table, line_in_double, with_a_zero, no_numbers],
    points=1,
)
### END HIDDEN TESTS

# %% id="polynomial_race" role="test"
race(polynomial, against=polynomial_slow, on=degree_eleven, at_least={"cpu": 7}, points=2)

# %% [markdown]
# ## 2. Three classes
#
# *Hard, 22 minutes.* A network gives each pixel of a picture a score for each of a few classes. To make the classes
# comparable, the scores of a class are multiplied by a number and moved by another one (*vector scaling*). Then the
# pixel gets the class with the highest score. The given version is two lines of PyTorch: no loop, no copy, contiguous
# memory. And it is slow. Find out which part of it is, and why. Then write `most_probable(scores, scale, shift)`.
#
# - `scores`: tensor of shape `(N, K)`, `float32` or `float64`: *N* pixels, *K* classes. *K* is from 1 to 20; *N* may
#   be 0. `scale`, `shift`: tensors of shape `(K,)`, of the same type. All are on the same device.
# - returns: `int64` tensor of shape `(N,)` on that device: for each pixel the number of the class whose
#   `scale * scores + shift` is highest. In all tests one class is higher than the others, for each pixel, and by more
#   than rounding may change.
# - `shift` may be `-inf` for some classes, but not for all: such a class is never chosen.
#
# The obvious way earns a part of the race's points, or none. Measure.


# %% id="most_probable_given" role="given"
def most_probable_slow(scores, scale, shift):
    scores = scale * scores + shift
    return scores.argmax(1)


def some_scores(number, classes, generator, device, dtype=torch.float32):
    # Multiples of powers of two, so that nothing is rounded, and no two classes of a pixel come out equal.
    scores = torch.randint(-160, 161, (number, classes), generator=generator) / 64
    scale = torch.randint(4, 13, (classes,), generator=generator) / 8
    shift = torch.randint(-512, 513, (classes,), generator=generator) / 512 + torch.arange(classes) / 2**14
    return tuple(tensor.to(device, dtype) for tensor in (scores, scale, shift))


def many_pixels(generator, device):
    return some_scores(200_000, 3, generator, device)


def far_scores(generator, device):
    scores, scale, shift = some_scores(50, 4, generator, device)
    scores += torch.randint(-100, 101, (50, 1), generator=generator).to(device)
    return scores, torch.ones_like(scale), shift


def a_class_ruled_out(generator, device):
    scores, scale, shift = some_scores(70, 5, generator, device)
    shift[1] = -torch.inf
    return scores, scale, shift


def no_pixels(generator, device):
    return some_scores(0, 3, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Two lines, three operations. Time each of them alone, and then what you would put in
# its place.</details>
# <details><summary>Hint 2</summary>Section 3 of the chapter says what a vector instruction needs. The three numbers
# of a pixel are neighbours, but they are only three. Which numbers are treated alike, and could be neighbours?</details>
# <details><summary>Hint 3</summary>Turn the scores over so that each class is one long row in memory. Then time,
# in both orders, the search for <em>where</em> the highest is (<code>argmax</code>) and for <em>how high</em> it
# is (<code>amax</code>). Which of the four is much faster than the others?</details>
# <details><summary>Hint 4</summary>Comparisons and maxima have vector instructions. How do you get from the highest
# score to its class with nothing else? A vector instruction takes the more numbers, the smaller their type. How many
# bytes does the number of a class need on the way?</details>
# <details><summary>Hint 5</summary>And the turning itself? A copy is one pass and the arithmetic two more. But what is
# computed from a column with gaps has no gaps. Which operation of section 7 does all the arithmetic of a class in one
# pass? So no table is needed at all: class by class, carry the highest so far and its number.</details>


# %% id="most_probable" role="answer"
def most_probable(scores, scale, shift):
    ### BEGIN SOLUTION
    label = torch.zeros(len(scores), dtype=torch.uint8, device=scores.device)
    highest = torch.addcmul(shift[0], scale[0], scores[:, 0])
    other, higher = torch.empty_like(highest), torch.empty_like(label, dtype=torch.bool)
    for number in range(1, scores.shape[1]):
        torch.addcmul(shift[number], scale[number], scores[:, number], out=other)
        torch.gt(other, highest, out=higher)
        torch.maximum(label, higher.view(torch.uint8).mul_(number), out=label)
        torch.maximum(highest, other, out=highest)
    return label.long()
    ### END SOLUTION


# %% id="most_probable_check" role="test"
check(
    most_probable,
    like=most_probable_slow,
    on=[many_pixels, far_scores, a_class_ruled_out, no_pixels],
    points=1,
)


# %% id="most_probable_hidden" role="test"
# Hidden test: one class, twenty, one pixel, float64, several classes ruled out. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_class(generator, device):
    return some_scores(33, 1, generator, device)


def twenty_classes(generator, device):
    scores, scale, shift = some_scores(650, 20, generator, device)
    shift[::3] = -torch.inf
    return scores, scale, shift


def only_the_first(generator, device):
    scores, scale, shift = some_scores(9, 6, generator, device)
    shift[1:] = -torch.inf
    return scores, scale, shift


def one_pixel(generator, device):
    return some_scores(1, 4, generator, device)


def in_doubles(generator, device):
    scores, scale, shift = some_scores(21, 3, generator, device, dtype=torch.float64)
    return scores, scale, shift - 150


check(
    most_probable,
    like=most_probable_slow,
    on=[one_class, twenty_classes, only_the_first, one_pixel, in_doubles, far_scores],
    points=2,
)
### END HIDDEN TESTS

# %% id="most_probable_race" role="test"
race(most_probable, against=most_probable_slow, on=many_pixels, at_least={"cpu": 1.9}, points=3)

# %% [markdown]
# ## 3. One matrix, many small changes
#
# *Medium, 15 minutes.* A large language model is adapted to a user by a small change of its matrices: *up · down*,
# where *up* has a few columns and *down* a few rows (*LoRA*). A server holds the changes of several users, and a batch
# holds questions of all of them. Write `adapted(matrix, ups, downs, which, vectors)`.
#
# - `matrix`: tensor of shape `(A, B)`. `ups`: `(K, A, R)`. `downs`: `(K, R, B)`. `vectors`: `(N, B)`. All are
#   `float32` or all `float64`; all numbers are finite. `which`: `int64` tensor of shape `(N,)` with numbers from -1 to
#   *K* - 1. All are on the same device. *N* and *K* may be 0.
# - returns: tensor of shape `(N, A)` of that type on that device. Row *i* is `(matrix + ups[k] @ downs[k]) @
#   vectors[i]`, where *k* is `which[i]`; and `matrix @ vectors[i]` where *k* is -1.
# - Gradients: autograd must find those of the given version, for `matrix`, `ups`, `downs` and `vectors`.


# %% id="adapted_given" role="given"
def adapted_slow(matrix, ups, downs, which, vectors):
    results = []
    for k, vector in zip(which.tolist(), vectors, strict=True):
        changed = matrix if k < 0 else matrix + ups[k] @ downs[k]
        results.append(changed @ vector)
    return torch.stack(results) if results else vectors.new_empty(0, len(matrix))


def changes(number, users, rank, rows, columns, generator, device):
    matrix = torch.randn(rows, columns, generator=generator) / columns**0.5
    ups = torch.randn(users, rows, rank, generator=generator) / 2
    downs = torch.randn(users, rank, columns, generator=generator) / columns**0.5
    which = torch.randint(-1, users, (number,), generator=generator)
    vectors = torch.randn(number, columns, generator=generator)
    return tuple(tensor.to(device) for tensor in (matrix, ups, downs, which, vectors))


def a_batch(generator, device):
    return changes(200, 6, 4, 256, 256, generator, device)


def few_questions(generator, device):
    return changes(12, 3, 2, 7, 10, generator, device)


def no_users(generator, device):
    return changes(5, 0, 2, 4, 6, generator, device)


def no_questions(generator, device):
    return changes(0, 2, 3, 4, 6, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>The given version makes a whole matrix for each question. Put the brackets in
# another way. How many multiplications does each way take?</details>
# <details><summary>Hint 2</summary>What is left has one large part that is the same for all questions. Section 5 of the
# chapter has met it: how often must the matrix travel?</details>
# <details><summary>Hint 3</summary>The small parts differ from question to question. A loop over the questions is long.
# Which loop is shorter? Or can all questions meet the changes of <em>all</em> users, in one product, and what does not
# belong to them be set to 0 in between?</details>
# <details><summary>Hint 4</summary>All <code>downs</code> one below the other are one matrix of K · R rows; all
# <code>ups</code> side by side are one of K · R columns. Between the two stands a table of shape (N, K, R), of which
# each question keeps at most one row of K. A comparison of <code>which</code> with <code>torch.arange</code> says
# which, and -1 fits none.</details>


# %% id="adapted" role="answer"
def adapted(matrix, ups, downs, which, vectors):
    ### BEGIN SOLUTION
    users, rows, rank = ups.shape
    small = (vectors @ downs.flatten(0, 1).T).view(len(vectors), users, rank)
    own = which[:, None] == torch.arange(users, device=which.device)
    side_by_side = ups.transpose(1, 2).reshape(users * rank, rows)
    return torch.addmm(vectors @ matrix.T, (small * own[:, :, None]).flatten(1), side_by_side)
    ### END SOLUTION


# %% id="adapted_check" role="test"
check(adapted, like=adapted_slow, on=[a_batch, few_questions, no_users, no_questions], points=1)

# %% id="adapted_gradients" role="test"
check(adapted, like=adapted_slow, on=few_questions, gradients=True, points=1)


# %% id="adapted_hidden" role="test"
# Hidden test: one user, one question, nobody with a change, float64, gradients. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_user(generator, device):
    return changes(9, 1, 1, 5, 3, generator, device)


def one_question(generator, device):
    return changes(1, 4, 2, 3, 8, generator, device)


def nobody_changed(generator, device):
    matrix, ups, downs, which, vectors = changes(6, 2, 2, 4, 5, generator, device)
    return matrix, ups, downs, which.fill_(-1), vectors


def double_changes(generator, device):
    given = changes(30, 5, 3, 9, 11, generator, device)
    return tuple(tensor.double() if tensor.is_floating_point() else tensor for tensor in given)


check(
    adapted,
    like=adapted_slow,
    on=[one_user, one_question, nobody_changed, double_changes],
    gradients=True,
    points=2,
)
### END HIDDEN TESTS

# %% id="adapted_race" role="test"
race(adapted, against=adapted_slow, on=a_batch, at_least={"cpu": 4.5, "cuda": 20}, points=3)

# %% [markdown]
# ## 4. A chain of matrices
#
# *Hard, 22 minutes.* The brackets in *ABC* do not change the result, but they change the work. Write
# `product(factors)`.
#
# - `factors`: list of tensors, all `float32` or all `float64`, on the same device. A factor of two dimensions is a
#   matrix. A factor of one dimension and length *n* stands for the diagonal matrix of *n* rows with these numbers. At
#   least one factor is a matrix.
# - returns: the matrix product of all factors, from the first to the last. Where the list is a single matrix, return
#   it; it need not be a copy.
# - A list without a matrix must raise `ValueError`. Factors whose sizes do not fit must raise `ValueError` or
#   `RuntimeError`: the columns of each must be as many as the rows of the next.
# - The order in which you multiply must be the best one for the sizes. The test *order* has a chain where neither "from
#   the left" nor "from the right" is best, and one where all sizes but the last are equal; a hidden one has more. They
#   allow 20 kB of new memory, in all.
#
# The race has a long chain. The obvious way earns a part of its points, or none. Measure.


# %% id="product_given" role="given"
def product_slow(factors):
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("a product needs one matrix or more")
    result = None
    for factor in factors:
        matrix = torch.diag(factor) if factor.ndim == 1 else factor
        result = matrix if result is None else result @ matrix
    return result


def chain(sizes, diagonals, generator, device):
    """Matrices from size to size; a diagonal before the matrices whose places are in ``diagonals``."""
    factors = []
    for place, (rows, columns) in enumerate(pairwise(sizes)):
        if place in diagonals:
            factors.append(torch.rand(rows, generator=generator) + 0.5)
        factors.append(torch.randn(rows, columns, generator=generator) / rows**0.5)
    return ([factor.to(device) for factor in factors],)


def narrow_at_the_end(generator, device):
    return chain([320, 320, 320, 320, 320, 2], {1, 3}, generator, device)


def only_the_end_is_narrow(generator, device):
    return chain([320, 320, 320, 320, 320, 2], (), generator, device)


def narrow_in_the_middle(generator, device):
    return chain([40, 300, 2, 300, 40], {1, 3}, generator, device)


def narrow_in_a_long_chain(generator, device):
    return chain([192] * 12 + [2] + [192] * 12, range(1, 24, 3), generator, device)


def diagonals_at_the_ends(generator, device):
    (factors,) = chain([6, 4, 5], {0}, generator, device)
    ends = [torch.rand(5, generator=generator).to(device) + 0.5 for _ in range(2)]
    return ([*factors, *ends],)


def one_matrix(generator, device):
    return chain([3, 4], (), generator, device)


def no_factors(generator, device):
    return ([],)


def only_diagonals(generator, device):
    return ([torch.rand(4, generator=generator).to(device) for _ in range(2)],)


def a_short_diagonal(generator, device):
    (factors,) = chain([3, 4, 5], (), generator, device)
    return ([factors[0], torch.ones(1, device=device), factors[1]],)


def a_long_diagonal(generator, device):
    (factors,) = chain([3, 4], (), generator, device)
    return ([torch.ones(5, device=device), *factors],)


# %% [markdown]
# <details><summary>Hint 1</summary>A product of (a × b) and (b × c) takes about 2abc operations. Compute the
# cost of both brackets for the sizes 320 × 320, 320 × 320, 320 × 2.</details>
# <details><summary>Hint 2</summary>A diagonal needs no matrix: it multiplies the rows of its right neighbour, or the
# columns of its left one. Which of the two has fewer numbers to multiply? (Rows of two numbers are slow, as in
# section 3; but so few of them cost next to nothing.) And what does broadcasting do with a diagonal of length
# 1?</details>
# <details><summary>Hint 3</summary>With the diagonals gone, the best brackets can be found from the sizes alone. This is
# a textbook example of dynamic programming. If you wrote it in Python: how long does it look for the brackets of the race,
# and how long does it multiply then?</details>
# <details><summary>Hint 4</summary>The steps of that search grow with the third power of the number of factors. In C++ they
# cost next to nothing, and somebody has written it: look into <code>torch.linalg</code>. That function wants two matrices
# or more.</details>


# %% id="product" role="answer"
def product(factors):
    ### BEGIN SOLUTION
    if all(factor.ndim == 1 for factor in factors):
        raise ValueError("a product needs one matrix or more")
    for left, right in pairwise(factors):
        if left.shape[-1] != right.shape[0]:
            raise ValueError(f"{tuple(left.shape)} and {tuple(right.shape)} do not fit")
    matrices, waiting = [], None
    for factor in factors:
        if factor.ndim == 1:
            waiting = factor if waiting is None else waiting * factor
            continue
        if waiting is not None and matrices and matrices[-1].numel() < factor.numel():
            matrices[-1] = matrices[-1] * waiting
        elif waiting is not None:
            factor = waiting[:, None] * factor
        matrices.append(factor)
        waiting = None
    if waiting is not None:
        matrices[-1] = matrices[-1] * waiting
    return torch.linalg.multi_dot(matrices) if len(matrices) > 1 else matrices[0]
    ### END SOLUTION


# %% id="product_check" role="test"
check(
    product,
    like=product_slow,
    on=[narrow_at_the_end, narrow_in_a_long_chain, diagonals_at_the_ends, one_matrix],
    points=1,
)

# %% id="product_bad" role="test"
check(product, like=product_slow, on=[no_factors, only_diagonals], raises=ValueError, points=0.5)

# %% id="product_sizes" role="test"
check(
    product,
    like=product_slow,
    on=[a_short_diagonal, a_long_diagonal],
    raises=(ValueError, RuntimeError),
    points=0.5,
)

# %% id="product_order" role="test"
cases = [narrow_in_the_middle, only_the_end_is_narrow]
check(product, like=product_slow, on=cases, at_most={"bytes": 20_000}, points=2)


# %% id="product_hidden" role="test"
# Hidden test: two matrices, many sizes, several diagonals in a row, float64, the best order. 1 point, when graded.
### BEGIN HIDDEN TESTS
def two_matrices(generator, device):
    return chain([2, 3, 1], (), generator, device)


def many_sizes(generator, device):
    sizes = torch.randint(1, 12, (8,), generator=generator).tolist()
    return chain(sizes, {0, 2, 3, 6}, generator, device)


def diagonals_in_a_row(generator, device):
    (factors,) = chain([5, 6, 2, 7], {1, 2}, generator, device)
    again = [torch.rand(6, generator=generator).to(device) + 0.5 for _ in range(2)]
    factors[1:1] = again
    return ([factor.double() for factor in factors],)


def one_row_and_column(generator, device):
    return chain([4, 1, 3], {1}, generator, device)


def narrow_in_two_places(generator, device):
    return chain([2, 300, 300, 300, 20, 300, 300], (), generator, device)


check(
    product,
    like=product_slow,
    on=[
        two_matrices,
        many_sizes,
        diagonals_in_a_row,
        one_row_and_column,
        diagonals_at_the_ends,
        narrow_in_two_places,
    ],
    at_most={"bytes": 20_000},
    points=1,
)
### END HIDDEN TESTS

# %% id="product_race" role="test"
race(product, against=product_slow, on=narrow_in_a_long_chain, at_least={"cpu": 2.4}, points=2)

# %% [markdown]
# ## 5. Build: a softmax over more words than fit
#
# *Hard, 25 minutes.* How well did a language model foretell the next word, and how sure was it? For that, each word of
# its vocabulary gets a score. With many states and many words, the table of all scores is the largest tensor of the
# whole training. Two versions are given. `loss_and_entropy_slow` takes one word at a time: little memory, much time.
# `loss_and_entropy_large` takes all words at once: little time, much memory. Write `loss_and_entropy(states, words,
# offsets, targets)`, which needs little of both.
#
# - `states`: tensor of shape `(N, D)`. `words`: `(V, D)`. `offsets`: `(V,)`. All are `float32` or all `float64`.
#   `targets`: `int64` tensor of shape `(N,)`, from 0 to *V* - 1. All are on the same device. *N* may be 0; *V* is at
#   least 2.
# - The score of word *j* in state *i* is the inner product of `states[i]` and `words[j]`, plus `offsets[j]`. An offset
#   may be `-inf`: this word is forbidden and has the probability 0. At least one word is allowed; a target is. The
#   other scores lie between -1000 and 1000.
# - returns: a tuple of two tensors of shape `(N,)`, of that type, on that device. With *p* for the softmax of a state's
#   scores, they are the loss, `-log(p[target])`, and the entropy, the sum of `-p * log(p)` over all words, in which a
#   *p* of 0 adds 0.
# - No gradients are needed.
# - Memory: at most 200 kB of new memory at once, for 64 states and 8,000 words as well as for one state and 20,000
#   words, in `float32`.


# %% id="loss_and_entropy_given" role="given"
def loss_and_entropy_slow(states, words, offsets, targets):
    highest = states.new_full((len(states),), -torch.inf)
    for i in range(len(words)):
        highest = torch.maximum(highest, states @ words[i] + offsets[i])
    total, mean = torch.zeros_like(highest), torch.zeros_like(highest)
    for i in range(len(words)):
        score = states @ words[i] + offsets[i]
        weight = (score - highest).exp()
        total = total + weight
        mean = mean + torch.where(weight > 0, weight * score, 0)
    logarithm = highest + total.log()
    own = (states * words[targets]).sum(1) + offsets[targets]
    return logarithm - own, logarithm - mean / total


def loss_and_entropy_large(states, words, offsets, targets):
    logs = torch.log_softmax(states @ words.T + offsets, 1)
    p = logs.exp()
    entropy = -torch.where(p > 0, p * logs, 0).sum(1)
    return -logs.gather(1, targets[:, None])[:, 0], entropy


def vocabulary(number, of_words, length, generator, device, forbidden=(), dtype=torch.float32):
    states = torch.randn(number, length, generator=generator, dtype=dtype)
    words = torch.randn(of_words, length, generator=generator, dtype=dtype) * 2 / length**0.5
    offsets = torch.randn(of_words, generator=generator, dtype=dtype)
    targets = torch.randint(of_words, (number,), generator=generator)
    own = offsets[targets]
    for start, end in forbidden:
        offsets[start:end] = -torch.inf
    offsets[targets] = own
    return tuple(tensor.to(device) for tensor in (states, words, offsets, targets))


def some_words(generator, device):
    return vocabulary(20, 300, 8, generator, device)


def many_forbidden(generator, device):
    return vocabulary(3, 30_000, 2, generator, device, forbidden=[(0, 29_900)])


def far_from_zero(generator, device):
    states, words, offsets, targets = vocabulary(9, 250, 8, generator, device)
    return states, words, offsets + 960, targets


def no_states(generator, device):
    return vocabulary(0, 10, 4, generator, device)


def many_states(generator, device):
    return vocabulary(64, 8000, 32, generator, device)


def one_state_many_words(generator, device):
    return vocabulary(1, 20_000, 4, generator, device)


def a_thousand_words(generator, device):
    return vocabulary(64, 1000, 32, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Section 9 of the chapter works in blocks. Of what: of states or of words? With one
# state and 20,000 words there is not much to choose.</details>
# <details><summary>Hint 2</summary>What must be carried from one block of words to the next? It must be possible to make
# it for a block alone, and to put two of them together. <code>loss_and_entropy_slow</code> shows which three numbers are
# enough for each state; but it knows the highest score of all words before it begins.</details>
# <details><summary>Hint 3</summary>You know the highest score of the words <em>so far</em>. All weights so far were made
# with it. When a later block has a higher one, all of them shrink by one common factor. Which one? What does that do to
# the two sums?</details>
# <details><summary>Hint 4</summary>The difference of two -inf is NaN, and so is 0 times -inf. Where can they come
# up: in a block in which all words are forbidden, and in which sum? The other scores cannot be below -1000. So the
# <em>scores</em> may be clamped, at a finite number that is as good as -inf beside them. At which?</details>
# <details><summary>Hint 5</summary>The length of a block: what may it depend on, if the memory must stay the same for
# 1 state and for 64? <code>costs(...).peak_bytes</code> counts. To overwrite a table of your own (section 6) saves some
# of it.</details>


# %% id="loss_and_entropy" role="answer"
def loss_and_entropy(states, words, offsets, targets):
    ### BEGIN SOLUTION
    forbidden = -10_000.0  # as good as -inf beside scores from -1000 on, and finite
    length = max(1, 10_000 // max(1, len(states)))
    highest = states.new_full((len(states), 1), forbidden)
    total, mean = torch.zeros_like(highest), torch.zeros_like(highest)
    for some, of_some in zip(words.split(length), offsets.split(length), strict=True):
        scores = torch.addmm(of_some, states, some.T).clamp_(min=forbidden)
        before, highest = highest, torch.maximum(highest, scores.amax(1, keepdim=True))
        weights, shrink = (scores - highest).exp_(), (before - highest).exp_()
        total = total * shrink + weights.sum(1, keepdim=True)
        mean = mean * shrink + weights.mul_(scores).sum(1, keepdim=True)
    logarithm = (highest + total.log())[:, 0]
    own = (states * words[targets]).sum(1) + offsets[targets]
    return logarithm - own, logarithm - (mean / total)[:, 0]
    ### END SOLUTION


# %% id="loss_and_entropy_check" role="test"
check(
    loss_and_entropy,
    like=loss_and_entropy_large,
    on=[some_words, many_forbidden, far_from_zero, no_states],
    tolerance=5e-4,
    points=2,
)

# %% id="loss_and_entropy_memory" role="test"
# How much new memory is alive at once? Points grow from none, for as much as loss_and_entropy_large, to all. The
# worse of the two cases counts.
check(
    loss_and_entropy,
    like=loss_and_entropy_large,
    on=[many_states, one_state_many_words],
    peak=200_000,
    tolerance=5e-4,
    points=3,
)


# %% id="loss_and_entropy_hidden" role="test"
# Hidden test: two words, forbidden words in several places, scores far below 0, float64. 2 points, when graded.
### BEGIN HIDDEN TESTS
def two_words(generator, device):
    return vocabulary(30, 2, 3, generator, device)


def forbidden_in_places(generator, device):
    return vocabulary(4, 70_001, 3, generator, device, forbidden=[(100, 34_000), (34_500, 70_001)])


def far_below_zero(generator, device):
    states, words, offsets, targets = vocabulary(7, 513, 5, generator, device)
    return states, words, offsets - 960, targets


def double_words(generator, device):
    forbidden = [(0, 5), (90, 101)]
    return vocabulary(11, 101, 6, generator, device, forbidden, torch.float64)


check(
    loss_and_entropy,
    like=loss_and_entropy_large,
    on=[two_words, forbidden_in_places, far_below_zero, double_words, far_from_zero],
    tolerance=5e-4,
    points=2,
)
### END HIDDEN TESTS

# %% id="loss_and_entropy_race" role="test"
race(
    loss_and_entropy,
    against=loss_and_entropy_slow,
    on=a_thousand_words,
    at_least={"cpu": 12, "cuda": 30},
    tolerance=5e-4,
    points=2,
)

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
def bucket(x):
    return torch.cat([row.reshape(-1) for row in x]).div_(4)


def layer(x):
    weights, bias = torch.ones(3, x.shape[1]), torch.ones(3)
    return F.linear(x, weights, bias).relu_()


def polynomial(x):
    return (x * 3 + 2).mul_(x).add_(1)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (bucket, layer, polynomial)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>bucket</code> is of chapter 08, <code>layer</code> is of chapter 11,
# <code>polynomial</code> is of chapter 13.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(polynomial, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "bucket": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
        "layer": {"operations": 4, "bytes": 12 * d + 12 + 12 * n, "syncs": 0},
        "polynomial": {"operations": 4, "bytes": 8 * n * d, "syncs": 0},
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
