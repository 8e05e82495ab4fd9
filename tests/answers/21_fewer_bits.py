"""Known answers to chapter 21, each with what it must get in every test cell."""


# %% unpack_five right_slow check=1 hidden=1 race=0
def unpack_five(packed, scales, columns):
    rows = []
    for row in range(len(packed)):
        found = []
        for byte in packed[row].tolist():
            found += [byte // 3**place % 3 - 1 for place in range(5)]
        rows.append(torch.tensor(found[:columns], dtype=scales.dtype) * scales[row].item())
    return torch.stack(rows).to(scales.device) if rows else scales.new_zeros(0, columns)


# %% unpack_five transcribed check=0 hidden=0 race=0
def unpack_five(packed, scales, columns):
    nibbles = torch.stack([packed & 15, packed >> 4], 2).flatten(1).view(torch.int8)
    return ((nibbles ^ 8) - 8)[:, :columns].to(scales.dtype) * scales[:, None]


# %% unpack_five without_a_sign check=0 hidden=0 race=0
def unpack_five(packed, scales, columns):
    divisors = torch.tensor([1, 3, 9, 27, 81], dtype=torch.uint8, device=packed.device)
    digits = (packed[:, :, None] // divisors % 3 - 1).flatten(1)[:, :columns]
    return digits.to(scales.dtype) * scales[:, None]


# %% unpack_five the_last_byte_whole check=0 hidden=0 race=0
def unpack_five(packed, scales, columns):
    divisors = torch.tensor([1, 3, 9, 27, 81], dtype=torch.uint8, device=packed.device)
    digits = (packed[:, :, None] // divisors % 3).flatten(1)
    return (digits.to(scales.dtype) - 1) * scales[:, None]


# %% unpack_five right_by_a_table check=1 hidden=1 race=2
def unpack_five(packed, scales, columns):
    codes = torch.arange(243, device=packed.device)
    table = torch.stack([codes // 3**place % 3 - 1 for place in range(5)], 1).to(scales.dtype)
    return table[packed.long()].flatten(1)[:, :columns] * scales[:, None]


# %% models_at_work right_large check=1 lean=0 hidden=2
def models_at_work(specifications, x):
    return at_work(quantize, specifications, x)


def quantize(model):
    done = set()
    for layer in model.modules():
        if isinstance(layer, nn.Linear) and layer not in done:
            done.add(layer)
            weight = layer.weight.data
            scale = weight.abs().amax(1, keepdim=True).div(127).clamp(min=1e-12)
            layer.weight.data = weight.div(scale).round().mul(scale)
    return model


# %% models_at_work transcribed check=0..1 lean=0 hidden=0
def models_at_work(specifications, x):
    return at_work(quantize, specifications, x)


def quantize(model, bits=8):
    most = 2 ** (bits - 1) - 1
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            scale = layer.weight.abs().amax((), keepdim=True) / most
            numbers = (layer.weight / scale).round().clamp(-most, most).to(torch.int8)
            layer.weight.copy_(numbers * scale)
    return model


# %% models_at_work keeps_the_floats check=1 lean=0 hidden=2
def models_at_work(specifications, x):
    return at_work(quantize, specifications, x)


class Int8Linear(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        weight = layer.weight.data
        scale = weight.abs().amax(1, keepdim=True).div(127).clamp(min=1e-12)
        self.numbers, self.scale = weight.div(scale).round().to(torch.int8), scale

    def forward(self, x):
        return F.linear(x, self.numbers * self.scale, self.layer.bias)


def quantize(model, known=None):
    known = {} if known is None else known
    if isinstance(model, nn.Linear):
        if model not in known:
            known[model] = Int8Linear(model)
        return known[model]
    for name, child in model._modules.items():
        model._modules[name] = quantize(child, known)
    return model


# %% models_at_work a_layer_for_each_use check=1 lean=4 hidden=2
def models_at_work(specifications, x):
    return at_work(quantize, specifications, x)


class Int8Linear(nn.Module):
    def __init__(self, layer):
        super().__init__()
        weight = layer.weight.data
        self.scale = weight.abs().amax(1).div(127).clamp(min=1e-12)
        self.numbers, self.bias = weight.div(self.scale[:, None]).round().to(torch.int8), layer.bias

    def forward(self, x):
        y = (x @ self.numbers.to(x.dtype).T) * self.scale
        return y if self.bias is None else y + self.bias


def quantize(model):
    if isinstance(model, nn.Linear):
        return Int8Linear(model)
    for name, child in model._modules.items():
        model._modules[name] = quantize(child)
    return model


# %% models_at_work only_the_first_floor check=0 lean=0 hidden=0
def models_at_work(specifications, x):
    return at_work(quantize, specifications, x)


class Int8Linear(nn.Module):
    def __init__(self, layer):
        super().__init__()
        weight = layer.weight.data
        self.scale = weight.abs().amax(1).div(127).clamp(min=1e-12)
        self.numbers, self.bias = weight.div(self.scale[:, None]).round().to(torch.int8), layer.bias

    def forward(self, x):
        y = (x @ self.numbers.to(x.dtype).T) * self.scale
        return y if self.bias is None else y + self.bias


def quantize(model):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, Int8Linear(child))
    return model


# %% attend_int8 right_large check=1 lean=0..1 hidden=2
def attend_int8(query, keys, key_scales, values, value_scales, lengths):
    scores = (query @ keys.to(query.dtype).mT) * key_scales[:, :, None] / query.shape[3] ** 0.5
    behind = torch.arange(keys.shape[2], device=keys.device) >= lengths[:, None]
    weights = scores.masked_fill(behind[:, None, None], -torch.inf).softmax(3)
    return (weights * value_scales[:, :, None]) @ values.to(query.dtype)


# %% attend_int8 transcribed check=0 lean=0 hidden=0
def attend_int8(query, keys, key_scales, values, value_scales, lengths):
    return F.scaled_dot_product_attention(
        query, keys * key_scales[..., None], values * value_scales[..., None]
    )


# %% attend_int8 halves check=0 lean=0 hidden=0
def attend_int8(query, keys, key_scales, values, value_scales, lengths):
    behind = (torch.arange(keys.shape[2], device=keys.device) >= lengths[:, None])[:, None, None]
    scores = (query.bfloat16() @ keys.bfloat16().mT).to(query.dtype) * key_scales[:, :, None]
    weights = (scores / query.shape[3] ** 0.5).masked_fill(behind, -torch.inf).softmax(3)
    return ((weights * value_scales[:, :, None]).bfloat16() @ values.bfloat16()).to(query.dtype)


# %% attend_int8 scales_before_the_mask_only check=0 lean=0 hidden=0
def attend_int8(query, keys, key_scales, values, value_scales, lengths):
    mixed = torch.zeros_like(query)
    for first in range(0, keys.shape[2], 256):
        part = slice(first, first + 256)
        scores = (query @ keys[:, :, part].to(query.dtype).mT) * key_scales[:, :, None, part]
        weights = (scores / query.shape[3] ** 0.5).softmax(3) * value_scales[:, :, None, part]
        mixed = mixed + weights @ values[:, :, part].to(query.dtype)
    return mixed


# %% attend_int8 right_text_by_text check=1 lean=4 hidden=2
def attend_int8(query, keys, key_scales, values, value_scales, lengths):
    found = torch.empty_like(query)
    for text, length in enumerate(lengths.tolist()):
        for head in range(keys.shape[1]):
            scores = torch.cat(
                [
                    part.to(query.dtype) @ query[text, head, 0]
                    for part in keys[text, head, :length].split(1000)
                ]
            )
            weights = (scores * key_scales[text, head, :length] / query.shape[3] ** 0.5).softmax(0)
            weights = weights * value_scales[text, head, :length]
            mixed = 0
            pairs = zip(weights.split(1000), values[text, head, :length].split(1000), strict=True)
            for weight, part in pairs:
                mixed = mixed + weight @ part.to(query.dtype)
            found[text, head, 0] = mixed
    return found


# %% by_chance right_slow check=1 hidden=2 race=0


def by_chance(x, chances):
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
    known = codes[codes.isfinite()].unique()
    found = []
    for value, chance in zip(x.flatten(), chances.flatten(), strict=True):
        place = int((known <= value.cpu()).sum()) - 1
        low, high = known[place], known[min(place + 1, len(known) - 1)]
        up = (chance.cpu() * (high - low) < value.cpu() - low).item()
        found.append((high if up else low).item())
    return torch.tensor(found, dtype=x.dtype, device=x.device).view(x.shape)


# %% by_chance transcribed check=0 hidden=0 race=0
def by_chance(x, chances):
    below = x.to(torch.float8_e4m3fn).float()
    code = below.to(torch.float8_e4m3fn).view(torch.uint8) - (below > x).to(torch.uint8)
    low, high = (c.view(torch.float8_e4m3fn).double() for c in (code, code + (code < 126).to(torch.uint8)))
    return torch.where(chances < (x - low) / (high - low).clamp(min=1e-9), high, low)


# %% by_chance nearest check=0 hidden=0 race=0
def by_chance(x, chances):
    return x.to(torch.float8_e4m3fn).to(x.dtype)


# %% by_chance right_from_the_left check=1 hidden=2 race=3
def by_chance(x, chances):
    codes = torch.arange(256, dtype=torch.uint8, device=x.device).view(torch.float8_e4m3fn).double()
    known = codes[codes.isfinite()].unique()
    place = torch.searchsorted(known, x.contiguous()).clamp(min=1)
    low, high = known[place - 1], known[place]
    return torch.where(chances < (x - low) / (high - low), high, low)


# %% by_chance by_size check=0 hidden=0 race=0
def by_chance(x, chances):
    known = torch.arange(127, dtype=torch.uint8, device=x.device).view(torch.float8_e4m3fn).double()
    place = torch.searchsorted(known, x.abs().contiguous(), right=True) - 1
    low, high = known[place], known[(place + 1).clamp(max=126)]
    return torch.where(chances * (high - low) < x.abs() - low, high, low) * x.sign()


# %% by_chance right_by_codes check=1 hidden=2 race=3
def by_chance(x, chances):
    size = x.abs()
    near = size.to(torch.float8_e4m3fn).view(torch.uint8)
    near = near - (near.view(torch.float8_e4m3fn).double() > size).to(torch.uint8)
    small, large = (
        code.view(torch.float8_e4m3fn).double() for code in (near, near + (near < 126).to(torch.uint8))
    )
    exact = small == size
    negative = x < 0
    low, high = torch.where(negative, -large, small), torch.where(negative, -small, large)
    return torch.where(exact, x, torch.where(chances * (high - low) < x - low, high, low))


# %% best_scales right_slow check=1 hidden=1 race=0
def best_scales(weights, bits):
    most = 2 ** (bits - 1) - 1
    found = []
    for row in weights:
        tried = [k / 20 * row.abs().amax() / most for k in range(20, 0, -1)]
        cuts = [(row / scale).round().clamp(-most, most) * scale for scale in tried]
        wrong = [(cut - row).square().sum().item() for cut in cuts]
        found.append(tried[wrong.index(min(wrong))])
    return torch.stack(found) if found else weights.new_zeros(0)


# %% best_scales transcribed check=0 hidden=0 race=0
def best_scales(weights, bits):
    return weights.abs().amax(1) / (2 ** (bits - 1) - 1)


# %% best_scales one_for_all_rows check=0 hidden=0 race=0
def best_scales(weights, bits):
    most = 2 ** (bits - 1) - 1
    best, found = None, None
    for k in range(20, 0, -1):
        scales = k / 20 * weights.abs().amax(1, keepdim=True) / most
        wrong = ((weights / scales).round().clamp(-most, most) * scales - weights).square().sum()
        if best is None or wrong < best:
            best, found = wrong, scales[:, 0]
    return found


# %% best_scales forgets_to_cut check=0 hidden=0 race=0
def best_scales(weights, bits):
    most = 2 ** (bits - 1) - 1
    parts = torch.arange(20, 0, -1, device=weights.device, dtype=weights.dtype)[:, None] / 20
    scales = parts * weights.abs().amax(1) / most
    wrong = ((weights / scales[..., None]).round() * scales[..., None] - weights).square().sum(2)
    return scales.gather(0, wrong.argmin(0, keepdim=True))[0]


# %% best_scales right_scale_by_scale check=1 hidden=1 race=1..3
def best_scales(weights, bits):
    most = 2 ** (bits - 1) - 1
    largest = weights.abs().amax(1, keepdim=True)
    best = weights.new_full(largest.shape, torch.inf)
    found = torch.zeros_like(largest)
    for k in range(20, 0, -1):
        scales = k / 20 * largest / most
        wrong = (
            ((weights / scales).round().clamp(-most, most) * scales - weights).square().sum(1, keepdim=True)
        )
        found = torch.where(wrong < best, scales, found)
        best = torch.minimum(best, wrong)
    return found[:, 0]


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "in_halves": {"operations": 4, "bytes": 102, "syncs": 0},
        "the_large_ones": {"operations": 3, "bytes": 68, "syncs": 1},
        "in_int8": {"operations": 7, "bytes": 186, "syncs": 0},
    }


# %% foretold wrong_without_a_wait check=0 hidden=0
def foretold(n, d):
    return {
        "in_halves": {"operations": 4, "bytes": 4 * n * d + 6 * n * n, "syncs": 0},
        "the_large_ones": {"operations": 3, "bytes": n * d + 4 * n * d + 8, "syncs": 0},
        "in_int8": {"operations": 7, "bytes": 13 * n * d + 10 * n, "syncs": 0},
    }
