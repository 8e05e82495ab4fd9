# %% average_gradients right_slow check=2 edges=1 empty=1 hidden=1 race=0
def average_gradients(gradients, counts):
    if not any(counts):
        raise ValueError("no samples")
    averages = []
    for tensors in zip(*gradients, strict=True):
        kind = torch.promote_types(tensors[0].dtype, torch.float32)
        total = torch.zeros_like(tensors[0], dtype=kind)
        for tensor, count in zip(tensors, counts, strict=True):
            for _ in range(count):
                total += tensor
        averages.append((total / sum(counts)).to(tensors[0].dtype))
    return averages


# %% average_gradients wrong_fast check=0 edges=0 empty=0 hidden=0 race=0
def average_gradients(gradients, counts):
    return [torch.stack(tensors).mean(0) for tensors in zip(*gradients, strict=True)]


# %% average_gradients transcribed check=2 edges=0 empty=1 hidden=0 race=0
def average_gradients(gradients, counts):
    samples = sum(counts)
    if samples == 0:
        raise ValueError("no samples")
    return [
        sum(count * tensor for count, tensor in zip(counts, tensors, strict=True)) / samples
        for tensors in zip(*gradients, strict=True)
    ]


# %% average_gradients rounded_often check=2 edges=0 empty=1 hidden=1 race=0
def average_gradients(gradients, counts):
    samples = sum(counts)
    if samples == 0:
        raise ValueError("no samples")
    ranks = [(tensors, count / samples) for tensors, count in zip(gradients, counts, strict=True) if count]
    averages = [tensor * ranks[0][1] for tensor in ranks[0][0]]
    for tensors, weight in ranks[1:]:
        for average, tensor in zip(averages, tensors, strict=True):
            average.add_(tensor, alpha=weight)
    return averages


# %% average_gradients one_product_each check=2 edges=1 empty=1 hidden=1 race=2
def average_gradients(gradients, counts):
    busy = [rank for rank, count in enumerate(counts) if count]
    if not busy:
        raise ValueError("no samples")
    samples = sum(counts)
    total = [tensor.float() if tensor.element_size() < 4 else tensor.clone() for tensor in gradients[busy[0]]]
    torch._foreach_mul_(total, counts[busy[0]] / samples)
    for rank in busy[1:]:
        others = [tensor.to(sum_.dtype) for tensor, sum_ in zip(gradients[rank], total, strict=True)]
        torch._foreach_add_(total, others, alpha=counts[rank] / samples)
    return [sum_.to(tensor.dtype) for sum_, tensor in zip(total, gradients[0], strict=True)]


# %% all_reduce_gradients right_slow check=2 types=1 missing=1 hidden=2 race=0
def all_reduce_gradients(ranks, cap):
    return all_reduce_gradients_slow(ranks, cap)


# %% all_reduce_gradients wrong_fast check=0 types=0 missing=0 hidden=0 race=0
def all_reduce_gradients(ranks, cap):
    buffers = [torch.cat([gradient.flatten() for gradient in gradients]) for gradients in ranks]
    all_reduce(buffers)
    parts = buffers[0].split([gradient.numel() for gradient in ranks[0]])
    return [part.view(gradient.shape) for part, gradient in zip(parts, ranks[0], strict=True)]


# %% all_reduce_gradients transcribed check=0 types=0 missing=1 hidden=0 race=0
def all_reduce_gradients(ranks, cap):
    if len({len(gradients) for gradients in ranks}) > 1:
        raise ValueError("a gradient is missing")
    buffers = [torch.cat([gradient.flatten() for gradient in gradients]) for gradients in ranks]
    all_reduce(buffers)
    parts = (buffers[0] / len(ranks)).split([gradient.numel() for gradient in ranks[0]])
    return [part.view(gradient.shape) for part, gradient in zip(parts, ranks[0], strict=True)]


# %% all_reduce_gradients without_the_ring check=0 types=1 missing=1 hidden=0 race=0
def all_reduce_gradients(ranks, cap):
    if len({len(gradients) for gradients in ranks}) > 1:
        raise ValueError("a gradient is missing")
    return [torch.stack(tensors).mean(0) for tensors in zip(*ranks, strict=True)]


