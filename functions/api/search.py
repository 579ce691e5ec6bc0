"""Routes that find: search, and context ready for a prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Body
from memory_banks import agents, banks
from memory_banks.entries import Entry
from memory_banks.errors import Invalid
from memory_banks.requests import AskContext, SearchEntries

from .answers import ANSWER_BYTES, Answer, answer, documented, wire_bytes
from .router import Router

router = Router()
TAGS = ["Search"]

CONTENT_LENGTH = 4_000
"""Characters of a content that a search shows; the entry itself has the rest."""

_SHORTEST = 50


@router.post(
    "/memory_banks/<bank_id>/search", summary="Search entries", tags=TAGS, responses=documented("SearchResults", "What was found")
)
def search_entries(bank_id: str, body: Annotated[SearchEntries, Body()]) -> Answer:
    """By meaning and by words; every hit is checked against the table, so nothing deleted, expired or outdated is shown."""
    from memory_banks import search

    call = router.call("read")
    bank = banks.get(call.ports, call.account, bank_id)
    request = search.SearchRequest(
        query=body.query,
        keys=body.key,
        top_k=body.top_k,
        mode=body.mode,
        speakers=body.speaker,
        tags_any=body.tags_any,
        tags_all=body.tags,
        metadata=body.metadata,
        since=body.since,
        until=body.until,
        kinds=(body.kind,) if body.kind else (),
        min_score=body.min_score,
        neighbors=body.neighbors,
        debug=body.debug,
    )
    found = search.search(call.ports, bank, request)
    agents.note(call.ports, bank.id, body.agent_id)
    return answer({"results": fitted(found)})


@router.post(
    "/memory_banks/<bank_id>/context", summary="Context for a prompt", tags=TAGS, responses=documented("Context", "The context")
)
def ask_context(bank_id: str, body: Annotated[AskContext, Body()]) -> Answer:
    """The summary, the relevant and the newest entries of a key that fit a budget of tokens, as text and as chat messages."""
    from memory_banks.context import context

    call = router.call("read")
    bank = banks.get(call.ports, call.account, bank_id)
    if bank.conversation and not body.key:
        raise Invalid(("body", "key"), "required in a conversation bank: which conversation the prompt belongs to", "missing")
    agents.note(call.ports, bank.id, body.agent_id)
    tokens = body.max_tokens
    while True:
        made = context(call.ports, bank, body.key or "", body.query, tokens)
        if wire_bytes(json.dumps(made, ensure_ascii=False)) <= ANSWER_BYTES:
            return answer(made)
        # Entries of mostly quotes with much metadata: fewer of them fit into an answer than into the budget.
        tokens //= 2


def fitted(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Hits as they are shown, their texts cut as short as it takes for all of them to fit into one answer."""
    length = CONTENT_LENGTH
    while True:
        shown = [_hit(one, length) for one in found]
        if wire_bytes(json.dumps(shown, ensure_ascii=False)) <= ANSWER_BYTES or length <= _SHORTEST:
            return shown
        length //= 2


def _hit(found: Any, length: int) -> dict[str, Any]:
    hit = {
        "entry": cut(found.entry, length),
        "score": found.score,
        "matched_text": found.matched_text[:length],
        "neighbors": [_beside(one, length) for one in found.neighbors],
    }
    return hit if found.parts is None else hit | {"debug": found.parts}


def cut(entry: Entry, length: int) -> dict[str, Any]:
    """An entry with at most so many characters of its content, and whether some are missing."""
    shown = entry.shown()
    return shown | {"content": entry.content[:length], "truncated": len(entry.content) > length}


def _beside(entry: Entry, length: int) -> dict[str, Any]:
    """A turn around a hit: what was said, by whom and when."""
    shown = cut(entry, length)
    return {name: shown[name] for name in ("id", "kind", "speaker", "content", "truncated", "occurred_at", "created_at", "version")}
