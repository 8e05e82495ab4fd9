"""A student's code in one process, the tests in another: what reaches across, and what does not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from autograder.judging.outcome import MIME
from autograder.sandbox import Executed, Sandbox, supervisor
from autograder.sandbox.channel import Channel
from autograder.sandbox.machine_lock import MachineLock, cores

pytestmark = pytest.mark.slow

GIVEN = """
import numpy as np
import torch
from autograder import check, costs, race


def numbers(generator, device):
    return torch.rand(int(torch.randint(300, 400, (), generator=generator)), 40, generator=generator)


def double(x):
    return 2 * x


def sums_slow(rows):
    return torch.stack([row.sum() for row in rows])


def copied_slow(rows):
    return torch.stack([row.clone() for row in rows])
"""


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


def run(box: Sandbox, student: str, *tests: str, **options: object) -> Executed:
    """A notebook: the given cell, one of the student's, and tests."""
    roles = [("given", GIVEN), ("student", student), *(("test", test) for test in tests)]
    cells = [
        {"index": i, "role": role, "source": source, "grade_id": f"t{i}", "exercise": f"e{i}"}
        for i, (role, source) in enumerate(roles)
    ]
    return box.run(cells, assignment="here", **options)


def results(executed: Executed) -> list[str]:
    """What the tests gave: the text of the last result, or the error, of each."""
    found = []
    for index in sorted(executed.outputs)[2:]:
        last = executed.outputs[index][-1] if executed.outputs[index] else {}
        found.append(last.get("data", {}).get("text/plain") or f"{last.get('ename')}: {last.get('evalue')}")
    return found


def card(executed: Executed, index: int = 2) -> dict:
    """The outcome card that a test showed, as data and as ``text/plain``."""
    shown = next(o["data"] for o in executed.outputs[index] if MIME in o.get("data", {}))
    return shown[MIME] | {"text/plain": shown["text/plain"]}


def test_values_of_all_kinds_go_in_and_come_back(box: Sandbox) -> None:
    values = (
        "[None, True, 3, 10**30, 2.5, float('inf'), 'é', b'raw', 1j, torch.float16, torch.device('meta'), "
        "np.float32(1.5), {'a': (1, [2])}, torch.arange(6).view(2, 3).T, torch.ones(2, 1).expand(2, 4), "
        "torch.tensor(7.0), torch.empty(0, 3), torch.zeros(2, 2, dtype=torch.bfloat16), "
        "torch.empty(3, 5, device='meta'), np.arange(6.0).reshape(2, 3)[:, ::-1], "
        "torch.ones(2, 3).shape, {frozenset({1, 2}): {3}}]"
    )
    compare = f"""
sent, got = {values}, same({values})
def equal(a, b):
    if isinstance(a, torch.Tensor):
        alike = (a.shape, a.dtype, a.device, a.stride()) == (b.shape, b.dtype, b.device, b.stride())
        return alike and (a.device.type == "meta" or torch.equal(a, b))
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else type(a) is type(b) and a == b
[i for i, (a, b) in enumerate(zip(sent, got)) if not equal(a, b)]"""
    assert results(run(box, "def same(x): return x", compare)) == ["[]"]


def test_a_single_item_may_have_any_stride(box: Sandbox) -> None:
    student = "def ones(): return torch.ones((1, 4), dtype=torch.int64)[:, 1], np.ones((1, 4))[:, 1]"
    assert results(run(box, student, "[one.tolist() for one in ones()]")) == ["[[1], [1.0]]"]


def test_classes_objects_methods_and_attributes(box: Sandbox) -> None:
    student = """
class Counter:
    start = 10
    def __init__(self, step=1): self.step, self.n = step, 0
    def __call__(self): self.n += self.step; return self.n
    def merged(self, other): return self.n + other.n
    def __len__(self): return self.n
    def __getitem__(self, i): return i * self.n
"""
    test = "a, b = Counter(), Counter(step=5)\na(); b(); b()\n"
    values = "(a.merged(b), len(b), b[3], a.start, a.step, type(a).__name__)"
    assert results(run(box, student, test + values)) == ["(11, 10, 30, 10, 1, 'Counter')"]


