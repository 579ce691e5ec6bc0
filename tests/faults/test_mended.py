"""What the faults have found, each as a test of its own, so that it stays mended."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import compaction, ids, ingestion, jobs, partitions, sweeping

from tests.faults.checks import check
from tests.faults.gate import Call, Death
from tests.faults.life import FILLER, LONG, Life, told_in

pytestmark = pytest.mark.faults

PROMPT = "Keep what matters."


def head(life: Life, key: str = "k") -> partitions.Head:
    found = partitions.read_all(life.memory_table, life.current(), ids.partition_of(life.bank.id, key))
    assert found
    return found[0]


def test_a_throttled_look_for_a_lost_answer_does_not_write_twice() -> None:
    life = Life()
    life.write()
    faults = iter(["unanswered", "contended"])
    life.gate.decide = lambda call: next(faults, None) if call.method == "transact" or call.number > before + 2 else None
    before = len(life.gate.calls)
    assert not life.write(), "nobody knows whether it was written"
    life.gate.decide = None
    assert len(life.load()) == 2
    check(life, settled=False)


def test_a_forgotten_id_can_be_imported_again_at_once() -> None:
    life = Life()
    life.write(count=2, ids=True)
    life.forget()
    assert life.send([0, 1])
    assert [told_in(entry.content) for entry in life.load()] == [[0], [1]]
    life.settle()
    check(life)
    assert life.send([0]) and len(life.load()) == 2


def test_an_expired_id_can_be_imported_again_before_the_sweep() -> None:
    life = Life({"retention_days": 2})
    life.write(ids=True)
    life.clock.advance(days=2, seconds=1)
    assert life.send([0]) and len(life.load()) == 1
    life.settle()
    check(life)


def test_a_lagging_age_index_takes_no_id_that_was_given_away_anew() -> None:
    life = Life({"retention_days": 2})
    life.write(ids=True)
    life.work()
    life.clock.advance(days=2, seconds=1)
    life.memory_table.lag(True)
    life.send([0])
    life.sweep()
    life.memory_table.lag(False)
    life.work()
    assert life.send([0]) and len(life.load()) == 1
    life.settle()
    check(life)


def test_a_compaction_that_dies_after_its_commit_leaves_the_rest_due() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    for _ in range(5):
        life.write()

    def more() -> None:
        for _ in range(6):
            life.write()
        while life.handle("ingestion"):
            pass

    life.model.during = more
    committed: list[Call] = []

    def dies(call: Call) -> str | None:
        if committed:
            return "dead before"
        if call.method == "transact" and life.model.calls and life.model.during is None and head(life).lease and not thinking():
            committed.append(call)
        return None

    def thinking() -> bool:
        return (
            len(life.expected.notes) < 11
            or any(note.doubts for note in life.expected.notes.values())
            or bool(life.queues["ingestion"].waiting)
        )

    partition = ids.partition_of(life.bank.id, "k")
    life.gate.decide = dies
    well, _ = life.process(lambda: compaction.compact(life, life.current(), partition, deadline=life.clock.now() + 120_000))
    life.gate.decide = None
    assert committed and not well and [entry.kind for entry in life.load()].count("summary") == 1
    assert head(life).due_at is not None, "over its threshold, and nobody will look"
    life.queues["compaction"].waiting.clear()
    life.settle()
    check(life)
    assert sum(entry.kind == "entry" for entry in life.load()) <= 4


def test_a_compaction_that_finds_nothing_takes_no_mark_that_came_meanwhile() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    for _ in range(5):
        life.write()
    life.work()
    for _ in range(2):
        life.write()
    life.gate.pause = lambda call: _once(life, call)
    partition = ids.partition_of(life.bank.id, "k")
    compaction.compact(life, life.current(), partition, deadline=life.clock.now() + 120_000)
    life.gate.pause = None
    life.queues["compaction"].waiting.clear()
    life.settle()
    assert sum(entry.kind == "entry" for entry in life.load()) <= 4
    check(life)


def _once(life: Life, call: Call) -> None:
    """After the lease was taken and the counters were read: a write crosses the threshold and asks."""
    if call.method == "write" and head(life).lease and len(life.expected.notes) == 7:
        life.write()
        while life.handle("ingestion"):
            pass


def test_a_bank_whose_source_was_deleted_still_forgets_on_time() -> None:
    life = Life({"retention_days": 2})
    life.write()
    life.work()
    life.delete_source()
    life.write()
    life.settle()
    life.clock.advance(days=3)
    life.settle()
    assert not [item for item in life.memory_table.everything() if item["sk"].startswith("E#")]
    check(life)


def test_a_forgotten_key_takes_its_jobs_along() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    life.write("k")
    life.write("other")
    for key in ("k", "other"):
        life.ask_for_compaction(key)
    life.work()
    life.forget("k")
    life.work()
    assert [job["key"] for job in jobs.listed(life, life.current())[0]] == ["other"]


def test_the_sweep_goes_on_after_an_item_that_fails_unexpectedly(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life()
    for key in "abcdef":
        life.write(key)
    life.queues["ingestion"].waiting.clear()
    poisoned = ids.partition_of(life.bank.id, "c")
    real = sweeping.writing.message_of

    def message_of(bank: Any, partition: str, sorts: Any) -> Any:
        if partition == poisoned:
            raise KeyError("a bug")
        return real(bank, partition, sorts)

    monkeypatch.setattr(sweeping.writing, "message_of", message_of)
    life.clock.advance(3600)
    with pytest.raises(KeyError):
        sweeping.sweep(life, "compaction", deadline=life.clock.now() + 600_000)
    assert len(life.queues["ingestion"].waiting) == 5
    monkeypatch.undo()
    life.settle()
    check(life)


def test_a_correction_to_fewer_chunks_leaves_none_of_the_old_text_in_the_index() -> None:
    life = Life()
    life.write(text=LONG)
    life.gate.decide = lambda call: "dead after" if (call.port, call.method) == ("index", "write") else None
    life.work()  # the old chunks are in the index, unconfirmed
    life.gate.decide = None
    life.correct(0, text=FILLER)
    life.queues["ingestion"].waiting = life.queues["ingestion"].waiting[-1:]
    life.work()
    life.settle()
    check(life)


def test_a_late_function_that_dies_leaves_no_chunk_of_the_old_text(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life()
    life.write(text=LONG)
    [(_, _, message)] = life.queues["ingestion"].waiting
    real = life.memory_index.write

    def late(*args: Any) -> Any:
        """While it embeds, the text is corrected and indexed; then it writes the old one and dies."""
        life.memory_index.write = real  # type: ignore[method-assign]
        life.correct(0, text=FILLER)
        while life.handle("ingestion"):
            pass
        real(*args)
        raise Death

    life.memory_index.write = late  # type: ignore[method-assign]
    life.queues["ingestion"].waiting.clear()
    well, _ = life.process(lambda: ingestion.ingest(life, message))
    assert not well
    life.queues["ingestion"].give_back(0, message)
    life.settle()
    check(life)


def test_a_late_function_that_dies_leaves_nothing_of_a_deleted_neighbour() -> None:
    life = Life()
    for _ in range(3):
        life.write()
    life.work()
    life.write()
    [(_, _, message)] = life.queues["ingestion"].waiting
    real = life.memory_index.write

    def late(*args: Any) -> Any:
        life.memory_index.write = real  # type: ignore[method-assign]
        life.delete(2)
        while life.handle("ingestion"):
            pass
        real(*args)
        raise Death

    life.memory_index.write = late  # type: ignore[method-assign]
    life.queues["ingestion"].waiting.clear()
    life.process(lambda: ingestion.ingest(life, message))
    life.settle()
    check(life)


def test_a_window_that_the_model_refuses_ends_its_clean_up() -> None:
    life = Life()
    for _ in range(5):
        life.write()
    life.work()
    life.delete(2)
    life.gate.decide = lambda call: "refused" if call.port == "embedder" else None
    life.work()
    life.clock.advance(3_700)
    life.sweep()
    life.gate.decide = None
    assert not [item for item in life.memory_table.everything() if item["sk"].startswith("X#")]
