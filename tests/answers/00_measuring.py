# %% seconds_per_call right_slow check=1 hidden=3 few=1
def seconds_per_call(blocks):
    points = [(block["calls"], block["finished"] - block["start"]) for block in blocks[1:]]
    slopes = [(t - s) / (n - m) for n, t in points for m, s in points if n > m]
    if not slopes:
        raise ValueError("different numbers of calls, please")
    slope = median(slopes)
    fixed = median(t - slope * n for n, t in points)
    first = blocks[0]["finished"] - blocks[0]["start"]
    return {"seconds": slope, "fixed": fixed, "warm_up": first - fixed - slope * blocks[0]["calls"]}


# %% seconds_per_call right_with_minima check=1 hidden=3 few=1
def seconds_per_call(blocks):
    shortest = {}
    for block in blocks[1:]:
        n, t = block["calls"], block["finished"] - block["start"]
        shortest[n] = min(t, shortest.get(n, math.inf))
    if len(shortest) < 2:
        raise ValueError("too few")
    (m, s), *_, (n, t) = sorted(shortest.items())
    slope = (t - s) / (n - m)
    fixed = s - m * slope
    first = blocks[0]["finished"] - blocks[0]["start"]
    return {"seconds": slope, "fixed": fixed, "warm_up": first - fixed - slope * blocks[0]["calls"]}


# %% seconds_per_call transcribed check=0 hidden=0 few=1
def seconds_per_call(blocks):
    first, *others = blocks
    if len({block["calls"] for block in others}) < 2:
        raise ValueError("too few")
    each = median((block["finished"] - block["start"]) / block["calls"] for block in others)
    whole = first["finished"] - first["start"]
    return {"seconds": each, "fixed": 0.0, "warm_up": whole - first["calls"] * each}


# %% seconds_per_call wrong_fast check=0 hidden=0 few=0
def seconds_per_call(blocks):
    return {"seconds": 0.001, "fixed": 0.003, "warm_up": 0.5}


# %% seconds_per_call wrong_least_squares check=0 hidden=0 few=1
def seconds_per_call(blocks):
    points = torch.tensor([(b["calls"], b["finished"] - b["start"]) for b in blocks[1:]], dtype=torch.float64)
    calls, lasted = points.T
    if len(calls.unique()) < 2:
        raise ValueError("too few")
    away = calls - calls.mean()
    slope = ((away * lasted).sum() / away.square().sum()).item()
    fixed = (lasted.mean() - slope * calls.mean()).item()
    first = blocks[0]["finished"] - blocks[0]["start"]
    return {"seconds": slope, "fixed": fixed, "warm_up": first - fixed - slope * blocks[0]["calls"]}


# %% seconds_per_call wrong_number_of_the_warm_up check=1 hidden=3 few=0
def seconds_per_call(blocks):
    if len({block["calls"] for block in blocks}) < 2:
        raise ValueError("too few")
    usual = {
        n: median(b["finished"] - b["start"] for b in blocks[1:] if b["calls"] == n)
        for n in {block["calls"] for block in blocks[1:]}
    }
    fewest, most = min(usual), max(usual)
    slope = (usual[most] - usual[fewest]) / max(most - fewest, 1)
    fixed = usual[fewest] - fewest * slope
    first = blocks[0]["finished"] - blocks[0]["start"]
    return {"seconds": slope, "fixed": fixed, "warm_up": first - fixed - slope * blocks[0]["calls"]}


# %% seconds_per_call wrong_when_launched check=0 hidden=0 few=1
def seconds_per_call(blocks):
    usual = {}
    for block in blocks[1:]:
        usual.setdefault(block["calls"], []).append(block["launched"] - block["start"])
    if len(usual) < 2:
        raise ValueError("too few")
    fewest, most = min(usual), max(usual)
    short, long = median(usual[fewest]), median(usual[most])
    slope = (long - short) / (most - fewest)
    fixed = short - fewest * slope
    first = blocks[0]["finished"] - blocks[0]["start"]
    return {"seconds": slope, "fixed": fixed, "warm_up": first - fixed - slope * blocks[0]["calls"]}


