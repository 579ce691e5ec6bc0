"""A bank that forms memories by itself, as a program uses it: hand in finished turns, or have what waits distilled now."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from clients.cli.client import Client, Refused

POLL_SECONDS = 0.2
FINAL = {"completed", "failed", "cancelled"}


class NotDistilled(Exception):
    """The job failed, was cancelled, took too long, or left messages aside. The message says which and why."""


class FormingBank:
    """One bank of the service, with its capture settings."""

    def __init__(self, service: Client, bank_id: str) -> None:
        self._service = service
        self.id = bank_id
        self._path = f"/memory_banks/{bank_id}"

    @classmethod
    def called(cls, service: Client, name: str, capture: Mapping[str, Any]) -> FormingBank:
        """The bank of this name, made with these settings where there is none. Its settings are left as they are."""
        bank = service.bank(name)
        if bank is None:
            body = {"name": name, "type": "conversation", "capture": dict(capture)}
            try:
                bank = service.call("POST", "/memory_banks", body=body)
            except Refused as refused:
                # Somebody else made it meanwhile: a bank that captures has its name alone.
                bank = service.bank(name) if refused.status == 409 else None
                if bank is None:
                    raise
        return cls(service, bank["id"])

    def capture(self, run_id: str, *, key: str, user_id: str, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Hand in a finished turn: messages of {"sender", "text"}. The same `run_id` again changes nothing.

        Returns at once; the service distils when `key` was quiet for the bank's `idle_seconds`.
        """
        body = {"run_id": run_id, "key": key, "user_id": user_id, "messages": [dict(message) for message in messages]}
        answer: dict[str, Any] = self._service.call("POST", f"{self._path}/runs", body=body)
        return answer

    def flush(self, key: str, *, seconds: float = 120) -> dict[str, Any]:
        """Have what waits under `key` distilled now, and wait for it. Gives the job; raises `NotDistilled`."""
        job: dict[str, Any] = self._service.call("POST", f"{self._path}/flush", body={"key": key})
        until = time.monotonic() + seconds
        while job["status"] not in FINAL:
            if time.monotonic() > until:
                why = f": {job['error']}" if job.get("error") else ""
                raise NotDistilled(f"job {job['id']} is still {job['status']} after {seconds:.0f} seconds{why}")
            time.sleep(POLL_SECONDS)
            job = self._service.call("GET", f"{self._path}/jobs/{job['id']}")
        if job["status"] != "completed" or job.get("error"):
            raise NotDistilled(f"job {job['id']} {job['status']}: {job.get('error') or 'no reason given'}")
        return job

    def jobs(self) -> list[dict[str, Any]]:
        """Its distillations, newest first."""
        answer = self._service.call("GET", f"{self._path}/jobs", query={"limit": 100})
        return [job for job in answer["jobs"] if job["kind"] == "distillation"]

    def delete(self) -> None:
        """Remove the bank. What was distilled into the store stays there."""
        self._service.call("DELETE", self._path)


def label(user_id: str) -> str:
    """A user id as the service writes it in a namespace: a label can't hold a period or NUL, nor be LangGraph's own name."""
    if user_id == "langgraph":
        return "%6Canggraph"
    return user_id.replace("%", "%25").replace(".", "%2E").replace("\0", "%00")
