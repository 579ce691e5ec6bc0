"""What the rerankers ask, and which is built for a setting."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from memory_banks.adapters.bedrock_rerank import BedrockReranker
from memory_banks.adapters.models import reranker
from memory_banks.adapters.rerank_endpoint import EndpointReranker
from memory_banks.bootstrap import Wiring
from memory_banks.ports import ModelUnavailable, UnknownModel
from memory_banks.settings import Settings

from tests.doubles.model_server import ModelServer

TOKYO = "arn:aws:bedrock:ap-northeast-1::foundation-model/cohere.rerank-v3-5:0"


def client_of(region: str, **options: Any) -> Any:
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    return boto3.client("bedrock-agent-runtime", region, **keys, **options)


def asked(region: str, name: str) -> tuple[dict[str, Any], list[str | None]]:
    """What Bedrock is asked in a region, checked by botocore against the service's own model; and the regions of clients."""
    client = client_of(region)
    regions: list[str | None] = []

    def clients(_: int, wanted: str | None) -> Any:
        regions.append(wanted)
        return client

    seen: dict[str, Any] = {}
    client.meta.events.register("before-parameter-build.*.Rerank", lambda params, **_: seen.update(params))
    with Stubber(client) as stub:
        stub.add_response("rerank", {"results": [{"index": 0, "relevanceScore": 0.25}]})
        assert BedrockReranker(name, clients).rerank("which?", ["this"], timeout_seconds=3) == [0.25]
    return seen, regions


@pytest.mark.parametrize(
    ("region", "arn"),
    [
        ("eu-central-1", "arn:aws:bedrock:eu-central-1::foundation-model/amazon.rerank-v1:0"),
        ("us-gov-west-1", "arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/amazon.rerank-v1:0"),
    ],
)
def test_a_model_id_is_the_model_of_our_own_region_and_partition(region: str, arn: str) -> None:
    request, regions = asked(region, "amazon.rerank-v1:0")
    assert request == {
        "queries": [{"type": "TEXT", "textQuery": {"text": "which?"}}],
        "sources": [{"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": "this"}}}],
        "rerankingConfiguration": {
            "type": "BEDROCK_RERANKING_MODEL",
            "bedrockRerankingConfiguration": {"modelConfiguration": {"modelArn": arn}, "numberOfResults": 1},
        },
    }
    assert regions == [None]


def test_an_arn_is_taken_as_it_is_and_asked_in_its_own_region() -> None:
    request, regions = asked("us-east-1", TOKYO)
    configuration = request["rerankingConfiguration"]["bedrockRerankingConfiguration"]
    assert configuration["modelConfiguration"]["modelArn"] == TOKYO
    assert regions == ["ap-northeast-1"]


def test_without_credentials_it_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with pytest.raises(ModelUnavailable, match="NoCredentialsError"):
        BedrockReranker("amazon.rerank-v1:0").rerank("q", ["t"], timeout_seconds=1)


def test_the_client_it_builds_asks_the_region_of_the_arn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as server:
        for name, value in {
            "ENDPOINT_URL_BEDROCK_AGENT_RUNTIME": server.url,
            "DEFAULT_REGION": "us-east-1",
            "ACCESS_KEY_ID": "x",
            "SECRET_ACCESS_KEY": "x",
        }.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        chosen = Wiring(Settings(rerank_model=f"bedrock/{TOKYO}")).reranker
        assert chosen is not None
        assert chosen.rerank("a dog", ["a cat", "a dog"], timeout_seconds=3) == [0.5, 1.0]
        assert len(server.seen) == 1
        assert "/ap-northeast-1/bedrock/" in server.seen[0].headers["authorization"]


def test_no_setting_is_no_reranker() -> None:
    assert Wiring(Settings()).reranker is None
    assert reranker(Settings()) is None


@pytest.mark.parametrize("model", ["amazon.rerank-v1:0", "cohere/rerank-v3-5", "embedded/x", "openai/"])
def test_an_unknown_reranker_says_what_is_allowed(model: str) -> None:
    with pytest.raises(UnknownModel, match=r"bedrock/amazon\.rerank-v1:0, .*openai/MODEL"):
        reranker(Settings(rerank_model=model))


@pytest.mark.parametrize(
    ("settings", "authorization"),
    [
        ({"openai_api_key": "theirs"}, None),
        ({"openai_api_key": "theirs", "rerank_api_key": "ours"}, "Bearer ours"),
    ],
)
def test_the_key_of_the_openai_compatible_endpoint_goes_to_no_other(settings: dict[str, str], authorization: str | None) -> None:
    with ModelServer() as server:
        chosen = reranker(Settings(rerank_model="openai/bge", rerank_base_url=f"{server.url}/v2", **settings))  # type: ignore[arg-type]
        assert isinstance(chosen, EndpointReranker)
        chosen.rerank("a dog", ["a cat"], timeout_seconds=3)
        (seen,) = server.seen
        assert seen.path == "/v2/rerank"
        assert seen.headers.get("authorization") == authorization
        assert seen.body == {"model": "bge", "query": "a dog", "documents": ["a cat"], "top_n": 1}


def test_without_an_address_of_its_own_the_openai_compatible_endpoint_is_asked() -> None:
    with ModelServer() as server:
        chosen = reranker(Settings(rerank_model="openai/bge", openai_base_url=server.url, openai_api_key="k"))
        assert chosen is not None
        assert chosen.rerank("a dog", ["a cat"], timeout_seconds=3) == [0.5]
        assert (server.seen[0].path, server.seen[0].headers["authorization"]) == ("/v1/rerank", "Bearer k")
