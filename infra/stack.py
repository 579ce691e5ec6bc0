"""The stack: makes every part, then says who may use what."""

from __future__ import annotations

from aws_cdk import Stack
from constructs import Construct

from .api import Api
from .configuration import Configuration
from .distillation import Distillation
from .exports import Exports
from .ingestion import Ingestion
from .layers import Layers
from .maintenance import Maintenance
from .models import Models
from .observability import Observability
from .search_domain import SearchDomain
from .storage import Storage


class MemoryBanksStack(Stack):
    """Memory banks in one account and region."""

    def __init__(self, scope: Construct, configuration: Configuration) -> None:
        super().__init__(
            scope, configuration.stack_name, description="Memory for AI agents: banks, search, compaction and retention"
        )
        layers = Layers(self, "Layers", configuration)
        self.storage = Storage(self, "Storage", configuration)
        self.domain = SearchDomain(self, "Search", configuration)
        self.models = Models(self, "Models", configuration)
        self.api = Api(self, "Api", configuration, layers)
        self.ingestion = Ingestion(self, "Ingestion", configuration, layers)
        self.maintenance = Maintenance(self, "Maintenance", configuration, layers)

        self.distillation = Distillation(self, "Distillation", configuration, layers)

        api, ingest, compact, sweep = self.api.function, self.ingestion.function, self.maintenance.compact, self.maintenance.sweep
        distill = self.distillation.function
        for function in (api, ingest, compact, sweep, distill):
            self.storage.grant(function)
            self.domain.grant(function)
            self.ingestion.queue.grant_send(function)
            self.maintenance.queue.grant_send(function)
        for function in (api, sweep, distill):
            self.distillation.queue.grant_send(function)
        self.exports = Exports(self, "Exports", configuration, layers)
        export = self.exports.function
        self.storage.grant(export)
        for function in (api, sweep):
            self.exports.queue.grant_send(function)
        self.storage.grant_uploads(export)
        self.storage.grant_indexes(sweep, "due", "age")
        self.storage.grant_indexes(api, "age")
        # `compact` rebuilds indexes; `sweep` cleans up, and windows next to what has gone are embedded again; `distill` writes
        # documents, which are embedded at once.
        for function in (api, ingest, compact, sweep, distill):
            self.models.grant_embedding(function)
        for function in (api, compact, distill):
            self.models.grant_chat(function)
        self.models.grant_reranking(api)
        Observability(
            self,
            "Observability",
            configuration,
            queues={
                "Ingestion": self.ingestion.queue,
                "Compaction": self.maintenance.queue,
                "Distillation": self.distillation.queue,
                "Export": self.exports.queue,
            },
            functions=(api, ingest, compact, sweep, distill, export),
        )
