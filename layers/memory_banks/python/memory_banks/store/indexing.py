"""How an account's documents are embedded, and their vectors in the index.

Each text of a document is a document of the index, named by the version of the write that made it: a new version has new
names, so nothing in the index is ever overwritten, and a hit counts only while the table has a row of that very version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import chunking, ids
from ..bank import Target
from ..errors import Invalid
from ..ports import ConditionFailed, Embedder, Filter, Hit, IndexDocument, Is, Key, Member, Ports, Put
from ..remembering import Remembered
from . import filters, namespaces, paths
from .namespaces import Namespace

GENERATION = 1
PIECE = 8_000
"""Characters of a text that one vector stands for; a longer text has several."""
PIECES = 500
"""Vectors of one document."""
SIZE = 512
"""The wanted dimensions, where the model gives a choice."""


@dataclass(frozen=True)
class Indexing:
    """The index that an account's documents are in, what embeds them, and what of them by default."""

    index: str
    dimensions: int
    embedder: Embedder
    fields: tuple[str, ...] = (paths.WHOLE,)


@dataclass(frozen=True, slots=True)
class Vectors:
    """Where a version's vectors are: so many, named after the entry, in an index."""

    index: str
    entry: str
    count: int

    def to_attribute(self) -> list[Any]:
        """As it is kept in an item."""
        return [self.index, self.entry, self.count]

    @property
    def ids(self) -> list[str]:
        """Their ids."""
        return [f"{self.entry}#{number}" for number in range(self.count)]


def of_service(ports: Ports, account: str) -> Indexing:
    """The account's own: the service's embedding model, as it was when the account first used the store."""
    target = _targets.get(ports.table, account, ports.clock.now())
    if target is None:
        target = _targets.put(ports.table, account, _target(ports, account), ports.clock.now())
    return Indexing(target.value.index, target.value.dimensions, ports.embedders(target.value.model, target.value.dimensions))


_targets: Remembered[Target] = Remembered(3_600_000)
"""An account's choice never changes."""


def _target(ports: Ports, account: str) -> Target:
    key = Key(f"T#{account}", "store")
    item = ports.table.read([key])[0]
    if item is None:
        model = ports.embedders.default
        sizes = ports.embedders.sizes(model)
        fresh = {"embedding_model": model, "dimensions": SIZE if SIZE in sizes else sizes[-1]}
        try:
            item = ports.table.write(Put({"pk": key.pk, "sk": key.sk} | fresh, (Is("pk", "missing"),)))
        except ConditionFailed:
            item = ports.table.read([key])[0]
        assert item is not None
    return Target(item["embedding_model"], item["dimensions"])


def bank_of(account: str) -> str:
    """What stands for an account's store where the index names a bank."""
    return f"store-{account}"


def entry_of(namespace: Namespace, version: str) -> str:
    """What names a version in the index; its first 26 characters are the version."""
    return version + _hashed(namespaces.encoded(namespace))


def version_of(hit: Hit) -> str:
    """The version that a hit is of."""
    return hit.entry[: ids.ULID_LENGTH]


def texts_of(value: Mapping[str, Any], fields: Sequence[str], loc: tuple[str | int, ...]) -> list[str]:
    """The texts of a value to embed, long ones in pieces. Raises `Invalid` where there are too many, or too many paths."""
    if len(fields) > PIECES:
        raise Invalid(loc, f"at most {PIECES} paths are possible, these are {len(fields)}", "too_many")
    found = list(
        dict.fromkeys(piece for path in dict.fromkeys(fields) for text in paths.texts_at(value, path) for piece in _pieces(text))
    )
    if len(found) > PIECES:
        raise Invalid(loc, f"these paths give {len(found)} texts to embed; at most {PIECES} are possible", "too_many")
    return found


def _pieces(text: str) -> Iterator[str]:
    for start, end in chunking.spans(text, PIECE, 0):
        piece = text[start:end]
        if piece.strip():
            yield piece


def documents_of(
    account: str, namespace: Namespace, key: str, version: str, created_at: int, value: Mapping[str, Any], vectors: Sequence[Any]
) -> list[IndexDocument]:
    """What the index is given of a version. Its tags are every prefix of the namespace, and the document itself."""
    entry = entry_of(namespace, version)
    tags = tuple(prefix_tag(prefix) for prefix in namespaces.prefixes(namespace)[1:])
    known = filters.indexable(value)
    return [
        IndexDocument(
            id=f"{entry}#{number}",
            bank=bank_of(account),
            generation=GENERATION,
            partition=entry[ids.ULID_LENGTH :],
            entry=entry,
            form="chunk",
            kind="entry",
            version=1,
            members=(Member(entry, 1),),
            previous=None,
            start=number,
            end=number,
            speaker=None,
            tags=(*tags, document_tag(namespaces.place(namespace, key))),
            metadata=known,
            occurred_at=ids.milliseconds_of(version),
            created_at=created_at,
            text="",
            vector=vector,
        )
        for number, vector in enumerate(vectors)
    ]


def prefix_tag(prefix: Namespace) -> str:
    """The tag of everything at and below a prefix."""
    return "p" + _hashed(namespaces.encoded(prefix))


def document_tag(place: str) -> str:
    """The tag of one document's vectors."""
    return "d" + _hashed(place)


def filter_of(account: str, prefix: Namespace, filter: Mapping[str, Any] | None, places: Sequence[str] = ()) -> Filter:
    """What the index may find: under the prefix, and of these documents if some are named."""
    return Filter(
        bank=bank_of(account),
        generation=GENERATION,
        tags_all=(prefix_tag(prefix),) if prefix else (),
        tags_any=tuple(map(document_tag, places)),
        metadata=filters.implied(filter) if filter else (),
    )


def _hashed(text: str) -> str:
    return ids.encode(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"))
