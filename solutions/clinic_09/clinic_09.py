# %% [markdown]
# # Clinic after 09: where is the time?
#
# Ten more pieces of code, as they stand in real repositories. All of them are right. Some waste most of their time in
# one place, some have nothing wrong. Nobody tells you which, nor where.
#
# **How it works**, as in [the clinic after 04](../clinic_04/clinic_04.ipynb). First you say of all ten, **before you
# mend anything**: the line, the cause, and how many times as fast the piece will be when it is mended. Then you mend
# them. A piece is worth 5 points: 2 for the line, 1.5 for the cause, 1 for mending it, and 0.5 for a gain within 1.5
# times of what our mended piece reached where the course was made, or of what yours reaches when it passes its race.
# 1 point more is for a diagnosis that can be read. Most tests are hidden, and run when your notebook is graded.
#
# All pieces run on the CPU, with one thread when they are raced; for a gain, a change must make the piece 1.5 times as
# fast or more. The causes are those of chapters 05 to 09; some of them you know from before. A worked case is
# [here](../../course/clinic_09.ipynb).
# 51 points, about 85 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F

from autograder import check, costs, race
from autograder.judging.clinic import few, readable, right_causes, right_gains, right_lines

CAUSES = {
    "nothing": "no single change would make it 1.5 times as fast",
    "one by one": "Python asks torch for one number or one small row at a time; a GPU would wait each time, too",
    "algorithm": "a convolution goes a way that does not suit the size of its kernel",
    "order": "an operation walks slowly through numbers, because of their order in memory",
    "copied": "numbers are copied where a view would show them",
    "converted": "the same numbers are brought into another type at each use, where once would do",
    "repeated": "the same result is computed again and again, and types have nothing to do with it",
    "messages": "ranks tell each other often what they could tell once",
    "pairs": "a difference or a product is written out for each pair, where a product of matrices would do",
    "unused": "whole results are computed, of which only a part is used",
    "graph": "autograd records, or differentiates, what nobody asks a gradient of",
}


def counted(function, inputs):
    """What `costs` counts in a call of a piece, such as `counted(forecast, forty_steps)`."""
    return costs(function, *inputs(torch.Generator().manual_seed(0), "cpu"))


# %% [markdown]
# ## How to look
#
# `counted(forecast, forty_steps)` counts what one call of a piece asks of torch. What a line takes, you can measure: copy
# the piece into a new cell, change that line or leave it out, and `compare` the two, with `inputs=forty_steps` and
# `differ="a line is left out"`. Both are free: use them as often as you like. The inputs of each piece are folded below it.
# A mended piece must also be right where there is nothing to work on, or one thing: `few(forty_steps)` makes such inputs.
#
# <details><summary>Hint 1</summary>Say first what the piece has to do at least: how many operations, on how many bytes, with
# how much arithmetic. Then count, and measure. Where the two are far apart, there is the place.</details>
# <details><summary>Hint 2</summary>Calls can be counted. The order in memory cannot, nor what goes on inside an operation:
# there only a clock helps. So take lines away, or give them what they need in another order.</details>

# %% [markdown]
# ## 1. `forecast`
#
# A recurrent network foretells the load of a power grid, hour by hour. Its weights are kept in 4 bits. Here: one grid, 40
# steps, two layers of 256.


# %% id="forecast" role="given"
def forecast(codes, zeros, scales, weather, state):
    """The states of a recurrent network, step by step, and how far each lies from the one before.

    codes: uint8, a matrix for each layer, two rows in one; zeros, scales: a number for each column.
    weather: (steps, grids, columns); state: (grids, columns).
    """
    states = torch.empty_like(weather)
    moved = weather.new_empty(len(weather))
    for step, outside in enumerate(weather):
        x = state + outside
        for code, zero, scale in zip(codes, zeros, scales, strict=True):
            pairs = torch.stack([code & 15, code >> 4], dim=1)
            weight = (pairs.flatten(0, 1).to(x.dtype) - zero) * scale
            x = torch.tanh(x @ weight)
        after = 0.5 * state + 0.5 * x
        moved[step] = (after - state).norm()
        states[step] = after
        state = after
    return states, moved


