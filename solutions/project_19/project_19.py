# %% [markdown]
# # Project after 19: how a text goes on
#
# One piece of code, as it stands in a real repository: a small language model says how likely each of several endings
# is, for texts that somebody has begun (a search box does so, and a keyboard). It is right, and it is slow in more than one
# place. Nobody names them.
#
# **How it works.** Make it as fast as you can. Points for speed grow with the logarithm of what you reach: from none for
# the given version to all for two thirds of what the course's own answer reached. You also keep a journal: you say
# what your first change will bring before you make it, and what all of them will. The grader measures both of your
# versions, and compares. After the first date your instructor may show the three fastest answers whose authors agree (a line
# `# you may show this` in the cell says so), without names; until the second date you may hand in again.
#
# Nothing here needs a GPU; it is raced on the CPU, with one thread. The causes are those of chapters 15 to 19 and of
# earlier ones. What this code does, says [its page](../../course/project_19.ipynb). 30 points, about 230 minutes.

# %% id="setup" role="given"
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils import rnn

from autograder import check, race

TEXTS = [file.read_text() for file in sorted(Path("../../data/texts").glob("*/*.txt"))]
ALPHABET = sorted(set("".join(TEXTS)))
NUMBERS = [torch.tensor([ALPHABET.index(one) for one in text]) for text in TEXTS]

# %% [markdown]
# ## The code
#
# `complete(weights, prompts, endings)` says how each text goes on.
#
# - `weights`: dict. `"embedding"`: `float32` of shape `(A, W)`, a row a character; `"layers"`: list of dicts with
#   `"query"`, `"key"`, `"value"`, `"out"` of shape `(W, W)`, `"widen"` of shape `(W, V)` and `"narrow"` of shape `(V, W)`.
#   *W* is a multiple of 8, *V* any width. The weights are drawn, and no training has seen them: for speed that changes nothing.
# - `prompts`: list of `int64` tensors, the characters of each text that is begun, one at least. `endings`: list as long,
#   with a list of `int64` tensors for each, which have one character at least. A text may have no ending at all, and
#   there may be no text.
# - returns: list of tuples `(means, least, next)`, one a text, all `float32`: the mean log-probability of the characters of
#   each ending and the least of them, of shape `(endings,)`, and the probabilities of the next character, of shape `(A,)`.


# %% id="complete_given" role="given"
class Model:
    """A language model of characters."""

    heads = 8

    def __init__(self, weights):
        self.weights = weights
        self.width = weights["embedding"].shape[1]

    def places(self, length):
        """Sines and cosines of slower and slower waves, a row for each place in the text."""
        table = np.zeros((length, self.width))
        for place in range(length):
            for i in range(0, self.width, 2):
                angle = place / 10_000 ** (i / self.width)
                table[place, i : i + 2] = np.sin(angle), np.cos(angle)
        return torch.from_numpy(table)

    def read(self, text):
        rows = [self.weights["embedding"][character] for character in text]
        return torch.stack(rows) + self.places(len(text))

    def normed(self, x):
        """Each row with mean 0 and variance 1."""
        centred = x - x.mean(dim=1, keepdim=True)
        return centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()

    def attend(self, x, layer):
        """Each place takes from those before it, and from itself, what it asks for."""
        queries = x @ layer["query"].to(x.dtype)
        keys = x @ layer["key"].to(x.dtype)
        values = x @ layer["value"].to(x.dtype)
        size = self.width // self.heads
        found = []
        for start in range(0, self.width, size):
            part = slice(start, start + size)
            scores = queries[:, part] @ keys[:, part].T / size**0.5
            for place in range(len(x)):
                scores[place, place + 1 :] = float("-inf")
            found.append(scores.softmax(dim=1) @ values[:, part])
        return torch.cat(found, dim=1) @ layer["out"].to(x.dtype)

    def think(self, x, layer):
        wide = F.gelu(x @ layer["widen"].to(x.dtype))
        return wide @ layer["narrow"].to(x.dtype)

    def foretell(self, text):
        """The log-probabilities of the character after each place."""
        x = self.read(text)
        for layer in self.weights["layers"]:
            x = x + self.attend(self.normed(x), layer)
            x = x + self.think(self.normed(x), layer)
        logits = self.normed(x) @ self.weights["embedding"].to(x.dtype).T
        return logits.log_softmax(dim=1)

    def score(self, prompt, ending):
        """The mean of an ending's log-probabilities, and the least of them."""
        found = self.foretell(torch.cat([prompt, ending]))
        chosen = []
        for place, character in enumerate(ending.tolist(), len(prompt) - 1):
            chosen.append(found[place, character].item())
        return sum(chosen) / len(chosen), min(chosen)


