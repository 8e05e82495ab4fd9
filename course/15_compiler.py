# %% [markdown]
# # 15 · The compiler: what it records, and what it costs
#
# `torch.compile` is one line. Behind it stand three programs: one records, one writes code, one compiles it. Each can
# disappoint you in its own way, and you can count how.
#
# Who makes the claims? Those whose ID begins with *F*, such as *F7*, are of PyTorch's own documentation, the others of
# five widely read articles. All are listed in [the score](claims.ipynb). `compare`, `costs` and `guess` are explained
# in [chapter 00](00_measuring.ipynb).
#
# **You will be able to**
# - see what was recorded, count the pieces, and find what broke them,
# - foretell which calls are compiled anew, and stop those that need not be,
# - say after how many calls the first one is paid back,
# - say no to the compiler where it gains nothing.
#
# **Time:** 55 minutes to read and run; 15 more for the part *Further*, which can be skipped. **Needs:** CPU; a C++
# compiler from section 4 on; GPU if any. Section 8 of [chapter 13](13_cpu.ipynb) has a first look at `torch.compile`;
# you need not have read it.
#
# **Claims tested:** *F41* "`torch.compile` makes PyTorch code run faster"; *F42* "remove graph breaks"; *F7* what breaks
# a graph; *F3* "another number is another compilation", *F4* also as a module's attribute; *F5* what happens at the
# limit; *F6* "compile a repeated region"; *F1*, *F2* the mode "reduce-overhead"; *F8* "use the module's own `compile`".

# %%
import os
import tempfile

# An empty folder for compiled code, so that nothing is prepared; and no helpers, which would run beside what we time.
code_folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = code_folder.name
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import contextlib
import inspect
import io
import logging
import shutil
import subprocess
import sys
import time
from statistics import median

import torch
from parts.recorded import draw_payback, draw_pieces, operations

from autograder import article_code, behaviour, compare, costs, devices, fewer, guessed, recall, verdicts

