"""The store of one machine, opened: an emulator filled from the journal, or the one that `serve` has running."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from local import aws
from local.data_folder import DataFolder, InUse
from local.emulator import Emulator
from local.journal import Journal
from local.resources import Resources
from local.wiring import LocalWiring, settings


@contextmanager
def opened(folder: DataFolder, environment: Mapping[str, str] = os.environ) -> Iterator[tuple[LocalWiring, Emulator]]:
    """The ports over what the folder holds, and the emulator behind them; at the end everything is on disk.

    Raises `data_folder.InUse` when another process has the folder, `emulator.EmulatorFailed`, `install.InstallFailed`.
    """
    with ExitStack() as stack:
        stack.enter_context(folder.locked())
        emulator = stack.enter_context(Emulator.started(log=folder.log, environment=_bucket_on_disk(folder.bucket)))
        resources = emulator.resources
        journal = stack.enter_context(closing(Journal(folder.table, emulator.client("dynamodb"), resources.table)))
        journal.load()
        journal.start()
        yield LocalWiring(settings(environment, emulator.endpoint, resources, str(folder.index)), journal).built(), emulator


@contextmanager
def joined(folder: DataFolder, environment: Mapping[str, str] = os.environ) -> Iterator[LocalWiring]:
    """The ports over what the folder holds, next to the `serve` that has it, or alone when none has.

    What is written here is on disk at the end. Raises as `opened`.
    """
    with ExitStack() as stack:
        try:
            wiring, _ = stack.enter_context(opened(folder, environment))
        except InUse:
            facts = folder.facts()
            resources = Resources(**facts["resources"])
            client = aws.client("dynamodb", facts["endpoint"])
            journal = stack.enter_context(closing(Journal(folder.table, client, resources.table)))
            wiring = LocalWiring(settings(environment, facts["endpoint"], resources, str(folder.index)), journal).built()
        yield wiring


def _bucket_on_disk(path: Path) -> dict[str, str]:
    path.mkdir(mode=0o700, exist_ok=True)
    return {"S3_PERSIST": "1", "S3_DATA_DIR": str(path)}
