"""Values that travel alike in both directions: what is written as bytes, and collections of values."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch

from .channel import Malformed
from .messages import CollectionNode, PlainNode, Value

# A dict, and not torch's attributes: some of these are loaded when somebody asks for them.
_OF_TORCH = {
    name: value
    for name, value in vars(torch).items()
    if isinstance(value, (torch.dtype, torch.memory_format))
}


@cache
def torch_name(value: torch.dtype | torch.memory_format) -> str:
    """The name of a dtype or memory format."""
    return str(value).removeprefix("torch.")


def named(kind: type, name: str, what: str) -> Any:
    """The dtype or memory format of a name. Raises Malformed, which says ``what`` it is not."""
    found = _OF_TORCH.get(name)
    if not isinstance(found, kind):
        raise Malformed(what)
    return found


def _of_torch(kind: type, what: str) -> Callable[[bytes], Any]:
    return lambda data: named(kind, data.decode(), f"a {what} that torch does not have")


# By the kind of a node: the types that it stands for, and the ways to bytes and back.
_PLAIN: dict[str, tuple[Any, Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "integer": (int, lambda value: hex(value).encode(), lambda data: int(data, 16)),  # of more than 64 bits
    "bytes": ((bytes, bytearray), bytes, bytes),
    "complex": (complex, lambda value: repr(value).encode(), lambda data: complex(data.decode())),
    "dtype": (torch.dtype, lambda value: torch_name(value).encode(), _of_torch(torch.dtype, "dtype")),
    "device": (torch.device, lambda value: str(value).encode(), lambda data: torch.device(data.decode())),
    "memory_format": (
        torch.memory_format,
        lambda value: torch_name(value).encode(),
        _of_torch(torch.memory_format, "memory_format"),
    ),
}


def _dict(items: Iterable[Any]) -> dict[Any, Any]:
    """Keys and values in turn. Raises ValueError where one is alone."""
    one_by_one = iter(items)
    return dict(zip(one_by_one, one_by_one, strict=True))


# By the kind of a node; torch.Size is a tuple, too.
_COLLECTIONS: dict[str, tuple[Any, Callable[[Iterable[Any]], Any]]] = {
    "list": (list, list),
    "size": (torch.Size, torch.Size),
    "tuple": (tuple, tuple),
    "set": (set, set),
    "frozenset": (frozenset, frozenset),
    "dict": (dict, _dict),
}


def to_node(value: Any, node: Callable[[Any], Value]) -> Value:
    """The node of a value; ``node`` makes those of what is in it. Raises TypeError for other values."""
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return value
    for name, (kind, _) in _COLLECTIONS.items():
        if isinstance(value, kind):
            parts = [part for pair in value.items() for part in pair] if name == "dict" else value
            return CollectionNode(name, [node(part) for part in parts])  # type: ignore[arg-type]
    for name, (kind, written, _) in _PLAIN.items():
        if isinstance(value, kind):
            return PlainNode(name, written(value))  # type: ignore[arg-type]
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent to another process.")


def from_node(node: CollectionNode | PlainNode, value: Callable[[Value], Any]) -> Any:
    """The value of a node; ``value`` gives those of what is in it.

    Raises Malformed, or what Python and torch raise for what is no such value.
    """
    if isinstance(node, PlainNode):
        return _PLAIN[node.kind][2](node.data)
    return _COLLECTIONS[node.kind][1](map(value, node.items))
