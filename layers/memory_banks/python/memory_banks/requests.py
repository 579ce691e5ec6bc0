"""What the routes take: one pydantic model a body or query, with the limits of `limits`.

Bodies of the compatible routes ignore fields they do not know, as the published API does; our own refuse them, so a typing
error is not silently lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from . import limits
from .bank import DAY, BankType, Mode
from .capture.settings import CaptureSettings
from .entries import NewEntry
from .errors import Invalid, TooLarge
from .limits import CLEAN, Content, EntryId, EntryKey, FilterTags, Metadata, QueryText, Speaker, Tags, Text, Time
from .ports import MetadataTest

if TYPE_CHECKING:
    from .capture.runs import NewRun
    from .exports import Format, Wanted


class Compatible(BaseModel):
    """A body of the published API."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Own(BaseModel):
    """A body or query of ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# --------------------------------------------------------------------------------------------------------------------
# Banks

Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_LENGTH), CLEAN]
Description = Annotated[str, Field(max_length=limits.DESCRIPTION_LENGTH), CLEAN]
Prompt = Annotated[str, Field(max_length=limits.PROMPT_LENGTH), CLEAN]
Count = Annotated[int, Field(ge=0, le=limits.COUNT)]
"""A threshold or a number of days; 0 means none."""


def _wrong(kind: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(kind, message)


def _not_blank(name: str) -> str:
    if not name.strip():
        raise PydanticCustomError("blank", "must not be empty or blank")
    return name


class CreateBank(Compatible):
    """A new bank."""

    name: Name
    type: BankType = "conversation"
    mode: Mode = "fast_and_cheap"
    description: Description | None = None
    compaction_prompt: Prompt | None = None
    max_turns: Count | None = None
    max_size_tokens: Count | None = None
    max_age_days: Count | None = Field(None, description="Retired; refused from 2026-08-03 on, except 0")
    retention_days: Count | None = Field(None, description="Null keeps entries for good; omitted, the version's default applies")
    embedding_model: Name | None = Field(None, description="Mode custom only: provider/model-name")
    dimensions: Annotated[int, Field(gt=0)] | None = Field(None, description="Mode custom only")
    chunk_size: Annotated[int, Field(gt=0)] | None = Field(None, description="Mode custom only: characters")
    chunk_overlap: Annotated[int, Field(ge=0)] | None = Field(None, description="Mode custom only: characters")
    strip_quoted_reply_chains: bool = Field(False, description="Conversation banks only")
    capture: CaptureSettings | None = Field(None, description="What is done with captured runs; null or left out captures none")
    brought_in: bool = Field(
        False, description="The configuration was exported elsewhere: its `max_age_days` becomes a retention, once, in any version"
    )

    check_name = field_validator("name")(_not_blank)


class UpdateBank(Compatible):
    """Changes to a bank. What is left out stays; 0 or null clears a number, an empty text or null a text."""

    name: Name | None = None
    description: Description | None = None
    compaction_prompt: Prompt | None = None
    max_turns: Count | None = None
    max_size_tokens: Count | None = None
    max_age_days: Count | None = Field(None, description="Retired; refused from 2026-08-03 on, except 0")
    retention_days: Count | None = None
    strip_quoted_reply_chains: bool | None = None
    capture: dict[str, Any] | None = Field(
        None,
        description="Capture settings to change; those left out stay. Null ends the capture of runs",
        json_schema_extra={"$comment": "see CaptureSettings"},
    )

    @model_validator(mode="before")
    @classmethod
    def fixed_at_creation(cls, body: Any) -> Any:
        """Refuse what can't be changed, by name."""
        if isinstance(body, Mapping):
            for field in ("type", "mode", "embedding_model", "dimensions", "chunk_size", "chunk_overlap"):
                if field in body:
                    raise Invalid(("body", field), f"{field} is fixed when a bank is created and can't be changed", "fixed")
            for field in ("name", "strip_quoted_reply_chains"):
                if field in body and body[field] is None:
                    raise Invalid(("body", field), f"{field} can't be null; leave it out to keep it")
        return body

    @field_validator("name")
    @classmethod
    def check_name(cls, name: str | None) -> str | None:
        """A name shows something."""
        return name if name is None else _not_blank(name)


class ListBanks(BaseModel):
    """Which banks, in which order."""

    page: Annotated[int, Field(ge=1, le=limits.COUNT)] = 1
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    sort: Literal["created_at", "updated_at", "name"] = "created_at"
    order: Literal["asc", "desc"] = "desc"
    type: BankType | None = None


