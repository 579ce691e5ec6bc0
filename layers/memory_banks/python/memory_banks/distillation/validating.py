"""Whether what a model made of a document may be kept: valid under its schema, and nothing lost that a person put there.

The schema counts for what the model does. It may add only what the schema names, unless that says additionalProperties; what a
person stored beyond it is kept as it is; and what was not valid before stays the person's own.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import Invalid, TooLarge
from ..store.document import checked_value
from .memory_types import resolved

SHOWN = 5
"""Reasons that are told at once."""

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]


class Unfit(ValueError):
    """A document that may not be kept. The message says why, for the model and for people."""


class Unnamed(NamedTuple):
    """A member that the schema does not name: the object it is in, its name and value."""

    path: Path
    name: str
    value: Any


def settled(parameters: Schema, before: Mapping[str, Any] | None, after: Any) -> dict[str, Any]:
    """The document that is kept where a model made `before` (None: nothing) into `after`. Raises `Unfit`.

    Its nulls for what it does not know are taken out, and what a person stored beyond the schema is put back in.
    """
    if not isinstance(after, dict):
        raise Unfit("must be an object")
    value = copy.deepcopy(after)
    if before is None:
        _drop_nulls(parameters, value)
    kept = list(unnamed(parameters, before)) if before is not None else []
    _put_back(value, kept)
    _drop_wrong_nulls(parameters, before, value, kept)
    reasons = [*_added(parameters, kept, value), *_lost(kept, value), *_errors(parameters, before, value, kept)]
    if reasons:
        more = f"; and {len(reasons) - SHOWN} more" if len(reasons) > SHOWN else ""
        raise Unfit("; ".join(reasons[:SHOWN]) + more)
    try:
        checked_value(value, ("value",))
    except (Invalid, TooLarge) as error:
        raise Unfit(error.message) from None
    return value


def canonical(value: Any) -> str:
    """The same text for the same JSON value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


# --------------------------------------------------------------------------------------------------------------------
# What the schema names


def unnamed(parameters: Schema, document: Mapping[str, Any]) -> Iterator[Unnamed]:
    """Every member that no schema of its place names. An object of which no schema names a member may hold any."""
    for place in _places(parameters, document):
        if isinstance(place.value, dict) and not place.free:
            for name, inner in place.value.items():
                if not place.schemas_of(name):
                    yield Unnamed(place.path, name, inner)


class _Place:
    """A part of a document with all schemas that apply to it."""

    def __init__(self, root: Schema, path: Path, value: Any, schemas: Sequence[Any]) -> None:
        self.path = path
        self.value = value
        self._schemas = list(_in_place(root, schemas))

    @property
    def free(self) -> bool:
        """Whether an object here may have members that are not named."""
        named = any(one.get("properties") or one.get("patternProperties") for one in self._schemas)
        return not named or any(one.get(rest, False) is not False for one in self._schemas for rest in _REST)

    @property
    def required(self) -> set[str]:
        """What an object here must have, by one of the schemas."""
        return {name for one in self._schemas for name in one.get("required", ())}

    def schemas_of(self, name: str) -> list[Any]:
        """The schemas that name a member."""
        found = [one["properties"][name] for one in self._schemas if name in one.get("properties", {})]
        for one in self._schemas:
            found += [inner for pattern, inner in one.get("patternProperties", {}).items() if re.search(pattern, name)]
        return found

    def parts(self) -> Iterator[tuple[str | int, Any, list[Any]]]:
        """What is in it, with the schemas of each part."""
        if isinstance(self.value, dict):
            rest = [one[name] for one in self._schemas for name in _REST if isinstance(one.get(name), Mapping)]
            for name, inner in self.value.items():
                yield name, inner, self.schemas_of(name) or rest
        elif isinstance(self.value, list):
            for position, inner in enumerate(self.value):
                yield position, inner, list(self._items(position))

    def _items(self, position: int) -> Iterator[Any]:
        for one in self._schemas:
            # `items` was a list of positions once, `prefixItems` now.
            first = one.get("prefixItems") or (one["items"] if isinstance(one.get("items"), list) else [])
            rest = one.get("additionalItems") if isinstance(one.get("items"), list) else one.get("items")
            if position < len(first):
                yield first[position]
            elif rest is not None:
                yield rest


_REST = ("additionalProperties", "unevaluatedProperties")
_COMBINED = ("allOf", "anyOf", "oneOf")
_CONDITIONAL = ("if", "then", "else")


def _places(parameters: Schema, document: Any) -> Iterator[_Place]:
    waiting = [_Place(parameters, (), document, [parameters])]
    while waiting:
        place = waiting.pop()
        yield place
        for name, inner, schemas in place.parts():
            if isinstance(inner, dict | list) and schemas:
                waiting.append(_Place(parameters, (*place.path, name), inner, schemas))


def _in_place(root: Schema, schemas: Sequence[Any]) -> Iterator[Schema]:
    """These schemas and all that apply to the same value because of them."""
    waiting = list(schemas)
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Mapping) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one.get("$ref"), str):
            waiting.append(resolved(root, one["$ref"]))
        for name in _COMBINED:
            waiting += one.get(name, ())
        waiting += [one[name] for name in _CONDITIONAL if name in one]
        # `dependencies` hold names or schemas in earlier versions.
        waiting += [*one.get("dependentSchemas", {}).values(), *one.get("dependencies", {}).values()]


