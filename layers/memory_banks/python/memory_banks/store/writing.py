"""Writing documents: each one transaction on the document, its rows and the record of its leavings.

The order of a write: embed; open the record; blob and vectors; the transaction; remove what the version before had; remove
the record. Dying before the transaction leaves the old state and a record; dying after it the new state and a record; the
sweep works off records. A document can be found by query the moment it exists, and no query finds its older text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

from .. import ids
from ..errors import DatabaseUnavailable, PreconditionFailed
from ..marking import due
from ..ports import (
    Action,
    BlobsUnavailable,
    ConditionFailed,
    Contended,
    Delete,
    IndexDocument,
    IndexUnavailable,
    Is,
    Item,
    Key,
    ModelError,
    Ports,
    Put,
    Table,
    TableUnavailable,
)
from ..retrying import FIRST_PAUSE, LONGEST_PAUSE, Superseded
from . import document, indexing, leavings, namespaces, rows, values
from .document import Document
from .indexing import Indexing, Vectors
from .leavings import Held
from .namespaces import Namespace

TOGETHER = 25
"""Documents whose blobs, vectors and records are written in one go."""
ACTIONS = 100
TRANSACTION_BYTES = 3_000_000
"""Of one transaction; DynamoDB takes 4 MB."""


@dataclass(frozen=True)
class Write:
    """One document to write, or, with the value None, to delete.

    `index`: None embeds the store's default paths, False nothing, a list these paths. `ttl`: minutes from the last access;
    None: it does not expire. `if_version`: only over this version; `if_absent`: only where there is none; `if_expired`: only
    over one that has expired (anything else is left alone).
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | Sequence[str] | None = None
    ttl: float | None = None
    if_version: str | None = None
    if_absent: bool = False
    if_expired: bool = False


@dataclass
class _Planned:
    """A write that is still to be made."""

    write: Write
    place: str
    text: str | None
    """The value's JSON; None deletes."""
    ttl: int | None
    texts: list[str]
    vectors: list[Sequence[float]] = field(default_factory=list)


def write(
    ports: Ports,
    account: str,
    indexed: Indexing | None,
    wanted: Sequence[Write],
    *,
    along: Sequence[Action] = (),
    deadline: int,
) -> list[Document | None]:
    """Make these writes, answered in their order: the document as it is now, None of a deleted one.

    Everything is checked before anything is written. Of two writes to one document the last is made. Each is atomic; several
    are not: a later failure leaves the earlier ones. `along`: actions on other items, done with the one document that is written,
    both or none; `Superseded` when a condition of theirs does not hold. Raises `Invalid`, `TooLarge`, `PreconditionFailed`,
    `DatabaseUnavailable` (with `written`), `IndexUnavailable`, `BlobsUnavailable`, `ModelError`.
    """
    if along and len(wanted) != 1:
        raise ValueError("actions go along with one document")
    last = {namespaces.place(one.namespace, one.key): (position, one) for position, one in enumerate(wanted)}
    planned = [_plan(one, place, indexed, position, len(wanted)) for place, (position, one) in last.items()]
    _embed(indexed, planned)
    done: dict[str, Document | None] = {}
    waiting = planned
    pause = FIRST_PAUSE
    while waiting:
        try:
            waiting = _round(ports, account, indexed, waiting, done, along)
        except Contended:
            waiting = [one for one in waiting if one.place not in done]
        except TableUnavailable as error:
            raise DatabaseUnavailable("the table can't be reached", written=len(done)) from error
        if waiting:
            wait = ports.chance.random() * pause
            pause = min(pause * 2, LONGEST_PAUSE)
            if ports.clock.now() + wait * 1000 >= deadline:
                raise DatabaseUnavailable("the document is written to by others all the time, try again", written=len(done))
            ports.clock.sleep(wait)
    return [done[namespaces.place(one.namespace, one.key)] for one in wanted]


def _plan(one: Write, place: str, indexed: Indexing | None, position: int, count: int) -> _Planned:
    loc: tuple[str | int, ...] = ("body",) if count == 1 else ("body", "operations", position)
    if one.value is None:
        return _Planned(one, place, None, None, [])
    text = document.checked_value(one.value, (*loc, "value"))
    ttl = document.checked_ttl(one.ttl, (*loc, "ttl"))
    texts: list[str] = []
    if indexed is not None and one.index is not False:
        fields = indexed.fields if one.index is None else one.index
        texts = indexing.texts_of(json.loads(text), fields, (*loc, "index"))
    return _Planned(one, place, text, ttl, texts)


