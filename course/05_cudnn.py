# %% [markdown]
# # 05 · cuDNN: search once, or repeat exactly
#
# On NVIDIA GPUs, most convolutions run in a library called cuDNN. It knows several algorithms for the same
# convolution. Two switches decide which one you get: `benchmark` and `deterministic`. One asks for speed, the
# other for the same bits each time.
#
# IDs such as *D2* are claims of five widely read articles, listed in [the score](claims.ipynb). `compare`, which
# times, is explained in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - say what `cudnn.benchmark = True` searches, and show on a model what a search costs and when it pays,
# - make a training run repeat bit for bit, and say what that does not promise,
# - stop a run and go on later as if nothing had happened,
# - name the default precision of convolutions and matrix products on a GPU.
#
# **Time:** 50 minutes to read and run, and 15 more for the part *Further*, which is for those who have an NVIDIA GPU.
# **Needs:** CPU. The switches act on NVIDIA GPUs: *Further* times them. The main part runs models of them on the CPU.
#
# **Claims tested:** *A5*, *D2* "`benchmark = True` pays off when shapes stay fixed"; *D1* what cuDNN speeds up; *D3*
# "with changing sizes, leave it off"; *D4* "`deterministic = True` gives the same result each run, and may cost
# speed"; *D5* "also switch `benchmark` off and seed everything"; *D6* "determinism across machines is not promised".

# %%
import copy
import io
import os
import pickle
import random
import subprocess
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from parts.convolving import Convolving
from parts.inputs import tensors
from torch.utils.data import DataLoader, TensorDataset

from autograder import behaviour, compare, documented, guessed, published, recall, verdicts

gpu = torch.cuda.is_available()
REPRODUCIBILITY = "https://docs.pytorch.org/docs/stable/notes/randomness.html"
print("cuDNN here:", torch.backends.cudnn.version() if gpu else "no NVIDIA GPU")
print("its counterpart for CPUs, oneDNN:", "yes" if torch.backends.mkldnn.is_available() else "no")
recall("05", ..., ..., ...)

# %% [markdown]
# ## 1. What such a library is worth
#
# cuDNN holds tuned code for convolution, pooling, normalisation, activation and recurrent networks. PyTorch has
# a plain version of a convolution too, and uses it when the library is switched off. On the CPU, oneDNN has the
# same place as cuDNN on the GPU. How many times faster is a convolution with the library?

# %%
guess = ...


# %%
def with_library(on, layer, *inputs):
    """``layer(*inputs)`` with cuDNN and oneDNN switched on or off; float32 stays float32."""
    torch.backends.mkldnn.enabled = on
    try:
        with torch.backends.cudnn.flags(enabled=on, allow_tf32=False):
            return layer(*inputs)
    finally:
        torch.backends.mkldnn.enabled = True


def convolve(images, weight):
    return F.conv2d(images, weight, padding=1)


def some_images(generator, device):
    return torch.rand(4 if device == "cpu" else 256, 32, 56, 56, generator=generator).to(device)


def some_images_and_weight(generator, device):
    images = some_images(generator, device)
    return images, torch.rand(32, 32, 3, 3, generator=generator).to(device)


compare(
    "a 3 × 3 convolution without and with the library",
    {
        "without": lambda images, weight: with_library(False, convolve, images, weight),
        "with": lambda images, weight: with_library(True, convolve, images, weight),
    },
    inputs=some_images_and_weight,
    guess=guess,
    claim="D1",
)
published("D1", guess)

# %% [markdown]
# A convolution of 4 pictures is 116 million multiplications and as many additions. (A GPU gets 256 pictures: 4 take it
# less time than the switch takes Python.) A library can arrange them so that a number that was loaded is used many
# times. The claim is about cuDNN, so only the row of a GPU counts for it, where there is one; on the CPU you see what
# oneDNN is worth. Below it stands [what others published](../docs/published.md) on the claim.
#
# What about max-pooling, which has hardly any arithmetic? How many times as fast is it with the library? (1: as fast.)

# %%
guess = ...


# %%
def pool(images):
    return F.max_pool2d(images, 2)


compare(
    "max-pooling with the library switched off and on",
    {
        "off": lambda images: with_library(False, pool, images),
        "on": lambda images: with_library(True, pool, images),
    },
    inputs=some_images,
    guess=guess,
    claim="D1",
)

# %% [markdown]
# The switch changes nothing, on a CPU or on an H200: PyTorch calls its own code for max-pooling either way. A library
# helps where it is called.

# %% [markdown]
# ## 2. Several algorithms for one convolution
#
# What is there to search? We can see it on any machine, because a convolution can be computed in several ways:
#
# - **direct**: one call of `F.conv2d`; how it computes is up to the library of section 1,
# - **matrix product**: copy all patches into a large matrix (`F.unfold`), then multiply once,
# - **FFT**: transform picture and kernel, multiply, transform back.
#
# All three give the same numbers, up to rounding.


