"""Due marks: the two attributes that put an item into the sparse `due` index, where the sweep finds it."""

from __future__ import annotations

import zlib
from typing import Literal

from .ports import DUE_PARTITIONS

Schedule = Literal["compaction", "retention"]
"""The two sweeps. `compaction` has partitions, entries, clean-ups and changed thresholds; `retention` has banks."""

DUE_ATTRIBUTES = ("due_pk", "due_at")
"""To remove when nothing is due any more."""


def due_partition(number: int) -> str:
    """The partition key of the n-th `due` partition."""
    return f"DUE#{number}"


def due(seed: str, at: int, schedule: Schedule = "compaction") -> dict[str, str | int]:
    """The attributes that make an item due at `at` (ms). `seed` spreads items over the partitions; use the item's own key.

    Each of the two sweeps has half of the partitions: what one of them leaves alone never stands in the other's way.
    """
    first, count = partitions_of(schedule)
    return {"due_pk": due_partition(first + zlib.crc32(seed.encode()) % count), "due_at": at}


def partitions_of(schedule: Schedule) -> tuple[int, int]:
    """The first partition of a schedule's sweep and how many it has."""
    half = DUE_PARTITIONS // 2
    return (0, half) if schedule == "compaction" else (half, half)
