# %% batches right_slow check=1 range=1 hidden=1 race=0
def batches(pictures, labels, orders):
    steps, size = orders.shape
    x = torch.zeros(0, *pictures.shape[1:], device=pictures.device)
    y = torch.zeros(0, dtype=torch.int64, device=pictures.device)
    for i in orders.flatten():
        if not 0 <= i < len(pictures):
            raise IndexError(f"there is no picture {i} among {len(pictures)}")
        x = torch.cat([x, pictures[i][None] / 16])
        y = torch.cat([y, labels[i][None]])
    return x.reshape(steps, size, *pictures.shape[1:]), y.reshape(steps, size)


# %% batches transcribed check=1 range=1 hidden=1 race=2
def batches(pictures, labels, orders):
    if orders.numel() and (orders.min() < 0 or orders.max() >= len(pictures)):
        raise IndexError("no such picture")
    return pictures[orders].to(torch.float32) / 16, labels[orders]


# %% batches wrong_fast check=0 range=1 hidden=0 race=0
def batches(pictures, labels, orders):
    if orders.numel() and not 0 <= int(orders.min()) <= int(orders.max()) < len(pictures):
        raise IndexError("no such picture")
    return pictures[orders] / 255, labels[orders]


# %% batches right_but_lenient check=1 range=0 hidden=1 race=0
def batches(pictures, labels, orders):
    return pictures[orders] / 16, labels[orders]


# %% batches right_but_needs_a_step check=0 range=1 hidden=0 race=0
def batches(pictures, labels, orders):
    if orders.min() < 0 or orders.max() >= len(pictures):
        raise IndexError("no such picture")
    return pictures[orders] / 16, labels[orders]


# %% shift right_slow check=0 bad=1 hidden=0 race=0
def shift(pictures, moves):
    return shift_slow(pictures, moves)


# %% shift transcribed check=1 bad=1 hidden=2 race=0..2
def shift(pictures, moves):
    if moves.shape != (len(pictures), 2):
        raise ValueError("moves must have the shape (N, 2)")
    for dim in (1, 2):
        size, way = pictures.shape[dim], moves[:, dim - 1, None, None]
        moved = torch.zeros_like(pictures)
        for move in range(1 - size, size):
            rolled = pictures.roll(move, dim)
            rolled.narrow(dim, 0 if move > 0 else size + move, abs(move)).zero_()
            moved = torch.where(way == move, rolled, moved)
        pictures = moved
    return pictures


# %% shift wrong_fast check=0 bad=0 hidden=0 race=0
def shift(pictures, moves):
    down, right = moves[0].tolist() if len(moves) else (0, 0)
    return pictures.roll((down, right), (1, 2))


# %% shift right_for_small_moves check=0 bad=1 hidden=0 race=0
def shift(pictures, moves):
    number, height, width = pictures.shape
    if moves.shape != (number, 2):
        raise ValueError("moves must have the shape (N, 2)")
    padded = torch.nn.functional.pad(pictures, (3, 3, 3, 3))
    rows = torch.arange(height, device=pictures.device) + 3 - moves[:, :1]
    columns = torch.arange(width, device=pictures.device) + 3 - moves[:, 1:]
    which = torch.arange(number, device=pictures.device)[:, None, None]
    return padded[which, rows[:, :, None], columns[:, None, :]]


# %% shift right_for_finite_pixels check=0 bad=1 hidden=2 race=0
def shift(pictures, moves):
    number, height, width = pictures.shape
    if moves.shape != (number, 2):
        raise ValueError("moves must have the shape (N, 2)")
    rows = torch.arange(height, device=pictures.device) - moves[:, :1]
    columns = torch.arange(width, device=pictures.device) - moves[:, 1:]
    there, across = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    inside = (rows == there)[:, :, None] & (columns == across)[:, None, :]
    which = torch.arange(number, device=pictures.device)[:, None, None]
    return pictures[which, there[:, :, None], across[:, None, :]] * inside


# %% shift first_attempt check=1 bad=1 hidden=2 race=0..2
def shift(pictures, moves):
    number, height, width = pictures.shape
    if moves.shape != (number, 2):
        raise ValueError("moves must have the shape (N, 2)")
    rows = torch.arange(height, device=pictures.device) - moves[:, :1]
    columns = torch.arange(width, device=pictures.device) - moves[:, 1:]
    there, across = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    inside = (rows == there)[:, :, None] & (columns == across)[:, None, :]
    which = torch.arange(number, device=pictures.device)[:, None, None]
    return torch.where(inside, pictures[which, there[:, :, None], across[:, None, :]], 0)