# %%
def direct(images, weight):
    return F.conv2d(images, weight, padding=weight.shape[-1] // 2)


def matrix_product(images, weight):
    n, _, height, width = images.shape
    patches = F.unfold(images, weight.shape[-1], padding=weight.shape[-1] // 2)
    return (weight.flatten(1) @ patches).view(n, len(weight), height, width)


def fft(images, weight):
    height, width = images.shape[-2:]
    size = weight.shape[-1]
    room = (height + size - 1, width + size - 1)
    spectrum = torch.einsum(
        "nchw,ochw->nohw", torch.fft.rfft2(images, room), torch.fft.rfft2(weight.flip(-1, -2), room)
    )
    half = size // 2
    return torch.fft.irfft2(spectrum, room)[..., half : half + height, half : half + width]


images, weight = torch.rand(1, 4, 32, 32), torch.rand(4, 4, 5, 5)
for algorithm in (matrix_product, fft):
    assert torch.allclose(direct(images, weight), algorithm(images, weight), rtol=1e-4)

# %% [markdown]
# Which one is the fastest? First a small kernel, 3 × 3. The guess is for the last row: how many times as fast as FFT
# is the direct way?

# %%
guess = ...


# %%
compare(
    "three algorithms for a 3 × 3 kernel",
    {"FFT": fft, "matrix product": matrix_product, "direct": direct},
    inputs=tensors((1, 16, 64, 64), (16, 16, 3, 3)),
    guess=guess,
    differ="each rounds in its own way",
)

# %% [markdown]
# And a large kernel, 31 × 31: how many times as fast as FFT is direct? (Above 1: faster, below 1: slower.)

# %%
guess = ...

# %%
compare(
    "three algorithms for a 31 × 31 kernel",
    {"FFT": fft, "matrix product": matrix_product, "direct": direct},
    inputs=tensors((1, 2, 96, 96), (2, 2, 31, 31)),
    guess=guess,
    differ="each rounds in its own way",
    seconds=0.5,
)

# %% [markdown]
# On the CPU, FFT was the slowest, and is now the fastest. (On an H200 *direct* stays ahead, by 1.4× instead of 12×.) No
# algorithm is the best for all shapes. (Written out, 31 × 31 means 961 multiplications for each output and channel. The
# matrix product first copies a pixel up to 961 times. The FFT's arrays, of size `room`, grow much less.)
#
# So there are two ways to choose: by a rule of thumb, or by trying. Trying is what `benchmark = True` does. At the
# first call of a configuration, torch lets cuDNN run several algorithms, and keeps the fastest. A configuration is
# everything that matters: shapes of input and weight, stride, padding, dtype, layout, device.

# %%
print("benchmark:      ", torch.backends.cudnn.benchmark, "(the default)")
print("benchmark_limit:", torch.backends.cudnn.benchmark_limit, "(at most so many are tried; 0: all)")

# %% [markdown]
# ## 3. What the search costs
#
# Here is the search in miniature. It runs on any device. A real one may try more algorithms, and each more than once.


# %%
class SearchingConv:
    """Try two algorithms at the first call of a configuration; then use the faster one."""

    def __init__(self):
        self.chosen = {}
        self.searches = 0

    def __call__(self, images, weight):
        key = (tuple(images.shape), tuple(weight.shape), images.dtype, images.device)
        if key not in self.chosen:
            self.searches += 1
            self.chosen[key] = min((direct, fft), key=lambda way: self.time(way, images, weight))
        return self.chosen[key](images, weight)

    @staticmethod
    def time(way, images, weight):
        way(images, weight)  # warm up
        if images.is_cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        way(images, weight)
        if images.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - start


# %% [markdown]
# Twelve pictures of the same size, with a 31 × 31 kernel. The search runs once. Is it worth it? The guess is: how many
# times as fast as always *direct* is the searching version, search included?

# %%
guess = ...


# %%
def convolve_all(convolve, seed, device, sizes):
    generator = torch.Generator().manual_seed(seed)
    kernel = torch.rand(4, 4, 31, 31, generator=generator).to(device)
    for size in sizes:
        convolve(torch.rand(1, 4, size, size, generator=generator).to(device), kernel)


def seed_and_device(generator, device):
    return int(torch.randint(1000, (), generator=generator)), device


FIXED = [96] * 12
CHANGING = list(range(85, 97))

compare(
    "12 pictures of one size: no search, or search",
    {
        "direct": lambda seed, device: convolve_all(direct, seed, device, FIXED),
        "search, then the best": lambda seed, device: convolve_all(SearchingConv(), seed, device, FIXED),
    },
    inputs=seed_and_device,
    guess=guess,
    seconds=0.5,
)

# %% [markdown]
# Does an interval reach below 1? This search tries each way only once. If something disturbs that one try, it may
# keep the slow way, and then the tries come on top of it. On an H200 the search loses, 0.73×: *direct* is probably the
# faster way there anyway, as in the table before.
#
# And twelve pictures of twelve different sizes? Here the search is the baseline: how many times as fast is *direct*?

# %%
guess = ...

# %%
compare(
    "12 pictures of 12 sizes: no search, or search",
    {
        "search, then the best": lambda seed, device: convolve_all(SearchingConv(), seed, device, CHANGING),
        "direct": lambda seed, device: convolve_all(direct, seed, device, CHANGING),
    },
    inputs=seed_and_device,
    guess=guess,
    seconds=0.5,
)

# %%
for name, sizes in (("one size", FIXED), ("12 sizes", CHANGING)):
    searching = SearchingConv()
    convolve_all(searching, 0, "cpu", sizes)
    print(f"{name}: searches: {searching.searches}")

# %% [markdown]
# With changing sizes every picture pays for a search and uses its result once. A search costs at least one run of
# every algorithm, the slow ones too. One article calls `benchmark` a great help with *varying* sizes in its
# introduction. Later it says the opposite: each new size is searched again, which costs time. So says this model.
#
# What to do when sizes vary, but not much? Pad them to a few sizes. Then there are only a few searches.
#
# One thing is easy to get wrong with the real switch. The algorithm that a search has found is used for the rest of
# the process, says the [documentation](https://docs.pytorch.org/docs/stable/notes/randomness.html). A plan made
# *without* a search is kept, too, says PyTorch's source (`Conv_v8.cpp`), and no search follows; no cell here shows it.
# So **set `benchmark` before the first call**. The part *Further* times the real switch.

# %% [markdown]
# ## 4. The same bits again
#
# Floating-point addition is not associative. Another order of summation gives other last bits:

# %%
print((0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3))
assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)

# %% [markdown]
# That is the main cause of results that do not repeat. GPU kernels that let thousands of threads add to the same
# place (`scatter_add`, `index_add`, some backward passes) add in the order in which the threads arrive. It may
# differ from run to run. Below, on the CPU, two equal calls agree, and we change the order by hand.

# %%
groups, values = torch.randint(100, (100_000,)), torch.rand(100_000)
for add in (torch.index_add, torch.scatter_add):
    once, again = (add(torch.zeros(100), 0, groups, values) for _ in range(2))
    assert torch.equal(once, again)

order = torch.randperm(100_000)
shuffled = torch.zeros(100).index_add_(0, groups[order], values[order])
assert torch.allclose(once, shuffled)
print("sums with other bits in another order:", (once != shuffled).sum().item(), "of 100")

# %% [markdown]
# Summing in `float64` and rounding once at the end makes the order matter far less: what is lost lies below the last
# bits of `float32`. And whole numbers lose nothing, as long as the sum has room in the type: their sum has no order.


# %%
def sum_wide(groups, values):
    return torch.zeros(100, dtype=torch.float64).index_add_(0, groups, values.double()).float()


wide, wide_shuffled = sum_wide(groups, values), sum_wide(groups[order], values[order])
print("summed in float64, sums with other bits:", (wide != wide_shuffled).sum().item(), "of 100")

whole = torch.randint(-(2**45), 2**45, (100_000,))
sums = [torch.zeros(100).long().index_add_(0, groups[i], whole[i]) for i in (slice(None), order)]
assert torch.equal(*sums)

# %% [markdown]
# There are two switches:
#
# 1. `torch.backends.cudnn.deterministic = True`: cuDNN may use only algorithms that repeat. It covers cuDNN and
#    nothing else.
# 2. `torch.use_deterministic_algorithms(True)`: covers all of PyTorch. Where there is a deterministic form, it is used;
#    an operation that has none raises an error, so that nothing slips through.
#
# The claim is about the first one. What it covers, no CPU can show. The documentation says it; *Further* tries it on
# a GPU.

# %%
documented(
    "D4",
    "With cudnn.deterministic, cuDNN takes algorithms that repeat; it controls nothing else.",
    REPRODUCIBILITY,
)

# %% [markdown]
# The second switch works on the CPU too, and catches what is undefined. `put_` is such a case. If the index holds a
# position twice, which value wins? Torch does not look at the index: with the switch it refuses `put_` altogether.
# The first switch does not mind.


# %%
def put_twice():
    return torch.zeros(4).put_(torch.tensor([1, 1]), torch.tensor([5.0, 6.0]))


with torch.backends.cudnn.flags(enabled=True, deterministic=True):
    put_twice()
torch.use_deterministic_algorithms(True)
try:
    put_twice()
except RuntimeError as error:
    print("RuntimeError:", str(error).split(",")[0])
finally:
    torch.use_deterministic_algorithms(False)

# %% [markdown]
# ### The price
#
# "May cost speed", the claim says. What the first switch costs, only a GPU can show (*Further*). The second also acts
# on `torch.empty`. A hundred times a million numbers: how many times as fast is `empty` without the switch?

# %%
guess = ...


# %%
def repeated(deterministic, times, function):
    """Call ``function`` several times in a row, the switch set once for all of them."""

    def run(*inputs):
        torch.use_deterministic_algorithms(deterministic)
        try:
            for _ in range(times):
                result = function(*inputs)
        finally:
            torch.use_deterministic_algorithms(False)
        return result

    return run


def new_memory(device):
    return torch.empty(1_000_000, device=device)


compare(
    "empty memory, 100 times, with and without deterministic algorithms",
    {"deterministic": repeated(True, 100, new_memory), "not": repeated(False, 100, new_memory)},
    guess=guess,
    differ="memory that nobody wrote to",
)
print("fill_uninitialized_memory:", torch.utils.deterministic.fill_uninitialized_memory, "(the default)")

# %% [markdown]
# The switch fills new memory with NaN, so that a forgotten element shows. Memory that nobody writes to costs hardly
# anything, so this is slower by far. (By 3.3× only on an H200, where the fill is hardly more than a launch.) If you
# want the switch and not the filling, set `torch.utils.deterministic.fill_uninitialized_memory = False`.
#
# And an operation that works, such as a sum by groups? How many times as fast is it without the switch?

# %%
guess = ...


# %%
def sums_by_group(groups, values):
    return torch.zeros(100, device=values.device).index_add_(0, groups, values)


def groups_and_values(generator, device):
    groups = torch.randint(100, (100_000,), generator=generator)
    return groups.to(device), torch.rand(100_000, generator=generator).to(device)


compare(
    "sums by group, 10 times, with and without deterministic algorithms",
    {"deterministic": repeated(True, 10, sums_by_group), "not": repeated(False, 10, sums_by_group)},
    inputs=groups_and_values,
    guess=guess,
)

# %% [markdown]
# On the CPU the times agree: these sums repeat anyway. On a GPU the switch chooses another form ([its
# documentation](https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html)), which takes
# nearly 10 times as long on an H200.

# %% [markdown]
# ## 5. Seed everything
#
# Equal algorithms are half of it. The other half is equal random numbers. Python, NumPy and torch each have a global
# generator. A small training run draws from all three: pictures from NumPy, labels from Python, weights, order and
# dropout from torch. One of the three seeds may be forgotten. In how many of the three cases does the run repeat?

# %%
guess = ...


# %%
SEEDS = {
    "Python": random.seed,
    "NumPy": np.random.seed,
    "torch": torch.manual_seed,  # the CPU and all GPUs
}


def train(seed, without=None, steps=20):
    for name, set_seed in SEEDS.items():
        if name != without:
            set_seed(seed)
    pictures = torch.tensor(np.random.rand(256, 1, 8, 8), dtype=torch.float32)
    labels = torch.tensor([random.randrange(10) for _ in range(256)])
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(288, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(pictures, labels), batch_size=64, shuffle=True)
    losses = []
    while len(losses) < steps:
        for batch, target in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses[:steps]


once, again = train(seed=1)[-1], train(seed=1)[-1]
losses = {name: train(seed=1, without=name)[-1] for name in SEEDS}
guessed(
    "runs of three that repeat with a seed forgotten",
    guess,
    sum(loss == once for loss in losses.values()),
    f"loss after 20 steps: {once}, and once more: {again}",
    *(f"without a seed for {name}: {loss}" for name, loss in losses.items()),
)

# %%
behaviour(
    "D5",
    "With all generators seeded a training run repeats to the last bit; without any one of the seeds it does not.",
    train(seed=1) == train(seed=1) and all(train(seed=1) != train(seed=1, without=name) for name in SEEDS),
)
documented(
    "D5", "With benchmark = False, cuDNN's algorithms are chosen in the same way each time.", REPRODUCIBILITY
)

# %% [markdown]
# In none of the three cases: each seed counts. `benchmark` belongs to it as well: the search takes times, times differ
# from run to run, so two runs may choose two algorithms, and these round differently. For a run that must repeat,
# switch it off. (Only a GPU could show that.)
#
# The loader shuffles with torch's global generator, and gives each worker process a seed of its own, derived from
# it. If other code also draws from the global generator, the order changes. Its own generator keeps the loader apart:


# %%
def first_batches(extra_draw, own_generator):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0) if own_generator else None
    loader = DataLoader(TensorDataset(torch.arange(1000)), batch_size=10, shuffle=True, generator=generator)
    if extra_draw:
        torch.rand(1)
    return [batch[0].tolist() for batch in loader]


