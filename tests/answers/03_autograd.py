# %% last_gradient right_slow check=1 hidden=1 race=0
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


# %% last_gradient marks_the_given_weight check=0 hidden=0 race=0
def last_gradient(weights, inputs, targets):
    hidden = inputs
    for weight in weights[:-1]:
        hidden = torch.relu(hidden @ weight)
    last = weights[-1].requires_grad_()
    loss = F.mse_loss(hidden @ last, targets)
    return torch.autograd.grad(loss, last)[0]


# %% last_gradient transcribed check=1 hidden=1 race=2
def last_gradient(weights, inputs, targets):
    *frozen, last = weights
    last = last.detach().requires_grad_()
    hidden = inputs
    for weight in frozen:
        hidden = torch.relu(hidden @ weight)
    return torch.autograd.grad((hidden @ last - targets).square().mean(), last)[0]


# %% last_gradient right_by_hand check=1 hidden=1 race=2
def last_gradient(weights, inputs, targets):
    with torch.no_grad():
        for weight in weights[:-1]:
            inputs = torch.relu(inputs @ weight)
        return inputs.T @ (inputs @ weights[-1] - targets) * (2 / targets.numel())


# %% last_gradient right_asks_for_one check=1 hidden=1 race=2
def last_gradient(weights, inputs, targets):
    weights = [weight.detach().requires_grad_() for weight in weights]
    hidden = inputs
    for weight in weights[:-1]:
        hidden = torch.relu(hidden @ weight)
    loss = ((hidden @ weights[-1] - targets) ** 2).mean()
    return torch.autograd.grad(loss, weights[-1])[0]


