"""What the store's routes take, as LangGraph's client sends it; and several operations in one request, which is ours."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .document import LONGEST_TTL
from .namespaces import Condition
from .operations import Get, Listing, Operation, Search
from .writing import Write

PAGE = 1_000
"""The longest page."""
OFFSET = 1_000_000
QUERY = 200_000
"""Characters: a conversation may be the query."""
OPERATIONS = 100
"""In one request."""

Labels = Annotated[list[str], Field(description="Labels from the root down: not empty, without period and NUL")]
Limit = Annotated[int, Field(ge=0, le=PAGE)]
Offset = Annotated[int, Field(ge=0, le=OFFSET)]
Minutes = Annotated[float, Field(strict=True, gt=0, le=LONGEST_TTL, description="Minutes from the last access")]
Refresh = Annotated[bool | None, Field(description="Whether reading puts off the expiry; it does if left out")]


class _Compatible(BaseModel):
    """A body of LangGraph's; fields it does not know are ignored, as there."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ItemName(_Compatible):
    """Which item."""

    namespace: Labels
    key: str


class PutItem(ItemName):
    """An item to write."""

    value: dict[str, Any]
    index: Literal[False] | list[str] | None = Field(
        None, description="false embeds nothing, a list these paths, null the whole value"
    )
    ttl: Minutes | None = None


class GetItem(_Compatible):
    """Which item to read."""

    key: str
    namespace: str = Field("", description="The labels joined with periods")
    refresh_ttl: Refresh = None


class SearchItems(_Compatible):
    """What to look for."""

    namespace_prefix: Labels = Field(default_factory=list)
    filter: dict[str, Any] | None = Field(None, description="$eq $ne $gt $gte $lt $lte $in $nin $exists, $and, $or")
    query: str | None = Field(None, max_length=QUERY, description="Of a longer one than 8,000 characters the end counts")
    limit: Limit = 10
    offset: Offset = 0
    refresh_ttl: Refresh = None


class ListNamespaces(_Compatible):
    """Which namespaces; `*` in prefix and suffix is exactly one label."""

    prefix: Labels | None = None
    suffix: Labels | None = None
    max_depth: Annotated[int, Field(ge=1, le=PAGE)] | None = None
    limit: Limit = 100
    offset: Offset = 0


# --------------------------------------------------------------------------------------------------------------------
# Several in one request


class _Own(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GetOperation(_Own):
    """Read an item."""

    op: Literal["get"]
    namespace: Labels
    key: str
    refresh_ttl: bool = True

    def operation(self) -> Operation:
        """As the store takes it."""
        return Get(tuple(self.namespace), self.key, self.refresh_ttl)


class PutOperation(_Own):
    """Write an item."""

    op: Literal["put"]
    namespace: Labels
    key: str
    value: dict[str, Any]
    index: Literal[False] | list[str] | None = None
    ttl: Minutes | None = None

    def operation(self) -> Operation:
        """As the store takes it."""
        return Write(tuple(self.namespace), self.key, self.value, self.index, self.ttl)


class DeleteOperation(_Own):
    """Remove an item."""

    op: Literal["delete"]
    namespace: Labels
    key: str

    def operation(self) -> Operation:
        """As the store takes it."""
        return Write(tuple(self.namespace), self.key, None)


class SearchOperation(_Own):
    """A page of items."""

    op: Literal["search"]
    namespace_prefix: Labels = Field(default_factory=list)
    filter: dict[str, Any] | None = None
    query: str | None = Field(None, max_length=QUERY)
    limit: Limit = 10
    offset: Offset = 0
    refresh_ttl: bool = True

    def operation(self) -> Operation:
        """As the store takes it."""
        return Search(tuple(self.namespace_prefix), self.filter, self.query, self.limit, self.offset, self.refresh_ttl)


class MatchCondition(_Own):
    """What a namespace must begin or end with."""

    match_type: Literal["prefix", "suffix"]
    path: Labels


class ListOperation(_Own):
    """A page of namespaces that meet every condition."""

    op: Literal["list_namespaces"]
    match_conditions: list[MatchCondition] = Field(default_factory=list, max_length=20)
    max_depth: Annotated[int, Field(ge=1, le=PAGE)] | None = None
    limit: Limit = 100
    offset: Offset = 0

    def operation(self) -> Operation:
        """As the store takes it."""
        conditions = tuple(Condition(one.match_type, tuple(one.path)) for one in self.match_conditions)
        return Listing(conditions, self.max_depth, self.limit, self.offset)


AnyOperation = Annotated[GetOperation | PutOperation | DeleteOperation | SearchOperation | ListOperation, Field(discriminator="op")]


class Batch(_Own):
    """Operations, answered in their order: reads see the state before, writes come last, the last write to an item wins."""

    operations: list[AnyOperation] = Field(min_length=1, max_length=OPERATIONS)
