"""Amazon Bedrock: Titan Text Embeddings V2 for vectors, the Converse API for chat.

Both take model ids, inference profile ids and ARNs as Bedrock names them. Credentials and region are boto3's usual ones.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ..clock import SystemClock
from ..ports import AnswerCut, Chance, Clock, Message, ModelError, ModelUnavailable
from .patience import Busy, within

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient
    from mypy_boto3_bedrock_runtime.type_defs import ConverseResponseTypeDef

CONCURRENT_CALLS = 8
"""Titan takes one text a call; this many are under way at once."""

_BUSY = {
    "ThrottlingException",
    "ServiceUnavailableException",
    "InternalServerException",
    "ModelNotReadyException",
    "ModelTimeoutException",
}
_UNREACHED = {"EndpointConnectionError", "ConnectTimeoutError", "ConnectionClosedError"}
_NOT_THE_TEXT = ("model identifier", "on-demand throughput", "inference profile", "end of its life")
"""A ValidationException with one of these is about the configured model, not about the text sent."""


class TitanEmbedder:
    """Titan Text Embeddings V2 in 256, 512 or 1024 dimensions. Throttles are retried by botocore's standard mode."""

    def __init__(self, model_id: str, dimensions: int, client: BedrockRuntimeClient | None = None) -> None:
        self.model = f"bedrock/{model_id}"
        self.dimensions = dimensions
        self._model_id = model_id
        self._built = client
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One unit vector a text, in order. Raises `ModelUnavailable`, or `ModelError` for a text that Titan refuses."""
        if len(texts) < 2:
            return [self.embed_query(text) for text in texts]
        return list(self._pool.map(self.embed_query, texts))

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query: Titan embeds it like any text."""
        body = {"inputText": text, "dimensions": self.dimensions, "normalize": True}
        try:
            response = self._client().invoke_model(
                modelId=self._model_id, body=json.dumps(body), accept="application/json", contentType="application/json"
            )
            vector = [float(value) for value in json.loads(response["body"].read())["embedding"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelUnavailable(f"{self.model} did not answer with an embedding.") from error
        except Exception as error:
            raise _mapped(error, self.model) from error
        if len(vector) != self.dimensions:
            raise ModelUnavailable(f"{self.model} gave {len(vector)} dimensions instead of {self.dimensions}.")
        return vector

    def _client(self) -> BedrockRuntimeClient:
        with self._lock:
            self._built = self._built or _client(read_timeout=10, attempts=4)
        return self._built

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(CONCURRENT_CALLS, thread_name_prefix="titan")


class BedrockChat:
    """A chat model through Converse. `anthropic/NAME` is the Bedrock model `anthropic.NAME`."""

    def __init__(
        self,
        model: str,
        *,
        window: int,
        clients: Callable[[int], BedrockRuntimeClient] | None = None,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        """`clients` gives the client whose read timeout is so many seconds."""
        self.model = model
        self.window = window
        provider, _, name = model.partition("/")
        plain = provider == "bedrock" or "anthropic." in name or name.startswith("arn:")
        self._model_id = name if plain else f"anthropic.{name}"
        self._clients = clients or lru_cache(maxsize=4)(lambda seconds: _client(read_timeout=seconds, attempts=1))
        self._clock = clock or SystemClock()
        self._chance = chance or random.SystemRandom()

    def complete(self, system: str, messages: Sequence[Message], *, max_tokens: int, timeout_seconds: float) -> str:
        """The answer's text. Raises `AnswerCut` at `max_tokens`, `ModelUnavailable` for a pause, `ModelError` for the rest."""

        def attempt(left: float) -> ConverseResponseTypeDef:
            try:
                return self._clients(max(1, int(left))).converse(
                    modelId=self._model_id,
                    messages=[{"role": message.role, "content": [{"text": message.content}]} for message in messages],
                    inferenceConfig={"maxTokens": max_tokens},
                    **({"system": [{"text": system}]} if system else {}),  # type: ignore[arg-type]
                )
            except Exception as error:
                mapped = _mapped(error, self.model)
                if isinstance(mapped, ModelUnavailable) and (_code(error) in _BUSY or type(error).__name__ in _UNREACHED):
                    raise Busy(mapped) from error
                raise mapped from error

        return self._text(within(timeout_seconds, attempt, self._clock, self._chance))

    def _text(self, response: ConverseResponseTypeDef) -> str:
        message = response.get("output", {}).get("message")
        text = "".join(block.get("text", "") for block in message["content"]) if message else ""
        match response["stopReason"]:
            case "max_tokens":
                raise AnswerCut(f"{self.model} did not finish within its token limit.", text)
            case "guardrail_intervened" | "content_filtered":
                raise ModelError(f"{self.model} withheld its answer: a guardrail or content filter stepped in.")
            case "end_turn" | "stop_sequence" if text.strip():
                return text
            case "end_turn" | "stop_sequence":
                raise ModelError(f"{self.model} answered nothing.")
            case reason:
                raise ModelError(f"{self.model} stopped without an answer: {reason}.")


def _client(read_timeout: int, attempts: int) -> BedrockRuntimeClient:
    import boto3
    from botocore.config import Config

    config = Config(
        connect_timeout=2,
        read_timeout=read_timeout,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=CONCURRENT_CALLS * 2,
    )
    # A session of its own: boto3's default one is not safe to build clients from in several threads.
    return boto3.Session().client("bedrock-runtime", config=config)


def _code(error: Exception) -> str:
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _mapped(error: Exception, model: str) -> ModelError:
    """What a botocore error means. Anything but a complaint about the text is a pause, and anything not botocore's is raised."""
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, ClientError):
        code, message = _code(error), str(error.response["Error"].get("Message", ""))
        if code == "AccessDeniedException":
            return ModelUnavailable(
                f"Bedrock denies access to {model}: the role needs bedrock:InvokeModel and the account the model."
            )
        if code == "ResourceNotFoundException" or (
            code == "ValidationException" and any(part in message for part in _NOT_THE_TEXT)
        ):
            return ModelUnavailable(f"Bedrock does not offer {model} here: {message[:200]}")
        if code in {"ValidationException", "ModelErrorException"}:
            return ModelError(f"{model} refused the request: {message[:200]}")
        return ModelUnavailable(f"Bedrock can't answer for {model} now: {code}.")
    if isinstance(error, BotoCoreError):
        return ModelUnavailable(f"Bedrock can't be reached for {model}: {type(error).__name__}.")
    raise error
