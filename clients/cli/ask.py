"""`memory-banks ask`: the memories that bear on a question."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from typing import Any

from clients.cli import client, typed
from clients.cli.client import Refused
from clients.cli.failure import Failure


def add_to(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("ask", help="print the memories that bear on a question")
    parser.add_argument("bank", help="name or id")
    parser.add_argument("question")
    parser.add_argument("--key", help="only this conversation, user or project")
    parser.add_argument("--top-k", type=typed.count, default=5, help="how many memories (default 5)")
    client.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search and print."""
    service = client.from_options(options)
    try:
        bank = service.existing_bank(options.bank)
        body = {"query": options.question, "top_k": options.top_k} | ({"key": options.key} if options.key else {})
        results = service.call("POST", f"/memory_banks/{bank['id']}/search", body=body)["results"]
    except Refused as refused:
        raise Failure(refused.reason) from refused
    tell(results)
    return 0


def tell(results: list[dict[str, Any]]) -> None:
    """The memories, best first: score, time, speaker, key; then the text."""
    if not results:
        print("nothing found")
    width = min(shutil.get_terminal_size().columns, 110)
    for result in results:
        entry = result["entry"]
        when = entry["occurred_at"][:16].replace("T", " ")
        who = printable(entry["speaker"] or entry["kind"])
        key = f"  [{printable(entry['key'])}]" if entry["key"] else ""
        print(f"{result['score']:.2f}  {when}  {who}{key}")
        print(
            textwrap.fill(printable(" ".join(entry["content"].split())), width, initial_indent="      ", subsequent_indent="      ")
        )


def printable(text: str) -> str:
    """Text of others that can't move the cursor or colour the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