def test_results_of_special_kinds_are_what_they_are_in_a_notebook(box: Sandbox) -> None:
    student = """
from collections import Counter, OrderedDict, defaultdict, namedtuple
from enum import Enum, IntEnum
class Size(IntEnum): LARGE = 3
class Name(str, Enum): ADA = 'ada'
class Mine(torch.Tensor): pass
Pair = namedtuple('Pair', 'a b')
def mappings(): return [Counter('aab'), OrderedDict(b=1, a=2), defaultdict(list, a=[1])]
def tuples(): return [Pair(1, 2), torch.tensor([[3, 4]]).max(dim=1)[:], torch.ones(2, 3).shape]
def numbers_(): return [Size.LARGE, Name.ADA, np.float32(0.5), np.bool_(True), np.str_('x'), True]
def arrays(): return [torch.arange(3).as_subclass(Mine), np.matrix([[1, 2]]), np.ma.array([1, 2])]
def parameter(): return torch.nn.Parameter(torch.ones(2))
"""
    tests = [
        "mappings() == [{'a': 2, 'b': 1}, {'b': 1, 'a': 2}, {'a': [1]}], list(mappings()[1])",
        "tuples()[0], tuples()[1][1].tolist(), tuples()[2], type(tuples()[2]).__name__",
        "numbers_()",
        "[type(value).__name__ for value in arrays()], arrays()[0].tolist(), arrays()[1].tolist()",
        "parameter().requires_grad, type(parameter()).__name__",
    ]
    assert results(run(box, student, *tests)) == [
        "(True, ['b', 'a'])",
        "((1, 2), [1], torch.Size([2, 3]), 'Size')",
        "[3, 'ada', np.float32(0.5), np.True_, 'x', True]",
        "(['Tensor', 'ndarray', 'ndarray'], [0, 1, 2], [[1, 2]])",
        "(False, 'Tensor')",
    ]


def test_objects_keep_to_the_protocols_of_python(box: Sandbox) -> None:
    student = """
class Items:
    def __init__(self, *items): self.items = items
    def __getitem__(self, number): return self.items[number]
class Empty:
    def __len__(self): return 0
class Steps:
    def __iter__(self): yield 1; yield 2
    def __contains__(self, item): return item == 'all'
"""
    test = "i, e, s = Items(3, 4), Empty(), Steps()\n"
    values = "(list(i), 4 in i, 5 in i, bool(i), bool(e), list(s), 'all' in s, 1 in s, list(iter(s)), i[1])"
    without = "try: len(i)\nexcept TypeError as error: print(error)"
    executed = run(box, student, test + values, without)
    assert results(executed)[0] == "([3, 4], True, False, True, False, [1, 2], True, False, [1, 2], 4)"
    assert "object of type 'Items' has no len()" in str(executed.outputs[3])


def test_files_are_put_beside_the_cells_and_only_there(box: Sandbox) -> None:
    student = """
import helpers, parts.more
try: import large
except ImportError: pass
def double(x): return helpers.double(x)
def known(): return sorted(path.name for path in __import__('pathlib').Path().iterdir() if path.is_file())
"""
    files = {
        "helpers.py": b"def double(x): return 2 * x",
        "parts/__init__.py": b"",
        "parts/more.py": b"import ctypes",
        "large.py": None,
        "torch.py": b"raise SystemExit",
        "json.py": b"mine = True",
    }
    judge = "import importlib.util, os\nos.listdir(), importlib.util.find_spec('helpers')"
    executed = run(box, student, "check(double, like=double, on=numbers, points=1)", judge, files=files)
    # `double` is the student's here: the given cells define none
    assert results(executed) == ["1", "([], None)"]
    assert "Not there when this was graded: large.py." in executed.outputs[0][0]["text"]
    assert "The file `parts/more.py` mentions `ctypes`." in [event["what"] for event in executed.events]
    die = "import os\ndef die(): os._exit(1)\ndef again(): import helpers; return helpers.double(4)"
    assert results(run(box, die, "die()", "again()", files=files))[1] == "8"


