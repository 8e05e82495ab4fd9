"""Properties that must hold for whatever comes from outside, with Hypothesis's strategies that make it.

Two boundaries: a submitted file, from its bytes to the notebook that is graded; and what a process that runs
an answer sends to the judge. These tests try each a little, and all that was found; ``make fuzz`` for as long
as one likes.
"""

import json
import logging
import os
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import nbformat
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch.utils._pytree import tree_leaves

from autograder.authoring.builder import build
from autograder.nbgrader_plugin.execute import put_outputs
from autograder.nbgrader_plugin.pages import HideTests
from autograder.nbgrader_plugin.patches import remove_hidden_tests
from autograder.nbgrader_plugin.points import ReadVerdicts
from autograder.nbgrader_plugin.restore import Original, restore
from autograder.nbgrader_plugin.submissions import problem_of, read_or_explain
from autograder.roles import is_test
from autograder.sandbox import Executed, plan
from autograder.sandbox.submissions.suspicious_words import unusual_words
from autograder.sandbox.wire import decode, messages
from autograder.sandbox.wire.channel import Channel, Frame, Gone, Malformed, TooLate
from autograder.sandbox.wire.encode import Inputs

TRAPS = Path(__file__).resolve().parent / "adversaries" / "traps.py"
REPLIES = messages.Returned | messages.Raised | messages.Found | messages.CellShown | messages.Hello
LOG = logging.getLogger("fuzzing")
LOG.setLevel(logging.CRITICAL + 1)
WHOLE, HANDED_IN = build(TRAPS), build(TRAPS)
for one in HANDED_IN.cells:
    remove_hidden_tests(one)
KNOWN = [cell for cell in WHOLE.cells if "nbgrader" in cell.metadata]
# As the gradebook would give them.
ORIGINALS = {cell.metadata.nbgrader.grade_id: Original(cell, cell.source) for cell in KNOWN}


def is_graded(content: bytes) -> None:
    """A file with any content becomes a notebook with the tests' cells, or a page that says why not."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "traps.ipynb")
        file.write_bytes(content)
        read = read_or_explain(file, LOG)
    nbformat.validate(read)
    restore(read, ORIGINALS)
    cells = [] if problem_of(read) else plan(read)
    msgspec.msgpack.encode(cells)
    for cell in cells:
        if cell.role == "student":
            unusual_words(cell.source)
    put_outputs(read, Executed(sources={cell.index: cell.source for cell in cells}), LOG)
    read, _ = ReadVerdicts().preprocess(read, {})
    assert sum(map(is_test, read.cells)) == sum(map(is_test, HANDED_IN.cells))
    assert all("0.0" in str(cell.outputs[-1]) for cell in filter(is_test, read.cells))
    read, _ = HideTests().preprocess(read, {})
    assert "secret_cases" not in nbformat.writes(read).encode().decode()


TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates, too
ODD_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS,
    st.sampled_from([10**30, -1, "\0", "code", "markdown", "raw", "double", "square_check", {}, [], [{}], 4]),
)  # fmt: skip
ODD_VALUES = st.recursive(
    ODD_LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


def places(value: Any, way: tuple = ()) -> Iterator[tuple]:
    """The ways to all values within a JSON value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*way, key)
        yield from places(value[key], (*way, key))


@st.composite
def notebooks(draw: st.DrawFn) -> bytes:
    """A submission with odd values anywhere, and then with damage to its bytes."""
    data = json.loads(json.dumps(HANDED_IN))
    for _ in range(draw(st.integers(0, 4))):
        ways = list(places(data))
        if not ways:
            break
        *way, last = ways[draw(st.integers(0, len(ways) - 1))]
        inside = data
        for step in way:
            inside = inside[step]
        if draw(st.booleans()):
            inside[last] = deepcopy(draw(ODD_VALUES))  # it may be changed in the next round
        elif isinstance(inside, dict):
            inside[draw(TEXTS)] = inside.pop(last)
        else:
            inside.insert(last, deepcopy(inside[draw(st.integers(0, len(inside) - 1))]))
    content = json.dumps(data).encode()
    return draw(damaged(content)) if draw(st.integers(0, 3)) == 0 else content


