# %% [markdown]
# # Project after 04: from a folder to batches
#
# One piece of code, as it stands in a real repository: it takes pictures as a folder gave them, and makes an epoch of
# batches, with features beside each picture. It is right, and it is slow in more than one place. Nobody names them.
#
# **How it works.** Make it as fast as you can. Points for speed grow with the logarithm of what you reach: from none for
# the given version to all for two thirds of what the course's own answer reached. So doubling the speed counts as
# much at the end as at the beginning.
#
# You also keep a journal: you say what your first change will bring before you make it, and what all of them will. The grader
# measures both of your versions, and compares.
#
# **Two times.** After the first date, your instructor may show the three fastest answers whose authors agree (a line
# `# you may show this` in the cell says so), without names. Until the second date you may hand in again.
#
# Nothing here needs a GPU; it is raced on the CPU, with one thread. The causes are those of chapters 00 to 04. What a
# project is, says [its page](../../course/project_04.ipynb). 30 points, about 230 minutes.

# %% id="setup" role="given"
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import Dataset

from autograder import check, race

FILES = sorted(Path("../../data/images").glob("*/*.*"))
CLASSES = sorted({file.parent.name for file in FILES})
PICTURES = [
    np.asarray(Image.open(file)) for file in FILES
]  # uint8, (height, width, 3), or (height, width) where grey
LABELS = [CLASSES.index(file.parent.name) for file in FILES]

# %% [markdown]
# ## The code
#
# `epoch(pictures, labels, draws, side, batch_size)` gives the batches of an epoch.
#
# - `pictures`: list of NumPy arrays of uint8, `(H, W, 3)`, or `(H, W)` where a picture is grey; each of its own size.
#   `labels`: list of integers. `draws`: `int64` tensor of shape `(N, 4)`: which picture, top and left of the square
#   that is cut out, and 1 where it is mirrored. The square lies within the 96 × 96 pixels that each picture
#   becomes, and its side is 8 or more. A picture may be drawn often, or not at all; *N* may be 0.
# - returns: list of tuples `(images, features, targets)`: `float32` of shape `(B, 3, side, side)`, `float32` of shape
#   `(B, 60)`, `int64` of shape `(B,)`. The last batch may be smaller.


# %% id="epoch_given" role="given"
class Pictures(Dataset):
    """Squares of pictures, each with features and its class."""

    resized = 96

    def __init__(self, pictures, labels, draws, side):
        self.pictures = pictures
        self.labels = labels
        self.draws = draws
        self.side = side

    def __len__(self):
        return len(self.draws)

    def in_colour(self, picture):
        if picture.ndim == 2:
            picture = np.stack([picture, picture, picture], axis=2)
        return picture / 255

    def statistics(self):
        """Mean and standard deviation of each colour, over all pixels of all pictures."""
        pixels = np.empty((0, 3))
        for picture in self.pictures:
            pixels = np.concatenate([pixels, self.in_colour(picture).reshape(-1, 3)])
        return torch.from_numpy(pixels.mean(axis=0)), torch.from_numpy(pixels.std(axis=0))

    def standardised(self, number, mean, std):
        image = torch.from_numpy(self.in_colour(self.pictures[number])).permute(2, 0, 1)
        image = (image - mean[:, None, None]) / std[:, None, None]
        size = (self.resized, self.resized)
        return F.interpolate(image[None], size=size, mode="bilinear", align_corners=False)[0]

    def colours(self, image):
        """How much of each colour is how bright: 16 levels, each pixel shared by the two next to it."""
        found = []
        levels = torch.linspace(-3, 3, 16, dtype=image.dtype)
        for channel in image:
            for level in levels:
                near = 1 - (channel.clamp(-3, 3) - level).abs() / 0.4
                found.append(near.clamp(min=0).mean().item())
        return found

    def edges(self, image):
        """How much neighbours differ, in both directions."""
        found = []
        for turned in (image, image.transpose(1, 2)):
            for channel in turned:
                rows = [(channel[i + 1] - channel[i]).abs().mean() for i in range(self.side - 1)]
                found.append(float(sum(rows) / len(rows)))
        return found

    def contrast(self, image):
        """Mean and largest standard deviation of tiles of 8 by 8 pixels."""
        found = []
        for channel in image:
            tiles = []
            for top in range(0, self.side - 7, 8):
                for left in range(0, self.side - 7, 8):
                    tiles.append(channel[top : top + 8, left : left + 8].std(correction=0))
            found += [torch.stack(tiles).mean().item(), torch.stack(tiles).max().item()]
        return found

    def __getitem__(self, index):
        number, top, left, mirrored = self.draws[index].tolist()
        mean, std = self.mean_and_std
        image = self.standardised(number, mean, std)
        image = image[:, top : top + self.side, left : left + self.side]
        if mirrored:
            image = image.flip(2)
        features = self.colours(image) + self.edges(image) + self.contrast(image)
        return image.float(), features, self.labels[number]


