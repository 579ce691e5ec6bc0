"""How fast histories go in: entries a second through the real functions, and what we add to the bare calls underneath.

The conversations of a LoCoMo file (`--data` or MEMORY_BANKS_LOCOMO) are written in batches of 100 by the `api` function and
indexed by the `ingest` function, over the AWS emulator and the embedded index. In the same run every AWS call (botocore, with
the emulator behind it), every call of the index and every call of the embedding model is timed.

    uv run python -m benchmarks.importing --data locomo.json

Goal: the time outside the embedding model is at most twice that of the bare AWS and index calls.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memory_banks import access, bootstrap

from benchmarks.locomo import conversations
from local.data_folder import DataFolder
from local.lambdas import Function
from local.pump import Pump
from local.store import opened

BATCH = 100


class Stopwatch:
    """Time spent in calls of several kinds, seconds, and how many they were."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    def timed(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **rest: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*args, **rest)  # the journal's own reads, beside the work
            began = time.perf_counter()
            try:
                return function(*args, **rest)
            finally:
                self.seconds[kind] = self.seconds.get(kind, 0) + time.perf_counter() - began
                self.calls[kind] = self.calls.get(kind, 0) + 1

        return call


def batches(data: Path) -> Iterator[list[dict[str, Any]]]:
    """The turns of all conversations as entries of a request, 100 at a time."""
    for conversation in conversations(data):
        turns = [
            {"key": conversation.id, "speaker": turn.speaker, "content": turn.content, "occurred_at": turn.occurred_at}
            for turn in conversation.turns
        ]
        for start in range(0, len(turns), BATCH):
            yield turns[start : start + BATCH]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = os.environ.get("MEMORY_BANKS_LOCOMO")
    parser.add_argument("--data", type=Path, default=known, required=known is None)
    arguments = parser.parse_args()
    requests = list(batches(Path(arguments.data)))
    watch = Stopwatch()
    with TemporaryDirectory() as folder, opened(DataFolder(Path(folder)), {}) as (wiring, emulator):
        bootstrap.use(wiring)
        _, secret = access.create_key(wiring, "bench", scopes=("admin",))
        from botocore.client import BaseClient

        plain = BaseClient._make_api_call  # type: ignore[attr-defined]
        BaseClient._make_api_call = watch.timed("aws", plain)  # type: ignore[attr-defined]
        wiring.index.write = watch.timed("index", wiring.index.write)  # type: ignore[method-assign]
        wiring.index.delete = watch.timed("index", wiring.index.delete)  # type: ignore[method-assign]
        model = wiring.embedders(wiring.embedders.default, wiring.embedders.sizes(wiring.embedders.default)[-1])
        model.embed(["warm"])
        type(model).embed = watch.timed("model", type(model).embed)  # type: ignore[method-assign]
        api, ingest = Function("api"), Function("ingest")
        pump = Pump(emulator.client("sqs"), wiring.settings.ingestion_queue_url, ingest, batch=10)
        bank = json.loads(_post(api, secret, "/memory_banks", {"name": "import"})["body"])
        watch.seconds.clear()
        watch.calls.clear()
        began = time.perf_counter()
        for request in requests:
            answer = _post(api, secret, f"/memory_banks/{bank['id']}/entries", {"entries": request})
            assert answer["statusCode"] == 201, answer
        written = time.perf_counter()
        while pump.once():
            pass
        ended = time.perf_counter()
        BaseClient._make_api_call = plain  # type: ignore[attr-defined]
        bootstrap.use(None)
    entries = sum(map(len, requests))
    model_seconds = watch.seconds["model"]
    bare = watch.seconds["aws"] + watch.seconds["index"]
    outside = ended - began - model_seconds
    print(f"entries                          {entries:10,}")
    print(f"written, entries a second        {entries / (written - began):10,.0f}")
    print(f"written and searchable, a second {entries / (ended - began):10,.0f}")
    print(f"seconds in all                   {ended - began:10.2f}")
    for kind in ("model", "aws", "index"):
        print(f"  {kind:8} {watch.calls[kind]:5} calls            {watch.seconds[kind]:10.2f}")
    print(f"outside the model / bare calls   {outside / bare:10.2f}   (goal: at most 2)")


def _post(api: Function, secret: str, path: str, body: dict[str, Any]) -> Any:
    return api(
        {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": "",
            "headers": {"content-type": "application/json", "x-api-key": secret, "seclai-version": "2026-10-21"},
            "requestContext": {
                "http": {"method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "bench"},
                "stage": "$default",
                "requestId": "bench",
            },
            "body": json.dumps(body, ensure_ascii=False),
            "isBase64Encoded": False,
        }
    )


if __name__ == "__main__":
    main()
