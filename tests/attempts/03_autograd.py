# %% last_gradient 72a440f8d0
import torch


def last_gradient(weights, inputs, targets):
    *frozen, last = weights
    hidden = inputs
    with torch.no_grad():
        for weight in frozen:
            hidden = torch.relu(hidden @ weight)
    last = last.detach().requires_grad_()
    loss = (hidden @ last - targets).square().mean()
    return torch.autograd.grad(loss, last)[0]


# %% accumulate fb96ffb65e
import torch
import torch.nn.functional as F


def accumulate(weight, head, parts, labels):
    weight, head = weight.detach().requires_grad_(), head.detach().requires_grad_()
    # first how many rows count at all: needed before the first backward
    count = torch.zeros((), dtype=torch.int64, device=weight.device)
    for wanted in labels:
        count = count + (wanted != -100).sum()
    count = count.clamp(min=1)

    total = torch.zeros((), device=weight.device)
    weight.grad, head.grad = torch.zeros_like(weight), torch.zeros_like(head)
    for rows, wanted in zip(parts, labels, strict=True):
        # pieces of 16 rows: cross entropy and its way back need three tables of scores at once
        for some_rows, some_wanted in zip(rows.split(16), wanted.split(16), strict=True):
            loss = (
                F.cross_entropy(
                    torch.tanh(some_rows @ weight) @ head, some_wanted, ignore_index=-100, reduction="sum"
                )
                / count
            )
            loss.backward()
            total += loss.detach()
            del loss
    return total, weight.grad, head.grad


# %% train_head 6aa4eb1069
import torch


def train_head(frozen, head, batches, targets, rate):
    head = head.detach()
    total = torch.zeros_like(head)
    losses = []
    for batch, target in zip(batches, targets, strict=True):
        with torch.no_grad():
            hidden = torch.tanh(batch @ frozen)
        head = head.detach().requires_grad_()
        loss = (hidden @ head - target).square().mean()
        gradient = torch.autograd.grad(loss, head)[0]
        with torch.no_grad():
            head = head - rate * gradient
            total += head
        losses.append(loss.detach())
    return head.detach(), total / len(losses), torch.stack(losses)


# %% clipped_gradient 8eb81ee66b
import torch


@torch.no_grad()
def clipped_gradient(first, second, inputs, targets, limit):
    hidden = torch.tanh(inputs @ first)
    # what arrives from above, one row for each sample
    of_output = (hidden @ second).sub_(targets).mul_(2)
    of_product = (of_output @ second.T).mul_(1 - hidden.square())
    # a sample's gradient of a weight is an outer product: its length is the product of both lengths
    squares = inputs.square().sum(1) * of_product.square().sum(1)
    squares += hidden.square().sum(1) * of_output.square().sum(1)
    factor = (limit / squares.sqrt()).clamp(max=1)[:, None] / len(inputs)
    of_product.mul_(factor)
    of_output.mul_(factor)
    return inputs.T @ of_product, hidden.T @ of_output


# %% orbits f38a37bebc
import torch


@torch.no_grad()
def orbits(mean, eccentricity):
    # Newton's method for angle - eccentricity * sin(angle) - mean = 0
    angle = mean + eccentricity * mean.sin()
    for _ in range(4):
        wrong = angle - eccentricity * angle.sin() - mean
        angle = angle - wrong / (1 - eccentricity * angle.cos())
    # differentiate the equation itself: d = 1 + eccentricity * cos(angle) * d
    of_mean = 1 / (1 - eccentricity * angle.cos())
    return angle, of_mean, of_mean * angle.sin()