# %% all_reduce_gradients one_bucket_a_type check=0 types=1 missing=1 hidden=0 race=0
def all_reduce_gradients(ranks, cap):
    if len({len(gradients) for gradients in ranks}) > 1:
        raise ValueError("a gradient is missing")
    averages = [None] * len(ranks[0])
    for kind in {gradient.dtype for gradient in ranks[0]}:
        members = [i for i, gradient in enumerate(ranks[0]) if gradient.dtype == kind][::-1]
        buffers = [torch.cat([gradients[i].flatten() for i in members]) for gradients in ranks]
        all_reduce(buffers)
        parts = buffers[0].div_(len(ranks)).split([ranks[0][i].numel() for i in members])
        for i, part in zip(members, parts, strict=True):
            averages[i] = part.view(ranks[0][i].shape)
    return averages


# %% all_reduce_gradients cap_of_all_types check=2 types=0 missing=1 hidden=0 race=0
def all_reduce_gradients(ranks, cap):
    if len({len(gradients) for gradients in ranks}) > 1:
        raise ValueError("a gradient is missing")
    averages, members, size = [None] * len(ranks[0]), [], 0
    for i in reversed(range(len(ranks[0]))):
        members.append(i)
        size += ranks[0][i].nbytes
        if size >= cap or i == 0:
            buffers = [torch.cat([gradients[j].flatten() for j in members]) for gradients in ranks]
            all_reduce(buffers)
            parts = buffers[0].div_(len(ranks)).split([ranks[0][j].numel() for j in members])
            for j, part in zip(members, parts, strict=True):
                averages[j] = part.view(ranks[0][j].shape)
            members, size = [], 0
    return averages


# %% all_reduce_gradients closes_too_late check=0 types=1 missing=1 hidden=0 race=0
def all_reduce_gradients(ranks, cap):
    if len({len(gradients) for gradients in ranks}) > 1:
        raise ValueError("a gradient is missing")
    averages, filling, closed = [None] * len(ranks[0]), {}, []
    for i in reversed(range(len(ranks[0]))):
        members = filling.setdefault(ranks[0][i].dtype, [])
        if members and sum(ranks[0][j].nbytes for j in members) > cap:
            closed.append(members)
            members = filling[ranks[0][i].dtype] = []
        members.append(i)
    for members in closed + list(filling.values()):
        buffers = [torch.cat([gradients[j].flatten() for j in members]) for gradients in ranks]
        all_reduce(buffers)
        parts = buffers[0].div_(len(ranks)).split([ranks[0][j].numel() for j in members])
        for j, part in zip(members, parts, strict=True):
            averages[j] = part.view(ranks[0][j].shape)
    return averages


# %% all_reduce_gradients asks_for_neighbours check=2 types=1 missing=1 hidden=2 race=3
def all_reduce_gradients(ranks, cap):
    if len({len(gradients) for gradients in ranks}) > 1:
        raise ValueError("a gradient is missing")
    averages = [None] * len(ranks[0])
    for i in reversed(range(len(ranks[0]))):
        if averages[i] is None:
            members = neighbours(ranks[0], i, cap)
            buffers = [torch.cat([gradients[j].reshape(-1) for j in members]) for gradients in ranks]
            all_reduce(buffers)
            start = 0
            for j in members:
                end = start + ranks[0][j].numel()
                averages[j] = (buffers[0][start:end] / len(ranks)).reshape(ranks[0][j].shape)
                start = end
    return averages


# %% indices_of_rank right_slow check=2 few=1 range=1 hidden=1 race=0
def indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last):
    if rank < 0 or rank >= ranks:
        raise ValueError("no such rank")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    rest = length - done
    dealt = rest // ranks * ranks if drop_last else (rest + ranks - 1) // ranks * ranks
    mine = []
    for card in range(dealt):
        if card % ranks == rank:
            mine.append(order[done + card % rest].item())
    return torch.tensor(mine, dtype=torch.int64)


# %% indices_of_rank wrong_fast check=0 few=0 range=0 hidden=0 race=0
def indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last):
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    return order[done + rank :: ranks]


