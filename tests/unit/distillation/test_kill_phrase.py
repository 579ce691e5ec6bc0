"""The kill phrase, as the contract of Langflow's memory bases rules it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_banks.capture.settings import CaptureSettings
from memory_banks.distillation.instructions import DEFAULT, READY, resolved
from memory_banks.distillation.kill_phrase import ruling
from pydantic import ValidationError

PHRASE = "NO_INGEST"


@pytest.mark.parametrize(
    "answer",
    [
        "NO_INGEST",
        "no_ingest",
        "NO_INGEST.",
        "**NO_INGEST**",
        "NO\\_INGEST",
        "There is nothing here, so: NO_INGEST",
        "- Bob likes tea\nNO_INGEST",
        "I answer no_ingest because these are greetings.",
    ],
)
def test_contains_skips_whatever_stands_beside_the_phrase(answer: str) -> None:
    ruled = ruling(answer, PHRASE, "contains")
    assert (ruled.skipped, ruled.text) == (True, "")
    assert ruled.note and PHRASE in ruled.note


@pytest.mark.parametrize("match", ["contains", "whole"])
@pytest.mark.parametrize("answer", ["Bob likes tea.", "NO INGESTION today", "no-ingest", "INGEST", ""])
def test_an_answer_without_the_phrase_is_kept_as_it_is(answer: str, match: str) -> None:
    ruled = ruling(answer, PHRASE, match)  # type: ignore[arg-type]
    assert (ruled.skipped, ruled.text, ruled.note) == (False, answer, None)


@pytest.mark.parametrize(
    "answer",
    [
        "NO_INGEST",
        "NO_INGEST.",
        "**NO_INGEST**",
        '"no_ingest"',
        "_NO_INGEST_",
        "`NO_INGEST`\n",
        "> NO\\_INGEST!",
        "NO_INGEST\n\nNO_INGEST",
        "«NO_INGEST»",
        "NO_INGEST: there are only greetings in this conversation.",
    ],
)
def test_whole_skips_when_nothing_of_substance_stands_beside_the_phrase(answer: str) -> None:
    ruled = ruling(answer, PHRASE, "whole")
    assert (ruled.skipped, ruled.text) == (True, "")
    assert ruled.note


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("- Bob likes tea\nNO_INGEST", "- Bob likes tea"),
        ("**NO_INGEST** for the greeting.\n- Bob likes tea\n- Ana moved", "- Bob likes tea\n- Ana moved"),
        ("Bob likes tea. NO_INGEST", "Bob likes tea."),
    ],
)
def test_whole_keeps_facts_and_drops_the_phrase_s_line(answer: str, kept: str) -> None:
    ruled = ruling(answer, PHRASE, "whole")
    assert (ruled.skipped, ruled.text) == (False, kept)
    assert ruled.note and "kept" in ruled.note


def test_whole_takes_the_phrase_for_a_word_of_its_own() -> None:
    answer = "The flag XNO_INGESTED was set."
    assert ruling(answer, PHRASE, "whole").text == answer


def test_a_phrase_of_several_words_may_be_wrapped() -> None:
    assert ruling("Nothing to\n remember", "nothing to remember", "whole").skipped


@given(st.text(), st.text(min_size=1).filter(str.strip))
def test_any_phrase_and_answer_have_a_ruling(answer: str, phrase: str) -> None:
    for match in ("contains", "whole"):
        ruled = ruling(answer, phrase, match)  # type: ignore[arg-type]
        assert ruled.skipped == (not ruled.text and ruled.note is not None)
    assert ruling(f"{answer} {phrase}", phrase, "contains").skipped


def test_a_blank_phrase_is_refused() -> None:
    with pytest.raises(ValidationError, match="kill_phrase"):
        CaptureSettings(kill_phrase="  ")


def test_ready_instructions_are_chosen_by_name() -> None:
    assert list(READY) == ["general", "general_or_nothing", "durable"]
    assert resolved("general", PHRASE) == READY["general"]
    assert PHRASE not in resolved("general", PHRASE)
    assert resolved("general_or_nothing", "SKIP") == READY["general"] + "\n\n" + (
        "Where there are no meaningful facts, only greetings or filler, answer exactly: SKIP"
    )
    assert "answer exactly: SKIP" in resolved("durable", "SKIP")


def test_own_instructions_stand_and_none_means_the_default() -> None:
    assert resolved("Only prices. Else say {kill_phrase}.", "SKIP") == "Only prices. Else say SKIP."
    assert resolved(None, PHRASE) == resolved("  ", PHRASE) == DEFAULT.replace("{kill_phrase}", PHRASE)
