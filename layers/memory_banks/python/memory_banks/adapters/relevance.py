"""What rerankers answer: numbered scores in any order, brought into that of the texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ports import ModelUnavailable


def in_order(found: Sequence[tuple[Any, Any]], count: int, model: str) -> list[float]:
    """The score of each of `count` texts from pairs of (place, score). Raises `ModelUnavailable` for what is no such answer.

    Some servers give a model's bare output instead of a share: when a score lies outside 0 to 1, all go through the logistic
    function, which keeps their order.
    """
    scores: dict[int, float] = {}
    for place, score in found:
        if isinstance(place, int) and isinstance(score, (int, float)) and math.isfinite(score):
            scores[place] = float(score)
    if len(found) != count or scores.keys() != set(range(count)):
        raise ModelUnavailable(f"{model} did not score each of {count} texts once.")
    ordered = [scores[place] for place in range(count)]
    if all(0 <= score <= 1 for score in ordered):
        return ordered
    # tanh instead of exp: it does not overflow.
    return [(1 + math.tanh(score / 2)) / 2 for score in ordered]
