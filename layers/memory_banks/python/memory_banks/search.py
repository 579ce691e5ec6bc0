"""Search: find entries by meaning and by words, and show only what the table says is remembered.

One embedding and one round trip to the index give up to four rankings (chunks and windows, by vector and by words).
`fusion` makes one ranking of entries of them. The best ones are then checked against the table by strong batch reads that
carry the bank, the heads and the entries: whatever is deleted, compacted, expired or indexed in another version is dropped,
and a window counts only while each of its turns is alive in the version that was indexed. When too few are left, the index
is asked once more, for more. Where a reranker is configured, it has the last word on the order of a hybrid search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from . import bank as banks
from . import entries, fusion, homes, ids, partitions, reranking, texts
from .bank import Bank
from .entries import Entry
from .errors import Invalid
from .fusion import Candidate
from .partitions import Head
from .ports import Filter, Form, Hit, Key, MetadataTest, Ports, Ranking, Reranker

Mode = Literal["hybrid", "semantic", "keyword"]

DEPTH = 100
"""Documents asked of each ranking at the least; twice the page when that is more. Fusion needs some breadth to compare."""

REFILL = 4
"""How many times deeper the second look goes, when too little of the first was alive."""

DEEPEST = 1_000
"""Documents of a ranking at the most."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to look for. Times are ms; `since` (inclusive) and `until` (exclusive) compare `occurred_at`.

    `keys`: None looks in every partition of the bank. `min_score`: least similarity of the best chunk, (1 + cosine) / 2;
    not in keyword mode. `neighbors`: how many turns before and after each entry to give along.
    """

    query: str
    keys: Sequence[str] | None = None
    top_k: int = 10
    mode: Mode = "hybrid"
    speakers: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    tags_all: Sequence[str] = ()
    metadata: Sequence[MetadataTest] = ()
    since: int | None = None
    until: int | None = None
    kinds: Sequence[Literal["entry", "summary"]] = ()
    min_score: float | None = None
    neighbors: int = 0
    debug: bool = False

    @property
    def depth(self) -> int:
        """How many documents to ask of each ranking."""
        return max(DEPTH, 2 * self.top_k)


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that was found. `score` is between 0 and 1 and compares within one search."""

    entry: Entry
    score: float
    matched_text: str
    """The chunk of the content that matched best."""
    neighbors: tuple[Entry, ...] = ()
    """The turns around it, in order, without the entry itself."""
    parts: dict[str, Any] | None = None
    """With `debug`: how the score came about."""


def search(ports: Ports, bank: Bank, request: SearchRequest) -> list[Found]:
    """The entries that match best, best first; ties, newest first.

    Costs one embedding (none in keyword mode), one index round trip (two when too many hits are dead, or a key was renamed),
    and a batch read for each hundred items. Raises `Invalid`, and the ports' own `IndexUnavailable`, `TableUnavailable` and
    `ModelError`.
    """
    if request.mode == "keyword" and request.min_score is not None:
        raise Invalid(("body", "min_score"), "is a similarity of vectors; the keyword mode has none")
    places = None if request.keys is None else homes.guess(bank, request.keys)
    truth = _Truth(ports, bank, places)
    filter = Filter(
        bank=bank.id,
        generation=bank.generation,
        above=_above(places),
        kinds=tuple(request.kinds),
        speakers=tuple(request.speakers),
        tags_any=tuple(request.tags_any),
        tags_all=tuple(request.tags_all),
        metadata=tuple(request.metadata),
        since=request.since,
        until=request.until,
        created_after=bank.cutoff(ports.clock.now()),
    )
    vector = None
    if request.mode != "keyword":
        vector = ports.embedders(bank.embedding_model, bank.dimensions).embed_query(request.query)
    forms: tuple[Form, ...] = ("chunk", "window") if bank.conversation else ("chunk",)
    text = None if request.mode == "semantic" else texts.keywords(request.query)

    def look(filter: Filter, size: int) -> list[Ranking]:
        return ports.index.search(bank.reads.index, filter, vector=vector, text=text, forms=forms, size=size)

    rankings = look(filter, request.depth)
    reranker = reranking.reranker(ports) if request.mode == "hybrid" else None
    count = max(request.top_k, reranking.RERANKED) if reranker else request.top_k
    best = _alive(truth, rankings, request.depth, request, count)
    if (places := truth.moved()) is not None:
        filter = replace(filter, above=_above(places))
        rankings = look(filter, request.depth)
        best = _alive(truth, rankings, request.depth, request, count)
    short = len(best) < request.top_k and _more(rankings, request.depth, request.min_score)
    if short or (filter.above and truth.compacted(rankings)):
        # Just after a compaction the watermarks keep what it replaced out of the way.
        truth.meet(filter.above or ())
        depth = min(request.depth * REFILL, DEEPEST)
        rankings = look(replace(filter, above=truth.watermarks(filter.above)), depth)
        best = _alive(truth, rankings, depth, request, count)
    if reranker is None:
        return [_found(truth, candidate, request) for candidate in best]
    judged = _rerank(ports, reranker, truth, best, request.query)
    return [_found(truth, one.candidate, request, one) for one in judged[: request.top_k]]


