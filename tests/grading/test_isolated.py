"""A student's code in one process, the tests in another: what reaches across, and what does not."""

import os
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest
from grading_class import cells

from autograder.judging.outcome import MIME
from autograder.sandbox import Executed, Sandbox
from autograder.sandbox.racing.machine_lock import MachineLock, cores
from autograder.sandbox.submissions import supervisor
from autograder.sandbox.walls import bubblewrap, proof

pytestmark = [pytest.mark.slow, pytest.mark.attack]

GIVEN = """
import numpy as np
import torch
from autograder import check, costs, race

def numbers(generator, device):
    return torch.rand(int(torch.randint(300, 400, (), generator=generator)), 40, generator=generator)

def double(x): return 2 * x
def sums_slow(rows): return torch.stack([row.sum() for row in rows])
def copied_slow(rows): return torch.stack([row.clone() for row in rows])
"""


def run(box: Sandbox, student: str, *tests: str, **options: object) -> Executed:
    """A notebook: the given cell, one of the student's, and tests."""
    work = cells(("given", GIVEN), ("student", student), *(("test", test) for test in tests))
    return box.run(work, assignment="here", **options)


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


def test_objects_are_used_as_in_python(box: Sandbox) -> None:
    student = """
class Counter:
    start = 10
    def __init__(self, step=1): self.step, self.n = step, 0
    def __call__(self): self.n += self.step; return self.n
    def merged(self, other): return self.n + other.n
    def __len__(self): return self.n
    def __getitem__(self, i): return i * self.n
class Items:
    def __init__(self, *items): self.items = items
    def __getitem__(self, number): return self.items[number]
class Empty:
    def __len__(self): return 0
class Steps:
    def __iter__(self): yield 1; yield 2
    def __contains__(self, item): return item == 'all'
"""
    counters = "a, b = Counter(), Counter(step=5)\na(); b(); b()\n"
    counters += "(a.merged(b), len(b), b[3], a.start, a.step, type(a).__name__)"
    items = "i, e, s = Items(3, 4), Empty(), Steps()\n"
    items += "(list(i), 4 in i, 5 in i, bool(i), bool(e), list(s), 'all' in s, 1 in s, list(iter(s)), i[1])"
    assert results(run(box, student, counters, items, "len(i)")) == [
        "(11, 10, 30, 10, 1, 'Counter')",
        "([3, 4], True, False, True, False, [1, 2], True, False, [1, 2], 4)",
        "TypeError: object of type 'Items' has no len()",
    ]


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
def single(): return torch.ones((1, 4), dtype=torch.int64)[:, 1], np.ones((1, 4))[:, 1]  # of any stride
"""
    wanted = {
        "mappings() == [{'a': 2, 'b': 1}, {'b': 1, 'a': 2}, {'a': [1]}]": "True",
        "list(mappings()[1])": "['b', 'a']",
        "tuples()[0], tuples()[1][1].tolist(), tuples()[2]": "((1, 2), [1], torch.Size([2, 3]))",
        "numbers_()": "[3, 'ada', np.float32(0.5), np.True_, 'x', True]",
        "[type(value).__name__ for value in arrays()]": "['Tensor', 'ndarray', 'ndarray']",
        "arrays()[0].tolist(), arrays()[1].tolist()": "([0, 1, 2], [[1, 2]])",
        "[one.tolist() for one in single()]": "[[1], [1.0]]",
        "parameter().requires_grad, type(parameter()).__name__": "(False, 'Tensor')",
    }
    assert results(run(box, student, *wanted)) == list(wanted.values())


def test_files_are_put_beside_the_cells_and_only_there(box: Sandbox) -> None:
    student = """
