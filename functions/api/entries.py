"""Routes of entries: write, load, correct, delete, forget."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Body, Header, Query
from memory_banks import agents, banks, ids, loading, partitions, writing
from memory_banks.entries import Entry
from memory_banks.errors import Invalid, NotFound
from memory_banks.limits import IDEMPOTENCY_KEY_LENGTH
from memory_banks.requests import (
    CorrectEntry,
    ForgetKey,
    ListKeys,
    LoadEntries,
    RenameKey,
    Write,
    WriteOne,
    WriteOptions,
    entries_of,
)

from .answers import ANSWER_BYTES, Answer, answer, documented, nothing, wire_bytes
from .event import raw_body
from .router import Router

router = Router()
TAGS = ["Entries"]

WAIT = 20_000
"""How long a write waits until it is searchable, ms."""

ROLES = frozenset({"user", "assistant", "system"})

_IF_MATCH = re.compile(r'(?:W/)?"([1-9][0-9]{0,8})"|([1-9][0-9]{0,8})')


@router.post(
    "/memory_banks/<bank_id>/entries",
    summary="Write entries",
    tags=TAGS,
    status_code=201,
    responses=documented("Written", "The entries, in the order of the request", 201),
)
def write_entries(
    bank_id: str,
    body: Annotated[Write, Body()],
    query: Annotated[WriteOptions, Query()],
    idempotency_key: Annotated[str | None, Header(alias="Idempotency-Key")] = None,
) -> Answer:
    """One entry, or up to 100 under `entries`. Durable when answered, searchable soon after (`wait=true` waits for that)."""
    call = router.call("write")
    try:
        written = writing.write(
            call.ports,
            call.account,
            bank_id,
            entries_of(body),
            idempotency=_idempotency(idempotency_key),
            deadline=call.deadline,
        )
    except Invalid as error:
        if isinstance(body, WriteOne) and error.loc[:3] == ("body", "entries", 0):
            raise Invalid(("body", *error.loc[3:]), error.message, error.kind) from None
        raise
    agents.note(call.ports, bank_id, body.agent_id)
    entries = [one.entry for one in written]
    if query.wait:
        bank = banks.get(call.ports, call.account, bank_id)
        until = min(call.deadline, call.ports.clock.now() + WAIT)
        entries = loading.wait_until_indexed(call.ports, bank, entries, until)
    shown = [entry.shown() | ({"existing": True} if one.existing else {}) for entry, one in zip(entries, written, strict=True)]
    return answer({"entries": shown}, 201)


@router.get(
    "/memory_banks/<bank_id>/entries",
    summary="Load entries",
    tags=TAGS,
    responses=documented("Loaded", "A page of entries or of chat messages"),
)
def load_entries(bank_id: str, query: Annotated[LoadEntries, Query()]) -> Answer:
    """The entries of a key, in the order they were written."""
    call = router.call("read")
    bank = banks.get(call.ports, call.account, bank_id)
    if bank.conversation and not query.key:
        raise Invalid(("query", "key"), "required in a conversation bank: which conversation to load", "missing")
    wanted = loading.Load(
        key=query.key or "",
        order=query.order,
        limit=query.limit,
        cursor=query.cursor,
        max_tokens=query.max_tokens,
        speakers=tuple(query.speaker),
        tags=tuple(query.tags),
        since=query.since,
        until=query.until,
    )
    while True:
        page = loading.load(call.ports, bank, wanted)
        shown = [message(entry) if query.format == "messages" else entry.shown() for entry in page.entries]
        fitting = how_many_fit(shown)
        if fitting == len(shown):
            break
        # Quotes and line breaks are escaped twice on the way out, which the page could not know.
        wanted = replace(wanted, limit=max(fitting, 1))
    agents.note(call.ports, bank.id, query.agent_id)
    return answer({query.format: shown, "next_cursor": page.next_cursor})


@router.get(
    "/memory_banks/<bank_id>/entries/<entry_id>", summary="Get an entry", tags=TAGS, responses=documented("Entry", "The entry")
)
def get_entry(bank_id: str, entry_id: str) -> Answer:
    """One entry, by our id or by the one its writer gave. 410 `compacted` when a summary has replaced it."""
    call = router.call("read")
    return _one(loading.get(call.ports, banks.get(call.ports, call.account, bank_id), _id(entry_id)))


@router.patch(
    "/memory_banks/<bank_id>/entries/<entry_id>", summary="Correct an entry", tags=TAGS, responses=documented("Entry", "The entry")
)
def correct_entry(
    bank_id: str,
    entry_id: str,
    body: Annotated[CorrectEntry, Body()],
    if_match: Annotated[str | None, Header(alias="If-Match")] = None,
) -> Answer:
    """New content, tags or metadata; the place stays. With `If-Match: "version"` another's correction is not overwritten."""
    from memory_banks import corrections

    call = router.call("write")
    corrected = corrections.correct(
        call.ports,
        banks.get(call.ports, call.account, bank_id),
        _id(entry_id),
        content=body.content,
        tags=body.tags,
        metadata=body.metadata,
        if_match=version_of(if_match),
        deadline=call.deadline,
    )
    return _one(corrected)


