"""Any endpoint that speaks OpenAI's protocol: OpenAI itself, Ollama, vLLM, llama.cpp and others.

`POST /v1/embeddings` and `POST /v1/chat/completions` over urllib3, which boto3 and opensearch-py bring anyway.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .. import tokens
from ..clock import SystemClock
from ..ports import AnswerCut, Chance, Clock, Message, ModelError, ModelUnavailable
from ..settings import Settings
from .patience import Busy, within

if TYPE_CHECKING:
    import urllib3

OPENAI = "https://api.openai.com/v1"
EMBED_SECONDS = 20
"""All the time one `embed` request and its retries may take: a search waits for it."""
BATCH_TEXTS = 64
BATCH_TOKENS = 64_000
LARGEST_ANSWER = 32_000_000
"""Bytes; more is no answer to what we ask."""

_BUSY = {408, 409, 429, 500, 502, 503, 504}
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
"""Local reasoning models put their thoughts in front of the answer."""


class Endpoint:
    """One server and the key for it. The key goes to this server alone: redirects are not followed."""

    def __init__(
        self, base_url: str, api_key: str | None = None, *, clock: Clock | None = None, chance: Chance | None = None
    ) -> None:
        """`base_url` is the part before `/embeddings`; one without a path gets `/v1`."""
        base_url = base_url.rstrip("/")
        self._base_url = base_url if urlsplit(base_url).path else f"{base_url}/v1"
        self._api_key = api_key
        self.clock = clock or SystemClock()
        self._chance = chance or random.SystemRandom()

    def post(self, path: str, body: dict[str, Any], timeout_seconds: float) -> dict[str, Any]:
        """The JSON object it answers. Raises `ModelUnavailable`, or `Refused` when it does not accept the request."""
        payload = json.dumps(body).encode()
        return within(timeout_seconds, lambda left: self._once(path, payload, left), self.clock, self._chance)

    def _once(self, path: str, payload: bytes, seconds: float) -> dict[str, Any]:
        import urllib3

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        deadline = self.clock.now() + seconds * 1000
        try:
            response = self._pool.request(
                "POST",
                self._base_url + path,
                body=payload,
                headers=headers,
                timeout=urllib3.Timeout(connect=min(seconds, 5), read=seconds),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                content = self._read(response, deadline)
            finally:
                response.close()  # a connection read to its end is back in the pool already
        except (urllib3.exceptions.TimeoutError, TimeoutError) as error:
            # A refused connection is among urllib3's timeouts, but not one.
            if isinstance(error, urllib3.exceptions.NewConnectionError):
                raise _unreachable() from error
            raise ModelUnavailable("The OpenAI-compatible endpoint did not answer in time.") from error
        except urllib3.exceptions.HTTPError as error:
            raise _unreachable() from error
        return _answer(response.status, response.headers.get("Retry-After"), content)

    def _read(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        parts, size = [], 0
        # read1 gives what has arrived, so that a server that drips its answer can't outlast the deadline.
        while part := response.read1(65_536):
            parts.append(part)
            size += len(part)
            if size > LARGEST_ANSWER:
                raise ModelUnavailable("The OpenAI-compatible endpoint answered more than any answer needs.")
            if self.clock.now() > deadline:
                raise TimeoutError
        return b"".join(parts)

    @cached_property
    def _pool(self) -> urllib3.PoolManager:
        import urllib3

        return urllib3.PoolManager(maxsize=8)


class Refused(ModelError):
    """The endpoint does not accept the request (400, 413, 422)."""


def endpoint(settings: Settings) -> Endpoint:
    """The endpoint of the settings; OpenAI's own when none is set."""
    return Endpoint(settings.openai_base_url or OPENAI, settings.openai_api_key)


def native_dimensions(server: Endpoint, name: str) -> int:
    """The size of the vectors a model gives when it is not told: asks it once."""
    return len(_vectors(server, {"model": name, "input": ["size"]}, 1)[0])


class OpenAIEmbedder:
    """An embedding model of such an endpoint. Vectors are brought to unit length, which not every server does."""

    def __init__(self, server: Endpoint, name: str, dimensions: int) -> None:
        self.model = f"openai/{name}"
        self.dimensions = dimensions
        self._server = server
        self._name = name
        self._ask_for_size = False

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One unit vector a text, in order, by requests of at most 64 texts. Raises `ModelUnavailable` or `ModelError`."""
        return [vector for batch in _batches(texts) for vector in self._embed(batch)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query: embedded like any text."""
        return self.embed([text])[0]

    def _embed(self, batch: list[str]) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._name, "input": batch}
        if not self._ask_for_size:
            vectors = _vectors(self._server, body, len(batch))
            if len(vectors[0]) == self.dimensions:
                return self._checked(vectors)
            # Servers of models with one size refuse `dimensions`, so it is sent only to those that need to be told.
            self._ask_for_size = True
        return self._checked(_vectors(self._server, {**body, "dimensions": self.dimensions}, len(batch)))

    def _checked(self, vectors: list[list[float]]) -> list[list[float]]:
        for vector in vectors:
            if len(vector) != self.dimensions:
                raise ModelUnavailable(f"{self.model} gave {len(vector)} dimensions instead of {self.dimensions}.")
        return [self._unit(vector) for vector in vectors]

    def _unit(self, vector: list[float]) -> list[float]:
        length = math.hypot(*vector)
        if not math.isfinite(length) or length == 0:
            raise ModelError(f"{self.model} gave a vector without direction.")
        return [value / length for value in vector]


