"""The route of rebuilds, and the functions that carry them out."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Client, World


class Context:
    """As much of Lambda's as the function needs."""

    def get_remaining_time_in_millis(self) -> int:
        return 300_000


def carry_out(world: World) -> None:
    """Hand what is in the compaction queue to the function that is deployed for it."""
    import json

    from functions.compact.handler import handler

    sent, world.compaction.sent = world.compaction.sent, []
    records = [
        {
            "messageId": str(number),
            "receiptHandle": "r",
            "body": json.dumps(message),
            "attributes": {},
            "messageAttributes": {},
            "md5OfBody": "",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:1:q",
            "awsRegion": "eu-west-1",
        }
        for number, message in enumerate(sent)
    ]
    assert handler({"Records": records}, Context()) == {"batchItemFailures": []}


def test_a_bank_is_rebuilt_in_another_mode(api: Client, world: World) -> None:
    bank = api.bank()
    api.write(bank, content="The cat is called Mia.")
    world.ingest()
    asked = api("POST", f"/memory_banks/{bank}/rebuild", body={"mode": "balanced"})
    assert (asked.status, asked.json["kind"], asked.json["status"]) == (202, "rebuild", "queued")
    again = api("POST", f"/memory_banks/{bank}/rebuild")
    assert (again.status, again.json["error"]["code"]) == (409, "rebuild_running")
    world.clock.advance(361)
    carry_out(world)
    job = api("GET", f"/memory_banks/{bank}/jobs/{asked.json['id']}").json
    assert (job["status"], job["progress"], job["mended"]) == (
        "completed",
        {"current": 1, "total": 1},
        {"indexed": 0, "removed": 0},
    )
    shown = api("GET", f"/memory_banks/{bank}").json
    assert (shown["mode"], shown["dimensions"]) == ("balanced", 512)
    found = api("POST", f"/memory_banks/{bank}/search", body={"query": "cat Mia"}).json["results"]
    assert [hit["entry"]["content"] for hit in found] == ["The cat is called Mia."]


def test_a_lost_document_is_mended_by_reconciling(api: Client, world: World) -> None:
    bank = api.bank()
    api.write(bank, content="The cat is called Mia.")
    asked = api("POST", f"/memory_banks/{bank}/rebuild", body={"reconcile": True}).json
    carry_out(world)
    job = api("GET", f"/memory_banks/{bank}/jobs/{asked['id']}").json
    assert (job["status"], job["mended"]) == ("completed", {"indexed": 1, "removed": 0})
    assert len(api("POST", f"/memory_banks/{bank}/search", body={"query": "cat Mia"}).json["results"]) == 1


def test_cancelling_takes_the_registration_back_at_once(api: Client, world: World) -> None:
    from memory_banks import banks

    bank = api.bank()
    job = api("POST", f"/memory_banks/{bank}/rebuild", body={"mode": "balanced"}).json
    assert banks.get(world, "acme", bank).also_dimensions == 512
    assert api("POST", f"/memory_banks/{bank}/jobs/{job['id']}/cancel").json["status"] == "cancelled"
    carry_out(world)
    assert banks.get(world, "acme", bank).also_dimensions is None


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"mode": "slow"}, ["body", "mode"]),
        ({"mode": "balanced", "dimensions": 256}, ["body", "dimensions"]),
        ({"dimensions": 0}, ["body", "dimensions"]),
        ({"embedding_model": "nobody/nothing"}, ["body", "embedding_model"]),
        ({"reconcile": True, "mode": "balanced"}, ["body", "reconcile"]),
        ({"model": "x"}, ["body", "model"]),
    ],
)
def test_wrong_wishes_are_refused_by_name(api: Client, world: World, body: dict[str, Any], loc: list[str]) -> None:
    refused = api("POST", f"/memory_banks/{api.bank()}/rebuild", body=body)
    assert (refused.status, refused.json["detail"][0]["loc"]) == (422, loc)
    assert world.compaction.sent == []


def test_only_an_admin_of_the_account_rebuilds(api: Client, world: World) -> None:
    bank = api.bank()
    assert Client(world, world.key("acme", "write"))("POST", f"/memory_banks/{bank}/rebuild").status == 403
    assert Client(world, world.key("other"))("POST", f"/memory_banks/{bank}/rebuild").status == 404
