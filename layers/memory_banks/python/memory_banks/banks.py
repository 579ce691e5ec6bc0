"""Banks: made, found, changed. Deleting one is in `deletion`.

Every change of settings is one conditional update on the record's `version`, repeated when someone else was faster: two
changes at once never mix, and a process that dies leaves either the old record or the new one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from . import limits, versions
from .bank import Bank, Mode, Target, from_item, key_of, to_item
from .capture import capturing
from .errors import BadRequest, Invalid, NotFound
from .ports import Action, ConditionFailed, Is, Item, Ports, Put, UnknownModel, Update
from .retrying import contended, until_committed

if TYPE_CHECKING:
    from .requests import CreateBank, ListBanks, UpdateBank

MODE_DIMENSIONS: Mapping[Mode, int] = {"fast_and_cheap": 256, "balanced": 512, "slow_and_thorough": 1024}
"""What Amazon Titan offers. With a model of other sizes every mode means the model's largest, its native one."""

MODE_CHUNKS: Mapping[Mode, tuple[int, int]] = {
    "fast_and_cheap": (2_000, 200),
    "balanced": (1_200, 150),
    "slow_and_thorough": (800, 120),
    "custom": (1_200, 150),
}
"""Chunk size and overlap in characters: the more thorough a mode, the finer what a vector stands for."""

CONVERSATION_RETENTION = 90
LEGACY_RETENTION = 30
"""Days, when a caller before 2026-08-03 leaves the retention out."""


class BankPage(NamedTuple):
    """Some of an account's banks and how many there are in all."""

    banks: list[Bank]
    total: int


def create(ports: Ports, account: str, wanted: CreateBank, version: str) -> Bank:
    """Make a bank with the defaults of its type, its mode and the API version.

    Of one that is brought in, a retired `max_age_days` is turned into a retention, and not kept, so that this happens once.

    Raises
    ------
    BadRequest
        `max_age_days` in a version that retired it.
    Invalid
        A setting that the mode or the type does not have.
    Conflict
        The bank captures runs and another bank has its name, or the other way round (`name_taken`).
    """
    from . import retention

    _refuse_age(wanted.max_age_days, version, wanted.brought_in)
    if wanted.strip_quoted_reply_chains and wanted.type != "conversation":
        raise Invalid(("body", "strip_quoted_reply_chains"), "only a conversation bank has reply chains")
    model, dimensions, chunk_size, chunk_overlap = _embedding(ports, wanted)
    now = ports.clock.now()
    bank = Bank(
        account=account,
        id=_uuid(ports),
        name=wanted.name,
        type=wanted.type,
        mode=wanted.mode,
        created_at=now,
        updated_at=now,
        embedding_model=model,
        dimensions=dimensions,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        secret=f"{ports.chance.getrandbits(256):064x}",
        description=wanted.description or None,
        compaction_prompt=wanted.compaction_prompt or None,
        max_turns=wanted.max_turns or None,
        max_size_tokens=wanted.max_size_tokens or None,
        max_age_days=None if wanted.brought_in else wanted.max_age_days or None,
        retention_days=_retention(wanted, version),
        strip_quoted_reply_chains=wanted.strip_quoted_reply_chains,
        source_connection_id=_uuid(ports),
    )
    if wanted.capture is not None:
        bank = replace(bank, capture=capturing.checked(ports, wanted.capture))
    put = Put(to_item(bank) | retention.due_at_creation(bank), when=(Is("pk", "missing"),))
    if bank.capture is not None:
        capturing.check_name(bank, _all(ports, account))
    actions = [put, *capturing.name_actions(None, bank)]
    try:
        # Banks of one name that are made at once get in each other's way.
        contended(lambda: ports.table.transact(actions), ports.clock, ports.chance)
    except ConditionFailed:
        raise capturing.taken(bank) from None
    return bank


def get(ports: Ports, account: str, bank_id: str) -> Bank:
    """The bank, read strongly. `NotFound` when the account has none of that id."""
    found = ports.table.read([key_of(account, bank_id)])[0] if _possible(bank_id) else None
    if found is None or found.get("deleted"):
        raise NotFound("There is no such memory bank.", code="memory_bank_not_found")
    return from_item(found)


