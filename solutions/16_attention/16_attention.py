# %% [markdown]
# # Exercises 16 · Attention
#
# Four functions and a class for attention. Each is given in a version that is right, and slow or large. Write a better
# one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. It tries every input in other memory layouts,
# too: numbers of a row apart, and `channels_last`. Some checks also count what your answer costs: its new memory in all,
# or the most at once. `race` times it against the given version, on this machine, now. Hidden tests run when your notebook
# is graded: other shapes and other random numbers.
#
# Keep the names. Helper functions and imports of your own are welcome, in the solution cell. Leave the tensors that you
# get as they are. Every function must work for `float32` and `float64`, and return the type that it was given.
# `costs`, which the chapter uses, counts what a call costs: `from autograder import costs`, then
# `print(costs(function, *inputs))`.
# The chapter is [here](../../course/16_attention.ipynb). 35 points, about 145 minutes.
# The limits of memory and time were set where attention on a CPU is one fused call, as in torch 2.6 and later.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. Two conventions, one call
#
# *Medium, 20 minutes.* A model with `nn.MultiheadAttention` moves to `scaled_dot_product_attention`. Its two masks come
# along, as they are. Write `attend_masked(query, key, value, padding, forbidden)`.
#
# - `query`: `(N, H, L, E)`. `key` and `value`: `(N, H, S, E)`. *N*, *H*, *L*, *S* and *E* are at least 1. All on one
#   device.
# - `padding`: boolean, `(N, S)`. `True`: nobody looks at this key of this text. `forbidden`: boolean, `(L, S)`. `True`:
#   in no text may this query look at this key.
# - returns: attention, `(N, H, L, E)`. A query that may look at no key at all gets zeros.
# - Gradients reach `query`, `key` and `value`. None of them is NaN, also where a query may look at nothing, in whatever
#   version of torch.
# - Memory: for *N* = 4, *H* = 8, *L* = *S* = 256, *E* = 16, at most 6 MB of new memory at once for all points, without
#   gradients. One table of all scores has 8.4 MB. That must hold for tensors of any layout, masks too: the numbers of a
#   row may lie apart. (The visible test below tries it.)


# %% id="attend_masked_given" role="given"
def attend_masked_slow(query, key, value, padding, forbidden):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    scores = scores.masked_fill(padding[:, None, None] | forbidden, -torch.inf)
    highest = scores.detach().amax(-1, keepdim=True).clamp(min=-1e9)
    weights = (scores - highest).exp()
    return (weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)) @ value


def masked_texts(number, heads, queries, keys, width, generator, device, dtype=torch.float32, share=0.3):
    """Random masks: a share of the keys is padding, a share of the pairs is forbidden."""
    padding = torch.rand(number, keys, generator=generator) < share
    forbidden = torch.rand(queries, keys, generator=generator) < share
    shapes = [(number, heads, length, width) for length in (queries, keys, keys)]
    tensors = [torch.randn(shape, generator=generator, dtype=dtype).to(device) for shape in shapes]
    return *tensors, padding.to(device), forbidden.to(device)


def some_texts(generator, device):
    return masked_texts(3, 2, 7, 9, 8, generator, device)


def a_text_of_padding(generator, device):
    *tensors, padding, forbidden = masked_texts(3, 2, 6, 6, 4, generator, device)
    padding[1], forbidden[2] = True, True
    return *tensors, padding, forbidden


def large_texts(generator, device):
    *tensors, padding, forbidden = masked_texts(4, 8, 256, 256, 16, generator, device)
    padding[1], forbidden[7] = True, True
    return *tensors, padding, forbidden


# %% [markdown]
# <details><summary>Hint 1</summary>Both masks say who is left out. Section 5 says what <code>attn_mask</code> wants. Can one
# mask say both?</details>
# <details><summary>Hint 2</summary>A query without any key: section 5 ends with advice on it. Which queries are they? Ask
# your mask before the call; change it for them; and clean up after the call.</details>
# <details><summary>Hint 3</summary>Too much memory in every layout? What is the same for all heads needs no dimension for
# heads in the mask: it can be one there. In some layouts only? Section 7 has a list of what loses the fused kernel. How
# large is a copy of <code>key</code>, beside a table of scores?</details>


