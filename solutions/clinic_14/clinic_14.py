# %% [markdown]
# # Clinic after 14: where is the time?
#
# Ten pieces of code from around recommenders and pictures, as they stand in real repositories. All of them are right. Some
# waste most of their time in one place, some have nothing wrong. Nobody tells you which, nor where.
#
# **How it works**, as in [the clinic after 04](../clinic_04/clinic_04.ipynb). First you say of all ten, **before you
# mend anything**: the line, the cause, and how many times as fast the piece will be when it is mended. Then you mend
# them. A piece is worth 5 points: 2 for the line, 1.5 for the cause, 1 for mending it, and 0.5 for a gain within 1.5
# times of what our mended piece reached where the course was made, or of what yours reaches when it passes its race.
# 1 point more is for a diagnosis that can be read. Most tests are hidden, and run when your notebook is graded.
#
# All pieces run on the CPU, with one thread when they are raced; for a gain, a change must make the piece 1.5 times as
# fast or more. The causes are those of chapters 10 to 14, and of earlier ones. A worked case is
# [here](../../course/clinic_14.ipynb).
# 51 points, about 85 minutes.

# %% id="setup" role="given"
import torch
import torch.nn.functional as F
from torch import nn

from autograder import check, costs, race
from autograder.judging.clinic import few, readable, right_causes, right_gains, right_lines

CAUSES = {
    "nothing": "no single change would make it 1.5 times as fast",
    "small pieces": "many small operations do what few large ones would",
    "groups": "all numbers are looked at once for each group, where one pass would do for all groups",
    "late": "numbers become few only after the work on them, where they could become few before",
    "order": "an operation walks slowly through numbers, because of their order in memory",
    "copied": "numbers are copied, where a view or a change in place would do",
    "memory": "large tables in between travel to memory and back, where blocks would stay in a cache",
    "unused": "whole results are computed, of which only a part is used",
    "repeated": "the same result is computed again and again",
    "float64": "numbers are twice as wide as anybody asked for",
    "graph": "autograd records, or differentiates, what nobody asks a gradient of",
}


def counted(function, inputs):
    """What `costs` counts in a call of a piece, such as `counted(trending, forty_batches)`."""
    return costs(function, *inputs(torch.Generator().manual_seed(0), "cpu"))


# %% [markdown]
# ## How to look
#
# `counted(trending, forty_batches)` counts what one call of a piece asks of torch. What a line takes, you can measure: copy
# the piece into a new cell, change that line or leave it out, and `compare` the two, with `inputs=forty_batches` and
# `differ="a line is left out"`. Both are free: use them as often as you like. The inputs of each piece are folded below it.
# A mended piece must also be right where there is nothing to work on, or one thing: `few(forty_batches)` makes such inputs.
#
# <details><summary>Hint 1</summary>Say first what the piece has to do at least: how many operations, on how many bytes, with
# how much arithmetic. Then count, and measure. Where the two are far apart, there is the place.</details>
# <details><summary>Hint 2</summary>Ask of each line how often it runs, how many numbers it makes, and how many of them
# somebody reads. Where that tells nothing, ask how the numbers lie, and whether they fit into a cache.</details>
# <details><summary>Hint 3</summary>If a line takes the share <em>s</em> of the time, and nearly nothing when it is mended,
# the piece becomes 1 / (1 − <em>s</em>) times as fast: 3 times for two thirds, 10 times for nine tenths.</details>

# %% [markdown]
# ## 1. `served_batch`
#
# What a server does with pictures before its network gets them: white balance, standardising, channels first. Here: 8
# pictures of 96 × 96.


# %% id="served_batch" role="given"
def served_batch(pictures, white, mean, std):
    """The pictures as the network takes them, how bright each is, and how much of that each channel has.

    pictures: uint8, (n, height, width, 3); white: what each channel is multiplied with, so that white is
    white; mean, std: of each channel, over the training set.
    """
    values = pictures.float().div_(255)
    balanced = values.mul_(white).clamp_(max=1)
    channels = balanced.mean(dim=(1, 2))

    scaled = balanced.sub_(mean).div_(std)
    batch = scaled.permute(0, 3, 1, 2).contiguous()

    bright = channels.mean(dim=1)
    parts = channels / channels.sum(dim=1, keepdim=True).clamp(min=1e-6)
    return batch, bright, parts


