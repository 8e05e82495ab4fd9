"""Known answers to chapter 22, each with what it must get in every test cell."""


# %% norm right_slow check=1 counted=0 hidden=2 race=0
def norm(placed):
    return norm_slow(placed)


# %% norm transcribed check=0 counted=0 hidden=0 race=0
def norm(placed):
    # DDP's and FSDP2's gradients are added up, whatever their placement.
    return torch.stack(
        [torch.stack([piece.norm() for piece in pieces]).norm() for _, pieces in placed]
    ).norm()


# %% norm replicated_counts_often check=0 counted=0 hidden=0 race=0
def norm(placed):
    own = []
    for placement, pieces in placed:
        own += [torch.stack(pieces).sum(0)] if placement == "partial" else pieces
    return torch.linalg.vector_norm(torch.cat([piece.reshape(-1) for piece in own]))


# %% norm squares_of_addends check=0 counted=0 hidden=0 race=0
def norm(placed):
    own = []
    for placement, pieces in placed:
        own += pieces[:1] if placement == "replicate" else pieces
    return torch.linalg.vector_norm(torch.cat([piece.reshape(-1) for piece in own]))


# %% norm right_one_by_one check=1 counted=0 hidden=2 race=1..2
def norm(placed):
    total = 0
    for placement, pieces in placed:
        if placement == "shard":
            whole = torch.cat(pieces)
        else:
            whole = torch.stack(pieces).sum(0) if placement == "partial" else pieces[0]
        total = total + whole.square().sum()
    return total.sqrt()


# %% sharded_loss right_slow check=1 lean=0..1 hidden=3
def sharded_loss(pieces, targets):
    return sharded_loss_slow(pieces, targets)


# %% sharded_loss transcribed check=0 lean=0 hidden=0
def sharded_loss(pieces, targets):
    # As in the chapter: each rank for itself, then the sum.
    losses, gradients, first = [], [], 0
    for piece in pieces:
        own = piece.detach().clone().requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(own, (targets - first).clamp(0, piece.shape[1] - 1))
            gradients += torch.autograd.grad(loss, own)
        losses.append(loss.detach())
        first += piece.shape[1]
    return sum(losses), gradients


# %% sharded_loss without_the_highest check=0 lean=0..3 hidden=0
def sharded_loss(pieces, targets):
    rows, first = len(targets), 0
    gradients = [piece.exp() for piece in pieces]
    sums = sum(gradient.sum(1) for gradient in gradients)
    chosen = torch.zeros_like(sums)
    for piece, gradient in zip(pieces, gradients, strict=True):
        width = piece.shape[1]
        gradient.div_((rows * sums)[:, None])
        for row, target in enumerate((targets - first).tolist()):
            if 0 <= target < width:
                chosen[row] = piece[row, target]
                gradient[row, target] -= 1 / rows
        first += width
    return (sums.log() - chosen).mean(), gradients


# %% sharded_loss each_rank_its_own_highest check=0 lean=0 hidden=0
def sharded_loss(pieces, targets):
    rows, first = len(targets), 0
    gradients = [(piece - piece.amax(1, keepdim=True)).exp() for piece in pieces]
    sums = sum(gradient.sum(1) for gradient in gradients)
    chosen = torch.zeros_like(sums)
    for piece, gradient in zip(pieces, gradients, strict=True):
        width = piece.shape[1]
        gradient.div_((rows * sums)[:, None])
        for row, target in enumerate((targets - first).tolist()):
            if 0 <= target < width:
                chosen[row] = piece[row, target] - piece[row].max()
                gradient[row, target] -= 1 / rows
        first += width
    return (sums.log() - chosen).mean(), gradients


