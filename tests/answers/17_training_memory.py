# %% train_gradients right_slow check=1 lean=0..0.5 hidden=2
def train_gradients(x, body, head, labels, z):
    body, head = body.detach().requires_grad_(), head.detach().requires_grad_()
    hidden = torch.tanh(x @ body)
    scores = (hidden - hidden.mean(0)) @ head.T
    number = (labels != -100).sum().clamp(min=1)
    loss = F.cross_entropy(scores, labels, reduction="sum") / number
    loss = loss + z * (scores.logsumexp(1).square() * (labels != -100)).sum() / number
    loss.backward()
    return loss.detach(), body.grad, head.grad


# %% train_gradients wrong_fast check=0 lean=0 hidden=0
def train_gradients(x, body, head, labels, z):
    body, head = body.detach().requires_grad_(), head.detach().requires_grad_()
    number, total = (labels != -100).sum().clamp(min=1), 0
    for rows, wanted in zip(x.split(16), labels.split(16), strict=True):
        hidden = torch.tanh(rows @ body)
        scores = (hidden - hidden.mean(0)) @ head.T
        loss = F.cross_entropy(scores, wanted, reduction="sum") / number
        loss = loss + z * (scores.logsumexp(1).square() * (wanted != -100)).sum() / number
        loss.backward()
        total = total + loss.detach()
    return total, body.grad, head.grad


# %% train_gradients transcribed check=0 lean=0 hidden=0
def train_gradients(x, body, head, labels, z, size=64):
    hidden = torch.tanh(x @ body)
    head = head.detach().requires_grad_()
    total, of_hidden, of_head = 0, torch.empty_like(hidden), torch.zeros_like(head)
    for first in range(0, len(labels), size):
        rows = hidden[first : first + size].detach().requires_grad_()
        wanted = labels[first : first + size]
        loss = F.cross_entropy(rows @ head.T, wanted, reduction="sum") / len(labels)
        of_rows, more = torch.autograd.grad(loss, (rows, head))
        of_hidden[first : first + size] = of_rows
        of_head += more
        del more
        total = total + loss.detach()
    return total, of_hidden, of_head


# %% train_gradients mean_of_means check=0 lean=0 hidden=0
def train_gradients(x, body, head, labels, z):
    body, head = body.detach().requires_grad_(), head.detach().requires_grad_()
    hidden = torch.tanh(x @ body)
    hidden = hidden - hidden.mean(0)
    rows = hidden.detach().requires_grad_()
    pieces, total = rows.split(8), 0
    for piece, wanted in zip(pieces, labels.split(8), strict=True):
        scores = piece @ head.T
        counted = (wanted != -100).sum().clamp(min=1)
        loss = F.cross_entropy(scores, wanted, reduction="sum") / counted
        loss = (loss + z * (scores.logsumexp(1).square() * (wanted != -100)).sum() / counted) / len(pieces)
        loss.backward(retain_graph=True)
        total = total + loss.detach()
    return total, torch.autograd.grad(hidden, body, rows.grad)[0], head.grad


# %% train_gradients large_chunks check=1 lean=1.6..2.5 hidden=2
def train_gradients(x, body, head, labels, z):
    body, head = body.detach().requires_grad_(), head.detach().requires_grad_()
    hidden = torch.tanh(x @ body)
    hidden = hidden - hidden.mean(0)
    rows = hidden.detach().requires_grad_()
    number, total = (labels != -100).sum().clamp(min=1), 0
    for first in range(0, len(labels), 64):
        wanted = labels[first : first + 64]
        scores = rows[first : first + 64] @ head.T
        loss = F.cross_entropy(scores, wanted, reduction="sum") / number
        loss = loss + z * (scores.logsumexp(1).square() * (wanted != -100)).sum() / number
        loss.backward()
        total = total + loss.detach()
    return total, torch.autograd.grad(hidden, body, rows.grad)[0], head.grad


