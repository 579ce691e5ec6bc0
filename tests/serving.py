"""`memory-banks serve` as a process of its own, for tests that need the whole service."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

VERSION = "2026-10-21"


@dataclass
class Served:
    """A running service. `call` speaks to it with its own key."""

    process: subprocess.Popen[str]
    log: Path
    facts: dict[str, str]
    """What it printed: `serving`, `API key`, `AWS emulator`, `index`, `embedding`, `chat`."""
    api_key: str

    @property
    def url(self) -> str:
        return self.facts["serving"]

    def request(self, method: str, path: str, **request: Any) -> httpx.Response:
        headers = {"X-API-Key": self.api_key, "Seclai-Version": VERSION} | request.pop("headers", {})
        return httpx.request(method, self.url + path, headers=headers, timeout=60, **request)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The answer's JSON; anything but a success fails the test."""
        answer = self.request(method, path, json=body, params=query)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}\n{self.printed()}"
        return answer.json() if answer.content else None

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def kill(self) -> None:
        """SIGKILL: nothing can be put in order."""
        self.process.kill()
        self.process.wait(60)

    def printed(self) -> str:
        """Its log so far."""
        return self.log.read_text()


@contextmanager
def served(
    folder: Path,
    *arguments: str,
    api_key: str | None = "test-key",
    environment: Mapping[str, str] | None = None,
    program: str = "clients.cli.main",
) -> Iterator[Served]:
    """Serve on a free port; its log goes into `folder`. Whatever is still running at the end is killed."""
    log = folder / "serve.log"
    given = ["--api-key", api_key] if api_key else []
    command = [sys.executable, "-m", program, "serve", "--port", "0", *given, *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_BANKS_", "OPENSEARCH_"))}
    variables = inherited | {"PYTHONUNBUFFERED": "1"} | dict(environment or {})
    with log.open("a") as output:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True, env=variables)
    try:
        facts: dict[str, str] = {}
        assert process.stdout
        while "chat" not in facts:
            line = process.stdout.readline()
            assert line, f"serve did not start: {log.read_text()}"
            facts[line[:13].strip()] = line[13:].strip()
        yield Served(process, log, facts, api_key or facts["API key"])
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
