# %% [markdown]
# # Exercises 04 · Loading data
#
# Five functions. Each is given in a slow version that is right. Write a fast one.
#
# **How it works.** Every exercise has a solution cell; replace the `raise` line there. Then run the test
# cells below it. `check` tells you whether your answer is right, and if not, where. `race` times it against
# the given version, on this machine, now. You get points for a right answer, and more for a fast one. Hidden
# tests run when your notebook is graded: other shapes, other types, other random numbers.
#
# Keep the names of the functions. Helper functions and imports of your own are welcome, in the solution cell.
# No exercise needs a GPU. Where one does transfers, they are counted.
# The chapter is [here](../../course/04_data_loading.ipynb). 30 points, about 75 minutes.

# %% id="setup" role="given"
import io

import numpy as np
import torch
from PIL import Image

from autograder import check, race

# %% [markdown]
# ## 1. Collate
#
# *Easy, 10 minutes.* A `DataLoader` calls `collate_fn` with a list of samples, to make a batch of them. Write
# `collate(samples)`.
#
# - `samples`: list of *N* pairs `(picture, label)`. A picture is a NumPy array of shape `(H, W, 3)` and type
#   `uint8`; all have the same size. It may be a view with other strides, such as a mirrored picture. A label
#   is a Python integer.
# - returns: a pair `(pictures, labels)` of CPU tensors: `uint8` of shape `(N, 3, H, W)`, strides do not
#   matter, and `int64` of shape `(N,)`.
# - An empty list must raise `ValueError`. The batch must not share memory with the samples.


# %% id="collate_given" role="given"
def collate_slow(samples):
    if not samples:
        raise ValueError("collate needs one sample or more")
    pictures, labels = None, None
    for picture, label in samples:
        picture = torch.tensor(picture.copy()).permute(2, 0, 1)[None]
        label = torch.tensor([label])
        pictures = picture if pictures is None else torch.cat([pictures, picture])
        labels = label if labels is None else torch.cat([labels, label])
    return pictures, labels


def make_samples(generator, number, height, width):
    shape = (number, height, width, 3)
    pictures = torch.randint(256, shape, generator=generator, dtype=torch.uint8).numpy()
    labels = torch.randint(10, (number,), generator=generator).tolist()
    return ([(picture.copy(), label) for picture, label in zip(pictures, labels, strict=True)],)


def one_batch(generator, device):
    return make_samples(generator, 64, 32, 32)


def no_samples(generator, device):
    return ([],)


# %% [markdown]
# <details><summary>Hint 1</summary>The given version copies the batch again for each picture. How large is
# the result? You know before you copy the first one.</details>
# <details><summary>Hint 2</summary><code>zip(*samples)</code> separates pictures from labels. Chapter 01 had
# a list of arrays, too: one NumPy function copies whole arrays into a new one.</details>


# %% id="collate" role="answer"
def collate(samples):
    ### BEGIN SOLUTION
    if not samples:
        raise ValueError("collate needs one sample or more")
    pictures, labels = zip(*samples, strict=True)
    batch = torch.from_numpy(np.stack(pictures))
    return batch.permute(0, 3, 1, 2), torch.tensor(labels)
    ### END SOLUTION


# %% id="collate_check" role="test"
check(collate, like=collate_slow, on=one_batch, points=1)

# %% id="collate_empty" role="test"
check(collate, like=collate_slow, on=no_samples, raises=ValueError, points=1)


# %% id="collate_hidden" role="test"
# Hidden test: other sizes, a single sample, pictures with other strides. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def wide_samples(generator, device):
    return make_samples(generator, 5, 7, 12)


def single_sample(generator, device):
    return make_samples(generator, 1, 9, 4)


def mirrored_samples(generator, device):
    (samples,) = make_samples(generator, 3, 6, 8)
    return ([(picture[::-1, ::2], label) for picture, label in samples],)


check(
    collate,
    like=collate_slow,
    on=[wide_samples, single_sample, mirrored_samples],
    shares=False,
    points=2,
)
### END HIDDEN TESTS

