# %% [markdown]
# # Exercises 04 · Loading data
#
# Four functions, each given in a slow version that is right, and a small loader to build.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden
# tests run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# No exercise needs a GPU. Where one does transfers, they are counted.
# The chapter is [here](../../course/04_data_loading.ipynb). 39 points, about 110 minutes.

# %% id="setup" role="given"
import io
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from PIL import Image
from torchvision.io import decode_image

from autograder import check, costs, race

# %% [markdown]
# ## 1. Collate pictures of many sizes
#
# *Easy, 15 minutes.* A `DataLoader` calls `collate_fn` with a list of samples, to make a batch of them. Here
# the pictures have different sizes, as in object detection. Write `collate(samples)`.
#
# - `samples`: list of *N* pairs `(picture, label)`. A picture is a NumPy array of shape `(H, W, 3)` and type
#   `uint8`, each with its own *H* and *W*. It may be a view with any strides, such as a mirrored picture
#   (`picture[:, ::-1]`). A label is a Python integer.
# - returns: `(pictures, sizes, labels)`, CPU tensors. `pictures`: `uint8` of shape `(N, 3, H, W)` with the
#   largest *H* and the largest *W* of the batch. Each picture lies at the top left; what is right of it and below it
#   is 0. Strides do not matter. `sizes`: `int64` of shape `(N, 2)`, *H* and *W* of each picture. `labels`:
#   `int64` of shape `(N,)`.
# - An empty list must raise `ValueError`. The batch must not share memory with the samples, not even where there is
#   a single one.


# %% id="collate_given" role="given"
def collate_slow(samples):
    if not samples:
        raise ValueError("collate needs one sample or more")
    pictures = torch.zeros(0, 3, 0, 0, dtype=torch.uint8)
    sizes, labels = torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    for picture, label in samples:
        picture = torch.tensor(picture.copy()).permute(2, 0, 1)
        height = max(picture.shape[1], pictures.shape[2])
        width = max(picture.shape[2], pictures.shape[3])
        grown = torch.zeros(len(pictures) + 1, 3, height, width, dtype=torch.uint8)
        grown[:-1, :, : pictures.shape[2], : pictures.shape[3]] = pictures
        grown[-1, :, : picture.shape[1], : picture.shape[2]] = picture
        pictures = grown
        sizes = torch.cat([sizes, torch.tensor([picture.shape[1:]])])
        labels = torch.cat([labels, torch.tensor([label])])
    return pictures, sizes, labels


def make_samples(generator, number, low, high):
    sizes = torch.randint(low, high, (number, 2), generator=generator).tolist()
    pictures = [torch.randint(256, (h, w, 3), generator=generator, dtype=torch.uint8) for h, w in sizes]
    labels = torch.randint(10, (number,), generator=generator).tolist()
    return [(picture.numpy(), label) for picture, label in zip(pictures, labels, strict=True)]


def one_batch(generator, device):
    return (make_samples(generator, 128, 6, 17),)


def single_mirrored(generator, device):
    ((picture, label),) = make_samples(generator, 1, 5, 9)
    return ([(picture[:, ::-1], label)],)


def no_samples(generator, device):
    return ([],)


# %% [markdown]
# <details><summary>Hint 1</summary>The given version copies the batch again for each picture. How large is
# the result? You can know before you copy the first picture.</details>
# <details><summary>Hint 2</summary>Count what you ask for each picture: every operation of torch costs some
# microseconds before it touches a byte, and here there are only a few kilobytes. NumPy's indexing costs less, and it
# accepts any strides.</details>
# <details><summary>Hint 3</summary>Make one NumPy array of zeros for the whole batch. Which order of its dimensions lets
# you assign each picture as it comes?</details>


# %% id="collate" role="answer"
def collate(samples):
    ### BEGIN SOLUTION
    if not samples:
        raise ValueError("collate needs one sample or more")
    pictures, labels = zip(*samples, strict=True)
    sizes = [picture.shape[:2] for picture in pictures]
    height, width = (max(side) for side in zip(*sizes, strict=True))
    batch = np.zeros((len(samples), height, width, 3), dtype=np.uint8)
    for corner, picture, (h, w) in zip(batch, pictures, sizes, strict=True):
        corner[:h, :w] = picture
    return torch.from_numpy(batch).permute(0, 3, 1, 2), torch.tensor(sizes), torch.tensor(labels)
    ### END SOLUTION


