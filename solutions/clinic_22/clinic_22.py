# %% [markdown]
# # Clinic after 22: where is the time?
#
# Ten pieces of code from around large models: trained, made small, shared among ranks, and served. They stand as in real
# repositories. All of them are right. Some waste most of their time in one place, some have nothing wrong. Nobody tells you
# which, nor where.
#
# **How it works**, as in [the clinic after 04](../clinic_04/clinic_04.ipynb). First you say of all ten, **before you
# mend anything**: the line, the cause, and how many times as fast the piece will be when it is mended. Then you mend
# them. A piece is worth 5 points: 2 for the line, 1.5 for the cause, 1 for mending it, and 0.5 for a gain within 1.5
# times of what our mended piece reached where the course was made, or of what yours reaches when it passes its race.
# 1 point more is for a diagnosis that can be read. Most tests are hidden, and run when your notebook is graded.
#
# All pieces run on the CPU, with one thread when they are raced; for a gain, a change must make the piece 1.5 times as
# fast or more. To compile a piece is no such change. The causes are those of chapters 15 to 22, and of earlier ones. A
# worked case is [here](../../course/clinic_22.ipynb).
# 51 points, about 85 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F
from torch import fx, nn

from autograder import check, costs, race
from autograder.judging.clinic import few, readable, right_causes, right_gains, right_lines

CAUSES = {
    "nothing": "no single change would make it 1.5 times as fast",
    "small pieces": "many small operations do what few large ones would",
    "recorded": "a function is recorded or compiled anew, where once would do",
    "repeated": "the same numbers are computed again and again",
    "growing": "what is there already is copied whole, each time something is added",
    "copied": "numbers are copied where a view would show them",
    "padding": "work is done on what only fills up to the longest",
    "table": "a large table is written out, of which only sums are wanted, and these can be had without it",
    "whole": "all is brought together, or converted, before the part that is needed is taken",
    "type": "numbers are of a type in which this work is slow, where another type gives the same",
    "waiting": "Python waits for a number in each step, and decides by it what to do next",
}


def counted(function, inputs):
    """What `costs` counts in a call of a piece, such as `counted(tagged, eight_sentences)`."""
    return costs(function, *inputs(torch.Generator().manual_seed(0), "cpu"))


# %% [markdown]
# ## How to look
#
# `counted(tagged, eight_sentences)` counts what one call of a piece asks of torch. What a line takes, you can measure: copy
# the piece into a new cell, change that line or leave it out, and `compare` the two, with `inputs=eight_sentences` and
# `differ="a line is left out"`. Both are free: use them as often as you like. The inputs of each piece are folded below it.
# A mended piece must also be right where there is nothing to work on, or one thing: `few(eight_sentences)` makes such inputs.
#
# <details><summary>Hint 1</summary>Say first what the piece has to do at least: how many operations, on how many bytes, with
# how much arithmetic. Then count, and measure. Where the two are far apart, there is the place.</details>
# <details><summary>Hint 2</summary>A loop is no waste where each step needs the one before, or does much. Ask of each line how
# often it runs, how many numbers it makes, of what type, and how many of them somebody reads.</details>
# <details><summary>Hint 3</summary>If a line takes the share <em>s</em> of the time, and nearly nothing when it is mended,
# the piece becomes 1 / (1 − <em>s</em>) times as fast: 3 times for two thirds, 10 times for nine tenths.</details>

# %% [markdown]
# ## 1. `private_step`
#
# Learning that tells nothing of a single person (DP-SGD): no sample may have a gradient longer than a limit. Here: 128
# samples of 128 numbers, layers of 128 × 128 and 128 × 10.


# %% id="private_step" role="given"
def private_step(first, second, samples, labels, limit):
    """The sum of all gradients, each no longer than the limit, for both layers; and how long each one was.

    A sample's gradient is that of its cross-entropy, with respect to both layers together.
    """
    hidden = F.relu(samples @ first)
    logits = hidden @ second
    off = logits.softmax(dim=1) - F.one_hot(labels, logits.shape[1])
    back = (off @ second.T) * (hidden > 0)

    of_first = torch.einsum("ni,no->nio", samples, back).flatten(1)
    of_second = torch.einsum("ni,no->nio", hidden, off).flatten(1)
    both = torch.stack([of_first.norm(dim=1), of_second.norm(dim=1)])
    lengths = both.norm(dim=0)
    shares = (limit / lengths.clamp(min=limit))[:, None]
    first_sum = of_first.mul_(shares).sum(dim=0).view_as(first)
    second_sum = of_second.mul_(shares).sum(dim=0).view_as(second)
    return first_sum, second_sum, lengths