assert first_batches(False, own_generator=False) != first_batches(True, own_generator=False)
assert first_batches(False, own_generator=True) == first_batches(True, own_generator=True)

# %% [markdown]
# And the worker processes? For torch and Python, each gets the loader's seed plus its own number; for NumPy, a seed
# that is computed from both. So random numbers in workers repeat too, if the loader's generator is seeded. But item 5
# is made by another worker when there are more of them. Does it get the same numbers? Guess: with two workers instead
# of one, how many of the eight items keep their numbers?

# %%
guess = ...


# %%
class Draws(torch.utils.data.Dataset):
    """Every item is three random numbers, drawn in the worker that makes it; or one with a seed of its own."""

    def __init__(self, seed=None):
        self.seed = seed

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if self.seed is not None:
            return np.random.default_rng((self.seed, index)).random()
        return torch.rand(()).item(), np.random.rand(), random.random()


def draws_in_workers(dataset, workers, seed):
    loader = DataLoader(
        dataset,
        batch_size=2,
        num_workers=workers,
        generator=torch.Generator().manual_seed(seed),
        multiprocessing_context="fork",
        collate_fn=list,
    )
    return [numbers for batch in loader for numbers in batch]


if "fork" in torch.multiprocessing.get_all_start_methods():  # not on Windows
    one, two, again = (draws_in_workers(Draws(), workers, seed=1) for workers in (1, 2, 2))
    assert two == again != draws_in_workers(Draws(), 2, seed=2)
    kept = sum(a == b for a, b in zip(one, two, strict=True))
    guessed(
        "of 8 items, those that keep their numbers", guess, kept, "Two workers, same seed, twice: the same."
    )
    assert draws_in_workers(Draws(seed=1), 1, seed=1) == draws_in_workers(Draws(seed=1), 2, seed=1)

