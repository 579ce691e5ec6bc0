"""The model of rules behind a memory service: what it is shown of a conversation, and its answers in the form that it is asked for.

It takes what the service sends to any model (the schema, the documents that are there, the messages, all fenced), and answers
what is new in it as a document, as edits of one, or as edits and new ones.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from examples.offline import knowing
from examples.offline.facts import Fact, facts
from examples.offline.model_server import Asked

_TAG = re.compile(r"<entry-([0-9a-f]{16})>")
_SHAPE = "valid under this JSON Schema:\n"


class Shown(NamedTuple):
    """What a distillation is given."""

    answer: frozenset[str]
    """The names in the answer that is wanted: `value`, or `operations`, or `changes` and `new`."""
    kind: str
    """`profile` or `notes`, by what the schema names; empty for another memory type."""
    said: tuple[str, ...]
    """What the user said, in order."""
    memories: dict[str, dict[str, Any]]
    """The documents that are there, by the id they are shown under; that of the one profile is empty."""

    @property
    def facts(self) -> list[Fact]:
        """What the user stated."""
        return [fact for text in self.said for fact in facts(text)]


def shown(asked: Asked) -> Shown:
    """What the service shows a model. The last schema in its instructions is that of the answer."""
    before, _, shape = asked.system.rpartition(_SHAPE)
    answer = json.loads(shape)["properties"] if shape.startswith("{") else {}
    kind = "profile" if '"user_name"' in before else "notes" if '"content"' in before else ""
    found = _TAG.search(asked.system)
    tag = found[1] if found else "-"
    material = asked.messages[0]
    entries = re.findall(rf'<entry-{tag}[^\n]*? speaker="([^"\n]*)">\n(.*?)\n</entry-{tag}>', material, re.DOTALL)
    memories = re.findall(rf'<memory-{tag}(?: id="([^"\n]*)")?>\n(.*?)\n</memory-{tag}>', material, re.DOTALL)
    said = tuple(text for speaker, text in entries if speaker == "user" or speaker.endswith("(user)"))
    return Shown(frozenset(answer), kind, said, {name: json.loads(text) for name, text in memories})


def distilled(asked: Asked) -> str:
    """The answer, as JSON. Of a memory type that the rules don't know nothing is remembered."""
    return json.dumps(answer(shown(asked)), ensure_ascii=False)


def answer(given: Shown) -> dict[str, Any]:
    """The answer to what was given."""
    if "value" in given.answer:
        made = knowing.profile({}, given.facts) if given.kind == "profile" else {}
        return {"value": made or None}
    if "operations" in given.answer:
        [document] = given.memories.values()
        changed = knowing.profile(document, given.facts) if given.kind == "profile" else {}
        return {"plan": _plan(changed), "operations": _edits(changed)}
    made_of = knowing.notes(given.memories, given.facts if given.kind == "notes" else ())
    changes = [
        {
            "id": name,
            "operations": _edits({field: value for field, value in note.items() if value != given.memories[name].get(field)}),
        }
        for name, note in made_of.edited.items()
    ]
    return {"plan": _plan(changes or made_of.new), "changes": changes, "new": made_of.new}


def _edits(changed: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": f"/{field}", "value": value} for field, value in changed.items()]


def _plan(changes: object) -> str:
    return "Write down what the user told." if changes else "Nothing new was told."
