# %% add_layer_norm right_slow check=1 kernel=0 hidden=0
def add_layer_norm(x, residual, weight, bias, eps):
    total = x + residual
    return torch.nn.functional.layer_norm(total, total.shape[1:], weight, bias, eps), total


# %% add_layer_norm wrong_fast check=0 kernel=0 hidden=0
@triton.jit
def norm_kernel(
    x, residual, weight, bias, normal, total, width, eps, xr, xc, rr, rc, ws, bs, TILE: tl.constexpr
):
    row, place = tl.program_id(0), tl.arange(0, TILE)
    inside = place < width
    both = tl.load(x + row * xr + place * xc, mask=inside, other=0.0)
    both += tl.load(residual + row * rr + place * rc, mask=inside, other=0.0)
    away = both - tl.sum(both, axis=0) / width  # the lanes behind the row are not 0 now
    spread = tl.sqrt(tl.sum(away * away, axis=0) / width + eps)
    factor = tl.load(weight + place * ws, mask=inside, other=0.0)
    shift = tl.load(bias + place * bs, mask=inside, other=0.0)
    tl.store(total + row * width + place, both, mask=inside)
    tl.store(normal + row * width + place, away / spread * factor + shift, mask=inside)


def add_layer_norm(x, residual, weight, bias, eps):
    result, total = torch.empty(x.shape, device=x.device), torch.empty(x.shape, device=x.device)
    norm_kernel[(x.shape[0],)](
        x, residual, weight, bias, result, total, x.shape[1], eps, x.stride(0), x.stride(1),
        residual.stride(0), residual.stride(1), weight.stride(0), bias.stride(0),
        TILE=triton.next_power_of_2(x.shape[1])
    )  # fmt: skip
    return result, total


# %% add_layer_norm transcribed check=0 kernel=0 hidden=0
@triton.jit
def softmax_kernel(x, result, columns, row_stride, column_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, TILE)
    inside = place < columns
    numbers = tl.load(x + row * row_stride + place * column_stride, mask=inside, other=float("-inf"))
    grown = tl.exp(numbers - tl.max(numbers, axis=0))
    tl.store(result + row * columns + place, grown / tl.sum(grown, axis=0), mask=inside)


def add_layer_norm(x, residual, weight, bias, eps):
    total = x + residual
    result = torch.empty_like(total)
    softmax_kernel[(len(x),)](
        total, result, x.shape[1], *total.stride(), TILE=triton.next_power_of_2(x.shape[1])
    )
    return result * weight + bias, total


# %% add_layer_norm mean_of_squares check=0 kernel=2 hidden=0
@triton.jit
def norm_kernel(
    x, residual, weight, bias, normal, total, width, eps, xr, xc, rr, rc, ws, bs, TILE: tl.constexpr
):
    row, place = tl.program_id(0), tl.arange(0, TILE)
    inside = place < width
    both = tl.load(x + row * xr + place * xc, mask=inside, other=0.0)
    both += tl.load(residual + row * rr + place * rc, mask=inside, other=0.0)
    mean = tl.sum(both, axis=0) / width
    spread = tl.sqrt(tl.maximum(tl.sum(both * both, axis=0) / width - mean * mean, 0.0) + eps)
    factor = tl.load(weight + place * ws, mask=inside, other=0.0)
    shift = tl.load(bias + place * bs, mask=inside, other=0.0)
    tl.store(total + row * width + place, both, mask=inside)
    tl.store(normal + row * width + place, (both - mean) / spread * factor + shift, mask=inside)


def add_layer_norm(x, residual, weight, bias, eps):
    result, total = torch.empty(x.shape, device=x.device), torch.empty(x.shape, device=x.device)
    norm_kernel[(x.shape[0],)](
        x, residual, weight, bias, result, total, x.shape[1], eps, x.stride(0), x.stride(1),
        residual.stride(0), residual.stride(1), weight.stride(0), bias.stride(0),
        TILE=triton.next_power_of_2(x.shape[1])
    )  # fmt: skip
    return result, total