# %% id="collate_check" role="test"
check(collate, like=collate_slow, on=[one_batch, single_mirrored], shares=False, points=1)

# %% id="collate_empty" role="test"
check(collate, like=collate_slow, on=no_samples, raises=ValueError, points=1)


# %% id="collate_hidden" role="test"
# Hidden test: other sizes, a single sample, pictures with other strides. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def few_samples(generator, device):
    return (make_samples(generator, 5, 1, 12),)


def single_sample(generator, device):
    return (make_samples(generator, 1, 4, 10),)


def views_of_samples(generator, device):
    samples = make_samples(generator, 4, 6, 14)
    return ([(picture[::-1, ::2], label) for picture, label in samples],)


check(
    collate,
    like=collate_slow,
    on=[few_samples, single_sample, views_of_samples],
    shares=False,
    points=2,
)
### END HIDDEN TESTS

# %% id="collate_race" role="test"
race(collate, against=collate_slow, on=one_batch, at_least={"cpu": 8}, points=2)

# %% [markdown]
# ## 2. A cache that does not help
#
# *Medium, 20 minutes.* Several epochs cut random squares out of the same JPEG files. The given version has a
# cache, and yet it is slow, and it takes more memory with every epoch. Find out why, and write
# `read_epochs(files, epochs, side)`, which gives the same.
#
# - `files`: list of one-dimensional NumPy arrays of type `uint8`: the bytes of JPEG files.
# - `epochs`: list of epochs. An epoch is a list of triples `(position, top, left)`: of the picture
#   `files[position]`, the square of `side` × `side` pixels whose first row and column are `top` and `left`. All
#   squares lie inside the pictures. A position may come several times, in one epoch or in many, or never.
# - returns: a list with one tensor for each epoch: `uint8` of shape `(number of triples, 3, side, side)`, with the
#   squares in that order. An epoch without triples gives a tensor of shape `(0, 3, side, side)`.
# - Decode by `decode` below. A file that no epoch asks for must not be decoded: it may be damaged. A damaged file
#   that is asked for must raise an error: `OSError`, `RuntimeError` or `ValueError`.
# - Memory is short: there can be any number of files. Beside the result, a call may hold new memory for three
#   decoded pictures at once, no more. One of the tests counts it; Python's lists and numbers are no matter there.
#   (`costs`, from `autograder`, counts what tensors one call of `decode` needs; in grading NumPy's memory counts, too.)


# %% id="read_epochs_given" role="given"
def decode(file):
    return decode_image(torch.from_numpy(file), mode="RGB")  # (3, height, width), uint8


def read_epochs_slow(files, epochs, side):
    cache = {}
    result = []
    for epoch in epochs:
        batch = torch.empty(len(epoch), 3, side, side, dtype=torch.uint8)
        for i, (position, top, left) in enumerate(epoch):
            if (position, top, left) not in cache:
                picture = decode(files[position])
                cache[position, top, left] = picture[:, top : top + side, left : left + side]
            batch[i] = cache[position, top, left]
        result.append(batch)
    return result


def make_files(generator, number, width, height):
    files = []
    for _ in range(number):
        coarse = torch.randint(256, (4, 4, 3), generator=generator, dtype=torch.uint8).numpy()
        file = io.BytesIO()
        Image.fromarray(coarse).resize((width, height)).save(file, "jpeg")
        files.append(np.frombuffer(file.getvalue(), dtype=np.uint8).copy())
    return files


def make_epochs(generator, number, positions, rows, columns):
    epochs = []
    for _ in range(number):
        tops = torch.randint(rows, (len(positions),), generator=generator).tolist()
        lefts = torch.randint(columns, (len(positions),), generator=generator).tolist()
        order = torch.randperm(len(positions), generator=generator).tolist()
        epochs.append([(positions[i], top, left) for i, top, left in zip(order, tops, lefts, strict=True)])
    return epochs


def ten_epochs(generator, device):
    files = make_files(generator, 6, 200, 150)
    return files, make_epochs(generator, 10, range(6), 134, 184), 16


def many_files(generator, device):
    files = make_files(generator, 12, 640, 480)
    return files, make_epochs(generator, 3, range(12), 472, 632), 8


def short_epochs(generator, device):
    files = make_files(generator, 4, 40, 30)
    files[2] = files[2][100:]  # damaged, and nobody asks for it
    return files, [[(3, 0, 5), (3, 2, 1)], [], [(0, 18, 28), (3, 0, 5), (1, 7, 7)]], 12


