# %% seconds_per_call right_slow check=1 hidden=3 few=1
def seconds_per_call(blocks):
    if len(blocks) < 2:
        raise ValueError("too few blocks")
    each, missed = [], []
    for block in blocks[1:]:
        whole = block["finished"] - block["start"]
        each.append(whole / block["calls"])
        missed.append(1 - (block["launched"] - block["start"]) / whole)
    each.sort()
    missed.sort()
    n = len(each)
    usual = (each[(n - 1) // 2] + each[n // 2]) / 2
    first = blocks[0]["finished"] - blocks[0]["start"]
    return {
        "seconds": usual,
        "warm_up": max(first - usual * blocks[0]["calls"], 0),
        "missed": (missed[(n - 1) // 2] + missed[n // 2]) / 2,
    }


# %% seconds_per_call wrong_fast check=1 hidden=0 few=1
def seconds_per_call(blocks):
    if len(blocks) < 2:
        raise ValueError("too few blocks")
    first, *others = blocks
    each = sum((b["finished"] - b["start"]) / b["calls"] for b in others) / len(others)
    missed = sum((b["finished"] - b["launched"]) / (b["finished"] - b["start"]) for b in others) / len(others)
    return {
        "seconds": each,
        "warm_up": first["finished"] - first["start"] - each * first["calls"],
        "missed": missed,
    }


# %% seconds_per_call wrong_not_per_call check=0 hidden=0 few=0
def seconds_per_call(blocks):
    whole = median(b["finished"] - b["start"] for b in blocks)
    return {"seconds": whole, "warm_up": 0.0, "missed": 0.0}


# %% seconds_per_call wrong_keeps_the_warm_up check=0 hidden=0 few=1
def seconds_per_call(blocks):
    if len(blocks) < 2:
        raise ValueError("too few blocks")
    each = median((b["finished"] - b["start"]) / b["calls"] for b in blocks)
    first = blocks[0]
    return {
        "seconds": each,
        "warm_up": max(0, first["finished"] - first["start"] - each * first["calls"]),
        "missed": median((b["finished"] - b["launched"]) / (b["finished"] - b["start"]) for b in blocks),
    }


# %% compare_pairs right_slow check=1 hidden=4 few=1
def compare_pairs(slow, fast):
    if len(slow) != len(fast) or len(slow) < 6:
        raise ValueError("6 pairs or more")
    ratios = torch.tensor(slow, dtype=torch.float64) / torch.tensor(fast, dtype=torch.float64)
    ratios = ratios.sort().values.tolist()
    n = len(ratios)
    k, ways = 0, 1
    while True:
        ways += math.comb(n, k + 1)
        if ways * 40 > 2**n:
            break
        k += 1
    return {
        "ratio": math.exp(median(math.log(ratio) for ratio in ratios)),
        "low": ratios[k],
        "high": ratios[n - 1 - k],
    }


# %% compare_pairs wrong_fast check=0 hidden=0 few=1
def compare_pairs(slow, fast):
    if len(slow) != len(fast) or len(slow) < 6:
        raise ValueError("6 pairs or more")
    ratios = sorted(a / b for a, b in zip(slow, fast, strict=True))
    return {"ratio": median(slow) / median(fast), "low": ratios[0], "high": ratios[-1]}


# %% compare_pairs wrong_one_sided check=1 hidden=0 few=1
def compare_pairs(slow, fast):
    if len(slow) != len(fast) or len(slow) < 6:
        raise ValueError("6 pairs or more")
    ratios = sorted(a / b for a, b in zip(slow, fast, strict=True))
    n, k = len(ratios), 0
    while sum(math.comb(n, i) for i in range(k + 2)) / 2**n <= 0.05:
        k += 1
    return {"ratio": math.exp(median(map(math.log, ratios))), "low": ratios[k], "high": ratios[-1 - k]}


# %% compare_pairs wrong_median_of_torch check=1 hidden=0 few=0
def compare_pairs(slow, fast):
    ratios = (torch.tensor(slow).double() / torch.tensor(fast).double()).sort().values
    n, k = len(ratios), 0
    while sum(math.comb(n, i) for i in range(k + 2)) / 2**n <= 0.025:
        k += 1
    return {"ratio": ratios.median().item(), "low": ratios[k].item(), "high": ratios[-1 - k].item()}


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


# %% move_averages right_slow check=1 operations=0 hidden=1 race=0
def move_averages(averages, values, decay):
    result = []
    for average, value in zip(averages, values, strict=True):
        kept = average * decay
        added = value * (1 - decay)
        result.append(kept + added)
    return result


# %% move_averages wrong_fast check=0 operations=0 hidden=0 race=0
def move_averages(averages, values, decay):
    return [average.lerp(value, decay) for average, value in zip(averages, values, strict=True)]


# %% move_averages wrong_in_place check=0 operations=0 hidden=0 race=0
def move_averages(averages, values, decay):
    return [average.lerp_(value, 1 - decay) for average, value in zip(averages, values, strict=True)]


# %% move_averages right_foreach check=1 operations=2 hidden=1 race=2
def move_averages(averages, values, decay):
    return list(torch._foreach_lerp(averages, values, 1 - decay)) if averages else []


# %% careful_step right_slow check=1 syncs=0 hidden=2 race=0
def careful_step(weights, gradients, rate, longest):
    result = weights.clone()
    for i in range(len(weights)):
        length = gradients[i].norm().item()
        if not math.isfinite(length):
            continue
        if length > longest:
            result[i] = weights[i] - rate * gradients[i] * (longest / length)
        else:
            result[i] = weights[i] - rate * gradients[i]
    return result


# %% careful_step wrong_fast check=0 syncs=2 hidden=0 race=0
def careful_step(weights, gradients, rate, longest):
    lengths = gradients.norm(dim=1, keepdim=True)
    factors = torch.where(lengths.isfinite(), (longest / lengths).clamp(max=1), 0)
    return weights - rate * factors * gradients


# %% careful_step right_with_a_mask check=1 syncs=0 hidden=2 race=0
def careful_step(weights, gradients, rate, longest):
    lengths = gradients.norm(dim=1, keepdim=True)
    sound = lengths[:, 0].isfinite()
    result = weights.clone()
    step = rate * gradients[sound] * (longest / lengths[sound]).clamp(max=1)
    result[sound] = weights[sound] - step
    return result


# %% careful_step right_masked_fill check=1 syncs=2 hidden=2 race=2
def careful_step(weights, gradients, rate, longest):
    lengths = gradients.square().sum(dim=1, keepdim=True).sqrt()
    scaled = gradients / (lengths / longest).clamp(min=1)
    return weights - rate * scaled.masked_fill(~torch.isfinite(lengths), 0)
