# %% searches right_slow check=1 hidden=2 race=0
def searches(calls, step):
    found, plans = 0, []
    for switch, *shape in calls.tolist():
        shape[2:] = [-(-size // step) for size in shape[2:]]
        if shape not in plans:
            plans.append(shape)
            found += switch
    return found


# %% searches transcribed check=0 hidden=0 race=0
def searches(calls, step):
    chosen = {}
    for switch, *shape in calls.tolist():
        shape[2:] = [-(-size // step) * step for size in shape[2:]]
        key = tuple(shape)
        if switch and key not in chosen:
            chosen[key] = True
    return len(chosen)


# %% searches wrong_fast check=0 hidden=0 race=0
def searches(calls, step):
    calls = calls[calls[:, 0] == 1]
    return len(set(map(tuple, (-(-calls[:, 3:] // step)).tolist())))


# %% searches wrong_without_calls check=0 hidden=0 race=0
def searches(calls, step):
    padded = torch.cat([calls[:, 1:3], (calls[:, 3:] + step - 1) // step], dim=1)
    weights = torch.tensor([1000**3, 1000**2, 1000, 1])
    _, inverse = torch.unique((padded * weights).sum(1), return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(calls)).scatter_reduce(
        0, inverse, torch.arange(len(calls)), "amin"
    )
    return int(calls[first, 0].sum())


# %% searches right_with_sets check=1 hidden=2 race=3
def searches(calls, step):
    found, plans = 0, set()
    for switch, batch, channels, height, width in calls.tolist():
        key = batch, channels, -(-height // step), -(-width // step)
        if key not in plans:
            plans.add(key)
            found += switch
    return found


# %% searches right_with_numbers check=1 hidden=2 race=3
def searches(calls, step):
    padded = torch.cat([calls[:, 1:3], (calls[:, 3:] + step - 1) // step], dim=1)
    numbers = (padded * torch.tensor([1000**3, 1000**2, 1000, 1])).sum(1)
    first = dict(zip(numbers.flip(0).tolist(), calls[:, 0].flip(0).tolist(), strict=True))
    return sum(first.values())


# %% group_sums right_slow check=1 hidden=2 race=0
def group_sums(values, groups, count):
    return group_sums_slow(values, groups, count)


# %% group_sums transcribed check=0 hidden=0 race=0
def group_sums(values, groups, count):
    totals = torch.zeros(count, dtype=torch.float64, device=values.device)
    return totals.index_add_(0, groups, values.double())


# %% group_sums wrong_fast check=0 hidden=0 race=0
def group_sums(values, groups, count):
    multiples = (values.double() * 2**30).round()
    totals = torch.zeros(count, dtype=torch.float64, device=values.device)
    return totals.index_add_(0, groups, multiples) / 2**30


# %% group_sums wrong_cut_off check=0 hidden=0 race=0
def group_sums(values, groups, count):
    totals = torch.zeros(count, dtype=torch.int64, device=values.device)
    return totals.index_add_(0, groups, (values * 2**30).long()).double() / 2**30


# %% group_sums right_another_way check=1 hidden=2 race=2.5..3
def group_sums(values, groups, count):
    multiples = torch.round(values.double() * 2**30).to(torch.int64)
    totals = torch.zeros(count, dtype=torch.int64, device=values.device)
    totals.scatter_add_(0, groups, multiples)
    return totals.to(torch.float64) * 2.0**-30


# %% train wrong_careless repeats=0 workers=0 watched=0 described=0 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    return train_careless(pictures, labels, seed, epochs, workers, watch)


# %% train transcribed repeats=1 workers=0 watched=1 described=0 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    generator = torch.Generator().manual_seed(seed)
    pictures = pictures - pictures.mean()
    filters, layer = torch.randn(4, 9) / 3, torch.randn(144, 10) / 12
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for _ in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        base = int(torch.randint(2**31, (), generator=generator))
        draws = [np.random.default_rng(base + worker) for worker in range(workers)]
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            noise = 0.1 * draws[number % workers].random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.tensor([random.random() < 0.5 for _ in chosen])
            shown = torch.where(mirrored[:, None, None], pictures[chosen].flip(-1), pictures[chosen])
            shown = shown + torch.from_numpy(noise)
            loss, filters, layer = one_step(shown, labels[chosen], filters, layer)
            found["losses"].append(loss)
            all_shown.append(shown)
            if watch and len(found["losses"]) % watch == 0:
                some = torch.randint(len(pictures), (16,))
                found["watched"].append(share_known(pictures[some], labels[some], filters, layer))
        found["orders"].append(order)
        found["shown"].append(torch.cat(all_shown))
    return found | {"last": [filters, layer]}


# %% train wrong_benchmark repeats=0 workers=0 watched=0 described=0..2 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train wrong_not_deterministic repeats=0 workers=0 watched=0 described=0..2 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train wrong_in_tf32 repeats=1 workers=1 watched=1 described=0 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train wrong_watching repeats=1 workers=1 watched=0 described=2 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator = watcher = torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train nothing_looked_at repeats=1 workers=1 watched=0 described=2 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator = torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
            shown = shown + torch.from_numpy(noise)
            loss, filters, layer = one_step(shown, labels[chosen], filters, layer)
            found["losses"].append(loss)
            all_shown.append(shown)
            if watch and len(found["losses"]) % watch == 0:
                found["watched"].append(0.0)
        found["orders"].append(order)
        found["shown"].append(torch.cat(all_shown))
    return found | {"last": [filters, layer]}


# %% train wrong_python repeats=0 workers=0 watched=0 described=2 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.tensor([random.random() < 0.5 for _ in chosen])[:, None, None]
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train wrong_by_worker repeats=1 workers=0 watched=1 described=2 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number, number % workers))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train wrong_same_each_epoch repeats=1 workers=1 watched=1 described=0 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for _ in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train wrong_same_for_all_seeds repeats=1 workers=1 watched=1 described=0 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train wrong_in_place repeats=0 workers=0 watched=0 described=2 hidden=0
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures -= pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train right_by_batches repeats=1 workers=1 watched=1 described=2 hidden=3
def train(pictures, labels, seed, epochs, workers, watch):
    generator, watcher = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    pictures = pictures - pictures.mean()
    filters, layer = (
        torch.randn(4, 9, generator=generator) / 3,
        torch.randn(144, 10, generator=generator) / 12,
    )
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    for epoch in range(epochs):
        order = torch.randperm(len(pictures), generator=generator)
        all_shown = []
        for number, chosen in enumerate(order.split(16)):
            draws = np.random.default_rng((seed, epoch, number))
            noise = 0.1 * draws.random((len(chosen), 8, 8), dtype=np.float32)
            mirrored = torch.from_numpy(draws.random((len(chosen), 1, 1)) < 0.5)
            shown = torch.where(mirrored, pictures[chosen].flip(-1), pictures[chosen])
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


# %% train right_in_worker_order repeats=1 workers=1 watched=1 described=2 hidden=3
def train(pictures, labels, seed, epochs, workers, watch):
    draws, order_of, watching = (random.Random(f"{seed} {part}") for part in ("shown", "order", "watch"))
    weights = torch.Generator().manual_seed(seed)
    pictures = pictures - pictures.mean()
    filters, layer = torch.randn(4, 9, generator=weights) / 3, torch.randn(144, 10, generator=weights) / 12
    found = {"first": [filters, layer], "orders": [], "shown": [], "losses": [], "watched": []}
    flags = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
    with flags:
        for _ in range(epochs):
            order = torch.tensor(order_of.sample(range(len(pictures)), len(pictures)))
            all_shown = []
            for chosen in order.split(16):
                shown = []
                for picture in pictures[chosen]:
                    noise = torch.tensor([0.1 * draws.random() for _ in range(64)]).view(8, 8)
                    shown.append((picture.flip(1) if draws.random() < 0.5 else picture) + noise)
                all_shown.append(torch.stack(shown))
                loss, filters, layer = one_step(all_shown[-1], labels[chosen], filters, layer)
                found["losses"].append(loss)
                if watch and len(found["losses"]) % watch == 0:
                    some = torch.tensor([watching.randrange(len(pictures)) for _ in range(16)])
                    known = share_known(pictures[some], labels[some], filters, layer)
                    found["watched"].append(known)
            found["orders"].append(order)
            found["shown"].append(torch.cat(all_shown))
    return found | {"last": [filters, layer]}


# %% run right_but_repeats_steps check=2 turns=2 counted=0 hidden=0
class Run:
    def __init__(self, seed):
        self.seed, self.steps = seed, 0

    def advance(self, steps):
        self.steps += steps
        return Straight(self.seed).advance(self.steps)[self.steps - steps :]

    def state(self):
        return {"seed": self.seed, "steps": self.steps}

    def load(self, state):
        self.seed, self.steps = state["seed"], state["steps"]


# %% run transcribed check=0 turns=0 counted=0 hidden=0
class Run(Straight):
    def state(self):
        version, keys, *rest = np.random.get_state()
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "Python": random.getstate(),
            "NumPy": (version, keys.tolist(), *rest),
            "torch": torch.get_rng_state(),
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.shuffle.set_state(state["shuffle"])
        random.setstate(state["Python"])
        np.random.set_state(state["NumPy"])
        torch.set_rng_state(state["torch"])


# %% run wrong_alone_only check=2 turns=0 counted=2 hidden=0
class Run(Straight):
    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = np.random.get_state()
        parts = [part.state_dict() for part in (self.model, self.optimiser, self.schedule)]
        generators = random.getstate(), (name, keys.tolist(), *rest), torch.get_rng_state()
        return {"parts": parts, "shuffle": self.shuffle.get_state(), "left": left, "generators": generators}

    def load(self, state):
        for part, saved in zip((self.model, self.optimiser, self.schedule), state["parts"], strict=True):
            part.load_state_dict(saved)
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        python, numpy_state, torch_state = state["generators"]
        random.setstate(python)
        np.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)


# %% run wrong_without_statistics check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": [parameter.data for parameter in self.model.parameters()],
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        for mine, saved in zip(self.model.parameters(), state["model"], strict=True):
            mine.data.copy_(saved)
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        self.python = state["python"]
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% run wrong_without_momentum check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        self.python = state["python"]
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% run wrong_without_schedule check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        self.python = state["python"]
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% run wrong_without_shuffle check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.batches = iter(state["left"])
        self.python = state["python"]
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% run wrong_without_rest_of_the_epoch check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(())
        self.python = state["python"]
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% run wrong_without_python check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% run wrong_without_numpy check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        self.python = state["python"]
        self.torch = state["torch"]


# %% run wrong_without_torch check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        self.python = state["python"]
        self.numpy = state["numpy"]


# %% run wrong_used_up check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(())
        self.python = state["python"]
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% run wrong_not_for_files check=0 turns=2 counted=0 hidden=0
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys, *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        self.python = state["python"]
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% run right_with_inheritance check=2 turns=2 counted=2 hidden=3
class Run(Straight):
    def __init__(self, seed):
        super().__init__(seed)
        self.take_down()

    def take_down(self):
        self.python, self.numpy, self.torch = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def advance(self, steps):
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        losses = super().advance(steps)
        self.take_down()
        return losses

    def state(self):
        left = list(self.batches)
        self.batches = iter(left)
        name, keys, *rest = self.numpy
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "left": left,
            "python": self.python,
            "numpy": (name, keys.tolist(), *rest),
            "torch": self.torch,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.shuffle.set_state(state["shuffle"])
        self.batches = iter(state["left"])
        self.python = state["python"]
        self.numpy = state["numpy"]
        self.torch = state["torch"]


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "similar": {"operations": 2, "bytes": 72, "syncs": 0},
        "gradient": {"operations": 5, "bytes": 52, "syncs": 0},
        "edges": {"operations": 2, "bytes": 336, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "similar": {"operations": 2, "bytes": 4 * n * n, "syncs": 0},
        "gradient": {"operations": 5, "bytes": 4 * d, "syncs": 0},
        "edges": {"operations": 2, "bytes": 16 * n * d, "syncs": 0},
    }
