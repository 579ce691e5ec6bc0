"""Fusion: several rankings of documents become one ranking of entries, and every score can be explained.

1. Each ranking (chunks and windows, by vector and by words) gives an entry the score of its best document.
2. Scores of different kinds are made comparable: each ranking's are standardised over all candidates (mean 0, deviation 1).
3. An entry's score is the weighted mean of these, lifted by what its neighbours in the conversation scored.

Pure: hits in, candidates out. `search` decides which hits are alive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from .ports import Form, Hit, Method, Ranking

Source = tuple[Form, Method]

WEIGHTS: Mapping[Source, float] = {
    ("chunk", "vector"): 1.0,
    ("chunk", "keyword"): 1.0,
    ("window", "vector"): 1.0,
    ("window", "keyword"): 1.0,
}
"""How much each ranking of a conversation counts. Equal weights are within noise of the best (docs/search.md has figures)."""

WITHOUT_WINDOWS: Mapping[Source, float] = {("chunk", "vector"): 2.0, ("chunk", "keyword"): 1.0}
"""In a general bank, where nothing but the words themselves supports a match by chance."""

LIFT = (0.3, 0.1)
"""How much of the score of a neighbour an entry gains: of the entries next to it, and of those two away."""


class Part(NamedTuple):
    """What one ranking says of an entry: the score as the index gave it (None: not among its best) and standardised."""

    raw: float | None
    standardised: float


@dataclass(slots=True)
class _Scale:
    """How one ranking's scores become comparable."""

    source: Source
    weight: float
    best: Mapping[str, float]
    """Of each entry that the ranking has."""
    least: float
    """What an entry gets that it does not have."""
    mean: float
    deviation: float
    """Of the candidates; 0 when the ranking tells none from another."""

    def part(self, entry: str) -> Part:
        raw = self.best.get(entry)
        return Part(raw, ((self.least if raw is None else raw) - self.mean) / self.deviation if self.deviation else 0.0)


@dataclass(slots=True)
class Candidate:
    """An entry that some ranking found."""

    entry: str
    occurred_at: int
    hits: list[Hit] = field(default_factory=list)
    best_chunk: Hit | None = None
    """The chunk that matched best, by vector if there is one."""
    similarity: float | None = None
    """(1 + cosine) / 2 of the best chunk, where the vector ranking has it."""
    beside: tuple[str | None, str | None] = (None, None)
    """The entries before and after it in the conversation, as far as the hits tell."""
    own: float = 0.0
    """Weighted mean of the standardised scores."""
    lift: float = 0.0
    """What the neighbours add."""
    scales: Sequence[_Scale] = ()

    @property
    def total(self) -> float:
        """Own score and lift."""
        return self.own + self.lift

    @property
    def score(self) -> float:
        """The total between 0 and 1: one half is a middling candidate of this search."""
        return 1 / (1 + math.exp(-self.total))

    @property
    def parts(self) -> dict[Source, Part]:
        """What each ranking said."""
        return {scale.source: scale.part(self.entry) for scale in self.scales}


def fuse(
    rankings: Sequence[Ranking],
    size: int,
    *,
    weights: Mapping[Source, float] = WEIGHTS,
    lift: Sequence[float] = LIFT,
    alive: Callable[[Hit], bool] | None = None,
) -> list[Candidate]:
    """The candidates of some rankings of at most `size` hits each, best first, ties by time (the newest first).

    Only hits that are `alive` count.
    """
    full = [len(ranking.hits) >= size for ranking in rankings]
    if alive is not None:
        rankings = [Ranking(form, method, [hit for hit in hits if alive(hit)]) for form, method, hits in rankings]
    candidates = _gather(rankings)
    telling = [one for one, cut_off in zip(rankings, full, strict=True) if one.form == "chunk" or not cut_off]
    scales = [
        _scale(ranking, candidates, cut_off, weights[ranking.form, ranking.method])
        for ranking, cut_off in zip(rankings, full, strict=True)
        if ranking.hits
    ]
    _add_own(candidates, scales, _windowless(telling))
    _add_lift(candidates, rankings, lift)
    return sorted(candidates.values(), key=lambda one: (-one.own - one.lift, -one.occurred_at, one.entry))


