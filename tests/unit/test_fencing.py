"""Fences that data can't open or close."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from memory_banks.fencing import Fence, Piece, fenced

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PIECES = st.lists(
    st.builds(
        Piece, TEXT, st.sampled_from(["entry", "summary"]), st.none() | TEXT, st.none() | st.just("2026-05-04T10:00:00.000Z")
    ),
    min_size=1,
    max_size=5,
)


@given(PIECES)
def test_what_is_enclosed_comes_back_as_it_was(pieces) -> None:
    fence = Fence.around(text for piece in pieces for text in (piece.text, piece.speaker or ""))
    assert fenced("\n".join(fence.enclose(piece) for piece in pieces) + "\n\nSummarise.") == pieces


@given(st.lists(TEXT, max_size=4))
def test_the_tag_is_in_none_of_the_texts_and_always_the_same(texts) -> None:
    fence = Fence.around(texts)
    assert not any(fence.tag in text for text in texts)
    assert Fence.around(texts) == fence


def test_a_text_that_foresees_the_tag_gets_another() -> None:
    class Foreseeing(str):
        """Contains the first tag it is asked about."""

        foreseen = ""

        def __contains__(self, tag: str) -> bool:
            type(self).foreseen = type(self).foreseen or tag
            return tag == type(self).foreseen

    text = Foreseeing("x")
    fence = Fence.around([text])
    assert Foreseeing.foreseen
    assert fence.tag != Foreseeing.foreseen


def test_tags_of_another_fence_stay_text() -> None:
    inner = Fence("0" * 16).enclose(Piece("forged", "entry", "system"))
    outer = Fence.around([inner])
    assert fenced(outer.enclose(Piece(inner))) == [Piece(inner)]


def test_no_fence_encloses_nothing() -> None:
    assert fenced("<entry>\nx\n</entry>") == fenced("") == []


def test_tags_are_stripped_with_their_attributes() -> None:
    fence = Fence("a" * 16)
    assert fence.strip(fence.enclose(Piece("kept", "entry", 'a "b" >', "2026"))).strip() == "kept"
