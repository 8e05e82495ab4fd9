# %% [markdown]
# # 12 · Images
#
# Pictures become tensors, change their size, lie in batches, and become pictures again. Each step has a slow way,
# one picture at a time, and a fast way for the whole batch. And some have a fast way that is wrong.
#
# IDs such as *C12* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, which
# times, and `costs`, which counts, are explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - resize a batch inside a model, with gradients, and choose mode and place with the cost in mind,
# - say when a batch is faster than PIL, and when the way from PIL to torch eats the gain,
# - say which pixels a pixel of a resized picture is made of, and with which weights,
# - show a batch as one picture, and not fall into the traps on the way back to bytes,
# - apply transforms to a whole batch, and know what that does to their randomness.
#
# **Time:** 50 minutes to read and run, 15 more for the part Further. **Needs:** CPU, GPU if any.
#
# **Claims tested:** *C12* "`F.interpolate` inside the forward pass"; *C13* "`make_grid` instead of plotting code".

# %%
import io
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from parts.pixels import as_figure, draw_weights
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.functional import to_pil_image, to_tensor
from torchvision.utils import make_grid

from autograder import article_code, behaviour, compare, costs, devices, guessed, picture, verdicts, without
from autograder.teaching.recall import recall

data = Path("../data/images")
torch.backends.cudnn.allow_tf32 = False  # a GPU's convolutions keep all digits of float32 (chapter 05)
print("devices here:", *devices())
recall("12", ..., ..., ...)

# %% [markdown]
# ## 1. A cat, twice as large
#
# A decoded picture is `uint8` (bytes, 0 to 255) of shape *H, W, C*. Torch wants *C, H, W*, in batches *N, C, H, W*.
# (Chapter 04 reads files, chapter 06 explains memory formats.)

# %%
pixels = np.array(Image.open(data / "cat" / "chelsea.jpg"))
cat = torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255
doubled = F.interpolate(cat, scale_factor=2, mode="bilinear")
print(pixels.shape, "→", tuple(cat.shape), "→", tuple(doubled.shape))

# %% [markdown]
# Without the batch dimension the call is refused, but for another reason than you may think: a tensor of
# three dimensions means a batch of *lines* (*N, C*, length), and lines have another mode:

# %%
try:
    F.interpolate(cat[0], scale_factor=2, mode="bilinear")
except NotImplementedError as error:
    print(str(error).split("(")[0])

# %% [markdown]
# Every pixel of the result has a *place* between pixels of the original. Its value is made of those around it. `nearest`
# copies one of them. `bilinear` mixes the closest 2 × 2. `bicubic` mixes 4 × 4. Here is an eye, eight times as large.

# %%
eye = cat[:, :, 98:128, 160:196]
modes = ("nearest", "bilinear", "bicubic")
enlarged = torch.cat([F.interpolate(eye, scale_factor=8, mode=mode) for mode in modes])
picture(
    as_figure(make_grid(enlarged.clamp(0, 1), padding=4, pad_value=1)),
    "A cat's eye three times: nearest shows square blocks, bilinear is soft, bicubic is a little sharper.",
)

# %% [markdown]
# In spite of its name, `nearest` does not always copy the nearest one: it rounds down. `nearest-exact` does.
# (Enlarged by a whole number, as here, both give the same.)

# %%
five = torch.arange(5.0).view(1, 1, 5)
for mode in ("nearest", "nearest-exact"):
    print(f"{mode:13} 5 → 3: {F.interpolate(five, 3, mode=mode).flatten().tolist()}")
assert F.interpolate(five, 3, mode="nearest").flatten().tolist() == [0, 1, 3]
assert torch.equal(F.interpolate(eye, scale_factor=8, mode="nearest-exact"), enlarged[:1])

# %% [markdown]
# Bicubic has 16 pixels to mix, bilinear 4. How many times as fast as bicubic is bilinear?

# %%
guess = ...

# %%
compare(
    "doubling 4 pictures of 3 × 128 × 128",
    {
        mode: lambda x, mode=mode: F.interpolate(x, scale_factor=2, mode=mode)
        for mode in ("bicubic", "bilinear")
    },
    inputs=(4, 3, 128, 128),
    guess=guess,
    differ="another mode",
    bytes=4 * 3 * 128 * 128 * 4 * 5,
)

# %% [markdown]
# **Why.** The limit is set by bytes (`bytes=` above): read one number, write four. On one thread of a CPU, both modes
# stay far away from it. They compute: for each number of the result some positions and weights, then [4 or 16
# products](https://en.wikipedia.org/wiki/Bicubic_interpolation). So the ratio should be near 4.
#
# On the CPUs that we tried, it is clearly less. (On an H200, too, but there bilinear's 10 µs are the launch.) Either
# bicubic is good, or bilinear is bad. Keep the suspicion for the part *Further*.

# %% [markdown]
# ## 2. A loop over PIL, or one call
#
# Somewhere in a model, feature maps or pictures must be enlarged. One way is to convert every picture to
# PIL, resize, and convert back. The article's advice (*C12*) is to resize in the forward pass: one call of
# `F.interpolate` for the batch. What does that save of torch's work, most of all: `"calls"`, `"bytes"` or `"arithmetic"`?

