"""`memory-banks import`: brings a history into a bank. Doing it again adds only what is new.

Every turn gets an id made from what it says, where and when, so the service knows it when it comes again. An import that
dies half way is finished by doing it again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients.cli import client
from clients.cli.client import Client, Refused
from clients.cli.failure import Failure
from clients.cli.histories import chatgpt, exported, jsonl, messages
from clients.cli.histories.turn import Configuration, Piece, Turn, Unreadable, WrongForm

BATCH = 100
BATCH_BYTES = 2_000_000
"""Of a request's entries as JSON; the service takes 2.5 MiB."""

PAGE = 1000
POLL_SECONDS = 0.25

TOLD = 20
"""How many refusals are listed."""

HOPELESS = frozenset({401, 403, 404})
"""Answers that are about the import, not about an entry."""


@dataclass(slots=True)
class Outcome:
    """What became of a history's turns."""

    written: list[str] = field(default_factory=list)
    """Ids of new entries."""
    keys: set[str] = field(default_factory=set)
    """What was written to."""
    known: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Where it stands, and why."""


def add_to(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("import", help="bring a history into a bank")
    parser.add_argument("file", type=Path, help="the history")
    parser.add_argument(
        "--bank", help="name or id; a bank of that name is made when there is none (default: the name in an export of a bank)"
    )
    parser.add_argument("--type", choices=("conversation", "general"), help="of a bank that is made (default: conversation)")
    parser.add_argument("--key", help="the conversation, user or project (default: the history's own, else the file's name)")
    parser.add_argument("--format", choices=("jsonl", "messages", "chatgpt", "export"), help="default: what the file looks like")
    parser.add_argument("--wait", action="store_true", help="until everything can be found by search")
    client.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Import and say what went in; 1 when something was refused."""
    pieces = list(read(options.file, options.format))
    wanted: dict[str, Any] = {"type": "conversation"}
    wanted |= next((piece.settings for piece in pieces if isinstance(piece, Configuration)), {})
    wanted |= {"type": options.type} if options.type else {}
    wanted |= {"name": options.bank} if options.bank else {}
    if not wanted.get("name"):
        raise Failure("--bank is needed: only the JSON export of a bank has a name of its own")
    service = client.from_options(options)
    try:
        bank = service.bank(wanted["name"]) or service.call("POST", "/memory_banks", body=wanted)
        outcome = bring_in(service, bank, pieces, key=options.key, fallback=options.file.stem)
        if options.wait:
            until_searchable(service, bank["id"], sorted(outcome.keys))
    except Refused as refused:
        raise Failure(refused.reason) from refused
    tell(outcome, bank)
    return 1 if outcome.refused else 0


def read(path: Path, form: str | None) -> Iterator[Piece]:
    """The pieces of a history file. `Failure` when it can't be read or is of another form."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} can't be read: {error}") from error
    if form == "jsonl":
        yield from jsonl.read(text.split("\n"))
        return
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        if form is None:
            yield from jsonl.read(text.split("\n"))
            return
        raise Failure(f"{path} is no JSON: {error}") from error
    if form is None:
        form = _form(document)
    try:
        yield from _READERS[form](document)
    except WrongForm as error:
        raise Failure(f"{path}: {error}") from error


def _jsonl(document: Any) -> Iterator[Piece]:
    return jsonl.read([json.dumps(document)])


_READERS: dict[str, Callable[[Any], Iterator[Piece]]] = {
    "messages": messages.read,
    "chatgpt": chatgpt.read,
    "jsonl": _jsonl,
    "export": exported.read,
}


def _form(document: Any) -> str:
    """What a JSON document looks like; a single object may also be the only line of JSON lines."""
    one = document[0] if isinstance(document, list) and document else document
    if isinstance(one, dict) and "mapping" in one:
        return "chatgpt"
    if isinstance(document, dict) and document.get("export_type") == "memory_bank":
        return "export"
    return "messages" if isinstance(document, list) or "messages" in one else "jsonl"


def bring_in(
    service: Client, bank: dict[str, Any], pieces: Sequence[Piece], *, key: str | None, fallback: str, quiet: bool = False
) -> Outcome:
    """Write the turns in batches. `key` overrides each turn's own; `fallback` is for those that have none."""
    from tqdm import tqdm

    outcome = Outcome()
    # Without a terminal there is no bar (disable=None), only the summary.
    count = sum(not isinstance(piece, Configuration) for piece in pieces)
    with tqdm(total=count, unit=" entries", disable=True if quiet else None, file=sys.stderr) as bar:
        for unreadable in (piece for piece in pieces if isinstance(piece, Unreadable)):
            outcome.refused.append((unreadable.where, unreadable.reason))
            bar.update()
        for batch in _batches(_bodies(pieces, bank["type"], key, fallback)):
            _send(service, bank["id"], batch, outcome)
            bar.update(len(batch))
    return outcome