def list_page(ports: Ports, account: str, wanted: ListBanks) -> BankPage:
    """One page of the account's banks, sorted (ties by id), and the total of all pages."""
    banks = [bank for bank in _all(ports, account) if wanted.type in {None, bank.type}]
    name = wanted.sort
    banks.sort(key=lambda bank: (getattr(bank, name), bank.id), reverse=wanted.order == "desc")
    start = (wanted.page - 1) * wanted.limit
    return BankPage(banks[start : start + wanted.limit], len(banks))


def find(ports: Ports, account: str, text: str, limit: int) -> list[Bank]:
    """Banks whose name or description has the text in it, whatever the case; names first, then the newest."""
    sought = text.casefold()
    ranked = [
        (sought not in bank.name.casefold(), -bank.updated_at, bank.id, bank)
        for bank in _all(ports, account)
        if sought in bank.name.casefold() or sought in (bank.description or "").casefold()
    ]
    return [bank for *_, bank in sorted(ranked, key=lambda row: row[:3])[:limit]]


def update(ports: Ports, account: str, bank_id: str, wanted: UpdateBank, version: str, *, deadline: int) -> Bank:
    """Change the settings that were given; the others stay. Nothing given changes nothing.

    A new retention or new thresholds make the bank due at once, so that the sweep looks at what they concern with no write
    needed.

    Raises
    ------
    BadRequest
        `max_age_days` in a version that retired it.
    NotFound
        No such bank.
    DatabaseUnavailable
        Others changed the bank until the deadline (ms).
    """
    _refuse_age(wanted.max_age_days, version, brought_in=False)
    given = {name: getattr(wanted, name) for name in wanted.model_fields_set - {"capture"}}
    cleared: dict[str, Any] = {name: value if value or value is False else None for name, value in given.items()}

    def changed(bank: Bank) -> Bank:
        if cleared.get("strip_quoted_reply_chains") and not bank.conversation:
            raise Invalid(("body", "strip_quoted_reply_chains"), "only a conversation bank has reply chains")
        if "capture" in wanted.model_fields_set:
            bank = replace(bank, capture=capturing.changed(ports, bank.capture, wanted.capture))
        return replace(bank, **cleared)

    return change(ports, account, bank_id, changed, deadline=deadline)


def change(ports: Ports, account: str, bank_id: str, changed: Callable[[Bank], Bank], *, deadline: int) -> Bank:
    """Apply a change of settings to the newest record and write it, on condition that it still is the newest.

    `changed` may be called several times. A change that changes nothing writes nothing. Raises `NotFound`, and
    `DatabaseUnavailable` when others were faster, or the table busy, until the deadline (ms).
    """

    def attempt() -> Bank:
        old = get(ports, account, bank_id)
        new = changed(old)
        if new == old:
            return old
        return _store(ports, old, replace(new, version=old.version + 1, updated_at=max(ports.clock.now(), old.updated_at)))

    return until_committed(attempt, ports.clock, ports.chance, deadline)


def migrated_retention(retention_days: int | None, max_age_days: int | None) -> int | None:
    """The retention of a bank that was configured with the retired `max_age_days`, in days; None keeps for good.

    No retention takes the age; the old default of 30 gives way to a longer age, or, without an age, to none; any other
    retention was someone's choice and stays.
    """
    if retention_days is None:
        return max_age_days
    if retention_days == LEGACY_RETENTION:
        return max(retention_days, max_age_days) if max_age_days else None
    return retention_days


def shown(bank: Bank, version: str) -> dict[str, Any]:
    """As the API shows it in this version."""
    body = bank.shown()
    if version >= versions.AGE_RETIRED:
        body["max_age_days"] = None
    return body


def _store(ports: Ports, old: Bank, new: Bank) -> Bank:
    """Write what differs and leave the rest of the record alone: due marks, a rebuild's and the source's attributes."""
    # Imported here: most processes never change a bank.
    from . import compaction, retention
    from .capture import trigger

    before, after = asdict(old), asdict(new)
    differing = [f.name for f in fields(Bank) if before[f.name] != after[f.name]]
    now = ports.clock.now()
    marks: Item = retention.marks(new, now) if "retention_days" in differing else {}
    actions: list[Action] = [
        Update(
            key_of(old.account, old.id),
            set={name: after[name] for name in differing if after[name] is not None} | marks,
            remove=tuple(name for name in differing if after[name] is None),
            when=(Is("version", "=", old.version), Is("deleted", "missing")),
        )
    ]
    thresholds = new.compacts and bool({"max_turns", "max_size_tokens"} & set(differing))
    if thresholds:
        actions.append(compaction.walk_record(new, now))
    names = capturing.name_actions(old, new)
    if names and any(isinstance(one, Put) for one in names):
        capturing.check_name(new, _all(ports, new.account))
    waking = capturing.wakes(old, new)
    if waking:
        actions.append(trigger.walk_record(new, now))
    first_name = len(actions)
    try:
        ports.table.transact([*actions, *names])
    except ConditionFailed as failed:
        if names and all(position >= first_name for position in failed.failed):
            raise capturing.taken(new) from None
        raise
    if thresholds:
        compaction.send(ports, [compaction.walk_message(new)])
    if waking:
        trigger.send(ports, [trigger.walk_message(new)])
    return new


