"""check: is the answer right, on inputs never seen before, in every layout that applies?"""

import math
import reprlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import torch

from ..measuring.clocks import Function, devices
from ..measuring.costs import Costs, counting
from ..measuring.duel import fresh_inputs
from ..measuring.gpus import refused, with_float64
from ..measuring.units import counted, size
from . import values
from .calls import AnswerError, call, describe_error, refuse_nonsense, remember, stopped_gpu
from .outcome import Outcome, notes, partial_points

ONE = {"copies": "copy"}  # a cost's name without its last letter stands for one of the others

Errors = type[Exception] | tuple[type[Exception], ...]

# The first calls of a function load what it needs, and keep that. So where more memory is seen from outside
# than is allowed, it is called again, so often in all: with new inputs, and each call must be right.
MEMORY_CALLS = 3
SEEN = 1 << 20  # bytes: smaller limits on what is allocated in all cannot be told from outside

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda tensor: tensor,
    "not contiguous": values.strided,
    "channels_last": values.channels_last,
}


def check(
    function: Function,
    *,
    like: Function,
    on: Function | Sequence[Function],
    points: float,
    gradients: bool = False,
    raises: Errors | None = None,
    shares: bool | None = None,
    at_most: Mapping[str, int] | None = None,
    peak: int | None = None,
    tolerance: float | None = None,
) -> Outcome:
    """Test that ``function`` gives what ``like`` gives; show a card; give the Outcome.

    ``on`` makes inputs: a function (generator, device) -> arguments, or several of them, each one case.
    Every case is run on every device present, and again with its tensors not contiguous and (where they
    have four dimensions) in channels_last order. Results must agree in structure, shape, dtype, device and
    value; values are compared with those of ``like`` in float64, with a ``tolerance`` relative to their size
    (by default 1e-4 in float32). The inputs must be left as ``like`` leaves them: values, what requires a
    gradient, and the ``.grad`` that they hold.

    ``gradients``: the gradients of the floating-point inputs must agree too. ``raises``: for these inputs the
    answer must raise this error (or one of these). ``shares``: whether the result must (True) or must not
    (False) share memory with an input. ``at_most``: counted costs that one call may have, such as
    ``{"copies": 0}``; the names are those of ``Costs``. Result, sharing and costs are those of one call, and
    no two calls get the same input. All or nothing: ``points`` or 0.

    ``peak``: the most memory in bytes that a call of a right answer may have new at once, for all points.
    Between what ``like`` has and that, points grow with the logarithm, and the worst of the cases counts.
    In grading, memory is seen from outside, too: what is not torch's, such as NumPy's, counts there.
    """
    cases = [on] if callable(on) else list(on)
    for case in cases:
        refuse_nonsense(function, like, case, points)
    wanted = (gradients, raises, shares, tuple(at_most or ()), peak)
    this = (*(case.__name__ for case in cases), *map(str, wanted))
    said: list[str] = []
    left_out: list[str] = []
    tried = 0
    peaks: list[_Peak] = []
    expect_same = partial(_expect_same, function, said, gradients, shares, at_most or {}, peak, tolerance)
    try:
        for case, device in product(cases, devices()):
            try:
                for trial in _trials(case, device, like):
                    if raises is not None:
                        _expect_error(trial, function, raises, said)
                    else:
                        for left in reversed(range(MEMORY_CALLS)):
                            with suppress(_UsesMuch):
                                found = expect_same(trial, left)
                                break
                            trial = replace(trial, seed=secrets.randbits(31))
                        peaks += [found] if found else []
                    tried += 1
            except (AnswerError, TypeError, NotImplementedError) as problem:
                if lack := refused(device, problem):
                    left_out.append(f"Not checked on Apple's GPU: {lack}.")
                elif isinstance(problem, AnswerError):
                    raise AnswerError(problem.word, f"{problem}\n{trial}", right=problem.right) from problem
                else:
                    raise
    except AnswerError as problem:
        summary, *details = [*str(problem).split("\n"), *notes(said)]
        if problem.word == "not attempted":
            details = []
        else:
            remember(function, this, "" if problem.right else case.__name__)
        return Outcome(problem.word, 0, points, summary, details, facts={"right": problem.right}).show()
    except RuntimeError as error:
        if not (stopped := stopped_gpu(error)):
            raise
        return Outcome("error", 0, points, stopped, [describe_error(error)]).show()
    remember(function, this)
    summary = f"right in {counted(tried, 'case')}."
    remarks = [*notes(said), *dict.fromkeys(left_out)]
    if peaks:
        return _on_memory(min(peaks, key=lambda one: one.share), points, summary, remarks).show()
    return Outcome("passed", points, points, summary, remarks, facts={"right": True}).show()


