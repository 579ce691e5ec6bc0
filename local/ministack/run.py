"""Runs ministack, in its own environment, and dies with the process that started it.

The parent holds the other end of standard input and never writes: when it is gone, however it went, reading ends. (Linux's
parent-death signal would do the same only there, and fires too early when a thread of the parent was the starter.)
"""

import contextlib
import os
import shutil
import signal
import sys
import threading

import quick  # type: ignore[import-not-found]
from ministack.app import main  # type: ignore[import-not-found]
from ministack.services import dynamodb, sqs  # type: ignore[import-not-found]


def die_with_parent() -> None:
    """Wait for the end of standard input, then end this process and the Lambda processes of its session."""
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 1024):
            pass
    if temporary := os.environ.get("MEMORY_BANKS_EMULATOR_TEMPORARY"):
        shutil.rmtree(temporary, ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=die_with_parent, daemon=True).start()
    quick.order(dynamodb)
    quick.wake(sqs)
    main()
