# %% rms_norm 88417068ca
import torch


def rms_norm(x, weight, eps):
    wide = x if x.dtype == torch.float32 else x.float()
    # Squares that become 0 do no harm: eps is larger by far. Those that become inf do.
    norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    if not norm.isfinite().all():
        norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True, dtype=torch.float64)
    root = (norm.double().square() / x.shape[-1] + eps).sqrt().float()
    result = wide / root
    result *= weight
    return result.to(x.dtype)


# %% class_means 6a26e5cd19
import torch


def class_means(x, labels, classes):
    width = x.shape[1]
    block = max(1, 65536 // (width + classes))
    numbers = torch.arange(classes, device=x.device)[:, None]
    sums = torch.zeros(classes, width, dtype=torch.float64, device=x.device)
    counts = torch.zeros(classes, 1, dtype=torch.float64, device=x.device)
    for rows, names in zip(x.split(block), labels.split(block), strict=True):
        chosen = (names == numbers).double()
        sums += chosen @ rows.double()
        counts += chosen.sum(dim=1, keepdim=True)
    return (sums / counts.clamp(min=1)).to(x.dtype)


# %% scaled_step 205c27d347
import torch


def scaled_step(weights, gradients, state, rate, interval):
    scale, good_steps = state["scale"], state["good_steps"]
    good = torch.cat([gradient.flatten() for gradient in gradients]).isfinite().all()
    new_weights = [
        torch.where(good, weight - rate * (gradient.float() / scale), weight)
        for weight, gradient in zip(weights, gradients, strict=True)
    ]
    counted = torch.where(good, good_steps + 1, 0)
    grows = good & (counted == interval)
    new_scale = torch.where(good, torch.where(grows, 2 * scale, scale), scale / 2)
    return new_weights, {
        "scale": new_scale.clamp(1.0, 2.0**24),
        "good_steps": torch.where(grows, 0, counted),
    }


# %% add_exactly c13593ab6f
import torch


def add_exactly(top, rest, change):
    weight = (top.view(torch.int16).to(torch.int32) * 65536 + rest).view(torch.float32)
    bits = (weight + change).view(torch.int32)
    upper = (bits + 32768) >> 16
    lower = bits - upper * 65536
    return upper.to(torch.int16).view(torch.bfloat16), lower.to(torch.int16)


# %% roll_out 0fad674569
import torch
import torch.nn.functional as F


def roll_out(state, layers, steps):
    short = [(weight.bfloat16(), bias.bfloat16()) for weight, bias in layers]
    states = [state]
    for _ in range(steps):
        hidden = states[-1].bfloat16()
        for number, (weight, bias) in enumerate(short):
            hidden = F.linear(F.relu(hidden) if number else hidden, weight, bias)
        states.append(states[-1] + hidden / 64)
    return torch.stack(states)[1:]