@dataclass(frozen=True)
class _Peak:
    """The most new memory alive at once, in bytes: an answer's, the given version's, the one asked for."""

    mine: int
    given: int
    asked: int

    @property
    def share(self) -> float:
        """The part of the points, from 0 to 1."""
        if self.mine <= self.asked:
            return 1.0
        return max(0.0, math.log(self.given / self.mine) / math.log(self.given / self.asked))


def _on_memory(peak: _Peak, points: float, right: str, remarks: Sequence[str]) -> Outcome:
    """The outcome of a right answer whose memory counts."""
    summary = (
        f"{right[:-1]}, with {size(peak.mine)} of new memory at once; {size(peak.asked)} asked for, "
        f"{size(peak.given)} as given."
    )
    earned = min(points, round(points * peak.share, 2))
    facts = {"right": True, "peak": {"bytes": peak.mine, "given": peak.given, "required": peak.asked}}
    if peak.share == 1:
        return Outcome("passed", points, points, summary, remarks, facts=facts)
    how = partial_points(earned, points, f"{size(peak.given)} and more", size(peak.asked))
    return Outcome("failed", earned, points, summary, [how, *remarks], facts=facts)


@dataclass(frozen=True)
class _Trial:
    """One case with one seed, on one device, in one layout; ``like`` names the arguments."""

    case: Function
    like: Function
    seed: int
    device: str
    layout: str

    def inputs(self) -> tuple[Any, ...]:
        """The arguments, made anew: equal at every call, and never the same objects."""
        given = fresh_inputs(self.case, self.seed, self.device)
        return tuple(values.change_tensors(value, LAYOUTS[self.layout]) for value in given)

    def inputs_in_float64(self) -> tuple[Any, ...]:
        """The same arguments, with every floating-point number in float64."""
        there = replace(self, device=with_float64(self.device))
        return tuple(values.change_tensors(value, values.precise) for value in there.inputs())

    def __str__(self) -> str:
        """Where it happened, with the inputs in short, so that the student can try the same."""
        given = self.inputs()
        names = values.argument_names(self.like, len(given))
        inputs = ", ".join(f"{name} = {_short(value)}" for name, value in zip(names, given, strict=True))
        return f"Input: {self.case.__name__} ({self.layout}, {self.device}, seed {self.seed}): {inputs}"


def _trials(case: Function, device: str, like: Function) -> Iterator[_Trial]:
    given = values.tensors(fresh_inputs(case, secrets.randbits(31), device))
    for layout, change in LAYOUTS.items():
        if layout == "contiguous" or any(change(tensor).stride() != tensor.stride() for tensor in given):
            yield _Trial(case, like, secrets.randbits(31), device, layout)


class _UsesMuch(Exception):
    """More memory was seen from outside than a right answer may use; its next call could need less."""


