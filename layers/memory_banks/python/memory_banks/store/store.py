"""The store of an account: documents at (namespace, item key), found by name, by prefix and filter, and by meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeVar

from ..ports import Action, Ports
from . import filters, indexing, listing, namespaces, reading, searching, writing
from .document import Document
from .indexing import Indexing
from .namespaces import Condition, Namespace
from .operations import Get, Listing, Operation, Search
from .searching import Found
from .writing import Write

Result = Document | list[Found] | list[Namespace] | None

Loc = tuple[str | int, ...]

Checked = TypeVar("Checked", Get, Search, Listing, Write)


class Store:
    """`Store(ports, "acme")`. Embeds with the service's model, or with `embedding`; None embeds nothing."""

    def __init__(self, ports: Ports, account: str, embedding: Indexing | Literal["service"] | None = "service") -> None:
        self._ports = ports
        self._account = account
        self._embedding = embedding

    @cached_property
    def _indexing(self) -> Indexing | None:
        """Built when something is to be embedded: loading a model takes time that a read by name need not."""
        return indexing.of_service(self._ports, self._account) if self._embedding == "service" else self._embedding

    def get(self, namespace: Sequence[str], key: str, *, refresh: bool = True) -> Document | None:
        """The document, by a strong read; None where there is none, or it expired."""
        return self._get([self._checked(Get(tuple(namespace), key, refresh), ("query",))])[0]

    def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Mapping[str, Any],
        *,
        index: Literal[False] | Sequence[str] | None = None,
        ttl: float | None = None,
        if_version: str | None = None,
        if_absent: bool = False,
        along: Sequence[Action] = (),
        deadline: int,
    ) -> Document:
        """Write a document; when it returns, every read and search sees it. An update keeps `created_at`.

        `index`: None embeds the default paths, False nothing, a list these paths. `ttl`: minutes from the last access.
        `if_version` and `if_absent` compare and set: `PreconditionFailed` when another version, or one at all, is there.
        `along`: actions on other items, in the same transaction; `Superseded` when a condition of theirs does not hold.
        """
        wanted = Write(tuple(namespace), key, value, index, ttl, if_version, if_absent)
        namespaces.writable(self._checked(wanted, ("body",)).namespace)
        [document] = self._write([wanted], deadline, along)
        assert document is not None
        return document

    def delete(self, namespace: Sequence[str], key: str, *, if_version: str | None = None, deadline: int) -> None:
        """Remove a document; one that is not there is no error, unless a version of it was to be removed."""
        wanted = Write(tuple(namespace), key, None, if_version=if_version)
        self._checked(wanted, ("body",))
        if wanted.namespace:
            self._write([wanted], deadline)

    def search(
        self,
        prefix: Sequence[str] = (),
        *,
        filter: Mapping[str, Any] | None = None,
        query: str | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> list[Found]:
        """A page of the documents at and below a prefix: newest write first, or with a query nearest first."""
        return self._search(self._checked(Search(tuple(prefix), filter, query, limit, offset, refresh), ("body",)))

    def list_namespaces(
        self,
        *,
        prefix: Sequence[str] = (),
        suffix: Sequence[str] = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """A page of the namespaces that hold a document, sorted; `*` in prefix or suffix is exactly one label."""
        conditions = [Condition("prefix", tuple(prefix))] if prefix else []
        conditions += [Condition("suffix", tuple(suffix))] if suffix else []
        return self._list(self._checked(Listing(tuple(conditions), max_depth, limit, offset), ("body",)))

    def batch(
        self, operations: Sequence[Operation], *, deadline: int, before_writing: Callable[[list[Result]], object] | None = None
    ) -> list[Result]:
        """Several operations, answered in their order. Reads see the state before; writes come last; the last write wins.

        Nothing is written when one of them is wrong, or when `before_writing`, shown what was read, raises.
        """
        single = len(operations) == 1
        for position, one in enumerate(operations):
            check(one, ("body",) if single else ("body", "operations", position))
        results: list[Result] = [None] * len(operations)
        gets = [(position, one) for position, one in enumerate(operations) if isinstance(one, Get)]
        for (position, _), document in zip(gets, self._get([one for _, one in gets]), strict=True):
            results[position] = document
        for position, one in enumerate(operations):
            if isinstance(one, Search):
                results[position] = self._search(one)
            elif isinstance(one, Listing):
                results[position] = self._list(one)
        writes = [one for one in operations if isinstance(one, Write)]
        if writes:
            if before_writing:
                before_writing(results)
            self._write(writes, deadline)
        return results

    # ----------------------------------------------------------------------------------------------------------------
    # Underneath

    @staticmethod
    def _checked(operation: Checked, loc: Loc) -> Checked:
        """The operation, if its names and its filter can be. Raises `Invalid` and `BadRequest`."""
        check(operation, loc)
        return operation

    def _get(self, wanted: Sequence[Get]) -> list[Document | None]:
        there = [one for one in wanted if one.namespace]
        names = [(one.namespace, one.key) for one in there]
        found = iter(reading.get(self._ports, self._account, names, refresh=[one.refresh for one in there]))
        return [next(found) if one.namespace else None for one in wanted]

    def _search(self, wanted: Search) -> list[Found]:
        return searching.search(
            self._ports,
            self._account,
            self._indexing if wanted.query else None,
            wanted.prefix,
            filter=wanted.filter,
            query=wanted.query,
            limit=wanted.limit,
            offset=wanted.offset,
            refresh=wanted.refresh,
        )

    def _list(self, wanted: Listing) -> list[Namespace]:
        return listing.list_namespaces(
            self._ports,
            self._account,
            conditions=wanted.conditions,
            max_depth=wanted.max_depth,
            limit=wanted.limit,
            offset=wanted.offset,
        )

    def _write(self, wanted: Sequence[Write], deadline: int, along: Sequence[Action] = ()) -> list[Document | None]:
        embeds = any(one.value is not None and one.index is not False for one in wanted)
        return writing.write(self._ports, self._account, self._indexing if embeds else None, wanted, along=along, deadline=deadline)


def check(operation: Operation, loc: Loc) -> None:
    """Raises `Invalid` for names that can't be, and `BadRequest` for a filter that is none and for a write to nowhere."""
    match operation:
        case Get():
            namespaces.checked(operation.namespace, (*loc, "namespace"))
            namespaces.checked_key(operation.key, (*loc, "key"))
        case Write():
            namespaces.checked(operation.namespace, (*loc, "namespace"))
            namespaces.checked_key(operation.key, (*loc, "key"))
            if operation.value is not None and not operation.namespace:
                namespaces.writable(operation.namespace)
        case Search():
            namespaces.checked(operation.prefix, (*loc, "namespace_prefix"))
            if operation.filter:
                filters.check(operation.filter)
        case Listing():
            for condition in operation.conditions:
                namespaces.checked(condition.labels, (*loc, condition.kind))
