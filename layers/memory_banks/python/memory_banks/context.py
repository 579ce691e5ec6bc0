"""Context: what to put into a prompt about one key, within a budget of tokens.

The newest turns keep the thread, what a search finds brings back what is far away, the summary tells what was condensed.
Nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from . import entries, homes, loading, partitions, tokens
from .bank import Bank
from .clock import iso
from .entries import Entry
from .loading import Load
from .ports import Ports
from .search import SearchRequest, search

RELEVANT = 20
"""Entries that the search may contribute at the most."""

RECENT = 100
"""Newest entries that are looked at."""

SUMMARY_SHARE, RECENT_SHARE = 0.4, 0.5
"""How much of the budget the summary may take, and how much of what is then left the newest turns, before relevant ones."""

ROLES = ("user", "assistant", "system")
"""Speakers that are chat roles; any other name goes into the text."""

TITLES = {"summary": "Summary of earlier memories", "relevant": "Relevant memories", "recent": "Most recent memories"}


def context(ports: Ports, bank: Bank, key: str, query: str | None, max_tokens: int) -> dict[str, Any]:
    """Summary, relevant and newest entries of a key that fit `max_tokens` together (see `tokens`).

    Gives `text` for a prompt, the same as chat `messages`, the entries as `parts`, and the `tokens` of the text. What does
    not fit is left out whole, never cut in the middle. Without a query nothing is `relevant`.
    """
    newest = loading.load(ports, bank, Load(key=key, order="desc", limit=RECENT)).entries
    turns = [entry for entry in newest if entry.kind == "entry"]
    summary = next((entry for entry in newest if entry.kind == "summary"), None)
    if summary is None and len(newest) == RECENT:
        summary = _summary(ports, bank, key)
    found: list[Entry] = []
    if query is not None:
        request = SearchRequest(query=query, keys=(key,), top_k=RELEVANT, kinds=("entry",))
        found = [one.entry for one in search(ports, bank, request)]

    budget = _Budget(max_tokens)
    # The very newest turn first: an answer that does not know it is beside the point.
    recent = budget.take("recent", turns[:1])
    summaries = budget.take("summary", [summary] if summary else [], share=SUMMARY_SHARE)
    recent += budget.take("recent", turns[len(recent) :], share=RECENT_SHARE, unbroken=True)
    relevant = budget.take("relevant", _without(found, recent))
    # What the relevant ones did not need goes on with the thread, without a gap, up to what was already told.
    told = {entry.sort for entry in relevant}
    recent += budget.take("recent", takewhile(lambda entry: entry.sort not in told, turns[len(recent) :]), unbroken=True)
    parts = {"summary": summaries, "relevant": _in_order(relevant), "recent": _in_order(recent)}
    text = "\n\n".join(_section(name, parts[name]) for name in parts if parts[name])
    return {
        "text": text,
        "messages": _messages(parts["summary"], parts["relevant"], parts["recent"]),
        "parts": {
            "summary": summaries[0].shown() if summaries else None,
            "relevant": [entry.shown() for entry in parts["relevant"]],
            "recent": [entry.shown() for entry in parts["recent"]],
        },
        "tokens": tokens.count(text),
    }


class _Budget:
    """Bytes that are left: tokens are a quarter of them, counted over the whole text with its titles and line ends."""

    def __init__(self, max_tokens: int) -> None:
        self._left = 4 * max_tokens
        self._begun: set[str] = set()

    def take(self, part: str, wanted: Iterable[Entry], *, share: float = 1.0, unbroken: bool = False) -> list[Entry]:
        """The entries that still fit, in the order given, into a share of what is left; `unbroken`: none after the first
        that does not fit."""
        taken: list[Entry] = []
        spendable = int(self._left * share)
        for entry in wanted:
            cost = len(_line(entry).encode()) + 1
            if part not in self._begun:
                cost += len(TITLES[part].encode()) + 4
            if cost > spendable:
                if unbroken:
                    break
                continue
            self._begun.add(part)
            spendable -= cost
            self._left -= cost
            taken.append(entry)
        return taken


def _summary(ports: Ports, bank: Bank, key: str) -> Entry | None:
    """The living summary of a key that has more entries than were looked at."""
    partition, item = homes.find(ports.table, bank, key)
    head = partitions.head_from(item) if item else None
    if head is None or head.summary is None:
        return None
    (item,) = ports.table.read([partitions.entry_key(bank, partition, head.summary)])
    entry = entries.from_item(item, head.key) if item else None
    return entry if entry and partitions.alive(head, entry, bank.cutoff(ports.clock.now())) else None


def _without(wanted: Sequence[Entry], said: Sequence[Entry]) -> list[Entry]:
    """Those not said yet: neither the same entry nor the same words by the same speaker."""
    known = {entry.sort for entry in said} | {(entry.speaker, entry.content) for entry in said}
    fresh: list[Entry] = []
    for entry in wanted:
        same = (entry.speaker, entry.content)
        if entry.sort not in known and same not in known:
            known |= {entry.sort, same}
            fresh.append(entry)
    return fresh


def _in_order(found: Sequence[Entry]) -> list[Entry]:
    return sorted(found, key=lambda entry: entry.sort)


def _section(part: str, found: Sequence[Entry]) -> str:
    return "\n".join([f"{TITLES[part]}:", *map(_line, found)])


def _line(entry: Entry) -> str:
    """An entry as a line of a prompt: when, who, what."""
    if entry.kind == "summary":
        return entry.content
    said = f"{entry.speaker}: {entry.content}" if entry.speaker else entry.content
    return f"[{iso(entry.occurred_at)[:10]}] {said}"


def _messages(summary: Sequence[Entry], relevant: Sequence[Entry], recent: Sequence[Entry]) -> list[dict[str, str]]:
    """What was condensed or found as one system message, then the newest turns as they were said."""
    told = [_section(part, found) for part, found in (("summary", summary), ("relevant", relevant)) if found]
    messages = [{"role": "system", "content": "\n\n".join(told)}] if told else []
    for entry in recent:
        if entry.speaker in ROLES:
            messages.append({"role": entry.speaker, "content": entry.content})
        else:
            messages.append({"role": "user", "content": f"{entry.speaker}: {entry.content}" if entry.speaker else entry.content})
    return messages