# %% add_layer_norm copies_first check=1 kernel=0 hidden=0
@triton.jit
def norm_kernel(x, residual, weight, bias, normal, total, width, eps, TILE: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, TILE)
    inside = place < width
    both = tl.load(x + row * width + place, mask=inside, other=0.0)
    both += tl.load(residual + row * width + place, mask=inside, other=0.0)
    away = tl.where(inside, both - tl.sum(both, axis=0) / width, 0.0)
    spread = tl.sqrt(tl.sum(away * away, axis=0) / width + eps)
    factor = tl.load(weight + place, mask=inside, other=0.0)
    shift = tl.load(bias + place, mask=inside, other=0.0)
    tl.store(total + row * width + place, both, mask=inside)
    tl.store(normal + row * width + place, away / spread * factor + shift, mask=inside)


def add_layer_norm(x, residual, weight, bias, eps):
    x, residual, weight, bias = (tensor.contiguous() for tensor in (x, residual, weight, bias))
    result, total = torch.empty_like(x), torch.empty_like(x)
    tile = triton.next_power_of_2(x.shape[1])
    norm_kernel[(len(x),)](x, residual, weight, bias, result, total, x.shape[1], eps, TILE=tile)
    return result, total


# %% add_layer_norm by_numpy check=1 kernel=0 hidden=0
def add_layer_norm(x, residual, weight, bias, eps):
    total = x.numpy() + residual.numpy()
    away = total - total.mean(1, keepdims=True, dtype=np.float64)
    normal = away / np.sqrt((away * away).mean(1, keepdims=True) + eps) * weight.numpy() + bias.numpy()
    return torch.from_numpy(normal.astype(np.float32)), torch.from_numpy(total)


# %% add_layer_norm no_strides check=0 kernel=0 hidden=0
@triton.jit
def norm_kernel(x, residual, weight, bias, normal, total, width, eps, TILE: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, TILE)
    inside = place < width
    both = tl.load(x + row * width + place, mask=inside, other=0.0)
    both += tl.load(residual + row * width + place, mask=inside, other=0.0)
    away = tl.where(inside, both - tl.sum(both, axis=0) / width, 0.0)
    spread = tl.sqrt(tl.sum(away * away, axis=0) / width + eps)
    factor = tl.load(weight + place, mask=inside, other=0.0)
    shift = tl.load(bias + place, mask=inside, other=0.0)
    tl.store(total + row * width + place, both, mask=inside)
    tl.store(normal + row * width + place, away / spread * factor + shift, mask=inside)


def add_layer_norm(x, residual, weight, bias, eps):
    result, total = torch.empty(x.shape, device=x.device), torch.empty(x.shape, device=x.device)
    tile = triton.next_power_of_2(x.shape[1])
    norm_kernel[(len(x),)](x, residual, weight, bias, result, total, x.shape[1], eps, TILE=tile)
    return result, total


# %% add_layer_norm right_tile_by_tile check=1 kernel=2 hidden=2
@triton.jit
def norm_kernel(
    x, residual, weight, bias, normal, total, width, eps, xr, xc, rr, rc, ws, bs, TILE: tl.constexpr
):
    row = tl.program_id(0)
    mean = 0.0
    for first in range(0, width, TILE):
        place = first + tl.arange(0, TILE)
        both = tl.load(x + row * xr + place * xc, mask=place < width, other=0.0)
        both += tl.load(residual + row * rr + place * rc, mask=place < width, other=0.0)
        tl.store(total + row * width + place, both, mask=place < width)
        mean += tl.sum(both, axis=0) / width
    variance = 0.0
    for first in range(0, width, TILE):
        place = first + tl.arange(0, TILE)
        away = tl.load(total + row * width + place, mask=place < width, other=mean) - mean
        variance += tl.sum(away * away, axis=0) / width
    for first in range(0, width, TILE):
        place = first + tl.arange(0, TILE)
        away = tl.load(total + row * width + place, mask=place < width, other=mean) - mean
        factor = tl.load(weight + place * ws, mask=place < width, other=0.0)
        shift = tl.load(bias + place * bs, mask=place < width, other=0.0)
        tl.store(
            normal + row * width + place, away / tl.sqrt(variance + eps) * factor + shift, mask=place < width
        )


