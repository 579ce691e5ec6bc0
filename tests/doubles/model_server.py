"""A small HTTP server that speaks the protocols of model providers: OpenAI's and Bedrock's, rerankers too, over real sockets.

Its vectors are hashed words, so that texts with the same words are near each other; its chat answers with what it is given.
"""

from __future__ import annotations

import json
import math
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

NATIVE = 64
"""Dimensions of its embeddings unless the request says otherwise."""


@dataclass
class Reply:
    """What to answer instead of the protocol's answer, once. `drip_seconds` sends one byte at a time, so far apart."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_seconds: float = 0
    drip_seconds: float = 0


@dataclass
class Seen:
    """One request that arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ModelServer:
    """Use as a context manager; `url` is its root. Replies queued in `instead` are given first, in order."""

    def __init__(self) -> None:
        self.instead: deque[Reply] = deque()
        self.seen: list[Seen] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self.chat_text = "A summary."
        self.finish_reason = "stop"
        self.stop_reason = "end_turn"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Around the handling of a request."""
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1

    def answer(self, path: str, body: dict[str, Any]) -> Any:
        """What the protocol answers."""
        path = unquote(path)
        if path.endswith("/embeddings"):
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            data = [
                {"object": "embedding", "index": i, "embedding": [2 * x for x in vector(text, body.get("dimensions", NATIVE))]}
                for i, text in enumerate(texts)
            ]
            # Out of order on purpose: the protocol numbers them.
            return {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        if path.endswith("/chat/completions"):
            message = {"role": "assistant", "content": self.chat_text, "refusal": None}
            choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
            return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
        if path.endswith("/invoke"):
            return {"embedding": vector(body["inputText"], body["dimensions"]), "inputTextTokenCount": 3}
        if path.endswith("/converse"):
            return {
                "output": {"message": {"role": "assistant", "content": [{"text": self.chat_text}]}},
                "stopReason": self.stop_reason,
                "usage": {"inputTokens": 10, "outputTokens": 3, "totalTokens": 13},
                "metrics": {"latencyMs": 12},
            }
        if path == "/rerank" and "queries" in body:
            found = scored(body["queries"][0]["textQuery"]["text"], [_inline(source) for source in body["sources"]])
            return {"results": [{"index": index, "relevanceScore": score} for index, score in found]}
        if path.endswith("/rerank"):
            found = scored(body["query"], body["documents"])
            return {"model": body["model"], "results": [{"index": index, "relevance_score": score} for index, score in found]}
        raise LookupError(path)


def scored(query: str, texts: list[str]) -> list[tuple[int, float]]:
    """The share of the query's words that each text has, best first, as rerankers answer."""
    words = set(query.lower().split())
    shares = [len(words & set(text.lower().split())) / len(words) for text in texts]
    return sorted(enumerate(shares), key=lambda pair: -pair[1])


def _inline(source: dict[str, Any]) -> str:
    text: str = source["inlineDocumentSource"]["textDocument"]["text"]
    return text


def vector(text: str, dimensions: int) -> list[float]:
    """Words hashed to places; of unit length."""
    values = [0.0] * dimensions
    for word in text.lower().split() or [""]:
        values[zlib.crc32(word.encode("utf-8", "surrogatepass")) % dimensions] += 1
    length = math.hypot(*values)
    return [value / length for value in values]


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.seen.append(Seen(self.path, headers, body))
            reply = server.instead.popleft() if server.instead else Reply()
            with server.counted():
                time.sleep(reply.delay_seconds)
            content = server.answer(self.path, body) if reply.body is None else reply.body
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            try:
                self.send_response(reply.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for byte in raw if reply.drip_seconds else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.drip_seconds)
                if not reply.drip_seconds:
                    self.wfile.write(raw)
            except OSError:
                self.close_connection = True  # the client gave up, as some tests want

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
