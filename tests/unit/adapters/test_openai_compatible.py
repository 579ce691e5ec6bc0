"""The OpenAI-compatible adapter against a real HTTP server that speaks (and breaks) the protocol."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from memory_banks.adapters.openai_compatible import Endpoint, OpenAIChat, OpenAIEmbedder, endpoint, native_dimensions
from memory_banks.ports import AnswerCut, Message, ModelError, ModelUnavailable
from memory_banks.settings import Settings

from tests.doubles.clock import ManualClock
from tests.doubles.model_server import NATIVE, ModelServer, Reply, vector

KEY = "sk-secret-7"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def reached(server: ModelServer, clock: ManualClock) -> Endpoint:
    return Endpoint(server.url, KEY, clock=clock, chance=random.Random(0))


@pytest.fixture
def embedder(reached: Endpoint) -> OpenAIEmbedder:
    return OpenAIEmbedder(reached, "embedding-model", NATIVE)


@pytest.fixture
def chat(reached: Endpoint) -> OpenAIChat:
    return OpenAIChat(reached, "chat-model", window=8_000)


def ask(chat: OpenAIChat, seconds: float = 30) -> str:
    return chat.complete("Be brief.", [Message("user", "Hello")], max_tokens=50, timeout_seconds=seconds)


def refuse(message: str) -> Reply:
    return Reply(400, {"error": {"message": message, "type": "invalid_request_error", "param": None}})


# Requests


def test_sends_the_protocol_s_embedding_request(server, embedder) -> None:
    embedder.embed(["one", "two"])
    [seen] = server.seen
    assert seen.path == "/v1/embeddings"
    assert seen.body == {"model": "embedding-model", "input": ["one", "two"]}
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["content-type"] == "application/json"


def test_sends_no_authorization_without_a_key(server, clock) -> None:
    OpenAIEmbedder(Endpoint(server.url, clock=clock), "m", NATIVE).embed(["one"])
    assert "authorization" not in server.seen[0].headers


def test_keeps_a_base_url_with_a_path(server, clock) -> None:
    OpenAIEmbedder(Endpoint(f"{server.url}/proxy/v3/", clock=clock), "m", NATIVE).embed(["one"])
    assert server.seen[0].path == "/proxy/v3/embeddings"


def test_sends_the_protocol_s_chat_request(server, chat) -> None:
    assert ask(chat) == "A summary."
    [seen] = server.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.body == {
        "model": "chat-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "max_tokens": 50,
    }


def test_learns_the_newer_name_of_the_token_limit(server, chat) -> None:
    server.instead.append(refuse("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."))
    assert ask(chat) == ask(chat) == "A summary."
    assert [sorted(seen.body) for seen in server.seen[1:]] == [["max_completion_tokens", "messages", "model"]] * 2


# Vectors


def test_brings_vectors_to_unit_length_in_the_order_of_the_texts(embedder) -> None:
    texts = ["alpha beta", "gamma", "delta delta"]
    assert embedder.embed(texts) == [pytest.approx(vector(text, NATIVE)) for text in texts]


def test_batches_by_count_and_by_size(server, embedder) -> None:
    embedder.embed(["x"] * 130)
    assert [len(seen.body["input"]) for seen in server.seen] == [64, 64, 2]
    server.seen.clear()
    embedder.embed(["y" * 150_000] * 3)
    assert [len(seen.body["input"]) for seen in server.seen] == [1, 1, 1]


def test_asks_for_a_size_only_when_the_native_one_differs(server, reached) -> None:
    shorter = OpenAIEmbedder(reached, "m", 32)
    assert len(shorter.embed_query("one")) == len(shorter.embed_query("two")) == 32
    assert [seen.body.get("dimensions") for seen in server.seen] == [None, 32, 32]


def test_a_server_that_ignores_the_size_is_an_error(server, reached) -> None:
    deaf = Reply(200, {"data": [{"index": 0, "embedding": [1.0, 0.0]}]})
    server.instead.extend([deaf, deaf])
    with pytest.raises(ModelUnavailable, match="2 dimensions instead of 32"):
        OpenAIEmbedder(reached, "m", 32).embed_query("one")


def test_asks_the_native_size_once(server, reached) -> None:
    assert native_dimensions(reached, "m") == NATIVE
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": "AACAPw=="}],
        "nonsense",
        None,
    ],
)
def test_a_wrong_number_of_vectors_is_no_answer(server, embedder, data) -> None:
    server.instead.append(Reply(200, {"data": data}))
    with pytest.raises(ModelUnavailable):
        embedder.embed(["one", "two"])


@pytest.mark.parametrize("bad", [b"[0, 0]", b"[NaN, 1]", b"[1e999, 1]"])
def test_a_vector_without_direction_is_an_error_of_the_text(server, reached, bad) -> None:
    server.instead.append(Reply(200, b'{"data": [{"index": 0, "embedding": ' + bad + b"}]}"))
    with pytest.raises(ModelError, match="without direction") as error:
        OpenAIEmbedder(reached, "m", 2).embed(["one"])
    assert not isinstance(error.value, ModelUnavailable)


# Failures


@pytest.mark.parametrize("body", [b"{broken", b"<html>Bad gateway</html>", b"", b"[1, 2]", b"[" * 100_000])
def test_broken_json_is_no_answer(server, embedder, chat, body) -> None:
    server.instead.extend([Reply(200, body), Reply(200, body)])
    with pytest.raises(ModelUnavailable, match="JSON object"):
        embedder.embed(["one"])
    with pytest.raises(ModelUnavailable, match="JSON object"):
        ask(chat)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_busy_then_well_is_an_answer_after_a_pause(server, embedder, clock, status) -> None:
    server.instead.append(Reply(status, {"error": {"message": "busy"}}))
    assert len(embedder.embed(["one"])) == 1
    assert len(server.seen) == 2
    assert 0.1 < sum(clock.slept) < 0.3


def test_waits_as_long_as_the_server_asks(server, chat, clock) -> None:
    server.instead.append(Reply(429, {}, {"Retry-After": "7"}))
    assert ask(chat) == "A summary."
    assert clock.slept == [7]


def test_does_not_wait_longer_than_its_time(server, chat, clock) -> None:
    server.instead.append(Reply(429, {}, {"Retry-After": "60"}))
    with pytest.raises(ModelUnavailable, match="429"):
        ask(chat, seconds=30)
    assert clock.slept == []
    assert len(server.seen) == 1


def test_gives_up_on_a_server_that_stays_busy(server, embedder, clock) -> None:
    server.instead.extend([Reply(503, b"down")] * 10)
    with pytest.raises(ModelUnavailable, match="503"):
        embedder.embed(["one"])
    assert len(server.seen) == 4
    assert sum(clock.slept) < 2


def test_no_answer_in_time_is_a_pause(server, chat) -> None:
    server.instead.append(Reply(delay_seconds=1))
    with pytest.raises(ModelUnavailable, match="in time"):
        ask(chat, seconds=0.1)


def test_an_answer_that_drips_does_not_outlast_the_time(server) -> None:
    server.instead.append(Reply(drip_seconds=0.02))
    chat = OpenAIChat(Endpoint(server.url), "m", window=8_000)
    with pytest.raises(ModelUnavailable, match="in time"):
        ask(chat, seconds=0.2)


def test_no_time_left_asks_nothing(server, chat) -> None:
    with pytest.raises(ModelUnavailable, match="No time"):
        ask(chat, seconds=0)
    assert server.seen == []


def test_nobody_listening_is_a_pause(clock) -> None:
    with ModelServer() as gone:
        url = gone.url
    with pytest.raises(ModelUnavailable, match="can't be reached"):
        OpenAIEmbedder(Endpoint(url, clock=clock), "m", NATIVE).embed(["one"])


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_a_pause_and_is_not_shown(server, embedder, status) -> None:
    server.instead.append(Reply(status, {"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    with pytest.raises(ModelUnavailable, match="MEMORY_BANKS_OPENAI_API_KEY") as error:
        embedder.embed(["one"])
    assert KEY not in str(error.value)


@pytest.mark.parametrize(
    "body", [{"error": {"message": 'model "m" not found, try pulling it first'}}, {"error": 'model "m" not found'}]
)
def test_a_missing_model_is_a_pause_that_says_so(server, embedder, body) -> None:
    server.instead.append(Reply(404, body))
    with pytest.raises(ModelUnavailable, match='404: model "m" not found'):
        embedder.embed(["one"])


def test_a_refused_text_is_the_text_s_error(server, embedder) -> None:
    server.instead.append(refuse("input is too long"))
    with pytest.raises(ModelError, match="input is too long") as error:
        embedder.embed(["one"])
    assert not isinstance(error.value, ModelUnavailable)
    assert len(server.seen) == 1


def test_a_redirect_is_not_followed(server, embedder) -> None:
    server.instead.append(Reply(307, {}, {"Location": f"{server.url}/elsewhere"}))
    with pytest.raises(ModelUnavailable, match="307"):
        embedder.embed(["one"])
    assert len(server.seen) == 1


# Answers that are none


def choice(message: object, reason: str | None = "stop") -> Reply:
    return Reply(200, {"choices": [{"index": 0, "message": message, "finish_reason": reason}]})


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (choice({"role": "assistant", "content": None, "refusal": "I can't help with that."}), "refused"),
        (choice({"role": "assistant", "content": "Some"}, "content_filter"), "content filter"),
        (choice({"role": "assistant", "content": ""}), "answered nothing"),
        (choice({"role": "assistant", "content": "  \n"}), "answered nothing"),
        (choice({"role": "assistant", "content": None}, "tool_calls"), "answered nothing"),
        (choice({"role": "assistant", "content": "<think>Hm.</think>\n"}), "answered nothing"),
        (choice({"role": "assistant", "content": [{"type": "text"}]}), "other than text"),
        (choice(None), "chat completion"),
        (Reply(200, {"choices": []}), "chat completion"),
        (Reply(200, {}), "chat completion"),
    ],
)
def test_what_is_no_answer_is_an_error(server, chat, reply, says) -> None:
    server.instead.append(reply)
    with pytest.raises(ModelError, match=says):
        ask(chat)


def test_an_answer_cut_by_the_limit_says_so_and_carries_its_text(server, chat) -> None:
    server.chat_text, server.finish_reason = "Alice went to", "length"
    with pytest.raises(AnswerCut) as error:
        ask(chat)
    assert error.value.text == "Alice went to"


def test_thoughts_are_not_part_of_the_answer(server, chat) -> None:
    server.chat_text = "<think>They want it short.</think>\n\nAlice left. She wrote <think>x</think>."
    assert ask(chat).strip() == "Alice left. She wrote <think>x</think>."


def test_settings_choose_the_endpoint(server) -> None:
    reached = endpoint(Settings(openai_base_url=server.url, openai_api_key=KEY))
    assert len(OpenAIEmbedder(reached, "m", NATIVE).embed_query("one")) == NATIVE
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
