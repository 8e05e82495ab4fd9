# %% [markdown]
# # Project after 14: evaluating a recommender
#
# One piece of code, as it stands in a real repository: it asks a recommender for the best items of each user, and reports
# how good they are, for each group of users. It is right, and slow in more than one place. Nobody names them.
#
# Make it as fast as you can, and keep a journal. What the journal is for, and why there are two dates, stands on [the page of
# the first project](../../course/project_04.ipynb). All points for speed are for two thirds of what the course's own answer reached.
#
# Nothing here needs a GPU; it is raced on the CPU, with one thread. The causes are those of chapters 00 to 14.
# 30 points, about 230 minutes.

# %% id="setup" role="given"
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from autograder import check, race

# Users are squares of pictures, items are colours: 16 levels each of red, green and blue.
LEVELS = 16
FILES = sorted(Path("../../data/images").glob("*/*.*"))
KINDS = sorted({file.parent.name for file in FILES})
PICTURES = [torch.from_numpy(np.array(Image.open(file).convert("RGB"))).long() for file in FILES]
# int64, (height, width): the number of each pixel's colour
CODES = [(picture * LEVELS // 256) @ torch.tensor([LEVELS**2, LEVELS, 1]) for picture in PICTURES]

# %% [markdown]
# ## The code
#
# A square of a picture has seen the colours of its left half. Which others are in its right half? A colour that is near
# to many seen ones is a good guess; the kind of picture (cat, cup, space, texture) is the user's group.
#
# `evaluation(users, items, layers, seen, held_out, groups, k)` lists the best items of each user, and reports on them.
#
# - `users`: `int8` tensor of shape `(U, D)`; `items`: `int8`, `(I, D)`: factors from −8 to 7. `layers`: `int8`, `(G, D, D)`, with −1,
#   0 and 1: the factors of a user go through the layer of her group. The score of an item is the product of both. *D* is 32
#   at most, *I* at most 10,000.
# - `seen` and `held_out`: `int64` tensors of shape `(N, 2)`, `(M, 2)`: pairs of user and item, in any order, none
#   twice, none in both. `groups`: `int64`, `(U,)`, the group of each user. `k`: how long a list is, 1 or more.
# - returns: `(lists, report)`. `lists`: `int64`, `(U, k)`: of each user, the items with the highest scores, the highest first,
#   without those seen. Of equal scores, the smaller number comes first. Where no item is left, the row ends with −1.
# - `report`: dict of `float32` tensors. `"hit rate"` and `"NDCG"`, `(G, k)`: for lists of 1, 2, … *k* items, the means over those
#   users of the group who have held-out items. `"novelty"` and `"variety"`, `(G,)`: means over all users of the group.
#   `"coverage"`, `(G,)`: the share of all items that is in some list of the group. The mean over no user is NaN.
# - *U*, *N*, *M* may be 0. A user may have no held-out item, may have seen none, or all; a group may have no user.


# %% id="evaluation_given" role="given"
class Recommender(nn.Module):
    """Scores of all items for one user, whose factors go through the layer of her group."""

    def __init__(self, items, layers):
        super().__init__()
        self.items = items
        self.layers = nn.ModuleList()
        for weight in layers.double():
            layer = nn.Linear(*weight.shape, bias=False)
            layer.weight = nn.Parameter(weight)
            self.layers.append(layer)

    def forward(self, user, group):
        factors = torch.zeros(len(user), dtype=torch.float64)
        for number, layer in enumerate(self.layers):
            factors = factors + layer(user.double()) * (number == group)
        return (self.items.double() * factors).sum(dim=1)


class Evaluation:
    """Lists for all users, and what they are worth."""

    def __init__(self, users, items, layers, seen, held_out, groups, k):
        self.model = Recommender(items, layers)
        self.users = users
        self.items = items
        self.seen = seen
        self.held_out = held_out
        self.groups = groups
        self.number_of_groups = len(layers)
        self.k = k

    def items_of(self, user, pairs):
        return pairs[pairs[:, 0] == user, 1]

    def best(self, user):
        """The best items that the user has not seen, k or fewer."""
        scores = self.model(self.users[user], self.groups[user])
        numbers = torch.arange(len(scores))
        seen = self.items_of(user, self.seen)
        for item in seen:
            scores = torch.where(numbers == item, -math.inf, scores)
        order = scores.argsort(descending=True, stable=True)
        return order[: min(self.k, len(scores) - len(seen))]

    def hits(self, best, wanted):
        """1.0 for each rank whose item was held out, else 0.0."""
        found = [float((wanted == item).any()) for item in best]
        return found + [0.0] * (self.k - len(found))

    def ndcg(self, hits, wanted, length):
        """The gain of a list of this length, as a share of the largest possible one."""
        gain = sum(hits[rank] / math.log2(rank + 2) for rank in range(length))
        most = sum(1 / math.log2(rank + 2) for rank in range(min(length, wanted)))
        return gain / most

    def times(self, item, group):
        """How many users of the group have seen the item."""
        pairs = self.seen[self.groups[self.seen[:, 0]] == group]
        return (pairs[:, 1] == item).sum().item()

    def novelty(self, best, group):
        """The mean surprise in bits, 0 of no items. An item that half of the group has seen has 1 bit; one that nobody
        has seen counts as if one had.
        """
        members = (self.groups == group).sum().item()
        bits = [math.log2(members / max(self.times(item, group), 1)) for item in best]
        return sum(bits) / max(len(bits), 1)

    def variety(self, best):
        """Mean squared distance between the factors of two items of the list; 0 if there are no two."""
        factors = self.items[best].double()
        apart = [(factors[:rank] - factors[rank]).square().sum(dim=1) for rank in range(1, len(best))]
        return torch.cat(apart).mean().item() if apart else 0.0

    def run(self):
        lists = torch.empty(0, self.k, dtype=torch.int64)
        covered = [torch.empty(0, dtype=torch.int64) for _ in range(self.number_of_groups)]
        rows = []
        for user in range(len(self.users)):
            best = self.best(user)
            lists = torch.cat([lists, F.pad(best, (0, self.k - len(best)), value=-1)[None]])
            group = self.groups[user].item()
            covered[group] = torch.cat([covered[group], best]).unique()
            wanted = self.items_of(user, self.held_out)
            hits = self.hits(best, wanted)
            lengths = range(1, self.k + 1)
            row = {"group": group, "novelty": self.novelty(best, group), "variety": self.variety(best)}
            if len(wanted):
                row["hit rate"] = [max(hits[:length]) for length in lengths]
                row["NDCG"] = [self.ndcg(hits, len(wanted), length) for length in lengths]
            rows.append(row)
        return lists, self.report(rows, covered)

    def report(self, rows, covered):
        shapes = {"hit rate": (0, self.k), "NDCG": (0, self.k), "novelty": 0, "variety": 0}
        found = {"coverage": torch.tensor([len(items) / len(self.items) for items in covered])}
        for name, shape in shapes.items():
            means = []
            for group in range(self.number_of_groups):
                own = [row[name] for row in rows if row["group"] == group and name in row]
                means.append((torch.tensor(own) if own else torch.empty(shape)).mean(dim=0))
            found[name] = torch.stack(means)
        return found


def evaluation_slow(users, items, layers, seen, held_out, groups, k):
    """The lists of all users, and the report for each group."""
    return Evaluation(users, items, layers, seen, held_out, groups, k).run()


# %% id="evaluation_inputs" role="given" jupyter={"source_hidden": true}
def palettes(number, side, generator):
    """Other squares of the pictures, each time: colours of the left halves, new ones of the right halves, kinds."""
    which = torch.randint(len(CODES), (number,), generator=generator)
    squares = torch.empty(number, side, side, dtype=torch.int64)
    for square, picture in zip(squares, which.tolist(), strict=True):
        room = torch.tensor(CODES[picture].shape) - side + 1
        top, left = (torch.rand(2, generator=generator) * room).long().tolist()
        square.copy_(CODES[picture][top : top + side, left : left + side])
    halves = [half.flatten(1) for half in squares.split([side // 2, side - side // 2], dim=2)]
    left, right = (torch.zeros(number, LEVELS**3, dtype=torch.bool).scatter(1, half, True) for half in halves)
    kinds = torch.tensor([KINDS.index(file.parent.name) for file in FILES])
    return left, right & ~left, kinds[which]


def shuffled(table, generator):
    pairs = table.nonzero()
    return pairs[torch.randperm(len(pairs), generator=generator)]


def factors_of(seen, generator):
    """Of colours: waves over red, green and blue; of squares: the mean of what they have seen."""
    colours = torch.cartesian_prod(*[torch.linspace(0, 1, LEVELS)] * 3)
    turns = colours @ torch.randn(3, 24, generator=generator) * 6 + torch.rand(24, generator=generator) * 7
    items = (turns.cos() * 3).round()
    users = (seen.float() @ items / seen.sum(dim=1, keepdim=True).clamp(min=1) * 2).round()
    layers = torch.eye(24) + (torch.rand(len(KINDS), 24, 24, generator=generator) < 0.02).float()
    return users.char(), items.char(), layers.clamp(max=1).char()


def squares_and_colours(generator, device):
    seen, held_out, groups = palettes(160, 24, generator)
    pairs = [shuffled(table, generator) for table in (seen, held_out)]
    return *factors_of(seen, generator), *pairs, groups, 20


# %% [markdown]
# ## Your journal
#
# *Easy, 20 minutes.* Write `foretold()`, before you mend anything. It returns what you think is the largest part, and two
# gains, such as `{"largest part": "…", "first": 1.5, "all": 10}`: how many times as fast the code will be without the waste of
# that part, and after all that you mean to do. A number gives its points if the grader measures your version within 1.5 times
# of `"first"`, and within 2 times of `"all"`.
#
# <details><summary>Hint 1</summary>Leave one part out, or let it return what costs nothing, and measure the whole.</details>
# <details><summary>Hint 2</summary>Count what happens for each user, for each item of a list, for each colour that was seen.</details>


# %% id="foretold" role="answer"
def foretold():
    ### BEGIN SOLUTION
    return {"largest part": "times: all pairs, for each item of each list", "first": 1.8, "all": 90}
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
# *Medium, 60 minutes.* Write `evaluation_first`: the same code, with the waste of **one** part gone, the one that you named: a
# method, or several with one cause. It must be 1.4 times as fast or more. (A subclass
# of `Evaluation` with one method mended is enough.)


# %% id="evaluation_first" role="answer"
def evaluation_first(users, items, layers, seen, held_out, groups, k):
    ### BEGIN SOLUTION
    class Mended(Evaluation):
        def __init__(self, *inputs):
            super().__init__(*inputs)
            counts = torch.zeros(self.number_of_groups, len(self.items), dtype=torch.int64)
            self.counts = counts.index_put_(
                (self.groups[self.seen[:, 0]], self.seen[:, 1]), torch.tensor(1), True
            )

        def times(self, item, group):
            return self.counts[group, item].item()

    return Mended(users, items, layers, seen, held_out, groups, k).run()
    ### END SOLUTION


# %% id="evaluation_first_check" role="test"
check(evaluation_first, like=evaluation_slow, on=squares_and_colours, points=2)

# %% id="evaluation_first_race" role="test"
race(evaluation_first, against=evaluation_slow, on=squares_and_colours, at_least={"cpu": 1.4}, points=3)

# %% id="foretold_first" role="test" points=2
# Hidden test: what you foretold of it, when your notebook is graded.
### BEGIN HIDDEN TESTS
from autograder.judging.race import as_foretold

2 * as_foretold(foretold()["first"], evaluation_slow, within=1.5)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. All that you can
#
# *Hard, 150 minutes.* Write `evaluation`: the same lists and the same report, as fast as you can make them.
#
# The last race gives all of its points for the ratio that it asks for (`at_least`), and below it they grow with the
# logarithm of what you reach. Three tests are hidden, with 7 of the 30 points: cases at the edge, and what you foretold.
# Numbers of type `float32` may differ by a ten-thousandth of their size.


# %% id="evaluation" role="answer"
def evaluation(users, items, layers, seen, held_out, groups, k):
    ### BEGIN SOLUTION
    number, count, kinds = len(users), len(items), len(layers)
    factors = items.float()
    through = torch.empty(users.shape)
    for kind, layer in enumerate(layers.float()):
        own = (groups == kind).nonzero()[:, 0]
        through[own] = users[own].float() @ layer.T

    # All are whole numbers, so one key holds score and place: of equal scores, the smaller place has the larger key.
    keys = (through @ factors.T).int().mul_(count).sub_(torch.arange(count, dtype=torch.int32))
    nothing = torch.iinfo(torch.int32).min
    keys[seen[:, 0], seen[:, 1]] = nothing
    highest, lists = keys.topk(min(k, count), dim=1)
    there = highest > nothing
    lists = F.pad(torch.where(there, lists, -1), (0, k - there.shape[1]), value=-1)
    there = lists >= 0
    places = torch.where(there, lists, count)  # one item more, for the places where none is

    wanted = torch.zeros(number, count + 1, dtype=torch.bool)
    wanted[held_out[:, 0], held_out[:, 1]] = True
    hits = wanted.gather(1, places)
    known = torch.bincount(held_out[:, 0], minlength=number)
    shares = 1 / torch.arange(2, k + 2).log2()
    most = shares.cumsum(0)[torch.minimum(torch.arange(k), known[:, None] - 1)]
    ndcg = (hits * shares).cumsum(1) / most

    cells = groups[seen[:, 0]] * (count + 1) + seen[:, 1]
    times = torch.bincount(cells, minlength=kinds * (count + 1)).clamp(min=1)
    surprise = torch.bincount(groups, minlength=kinds).log2()[:, None] - times.view(kinds, -1).log2()
    lengths = there.sum(1)
    bits = (surprise[groups[:, None], places] * there).sum(1) / lengths.clamp(min=1)
    own = F.pad(factors, (0, 0, 0, 1))[places]
    apart = lengths * own.square().sum((1, 2)) - own.sum(1).square().sum(1)
    variety = apart / (lengths * (lengths - 1) / 2).clamp(min=1)

    covered = torch.zeros(kinds, count + 1, dtype=torch.bool)
    covered[groups[:, None], places] = True

    def means(values, of):
        members = groups[of]
        sums = torch.zeros(kinds, *values.shape[1:]).index_add_(0, members, values[of])
        return sums / torch.bincount(members, minlength=kinds).view(-1, *[1] * (values.ndim - 1))

    everybody, asked = torch.arange(number), known.nonzero()[:, 0]
    return lists, {
        "hit rate": means((hits.cumsum(1) > 0).float(), asked),
        "NDCG": means(ndcg, asked),
        "novelty": means(bits, everybody),
        "variety": means(variety, everybody),
        "coverage": covered[:, :count].float().mean(1),
    }
    ### END SOLUTION


# %% id="evaluation_check" role="test"
check(evaluation, like=evaluation_slow, on=squares_and_colours, points=4)


# %% id="evaluation_hidden" role="test"
# Hidden test: other sizes and numbers, when your notebook is graded.
### BEGIN HIDDEN TESTS
def made_up(users, items, kinds, k, generator):
    """No palettes: each pair is seen, held out, or neither; the first user has seen all, the second has none held out."""
    table = torch.rand(users, items, generator=generator)
    table[:1] = 0
    table[1:2].clamp_(min=0.5)
    pairs = [shuffled(part, generator) for part in (table < 0.3, (table > 0.3) & (table < 0.5))]
    factors = [torch.randint(-8, 8, (rows, 5), generator=generator).char() for rows in (users, items)]
    layers = torch.randint(-1, 2, (kinds, 5, 5), generator=generator).char()
    return *factors, layers, *pairs, torch.randint(kinds, (users,), generator=generator), k


def few_items(generator, device):
    return made_up(9, 7, 2, 10, generator)


def a_group_of_nobody(generator, device):
    return made_up(5, 40, 9, 3, generator)


def all_scores_equal(generator, device):
    users, *others = made_up(6, 30, 2, 4, generator)
    return torch.zeros_like(users), *others


def largest_scores(generator, device):
    items, users = torch.full((9000, 32), -8).char(), torch.full((2, 32), 7).char()
    pairs = torch.tensor([[1, 4], [0, 2]])
    return users, items, torch.ones(1, 32, 32).char(), pairs[:1], pairs[1:], torch.tensor([0, 0]), 15


def nobody(generator, device):
    return made_up(0, 8, 3, 2, generator)


check(
    evaluation,
    like=evaluation_slow,
    on=[few_items, a_group_of_nobody, all_scores_equal, largest_scores, nobody],
    points=3,
)
### END HIDDEN TESTS

# %% id="evaluation_race" role="test"
race(evaluation, against=evaluation_slow, on=squares_and_colours, at_least={"cpu": 60}, points=13)

# %% id="foretold_all" role="test" points=2
# Hidden test: what you foretold of it, when your notebook is graded.
### BEGIN HIDDEN TESTS
2 * as_foretold(foretold()["all"], evaluation_slow, within=2)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