@router.delete(
    "/memory_banks/<bank_id>/entries/<entry_id>",
    summary="Delete an entry",
    tags=TAGS,
    status_code=204,
    responses=documented(None, "Gone", 204),
)
def delete_entry(bank_id: str, entry_id: str) -> Answer:
    """Gone from every answer at once, for good soon after."""
    from memory_banks import deletion

    call = router.call("write")
    deletion.delete_entry(call.ports, banks.get(call.ports, call.account, bank_id), _id(entry_id), deadline=call.deadline)
    return nothing()


@router.delete(
    "/memory_banks/<bank_id>/entries", summary="Forget a key", tags=TAGS, status_code=204, responses=documented(None, "Gone", 204)
)
def forget_key(bank_id: str, query: Annotated[ForgetKey, Query()]) -> Answer:
    """All entries of a key, summaries included. A key that has none is forgotten already."""
    from memory_banks import deletion

    call = router.call("write")
    deletion.forget_key(call.ports, banks.get(call.ports, call.account, bank_id), query.key, deadline=call.deadline)
    return nothing()


@router.post(
    "/memory_banks/<bank_id>/rename",
    summary="Rename a key",
    tags=TAGS,
    responses=documented("RenamedKey", "The key as it is called now"),
)
def rename_key(bank_id: str, body: Annotated[RenameKey, Body()]) -> Answer:
    """All that is under a key, captured runs included, is under another from now on; ids, order and ages stay.

    At once, however much it is. What is written under the old key afterwards is a new history. 404 `key_not_found` where there is
    nothing under the key, 409 `key_exists` where there is something under the new one.
    """
    from memory_banks import renaming

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    renaming.rename(call.ports, bank, body.key, body.to, deadline=call.deadline)
    return answer({"key": body.to, "renamed_from": body.key})


@router.get("/memory_banks/<bank_id>/keys", summary="List keys", tags=TAGS, responses=documented("KeyPage", "A page of keys"))
def list_keys(bank_id: str, query: Annotated[ListKeys, Query()]) -> Answer:
    """The keys of a bank with what lives under each."""
    call = router.call("read")
    bank = banks.get(call.ports, call.account, bank_id)
    keys, cursor = partitions.keys(call.ports, bank, limit=query.limit, cursor=query.cursor)
    return answer({"keys": keys, "next_cursor": cursor})


def message(entry: Entry) -> dict[str, str]:
    """An entry as chat models take it: known roles as such, other speakers named in the text, a summary from the system."""
    if entry.kind == "summary":
        return {"role": "system", "content": entry.content}
    if entry.speaker in ROLES:
        return {"role": entry.speaker, "content": entry.content}
    return {"role": "user", "content": f"{entry.speaker}: {entry.content}" if entry.speaker else entry.content}


def how_many_fit(shown: Sequence[Mapping[str, Any]]) -> int:
    """How many of these fit into one answer, counted as bytes of a JSON string inside JSON."""
    left = ANSWER_BYTES - 2_000
    for number, one in enumerate(shown):
        text = json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        left -= wire_bytes(text)
        if left < 0:
            return number
    return len(shown)


def _one(entry: Entry) -> Answer:
    return answer(entry.shown(), headers={"ETag": f'"{entry.version}"'})


def _id(entry_id: str) -> str:
    """An id that may exist; any other is a 404 like one that does not."""
    if ids.CALLER_ID.fullmatch(entry_id):
        return entry_id
    raise NotFound("There is no such entry.")


def version_of(if_match: str | None) -> int | None:
    """The version that `If-Match` names; None without one. Raises `Invalid`."""
    if if_match is None or if_match.strip() == "*":
        return None
    if found := _IF_MATCH.fullmatch(if_match.strip()):
        return int(found[1] or found[2])
    raise Invalid(("header", "If-Match"), 'must be the version, as in If-Match: "3"')


def _idempotency(key: str | None) -> writing.Idempotency | None:
    if key is None:
        return None
    if not 1 <= len(key) <= IDEMPOTENCY_KEY_LENGTH or not key.isprintable():
        raise Invalid(("header", "Idempotency-Key"), f"must be 1 to {IDEMPOTENCY_KEY_LENGTH} printable characters")
    return writing.Idempotency(key, hashlib.sha256(raw_body(router.current_event.raw_event)).hexdigest())