def _all(ports: Ports, account: str) -> list[Bank]:
    banks: list[Bank] = []
    after: str | None = None
    while True:
        page = ports.table.query(key_of(account, "").pk, after=after)
        banks += [from_item(item) for item in page.items if not item.get("deleted")]
        if page.after is None:
            return banks
        after = page.after


def target_of(ports: Ports, mode: Mode, embedding_model: str | None, dimensions: int | None) -> Target:
    """The embedding of a mode, or the chosen one of mode custom. Raises `Invalid`, which names the field."""
    if mode != "custom":
        for field, value in (("embedding_model", embedding_model), ("dimensions", dimensions)):
            if value is not None:
                raise Invalid(("body", field), f"{field} can be chosen in mode custom only, not in {mode}")
    model = embedding_model or ports.embedders.default
    try:
        sizes = ports.embedders.sizes(model)
    except UnknownModel as unknown:
        raise Invalid(("body", "embedding_model"), str(unknown)) from unknown
    if dimensions is None:
        mode_size = MODE_DIMENSIONS.get(mode, sizes[-1])
        dimensions = mode_size if mode_size in sizes else sizes[-1]
    elif dimensions not in sizes:
        raise Invalid(("body", "dimensions"), f"{model} gives {' or '.join(map(str, sizes))} dimensions")
    return Target(model, dimensions)


def _embedding(ports: Ports, wanted: CreateBank) -> tuple[str, int, int, int]:
    """Model, dimensions, chunk size and overlap."""
    target = target_of(ports, wanted.mode, wanted.embedding_model, wanted.dimensions)
    if wanted.mode != "custom":
        for field in ("chunk_size", "chunk_overlap"):
            if getattr(wanted, field) is not None:
                raise Invalid(("body", field), f"{field} can be chosen in mode custom only, not in {wanted.mode}")
    return target.model, target.dimensions, *_chunks(wanted)


def _chunks(wanted: CreateBank) -> tuple[int, int]:
    size, overlap = MODE_CHUNKS[wanted.mode]
    least, most = limits.CHUNK_SIZE
    if wanted.chunk_size is not None:
        if not least <= wanted.chunk_size <= most:
            raise Invalid(("body", "chunk_size"), f"a chunk has {least:,} to {most:,} characters")
        size, overlap = wanted.chunk_size, min(overlap, wanted.chunk_size // 8)
    if wanted.chunk_overlap is not None:
        if wanted.chunk_overlap > size // 2:
            raise Invalid(("body", "chunk_overlap"), f"chunks of {size:,} characters overlap by at most half, {size // 2:,}")
        overlap = wanted.chunk_overlap
    return size, overlap


def _retention(wanted: CreateBank, version: str) -> int | None:
    if "retention_days" in wanted.model_fields_set or wanted.brought_in:
        given = wanted.retention_days or None
        return migrated_retention(given, wanted.max_age_days or None) if wanted.brought_in else given
    if version >= versions.AGE_RETIRED:
        return CONVERSATION_RETENTION if wanted.type == "conversation" else None
    return max(LEGACY_RETENTION, wanted.max_age_days or 0)


def _refuse_age(max_age_days: int | None, version: str, brought_in: bool) -> None:
    if max_age_days and version >= versions.AGE_RETIRED and not brought_in:
        raise BadRequest(
            f"max_age_days was retired in {versions.AGE_RETIRED}; set retention_days instead (max_age_days 0 clears an old value).",
            code="max_age_days_retired",
        )


def _uuid(ports: Ports) -> str:
    return str(uuid.UUID(int=ports.chance.getrandbits(128), version=4))


def _possible(bank_id: str) -> bool:
    """Whether a text can be the id of a bank at all; anything else is not worth a read, and may be no valid key."""
    return 0 < len(bank_id) <= 64 and bank_id.isascii()
