"""The messages between the processes of the sandbox, each with a schema: ``parse`` refuses what does not fit.

Three connections use them: the supervisor's with the fork server and its judge (``Load`` to ``Over``), the
judge's with the fork server (``Spawn``, ``Spawned``), and the judge's with a process that runs an answer
(requests, which that process trusts, and replies, which nobody trusts).
"""

import functools
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from .channel import Frame, Malformed

if TYPE_CHECKING:
    from typing_extensions import TypeForm

M = TypeVar("M")

MOST_NODES = 500_000
MOST_WORDS = 2000
MOST_SHOWN = 1000  # outputs of a cell

Size = Annotated[int, Meta(ge=0, lt=1 << 62)]
Sizes = Annotated[list[Size], Meta(max_length=64)]
Count = Annotated[int, Meta(ge=0, lt=1 << 60)]
Name = Annotated[str, Meta(max_length=100)]
Words = Annotated[str, Meta(max_length=MOST_WORDS)]
Place = tuple[Size, Size]  # where bytes start, and how many there are


class Node(Struct, frozen=True, forbid_unknown_fields=True, tag_field="node"):
    """A value that no number, text or None can stand for."""


class TensorNode(Node, frozen=True, tag="tensor"):
    """A tensor without its values. These lie in ``storage``, one of the inputs', from the item (inputs) or
    byte (results) ``offset`` on, or in ``buffer``, from the largest stride to the smallest. ``buffer`` is a
    part of the message's payload; in a race, of the memory of the process that sends it.
    """

    dtype: Name
    device: Name
    shape: Sizes
    strides: Sizes
    grad: Size | None = None  # its number among those that are part of the graph
    storage: Size | None = None
    offset: Size = 0
    buffer: Place | None = None


class TensorsNode(Node, frozen=True, tag="tensors"):
    """Contiguous tensors of one dtype on the CPU, whose values begin at these addresses."""

    kind: Literal["list", "tuple"]
    dtype: Name
    shapes: Annotated[list[Sizes], Meta(max_length=MOST_NODES)]
    starts: Annotated[list[Size], Meta(max_length=MOST_NODES)]


class ReadyNode(Node, frozen=True, tag="ready"):
    """One of the tensors and arrays that were made ready before a call."""

    number: Size


class ArrayNode(Node, frozen=True, tag="array"):
    """A NumPy array, or a number of NumPy's (``scalar``). Its values are in ``buffer``, in C order (results),
    or in one of the inputs' storages, with strides and offset in bytes (inputs).
    """

    dtype: Name
    shape: Sizes
    buffer: Place | None = None
    scalar: bool = False
    strides: list[int] = []
    storage: int = 0
    offset: int = 0
    writeable: bool = True


class PlainNode(Node, frozen=True, tag="plain"):
    """A value that is written as bytes (see ``plain``)."""

    kind: Literal["integer", "bytes", "complex", "dtype", "device", "memory_format"]
    data: bytes


class CollectionNode(Node, frozen=True, tag="collection"):
    """Values in a list, a torch.Size or another tuple, a set or frozenset; in a dict, each after its key."""

    kind: Literal["list", "size", "tuple", "set", "frozenset", "dict"]
    items: Annotated[list["Value"], Meta(max_length=MOST_NODES)]


class ObjectNode(Node, frozen=True, tag="object"):
    """Something that stays where it is. ``number`` stands for it; None: a function, known by its name."""

    number: Size | None
    type: Name


Nodes: TypeAlias = TensorNode | TensorsNode | ReadyNode | ArrayNode | PlainNode | CollectionNode | ObjectNode
Value: TypeAlias = bool | int | float | str | Nodes | None


class Message(Struct, frozen=True, forbid_unknown_fields=True, tag_field="message", tag=True):
    """What goes over a connection in one piece, beside a payload of raw bytes and open files."""


# From the judge to a process that runs an answer; the tag is the method there that answers.


class TakeFiles(Message, frozen=True, tag="on_files"):
    """Put these files into your folder, by their paths in it; nothing of the student's runs yet."""

    files: dict[str, bytes]


class RunCell(Message, frozen=True, tag="on_cell"):
    """Run a cell of the notebook."""

    source: str


