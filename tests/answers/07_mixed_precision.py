# %% choose_scale right_slow check=1 broken=1 syncs=0 hidden=2 race=0
def choose_scale(gradients):
    if any(not gradient.isfinite().all() for gradient in gradients):
        raise ValueError("inf or nan")
    scale = 2.0**24
    while scale > 1:
        if all((gradient * scale).abs().max().item() <= 65504 for gradient in gradients):
            return scale
        scale /= 2
    return 1.0


# %% choose_scale wrong_fast check=0 broken=1 syncs=0 hidden=0 race=0
def choose_scale(gradients):
    largest = torch.cat([gradient.flatten() for gradient in gradients]).abs().max().item()
    if not math.isfinite(largest):
        raise ValueError("inf or nan")
    return 65504 / largest if largest else 2.0**24


# %% choose_scale lets_nan_pass check=1 broken=0 syncs=1 hidden=2 race=0
def choose_scale(gradients):
    largest = torch.cat([gradient.flatten() for gradient in gradients]).abs().max().item()
    return next((2.0**power for power in range(24, 0, -1) if largest * 2.0**power <= 65504), 1.0)


# %% rms_norm right_slow check=1 hidden=2 race=0
def rms_norm(x, weight, eps):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        wide = row.float()
        wide = wide / torch.sqrt((wide * wide).mean() + eps)
        rows.append((wide * weight).to(x.dtype))
    return torch.stack(rows).reshape(x.shape)


# %% rms_norm wrong_fast check=0 hidden=0 race=0
def rms_norm(x, weight, eps):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


# %% rms_norm right_built_in check=1 hidden=2 race=3
def rms_norm(x, weight, eps):
    return F.rms_norm(x.float(), (x.shape[-1],), weight.float(), eps).to(x.dtype)


# %% scaled_step right_slow check=2 syncs=0 hidden=2 race=0
def scaled_step(weights, gradients, state, rate):
    scale, good_steps, interval = state["scale"], state["good_steps"], state["interval"]
    for gradient in gradients:
        for value in gradient.flatten():
            if not math.isfinite(value.item()):
                return weights, {"scale": scale / 2, "good_steps": 0, "interval": interval}
    moved = [w - rate * (g.float() / scale) for w, g in zip(weights, gradients, strict=True)]
    if good_steps + 1 == interval:
        return moved, {"scale": scale * 2, "good_steps": 0, "interval": interval}
    return moved, {"scale": scale, "good_steps": good_steps + 1, "interval": interval}


# %% scaled_step right_with_many_syncs check=2 syncs=0 hidden=2 race=2
def scaled_step(weights, gradients, state, rate):
    if not all(gradient.isfinite().all() for gradient in gradients):
        return weights, dict(state, scale=state["scale"] / 2, good_steps=0)
    moved = [w - rate / state["scale"] * g.float() for w, g in zip(weights, gradients, strict=True)]
    if state["good_steps"] + 1 == state["interval"]:
        return moved, dict(state, scale=state["scale"] * 2, good_steps=0)
    return moved, dict(state, good_steps=state["good_steps"] + 1)


# %% scaled_step wrong_fast check=0 syncs=0 hidden=0 race=0
def scaled_step(weights, gradients, state, rate):
    scale = state["scale"]
    if not sum(gradient.sum() for gradient in gradients).isfinite():
        return weights, dict(state, scale=scale / 2, good_steps=0)
    moved = [w - rate * (g / scale) for w, g in zip(weights, gradients, strict=True)]
    return moved, dict(state, good_steps=state["good_steps"] + 1)


# %% scaled_step finds_inf_by_a_sum check=2 syncs=1 hidden=0 race=0
def scaled_step(weights, gradients, state, rate):
    scale = state["scale"]
    if not torch.stack([gradient.sum() for gradient in gradients]).isfinite().all():
        return weights, dict(state, scale=scale / 2, good_steps=0)
    moved = [w - (rate / scale) * g.float() for w, g in zip(weights, gradients, strict=True)]
    good_steps = state["good_steps"] + 1
    if good_steps == state["interval"]:
        return moved, dict(state, scale=scale * 2, good_steps=0)
    return moved, dict(state, good_steps=good_steps)


# %% classify right_slow check=2 int8=1 hidden=2 race=0
def classify(x, layers, labels, kind):
    if kind not in ("float16", "bfloat16"):
        raise ValueError(kind)
    rows, losses = [], []
    for row, label in zip(x, labels, strict=True):
        types = []
        with torch.autocast(x.device.type, dtype=getattr(torch, kind)):
            for number, (weight, bias) in enumerate(layers):
                row = F.linear(row.relu() if number else row, weight, bias)
                types.append(str(row.dtype).split(".")[1])
        rows.append(row)
        losses.append(F.cross_entropy(row.float(), label))
    return {
        "logits": torch.stack(rows),
        "probabilities": torch.stack(rows).float().softmax(-1),
        "loss": torch.stack(losses).mean(),
        "types": [*types, "float32", "float32"],
    }


# %% classify wrong_fast check=0 int8=0 hidden=0 race=0
def classify(x, layers, labels, kind):
    types = []
    with torch.autocast(x.device.type, dtype=getattr(torch, kind)):
        for number, (weight, bias) in enumerate(layers):
            x = F.linear(x.relu() if number else x, weight, bias)
            types.append(str(x.dtype).split(".")[1])
        probabilities = x.softmax(-1).float()
        loss = F.cross_entropy(x, labels)
    return {
        "logits": x,
        "probabilities": probabilities,
        "loss": loss,
        "types": [*types, "float32", "float32"],
    }
