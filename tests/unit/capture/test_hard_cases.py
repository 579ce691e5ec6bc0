"""What a hostile user, or bad luck, does to capture: nothing lost, nothing doubled, nothing that outlives its deletion."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from memory_banks import banks, deletion, jobs, renaming
from memory_banks.bank import Bank
from memory_banks.capture import ledger as ledgers
from memory_banks.capture import listing, messages, mismatch, owing, runs, trigger
from memory_banks.capture.ledger import LEASE_MS
from memory_banks.capture.runs import NewMessage, NewRun
from memory_banks.distillation import distilling
from memory_banks.errors import Conflict
from memory_banks.ports import Contended, ModelError, ModelUnavailable, TableUnavailable, Update
from memory_banks.requests import CreateBank, UpdateBank
from memory_banks.store.store import Store

from tests.doubles.scripted_chat import Call, ScriptedChat
from tests.doubles.world import LATEST, World
from tests.unit.capture.test_failures import hours, jobs_of, unless

NOTES = {
    "distillation": "schemas",
    "memory_types": [
        {
            "name": "Note",
            "update_mode": "insert",
            "parameters": {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
        }
    ],
}


def bank_of(world: World, **capture: Any) -> Bank:
    rest = {name: capture.pop(name) for name in ("compaction", "retention_days") if name in capture}
    return banks.create(world, "acme", CreateBank(name="captured", capture=capture, **rest), LATEST)


def change(world: World, bank: Bank, **capture: Any) -> Bank:
    return banks.update(world, bank.account, bank.id, UpdateBank(capture=capture), LATEST, deadline=world.deadline())


def off(world: World, bank: Bank) -> Bank:
    return banks.update(world, bank.account, bank.id, UpdateBank(capture=None), LATEST, deadline=world.deadline())


def contents(world: World, *prefix: str) -> list[str]:
    return sorted(one.document.value["content"] for one in Store(world, "acme").search(prefix, limit=100))


def test_what_was_tried_again_well_is_not_tried_again_by_the_same_job() -> None:
    chat = ScriptedChat(unless("poison"))
    world = World(chat=chat)
    bank = bank_of(world, distillation="prompt")
    world.capture(bank, "poison")
    world.quiet()
    [job] = jobs_of(world, bank)
    chat._answers = ["The poison was an apple."]
    for _ in range(2):
        try:
            messages.retry(world, bank, job["sk"], deadline=world.deadline())
        except Conflict as error:
            assert error.code == "nothing_to_retry"
        world.drain()
    assert world.texts(bank) == ["The poison was an apple."]


def dying_at_the_second_document(monkeypatch: pytest.MonkeyPatch) -> None:
    put, alive = Store.put, iter([True, False])

    def dying(self: Store, *args: Any, **rest: Any) -> Any:
        if not next(alive, True):
            raise TableUnavailable
        return put(self, *args, **rest)

    monkeypatch.setattr(Store, "put", dying)


@pytest.mark.parametrize("after", [{"distillation": "none"}, {"distillation": "prompt"}])
def test_a_plan_that_is_written_after_the_settings_changed_is_one_of_documents(
    after: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(chat=ScriptedChat(json.dumps({"new": [{"content": "a"}, {"content": "b"}]}), "Remembered."))
    bank = bank_of(world, **NOTES)
    run = world.capture(bank, "a and b")
    dying_at_the_second_document(monkeypatch)
    world.quiet()
    change(world, bank, **after)
    hours(world, 2)
    assert contents(world, "k") == ["a", "b"]
    messages.edit(world, world.again(bank), run.messages[0], "c", deadline=world.deadline())
    hours(world, 2)
    assert world.texts(bank) == (["c"] if after["distillation"] == "none" else ["Remembered."])
    assert not listing.get(world, bank, "k").owes


@pytest.mark.parametrize("whole", [False, True])
def test_a_source_deleted_while_the_model_thinks_gets_nothing_of_what_was_said(whole: bool) -> None:
    world = World()
    bank = bank_of(world, distillation="prompt")

    def delete(call: Call) -> str:
        (deletion.delete_bank if whole else deletion.delete_source)(world, bank, deadline=world.deadline())
        return "The hushed one."

    world.chat = ScriptedChat(delete)
    world.capture(bank, "hushed")
    world.quiet()
    assert whole or world.texts(bank) == []
    hours(world, 3)
    assert whole or world.texts(bank) == []
    assert not [item for item in world.table.everything() if "hushed" in json.dumps(item, default=str)]


def test_a_source_deleted_between_two_documents_gets_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(chat=ScriptedChat(json.dumps({"new": [{"content": "first"}, {"content": "second"}]})))
    bank = bank_of(world, **NOTES)
    put, again = Store.put, iter([False, True])

    def deleting(self: Store, *args: Any, **rest: Any) -> Any:
        if next(again, False):
            deletion.delete_source(world, bank, deadline=world.deadline())
        return put(self, *args, **rest)

    monkeypatch.setattr(Store, "put", deleting)
    world.capture(bank, "hushed")
    world.quiet()
    hours(world, 3)
    assert contents(world, "k") == ["first"]


def test_a_source_deleted_while_the_model_thinks_gets_no_documents() -> None:
    world = World()
    bank = bank_of(world, **NOTES)

    def delete(call: Call) -> str:
        deletion.delete_source(world, bank, deadline=world.deadline())
        return json.dumps({"new": [{"content": "secret"}]})

    world.chat = ScriptedChat(delete)
    world.capture(bank, "hushed")
    world.quiet()
    hours(world, 3)
    assert contents(world, "k") == []


@pytest.mark.parametrize("kind", ["none", "prompt"])
def test_a_message_emptied_and_written_anew_is_remembered(kind: str) -> None:
    world = World(chat=ScriptedChat(lambda call: "Said: " + ("new" if "new" in call.messages[0].content else "old")))
    bank = bank_of(world, distillation=kind)
    run = world.capture(bank, "old")
    world.quiet()
    messages.edit(world, bank, run.messages[0], " ", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == []
    messages.edit(world, bank, run.messages[0], "new", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == [{"none": "new", "prompt": "Said: new"}[kind]]
    messages.edit(world, bank, run.messages[0], "", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == []


COMPACTED = {"max_turns": 4, "compaction_prompt": "Summarise."}


def compacting(kind: str) -> tuple[World, Bank]:
    world = World(chat=ScriptedChat(told))
    made = CreateBank(name="captured", capture={"distillation": kind, "threshold": 1}, **COMPACTED)
    return world, banks.create(world, "acme", made, LATEST)


def told(call: Call) -> str:
    """Names every fact that it is shown."""
    return "Facts: " + " ".join(dict.fromkeys(re.findall(r"fact\d+", call.messages[0].content)))


def facts(world: World, bank: Bank) -> list[str]:
    return sorted(fact for text in world.texts(bank) for fact in re.findall(r"fact\d+", text))


def eight(world: World, bank: Bank) -> list[str]:
    """Eight facts, of which the first are part of a summary. Gives the messages' ids."""
    found = []
    for number in range(8):
        found += world.capture(bank, f"fact{number}" + " as it was told" * 20).messages
        world.drain()
    assert any(entry.kind == "summary" for entry in world.load(bank))
    assert facts(world, bank) == [f"fact{number}" for number in range(8)]
    return found


