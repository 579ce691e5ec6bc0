"""`memory-banks sweep`: does now what the schedules do by the hour."""

from __future__ import annotations

import argparse
from typing import Any

from clients.cli import operator

KINDS = ("compaction", "retention")


def add_to(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("sweep", help="run the compaction and retention sweeps now")
    parser.add_argument("kind", nargs="?", choices=KINDS, help="only this one")
    operator.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the deployed function's own code here, with the operator's ports."""
    from functions.sweep.handler import handler
    from local.lambdas import Context

    with operator.ports(options):
        for kind in [options.kind] if options.kind else KINDS:
            result = handler({"sweep": kind}, Context("memory-banks-sweep", 300))
            print(f"{kind}: {result if result else 'done'}")
    return 0