# %% id="served_batch_inputs" role="given" jupyter={"source_hidden": true}
def sent_pictures(generator, device, pictures=8):
    sent = torch.randint(256, (pictures, 96, 96, 3), generator=generator, dtype=torch.uint8)
    white = 0.9 + 0.3 * torch.rand(3, generator=generator)
    return sent, white, torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])


# %% [markdown]
# ## 2. `averaged`
#
# What is served is not the network as it was trained last, but a running average of its weights (EMA). Here: 5 snapshots,
# four layers of 256 × 256.


# %% id="averaged" role="given"
def averaged(averages, snapshots, decay):
    """The running averages after all snapshots, and how far each snapshot was from them.

    averages: a matrix for each layer; the first ones count as one snapshot. They are left as they are.
    """
    averages = [average.clone() for average in averages]
    apart = torch.zeros(len(snapshots))
    for number, weights in enumerate(snapshots):
        # Early on, the plain mean: an average of few snapshots would stay near to the first.
        rate = max(1 - decay, 1 / (number + 2))
        squares = torch.zeros(())
        for average, weight in zip(averages, weights, strict=True):
            moved = weight - average
            average.add_(moved, alpha=rate)
            squares += moved.flatten() @ moved.flatten()
        apart[number] = squares.sqrt()

    sizes = torch.stack([average.norm() for average in averages])
    return averages, apart, apart / sizes.norm()


# %% id="averaged_inputs" role="given" jupyter={"source_hidden": true}
def five_snapshots(generator, device, snapshots=5):
    averages = list(torch.randn(4, 256, 256, generator=generator) / 16)
    moves = torch.randn(snapshots, 4, 256, 256, generator=generator) / 50
    trained = [[start + move for start, move in zip(averages, step, strict=True)] for step in moves]
    return averages, trained, 0.7


# %% [markdown]
# ## 3. `near_duplicates`
#
# Before a new picture is stored: is it there already? Histograms of its colours tell. Here: 64 new pictures, 600 stored
# ones, 256 colours.


# %% id="near_duplicates" role="given"
def near_duplicates(uploads, store, k, limit):
    """How far each new picture is from the k stored ones that are nearest, and how likely it is known.

    uploads, store: histograms, one a row. Distances are chi-square, from 0 (the same) to 1 (nothing in common).
    """
    new = uploads / uploads.sum(dim=1, keepdim=True).clamp(min=1)
    known = store / store.sum(dim=1, keepdim=True).clamp(min=1)

    apart = new[:, None] - known
    both = new[:, None] + known
    terms = apart.square_().div_(both.clamp_(min=1e-9))
    distances = terms.sum(dim=2) / 2

    nearest = distances.topk(k, dim=1, largest=False).values
    alike = torch.exp(-nearest / limit)
    return nearest, 1 - (1 - alike).prod(dim=1)


# %% id="near_duplicates_inputs" role="given" jupyter={"source_hidden": true}
def new_pictures(generator, device, pictures=64):
    uploads = torch.randint(40, (pictures, 256), generator=generator).float()
    store = torch.randint(40, (600, 256), generator=generator).float()
    return uploads, store, 5, 0.2


# %% [markdown]
# ## 4. `shop_report`
#
# A recommender has foretold ratings. For which shops is it wrong? Here: 20,000 ratings of goods from 60 shops.