import os, helpers, parts.more
try: import large
except ImportError: pass
def die(): os._exit(1)
def eight(): import helpers; return helpers.double(4)
"""
    files = {
        "helpers.py": b"def double(x): return 2 * x",
        "parts/__init__.py": b"",
        "parts/more.py": b"import ctypes",
        "large.py": None,
        "torch.py": b"raise SystemExit",
    }
    judge = "import importlib.util, os\nos.listdir(), importlib.util.find_spec('helpers')"
    executed = run(box, student, "eight()", judge, "die()", "eight()", files=files)
    first, seen, _, again = results(executed)
    assert (first, seen, again) == ("8", "([], None)", "8")
    assert "Not there when this was graded: large.py." in executed.outputs[0][0]["text"]
    assert "The file `parts/more.py` mentions `ctypes`." in [event["what"] for event in executed.events]


def test_a_process_that_dies_costs_one_test_and_comes_back_as_it_was_after_the_cells(box: Sandbox) -> None:
    student = "import os\nn = 0\ndef count():\n    global n\n    n += 1\n    return n\n"
    student += "def dies(x): os._exit(1)\ndef lives(x): return 2 * x"
    checks = [f"check({name}, like=double, on=numbers, points=1)" for name in ("dies", "lives")]
    executed = run(box, student, "count(); count()", *checks, "count()")
    assert results(executed) == ["2", "0", "1", "1"]
    assert "ended the Python process" in card(executed, 3)["message"]


def test_a_cell_is_not_left_out_because_there_was_no_time_to_run_it_again(box: Sandbox) -> None:
    student = "import os, time\ntime.sleep(3)\ndef die(): os._exit(1)\ndef three(): return 3"
    late = "import time\ntry: die()\nexcept RuntimeError: time.sleep(3.6)\nthree()"
    executed = run(box, student, late, "three()", cell_seconds=4)
    assert results(executed)[0].startswith("TimeLimit: ") and results(executed)[1] == "3"


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
    with ExitStack() as others:
        for _ in range(4 * (os.cpu_count() or 1)):
            others.callback(subprocess.Popen([sys.executable, "-c", "while True: pass"]).kill)
        busy = run(box, student, "count()", cell_seconds=2)
    assert (busy.outputs[1], results(busy)) == (alone.outputs[1], ["3"])


def test_gradients_and_layout_come_across(box: Sandbox) -> None:
    student = "def cube(x): return x ** 3\ndef detached(x): return (x ** 3).detach()\n"
    student += "def turned(x): return x.contiguous(memory_format=torch.channels_last)"
    asked = "check({}, like=lambda x: x ** 3, on=numbers, gradients=True, points=1)"
    tests = [asked.format("cube"), asked.format("detached"), "turned(torch.rand(2, 3, 4, 5)).stride()"]
    executed = run(box, student, *tests)
    assert results(executed) == ["1", "0", "(60, 1, 15, 3)"]
    assert "no gradient reaches the inputs" in card(executed, 3)["message"]


def test_what_a_call_does_to_its_inputs_is_seen(box: Sandbox) -> None:
    right = "def total(bag, x): return bag['rows'][0].sum() + x.sum()"
    given = f"""
{right}
def grown(bag, x): bag["rows"].append(torch.ones(2)); bag["more"] = x; return total(bag, x)
def case(generator, device):
    return {{"rows": [torch.rand(3, generator=generator)]}}, torch.rand(4, generator=generator)