# %% id="private_step_inputs" role="given" jupyter={"source_hidden": true}
def patients(generator, device, samples=128):
    first = torch.randn(128, 128, generator=generator) / 11
    second = torch.randn(128, 10, generator=generator) / 11
    drawn = torch.randn(samples, 128, generator=generator)
    return first, second, drawn, torch.randint(10, (samples,), generator=generator), 11.0


# %% [markdown]
# ## 2. `rounded`
#
# The weights of a layer in 4 bits. What rounding loses in one row is made up for in the rows that come after it (GPTQ). Here:
# 32 rows of 4,096 weights.


# %% id="rounded" role="given"
def rounded(weight, factors, scales):
    """Codes from −8 to 7 for each weight, how much each column has lost, and the share of codes at the rim.

    weight: (inputs, outputs); factors: of each input, how much of its loss goes to those after it, an upper
    triangle; scales: of each output, the step between two codes.
    """
    left = weight.clone()
    codes = torch.empty_like(weight, dtype=torch.int8)
    lost = weight.new_zeros(weight.shape[1])
    for number, shares in enumerate(factors):
        row = left[number]
        code = (row / scales).round_().clamp_(-8, 7)
        codes[number] = code
        off = (row - code * scales) / shares[number]
        left[number + 1 :].addr_(shares[number + 1 :], off, alpha=-1)
        lost.addcmul_(off, off)

    rim = ((codes == -8) | (codes == 7)).sum() / max(codes.numel(), 1)
    return codes, lost.sqrt(), rim


# %% id="rounded_inputs" role="given" jupyter={"source_hidden": true}
def one_layer(generator, device, inputs=32):
    # Numbers of few bits, so that no sum is rounded, and codes do not hang on the order of operations.
    weight = (64 * torch.randn(inputs, 4_096, generator=generator)).round() / 64
    shares = torch.randint(-1, 2, (inputs, inputs), generator=generator)
    scales = 0.25 * torch.randint(1, 3, (4_096,), generator=generator)
    return weight, shares.triu(1) + torch.eye(inputs), scales


# %% [markdown]
# ## 3. `searchable`
#
# A search engine keeps a vector of each text. Here: 24 texts of 4 to 24 words, but one of 128; 128 numbers a word, two blocks.


# %% id="searchable" role="given"
def searchable(embedding, blocks, tokens, lengths):
    """A vector of length 1 for each text, and how far its words lie from their mean.

    tokens: (texts, positions), filled up with zeros behind each text's end.
    """
    there = torch.arange(tokens.shape[1]) < lengths[:, None]
    x = embedding[tokens]
    for query, widen, narrow in blocks:
        asked = x @ query
        seen = F.scaled_dot_product_attention(asked, x, x, attn_mask=there[:, None])
        x = F.layer_norm(x + seen, x.shape[-1:])
        x = x + F.gelu(x @ widen) @ narrow

    count = lengths[:, None]
    mean = (x * there[..., None]).sum(dim=1) / count
    apart = (x - mean[:, None]).norm(dim=2)
    spread = (apart * there).sum(dim=1) / lengths
    return F.normalize(mean, dim=1), spread