def _embed(indexed: Indexing | None, planned: Sequence[_Planned]) -> None:
    """The vectors of all texts, each text once. What has no direction (all zero) is left out: nothing is near it."""
    texts = list(dict.fromkeys(text for one in planned for text in one.texts))
    if indexed is None or not texts:
        return
    made = dict(zip(texts, indexed.embedder.embed(texts), strict=True))
    for one in planned:
        one.vectors = [made[text] for text in one.texts if any(made[text])]


# --------------------------------------------------------------------------------------------------------------------
# One round


@dataclass
class _Version:
    """A write on its way: the version it makes, and what is there before."""

    planned: _Planned
    version: str
    old: Item | None
    created_at: int
    fresh: Held
    gone: Held


def _round(
    ports: Ports,
    account: str,
    indexed: Indexing | None,
    waiting: Sequence[_Planned],
    done: dict[str, Document | None],
    along: Sequence[Action],
) -> list[_Planned]:
    """Try each once. What another write got in the way of is given back, for another round."""
    again: list[_Planned] = []
    for start in range(0, len(waiting), TOGETHER):
        some = waiting[start : start + TOGETHER]
        now = ports.clock.now()
        items = ports.table.read([document.key_of(account, one.place) for one in some])
        versions = [_version(ports, account, indexed, one, item, now) for one, item in zip(some, items, strict=True)]
        done |= {one.place: None for one, version in zip(some, versions, strict=True) if version is None}
        made = [one for one in versions if one is not None]
        if along and not made:
            _alone(ports, along)
        _write_outside(ports, account, indexed, made)
        committed: list[_Version] = []
        try:
            for group in _groups(account, made, now):
                for together in _committed(ports, group, along):
                    committed += together
                    done |= {version.planned.place: _document(version, now) for version in together}
        except Superseded:
            _clear(ports, account, (), made)
            raise
        kept = {one.version for one in committed}
        lost = [one for one in made if one.version not in kept]
        _clear(ports, account, committed, lost)
        again += [one.planned for one in lost]
    return again


def _groups(account: str, made: Sequence[_Version], now: int) -> Iterator[list[tuple[_Version, list[Action]]]]:
    """Versions with their transactions, in groups that one transaction can hold: fewer calls than one each."""
    group: list[tuple[_Version, list[Action]]] = []
    actions = size = 0
    for version in made:
        own = _transaction(account, version, now)
        bytes_ = len(version.planned.text or "") * 4
        if group and (actions + len(own) > ACTIONS or size + bytes_ > TRANSACTION_BYTES):
            yield group
            group, actions, size = [], 0, 0
        group.append((version, own))
        actions += len(own)
        size += bytes_
    if group:
        yield group


def _committed(ports: Ports, group: Sequence[tuple[_Version, list[Action]]], along: Sequence[Action]) -> Iterator[list[_Version]]:
    """Commit a group at once, or, where something is in the way of one of them, one by one; what was committed, as it is."""
    actions = [action for _, own in group for action in own]
    try:
        ports.table.transact([*actions, *along])
    except (ConditionFailed, Contended) as error:
        if isinstance(error, ConditionFailed) and along and max(error.failed) >= len(actions):
            raise Superseded from error
        if len(group) > 1:
            for one in group:
                yield from _committed(ports, [one], along)
    else:
        yield [version for version, _ in group]


def _alone(ports: Ports, along: Sequence[Action]) -> None:
    """What was to go along with a write that there is nothing of."""
    try:
        ports.table.transact(along)
    except ConditionFailed as error:
        raise Superseded from error


def _version(ports: Ports, account: str, indexed: Indexing | None, one: _Planned, old: Item | None, now: int) -> _Version | None:
    """The version a write makes; None where nothing is to be done. Raises `PreconditionFailed`."""
    living = old if document.alive(old, now) else None
    if one.write.if_absent and living is not None:
        raise PreconditionFailed("the document is there already")
    if one.write.if_version is not None and (living is None or living["version"] != one.write.if_version):
        raise PreconditionFailed("the document is not there" if living is None else "the document has another version")
    if (one.text is None and old is None) or (one.write.if_expired and living is not None):
        return None
    version = _next_version(ports, old["version"] if old else ids.LOWEST, now)
    vectors = None
    if indexed is not None and one.vectors:
        vectors = Vectors(indexed.index, indexing.entry_of(one.write.namespace, version), len(one.vectors))
    blob = values.blob_name(account, version) if one.text is not None and values.is_long(one.text) else None
    created_at = living["created_at"] if living is not None else ids.milliseconds_of(version)
    gone = leavings.held_by(old) if old is not None else Held(None, None)
    return _Version(one, version, old, created_at, Held(vectors, blob), gone)