# %% id="forecast_inputs" role="given" jupyter={"source_hidden": true}
def forty_steps(generator, device, steps=40):
    codes = list(torch.randint(256, (2, 128, 256), generator=generator, dtype=torch.uint8))
    zeros = list(7.5 + torch.rand(2, 256, generator=generator))
    scales = list(torch.rand(2, 256, generator=generator) / 100)
    weather = torch.randn(steps, 1, 256, generator=generator)
    return codes, zeros, scales, weather, torch.randn(1, 256, generator=generator)


# %% [markdown]
# ## 2. `keypoints`
#
# Where the joints of a body are: the highest peaks of the heat maps that a network has made. Here: 4 pictures, 32
# joints, maps of 32 × 32.


# %% id="keypoints" role="given"
def keypoints(maps, k, least):
    """The k highest peaks of each joint, and how sure one can be of each picture.

    maps: scores, (pictures, joints, height, width). Gives rows and columns, scores (0 for those below
    least), and the mean score of a picture's peaks.
    """
    width = maps.shape[3]
    scores = maps.clamp(min=0).contiguous()
    highest = F.max_pool2d(scores, 3, stride=1, padding=1)
    peaks = torch.where(scores == highest, scores, torch.zeros(()))
    best = peaks.flatten(2).topk(k, dim=2)

    rows = best.indices // width
    columns = best.indices - rows * width
    places = torch.stack([rows, columns], dim=3)
    seen = best.values >= least
    values = torch.where(seen, best.values, torch.zeros(()))
    mean = values.sum(dim=(1, 2)) / seen.sum(dim=(1, 2)).clamp(min=1)
    return places, values, mean


# %% id="keypoints_inputs" role="given" jupyter={"source_hidden": true}
def heat_maps(generator, device, pictures=4):
    side, k = (32, 8) if pictures > 1 else (1, 1)
    maps = torch.randn(pictures, 32, side, side, generator=generator)
    return maps.to(memory_format=torch.channels_last), k, 1.5


# %% [markdown]
# ## 3. `federated_round`
#
# Several clients train the same network, each on data that it keeps to itself; a server averages what comes back. Here:
# 3 clients with 2 batches of 128 samples, three layers.


# %% id="federated_round" role="given"
def federated_round(weights, clients, rate=0.1):
    """One round of federated averaging: the new weights, and the last loss of each client.

    clients: for each of them a list of batches. Clients count by the number of their samples.
    """
    sums = [torch.zeros_like(weight) for weight in weights]
    losses = weights[0].new_zeros(len(clients))
    total = 0
    for number, batches in enumerate(clients):
        layers = [weight.clone().requires_grad_() for weight in weights]
        samples = 0
        for images, labels in batches:
            x = images.flatten(1)
            for layer in layers[:-1]:
                x = F.relu(x @ layer)
            loss = F.cross_entropy(x @ layers[-1], labels)
            gradients = torch.autograd.grad(loss, layers)
            with torch.no_grad():
                for layer, gradient in zip(layers, gradients, strict=True):
                    layer -= rate * gradient
            losses[number] = loss.detach()
            samples += len(labels)
        for tensor, layer in zip(sums, layers, strict=True):
            tensor += samples * layer.detach()
        total += samples
    return [tensor / max(total, 1) for tensor in sums], losses


# %% id="federated_round_inputs" role="given" jupyter={"source_hidden": true}
def three_clients(generator, device, clients=3):
    samples = 128 if clients > 1 else 1
    weights = [torch.randn(256, n, generator=generator) / 16 for n in (256, 256, 10)]
    images = torch.randn(clients, 2, samples, 1, 16, 16, generator=generator)
    labels = torch.randint(10, (clients, 2, samples), generator=generator)
    return weights, [list(zip(*pair, strict=True)) for pair in zip(images, labels, strict=True)]


