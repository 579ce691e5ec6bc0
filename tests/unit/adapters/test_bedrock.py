"""The Bedrock adapters, with botocore's Stubber checking requests and answers against the service's own model."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator

import boto3
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber
from memory_banks.adapters.bedrock import BedrockChat, TitanEmbedder
from memory_banks.ports import AnswerCut, Message, ModelError, ModelUnavailable

from tests.doubles.clock import ManualClock
from tests.doubles.model_server import ModelServer, Reply

TITAN = "amazon.titan-embed-text-v2:0"
NOVA = "amazon.nova-lite-v1:0"


def client_of(**options):
    return boto3.client("bedrock-runtime", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x", **options)


@pytest.fixture
def client():
    return client_of()


@pytest.fixture
def stub(client) -> Iterator[Stubber]:
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def chat(client, clock: ManualClock) -> BedrockChat:
    return BedrockChat(f"bedrock/{NOVA}", window=100_000, clients=lambda _: client, clock=clock, chance=random.Random(0))


def body(content: object) -> StreamingBody:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return StreamingBody(io.BytesIO(raw), len(raw))


def invoked(text: str, content: object, dimensions: int = 256) -> tuple[dict, dict]:
    expected = {
        "modelId": TITAN,
        "accept": "application/json",
        "contentType": "application/json",
        "body": json.dumps({"inputText": text, "dimensions": dimensions, "normalize": True}),
    }
    return {"body": body(content), "contentType": "application/json"}, expected


def converse(text: str | None, reason: str = "end_turn") -> dict:
    content = [] if text is None else [{"text": text}]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason,
        "usage": {"inputTokens": 10, "outputTokens": 3, "totalTokens": 13},
        "metrics": {"latencyMs": 9},
    }


def ask(chat: BedrockChat, seconds: float = 30) -> str:
    return chat.complete("Be brief.", [Message("user", "Hello")], max_tokens=50, timeout_seconds=seconds)


# Titan


@pytest.mark.parametrize("dimensions", [256, 512, 1024])
def test_titan_is_asked_for_the_size_and_unit_length(client, stub, dimensions) -> None:
    vector = [1.0] + [0] * (dimensions - 1)
    stub.add_response("invoke_model", *invoked("one", {"embedding": vector, "inputTextTokenCount": 1}, dimensions))
    answer = TitanEmbedder(TITAN, dimensions, client).embed(["one"])
    assert answer == [vector]
    assert all(isinstance(value, float) for value in answer[0])


@pytest.mark.parametrize("content", [b"{broken", b"", {}, {"embedding": None}, {"message": "?"}, []])
def test_what_is_no_embedding_is_a_pause(client, stub, content) -> None:
    stub.add_response("invoke_model", *invoked("one", content))
    with pytest.raises(ModelUnavailable, match="did not answer with an embedding"):
        TitanEmbedder(TITAN, 256, client).embed(["one"])


def test_a_vector_of_another_size_is_a_pause(client, stub) -> None:
    stub.add_response("invoke_model", *invoked("one", {"embedding": [1.0] * 1024}))
    with pytest.raises(ModelUnavailable, match="1024 dimensions instead of 256"):
        TitanEmbedder(TITAN, 256, client).embed(["one"])


@pytest.mark.parametrize(
    "code",
    [
        "ThrottlingException",
        "ServiceUnavailableException",
        "InternalServerException",
        "ModelTimeoutException",
        "ServiceQuotaExceededException",
    ],
)
def test_a_busy_bedrock_is_a_pause(client, stub, code) -> None:
    stub.add_client_error("invoke_model", code, "Too many requests", 429)
    with pytest.raises(ModelUnavailable, match=code):
        TitanEmbedder(TITAN, 256, client).embed(["one"])


def test_no_permission_is_a_pause_that_says_what_to_grant(client, stub) -> None:
    stub.add_client_error("invoke_model", "AccessDeniedException", "User: arn:aws:sts::1:x is not authorized", 403)
    with pytest.raises(ModelUnavailable, match="bedrock:InvokeModel") as error:
        TitanEmbedder(TITAN, 256, client).embed(["one"])
    assert "arn:aws:sts" not in str(error.value)


def test_a_model_that_is_not_there_is_a_pause(client, stub) -> None:
    stub.add_client_error("invoke_model", "ValidationException", "The provided model identifier is invalid.", 400)
    with pytest.raises(ModelUnavailable, match="does not offer"):
        TitanEmbedder(TITAN, 256, client).embed(["one"])


def test_a_refused_text_is_the_text_s_error(client, stub) -> None:
    stub.add_client_error("invoke_model", "ValidationException", "400 Bad Request: Too many input tokens", 400)
    with pytest.raises(ModelError, match="Too many input tokens") as error:
        TitanEmbedder(TITAN, 256, client).embed(["one"])
    assert not isinstance(error.value, ModelUnavailable)


def test_no_credentials_are_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with pytest.raises(ModelUnavailable, match="NoCredentialsError"):
        TitanEmbedder(TITAN, 256).embed(["one"])


def test_many_texts_are_under_way_together_and_come_back_in_order() -> None:
    texts = [f"text number {i}" for i in range(20)]
    with ModelServer() as server:
        embedder = TitanEmbedder(TITAN, 256, client_of(endpoint_url=server.url))
        singly = [embedder.embed([text])[0] for text in texts]
        assert server.most_at_once == 1
        server.instead.extend(Reply(delay_seconds=0.2) for _ in range(8))
        assert embedder.embed(texts) == singly
        assert 4 <= server.most_at_once <= 8
        assert len(server.seen) == 40
        assert server.seen[0].path == "/model/amazon.titan-embed-text-v2%3A0/invoke"


def test_a_throttled_text_is_tried_again_by_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    throttle = Reply(429, {"message": "Too many requests"}, {"x-amzn-errortype": "ThrottlingException"})
    pauses = []
    with ModelServer() as server:
        for name, value in {"ENDPOINT_URL_BEDROCK_RUNTIME": server.url, "DEFAULT_REGION": "us-east-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        monkeypatch.setattr("botocore.endpoint.time.sleep", pauses.append)
        server.instead.extend([throttle, throttle])
        assert len(TitanEmbedder(TITAN, 256).embed(["one"])[0]) == 256
        assert len(server.seen) == 3
        server.instead.extend([throttle] * 9)
        with pytest.raises(ModelUnavailable, match="ThrottlingException"):
            TitanEmbedder(TITAN, 256).embed(["one"])
        assert len(server.seen) == 7
    assert len([pause for pause in pauses if pause]) == 5


def test_one_failing_text_fails_the_batch_and_names_no_other() -> None:
    with ModelServer() as server:
        server.instead.append(Reply(400, {"message": "Too many input tokens"}, {"x-amzn-errortype": "ValidationException"}))
        with pytest.raises(ModelError, match="Too many input tokens"):
            TitanEmbedder(TITAN, 256, client_of(endpoint_url=server.url)).embed(["one", "two", "three"])


# Converse


def test_converse_is_asked_as_the_api_wants_it(chat, stub) -> None:
    expected = {
        "modelId": NOVA,
        "system": [{"text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
        "inferenceConfig": {"maxTokens": 50},
    }
    stub.add_response("converse", converse("A summary."), expected)
    assert ask(chat) == "A summary."


def test_no_system_prompt_is_sent_as_none(chat, stub) -> None:
    expected = {
        "modelId": NOVA,
        "messages": [
            {"role": "user", "content": [{"text": "a"}]},
            {"role": "assistant", "content": [{"text": "b"}]},
            {"role": "user", "content": [{"text": "c"}]},
        ],
        "inferenceConfig": {"maxTokens": 5},
    }
    stub.add_response("converse", converse("d"), expected)
    talk = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
    assert chat.complete("", talk, max_tokens=5, timeout_seconds=9) == "d"


def test_reasoning_is_not_part_of_the_answer(chat, stub) -> None:
    response = converse("A summary.")
    response["output"]["message"]["content"].insert(0, {"reasoningContent": {"reasoningText": {"text": "Hm."}}})
    stub.add_response("converse", response)
    assert ask(chat) == "A summary."


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (converse("Sorry.", "guardrail_intervened"), "guardrail"),
        (converse("Some", "content_filtered"), "content filter"),
        (converse("", "end_turn"), "answered nothing"),
        (converse(None, "end_turn"), "answered nothing"),
        (converse(None, "tool_use"), "tool_use"),
        (converse("x", "malformed_model_output"), "malformed_model_output"),
        (converse("x", "model_context_window_exceeded"), "model_context_window_exceeded"),
    ],
)
def test_what_is_no_answer_is_an_error(chat, stub, response, says) -> None:
    stub.add_response("converse", response)
    with pytest.raises(ModelError, match=says):
        ask(chat)


def test_an_answer_cut_by_the_limit_says_so_and_carries_its_text(chat, stub) -> None:
    stub.add_response("converse", converse("Alice went to", "max_tokens"))
    with pytest.raises(AnswerCut) as error:
        ask(chat)
    assert error.value.text == "Alice went to"


def test_a_throttle_is_tried_again_after_a_pause(chat, stub, clock) -> None:
    stub.add_client_error("converse", "ThrottlingException", http_status_code=429)
    stub.add_client_error("converse", "ServiceUnavailableException", http_status_code=503)
    stub.add_response("converse", converse("A summary."))
    assert ask(chat) == "A summary."
    assert len(clock.slept) == 2


def test_a_lasting_throttle_is_a_pause_within_the_time(chat, stub, clock) -> None:
    for _ in range(2):
        stub.add_client_error("converse", "ThrottlingException", http_status_code=429)
    start = clock.now()
    with pytest.raises(ModelUnavailable, match="ThrottlingException"):
        ask(chat, seconds=0.5)
    assert clock.now() - start <= 500


def test_a_refused_request_is_not_tried_again(chat, stub) -> None:
    stub.add_client_error("converse", "ValidationException", "The text field is blank", 400)
    with pytest.raises(ModelError, match="blank"):
        ask(chat)


def test_the_timeout_is_the_time_left(clock) -> None:
    asked = []
    with ModelServer() as server:
        server.instead.append(Reply(delay_seconds=2))

        def clients(seconds: int):
            from botocore.config import Config

            asked.append(seconds)
            config = Config(read_timeout=0.1, retries={"total_max_attempts": 1})
            return client_of(endpoint_url=server.url, config=config)

        chat = BedrockChat(f"bedrock/{NOVA}", window=9_000, clients=clients, clock=clock)
        with pytest.raises(ModelUnavailable, match="ReadTimeoutError"):
            ask(chat, seconds=17.5)
    assert asked == [17]


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("bedrock/us.amazon.nova-lite-v1:0", "us.amazon.nova-lite-v1:0"),
        ("bedrock/arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", None),
        ("anthropic/claude-haiku-4-5-20251001-v1:0", "anthropic.claude-haiku-4-5-20251001-v1:0"),
        ("anthropic/eu.anthropic.claude-haiku-4-5-20251001-v1:0", "eu.anthropic.claude-haiku-4-5-20251001-v1:0"),
    ],
)
def test_model_ids_and_profiles_are_taken_as_given(client, stub, clock, model, asked) -> None:
    expected = {
        "modelId": asked or model.removeprefix("bedrock/"),
        "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
        "inferenceConfig": {"maxTokens": 5},
    }
    stub.add_response("converse", converse("Hi."), expected)
    chat = BedrockChat(model, window=9_000, clients=lambda _: client, clock=clock)
    assert chat.model == model
    assert chat.complete("", [Message("user", "Hello")], max_tokens=5, timeout_seconds=9) == "Hi."
