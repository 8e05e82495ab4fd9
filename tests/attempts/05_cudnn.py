# %% searches 0765d7dc90
import torch


def searches(calls, step):
    shapes = calls[:, 1:].clone()
    shapes[:, 2:] = (shapes[:, 2:] + step - 1) // step  # equal here exactly where the padded sizes are equal
    # backwards: what stays in the dict for a shape is the switch at its first call
    plans = dict(zip(map(tuple, shapes.flip(0).tolist()), calls[:, 0].flip(0).tolist(), strict=True))
    return sum(plans.values())


# %% group_sums 7893db9bcf
import torch


def group_sums(values, groups, count):
    # whole multiples of 2**-30: at most 2**62 in all, so int64 has room, and whole numbers lose nothing
    whole = (values.double() * 2.0**30).round().long()
    totals = torch.zeros(count, dtype=torch.int64, device=values.device).index_add_(0, groups, whole)
    return totals.double() / 2.0**30


# %% train 26c1178b65
import numpy as np
import torch


def train(pictures, labels, seed, epochs, workers, watch):
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic, cudnn.conv.fp32_precision
    cudnn.benchmark, cudnn.deterministic, cudnn.conv.fp32_precision = False, True, "ieee"
    try:
        return train_repeatably(pictures - pictures.mean(), labels, seed, epochs, watch)
    finally:
        cudnn.benchmark, cudnn.deterministic, cudnn.conv.fp32_precision = before


def train_repeatably(pictures, labels, seed, epochs, watch):
    # generators of its own: nobody else draws from them, and watching does not draw from the first
    plan, watcher = (torch.Generator().manual_seed(seed) for _ in range(2))
    filters = torch.randn(4, 9, generator=plan, dtype=torch.float32) / 3
    layer = torch.randn(144, 10, generator=plan, dtype=torch.float32) / 12
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=plan)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            # what a batch draws depends on the batch, not on the worker that makes it
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random(len(chosen)) < 0.5)
            shown = torch.where(mirrored[:, None, None], pictures[chosen].flip(-1), pictures[chosen])
            shown = shown + torch.from_numpy(noise)
            loss, filters, layer = one_step(shown, labels[chosen], filters, layer)
            found["losses"].append(loss)
            all_shown.append(shown)
            if watch and len(found["losses"]) % watch == 0:
                some = torch.randint(len(pictures), (16,), generator=watcher)
                found["watched"].append(share_known(pictures[some], labels[some], filters, layer))
        found["orders"].append(order)
        found["shown"].append(torch.cat(all_shown))
    return found | {"last": [filters, layer]}


# %% run e376807db0
import random

import numpy as np
import torch


def take_generators():
    name, numbers, *rest = np.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": (name, numbers.tolist(), *rest),
        "torch": torch.get_rng_state(),
    }


def put_generators(state):
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])


def copied(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return value


class Run:
    def __init__(self, seed):
        others = take_generators()
        try:
            self.straight = Straight(seed)
            self.generators = take_generators()
        finally:
            put_generators(others)

    def advance(self, steps):
        others = take_generators()
        put_generators(self.generators)
        try:
            return self.straight.advance(steps)
        finally:
            self.generators = take_generators()
            put_generators(others)

    def state(self):
        run = self.straight
        rest = list(run.batches)  # what is left of this epoch
        run.batches = iter(rest)
        return {
            "model": copied(run.model.state_dict()),
            "optimiser": copied(run.optimiser.state_dict()),
            "schedule": copied(run.schedule.state_dict()),
            "shuffle": run.shuffle.get_state(),
            "rest": [batch.tolist() for batch in rest],
            "generators": dict(self.generators),
        }

    def load(self, state):
        run = self.straight
        run.model.load_state_dict(state["model"])  # copies
        run.optimiser.load_state_dict(copied(state["optimiser"]))  # would keep the tensors themselves
        run.schedule.load_state_dict(copied(state["schedule"]))
        run.shuffle.set_state(state["shuffle"])
        run.batches = iter([torch.tensor(batch) for batch in state["rest"]])
        self.generators = dict(state["generators"])
