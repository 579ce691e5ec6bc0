"""Amazon Bedrock's Rerank API: Amazon Rerank and Cohere Rerank.

Credentials and region are boto3's usual ones. The API wants an ARN: a plain model id is that model in the client's own region
and partition; a whole ARN names its region, which need not be that of the functions, since not every region has the models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ..ports import ModelError, ModelUnavailable
from .relevance import in_order


class BedrockReranker:
    """One call a search, up to 1,000 texts. It is not repeated: whoever asks has an order to fall back on."""

    def __init__(self, name: str, clients: Callable[[int, str | None], Any] | None = None) -> None:
        """`name` is a model id or an ARN; `clients` gives the client of a read timeout in seconds and a region (None: ours)."""
        self.model = f"bedrock/{name}"
        self._name = name
        self._region = name.split(":")[3] if name.startswith("arn:") and name.count(":") > 4 else None
        self._clients = clients or lru_cache(maxsize=4)(_client)

    def rerank(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """See `ports.Reranker`. Raises `ModelUnavailable`, or `ModelError` when Bedrock refuses the texts."""
        try:
            client = self._clients(max(1, int(timeout_seconds)), self._region)
            answer = client.rerank(
                queries=[{"type": "TEXT", "textQuery": {"text": query}}],
                sources=[
                    {"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": text}}} for text in texts
                ],
                rerankingConfiguration={
                    "type": "BEDROCK_RERANKING_MODEL",
                    "bedrockRerankingConfiguration": {
                        "modelConfiguration": {"modelArn": self._arn(client)},
                        "numberOfResults": len(texts),
                    },
                },
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # What botocore's parser says of an answer that has not the service's form.
            raise ModelUnavailable(f"{self.model} did not answer with scores.") from error
        except Exception as error:
            raise _mapped(error, self.model) from error
        found = [(one.get("index"), one.get("relevanceScore")) for one in answer.get("results", ())]
        return in_order(found, len(texts), self.model)

    def _arn(self, client: Any) -> str:
        if self._name.startswith("arn:"):
            return self._name
        return f"arn:{client.meta.partition}:bedrock:{client.meta.region_name}::foundation-model/{self._name}"


def _client(read_timeout: int, region: str | None) -> Any:
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=1, read_timeout=read_timeout, retries={"mode": "standard", "total_max_attempts": 1})
    # A session of its own: boto3's default one is not safe to build clients from in several threads.
    return boto3.Session().client("bedrock-agent-runtime", region_name=region, config=config)


def _mapped(error: Exception, model: str) -> ModelError:
    """What a botocore error means; anything not botocore's is raised."""
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, ClientError):
        code, message = str(error.response["Error"].get("Code", "")), str(error.response["Error"].get("Message", ""))
        if code == "AccessDeniedException":
            return ModelUnavailable(
                f"Bedrock denies access to {model}: the role needs bedrock:Rerank and bedrock:InvokeModel, the account the model."
            )
        if code == "ValidationException":
            return ModelError(f"{model} refused the request: {message[:200]}")
        return ModelUnavailable(f"Bedrock can't rerank with {model} now: {code}.")
    if isinstance(error, BotoCoreError):
        return ModelUnavailable(f"Bedrock can't be reached for {model}: {type(error).__name__}.")
    raise error