# %% id="shop_report" role="given"
def shop_report(users, items, pairs, ratings, shops, count):
    """Of each shop, how many ratings there are; and their bias, mean error and root mean squared error.

    The worst of these three among all shops come second. users, items: their factors; pairs: user and item of each rating; shops: numbers below count.
    """
    who, what = pairs.unbind(dim=1)
    foretold = (users[who] * items[what]).sum(dim=1)
    off = foretold - ratings

    table = off.new_zeros(count, 4)
    for shop in range(count):
        own = off[shops == shop]
        number = len(own)
        bias = own.sum() / max(number, 1)
        error = own.abs().sum() / max(number, 1)
        squared = own.square().sum() / max(number, 1)
        table[shop] = torch.stack([torch.tensor(number), bias, error, squared.sqrt()])
    return table, table[:, 1:].abs().amax(dim=0)


# %% id="shop_report_inputs" role="given" jupyter={"source_hidden": true}
def many_ratings(generator, device, ratings=20_000):
    users = torch.randn(500, 16, generator=generator) / 2
    items = torch.randn(300, 16, generator=generator) / 2
    who = torch.randint(500, (ratings,), generator=generator)
    what = torch.randint(300, (ratings,), generator=generator)
    given = torch.randn(ratings, generator=generator)
    shops = torch.randint(60, (ratings,), generator=generator)
    return users, items, torch.stack([who, what], dim=1), given, shops, 60


# %% [markdown]
# ## 5. `hard_negatives`
#
# A recommender learns from items that a user has not clicked, most of all from those that it takes for good ones. Here:
# 256 users, 1,000 items, 200 drawn for each user.


# %% id="hard_negatives" role="given"
def hard_negatives(users, items, clicked, seen, drawn, k):
    """Of the items drawn for each user, the k with the highest scores; the user's loss; the rank of the clicked one.

    clicked: one item of each user; seen: bool, (users, items); drawn: numbers of items, (users, draws). The
    rank is 0 if none of those drawn has a higher score.
    """
    scores = users @ items.T
    wanted = scores.gather(1, clicked[:, None])
    known = seen.gather(1, drawn)
    chances = scores.gather(1, drawn).masked_fill(known, -torch.inf)

    hardest = chances.topk(k, dim=1)
    negatives = drawn.gather(1, hardest.indices)
    there = hardest.values > -torch.inf
    losses = F.softplus(hardest.values - wanted)
    loss = losses.sum(dim=1) / there.sum(dim=1).clamp(min=1)
    rank = (chances > wanted).sum(dim=1)
    return negatives, loss, rank


# %% id="hard_negatives_inputs" role="given" jupyter={"source_hidden": true}
def some_users(generator, device, users=256):
    items = torch.randn(1_000, 64, generator=generator) / 8
    clicked = torch.randint(1_000, (users,), generator=generator)
    seen = torch.rand(users, 1_000, generator=generator) < 0.05
    drawn = torch.rand(users, 1_000, generator=generator).argsort(dim=1)[:, :200]
    return torch.randn(users, 64, generator=generator), items, clicked, seen, drawn, 10


# %% [markdown]
# ## 6. `scene_shares`
#
# What a camera in a car sees: how much of each picture is road, sky, people, and how sure the network is. Here: 4 pictures,
# 64 feature maps of 28 × 28, 8 classes, 112 × 112 pixels wanted.


# %% id="scene_shares" role="given"
def scene_shares(features, head, offsets, size):
    """The share of each class in each picture, how sure the network is, and how unsure (in nats).

    features: (pictures, channels, height, width); head: (classes, channels), for each pixel alone.
    """
    large = F.interpolate(features, size=size, mode="bilinear", align_corners=False)
    logits = F.conv2d(large, head[:, :, None, None], offsets)
    logs = logits.log_softmax(dim=1)
    probabilities = logs.exp()

    shares = probabilities.mean(dim=(2, 3))
    sure = probabilities.amax(dim=1).mean(dim=(1, 2))
    unsure = -(probabilities * logs).sum(dim=1).mean(dim=(1, 2))
    return shares, sure, unsure


# %% id="scene_shares_inputs" role="given" jupyter={"source_hidden": true}
def street_views(generator, device, pictures=4):
    features = torch.randn(pictures, 64, 28, 28, generator=generator)
    head = torch.randn(8, 64, generator=generator) / 4
    return features, head, torch.randn(8, generator=generator), (112, 112)