class Fork(Message, frozen=True, tag="on_fork"):
    """Copy yourself; the copy serves the connection whose end comes with the message."""


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """A name of the notebook, an object that is kept (``of``), or an attribute of one (both)."""

    name: str | None = None
    of: int | None = None


class Look(Message, frozen=True, tag="on_look"):
    """What does a name stand for, or an attribute?"""

    target: Target


class Call(Message, frozen=True, tag="on_call"):
    """Call something; the memory of the inputs comes with the message, and has its storages at ``places``."""

    target: Target
    args: list[Value]
    kwargs: dict[str, Value]
    places: list[Place]
    probe: int | None  # count what the call costs, and beside it the operation of this number in `PROBES`
    copies: bool = False  # count those that have other names, too, which takes memory


class SendAgain(Message, frozen=True, tag="on_again"):
    """The values of the last call's result once more: the judge has changed those of the inputs."""


class Settle(Message, frozen=True, tag="on_settle"):
    """Before a call whose memory matters: let go of what the last one left, and give free memory back."""


class Backward(Message, frozen=True, tag="on_backward"):
    """The gradients of an earlier call's inputs, for given gradients of its results."""

    graph: int
    args: list[Value]
    places: list[Place]


class PrepareRace(Message, frozen=True, tag="on_race"):
    """A race of the function ``name`` begins; the memory of all its inputs comes with the message."""

    name: str


class RaceInputs(Message, frozen=True, tag="on_race_inputs"):
    """What the inputs of a race's next call look like. Their values come when it begins.

    ``keep``: the results so far are still wanted.
    """

    tensors: list[Value]
    places: list[Place]
    keep: bool


class RaceCall(Message, frozen=True, tag="on_race_call"):
    """The next call of a race, now; ``work`` False: all that a call takes but its work."""

    args: list[Value]
    work: bool


OfARace: TypeAlias = PrepareRace | RaceInputs | RaceCall
Request: TypeAlias = TakeFiles | RunCell | Fork | Look | Settle | Call | SendAgain | Backward | OfARace

# From a process that runs an answer to the judge: not to be trusted.


class Stream(Message, frozen=True):
    """Text that a cell printed."""

    name: Literal["stdout", "stderr"]
    text: str


class Display(Message, frozen=True):
    """Something that a cell showed: text, and pictures in base64."""

    kind: Literal["display_data", "execute_result"]
    data: dict[Literal["text/plain", "image/png", "image/jpeg"], str]


class ErrorShown(Message, frozen=True):
    """The error that ended a cell."""

    name: Words
    text: str
    traceback: list[str]


Shown: TypeAlias = Stream | Display | ErrorShown


class Hello(Message, frozen=True):
    """The process is ready: when it begins, and for the next step of a race or of a call."""


class CellShown(Message, frozen=True):
    """The outputs of a cell."""

    outputs: Annotated[list[Shown], Meta(max_length=MOST_SHOWN)]


class Found(Message, frozen=True):
    """A value: a result, or what a name stands for."""

    value: Value


class CountedCosts(Struct, frozen=True, forbid_unknown_fields=True):
    """What a call cost, as ``autograder.costs`` counts it."""

    operations: dict[Name, Count]
    views: dict[Name, Count]
    bytes: Count
    peak_bytes: Count
    copies: Count
    transfers: Count
    syncs: Count


class Said(Struct, frozen=True, forbid_unknown_fields=True):
    """What a call warned of, and what it printed."""

    warnings: Annotated[list[Words], Meta(max_length=10)] = []
    printed: Annotated[list[Stream], Meta(max_length=MOST_SHOWN)] = []


class ChangedInputs(Struct, frozen=True, forbid_unknown_fields=True):
    """The inputs after a call: their structure, and of each tensor in them, in order, whether it requires a
    gradient, and the one that it holds.
    """

    given: list[Value]
    requiring: Annotated[list[bool], Meta(max_length=MOST_NODES)]
    gradients: Annotated[list[Value], Meta(max_length=MOST_NODES)]


class Returned(Message, frozen=True):
    """The result of a call; ``graph`` is the number by which its graph is known, if it has one.

    ``changed`` is what became of the inputs, where the call did more to them than write values.
    """

    result: Value
    graph: int | None = None
    costs: CountedCosts | None = None
    said: Said = Said()
    changed: ChangedInputs | None = None