# %% train_gradients waits_for_each_chunk check=1 lean=0 hidden=0
def train_gradients(x, body, head, labels, z):
    body, head = body.detach().requires_grad_(), head.detach().requires_grad_()
    hidden = torch.tanh(x @ body)
    hidden = hidden - hidden.mean(0)
    rows = hidden.detach().requires_grad_()
    number, total = max(1, (labels != -100).sum().item()), 0.0
    for first in range(0, len(labels), 8):
        wanted = labels[first : first + 8]
        scores = rows[first : first + 8] @ head.T
        loss = F.cross_entropy(scores, wanted, reduction="sum") / number
        loss = loss + z * (scores.logsumexp(1).square() * (wanted != -100)).sum() / number
        loss.backward()
        total += loss.item()
    return torch.tensor(total, device=x.device), torch.autograd.grad(hidden, body, rows.grad)[0], head.grad


# %% train_gradients right_by_hand check=1 lean=3 hidden=2
def train_gradients(x, body, head, labels, z):
    bent = torch.tanh(x @ body)
    hidden = bent - bent.mean(0)
    number = (labels != -100).sum().clamp(min=1)
    loss = torch.zeros((), device=x.device)
    slopes, of_head = torch.empty_like(hidden), torch.zeros_like(head)
    for first in range(0, len(labels), 16):
        piece = slice(first, first + 16)
        counts = (labels[piece] != -100)[:, None] / number
        place = labels[piece].clamp(min=0)[:, None]
        scores = hidden[piece] @ head.T
        logs = scores.logsumexp(1, keepdim=True)
        loss += ((logs - scores.gather(1, place) + z * logs.square()) * counts).sum()
        scores = scores.sub_(logs).exp_().mul_((1 + 2 * z * logs) * counts)
        scores.scatter_add_(1, place, -counts)
        slopes[piece] = scores @ head
        of_head.addmm_(scores.T, hidden[piece])
    slopes = (slopes - slopes.mean(0)) * (1 - bent * bent)
    return loss, x.T @ slopes, of_head


# %% biased_relus right_slow check=1 lean=0..0.4 hidden=2
def biased_relus(x, biases):
    for bias in biases:
        x = (x + bias).clamp(min=0)
    return x


# %% biased_relus wrong_fast check=0 lean=0 hidden=0
def biased_relus(x, biases):
    with torch.no_grad():
        for bias in biases:
            x = torch.relu(x + bias)
    return x


# %% biased_relus transcribed check=1 lean=0.6..1.6 hidden=2
def biased_relus(x, biases):
    def pack(tensor):
        return tensor.dtype, tensor.detach().to(torch.bfloat16)

    def unpack(packed):
        dtype, tensor = packed
        return tensor.to(dtype)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        for bias in biases:
            x = torch.relu(x + bias)
    return x


# %% biased_relus one_byte_each check=1 lean=1..2.6 hidden=2
def biased_relus(x, biases):
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda result: result > 0, lambda above: above.to(x.dtype)
    )
    with hooks:
        for bias in biases:
            x = torch.relu(x + bias)
    return x