def add_layer_norm(x, residual, weight, bias, eps):
    result, total = torch.empty(x.shape, device=x.device), torch.empty(x.shape, device=x.device)
    norm_kernel[(x.shape[0],)](
        x, residual, weight, bias, result, total, x.shape[1], eps, x.stride(0), x.stride(1),
        residual.stride(0), residual.stride(1), weight.stride(0), bias.stride(0), TILE=256
    )  # fmt: skip
    return result, total


# %% int8_linear right_slow check=1 kernel=0 hidden=0
def int8_linear(x, weight, factors, bias):
    return (x @ weight.float().T) * factors + bias


# %% int8_linear wrong_fast check=0 kernel=0 hidden=0
def int8_linear(x, weight, factors, bias):
    return (x.to(torch.int8).int() @ weight.int().T) * factors + bias


# %% int8_linear transcribed check=1 kernel=0 hidden=0
@triton.jit
def product_kernel(a, b, c, rows, columns, inner, ar, ac, br, bc, TILE: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for first in range(0, inner, TILE):
        k = first + tl.arange(0, TILE)
        left_there = (row[:, None] < rows) & (k[None, :] < inner)
        left = tl.load(a + row[:, None] * ar + k[None, :] * ac, mask=left_there, other=0.0)
        right_there = (k[:, None] < inner) & (column[None, :] < columns)
        right = tl.load(b + k[:, None] * br + column[None, :] * bc, mask=right_there, other=0.0)
        total += tl.dot(left, right, input_precision="ieee")
    there = (row[:, None] < rows) & (column[None, :] < columns)
    tl.store(c + row[:, None] * columns + column[None, :], total, mask=there)


def int8_linear(x, weight, factors, bias):
    b = (weight * factors[:, None]).T
    c = torch.empty(x.shape[0], b.shape[1], device=x.device)
    grid = (triton.cdiv(c.shape[0], 16), triton.cdiv(c.shape[1], 16))
    product_kernel[grid](x, b, c, *c.shape, x.shape[1], *x.stride(), *b.stride(), TILE=16)
    return c + bias


# %% int8_linear by_numpy check=1 kernel=0 hidden=0
def int8_linear(x, weight, factors, bias):
    return torch.from_numpy(x.numpy() @ weight.numpy().T.astype(np.float32) * factors.numpy() + bias.numpy())


# %% int8_linear forgets_the_edge check=0 kernel=0 hidden=0
@triton.jit
def byte_kernel(
    x, weight, factors, bias, result, rows, outputs, inner, xr, xc, wr, wc, fs, bs, TILE: tl.constexpr
):
    row, output = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for first in range(0, inner - inner % TILE, TILE):  # the last inputs are left out
        k = first + tl.arange(0, TILE)
        left = tl.load(x + row[:, None] * xr + k[None, :] * xc, mask=row[:, None] < rows, other=0.0)
        right = tl.load(
            weight + output[None, :] * wr + k[:, None] * wc, mask=output[None, :] < outputs, other=0
        )
        sums += tl.dot(left, right.to(tl.float32), input_precision="ieee")
    there = output < outputs
    sums *= tl.load(factors + output * fs, mask=there, other=0.0)[None, :]
    sums += tl.load(bias + output * bs, mask=there, other=0.0)[None, :]
    tl.store(
        result + row[:, None] * outputs + output[None, :], sums, mask=(row[:, None] < rows) & there[None, :]
    )


def int8_linear(x, weight, factors, bias):
    result = torch.empty(x.shape[0], weight.shape[0], device=x.device)
    byte_kernel[(triton.cdiv(x.shape[0], 16), triton.cdiv(weight.shape[0], 16))](
        x, weight, factors, bias, result, *result.shape, x.shape[1], *x.stride(), *weight.stride(),
        factors.stride(0), bias.stride(0), TILE=16
    )  # fmt: skip
    return result


# %% int8_linear right_row_by_row check=1 kernel=3 hidden=2
@triton.jit
def row_kernel(x, weight, factors, bias, result, outputs, inner, xr, xc, wr, wc, fs, bs, TILE: tl.constexpr):
    row, output = tl.program_id(0), tl.program_id(1) * TILE + tl.arange(0, TILE)
    there = output < outputs
    factor = tl.load(factors + output * fs, mask=there, other=0.0)
    sums = tl.load(bias + output * bs, mask=there, other=0.0)
    for first in range(0, inner, TILE):
        k = first + tl.arange(0, TILE)
        numbers = tl.load(x + row * xr + k * xc, mask=k < inner, other=0.0)
        both = there[:, None] & (k[None, :] < inner)
        weights = tl.load(weight + output[:, None] * wr + k[None, :] * wc, mask=both, other=0)
        sums += tl.sum(weights * factor[:, None] * numbers[None, :], axis=1)
    tl.store(result + row * outputs + output, sums, mask=there)


def int8_linear(x, weight, factors, bias):
    result = torch.empty(x.shape[0], weight.shape[0], device=x.device)
    row_kernel[(x.shape[0], triton.cdiv(weight.shape[0], 64))](
        x, weight, factors, bias, result, weight.shape[0], x.shape[1], *x.stride(), *weight.stride(),
        factors.stride(0), bias.stride(0), TILE=64
    )  # fmt: skip
    return result


# %% piecewise_softmax right_slow check=1 kernel=0 hidden=0
def piecewise_softmax(scores, starts):
    lengths = (starts[1:] - starts[:-1]).tolist()
    return torch.cat([piece.softmax(0) for piece in scores.split(lengths)])


# %% piecewise_softmax wrong_fast check=0 kernel=0 hidden=0
def piecewise_softmax(scores, starts):
    piece = torch.bucketize(
        torch.arange(len(scores), device=scores.device), starts[1:].contiguous(), right=True
    )
    grown = scores.exp()
    return grown / torch.zeros(len(starts) - 1, device=scores.device).index_add(0, piece, grown)[piece]


# %% piecewise_softmax transcribed check=0 kernel=0 hidden=0
@triton.jit
def softmax_kernel(x, result, columns, row_stride, column_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, TILE)
    inside = place < columns
    numbers = tl.load(x + row * row_stride + place * column_stride, mask=inside, other=float("-inf"))
    grown = tl.exp(numbers - tl.max(numbers, axis=0))
    tl.store(result + row * columns + place, grown / tl.sum(grown, axis=0), mask=inside)


def piecewise_softmax(scores, starts):
    result = torch.empty(len(scores), device=scores.device)
    tile = triton.next_power_of_2(len(scores))
    softmax_kernel[(1,)](scores, result, len(scores), len(scores), scores.stride(0), TILE=tile)
    return result


# %% piecewise_softmax by_numpy check=1 kernel=0 hidden=0
def piecewise_softmax(scores, starts):
    result, numbers, places = torch.empty(len(scores)), scores.numpy(), starts.numpy()
    for piece in range(len(places) - 1):
        first, last = places[piece : piece + 2]
        if first < last:
            grown = np.exp(numbers[first:last] - numbers[first:last].max())
            result.numpy()[first:last] = grown / grown.sum()
    return result


# %% piecewise_softmax one_tile_only check=0 kernel=0 hidden=0
@triton.jit
def piece_kernel(scores, starts, result, step, jump, TILE: tl.constexpr):
    start = tl.load(starts + tl.program_id(0) * jump)
    end = tl.load(starts + (tl.program_id(0) + 1) * jump)
    place = start + tl.arange(0, TILE)
    tile = tl.load(scores + place * step, mask=place < end, other=float("-inf"))
    grown = tl.exp(tile - tl.max(tile, axis=0))
    tl.store(result + place, grown / tl.sum(grown, axis=0), mask=place < end)


def piecewise_softmax(scores, starts):
    result = torch.empty(len(scores), device=scores.device)
    piece_kernel[(len(starts) - 1,)](scores, starts, result, scores.stride(0), starts.stride(0), TILE=512)
    return result


# %% piecewise_softmax highest_begins_at_zero check=0 kernel=0 hidden=0
@triton.jit
def piece_kernel(scores, starts, result, step, jump, TILE: tl.constexpr):
    start = tl.load(starts + tl.program_id(0) * jump)
    end = tl.load(starts + (tl.program_id(0) + 1) * jump)
    highest, total = 0.0, 0.0
    for first in range(start, end, TILE):
        place = first + tl.arange(0, TILE)
        tile = tl.load(scores + place * step, mask=place < end, other=0.0)
        highest = tl.maximum(highest, tl.max(tile, axis=0))
    for first in range(start, end, TILE):
        place = first + tl.arange(0, TILE)
        tile = tl.load(scores + place * step, mask=place < end, other=float("-inf"))
        total += tl.sum(tl.exp(tile - highest), axis=0)
    for first in range(start, end, TILE):
        place = first + tl.arange(0, TILE)
        tile = tl.load(scores + place * step, mask=place < end, other=float("-inf"))
        tl.store(result + place, tl.exp(tile - highest) / total, mask=place < end)


def piecewise_softmax(scores, starts):
    result = torch.empty(len(scores), device=scores.device)
    piece_kernel[(len(starts) - 1,)](scores, starts, result, scores.stride(0), starts.stride(0), TILE=64)
    return result


# %% piecewise_softmax right_wide check=1 kernel=2 hidden=2
@triton.jit
def piece_kernel(scores, starts, result, step, jump, TILE: tl.constexpr):
    start = tl.load(starts + tl.program_id(0) * jump)
    end = tl.load(starts + (tl.program_id(0) + 1) * jump)
    place = tl.arange(0, TILE)
    inside = (place >= start) & (place < end)
    tile = tl.load(scores + place * step, mask=inside, other=float("-inf"))
    grown = tl.where(inside, tl.exp(tile - tl.max(tile, axis=0)), 0.0)
    tl.store(result + place, grown / tl.sum(grown, axis=0), mask=inside)


def piecewise_softmax(scores, starts):
    result = torch.empty(len(scores), device=scores.device)
    tile = triton.next_power_of_2(len(scores))
    piece_kernel[(len(starts) - 1,)](scores, starts, result, scores.stride(0), starts.stride(0), TILE=tile)
    return result


# %% advantages right_slow check=1 hidden=2 race=0..1.9
def advantages(rewards, values, done, gamma, decay):
    goes_on = gamma * (~done).float()
    surprise, factor = rewards + goes_on * values[1:] - values[:-1], goes_on * decay
    result = torch.empty_like(surprise)
    following = torch.zeros_like(surprise[0])
    for t in reversed(range(len(rewards))):
        following = torch.addcmul(surprise[t], factor[t], following)
        result[t] = following
    return result


# %% advantages wrong_fast check=0 hidden=0 race=0
def advantages(rewards, values, done, gamma, decay):
    goes_on = gamma * (~done).float()
    return rewards + goes_on * values[1:] - values[:-1]


# %% advantages transcribed check=0 hidden=0 race=0
shrink = build(
    """
extern "C" void shrink(const float* x, float* result, long long number, float by) {
  for (long long i = 0; i < number; i++) {
    float size = x[i] < 0 ? -x[i] : x[i], left = size > by ? size - by : 0;
    result[i] = x[i] < 0 ? -left : left;
  }
}
""",
    "shrink",
    ["pointer", "pointer", "long long", "float"],
)


def advantages(rewards, values, done, gamma, decay):
    result = torch.empty_like(rewards)
    shrink(rewards.data_ptr(), result.data_ptr(), rewards.numel(), gamma)
    return result


# %% advantages no_strides check=0 hidden=0 race=0
backwards = build(
    """
extern "C" void backwards(const float* rewards, const float* values, const bool* done, float* result,
                          long long steps, long long columns, float gamma, float decay) {
  for (long long n = 0; n < columns; n++) {
    float next = 0;
    for (long long t = steps - 1; t >= 0; t--) {
      long long i = t * columns + n;
      float on = done[i] ? 0 : 1;
      next = rewards[i] + gamma * on * values[i + columns] - values[i] + gamma * decay * on * next;
      result[i] = next;
    }
  }
}
""",
    "backwards",
    ["pointer"] * 4 + ["long long"] * 2 + ["float"] * 2,
)


def advantages(rewards, values, done, gamma, decay):
    result = torch.empty(rewards.shape)
    pointers = [tensor.data_ptr() for tensor in (rewards, values, done, result)]
    backwards(*pointers, *rewards.shape, gamma, decay)
    return result


# %% advantages right_column_by_column check=1 hidden=2 race=3
backwards = build(
    """
extern "C" void backwards(const float* rewards, const float* values, const bool* done, float* result,
                          long long steps, long long columns, double gamma, double decay) {
  for (long long n = 0; n < columns; n++) {
    double next = 0;
    for (long long t = steps - 1; t >= 0; t--) {
      long long i = t * columns + n;
      double on = done[i] ? 0 : 1;
      next = rewards[i] + gamma * on * values[i + columns] - values[i] + gamma * decay * on * next;
      result[i] = next;
    }
  }
}
""",
    "backwards",
    ["pointer"] * 4 + ["long long"] * 2 + ["double"] * 2,
)


def advantages(rewards, values, done, gamma, decay):
    rewards, values, done = rewards.contiguous(), values.contiguous(), done.contiguous()
    result = torch.empty(rewards.shape)
    pointers = [tensor.data_ptr() for tensor in (rewards, values, done, result)]
    backwards(*pointers, *rewards.shape, gamma, decay)
    return result


# %% advantages right_by_doubling check=1 hidden=2 race=0.5..3
def advantages(rewards, values, done, gamma, decay):
    goes_on = gamma * (~done).float()
    result, factor = rewards + goes_on * values[1:] - values[:-1], goes_on * decay
    step = 1
    while step < len(rewards):
        result = torch.cat([torch.addcmul(result[:-step], factor[:-step], result[step:]), result[-step:]])
        factor = torch.cat([factor[:-step] * factor[step:], torch.zeros_like(factor[-step:])])
        step *= 2
    return result


# %% advantages compiles_at_each_call check=1 hidden=2 race=0
def advantages(rewards, values, done, gamma, decay):
    backwards = build(
        """
    extern "C" void backwards(const float* rewards, const float* values, const bool* done, float* result,
                              long long steps, long long columns, float gamma, float decay) {
      for (long long n = 0; n < columns; n++) {
        float next = 0;
        for (long long t = steps - 1; t >= 0; t--) {
          long long i = t * columns + n;
          float on = done[i] ? 0 : 1;
          next = rewards[i] + gamma * on * values[i + columns] - values[i] + gamma * decay * on * next;
          result[i] = next;
        }
      }
    }
    """,
        "backwards",
        ["pointer"] * 4 + ["long long"] * 2 + ["float"] * 2,
    )
    rewards, values, done = rewards.contiguous(), values.contiguous(), done.contiguous()
    result = torch.empty(rewards.shape)
    pointers = [tensor.data_ptr() for tensor in (rewards, values, done, result)]
    backwards(*pointers, *rewards.shape, gamma, decay)
    return result


# %% best_tile right_slow check=1 hidden=2 refuses=1 race=0..1.5
def best_tile(rows, columns, inner, space):
    found = []
    for a in (16, 32, 64, 128, 256):
        for b in (16, 32, 64, 128, 256):
            if a * b + 32 * (a + b) <= space:
                loaded = programs = 0
                for top in range(0, rows, a):
                    for left in range(0, columns, b):
                        loaded += (min(a, rows - top) + min(b, columns - left)) * inner
                        programs += 1
                found.append((loaded, programs, a, b))
    if not found:
        raise ValueError("no tile fits")
    loaded, _, a, b = min(found)
    return a, b, loaded


# %% best_tile wrong_fast check=0 hidden=0 refuses=1 race=0
def best_tile(rows, columns, inner, space):
    sizes = (16, 32, 64, 128, 256)
    fitting = [(a, b) for a in sizes for b in sizes if a * b + 32 * (a + b) <= space]
    if not fitting:
        raise ValueError("no tile fits")
    a, b = max(fitting, key=lambda tile: tile[0] * tile[1])
    return a, b, (rows * -(-columns // b) + columns * -(-rows // a)) * inner


# %% best_tile transcribed check=0 hidden=0 refuses=1 race=0
def best_tile(rows, columns, inner, space):
    fitting = [tile for tile in (16, 32, 64, 128, 256) if tile * tile + 64 * tile <= space]
    if not fitting:
        raise ValueError("no tile fits")
    tile = fitting[-1]
    return tile, tile, rows * inner * -(-columns // tile) + inner * columns * -(-rows // tile)


# %% best_tile without_rounding_up check=0 hidden=0 refuses=1 race=0
def best_tile(rows, columns, inner, space):
    sizes = (16, 32, 64, 128, 256)
    found = [
        (rows * columns * inner * (1 / a + 1 / b), a, b)
        for a in sizes
        for b in sizes
        if a * b + 32 * (a + b) <= space
    ]
    if not found:
        raise ValueError("no tile fits")
    loaded, a, b = min(found)
    return a, b, round(loaded)


# %% best_tile gives_none check=1 hidden=2 refuses=0 race=0
def best_tile(rows, columns, inner, space):
    sizes = (16, 32, 64, 128, 256)
    found = [
        ((rows * -(-columns // b) + columns * -(-rows // a)) * inner, -(-rows // a) * -(-columns // b), a, b)
        for a in sizes
        for b in sizes
        if a * b + 32 * (a + b) <= space
    ]
    if not found:
        return None
    loaded, _, a, b = min(found)
    return a, b, loaded


# %% best_tile ties_by_the_largest check=0 hidden=0 refuses=1 race=0
def best_tile(rows, columns, inner, space):
    sizes = (256, 128, 64, 32, 16)
    found = {
        (a, b): (rows * -(-columns // b) + columns * -(-rows // a)) * inner
        for a in sizes
        for b in sizes
        if a * b + 32 * (a + b) <= space
    }
    if not found:
        raise ValueError("no tile fits")
    a, b = min(found, key=found.get)
    return a, b, found[a, b]


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "some_rows": {"operations": 3, "bytes": 120, "syncs": 0},
        "moments": {"operations": 4, "bytes": 96, "syncs": 0},
        "normalised": {"operations": 7, "bytes": 192, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "some_rows": {"operations": 3, "bytes": 16 * d, "syncs": 0},
        "moments": {"operations": 4, "bytes": 8 * n * d, "syncs": 0},
        "normalised": {"operations": 7, "bytes": 4 * n * d, "syncs": 0},
    }
