# %% [markdown]
# # 04 · Loading data
#
# A GPU that waits for pictures computes nothing. Many trainings are slow here: reading, decoding, collecting
# into batches, copying to the device.
#
# **You will be able to**
# - read a folder of files with one line, and say what that line does and what it does not do,
# - find the slow step of a loader, and remove it: decode once, work on whole batches, skip the padding,
# - decide when worker processes or a thread help, and when they make it slower,
# - say what pinned memory is for, what else it needs, and how it can give you wrong data.
#
# **Time:** 50 minutes to read and run, 15 more for the part Further. **Needs:** CPU, GPU if any: *A4* is timed only
# where there is one. Worker processes are shown on Linux.
#
# **Claims tested:** *C1* "use `DatasetFolder` and `ImageFolder` instead of a hand-written Dataset"; *A4* "use
# `DataLoader(pin_memory=True)` for faster copies to the GPU". IDs such as *C1* are claims of five widely read articles,
# listed in [the score](claims.ipynb). `compare`, `costs` and `guess` are explained in [chapter 00](00_measuring.ipynb).

# %%
import inspect
import io
import os
import pickle
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from parts.timeline import Log, draw_timelines
from PIL import Image
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, TensorDataset
from torchvision.datasets import DatasetFolder, ImageFolder
from torchvision.io import decode_image, read_file
from torchvision.transforms import v2

from autograder import behaviour, compare, costs, devices, documented, picture, recall, verdicts

data = Path("../data")
gpu = torch.cuda.is_available()
print("devices here:", *devices(), "· processors:", os.cpu_count())
recall("04", ..., ..., ...)

# %% [markdown]
# ## 1. A folder is a data set
#
# The folder `data/images` has one sub-folder for each class. Many projects start with a class like this one:


