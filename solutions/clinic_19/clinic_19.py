# %% [markdown]
# # Clinic after 19: where is the time?
#
# Ten pieces of code, as they stand in real repositories. All of them are right. Some waste most of their time in one
# place, some have nothing wrong. Nobody tells you which, nor where.
#
# **How it works.** First you say of all ten, **before you mend anything**: the line, the cause, and how many times as
# fast the piece will be when it is mended. Then you mend them. A piece is worth 5 points: 2 for the line,
# 1.5 for the cause, 1 for mending it, and 0.5 for a gain within 1.5 times of what our mended piece reached where the
# course was made, or of what yours reaches when it passes its race. 1 point more is for a diagnosis that can be read. What
# tells where the time is would tell you, too; so most tests are hidden, and run when your notebook is graded.
#
# All pieces run on the CPU, with one thread when they are raced; for a gain, a change must make the piece 1.5 times as
# fast or more. The causes are those of chapters 15 to 19, and of earlier ones. A worked case is
# [here](../../course/clinic_19.ipynb). 51 points, about 85 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F
from torch import nn

from autograder import check, costs, race
from autograder.judging.clinic import readable, right_causes, right_gains, right_lines

CAUSES = {
    "nothing": "no single change would make it 1.5 times as fast",
    "small pieces": "many small operations do what few large ones would",
    "repeated": "the same result is computed again and again",
    "unused": "whole results are computed, of which only a part is used",
    "order": "a product is formed in an order that needs more arithmetic",
    "table": "a table of everything with everything is written out, where one operation needs none",
    "growing": "what is there already is copied whole, each time something is added",
    "graph": "autograd records, or differentiates, what nobody asks a gradient of",
    "float64": "numbers are twice as wide as anybody asked for",
    "copied": "numbers are copied where a view would show them",
    "compiled": "functions are compiled anew, where one compiled function would do",
}


def counted(function, inputs):
    """What `costs` counts in a call of a piece, such as `counted(committee, many_models)`."""
    return costs(function, *inputs(torch.Generator().manual_seed(0), "cpu"))


# %% [markdown]
# ## How to look
#
# `counted(committee, many_models)` counts what one call of a piece asks of torch. What a line takes, you can
# measure: copy the piece into a new cell, change that line or leave it out, and compare:
#
# ```python
# from autograder import compare
#
# compare("a trial", {"as it is": committee, "changed": mine}, inputs=many_models, differ="a line is left out")
# ```
#
# Both are free: use them as often as you like. The inputs of each piece are folded below it.
#
# <details><summary>Hint 1</summary>Say first what the piece has to do at least: how many operations, on how many bytes.
# Then count. Where the two are far apart, there is the place. Where they are not, perhaps there is none.</details>
# <details><summary>Hint 2</summary>Half of what looks bad costs nothing. A loop over a few large batches is cheap,
# and so is one <code>.item()</code> at the end. Ask of each line how often it runs, and how much it does each
# time.</details>
# <details><summary>Hint 3</summary>If a line takes the share <em>s</em> of the time, and nearly nothing when it is mended,
# the piece becomes 1 / (1 − <em>s</em>) times as fast: 3 times for two thirds, 10 times for nine tenths.</details>

# %% [markdown]
# ## 1. `accumulated`
#
# The gradients of one large step, in parts that fit into memory (gradient accumulation). Here: 128 samples in parts of 2,
# three layers of 128 and one of 10.


# %% id="accumulated" role="given"
def accumulated(weights, samples, labels, part):
    """The loss of a step and the gradients of its weights, from parts of so many samples.

    Both are those of all samples at once, whatever the size of a part.
    """
    layers = [nn.Parameter(weight.clone()) for weight in weights]
    total = torch.zeros(())
    hits = torch.zeros((), dtype=torch.int64)
    for x, targets in zip(samples.split(part), labels.split(part), strict=True):
        for weight in layers[:-1]:
            x = F.relu(x @ weight)
        logits = x @ layers[-1]
        loss = F.cross_entropy(logits, targets, reduction="sum") / len(samples)
        loss.backward()
        total += loss.detach()
        hits += (logits.argmax(dim=1) == targets).sum()

    norm = torch.stack([layer.grad.norm() for layer in layers]).norm()
    scale = (1 / norm).clamp(max=1)
    return total, hits, [layer.grad * scale for layer in layers]


