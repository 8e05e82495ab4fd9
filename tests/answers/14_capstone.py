# %% batches right_slow check=1 range=1 hidden=1 race=0
def batches(pictures, labels, orders):
    rows, answers, device = pictures.tolist(), labels.tolist(), pictures.device
    steps, size = orders.shape
    x = torch.zeros(0, *pictures.shape[1:], device=device)
    y = torch.zeros(0, dtype=torch.int64, device=device)
    for i in orders.flatten().tolist():
        if not 0 <= i < len(rows):
            raise IndexError(f"there is no picture {i} among {len(rows)}")
        x = torch.cat([x, torch.tensor([rows[i]], dtype=torch.float32, device=device) / 16])
        y = torch.cat([y, torch.tensor([answers[i]], device=device)])
    return x.reshape(steps, size, *pictures.shape[1:]), y.reshape(steps, size)


# %% batches wrong_fast check=0 range=1 hidden=0 race=0
def batches(pictures, labels, orders):
    if orders.numel() and not 0 <= int(orders.min()) <= int(orders.max()) < len(pictures):
        raise IndexError("no such picture")
    return pictures[orders] / 255, labels[orders]


# %% batches right_but_lenient check=1 range=0 hidden=1 race=0
def batches(pictures, labels, orders):
    return pictures[orders] / 16, labels[orders]


# %% shift right_slow check=1 bad=1 hidden=2 race=0
def shift(pictures, moves):
    number, height, width = pictures.shape
    if tuple(moves.shape) != (number, 2):
        raise ValueError(f"moves must have the shape {(number, 2)}, not {tuple(moves.shape)}")
    result = []
    for picture, (down, right) in zip(pictures.tolist(), moves.tolist(), strict=True):
        moved = []
        for r in range(height):
            for c in range(width):
                inside = 0 <= r - down < height and 0 <= c - right < width
                moved.append(picture[r - down][c - right] if inside else 0.0)
        result.append(torch.tensor(moved, dtype=pictures.dtype, device=pictures.device))
    return torch.stack(result).reshape(pictures.shape) if result else torch.zeros_like(pictures)


# %% shift wrong_fast check=0 bad=0 hidden=0 race=0
def shift(pictures, moves):
    down, right = moves[0].tolist() if len(moves) else (0, 0)
    return pictures.roll((down, right), (1, 2))


# %% shift right_for_small_moves check=1 bad=1 hidden=0 race=0
def shift(pictures, moves):
    number, height, width = pictures.shape
    if moves.shape != (number, 2):
        raise ValueError("moves must have the shape (N, 2)")
    padded = torch.nn.functional.pad(pictures, (3, 3, 3, 3))
    rows = torch.arange(height, device=pictures.device) + 3 - moves[:, :1]
    columns = torch.arange(width, device=pictures.device) + 3 - moves[:, 1:]
    which = torch.arange(number, device=pictures.device)[:, None, None]
    return padded[which, rows[:, :, None], columns[:, None, :]]


# %% loss_and_gradients right_slow check=1 empty=1 hidden=2 race=0
def loss_and_gradients(weights, pictures, labels):
    if not len(pictures):
        raise ValueError("a batch needs one picture or more")
    leaves = [weight.clone().requires_grad_() for weight in weights]
    w1, b1, w2, b2 = leaves
    total = torch.zeros((), dtype=w1.dtype, device=w1.device)
    for picture, label in zip(pictures, labels, strict=True):
        hidden = picture.flatten() @ w1 + b1
        hidden = hidden * (hidden > 0)
        scores = hidden @ w2 + b2
        scores = scores - scores.max().item()
        chosen = torch.arange(len(scores), device=scores.device) == label
        total = total + scores.exp().sum().log() - scores[chosen].sum()
    loss = total / len(pictures)
    return loss.detach(), list(torch.autograd.grad(loss, leaves))


