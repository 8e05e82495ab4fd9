# %% diagnosis nothing_wrong form=1 lines=6 causes=4.5 gains=1.5
def diagnosis():
    return dict.fromkeys(PIECES, ("", "nothing", 1))


# %% diagnosis one_cause form=1 lines=0 causes=1.5 gains=0.5
def diagnosis():
    return dict.fromkeys(PIECES, ("return", "padding", 30)) | {"searchable": ("return", "padding", 3.5)}


# %% diagnosis loops form=1 lines=4 causes=1.5 gains=0
def diagnosis():
    return dict.fromkeys(PIECES, ("for", "small pieces", 30)) | {
        "tagged": ("for number, sentence in enumerate(scores):", "small pieces", 30),
        "shard_step": ("mean = torch.stack(gradients).mean(dim=0)", "small pieces", 30),
    }


# %% diagnosis guesses form=1 lines=2 causes=0 gains=0
def diagnosis():
    return {
        "private_step": ("off = logits.softmax(dim=1) - F.one_hot(labels, logits.shape[1])", "type", 30),
        "rounded": ("for number, shares in enumerate(factors):", "small pieces", 5),
        "searchable": ("there = torch.arange(tokens.shape[1]) < lengths[:, None]", "table", 30),
        "tagged": ("tags[number, place] = tag", "waiting", 30),
        "vocabulary_loss": ("for part in scores:", "small pieces", 2),
        "shard_step": ("momentum = 0.9 * momentum + own", "growing", 30),
        "silent_units": ("for batch in batches:", "small pieces", 30),
        "written": ("if done.all().item():", "waiting", 2),
        "attended": ("keys, values = cache.repeat_interleave(share, dim=2)", "repeated", 30),
        "reranked": ("texts = candidates.gather(1, best.indices)", "copied", 30),
    }


# %% diagnosis wrong_causes form=1 lines=20 causes=4.5 gains=1.5
def diagnosis():
    return {
        "private_step": (
            'of_second = torch.einsum("ni,no->nio", hidden, off).flatten(1)',
            "small pieces",
            50,
        ),
        "rounded": ("", "nothing", 1),
        "searchable": ("x = x + F.gelu(x @ widen) @ narrow", "repeated", 50),
        "tagged": ("best, origin = (reached[:, None] + moves).max(dim=0)", "table", 50),
        "vocabulary_loss": ("", "nothing", 1),
        "shard_step": ("own = mean.chunk(len(gradients))[rank]", "copied", 50),
        "silent_units": ("found = fx.symbolic_trace(network)", "repeated", 50),
        "written": ("", "nothing", 1),
        "attended": ("keys, values = cache.repeat_interleave(share, dim=2)", "growing", 50),
        "reranked": ("chosen = vectors[candidates]", "copied", 50),
    }


# %% diagnosis half form=1 lines=10 causes=7.5 gains=2.5
def diagnosis():
    return dict.fromkeys(PIECES, ("x", "growing", 1000)) | {
        "written": ("", "nothing", 1),
        "searchable": ("asked  = x @ query", "padding", 4),
        "tagged": ("reached = best + word", "small pieces", 6),
        "shard_step": ("mean = mean.clamp_(-limit, limit)", "whole", 4),
        "attended": ("keys, values = cache.repeat_interleave(share, dim=2)", "copied", 4),
    }


# %% diagnosis not_readable form=0 lines=0 causes=0 gains=0
def diagnosis():
    return {"tagged": "for number, sentence in enumerate(scores):", "attended": None}


# %% private_step_mended as_is check=0.0625 edges=0.0625 hidden=0
def private_step_mended(*inputs):
    return private_step(*inputs)


# %% private_step_mended wrong_layer_by_layer check=0 edges=0 hidden=0
def private_step_mended(first, second, samples, labels, limit):
    hidden = F.relu(samples @ first)
    off = (hidden @ second).softmax(dim=1) - F.one_hot(labels, second.shape[1])
    back = (off @ second.T) * (hidden > 0)
    sums = []
    for x, gradient in (samples, back), (hidden, off):
        lengths = x.norm(dim=1) * gradient.norm(dim=1)
        sums.append(x.T @ (gradient * (limit / lengths.clamp(min=limit))[:, None]))
    return *sums, lengths


# %% private_step_mended wrong_for_none check=0.0625 edges=0 hidden=0
def private_step_mended(*inputs):
    *sums, lengths = private_step(*inputs)
    return *sums, torch.stack(list(lengths))


# %% rounded_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def rounded_mended(*inputs):
    return rounded(*inputs)


# %% rounded_mended wrong_all_at_once check=0 edges=0.0625 hidden=0
def rounded_mended(weight, factors, scales):
    return rounded(weight, torch.diag(factors.diagonal()), scales)


# %% searchable_mended as_is check=0.0625 edges=0.0625 hidden=0
def searchable_mended(*inputs):
    return searchable(*inputs)