# %% [markdown]
# The first worker makes the first batch in both cases. The numbers of the other batches depend on what their worker
# made before. The last line shows the way out: an item with a seed of its own, made of the run's seed and the item's
# number (and, in training, the epoch), gets the same numbers in any worker.

# %% [markdown]
# ## 6. Stop, and go on
#
# A long run is stopped sometimes: a machine is needed, a time limit is over. It should go on later as if nothing had
# happened, to the last bit. What must be saved? Here are six candidates, each with the function that takes its state
# and the one that puts it back.


# %%
class Run:
    """A training run that can be stopped between two epochs."""

    def __init__(self, seed):
        for set_seed in SEEDS.values():
            set_seed(seed)
        self.model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.shuffle = torch.Generator().manual_seed(seed)
        self.loader = DataLoader(torch.eye(16), batch_size=4, shuffle=True, generator=self.shuffle)

    def epoch(self):
        losses = []
        for batch in self.loader:
            noisy = batch * random.random() + torch.tensor(np.random.rand(4, 16), dtype=torch.float32)
            loss = (self.model(noisy).squeeze(1) - batch.argmax(1)).square().mean()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            losses.append(loss.item())
        return losses

    def parts(self):
        return {
            "model": (self.model.state_dict, self.model.load_state_dict),
            "optimiser": (self.optimiser.state_dict, self.optimiser.load_state_dict),
            "loader": (self.shuffle.get_state, self.shuffle.set_state),
            "torch": (torch.get_rng_state, torch.set_rng_state),
            "NumPy": (np.random.get_state, np.random.set_state),
            "Python": (random.getstate, random.setstate),
        }


