# %% [markdown]
# # Clinic after 04: where is the time?
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
# fast or more. The causes are those of chapters 00 to 04. A worked case is [here](../../course/clinic_04.ipynb).
# 51 points, about 85 minutes.

# %% id="setup" role="given"
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from autograder import check, costs, race
from autograder.judging.clinic import readable, right_causes, right_gains, right_lines

CAUSES = {
    "nothing": "no single change would make it 1.5 times as fast",
    "one by one": "Python asks torch for one number or one small row at a time; a GPU would wait each time, too",
    "lists": "numbers become Python's own on the way from one array to another",
    "float64": "numbers are twice as wide as anybody asked for",
    "copied": "numbers are copied where a view would show them",
    "repeated": "the same result is computed again and again",
    "unused": "whole results are computed, of which only a part is used",
    "growing": "what is there already is copied whole, each time something is added",
    "graph": "autograd records, or differentiates, what nobody asks a gradient of",
    "transfers": "many small pieces travel to the device, where one could",
    "workers": "processes, or pinned memory, cost more than they bring",
}


def counted(function, inputs):
    """What `costs` counts in a call of a piece, such as `counted(backtest, five_windows)`."""
    return costs(function, *inputs(torch.Generator().manual_seed(0), "cpu"))


# %% [markdown]
# ## How to look
#
# `counted(backtest, five_windows)` counts what one call of a piece asks of torch. What a line takes, you can
# measure: copy the piece into a new cell, change that line or leave it out, and compare:
#
# ```python
# from autograder import compare
#
# compare("a trial", {"as it is": backtest, "changed": mine}, inputs=five_windows, differ="a line is left out")
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
# ## 1. `backtest`
#
# A linear model of returns, fitted anew for each window of days, is tried on one window after the other
# (walk-forward). Here: 5 windows of 10,000 days, 64 features.


# %% id="backtest" role="given"
def backtest(features, returns, weights, windows):
    """How each window's linear model agrees with what came, in windows that move on.

    Gives a table with one row a window: correlation, squared error, and what trading by it gains.
    """
    table = []
    for weight, (start, stop) in zip(weights, windows, strict=True):
        days = torch.arange(start, stop)
        signal = features[days] @ weight
        came = returns[days]

        centred = signal - signal.mean()
        apart = came - came.mean()
        correlation = (centred * apart).sum() / (centred.norm() * apart.norm())

        error = F.mse_loss(signal, came)
        gain = (signal.tanh() * came).mean()
        table.append(torch.stack([correlation, error, gain]))
    return torch.stack(table)


# %% id="backtest_inputs" role="given" jupyter={"source_hidden": true}
def five_windows(generator, device):
    features = torch.randn(12_000, 64, generator=generator)
    weights = [torch.randn(64, generator=generator) / 8 for _ in range(5)]
    returns = features @ weights[0] + torch.randn(12_000, generator=generator)
    return features, returns, weights, [(start, start + 10_000) for start in range(0, 2_000, 400)]


# %% [markdown]
# ## 2. `train_epoch`
#
# One epoch of training, in the order that a sampler made. Here: 512 pictures of 16 × 16, three layers.


# %% id="train_epoch" role="given"
def train_epoch(weights, images, labels, order, batch_size=128, rate=0.05):
    """One epoch of SGD with momentum: mean loss, accuracy, and the new weights."""
    layers = [nn.Parameter(weight.clone()) for weight in weights]
    optimiser = torch.optim.SGD(layers, lr=rate, momentum=0.9)
    total = torch.zeros(())
    hits = torch.zeros((), dtype=torch.int64)
    for rows in order.split(batch_size):
        x, targets = images[rows], labels[rows]
        for weight in layers[:-1]:
            x = F.relu(x @ weight)
        logits = x @ layers[-1]
        loss = F.cross_entropy(logits, targets)

        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

        total += loss.detach() * len(rows)
        hits += (logits.argmax(dim=1) == targets).sum()
    return total / len(order), hits / len(order), [layer.detach() for layer in layers]


# %% id="train_epoch_inputs" role="given" jupyter={"source_hidden": true}
def one_epoch(generator, device):
    weights = [torch.randn(256, n, generator=generator) / 16 for n in (256, 256, 10)]
    images = torch.randn(512, 256, generator=generator)
    labels = torch.randint(10, (512,), generator=generator)
    return weights, images, labels, torch.randperm(512, generator=generator)