class _Judged(NamedTuple):
    """A candidate, its place in the fused order, and what the reranker says of it; None when it failed."""

    candidate: Candidate
    place: int
    relevance: float | None

    @property
    def order(self) -> tuple[float, int]:
        """Sorts the most relevant first, and what is equal as it was fused."""
        return (-(self.relevance or 0.0), self.place)

    @property
    def score(self) -> float:
        """The reranker's, or else the fused one."""
        return self.candidate.score if self.relevance is None else self.relevance

    @property
    def part(self) -> dict[str, Any] | None:
        """What `debug` tells."""
        if self.relevance is None:
            return None
        return {"score": self.relevance, "fused_score": round(self.candidate.score, 6), "fused_place": self.place + 1}


def _rerank(ports: Ports, reranker: Reranker, truth: _Truth, best: Sequence[Candidate], query: str) -> list[_Judged]:
    """The candidates in the reranker's order; as they were when it fails."""
    said = [_said(truth, candidate) for candidate in best]
    scores: Sequence[float | None] = reranking.scores(ports, reranker, query, said) or [None] * len(best)
    judged = [_Judged(candidate, place, score) for place, (candidate, score) in enumerate(zip(best, scores, strict=True))]
    return sorted(judged, key=lambda one: one.order)


def _said(truth: _Truth, candidate: Candidate) -> str:
    """What a reranker reads: the chunk that matched best, with who said it and when."""
    entry, chunk = truth.entry(candidate.entry), candidate.best_chunk
    return texts.chunk_text(entry, (chunk.start, chunk.end) if chunk else (0, reranking.LONGEST))


def _above(places: Mapping[str, str] | None) -> dict[str, str] | None:
    """The partitions where some keys live; None for all. Their watermarks are not known yet and rarely matter: what lies below is
    removed from the index minutes after a compaction."""
    return None if places is None else dict.fromkeys(places.values(), ids.LOWEST)


def _more(rankings: Sequence[Ranking], size: int, min_score: float | None) -> bool:
    """Whether looking deeper may find more: a ranking was cut off before the least score that is wanted."""
    if min_score is not None:
        rankings = [one for one in rankings if (one.form, one.method) == ("chunk", "vector") and one.hits[-1:]]
        return any(len(one.hits) >= size and one.hits[-1].score >= min_score for one in rankings)
    return any(len(one.hits) >= size for one in rankings)


def _alive(truth: _Truth, rankings: Sequence[Ranking], size: int, request: SearchRequest, count: int) -> list[Candidate]:
    """The best living candidates, at most `count`. Reads twice as many at first, and on only where something was dead."""
    weights = fusion.WEIGHTS if any(ranking.form == "window" for ranking in rankings) else fusion.WITHOUT_WINDOWS
    candidates = fusion.fuse(rankings, size, weights=weights, alive=truth.may_count)
    while True:
        wanted = [one for one in candidates if request.min_score is None or (one.similarity or 0) >= request.min_score]
        page = wanted[:count]
        if not truth.unread(_support(page)):
            return page
        truth.read(_support(wanted[: 2 * count]))
        if not all(truth.may_count(hit) for ranking in rankings for hit in ranking.hits):
            candidates = fusion.fuse(rankings, size, weights=weights, alive=truth.may_count)


def _support(shown: Sequence[Candidate]) -> set[str]:
    """Every entry that the scores of these candidates rest on: their own, their windows' members, the neighbours that lift."""
    support = {member.entry for candidate in shown for hit in candidate.hits for member in hit.members}
    return support.union(*(filter(None, candidate.beside) for candidate in shown))


