"""A chat model as a server on this machine: OpenAI's protocol, answered by a function.

The memory service talks to it as to any OpenAI-compatible endpoint, so that an example without a network runs the same code
as one with a model.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """What the model is asked."""

    system: str
    messages: tuple[str, ...]
    """The texts, alternating between who asks and the model; the last one asks."""


Play = Callable[[Asked], str]


def settings(url: str) -> Mapping[str, str]:
    """The settings with which a memory service takes this server as its chat model."""
    return {
        "MEMORY_BANKS_CHAT_MODEL": "openai/scripted",
        "MEMORY_BANKS_OPENAI_BASE_URL": url,
        "MEMORY_BANKS_OPENAI_API_KEY": "none",
    }


@contextmanager
def playing(play: Play) -> Iterator[str]:
    """The server on a free port of 127.0.0.1; gives its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            if not self.path.endswith("/chat/completions"):
                self._answer(404, {"error": {"message": "only chat"}})
                return
            self._answer(200, _completion(body, play(_asked(body))))

        def _answer(self, status: int, content: Any) -> None:
            raw = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _asked(body: Mapping[str, Any]) -> Asked:
    messages = body["messages"]
    system = "\n".join(one["content"] for one in messages if one["role"] == "system")
    return Asked(system, tuple(one["content"] for one in messages if one["role"] != "system"))


def _completion(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
