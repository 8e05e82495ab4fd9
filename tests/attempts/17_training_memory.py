# %% train_gradients 8b4e91dbb3
import torch


@torch.no_grad()
def train_gradients(x, body, head, labels, z):
    size = 32  # rows in a chunk
    counted = labels != -100
    share = counted / counted.sum().clamp(min=1)  # what each row's loss weighs; 0 if it does not count
    wanted = labels.clamp(min=0)
    active = torch.tanh(x @ body)
    hidden = active - active.mean(0)
    total, of_hidden, of_head = hidden.new_zeros(()), torch.empty_like(hidden), torch.zeros_like(head)
    for first in range(0, len(labels), size):
        part = slice(first, first + size)
        rows, index, weigh = hidden[part], wanted[part].unsqueeze(1), share[part]
        scores = rows @ head.T
        lse = scores.logsumexp(1)
        each = lse - scores.gather(1, index).squeeze(1) + z * lse.square()
        total += (each * weigh).sum()
        # The table of scores becomes the table of slopes, in place.
        scores.sub_(lse.unsqueeze(1)).exp_().mul_(((1 + 2 * z * lse) * weigh).unsqueeze(1))
        scores.scatter_add_(1, index, -weigh.unsqueeze(1))
        of_hidden[part] = scores @ head
        of_head.addmm_(scores.T, rows)
        del scores
    of_hidden -= of_hidden.mean(0)
    of_hidden *= 1 - active.square()
    return total, x.T @ of_hidden, of_head


# %% biased_relus c4949dc2a1
import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


def packed_bits(mask, shifts):
    """Bool tensor -> uint8 tensor with an eighth as many numbers."""
    flat = mask.flatten().view(torch.uint8)
    count = -(-flat.numel() // 8)
    flat = F.pad(flat, (0, 8 * count - flat.numel())).view(8, count)
    return torch.bitwise_left_shift(flat, shifts).sum(0, dtype=torch.uint8)


def unpacked_bits(packed, shifts, shape):
    bits = torch.bitwise_right_shift(packed.unsqueeze(0), shifts).bitwise_and_(1)
    return bits.flatten()[: shape.numel()].view(shape)


class BiasedRelus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, biases):
        shifts = torch.arange(8, dtype=torch.uint8, device=x.device).unsqueeze(1)
        kept, result = [], None
        for bias in biases:
            result = x + bias if result is None else result.add_(bias)
            result.relu_()
            if any(ctx.needs_input_grad):
                kept.append(packed_bits(result > 0, shifts))
        ctx.save_for_backward(*kept)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, slope):
        shifts = torch.arange(8, dtype=torch.uint8, device=slope.device).unsqueeze(1)
        kept = ctx.saved_tensors
        of_biases = None
        if ctx.needs_input_grad[1]:
            of_biases = slope.new_empty(len(kept), slope.shape[1])
        for number in reversed(range(len(kept))):
            off = unpacked_bits(kept[number], shifts, slope.shape) == 0
            slope = slope.masked_fill(off, 0)
            if of_biases is not None:
                of_biases[number] = slope.sum(0)
        return slope if ctx.needs_input_grad[0] else None, of_biases


def biased_relus(x, biases):
    return BiasedRelus.apply(x, biases)


# %% clipped_training e829972272
import torch


@torch.no_grad()
def clipped_training(weights, batches, targets, rate, limit):
    weights = [weight.clone() for weight in weights]
    losses = []
    for batch, target in zip(batches, targets, strict=True):
        inputs = [batch]  # what goes into each product
        for weight in weights[:-1]:
            inputs.append((inputs[-1] @ weight).tanh_())
        slope = inputs[-1] @ weights[-1] - target
        losses.append(slope.square().mean())
        slope *= 2 / slope.numel()
        # A weight's gradient is inputs.T @ slope: both are small, so keep these and not the gradient.
        slopes = [None] * len(weights)
        squares = slope.new_zeros(())
        for number in reversed(range(len(weights))):
            slopes[number] = slope
            squares += (inputs[number].T @ slope).square_().sum()
            if number:
                slope = (slope @ weights[number].T) * (1 - inputs[number].square())
        factor = (limit / squares.sqrt()).clamp(max=1)
        for weight, before, slope in zip(weights, inputs, slopes, strict=True):
            weight.addmm_(before.T, slope * factor, alpha=-rate)
    return weights, torch.stack(losses)


# %% kept_bytes 28a0b2a9a8
def kept_bytes(rows, sizes, functions, dtype):
    # The next layer keeps the result of a function. relu, tanh and sigmoid keep that same result; gelu and silu
    # keep what goes into them, which is another table. After the last layer there is no next one.
    numbers = 0
    last = len(functions) - 1
    for number, name in enumerate(functions):
        tables = int(number < last)
        if name in ("gelu", "silu"):
            tables += 1
        elif name != "none":
            tables = 1
        numbers += tables * sizes[number + 1]
    return numbers * rows * dtype.itemsize


# %% long_gradients 2f6f11d259
import torch


@torch.no_grad()
def long_gradients(start, weight, inputs):
    def advanced(state, first, last):
        state = state.clone()
        for step in range(first, last):
            state.add_(torch.addmm(inputs[step], state, weight).tanh_(), alpha=0.01)
        return state

    state = advanced(start, 0, len(inputs))
    loss = state.square().mean()
    slope = state.mul_(2 / state.numel())  # of the last state; goes back in place, down to that of the start
    of_weight = torch.zeros_like(weight)

    def back(state, first, last):
        if last - first == 1:
            inner = torch.addmm(inputs[first], state, weight).tanh_()
            inner.square_().neg_().add_(1).mul_(slope)
            of_weight.addmm_(state.T, inner, alpha=0.01)
            slope.addmm_(inner, weight.T, alpha=0.01)
            return
        middle = (first + last) // 2
        back(advanced(state, first, middle), middle, last)
        back(state, first, middle)

    back(start, 0, len(inputs))
    return loss, slope, of_weight