def damaged_file(generator, device):
    files = make_files(generator, 3, 32, 24)
    files[1] = files[1][100:]
    return files, [[(0, 0, 0), (2, 1, 1)], [(1, 3, 3)]], 8


# %% [markdown]
# <details><summary>Hint 1</summary>How often is something found in the cache? Print it. What is the same in two
# epochs, and what is not?</details>
# <details><summary>Hint 2</summary>A square that is a view keeps its whole picture alive. But even a cache of
# decoded pictures, and nothing else, is too large here: it holds all of them at the end.</details>
# <details><summary>Hint 3</summary>You know all epochs before you decode anything. Which order of the work needs each
# picture once, and never again?</details>
# <details><summary>Hint 4</summary>Make the empty batches of all epochs first. Note for each file the places in them
# that it must fill. Then go through the files, not through the epochs. (As long as a variable holds a picture, it is
# there beside the next one.)</details>


# %% id="read_epochs" role="answer"
def read_epochs(files, epochs, side):
    ### BEGIN SOLUTION
    result = [torch.empty(len(epoch), 3, side, side, dtype=torch.uint8) for epoch in epochs]
    places = {}
    for batch, epoch in zip(result, epochs, strict=True):
        for i, (position, top, left) in enumerate(epoch):
            places.setdefault(position, []).append((batch, i, top, left))
    for position, wanted in places.items():
        picture = decode(files[position])
        for batch, i, top, left in wanted:
            batch[i] = picture[:, top : top + side, left : left + side]
    return result
    ### END SOLUTION


# %% id="read_epochs_check" role="test"
check(read_epochs, like=read_epochs_slow, on=[ten_epochs, short_epochs], points=1)

# %% id="read_epochs_damaged" role="test"
check(
    read_epochs,
    like=read_epochs_slow,
    on=damaged_file,
    raises=(OSError, RuntimeError, ValueError),
    points=1,
)

# %% id="read_epochs_memory" role="test"
# The result has 3 × 12 squares; three pictures are allowed beside it.
check(
    read_epochs,
    like=read_epochs_slow,
    on=many_files,
    at_most={"peak_bytes": 3 * 12 * 3 * 8 * 8 + 3 * 3 * 640 * 480},
    points=2,
)


# %% id="read_epochs_hidden" role="test"
# Hidden test: repeated and missing positions, no epochs, damaged files that nobody asks for. 2 points, when graded.
### BEGIN HIDDEN TESTS
def repeated_positions(generator, device):
    files = make_files(generator, 5, 40, 30)
    return files, [[(4, 0, 0), (4, 0, 0), (0, 9, 3)], [(1, 5, 5)], [], [(0, 9, 3), (1, 0, 0), (4, 8, 8)]], 12


def damaged_but_unused(generator, device):
    files = make_files(generator, 4, 20, 20)
    files[2] = files[2][:10]
    return files, make_epochs(generator, 2, [0, 1, 3], 14, 14), 6


def no_epochs(generator, device):
    return make_files(generator, 2, 16, 16), [], 4


def only_empty_epochs(generator, device):
    return make_files(generator, 2, 16, 16), [[], []], 4


cases = [repeated_positions, damaged_but_unused, no_epochs, only_empty_epochs]
check(read_epochs, like=read_epochs_slow, on=cases, points=2)
### END HIDDEN TESTS

# %% id="read_epochs_race" role="test"
race(read_epochs, against=read_epochs_slow, on=ten_epochs, at_least={"cpu": 2.5}, points=2)

# %% [markdown]
# ## 3. Do not compute twice
#
# *Hard, 20 minutes.* Every row of numbers stands for the words of a sentence. The given version pads all
# rows to the longest, looks up a vector for each word, sends it through a layer, and takes the mean over the
# words of each row. The rows are like real text: a few sentences are long, and a few words make up most of
# it. Write `encode(rows, table, weight)`, which gives the same.
#
# - `rows`: list of *N* one-dimensional `int64` tensors of different lengths. A length may be 0, and *N* may
#   be 0.
# - `table`: `float32` tensor of shape `(words, D)`; `weight`: `float32` of shape `(D, E)`. Everything is on
#   the same device.
# - returns: `float32` tensor of shape `(N, E)` on that device. Row *i* is the mean of
#   `torch.tanh(table[rows[i]] @ weight)` over its words; zeros for an empty row. Each number may be off by 1e-4
#   times the root mean square of the whole result: numbers may be added in another order.


