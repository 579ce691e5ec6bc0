"""An HTTP server that answers from a script and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG_UP = "hang up"
"""Instead of an answer: close the connection without one."""


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def lines(self) -> list[Any]:
        """The body as JSON lines."""
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass
class ScriptedServer:
    """`answers` are (status, body) or `HANG_UP`, one a request; after the last, `otherwise`."""

    url: str = ""
    answers: list[Any] = field(default_factory=list)
    otherwise: Any = (200, {})
    asked: list[Asked] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, asked: Asked) -> Any:
        """The answer to this request; a function in the script is given the request."""
        with self._lock:
            self.asked.append(asked)
            answer = self.answers.pop(0) if self.answers else self.otherwise
        return answer(asked) if callable(answer) else answer


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """A server on a free port of 127.0.0.1."""
    script = ScriptedServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            answer = script.next(Asked(self.command, self.path, dict(self.headers), body))
            if answer == HANG_UP:
                self.close_connection = True
                return
            status, said = answer
            payload = b"" if self.command == "HEAD" else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