def _moment(value: Any, *, end: bool) -> int:
    """A day (UTC), or a time: its first moment, or as an end the first one after it."""
    if isinstance(value, str) and len(value) == 10:
        at = limits.milliseconds(value + "T00:00:00Z")
        return min(at + DAY, limits.LATEST) if end else at
    return limits.milliseconds(value)


_DAY_SCHEMA = WithJsonSchema({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]})


class StatsRange(BaseModel):
    """Of which time; by `created_at`."""

    days: Annotated[int, Field(ge=1, le=730)] = Field(30, description="So many days up to the end, where no start is given")
    start_date: Annotated[int, BeforeValidator(lambda value: _moment(value, end=False)), _DAY_SCHEMA] | None = Field(
        None, description="A day (UTC) or a time"
    )
    end_date: Annotated[int, BeforeValidator(lambda value: _moment(value, end=True)), _DAY_SCHEMA] | None = Field(
        None, description="A day (UTC), which counts to its end, or a time, which does not count any more; now if left out"
    )

    @model_validator(mode="after")
    def in_order(self) -> Self:
        """A range starts before it ends."""
        if self.start_date is not None and self.end_date is not None and self.start_date >= self.end_date:
            raise Invalid(("query", "start_date"), "must be before end_date")
        return self


# --------------------------------------------------------------------------------------------------------------------
# Exports

ExportStart = Annotated[int, BeforeValidator(lambda value: _moment(value, end=False)), _DAY_SCHEMA]
ExportEnd = Annotated[int, BeforeValidator(lambda value: _moment(value, end=True) - (len(str(value)) == 10)), _DAY_SCHEMA]
"""Of a day its last millisecond: both ends count."""


class _ExportFilters(Compatible):
    """Which entries to export."""

    date_from: ExportStart | None = Field(None, description="occurred_at at or after: a day (UTC) or a time")
    date_to: ExportEnd | None = Field(None, description="occurred_at at or before: a day (UTC), or a time")
    query_filter: Annotated[str, Field(max_length=1_000), CLEAN] | None = Field(
        None, description="Entries whose content has this text, whatever the case"
    )
    metadata_filter: Metadata | None = Field(None, description="Entries whose metadata contains this")
    neutralise_formulas: bool = Field(False, description="csv: an apostrophe before what a spreadsheet would calculate")

    def wanted(self, format: Format) -> Wanted:
        """As the domain takes it."""
        from .exports import Wanted

        return Wanted(
            format,
            since=self.date_from,
            until=None if self.date_to is None else self.date_to + 1,
            text=self.query_filter or None,
            metadata=self.metadata_filter,
            neutralise_formulas=self.neutralise_formulas,
        )

    @model_validator(mode="after")
    def in_order(self) -> Self:
        """It starts before it ends."""
        if self.date_from is not None and self.date_to is not None and self.date_from > self.date_to:
            raise Invalid(("body", "date_from"), "must not be after date_to")
        return self


class CreateExport(_ExportFilters):
    """An export to make."""

    format: Literal["jsonl", "csv", "parquet", "zip", "json"]


class ExportResource(_ExportFilters):
    """An export to make of a resource."""

    resource_type: Literal["memory_bank"]
    resource_id: Annotated[str, Field(min_length=1, max_length=64), CLEAN] = Field(description="A bank's id")
    format: Literal["jsonl", "csv", "parquet", "zip", "json"] = "json"


ContentStatus = Literal["pending", "fetching", "transcribing", "scanning", "indexing", "completed", "failed"]


class ListExports(BaseModel):
    """A page of exports."""

    page: Annotated[int, Field(ge=1, le=limits.COUNT)] = 1
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class ListContents(BaseModel):
    """A page of a source's contents."""

    page: Annotated[int, Field(ge=1, le=limits.COUNT)] = 1
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    sort: Literal["created_at", "title", "status"] = "created_at"
    order: Literal["asc", "desc"] = "desc"
    status: ContentStatus | None = Field(None, description="Only those; of entries the last three of these occur")
    content_version_id: list[Annotated[str, Field(max_length=128), CLEAN]] | None = Field(
        None, description="Only those; may be repeated", max_length=200
    )


