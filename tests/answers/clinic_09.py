# %% diagnosis nothing_wrong form=1 lines=6 causes=4.5 gains=1.5
def diagnosis():
    return dict.fromkeys(PIECES, ("", "nothing", 1))


# %% diagnosis one_cause form=1 lines=0 causes=1.5 gains=2.5
def diagnosis():
    return dict.fromkeys(PIECES, ("return", "one by one", 4))


# %% diagnosis loops form=1 lines=6 causes=1.5 gains=2.5
def diagnosis():
    return dict.fromkeys(PIECES, ("for", "one by one", 3)) | {
        "score_ranks": ("for number, row in enumerate(rows):", "one by one", 3),
        "trust_ratios": ("for layer in layers:", "one by one", 3),
        "domain_gap": ("for rows in both.split(4):", "one by one", 3),
    }


# %% diagnosis guesses form=1 lines=2 causes=3 gains=1
def diagnosis():
    return {
        "forecast": ("x = torch.tanh(x @ weight)", "repeated", 2),
        "keypoints": ("scores = maps.clamp(min=0).contiguous()", "copied", 2),
        "federated_round": ("layer -= rate * gradient", "messages", 4),
        "triplet_report": ("near, far = distances", "pairs", 10),
        "strangeness": ("known = store.to(features.dtype)", "converted", 2),
        "score_ranks": ("logs = logits.log_softmax(dim=1)", "messages", 2),
        "textures": ("energy = answers.square().mean(dim=(2, 3))", "algorithm", 10),
        "trust_ratios": ("length = layer.detach().norm()", "graph", 2),
        "style_loss": ("rows = feature.flatten(2).contiguous()", "copied", 2),
        "domain_gap": ("kernel = kernel + torch.exp(-squares / width)", "pairs", 20),
    }


# %% diagnosis wrong_causes form=1 lines=20 causes=4.5 gains=1.5
def diagnosis():
    return {
        "forecast": ("pairs = torch.stack([code & 15, code >> 4], dim=1)", "repeated", 50),
        "keypoints": ("highest = F.max_pool2d(scores, 3, stride=1, padding=1)", "copied", 50),
        "federated_round": ("", "nothing", 1),
        "triplet_report": ("distances.append(torch.cdist(anchors, faces).diagonal())", "pairs", 50),
        "strangeness": ("", "nothing", 1),
        "score_ranks": ("place = number * ranks + rank", "messages", 50),
        "textures": ("bank = torch.fft.rfft2(filters.flip(2, 3), room)", "unused", 50),
        "trust_ratios": ("for layer in layers:", "graph", 50),
        "style_loss": ("", "nothing", 1),
        "domain_gap": ("apart = rows[:, None] - both", "repeated", 50),
    }


# %% diagnosis half form=1 lines=10 causes=7.5 gains=2.5
def diagnosis():
    return dict.fromkeys(PIECES, ("x", "graph", 1000)) | {
        "forecast": ("weight = (pairs.flatten(0, 1).to(x.dtype)  - zero) * scale", "converted", 4),
        "federated_round": ("", "nothing", 1),
        "score_ranks": ("for rank, rows in enumerate(gathered):", "one by one", 4),
        "textures": ("spectra = torch.fft.rfft2(patches, room)", "algorithm", 8),
        "domain_gap": ("apart = rows[:, None] - both", "pairs", 4),
    }


# %% diagnosis not_readable form=0 lines=0 causes=0 gains=0
def diagnosis():
    return {"forecast": "x @ weight", "keypoints": None}


# %% forecast_mended as_is check=0.0625 edges=0.0625 hidden=0
def forecast_mended(*inputs):
    return forecast(*inputs)