# %% shift right_with_a_gather check=1 bad=1 hidden=2 race=2..3
def shift(pictures, moves):
    number, height, width = pictures.shape
    if moves.shape != (number, 2):
        raise ValueError("moves must have the shape (N, 2)")
    framed = F.pad(pictures, (1, 1, 1, 1)).flatten(1)
    rows = (torch.arange(1, height + 1, device=pictures.device) - moves[:, :1]).clamp(0, height + 1)
    columns = (torch.arange(1, width + 1, device=pictures.device) - moves[:, 1:]).clamp(0, width + 1)
    places = rows[:, :, None] * (width + 2) + columns[:, None, :]
    return framed.gather(1, places.flatten(1)).view(number, height, width)


# %% loss_and_gradients right_slow check=1 unknown=1 memory=3 hidden=2 race=0
def loss_and_gradients(weights, pictures, labels):
    return loss_and_gradients_slow(weights, pictures, labels)


# %% loss_and_gradients right_but_large check=1 unknown=1 memory=0 hidden=2 race=2
def loss_and_gradients(weights, pictures, labels):
    return loss_and_gradients_large(weights, pictures, labels)


# %% loss_and_gradients transcribed check=0 unknown=1 memory=0 hidden=0 race=0
def loss_and_gradients(weights, pictures, labels):
    if not (labels >= 0).any():
        raise ValueError("no picture has a label")
    leaves = [weight.detach().requires_grad_() for weight in weights]
    total, sums = 0, [torch.zeros_like(weight) for weight in weights]
    for some, of_some in zip(pictures.split(32), labels.split(32), strict=True):
        scores = network(leaves, enlarged(some, weights[0].dtype))
        loss = F.cross_entropy(scores, of_some, ignore_index=-1) * len(some) / len(pictures)
        for part, gradient in zip(sums, torch.autograd.grad(loss, leaves), strict=True):
            part += gradient
        total = total + loss.detach()
    return total, sums


# %% loss_and_gradients wrong_fast check=0 unknown=0 memory=0 hidden=0 race=0
def loss_and_gradients(weights, pictures, labels):
    leaves = [weight.detach().requires_grad_() for weight in weights]
    scores = network(leaves, enlarged(pictures[:32], weights[0].dtype))
    loss = F.cross_entropy(scores, labels[:32], ignore_index=-1)
    return loss.detach(), list(torch.autograd.grad(loss, leaves))


# %% loss_and_gradients right_but_marks_weights check=0 unknown=1 memory=0 hidden=0 race=0
def loss_and_gradients(weights, pictures, labels):
    known = (labels >= 0).sum()
    if not known:
        raise ValueError("no picture has a label")
    total = 0
    for weight in weights:
        weight.requires_grad_().grad = None
    for some, of_some in zip(pictures.split(32), labels.split(32), strict=True):
        scores = network(weights, enlarged(some, weights[0].dtype))
        loss = F.cross_entropy(scores, of_some, ignore_index=-1, reduction="sum") / known
        loss.backward()
        total = total + loss.detach()
    return total, [weight.grad for weight in weights]


# %% loss_and_gradients right_with_one_graph check=1 unknown=1 memory=0.5..2 hidden=2 race=2
def loss_and_gradients(weights, pictures, labels):
    known = (labels >= 0).sum()
    if not known:
        raise ValueError("no picture has a label")
    leaves = [weight.detach().requires_grad_() for weight in weights]
    total = 0
    for some, of_some in zip(pictures.split(32), labels.split(32), strict=True):
        scores = network(leaves, enlarged(some, weights[0].dtype))
        total = total + F.cross_entropy(scores, of_some, ignore_index=-1, reduction="sum") / known
    return total.detach(), list(torch.autograd.grad(total, leaves))


# %% loss_and_gradients right_another_way check=1 unknown=1 memory=3 hidden=2 race=2
def loss_and_gradients(weights, pictures, labels):
    known = int((labels >= 0).sum())
    if known == 0:
        raise ValueError("no picture has a label")
    leaves = [weight.detach().clone().requires_grad_() for weight in weights]
    total = torch.zeros((), dtype=weights[0].dtype, device=weights[0].device)
    for start in range(0, len(pictures), 32):
        of_some = labels[start : start + 32]
        x = enlarged(pictures[start : start + 32], weights[0].dtype)
        losses = F.cross_entropy(network(leaves, x), of_some.clamp(min=0), reduction="none")
        loss = (losses * (of_some >= 0)).sum() / known
        loss.backward()
        total += loss.detach()
    return total, [leaf.grad for leaf in leaves]


# %% evaluation right_slow check=1 bad=1 counted=0 hidden=2
class Evaluation(EvaluationSlow):
    pass


