"""Writes banks to files: the export queue and the function `export`."""

from __future__ import annotations

from aws_cdk import Duration
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction
from .layers import Layers
from .work_queue import WorkQueue

TIMEOUT = Duration.seconds(900)
"""The longest that Lambda has: an export is one piece of work."""


class Exports(Construct):
    """Queue, dead letters and function."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration, layers: Layers) -> None:
        super().__init__(scope, id)
        self.queue = WorkQueue(self, "Export", setting="export_queue_url", timeout=TIMEOUT)
        self.function = MemoryFunction(
            self,
            "Function",
            configuration,
            layers,
            name="export",
            description="Writes the entries of a bank to a file in the bucket",
            timeout=TIMEOUT,
        )
        # One message a time: the time limit is made for one.
        self.queue.feed(self.function, batch_size=1, concurrency=configuration.export_concurrency)