def test_a_process_that_a_test_costs_is_brought_back_to_the_state_after_the_cells(box: Sandbox) -> None:
    student = "import os\nn = 0\ndef count():\n    global n\n    n += 1\n    return n\ndef die(): os._exit(1)"
    assert results(run(box, student, "count(); count()", "die()", "count()"))[::2] == ["2", "1"]


def test_a_cell_is_not_left_out_because_there_was_no_time_to_run_it_again(box: Sandbox) -> None:
    student = "import os, time\ntime.sleep(2)\ndef die(): os._exit(1)\ndef three(): return 3"
    late = "import time\ntry: die()\nexcept RuntimeError: time.sleep(2.8)\nthree()"
    executed = run(box, student, late, "three()", cell_seconds=3)
    assert results(executed)[0].startswith("TimeLimit: ")
    assert results(executed)[1] == "3"


def test_a_busy_machine_does_not_use_up_the_time_of_a_cell(box: Sandbox) -> None:
    student = """
import time
def count():
    end = time.process_time() + 1.5
    while time.process_time() < end: pass
    return 3
count()
"""
    alone = run(box, student, "count()", cell_seconds=2)
    assert results(alone) == ["3"]
    burn = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(burn) for _ in range(4 * (os.cpu_count() or 1))]
    try:
        busy = run(box, student, "count()", cell_seconds=2)
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert (busy.outputs[1], results(busy)) == (alone.outputs[1], ["3"])


def test_gradients_aliasing_changes_and_layout_are_seen(box: Sandbox) -> None:
    student = """
def cube(x): return x ** 3
def detached(x): return (x ** 3).detach()
def view(x): return x[1:]
def copy(x): return x[1:].clone()
def spoil(x): x += 1; return x - 1
def turned(x): return x.contiguous(memory_format=torch.channels_last)
"""
    tests = [
        "check(cube, like=lambda x: x ** 3, on=numbers, gradients=True, points=1)",
        "check(detached, like=lambda x: x ** 3, on=numbers, gradients=True, points=1)",
        "check(view, like=lambda x: x[1:], on=numbers, shares=True, points=1)",
        "check(copy, like=lambda x: x[1:], on=numbers, shares=True, points=1)",
        "check(spoil, like=lambda x: x, on=numbers, points=1)",
        "turned(torch.rand(2, 3, 4, 5)).stride()",
    ]
    executed = run(box, student, *tests)
    assert results(executed) == ["1", "0", "1", "0", "0", "(60, 1, 15, 3)"]
    assert "no gradient reaches the inputs" in card(executed, 3)["message"]
    assert "changed its input" in card(executed, 6)["message"]


def test_what_a_call_does_to_its_inputs_is_seen(box: Sandbox) -> None:
    student = """
def total(bag, x): return bag["rows"][0].sum() + x.sum()
def grown(bag, x): bag["rows"].append(torch.ones(2)); return total(bag, x)
def rebound(bag, x): bag["rows"][0] = bag["rows"][0].clone() + 1; return total(bag, x) - 3
def added(bag, x): bag["more"] = 3; return total(bag, x)
def marked(bag, x): x.requires_grad_(); return total(bag, x).detach()
def held(bag, x): bag["rows"][0].grad = torch.ones(3); return total(bag, x)
def turned(bag, x): x.unsqueeze_(0); return total(bag, x)
def backward(bag, x):
    y = total(bag, x)
    y.backward(retain_graph=True)
    return y
"""
    given = """
def total_slow(bag, x): return bag["rows"][0].sum() + x.sum()
def case(generator, device):
    return {"rows": [torch.rand(3, generator=generator)]}, torch.rand(4, generator=generator)
def grown_slow(bag, x): bag["rows"].append(torch.ones(2)); bag["more"] = x; return total_slow(bag, x)
"""
    names = ("total", "grown", "rebound", "added", "marked", "held", "turned")
    tests = [f"{given}\ncheck({name}, like=total_slow, on=case, points=1)" for name in names]
    tests.append("check(backward, like=total_slow, on=case, gradients=True, points=1)")
    tests.append("check(grown, like=grown_slow, on=case, points=1)")
    executed = run(box, student, *tests)
    assert results(executed) == ["1"] + 8 * ["0"]
    said = [card(executed, index)["message"] for index in range(3, 11)]
    assert all("the call changed its input" in one for one in said)
    for index, wanted in enumerate(
        (
            "bag['rows'] has 2 items, expected 1",
            "bag['rows'][0][0] is",
            "bag has the keys ['more', 'rows'], expected ['rows']",
            "a tensor in x requires a gradient now",
            "a tensor in bag holds a .grad now",
            "x has the shape (1, 4), expected (4,)",
            "holds a .grad now",
            "bag has the keys ['rows'], expected ['more', 'rows']",
        ),
        start=3,
    ):
        assert wanted in card(executed, index)["text/plain"]


