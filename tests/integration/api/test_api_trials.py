"""Trying compaction prompts, and the assistant, over the API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.doubles.scripted_chat import ScriptedChat

TURNS = [
    "Order 4711 for Ms Ferreira arrived broken on 3 May, she wants a refund of 89 euros.",
    "I have asked the warehouse in Porto and they confirm that the glass was packed badly.",
    "We offered a replacement, but she insists on the refund before 10 May because she travels.",
    "The refund of 89 euros was approved by Tomas on 5 May and is on its way to her bank.",
]


def scripted(world: Any, *answers: Any) -> ScriptedChat:
    world.chat = ScriptedChat(*answers)
    return world.chat


JUDGED = json.dumps({"verdict": "pass", "score": 5, "reasoning": "All facts are there."})


def test_a_pasted_trial_gives_summary_survivors_and_a_verdict(api: Any, world: Any) -> None:
    scripted(world, "Ms Ferreira's order 4711 broke; refund asked.", JUDGED)
    answer = api("POST", "/memory_banks/test-compaction", body={"compaction_prompt": "Keep it.", "sample_entries": TURNS})
    assert answer.status == 200, answer.text
    assert answer.json["original_entries"] == [f"user: {turn}" for turn in TURNS]
    assert answer.json["surviving_entries"] == [f"user: {turn}" for turn in TURNS[2:]]
    assert answer.json["compaction_summary"] == "Ms Ferreira's order 4711 broke; refund asked."
    assert answer.json["evaluation"]["score"] == 5 and answer.json["generated"] is False


def test_generated_entries_carry_roles_and_are_asked_for_again(api: Any, world: Any) -> None:
    made = json.dumps({"entries": [{"speaker": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(TURNS)]})
    chat = scripted(world, "sorry, no JSON", made, "Order 4711 broke; a refund of 89 euros is wanted.", JUDGED)
    request = {"compaction_prompt": "Keep it.", "generate_direction": "a broken delivery", "entry_count": 4}
    answer = api("POST", "/memory_banks/test-compaction", body=request)
    assert answer.status == 200, answer.text
    assert answer.json["generated"] is True and answer.json["original_entries"][1].startswith("assistant: ")
    assert len(chat.calls) == 4


def test_a_trial_on_a_banks_own_entries_changes_nothing(api: Any, world: Any) -> None:
    bank = api("POST", "/memory_banks", body={"name": "support", "compaction_prompt": "Keep it.", "max_turns": 2}).json
    entries = [{"key": "c", "speaker": "user", "content": turn} for turn in TURNS]
    api("POST", f"/memory_banks/{bank['id']}/entries", body={"entries": entries})
    before = world.table.everything()
    scripted(world, "Order 4711 of Ms Ferreira broke on 3 May.", JUDGED)
    answer = api("POST", f"/memory_banks/{bank['id']}/test-compaction", body={"entry_count": 4})
    assert answer.status == 200, answer.text
    assert answer.json["surviving_entries"] == [f"user: {TURNS[3]}"]
    assert world.table.everything() == before


def test_a_rejected_summary_fails_the_trial_and_says_why(api: Any, world: Any) -> None:
    scripted(world, "   ")
    answer = api("POST", "/memory_banks/test-compaction", body={"compaction_prompt": "Keep it.", "sample_entries": TURNS})
    assert answer.status == 200
    assert answer.json["compaction_summary"] is None and answer.json["evaluation"]["verdict"] == "fail"
    assert "empty" in answer.json["evaluation"]["reasoning"]


def test_a_single_entry_is_compacted_and_none_are_a_400(api: Any, world: Any) -> None:
    scripted(world, "Ms Ferreira's order 4711 broke.", JUDGED)
    answer = api("POST", "/memory_banks/test-compaction", body={"compaction_prompt": "Keep it.", "sample_entries": TURNS[:1]})
    assert (answer.status, answer.json["surviving_entries"]) == (200, [])
    bank = api("POST", "/memory_banks", body={"name": "empty", "compaction_prompt": "Keep it."}).json["id"]
    refused = api("POST", f"/memory_banks/{bank}/test-compaction", body={})
    assert (refused.status, refused.json["error"]["code"]) == (400, "too_few_entries")


def test_without_a_chat_model_rules_judge_and_say_so(api: Any, world: Any) -> None:
    from memory_banks.adapters.embedded.summariser import ExtractiveSummariser

    world.chat = ExtractiveSummariser(100_000)
    samples = [{"content": turn, "speaker": "assistant"} for turn in TURNS * 2]
    answer = api("POST", "/memory_banks/test-compaction", body={"compaction_prompt": "Keep it.", "sample_entries": samples})
    assert answer.status == 200, answer.text
    assert "by rules" in answer.json["evaluation"]["reasoning"]
    request = {"compaction_prompt": "Keep it.", "generate_direction": "anything"}
    assert api("POST", "/memory_banks/test-compaction", body=request).status == 400


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"compaction_prompt": "x"},
        {"compaction_prompt": "x", "sample_entries": ["a"], "generate_direction": "b"},
        {"compaction_prompt": "x", "sample_entries": []},
        {"compaction_prompt": "x", "sample_entries": ["a"] * 21},
        {"compaction_prompt": "x", "generate_direction": "y" * 2001},
        {"compaction_prompt": "x", "generate_direction": "y", "entry_count": 1},
    ],
)
def test_a_trial_that_is_no_trial_is_refused(api: Any, body: dict[str, Any]) -> None:
    assert api("POST", "/memory_banks/test-compaction", body=body).status == 422


def test_the_assistant_proposes_by_rules_and_remembers(api: Any, world: Any) -> None:
    from memory_banks.adapters.embedded.summariser import ExtractiveSummariser

    world.chat = ExtractiveSummariser(100_000)
    asked = "Customer support chats, 50 messages a day per customer, cleaned up weekly"
    answer = api("POST", "/memory_banks/ai-assistant", body={"user_input": asked})
    assert answer.status == 200, answer.text
    config = answer.json["config"]
    assert answer.json["success"] and "rules" in answer.json["note"]
    assert config["type"] == "conversation" and config["retention_days"] == 7 and config["max_turns"] == 150
    created = api("POST", "/memory_banks", body=config)
    assert created.status == 201, created.text
    conversation = answer.json["conversation_id"]
    more = {"user_input": "Better keep it for 30 days", "current_config": config, "conversation_id": conversation}
    changed = api("POST", "/ai-assistant/memory-bank", body=more).json
    assert changed["conversation_id"] == conversation
    assert changed["config"]["retention_days"] == 30 and changed["config"]["max_turns"] == 150
    assert api("PATCH", f"/memory_banks/ai-assistant/{conversation}", body={"accepted": True}).json == {"ok": True}
    history = api("GET", "/ai-assistant/memory-bank/last-conversation").json
    assert [turn["user_input"] for turn in history["turns"]] == [asked, "Better keep it for 30 days"]
    assert [turn["accepted"] for turn in history["turns"]] == [None, True] and history["total"] == 2
    assert api("GET", "/memory_banks/ai-assistant/last-conversation", query={"limit": 1, "offset": 1}).json["user_input"] == asked
    assert api("PATCH", "/memory_banks/ai-assistant/unknown", body={"accepted": True}).status == 404


def test_the_assistants_model_is_validated_and_its_failure_is_a_400(api: Any, world: Any) -> None:
    config = {"name": "Notes", "type": "general", "mode": "balanced", "retention_days": None}
    scripted(
        world, json.dumps({"note": "Here.", "config": config | {"type": "wrong"}}), json.dumps({"note": "Here.", "config": config})
    )
    answer = api("POST", "/memory_banks/ai-assistant", body={"user_input": "meeting notes that keep decisions"})
    assert answer.status == 200 and answer.json["config"]["type"] == "general" and answer.json["config"]["max_age_days"] is None
    scripted(world, "no", "no", "no")
    failed = api("POST", "/memory_banks/ai-assistant", body={"user_input": "meeting notes"})
    assert failed.status == 400 and failed.json["error"]["code"] == "model_failed"
    assert api("GET", "/memory_banks/ai-assistant/last-conversation").json["total"] == 1