# %% indices_of_rank transcribed check=0 few=0 range=1 hidden=0 race=0
def indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last):
    sampler = torch.utils.data.DistributedSampler(
        range(length), num_replicas=ranks, rank=rank, seed=seed, drop_last=drop_last
    )
    sampler.set_epoch(epoch)
    return torch.tensor(list(sampler)[done // ranks :], dtype=torch.int64)


# %% indices_of_rank from_the_library check=2 few=1 range=1 hidden=1 race=1.0..1.9
def indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last):
    if not 0 <= rank < ranks:
        raise ValueError("no such rank")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch)).tolist()[done:]
    if not order:
        return torch.zeros(0, dtype=torch.int64)
    sampler = torch.utils.data.DistributedSampler(
        order, num_replicas=ranks, rank=rank, shuffle=False, drop_last=drop_last
    )
    return torch.tensor([order[i] for i in sampler], dtype=torch.int64)


# %% indices_of_rank filled_up_only_once check=2 few=0..1 range=1 hidden=0 race=0
def indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last):
    if not 0 <= rank < ranks:
        raise ValueError("no such rank")
    rest = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))[done:]
    rest = rest[: len(rest) // ranks * ranks] if drop_last else torch.cat([rest, rest[: -len(rest) % ranks]])
    return rest[rank::ranks]


# %% indices_of_rank repeated check=2 few=1 range=1 hidden=1 race=2
def indices_of_rank(length, done, ranks, rank, seed, epoch, drop_last):
    if not 0 <= rank < ranks:
        raise ValueError("no such rank")
    rest = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))[done:]
    if not len(rest):
        return rest
    if drop_last:
        return rest[: len(rest) // ranks * ranks][rank::ranks]
    each = -(-len(rest) // ranks)
    return rest.repeat(-(-each * ranks // len(rest)))[: each * ranks][rank::ranks]


# %% whole_batch right_slow check=2 edges=1 waits=0 hidden=1 race=0
def whole_batch(counts, means, variances):
    return whole_batch_slow(counts, means, variances)


# %% whole_batch wrong_fast check=0 edges=0 waits=0 hidden=0 race=0
def whole_batch(counts, means, variances):
    return means.mean(0), variances.mean(0)


# %% whole_batch transcribed check=0 edges=0 waits=0 hidden=0 race=0
def whole_batch(counts, means, variances):
    weights = (counts.to(means.dtype) / counts.sum()).unsqueeze(1)
    return (weights * means).sum(0), (weights * variances).sum(0)


# %% whole_batch mean_of_squares check=0 edges=0 waits=0 hidden=0 race=0
def whole_batch(counts, means, variances):
    weights = counts.to(means.dtype) / counts.sum()
    mean = weights @ means
    return mean, weights @ (variances + means.square()) - mean.square()


# %% whole_batch masked_ranks check=2 edges=1 waits=0 hidden=1 race=0..3
def whole_batch(counts, means, variances):
    busy = counts > 0
    counts, means, variances = counts[busy], means[busy], variances[busy]
    weights = counts.to(means.dtype) / counts.sum()
    mean = weights @ means
    return mean, weights @ (variances + (means - mean).square())


# %% whole_batch in_double check=2 edges=1 waits=1 hidden=1 race=0
def whole_batch(counts, means, variances):
    weights = (counts.double() / counts.sum()).unsqueeze(1)
    means, variances, kind = means.double(), variances.double(), means.dtype
    means = torch.where(weights > 0, means, 0.0)
    variances = torch.where(weights > 0, variances, 0.0)
    mean = (weights * means).sum(0)
    return mean.to(kind), ((variances + (means - mean).square()) * weights).sum(0).to(kind)


# %% whole_batch first_attempt check=2 edges=1 waits=1 hidden=1 race=0..1
def whole_batch(counts, means, variances):
    there = (counts > 0)[:, None]
    weights = counts.double()
    weights = weights / weights.sum()
    wide = torch.where(there, means, 0).double()
    spread = torch.where(there, variances, 0).double()
    mean = weights @ wide
    variance = weights @ (spread + (wide - mean).square())
    return mean.to(means.dtype), variance.to(means.dtype)


# %% whole_batch new_tables check=2 edges=1 waits=1 hidden=1 race=0..2.5
def whole_batch(counts, means, variances):
    weights = counts.to(means.dtype)
    weights = weights / weights.sum()
    busy = (counts > 0).unsqueeze(1)
    means = torch.where(busy, means, 0)
    mean = weights @ means
    spread = torch.where(busy, variances, 0) + (means - mean).square()
    return mean, weights @ spread


# %% whole_batch chosen_then_in_place check=2 edges=1 waits=1 hidden=1 race=0..3
def whole_batch(counts, means, variances):
    weights = counts.to(means.dtype)
    weights /= weights.sum()
    busy = (counts > 0).unsqueeze(1)
    means = torch.where(busy, means, 0)
    mean = weights @ means
    means.sub_(mean).square_().add_(torch.where(busy, variances, 0))
    return mean, weights @ means


# %% whole_batch in_blocks check=2 edges=1 waits=1 hidden=1 race=0..2.6
def whole_batch(counts, means, variances):
    weights = counts.to(means.dtype)
    weights = weights / weights.sum()
    busy = (counts > 0).unsqueeze(1)
    parts = []
    for part, spread in zip(means.split(256, 1), variances.split(256, 1), strict=True):
        part = torch.where(busy, part, 0)
        mean = weights @ part
        parts.append((mean, weights @ (torch.where(busy, spread, 0) + (part - mean).square())))
    return tuple(torch.cat(results) for results in zip(*parts, strict=True))


# %% whole_batch in_bags check=2 edges=1 waits=1 hidden=1 race=3
def whole_batch(counts, means, variances):
    weights = counts.to(means.dtype)
    weights = weights / weights.sum()
    rows = torch.where(counts > 0, torch.arange(len(counts), device=counts.device), counts.argmax())
    away = means[rows]
    mean = weights @ away
    within = torch.nn.functional.embedding_bag(
        rows[None], variances, per_sample_weights=weights[None], mode="sum"
    )[0]
    return mean, within + weights @ away.sub_(mean).square_()


# %% snapshot right_slow check=1 resume=1 foreign=1 hidden=1 hidden_resume=1 race=0
def snapshot(state, rank):
    copy = snapshot_slow(state, 0)
    return copy if rank == 0 else None


def resume(data, wrapped):
    try:
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError("more than weights") from error
    state = snapshot_slow(state, 0)
    return {f"module.{name}": tensor for name, tensor in state.items()} if wrapped else state


# %% snapshot only_the_given_one check=1 resume=0 foreign=0 hidden=1 hidden_resume=0 race=0
def snapshot(state, rank):
    return snapshot_slow(state, rank)


def resume(data, wrapped):
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


# %% snapshot wrong_fast check=0 resume=0 foreign=0 hidden=0 hidden_resume=0 race=0
def snapshot(state, rank):
    return {name.removeprefix("module."): tensor.cpu() for name, tensor in state.items()}


def resume(data, wrapped):
    return torch.load(io.BytesIO(data), weights_only=False)


# %% snapshot transcribed check=0 resume=1 foreign=1 hidden=0 hidden_resume=1 race=0
def snapshot(state, rank):
    if rank == 0:
        wrapped = all(name.startswith("module.") for name in state)
        return {name.removeprefix("module.") if wrapped else name: state[name].cpu() for name in state}


def resume(data, wrapped):
    try:
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError("more than weights") from error
    cut = len("module.") if all(name.startswith("module.") for name in state) else 0
    return {"module." * wrapped + name[cut:]: tensor for name, tensor in state.items()}


# %% snapshot every_module_removed check=0 resume=0 foreign=0 hidden=0 hidden_resume=0 race=0
def snapshot(state, rank):
    if rank == 0:
        return {name.replace("module.", ""): tensor.cpu().clone() for name, tensor in state.items()}


def resume(data, wrapped):
    state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)
    prefix = "module." if wrapped else ""
    return {prefix + name.replace("module.", ""): tensor for name, tensor in state.items()}


# %% snapshot cloned check=1 resume=1 foreign=1 hidden=1 hidden_resume=1 race=2
def snapshot(state, rank):
    if rank != 0:
        return None
    cut = len("module.") if all(name.startswith("module.") for name in state) else 0
    return {name[cut:]: tensor.detach().clone().cpu() for name, tensor in state.items()}


def resume(data, wrapped):
    try:
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError("more than weights") from error
    cut = len("module.") if all(name.startswith("module.") for name in state) else 0
    return {"module." * wrapped + name[cut:]: tensor for name, tensor in state.items()}


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "gradient": {"operations": 5, "bytes": 52, "syncs": 0},
        "turned": {"operations": 2, "bytes": 96, "syncs": 0},
        "bucket": {"operations": 2, "bytes": 48, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "gradient": {"operations": 5, "bytes": 4 * d, "syncs": 0},
        "turned": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
        "bucket": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
    }
