"""Run evaluation cases: `python -m examples.evaluation FOLDER`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from clients.cli.client import Client
from clients.cli.failure import Failure
from examples.evaluation.case import Case, WrongCase, read_all
from examples.evaluation.running import Verdict, run
from examples.offline import model_server, service
from examples.offline.distiller import distilled

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None, *, play: model_server.Play = distilled) -> int:
    """Run the cases and tell. 0 when all passed, 1 when one did not, 2 when there was nothing to run them with.

    `play` is the model of `--offline`.
    """
    parser = argparse.ArgumentParser(prog="python -m examples.evaluation", description=__doc__)
    parser.add_argument("cases", nargs="?", type=Path, default=HERE, help="a folder of cases, or one file (default: the shipped)")
    parser.add_argument("--offline", action="store_true", help="a service of its own with a model of rules, no network")
    parser.add_argument("--seconds", type=float, default=120, help="that one distillation may take (default 120)")
    options = parser.parse_args(arguments)
    try:
        cases = read_all(options.cases)
        with _service(options.offline, play) as client:
            verdicts = [_told(client, case, options.seconds) for case in cases]
    except (WrongCase, Failure, service.NotStarted) as error:
        print(error, file=sys.stderr)
        return 2
    passed = sum(verdict.passed for verdict in verdicts)
    print(f"\n{passed} passed, {len(verdicts) - passed} failed")
    return 0 if passed == len(verdicts) else 1


def _told(client: Client, case: Case, seconds: float) -> Verdict:
    started = time.monotonic()
    verdict = run(client, case, seconds=seconds)
    print(f"{'pass' if verdict.passed else 'FAIL'}  {verdict.case.name}  ({time.monotonic() - started:.1f} s)", flush=True)
    for complaint in verdict.complaints:
        print(f"      {complaint}", flush=True)
    return verdict


@contextmanager
def _service(offline: bool, play: model_server.Play) -> Iterator[Client]:
    if not offline:
        named = service.named()
        if named is None:
            raise service.NotStarted(
                f"name the memory service to judge ({service.URL} and {service.API_KEY}), or run with --offline"
            )
        yield Client(named.url, named.api_key)
        return
    with model_server.playing(play) as url:
        # Settings of the user's own (.env) are not for this service.
        others = {name: "" for name in os.environ if name.startswith("MEMORY_BANKS_")}
        with service.serving(environment=others | dict(model_server.settings(url))) as own:
            yield Client(own.url, own.api_key)


if __name__ == "__main__":
    sys.exit(main())