@pytest.mark.parametrize("kind", ["none", "prompt"])
def test_what_was_compacted_is_made_no_second_time(kind: str) -> None:
    world, bank = compacting(kind)
    eight(world, bank)
    before = mismatch.check(world, bank, "k")
    assert not before["mismatch"]
    trigger.regenerate(world, bank, "k", deadline=world.deadline())
    hours(world, 2)
    assert facts(world, bank) == [f"fact{number}" for number in range(8)]
    assert listing.get(world, bank, "k").processed == 8
    assert not mismatch.check(world, bank, "k")["mismatch"]


def test_a_batch_that_was_compacted_in_part_is_made_again_in_part() -> None:
    world, bank = compacting("none")
    bank = change(world, bank, threshold=8)
    run = world.capture(bank, *(f"fact{number}" + " as it was told" * 20 for number in range(8)))
    hours(world)
    assert facts(world, bank) == [f"fact{number}" for number in range(8)]
    left = [entry.content for entry in world.load(bank) if entry.kind == "entry"]
    assert 0 < len(left) < 8
    deletion.delete_entry(world, bank, world.load(bank)[-1].internal_id, deadline=world.deadline())
    assert mismatch.check(world, bank, "k")["missing"] == 1
    trigger.regenerate(world, bank, "k", deadline=world.deadline())
    hours(world, 2)
    assert facts(world, bank) == [f"fact{number}" for number in range(8)]
    messages.edit(world, bank, run.messages[7], "fact9", deadline=world.deadline())
    messages.edit(world, bank, run.messages[0], "fact99", deadline=world.deadline())
    hours(world)
    assert facts(world, bank) == [f"fact{number}" for number in (*range(7), 9)]


