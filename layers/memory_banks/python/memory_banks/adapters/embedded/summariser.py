"""A summariser that runs in this process: it quotes the sentences that say most, and invents nothing.

Sentences are taken greedily, each worth the rare words that no chosen one has said yet (weighted coverage), until the limit;
they stay in their order, with speaker and date. On long conversations this keeps more of the turns that questions are later
asked about than TextRank, which prefers what is said often. Nothing in the material can instruct it. It works in every
language with sentences; those written without spaces are compared by pairs of characters.

Written here because the libraries for it bring far more than they save (sumy: 13 packages, nltk and lxml among them).
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ... import tokens
from ...fencing import Piece, fenced
from ...ports import Message, ModelError

MODEL = "embedded/extractive"
FAVOUR = 1.5
"""An earlier summary's sentences were already chosen once …"""
EARLIER_SHARE = 0.6
"""… but leave room for what is new, or the first summary would be the last."""
QUESTION = 0.5
"""A question tells less than its answer."""
REPEATED = 0.1
"""What a word is still worth when a chosen sentence has it."""
LONGEST_WORD = 40
"""Characters; anything longer is no word of a language."""

_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])[」』”’）]*|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|no|nr|e\.g|i\.e|z\.b|bzw|ca)|\b\w)\.$", re.IGNORECASE)
_FULL_WIDTH = ("。", "！", "？", "」", "』", "）")
_WORD = re.compile(r"\w+")
_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_OWN_LINE = re.compile(r"\[(\d{4}-\d\d-\d\d)\] (?:([^:\n]{1,128}): )?(.*)")
"""A line as `_compose` writes it."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of the material, with who said it and on which day."""

    place: int
    text: str
    speaker: str | None
    day: str | None
    earlier: bool
    """Whether it comes from an earlier summary."""

    @cached_property
    def terms(self) -> Counter[str]:
        """What it is compared by."""
        return Counter(_terms(self.text))

    @property
    def asks(self) -> bool:
        """Whether it is a question."""
        return self.text.endswith(("?", "？"))

    @property
    def opening(self) -> str:
        """What stands before it on its line."""
        return (f"[{self.day}] " if self.day else "") + (f"{self.speaker}: " if self.speaker else "")


class ExtractiveSummariser:
    """The `embedded/extractive` chat model. All it can do is condense the fenced material of a prompt (see `fencing`)."""

    model = MODEL

    def __init__(self, window: int) -> None:
        self.window = window

    def complete(self, system: str, messages: Sequence[Message], *, max_tokens: int, timeout_seconds: float) -> str:  # noqa: ARG002
        """The sentences that say most, in at most `max_tokens` tokens and half of the material's.

        Takes milliseconds to a second, so `timeout_seconds` is not looked at; neither are instructions. Raises `ModelError`
        when the last message fences no material.
        """
        pieces = fenced(messages[-1].content) if messages else []
        sentences = list(_sentences(pieces))
        if not sentences:
            message = f"{MODEL} only condenses memories and can't do this: set MEMORY_BANKS_CHAT_MODEL to another chat model."
            raise ModelError(message)
        limit = min(max_tokens, tokens.count("\n".join(piece.text for piece in pieces)) // 2)
        return _compose(_chosen(sentences, limit), limit)


def split(text: str) -> list[str]:
    """The sentences of a text."""
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(text):
        sentence = text[start : end.end()]
        if "\n" in sentence or not _ABBREVIATION.search(sentence.rstrip()):
            sentences.append(sentence.strip())
            start = end.end()
    return [sentence for sentence in [*sentences, text[start:].strip()] if sentence]


def _sentences(pieces: Sequence[Piece]) -> Iterator[Sentence]:
    place = 0
    for piece in pieces:
        for day, speaker, text in _lines(piece):
            for sentence in split(text):
                yield Sentence(place, sentence, speaker, day, piece.kind == "summary")
                place += 1


def _lines(piece: Piece) -> Iterator[tuple[str | None, str | None, str]]:
    """Day, speaker and text; a summary that was composed here is read line by line."""
    if piece.kind == "entry":
        yield (piece.date or "")[:10] or None, piece.speaker, piece.text
        return
    for line in piece.text.splitlines():
        own = _OWN_LINE.fullmatch(line)
        yield (own[1], own[2], own[3]) if own else (None, None, line)


def _terms(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.casefold()):
        if _WITHOUT_SPACES.match(word):
            yield from (word[i : i + 2] for i in range(max(len(word) - 1, 1)))
        elif 1 < len(word) <= LONGEST_WORD:
            yield word


def _chosen(sentences: Sequence[Sentence], limit: int) -> list[Sentence]:
    """The best sentences that fit together in `limit` tokens; the very best alone when none fits."""
    frequency = Counter(term for sentence in sentences for term in sentence.terms)
    weights = {term: math.log(1 + len(sentences) / found) for term, found in frequency.items()}
    said: set[str] = set()

    def worth(place: int) -> float:
        sentence = sentences[place]
        news: float = sum(weights[term] * (REPEATED if term in said else 1) for term in sentence.terms)
        return news * (FAVOUR if sentence.earlier else 1) * (QUESTION if sentence.asks else 1) / math.sqrt(_cost(sentence))

    # Worth only falls while sentences are chosen, so one whose renewed worth still leads the heap is the best of all.
    heap = [(-worth(place), place) for place in range(len(sentences))]
    heapq.heapify(heap)
    chosen: list[Sentence] = []
    left = limit * 4
    smallest = min(_cost(sentence) for sentence in sentences)
    left_for_earlier = left * EARLIER_SHARE
    spare: list[Sentence] = []
    while heap and (left >= smallest or not chosen):
        _, place = heapq.heappop(heap)
        sentence, now = sentences[place], worth(place)
        if heap and now < -heap[0][0]:
            heapq.heappush(heap, (-now, place))
        elif sentence.earlier and _cost(sentence) > left_for_earlier:
            spare.append(sentence)
        elif _cost(sentence) <= left or not chosen:
            chosen.append(sentence)
            said.update(sentence.terms)
            left -= _cost(sentence)
            left_for_earlier -= _cost(sentence) if sentence.earlier else 0
    for sentence in spare:
        if _cost(sentence) <= left or not chosen:
            chosen.append(sentence)
            left -= _cost(sentence)
    return chosen


def _cost(sentence: Sentence) -> int:
    """Bytes of the sentence on a line of its own."""
    return len((sentence.opening + sentence.text).encode()) + 1


def _compose(chosen: Sequence[Sentence], limit: int) -> str:
    """The sentences in their order, those of one speaker and day on one line; cut after a word if even one is too long."""
    lines: list[str] = []
    opening = None
    for sentence in sorted(chosen, key=lambda sentence: sentence.place):
        if lines and sentence.opening == opening:
            lines[-1] += sentence.text if lines[-1].endswith(_FULL_WIDTH) else f" {sentence.text}"
        else:
            lines.append(sentence.opening + sentence.text)
        opening = sentence.opening
    text = "\n".join(lines)
    return text if tokens.count(text) <= limit else _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    head = text.encode()[: max(limit * 4 - 3, 0)].decode(errors="ignore")
    in_a_word = text[len(head) : len(head) + 1].strip() and " " in head[len(head) // 2 :]
    return (head.rsplit(maxsplit=1)[0] if in_a_word else head).rstrip() + "…"
