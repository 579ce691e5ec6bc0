"""Alarms for what an operator must look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction
from .work_queue import WorkQueue

LATE = Duration.minutes(30)
"""How old a message may get before someone is told."""


class Observability(Construct):
    """Alarms on dead letters, on queues that fall behind and on functions that fail."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        configuration: Configuration,
        *,
        queues: Mapping[str, WorkQueue],
        functions: Sequence[MemoryFunction],
    ) -> None:
        super().__init__(scope, id)
        self._topic = sns.Topic.from_topic_arn(self, "Topic", configuration.alarm_topic) if configuration.alarm_topic else None
        for name, work in queues.items():
            self._alarm(
                f"{name}DeadLetters",
                f"Messages of the {name.lower()} queue failed {5} times; read them, mend the cause, redrive them",
                work.dead_letters.metric_approximate_number_of_messages_visible(period=Duration.minutes(5), statistic="Maximum"),
                threshold=0,
            )
            self._alarm(
                f"{name}Late",
                f"The {name.lower()} queue falls behind: its oldest message is older than {LATE.to_minutes()} minutes",
                work.queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(5), statistic="Maximum"),
                threshold=LATE.to_seconds(),
            )
        for function in functions:
            self._alarm(
                f"{function.name.capitalize()}Errors",
                f"The function {function.name} fails or is killed by its time limit",
                function.metric_errors(period=Duration.minutes(5)),
                threshold=0,
                periods=3,
            )

    def _alarm(self, id: str, description: str, metric: cloudwatch.IMetric, *, threshold: float, periods: int = 1) -> None:
        alarm = cloudwatch.Alarm(
            self,
            id,
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=periods,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if self._topic:
            alarm.add_alarm_action(actions.SnsAction(self._topic))
