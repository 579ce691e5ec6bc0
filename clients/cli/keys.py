"""`memory-banks keys`: makes, lists and revokes API keys, with the operator's AWS credentials or in a data folder."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_banks import access
from memory_banks.clock import iso

from clients.cli import operator

LOCAL_ACCOUNT = "local"
"""The account that `serve` uses."""


def add_to(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("keys", help="make, list and revoke API keys")
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    create = actions.add_parser("create", help="make a key and print it; it can't be shown again")
    create.add_argument("--scopes", default="read,write", help="of read, write and admin, with commas (default read,write)")
    create.add_argument("--name", default="", help="what it is for")
    create.add_argument("--expires", type=_moment, metavar="WHEN", help="a date or time (2027-01-31), or days from now (30d)")
    _common(create, _create)
    _common(actions.add_parser("list", help="list the keys of an account"), _list)
    revoke = actions.add_parser("revoke", help="make a key useless, everywhere within a minute")
    revoke.add_argument("id", help="as `list` shows it")
    _common(revoke, _revoke)


def _common(parser: argparse.ArgumentParser, run: Any) -> None:
    parser.add_argument("--account", default=LOCAL_ACCOUNT, help=f"the tenant (default {LOCAL_ACCOUNT})")
    operator.add_options(parser)
    parser.set_defaults(run=run)


def _create(options: argparse.Namespace) -> int:
    scopes = [scope.strip() for scope in options.scopes.split(",") if scope.strip()]
    with operator.ports(options) as ports:
        key, secret = access.create_key(ports, options.account, scopes=scopes, name=options.name, expires_at=options.expires)
    until = f"until {iso(key.expires_at)}" if key.expires_at is not None else "for good"
    print(secret)
    print(f"{key.id}: {', '.join(key.scopes)} for the account {key.account}, {until}. It is not shown again.")
    return 0


def _list(options: argparse.Namespace) -> int:
    with operator.ports(options) as ports:
        keys = access.list_keys(ports, options.account)
        now = ports.clock.now()
    for key in keys:
        expiry = "" if key.expires_at is None else f"  {'expired' if key.expires_at <= now else 'until'} {iso(key.expires_at)}"
        print(f"{key.id}  made {iso(key.created_at)}  {','.join(key.scopes)}{expiry}  {key.name}".rstrip())
    if not keys:
        print(f"the account {options.account} has no keys")
    return 0


def _revoke(options: argparse.Namespace) -> int:
    with operator.ports(options) as ports:
        access.revoke_key(ports, options.account, options.id)
    print(f"{options.id} is revoked")
    return 0


def _moment(text: str) -> int:
    """Milliseconds of a date, a time or a number of days from now."""
    now = datetime.now(UTC)
    try:
        moment = now + timedelta(days=float(text[:-1])) if text.endswith("d") else datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no date, time or number of days like 30d") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment <= now:
        raise argparse.ArgumentTypeError(f"{text!r} is in the past")
    return round(moment.timestamp() * 1000)
