"""Between LangGraph's operations and the service's, in the form of `POST /store/batch`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp, validate_op_namespace

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
        case GetOp() | PutOp():
            return op._replace(namespace=tuple(op.namespace))
        case SearchOp():
            return op._replace(namespace_prefix=tuple(op.namespace_prefix))
        case ListNamespacesOp():
            return op
    raise ValueError(f"Unknown operation type: {type(op)}")


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
