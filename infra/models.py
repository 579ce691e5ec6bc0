"""Which models the functions may call: Bedrock's by a grant for each configured one, others by an endpoint."""

from __future__ import annotations

from aws_cdk import SecretValue, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction
from .suppressions import accept

GEOGRAPHIES = ("us", "us-gov", "eu", "apac", "jp", "au", "ca", "global")
"""Prefixes of cross-region inference profiles: `us.amazon.nova-lite-v1:0`."""


class Models(Construct):
    """The configured embedding, chat and reranking models."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration) -> None:
        super().__init__(scope, id)
        self._configuration = configuration

    def grant_embedding(self, function: MemoryFunction) -> None:
        """Let a function turn text into vectors."""
        chosen = self._configuration
        function.setting("embedding_model", chosen.embedding_model)
        function.setting("embedding_dimensions", str(chosen.embedding_dimensions) if chosen.embedding_dimensions else None)
        self._grant(function, (chosen.embedding_model, *chosen.other_models))

    def grant_chat(self, function: MemoryFunction) -> None:
        """Let a function ask the chat model."""
        function.setting("chat_model", self._configuration.chat_model)
        self._grant(function, (self._configuration.chat_model, *self._configuration.other_models))

    def grant_reranking(self, function: MemoryFunction) -> None:
        """Let a function rerank what it finds, where a reranker is configured."""
        model = self._configuration.rerank_model
        if model is None:
            return
        function.setting("rerank_model", model)
        self._grant(function, (model,))
        arns = self._arns(model)
        if not arns:
            return
        # The action knows no resources. Which model it may call is said by InvokeModel; where, by this condition.
        region = arns[0].split(":")[3] if model.startswith("bedrock/arn:") else Stack.of(self).region
        statement = iam.PolicyStatement(
            actions=["bedrock:Rerank"], resources=["*"], conditions={"StringEquals": {"aws:RequestedRegion": region}}
        )
        function.add_to_role_policy(statement)
        accept(function.execution_role, "IAM5[Resource::*]", "bedrock:Rerank has no resources; InvokeModel names the one model")

    def _grant(self, function: MemoryFunction, models: tuple[str, ...]) -> None:
        if any(model.startswith("openai/") for model in models):
            function.setting("openai_base_url", self._configuration.openai_base_url)
            if self._configuration.openai_secret:
                function.setting("openai_api_key", SecretValue.secrets_manager(self._configuration.openai_secret).unsafe_unwrap())
        resources = [arn for model in models for arn in self._arns(model)]
        if not resources:
            return
        function.add_to_role_policy(iam.PolicyStatement(actions=["bedrock:InvokeModel"], resources=resources))
        for arn in resources:
            if ":*:" in arn:
                resolved = arn.replace(Stack.of(self).partition, "<AWS::Partition>")
                reason = "An inference profile sends a call to whichever of its regions has room"
                accept(function.execution_role, f"IAM5[Resource::{resolved}]", reason)

    def _arns(self, model: str) -> list[str]:
        """What Bedrock asks rights for: the model here or, through an inference profile, the profile and its model anywhere."""
        provider, _, name = model.partition("/")
        if provider not in {"bedrock", "anthropic"}:
            return []
        if name.startswith("arn:"):
            return [name]
        if provider == "anthropic" and "anthropic." not in name:
            name = f"anthropic.{name}"
        stack = Stack.of(self)
        geography, _, plain = name.partition(".")
        if geography not in GEOGRAPHIES:
            return [f"arn:{stack.partition}:bedrock:{stack.region}::foundation-model/{name}"]
        return [
            f"arn:{stack.partition}:bedrock:{stack.region}:{stack.account}:inference-profile/{name}",
            f"arn:{stack.partition}:bedrock:*::foundation-model/{plain}",
        ]