# %% [markdown]
# We stop after two epochs, save all parts but one, and go on in a new run, which was seeded like the first. How many of
# the six may be left out, so that the third epoch is still the same?

# %%
guess = ...


# %%
def third_epoch(without=None, stop=True):
    run = Run(seed=1)
    run.epoch(), run.epoch()
    if stop:
        saved = copy.deepcopy({name: take() for name, (take, _) in run.parts().items()})
        run = Run(seed=1)
        for name, (_, put_back) in run.parts().items():
            if name != without:
                put_back(saved[name])
    return run.epoch()


wanted = third_epoch(stop=False)
assert third_epoch() == wanted
differs = {name: third_epoch(without=name) != wanted for name in Run(seed=1).parts()}
guessed(
    "of the six, those that may be left out",
    guess,
    sum(not other for other in differs.values()),
    *(f"without {name}: {'other losses' if other else 'same losses'}" for name, other in differs.items()),
)

# %% [markdown]
# None of them: each is something that the next step depends on, and that has changed. Why did we copy the states? A
# state dict holds the tensors themselves, not what was in them. And an optimiser may keep the tensors that it is
# *given*, so copy a state that is loaded twice:

# %%
assert all(differs.values())

run = Run(seed=1)
kept = run.model.state_dict()
before = kept["0.weight"].clone()
run.epoch()
assert not torch.equal(kept["0.weight"], before)