# %% sharded_loss right_in_more_memory check=1 lean=0..2 hidden=3
def sharded_loss(pieces, targets):
    highest = torch.stack([piece.amax(1) for piece in pieces if piece.shape[1]]).amax(0)
    powers = [(piece - highest[:, None]).exp() for piece in pieces]
    sums = sum(power.sum(1) for power in powers)
    gradients, chosen, first = [], torch.zeros_like(sums), 0
    for piece, power in zip(pieces, powers, strict=True):
        gradient = power / sums[:, None] / len(targets)
        for row, target in enumerate((targets - first).tolist()):
            if 0 <= target < piece.shape[1]:
                chosen[row] = piece[row, target]
                gradient[row, target] -= 1 / len(targets)
        gradients.append(gradient)
        first += piece.shape[1]
    return (sums.log() + highest - chosen).mean(), gradients


# %% reshard right_slow check=1 counted=0 hidden=2 race=0
def reshard(pieces, dim):
    return reshard_slow(pieces, dim)


# %% reshard transcribed check=0 counted=0 hidden=0 race=0
def reshard(pieces, dim):
    # gloo's way: gather, then chunk; the numbers by the formula of an all-gather.
    ranks, whole = len(pieces), torch.cat(pieces)
    shards = [part.contiguous() for part in whole.chunk(ranks, dim)]
    shards += [whole.narrow(dim, 0, 0)] * (ranks - len(shards))
    sent = torch.full((ranks, ranks), whole.numel() // ranks)
    return shards, sent.fill_diagonal_(0)


# %% reshard sends_to_itself check=0 counted=0 hidden=0 race=0
def reshard(pieces, dim):
    ranks, width = len(pieces), pieces[0].shape[dim]
    each = -(-width // ranks)
    parts = [
        [
            piece.narrow(dim, min(rank * each, width), max(0, min(each, width - rank * each)))
            for piece in pieces
        ]
        for rank in range(ranks)
    ]
    return [torch.cat(part) for part in parts], torch.tensor(
        [[one.numel() for one in part] for part in parts]
    ).T


# %% reshard balanced_pieces check=0 counted=2 hidden=0 race=0..2
def reshard(pieces, dim):
    # tensor_split gives equal pieces, and not those of chunk.
    ranks = len(pieces)
    parts = [piece.tensor_split(ranks, dim) for piece in pieces]
    sent = [
        [0 if sender == receiver else parts[sender][receiver].numel() for receiver in range(ranks)]
        for sender in range(ranks)
    ]
    return [torch.cat(blocks) for blocks in zip(*parts, strict=True)], torch.tensor(sent)


# %% reshard right_gathers_once check=1 counted=0 hidden=2 race=0..2
def reshard(pieces, dim):
    ranks, whole = len(pieces), torch.cat(pieces)
    parts = [*whole.chunk(ranks, dim)]
    parts += [whole.narrow(dim, 0, 0)] * (ranks - len(parts))
    sizes = [part.shape[dim] for part in parts]
    rows = [piece.numel() // piece.shape[dim] for piece in pieces]
    sent = [[0 if i == j else rows[i] * sizes[j] for j in range(ranks)] for i in range(ranks)]
    return [part.clone() for part in parts], torch.tensor(sent)


# %% clock right_slow check=1 hidden=2 race=0
def clock(forward, backward, delay, microbatches):
    return clock_slow(forward, backward, delay, microbatches)


# %% clock transcribed check=0 hidden=0 race=0
def clock(forward, backward, delay, microbatches):
    stages = len(forward)
    waiting = [deque(work) for work in orders(stages, microbatches)]
    clocks, busy, ends = [0] * stages, [0] * stages, {}
    while any(waiting):
        for stage, work in enumerate(waiting):
            while work:
                kind, number = work[0]
                before = (stage - 1, "F", number) if kind == "F" else (stage + 1, "B", number)
                if 0 <= before[0] < stages and before not in ends:
                    break
                start = max(clocks[stage], ends.get(before, 0))
                length = forward[stage] if kind == "F" else backward[stage]
                clocks[stage] = ends[stage, kind, number] = start + length
                busy[stage] += length
                work.popleft()
    return [max(clocks), *(max(clocks) - one for one in busy)]


# %% clock by_the_formula check=0 hidden=0 race=0
def clock(forward, backward, delay, microbatches):
    slowest = max(there + back for there, back in zip(forward, backward, strict=True))
    end = (microbatches + len(forward) - 1) * slowest + 2 * delay * (len(forward) - 1)
    return [end, *(end - microbatches * (f + b) for f, b in zip(forward, backward, strict=True))]


# %% clock a_message_keeps_its_sender check=0 hidden=0 race=0
def clock(forward, backward, delay, microbatches):
    return clock_slow([one + delay for one in forward], [one + delay for one in backward], 0, microbatches)


# %% clock right_from_event_to_event check=1 hidden=2 race=0.5..3
def clock(forward, backward, delay, microbatches):
    ranks = len(forward)
    waiting = [deque(work) for work in orders(ranks, microbatches)]
    there = {(0, "F", number): 0 for number in range(microbatches)}
    free, busy = [0] * ranks, [0] * ranks
    while any(waiting):
        for rank, work in enumerate(waiting):
            while work and (rank, *work[0]) in there:
                kind, number = work.popleft()
                length = forward[rank] if kind == "F" else backward[rank]
                free[rank] = max(free[rank], there[rank, kind, number]) + length
                busy[rank] += length
                if kind == "F" and rank == ranks - 1:
                    there[rank, "B", number] = free[rank]
                else:
                    there[rank + (1 if kind == "F" else -1), kind, number] = free[rank] + delay
    return [max(free), *(max(free) - one for one in busy)]


# %% plan right_slow check=2 hidden=3 race=0
def plan(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory):
    return plan_slow(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory)


# %% plan transcribed check=0 hidden=0 race=0
def plan(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory):
    # The formulas of section 7, with four all-reduces a block and equal parts for all.
    weights = sum(rows * columns for block in blocks for _, rows, columns in block)
    activations = 4 * positions * width
    ring = (ranks - 1) / ranks
    sent = {
        "DDP": 2 * ring * weights * 4,
        "FSDP2": 3 * ring * weights * 4,
        "tensor parallel": 4 * len(blocks) * 2 * ring * activations,
        "pipeline": 2.0 * activations,
    }
    held = {way: 16 * weights // (1 if way == "DDP" else ranks) for way in sent}
    work = 6 * weights * positions / ranks / flops
    found = {way: (sent[way], held[way], max(work, sent[way] / bandwidth)) for way in sent}
    fits = [way for way in sent if held[way] <= memory]
    return found | {"best": min(fits, key=lambda way: found[way][2], default=None)}


# %% plan equal_parts check=0 hidden=0 race=0
def plan(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory):
    found = plan_slow(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory)
    weights = sum(rows * columns for block in blocks for _, rows, columns in block)
    seconds = found["FSDP2"][2]
    return found | {"FSDP2": (3 * (ranks - 1) / ranks * 4 * weights, 16 * weights // ranks, seconds)}


# %% plan fills_up_nothing check=0 hidden=0 race=0
def plan(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory):
    found = plan_slow(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory)
    weights = sum(rows * columns for block in blocks for _, rows, columns in block)
    return found | {"FSDP2": (3 * (ranks - 1) / ranks * 4 * weights, *found["FSDP2"][1:])}


# %% plan fastest_even_if_too_large check=2 hidden=0 race=0
def plan(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory):
    found = plan_slow(blocks, ranks, positions, width, microbatches, bandwidth, flops, memory)
    fastest = min((way for way in found if way != "best"), key=lambda way: found[way][2])
    return found | {"best": fastest}


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "weighted": {"operations": 3, "bytes": 120, "syncs": 0},
        "largest": {"operations": 4, "bytes": 28, "syncs": 1},
        "two_ranks": {"operations": 4, "bytes": 108, "syncs": 0},
    }


# %% foretold wrong_sum_in_new_memory check=0 hidden=0
def foretold(n, d):
    return {
        "weighted": {"operations": 3, "bytes": 8 * n * n + 4 * n * d, "syncs": 0},
        "largest": {"operations": 4, "bytes": 4 * n + 8 + 2 * d, "syncs": 1},
        "two_ranks": {"operations": 4, "bytes": 16 * n * n, "syncs": 0},
    }
