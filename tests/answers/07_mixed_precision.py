# %% rms_norm right_slow check=1 huge=1 exact=1 hidden=1 race=0
def rms_norm(x, weight, eps):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        wide = row.double()
        wide = wide / torch.sqrt((wide * wide).mean() + eps)
        rows.append((wide * weight).to(x.dtype))
    return torch.stack(rows).reshape(x.shape)


# %% rms_norm wrong_fast check=0 huge=0 exact=0 hidden=0 race=0
def rms_norm(x, weight, eps):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


# %% rms_norm transcribed check=1 huge=0 exact=0 hidden=0 race=0
def rms_norm(x, weight, eps):
    wide = x.float()
    return (wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt() * weight).to(x.dtype)


# %% rms_norm weights_in_half check=1 huge=1 exact=0 hidden=0..1 race=0
def rms_norm(x, weight, eps):
    size = (x.double().square().mean(-1, keepdim=True) + eps).sqrt()
    return (x / size * weight.half().double()).to(x.dtype)


# %% rms_norm built_in_in_float32 check=1 huge=0 exact=0 hidden=0 race=0
def rms_norm(x, weight, eps):
    return F.rms_norm(x.float(), (x.shape[-1],), weight.float(), eps).to(x.dtype)


# %% rms_norm built_in_in_float64 check=1 huge=1 exact=1 hidden=1 race=0..1
def rms_norm(x, weight, eps):
    return F.rms_norm(x.double(), (x.shape[-1],), weight.double(), eps).to(x.dtype)


# %% rms_norm right_in_float32 check=1 huge=1 exact=1 hidden=1 race=1.5..2
def rms_norm(x, weight, eps):
    values = x.float()
    size = values.abs().amax(-1, keepdim=True).clamp(min=1)
    values = values / size
    factor = torch.rsqrt(values.square().mean(-1, keepdim=True) + eps / size / size)
    return (values * factor * weight).to(x.dtype)


# %% rms_norm first_attempt check=1 huge=1 exact=1 hidden=1 race=0..2
def rms_norm(x, weight, eps):
    # float32 holds the squares of every float16; the squares of the other two types need float64
    wide = x.to(torch.float32 if x.dtype == torch.float16 else torch.float64)
    size = (wide.square().mean(-1, keepdim=True).double() + eps).sqrt().to(wide.dtype)
    return (wide / size).mul_(weight.to(wide.dtype)).to(x.dtype)


# %% rms_norm all_in_float64 check=1 huge=1 exact=1 hidden=1 race=0..1
def rms_norm(x, weight, eps):
    values = x.double()
    factor = torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
    return (values * factor * weight).to(x.dtype)


# %% rms_norm a_buffer_in_float64 check=1 huge=1 exact=1 hidden=1 race=0..2
def rms_norm(x, weight, eps):
    values = x.double()
    size = (values.square().mean(-1, keepdim=True) + eps).sqrt()
    return values.div_(size).mul_(weight).to(x.dtype)


# %% rms_norm changes_its_argument check=1 huge=1 exact=0 hidden=0 race=0
def rms_norm(x, weight, eps):
    size = (x.double().square_().mean(-1, keepdim=True) + eps).sqrt().float()
    return x.float().div_(size).mul_(weight).to(x.dtype)


# %% rms_norm right_without_buffers check=1 huge=1 exact=1 hidden=1 race=0..2
def rms_norm(x, weight, eps):
    size = (x.double().square().mean(-1, keepdim=True) + eps).sqrt().float()
    return (x.float() / size * weight).to(x.dtype)


# %% rms_norm right_with_a_buffer check=1 huge=1 exact=1 hidden=1 race=2
def rms_norm(x, weight, eps):
    size = (x.double().square_().mean(-1, keepdim=True) + eps).sqrt().float()
    return (x.float() / size).mul_(weight).to(x.dtype)


