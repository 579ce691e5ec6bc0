"""A whole `cdk synth`, strict, offline and without credentials, under cdk-nag and cfn-lint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from infra.bundling import ROOT
from tests.infrastructure.assembly import Assembly, app_synth

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """Everything that the default does not choose, at once."""
    return app_synth(
        tmp_path_factory.mktemp("variant"),
        removal="destroy",
        domain_nodes="1",
        chat_model="bedrock/us.amazon.nova-lite-v1:0",
        cors_origins='["https://app.example.com"]',
        alarm_topic="arn:aws:sns:us-east-1:111122223333:alarms",
        embedded_models="true",
        rerank_model="bedrock/amazon.rerank-v1:0",
    )


@pytest.fixture(params=["default", "variant"])
def synthesised(request: pytest.FixtureRequest) -> Assembly:
    """Each way to configure the stack."""
    return request.getfixturevalue({"default": "assembly", "variant": "variant"}[request.param])


def test_nag_finds_nothing_and_every_suppression_has_a_reason(synthesised: Assembly) -> None:
    reports = {report["pluginName"]: report for report in synthesised.report["pluginReports"]}
    nag = reports["AwsSolutions"]
    assert nag["conclusion"] == "success"
    assert nag["violations"] == []
    assert {"AwsSolutions-APIG4", "AwsSolutions-S1"} <= {found["ruleName"] for found in nag["suppressedViolations"]}
    for found in nag["suppressedViolations"]:
        assert len(found["reason"].split()) >= 5, found


def test_no_warning_is_left(synthesised: Assembly) -> None:
    assert "WARNING" not in synthesised.output.upper()


def test_cfn_lint_finds_nothing(synthesised: Assembly) -> None:
    lint = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([lint, str(synthesised.template)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_template_names_nothing_of_this_machine(synthesised: Assembly) -> None:
    assert str(ROOT) not in synthesised.template.read_text()
