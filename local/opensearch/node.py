"""Starting and stopping the node."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from .build import BuildFailed, build
from .java import NoJava, java

INIT = 1
"""The process that never ends: the parent of a node that shall outlive the command that starts it."""


_NEWEST = "org.apache.lucene.vectorization.upperJavaFeatureVersion"
VECTORS_SINCE = 20
"""From this Java on, this Lucene computes distances with SIMD; on older ones it is slower and no less exact."""


class NodeFailed(Exception):
    """The node could not be started; the message says why."""


class LocalNode:
    """A running node: `url`, and `stop()`."""

    def __init__(self, home: Path, pid: int, address: str) -> None:
        self.home = home
        self.pid = pid
        self.url = f"http://{address}"

    @classmethod
    def start(
        cls,
        home: Path,
        *,
        port: int = 0,
        heap: str = "512m",
        parent: int | None = None,
        settings: Mapping[str, str] | None = None,
        seconds: float = 120,
    ) -> Self:
        """Start a node whose data and log are in `home`, and wait until it answers.

        `port` 0 takes a free one; `heap` is Java's notation. The node ends when the process `parent` does (this one by
        default). Raises `NodeFailed`; what was started is then gone.
        """
        home = home.resolve()
        running = cls.running(home)
        if running:
            raise NodeFailed(f"a node is running in {home} already, process {running.pid}")
        try:
            found = java()
            made = build(found)
        except (NoJava, BuildFailed) as problem:
            raise NodeFailed(str(problem)) from problem
        home.mkdir(parents=True, exist_ok=True)
        address = home / "address"
        address.unlink(missing_ok=True)
        command = [str(found.command), f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseSerialGC"]
        if found.version >= VECTORS_SINCE:
            # Lucene trusts the module as far as it was tried with; it has not changed since.
            command += ["--add-modules=jdk.incubator.vector", f"-D{_NEWEST}={found.version}"]
        command += ["-cp", f"{made}/classes:{made}/lib/*", "LocalNode", str(home), str(port), str(parent or os.getpid())]
        command += [f"{name}={value}" for name, value in (settings or {}).items()]
        with (home / "node.log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        (home / "pid").write_text(str(process.pid))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if process.poll() is not None:
                break
            if address.is_file():
                node = cls(home, process.pid, address.read_text())
                if node.answers():
                    return node
            time.sleep(0.1)
        process.kill()
        process.wait()
        (home / "pid").unlink(missing_ok=True)
        raise NodeFailed(f"the node did not start; the end of {home / 'node.log'}:\n{(home / 'node.log').read_text()[-4000:]}")

    @classmethod
    @contextlib.contextmanager
    def started(cls, *, heap: str = "512m", settings: Mapping[str, str] | None = None) -> Iterator[Self]:
        """A node on a free port with a data folder of its own, both gone at the end."""
        with tempfile.TemporaryDirectory(prefix="memory-banks-opensearch-") as home:
            node = cls.start(Path(home), heap=heap, settings=settings)
            try:
                yield node
            finally:
                node.stop()

    @classmethod
    def running(cls, home: Path) -> Self | None:
        """The node of this folder, if it runs. Who answers at its address must also be the process it was."""
        try:
            node = cls(home, int((home / "pid").read_text()), (home / "address").read_text())
            with urllib.request.urlopen(f"{node.url}/_nodes/_local/process", timeout=10) as response:
                (told,) = json.load(response)["nodes"].values()
        except (OSError, ValueError):
            return None
        return node if told["process"]["id"] == node.pid else None

    def answers(self) -> bool:
        """Whether it takes requests."""
        try:
            with urllib.request.urlopen(f"{self.url}/_cluster/health?wait_for_status=yellow&timeout=5s", timeout=10) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def stop(self, seconds: float = 30) -> None:
        """Ask it to close, and wait; after `seconds` it is ended the hard way (its translog keeps what was acknowledged)."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
            until = time.monotonic() + seconds
            while time.monotonic() < until and _alive(self.pid):
                time.sleep(0.05)
            if _alive(self.pid):
                os.kill(self.pid, signal.SIGKILL)
                _alive(self.pid)
        for name in ("pid", "address"):
            (self.home / name).unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    """Whether the process runs; reaps it when it is a child of ours that has ended."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