# %% id="searchable_inputs" role="given" jupyter={"source_hidden": true}
def new_texts(generator, device, texts=24):
    embedding = torch.randn(1_000, 128, generator=generator) / 3
    shapes = (128, 128), (128, 256), (256, 128)
    blocks = [[torch.randn(*shape, generator=generator) / 12 for shape in shapes] for _ in range(2)]
    lengths = torch.randint(4, 25, (texts,), generator=generator)
    lengths[texts // 2 : texts // 2 + 1] = 128
    tokens = torch.randint(1_000, (texts, 128), generator=generator)
    return embedding, blocks, tokens * (torch.arange(128) < lengths[:, None]), lengths


# %% [markdown]
# ## 4. `tagged`
#
# Which word is a name, which a verb? The likeliest row of tags for a sentence (Viterbi). Here: 8 sentences of 30 words, 12
# tags.


# %% id="tagged" role="given"
def tagged(scores, moves, starts):
    """The best tags of each sentence, and their score.

    scores: of each word and tag, (sentences, words, tags); moves: of each tag that follows another, (from, to);
    starts: of the first word's tags.
    """
    sentences, words, _ = scores.shape
    tags = torch.empty(sentences, words, dtype=torch.int64)
    found = scores.new_empty(sentences)
    for number, sentence in enumerate(scores):
        reached = starts + sentence[0]
        origins = []
        for word in sentence[1:]:
            best, origin = (reached[:, None] + moves).max(dim=0)
            reached = best + word
            origins.append(origin)

        found[number], tag = reached.max(dim=0)
        tags[number, -1] = tag
        for place in range(words - 2, -1, -1):
            tag = origins[place][tag]
            tags[number, place] = tag
    return tags, found


# %% id="tagged_inputs" role="given" jupyter={"source_hidden": true}
def eight_sentences(generator, device, sentences=8):
    scores = torch.randn(sentences, 30, 12, generator=generator)
    moves = torch.randn(12, 12, generator=generator)
    return scores, moves, torch.randn(12, generator=generator)


# %% [markdown]
# ## 5. `vocabulary_loss`
#
# The words of a language model lie on four ranks, a quarter on each. So does what is computed of them; only sums and maxima
# travel. Here, in one process: 128 positions, 128 numbers each, 4 × 500 words.


# %% id="vocabulary_loss" role="given"
def vocabulary_loss(hidden, shards, wanted):
    """The cross-entropy of each position, how likely its likeliest word is, and whether that was the wanted one.

    shards: of each rank, the vectors of its words, (words, width); wanted: numbers over all ranks.
    """
    scores = [hidden @ shard.T for shard in shards]
    highest = torch.stack([part.amax(dim=1) for part in scores]).amax(dim=0)

    total = torch.zeros_like(highest)
    chosen = torch.zeros_like(highest)
    first = 0
    for part in scores:
        words = part.shape[1]
        total += (part - highest[:, None]).exp_().sum(dim=1)
        place = wanted - first
        here = (place >= 0) & (place < words)
        own = part.gather(1, place.clamp(0, words - 1)[:, None])[:, 0]
        chosen += own * here
        first += words
    return total.log() + highest - chosen, 1 / total, chosen == highest


# %% id="vocabulary_loss_inputs" role="given" jupyter={"source_hidden": true}
def split_words(generator, device, positions=128):
    hidden = torch.randn(positions, 128, generator=generator)
    shards = list(torch.randn(4, 500, 128, generator=generator) / 8)
    return hidden, shards, torch.randint(2_000, (positions,), generator=generator)


# %% [markdown]
# ## 6. `shard_step`
#
# Each of six ranks has a sixth of the weights and of what the optimiser keeps. The gradients of all ranks have come in. Here:
# the step of one rank, 240,000 weights in all.


# %% id="shard_step" role="given"
def shard_step(rank, gradients, shard, momentum, rate=0.1, decay=0.01, limit=0.01):
    """The rank's new weights, its new momentum, and how long its part of the gradient was.

    gradients: of each rank, for all weights; they count equally. shard: those of this rank, which are as many as
    those of each other; momentum: likewise. No number of the gradient counts as more than limit.
    """
    mean = torch.stack(gradients).mean(dim=0)
    mean = mean.clamp_(-limit, limit)
    own = mean.chunk(len(gradients))[rank]

    momentum = 0.9 * momentum + own
    moved = momentum + decay * shard
    return shard - rate * moved, momentum, own.norm()


# %% id="shard_step_inputs" role="given" jupyter={"source_hidden": true}
def six_ranks(generator, device, weights=40_000):
    gradients = list(torch.rand(6, 6 * weights, generator=generator) / 10 - 0.05)
    shard, momentum = torch.randn(2, weights, generator=generator) / 50
    return 4, gradients, shard, momentum


# %% [markdown]
# ## 7. `silent_units`
#
# Before a network is pruned: which units never fire? `torch.fx` records the network, so that one can ask it for what lies
# inside. Here: 8 batches of 64 samples, five layers of 128.


# %% id="silent_units" role="given"
class Block(nn.Module):
    """One layer of a network that was trained before."""

    def __init__(self, weight):
        super().__init__()
        self.register_buffer("weight", weight)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(x @ self.weight)


def opened(network):
    """The network, but it gives a list of what each of its ReLUs gives."""
    found = fx.symbolic_trace(network)
    inner = [node for node in found.graph.nodes if node.op == "call_module"]
    *_, last = found.graph.nodes
    last.args = (inner,)
    found.recompile()
    return found


def silent_units(weights, batches):
    """What each unit of each layer gives on average, and how many units of a layer give 0 for all samples."""
    network = nn.Sequential(*(Block(weight) for weight in weights))
    sums = torch.zeros(len(weights), weights[0].shape[1])
    samples = 0
    for batch in batches:
        answers = opened(network)(batch.flatten(1))
        sums += torch.stack([answer.sum(dim=0) for answer in answers])
        samples += len(batch)
    return sums / max(samples, 1), (sums == 0).sum(dim=1)


# %% id="silent_units_inputs" role="given" jupyter={"source_hidden": true}
def eight_batches(generator, device, batches=8):
    weights = list(torch.randn(5, 128, 128, generator=generator) / 8)
    return weights, list(torch.randn(batches, 64, 2, 8, 8, generator=generator))


# %% [markdown]
# ## 8. `written`
#
# A recurrent network continues texts, each time with the likeliest word, until all have come to their end. Here: 32 texts,
# 2,000 words to choose from, 20 words at most, and hardly a text needs fewer.


# %% id="written" role="given"
def written(embedding, inward, inner, states, words, end, most):
    """The words of each text, filled up with `end`; and the log-probability of all that it goes on with.

    states: what the network has in mind of each text; words: the last word of each text so far.
    """
    texts = [words]
    done = words == end
    total = torch.zeros(len(words))
    for _ in range(most):
        if done.all().item():
            break
        x = embedding[texts[-1]]
        gate, new = (x @ inward + states @ inner).chunk(2, dim=1)
        states = states + gate.sigmoid() * (new.tanh() - states)
        likely = (states @ embedding.T).log_softmax(dim=1)
        best = likely.max(dim=1)
        total = total + best.values.masked_fill(done, 0)
        texts.append(best.indices.masked_fill(done, end))
        done = done | (texts[-1] == end)
    return torch.stack(texts, dim=1), total


# %% id="written_inputs" role="given" jupyter={"source_hidden": true}
def half_texts(generator, device, texts=32):
    embedding = torch.randn(2_000, 128, generator=generator) / 3
    inward, inner = torch.randn(2, 128, 256, generator=generator) / 12
    states = torch.randn(texts, 128, generator=generator)
    return embedding, inward, inner, states, torch.randint(1, 2_000, (texts,), generator=generator), 0, 20


# %% [markdown]
# ## 9. `attended`
#
# One more word for each text: in each layer it asks the keys and values of all words before. One head has them, 48 heads ask.
# Here: four layers, 2 texts of up to 128 words, 64 numbers each.


# %% id="attended" role="given"
def in_layer(queries, cache, used):
    """What each head sees at the places that are used."""
    share = queries.shape[1] // cache.shape[2]
    keys, values = cache.repeat_interleave(share, dim=2)
    seen = F.scaled_dot_product_attention(queries[:, :, None], keys, values, attn_mask=used[:, None, None])
    return seen[:, :, 0]


def attended(queries, caches, lengths):
    """What the newest word of each text sees in each layer, and how far that lies from the mean of its heads.

    queries: (layers, texts, heads, size); caches: keys and values, (layers, 2, texts, groups, places, size), of
    which a text has used as many places as its length. Neighbours among the heads share a group.
    """
    used = torch.arange(caches.shape[4]) < lengths[:, None]
    found, apart = [], []
    for asked, cache in zip(queries, caches, strict=True):
        seen = in_layer(asked, cache, used)
        found.append(seen)
        apart.append((seen - seen.mean(dim=1, keepdim=True)).norm(dim=2))
    return torch.stack(found), torch.stack(apart)


# %% id="attended_inputs" role="given" jupyter={"source_hidden": true}
def four_layers(generator, device, texts=2):
    queries = torch.randn(4, texts, 48, 64, generator=generator)
    caches = torch.randn(4, 2, texts, 1, 128, 64, generator=generator)
    return queries, caches, torch.randint(90, 129, (texts,), generator=generator)


# %% [markdown]
# ## 10. `reranked`
#
# Vectors of many texts are kept in 8 bits, those of like texts side by side. A coarse search has found some candidates for each
# question; which are the best? Here: 12,000 vectors of 128 numbers, 4 questions with 40 candidates each.


# %% id="reranked" role="given"
def reranked(codes, scales, questions, candidates, k):
    """Of each question's candidates the k best, by their cosines; these; and how far the first is ahead of the last.

    codes: int8, (texts, groups, numbers in a group); scales: of each group; candidates: numbers of texts,
    (questions, candidates).
    """
    vectors = codes.to(scales.dtype).mul_(scales[:, :, None]).flatten(1)
    lengths = vectors.norm(dim=1)
    asked = F.normalize(questions, dim=1)

    chosen = vectors[candidates]
    products = (chosen @ asked[:, :, None])[:, :, 0]
    cosines = products / lengths[candidates].clamp(min=1e-6)
    best = cosines.topk(k, dim=1)
    texts = candidates.gather(1, best.indices)
    ahead = best.values[:, 0] - best.values[:, -1]
    return texts, best.values, ahead


# %% id="reranked_inputs" role="given" jupyter={"source_hidden": true}
def some_questions(generator, device, questions=4):
    codes = torch.randint(-127, 128, (12_000, 4, 32), generator=generator, dtype=torch.int8)
    scales = 0.001 + torch.rand(12_000, 4, generator=generator) / 100
    asked = torch.randn(questions, 128, generator=generator)
    begin = torch.randint(11_000, (questions, 1), generator=generator)
    return codes, scales, asked, begin + torch.arange(40), 5


# %% [markdown]
# ## Your diagnosis
#
# *Hard, 45 minutes.* Write `diagnosis()`, before you mend anything. It returns a dict with the names of the ten
# pieces. Each value is a tuple of three:
#
# - the line, copied from the piece: the one that you would change, or that costs the time; `""` if there is none. Where
#   several share the guilt, any of them counts;
# - the cause: a word of `CAUSES`. A word may fit several pieces, or none;
# - the gain: how many times as fast the mended piece will be; `1` where nothing is wrong.
#
# So it looks: `{"a_piece": ("rows = table[numbers]", "copied", 3.5), "another_piece": ("", "nothing", 1), …}`. The test
# below looks at the form only. In grading, your diagnosis is read as it stands: say something of every piece. A guess
# costs no points.

# %% id="pieces" role="given"
first = private_step, rounded, searchable, tagged, vocabulary_loss
second = shard_step, silent_units, written, attended, reranked
PIECES = {piece.__name__: piece for piece in first + second}


# %% id="diagnosis" role="answer"
def diagnosis():
    ### BEGIN SOLUTION
    return {
        "private_step": ('of_first = torch.einsum("ni,no->nio", samples, back).flatten(1)', "table", 3.5),
        "rounded": ("", "nothing", 1),
        "searchable": ("x = embedding[tokens]", "padding", 3.7),
        "tagged": ("for number, sentence in enumerate(scores):", "small pieces", 5.2),
        "vocabulary_loss": ("", "nothing", 1),
        "shard_step": ("mean = torch.stack(gradients).mean(dim=0)", "whole", 3.3),
        "silent_units": ("answers = opened(network)(batch.flatten(1))", "recorded", 5.2),
        "written": ("", "nothing", 1),
        "attended": ("keys, values = cache.repeat_interleave(share, dim=2)", "copied", 4.2),
        "reranked": ("vectors = codes.to(scales.dtype).mul_(scales[:, :, None]).flatten(1)", "whole", 4.2),
    }
    ### END SOLUTION


# %% id="diagnosis_form" role="test"
def form():
    return readable(diagnosis(), PIECES, CAUSES)


def good_form():
    return dict.fromkeys(PIECES, "fine")


def no_inputs(generator, device):
    return ()


check(form, like=good_form, on=no_inputs, points=1)

# %% id="diagnosis_lines" role="test" points=20
# Hidden test: the lines, 2 points each, when your notebook is graded.
### BEGIN HIDDEN TESTS
# Of each piece the cause, and what our mended piece gained; below, the lines that somebody who found it might name.
truth = {
    "private_step": ("table", 3.5),
    "rounded": ("nothing", 1),
    "searchable": ("padding", 3.7),
    "tagged": ("small pieces", 5.2),
    "vocabulary_loss": ("nothing", 1),
    "shard_step": ("whole", 3.3),
    "silent_units": ("recorded", 5.2),
    "written": ("nothing", 1),
    "attended": ("copied", 4.2),
    "reranked": ("whole", 4.2),
}
places = """
private_step: of_first = torch.einsum("ni,no->nio", samples, back).flatten(1)
private_step: of_second = torch.einsum("ni,no->nio", hidden, off).flatten(1)
private_step: both = torch.stack([of_first.norm(dim=1), of_second.norm(dim=1)])
private_step: first_sum = of_first.mul_(shares).sum(dim=0).view_as(first)
private_step: second_sum = of_second.mul_(shares).sum(dim=0).view_as(second)
rounded:
searchable: x = embedding[tokens]
searchable: asked = x @ query
searchable: seen = F.scaled_dot_product_attention(asked, x, x, attn_mask=there[:, None])
searchable: x = F.layer_norm(x + seen, x.shape[-1:])
searchable: x = x + F.gelu(x @ widen) @ narrow
tagged: for number, sentence in enumerate(scores):
tagged: for word in sentence[1:]:
tagged: best, origin = (reached[:, None] + moves).max(dim=0)
tagged: reached = best + word
tagged: tag = origins[place][tag]
vocabulary_loss:
shard_step: mean = torch.stack(gradients).mean(dim=0)
shard_step: mean = mean.clamp_(-limit, limit)
shard_step: own = mean.chunk(len(gradients))[rank]
silent_units: answers = opened(network)(batch.flatten(1))
silent_units: found = fx.symbolic_trace(network)
silent_units: found.recompile()
written:
attended: keys, values = cache.repeat_interleave(share, dim=2)
reranked: vectors = codes.to(scales.dtype).mul_(scales[:, :, None]).flatten(1)
reranked: lengths = vectors.norm(dim=1)
reranked: chosen = vectors[candidates]
"""
2 * len(right_lines(diagnosis(), places))
### END HIDDEN TESTS

# %% id="diagnosis_causes" role="test" points=15
# Hidden test: the causes, 1.5 points each, when your notebook is graded.
### BEGIN HIDDEN TESTS
1.5 * len(right_causes(diagnosis(), truth))
### END HIDDEN TESTS

# %% [markdown]
# ## Mend them
#
# Now copy each piece into the cell with its name, call its function `…_mended`, and mend it. (What else is in the cell may
# keep its name.) Where nothing is wrong, call the piece and give what it gives. An eighth of the point is for staying right:
# the test that you see tries the usual inputs, the first hidden one tries none and one. The rest is for being as fast as the
# piece can be without its waste.

# %% [markdown]
# ### `private_step`
#
# *Easy, 4 minutes.*


# %% id="private_step_mended" role="answer"
def private_step_mended(first, second, samples, labels, limit):
    ### BEGIN SOLUTION
    hidden = F.relu(samples @ first)
    logits = hidden @ second
    off = logits.softmax(dim=1) - F.one_hot(labels, logits.shape[1])
    back = (off @ second.T) * (hidden > 0)

    # A sample's gradient is an outer product, whose length is the product of the two lengths.
    of_first = samples.norm(dim=1) * back.norm(dim=1)
    of_second = hidden.norm(dim=1) * off.norm(dim=1)
    lengths = torch.stack([of_first, of_second]).norm(dim=0)
    shares = (limit / lengths.clamp(min=limit))[:, None]
    return samples.T @ (shares * back), hidden.T @ (shares * off), lengths
    ### END SOLUTION


# %% id="private_step_mended_check" role="test"
check(private_step_mended, like=private_step, on=patients, points=0.0625)

# %% id="private_step_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(private_step_mended, like=private_step, on=few(patients), points=0.0625)
### END HIDDEN TESTS

# %% id="private_step_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(private_step_mended, against=private_step, on=patients, at_least={"cpu": 1.8}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `rounded`
#
# *Easy, 4 minutes.*


# %% id="rounded_mended" role="answer"
def rounded_mended(weight, factors, scales):
    ### BEGIN SOLUTION
    return rounded(weight, factors, scales)
    ### END SOLUTION


# %% id="rounded_mended_check" role="test"
check(rounded_mended, like=rounded, on=one_layer, points=0.0625)

# %% id="rounded_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(rounded_mended, like=rounded, on=few(one_layer), points=0.0625)
### END HIDDEN TESTS

# %% id="rounded_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(rounded_mended, like=rounded, on=[one_layer, one_layer], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `searchable`
#
# *Easy, 4 minutes.*


# %% id="searchable_mended" role="answer"
def searchable_mended(embedding, blocks, tokens, lengths):
    ### BEGIN SOLUTION
    means = torch.empty(len(tokens), embedding.shape[1])
    spread = torch.empty(len(tokens))
    for number, length in enumerate(lengths.tolist()):
        x = embedding[tokens[number, :length]][None]
        for query, widen, narrow in blocks:
            x = F.layer_norm(x + F.scaled_dot_product_attention(x @ query, x, x), x.shape[-1:])
            x = x + F.gelu(x @ widen) @ narrow
        means[number] = x[0].mean(dim=0)
        spread[number] = (x[0] - means[number]).norm(dim=1).mean()
    return F.normalize(means, dim=1), spread
    ### END SOLUTION


# %% id="searchable_mended_check" role="test"
check(searchable_mended, like=searchable, on=new_texts, points=0.0625)

# %% id="searchable_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(searchable_mended, like=searchable, on=few(new_texts), points=0.0625)
### END HIDDEN TESTS

# %% id="searchable_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(searchable_mended, against=searchable, on=new_texts, at_least={"cpu": 2}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `tagged`
#
# *Easy, 4 minutes.*


# %% id="tagged_mended" role="answer"
def tagged_mended(scores, moves, starts):
    ### BEGIN SOLUTION
    sentences, words, _ = scores.shape
    tags = torch.empty(sentences, words, dtype=torch.int64)
    reached = starts + scores[:, 0]
    origins = []
    for word in scores[:, 1:].unbind(dim=1):
        best, origin = (reached[:, :, None] + moves).max(dim=1)
        reached = best + word
        origins.append(origin)

    found, tag = reached.max(dim=1)
    tags[:, -1] = tag
    for place in range(words - 2, -1, -1):
        tag = origins[place].gather(1, tag[:, None])[:, 0]
        tags[:, place] = tag
    return tags, found
    ### END SOLUTION


# %% id="tagged_mended_check" role="test"
check(tagged_mended, like=tagged, on=eight_sentences, points=0.0625)

# %% id="tagged_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(tagged_mended, like=tagged, on=few(eight_sentences), points=0.0625)
### END HIDDEN TESTS

# %% id="tagged_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(tagged_mended, against=tagged, on=eight_sentences, at_least={"cpu": 2.8}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `vocabulary_loss`
#
# *Easy, 4 minutes.*


# %% id="vocabulary_loss_mended" role="answer"
def vocabulary_loss_mended(hidden, shards, wanted):
    ### BEGIN SOLUTION
    return vocabulary_loss(hidden, shards, wanted)
    ### END SOLUTION


# %% id="vocabulary_loss_mended_check" role="test"
check(vocabulary_loss_mended, like=vocabulary_loss, on=split_words, points=0.0625)

# %% id="vocabulary_loss_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(vocabulary_loss_mended, like=vocabulary_loss, on=few(split_words), points=0.0625)
### END HIDDEN TESTS

# %% id="vocabulary_loss_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(vocabulary_loss_mended, like=vocabulary_loss, on=[split_words, split_words], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `shard_step`
#
# *Easy, 4 minutes.*


# %% id="shard_step_mended" role="answer"
def shard_step_mended(rank, gradients, shard, momentum, rate=0.1, decay=0.01, limit=0.01):
    ### BEGIN SOLUTION
    parts = [gradient.chunk(len(gradients))[rank] for gradient in gradients]
    own = torch.stack(parts).mean(dim=0).clamp_(-limit, limit)
    momentum = 0.9 * momentum + own
    return shard - rate * (momentum + decay * shard), momentum, own.norm()
    ### END SOLUTION


# %% id="shard_step_mended_check" role="test"
check(shard_step_mended, like=shard_step, on=six_ranks, points=0.0625)

# %% id="shard_step_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(shard_step_mended, like=shard_step, on=few(six_ranks), points=0.0625)
### END HIDDEN TESTS

# %% id="shard_step_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(shard_step_mended, against=shard_step, on=six_ranks, at_least={"cpu": 1.5}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `silent_units`
#
# *Easy, 4 minutes.*


# %% id="silent_units_mended" role="answer"
def silent_units_mended(weights, batches):
    ### BEGIN SOLUTION
    network = opened(nn.Sequential(*(Block(weight) for weight in weights)))
    sums = torch.zeros(len(weights), weights[0].shape[1])
    samples = 0
    for batch in batches:
        answers = network(batch.flatten(1))
        sums += torch.stack([answer.sum(dim=0) for answer in answers])
        samples += len(batch)
    return sums / max(samples, 1), (sums == 0).sum(dim=1)
    ### END SOLUTION


# %% id="silent_units_mended_check" role="test"
check(silent_units_mended, like=silent_units, on=eight_batches, points=0.0625)

# %% id="silent_units_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(silent_units_mended, like=silent_units, on=few(eight_batches), points=0.0625)
### END HIDDEN TESTS

# %% id="silent_units_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(silent_units_mended, against=silent_units, on=eight_batches, at_least={"cpu": 2.8}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `written`
#
# *Easy, 4 minutes.*


# %% id="written_mended" role="answer"
def written_mended(embedding, inward, inner, states, words, end, most):
    ### BEGIN SOLUTION
    return written(embedding, inward, inner, states, words, end, most)
    ### END SOLUTION


# %% id="written_mended_check" role="test"
check(written_mended, like=written, on=half_texts, points=0.0625)

# %% id="written_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(written_mended, like=written, on=few(half_texts), points=0.0625)
### END HIDDEN TESTS

# %% id="written_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(written_mended, like=written, on=[half_texts, half_texts], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `attended`
#
# *Easy, 4 minutes.*


# %% id="attended_mended" role="answer"
def attended_mended(queries, caches, lengths):
    ### BEGIN SOLUTION
    used = torch.arange(caches.shape[4]) < lengths[:, None]
    found, apart = [], []
    for asked, (keys, values) in zip(queries, caches, strict=True):
        groups = keys.shape[1]
        together = asked.unflatten(1, (groups, asked.shape[1] // groups))
        seen = F.scaled_dot_product_attention(together, keys, values, attn_mask=used[:, None, None]).flatten(
            1, 2
        )
        found.append(seen)
        apart.append((seen - seen.mean(dim=1, keepdim=True)).norm(dim=2))
    return torch.stack(found), torch.stack(apart)
    ### END SOLUTION


# %% id="attended_mended_check" role="test"
check(attended_mended, like=attended, on=four_layers, points=0.0625)

# %% id="attended_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(attended_mended, like=attended, on=few(four_layers), points=0.0625)
### END HIDDEN TESTS

# %% id="attended_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(attended_mended, against=attended, on=four_layers, at_least={"cpu": 1.8}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `reranked`
#
# *Easy, 4 minutes.*


# %% id="reranked_mended" role="answer"
def reranked_mended(codes, scales, questions, candidates, k):
    ### BEGIN SOLUTION
    asked = F.normalize(questions, dim=1)
    chosen = (codes[candidates].to(scales.dtype) * scales[candidates][..., None]).flatten(2)
    products = (chosen @ asked[:, :, None])[:, :, 0]
    best = (products / chosen.norm(dim=2).clamp(min=1e-6)).topk(k, dim=1)
    texts = candidates.gather(1, best.indices)
    return texts, best.values, best.values[:, 0] - best.values[:, -1]
    ### END SOLUTION


# %% id="reranked_mended_check" role="test"
check(reranked_mended, like=reranked, on=some_questions, points=0.0625)

# %% id="reranked_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(reranked_mended, like=reranked, on=few(some_questions), points=0.0625)
### END HIDDEN TESTS

# %% id="reranked_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(reranked_mended, against=reranked, on=some_questions, at_least={"cpu": 1.7}, points=0.875)
### END HIDDEN TESTS

# %% id="diagnosis_gains" role="test" points=5
# Hidden test: the gains, 0.5 points each, when your notebook is graded, beside those of our mended pieces and yours.
### BEGIN HIDDEN TESTS
0.5 * len(right_gains(diagnosis(), truth, PIECES))
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