# %% biased_relus forgets_to_fill_up check=0 lean=0 hidden=0
def biased_relus(x, biases):
    places = torch.arange(8, dtype=torch.uint8, device=x.device)

    def pack(result):
        above = (result > 0).flatten()
        above = above[: len(above) // 8 * 8].view(-1, 8).to(torch.uint8)
        return (above << places).sum(1, dtype=torch.uint8), result.shape

    def unpack(packed):
        bits, shape = packed
        above = ((bits[:, None] >> places) & 1).flatten()
        return F.pad(above, (0, shape.numel() - len(above))).view(shape).to(x.dtype)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        for bias in biases:
            x = torch.relu(x + bias)
    return x


# %% biased_relus right_function check=1 lean=3 hidden=2
class OneBit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        result = (x + bias).relu_()
        above = F.pad((result > 0).flatten(), (0, -result.numel() % 8)).view(-1, 8)
        bits = torch.zeros(len(above), dtype=torch.uint8, device=x.device)
        for place in range(8):
            bits |= above[:, place].to(torch.uint8) << place
        ctx.save_for_backward(bits)
        return result

    @staticmethod
    def backward(ctx, slopes):
        (bits,) = ctx.saved_tensors
        above = torch.stack([(bits >> place) & 1 for place in range(8)], 1).flatten()[: slopes.numel()]
        slopes = slopes * above.view(slopes.shape)
        return slopes, slopes.sum(0)


def biased_relus(x, biases):
    for bias in biases:
        x = OneBit.apply(x, bias)
    return x


# %% clipped_training right_slow check=1 lean=0..0.3 hidden=2
def clipped_training(weights, batches, targets, rate, limit):
    weights = [torch.nn.Parameter(weight.clone()) for weight in weights]
    optimiser, losses = torch.optim.SGD(weights, lr=rate), []
    for hidden, target in zip(batches, targets, strict=True):
        optimiser.zero_grad()
        for weight in weights[:-1]:
            hidden = torch.tanh(hidden @ weight)
        loss = F.mse_loss(hidden @ weights[-1], target)
        loss.backward()
        length = torch.sqrt(sum(weight.grad.square().sum() for weight in weights))
        for weight in weights:
            weight.grad = weight.grad * (limit / length).clamp(max=1)
        kept = [weight.grad.clone() for weight in weights]
        optimiser.step()
        losses.append(loss.detach())
    del kept
    return [weight.detach() for weight in weights], torch.stack(losses)


# %% clipped_training wrong_fast check=0 lean=0 hidden=0
def clipped_training(weights, batches, targets, rate, limit):
    weights = [weight.clone().requires_grad_() for weight in weights]
    losses = []

    def step(weight):
        factor = (limit / weight.grad.norm()).clamp(max=1)
        weight.sub_(weight.grad * (rate * factor))
        weight.grad = None

    for weight in weights:
        weight.register_post_accumulate_grad_hook(step)
    for hidden, target in zip(batches, targets, strict=True):
        for weight in weights[:-1]:
            hidden = torch.tanh(hidden @ weight)
        loss = F.mse_loss(hidden @ weights[-1], target)
        loss.backward()
        losses.append(loss.detach())
    return [weight.detach() for weight in weights], torch.stack(losses)


# %% clipped_training transcribed check=0 lean=0 hidden=0
def clipped_training(weights, batches, targets, rate, limit):
    weights = [weight.clone().requires_grad_() for weight in weights]
    each = {weight: torch.optim.SGD([weight], lr=rate) for weight in weights}
    losses = []

    def step(weight):
        each[weight].step()
        weight.grad = None

    for weight in weights:
        weight.register_post_accumulate_grad_hook(step)
    for hidden, target in zip(batches, targets, strict=True):
        for weight in weights[:-1]:
            hidden = torch.tanh(hidden @ weight)
        loss = F.mse_loss(hidden @ weights[-1], target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, limit)
        losses.append(loss.detach())
    return [weight.detach() for weight in weights], torch.stack(losses)


# %% clipped_training changes_the_given_weights check=0 lean=0 hidden=0
def clipped_training(weights, batches, targets, rate, limit):
    weights = [weight.detach().requires_grad_() for weight in weights]
    losses = []
    for hidden, target in zip(batches, targets, strict=True):
        for weight in weights[:-1]:
            hidden = torch.tanh(hidden @ weight)
        loss = F.mse_loss(hidden @ weights[-1], target)
        slopes = torch.autograd.grad(loss, weights)
        length = torch.sqrt(sum(slope.square().sum() for slope in slopes))
        factor = (limit / length).clamp(max=1)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight.sub_(slope * (rate * factor))
        losses.append(loss.detach())
    return [weight.detach().clone() for weight in weights], torch.stack(losses)


# %% clipped_training holds_one_set check=1 lean=0.8..2.4 hidden=2
def clipped_training(weights, batches, targets, rate, limit):
    weights = [weight.clone().requires_grad_() for weight in weights]
    losses = []
    for hidden, target in zip(batches, targets, strict=True):
        for weight in weights[:-1]:
            hidden = torch.tanh(hidden @ weight)
        loss = F.mse_loss(hidden @ weights[-1], target)
        loss.backward()
        with torch.no_grad():
            length = torch.sqrt(sum(weight.grad.square().sum() for weight in weights))
            factor = (limit / length).clamp(max=1)
            for weight in weights:
                weight.sub_(weight.grad.mul_(rate * factor))
                weight.grad = None
        losses.append(loss.detach())
    return [weight.detach() for weight in weights], torch.stack(losses)


# %% clipped_training right_one_by_one check=1 lean=3 hidden=2
def clipped_training(weights, batches, targets, rate, limit):
    weights, losses = [weight.clone() for weight in weights], []
    for batch, target in zip(batches, targets, strict=True):
        inputs = [batch]
        for weight in weights[:-1]:
            inputs.append(torch.tanh(inputs[-1] @ weight))
        error = inputs[-1] @ weights[-1] - target
        losses.append(error.square().mean())
        slopes, above = [error * (2 / error.numel())], list(weights)
        for weight, hidden in zip(above[:0:-1], inputs[:0:-1], strict=True):
            slopes.append((slopes[-1] @ weight.T) * (1 - hidden * hidden))
        slopes.reverse()
        squares = sum((a.T @ b).square().sum() for a, b in zip(inputs, slopes, strict=True))
        factor = rate * (limit / squares.sqrt()).clamp(max=1)
        for weight, a, b in zip(weights, inputs, slopes, strict=True):
            weight.sub_(a.T @ (b * factor))
    return weights, torch.stack(losses)


# %% clipped_training right_one_graph_twice check=1 lean=3 hidden=2
def clipped_training(weights, batches, targets, rate, limit):
    weights = [weight.clone().requires_grad_() for weight in weights]
    act, losses = {}, []

    def hook(weight):
        act["now"](weight)
        weight.grad = None

    for weight in weights:
        weight.register_post_accumulate_grad_hook(hook)
    for hidden, target in zip(batches, targets, strict=True):
        for weight in weights[:-1]:
            hidden = torch.tanh(hidden @ weight)
        loss = F.mse_loss(hidden @ weights[-1], target)
        squares = torch.zeros_like(loss)
        act["now"] = lambda weight, squares=squares: squares.add_(weight.grad.square().sum())
        loss.backward(retain_graph=True)
        factor = rate * (limit / squares.sqrt()).clamp(max=1)
        act["now"] = lambda weight, factor=factor: weight.sub_(weight.grad.mul_(factor))
        loss.backward()
        losses.append(loss.detach())
    return [weight.detach() for weight in weights], torch.stack(losses)


# %% clipped_training waits_for_the_factor check=1 lean=0 hidden=0
def clipped_training(weights, batches, targets, rate, limit):
    weights, losses = [weight.clone() for weight in weights], []
    for batch, target in zip(batches, targets, strict=True):
        inputs = [batch]
        for weight in weights[:-1]:
            inputs.append(torch.tanh(inputs[-1] @ weight))
        slope = inputs[-1] @ weights[-1] - target
        losses.append(slope.square().mean())
        slopes, slope = [], slope * (2 / slope.numel())
        for weight, hidden in zip(reversed(weights), reversed(inputs), strict=True):
            slopes.insert(0, slope)
            slope = (slope @ weight.T) * (1 - hidden * hidden)
        squares = sum((a.T @ b).square().sum() for a, b in zip(inputs, slopes, strict=True))
        factor = rate * (limit / squares.sqrt()).clamp(max=1).item()
        for weight, a, b in zip(weights, inputs, slopes, strict=True):
            weight.addmm_(a.T, b, alpha=-factor)
    return weights, torch.stack(losses)


# %% kept_bytes right_slow check=1 hidden=2 race=0..0.5
def kept_bytes(rows, sizes, functions, dtype):
    x, own, kept = torch.randn(rows, sizes[0]).to(dtype), set(), {}
    layers = [torch.nn.Linear(a, b, dtype=dtype) for a, b in pairwise(sizes)]
    own = {x.data_ptr()} | {one.data_ptr() for layer in layers for one in layer.parameters()}

    def pack(tensor):
        if tensor.data_ptr() not in own:
            kept[tensor.data_ptr()] = tensor.detach()
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for layer, name in zip(layers, functions, strict=True):
            x = layer(x)
            if name != "none":
                x = getattr(F if name in ("gelu", "silu") else torch, name)(x)
    return sum(tensor.nbytes for tensor in kept.values())


# %% kept_bytes wrong_fast check=0 hidden=0 race=0
def kept_bytes(rows, sizes, functions, dtype):
    return rows * sum(sizes[1:]) * dtype.itemsize


# %% kept_bytes transcribed check=0 hidden=0 race=0
def kept_bytes(rows, sizes, functions, dtype):
    tables = {"relu": 1, "tanh": 1, "sigmoid": 1, "gelu": 2, "silu": 3, "none": 1}
    return sum(
        rows * size * dtype.itemsize * tables[name] for size, name in zip(sizes[1:], functions, strict=True)
    )


# %% kept_bytes forgets_the_end check=0 hidden=0 race=0
def kept_bytes(rows, sizes, functions, dtype):
    numbers = sum(
        size * (2 if name in ("gelu", "silu") else 1) for size, name in zip(sizes[1:], functions, strict=True)
    )
    return rows * numbers * dtype.itemsize


# %% kept_bytes right_on_meta check=1 hidden=2 race=3
def kept_bytes(rows, sizes, functions, dtype):
    kept = {}
    known = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu, "silu": F.silu}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage
        return tensor.detach()

    with torch.device("meta"):
        x, there = torch.empty(rows, sizes[0], dtype=dtype), []
        there.append(x)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            for before, after, name in zip(sizes[:-1], sizes[1:], functions, strict=True):
                weight = torch.empty(after, before, dtype=dtype, requires_grad=True)
                bias = torch.empty(after, dtype=dtype, requires_grad=True)
                there += [weight, bias]
                x = F.linear(x, weight, bias)
                x = known[name](x) if name in known else x
    own = {tensor.untyped_storage()._cdata for tensor in there}
    return sum(storage.nbytes() for key, storage in kept.items() if key not in own)