def test_an_answer_beyond_the_limit_of_the_machine_is_reported(box: Sandbox) -> None:
    student = "def double(x): return x + x"
    given = "def slow(x): return torch.stack([one * 2 for one in x])"
    race = "race(double, against=slow, on=lambda g, d: torch.rand(200, generator=g), points=1"
    tests = [f"{given}\n{race}, at_least={{'cpu': 2}}, bytes=1e9)"]
    executed = run(box, student, *tests)
    assert results(executed) == ["0"]
    assert card(executed)["outcome"] == "undecided"
    assert [event["what"] for event in executed.events] == ["The answer was faster than this machine can be."]


def test_costs_are_counted_where_the_work_is_done(box: Sandbox) -> None:
    student = "def double(x): return x + x\ndef wasteful(x): return (x.clone() + x.clone()) * 1"
    tests = [
        "str(costs(wasteful, torch.rand(8)).operations.total())",
        "check(wasteful, like=lambda x: 2 * x, on=numbers, at_most={'copies': 0}, points=1)",
        "costs(lambda x: wasteful(wasteful(x)).neg(), torch.rand(8)).figure('operations')",
    ]
    assert results(run(box, student, *tests)) == ["'4'", "0", "9"]


def test_result_and_costs_are_those_of_one_call(box: Sandbox) -> None:
    student = """
seen = []
def double(x):
    seen.append(x.numpy().tobytes())
    return 2 * x if seen.count(seen[-1]) == 1 else x
def wasteful(x):
    seen.append(x.numpy().tobytes())
    return (x.clone() + x.clone()) * 1 if seen.count(seen[-1]) == 1 else x
"""
    tests = [
        "check(double, like=lambda x: 2 * x, on=numbers, at_most={'operations': 1}, shares=False, points=1)",
        "check(wasteful, like=lambda x: 2 * x, on=numbers, at_most={'operations': 1}, points=1)",
        "len(seen) - len(set(seen))",
    ]
    assert results(run(box, student, *tests)) == ["1", "0", "0"]


def test_the_work_of_threads_is_counted(box: Sandbox) -> None:
    student = """
import queue, threading
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1)
pool.submit(print).result()
todo, done = queue.Queue(), queue.Queue()
def work():
    while True: done.put(todo.get().clone().clone())
threading.Thread(target=work, daemon=True).start()
def pooled(x): return pool.submit(lambda: x.clone() + 1).result()
def queued(x):
    todo.put(x)
    return done.get()
"""
    tests = [f"costs({name}, torch.rand(8)).operations.total()" for name in ("pooled", "queued")]
    assert results(run(box, student, *tests)) == ["2", "2"]


FORGING_COSTS = [
    "import collections\ncollections.Counter.__setitem__ = lambda *_: None",
    "watching = vars(torch.utils)['_python' + '_dispatch']",
    "%time 1\nimport importlib",
]
FORGING_BOTH = [
    "from autograder.sandbox import encode",
    "import sys\nloaded = sys.modules['autograder.' + 'sandbox.encode']",
]


@pytest.mark.parametrize("forge", [*FORGING_COSTS, *FORGING_BOTH])
def test_costs_and_sharing_need_a_look_where_code_could_forge_them(box: Sandbox, forge: str) -> None:
    student = f"import torch\ndef twice(x): return 2 * x\n{forge}"
    asked = ["at_most={'copies': 0}", "shares=False", "gradients=True"]
    tests = [f"check(twice, like=double, on=numbers, {more}, points=1)" for more in asked]
    executed = run(box, student, *tests)
    found = [(shown["outcome"], shown["right"]) for shown in (card(executed, index) for index in (2, 3, 4))]
    assert found[0] in [("undecided", True), ("error", False)]
    assert found[1] == (("undecided", True) if forge in FORGING_BOTH else ("passed", True))
    assert found[2] == ("passed", True)


