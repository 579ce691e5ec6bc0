"""Between LangGraph's operations and the service's, in the form of `POST /store/batch`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from clients.langgraph.errors import Refused
from clients.langgraph.items import FoundItem, StoredItem

LONGEST_PAGE = 1_000


def checked(ops: Iterable[Op]) -> list[Op]:
    """The operations, lists as tuples. One bad label rejects all of them. Raises `InvalidNamespaceError` and `ValueError`."""
    made = [_normal(op) for op in ops]
    for op in made:
        validate_op_namespace(op)
    return made


def _normal(op: Op) -> Op:
    match op:
        case GetOp():
            return op._replace(namespace=_labels(op.namespace))
        case PutOp():
            if not (op.index is None or op.index is False or _texts(op.index)):
                raise Refused(f"index must be None, False or a list of paths, not {op.index!r}")
            return op._replace(namespace=_labels(op.namespace))
        case SearchOp():
            if not (op.query is None or isinstance(op.query, str)):
                raise Refused(f"query must be a text, not {op.query!r}")
            return op._replace(namespace_prefix=_labels(op.namespace_prefix))
        case ListNamespacesOp():
            for one in op.match_conditions or ():
                if one.match_type not in {"prefix", "suffix"}:
                    raise ValueError(f"Unsupported match type: {one.match_type}")
            return op._replace(match_conditions=tuple(map(_condition, op.match_conditions or ())))
    raise ValueError(f"Unknown operation type: {type(op)}")


def _condition(given: MatchCondition) -> MatchCondition:
    """A text is one label here: LangGraph's own suites leave out the comma of a tuple of one."""
    path = (given.path,) if isinstance(given.path, str) else tuple(given.path)
    return MatchCondition(given.match_type, path)


def _labels(given: Any) -> tuple[str, ...]:
    """A text is no namespace: its letters would be taken for labels."""
    if isinstance(given, str | bytes):
        raise InvalidNamespaceError(f"A namespace is a tuple of labels, not a text: {given!r}")
    return tuple(given)


def _texts(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)


def encoded(body: Any) -> bytes:
    """JSON in UTF-8, as short as the service measures it. Raises `ValueError` for a number that is none."""
    text = json.dumps(body, allow_nan=False, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate: the service says where
        return json.dumps(body, allow_nan=False).encode()


def operation(op: Op) -> dict[str, Any]:
    """One operation as it is sent."""
    match op:
        case GetOp():
            return {"op": "get", "namespace": list(op.namespace), "key": op.key, "refresh_ttl": op.refresh_ttl}
        case PutOp() if op.value is None:
            return {"op": "delete", "namespace": list(op.namespace), "key": op.key}
        case PutOp():
            made = {"op": "put", "namespace": list(op.namespace), "key": op.key, "value": plain(op.value)}
            return made | {"index": op.index, "ttl": op.ttl}
        case SearchOp():
            return {
                "op": "search",
                "namespace_prefix": list(op.namespace_prefix),
                "filter": plain(op.filter) if op.filter else None,
                "query": op.query,
                "limit": op.limit,
                "offset": op.offset,
                "refresh_ttl": op.refresh_ttl,
            }
        case ListNamespacesOp():
            conditions = [{"match_type": one.match_type, "path": list(one.path)} for one in op.match_conditions or ()]
            return {
                "op": "list_namespaces",
                "match_conditions": conditions,
                "max_depth": op.max_depth,
                "limit": op.limit,
                "offset": op.offset,
            }


def result(op: Op, answered: Any) -> Result:
    """The result of an operation as LangGraph has it."""
    match op:
        case GetOp():
            return StoredItem(answered) if answered else None
        case SearchOp():
            found: list[SearchItem] = [FoundItem(one) for one in answered["items"]]
            return found
        case ListNamespacesOp():
            return [tuple(one) for one in answered["namespaces"]]
        case _:
            return None


def plain(value: Any, depth: int = 0) -> Any:
    """Objects and lists of any kind as plain ones. Raises `Refused` for what can't be JSON."""
    if depth > 200:
        raise Refused("a value is nested too deeply")
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise Refused("names in a value must be texts")
        return {name: plain(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, depth + 1) for one in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise Refused(f"a value must be JSON; {type(value).__name__} is not")
