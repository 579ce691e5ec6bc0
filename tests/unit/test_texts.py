"""What is embedded and analysed."""

from __future__ import annotations

import pytest
from memory_banks import texts
from memory_banks.entries import Entry

MAY_8 = 1_683_554_160_000  # 2023-05-08T13:56:00Z


def entry(content: str, speaker: str | None = "Ann", at: int = MAY_8) -> Entry:
    return Entry(sort="0" * 26, partition="0" * 26, key="k", content=content, speaker=speaker, occurred_at=at)


def test_a_chunk_says_who_when_and_what() -> None:
    assert texts.chunk_text(entry("I went to the lake. Then home."), (0, 19)) == "Ann (8 May 2023): I went to the lake."


def test_without_a_speaker_the_day_comes_last() -> None:
    assert texts.chunk_text(entry("The lake is cold.", None), (0, 17)) == "The lake is cold. (8 May 2023)"


def test_a_window_holds_its_turns_in_order() -> None:
    turns = [entry("Where were you?"), entry("At the lake.", "Bob"), entry("Nice!")]
    assert texts.window_text(turns) == "8 May 2023\nAnn: Where were you?\nBob: At the lake.\nAnn: Nice!"
    assert texts.window_text(turns[:2]) == "8 May 2023\nAnn: Where were you?\nBob: At the lake."


def test_a_window_of_long_turns_keeps_what_is_close() -> None:
    before, middle, after = "x" * 200_000 + "<end", "<begin" + "y" * 200_000, "<next" + "z" * 200_000
    text = texts.window_text([entry(before), entry(middle), entry(after)])
    assert len(text) < 2 * texts.WINDOW_SIDE + texts.WINDOW_MIDDLE + 100
    assert all(part in text for part in ("<end", "<begin", "<next"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("When did Caroline go to the lake?", "Caroline go to the lake?"),
        ("What's her dog called?", "dog called?"),
        ("Who is it?", "it?"),
        ("what", "what"),
        ("WHO ARE YOU", "WHO ARE YOU"),
        ("May I ask Will?", "May ask Will?"),
        ("whatever whoever", "whatever whoever"),
        ("don't", "don't"),
        ("error E_STALE_LEASE in foo_is_bar", "error E_STALE_LEASE in foo_is_bar"),
        ("小李不能吃什么？", "小李不能吃什么？"),
        ('"AND" (NOT) -x*', '"AND" (NOT) -x*'),
        ("", ""),
    ],
)
def test_keywords_leave_out_question_words_only(query: str, expected: str) -> None:
    assert " ".join(texts.keywords(query).split()) == expected


def test_days_are_in_english_and_utc_far_into_past_and_future() -> None:
    assert texts.day(0) == "1 January 1970"
    assert texts.day(-30_610_224_000_000) == "1 January 1000"
    assert texts.day(253_402_214_400_000) == "31 December 9999"
