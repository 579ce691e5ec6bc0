"""`memory-banks`: the command line. Each command is a file of this folder that says what it takes and does it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from clients.cli import ask, compact, demo, importing, keys, reconcile, serve, sweep
from clients.cli.failure import Failure

COMMANDS = (serve, demo, importing, ask, keys, compact, reconcile, sweep)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it did what was asked, 1 when it could not, 2 when it was asked wrongly."""
    parser = argparse.ArgumentParser(prog="memory-banks", description="Memory for AI agents: serve it, fill it, ask it.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except Failure as failure:
        print(f"memory-banks: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`).
        sys.stderr.close()
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