_last_versions: WeakKeyDictionary[Table, str] = WeakKeyDictionary()
"""The last version this process made in a table: two writes in one millisecond keep their order."""


def _next_version(ports: Ports, above: str, now: int) -> str:
    last = _last_versions.get(ports.table, ids.LOWEST)
    if ids.milliseconds_of(last) > now + 1_000:  # the clock was set back
        last = ids.LOWEST
    # A document's own versions are a millisecond apart at least, so that an update shows; others' need only sort.
    if last >= ids.at(now) and last > above and ids.milliseconds_of(last) > ids.milliseconds_of(above):
        # By a random step: another process may be counting up from the same version.
        version = ids.encode(ids.decode(last) + 1 + ports.chance.getrandbits(64))
    else:
        [version] = ids.ulids(now, max(last, above), 1, ports.chance)
    _last_versions[ports.table] = version
    return version


def _write_outside(ports: Ports, account: str, indexed: Indexing | None, made: Sequence[_Version]) -> None:
    """Records, then blobs and vectors. Dying here leaves records that the sweep works off."""
    with_fresh = [one for one in made if one.fresh]
    if not with_fresh:
        return
    now = ports.clock.now()
    ports.table.transact([leavings.open_record(account, one.version, one.fresh, now) for one in with_fresh])
    documents: list[IndexDocument] = []
    for one in with_fresh:
        text = one.planned.text
        assert text is not None
        if one.fresh.blob:
            ports.blobs.put(one.fresh.blob, text.encode(), "application/json")
        if one.fresh.vectors:
            write = one.planned.write
            documents += indexing.documents_of(
                account, write.namespace, write.key, one.version, one.created_at, json.loads(text), one.planned.vectors
            )
    if documents and indexed is not None:
        for outcome in ports.index.write(indexed.index, documents, indexed.dimensions):
            if outcome.status != "written":
                raise ModelError(f"the index does not take a vector: {outcome.reason or outcome.status}")
        ports.index.refresh(indexed.index)


def _transaction(account: str, made: _Version, now: int) -> list[Action]:
    """Document, rows and record: the old version goes and the new one comes, if the old one is still the one that was read."""
    namespace, old = made.planned.write.namespace, made.old
    key = document.key_of(account, made.planned.place)
    unchanged = (Is("version", "=", old["version"]),) if old is not None else (Is("pk", "missing"),)
    actions: list[Action] = []
    if made.planned.text is None:
        actions.append(Delete(key, unchanged))
    else:
        item = _item(key, made, now)
        actions += [Put(item, unchanged), *rows.puts(account, namespace, item)]
    if old is not None:
        actions += rows.deletes(account, namespace, old["version"])
    return [*actions, *leavings.close_record(account, made.version, made.fresh, made.gone, now)]


def _item(key: Key, made: _Version, now: int) -> Item:
    planned = made.planned
    assert planned.text is not None
    item: Item = {"pk": key.pk, "sk": key.sk, "version": made.version, "created_at": made.created_at}
    item |= {"blob": made.fresh.blob} if made.fresh.blob else {"value": planned.text}
    if made.fresh.vectors:
        item["vectors"] = made.fresh.vectors.to_attribute()
    if planned.ttl is not None:
        expires_at = now + planned.ttl
        item |= {"ttl": planned.ttl, "expires_at": expires_at} | due(key.pk + key.sk, expires_at, "retention")
    return item


def _document(made: _Version, now: int) -> Document | None:
    planned = made.planned
    if planned.text is None:
        return None
    return Document(
        namespace=planned.write.namespace,
        key=planned.write.key,
        value=json.loads(planned.text),
        version=made.version,
        created_at=made.created_at,
        ttl=planned.ttl / document.MINUTE if planned.ttl is not None else None,
        expires_at=now + planned.ttl if planned.ttl is not None else None,
    )


def _clear(ports: Ports, account: str, committed: Sequence[_Version], lost: Sequence[_Version]) -> None:
    """Remove what old versions had, and what came of those that lost. What fails here the sweep does."""
    useless = [one.gone for one in committed if one.gone] + [one.fresh for one in lost if one.fresh]
    records = [one.version for one in committed if one.gone] + [one.version for one in lost if one.fresh]
    if not useless:
        return
    try:
        leavings.remove(ports, account, useless)
        ports.table.transact([Delete(leavings.record_key(account, version)) for version in records])
    except (IndexUnavailable, BlobsUnavailable, TableUnavailable, Contended):
        ports.metrics.count("StoreLeavings", len(records))
