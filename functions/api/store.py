"""Routes of the store, as LangGraph's client calls them; a batch of operations, and comparing before setting, are ours."""

from __future__ import annotations

import re
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Header, Query
from memory_banks.errors import Invalid, TooLarge
from memory_banks.store.document import Document
from memory_banks.store.namespaces import Namespace, writable
from memory_banks.store.requests import Batch, GetItem, ItemName, ListNamespaces, PutItem, SearchItems
from memory_banks.store.searching import Found
from memory_banks.store.store import Result, Store
from memory_banks.store.writing import Write

from .answers import ANSWER_BYTES, Answer, answer, documented, wire_bytes
from .router import Router

router = Router()
TAGS = ["Store"]

_ETAG = re.compile(r'(?:W/)?"([0-9A-Z]{26})"|([0-9A-Z]{26})')


@router.put("/store/items", summary="Put an item", tags=TAGS, status_code=204, responses=documented(None, "Written", 204))
def put_item(
    body: Annotated[PutItem, Body()],
    if_match: Annotated[str | None, Header(alias="If-Match")] = None,
    if_none_match: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Answer:
    """Written, replaced, and searchable when answered. `ETag` is its version; `If-Match` and `If-None-Match: *` compare first."""
    call = router.call("write")
    document = Store(call.ports, call.account).put(
        body.namespace,
        body.key,
        body.value,
        index=body.index,
        ttl=body.ttl,
        if_version=_version(if_match),
        if_absent=_absent(if_none_match),
        deadline=call.deadline,
    )
    return Response(204, None, None, headers={"ETag": f'"{document.version}"'})


@router.get("/store/items", summary="Get an item", tags=TAGS, responses=documented("FoundItem", "The item, or null"))
def get_item(query: Annotated[GetItem, Query()]) -> Answer:
    """The item, or null where there is none."""
    call = router.call("read")
    namespace = query.namespace.split(".") if query.namespace else []
    found = Store(call.ports, call.account).get(namespace, query.key, refresh=query.refresh_ttl is not False)
    return _fitting(found and found.shown(), {"ETag": f'"{found.version}"'} if found else {})


@router.delete("/store/items", summary="Delete an item", tags=TAGS, status_code=204, responses=documented(None, "Gone", 204))
def delete_item(body: Annotated[ItemName, Body()], if_match: Annotated[str | None, Header(alias="If-Match")] = None) -> Answer:
    """Gone from every answer at once. One that is not there is no error."""
    call = router.call("write")
    Store(call.ports, call.account).delete(body.namespace, body.key, if_version=_version(if_match), deadline=call.deadline)
    return Response(204, None, None)


@router.post("/store/items/search", summary="Search items", tags=TAGS, responses=documented("FoundItems", "A page of items"))
def search_items(body: Annotated[SearchItems, Body()]) -> Answer:
    """What is at and below a prefix and passes the filter: newest write first, or with a query nearest first."""
    call = router.call("read")
    found = Store(call.ports, call.account).search(
        body.namespace_prefix,
        filter=body.filter,
        query=body.query,
        limit=body.limit,
        offset=body.offset,
        refresh=body.refresh_ttl is not False,
    )
    return _fitting(_shown(found))


@router.post("/store/namespaces", summary="List namespaces", tags=TAGS, responses=documented("Namespaces", "A page of namespaces"))
def list_namespaces(body: Annotated[ListNamespaces, Body()]) -> Answer:
    """Those that hold an item, distinct and sorted."""
    call = router.call("read")
    found = Store(call.ports, call.account).list_namespaces(
        prefix=body.prefix or (), suffix=body.suffix or (), max_depth=body.max_depth, limit=body.limit, offset=body.offset
    )
    return _fitting({"namespaces": [list(one) for one in found]})


@router.post("/store/batch", summary="Do several operations", tags=TAGS, responses=documented("BatchResults", "A result for each"))
def store_batch(body: Annotated[Batch, Body()]) -> Answer:
    """Reads see the state before, writes come last. Nothing is written when one of them is wrong."""
    operations = [one.operation() for one in body.operations]
    writes = [one for one in operations if isinstance(one, Write)]
    call = router.call("write" if writes else "read")
    for one in writes:
        if one.value is not None:
            writable(one.namespace)
    kinds = [one.op for one in body.operations]

    def answered(results: list[Result]) -> Answer:
        return _fitting({"results": [_result(kind, one) for kind, one in zip(kinds, results, strict=True)]})

    return answered(Store(call.ports, call.account).batch(operations, deadline=call.deadline, before_writing=answered))


def _result(kind: str, result: Result) -> Any:
    if isinstance(result, Document):
        return result.shown()
    if kind == "search":
        return _shown(result)  # type: ignore[arg-type]
    if kind == "list_namespaces":
        names: list[Namespace] = result  # type: ignore[assignment]
        return {"namespaces": [list(one) for one in names]}
    return None


def _shown(found: list[Found]) -> dict[str, Any]:
    return {"items": [one.document.shown() | {"score": one.score} for one in found]}


def _fitting(body: Any, headers: dict[str, str] | None = None) -> Answer:
    """The answer. Raises `TooLarge` where it is more than a function may give: the caller asks for less."""
    made = answer(body, headers=headers)
    assert isinstance(made.body, str)
    size = wire_bytes(made.body)
    if size > ANSWER_BYTES:
        message = f"The answer would have {size:,} bytes; at most {ANSWER_BYTES:,} are possible. Ask for fewer items (limit)."
        raise TooLarge(message, code="answer_too_large")
    return made


def _version(header: str | None) -> str | None:
    if header is None:
        return None
    match = _ETAG.fullmatch(header.strip())
    if not match:
        raise Invalid(("header", "If-Match"), 'must be the version of an item in quotes, as in "01J…"')
    return match[1] or match[2]


def _absent(header: str | None) -> bool:
    if header is None:
        return False
    if header.strip() != "*":
        raise Invalid(("header", "If-None-Match"), "can only be *: write where there is no item")
    return True
