"""A bank's capture settings: what is done with the runs of its flow, and when."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..limits import CLEAN, COUNT, PROMPT_LENGTH

Distillation = Literal["none", "prompt", "schemas"]
KillMatch = Literal["contains", "whole"]
UpdateMode = Literal["patch", "insert"]

Prompt = Annotated[str, Field(max_length=PROMPT_LENGTH), CLEAN]
Label = Annotated[str, Field(min_length=1, max_length=128), CLEAN]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MemoryType(_Settings):
    """A kind of document that schemas distil: its JSON Schema, and whether one is kept up to date or many are added."""

    name: Label
    description: Annotated[str, Field(max_length=4_000), CLEAN] = ""
    parameters: dict[str, Any] = Field(description="JSON Schema of the document")
    system_prompt: Prompt = ""
    update_mode: UpdateMode = "patch"


class CaptureSettings(_Settings):
    """What is done with captured runs. Frozen; a change makes another."""

    auto_capture: bool = Field(True, description="Off: runs are stored, not counted, and nothing is distilled by itself")
    threshold: Annotated[int, Field(ge=1, le=COUNT)] = Field(50, description="Waiting runs of a key that are distilled at once")
    idle_seconds: Annotated[int, Field(ge=0, le=86_400)] = Field(15, description="Distilled when a key was quiet for so long")
    max_wait_seconds: Annotated[int, Field(ge=1, le=COUNT)] = Field(3_600, description="The longest that a run waits")
    distillation: Distillation = Field(
        "none", description="Messages as they are, what a prompt makes of them, or documents by schemas"
    )
    instructions: Prompt | None = Field(None, description="For prompt and schemas: what to remember")
    kill_phrase: Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S"), CLEAN] = Field(
        "NO_INGEST", description="An answer that skips the batch"
    )
    kill_match: KillMatch = Field("contains", description="The answer contains the phrase, or is nothing else")
    memory_types: tuple[MemoryType, ...] = Field(
        (), max_length=20, description="For schemas; the default User and Note if left out"
    )
    namespace: tuple[Label, ...] = Field(
        ("{user_id}", "{schema}"), max_length=10, description="Where documents are kept in the store"
    )
    model: Label | None = Field(None, description="provider/model-name that distils; the service's chat model if left out")
    flow_id: Annotated[str, Field(min_length=1, max_length=512), CLEAN] | None = Field(
        None, description="The flow or agent whose runs it takes; a run of another is a 409"
    )
