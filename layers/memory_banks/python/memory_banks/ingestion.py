"""Ingestion: a queue message → chunks and windows → vectors → the index.

A message carries ids, never text, and may come twice, late or out of order: what is indexed is what the table says now.
Dying at any step leaves the entries marked as unindexed; the message comes back, or the sweep sends another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from . import bank as banks
from . import chunking, cleaning, entries, partitions, texts
from .bank import Bank, Target
from .entries import Entry
from .marking import DUE_ATTRIBUTES, due
from .partitions import Head
from .ports import ConditionFailed, IndexDocument, Is, Item, Key, Member, ModelError, ModelUnavailable, Ports, Update

RETRY_HOURS = (1, 2, 4, 8, 16, 24)
"""After a failed attempt the entry is due again in so many hours; after the last it is `index_failed`."""


def ingest(ports: Ports, message: Mapping[str, Any]) -> None:
    """Do what one message of the ingestion queue asks. Repeating it changes nothing.

    Raises what makes the message come back: `IndexUnavailable`, `ModelUnavailable`, `TableUnavailable`, `Contended`.
    An entry that can't be indexed raises nothing; the failure is recorded on the entry.
    """
    if "clean" in message:
        pk, sk = message["clean"]
        if not cleaning.clean(ports, Key(pk, sk)):
            ports.ingestion.send([message])
        return
    account, bank_id, generation = message["account"], message["bank"], message["generation"]
    partition, wanted = message["partition"], message["entries"]
    named = banks.stand_in(account, bank_id, generation)
    bank_item, head_item, *items = ports.table.read(
        [
            banks.key_of(account, bank_id),
            partitions.head_key(named, partition),
            *(partitions.entry_key(named, partition, sort) for sort in wanted),
        ]
    )
    if bank_item is None or head_item is None or bank_item["generation"] != generation:
        return
    bank, head = banks.from_item(bank_item), partitions.head_from(head_item)
    cutoff = bank.cutoff(ports.clock.now())
    found = [entries.from_item(item) for item in items if item is not None]
    fresh = [entry for entry in found if partitions.alive(head, entry, cutoff) and not entry.indexed]
    if fresh:
        failed = _index(ports, bank, head, fresh)
        for target in bank.writes:
            _bury(ports, bank, target, partition, [entry for entry in fresh if entry.sort not in failed])
        _ask_for_compaction(ports, bank, partition)
        _confirm(ports, bank, [entry for entry in fresh if entry.sort not in failed])
        _say_ready(ports, bank)


def renew_windows(ports: Ports, account: str, bank_id: str, generation: int, partition: str, around: Sequence[str]) -> None:
    """Index the windows next to these sort positions again, after the entries there have gone or changed."""
    named = banks.stand_in(account, bank_id, generation)
    bank_item, head_item = ports.table.read([banks.key_of(account, bank_id), partitions.head_key(named, partition)])
    if bank_item is None or head_item is None or bank_item["generation"] != generation:
        return
    bank, head = banks.from_item(bank_item), partitions.head_from(head_item)
    if not bank.conversation:
        return
    neighbourhood = _Neighbourhood.read(ports, bank, head, around)
    for target in bank.writes:
        windows = neighbourhood.windows(around)
        if windows.documents:
            vectors = ports.embedders(target.model, target.dimensions).embed([document.text for document in windows.documents])
            documents = [_with_vector(one, vector) for one, vector in zip(windows.documents, vectors, strict=True)]
            ports.index.write(target.index, documents, target.dimensions)
        if windows.obsolete:
            ports.index.delete(target.index, bank.id, windows.obsolete)


# --------------------------------------------------------------------------------------------------------------------
# Documents


class _Windows(NamedTuple):
    documents: list[IndexDocument]
    obsolete: list[str]
    """Ids of windows that are not there any more: their last entry is gone."""


class _Neighbourhood:
    """The living entries of a conversation around some positions, in order, two beyond each end."""

    def __init__(self, bank: Bank, head: Head, order: Sequence[Entry]) -> None:
        self._bank = bank
        self._head = head
        self._order = order
        self._place = {entry.sort: place for place, entry in enumerate(order)}

    @classmethod
    def read(cls, ports: Ports, bank: Bank, head: Head, around: Sequence[str]) -> _Neighbourhood:
        """Strong reads, after that of the head: what is seen is at least as new as its `edits`."""
        pk = partitions.partition_pk(bank, head.partition)
        first, last = min(around), max(around)
        before = ports.table.query(pk, after="E#" + head.watermark, before="E#" + first, reverse=True, limit=2).items
        items: list[Item] = before[::-1]
        position: str | None = None
        while True:
            if position is None:
                page = ports.table.query(pk, first="E#" + first, last="E~", limit=len(around) + 2)
            else:
                page = ports.table.query(pk, after=position, last="E~", limit=100)
            items += page.items
            position = page.after
            if position is None or sum(item["sk"] > "E#" + last for item in items) >= 2:
                break
        cutoff = bank.cutoff(ports.clock.now())
        found = [entries.from_item(item) for item in items]
        return cls(bank, head, [e for e in found if e.kind == "entry" and partitions.alive(head, e, cutoff)])

    def previous(self, entry: Entry) -> str | None:
        """Internal id of the entry before."""
        place = self._place.get(entry.sort, 0)
        return self._order[place - 1].internal_id if place else None

    def windows(self, around: Iterable[str]) -> _Windows:
        """The windows that hold an entry at, or next to, one of these positions."""
        middles: set[int] = set()
        for sort in around:
            place = sum(entry.sort < sort for entry in self._order) if sort not in self._place else self._place[sort]
            middles |= {place - 1, place, place + 1}
        documents, obsolete = [], []
        for place in sorted(middles):
            if not 0 <= place < len(self._order):
                continue
            if place + 1 < len(self._order):
                documents.append(self._window(place))
            else:
                obsolete.append(window_id(self._order[place]))
        return _Windows(documents, obsolete)

    def _window(self, place: int) -> IndexDocument:
        middle = self._order[place]
        members = list(self._order[max(place - 1, 0) : place + 2])
        return _document(
            self._bank,
            middle,
            id=window_id(middle),
            form="window",
            # Every change of a member or a neighbour but an append counts in `edits`; an append makes the window.
            version=self._head.edits + 1,
            members=tuple(Member(one.internal_id, one.version) for one in members),
            previous=members[0].internal_id if members[0] is not middle else None,
            start=0,
            end=0,
            text=texts.window_text(members),
        )


def window_id(middle: Entry) -> str:
    """The index's id of the window around an entry."""
    return middle.internal_id + "#w"