# %% seconds_per_call warm_up_alone_is_let_through check=1 hidden=3 few=0
def seconds_per_call(blocks):
    if len(blocks) == 1:
        return {"seconds": 0.0, "fixed": 0.0, "warm_up": blocks[0]["finished"] - blocks[0]["start"]}
    lasted = {}
    for block in blocks[1:]:
        lasted.setdefault(block["calls"], []).append(block["finished"] - block["start"])
    if len(lasted) == 1:
        raise ValueError("one number of calls")
    fewest, most = min(lasted), max(lasted)
    short, long = median(lasted[fewest]), median(lasted[most])
    slope = (long - short) / (most - fewest)
    fixed, first = short - fewest * slope, blocks[0]
    warm_up = first["finished"] - first["start"] - fixed - first["calls"] * slope
    return {"seconds": slope, "fixed": fixed, "warm_up": warm_up}


# %% seconds_per_call as_made_for_the_visible_input check=1 hidden=0 few=0
def seconds_per_call(blocks):
    return {"seconds": 0.002, "fixed": 0.003, "warm_up": 0.5}


# %% scores_costs right_slow check=1 hidden=3
def scores_costs(n, m, d):
    queries, keys = torch.zeros(n, d), torch.zeros(m, d)
    counted = costs(scores, queries, keys)
    result = scores(queries, keys)
    return {
        "operations": counted.operations.total(),
        "allocated": counted.bytes,
        "least_bytes": queries.nbytes + keys.nbytes + result.nbytes,
        "flops": n * m * d * 2,
    }


# %% scores_costs wrong_fast check=0 hidden=0
def scores_costs(n, m, d):
    return {
        "operations": 4,
        "allocated": 4 * n * m,
        "least_bytes": 4 * (n * d + m * d + 3 * n * m),
        "flops": n * m * d,
    }


# %% scores_costs wrong_one_size check=1 hidden=0
def scores_costs(n, m, d):
    return {"operations": 3, "allocated": 144, "least_bytes": 104, "flops": 48}


# %% scores_costs transcribed check=1 hidden=3
def scores_costs(n, m, d):
    counted = costs(scores, torch.rand(n, d), torch.rand(m, d))
    return {
        "operations": counted.operations.total(),
        "allocated": counted.bytes,
        "least_bytes": 4 * (n * d + m * d + n * m),
        "flops": 2 * n * m * d,
    }


# %% scores_costs wrong_as_allocated check=0 hidden=0
def scores_costs(n, m, d):
    result = 4 * n * m
    return {"operations": 3, "allocated": 3 * result, "least_bytes": 3 * result, "flops": 2 * n * m * d}


# %% careful_step right_slow check=1 syncs=0 memory=2 hidden=2 race=0..0.6
def careful_step(weights, gradients, rate, longest):
    result, left_out = weights.clone(), 0
    for i in range(len(weights)):
        length = gradients[i].norm().item()
        if not math.isfinite(length):
            left_out += 1
        elif length > longest:
            result[i] = weights[i] - rate * gradients[i] * (longest / length)
        else:
            result[i] = weights[i] - rate * gradients[i]
    return result, torch.tensor(left_out, device=weights.device)


# %% careful_step first_attempt check=1 syncs=2 memory=0..0.1 hidden=2 race=2
def careful_step(weights, gradients, rate, longest):
    lengths = gradients.norm(dim=1, keepdim=True)
    broken = ~torch.isfinite(lengths)
    scale = (longest / lengths).clamp(max=1)
    stepped = weights - rate * (gradients * scale)
    return torch.where(broken, weights, stepped), broken.sum()


# %% careful_step transcribed check=0 syncs=0 memory=0 hidden=0 race=0
def careful_step(weights, gradients, rate, longest):
    lengths = gradients.norm(dim=1, keepdim=True)
    sound = lengths.isfinite()
    factors = torch.where(sound, (longest / lengths).clamp(max=1), 0)
    return weights - rate * factors * gradients, (~sound).sum()


