"""Writing many documents: bulk requests of bounded size, each document's outcome, retries of those that were only early.

A process that dies between two requests leaves some documents written. Writing the same again is safe: versions decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import orjson

from ...ports import IndexDocument, Outcome
from .calls import OVERLOADED, Calls, Patience, Refused, reason
from .documents import body, stored_id

REQUEST_BYTES = 2 << 20
"""A request's size. Domains take 10 MiB at least; smaller ones are spread over the connections."""

AT_ONCE = 4
"""Requests in flight."""

CONFLICT = 409
MISSING = 404
TOO_LARGE = 413


class IndexMissing(Exception):
    """The index has gone since this process made it or saw it."""


class _Line(NamedTuple):
    """One document on its way: its place among all, its id, its two lines of the request."""

    position: int
    id: str
    lines: bytes


def write(calls: Calls, name: str, documents: Sequence[IndexDocument], dimensions: int, patience: Patience) -> list[Outcome]:
    """Outcomes in the order of the documents. Raises `IndexUnavailable` when some could not be sent in time, `IndexMissing`."""
    outcomes: dict[int, Outcome] = {}
    lines = []
    for position, document in enumerate(documents):
        try:
            lines.append(_Line(position, document.id, _lines(document, dimensions)))
        except ValueError as problem:
            outcomes[position] = Outcome(document.id, "failed", str(problem))

    def send(request: Sequence[_Line]) -> dict[int, Outcome]:
        return dict(_send(calls, name, request, patience))

    requests = list(_requests(lines))
    if len(requests) > 1:
        with ThreadPoolExecutor(min(AT_ONCE, len(requests)), "bulk") as pool:
            for answer in pool.map(send, requests):
                outcomes.update(answer)
    elif requests:
        outcomes.update(send(requests[0]))
    return [outcomes[position] for position in range(len(documents))]


class Dated(NamedTuple):
    """A document as it was found: its `_id` and version."""

    stored_id: str
    version: int


def delete(calls: Calls, name: str, bank: str, found: Sequence[Dated], patience: Patience) -> int:
    """Remove documents in the versions given, and tell how many changed meanwhile and were left.

    With its version, a delete leaves no higher one behind: the same state may be written again at once. Left out, OpenSearch
    would remember the next version for a minute and refuse it.
    """
    waiting = list(found)
    changed = 0
    while waiting:
        answer = calls.ask("POST", f"/{name}/_bulk", body=b"".join(_delete(bank, one) for one in waiting), patience=patience)
        early = []
        for one, item in zip(waiting, answer["items"], strict=True):
            result = item["delete"]
            if result["status"] in OVERLOADED:
                early.append(one)
            elif result["status"] == CONFLICT:
                changed += 1
            elif "error" in result and result["status"] != MISSING:
                raise Refused(result["status"], reason(result["error"]))
        waiting = early
        if waiting:
            patience.rest("OpenSearch is overloaded: it put off deletes")
    return changed


def _delete(bank: str, found: Dated) -> bytes:
    action = {"_id": found.stored_id, "routing": bank, "version": found.version, "version_type": "external_gte"}
    return orjson.dumps({"delete": action}) + b"\n"


def _lines(document: IndexDocument, dimensions: int) -> bytes:
    action = {
        "_id": stored_id(document.bank, document.id),
        "routing": document.bank,
        "version": document.version,
        "version_type": "external_gte",
    }
    return orjson.dumps({"index": action}) + b"\n" + orjson.dumps(body(document, dimensions)) + b"\n"


def _requests(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    request: list[_Line] = []
    size = 0
    for line in lines:
        if request and size + len(line.lines) > REQUEST_BYTES:
            yield request
            request, size = [], 0
        request.append(line)
        size += len(line.lines)
    if request:
        yield request


def _send(calls: Calls, name: str, request: Sequence[_Line], patience: Patience) -> Iterator[tuple[int, Outcome]]:
    waiting = list(request)
    while waiting:
        try:
            answer = calls.ask(
                "POST",
                f"/{name}/_bulk",
                params={"filter_path": "items.*.status,items.*.error"},
                body=b"".join(line.lines for line in waiting),
                patience=patience,
            )
        except Refused as problem:
            if problem.status == MISSING:
                raise IndexMissing from problem
            if problem.status != TOO_LARGE:
                raise
            if len(waiting) == 1:
                yield waiting[0].position, Outcome(waiting[0].id, "failed", "too large for a request to OpenSearch")
                return
            middle = len(waiting) // 2
            yield from _send(calls, name, waiting[:middle], patience)
            yield from _send(calls, name, waiting[middle:], patience)
            return
        early = []
        why = ""
        for line, item in zip(waiting, answer["items"], strict=True):
            result = item["index"]
            if result["status"] in OVERLOADED:
                early.append(line)
                why = reason(result["error"])
            else:
                yield line.position, _outcome(line.id, result)
        waiting = early
        if waiting:
            patience.rest(f"OpenSearch is overloaded: {why}")


def _outcome(id: str, result: dict[str, Any]) -> Outcome:
    if result["status"] == CONFLICT:
        return Outcome(id, "stale")
    if result["status"] == MISSING:
        raise IndexMissing
    if "error" in result:
        return Outcome(id, "failed", reason(result["error"]))
    return Outcome(id, "written")