# %% id="collate_race" role="test"
race(collate, against=collate_slow, on=one_batch, at_least={"cpu": 2.5}, points=2)

# %% [markdown]
# ## 2. Crop a whole batch
#
# *Medium, 20 minutes.* Training often cuts a random square out of each picture. The positions are drawn
# already. Write `crop(images, top, left, size)`, with one operation for the whole batch instead of one for
# each picture.
#
# - `images`: tensor of shape `(N, C, H, W)` of any type, on any device.
# - `top`, `left`: `int64` tensors of shape `(N,)` on the same device. All squares lie inside the pictures.
# - `size`: a number, at least 1 and at most `H` and `W`.
# - returns: tensor of shape `(N, C, size, size)` and the type of `images`: picture *i* holds
#   `images[i, :, top[i] : top[i] + size, left[i] : left[i] + size]`. It must not share memory with `images`.
# - `top[i]` must not become a Python number: on a GPU, each of them makes the host wait. The counted test
#   allows no sync, and 12 operations.


# %% id="crop_given" role="given"
def crop_slow(images, top, left, size):
    result = images.new_empty(len(images), images.shape[1], size, size)
    for i in range(len(images)):
        rows = slice(int(top[i]), int(top[i]) + size)
        columns = slice(int(left[i]), int(left[i]) + size)
        result[i] = images[i, :, rows, columns]
    return result


def make_crops(generator, device, shape, size, dtype=torch.uint8):
    images = torch.randint(256, shape, generator=generator).to(dtype)
    top = torch.randint(shape[2] - size + 1, (shape[0],), generator=generator)
    left = torch.randint(shape[3] - size + 1, (shape[0],), generator=generator)
    return images.to(device), top.to(device), left.to(device), size


def small_pictures(generator, device):
    return make_crops(generator, device, (512, 3, 12, 12), 8)


# %% [markdown]
# <details><summary>Hint 1</summary>Tensors can be indexed with tensors. The indices broadcast against each
# other: which row, which column, which picture does each element of the result come from?</details>
# <details><summary>Hint 2</summary>The rows of all crops are <code>top[:, None]</code> plus a range. With a
# picture index of shape <code>(N, 1, 1, 1)</code>, a channel index of shape <code>(1, C, 1, 1)</code>, rows
# of shape <code>(N, 1, size, 1)</code> and columns of shape <code>(N, 1, 1, size)</code>, one indexing does
# it.</details>
# <details><summary>Hint 3</summary>Another way: <code>Tensor.unfold</code> along height and width gives a
# view with all possible squares. Then pick one for each picture.</details>


# %% id="crop" role="answer"
def crop(images, top, left, size):
    ### BEGIN SOLUTION
    squares = images.unfold(2, size, 1).unfold(3, size, 1)
    which = torch.arange(len(images), device=images.device)
    return squares[which, :, top, left]
    ### END SOLUTION


# %% id="crop_check" role="test"
check(crop, like=crop_slow, on=small_pictures, points=1)


# %% id="crop_counted" role="test"
def few_pictures(generator, device):
    return make_crops(generator, device, (20, 3, 16, 20), 9)


check(crop, like=crop_slow, on=few_pictures, at_most={"syncs": 0, "operations": 12}, points=2)


# %% id="crop_hidden" role="test"
# Hidden test: floats, one channel, one picture, squares as large as the picture. 2 points, when graded.
### BEGIN HIDDEN TESTS
def float_pictures(generator, device):
    return make_crops(generator, device, (5, 2, 11, 7), 4, torch.float32)


def grey_picture(generator, device):
    return make_crops(generator, device, (1, 1, 6, 9), 3, torch.int64)


def whole_pictures(generator, device):
    return make_crops(generator, device, (3, 3, 5, 5), 5)


def single_points(generator, device):
    return make_crops(generator, device, (4, 4, 6, 8), 1)


