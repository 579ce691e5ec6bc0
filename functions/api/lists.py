"""The two shapes of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_banks import versions


def listed(name: str, items: Sequence[Any], version: str, *, page: int, limit: int, total: int) -> dict[str, Any]:
    """A page of a list as this version shows it: `{data, pagination}`, or before, the items under their name."""
    if version < versions.ENVELOPES:
        return {name: list(items), "page": page, "limit": limit, "total": total}
    pages = -(-total // limit) if limit else 0
    pagination = {
        "page": page,
        "limit": limit,
        "total": total,
        "pages": pages,
        "has_next": page < pages,
        "has_prev": page > 1,
    }
    return {"data": list(items), "pagination": pagination}


def whole(items: Sequence[Any], version: str) -> list[Any] | dict[str, Any]:
    """A short list that has no pages: bare before the envelopes, one full page from then on."""
    if version < versions.ENVELOPES:
        return list(items)
    count = len(items)
    return {
        "data": list(items),
        "pagination": {"page": 1, "limit": count, "total": count, "pages": 1, "has_next": False, "has_prev": False},
    }