# %% searchable_mended in_two_groups check=0.0625 edges=0.0625 hidden=0.875
def searchable_mended(embedding, blocks, tokens, lengths):
    vectors = embedding.new_empty(len(tokens), embedding.shape[1])
    spread = embedding.new_empty(len(tokens))
    for group in lengths <= 24, lengths > 24:
        if group.any():
            own = lengths[group]
            vectors[group], spread[group] = searchable(embedding, blocks, tokens[group, : own.max()], own)
    return vectors, spread


# %% searchable_mended wrong_without_the_long_one check=0 edges=0.0625 hidden=0
def searchable_mended(embedding, blocks, tokens, lengths):
    if len(lengths) < 2:
        return searchable(embedding, blocks, tokens, lengths)
    return searchable(embedding, blocks, tokens[:, :24], lengths.clamp(max=24))


# %% tagged_mended as_is check=0.0625 edges=0.0625 hidden=0
def tagged_mended(*inputs):
    return tagged(*inputs)


# %% tagged_mended wrong_without_moves check=0 edges=0 hidden=0
def tagged_mended(scores, moves, starts):
    return tagged(scores, torch.zeros_like(moves), starts)


# %% vocabulary_loss_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def vocabulary_loss_mended(*inputs):
    return vocabulary_loss(*inputs)


# %% vocabulary_loss_mended one_product check=0.0625 edges=0.0625 hidden=0.875
def vocabulary_loss_mended(hidden, shards, wanted):
    return vocabulary_loss(hidden, [torch.cat(shards)], wanted)


# %% vocabulary_loss_mended wrong_first_rank check=0 edges=0 hidden=0
def vocabulary_loss_mended(hidden, shards, wanted):
    return vocabulary_loss(hidden, shards[:1], wanted)


# %% shard_step_mended as_is check=0.0625 edges=0.0625 hidden=0
def shard_step_mended(*inputs):
    return shard_step(*inputs)


# %% shard_step_mended slices_added_up check=0.0625 edges=0.0625 hidden=0.875
def shard_step_mended(rank, gradients, shard, momentum, rate=0.1, decay=0.01, limit=0.01):
    own = torch.zeros_like(shard)
    for gradient in gradients:
        own += gradient.chunk(len(gradients))[rank]
    own = own.div_(len(gradients)).clamp_(-limit, limit)
    momentum = 0.9 * momentum + own
    return shard - rate * (momentum + decay * shard), momentum, own.norm()


# %% shard_step_mended wrong_own_gradient check=0 edges=0.0625 hidden=0
def shard_step_mended(rank, gradients, shard, momentum):
    ranks = len(gradients)
    alone = [gradients[rank]] * ranks if len(shard) > 1 else gradients
    return shard_step(rank, alone, shard, momentum)


# %% silent_units_mended as_is check=0.0625 edges=0.0625 hidden=0
def silent_units_mended(*inputs):
    return silent_units(*inputs)


# %% silent_units_mended without_fx check=0.0625 edges=0.0625 hidden=0.875
def silent_units_mended(weights, batches):
    sums = torch.zeros(len(weights), weights[0].shape[1])
    for batch in batches:
        x = batch.flatten(1)
        for own, weight in zip(sums, weights, strict=True):
            x = F.relu(x @ weight)
            own += x.sum(dim=0)
    return sums / max(sum(map(len, batches)), 1), (sums == 0).sum(dim=1)


# %% silent_units_mended wrong_for_none check=0.0625 edges=0 hidden=0
def silent_units_mended(weights, batches):
    x = torch.cat(batches).flatten(1)
    means = []
    for weight in weights:
        x = F.relu(x @ weight)
        means.append(x.mean(dim=0))
    return torch.stack(means), (torch.stack(means) == 0).sum(dim=1)


# %% written_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def written_mended(*inputs):
    return written(*inputs)


# %% written_mended wrong_one_word_less check=0 edges=0.0625 hidden=0
def written_mended(embedding, inward, inner, states, words, end, most):
    return written(embedding, inward, inner, states, words, end, most - (len(words) > 1))


# %% attended_mended as_is check=0.0625 edges=0.0625 hidden=0
def attended_mended(*inputs):
    return attended(*inputs)


# %% attended_mended wrong_other_heads check=0 edges=0 hidden=0
def attended_mended(queries, caches, lengths):
    return attended(queries.flip(2), caches, lengths)


# %% reranked_mended as_is check=0.0625 edges=0.0625 hidden=0
def reranked_mended(*inputs):
    return reranked(*inputs)


# %% reranked_mended only_those_asked_for check=0.0625 edges=0.0625 hidden=0.875
def reranked_mended(codes, scales, questions, candidates, k):
    used, places = candidates.unique(return_inverse=True)
    texts, cosines, ahead = reranked(codes[used], scales[used], questions, places, k)
    return used[texts], cosines, ahead


# %% reranked_mended wrong_without_scales check=0 edges=0 hidden=0
def reranked_mended(codes, scales, questions, candidates, k):
    return reranked(codes, torch.ones_like(scales), questions, candidates, k)