def test_tests_look_up_the_names_of_the_release_and_no_others(box: Sandbox) -> None:
    student = (
        "def answer(x): return 2 * x\ndef check(*_, points, **__): return points\nlike = on = helper = print"
    )
    sources = [
        ("test", "check(answer, like=1, on=2, points=1)"),
        ("given", GIVEN),
        ("test", "check(answer, like=lambda x: 2 * x, on=numbers, points=1)"),
        ("test", "helper(1)"),
        ("test", "print(repr('x')) or 3"),
    ]
    cells = [
        {"index": i, "role": role, "source": source, "grade_id": f"t{i}", "exercise": "e"}
        | {"names": ["answer", "print"] if role == "test" else []}
        for i, (role, source) in enumerate([("student", student), *sources])
    ]
    outputs = box.run(cells, assignment="here").outputs
    assert outputs[1][-1]["evalue"] == "name 'check' is not defined"
    assert outputs[3][-1]["data"]["text/plain"] == "1"
    assert outputs[4][-1]["evalue"] == "name 'helper' is not defined"
    assert [outputs[5][0]["text"], outputs[5][-1]["data"]["text/plain"]] == ["'x'\n", "3"]


def test_errors_warnings_and_prints_come_across(box: Sandbox) -> None:
    student = """
import warnings
class Own(ValueError): pass
def bad(x): raise Own('no such thing')
def todo(x): raise NotImplementedError
def chatty(x): warnings.warn('careful'); print('hello'); return 2 * x
"""
    tests = [
        "check(bad, like=double, on=numbers, raises=ValueError, points=1)",
        "check(bad, like=double, on=numbers, points=1)",
        "check(todo, like=double, on=numbers, points=1)",
        "check(chatty, like=double, on=numbers, points=1)",
        "check(missing, like=double, on=numbers, points=1)",
    ]
    executed = run(box, student, *tests)
    assert results(executed)[:4] == ["1", "0", "0", "1"]
    assert "Own: no such thing" in card(executed, 3)["message"]
    assert card(executed, 4)["outcome"] == "not attempted"
    shown = str(executed.outputs[5])
    assert "UserWarning: careful" in shown and "hello" in shown
    assert results(executed)[4] == "NameError: name 'missing' is not defined"


def test_a_process_that_dies_costs_one_test(box: Sandbox) -> None:
    student = "import os\ndef dies(x): os._exit(1)\ndef lives(x): return 2 * x"
    tests = [f"check({name}, like=double, on=numbers, points=1)" for name in ("dies", "lives")]
    executed = run(box, student, *tests)
    assert results(executed) == ["0", "1"]
    assert "ended the Python process" in card(executed)["message"]


def test_threads_that_an_earlier_cell_started_go_on_working(box: Sandbox) -> None:
    student = """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
print(list(pool.map(abs, [-1, -2])))
def double(x): return sum(pool.map(lambda part: part, [x, x]))
"""
    assert results(run(box, student, "check(double, like=lambda x: 2 * x, on=numbers, points=1)")) == ["1"]


def forged(**fields: object) -> dict:
    """A result that claims to be a tensor."""
    tensor = {"node": "tensor", "dtype": "float32", "device": "cpu", "shape": [2], "strides": [1]}
    return {"message": "Returned", "result": tensor | fields}


def returned(result: object, **fields: object) -> dict:
    """A message with a result."""
    return {"message": "Returned", "result": result} | fields


SENDS = """
from autograder.sandbox.channel import Channel
real = Channel.send
def send(self, message, *rest):
    return real(self, {nonsense!r} if hasattr(message, 'result') else message)
"""
LIES = "Channel.send = send\ndef answer(x): return x\n"


