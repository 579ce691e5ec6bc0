"""The one place where ports meet adapters. Everything is built on first use, so a cold start pays only for what it needs."""

from __future__ import annotations

import random
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .clock import SystemClock
from .ports import Blobs, Chance, ChatModel, ChatModels, Clock, Embedders, Index, Metrics, Ports, Queue, Reranker, Table
from .settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class Wiring:
    """All ports of a process, from settings."""

    def __init__(self, settings: Settings, clock: Clock | None = None, chance: Chance | None = None) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.chance: Chance = chance or random.SystemRandom()

    @cached_property
    def table(self) -> Table:
        from .adapters.dynamodb import DynamoTable

        client: DynamoDBClient = self._client("dynamodb")
        return DynamoTable(client, self.settings.table, self.clock, self.chance)

    @cached_property
    def ingestion(self) -> Queue:
        from .adapters.sqs import SqsQueue

        return SqsQueue(self._client("sqs"), self.settings.ingestion_queue_url)

    @cached_property
    def compaction(self) -> Queue:
        from .adapters.sqs import SqsQueue

        return SqsQueue(self._client("sqs"), self.settings.compaction_queue_url)

    @cached_property
    def exports(self) -> Queue:
        from .adapters.sqs import SqsQueue

        return SqsQueue(self._client("sqs"), self.settings.export_queue_url)

    @cached_property
    def distillation(self) -> Queue:
        from .adapters.sqs import SqsQueue

        return SqsQueue(self._client("sqs"), self.settings.distillation_queue_url)

    @cached_property
    def blobs(self) -> Blobs:
        from .adapters.s3 import S3Blobs

        return S3Blobs(self._client("s3"), self.settings.bucket)

    @cached_property
    def index(self) -> Index:
        if self.settings.index == "embedded":
            from .adapters.embedded.index import EmbeddedIndex

            return EmbeddedIndex(self.settings.embedded_index_path or ":memory:")
        from .adapters.opensearch import OpenSearchIndex

        return OpenSearchIndex.from_settings(self.settings, self.clock, self.chance, self.metrics)

    @cached_property
    def embedders(self) -> Embedders:
        from .adapters.models import embedders

        return embedders(self.settings)

    @cached_property
    def chat(self) -> ChatModel:
        return self.chat_models(None)

    @cached_property
    def chat_models(self) -> ChatModels:
        from .adapters.models import chat_models

        return chat_models(self.settings)

    @cached_property
    def reranker(self) -> Reranker | None:
        if self.settings.rerank_model is None:
            return None
        from .adapters.models import reranker

        return reranker(self.settings)

    @cached_property
    def metrics(self) -> Metrics:
        from .adapters.metrics import EmfMetrics

        return EmfMetrics()

    def _client(self, service: str) -> Any:
        import boto3
        from botocore.config import Config

        config = Config(
            connect_timeout=2,
            read_timeout=10,
            retries={"mode": "standard", "max_attempts": 3},
            max_pool_connections=32,
        )
        return boto3.client(service, endpoint_url=self.settings.aws_endpoint_url, config=config)  # type: ignore[call-overload]


_ports: Ports | None = None


def ports() -> Ports:
    """This process's ports, wired from the environment on the first call."""
    global _ports  # noqa: PLW0603
    if _ports is None:
        _ports = Wiring(Settings.from_environment())
    return _ports


def use(chosen: Ports | None) -> None:
    """Let this process use these ports (a local server, a test); None wires from the environment again."""
    global _ports  # noqa: PLW0603
    _ports = chosen