# Torch would tell of some breaks and of its limit. Here we count them ourselves, and its log stays quiet.
torch._logging.set_logs(dynamo=logging.ERROR)
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # it looks for CUDA, too
torch.set_num_threads(1)
print("devices here:", *devices(), "· torch", torch.__version__)
compiler = os.environ.get("CXX") or {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
print(f"C++ compiler ({compiler}):", "found" if shutil.which(compiler) else "none found")
recall("15", ..., ..., ...)

# %% [markdown]
# ## 1. What is recorded?
#
# The first call of a compiled function *records*: torch follows your Python code and writes down which operations it
# asks torch for. What it has recorded, the *graph*, goes to a **backend**, which makes something that can be called.
# The usual backend writes C++ or Triton. But any function can be one. Ours keeps the graph, and compiles nothing. (The
# recorder itself is called *Dynamo*; it is in `torch._dynamo`.)


# %%
def recorder(graphs):
    """A backend that puts what was recorded into a list, and runs it as it is."""

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    return keep


def record(function, *calls, **settings):
    """All graphs that are recorded while the function is called with each of these arguments."""
    torch._dynamo.reset()  # forget what was recorded before
    graphs = []
    compiled = torch.compile(function, backend=recorder(graphs), **settings)
    for arguments in calls:
        compiled(*arguments)
    return graphs


# %% [markdown]
# A function makes a picture brighter, in three steps. It has a loop, an `if` and three operations. How many
# operations are in its graph?

# %%
guess = ...


# %%
def brighter(image, steps=3):
    for _ in range(steps):
        if image.ndim == 2:
            image = (image * 1.1 - 0.05).clamp(0, 1)
    return image


(graph,) = record(brighter, (torch.rand(4, 6),))
guessed("operations in its graph", guess, len(operations(graph)), " ".join(operations(graph)))

# %% [markdown]
# Neither the loop nor the `if` is in there. Python has run through them once, while torch recorded, and what it did
# is left: a straight line of operations, with the numbers 1.1 and 0.05 in it. This line is right as long as the same
# answers come out: three steps, two dimensions. So torch writes down these conditions, too (the **guards**), and
# tests them at every call. Section 3 shows what happens when one fails.
#
# The graph is Python code again. You can read it:

# %%
print(graph.code.strip())
assert operations(graph) == ["mul", "sub", "clamp"] * 3

# %% [markdown]
# ## 2. Where does it break?
#
# While torch records, there are no numbers. It knows shapes and types of tensors, and not what is in them. What if your
# code asks? Here are five functions. In which way are they recorded? Guess for the first: how many graphs?

# %%
guess = ...


# %%
def with_if(x):
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


def with_item(x):
    y = x * 2
    return y / y.amax().item()


def with_print(x):
    y = x * 2
    print("with_print was here")
    return y + 1


def with_where(x):
    y = x * 2
    return torch.where(y.sum() > 0, y + 1, y - 1)


def with_tensor(x):
    y = x * 2
    return y / y.amax()


x = torch.rand(100) + 1
functions = (with_if, with_item, with_print, with_where, with_tensor)
pieces = {one.__name__: [operations(graph) for graph in record(one, (x,))] for one in functions}
lines = (
    f"{name:12} {len(graphs)} graph{'s' * (len(graphs) > 1)}: {graphs}" for name, graphs in pieces.items()
)
guessed("graphs of with_if", guess, len(pieces["with_if"]), *lines, drawing=draw_pieces(pieces))

# %% [markdown]
# An orange line is a **graph break**. Torch stops recording, compiles what it has, lets Python do the one thing that it
# cannot record, and begins a new recording after it. Nothing goes wrong: the result is right. So breaks stay unseen.
#
# `if` and `.item()` want the *value* of a tensor. (`print` wants none here: it is something that no graph can hold.)
# The last two functions compute the same as the first two, and never ask. `torch.where` computes both sides and picks
# (chapter 03: it is no `if`); a tensor with one number can divide as well as a number can. And `with_if` is not done
# with two graphs: when its other branch is needed for the first time, that is recorded, too.

# %%
for one, other in ((with_if, with_where), (with_item, with_tensor)):
    for values in (x, -x):
        assert torch.allclose(one(values), other(values))
assert len(record(with_if, (x,), (-x,))) == 3
behaviour("F7", "An if on a tensor breaks the graph.", len(pieces["with_if"]) == 2)
behaviour("F7", ".item() breaks the graph.", len(pieces["with_item"]) == 2)

# %% [markdown]
# `costs` (chapter 00) has counted such questions for values all the time. It calls them *syncs*, because on a GPU each
# also makes Python wait. One cause, two prices. A break without a question, as that of `print`, has only the first.

# %%
for one in functions:
    print(f"{one.__name__:12} syncs: {costs(one, x).syncs}")

# %% [markdown]
# ### Who broke it?
#
# In a large model nobody sees where the breaks are. Three tools say it. `torch._dynamo.explain` counts and gives
# reasons. The environment variable `TORCH_LOGS=graph_breaks` prints each with its line of code. And `fullgraph=True`
# makes a break an error.

# %%
told = torch._dynamo.explain(with_if)(x)
print(told.graph_count, "graphs,", told.graph_break_count, "break, because of:")
print("   ", str(told.break_reasons[0].reason).strip().splitlines()[0], end="\n\n")

for one in functions:
    torch._dynamo.utils.counters.clear()
    number = len(record(one, (x,))) - 1
    counted = sum(torch._dynamo.utils.counters["graph_break"].values())
    print(f"{one.__name__:12} breaks: {number}, counted by torch itself: {counted}")

# %% [markdown]
# Torch's reasons are in torch's words: a `jump` is an `if` or a loop. And torch has counters of its own, which many
# people print. Where its count is below ours, there is a kind of break that this counter leaves out. Trust the graphs.
# (The log leaves out none of these: section 3 shows it.)

# %%
said = {}
for one in functions:
    try:
        (whole,) = record(one, (x,), fullgraph=True)
        said[one] = f"1 graph, syncs: {costs(whole, x).syncs}"
    except RuntimeError as error:
        said[one] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    print(f"fullgraph=True, {one.__name__:12} {said[one][:80]}")
assert said[with_where] == "1 graph, syncs: 0" and ":" in said[with_if]

# %% [markdown]
# Look at the line of `with_item`. Older versions of torch refuse it. Newer ones take it, where without `fullgraph` they
# break: they record the number as a *symbol*, whose value comes later. The graph is whole then, and the question is
# still in it, as its sync says: on a GPU, Python waits as before. So `fullgraph=True` shows those breaks that a version
# of torch cannot avoid. It is worth a test in your project: **write `fullgraph=True` where you believe that there is no
# break, and count the syncs there.**

# %% [markdown]
# ## 3. When is it recorded again?
#
# Now the guards. We call a function twice, and count the recordings. The second call differs from the first in one
# thing. Which of these six make torch record again? Guess how many.

# %%
guess = ...


# %%
def scaled(x):
    return x * 2 + 1


table = torch.rand(8, 6)
others = {
    "other values": torch.rand(8, 6),
    "another size": torch.rand(9, 6),
    "another type": table.double(),
    "other strides": torch.rand(6, 8).T,
    "requires a gradient": torch.rand(8, 6).requires_grad_(),
    "one dimension more": torch.rand(8, 6, 2),
}
again = {name: len(record(scaled, (table,), (other,))) - 1 for name, other in others.items()}
lines = (f"{n}  {name}" for name, n in again.items())
guessed("of the six, those that are recorded again", guess, sum(again.values()), *lines)

# %% [markdown]
# Everything but the values. The recorded line was right for one kind of tensor, and the code that is made of it knows
# type, strides and whether there is a backward pass.
#
# ### Who recorded it again?
#
# Torch's log says which guard failed. `TORCH_LOGS=recompiles,graph_breaks` switches it on from outside, and the breaks,
# too. Here we do so from inside, and keep the lines:


# %%
def log_of(function, *calls, **wanted):
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        torch._logging.set_logs(dynamo=logging.ERROR, **wanted)
        record(function, *calls)
    torch._logging.set_logs(dynamo=logging.ERROR)
    return [line.partition("] [__")[2].partition("] ")[2] for line in told.getvalue().splitlines()]


assert again == {name: int(name != "other values") for name in others}
guard_lines = log_of(scaled, (table,), (others["another type"],), recompiles=True)
print(*guard_lines, *log_of(with_if, (x,), graph_breaks=True)[:2], sep="\n")
assert any("expected Float, actual Double" in line for line in guard_lines)

# %% [markdown]
# Below stands a break, the one that the counter of section 2 may miss. Settings count as well as tensors:

# %%
graphs = []
torch._dynamo.reset()
compiled = torch.compile(scaled, backend=recorder(graphs))
compiled(table)
with torch.no_grad():
    compiled(table)
compiled(table)
print("with, without and again with gradients:", len(graphs), "recordings")
assert len(graphs) == 2

# %% [markdown]
# Two, and not three: nothing is thrown away. A function keeps its versions, and takes the first one whose guards hold.
# If a training loop is checked under `no_grad` after each epoch, this costs one compilation more, once.
#
# ### Sizes
#
# Five calls, with 100, 200, 300, 400 and 500 numbers. How many recordings?

# %%
guess = ...

# %%
five_sizes = [(torch.rand(100 * number),) for number in range(1, 6)]
counts = {dynamic: len(record(scaled, *five_sizes, dynamic=dynamic)) for dynamic in (None, True, False)}
lines = (f"dynamic={dynamic!s:5}: {number} recordings" for dynamic, number in counts.items())
guessed("recordings for five sizes, by default", guess, counts[None], *lines)

# %% [markdown]
# The first recording is for exactly 100. When 200 comes, torch concludes that this dimension changes, and records once
# more, now for *any* size of it. So by default you pay for two. (Several dimensions, several types: exercise 2.) With
# `dynamic=True`, or if you mark the one dimension that will change, you pay for one. `dynamic=False` pays each time.
# (It has its use: code for one size may be better, and CUDA graphs, section 6, want sizes that stay.)

# %%
assert counts == {None: 2, True: 1, False: 5}
marked = [(tensor.clone(),) for (tensor,) in five_sizes]
torch._dynamo.mark_dynamic(marked[0][0], 0)
print("first tensor marked:", len(record(scaled, *marked)), "recording")
sizes = (100, 200, 300, 1)
print(
    "sizes", sizes, "by default:", len(record(scaled, *[(torch.rand(size),) for size in sizes])), "recordings"
)

# %% [markdown]
# "Any size" is nearly any: 1 was recorded once more. A size of 1 broadcasts, so it may mean another program. The last
# batch of an epoch, with its one row, is such a case. (`drop_last=True` of the `DataLoader` avoids it, and leaves out
# the rows of this batch, in each epoch others if they are shuffled.)
#
# ### Numbers
#
# The documentation says that Python's numbers are constants: another number, another recording. Its example adds a
# number that changes at each of five calls. How many recordings?

# %%
guess = ...


# %%
def add(x, c):
    return x + c


def power(x, number):
    result = x
    for _ in range(number - 1):
        result = result * x
    return result


documented_example = len(record(add, *[(torch.ones(i), 0.5 + i) for i in range(5)]))
same_size = len(record(add, *[(torch.ones(10), 0.5 + i) for i in range(5)]))
powers = len(record(power, *[(torch.ones(10), number) for number in range(2, 7)]))
guessed(
    "recordings for the documentation's example",
    guess,
    documented_example,
    f"the same with tensors of one size: {same_size} recordings",
    f"a power, for the exponents 2, 3, 4, 5, 6: {powers} recordings",
)

# %%
behaviour(
    "F3",
    "A power is recorded anew for each of five exponents.",
    powers == 5,
    when="Python itself needs the number, as in range(number)",
)
behaviour(
    "F3",
    "A sum is recorded anew for each of five numbers.",
    same_size == 5,
    unless="Python itself needs the number, as in range(number)",
)
article_code("F3", "the example x + c", lambda: documented_example, right=lambda number: number == 5)

# %% [markdown]
# The sentence was written for an older torch. Today a number is treated as a size: a constant at first, a symbol when
# it changes. (Its example also changes the size of `torch.ones(i)`: the sizes 0 and 1 are recorded apart, and the third
# recording serves all that follow.) But a symbol cannot say how often a loop runs. In `power` the *graph* depends on
# the number: for 6 it has five products. Such a number stays a constant, and each new one costs a compilation.
#
# So what do you do with a number that Python needs? Rewrite the function so that Python does not need it: `x ** number`
# has no loop. Then the number may be a symbol, or come as a tensor. (It is another program: time it before you swap.)

# %%
exponents = {"a number": [*range(2, 7)], "a tensor": [torch.tensor(float(number)) for number in range(2, 7)]}
for kind, numbers in exponents.items():
    counted = len(record(lambda x, number: x**number, *[(torch.ones(10), number) for number in numbers]))
    print(f"x ** number, the exponent as {kind}: {counted} recordings")

# %% [markdown]
# ### Too often
#
# What if it is recorded again and again? Twelve sizes with `dynamic=False`. How many recordings?

# %%
guess = ...

# %%
twelve = [(torch.rand(size),) for size in range(10, 22)]
number = len(record(scaled, *twelve, dynamic=False))
guessed(f"recordings for {len(twelve)} sizes", guess, number)

# %%
try:
    record(scaled, *twelve, dynamic=False, fullgraph=True)
except Exception as error:
    strict = type(error).__name__
else:
    strict = "no error"
print("with fullgraph=True:", strict)
behaviour(
    "F5",
    "Twelve sizes: eight recordings, and the rest runs eagerly.",
    number == 8,
    when="fullgraph is not set",
)
behaviour("F5", "The same with fullgraph=True.", strict == "no error", unless="fullgraph is not set")

torch._dynamo.reset()
ran = []
counting = lambda graph, _: lambda *given: ran.append(1) or graph.forward(*given)
compiled = torch.compile(scaled, backend=counting, dynamic=False)
_ = [compiled(one) for (one,) in twelve + twelve]
print(f"the twelve sizes twice: {len(ran)} of 24 calls ran what was recorded")
assert len(ran) == 16

# %% [markdown]
# After eight, torch records no more of this function. It says so once, in its log (which we have switched off). Calls
# with one of the eight sizes still use what was compiled; all others run without. So a program can be "compiled" and
# run as before, having paid eight times. With `fullgraph=True` newer versions raise an error instead. Another alarm,
# for tests and servers: after some calls to warm up, forbid new recordings.

# %%
graphs = []
torch._dynamo.reset()
compiled = torch.compile(scaled, backend=recorder(graphs))
compiled(table)
with torch.compiler.set_stance("fail_on_recompile"):
    compiled(table)
    try:
        compiled(table.double())
    except RuntimeError as error:
        print(type(error).__name__, "·", str(error).strip().splitlines()[0][:75], "…")
    else:
        raise AssertionError("it recorded again")

# %% [markdown]
# ### What do the guards cost?
#
# Guards are tested at every call. Ten numbers, `x * 2 + 1`: as it is, or recorded, with a backend that compiles nothing
# (`eager`). How many times as fast is the recorded one?

# %%
guess = ...

# %%
torch._dynamo.reset()
compare(
    "compiler: 10 numbers, not compiled or only recorded",
    {"not compiled": scaled, "only recorded": torch.compile(scaled, backend="eager")},
    inputs=10,
    guess=guess,
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# Slower. The operations are the same two; the rest is guards, and going in and out of compiled code. These are
# microseconds, whatever the size of the tensors. Whoever compiles a function that takes microseconds must first earn
# them back.

# %% [markdown]
# ## 4. The first call
#
# From here on we compile in earnest. The usual backend, *inductor*, writes C++ for a CPU, and needs a C++ compiler.
# Where there is none, the next cell says why, the cells that need it stay empty, and you can read on.
#
# A film look for a picture: six steps, each with three operations for each pixel. The picture has a million numbers.
# How many times as long as the second call does the first one take?

# %%
guess = ...


# %%
def step(image):
    return (image * 1.05 - 0.02).clamp(0, 1)


def look(image):
    return step(step(step(step(step(step(image))))))


def seconds_of(function, *arguments):
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


torch._dynamo.reset()
image, fast_look = torch.rand(1_000_000), torch.compile(look)
try:
    first_call = seconds_of(fast_look, image)
except Exception as error:
    first_call = None
    print("torch.compile cannot compile here:", type(error).__name__, str(error).strip().splitlines()[0][:80])
else:
    second_call = median(seconds_of(fast_look, image) for _ in range(9))
    script = ["import time, torch", *map(inspect.getsource, (step, look, seconds_of))]
    script += ["torch.set_num_threads(1)", "print(seconds_of(torch.compile(look), torch.rand(1_000_000)))"]
    anew = subprocess.run(
        [sys.executable, "-c", "\n".join(script)], capture_output=True, text=True, check=True
    )
    third_call = float(anew.stdout)
    torch._dynamo.reset()  # what is in this process is forgotten; what is on disk stays there
    from_disk = seconds_of(fast_look, image)
    fast_step = torch.compile(step)
    another = seconds_of(fast_step, image)
    learning = image.clone().requires_grad_()
    forward, way_back = [], []
    for _ in range(2):
        forward.append(seconds_of(fast_step, learning))
        way_back.append(seconds_of(fast_step(learning).sum().backward))
    guessed(
        "the first call, times as long as the second",
        guess,
        first_call / second_call,
        f"first call:                   {first_call * 1e3:10,.1f} ms",
        f"second call:                  {second_call * 1e3:10,.1f} ms",
        f"first call in a new process:  {third_call * 1e3:10,.1f} ms, with the compiled code that lies on disk",
        f"recorded anew in this one:    {from_disk * 1e3:10,.1f} ms, with the same",
        f"first call of another function: {another * 1e3:8,.1f} ms",
        f"with gradients, first call:   {forward[0] * 1e3:10,.1f} ms, second {forward[1] * 1e3:,.1f} ms",
        f"first `.backward()`:          {way_back[0] * 1e3:10,.1f} ms, second {way_back[1] * 1e3:,.1f} ms",
    )
    assert torch.allclose(fast_look(image), look(image), atol=1e-6)
    assert third_call > second_call and from_disk > second_call and first_call > another
    assert forward[0] > forward[1] and way_back[0] > way_back[1]

# %% [markdown]
# **Why.** The first call records, writes C++, and waits for the C++ compiler. Some of it is done once in a program:
# loading torch's compiler, and trying out what your C++ compiler and processor can do. So another function in the same
# program pays less. And who trains pays twice: the backward pass is another program, compiled at the first `.backward()`.
#
# The compiled code stays in a folder. A program that is started again loads torch's compiler and records, and finds the
# rest there. (Ours is a new folder, deleted at the end. Yours is `TORCHINDUCTOR_CACHE_DIR`, or one of your name among
# the temporary files; keep it, and servers start sooner.)
#
# ## 5. What does it gain?
#
# Six steps with three operations each, on a million numbers. How many times as fast is the compiled function?

# %%
guess = ...

# %%
gain = None
if first_call:
    gain = compare(
        "compiler: 18 operations on 1,000,000 numbers",
        {"not compiled": look, "compiled": fast_look},
        inputs=1_000_000,
        guess=guess,
        claim="F41",
        only="cpu",
        bytes=2 * 4 * 1_000_000,
        seconds=0.7,
    )
else:
    print("Skipped: not available here.")

# %% [markdown]
# **Why.** Not compiled, every operation reads 4 MB and writes 4 MB. The compiled function is one loop: each number is
# read once, goes through 18 operations in registers, and is written once. This is called
# **[fusion](https://docs.pytorch.org/docs/stable/torch.compiler_get_started.html)**. But then the gain should be
# larger. What else takes time? We time the compiled step of section 4, too: the same bytes, a sixth of the operations.
# And the 18 operations in place, without new memory.


# %%
def in_place(image):
    for _ in range(6):
        image.mul_(1.05).sub_(0.02).clamp_(0, 1)


cost = costs(look, image)
print(cost)
print(f"\nso at least {2 * cost.bytes / 1e6:.0f} MB travel; compiled: {2 * image.nbytes / 1e6:.0f} MB\n")
if gain:
    for name, function, given in (
        ("18 operations, not compiled", look, image),
        ("18 operations in place", in_place, image.clone()),
        ("18 operations, compiled", fast_look, image),
        ("3 operations, compiled", fast_step, image),
    ):
        print(f"{name:28} {min(seconds_of(function, given) for _ in range(20)) * 1e3:6.2f} ms at best")
    for name, blocks in gain.samples["cpu"].blocks.items():
        faults = sorted(block.faults / block.calls for block in blocks)
        print(f"{name}: {faults[0]:,.0f} to {faults[-1]:,.0f} page faults for each call")

# %% [markdown]
# If bytes were all, the two compiled functions would take the same; if only arithmetic counted, one would take six
# times as long as the other. The nearer to six, the more is it the arithmetic that holds the long chain up. (The row
# *limit* of the table is the time for the 8 MB alone, as in chapter 00.)
#
# Not compiled, the operations also need new memory for each result. It may have to come from the system, as page faults
# (chapter 00), and how often it does changes from call to call and from one program to the next. That is one reason why
# these times, and with them the gain, can differ a lot between two tables for the same machine.

# %% [markdown]
# Now the first call, too. After how many calls is it paid back? The picture is drawn from what was measured here.

# %%
guess = ...

# %%
if gain:
    plain, fast = (median(gain.samples["cpu"].seconds(name)) for name in ("not compiled", "compiled"))
    new_process = f"in a new process, with the compiled code on disk: {third_call / (plain - fast):,.0f}"
    drawn, calls = draw_payback(first_call, plain, fast), first_call / (plain - fast)
    guessed("calls that pay the first one back", guess, calls, new_process, drawing=drawn)

# %% [markdown]
# A training with a hundred thousand steps does not notice. A test, or a script that ends before the lines meet, is
# slower with the compiler than without. (This one function pays the whole first call here, though it serves others, too.)
#
# ### A matrix product
#
# Two matrices of 512 × 512 are multiplied. How many times as fast is that, compiled?

# %%
guess = ...


# %%
def two_matrices(generator, device):
    return tuple((torch.rand(2, 512, 512, generator=generator) / 512).to(device))


if first_call:
    compare(
        "compiler: a product of 512 × 512",
        {"not compiled": lambda a, b: a @ b, "compiled": torch.compile(lambda a, b: a @ b)},
        inputs=two_matrices,
        guess=guess,
        claim="F41",
        only="cpu",
        seconds=0.5,
    )

# %% [markdown]
# No gain; if anything, a little is lost. The recorded graph holds one operation, and the compiled code calls the same
# library for it. There is nothing to fuse.
#
# ### Ten numbers
#
# `x * 2 + 1` for ten numbers: this time compiled in earnest, two operations in one loop. How many times as fast?

# %%
guess = ...

# %%
if first_call:
    compare(
        "compiler: 10 numbers, compiled",
        {"not compiled": scaled, "compiled": torch.compile(lambda x: x * 2 + 1)},
        inputs=10,
        guess=guess,
        claim="F41",
        only="cpu",
        seconds=0.5,
    )

# %% [markdown]
# Slower again. The loop takes nanoseconds, and the way to it microseconds. (From section to section compare ratios
# only: the microseconds move with the state of the machine.)
#
# And whole models on a GPU? Others compiled more than 1,000 of them for inference with mixed precision, with large batches,
# on each of three GPUs. How many times as fast is most of them, compiled?

# %%
guess = ...

# %%
from autograder import published

published("F41", guess)

# %% [markdown]
# Nearly all gain, and the two that are named are far from the rest. (The first call is in none of these figures.)
#
# ### What does a break cost?
#
# Between the steps of the film look we write a line to a log. Torch cannot record that; here the decorator
# `torch.compiler.disable` says so. (It is also the tool for a part that *should* not be recorded.) How many times as
# fast is the version without breaks?

# %%
guess = ...


# %%
@torch.compiler.disable
def note(image):
    """Stands for a log, a progress bar, a library that torch cannot record."""


def noted_look(image):
    image = step(image)
    note(image)
    image = step(image)
    note(image)
    image = step(image)
    note(image)
    image = step(image)
    note(image)
    image = step(image)
    note(image)
    return step(image)


if first_call:
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    noted = torch.compile(noted_look)
    noted(image)
    pieces = torch._dynamo.utils.counters["stats"]["unique_graphs"] - before
    print(pieces, "graphs")
    assert pieces == 6
    compare(
        "compiler: a film look with five breaks, or with none",
        {"five breaks": noted, "no break": fast_look},
        inputs=1_000_000,
        guess=guess,
        claim="F42",
        only="cpu",
        seconds=0.7,
    )

small = [torch.compile(function, backend="eager") for function in (look, noted_look)]
whole, broken = (min(seconds_of(function, torch.rand(10)) for _ in range(300)) for function in small)
print(f"a break itself, with ten numbers: {(broken - whole) / 5 * 1e6:.1f} µs")

# %% [markdown]
# **Why.** Six graphs are six loops, each with three operations, as the compiled step above: compare with six times its
# time. (New memory for five more results may come on top.) Six times the bytes travel, but the arithmetic is the same.
# The break itself costs microseconds: guards, and the way in and out (section 3). What costs here is the fusion that
# cannot reach over it. So where nothing would be fused, and the work takes milliseconds, it should cost next to nothing.
# Two products of matrices, with a note in between. How many times as fast is the version without a break?

# %%
guess = ...


# %%
def products(a, b):
    return (a @ b) @ b


def noted_products(a, b):
    c = a @ b
    note(c)
    return c @ b


if first_call:
    compare(
        "compiler: two products, with a break or without",
        {"one break": torch.compile(noted_products), "no break": torch.compile(products)},
        inputs=two_matrices,
        guess=guess,
        claim="F42",
        only="cpu",
        seconds=0.5,
    )

# %% [markdown]
# A few percent at most. So do not hunt all breaks. Hunt those between element-wise operations on large tensors.

# %% [markdown]
# ## 6. Modes
#
# `torch.compile(m, "reduce-overhead")`: this line stands in PyTorch's own guide to performance. Does it run?

# %%
article_code("F1", 'torch.compile(m, "reduce-overhead")', lambda: torch.compile(scaled, "reduce-overhead"))
try:
    torch.compile(scaled, "reduce-overhead")
except TypeError as error:
    by_place = False
    print("TypeError:", error)
else:
    by_place = True
behaviour("F1", "The mode can be given by its place, without its name.", by_place)
try:
    torch.compile(scaled, mode="reduce_overhead")
except RuntimeError as error:
    print("RuntimeError:", str(error).splitlines()[0])
else:
    raise AssertionError("a mode that does not exist should be refused")

# %% [markdown]
# All settings are given by name. And a name that is nearly right is refused as well, when `torch.compile` is called.
# What a mode does, torch tells. It is a short list of settings, here for the four best known:

# %%
for mode in ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune"):
    print(f"{mode:28}", ", ".join(torch._inductor.list_mode_options(mode)) or "nothing")

# %% [markdown]
# - `triton.cudagraphs`: on a GPU, all launches of a graph are recorded once and repeated with a single one.
# - `max_autotune`: for a product, try several programs, and keep the fastest. It makes the first call longer.
# - `coordinate_descent_tuning`: try settings of the programs themselves, one after the other. Longer still.
#
# What "reduce-overhead" gains is in *Further*.

# %% [markdown]
# ## 7. When eager wins
#
# The compiler fuses loops. Does it also find a better formula? Two matrices of 512 × 512 and a vector: `(a @ b) @ v`,
# compiled, against `a @ (b @ v)`, not compiled. How many times as fast is the second?

# %%
guess = ...


# %%
def two_matrices_and_a_vector(generator, device):
    return *two_matrices(generator, device), torch.rand(512, generator=generator).to(device)


def bad_brackets(a, b, v):
    return (a @ b) @ v


(graph,) = record(bad_brackets, two_matrices_and_a_vector(torch.Generator(), "cpu"))
print("recorded:", *operations(graph))
if first_call:
    compare(
        "compiler: brackets, compiled or thought about",
        {"(a @ b) @ v, compiled": torch.compile(bad_brackets), "a @ (b @ v)": lambda a, b, v: a @ (b @ v)},
        inputs=two_matrices_and_a_vector,
        guess=guess,
        only="cpu",
        seconds=0.5,
        because="prices",
    )

# %% [markdown]
# **Why.** It computes what you wrote, in your order. Your brackets say 134 million multiplications, the others half a
# million. The compiler keeps them. (Other brackets would round differently.) The table's ratio is smaller: with a
# vector each number of a matrix is read for one multiplication only, and reading sets the pace (chapter 00); the prices
# count that, and not that `@` with a vector takes longer than to read the matrix once. Choosing the formula is your
# work: **first the formula, then the compiler.**
#
# Eager wins, then, where a function is called a few times only, or one large operation takes nearly all the time
# (section 5), where tensors are small (sections 3 and 5), and where it is recorded again and again (section 3).

# %% [markdown]
# ## Further
#
# You can skip this part. It is for those who have a GPU, save models, wait minutes for a first call, or count in a
# module.
#
# ### What does a mode gain?
#
# What does "reduce-overhead" do for the film look on a CPU? How many times as fast as the default mode is it?

# %%
guess = ...

# %%
if first_call:
    compare(
        "compiler: a film look on a CPU, in two modes",
        {"default": fast_look, "reduce-overhead": torch.compile(look, mode="reduce-overhead")},
        inputs=1_000_000,
        guess=guess,
        only="cpu",
        seconds=0.5,
    )

# %% [markdown]
# Nothing: there are no CUDA graphs on a CPU, and nobody says so. On a GPU the mode is made for many small operations,
# where launching takes longer than computing (chapter 02). This is such a case: twenty small layers. It needs a GPU.

# %%
guess = ...


# %%
def rows_and_weights(generator, device):
    return (
        torch.rand(16, 128, generator=generator).to(device),
        (torch.randn(20, 128, 128, generator=generator) / 8).to(device),
    )


def small_layers(x, weights):
    for weight in weights:
        x = torch.relu(x @ weight)
    return x


unable = None
with_graphs = torch.compile(small_layers, mode="reduce-overhead")
if torch.cuda.is_available():  # there torch writes Triton, which needs a C compiler
    given = rows_and_weights(torch.Generator(), "cuda")
    try:
        for _ in range(3):  # one compiles, one warms up, one records
            with_graphs(*given)
    except Exception as error:
        unable = f"{type(error).__name__} {str(error).strip().splitlines()[0][:80]}"
    else:
        with torch.profiler.profile() as profile:
            with_graphs(*given)
        replayed = sum(event.count for event in profile.key_averages() if event.key == "cudaGraphLaunch")
        print("CUDA graphs replayed in one call:", replayed)
if unable:
    print("torch.compile cannot compile for this GPU:", unable)
else:
    compare(
        "compiler: twenty small layers on a GPU, with CUDA graphs or without",
        {"default": torch.compile(small_layers), "reduce-overhead": with_graphs},
        inputs=rows_and_weights,
        guess=guess,
        claim="F2",
        only="cuda",
    )
published("F2", guess)

# %% [markdown]
# An H200 once showed no gain (1.0 times), and nobody had counted the replays. By hand, such layers were replayed there
# 10 times as fast (chapter 18). A count of 0 says that torch made no graph. Of what others published, most compares the
# mode with no compiler at all (hollow): there two things change at once.

# %% [markdown]
# ### The model, or its own method?
#
# Many examples write `model = torch.compile(model)`. The documentation advises `model.compile()`. Does it matter?

# %%
model = torch.nn.Sequential(torch.nn.Linear(4, 3))
wrapped = torch.compile(model, backend="eager")
names = list(wrapped.state_dict())
model.compile(backend="eager")
print("torch.compile(model):", names)
print("model.compile():     ", list(model.state_dict()))
behaviour(
    "F8",
    "With model.compile(), weights keep their names; in the module that torch.compile gives they have others.",
    list(model.state_dict()) == ["0.weight", "0.bias"] != names,
)

# %% [markdown]
# `torch.compile(model)` is another module around yours. Its weights have other names, so what you save of it does not
# fit the plain model, and the other way round. (Save `model.state_dict()`, of the inner one, if you have wrapped it.)
#
# ### A region that repeats
#
# The larger the graph, the longer the first call. A model of 16 equal layers need not be recorded as a whole: compile
# *one layer*, and it serves for all. The recording shows by how much the work shrinks. How many times fewer operations?

# %%
guess = ...


# %%
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(10, 10)

    def forward(self, x):
        return torch.relu(self.linear(x)) + x


class Layers(torch.nn.Sequential):
    def forward(self, x):  # older versions of torch do not record that of Sequential
        for layer in self:
            x = layer(x)
        return x


def sixteen(backend, *, whole):
    """A model of 16 layers, compiled as a whole or layer by layer."""
    model = Layers(*(Layer() for _ in range(16))).requires_grad_(False)
    for module in [model] if whole else model:
        module.compile(backend=backend)
    return model


recorded, lines = {}, []
for name, whole in {"whole": True, "by layers": False}.items():
    torch._dynamo.reset()
    sixteen(recorder(kept := []), whole=whole)(torch.rand(2, 10))
    recorded[name] = sum(len(operations(graph)) for graph in kept)
    lines.append(f"{name:10} {len(kept)} graph, {recorded[name]} operations")
assert len(kept) == 1
given = " ".join(node.target for node in kept[0].graph.nodes if node.op == "placeholder")
lines.append(f"the graph of a layer is given: {given}")
guessed("times fewer operations", guess, recorded["whole"] / recorded["by layers"], *lines)
fewer("F6", "operations to compile", without=recorded["whole"], following=recorded["by layers"])

# %% [markdown]
# Sixteen modules, and one recording: a module's weights are *inputs* of the graph, and the guards hold for every layer
# of the same class with the same configuration. And the first call, in seconds?

# %%
if first_call:
    first_calls = []
    for rows, (name, whole) in enumerate({"whole": True, "by layers": False}.items(), 2):
        torch._dynamo.reset()  # other rows are other code, so that neither finds that of the other on disk
        first_calls.append(seconds_of(sixteen("inductor", whole=whole), torch.rand(rows, 10)))
        print(f"first call, {name:10} {first_calls[-1]:5.2f} s")
    assert first_calls[0] / first_calls[1] < recorded["whole"] / recorded["by layers"]

# %% [markdown]
# It shrinks less than the number of operations: some of it is there for any graph.
#
# The saving at the first call is paid at all others: 16 times guards, and no fusion from one layer into the next. How
# many times as fast as the model in regions is the whole one, per call? (Only recorded: nothing is fused in either, so
# the difference is guards, and going in and out.)

# %%
guess = ...

# %%
torch._dynamo.reset()
whole, by_layers = (sixteen("eager", whole=whole) for whole in (True, False))
by_layers.load_state_dict(whole.state_dict())
compare(
    "compiler: 16 small layers, recorded by layers or as a whole",
    {"by layers": by_layers, "whole": whole},
    inputs=(2, 10),
    guess=guess,
    only="cpu",
    seconds=0.5,
)

# %% [markdown]
# That comes 16 times. For layers that compute for milliseconds this is nothing; for these small ones
# it is much of the time. So regions are for large layers, or where the first call hurts.

# %% [markdown]
# ### A number that a module keeps
#
# Section 3 gave numbers to a function. What if a module keeps one? This one counts its own steps. Six calls: how many
# recordings?

# %%
guess = ...


# %%
class Counting(torch.nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, x):
        self.step += 1
        return x * self.step


class CountingInABuffer(Counting):
    def __init__(self):
        torch.nn.Module.__init__(self)
        self.register_buffer("step", torch.tensor(0))


in_six_calls = len(record(Counting(0), *[(table,)] * 6))
guessed("recordings in six calls", guess, in_six_calls)

# %%
print("with the step in a buffer:", len(record(CountingInABuffer(), *[(table,)] * 6)), "recording")
behaviour("F4", "A module that counts its steps is recorded anew at each of six calls.", in_six_calls == 6)

# %% [markdown]
# If you read 6, the number is not treated as a symbol, this time. Newer versions of torch take what a module keeps for
# its configuration, which hardly ever changes, and so for a constant. (Older versions make it a symbol at its second
# value.) As a *tensor* it is data, in all versions.

# %% [markdown]
# ## Summary
#
# **Chapter 00's routine here:** predict from bytes and calls what one loop could gain. If it does not come, the cause is a
# break, a guard or the compiler's own time: count them, take one away, and verify the result and the number of graphs.
#
# | you see | do | because |
# |---|---|---|
# | no gain | count the graphs: `explain`, `TORCH_LOGS=graph_breaks` | fusion does not reach over a break |
# | `if`, `.item()` on tensors | `torch.where`, tensors in place of numbers | while recording there are no values |
# | `print`, a log | after the step | a graph cannot hold it |
# | no break, and it should stay so | `fullgraph=True`, and count syncs | most breaks are an error then |
# | recorded again | `TORCH_LOGS=recompiles` | it names the guard that failed |
# | a size that changes | nothing, or `dynamic=True`, or `mark_dynamic` | the second recording is for any size |
# | a last batch with one row | `drop_last=True`, if you can spare it | size 1 is recorded once more |
# | a number that Python's loop needs | few values of it, or no loop | each value is another graph |
# | more than 8 versions | fewer kinds of inputs; `set_stance("fail_on_recompile")` in tests | nothing new is compiled |
# | a slow start | keep `TORCHINDUCTOR_CACHE_DIR` | what the C++ compiler made is found there |
# | long element-wise chains, large tensors, many calls | `torch.compile` | one loop in place of many |
# | a single large product, ten numbers, a few calls | leave it | nothing to fuse, or guards cost more |
# | small operations on a GPU | try `mode="reduce-overhead"`, by name | made for it; count what it replays (F2) |
# | a bad formula | a better one | the compiler computes what you wrote |

# %%
verdicts("F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F41", "F42")

# %% [markdown]
# **Now you:** [the exercises of this chapter](../exercises/15_compiler/15_compiler.ipynb). Take the questions out of a
# training step, foretell the compilations, choose few sizes for many lengths, and beat fusion with a formula.