cases = [float_pictures, grey_picture, whole_pictures, single_points]
check(crop, like=crop_slow, on=cases, shares=False, points=2)
### END HIDDEN TESTS

# %% id="crop_race" role="test"
race(crop, against=crop_slow, on=small_pictures, at_least={"cpu": 4, "cuda": 10}, points=2)

# %% [markdown]
# ## 3. Decode once
#
# *Medium, 15 minutes.* Several epochs read the same JPEG files, each epoch in an order of its own. Write
# `read_epochs(files, epochs, side)`.
#
# - `files`: list of one-dimensional NumPy arrays of type `uint8`: the bytes of JPEG files.
# - `epochs`: list of lists of positions in `files`. A position may come several times, in one epoch or in
#   many, or never.
# - returns: a list with one tensor for each epoch: `uint8` of shape `(number of positions, 3, side, side)`,
#   with the pictures in that order, decoded and shrunk as by `decode_picture` below, bit by bit. An epoch
#   without positions gives a tensor of shape `(0, 3, side, side)`.
# - A file that no epoch asks for must not be decoded. It may be damaged. A damaged file that is asked for
#   must raise an error: `OSError`, `RuntimeError` or `ValueError`.


# %% id="read_epochs_given" role="given"
def decode_picture(file, side):
    picture = Image.open(io.BytesIO(file.tobytes())).convert("RGB")
    return torch.from_numpy(np.array(picture.resize((side, side)))).permute(2, 0, 1)


def read_epochs_slow(files, epochs, side):
    result = []
    for positions in epochs:
        batch = torch.empty(len(positions), 3, side, side, dtype=torch.uint8)
        for i, position in enumerate(positions):
            batch[i] = decode_picture(files[position], side)
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


def ten_epochs(generator, device):
    files = make_files(generator, 4, 64, 48)
    return files, [torch.randperm(4, generator=generator).tolist() for _ in range(10)], 16


def damaged_file(generator, device):
    files = make_files(generator, 3, 32, 24)
    files[1] = files[1][100:]
    return files, [[0, 2], [1]], 8


# %% [markdown]
# <details><summary>Hint 1</summary>Keep what is decoded, by position: a dictionary is a cache. Ask it before
# you decode.</details>
# <details><summary>Hint 2</summary>Collecting a batch from kept pictures is one <code>torch.stack</code>.
# What does it do with an empty list?</details>


# %% id="read_epochs" role="answer"
def read_epochs(files, epochs, side):
    ### BEGIN SOLUTION
    needed = sorted({position for positions in epochs for position in positions})
    row = {position: i for i, position in enumerate(needed)}
    kept = torch.empty(len(needed), 3, side, side, dtype=torch.uint8)
    for position, i in row.items():
        kept[i] = decode_picture(files[position], side)
    return [kept[[row[position] for position in positions]] for positions in epochs]
    ### END SOLUTION


# %% id="read_epochs_check" role="test"
check(read_epochs, like=read_epochs_slow, on=ten_epochs, points=1)

# %% id="read_epochs_damaged" role="test"
check(
    read_epochs,
    like=read_epochs_slow,
    on=damaged_file,
    raises=(OSError, RuntimeError, ValueError),
    points=1,
)


# %% id="read_epochs_hidden" role="test"
# Hidden test: repeated and missing positions, empty epochs, damaged files that nobody asks for. 2 points, when graded.
### BEGIN HIDDEN TESTS
def repeated_positions(generator, device):
    files = make_files(generator, 5, 40, 30)
    return files, [[4, 4, 0], [1], [], [0, 1, 4, 1]], 12


def damaged_but_unused(generator, device):
    files = make_files(generator, 4, 20, 20)
    files[2] = files[2][:10]
    return files, [[3, 0], [0, 1, 3]], 6


def no_epochs(generator, device):
    return make_files(generator, 2, 16, 16), [], 4


def only_empty_epochs(generator, device):
    return make_files(generator, 2, 16, 16), [[], []], 4