def _chunks(bank: Bank, entry: Entry, previous: str | None) -> list[IndexDocument]:
    spans = chunking.spans(entry.content, bank.chunk_size, bank.chunk_overlap)
    return [
        _document(
            bank,
            entry,
            id=f"{entry.internal_id}#{number}",
            form="chunk",
            version=entry.version,
            members=(Member(entry.internal_id, entry.version),),
            previous=previous,
            start=start,
            end=end,
            text=texts.chunk_text(entry, (start, end)),
        )
        for number, (start, end) in enumerate(spans)
    ]


def _document(bank: Bank, entry: Entry, **rest: Any) -> IndexDocument:
    return IndexDocument(
        bank=bank.id,
        generation=bank.generation,
        partition=entry.partition,
        entry=entry.internal_id,
        kind=entry.kind,
        speaker=entry.speaker,
        tags=entry.tags,
        metadata=entry.metadata,
        occurred_at=entry.occurred_at,
        created_at=entry.created_at,
        vector=(),
        **rest,
    )


def _with_vector(document: IndexDocument, vector: Sequence[float]) -> IndexDocument:
    from dataclasses import replace

    return replace(document, vector=vector)


# --------------------------------------------------------------------------------------------------------------------
# Steps


def _index(ports: Ports, bank: Bank, head: Head, fresh: Sequence[Entry]) -> set[str]:
    """Write chunks and windows of these entries to every index of the bank. Gives the positions of those that failed."""
    documents: list[IndexDocument] = []
    obsolete: list[str] = []
    spoken = [entry.sort for entry in fresh if entry.kind == "entry"]
    if bank.conversation and spoken:
        neighbourhood = _Neighbourhood.read(ports, bank, head, spoken)
        for entry in fresh:
            documents += _chunks(bank, entry, neighbourhood.previous(entry))
        windows = neighbourhood.windows(spoken)
        documents += windows.documents
        obsolete = windows.obsolete
    else:
        for entry in fresh:
            documents += _chunks(bank, entry, None)
    failed: dict[str, str] = {}
    for target in bank.writes:
        embedded = _embed(ports, target, documents, failed)
        outcomes = ports.index.write(target.index, embedded, target.dimensions)
        by_id = {document.id: document for document in embedded}
        for outcome in outcomes:
            if outcome.status == "failed" and by_id[outcome.id].form == "chunk":
                failed[by_id[outcome.id].entry] = outcome.reason or "refused by the index"
        gone = obsolete + _surplus(fresh)
        if gone:
            ports.index.delete(target.index, bank.id, gone)
    mine = {entry.internal_id: entry for entry in fresh}
    for internal_id, reason in failed.items():
        if internal_id in mine:
            _record_failure(ports, bank, mine[internal_id], reason)
    return {mine[internal_id].sort for internal_id in failed if internal_id in mine}


def _surplus(fresh: Iterable[Entry]) -> list[str]:
    """Ids of chunks that an earlier, longer version of a corrected entry may have had."""
    corrected = (entry for entry in fresh if entry.version > 1)
    return [f"{entry.internal_id}#{number}" for entry in corrected for number in range(entry.chunks, entry.indexed_chunks)]


