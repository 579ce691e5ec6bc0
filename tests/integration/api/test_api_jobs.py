"""Compaction on demand and the job that tells of it."""

from __future__ import annotations

from .conftest import Client, World


def test_compaction_is_a_job_that_can_be_looked_at_and_cancelled(api: Client, world: World) -> None:
    bank = api.bank(max_turns=5)
    api.write(bank)
    asked = api("POST", f"/memory_banks/{bank}/compact")
    assert (asked.status, asked.json["memory_bank_id"], asked.json["status"]) == (202, bank, "queued")
    job = asked.json["job"]
    world.clock.advance(1)
    one_key = api("POST", f"/memory_banks/{bank}/compact", body={"key": "k"}).json["job"]
    assert (job["kind"], job["key"], one_key["key"]) == ("compaction", None, "k")
    assert [message["job"] for message in world.compaction.sent] == [job["id"], one_key["id"]]
    assert api("GET", f"/memory_banks/{bank}/jobs/{job['id']}").json == job
    listed = api("GET", f"/memory_banks/{bank}/jobs", query={"limit": 1}).json
    assert listed["jobs"] == [one_key]
    rest = api("GET", f"/memory_banks/{bank}/jobs", query={"limit": 5, "cursor": listed["next_cursor"]}).json
    assert rest == {"jobs": [job], "next_cursor": None}
    assert api("POST", f"/memory_banks/{bank}/jobs/{job['id']}/cancel").json["status"] == "cancelled"
    assert api("GET", f"/memory_banks/{bank}/jobs/{job['id']}").json["status"] == "cancelled"


def test_a_bank_without_thresholds_has_nothing_to_compact(api: Client, world: World) -> None:
    refused = api("POST", f"/memory_banks/{api.bank()}/compact")
    assert (refused.status, refused.json["error"]["code"]) == (400, "no_threshold")
    assert world.compaction.sent == []


def test_wrong_questions_about_jobs(api: Client) -> None:
    bank = api.bank(max_turns=5)
    assert api("GET", f"/memory_banks/{bank}/jobs/none").status == 404
    assert api("GET", f"/memory_banks/{bank}/jobs/" + "x" * 2000).status == 404
    assert api("POST", f"/memory_banks/{bank}/jobs/none/cancel").status == 404
    assert api("GET", f"/memory_banks/{bank}/jobs", query={"cursor": "x"}).json["detail"][0]["loc"] == ["query", "cursor"]
    assert api("POST", f"/memory_banks/{bank}/compact", body={"kye": "k"}).json["detail"][0]["loc"] == ["body", "kye"]
    assert api("POST", f"/memory_banks/{bank}/compact", body={"key": "\0"}).json["detail"][0]["loc"] == ["body", "key"]
