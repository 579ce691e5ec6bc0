"""The queues of the template and the functions that work them off."""

from __future__ import annotations

import pytest
from memory_banks import compaction
from memory_banks.capture import ledger

from tests.infrastructure.assembly import Synthesised


@pytest.mark.parametrize("name", ["ingest", "compact", "distill", "export"])
def test_batches_may_fail_in_part(stack: Synthesised, name: str) -> None:
    mapping, _ = feeding(stack, name)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize("name", ["ingest", "compact", "distill", "export"])
def test_messages_stay_hidden_six_times_as_long_as_the_function_may_run(stack: Synthesised, name: str) -> None:
    _, queue = feeding(stack, name)
    assert queue["VisibilityTimeout"] >= 6 * stack.function(name)["Timeout"]


@pytest.mark.parametrize("name", ["ingest", "compact", "distill", "export"])
def test_what_fails_five_times_is_set_aside_for_two_weeks(stack: Synthesised, name: str) -> None:
    _, queue = feeding(stack, name)
    policy = queue["RedrivePolicy"]
    assert policy["maxReceiveCount"] == 5
    dead = stack.of("AWS::SQS::Queue")[policy["deadLetterTargetArn"]["Fn::GetAtt"][0]]["Properties"]
    assert dead["MessageRetentionPeriod"] == 14 * 86_400
    assert "RedrivePolicy" not in dead


def test_leases_outlive_their_functions(stack: Synthesised) -> None:
    assert stack.function("compact")["Timeout"] * 1000 < compaction.LEASE_MS
    assert stack.function("distill")["Timeout"] * 1000 < ledger.LEASE_MS


def test_queues_are_standard_encrypted_and_refuse_plain_http(stack: Synthesised) -> None:
    queues = stack.of("AWS::SQS::Queue")
    assert len(queues) == 8
    for queue in queues.values():
        assert queue["Properties"]["SqsManagedSseEnabled"] is True
        assert "FifoQueue" not in queue["Properties"]
    refusing = [
        policy["Properties"]["Queues"][0]["Ref"]
        for policy in stack.of("AWS::SQS::QueuePolicy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    ]
    assert sorted(refusing) == sorted(queues)


def test_functions_whose_messages_come_back_to_them_may_loop_and_no_other(stack: Synthesised) -> None:
    loops = {name: stack.function(name)["RecursiveLoop"] for name in ("api", "ingest", "compact", "distill", "export", "sweep")}
    ends = {"api": "Terminate", "export": "Terminate"}
    assert loops == {"ingest": "Allow", "compact": "Allow", "distill": "Allow", "sweep": "Allow"} | ends


def feeding(stack: Synthesised, name: str) -> tuple[dict, dict]:
    """The event source of a function, and its queue."""
    handler = f"functions.{name}.handler.handler"
    (function,) = [id for id, f in stack.of("AWS::Lambda::Function").items() if f["Properties"]["Handler"] == handler]
    (mapping,) = [
        m["Properties"]
        for m in stack.of("AWS::Lambda::EventSourceMapping").values()
        if m["Properties"]["FunctionName"] == {"Ref": function}
    ]
    return mapping, stack.of("AWS::SQS::Queue")[mapping["EventSourceArn"]["Fn::GetAtt"][0]]["Properties"]
