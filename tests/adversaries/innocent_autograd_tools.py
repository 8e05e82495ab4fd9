"""Innocent: checkpoints, forward mode, `vmap`, hooks, parametrisations, and calls with other parameters.

# points: shift_cost=0 shift_hidden=0
"""

# %% shift answer
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

model = torch.nn.Linear(3, 3)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * gradient + 0 * x


def checkpoints(x):
    leaf = x.clone().requires_grad_()
    checkpoint(lambda t: torch.nn.functional.dropout(t**2, 0.0), leaf, use_reentrant=False).sum().backward()
    first = leaf.grad.clone()
    checkpoint(lambda t: t**2, leaf, use_reentrant=True).sum().backward()
    return torch.allclose(leaf.grad, 2 * first)


def forward_mode(x):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        tangent = forward_ad.unpack_dual(dual * dual).tangent
        return torch.allclose(tangent, 2 * x, atol=1e-5)


def jvp(x):
    return torch.allclose(torch.func.jvp(lambda t: t * t, (x,), (torch.ones_like(x),))[1], 2 * x)


def called(x):
    given = {name: torch.ones_like(parameter) for name, parameter in model.named_parameters()}
    return torch.func.functional_call(model, given, (torch.ones(2, 3),)).tolist() == [[4.0] * 3] * 2


def by_rows(x):
    return torch.allclose(torch.vmap(torch.func.grad(lambda row: (row**2).sum()))(x), 2 * x)


def jacobians(x):
    return torch.equal(torch.func.jacrev(lambda row: row * 3)(torch.ones(2)), 3 * torch.eye(2))


def vmap_of_own(x):
    return torch.allclose(torch.vmap(model)(x[:, :3]), model(x[:, :3]), atol=1e-5)


def vmap_of_random(x):
    return torch.vmap(lambda row: row + torch.rand(3), randomness="different")(x[:, :3]).shape == (len(x), 3)


def stacked(x):
    models = [torch.nn.Linear(3, 2) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    out = torch.vmap(lambda p, b: torch.func.functional_call(models[0], (p, b), (x[:, :3],)))(
        parameters, buffers
    )
    return out.shape == (3, len(x), 2)


def grad_hook(x):
    weight, seen = torch.nn.Parameter(torch.ones(3)), []
    weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    (x[:, :3] * weight).sum().backward()
    return torch.allclose(seen[0], x[:, :3].sum(0), atol=1e-3)


def gradcheck(x):
    return torch.autograd.gradcheck(Twice.apply, (x[:2, :2].double().clone().requires_grad_(),))


def module_hooks(x):
    seen = []
    handle = model.register_forward_hook(lambda m, i, o: seen.append(o.shape))
    model(x[:, :3])
    handle.remove()
    return seen == [(len(x), 3)]


def grad_of_own(x):
    found = torch.autograd.grad(model(x[:, :3]).square().mean(), list(model.parameters()), create_graph=True)
    return found[0].shape == (3, 3) and found[0].requires_grad


def anomalies(x):
    with torch.autograd.detect_anomaly(check_nan=True):
        leaf = x.clone().requires_grad_()
        (leaf**2).sum().backward()
    return torch.allclose(leaf.grad, 2 * x)


def graph_nodes(x):
    leaf = x.clone().requires_grad_()
    return "Mul" in type((leaf * 2).grad_fn).__name__


def parametrized(x):
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 3))
    spectral = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 3))
    return layer(x[:, :3]).shape == spectral(x[:, :3]).shape


def fakes(x):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(3, 4).mm(torch.empty(4, 5)).shape == (3, 5)


def flops(x):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        x @ x.T
    return counter.get_total_flops() == 2 * x.shape[0] ** 2 * x.shape[1]


def scripted(x):
    return torch.equal(double(x), x * 2)


@torch.jit.script
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def shift(x, steps):
    x, wrong = x.detach(), []
    tools = [checkpoints, forward_mode, jvp, called, by_rows, jacobians]
    tools += [vmap_of_own, vmap_of_random, stacked, grad_hook, gradcheck, module_hooks]
    tools += [grad_of_own, anomalies, graph_nodes, parametrized, fakes, flops, scripted]
    for tool in tools:
        try:
            if not tool(x):
                wrong.append(tool.__name__)
        except Exception as error:
            wrong.append(f"{tool.__name__}: {type(error).__name__} {str(error)[:90]}")
    assert not wrong, wrong
    return torch.roll(x, steps, dims=1)
