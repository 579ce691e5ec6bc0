"""Cold starts: each function run by Lambda's own runtime client, with only its asset, layers and what the runtime brings to hand.

Set against a function that does nothing. The table behind them is the emulator's, and a first answer includes connecting to it.
The embedded index stands in for the search domain; no function gets to ask it here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_banks import access
from memory_banks.bootstrap import Wiring
from memory_banks.settings import Settings

from benchmarks.lambda_runtime import Start, brought, http_event, queue_event, start
from infra import bundling
from infra.bundling import Target
from local.emulator import Emulator

ABSENT = {"account": "bench", "bank": "none", "generation": 1, "partition": "none", "entries": ["none"]}
"""A message about a bank that is gone: it is read and forgotten."""

EMPTY = "def handler(event, context):\n    return {}\n"


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="cold starts of each function; the median is shown (default 7)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, Emulator.started() as emulator:
        folder = Path(temporary)
        layers = _layers(folder)
        runtime = folder / "runtime"
        runtime.mkdir()
        brought(runtime, "boto3", "awslambdaric")
        made = emulator.create("cold-start")
        environment = {
            "MEMORY_BANKS_AWS_ENDPOINT_URL": emulator.endpoint,
            "MEMORY_BANKS_TABLE": made.table,
            "MEMORY_BANKS_BUCKET": made.bucket,
            "MEMORY_BANKS_INGESTION_QUEUE_URL": made.ingestion_queue_url,
            "MEMORY_BANKS_COMPACTION_QUEUE_URL": made.compaction_queue_url,
            "MEMORY_BANKS_DISTILLATION_QUEUE_URL": made.distillation_queue_url,
            "MEMORY_BANKS_INDEX": "embedded",
        }
        key = _key(environment)
        print(f"Python {Target.this_machine().python}, {Target.this_machine().architecture}, median of {options.runs}\n")
        print(f"{'':28}{'imported':>10}{'answered':>10}{'against':>9}{'then':>8}")
        print(f"{'':28}{'ms':>10}{'ms':>10}{'nothing':>9}{'ms':>8}")
        nothing: float | None = None
        for label, name, event in _cases(key):
            asset = folder / "functions" / name
            if not asset.exists():
                asset.mkdir(parents=True)
                _build(name, asset)
            path = [asset, runtime] if name == "nothing" else [asset, *layers.values(), runtime]
            starts = [start(path, f"functions.{name}.handler.handler", event, environment) for _ in range(options.runs)]
            _check(name, starts)
            initialised, answered, warm = (
                statistics.median(getattr(one, what) for one in starts) for what in ("initialised", "answered", "warm")
            )
            nothing = nothing or answered
            print(f"{label:28}{initialised:>10.0f}{answered:>10.0f}{answered / nothing:>8.1f}x{warm:>8.1f}")
        _sizes(folder, layers)


def _cases(key: str) -> list[tuple[str, str, Mapping[str, Any]]]:
    """What is measured: a label, a function, an event."""
    return [
        ("nothing", "nothing", {}),
        ("api, /health", "api", http_event("/health", {})),
        ("api, list banks", "api", http_event("/memory_banks", {"x-api-key": key})),
        ("ingest, one message", "ingest", queue_event(ABSENT)),
        ("compact, one message", "compact", queue_event(ABSENT)),
        ("distill, one message", "distill", queue_event(ABSENT)),
        ("export, one message", "export", queue_event(ABSENT | {"export": "none"})),
        ("sweep, nothing due", "sweep", {"sweep": "retention"}),
    ]


def _check(name: str, starts: list[Start]) -> None:
    """A failure answered fast is no figure."""
    for one in starts:
        if name == "api" and one.answer["statusCode"] != 200:
            raise RuntimeError(f"api answered {one.answer}\n{one.printed}")
        if name in {"ingest", "compact", "distill", "export"} and one.answer != {"batchItemFailures": []}:
            raise RuntimeError(f"{name} answered {one.answer}\n{one.printed}")


def _key(environment: Mapping[str, str]) -> str:
    """An API key in the emulator's table."""
    os.environ |= {
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    _, secret = access.create_key(Wiring(Settings.from_environment(environment)), "bench", scopes=["read", "write"])
    return secret


def _layers(folder: Path) -> dict[str, Path]:
    """The two layers of every function, as they lie under /opt."""
    built = {}
    for name, build in {"dependencies": bundling.dependencies, "package": bundling.package}.items():
        layer = folder / "layers" / name
        layer.mkdir(parents=True)
        build(Target.this_machine(), layer)
        built[name] = layer / "python"
    return built


def _build(name: str, asset: Path) -> None:
    if name != "nothing":
        bundling.function(name, Target.this_machine(), asset)
        return
    module = asset / "functions" / name
    module.mkdir(parents=True)
    (module / "handler.py").write_text(EMPTY)


def _sizes(folder: Path, layers: Mapping[str, Path]) -> None:
    """Print what is uploaded, and what it is on disk."""
    print(f"\n{'':28}{'zipped MB':>10}{'MB':>10}")
    parts = {f"layer {name}": path.parent for name, path in layers.items()}
    parts |= {f"function {path.name}": path for path in sorted((folder / "functions").iterdir()) if path.name != "nothing"}
    total = 0.0
    for label, path in parts.items():
        archive = Path(shutil.make_archive(str(folder / "archive"), "zip", path))
        zipped = archive.stat().st_size / 1e6
        total += zipped if label.startswith("layer") else 0
        plain = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6
        print(f"{label:28}{zipped:>10.2f}{plain:>10.2f}")
    print(f"{'both layers (limit 10)':28}{total:>10.2f}")


if __name__ == "__main__":
    main()
