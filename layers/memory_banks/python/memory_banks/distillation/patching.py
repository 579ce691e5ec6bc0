"""JSON Patch (RFC 6902) as a model may write it: operations in order, all of them or none.

Beyond the RFC, where it can only mean one thing: `add` and `replace` create what is missing on the way (a null counts as
missing), and an array where the next step is `-` or `0`; `replace` of what is not there adds it. The root can't be removed.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..limits import walk
from ..store.document import DEPTH, VALUE_BYTES

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_ESCAPE = re.compile(r"~(?![01])")


class PatchFailed(Exception):
    """An operation can't be made; nothing was. `number` counts from 1; the message names it and says why."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"operation {number}: {reason}")
        self.number = number
        self.reason = reason


class _Refused(Exception):
    """Why an operation can't be made."""


def patched(document: Any, operations: Sequence[Any]) -> Any:
    """The document after all operations; the one given stays as it is. Raises `PatchFailed`."""
    current = copy.deepcopy(document)
    for number, operation in enumerate(operations, 1):
        try:
            current = _made(current, operation)
        except _Refused as refused:
            raise PatchFailed(number, str(refused)) from refused
    return current


def guarded(document: Any, operations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same operations, with a `test` before each that names an element of an array by its position.

    So they fail, instead of changing another element, where the array is not as it was any more. Raises `PatchFailed`.
    """
    current = copy.deepcopy(document)
    safe: list[dict[str, Any]] = []
    for number, operation in enumerate(operations, 1):
        try:
            for pointer, value in _elements(current, operation):
                safe.append({"op": "test", "path": pointer, "value": copy.deepcopy(value)})
            current = _made(current, operation)
        except _Refused as refused:
            raise PatchFailed(number, str(refused)) from refused
        safe.append(dict(operation))
    return safe


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return type(one) is type(other) and bool(one == other)


# --------------------------------------------------------------------------------------------------------------------
# One operation


def _made(document: Any, operation: Any) -> Any:
    """The document after the operation; it may be changed in place."""
    if not isinstance(operation, Mapping):
        raise _Refused("must be an object with op and path")
    op = operation.get("op")
    if op not in OPERATIONS:
        raise _Refused(f"op must be one of {', '.join(OPERATIONS)}, not {op!r}")
    path = _tokens(operation, "path")
    if op in {"add", "replace", "test"}:
        if "value" not in operation:
            raise _Refused(f"{op} needs a value")
        _check_depth(path, operation["value"])
    match op:
        case "add":
            return _add(document, path, copy.deepcopy(operation["value"]))
        case "remove":
            return _remove(document, path)
        case "replace":
            return _replace(document, path, copy.deepcopy(operation["value"]))
        case "test":
            if not same(_at(document, path), operation["value"]):
                raise _Refused(f"{_shown(path)} has another value")
            return document
    source = _tokens(operation, "from")
    value = copy.deepcopy(_at(document, source))
    if op == "move":
        if path == source:
            return document
        if path[: len(source)] == source:
            raise _Refused(f"{_shown(source)} can't be moved into itself")
        document = _remove(document, source)
    _check_depth(path, value)
    document = _add(document, path, value)
    # Copying a document into itself doubles it each time.
    if len(json.dumps(document)) > 2 * VALUE_BYTES:
        raise _Refused("the document becomes too large")
    return document


def _check_depth(path: Sequence[str], value: Any) -> None:
    if any(len(path) + depth > DEPTH for _, _, depth in walk(value)):
        raise _Refused(f"at most {DEPTH} levels of nesting are possible")


def _tokens(operation: Mapping[str, Any], name: str) -> list[str]:
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        raise _Refused(f"{name} must be a JSON pointer, such as /a/b")
    if pointer and not pointer.startswith("/"):
        raise _Refused(f"{name} {pointer!r} must begin with /")
    if _ESCAPE.search(pointer):
        raise _Refused(f"{name} {pointer!r} has a ~ that is neither ~0 nor ~1")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _pointer(path: Sequence[str]) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in path)


def _shown(path: Sequence[str]) -> str:
    return _pointer(path) or "the root"


def _position(array: list[Any], token: str, path: Sequence[str], most: int) -> int:
    if not _INDEX.fullmatch(token) or int(token) > most:
        raise _Refused(f"{_shown(path)}: the array has {len(array)} elements and no position {token!r}")
    return int(token)


def _at(document: Any, path: Sequence[str]) -> Any:
    """What is there."""
    current = document
    for depth, token in enumerate(path):
        so_far = path[: depth + 1]
        if isinstance(current, dict):
            if token not in current:
                raise _Refused(f"there is no {_shown(so_far)}")
            current = current[token]
        elif isinstance(current, list):
            current = current[_position(current, token, so_far, len(current) - 1)]
        else:
            raise _Refused(f"there is no {_shown(so_far)}: {_shown(path[:depth])} is {_kind(current)}")
    return current


def _add(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    if document is None:
        document = _parent_for(path[0])
    current = document
    for depth, token in enumerate(path):
        last = depth == len(path) - 1
        so_far = path[: depth + 1]
        if isinstance(current, list):
            if token == "-":
                position = len(current)
                current.append(None)
            elif last:
                position = _position(current, token, so_far, len(current))
                current.insert(position, None)
            else:
                position = _position(current, token, so_far, len(current) if token == "0" else len(current) - 1)
                current += [None] * (position == len(current))
            current[position] = value if last else _or_new(current[position], path[depth + 1])
            current = current[position]
        elif isinstance(current, dict):
            current[token] = value if last else _or_new(current.get(token), path[depth + 1])
            current = current[token]
        else:
            raise _Refused(f"nothing can be put below {_shown(path[:depth])}: it is {_kind(current)}")
    return document


def _or_new(there: Any, token: str) -> Any:
    """What is there; where nothing is, what the next step can lead into."""
    return _parent_for(token) if there is None else there


def _parent_for(token: str) -> Any:
    return [] if token in {"-", "0"} else {}


def _remove(document: Any, path: Sequence[str]) -> Any:
    if not path:
        raise _Refused("the root can't be removed; remove what is in it, one path each")
    _at(document, path)
    parent = _at(document, path[:-1])
    if isinstance(parent, list):
        del parent[int(path[-1])]
    else:
        del parent[path[-1]]
    return document


def _replace(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    try:
        parent = _at(document, path[:-1])
    except _Refused:
        return _add(document, path, value)
    token = path[-1]
    if isinstance(parent, list) and token != "-" and len(parent):
        parent[_position(parent, token, path, len(parent) - 1)] = value
        return document
    return _add(document, path, value)


def _elements(document: Any, operation: Any) -> list[tuple[str, Any]]:
    """The array elements that an operation depends on by their position: for each path its outermost one."""
    if not isinstance(operation, Mapping) or operation.get("op") in {None, "test"}:
        return []
    found: list[tuple[str, Any]] = []
    for name in ("from", "path"):
        if not isinstance(operation.get(name), str):
            continue
        path = _tokens(operation, name)
        inserts = name == "path" and operation["op"] in {"add", "move", "copy"}
        current = document
        for depth, token in enumerate(path):
            if isinstance(current, list):
                last = depth == len(path) - 1
                if _INDEX.fullmatch(token) and int(token) < len(current) and not (last and inserts):
                    found.append((_pointer(path[: depth + 1]), current[int(token)]))
                break
            if not isinstance(current, dict) or token not in current:
                break
            current = current[token]
    return found


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case list():
            return "an array"
        case _:
            return "an object"
