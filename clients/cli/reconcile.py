"""`memory-banks reconcile`: compares the index of a bank with its table and mends both ways."""

from __future__ import annotations

import argparse
import time
from typing import Any

from clients.cli import client
from clients.cli.client import Client, Refused
from clients.cli.failure import Failure

POLL_SECONDS = 0.5
ENDED = ("completed", "failed", "cancelled")


def add_to(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("reconcile", help="compare the index of a bank with its table, and mend what differs")
    parser.add_argument("bank", help="name or id")
    parser.add_argument("--no-wait", action="store_true", help="only begin it")
    client.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Begin it and, unless told not to, wait for its end; 0 when the index is right then."""
    service = client.from_options(options)
    try:
        bank = service.existing_bank(options.bank)
        job = service.call("POST", f"/memory_banks/{bank['id']}/rebuild", body={"reconcile": True})
        if not options.no_wait:
            job = _end_of(service, bank["id"], job)
    except Refused as refused:
        raise Failure(refused.reason) from refused
    if job["status"] not in ENDED:
        print(f"{bank['name']} ({bank['id']}): job {job['id']} {job['status']}")
        return 0
    mended = job["mended"] or {"indexed": 0, "removed": 0}
    compared = f"{job['progress']['current']} entries compared"
    print(f"{bank['name']}: {compared}, {mended['indexed']} indexed again, {mended['removed']} documents removed")
    if job["status"] != "completed":
        raise Failure(f"job {job['id']} {job['status']}: {job['error']}")
    if job["error"]:
        raise Failure(job["error"])
    return 0


def _end_of(service: Client, bank_id: str, job: dict[str, Any]) -> dict[str, Any]:
    while job["status"] not in ENDED:
        time.sleep(POLL_SECONDS)
        job = service.call("GET", f"/memory_banks/{bank_id}/jobs/{job['id']}")
    return job
