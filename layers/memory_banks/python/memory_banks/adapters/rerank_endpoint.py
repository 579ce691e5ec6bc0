"""Any endpoint with `POST …/rerank` in the form that Cohere, Jina, vLLM and llama.cpp share."""

from __future__ import annotations

from collections.abc import Sequence

from ..ports import ModelUnavailable
from ..settings import Settings
from .openai_compatible import OPENAI, Endpoint
from .relevance import in_order


def endpoint(settings: Settings) -> Endpoint:
    """The endpoint of the settings. The key for the OpenAI-compatible one goes to no other."""
    if settings.rerank_base_url:
        return Endpoint(settings.rerank_base_url, settings.rerank_api_key)
    return Endpoint(settings.openai_base_url or OPENAI, settings.rerank_api_key or settings.openai_api_key)


class EndpointReranker:
    """A reranking model of such an endpoint."""

    def __init__(self, server: Endpoint, name: str) -> None:
        self.model = f"openai/{name}"
        self._server = server
        self._name = name

    def rerank(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """See `ports.Reranker`. Raises `ModelUnavailable` or `ModelError`."""
        body = {"model": self._name, "query": query, "documents": list(texts), "top_n": len(texts)}
        answer = self._server.post("/rerank", body, timeout_seconds)
        try:
            found = [(one["index"], one["relevance_score"]) for one in answer["results"]]
        except (KeyError, TypeError) as error:
            raise ModelUnavailable(f"{self.model} did not answer with scores.") from error
        return in_order(found, len(texts), self.model)