# %%
guess = ...


# %%
def through_pil(batch, size):
    resized = [to_pil_image(picture).resize((size, size), Image.Resampling.BILINEAR) for picture in batch]
    back = torch.stack([v2.functional.pil_to_tensor(picture) for picture in resized])
    return back.to(batch.device) / 255


compare(
    "enlarging 32 float pictures from 32 × 32 to 48 × 48",
    {
        "PIL, one by one": lambda batch: through_pil(batch, 48),
        "F.interpolate": lambda batch: F.interpolate(batch, (48, 48), mode="bilinear"),
    },
    inputs=(32, 3, 32, 32),
    guess=guess,
    differ="PIL works with bytes, see below",
    because="prices",
)

# %% [markdown]
# **Why.** Around PIL's own arithmetic stand, for each picture: times 255, a conversion to bytes, a copy with the
# channels last, and a copy back. From a GPU there are also 32 transfers to the host, each of which waits for the
# device, and one back. (Predicted is more: resizing itself has no price, and the call does little else.)
#
# Speed is not even the main reason. On the way through bytes each value is cut off to one of 256 steps. And the gradient?

# %%
small = torch.rand(4, 3, 32, 32, requires_grad=True)
by_pil, by_torch = through_pil(small, 48), F.interpolate(small, (48, 48), mode="bilinear")
print("largest difference:", round((by_pil - by_torch).abs().max().item() * 255, 1), "of 255")
print("requires_grad:  through PIL", by_pil.requires_grad, " F.interpolate", by_torch.requires_grad)
assert not by_pil.requires_grad and by_torch.requires_grad
assert (by_pil - by_torch).abs().max() * 255 < 2.01

# %% [markdown]
# There is no error. The conversion to bytes has no gradient, and whatever lies before it learns nothing.
#
# ### Given PIL pictures
#
# Now you are *given* PIL pictures, and want a batch of thumbnails as `uint8`. PIL averages over all pixels that
# a smaller pixel covers; torch does so with `antialias=True`. You can resize with PIL and convert what is left.
# Or you convert first, and resize the batch: in `float32`, rounded afterwards, or in bytes. How many times as
# fast as the loop over PIL is the batch of bytes?

# %%
guess = ...


# %%
def as_batch(pictures):
    return torch.stack([v2.functional.pil_to_tensor(picture) for picture in pictures])


def thumbnails_pil(pictures):
    return as_batch([picture.resize((64, 64), Image.Resampling.BILINEAR) for picture in pictures])


def thumbnails_float(batch):
    resized = F.interpolate(batch.float(), (64, 64), mode="bilinear", antialias=True)
    return resized.round_().clamp_(0, 255).to(torch.uint8)


def thumbnails_bytes(batch):
    return v2.functional.resize(batch, [64, 64])  # bilinear and antialiased by default


def large_bytes(generator, device):
    return torch.randint(256, (8, 3, 200, 200), generator=generator, dtype=torch.uint8).to(device)


def pil_pictures(generator, device):
    return [to_pil_image(one) for one in large_bytes(generator, device)]


compare(
    "8 PIL pictures of 200 × 200 to a batch of thumbnails",
    {
        "PIL, then a batch": thumbnails_pil,
        "a batch in float32": lambda pictures: thumbnails_float(as_batch(pictures)),
        "a batch of bytes": lambda pictures: thumbnails_bytes(as_batch(pictures)),
    },
    inputs=pil_pictures,
    guess=guess,
    differ="rounded differently, by one step of 255",
    only="cpu",
)
large = pil_pictures(torch.Generator(), "cpu")
assert costs(as_batch, large).bytes > 9 * thumbnails_pil(large).nbytes

# %% [markdown]
# **Why.** The batch pays for the conversion of the *large* pictures: ten times the bytes of the thumbnails. Resizing in
# bytes is fast (in `float32` less so, and there are four times as many bytes), but most of what it saves goes into the
# conversion: on the processors above, little is gained.
#
# What if the pictures lie in a `uint8` batch already? How many times as fast as the way through PIL is it to stay there?

# %%
guess = ...

# %%
compare(
    "a batch of 8 × 3 × 200 × 200 bytes to thumbnails",
    {
        "through PIL": lambda batch: thumbnails_pil([to_pil_image(p) for p in batch]).to(batch.device),
        "a batch of bytes": thumbnails_bytes,
    },
    inputs=large_bytes,
    guess=guess,
    differ="rounded differently, by one step of 255",
)

# %%
batch = large_bytes(torch.Generator().manual_seed(0), "cpu")
of_pil = thumbnails_pil([to_pil_image(one) for one in batch]).int()
for name, function in {"uint8": thumbnails_bytes, "float32": thumbnails_float}.items():
    difference = (function(batch).int() - of_pil).abs().max().item()
    print(f"{name:8} largest difference to PIL: {difference}    new bytes: {costs(function, batch).bytes:,}")
    assert difference <= 1

# %% [markdown]
# The same thumbnails, at most one step apart. So a batch should not go through PIL. For PIL pictures the way matters
# little, as long as they stay bytes. Keep pictures in `uint8` as long as one step does not matter. (The new bytes are those of the tensors
# that come out of operations. What a kernel uses inside, `costs` does not see.)

