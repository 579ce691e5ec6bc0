"""Filters over a document's value: top-level names, ANDed, each with a value to equal or with operators.

    {"color": "red", "score": {"$gte": 4, "$lt": 5}, "$or": [{"a": 1}, {"b": {"$exists": False}}]}

A name with periods that is none of the value's own goes down into objects: `user.city`.

Numbers compare with numbers and texts with texts; any other pair has no order and matches nothing. `true` is no number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import BadRequest
from ..ports import MetadataTest

OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists")
JUNCTIONS = ("$and", "$or")
DEPTH = 32

INDEXED_NAME = 256
"""Characters of a name that the vector index knows values of."""
INDEXED_TEXT = 128
"""Characters of a text value that it knows."""
_EXACT = 2**53
"""Up to here every whole number is a float of its own."""


def check(filter: Mapping[str, Any], depth: int = 0) -> None:
    """Raises `BadRequest` for what is no filter, naming the operator that is not known or has a wrong operand."""
    if not isinstance(filter, Mapping):
        raise _wrong("filter: must be an object of names and conditions")
    if depth > DEPTH:
        raise _wrong(f"filter: is nested deeper than {DEPTH} levels")
    for name, condition in filter.items():
        if name in JUNCTIONS:
            if not _sequence(condition):
                raise _wrong(f"filter: {name} takes a list of filters")
            for one in condition:
                check(one, depth + 1)
        elif name.startswith("$"):
            raise _unknown(name, JUNCTIONS)
        else:
            _check_condition(name, condition, depth + 1)


def matches(filter: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether a document's value passes a filter that was checked."""
    for name, condition in filter.items():
        if name == "$and":
            passed = all(matches(one, value) for one in condition)
        elif name == "$or":
            passed = any(matches(one, value) for one in condition)
        else:
            passed = _passes(condition, *_found(value, name))
        if not passed:
            return False
    return True


def indexable(value: Mapping[str, Any]) -> dict[str, Any]:
    """What of a value the vector index may know: short plain values at the top."""
    return {name: one for name, one in value.items() if _indexed_name(name) and _indexed_value(one)}


def implied(filter: Mapping[str, Any]) -> tuple[MetadataTest, ...]:
    """Tests on `indexable` values that every document which passes the filter passes too: they spare hits, and lose none."""
    return tuple(_implied(filter))


def _check_condition(name: str, condition: Any, depth: int) -> None:
    if depth > DEPTH:
        raise _wrong(f"filter: {name} is nested deeper than {DEPTH} levels")
    if not isinstance(condition, Mapping):
        if _sequence(condition):
            for one in condition:
                _check_condition(name, one, depth + 1)
        return
    operators = any(isinstance(one, str) and one.startswith("$") for one in condition)
    for operator, operand in condition.items():
        if not operators:
            _check_condition(f"{name}.{operator}", operand, depth + 1)
        elif operator not in OPERATORS:
            raise _unknown(operator, OPERATORS)
        elif operator in {"$in", "$nin"} and not _sequence(operand):
            raise _wrong(f"filter: {name}: {operator} takes a list of values")
        elif operator == "$exists" and not isinstance(operand, bool):
            raise _wrong(f"filter: {name}: $exists takes true or false")


def _passes(condition: Any, value: Any, there: bool) -> bool:
    if isinstance(condition, Mapping):
        if any(isinstance(name, str) and name.startswith("$") for name in condition):
            return all(_operated(operator, operand, value, there) for operator, operand in condition.items())
        return isinstance(value, Mapping) and all(
            _passes(inner, value.get(name), name in value) for name, inner in condition.items()
        )
    if _sequence(condition):
        return (
            _sequence(value)
            and len(value) == len(condition)
            and all(_passes(inner, one, True) for inner, one in zip(condition, value, strict=True))
        )
    return equal(value, condition)


def _found(value: Mapping[str, Any], name: str) -> tuple[Any, bool]:
    """What is under a name, and whether anything is."""
    if name in value or "." not in name:
        return value.get(name), name in value
    found: Any = value
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None, False
        found = found[part]
    return found, True


def _operated(operator: str, operand: Any, value: Any, there: bool) -> bool:
    match operator:
        case "$eq":
            return equal(value, operand)
        case "$ne":
            return not equal(value, operand)
        case "$in":
            return any(equal(value, one) for one in operand)
        case "$nin":
            return not any(equal(value, one) for one in operand)
        case "$exists":
            return there is operand
    if not (_number(value) and _number(operand)) and not (isinstance(value, str) and isinstance(operand, str)):
        return False
    match operator:
        case "$gt":
            return bool(value > operand)
        case "$gte":
            return bool(value >= operand)
        case "$lt":
            return bool(value < operand)
        case _:
            return bool(value <= operand)


def equal(one: Any, other: Any) -> bool:
    """JSON's equality: 1 is 1.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(inner, other[name]) for name, inner in one.items())
    if _sequence(one) and _sequence(other):
        return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _implied(filter: Mapping[str, Any]) -> Iterator[MetadataTest]:
    for name, condition in filter.items():
        if name == "$and":
            for one in condition:
                yield from _implied(one)
        elif name == "$or" or not _indexed_name(name) or "." in name:
            continue
        elif isinstance(condition, Mapping):
            for operator, operand in condition.items():
                if operator == "$eq" and _indexed_value(operand):
                    yield MetadataTest(name, "eq", operand)
                elif operator == "$in" and operand and all(map(_indexed_value, operand)):
                    yield MetadataTest(name, "in", list(operand))
                elif operator in {"$gt", "$gte", "$lt", "$lte"} and _number(operand) and abs(operand) < _EXACT:
                    yield from _ranged(name, operator, operand)
        elif _indexed_value(condition):
            yield MetadataTest(name, "eq", condition)


def _ranged(name: str, operator: str, operand: Any) -> Iterator[MetadataTest]:
    # Whole numbers beyond 2^53 may share the index's float with the bound: only the wider test is sure.
    if operator in {"$gt", "$gte"}:
        yield MetadataTest(name, "gte", operand)
    else:
        yield MetadataTest(name, "lte", operand)


def _indexed_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= INDEXED_NAME and "\0" not in name


def _indexed_value(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= INDEXED_TEXT and "\0" not in value
    return isinstance(value, bool | int | float)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _unknown(operator: Any, known: Sequence[str]) -> BadRequest:
    return BadRequest(f"filter: {operator} is no known operator; known here are {', '.join(known)}", code="unknown_operator")


def _wrong(message: str) -> BadRequest:
    return BadRequest(message, code="invalid_filter")
