# %% [markdown]
# # 20 · Serving a model
#
# A model that writes has users. They come when they like, ask for long and for short answers, and wait. The model writes
# one letter after the other, and each of them depends on the last. This chapter measures what such a step costs, and
# what is left to win: by batches, by caches, by the order of requests, and by guessing.
#
# The course measures the claims of five widely read articles, and here those of libraries that serve models and of their
# papers; their *F* numbers are listed in [the score](claims.ipynb). `compare`, `costs` and `guess` are explained in
# [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - say whether memory or arithmetic decides a step, and how many texts share it for nothing,
# - keep keys and values in a cache that grows, one that is reserved, or pages; and count what each wastes,
# - simulate a server on measured step times, and read its waiting times by quantiles,
# - let a small model guess for a large one, count what is accepted, and say when that loses.
#
# **Time:** 50 minutes to read and run, 10 more for the part Further. **Needs:** CPU, GPU if any; a C++ compiler for
# section 7. Chapter 16 says what keys and values are.
#
# **Claims tested:** *F44* "compute-bound (prefill) and memory-bound (decode) operations"; *F45* a cache "eliminates this
# inefficiency"; *F46* "If you are using CPU, don't batch"; *F47* "If you are latency constrained […] don't batch"; *F50*
# "a mere waste of under 4%"; *F51* "throughput stays high"; *F52* "no degradation in accuracy"; *F53* "a 2X-3X
# acceleration"; *F48* a growing cache "prevents you from taking advantage"; *F49* "up to a 4x speed up".

# %%
import os
import tempfile

# An empty folder for compiled code, so that nothing is prepared; and no helpers, which would run beside what we time.
code_folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = code_folder.name
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import functools
import logging
import math
import random
import shutil
import sys
import time
import timeit
from collections import deque
from pathlib import Path
from statistics import mean

import torch
import torch.nn.functional as F
from parts.inputs import whole_numbers
from parts.serving import draw_sweep, draw_turns, draw_waits, teach
from torch import nn

from autograder import behaviour, compare, devices, fewer, guessed, recall, verdicts

logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # it looks for CUDA, too
torch.set_num_threads(1)
torch.manual_seed(20)
attend = F.scaled_dot_product_attention
compiler = os.environ.get("CXX") or {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
print("devices here:", *devices(), "· torch", torch.__version__)
print(f"C++ compiler ({compiler}):", "found" if shutil.which(compiler) else "none found")
recall("20", ..., ..., ...)

# %% [markdown]
# ## 1. A model that writes
#
# A whole language model of letters. A layer gives its keys and values to its cache, which answers with all that it has, those
# of earlier letters, too. Everything else is as in chapter 16.

# %%
TEXT = "\n\n".join(path.read_text() for path in sorted(Path("../data/texts").glob("*/*.txt")))
ALPHABET = sorted(set(TEXT))
NUMBERS = torch.tensor([ALPHABET.index(letter) for letter in TEXT])


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache, mask):
        three = self.inward(self.before(x)).unflatten(2, (3, self.heads, -1))
        query, key, value = three.permute(2, 0, 3, 1, 4)  # each (texts, heads, positions, width of a head)
        key, value = cache(key, value)
        seen = attend(query, key, value, attn_mask=mask)
        x = x + self.outward(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.between(x))))


