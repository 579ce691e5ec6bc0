"""The documents of one form of one bank in memory: vectors and what filters ask for, as columns of numpy arrays.

A filter becomes a mask first and the vectors that pass it are scored exactly, so a filtered search always has its full
top k. Words are scored with BM25 as Lucene computes it, over the same columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ... import metadata
from ...ids import ULID_LENGTH
from ...ports import Filter, MetadataTest
from ...texts import BM25_B, BM25_K1

_SORT = f"S{ULID_LENGTH + 1}"
NOBODY, UNKNOWN = -1, -2
"""In the column of speakers: an entry has none; a filter names one that no entry has."""

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float32]


class Columns(NamedTuple):
    """One document as the table has it; `vector` is little-endian float32 of unit length."""

    row: int
    partition: str
    sort: str
    summary: bool
    speaker: str | None
    tags: str
    metadata: str
    occurred_at: int
    created_at: int
    length: int
    vector: bytes


def _rounded_lengths() -> npt.NDArray[np.int64]:
    """Lucene keeps a field's length in one byte: exact up to 39 terms, then with four significant bits, rounded down."""
    lengths = list(range(24))
    for code in range(256 - 24):
        bits, shift = code & 7, (code >> 3) - 1
        lengths.append(24 + (bits if shift == -1 else (bits | 8) << shift))
    return np.array(lengths, np.int64)


_LENGTHS = _rounded_lengths()


