# %% diagnosis nothing_wrong form=1 lines=4 causes=3 gains=1
def diagnosis():
    return dict.fromkeys(PIECES, ("", "nothing", 1))


# %% diagnosis one_cause form=1 lines=0 causes=3 gains=0..1
def diagnosis():
    last = {
        "accumulated": "scale = (1 / norm).clamp(max=1)",
        "nucleus": "left = (kept > 0).sum(dim=1)",
        "first_words": "found = ends.topk(most, dim=1)",
        "rotary_weights": "return weights.float()",
        "committee": "votes = torch.stack(votes)",
        "perplexity": "total = torch.zeros(())",
        "adapted": "found, moved = [], []",
        "distilled": "optimiser.step()",
        "routed": "load = chosen.bincount(minlength=len(experts))",
        "continued": "sure.append(best.values)",
    }
    return {name: (line, "small pieces", 6) for name, line in last.items()}


# %% diagnosis loops form=1 lines=4 causes=3 gains=3..4
def diagnosis():
    loops = {
        "accumulated": "for weight in layers[:-1]:",
        "nucleus": "for row, (places, values) in enumerate(zip(words, kept, strict=True)):",
        "first_words": "for query, widen, narrow in blocks:",
        "rotary_weights": "for x in (queries, keys):",
        "committee": "for first, offset, second in models:",
        "perplexity": "for start in range(0, len(tokens) - 1, window):",
        "adapted": "for rows, (down, up) in zip(requests, adapters, strict=True):",
        "distilled": "for batch in batches:",
        "routed": "for number, (widen, narrow) in enumerate(experts):",
        "continued": "for _ in range(steps):",
    }
    return {name: (line, "small pieces", 3) for name, line in loops.items()}


# %% diagnosis guesses form=1 lines=0 causes=0 gains=1..3.5
def diagnosis():
    return {
        "accumulated": ("norm = torch.stack([layer.grad.norm() for layer in layers]).norm()", "graph", 3),
        "nucleus": ("ordered, words = probabilities.sort(dim=1, descending=True)", "order", 5),
        "first_words": ("x = F.layer_norm(x, x.shape[-1:])", "table", 2),
        "rotary_weights": ("later = torch.ones(length, length, dtype=torch.bool).triu(1)", "table", 4),
        "committee": ("votes = torch.stack(votes)", "copied", 2),
        "perplexity": (
            "x = x + F.scaled_dot_product_attention(x @ query, x, x, is_causal=True)",
            "repeated",
            3,
        ),
        "adapted": ("found.append(F.gelu(theirs))", "growing", 2),
        "distilled": ("optimiser.zero_grad(set_to_none=True)", "compiled", 1.5),
        "routed": ("likings = (samples @ gates).softmax(dim=1)", "small pieces", 3),
        "continued": ("tokens = torch.cat([tokens, best.indices], dim=1)", "growing", 3),
    }


# %% diagnosis half form=1 lines=10 causes=7.5 gains=2.5
def diagnosis():
    return dict.fromkeys(PIECES, ("x", "compiled", 1000)) | {
        "accumulated": ("loss.backward()", "small pieces", 11),
        "nucleus": ("", "nothing", 1),
        "first_words": ("probabilities = logits.softmax(dim=2)", "unused", 2),
        "rotary_weights": (
            "angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)",
            "float64",
            2,
        ),
        "committee": ("votes.append((hidden @ second).softmax(dim=1))", "small pieces", 2.1),
    }


# %% diagnosis tenfold form=1 lines=20 causes=15 gains=1
def diagnosis():
    return {
        "accumulated": ("loss.backward()", "small pieces", 110),
        "nucleus": ("", "nothing", 1),
        "first_words": ("probabilities = logits.softmax(dim=2)", "unused", 20),
        "rotary_weights": (
            "angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)",
            "float64",
            20,
        ),
        "committee": ("votes.append((hidden @ second).softmax(dim=1))", "small pieces", 21),
        "perplexity": ("", "nothing", 1),
        "adapted": ("theirs = rows @ own + bias", "order", 20),
        "distilled": ("master = nn.ParameterList(teacher)", "graph", 22),
        "routed": ("found = torch.where(mine, said * weights[:, None], found)", "unused", 30),
        "continued": ("values = x @ value", "repeated", 40),
    }


# %% diagnosis not_readable form=0 lines=0 causes=0 gains=0
def diagnosis():
    return {"committee": "for first, offset, second in models:", "routed": None}


# %% accumulated_mended as_is check=0.25 hidden=0
def accumulated_mended(*inputs):
    return accumulated(*inputs)


# %% accumulated_mended wrong check=0 hidden=0
def accumulated_mended(*inputs):
    return 2.0


# %% nucleus_mended as_is check=0.25 hidden=0.75
def nucleus_mended(*inputs):
    return nucleus(*inputs)


# %% nucleus_mended wrong check=0 hidden=0
def nucleus_mended(*inputs):
    return 2.0


# %% first_words_mended as_is check=0.25 hidden=0
def first_words_mended(*inputs):
    return first_words(*inputs)


# %% first_words_mended wrong check=0 hidden=0
def first_words_mended(*inputs):
    return 2.0


# %% rotary_weights_mended as_is check=0.25 hidden=0
def rotary_weights_mended(*inputs):
    return rotary_weights(*inputs)


# %% rotary_weights_mended wrong check=0 hidden=0
def rotary_weights_mended(*inputs):
    return 2.0


# %% committee_mended as_is check=0.25 hidden=0
def committee_mended(*inputs):
    return committee(*inputs)


# %% committee_mended wrong check=0 hidden=0
def committee_mended(*inputs):
    return 2.0


# %% perplexity_mended as_is check=0.25 hidden=0.75
def perplexity_mended(*inputs):
    return perplexity(*inputs)


# %% perplexity_mended wrong check=0 hidden=0
def perplexity_mended(*inputs):
    return 2.0


# %% adapted_mended as_is check=0.25 hidden=0
def adapted_mended(*inputs):
    return adapted(*inputs)


# %% adapted_mended wrong check=0 hidden=0
def adapted_mended(*inputs):
    return 2.0


# %% distilled_mended as_is check=0.25 hidden=0
def distilled_mended(*inputs):
    return distilled(*inputs)


# %% distilled_mended wrong check=0 hidden=0
def distilled_mended(*inputs):
    return 2.0


# %% routed_mended as_is check=0.25 hidden=0
def routed_mended(*inputs):
    return routed(*inputs)


# %% routed_mended wrong check=0 hidden=0
def routed_mended(*inputs):
    return 2.0


# %% continued_mended as_is check=0.25 hidden=0
def continued_mended(*inputs):
    return continued(*inputs)


# %% continued_mended wrong check=0 hidden=0
def continued_mended(*inputs):
    return 2.0
