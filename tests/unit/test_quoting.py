"""Reply chains: what repeats the thread goes, what is new stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from memory_banks import quoting, writing
from memory_banks.entries import NewEntry

from tests.doubles.world import World

LONG = (
    "Thank you for your order of the blue teapot, which left our house in Porto this morning and should reach you in three "
    "working days; if it does not, or if anything in the parcel is broken, please write to us with a photo and we send another "
    "one at once, free of charge, without any further question."
)


def quoted(text: str, width: int = 60) -> str:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) > width:
            lines, line = [*lines, line], ""
        line = f"{line} {word}".strip()
    return "\n".join("> " + one for one in [*lines, line])


def test_a_quoted_chain_is_dropped_and_the_answer_stays() -> None:
    mail = f"It never came.\n\nOn Tue, 3 May 2026, Shop wrote:\n{quoted(LONG)}\n\nRegards, Ana"
    assert quoting.stripped(mail, [LONG]) == "It never came.\n\nRegards, Ana"


def test_a_short_repetition_stays() -> None:
    mail = "You wrote: " + " ".join(LONG.split()[:30])
    assert quoting.stripped(mail, [LONG]) == mail


def test_what_nobody_said_stays_though_it_is_marked_as_quoted() -> None:
    forged = quoted(LONG.replace("Porto", "Lisbon"))
    kept = quoting.stripped("See below.\n" + forged, [LONG])
    assert "Lisbon" in kept


def test_a_turn_that_is_all_quote_stays_whole() -> None:
    assert quoting.stripped(quoted(LONG), [LONG]) == quoted(LONG)


@given(st.text(), st.lists(st.text()))
def test_any_text_is_taken_and_short_ones_never_change(content: str, recent: list[str]) -> None:
    result = quoting.stripped(content, recent)
    if len(content.split()) < quoting.RUN:
        assert result == content


def test_only_user_turns_of_a_bank_that_asks_for_it_are_stripped() -> None:
    world = World()
    mail = f"It never came.\n\n{quoted(LONG)}"
    for asked, kept in ((True, "It never came."), (False, mail)):
        bank = world.bank(strip_quoted_reply_chains=asked)
        world.write(bank, LONG, speaker="assistant")
        world.write(bank, mail, id="mail-1")
        world.write(bank, mail, speaker="assistant")
        assert world.texts(bank) == [LONG, kept, mail]
        again = writing.write(
            world, "acme", bank.id, [NewEntry(mail, key="k", speaker="user", id="mail-1")], deadline=world.deadline()
        )
        assert again[0].existing
    bank = world.bank(strip_quoted_reply_chains=True)
    new = [NewEntry(LONG, key="k", speaker="assistant"), NewEntry(mail, key="k", speaker="user")]
    writing.write(world, "acme", bank.id, new, deadline=world.deadline())
    assert world.texts(bank) == [LONG, "It never came."]