# %% id="encode_given" role="given"
def encode_slow(rows, table, weight):
    longest = max((len(row) for row in rows), default=0)
    batch = torch.zeros(len(rows), longest, dtype=torch.int64, device=table.device)
    used = torch.zeros(len(rows), longest, dtype=torch.bool, device=table.device)
    for i, row in enumerate(rows):
        batch[i, : len(row)] = row
        used[i, : len(row)] = True
    vectors = torch.tanh(table[batch] @ weight)
    return (vectors * used[:, :, None]).sum(1) / used.sum(1).clamp(min=1)[:, None]


def make_rows(generator, device, lengths, words=500):
    rows = [(torch.rand(n, generator=generator) ** 16 * words).long().to(device) for n in lengths]
    table = torch.randn(words, 512, generator=generator).to(device)
    weight = torch.randn(512, 64, generator=generator).to(device) / 23
    return rows, table, weight


def as_in_text(generator, device):
    lengths = 20 + (torch.rand(47, generator=generator) ** 3 * 100).long()
    return make_rows(generator, device, [120, *lengths.tolist()])


def with_an_empty_row(generator, device):
    return make_rows(generator, device, [3, 0, 8, 1])


def no_rows(generator, device):
    return make_rows(generator, device, [])


# %% [markdown]
# <details><summary>Hint 1</summary>Two things are computed in vain. Count them: how many of the vectors that go
# through the layer are padding? And how many of the others went through it before?</details>
# <details><summary>Hint 2</summary>The layer does not care which row a word stands in. <code>torch.cat</code> makes one
# long row of all words: no padding.</details>
# <details><summary>Hint 3</summary>The same word always gives the same vector. So the layer need not see the
# sentences at all, only each word that occurs. What does <code>torch.unique</code> give with
# <code>return_inverse=True</code>?</details>
# <details><summary>Hint 4</summary>To add up again, each word must know its row:
# <code>torch.repeat_interleave</code> repeats row numbers by lengths, <code>index_add_</code> adds by row
# number, and then do not divide by a length of 0. (Or <code>torch.nn.functional.embedding_bag</code>: it does all this,
# and gives zeros for empty rows.)</details>


# %% id="encode" role="answer"
def encode(rows, table, weight):
    ### BEGIN SOLUTION
    sums = table.new_zeros(len(rows), weight.shape[1])
    if not rows:
        return sums
    lengths = torch.tensor([len(row) for row in rows])
    owner = torch.arange(len(rows)).repeat_interleave(lengths).to(table.device)
    words, which = torch.cat(rows).unique(return_inverse=True)
    vectors = torch.tanh(table[words] @ weight)
    sums.index_add_(0, owner, vectors[which])
    return sums / lengths.clamp(min=1)[:, None].to(table.device)
    ### END SOLUTION


# %% id="encode_check" role="test"
check(encode, like=encode_slow, on=[as_in_text, with_an_empty_row, no_rows], points=1)


# %% id="encode_hidden" role="test"
# Hidden test: empty rows, rows of one length, a single row. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def with_empty_rows(generator, device):
    return make_rows(generator, device, [0, 5, 3, 0, 9, 1, 0])


def equal_lengths(generator, device):
    return make_rows(generator, device, [6] * 10)


def single_row(generator, device):
    return make_rows(generator, device, [4])


def only_empty_rows(generator, device):
    return make_rows(generator, device, [0, 0])


cases = [with_empty_rows, equal_lengths, single_row, only_empty_rows]
check(encode, like=encode_slow, on=cases, points=2)
### END HIDDEN TESTS

# %% id="encode_race" role="test"
race(encode, against=encode_slow, on=as_in_text, at_least={"cpu": 5.5}, points=3)

