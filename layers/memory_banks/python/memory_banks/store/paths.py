"""Paths: which texts of a value get a vector each.

`$` is the whole value as JSON; `a.b` goes down; `a[0]`, `a[-1]` and `a[*]` into lists; `*` to every value; `{a,b.c}` takes
several fields. What is not there gives nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

WHOLE = "$"


def texts_at(value: Any, path: str) -> list[str]:
    """The texts at a path: plain values as text, objects and lists as JSON with sorted names."""
    if path in {"", WHOLE}:
        return [_json(value)]
    return list(_texts(value, tokens(path)))


def tokens(path: str) -> list[str]:
    """The steps of a path: `a.b[0].{c,d}` has `a`, `b`, `[0]` and `{c,d}`."""
    found: list[str] = []
    name = ""
    position = 0
    while position < len(path):
        character = path[position]
        if character in "[{":
            end = _closing(path, position)
            found += [name] if name else []
            found.append(path[position:end])
            name, position = "", end
            continue
        if character == ".":
            found += [name] if name else []
            name = ""
        else:
            name += character
        position += 1
    return [*found, name] if name else found


def _closing(path: str, start: int) -> int:
    """The position after the bracket that closes the one at `start`; the end of an unclosed path."""
    opening = path[start]
    closing = "]" if opening == "[" else "}"
    depth = 0
    for position in range(start, len(path)):
        depth += (path[position] == opening) - (path[position] == closing)
        if depth == 0:
            return position + 1
    return len(path)


def _texts(value: Any, steps: list[str]) -> Iterator[str]:
    if not steps:
        yield from _text(value)
        return
    step, rest = steps[0], steps[1:]
    if step.startswith("["):
        for one in _elements(value, step):
            yield from _texts(one, rest)
    elif step.startswith("{"):
        yield from _fields(value, step)
    elif step == "*":
        for one in _everything(value):
            yield from _texts(one, rest)
    elif isinstance(value, Mapping) and step in value:
        yield from _texts(value[step], rest)


def _elements(value: Any, step: str) -> list[Any]:
    if not isinstance(value, list | tuple) or not step.endswith("]"):
        return []
    index = step[1:-1]
    if index == "*":
        return list(value)
    try:
        number = int(index)
    except ValueError:
        return []
    return [value[number]] if -len(value) <= number < len(value) else []


def _fields(value: Any, step: str) -> Iterator[str]:
    if not isinstance(value, Mapping) or not step.endswith("}"):
        return
    for field in step[1:-1].split(","):
        found: Any = value
        names = tokens(field.strip())
        for name in names:
            found = found.get(name) if isinstance(found, Mapping) else None
        if names:
            yield from _text(found)


def _everything(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: Any) -> Iterator[str]:
    if isinstance(value, str | int | float | bool):
        yield str(value)
    elif value is not None:
        yield _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
