"""What can be asked of a store: reads, searches, listings and writes, each as data, so that several fit into one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .namespaces import Condition, Namespace
from .writing import Write


@dataclass(frozen=True)
class Get:
    """One document by name. `refresh`: this is an access that puts off its expiry."""

    namespace: Namespace
    key: str
    refresh: bool = True


@dataclass(frozen=True)
class Search:
    """A page of the documents under a prefix: those that pass the filter, by meaning or newest first."""

    prefix: Namespace
    filter: Mapping[str, Any] | None = None
    query: str | None = None
    limit: int = 10
    offset: int = 0
    refresh: bool = True


@dataclass(frozen=True)
class Listing:
    """A page of namespaces."""

    conditions: tuple[Condition, ...] = field(default=())
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Operation = Get | Search | Listing | Write
