"""A life whose bank captures runs, and a model that remembers every note it is shown."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from memory_banks.capture import listing, messages, runs, trigger
from memory_banks.capture.ledger import Ledger
from memory_banks.capture.runs import NewMessage, NewRun
from memory_banks.store.store import Store

from tests.doubles.memory_blobs import MemoryBlobs
from tests.faults.gate import Call, Through
from tests.faults.life import Life

NOTE = re.compile(r"\bnote\d+[a-z]?\b")
MEMORY = re.compile(r"(?s)<memory-.*?</memory-[0-9a-f]+>")

KINDS: dict[str, dict[str, Any]] = {
    "none": {},
    "prompt": {"distillation": "prompt"},
    "insert": {
        "distillation": "schemas",
        "memory_types": [
            {
                "name": "Note",
                "update_mode": "insert",
                "parameters": {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
            }
        ],
    },
    "patch": {
        "distillation": "schemas",
        "memory_types": [
            {
                "name": "List",
                "update_mode": "patch",
                "parameters": {"type": "object", "properties": {"notes": {"type": "array", "items": {"type": "string"}}}},
            }
        ],
    },
}


class TellingChat:
    """A model that remembers every note it is shown: as a text, as one new document each, or in the list of one document."""

    model = "double/telling"
    window = 100_000

    def __init__(self) -> None:
        self.calls = 0
        self.during: Callable[[], object] | None = None
        """What happens, once, while it thinks."""

    def complete(self, system: str, told: Sequence[Any], *, max_tokens: int, timeout_seconds: float) -> str:
        self.calls += 1
        text = "\n".join(message.content for message in told)
        during, self.during = self.during, None
        if during:
            during()
        notes = list(dict.fromkeys(NOTE.findall(MEMORY.sub("", text))))
        if "JSON Schema" not in system:
            return "The user said: " + ", ".join(notes)
        known = set(NOTE.findall(" ".join(MEMORY.findall(text))))
        fresh = [note for note in notes if note not in known]
        if '"operations"' in system and '"changes"' not in system:
            return json.dumps({"operations": [{"op": "add", "path": "/notes/-", "value": note} for note in fresh]})
        if '"new"' in system:
            return json.dumps({"changes": [], "new": [{"content": note} for note in fresh]})
        return json.dumps({"value": {"notes": fresh}})


class CapturingLife(Life):
    """The verbs of capture, and what must be remembered for it."""

    def __init__(self, kind: str = "none", **capture: Any) -> None:
        self.kind = kind
        super().__init__(settings={"capture": KINDS[kind] | capture})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.blobs = MemoryBlobs()
        self.telling = TellingChat()
        self.chat = Through(self.gate, "chat", self.telling, {"complete"})
        self.acknowledged: dict[str, str] = {}
        """The note by its message's id, of runs and edits that were answered."""
        self.doubtful: set[str] = set()
        """Notes of requests that failed: they may be there or not."""
        self.gone: set[str] = set()

    def run(self, name: str, *notes: str) -> bool:
        """A run whose client sends it again, up to three times, until it is answered."""
        new = NewRun("k", tuple(NewMessage("user", f"{note} was said", id=f"m-{note}") for note in notes), id=name, user_id="ann")
        for _ in range(3):
            well, _ = self.process(lambda: runs.capture(self, "acme", self.bank.id, new, deadline=self.deadline()))
            if well:
                self.acknowledged |= {f"m-{note}": note for note in notes}
                return True
        self.doubtful |= set(notes)
        return False

    def edit(self, note: str, text: str) -> None:
        self.doubtful.add(text)
        for _ in range(3):
            well, _ = self.process(
                lambda: messages.edit(self, self.current(), f"m-{note}", f"{text} was said", deadline=self.deadline())
            )
            if well:
                if f"m-{note}" in self.acknowledged:
                    self.acknowledged[f"m-{note}"] = text
                    self.doubtful.discard(text)
                self.gone.add(note)
                return
        self.doubtful.add(note)
        self.acknowledged.pop(f"m-{note}", None)

    def remove(self, note: str) -> None:
        for _ in range(3):
            well, _ = self.process(lambda: messages.delete(self, self.current(), f"m-{note}", deadline=self.deadline()))
            if well:
                break
        self.acknowledged.pop(f"m-{note}", None)
        (self.gone if well else self.doubtful).add(note)

    def regenerate(self) -> None:
        self.process(lambda: trigger.regenerate(self, self.current(), "k", deadline=self.deadline()))

    def quiet(self) -> None:
        self.clock.advance(16)
        self.work()

    def before(self, port: str, method: str, act: Callable[[], object], *, skip: int = 0) -> None:
        """Do something, once, before the next such call of a port (after `skip` of them)."""
        left = skip

        def pause(call: Call) -> None:
            nonlocal left
            if (call.port, call.method) != (port, method):
                return
            if left:
                left -= 1
                return
            self.gate.pause = None
            act()

        self.gate.pause = pause

    def ledger(self) -> Ledger:
        with self.gate.open():
            return listing.get(self, self.current(), "k")

    def told(self) -> Counter[str]:
        """How often each note is remembered."""
        if self.kind in {"none", "prompt"}:
            return Counter(note for entry in self.load() for note in NOTE.findall(entry.content))
        with self.gate.open():
            found = Store(self, "acme").search(("ann",), limit=100)
        return Counter(note for one in found for note in NOTE.findall(json.dumps(one.document.value)))


def right_in_the_end(life: CapturingLife) -> None:
    """Each acknowledged message made into memory once, as it is now; nothing deleted; nothing left of the work."""
    life.settle(hours=4)
    found = life.told()
    expected = {text for text in life.acknowledged.values() if text not in life.doubtful}
    for note in expected:
        assert found[note] == 1, f"{note} is remembered {found[note]} times: {dict(found)}"
    if life.kind in {"none", "prompt"}:
        assert not (set(found) & (life.gone - life.doubtful)), f"gone, and yet remembered: {set(found) & life.gone}"
    assert set(found) <= expected | life.doubtful | life.gone, dict(found)
    assert max(found.values(), default=0) <= 1, dict(found)
    ledger = life.ledger()
    left = (ledger.lease, ledger.plan, ledger.reset, ledger.owes, ledger.running)
    assert (ledger.pending, *left) == (0, None, None, None, False, None)
    assert not [item["sk"] for item in life.memory_table.everything() if item["pk"].startswith("M#") and item["sk"][:2] == "A#"]