# %% [markdown]
# ## 3. Inside the forward pass
#
# `interpolate` is an operation like any other, so autograd goes through it. Every pixel of the result is a
# weighted mean, with weights that add up to 1. So if you sum all pixels of a result with *n* numbers, the
# gradients of the original must add up to *n*:

# %%
part = cat[:, :, :40, :40].clone().requires_grad_()
F.interpolate(part, scale_factor=3, mode="bicubic").sum().backward()
print("numbers in the result:", 3 * 120 * 120, "  sum of gradients:", round(part.grad.sum().item()))
behaviour(
    "C12",
    "Bicubic in a forward pass: the gradients of the picture add up to the count of numbers in the result.",
    torch.isclose(part.grad.sum(), torch.tensor(3.0 * 120 * 120)),
)


# %%
def article_interpolates():
    image = Image.open(data / "cat" / "chelsea.jpg")
    batch = to_tensor(image).unsqueeze(0)
    doubled = F.interpolate(batch, mode="bilinear", scale_factor=2.0, align_corners=False)
    graph = F.interpolate(batch.requires_grad_(), mode="bicubic", scale_factor=2.0, align_corners=False)
    return image, to_pil_image(doubled.squeeze(0)), graph


article_code(
    "C12",
    "a cat twice as large, bilinear; and bicubic, with a gradient",
    article_interpolates,
    right=lambda results: (
        results[1].size == tuple(2 * side for side in results[0].size) and results[2].requires_grad
    ),
)

# %% [markdown]
# ### Where in the forward pass?
#
# A segmentation network ends with 64 feature maps of 28 × 28. A 1 × 1 convolution makes 8 classes of them,
# and the result must be 112 × 112. Usually you see: enlarge, then convolve. Does the order matter?
#
# The convolution mixes channels at one pixel; the interpolation mixes pixels in one channel. Both are
# weighted sums, so they can be swapped. The bias stays right, because the weights of the interpolation add
# up to 1. How many times as fast is it to enlarge last, with the backward pass?

# %%
guess = ...


# %%
def enlarge_first(features, weight, bias):
    return F.conv2d(F.interpolate(features, scale_factor=4, mode="bilinear"), weight, bias)


def enlarge_last(features, weight, bias):
    return F.interpolate(F.conv2d(features, weight, bias), scale_factor=4, mode="bilinear")


def with_backward(head):
    return lambda *inputs: torch.autograd.grad(head(*inputs).sum(), inputs)


def features_and_head(generator, device, maps=64):
    shapes = (1, maps, 28, 28), (8, maps, 1, 1), (8,)
    return tuple(torch.randn(shape, generator=generator).to(device).requires_grad_() for shape in shapes)


compare(
    "64 maps of 28 × 28 to 8 classes of 112 × 112, with backward",
    {"enlarge, convolve": with_backward(enlarge_first), "convolve, enlarge": with_backward(enlarge_last)},
    inputs=features_and_head,
    guess=guess,
    because=["prices", without("more maps than classes", inputs=partial(features_and_head, maps=8))],
)

# %%
inputs = features_and_head(torch.Generator().manual_seed(0), "cpu")
assert torch.allclose(enlarge_first(*inputs), enlarge_last(*inputs), atol=1e-4)
for head in (enlarge_first, enlarge_last):
    print(head.__name__, costs(head, *inputs), sep="\n", end="\n\n")

# %% [markdown]
# **Why.** Enlarged first, 64 maps are enlarged instead of 8, and that takes most of the time: with 8 maps most of the
# difference is gone. (It has no price in the prediction, which sees the convolution: 64 × 8 multiplications for each
# pixel, of which there are 16 times as many.) The counts of operations are equal, the bytes are an eighth. (On an H200
# these maps are too small for it to show: 1.1×.)
#
# Shrinking may be swapped just as well: there, too, each pixel is a weighted sum, with weights that add up to 1.
#
# It is the same result only between *linear* operations. Put a ReLU between the two, and the order makes another model:

# %%
features = torch.randn(1, 64, 28, 28)
relu_last = F.interpolate(features, scale_factor=4, mode="bilinear").relu()
relu_first = F.interpolate(features.relu(), scale_factor=4, mode="bilinear")
print("largest difference with a ReLU:", round((relu_last - relu_first).abs().max().item(), 2))
assert not torch.allclose(relu_last, relu_first, atol=0.1)

# %% [markdown]
# ## 4. Smaller
#
# When you shrink a picture to a quarter of its width, one pixel of the result covers 4 × 4. Without
# `antialias`, which is the default, bilinear does not look at all of them. How many times as fast is it?

# %%
guess = ...

# %%
compare(
    "shrinking 4 pictures from 224 × 224 to 56 × 56",
    {
        "antialias=True": lambda x: F.interpolate(x, (56, 56), mode="bilinear", antialias=True),
        "antialias=False": lambda x: F.interpolate(x, (56, 56), mode="bilinear"),
    },
    inputs=(4, 3, 224, 224),
    guess=guess,
    differ="this is the question: what does the default leave out?",
)

