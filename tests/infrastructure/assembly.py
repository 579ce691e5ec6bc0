"""What a synth makes: a template with questions, or a folder that the CDK command line filled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import bundling

CONTEXT: dict[str, Any] = json.loads((bundling.ROOT / "cdk.json").read_text())["context"]


@dataclass(frozen=True)
class Synthesised:
    """A template with the questions that tests ask of it."""

    template: dict[str, Any]

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Resources of a type, by logical id."""
        return {name: made for name, made in self.template["Resources"].items() if made["Type"] == kind}

    def one(self, kind: str) -> dict[str, Any]:
        """Properties of the only resource of a type."""
        (found,) = self.of(kind).values()
        return found["Properties"]

    def function(self, name: str) -> dict[str, Any]:
        """Properties of the function in `functions/<name>`."""
        (found,) = [
            f
            for f in self.of("AWS::Lambda::Function").values()
            if f["Properties"]["Handler"] == f"functions.{name}.handler.handler"
        ]
        return found["Properties"]

    def variables(self, name: str) -> dict[str, Any]:
        """Environment variables of a function."""
        return self.function(name).get("Environment", {}).get("Variables", {})

    def statements(self, name: str) -> list[dict[str, Any]]:
        """What the role of a function allows."""
        role = self.function(name)["Role"]["Fn::GetAtt"][0]
        policies = [p["Properties"] for p in self.of("AWS::IAM::Policy").values() if {"Ref": role} in p["Properties"]["Roles"]]
        return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]

    def actions(self, name: str) -> set[str]:
        """The actions that the role of a function allows."""
        return {action for statement in self.statements(name) for action in listed(statement["Action"])}


def listed(value: Any) -> list[Any]:
    """CloudFormation writes one thing without its list."""
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True)
class Assembly:
    """What `cdk synth` left in a folder."""

    folder: Path
    output: str

    @property
    def template(self) -> Path:
        """The template's file."""
        return self.folder / "MemoryBanks.template.json"

    @property
    def report(self) -> dict[str, Any]:
        """What validation found, suppressions with their reasons included."""
        return json.loads((self.folder / "validation-report.json").read_text())


def cdk_synth(folder: Path, **chosen: str) -> Assembly:
    """Run the pinned command line as a user would. Fails with its output."""
    command = [str(bundling.ROOT / "node_modules" / ".bin" / "cdk"), "synth", "--quiet", "--no-notices", "--output", str(folder)]
    for name, value in chosen.items():
        command += ["-c", f"{name}={value}"]
    return _run(command, folder, {})


def app_synth(folder: Path, **chosen: str) -> Assembly:
    """Run only the application, which validates too, and build no assets."""
    context = {**CONTEXT, "aws:cdk:bundling-stacks": [], **chosen}
    return _run([sys.executable, "app.py"], folder, {"CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(folder)})


def _run(command: list[str], folder: Path, more: Mapping[str, str]) -> Assembly:
    """With no credentials and no network."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    # A proxy that nobody serves: whatever asks the network for something fails. The packages are in uv's cache since `uv sync`.
    environment |= {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "UV_OFFLINE": "1", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=bundling.ROOT, env=environment | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Assembly(folder, done.stdout + done.stderr)