# %% rms_norm right_in_blocks check=1 huge=1 exact=1 hidden=1 race=1.5..2
def rms_norm(x, weight, eps):
    result = torch.empty_like(x)
    rows = max(1, 131_072 // x.shape[-1])
    parts = x.view(-1, x.shape[-1]).split(rows)
    for some, new in zip(parts, result.view(-1, x.shape[-1]).split(rows), strict=True):
        size = (some.double().square_().mean(-1, keepdim=True) + eps).sqrt().float()
        new.copy_((some.float() / size).mul_(weight))
    return result


# %% class_means right_slow check=1 large=1 memory=0 hidden=0 race=0
def class_means(x, labels, classes):
    return class_means_slow(x, labels, classes)


# %% class_means wrong_fast check=0 large=0 memory=0 hidden=0 race=0
def class_means(x, labels, classes):
    sums = torch.zeros(classes, x.shape[1], dtype=x.dtype, device=x.device).index_add(0, labels, x)
    ones = torch.ones(len(x), dtype=x.dtype, device=x.device)
    counts = torch.zeros(classes, dtype=x.dtype, device=x.device).index_add(0, labels, ones)
    return sums / counts.clamp(min=1)[:, None]


# %% class_means transcribed check=1 large=1 memory=0 hidden=2 race=2
def class_means(x, labels, classes):
    wide = x.float()
    sums = torch.zeros(classes, x.shape[1], device=x.device)
    sums.scatter_add_(0, labels[:, None].expand_as(wide), wide)
    counts = torch.zeros(classes, device=x.device)
    counts.scatter_add_(0, labels, torch.ones(len(x), device=x.device))
    return (sums / counts.clamp(min=1)[:, None]).to(x.dtype)


# %% class_means right_but_waits check=1 large=1 memory=0 hidden=0 race=0
def class_means(x, labels, classes):
    sums = torch.zeros(classes, x.shape[1], device=x.device)
    for some, of_some in zip(x.split(1000), labels.split(1000), strict=True):
        sums.scatter_add_(0, of_some[:, None].expand_as(some), some.float())
    counts = labels.bincount(minlength=classes)
    return (sums / counts.clamp(min=1)[:, None]).to(x.dtype)


# %% class_means counts_with_numpy check=1 large=1 memory=0 hidden=0 race=0
def class_means(x, labels, classes):
    import numpy as np

    sums = torch.zeros(classes, x.shape[1], device=x.device)
    for some, of_some in zip(x.split(1000), labels.split(1000), strict=True):
        sums.scatter_add_(0, of_some[:, None].expand_as(some), some.float())
    counts = torch.from_numpy(np.bincount(labels.numpy(), minlength=classes))
    return (sums / counts.clamp(min=1)[:, None]).to(x.dtype)


# %% class_means sums_in_16_bits large=0 check=0..1 memory=0..2 hidden=0 race=0
def class_means(x, labels, classes):
    sums = torch.zeros(classes, x.shape[1], dtype=x.dtype, device=x.device)
    sums.scatter_add_(0, labels[:, None].expand_as(x), x)
    counts = torch.zeros(classes, device=x.device)
    counts.scatter_add_(0, labels, torch.ones(len(x), device=x.device))
    return (sums.float() / counts.clamp(min=1)[:, None]).to(x.dtype)


# %% class_means right_with_index_add check=1 large=1 memory=2 hidden=2 race=2
def class_means(x, labels, classes):
    sums = torch.zeros(classes, x.shape[1], device=x.device)
    counts = torch.zeros(classes, device=x.device)
    for start in range(0, len(x), 2000):
        some, of_some = x[start : start + 2000].float(), labels[start : start + 2000]
        sums.index_add_(0, of_some, some)
        counts.index_add_(0, of_some, torch.ones(len(some), device=x.device))
    return (sums / counts.clamp(min=1)[:, None]).to(x.dtype)


# %% class_means right_by_one_hot check=1 large=1 memory=2 hidden=2 race=1..2
def class_means(x, labels, classes):
    belongs = F.one_hot(labels, classes).T.float()
    sums = x.new_zeros(classes, x.shape[1], dtype=torch.float32)
    for some, its in zip(x.split(1000), belongs.split(1000, dim=1), strict=True):
        sums += its @ some.float()
    return (sums / belongs.sum(1, keepdim=True).clamp(min=1)).to(x.dtype)


# %% class_means right_by_a_product check=1 large=1 memory=2 hidden=2 race=2
def class_means(x, labels, classes):
    sums = torch.zeros(classes, x.shape[1], device=x.device)
    counts = torch.zeros(classes, 1, device=x.device)
    names = torch.arange(classes, device=x.device)[:, None]
    for some, of_some in zip(x.split(1000), labels.split(1000), strict=True):
        belongs = (names == of_some).float()
        sums += belongs @ some.float()
        counts += belongs.sum(1, keepdim=True)
    return (sums / counts.clamp(min=1)).to(x.dtype)


# %% scaled_step right_slow check=1 waits=0 hidden=0 race=0
def scaled_step(weights, gradients, state, rate, interval):
    return scaled_step_slow(weights, gradients, state, rate, interval)


# %% scaled_step transcribed check=1 waits=0 hidden=0 race=2
def scaled_step(weights, gradients, state, rate, interval):
    scale, good_steps = state["scale"], state["good_steps"] + 1
    if not all(gradient.isfinite().all() for gradient in gradients):
        new_state = {"scale": (scale / 2).clamp(min=1), "good_steps": torch.zeros_like(good_steps)}
        return list(weights), new_state
    moved = [w - rate * g.float() / scale for w, g in zip(weights, gradients, strict=True)]
    if good_steps == interval:
        return moved, {"scale": (scale * 2).clamp(max=2**24), "good_steps": torch.zeros_like(good_steps)}
    return moved, {"scale": scale, "good_steps": good_steps}


# %% scaled_step waits_in_inference_mode check=1 waits=0 hidden=0 race=0
@torch.inference_mode()
def scaled_step(weights, gradients, state, rate, interval):
    return scaled_step_slow(weights, gradients, state, rate, interval)


# %% scaled_step wrong_fast check=0 waits=0 hidden=0 race=0
def scaled_step(weights, gradients, state, rate, interval):
    scale, good_steps = state["scale"], state["good_steps"] + 1
    fine = torch.stack([gradient.isfinite().all() for gradient in gradients]).all()
    factor = fine * rate / scale
    moved = [w - factor * g.float() for w, g in zip(weights, gradients, strict=True)]
    grows = good_steps == interval
    new_scale = scale * torch.where(fine, torch.where(grows, 2.0, 1.0), 0.5)
    return moved, {"scale": new_scale, "good_steps": good_steps * (fine & ~grows)}


# %% scaled_step skips_only_what_is_infinite check=0 waits=0 hidden=0 race=0
def scaled_step(weights, gradients, state, rate, interval):
    scale, good_steps = state["scale"], state["good_steps"] + 1
    fine = torch.cat([gradient.flatten() for gradient in gradients]).isfinite().all()
    moved = [
        w - rate / scale * g.float().nan_to_num(0.0, 0.0, 0.0)
        for w, g in zip(weights, gradients, strict=True)
    ]
    grows = good_steps == interval
    new_scale = (scale * torch.where(fine, torch.where(grows, 2.0, 1.0), 0.5)).clamp(1, 2**24)
    return moved, {"scale": new_scale, "good_steps": good_steps * (fine & ~grows)}


# %% scaled_step finds_inf_by_a_sum check=1 waits=2 hidden=0 race=0
def scaled_step(weights, gradients, state, rate, interval):
    scale, good_steps = state["scale"], state["good_steps"] + 1
    fine = torch.stack([gradient.sum() for gradient in gradients]).isfinite().all()
    moved = [
        torch.where(fine, w - rate / scale * g.float(), w) for w, g in zip(weights, gradients, strict=True)
    ]
    grows = good_steps == interval
    new_scale = (scale * torch.where(fine, torch.where(grows, 2.0, 1.0), 0.5)).clamp(1, 2**24)
    return moved, {"scale": new_scale, "good_steps": good_steps * (fine & ~grows)}


# %% scaled_step right_one_by_one check=1 waits=2 hidden=2 race=2
def scaled_step(weights, gradients, state, rate, interval):
    scale, good_steps = state["scale"], state["good_steps"] + 1
    fine = torch.stack([gradient.isfinite().all() for gradient in gradients]).all()
    moved = [
        w - torch.where(fine, rate / scale * g.float(), 0) for w, g in zip(weights, gradients, strict=True)
    ]
    grows = good_steps == interval
    new_scale = (scale * torch.where(fine, torch.where(grows, 2.0, 1.0), 0.5)).clamp(1, 2**24)
    return moved, {"scale": new_scale, "good_steps": good_steps * (fine & ~grows)}


# %% add_exactly right_slow check=2 near=1 hidden=2 race=0
def add_exactly(top, rest, change):
    return add_exactly_slow(top, rest, change)


# %% add_exactly transcribed check=2 near=0 hidden=0 race=0
def add_exactly(top, rest, change):
    bits = (top.view(torch.int16).int() << 16) + rest
    weight = bits.view(torch.float32) + change
    top = weight.bfloat16()
    return top, (weight.view(torch.int32) - (top.view(torch.int16).int() << 16)).to(torch.int16)


# %% add_exactly wrong_fast check=0 near=0 hidden=0 race=0
def add_exactly(top, rest, change):
    return (top.float() + change).bfloat16(), rest


# %% add_exactly cuts_off check=0 near=0 hidden=0 race=0
def add_exactly(top, rest, change):
    bits = (top.view(torch.int16).int() << 16) + rest
    bits = (bits.view(torch.float32) + change).view(torch.int32)
    return (bits >> 16).short().view(torch.bfloat16), bits.short()


# %% add_exactly right_with_int64 check=2 near=1 hidden=2 race=2
def add_exactly(top, rest, change):
    bits = top.view(torch.int16).long() * 65536 + rest
    bits = (bits.int().view(torch.float32) + change).view(torch.int32).long()
    upper = torch.div(bits + 32768, 65536, rounding_mode="floor")
    return upper.short().view(torch.bfloat16), (bits - 65536 * upper).short()


# %% roll_out right_slow check=2 conversions=0 hidden=0
def roll_out(state, layers, steps):
    return roll_out_slow(state, layers, steps)


# %% roll_out transcribed check=2 conversions=0 hidden=0
def roll_out(state, layers, steps):
    states = [state]
    with torch.autocast(state.device.type, dtype=torch.bfloat16):
        for _ in range(steps):
            hidden = states[-1]
            for number, (weight, bias) in enumerate(layers):
                hidden = F.linear(F.relu(hidden) if number else hidden, weight, bias)
            states.append(states[-1] + hidden / 64)
    return torch.stack(states)[1:]


# %% roll_out wrong_fast check=0 conversions=0 hidden=0
def roll_out(state, layers, steps):
    return roll_out_hasty(state, layers, steps)


# %% roll_out converts_at_each_step check=2 conversions=0 hidden=0
def roll_out(state, layers, steps):
    states = [state]
    for _ in range(steps):
        hidden = states[-1].bfloat16()
        for number, (weight, bias) in enumerate(layers):
            hidden = F.linear(F.relu(hidden) if number else hidden, weight.bfloat16(), bias.bfloat16())
        states.append(states[-1] + hidden / 64)
    return torch.stack(states)[1:]


# %% roll_out right_with_autocast check=2 conversions=3 hidden=2
def roll_out(state, layers, steps):
    layers = [(weight.bfloat16(), bias.bfloat16()) for weight, bias in layers]
    states = [state]
    with torch.autocast(state.device.type, dtype=torch.bfloat16):
        for _ in range(steps):
            hidden = states[-1]
            for number, (weight, bias) in enumerate(layers):
                hidden = F.linear(F.relu(hidden) if number else hidden, weight, bias)
            states.append(states[-1] + hidden / 64)
    return torch.stack(states)[1:]


# %% roll_out converts_by_another_name check=2 conversions=0 hidden=0
def roll_out(state, layers, steps):
    def short(tensor):
        return torch.add(tensor, 0, out=torch.empty_like(tensor, dtype=torch.bfloat16))

    states = [state]
    for _ in range(steps):
        hidden = short(states[-1])
        for number, (weight, bias) in enumerate(layers):
            hidden = F.linear(F.relu(hidden) if number else hidden, short(weight), short(bias))
        states.append(states[-1] + hidden / 64)
    return torch.stack(states)[1:]


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "shortened": {"operations": 5, "bytes": 101, "syncs": 1},
        "edges": {"operations": 2, "bytes": 336, "syncs": 0},
        "halved": {"operations": 3, "bytes": 78, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "shortened": {"operations": 5, "bytes": 4 * n * d, "syncs": 1},
        "edges": {"operations": 2, "bytes": 16 * n * d, "syncs": 0},
        "halved": {"operations": 3, "bytes": 4 * n * n, "syncs": 0},
    }
