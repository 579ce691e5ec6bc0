"""Distillation by a prompt: one answer of a model for a batch of messages, kept as entries instead of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .. import structured, tokens
from ..capture.message import Message
from ..capture.settings import CaptureSettings
from ..fencing import Fence
from ..limits import CONTENT_BYTES
from ..ports import AnswerCut, ChatModel, Clock, ModelError, ModelUnavailable
from ..ports import Message as Said
from ..refusals import is_refusal
from ..summarising import cleaned
from . import instructions, kill_phrase, material

ATTEMPTS = structured.ATTEMPTS

ANSWER = 4_000
"""Tokens of an answer at most."""
SMALL = 200
"""Tokens of a batch that is kept word for word where no model can condense it."""

RULES = """\
You write the memory of an assistant. From the messages of a conversation, which are given to you, you make what is kept of it; \
the messages themselves are not kept.

- What to keep and how to write it, the operator of this memory says below.
- Write dates out instead of "today" or "last week": each message has the date it was said.
- Write in the language of the conversation unless the operator asks for another, in plain text. No introduction, no code fence, \
nothing about yourself or this task.
- """
OPERATOR = "\n\nThe operator of this memory says:\n"
CLOSING = "\n\nNow write what is to be kept of the material above."

BLANK = "That was empty. Write what is to be kept of the material, as the operator says."
REFUSED = "That is no answer. Nothing is asked of you but to note what was said, as the operator says."
ECHOED = "That repeats what you were given. Write what is to be kept of the material, in your own words and without tags."
CUT = "That was too long and was cut off. Write it again in about half the length."

BY_RULES = "By rules, because no chat model is configured: {what}, word for word. Instructions are not followed."

_FILLER = re.compile(
    r"(?:(?:hi|hello|hey|thanks|thank you|thx|ok|okay|yes|yep|no|nope|sure|great|cool|nice|bye|goodbye|see you|please|"
    r"good (?:morning|evening|night|day)|you(?:'|’)?re welcome|how are you|there|all|so much|very much|a lot)[\s,.!?…]*)+",
    re.IGNORECASE,
)
_PARAGRAPH = re.compile(r"\n\s*\n")


class Prompted(NamedTuple):
    """What a batch was made into: the texts of entries, in order, and what a person should know about it, if anything."""

    texts: tuple[str, ...]
    note: str | None = None


def distil(chat: ChatModel, messages: Sequence[Message], settings: CaptureSettings, *, deadline: int, clock: Clock) -> Prompted:
    """What the model makes of the messages: one answer, in several texts where an entry can't hold it.

    None for an answer that the kill phrase skips, and for messages without anything in them (the model isn't asked). An answer
    that is blank, refuses or repeats the tags is asked for again, three times in all. No call begins after `deadline` (ms).
    Nothing is written: it may be called again.

    Raises `ModelUnavailable` when the model can't be asked or the time is over: a pause. `ModelError` when nothing can be made
    of this batch: no usable answer, or more material than the window takes.
    """
    shown = material.pieces(messages)
    if not shown:
        return Prompted((), "Nothing to remember: every message is blank or an error.")
    fence = material.fence(shown)
    if structured.is_rule_based(chat):
        return _by_rules(chat, messages, fence, deadline, clock)
    if fitting(chat, messages, settings) < len(messages):
        size = sum(tokens.count(piece.text) for piece in shown)
        raise ModelError(f"The messages have {size:,} tokens, more than {chat.model}'s window of {chat.window:,} takes.")
    system = _system(settings, fence)
    talk = [Said("user", material.enclosed(shown, fence) + CLOSING)]
    failure = ""
    for _ in range(ATTEMPTS):
        try:
            answer = chat.complete(system, talk, max_tokens=_most(chat), timeout_seconds=_left(deadline, clock))
        except AnswerCut:
            failure, again = "was cut off at its longest", CUT
        else:
            text = fence.strip(answer).strip()
            flaw = _echo(text, answer, fence)
            # Instructions that are repeated name the phrase, too.
            ruled = kill_phrase.ruling(text, settings.kill_phrase, settings.kill_match)
            if flaw is None and ruled.skipped:
                return Prompted((), ruled.note)
            kept = cleaned(ruled.text)
            flaw = flaw or _nothing(kept)
            if flaw is None:
                return Prompted(tuple(split(kept, CONTENT_BYTES)), ruled.note)
            failure, again = flaw
        # Alternating roles are what every provider takes; an empty message is not, and a repeated answer takes room.
        talk = [talk[0], Said("assistant", "(no answer)"), Said("user", again)]
    raise ModelError(f"The model's answer {failure}, asked {ATTEMPTS} times.")


def fitting(chat: ChatModel, messages: Sequence[Message], settings: CaptureSettings) -> int:
    """How many messages, from the first on, fit into the model's window for one distillation; 0 when not even the first does.

    What is longer than that `distil`, or `schemas.plan`, refuses with a `ModelError`.
    """
    if settings.distillation == "schemas":
        from .schemas import room

        return material.leading(messages, room(chat, settings))
    if structured.is_rule_based(chat):
        return len(messages)
    taken = tokens.count(_system(settings, Fence("0" * 16))) + max(map(tokens.count, (BLANK, REFUSED, ECHOED, CUT)))
    return material.leading(messages, chat.window - taken - tokens.count(CLOSING) - 20)


def split(text: str, limit: int) -> list[str]:
    """The text in pieces of at most `limit` bytes of UTF-8: at paragraphs, or, where one is longer, at lines, words, anywhere."""
    found: list[str] = []
    rest = text.strip()
    while len(rest.encode()) > limit:
        head = rest.encode()[: limit + 1].decode(errors="ignore")
        end = _end(head, len(rest.encode()[:limit].decode(errors="ignore")))
        found.append(rest[:end].strip())
        rest = rest[end:].strip()
    return [piece for piece in [*found, rest] if piece]


def _end(head: str, most: int) -> int:
    """Where to end a piece of at most so many characters: after as much as possible, at the best kind of break there is."""
    for pattern in (_PARAGRAPH, re.compile(r"\n"), re.compile(r"(?<=[.!?。！？])\s"), re.compile(r"\s")):
        ends = [match.start() for match in pattern.finditer(head, 1) if match.start() <= most]
        if ends:
            return ends[-1]
    return max(most, 1)


def _system(settings: CaptureSettings, fence: Fence) -> str:
    wanted = instructions.resolved(settings.instructions, settings.kill_phrase)
    return RULES + material.RULE.format(tag=fence.tag) + OPERATOR + wanted


def _most(chat: ChatModel) -> int:
    return max(1, min(ANSWER, chat.window // 2))


def _left(deadline: int, clock: Clock) -> float:
    left = (deadline - clock.now()) / 1000
    if left <= 0:
        raise ModelUnavailable("The time for distilling is over.")
    return left


def _echo(text: str, answer: str, fence: Fence) -> tuple[str, str] | None:
    """What is wrong with an answer that repeats what it was given, and what the model is told; None when it does not."""
    if fence.tag in text or (answer.strip() and not text):
        return "repeats the tags of the material", ECHOED
    if any(own in text for own in (RULES.partition(".")[0], CLOSING.strip())):
        return "repeats its instructions", ECHOED
    return None


def _nothing(kept: str) -> tuple[str, str] | None:
    """The same for an answer that says nothing."""
    if not any(character.isalnum() for character in kept):
        return "is blank", BLANK
    if is_refusal(kept):
        return "is a refusal", REFUSED
    return None


# --------------------------------------------------------------------------------------------------------------------
# Without a model that follows instructions


def _by_rules(chat: ChatModel, messages: Sequence[Message], fence: Fence, deadline: int, clock: Clock) -> Prompted:
    """Key sentences of the messages; of a short batch the messages themselves. Greetings are no memory."""
    telling = [message for message in messages if not message.blank and not _FILLER.fullmatch(message.text.strip())]
    shown = material.pieces(telling)
    if not shown:
        return Prompted((), BY_RULES.format(what="nothing but greetings and filler, so nothing was kept"))
    if sum(tokens.count(piece.text) for piece in shown) <= SMALL:
        said = [f"[{(piece.date or '')[:10]}] {piece.speaker}: {piece.text.strip()}" for piece in shown]
        return Prompted(tuple(split("\n".join(said), CONTENT_BYTES)), BY_RULES.format(what="what was said"))
    talk = [Said("user", material.enclosed(shown, fence))]
    answer = chat.complete("", talk, max_tokens=ANSWER, timeout_seconds=_left(deadline, clock))
    if not answer.strip():
        raise ModelError("No sentence could be taken from the messages.")
    return Prompted(tuple(split(answer, CONTENT_BYTES)), BY_RULES.format(what="key sentences"))