def _expect_same(
    function: Function,
    said: list[str],
    gradients: bool,
    shares: bool | None,
    at_most: Mapping[str, int],
    peak: int | None,
    tolerance: float | None,
    trial: _Trial,
    calls_left: int,
) -> _Peak | None:
    like, mine, theirs = trial.like, trial.inputs(), trial.inputs()
    if gradients:
        mine, theirs = (values.change_tensors(one, values.differentiable) for one in (mine, theirs))
    # One call: an answer that can tell which call is counted could be right in one and cheap in another.
    counted_call = at_most or shares is not None or peak is not None
    limits = [] if peak is None else [peak]
    limits += [
        most for name, most in at_most.items() if name == "peak_bytes" or (name == "bytes" and most >= SEEN)
    ]
    with counting(mine) if counted_call else nullcontext(Costs()) as cost:
        cost.memory_matters, cost.sharing_matters = bool(limits), shares is False
        cost.copies_matter = "copies" in at_most
        got = call(function, mine, said)
    with counting(theirs) if peak is not None else nullcontext(Costs()) as given_cost:
        given_cost.copies_matter = False
        expected = like(*theirs)
    if not values.identical(got, expected):
        has_floats = any(tensor.is_floating_point() for tensor in values.tensors(theirs))
        exact = like(*trial.inputs_in_float64()) if has_floats else None
        if found := values.difference(got, expected, exact, tolerance):
            raise AnswerError("failed", found)
    if found := values.change_of_inputs(mine, theirs, trial.inputs, like, tolerance):
        raise AnswerError("failed", f"the call changed its input, which must be left alone.\n{found}")
    if gradients:
        pair = _gradients(got, mine), _gradients(expected, theirs)
        if found := values.difference(*pair, None, tolerance, "gradient"):
            raise AnswerError("failed", found)
    if shares is True and not values.shares_memory(got, mine):
        raise AnswerError("failed", "the result should share memory with the input, but is a copy.")
    if shares is False and (cost.shares or values.shares_memory(got, mine)):
        raise AnswerError("failed", "the result should be a copy, but shares memory with the input.")
    if calls_left and limits and cost.used_bytes > min(limits):
        raise _UsesMuch
    _expect_cheap(cost, at_most)
    if peak is None:
        return None
    if given_cost.peak_bytes <= peak:
        most = size(given_cost.peak_bytes)
        raise ValueError(f"peak must be below what the given version has at once, {most}, not {size(peak)}.")
    return _Peak(cost.figure("peak_bytes"), given_cost.peak_bytes, peak)


def _expect_cheap(cost: Costs, at_most: Mapping[str, int]) -> None:
    for name, most in at_most.items():
        if (number := cost.figure(name)) > most:
            got, allowed = (
                size(n) if "bytes" in name else counted(n, ONE.get(name, name[:-1]), name)
                for n in (number, most)
            )
            at_once = " at once" if name == "peak_bytes" else ""
            raise AnswerError(
                "failed", f"right, but with {got}{at_once}; at most {allowed} allowed.\n{cost}", right=True
            )


def _expect_error(trial: _Trial, function: Function, raises: Errors, said: list[str]) -> None:
    kinds = raises if isinstance(raises, tuple) else (raises,)
    try:
        got = call(function, trial.inputs(), said)
    except AnswerError as problem:
        if problem.word == "not attempted":
            raise
        if isinstance(problem.__cause__, kinds):
            return
        came = str(problem)
    else:
        came = f"a result of type {type(got).__name__}"
    raise AnswerError("failed", f"expected {' or '.join(kind.__name__ for kind in kinds)}, but got {came}")


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor) and 0 < value.numel() <= 8 and value.device.type != "meta":
        return f"tensor({value.tolist()}, dtype={value.dtype})"
    if hasattr(value, "shape"):
        kind = "tensor" if isinstance(value, torch.Tensor) else "array"
        return f"{kind} of shape {tuple(value.shape)}, {value.dtype}"
    if isinstance(value, (list, tuple, dict)):
        return f"{type(value).__name__} of {len(value)}"
    return reprlib.repr(value)


def _gradients(result: object, given: tuple[Any, ...]) -> list[torch.Tensor]:
    """Gradients of a fixed weighted sum of the result's tensors with respect to the inputs."""
    results = [one for one in values.tensors(result) if one.is_floating_point() and one.requires_grad]
    sources = [tensor for tensor in values.tensors(given) if tensor.requires_grad]
    if not results:
        raise AnswerError(
            "failed", "no gradient reaches the inputs: autograd sees no way from them to the result."
        )
    weights = [torch.linspace(0.5, 1.5, one.numel()).view(one.shape).to(one) for one in results]
    try:
        return [*torch.autograd.grad(results, sources, weights, materialize_grads=True)]
    except RuntimeError as error:
        raise AnswerError("error", f"the backward pass failed: {error}") from error