# %%
class PictureFolder(Dataset):
    def __init__(self, root):
        self.classes = sorted(entry.name for entry in Path(root).iterdir() if entry.is_dir())
        self.samples = [
            (path, label)
            for label, name in enumerate(self.classes)
            for path in sorted(Path(root, name).iterdir())
            if path.suffix.lower() in {".jpg", ".jpeg", ".png"}
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        return Image.open(path).convert("RGB"), label


by_hand = PictureFolder(data / "images")
pictures = ImageFolder(data / "images")
print(pictures.classes, "·", len(pictures), "pictures")

# %% [markdown]
# `ImageFolder` does the same in one line. It finds the classes, numbers them, lists the files, and opens
# pictures as RGB. Is it really the same? Compare every pixel and every label.

# %%
same_labels = [label for _, label in by_hand] == pictures.targets
same_pixels = all(
    np.array_equal(mine, theirs) for (mine, _), (theirs, _) in zip(by_hand, pictures, strict=True)
)
assert same_labels and same_pixels and by_hand.classes == pictures.classes

# %% [markdown]
# Is it faster too? How many times faster is `ImageFolder` in reading all ten pictures?

# %%
guess = ...

# %%
compare(
    "data loading: ten pictures from a folder",
    {
        "hand-written Dataset": lambda device: [by_hand[i] for i in range(10)],
        "ImageFolder": lambda device: [pictures[i] for i in range(10)],
    },
    guess=guess,
    only="cpu",
)

# %% [markdown]
# No. Nearly all of the time goes into decoding the files, and both leave that to the same library. You save lines and
# mistakes; time you do not save, and *C1* promises none. One of the mistakes: some pictures are grey. Without
# `convert("RGB")` this one has no channels, and cannot be in one batch with the others.

# %%
print("as stored:  ", np.asarray(Image.open(data / "images/texture/brick.png")).shape)
print("ImageFolder:", np.asarray(pictures[7][0]).shape)
assert pictures[7][0].mode == "RGB"

# %% [markdown]
# `DatasetFolder` is the general form. You say how a file is read (`loader`) and which files count
# (`extensions`). Here are texts:


# %%
def read_text(path):
    return Path(path).read_text(encoding="utf-8")


texts = DatasetFolder(data / "texts", loader=read_text, extensions=(".txt",), transform=str.split)
words, label = texts[3]
print(len(texts), "texts ·", texts.class_to_idx, "·", texts.classes[label], words[:5])

# %% [markdown]
# `transform` is applied to each sample when it is read, `target_transform` to each label. There is one trap:

# %%
with tempfile.TemporaryDirectory() as folder:  # a test set that has no cats
    for name in ("cup", "space"):
        Path(folder, name).mkdir()
        Path(folder, name, "one.jpg").touch()
    print("train:", pictures.class_to_idx, "\ntest: ", ImageFolder(folder).class_to_idx)

# %% [markdown]
# Labels are the positions in the sorted list of sub-folders. A test folder that lacks a class gives other numbers to
# the same names, without a warning. Compare `class_to_idx` before you believe an accuracy.

# %%
behaviour(
    "C1",
    "ImageFolder gives the labels and pixels of the class written by hand; DatasetFolder reads texts.",
    same_labels and same_pixels and words == read_text(texts.samples[3][0]).split(),
)

# %% [markdown]
# ## 2. Where does the time go?
#
# One sample takes four steps: read the file, decode it, shrink it to 128 × 128, make floats. How many times
# faster is reading alone than all four?

# %%
guess = ...
cup = str(data / "images/cup/coffee.jpg")


def read_only(path):
    return Path(path).read_bytes()


def decode(path):
    return Image.open(io.BytesIO(read_only(path))).convert("RGB")


def shrink(path):
    return v2.functional.resize(decode(path), [128, 128])


def all_four(path):
    return v2.functional.to_dtype(v2.functional.to_image(shrink(path)), torch.float32, scale=True)


def cup_path(generator, device):
    return cup


compare(
    "data loading: one JPEG of 600 × 400, step by step",
    {
        "read, decode, shrink, to float": all_four,
        "read, decode, shrink": shrink,
        "read, decode": decode,
        "read": read_only,
    },
    inputs=cup_path,
    guess=guess,
    differ="each does a step less",
    only="cpu",
)

# %% [markdown]
# **Why.** Look at the bytes after each step:

# %%
coffee = decode(cup)
sizes = {
    "file": len(read_only(cup)),
    "decoded": 3 * coffee.width * coffee.height,
    "shrunk, uint8": 3 * 128 * 128,
    "shrunk, float32": 4 * 3 * 128 * 128,
}
print(*(f"{step:16} {number:9,} bytes" for step, number in sizes.items()), sep="\n")
assert sizes["decoded"] > 5 * sizes["file"] and sizes["decoded"] > 10 * sizes["shrunk, uint8"]

# %% [markdown]
# Decoding makes many times as many bytes. Shrinking goes over all of them, and throws most of them away. These two
# steps are most of the time. Reading looks free, because the operating system still holds the file in memory. The
# first read from a disk or a network may take milliseconds. That is waiting, not work; section 5 comes back to it.
#
# So: decode and shrink less often. If every epoch shrinks the same pictures, shrink the files once, before training.
# (For large JPEGs there is a way to decode less, too: see Further.)

# %% [markdown]
# ## 3. Decode once: a cache
#
# From the second epoch on, everything has been decoded. How many times faster is it to keep the result?

# %%
guess = ...


# %%
class Cached(Dataset):
    def __init__(self, dataset):
        self.dataset, self.kept = dataset, {}

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        if index not in self.kept:
            self.kept[index] = self.dataset[index]
        return self.kept[index]


small = ImageFolder(data / "images", transform=v2.Compose([v2.Resize((128, 128)), v2.PILToTensor()]))
cached = Cached(small)
for i in range(len(cached)):
    cached[i]

compare(
    "data loading: ten pictures, second epoch",
    {
        "decode again": lambda device: [small[i] for i in range(10)],
        "from the cache": lambda device: [cached[i] for i in range(10)],
    },
    guess=guess,
    only="cpu",
    seconds=0.6,
)

# %% [markdown]
# Thousands of times, because nothing is left to do. The price is memory. These ten pictures take half a megabyte. A
# million pictures of 224 × 224 take 150 GB as `uint8`, and 600 GB as `float32`. Keep bytes, not floats.

# %%
print(f"ten pictures: {sum(image.nbytes for image, _ in cached.kept.values()):,} bytes")
for dtype in (torch.uint8, torch.float32):
    print(f"a million, {dtype}: {1e6 * 3 * 224 * 224 * dtype.itemsize / 1e9:.0f} GB")

# %% [markdown]
# ### When it does not help
#
# Put a random transform *behind* the cache. In front of it, the first random result is kept for ever. And you
# hand out the cache's own tensors: who writes to one, changes the data for all later epochs.

# %%
frozen = Cached(ImageFolder(data / "images", v2.Compose([v2.RandomCrop(8), v2.PILToTensor()])))
assert torch.equal(frozen[0][0], frozen[0][0])  # "random" crop: the same every time

image, _ = frozen[0]
image.zero_()
assert frozen[0][0].sum() == 0  # the cache is spoilt

# %% [markdown]
# ## 4. Work on whole batches
#
# 64 small pictures as `uint8` are to become one batch of normalised floats. You can transform each picture
# and stack the results, or stack the bytes and transform once. What does the second save, most of all: `"calls"` of
# torch, `"bytes"` that are moved, or `"arithmetic"`?

# %%
guess = ...
mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


# %%
def each_picture(images):
    return torch.stack([(image / 255 - mean) / std for image in images])


def whole_batch(images):
    return (torch.stack(images) / 255 - mean) / std


def whole_batch_in_place(images):
    batch = torch.stack(images) / 255
    return batch.sub_(mean).div_(std)


def some_pictures(number, side):
    def make(generator, device):
        shape = (number, 3, side, side)
        return (list(torch.randint(256, shape, generator=generator, dtype=torch.uint8)),)

    return make


compare(
    "data loading: 64 pictures of 32 × 32 to floats",
    {
        "each picture": each_picture,
        "whole batch": whole_batch,
        "whole batch, in place": whole_batch_in_place,
    },
    inputs=some_pictures(64, 32),
    guess=guess,
    only="cpu",
    bytes=64 * 3 * 32 * 32 * (1 + 4),
    because="prices",
)

# %% [markdown]
# **Why.** Each operation costs some microseconds before it touches a number. A picture of 32 × 32 has 3,072 numbers:
# the work on them takes no longer than that. In place saves new memory, and some time. None of the variants comes near
# the *limit*, the time to read the bytes and to write the floats once: they go over the batch four times, and compute.

# %%
(images,) = some_pictures(64, 32)(torch.Generator(), "cpu")
for function in (each_picture, whole_batch, whole_batch_in_place):
    print(function.__name__, costs(function, images), sep="\n", end="\n\n")

# %% [markdown]
# It does not help where each picture is large: Further shows 384 × 384. Batch what is small.
#
# ### The whole data set in memory
#
# Small data needs no loader at all. The 1,797 digits of `digits.npz` fit in 115 kB. One epoch, shuffled, in
# batches of 64. The last variant does not use `DataLoader`. How many times faster is it than the first?

# %%
guess = ...
with np.load(data / "digits.npz") as file:
    digits = TensorDataset(torch.from_numpy(file["images"]), torch.from_numpy(file["labels"]).long())


# %%
def item_by_item(digits):
    return [batch for batch in DataLoader(digits, batch_size=64, shuffle=True)]


def batch_of_indices(digits):
    sampler = BatchSampler(RandomSampler(digits), batch_size=64, drop_last=False)
    return [batch for batch in DataLoader(digits, sampler=sampler, batch_size=None)]


def only_indexing(digits):
    order = torch.randperm(len(digits))
    return [[column[indices] for column in digits.tensors] for indices in order.split(64)]


def all_digits(generator, device):
    return digits


compare(
    "data loading: one epoch of 1,797 digits in memory",
    {
        "DataLoader": item_by_item,
        "DataLoader, a batch of indices": batch_of_indices,
        "randperm and indexing": only_indexing,
    },
    inputs=all_digits,
    guess=guess,
    differ="each shuffles anew",
    only="cpu",
    seconds=0.8,
    because="prices",
)

# %% [markdown]
# **Why.** `DataLoader` asks for one sample at a time, makes a small tensor of each, and stacks 64 of them again. With
# `batch_size=None` and a sampler that gives lists of indices, the data set is asked once a batch. All three give 29
# batches, shuffled, with each digit in one of them.

# %%
for function in (item_by_item, batch_of_indices, only_indexing):
    batches = function(digits)
    labels = torch.cat([labels for _, labels in batches])
    assert len(batches) == 29 and torch.equal(labels.sort()[0], digits.tensors[1].sort()[0])

# %% [markdown]
# ## 5. Worker processes
#
# `num_workers=2` starts two processes that load batches while your program computes. How many times faster do two
# workers load the digits?

# %%
guess = ...
on_linux = sys.platform == "linux"


# %%
def epoch(loader):
    for _batch in loader:
        pass


def loader_with(dataset, workers, batch_size, **settings):
    if workers:  # fork: a worker starts as a copy of this process
        settings = {"multiprocessing_context": "fork", "persistent_workers": True, **settings}
    return DataLoader(dataset, batch_size=batch_size, num_workers=workers, **settings)


if on_linux:
    none, two = loader_with(digits, 0, 64), loader_with(digits, 2, 64)
    compare(
        "data loading: digits with and without workers",
        {"no workers": lambda device: epoch(none), "2 workers": lambda device: epoch(two)},
        guess=guess,
        only="cpu",
        clock="wall",
    )
    del none, two
else:
    print("Skipped: this cell defines functions in a notebook, and workers need fork to see them.")

# %% [markdown]
# Slower. A digit is loaded in some microseconds. Sending a batch from one process to another costs much more: shared
# memory is set up, a message goes through a queue, two processes wake up. (We use the wall clock here, because a
# worker's CPU time is not this process's CPU time. Each process uses one torch thread, as workers always do.)
#
# Workers pay where loading a batch takes much longer than sending it. The clearest case is *waiting*. This
# data set pretends that a file comes from a network drive: 3 ms for each. With 4 workers? (Where there are
# fewer than 4 processors, torch warns. The warning assumes workers that compute; ours only wait, so we print it and go on.)

# %%
guess = ...


# %%
class FromFarAway(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.full((3, 32, 32), index, dtype=torch.uint8)


if on_linux:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        none, four = (loader_with(FromFarAway(), workers, 4) for workers in (0, 4))
        ahead = loader_with(FromFarAway(), 4, 4, prefetch_factor=8)
        for loader in (none, ahead, four):
            epoch(loader)
    print(str(caught[0].message).split(", which")[0] if caught else "no warning: enough processors")
    compare(
        "data loading: waiting for a network drive",
        {
            "no workers": lambda device: epoch(none),
            "4 workers, prefetch_factor=8": lambda device: epoch(ahead),
            "4 workers": lambda device: epoch(four),
        },
        guess=guess,
        only="cpu",
        clock="wall",
    )
    del none, ahead, four, loader

# %% [markdown]
# All workers can wait at the same time, on any number of processors. *Work* is different: it needs processors. Now
# the real pictures, decoded and shrunk. How many times faster are two workers than none?

# %%
guess = ...

# %%
if on_linux:
    none, persistent = loader_with(small, 0, 2), loader_with(small, 2, 2)
    new = loader_with(small, 2, 2, persistent_workers=False)
    compare(
        "data loading: decoding with workers",
        {
            "no workers": lambda device: epoch(none),
            "2 workers, new each epoch": lambda device: epoch(new),
            "2 workers, persistent": lambda device: epoch(persistent),
        },
        guess=guess,
        only="cpu",
        clock="wall",
        seconds=1.5,
    )
    del none, new, persistent

# %% [markdown]
# This figure depends on your machine more than any other in the chapter. Two workers can at most halve the time, and
# five batches are a short epoch: sending them is work, too. Where the processors are busy, or where there is only one,
# workers gain nothing. More workers than free processors cannot help with work.
#
# Starting workers costs time: by `fork` what the middle line says, and more where a worker must import everything
# anew (Windows, macOS, and Linux from Python 3.14 on, unless you ask for `fork`). By default it happens in every
# epoch; `persistent_workers=True` keeps the processes. It matters for short epochs only.
#
# ### What else changes with workers
#
# `prefetch_factor` (2 by default) says how many batches each worker loads in advance. So workers ×
# prefetch_factor batches wait in memory. More of them smooth out uneven loading times. They do not make
# anything load faster: see the middle line of the network drive. Without workers, both settings are refused:

# %%
for settings in ({"prefetch_factor": 4}, {"persistent_workers": True}):
    try:
        DataLoader(digits, **settings)
    except ValueError as error:
        print(error)

assert DataLoader(digits, num_workers=1).prefetch_factor == 2
print(f"8 workers × 2 batches of 64 float pictures: {8 * 2 * 64 * 3 * 224 * 224 * 4 / 1e9:.2f} GB")

# %% [markdown]
# ## 6. Sentences and their padding
#
# A batch of sentences is as wide as its longest sentence. The rest is padding, and it costs as much as words do. 512
# sentences, mostly short; each batch of 32 goes through one layer. One loader takes them as they come, the other takes
# sentences of similar length together. What does the second save, most of all: `"calls"`, `"bytes"` or `"arithmetic"`?

# %%
guess = ...
table, weight = torch.randn(1000, 64), torch.randn(64, 64)


# %%
def sentences(generator, device):
    lengths = (torch.rand(512, generator=generator) ** 4 * 120).long() + 3
    rows = [torch.randint(1000, (n,), generator=generator) for n in lengths.tolist()]
    return rows, table.to(device), weight.to(device)


def layer(rows, table, weight):
    batch = pad_sequence(rows, batch_first=True)
    return torch.tanh(table[batch.to(table.device)] @ weight)


def as_they_come(rows, table, weight):
    return [layer(rows[i : i + 32], table, weight) for i in range(0, len(rows), 32)]


def by_length(rows, table, weight):
    return as_they_come(sorted(rows, key=len), table, weight)


compare(
    "data loading: 512 sentences in batches of 32",
    {"as they come": as_they_come, "by length": by_length},
    inputs=sentences,
    guess=guess,
    differ="other sentences share a batch",
    seconds=0.8,
    because="prices",
)

# %% [markdown]
# **Why.** Fewer numbers are computed:

# %%
rows, *_ = sentences(torch.Generator(), "cpu")
print(f"words:                 {sum(map(len, rows)):7,}")
for name, ordered in {"as they come": rows, "by length": sorted(rows, key=len)}.items():
    batches = [ordered[i : i + 32] for i in range(0, len(ordered), 32)]
    print(f"words and padding, {name:12} {sum(32 * max(map(len, batch)) for batch in batches):7,}")

# %% [markdown]
# Copying the words into batches costs the same in both; sorting comes on top. On an H200 it is a tenth slower: one
# small layer is nothing there beside the host's work. It does not help where all lengths are alike, either. And it has
# a price in training: the batches are no longer random. The usual mend is to sort within large random groups, and to
# shuffle the batches.
#
# ## 7. Pinned memory
#
# The operating system may move a page of memory, or write it to disk. A GPU that copies on its own cannot live with
# that. So from normal, *pageable* memory, the driver first copies pieces into a buffer of its own, and the GPU takes
# them from there. *Pinned* (page-locked) memory is promised to stay: the GPU reads it directly.
#
# Pinning is a service of the GPU's driver. What happens here?

# %%
try:
    print("pinned:", torch.ones(3).pin_memory().is_pinned())
except RuntimeError as error:
    print("RuntimeError:", str(error).split(".")[0])

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    (batch,) = next(iter(DataLoader(TensorDataset(torch.ones(3)), pin_memory=True)))
print("DataLoader:", caught[0].message if caught else "no warning", "· pinned:", batch.is_pinned())
assert batch.is_pinned() == gpu

# %% [markdown]
# The cost model, in bytes. Let *n* be the size of the batch, *m* the speed of the host's memory, *b* the speed of the
# bus to the GPU, typically 10 to 50 GB/s. A copy by the processor reads and writes each byte: hence 2*n/m*.
#
# | source | what happens | time, about |
# |---|---|---|
# | pageable | the processor copies *n* bytes to the buffer, the bus takes them from there, piece by piece | between *n/b* and *n/b* + 2*n/m* |
# | pinned | the bus takes *n* bytes | *n/b* |
# | pinned just before | the processor copies *n* bytes into pinned memory, then the bus | 2*n/m* + *n/b*, and the first time the pinning |
#
# How many times faster is the copy from pinned memory? **Without a GPU** nothing can be pinned and no bus is crossed,
# so you see recordings. Guess from the table, as if *m* were as large as *b*. (At 20 GB/s, 100 kB take 5 µs, and
# starting any copy takes some, too: smaller ones gain little.)

# %%
guess = ...


# %%
def pinned(tensor):
    return tensor.pin_memory() if gpu else tensor


def host_and_device(megabytes):
    def make(generator, device):
        source = torch.full((int(megabytes * 250_000),), 0.5)
        return source, pinned(source), torch.empty_like(source, device=device)

    return make


for megabytes in (1, 16):
    compare(
        f"data loading: {megabytes} MB from the host to the device",
        {
            "pageable": lambda pageable, page_locked, target: target.copy_(pageable),
            "pinned": lambda pageable, page_locked, target: target.copy_(page_locked),
        },
        inputs=host_and_device(megabytes),
        guess=guess,
        claim="A4",
        only="cuda",
        seconds=0.4,
    )

# %%
documented(  # the claim without a figure
    "A4",
    "Copies from the host to a GPU are much faster from pinned memory.",
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
)

# %% [markdown]
# By the table it is 3 times at most if *m* is *b*. On an H200 it is 5 times for 16 MB: there *m* is half of *b* or
# less. (*b* is 51 GB/s there.)
#
# That is the copy alone. Something must pin the memory before, and that costs, too: **do not pin a tensor just to copy
# it** (the table's last line; Further times it). It pays *beside* the main thread, or once for a buffer that is used
# again and again. `DataLoader(pin_memory=True)` has a thread for it, but only with workers. Without workers it pins on
# the main thread, just before you get the batch:

# %%
source = inspect.getsource(torch.utils.data.dataloader._SingleProcessDataLoaderIter)
with_workers = inspect.getsource(torch.utils.data.dataloader._MultiProcessingDataLoaderIter)
print("pins, without workers:", "pin_memory.pin_memory(" in source, "· in a thread:", "Thread(" in source)
print("a thread, with workers:", "Thread(" in with_workers)
assert "Thread(" not in source and "Thread(" in with_workers

# %% [markdown]
# Pinned memory is taken from everybody: the operating system cannot use it for anything else. So a program that pins
# gigabytes leaves less for the others.
#
# ### Send floats or bytes?
#
# Before you make the copy faster, look at what is sent. A picture is `uint8`. You can convert it to
# floats before the transfer, or after it. How many times faster is the second, on your device?

# %%
guess = ...


# %%
def floats_travel(images, device):
    return (images / 255).to(device, non_blocking=True)


def bytes_travel(images, device):
    return images.to(device, non_blocking=True) / 255


def images_and_device(generator, device):
    return pinned(torch.randint(256, (64, 3, 64, 64), generator=generator, dtype=torch.uint8)), device


compare(
    "data loading: floats or bytes to the device",
    {"to float, then to the device": floats_travel, "to the device, then to float": bytes_travel},
    inputs=images_and_device,
    guess=guess,
    seconds=0.5,
)

# %% [markdown]
# On a CPU it is the same work. For a GPU, count. The device `meta` has no memory and computes nothing; it
# stands in for a GPU here, so every machine can count.

# %%
images = torch.zeros(64, 3, 64, 64, dtype=torch.uint8)
for function in (floats_travel, bytes_travel):
    print(function.__name__, costs(function, images, "meta"), sep="\n", end="\n\n")
print(f"sent: {(images / 255).nbytes:,} bytes as floats, {images.nbytes:,} bytes as uint8")
assert (images / 255).nbytes == 4 * images.nbytes

# %% [markdown]
# There is more in it. `images / 255` on the host is new memory, and nobody has pinned that, even if `images` was
# pinned. And the division is the CPU's work. Together that is 37 times on an H200, not 4.
#
# Besides bytes, transfers have a fixed price, a few microseconds each (chapter 02). Many small tensors of one dtype can
# be joined, by `torch.cat`. And memory has no dtype, only a tensor has: `view` looks at the same bytes as another one,
# if they begin at a multiple of its size.

# %%
raw = torch.tensor([0, 0, 128, 63, 0, 0, 0, 64], dtype=torch.uint8)
print(raw.view(torch.float32), "· same memory:", raw.view(torch.float32).data_ptr() == raw.data_ptr())
assert raw.view(torch.float32).tolist() == [1, 2]
try:
    raw[1:5].view(torch.float32)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# ## 8. `non_blocking`: who waits?
#
# Pinned memory makes the copy shorter. It does not make anything happen at the same time. `tensor.to(device)`
# waits until the copy is done; `non_blocking=True` puts the copy into the device's queue and goes on. `costs` counts a
# wait for the first and none for the second. It is an estimate: it does not look whether the source is pinned.

# %%
batch = torch.zeros(1000)
waiting = costs(lambda: batch.to("meta"))
going_on = costs(lambda: batch.to("meta", non_blocking=True))
print("to(device):                   ", waiting.transfers, "transfer,", waiting.syncs, "sync")
print("to(device, non_blocking=True):", going_on.transfers, "transfer,", going_on.syncs, "syncs")

# %% [markdown]
# From pageable memory `non_blocking=True` is allowed and safe, but the processor must fill the driver's
# buffer, so little can overlap. What you need depends on what should happen meanwhile:
#
# - work of the *processor*: **`non_blocking=True` and a pinned source**;
# - work of the *GPU*: both, and **a second stream**, because one stream does one thing after the other; and a copy
#   engine that is free. Further shows the code.
#
# ### Too early
#
# Who does not wait must not touch. Here a thread plays the copy engine. It has something else to do first.
# What does the target hold in the end?


# %%
def copy_later(engine, target, source):
    engine.submit(time.sleep, 0.05)  # the queue is not empty
    return engine.submit(target.copy_, source)


for wait in (False, True):
    source, target = torch.ones(4), torch.empty(4)
    with ThreadPoolExecutor(1) as engine:
        copied = copy_later(engine, target, source)  # returns at once
        if wait:
            copied.result()  # for a GPU: event.synchronize()
        source.zero_()  # the next batch goes into the same buffer
    print("after waiting:    " if wait else "changed too early:", target)
    assert target.tolist() == [float(wait)] * 4

# %% [markdown]
# No error, no warning: only wrong data. On a GPU it is the same with a pinned source, and in the other direction it is
# easier to make the mistake: `on_gpu.to("cpu", non_blocking=True)` gives you a tensor that is not filled yet. (Further
# tries both, where there is a GPU.) With the batches of a `DataLoader` you are safe, because nobody writes to them again.
# The danger begins when you reuse a buffer of your own.
#
# ## 9. Overlap: prepare the next one meanwhile
#
# Two things that do not need the same hardware can happen at the same time: a loader waits for a disk, or the copy
# engine copies batch 2, while the device computes on batch 1. If loading takes *a* and computing takes *b*, how many times
# faster can it be at most?
#
# Try it. A thread plays the loader, or the copy engine; a batch takes it 4 ms, without any processor. This process's
# main thread plays the device, and computes 4 ms on each batch. Both note when they work. For six batches, your guess?

# %%
guess = ...


# %%
def fetch(number, seconds, log):
    with log.note("loader", number):
        time.sleep(seconds)
        return torch.full((8, 64), float(number))


def compute(number, batch, weight, seconds, log):
    with log.note("device", number):
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            batch @ weight


def one_after_the_other(engine, weight, load=0.004, work=0.004):
    log = Log()
    for number in range(6):
        batch = engine.submit(fetch, number, load, log).result()
        compute(number, batch, weight, work, log)
    return log


def one_ahead(engine, weight, load=0.004, work=0.004):
    log = Log()
    coming = engine.submit(fetch, 0, load, log)
    for number in range(6):
        batch = coming.result()  # waits, and raises what `fetch` raised
        if number < 5:
            coming = engine.submit(fetch, number + 1, load, log)
        compute(number, batch, weight, work, log)
    return log


with ThreadPoolExecutor(1) as engine:
    compare(
        "data loading: a thread plays the copy engine",
        {
            "one after the other": lambda weight: one_after_the_other(engine, weight),
            "one batch ahead": lambda weight: one_ahead(engine, weight),
        },
        inputs=(64, 64),
        guess=guess,
        differ="each notes its own times",
        only="cpu",
        clock="wall",
    )

# %% [markdown]
# Here is why. Three runs, drawn from what they noted, with 10 ms for each step (the best of five each):

# %%
weight = torch.rand(64, 64)
runs = {
    "one after the other": (one_after_the_other, 0.010),
    "one batch ahead": (one_ahead, 0.010),
    "one batch ahead, loading takes twice as long": (one_ahead, 0.020),
}
with ThreadPoolExecutor(1) as engine:
    logs = {
        name: min((run(engine, weight, load, 0.010) for _ in range(5)), key=lambda log: log.end)
        for name, (run, load) in runs.items()
    }
picture(*draw_timelines(logs))

# %% [markdown]
# The time for each batch falls from *a + b* to the larger of the two. So never more than twice as fast, and that only
# where both take the same time. Nobody works beside the first load and the last step: six batches take 7 steps instead
# of 12. The best runs, drawn here, come near that; not every run does, so the median in the table above may be lower.
# In the last run the device still waits, because the loader is the slower one. **More overlap does not mend
# that**, and a longer queue does not either: load faster, or with several workers at once.
#
# A queue of *two or three* batches helps where loading takes unequally long: what is ready bridges a slow one. It must be
# bounded, or a loader that is faster than the device fills the memory. `DataLoader` does this with workers
# (`prefetch_factor`). Where loading is waiting, a thread does it without another process. The exercises build it.

# %% [markdown]
# ## Further
#
# You can skip this. It is for those who load large JPEGs, who use workers with a cache, or who want a copy to
# the GPU to overlap with its work.
#
# ### Decode less
#
# A JPEG stores blocks of frequencies. A decoder can leave out the high ones and give half the width and
# height for less work: PIL calls this `draft`. `torchvision.io` decodes into a tensor without PIL. All three below
# end with a small tensor. How many times faster is `draft` than PIL's full decoding?

# %%
guess = ...


# %%
def with_pil(path):
    return v2.functional.pil_to_tensor(shrink(path))


def with_torchvision(path):
    return v2.functional.resize(decode_image(read_file(path), mode="RGB"), [128, 128])


def with_draft(path):
    picture = Image.open(path)
    picture.draft("RGB", (128, 128))  # at least this size; only JPEG knows how
    return v2.functional.pil_to_tensor(v2.functional.resize(picture.convert("RGB"), [128, 128]))


compare(
    "data loading: one JPEG of 600 × 400 to a small tensor",
    {"PIL": with_pil, "torchvision.io": with_torchvision, "PIL with draft": with_draft},
    inputs=cup_path,
    guess=guess,
    differ="each shrinks in its own way",
    only="cpu",
    seconds=0.8,
)

# %% [markdown]
# **Why.** `draft` saves decoding *and* shrinking: a quarter of the pixels arrives. The result is not the same picture
# bit by bit. And a PNG has no such blocks: there `draft` does nothing. `torchvision.io` decodes all pixels, and on the
# processors above it is about as fast, with the result of PIL or very nearly so: the simpler way, if you want a tensor.

# %%
for function in (with_torchvision, with_draft):
    difference = (function(cup).int() - with_pil(cup).int()).abs().float()
    print(f"{function.__name__:16} differs from PIL by {difference.mean():.1f} of 255 on average")

for name in ("cup/coffee.jpg", "texture/brick.png"):
    opened = Image.open(data / "images" / name)
    before = opened.size
    opened.draft("RGB", (128, 128))
    print(f"{name:18} {before} → {opened.size}")
assert opened.size == before  # the PNG

# %% [markdown]
# ### Large pictures
#
# Section 4 made a batch of 64 small pictures. Now 8 pictures of 384 × 384. Each is 144 times as large. How many times
# faster is the whole batch?

# %%
guess = ...

# %%
compare(
    "data loading: 8 pictures of 384 × 384 to floats",
    {"each picture": each_picture, "whole batch": whole_batch},
    inputs=some_pictures(8, 384),
    guess=guess,
    only="cpu",
    seconds=0.8,
    because="page faults",
)

# %% [markdown]
# **Why not?** The eight start-up costs were small already. Both variants end with 14 MB of floats. But the batch makes
# such a tensor at every step, which may be new memory, with page faults: how much of the loss they are, the card says.
# Of a single picture, the floats may stay in a cache.
#
# ### A cache and workers
#
# A worker has its own copy of the data set. So it fills its own cache, and yours stays empty. Two workers
# decode up to twice as much, and workers that are not persistent take their cache with them.

# %%
cached = Cached(small)
if on_linux:
    epoch(loader_with(cached, 2, 2))
    print("pictures in this process's cache after an epoch with workers:", len(cached.kept))
    assert len(cached.kept) == 0
epoch(loader_with(cached, 0, 2))
assert len(cached.kept) == 10

# %% [markdown]
# Mend it: fill the cache before the loader starts its workers. By `fork` they get it. Here the cache is full, and
# we take the files away:

# %%
cached.dataset = None
if on_linux:
    epoch(loader_with(cached, 0, 2, sampler=range(10)))
    epoch(loader_with(cached, 2, 2, sampler=range(10)))
    print("workers found all ten pictures in the cache that they were born with")

# %% [markdown]
# Where workers are not forked, everything they need travels as a pickle. A function without a name cannot:

# %%
try:
    pickle.dumps(lambda image: image / 255)
except (pickle.PicklingError, AttributeError) as error:
    print(type(error).__name__, "for a lambda")
print(len(pickle.dumps(small)), "bytes for an ImageFolder: a list of names, and a transform from a library")

# %% [markdown]
# ### Pin first, then copy
#
# In section 7 the memory was pinned already. If you pin a tensor and copy it right away, the processor first
# copies it into pinned memory. (Torch keeps pinned memory and uses it again. So only the first time you pay for the
# pinning itself, too.) How many times faster is that than the plain copy? (Without a GPU: recordings. Below them: what
# others published on *A4*, [by these rules](../docs/published.md).)

# %%
guess = ...


# %%
from autograder import published


def source_and_target(generator, device):
    return torch.full((4_000_000,), 0.5), torch.empty(4_000_000, device=device)


compare(
    "data loading: 16 MB, copied into pinned memory first",
    {
        "plain copy": lambda source, target: target.copy_(source),
        "pin, then copy": lambda source, target: target.copy_(source.pin_memory()),
    },
    inputs=source_and_target,
    guess=guess,
    claim="A4",
    only="cuda",
    clock="wall",
    seconds=0.5,
)
published("A4", guess)

# %% [markdown]
# ### Too early, on a GPU
#
# Section 8's mistake, in both directions. The multiplications are queued before the copy, so it begins late.

# %%
if gpu:
    busy, source = torch.rand(8192, 8192, device="cuda"), torch.ones(1_000_000).pin_memory()
    target = torch.empty(1_000_000, device="cuda")
    for wait in (False, True):
        source.fill_(1)
        torch.cuda.synchronize()
        for _ in range(4):
            busy @ busy  # work for some milliseconds
        target.copy_(source, non_blocking=True)
        copied = torch.cuda.Event()
        copied.record()
        if wait:
            copied.synchronize()
        source.zero_()
        print("after waiting:     " if wait else "changed too early: ", target.mean().item())

    on_gpu = torch.ones(1_000_000, device="cuda")  # and in the other direction
    torch.cuda.synchronize()
    for _ in range(4):
        busy @ busy
    result = on_gpu.add(1).to("cpu", non_blocking=True)
    early = result.mean().item()
    torch.cuda.synchronize()
    print("read too early:    ", early, "· after waiting:", result.mean().item())
    del busy
else:
    print("no GPU here: the thread above has to do")

# %% [markdown]
# ### A prefetcher with a CUDA stream
#
# On a GPU, work queued on one *stream* runs in order. The copy of the next batch therefore goes to a second
# stream. The computing stream waits for it with `wait_stream`, which makes the GPU wait and not the host. One
# thing is easy to forget. The memory belongs to the stream that allocated it; `record_stream` says that
# another one uses it too, so that it is not given away too early.


# %%
class Prefetcher:
    """Batches on a device; the next one is on its way while you use this one."""

    def __init__(self, batches, device, stream=None):
        """``stream`` is where the copies go. None: the stream of the computation, so nothing overlaps."""
        self.batches, self.device, self.stream = batches, device, stream

    def send(self, batch):
        with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
            return batch.to(self.device, non_blocking=True)

    def receive(self, batch):
        if self.stream is not None:
            computing = torch.cuda.current_stream(self.device)
            computing.wait_stream(self.stream)
            batch.record_stream(computing)
        return batch

    def __iter__(self):
        coming = None
        for batch in self.batches:
            here = None if coming is None else self.receive(coming)
            coming = self.send(batch)
            if here is not None:
                yield here
        if coming is not None:
            yield self.receive(coming)


on_host = [torch.full((2, 2), float(i)) for i in range(4)]
# One for the whole program: memory is reused within a stream.
second_stream = torch.cuda.Stream() if gpu else None
for device in devices():
    stream = second_stream if device == "cuda" else None
    assert [int(batch[0, 0]) for batch in Prefetcher(on_host, device, stream)] == [0, 1, 2, 3]
    assert list(Prefetcher([], device, stream)) == []

# %% [markdown]
# Eight batches are copied and computed on, in four ways. **Without a GPU** there is no copy and no second
# stream, so you see recordings. How many times faster is the last on a GPU?

# %%
guess = ...


# %%
def batches_and_weight(generator, device):
    batches = [torch.full((1024, 1024), 0.5) for _ in range(8)]
    return batches, [pinned(batch) for batch in batches], torch.ones(1024, 1024, device=device)


def copy_and_compute(batches, weight, non_blocking=False):
    for batch in batches:
        batch.to(weight.device, non_blocking=non_blocking) @ weight


def prefetch_and_compute(batches, weight):
    for batch in Prefetcher(batches, weight.device, second_stream):
        batch @ weight


compare(
    "data loading: copy and compute",
    {
        "pageable": lambda batches, page_locked, weight: copy_and_compute(batches, weight),
        "pinned": lambda batches, page_locked, weight: copy_and_compute(page_locked, weight),
        "pinned, non_blocking": lambda batches, page_locked, weight: copy_and_compute(
            page_locked, weight, non_blocking=True
        ),
        "pinned, non_blocking, second stream": lambda batches, page_locked, weight: prefetch_and_compute(
            page_locked, weight
        ),
    },
    inputs=batches_and_weight,
    guess=guess,
    only="cuda",
    seconds=0.8,
)

# %% [markdown]
# The steps are separate gains. A pinned source shortens the copy; that is the largest on an H200, 4 times. `non_blocking`
# lets the host go on, so that it can queue the next batch in time. The second stream lets the copy run beside the
# computation. If the computation is much longer than the copy, all of this is invisible. Then leave the code simple.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** name the largest part: decoding, calls, waits or copies. Each row takes one away.
#
# | you have | use | because |
# |---|---|---|
# | a folder for each class | `ImageFolder`, `DatasetFolder` | the same in one line; check `class_to_idx` |
# | large JPEGs, small inputs | shrink the files once; or `torchvision.io`, or `draft` | decoding and shrinking are most of the time |
# | data that fits in memory when decoded | a cache of `uint8` | the second epoch costs nothing; random transforms go behind it |
# | many small samples | one operation on the whole batch | each operation costs microseconds before it starts |
# | small data in memory | indexing, no `DataLoader` | workers and item-by-item loading cost more than the data |
# | samples that wait or decode for long | workers, persistent | they wait at the same time, and work if processors are free |
# | a loader that waits, and a device that computes | a thread, one or two batches ahead, bounded | the larger of the two times, not the sum |
# | rows of different lengths | batches of similar length | padding costs as much as data, where the device is busy |
# | bytes for a GPU | convert after the transfer | a quarter of the bytes |
# | workers and a GPU | `pin_memory=True` and `non_blocking=True` | a thread pins the batches, and the host does not wait |
# | a buffer that is used again | wait for the copy first | changed too early is wrong data without an error |

# %%
verdicts("C1", "A4")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/04_data_loading/04_data_loading.ipynb). Four functions,
# given slow, to be made right and fast; and a loader that reads ahead, to build and to keep.