def complete_slow(weights, prompts, endings):
    """How each text goes on."""
    found = []
    for prompt, own in zip(prompts, endings, strict=True):
        model = Model(weights)
        scores = torch.tensor([model.score(prompt, ending) for ending in own]).view(-1, 2)
        following = model.foretell(prompt)[-1].exp().float()
        found.append((scores[:, 0], scores[:, 1], following))
    return found


# %% id="complete_inputs" role="given" jupyter={"source_hidden": true}
def drawn_weights(generator, width, layers):
    shapes = {name: (width, width) for name in ("query", "key", "value", "out")}
    shapes |= {"widen": (width, 4 * width), "narrow": (4 * width, width)}
    draw = lambda *shape: torch.randn(*shape, generator=generator) / shape[0] ** 0.5
    return {
        "embedding": torch.randn(len(ALPHABET), width, generator=generator) / 4,
        "layers": [{name: draw(*shape) for name, shape in shapes.items()} for _ in range(layers)],
    }


def begun(generator, number, shortest, longest, most):
    """Beginnings of the texts at any place, each with up to so many endings from other places."""
    prompts, endings = [], []
    pick = lambda low, high: int(torch.randint(low, high + 1, (), generator=generator))

    def piece(low, high):
        text = NUMBERS[pick(0, len(NUMBERS) - 1)]
        length = min(pick(low, high), len(text))
        start = pick(0, len(text) - length)
        return text[start : start + length].clone()

    for _ in range(number):
        prompts.append(piece(shortest, longest))
        endings.append([piece(1, 12) for _ in range(pick(0, most))])
    return prompts, endings


def eight_texts(generator, device):
    weights = drawn_weights(generator, 64, 2)
    prompts, _ = begun(generator, 8, 16, 40, 0)
    return weights, prompts, [begun(generator, 6, 2, 10, 0)[0] for _ in prompts]


# %% [markdown]
# ## Your journal
#
# *Easy, 20 minutes.* Write `foretold()`, before you mend anything. It returns a dict: what you think is the largest part, and
# how many times as fast the code will be without its waste (`"first"`), and after all that you mean to do (`"all"`).
#
# ```python
# return {"largest part": "…", "first": 1.5, "all": 10}
# ```
#
# A number gives its points if the grader measures your version within 1.5 times of `"first"`, and within 2 times of `"all"`.
#
# <details><summary>Hint 1</summary>Leave one part out, and measure the whole: chapter 14 and the clinics show how.</details>
# <details><summary>Hint 2</summary>Count how often each part runs for a text, and how often it would have to.</details>


# %% id="foretold" role="answer"
def foretold():
    ### BEGIN SOLUTION
    return {"largest part": "attend: a head and a row at a time", "first": 2, "all": 27}
    ### END SOLUTION


# %% id="foretold_form" role="test"
def form():
    found = foretold()
    numbers = [found["first"], found["all"]]
    return bool(found["largest part"].strip()), all(1 <= number < 1000 for number in numbers)


def good_form():
    return True, True


def no_inputs(generator, device):
    return ()


check(form, like=good_form, on=no_inputs, points=1)

# %% [markdown]
# ## 1. The first change
#
# *Medium, 60 minutes.* Write `complete_first`: the same code, with the waste of **one** part gone, the one that you named: a
# method, or several with one cause. It must be 1.4 times as fast or more. (A subclass
# of `Model` with one method mended is enough.)


# %% id="complete_first" role="answer"
def complete_first(weights, prompts, endings):
    ### BEGIN SOLUTION
    class Mended(Model):
        def attend(self, x, layer):
            names = ("query", "key", "value")
            parts = ((x @ layer[name].to(x.dtype)).unflatten(1, (8, -1)).transpose(0, 1) for name in names)
            seen = F.scaled_dot_product_attention(*parts, is_causal=True)
            return seen.transpose(0, 1).flatten(1) @ layer["out"].to(x.dtype)

    found = []
    for prompt, own in zip(prompts, endings, strict=True):
        model = Mended(weights)
        scores = torch.tensor([model.score(prompt, ending) for ending in own]).view(-1, 2)
        following = model.foretell(prompt)[-1].exp().float()
        found.append((scores[:, 0], scores[:, 1], following))
    return found
    ### END SOLUTION


# %% id="complete_first_check" role="test"
check(complete_first, like=complete_slow, on=eight_texts, points=2)

# %% id="complete_first_race" role="test"
race(complete_first, against=complete_slow, on=eight_texts, at_least={"cpu": 1.4}, points=3)

# %% id="foretold_first" role="test" points=2
# Hidden test: what you foretold of it, when your notebook is graded.
### BEGIN HIDDEN TESTS
from autograder.judging.race import as_foretold

2 * as_foretold(foretold()["first"], complete_slow, within=1.5)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. All that you can
#
# *Hard, 150 minutes.* Write `complete`: the same result, as fast as you can make it.
#
# The last race gives all of its points for the ratio that it asks for (`at_least`), and below it they grow with the
# logarithm of what you reach. Three tests are hidden, with 7 of the 30 points: cases at the edge, and what you foretold.
# Numbers of type `float32` may differ by a ten-thousandth of their size.