"""
    changed = {
        "bag['rows'].append(torch.ones(2))": "bag['rows'] has 2 items, expected 1",
        "bag['rows'][0] = bag['rows'][0].clone() + 1": "bag['rows'][0][0] is",
        "bag['more'] = 3": "bag has the keys ['more', 'rows'], expected ['rows']",
        "x.requires_grad_()": "a tensor in x requires a gradient now",
        "bag['rows'][0].grad = torch.ones(3)": "a tensor in bag holds a .grad now",
        "x.unsqueeze_(0)": "x has the shape (1, 4), expected (4,)",
        "x.detach().zero_()": "x[0] is 0",
        "found.backward(retain_graph=True)": "holds a .grad now",
    }
    student, tests = right, [f"{given}\ncheck(total, like=total, on=case, points=1)"]
    for number, change in enumerate(changed):
        student += f"\ndef answer{number}(bag, x): found = total(bag, x); {change}; return found"
        gradients = "backward" in change
        tests.append(f"check(answer{number}, like=total, on=case, gradients={gradients}, points=1)")
    tests.append("check(answer0, like=grown, on=case, points=1)")
    executed = run(box, student, *tests)
    assert results(executed) == ["1"] + 9 * ["0"]
    said = [*changed.values(), "bag has the keys ['rows'], expected ['more', 'rows']"]
    for index, wanted in enumerate(said, start=3):
        assert "the call changed its input" in card(executed, index)["message"]
        shown = card(executed, index)["text/plain"]
        assert wanted in shown and ": bag = dict of 1, x = tensor(" in shown


def test_an_answer_beyond_the_limit_of_the_machine_is_reported(box: Sandbox) -> None:
    student = "def double(x): return x + x"
    given = "def slow(x): return torch.stack([one * 2 for one in x])"
    race = "race(double, against=slow, on=lambda g, d: torch.rand(200, generator=g), points=1"
    executed = run(box, student, f"{given}\n{race}, at_least={{'cpu': 2}}, bytes=1e9)")
    assert (results(executed), card(executed)["outcome"]) == (["0"], "undecided")
    assert [event["what"] for event in executed.events] == ["The answer was faster than this machine can be."]


def test_costs_are_counted_where_the_work_is_done(box: Sandbox) -> None:
    student = "def double(x): return x + x\ndef wasteful(x): return (x.clone() + x.clone()) * 1"
    tests = [
        "str(costs(wasteful, torch.rand(8)).operations.total())",
        "check(wasteful, like=lambda x: 2 * x, on=numbers, at_most={'copies': 0}, points=1)",
        "costs(lambda x: wasteful(wasteful(x)).neg(), torch.rand(8)).figure('operations')",
    ]
    assert results(run(box, student, *tests)) == ["'4'", "0", "9"]


def test_costs_need_a_look_where_code_could_forge_them_and_sharing_is_seen(box: Sandbox) -> None:
    asked = ["at_most={'copies': 0}", "shares=False", "gradients=True"]
    tests = [f"check(twice, like=double, on=numbers, {more}, points=1)" for more in asked]
    for forge, counted in [
        ("import collections\ncollections.Counter.__setitem__ = lambda *_: None", "passed"),
        ("import autograder.sandbox.wire.encode", "undecided"),
    ]:
        executed = run(box, f"import torch\ndef twice(x): return 2 * x\n{forge}", *tests)
        found = [(card(executed, index)["outcome"], card(executed, index)["right"]) for index in (2, 3, 4)]
        assert found == [(counted, True), ("passed", True), ("passed", True)]


def test_tests_look_up_the_names_of_the_release_and_no_others(box: Sandbox) -> None:
    student = "def answer(x): return 2 * x\nlike = on = helper = print\n"
    student += "def check(*_, points, **__): return points"
    work = cells(
        ("student", student),
        ("test", "check(answer, like=1, on=2, points=1)"),
        ("given", GIVEN),
        ("test", "check(answer, like=lambda x: 2 * x, on=numbers, points=1)"),
        ("test", "helper(1)"),
        ("test", "print(repr('x')) or 3"),
        exercise="e",
        names=["answer", "print"],
    )
    outputs = box.run(work, assignment="here").outputs
    assert outputs[1][-1]["evalue"] == "name 'check' is not defined"
    assert outputs[3][-1]["data"]["text/plain"] == "1"
    assert outputs[4][-1]["evalue"] == "name 'helper' is not defined"
    assert [outputs[5][0]["text"], outputs[5][-1]["data"]["text/plain"]] == ["'x'\n", "3"]


returned = lambda result, **fields: {"message": "Returned", "result": result} | fields
# A process that sends something else in place of what a function returns, by its number.
SENDS = """
from autograder.sandbox.wire.channel import Channel
nonsense = {nonsense!r}
real, chosen = Channel.send, None
def send(self, message, *rest):
    if chosen is None or not hasattr(message, 'result'): return real(self, message, *rest)
    return real(self, nonsense[chosen])