# %% [markdown]
# ## 7. `trending`
#
# A server counts clicks, which come in batches, and watches some items. Here: 40 batches of 64 clicks, 200,000 items, 50 of
# them watched.


# %% id="trending" role="given"
def trending(counts, batches, watched):
    """The new counts; those of the watched items after each batch; and which share of a rise is whose.

    counts: of all items so far; somebody else uses them, too. batches: numbers of items, and what each
    click counts: 1, or less where it is doubtful.
    """
    before = counts[watched]
    history = counts.new_empty(len(batches), len(watched))
    for number, (items, weights) in enumerate(batches):
        counts = counts.index_add(0, items, weights)
        history[number] = counts[watched]

    rises = history.diff(dim=0, prepend=before[None])
    totals = rises.sum(dim=1, keepdim=True)
    shares = rises / totals.clamp(min=1e-6)
    return counts, history, shares


# %% id="trending_inputs" role="given" jupyter={"source_hidden": true}
def forty_batches(generator, device, batches=40):
    counts = torch.randint(100, (200_000,), generator=generator).float()
    watched = torch.randperm(200_000, generator=generator)[:50]
    clicked = torch.randint(200_000, (batches, 64), generator=generator)
    clicked[:, ::4] = watched[torch.randint(50, (batches, 16), generator=generator)]
    weights = torch.rand(batches, 64, generator=generator)
    return counts, list(zip(clicked, weights, strict=True)), watched


# %% [markdown]
# ## 8. `look_alikes`
#
# "More like this" in a shop: pictures are compared by what a layer in the middle of a network says of them. Here: 256
# pictures, eight layers of 256, the second one is asked; 200 pictures to compare with.


# %% id="look_alikes" role="given"
class Layer(nn.Module):
    """One layer of a network that was trained before."""

    def __init__(self, weight):
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x):
        return F.relu(x @ self.weight)


def look_alikes(weights, gallery, pictures, place, k, batch_size=128):
    """How like each picture is to the k nearest ones, by what the layer with the number `place` gives.

    gallery: features of those to compare with, of that layer, one picture a row.
    """
    network = nn.Sequential(*(Layer(weight) for weight in weights))
    kept = []
    handle = network[place].register_forward_hook(lambda module, inputs, output: kept.append(output))
    for batch in pictures.split(batch_size):
        network(batch.flatten(1))
    handle.remove()

    features = F.normalize(torch.cat(kept), dim=1)
    cosines = features @ F.normalize(gallery, dim=1).T
    nearest = cosines.topk(k, dim=1).values
    return nearest, nearest.mean(dim=1)


# %% id="look_alikes_inputs" role="given" jupyter={"source_hidden": true}
def shop_pictures(generator, device, pictures=256):
    weights = list(torch.randn(8, 256, 256, generator=generator) / 11)
    gallery = torch.rand(200, 256, generator=generator)
    return weights, gallery, torch.randn(pictures, 1, 16, 16, generator=generator), 1, 5


# %% [markdown]
# ## 9. `equalised`
#
# Before X-ray pictures are compared, their grey levels are spread (histogram equalisation). Here: 32 pictures of 128 × 128.


# %% id="equalised" role="given"
def equalised(pictures, share):
    """The pictures with their levels spread; how many levels each uses, and its mean level, new.

    pictures: uint8, (n, height, width); share: of the new level in what comes out, the rest is the old one.
    """
    count, height, width = pictures.shape
    shifts = 256 * torch.arange(count, dtype=torch.int32)
    bins = (pictures + shifts[:, None, None]).flatten()
    table = bins.bincount(minlength=256 * count).view(count, 256)

    below = table.cumsum(dim=1)
    lowest = below.masked_fill(below == 0, height * width).amin(dim=1, keepdim=True)
    spread = (below - lowest).clamp(min=0) / (height * width - lowest).clamp(min=1)
    mixed = share * 255 * spread + (1 - share) * torch.arange(256)

    new = mixed.flatten().index_select(0, bins).view_as(pictures)
    used = (table > 0).sum(dim=1)
    mean = (table * mixed).sum(dim=1) / (height * width)
    return new, used, mean


