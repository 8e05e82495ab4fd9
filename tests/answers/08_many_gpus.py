# %% average_gradients right_slow check=2 empty=1 hidden=2 race=0
def average_gradients(gradients, counts):
    if not any(counts):
        raise ValueError("no samples")
    averages = []
    for tensors in zip(*gradients, strict=True):
        total = torch.zeros_like(tensors[0])
        for tensor, count in zip(tensors, counts, strict=True):
            for _ in range(count):
                total += tensor
        averages.append(total / sum(counts))
    return averages


# %% average_gradients wrong_fast check=0 empty=0 hidden=0 race=0
def average_gradients(gradients, counts):
    return [torch.stack(tensors).mean(0) for tensors in zip(*gradients, strict=True)]


# %% average_gradients right_but_nan check=2 empty=1 hidden=0 race=0
def average_gradients(gradients, counts):
    samples = sum(counts)
    if samples == 0:
        raise ValueError("no samples")
    averages = []
    for tensors in zip(*gradients, strict=True):
        average = tensors[0] * (counts[0] / samples)
        for tensor, count in zip(tensors[1:], counts[1:], strict=True):
            average.add_(tensor, alpha=count / samples)
        averages.append(average)
    return averages


# %% all_reduce_gradients right_slow check=2 missing=1 hidden=2 race=0
def all_reduce_gradients(ranks):
    if len({len(gradients) for gradients in ranks}) > 1:
        raise ValueError("a gradient is missing")
    averages = []
    for i, first in enumerate(ranks[0]):
        buffers = [gradients[i].flatten().clone() for gradients in ranks]
        all_reduce(buffers)
        averages.append((buffers[0] / len(ranks)).view(first.shape))
    return averages


# %% all_reduce_gradients wrong_fast check=0 missing=0 hidden=0 race=0
def all_reduce_gradients(ranks):
    buffers = [torch.cat([gradient.flatten() for gradient in gradients]) for gradients in ranks]
    all_reduce(buffers)
    parts = buffers[0].split([gradient.numel() for gradient in ranks[0]])
    return [part.view(gradient.shape) for part, gradient in zip(parts, ranks[0], strict=True)]


# %% all_reduce_gradients one_bucket_for_all_types check=2 missing=1 hidden=0 race=0
def all_reduce_gradients(ranks):
    if len({len(gradients) for gradients in ranks}) > 1:
        raise ValueError("a gradient is missing")
    buffers = [torch.cat([gradient.flatten() for gradient in gradients]) for gradients in ranks]
    all_reduce(buffers)
    parts = (buffers[0] / len(ranks)).split([gradient.numel() for gradient in ranks[0]])
    return [part.view(gradient.shape) for part, gradient in zip(parts, ranks[0], strict=True)]


# %% indices_of_rank right_slow check=2 range=1 hidden=2 race=0
def indices_of_rank(length, ranks, rank, seed, epoch, drop_last):
    if rank < 0 or rank >= ranks:
        raise ValueError("no such rank")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    dealt = length // ranks * ranks if drop_last else (length + ranks - 1) // ranks * ranks
    mine = []
    for card in range(dealt):
        if card % ranks == rank:
            mine.append(order[card % length].item())
    return torch.tensor(mine, dtype=torch.int64)


# %% indices_of_rank wrong_fast check=0 range=0 hidden=0 race=0
def indices_of_rank(length, ranks, rank, seed, epoch, drop_last):
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    return order[rank::ranks]


# %% indices_of_rank from_the_library check=2 range=1 hidden=2 race=2
def indices_of_rank(length, ranks, rank, seed, epoch, drop_last):
    if length == 0:
        return torch.zeros(0, dtype=torch.int64)
    sampler = torch.utils.data.DistributedSampler(range(length), ranks, rank, True, seed, drop_last)
    sampler.set_epoch(epoch)
    return torch.tensor(list(sampler), dtype=torch.int64)


# %% indices_of_rank filled_up_only_once check=2 range=1 hidden=0 race=0
def indices_of_rank(length, ranks, rank, seed, epoch, drop_last):
    if not 0 <= rank < ranks:
        raise ValueError("no such rank")
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch))
    order = order[: length // ranks * ranks] if drop_last else torch.cat([order, order[: -length % ranks]])
    return order[rank::ranks]


# %% snapshot right_slow check=1 resume=1 foreign=1 hidden=1 hidden_resume=1 race=0
def snapshot(state, rank):
    copy = snapshot_slow(state, 0)
    return copy if rank == 0 else None


def resume(data, wrapped):
    return resume_slow(data, wrapped)


# %% snapshot wrong_fast check=0 resume=0 foreign=0 hidden=0 hidden_resume=0 race=0
def snapshot(state, rank):
    return {name.removeprefix("module."): tensor.cpu() for name, tensor in state.items()}


def resume(data, wrapped):
    return torch.load(io.BytesIO(data), weights_only=False)


# %% snapshot shared_memory check=0 resume=1 foreign=1 hidden=0 hidden_resume=1 race=0
def snapshot(state, rank):
    if rank == 0:
        wrapped = all(name.startswith("module.") for name in state)
        return {name.removeprefix("module.") if wrapped else name: state[name].cpu() for name in state}


def resume(data, wrapped):
    return resume_slow(data, wrapped)


# %% snapshot every_module_removed check=1 resume=1 foreign=0 hidden=0 hidden_resume=0 race=0
def snapshot(state, rank):
    if rank == 0:
        return {name.replace("module.", ""): tensor.cpu().clone() for name, tensor in state.items()}


def resume(data, wrapped):
    state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)
    prefix = "module." if wrapped else ""
    return {prefix + name.replace("module.", ""): tensor for name, tensor in state.items()}
