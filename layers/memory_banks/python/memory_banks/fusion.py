"""Fusion: several rankings of documents become one ranking of entries, and every score can be explained.

1. Each ranking (chunks and windows, by vector and by words) gives an entry the score of its best document.
2. Scores of different kinds are made comparable: each ranking's are standardised over all candidates (mean 0, deviation 1).
3. An entry's score is the weighted mean of these, lifted by what its neighbours in the conversation scored.

Pure: hits in, candidates out. `search` decides which hits are alive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

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


@dataclass(slots=True)
class Part:
    """What one ranking says of an entry: the score as the index gave it (None: not among its best) and standardised."""

    raw: float | None
    standardised: float


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
    parts: dict[Source, Part] = field(default_factory=dict)
    own: float = 0.0
    """Weighted mean of the standardised scores."""
    lift: float = 0.0
    """What the neighbours add."""

    @property
    def total(self) -> float:
        """Own score and lift."""
        return self.own + self.lift

    @property
    def score(self) -> float:
        """The total between 0 and 1: one half is a middling candidate of this search."""
        return 1 / (1 + math.exp(-self.total))


def fuse(
    rankings: Sequence[Ranking],
    size: int,
    *,
    weights: Mapping[Source, float] = WEIGHTS,
    lift: Sequence[float] = LIFT,
    alive: Callable[[Hit], bool] = lambda _: True,
) -> list[Candidate]:
    """The candidates of some rankings of at most `size` hits each, best first, ties by time (the newest first).

    Only hits that are `alive` count.
    """
    living = [Ranking(form, method, [hit for hit in hits if alive(hit)]) for form, method, hits in rankings]
    candidates = _gather(living)
    if not candidates:
        return []
    for ranking, given in zip(living, rankings, strict=True):
        _standardise(ranking, full=len(given.hits) >= size, candidates=candidates)
    for candidate in candidates.values():
        known = [(weights[source], part.standardised) for source, part in candidate.parts.items()]
        whole = sum(weight for weight, _ in known)
        candidate.own = sum(weight * score for weight, score in known) / whole if whole else 0.0
    _lift(candidates, neighbours(hit for ranking in living for hit in ranking.hits), lift)
    return sorted(candidates.values(), key=lambda one: (-one.total, -one.occurred_at, one.entry))


def _gather(rankings: Iterable[Ranking]) -> dict[str, Candidate]:
    candidates: dict[str, Candidate] = {}
    for form, method, hits in rankings:
        for hit in hits:
            candidate = candidates.setdefault(hit.entry, Candidate(hit.entry, hit.occurred_at))
            candidate.hits.append(hit)
            if form == "chunk" and method == "vector":
                if candidate.similarity is None or hit.score > candidate.similarity:
                    candidate.similarity, candidate.best_chunk = hit.score, hit
            elif form == "chunk" and candidate.best_chunk is None:
                candidate.best_chunk = hit
    return candidates


def _standardise(ranking: Ranking, *, full: bool, candidates: Mapping[str, Candidate]) -> None:
    """Add a ranking's part to every candidate.

    A candidate that a full ranking leaves out scored at most what its last hit did, and is given that. One that a ranking
    with room to spare leaves out has no such document (the newest turn has no window yet) or no word in common.
    """
    best: dict[str, float] = {}
    for hit in ranking.hits:
        best[hit.entry] = max(best.get(hit.entry, -math.inf), hit.score)
    if not best:
        return
    least = min(best.values()) if full or ranking.method == "vector" else 0.0
    values = {entry: best.get(entry, least) for entry in candidates}
    mean = sum(values.values()) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values.values()) / len(values))
    for entry, candidate in candidates.items():
        standardised = (values[entry] - mean) / deviation if deviation > 1e-9 else 0.0
        candidate.parts[ranking.form, ranking.method] = Part(best.get(entry), standardised)


def neighbours(hits: Iterable[Hit]) -> dict[str, set[str]]:
    """Which entries stand next to each other in a conversation, as far as the hits tell."""
    beside: dict[str, set[str]] = {}
    for hit in hits:
        row = [member.entry for member in hit.members] if hit.form == "window" else [hit.previous, hit.entry]
        for one, other in pairwise(row):
            if one is not None and other is not None:
                beside.setdefault(one, set()).add(other)
                beside.setdefault(other, set()).add(one)
    return beside


def _lift(candidates: Mapping[str, Candidate], beside: Mapping[str, set[str]], lift: Sequence[float]) -> None:
    lowest = min(candidate.own for candidate in candidates.values())
    for entry, candidate in candidates.items():
        seen, ring = {entry}, {entry}
        for share in lift:
            ring = set().union(*(beside.get(one, set()) for one in ring)) - seen
            seen |= ring
            candidate.lift += share * sum(candidates[one].own - lowest for one in ring if one in candidates)