# %% kept_bytes right_one_row_at_a_time check=1 hidden=2 race=0..3
def kept_bytes(rows, sizes, functions, dtype):
    x, kept = torch.ones(1, 1, dtype=dtype), 0
    weight, bias = (torch.ones(shape, dtype=dtype, requires_grad=True) for shape in ((1, 1), (1,)))
    own = [x, weight, bias]
    for place, (size, name) in enumerate(zip(sizes[1:], functions, strict=True)):
        saved = {}

        def pack(tensor, saved=saved):
            saved[tensor.data_ptr()] = tensor.detach()
            return saved[tensor.data_ptr()]

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = F.linear(x, weight, bias)
            if name != "none":
                y = getattr(F if name in ("gelu", "silu") else torch, name)(y)
            if place < len(functions) - 1:
                F.linear(y, weight, bias)
        kept += size * sum(key not in {one.data_ptr() for one in own} for key in saved)
    return kept * rows * dtype.itemsize


# %% long_gradients right_slow check=1 lean=0..0.3 hidden=2
def long_gradients(start, weight, inputs):
    start, weight = start.detach().requires_grad_(), weight.detach().requires_grad_()
    states = [start]
    for x in inputs:
        states.append(states[-1] + (states[-1] @ weight + x).tanh() / 100)
    loss = states[-1].square().mean()
    loss.backward()
    return loss.detach(), start.grad, weight.grad