class OpenAIChat:
    """A chat model of such an endpoint."""

    def __init__(self, server: Endpoint, name: str, *, window: int) -> None:
        self.model = f"openai/{name}"
        self.window = window
        self._server = server
        self._name = name
        self._limit = "max_tokens"

    def complete(self, system: str, messages: Sequence[Message], *, max_tokens: int, timeout_seconds: float) -> str:
        """The answer's text. Raises `AnswerCut` at `max_tokens`, `ModelUnavailable` for a pause, `ModelError` for the rest."""
        talk = [{"role": "system", "content": system}] if system else []
        talk += [{"role": message.role, "content": message.content} for message in messages]
        body = {"model": self._name, "messages": talk}
        deadline = self._server.clock.now() + timeout_seconds * 1000
        try:
            answer = self._server.post("/chat/completions", {**body, self._limit: max_tokens}, timeout_seconds)
        except Refused as refused:
            if self._limit != "max_tokens" or "max_completion_tokens" not in str(refused):
                raise
            # OpenAI's newer models know the limit by another name only.
            self._limit = "max_completion_tokens"
            left = (deadline - self._server.clock.now()) / 1000
            answer = self._server.post("/chat/completions", {**body, self._limit: max_tokens}, left)
        return self._text(answer)

    def _text(self, answer: dict[str, Any]) -> str:
        try:
            choice = answer["choices"][0]
            message, reason = choice["message"], choice.get("finish_reason")
            text, refusal = message.get("content") or "", message.get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ModelUnavailable(f"{self.model} did not answer with a chat completion.") from error
        if refusal:
            raise ModelError(f"{self.model} refused.")
        if reason == "content_filter":
            raise ModelError(f"{self.model} withheld its answer: a content filter stepped in.")
        if not isinstance(text, str):
            raise ModelError(f"{self.model} answered something other than text.")
        text = _THOUGHT.sub("", text, count=1) if text.lstrip().startswith("<think>") else text
        if reason == "length":
            raise AnswerCut(f"{self.model} did not finish within its token limit.", text)
        if not text.strip():
            raise ModelError(f"{self.model} answered nothing.")
        return text


def _unreachable() -> Busy:
    return Busy(ModelUnavailable("The OpenAI-compatible endpoint (MEMORY_BANKS_OPENAI_BASE_URL) can't be reached."))


def _answer(status: int, retry_after: str | None, content: bytes) -> dict[str, Any]:
    if status in _BUSY:
        busy = ModelUnavailable(f"The OpenAI-compatible endpoint is busy or failing ({status}).")
        raise Busy(busy, float(retry_after) if retry_after and retry_after.isdecimal() else None)
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        answer = None
    if status == 200 and isinstance(answer, dict):
        return answer
    if status == 200:
        raise ModelUnavailable("The OpenAI-compatible endpoint did not answer with a JSON object.")
    if status in {401, 403}:
        raise ModelUnavailable("The OpenAI-compatible endpoint does not accept the API key (MEMORY_BANKS_OPENAI_API_KEY).")
    message = _complaint(answer)
    if status in {400, 413, 422}:
        raise Refused(f"The OpenAI-compatible endpoint refused the request: {message or status}")
    raise ModelUnavailable(f"The OpenAI-compatible endpoint answered {status}{': ' if message else ''}{message}")


def _complaint(answer: object) -> str:
    """The message of an error answer: `{"error": {"message": …}}`, or `{"error": "…"}` with some servers."""
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or "")[:300]


def _vectors(server: Endpoint, body: dict[str, Any], count: int) -> list[list[float]]:
    answer = server.post("/embeddings", body, EMBED_SECONDS)
    try:
        data = sorted(enumerate(answer["data"]), key=lambda pair: pair[1].get("index", pair[0]))
        places = [item.get("index", place) for place, item in data]
        vectors = [[float(value) for value in item["embedding"]] for _, item in data]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelUnavailable("The OpenAI-compatible endpoint did not answer with embeddings.") from error
    if places != list(range(count)):
        raise ModelUnavailable(
            f"The OpenAI-compatible endpoint gave {len(vectors)} vectors for {count} texts, or numbered them wrongly."
        )
    return vectors


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        count = tokens.count(text)
        if batch and (len(batch) == BATCH_TEXTS or size + count > BATCH_TOKENS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += count
    if batch:
        yield batch