# %% loss_and_gradients wrong_fast check=0 empty=0 hidden=0 race=0
def loss_and_gradients(weights, pictures, labels):
    w1, b1, w2, b2 = leaves = [weight.detach().requires_grad_() for weight in weights]
    hidden = torch.addmm(b1, pictures.flatten(1), w1).relu()
    loss = torch.nn.functional.cross_entropy(torch.addmm(b2, hidden, w2), labels, reduction="sum")
    return loss.detach(), list(torch.autograd.grad(loss, leaves))


# %% loss_and_gradients right_but_overflows check=1 empty=1 hidden=0 race=0
def loss_and_gradients(weights, pictures, labels):
    if not len(pictures):
        raise ValueError("no pictures")
    w1, b1, w2, b2 = leaves = [weight.detach().requires_grad_() for weight in weights]
    scores = torch.addmm(b2, torch.addmm(b1, pictures.flatten(1), w1).relu(), w2)
    loss = (scores.exp().sum(1).log() - scores.gather(1, labels[:, None])[:, 0]).mean()
    return loss.detach(), list(torch.autograd.grad(loss, leaves))


# %% confusion right_slow check=1 nothing=1 hidden=1 race=0
def confusion(pictures, labels, known, known_labels, classes):
    if not len(known):
        raise ValueError("there is no picture to compare with")
    table = torch.zeros(classes, classes, dtype=torch.int64, device=pictures.device)
    for picture, label in zip(pictures, labels, strict=True):
        best, given = None, None
        for other, other_label in zip(known, known_labels, strict=True):
            distance = ((picture.double() - other.double()) ** 2).sum().item()
            if best is None or distance < best:
                best, given = distance, other_label.item()
        table[label.item(), given] += 1
    return table


# %% confusion wrong_fast check=0 nothing=1 hidden=0 race=0
def confusion(pictures, labels, known, known_labels, classes):
    if not len(known):
        raise ValueError("nothing known")
    return torch.bincount(labels * (classes + 1), minlength=classes**2).view(classes, classes)


# %% confusion wrong_in_bytes check=0 nothing=1 hidden=1 race=0
def confusion(pictures, labels, known, known_labels, classes):
    if not len(known):
        raise ValueError("nothing known")
    distances = ((pictures.flatten(1)[:, None] - known.flatten(1)[None]) ** 2).sum(2, dtype=torch.uint8)
    pairs = labels * classes + known_labels[distances.argmin(1)]
    return torch.bincount(pairs, minlength=classes**2).view(classes, classes)


# %% confusion right_but_forgets_nothing_known check=1 nothing=0 hidden=1 race=0
def confusion(pictures, labels, known, known_labels, classes):
    distances = torch.cdist(pictures.flatten(1).float(), known.flatten(1).float())
    nearest = distances.argmin(1) if len(known) else labels * 0
    table = torch.zeros(classes, classes, dtype=torch.int64, device=pictures.device)
    return table.index_put_((labels, known_labels[nearest] if len(known) else labels), labels * 0 + 1, True)


# %% train right_slow check=1 hidden=2 race_3=0 race_5=0 race_7=0
def train(pictures, labels, orders, moves, weights, rate, momentum):
    dtype, weights = weights[0].dtype, [weight.double() for weight in weights]
    speeds = [torch.zeros_like(weight) for weight in weights]
    losses = []
    for order, step_moves in zip(orders, moves, strict=True):
        x, y = batches_slow(pictures, labels, order[None])
        x = shift_slow(x[0].double(), step_moves)
        loss, gradients = loss_and_gradients_slow(weights, x, y[0])
        for i, gradient in enumerate(gradients):
            speeds[i] = momentum * speeds[i] + gradient
            weights[i] = weights[i] - rate * speeds[i]
        losses.append(loss.item())
    losses = torch.tensor(losses, dtype=torch.float32, device=pictures.device)
    return losses, [weight.to(dtype) for weight in weights]