# %% [markdown]
# ## 3. `activity_batches`
#
# A data set of windows, cut out of one long recording of six sensors, and the loader that a training loop goes through.
# Here: 60 windows of 128 readings.


# %% id="activity_batches" role="given"
class Recording(Dataset):
    """Windows of a recording, each with the activity in its middle."""

    def __init__(self, values, activities, length, stride):
        self.values = (values - values.mean(axis=0)) / values.std(axis=0)
        self.activities = activities
        self.length = length
        self.starts = range(0, len(values) - length + 1, stride)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        start = self.starts[index]
        window = self.values[start : start + self.length]
        activity = self.activities[start + self.length // 2]
        return torch.tensor(window.tolist()), int(activity)


def activity_batches(values, activities, length, stride, batch_size):
    """All windows in their order, as batches of shape (windows, sensors, readings), with their activities."""
    data = Recording(values, activities, length, stride)
    loader = DataLoader(data, batch_size=batch_size, shuffle=False, num_workers=0, pin_memory=False)
    return [(windows.transpose(1, 2), labels) for windows, labels in loader]


# %% id="activity_batches_inputs" role="given" jupyter={"source_hidden": true}
def one_recording(generator, device):
    values = torch.randn(59 * 32 + 128, 6, generator=generator).numpy()
    activities = torch.randint(5, (len(values),), generator=generator).numpy()
    return values, activities, 128, 32, 20


# %% [markdown]
# ## 4. `outlier_scores`
#
# How unlike the training data a sample is (Mahalanobis distance): of each sample, and of each class. Here: 1,024 samples,
# 256 features, 10 classes.


# %% id="outlier_scores" role="given"
def outlier_scores(features, labels, mean, precision):
    """The distance of each sample from what a network was trained on, and its mean in each class.

    mean, precision: NumPy arrays, fitted to the training data.
    """
    precision = torch.from_numpy(precision)
    centred = features - torch.from_numpy(mean)
    squares = (centred @ precision * centred).sum(dim=1)
    distances = squares.clamp(min=0).sqrt().float()

    sums = torch.zeros(10).index_add(0, labels, distances)
    counts = labels.bincount(minlength=10)
    return distances, sums / counts.clamp(min=1)


# %% id="outlier_scores_inputs" role="given" jupyter={"source_hidden": true}
def fitted(generator, device):
    features = torch.randn(1_024, 256, generator=generator)
    labels = torch.randint(10, (1_024,), generator=generator)
    mean = torch.rand(256, generator=generator, dtype=torch.float64)
    spread = torch.randn(256, 256, generator=generator, dtype=torch.float64) / 16
    return features, labels, mean.numpy(), (spread @ spread.T + torch.eye(256)).numpy()


# %% [markdown]
# ## 5. `confusion_report`
#
# What is written into the log after each epoch: which classes are taken for which. Here: 4 batches of 256 samples, 100
# classes.


# %% id="confusion_report" role="given"
def confusion_report(batches, classes):
    """The table of true and predicted classes; recall, precision and F1 of each class."""
    table = torch.zeros(classes, classes, dtype=torch.int64)
    for logits, labels in batches:
        predicted = logits.argmax(dim=1)
        for truth, guess in zip(labels, predicted, strict=True):
            table[truth, guess] += 1

    hits = table.diagonal()
    there = table.sum(dim=1)
    said = table.sum(dim=0)
    recall = hits / there.clamp(min=1)
    precision = hits / said.clamp(min=1)
    both = recall + precision
    f1 = torch.where(both > 0, 2 * recall * precision / both, torch.zeros(()))
    return table, torch.stack([recall, precision, f1], dim=1)


# %% id="confusion_report_inputs" role="given" jupyter={"source_hidden": true}
def four_batches(generator, device):
    logits = torch.randn(4, 256, 100, generator=generator)
    labels = torch.randint(100, (4, 256), generator=generator)
    return list(zip(logits, labels, strict=True)), 100


# %% [markdown]
# ## 6. `tune_head`
#
# A new last layer is fitted to a network that is trained already and stays as it is. Here: 5 batches of 256 pictures,
# a network of four layers.


# %% id="tune_head" role="given"
class Backbone(nn.Module):
    """A network that was trained before."""

    def __init__(self, weights):
        super().__init__()
        self.weights = nn.ParameterList(weights)

    def forward(self, x):
        for weight in self.weights:
            x = F.relu(x @ weight)
        return x


def tune_head(weights, head, batches, rate=0.1):
    """Fit the last layer, one step a batch; gives it, and the loss of each batch."""
    backbone = Backbone(weights).eval()
    head = nn.Parameter(head.clone())
    optimiser = torch.optim.SGD([head], lr=rate)
    losses = []
    for images, labels in batches:
        features = backbone(images.flatten(1))
        loss = F.cross_entropy(features @ head, labels)

        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return head.detach(), torch.stack(losses)


# %% id="tune_head_inputs" role="given" jupyter={"source_hidden": true}
def five_batches(generator, device):
    weights = [torch.randn(256, 256, generator=generator) / 11 for _ in range(4)]
    head = torch.randn(256, 10, generator=generator) / 16
    images = torch.randn(5, 256, 16, 16, generator=generator)
    labels = torch.randint(10, (5, 256), generator=generator)
    return weights, head, list(zip(images, labels, strict=True))


# %% [markdown]
# ## 7. `training_crops`
#
# What a data set does with each picture before training: to float, standardised, and a random square of it. Here: 24
# pictures of 160 × 160, squares of 32.


# %% id="training_crops" role="given"
def training_crops(pictures, corners, side, mean, std):
    """One square of each picture: standardised floats, channels first.

    pictures: NumPy arrays of uint8, (height, width, 3), of any sizes; corners: top and left of each square.
    """
    batch = torch.empty(len(pictures), 3, side, side)
    mean = mean[:, None, None]
    std = std[:, None, None]
    for i, (picture, corner) in enumerate(zip(pictures, corners, strict=True)):
        image = torch.from_numpy(picture).permute(2, 0, 1)
        image = (image.float() / 255 - mean) / std
        top, left = corner
        batch[i] = image[:, top : top + side, left : left + side]
    return batch


# %% id="training_crops_inputs" role="given" jupyter={"source_hidden": true}
def some_pictures(generator, device):
    pictures = torch.randint(256, (24, 160, 160, 3), generator=generator, dtype=torch.uint8)
    corners = torch.randint(128, (24, 2), generator=generator).tolist()
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return list(pictures.numpy()), corners, 32, mean, std


# %% [markdown]
# ## 8. `clip_loss`
#
# The loss that brings pictures and their texts together (as in CLIP), and how often the right one is nearest. Here: 384
# pairs, 256 numbers each.


# %% id="clip_loss" role="given"
def clip_loss(pictures, texts, projections):
    """The contrastive loss in both directions, and the share of pairs that find each other."""
    views = []
    for part, projection in zip((pictures, texts), projections, strict=True):
        projected = part @ projection
        views.append(F.normalize(projected, dim=1).contiguous())

    scale = torch.tensor(np.log(1 / 0.07)).exp()
    logits = scale * (views[0] @ views[1].T)
    targets = torch.arange(len(logits))

    losses, hits = [], []
    for one in (logits, logits.T):
        losses.append(F.cross_entropy(one, targets))
        hits.append((one.argmax(dim=1) == targets).float().mean())
    return torch.stack(losses).mean(), torch.stack(hits)


# %% id="clip_loss_inputs" role="given" jupyter={"source_hidden": true}
def pairs(generator, device):
    pictures, texts = torch.randn(2, 384, 256, generator=generator)
    return pictures, texts, [torch.randn(256, 256, generator=generator) / 16 for _ in range(2)]


# %% [markdown]
# ## 9. `recall_at_k`
#
# How good a search is: whether a picture of the same kind is among the *k* nearest. Here: a gallery of 2,000, 10 batches
# of 8 queries.


# %% id="recall_at_k" role="given"
def recall_at_k(gallery, gallery_ids, projection, batches, k):
    """The share of queries that find one of their own kind among the k nearest of the gallery."""
    found = torch.zeros((), dtype=torch.int64)
    asked = 0
    for queries, ids in batches:
        queries = F.normalize(queries @ projection, dim=1)
        candidates = F.normalize(gallery @ projection, dim=1)
        nearness = queries @ candidates.T
        nearest = nearness.topk(k, dim=1).indices

        hits = (gallery_ids[nearest] == ids[:, None]).any(dim=1)
        found += hits.sum()
        asked += len(ids)
    return found / asked


# %% id="recall_at_k_inputs" role="given" jupyter={"source_hidden": true}
def ten_batches(generator, device):
    gallery = torch.randn(2_000, 512, generator=generator)
    gallery_ids = torch.randint(300, (2_000,), generator=generator)
    queries = torch.randn(10, 8, 512, generator=generator)
    ids = torch.randint(300, (10, 8), generator=generator)
    projection = torch.randn(512, 64, generator=generator) / 23
    return gallery, gallery_ids, projection, list(zip(queries, ids, strict=True)), 5


# %% [markdown]
# ## 10. `predict`
#
# The predictions for a whole data set, put back in order. Here: 200 batches of 16 samples, 256 classes.


# %% id="predict" role="given"
def predict(weights, batches, classes):
    """The probabilities of all samples in the order of their numbers, and how sure each is.

    batches: pairs of samples and their numbers, in any order.
    """
    probabilities = torch.empty(0, classes)
    numbers = torch.empty(0, dtype=torch.int64)
    with torch.no_grad():
        for samples, theirs in batches:
            x = samples
            for weight in weights[:-1]:
                x = F.relu(x @ weight)
            scores = x @ weights[-1]
            probabilities = torch.cat([probabilities, scores.softmax(dim=1)])
            numbers = torch.cat([numbers, theirs])

    probabilities = probabilities[numbers.argsort()]
    surest = probabilities.amax(dim=1)
    return probabilities, surest


# %% id="predict_inputs" role="given" jupyter={"source_hidden": true}
def many_batches(generator, device):
    weights = [torch.randn(64, n, generator=generator) / 8 for n in (64, 256)]
    samples = torch.randn(200, 16, 64, generator=generator)
    numbers = torch.randperm(3_200, generator=generator).view(200, 16)
    return weights, list(zip(samples, numbers, strict=True)), 256


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
        backtest,
        train_epoch,
        activity_batches,
        outlier_scores,
        confusion_report,
        tune_head,
        training_crops,
        clip_loss,
        recall_at_k,
        predict,
    )
}


