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


# %% strides right_but_only_four_dimensions check=1 hidden=0 misfit=1 race=0
def strides(shape, memory_format):
    _, c, h, w = shape
    if memory_format == "channels_last":
        return h * w * c, 1, w * c, c
    return c * h * w, h * w, w, 1


# %% patches right_slow check=1 hidden=2 uneven=1 race=0
def patches(images, size):
    n, c, height, width = images.shape
    if height % size or width % size:
        raise ValueError("uneven")
    result = images.new_empty(n, (height // size) * (width // size), size * size * c)
    pixels = images.permute(0, 2, 3, 1)
    columns = torch.arange(width, device=images.device)
    rows = torch.arange(height, device=images.device)
    number = 0
    for top in range(0, height, size):
        for left in range(0, width, size):
            cut = pixels[:, rows[top : top + size]][:, :, columns[left : left + size]]
            torch.mul(cut.reshape(n, -1), 1, out=result[:, number])
            number += 1
    return result


# %% patches right_fast check=1 hidden=2 uneven=1 race=2
def patches(images, size):
    if images.shape[2] % size or images.shape[3] % size:
        raise RuntimeError("uneven")
    cut = images.unfold(2, size, size).unfold(3, size, size)
    return cut.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)


# %% patches wrong_fast check=0 hidden=0 uneven=1 race=0
def patches(images, size):
    n, c, height, width = images.shape
    if height % size or width % size:
        raise ValueError("uneven")
    return images.reshape(n, (height // size) * (width // size), size * size * c)


# %% normalise right_slow check=1 bytes=0 hidden=2 race=0
def normalise(pictures, mean, std):
    batch = []
    for picture in pictures:
        channels = []
        for c in range(picture.shape[-1]):
            plane = torch.stack([row[:, c].float() for row in picture])
            channels.append((plane / 255 - mean[c]) / std[c])
        batch.append(torch.stack(channels, -1))
    batch = torch.stack(batch).permute(0, 3, 1, 2)
    return batch, batch.stride()


# %% normalise right_wasteful check=1 bytes=0 hidden=2 race=2
def normalise(pictures, mean, std):
    batch = (pictures.contiguous() / 255 - mean) / std
    batch = batch.permute(0, 3, 1, 2)
    return batch, batch.stride()


# %% normalise right_fast check=1 bytes=1 hidden=2 race=2
def normalise(pictures, mean, std):
    batch = torch.addcmul(-mean / std, pictures.contiguous(), 1 / (255 * std)).permute(0, 3, 1, 2)
    return batch, batch.stride()


# %% normalise wrong_fast check=0 bytes=0 hidden=0 race=0
def normalise(pictures, mean, std):
    n, h, w, c = pictures.shape
    batch = pictures.reshape(n, c, h, w).to(torch.float32, memory_format=torch.channels_last)
    batch.div_(255).sub_(mean[:, None, None]).div_(std[:, None, None])
    return batch, batch.stride()


# %% enlarge right_slow check=1 hidden=2 race=0
def enlarge(images, channels):
    picked = images[:, channels].contiguous()
    peaks = F.max_pool2d(picked, 3, stride=1, padding=1)
    kept = torch.where(peaks <= 0.9, 0, peaks)
    large = F.interpolate(kept, scale_factor=2, mode="bilinear").contiguous(memory_format=torch.channels_last)
    return large, large.stride()


# %% enlarge right_fast check=1 hidden=2 race=2
def enlarge(images, channels):
    picked = images[:, channels].to(memory_format=torch.channels_last)
    peaks = F.max_pool2d(picked, 3, stride=1, padding=1)
    kept = torch.where(peaks <= 0.9, 0, peaks)
    large = F.interpolate(kept, scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% enlarge wrong_fast check=0 hidden=0 race=0
def enlarge(images, channels):
    picked = images.to(memory_format=torch.channels_last)[:, : len(channels)]
    peaks = F.max_pool2d(picked, 3, stride=1, padding=1)
    large = F.interpolate(F.threshold(peaks, 0.9, 0), scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% enlarge wrong_order check=0 hidden=0 race=0
def enlarge(images, channels):
    picked = images[:, channels]
    peaks = F.max_pool2d(picked, 3, stride=1, padding=1)
    large = F.interpolate(F.threshold(peaks, 0.9, 0), scale_factor=2, mode="bilinear")
    return large, large.stride()


# %% smooth right_slow check=1 range=1 hidden=2 race=0
def smooth(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError("amount")
    result = torch.zeros_like(signals)
    result[:, 0] = amount * signals[:, 0]
    for t in range(1, signals.shape[1]):
        result[:, t] = result[:, t - 1] + amount * (signals[:, t] - result[:, t - 1])
    return result


# %% smooth right_fast check=1 range=1 hidden=2 race=2
def smooth(signals, amount):
    if amount < 0 or amount > 1:
        raise ValueError("amount")
    state, rows = torch.zeros_like(signals[:, 0]), []
    for row in signals.t().contiguous():
        state = torch.lerp(state, row, amount)
        rows.append(state)
    return torch.stack(rows).t()


# %% smooth wrong_fast check=0 range=1 hidden=0 race=0
def smooth(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError("amount")
    rows = signals.t().contiguous()
    return torch.cat([amount * rows[:1], torch.lerp(rows[:-1], rows[1:], amount)]).t()