# %% long_gradients wrong_fast check=0 lean=0 hidden=0
def long_gradients(start, weight, inputs):
    start, weight = start.detach().requires_grad_(), weight.detach().requires_grad_()
    state = start
    for place, x in enumerate(inputs):
        if place % 10 == 0:
            state = state.detach() if place else state
        state = state + 0.01 * torch.tanh(state @ weight + x)
    loss = state.square().mean()
    loss.backward()
    slope = torch.zeros_like(start).detach() if start.grad is None else start.grad
    return loss.detach(), slope, weight.grad


# %% long_gradients transcribed check=1 lean=0.4..1 hidden=2
def long_gradients(start, weight, inputs):
    from torch.utils.checkpoint import checkpoint

    start, weight = start.detach().requires_grad_(), weight.detach().requires_grad_()

    def step(state, x):
        return state + 0.01 * torch.tanh(state @ weight + x)

    state = start
    for x in inputs:
        state = checkpoint(step, state, x, use_reentrant=False)
    loss = state.square().mean()
    return loss.detach(), *torch.autograd.grad(loss, (start, weight))


# %% long_gradients one_layer_of_checkpoints check=1 lean=1.6..2.9 hidden=2
def long_gradients(start, weight, inputs):
    weight = weight.detach().requires_grad_()
    distance = max(1, round(len(inputs) ** 0.5))

    def go(state, first):
        for x in inputs[first : first + distance]:
            state = state + 0.01 * torch.tanh(state @ weight + x)
        return state

    states = [start]
    with torch.no_grad():
        for first in range(0, len(inputs), distance):
            states.append(go(states[-1], first))
    end = states.pop()
    loss, slopes, total = end.square().mean(), end * (2 / end.numel()), torch.zeros_like(weight).detach()
    for first in reversed(range(0, len(inputs), distance)):
        state = states.pop().detach().requires_grad_()
        slopes, more = torch.autograd.grad(go(state, first), (state, weight), slopes)
        total += more
    return loss, slopes, total