cases = [repeated_positions, damaged_but_unused, no_epochs, only_empty_epochs]
check(read_epochs, like=read_epochs_slow, on=cases, points=2)
### END HIDDEN TESTS

# %% id="read_epochs_race" role="test"
race(read_epochs, against=read_epochs_slow, on=ten_epochs, at_least={"cpu": 3}, points=2)

# %% [markdown]
# ## 4. Do not compute on padding
#
# *Medium, 15 minutes.* Every row of numbers stands for the words of a sentence. The given version pads all
# rows to the longest, looks up a vector for each word, sends it through a layer, and takes the mean over the
# words of each row. Most of that is done for padding. Write `encode(rows, table, weight)`, which gives the
# same.
#
# - `rows`: list of *N* one-dimensional `int64` tensors of different lengths. A length may be 0, and *N* may
#   be 0.
# - `table`: `float32` tensor of shape `(words, D)`; `weight`: `float32` of shape `(D, E)`. Everything is on
#   the same device.
# - returns: `float32` tensor of shape `(N, E)` on that device. Row *i* is the mean of
#   `torch.tanh(table[rows[i]] @ weight)` over its words, in the order of `rows`, and zeros for an empty row.


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


def make_rows(generator, device, lengths):
    rows = [torch.randint(500, (n,), generator=generator).to(device) for n in lengths]
    table = torch.randn(500, 64, generator=generator).to(device)
    weight = torch.randn(64, 96, generator=generator).to(device) / 8
    return rows, table, weight


def mostly_short(generator, device):
    lengths = 1 + (torch.rand(95, generator=generator) ** 12 * 300).long()
    return make_rows(generator, device, [300, *lengths.tolist()])


# %% [markdown]
# <details><summary>Hint 1</summary>One way: sort the positions by length, work on groups of similar length,
# and put each result back at its own position.</details>
# <details><summary>Hint 2</summary>A better way needs no padding at all. <code>torch.cat</code> makes one
# long row of all words. The layer does not care which row a word belongs to.</details>
# <details><summary>Hint 3</summary>To add up again, each word must know its row:
# <code>torch.repeat_interleave</code> repeats row numbers by lengths, <code>index_add_</code> adds by row
# number. Do not divide by a length of 0.</details>


# %% id="encode" role="answer"
def encode(rows, table, weight):
    ### BEGIN SOLUTION
    sums = table.new_zeros(len(rows), weight.shape[1])
    if not rows:
        return sums
    lengths = torch.tensor([len(row) for row in rows])
    owner = torch.arange(len(rows)).repeat_interleave(lengths).to(table.device)
    sums.index_add_(0, owner, torch.tanh(table[torch.cat(rows)] @ weight))
    return sums / lengths.clamp(min=1)[:, None].to(table.device)
    ### END SOLUTION


# %% id="encode_check" role="test"
check(encode, like=encode_slow, on=mostly_short, points=1)


# %% id="encode_hidden" role="test"
# Hidden test: empty rows, rows of one length, a single row, no rows. 2 points, when your notebook is graded.
### BEGIN HIDDEN TESTS
def with_empty_rows(generator, device):
    return make_rows(generator, device, [0, 5, 3, 0, 9, 1, 0])


def equal_lengths(generator, device):
    return make_rows(generator, device, [6] * 10)


def single_row(generator, device):
    return make_rows(generator, device, [4])


def only_empty_rows(generator, device):
    return make_rows(generator, device, [0, 0])


def no_rows(generator, device):
    return make_rows(generator, device, [])


cases = [with_empty_rows, equal_lengths, single_row, only_empty_rows, no_rows]
check(encode, like=encode_slow, on=cases, points=2)
### END HIDDEN TESTS

# %% id="encode_race" role="test"
race(encode, against=encode_slow, on=mostly_short, at_least={"cpu": 2}, points=2)

