# %% strides right_slow check=0 hidden=0 misfit=1 race=0
def strides(shape, memory_format):
    picture = torch.ones(shape)
    for _ in range(3):  # where malloc puts the pictures can make a factor of 1.5
        picture = picture.clone()
    return picture.to(memory_format=getattr(torch, memory_format)).stride()


# %% strides wrong_fast check=0 hidden=0 misfit=0 race=0
def strides(shape, memory_format):
    order = (0, 2, 3, 1) if memory_format == "channels_last" else range(len(shape))
    result, step = [], 1
    for dimension in reversed(order):  # in memory order, not in the order of the shape
        if dimension < len(shape):
            result.insert(0, step)
            step *= shape[dimension]
    return tuple(result)


# %% strides only_four_dimensions check=0 hidden=0 misfit=1 race=0
def strides(shape, memory_format):
    _, c, h, w = shape
    if memory_format == "channels_last":
        return h * w * c, 1, w * c, c
    return c * h * w, h * w, w, 1


# %% strides transcribed check=1 hidden=2 misfit=1 race=1
def strides(shape, memory_format):
    orders = {"channels_last": [0, 2, 3, 1], "channels_last_3d": [0, 2, 3, 4, 1]}
    order = orders.get(memory_format, list(range(len(shape))))
    if len(order) != len(shape):
        raise RuntimeError("this format is for another number of dimensions")
    found = {}
    for place, dimension in enumerate(order):
        found[dimension] = 1
        for inner in order[place + 1 :]:
            found[dimension] *= shape[inner]
    return tuple(found[dimension] for dimension in range(len(shape)))