# %% id="equalised_inputs" role="given" jupyter={"source_hidden": true}
def x_rays(generator, device, pictures=32):
    side = 128 if pictures > 1 else 1
    levels = 128 + 30 * torch.randn(pictures, side, side, generator=generator)
    return levels.clamp(0, 255).byte(), 0.8


# %% [markdown]
# ## 10. `suppressed`
#
# A detector finds each thing several times. Of boxes that overlap, only the surest stays (non-maximum suppression). Here:
# 250 boxes.


# %% id="suppressed" role="given"
def suppressed(boxes, scores, most):
    """The numbers of the boxes that stay, the surest first; their scores and areas.

    boxes: left, top, right, bottom. A box goes if one that stays, and is surer, shares more than `most`
    of what both cover.
    """
    left, top, right, bottom = boxes.unbind(dim=1)
    areas = (right - left) * (bottom - top)
    order = scores.argsort(descending=True)
    kept = []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        inner_left = torch.maximum(left[best], left[order])
        inner_right = torch.minimum(right[best], right[order])
        inner_top = torch.maximum(top[best], top[order])
        inner_bottom = torch.minimum(bottom[best], bottom[order])
        width = (inner_right - inner_left).clamp(min=0)
        height = (inner_bottom - inner_top).clamp(min=0)
        shared = width * height
        covered = areas[best] + areas[order] - shared
        order = order[shared / covered <= most]
    kept = torch.stack(kept) if kept else order
    return kept, scores[kept], areas[kept]


# %% id="suppressed_inputs" role="given" jupyter={"source_hidden": true}
def many_boxes(generator, device, boxes=250):
    corners = 400 * torch.rand(boxes, 2, generator=generator)
    sizes = 20 + 100 * torch.rand(boxes, 2, generator=generator)
    return torch.cat([corners, corners + sizes], dim=1), torch.rand(boxes, generator=generator), 0.3


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
first = served_batch, averaged, near_duplicates, shop_report, hard_negatives
second = scene_shares, trending, look_alikes, equalised, suppressed
PIECES = {piece.__name__: piece for piece in first + second}


