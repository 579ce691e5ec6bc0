"""Routes of banks."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from memory_banks import banks
from memory_banks.requests import CreateBank, FindByName, ListBanks, UpdateBank

from .answers import Answer, answer, documented, nothing
from .lists import listed
from .router import Router

router = Router()
TAGS = ["Banks"]


@router.get("/memory_banks", summary="List banks", tags=TAGS, responses=documented("MemoryBankList", "A page of banks"))
def list_banks(query: Annotated[ListBanks, Query()]) -> Answer:
    """The account's banks, newest first unless asked otherwise."""
    call = router.call("read")
    page = banks.list_page(call.ports, call.account, query)
    shown = [banks.shown(bank, call.version) for bank in page.banks]
    return answer(listed("memory_banks", shown, call.version, page=query.page, limit=query.limit, total=page.total))


@router.post(
    "/memory_banks", summary="Create a bank", tags=TAGS, status_code=201, responses=documented("MemoryBank", "The bank", 201)
)
def create_bank(body: Annotated[CreateBank, Body()]) -> Answer:
    """A new bank, with the defaults of its type and mode."""
    call = router.call("write")
    return answer(banks.shown(banks.create(call.ports, call.account, body, call.version), call.version), 201)


@router.get("/memory_banks/<bank_id>", summary="Get a bank", tags=TAGS, responses=documented("MemoryBank", "The bank"))
def get_bank(bank_id: str) -> Answer:
    """One bank."""
    call = router.call("read")
    return answer(banks.shown(banks.get(call.ports, call.account, bank_id), call.version))


@router.put("/memory_banks/<bank_id>", summary="Change a bank", tags=TAGS, responses=documented("MemoryBank", "The bank"))
def update_bank(bank_id: str, body: Annotated[UpdateBank, Body()]) -> Answer:
    """What is left out stays; 0 or null clears a number, an empty text or null a text."""
    call = router.call("write")
    bank = banks.update(call.ports, call.account, bank_id, body, call.version, deadline=call.deadline)
    return answer(banks.shown(bank, call.version))


@router.delete(
    "/memory_banks/<bank_id>", summary="Delete a bank", tags=TAGS, status_code=204, responses=documented(None, "Gone", 204)
)
def delete_bank(bank_id: str) -> Answer:
    """The bank with its source and all entries: gone from every answer at once."""
    from memory_banks import deletion

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    deletion.delete_bank(call.ports, bank, deadline=call.deadline)
    return nothing()


@router.delete(
    "/memory_banks/<bank_id>/source",
    summary="Delete a bank's source",
    tags=TAGS,
    status_code=204,
    responses=documented(None, "Gone", 204),
)
def delete_source(bank_id: str) -> Answer:
    """All entries, counters, watermarks, pending runs and cursors; the settings stay."""
    from memory_banks import deletion

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    deletion.delete_source(call.ports, bank, deadline=call.deadline)
    return nothing()


@router.get("/search", summary="Find banks by name", tags=TAGS, responses=documented("FoundByName", "What was found"))
def find_by_name(query: Annotated[FindByName, Query()]) -> Answer:
    """Banks whose name or description has the text in it."""
    call = router.call("read")
    wanted = query.entity_type in {None, "memory_bank"}
    found = banks.find(call.ports, call.account, query.q, query.limit) if wanted else []
    results = [{"id": bank.id, "name": bank.name, "entity_type": "memory_bank", "description": bank.description} for bank in found]
    return answer({"results": results})
