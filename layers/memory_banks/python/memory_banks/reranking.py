"""Reranking: a model reads the query with each of the best living hits, and its scores decide their order.

Off unless a reranker is configured. A search never fails for it: without its answer the fused order stands, a `RerankFailed`
is counted, and the log says why.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from .ports import ModelError, Ports, Reranker

logger = logging.getLogger(__name__)

RERANKED = 50
"""Hits that are reranked, or the page when that is more."""

SECONDS = 3.0
"""How long a search waits for the model."""

LONGEST = 4_000
"""Characters of a query and of a text that the model is given; it reads hardly more."""


def reranker(ports: Ports) -> Reranker | None:
    """The reranker, if one is configured. A setting that names none that exists is a failure like any other."""
    try:
        return ports.reranker
    except ModelError as problem:
        _failed(ports, problem)
        return None


def scores(ports: Ports, model: Reranker, query: str, texts: Sequence[str]) -> Sequence[float] | None:
    """How well each text answers the query, between 0 and 1; None when the model did not say."""
    if not texts:
        return []
    try:
        return model.rerank(query[:LONGEST], [text[:LONGEST] for text in texts], timeout_seconds=SECONDS)
    except ModelError as problem:
        _failed(ports, problem)
        return None


def _failed(ports: Ports, problem: ModelError) -> None:
    logger.warning("a search was not reranked: %s", problem)
    ports.metrics.count("RerankFailed")
