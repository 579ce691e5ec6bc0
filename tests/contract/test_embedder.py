"""What every `ports.Embedder` promises, on each adapter that runs here: Titan and OpenAI over HTTP to a local server."""

from __future__ import annotations

import math
from collections.abc import Iterator

import boto3
import pytest
from memory_banks.adapters.bedrock import TitanEmbedder
from memory_banks.adapters.embedded import embedder as sentence_encoder
from memory_banks.adapters.models import embedders
from memory_banks.ports import Embedder
from memory_banks.settings import Settings

from tests.doubles.model_server import NATIVE, ModelServer

TEXTS = [
    "Alice moved to Lisbon in May.",
    "Die Katze schläft auf dem Sofa.",
    "猫はソファーで寝ています。",
    "The quarterly budget was approved by the board.",
    "🙂 \N{COMBINING ACUTE ACCENT} \x00 control and combining characters",
]


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def embedder(request: pytest.FixtureRequest, server: ModelServer) -> Embedder:
    match request.param:
        case "embedded":
            return embedders(Settings())(sentence_encoder.MODEL, 512)
        case "openai":
            return embedders(Settings(openai_base_url=server.url))("openai/some-model", NATIVE)
        case "openai, another size":
            return embedders(Settings(openai_base_url=server.url))("openai/some-model", 96)
        case _:
            keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
            client = boto3.client("bedrock-runtime", "us-east-1", endpoint_url=server.url, **keys)
            return TitanEmbedder("amazon.titan-embed-text-v2:0", 256, client)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("embedder", ["embedded", "openai", "openai, another size", "bedrock"], indirect=True, scope="module")


def cosine(a, b) -> float:
    return math.sumprod(a, b) if hasattr(math, "sumprod") else sum(x * y for x, y in zip(a, b, strict=True))


def test_names_its_provider_and_model(embedder: Embedder) -> None:
    provider, _, name = embedder.model.partition("/")
    assert provider in {"embedded", "openai", "bedrock"} and name


def test_gives_one_vector_a_text_of_the_promised_size_and_unit_length(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert len(vectors) == len(TEXTS)
    for vector in vectors:
        assert len(vector) == embedder.dimensions
        assert all(isinstance(value, float) for value in vector)
        assert cosine(vector, vector) == pytest.approx(1, abs=1e-4)


def test_keeps_the_order_of_the_texts(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert cosine(vector, embedder.embed([text])[0]) == pytest.approx(1, abs=1e-5)
    assert cosine(together[0], together[3]) < 0.99


def test_says_the_same_twice(embedder: Embedder) -> None:
    assert embedder.embed(TEXTS) == embedder.embed(TEXTS)


def test_embeds_a_query_near_its_text(embedder: Embedder) -> None:
    query = embedder.embed_query(TEXTS[0])
    assert len(query) == embedder.dimensions
    similarities = [cosine(query, vector) for vector in embedder.embed(TEXTS)]
    assert max(similarities) == similarities[0] > 0.9


def test_no_texts_are_no_vectors(embedder: Embedder) -> None:
    assert list(embedder.embed([])) == []


def test_takes_more_texts_than_fit_one_request(embedder: Embedder) -> None:
    texts = [f"Fact number {i} is about {word}." for i, word in enumerate(["tea", "rain", "law"] * 50)]
    vectors = embedder.embed(texts)
    assert len(vectors) == 150
    assert cosine(vectors[149], embedder.embed_query(texts[149])) == pytest.approx(1, abs=1e-5)
