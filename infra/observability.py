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
from .work_queue import RECEIVES, WorkQueue

LATE = Duration.minutes(30)
"""How old a message may get before someone is told."""

COUNTED = {
    "IndexFailed": (0, 1, "An entry could not be indexed in any try; its job names it and the reason"),
    "IngestionMessagesLost": (0, 3, "Writes can't announce themselves to the ingestion queue; the sweep finds them, late"),
    "CompactionMessagesLost": (0, 3, "Compactions can't be announced to their queue; the sweep finds them, late"),
    "CompactionFailures": (5, 3, "Summaries fail again and again; entries stay, banks grow. Look at the chat model"),
    "DistillationMessagesLost": (0, 3, "Captured runs can't be announced to their queue; the sweep finds them, late"),
    "DistillationsFailed": (0, 1, "A distillation failed in all its tries; its job tells why, the runs stay waiting"),
    "MessagesSetAside": (5, 3, "Captured messages can't be distilled again and again; their jobs name them and the reasons"),
    "DistillationChainsCut": (0, 1, "A distillation went on in more messages than its hop limit allows; the sweep goes on with it"),
    "RerankFailed": (20, 3, "The model that reranks does not answer; searches keep the fused order, and wait for it in vain"),
    "IndexOutdated": (0, 1, "An index was made with older settings; docs/opensearch.md says how to renew it"),
    "SweepErrors": (0, 3, "The sweep meets something that it can't take up"),
    "RebuildChainsCut": (0, 1, "A rebuild went on in more messages than its hop limit allows, and was stopped"),
}
"""Counters of the functions: how many in five minutes are too many, in how many such periods in a row, and what it means."""


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
                f"Messages of the {name.lower()} queue failed {RECEIVES} times; read them, mend the cause, redrive them",
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
                f"{function.name.capitalize()}FunctionErrors",
                f"The function {function.name} fails or is killed by its time limit",
                function.metric_errors(period=Duration.minutes(5)),
                threshold=0,
                periods=3,
            )

        for name, (threshold, periods, meaning) in COUNTED.items():
            counted = cloudwatch.Metric(namespace="MemoryBanks", metric_name=name, statistic="Sum", period=Duration.minutes(5))
            self._alarm(name, meaning, counted, threshold=threshold, periods=periods)

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