class _Truth:
    """What the table says, read strongly and once each, after the index was asked.

    `places`: where the keys of the search live if none was renamed; None for all keys.
    """

    def __init__(self, ports: Ports, bank: Bank, places: Mapping[str, str] | None) -> None:
        self._ports = ports
        self._bank = bank
        self._places = places
        self._fresh: Bank | None = bank
        self._heads: dict[str, Head | None] = {}
        self._entries: dict[str, Entry | None] = {}

    def moved(self) -> dict[str, str] | None:
        """Where the keys live, if any of them was renamed: then the index was asked about other partitions."""
        if self._places is None:
            return None
        self.meet(self._places.values())
        moved = {name: head.lives for name in self._places.values() if (head := self._heads[name]) is not None and head.lives}
        return {key: moved.get(name, name) for key, name in self._places.items()} if moved else None

    def meet(self, partitions_named: Iterable[str]) -> None:
        """Read the heads of these partitions that were not read yet."""
        unknown = sorted(set(partitions_named) - self._heads.keys())
        found = self._ports.table.read([partitions.head_key(self._bank, name) for name in unknown]) if unknown else []
        for name, head in zip(unknown, found, strict=True):
            self._heads[name] = partitions.head_from(head) if head is not None else None

    def watermarks(self, partitions: Mapping[str, str] | None) -> dict[str, str] | None:
        """Partitions with their watermarks, once their heads were read."""
        if partitions is None:
            return None
        return {name: head.watermark if (head := self._heads.get(name)) else lowest for name, lowest in partitions.items()}

    def compacted(self, rankings: Sequence[Ranking]) -> bool:
        """Whether the index still has, among these, what a compaction has replaced."""
        return any(self._replaced(hit.entry) for ranking in rankings for hit in ranking.hits)

    def _replaced(self, name: str) -> bool:
        head = self._heads.get(name[ids.ULID_LENGTH : 2 * ids.ULID_LENGTH])
        return head is not None and name[: ids.ULID_LENGTH] + name[2 * ids.ULID_LENGTH :] <= head.watermark

    def unread(self, wanted: Iterable[str]) -> list[str]:
        """Which of these entries were not read yet."""
        return sorted(set(wanted) - self._entries.keys())

    def read(self, wanted: Iterable[str]) -> None:
        """Read entries with their heads and the bank, in one strong batch."""
        missing = self.unread(wanted)
        places = {entry: parsed for entry in missing if (parsed := ids.parse(entry))}
        named = {place.partition for place in places.values()}.union((self._places or {}).values())
        unknown = sorted(named - self._heads.keys())
        keys: list[Key] = [banks.key_of(self._bank.account, self._bank.id)]
        keys += [partitions.head_key(self._bank, partition) for partition in unknown]
        keys += [partitions.entry_key(self._bank, place.partition, place.sort) for place in places.values()]
        bank, *items = self._ports.table.read(keys)
        there = bank is not None and not bank.get("deleted") and bank["generation"] == self._bank.generation
        self._fresh = banks.from_item(bank) if bank is not None and there else None
        heads, found = items[: len(unknown)], items[len(unknown) :]
        for partition, head in zip(unknown, heads, strict=True):
            self._heads[partition] = partitions.head_from(head) if head is not None else None
        self._entries |= dict.fromkeys(missing)
        cutoff = self._fresh.cutoff(self._ports.clock.now()) if self._fresh else None
        for (name, place), item in zip(places.items(), found, strict=True):
            its_head = self._heads[place.partition]
            entry = entries.from_item(item, its_head.key) if item is not None and its_head is not None else None
            if entry is not None and self._fresh and partitions.alive(its_head, entry, cutoff):
                self._entries[name] = entry

    def may_count(self, hit: Hit) -> bool:
        """Whether a hit is alive as far as is known: what was not read yet gets the benefit of the doubt."""
        return all(self._may_be(member.entry, member.version) for member in hit.members)

    def _may_be(self, name: str, version: int) -> bool:
        if name not in self._entries:
            return not self._replaced(name)
        entry = self._entries[name]
        return entry is not None and entry.version == version

    def entry(self, name: str) -> Entry:
        """An entry that was read and is alive."""
        entry = self._entries[name]
        if entry is None:
            raise LookupError(f"{name} is not alive")
        return entry

    def around(self, entry: Entry, count: int) -> tuple[Entry, ...]:
        """The living turns around an entry, in order."""
        head = self._heads[entry.partition]
        if head is None or self._fresh is None:
            return ()
        pk, place = partitions.partition_pk(self._bank, entry.partition), "E#" + entry.sort
        before = self._ports.table.query(pk, after="E#" + head.watermark, before=place, reverse=True, limit=count).items
        after = self._ports.table.query(pk, after=place, last="E~", limit=count).items
        cutoff = self._fresh.cutoff(self._ports.clock.now())
        turns = [entries.from_item(item, head.key) for item in [*before[::-1], *after]]
        return tuple(turn for turn in turns if turn.kind == "entry" and partitions.alive(head, turn, cutoff))


def _found(truth: _Truth, candidate: Candidate, request: SearchRequest, judged: _Judged | None = None) -> Found:
    entry = truth.entry(candidate.entry)
    chunk = candidate.best_chunk
    return Found(
        entry=entry,
        score=round(judged.score if judged else candidate.score, 6),
        matched_text=entry.content[chunk.start : chunk.end] if chunk else entry.content,
        neighbors=truth.around(entry, request.neighbors) if request.neighbors else (),
        parts=_parts(candidate, judged) if request.debug else None,
    )


def _parts(candidate: Candidate, judged: _Judged | None) -> dict[str, Any]:
    """How the score came about: what each ranking said, raw and standardised, their mean, and the neighbours' lift. Where a
    reranker is configured, also what it said; None when it failed."""
    parts = {
        "rankings": {
            f"{form}_{method}": {"raw": part.raw, "standardised": round(part.standardised, 4)}
            for (form, method), part in candidate.parts.items()
        },
        "own": round(candidate.own, 4),
        "lift": round(candidate.lift, 4),
        "similarity": candidate.similarity,
    }
    return parts if judged is None else parts | {"rerank": judged.part}
