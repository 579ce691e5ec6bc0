"""Runs a case against a service: its talks are captured and distilled, then the store is looked at."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from clients.cli.client import Client, Refused
from examples.evaluation.case import Case, Expectation, Talk
from examples.evaluation.judging import complaints
from examples.memory import FormingBank, NotDistilled, label

PAGE = 1_000


@dataclass(frozen=True)
class Verdict:
    """What came of a case: no complaints, and it passed."""

    case: Case
    complaints: Sequence[str]

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.complaints


def run(service: Client, case: Case, *, seconds: float = 120) -> Verdict:
    """Run a case in a bank and a part of the store of its own, which are removed afterwards.

    `seconds` is what a distillation may take. A job that fails is a complaint; so is a setting that the service refuses.
    """
    root = f"evaluation-{secrets.token_hex(6)}"
    try:
        with _bank(service, root, case.capture) as bank:
            found = [
                f"talk {n}: {one}" for n, talk in enumerate(case.talk, 1) for one in _talk(service, bank, root, n, talk, seconds)
            ]
    except Refused as refused:
        found = [f"the service refused: {refused.reason}"]
    return Verdict(case, found)


def _talk(service: Client, bank: FormingBank, root: str, number: int, talk: Talk, seconds: float) -> Iterator[str]:
    key = f"talk {number}"
    messages = [{"sender": sender, "text": text} for message in talk.messages for sender, text in message.items()]
    bank.capture(f"{root}-{number}", key=key, user_id=talk.user, messages=messages)
    try:
        bank.flush(key, seconds=seconds)
    except NotDistilled as error:
        yield str(error)
    for wanted in talk.expect:
        user = wanted.user or talk.user
        about = f"{user}'s {wanted.type or 'documents'}"
        yield from (f"{about}: {one}" for one in complaints(wanted, _documents(service, root, user, wanted)))


def _documents(service: Client, root: str, user: str, wanted: Expectation) -> list[Mapping[str, Any]]:
    prefix = [root, label(user), *([wanted.type] if wanted.type else [])]
    return [item["value"] for item in _items(service, prefix)]


def _items(service: Client, prefix: Sequence[str]) -> list[dict[str, Any]]:
    body = {"namespace_prefix": list(prefix), "limit": PAGE}
    items: list[dict[str, Any]] = service.call("POST", "/store/items/search", body=body)["items"]
    return items


@contextmanager
def _bank(service: Client, root: str, capture: Mapping[str, Any]) -> Iterator[FormingBank]:
    # Only a flush distils: nothing happens while the case is not looking.
    settings: dict[str, Any] = {"distillation": "schemas", "idle_seconds": 3_600} | dict(capture)
    # Users of a case are nobody's real users.
    settings["namespace"] = [root, *settings.get("namespace", ("{user_id}", "{schema}"))]
    bank = FormingBank.called(service, root, settings)
    try:
        yield bank
    finally:
        with suppress(Refused):
            bank.delete()
        for item in _items(service, [root]):
            service.call("DELETE", "/store/items", body={"namespace": item["namespace"], "key": item["key"]})
