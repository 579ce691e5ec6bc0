"""Anything in any order: clients, queues, schedules, settings, clocks and faults, held against the model in `life.Expected`.

`MEMORY_BANKS_EXAMPLES` says how many lives are tried; a thousand are the least.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.faults.checks import check
from tests.faults.gate import Call, faults_of
from tests.faults.life import FILLER, LONG, Life

pytestmark = pytest.mark.faults

EXAMPLES = int(os.environ.get("MEMORY_BANKS_EXAMPLES", "1000"))
PARTS = 4
"""The examples are tried in so many tests, so that a failure is told early."""

KEYS = st.sampled_from(["k", "k", "k", "other"])
PROMPTS = st.sampled_from(["Keep what matters.", "Keep what matters.", None])
PICK = st.integers(0, 10_000)


class Lives(RuleBasedStateMachine):
    life: Life

    @initialize(
        kind=st.sampled_from(["conversation", "general"]),
        max_turns=st.sampled_from([0, 3, 4, 6]),
        max_size_tokens=st.sampled_from([0, 0, 150]),
        prompt=PROMPTS,
        retention=st.sampled_from([0, 0, 2]),
        seed=st.integers(0, 1_000),
    )
    def born(self, kind: str, max_turns: int, max_size_tokens: int, prompt: str | None, retention: int, seed: int) -> None:
        self.life = Life(
            {
                "type": kind,
                "max_turns": max_turns,
                "max_size_tokens": max_size_tokens,
                "compaction_prompt": prompt,
                "retention_days": retention,
            },
            seed,
            ordered=False,
        )
        self.talk(5, "k", True)

    # -- clients

    @rule(
        key=KEYS,
        count=st.sampled_from([1, 1, 1, 2, 4]),
        text=st.sampled_from([FILLER, FILLER, LONG]),
        ids=st.booleans(),
        once=st.booleans(),
        skew=st.sampled_from([0, 0, 0, -40_000, 2_000]),
    )
    def write(self, key: str, count: int, text: str, ids: bool, once: bool, skew: int) -> None:
        host = self.life.host(skew)
        host.write(key, count, text=text, ids=ids, once=f"request-{len(self.life.expected.notes)}" if once else None)

    @rule(turns=st.integers(2, 6), key=KEYS, worked=st.booleans())
    def talk(self, turns: int, key: str, worked: bool) -> None:
        for _ in range(turns):
            self.life.write(key)
        if worked:
            self.life.work()

    def some(self, pick: int) -> int:
        notes = list(self.life.expected.notes)
        return notes[pick % len(notes)]

    @precondition(lambda self: self.life.expected.notes)
    @rule(pick=PICK, text=st.sampled_from([FILLER, LONG, "!"]))
    def correct(self, pick: int, text: str) -> None:
        self.life.correct(self.some(pick), text=text)

    @precondition(lambda self: self.life.expected.notes)
    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        self.life.delete(self.some(pick))

    @rule(what=st.sampled_from(["summary", "talk", "key", "talk", "talk", "source"]), key=KEYS)
    def forget(self, what: str, key: str) -> None:
        match what:
            case "summary":
                self.life.delete_summary(key)
            case "key":
                self.life.forget(key)
            case "source":
                self.life.delete_source()
            case _:
                self.talk(5, key, True)

    @rule(max_turns=st.sampled_from([0, 2, 3, 6]), prompt=PROMPTS)
    def change_thresholds(self, max_turns: int, prompt: str | None) -> None:
        self.life.change(max_turns=max_turns, compaction_prompt=prompt)

    @rule(days=st.sampled_from([0, 1, 2, 30]))
    def change_retention(self, days: int) -> None:
        self.life.change(retention_days=days)

    @rule(key=st.sampled_from(["k", None]))
    def ask_for_compaction(self, key: str | None) -> None:
        self.life.ask_for_compaction(key)

    @rule()
    def look(self) -> None:
        check(self.life, settled=False)

    # -- queues, schedules, time

    @rule(queue=st.sampled_from(["ingestion", "compaction"]), pick=PICK)
    def handle(self, queue: str, pick: int) -> None:
        self.life.handle(queue, lambda count: pick % count)

    @rule()
    def work(self) -> None:
        self.life.work()

    @rule(queue=st.sampled_from(["ingestion", "compaction"]), pick=PICK, doubled=st.booleans())
    def a_message_is_lost_or_doubled(self, queue: str, pick: int, doubled: bool) -> None:
        waiting = self.life.queues[queue].waiting
        if waiting and doubled:
            waiting.append(waiting[pick % len(waiting)])
        elif waiting:
            del waiting[pick % len(waiting)]

    @rule()
    def sweep(self) -> None:
        self.life.sweep()

    @rule(seconds=st.sampled_from([1, 61, 400, 3_700, 86_400, 200_000]))
    def time_passes(self, seconds: int) -> None:
        self.life.clock.advance(seconds)
        if seconds > 3_600:
            # An index is behind by seconds, never by the days that a retention has.
            self.life.memory_table.lag(False)

    @rule(behind=st.booleans())
    def indexes_lag(self, behind: bool) -> None:
        self.life.memory_table.lag(behind)

    # -- faults

    @rule(calls=st.integers(1, 25), kind=PICK, lasting=st.sampled_from([1, 1, 1, 2, 5]))
    def trouble(self, calls: int, kind: int, lasting: int) -> None:
        """Soon something happens to a call, or to some in a row."""
        first = len(self.life.gate.calls) + calls

        def decide(call: Call) -> str | None:
            if first <= call.number < first + lasting:
                return faults_of(call)[kind % len(faults_of(call))]
            return None

        self.life.gate.decide = decide

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.memory_table.lag(False)
            check(self.life, settled=False)
            self.life.settle()
            check(self.life)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_life_breaks_a_promise(part: int) -> None:
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=EXAMPLES // PARTS,
            stateful_step_count=30,
            deadline=None,
            derandomize=False,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
