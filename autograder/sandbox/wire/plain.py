"""Values that travel alike in both directions: what is written as bytes, and collections of values."""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, TypeVar

import torch

from .channel import Malformed
from .messages import CollectionNode, PlainNode, Value

OfTorch = TypeVar("OfTorch", torch.dtype, torch.memory_format)
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


def named(kind: type[OfTorch], name: str) -> OfTorch:
    """The dtype or memory format of a name. Raises Malformed."""
    found = _OF_TORCH.get(name)
    if not isinstance(found, kind):
        raise Malformed(f"a {kind.__name__} that torch does not have")
    return found


# By the kind of a node: the type that it stands for, and the ways to text and back. Bytes need neither.
_TEXTS: dict[str, tuple[Any, Callable[[Any], str], Callable[[str], Any]]] = {
    "integer": (int, hex, lambda text: int(text, 16)),  # of more than 64 bits
    "complex": (complex, repr, complex),
    "dtype": (torch.dtype, torch_name, partial(named, torch.dtype)),
    "device": (torch.device, str, torch.device),
    "memory_format": (torch.memory_format, torch_name, partial(named, torch.memory_format)),
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
    if isinstance(value, (bytes, bytearray)):
        return PlainNode("bytes", bytes(value))
    for name, (kind, written, _) in _TEXTS.items():
        if isinstance(value, kind):
            return PlainNode(name, written(value).encode())  # type: ignore[arg-type]
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent to another process.")


def from_node(node: CollectionNode | PlainNode, value: Callable[[Value], Any]) -> Any:
    """The value of a node; ``value`` gives those of what is in it.

    Raises Malformed, or what Python and torch raise for what is no such value.
    """
    if isinstance(node, PlainNode):
        return node.data if node.kind == "bytes" else _TEXTS[node.kind][2](node.data.decode())
    return _COLLECTIONS[node.kind][1](map(value, node.items))
