"""The sweep: it takes up what is due and what a crash, a lost message or a back-off has left. It reads what is due, never
what is stored, so an hour with nothing due costs a handful of reads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import bank as banks
from . import cleaning, compaction, exports, partitions, retention, writing
from .marking import DUE_ATTRIBUTES, Schedule, due, partitions_of
from .ports import (
    BlobsUnavailable,
    ConditionFailed,
    Contended,
    Delete,
    Due,
    IndexUnavailable,
    Is,
    Item,
    Key,
    ModelError,
    Ports,
    QueueUnavailable,
    TableUnavailable,
    Update,
)
from .store import expiry, leavings

PAGE = 100
AGAIN_MS = 3_600_000
"""When an item is due again whose work was handed to a queue: by then it is done, or its message is lost."""


class Swept(NamedTuple):
    """What a sweep found due and took up."""

    partitions: int = 0
    entries: int = 0
    cleanups: int = 0
    banks: int = 0
    left: int = 0
    """Due items it could not finish; they stay due."""
    documents: int = 0
    exports: int = 0
    ledgers: int = 0

    def plus(self, kind: str, done: bool) -> Swept:
        """One more of a kind."""
        return self._replace(**{kind: getattr(self, kind) + 1}, left=self.left + (not done))


def sweep(ports: Ports, schedule: Schedule, *, deadline: int) -> Swept:
    """Take up all that is due for this schedule, until about the deadline (ms); what is left is due the next time.

    An item that fails in a way nobody expected is raised at the end, after all others had their turn.
    """
    swept = Swept()
    unexpected: list[Exception] = []
    first, count = partitions_of(schedule)
    now = ports.clock.now()
    for partition in range(first, first + count):
        seen: set[Due] = set()
        while ports.clock.now() < deadline:
            found = [due for due in ports.table.due(partition, now, PAGE + len(seen)) if due not in seen]
            if not found:
                break
            for one in found:
                seen.add(one)
                if ports.clock.now() >= deadline:
                    break
                swept = _take_up(ports, one, swept, deadline, unexpected)
            if len(found) < PAGE:
                break
    if unexpected:
        raise unexpected[0]
    return swept


def _take_up(ports: Ports, one: Due, swept: Swept, deadline: int, unexpected: list[Exception]) -> Swept:
    """One due item, by what its key says it is. What fails stays due, and keeps nothing else from its turn."""
    kind = {"H": "partitions", "E": "entries", "X": "cleanups", "B": "banks", "W": "banks", "V": "banks"}
    kind |= {"D": "documents", "Y": "cleanups", "J": "exports", "L": "ledgers", "O": "banks"}
    name = one.key.sk[0] if one.key.pk[0] in "PG" else one.key.pk[0]
    try:
        match name:
            case "H":
                done = _partition(ports, one)
            case "E":
                done = _entry(ports, one)
            case "X":
                done = _cleanup(ports, one, deadline)
            case "B":
                done = retention.sweep_bank(ports, one.key, deadline=deadline)
            case "W":
                done = _thresholds(ports, one)
            case "V":
                done = _rebuild(ports, one)
            case "L":
                done = _ledger(ports, one)
            case "O":
                done = _capture(ports, one)
            case "D":
                done = expiry.take_up(ports, one.key, deadline=deadline)
            case "J":
                done = exports.take_up(ports, one.key)
            case "Y":
                done = leavings.take_up(ports, one.key)
            case _:
                return swept._replace(left=swept.left + 1)
    except TableUnavailable:
        raise
    except (BlobsUnavailable, IndexUnavailable, QueueUnavailable, ModelError, Contended):
        done = False
    except Exception as error:
        ports.metrics.count("SweepErrors")
        unexpected.append(error)
        done = False
    return swept.plus(kind[name], done)


def _defer(ports: Ports, one: Due, seed: str) -> Item | None:
    """Put off what is handed to a queue now; None when another sweep, or its end, was faster."""
    try:
        return ports.table.write(Update(one.key, set=due(seed, ports.clock.now() + AGAIN_MS), when=(Is("due_at", "=", one.at),)))
    except ConditionFailed:
        return None


def _partition(ports: Ports, one: Due) -> bool:
    """A partition over a threshold, or owed a retry."""
    item = _defer(ports, one, one.key.sk)
    if item is None:
        return True
    _, bank, generation, _ = one.key.pk.split("#")
    named = banks.stand_in(item["account"], bank, int(generation))
    compaction.send(ports, [compaction.message_of(named, one.key.sk)])
    return True


def _entry(ports: Ports, one: Due) -> bool:
    """An entry that ingest has not confirmed: its message was lost, or it failed and is owed another attempt."""
    item = _defer(ports, one, one.key.sk)
    if item is None:
        return True
    _, bank, generation, partition = one.key.pk.split("#")
    named = banks.stand_in(item["account"], bank, int(generation))
    head = ports.table.read([partitions.head_key(named, partition)])[0]
    if head is None or item["sk"] <= "E#" + partitions.head_from(head).watermark:
        # Compacted or forgotten; its clean-up has it. Nothing is left to index.
        _unmark(ports, one.key)
        return True
    ports.ingestion.send([writing.message_of(named, partition, [item["sk"][2:]])])
    return True


def _unmark(ports: Ports, key: Key) -> None:
    try:
        ports.table.write(Update(key, remove=DUE_ATTRIBUTES, when=(Is("pk", "exists"),)))
    except ConditionFailed:
        return


def _cleanup(ports: Ports, one: Due, deadline: int) -> bool:
    """A clean-up whose time has come; long ones go on as long as the sweep may."""
    while not cleaning.clean(ports, one.key):
        if ports.clock.now() >= deadline:
            return False
    return True


def _thresholds(ports: Ports, one: Due) -> bool:
    """A bank whose thresholds changed: have its partitions looked at."""
    item = _defer(ports, one, one.key.pk)
    if item is None:
        return True
    bank_item: Any = ports.table.read([banks.key_of(item["account"], item["bank"])])[0]
    if bank_item is None:
        ports.table.write(Delete(one.key))
        return True
    compaction.send(ports, [compaction.walk_message(banks.from_item(bank_item))])
    return True


def _ledger(ports: Ports, one: Due) -> bool:
    """A key whose captured runs wait: their message was lost, a queue can't hold one so long, or a distillation died."""
    from .distillation import distilling

    item = _defer(ports, one, one.key.sk)
    if item is not None:
        distilling.take_up(ports, item)
    return True


def _capture(ports: Ports, one: Due) -> bool:
    """A bank whose capture settings changed: have its waiting runs looked at."""
    from .capture import trigger

    item = _defer(ports, one, one.key.pk)
    if item is None:
        return True
    bank_item = ports.table.read([banks.key_of(item["account"], item["bank"])])[0]
    if bank_item is None:
        ports.table.write(Delete(one.key))
        return True
    trigger.send(ports, [trigger.walk_message(banks.from_item(bank_item))])
    return True


def _rebuild(ports: Ports, one: Due) -> bool:
    """A rebuild whose message was lost, or whose function died."""
    from . import rebuild

    item = _defer(ports, one, one.key.pk)
    if item is not None:
        rebuild.take_up(ports, item)
    return True