# %% [markdown]
# What did the default leave out? Look at the gradient: a pixel whose gradient is zero has no influence at all. How
# many percent of the pixels have none, without `antialias`?

# %%
guess = ...

# %%
square = torch.rand(1, 1, 64, 64, requires_grad=True)
lost = {}
for antialias in (False, True):
    small = F.interpolate(square, (16, 16), mode="bilinear", antialias=antialias)
    (gradient,) = torch.autograd.grad(small.sum(), square)
    lost[antialias] = (gradient == 0).float().mean().item()
lines = (f"antialias={on!s:5}  pixels without influence: {share:.0%}" for on, share in lost.items())
guessed("percent of the pixels without influence", guess, 100 * lost[False], *lines)

# %% [markdown]
# Which pixels count, and how much? Interpolation is linear, so it can tell us itself. Give it a line that is 1 at
# one pixel and 0 elsewhere, and what comes out is the weight of that pixel in every pixel of the result. 16 such
# lines are the rows of an identity matrix. Here are all weights of a line of 16 pixels that shrinks to 4:

# %%
assert lost == {False: 0.75, True: 0}
lines = torch.eye(16)[:, None, None]
line_weights = {
    f"antialias={on}": F.interpolate(lines, (1, 4), mode="bilinear", antialias=on)[:, 0, 0].T
    for on in (False, True)
}
picture(*draw_weights(line_weights))

# %% [markdown]
# Bilinear still mixes the closest 2 × 2. In two dimensions half of the columns and half of the rows are lost: three
# quarters of the picture. (At a factor of 2, 2 × 2 are just enough. At larger factors pixels are lost.)
#
# With `antialias=True` the weights form a tent. It stands over the centre of the pixel of the result and reaches one
# *new* pixel far to each side. At the end of the line it is cut off. Then each row is divided by its sum. In code:


# %%
def tents(length, size):
    """The weights that make a line of `size` pixels of a line of `length` pixels."""
    scale = length / size  # one new pixel is so many old ones wide
    centres = (torch.arange(size) + 0.5) * scale
    distances = (torch.arange(length) + 0.5 - centres[:, None]).abs()
    weights = (1 - distances / max(scale, 1)).clamp(min=0)  # enlarging, it reaches one old pixel far
    return weights / weights.sum(1, keepdim=True)


assert torch.allclose(tents(16, 4), line_weights["antialias=True"])
cats = F.interpolate(cat, (64, 96), mode="bilinear", antialias=True)
by_matrices = tents(300, 64) @ cat @ tents(451, 96).T  # first the columns, then the rows
print("largest difference for the cat:", (by_matrices - cats).abs().max().item())
assert torch.allclose(by_matrices, cats, atol=1e-5)

# %% [markdown]
# So resizing is two products of matrices, one for the rows and one for the columns. `F.interpolate` knows that most
# weights are 0, and leaves them out. But a matrix is an ordinary tensor, and you can make any that you like. Which of
# the two is faster depends on the sizes: measure.
#
# How bad is it to lose pixels? In a photograph it may look like noise. In a regular texture you see patterns that are
# not there. Here are rings whose width shrinks from the middle to the edge, 512 × 512, shrunk to 128 × 128:

# %%
y, x = torch.meshgrid(torch.linspace(-1, 1, 512), torch.linspace(-1, 1, 512), indexing="ij")
rings = (0.5 + 0.5 * torch.cos(250 * (x * x + y * y)))[None, None]
shrunk = [F.interpolate(rings, (128, 128), mode="bilinear", antialias=on) for on in (False, True)]
shrunk = F.interpolate(torch.cat(shrunk), scale_factor=2)  # each pixel twice as large, to look at
picture(
    as_figure(make_grid(shrunk, padding=8, pad_value=1)),
    "Rings, shrunk. Left, without antialias: false rings around points where there are none. "
    "Right, with antialias: rings that are too fine fade into grey.",
)

# %% [markdown]
# So the faster way is no optimisation. It is another result. (And on an H200 both took the time of a launch.) When you
# shrink, set `antialias=True`. (`v2.Resize` does by default.)
#
# ### `align_corners` moves the pixels
#
# Four numbers, enlarged to eight:

# %%
ramp = torch.arange(4.0).view(1, 1, 1, 4)
for align in (False, True):
    line = F.interpolate(ramp, size=(1, 8), mode="bilinear", align_corners=align)
    print(f"align_corners={align!s:5}", [round(number, 2) for number in line.flatten().tolist()])

# %% [markdown]
# With `False`, a pixel is a small square, and the squares are cut in two. With `True`, a pixel is a point, and the first
# and last points stay where they are. In the middle of a picture both nearly agree; towards the edges they differ. Train
# with one and use the other, and masks no longer fit their pictures. `False` is the default, and what PIL does.

# %% [markdown]
# ## 5. Many pictures on one page
#
# You want to see what is in a batch. Plotting code makes one pair of axes for each picture. `make_grid` (*C13*) copies all
# pictures into one large picture. Both end in a PNG file of 266 × 266 pixels here. How many times as fast is the second?

# %%
guess = ...