given, other = run.optimiser.state_dict(), Run(seed=2).optimiser
other.load_state_dict(given)
momenta = [state["state"][0]["momentum_buffer"] for state in (given, other.state_dict())]
assert momenta[0].data_ptr() == momenta[1].data_ptr()

# %% [markdown]
# `torch.save` writes a copy, too. By default `torch.load` reads tensors and plain Python values only, so that a file
# cannot run code. NumPy's state holds an array. A list in its place is read, and taken back by NumPy:


# %%
def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


name, numbers, *rest = np.random.get_state()
try:
    through_a_file((name, numbers, *rest))
except pickle.UnpicklingError as error:
    print("UnpicklingError:", str(error).split(".")[0])
np.random.set_state(through_a_file((name, numbers.tolist(), *rest)))

# %% [markdown]
# Three more things belong to a state where a run has them: the running statistics of batch normalisation (the model's
# `state_dict()` holds them), the schedule of the learning rate (it has a `state_dict()` of its own), and the place
# within the epoch. A `DataLoader`'s iterator cannot tell that place. Stop between epochs, or keep the rest yourself.
#
# Last, other code in the program may draw from the global generators while the run waits, or the run may disturb the
# others. `torch.random.fork_rng()` keeps torch's generators as they were. The next cell checks this; its first two
# lines check the statistics and the iterator.

# %%
assert "running_mean" in torch.nn.BatchNorm1d(3).state_dict()
assert not hasattr(iter(DataLoader(range(3))), "state_dict")

torch.manual_seed(0)
alone = torch.rand(3)
torch.manual_seed(0)
with torch.random.fork_rng():
    torch.rand(1000)
assert torch.equal(torch.rand(3), alone)

# %% [markdown]
# ## 7. What is not promised
#
# Same program, same seed, other machine: other bits, perhaps. Another library version or processor may choose
# another algorithm. Even on one machine the shapes may decide. The first row of a matrix product, and the same row
# alone, as a vector times the matrix:

# %%
rows, matrix = torch.rand(64, 333), torch.rand(333, 100)
together, alone = (rows @ matrix)[0], rows[0] @ matrix
print(
    "same bits:", torch.equal(together, alone), " largest difference:", (together - alone).abs().max().item()
)
assert torch.allclose(together, alone)

# %% [markdown]
# And another machine? One can play two. The variable `ATEN_CPU_CAPABILITY` makes torch use fewer of the processor's
# instructions; `default` means no vectors of eight or sixteen numbers. The same program, in two processes:

# %%
PROGRAM = "import torch; print(torch.linspace(-5, 5, 1001).sigmoid().double().sum().item())"


def printed(**variables):
    environment = os.environ | variables
    return subprocess.check_output([sys.executable, "-c", PROGRAM], env=environment, text=True).strip()


here, there = printed(), printed(ATEN_CPU_CAPABILITY="default")
print("this processor:", here, "· as on an older one:", there)
documented(
    "D6",
    "Results may differ between releases, platforms, and between CPU and GPU, seeds or not.",
    REPRODUCIBILITY,
)
if torch.backends.cpu.get_cpu_capability().startswith("AVX"):
    behaviour("D6", "With other vector instructions, the same program gives other bits.", here != there)

# %% [markdown]
# ## 8. TF32: a default that you should know
#
# GPUs since Ampere can multiply `float32` in a shorter format, TF32: the range of `float32`, but 10 bits of
# mantissa instead of 23. For convolutions PyTorch allows it by default, for matrix products it does not. The switch
# `fp32_precision` is there since torch 2.9.

# %%
products, conv = torch.backends.cuda.matmul, getattr(torch.backends.cudnn, "conv", None)
if conv:
    print("convolutions:   ", conv.fp32_precision)
    print("matrix products:", products.fp32_precision, "(nothing is set: full float32)")
    assert (conv.fp32_precision, products.fp32_precision) == ("tf32", "none")
else:
    print("TF32 in convolutions:   ", torch.backends.cudnn.allow_tf32)
    print("TF32 in matrix products:", products.allow_tf32)
    assert torch.backends.cudnn.allow_tf32 and not products.allow_tf32

# %% [markdown]
# What do 10 bits mean? We round the mantissa to 10 bits on the CPU (the last 13 bits become 0) and look at a product of
# two matrices. How many times as large as that of `float32` is the largest error?

# %%
guess = ...