@pytest.mark.parametrize(
    "nonsense",
    [
        forged(shape=[1 << 40], buffer=[0, 4 << 40]),
        forged(strides=[1 << 50], buffer=[0, 8]),
        forged(storage=0, offset=1 << 40),
        forged(storage=0, offset=0, shape=[1 << 40]),
        forged(storage=99, offset=0),
        forged(dtype="load", buffer=[0, 8]),
        forged(shape=[1] * 65, strides=[1] * 65, buffer=[0, 4]),
        returned({"node": "array", "dtype": "|O8", "shape": [1], "buffer": [0, 0]}),
        returned({"node": "setting", "kind": "dtype", "name": "load"}),
        returned({"node": "integer", "digits": "no number"}),
        returned("right", costs={"operations": {}, "views": {}, "bytes": -5}),
    ],
)
def test_an_answer_that_is_no_answer_costs_its_points_only(box: Sandbox, nonsense: object) -> None:
    student = SENDS.format(nonsense=nonsense) + LIES
    tests = ["check(answer, like=double, on=numbers, at_most={'copies': 9}, points=1)", "1 + 1"]
    assert results(run(box, student, *tests)) == ["0", "2"]


@pytest.mark.parametrize(
    ("nonsense", "why"),
    [
        ({"message": "Returned"}, "Object missing required field `result`"),
        (returned(1, points=2), "Object contains unknown field `points`"),
        (returned(1, graph="first"), "Expected `int | null`, got `str`"),
        (returned({"node": "tensor", "dtype": 3}), "Expected `str`, got `int`"),
        (returned({"node": "pickle", "v": "gASV"}), "Invalid value 'pickle'"),
        (returned({"node": "sequence", "kind": "list", "items": 7}), "Expected `array`, got `int`"),
        ({"message": "Finished", "seconds": {}}, "Invalid value 'Finished'"),
        ({}, "Object missing required field `message`"),
        ([1, 2], "Expected `object`, got `array`"),
        (7, "Expected `object`, got `int`"),
    ],
)
def test_a_message_without_its_schema_ends_that_process_and_costs_no_other_exercise(
    box: Sandbox, nonsense: object, why: str
) -> None:
    student = f"""{SENDS.format(nonsense=nonsense)}
def answer(x):
    Channel.send = send
    return x
def honest(x): return 2 * x
"""
    tests = [f"check({name}, like=double, on=numbers, points=1)" for name in ("answer", "honest")]
    executed = run(box, student, *tests)
    assert results(executed) == ["0", "1"]
    said = card(executed)["message"]
    assert "ended the Python process that it ran in: it sent a message that does not fit its schema" in said
    assert why in said
    assert any(why in event["what"] for event in executed.events if event["cell"] == "t2")
    assert not any(event["cell"] == "t3" for event in executed.events)


DEEP = "def answer(x):\n    r = 1\n    for _ in range({depth}): r = [r]\n    return r\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("def answer(x): return [0] * 600_000", "Expected `array` of length <= 500000"),
        ("def answer(x): return [[0] * 300_000] * 2", "too many or too deeply nested parts"),
        (DEEP.format(depth=60), "too many or too deeply nested parts"),
        ("def answer(x): return [torch.zeros(1000, 1000)] * 70", "which is too much"),
        (
            "def answer(x): return [torch.zeros(1, 1, device='meta').expand(2, 2), 'x' * (17 << 20)]",
            "too much",
        ),
    ],
)
def test_the_decoder_has_limits(box: Sandbox, answer: str, why: str) -> None:
    executed = run(box, answer, "check(answer, like=double, on=numbers, points=1)", "1 + 1")
    assert results(executed) == ["0", "2"]
    assert why in str(executed.events) + str(executed.outputs[2])


SUMS = "race(sums, against=sums_slow, on=numbers, at_least={'cpu': 4}, points=2)"


def test_a_race_tells_fast_from_slow(box: Sandbox) -> None:
    fast = run(box, "def sums(rows): return rows.sum(1)", SUMS)
    slow = run(box, "def sums(rows): return torch.stack([row.sum() for row in rows])", SUMS)
    assert (card(fast)["outcome"], results(fast)) == ("passed", ["2"])
    assert (card(slow)["outcome"], results(slow)) == ("failed", ["0"])
    assert len(card(fast)["laps"][0]["logs"]) >= 3
    assert "laps" in card(slow), card(slow)["message"]
    assert 0.6 < card(slow)["laps"][0]["ratio"] < 1.4
    assert fast.noise["samples"] > 0


