# %% batches 3f9fc2a182
import torch


def batches(pictures, labels, orders):
    if ((orders < 0) | (orders >= len(pictures))).any():
        raise IndexError(f"a number in orders lies outside 0 to {len(pictures) - 1}")
    return pictures[orders] / 16, labels[orders]


# %% shift cabb2e97ae
import torch


def shift(pictures, moves):
    number, height, width = pictures.shape
    if tuple(moves.shape) != (number, 2):
        raise ValueError(f"moves must have the shape {(number, 2)}, not {tuple(moves.shape)}")
    device = pictures.device
    # every row is followed by as many zeros, and the first has them before it, too
    flat = torch.zeros(width + number * height * 2 * width, dtype=pictures.dtype, device=device)
    flat[width:].view(number, height, 2 * width)[:, :, :width] = pictures
    before = torch.arange(height, device=device) - moves[:, :1]  # (N, H): the row of the picture as it was
    right = moves[:, 1:].clamp(-width, width)
    row = before + torch.arange(number, device=device)[:, None] * height
    starts = width + 2 * width * row - right
    starts = torch.where((before < 0) | (before >= height), 0, starts)  # at 0 there are zeros only
    return flat.unfold(0, width, 1)[starts]


# %% loss_and_gradients 92f9b3802f
import torch
import torch.nn.functional as F


def loss_and_gradients(weights, pictures, labels):
    known = (labels >= 0).nonzero()[:, 0]
    if len(known) == 0:
        raise ValueError("no picture has a label")
    leaves = [weight.detach().requires_grad_() for weight in weights]
    total = torch.zeros((), dtype=weights[0].dtype, device=weights[0].device)
    sums = [torch.zeros_like(leaf) for leaf in leaves]
    for piece in known.split(32):
        scores = network(leaves, enlarged(pictures[piece], weights[0].dtype))
        loss = F.cross_entropy(scores, labels[piece], reduction="sum") / len(known)
        for part, gradient in zip(sums, torch.autograd.grad(loss, leaves), strict=True):
            part += gradient
        total += loss.detach()
        del scores, loss, gradient
    return total, [part.detach() for part in sums]


# %% evaluation 7b4c6bc097
import torch
import torch.nn.functional as F


class Evaluation:
    def __init__(self, classes, device):
        self.classes = classes
        # row 0 counts the pictures that nobody knows
        self.counts = torch.zeros(classes + 1, classes, dtype=torch.int64, device=device)
        self.loss = torch.zeros((), dtype=torch.float64, device=device)

    @torch.no_grad()
    def add(self, scores, labels):
        if tuple(scores.shape) != (len(labels), self.classes):
            raise ValueError(f"scores must have the shape {(len(labels), self.classes)}")
        places = torch.add(scores.argmax(1), labels + 1, alpha=self.classes)
        self.counts.view(-1).scatter_add_(0, places, torch.ones_like(places))
        self.loss += F.cross_entropy(scores.double(), labels, ignore_index=-1, reduction="sum")

    def result(self):
        table = self.counts[1:].clone()
        number = table.sum(dtype=torch.float64)
        right = table.diagonal().sum(dtype=torch.float64)
        return {"table": table, "accuracy": right / number, "loss": self.loss / number}


# %% train ff4b1c6307
import torch
import torch.nn.functional as F


def train(pictures, labels, orders, weights, rate, decay, keep):
    dtype = weights[0].dtype
    leaves = [weight.detach().clone().requires_grad_() for weight in weights]
    matrices = [leaf for leaf in leaves if leaf.ndim == 2]
    speeds = [torch.zeros_like(leaf) for leaf in leaves]
    averages = [leaf.detach().clone() for leaf in leaves]
    losses = torch.zeros(len(orders), device=pictures.device)
    for step, order in enumerate(orders):
        x = pictures[order].flatten(1).to(dtype) / 16
        deviation, mean = torch.std_mean(x, correction=0)
        loss = F.cross_entropy(scores_of_layers(leaves, (x - mean) / deviation), labels[order])
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            losses[step] = loss
            torch._foreach_mul_(speeds, 0.9)
            torch._foreach_add_(speeds, gradients)
            torch._foreach_mul_(matrices, 1 - rate * decay)
            torch._foreach_add_(leaves, speeds, alpha=-rate)
            torch._foreach_lerp_(averages, leaves, 1 - keep)
    return losses, [leaf.detach() for leaf in leaves], averages
