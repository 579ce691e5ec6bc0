"""Memory that forms itself: our capture of runs beside a memory base of langflow-base 1.13, on one machine, one after the other.

    uv run python -m benchmarks.capture [--sizes 2000 20000] [--runs 30] [--ours]

The same messages of 40 words, the same hash embedding of 384 dimensions, nothing distilled by a model. Bulk: N messages of one
session wait, then a flush; until the job is completed and the last of them is searchable. Run to ingested: into the base that
holds them, a run of another session, at a threshold of one; from the request until its message is searchable. Ours is a `serve`
of its own, over HTTP, with every write durable in its table and journal; langflow-base is driven inside its own process, in an
environment that uv makes under `.build/`, over SQLite files, and is not charged for HTTP.

Goals: at least 5 times as many messages a second in the largest flush, half the median from run to ingested, and flat in the
size of the base: the largest flush at no less than 2/3 of the rate of the smallest. 1 when one is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks import hashed_service
from benchmarks.peers import environment
from benchmarks.peers.hashed import texts
from tests.serving import VERSION, Served, served

PACKAGE = "langflow-base==1.13.0"
TURN = 2
"""Messages of a run: what was said, and the answer."""
PATIENCE = 1_800
"""Seconds."""


class Bank:
    """A bank of a running service that captures runs."""

    def __init__(self, service: Served, client: httpx.Client, **capture: Any) -> None:
        self._service, self._client = service, client
        body = {
            "name": f"capture-{time.time_ns()}",
            "type": "conversation",
            "capture": {"distillation": "none", "auto_capture": False} | capture,
        }
        self._path = f"/memory_banks/{self._asked('POST', '', body)['id']}"

    def change(self, **capture: Any) -> None:
        """Other settings of capture."""
        self._asked("PUT", self._path, {"capture": {"distillation": "none"} | capture})

    def run(self, key: str, said: list[str]) -> None:
        """A finished run."""
        messages = [{"sender": "assistant" if number % 2 else "user", "text": text} for number, text in enumerate(said)]
        self._asked("POST", f"{self._path}/runs", {"key": key, "messages": messages})

    def flush(self, key: str) -> str:
        """Have what waits distilled; the job."""
        return str(self._asked("POST", f"{self._path}/flush", {"key": key})["id"])

    def finished(self, job: str) -> bool:
        """Whether a job is completed; one that failed is an error."""
        found = self._asked("GET", f"{self._path}/jobs/{job}")
        assert found["status"] not in {"failed", "cancelled"}, found
        return bool(found["status"] == "completed")

    def newest(self, key: str) -> dict[str, Any] | None:
        """The newest entry of a key."""
        found = self._asked("GET", f"{self._path}/entries", key=key, order="desc", limit=1)["entries"]
        return found[0] if found else None

    def searchable(self, key: str) -> int:
        """How many entries of a key are searchable, of all there are."""
        count, cursor = 0, None
        while True:
            page = self._asked("GET", f"{self._path}/entries", key=key, limit=1000, **({"cursor": cursor} if cursor else {}))
            count += sum(one["indexed"] for one in page["entries"])
            cursor = page["next_cursor"]
            if cursor is None:
                return count

    def _asked(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        answer = self._client.request(method, path or "/memory_banks", json=body, params=query)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}\n{self._service.printed()[-2_000:]}"
        return answer.json() if answer.content else None


def ours(sizes: list[int], runs: int) -> Iterator[dict[str, Any]]:
    """Our figures, as the peer's script prints its own."""
    with TemporaryDirectory() as folder, served(Path(folder), program=hashed_service.__name__) as service:
        headers = {"X-API-Key": service.api_key, "Seclai-Version": VERSION}
        with httpx.Client(base_url=service.url, headers=headers, timeout=120) as client:
            for size in sizes:
                bank = Bank(service, client)
                waiting = list(islice(texts(1), size))
                for first in range(0, size, TURN):
                    bank.run("bulk", waiting[first : first + TURN])
                began = time.perf_counter()
                job = bank.flush("bulk")
                _wait(lambda bank=bank, job=job: bank.finished(job), 0.2)  # type: ignore[misc]
                distilled = time.perf_counter() - began
                while True:
                    _wait(lambda bank=bank: (bank.newest("bulk") or {}).get("indexed"), 0.2)  # type: ignore[misc]
                    seconds = time.perf_counter() - began
                    if bank.searchable("bulk") == size:  # which takes a while itself
                        break
                yield {"what": "bulk", "size": size, "seconds": seconds, "distilled": distilled, "ingested": size}
                bank.change(threshold=1, auto_capture=True)
                took = sorted(_single(bank, text) for text in islice(texts(2), runs))
                yield {"what": "run", "size": size, "p50": statistics.median(took), "p95": took[int(len(took) * 0.95)]}


def _single(bank: Bank, text: str) -> float:
    began = time.perf_counter()
    bank.run("single", [text])

    def there() -> bool:
        found = bank.newest("single")
        return found is not None and found["content"] == text and found["indexed"]

    _wait(there, 0.01)
    return time.perf_counter() - began


def _wait(done: Any, pause: float) -> None:
    until = time.perf_counter() + PATIENCE
    while not done():
        assert time.perf_counter() < until, "it takes too long"
        time.sleep(pause)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--ours", action="store_true", help="without the peer")
    arguments = parser.parse_args()
    sizes = sorted(arguments.sizes)
    figures: dict[tuple[str, str, int], dict[str, Any]] = defaultdict(dict)
    for line in ours(sizes, arguments.runs):
        print(_shown("ours", line), flush=True)
        figures["ours", line["what"], line["size"]] = line
    if arguments.ours:
        return 0
    python = environment.made("langflow", PACKAGE)
    wanted = ["--sizes", *map(str, sizes), "--runs", str(arguments.runs)]
    for line in environment.run(python, "langflow_base.py", *wanted):
        print(_shown("langflow-base", line), flush=True)
        figures["theirs", line["what"], line["size"]] = line

    def rate(who: str, size: int) -> float:
        return size / float(figures[who, "bulk", size]["seconds"])

    least, most = sizes[0], sizes[-1]
    goals = []
    for size in sizes:
        faster = rate("ours", size) / rate("theirs", size)
        sooner = figures["ours", "run", size]["p50"] / figures["theirs", "run", size]["p50"]
        print(f"{size:>7,}: {faster:.1f} times as many messages a second; run to ingested p50 {sooner:.2f} of theirs")
        goals.append(("half the time from run to ingested", sooner <= 0.5))
        if size == most:
            goals.append(("5 times the messages a second", faster >= 5))
    goals.append(("flat", rate("ours", most) >= rate("ours", least) * 2 / 3))
    missed = [name for name, met in goals if not met]
    print("goals met" if not missed else "missed: " + ", ".join(missed))
    return 1 if missed else 0


def _shown(who: str, line: dict[str, Any]) -> str:
    told = f"{who:>14} {line['size']:>7,} "
    if line["what"] == "bulk":
        distilled = f" (distilled after {line['distilled']:.1f} s)" if "distilled" in line else ""
        return f"{told}bulk flush {line['size'] / line['seconds']:8,.0f} messages/s{distilled}"
    return f"{told}run to ingested p50 {line['p50'] * 1000:.0f} ms, p95 {line['p95'] * 1000:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