# %% [markdown]
# ## 4. `triplet_report`
#
# How well an embedding of faces tells one person from another. Here: 1,000 triplets, 128 numbers each.


# %% id="triplet_report" role="given"
def triplet_report(parts, projection, margin):
    """The triplet loss, and mean and spread of the distances.

    parts: anchors, faces of the same persons, and faces of others; one triplet a row.
    """
    anchors, *others = (F.normalize(part @ projection, dim=1) for part in parts)
    count = max(len(anchors), 1)
    distances = []
    for faces in others:
        distances.append(torch.cdist(anchors, faces).diagonal())
    near, far = distances

    report = [(near - far + margin).clamp(min=0).sum() / count]
    for distance in distances:
        mean = distance.sum() / count
        spread = ((distance - mean).square().sum() / count).sqrt()
        report += [mean, spread]
    return torch.stack(report)


# %% id="triplet_report_inputs" role="given" jupyter={"source_hidden": true}
def many_faces(generator, device, triplets=1_000):
    anchors, noise, others = torch.randn(3, triplets, 128, generator=generator)
    projection = torch.randn(128, 128, generator=generator) / 11
    return [anchors, anchors + noise, others], projection, 0.2


# %% [markdown]
# ## 5. `strangeness`
#
# Is a sample like anything that a network was trained on? Its nearest neighbours among the features of the training set
# tell. Here: 512 samples, 1,000 to compare with, 768 features.


# %% id="strangeness" role="given"
def strangeness(store, features, projection, k, chunk=256):
    """How far each sample lies from its k-th neighbour in the training set, and from the k on average.

    store: features of the training set, kept in float16. All are compared on the unit sphere.
    """
    known = store.to(features.dtype)
    lengths = known.norm(dim=1, keepdim=True)
    known = known / lengths.clamp(min=1e-6)
    found = []
    for samples in features.split(chunk):
        rows = F.normalize(samples @ projection, dim=1)
        cosines = rows @ known.T
        distances = (2 - 2 * cosines).clamp(min=0).sqrt()
        nearest = distances.topk(k, dim=1, largest=False).values
        found.append(torch.stack([nearest[:, -1], nearest.mean(dim=1)], dim=1))
    return torch.cat(found)


# %% id="strangeness_inputs" role="given" jupyter={"source_hidden": true}
def new_samples(generator, device, samples=512):
    store = torch.randn(1_000, 768, generator=generator).half()
    features = torch.randn(samples, 768, generator=generator)
    return store, features, torch.randn(768, 768, generator=generator) / 28, 10


# %% [markdown]
# ## 6. `score_ranks`
#
# Four processes have each scored a part of the test set; one of them puts together what the others sent. Here: 801
# samples, 256 classes.


# %% id="score_ranks" role="given"
def score_ranks(gathered, labels, bins):
    """Accuracy, log-likelihood, and how far confidence is from accuracy (calibration).

    gathered: the logits of each rank, in whose hands a DistributedSampler dealt the samples like cards. The
    last ones may have got a sample that counts twice.
    """
    count, ranks = len(labels), len(gathered)
    logits = gathered[0].new_empty(count, gathered[0].shape[1])
    for rank, rows in enumerate(gathered):
        for number, row in enumerate(rows):
            place = number * ranks + rank
            if place < count:
                logits[place] = row

    logs = logits.log_softmax(dim=1)
    sure, said = logs.max(dim=1)
    sure = sure.exp()
    hits = (said == labels).to(logs.dtype)
    likelihood = logs.gather(1, labels[:, None]).sum()
    place = (sure * bins).long().clamp(max=bins - 1)
    gaps = logs.new_zeros(bins).index_add(0, place, hits - sure)
    return torch.stack([hits.sum(), likelihood, gaps.abs().sum()]) / max(count, 1)