# %% [markdown]
# ## 4. One transfer
#
# *Medium, 20 minutes.* A batch for object detection has many small parts: pictures, labels, boxes, masks. Each
# transfer to a GPU costs microseconds before the first byte moves. Write `send(batch, mean, std, device)`, which
# moves a whole batch in one transfer and normalises the pictures on the device.
#
# - `batch`: dictionary from names to CPU tensors of any dtypes and shapes, also without dimensions or without
#   elements, and with any strides. One of them is `"images"`: `uint8` of shape `(N, H, W, 3)`.
# - `mean`, `std`: numbers. `device`: a string.
# - returns: a new dictionary with the same names; all its tensors are on `device`. `"images"`: `float32` of shape
#   `(N, 3, H, W)`, holding `(images / 255 - mean) / std`. All others: dtype, shape and values as given. Strides do not
#   matter.
# - The counted test allows one transfer, no sync, and new memory: 12 bytes for each byte of the
#   pictures, 4 for each byte of the rest, and 10 kB more. Its target is the device `meta`, which computes nothing;
#   so it works without a GPU.
# - `batch` must be left as it is, and nothing that is returned shares memory with it. The returned tensors may share
#   memory with each other.


# %% id="send_given" role="given"
def send_slow(batch, mean, std, device):
    sent = {name: tensor.to(device, copy=True) for name, tensor in batch.items()}
    images = []
    for picture in sent["images"]:
        channels = [picture[:, :, c] / 255 for c in range(3)]
        images.append(torch.stack([(channel - mean) / std for channel in channels]))
    return sent | {"images": torch.stack(images)}


def make_batch(generator, device, number, height, width, boxes):
    def integers(most, *shape, dtype=torch.int64):
        return torch.randint(most, shape, generator=generator).to(dtype)

    mean, std = (0.25 + torch.rand(2, generator=generator) / 4).tolist()
    batch = {
        "images": integers(256, number, height, width, 3, dtype=torch.uint8),
        "labels": integers(1000, number),
        "boxes": torch.rand(boxes, 4, generator=generator),
        "crowd": integers(2, boxes, dtype=torch.bool),
        "scale": torch.rand((), generator=generator, dtype=torch.float64),
    }
    return batch, mean, std, device


def small_batch(generator, device):
    return make_batch(generator, device, 32, 32, 32, boxes=57)


def odd_batch(generator, device):
    return make_batch(generator, device, 3, 5, 7, boxes=0)


def batch_for_meta(generator, device):
    return make_batch(generator, "meta", 16, 64, 64, boxes=33)


# %% [markdown]
# <details><summary>Hint 1</summary>One transfer means one tensor. What do all dtypes have in common? Section 7 of
# the chapter looks at the same memory as two dtypes.</details>
# <details><summary>Hint 2</summary>Make one empty tensor of bytes on the host, give each part a place in it, and copy
# each part to its place: there, too, a piece of the bytes can be seen as the part's dtype and shape. Send it. Take
# the parts out again in the same way, by views.</details>
# <details><summary>Hint 3</summary>A piece can be seen as another dtype only where it starts at a multiple of that
# dtype's size, 16 bytes at most. Round the end of each part up to one; or lay the parts with the largest items
# first.</details>
# <details><summary>Hint 4</summary>For the pictures: first the transfer, then the arithmetic, on the whole batch,
# and in place where you can. The sync is gone with <code>non_blocking=True</code>. (No test asks for pinned bytes.
# They would let a real GPU's host go on, section 8. But to pin new memory for a single copy does not pay, section
# 7.)</details>


# %% id="send" role="answer"
def send(batch, mean, std, device):
    ### BEGIN SOLUTION
    places, size = {}, 0
    for name, tensor in batch.items():
        places[name] = slice(size, size + tensor.nbytes)
        size = (size + tensor.nbytes + 15) // 16 * 16

    def parts(buffer):
        return {name: buffer[places[name]].view(t.dtype).view(t.shape) for name, t in batch.items()}

    buffer = torch.empty(size, dtype=torch.uint8)
    for name, place in parts(buffer).items():
        place.copy_(batch[name])
    sent = parts(buffer.to(device, non_blocking=True))
    images = (sent["images"] / 255).sub_(mean).div_(std)
    return sent | {"images": images.permute(0, 3, 1, 2)}
    ### END SOLUTION


# %% id="send_check" role="test"
check(send, like=send_slow, on=[small_batch, odd_batch], shares=False, points=2)

# %% id="send_counted" role="test"
pictures = 16 * 64 * 64 * 3
rest = 16 * 8 + 33 * 4 * 4 + 33 + 8
check(
    send,
    like=send_slow,
    on=batch_for_meta,
    at_most={"transfers": 1, "syncs": 0, "bytes": 12 * pictures + 4 * rest + 10_000},
    points=3,
)