# %%
def png_by_plotting(batch):
    figure = Figure(figsize=(2.66, 2.66), dpi=100)
    for axes, one in zip(figure.subplots(4, 4).flat, batch, strict=True):
        axes.imshow(one.permute(1, 2, 0).cpu())
        axes.axis("off")
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def png_by_grid(batch):
    file = io.BytesIO()
    to_pil_image(make_grid(batch, nrow=4, padding=2)).save(file, format="png")
    return file.getvalue()


compare(
    "16 pictures of 64 × 64 on a page of 266 × 266 as PNG",
    {"matplotlib, 16 axes": png_by_plotting, "make_grid": png_by_grid},
    inputs=(16, 3, 64, 64),
    guess=guess,
    differ="two files of the same pictures",
    only="cpu",
    seconds=1.5,
)
sixteen = torch.rand(16, 3, 64, 64)
for png in (png_by_plotting, png_by_grid):
    assert Image.open(io.BytesIO(png(sixteen))).size == (266, 266)

# %% [markdown]
# **Why.** `make_grid` needs one page and 16 copies. matplotlib makes 16 pairs of axes, and resamples every picture to
# the pixels of the figure. (Both times hold the compression of the PNG, too. What takes how much, the table does not say.)

# %%
print(grid := costs(make_grid, sixteen, nrow=4, padding=2))
assert grid.copies == 16

# %% [markdown]
# Now real pictures. They differ in size, and some are grey, so they must be made equal first.

# %%
files = sorted(data.glob("*/*"))
real = [v2.functional.to_image(Image.open(file).convert("RGB")) for file in files]
make_square = v2.Compose([v2.Resize(96), v2.CenterCrop(96)])
page = make_grid([make_square(one) for one in real], nrow=5, padding=4, pad_value=255)
print(len({one.shape for one in real}), "sizes → one page of", tuple(page.shape), page.dtype)
picture(
    as_figure(page),
    "Ten pictures in two rows of five: " + ", ".join(file.stem.replace("_", " ") for file in files) + ".",
)

# %% [markdown]
# `nrow` is the number of pictures *in* a row. And there is more that the name does not tell:

# %%
assert page.shape == (3, 2 * 100 + 4, 5 * 100 + 4)
assert make_grid(torch.rand(3, 3, 8, 8), nrow=8, padding=0).shape == (3, 8, 24)  # no wider than needed
assert make_grid(torch.rand(4, 1, 8, 8)).shape[0] == 3  # grey becomes colour, three times the memory
assert make_grid(torch.rand(1, 3, 8, 8), padding=2).shape == (3, 8, 8)  # a single picture gets no frame
assert not make_grid(torch.rand(4, 3, 8, 8, requires_grad=True)).requires_grad  # it is for looking only
behaviour(
    "C13",
    "make_grid puts ten pictures on one page of the same type, five in a row.",
    page.dtype == torch.uint8
    and page.shape == (3, 204, 504)
    and torch.equal(page[:, 104:200, 404:500], make_square(real[9])),
)


# %%
def article_grid():
    image = Image.open(data / "cat" / "chelsea.jpg")
    return image, to_pil_image(make_grid([to_tensor(i) for i in [image, image, image]], nrow=2, padding=5))


article_code(
    "C13",
    "three cats, two in a row, with a frame of 5",
    article_grid,
    right=lambda pair: pair[1].size == tuple(2 * (side + 5) + 5 for side in pair[0].size),
)

# %% [markdown]
# ### A thousand tiny pictures
#
# `make_grid` is a loop: one copy and three views for each picture. A thousand pictures of 8 × 8 are a
# small page, but a long loop. Here is the same page by hand. Add a frame on two sides of every picture, cut
# the batch dimension into rows and columns, swap dimensions, and copy all of it once more. What does
# that save most: `"calls"`, `"bytes"` or `"arithmetic"`?

# %%
guess = ...


# %%
def page_by_hand(batch, columns, gap):
    rows = len(batch) // columns
    framed = F.pad(batch, (gap, 0, gap, 0))  # left and above
    c, h, w = framed.shape[1:]
    page = framed.view(rows, columns, c, h, w).permute(2, 0, 3, 1, 4).reshape(c, rows * h, columns * w)
    return F.pad(page, (0, gap, 0, gap))  # right and below, once for the page


compare(
    "a page of 1,000 pictures of 3 × 8 × 8",
    {
        "make_grid": lambda batch: make_grid(batch, nrow=40, padding=1),
        "by hand": lambda batch: page_by_hand(batch, 40, 1),
    },
    inputs=(1000, 3, 8, 8),
    guess=guess,
    because="prices",
)

# %%
tiny = torch.rand(1000, 3, 8, 8)
assert torch.equal(make_grid(tiny, nrow=40, padding=1), page_by_hand(tiny, 40, 1))
print("make_grid", costs(make_grid, tiny, nrow=40, padding=1), sep="\n", end="\n\n")
print("by hand", costs(page_by_hand, tiny, 40, 1), sep="\n")

# %% [markdown]
# **Why.** By hand, more bytes are moved. But a thousand small calls cost more. On a GPU, each of them is a kernel
# launch. (`page_by_hand` needs full rows.)

