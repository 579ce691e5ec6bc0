"""Makes what was written searchable: the ingestion queue and the function `ingest`."""

from __future__ import annotations

from aws_cdk import Duration
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction
from .layers import Layers
from .work_queue import WorkQueue

TIMEOUT = Duration.seconds(120)


class Ingestion(Construct):
    """Queue, dead letters and function."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration, layers: Layers) -> None:
        super().__init__(scope, id)
        self.queue = WorkQueue(self, "Ingestion", setting="ingestion_queue_url", timeout=TIMEOUT)
        self.function = MemoryFunction(
            self,
            "Function",
            configuration,
            layers,
            name="ingest",
            description="Chunks, embeds and indexes what was written",
            timeout=TIMEOUT,
            # An ingested entry may start a compaction, whose summary is ingested in turn.
            feeds_itself=True,
        )
        self.queue.feed(self.function, batch_size=10, concurrency=configuration.ingest_concurrency)