class ContentRange(BaseModel):
    """Which part of a content's text, in characters."""

    start: Annotated[int, Field(ge=0, le=limits.COUNT)] = Field(0, description="The first of them")
    end: Annotated[int, Field(ge=0, le=limits.COUNT)] = Field(5_000, description="The first after them")

    @model_validator(mode="after")
    def in_order(self) -> Self:
        """A range starts before it ends."""
        if self.start > self.end:
            raise Invalid(("query", "start"), "must not be after end")
        return self


class ListEmbeddings(BaseModel):
    """A page of a content's embeddings."""

    page: Annotated[int, Field(ge=1, le=limits.COUNT)] = 1
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class FindByName(BaseModel):
    """Search of banks by name."""

    q: Annotated[str, Field(min_length=1, max_length=200), CLEAN]
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    entity_type: Text | None = Field(None, description="memory_bank; of other kinds there is nothing to find")


class PinVersion(Compatible):
    """The version to pin the account to; null for none."""

    version: Text | None


# --------------------------------------------------------------------------------------------------------------------
# Agents

AgentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$", description="Who asks; noted as an agent of the bank"), CLEAN]


class RegisterAgent(Own):
    """An agent or a flow that uses a bank."""

    agent_name: Name | None = Field(None, description="Its id if left out")
    url: Annotated[str, Field(max_length=2_000, pattern=r"^https?://\S+$"), CLEAN] | None = Field(
        None, description="Where it is found"
    )


# --------------------------------------------------------------------------------------------------------------------
# Entries


class WriteEntry(Own):
    """One text to remember."""

    content: Content
    key: EntryKey | None = Field(None, description="The conversation, user or project; required in a conversation bank")
    speaker: Speaker | None = Field(None, description="Required in a conversation bank, refused in a general one")
    tags: Tags = []
    metadata: Metadata = {}
    occurred_at: Time | None = Field(None, description="ISO 8601 with an offset; when it is written if left out")
    id: EntryId | None = Field(None, description="An id of your own, unique in the bank")

    def entry(self) -> NewEntry:
        """As the domain takes it; what depends on the bank's type is checked by the write."""
        return NewEntry(
            content=self.content,
            key=self.key or "",
            speaker=self.speaker,
            tags=tuple(self.tags),
            metadata=self.metadata,
            occurred_at=self.occurred_at,
            id=self.id,
        )


class WriteOne(WriteEntry):
    """One text to remember, and who writes it."""

    agent_id: AgentId | None = None


def _few(entries: Any) -> Any:
    if isinstance(entries, list) and len(entries) > limits.ENTRIES:
        raise TooLarge(
            f"entries: at most {limits.ENTRIES} are taken in a request, these are {len(entries)}.", code="too_many_entries"
        )
    return entries


class WriteBatch(Own):
    """Up to 100 texts to remember, in their order."""

    entries: Annotated[list[WriteEntry], BeforeValidator(_few), Field(min_length=1, max_length=limits.ENTRIES)]
    agent_id: AgentId | None = None


ONE, MANY = "(one)", "(many)"
"""Marks of the two forms of a write; left out of the `loc` of an error."""


def _form(body: Any) -> str:
    return MANY if isinstance(body, WriteBatch) or (isinstance(body, Mapping) and "entries" in body) else ONE


Write = Annotated[Annotated[WriteOne, Tag(ONE)] | Annotated[WriteBatch, Tag(MANY)], Discriminator(_form)]


def entries_of(body: WriteOne | WriteBatch) -> list[NewEntry]:
    """What to write, in order."""
    return [body.entry()] if isinstance(body, WriteOne) else [entry.entry() for entry in body.entries]


class WriteOptions(BaseModel):
    """How to write."""

    wait: bool = Field(False, description="Answer when the entries are searchable, at most 20 seconds later")


