"""Metadata as searches see it: dotted paths and the plain values found there.

`{"a": {"b": [1, 2]}, "c": null}` has the leaves `a.b = 1` and `a.b = 2`. Every index adapter filters on these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .ports import MetadataTest

Scalar = str | bool | int | float
Leaf = tuple[str, Scalar]


def leaves(metadata: Mapping[str, Any]) -> Iterator[Leaf]:
    """Every (dotted path, value) of some metadata; a list gives one for each of its values, null gives none."""
    waiting: list[tuple[str, Any]] = list(metadata.items())
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend((f"{path}.{name}", inner) for name, inner in value.items())
        elif isinstance(value, list | tuple):
            waiting.extend((path, inner) for inner in value)
        elif value is not None:
            yield path, value


def holds(test: MetadataTest, found: Iterable[Leaf]) -> bool:
    """Whether some metadata, given by its leaves, passes a test.

    `1` equals `1.0` but not `true`; numbers compare with numbers and text with text, by code points. `exists` is true for
    a path with a value at or below it.
    """
    if test.operator == "exists":
        below = test.path + "."
        return any(path == test.path or path.startswith(below) for path, _ in found) is bool(test.value)
    return any(path == test.path and _compare(value, test.operator, test.value) for path, value in found)


def _compare(value: Scalar, operator: str, wanted: Any) -> bool:
    if operator == "in":
        return any(_equal(value, one) for one in wanted)
    if operator == "eq":
        return _equal(value, wanted)
    if not (isinstance(value, str) and isinstance(wanted, str)) and not (_number(value) and _number(wanted)):
        return False
    left: Any = value
    match operator:
        case "gt":
            return bool(left > wanted)
        case "gte":
            return bool(left >= wanted)
        case "lt":
            return bool(left < wanted)
        case _:
            return bool(left <= wanted)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)