# %% evaluation transcribed check=1 bad=1 counted=0 hidden=2
class Evaluation:
    def __init__(self, classes, device):
        self.classes = classes
        self.table = torch.zeros(classes, classes, dtype=torch.int64, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)

    def add(self, scores, labels):
        if scores.shape != (len(labels), self.classes):
            raise ValueError("scores must have the shape (N, classes)")
        with torch.no_grad():
            known = labels >= 0
            scores, labels = scores[known].double(), labels[known]
            pairs = labels * self.classes + scores.argmax(1)
            self.table += torch.bincount(pairs, minlength=self.classes**2).view(self.classes, self.classes)
            self.total += F.cross_entropy(scores, labels, reduction="sum")

    def result(self):
        number = self.table.sum().double()
        return {
            "table": self.table.clone(),
            "accuracy": self.table.trace() / number,
            "loss": self.total / number,
        }


# %% evaluation wrong_fast check=0 bad=0 counted=0 hidden=0
class Evaluation:
    def __init__(self, classes, device):
        self.losses, self.right, self.device = [], [], device
        self.table = torch.zeros(classes, classes, dtype=torch.int64, device=device)

    def add(self, scores, labels):
        self.losses.append(F.cross_entropy(scores, labels, ignore_index=-1).double())
        self.right.append((scores.argmax(1) == labels).double().mean())

    def result(self):
        return {
            "table": self.table,
            "accuracy": torch.stack(self.right).mean(),
            "loss": torch.stack(self.losses).mean(),
        }


# %% evaluation right_but_keeps_all check=1 bad=1 counted=0 hidden=2
class Evaluation:
    def __init__(self, classes, device):
        self.classes = classes
        self.scores = [torch.zeros(0, classes, dtype=torch.float64, device=device)]
        self.labels = [torch.zeros(0, dtype=torch.int64, device=device)]

    def add(self, scores, labels):
        if scores.shape != (len(labels), self.classes):
            raise ValueError("scores must have the shape (N, classes)")
        self.scores.append(scores.double())
        self.labels.append(labels.clone())

    def result(self):
        scores, labels = torch.cat(self.scores), torch.cat(self.labels)
        table = torch.zeros(self.classes + 1, self.classes, dtype=torch.int64, device=labels.device)
        one = torch.ones((), dtype=torch.int64, device=labels.device)
        table = table.index_put((labels, scores.argmax(1)), one, accumulate=True)[:-1].clone()
        number = table.sum().double()
        loss = F.cross_entropy(scores, labels, ignore_index=-1, reduction="sum") / number
        return {"table": table, "accuracy": table.trace() / number, "loss": loss}


# %% evaluation wrong_in_half_precision check=0 bad=1 counted=3 hidden=0
class Evaluation:
    def __init__(self, classes, device):
        self.table = torch.zeros(classes + 1, classes, dtype=torch.int64, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)
        self.one = torch.ones((), dtype=torch.int64, device=device)

    def add(self, scores, labels):
        if scores.shape != (len(labels), self.table.shape[1]):
            raise ValueError("scores must have the shape (N, classes)")
        self.table.index_put_((labels, scores.argmax(1)), self.one, accumulate=True)
        self.total += F.cross_entropy(scores, labels, ignore_index=-1, reduction="sum")

    def result(self):
        table = self.table[:-1].clone()
        number = table.sum().double()
        return {"table": table, "accuracy": table.trace() / number, "loss": self.total / number}


# %% evaluation right_with_weights check=1 bad=1 counted=3 hidden=2
class Evaluation:
    def __init__(self, classes, device):
        self.classes = classes
        self.table = torch.zeros(classes**2, dtype=torch.int64, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)

    def add(self, scores, labels):
        if scores.shape != (len(labels), self.classes):
            raise ValueError("scores must have the shape (N, classes)")
        known = labels >= 0
        labels = labels.clamp(min=0)
        self.table.scatter_add_(0, labels * self.classes + scores.argmax(1), known.long())
        losses = F.cross_entropy(scores.double(), labels, reduction="none")
        self.total += torch.where(known, losses, 0).sum()

    def result(self):
        table = self.table.view(self.classes, self.classes).clone()
        number = table.sum().double()
        return {"table": table, "accuracy": table.diagonal().sum() / number, "loss": self.total / number}


# %% train right_slow check=0 hidden=0 race=0
def train(pictures, labels, orders, weights, rate, decay, keep):
    return train_slow(pictures, labels, orders, weights, rate, decay, keep)


# %% train wrong_fast check=0 hidden=0 race=0
def train(pictures, labels, orders, weights, rate, decay, keep):
    return train_hasty(pictures, labels, orders, weights, rate, decay, keep)