# %% [markdown]
# ## 6. Back to bytes
#
# `to_pil_image` multiplies a float picture by 255 and converts to `uint8`. Which byte does it make of 1.01, which is
# a little more than white?

# %%
guess = ...

# %%
as_byte = {value: np.asarray(to_pil_image(torch.full((1, 1, 1), value))).item() for value in (0.5, 1.0, 1.01)}
guessed("the byte of 1.01", guess, as_byte[1.01], *(f"{value} → {byte}" for value, byte in as_byte.items()))

# %% [markdown]
# White becomes black: here, the number wraps around. (And 0.5 becomes 127: it cuts off, it does not round.) What a
# number outside the range becomes is not defined, so another processor may give another one.
#
# Who makes such values? Bicubic does. Some of its weights are negative, so it shoots over at sharp edges. A white
# bar on black, enlarged, left as it is and right clamped first:

# %%
bar = torch.zeros(1, 1, 12, 12)
bar[..., 3:9, 4:8] = 1
enlarged = F.interpolate(bar, scale_factor=10, mode="bicubic")[0]
print("values from", round(enlarged.min().item(), 3), "to", round(enlarged.max().item(), 3))
pair = [v2.functional.pil_to_tensor(to_pil_image(one)) for one in (enlarged, enlarged.clamp(0, 1))]
picture(
    as_figure(make_grid(pair, padding=8, pad_value=128)),
    "A white bar on black, twice. Left: bright and dark bands along the edges, where values wrapped around. "
    "Right: clamped first, a clean bar with soft edges.",
)

# %% [markdown]
# So `clamp(0, 1)` first, whoever converts: `v2.ToDtype(torch.uint8, scale=True)` does not clamp either.

# %%
print("1.01 →", v2.functional.to_dtype(torch.tensor([1.01]), torch.uint8, scale=True).item())

# %% [markdown]
# ## 7. Transforms on a whole batch
#
# The transforms of `torchvision.transforms.v2` take PIL pictures, tensors, and batches of tensors. 64 small
# pictures, one by one or in one go: how many times as fast is the batch?

# %%
guess = ...

# %%
augment = v2.Compose(
    [
        v2.RandomCrop(28),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.2]),
    ]
)


def byte_batch(count, size):
    return lambda generator, device: torch.randint(
        256, (count, 3, size, size), generator=generator, dtype=torch.uint8
    ).to(device)


compare(
    "crop, flip, convert and normalise 64 pictures of 32 × 32",
    {
        "one by one": lambda batch: torch.stack([augment(one) for one in batch]),
        "the batch at once": lambda batch: augment(batch),
    },
    inputs=byte_batch(64, 32),
    guess=guess,
    differ="random numbers",
    because="prices",
)

# %% [markdown]
# **Why.** Each transform is some Python (which has no price) and a few operations, for one picture as for 64.
#
# Now give it a batch of 64 *equal* pictures. Crop and flip are random: there are 5 × 5 places and 2 directions. How
# many different results come out in one go?

# %%
guess = ...

# %%
equal = torch.randint(256, (1, 3, 32, 32), dtype=torch.uint8).repeat(64, 1, 1, 1)
one_by_one = torch.stack([augment(one) for one in equal])
at_once = augment(equal)
alone = f"different results, one by one: {len(one_by_one.unique(dim=0))}"
guessed("different results in one go", guess, len(at_once.unique(dim=0)), alone)

# %% [markdown]
# A random transform draws once for each *call*. The whole batch is cropped at the same place and flipped, or not,
# together. That is weaker augmentation, and no test of speed tells you. So: random transforms for each picture,
# the rest (`ToDtype`, `Normalize`, `Resize`) for the batch. Or draw one number for each picture yourself:

# %%
assert len(at_once.unique(dim=0)) == 1 < len(one_by_one.unique(dim=0))
flip = torch.rand(len(equal)) < 0.5
flipped = torch.where(flip[:, None, None, None], equal.flip(-1), equal)
print("different results:", len(flipped.unique(dim=0)))
assert all(torch.equal(flipped[i], equal[i].flip(-1) if flip[i] else equal[i]) for i in range(64))

# %% [markdown]
# ### Bytes or floats?
#
# Where in the list of transforms does `ToDtype` belong? Two candidates: flipping, and changing the
# brightness. How many times as fast as with `float32` is flipping with `uint8`?

# %%
guess = ...


# %%
def bytes_and_floats(generator, device):
    batch = byte_batch(16, 128)(generator, device)
    return batch, batch / 255


compare(
    "flipping 16 pictures of 128 × 128",
    {
        "float32": lambda uint8, floats: v2.functional.horizontal_flip(floats),
        "uint8": lambda uint8, floats: v2.functional.horizontal_flip(uint8),
    },
    inputs=bytes_and_floats,
    guess=guess,
    differ="bytes or floats",
    because="prices",
)

# %% [markdown]
# **Why.** A flip only moves bytes, and `uint8` has a quarter of them. (On an H200 both took 10 µs, a launch.) And how
# many times as fast as with `float32` is brightness with `uint8`?

# %%
guess = ...

