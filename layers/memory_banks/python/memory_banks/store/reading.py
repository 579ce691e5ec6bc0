"""Reading documents by name, and what an access does to the time they have left."""

from __future__ import annotations

from collections.abc import Sequence

from ..marking import due
from ..ports import ConditionFailed, Contended, Is, Ports, Update
from . import document, namespaces, values
from .document import Document
from .namespaces import Namespace

WORTH_A_WRITE = 1_000
"""An access that would put off the expiry by less (ms) writes nothing, if the item lives for a minute or longer."""


def get(
    ports: Ports, account: str, names: Sequence[tuple[Namespace, str]], *, refresh: Sequence[bool] | None = None
) -> list[Document | None]:
    """The documents of these names, in their order, by strong reads; None where there is none, or it expired.

    `refresh` (for each, all by default): whether this is an access that puts off the expiry.
    """
    keys = [document.key_of(account, namespaces.place(*name)) for name in names]
    now = ports.clock.now()
    items = ports.table.read(keys) if keys else []
    found = [values.read(ports, item) if item is not None and document.alive(item, now) else None for item in items]
    accessed(ports, account, [one for position, one in enumerate(found) if one and (refresh is None or refresh[position])])
    return found


def accessed(ports: Ports, account: str, documents: Sequence[Document]) -> None:
    """Put off the expiry of those that have one, by their own ttl from now. An expired one stays expired.

    Nothing else changes: neither value nor `updated_at` nor version. Whoever wrote a document meanwhile has it right already.
    """
    now = ports.clock.now()
    for one in documents:
        if one.ttl is None or one.expires_at is None:
            continue
        expires_at = now + round(one.ttl * document.MINUTE)
        if one.ttl >= 1 and expires_at - one.expires_at < WORTH_A_WRITE:
            continue
        # Also in the millisecond of its last access: who looks whether it was put off sees that it was.
        expires_at = max(expires_at, one.expires_at + 1)
        key = document.key_of(account, one.place)
        still = (Is("version", "=", one.version), Is("expires_at", ">", now), Is("expires_at", "<", expires_at))
        try:
            ports.table.write(
                Update(key, set={"expires_at": expires_at} | due(key.pk + key.sk, expires_at, "retention"), when=still)
            )
        except (ConditionFailed, Contended):
            continue