def _added(parameters: Schema, kept: Sequence[Unnamed], value: dict[str, Any]) -> list[str]:
    """What the model added beyond the schema."""
    allowed = {(one.name, canonical(one.value)) for one in kept}
    return [
        f"{_shown((*one.path, one.name))}: the schema has no such name" + _named_at(parameters, one.path)
        for one in unnamed(parameters, value)
        if (one.name, canonical(one.value)) not in allowed
    ]


def _named_at(parameters: Schema, path: Path) -> str:
    if path:
        return ""
    names = sorted({name for one in _in_place(parameters, [parameters]) for name in one.get("properties", {})})
    return f", only {', '.join(names)}"


def _put_back(value: dict[str, Any], kept: Sequence[Unnamed]) -> None:
    """What a person stored and the model took out."""
    for one in _in_objects(kept):
        parent: Any = value
        for step in one.path:
            parent = parent.setdefault(step, {}) if isinstance(parent, dict) else None
        if isinstance(parent, dict):
            parent.setdefault(one.name, copy.deepcopy(one.value))


def _lost(kept: Sequence[Unnamed], value: dict[str, Any]) -> list[str]:
    """What a person stored and is not there any more, because the model put something else in the place of the object."""
    lost = []
    for one in _in_objects(kept):
        current: Any = value
        for step in (*one.path, one.name):
            if not isinstance(current, dict) or step not in current:
                lost.append(f"{_shown((*one.path, one.name))}: was stored by a person and must stay")
                break
            current = current[step]
    return lost


def _in_objects(kept: Sequence[Unnamed]) -> list[Unnamed]:
    """Those that are in no array: its elements come and go, and have no place of their own."""
    return [one for one in kept if all(isinstance(step, str) for step in one.path)]


# --------------------------------------------------------------------------------------------------------------------
# Nulls


def _drop_nulls(parameters: Schema, value: dict[str, Any]) -> None:
    """Take out the nulls of a new document that its schema does not ask for: what is not known is absent."""
    for place in list(_places(parameters, value)):
        if isinstance(place.value, dict):
            for name in [name for name, inner in place.value.items() if inner is None]:
                if name not in place.required and place.schemas_of(name):
                    del place.value[name]


def _drop_wrong_nulls(parameters: Schema, before: Mapping[str, Any] | None, value: dict[str, Any], kept: Sequence[Unnamed]) -> None:
    """Take out the nulls that the schema forbids and the model put there: it can only mean that there is nothing."""
    old = _violations(parameters, _without(parameters, before, kept)) if before is not None else Counter()
    for one in _violations(parameters, _without(parameters, value, kept)) - old:
        if one.null and one.path and isinstance(one.path[-1], str):
            parent: Any = value
            for step in one.path[:-1]:
                parent = parent[step]
            parent.pop(one.path[-1], None)


# --------------------------------------------------------------------------------------------------------------------
# The validator


class _Violation(NamedTuple):
    path: Path
    keyword: str
    message: str
    null: bool


def _errors(parameters: Schema, before: Mapping[str, Any] | None, value: dict[str, Any], kept: Sequence[Unnamed]) -> list[str]:
    """What the validator says against it, but for what it said before."""
    old = _violations(parameters, _without(parameters, before, kept)) if before is not None else Counter()
    found = _violations(parameters, _without(parameters, value, kept)) - old
    return [f"{_shown(one.path)}: {one.message}" for one in found]


def validates(parameters: Schema) -> bool:
    """Whether anything can be validated by it at all: a schema may lead to itself without end."""
    return not any(one.message == _ENDLESS for one in _violations(parameters, {}))


_ENDLESS = "the schema leads to itself"


def _violations(parameters: Schema, document: Any) -> Counter[_Violation]:
    # Imported here: most processes never validate a document.
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    # An empty registry: nothing is ever fetched.
    validator = validator_for(parameters, default=Draft202012Validator)(parameters, registry=Registry())
    try:
        return Counter(
            _Violation(tuple(error.absolute_path), str(error.validator), error.message[:300], error.instance is None)
            for error in validator.iter_errors(document)
        )
    except RecursionError:
        return Counter([_Violation((), "$ref", _ENDLESS, False)])


def _without(parameters: Schema, document: Any, kept: Sequence[Unnamed]) -> Any:
    """The document without what a person stored beyond the schema, which even additionalProperties: false does not forbid."""
    if not kept:
        return document
    theirs = {(one.name, canonical(one.value)) for one in kept}
    stripped = copy.deepcopy(document)
    for one in list(unnamed(parameters, stripped)):
        if (one.name, canonical(one.value)) in theirs:
            parent = stripped
            for step in one.path:
                parent = parent[step]
            parent.pop(one.name, None)
    return stripped


def _shown(path: Path) -> str:
    shown = ""
    for step in path:
        shown += f"[{step}]" if isinstance(step, int) else f".{step}" if shown else step
    return shown or "the document"
