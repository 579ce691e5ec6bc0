"""Whether documents are what a case expects, and if not, why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from examples.evaluation.case import Expectation, ExpectedDocument

Value = Mapping[str, Any]
_ABSENT = object()


def complaints(wanted: Expectation, documents: Sequence[Value]) -> Iterator[str]:
    """What is wrong with the documents of a user and type, as sentences. None when they are as expected."""
    if wanted.empty and any(says(value) for value in documents):
        yield f"something is there: {_shown(documents)}"
    if wanted.count is not None and len(documents) != wanted.count:
        yield f"{len(documents)} documents instead of {wanted.count}: {_shown(documents)}"
    for text in wanted.lacks:
        if any(_occurs(text, value) for value in documents):
            yield f"{text!r} must not occur: {_shown(documents)}"
    unmet = _unmet(wanted.documents, documents)
    if unmet is not None:
        yield f"no document of its own for {_told(unmet)}: {_shown(documents)}"


def says(value: Any) -> bool:
    """Whether anything is in it but nulls and empty lists, objects and texts."""
    if isinstance(value, Mapping):
        return any(says(one) for one in value.values())
    if isinstance(value, list):
        return any(says(one) for one in value)
    return value is not None and value != ""


def met(wanted: ExpectedDocument, value: Value) -> bool:
    """Whether a document is as expected."""
    exact = all(_same(_at(value, path), expected) for path, expected in wanted.has.items())
    return exact and all(_occurs(text, value) for text in wanted.contains)


def _unmet(wanted: Sequence[ExpectedDocument], documents: Sequence[Value]) -> ExpectedDocument | None:
    """The first expected document that no arrangement gives a document of its own."""
    taken: dict[int, int] = {}

    def place(expected: int, seen: set[int]) -> bool:
        for position, value in enumerate(documents):
            if position in seen or not met(wanted[expected], value):
                continue
            seen.add(position)
            # Taken already: perhaps whoever has it can have another.
            if position not in taken or place(taken[position], seen):
                taken[position] = expected
                return True
        return False

    return next((one for index, one in enumerate(wanted) if not place(index, set())), None)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _ABSENT
    return value


def _same(found: Any, expected: Any) -> bool:
    # True is 1 to Python, and not to JSON.
    return found == expected and isinstance(found, bool) == isinstance(expected, bool)


def _occurs(text: str, value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_occurs(text, one) for one in value.values())
    if isinstance(value, list):
        return any(_occurs(text, one) for one in value)
    return text.casefold() in str(value).casefold()


def _told(wanted: ExpectedDocument) -> str:
    parts = [f"{path} = {json.dumps(value, ensure_ascii=False)}" for path, value in wanted.has.items()]
    return ", ".join([*parts, *(repr(text) for text in wanted.contains)]) or "any"


def _shown(documents: Sequence[Value]) -> str:
    return json.dumps(list(documents), ensure_ascii=False)