class Segment:
    """Grows by `add`, shrinks by `remove`; positions are stable until `dead` ones are squeezed out."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.size = 0
        self.dead = 0
        self.through = 0
        """The highest row that was added."""
        self._room(64)
        self._partitions: dict[str, int] = {}
        self._speakers: dict[str, int] = {}
        self._tags: dict[str, set[int]] = {}
        self._metadata: list[str] = []
        self._leaves: dict[int, list[metadata.Leaf]] = {}
        self._terms = 0
        self._documents = 0

    def _room(self, capacity: int) -> None:
        def grown(name: str, kind: Any, width: int | None = None) -> npt.NDArray[Any]:
            array: npt.NDArray[Any] = np.zeros(capacity if width is None else (capacity, width), kind)
            if self.size:
                array[: self.size] = getattr(self, name)[: self.size]
            return array

        self.vectors = grown("vectors", np.float32, self.dimensions)
        self.rows = grown("rows", np.int64)
        self.alive = grown("alive", np.bool_)
        self.partition = grown("partition", np.int32)
        self.sort = grown("sort", _SORT)
        self.summary = grown("summary", np.bool_)
        self.speaker = grown("speaker", np.int32)
        self.occurred_at = grown("occurred_at", np.int64)
        self.created_at = grown("created_at", np.int64)
        self.length = grown("length", np.int64)

    @property
    def bytes(self) -> int:
        """About what the segment takes of memory."""
        return int(self.vectors.nbytes) + len(self.rows) * 128

    def add(self, documents: Sequence[Columns]) -> None:
        """Append documents in growing order of row."""
        if not documents:
            return
        first, last = self.size, self.size + len(documents)
        if last > len(self.rows):
            self._room(max(last, 2 * len(self.rows)))
        new = slice(first, last)
        self.vectors[new] = np.frombuffer(b"".join(one.vector for one in documents), "<f4").reshape(-1, self.dimensions)
        self.rows[new] = [one.row for one in documents]
        self.alive[new] = True
        self.partition[new] = [_number(self._partitions, one.partition) for one in documents]
        self.sort[new] = [one.sort.encode() for one in documents]
        self.summary[new] = [one.summary for one in documents]
        self.speaker[new] = [NOBODY if one.speaker is None else _number(self._speakers, one.speaker) for one in documents]
        self.occurred_at[new] = [one.occurred_at for one in documents]
        self.created_at[new] = [one.created_at for one in documents]
        self.length[new] = [one.length for one in documents]
        self._metadata.extend(one.metadata for one in documents)
        for position, one in enumerate(documents, first):
            if one.tags != "[]":
                for tag in json.loads(one.tags):
                    self._tags.setdefault(tag, set()).add(position)
        self._terms += sum(one.length for one in documents)
        self._documents += sum(one.length > 0 for one in documents)
        self.size = last
        self.through = documents[-1].row

    def remove(self, rows: Sequence[int]) -> None:
        """Forget documents; rows that are not here are no error."""
        positions, found = self._find(np.array(sorted(rows), np.int64))
        for position in positions[found]:
            if self.alive[position]:
                self.alive[position] = False
                self.dead += 1
                self._terms -= int(self.length[position])
                self._documents -= int(self.length[position] > 0)

    def _find(self, rows: Rows) -> tuple[Rows, Mask]:
        """Where rows are, and which of them are here at all."""
        positions = np.searchsorted(self.rows[: self.size], rows)
        found = positions < self.size
        found[found] = self.rows[positions[found]] == rows[found]
        return positions, found

    # ----------------------------------------------------------------------------------------------------------------
    # What a filter lets through

    def mask(self, filter: Filter) -> Mask:
        """Which positions a filter lets through (bank and generation are the segment's own)."""
        n = self.size
        mask = self.alive[:n].copy()
        if filter.above is not None:
            mask &= self._above(filter.above)
        if filter.kinds:
            mask &= np.isin(self.summary[:n], [kind == "summary" for kind in filter.kinds])
        if filter.speakers:
            mask &= np.isin(self.speaker[:n], [self._speakers.get(speaker, UNKNOWN) for speaker in filter.speakers])
        if filter.tags_any:
            mask &= self._marked(set().union(*(self._tags.get(tag, set()) for tag in filter.tags_any)))
        for tag in filter.tags_all:
            mask &= self._marked(self._tags.get(tag, set()))
        if filter.since is not None:
            mask &= self.occurred_at[:n] >= filter.since
        if filter.until is not None:
            mask &= self.occurred_at[:n] < filter.until
        if filter.created_after is not None:
            mask &= self.created_at[:n] > filter.created_after
        if filter.metadata:
            self._test(filter.metadata, mask)
        return mask

    def _above(self, watermarks: Mapping[str, str]) -> Mask:
        wanted = np.zeros(len(self._partitions), np.bool_)
        floors = np.zeros(len(self._partitions), _SORT)
        for partition, watermark in watermarks.items():
            if partition in self._partitions:
                wanted[self._partitions[partition]] = True
                floors[self._partitions[partition]] = watermark.encode()
        mask: Mask = wanted[self.partition[: self.size]]
        inside = np.flatnonzero(mask)
        mask[inside] = self.sort[inside] > floors[self.partition[inside]]
        return mask

    def _marked(self, positions: set[int]) -> Mask:
        mask = np.zeros(self.size, np.bool_)
        mask[list(positions)] = True
        return mask

    def _test(self, tests: Sequence[MetadataTest], mask: Mask) -> None:
        for position in np.flatnonzero(mask):
            at = int(position)
            if at not in self._leaves:
                self._leaves[at] = list(metadata.leaves(json.loads(self._metadata[at])))
            mask[at] = all(metadata.holds(test, self._leaves[at]) for test in tests)

    # ----------------------------------------------------------------------------------------------------------------
    # Rankings

    def nearest(self, vector: Scores, mask: Mask, size: int) -> list[tuple[int, float]]:
        """The rows nearest to a vector among those let through, with (1 + cosine) / 2, best first."""
        positions = np.flatnonzero(mask)
        few = len(positions) < self.size // 2
        cosines = self.vectors[positions] @ vector if few else (self.vectors[: self.size] @ vector)[positions]
        return self._best(positions, ((1 + np.clip(cosines, -1, 1)) / 2).astype(np.float32), size)

    def wordiest(
        self, wanted: Mapping[str, int], postings: Callable[[str], Rows], mask: Mask, size: int
    ) -> list[tuple[int, float]]:
        """The rows that match the wanted terms (each with how often the query has it) best by BM25.

        `postings` gives the rows that have a term, a row as often as the term occurs in it.
        """
        if not self._documents:
            return []
        average = self._terms / self._documents
        scores = np.zeros(self.size, np.float32)
        for term, weight in wanted.items():
            rows, occurrences = np.unique(postings(term), return_counts=True)
            positions, found = self._find(rows)
            positions, occurrences = positions[found], occurrences[found]
            living = self.alive[positions]
            positions, occurrences = positions[living], occurrences[living]
            rarity = np.log(1 + (self._documents - len(positions) + 0.5) / (len(positions) + 0.5))
            lengths = _LENGTHS[np.searchsorted(_LENGTHS, self.length[positions], "right") - 1]
            norm = BM25_K1 * (1 - BM25_B + BM25_B * lengths / average)
            scores[positions] += weight * rarity * occurrences / (occurrences + norm)
        positions = np.flatnonzero(mask & (scores > 0))
        return self._best(positions, scores[positions], size)

    def _best(self, positions: Rows, scores: Scores, size: int) -> list[tuple[int, float]]:
        if len(positions) > size:
            # Everything that ties with the last one stays, so that the order below decides and not the partition.
            least = np.partition(scores, -size)[-size]
            kept = scores >= least
            positions, scores = positions[kept], scores[kept]
        order = np.lexsort((positions, -scores))[:size]
        return [(int(self.rows[positions[i]]), float(scores[i])) for i in order]


def _number(numbers: dict[str, int], name: str) -> int:
    """The number of a name, a new one when it is new."""
    return numbers.setdefault(name, len(numbers))