# %% id="diagnosis" role="answer"
def diagnosis():
    ### BEGIN SOLUTION
    return {
        "served_batch": ("scaled = balanced.sub_(mean).div_(std)", "order", 3.0),
        "averaged": ("", "nothing", 1),
        "near_duplicates": ("apart = new[:, None] - known", "memory", 6.6),
        "shop_report": ("own = off[shops == shop]", "groups", 5.5),
        "hard_negatives": ("", "nothing", 1),
        "scene_shares": (
            'large = F.interpolate(features, size=size, mode="bilinear", align_corners=False)',
            "late",
            4.9,
        ),
        "trending": ("counts = counts.index_add(0, items, weights)", "copied", 4.4),
        "look_alikes": ("network(batch.flatten(1))", "unused", 2.6),
        "equalised": ("", "nothing", 1),
        "suppressed": ("while len(order):", "small pieces", 7.5),
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
    "served_batch": ("order", 3.0),
    "averaged": ("nothing", 1),
    "near_duplicates": ("memory", 6.6),
    "shop_report": ("groups", 5.5),
    "hard_negatives": ("nothing", 1),
    "scene_shares": ("late", 4.9),
    "trending": ("copied", 4.4),
    "look_alikes": ("unused", 2.6),
    "equalised": ("nothing", 1),
    "suppressed": ("small pieces", 7.5),
}
places = """
served_batch: values = pictures.float().div_(255)
served_batch: balanced = values.mul_(white).clamp_(max=1)
served_batch: scaled = balanced.sub_(mean).div_(std)
served_batch: batch = scaled.permute(0, 3, 1, 2).contiguous()
averaged:
near_duplicates: apart = new[:, None] - known
near_duplicates: both = new[:, None] + known
near_duplicates: terms = apart.square_().div_(both.clamp_(min=1e-9))
near_duplicates: distances = terms.sum(dim=2) / 2
shop_report: for shop in range(count):
shop_report: own = off[shops == shop]
hard_negatives:
scene_shares: large = F.interpolate(features, size=size, mode="bilinear", align_corners=False)
scene_shares: logits = F.conv2d(large, head[:, :, None, None], offsets)
trending: counts = counts.index_add(0, items, weights)
look_alikes: handle = network[place].register_forward_hook(lambda module, inputs, output: kept.append(output))
look_alikes: network(batch.flatten(1))
look_alikes: network = nn.Sequential(*(Layer(weight) for weight in weights))
equalised:
suppressed: while len(order):
suppressed: best, order = order[0], order[1:]
suppressed: inner_left = torch.maximum(left[best], left[order])
suppressed: inner_right = torch.minimum(right[best], right[order])
suppressed: inner_top = torch.maximum(top[best], top[order])
suppressed: inner_bottom = torch.minimum(bottom[best], bottom[order])
suppressed: width = (inner_right - inner_left).clamp(min=0)
suppressed: height = (inner_bottom - inner_top).clamp(min=0)
suppressed: shared = width * height
suppressed: covered = areas[best] + areas[order] - shared
suppressed: order = order[shared / covered <= most]
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
# name.) Where nothing is wrong, call the piece and give what it gives. An eighth of the point is for staying right: the test
# that you see tries the usual inputs, the first hidden one tries none and one. The rest is for being as fast as the piece can
# be without its waste.

# %% [markdown]
# ### `served_batch`
#
# *Easy, 4 minutes.*


# %% id="served_batch_mended" role="answer"
def served_batch_mended(pictures, white, mean, std):
    ### BEGIN SOLUTION
    white, mean, std = (of_channel[:, None, None] for of_channel in (white, mean, std))
    values = pictures.permute(0, 3, 1, 2).contiguous().float().div_(255)
    balanced = values.mul_(white).clamp_(max=1)
    channels = balanced.mean(dim=(2, 3))
    batch = balanced.sub_(mean).div_(std)
    parts = channels / channels.sum(dim=1, keepdim=True).clamp(min=1e-6)
    return batch, channels.mean(dim=1), parts
    ### END SOLUTION


# %% id="served_batch_mended_check" role="test"
check(served_batch_mended, like=served_batch, on=sent_pictures, points=0.0625)

# %% id="served_batch_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(served_batch_mended, like=served_batch, on=few(sent_pictures), points=0.0625)
### END HIDDEN TESTS

# %% id="served_batch_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(served_batch_mended, against=served_batch, on=sent_pictures, at_least={"cpu": 1.6}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `averaged`
#
# *Easy, 4 minutes.*


# %% id="averaged_mended" role="answer"
def averaged_mended(averages, snapshots, decay):
    ### BEGIN SOLUTION
    return averaged(averages, snapshots, decay)
    ### END SOLUTION


# %% id="averaged_mended_check" role="test"
check(averaged_mended, like=averaged, on=five_snapshots, points=0.0625)

# %% id="averaged_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(averaged_mended, like=averaged, on=few(five_snapshots), points=0.0625)
### END HIDDEN TESTS

# %% id="averaged_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(averaged_mended, like=averaged, on=[five_snapshots, five_snapshots], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `near_duplicates`
#
# *Easy, 4 minutes.*


# %% id="near_duplicates_mended" role="answer"
def near_duplicates_mended(uploads, store, k, limit):
    ### BEGIN SOLUTION
    new = uploads / uploads.sum(dim=1, keepdim=True).clamp(min=1)
    known = store / store.sum(dim=1, keepdim=True).clamp(min=1)
    distances = []
    for row in new:
        apart = row - known
        both = row + known
        terms = apart.square_().div_(both.clamp_(min=1e-9))
        distances.append(terms.sum(dim=1) / 2)
    distances = torch.stack(distances) if distances else new.new_empty(0, len(known))
    nearest = distances.topk(k, dim=1, largest=False).values
    return nearest, 1 - (1 - torch.exp(-nearest / limit)).prod(dim=1)
    ### END SOLUTION


# %% id="near_duplicates_mended_check" role="test"
check(near_duplicates_mended, like=near_duplicates, on=new_pictures, points=0.0625)

# %% id="near_duplicates_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(near_duplicates_mended, like=near_duplicates, on=few(new_pictures), points=0.0625)
### END HIDDEN TESTS

# %% id="near_duplicates_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(near_duplicates_mended, against=near_duplicates, on=new_pictures, at_least={"cpu": 2.5}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `shop_report`
#
# *Easy, 4 minutes.*


# %% id="shop_report_mended" role="answer"
def shop_report_mended(users, items, pairs, ratings, shops, count):
    ### BEGIN SOLUTION
    who, what = pairs.unbind(dim=1)
    off = (users[who] * items[what]).sum(dim=1) - ratings
    number = shops.bincount(minlength=count)
    sums = [off.new_zeros(count).index_add(0, shops, values) for values in (off, off.abs(), off.square())]
    bias, error, squared = (values / number.clamp(min=1) for values in sums)
    table = torch.stack([number, bias, error, squared.sqrt()], dim=1)
    return table, table[:, 1:].abs().amax(dim=0)
    ### END SOLUTION


# %% id="shop_report_mended_check" role="test"
check(shop_report_mended, like=shop_report, on=many_ratings, points=0.0625)

# %% id="shop_report_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(shop_report_mended, like=shop_report, on=few(many_ratings), points=0.0625)
### END HIDDEN TESTS

# %% id="shop_report_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(shop_report_mended, against=shop_report, on=many_ratings, at_least={"cpu": 3.2}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `hard_negatives`
#
# *Easy, 4 minutes.*


# %% id="hard_negatives_mended" role="answer"
def hard_negatives_mended(users, items, clicked, seen, drawn, k):
    ### BEGIN SOLUTION
    return hard_negatives(users, items, clicked, seen, drawn, k)
    ### END SOLUTION


# %% id="hard_negatives_mended_check" role="test"
check(hard_negatives_mended, like=hard_negatives, on=some_users, points=0.0625)

# %% id="hard_negatives_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(hard_negatives_mended, like=hard_negatives, on=few(some_users), points=0.0625)
### END HIDDEN TESTS

# %% id="hard_negatives_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(hard_negatives_mended, like=hard_negatives, on=[some_users, some_users], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `scene_shares`
#
# *Easy, 4 minutes.*


# %% id="scene_shares_mended" role="answer"
def scene_shares_mended(features, head, offsets, size):
    ### BEGIN SOLUTION
    small = F.conv2d(features, head[:, :, None, None], offsets)
    logits = F.interpolate(small, size=size, mode="bilinear", align_corners=False)
    logs = logits.log_softmax(dim=1)
    probabilities = logs.exp()
    shares = probabilities.mean(dim=(2, 3))
    sure = probabilities.amax(dim=1).mean(dim=(1, 2))
    return shares, sure, -(probabilities * logs).sum(dim=1).mean(dim=(1, 2))
    ### END SOLUTION


# %% id="scene_shares_mended_check" role="test"
check(scene_shares_mended, like=scene_shares, on=street_views, points=0.0625)

# %% id="scene_shares_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(scene_shares_mended, like=scene_shares, on=few(street_views), points=0.0625)
### END HIDDEN TESTS

# %% id="scene_shares_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(scene_shares_mended, against=scene_shares, on=street_views, at_least={"cpu": 2.8}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `trending`
#
# *Easy, 4 minutes.*


# %% id="trending_mended" role="answer"
def trending_mended(counts, batches, watched):
    ### BEGIN SOLUTION
    before = counts[watched]
    counts = counts.clone()
    history = counts.new_empty(len(batches), len(watched))
    for number, (items, weights) in enumerate(batches):
        counts.index_add_(0, items, weights)
        history[number] = counts[watched]
    rises = history.diff(dim=0, prepend=before[None])
    return counts, history, rises / rises.sum(dim=1, keepdim=True).clamp(min=1e-6)
    ### END SOLUTION


# %% id="trending_mended_check" role="test"
check(trending_mended, like=trending, on=forty_batches, points=0.0625)

# %% id="trending_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(trending_mended, like=trending, on=few(forty_batches), points=0.0625)
### END HIDDEN TESTS

# %% id="trending_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(trending_mended, against=trending, on=forty_batches, at_least={"cpu": 2}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `look_alikes`
#
# *Easy, 4 minutes.*


# %% id="look_alikes_mended" role="answer"
def look_alikes_mended(weights, gallery, pictures, place, k, batch_size=128):
    ### BEGIN SOLUTION
    kept = []
    for batch in pictures.split(batch_size):
        x = batch.flatten(1)
        for weight in weights[: place + 1]:
            x = F.relu(x @ weight)
        kept.append(x)
    features = F.normalize(torch.cat(kept), dim=1)
    cosines = features @ F.normalize(gallery, dim=1).T
    nearest = cosines.topk(k, dim=1).values
    return nearest, nearest.mean(dim=1)
    ### END SOLUTION


# %% id="look_alikes_mended_check" role="test"
check(look_alikes_mended, like=look_alikes, on=shop_pictures, points=0.0625)

# %% id="look_alikes_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(look_alikes_mended, like=look_alikes, on=few(shop_pictures), points=0.0625)
### END HIDDEN TESTS

# %% id="look_alikes_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(look_alikes_mended, against=look_alikes, on=shop_pictures, at_least={"cpu": 1.5}, points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `equalised`
#
# *Easy, 4 minutes.*


# %% id="equalised_mended" role="answer"
def equalised_mended(pictures, share):
    ### BEGIN SOLUTION
    return equalised(pictures, share)
    ### END SOLUTION


# %% id="equalised_mended_check" role="test"
check(equalised_mended, like=equalised, on=x_rays, points=0.0625)

# %% id="equalised_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(equalised_mended, like=equalised, on=few(x_rays), points=0.0625)
### END HIDDEN TESTS

# %% id="equalised_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(equalised_mended, like=equalised, on=[x_rays, x_rays], points=0.875)
### END HIDDEN TESTS

# %% [markdown]
# ### `suppressed`
#
# *Easy, 4 minutes.*


# %% id="suppressed_mended" role="answer"
def suppressed_mended(boxes, scores, most):
    ### BEGIN SOLUTION
    order = scores.argsort(descending=True)
    left, top, right, bottom = boxes[order].T.contiguous()
    areas = (right - left) * (bottom - top)
    width = torch.minimum(right[:, None], right) - torch.maximum(left[:, None], left)
    height = torch.minimum(bottom[:, None], bottom) - torch.maximum(top[:, None], top)
    shared = width.clamp_(min=0) * height.clamp_(min=0)
    covered = areas[:, None] + areas - shared
    hides = (shared / covered > most).triu(1)
    stays, before = torch.ones_like(order, dtype=torch.bool), None
    while before is None or not torch.equal(stays, before):  # each round settles at least one box more
        before, stays = stays, ~(hides & stays[:, None]).any(dim=0)
    return order[stays], scores[order[stays]], areas[stays]
    ### END SOLUTION


# %% id="suppressed_mended_check" role="test"
check(suppressed_mended, like=suppressed, on=many_boxes, points=0.0625)

# %% id="suppressed_mended_edges" role="test"
# Hidden test: none and one, 0.0625 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(suppressed_mended, like=suppressed, on=few(many_boxes), points=0.0625)
### END HIDDEN TESTS

# %% id="suppressed_mended_hidden" role="test"
# Hidden test: 0.875 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(suppressed_mended, against=suppressed, on=many_boxes, at_least={"cpu": 4.2}, points=0.875)
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