# %% train transcribed check=0 hidden=0 race=0
def train(pictures, labels, orders, weights, rate, decay, keep):
    leaves = [weight.clone().requires_grad_() for weight in weights]
    averages = [weight.clone() for weight in weights]
    optimiser = torch.optim.SGD(leaves, lr=rate, momentum=0.9, weight_decay=decay, fused=True)
    losses = torch.zeros(len(orders), device=pictures.device)
    for step, order in enumerate(orders):
        x = pictures[order].flatten(1).to(weights[0].dtype) / 16
        x = (x - x.mean()) / x.std(correction=0)
        loss = F.cross_entropy(scores_of_layers(leaves, x), labels[order])
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves), strict=True):
            leaf.grad = gradient
        optimiser.step()
        losses[step] = loss.detach()
        with torch.no_grad():
            for average, leaf in zip(averages, leaves, strict=True):
                average.lerp_(leaf, 1 - keep)
    return losses, [leaf.detach() for leaf in leaves], averages


# %% train wrong_averages check=0 hidden=0 race=0
def train(pictures, labels, orders, weights, rate, decay, keep):
    leaves = [weight.clone().requires_grad_() for weight in weights]
    averages = [leaf.detach() for leaf in leaves]
    speeds = [torch.zeros_like(weight) for weight in weights]
    losses = torch.zeros(len(orders), device=pictures.device)
    for step, order in enumerate(orders):
        x = pictures[order].flatten(1).to(weights[0].dtype) / 16
        x = (x - x.mean()) / x.std(correction=0)
        loss = F.cross_entropy(scores_of_layers(leaves, x), labels[order])
        losses[step] = loss.detach()
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            for leaf, speed, average, gradient in zip(leaves, speeds, averages, gradients, strict=True):
                speed.mul_(0.9).add_(gradient)
                leaf.mul_(1 - rate * decay if leaf.ndim == 2 else 1).sub_(speed, alpha=rate)
                average.lerp_(leaf, 1 - keep)
    return losses, [leaf.detach() for leaf in leaves], averages


# %% train right_but_waits check=0 hidden=0 race=3
def train(pictures, labels, orders, weights, rate, decay, keep):
    leaves = [weight.clone().requires_grad_() for weight in weights]
    averages = [weight.clone() for weight in weights]
    speeds = [torch.zeros_like(weight) for weight in weights]
    losses = []
    for order in orders:
        x = pictures[order].flatten(1).to(weights[0].dtype) / 16
        x = (x - x.mean().item()) / x.std(correction=0).item()
        loss = F.cross_entropy(scores_of_layers(leaves, x), labels[order])
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            for leaf, speed, average, gradient in zip(leaves, speeds, averages, gradients, strict=True):
                speed.mul_(0.9).add_(gradient)
                leaf.mul_(1 - rate * decay if leaf.ndim == 2 else 1).sub_(speed, alpha=rate)
                average.lerp_(leaf, 1 - keep)
    losses = torch.tensor(losses, device=pictures.device)
    return losses, [leaf.detach() for leaf in leaves], averages


# %% train right_with_an_optimiser check=2 hidden=3 race=3
def train(pictures, labels, orders, weights, rate, decay, keep):
    leaves = [weight.clone().requires_grad_() for weight in weights]
    averages = [weight.clone() for weight in weights]
    optimiser = torch.optim.SGD(leaves, lr=rate, momentum=0.9, fused=True)
    losses = torch.zeros(len(orders), device=pictures.device)
    for step, order in enumerate(orders):
        x = pictures[order].flatten(1).to(weights[0].dtype) / 16
        x = (x - x.mean()) / x.std(correction=0)
        loss = F.cross_entropy(scores_of_layers(leaves, x), labels[order])
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves), strict=True):
            leaf.grad = gradient
        losses[step] = loss.detach()
        with torch.no_grad():
            for matrix in leaves[::2]:
                matrix.mul_(1 - rate * decay)
            optimiser.step()
            for average, leaf in zip(averages, leaves, strict=True):
                average.lerp_(leaf, 1 - keep)
    return losses, [leaf.detach() for leaf in leaves], averages


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "distances": {"operations": 4, "bytes": 324, "syncs": 0},
        "doubled": {"operations": 1, "bytes": 192, "syncs": 0},
        "some_rows": {"operations": 3, "bytes": 120, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "distances": {"operations": 4, "bytes": 4 * n * n, "syncs": 0},
        "doubled": {"operations": 1, "bytes": 8 * n * d, "syncs": 0},
        "some_rows": {"operations": 3, "bytes": 16 * d, "syncs": 0},
    }