# %% id="score_ranks_inputs" role="given" jupyter={"source_hidden": true}
def four_ranks(generator, device, samples=801):
    logits = 3 * torch.randn(samples, 256, generator=generator)
    dealt = logits.repeat(4, 1)[: -(-samples // 4) * 4]
    labels = torch.randint(256, (samples,), generator=generator)
    return [dealt[rank::4].clone() for rank in range(4)], labels, 15


# %% [markdown]
# ## 7. `textures`
#
# A bank of filters describes what grows on a field, seen by a satellite in 16 bands of light. Here: 4 patches of 30 ×
# 30, 16 filters of 3 × 3.


# %% id="textures" role="given"
def textures(patches, filters):
    """How strongly each filter answers in each patch, and how unevenly; relative to its strongest filter.

    patches: (n, bands, height, width); filters: (filters, bands, side, side), with an odd side.
    """
    height, width = patches.shape[2:]
    side = filters.shape[-1]
    room = (height + side - 1, width + side - 1)
    spectra = torch.fft.rfft2(patches, room)
    bank = torch.fft.rfft2(filters.flip(2, 3), room)
    product = torch.einsum("nbhw,fbhw->nfhw", spectra, bank)
    full = torch.fft.irfft2(product, room)
    start = side // 2
    answers = full[:, :, start : start + height, start : start + width]
    energy = answers.square().mean(dim=(2, 3))
    size = answers.abs().mean(dim=(2, 3))
    strongest = energy.amax(dim=1, keepdim=True).clamp(min=1e-12)
    return torch.stack([(energy / strongest).sqrt(), size / strongest.sqrt()], dim=2)


# %% id="textures_inputs" role="given" jupyter={"source_hidden": true}
def fields(generator, device, patches=4):
    side = 30 if patches > 1 else 1
    filters = torch.randn(16, 16, 3, 3, generator=generator)
    return torch.rand(patches, 16, side, side, generator=generator), filters


# %% [markdown]
# ## 8. `trust_ratios`
#
# For training with very large batches: how far each layer may go in a step (LARS). Here: 10 layers of 64, and 64 samples.


# %% id="trust_ratios" role="given"
def trust_ratios(weights, images, labels, decay=1e-4):
    """The length of each layer's weights over that of its gradient; and the loss."""
    layers = [weight.clone().requires_grad_() for weight in weights]
    x = images.flatten(1)
    for layer in layers[:-1]:
        x = x + torch.tanh(x @ layer)
    logits = x @ layers[-1]
    loss = F.cross_entropy(logits, labels, reduction="sum") / max(len(labels), 1)

    ratios = []
    for layer in layers:
        grad = torch.autograd.grad(loss, layer, retain_graph=True)[0]
        length = layer.detach().norm()
        ratio = length / (grad.norm() + decay * length)
        ratios.append(torch.where(length > 0, ratio, torch.ones(())))
    return torch.stack(ratios), loss.detach()


# %% id="trust_ratios_inputs" role="given" jupyter={"source_hidden": true}
def ten_layers(generator, device, samples=64):
    weights = [torch.randn(64, 64, generator=generator) / 16 for _ in range(9 if samples > 1 else 0)]
    images = torch.randn(samples, 1, 8, 8, generator=generator)
    labels = torch.randint(10, (samples,), generator=generator)
    return [*weights, torch.randn(64, 10, generator=generator) / 8], images, labels


# %% [markdown]
# ## 9. `style_loss`
#
# What style transfer makes small: the picture's Gram matrices shall be those of a painting, and the picture smooth. Here:
# 2 pictures, features of three layers.


# %% id="style_loss" role="given"
def style_loss(pictures, features, grams, strengths, smoothness):
    """How far each picture is from the style that is asked for.

    features: of each layer, (pictures, channels, height, width); grams: of the style, (channels, channels).
    """
    total = pictures.new_zeros(len(pictures))
    for feature, wanted, strength in zip(features, grams, strengths, strict=True):
        channels, height, width = feature.shape[1:]
        rows = feature.flatten(2).contiguous()
        gram = rows @ rows.transpose(1, 2)
        gram = gram / (channels * height * width)
        apart = (gram - wanted).square().sum(dim=(1, 2))
        total = total + strength * apart
    down = pictures[:, :, 1:] - pictures[:, :, :-1]
    across = pictures[:, :, :, 1:] - pictures[:, :, :, :-1]
    rough = down.abs().sum(dim=(1, 2, 3)) + across.abs().sum(dim=(1, 2, 3))
    return total + smoothness * rough


# %% id="style_loss_inputs" role="given" jupyter={"source_hidden": true}
def two_pictures(generator, device, pictures=2):
    sizes = [(64, 48), (128, 24), (256, 12)] if pictures > 1 else [(8, 1)]
    features = [torch.rand(pictures, n, side, side, generator=generator) for n, side in sizes]
    grams = [torch.rand(n, n, generator=generator) / n for n, _ in sizes]
    drawn = torch.rand(pictures, 3, 2 * sizes[0][1], 2 * sizes[0][1], generator=generator)
    return drawn, features, grams, [1.0, 0.5, 0.2][: len(sizes)], 0.001


# %% [markdown]
# ## 10. `domain_gap`
#
# A network shall work in a new hospital, too: how far are its features there from those here (maximum mean discrepancy,
# with five kernels)? Here: 48 samples of each, 384 features.


# %% id="domain_gap" role="given"
def domain_gap(here, there, factors):
    """How far apart two sets of samples lie: their maximum mean discrepancy, summed over Gaussian kernels.

    factors: widths of the kernels, in mean squared distances.
    """
    n, m = len(here), len(there)
    both = torch.cat([here, there])
    squares = []
    for rows in both.split(4):
        apart = rows[:, None] - both
        squares.append(apart.square().sum(dim=2))
    squares = torch.cat(squares)
    mean = squares.sum() / max((n + m) * (n + m - 1), 1)
    kernel = torch.zeros_like(squares)
    for factor in factors:
        width = (factor * mean).clamp(min=1e-12)
        kernel = kernel + torch.exp(-squares / width)
    within = kernel[:n, :n].sum() / max(n * n, 1) + kernel[n:, n:].sum() / max(m * m, 1)
    across = kernel[:n, n:].sum() / max(n * m, 1)
    return within - 2 * across


# %% id="domain_gap_inputs" role="given" jupyter={"source_hidden": true}
def hospitals(generator, device, samples=48):
    here, there = torch.randn(2, samples, 384, generator=generator)
    return here, 1.5 * there + 0.5, [0.25, 0.5, 1.0, 2.0, 4.0]


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
first = forecast, keypoints, federated_round, triplet_report, strangeness
second = score_ranks, textures, trust_ratios, style_loss, domain_gap
PIECES = {piece.__name__: piece for piece in first + second}


# %% id="diagnosis" role="answer"
def diagnosis():
    ### BEGIN SOLUTION
    return {
        "forecast": ("weight = (pairs.flatten(0, 1).to(x.dtype) - zero) * scale", "converted", 3.3),
        "keypoints": ("scores = maps.clamp(min=0).contiguous()", "order", 3.7),
        "federated_round": ("", "nothing", 1),
        "triplet_report": ("distances.append(torch.cdist(anchors, faces).diagonal())", "unused", 5.5),
        "strangeness": ("", "nothing", 1),
        "score_ranks": ("logits[place] = row", "one by one", 4.3),
        "textures": ("full = torch.fft.irfft2(product, room)", "algorithm", 9),
        "trust_ratios": ("grad = torch.autograd.grad(loss, layer, retain_graph=True)[0]", "repeated", 2.3),
        "style_loss": ("", "nothing", 1),
        "domain_gap": ("squares.append(apart.square().sum(dim=2))", "pairs", 3.9),
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
    "forecast": ("converted", 3.3),
    "keypoints": ("order", 3.7),
    "federated_round": ("nothing", 1),
    "triplet_report": ("unused", 5.5),
    "strangeness": ("nothing", 1),
    "score_ranks": ("one by one", 4.3),
    "textures": ("algorithm", 9),
    "trust_ratios": ("repeated", 2.3),
    "style_loss": ("nothing", 1),
    "domain_gap": ("pairs", 3.9),
}
places = """
forecast: pairs = torch.stack([code & 15, code >> 4], dim=1)
forecast: weight = (pairs.flatten(0, 1).to(x.dtype) - zero) * scale
keypoints: scores = maps.clamp(min=0).contiguous()
keypoints: highest = F.max_pool2d(scores, 3, stride=1, padding=1)
federated_round:
triplet_report: distances.append(torch.cdist(anchors, faces).diagonal())
strangeness:
score_ranks: for rank, rows in enumerate(gathered):
score_ranks: for number, row in enumerate(rows):
score_ranks: place = number * ranks + rank
score_ranks: logits[place] = row
textures: spectra = torch.fft.rfft2(patches, room)
textures: bank = torch.fft.rfft2(filters.flip(2, 3), room)
textures: product = torch.einsum("nbhw,fbhw->nfhw", spectra, bank)
textures: full = torch.fft.irfft2(product, room)
trust_ratios: for layer in layers:
trust_ratios: grad = torch.autograd.grad(loss, layer, retain_graph=True)[0]
style_loss:
domain_gap: for rows in both.split(4):
domain_gap: apart = rows[:, None] - both
domain_gap: squares.append(apart.square().sum(dim=2))
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
# Now copy each piece into the cell with its name, call its function `…_mended`, and mend it. Where
# nothing is wrong, call the piece and give what it gives. An eighth of the point is for staying right: the test that you
# see tries the usual inputs, the first hidden one tries none and one. The rest is for being as fast as the piece can be
# without its waste.

# %% [markdown]
# ### `forecast`
#
# *Easy, 4 minutes.*


# %% id="forecast_mended" role="answer"
def forecast_mended(codes, zeros, scales, weather, state):
    ### BEGIN SOLUTION
    pairs = [torch.stack([code & 15, code >> 4], dim=1).flatten(0, 1).to(weather.dtype) for code in codes]
    weights = [(pair - zero) * scale for pair, zero, scale in zip(pairs, zeros, scales, strict=True)]
    states = torch.empty_like(weather)
    moved = weather.new_empty(len(weather))
    for step, outside in enumerate(weather):
        x = state + outside
        for weight in weights:
            x = torch.tanh(x @ weight)
        after = 0.5 * state + 0.5 * x
        moved[step] = (after - state).norm()
        states[step] = after
        state = after
    return states, moved
    ### END SOLUTION


# %% id="forecast_mended_check" role="test"
check(forecast_mended, like=forecast, on=forty_steps, points=0.0625)

# %% id="forecast_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(forecast_mended, like=forecast, on=few(forty_steps), points=0.0625)
### END HIDDEN TESTS

# %% id="forecast_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(forecast_mended, against=forecast, on=forty_steps, at_least={"cpu": 2}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `keypoints`
#
# *Easy, 4 minutes.*


# %% id="keypoints_mended" role="answer"
def keypoints_mended(maps, k, least):
    ### BEGIN SOLUTION
    scores = maps.clamp(min=0).contiguous(memory_format=torch.channels_last)
    highest = F.max_pool2d(scores, 3, stride=1, padding=1)
    peaks = torch.where(scores == highest, scores, torch.zeros(()))
    best = peaks.flatten(2).topk(k, dim=2)
    rows = best.indices // maps.shape[3]
    places = torch.stack([rows, best.indices - rows * maps.shape[3]], dim=3)
    seen = best.values >= least
    values = torch.where(seen, best.values, torch.zeros(()))
    return places, values, values.sum(dim=(1, 2)) / seen.sum(dim=(1, 2)).clamp(min=1)
    ### END SOLUTION


# %% id="keypoints_mended_check" role="test"
check(keypoints_mended, like=keypoints, on=heat_maps, points=0.0625)

# %% id="keypoints_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(keypoints_mended, like=keypoints, on=few(heat_maps), points=0.0625)
### END HIDDEN TESTS

# %% id="keypoints_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(keypoints_mended, against=keypoints, on=heat_maps, at_least={"cpu": 2.2}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `federated_round`
#
# *Easy, 4 minutes.*


# %% id="federated_round_mended" role="answer"
def federated_round_mended(weights, clients, rate=0.1):
    ### BEGIN SOLUTION
    return federated_round(weights, clients, rate)
    ### END SOLUTION


# %% id="federated_round_mended_check" role="test"
check(federated_round_mended, like=federated_round, on=three_clients, points=0.0625)

# %% id="federated_round_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(federated_round_mended, like=federated_round, on=few(three_clients), points=0.0625)
### END HIDDEN TESTS

# %% id="federated_round_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(federated_round_mended, like=federated_round, on=[three_clients, three_clients], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `triplet_report`
#
# *Easy, 4 minutes.*


# %% id="triplet_report_mended" role="answer"
def triplet_report_mended(parts, projection, margin):
    ### BEGIN SOLUTION
    anchors, *others = (F.normalize(part @ projection, dim=1) for part in parts)
    count = max(len(anchors), 1)
    near, far = ((anchors - faces).norm(dim=1) for faces in others)
    report = [(near - far + margin).clamp(min=0).sum() / count]
    for distance in (near, far):
        mean = distance.sum() / count
        report += [mean, ((distance - mean).square().sum() / count).sqrt()]
    return torch.stack(report)
    ### END SOLUTION


# %% id="triplet_report_mended_check" role="test"
check(triplet_report_mended, like=triplet_report, on=many_faces, points=0.0625)

# %% id="triplet_report_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(triplet_report_mended, like=triplet_report, on=few(many_faces), points=0.0625)
### END HIDDEN TESTS

# %% id="triplet_report_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(triplet_report_mended, against=triplet_report, on=many_faces, at_least={"cpu": 2.8}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `strangeness`
#
# *Easy, 4 minutes.*


# %% id="strangeness_mended" role="answer"
def strangeness_mended(store, features, projection, k, chunk=256):
    ### BEGIN SOLUTION
    return strangeness(store, features, projection, k, chunk)
    ### END SOLUTION


# %% id="strangeness_mended_check" role="test"
check(strangeness_mended, like=strangeness, on=new_samples, points=0.0625)

# %% id="strangeness_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(strangeness_mended, like=strangeness, on=few(new_samples), points=0.0625)
### END HIDDEN TESTS

# %% id="strangeness_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(strangeness_mended, like=strangeness, on=[new_samples, new_samples], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `score_ranks`
#
# *Easy, 4 minutes.*


# %% id="score_ranks_mended" role="answer"
def score_ranks_mended(gathered, labels, bins):
    ### BEGIN SOLUTION
    count = len(labels)
    logs = torch.stack(gathered, dim=1).flatten(0, 1)[:count].log_softmax(dim=1)
    sure, said = logs.max(dim=1)
    sure = sure.exp()
    hits = (said == labels).to(logs.dtype)
    likelihood = logs.gather(1, labels[:, None]).sum()
    place = (sure * bins).long().clamp(max=bins - 1)
    gaps = logs.new_zeros(bins).index_add(0, place, hits - sure)
    return torch.stack([hits.sum(), likelihood, gaps.abs().sum()]) / max(count, 1)
    ### END SOLUTION


# %% id="score_ranks_mended_check" role="test"
check(score_ranks_mended, like=score_ranks, on=four_ranks, points=0.0625)

# %% id="score_ranks_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(score_ranks_mended, like=score_ranks, on=few(four_ranks), points=0.0625)
### END HIDDEN TESTS

# %% id="score_ranks_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(score_ranks_mended, against=score_ranks, on=four_ranks, at_least={"cpu": 2.4}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `textures`
#
# *Easy, 4 minutes.*


# %% id="textures_mended" role="answer"
def textures_mended(patches, filters):
    ### BEGIN SOLUTION
    answers = F.conv2d(patches, filters, padding=filters.shape[-1] // 2)
    energy = answers.square().mean(dim=(2, 3))
    size = answers.abs().mean(dim=(2, 3))
    strongest = energy.amax(dim=1, keepdim=True).clamp(min=1e-12)
    return torch.stack([(energy / strongest).sqrt(), size / strongest.sqrt()], dim=2)
    ### END SOLUTION


# %% id="textures_mended_check" role="test"
check(textures_mended, like=textures, on=fields, points=0.0625)

# %% id="textures_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(textures_mended, like=textures, on=few(fields), points=0.0625)
### END HIDDEN TESTS

# %% id="textures_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(textures_mended, against=textures, on=fields, at_least={"cpu": 3.5}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `trust_ratios`
#
# *Easy, 4 minutes.*


# %% id="trust_ratios_mended" role="answer"
def trust_ratios_mended(weights, images, labels, decay=1e-4):
    ### BEGIN SOLUTION
    layers = [weight.clone().requires_grad_() for weight in weights]
    x = images.flatten(1)
    for layer in layers[:-1]:
        x = x + torch.tanh(x @ layer)
    loss = F.cross_entropy(x @ layers[-1], labels, reduction="sum") / max(len(labels), 1)
    ratios = []
    for layer, gradient in zip(layers, torch.autograd.grad(loss, layers), strict=True):
        length = layer.detach().norm()
        ratio = length / (gradient.norm() + decay * length)
        ratios.append(torch.where(length > 0, ratio, torch.ones(())))
    return torch.stack(ratios), loss.detach()
    ### END SOLUTION


# %% id="trust_ratios_mended_check" role="test"
check(trust_ratios_mended, like=trust_ratios, on=ten_layers, points=0.0625)

# %% id="trust_ratios_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(trust_ratios_mended, like=trust_ratios, on=few(ten_layers), points=0.0625)
### END HIDDEN TESTS

# %% id="trust_ratios_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(trust_ratios_mended, against=trust_ratios, on=ten_layers, at_least={"cpu": 1.6}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `style_loss`
#
# *Easy, 4 minutes.*


# %% id="style_loss_mended" role="answer"
def style_loss_mended(pictures, features, grams, strengths, smoothness):
    ### BEGIN SOLUTION
    return style_loss(pictures, features, grams, strengths, smoothness)
    ### END SOLUTION


# %% id="style_loss_mended_check" role="test"
check(style_loss_mended, like=style_loss, on=two_pictures, points=0.0625)

# %% id="style_loss_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(style_loss_mended, like=style_loss, on=few(two_pictures), points=0.0625)
### END HIDDEN TESTS

# %% id="style_loss_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(style_loss_mended, like=style_loss, on=[two_pictures, two_pictures], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `domain_gap`
#
# *Easy, 4 minutes.*


# %% id="domain_gap_mended" role="answer"
def domain_gap_mended(here, there, factors):
    ### BEGIN SOLUTION
    n, m = len(here), len(there)
    both = torch.cat([here, there])
    squares = torch.cdist(both, both).square()
    mean = squares.sum() / max((n + m) * (n + m - 1), 1)
    kernel = torch.zeros_like(squares)
    for factor in factors:
        kernel = kernel + torch.exp(-squares / (factor * mean).clamp(min=1e-12))
    within = kernel[:n, :n].sum() / max(n * n, 1) + kernel[n:, n:].sum() / max(m * m, 1)
    return within - 2 * kernel[:n, n:].sum() / max(n * m, 1)
    ### END SOLUTION


# %% id="domain_gap_mended_check" role="test"
check(domain_gap_mended, like=domain_gap, on=hospitals, points=0.0625)

# %% id="domain_gap_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(domain_gap_mended, like=domain_gap, on=few(hospitals), points=0.0625)
### END HIDDEN TESTS

# %% id="domain_gap_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(domain_gap_mended, against=domain_gap, on=hospitals, at_least={"cpu": 2.2}, points=0.875)
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
