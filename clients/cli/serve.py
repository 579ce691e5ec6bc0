"""`memory-banks serve`: the service on this machine."""

from __future__ import annotations

import argparse
import logging
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from clients.cli import typed
from clients.cli.failure import Failure


def add_to(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("serve", help="run the service on this machine, on 127.0.0.1")
    parser.add_argument("--port", type=typed.port, default=8000, help="where to listen; 0 takes a free port (default 8000)")
    parser.add_argument("--api-key", type=typed.api_key, help="the key that lets clients in (default: one is made and printed)")
    parser.add_argument("--data-dir", type=Path, help="where memory is kept (default: a temporary folder, gone at the end)")
    parser.add_argument(
        "--sweep-seconds", type=typed.seconds, default=60, help="time between two rounds of compaction and retention (default 60)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from memory_banks.ports import UnknownModel
    from pydantic import ValidationError

    from local import service
    from local.data_folder import InUse
    from local.emulator import EmulatorFailed
    from local.ministack.install import InstallFailed

    # What is written here (texts, a key) is for its owner alone.
    os.umask(0o077)
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", level=logging.WARNING, stream=sys.stderr)
    logging.getLogger("local").setLevel(logging.INFO)
    # The functions' own structured lines would drown the request log.
    os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "WARNING")
    chosen = service.Options(options.port, options.api_key, options.data_dir, options.sweep_seconds)
    try:
        service.run(chosen, lambda started: _tell(started, chosen))
    except (service.PortTaken, InUse, EmulatorFailed, InstallFailed, UnknownModel) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{options.data_dir or 'the temporary folder'} can't be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise Failure(f"a file in {options.data_dir} can't be read or written: {error}") from error
    except ValidationError as error:
        wrong = "; ".join(f"MEMORY_BANKS_{str(one['loc'][0]).upper()}: {one['msg']}" for one in error.errors())
        raise Failure(f"wrong settings: {wrong}") from error
    print("stopped", flush=True)
    return 0


def _tell(started: Any, options: Any) -> None:
    kept = f"{started.folder}" if options.data_dir else "a temporary folder (keep it with --data-dir)"
    lines = {
        "serving": started.url,
        "API key": "the one given" if options.api_key else started.api_key,
        "data": kept,
        "AWS emulator": started.emulator,
        "index": started.index,
        "embedding": started.embedding_model,
        "chat": started.chat_model,
    }
    print("\n".join(f"{name:<13} {value}" for name, value in lines.items()), flush=True)