def test_where_launches_stray_only_their_signs_count(box: Sandbox) -> None:
    box.strays.add([1.0] * 10, true=0.0)
    fast = run(box, "def sums(rows): return rows.sum(1)", SUMS)
    assert card(fast)["outcome"] == "passed"
    assert len(card(fast)["laps"][0]["logs"]) >= 11
    assert "only their signs count" in card(fast)["message"]
    assert fast.noise["signs_only"] and fast.noise["strays"] > 0.05
    box.strays.add([0.0] * 200, true=0.0)
    fast = run(box, "def sums(rows): return rows.sum(1)", SUMS)
    assert 3 <= len(card(fast)["laps"][0]["logs"]) < 11
    assert "only their signs count" not in card(fast)["message"]
    assert not fast.noise["signs_only"]


TRICKS = {
    "a cache of contents": """
seen = {}
def sums(rows):
    key = rows.shape[0], float(rows[0, 0])
    if key not in seen: seen[key] = torch.stack([row.sum() for row in rows])
    return seen[key]
""",
    "work put off until somebody looks": """
from autograder.sandbox import student
real = student.Results.node
def node(self, value):
    return real(self, value() if callable(value) else value)
student.Results.node = node
def sums(rows):
    return lambda: torch.stack([row.sum() for row in rows])
""",
    "work done while the inputs are unpacked": """
from autograder.sandbox import student
real = student.Arguments.value
ready = {}
def value(self, node):
    made = real(self, node)
    if isinstance(made, torch.Tensor): ready[made.data_ptr()] = torch.stack([row.sum() for row in made])
    return made
student.Arguments.value = value
def sums(rows): return ready[rows.data_ptr()]
""",
    "a helper process": """
import os, threading
from multiprocessing import get_context
def work(pipe):
    while True: pipe.send(torch.stack([row.sum() for row in pipe.recv()]))
here, there = get_context('fork').Pipe()
def sums(rows):
    global helper
    if 'helper' not in globals():
        helper = get_context('fork').Process(target=work, args=(there,), daemon=True)
        helper.start()
    here.send(rows)
    return here.recv()
""",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_a_race_is_not_won_by(box: Sandbox, trick: str) -> None:
    executed = run(box, TRICKS[trick], SUMS)
    assert card(executed)["outcome"] in ("failed", "error")
    assert float(results(executed)[0]) <= 0.2


def test_what_a_result_shares_in_a_race_is_what_it_shares_in_a_check(box: Sandbox) -> None:
    copied = "race(copied, against=copied_slow, on=numbers, at_least={'cpu': 4}, points=2)"
    only_timed = "rows if sys._getframe(1).f_code.co_name == 'on_race_call' else rows.clone()"
    always = run(box, "def copied(rows): return rows", copied)
    never = run(box, "def copied(rows): return rows.clone()", copied)
    trick = run(box, f"import sys\n\ndef copied(rows): return {only_timed}", copied)
    assert [card(done)["outcome"] for done in (always, never, trick)] == ["passed", "passed", "failed"]
    assert "shares memory with its input" in card(trick)["message"]


class Noisy(Sandbox):
    """A machine that finds itself too noisy when it looks for the first time."""

    times = 1

    def _check_machine(self, control: Channel) -> None:
        super()._check_machine(control)
        self.times -= 1
        if self.times >= 0:
            self._noisy = "this machine is too noisy to judge."


def test_races_wait_until_a_noisy_machine_is_quiet(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "AGAIN_SECONDS", 0.1)
    with Noisy() as box:
        executed = run(box, "def sums(rows): return rows.sum(1)", SUMS)
    assert (card(executed)["outcome"], results(executed)) == ("passed", ["2"])
    assert caplog.text.count("Races wait: this machine is too noisy to judge.") == 1


def test_races_do_not_wait_for_ever_but_the_next_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "QUIET_SECONDS", 0)
    student = "def sums(rows): return rows.sum(1)"
    with Noisy() as box:
        first, second = run(box, student, SUMS, "1"), run(box, student, SUMS, only=[2], races="again")
    assert (card(first)["outcome"], first.undecided) == ("undecided", [2])
    assert card(second)["outcome"] == "passed"
    both = first.merged(second)
    assert (both.undecided, results(both)) == ([], ["2", "1"])