# %%
compare(
    "brightness of 16 pictures of 128 × 128",
    {
        "float32": lambda uint8, floats: v2.functional.adjust_brightness(floats, 1.3),
        "uint8": lambda uint8, floats: v2.functional.adjust_brightness(uint8, 1.3),
    },
    inputs=bytes_and_floats,
    guess=guess,
    differ="bytes or floats",
)

# %%
batch, floats = bytes_and_floats(torch.Generator().manual_seed(0), "cpu")
print("uint8", costs(v2.functional.adjust_brightness, batch, 1.3), sep="\n", end="\n\n")
print("float32", costs(v2.functional.adjust_brightness, floats, 1.3), sep="\n")
assert costs(v2.functional.adjust_brightness, batch, 1.3).copies == 1

# %% [markdown]
# **Why.** Brightness computes. The product is made in `float32`, clamped, and converted back: one step more each time.
#
# So: move and resize in bytes; convert once; compute in floats.
#
# Look at the counts for `uint8` once more: no conversion *before* the product is among them. An operation takes bytes
# and a float as they are, and gives floats; no tensor of converted bytes comes out before. How much new memory does
# that save, in tensors that come out of operations? (This is what `costs` counts. A CPU kernel may use memory of its
# own inside, for the same conversion.)

# %%
batch = byte_batch(16, 128)(torch.Generator().manual_seed(0), "cpu")
ways = {
    "batch.float() / 255": lambda: batch.float() / 255,
    "batch / 255": lambda: batch / 255,
    "batch.float().div_(255)": lambda: batch.float().div_(255),
}
for name, way in ways.items():
    print(f"{name:24} at most {costs(way).peak_bytes / batch.numel():.0f} new bytes at once for each byte")
    assert torch.equal(way(), batch.float() / 255)

# %% [markdown]
# ## Further
#
# You can skip this part. It is for those who found resizing in a profile, or who want to know why bilinear was not
# four times as fast as bicubic in section 1.
#
# ### `antialias` where nothing is lost
#
# When you enlarge, there is nothing to average. How many times as fast is bicubic *with* `antialias`, compared to without?

# %%
guess = ...

# %%
compare(
    "doubling 4 pictures of 3 × 128 × 128, with and without antialias",
    {
        "antialias=False": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
        "antialias=True": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic", antialias=True),
    },
    inputs=(4, 3, 128, 128),
    guess=guess,
    differ="other cubic weights",
)

# %% [markdown]
# On the CPU, the variant with *more* duties is the faster one. (On an H200 it is the slower one: 23 µs against 17.) As
# with the two matrices of section 4, it works along one direction first and then along the other: 4 + 4 products instead
# of 16. And the results differ: each uses cubic weights of its own. Only with `antialias=True` they are those of PIL.

# %%
x = torch.rand(32, 32)
of_pil = torch.from_numpy(np.array(Image.fromarray(x.numpy()).resize((64, 64), Image.Resampling.BICUBIC)))
for antialias in (False, True):
    of_torch = F.interpolate(x[None, None], scale_factor=2, mode="bicubic", antialias=antialias)[0, 0]
    difference = (of_torch - of_pil).abs().max().item()
    print(f"antialias={antialias!s:5}  largest difference to PIL: {difference:.6f}")
assert difference < 1e-5

# %% [markdown]
# ### A strange number of channels
#
# Decoded pictures have their channels last in memory (chapter 06), and chapter 06 found that bilinear upsampling of
# 64 channels is several times as fast in channels_last. Now bicubic, three channels: how many times as fast as in
# the default format is channels_last?

# %%
guess = ...


# %%
def both_formats(generator, device):
    batch = torch.rand(4, 3, 112, 112, generator=generator).to(device)
    return batch, batch.to(memory_format=torch.channels_last)


compare(
    "bicubic, 4 colour pictures of 112 × 112 doubled",
    {
        "default": lambda default, last: F.interpolate(default, scale_factor=2, mode="bicubic"),
        "channels_last": lambda default, last: F.interpolate(last, scale_factor=2, mode="bicubic"),
    },
    inputs=both_formats,
    guess=guess,
)

# %% [markdown]
# On the CPUs that we tried it is slower, on an H200 there is no difference. So a memory format is no advice without a
# mode and a number of channels.
#
# Now the suspicion of section 1. Here is bilinear with three channels, and with a fourth that nobody needs. The third
# variant says: 8 colour pictures are 24 grey pictures. `view` costs nothing. How many times as fast as the first is it?

# %%
guess = ...


# %%
def double(batch):
    return F.interpolate(batch, scale_factor=2, mode="bilinear")


def double_as_grey(batch):
    n, c, h, w = batch.shape
    return double(batch.view(n * c, 1, h, w)).view(n, c, 2 * h, 2 * w)


def three_and_four(generator, device):
    batch = torch.rand(8, 4, 112, 112, generator=generator).to(device)
    return batch[:, :3].contiguous(), batch


compare(
    "bilinear, 8 pictures of 112 × 112 doubled",
    {
        "3 channels": lambda three, four: double(three),
        "4 channels, one for nothing": lambda three, four: double(four),
        "3 channels as grey pictures": lambda three, four: double_as_grey(three),
    },
    inputs=three_and_four,
    guess=guess,
    differ="four channels give four channels",
)
three = torch.rand(2, 3, 100, 100)
torch.testing.assert_close(double_as_grey(three), double(three))