# %% id="accumulated_inputs" role="given" jupyter={"source_hidden": true}
def one_step(generator, device):
    weights = [torch.randn(128, n, generator=generator) / 11 for n in (128, 128, 128, 10)]
    samples = torch.randn(128, 128, generator=generator)
    return weights, samples, torch.randint(10, (128,), generator=generator), 2


# %% [markdown]
# ## 2. `nucleus`
#
# What sampling from a language model begins with: the least set of words that has the share *p* of each distribution (top-p).
# Here: 32 texts, 2,000 words.


# %% id="nucleus" role="given"
def nucleus(logits, share, temperature):
    """Each text's probabilities of the words that are left, and how many these are."""
    probabilities = (logits / temperature).softmax(dim=1)
    ordered, words = probabilities.sort(dim=1, descending=True)
    before = ordered.cumsum(dim=1) - ordered
    kept = torch.where(before < share, ordered, torch.zeros(()))

    back = torch.zeros_like(probabilities)
    for row, (places, values) in enumerate(zip(words, kept, strict=True)):
        back[row, places] = values
    left = (kept > 0).sum(dim=1)
    return back / back.sum(dim=1, keepdim=True), left


# %% id="nucleus_inputs" role="given" jupyter={"source_hidden": true}
def next_words(generator, device):
    return torch.randn(32, 2_000, generator=generator), 0.9, 0.8


# %% [markdown]
# ## 3. `first_words`
#
# How the answer to each prompt begins: the most likely words after its end. Here: 4 prompts of up to 32 words, two blocks, 4,000
# words to choose from.


# %% id="first_words" role="given"
def first_words(embedding, blocks, tokens, lengths, most):
    """The most likely next words of each prompt, with their probabilities; prompts are padded at their end."""
    x = embedding[tokens]
    for query, widen, narrow in blocks:
        x = x + F.scaled_dot_product_attention(x @ query, x, x, is_causal=True)
        x = x + F.gelu(x @ widen) @ narrow
        x = F.layer_norm(x, x.shape[-1:])

    logits = x @ embedding.T
    probabilities = logits.softmax(dim=2)
    ends = probabilities[torch.arange(len(tokens)), lengths - 1]
    found = ends.topk(most, dim=1)
    return found.values, found.indices


# %% id="first_words_inputs" role="given" jupyter={"source_hidden": true}
def four_prompts(generator, device):
    embedding = torch.randn(4_000, 64, generator=generator) / 8
    shapes = (64, 64), (64, 256), (256, 64)
    blocks = [[torch.randn(*shape, generator=generator) / 8 for shape in shapes] for _ in range(2)]
    lengths = torch.randint(1, 33, (4,), generator=generator)
    return embedding, blocks, torch.randint(4_000, (4, 32), generator=generator), lengths, 5


# %% [markdown]
# ## 4. `rotary_weights`
#
# Attention's weights, with positions turned into the queries and keys (rotary). Here: 4 heads, 256 positions, 64 numbers each.