Channel.send = send
def honest(x): return 2 * x
"""


def test_what_is_no_message_or_no_result_costs_no_other_exercise(box: Sandbox) -> None:
    """A message without its schema ends the process, too."""
    tensor = {"node": "tensor", "dtype": "float32", "device": "cpu", "shape": [2], "strides": [1]}
    no_results = [
        tensor | {"shape": [1 << 40], "buffer": [0, 4 << 40]},
        tensor | {"strides": [1 << 50], "buffer": [0, 8]},
        tensor | {"storage": 0, "offset": 1 << 40},
        tensor | {"storage": 0, "offset": 0, "shape": [1 << 40]},
        tensor | {"storage": 99, "offset": 0},
        tensor | {"dtype": "load", "buffer": [0, 8]},
        tensor | {"shape": [1] * 65, "strides": [1] * 65, "buffer": [0, 4]},
        {"node": "array", "dtype": "|O8", "shape": [1], "buffer": [0, 0]},
        {"node": "plain", "kind": "dtype", "data": b"load"},
        {"node": "plain", "kind": "integer", "data": b"no number"},
    ]
    why = {
        "Object missing required field `result`": {"message": "Returned"},
        "Object contains unknown field `points`": returned(1, points=2),
        "Expected `int | null`, got `str`": returned(1, graph="first"),
        "Expected `str`, got `int`": returned({"node": "tensor", "dtype": 3}),
        "Invalid value 'pickle'": returned({"node": "pickle", "v": "gASV"}),
        "Expected `array`, got `int`": returned({"node": "collection", "kind": "list", "items": 7}),
        "Invalid value 'Finished'": {"message": "Finished", "seconds": {}},
        "Object missing required field `message`": {},
        "Expected `object`, got `array`": [1, 2],
        "Expected `object`, got `int`": 7,
    }
    nonsense = [*why.values(), *map(returned, no_results)]
    nonsense.append(returned("right", costs={"operations": {}, "views": {}, "bytes": -5}))
    student, names = SENDS.format(nonsense=nonsense), [f"answer{number}" for number in range(len(nonsense))]
    for number, name in enumerate(names):
        student += f"def {name}(x): global chosen; chosen = {number}; return x\n"
    check = "check({}, like=double, on=numbers, points=1{})"
    checks = [check.format(name, ", at_most={'copies': 9}") for name in names]
    executed = run(box, student, *checks, check.format("honest", ""), most_restarts=len(names))
    assert results(executed) == [*["0"] * len(names), "1"]
    for index, reason in enumerate(why, start=2):
        said = card(executed, index)["message"]
        assert "ended the Python process that it ran in: it sent a message that does not fit its" in said
        assert reason in said
        seen = [event["what"] for event in executed.events if event["cell"] == f"t{index}"]
        assert len(seen) == 1 and reason in seen[0]
    assert f"t{2 + len(names)}" not in [event["cell"] for event in executed.events]


def test_the_decoder_has_limits(box: Sandbox) -> None:
    answers = [
        ("return [0] * 600_000", "Expected `array` of length <= 500000"),
        ("return [[0] * 300_000] * 2", "too many or too deeply nested parts"),
        ("r = 1\n    for _ in range(60): r = [r]\n    return r", "too many or too deeply nested parts"),
        ("return [torch.zeros(1000, 1000)] * 70", "which is too much"),
        ("return [torch.zeros(1, 1, device='meta').expand(2, 2), 'x' * (17 << 20)]", "too much"),
    ]
    student = "".join(f"def answer{i}(x):\n    {body}\n" for i, (body, _) in enumerate(answers))
    checks = [f"check(answer{i}, like=double, on=numbers, points=1)" for i in range(len(answers))]
    executed = run(box, student, *checks, "1 + 1")
    assert results(executed) == [*["0"] * len(answers), "2"]
    for index, (_, why) in enumerate(answers, start=2):
        events = [event["what"] for event in executed.events if event["cell"] == f"t{index}"]
        assert why in str(events) + str(executed.outputs[index])


RACE = "race({}, against={}_slow, on=numbers, at_least={{'cpu': 4}}, points=2)"
SUMS = RACE.format("sums", "sums")
FAST = "def sums(rows): return rows.sum(1)\n"


def test_a_race_tells_fast_from_slow_and_sees_what_a_result_shares(box: Sandbox) -> None:
    student = f"""{FAST}import sys
def slow(rows): return torch.stack([row.sum() for row in rows])
def same(rows): return rows
def cloned(rows): return rows.clone()
def tricky(rows): return rows if sys._getframe(1).f_code.co_name == 'on_race_call' else rows.clone()
"""
    races = [SUMS, RACE.format("slow", "sums")]
    races += [RACE.format(name, "copied") for name in ("same", "cloned", "tricky")]
    executed = run(box, student, *races)
    outcomes = [card(executed, index)["outcome"] for index in range(2, 7)]
    assert outcomes == ["passed", "failed", "passed", "passed", "failed"]
    assert results(executed)[:2] == ["2", "0"] and len(card(executed)["laps"][0]["logs"]) >= 3
    assert "laps" in card(executed, 3), card(executed, 3)["message"]
    assert 0.6 < card(executed, 3)["laps"][0]["ratio"] < 1.4
    assert "shares memory with its input" in card(executed, 6)["message"]
    assert executed.noise["spread"] > 0


def test_arrays_of_a_race_hold_their_values(box: Sandbox) -> None:
    inputs = """import numpy as np
def arrays(generator, device):
    values = torch.randint(256, (20,), generator=generator)
    return ([np.full(3000, int(value), np.uint8) for value in values],)