# %% id="send_hidden" role="test"
# Hidden test: other sizes, a single picture, other parts. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def wide_batch(generator, device):
    return make_batch(generator, device, 3, 5, 14, boxes=11)


def one_picture(generator, device):
    return make_batch(generator, device, 1, 8, 3, boxes=1)


def other_parts(generator, device):
    batch, mean, std, device = make_batch(generator, device, 2, 3, 3, boxes=5)
    masks = torch.randint(2, (3, 5, 1), generator=generator, dtype=torch.int16)
    return {"flag": torch.tensor(True), "masks": masks, **batch}, mean, std, device


def only_pictures(generator, device):
    batch, *others = make_batch(generator, device, 2, 4, 5, boxes=1)
    return {"images": batch["images"]}, *others


check(send, like=send_slow, on=[wide_batch, one_picture, other_parts, only_pictures], points=2)
### END HIDDEN TESTS

# %% id="send_race" role="test"
race(send, against=send_slow, on=small_batch, at_least={"cpu": 2.5, "cuda": 5}, points=1)

# %% [markdown]
# ## 5. Build: a loader that reads ahead
#
# *Hard, 25 minutes.* Workers are processes. Where loading is mostly waiting, one
# thread is enough, and nothing must travel between processes. Build it, and keep it: `ahead(items, depth, load=read_far)`.
#
# - `items`: a list. `load`: a function of one item. `depth`: a whole number; below 1, the call of `ahead` itself
#   must raise `ValueError`.
# - returns an iterator that gives `load(item)` for each item, in order, and then ends. (Tests use it by
#   `next`, by `for`, and by its method `close`.)
# - Loading happens in the background, one item at a time. It begins when `ahead` is called, and goes on
#   while the program that takes the results does something else.
# - It reads far enough ahead: after a long pause, `depth` items are loaded that no call of `next` has given yet
#   (or all that are left). And it is bounded: never are more than `depth + 1` of them loaded, or being loaded.
# - If `load` raises for an item, `next` gives all results before it first, and then raises this error. After
#   that the iterator has ended.
# - `close()` may be called at any time, also twice. No item is begun after it. It returns when the one that
#   is being loaded, if any, is done, and no thread of the loader is left. After it, the iterator has ended.
#
# The tests use `read_far` below. They know nothing of your threads: they take results, and look at the clock.


# %% id="ahead_given" role="given"
def read_far(number):
    """A part of a file on a drive far away; it takes 0.04 s. Negative ones are damaged, and from 100 on 0.4 s."""
    time.sleep(0.4 if number >= 100 else 0.04)
    if number < 0:
        raise OSError(f"part {number} cannot be read")
    return torch.full((2, 3), float(number))


def ahead_slow(items, depth, load=read_far):
    if depth < 1:
        raise ValueError("depth must be 1 or more")
    return (load(item) for item in items)


def in_one_of(tries, attempt):
    """Whether it goes well at least once: another program may have had the processor the first time."""
    return any(attempt() for _ in range(tries))


# %% [markdown]
# <details><summary>Hint 1</summary>Section 9 of the chapter has a loader that is one batch ahead. Take it as a
# beginning. What must change for <code>depth</code>? When does the code in a function with <code>yield</code> begin to
# run, and what does that mean for the first two rules?</details>
# <details><summary>Hint 2</summary>Write a class with <code>__iter__</code>, <code>__next__</code> and
# <code>close</code>. A <code>ThreadPoolExecutor(1)</code> loads one item at a time, in order; a future keeps an error
# until somebody asks for its result.</details>
# <details><summary>Hint 3</summary>Keep the futures that are on their way in a <code>collections.deque</code>. At the
# start put <code>depth</code> into it. Each <code>next</code> asks for one more, and then takes one from the left. That
# an item after a damaged one has begun does no harm.</details>
# <details><summary>Hint 4</summary><code>shutdown</code> of the executor can wait, and it can cancel what has not
# begun. Call it from <code>close</code>; and from <code>next</code>, when there is nothing left or an error came.</details>


# %% id="ahead" role="answer"
def ahead(items, depth, load=read_far):
    ### BEGIN SOLUTION
    if depth < 1:
        raise ValueError("depth must be 1 or more")
    return _Ahead(items, depth, load)


