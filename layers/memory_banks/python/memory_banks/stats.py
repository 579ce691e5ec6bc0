"""Statistics of a bank: from the index's aggregations, and for names and compactions from the heads of its partitions. No
entry is loaded.

Ranges are by `created_at`. What is past the retention, compacted or forgotten does not count, removed already or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import ids, partitions
from .bank import DAY, Bank
from .clock import iso
from .errors import Invalid
from .ports import Counted, Ports, Spread, Statistics, Tally

TOP = 20
"""Values in a list of the most frequent."""

HIDDEN = 500
"""Watermarks that the index is told at most: of the partitions compacted last, then of the keys forgotten last. Of the others
what is gone stops to count when it is removed, minutes later."""

REMOVED_AFTER = 3_600_000
"""By then, in ms, a clean-up has removed what a compaction replaced."""

_OPEN_END = ids.milliseconds_of("7" + "Z" * (ids.ULID_LENGTH - 1))


@dataclass(frozen=True, slots=True)
class Range:
    """From when (inclusive) until when (exclusive), ms; None: `days` before the end, and now."""

    days: int = 30
    since: int | None = None
    until: int | None = None


def of_bank(ports: Ports, bank: Bank, wanted: Range) -> dict[str, Any]:
    """The statistics as the API shows them. Raises `IndexUnavailable`."""
    now = ports.clock.now()
    end = now if wanted.until is None else wanted.until
    start = end - wanted.days * DAY if wanted.since is None else wanted.since
    if start >= end:
        raise Invalid(("query", "start_date"), "is still to come")
    cutoff = bank.cutoff(now)
    heads = _walk(ports, bank, now)
    counted = Counted(
        bank.id,
        bank.generation,
        since=start if cutoff is None else max(start, cutoff + 1),
        # An id may be ahead of this host's clock: up to now means all there is.
        until=_OPEN_END if wanted.until is None else wanted.until,
        hidden=heads.hidden,
    )
    found = ports.index.statistics(bank.reads.index, counted, TOP)
    return {
        "range": {"start_date": iso(start), "end_date": iso(end)},
        "summary": {
            "entries": found.entries,
            "keys": found.partitions,
            "speakers": found.speakers if bank.conversation else None,
            "first_entry_at": iso(round(found.created_at.min)) if found.created_at else None,
            "last_entry_at": iso(round(found.created_at.max)) if found.created_at else None,
            "compaction_summaries": found.summaries,
            "last_compacted_at": iso(heads.compacted_at) if heads.compacted_at else None,
        },
        "distributions": {
            "tokens": _spread(found.tokens),
            "age_days": _spread(_ages(found, now)),
            "entries_per_key": _spread(found.entries_per_partition),
        },
        "top_keys": _shown(_named(ports, bank, found.top_partitions)),
        "top_speakers": _shown(found.top_speakers),
        "top_tags": _shown(found.top_tags),
        "as_of": iso(now),
    }


class _Heads(NamedTuple):
    """What the heads of a bank tell."""

    compacted_at: int
    hidden: dict[str, str]


def _walk(ports: Ports, bank: Bank, now: int) -> _Heads:
    """All heads, little of each: when the last compaction was, and what may be gone but not removed yet."""
    last = 0
    gone: list[tuple[int, str, str]] = []
    for group in range(partitions.HEAD_GROUPS):
        after: str | None = ""
        while after is not None:
            page = ports.table.query(
                partitions.heads_pk(bank, group), after=after or None, attributes=["watermark", "forgotten", "compacted_at"]
            )
            for item in page.items:
                compacted, watermark = item.get("compacted_at", 0), item.get("watermark", ids.LOWEST)
                last = max(last, compacted)
                forgotten = item.get("forgotten") == watermark
                if compacted > now - REMOVED_AFTER or forgotten:
                    # With what was erased went the summary, which sorts right after its watermark.
                    gone.append((compacted, watermark + "S" * forgotten, item["sk"]))
            after = page.after
    gone.sort(reverse=True)
    return _Heads(last, {partition: watermark for _, watermark, partition in gone[:HIDDEN]})


def _named(ports: Ports, bank: Bank, tallies: Sequence[Tally]) -> list[Tally]:
    """Partitions by the caller's names for them. A forgotten key is not told, whatever the index still has of it."""
    heads = ports.table.read([partitions.head_key(bank, tally.value) for tally in tallies]) if tallies else []
    known = [(partitions.head_from(item), tally) for item, tally in zip(heads, tallies, strict=True) if item is not None]
    wanted = [key for head, _ in known for key in partitions.shard_keys(bank, head)]
    shards = dict(zip(wanted, ports.table.read(wanted), strict=True)) if wanted else {}
    named = [
        Tally(head.key, tally.entries)
        for head, tally in known
        if partitions.count(head, [shards[key] for key in partitions.shard_keys(bank, head)]).entries > 0
    ]
    return sorted(named, key=lambda tally: (-tally.entries, tally.value))


def _ages(found: Statistics, now: int) -> Spread | None:
    """Ages in days; the latest moment is the least age."""
    if found.created_at is None:
        return None
    avg, early, first, last = ((now - at) / DAY for at in found.created_at)
    return Spread(avg, early, last, first)


def _spread(spread: Spread | None) -> dict[str, float | None]:
    if spread is None:
        return dict.fromkeys(Spread._fields)
    return {name: round(max(value, 0), 4) for name, value in spread._asdict().items()}


def _shown(tallies: Sequence[Tally]) -> list[dict[str, Any]]:
    return [tally._asdict() for tally in tallies]