def _gather(rankings: Iterable[Ranking]) -> dict[str, Candidate]:
    candidates: dict[str, Candidate] = {}
    for form, method, hits in rankings:
        for hit in hits:
            candidate = candidates.get(hit.entry)
            if candidate is None:
                candidate = candidates[hit.entry] = Candidate(hit.entry, hit.occurred_at)
            candidate.hits.append(hit)
            if form != "chunk":
                continue
            if method == "vector":
                if candidate.similarity is None or hit.score > candidate.similarity:
                    candidate.similarity, candidate.best_chunk = hit.score, hit
            elif candidate.best_chunk is None:
                candidate.best_chunk = hit
    return candidates


def _scale(ranking: Ranking, candidates: Mapping[str, Candidate], cut_off: bool, weight: float) -> _Scale:
    """Mean and deviation of a ranking's scores over all candidates.

    A candidate that a cut-off ranking leaves out scored at most what its last hit did, and is given that. One that a
    ranking with room to spare leaves out has no word in common, or no such document (the newest turn has no window yet).
    """
    best: dict[str, float] = {}
    for hit in ranking.hits:
        if hit.score > best.get(hit.entry, -math.inf):
            best[hit.entry] = hit.score
    least = min(best.values()) if cut_off or ranking.method == "vector" else 0.0
    missing = len(candidates) - len(best)
    mean = (sum(best.values()) + missing * least) / len(candidates)
    variance = (sum((score - mean) ** 2 for score in best.values()) + missing * (least - mean) ** 2) / len(candidates)
    deviation = math.sqrt(variance)
    return _Scale((ranking.form, ranking.method), weight, best, least, mean, deviation if deviation > 1e-9 else 0.0)


def _add_own(candidates: Mapping[str, Candidate], scales: Sequence[_Scale], windowless: Set[str]) -> None:
    every, chunks = _Mean(scales), _Mean([scale for scale in scales if scale.source[0] == "chunk"])
    for entry, candidate in candidates.items():
        mean = chunks if entry in windowless else every
        candidate.own = mean.of(entry)
        candidate.scales = mean.scales


class _Mean:
    """The weighted mean of the standardised scores, as one sum."""

    def __init__(self, scales: Sequence[_Scale]) -> None:
        self.scales = scales
        whole = sum(scale.weight for scale in scales)
        telling = [scale for scale in scales if scale.deviation and scale.weight]
        self._factors = [(scale.best, scale.least, scale.weight / whole / scale.deviation) for scale in telling]
        self._shift = sum(factor * scale.mean for scale, (_, _, factor) in zip(telling, self._factors, strict=True))

    def of(self, entry: str) -> float:
        return sum([factor * best.get(entry, least) for best, least, factor in self._factors]) - self._shift


def _windowless(rankings: Iterable[Ranking]) -> set[str]:
    """The entries that have no window, as the newest turn of a conversation: what found their chunk would have found it too.

    A ranking of windows that was cut off can't tell and is not given; there the newest turn is taken for one whose window
    scored little.
    """
    entries = {(form, method): {hit.entry for hit in hits} for form, method, hits in rankings}
    windowless: set[str] = set()
    for (form, method), windows in entries.items():
        if form == "window":
            windowless |= entries.get(("chunk", method), set()) - windows
    return windowless


def _add_lift(candidates: Mapping[str, Candidate], rankings: Iterable[Ranking], lift: Sequence[float]) -> None:
    """What an entry gains of its neighbours: a share of how far they are above the lowest candidate."""
    following, preceding = _order(rankings)
    if not following:
        return
    lowest = min(candidate.own for candidate in candidates.values())
    for entry, candidate in candidates.items():
        candidate.beside = (preceding.get(entry), following.get(entry))
        for direction in (preceding, following):
            place: str | None = entry
            for share in lift:
                place = direction.get(place) if place is not None else None
                neighbour = candidates.get(place) if place is not None else None
                if neighbour is not None:
                    candidate.lift += share * (neighbour.own - lowest)


def _order(rankings: Iterable[Ranking]) -> tuple[dict[str, str], dict[str, str]]:
    """Which entry follows and which precedes another in the conversation, as far as the hits tell."""
    following: dict[str, str] = {}
    preceding: dict[str, str] = {}
    for form, _, hits in rankings:
        for hit in hits:
            if form == "window":
                for one, other in pairwise(hit.members):
                    following[one.entry], preceding[other.entry] = other.entry, one.entry
            elif hit.previous is not None:
                following[hit.previous], preceding[hit.entry] = hit.entry, hit.previous
    return following, preceding
