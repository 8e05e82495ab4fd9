# %% collate right_slow check=1 empty=1 hidden=2 race=0
def collate(samples):
    if not samples:
        raise ValueError("no samples")
    height = max(len(picture.tolist()) for picture, _ in samples)
    width = max(len(picture.tolist()[0]) for picture, _ in samples)
    batch = torch.zeros(len(samples), 3, height, width, dtype=torch.uint8)
    for i, (picture, _) in enumerate(samples):
        picture = torch.tensor(picture.tolist(), dtype=torch.uint8).permute(2, 0, 1)
        batch[i, :, : picture.shape[1], : picture.shape[2]] = picture
    sizes = torch.tensor([picture.shape[:2] for picture, _ in samples])
    return batch, sizes, torch.tensor([label for _, label in samples])


# %% collate wrong_fast check=0 empty=1 hidden=0 race=0
def collate(samples):
    height = max(picture.shape[0] for picture, _ in samples)
    width = max(picture.shape[1] for picture, _ in samples)
    batch = np.zeros((len(samples), 3, height, width), dtype=np.uint8)
    for i, (picture, _) in enumerate(samples):
        h, w, _ = picture.shape
        batch[i, :, :h, :w] = picture.reshape(3, h, w)
    sizes = torch.tensor([picture.shape[:2] for picture, _ in samples])
    return torch.from_numpy(batch), sizes, torch.tensor([label for _, label in samples])


# %% collate wrong_strides check=0 empty=1 hidden=0 race=0
def collate(samples):
    if not samples:
        raise ValueError("no samples")
    height = max(picture.shape[0] for picture, _ in samples)
    width = max(picture.shape[1] for picture, _ in samples)
    batch = torch.zeros(len(samples), height, width, 3, dtype=torch.uint8)
    for i, (picture, _) in enumerate(samples):
        batch[i, : picture.shape[0], : picture.shape[1]] = torch.from_numpy(picture)
    sizes = torch.tensor([picture.shape[:2] for picture, _ in samples])
    return batch.permute(0, 3, 1, 2), sizes, torch.tensor([label for _, label in samples])


# %% collate transcribed check=1 empty=1 hidden=2 race=0..1.5
def collate(samples):
    if not samples:
        raise ValueError("no samples")
    sizes = torch.tensor([picture.shape[:2] for picture, _ in samples])
    height, width = sizes.max(0).values.tolist()
    padded = []
    for picture, _ in samples:
        picture = torch.from_numpy(picture.copy()).permute(2, 0, 1)
        rest = (0, width - picture.shape[2], 0, height - picture.shape[1])
        padded.append(torch.nn.functional.pad(picture, rest))
    return torch.stack(padded), sizes, torch.tensor([label for _, label in samples])


# %% collate right_channels_first check=1 empty=1 hidden=2 race=2
def collate(samples):
    if len(samples) == 0:
        raise ValueError("no samples")
    sizes = np.array([picture.shape[:2] for picture, _ in samples])
    batch = np.zeros((len(samples), 3, *sizes.max(0)), dtype=np.uint8)
    for i, (picture, _) in enumerate(samples):
        h, w, _ = picture.shape
        batch[i, :, :h, :w] = picture.transpose(2, 0, 1)
    labels = torch.tensor([label for _, label in samples])
    return torch.from_numpy(batch), torch.from_numpy(sizes), labels


# %% read_epochs right_slow check=1 damaged=1 memory=2 hidden=2 race=0
def read_epochs(files, epochs, side):
    result = []
    for epoch in epochs:
        batch = torch.empty(len(epoch), 3, side, side, dtype=torch.uint8)
        for i, (position, top, left) in enumerate(epoch):
            batch[i] = decode(files[position])[:, top : top + side, left : left + side]
        result.append(batch)
    return result


