"""What users of other memories have reported, each as a test of its own: it must not happen here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from memory_banks import compaction, ids, partitions, tokens
from memory_banks.ports import AnswerCut, ModelError, ModelUnavailable

from tests.faults.checks import check
from tests.faults.gate import Call
from tests.faults.life import FILLER, Life, told_in
from tests.faults.stepping import Stepper

pytestmark = pytest.mark.faults

PROMPT = "Keep what matters."


def compact(life: Life) -> None:
    partition = ids.partition_of(life.bank.id, "k")
    life.process(lambda: compaction.compact(life, life.current(), partition, deadline=life.clock.now() + 120_000))


def told(life: Life) -> list[int]:
    """All notes that are shown, in order, as entries or in the summary."""
    return [number for entry in life.load() for number in told_in(entry.content)]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("compactors", [2, 4])
def test_two_compactions_racing_leave_one_summary(seed: int, compactors: int) -> None:
    stepper = Stepper(seed)
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT}, seed, stepper)
    for _ in range(7):
        life.write()
    life.gate.pause = stepper.pause
    for _ in range(compactors):
        stepper.start(lambda: compact(life))
    stepper.run()
    assert [entry.kind for entry in life.load()] == ["summary", "entry", "entry"]
    assert life.model.calls == 1 and told(life) == list(range(7))
    life.settle()
    check(life)


@pytest.mark.parametrize("seed", range(40))
def test_a_summary_never_lands_in_the_middle_of_the_dialogue(seed: int) -> None:
    stepper = Stepper(seed)
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT}, seed, stepper, ordered=False)
    for _ in range(5):
        life.write()
    life.gate.pause = stepper.pause
    for skew in (0, -5_000, 5_000):
        stepper.start(lambda skew=skew: [life.host(skew).write() for _ in range(2)])  # type: ignore[misc]
    stepper.start(lambda: [compact(life) for _ in range(2)])
    stepper.run()
    kinds = [entry.kind for entry in life.load()]
    assert kinds.count("summary") == 1 and kinds[0] == "summary"
    assert sorted(told(life)) == list(range(11))
    life.settle()
    check(life)


class Wordy:
    """A model that uses every token it may, and folds in nothing."""

    model = "double/wordy"
    window = 4_000
    calls = 0

    def complete(self, system: str, messages: Sequence[Any], *, max_tokens: int, timeout_seconds: float) -> str:
        self.calls += 1
        return f"told {self.calls} " + "so " * ((max_tokens * 4 - 12) // 3)


@pytest.mark.parametrize("settings", [{"max_size_tokens": 800}, {"max_turns": 10}, {"max_turns": 10, "max_size_tokens": 800}])
def test_summaries_are_folded_and_never_pin_the_conversation_at_its_threshold(settings: dict[str, int]) -> None:
    life = Life({**settings, "compaction_prompt": PROMPT})
    life.chat = Wordy()
    since = []
    for number in range(1, 201):
        before = life.chat.calls
        life.write(text=FILLER * 2)
        life.work()
        shown = life.load()
        assert sum(entry.kind == "summary" for entry in shown) <= 1
        if life.chat.calls == before:
            continue
        since.append(number)
        assert len(shown) >= 2 and shown[0].kind == "summary"
        if "max_size_tokens" in settings:
            assert tokens.count(shown[0].content) < 200, "a summary takes more than a quarter"
            assert sum(entry.tokens for entry in shown) <= 400, "compaction does not go down to half the threshold"
    gaps = [later - earlier for earlier, later in pairwise(since)]
    assert len(gaps) > 5 and min(gaps) >= 4, f"the conversation is pinned at its threshold: {gaps}"


def broken(answer: object) -> Any:
    def complete(system: str, messages: Sequence[Any], *, max_tokens: int, timeout_seconds: float) -> str:
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    return complete


FAILURES = {
    "empty": "",
    "blank": " \n\t ",
    "only a fence": "```\n\n```",
    "a refusal": "I'm sorry, but I can't help with that request.",
    "an echo of the prompt": PROMPT,
    "longer than what it replaces": "words and words " * 2_000,
    "cut": AnswerCut("stopped", "told 0"),
    "an error": ModelError("no"),
    "unavailable": ModelUnavailable("no"),
}


@pytest.mark.parametrize("failure", ["empty", "blank", "only a fence"])
def test_an_empty_model_answer_wipes_nothing(failure: str) -> None:
    _one_failed_call(FAILURES[failure])


@pytest.mark.parametrize("failure", FAILURES)
def test_one_failed_call_evicts_nothing(failure: str) -> None:
    _one_failed_call(FAILURES[failure])


def _one_failed_call(answer: object) -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    good, life.model.complete = life.model.complete, broken(answer)  # type: ignore[method-assign]
    for _ in range(5):
        life.write()
    life.work()
    assert told(life) == [0, 1, 2, 3, 4] and [entry.kind for entry in life.load()] == ["entry"] * 5
    found = partitions.read_all(life.memory_table, life.bank, ids.partition_of(life.bank.id, "k"))
    assert found and found[0].failures == 1 and found[0].error
    life.model.complete = good  # type: ignore[method-assign]
    life.settle()
    assert [entry.kind for entry in life.load()] == ["summary", "entry", "entry"]
    check(life)


def test_the_previous_summary_is_not_dropped_by_the_next() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    for count in range(1, 41):
        life.write()
        life.work()
        assert told(life) == list(range(count))
    [summary] = [entry for entry in life.load() if entry.kind == "summary"]
    assert summary.replaces and summary.replaces.entries == len(told_in(summary.content))
    life.settle()
    check(life)


def test_the_previous_summary_is_not_dropped_when_all_that_was_to_join_it_is_deleted() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    for _ in range(5):
        life.write()
    life.work()
    for _ in range(3):
        life.write()
    planned: list[int] = []

    def deletes(call: Call) -> None:
        # After the plan and the raising of floors, before the entries are read to be told.
        if call.port == "table" and call.method == "write" and len(life.gate.calls) > began + 3 and not planned:
            planned.append(1)
            for number in (3, 4, 5):
                life.delete(number)

    began = len(life.gate.calls)
    life.gate.pause = deletes
    compact(life)
    life.gate.pause = None
    assert planned and told(life) == [0, 1, 2, 6, 7]
    life.settle()
    check(life)


def test_the_newest_entry_is_kept_when_others_are_deleted_after_the_count() -> None:
    life = Life({"max_turns": 3})
    for _ in range(5):
        life.write()
    deleted: list[int] = []

    def deletes(call: Call) -> None:
        if call.method == "query" and not deleted:
            deleted.extend([2, 3])
            for number in (2, 3):
                life.delete(number)

    life.gate.pause = deletes
    compact(life)
    life.gate.pause = None
    assert deleted and 4 in told(life)
    life.settle()
    check(life)


@pytest.mark.parametrize("prompt", [PROMPT, None])
def test_history_is_never_drained_before_the_summary_exists(prompt: str | None) -> None:
    def die_at(number: int | None) -> Life:
        life = Life({"max_turns": 4, "compaction_prompt": prompt})
        for _ in range(5):
            life.write()
        life.gate.calls.clear()
        life.gate.decide = lambda call: "dead before" if call.number == number else None
        compact(life)
        life.gate.decide = None
        return life

    calls = len(die_at(None).gate.calls)
    assert calls > 10
    for number in range(1, calls + 1):
        life = die_at(number)
        stored = [item for item in life.memory_table.everything() if item["sk"].startswith("E#")]
        assert sum(item["kind"] == "entry" for item in stored) == 5, "drained by the compaction itself"
        if prompt:
            assert told(life) == [0, 1, 2, 3, 4]
        else:
            assert told(life) in ([0, 1, 2, 3, 4], [1, 2, 3, 4])
        life.settle()
        check(life)