# %% id="diagnosis" role="answer"
def diagnosis():
    ### BEGIN SOLUTION
    return {
        "backtest": ("signal = features[days] @ weight", "copied", 2.8),
        "train_epoch": ("", "nothing", 1),
        "activity_batches": ("return torch.tensor(window.tolist()), int(activity)", "lists", 12.5),
        "outlier_scores": ("centred = features - torch.from_numpy(mean)", "float64", 2.2),
        "confusion_report": ("table[truth, guess] += 1", "one by one", 14.5),
        "tune_head": ("features = backbone(images.flatten(1))", "graph", 2.2),
        "training_crops": ("image = (image.float() / 255 - mean) / std", "unused", 10.3),
        "clip_loss": ("", "nothing", 1),
        "recall_at_k": ("candidates = F.normalize(gallery @ projection, dim=1)", "repeated", 5.9),
        "predict": ("probabilities = torch.cat([probabilities, scores.softmax(dim=1)])", "growing", 3.1),
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
    "backtest": ("copied", 2.8),
    "train_epoch": ("nothing", 1),
    "activity_batches": ("lists", 12.5),
    "outlier_scores": ("float64", 2.2),
    "confusion_report": ("one by one", 14.5),
    "tune_head": ("graph", 2.2),
    "training_crops": ("unused", 10.3),
    "clip_loss": ("nothing", 1),
    "recall_at_k": ("repeated", 5.9),
    "predict": ("growing", 3.1),
}
places = """
backtest: signal = features[days] @ weight
backtest: days = torch.arange(start, stop)
train_epoch:
activity_batches: return torch.tensor(window.tolist()), int(activity)
outlier_scores: centred = features - torch.from_numpy(mean)
outlier_scores: precision = torch.from_numpy(precision)
outlier_scores: squares = (centred @ precision * centred).sum(dim=1)
confusion_report: table[truth, guess] += 1
confusion_report: for truth, guess in zip(labels, predicted, strict=True):
tune_head: features = backbone(images.flatten(1))
tune_head: backbone = Backbone(weights).eval()
tune_head: self.weights = nn.ParameterList(weights)
tune_head: x = F.relu(x @ weight)
tune_head: loss.backward()
training_crops: image = (image.float() / 255 - mean) / std
training_crops: batch[i] = image[:, top : top + side, left : left + side]
clip_loss:
recall_at_k: candidates = F.normalize(gallery @ projection, dim=1)
predict: probabilities = torch.cat([probabilities, scores.softmax(dim=1)])
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
# ### `backtest`
#
# *Easy, 4 minutes.*


# %% id="backtest_mended" role="answer"
def backtest_mended(features, returns, weights, windows):
    ### BEGIN SOLUTION
    table = []
    for weight, (start, stop) in zip(weights, windows, strict=True):
        signal = features[start:stop] @ weight
        came = returns[start:stop]

        centred = signal - signal.mean()
        apart = came - came.mean()
        correlation = (centred * apart).sum() / (centred.norm() * apart.norm())

        error = F.mse_loss(signal, came)
        gain = (signal.tanh() * came).mean()
        table.append(torch.stack([correlation, error, gain]))
    return torch.stack(table)
    ### END SOLUTION


# %% id="backtest_mended_check" role="test"
check(backtest_mended, like=backtest, on=five_windows, points=0.25)

# %% id="backtest_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(backtest_mended, against=backtest, on=five_windows, at_least={"cpu": 1.7}, points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `train_epoch`
#
# *Easy, 4 minutes.*


# %% id="train_epoch_mended" role="answer"
def train_epoch_mended(weights, images, labels, order, batch_size=128, rate=0.05):
    ### BEGIN SOLUTION
    return train_epoch(weights, images, labels, order, batch_size, rate)
    ### END SOLUTION


# %% id="train_epoch_mended_check" role="test"
check(train_epoch_mended, like=train_epoch, on=one_epoch, points=0.25)

# %% id="train_epoch_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(train_epoch_mended, like=train_epoch, on=[one_epoch, one_epoch], points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `activity_batches`
#
# *Easy, 4 minutes.*


# %% id="activity_batches_mended" role="answer"
def activity_batches_mended(values, activities, length, stride, batch_size):
    ### BEGIN SOLUTION
    class Windows(Recording):
        def __getitem__(self, index):
            start = self.starts[index]
            window = self.values[start : start + self.length]
            activity = self.activities[start + self.length // 2]
            return torch.from_numpy(window), int(activity)

    data = Windows(values, activities, length, stride)
    loader = DataLoader(data, batch_size=batch_size, shuffle=False, num_workers=0, pin_memory=False)
    return [(windows.transpose(1, 2), labels) for windows, labels in loader]
    ### END SOLUTION


# %% id="activity_batches_mended_check" role="test"
check(activity_batches_mended, like=activity_batches, on=one_recording, points=0.25)

# %% id="activity_batches_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(activity_batches_mended, against=activity_batches, on=one_recording, at_least={"cpu": 8}, points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `outlier_scores`
#
# *Easy, 4 minutes.*


# %% id="outlier_scores_mended" role="answer"
def outlier_scores_mended(features, labels, mean, precision):
    ### BEGIN SOLUTION
    centred = features - torch.from_numpy(mean).float()
    squares = (centred @ torch.from_numpy(precision).float() * centred).sum(dim=1)
    distances = squares.clamp(min=0).sqrt()

    sums = torch.zeros(10).index_add(0, labels, distances)
    return distances, sums / labels.bincount(minlength=10).clamp(min=1)
    ### END SOLUTION


# %% id="outlier_scores_mended_check" role="test"
check(outlier_scores_mended, like=outlier_scores, on=fitted, points=0.25)

# %% id="outlier_scores_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(outlier_scores_mended, against=outlier_scores, on=fitted, at_least={"cpu": 1.5}, points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `confusion_report`
#
# *Easy, 4 minutes.*


# %% id="confusion_report_mended" role="answer"
def confusion_report_mended(batches, classes):
    ### BEGIN SOLUTION
    table = torch.zeros(classes, classes, dtype=torch.int64)
    for logits, labels in batches:
        pairs = labels * classes + logits.argmax(dim=1)
        table += pairs.bincount(minlength=classes**2).view(classes, classes)

    hits = table.diagonal()
    recall = hits / table.sum(dim=1).clamp(min=1)
    precision = hits / table.sum(dim=0).clamp(min=1)
    both = recall + precision
    f1 = torch.where(both > 0, 2 * recall * precision / both, torch.zeros(()))
    return table, torch.stack([recall, precision, f1], dim=1)
    ### END SOLUTION


# %% id="confusion_report_mended_check" role="test"
check(confusion_report_mended, like=confusion_report, on=four_batches, points=0.25)

# %% id="confusion_report_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(confusion_report_mended, against=confusion_report, on=four_batches, at_least={"cpu": 5}, points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `tune_head`
#
# *Easy, 4 minutes.*


# %% id="tune_head_mended" role="answer"
def tune_head_mended(weights, head, batches, rate=0.1):
    ### BEGIN SOLUTION
    backbone = Backbone(weights).eval().requires_grad_(False)
    head = nn.Parameter(head.clone())
    optimiser = torch.optim.SGD([head], lr=rate)
    losses = []
    for images, labels in batches:
        loss = F.cross_entropy(backbone(images.flatten(1)) @ head, labels)

        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return head.detach(), torch.stack(losses)
    ### END SOLUTION


# %% id="tune_head_mended_check" role="test"
check(tune_head_mended, like=tune_head, on=five_batches, points=0.25)

# %% id="tune_head_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(tune_head_mended, against=tune_head, on=five_batches, at_least={"cpu": 1.5}, points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `training_crops`
#
# *Easy, 4 minutes.*


# %% id="training_crops_mended" role="answer"
def training_crops_mended(pictures, corners, side, mean, std):
    ### BEGIN SOLUTION
    batch = torch.empty(len(pictures), 3, side, side)
    for i, (picture, (top, left)) in enumerate(zip(pictures, corners, strict=True)):
        batch[i] = torch.from_numpy(picture[top : top + side, left : left + side]).permute(2, 0, 1)
    return (batch / 255 - mean[:, None, None]) / std[:, None, None]
    ### END SOLUTION


# %% id="training_crops_mended_check" role="test"
check(training_crops_mended, like=training_crops, on=some_pictures, points=0.25)

# %% id="training_crops_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(training_crops_mended, against=training_crops, on=some_pictures, at_least={"cpu": 4}, points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `clip_loss`
#
# *Easy, 4 minutes.*


# %% id="clip_loss_mended" role="answer"
def clip_loss_mended(pictures, texts, projections):
    ### BEGIN SOLUTION
    return clip_loss(pictures, texts, projections)
    ### END SOLUTION


# %% id="clip_loss_mended_check" role="test"
check(clip_loss_mended, like=clip_loss, on=pairs, points=0.25)

# %% id="clip_loss_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
check(clip_loss_mended, like=clip_loss, on=[pairs, pairs], points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `recall_at_k`
#
# *Easy, 4 minutes.*


# %% id="recall_at_k_mended" role="answer"
def recall_at_k_mended(gallery, gallery_ids, projection, batches, k):
    ### BEGIN SOLUTION
    candidates = F.normalize(gallery @ projection, dim=1).T
    found = torch.zeros((), dtype=torch.int64)
    asked = 0
    for queries, ids in batches:
        queries = F.normalize(queries @ projection, dim=1)
        nearest = (queries @ candidates).topk(k, dim=1).indices
        found += (gallery_ids[nearest] == ids[:, None]).any(dim=1).sum()
        asked += len(ids)
    return found / asked
    ### END SOLUTION


# %% id="recall_at_k_mended_check" role="test"
check(recall_at_k_mended, like=recall_at_k, on=ten_batches, points=0.25)

# %% id="recall_at_k_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(recall_at_k_mended, against=recall_at_k, on=ten_batches, at_least={"cpu": 3}, points=0.75)
### END HIDDEN TESTS

# %% [markdown]
# ### `predict`
#
# *Easy, 4 minutes.*


# %% id="predict_mended" role="answer"
def predict_mended(weights, batches, classes):
    ### BEGIN SOLUTION
    found, numbers = [], []
    with torch.no_grad():
        for x, theirs in batches:
            for weight in weights[:-1]:
                x = F.relu(x @ weight)
            found.append((x @ weights[-1]).softmax(dim=1))
            numbers.append(theirs)

    probabilities = torch.cat(found)[torch.cat(numbers).argsort()]
    return probabilities, probabilities.amax(dim=1)
    ### END SOLUTION


# %% id="predict_mended_check" role="test"
check(predict_mended, like=predict, on=many_batches, points=0.25)

# %% id="predict_mended_hidden" role="test"
# Hidden test: 0.75 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
race(predict_mended, against=predict, on=many_batches, at_least={"cpu": 1.8}, points=0.75)
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
