"""What every `ports.ChatModel` promises, on each adapter that runs here: Bedrock and OpenAI over HTTP to a local server."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.config import Config
from memory_banks.adapters.bedrock import BedrockChat
from memory_banks.adapters.embedded.summariser import ExtractiveSummariser
from memory_banks.adapters.openai_compatible import Endpoint, OpenAIChat
from memory_banks.fencing import Fence, Piece
from memory_banks.ports import AnswerCut, ChatModel, Message, ModelError, ModelUnavailable

from tests.doubles.model_server import ModelServer, Reply

ADAPTERS = ["extractive", "openai", "bedrock"]
REMOTE = ADAPTERS[1:]
WINDOW = 32_000
SYSTEM = "Condense what is fenced."


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def chat(request: pytest.FixtureRequest, server: ModelServer) -> ChatModel:
    if request.param == "extractive":
        return ExtractiveSummariser(WINDOW)
    if request.param == "openai":
        return OpenAIChat(Endpoint(server.url), "model", window=WINDOW)

    def clients(seconds: int):
        return boto3.client(
            "bedrock-runtime",
            "us-east-1",
            endpoint_url=server.url,
            aws_access_key_id="x",
            aws_secret_access_key="x",
            config=Config(read_timeout=min(seconds, 1), retries={"total_max_attempts": 1}),
        )

    return BedrockChat("bedrock/some.model-v1:0", window=WINDOW, clients=clients)


def material() -> Message:
    texts = ["Alice moved to Lisbon in May.", "She works at the aquarium.", "Yes.", "Her rent is 900 euros."]
    fence = Fence.around(texts)
    return Message("user", "\n".join(fence.enclose(Piece(text, "entry", "alice")) for text in texts))


def ask(chat: ChatModel, seconds: float = 10, max_tokens: int = 100) -> str:
    return chat.complete(SYSTEM, [material()], max_tokens=max_tokens, timeout_seconds=seconds)


@pytest.mark.parametrize("chat", ADAPTERS, indirect=True)
def test_names_its_provider_and_window(chat: ChatModel) -> None:
    provider, _, name = chat.model.partition("/")
    assert provider in {"embedded", "openai", "bedrock"} and name
    assert chat.window == WINDOW


@pytest.mark.parametrize("chat", ADAPTERS, indirect=True)
def test_answers_with_text(chat: ChatModel) -> None:
    answer = ask(chat)
    assert isinstance(answer, str)
    assert answer.strip()


@pytest.mark.parametrize("chat", REMOTE, indirect=True)
def test_the_model_gets_what_is_given(chat: ChatModel, server: ModelServer) -> None:
    talk = [Message("user", "one ünï 🙂"), Message("assistant", "two"), Message("user", "three")]
    chat.complete(SYSTEM, talk, max_tokens=77, timeout_seconds=10)
    body = str(server.seen[0].body)
    places = [body.index(part) for part in ("one ünï 🙂", "two", "three")]
    assert places == sorted(places)
    assert SYSTEM in body
    assert "77" in body


@pytest.mark.parametrize("chat", REMOTE, indirect=True)
def test_unicode_comes_back_as_it_was(chat: ChatModel, server: ModelServer) -> None:
    server.chat_text = 'Ünïcödé 🙂 "quoted" \\ 日本語\n\ttab'
    assert ask(chat) == server.chat_text


@pytest.mark.parametrize("chat", REMOTE, indirect=True)
def test_a_cut_answer_carries_its_text(chat: ChatModel, server: ModelServer) -> None:
    server.chat_text, server.finish_reason, server.stop_reason = "Alice mov", "length", "max_tokens"
    with pytest.raises(AnswerCut) as error:
        ask(chat)
    assert error.value.text == "Alice mov"


@pytest.mark.parametrize("chat", REMOTE, indirect=True)
def test_a_filtered_answer_is_a_model_error(chat: ChatModel, server: ModelServer) -> None:
    server.finish_reason, server.stop_reason = "content_filter", "content_filtered"
    with pytest.raises(ModelError) as error:
        ask(chat)
    assert not isinstance(error.value, ModelUnavailable)


@pytest.mark.parametrize("chat", REMOTE, indirect=True)
def test_a_blank_answer_is_a_model_error(chat: ChatModel, server: ModelServer) -> None:
    server.chat_text = " \n"
    with pytest.raises(ModelError):
        ask(chat)


@pytest.mark.parametrize("chat", REMOTE, indirect=True)
def test_a_throttle_passes(chat: ChatModel, server: ModelServer) -> None:
    server.instead.append(Reply(429, {"message": "slow down"}, {"x-amzn-errortype": "ThrottlingException"}))
    assert ask(chat) == server.chat_text
    assert len(server.seen) == 2


@pytest.mark.parametrize("chat", REMOTE, indirect=True)
def test_no_answer_in_time_is_a_pause(chat: ChatModel, server: ModelServer) -> None:
    server.instead.append(Reply(delay_seconds=2))
    with pytest.raises(ModelUnavailable):
        ask(chat, seconds=0.3)


@pytest.mark.parametrize("chat", REMOTE, indirect=True)
def test_no_permission_is_a_pause(chat: ChatModel, server: ModelServer) -> None:
    server.instead.append(Reply(403, {"message": "no"}, {"x-amzn-errortype": "AccessDeniedException"}))
    with pytest.raises(ModelUnavailable):
        ask(chat)
    assert len(server.seen) == 1