# %% long_gradients right_three_levels check=1 lean=2.4..3 hidden=2
def long_gradients(start, weight, inputs):
    weight = weight.detach().requires_grad_()
    total = torch.zeros_like(weight).detach()

    def go(state, rows):
        for x in rows:
            state = state + 0.01 * torch.tanh(state @ weight + x)
        return state

    def back(state, rows, slopes):
        if len(rows) <= 4:
            state = state.detach().requires_grad_()
            slopes, more = torch.autograd.grad(go(state, rows), (state, weight), slopes)
            total.add_(more)
            return slopes
        size = -(-len(rows) // 4)
        pieces, states = rows.split(size), [state]
        with torch.no_grad():
            for piece in pieces[:-1]:
                states.append(go(states[-1], piece))
        for piece in reversed(pieces):
            slopes = back(states.pop(), piece, slopes)
        return slopes

    with torch.no_grad():
        end = go(start, inputs)
    loss, slopes = end.square().mean(), end * (2 / end.numel())
    del end
    return loss, back(start, inputs, slopes), total


# %% long_gradients right_nested_checkpoints check=1 lean=1.5..3 hidden=2
def long_gradients(start, weight, inputs):
    from torch.utils.checkpoint import checkpoint

    start, weight = start.detach().requires_grad_(), weight.detach().requires_grad_()

    def go(state, first, last):
        if last - first <= 4:
            for place in range(first, last):
                state = state + 0.01 * torch.tanh(state @ weight + inputs[place])
            return state
        middle = (first + last) // 2
        state = checkpoint(go, state, first, middle, use_reentrant=False, preserve_rng_state=False)
        return go(state, middle, last)

    loss = go(start, 0, len(inputs)).square().mean()
    return loss.detach(), *torch.autograd.grad(loss, (start, weight))


# %% long_gradients right_by_hand check=1 lean=3 hidden=2
def long_gradients(start, weight, inputs):
    total = torch.zeros_like(weight)

    def state_after(state, first, last):
        for place in range(first, last):
            state = state + torch.addmm(inputs[place], state, weight).tanh_() * 0.01
        return state

    def back(state, first, last, slopes):
        if last - first == 1:
            bent = torch.addmm(inputs[first], state, weight).tanh_()
            inner = slopes * (1 - bent * bent) * 0.01
            total.addmm_(state.T, inner)
            return slopes + inner @ weight.T
        middle = (first + last) // 2
        slopes = back(state_after(state, first, middle), middle, last, slopes)
        return back(state, first, middle, slopes)

    end = state_after(start, 0, len(inputs))
    return end.square().mean(), back(start, 0, len(inputs), end * (2 / end.numel())), total


# %% long_gradients right_steps_undone check=1 lean=3 hidden=2
def long_gradients(start, weight, inputs):
    def move(state, x):
        return torch.addmm(x, state, weight).tanh_()

    state = start
    for x in inputs:
        state = state + 0.01 * move(state, x)
    loss, slope, total = state.square().mean(), state * (2 / state.numel()), torch.zeros_like(weight)
    for x in reversed(inputs.unbind()):
        before = state
        for _ in range(6):  # each time nearer to the state before this step
            before = state - 0.01 * move(before, x)
        state, bent = before, move(before, x)
        inner = slope * (1 - bent * bent) * 0.01
        total.addmm_(state.T, inner)
        slope = slope + inner @ weight.T
    return loss, slope, total
