"""What was made of a message follows it: corrected with it, deleted with it, or made again."""

from __future__ import annotations

from contextlib import suppress

from .. import corrections, deletion, ids
from ..bank import Bank
from ..capture import ledger as ledgers
from ..capture import made as records
from ..capture import owing
from ..capture.ledger import Ledger
from ..capture.made import Made
from ..capture.owing import Owed
from ..capture.runs import from_item
from ..errors import Gone, NotFound
from ..ports import Action, Check, ConditionFailed, Delete, Is, Key, Ports, Update
from ..retrying import Superseded

AT_ONCE = 50
"""Owed messages that are looked at together."""


def follow(ports: Ports, bank: Bank, ledger: Ledger, *, deadline: int) -> None:
    """Have everything that was made of edited and deleted messages follow them. What must be distilled anew is then owed so.

    May be repeated. What was compacted since stays as the summary tells it. Raises `DatabaseUnavailable`.
    """
    while owed := owing.listed(ports, bank, ledger.partition, "carry", AT_ONCE):
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
        sort = made.entries[made.told.index(owed.place)]
        with suppress(NotFound, Gone):
            entry = ids.internal(partition, sort)
            if gone or message is None:
                deletion.delete_entry(ports, bank, entry, deadline=deadline)
            else:
                corrections.correct(ports, bank, entry, content=message.text, deadline=deadline)
        _turn(ports, bank, partition, owed, distil=False)
        return
    remove_entries(ports, bank, partition, made, deadline=deadline)
    others = [place for place in made.told if place != owed.place]
    for start in range(0, len(others), 50):
        some = [owing.put(bank, partition, place, "distil", owed.stamp) for place in others[start : start + 50]]
        try:
            ports.table.transact([Check(records.key_of(bank, partition, made.sk), (Is("pk", "exists"),)), *some])
        except ConditionFailed:
            # Somebody else follows the same message, and is further.
            return
    with suppress(ConditionFailed):
        actions: list[Action] = [Delete(records.key_of(bank, partition, made.sk))]
        ports.table.transact([*actions, *_turned(bank, partition, owed, distil=not gone)])


def _turned(bank: Bank, partition: str, owed: Owed, *, distil: bool) -> list[Action]:
    if not distil:
        return [owing.done(bank, partition, owed)]
    put = owing.put(bank, partition, owed.place, "distil", owed.stamp, owed.made)
    return [Update(Key(put.item["pk"], put.item["sk"]), set={"work": "distil"}, when=(Is("stamp", "=", owed.stamp),))]


def _turn(ports: Ports, bank: Bank, partition: str, owed: Owed, *, distil: bool) -> None:
    """The message is owed no more, or is to be distilled; one that was changed again meanwhile stays as it is owed now."""
    with suppress(ConditionFailed):
        ports.table.transact(_turned(bank, partition, owed, distil=distil))


def remove_entries(ports: Ports, bank: Bank, partition: str, made: Made, *, deadline: int) -> None:
    """Delete the entries of a record that are still there."""
    for sort in made.entries:
        with suppress(NotFound, Gone):
            deletion.delete_entry(ports, bank, ids.internal(partition, sort), deadline=deadline)


def settled(ports: Ports, bank: Bank, ledger: Ledger) -> None:
    """Nothing is owed any more, unless a message was changed meanwhile."""
    with suppress(ConditionFailed):
        at = ledgers.ledger_key(bank, ledger.partition)
        ports.table.write(Update(at, remove=("owes",), when=ledgers.unchanged(ledger, "edits", "lease")))


def reset(ports: Ports, bank: Bank, ledger: Ledger, token: str, *, deadline: int) -> bool:
    """Remove all that was made of a key's messages, and have the ledger begin anew. False when the deadline came first.

    Dying in between leaves the rest, and the mark that it is to go. Raises `Superseded` when the lease is another's.
    """
    partition = ledger.partition
    for made in records.all_of(ports, bank, partition):
        if ports.clock.now() >= deadline:
            return False
        remove_entries(ports, bank, partition, made, deadline=deadline)
        ports.table.write(Delete(records.key_of(bank, partition, made.sk)))
    owing.clear(ports, bank, partition)
    _forget_failures(ports, bank, partition)
    at = ledgers.ledger_key(bank, partition)
    values = {"at": ledgers.end_of(ledger.forgotten), "processed": 0}
    try:
        ports.table.write(
            Update(at, set=values, remove=("reset", "plan", "owes", "held"), when=(Is("lease", "=", token), Is("reset", "exists")))
        )
    except ConditionFailed:
        raise Superseded from None
    return True


def _forget_failures(ports: Ports, bank: Bank, partition: str) -> None:
    """Messages that were set aside, or made again, are like all others."""
    pk = ledgers.runs_pk(bank, partition)
    after: str | None = "N#"
    while after is not None:
        page = ports.table.query(pk, after=after, before="N~", limit=500, attributes=["failed", "made"])
        for item in page.items:
            if "failed" in item or "made" in item:
                with suppress(ConditionFailed):
                    ports.table.write(Update(Key(pk, item["sk"]), remove=("failed", "made"), when=(Is("pk", "exists"),)))
        after = page.after
