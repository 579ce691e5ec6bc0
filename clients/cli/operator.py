"""What an operator's commands work on: the table itself, in the cloud or in a data folder."""

from __future__ import annotations

import argparse
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory_banks import bootstrap
from memory_banks.errors import MemoryBanksError
from memory_banks.ports import Contended, Ports, TableUnavailable
from memory_banks.settings import Settings

from clients.cli.failure import Failure


def add_options(parser: argparse.ArgumentParser) -> None:
    """What these commands take."""
    parser.add_argument("--data-dir", type=Path, help="the folder of a local `serve`, running or not; without it, AWS")
    parser.add_argument("--table", help="the DynamoDB table (default: MEMORY_BANKS_TABLE)")


@contextmanager
def ports(options: argparse.Namespace) -> Iterator[Ports]:
    """The ports that the options name, also for functions called in this process. What goes wrong is a `Failure`.

    With AWS, the operator's own credentials and region count, found as every AWS tool finds them.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from pydantic import ValidationError

    try:
        if options.data_dir is None:
            environment: dict[str, str] = dict(os.environ)
            if options.table:
                environment["MEMORY_BANKS_TABLE"] = options.table
            chosen: Any = bootstrap.Wiring(Settings.from_environment(environment))
            with _used(chosen):
                yield chosen
        else:
            with _local(options.data_dir) as chosen, _used(chosen):
                yield chosen
    except MemoryBanksError as error:
        raise Failure(error.message) from error
    except ValidationError as error:
        raise Failure(f"wrong settings: {error}") from error
    except (TableUnavailable, Contended, BotoCoreError, ClientError) as error:
        raise Failure(f"the table can't be used: {error}") from error


@contextmanager
def _local(folder: Path) -> Iterator[Any]:
    from local.data_folder import DataFolder, InUse
    from local.emulator import EmulatorFailed
    from local.ministack.install import InstallFailed
    from local.store import joined

    os.umask(0o077)
    try:
        with joined(DataFolder(folder)) as wiring:
            yield wiring
    except (InUse, EmulatorFailed, InstallFailed) as error:
        raise Failure(str(error)) from error
    except (OSError, sqlite3.DatabaseError) as error:
        raise Failure(f"{folder} can't be used: {error}") from error


@contextmanager
def _used(chosen: Any) -> Iterator[None]:
    bootstrap.use(chosen)
    try:
        yield
    finally:
        bootstrap.use(None)
