"""All benchmarks that can run here, one after the other: `make bench`. Each is also a command of its own (see its `--help`)."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys

import benchmarks

NEED_CONVERSATIONS = {"importing", "recall", "search_scale", "bulk"}
"""They read the file that MEMORY_BANKS_LOCOMO names."""


def main() -> int:
    """Run each in a process of its own; the number of those that failed."""
    failed = 0
    for found in pkgutil.iter_modules(benchmarks.__path__):
        if found.name.startswith("_") or not hasattr(importlib.import_module(f"benchmarks.{found.name}"), "main"):
            continue
        print(f"\n=== {found.name}", flush=True)
        if found.name in NEED_CONVERSATIONS and not os.environ.get("MEMORY_BANKS_LOCOMO"):
            print("left out: MEMORY_BANKS_LOCOMO names no file of conversations")
            continue
        failed += subprocess.run([sys.executable, "-m", f"benchmarks.{found.name}"], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
