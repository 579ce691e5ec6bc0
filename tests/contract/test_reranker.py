"""What every `ports.Reranker` promises, on each adapter: Bedrock's Rerank and `/rerank` endpoints over HTTP to a local server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from memory_banks.adapters.bedrock_rerank import BedrockReranker
from memory_banks.adapters.openai_compatible import Endpoint
from memory_banks.adapters.rerank_endpoint import EndpointReranker
from memory_banks.ports import ModelError, ModelUnavailable, Reranker

from tests.doubles.model_server import ModelServer, Reply

QUERY = "where does the dog sleep"
TEXTS = ["the cat eats", "the dog does sleep where the sofa is", "Rex the dog", "🙂 \N{COMBINING ACUTE ACCENT} 猫"]
ORDER = [1, 2, 0, 3]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(params=["bedrock", "endpoint"])
def reranker(request: pytest.FixtureRequest, server: ModelServer) -> Reranker:
    if request.param == "endpoint":
        return EndpointReranker(Endpoint(server.url), "bge-reranker")

    def clients(seconds: int, region: str | None) -> Any:
        config = Config(read_timeout=seconds, retries={"total_max_attempts": 1})
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
        return boto3.client("bedrock-agent-runtime", region or "eu-central-1", endpoint_url=server.url, config=config, **keys)

    return BedrockReranker("amazon.rerank-v1:0", clients)


def answer(reranker: Reranker, *pairs: tuple[Any, Any]) -> dict[str, Any]:
    """What the provider answers for these places and scores."""
    score = "relevanceScore" if reranker.model.startswith("bedrock/") else "relevance_score"
    return {"results": [{"index": index, score: value} for index, value in pairs]}


def rerank(reranker: Reranker, texts: list[str] = TEXTS, seconds: float = 5) -> list[float]:
    return list(reranker.rerank(QUERY, texts, timeout_seconds=seconds))


def test_names_its_provider_and_model(reranker: Reranker) -> None:
    assert reranker.model in {"bedrock/amazon.rerank-v1:0", "openai/bge-reranker"}


def test_gives_one_score_a_text_in_the_order_of_the_texts(reranker: Reranker) -> None:
    scores = rerank(reranker)
    assert len(scores) == len(TEXTS)
    assert sorted(range(len(TEXTS)), key=lambda place: -scores[place]) == ORDER
    assert all(isinstance(score, float) and 0 <= score <= 1 for score in scores)


def test_a_hundred_texts_are_one_call(reranker: Reranker, server: ModelServer) -> None:
    assert len(rerank(reranker, [f"dog number {n}" for n in range(100)])) == 100
    assert len(server.seen) == 1


def test_bare_outputs_of_a_model_become_scores_in_the_same_order(reranker: Reranker, server: ModelServer) -> None:
    server.instead.append(Reply(body=answer(reranker, (3, 9_000.0), (0, 0.0), (1, -2.5), (2, -9_000.0))))
    scores = rerank(reranker)
    assert scores[0] == 0.5
    assert 1 == scores[3] > scores[0] > scores[1] > scores[2] == 0


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [(0, 0.1), (1, 0.1), (2, 0.1)],
        [(0, 0.1), (1, 0.1), (2, 0.1), (2, 0.1)],
        [(0, 0.1), (1, 0.1), (2, 0.1), (4, 0.1)],
        [(0, 0.1), (1, 0.1), (2, 0.1), (3, 0.1), (3, 0.2)],
        [(0, 0.1), (1, 0.1), (2, 0.1), (None, 0.1)],
        [(0, 0.1), (1, 0.1), (2, 0.1), (3, None)],
    ],
)
def test_what_does_not_score_each_text_once_is_a_pause(reranker: Reranker, server: ModelServer, pairs: Any) -> None:
    server.instead.append(Reply(body=answer(reranker, *pairs)))
    with pytest.raises(ModelUnavailable, match="did not score each of 4 texts"):
        rerank(reranker)


def test_a_refused_request_says_why_and_is_no_pause(reranker: Reranker, server: ModelServer) -> None:
    complaint = {"message": "Too many tokens", "error": {"message": "Too many tokens"}}
    server.instead.append(Reply(400, complaint, {"x-amzn-errortype": "ValidationException"}))
    with pytest.raises(ModelError, match="Too many tokens") as error:
        rerank(reranker)
    assert not isinstance(error.value, ModelUnavailable)


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "ThrottlingException"), (500, "InternalServerException"), (403, "AccessDeniedException")]
)
def test_a_model_that_is_busy_or_denied_is_a_pause(reranker: Reranker, server: ModelServer, status: int, kind: str) -> None:
    server.instead.extend([Reply(status, {"message": "no"}, {"x-amzn-errortype": kind, "Retry-After": "60"})] * 9)
    with pytest.raises(ModelUnavailable):
        rerank(reranker, seconds=1)


@pytest.mark.parametrize("body", [b"{broken", b"", b"[]", b'{"results": null}', b'{"results": [1]}', b"<html>"])
def test_what_is_no_answer_is_a_pause(reranker: Reranker, server: ModelServer, body: bytes) -> None:
    server.instead.extend([Reply(body=body)] * 9)
    with pytest.raises(ModelUnavailable):
        rerank(reranker)


def test_a_model_that_does_not_answer_is_given_up_in_time(reranker: Reranker, server: ModelServer) -> None:
    server.instead.extend([Reply(delay_seconds=3)] * 9)
    began = time.monotonic()
    with pytest.raises(ModelUnavailable):
        rerank(reranker, seconds=1)
    assert time.monotonic() - began < 2.5