def test_waiting_for_the_machine_is_not_the_time_of_a_submission(box: Sandbox) -> None:
    # A race that ends soon, however busy the machine is.
    student = """
calls = 0
def sums(rows):
    global calls
    calls += 1
    if calls > 5: raise ValueError('enough')
    return rows.sum(1)
"""
    run(box, student, SUMS)  # the machine has measured itself, which would wait too
    limits = {"cell_seconds": 6, "notebook_seconds": 6}
    others = MachineLock()
    others.take(len(cores()) - 1)  # one is left, on which answers can be checked, but nobody can time
    release = threading.Timer(8, others.release)
    release.start()
    executed = run(box, student, SUMS, "1", **limits)
    release.join()
    assert results(executed) == ["0", "1"]
    assert "your function raised ValueError: enough" in card(executed)["message"]
    assert executed.seconds["tests"] < 6 < executed.seconds["total"]


def test_nothing_lives_on_and_nothing_is_left_for_the_next(box: Sandbox) -> None:
    leave = """
import os, subprocess, tempfile
open(os.path.join(tempfile.gettempdir(), 'note'), 'w').write('x')
open('/dev/shm/note', 'w').write('x')
subprocess.Popen(['sleep', '987'], start_new_session=True)
os.setpriority(os.PRIO_PROCESS, 0, 10)
def double(x): return 2 * x
"""
    look = """
def double(x): return 2 * x
import os, tempfile
def found(): return [os.path.exists(os.path.join(p, 'note')) for p in (tempfile.gettempdir(), '/dev/shm')]
def others(): return [open(f'/proc/{n}/cmdline').read() for n in os.listdir('/proc') if n.isdigit()]
def nice(): return os.getpriority(os.PRIO_PROCESS, 0)
"""
    run(box, leave, "double(1)")
    executed = run(box, look, "found()", "any('sleep' in text for text in others())", "nice()")
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert results(executed) == ["[False, False]", "False", str(mine)]


def test_without_bubblewrap_it_says_so_and_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with Sandbox() as box:
        assert "bubblewrap was not found" in box.warning
        executed = run(box, "def sums(rows): return rows.sum(1)", SUMS)
        assert results(executed) == ["2"]
        assert not executed.sandboxed
    from autograder.sandbox import SandboxError

    with pytest.raises(SandboxError, match="apt install bubblewrap"):
        Sandbox(require=True)


DEPTHS = """
import sys
from autograder.sandbox.channel import Channel

depths = set()
real_send = Channel.send

def send(self, message, *rest, **more):
    frame, calls = sys._getframe(1), 0
    while frame is not None and frame.f_code.co_filename != '<cell>':
        calls += '/autograder/' in frame.f_code.co_filename
        frame = frame.f_back
    if frame is not None:  # below a line of a cell of the instructor's, so in the judge
        depths.add((type(message).__name__, calls))
    return real_send(self, message, *rest, **more)

Channel.send = send
"""


def test_from_a_test_to_the_other_process_it_is_five_calls_at_most(box: Sandbox) -> None:
    """An auditor follows five calls from a line of a test cell to where the judge talks to the answer."""
    student = f"def sums(rows): return rows.sum(1)\ndef cube(x): return x ** 3\nif 0:\n    {SUMS}"
    tests = [
        DEPTHS,
        "check(cube, like=lambda x: x ** 3, on=numbers, gradients=True, points=1)",
        "check(cube, like=lambda x: x ** 3, on=numbers, at_most={'copies': 0}, shares=False, points=1)",
        "check(cube, like=lambda x: x ** 3, on=lambda g, d: (1, 2), raises=TypeError, points=1)",
        SUMS,
        "max(calls for _, calls in depths), sorted(depths)",
    ]
    most, seen = eval(results(run(box, student, *tests))[-1])
    assert most <= 5, [step for step in seen if step[1] > 5]
    kinds = {"Call", "Backward", "Look", "Fork", "PrepareRace", "RaceCall"}
    assert kinds <= {kind for kind, _ in seen}