def test_an_edit_of_what_was_compacted_makes_the_others_no_second_time() -> None:
    world, bank = compacting("prompt")
    run = world.capture(bank, "fact10", "fact11")
    world.drain()
    for number in range(8):
        world.capture(bank, f"fact{number}")
        world.drain()
    before = facts(world, bank)
    messages.edit(world, bank, run.messages[0], "fact12", deadline=world.deadline())
    hours(world)
    assert facts(world, bank) == before
    assert not listing.get(world, bank, "k").owes


def test_a_job_that_an_earlier_one_left_nothing_to_do_ends() -> None:
    world = World(chat=ScriptedChat(ModelUnavailable("down"), "All of it."))
    bank = bank_of(world, distillation="prompt")
    world.capture(bank, "one")
    world.quiet()
    second = world.capture(bank, "two")
    hours(world)
    assert listing.get(world, bank, "k").pending == 0
    assert second.job is not None
    assert jobs.get(world, bank, second.job)["status"] == "completed"
    third = world.capture(bank, "three")
    assert third.job != second.job
    hours(world)
    assert listing.get(world, bank, "k").pending == 0
    assert jobs.get(world, bank, third.job)["status"] == "completed"


def test_a_regeneration_that_is_cancelled_before_it_begins_changes_nothing() -> None:
    world = World()
    bank = bank_of(world)
    run = world.capture(bank, "one", "two")
    world.quiet()
    job = trigger.regenerate(world, bank, "k", deadline=world.deadline())
    trigger.cancelled(world, bank, jobs.cancel(world, bank, job["sk"]))
    before = [entry.internal_id for entry in world.load(bank)]
    hours(world, 2)
    assert [entry.internal_id for entry in world.load(bank)] == before
    messages.delete(world, bank, run.messages[0], deadline=world.deadline())
    assert world.texts(bank) == ["two"]
    assert [one["status"] for one in jobs_of(world, bank)] == ["cancelled", "completed"]