# %% [markdown]
# ## 5. Send a batch
#
# *Medium, 15 minutes.* Write `send(batch, mean, std, device)`, which moves a batch to a device and normalises
# the pictures there.
#
# - `batch`: dictionary with `"images"`, a `uint8` CPU tensor of shape `(N, H, W, 3)`; `"labels"`, an `int64`
#   CPU tensor of shape `(N,)`; and `"names"`, a list of strings.
# - `mean`, `std`: numbers. `device`: a string.
# - returns: a new dictionary. `"images"`: `float32` of shape `(N, 3, H, W)`, holding `(images / 255 - mean) /
#   std`; strides do not matter. `"labels"`: as given. Both on `device`. `"names"`: the same strings.
# - Send bytes, not floats, and do not wait. The counted test allows two transfers, no sync, and 9 bytes of
#   new memory for each byte of the pictures: the byte itself, and two tensors of floats. (Some kilobytes more
#   are allowed.) Its target is the device `meta`, which computes nothing; so it works without a GPU.
# - `batch` must be left as it is.


# %% id="send_given" role="given"
def send_slow(batch, mean, std, device):
    images = []
    for picture in batch["images"]:
        channels = [picture[:, :, c].to(device) / 255 for c in range(3)]
        images.append(torch.stack([(channel - mean) / std for channel in channels]))
    labels = torch.cat([label[None].to(device) for label in batch["labels"]])
    return {"images": torch.stack(images), "labels": labels, "names": list(batch["names"])}


def make_batch(generator, device, number, height, width):
    images = torch.randint(256, (number, height, width, 3), generator=generator, dtype=torch.uint8)
    labels = torch.randint(1000, (number,), generator=generator)
    mean, std = (0.25 + torch.rand(2, generator=generator) / 4).tolist()
    batch = {"images": images, "labels": labels, "names": [f"{i}.jpg" for i in range(number)]}
    return batch, mean, std, device


def small_batch(generator, device):
    return make_batch(generator, device, 32, 32, 32)


def batch_for_meta(generator, device):
    return make_batch(generator, "meta", 16, 64, 64)


# %% [markdown]
# <details><summary>Hint 1</summary>First the transfer, then the arithmetic. <code>non_blocking=True</code> is
# what makes the host not wait.</details>
# <details><summary>Hint 2</summary>Nothing here depends on the picture or the channel. So no loop is needed,
# only another order of the dimensions; <code>permute</code> copies nothing.</details>
# <details><summary>Hint 3</summary>Every operation that is not in place makes a new tensor of floats. Work in
# place on a tensor that you have made yourself.</details>


# %% id="send" role="answer"
def send(batch, mean, std, device):
    ### BEGIN SOLUTION
    images = batch["images"].to(device, non_blocking=True) / 255
    images = images.sub_(mean).div_(std).permute(0, 3, 1, 2)
    labels = batch["labels"].to(device, non_blocking=True)
    return {"images": images, "labels": labels, "names": list(batch["names"])}
    ### END SOLUTION


# %% id="send_check" role="test"
check(send, like=send_slow, on=small_batch, points=1)

# %% id="send_counted" role="test"
check(
    send,
    like=send_slow,
    on=batch_for_meta,
    at_most={"transfers": 2, "syncs": 0, "bytes": 9 * 16 * 64 * 64 * 3 + 8_000},
    points=2,
)


# %% id="send_hidden" role="test"
# Hidden test: other sizes, a single picture. 1 point, when your notebook is graded.
### BEGIN HIDDEN TESTS
def wide_batch(generator, device):
    return make_batch(generator, device, 3, 5, 14)


def one_picture(generator, device):
    return make_batch(generator, device, 1, 8, 3)


check(send, like=send_slow, on=[wide_batch, one_picture], points=1)
### END HIDDEN TESTS

# %% id="send_race" role="test"
race(send, against=send_slow, on=small_batch, at_least={"cpu": 3, "cuda": 8}, points=2)

# %% [markdown]
# ## Done
#
# Save the notebook, then press **Validate** in the toolbar to run all visible tests once more from the start.
