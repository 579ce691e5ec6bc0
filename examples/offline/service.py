"""The memory service that an example talks to: the one of the environment, or one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

URL, API_KEY = "MEMORY_BANKS_URL", "MEMORY_BANKS_API_KEY"


class Service(NamedTuple):
    """Where a service is, and the key that it takes."""

    url: str
    api_key: str


class NotStarted(Exception):
    """The service of its own did not come up; the message is its log."""


def named() -> Service | None:
    """The service that the environment names, if it does."""
    key = os.environ.get(API_KEY)
    return Service(os.environ.get(URL) or "http://127.0.0.1:8000", key) if key else None


@contextmanager
def serving(data_dir: Path | None = None, environment: Mapping[str, str] | None = None) -> Iterator[Service]:
    """`memory-banks serve` on a free port, stopped in the end. Without `data_dir` nothing of it stays.

    `environment` is added to this process's. Raises `NotStarted`.
    """
    with tempfile.TemporaryDirectory(prefix="memory-banks-example-") as folder:
        log = Path(folder) / "serve.log"
        command = [sys.executable, "-m", "clients.cli.main", "serve", "--port", "0"]
        command += ["--data-dir", str(data_dir or Path(folder) / "data")]
        with log.open("w") as output:
            # A session of its own: Ctrl-C stops the example, which then stops the service.
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                env=os.environ | dict(environment or {}),
                start_new_session=True,
            )
        try:
            yield _started(process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()


def _started(process: subprocess.Popen[str], log: Path) -> Service:
    facts: dict[str, str] = {}
    assert process.stdout
    while line := process.stdout.readline():
        # What `serve` prints: a name, and from the fourteenth character on what it is.
        facts[line[:13].strip()] = line[13:].strip()
        if "chat" in facts:
            return Service(facts["serving"], facts["API key"])
    raise NotStarted(f"serve did not start:\n{log.read_text().strip()}")