# %% train wrong_fast check=0 hidden=0 race_3=0 race_5=0 race_7=0
def train(pictures, labels, orders, moves, weights, rate, momentum):
    x, y = (pictures[orders] / 16).flatten(2), labels[orders]
    w1, b1, w2, b2 = leaves = [weight.clone().requires_grad_() for weight in weights]
    optimiser = torch.optim.SGD(leaves, lr=rate, momentum=momentum)
    losses = torch.zeros(len(orders), device=pictures.device)
    for step in range(len(orders)):
        loss = torch.nn.functional.cross_entropy((x[step] @ w1 + b1).relu() @ w2 + b2, y[step])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses[step] = loss.detach()
    return losses, [leaf.detach() for leaf in leaves]


# %% train right_but_changes_weights check=0 hidden=0 race_3=0 race_5=0 race_7=0
def train(pictures, labels, orders, moves, weights, rate, momentum):
    speeds = [torch.zeros_like(weight) for weight in weights]
    losses = torch.zeros(len(orders), device=pictures.device)
    for step, (order, step_moves) in enumerate(zip(orders, moves, strict=True)):
        x, y = batches_slow(pictures, labels, order[None])
        losses[step], gradients = loss_and_gradients_slow(weights, shift_slow(x[0], step_moves), y[0])
        for weight, speed, gradient in zip(weights, speeds, gradients, strict=True):
            weight -= rate * speed.mul_(momentum).add_(gradient)
    return losses, weights


# %% train right_own_functions check=1 hidden=2 race_3=2 race_5=2 race_7=2
def own_batches(pictures, labels, orders):
    return pictures[orders] / 16, labels[orders]


def own_shift(pictures, moves):
    number, height, width = pictures.shape
    rows = torch.arange(height, device=pictures.device) - moves[:, :1]
    columns = torch.arange(width, device=pictures.device) - moves[:, 1:]
    rows_there, columns_there = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    inside = (rows == rows_there)[:, :, None] & (columns == columns_there)[:, None, :]
    which = torch.arange(number, device=pictures.device)[:, None, None]
    return torch.where(inside, pictures[which, rows_there[:, :, None], columns_there[:, None, :]], 0)


def own_loss_and_gradients(weights, pictures, labels):
    w1, b1, w2, b2 = leaves = [weight.detach().requires_grad_() for weight in weights]
    hidden = torch.addmm(b1, pictures.flatten(1), w1).relu()
    loss = torch.nn.functional.cross_entropy(torch.addmm(b2, hidden, w2), labels)
    return loss.detach(), list(torch.autograd.grad(loss, leaves))


def train(pictures, labels, orders, moves, weights, rate, momentum):
    speeds = [torch.zeros_like(weight) for weight in weights]
    losses = []
    for order, step_moves in zip(orders, moves, strict=True):
        x, y = own_batches(pictures, labels, order[None])
        loss, gradients = own_loss_and_gradients(weights, own_shift(x[0], step_moves), y[0])
        for i, gradient in enumerate(gradients):
            speeds[i] = momentum * speeds[i] + gradient
        weights = [weight - rate * speed for weight, speed in zip(weights, speeds, strict=True)]
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float32, device=pictures.device), weights


# %% train right_but_needs_a_step check=0 hidden=2 race_3=0 race_5=0 race_7=0
def train(pictures, labels, orders, moves, weights, rate, momentum):
    speeds = [torch.zeros_like(weight) for weight in weights]
    losses = []
    for order, step_moves in zip(orders, moves, strict=True):
        x, y = batches_slow(pictures, labels, order[None])
        loss, gradients = loss_and_gradients_slow(weights, shift_slow(x[0], step_moves), y[0])
        for i, gradient in enumerate(gradients):
            speeds[i] = momentum * speeds[i] + gradient
        weights = [weight - rate * speed for weight, speed in zip(weights, speeds, strict=True)]
        losses.append(loss)
    return torch.stack(losses), weights
