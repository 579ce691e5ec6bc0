"""Keeps banks small and forgets on time: the compaction queue, the functions `compact` and `sweep`, and the two schedules."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction
from .layers import Layers
from .suppressions import accept_wildcard
from .work_queue import WorkQueue

COMPACT_TIMEOUT = Duration.seconds(300)
SWEEP_TIMEOUT = Duration.seconds(300)


class Maintenance(Construct):
    """Compaction and retention."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration, layers: Layers) -> None:
        super().__init__(scope, id)
        self.queue = WorkQueue(self, "Compaction", setting="compaction_queue_url", timeout=COMPACT_TIMEOUT)
        self.compact = MemoryFunction(
            self,
            "Compact",
            configuration,
            layers,
            name="compact",
            description="Replaces the oldest entries of a partition by a summary, and cleans up",
            timeout=COMPACT_TIMEOUT,
            # Long work goes on in another message.
            feeds_itself=True,
        )
        # One message a time: the time limit is made for one.
        self.queue.feed(self.compact, batch_size=1, concurrency=configuration.compact_concurrency)
        self.sweep = MemoryFunction(
            self,
            "Sweep",
            configuration,
            layers,
            name="sweep",
            description="Finds what is due and sends it to the functions that do it",
            timeout=SWEEP_TIMEOUT,
            feeds_itself=True,
        )
        for function in (self.compact, self.sweep):
            function.setting("sweep_compaction", str(configuration.sweep_compaction).lower())
            function.setting("sweep_retention", str(configuration.sweep_retention).lower())
        self._scheduler = iam.Role(
            self,
            "SchedulerRole",
            assumed_by=iam.ServicePrincipal(  # type: ignore[arg-type]
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
            ),
            description="Lets the schedules call the sweep",
        )
        accept_wildcard(self._scheduler, self.sweep, ":*", "Calling a function includes calling its versions")
        self._schedule("compaction", configuration.sweep_compaction_minutes, configuration.sweep_compaction)
        self._schedule("retention", configuration.sweep_retention_minutes, configuration.sweep_retention)

    def _schedule(self, sweep: str, minutes: int, enabled: bool) -> None:
        scheduler.Schedule(
            self,
            f"{sweep.capitalize()}Schedule",
            description=f"The {sweep} sweep",
            schedule=scheduler.ScheduleExpression.rate(Duration.minutes(minutes)),
            enabled=enabled,
            target=targets.LambdaInvoke(
                self.sweep,
                input=scheduler.ScheduleTargetInput.from_object({"sweep": sweep}),
                # A missed sweep is made up by the next.
                max_event_age=Duration.minutes(max(1, min(minutes, 60))),
                retry_attempts=2,
                role=self._scheduler,  # type: ignore[arg-type]
            ),
        )
