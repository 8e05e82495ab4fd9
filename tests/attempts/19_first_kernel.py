# %% add_layer_norm 2e500e5436
import torch
import triton
import triton.language as tl


@triton.jit
def add_layer_norm_kernel(
    x, residual, weight, bias, result, summed, columns, eps, xr, xc, rr, rc, ws, bs, TILE: tl.constexpr
):
    row = tl.program_id(0)
    place = tl.arange(0, TILE)
    inside = place < columns
    total = tl.load(x + row * xr + place * xc, mask=inside, other=0.0)
    total += tl.load(residual + row * rr + place * rc, mask=inside, other=0.0)
    tl.store(summed + row * columns + place, total, mask=inside)
    mean = tl.sum(total, axis=0) / columns
    # The padding must be 0 again after the mean is gone, or it would take part in the variance.
    centred = tl.where(inside, total - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    factor = tl.load(weight + place * ws, mask=inside, other=0.0)
    shift = tl.load(bias + place * bs, mask=inside, other=0.0)
    normal = centred / tl.sqrt(variance + eps) * factor + shift
    tl.store(result + row * columns + place, normal, mask=inside)


def add_layer_norm(x, residual, weight, bias, eps):
    rows, columns = x.shape
    result = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    summed = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    add_layer_norm_kernel[(rows,)](
        x,
        residual,
        weight,
        bias,
        result,
        summed,
        columns,
        eps,
        *x.stride(),
        *residual.stride(),
        weight.stride(0),
        bias.stride(0),
        TILE=triton.next_power_of_2(columns),
    )
    return result, summed


# %% int8_linear 460e67e35a
import torch
import triton
import triton.language as tl


@triton.jit
def int8_linear_kernel(
    x, weight, factors, bias, result, rows, outputs, inner, xr, xc, wr, wc, fs, bs, TILE: tl.constexpr
):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for first in range(0, inner, TILE):
        k = first + tl.arange(0, TILE)
        left_there = (row[:, None] < rows) & (k[None, :] < inner)
        left = tl.load(x + row[:, None] * xr + k[None, :] * xc, mask=left_there, other=0.0)
        # The weights are (outputs, inner); read here as (inner, outputs), which is transposed.
        right_there = (k[:, None] < inner) & (column[None, :] < outputs)
        right = tl.load(weight + k[:, None] * wc + column[None, :] * wr, mask=right_there, other=0)
        total += tl.dot(left, right.to(tl.float32), input_precision="ieee")
    here = column < outputs
    factor = tl.load(factors + column * fs, mask=here, other=0.0)
    shift = tl.load(bias + column * bs, mask=here, other=0.0)
    total = total * factor[None, :] + shift[None, :]
    there = (row[:, None] < rows) & (column[None, :] < outputs)
    tl.store(result + row[:, None] * outputs + column[None, :], total, mask=there)


def int8_linear(x, weight, factors, bias):
    (rows, inner), outputs = x.shape, weight.shape[0]
    tile = 32
    result = torch.empty((rows, outputs), dtype=torch.float32, device=x.device)
    grid = triton.cdiv(rows, tile), triton.cdiv(outputs, tile)
    int8_linear_kernel[grid](
        x,
        weight,
        factors,
        bias,
        result,
        rows,
        outputs,
        inner,
        *x.stride(),
        *weight.stride(),
        factors.stride(0),
        bias.stride(0),
        TILE=tile,
    )
    return result


# %% piecewise_softmax 9c3f902eab
import torch
import triton
import triton.language as tl


@triton.jit
def piecewise_softmax_kernel(
    scores, starts, result, score_stride, start_stride, result_stride, TILE: tl.constexpr
):
    piece = tl.program_id(0)
    begin = tl.load(starts + piece * start_stride)
    end = tl.load(starts + (piece + 1) * start_stride)

    highest = tl.full((TILE,), float("-inf"), dtype=tl.float32)
    for first in range(begin, end, TILE):
        place = first + tl.arange(0, TILE)
        numbers = tl.load(scores + place * score_stride, mask=place < end, other=float("-inf"))
        highest = tl.maximum(highest, numbers)
    top = tl.max(highest, axis=0)

    sums = tl.zeros((TILE,), dtype=tl.float32)
    for first in range(begin, end, TILE):
        place = first + tl.arange(0, TILE)
        numbers = tl.load(scores + place * score_stride, mask=place < end, other=float("-inf"))
        sums += tl.exp(numbers - top)
    total = tl.sum(sums, axis=0)

    for first in range(begin, end, TILE):
        place = first + tl.arange(0, TILE)
        inside = place < end
        numbers = tl.load(scores + place * score_stride, mask=inside, other=float("-inf"))
        tl.store(result + place * result_stride, tl.exp(numbers - top) / total, mask=inside)


def piecewise_softmax(scores, starts):
    result = torch.empty_like(scores)
    piecewise_softmax_kernel[(len(starts) - 1,)](
        scores, starts, result, scores.stride(0), starts.stride(0), result.stride(0), TILE=256
    )
    return result


# %% advantages 29b13c313b
import torch

advantages_source = """
extern "C" void advantages(const float* rewards, const float* values, const unsigned char* done, float* result,
                           long long steps, long long columns, double gamma, double decay) {
  const float g = gamma, both = gamma * decay;
  for (long long t = steps - 1; t >= 0; t--) {
    const float* __restrict__ reward = rewards + t * columns;
    const float* __restrict__ value = values + t * columns;
    const float* __restrict__ next = values + (t + 1) * columns;
    const unsigned char* __restrict__ ended = done + t * columns;
    const float* following = result + (t + 1) * columns;
    float* now = result + t * columns;
    const bool last = t == steps - 1;
    for (long long n = 0; n < columns; n++) {
      float goes_on = ended[n] ? 0.0f : 1.0f;
      float surprise = reward[n] + g * goes_on * next[n] - value[n];
      now[n] = surprise + both * goes_on * (last ? 0.0f : following[n]);
    }
  }
}
"""
advantages_loop = None
if compiler:
    advantages_loop = build(
        advantages_source,
        "advantages",
        ["pointer", "pointer", "pointer", "pointer", "long long", "long long", "double", "double"],
    )


def advantages(rewards, values, done, gamma, decay):
    # The names keep the copies alive while the loop reads them.
    rewards, values, done = rewards.contiguous(), values.contiguous(), done.contiguous()
    steps, columns = rewards.shape
    result = torch.empty((steps, columns), dtype=torch.float32)
    advantages_loop(
        rewards.data_ptr(),
        values.data_ptr(),
        done.data_ptr(),
        result.data_ptr(),
        steps,
        columns,
        gamma,
        decay,
    )
    return result


# %% best_tile d217f6ef54
def best_tile(rows, columns, inner, space):
    best = None
    for a in (16, 32, 64, 128, 256):
        down = -(-rows // a)
        for b in (16, 32, 64, 128, 256):
            if a * b + 32 * (a + b) > space:
                break  # a larger b needs still more
            across = -(-columns // b)
            # Every row is loaded once for each column of programs, every column once for each row of programs.
            loaded = inner * (rows * across + columns * down)
            option = loaded, down * across, a, b
            if best is None or option < best:
                best = option
    if best is None:
        raise ValueError("no tile fits")
    loaded, _, a, b = best
    return a, b, loaded
