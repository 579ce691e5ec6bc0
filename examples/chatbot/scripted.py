"""A chat model that needs no network: it follows the two prompts of this example by rules, the same way every time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from examples.chatbot import prompts
from examples.offline.facts import Fact, facts

_MEMORY = re.compile(r"<memory>\n(.*?)\n</memory>", re.DOTALL)
_USER_LINE = re.compile(r"^Human: (.*)$", re.MULTILINE)


class ScriptedModel(BaseChatModel):
    """Understands sentences such as "My name is Bob", "I like jazz" and "I live in Lisbon", and questions about them."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        system = messages[0].text
        found = _MEMORY.search(system)
        note = "" if found is None or found[1] == prompts.NO_MEMORY else found[1]
        if system.startswith(prompts.REMEMBER[:40]):
            text = merged(note, _USER_LINE.findall(messages[-1].text))
        else:
            text = reply(note, [message.text for message in messages if message.type == "human"])
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def merged(note: str, said: Iterable[str]) -> str:
    """The note with what was said in it: one line a fact, the newest wins."""
    lines = {_place(line): line for line in note.splitlines() if line.strip()}
    for text in said:
        for fact in facts(text):
            line = f"- {_sentence(fact)}"
            if fact.kind == "no longer likes":
                lines.pop(f"- Likes {fact.value}".lower(), None)
            elif fact.kind == "renamed":
                _rename(lines, fact)
            else:
                lines[_place(line)] = line
    return "\n".join(lines.values())


def reply(note: str, said: Sequence[str]) -> str:
    """A short answer to the last thing that was said, from the note and what this conversation told."""
    known = merged(note, said)
    asked = said[-1].lower()
    if asked.rstrip().endswith("?"):
        return _told(known, asked)
    if any(facts(said[-1])):
        name = _line(known, "- Name: ")
        return f"Nice to know, {name}." if name else "Nice to know."
    return "I see. Tell me about yourself, or ask me what I know about you."


def _told(known: str, asked: str) -> str:
    for word, start, answer in (
        ("name", "- Name: ", "Your name is {}."),
        ("old", "- Age: ", "You are {}."),
        ("live", "- Lives in ", "You live in {}."),
        ("work", "- Works as ", "You work as {}."),
    ):
        if word in asked:
            value = _line(known, start)
            return answer.format(value) if value else "You have not told me yet."
    if "like" in asked:
        liked = [line.removeprefix("- Likes ") for line in known.splitlines() if line.startswith("- Likes ")]
        return f"You like {', '.join(liked)}." if liked else "You have not told me yet."
    return f"What I know about you:\n{known}" if known else "I know nothing about you yet."


def _line(known: str, start: str) -> str:
    return next((line.removeprefix(start) for line in known.splitlines() if line.startswith(start)), "")


def _sentence(fact: Fact) -> str:
    start = {"name": "Name: ", "age": "Age: ", "home": "Lives in ", "occupation": "Works as ", "friend": "Friend "}
    about = f": {fact.about}" if fact.about else ""
    return f"{start.get(fact.kind, 'Likes ')}{fact.value}{about}"


def _place(line: str) -> str:
    """What a line takes the place of: a name that of the last name, a taste only that of the same one."""
    for start in ("- Name: ", "- Age: ", "- Lives in ", "- Works as "):
        if line.startswith(start):
            return start
    return (line.partition(":")[0] if line.startswith("- Friend ") else line).lower()


def _rename(lines: dict[str, str], fact: Fact) -> None:
    old = f"- friend {fact.about}".lower()
    if old in lines:
        line = lines.pop(old)
        renamed = f"- Friend {fact.value}{line[len(old) :]}"
        lines[_place(renamed)] = renamed
