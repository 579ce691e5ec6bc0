"""What a prompt is to remember: ready instructions, by name, and what holds where a bank has none."""

from __future__ import annotations

from collections.abc import Mapping

KILL_PHRASE = "{kill_phrase}"
"""In instructions, ready or own: the bank's kill phrase."""

DEFAULT = f"""\
Write down what is worth knowing later: facts about people, things and circumstances, what was decided or promised, preferences, \
plans with their dates, and open questions. One fact a line, each to be understood without the conversation. Leave out greetings \
and small talk. Where nothing is worth knowing later, answer exactly: {KILL_PHRASE}"""

_GENERAL = """\
Write down the key facts of this conversation, briefly: the issue that was reported, the steps that were tried and what came of \
each, and the outcome, be it a resolution or what is still open. Keep names, versions, numbers and error messages as they are. \
Think of a support agent who has only your notes next time, and give what that person needs."""

_NOTHING = f"""\
Where there are no meaningful facts, only greetings or filler, answer exactly: {KILL_PHRASE}"""

_DURABLE = f"""\
Keep only what will still matter in other conversations. First judge the conversation by points, one for each kind that it has:

1. core traits: biography, values, relationships;
2. durable preferences: tools, formats, constraints;
3. active projects and milestones: goals, deadlines, work of several steps.

Stack traces and the debugging of syntax, filler, and facts that only repeat what was said before are worth nothing. With no point \
at all, answer exactly: {KILL_PHRASE}
Otherwise answer with nothing but the durable facts, as concise bullets, one fact each; leave out debugging that is over when the \
session is. Don't write the points."""

READY: Mapping[str, str] = {
    "general": _GENERAL,
    "general_or_nothing": f"{_GENERAL}\n\n{_NOTHING}",
    "durable": _DURABLE,
}
"""The ready instructions; a bank's `instructions` that are one of these names mean its text."""


def resolved(instructions: str | None, kill_phrase: str) -> str:
    """The instructions of a bank in full: its own text, the ready one that it names, or the default when it has none."""
    wanted = (instructions or "").strip()
    return READY.get(wanted, wanted or DEFAULT).replace(KILL_PHRASE, kill_phrase)