def test_a_regeneration_that_is_cancelled_at_work_leaves_the_runs_to_a_flush() -> None:
    world = World()
    bank = bank_of(world)
    world.capture(bank, "one", "two")
    world.quiet()
    job = trigger.regenerate(world, bank, "k", deadline=world.deadline())
    [message] = world.distillation.take()
    distilling.handle(world, message, deadline=world.clock.now())
    trigger.cancelled(world, bank, jobs.cancel(world, bank, job["sk"]))
    hours(world, 2)
    assert world.texts(bank) == []
    ledger = listing.get(world, bank, "k")
    assert (ledger.pending, ledger.reset, ledger.reset_at) == (1, None, None)
    trigger.flush(world, bank, "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["one", "two"]


def test_a_run_that_comes_as_the_lease_is_let_go_has_its_own_turn() -> None:
    world = World()
    bank = bank_of(world)
    world.capture(bank, "one")
    write = world.table.write

    def between(action: Any) -> Any:
        if isinstance(action, Update) and "due_at" in action.remove:
            world.table.write = write
            world.capture(bank, "two")
        return write(action)

    world.table.write = between
    world.quiet()
    assert world.table.write is write, "it came in between"
    world.quiet()
    assert world.texts(bank) == ["one", "two"]


def test_one_that_outlived_its_lease_does_not_cancel_the_job_of_another_at_work() -> None:
    world = World()
    bank = bank_of(world, distillation="prompt")

    def taken(call: Call) -> str:
        at = ledgers.ledger_key(bank, listing.get(world, bank, "k").partition)
        world.table.write(Update(at, set={"lease": "another's", "lease_until": world.clock.now() + LEASE_MS}))
        return "By the first."

    world.chat = ScriptedChat(taken, "By the second.")
    world.capture(bank, "one")
    world.quiet()
    assert jobs_of(world, bank)[0]["status"] == "running"
    hours(world)
    assert world.texts(bank) == ["By the second."]
    assert [job["status"] for job in jobs_of(world, bank)] == ["completed"]


def test_a_lease_is_taken_though_the_table_is_throttled_for_a_moment() -> None:
    world = World()
    bank = bank_of(world)
    world.capture(bank, "one")
    transact, refused = world.table.transact, iter([True])

    def throttled(actions: Any) -> None:
        if next(refused, False):
            raise Contended("throttled")
        transact(actions)

    world.table.transact = throttled
    world.quiet()
    assert world.texts(bank) == ["one"]


def test_one_poison_message_does_not_make_every_later_batch_one_message() -> None:
    def answer(call: Call) -> str:
        if "poison" in call.messages[0].content:
            raise ModelError("can't read poison")
        return json.dumps({"new": []})

    world = World(chat=ScriptedChat(answer))
    bank = bank_of(world, **NOTES)
    for number in range(10):
        world.capture(bank, *(f"m{number}-{n}" if (number, n) != (0, 3) else "poison" for n in range(20)))
    world.quiet()
    assert len(jobs_of(world, bank)[0]["set_aside"]) == 1
    assert len(world.chat.calls) < 40


def test_a_document_that_can_never_be_written_is_set_aside() -> None:
    deep: Any = "x"
    for _ in range(150):
        deep = {"a": deep}
    world = World(chat=ScriptedChat(json.dumps({"new": [{"content": deep}]})))
    free = [{"name": "Note", "update_mode": "insert", "parameters": {"type": "object", "properties": {"content": {}}}}]
    bank = bank_of(world, distillation="schemas", memory_types=free)
    world.capture(bank, "one")
    world.quiet()
    [job] = jobs_of(world, bank)
    assert job["status"] == "failed" and len(job["set_aside"]) == 1
    assert len(world.chat.calls) < 12


@pytest.mark.parametrize("odd", ["\ud800 lone", "nul \x00 nul", "bell \x07 \x1b[0m", "\ufffe\uffff"])
@pytest.mark.parametrize("kind", ["prompt", "schemas"])
def test_odd_characters_in_an_answer_wedge_nothing(kind: str, odd: str) -> None:
    world = World(chat=ScriptedChat(odd if kind == "prompt" else json.dumps({"new": [{"content": odd}]})))
    bank = bank_of(world, **(NOTES if kind == "schemas" else {"distillation": "prompt"}))
    world.capture(bank, "one")
    world.quiet()
    assert jobs_of(world, bank)[0]["status"] in {"completed", "failed"}


@pytest.mark.parametrize("odd", ["NaN", "-Infinity", "1e400", "1" + "0" * 400, "0." + "1" * 60, "1" * 5000])
def test_odd_numbers_in_an_answer_wedge_nothing(odd: str) -> None:
    free = [{"name": "Note", "update_mode": "insert", "parameters": {"type": "object", "properties": {"content": {}}}}]
    world = World(chat=ScriptedChat('{"new": [{"content": ' + odd + "}]}"))
    bank = bank_of(world, distillation="schemas", memory_types=free)
    world.capture(bank, "one")
    world.quiet()
    assert jobs_of(world, bank)[0]["status"] in {"completed", "failed"}


@pytest.mark.parametrize("user", ["a.b%c\x7f", "🦊" * 64, "é" * 256, ".", "%", "..", "langgraph", "a#b"])
def test_any_user_id_has_documents_or_is_set_aside(user: str) -> None:
    world = World(chat=ScriptedChat(json.dumps({"new": [{"content": "secret"}]})))
    bank = bank_of(world, **NOTES)
    world.capture(bank, "one", user_id=user)
    world.quiet()
    assert jobs_of(world, bank)[0]["status"] in {"completed", "failed"}


def test_what_is_not_to_be_distilled_by_itself_is_not_due_every_hour() -> None:
    world = World()
    bank = bank_of(world)
    world.capture(bank, "one")
    change(world, bank, auto_capture=False)
    hours(world, 3)
    assert world.sweep().ledgers == 0
    world.clock.advance(7200)
    assert world.sweep().ledgers == 0
    change(world, bank, auto_capture=True)
    hours(world, 2)
    assert world.texts(bank) == ["one"]


def test_what_went_with_its_message_is_not_missing() -> None:
    world = World()
    bank = bank_of(world)
    run = world.capture(bank, "one", "two", "three", "four")
    world.quiet()
    messages.delete(world, bank, run.messages[0], deadline=world.deadline())
    messages.edit(world, bank, run.messages[1], "", deadline=world.deadline())
    messages.edit(world, bank, run.messages[2], "", deadline=world.deadline())
    messages.edit(world, bank, run.messages[2], "drei", deadline=world.deadline())
    world.drain()
    told = mismatch.check(world, bank, "k")
    assert (told["messages"], told["entries"], told["missing"], told["mismatch"]) == (2, 2, 0, False)
    deletion.delete_entry(world, bank, world.load(bank)[-1].internal_id, deadline=world.deadline())
    assert mismatch.check(world, bank, "k")["missing"] == 1


@pytest.mark.parametrize("kind", ["none", "prompt"])
def test_an_edit_between_a_regeneration_and_its_cancellation_is_followed(kind: str) -> None:
    world = World(chat=ScriptedChat(told))
    bank = bank_of(world, distillation=kind)
    run = world.capture(bank, "fact1", "fact2")
    world.quiet()
    job = trigger.regenerate(world, bank, "k", deadline=world.deadline())
    messages.edit(world, bank, run.messages[0], "fact3", deadline=world.deadline())
    messages.delete(world, bank, run.messages[1], deadline=world.deadline())
    assert "fact2" not in facts(world, bank), "at once"
    trigger.cancelled(world, bank, jobs.cancel(world, bank, job["sk"]))
    hours(world, 2)
    assert facts(world, bank) == ["fact3"]


def test_two_edits_of_what_was_made_again_are_not_lost() -> None:
    world = World(chat=ScriptedChat(told))
    bank = bank_of(world)
    run = world.capture(bank, "fact0", "fact1")
    world.quiet()
    change(world, bank, distillation="prompt")
    for text in ("", "fact2"):
        messages.edit(world, world.again(bank), run.messages[1], text, deadline=world.deadline())
        world.drain()
    for text in ("fact3", "fact4"):
        messages.edit(world, world.again(bank), run.messages[1], text, deadline=world.deadline())
    hours(world)
    assert facts(world, bank) == ["fact0", "fact4"]


@pytest.mark.parametrize("kind", ["none", "prompt"])
def test_what_was_forgotten_is_not_made_again(kind: str) -> None:
    world, bank = compacting(kind)
    eight(world, bank)
    deletion.forget_key(world, bank, "k", deadline=world.deadline())
    trigger.regenerate(world, bank, "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == []
    world.capture(bank, "fact9")
    hours(world, 3)
    assert facts(world, bank) == ["fact9"]


def test_a_message_made_again_and_compacted_since_is_made_no_third_time() -> None:
    world, bank = compacting("prompt")
    [first, *_] = eight(world, bank)[6:]
    messages.edit(world, bank, first, "fact66", deadline=world.deadline())
    world.drain()
    for number in range(10, 18):
        world.capture(bank, f"fact{number}" + " as it was told" * 20)
        world.drain()
    before = facts(world, bank)
    trigger.regenerate(world, bank, "k", deadline=world.deadline())
    hours(world, 2)
    assert sorted(set(facts(world, bank))) == facts(world, bank) == before


def test_a_key_that_is_forgotten_while_nothing_is_captured_any_more_is_forgotten() -> None:
    world = World()
    bank = bank_of(world, auto_capture=False)
    world.capture(bank, "hushed")
    bank = off(world, bank)
    deletion.forget_key(world, bank, "k", deadline=world.deadline())
    assert listing.runs(world, bank, "k", limit=10, cursor=None)["runs"] == []
    bank = change(world, bank, auto_capture=True)
    hours(world, 3)
    assert world.texts(bank) == []
    assert not [item for item in world.table.everything() if "hushed" in json.dumps(item, default=str)]


def test_a_message_with_a_known_id_under_another_key_is_not_lost_in_silence() -> None:
    world = World()
    bank = bank_of(world)

    def run(key: str) -> None:
        runs.capture(world, "acme", bank.id, NewRun(key, (NewMessage("user", "hello", id="1"),)), deadline=world.deadline())

    run("a")
    with pytest.raises(Conflict, match="another key"):
        run("b")


def test_a_message_s_id_is_free_when_its_key_is_forgotten() -> None:
    world = World()
    bank = bank_of(world)
    for key in "ab":
        new = NewRun(key, (NewMessage("user", f"hello {key}", id="1"),))
        runs.capture(world, "acme", bank.id, new, deadline=world.deadline())
        deletion.forget_key(world, bank, key if key == "a" else "nobody", deadline=world.deadline())
    hours(world, 3)
    assert (world.texts(bank, "a"), world.texts(bank, "b")) == ([], ["hello b"])
    messages.edit(world, bank, "1", "hello again", deadline=world.deadline())
    assert world.texts(bank, "b") == ["hello again"]


def test_a_history_is_handed_in_again_under_a_key_that_was_renamed() -> None:
    world = World()
    bank = bank_of(world)
    first, second = NewMessage("user", "hello", id="1"), NewMessage("user", "and", id="2")
    runs.capture(world, "acme", bank.id, NewRun("a", (first,)), deadline=world.deadline())
    renaming.rename(world, bank, "a", "b", deadline=world.deadline())
    runs.capture(world, "acme", bank.id, NewRun("a", (first, second)), deadline=world.deadline())
    hours(world)
    assert (world.texts(bank, "a"), world.texts(bank, "b")) == (["and"], ["hello"])


@pytest.mark.parametrize("ask", [trigger.flush, trigger.regenerate])
def test_a_bank_that_captures_nothing_promises_no_distillation(ask: Any) -> None:
    world = World()
    bank = bank_of(world)
    world.capture(bank, "one")
    bank = off(world, bank)
    with pytest.raises(Conflict) as raised:
        ask(world, bank, "k", deadline=world.deadline())
    assert raised.value.code == "capture_off"


def test_what_waits_without_settings_costs_nothing_and_goes_on_with_them() -> None:
    world = World(chat=ScriptedChat(told))
    bank = bank_of(world, distillation="prompt", auto_capture=False)
    run = world.capture(bank, "fact0", "fact1")
    trigger.flush(world, bank, "k", deadline=world.deadline())
    world.drain()
    world.capture(bank, "fact2")
    bank = off(world, bank)
    messages.delete(world, bank, run.messages[0], deadline=world.deadline())
    hours(world, 3)
    assert world.texts(bank) == []
    world.clock.advance(7200)
    assert world.sweep().ledgers == 0
    change(world, bank, distillation="prompt", auto_capture=False)
    world.distillation.sent.clear()
    hours(world, 3)
    assert facts(world, bank) == ["fact1"], "it was owed; what was only stored waits"
    change(world, bank, auto_capture=True)
    hours(world, 2)
    assert facts(world, bank) == ["fact1", "fact2"]


@pytest.mark.parametrize("kind", ["prompt", "schemas"])
def test_what_was_set_aside_counts_when_it_is_distilled_at_last_and_once(kind: str) -> None:
    chat = ScriptedChat(unless("poison"))
    world = World(chat=chat)
    bank = bank_of(world, **(NOTES if kind == "schemas" else {"distillation": kind}))
    run = world.capture(bank, "poison")
    world.quiet()
    assert listing.get(world, bank, "k").processed == 0
    chat._answers = [json.dumps({"new": [{"content": "apple"}]})]
    [job] = jobs_of(world, bank)
    messages.retry(world, bank, job["sk"], deadline=world.deadline())
    world.drain()
    assert listing.get(world, bank, "k").processed == 1
    messages.edit(world, bank, run.messages[0], "pear", deadline=world.deadline())
    world.drain()
    assert listing.get(world, bank, "k").processed == 1


def test_what_was_owed_of_a_forgotten_key_is_not_distilled_with_what_comes_later() -> None:
    world = World(chat=ScriptedChat("Facts: fact0", ModelUnavailable("down"), told))
    bank = bank_of(world, distillation="prompt")
    run = world.capture(bank, "fact0")
    world.quiet()
    messages.edit(world, bank, run.messages[0], "fact1", deadline=world.deadline())
    world.drain()
    deletion.forget_key(world, bank, "k", deadline=world.deadline())
    assert [item for item in world.table.everything() if item["sk"].startswith("A#")], "it is cleaned later"
    ledger = listing.get(world, bank, "k")
    assert owing.listed(world, bank, ledger, "distil", 10) == [] and not owing.any_of(world, bank, ledger)
    run = world.capture(bank, "fact2")
    world.quiet()
    messages.edit(world, bank, run.messages[0], "fact3", deadline=world.deadline())
    world.drain()
    assert facts(world, bank) == ["fact3"]
    hours(world, 2)
    assert facts(world, bank) == ["fact3"]


@pytest.mark.parametrize("kind", ["none", "prompt"])
def test_an_edit_follows_though_the_table_is_throttled_for_a_moment(kind: str) -> None:
    world = World(chat=ScriptedChat(told))
    bank = bank_of(world, distillation=kind)
    run = world.capture(bank, "fact0", "fact1")
    world.quiet()
    transact, number = world.table.transact, 0

    def throttled(actions: Any) -> None:
        nonlocal number
        number += 1
        if number % 2:
            raise Contended("throttled")
        transact(actions)

    world.table.transact = throttled
    messages.edit(world, bank, run.messages[0], "fact2", deadline=world.deadline())
    world.table.transact = transact
    world.drain()
    assert facts(world, bank) == ["fact1", "fact2"]