# %% [markdown]
# With this version of torch on one thread of a CPU, three channels take *longer* than four. The same numbers,
# seen as grey pictures, are doubled in about half to two thirds of the time. The result is equal, up to rounding.
#
# So section 1 said less about bicubic than about bilinear with three channels. Here are as many numbers as there, as 12 grey pictures. How
# many times as fast as bicubic is bilinear now?

# %%
guess = ...

# %%
compare(
    "doubling 12 grey pictures of 128 × 128",
    {
        mode: lambda x, mode=mode: F.interpolate(x, scale_factor=2, mode=mode)
        for mode in ("bicubic", "bilinear")
    },
    inputs=(12, 1, 128, 128),
    guess=guess,
    differ="another mode",
)

# %% [markdown]
# On a CPU it is now about 4, as the count of products says. Nothing in the documentation tells you to go this way, and
# the next version may mend it. With more threads another code may run: measure there, too. On an H200 the trick loses
# (13 µs against 10). And it needs the default order: a channels_last batch cannot be viewed like this.

# %%
try:
    double_as_grey(three.to(memory_format=torch.channels_last))
except RuntimeError as error:
    print("view raises:", str(error).split(" (")[0])

# %% [markdown]
# ### When to make bytes
#
# 16 pictures of 128 × 128 are there as `float32` and as `uint8`. A page of the first is converted to bytes at the end.
# How many times as fast is a page of the second?

# %%
guess = ...

# %%
compare(
    "a page of 16 pictures of 128 × 128 to PIL",
    {
        "float32": lambda uint8, floats: to_pil_image(make_grid(floats)),
        "uint8": lambda uint8, floats: to_pil_image(make_grid(uint8)),
    },
    inputs=bytes_and_floats,
    guess=guess,
    because="prices",
)

# %% [markdown]
# **Why.** A quarter of the bytes in the grid, and no multiplication and conversion afterwards. (Who has only the floats
# must convert them first: the pictures then, in place of the page.) Predicted is more, because both ways go into PIL,
# which has no price.

# %%
print(f"float32: {costs(make_grid, floats).bytes:,} bytes    uint8: {costs(make_grid, batch).bytes:,} bytes")

# %% [markdown]
# ### Large pictures, and a transform with real work
#
# A Gaussian blur of 16 pictures of 128 × 128. How many times as fast as one by one is the batch?

# %%
guess = ...

# %%
blurred = compare(
    "Gaussian blur of 16 float pictures of 128 × 128",
    {
        "one by one": lambda batch: torch.stack([v2.functional.gaussian_blur(p, [5, 5]) for p in batch]),
        "the batch at once": lambda batch: v2.functional.gaussian_blur(batch, [5, 5]),
    },
    inputs=(16, 3, 128, 128),
    guess=guess,
    because="page faults",
)

# %% [markdown]
# Here the work is in the pixels, so on a CPU a batch has little to gain. (On an H200 it is 18 times as fast: the
# launches are those of one picture.) On a CPU it may even be slower, as memory has its say. A tensor of one picture has
# 0.2 MB and may stay in a cache from one step of the blur to the next; a tensor of 16 has 3 MB. And large blocks of
# memory are often given back to the system after each call. Then every page of them must be set up anew: page faults
# (chapter 00; chapter 13 returns to them). Whether that happened here can be counted. Where the batch is slower without
# page faults, suspect the caches. Against both, try a few pictures at a time.

# %%
for name, blocks in blurred.samples["cpu"].blocks.items():
    faults = median(block.faults / block.calls for block in blocks)
    print(f"{name}: {faults:,.0f} page faults for each call, on the CPU")

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** measure from the file to the network. Predict from pixels, bytes and calls. The cause is
# pixels at a size that nobody needs, bytes of `float32`, or calls for each picture. Take one away; look at the result.
#
# | question | answer |
# |---|---|
# | Resize inside a model? | `F.interpolate` for the whole batch; PIL cuts the gradient, and has 256 steps |
# | Is PIL slower then? | hardly, for PIL pictures that must shrink; a `uint8` batch is best resized as it is |
# | Where to enlarge? | last, or at least where there are few channels; swapping is exact between linear operations |
# | Shrinking? | `antialias=True`; without it, at a factor of 4, most pixels have no influence |
# | What is resizing? | two matrices of weights, one for rows and one for columns |
# | `align_corners`? | it moves the pixels; use the same in training and afterwards |
# | Look at a batch? | `make_grid`, in `uint8`; `clamp(0, 1)` before converting to bytes |
# | Thousands of tiny pictures? | `view`, `permute`, one copy |
# | Transforms on a batch? | many times as fast for small pictures or on a GPU; on a CPU maybe slower for large ones; random ones draw once for all |
# | Where to convert to float? | after cropping, flipping and resizing, before computing; an operation converts by itself |

# %%
verdicts("C12", "C13")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/12_images/12_images.ipynb). Five of them: a page, a
# picture for a network, a head, a training step's pictures, and a tool that cuts out and resizes.