# %% id="complete" role="answer"
def complete(weights, prompts, endings):
    ### BEGIN SOLUTION
    if not prompts:
        return []
    embedding, width = weights["embedding"], weights["embedding"].shape[1]
    normed = lambda x: F.layer_norm(x, (width,))
    in_heads = lambda x: x.unflatten(2, (8, -1)).transpose(1, 2)
    padded = lambda texts: rnn.pad_sequence(texts, batch_first=True)

    # The prompts, each once. What stands after a text's end is seen by nothing before it.
    began = torch.tensor([len(prompt) for prompt in prompts])
    own = [ending for all_of_one in endings for ending in all_of_one]
    lengths = torch.tensor([len(ending) for ending in own], dtype=torch.int64)
    waves = 10_000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.outer(torch.arange(sum(int(one.max()) for one in (began, lengths) if len(one))), waves)
    places = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).float()

    def run(x, past, **mask):
        kept = []
        for number, layer in enumerate(weights["layers"]):
            y = normed(x)
            keys, values = in_heads(y @ layer["key"]), in_heads(y @ layer["value"])
            kept.append((keys, values))
            if past:
                keys, values = (torch.cat(both, dim=2) for both in zip(past[number], kept[-1], strict=True))
            seen = F.scaled_dot_product_attention(in_heads(y @ layer["query"]), keys, values, **mask)
            x = x + seen.transpose(1, 2).flatten(2) @ layer["out"]
            x = x + F.gelu(normed(x) @ layer["widen"]) @ layer["narrow"]
        return normed(x), kept

    texts = padded(prompts)
    x, kept = run(embedding[texts] + places[: texts.shape[1]], [], is_causal=True)
    after = (x[torch.arange(len(prompts)), began - 1] @ embedding.T).log_softmax(dim=1)
    following = after.exp()
    if not own:
        nothing = torch.zeros(0)
        return [(nothing, nothing.clone(), one) for one in following]

    # The endings, all at once, on what is kept of their prompts.
    owner = torch.repeat_interleave(torch.tensor([len(all_of_one) for all_of_one in endings]))
    texts = padded(own)
    steps = torch.arange(texts.shape[1] - 1)
    chosen = after[owner, texts[:, 0]][:, None]
    if len(steps):
        before = torch.arange(kept[0][0].shape[2]) < began[owner, None]
        mask = torch.cat(
            [before[:, None].expand(-1, len(steps), -1), (steps <= steps[:, None]).expand(len(own), -1, -1)],
            dim=2,
        )
        x = embedding[texts[:, :-1]] + places[began[owner, None] + steps]
        x, _ = run(x, [[one[owner] for one in both] for both in kept], attn_mask=mask[:, None])
        rest = (x @ embedding.T).log_softmax(dim=2).gather(2, texts[:, 1:, None])[..., 0]
        chosen = torch.cat([chosen, rest], dim=1)
    there = torch.arange(texts.shape[1]) < lengths[:, None]
    means = torch.where(there, chosen, 0).sum(dim=1) / lengths
    least = torch.where(there, chosen, 0).amin(dim=1)
    numbers = [len(all_of_one) for all_of_one in endings]
    return list(zip(means.split(numbers), least.split(numbers), following, strict=True))
    ### END SOLUTION


# %% id="complete_check" role="test"
check(complete, like=complete_slow, on=eight_texts, points=4)


# %% id="complete_hidden" role="test"
# Hidden test: other sizes and numbers, when your notebook is graded.
### BEGIN HIDDEN TESTS
def a_few(generator, device):
    return drawn_weights(generator, 40, 3), *begun(generator, 5, 1, 30, 3)


def nothing_to_choose(generator, device):
    prompts, _ = begun(generator, 3, 2, 9, 0)
    return drawn_weights(generator, 16, 1), prompts, [[], [], []]


def one_character(generator, device):
    prompts, _ = begun(generator, 2, 1, 1, 0)
    return drawn_weights(generator, 16, 2), prompts, [begun(generator, 2, 1, 1, 0)[0], []]


def nothing_begun(generator, device):
    return drawn_weights(generator, 16, 1), [], []


check(complete, like=complete_slow, on=[a_few, nothing_to_choose, one_character, nothing_begun], points=3)
### END HIDDEN TESTS

# %% id="complete_race" role="test"
race(complete, against=complete_slow, on=eight_texts, at_least={"cpu": 18}, points=13)

# %% id="foretold_all" role="test" points=2
# Hidden test: what you foretold of it, when your notebook is graded.
### BEGIN HIDDEN TESTS
2 * as_foretold(foretold()["all"], complete_slow, within=2)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
