# %% [markdown]
# # Exercises 20 · Serving a model
#
# A server's clock, a cache in pages that texts share, guesses that are accepted by chance, a quantile that moves, and a model that
# writes without a wait. Each is given in a version that is right, and slow or large. Write a better one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test cells
# below it. `check` tells you whether your answer is right, and if not, where. It tries every input in other memory layouts,
# too. Some checks also count what your answer costs: its new memory in all, or the most at once, and where it would wait for a
# GPU. `race` times it against the given version, on this machine, now. Hidden tests run when your notebook
# is graded: other shapes and other random numbers.
#
# Keep the names. Helper functions and imports of your own are welcome, in the solution cell. Leave the tensors that you
# get as they are. `costs`, from chapter 00, counts what a call costs: `from autograder import costs`, then
# `print(costs(function, *inputs))`.
# The chapter is [here](../../course/20_serving.ipynb). 35 points, about 135 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, costs, race

# %% [markdown]
# ## 1. A server's clock
#
# *Medium, 25 minutes.* How long do users wait, if so many texts share a step? The given version goes through all steps, one by
# one. Write `answered(arrivals, letters, slots, base, each)`, which says when each request is answered.
#
# - `arrivals`: `int64` of shape `(N,)`, in microseconds from 0 on, ascending; several may be the same. `letters`: `int64`
#   of shape `(N,)`, how many letters each answer has, 1 at least. Both on the CPU; *N* may be 0.
# - `slots`, `base`: whole numbers, 1 at least. `each`: a whole number, 0 at least. A step with *n* texts takes `base + each *
#   n` microseconds, and gives each of them one letter.
# - Before each step, requests that have arrived take free slots, in their order. A request that arrives while a step runs
#   waits for its end at least. When nobody has a slot, the clock goes to the next arrival. Who has all letters is answered at the end of that
#   step, and its slot is free for the next.
# - returns: `int64` of shape `(N,)` on the CPU, when each is answered, in microseconds.
# - In the race: 120 requests with some 500 letters each; 15 times as fast as given for all points.


# %% id="answered_given" role="given"
def answered_slow(arrivals, letters, slots, base, each):
    arrivals, left = arrivals.tolist(), letters.tolist()
    now, running, ends = 0, [], [0] * len(left)
    coming = list(range(len(left)))
    while coming or running:
        while coming and len(running) < slots and arrivals[coming[0]] <= now:
            running.append(coming.pop(0))
        if not running:
            now = arrivals[coming[0]]
            continue
        now += base + each * len(running)
        for text in running:
            left[text] -= 1
            if not left[text]:
                ends[text] = now
        running = [text for text in running if left[text]]
    return torch.tensor(ends, dtype=torch.int64)


def requests(number, longest, apart, slots, base, each, generator):
    arrivals = torch.randint(0, 2 * apart + 1, (number,), generator=generator).cumsum(0)
    letters = torch.randint(1, longest + 1, (number,), generator=generator)
    return arrivals, letters, slots, base, each


def a_few_requests(generator, device):
    return requests(20, 12, 300, 4, 50, 3, generator)


def one_slot(generator, device):
    return requests(8, 5, 100, 1, 20, 7, generator)


def all_at_once(generator, device):
    return requests(15, 9, 0, 6, 100, 0, generator)


def many_requests(generator, device):
    return requests(120, 1000, 40_000, 16, 800, 60, generator)


# %% [markdown]
# <details><summary>Hint 1</summary>Most steps are like the one before: the same texts, the same time. What can end such a row of
# steps, and how many steps is it long?</details>
# <details><summary>Hint 2</summary>Two things: a text has all its letters; or somebody arrives, and a slot is free. Take as many
# steps at once as fit before the first of them. A step that has begun goes to its end.</details>
# <details><summary>Hint 3</summary>To take away letters from all who run is work again. If you count steps, a text ends at a
# step that is known when it joins. Which of them is first, a heap knows (<code>heapq</code>).</details>


