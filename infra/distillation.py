"""Makes memories of captured runs: the distillation queue and the function `distill`."""

from __future__ import annotations

from aws_cdk import Duration
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction
from .layers import Layers
from .work_queue import WorkQueue

TIMEOUT = Duration.seconds(300)
"""Less than a distillation's lease holds."""


class Distillation(Construct):
    """Queue, dead letters and function."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration, layers: Layers) -> None:
        super().__init__(scope, id)
        self.queue = WorkQueue(self, "Distillation", setting="distillation_queue_url", timeout=TIMEOUT)
        self.function = MemoryFunction(
            self,
            "Function",
            configuration,
            layers,
            name="distill",
            description="Turns captured runs into entries and documents",
            timeout=TIMEOUT,
            # Long work goes on in another message, and what arrives meanwhile gets its own.
            feeds_itself=True,
        )
        # One message a time: the time limit is made for one.
        self.queue.feed(self.function, batch_size=1, concurrency=configuration.distill_concurrency)
