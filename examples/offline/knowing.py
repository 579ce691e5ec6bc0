"""What follows from facts: which fields of a profile change, which notes are written or rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from examples.offline.facts import Fact

Document = Mapping[str, Any]


class Notes(NamedTuple):
    """What is done about notes."""

    edited: dict[str, dict[str, Any]]
    """Whole notes by the id of the one that they replace."""
    new: list[dict[str, Any]]


def profile(before: Document, told: Iterable[Fact]) -> dict[str, Any]:
    """The fields of a user's profile that the facts change, with their new values."""
    after = dict(before)
    for fact in told:
        match fact.kind:
            case "name":
                after["user_name"] = fact.value
            case "age":
                after["age"] = int(fact.value)
            case "home" | "occupation":
                after[fact.kind] = fact.value
            case "likes":
                liked = after.get("interests") or []
                after["interests"] = liked if fact.value in liked else [*liked, fact.value]
            case "no longer likes":
                after["interests"] = [one for one in after.get("interests") or [] if one != fact.value]
            case _:
                pass  # of a friend
    return {name: value for name, value in after.items() if value != before.get(name, [])}


def notes(existing: Mapping[str, Document], told: Iterable[Fact]) -> Notes:
    """The notes that the facts about friends make, given those there are by id: one note a friend."""
    known = {place: dict(note) for place, note in existing.items()}
    new: list[dict[str, Any]] = []
    edited: dict[str, dict[str, Any]] = {}
    for fact in told:
        if fact.kind not in {"friend", "renamed"}:
            continue
        name = fact.value if fact.kind == "friend" else fact.about
        place = next((place for place, note in known.items() if _is_about(note, name)), None)
        fresh = next((note for note in new if _is_about(note, name)), None)
        note = known[place] if place is not None else fresh
        if fact.kind == "renamed" and note is not None:
            note["content"] = f"{fact.value}, called {name} before, {note['content'].removeprefix(name).strip()}"
        elif fact.kind == "friend" and note is not None:
            note["content"] = f"{name} {fact.about}"
        elif fact.kind == "friend":
            new.append({"context": "when friends come up", "content": f"{name} {fact.about}"})
        if place is not None:
            edited[place] = known[place]
    return Notes(edited, new)


def _is_about(note: Document, name: str) -> bool:
    said = str(note.get("content", ""))
    return said.startswith((f"{name} ", f"{name},")) or said == name