# %% smooth right_slow check=1 range=1 memory=0 hidden=1 race=0
def smooth(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError("amount")
    columns = [amount * signals[:, 0]]
    for t in range(1, signals.shape[1]):
        columns.append(columns[-1] + amount * (signals[:, t] - columns[-1]))
    return torch.cat([column[:, None] for column in columns], 1)


# %% smooth transcribed check=1 range=1 memory=0 hidden=1 race=0..1.8
def smooth(signals, amount):  # one copy in the other order, as the chapter says; the rest as given
    if not 0 <= amount <= 1:
        raise ValueError("amount")
    state, rows = torch.zeros_like(signals[:, 0]), []
    for row in signals.t().contiguous():
        state = state + amount * (row - state)
        rows.append(state)
    return torch.stack(rows).t()


# %% smooth right_otherwise check=1 range=1 memory=2 hidden=1 race=2
def smooth(signals, amount):
    if amount < 0 or amount > 1:
        raise ValueError("amount")
    table = torch.empty(signals.shape[::-1], dtype=signals.dtype, device=signals.device)
    table.copy_(signals.t())
    table[0] *= amount
    for t in range(1, len(table)):
        table[t].lerp_(table[t - 1], 1 - amount)
    return table.t()


# %% smooth wrong_fast check=0 range=1 memory=0 hidden=0 race=0
def smooth(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError("amount")
    rows = signals.t().contiguous()
    return torch.cat([amount * rows[:1], torch.lerp(rows[:-1], rows[1:], amount)]).t()


# %% smooth columns_of_numpy check=1 range=1 memory=0..0.4 hidden=1 race=0..2
import numpy as np


def smooth(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError("amount")
    state, columns = np.zeros(len(signals), np.float32), []
    for column in np.ascontiguousarray(signals.numpy().T):
        state = state + np.float32(amount) * (column - state)
        columns.append(state)
    return torch.from_numpy(np.stack(columns, axis=1))


# %% smooth wrong_in_place check=0 range=1 memory=0 hidden=0 race=0
def smooth(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError("amount")
    rows = signals.t()  # a view: it writes into what was given
    rows[0].mul_(amount)
    for t in range(1, len(rows)):
        torch.lerp(rows[t - 1], rows[t], amount, out=rows[t])
    return rows.t()


# %% collate right_slow check=1 channels=1 memory=0 hidden=2 race=0
def collate(pictures, mean, std):
    height, width = (max(picture.shape[side] for picture in pictures) for side in (0, 1))
    batch = []
    for picture in pictures:
        if picture.shape[2] != len(mean):
            raise ValueError("channels")
        channels = []
        for c in range(len(mean)):
            values = (picture[:, :, c].float() / 255 - mean[c]) / std[c]
            channels.append(F.pad(values, (0, width - values.shape[1], 0, height - values.shape[0])))
        batch.append(torch.stack(channels))
    batch = torch.stack(batch).to(memory_format=torch.channels_last)
    return batch, batch.stride()


# %% collate transcribed check=1 channels=1 memory=0 hidden=2 race=0
def collate(pictures, mean, std):
    if any(picture.shape[2] != len(mean) for picture in pictures):
        raise ValueError("channels")
    height, width = (max(picture.shape[side] for picture in pictures) for side in (0, 1))
    batch = []
    for picture in pictures:
        values = picture.permute(2, 0, 1).to(torch.float32).div_(255)
        values.sub_(mean[:, None, None]).div_(std[:, None, None])
        batch.append(F.pad(values, (0, width - values.shape[2], 0, height - values.shape[1])))
    batch = torch.stack(batch).to(memory_format=torch.channels_last)
    return batch, batch.stride()


# %% collate stacked_by_numpy check=1 channels=1 memory=0..1.1 hidden=2 race=0..2
import numpy as np


def collate(pictures, mean, std):
    if any(picture.shape[2] != len(mean) for picture in pictures):
        raise ValueError("channels")
    height, width = (max(picture.shape[side] for picture in pictures) for side in (0, 1))
    mean, std, batch = mean.numpy(), std.numpy(), []
    for picture in pictures:
        values = (picture.numpy().astype(np.float32) / 255 - mean) / std
        batch.append(np.pad(values, ((0, height - len(values)), (0, width - values.shape[1]), (0, 0))))
    batch = torch.from_numpy(np.stack(batch)).permute(0, 3, 1, 2)
    return batch, batch.stride()


# %% collate right_fast check=1 channels=1 memory=2 hidden=2 race=0.8..2
def collate(pictures, mean, std):
    if any(picture.shape[2] != len(mean) for picture in pictures):
        raise ValueError("channels")
    height, width = (max(picture.shape[side] for picture in pictures) for side in (0, 1))
    batch = torch.zeros(len(pictures), height, width, len(mean), device=mean.device)
    scale, shift = 1 / (255 * std), -mean / std
    for place, picture in zip(batch, pictures, strict=True):
        torch.addcmul(shift, picture, scale, out=place[: picture.shape[0], : picture.shape[1]])
    batch = batch.permute(0, 3, 1, 2)
    return batch, batch.stride()


# %% collate wrong_fast check=0 channels=1 memory=0 hidden=0 race=0
def collate(pictures, mean, std):
    if any(picture.shape[2] != len(mean) for picture in pictures):
        raise ValueError("channels")
    height, width = (max(picture.shape[side] for picture in pictures) for side in (0, 1))
    batch = torch.zeros(len(pictures), height, width, len(mean), device=mean.device)
    for place, picture in zip(batch, pictures, strict=True):
        place[: picture.shape[0], : picture.shape[1]].copy_(picture)
    batch.div_(255).sub_(mean).div_(std)  # of what is beside the pictures, too
    batch = batch.permute(0, 3, 1, 2)
    return batch, batch.stride()


# %% collate wrong_grey check=1 channels=0 memory=2 hidden=2 race=0
def collate(pictures, mean, std):  # a grey picture becomes one of three channels
    height, width = (max(picture.shape[side] for picture in pictures) for side in (0, 1))
    batch = torch.zeros(len(pictures), height, width, len(mean), device=mean.device)
    scale, shift = 1 / (255 * std), -mean / std
    for place, picture in zip(batch, pictures, strict=True):
        torch.addcmul(shift, picture, scale, out=place[: picture.shape[0], : picture.shape[1]])
    batch = batch.permute(0, 3, 1, 2)
    return batch, batch.stride()


# %% enlarge right_slow check=1 copies=0 hidden=0 race=0
def enlarge(images, channels):
    picked = images[:, channels].contiguous()
    peaks = F.max_pool2d(picked, 21, stride=1, padding=10)
    kept = torch.where(picked < peaks, -9, picked).clone()
    large = F.interpolate(kept.softmax(1), scale_factor=2, mode="bilinear").clone()
    large = large.contiguous(memory_format=torch.channels_last)
    return large, large.stride()


# %% enlarge transcribed check=1 copies=0 hidden=0 race=0.2..1.5
def enlarge(images, channels):  # converts again right behind each line that loses the format
    images = images.to(memory_format=torch.channels_last)
    picked = images[:, channels].to(memory_format=torch.channels_last)
    peaks = F.max_pool2d(picked, 21, stride=1, padding=10)
    kept = picked.masked_fill(picked < peaks, -9).to(memory_format=torch.channels_last)
    shares = kept.softmax(1).to(memory_format=torch.channels_last)
    large = F.interpolate(shares, scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% enlarge first_attempt check=1 copies=2 hidden=2 race=0.2..1.5
def enlarge(images, channels):
    picked = images[:, channels].to(memory_format=torch.channels_last)
    peaks = F.max_pool2d(picked, 21, stride=1, padding=10)
    kept = torch.where(picked < peaks, -9, picked)
    shares = kept.permute(0, 2, 3, 1).softmax(-1).permute(0, 3, 1, 2)
    large = F.interpolate(shares, scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% enlarge copies_in_numpy check=1 copies=0 hidden=0 race=0.2..2
def enlarge(images, channels):
    def last(tensor):
        array = tensor.permute(0, 2, 3, 1).numpy().copy(order="C")
        return torch.from_numpy(array).permute(0, 3, 1, 2)

    picked = last(last(images)[:, channels])
    peaks = F.max_pool2d(F.max_pool2d(picked, (21, 1), 1, (10, 0)), (1, 21), 1, (0, 10))
    shares = last(picked.masked_fill(picked < peaks, -9).softmax(1))
    large = F.interpolate(shares, scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% enlarge only_the_squares check=1 copies=0 hidden=0 race=0.2..1.5
def enlarge(images, channels):
    images = images.to(memory_format=torch.channels_last)
    picked = images[:, channels]
    peaks = F.max_pool2d(F.max_pool2d(picked, (21, 1), 1, (10, 0)), (1, 21), 1, (0, 10))
    kept = picked.masked_fill(picked < peaks, -9)
    large = F.interpolate(kept.softmax(1), scale_factor=2, mode="bilinear")
    large = large.to(memory_format=torch.channels_last)
    return large, large.stride()


# %% enlarge right_otherwise check=1 copies=2 hidden=2 race=2
def enlarge(images, channels):
    picked = images[:, channels].to(memory_format=torch.channels_last)
    peaks = F.max_pool2d(picked, (21, 1), 1, (10, 0))
    peaks = F.max_pool2d(peaks, (1, 21), 1, (0, 10))
    kept = picked.permute(0, 2, 3, 1).masked_fill_((picked < peaks).permute(0, 2, 3, 1), -9)
    shares = kept.softmax(-1).permute(0, 3, 1, 2)
    large = F.interpolate(shares, scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% enlarge wrong_fast check=0 copies=0 hidden=0 race=0
def enlarge(images, channels):
    picked = images.permute(0, 2, 3, 1).index_select(3, channels).permute(0, 3, 1, 2)
    shares = picked.permute(0, 2, 3, 1).softmax(-1).permute(0, 3, 1, 2)  # the peaks are left out
    large = F.interpolate(shares, scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% enlarge wrong_order check=0 copies=0 hidden=0 race=0
def enlarge(images, channels):
    picked = images[:, channels]
    peaks = F.max_pool2d(picked, 21, stride=1, padding=10)
    kept = torch.where(picked < peaks, -9, picked)
    large = F.interpolate(kept.softmax(1), scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% convert right_slow check=1 memory=0 hidden=2 race=0
def convert(arrays):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    tensors = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if tensor.ndim in formats:
            copied = tensor.clone()
            tensor = torch.empty(copied.shape, dtype=copied.dtype, memory_format=formats[tensor.ndim])
            tensor.copy_(copied)
        tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


# %% convert transcribed check=1 memory=0 hidden=2 race=0
def convert(arrays):
    tensors = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if tensor.ndim == 4:
            tensor = tensor.to(memory_format=torch.channels_last)
        elif tensor.ndim == 5:
            tensor = tensor.to(memory_format=torch.channels_last_3d)
        tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


# %% convert right_fast check=1 memory=3 hidden=2 race=2
def convert(arrays):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    tensors, done = {}, {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if (wanted := formats.get(array.ndim)) is not None:
            place = array.__array_interface__["data"], array.shape, array.strides
            if place not in done and tensor.is_contiguous(memory_format=wanted):
                order = [0, *range(2, array.ndim), 1]
                strides, step = [0] * array.ndim, 1
                for dimension in reversed(order):
                    strides[dimension] = step
                    step *= array.shape[dimension]
                done[place] = tensor.as_strided(array.shape, strides)
            elif place not in done:
                done[place] = tensor.to(memory_format=wanted)
            tensor = done[place]
        tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


# %% convert tied_but_all_moved check=1 memory=1.1..1.3 hidden=2 race=0
def convert(arrays):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    tensors, done = {}, {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        place = tensor.data_ptr(), tensor.shape, tensor.stride()
        if place not in done:
            wanted = formats.get(tensor.ndim, torch.preserve_format)
            done[place] = tensor.to(memory_format=wanted)
        tensors[name] = done[place]
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


# %% convert moved_but_not_tied check=1 memory=1.1..1.3 hidden=2 race=0..2
def convert(arrays):
    tensors = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if tensor.ndim >= 4:
            pixels = tensor.movedim(1, -1)
            tensor = pixels.reshape(-1).view(pixels.shape).movedim(-1, 1)
        tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


# %% convert moved_by_numpy_but_not_tied check=1 memory=0.9..1.2 hidden=2 race=0..2
def convert(arrays):
    tensors = {}
    for name, array in arrays.items():
        if array.ndim >= 4:
            pixels = array.transpose(0, *range(2, array.ndim), 1)
            flat = torch.from_numpy(pixels.reshape(-1))
            array = flat.view(pixels.shape).movedim(-1, 1)
        tensors[name] = torch.as_tensor(array)
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


# %% convert wrong_fast check=0 memory=0 hidden=0 race=0
def convert(arrays):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    tensors = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if tensor.ndim in formats:
            tensor = tensor.contiguous(memory_format=formats[tensor.ndim])  # leaves strides of sizes of 1
        tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


# %% convert wrong_shape check=0 memory=0 hidden=0 race=0
def convert(arrays):
    tensors = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if tensor.ndim >= 4:
            n, c, *sizes = tensor.shape
            tensor = tensor.reshape(n, *sizes, c).movedim(-1, 1)  # other pieces, the same order
        tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "numbered": {"operations": 3, "bytes": 48, "syncs": 0},
        "pixels": {"operations": 3, "bytes": 60, "syncs": 0},
        "turned": {"operations": 2, "bytes": 96, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "numbered": {"operations": 3, "bytes": 4 * n, "syncs": 0},
        "pixels": {"operations": 3, "bytes": 4 * n * d, "syncs": 0},
        "turned": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
    }