RAW = st.one_of(
    st.binary(max_size=30),
    st.integers(1, 6000).map(lambda number: b"9" * number),
    st.integers(1, 6000).map(lambda number: b"[" * number),
    st.integers(1, 6000).map(lambda number: b'{"cells":' * number),
    st.sampled_from([b"NaN", b"-Infinity", b"1e999", b"\\ud800", b"\\u0000", b"null", b"\xef\xbb\xbf", b'"']),
)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes of which some are cut out, replaced or doubled."""
    for _ in range(draw(st.integers(1, 3))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        end = draw(st.sampled_from([start, min(start + 1, len(content)), end]))
        middle = draw(RAW | st.just(content[start:end] * 2))
        content = content[:start] + middle + content[end:]
    return content[: draw(st.integers(0, len(content)))] if draw(st.integers(0, 4)) == 0 else content


def is_read(sent: tuple[bytes, bytes]) -> None:
    """Any message is refused by ``Malformed``, or can be read and used."""
    text, payload = sent
    given = Inputs()
    given.node([torch.arange(6.0).view(2, 3), np.arange(4), torch.zeros(0)])
    try:
        message = messages.parse(Frame(bytearray(text), bytearray(payload)), REPLIES)
        match message:
            case messages.Returned(result=value, costs=counted):
                if counted is not None:
                    decode.costs_without_probe(counted, 3)
                use(decode.Reader(bytearray(payload), given.storages, made).value(value))
            case messages.Found(value=value):
                use(decode.Reader(bytearray(payload), given.storages, made).value(value))
            case messages.Raised():
                assert isinstance(decode.error(message), Exception)
            case messages.CellShown(outputs=shown):
                for item in decode.outputs(shown).items:
                    nbformat.validate(nbformat.from_dict(item), "output", version=4, version_minor=5)
    except Malformed as error:
        assert 0 < len(str(error)) < 1000


def made(node: messages.ObjectNode) -> object:
    """What stands for an object of the other process."""
    return type(decode.class_name(node.type), (), {})()


def use(value: Any) -> None:
    """Touch all of a value: its memory must be there."""
    for leaf in tree_leaves(value):
        if isinstance(leaf, np.ndarray):
            leaf.copy()
        elif isinstance(leaf, torch.Tensor) and leaf.device.type == "cpu" and leaf.numel() < 1_000_000:
            leaf.clone()


SIZES = st.integers(0, 8) | st.sampled_from([-1, 64, 1 << 20, 1 << 31, (1 << 62) - 1, 1 << 63])
NAMES = st.sampled_from(
    ["float32", "int64", "bool", "complex64", "bfloat16", "float8_e4m3fn", "quint8", "load", "_inductor",
     "cpu", "meta", "cuda", "cuda:99", "|O8", "<f4", "=i8", "(2,)i4", "i4,,", "", "channels_last", "bits8",
     "ValueError", "KeyError", "UnicodeDecodeError", "BaseExceptionGroup", "SystemExit"]
) | TEXTS  # fmt: skip


@st.composite
def fitting(draw: st.DrawFn) -> messages.Node:
    """A tensor or array whose sizes fit the payload, as most do."""
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    count = int(np.prod(shape)) if shape else 1
    dtype, size = draw(st.sampled_from([("float32", 4), ("int64", 8), ("bool", 1), ("bfloat16", 2)]))
    strides = draw(st.lists(st.integers(0, 12) | SIZES, min_size=len(shape), max_size=len(shape)))
    sent = int(np.prod([1 if stride == 0 else n for n, stride in zip(shape, strides, strict=True)] or [1]))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["<f4", "<i8", "|b1", "<c8"]))
        return messages.ArrayNode(kind, shape, (0, count * int(kind[-1])))
    if draw(st.booleans()):
        given, offset = draw(st.integers(0, 3)), draw(st.integers(0, 40))
        return messages.TensorNode(dtype, "cpu", shape, strides, storage=given, offset=offset)
    place = draw(st.integers(0, 8)), sent * size
    return messages.TensorNode(dtype, "cpu", shape, strides, buffer=place)


# Hypothesis fills the fields of the schema's types with sizes and names that may do harm.
st.register_type_strategy(int, SIZES)
st.register_type_strategy(str, NAMES)
for kind in vars(messages).values():
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        made_of = st.builds(kind, **dict.fromkeys(kind.__struct_fields__, ...))
        fits = kind in (messages.TensorNode, messages.ArrayNode)
        st.register_type_strategy(kind, fitting() | made_of if fits else made_of)
PROBED = st.builds(messages.CountedCosts, operations=st.just({f"aten.{decode.PROBES[3]}": 1}))
SEVERAL = st.builds(messages.CollectionNode, st.just("list"), st.lists(fitting(), max_size=3))
KINDS = (messages.Returned, messages.Found, messages.Raised, messages.CellShown)
MESSAGES = st.one_of(
    *[st.from_type(kind) for kind in KINDS],
    st.builds(messages.Returned, result=fitting() | SEVERAL, costs=st.none() | PROBED),
    ODD_VALUES.map(str),
)


@st.composite
def frames(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """An encoded message and its payload; some with damage."""
    text = draw(MESSAGES.map(encoded))
    if draw(st.integers(0, 3)) == 0:
        text = draw(damaged(text))
    return text, draw(st.binary(max_size=16) | st.just(bytes(range(256))))


def encoded(message: object) -> bytes:
    """A message as the wire has it; without numbers that it has no place for."""
    try:
        return msgspec.msgpack.encode(message)
    except (OverflowError, UnicodeEncodeError):
        return b"\xc1"


def is_received(sent: tuple[bytes, int]) -> None:
    """Any bytes, with any number of open files, give a frame or one of the channel's three errors."""
    content, number = sent
    mine, other = socket.socketpair()
    before = len(os.listdir("/proc/self/fd"))
    with mine:
        channel = Channel(mine)
        with other:
            files = [0] * number
            socket.send_fds(other, [content or b"\0"], files)
        try:
            frame = channel.receive(seconds=5)
            for received in frame.files:
                os.close(received)
        except (Gone, TooLate, Malformed) as error:
            assert len(str(error)) < 1000
        assert len(os.listdir("/proc/self/fd")) == before - 1


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, int]:
    """What may come over a connection: often a head that says how much follows."""
    sizes = st.integers(0, 40) | st.sampled_from([1 << 24, 1 << 28, 1 << 40, (1 << 64) - 1])
    head = struct.pack("<QQ", draw(sizes), draw(sizes)) if draw(st.booleans()) else b""
    return head + draw(st.binary(max_size=80)), draw(st.integers(0, 20))


# Name -> what must hold for everything that a strategy makes, and the strategy.
PROPERTIES: dict[str, tuple[Callable[[Any], None], st.SearchStrategy]] = {
    "a submitted file is graded": (is_graded, notebooks()),
    "a message is read": (is_read, frames()),
    "bytes are received": (is_received, streams()),
}
# What broke one of them once, or might have.
FOUND: dict[str, list] = {
    "a submitted file is graded": [b"", b"\0", b"9" * 5000, b"[" * 100_000, b'{"cells": [], "nbformat": 4}'],
    "bytes are received": [(b"", 0), (b"\0" * 16, 20)],
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_it_holds(name: str) -> None:
    holds, made = PROPERTIES[name]
    checked = given(made)(holds)
    for found in FOUND.get(name, ()):
        checked = example(found)(checked)
    always_the_same: Any = {"derandomize": True, "database": None, "deadline": None}
    settings(max_examples=25, **always_the_same, suppress_health_check=list(HealthCheck))(checked)()