def epoch_slow(pictures, labels, draws, side, batch_size):
    """All batches of an epoch, in the order of the draws."""
    data = Pictures(pictures, labels, draws, side)
    batches = []
    for start in range(0, len(data), batch_size):
        data.mean_and_std = data.statistics()
        samples = [data[index] for index in range(start, min(start + batch_size, len(data)))]
        images = torch.stack([image for image, _, _ in samples])
        features = torch.tensor([features for _, features, _ in samples])
        targets = torch.tensor([label for _, _, label in samples])
        batches.append((images, features, targets))
    return batches


# %% id="epoch_inputs" role="given" jupyter={"source_hidden": true}
def parts_of_pictures(generator, smallest, largest):
    """Other parts of the same pictures, each time: a different folder for each call."""
    found = []
    for picture in PICTURES:
        height, width = torch.randint(smallest, largest + 1, (2,), generator=generator).tolist()
        top = int(torch.randint(picture.shape[0] - height + 1, (), generator=generator))
        left = int(torch.randint(picture.shape[1] - width + 1, (), generator=generator))
        found.append(picture[top : top + height, left : left + width].copy())
    return found


def draws_of(number, pictures, side, generator):
    which = torch.randint(pictures, (number,), generator=generator)
    corners = torch.randint(96 - side + 1, (2, number), generator=generator)
    return torch.stack([which, *corners, torch.randint(2, (number,), generator=generator)], dim=1)


def an_epoch(generator, device):
    pictures = parts_of_pictures(generator, 120, 180)
    return pictures, LABELS, draws_of(24, len(pictures), 64, generator), 64, 8


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
# <details><summary>Hint 1</summary>Leave one part out, and measure the whole: the clinic shows how.</details>
# <details><summary>Hint 2</summary>Count how often each part runs in an epoch, and how often it would have to.</details>


# %% id="foretold" role="answer"
def foretold():
    ### BEGIN SOLUTION
    return {"largest part": "edges: a row at a time", "first": 1.8, "all": 20}
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
# *Medium, 60 minutes.* Write `epoch_first`: the same code, with the waste of **one** part gone, the one that you named: a
# method, or several with one cause. It must be 1.4 times as fast or more. (A subclass
# of `Pictures` with one method mended is enough.)


# %% id="epoch_first" role="answer"
def epoch_first(pictures, labels, draws, side, batch_size):
    ### BEGIN SOLUTION
    class Mended(Pictures):
        def edges(self, image):
            down, right = (image.diff(dim=dim).abs().mean(dim=(1, 2)).tolist() for dim in (1, 2))
            return down + right

    data = Mended(pictures, labels, draws, side)
    batches = []
    for start in range(0, len(data), batch_size):
        data.mean_and_std = data.statistics()
        samples = [data[index] for index in range(start, min(start + batch_size, len(data)))]
        images, features, targets = zip(*samples, strict=True)
        batches.append((torch.stack(images), torch.tensor(features), torch.tensor(targets)))
    return batches
    ### END SOLUTION


# %% id="epoch_first_check" role="test"
check(epoch_first, like=epoch_slow, on=an_epoch, points=2)

# %% id="epoch_first_race" role="test"
race(epoch_first, against=epoch_slow, on=an_epoch, at_least={"cpu": 1.4}, points=3)

# %% id="foretold_first" role="test" points=2
# Hidden test: what you foretold of it, when your notebook is graded.
### BEGIN HIDDEN TESTS
from autograder.judging.race import as_foretold

2 * as_foretold(foretold()["first"], epoch_slow, within=1.5)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. All that you can
#
# *Hard, 150 minutes.* Write `epoch`: the same batches, as fast as you can make them.
#
# The last race gives all of its points for the ratio that it asks for (`at_least`), and below it they grow with the
# logarithm of what you reach. Three tests are hidden, with 7 of the 30 points: cases at the edge, and what you foretold.
# Numbers of type `float32` may differ by a ten-thousandth of their size.


