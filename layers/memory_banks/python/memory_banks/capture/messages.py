"""Editing and deleting captured messages: what was made of them follows.

One transaction changes the message, notes that it is owed, and raises the ledger's `edits`, so that a distillation which has
read the old text can't commit it. Then what was made follows, at once where no model is needed; a process that dies in
between leaves it to the key's next distillation, which the sweep starts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from .. import ids, jobs
from ..bank import Bank
from ..errors import Conflict, NotFound, PreconditionFailed
from ..ports import Action, Delete, Either, Is, Item, Key, Ports, Update
from ..retrying import until_committed
from . import ledger as ledgers
from . import owing, trigger
from .ledger import Ledger


def edit(ports: Ports, bank: Bank, message_id: str, text: str, *, if_match: int | None = None, deadline: int) -> Item:
    """Give a message another text. Gives its item.

    Raises `NotFound`, `PreconditionFailed` when `if_match` is not its version, and `DatabaseUnavailable`.
    """

    def changed(item: Item) -> list[Action]:
        if if_match is not None and item["version"] != if_match:
            raise PreconditionFailed(f"the message is at version {item['version']}, not {if_match}", code="version_mismatch")
        key = Key(item["pk"], item["sk"])
        item["text"], item["version"] = text, item["version"] + 1
        return [Update(key, set={"text": text, "version": item["version"]}, when=(Is("version", "=", item["version"] - 1),))]

    return _change(ports, bank, message_id, changed, deadline)


def delete(ports: Ports, bank: Bank, message_id: str, *, deadline: int) -> None:
    """Delete a message, and what was made of it alone. Raises `NotFound` and `DatabaseUnavailable`."""

    def removed(item: Item) -> list[Action]:
        actions: list[Action] = [Delete(Key(item["pk"], item["sk"]), (Is("version", "=", item["version"]),))]
        name = ledgers.name_key(bank, item["id"])
        if ids.parse(item["id"]) is None:
            actions.append(Delete(name, (Either((Is("pk", "missing"), Is("place", "=", item["sk"][2:]))),)))
        return actions

    _change(ports, bank, message_id, removed, deadline)


def retry(ports: Ports, bank: Bank, job_id: str, *, deadline: int) -> Item:
    """Try again what a distillation's job has set aside, or all of it that failed. Gives the new job.

    Raises `NotFound`, and `Conflict` for a job that has not failed and has nothing set aside (`nothing_to_retry`).
    """
    job = jobs.get(ports, bank, job_id)
    if job["kind"] != "distillation" or "key" not in job or job["status"] not in jobs.FINAL:
        raise Conflict("Only a distillation that has ended can be tried again.", code="nothing_to_retry")
    again = 0
    for message_id, _ in job.get("set_aside", ()):
        with suppress(NotFound, _NotAside):
            _change(ports, bank, message_id, _still_aside, deadline)
            again += 1
    if not again and job["status"] == "completed":
        raise Conflict("The job is completed, and no message of it is still set aside.", code="nothing_to_retry")
    return trigger.flush(ports, bank, job["key"], deadline=deadline)


class _NotAside(Exception):
    """Something was made of the message since."""


def _still_aside(item: Item) -> list[Action]:
    """Nothing of the message changes; it must be set aside still, or it would be remembered twice."""
    if "failed" not in item:
        raise _NotAside
    return []


def _change(ports: Ports, bank: Bank, message_id: str, change: Callable[[Item], list[Action]], deadline: int) -> Item:
    def attempt() -> tuple[Item, Ledger, bool]:
        partition, item, ledger = _locate(ports, bank, message_id)
        actions = change(item)
        place = item["sk"][2:]
        # While all is being removed, to be made again, there is nothing to follow.
        distilled = ledger.reset_at is None and (place <= ledger.at or _planned(ports, bank, ledger, place))
        now = ports.clock.now()
        if distilled:
            stamp = ids.ulids(now, ids.LOWEST, 1, ports.chance)[0]
            work: owing.Work = "carry" if actions and "failed" not in item else "distil"
            actions.append(owing.put(bank, partition, place, work, stamp, item.get("made")))
            actions.append(owing.noted(bank, ledger, trigger.marks(partition, 0, now)))
        else:
            at = ledgers.ledger_key(bank, partition)
            actions.append(Update(at, add={"edits": 1}, when=ledgers.unchanged(ledger, "at", "plan", "reset_at")))
        ports.table.transact(actions)
        return item, ledger, distilled

    item, ledger, distilled = until_committed(attempt, ports.clock, ports.chance, deadline)
    if distilled:
        from ..distillation import following

        following.follow(ports, bank, ledger, deadline=deadline)
        trigger.send(ports, [trigger.message_of(bank, ledger.partition)])
    return item


def _planned(ports: Ports, bank: Bank, ledger: Ledger, place: str) -> bool:
    """Whether documents are being written of the message."""
    if ledger.plan is None:
        return False
    item = ports.table.read([Key(ledgers.runs_pk(bank, ledger.partition), ledger.plan)])[0]
    return item is not None and place in item["messages"]


def _locate(ports: Ports, bank: Bank, message_id: str) -> tuple[str, Item, Ledger]:
    """The partition, the message and the ledger. Raises `NotFound`, also for what was forgotten or is past the retention."""
    if parsed := ids.parse(message_id):
        number = ids.decode(parsed.ulid)
        partition, place = parsed.partition, ledgers.place_of(number >> 16, number & 0xFFFF)
    else:
        name = ports.table.read([ledgers.name_key(bank, message_id)])[0]
        if name is None:
            raise NotFound("There is no such message.")
        partition, place = name["partition"], name["place"]
    item, found = ports.table.read([Key(ledgers.runs_pk(bank, partition), "N#" + place), ledgers.ledger_key(bank, partition)])
    cutoff = bank.cutoff(ports.clock.now())
    if item is None or found is None or (cutoff is not None and item["captured_at"] <= cutoff):
        raise NotFound("There is no such message.")
    ledger = ledgers.from_item(found)
    if int(place[:12]) <= ledger.forgotten:
        raise NotFound("There is no such message.")
    return partition, item, ledger