class _Ahead:
    def __init__(self, items, depth, load):
        self.waiting, self.coming, self.load = deque(items), deque(), load
        self.thread = ThreadPoolExecutor(1)
        for _ in range(depth):
            self.begin_one()

    def begin_one(self):
        if self.waiting:
            self.coming.append(self.thread.submit(self.load, self.waiting.popleft()))

    def __iter__(self):
        return self

    def __next__(self):
        if not self.coming:
            self.close()
            raise StopIteration
        self.begin_one()
        try:
            return self.coming.popleft().result()
        except Exception:
            self.close()
            raise

    def close(self):
        self.waiting.clear()
        self.coming.clear()
        self.thread.shutdown(wait=True, cancel_futures=True)

    ### END SOLUTION


# %% id="ahead_check" role="test"
def all_of(items, depth):
    return [result for result in ahead(items, depth)]


def all_of_slow(items, depth):
    return [result for result in ahead_slow(items, depth)]


def five_parts(generator, device):
    return torch.randint(90, (5,), generator=generator).tolist(), 2


def fewer_than_depth(generator, device):
    return [7, 3], 4


def no_parts(generator, device):
    return [], 1


check(all_of, like=all_of_slow, on=[five_parts, fewer_than_depth, no_parts], points=1)


# %% id="ahead_depth" role="test"
def depth_of_0(generator, device):
    return [1, 2], 0


check(ahead, like=ahead_slow, on=depth_of_0, raises=ValueError, points=1)


# %% id="ahead_errors" role="test"
def until_an_error(items, depth):
    loader, found = ahead(items, depth), []
    try:
        for result in loader:
            found.append(result)
    except OSError:
        found.append("OSError")
    return [*found, next(loader, "ended")]


def until_an_error_slow(items, depth):
    return [*map(read_far, items[: items.index(-1)]), "OSError", "ended"]


def damaged_in_between(generator, device):
    return [4, 5, 6, -1, 8], 3


check(until_an_error, like=until_an_error_slow, on=damaged_in_between, points=1)


# %% id="ahead_clock" role="test"
def seconds_to_take(loader, number, work=0.0):
    """How long it takes to take so many results, and to work so long before each."""
    before = time.perf_counter()
    for _ in range(number):
        time.sleep(work)
        next(loader)
    return time.perf_counter() - before


def seconds_after_a_pause(items, depth, number):
    loader = ahead(items, depth)
    time.sleep(0.6)
    return seconds_to_take(loader, number)


def on_the_clock(items):
    return {
        "ten parts, 0.04 s of work before each: less than 0.65 s": in_one_of(
            5, lambda: seconds_to_take(ahead(items[:10], 2), 10, work=0.04) < 0.65
        ),
        "after a pause, depth 5: the first five in less than 0.12 s": in_one_of(
            5, lambda: seconds_after_a_pause(items, 5, 5) < 0.12
        ),
        "after a pause, depth 2: the first twelve in 0.3 s or more": seconds_after_a_pause(items, 2, 12)
        > 0.3,
        "without a pause: the first eight in 0.3 s or more": seconds_to_take(ahead(items, 4), 8) > 0.3,
    }


def as_on_the_clock(items):
    return {
        "ten parts, 0.04 s of work before each: less than 0.65 s": True,
        "after a pause, depth 5: the first five in less than 0.12 s": True,
        "after a pause, depth 2: the first twelve in 0.3 s or more": True,
        "without a pause: the first eight in 0.3 s or more": True,
    }


def twelve_parts(generator, device):
    return (torch.randperm(99, generator=generator)[:12].tolist(),)


check(on_the_clock, like=as_on_the_clock, on=twelve_parts, points=2)


# %% id="ahead_close" role="test"
def seconds_to_close(items, depth):
    loader = ahead(items, depth)
    next(loader)
    time.sleep(0.05)
    before = time.perf_counter()
    loader.close()
    return time.perf_counter() - before


def closed_early(items, depth):
    loader = ahead(items, depth)
    found = [next(loader)]
    time.sleep(0.3)  # now it is as far ahead as it may be
    loader.close()
    loader.close()
    # Then one is closed while an item that takes 0.4 s is being loaded, and more of them are to come.
    waits = in_one_of(5, lambda: 0.2 < seconds_to_close([items[0], *[100] * 8], depth) < 0.75)
    return [*found, next(loader, "ended"), {"waits for one item, not for more": waits}]


def closed_early_slow(items, depth):
    return [read_far(items[0]), "ended", {"waits for one item, not for more": True}]


