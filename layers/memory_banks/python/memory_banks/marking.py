"""Due marks: the two attributes that put an item into the sparse `due` index, where the sweep finds it."""

from __future__ import annotations

import zlib

from .ports import DUE_PARTITIONS

DUE_ATTRIBUTES = ("due_pk", "due_at")
"""To remove when nothing is due any more."""


def due_partition(number: int) -> str:
    """The partition key of the n-th `due` partition."""
    return f"DUE#{number}"


def due(seed: str, at: int) -> dict[str, str | int]:
    """The attributes that make an item due at `at` (ms). `seed` spreads items over the partitions; use the item's own key."""
    return {"due_pk": due_partition(zlib.crc32(seed.encode()) % DUE_PARTITIONS), "due_at": at}
