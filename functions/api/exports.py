"""Routes of exports: a bank's entries as a file."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from memory_banks import versions
from memory_banks.errors import NotFound
from memory_banks.ids import CALLER_ID
from memory_banks.requests import CreateExport, ExportResource, ListExports

from .answers import Answer, answer, documented, nothing
from .lists import listed
from .router import Router

if TYPE_CHECKING:
    from memory_banks.bank import Bank

    from .call import Call

router = Router()
TAGS = ["Exports"]
_BINARY: Any = {"schema": {"type": "string", "format": "binary"}}
_TYPES = ("application/x-ndjson", "text/csv", "application/vnd.apache.parquet", "application/zip")
_CONTENT: Any = dict.fromkeys(_TYPES, _BINARY) | {"application/json": {"schema": {"$ref": "#/components/schemas/ExportFile"}}}


class File(Response[Any]):
    """Bytes as they are, on their way through JSON; Powertools would take them for text."""

    def __init__(self, content_type: str, body: bytes, headers: dict[str, Any]) -> None:
        super().__init__(200, content_type, base64.b64encode(body).decode(), headers=headers)
        self.base64_encoded = True

    def is_json(self) -> bool:
        """Not to be serialised."""
        return False


@router.get(
    "/sources/<source_connection_id>/exports",
    summary="List exports",
    tags=TAGS,
    responses=documented("ExportPage", "A page of exports"),
)
def list_exports(source_connection_id: str, query: Annotated[ListExports, Query()]) -> Answer:
    """Of the last 30 days, newest first."""
    from memory_banks import exports

    call, bank = _bank("read", source_connection_id)
    found = exports.listed(call.ports, bank, page=query.page, limit=query.limit)
    shown = [exports.shown(item) for item in found.exports]
    return answer(listed("exports", shown, versions.LATEST, page=query.page, limit=query.limit, total=found.total))


@router.post(
    "/sources/<source_connection_id>/exports",
    summary="Export a bank",
    tags=TAGS,
    status_code=202,
    responses=documented("Export", "The export", 202),
)
def create_export(source_connection_id: str, body: Annotated[CreateExport, Body()]) -> Answer:
    """Begins to write the living entries to a file, which can be downloaded for seven days once it is completed."""
    return _created(*_bank("write", source_connection_id), body)


@router.post(
    "/authenticated/resource-exports",
    summary="Export a resource",
    tags=TAGS,
    status_code=202,
    responses=documented("Export", "The export", 202),
)
def export_resource(body: Annotated[ExportResource, Body()]) -> Answer:
    """The same for a bank's id; JSON with the bank's configuration unless another format is given."""
    from memory_banks import banks

    call = router.call("write")
    bank = banks.get(call.ports, call.account, body.resource_id)
    if bank.source_connection_id is None:
        raise NotFound("The bank has no source; nothing was written since it was deleted.", code="source_not_found")
    return _created(call, bank, body)


@router.post(
    "/sources/<source_connection_id>/exports/estimate",
    summary="Estimate an export",
    tags=TAGS,
    responses=documented("ExportEstimate", "About how large it would be"),
)
def estimate_export(source_connection_id: str, body: Annotated[CreateExport, Body()]) -> Answer:
    """Of all entries, whatever the filters; from counters, no entry is read."""
    from memory_banks import exports

    call, bank = _bank("read", source_connection_id)
    size = exports.estimate(call.ports, bank, body.format)
    return answer({"source_connection_id": source_connection_id, "estimated_size_bytes": size})


@router.get(
    "/sources/<source_connection_id>/exports/<export_id>",
    summary="Get an export",
    tags=TAGS,
    responses=documented("Export", "The export"),
)
def get_export(source_connection_id: str, export_id: str) -> Answer:
    """How far it is, or what became of it."""
    from memory_banks import exports

    call, bank = _bank("read", source_connection_id)
    return answer(exports.shown(exports.get(call.ports, bank, _id(export_id))))


@router.delete(
    "/sources/<source_connection_id>/exports/<export_id>",
    summary="Delete an export",
    tags=TAGS,
    status_code=204,
    responses=documented(None, "Gone", 204),
)
def delete_export(source_connection_id: str, export_id: str) -> Answer:
    """With its file; one under way is cancelled."""
    from memory_banks import exports

    call, bank = _bank("write", source_connection_id)
    exports.delete(call.ports, bank, _id(export_id))
    return nothing()


@router.post(
    "/sources/<source_connection_id>/exports/<export_id>/cancel",
    summary="Cancel an export",
    tags=TAGS,
    responses=documented("Export", "The export"),
)
def cancel_export(source_connection_id: str, export_id: str) -> Answer:
    """Stops within seconds; one that has ended stays as it is."""
    from memory_banks import exports

    call, bank = _bank("write", source_connection_id)
    return answer(exports.shown(exports.cancel(call.ports, bank, _id(export_id))))


@router.get(
    "/sources/<source_connection_id>/exports/<export_id>/download",
    summary="Download an export",
    tags=TAGS,
    responses={200: {"description": "The file", "content": _CONTENT}},
)
def download_export(source_connection_id: str, export_id: str) -> Answer:
    """The file, up to 4 MB. A longer one is a 413 `download_elsewhere`, whose `url` works for 15 minutes.

    409 `export_not_ready` unless it is completed, 410 `export_expired` after seven days.
    """
    from memory_banks import exports

    call, bank = _bank("read", source_connection_id)
    item, body = exports.download(call.ports, bank, _id(export_id))
    headers = {"Content-Disposition": f'attachment; filename="{exports.name_of(item)}"'}
    return File(exports.CONTENT_TYPES[item["format"]], body, headers)


def _bank(scope: Any, source_connection_id: str) -> tuple[Call, Bank]:
    from memory_banks import exports

    call = router.call(scope)
    return call, exports.bank_of_source(call.ports, call.account, source_connection_id)


def _created(call: Call, bank: Bank, body: CreateExport | ExportResource) -> Answer:
    from memory_banks import exports

    item = exports.create(call.ports, bank, body.wanted(body.format), call.caller.key_id)
    return answer(exports.shown(item), 202)


def _id(export_id: str) -> str:
    if CALLER_ID.fullmatch(export_id):
        return export_id
    raise NotFound("There is no such export.", code="export_not_found")