def _embed(ports: Ports, target: Target, documents: Sequence[IndexDocument], failed: dict[str, str]) -> list[IndexDocument]:
    """The documents with their vectors; those whose text the model refuses are left out and told in `failed` by entry."""
    if not documents:
        return []
    embedder = ports.embedders(target.model, target.dimensions)
    try:
        vectors = embedder.embed([document.text for document in documents])
        return [_with_vector(document, vector) for document, vector in zip(documents, vectors, strict=True)]
    except ModelUnavailable:
        raise
    except ModelError as error:
        if len(documents) == 1:
            if documents[0].form == "chunk":
                failed[documents[0].entry] = str(error)
            return []
    half = len(documents) // 2
    return _embed(ports, target, documents[:half], failed) + _embed(ports, target, documents[half:], failed)


def _bury(ports: Ports, bank: Bank, target: Target, partition: str, indexed: Sequence[Entry]) -> None:
    """Take out again what died while it was indexed: the index forgets versions of deleted documents after a while."""
    if not indexed:
        return
    keys = [partitions.entry_key(bank, partition, entry.sort) for entry in indexed]
    bank_item, head_item, *items = ports.table.read(
        [banks.key_of(bank.account, bank.id), partitions.head_key(bank, partition), *keys]
    )
    if bank_item is None or head_item is None or bank_item["generation"] != bank.generation:
        ports.index.delete_partition(target.index, bank.id, bank.generation, None)
        return
    head = partitions.head_from(head_item)
    cutoff = bank.cutoff(ports.clock.now())
    dead = [
        entry.internal_id
        for entry, item in zip(indexed, items, strict=True)
        if item is None or not partitions.alive(head, entry, cutoff)
    ]
    if dead:
        ports.index.delete_entries(target.index, bank.id, dead)
    # A correction that was indexed meanwhile may have fewer chunks than the version just written.
    surplus = [
        f"{entry.internal_id}#{number}"
        for entry, item in zip(indexed, items, strict=True)
        if item is not None and item["version"] != entry.version
        for number in range(item["chunks"], entry.chunks)
    ]
    if surplus:
        ports.index.delete(target.index, bank.id, surplus)


def _ask_for_compaction(ports: Ports, bank: Bank, partition: str) -> None:
    """Before the unindexed marks go, so that the last writer always sees the full count."""
    if bank.compacts:
        from . import compaction

        compaction.ask_if_exceeded(ports, bank, partition)


def _confirm(ports: Ports, bank: Bank, indexed: Sequence[Entry]) -> None:
    """Mark entries as searchable in the version that was indexed; a corrected one keeps its mark for its own message."""
    updates = [
        Update(
            partitions.entry_key(bank, entry.partition, entry.sort),
            set={"indexed_version": entry.version, "indexed_chunks": entry.chunks},
            remove=(*DUE_ATTRIBUTES, "attempts"),
            when=(Is("version", "=", entry.version),),
        )
        for entry in indexed
    ]
    for start in range(0, len(updates), 100):
        batch = updates[start : start + 100]
        try:
            if len(batch) > 1:
                ports.table.transact(batch)
                continue
        except ConditionFailed:
            pass
        for update in batch:
            try:
                ports.table.write(update)
            except ConditionFailed:
                continue


def _say_ready(ports: Ports, bank: Bank) -> None:
    if bank.status == "empty":
        try:
            ports.table.write(
                Update(
                    banks.key_of(bank.account, bank.id),
                    set={"status": "ready"},
                    when=(Is("generation", "=", bank.generation),),
                )
            )
        except ConditionFailed:
            return


def _record_failure(ports: Ports, bank: Bank, entry: Entry, reason: str) -> None:
    """One more attempt on the entry itself, and when it is due again; after the last, a failed job and a metric."""
    key = partitions.entry_key(bank, entry.partition, entry.sort)
    item = ports.table.read([key])[0]
    if item is None or item["version"] != entry.version:
        return
    attempts = item.get("attempts", 0)
    changes: dict[str, Any] = {"attempts": attempts + 1, "index_error": reason[:500]}
    remove: tuple[str, ...] = ()
    if attempts < len(RETRY_HOURS):
        changes |= due(entry.internal_id, ports.clock.now() + RETRY_HOURS[attempts] * 3_600_000)
    else:
        changes["index_failed"] = True
        remove = DUE_ATTRIBUTES
    try:
        ports.table.write(Update(key, set=changes, remove=remove, when=(Is("version", "=", entry.version),)))
    except ConditionFailed:
        return
    ports.metrics.count("IndexFailed" if remove else "IndexAttemptFailed")
    if remove:
        from . import jobs

        jobs.record_failure(ports, bank, "ingestion", f"entry {entry.id}: {reason[:500]}", key=entry.key)
