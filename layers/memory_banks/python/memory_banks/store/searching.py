"""Searching documents under a prefix: by filter, newest write first, or by meaning, best first.

The table decides what is there: a hit of the index counts while the table has the row of its version. So filter and
expiry apply before limit and offset, and pages make up the whole list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..errors import Invalid
from ..ports import Hit, Ports
from . import filters, indexing, reading, rows
from .document import Document
from .indexing import Indexing
from .namespaces import Namespace, begins_with

FEWEST_HITS = 64
"""Hits asked of the index at first; more by fours, so that neighbouring pages come from the same hits."""
MOST_HITS = 10_000
"""Hits that one search of the index can give."""
MOST_VECTORS = indexing.PIECES
"""Of one document."""


class Found(NamedTuple):
    """A document and how near it is: the cosine of its nearest text; None without a query, or without vectors."""

    document: Document
    score: float | None


def search(
    ports: Ports,
    account: str,
    indexed: Indexing | None,
    prefix: Namespace,
    *,
    filter: Mapping[str, Any] | None = None,
    query: str | None = None,
    limit: int = 10,
    offset: int = 0,
    refresh: bool = True,
) -> list[Found]:
    """A page of the living documents at and below a prefix that pass the filter.

    Raises `BadRequest` for a filter that is none, `Invalid` for a negative limit or offset.
    """
    for name, number in (("limit", limit), ("offset", offset)):
        if number < 0:
            raise Invalid(("body", name), "must not be negative")
    if filter:
        filters.check(filter)
    wanted = offset + limit
    if limit == 0:
        return []
    # A conversation may be the query: what was said last is what matters, and fits into the model.
    vector = indexed.embedder.embed_query(query[-indexing.PIECE :]) if indexed is not None and query else None
    if indexed is not None and vector is not None and any(vector):
        found = list(islice(_by_meaning(ports, account, indexed, prefix, filter, vector, wanted), wanted))
    else:
        found = [Found(one, None) for one in islice(_passing(ports, account, prefix, filter, wanted), wanted)]
    page = found[offset:]
    if refresh:
        reading.accessed(ports, account, [one.document for one in page])
    return page


def _passing(ports: Ports, account: str, prefix: Namespace, filter: Mapping[str, Any] | None, wanted: int) -> Iterator[Document]:
    """What passes the filter under a prefix, newest first."""
    for one in rows.walk(ports, account, prefix, page=rows.PAGE if filter else wanted):
        if not filter or filters.matches(filter, one.value):
            yield one


def _by_meaning(
    ports: Ports,
    account: str,
    indexed: Indexing,
    prefix: Namespace,
    filter: Mapping[str, Any] | None,
    vector: Sequence[float],
    wanted: int,
) -> Iterator[Found]:
    """Best first, each document once, by its nearest text; those without vectors come last, newest first."""
    judged: set[str] = set()
    shown: set[str] = set()
    size = FEWEST_HITS
    while size < 2 * wanted:
        size *= 4
    while True:
        size = min(size, MOST_HITS)
        hits = _nearest(ports, indexed, indexing.filter_of(account, prefix, filter), vector, size)
        for one in _judged(ports, account, prefix, filter, hits, judged, max(wanted - len(shown), 1)):
            shown.add(one.document.place)
            yield one
        if len(hits) < size:
            break
        if size == MOST_HITS:
            yield from _exactly(ports, account, indexed, prefix, filter, vector, shown, wanted)
            return
        size *= 4
    for document in _passing(ports, account, prefix, filter, wanted):
        if document.place not in shown:
            yield Found(document, None)


def _judged(
    ports: Ports,
    account: str,
    prefix: Namespace,
    filter: Mapping[str, Any] | None,
    hits: Sequence[Hit],
    judged: set[str],
    wanted: int,
) -> Iterator[Found]:
    """The documents of hits that live and pass, best first. Reads as many rows as are wanted, and, if too few pass, more."""
    best: dict[str, Hit] = {}
    for hit in hits:
        version = indexing.version_of(hit)
        if version not in judged:
            best.setdefault(version, hit)
    versions = list(best)
    step = wanted
    while versions:
        some, versions = versions[:step], versions[step:]
        step = min(2 * step, rows.PAGE)
        judged |= set(some)
        items = ports.table.read([rows.row_key(account, (), version) for version in some])
        for version, document in zip(some, rows.resolved(ports, account, items), strict=True):
            if document is None or document.version != version or not begins_with(document.namespace, prefix):
                continue
            if not filter or filters.matches(filter, document.value):
                yield Found(document, _cosine(best[version]))


def _exactly(
    ports: Ports,
    account: str,
    indexed: Indexing,
    prefix: Namespace,
    filter: Mapping[str, Any] | None,
    vector: Sequence[float],
    shown: set[str],
    wanted: int,
) -> Iterator[Found]:
    """What is left when the index has more hits than it can give and too few of them pass.

    The table tells what passes; of those the index scores every vector, some documents at a time.
    """
    scored: list[Found] = []
    rest: list[Document] = []
    together = MOST_HITS // MOST_VECTORS
    passing = _passing(ports, account, prefix, filter, wanted)
    while some := {one.version: one for one in islice(passing, together)}:
        places = [one.place for one in some.values()]
        best: dict[str, Hit] = {}
        for hit in _nearest(ports, indexed, indexing.filter_of(account, prefix, None, places), vector, MOST_HITS):
            best.setdefault(indexing.version_of(hit), hit)
        for version, document in some.items():
            if document.place in shown:
                continue
            if version in best:
                scored.append(Found(document, _cosine(best[version])))
            else:
                rest.append(document)
    yield from sorted(scored, key=lambda one: -(one.score or 0))
    yield from (Found(document, None) for document in rest)


def _nearest(ports: Ports, indexed: Indexing, filter: Any, vector: Sequence[float], size: int) -> list[Hit]:
    [ranking] = ports.index.search(indexed.index, filter, vector=vector, text=None, forms=("chunk",), size=size)
    return ranking.hits


def _cosine(hit: Hit) -> float:
    return 2 * hit.score - 1
