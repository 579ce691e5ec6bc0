"""What the roles of the template may do: named actions on named resources."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.infrastructure.assembly import Synthesised, listed

FUNCTIONS = ("api", "ingest", "compact", "distill", "export", "sweep")


def allowed(stack: Synthesised) -> list[dict]:
    """Every statement that allows something, of every role and every resource policy."""
    documents = []
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy"):
        documents += [policy["Properties"]["PolicyDocument"] for policy in stack.of(kind).values()]
    for role in stack.of("AWS::IAM::Role").values():
        documents += [policy["PolicyDocument"] for policy in role["Properties"].get("Policies", ())]
    return [statement for document in documents for statement in document["Statement"] if statement["Effect"] == "Allow"]


def test_no_action_has_a_wildcard(stack: Synthesised) -> None:
    statements = allowed(stack)
    assert len(statements) > 20
    actions = {action for statement in statements for action in listed(statement["Action"])}
    assert not [action for action in actions if "*" in action]


def test_no_statement_names_every_resource(stack: Synthesised) -> None:
    assert not [statement for statement in allowed(stack) if "*" in listed(statement["Resource"])]


def test_no_role_brings_a_policy_of_amazon(stack: Synthesised) -> None:
    assert not [role for role in stack.of("AWS::IAM::Role").values() if role["Properties"].get("ManagedPolicyArns")]


def test_nothing_may_scan_the_table(stack: Synthesised) -> None:
    for name in FUNCTIONS:
        assert {"dynamodb:GetItem", "dynamodb:ConditionCheckItem"} <= stack.actions(name)
        assert not {"dynamodb:Scan", "dynamodb:PartiQLSelect", "dynamodb:DeleteTable"} & stack.actions(name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_the_sweep_asks_what_is_due_and_only_the_api_besides_what_is_oldest(stack: Synthesised, name: str) -> None:
    named = json.dumps([s["Resource"] for s in stack.statements(name) if "dynamodb:Query" in listed(s["Action"])])
    assert ("/index/due" in named, "/index/age" in named) == (name == "sweep", name in {"api", "sweep"})
    assert "/index/*" not in named


def bedrock(stack: Synthesised, name: str) -> list[str]:
    """The Bedrock resources that a function may call, their references left out."""
    found = [r for s in stack.statements(name) if "bedrock:InvokeModel" in listed(s["Action"]) for r in listed(s["Resource"])]
    return ["".join(part if isinstance(part, str) else "·" for part in arn["Fn::Join"][1]) for arn in found]


def test_functions_call_the_configured_models_alone(stack: Synthesised) -> None:
    titan = "arn:·:bedrock:·::foundation-model/amazon.titan-embed-text-v2:0"
    nova = "arn:·:bedrock:·::foundation-model/amazon.nova-lite-v1:0"
    assert sorted(bedrock(stack, "api")) == [nova, titan]
    assert bedrock(stack, "ingest") == [titan]
    assert sorted(bedrock(stack, "compact")) == [nova, titan]
    assert bedrock(stack, "sweep") == [titan]


def test_inference_profile_is_granted_with_its_model_in_every_region(synthesise: Callable[..., Synthesised]) -> None:
    made = synthesise(chat_model="bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0")
    assert set(bedrock(made, "compact")) == {
        "arn:·:bedrock:·::foundation-model/amazon.titan-embed-text-v2:0",
        "arn:·:bedrock:·:·:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0",
        "arn:·:bedrock:*::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0",
    }


def test_other_endpoint_needs_no_grant(synthesise: Callable[..., Synthesised]) -> None:
    made = synthesise(
        chat_model="openai/gpt-4o-mini",
        embedding_model="openai/text-embedding-3-small",
        embedding_dimensions="1536",
        openai_base_url="https://models.example.com/v1",
        openai_secret="models",
    )
    for name in FUNCTIONS:
        assert not any(action.startswith("bedrock:") for action in made.actions(name))
    told = made.variables("ingest")
    assert told["MEMORY_BANKS_EMBEDDING_DIMENSIONS"] == "1536"
    assert told["MEMORY_BANKS_OPENAI_API_KEY"] == "{{resolve:secretsmanager:models:SecretString:::}}"
    assert made.variables("compact")["MEMORY_BANKS_CHAT_MODEL"] == "openai/gpt-4o-mini"


RERANK = "amazon.rerank-v1:0"


def reranking(stack: Synthesised, name: str) -> list[dict]:
    return [statement for statement in stack.statements(name) if "bedrock:Rerank" in listed(statement["Action"])]


def test_nothing_is_reranked_unless_chosen(stack: Synthesised) -> None:
    for name in FUNCTIONS:
        assert reranking(stack, name) == []
        assert "MEMORY_BANKS_RERANK_MODEL" not in stack.variables(name)


def test_the_api_alone_may_rerank_with_the_chosen_model_in_its_region(synthesise: Callable[..., Synthesised]) -> None:
    made = synthesise(rerank_model=f"bedrock/{RERANK}")
    (statement,) = reranking(made, "api")
    assert listed(statement["Action"]) == ["bedrock:Rerank"]
    assert statement["Condition"] == {"StringEquals": {"aws:RequestedRegion": {"Ref": "AWS::Region"}}}
    assert f"arn:·:bedrock:·::foundation-model/{RERANK}" in bedrock(made, "api")
    assert made.variables("api")["MEMORY_BANKS_RERANK_MODEL"] == f"bedrock/{RERANK}"
    for name in set(FUNCTIONS) - {"api"}:
        assert reranking(made, name) == []
        assert not any(RERANK in arn for arn in bedrock(made, name))


def test_a_reranker_of_another_region_is_granted_there(synthesise: Callable[..., Synthesised]) -> None:
    arn = f"arn:aws:bedrock:us-west-2::foundation-model/{RERANK}"
    made = synthesise(rerank_model=f"bedrock/{arn}")
    (statement,) = reranking(made, "api")
    assert statement["Condition"] == {"StringEquals": {"aws:RequestedRegion": "us-west-2"}}
    granted = [r for s in made.statements("api") if "bedrock:InvokeModel" in listed(s["Action"]) for r in listed(s["Resource"])]
    assert arn in granted


def test_a_reranker_at_an_endpoint_needs_no_grant(synthesise: Callable[..., Synthesised]) -> None:
    made = synthesise(rerank_model="openai/bge", openai_base_url="https://models.example.com/v1", openai_secret="models")
    assert reranking(made, "api") == []
    assert made.variables("api")["MEMORY_BANKS_OPENAI_API_KEY"] == "{{resolve:secretsmanager:models:SecretString:::}}"