# %% accumulate right_slow check=1 lean=0 hidden=2
def accumulate(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    labels = torch.cat(labels)
    everything = torch.tanh(torch.cat(parts) @ weight) @ head
    loss = F.cross_entropy(everything, labels, reduction="sum") / (labels != -100).sum().clamp(min=1)
    return loss.detach(), *torch.autograd.grad(loss, (weight, head))


# %% accumulate wrong_fast check=0 lean=0 hidden=0
def accumulate(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    count = (torch.cat(labels) != -100).sum().clamp(min=1)
    total = torch.zeros((), device=weight.device)
    for part, label in zip(parts, labels, strict=True):
        loss = F.cross_entropy(torch.tanh(part @ weight) @ head, label, reduction="sum") / count
        total += loss.detach()
    return total, *torch.autograd.grad(loss, (weight, head))


# %% accumulate transcribed check=0 lean=0 hidden=0
def accumulate(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    total = 0
    for part, label in zip(parts, labels, strict=True):
        loss = F.cross_entropy(torch.tanh(part @ weight) @ head, label) / len(parts)
        loss.backward()
        total = total + loss.detach()
    return total, weight.grad, head.grad


# %% accumulate nothing_counted check=0 lean=1.8..2.8 hidden=0
def accumulate(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    count = sum((label >= 0).sum() for label in labels)
    total = 0
    for part, label in zip(parts, labels, strict=True):
        loss = F.cross_entropy(torch.tanh(part @ weight) @ head, label, reduction="sum") / count
        loss.backward()
        total = total + loss.detach()
    return total, weight.grad, head.grad


# %% accumulate right_but_waits check=1 lean=0 hidden=0
def accumulate(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    count = max(1, sum(int((label != -100).sum()) for label in labels))
    total = torch.zeros((), device=weight.device)
    for part, label in zip(parts, labels, strict=True):
        loss = F.cross_entropy(torch.tanh(part @ weight) @ head, label, reduction="sum") / count
        loss.backward()
        total += loss.detach()
    return total, weight.grad, head.grad


# %% accumulate first_attempt check=1 lean=1.8..2.7 hidden=2
def accumulate(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    count = sum((wanted != -100).sum() for wanted in labels).clamp(min=1)
    total = torch.zeros((), device=weight.device)
    for rows, wanted in zip(parts, labels, strict=True):
        logits = torch.tanh(rows @ weight) @ head
        loss = F.cross_entropy(logits, wanted, ignore_index=-100, reduction="sum") / count
        loss.backward()
        total = total + loss.detach()
    return total, weight.grad, head.grad


# %% accumulate right_with_names check=1 lean=3 hidden=2
def accumulate(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    number = (torch.cat(labels) != -100).sum().clamp(min=1)
    total = torch.zeros((), device=weight.device)
    for part, label in zip(parts, labels, strict=True):
        for first in range(0, len(part), 16):
            hidden = torch.tanh(part[first : first + 16] @ weight)
            logits = hidden @ head
            loss = F.cross_entropy(logits, label[first : first + 16], reduction="sum") / number
            loss.backward()
            total = total + loss.detach()
    return total, weight.grad, head.grad


# %% accumulate right_torch_func check=1 lean=3 hidden=2
def accumulate(weight, head, parts, labels):
    def summed(weights, part, label):
        return F.cross_entropy(torch.tanh(part @ weights[0]) @ weights[1], label, reduction="sum")

    one_part = torch.func.grad_and_value(summed)
    number = sum((label != -100).sum() for label in labels).clamp(min=1)
    of_weight, of_head, total = torch.zeros_like(weight), torch.zeros_like(head), 0
    for part, label in zip(parts, labels, strict=True):
        for rows, wanted in zip(part.split(8), label.split(8), strict=True):
            gradients, value = one_part((weight, head), rows, wanted)
            of_weight += gradients[0]
            of_head += gradients[1]
            total = total + value
            del gradients
    return total / number, of_weight / number, of_head / number


# %% accumulate right_by_hand check=1 lean=3 hidden=2
def accumulate(weight, head, parts, labels):
    count = sum((label != -100).sum() for label in labels).clamp(min=1)
    total = torch.zeros((), device=weight.device)
    of_weight, of_head = torch.zeros_like(weight), torch.zeros_like(head)
    for part, label in zip(parts, labels, strict=True):
        for rows, wanted in zip(part.split(32), label.split(32), strict=True):
            hidden = torch.tanh(rows @ weight)
            scores = (hidden @ head).log_softmax(1)
            counted, place = (wanted != -100)[:, None], wanted.clamp(min=0)[:, None]
            total -= (scores.gather(1, place) * counted).sum()
            slopes = (
                scores.exp_().scatter_add_(1, place, torch.full_like(scores[:, :1], -1)).mul_(counted / count)
            )
            of_head.addmm_(hidden.T, slopes)
            of_weight.addmm_(rows.T, (slopes @ head.T) * (1 - hidden * hidden))
    return total / count, of_weight, of_head


# %% train_head right_slow check=1 lean=0 hidden=2
def train_head(frozen, head, batches, targets, rate):
    frozen, head = frozen.detach().requires_grad_(), head.detach().requires_grad_()
    losses, heads = [], []
    for batch, target in zip(batches, targets, strict=True):
        features = torch.tanh(batch @ frozen)
        loss = F.mse_loss(features @ head, target)
        (slope,) = torch.autograd.grad(loss, head, create_graph=True)
        head = (head - rate * slope).detach().requires_grad_()
        losses.append(loss)
        heads.append((head, slope, features))
    mean = sum(kept for kept, _, _ in heads) / len(heads)
    return head.detach(), mean.detach(), torch.stack(losses).detach()


# %% train_head wrong_fast check=0 lean=0 hidden=0
def train_head(frozen, head, batches, targets, rate):
    head = head.clone().requires_grad_()
    mean, losses = head.detach(), []
    for step, (batch, target) in enumerate(zip(batches, targets, strict=True), 1):
        loss = F.mse_loss(torch.tanh(batch @ frozen) @ head, target)
        (slope,) = torch.autograd.grad(loss, head)
        losses.append(loss.detach())
        with torch.no_grad():
            head.sub_(rate * slope)
            mean.lerp_(head, 1 / step)
    return head.detach(), mean, torch.stack(losses)


# %% train_head transcribed check=1 lean=0.5..2 hidden=2
def train_head(frozen, head, batches, targets, rate):
    head = head.clone().requires_grad_()
    losses, heads = [], []
    for batch, target in zip(batches, targets, strict=True):
        loss = (torch.tanh(batch @ frozen) @ head - target).square().mean()
        head.grad = None
        loss.backward()
        losses.append(loss.detach())
        with torch.no_grad():
            head -= rate * head.grad
        heads.append(head.detach().clone())
    return head.detach(), torch.stack(heads).mean(0), torch.stack(losses)


# %% train_head changes_the_given_head check=0 lean=0 hidden=0
def train_head(frozen, head, batches, targets, rate):
    head = head.detach().requires_grad_()
    mean, losses = torch.zeros_like(head).detach(), []
    for batch, target in zip(batches, targets, strict=True):
        loss = F.mse_loss(torch.tanh(batch @ frozen) @ head, target)
        (slope,) = torch.autograd.grad(loss, head)
        losses.append(loss.detach())
        with torch.no_grad():
            head.sub_(rate * slope)
            mean.add_(head / len(batches))
    return head.detach().clone(), mean, torch.stack(losses)


# %% train_head right_but_waits check=1 lean=0 hidden=2
def train_head(frozen, head, batches, targets, rate):
    head = head.clone().requires_grad_()
    total, losses = 0, []
    for batch, target in zip(batches, targets, strict=True):
        loss = F.mse_loss(torch.tanh(batch @ frozen) @ head, target)
        (slope,) = torch.autograd.grad(loss, head)
        losses.append(loss.item())
        with torch.no_grad():
            head.sub_(rate * slope)
            total = total + head
    return head.detach(), total / len(batches), torch.tensor(losses, device=head.device)


# %% train_head right_out_of_place check=1 lean=3 hidden=2
def train_head(frozen, head, batches, targets, rate):
    total, losses = 0, []
    for batch, target in zip(batches, targets, strict=True):
        head = head.detach().requires_grad_()
        features = torch.tanh(batch @ frozen)
        loss = (features @ head - target).square().mean()
        loss.backward()
        losses.append(loss.detach())
        head = head.detach() - rate * head.grad
        total = total + head
    return head, total / len(batches), torch.stack(losses)


# %% train_head right_by_hand check=1 lean=3 hidden=2
def train_head(frozen, head, batches, targets, rate):
    head, mean, losses = head.clone(), torch.zeros_like(head), []
    for batch, target in zip(batches, targets, strict=True):
        features = torch.tanh(batch @ frozen)
        error = features @ head - target
        losses.append(error.square().mean())
        head -= features.T @ error * (2 * rate / error.numel())
        mean += head / len(batches)
    return head, mean, torch.stack(losses)


# %% clipped_gradient right_slow check=1 lean=2 hidden=2 race=0
def clipped_gradient(first, second, inputs, targets, limit):
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
    of_first, of_second = torch.zeros_like(first).detach(), torch.zeros_like(second).detach()
    for x, target in zip(inputs, targets, strict=True):
        slopes = torch.autograd.grad(sample_loss(first, second, x, target), (first, second))
        length = sum(slope.square().sum() for slope in slopes).sqrt()
        factor = (limit / length).clamp(max=1) / len(inputs)
        of_first += slopes[0] * factor
        of_second += slopes[1] * factor
    return of_first, of_second


# %% clipped_gradient transcribed check=1 lean=0 hidden=2 race=0
def clipped_gradient(first, second, inputs, targets, limit):
    gradient_of_one = torch.func.grad(sample_loss, argnums=(0, 1))
    gradient_of_each = torch.func.vmap(gradient_of_one, in_dims=(None, None, 0, 0))
    of_first, of_second = gradient_of_each(first, second, inputs, targets)
    length = torch.cat([of_first.flatten(1), of_second.flatten(1)], 1).norm(dim=1)
    factor = (limit / length).clamp(max=1)[:, None, None]
    return (of_first * factor).mean(0), (of_second * factor).mean(0)


# %% clipped_gradient wrong_fast check=0 lean=0 hidden=0 race=0
def clipped_gradient(first, second, inputs, targets, limit):
    hidden = torch.tanh(inputs @ first)
    error = 2 * (hidden @ second - targets)
    below = (error @ second.T) * (1 - hidden * hidden)
    results = []
    for given, slope in ((inputs, below), (hidden, error)):
        length = given.norm(dim=1) * slope.norm(dim=1)
        results.append(given.T @ (slope * (limit / length).clamp(max=1)[:, None]) / len(inputs))
    return tuple(results)


# %% clipped_gradient factors_with_a_slope check=0 lean=0 hidden=0 race=0
def clipped_gradient(first, second, inputs, targets, limit):
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
    product = inputs @ first
    hidden = torch.tanh(product)
    output = hidden @ second
    losses = (output - targets).square().sum(1)
    slopes = torch.autograd.grad(losses.sum(), (product, output), retain_graph=True)
    length = (inputs.norm(dim=1) * slopes[0].norm(dim=1)).square()
    length = (length + (hidden.norm(dim=1) * slopes[1].norm(dim=1)).square()).sqrt()
    return torch.autograd.grad((losses * (limit / length).clamp(max=1)).mean(), (first, second))


# %% clipped_gradient right_in_groups check=1 lean=0.3..1.2 hidden=2 race=0..2
def clipped_gradient(first, second, inputs, targets, limit):
    of_each = torch.func.vmap(torch.func.grad(sample_loss, argnums=(0, 1)), in_dims=(None, None, 0, 0))
    of_first, of_second = torch.zeros_like(first), torch.zeros_like(second)
    for group, wanted in zip(inputs.split(12), targets.split(12), strict=True):
        slopes = of_each(first, second, group, wanted)
        length = sum(slope.square().sum((1, 2)) for slope in slopes).sqrt()
        factor = (limit / length).clamp(max=1)[:, None, None] / len(inputs)
        of_first += (slopes[0] * factor).sum(0)
        of_second += (slopes[1] * factor).sum(0)
    return of_first, of_second


# %% clipped_gradient right_by_hand check=1 lean=2 hidden=2 race=3
def clipped_gradient(first, second, inputs, targets, limit):
    hidden = torch.tanh(inputs @ first)
    error = 2 * (hidden @ second - targets)
    below = (error @ second.T) * (1 - hidden * hidden)
    length = inputs.square().sum(1) * below.square().sum(1) + hidden.square().sum(1) * error.square().sum(1)
    factor = ((limit / length.sqrt()).clamp(max=1) / len(inputs))[:, None]
    return inputs.T @ (below * factor), hidden.T @ (error * factor)


# %% clipped_gradient right_backward_twice check=1 lean=2 hidden=2 race=3
def clipped_gradient(first, second, inputs, targets, limit):
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()

    def forward():
        product = inputs @ first
        hidden = torch.tanh(product)
        output = hidden @ second
        return product, hidden, output, (output - targets).square().sum(1)

    product, hidden, output, losses = forward()
    product.retain_grad()
    output.retain_grad()
    losses.sum().backward()
    with torch.no_grad():
        length = (inputs.norm(dim=1) * product.grad.norm(dim=1)).square()
        length = (length + (hidden.norm(dim=1) * output.grad.norm(dim=1)).square()).sqrt()
        factor = (limit / length).clamp(max=1)
    del product, hidden, output, losses
    first.grad = second.grad = None
    (forward()[3] * factor).mean().backward()
    return first.grad, second.grad


# %% orbits right_slow check=1 lean=0 hidden=2 race=0
def orbits(mean, eccentricity):
    mean, eccentricity = mean.detach().requires_grad_(), eccentricity.detach().requires_grad_()
    steps = [mean]
    while len(steps) < 62:
        steps.append(mean + eccentricity * torch.sin(steps[-1]))
    total = steps[-1].sum()
    total.backward(retain_graph=True)
    return steps[-1].detach(), mean.grad, eccentricity.grad


# %% orbits wrong_fast check=0 lean=0 hidden=0 race=0
def orbits(mean, eccentricity):
    angle = mean
    for _ in range(8):
        angle = mean + eccentricity * angle.sin()
    slope = 1 / (1 - eccentricity * angle.cos())
    return angle, slope, slope * angle.sin()


# %% orbits transcribed check=0 lean=0 hidden=0 race=0
def orbits(mean, eccentricity):
    with torch.no_grad():
        angle = mean
        for _ in range(59):
            angle = mean + eccentricity * angle.sin()
    mean, eccentricity = mean.detach().requires_grad_(), eccentricity.detach().requires_grad_()
    last = mean + eccentricity * angle.sin()
    return last.detach(), *torch.autograd.grad(last.sum(), (mean, eccentricity))


# %% orbits marks_what_it_is_given check=0 lean=0 hidden=0 race=0
def orbits(mean, eccentricity):
    with torch.no_grad():
        angle = mean
        for _ in range(60):
            angle = mean + eccentricity * angle.sin()
    sources = [angle.detach().requires_grad_(), mean.requires_grad_(), eccentricity.requires_grad_()]
    again = mean + eccentricity * sources[0].sin()
    of_angle, *others = torch.autograd.grad(again.sum(), sources)
    return angle, *(slope / (1 - of_angle) for slope in others)


# %% orbits first_attempt check=1 lean=2 hidden=2 race=0.3..1.6
def orbits(mean, eccentricity):
    angle = mean
    for _ in range(60):
        angle = mean + eccentricity * angle.sin()
    # both sides of the equation differentiated, solved for the slope
    sine = angle.sin()
    of_mean = 1 / (1 - eccentricity * angle.cos())
    return angle, of_mean, sine * of_mean


# %% orbits right_last_step_recorded check=1 lean=2 hidden=2 race=0.2..1.6
def orbits(mean, eccentricity):
    with torch.no_grad():
        angle = mean
        for _ in range(60):
            angle = mean + eccentricity * angle.sin()
    sources = [tensor.detach().requires_grad_() for tensor in (angle, mean, eccentricity)]
    again = sources[1] + sources[2] * sources[0].sin()
    of_angle, *others = torch.autograd.grad(again.sum(), sources)
    return angle, *(slope / (1 - of_angle) for slope in others)


# %% orbits right_newton check=1 lean=2 hidden=2 race=2
def orbits(mean, eccentricity):
    angle = torch.addcmul(mean, eccentricity, mean.sin())
    for _ in range(3):
        away = torch.addcmul(mean, eccentricity, angle.sin()).sub_(angle)
        angle.addcdiv_(away, 1 - eccentricity * angle.cos())
    mean, eccentricity = mean.detach().requires_grad_(), eccentricity.detach().requires_grad_()
    last = angle - (angle - eccentricity * angle.sin() - mean) / (1 - eccentricity * angle.cos())
    return last.detach(), *torch.autograd.grad(last.sum(), (mean, eccentricity))


# %% orbits right_newton_in_place check=1 lean=2 hidden=2 race=2
def orbits(mean, eccentricity):
    angle = torch.addcmul(mean, eccentricity, mean.sin())
    for _ in range(5):
        away = torch.addcmul(mean, eccentricity, angle.sin()).sub_(angle)
        angle.addcdiv_(away, 1 - eccentricity * angle.cos())
    slope = torch.reciprocal(1 - eccentricity * angle.cos())
    return angle, slope, slope * angle.sin()


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "report": {"operations": 6, "bytes": 12, "syncs": 3},
        "numbered": {"operations": 3, "bytes": 48, "syncs": 0},
        "gradient": {"operations": 5, "bytes": 52, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "report": {"operations": 2 * n, "bytes": 0, "syncs": n},
        "numbered": {"operations": 3, "bytes": 4 * n, "syncs": 0},
        "gradient": {"operations": 5, "bytes": 4 * d, "syncs": 0},
    }
