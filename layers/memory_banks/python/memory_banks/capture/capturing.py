"""Which banks capture runs: their settings checked, and their names unique in the account.

A bank that captures is known to its flow by name, so a record holds the name as long as the bank has it:
`N#{account}` / {name}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..bank import Bank
from ..errors import Conflict, Invalid
from ..ports import Check, Delete, Is, Key, Ports, Put

if TYPE_CHECKING:
    from .settings import CaptureSettings


def checked(ports: Ports, wanted: CaptureSettings) -> dict[str, Any]:
    """Capture settings as a bank's record has them. Raises `Invalid`, which names the field."""
    from ..distillation import checking

    checking.check(ports, wanted)
    return wanted.model_dump(mode="json")


def changed(ports: Ports, before: Mapping[str, Any] | None, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The settings after a change: what is given replaces, the rest stays. None ends the capture. Raises `Invalid`."""
    if given is None:
        return None
    # Imported here: functions that delete banks know of their names alone.
    from pydantic import ValidationError

    from .settings import CaptureSettings

    try:
        wanted = CaptureSettings.model_validate({**(before or {}), **given})
    except ValidationError as wrong:
        first = wrong.errors()[0]
        raise Invalid(("body", "capture", *first["loc"]), first["msg"], first["type"]) from None
    return checked(ports, wanted)


def name_actions(old: Bank | None, new: Bank | None) -> list[Put | Delete | Check]:
    """What must be written so that the name of a bank that captures is its own. A name that is taken fails the condition.

    Banks that capture nothing may share a name, but not with one that does.
    """
    before = old.name if old is not None and old.capture is not None else None
    after = new.name if new is not None and new.capture is not None else None
    if new is not None and after is None and (old is None or old.name != new.name):
        free = Check(_name_key(new.account, new.name), (Is("pk", "missing"),))
        return [free, *([Delete(_name_key(new.account, before))] if before is not None else [])]
    if before == after:
        return []
    actions: list[Put | Delete | Check] = []
    if before is not None and old is not None:
        actions.append(Delete(_name_key(old.account, before)))
    if after is not None and new is not None:
        key = _name_key(new.account, after)
        actions.append(Put({"pk": key.pk, "sk": key.sk, "bank": new.id}, (Is("pk", "missing"),)))
    return actions


def check_name(bank: Bank, others: Iterable[Bank]) -> None:
    """Raises `Conflict` where another bank of the account, capturing or not, has the name."""
    if any(other.id != bank.id and other.name == bank.name for other in others):
        raise taken(bank)


def taken(bank: Bank) -> Conflict:
    """That the name is another bank's."""
    if bank.capture is None:
        return Conflict(f"A bank that captures runs is called {bank.name!r}; it is known by its name.", code="name_taken")
    return Conflict(f"A bank that captures runs needs a name of its own, and {bank.name!r} is taken.", code="name_taken")


def wakes(old: Bank, new: Bank) -> bool:
    """Whether runs that were only stored, or that waited longer, are to be looked at after this change."""
    before, after = old.captures, new.captures
    if after is None:
        return False
    if before is None:
        return True
    if not after.auto_capture:
        return False
    faster = after.threshold < before.threshold or after.idle_seconds < before.idle_seconds
    return not before.auto_capture or faster or after.max_wait_seconds < before.max_wait_seconds


def _name_key(account: str, name: str) -> Key:
    return Key(f"N#{account}", name)