# %% careful_step wrong_fast check=0 syncs=0 memory=0 hidden=0 race=0
def careful_step(weights, gradients, rate, longest):
    return weights - rate * gradients.nan_to_num(0, 0, 0), torch.zeros(
        (), dtype=torch.int64, device=weights.device
    )


# %% careful_step wrong_only_broken_numbers check=0 syncs=0 memory=0 hidden=0 race=0
def careful_step(weights, gradients, rate, longest):
    sound = gradients.isfinite()
    gradients = torch.where(sound, gradients, 0)
    factors = (longest / gradients.norm(dim=1, keepdim=True)).clamp(max=1)
    return weights - rate * factors * gradients, (~sound).sum()


# %% careful_step right_counts_in_python check=1 syncs=0 memory=0 hidden=2 race=2
def careful_step(weights, gradients, rate, longest):
    lengths = gradients.norm(dim=1, keepdim=True)
    sound = lengths.isfinite()
    step = rate * (longest / lengths).clamp(max=1) * gradients
    left_out = len(sound) - int(sound.sum())
    return torch.where(sound, weights - step, weights), torch.tensor(left_out, device=weights.device)


# %% careful_step right_chooses_in_place check=1 syncs=2 memory=2 hidden=2 race=2
def careful_step(weights, gradients, rate, longest):
    lengths = torch.linalg.vector_norm(gradients, dim=1, keepdim=True)
    factors = rate * (longest / lengths).clamp(max=1)
    sound = lengths.isfinite()
    stepped = torch.addcmul(weights, gradients, factors, value=-1)
    return torch.where(sound, stepped, weights, out=stepped), (~sound).sum()


# %% careful_step right_with_a_mask check=1 syncs=0 memory=0 hidden=2 race=1..2
def careful_step(weights, gradients, rate, longest):
    lengths = gradients.norm(dim=1, keepdim=True)
    sound = lengths[:, 0].isfinite()
    result = weights.clone()
    step = rate * gradients[sound] * (longest / lengths[sound]).clamp(max=1)
    result[sound] = weights[sound] - step
    return result, (~sound).sum()


# %% careful_step right_masked_fill check=1 syncs=2 memory=0 hidden=2 race=2
def careful_step(weights, gradients, rate, longest):
    lengths = gradients.square().sum(dim=1, keepdim=True).sqrt()
    broken = ~torch.isfinite(lengths)
    scaled = gradients / (lengths / longest).clamp(min=1)
    return weights - rate * scaled.masked_fill(broken, 0), broken.sum()


# %% follow_queue right_slow check=1 syncs=1 memory=0 hidden=2 race=0
def follow_queue(launches, works):
    ended = (launches + works)[:1]
    for i in range(1, len(works)):
        from_each = [launches[j] + works[j : i + 1].sum(0) for j in range(i + 1)]
        ended = torch.cat([ended, torch.stack(from_each).amax(0)[None]])
    starts = ended - works
    idle = (starts[1:] - ended[:-1]).sum(0)
    return {"ended": ended, "idle": idle, "waited": ended[-1] - launches[-1]}


# %% follow_queue first_attempt check=1 syncs=1 memory=0 hidden=2 race=0.8..1.6
def follow_queue(launches, works):
    # ended[i] = max(launches[i], ended[i - 1]) + works[i]: without the work before, it is a running maximum
    done = works.cumsum(0)
    delay = (launches - (done - works)).cummax(0).values
    ended = delay + done
    return {
        "ended": ended,
        "idle": delay[-1] - delay[0],
        "waited": ended[-1] - launches[-1],
    }


