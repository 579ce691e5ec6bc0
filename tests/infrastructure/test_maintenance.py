"""The two schedules of the template."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.infrastructure.assembly import Synthesised


def schedules(stack: Synthesised) -> dict[str, dict]:
    """Schedules by the sweep they ask for."""
    made = [schedule["Properties"] for schedule in stack.of("AWS::Scheduler::Schedule").values()]
    return {json.loads(schedule["Target"]["Input"])["sweep"]: schedule for schedule in made}


def test_both_sweeps_run_hourly(stack: Synthesised) -> None:
    made = schedules(stack)
    assert set(made) == {"compaction", "retention"}
    for name, schedule in made.items():
        assert schedule["ScheduleExpression"] == "rate(1 hour)"
        assert schedule["State"] == "ENABLED"
        assert json.loads(schedule["Target"]["Input"]) == {"sweep": name}
        called = schedule["Target"]["Arn"]["Fn::GetAtt"][0]
        assert stack.of("AWS::Lambda::Function")[called]["Properties"]["Handler"] == "functions.sweep.handler.handler"


def test_each_has_its_own_rate_and_switch(synthesise: Callable[..., Synthesised]) -> None:
    chosen = synthesise(sweep_compaction="false", sweep_compaction_minutes="5", sweep_retention_minutes="1440")
    made = schedules(chosen)
    assert (made["compaction"]["State"], made["compaction"]["ScheduleExpression"]) == ("DISABLED", "rate(5 minutes)")
    assert (made["retention"]["State"], made["retention"]["ScheduleExpression"]) == ("ENABLED", "rate(1 day)")
    assert chosen.variables("sweep")["MEMORY_BANKS_SWEEP_COMPACTION"] == "false"
    assert chosen.variables("sweep")["MEMORY_BANKS_SWEEP_RETENTION"] == "true"


def test_scheduler_may_call_the_sweep_alone(stack: Synthesised) -> None:
    (role,) = {json.dumps(schedule["Target"]["RoleArn"]) for schedule in schedules(stack).values()}
    role_id = json.loads(role)["Fn::GetAtt"][0]
    assumed = stack.of("AWS::IAM::Role")[role_id]["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]
    assert assumed["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    (policy,) = [p["Properties"] for p in stack.of("AWS::IAM::Policy").values() if {"Ref": role_id} in p["Properties"]["Roles"]]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "lambda:InvokeFunction"
