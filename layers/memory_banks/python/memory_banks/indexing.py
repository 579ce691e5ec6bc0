"""Indexing: the documents of some entries of one partition, with vectors, into indexes; and out again what died meanwhile.

Repeating it changes nothing: ids and versions decide. A process that dies in the middle leaves some documents written; those
of entries that died at the same time are found by no search, and removed by the next reconciliation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import bank as banks
from . import documents, entries, partitions
from .bank import Bank, Target
from .documents import Neighbourhood
from .entries import Entry
from .partitions import Head
from .ports import IndexDocument, ModelError, ModelUnavailable, Ports


def index(ports: Ports, bank: Bank, head: Head, living: Sequence[Entry], targets: Sequence[Target]) -> dict[str, str]:
    """Write chunks and windows of these living entries of a partition to each index.

    `bank` and `head` must have been read, strongly, before the entries. Gives the sort positions of those that the model or
    the index refuses, with the reason. Raises `IndexUnavailable`, `ModelUnavailable`, `TableUnavailable`, `Contended`.
    """
    made: list[IndexDocument] = []
    told = {entry.sort: entry for entry in living}
    spoken = [entry.sort for entry in living if entry.kind == "entry"]
    if bank.conversation and spoken:
        neighbourhood = Neighbourhood.read(ports, bank, head, spoken)
        for entry in living:
            made += documents.chunks(bank, entry, neighbourhood.previous(entry))
        made += neighbourhood.windows(spoken)
        told |= {entry.sort: entry for entry in neighbourhood.order if entry.sort not in told}
    else:
        for entry in living:
            made += documents.chunks(bank, entry, None)
    failed: dict[str, str] = {}
    for target in targets:
        write(ports, target, made, failed)
        shrunk = surplus(living)
        if shrunk:
            ports.index.delete(target.index, bank.id, shrunk)
    bury(ports, bank, targets, head.partition, list(told.values()))
    sorts = {entry.internal_id: entry.sort for entry in living}
    return {sorts[internal_id]: reason for internal_id, reason in failed.items() if internal_id in sorts}


def write(ports: Ports, target: Target, made: Sequence[IndexDocument], failed: dict[str, str]) -> None:
    """Embed and write documents; what is refused of a chunk is told in `failed` by internal id of its entry."""
    embedded = _embed(ports, target, made, failed)
    by_id = {document.id: document for document in embedded}
    for outcome in ports.index.write(target.index, embedded, target.dimensions) if embedded else ():
        if outcome.status == "failed" and by_id[outcome.id].form == "chunk":
            failed[by_id[outcome.id].entry] = outcome.reason or "refused by the index"


def surplus(living: Iterable[Entry]) -> list[str]:
    """Ids of chunks that an earlier, longer version of a corrected entry may have had."""
    corrected = (entry for entry in living if entry.version > 1)
    return [
        documents.chunk_id(entry.internal_id, number) for entry in corrected for number in range(entry.chunks, entry.indexed_chunks)
    ]


def _embed(
    ports: Ports, target: Target, made: Sequence[IndexDocument], failed: dict[str, str], *, again: bool = False
) -> list[IndexDocument]:
    """The documents with their vectors; those whose text the model refuses are left out and told in `failed`.

    A window is tried twice, because nobody tries it later: its entries are found without it.
    """
    if not made:
        return []
    embedder = ports.embedders(target.model, target.dimensions)
    try:
        vectors = embedder.embed([document.text for document in made])
        return [documents.with_vector(document, vector) for document, vector in zip(made, vectors, strict=True)]
    except ModelUnavailable:
        raise
    except ModelError as error:
        if len(made) == 1:
            if made[0].form == "window" and not again:
                return _embed(ports, target, made, failed, again=True)
            if made[0].form == "chunk":
                failed[made[0].entry] = str(error)
            return []
    half = len(made) // 2
    return _embed(ports, target, made[:half], failed) + _embed(ports, target, made[half:], failed)


def bury(ports: Ports, bank: Bank, targets: Sequence[Target], partition: str, told: Sequence[Entry]) -> None:
    """Take out again what died while it was written: the index forgets versions of deleted documents after a while.

    `told` are all entries whose text is in what was written, neighbours in windows too.
    """
    if not told:
        return
    keys = [partitions.entry_key(bank, partition, entry.sort) for entry in told]
    bank_item, head_item, *items = ports.table.read(
        [banks.key_of(bank.account, bank.id), partitions.head_key(bank, partition), *keys]
    )
    if bank_item is None or head_item is None or bank_item["generation"] != bank.generation:
        for target in targets:
            ports.index.delete_partition(target.index, bank.id, bank.generation, None)
        return
    head = partitions.head_from(head_item)
    cutoff = bank.cutoff(ports.clock.now())
    now = [entries.from_item(item) if item is not None else None for item in items]
    dead = [
        entry.internal_id
        for entry, current in zip(told, now, strict=True)
        if current is None or not partitions.alive(head, current, cutoff)
    ]
    # A correction that was indexed meanwhile may have fewer chunks than the version just written.
    shrunk = [
        documents.chunk_id(entry.internal_id, number)
        for entry, current in zip(told, now, strict=True)
        if current is not None and current.version != entry.version
        for number in range(current.chunks, entry.chunks)
    ]
    for target in targets:
        if dead:
            ports.index.delete_entries(target.index, bank.id, dead)
        if shrunk:
            ports.index.delete(target.index, bank.id, shrunk)
