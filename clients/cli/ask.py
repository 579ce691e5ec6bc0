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
    parser.add_argument("--neighbors", type=int, choices=range(6), default=1, help="turns shown around each memory (default 1)")
    client.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search and print."""
    service = client.from_options(options)
    try:
        bank = service.existing_bank(options.bank)
        body = {"query": options.question, "top_k": options.top_k, "neighbors": options.neighbors}
        body |= {"key": options.key} if options.key else {}
        results = service.call("POST", f"/memory_banks/{bank['id']}/search", body=body)["results"]
    except Refused as refused:
        raise Failure(refused.reason) from refused
    tell(results)
    return 0


def tell(results: list[dict[str, Any]]) -> None:
    """The memories, best first: score, time, speaker, key; then the text, with what was said around it in between."""
    if not results:
        print("nothing found")
    for result in results:
        entry = result["entry"]
        key = f"  [{printable(entry['key'])}]" if entry["key"] else ""
        print(f"{result['score']:.2f}  {_when(entry)}  {_who(entry)}{key}")
        around = [(_moment(one), f"({_who(one)}: {one['content']})") for one in result["neighbors"]]
        before = sum(moment < _moment(entry) for moment, _ in around)
        # Turns of one instant can't be told apart by time; the hit is the middle one.
        before += sum(moment == _moment(entry) for moment, _ in around) // 2
        said = [text for _, text in around]
        for text in [*said[:before], entry["content"], *said[before:]]:
            _tell_text(text)


def _tell_text(text: str) -> None:
    width = min(shutil.get_terminal_size().columns, 110)
    print(textwrap.fill(printable(" ".join(text.split())), width, initial_indent="      ", subsequent_indent="      "))


def _moment(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["created_at"], entry["occurred_at"]


def _when(entry: dict[str, Any]) -> str:
    return str(entry["occurred_at"][:16]).replace("T", " ")


def _who(entry: dict[str, Any]) -> str:
    return printable(entry["speaker"] or entry["kind"])


def printable(text: str) -> str:
    """Text of others that can't move the cursor or colour the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
