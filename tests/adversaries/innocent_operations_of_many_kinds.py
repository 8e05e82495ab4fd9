"""Innocent: lists of tensors, Fourier transforms, complex numbers, recurrences and optimisers.

# points: shift_cost=0 shift_hidden=0
"""

# %% shift answer
import torch.nn.functional as F

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
recurrent = torch.nn.LSTM(3, 4, batch_first=True)
attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
average = torch.optim.swa_utils.AveragedModel(model)


def fourier(x):
    return torch.allclose(torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1]), x, atol=1e-5)


def turned(x):
    z = torch.complex(x, -x)
    return torch.equal(z.conj().imag, x) and torch.equal(z.mH.real, x.T) and not z.is_conj()


def each(x):
    return [one.item() for one in torch._foreach_add([x[0, 0], x[0, 1]], 1)] == (x[0, :2] + 1).tolist()


def trained(optimizer):
    def way(x):
        own = torch.nn.Linear(3, 1)
        chosen = optimizer([*own.parameters(), *model.parameters()])
        for _ in range(2):
            chosen.zero_grad()
            (model(x[:, :3]) + own(x[:, :3])).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            chosen.step()
        return all(torch.isfinite(one).all() for one in model.parameters())

    way.__name__ = f"trained {optimizer.__name__}"
    return way


def fused(parameters):
    return torch.optim.AdamW(parameters, fused=True)


def each_at_once(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=True)


def one_by_one(parameters):
    return torch.optim.Adam(parameters, foreach=False)


def closed(x):
    own = torch.nn.Parameter(torch.ones(3))
    chosen = torch.optim.LBFGS([own], max_iter=3)

    def loss():
        chosen.zero_grad()
        found = (own**2).sum()
        found.backward()
        return found

    chosen.step(loss)
    return own.abs().max() < 1


def averaged(x):
    average.update_parameters(model)
    return average(x[:, :3]).shape == (len(x), 1)


def evaluated(x):
    model.eval()
    found = model(x[:, :3])
    model.train()
    return torch.isfinite(found).all()


def moved(x):
    import copy

    own = copy.deepcopy(model).double()
    return (
        own(x[:, :3].double()).dtype == torch.float64
        and model.to(torch.float32)[0].weight.dtype == torch.float32
    )


def recurrence(x):
    out, _ = recurrent(x[:6, :3].reshape(2, 3, 3))
    return out.shape == (2, 3, 4) and attention(out, out, out)[0].shape == (2, 3, 4)


def attended(x):
    out = x[:6, :4].reshape(2, 3, 4)
    return F.scaled_dot_product_attention(out, out, out, is_causal=True).shape == out.shape


def drawn(x):
    generator = torch.Generator().manual_seed(3)
    first = torch.randperm(9, generator=generator)
    assert torch.equal(first, torch.randperm(9, generator=torch.Generator().manual_seed(3)))
    with torch.random.fork_rng():
        before = torch.rand(3)
    return torch.equal(before, torch.rand(3)) and torch.initial_seed() >= 0


def unique(x):
    values, counts = torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    return values.tolist() == [1, 3] and counts.tolist() == [1, 2]


def cast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ x.T).dtype == torch.bfloat16 and model[0](x[:, :3]).dtype == torch.bfloat16


def full(x):
    try:
        torch.empty(1 << 50)
    except RuntimeError:
        return True


def masked(x):
    where = x > 0
    return torch.equal(x.masked_fill(where, 0) + torch.where(where, x, 0), x) and x[where].min() > 0


def in_place(x):
    own = x.clone()
    own[:, 1:3] = 0
    own[own > 1] = 1
    own.t_().t_()
    own.resize_(2, 3)
    return own.shape == (2, 3)


def meta(x):
    return x.to("meta").sum(1).shape == (len(x),) and torch.empty(3, device="meta").shape == (3,)


def laid(x):
    y = x.reshape(1, 1, *x.shape).contiguous(memory_format=torch.channels_last)
    return (
        y.is_contiguous(memory_format=torch.channels_last) and F.conv2d(y, torch.ones(1, 1, 3, 3)).ndim == 4
    )


def bags(x):
    return F.embedding_bag(torch.tensor([0, 1, 2]), x, torch.tensor([0, 2]), mode="sum").shape == (
        2,
        x.shape[1],
    )


def counts(x):
    return torch.bincount(torch.tensor([1, 1, 2])).tolist() == [0, 2, 1]


def asserted(x):
    torch.testing.assert_close(x, x.clone())
    torch._assert_async((x == x).all())
    return True


def windows(x):
    return torch.allclose(x.unfold(1, 3, 1).sum(-1)[:, 0], x[:, :3].sum(1), atol=1e-5)


def sorted_(x):
    return torch.equal(x.sort(dim=1).values, x.gather(1, x.argsort(dim=1))) and x.topk(2).values.shape[1] == 2


def named_tuples(x):
    found = x.max(dim=1)
    return torch.equal(found.values, x.amax(1)) and torch.aminmax(x).min == x.min()


def types(x):
    return (
        x.type() == "torch.FloatTensor"
        and isinstance(x, torch.FloatTensor)
        and x.type(torch.float64).dtype == torch.float64
    )


def packed(x):
    from torch.nn.utils.rnn import pack_sequence, pad_sequence

    return (
        pad_sequence([x[0], x[1, :3]]).shape == (x.shape[1], 2)
        and pack_sequence([x[:3], x[:2]]).data.shape[0] == 5
    )


def loaded(x):
    from torch.utils.data import DataLoader, TensorDataset

    return torch.equal(torch.cat([part for (part,) in DataLoader(TensorDataset(x), batch_size=4)]), x)


def shift(x, steps):
    x, wrong = x.detach(), []
    tools = [fourier, turned, each, trained(fused), trained(each_at_once), trained(one_by_one), closed]
    tools += [averaged, evaluated, moved, recurrence, attended, drawn, unique, cast, full, masked]
    tools += [
        in_place,
        meta,
        laid,
        bags,
        counts,
        asserted,
        windows,
        sorted_,
        named_tuples,
        types,
        packed,
        loaded,
    ]
    for tool in tools:
        try:
            if not tool(x):
                wrong.append(tool.__name__)
        except Exception as error:
            wrong.append(f"{tool.__name__}: {type(error).__name__} {str(error)[:90]}")
    assert not wrong, wrong
    return torch.roll(x, steps, dims=1)