# %% read_epochs wrong_fast check=0 damaged=1 memory=2 hidden=0 race=0
def read_epochs(files, epochs, side):
    result = [torch.empty(len(epoch), 3, side, side, dtype=torch.uint8) for epoch in epochs]
    for position, file in enumerate(files):
        picture = decode(file)
        for batch, epoch in zip(result, epochs, strict=True):
            for i, (wanted, top, left) in enumerate(epoch):
                if wanted == position:
                    batch[i] = picture[:, top : top + side, left : left + side]
    return result


# %% read_epochs wrong_transform_in_the_cache check=0 damaged=1 memory=0 hidden=0 race=0
def read_epochs(files, epochs, side):
    kept, result = {}, []
    for epoch in epochs:
        batch = torch.empty(len(epoch), 3, side, side, dtype=torch.uint8)
        for i, (position, top, left) in enumerate(epoch):
            if position not in kept:
                kept[position] = decode(files[position])[:, top : top + side, left : left + side]
            batch[i] = kept[position]
        result.append(batch)
    return result


# %% read_epochs transcribed check=1 damaged=1 memory=0 hidden=2 race=2
def read_epochs(files, epochs, side):
    kept, result = {}, []
    for epoch in epochs:
        batch = []
        for position, top, left in epoch:
            if position not in kept:
                kept[position] = decode(files[position])
            batch.append(kept[position][:, top : top + side, left : left + side])
        result.append(torch.stack(batch) if batch else torch.empty(0, 3, side, side, dtype=torch.uint8))
    return result


# %% read_epochs kept_as_arrays check=1 damaged=1 memory=0 hidden=2 race=2
def read_epochs(files, epochs, side):
    kept, result = {}, []
    for epoch in epochs:
        batch = np.empty((len(epoch), 3, side, side), dtype=np.uint8)
        for i, (position, top, left) in enumerate(epoch):
            if position not in kept:
                kept[position] = decode(files[position]).numpy().copy()
            batch[i] = kept[position][:, top : top + side, left : left + side]
        result.append(torch.from_numpy(batch))
    return result


# %% read_epochs right_sorted check=1 damaged=1 memory=2 hidden=2 race=2
def read_epochs(files, epochs, side):
    wanted = [(*crop, e, i) for e, epoch in enumerate(epochs) for i, crop in enumerate(epoch)]
    result = [torch.empty(len(epoch), 3, side, side, dtype=torch.uint8) for epoch in epochs]
    last = None
    for position, top, left, e, i in sorted(wanted):
        if position != last:
            picture = decode(files[position])
            last = position
        result[e][i] = picture[:, top : top + side, left : left + side]
    return result


# %% encode right_slow check=1 hidden=2 race=0
def encode(rows, table, weight):
    longest = max([len(row) for row in rows] + [1])
    batch = torch.zeros(len(rows), longest, dtype=torch.int64, device=table.device)
    for i, row in enumerate(rows):
        batch[i, : len(row)] = row
    lengths = torch.tensor([len(row) for row in rows], device=table.device).long()
    used = torch.arange(longest, device=table.device) < lengths[:, None]
    vectors = torch.tanh(table[batch] @ weight) * used[:, :, None]
    return (vectors + 0).sum(1) / lengths.clamp(min=1)[:, None]


# %% encode wrong_fast check=0 hidden=0 race=0
def encode(rows, table, weight):
    words, which = torch.cat(rows).unique(return_inverse=True)
    vectors = torch.tanh(table[words] @ weight)
    return torch.stack([vectors[part].mean(0) for part in which.split([len(row) for row in rows])])


# %% encode transcribed check=1 hidden=2 race=0..1.6
def encode(rows, table, weight):
    result = table.new_zeros(len(rows), weight.shape[1])
    order = sorted((i for i in range(len(rows)) if len(rows[i])), key=lambda i: len(rows[i]))
    for start in range(0, len(order), 32):
        group = order[start : start + 32]
        batch = torch.nn.utils.rnn.pad_sequence([rows[i] for i in group], batch_first=True)
        lengths = torch.tensor([len(rows[i]) for i in group], device=table.device)
        used = torch.arange(batch.shape[1], device=table.device) < lengths[:, None]
        vectors = torch.tanh(table[batch] @ weight) * used[:, :, None]
        result[group] = vectors.sum(1) / lengths[:, None]
    return result