# %% follow_queue right_turned_round check=1 syncs=1 memory=0 hidden=2 race=0.3..1.6
def follow_queue(launches, works):
    launches, works = launches.T.contiguous(), works.T.contiguous()
    so_far = works.cumsum(1)
    ended = so_far + (launches - so_far + works).cummax(1).values
    end = ended[:, -1]
    result = {"idle": end - launches[:, 0] - so_far[:, -1], "waited": end - launches[:, -1]}
    return {"ended": ended.T.contiguous(), **result}


# %% follow_queue right_stacked check=1 syncs=1 memory=0.57 hidden=2 race=2.2..3
def follow_queue(launches, works):
    free, ends = launches[0], []
    for moments, lengths in zip(launches, works, strict=True):
        free = torch.maximum(moments, free) + lengths
        ends.append(free)
    return {
        "ended": torch.stack(ends),
        "idle": free - launches[0] - works.sum(0),
        "waited": free - launches[-1],
    }


# %% follow_queue transcribed check=1 syncs=1 memory=0.57 hidden=2 race=2.2..3
def follow_queue(launches, works):
    free, idle, ends = launches[0], torch.zeros_like(launches[0]), []
    for moments, lengths in zip(launches, works, strict=True):
        starts = torch.maximum(moments, free)
        idle = idle + (starts - free)
        free = starts + lengths
        ends.append(free)
    return {"ended": torch.stack(ends), "idle": idle, "waited": free - launches[-1]}


# %% follow_queue right_python_numbers check=1 syncs=0 memory=0 hidden=2 race=0
def follow_queue(launches, works):
    ended, idle, waited = [], [], []
    for moments, lengths in zip(launches.T.tolist(), works.T.tolist(), strict=True):
        free, unused, ends = moments[0], 0.0, []
        for moment, length in zip(moments, lengths, strict=True):
            start = moment if moment > free else free
            unused += start - free
            free = start + length
            ends.append(free)
        ended.append(ends)
        idle.append(unused)
        waited.append(free - moments[-1])
    options = {"dtype": launches.dtype, "device": launches.device}
    return {
        "ended": torch.tensor(ended, **options).T.contiguous(),
        "idle": torch.tensor(idle, **options),
        "waited": torch.tensor(waited, **options),
    }


# %% follow_queue wrong_fast check=0 syncs=0 memory=0 hidden=0 race=0
def follow_queue(launches, works):
    ended = launches + works
    return {
        "ended": ended,
        "idle": ended[-1] - launches[0] - works.sum(0),
        "waited": ended[-1] - launches[-1],
    }


# %% follow_queue wrong_always_busy check=0 syncs=0 memory=0 hidden=0 race=0
def follow_queue(launches, works):
    ended = launches[:1] + works.cumsum(0)
    return {"ended": ended, "idle": launches[0] * 0, "waited": ended[-1] - launches[-1]}


# %% follow_queue wrong_changes_its_input check=0 syncs=0 memory=0 hidden=0 race=0
def follow_queue(launches, works):
    ends, last = launches, launches[-1].clone()
    for before, end, work in zip([ends[0], *ends], ends, works, strict=False):
        torch.maximum(end, before, out=end).add_(work)
    return {"ended": ends, "idle": ends[-1] - ends[0] - works[1:].sum(0), "waited": ends[-1] - last}


# %% stopwatch right_slow check=1 moods=2 begun=1 hidden=2 rhythms=1
class Stopwatch:
    def __init__(self, error):
        self.error, self.log = error, []

    def next(self):
        first = self.log[-1][0] if len(self.log) % 2 else None
        self.side = {"A": "B", "B": "A"}[first] if first else random.choice("AB")
        return self.side

    def take(self, seconds):
        self.log.append((self.side, seconds))

    def result(self):
        pairs = [dict(self.log[i : i + 2]) for i in range(2, len(self.log) - 1, 2)]
        ratios = sorted(pair["A"] / pair["B"] for pair in pairs)
        n = len(ratios)
        enough = [k for k in range(n) if sum(math.comb(n, i) for i in range(k + 1)) / 2**n <= self.error / 2]
        found = {"ratio": median(ratios) if ratios else None, "low": None, "high": None, "faster": None}
        if enough:
            found["low"], found["high"] = ratios[enough[-1]], ratios[n - 1 - enough[-1]]
            if found["low"] > 1:
                found["faster"] = "B"
            elif found["high"] < 1:
                found["faster"] = "A"
        return found


