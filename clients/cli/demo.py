"""`memory-banks demo`: a short guided run of the whole thing on a small conversation that comes with the project."""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clients.cli import ask, importing
from clients.cli.client import Client, Refused
from clients.cli.failure import Failure

CONVERSATION = Path(__file__).parents[2] / "examples" / "nora-and-theo.jsonl"
KEY = "nora-and-theo"
QUESTIONS = (
    "What is Theo's dog called?",
    "Why didn't Theo run the race?",
    "Which nuts must not be in the cake for Ines?",
)


def add_to(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("demo", help="a short guided run: serve, import, load, search, context")
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Serve in a temporary folder, fill it, ask it, and stop."""
    with tempfile.TemporaryDirectory(prefix="memory-banks-demo-") as folder:
        _say("1. Serve: the deployed functions in one process, an AWS emulator beside it, nothing leaves this machine.")
        with _served(Path(folder)) as service:
            try:
                _show(service)
            except Refused as refused:
                raise Failure(refused.reason) from refused
    _say("Done. To keep a memory of your own: see 'On one machine' in README.md.")
    return 0


def _show(service: Client) -> None:
    _say("2. Import: five talks of two friends, from March to September. Each turn is durable before it is answered.")
    bank = service.call("POST", "/memory_banks", body={"name": "demo", "type": "conversation"})
    pieces = list(importing.read(CONVERSATION, "jsonl"))
    started = time.monotonic()
    outcome = importing.bring_in(service, bank, pieces, key=KEY, fallback=KEY, quiet=True)
    written = time.monotonic()
    importing.until_searchable(service, bank["id"], [KEY])
    searchable = time.monotonic()
    importing.tell(outcome, bank)
    print(f"durable after {_milliseconds(written - started)}, all searchable after {_milliseconds(searchable - started)}")
    again = importing.bring_in(service, bank, pieces, key=KEY, fallback=KEY, quiet=True)
    print(f"the same import again: {len(again.written)} new, {again.known} already there")

    _say("3. Load: a conversation comes back in the order it was written, here its last three turns.")
    path = f"/memory_banks/{bank['id']}"
    newest = service.call("GET", f"{path}/entries", query={"key": KEY, "order": "desc", "limit": 3})["entries"]
    for entry in reversed(newest):
        print(f"{entry['speaker']}: {entry['content']}")

    _say(
        "4. Ask: meaning (a local embedding model) and words (BM25) together, each hit checked against the table.\n"
        "   The number is how well a memory fits, from 0 to 1; it only ranks the memories of one question. The turns before\n"
        "   and after it stand in brackets."
    )
    for question in QUESTIONS:
        started = time.monotonic()
        results = service.call("POST", f"{path}/search", body={"query": question, "key": KEY, "top_k": 2, "neighbors": 1})[
            "results"
        ]
        print(f"\n{question}  ({_milliseconds(time.monotonic() - started)})")
        ask.tell(results)

    _say("5. Context: what an agent puts into its prompt, the relevant and the recent, inside a budget of 200 tokens.")
    context = service.call("POST", f"{path}/context", body={"key": KEY, "query": "Plan the birthday cake", "max_tokens": 200})
    print(context["text"])
    print(f"\n({context['tokens']} tokens; a token is four bytes of text)")


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[Client]:
    """A `serve` of its own process on a free port, as a user would start it; its log is shown only when it fails."""
    log = folder / "serve.log"
    with log.open("w") as output:
        command = [sys.executable, "-m", "clients.cli.main", "serve", "--port", "0", "--data-dir", str(folder / "data")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True)
    try:
        facts = _facts(process, log)
        yield Client(facts["serving"], facts["API key"])
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _facts(process: subprocess.Popen[str], log: Path) -> dict[str, str]:
    """What `serve` says it started, shown as it says it."""
    facts: dict[str, str] = {}
    assert process.stdout
    while line := process.stdout.readline():
        name, value = line[:13].strip(), line[13:].strip()
        facts[name] = value
        print(line, end="")
        if name == "chat":
            return facts
    process.wait()
    raise Failure(f"serve did not start:\n{log.read_text().strip()}")


def _say(text: str) -> None:
    print(f"\n{text}\n", flush=True)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
