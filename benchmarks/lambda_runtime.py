"""What stands around a function on AWS: the packages that the runtime brings, and its Runtime API."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

API = "/2018-06-01/runtime"
PATIENCE = 60.0


def http_event(path: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """A GET as the HTTP API hands it over (payload 2.0)."""
    http = {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "measured"}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": dict(headers),
        "requestContext": {"http": http, "requestId": "r", "stage": "$default"},
        "isBase64Encoded": False,
    }


def queue_event(message: Mapping[str, Any]) -> dict[str, Any]:
    """One message as SQS hands it over."""
    record = {"messageId": "m-1", "receiptHandle": "h", "body": json.dumps(message), "attributes": {}, "messageAttributes": {}}
    return {"Records": [record | {"eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:measured"}]}


def brought(folder: Path, *packages: str) -> Path:
    """Fill a folder with links to packages and all that they need: the runtime has boto3 and awslambdaric, and nothing of ours."""
    wanted, seen = list(packages), set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        wanted += [
            one.name for one in map(Requirement, found.requires or ()) if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
        for top in {Path(str(file)).parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(found.locate_file(top))))
    return folder


@dataclass(frozen=True, slots=True)
class Start:
    """One cold start, in ms since the process was started, and one call after it."""

    initialised: float
    """When it asked for its first event: everything is imported."""
    answered: float
    """When it had answered it."""
    warm: float
    """How long the second event took, ms."""
    answer: Any
    printed: str
    """Its log."""


@dataclass
class _Run:
    event: bytes
    asked: list[float] = field(default_factory=list)
    answered: queue.Queue[tuple[float, str, bytes]] = field(default_factory=queue.Queue)


def start(
    path: list[Path], handler: str, event: Mapping[str, Any], environment: Mapping[str, str], python: str = sys.executable
) -> Start:
    """Start a function as Lambda does, with nothing else on its path, and send it the event twice.

    Raises `RuntimeError` when it fails, with what it said.
    """
    run = _Run(json.dumps(event).encode())
    server = _Server(("127.0.0.1", 0), _serving(run))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}",
        "AWS_LAMBDA_FUNCTION_NAME": "measured",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        **environment,
    }
    begun = time.perf_counter()
    # No site-packages, nothing of the user's, nothing written.
    process = subprocess.Popen(
        [python, "-S", "-s", "-B", "-m", "awslambdaric", handler],
        env=variables,
        cwd=path[0],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        first, second = (run.answered.get(timeout=PATIENCE) for _ in range(2))
    except queue.Empty:
        process.kill()
        raise RuntimeError(f"{handler} did not answer\n{process.communicate()[0].decode()}") from None
    finally:
        process.kill()
        printed = process.communicate()[0].decode()
        server.shutdown()
        server.server_close()
    for _, kind, body in (first, second):
        if kind != "response":
            raise RuntimeError(f"{handler} failed: {body.decode()}\n{printed}")
    return Start(
        initialised=(run.asked[0] - begun) * 1000,
        answered=(first[0] - begun) * 1000,
        warm=(second[0] - run.asked[1]) * 1000,
        answer=json.loads(second[2]),
        printed=printed,
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a process that is killed resets its connections."""


def _serving(run: _Run) -> type[BaseHTTPRequestHandler]:
    """The part of the Runtime API that a function speaks: `next`, `response`, `error`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Or every answer waits 40 ms for an acknowledgement.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if len(run.asked) >= 2:
                # No third event: it waits until it is killed.
                self.connection.settimeout(PATIENCE)
                with contextlib.suppress(OSError):
                    self.connection.recv(1)
                self.close_connection = True
                return
            run.asked.append(time.perf_counter())
            self.send_response(200)
            for name, value in {
                "Lambda-Runtime-Aws-Request-Id": f"r-{len(run.asked)}",
                "Lambda-Runtime-Deadline-Ms": str(int(time.time() * 1000) + 29_000),
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:measured",
                "Content-Type": "application/json",
                "Content-Length": str(len(run.event)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(run.event)

        def do_POST(self) -> None:
            answered = time.perf_counter()
            body = self._body()
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()
            run.answered.put((answered, self.path.rsplit("/", 1)[-1], body))
            if self.path.startswith(f"{API}/init"):
                run.answered.put((answered, "error", body))

        def _body(self) -> bytes:
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            body = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: it would be measured."""

    return Handler