def firsts_slow(found):
    assert all((array == array[-1]).all() for array in found), "memory that is no longer theirs"
    return [int(array[0]) for array in found]"""
    work = cells(
        ("given", f"{GIVEN}\n{inputs}"),
        ("student", "def firsts(found): return [int(array[0]) for array in found]"),
        ("test", "race(firsts, against=firsts_slow, on=arrays, at_least={'cpu': 1.1}, points=2)"),
    )
    executed = box.run(work, assignment="here")
    assert results(executed) == ["2"], card(executed)["message"]


def test_where_launches_stray_only_their_signs_count(box: Sandbox) -> None:
    box.strays.add([1.0] * 10, true=0.0)
    fast = run(box, FAST, SUMS)
    assert card(fast)["outcome"] == "passed" and len(card(fast)["laps"][0]["logs"]) >= 11
    assert "only their signs count" in card(fast)["message"]
    assert fast.noise["signs_only"] and fast.noise["strays"] > 0.05
    box.strays.add([0.0] * 200, true=0.0)
    fast = run(box, FAST, SUMS)
    assert 3 <= len(card(fast)["laps"][0]["logs"]) < 11
    assert "only their signs count" not in card(fast)["message"] and not fast.noise["signs_only"]


class Noisy(Sandbox):
    """A machine that finds itself too noisy so many times, and then quiet, however noisy it is."""

    times = 1

    def _check_machine(self, control) -> None:
        super()._check_machine(control)
        self.times -= 1
        self._noisy = "this machine is too noisy to judge." if self.times >= 0 else None


def test_races_wait_for_a_quiet_machine_but_not_for_ever(monkeypatch, caplog) -> None:
    monkeypatch.setattr(supervisor, "QUIET_SECONDS", 0)
    with Noisy() as box:
        first, again = run(box, FAST, SUMS, "1"), run(box, FAST, SUMS, only=[2], races="again")
        assert (card(first)["outcome"], first.undecided) == ("undecided", [2])
        both = first.merged(again)
        assert (card(both)["outcome"], both.undecided, results(both)) == ("passed", [], ["2", "1"])

        caplog.clear()
        box.times, box._noisy, box._may_wait = 1, "so it was when it looked last", 600
        monkeypatch.setattr(supervisor, "AGAIN_SECONDS", 0.1)
        assert results(run(box, FAST, SUMS)) == ["2"]
    assert caplog.text.count("Races wait: this machine is too noisy to judge.") == 1


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
    others = MachineLock()
    others.take(len(cores()) - 1)  # one is left, on which answers can be checked, but nobody can time
    release = threading.Timer(8, others.release)
    release.start()
    executed = run(box, student, SUMS, "1", cell_seconds=6, notebook_seconds=6)
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
    assert results(executed) == ["[False, False]", "False", str(os.getpriority(os.PRIO_PROCESS, 0))]


def test_without_namespaces_inside_it_nothing_of_this_machine_is_seen(monkeypatch) -> None:
    whole, less = bubblewrap.environment, {"namespaces": False}
    monkeypatch.setattr(bubblewrap, "environment", lambda *some, **more: whole(*some, **more | less))
    look = """
import os
def others(): return {int(name) for name in os.listdir('/proc') if name.isdigit()} - {os.getpid()}
def ended(pid):
    try: return os.kill(pid, 0) is None
    except OSError: return False
"""
    with Sandbox() as own:
        executed = run(own, look, "import os; os.path.exists('/host-proc')", "[*filter(ended, others())]")
    assert own.warning == proof.LACKS["no_namespaces"] and results(executed)[0] == "False"
    assert results(executed)[1] == "[]" or [*map(int, os.uname().release.split(".")[:2])] < [6, 12]


DEPTHS = """
import sys, traceback
from autograder.sandbox.wire.channel import Channel

depths = set()
real_send = Channel.send

def send(self, message, *rest, **more):
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe(1))]
    if '<cell>' in files:  # below a line of a cell of the instructor's, so in the judge
        calls = sum('/autograder/' in name for name in files[:files.index('<cell>')])
        depths.add((type(message).__name__, calls))
    return real_send(self, message, *rest, **more)

Channel.send = send
"""


def test_from_a_test_to_the_other_process_it_is_six_calls_at_most(box: Sandbox) -> None:
    """An auditor follows five calls from a line of a test cell to where the judge talks to the answer."""
    student = f"{FAST}def cube(x): return x ** 3\nif 0:\n    {SUMS}"
    tests = [
        DEPTHS,
        "check(cube, like=lambda x: x ** 3, on=numbers, gradients=True, points=1)",
        "check(cube, like=lambda x: x ** 3, on=numbers, at_most={'copies': 0}, shares=False, points=1)",
        "check(cube, like=lambda x: x ** 3, on=lambda g, d: (1, 2), raises=TypeError, points=1)",
        SUMS,
        "max(calls for _, calls in depths), sorted(depths)",
    ]
    most, seen = eval(results(run(box, student, *tests))[-1])
    assert most <= 6, [step for step in seen if step[1] > 6]
    kinds = {"Call", "Backward", "Look", "Fork", "PrepareRace", "RaceCall"}
    assert kinds <= {kind for kind, _ in seen}
