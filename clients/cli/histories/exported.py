"""The JSON export of a bank: `{"export_type": "memory_bank", "memory_bank": {"configuration": {…}}, "entries": [{…}]}`.

The configuration may also be the value of `memory_bank` itself. A summary comes as an entry of the speaker `system` with the tag
`summary`: only compaction makes summaries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clients.cli.histories.turn import Configuration, Piece, Turn, Unreadable, WrongForm

SETTINGS = (
    *("name", "type", "mode", "description", "compaction_prompt", "max_turns", "max_size_tokens", "max_age_days"),
    *("retention_days", "strip_quoted_reply_chains", "capture"),
)
OF_CUSTOM = ("embedding_model", "dimensions", "chunk_size", "chunk_overlap")
"""Settings of a bank; in the other modes the last ones follow from the mode."""

RESERVED = "compaction-summary"
_OURS = 52
"""Characters of an id that the service made; a bank takes it for an entry of its own."""


def read(document: Any) -> Iterator[Piece]:
    """The configuration, then the entries, in order."""
    if not isinstance(document, Mapping) or not isinstance(document.get("entries"), list):
        raise WrongForm("not the JSON export of a bank: an object with `memory_bank` and `entries` is expected")
    about = document.get("memory_bank")
    found = about.get("configuration", about) if isinstance(about, Mapping) else None
    if not isinstance(found, Mapping):
        raise WrongForm("the export has no configuration in `memory_bank`")
    names = SETTINGS + (OF_CUSTOM if found.get("mode") == "custom" else ())
    settings = {name: found[name] for name in names if found.get(name) is not None}
    # No retention is a choice too, and an age limit of older data becomes one.
    settings |= {"retention_days": found.get("retention_days")}
    if found.get("max_age_days"):
        settings["brought_in"] = True
    yield Configuration(settings)
    for number, record in enumerate(document["entries"], 1):
        where = f"entry {number}"
        if not isinstance(record, Mapping):
            yield Unreadable(where, "no JSON object")
            continue
        yield _turn(where, record)


def _turn(where: str, record: Mapping[str, Any]) -> Turn:
    summary = record.get("kind") == "summary"
    tags = record.get("tags") or ()
    if isinstance(tags, list):
        tags = [tag for tag in tags if tag != RESERVED] + ["summary"] * summary
    id = record.get("id")
    ours = isinstance(id, str) and len(id) >= _OURS
    return Turn(
        where,
        content=record.get("content"),
        speaker="system" if summary else record.get("speaker"),
        key=record.get("key"),
        occurred_at=record.get("occurred_at") or record.get("created_at"),
        tags=tags,
        metadata=record.get("metadata") or {},
        id=None if ours else id,
        source_id=id if ours else None,
    )
