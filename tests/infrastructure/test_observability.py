"""Alarms and logs of the template."""

from __future__ import annotations

from collections.abc import Callable

from memory_banks.adapters.metrics import NAMESPACE

from infra.bundling import PACKAGE
from infra.observability import COUNTED
from tests.infrastructure.assembly import Synthesised


def test_one_dead_letter_raises_an_alarm(stack: Synthesised) -> None:
    dead = {
        queue["Properties"]["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        for queue in stack.of("AWS::SQS::Queue").values()
        if "RedrivePolicy" in queue["Properties"]
    }
    watched = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
        for alarm in alarms(stack)
        if alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
        and (alarm["Threshold"], alarm["Statistic"]) == (0, "Maximum")
    }
    assert watched == dead
    assert len(dead) == 4


def test_every_function_that_fails_and_every_queue_that_is_late_raises_an_alarm(stack: Synthesised) -> None:
    watched = [alarm["MetricName"] for alarm in alarms(stack)]
    assert watched.count("Errors") == len(stack.of("AWS::Lambda::Function")) == 6
    assert watched.count("ApproximateAgeOfOldestMessage") == 4


def test_alarms_watch_counters_that_the_functions_keep(stack: Synthesised) -> None:
    watched = {alarm["MetricName"] for alarm in alarms(stack) if alarm["Namespace"] == NAMESPACE}
    assert watched == set(COUNTED)
    source = "".join(file.read_text() for file in (PACKAGE / "python" / "memory_banks").rglob("*.py"))
    assert not [name for name in watched if f'"{name}"' not in source]


def test_alarms_go_to_the_topic_that_is_named(stack: Synthesised, synthesise: Callable[..., Synthesised]) -> None:
    topic = "arn:aws:sns:eu-central-1:111122223333:alarms"
    assert all("AlarmActions" not in alarm for alarm in alarms(stack))
    assert all(alarm["AlarmActions"] == [topic] for alarm in alarms(synthesise(alarm_topic=topic)))


def test_logs_end(stack: Synthesised, synthesise: Callable[..., Synthesised]) -> None:
    assert {log["Properties"]["RetentionInDays"] for log in stack.of("AWS::Logs::LogGroup").values()} == {30}
    assert {log["Properties"]["RetentionInDays"] for log in synthesise(log_days="7").of("AWS::Logs::LogGroup").values()} == {7}


def alarms(stack: Synthesised) -> list[dict]:
    """Properties of every alarm."""
    return [alarm["Properties"] for alarm in stack.of("AWS::CloudWatch::Alarm").values()]
