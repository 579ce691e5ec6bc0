"""Listing namespaces: those that hold a living document, sorted.

Documents sort by namespace, so a listing jumps from one namespace to the first document of the next. It reads a few items
ahead, which saves round trips where namespaces are small, and wastes at most `AHEAD` of them where they are large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import Invalid
from ..ports import Ports
from . import document, namespaces
from .namespaces import Condition, Namespace

AHEAD = 19
"""Items beyond one a namespace that a listing may read in vain."""


def list_namespaces(
    ports: Ports,
    account: str,
    *,
    conditions: Sequence[Condition] = (),
    max_depth: int | None = None,
    limit: int = 100,
    offset: int = 0,
) -> list[Namespace]:
    """A page of the distinct namespaces that meet all conditions, cut to `max_depth` labels. Raises `Invalid`."""
    for name, number, least in (("limit", limit, 0), ("offset", offset, 0), ("max_depth", max_depth, 1)):
        if number is not None and number < least:
            raise Invalid(("body", name), f"must be at least {least}")
    found: list[Namespace] = []
    if limit == 0:
        return found
    for namespace in _matching(ports, account, conditions, max_depth, offset + limit):
        found.append(namespace)
        if len(found) == offset + limit:
            break
    return found[offset:]


def _matching(
    ports: Ports, account: str, conditions: Sequence[Condition], max_depth: int | None, wanted: int
) -> Iterator[Namespace]:
    fixed = max((one.fixed for one in conditions), key=len, default=())
    if not all(namespaces.begins_with(fixed, one.fixed) for one in conditions):
        return
    first, last = namespaces.under(fixed)
    pk = document.documents_pk(account)
    now = ports.clock.now()
    wasted = given = 0
    after: str | None = None
    while True:
        size = min(1 + AHEAD - wasted, max(wanted - given, 1))
        page = ports.table.query(
            pk, first=first if after is None else None, after=after, last=last, limit=size, attributes=["expires_at"]
        )
        passed = ""
        for item in page.items:
            place: str = item["sk"]
            if place < passed:
                wasted += 1
                continue
            if not document.alive(item, now):
                continue
            namespace, _ = namespaces.split(place)
            passed = namespaces.past_documents(namespace)
            unmet = [one for one in conditions if not one.met(namespace)]
            if unmet:
                passed = max(passed, *(one.beyond(namespace) for one in unmet))
            else:
                if max_depth is not None and len(namespace) >= max_depth:
                    namespace = namespace[:max_depth]
                    passed = namespaces.past_everything(namespace)
                given += 1
                yield namespace
        if page.after is None:
            return
        if passed > page.after:
            if last is not None and passed >= last:
                return
            first, after = passed, None
        else:
            first, after = None, page.after