# %% forecast_mended half check=0.0625 edges=0.0625 hidden=0..0.8
def forecast_mended(codes, zeros, scales, weather, state):
    wide = [torch.stack([code & 15, code >> 4], dim=1).flatten(0, 1) for code in codes]
    states, moved = torch.empty_like(weather), weather.new_empty(len(weather))
    for step, outside in enumerate(weather):
        x = state + outside
        for code, zero, scale in zip(wide, zeros, scales, strict=True):
            x = torch.tanh(x @ ((code.to(x.dtype) - zero) * scale))
        moved[step] = (0.5 * x - 0.5 * state).norm()
        states[step] = state = 0.5 * state + 0.5 * x
    return states, moved


# %% forecast_mended wrong_for_none check=0.0625 edges=0 hidden=0
def forecast_mended(*inputs):
    states, moved = forecast(*inputs)
    return torch.stack(list(states)), moved


# %% keypoints_mended as_is check=0.0625 edges=0.0625 hidden=0
def keypoints_mended(*inputs):
    return keypoints(*inputs)


# %% keypoints_mended wrong_without_the_rim check=0 edges=0 hidden=0
def keypoints_mended(maps, k, least):
    return keypoints(maps[..., 1:-1, 1:-1], k, least)


# %% federated_round_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def federated_round_mended(*inputs):
    return federated_round(*inputs)


# %% federated_round_mended wrong_for_none check=0.0625 edges=0 hidden=0.875
def federated_round_mended(weights, clients, rate=0.1):
    return federated_round(weights, clients or [[]], rate)


# %% triplet_report_mended as_is check=0.0625 edges=0.0625 hidden=0
def triplet_report_mended(*inputs):
    return triplet_report(*inputs)


# %% triplet_report_mended wrong_for_none check=0.0625 edges=0 hidden=0
def triplet_report_mended(parts, projection, margin):
    anchors, *others = (F.normalize(part @ projection, dim=1) for part in parts)
    near, far = ((anchors - faces).norm(dim=1) for faces in others)
    report = [(near - far + margin).clamp(min=0).mean()]
    for distance in (near, far):
        report += [distance.mean(), distance.std(correction=0)]
    return torch.stack(report)


# %% strangeness_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def strangeness_mended(*inputs):
    return strangeness(*inputs)


# %% strangeness_mended wrong check=0 edges=0 hidden=0
def strangeness_mended(store, *others):
    return strangeness(store[:100], *others)


# %% score_ranks_mended as_is check=0.0625 edges=0.0625 hidden=0
def score_ranks_mended(*inputs):
    return score_ranks(*inputs)


# %% score_ranks_mended wrong_counts_twice check=0 edges=0.0625 hidden=0
def score_ranks_mended(gathered, labels, bins):
    logits = torch.stack(gathered, dim=1).flatten(0, 1)
    return score_ranks([logits], torch.cat([labels, labels])[: len(logits)], bins)


# %% textures_mended as_is check=0.0625 edges=0.0625 hidden=0
def textures_mended(*inputs):
    return textures(*inputs)


# %% textures_mended wrong_for_none check=0.0625 edges=0 hidden=0
def textures_mended(patches, filters):
    return torch.cat([textures(patch[None], filters) for patch in patches])


# %% trust_ratios_mended as_is check=0.0625 edges=0.0625 hidden=0
def trust_ratios_mended(*inputs):
    return trust_ratios(*inputs)


# %% trust_ratios_mended wrong_decay check=0 edges=0 hidden=0
def trust_ratios_mended(weights, images, labels):
    return trust_ratios(weights, images, labels, 1.0)


# %% style_loss_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def style_loss_mended(*inputs):
    return style_loss(*inputs)


# %% domain_gap_mended as_is check=0.0625 edges=0.0625 hidden=0
def domain_gap_mended(*inputs):
    return domain_gap(*inputs)


# %% domain_gap_mended wrong_for_none check=0.0625 edges=0 hidden=0
def domain_gap_mended(here, there, factors):
    n, both = len(here), torch.cat([here, there])
    squares = torch.cdist(both, both).square()
    mean = squares.sum() / (len(both) * (len(both) - 1))
    kernel = sum(torch.exp(-squares / (factor * mean)) for factor in factors)
    return kernel[:n, :n].mean() + kernel[n:, n:].mean() - 2 * kernel[:n, n:].mean()
