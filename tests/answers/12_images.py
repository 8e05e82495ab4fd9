# %% contact_sheet right_slow check=1 empty=1 hidden=2 race=0
def contact_sheet(batch, columns, gap):
    return contact_sheet_slow(batch, columns, gap)


# The page of the chapter, for full rows only; it does not look at the number of columns.
# %% contact_sheet transcribed check=0 empty=0 hidden=0 race=0
def contact_sheet(batch, columns, gap):
    rows = len(batch) // columns
    framed = F.pad(batch.clamp(0, 1), (gap, 0, gap, 0))
    c, h, w = framed.shape[1:]
    page = framed.view(rows, columns, c, h, w).permute(2, 0, 3, 1, 4).reshape(c, rows * h, columns * w)
    return (F.pad(page, (0, gap, 0, gap)) * 255).to(torch.uint8)


# Neither clamped nor rounded.
# %% contact_sheet wrong_fast check=0 empty=1 hidden=0 race=0
def contact_sheet(batch, columns, gap):
    if len(batch) == 0 or columns < 1:
        raise ValueError("no page")
    rows = -(-len(batch) // columns)
    framed = F.pad((batch * 255).to(torch.uint8), (gap, 0, gap, 0, 0, 0, 0, rows * columns - len(batch)))
    channels, height, width = framed.shape[1:]
    cells = framed.unflatten(0, (rows, columns)).permute(2, 0, 3, 1, 4)
    return F.pad(cells.reshape(channels, rows * height, columns * width), (0, gap, 0, gap))


# make_grid narrows a page that has fewer pictures than columns, and takes a single channel for grey.
# %% contact_sheet make_grid check=0 empty=1 hidden=0 race=0
def contact_sheet(batch, columns, gap):
    from torchvision.utils import make_grid

    if len(batch) == 0 or columns < 1:
        raise ValueError("no page")
    return make_grid((batch.clamp(0, 1) * 255).round().to(torch.uint8), nrow=columns, padding=gap)


# The bytes are made at once, and written one picture at a time.
# %% contact_sheet right_in_a_loop check=1 empty=1 hidden=2 race=0.3..1.5
def contact_sheet(batch, columns, gap):
    if len(batch) == 0 or columns < 1:
        raise ValueError("no page")
    count, channels, height, width = batch.shape
    rows = -(-count // columns)
    page = torch.zeros(
        channels,
        rows * (height + gap) + gap,
        columns * (width + gap) + gap,
        dtype=torch.uint8,
        device=batch.device,
    )
    for i, one in enumerate((batch.clamp(0, 1) * 255).round().to(torch.uint8)):
        top = i // columns * (height + gap) + gap
        left = i % columns * (width + gap) + gap
        page[:, top : top + height, left : left + width] = one
    return page


# The frame and the empty places are made by writing into a page of zeros, and bytes come last.
# %% contact_sheet right_through_a_view check=1 empty=1 hidden=2 race=2
def contact_sheet(batch, columns, gap):
    if len(batch) == 0 or columns < 1:
        raise ValueError("no page")
    count, channels, height, width = batch.shape
    rows = -(-count // columns)
    places = batch.new_zeros(rows * columns, channels, height + gap, width + gap)
    places[:count, :, gap:, gap:] = batch.clamp(0, 1)
    cells = places.view(rows, columns, *places.shape[1:]).permute(2, 0, 3, 1, 4)
    page = cells.reshape(channels, rows * (height + gap), columns * (width + gap))
    return F.pad((page * 255 + 0.5).to(torch.uint8), (0, gap, 0, gap))


# %% to_network right_slow check=1 zero=1 memory=2..2.95 hidden=1 race=0
def to_network(batch, mean, std):
    return to_network_slow(batch, mean, std)


# All pictures at once, step by step: fast enough, with much memory.
# %% to_network transcribed check=1 zero=1 memory=0 hidden=1 race=2
def to_network(batch, mean, std):
    return to_network_large(batch, mean, std)


# The mean of the channels is another grey.
# %% to_network wrong_fast check=0 zero=1 memory=0 hidden=0 race=0
def to_network(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    return (batch.float().mean(1, keepdim=True) / 255 - mean) / std


# One product of matrices, but of floats for all channels.
# %% to_network as_a_product check=1 zero=1 memory=0.4..1.4 hidden=1 race=2
def to_network(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    weights = [part / (255 * std) for part in (0.299, 0.587, 0.114)]
    grey = torch.tensor([weights], device=batch.device) @ batch.flatten(2).float()
    return grey.sub_(mean / std).view(len(batch), 1, *batch.shape[2:])


# In pieces of few pictures, into the result.
# %% to_network right_in_pieces check=1 zero=1 memory=3 hidden=1 race=2
def to_network(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    weights = torch.tensor([[0.299, 0.587, 0.114]], device=batch.device) / (255 * std)
    result = torch.empty(len(batch), 1, *batch.shape[2:], device=batch.device)
    step = max(1, 20_000 // batch[0, 0].numel())
    for some, of_some in zip(batch.split(step), result.split(step), strict=True):
        of_some.copy_((weights @ some.flatten(2).float()).view_as(of_some)).sub_(mean / std)
    return result


# %% head right_slow check=1 gradients=1 weights=1 hidden=1 race=0
def head(fine, coarse, mean, std, weight, bias, size):
    return head_slow(fine, coarse, mean, std, weight, bias, size)


# The coarse features are enlarged to the fine ones, and both together: twice interpolated.
# %% head transcribed check=0 gradients=0 weights=1 hidden=0 race=0
def head(fine, coarse, mean, std, weight, bias, size):
    coarse = F.interpolate(coarse, fine.shape[2:], mode="bilinear")
    features = torch.cat([fine, coarse], dim=1)
    features = (features - mean[:, None, None]) / std[:, None, None]
    return F.interpolate(F.conv2d(features, weight, bias).relu(), (size, size), mode="bilinear")


# The ReLU comes too early.
# %% head wrong_fast check=0 gradients=0 weights=1 hidden=0 race=0
def head(fine, coarse, mean, std, weight, bias, size):
    cut = fine.shape[1]
    shift, scale = mean[:, None, None], std[:, None, None]
    of_fine = F.conv2d((fine - shift[:cut]) / scale[:cut], weight[:, :cut], bias).relu()
    of_coarse = F.conv2d((coarse - shift[cut:]) / scale[cut:], weight[:, cut:]).relu()
    return sum(F.interpolate(one, (size, size), mode="bilinear") for one in (of_fine, of_coarse))


# Only the normalisation is done while the features are small.
# %% head right_half_way check=1 gradients=1 weights=1 hidden=1 race=0..1.2
def head(fine, coarse, mean, std, weight, bias, size):
    cut = fine.shape[1]
    shift, scale = mean[:, None, None], std[:, None, None]
    parts = (fine - shift[:cut]) / scale[:cut], (coarse - shift[cut:]) / scale[cut:]
    larger = [F.interpolate(part, (size, size), mode="bilinear") for part in parts]
    return F.conv2d(torch.cat(larger, dim=1), weight, bias).relu()


# Right, but detached: nothing before the head learns.
# %% head detached check=1 gradients=0 weights=1 hidden=1 race=0
@torch.no_grad()
def head(fine, coarse, mean, std, weight, bias, size):
    cut = fine.shape[1]
    shift, scale = mean[:, None, None], std[:, None, None]
    of_fine = F.conv2d((fine - shift[:cut]) / scale[:cut], weight[:, :cut], bias)
    of_coarse = F.conv2d((coarse - shift[cut:]) / scale[cut:], weight[:, cut:])
    return sum(F.interpolate(one, (size, size), mode="bilinear") for one in (of_fine, of_coarse)).relu()


# Mean and deviation become part of weight and bias.
# %% head right_folded check=1 gradients=1 weights=1 hidden=1 race=2
def head(fine, coarse, mean, std, weight, bias, size):
    if weight.shape[1] != len(mean):
        raise ValueError("weight has another number of channels")
    cut = fine.shape[1]
    weight = weight / std[:, None, None]
    bias = bias - weight.flatten(1) @ mean
    of_fine, of_coarse = F.conv2d(fine, weight[:, :cut], bias), F.conv2d(coarse, weight[:, cut:])
    larger = F.interpolate(of_fine, (size, size), mode="bilinear")
    return (larger + F.interpolate(of_coarse, (size, size), mode="bilinear")).relu()


# %% views right_slow check=1 waits=0 hidden=2 race=0
def views(batch, tops, lefts, flips, factors, side, size):
    return views_slow(batch, tops, lefts, flips, factors, side, size)


# %% views wrong_fast check=0 waits=0 hidden=0 race=0
def views(batch, tops, lefts, flips, factors, side, size):
    return views_hasty(batch, tops, lefts, flips, factors, side, size)


# Antialias and a clamp, as in the chapter, but still one place for all.
# %% views transcribed check=0 waits=0 hidden=0 race=0
def views(batch, tops, lefts, flips, factors, side, size):
    top, left = tops[0], lefts[0]
    view = batch[:, :, top : top + side, left : left + side]
    view = torch.where(flips[:, None, None, None], view.flip(-1), view)
    view = (view / 255 * factors[:, None, None, None]).clamp(0, 1)
    return F.interpolate(view, (size, size), mode="bilinear", antialias=True)


# Cut out in a loop of slices, and the rest for the whole batch.
# %% views right_with_slices check=1 waits=0 hidden=2 race=1.5..3
def views(batch, tops, lefts, flips, factors, side, size):
    places = zip(batch, tops.tolist(), lefts.tolist(), strict=True)
    view = torch.stack([one[:, top : top + side, left : left + side] for one, top, left in places])
    view = torch.where(flips[:, None, None, None], view.flip(-1), view)
    view = (view / 255 * factors[:, None, None, None]).clamp(0, 1)
    return F.interpolate(view, (size, size), mode="bilinear", antialias=True)


# Three index tensors instead of positions in a flattened picture, and the flip afterwards.
# %% views right_with_three_indices check=1 waits=1 hidden=2 race=0..2
def views(batch, tops, lefts, flips, factors, side, size):
    which = torch.arange(len(batch), device=batch.device)[:, None, None]
    steps = torch.arange(side, device=batch.device)
    rows, columns = (tops[:, None] + steps)[:, :, None], (lefts[:, None] + steps)[:, None]
    view = batch[which, :, rows, columns].permute(0, 3, 1, 2)
    view = torch.where(flips[:, None, None, None], view.flip(-1), view)
    bright = (view / 255 * factors[:, None, None, None]).clamp(max=1)
    return F.interpolate(bright, (size, size), mode="bilinear", antialias=True)


# A reader's first answer: pixels by four index tensors.
# %% views first_attempt check=1 waits=1 hidden=2 race=0..1.9
def views(batch, tops, lefts, flips, factors, side, size):
    count, channels = batch.shape[:2]
    device = batch.device
    steps = torch.arange(side, device=device)
    rows = tops[:, None] + steps
    columns = lefts[:, None] + torch.where(flips[:, None], side - 1 - steps, steps)
    pictures = torch.arange(count, device=device)[:, None, None, None]
    colours = torch.arange(channels, device=device)[:, None, None]
    view = batch[pictures, colours, rows[:, None, :, None], columns[:, None, None, :]]
    view = (view / 255).mul_(factors[:, None, None, None]).clamp_(max=1)
    return F.interpolate(view, (size, size), mode="bilinear", antialias=True)


# Positions in a flattened picture, and `interpolate` for all.
# %% views right_with_gather check=1 waits=1 hidden=2 race=2.4..3
def views(batch, tops, lefts, flips, factors, side, size):
    count, channels, _, width = batch.shape
    steps = torch.arange(side, device=batch.device)
    rows = tops[:, None] + steps
    columns = lefts[:, None] + torch.where(flips[:, None], side - 1 - steps, steps)
    places = (rows[:, :, None] * width + columns[:, None, :]).view(count, 1, -1)
    view = batch.flatten(2).gather(2, places.expand(-1, channels, -1))
    view = (view / 255).mul_(factors[:, None, None]).clamp_(max=1).view(count, channels, side, side)
    return F.interpolate(view, (size, size), mode="bilinear", antialias=True)


# Windows as views, so that the index tensors have one number for each picture; flipped when small.
# %% views right_with_windows check=1 waits=1 hidden=2 race=3
def views(batch, tops, lefts, flips, factors, side, size):
    windows = batch.unfold(2, side, 1).unfold(3, side, 1)
    view = windows[torch.arange(len(batch), device=batch.device), :, tops, lefts]
    bright = (view * (factors / 255)[:, None, None, None]).clamp_(max=1)
    units = torch.eye(side, device=batch.device)[:, None, None]
    resize = F.interpolate(units, (1, size), mode="bilinear", antialias=True)[:, 0, 0]
    small = resize.T @ (bright @ resize)
    return torch.where(flips[:, None, None, None], small.flip(-1), small)


# Clamped after resizing.
# %% views wrong_order check=0 waits=0 hidden=0 race=0
def views(batch, tops, lefts, flips, factors, side, size):
    which = torch.arange(len(batch), device=batch.device)[:, None, None]
    steps = torch.arange(side, device=batch.device)
    rows, columns = (tops[:, None] + steps)[:, :, None], (lefts[:, None] + steps)[:, None]
    view = batch[which, :, rows, columns].permute(0, 3, 1, 2)
    view = torch.where(flips[:, None, None, None], view.flip(-1), view)
    view = F.interpolate(view / 255, (size, size), mode="bilinear", antialias=True)
    return (view * factors[:, None, None, None]).clamp(0, 1)


# %% crop_and_resize right_slow check=2 gradients=1 bad=1 hidden=2 race=0
def crop_and_resize(batch, boxes, size):
    return crop_and_resize_slow(batch, boxes, size)


# The matrices of the chapter, for one picture after the other.
# %% crop_and_resize transcribed check=2 gradients=1 bad=1 hidden=2 race=0
def crop_and_resize(batch, boxes, size):
    def tents(length, size):
        scale = length / size
        centres = (torch.arange(size, dtype=batch.dtype) + 0.5) * scale
        distances = (torch.arange(length) + 0.5 - centres[:, None]).abs()
        weights = (1 - distances / max(scale, 1)).clamp(min=0)
        return weights / weights.sum(1, keepdim=True)

    height, width = batch.shape[2:]
    if tuple(boxes.shape) != (len(batch), 4):
        raise ValueError("boxes must have the shape (N, 4)")
    results = [batch.new_zeros(0, batch.shape[1], *size)]
    for picture, (top, left, bottom, right) in zip(batch, boxes.tolist(), strict=True):
        if not (0 <= top < bottom <= height and 0 <= left < right <= width):
            raise ValueError("every box must lie inside its picture")
        inside = picture[None, :, top:bottom, left:right]
        results.append(tents(bottom - top, size[0]) @ inside @ tents(right - left, size[1]).T)
    return torch.cat(results)


# The tents reach over the edges of the boxes.
# %% crop_and_resize wrong_fast check=0 gradients=0 bad=1 hidden=0 race=0
def crop_and_resize(batch, boxes, size):
    def weights_of(starts, ends, length, size):
        scale = ((ends - starts) / size)[:, None, None]
        centres = starts[:, None, None] + (torch.arange(size)[:, None] + 0.5) * scale
        weights = (1 - (torch.arange(length) + 0.5 - centres).abs() / scale.clamp(min=1)).clamp(min=0)
        return (weights / weights.sum(2, keepdim=True)).to(batch)

    height, width = batch.shape[2:]
    if boxes.shape != (len(batch), 4):
        raise ValueError("boxes must have the shape (N, 4)")
    top, left, bottom, right = boxes.unbind(1)
    bad = (top < 0) | (top >= bottom) | (bottom > height) | (left < 0) | (left >= right) | (right > width)
    if bad.any():
        raise ValueError("every box must lie inside its picture")
    rows = weights_of(top, bottom, height, size[0])
    columns = weights_of(left, right, width, size[1])
    return rows[:, None] @ batch @ columns[:, None].mT


# The weights are made in float32 and converted: 7 digits in float64.
# %% crop_and_resize wrong_precision check=0 gradients=1 bad=1 hidden=0 race=0
def crop_and_resize(batch, boxes, size):
    def weights_of(starts, ends, length, size):
        starts, ends = starts[:, None, None], ends[:, None, None]
        scale = (ends - starts) / size
        centres = starts + (torch.arange(size)[:, None] + 0.5) * scale
        places = torch.arange(length) + 0.5
        weights = (1 - (places - centres).abs() / scale.clamp(min=1)).clamp(min=0)
        weights = weights.masked_fill((places < starts) | (places > ends), 0)
        return (weights / weights.sum(2, keepdim=True)).to(batch)

    height, width = batch.shape[2:]
    if boxes.shape != (len(batch), 4):
        raise ValueError("boxes must have the shape (N, 4)")
    top, left, bottom, right = boxes.unbind(1)
    bad = (top < 0) | (top >= bottom) | (bottom > height) | (left < 0) | (left >= right) | (right > width)
    if bad.any():
        raise ValueError("every box must lie inside its picture")
    rows = weights_of(top, bottom, height, size[0])
    columns = weights_of(left, right, width, size[1])
    return rows[:, None] @ batch @ columns[:, None].mT


# Samples at the centres of the new pixels: no antialias.
# %% crop_and_resize wrong_by_sampling check=0 gradients=0 bad=1 hidden=0 race=0
def crop_and_resize(batch, boxes, size):
    height, width = batch.shape[2:]
    if boxes.shape != (len(batch), 4):
        raise ValueError("boxes must have the shape (N, 4)")
    top, left, bottom, right = boxes.to(batch.dtype)[:, :, None].unbind(1)
    bad = (top < 0) | (top >= bottom) | (bottom > height) | (left < 0) | (left >= right) | (right > width)
    if bad.any():
        raise ValueError("every box must lie inside its picture")
    y = top + (torch.arange(size[0]) + 0.5) * (bottom - top) / size[0]
    x = left + (torch.arange(size[1]) + 0.5) * (right - left) / size[1]
    y = torch.minimum(torch.maximum(y, top + 0.5), bottom - 0.5) / height * 2 - 1
    x = torch.minimum(torch.maximum(x, left + 0.5), right - 0.5) / width * 2 - 1
    shape = len(batch), *size
    grid = torch.stack([x[:, None].expand(shape), y[:, :, None].expand(shape)], dim=-1)
    return F.grid_sample(batch, grid.to(batch.dtype), padding_mode="border", align_corners=False)


# A reader's first answer: matrices as large as the pictures.
# %% crop_and_resize first_attempt check=2 gradients=1 bad=1 hidden=2 race=0..2.1
def tents_of_boxes(starts, ends, length, size, dtype):
    """For each box the weights (size, length) of one direction; outside the box they are 0."""
    lengths = (ends - starts)[:, None, None]
    scale = lengths.to(dtype) / size
    centres = (torch.arange(size, device=starts.device, dtype=dtype) + 0.5)[:, None] * scale  # in the box
    places = torch.arange(length, device=starts.device) - starts[:, None, None]  # in the box
    weights = (1 - (places + 0.5 - centres).abs() / scale.clamp(min=1)).clamp(min=0)
    weights = weights * ((places >= 0) & (places < lengths))
    return weights / weights.sum(2, keepdim=True)


def crop_and_resize(batch, boxes, size):
    count, channels, height, width = batch.shape
    if tuple(boxes.shape) != (count, 4):
        raise ValueError(f"boxes must have the shape {(count, 4)}, not {tuple(boxes.shape)}")
    top, left, bottom, right = boxes.unbind(1)
    inside = (top >= 0) & (top < bottom) & (bottom <= height)
    inside &= (left >= 0) & (left < right) & (right <= width)
    if not inside.all():
        raise ValueError("a box does not lie inside its picture, or has no pixel")
    rows = tents_of_boxes(top, bottom, height, size[0], batch.dtype)
    columns = tents_of_boxes(left, right, width, size[1], batch.dtype)
    narrow = batch.reshape(count, channels * height, width) @ columns.mT
    return rows[:, None] @ narrow.view(count, channels, height, size[1])


# Pixels by three index tensors instead of positions; the weights are those of the chapter, moved.
# %% crop_and_resize right_with_index_tensors check=2 gradients=1 bad=1 hidden=2 race=2.5..3
def crop_and_resize(batch, boxes, size):
    count, channels, height, width = batch.shape
    if boxes.shape != (count, 4):
        raise ValueError("boxes must have the shape (N, 4)")
    if not count:
        return batch.new_zeros(0, channels, *size)
    starts, ends = boxes[:, :2], boxes[:, 2:]
    sides = torch.tensor([height, width], device=batch.device)
    bad = ((starts < 0) | (starts >= ends) | (ends > sides)).any()
    lengths = ends - starts
    bad, high, wide = torch.cat([bad[None], lengths.amax(0)]).tolist()
    if bad:
        raise ValueError("every box must lie inside its picture")

    def weights_of(lengths, most, size):
        places = torch.arange(most, device=batch.device)
        scale = lengths.to(batch.dtype)[:, None, None] / size
        centres = (torch.arange(size, device=batch.device)[:, None] + 0.5) * scale
        weights = (1 - (places + 0.5 - centres).abs() / scale.clamp(min=1)).clamp(min=0)
        weights = weights.masked_fill(places >= lengths[:, None, None], 0)
        return weights / weights.sum(2, keepdim=True)

    which = torch.arange(count, device=batch.device)[:, None, None]
    y = (starts[:, 0, None] + torch.arange(high, device=batch.device)).clamp(max=height - 1)
    x = (starts[:, 1, None] + torch.arange(wide, device=batch.device)).clamp(max=width - 1)
    inside = batch[which, :, y[:, :, None], x[:, None]].permute(0, 3, 1, 2)
    rows, columns = weights_of(lengths[:, 0], high, size[0]), weights_of(lengths[:, 1], wide, size[1])
    return rows[:, None] @ inside @ columns[:, None].mT


# Every fault is asked for by itself: the function waits six times. Matrices as large as the pictures.
# %% crop_and_resize right_but_waits check=0 gradients=1 bad=1 hidden=0 race=0..2.1
def crop_and_resize(batch, boxes, size):
    def weights_of(starts, ends, length, size):
        starts, ends = starts[:, None, None], ends[:, None, None]
        scale = (ends - starts).to(batch.dtype) / size
        centres = starts + (torch.arange(size)[:, None] + 0.5) * scale
        places = torch.arange(length) + 0.5
        weights = (1 - (places - centres).abs() / scale.clamp(min=1)).clamp(min=0)
        weights = weights.masked_fill((places < starts) | (places > ends), 0)
        return weights / weights.sum(2, keepdim=True)

    height, width = batch.shape[2:]
    if boxes.shape != (len(batch), 4):
        raise ValueError("boxes must have the shape (N, 4)")
    top, left, bottom, right = boxes.unbind(1)
    if (top < 0).any() or (left < 0).any() or (bottom > height).any() or (right > width).any():
        raise ValueError("every box must lie inside its picture")
    if (top >= bottom).any() or (left >= right).any():
        raise ValueError("every box must have a pixel")
    rows = weights_of(top, bottom, height, size[0])
    columns = weights_of(left, right, width, size[1])
    return torch.einsum("nij,ncjk,nlk->ncil", rows, batch, columns)


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "halved": {"operations": 3, "bytes": 78, "syncs": 0},
        "chosen": {"operations": 3, "bytes": 64, "syncs": 1},
        "doubled": {"operations": 1, "bytes": 192, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "halved": {"operations": 3, "bytes": 4 * n * n, "syncs": 0},
        "chosen": {"operations": 3, "bytes": 4, "syncs": 1},
        "doubled": {"operations": 1, "bytes": 8 * n * d, "syncs": 0},
    }