# %% id="epoch" role="answer"
def epoch(pictures, labels, draws, side, batch_size):
    ### BEGIN SOLUTION
    if not len(draws):
        return []
    small = torch.empty(len(pictures), 3, 96, 96)
    sums, squares, pixels = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), 0
    levels = torch.arange(256, dtype=torch.float64)
    drawn = set(draws[:, 0].tolist())
    for number, picture in enumerate(pictures):
        counts = [
            np.bincount(channel.ravel(), minlength=256)
            for channel in np.atleast_3d(picture).transpose(2, 0, 1)
        ]
        counts = torch.from_numpy(np.stack(counts)).double()
        sums += counts @ levels
        squares += counts @ levels.square()
        pixels += picture.shape[0] * picture.shape[1]
        if number in drawn:
            image = torch.from_numpy(np.ascontiguousarray(np.atleast_3d(picture).transpose(2, 0, 1)))
            small[number] = F.interpolate(
                image[None].float(), size=(96, 96), mode="bilinear", align_corners=False
            )[0]
    mean = sums / pixels
    std = (squares / pixels - mean.square()).sqrt()
    small = (small - mean.float()[:, None, None]) / std.float()[:, None, None]

    images = torch.empty(len(draws), 3, side, side)
    mirrored = small.flip(3)
    for row, (number, top, left, turned) in enumerate(draws.tolist()):
        source, left = (mirrored, 96 - side - left) if turned else (small, left)
        images[row] = source[number, :, top : top + side, left : left + side]

    place = (images.flatten(2).clamp(-3, 3) + 3) / 0.4
    below = place.floor().clamp_(max=14)
    share = place - below
    index = below.long() + 16 * torch.arange(3 * len(draws)).view(-1, 3, 1)
    number_of = 48 * len(draws)
    colours = torch.bincount(index.flatten(), (1 - share).flatten(), number_of + 1)
    colours[1:] += torch.bincount(index.flatten(), share.flatten(), number_of + 1)[:-1]
    colours = colours[:number_of].view(len(draws), 48) / side**2

    edges = [images.diff(dim=dim).abs().mean(dim=(2, 3)) for dim in (2, 3)]
    whole = side // 8 * 8
    tiles = images[:, :, :whole, :whole].unflatten(2, (-1, 8)).unflatten(4, (-1, 8))
    spread = tiles.std(dim=(3, 5), correction=0).flatten(2)
    contrast = torch.stack([spread.mean(dim=2), spread.amax(dim=2)], dim=2).flatten(1)
    features = torch.cat([colours, *edges, contrast], dim=1)
    targets = torch.tensor(labels)[draws[:, 0]]
    return list(
        zip(images.split(batch_size), features.split(batch_size), targets.split(batch_size), strict=True)
    )
    ### END SOLUTION


# %% id="epoch_check" role="test"
check(epoch, like=epoch_slow, on=an_epoch, points=4)


# %% id="epoch_hidden" role="test"
# Hidden test: other sizes and numbers, when your notebook is graded.
### BEGIN HIDDEN TESTS
def a_few(generator, device):
    pictures = parts_of_pictures(generator, 60, 100)
    return pictures, LABELS, draws_of(7, len(pictures), 33, generator), 33, 3


def the_whole_side(generator, device):
    pictures = parts_of_pictures(generator, 80, 120)[7:]
    return pictures, [2, 0, 1], draws_of(4, 3, 96, generator), 96, 8


def nothing_drawn(generator, device):
    return parts_of_pictures(generator, 60, 100), LABELS, torch.zeros(0, 4, dtype=torch.int64), 64, 16


check(epoch, like=epoch_slow, on=[a_few, the_whole_side, nothing_drawn], points=3)
### END HIDDEN TESTS

# %% id="epoch_race" role="test"
race(epoch, against=epoch_slow, on=an_epoch, at_least={"cpu": 12}, points=13)

# %% id="foretold_all" role="test" points=2
# Hidden test: what you foretold of it, when your notebook is graded.
### BEGIN HIDDEN TESTS
2 * as_foretold(foretold()["all"], epoch_slow, within=2)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