# %% encode right_no_padding check=1 hidden=2 race=0.9..2.2
def encode(rows, table, weight):
    sums = table.new_zeros(len(rows), weight.shape[1])
    if not rows:
        return sums
    lengths = torch.tensor([len(row) for row in rows])
    owner = torch.arange(len(rows)).repeat_interleave(lengths).to(table.device)
    sums.index_add_(0, owner, torch.tanh(table[torch.cat(rows)] @ weight))
    return sums / lengths.clamp(min=1)[:, None].to(table.device)


# %% encode right_with_bags check=1 hidden=2 race=3
def encode(rows, table, weight):
    if not any(len(row) for row in rows):
        return table.new_zeros(len(rows), weight.shape[1])
    words, which = torch.cat(rows).unique(return_inverse=True)
    lengths = torch.tensor([len(row) for row in rows])
    starts = (lengths.cumsum(0) - lengths).to(table.device)
    vectors = torch.tanh(table[words] @ weight)
    return torch.nn.functional.embedding_bag(which, vectors, starts, mode="mean")


# %% send right_slow check=2 counted=0 hidden=2 race=0
def send(batch, mean, std, device):
    images = torch.empty(0, 3, *batch["images"].shape[1:3], device=device)
    for picture in batch["images"]:
        channels = [(picture[:, :, c].to(device).float() / 255.0 - mean) / std * 1.0 for c in range(3)]
        images = torch.cat([images, torch.stack(channels)[None]])
    return {name: tensor.to(device, copy=True) for name, tensor in batch.items()} | {"images": images}


# %% send wrong_fast check=0 counted=3 hidden=0 race=0
def send(batch, mean, std, device):
    size = sum(tensor.nbytes for tensor in batch.values())
    buffer = torch.empty(size, dtype=torch.uint8, device=device)
    result = {name: torch.zeros(t.shape, dtype=t.dtype, device=device) for name, t in batch.items()}
    n, h, w, _ = batch["images"].shape
    return result | {"images": (buffer[: n * h * w * 3] / 255).view(n, 3, h, w)}


# %% send transcribed check=2 counted=0 hidden=2 race=1
def send(batch, mean, std, device):
    sent = {name: tensor.to(device, non_blocking=True, copy=True) for name, tensor in batch.items()}
    images = sent["images"] / 255
    return sent | {"images": images.sub_(mean).div_(std).permute(0, 3, 1, 2)}


# %% send wrong_not_aligned check=0 counted=0 hidden=0 race=0
def send(batch, mean, std, device):
    flat = [tensor.contiguous().view(-1).view(torch.uint8) for tensor in batch.values()]
    sent = torch.cat(flat).to(device, non_blocking=True).split([len(piece) for piece in flat])
    result = {}
    for (name, tensor), piece in zip(batch.items(), sent, strict=True):
        result[name] = piece.view(tensor.dtype).view(tensor.shape)
    images = (result["images"] / 255).sub_(mean).div_(std)
    return result | {"images": images.permute(0, 3, 1, 2)}


# %% send right_three_tensors_of_floats check=2 counted=0 hidden=2 race=1
def send(batch, mean, std, device):
    names = sorted(batch, key=lambda name: batch[name].itemsize, reverse=True)
    flat = [batch[name].contiguous().view(-1).view(torch.uint8) for name in names]
    sent = torch.cat(flat).to(device, non_blocking=True).split([len(piece) for piece in flat])
    pieces = dict(zip(names, sent, strict=True))
    result = {name: pieces[name].view(t.dtype).view(t.shape) for name, t in batch.items()}
    images = result["images"].permute(0, 3, 1, 2) / 255
    return result | {"images": (images - mean) / std}


