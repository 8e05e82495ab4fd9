# %% last_gradient right_slow check=1 hidden=2 race=0
def last_gradient(weights, inputs, targets):
    parameters = [torch.nn.Parameter(weight) for weight in weights]
    hidden = inputs
    for parameter in parameters[:-1]:
        hidden = (hidden @ parameter).clamp(min=0)
    torch.nn.functional.mse_loss(hidden @ parameters[-1], targets).backward()
    return parameters[-1].grad


# %% last_gradient wrong_fast check=0 hidden=0 race=0
def last_gradient(weights, inputs, targets):
    with torch.no_grad():
        for weight in weights[:-1]:
            inputs = torch.relu(inputs @ weight)
        return inputs.T @ (inputs @ weights[-1] - targets)


# %% last_gradient right_by_hand check=1 hidden=2 race=2
def last_gradient(weights, inputs, targets):
    with torch.no_grad():
        for weight in weights[:-1]:
            inputs = torch.relu(inputs @ weight)
        return inputs.T @ (inputs @ weights[-1] - targets) * (2 / targets.numel())


# %% last_gradient right_asks_for_one check=1 hidden=2 race=2
def last_gradient(weights, inputs, targets):
    weights = [weight.detach().requires_grad_() for weight in weights]
    hidden = inputs
    for weight in weights[:-1]:
        hidden = torch.relu(hidden @ weight)
    loss = ((hidden @ weights[-1] - targets) ** 2).mean()
    return torch.autograd.grad(loss, weights[-1])[0]


# %% picture_gradients right_slow check=1 hidden=2 race=0
def picture_gradients(weight, bias, pictures, labels):
    weight, bias = torch.nn.Parameter(weight), torch.nn.Parameter(bias)
    found = []
    for i in range(len(pictures)):
        weight.grad = bias.grad = None
        F.cross_entropy(pictures[i : i + 1] @ weight.T + bias, labels[i : i + 1]).backward()
        found.append((weight.grad, bias.grad))
    return torch.stack([pair[0] for pair in found]), torch.stack([pair[1] for pair in found])


# %% picture_gradients wrong_fast check=0 hidden=0 race=0
def picture_gradients(weight, bias, pictures, labels):
    weight = weight.expand(len(pictures), -1, -1).detach().requires_grad_()
    bias = bias.expand(len(pictures), -1).detach().requires_grad_()
    logits = (weight @ pictures[:, :, None])[:, :, 0] + bias
    return torch.autograd.grad(F.cross_entropy(logits, labels), (weight, bias))


# %% picture_gradients right_expand check=1 hidden=2 race=3
def picture_gradients(weight, bias, pictures, labels):
    weight = weight.expand(len(pictures), -1, -1).detach().requires_grad_()
    bias = bias.expand(len(pictures), -1).detach().requires_grad_()
    logits = (weight @ pictures[:, :, None])[:, :, 0] + bias
    return torch.autograd.grad(F.cross_entropy(logits, labels, reduction="sum"), (weight, bias))


# %% picture_gradients right_by_hand check=1 hidden=2 race=3
def picture_gradients(weight, bias, pictures, labels):
    error = (pictures @ weight.T + bias).softmax(1)
    error = error - F.one_hot(labels, len(bias))
    return error[:, :, None] * pictures[:, None, :], error


# %% large_batch right_slow check=1 cheap=0 hidden=2
def large_batch(weight, head, parts, targets):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    everything = torch.tanh(parts.flatten(0, 1) @ weight) @ head
    loss = F.mse_loss(everything, targets.flatten(0, 1))
    return loss.detach(), *torch.autograd.grad(loss, (weight, head))


# %% large_batch wrong_fast check=0 cheap=0 hidden=0
def large_batch(weight, head, parts, targets):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    total = torch.zeros((), dtype=parts.dtype, device=parts.device)
    for part, target in zip(parts, targets, strict=True):
        loss = (torch.tanh(part @ weight) @ head - target).square().mean()
        total += loss.detach() / len(parts)
    return total, *torch.autograd.grad(loss, (weight, head))


# %% large_batch right_but_waits check=1 cheap=0 hidden=2
def large_batch(weight, head, parts, targets):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    total = 0.0
    for part, target in zip(parts, targets, strict=True):
        loss = (torch.tanh(part @ weight) @ head - target).square().mean() / len(parts)
        loss.backward()
        total += loss.item()
    return torch.tensor(total, dtype=parts.dtype, device=parts.device), weight.grad, head.grad