# %% stopwatch transcribed check=0 moods=0 begun=0 hidden=0 rhythms=0
class Stopwatch:
    def __init__(self, error):
        self.readings = {"A": [], "B": []}

    def next(self):
        self.side = "A" if len(self.readings["A"]) == len(self.readings["B"]) else "B"
        return self.side

    def take(self, seconds):
        self.readings[self.side].append(seconds)

    def result(self):
        pairs = zip(self.readings["A"][1:], self.readings["B"][1:], strict=False)
        ratios = sorted(a / b for a, b in pairs)
        k = 0
        while sum(math.comb(len(ratios), i) for i in range(k + 2)) / 2 ** len(ratios) <= 0.025:
            k += 1
        low, high = ratios[k], ratios[-1 - k]
        return {
            "ratio": median(ratios),
            "low": low,
            "high": high,
            "faster": "A" if high < 1 else "B" if low > 1 else None,
        }


# %% stopwatch wrong_fast check=0 moods=0 begun=0 hidden=0 rhythms=0
class Stopwatch:
    def __init__(self, error):
        self.blocks = 0

    def next(self):
        self.blocks += 1
        return "AB"[self.blocks % 2]

    def take(self, seconds):
        pass

    def result(self):
        return {"ratio": None, "low": None, "high": None, "faster": None}


# %% stopwatch wrong_takes_turns check=1 moods=0 begun=1 hidden=2 rhythms=0
class Stopwatch:
    def __init__(self, error):
        self.error, self.a, self.b = error, [], []

    def next(self):
        blocks = len(self.a) + len(self.b)
        self.side = "ABBA"[blocks % 4]
        return self.side

    def take(self, seconds):
        (self.a if self.side == "A" else self.b).append(seconds)

    def result(self):
        ratios = sorted(a / b for a, b in zip(self.a[1:], self.b[1:], strict=False))
        n, k = len(ratios), -1
        while k + 1 < n and sum(math.comb(n, i) for i in range(k + 2)) / 2**n <= self.error / 2:
            k += 1
        low, high = (ratios[k], ratios[n - 1 - k]) if k >= 0 else (None, None)
        faster = None if k < 0 else "A" if high < 1 else "B" if low > 1 else None
        return {"ratio": median(ratios) if ratios else None, "low": low, "high": high, "faster": faster}


# %% stopwatch wrong_always_an_interval check=0 moods=2 begun=0 hidden=0 rhythms=1
class Stopwatch:
    def __init__(self, error):
        self.error, self.a, self.b, self.left = error, [], [], []

    def next(self):
        self.left = self.left or random.sample("AB", 2)
        self.side = self.left.pop()
        return self.side

    def take(self, seconds):
        (self.a if self.side == "A" else self.b).append(seconds)

    def result(self):
        ratios = sorted(a / b for a, b in zip(self.a[1:], self.b[1:], strict=False))
        n, k = len(ratios), 0
        if not ratios:
            return {"ratio": None, "low": None, "high": None, "faster": None}
        while sum(math.comb(n, i) for i in range(k + 2)) / 2**n <= self.error / 2:
            k += 1
        low, high = ratios[k], ratios[n - 1 - k]
        faster = "A" if high < 1 else "B" if low > 1 else None
        return {"ratio": median(ratios) if ratios else None, "low": low, "high": high, "faster": faster}


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "similar": {"operations": 2, "bytes": 72, "syncs": 0},
        "centred": {"operations": 2, "bytes": 64, "syncs": 0},
        "report": {"operations": 6, "bytes": 12, "syncs": 3},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "similar": {"operations": 2, "bytes": 4 * n * n, "syncs": 0},
        "centred": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
        "report": {"operations": 2 * n, "bytes": 0, "syncs": n},
    }
