"""What a deployment may choose: typed, from the CDK context (`cdk.json`, or `cdk deploy -c name=value`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from memory_banks.settings import Settings
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .bundling import Target

_OURS = re.compile(r"[a-z][a-z0-9_]*")
"""Names of our own: the CDK's all have a colon, a slash, an at sign or a hyphen."""


def _decoded(value: Any) -> Any:
    """`-c` gives text; lists and mappings come as JSON in it."""
    return json.loads(value) if isinstance(value, str) else value


class Configuration(BaseModel):
    """One deployment. Every field is a context value of the same name; `docs/deploy.md` explains each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stack_name: str = Field("MemoryBanks", pattern=r"^[A-Za-z][A-Za-z0-9-]{0,100}$", description="Name of the CloudFormation stack")
    runtime: str = Field("3.13", pattern=r"^3\.1[1-4]$", description="Python of the functions")
    architecture: Literal["arm64", "x86_64"] = Field("arm64", description="Processor of the functions")
    removal: Literal["retain", "destroy"] = Field("retain", description="What becomes of table, bucket and domain with the stack")
    recovery_days: int = Field(35, ge=1, le=35, description="Days that point-in-time recovery reaches back")
    log_days: Annotated[Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 180, 365], BeforeValidator(int)] = Field(
        30, description="Days that logs are kept"
    )

    throttle_rate: int = Field(100, ge=1, description="Requests a second that the API takes")
    throttle_burst: int = Field(200, ge=1, description="Requests at once that the API takes")
    cors_origins: Annotated[tuple[str, ...], BeforeValidator(_decoded)] = Field((), description="Web origins that may call the API")

    index: Literal["opensearch", "embedded"] = Field("opensearch", description="Where vectors live")
    opensearch_url: str | None = Field(None, description="An existing search endpoint instead of a domain of the stack's own")
    opensearch_arn: str | None = Field(None, description="ARN of the domain behind it, for sigv4")
    opensearch_auth: Literal["sigv4", "basic", "none"] = Field("sigv4", description="How to sign in at the existing endpoint")
    opensearch_secret: str | None = Field(None, description="Secrets Manager secret with `username` and `password`, for basic")
    domain_instance_type: str = Field("r7g.medium.search", description="Instance type of a data node")
    domain_nodes: int = Field(2, ge=1, le=80, description="Data nodes; two or more lie in two zones")
    domain_volume_gib: int = Field(20, ge=10, description="Disk of a data node")

    embedding_model: str = Field(Settings.model_fields["embedding_model"].default, description="provider/model of new banks")
    embedding_dimensions: int | None = Field(None, ge=1, description="Its size, where the provider does not tell")
    chat_model: str = Field(Settings.model_fields["chat_model"].default, description="provider/model that summarises")
    rerank_model: str | None = Field(
        None, pattern=r"^(bedrock|openai)/.", description="provider/model that reranks what a search found; none: no reranking"
    )
    other_models: Annotated[tuple[str, ...], BeforeValidator(_decoded)] = Field(
        (), description="Further bedrock/… models of custom banks"
    )
    openai_base_url: str | None = Field(None, description="OpenAI-compatible endpoint for openai/… models")
    openai_secret: str | None = Field(None, description="Secrets Manager secret that holds its API key")
    embedded_models: bool = Field(False, description="Add the layer with the embedded model (90 MB)")

    ingest_concurrency: int = Field(10, ge=2, le=1000, description="Copies of `ingest` that the queue starts at most")
    compact_concurrency: int = Field(5, ge=2, le=1000, description="Copies of `compact` that the queue starts at most")
    distill_concurrency: int = Field(5, ge=2, le=1000, description="Copies of `distill` that the queue starts at most")
    export_concurrency: int = Field(2, ge=2, le=1000, description="Copies of `export` that the queue starts at most")
    sweep_compaction: bool = Field(True, description="Whether the compaction sweep runs")
    sweep_compaction_minutes: int = Field(60, ge=1, description="How often")
    sweep_retention: bool = Field(True, description="Whether the retention sweep runs")
    sweep_retention_minutes: int = Field(60, ge=1, description="How often")

    alarm_topic: str | None = Field(None, description="ARN of an SNS topic that alarms go to")
    environment: Annotated[Mapping[str, str], BeforeValidator(_decoded)] = Field(
        default_factory=dict, description="More MEMORY_BANKS_… variables for every function"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.opensearch_url and self.index == "embedded":
            raise ValueError("opensearch_url: not with index=embedded")
        if self.opensearch_url and self.opensearch_auth == "sigv4" and not self.opensearch_arn:
            raise ValueError("opensearch_arn: required with opensearch_url and sigv4, to grant access to that domain alone")
        if self.opensearch_url and self.opensearch_auth == "basic" and not self.opensearch_secret:
            raise ValueError("opensearch_secret: required with opensearch_url and basic")
        if self.embedding_model.startswith("openai/") and not self.openai_base_url:
            raise ValueError("openai_base_url: required with an openai/… embedding model")
        if self.chat_model.startswith("openai/") and not self.openai_base_url:
            raise ValueError("openai_base_url: required with an openai/… chat model")
        reranks_at = self.openai_base_url or self.environment.get("MEMORY_BANKS_RERANK_BASE_URL")
        if (self.rerank_model or "").startswith("openai/") and not reranks_at:
            raise ValueError("openai_base_url: required with an openai/… rerank model, unless it has an address of its own")
        if self.embedding_model.startswith("embedded/") and not self.embedded_models:
            raise ValueError("embedded_models: required with an embedded/… embedding model")
        known = {f"MEMORY_BANKS_{name.upper()}" for name in Settings.model_fields}
        unknown = set(self.environment) - known
        if unknown:
            raise ValueError(f"environment: no such setting: {', '.join(sorted(unknown))}")
        return self

    @property
    def target(self) -> Target:
        """What the assets are built for."""
        return Target(self.runtime, self.architecture)

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Self:
        """From all context values of an application. Raises pydantic's ValidationError on an unknown name or a wrong value."""
        return cls.model_validate({name: value for name, value in context.items() if _OURS.fullmatch(name)})