class CorrectEntry(Own):
    """A correction: what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    content: Content | None = None
    tags: Tags | None = None
    metadata: Metadata | None = None

    @model_validator(mode="before")
    @classmethod
    def something(cls, body: Any) -> Any:
        """A correction says what is new."""
        if isinstance(body, Mapping):
            if not body:
                raise PydanticCustomError("missing", "give at least one of content, tags and metadata")
            for field in ("content", "tags", "metadata"):
                if field in body and body[field] is None:
                    raise Invalid(("body", field), f"{field} can't be null; leave it out to keep it")
        return body


class LoadEntries(BaseModel):
    """Which entries of a key, in which order."""

    key: EntryKey | None = Field(None, description="Required in a conversation bank")
    order: Literal["asc", "desc"] = Field("asc", description="asc: oldest first; desc: newest first")
    limit: Annotated[int, Field(ge=1, le=limits.LOAD_LIMIT)] = 100
    cursor: Annotated[str, Field(min_length=1, max_length=4_096), CLEAN] | None = Field(
        None, description="`next_cursor` of the page before"
    )
    max_tokens: Annotated[int, Field(ge=1, le=limits.COUNT)] | None = Field(None, description="At most so many tokens in total")
    speaker: list[Speaker] = Field([], description="One or several", max_length=100)
    tags: FilterTags = Field([], description="Entries with all of these; commas separate")
    since: Time | None = Field(None, description="occurred_at at or after")
    until: Time | None = Field(None, description="occurred_at before")
    format: Literal["entries", "messages"] = "entries"
    agent_id: AgentId | None = None

    @field_validator("tags", mode="before")
    @classmethod
    def commas(cls, given: Any) -> Any:
        """A tag has no comma, so `tags=a,b` is two."""
        return [tag for one in given for tag in one.split(",")] if isinstance(given, list) else given


class ForgetKey(BaseModel):
    """Which key to forget."""

    key: EntryKey = Field(description="The key; empty for the nameless partition of a general bank")


class RenameKey(Own):
    """A key and its new name."""

    key: Annotated[EntryKey, Field(min_length=1)]
    to: Annotated[EntryKey, Field(min_length=1)] = Field(description="A key that has neither entries nor runs")


class ListKeys(BaseModel):
    """A page of keys."""

    limit: Annotated[int, Field(ge=1, le=limits.LOAD_LIMIT)] = 100
    cursor: Annotated[str, Field(min_length=1, max_length=4_096), CLEAN] | None = None


class ListJobs(BaseModel):
    """A page of jobs."""

    limit: Annotated[int, Field(ge=1, le=limits.LOAD_LIMIT)] = 100
    cursor: Annotated[str, Field(min_length=1, max_length=4_096), CLEAN] | None = None


# --------------------------------------------------------------------------------------------------------------------
# Captured runs

SENDERS = {"human": "user", "ai": "assistant", "machine": "assistant", "bot": "assistant", "model": "assistant"}
"""What other systems call the two sides of a conversation."""

RunId = Annotated[str, Field(min_length=1, max_length=256), CLEAN]
RunText = Annotated[
    Text,
    limits.at_most_bytes(limits.CONTENT_BYTES),
    WithJsonSchema({"type": "string", "maxLength": limits.CONTENT_BYTES, "description": "At most 262,144 bytes of UTF-8"}),
]


def _sender(value: Any) -> Any:
    """The sender as a speaker: `User` and `human` are `user`."""
    if not isinstance(value, str):
        return value
    known = value.lower()
    return SENDERS.get(known, known if known in {"user", "assistant", "system"} else value)


class RunMessage(Own):
    """A message of a run. `role` and `content` are understood for `sender` and `text`."""

    sender: Annotated[Speaker, BeforeValidator(_sender)] = Field(
        validation_alias=AliasChoices("sender", "role"), description="user, assistant, system, or a name"
    )
    text: RunText = Field(validation_alias=AliasChoices("text", "content"), description="Blank ones are kept, and never distilled")
    id: EntryId | None = Field(None, description="Unique in the bank; a message that is known is not captured again")
    name: Annotated[str, Field(max_length=limits.SPEAKER_LENGTH), CLEAN] | None = Field(None, description="The sender's name")
    occurred_at: Time | None = Field(None, description="When it was said; now if left out")
    error: bool = Field(False, description="An error message: kept, never distilled")


class CaptureRun(Own):
    """A finished run of a flow or agent."""

    key: Annotated[EntryKey, Field(min_length=1)] = Field(description="The conversation or session")
    messages: list[RunMessage] = Field(min_length=1, max_length=limits.RUN_MESSAGES)
    run_id: RunId | None = Field(None, description="A run is counted once by its id; without one it counts each time")
    user_id: Annotated[str, Field(min_length=1, max_length=256), CLEAN] | None = Field(
        None, description="Whose memory it becomes, with schemas; the key if left out"
    )
    flow_id: RunId | None = Field(None, description="The flow it is a run of; another than the bank's is refused")
    agent_id: AgentId | None = None

    def run(self) -> NewRun:
        """As the domain takes it."""
        from .capture.runs import NewMessage, NewRun

        messages = tuple(
            NewMessage(one.sender, one.text, one.id, one.name or None, one.occurred_at, one.error) for one in self.messages
        )
        return NewRun(self.key, messages, self.run_id, self.user_id, self.flow_id)

    @model_validator(mode="after")
    def distinct(self) -> Self:
        """An id stands for one message."""
        named = [one.id for one in self.messages if one.id is not None]
        if len(set(named)) < len(named):
            raise Invalid(("body", "messages"), "two messages of the run have the same id", "duplicate_id")
        return self


class ListRuns(BaseModel):
    """A page of the captured runs of a key."""

    key: Annotated[EntryKey, Field(min_length=1)]
    limit: Annotated[int, Field(ge=1, le=limits.LOAD_LIMIT)] = 100
    cursor: Annotated[str, Field(min_length=1, max_length=4_096), CLEAN] | None = None


class EditMessage(Own):
    """Another text for a captured message."""

    text: RunText


class RunsOfKey(Own):
    """The key whose runs are meant."""

    key: Annotated[EntryKey, Field(min_length=1)]


class AskMismatch(BaseModel):
    """The key to compare."""

    key: Annotated[EntryKey, Field(min_length=1)]


class Compact(Own):
    """What to compact."""

    key: EntryKey | None = Field(None, description="One key; the whole bank if left out")


# --------------------------------------------------------------------------------------------------------------------
# Search and context

Operator = Literal["eq", "in", "gt", "gte", "lt", "lte", "exists"]
OPERATORS: tuple[Operator, ...] = ("eq", "in", "gt", "gte", "lt", "lte", "exists")


def _metadata_tests(given: Any) -> Any:
    """Conditions as a caller writes them, `{"a.b": 1, "n": {"gte": 2}, "x": ["p", "q"]}`, checked and made explicit."""
    if not isinstance(given, Mapping):
        raise _wrong("object_type", "must be an object of dotted paths and conditions")
    if len(given) > limits.METADATA_TESTS:
        raise _wrong("too_many", f"at most {limits.METADATA_TESTS} conditions are allowed")
    tests: list[MetadataTest] = []
    for path, condition in given.items():
        if not path or limits.flaw(path):
            raise _wrong("path", "a path must be valid Unicode and not empty")
        operators = condition if isinstance(condition, Mapping) else {"in" if isinstance(condition, list) else "eq": condition}
        if not operators:
            raise _wrong("operator", f"{path} needs a value or one of {', '.join(OPERATORS)}")
        tests += [MetadataTest(path, _operator(path, name), _operand(path, name, value)) for name, value in operators.items()]
    return tests


def _operator(path: str, name: str) -> Operator:
    for operator in OPERATORS:
        if operator == name:
            return operator
    raise _wrong("operator", f"{path} has an unknown operator; known are {', '.join(OPERATORS)}")


def _operand(path: str, operator: str, value: Any) -> Any:
    if operator == "in":
        if not isinstance(value, list) or not 1 <= len(value) <= 100:
            raise _wrong("operand", f"{path}: in takes a list of 1 to 100 values")
        return [_operand(path, "eq", one) for one in value]
    if operator == "exists":
        if not isinstance(value, bool):
            raise _wrong("operand", f"{path}: exists takes true or false")
        return value
    ordered = operator in {"gt", "gte", "lt", "lte"}
    if not isinstance(value, str | int | float) or (ordered and isinstance(value, bool)):
        raise _wrong(
            "operand", f"{path}: {operator} takes {'a number or a text' if ordered else 'a text, a number, true or false'}"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong("operand", f"{path}: {operator} takes a finite number")
    if isinstance(value, str) and (found := limits.flaw(value)):
        raise _wrong("operand", f"{path}: {found}")
    return value


def _several(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


MetadataTests = Annotated[
    list[MetadataTest],
    BeforeValidator(_metadata_tests),
    WithJsonSchema(
        {
            "type": "object",
            "description": "By dotted path: a value, a list of values, or operators (eq, in, gt, gte, lt, lte, exists)",
            "additionalProperties": True,
        }
    ),
]
ONE_OR_SEVERAL = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Keys = Annotated[
    list[EntryKey], BeforeValidator(_several), Field(min_length=1, max_length=limits.KEYS), WithJsonSchema(ONE_OR_SEVERAL)
]
Speakers = Annotated[list[Speaker], BeforeValidator(_several), Field(max_length=100), WithJsonSchema(ONE_OR_SEVERAL)]


class SearchEntries(Own):
    """What to look for."""

    query: QueryText
    key: Keys | None = Field(None, description="One key or up to 100; every key of the bank if left out")
    top_k: Annotated[int, Field(ge=1, le=limits.TOP_K)] = 10
    mode: Literal["hybrid", "semantic", "keyword"] = "hybrid"
    speaker: Speakers = Field([], description="One or several")
    tags: FilterTags = Field([], description="Entries with all of these")
    tags_any: FilterTags = Field([], description="Entries with any of these")
    metadata: MetadataTests = Field(default_factory=list)
    since: Time | None = Field(None, description="occurred_at at or after")
    until: Time | None = Field(None, description="occurred_at before")
    kind: Literal["entry", "summary"] | None = None
    min_score: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Least similarity of the best chunk, (1 + cosine) / 2; not in keyword mode"
    )
    neighbors: Annotated[int, Field(ge=0, le=limits.NEIGHBORS)] = Field(0, description="Turns before and after each hit")
    debug: bool = Field(False, description="Tell how each score came about")
    agent_id: AgentId | None = None


# --------------------------------------------------------------------------------------------------------------------
# Upkeep


class Rebuild(Own):
    """What the index of a bank is made again for. Nothing given: the mode and model it has."""

    mode: Mode | None = Field(None, description="Another mode; custom when a model or a size is given")
    embedding_model: Name | None = Field(None, description="Another model, provider/model-name; mode custom")
    dimensions: Annotated[int, Field(gt=0)] | None = Field(None, description="Another size; mode custom")
    reconcile: bool = Field(False, description="Only compare the index with the table and mend what differs")


class AskContext(Own):
    """What a prompt is to know about a key."""

    key: EntryKey | None = Field(None, description="Required in a conversation bank")
    query: QueryText | None = Field(None, description="What the prompt is about; without it nothing is searched")
    max_tokens: Annotated[int, Field(ge=1, le=limits.CONTEXT_TOKENS)] = 2_000
    agent_id: AgentId | None = None


# --------------------------------------------------------------------------------------------------------------------
# Trials of a compaction prompt


class SpokenSample(Compatible):
    """A sample with its role."""

    content: Annotated[str, Field(min_length=1, max_length=limits.SAMPLE_LENGTH), CLEAN]
    speaker: Literal["system", "user", "assistant"] = "user"


SampleText = Annotated[str, Field(min_length=1, max_length=limits.SAMPLE_LENGTH), CLEAN]


class TestCompaction(Compatible):
    """Which entries to try a compaction prompt on: pasted or generated ones, or else the bank's own."""

    compaction_prompt: Prompt | None = Field(None, description="The bank's own if left out")
    sample_entries: Annotated[list[SampleText | SpokenSample], Field(min_length=1, max_length=20)] | None = None
    generate_direction: Annotated[str, Field(min_length=1, max_length=2_000), CLEAN] | None = Field(
        None, description="What made-up entries are about"
    )
    entry_count: Annotated[int, Field(ge=2, le=20)] = Field(5, description="Of generated or existing entries")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.sample_entries is not None and self.generate_direction is not None:
            raise _wrong("one_source", "give sample_entries or generate_direction, not both")
        return self


class TestCompactionAlone(TestCompaction):
    """The same without a bank."""

    compaction_prompt: Annotated[str, Field(min_length=1, max_length=limits.PROMPT_LENGTH), CLEAN] = Field()
    bank_type: BankType = "conversation"

    @model_validator(mode="after")
    def _some_source(self) -> Self:
        if self.sample_entries is None and self.generate_direction is None:
            raise _wrong("one_source", "give sample_entries or generate_direction")
        return self


# --------------------------------------------------------------------------------------------------------------------
# The assistant


class AskAssistant(Compatible):
    """A description of the memory that is wanted."""

    user_input: Annotated[str, Field(min_length=1, max_length=limits.PROMPT_LENGTH), CLEAN]
    current_config: dict[str, Any] | None = Field(None, description="The configuration so far")
    history_since: Time | None = Field(None, description="Leave older turns of the conversation out")
    conversation_id: Annotated[str, Field(min_length=1, max_length=128), CLEAN] | None = None


class AssistantHistory(BaseModel):
    """A page of what the assistant proposed."""

    limit: Annotated[int, Field(ge=1, le=50)] = 5
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class AcceptProposal(Compatible):
    """Whether the last proposal was taken; recorded only."""

    accepted: bool
