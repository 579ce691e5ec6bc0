"""What was made of a message follows it: corrected with it, deleted with it, or made again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .. import corrections, deletion, ids, partitions
from ..bank import Bank
from ..capture import ledger as ledgers
from ..capture import made as records
from ..capture import owing
from ..capture.ledger import Ledger
from ..capture.made import Made
from ..capture.owing import Owed
from ..capture.runs import from_item
from ..errors import Gone, NotFound
from ..partitions import Head
from ..ports import Action, Check, ConditionFailed, Delete, Is, Key, Ports, Update
from ..retrying import Superseded, contended

AT_ONCE = 50
"""Owed messages that are looked at together."""


def follow(ports: Ports, bank: Bank, ledger: Ledger, *, deadline: int) -> None:
    """Have everything that was made of edited and deleted messages follow them. What must be distilled anew is then owed so.

    May be repeated. What was compacted since stays as the summary tells it. Raises `DatabaseUnavailable`.
    """
    while owed := owing.listed(ports, bank, ledger, "carry", AT_ONCE):
        for one in owed:
            _follow_one(ports, bank, ledger.partition, one, deadline)


def _follow_one(ports: Ports, bank: Bank, partition: str, owed: Owed, deadline: int) -> None:
    item = ports.table.read([Key(ledgers.runs_pk(bank, partition), "N#" + owed.place)])[0]
    message = from_item(item) if item is not None else None
    made = records.of(ports, bank, partition, owed.place, owed.made)
    gone = message is None or message.blank
    if made is None or owed.place not in made.told or made.kind == "schemas":
        # Nothing was made of it that could be corrected. Documents keep what they learned; the new text is learned as well.
        _turn(ports, bank, partition, owed, distil=not gone)
        return
    if made.kind == "none":
        emptied = item is not None and "emptied" in item
        if item is not None and gone and not emptied:
            # Noted before its entry goes: with another text it must have a new one, there is none to correct.
            try:
                at = Key(item["pk"], item["sk"])
                _transact(ports, [Update(at, set={"emptied": True}, when=(Is("version", "=", item["version"]),))])
            except ConditionFailed:
                return
        sort = made.entries[made.told.index(owed.place)]
        with suppress(NotFound, Gone):
            entry = ids.internal(partition, sort)
            if gone or emptied or message is None:
                deletion.delete_entry(ports, bank, entry, deadline=deadline)
            else:
                corrections.correct(ports, bank, entry, content=message.text, deadline=deadline)
        _turn(ports, bank, partition, owed, distil=emptied and not gone)
        return
    compacted = remove_entries(ports, bank, partition, made, deadline=deadline)
    if compacted and compacted == len(made.entries):
        # The summary tells of them all: made again, the others would be remembered twice.
        _turn(ports, bank, partition, owed, distil=False)
        return
    others = [place for place in made.told if place != owed.place]
    for start in range(0, len(others), 50):
        some = [owing.put(bank, partition, place, "distil", owed.stamp) for place in others[start : start + 50]]
        try:
            _transact(ports, [Check(records.key_of(bank, partition, made.sk), (Is("pk", "exists"),)), *some])
        except ConditionFailed:
            # Somebody else follows the same message, and is further.
            return
    with suppress(ConditionFailed):
        actions: list[Action] = [Delete(records.key_of(bank, partition, made.sk))]
        _transact(ports, [*actions, *_turned(bank, partition, owed, distil=not gone)])


def _turned(bank: Bank, partition: str, owed: Owed, *, distil: bool) -> list[Action]:
    if not distil:
        return [owing.done(bank, partition, owed)]
    put = owing.put(bank, partition, owed.place, "distil", owed.stamp, owed.made)
    return [Update(Key(put.item["pk"], put.item["sk"]), set={"work": "distil"}, when=(Is("stamp", "=", owed.stamp),))]


def _turn(ports: Ports, bank: Bank, partition: str, owed: Owed, *, distil: bool) -> None:
    """The message is owed no more, or is to be distilled; one that was changed again meanwhile stays as it is owed now."""
    with suppress(ConditionFailed):
        _transact(ports, _turned(bank, partition, owed, distil=distil))


def _transact(ports: Ports, actions: Sequence[Action]) -> None:
    """One transaction, again while it is contended: a message was changed already, and its caller waits."""
    contended(lambda: ports.table.transact(actions), ports.clock, ports.chance)


def remove_entries(ports: Ports, bank: Bank, partition: str, made: Made, *, deadline: int) -> int:
    """Delete the entries of a record that are still there. Gives how many are part of a summary by now."""
    compacted = 0
    for sort in made.entries:
        try:
            deletion.delete_entry(ports, bank, ids.internal(partition, sort), deadline=deadline)
        except Gone:
            compacted += 1
        except NotFound:
            continue
    return compacted


def settled(ports: Ports, bank: Bank, ledger: Ledger) -> None:
    """Nothing is owed any more, unless a message was changed meanwhile."""
    with suppress(ConditionFailed):
        at = ledgers.ledger_key(bank, ledger.partition)
        ports.table.write(Update(at, remove=("owes",), when=ledgers.unchanged(ledger, "edits", "lease")))


def reset(ports: Ports, bank: Bank, ledger: Ledger, token: str, *, deadline: int) -> bool:
    """Remove all that was made of a key's messages, and have the ledger begin anew. False when the deadline came first.

    What was compacted stays, as the summary tells it: the ledger begins after it. Where that is, is noted first; dying later
    leaves the rest to be removed. Raises `Superseded` when the lease is another's.
    """
    partition = ledger.partition
    start = ledgers.end_of(ledger.forgotten)
    if ledger.reset_at is None:
        start = max(start, _compacted_through(ports, bank, partition))
        _write(ports, bank, ledger, token, set={"reset_at": start})
    else:
        start = max(start, ledger.reset_at)
    kept = 0
    for made in records.all_of(ports, bank, partition):
        if ports.clock.now() >= deadline:
            return False
        kept += _remove(ports, bank, ledger, made, start, deadline)
    owing.clear(ports, bank, partition, after=start)
    _forget_failures(ports, bank, partition, start)
    left = ("owes",) if not owing.any_of(ports, bank, ledger) else ()
    _write(ports, bank, ledger, token, set={"at": start, "processed": kept}, remove=("reset", "reset_at", "plan", "held", *left))
    return True


def give_up_reset(ports: Ports, bank: Bank, ledger: Ledger, token: str, *, deadline: int) -> bool:
    """A regeneration was cancelled: where it has removed nothing yet, all stays; else it is to remove the rest.

    False when the deadline came first. Raises `Superseded` when the lease is another's.
    """
    if ledger.reset_at is not None:
        return reset(ports, bank, ledger, token, deadline=deadline)
    _write(ports, bank, ledger, token, remove=("reset",))
    return True


def _write(
    ports: Ports, bank: Bank, ledger: Ledger, token: str, set: dict[str, Any] | None = None, remove: tuple[str, ...] = ()
) -> None:
    at = ledgers.ledger_key(bank, ledger.partition)
    try:
        ports.table.write(Update(at, set=set or {}, remove=remove, when=(Is("lease", "=", token), Is("reset", "exists"))))
    except ConditionFailed:
        item = ports.table.read([at])[0]
        if item is None or item.get("lease") != token or "reset" in item:
            raise Superseded from None
        # It took effect before: the answer was lost.


def _compacted(head: Head | None, made: Made) -> tuple[str, ...]:
    """The messages of a record whose memory is part of a summary by now. Entries are compacted from the oldest on."""
    count = sum(head.forgotten < sort <= head.watermark for sort in made.entries) if head is not None else 0
    # Of what a model made, a summary tells of them all as soon as it tells of a piece.
    return made.told[: count if made.kind == "none" or not count else None]


def _head(ports: Ports, bank: Bank, partition: str) -> Head | None:
    item = ports.table.read([partitions.head_key(bank, partition)])[0]
    return partitions.head_from(item) if item is not None else None


def _compacted_through(ports: Ports, bank: Bank, partition: str) -> str:
    """The last place of a message whose memory is part of a summary by now."""
    head = _head(ports, bank, partition)
    return max((max(_compacted(head, made), default="") for made in records.all_of(ports, bank, partition)), default="")


def _remove(ports: Ports, bank: Bank, ledger: Ledger, made: Made, start: str, deadline: int) -> int:
    """Remove a record with its entries, but for what was compacted. Gives how many messages that is.

    Of the rest, messages through `start` are owed: the ledger begins after them.
    """
    partition, forgotten = ledger.partition, ledgers.end_of(ledger.forgotten)
    compacted = _compacted(_head(ports, bank, partition), made)
    kept, rest = len(compacted), made.told[len(compacted) :]
    if kept and not rest:
        return kept
    remove_entries(ports, bank, partition, replace(made, entries=made.entries[kept:]), deadline=deadline)
    stamp = ids.ulids(ports.clock.now(), ids.LOWEST, 1, ports.chance)[0]
    first = [owing.put(bank, partition, place, "distil", stamp) for place in rest if forgotten < place <= start]
    for number in range(0, len(first), 50):
        _transact(ports, first[number : number + 50])
    actions: list[Action] = []
    sk = made.sk
    if kept:
        messages = tuple(place for place in made.messages if place <= max(compacted))
        sk = records.sk_of(messages) if sk.startswith("O#") else sk
        left = replace(made, sk=sk, messages=messages, told=compacted, entries=made.entries[:kept])
        actions.append(records.record(bank, partition, left, stamp))
    if not kept or sk != made.sk:
        actions.append(Delete(records.key_of(bank, partition, made.sk)))
    _transact(ports, actions)
    return kept


def _forget_failures(ports: Ports, bank: Bank, partition: str, start: str) -> None:
    """Messages after `start` that were set aside, or made again, are like all others."""
    pk = ledgers.runs_pk(bank, partition)
    after: str | None = "N#" + start
    while after is not None:
        page = ports.table.query(pk, after=after, before="N~", limit=500, attributes=["failed", "made", "emptied"])
        for item in page.items:
            if "failed" in item or "made" in item or "emptied" in item:
                with suppress(ConditionFailed):
                    gone = ("failed", "made", "emptied")
                    ports.table.write(Update(Key(pk, item["sk"]), remove=gone, when=(Is("pk", "exists"),)))
        after = page.after