# %% id="attend_masked" role="answer"
def attend_masked(query, key, value, padding, forbidden):
    ### BEGIN SOLUTION
    visible = ~(padding[:, None] | forbidden)
    alone = ~visible.any(-1, keepdim=True)
    visible |= alone
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=visible[:, None])
    return mixed.masked_fill(alone[:, None], 0)
    ### END SOLUTION


# %% id="attend_masked_check" role="test"
check(attend_masked, like=attend_masked_slow, on=[some_texts, a_text_of_padding], gradients=True, points=1)

# %% id="attend_masked_lean" role="test"
check(attend_masked, like=attend_masked_slow, on=large_texts, peak=6_000_000, points=3)


# %% id="attend_masked_hidden" role="test"
# Hidden test: one query and two keys, everything forbidden, float64; with gradients. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_query(generator, device):
    return masked_texts(1, 1, 1, 2, 3, generator, device, share=0)


def all_forbidden(generator, device):
    return masked_texts(2, 3, 4, 5, 2, generator, device, share=1.1)


def double_texts(generator, device):
    return masked_texts(2, 1, 5, 11, 6, generator, device, torch.float64, share=0.4)


check(
    attend_masked,
    like=attend_masked_slow,
    on=[one_query, all_forbidden, double_texts, a_text_of_padding],
    gradients=True,
    points=2,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A window
#
# *Medium, 30 minutes.* In a long text, each position looks at the last few only: itself and the `window - 1` positions
# before it. The given version computes all scores and hides most of them. Write `local(query, key, value, window)`.
#
# - `query`, `key`, `value`: `(N, H, L, E)` on one device; all sizes are at least 1. `window`: a whole number, at least
#   1; it may be larger than *L*, and need not divide it.
# - returns: `(N, H, L, E)`.
# - Memory: for *N* = 1, *H* = 2, *L* = 2,048, *E* = 32 and a window of 32, at most 8 MB of new memory at once for all
#   points. Each of the three tensors has 0.5 MB; the given version needs 55 MB.
# - No gradients are needed.


# %% id="local_given" role="given"
def local_slow(query, key, value, window):
    place = torch.arange(query.shape[2], device=query.device)
    back = place[:, None] - place
    return F.scaled_dot_product_attention(query, key, value, attn_mask=(back >= 0) & (back < window))


def a_long_text(number, heads, length, width, window, generator, device, dtype=torch.float32):
    shape = 3, number, heads, length, width
    return *torch.randn(shape, generator=generator, dtype=dtype).to(device), window


def a_window_of_8(generator, device):
    return a_long_text(2, 3, 40, 8, 8, generator, device)


def uneven_window(generator, device):
    return a_long_text(2, 2, 50, 4, 7, generator, device)


def larger_than_the_text(generator, device):
    return a_long_text(1, 2, 9, 4, 20, generator, device)


def two_thousand(generator, device):
    return a_long_text(1, 2, 2048, 32, 32, generator, device)


def a_thousand(generator, device):
    return a_long_text(1, 2, 1024, 32, 32, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Take a block of neighbouring queries. Which keys can any of them see? How many scores are
# there then in all, as blocks grow from one query to all of them?</details>
# <details><summary>Hint 2</summary>With blocks as long as the window, a block of queries sees two blocks of keys: its own
# and the one before. That can be a loop of calls: enough for the memory, but each call must be started, so the race may
# be lost with it. Or it can be one call for all blocks, as if they were texts.</details>
# <details><summary>Hint 3</summary>All at once, the blocks must be of one length: fill up the text, and cut the filling off
# the result. The first block has nothing before it: put something there that nobody may look at. Which dimension of the
# call takes the blocks?</details>
# <details><summary>Hint 4</summary>Queries: <code>(texts × heads, blocks, window, width)</code>; blocks stand where heads
# stood. Keys and values: the same with twice the window, each block behind the one before it. The mask is of
# <code>window × 2·window</code>, the same for all blocks but the first. A window larger than the text is the same as one of
# the text's length; and with a window of 1, does the cut still hold?</details>


# %% id="local" role="answer"
def local(query, key, value, window):
    ### BEGIN SOLUTION
    texts, heads, length, _ = query.shape
    window = min(window, length)
    more = -length % window
    blocks = (length + more) // window

    def cut(tensor):
        tensor = F.pad(tensor, (0, 0, window, more)).flatten(0, 1)
        return tensor.unfold(1, 2 * window, window).transpose(2, 3).contiguous()

    queries = F.pad(query, (0, 0, 0, more)).flatten(0, 1).unflatten(1, (blocks, window))
    place = torch.arange(2 * window, device=query.device)
    back = place[window:, None] - place
    allowed = ((back >= 0) & (back < window)).repeat(blocks, 1, 1)
    allowed[0, :, :window] = False
    mixed = F.scaled_dot_product_attention(queries, cut(key), cut(value), attn_mask=allowed[None])
    return mixed.reshape(texts, heads, blocks * window, -1)[:, :, :length]
    ### END SOLUTION


# %% id="local_check" role="test"
check(local, like=local_slow, on=[a_window_of_8, uneven_window, larger_than_the_text], points=1)

# %% id="local_lean" role="test"
check(local, like=local_slow, on=two_thousand, peak=8_000_000, points=2)


# %% id="local_hidden" role="test"
# Hidden test: a window of 1, a window of the text's length, one position, float64. 2 points, when graded.
### BEGIN HIDDEN TESTS
def window_of_one(generator, device):
    return a_long_text(2, 1, 6, 3, 1, generator, device)


def window_of_all(generator, device):
    return a_long_text(1, 3, 12, 5, 12, generator, device)


def one_position(generator, device):
    return a_long_text(3, 2, 1, 4, 2, generator, device)


def double_text(generator, device):
    return a_long_text(2, 2, 33, 6, 16, generator, device, torch.float64)


check(local, like=local_slow, on=[window_of_one, window_of_all, one_position, double_text], points=2)
### END HIDDEN TESTS

# %% id="local_race" role="test"
race(local, against=local_slow, on=a_thousand, at_least={"cpu": 3.4}, points=2)

# %% [markdown]
# ## 3. One beginning for all
#
# *Hard, 30 minutes.* A server answers many questions at once, and all begin with the same long text. The keys and values
# of that text are there once, for all, in pieces as they were made. Each question has a few keys and values of its own
# besides. The given version copies the common ones to each question. Write `answer_all(query, common_keys, common_values,
# key, value)`.
#
# - `query`: `(N, H, 1, E)`, the newest position of each of *N* questions. `key` and `value`: `(N, H, S, E)`, its own.
#   *S* may be 0.
# - `common_keys` and `common_values`: lists of as many tensors of shape `(H, P[k], E)`. The list may be empty, and so may
#   a piece of it. There is at least one key in all, common or own. All on one device.
# - returns: `(N, H, 1, E)`: each query looks at all common keys and at its own.
# - Scores (inner products divided by the square root of *E*) may lie anywhere between -1,000 and 1,000.
# - Memory: for *N* = 16, *H* = 4, *E* = 32, eight pieces of 512 and 16 keys of their own, at most 400 kB of new memory at
#   once for all points. The given version has 67 MB; all scores are one table of 1 MB.
# - No gradients are needed.


# %% id="answer_all_given" role="given"
def answer_all_slow(query, common_keys, common_values, key, value):
    for_each = [len(query), -1, -1, -1]
    keys = torch.cat([*(piece.expand(for_each) for piece in common_keys), key], dim=2)
    values = torch.cat([*(piece.expand(for_each) for piece in common_values), value], dim=2)
    return F.scaled_dot_product_attention(query, keys, values)


def questions(number, heads, width, pieces, own, generator, device, size=1.0, dtype=torch.float32):
    def numbers(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype).to(device)

    return (
        numbers(number, heads, 1, width) * size,
        [numbers(heads, length, width) for length in pieces],
        [numbers(heads, length, width) for length in pieces],
        numbers(number, heads, own, width),
        numbers(number, heads, own, width),
    )


def some_questions(generator, device):
    return questions(5, 3, 8, [7, 4, 9], 3, generator, device)


def nothing_in_common(generator, device):
    return questions(3, 2, 4, [], 6, generator, device)


def nothing_of_their_own(generator, device):
    return questions(4, 2, 4, [5, 0, 3], 0, generator, device)


def large_scores(generator, device):
    return questions(4, 2, 4, [3, 8], 2, generator, device, size=100.0)


def longer_beginning(generator, device):
    return questions(16, 4, 32, [512] * 8, 16, generator, device, size=60.0)


def many_questions(generator, device):
    return questions(16, 4, 32, [512] * 4, 16, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>How often must a number of a common key be read from memory, if 16 questions ask for it?
# Section 3 takes keys block by block: here they come so.</details>
# <details><summary>Hint 2</summary>For a piece of common keys, the queries of all questions are the queries of <em>one</em>
# long text: <code>(H, N, E)</code>. One product for all of them reads the piece once. Section 3 says what must be carried
# from one piece to the next: three things for each query. Own keys are one more block, of another shape.</details>
# <details><summary>Hint 3</summary>A block without keys has no highest score: leave it out. Then -inf is a good beginning; a
# finite number below all scores is one, too.</details>
# <details><summary>Hint 4</summary>Too much memory? Scores of one piece have 131 kB. A name in a loop keeps its tensor until
# it gets another one; a function call lets go of its names at its end. And <code>(scores - new).exp()</code> has three such
# tables alive: the scores, the difference and the weights. Which of them could be written over?</details>


# %% id="answer_all" role="answer"
def answer_all(query, common_keys, common_values, key, value):
    ### BEGIN SOLUTION
    asked = query[:, :, 0] * query.shape[-1] ** -0.5
    together = asked.transpose(0, 1)
    peak = query.new_full((*asked.shape[:2], 1), -30_000.0)
    mass, mean = torch.zeros_like(peak), torch.zeros_like(asked)

    def look(scores, mix):
        nonlocal peak, mass, mean
        before, peak = peak, torch.maximum(peak, scores.amax(-1, keepdim=True))
        scores = (scores - peak).exp_()
        shrink = (before - peak).exp_()
        mass = mass * shrink + scores.sum(-1, keepdim=True)
        mean = mean * shrink + mix(scores)

    for keys, values in zip(common_keys, common_values, strict=True):
        if keys.shape[1]:
            part = (together @ keys.transpose(1, 2)).transpose(0, 1)
            look(part, lambda weights, values=values: (weights.transpose(0, 1) @ values).transpose(0, 1))
    if key.shape[2]:
        part = (asked[:, :, None] @ key.transpose(2, 3))[:, :, 0]
        look(part, lambda weights: (weights[:, :, None] @ value)[:, :, 0])
    return (mean / mass)[:, :, None]
    ### END SOLUTION


# %% id="answer_all_check" role="test"
check(
    answer_all,
    like=answer_all_slow,
    on=[some_questions, nothing_in_common, nothing_of_their_own, large_scores],
    tolerance=5e-4,
    points=1,
)

# %% id="answer_all_lean" role="test"
check(answer_all, like=answer_all_slow, on=longer_beginning, peak=400_000, tolerance=5e-4, points=2)


# %% id="answer_all_hidden" role="test"
# Hidden test: one question, one key in all, an empty piece first, large scores, float64. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_question(generator, device):
    return questions(1, 2, 5, [4, 4], 1, generator, device)


def one_key(generator, device):
    return questions(3, 2, 4, [0, 1], 0, generator, device)


def empty_first(generator, device):
    return questions(2, 3, 4, [0, 6, 0, 2], 2, generator, device, size=80.0)


def double_questions(generator, device):
    return questions(6, 1, 7, [3, 2], 5, generator, device, dtype=torch.float64)


check(
    answer_all,
    like=answer_all_slow,
    on=[one_question, one_key, empty_first, double_questions],
    tolerance=5e-4,
    points=2,
)
### END HIDDEN TESTS

# %% id="answer_all_race" role="test"
race(answer_all, against=answer_all_slow, on=many_questions, at_least={"cpu": 3}, tolerance=5e-4, points=2)

# %% [markdown]
# ## 4. An uneven batch
#
# *Medium, 20 minutes.* Many short texts and a few long ones share a tensor. The given version pays for all as for the
# longest. Write `attend_texts(query, key, value, lengths)`.
#
# - `query`, `key`, `value`: `(N, H, L, E)` on one device, all sizes at least 1. `lengths`: a list of *N* whole numbers from
#   0 to *L*. The first `lengths[i]` positions of text *i* are its own; the others are filling, and may hold anything,
#   also NaN and infinity.
# - returns: `(N, H, L, E)`. Each position of a text looks at all positions of that text. At filled places the result is
#   0.
# - No gradients are needed.


# %% id="attend_texts_given" role="given"
def attend_texts_slow(query, key, value, lengths):
    place = torch.arange(query.shape[2], device=query.device)
    own = place < torch.tensor(lengths, device=query.device)[:, None]
    filling = ~own[:, None, :, None]
    query, key, value = (tensor.masked_fill(filling, 0) for tensor in (query, key, value))
    result = F.scaled_dot_product_attention(query, key, value, attn_mask=own[:, None, None])
    return result.masked_fill(filling, 0)


def texts_of(lengths, heads, width, longest, generator, device, filling=torch.nan, dtype=torch.float32):
    tensors = torch.randn(3, len(lengths), heads, longest, width, generator=generator, dtype=dtype)
    for text, length in enumerate(lengths):
        tensors[:, text, :, length:] = filling
    return *tensors.to(device), list(lengths)


def random_lengths(most, number, generator):
    return torch.randint(1, most + 1, (number,), generator=generator).tolist()


def a_few_texts(generator, device):
    return texts_of([3, 12, 1, 7, 7], 2, 4, 12, generator, device)


def texts_with_nothing(generator, device):
    return texts_of([0, 5, 0, 2], 3, 4, 6, generator, device, filling=torch.inf)


def many_short_texts(generator, device):
    lengths = [128, *random_lengths(10, 240, generator), 120]
    return texts_of(lengths, 1, 16, 128, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Section 5 has two ways, and a sum that tells which wins. Here neither does: what is the
# sum for the short ones, if they are padded only among themselves?</details>
# <details><summary>Hint 2</summary>Make groups of like lengths. A few are enough: with a group for each power of two, a text
# is padded to less than twice its length. A group needs a list of places, one cut and one call. Choosing texts by a list
# copies them: cut first. And texts of length 0?</details>
# <details><summary>Hint 3</summary>Within a group there is filling again. A weight of 0 times NaN is NaN. Texts of length 0
# belong to no group: their result is 0 before you begin.</details>
# <details><summary>Hint 4</summary>For a group, the given version does all that is needed, on less.</details>


# %% id="attend_texts" role="answer"
def attend_texts(query, key, value, lengths):
    ### BEGIN SOLUTION
    groups = {}
    for text, size in enumerate(lengths):
        if size:
            groups.setdefault(size.bit_length(), []).append(text)
    mixed = torch.zeros_like(query, memory_format=torch.contiguous_format)
    for members in groups.values():
        sizes = [lengths[text] for text in members]
        most, chosen = max(sizes), torch.tensor(members, device=query.device)
        own = torch.arange(most, device=query.device) < torch.tensor(sizes, device=query.device)[:, None]
        outside = ~own[:, None, :, None]
        parts = [
            tensor[:, :, :most].index_select(0, chosen).masked_fill_(outside, 0)
            for tensor in (query, key, value)
        ]
        part = F.scaled_dot_product_attention(*parts, attn_mask=own[:, None, None])
        mixed[:, :, :most].index_copy_(0, chosen, part.masked_fill_(outside, 0))
    return mixed
    ### END SOLUTION


# %% id="attend_texts_check" role="test"
check(attend_texts, like=attend_texts_slow, on=[a_few_texts, texts_with_nothing], points=1)


# %% id="attend_texts_hidden" role="test"
# Hidden test: one text, only empty texts, all full, lengths around powers of two, float64. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_text(generator, device):
    return texts_of([4], 1, 3, 9, generator, device)


def only_empty(generator, device):
    return texts_of([0, 0, 0], 2, 3, 5, generator, device)


def all_full(generator, device):
    return texts_of([6] * 4, 2, 5, 6, generator, device)


def around_powers(generator, device):
    lengths = [15, 16, 17, 31, 32, 33, 1, 2, 0, 64]
    return texts_of(lengths, 1, 2, 70, generator, device, dtype=torch.float64)


check(attend_texts, like=attend_texts_slow, on=[one_text, only_empty, all_full, around_powers], points=2)
### END HIDDEN TESTS

# %% id="attend_texts_race" role="test"
race(attend_texts, against=attend_texts_slow, on=many_short_texts, at_least={"cpu": 2.6}, points=3)

# %% [markdown]
# ## 5. A cache that forgets
#
# *Hard, 35 minutes.* A model with a window (exercise 2) writes a text without end. It needs the keys and values of the last
# `window` positions, and no others. Its heads of keys are fewer than those of queries. The given class keeps all, and
# copies them in each call. Write `WindowCache(window)`.
#
# - `window`: a whole number, at least 1. Calling the object with `query` of shape `(N, G, T, E)` and `key` and `value` of
#   shape `(N, K, T, E)` gives it the next *T* positions, *T* at least 1. *K* divides *G*: the first *G* / *K* heads of
#   queries share the first head of keys, and so on. *T* may differ from call to call; *N*, *G*, *K*, *E*, type and device
#   do not.
# - returns: `(N, G, T, E)`: each new position looks at itself and at the `window - 1` positions before it, in this call and
#   in earlier ones.
# - Memory: for *N* = 1, *G* = 8, *K* = 2, *E* = 16, a window of 64, and 512 positions one by one, at most 1.5 MB of new memory
#   in all calls together. (That is every new tensor that an operation returns, also one that is soon gone: `bytes` in
#   `costs`. The pieces that `feed` cuts below count as well: about a quarter of it.) The keys and values of the whole
#   window have 16 kB; to copy them in each call takes more than 8 MB. You may take all places of the window at once, but
#   what is in those that are not filled yet must not count.
# - Inference only: no gradients are asked for. No call waits for a value (`syncs` in `costs`).


# %% id="window_cache_given" role="given"
class WindowCacheSlow:
    def __init__(self, window):
        self.window, self.keys, self.values = window, None, None

    def __call__(self, query, key, value):
        if self.keys is not None:
            key, value = torch.cat([self.keys, key], dim=2), torch.cat([self.values, value], dim=2)
        self.keys, self.values = key, value
        share, end = query.shape[1] // key.shape[1], key.shape[2]
        place = torch.arange(end, device=query.device)
        back = place[-query.shape[2] :, None] - place
        return F.scaled_dot_product_attention(
            query,
            key.repeat_interleave(share, 1),
            value.repeat_interleave(share, 1),
            attn_mask=(back >= 0) & (back < self.window),
        )


def feed(cache, query, key, value, sizes):
    """Give a cache the positions in pieces of these sizes."""
    pieces = zip(*(tensor.split(sizes, dim=2) for tensor in (query, key, value)), strict=True)
    return [cache(*(piece.contiguous() for piece in three)) for three in pieces]


def run_slow(query, key, value, sizes, window):
    return feed(WindowCacheSlow(window), query, key, value, sizes)


def stream(number, groups, heads, width, sizes, window, generator, device, dtype=torch.float32):
    shapes = [(number, count, sum(sizes), width) for count in (groups, heads, heads)]
    tensors = [torch.randn(shape, generator=generator, dtype=dtype).to(device) for shape in shapes]
    return *tensors, sizes, window


def one_by_one(generator, device):
    return stream(2, 4, 2, 8, [1] * 11, 4, generator, device)


def in_pieces(generator, device):
    return stream(1, 6, 2, 4, [3, 1, 2, 1, 1, 4, 1], 5, generator, device)


def longer_than_the_window(generator, device):
    return stream(2, 2, 1, 4, [2, 9, 1, 1, 7], 3, generator, device)


def without_end(generator, device):
    return stream(1, 8, 2, 16, [1] * 512, 64, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>A mean does not ask in which order its numbers come. So the place of a key in the cache
# does not matter, as long as the key belongs to the window. Where may the newest one go?</details>
# <details><summary>Hint 2</summary>The newest one goes to the place of the one that leaves the window. For one new position,
# write first and look afterwards: what is in the cache is then the window, all of it. Is a mask needed?</details>
# <details><summary>Hint 3</summary>Position <em>p</em> goes to place <em>p</em> modulo <code>window</code>. For several new
# positions, the first ones need keys that the last ones overwrite. So look
# first, at the old ones and the new ones together, and write afterwards. For the mask you must know which position
# lies at which place.</details>
# <details><summary>Hint 4</summary>Heads that share their keys can be seen as one head with more queries (section 6):
# <code>(N, K, G/K · T, E)</code>. No key is copied. (A mask must be repeated for them then.)</details>


# %% id="window_cache" role="answer"
class WindowCache:
    def __init__(self, window):
        ### BEGIN SOLUTION
        self.window, self.seen = window, 0
        self.ring = None
        ### END SOLUTION

    def __call__(self, query, key, value):
        ### BEGIN SOLUTION
        texts, heads, new, width = key.shape
        if self.ring is None:
            self.ring = key.new_empty(2, texts, heads, self.window, width)
            self.positions = torch.empty(self.window, dtype=torch.int64, device=key.device)
        old_keys, old_values = self.ring[:, :, :, : min(self.seen, self.window)]
        share = query.shape[1] // heads
        folded = query.reshape(texts, heads, share * new, width)
        self.seen += new
        if new == 1:
            self._write(key, value, self.seen - 1)
            keys, values = self.ring[:, :, :, : min(self.seen, self.window)]
            mixed = F.scaled_dot_product_attention(folded, keys, values)
            return mixed.reshape(query.shape)
        latest = torch.arange(self.seen - new, self.seen, device=key.device)
        places = torch.cat([self.positions[: old_keys.shape[2]], latest])
        back = latest[:, None] - places
        allowed = ((back >= 0) & (back < self.window)).repeat(share, 1)
        keys, values = torch.cat([old_keys, key], 2), torch.cat([old_values, value], 2)
        mixed = F.scaled_dot_product_attention(folded, keys, values, attn_mask=allowed)
        for step in range(max(0, new - self.window), new):
            self._write(key[:, :, step : step + 1], value[:, :, step : step + 1], self.seen - new + step)
        return mixed.reshape(query.shape)

    def _write(self, key, value, position):
        place = position % self.window
        self.ring[0, :, :, place : place + 1] = key
        self.ring[1, :, :, place : place + 1] = value
        self.positions[place] = position
        ### END SOLUTION


# %% id="window_cache_check" role="test"
def run(query, key, value, sizes, window):
    return feed(WindowCache(window), query, key, value, sizes)


check(run, like=run_slow, on=[one_by_one, in_pieces, longer_than_the_window], points=2)

# %% id="window_cache_counted" role="test"
check(run, like=run_slow, on=without_end, at_most={"bytes": 1_500_000, "syncs": 0}, points=3)


# %% id="window_cache_hidden" role="test"
# Hidden test: a window of 1, no shared heads, one call for all, a window that is never full, float64. 2 points.
### BEGIN HIDDEN TESTS
def only_itself(generator, device):
    return stream(2, 2, 2, 3, [1, 3, 1], 1, generator, device)


def all_at_once(generator, device):
    return stream(1, 4, 1, 5, [13], 6, generator, device)


def never_full(generator, device):
    return stream(3, 2, 2, 4, [2, 1, 1, 3], 50, generator, device)


def double_stream(generator, device):
    return stream(2, 6, 3, 4, [1, 5, 1, 1, 6, 2], 4, generator, device, torch.float64)


check(run, like=run_slow, on=[only_itself, all_at_once, never_full, double_stream], points=2)
### END HIDDEN TESTS

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
def layer(x):
    weights, bias = torch.ones(3, x.shape[1]), torch.ones(3)
    return F.linear(x, weights, bias).relu_()


def some_rows(x):
    order = torch.randperm(len(x))
    return x[order[:2]].double()


def masked(x):
    later = torch.ones(len(x), len(x), dtype=torch.bool).triu_(1)
    return (x @ x.T).masked_fill_(later, -torch.inf)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (layer, some_rows, masked)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>layer</code> is of chapter 11, <code>some_rows</code> is of chapter 14,
# <code>masked</code> is of chapter 16.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(masked, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "layer": {"operations": 4, "bytes": 12 * d + 12 + 12 * n, "syncs": 0},
        "some_rows": {"operations": 3, "bytes": 8 * n + 8 * d + 16 * d, "syncs": 0},
        "masked": {"operations": 4, "bytes": n * n + 4 * n * n, "syncs": 0},
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