def _bodies(pieces: Iterable[Piece], bank_type: str, key: str | None, fallback: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each turn's place and what is sent for it."""
    seen: Counter[str] = Counter()
    for turn in (piece for piece in pieces if isinstance(piece, Turn)):
        nameless = turn.key == "" and bank_type == "general"
        body: dict[str, Any] = {"content": turn.content, "key": key or turn.key or ("" if nameless else fallback)}
        if bank_type == "conversation":
            body["speaker"] = turn.speaker
        elif turn.speaker is not None and isinstance(turn.metadata, dict):
            # Entries of a general bank have no speaker of their own.
            body["metadata"] = {"speaker": turn.speaker, **turn.metadata}
        if turn.metadata:
            body.setdefault("metadata", turn.metadata)
        if turn.tags:
            body["tags"] = turn.tags
        if turn.occurred_at is not None:
            body["occurred_at"] = turn.occurred_at
        body["id"] = turn.id if turn.id is not None else _id(turn, body, seen)
        yield turn.where, body


def _id(turn: Turn, body: dict[str, Any], seen: Counter[str]) -> str:
    """The same for the same turn whenever it comes; the n-th of several that are alike is told from the others."""
    parts = turn.source_id or [turn.content, turn.speaker, turn.occurred_at]
    digest = hashlib.sha256(json.dumps([body["key"], parts]).encode()).hexdigest()[:40]
    seen[digest] += 1
    return f"import-{digest}" + (f"-{seen[digest]}" if seen[digest] > 1 else "")


def _batches(bodies: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    batch: list[tuple[str, dict[str, Any]]] = []
    size = 0
    for where, body in bodies:
        length = len(json.dumps(body))
        if batch and (len(batch) == BATCH or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((where, body))
        size += length
    if batch:
        yield batch


def _send(service: Client, bank_id: str, batch: list[tuple[str, dict[str, Any]]], outcome: Outcome) -> None:
    """Write a batch; the service takes all of it or none, so what it refuses is left out and the rest sent again."""
    try:
        answer = service.call("POST", f"/memory_banks/{bank_id}/entries", body={"entries": [body for _, body in batch]})
    except Refused as refused:
        if refused.status in HOPELESS or refused.status >= 500:
            raise
        if len(batch) == 1:
            outcome.refused.append((batch[0][0], refused.reason))
            return
        bad = set(refused.positions) & set(range(len(batch)))
        if bad and len(bad) < len(batch):
            parts = [[batch[position]] for position in sorted(bad)]
            parts.append([one for position, one in enumerate(batch) if position not in bad])
        else:
            parts = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        for part in parts:
            _send(service, bank_id, part, outcome)
        return
    for entry in answer["entries"]:
        if entry.get("existing"):
            outcome.known += 1
        else:
            outcome.written.append(entry["id"])
            outcome.keys.add(entry["key"])


def until_searchable(service: Client, bank_id: str, keys: Sequence[str], *, seconds: float = 300) -> bool:
    """Wait until every entry of these keys can be found; False when it takes too long."""
    give_up = time.monotonic() + seconds
    for key in keys:
        cursor: str | None = None
        while True:
            query = {"key": key, "limit": PAGE} | ({"cursor": cursor} if cursor else {})
            page = service.call("GET", f"/memory_banks/{bank_id}/entries", query=query)
            if not all(entry["indexed"] for entry in page["entries"]):
                if time.monotonic() > give_up:
                    return False
                time.sleep(POLL_SECONDS)
            elif page["next_cursor"]:
                cursor = page["next_cursor"]
            else:
                break
    return True


def tell(outcome: Outcome, bank: dict[str, Any]) -> None:
    """The outcome, for people."""
    counts = f"{len(outcome.written)} went in, {outcome.known} were already there, {len(outcome.refused)} were refused"
    print(f"{bank['name']} ({bank['id']}): {counts}")
    for where, reason in outcome.refused[:TOLD]:
        print(f"  {where}: {reason}")
    if len(outcome.refused) > TOLD:
        print(f"  … and {len(outcome.refused) - TOLD} more")
