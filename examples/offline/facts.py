"""What a person says about themselves and their friends, by rules over plain English sentences.

Rules stand in for a model: they understand the sentences of the examples and their like, the same way every time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["name", "age", "home", "occupation", "likes", "no longer likes", "friend", "renamed"]


class Fact(NamedTuple):
    """One thing that was said. For a friend, `value` is the name and `about` what was told; for a new name, the old one."""

    kind: Kind
    value: str
    about: str = ""


_NAME = r"[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*"
_I_AM = r"\bI(?:'m|’m| am)"
_RULES: dict[Kind, str] = {
    "renamed": rf"(?P<about>{_NAME}) (?:is (?:now )?called|(?:now )?goes by|calls (?:her|him|them)self) (?P<value>{_NAME})",
    "friend": rf"(?i:\bmy (?:\w+ )?friend),? (?P<value>{_NAME}),? (?P<about>.+)",
    "name": rf"(?i:\bmy name is|\bmy name's|\bcall me|\bI am called|\bI'm called) (?P<value>{_NAME})",
    "age": rf"(?:{_I_AM}|\bI turned) (?P<value>\d{{1,3}})\b",
    "home": r"(?i:\bI live in|\bI moved to|\bI now live in) (?P<value>.+)",
    "occupation": rf"(?:(?i:\bI work as)|{_I_AM}) an? (?P<value>[\w -]+)",
    "no longer likes": r"(?i:\bI (?:don't|do not|no longer) (?:like|love|enjoy)) (?P<value>.+)",
    "likes": r"(?i:\bI (?:\w+ )?(?:like|love|enjoy)) (?P<value>.+)",
}
"""In the order in which they are tried; a part of a sentence states one thing."""
_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;\n]?")
_TAIL = re.compile(r"(?:,? (?:any ?more|now|too|a lot|very much|please))+$", re.IGNORECASE)


def facts(text: str) -> Iterator[Fact]:
    """What the text states, in order. Questions state nothing."""
    for sentence in _SENTENCE.findall(text):
        if sentence.endswith("?"):
            continue
        for part in re.split(r",? and (?=I\b|I'|my |call )", sentence.strip(" .!;\n")):
            fact = _fact(part)
            if fact is None:
                continue
            if fact.kind in {"likes", "no longer likes"}:
                yield from (Fact(fact.kind, one) for one in re.split(r",? and |, ", fact.value))
            else:
                yield fact


def _fact(part: str) -> Fact | None:
    for kind, rule in _RULES.items():
        found = re.search(rule, part)
        if found:
            groups = found.groupdict()
            return Fact(kind, _TAIL.sub("", groups["value"]).strip(), (groups.get("about") or "").strip())
    return None