# %% id="rotary_weights" role="given"
def rotary_weights(queries, keys, base=10_000.0):
    """The weights that each position gives to those before it and to itself: heads × positions × positions."""
    length, width = queries.shape[1:]
    steps = torch.arange(width // 2, dtype=torch.float64)
    frequencies = base ** (-2 * steps / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
    cosines, sines = angles.cos(), angles.sin()

    turned = []
    for x in (queries, keys):
        even, odd = x.chunk(2, dim=-1)
        turned.append(torch.cat([even * cosines - odd * sines, even * sines + odd * cosines], dim=-1))

    scores = turned[0] @ turned[1].transpose(1, 2) / width**0.5
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
    return weights.float()


# %% id="rotary_weights_inputs" role="given" jupyter={"source_hidden": true}
def four_heads(generator, device):
    return torch.randn(4, 256, 64, generator=generator), torch.randn(4, 256, 64, generator=generator)


# %% [markdown]
# ## 5. `committee`
#
# Many small networks vote, and where they disagree one had better ask a person. Here: 96 networks, 4 samples of 24 numbers, 6
# classes.


# %% id="committee" role="given"
def committee(models, samples):
    """The mean vote on each sample, how far the votes lie apart, and whom each network prefers."""
    votes = []
    for first, offset, second in models:
        hidden = torch.tanh(samples @ first + offset)
        votes.append((hidden @ second).softmax(dim=1))
    votes = torch.stack(votes)

    mean = votes.mean(dim=0)
    apart = (votes - mean).square().mean(dim=(0, 2)).sqrt()
    unsure = -(mean * mean.clamp(min=1e-9).log()).sum(dim=1)
    preferred = votes.argmax(dim=2).mode(dim=0).values
    return mean, apart, unsure, preferred


# %% id="committee_inputs" role="given" jupyter={"source_hidden": true}
def many_models(generator, device):
    shapes = (24, 16), (16,), (16, 6)
    models = [[torch.randn(*shape, generator=generator) / 5 for shape in shapes] for _ in range(96)]
    return models, torch.randn(4, 24, generator=generator)


# %% [markdown]
# ## 6. `perplexity`
#
# How well a language model foretells a long text, window by window, so that it fits into memory. Here: 1,025 words of 1,000, in
# windows of 128.


# %% id="perplexity" role="given"
def perplexity(embedding, query, tokens, window):
    """The perplexity of the text, and how surprising its most surprising word is, in nats."""
    total = torch.zeros(())
    worst = torch.zeros(())
    counted = 0
    for start in range(0, len(tokens) - 1, window):
        part = tokens[start : start + window + 1]
        x = embedding[part[:-1]][None]
        x = x + F.scaled_dot_product_attention(x @ query, x, x, is_causal=True)
        logits = F.layer_norm(x, x.shape[-1:])[0] @ embedding.T

        losses = F.cross_entropy(logits, part[1:], reduction="none")
        total += losses.sum()
        worst = torch.maximum(worst, losses.max())
        counted += losses.numel()
    return (total / counted).exp(), worst


# %% id="perplexity_inputs" role="given" jupyter={"source_hidden": true}
def a_long_text(generator, device):
    embedding = torch.randn(1_000, 128, generator=generator) / 11
    query = torch.randn(128, 128, generator=generator) / 11
    return embedding, query, torch.randint(1_000, (1_025,), generator=generator), 128


# %% [markdown]
# ## 7. `adapted`
#
# One large layer serves several customers, each with a small change of its own (low-rank adapters). Here: a layer of 384 × 384,
# 6 customers with 4 rows each, changes of rank 8.


# %% id="adapted" role="given"
def adapted(weight, bias, adapters, requests, share=0.5):
    """What the layer gives for each customer's rows, and how much the customer's change has moved them."""
    found, moved = [], []
    for rows, (down, up) in zip(requests, adapters, strict=True):
        own = weight + share * down @ up
        plain = rows @ weight + bias
        theirs = rows @ own + bias
        found.append(F.gelu(theirs))
        moved.append((theirs - plain).norm(dim=1) / plain.norm(dim=1).clamp(min=1e-6))
    return torch.stack(found), torch.stack(moved)


# %% id="adapted_inputs" role="given" jupyter={"source_hidden": true}
def six_requests(generator, device):
    weight = torch.randn(384, 384, generator=generator) / 20
    shapes = (384, 8), (8, 384)
    adapters = [[torch.randn(*shape, generator=generator) / 5 for shape in shapes] for _ in range(6)]
    requests = torch.randn(6, 4, 384, generator=generator)
    return weight, torch.randn(384, generator=generator), adapters, list(requests)


# %% [markdown]
# ## 8. `distilled`
#
# A small network learns what a large one says, which is trained already (distillation). Here: 5 batches of 128, four layers
# teach one.


# %% id="distilled" role="given"
def distilled(teacher, student, batches, rate=0.1, temperature=2.0):
    """One pass over the batches: the loss of each, and the student's new weights."""
    master = nn.ParameterList(teacher)
    pupil = nn.Parameter(student.clone())
    optimiser = torch.optim.SGD([pupil], lr=rate, momentum=0.9)
    losses = []
    for batch in batches:
        wanted = batch
        for weight in master[:-1]:
            wanted = F.relu(wanted @ weight)
        wanted = F.log_softmax(wanted @ master[-1] / temperature, dim=1)
        said = F.log_softmax(batch @ pupil / temperature, dim=1)
        loss = F.kl_div(said, wanted, log_target=True, reduction="batchmean") * temperature**2

        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses), pupil.detach()


# %% id="distilled_inputs" role="given" jupyter={"source_hidden": true}
def five_batches(generator, device):
    teacher = [torch.randn(256, n, generator=generator) / 11 for n in (256, 256, 256, 20)]
    student = torch.randn(256, 20, generator=generator) / 16
    return teacher, student, list(torch.randn(5, 128, 256, generator=generator))


# %% [markdown]
# ## 9. `routed`
#
# A layer of experts: each sample goes through the one that its gate likes most. Here: 16 experts, 256 samples of 96 numbers.


# %% id="routed" role="given"
def routed(gates, experts, samples):
    """What the layer gives, times the gate's weight, and how many samples each expert has had."""
    likings = (samples @ gates).softmax(dim=1)
    weights, chosen = likings.max(dim=1)
    found = torch.zeros_like(samples)
    for number, (widen, narrow) in enumerate(experts):
        said = F.gelu(samples @ widen) @ narrow
        mine = (chosen == number)[:, None]
        found = torch.where(mine, said * weights[:, None], found)

    load = chosen.bincount(minlength=len(experts))
    uneven = (load.float() / len(samples) - 1 / len(experts)).square().sum()
    return found, load, uneven


# %% id="routed_inputs" role="given" jupyter={"source_hidden": true}
def to_experts(generator, device):
    gates = torch.randn(96, 16, generator=generator) / 10
    shapes = (96, 192), (192, 96)
    experts = [[torch.randn(*shape, generator=generator) / 10 for shape in shapes] for _ in range(16)]
    return gates, experts, torch.randn(256, 96, generator=generator)


# %% [markdown]
# ## 10. `continued`
#
# Texts are continued word by word, each time with the most likely one. Here: 8 texts of 96 words, 24 words more, one layer.


# %% id="continued" role="given"
def continued(embedding, query, key, value, tokens, steps):
    """The texts with so many words more, and how sure the model was of each."""
    sure = []
    for _ in range(steps):
        x = embedding[tokens]
        asked = x[:, -1:] @ query
        keys = x @ key
        values = x @ value
        seen = F.scaled_dot_product_attention(asked, keys, values)

        logits = (x[:, -1] + seen[:, 0]) @ embedding.T
        best = logits.softmax(dim=1).max(dim=1, keepdim=True)
        sure.append(best.values)
        tokens = torch.cat([tokens, best.indices], dim=1)
    return tokens, torch.cat(sure, dim=1)


# %% id="continued_inputs" role="given" jupyter={"source_hidden": true}
def eight_texts(generator, device):
    embedding = torch.randn(500, 128, generator=generator) / 3
    query, key, value = torch.randn(3, 128, 128, generator=generator) / 11
    return embedding, query, key, value, torch.randint(500, (8, 96), generator=generator), 24


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
# ```python
# return {
#     "a_piece": ("rows = table[numbers]", "copied", 3.5),
#     "another_piece": ("", "nothing", 1),
#     # and so on
# }
# ```
#
# The test below looks at the form only. In grading, your diagnosis is read as it stands: say something of every piece. A
# guess costs no points.

# %% id="pieces" role="given"
PIECES = {
    piece.__name__: piece
    for piece in (
        accumulated,
        nucleus,
        first_words,
        rotary_weights,
        committee,
        perplexity,
        adapted,
        distilled,
        routed,
        continued,
    )
}


# %% id="diagnosis" role="answer"
def diagnosis():
    ### BEGIN SOLUTION
    return {
        "accumulated": (
            "for x, targets in zip(samples.split(part), labels.split(part), strict=True):",
            "small pieces",
            11,
        ),
        "nucleus": ("", "nothing", 1),
        "first_words": ("logits = x @ embedding.T", "unused", 2.6),
        "rotary_weights": ("cosines, sines = angles.cos(), angles.sin()", "float64", 2),
        "committee": ("for first, offset, second in models:", "small pieces", 2.1),
        "perplexity": ("", "nothing", 1),
        "adapted": ("own = weight + share * down @ up", "order", 2),
        "distilled": ("master = nn.ParameterList(teacher)", "graph", 2.2),
        "routed": ("said = F.gelu(samples @ widen) @ narrow", "unused", 3),
        "continued": ("keys = x @ key", "repeated", 4),
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
    "accumulated": ("small pieces", 11),
    "nucleus": ("nothing", 1),
    "first_words": ("unused", 2.6),
    "rotary_weights": ("float64", 2),
    "committee": ("small pieces", 2.1),
    "perplexity": ("nothing", 1),
    "adapted": ("order", 2),
    "distilled": ("graph", 2.2),
    "routed": ("unused", 3),
    "continued": ("repeated", 4),
}
places = """
accumulated: for x, targets in zip(samples.split(part), labels.split(part), strict=True):
accumulated: loss.backward()
nucleus:
first_words: logits = x @ embedding.T
first_words: probabilities = logits.softmax(dim=2)
first_words: ends = probabilities[torch.arange(len(tokens)), lengths - 1]
rotary_weights: cosines, sines = angles.cos(), angles.sin()
rotary_weights: angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
rotary_weights: frequencies = base ** (-2 * steps / width)
rotary_weights: steps = torch.arange(width // 2, dtype=torch.float64)
rotary_weights: turned.append(torch.cat([even * cosines - odd * sines, even * sines + odd * cosines], dim=-1))
rotary_weights: scores = turned[0] @ turned[1].transpose(1, 2) / width**0.5
committee: for first, offset, second in models:
committee: hidden = torch.tanh(samples @ first + offset)
committee: votes.append((hidden @ second).softmax(dim=1))
perplexity:
adapted: own = weight + share * down @ up
adapted: theirs = rows @ own + bias
distilled: master = nn.ParameterList(teacher)
distilled: for weight in master[:-1]:
distilled: wanted = F.relu(wanted @ weight)
distilled: wanted = F.log_softmax(wanted @ master[-1] / temperature, dim=1)
distilled: loss.backward()
routed: said = F.gelu(samples @ widen) @ narrow
routed: found = torch.where(mine, said * weights[:, None], found)
routed: for number, (widen, narrow) in enumerate(experts):
continued: keys = x @ key
continued: values = x @ value
continued: x = embedding[tokens]
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
# Now copy each piece into the cell with its name, call its function `…_mended`, and mend it. (A class in it may keep its
# name.) Where nothing is wrong, call the piece and give what it gives. The test that you see tries whether it is still
# right; the hidden one, whether it is as fast as the piece can be without its waste.


# %% [markdown]
# ### `accumulated`
#
# *Easy, 4 minutes.*


# %% id="accumulated_mended" role="answer"
def accumulated_mended(weights, samples, labels, part):
    ### BEGIN SOLUTION
    return accumulated(weights, samples, labels, len(samples))
    ### END SOLUTION


# %% id="accumulated_mended_check" role="test"
check(accumulated_mended, like=accumulated, on=one_step, points=0.25)

# %% id="accumulated_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(accumulated_mended, against=accumulated, on=one_step, at_least={"cpu": 5}, points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `nucleus`
#
# *Easy, 4 minutes.*


# %% id="nucleus_mended" role="answer"
def nucleus_mended(logits, share, temperature):
    ### BEGIN SOLUTION
    return nucleus(logits, share, temperature)
    ### END SOLUTION


# %% id="nucleus_mended_check" role="test"
check(nucleus_mended, like=nucleus, on=next_words, points=0.25)

# %% id="nucleus_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(nucleus_mended, like=nucleus, on=[next_words, next_words], points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `first_words`
#
# *Easy, 4 minutes.*


# %% id="first_words_mended" role="answer"
def first_words_mended(embedding, blocks, tokens, lengths, most):
    ### BEGIN SOLUTION
    x = embedding[tokens]
    for query, widen, narrow in blocks:
        x = x + F.scaled_dot_product_attention(x @ query, x, x, is_causal=True)
        x = x + F.gelu(x @ widen) @ narrow
        x = F.layer_norm(x, x.shape[-1:])

    logits = x[torch.arange(len(tokens)), lengths - 1] @ embedding.T
    found = logits.softmax(dim=1).topk(most, dim=1)
    return found.values, found.indices
    ### END SOLUTION


# %% id="first_words_mended_check" role="test"
check(first_words_mended, like=first_words, on=four_prompts, points=0.25)

# %% id="first_words_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(first_words_mended, against=first_words, on=four_prompts, at_least={"cpu": 1.7}, points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `rotary_weights`
#
# *Easy, 4 minutes.*


# %% id="rotary_weights_mended" role="answer"
def rotary_weights_mended(queries, keys, base=10_000.0):
    ### BEGIN SOLUTION
    length, width = queries.shape[1:]
    steps = torch.arange(width // 2, dtype=torch.float64)
    frequencies = base ** (-2 * steps / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
    cosines, sines = angles.cos().float(), angles.sin().float()

    turned = []
    for x in (queries, keys):
        even, odd = x.chunk(2, dim=-1)
        turned.append(torch.cat([even * cosines - odd * sines, even * sines + odd * cosines], dim=-1))

    scores = turned[0] @ turned[1].transpose(1, 2) / width**0.5
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(dim=-1)
    ### END SOLUTION


# %% id="rotary_weights_mended_check" role="test"
check(rotary_weights_mended, like=rotary_weights, on=four_heads, points=0.25)

# %% id="rotary_weights_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(rotary_weights_mended, against=rotary_weights, on=four_heads, at_least={"cpu": 1.5}, points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `committee`
#
# *Easy, 4 minutes.*


# %% id="committee_mended" role="answer"
def committee_mended(models, samples):
    ### BEGIN SOLUTION
    first, offset, second = (torch.stack(parts) for parts in zip(*models, strict=True))
    hidden = torch.tanh(samples @ first + offset[:, None])
    votes = (hidden @ second).softmax(dim=2)

    mean = votes.mean(dim=0)
    apart = (votes - mean).square().mean(dim=(0, 2)).sqrt()
    unsure = -(mean * mean.clamp(min=1e-9).log()).sum(dim=1)
    return mean, apart, unsure, votes.argmax(dim=2).mode(dim=0).values
    ### END SOLUTION


# %% id="committee_mended_check" role="test"
check(committee_mended, like=committee, on=many_models, points=0.25)

# %% id="committee_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(committee_mended, against=committee, on=many_models, at_least={"cpu": 1.5}, points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `perplexity`
#
# *Easy, 4 minutes.*


# %% id="perplexity_mended" role="answer"
def perplexity_mended(embedding, query, tokens, window):
    ### BEGIN SOLUTION
    return perplexity(embedding, query, tokens, window)
    ### END SOLUTION


# %% id="perplexity_mended_check" role="test"
check(perplexity_mended, like=perplexity, on=a_long_text, points=0.25)

# %% id="perplexity_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(perplexity_mended, like=perplexity, on=[a_long_text, a_long_text], points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `adapted`
#
# *Easy, 4 minutes.*


# %% id="adapted_mended" role="answer"
def adapted_mended(weight, bias, adapters, requests, share=0.5):
    ### BEGIN SOLUTION
    found, moved = [], []
    for rows, (down, up) in zip(requests, adapters, strict=True):
        plain = rows @ weight + bias
        change = share * (rows @ down) @ up
        found.append(F.gelu(plain + change))
        moved.append(change.norm(dim=1) / plain.norm(dim=1).clamp(min=1e-6))
    return torch.stack(found), torch.stack(moved)
    ### END SOLUTION


# %% id="adapted_mended_check" role="test"
check(adapted_mended, like=adapted, on=six_requests, points=0.25)

# %% id="adapted_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(adapted_mended, against=adapted, on=six_requests, at_least={"cpu": 1.5}, points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `distilled`
#
# *Easy, 4 minutes.*


# %% id="distilled_mended" role="answer"
def distilled_mended(teacher, student, batches, rate=0.1, temperature=2.0):
    ### BEGIN SOLUTION
    pupil = nn.Parameter(student.clone())
    optimiser = torch.optim.SGD([pupil], lr=rate, momentum=0.9)
    losses = []
    for batch in batches:
        with torch.no_grad():
            wanted = batch
            for weight in teacher[:-1]:
                wanted = F.relu(wanted @ weight)
            wanted = F.log_softmax(wanted @ teacher[-1] / temperature, dim=1)
        said = F.log_softmax(batch @ pupil / temperature, dim=1)
        loss = F.kl_div(said, wanted, log_target=True, reduction="batchmean") * temperature**2

        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses), pupil.detach()
    ### END SOLUTION


# %% id="distilled_mended_check" role="test"
check(distilled_mended, like=distilled, on=five_batches, points=0.25)

# %% id="distilled_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(distilled_mended, against=distilled, on=five_batches, at_least={"cpu": 1.6}, points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `routed`
#
# *Easy, 4 minutes.*


# %% id="routed_mended" role="answer"
def routed_mended(gates, experts, samples):
    ### BEGIN SOLUTION
    weights, chosen = (samples @ gates).softmax(dim=1).max(dim=1)
    found = torch.zeros_like(samples)
    for number, (widen, narrow) in enumerate(experts):
        mine = (chosen == number).nonzero()[:, 0]
        found[mine] = F.gelu(samples[mine] @ widen) @ narrow * weights[mine, None]

    load = chosen.bincount(minlength=len(experts))
    uneven = (load.float() / len(samples) - 1 / len(experts)).square().sum()
    return found, load, uneven
    ### END SOLUTION


# %% id="routed_mended_check" role="test"
check(routed_mended, like=routed, on=to_experts, points=0.25)

# %% id="routed_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(routed_mended, against=routed, on=to_experts, at_least={"cpu": 2}, points=0.75)
### END HIDDEN TESTS


# %% [markdown]
# ### `continued`
#
# *Easy, 4 minutes.*


# %% id="continued_mended" role="answer"
def continued_mended(embedding, query, key, value, tokens, steps):
    ### BEGIN SOLUTION
    sure, words = [], [tokens]
    x = embedding[tokens]
    keys, values = x @ key, x @ value
    for _ in range(steps):
        new = x[:, -1:]
        seen = F.scaled_dot_product_attention(new @ query, keys, values)
        logits = (new[:, 0] + seen[:, 0]) @ embedding.T
        best = logits.softmax(dim=1).max(dim=1, keepdim=True)
        sure.append(best.values)
        words.append(best.indices)
        x = embedding[best.indices]
        keys = torch.cat([keys, x @ key], dim=1)
        values = torch.cat([values, x @ value], dim=1)
    return torch.cat(words, dim=1), torch.cat(sure, dim=1)
    ### END SOLUTION


# %% id="continued_mended_check" role="test"
check(continued_mended, like=continued, on=eight_texts, points=0.25)

# %% id="continued_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(continued_mended, against=continued, on=eight_texts, at_least={"cpu": 2.5}, points=0.75)
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