# %%
def as_tf32(numbers):
    """float32 rounded to 10 bits of mantissa."""
    bits = numbers.view(torch.int32)
    return ((bits + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)


a, b = torch.rand(200, 200), torch.rand(200, 200)
exact = a.double() @ b.double()
errors = {
    name: ((product.double() - exact).abs() / exact).max().item()
    for name, product in (("float32", a @ b), ("TF32", as_tf32(a) @ as_tf32(b)))
}
guessed(
    "times as large an error",
    guess,
    errors["TF32"] / errors["float32"],
    *(f"{name:8} largest relative error {error:.0e}" for name, error in errors.items()),
)

# %% [markdown]
# PyTorch's default takes that to be enough for convolutions. For a comparison with the CPU, or for a solver, it may
# not be. What you need there is `torch.backends.cudnn.conv.fp32_precision = "ieee"`. Set it back to `"tf32"` before you
# run section 1 again: its `cudnn.flags` touches an older switch, and the two do not go together (end of *Further*).

# %% [markdown]
# ## Further: on an NVIDIA GPU
#
# You can skip this part. It is for those who have a GPU: without one, its comparisons show recordings.
#
# ### The real search
#
# The inputs of the first two comparisons stay fixed, those of the third change with every call. As a plan that was
# made without a search may be kept (section 3), each setting has a process of its own there. A call lets it convolve the
# same pictures 20 times, and waits for the end. PyTorch's guide says what to expect. How many times as fast is the plan
# that was searched?

# %%
for claim in ("A5", "D2"):
    documented(
        claim,
        "For a given input size, the search selects the algorithm that is fastest on this hardware.",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    )

# %%
guess = ...


# %%
def by_rule_and_by_search(pictures, weights, dtype="float32"):
    """Both settings, each in a process of its own."""
    return {
        f"benchmark = {searched}": Convolving(pictures, weights, dtype=dtype, benchmark=searched)
        for searched in (False, True)
    }


settings = by_rule_and_by_search((32, 64, 56, 64), (64, 64, 3, 3))
compare(
    "cuDNN with fixed shapes: chosen by rule or by search",
    settings,
    guess=guess,
    claim="A5",
    only="cuda",
    clock="wall",
)
published("A5", guess)
for process in settings.values():
    process.close()

# %% [markdown]
# On an H200 the searched plan is no faster, 0.92×. (Each process searches once, so this is the result of one search.)
# Others found more: most who trained networks gained, and those who made one picture at a time did not. Their GPUs and
# their cuDNN are older, and what they timed are whole programs with many convolutions.
#
# And in `float16`, with a larger kernel?

# %%
guess = ...

# %%
settings = by_rule_and_by_search((64, 128, 24, 32), (128, 128, 5, 5), dtype="float16")
compare(
    "cuDNN with fixed shapes in float16: chosen by rule or by search",
    settings,
    guess=guess,
    claim="D2",
    only="cuda",
    clock="wall",
)
for process in settings.values():
    process.close()

# %% [markdown]
# No faster on an H200 either. And with a shape at every call that has not run before: how many times as fast is it
# *without* the search?

# %%
guess = ...
fresh_size = iter(range(20, 100_000))


# %%
def convolve_new_size_with(benchmark):
    def run(weight):
        # Never the same width twice in this session, so that nothing is known about it.
        images = torch.rand(1, 16, 8, next(fresh_size), device=weight.device)
        with torch.backends.cudnn.flags(enabled=True, benchmark=benchmark):
            return convolve(images, weight)

    return run


compare(
    "cuDNN with a new shape at every call: benchmark on and off",
    {"benchmark = True": convolve_new_size_with(True), "benchmark = False": convolve_new_size_with(False)},
    inputs=(16, 16, 3, 3),
    guess=guess,
    differ="every call has a width of its own",
    claim="D3",
    clock="wall",
    only="cuda",
)
published("D3", guess)

# %% [markdown]
# ### The price of repeating
#
# cuDNN's own switch: do the gradients of a convolution repeat with it?


# %%
def gradients_with(deterministic):
    def gradients(images, weight):
        with torch.backends.cudnn.flags(enabled=True, deterministic=deterministic):
            return torch.autograd.grad(convolve(images, weight).square().sum(), (images, weight))

    return gradients


def pictures_and_weight(generator, device):
    shapes = (16, 64, 56, 56), (64, 64, 3, 3)
    return tuple(torch.rand(shape, generator=generator).to(device).requires_grad_() for shape in shapes)


if gpu:
    given = pictures_and_weight(torch.Generator(), "cuda")
    wanted, *again = (gradients_with(True)(*given) for _ in range(20))
    behaviour(
        "D4",
        "With cudnn.deterministic, the gradients of a convolution have the same bits 20 times.",
        all(torch.equal(a, b) for result in again for a, b in zip(wanted, result, strict=True)),
    )

# %% [markdown]
# How many times as fast are they with it? (Below 1: slower.)

# %%
guess = ...

# %%
compare(
    "gradients of a convolution: any algorithm, or one that repeats",
    {"any": gradients_with(False), "deterministic": gradients_with(True)},
    inputs=pictures_and_weight,
    guess=guess,
    differ="another algorithm rounds differently",
    claim="D4",
    only="cuda",
)
published("D4", guess)

# %% [markdown]
# On an H200 the interval holds 1: no price shows. (Its time is probably mostly launches, which would hide a small one.)
#
# ### What TF32 buys
#
# How many times as fast as in `float32` is a large matrix product?

# %%
guess = ...


# %%
def multiply_with(tf32):
    def multiply(a, b):
        products.allow_tf32 = tf32
        try:
            return a @ b
        finally:
            products.allow_tf32 = False

    return multiply


def two_matrices(generator, device):
    return torch.rand(2, 2048, 2048, generator=generator).to(device).unbind()


compare(
    "a 2048 × 2048 matrix product in float32 and in TF32",
    {"float32": multiply_with(False), "TF32": multiply_with(True)},
    inputs=two_matrices,
    guess=guess,
    differ="TF32 has 10 bits of mantissa",
    only="cuda",
)

# %% [markdown]
# ### Old switches and new ones
#
# `fp32_precision` is the newer interface: `"ieee"`, `"tf32"`, or `"none"` for what a more general switch says. You will
# also meet the older ones: `cudnn.allow_tf32`, `cuda.matmul.allow_tf32` and `set_float32_matmul_precision`. What
# happens if a program sets the new ones, and a library asks the old ones?


# %%
def answer_of(ask):
    try:
        return ask()
    except RuntimeError as error:
        return f"RuntimeError: {str(error).split(',')[0]} …"


def flags():
    with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        return "works"


def old_and_new():
    products.fp32_precision, conv.fp32_precision = "tf32", "ieee"
    answers = {
        "torch.get_float32_matmul_precision()": answer_of(torch.get_float32_matmul_precision),
        "cudnn.allow_tf32": answer_of(lambda: torch.backends.cudnn.allow_tf32),
        "cudnn.flags(…)": answer_of(flags),
    }
    for question, answer in answers.items():
        print(f"{question}\n    {answer}")
    assert all(answer.startswith("RuntimeError") for answer in answers.values())

    torch.set_float32_matmul_precision("highest")  # the old ones can still set
    torch.backends.cudnn.allow_tf32 = True
    print("after the old setters:", products.fp32_precision, conv.fp32_precision, flags())

    torch.backends.cudnn.fp32_precision = "ieee"  # one switch for all?
    print("after cudnn.fp32_precision = 'ieee', convolutions:", conv.fp32_precision)
    assert conv.fp32_precision == "tf32"
    torch.backends.cudnn.fp32_precision = products.fp32_precision = "none"


if conv:
    old_and_new()
else:
    print(f"There are no new switches in torch {torch.__version__}.")

# %% [markdown]
# The old questions raise an error, also in code that is not yours; even `cudnn.flags`, which asks them to put back what
# it found. The old setters overwrite the new ones without a word. So use one kind in a program. And the general switch
# does not reach convolutions: they have a setting of their own from the start, and the nearest one counts. Set
# `cudnn.conv.fp32_precision` itself.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** measure first and later calls apart. What differs is a search, fewer digits, or
# another order of sums. Each row takes one away, or keeps it on purpose. Verify that two runs give equal bits.
#
# | you want | set | and know that |
# |---|---|---|
# | speed, and shapes stay fixed | try `cudnn.benchmark = True`, before the first call | the first call of each shape pays for the search; twice it found nothing faster on an H200 |
# | speed, and shapes change | leave it off, or pad to a few sizes | every new shape is a new search |
# | runs that repeat | all seeds, `benchmark = False`, `use_deterministic_algorithms(True)` | it raises where torch has no deterministic form |
# | the loader to repeat | its own `generator=` | other code draws from the global one |
# | random items that do not depend on the workers | a seed for each item | a worker's numbers depend on what it made before |
# | to stop and go on | all states: model, optimiser, schedule, place, generators | each one that is forgotten gives other results |
# | full `float32` in convolutions | `cudnn.conv.fp32_precision = "ieee"` | TF32 is the default; old switches may then raise |
#
# *A5* and *D1* to *D3* need a figure from a GPU, yours or a recorded one. *D4* is about equal bits: without a GPU its
# verdict rests on the documentation, and it says nothing about the cost.

# %%
verdicts("A5", "D1", "D2", "D3", "D4", "D5", "D6")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/05_cudnn/05_cudnn.ipynb). They run on the CPU: count
# searches, add so that no order matters, mend a run that does not repeat, and build one that can stop and go on.
