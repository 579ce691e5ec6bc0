"""What a deployment may choose, and how it is told that it may not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from memory_banks.settings import Settings
from pydantic import ValidationError

from infra.bundling import ROOT
from infra.configuration import Configuration
from tests.infrastructure.assembly import Synthesised


def test_text_from_the_command_line_becomes_what_it_means() -> None:
    chosen = Configuration.from_context(
        {
            "domain_nodes": "3",
            "sweep_retention": "false",
            "cors_origins": '["https://a.example"]',
            "environment": '{"MEMORY_BANKS_CHAT_WINDOW": "8000"}',
            "@aws-cdk/core:newStyleStackSynthesis": True,
            "aws:cdk:enable-path-metadata": True,
        }
    )
    assert (chosen.domain_nodes, chosen.sweep_retention, chosen.cors_origins) == (3, False, ("https://a.example",))
    assert chosen.environment == {"MEMORY_BANKS_CHAT_WINDOW": "8000"}


@pytest.mark.parametrize(
    ("context", "names"),
    [
        ({"domain_node": 1}, "domain_node"),
        ({"architecture": "sparc"}, "architecture"),
        ({"runtime": "2.7"}, "runtime"),
        ({"recovery_days": 36}, "recovery_days"),
        ({"sweep_compaction_minutes": 0}, "sweep_compaction_minutes"),
        ({"environment": '{"MEMORY_BANKS_TABEL": "x"}'}, "MEMORY_BANKS_TABEL"),
        ({"opensearch_url": "https://x"}, "opensearch_arn"),
        ({"opensearch_url": "https://x", "opensearch_auth": "basic"}, "opensearch_secret"),
        ({"opensearch_url": "https://x", "index": "embedded"}, "opensearch_url"),
        ({"chat_model": "openai/x"}, "openai_base_url"),
        ({"embedding_model": "embedded/x"}, "embedded_models"),
        ({"rerank_model": "amazon.rerank-v1:0"}, "rerank_model"),
        ({"rerank_model": "openai/x"}, "openai_base_url"),
    ],
)
def test_wrong_choice_is_refused_by_name(context: dict[str, Any], names: str) -> None:
    with pytest.raises(ValidationError, match=names):
        Configuration.from_context(context)


def test_functions_know_only_settings_that_exist(stack: Synthesised) -> None:
    for name in ("api", "ingest", "compact", "sweep"):
        told = stack.variables(name)
        assert {"MEMORY_BANKS_TABLE", "MEMORY_BANKS_BUCKET", "MEMORY_BANKS_INGESTION_QUEUE_URL"} <= set(told)
        # The values of references are only known at deployment.
        Settings.from_environment({variable: value for variable, value in told.items() if isinstance(value, str)})
        assert set(told) <= {f"MEMORY_BANKS_{field.upper()}" for field in Settings.model_fields}


def test_environment_wins_over_what_the_stack_would_say(synthesise: Any) -> None:
    made = synthesise(environment='{"MEMORY_BANKS_OPENSEARCH_REPLICAS": "2"}')
    assert made.variables("ingest")["MEMORY_BANKS_OPENSEARCH_REPLICAS"] == "2"


def test_every_choice_is_explained_in_the_guide() -> None:
    explained = set(re.findall(r"^\| `([a-z_]+)`", (ROOT / "docs" / "deploy.md").read_text(), re.MULTILINE))
    assert explained == set(Configuration.model_fields)
