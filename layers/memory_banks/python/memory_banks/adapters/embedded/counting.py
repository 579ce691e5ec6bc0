"""Statistics of one bank from the markers of its entries: one small row an entry."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...ports import Spread, Statistics, Tally


class Marker(NamedTuple):
    """What counts of an entry."""

    partition: str
    sort: str
    summary: int
    speaker: str | None
    tags: str
    tokens: int
    created_at: int


def count(markers: Iterable[Marker], hidden: Mapping[str, str], top: int) -> Statistics:
    """All figures of these markers, less those at or below the hidden watermarks."""
    partitions: Counter[str] = Counter()
    speakers: Counter[str] = Counter()
    tagged: Counter[str] = Counter()
    tokens: list[int] = []
    created: list[int] = []
    summaries = 0
    for marker in markers:
        if marker.partition in hidden and marker.sort <= hidden[marker.partition]:
            continue
        if marker.summary:
            summaries += 1
            continue
        partitions[marker.partition] += 1
        if marker.speaker is not None:
            speakers[marker.speaker] += 1
        tagged[marker.tags] += 1
        tokens.append(marker.tokens)
        created.append(marker.created_at)
    if not tokens:
        return Statistics(summaries=summaries)
    tags: Counter[str] = Counter()
    for listed, often in tagged.items():
        tags.update(dict.fromkeys(json.loads(listed), often))
    return Statistics(
        entries=len(tokens),
        summaries=summaries,
        partitions=len(partitions),
        speakers=len(speakers),
        tokens=_spread(tokens),
        created_at=_spread(created, early=True),
        entries_per_partition=_spread(list(partitions.values())),
        top_partitions=_most(partitions, top),
        top_speakers=_most(speakers, top),
        top_tags=_most(tags, top),
    )


def _spread(numbers: Sequence[int], *, early: bool = False) -> Spread:
    """`early`: the 95th percentile counted from the largest down, as ages are from times."""
    values = np.sort(np.array(numbers, np.int64))
    rank = -(-len(values) * 95 // 100)
    return Spread(float(values.mean()), int(values[len(values) - rank if early else rank - 1]), int(values[0]), int(values[-1]))


def _most(counts: Counter[str], top: int) -> tuple[Tally, ...]:
    best = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:top]
    return tuple(Tally(value, entries) for value, entries in best)