class Writer(nn.Module):
    """Scores of the next letter, after each letter that is given."""

    def __init__(self, width, layers, longest=1024):
        super().__init__()
        angles = torch.outer(torch.arange(longest), 1e4 ** (-torch.arange(0, width, 2) / width))
        self.register_buffer("places", torch.stack([angles.sin(), angles.cos()], 2).flatten(1))
        self.letters = nn.Embedding(len(ALPHABET), width)
        nn.init.normal_(self.letters.weight, std=width**-0.5)
        self.layers = nn.ModuleList(Layer(width, heads=width // 32) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, letters, places, caches, mask):
        x = self.letters(letters) * self.last.weight.numel() ** 0.5 + self.places[places]
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, cache, mask)
        return self.last(x) @ self.letters.weight.T


class Growing:
    """Keys and values of one layer. Each call adds some, and gives all."""

    def __init__(self, keys=None, values=None):
        self.keys, self.values = keys, values

    @property
    def seen(self):
        return 0 if self.keys is None else self.keys.shape[2]

    def __call__(self, key, value):
        if self.keys is not None:
            key, value = torch.cat([self.keys, key], 2), torch.cat([self.values, value], 2)
        self.keys, self.values = key, value
        return key, value

    def cut(self, seen):
        """Forget what came after so many positions."""
        self.keys, self.values = self.keys[:, :, :seen], self.values[:, :, :seen]


def step(model, letters, caches):
    """Scores after each new letter. The caches have what came before, and get the new."""
    seen, new = caches[0].seen, letters.shape[1]
    mask = torch.ones(new, seen + new, dtype=torch.bool).tril(seen)
    return model(letters, torch.arange(seen, seen + new), caches, mask if new > 1 else None)


def growing_caches(model):
    return [Growing() for _ in model.layers]


def read(model, letters):
    """Scores after each letter of a text that has nothing before it."""
    return step(model, letters, growing_caches(model))


def taught(steps, seed):
    """A model of one layer that has read two pieces of the texts in each step, and its last loss."""
    torch.manual_seed(seed)
    model = Writer(64, 1)
    loss = teach(model, functools.partial(read, model), NUMBERS, steps)
    return model.eval().requires_grad_(False), loss


def deeper(model, layers):
    """The same scores from more layers: the new ones add 0, as where a model is grown to be taught on."""
    grown = Writer(64, layers).eval().requires_grad_(False)
    grown.load_state_dict(model.state_dict(), strict=False)
    for layer in grown.layers[1:]:
        for part in (layer.outward, layer.narrow):
            part.weight.zero_(), part.bias.zero_()
    return grown


began = time.perf_counter()
(first, error), (sketch, rough_error) = taught(1500, seed=0), taught(1200, seed=1)
writer = deeper(first, layers=16)
print(f"{time.perf_counter() - began:.1f} s for two models; {len(TEXT)} letters of {len(ALPHABET)} kinds")
print(f"the loss of a model that knows nothing: {math.log(len(ALPHABET)):.2f}")
for name, model, loss in (("writer", writer, error), ("sketch", sketch, rough_error)):
    weights = sum(weight.numel() for weight in model.parameters())
    print(f"{name}: {weights:9,} weights, {4 * weights / 1e6:4.1f} MB; its last loss {loss:.2f}")

# %% [markdown]
# Both have learnt the texts, from different beginnings. `writer` has sixteen layers: fifteen of them add nothing to what the
# first has learnt, but they cost as in any model of that depth. Both always take the likeliest letter (*greedy*), so a prompt
# has one answer.
#
# Writing without a cache reads the whole text again for each letter. With one, the model reads each letter once.
# (Transformers' page on caching says that it "eliminates this inefficiency": *F45*.)


# %%
def write_anew(model, prompt, length):
    text = prompt
    while text.shape[1] < length:
        text = torch.cat([text, read(model, text)[:, -1:].argmax(-1)], 1)
    return text


def write(model, prompt, length):
    caches, text, new = growing_caches(model), [prompt], prompt
    for _ in range(length - prompt.shape[1]):
        new = step(model, new, caches)[:, -1:].argmax(-1)
        text.append(new)
    return torch.cat(text, 1)


prompt = NUMBERS[None, :16]
assert torch.equal(write_anew(writer, prompt, 64), write(writer, prompt, 64))
print(repr("".join(ALPHABET[number] for number in write(writer, prompt, 64)[0])))

# %% [markdown]
# 16 letters are given, and 32 are to be written. How many times as fast is it with the cache?

# %%
guess = ...


# %%
def a_prompt(generator, device):
    begin = torch.randint(700, (1,), generator=generator)
    return NUMBERS[None, begin : begin + 16]


compare(
    "serving: 32 letters, all again or with a cache",
    {
        "all again": lambda prompt: write_anew(writer, prompt, 48),
        "with a cache": lambda prompt: write(writer, prompt, 48),
    },
    inputs=a_prompt,
    guess=guess,
    claim="F45",
    only="cpu",
    because="prices",
)

# %% [markdown]
# **Why** is it not so many times faster? Arithmetic is what a cache saves. But a step with one letter still calls every
# operation, and still reads every weight. The next section asks what that costs.

# %% [markdown]
# ## 2. Reading and writing
#
# A request has two parts. The prompt is there already, so all of its letters go through the model in one call: **prefill**.
# The answer comes letter by letter: **decode**. From here on we serve a larger model, whose weights are drawn and not
# taught, which for speed changes nothing. Most processors' caches cannot hold its weights; a large server's may.

# %%
large = Writer(512, 4).eval().requires_grad_(False)
WEIGHTS = sum(weight.numel() for weight in large.layers.parameters())
print(f"the large model: {4 * WEIGHTS / 1e6:.0f} MB of weights, each of which takes part in every call")

# %% [markdown]
# 16 letters, which we have: in 16 calls, or in one. How many times as fast is the one call? (*F44*)

# %%
guess = ...


# %%
def one_by_one(letters, model=large):
    caches = growing_caches(model)
    return torch.cat([step(model, letter, caches) for letter in letters.split(1, 1)], 1)


compare(
    "serving: 16 letters read, one by one or all at once",
    {"one by one": one_by_one, "all at once": lambda letters: read(large, letters)},
    inputs=whole_numbers(len(ALPHABET), 1, 16),
    guess=guess,
    claim="F44",
    only="cpu",
    bytes=4 * WEIGHTS,
    flops=2 * 16 * WEIGHTS,
    because="prices",
    seconds=0.6,
)

# %% [markdown]
# **Why.** The arithmetic is the same: two operations for each weight and letter. But 16 calls fetch all weights from
# memory 16 times, and one call fetches them once.
#
# How many letters can a call take until it needs twice the time of a call for one? From there on, more letters are no longer
# nearly free.

# %%
guess = ...


# %%
def milliseconds(call, turns=7):
    """The shortest, least disturbed of some turns."""
    call()
    return 1e3 * min(timeit.repeat(call, number=1, repeat=turns))


SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
some = torch.randint(len(ALPHABET), (1, 128))
sweep = {size: milliseconds(lambda size=size: read(large, some[:, :size])) for size in SIZES}
crossing = next((size for size in SIZES if sweep[size] > 2 * sweep[1]), SIZES[-1])
lines = [
    f"{size:3} letters: {ms:6.2f} ms, {ms / size:5.2f} ms a letter; {2 * WEIGHTS * size / ms / 1e6:5.1f} GFLOP/s, "
    f"{4 * WEIGHTS / ms / 1e6:4.1f} GB/s of weights"
    for size, ms in sweep.items()
]
guessed("letters for twice the time of one", guess, crossing, *lines, drawing=draw_sweep(sweep))

# %%
assert sweep[1] * 16 > sweep[16] and sweep[128] > sweep[32]

# %% [markdown]
# **Why.** On the left, the time grows far less than the letters do: what takes it is done once for all of them, and the last
# column says what. The weights come from *memory*, and a letter more is nearly free. On the right, operations per second hardly
# grow any more: *arithmetic* decides, and twice as many letters take nearly twice as long. So decode wastes a processor, and
# prefill fills it. (They are the two sides of chapter 00's *limit*, in one model.)

# %% [markdown]
# ## 3. Batches, and what they cost
#
# If letters of one text are nearly free, so are letters of other texts: users can share a step. Hugging Face's rule of thumb
# for pipelines says: "If you are using CPU, don't batch." (*F46*; its first rule is to measure.) Eight texts of 64 letters want
# their next one. How many times as fast is one after the other, compared with all in one batch? (Below 1: slower.)

# %%
guess = ...


# %%
def filled(model, texts, length):
    """Caches in which so many letters of each text are there."""
    caches = growing_caches(model)
    step(model, torch.randint(len(ALPHABET), (texts, length)), caches)
    return caches


def next_scores(model, letters, caches):
    """One step, after which the caches are as before."""
    before = [dict(vars(cache)) for cache in caches]
    scores = step(model, letters, caches)[:, -1]
    for cache, kept in zip(caches, before, strict=True):
        vars(cache).update(kept)
    return scores


def text_by_text(letters):
    pairs = zip(letters.split(1), alone, strict=True)
    return torch.cat([next_scores(large, letter, caches) for letter, caches in pairs])


together = filled(large, 8, 64)
parts = [[(cache.keys[n : n + 1], cache.values[n : n + 1]) for cache in together] for n in range(8)]
alone = [[Growing(*both) for both in part] for part in parts]
compare(
    "serving: the next letter of 8 texts",
    {
        "in one batch": lambda letters: next_scores(large, letters, together),
        "one after the other": text_by_text,
    },
    inputs=whole_numbers(len(ALPHABET), 8, 1),
    guess=guess,
    claim="F46",
    only="cpu",
    because="prices",
    seconds=0.6,
)

# %% [markdown]
# **Why.** It is section 2 again: eight times the weights, or once. The rule comes from another place: [its
# page](https://huggingface.co/docs/transformers/main_classes/pipelines) speaks of texts that are read once, and padded to the
# longest. A text has many letters already, so there a batch shares no reading of weights that was dear, and padding is work.
#
# And the price? All texts of a batch get their letter when the step ends. Look at both figures:

# %%
STEPS = {}
for texts in (1, 2, 4, 8, 16, 32):
    caches, letters = filled(large, texts, 64), torch.randint(len(ALPHABET), (texts, 1))
    STEPS[texts] = milliseconds(lambda letters=letters, caches=caches: next_scores(large, letters, caches))
    print(
        f"{texts:2} texts: {STEPS[texts]:5.2f} ms a step, {1e3 * texts / STEPS[texts]:5.0f} letters a second"
    )
PREFILL = sweep[64]  # milliseconds for a prompt of 64 letters
assert STEPS[32] > STEPS[1] and 32 / STEPS[32] > 2 / STEPS[1]

# %% [markdown]
# A larger batch writes more letters, and each user's letters come more slowly. The rest of the chapter uses this table.

# %% [markdown]
# ## 4. Where keys and values live
#
# `Growing` copies all keys and values in each step, to add one. A **static** cache has all its places from the start, and
# writes into the next one. One layer, 4 texts of 1,000 letters, one more. How many times as fast is the static one?

# %%
guess = ...


# %%
class Static:
    """The same with places for a longest text, reserved when it is made."""

    def __init__(self, texts, heads, longest, width, device="cpu"):
        self.keys, self.values = torch.zeros(2, texts, heads, longest, width, device=device)
        self.seen = 0

    def __call__(self, key, value):
        end = self.seen + key.shape[2]
        self.keys[:, :, self.seen : end], self.values[:, :, self.seen : end] = key, value
        self.seen = end
        return self.keys[:, :, :end], self.values[:, :, :end]


def next_of(query, key, value, cache):
    """Attention of one more letter, after which the cache is as before."""
    before = dict(vars(cache))
    mixed = attend(query, *cache(key, value))
    vars(cache).update(before)
    return mixed


def two_caches(texts, length, longest):
    def make(generator, device):
        def numbers(places):
            return torch.randn(texts, 8, places, 64, generator=generator).to(device)

        both = Growing(), Static(texts, 8, longest, 64, device)
        keys, values = numbers(length), numbers(length)
        for cache in both:
            cache(keys, values)
        return numbers(1), numbers(1), numbers(1), *both

    return make


compare(
    "serving: one more letter after 1,000, a cache that grows or is reserved",
    {
        "growing": lambda query, key, value, growing, static: next_of(query, key, value, growing),
        "static": lambda query, key, value, growing, static: next_of(query, key, value, static),
    },
    inputs=two_caches(4, 1000, 1024),
    guess=guess,
    because="prices",
    seconds=0.6,
)

# %% [markdown]
# **Why.** A copy of all in each step, into new memory. (What is predicted below the chart comes from bytes and calls alone. It
# knows nothing of new memory, whose page faults chapter 18 counts, and takes attention to be as fast as reading. So it may err
# to either side.) That is the growing cache's price; the static one's is memory that nobody uses. How long will an answer be?
# Nobody knows before. So each request must get the longest.
#
# ### Pages
#
# **Pages** are the way between, as in an operating system: memory is cut into pieces of, say, 16 positions, and a text
# gets another one when its last is full. A table says which pages are whose. Here are 200 texts, many short and few long, of
# at most 1,024 letters. What percentage of a memory that is reserved for 1,024 each is wasted?

# %%
guess = ...


# %%
def lengths_of_texts(number, typical, seed=0):
    drawn = random.Random(seed)
    return [min(1024, 1 + int(drawn.lognormvariate(math.log(typical), 0.8))) for _ in range(number)]


def wasted(lengths, page):
    """The share of reserved places that holds nothing, with pages of this size."""
    reserved = sum(page * math.ceil(length / page) for length in lengths)
    return 1 - sum(lengths) / reserved


long_ones, short_ones = lengths_of_texts(200, 250), lengths_of_texts(200, 25)
lines = [
    f"{name}, mean {mean(lengths):3.0f} letters: "
    + ", ".join(f"pages of {page}: {wasted(lengths, page):.1%}" for page in (1024, 128, 16, 1))
    for name, lengths in (("long answers", long_ones), ("short answers", short_ones))
]
guessed("percent wasted with 1,024 places each", guess, 100 * wasted(long_ones, 1024), *lines)

# %% [markdown]
# vLLM, which made pages popular, says that "memory waste only happens in the last block of a sequence. In practice, this
# results in near-optimal memory usage, with a mere waste of under 4%." (*F50*)

# %%
for name, lengths, side in (("long", long_ones, "when"), ("short", short_ones, "unless")):
    behaviour(
        "F50",
        f"With pages of 16, texts with {name} answers waste less than 4 %.",
        wasted(lengths, 16) < 0.04,
        **{side: "a text has many pages"},
    )

# %% [markdown]
# Where texts are longer than a page, about half a page is wasted for each, however long it is. So it is a question of the
# texts, and pages of one position waste nothing at all. Why are they not of one? A kernel must find each page, and reads a page
# in one piece. And torch's attention on a CPU knows no pages at all: for it they are copied together in each step (*Further*
# measures that).

# %% [markdown]
# ## 5. Who may join, and when
#
# The simplest server takes 16 requests, answers all, and takes the next 16. The batch lasts as long as its longest answer.
# **Continuous batching** looks after each step: who is ready leaves, and who waits takes the place at once. Hugging Face:
# "As requests finish, new ones join immediately instead of waiting for the whole batch to complete. The GPU stays full and
# throughput stays high." (*F51*) To see what that is worth we need no server, but a clock that is a number, and the step
# times of section 3. (They are of texts with 64 letters; that a step takes longer when texts are long is left out.) Without
# joining, a text that is done keeps its place in the batch, and its part of each step, until the longest is done.


# %%
def step_seconds(texts):
    """The time of a step, in seconds, between the sizes that were measured on a straight line."""
    sizes = [size for size in STEPS if size <= texts]
    low, high = sizes[-1], next((size for size in STEPS if size >= texts), sizes[-1])
    share = (texts - low) / max(1, high - low)
    return (STEPS[low] + share * (STEPS[high] - STEPS[low])) / 1e3


def serve(requests, slots, continuous=True, shortest_first=False):
    """Answer requests, each an arrival in seconds and a number of letters.

    Gives the seconds that each waited for its last letter, the time when all are answered, and who had a slot in
    each step.
    """
    waiting = deque(sorted((arrives, number, letters) for number, (arrives, letters) in enumerate(requests)))
    queue, left, now, ended, turns = [], {}, 0.0, {}, []
    while waiting or queue or left:
        while waiting and waiting[0][0] <= now:
            queue.append(waiting.popleft())
        if shortest_first:
            queue.sort(key=lambda request: request[2])
        if continuous or not left:
            joining, queue = queue[: slots - len(left)], queue[slots - len(left) :]
            left |= {number: letters for _, number, letters in joining}
            now += len(joining) * PREFILL / 1e3
        if not left:
            now = waiting[0][0]
            continue
        now += step_seconds(len(left))
        turns.append([number for number, letters in left.items() if letters > 0])
        left = {number: letters - 1 for number, letters in left.items()}
        if continuous or max(left.values()) <= 0:
            ready = [number for number, letters in left.items() if letters <= 0]
            ended |= dict.fromkeys(ready, now)
            left = {number: letters for number, letters in left.items() if number not in ready}
    return [ended[number] - arrives for number, (arrives, _) in enumerate(requests)], now, turns


# %% [markdown]
# 96 requests are there at once, with answers of many lengths. How many times sooner is the last one answered, if requests join
# when they can?

# %%
guess = ...

# %%
uneven = [(0.0, letters) for letters in lengths_of_texts(96, 60)]
even = [(0.0, round(mean(letters for _, letters in uneven)))] * 96
ends, drawn = {}, {}
for name, requests in (("uneven", uneven), ("even", even)):
    for how, continuous in (("all together", False), ("continuous", True)):
        _, ends[name, how], turns = serve(requests, 16, continuous)
        drawn[how] = drawn.get(how) or turns
lines = [f"{name:6} answers, {how:12}: {end:6.2f} s" for (name, how), end in ends.items()]
sooner = ends["uneven", "all together"] / ends["uneven", "continuous"]
guessed("times sooner", guess, sooner, *lines, drawing=draw_turns(drawn, slots=16))

# %%
for name, side in (("uneven", "when"), ("even", "unless")):
    fewer(
        "F51",
        f"seconds until 96 requests with {name} answers are done",
        without=ends[name, "all together"],
        following=ends[name, "continuous"],
        **{side: "answers differ in length"},
    )

# %% [markdown]
# White in the drawing are places that nobody uses. With equal answers there is nothing to fill.
#
# ### What a mean hides
#
# Somebody has an idea: let the shortest answer go first. (Say that its length can be told.) Four slots, a high load. The mean
# wait falls. What becomes of the wait that one in a hundred exceeds, the 99 % **quantile** (p99): how many times what it was?

# %%
guess = ...


# %%
def arrivals(number, per_second, typical=40, seed=0):
    """Requests at random moments (a Poisson process), with answers of many lengths."""
    drawn, now, requests = random.Random(seed), 0.0, []
    for letters in lengths_of_texts(number, typical, seed):
        now += drawn.expovariate(per_second)
        requests.append((now, letters))
    return requests


def quantile(waits, percent):
    """The least wait that at least so many percent of all do not exceed."""
    return sorted(waits)[-(-percent * len(waits) // 100) - 1]


at_once = [(0.0, letters) for _, letters in arrivals(1500, 1.0)]
most = len(at_once) / serve(at_once, 4)[1]  # requests that four slots can answer in a second
both = {
    name: serve(arrivals(1500, 0.9 * most), 4, shortest_first=first)[0]
    for name, first in (("first come", False), ("shortest first", True))
}
lines = [
    f"{name:14} mean {mean(waits):5.2f} s, half below {quantile(waits, 50):5.2f} s, "
    f"p99 {quantile(waits, 99):6.2f} s, the longest {max(waits):6.2f} s"
    for name, waits in both.items()
]
changed = quantile(both["shortest first"], 99) / quantile(both["first come"], 99)
guessed("times the p99 of before", guess, changed, *lines, drawing=draw_waits(both))

# %%
for figure, falls in ((mean, True), (lambda waits: quantile(waits, 50), True), (max, False)):
    assert (figure(both["shortest first"]) < figure(both["first come"])) == falls

# %% [markdown]
# Mean and median fall, and the longest wait grows: a few users pay. No mean shows them. So say of a server the median, for what
# is usual, and a high quantile, for the unlucky ones; and from how many requests. From 50 requests, "p99" is the longest of
# them, whatever it is. How much would it say? The same server, looked at for 50 requests and for 1,000, many times. (Each look
# draws its requests from one run. Those that really come one after the other wait together, so real looks differ even more.)

# %%
for size in (50, 1000):
    drawn = random.Random(1)
    looks = [quantile(drawn.choices(both["first come"], k=size), 99) for _ in range(200)]
    print(f"p99 from {size:5,} requests: from {quantile(looks, 5):5.2f} to {quantile(looks, 95):5.2f} s")

# %% [markdown]
# ## 6. A small model guesses
#
# One letter more is nearly free, but the next letter is not known. What if somebody guesses it? **Speculative decoding**: a
# small model writes four letters. The large one reads all *in one call*, and says after each what it would have written. As long
# as both agree, the letters stand. At the first that differs, the large model's own letter is taken, and both forget what came
# after it. So each call of the large model gives one letter at least, and five at most.


# %%
def speculate(model, small, prompt, length, ahead=4):
    """The text that the model writes, and how many guesses were right in each of its calls."""
    text, ours, theirs, right = prompt[0].tolist(), growing_caches(model), growing_caches(small), []
    text.append(step(model, prompt, ours)[0, -1].argmax().item())
    while len(text) < length:
        new, guesses = text[theirs[0].seen :], []
        for _ in range(ahead):
            new = [step(small, torch.tensor([new]), theirs)[0, -1].argmax().item()]
            guesses += new
        said = step(model, torch.tensor([[text[-1], *guesses]]), ours)[0].argmax(-1).tolist()
        same = [one == other for one, other in zip(guesses, said, strict=False)]
        right.append([*same, False].index(False))
        text += said[: right[-1] + 1]
        for cache in ours:
            cache.cut(len(text) - 1)  # the last letter was not read yet
        for cache in theirs:
            cache.cut(min(cache.seen, len(text) - 1))
    return torch.tensor([text[:length]]), right


# %% [markdown]
# `sketch` guesses for `writer`, up to 112 letters from each of five prompts. How many of four guesses are right, on average?

# %%
guess = ...

# %%
raw, _ = taught(20, seed=2)  # it has hardly learnt
prompts = [NUMBERS[None, begin : begin + 16] for begin in range(0, 700, 140)]
accepted, same = {}, {}
for name, small in (("sketch", sketch), ("hardly learnt", raw)):
    found = [speculate(writer, small, prompt, 112) for prompt in prompts]
    accepted[name] = [number for _, right in found for number in right]
    alike = (torch.equal(text, write(writer, p, 112)) for (text, _), p in zip(found, prompts, strict=True))
    same[name] = all(alike)
lines = [
    f"{name:13}: {mean(numbers):.2f} of 4 right; "
    + ", ".join(f"{number}: {numbers.count(number) / len(numbers):.0%}" for number in range(5))
    for name, numbers in accepted.items()
]
guessed("guesses that are right, of four", guess, mean(accepted["sketch"]), *lines)

# %% [markdown]
# "There is no degradation in accuracy because the verification forward pass ensures the same outputs are generated" (*F52*).
# Is it so, for both?

# %%
for name, agreed in same.items():
    behaviour("F52", f"With guesses of the small model ({name}), five texts are the same.", agreed)

# %% [markdown]
# A bad guesser costs time, and changes nothing. (Nearly: one call adds floats in another order than five. Where two letters are
# equally likely to the last digit, either may win.) The paper has seen "a 2X-3X acceleration" (*F53*). What is it here?

# %%
guess = ...


# %%
def alone_twice(device):
    return [write(writer, prompt, 64) for prompt in prompts[:2]]


def with_guesses(small):
    return lambda device: [speculate(writer, small, prompt, 64)[0] for prompt in prompts[:2]]


compare(
    "serving: 2 × 48 letters, alone or with a small model's guesses",
    {"alone": alone_twice, "with guesses": with_guesses(sketch)},
    guess=guess,
    claim="F53",
    only="cpu",
    differ="letters that are equally likely",
)

# %% [markdown]
# And with a small model that has hardly learnt?

# %%
guess = ...

# %%
compare(
    "serving: 2 × 48 letters, with a small model that has hardly learnt",
    {"alone": alone_twice, "with guesses": with_guesses(raw)},
    guess=guess,
    claim="F53",
    only="cpu",
    differ="letters that are equally likely",
)

# %% [markdown]
# **Why.** Four calls of the small model and one of the large one must cost less than the calls that they save. The next cell
# counts and foretells it, from the steps alone:


# %%
def step_of(model, new):
    caches, letters = filled(model, 1, 64), torch.zeros(1, new, dtype=torch.int64)
    return milliseconds(lambda: next_scores(model, letters, caches))


one, few, small_one = step_of(writer, 1), step_of(writer, 5), step_of(sketch, 1)
print(f"a step of writer {one:.2f} ms, for five letters {few:.2f} ms; of the small model {small_one:.2f} ms")
for name, numbers in accepted.items():
    letters, cost = 1 + mean(numbers), 4 * small_one + few
    print(f"{name:13}: {letters:.2f} letters a round, foretold {letters * one / cost:.2f} times as fast")
busy = sweep[128] / sweep[32]
print(f"four times the letters in a call, where 32 texts share it (section 2): {busy:.1f} times the time")
assert mean(accepted["hardly learnt"]) < mean(accepted["sketch"]) and few < 5 * one

# %% [markdown]
# So it loses in three cases: where guesses are mostly wrong; where the small model is not much faster (measure its step); and,
# the last line, on a busy server. With 32 letters in a call, more of them are no longer free, and every wrong guess is work.
# Guess when there is room, and batch when there is not.

# %% [markdown]
# ## 7. `torch.compile` and a cache
#
# A step of a small model is mostly calls (chapter 18), and `torch.compile` makes few of many (chapter 15). Hugging Face's
# page says that a growing cache "prevents you from taking advantage" of it (*F48*), because each step has another shape.
# A compiled step, 20 letters one after the other: how often does torch record a new graph with a growing cache? (`recorded`
# below counts the graphs that are handed to the part that would compile them.)

# %%
guess = ...


# %%
def recorded(function, calls):
    """How many graphs are recorded in these calls."""
    torch._dynamo.reset()
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(function, backend=keep)
    for arguments in calls:
        compiled(*arguments)
    return len(graphs)


def grown(model, letter, place, keys, values):
    """A step of a model with one layer; keys and values of what came before go in, and of all come out."""
    cache = Growing(keys, values)
    return model(letter, place, [cache], None), cache.keys, cache.values


def fixed(model, letter, place, keys, values):
    """The same with places for a longest text: the new ones are written at ``place``, and a mask says what is filled."""

    def cache(key, value):
        keys.index_copy_(2, place, key)
        values.index_copy_(2, place, value)
        return keys, values

    filled = torch.arange(keys.shape[2], device=keys.device) <= place
    return model(letter, place, [cache], filled[None, None, None])


letter = torch.tensor([[3]])
room = torch.zeros(2, 1, 2, 256, 32)
growing_calls = [(sketch, letter, torch.tensor([n]), *room[:, :, :, :n].clone()) for n in range(8, 28)]
static_calls = [(sketch, letter, torch.tensor([n]), *room) for n in range(8, 28)]
graphs = {"growing": recorded(grown, growing_calls), "static": recorded(fixed, static_calls)}
guessed("graphs for 20 lengths of a growing cache", guess, graphs["growing"], f"static: {graphs['static']}")

# %%
said = "A compiled step with a growing cache is recorded anew at each of 20 lengths."
behaviour("F48", said, graphs["growing"] >= 20)
assert graphs["static"] == 1

# %% [markdown]
# The second time, torch notices that a size changes, and records for any size (*dynamic shapes*, chapter 15). And the time? A
# step of the small model after 100 letters: how many times as fast is it, static and compiled?

# %%
guess = ...


# %%
def with_places(model, longest=256):
    def make(generator, device):
        caches = torch.randn(2, 1, model.layers[0].heads, longest, 32, generator=generator)
        return letter, torch.tensor([100]), *caches.unbind()

    return make


def compiled_step(model):
    """A compiled step, and the seconds of its first call."""
    torch._dynamo.reset()
    faster = torch.compile(functools.partial(fixed, model), fullgraph=True)
    began = time.perf_counter()
    faster(*with_places(model)(torch.Generator(), "cpu"))
    return faster, time.perf_counter() - began


def one_step(model, compiled):
    def growing(letter, place, keys, values):
        return grown(model, letter, place, keys[:, :, :100], values[:, :, :100])[0]

    return {"growing": growing, "static": functools.partial(fixed, model), "static, compiled": compiled}


if shutil.which(compiler):
    faster, first_call = compiled_step(sketch)
    small_step = compare(
        "serving: a step after 100 letters, static and compiled",
        one_step(sketch, faster),
        inputs=with_places(sketch),
        guess=guess,
        claim="F49",
        only="cpu",
    )

# %%
if shutil.which(compiler):
    sample = small_step.samples["cpu"]
    saved = min(sample.seconds("growing")) - min(sample.seconds("static, compiled"))
    print(f"the first call takes {first_call:.1f} s, and each later one saves {1e6 * saved:.0f} µs:")
    print(f"it has paid after {first_call / max(saved, 1e-9):,.0f} letters")

# %% [markdown]
# "Your speed up may vary depending on the model size (larger models have a smaller speed up)", says the page itself: *Further*
# has one. And a static cache asks about all its places, filled or not: keep it as short as its texts need.

# %% [markdown]
# ## Further
#
# You can skip this part: the exercises do not need it. It is about what pages cost, about serving one at a time, about the
# compiler and a larger model, and about long prompts.
#
# ### What pages cost
#
# Here are the pages of section 4, for one layer: the same one more letter after 1,000, for 4 texts. How many times as fast as
# the static cache are they?

# %%
guess = ...


# %%
class Paged:
    """The same in pages of a common memory. A table has the pages of each text, in their order."""

    def __init__(self, keys, values, page=16):
        texts, heads, places, width = keys.shape
        self.page, each = page, math.ceil((places + 1) / page)
        order = torch.randperm(texts * each)  # anywhere: other texts came and went
        self.tables = order.view(texts, each).to(keys.device)
        self.keys, self.values = keys.new_zeros(2, texts * each, heads, page, width)
        for pool, given in ((self.keys, keys), (self.values, values)):
            padded = F.pad(given, (0, 0, 0, each * page - places)).unflatten(2, (each, page))
            pool[self.tables] = padded.transpose(1, 2)
        self.seen = places

    def __call__(self, key, value):
        place = self.tables[:, self.seen // self.page], slice(None), self.seen % self.page
        self.keys[place], self.values[place] = key[:, :, 0], value[:, :, 0]
        self.seen += 1
        gathered = (pool[self.tables].transpose(1, 2).flatten(2, 3) for pool in (self.keys, self.values))
        return tuple(one[:, :, : self.seen] for one in gathered)


def static_and_paged(generator, device):
    *three, growing, static = two_caches(4, 1000, 1024)(generator, device)
    return *three, static, Paged(growing.keys, growing.values)


compare(
    "serving: one more letter after 1,000, reserved places or pages",
    {
        "static": lambda query, key, value, static, paged: next_of(query, key, value, static),
        "pages": lambda query, key, value, static, paged: next_of(query, key, value, paged),
    },
    inputs=static_and_paged,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** Torch's attention wants keys that lie in a row, so the pages are gathered first: a copy of all, in each step. A
# kernel for pages reads each page where it lies (vLLM has one; `flex_attention` can be told to, on a GPU). Without such a
# kernel, pages save memory and cost time.
#
# ### One at a time, when users wait
#
# "If you are latency constrained (live product doing inference), don't batch", says the rule of thumb (*F47*). Requests
# arrive at random, one in so many seconds. A server that takes one at a time answers each as fast as can be, once its turn
# has come. Its mean wait at a high load: how many times that of a server with 16 slots?

# %%
guess = ...


# %%
single = mean(
    serve([request], 1)[1] - request[0] for request in arrivals(300, 1.0)
)  # seconds for one request
loads = {"a fiftieth": 0.02 / single, "nine tenths": 0.9 / single, "twice": 2 / single}
waits = {}
for load, per_second in loads.items():
    for slots in (1, 16):
        waits[load, slots] = serve(arrivals(300, per_second), slots)[0]
lines = [
    f"{load:11} of what one at a time can do, {slots:2} slots: mean {mean(waits[load, slots]):6.2f} s"
    for load, slots in waits
]
ratio = mean(waits["nine tenths", 1]) / mean(waits["nine tenths", 16])
guessed("times the wait, at nine tenths of what it can do", guess, ratio, *lines)

# %%
for load, side in (("a fiftieth", "when"), ("twice", "unless")):
    behaviour(
        "F47",
        f"At {load} of what one at a time can do, one at a time lets users wait no longer.",
        mean(waits[load, 1]) <= 1.1 * mean(waits[load, 16]),
        **{side: "there is hardly ever a second request"},
    )

# %% [markdown]
# Where requests hardly ever meet there is no batch, so both servers are the same. Where they meet, the one that takes them
# one by one has a queue. Latency is not the time of a step: it is the time until the answer, and under load most of that
# is waiting in a queue.
#
# ### A larger model, compiled
#
# The compiled step of section 7, for one layer of width 1,024. How many times as fast is it, static and compiled?

# %%
guess = ...

# %%
if shutil.which(compiler):
    wide = Writer(1024, 1).eval().requires_grad_(False)
    faster, _ = compiled_step(wide)
    compare(
        "serving: a step after 100 letters, static and compiled, width 1,024",
        one_step(wide, faster),
        inputs=with_places(wide),
        guess=guess,
        claim="F49",
        only="cpu",
    )

# %% [markdown]
# What the compiler takes away are calls and the tables between them. The large model's step is its weights, which must be
# read all the same.
#
# ### A prompt in pieces
#
# A request joins a batch of 16 texts, and its prompt has 512 letters. While that is read, 16 users get nothing. vLLM and
# others read it in pieces (*chunked prefill*): each step takes a letter of all 16 texts and 48 letters of the prompt. How
# many times shorter is the longest pause?

# %%
guess = ...

# %%
long_prompt = torch.randint(len(ALPHABET), (1, 512))
whole = milliseconds(lambda: read(large, long_prompt), turns=3)
piece = milliseconds(lambda: read(large, long_prompt[:, :64]))
lines = (
    f"the prompt at once: {whole:6.1f} ms; a step with a piece of it: {piece:5.1f} ms",
    f"until its first letter: {whole:6.1f} ms at once, {512 / 48 * piece:6.1f} ms in pieces",
)
guessed("times shorter", guess, whole / piece, *lines)

# %%
assert piece < whole < 2 * 512 / 48 * piece

# %% [markdown]
# The 16 users wait less, and the new one waits longer. (Counted as if all 64 letters were of one text, which for weights is
# the same, and as if every piece were the first; later ones attend to more.) F44's page says so of the two kinds of work: put
# them into one batch.
#
# ## Summary
#
# **Chapter 00's routine here:** predict a step from bytes of weights and from arithmetic; measure steps of all sizes once; let
# a simulation say what a policy does with them; verify that the text is the same.
#
# | you have | do | because |
# |---|---|---|
# | letters that are there already | all in one call | weights are read once for all |
# | several users, on a CPU, too | batches, up to the crossing | a text more is nearly free while memory decides |
# | a text that grows | a cache | without it, all is computed again for each letter |
# | a cache that grows by `cat` | reserve its places, if the length is known | new memory in each step |
# | texts of unknown length | pages, with a kernel for them | half a page is wasted for each text; without a kernel, a copy |
# | answers of different lengths | continuous batching | a batch waits for its longest |
# | a server to describe | median and p99, and from how many requests | a mean hides who pays |
# | room in a step, texts that can be guessed | a small model's guesses | several letters for one reading of the weights |
# | a busy server, or a poor guesser | no guesses | what is wrong is work |
# | a small model, many letters | static cache and `torch.compile` | calls are its price, and compiling is paid by many letters |

# %%
verdicts("F44", "F45", "F46", "F47", "F48", "F49", "F50", "F51", "F52", "F53")

# %% [markdown]
# *F46* and *F47* are rules of thumb for pipelines, and their page begins with a better one: measure. *F48*: the page compiles
# with `mode="reduce-overhead"`, for a GPU; CUDA graphs want fixed shapes (chapter 18).
#
# **Now you:** [the exercises of this chapter](../exercises/20_serving/20_serving.ipynb). A server's clock, pages that texts
# share, guesses with chances, a quantile that moves, and writing without a wait.