# %% id="answered" role="answer"
def answered(arrivals, letters, slots, base, each):
    ### BEGIN SOLUTION
    import heapq

    arrivals, letters = arrivals.tolist(), letters.tolist()
    now = steps = coming = 0
    running, ends = [], [0] * len(letters)  # running: (the number of the last step, the text)
    while running or coming < len(letters):
        while coming < len(letters) and len(running) < slots and arrivals[coming] <= now:
            heapq.heappush(running, (steps + letters[coming], coming))
            coming += 1
        if not running:
            now = arrivals[coming]
            continue
        cost, ahead = base + each * len(running), running[0][0] - steps
        if len(running) < slots and coming < len(letters):
            ahead = min(ahead, -((now - arrivals[coming]) // cost))
        steps, now = steps + ahead, now + ahead * cost
        while running and running[0][0] == steps:
            ends[heapq.heappop(running)[1]] = now
    return torch.tensor(ends, dtype=torch.int64)
    ### END SOLUTION


# %% id="answered_check" role="test"
check(answered, like=answered_slow, on=[a_few_requests, one_slot, all_at_once], points=1)


# %% id="answered_hidden" role="test"
# Hidden test: no request, more slots than requests, long pauses, arrivals at the very end of a step. 2 points, when graded.
### BEGIN HIDDEN TESTS
def no_request(generator, device):
    return requests(0, 5, 10, 3, 10, 1, generator)


def many_slots(generator, device):
    return requests(12, 30, 200, 50, 10, 5, generator)


def long_pauses(generator, device):
    return requests(12, 6, 5_000, 3, 40, 2, generator)


def at_the_end_of_a_step(generator, device):
    arrivals, letters, *rest = requests(30, 8, 6, 5, 4, 0, generator)
    return arrivals // 4 * 4, letters, *rest


check(answered, like=answered_slow, on=[no_request, many_slots, long_pauses, at_the_end_of_a_step], points=2)
### END HIDDEN TESTS

# %% id="answered_race" role="test"
race(answered, against=answered_slow, on=many_requests, at_least={"cpu": 15}, points=4)

# %% [markdown]
# ## 2. Pages that texts share
#
# *Hard, 35 minutes.* Many answers begin with the same long text, and a few answers to one question share all that stands before
# them. With pages they can share the memory, too: as long as nobody writes into a page, it may be in several tables. Write
# `attend_pages(script, pages, size)`. The given one has a class, which copies whole texts; write a better one, and keep it.
#
# - `script`: a list of lists. The first of each is a text, an integer. What comes after it says what happens:
#   - three tensors, `query`, `key` and `value`, each of shape `(H, T, E)`, with *T* at least 1: the next *T* positions of this
#     text. A text that is not known begins with them.
#   - another text, the parent, which has positions: this text is new, and begins with all that the parent has so far. From then
#     on, each of the two goes its own way.
#   - nothing: the text ends, and its number may be used again. What it shares with others must stay.
# - `pages`: how many pages there are, `size`: how many positions a page has, both 1 at least. The texts of the tests never need
#   more pages than that, if they share what they can.
# - returns: a list with `(H, T, E)` for each line with tensors: each new position looks at itself and at all positions of its
#   text before it.
# - `feed(cache, script)` goes through a script, and calls `cache(text, parent, query, key, value)`; what is not there is `None`.
# - Memory: in the test, 24 texts share 500 positions and have 10 of their own, with *H* = 4, *E* = 16, 100 pages of 16. At most
#   1.5 MB of new memory at once for all points, results included: the pages have 0.8 MB, one text 0.26. The given class needs four
#   times as much.
# - *H*, *E*, type and device are always the same. No gradients are needed.


# %% id="attend_pages_given" role="given"
class PagedCacheSlow:
    def __init__(self, pages, size):
        self.texts = {}

    def __call__(self, text, parent=None, query=None, key=None, value=None):
        if query is None:
            if parent is None:
                del self.texts[text]
            else:
                self.texts[text] = tuple(one.clone() for one in self.texts[parent])
            return None
        if text in self.texts:
            keys, values = self.texts[text]
            key, value = torch.cat([keys, key], 1), torch.cat([values, value], 1)
        self.texts[text] = key.clone(), value.clone()
        new, end = query.shape[1], key.shape[1]
        mask = torch.ones(new, end, dtype=torch.bool, device=query.device).tril(end - new)
        return F.scaled_dot_product_attention(query[None], key[None], value[None], attn_mask=mask)[0]


def feed(cache, script):
    """Each line of a script is a text, with another one, with three tensors, or with nothing."""
    results = []
    for text, *given in script:
        if len(given) == 3:
            results.append(cache(text, None, *(one.contiguous() for one in given)))
        elif given:
            cache(text, given[0])
        else:
            cache(text)
    return results


def attend_pages_slow(script, pages, size):
    return feed(PagedCacheSlow(pages, size), script)


def lines(what, heads, width, generator, device, dtype=torch.float32):
    """A script: (text, positions) where positions are new, (text, "from", other), or (text, "ends")."""
    script = []
    for text, *rest in what:
        if rest == ["ends"]:
            script.append([text])
        elif rest[0] == "from":
            script.append([text, rest[1]])
        else:
            three = torch.randn(3, heads, rest[0], width, generator=generator, dtype=dtype)
            script.append([text, *three.to(device).unbind()])
    return script


def two_texts(generator, device):
    what = [(7, 3), (2, 5), (7, 1), (7, 1), (2, 1), (7, 4), (2, "ends"), (2, 2), (7, 1)]
    return lines(what, 2, 4, generator, device), 20, 4


def a_child(generator, device):
    what = [(1, 6), (2, "from", 1), (2, 1), (1, 1), (2, 3), (1, 3), (1, "ends"), (2, 2)]
    return lines(what, 2, 4, generator, device), 20, 4


def many_children(generator, device):
    what = [(0, 50)] * 10 + [(child, "from", 0) for child in range(1, 25)]
    what += [(child, 1) for child in range(1, 25)] * 10
    return lines(what, 4, 16, generator, device), 100, 16


# %% [markdown]
# <details><summary>Hint 1</summary>Two tensors, or one, for all pages; a list of free pages; for each text a table: its pages,
# in their order. And for each page: how many tables have it?</details>
# <details><summary>Hint 2</summary>A page that is full is never written again. Only a text's last page can be, and only there somebody
# else may notice. So when must a page be copied, and by whom? Not when the child is made.</details>
# <details><summary>Hint 3</summary>Several new positions can begin in the middle of one page and end in the middle of another:
# a loop over pages, and not over positions. A text whose last page is full takes a new page, however many share that one.</details>
# <details><summary>Hint 4</summary>To attend, gather the pages of this one text: an index with its table. If the dimension of
# pages stands just before that of the places in a page, what comes out needs no second copy.</details>


# %% id="attend_pages" role="answer"
def attend_pages(script, pages, size):
    ### BEGIN SOLUTION
    return feed(PagedCache(pages, size), script)


class PagedCache:
    def __init__(self, pages, size):
        self.size, self.pool = size, None
        self.free, self.owners = list(range(pages)), [0] * pages
        self.tables, self.seen = {}, {}

    def __call__(self, text, parent=None, query=None, key=None, value=None):
        if query is None and parent is None:
            del self.seen[text]
            for page in self.tables.pop(text):
                self._release(page)
            return None
        if query is None:
            self.tables[text], self.seen[text] = list(self.tables[parent]), self.seen[parent]
            for page in self.tables[text]:
                self.owners[page] += 1
            return None
        heads, new, width = key.shape
        if self.pool is None:
            self.pool = key.new_empty(2, heads, len(self.owners), self.size, width)
        table, seen = self.tables.setdefault(text, []), self.seen.setdefault(text, 0)
        end = self.seen[text] = seen + new
        done = 0
        while done < new:
            place = (seen + done) % self.size
            if not place:
                table.append(self._take())
            elif self.owners[table[-1]] > 1:
                own = self._take()
                self.pool[:, :, own] = self.pool[:, :, table[-1]]
                self._release(table[-1])
                table[-1] = own
            part = min(self.size - place, new - done)
            for pool, given in zip(self.pool, (key, value), strict=True):
                pool[:, table[-1], place : place + part] = given[:, done : done + part]
            done += part
        keys, values = self.pool[:, :, table].flatten(2, 3)[:, :, :end].unsqueeze(1)
        mask = torch.ones(new, end, dtype=torch.bool, device=key.device).tril(seen)
        return F.scaled_dot_product_attention(query[None], keys, values, attn_mask=mask)[0]

    def _take(self):
        page = self.free.pop()
        self.owners[page] = 1
        return page

    def _release(self, page):
        self.owners[page] -= 1
        if not self.owners[page]:
            self.free.append(page)

    ### END SOLUTION


# %% id="attend_pages_check" role="test"
check(attend_pages, like=attend_pages_slow, on=[two_texts, a_child], points=1)

# %% id="attend_pages_lean" role="test"
check(attend_pages, like=attend_pages_slow, on=many_children, peak=1_500_000, points=3)


# %% id="attend_pages_hidden" role="test"
# Hidden test: children of children, parents that go on or end first, pages of one, pages used again, float64. 3 points.
### BEGIN HIDDEN TESTS
def grandchildren(generator, device):
    what = [(1, 5), (2, "from", 1), (3, "from", 2), (3, 1), (2, 1), (1, 1), (4, "from", 3), (2, "ends")]
    what += [(4, 2), (3, 2), (1, "ends"), (3, 1), (4, 5), (2, 3), (3, "ends"), (4, 1), (2, 1)]
    return lines(what, 1, 3, generator, device), 14, 3


def full_page_shared(generator, device):
    what = [(1, 4), (2, "from", 1), (2, 1), (1, 1), (3, "from", 1), (1, "ends"), (3, 4), (2, 4)]
    return lines(what, 2, 2, generator, device), 9, 4


def pages_of_one(generator, device):
    what = [(5, 3), (6, "from", 5), (5, 1), (6, 2), (5, "ends"), (6, 1)]
    return lines(what, 3, 2, generator, device), 9, 1


def used_again(generator, device):
    what = []
    for text in range(30):
        what += [(text, 7), (text, 1), (text, "ends")]
    return lines(what, 2, 3, generator, device, torch.float64), 2, 4


check(
    attend_pages,
    like=attend_pages_slow,
    on=[grandchildren, full_page_shared, pages_of_one, used_again],
    points=3,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Guesses and chances
#
# *Medium, 25 minutes.* A server that draws its letters, and does not take the likeliest, can be helped by guesses, too. A guess that the
# small model drew with probability *q*, and that the large model gives *p*, is accepted with the chance *p / q* (always, where *p* is
# larger). At the first that is refused, another letter is drawn, from what the large model gives more than the small one. So the text
# has the large model's probabilities. The given version goes text by text. Write `verified(guesses, small, large, chances)`.
#
# - `guesses`: `int64` of shape `(N, K)`. `small`: `(N, K, A)`, the small model's probabilities at each guess. `large`: `(N, K + 1,
#   A)`, the large model's, there and behind the last guess. `chances`: `(N, K + 1)`, from 0 on, below 1. The last three are
#   `float64`; all on one device. *N* may be 0, *K* may be 0.
# - Guess *i* of a text is accepted if those before it are, and `chances[n, i] * q < p`.
# - Let *a* be how many are accepted. The letter behind them is drawn from weights: `large[n, a] - small[n, a]`, where that is above
#   0, and else 0; or `large[n, K]` where all are accepted. It is the first letter up to which the sum of the weights exceeds `chances[n, K]`
#   times the sum of all of them. (There is always one.)
# - returns: letters, `int64` of shape `(N, K + 1)`: those accepted, the one that is drawn, then -1; and *a*, `int64` of shape `(N,)`.
# - In the race: 128 texts, 4 guesses, 40 letters; 25 times as fast as given for all points.


# %% id="verified_given" role="given"
def verified_slow(guesses, small, large, chances):
    number, ahead = guesses.shape
    letters = guesses.new_full((number, ahead + 1), -1)
    accepted = guesses.new_zeros(number)
    for text in range(number):
        place = 0
        while place < ahead:
            guess = guesses[text, place]
            if not chances[text, place] * small[text, place, guess] < large[text, place, guess]:
                break
            letters[text, place] = guess
            place += 1
        weights = large[text, place]
        if place < ahead:
            weights = (weights - small[text, place]).clamp(min=0)
        sums = weights.cumsum(0)
        letters[text, place] = (sums > chances[text, ahead] * sums[-1]).nonzero()[0, 0]
        accepted[text] = place
    return letters, accepted


def guessed_texts(number, ahead, kinds, generator, device, alike=0.7):
    def probabilities(*shape):
        return torch.rand(*shape, kinds, generator=generator, dtype=torch.float64).pow(8).add(1e-6)

    large = probabilities(number, ahead + 1)
    small = alike * large[:, :ahead] + (1 - alike) * probabilities(number, ahead)
    large, small = large / large.sum(2, keepdim=True), small / small.sum(2, keepdim=True)
    drawn = torch.rand(number, ahead, 1, generator=generator, dtype=torch.float64)
    guesses = (small.cumsum(2) < drawn).sum(2).clamp(max=kinds - 1)
    chances = torch.rand(number, ahead + 1, generator=generator, dtype=torch.float64)
    return tuple(one.to(device) for one in (guesses, small, large, chances))


def a_few_guesses(generator, device):
    return guessed_texts(9, 3, 6, generator, device)


def unlike(generator, device):
    return guessed_texts(20, 4, 5, generator, device, alike=0.1)


def many_guesses(generator, device):
    return guessed_texts(128, 4, 40, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Which guesses would be accepted, each for itself? That is one comparison for all of them. Then:
# how many <em>before the first</em> that is not?</details>
# <details><summary>Hint 2</summary>A running product of yes and no stays at no. And behind the last guess, what would the small model
# have to give, so that no text is a special case?</details>
# <details><summary>Hint 3</summary>The weights of text <em>n</em> are one row of a table with three dimensions: two lists of indices, or
# <code>take_along_dim</code>. How many sums do <em>not</em> exceed the number? That is the place of the first that does.</details>


# %% id="verified" role="answer"
def verified(guesses, small, large, chances):
    ### BEGIN SOLUTION
    number, ahead = guesses.shape
    chosen = guesses[:, :, None]
    wins = chances[:, :ahead] * small.gather(2, chosen)[:, :, 0] < large[:, :ahead].gather(2, chosen)[:, :, 0]
    accepted = wins.long().cumprod(1).sum(1)
    row = torch.arange(number, device=guesses.device)
    weights = large[row, accepted] - F.pad(small, (0, 0, 0, 1))[row, accepted]
    sums = weights.clamp_(min=0).cumsum(1)
    drawn = (sums <= chances[:, ahead:] * sums[:, -1:]).sum(1)
    place = torch.arange(ahead + 1, device=guesses.device)
    letters = F.pad(guesses, (0, 1)).masked_fill_(place > accepted[:, None], -1)
    letters[row, accepted] = drawn
    return letters, accepted
    ### END SOLUTION


# %% id="verified_check" role="test"
check(verified, like=verified_slow, on=[a_few_guesses, unlike], points=1)


# %% id="verified_hidden" role="test"
# Hidden test: no text, no guess, one guess, two letters, models that are the same. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def no_text(generator, device):
    return guessed_texts(0, 3, 4, generator, device)


def no_guess(generator, device):
    return guessed_texts(6, 0, 7, generator, device)


def one_guess(generator, device):
    return guessed_texts(30, 1, 2, generator, device, alike=0.3)


def the_same_models(generator, device):
    return guessed_texts(12, 5, 9, generator, device, alike=1.0)


check(verified, like=verified_slow, on=[no_text, no_guess, one_guess, the_same_models, unlike], points=2)
### END HIDDEN TESTS

# %% id="verified_race" role="test"
race(verified, against=verified_slow, on=many_guesses, at_least={"cpu": 25}, points=4)

# %% [markdown]
# ## 4. A quantile that moves
#
# *Easy, 10 minutes.* A page about a server shows, for each request, a quantile of the last few waits. Write
# `moving_quantile(waits, window, percent)`.
#
# - `waits`: `float32` or `float64`, of shape `(N,)`, on any device. `window`: a whole number from 1 to *N*. `percent`: a whole
#   number from 1 to 100.
# - returns: `(N - window + 1,)`, of the same type and device. Number *i* is the least of `waits[i]` to `waits[i + window - 1]` that
#   at least so many percent of these do not exceed: one of them, and nothing between two.
# - In the race: 700 waits, a window of 100; 4 times as fast as given for all points.


# %% id="moving_quantile_given" role="given"
def moving_quantile_slow(waits, window, percent):
    found = []
    for first in range(len(waits) - window + 1):
        one = sorted(waits[first : first + window].tolist())
        found.append(next(w for n, w in enumerate(one, 1) if 100 * n >= percent * window))
    return torch.tensor(found, dtype=waits.dtype, device=waits.device)


def some_waits(number, generator, device, dtype=torch.float32):
    return torch.randn(number, generator=generator, dtype=dtype).exp().to(device)


def a_few_waits(generator, device):
    return some_waits(30, generator, device), 7, 50


def one_window(generator, device):
    return some_waits(20, generator, device), 20, 99


def a_long_day(generator, device):
    return some_waits(700, generator, device), 100, 95


# %% [markdown]
# <details><summary>Hint 1</summary>Which place in the sorted window is it? A whole number of <code>percent</code> and
# <code>window</code>, rounded up; and floats round where they like.</details>
# <details><summary>Hint 2</summary>All windows stand in <code>waits</code> already, each one step behind the one before. And must a
# row be sorted as a whole?</details>


# %% id="moving_quantile" role="answer"
def moving_quantile(waits, window, percent):
    ### BEGIN SOLUTION
    rank = -(-percent * window // 100)
    return waits.unfold(0, window, 1).kthvalue(rank, 1).values
    ### END SOLUTION


# %% id="moving_quantile_check" role="test"
check(moving_quantile, like=moving_quantile_slow, on=[a_few_waits, one_window], points=1)


# %% id="moving_quantile_hidden" role="test"
# Hidden test: a window of 1, 1 and 100 percent, shares like 0.55, which no float is, equal waits, float64. 1 point, when graded.
### BEGIN HIDDEN TESTS
def window_of_one(generator, device):
    return some_waits(5, generator, device), 1, 1


def the_largest(generator, device):
    return some_waits(40, generator, device), 9, 100


def shares_that_no_float_has(generator, device):
    return some_waits(120, generator, device, torch.float64), 100, 55


def equal_waits(generator, device):
    return some_waits(60, generator, device).mul(2).round(), 10, 70


check(
    moving_quantile,
    like=moving_quantile_slow,
    on=[window_of_one, the_largest, shares_that_no_float_has, equal_waits],
    points=1,
)
### END HIDDEN TESTS

# %% id="moving_quantile_race" role="test"
race(moving_quantile, against=moving_quantile_slow, on=a_long_day, at_least={"cpu": 4}, points=2)

# %% [markdown]
# ## 5. To write without a wait
#
# *Hard, 30 minutes.* A small model writes some texts at once. On a GPU, nothing in the loop may wait for a value: not even the question
# whether a text is at its end. And nothing that is known may be computed or copied again. Write `write(weights, prompts,
# length, stop)`.
#
# - `weights`: dict of `float64` tensors: `"letters"` of shape `(A, W)`, a row for each letter; `"query"`, `"key"`, `"value"`, `"out"`
#   of shape `(W, W)`. `prompts`: `int64` of shape `(N, P)`. All on one device; all sizes are at least 1. `length`: a whole number,
#   at least *P*. `stop`: a letter.
# - A row of the given function `scores` says how likely each letter is after that place. The next letter is the one with the highest score.
# - returns: `int64` of shape `(N, length)`: the prompt, and what the model writes. Behind the first `stop` that the
#   *model* has written, all letters of a text are `stop`. (One in the prompt ends nothing.)
# - For all points no call waits (`syncs` in `costs`), and for *N* = 8, *W* = 48, *P* = 16 and `length` 64 there are at most 3 MB of
#   new memory in all operations together. Keys and values of all texts have 0.4 MB; to copy them at each step takes 12 MB.
# - In the race, with these sizes: 3 times as fast as given for all points.


# %% id="write_given" role="given"
def scores(weights, text):
    """Of each next letter, after each place: (N, L, A)."""
    x = weights["letters"][text]
    query, key, value = (x @ weights[name] for name in ("query", "key", "value"))
    found = query @ key.mT / query.shape[2] ** 0.5
    later = torch.ones(found.shape[1:], dtype=torch.bool, device=found.device).triu(1)
    mixed = found.masked_fill(later, -torch.inf).softmax(2) @ value
    return (x + mixed @ weights["out"]) @ weights["letters"].T


def write_slow(weights, prompts, length, stop):
    text = prompts
    ended = [False] * len(prompts)
    while text.shape[1] < length:
        new = scores(weights, text)[:, -1].argmax(1)
        for number in range(len(prompts)):
            if ended[number]:
                new[number] = stop
            ended[number] = new[number].item() == stop
        text = torch.cat([text, new[:, None]], 1)
    return text


def a_model(kinds, width, texts, given, length, generator, device, stop=0):
    def numbers(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device)

    weights = {"letters": numbers(kinds, width)}
    weights |= {name: 2 * numbers(width, width) / width**0.5 for name in ("query", "key", "value", "out")}
    prompts = torch.randint(kinds, (texts, given), generator=generator).to(device)
    return weights, prompts, length, stop


def short_texts(generator, device):
    return a_model(5, 6, 7, 3, 12, generator, device)


def nothing_to_write(generator, device):
    return a_model(9, 4, 3, 6, 6, generator, device)


def one_letter_given(generator, device):
    return a_model(12, 8, 4, 1, 9, generator, device, stop=3)


def eight_texts(generator, device):
    return a_model(30, 48, 8, 16, 64, generator, device)


# %% [markdown]
# <details><summary>Hint 1</summary>Reserve all places once, for the letters, the keys and the values; how many are filled is a number of
# Python, which waits for nobody.</details>
# <details><summary>Hint 2</summary>Which texts are at their end can be a tensor. What is the next letter then, in one operation? And does
# the last letter tell whether a text is at its end? A prompt may end with any letter.</details>
# <details><summary>Hint 3</summary>The model knows no places: the key of a letter is the same wherever it stands. What can be made once, for
# all letters there are?</details>
# <details><summary>Hint 4</summary>A product that is only read by the next product need not be made: what <code>out</code> and
# <code>letters</code> do can be one table as well. Look at <code>bytes</code> as you go.</details>


# %% id="write" role="answer"
def write(weights, prompts, length, stop):
    ### BEGIN SOLUTION
    table, width = weights["letters"], weights["letters"].shape[1]
    queries, keys, values = (table @ weights[name] for name in ("query", "key", "value"))
    onward, own = weights["out"] @ table.T, table @ table.T
    number, given = prompts.shape
    text = prompts.new_empty(number, length)
    text[:, :given] = prompts
    kept = table.new_empty(2, number, length, width)
    kept[0, :, :given], kept[1, :, :given] = keys[prompts], values[prompts]
    last = prompts[:, -1]
    ended = torch.zeros_like(last, dtype=torch.bool)
    for seen in range(given, length):
        found = kept[0, :, :seen] @ queries[last][:, :, None]
        weight = found.div_(width**0.5).softmax(1)
        mixed = (weight.mT @ kept[1, :, :seen])[:, 0]
        last = torch.addmm(own[last], mixed, onward).argmax(1).masked_fill_(ended, stop)
        ended |= last == stop
        text[:, seen] = last
        kept[0, :, seen], kept[1, :, seen] = keys[last], values[last]
    return text
    ### END SOLUTION


# %% id="write_check" role="test"
check(write, like=write_slow, on=[short_texts, nothing_to_write, one_letter_given], points=1)

# %% id="write_counted" role="test"
check(write, like=write_slow, on=eight_texts, at_most={"syncs": 0, "bytes": 3_000_000}, points=3)


# %% id="write_hidden" role="test"
# Hidden test: one text, a stop in the prompt, texts that all end, two kinds of letters. 2 points, when graded.
### BEGIN HIDDEN TESTS
def one_text(generator, device):
    return a_model(8, 5, 1, 2, 20, generator, device, stop=1)


def stop_in_the_prompt(generator, device):
    weights, prompts, length, stop = a_model(6, 7, 9, 4, 15, generator, device, stop=2)
    return weights, prompts.index_fill(1, torch.tensor([3], device=device), 2), length, stop


def two_kinds(generator, device):
    return a_model(2, 3, 10, 2, 14, generator, device, stop=1)


check(write, like=write_slow, on=[one_text, stop_in_the_prompt, two_kinds, short_texts], points=2)
### END HIDDEN TESTS

# %% id="write_race" role="test"
race(write, against=write_slow, on=eight_texts, at_least={"cpu": 3}, points=2)

# %% [markdown]
# ## 6. Foretell the costs
#
# *Easy, 10 minutes.* Three functions: two are of earlier chapters, the last is of this one. Each gets `x`, a
# tensor of `float32` with the shape `(n, d)`, whose numbers are all 2. Write `foretold(n, d)`, which says what
# `costs` counts then.
#
# - `n`, `d`: integers from 2 on.
# - returns: a dict with the names of the three functions. Each value is a dict of three integers: `"operations"` (views
#   are not counted), `"bytes"` of all new tensors together, and `"syncs"`, where the host would wait if all tensors were on a GPU.
# - `foretold` asks torch for nothing.


# %% id="foretold_given" role="given"
def some_rows(x):
    order = torch.randperm(len(x))
    return x[order[:2]].double()


def moments(x):
    first, second = torch.zeros_like(x), torch.zeros_like(x)
    return first.lerp_(x, 0.1), second.addcmul_(x, x)


def one_more(x):
    keys = torch.cat([x, x[:1]])
    weights = torch.mv(keys, x[0]).softmax(0)
    return (weights.argmax() == len(x)).item(), torch.mv(keys.T, weights)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (some_rows, moments, one_more)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>some_rows</code> is of chapter 14, <code>moments</code> is of chapter 17,
# <code>one_more</code> is of chapter 20.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(one_more, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "some_rows": {"operations": 3, "bytes": 8 * n + 8 * d + 16 * d, "syncs": 0},
        "moments": {"operations": 4, "bytes": 8 * n * d, "syncs": 0},
        "one_more": {"operations": 7, "bytes": 4 * d * (n + 1) + 8 * (n + 1) + 8 + 1 + 4 * d, "syncs": 1},
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
