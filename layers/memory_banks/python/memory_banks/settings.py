"""Every setting, typed, from environment variables named `MEMORY_BANKS_…` (`.env.example` lists them all)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

PREFIX = "MEMORY_BANKS_"


class Settings(BaseModel):
    """What an operator may choose. Field `x` is read from `MEMORY_BANKS_X`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str = Field("memory-banks", description="DynamoDB table")
    bucket: str = Field("memory-banks", description="S3 bucket")
    ingestion_queue_url: str = Field("", description="SQS queue that `ingest` reads")
    compaction_queue_url: str = Field("", description="SQS queue that `compact` reads")
    export_queue_url: str = Field("", description="SQS queue that `export` reads")
    distillation_queue_url: str = Field("", description="SQS queue that `distill` reads")
    aws_endpoint_url: str | None = Field(None, description="An AWS emulator instead of AWS")

    index: Literal["opensearch", "embedded"] = Field("opensearch", description="Where vectors live")
    opensearch_url: str | None = Field(None, description="Endpoint of the search domain")
    opensearch_auth: Literal["sigv4", "basic", "none"] = Field("sigv4", description="How to sign in there")
    opensearch_user: str | None = None
    opensearch_password: str | None = None
    opensearch_engine: Literal["lucene", "faiss"] = Field("lucene", description="k-NN engine")
    opensearch_shards: int = Field(1, ge=1, description="Primary shards of an index")
    opensearch_replicas: int = Field(1, ge=0, description="Replicas of an index")
    opensearch_ef_construction: int = Field(128, ge=2, description="HNSW build breadth")
    opensearch_ef_search: int = Field(256, ge=1, description="HNSW search breadth")
    opensearch_m: int = Field(16, ge=2, description="HNSW links a node")
    opensearch_refresh_seconds: float = Field(1.0, description="Refresh interval; -1 disables")
    embedded_index_path: str | None = Field(None, description="SQLite file of the embedded index")

    embedding_model: str = Field("bedrock/amazon.titan-embed-text-v2:0", description="provider/model of new banks")
    embedding_dimensions: int | None = Field(None, ge=1, description="Its size, where the provider does not tell (openai/…)")
    chat_model: str = Field("bedrock/amazon.nova-lite-v1:0", description="provider/model; `embedded/extractive` needs no account")
    chat_window: int = Field(100_000, ge=1_000, description="Input tokens the chat model takes")
    rerank_model: str | None = Field(None, description="provider/model that reranks what a search found; none: no reranking")
    rerank_base_url: str | None = Field(None, description="Endpoint with /rerank for an openai/… rerank_model")
    rerank_api_key: str | None = None
    openai_base_url: str | None = Field(None, description="OpenAI-compatible endpoint for openai/… models")
    openai_api_key: str | None = None

    sweep_compaction: bool = Field(True, description="Whether the compaction schedule runs")
    sweep_retention: bool = Field(True, description="Whether the retention schedule runs")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Settings from the variables; empty ones count as unset. Raises pydantic's ValidationError on a wrong value."""
        environment = os.environ if environment is None else environment
        values = {name: environment.get(PREFIX + name.upper()) or None for name in cls.model_fields}
        return cls.model_validate({name: value for name, value in values.items() if value is not None})