class Raised(Message, frozen=True):
    """The error of a call: the names of its class and those above it, and what the student should read."""

    types: Annotated[list[Name], Meta(max_length=50)]
    text: Words
    told: Words
    by_torch: bool
    said: Said = Said()


# Between the supervisor, the fork server and the judge.


class Load(Message, frozen=True):
    """Load these modules, which the assignment's given cells import, and know the sources of these cells.

    Nothing of a test cell: all processes that run answers are forked from the one that gets this.
    """

    modules: list[str]
    given: list[str]


class Ready(Message, frozen=True):
    """The fork server is ready; whether every submission can have namespaces of its own, and whether system
    calls are filtered.
    """

    namespaces: bool
    filtered: bool


Role = Literal["given", "student", "test"]


class PlannedCell(Struct, frozen=True, forbid_unknown_fields=True):
    """A code cell of a notebook: its place, whose it is, and the exercise that a test belongs to.

    ``names`` are those that this exercise was released with, the only ones that tests look up in an answer's
    process; None: those that the student's cells define.
    """

    index: int
    role: Role
    source: str
    grade_id: str | None
    exercise: str | None
    names: list[str] | None = None


class RunNotebook(Message, frozen=True):
    """Run a notebook's cells, and of the tests only those in ``only``, if given.

    ``error`` bounds the probability of each kind of wrong verdict. ``files`` are those beside the notebook,
    by their paths; None: there is one, but it is left out.
    """

    cells: list[PlannedCell]
    only: list[int] | None
    error: float
    assignment: str
    files: dict[str, bytes | None]
    cell_seconds: float
    notebook_seconds: float
    most_restarts: int


class CheckMachine(Message, frozen=True):
    """Let the machine measure itself, on the first of these cores."""

    cores: list[int]


class MachineChecked(Message, frozen=True):
    """What a function against itself showed, or as "noisy" why this machine cannot judge; and its limits.

    ``logs`` are the last log-ratios of the function against itself.
    """

    noise: dict[str, Any]
    logs: list[float]
    limits_name: str
    limits: dict[str, Any]


class WantCores(Message, frozen=True):
    """The judge wants cores for a ``race``, and later again one for checks; ``logs`` are then those of the
    seconds that given calls took in it, a launch each.
    """

    race: bool
    logs: list[float] = []


class Go(Message, frozen=True):
    """The judge may time a race on the first of ``cores``, and work on the others; ``noisy`` says why this
    machine cannot judge, if it cannot. ``strays_are_rare`` as in ``decide``.
    """

    cores: list[int]
    noisy: str | None
    strays_are_rare: bool


class CellDone(Message, frozen=True):
    """A cell has run: its outputs in nbformat's form, what was suspicious, and core-seconds of ``work``."""

    index: int
    outputs: list[dict[str, Any]]
    events: list[str]
    work: float


class Finished(Message, frozen=True):
    """All cells have run; the seconds spent on "cells", "tests" and "races"."""

    seconds: dict[str, float]


class Over(Message, frozen=True):
    """The judge and all that it started are gone."""


class Spawn(Message, frozen=True):
    """Start a process that runs an answer, in a folder named after the assignment. Its ends come with it."""

    assignment: str


class Spawned(Message, frozen=True):
    """The first process of the new one's namespaces, or the process itself where there are none."""

    pid: int
    namespaces: bool


def parse(frame: Frame, kind: "TypeForm[M]") -> M:
    """The message of a type, or one of a union of types, in a frame. Raises Malformed."""
    try:
        found: M = _decoder(kind).decode(frame.text)  # type: ignore[arg-type]  # (a type can be hashed)
        return found
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        why = "".join(char if char.isprintable() else " " for char in str(error)[:200])
        raise Malformed(f"a message that does not fit its schema ({why})") from None


def prepare() -> None:
    """Make what ``parse`` needs for the processes of a submission, before they are forked."""
    for kind in (Request, Spawned, Hello, CellShown, Found | Raised, Returned | Raised):
        _decoder(kind)


@functools.cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)
