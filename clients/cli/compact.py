"""`memory-banks compact`: starts the compaction of a bank or of one key now."""

from __future__ import annotations

import argparse
from typing import Any

from clients.cli import client
from clients.cli.client import Refused
from clients.cli.failure import Failure


def add_to(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("compact", help="compact a bank, or one key of it, now")
    parser.add_argument("bank", help="name or id")
    parser.add_argument("--key", help="only this conversation, user or project")
    client.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask for it; the work goes on in the service."""
    service = client.from_options(options)
    try:
        bank = service.existing_bank(options.bank)
        body = {"key": options.key} if options.key else None
        answer = service.call("POST", f"/memory_banks/{bank['id']}/compact", body=body)
    except Refused as refused:
        raise Failure(refused.reason) from refused
    print(f"{bank['name']} ({bank['id']}): compaction {answer['status']}")
    return 0
