"""Retention: what is past a bank's retention is returned by nothing, from that second, and then removed for good.

Reading enforces the window by `Bank.cutoff`; this pass removes text, vectors, pointers and captured messages, oldest first through
the `age` index, so it reads what is expired and nothing else. Each transaction is conditional like a DELETE, and carries a
check of the settings version: a retention that is cleared or raised meanwhile stops it at once. Dying between transactions
leaves the bank due.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import bank as banks
from . import cleaning, ids, partitions
from .bank import DAY, Bank
from .corrections import edit_head
from .marking import DUE_ATTRIBUTES, due
from .partitions import Head
from .ports import Action, Aged, Check, ConditionFailed, Contended, Delete, Is, Item, Key, Ports, Update
from .retrying import contended

BATCH = 40
"""Expired items of one transaction; each entry may bring a pointer."""

PAUSE_SECONDS = 0.02
"""Between transactions, so that the pass never starves writers."""


def marks(bank: Bank, at: int) -> dict[str, str | int]:
    """The attributes that make a bank due for a retention pass at `at` (ms)."""
    return due(bank.id, at, "retention")


def first_due(bank: Bank, oldest: int) -> int | None:
    """When a bank is due whose oldest entry was created at `oldest` (ms); None when it keeps everything."""
    return oldest + bank.retention_days * DAY + 1 if bank.retention_days else None


def sweep_bank(ports: Ports, key: Key, *, deadline: int) -> bool:
    """One pass over a bank: remove what has expired, then make the bank due when the next entry expires.

    False when the deadline (ms) came first, or the settings changed: the bank stays due.
    """
    item = ports.table.read([key])[0]
    if item is None:
        return True
    bank = banks.from_item(item)
    cutoff = bank.cutoff(ports.clock.now())
    if cutoff is None:
        return _settle(ports, bank, item, None)
    end = ids.at(cutoff + 1)
    for group in range(partitions.HEAD_GROUPS):
        position: str | None = None
        while expired := ports.table.aged(partitions.age_pk(bank, group), after=position, before=end, limit=BATCH):
            if ports.clock.now() >= deadline or not _remove(ports, bank, expired):
                return False
            position = expired[-1].age
            ports.clock.sleep(PAUSE_SECONDS)
    return _settle(ports, bank, item, _oldest(ports, bank))


def _remove(ports: Ports, bank: Bank, expired: Iterable[Aged]) -> bool:
    """Remove these expired items; False when the bank's settings changed. The age index is behind: some may be gone."""
    by_partition: dict[str, list[Key]] = {}
    others: list[Aged] = []
    for aged in expired:
        if aged.key.sk.startswith("E#"):
            by_partition.setdefault(aged.key.pk.rsplit("#", 1)[1], []).append(aged.key)
        else:
            others.append(aged)
    if not _remove_others(ports, bank, others):
        return False
    return all(_remove_entries(ports, bank, partition, keys) for partition, keys in by_partition.items())


def _settings(bank: Bank) -> Check:
    """That the bank is as it was read: a retention that is raised or cleared meanwhile keeps what is still there."""
    return Check(banks.key_of(bank.account, bank.id), (Is("version", "=", bank.version), Is("generation", "=", bank.generation)))


def _remove_others(ports: Ports, bank: Bank, expired: Sequence[Aged]) -> bool:
    """Remove captured runs and messages, what is noted of them, and pointers that outlived their entries.

    The index is behind: an id may have been given away anew since. Then only what has changed stays.
    """
    if not expired:
        return True
    deletes = [Delete(one.key, (Is("age", "=", one.age),)) for one in expired]
    try:
        contended(lambda: ports.table.transact([_settings(bank), *deletes]), ports.clock, ports.chance)
    except ConditionFailed as failed:
        if 0 in failed.failed:
            return False
        changed = {position - 1 for position in failed.failed}
        return _remove_others(ports, bank, [one for position, one in enumerate(expired) if position not in changed])
    return True


def _remove_entries(ports: Ports, bank: Bank, partition: str, keys: list[Key]) -> bool:
    for _ in range(10):
        head_item, *items = ports.table.read([partitions.head_key(bank, partition), *keys])
        present = [item for item in items if item is not None]
        if head_item is None or not present:
            return True
        head = partitions.head_from(head_item)
        living = [item for item in present if item["sk"] > "E#" + head.watermark]
        record = cleaning.of_entries(bank, partition, [item["sk"][2:] for item in present], ports.clock.now(), ports.chance)
        actions: list[Action] = [_settings(bank), *cleaning.removals(ports, bank, present, pointers=True), record]
        if living:
            actions.append(_without(bank, head, living))
        try:
            contended(lambda actions=actions: ports.table.transact(actions), ports.clock, ports.chance)  # type: ignore[misc]
        except ConditionFailed as failed:
            if 0 in failed.failed:
                return False
            continue
        cleaning.announce(ports, record)
        return True
    raise Contended("the partition kept changing")


def _without(bank: Bank, head: Head, living: list[Item]) -> Update:
    """The head's part: one edit, and the counters without what goes."""
    edit = edit_head(
        bank,
        head,
        min(item["sk"] for item in living)[2:],
        entries=-sum(item["kind"] == "entry" for item in living),
        tokens=-sum(item["tokens"] for item in living),
        chunks=-sum(item["chunks"] for item in living),
    )
    if head.summary and any(item["sk"] == "E#" + head.summary for item in living):
        return Update(edit.key, add=edit.add, remove=("summary",), when=edit.when)
    return edit


def _oldest(ports: Ports, bank: Bank) -> int:
    """Creation time of the oldest thing the bank holds, ms; now when it holds nothing."""
    found = [aged for group in range(partitions.HEAD_GROUPS) for aged in ports.table.aged(partitions.age_pk(bank, group), limit=1)]
    return min((ids.milliseconds_of(aged.age) for aged in found), default=ports.clock.now())


def _settle(ports: Ports, bank: Bank, item: Item, oldest: int | None) -> bool:
    """Note when the bank is due next; one whose settings changed meanwhile stays due now."""
    at = None if oldest is None else first_due(bank, oldest)
    try:
        ports.table.write(
            Update(
                Key(item["pk"], item["sk"]),
                set=marks(bank, at) if at is not None else {},
                remove=() if at is not None else DUE_ATTRIBUTES,
                when=(Is("version", "=", bank.version), Is("generation", "=", bank.generation)),
            )
        )
    except ConditionFailed:
        return False
    return True


def due_at_creation(bank: Bank) -> dict[str, str | int]:
    """The marks of a new bank."""
    return due_from(bank, bank.created_at)


def due_from(bank: Bank, start: int) -> dict[str, str | int]:
    """The marks of a bank that is empty at `start` (ms): nothing in it can expire before what is written then would."""
    at = first_due(bank, start)
    return marks(bank, at) if at is not None else {}