# %% send right_largest_first check=2 counted=3 hidden=2 race=1
def send(batch, mean, std, device):
    names = sorted(batch, key=lambda name: batch[name].itemsize, reverse=True)
    flat = [batch[name].contiguous().view(-1).view(torch.uint8) for name in names]
    sent = torch.cat(flat).to(device, non_blocking=True).split([len(piece) for piece in flat])
    pieces = dict(zip(names, sent, strict=True))
    result = {name: pieces[name].view(t.dtype).view(t.shape) for name, t in batch.items()}
    images = result["images"].permute(0, 3, 1, 2) * (1 / (255 * std))
    return result | {"images": images - mean / std}


# %% ahead right_slow check=1 depth=1 errors=1 clock=0 close=0 hidden=0
class Loader:
    def __init__(self, items, load):
        self.results = (load(item) for item in items)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.results)

    def close(self):
        self.results.close()


def ahead(items, depth, load=read_far):
    if depth < 1:
        raise ValueError("depth")
    return Loader(items, load)


# %% ahead wrong_fast check=1 depth=0 errors=0 clock=0 close=0 hidden=0
def ahead(items, depth, load=read_far):
    with ThreadPoolExecutor(16) as engine:
        return iter([*engine.map(load, items)])


# %% ahead transcribed check=1 depth=0 errors=1 clock=0 close=0 hidden=0
def ahead(items, depth, load=read_far):
    if depth < 1:
        raise ValueError("depth")
    with ThreadPoolExecutor(1) as engine:
        coming = deque(engine.submit(load, item) for item in items[:depth])
        for item in items[depth:]:
            result = coming.popleft().result()
            coming.append(engine.submit(load, item))
            yield result
        while coming:
            yield coming.popleft().result()


# %% ahead wrong_unbounded check=1 depth=1 errors=1 clock=0 close=0 hidden=0
def ahead(items, depth, load=read_far):
    if depth < 1:
        raise ValueError("depth")
    engine = ThreadPoolExecutor(1)
    coming = [engine.submit(load, item) for item in items]
    return (future.result() for future in coming)


# %% ahead right_with_a_queue check=1 depth=1 errors=1 clock=2 close=2 hidden=2
import queue
import threading


class Loader:
    def __init__(self, items, depth, load):
        self.ready, self.closed = queue.Queue(depth), threading.Event()
        self.thread = threading.Thread(target=self.run, args=(list(items), load), daemon=True)
        self.thread.start()

    def run(self, items, load):
        for item in items:
            if self.closed.is_set():
                return
            try:
                found = load(item), None
            except Exception as error:
                self.ready.put((None, error))
                return
            self.ready.put(found)
        self.ready.put((None, StopIteration()))

    def __iter__(self):
        return self

    def __next__(self):
        if self.closed.is_set():
            raise StopIteration
        result, error = self.ready.get()
        if error is not None:
            self.close()
            raise error
        return result

    def close(self):
        self.closed.set()
        while self.thread.is_alive():
            while not self.ready.empty():
                self.ready.get()
            self.thread.join(0.01)


def ahead(items, depth, load=read_far):
    if depth < 1:
        raise ValueError("depth must be at least 1")
    return Loader(items, depth, load)


# %% ahead right_with_a_generator check=1 depth=1 errors=1 clock=2 close=2 hidden=2
def ahead(items, depth, load=read_far):
    if depth < 1:
        raise ValueError("depth must be at least 1")
    thread = ThreadPoolExecutor(1)
    coming = deque(thread.submit(load, item) for item in items[:depth])

    def results():
        try:
            for item in [*items[depth:], *[None] * min(depth, len(items))]:
                future = coming.popleft()
                if item is not None:
                    coming.append(thread.submit(load, item))
                yield future.result()
        finally:
            thread.shutdown(wait=True, cancel_futures=True)

    return results()


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "similar": {"operations": 2, "bytes": 72, "syncs": 0},
        "shortened": {"operations": 5, "bytes": 101, "syncs": 1},
        "pixels": {"operations": 3, "bytes": 60, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "similar": {"operations": 2, "bytes": 4 * n * n, "syncs": 0},
        "shortened": {"operations": 5, "bytes": 4 * n * d, "syncs": 1},
        "pixels": {"operations": 3, "bytes": 4 * n * d, "syncs": 0},
    }