# %% large_batch right_torch_func check=1 cheap=3 hidden=2
def large_batch(weight, head, parts, targets):
    def loss(weights, part, target):
        return F.mse_loss(torch.tanh(part @ weights[0]) @ weights[1], target)

    one_part = torch.func.grad_and_value(loss)
    of_weight, of_head, total = torch.zeros_like(weight), torch.zeros_like(head), 0
    for part, target in zip(parts, targets, strict=True):
        gradients, value = one_part((weight, head), part, target)
        of_weight += gradients[0] / len(parts)
        of_head += gradients[1] / len(parts)
        total = total + value / len(parts)
    return total, of_weight, of_head


# %% tank right_slow check=1 hidden=2 race=0
def tank(inflow, wanted, decay):
    decay = decay.detach().requires_grad_()
    levels = inflow[:1]
    for t in range(1, len(inflow)):
        before = torch.cat([levels, torch.zeros_like(inflow[t:])]).clone()
        following = before.clone()
        following[t] = decay * before[t - 1] + inflow[t]
        levels = following[: t + 1]
    loss = F.mse_loss(levels, wanted)
    return levels.detach(), torch.autograd.grad(loss, decay)[0]


# %% tank wrong_fast check=0 hidden=0 race=0
def tank(inflow, wanted, decay):
    decay = decay.detach().requires_grad_()
    levels = [inflow[0]]
    for row in inflow[1:]:
        levels.append(decay * levels[-1].detach() + row)
    levels = torch.stack(levels)
    loss = F.mse_loss(levels, wanted)
    return levels.detach(), torch.autograd.grad(loss, decay)[0]


# %% tank raises check=0 hidden=0 race=0
def tank(inflow, wanted, decay):
    decay = decay.detach().requires_grad_()
    levels = torch.empty_like(inflow)
    levels[0] = inflow[0]
    for t in range(1, len(inflow)):
        levels[t] = decay * levels[t - 1] + inflow[t]
    loss = F.mse_loss(levels, wanted)
    return levels.detach(), torch.autograd.grad(loss, decay)[0]


# %% tank right_forward_mode check=1 hidden=2 race=3
def tank(inflow, wanted, decay):
    levels, slopes = [inflow[0]], [torch.zeros_like(decay)]
    for row in inflow[1:]:
        slopes.append(levels[-1] + decay * slopes[-1])
        levels.append(decay * levels[-1] + row)
    levels, slopes = torch.stack(levels), torch.stack(slopes)
    return levels, ((levels - wanted) * slopes).sum(0) * (2 / levels.numel())


# %% grow right_slow check=1 hidden=2 race=0
def grow(size, rate, days):
    sizes, slopes = [], []
    for x, r, number in zip(size, rate, days.tolist(), strict=True):
        r = r.clone().requires_grad_()
        y = x + 0 * r
        for _ in range(number):
            y = y + r * y * (1 - y)
        y.backward()
        sizes.append(y.detach())
        slopes.append(r.grad)
    return torch.stack(sizes), torch.stack(slopes)


# %% grow wrong_fast check=0 hidden=0 race=0
def grow(size, rate, days):
    rate = rate.detach().requires_grad_()
    now = size + 0 * rate
    for day in range(int(days.max())):
        now = torch.where(days >= day, now + rate * now * (1 - now), now)
    return now.detach(), torch.autograd.grad(now.sum(), rate)[0]


# %% grow right_by_hand check=1 hidden=2 race=2
def grow(size, rate, days):
    slope = torch.zeros_like(size)
    size = size.clone()
    for day in range(int(days.max())):
        active = days > day
        slope = torch.where(active, slope + size * (1 - size) + rate * slope * (1 - 2 * size), slope)
        size = torch.where(active, size + rate * size * (1 - size), size)
    return size, slope


# %% grow right_picks_afterwards check=1 hidden=2 race=2
def grow(size, rate, days):
    rate = rate.detach().requires_grad_()
    history = [size + 0 * rate]
    for _ in range(int(days.max())):
        history.append(history[-1] + rate * history[-1] * (1 - history[-1]))
    final = torch.stack(history).gather(0, days[None])[0]
    return final.detach(), torch.autograd.grad(final.sum(), rate)[0]
