"""The AWS emulator process: DynamoDB, SQS, S3 and the rest on a port of 127.0.0.1, gone with whoever started it.

It keeps nothing; what must last is written down by `journal`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from local import aws, resources
from local.ministack import install
from local.resources import Resources

RUN = Path(__file__).parent / "ministack" / "run.py"


class EmulatorFailed(Exception):
    """The emulator did not come up; the message ends with what it printed."""


class Emulator:
    """A running emulator. Use `started`; or hold one and `stop` it."""

    def __init__(self, *, log: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        """Start the process, which takes a moment, or minutes the first time, when it is installed (`ready` waits).

        Its output goes to the file `log`. `environment` adds variables of ministack's own.
        """
        python = install.python()
        # What it leaves lying about goes with it.
        self._temporary = tempfile.mkdtemp(prefix="memory-banks-emulator-")
        self.port = _free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        own = {
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "LOG_LEVEL": "WARNING",
            "MINISTACK_REGION": aws.REGION,
            "TMPDIR": self._temporary,
            "MEMORY_BANKS_EMULATOR_TEMPORARY": self._temporary,
            **(environment or {}),
        }
        # Neither the user's AWS nor the packages of whoever starts it are its own, nor its Lambdas'.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
        self._log = log
        with (log or Path(os.devnull)).open("ab") as output:
            # A session of its own: Ctrl-C in the terminal must not take it away before its user has finished.
            self.process = subprocess.Popen(
                [python, RUN],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=inherited | own,
                start_new_session=True,
            )

    @classmethod
    @contextlib.contextmanager
    def started(cls, *, log: Path | None = None, environment: Mapping[str, str] | None = None) -> Iterator[Self]:
        """An emulator that answers, for the length of a `with`."""
        emulator = cls(log=log, environment=environment)
        try:
            emulator.ready()
            yield emulator
        finally:
            emulator.stop()

    def ready(self, seconds: float = 60) -> None:
        """Wait until it answers. Raises `EmulatorFailed`."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.endpoint}/_ministack/health", timeout=2):
                return
            time.sleep(0.05)
        self.stop()
        printed = self._log.read_text(errors="replace")[-2000:] if self._log and self._log.exists() else ""
        raise EmulatorFailed(f"the AWS emulator did not answer on {self.endpoint} within {seconds:.0f} s\n{printed}".rstrip())

    def client(self, service: str) -> Any:
        """The boto3 client of a service, made for this emulator. Safe to share by threads."""
        return aws.client(service, self.endpoint)

    def create(self, name: str) -> Resources:
        """A table, a bucket and queues of this name; see `resources`."""
        return resources.create(self.client, name)

    @cached_property
    def resources(self) -> Resources:
        """The resources of the usual name, made on first use."""
        return self.create("memory-banks")

    def stop(self) -> None:
        """End the process and what it started. Nothing of it is kept, so there is nothing to wait for."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        shutil.rmtree(self._temporary, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