def five_parts_far_ahead(generator, device):
    return five_parts(generator, device)[0], 4


check(closed_early, like=closed_early_slow, on=five_parts_far_ahead, points=2)


# %% id="ahead_hidden" role="test"
# Hidden test: other depths, an error at once, closed before anything is taken or after all is. 2 points, when graded.
### BEGIN HIDDEN TESTS
def depth_of_1(generator, device):
    return torch.randint(90, (6,), generator=generator).tolist(), 1


def all_ways(items, depth):
    unused = ahead(items, depth)
    unused.close()
    used_up = ahead(items, depth)
    found = [result for result in used_up]
    used_up.close()
    parts = [*items, *range(12)]
    far_ahead = in_one_of(5, lambda: seconds_after_a_pause(parts, 4, 4) < 0.12)
    bounded = seconds_after_a_pause([*range(12)], 1, 12) > 0.3
    ended = [next(unused, "ended"), next(used_up, "ended"), until_an_error([-1, 3], 1)]
    return [found, ended, closed_early(items, depth + 2), {"far ahead": far_ahead, "bounded": bounded}]


def all_ways_slow(items, depth):
    ended = ["ended", "ended", ["OSError", "ended"]]
    closed = closed_early_slow(items, depth)
    return [[*map(read_far, items)], ended, closed, {"far ahead": True, "bounded": True}]


check(all_ways, like=all_ways_slow, on=depth_of_1, points=2)
### END HIDDEN TESTS

# %% [markdown]
# ## 6. Foretell the costs
#
# *Easy, 10 minutes.* Three functions: two are of earlier chapters, the last is of this one. Each gets `x`, a
# tensor of `float32` with the shape `(n, d)`, whose numbers are all 2. Write `foretold(n, d)`, which says what
# `costs` counts then.
#
# - `n`, `d`: integers from 2 on.
# - returns: a dict with the names of the three functions. Each value is a dict of three integers: `"operations"` (views
#   are not counted), `"bytes"` of all new tensors together, and `"syncs"`, where the host would wait for a GPU.
# - `foretold` asks torch for nothing.


# %% id="foretold_given" role="given"
def similar(x):
    return (x @ x.T).softmax(dim=1)


def shortened(x):
    largest = x.abs().max()
    return x / largest if largest > 1 else x


def pixels(x):
    return x.to(torch.uint8).float().div_(255)


def counted(n, d):
    x = torch.full((n, d), 2.0)
    found = {function.__name__: costs(function, x) for function in (similar, shortened, pixels)}
    return {
        name: {"operations": it.operations.total(), "bytes": it.bytes, "syncs": it.syncs}
        for name, it in found.items()
    }


def any_size(generator, device):
    return tuple(torch.randint(2, 40, (2,), generator=generator).tolist())


# %% [markdown]
# <details><summary>Hint 1</summary>Go line by line: what is new, of which shape and type, and what only looks
# at what is there? <code>similar</code> is of chapter 00, <code>shortened</code> is of chapter 02,
# <code>pixels</code> is of chapter 04.</details>
# <details><summary>Hint 2</summary>Foretell one size on paper. Then look: <code>costs(pixels, torch.full((3, 4),
# 2.0))</code>. The names in brackets are the operations. Reading a number is one, too.</details>
# <details><summary>Hint 3</summary>Where you were wrong, let <em>n</em> grow alone, then <em>d</em>.</details>


# %% id="foretold" role="answer"
def foretold(n, d):
    ### BEGIN SOLUTION
    return {
        "similar": {"operations": 2, "bytes": 8 * n * n, "syncs": 0},
        "shortened": {"operations": 5, "bytes": 8 * n * d + 5, "syncs": 1},
        "pixels": {"operations": 3, "bytes": n * d + 4 * n * d, "syncs": 0},
    }
    ### END SOLUTION


# %% id="foretold_check" role="test"
check(foretold, like=counted, on=[any_size, any_size], at_most={"operations": 0}, points=1)


# %% id="foretold_hidden" role="test"
# Hidden test: long and narrow, short and wide. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def narrow(generator, device):
    return 200 + any_size(generator, device)[0], 2


def wide(generator, device):
    return 2, 200 + any_size(generator, device)[0]


check(foretold, like=counted, on=[narrow, wide, any_size], at_most={"operations": 0}, points=1)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
