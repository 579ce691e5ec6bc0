"""What the routes answer, for the OpenAPI document alone: no route imports this, so a cold start does not pay for it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from memory_banks.capture.settings import CaptureSettings
from pydantic import BaseModel, Field, RootModel

BankType = Literal["conversation", "general"]
Mode = Literal["fast_and_cheap", "balanced", "slow_and_thorough", "custom"]


class MemoryBank(BaseModel):
    """A bank."""

    id: str
    name: str
    type: BankType
    mode: Mode
    created_at: datetime
    updated_at: datetime
    description: str | None
    compaction_prompt: str | None
    max_turns: int | None
    max_size_tokens: int | None
    max_age_days: int | None = Field(description="Retired: null from 2026-08-03 on")
    retention_days: int | None
    chunk_size: int | None = Field(description="Characters")
    chunk_overlap: int | None = Field(description="Characters")
    dimensions: int | None
    embedding_model: str | None
    source_connection_id: str | None
    strip_quoted_reply_chains: bool
    capture: CaptureSettings | None
    status: Literal["empty", "ready"]


class Pagination(BaseModel):
    """Where a page is among all."""

    page: int
    limit: int
    total: int
    pages: int
    has_next: bool
    has_prev: bool


class MemoryBankPage(BaseModel):
    """From 2026-07-27 on."""

    data: list[MemoryBank]
    pagination: Pagination


class LegacyMemoryBankPage(BaseModel):
    """Before 2026-07-27."""

    memory_banks: list[MemoryBank]
    page: int
    limit: int
    total: int


class Template(BaseModel):
    """Settings for a pattern."""

    id: str
    name: str
    description: str
    use_case: str
    defaults: dict[str, Any] = Field(description="A body to create a bank with")


class TemplatePage(BaseModel):
    """From 2026-07-27 on."""

    data: list[Template]
    pagination: Pagination


class LegacyTemplates(RootModel[list[Template]]):
    """Before 2026-07-27."""


class Agent(BaseModel):
    """An agent or a flow that uses a bank."""

    agent_id: str
    agent_name: str
    url: str | None


class AgentPage(BaseModel):
    """From 2026-07-27 on."""

    data: list[Agent]
    pagination: Pagination


class LegacyAgents(RootModel[list[Agent]]):
    """Before 2026-07-27."""


class FoundBank(BaseModel):
    """A bank found by its name."""

    id: str
    name: str
    entity_type: Literal["memory_bank"]
    description: str | None


class FoundByName(BaseModel):
    """Banks found by name."""

    results: list[FoundBank]


class Version(BaseModel):
    """API versions of the account and of this request."""

    pinned_version: str | None
    effective_version: str
    default_version: str
    latest_version: str
    known_versions: list[str]


class Replaces(BaseModel):
    """What a summary stands for."""

    entries: int
    from_id: str
    through_id: str
    from_at: datetime
    through_at: datetime
    sha256: str


class Entry(BaseModel):
    """One remembered text, or a summary of several."""

    id: str
    key: str
    kind: Literal["entry", "summary"]
    speaker: str | None
    content: str
    tags: list[str]
    metadata: dict[str, Any]
    occurred_at: datetime
    created_at: datetime
    tokens: int
    indexed: bool = Field(description="Whether search can find it")
    version: int = Field(description="Counts corrections, from 1")
    replaces: Replaces | None = Field(None, description="Of a summary")


class WrittenEntry(Entry):
    """An entry of a write."""

    existing: bool | None = Field(None, description="True when an entry with this id was there before")


class Written(BaseModel):
    """Entries in the order of the request."""

    entries: list[WrittenEntry]


class EntryPage(BaseModel):
    """A page of a Load."""

    entries: list[Entry]
    next_cursor: str | None


class ChatMessage(BaseModel):
    """An entry as chat models take it."""

    role: Literal["user", "assistant", "system"]
    content: str


class MessagePage(BaseModel):
    """A page of a Load with format=messages."""

    messages: list[ChatMessage]
    next_cursor: str | None


class LastCompaction(BaseModel):
    """How compaction goes."""

    last_at: datetime | None
    failures: int = Field(description="In a row; 0 after a success")
    retry_at: datetime | None
    error: str | None


class KeyCounts(BaseModel):
    """A key of a bank and what lives under it."""

    key: str
    entries: int
    chunks: int
    tokens: int
    first_at: datetime | None
    last_at: datetime | None
    compaction: LastCompaction
    pending_runs: int = Field(description="Captured runs that wait for their distillation")
    processed_messages: int = Field(description="Captured messages that were distilled")
    last_sync_at: datetime | None


class RenamedKey(BaseModel):
    """A key that was renamed."""

    key: str
    renamed_from: str


class KeyPage(BaseModel):
    """A page of keys."""

    keys: list[KeyCounts]
    next_cursor: str | None


class Progress(BaseModel):
    """How far a job is."""

    current: int
    total: int | None


class Mended(BaseModel):
    """What a rebuild found that differed, and mended."""

    indexed: int = Field(description="Entries indexed again")
    removed: int = Field(description="Documents removed that belonged to no living entry")


class SetAside(BaseModel):
    """A captured message that could not be distilled."""

    message_id: str
    reason: str


class Job(BaseModel):
    """A piece of asynchronous work."""

    id: str
    kind: Literal["ingestion", "distillation", "compaction", "export", "rebuild"]
    status: Literal["queued", "running", "completed", "failed", "cancelled"]
    progress: Progress
    error: str | None
    key: str | None
    mended: Mended | None = Field(description="Of a rebuild")
    note: str | None = Field(description="Of a distillation: what happened, as that a kill phrase skipped messages")
    set_aside: list[SetAside] = Field(description="Of a distillation: what went on without")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobPage(BaseModel):
    """A page of jobs."""

    jobs: list[Job]
    next_cursor: str | None


class CompactionScheduled(BaseModel):
    """A compaction that was asked for."""

    memory_bank_id: str
    status: Literal["queued", "running", "completed", "failed", "cancelled"]
    job: Job


class CapturedRun(BaseModel):
    """What became of a run."""

    run_id: str
    number: int = Field(description="Among all runs of the key, from 1")
    message_ids: list[str]
    counted: bool = Field(description="False while auto_capture is off: the run is stored only")
    existing: bool = Field(description="Captured before")
    pending_runs: int
    job_id: str | None = Field(description="The job that distils it")


class CapturedMessage(BaseModel):
    """A message of a run."""

    id: str
    sender: str
    name: str | None
    text: str
    error: bool
    occurred_at: datetime
    version: int
    state: Literal["pending", "stored", "processed", "set_aside"]
    reason: str | None = Field(description="Why it was set aside")


class Run(BaseModel):
    """A captured run."""

    run_id: str
    number: int
    user_id: str | None
    flow_id: str | None
    captured_at: datetime
    state: Literal["pending", "stored", "processed"]
    messages: list[CapturedMessage]


class RunPage(BaseModel):
    """A page of runs, and how far the key is distilled."""

    runs: list[Run]
    pending_runs: int
    processed_messages: int
    last_sync_at: datetime | None
    job_id: str | None = Field(description="The distillation that is at work or waits")
    error: str | None = Field(description="Why the last try made a pause")
    next_cursor: str | None


class EditedMessage(BaseModel):
    """A message as it is now."""

    id: str
    sender: str
    text: str
    version: int


class Mismatch(BaseModel):
    """What was made of a key's messages, and what of it is there."""

    key: str
    messages: int = Field(description="Messages that something was made of")
    entries: int = Field(description="Entries made of them that are there")
    missing: int = Field(description="Entries that are not there any more")
    unindexed: int = Field(description="Entries that can't be found yet")
    mismatch: bool
    pending_runs: int
    processed_messages: int
    last_sync_at: datetime | None


class SearchEntry(Entry):
    """An entry of a hit; a long content is cut."""

    truncated: bool = False


class Neighbor(BaseModel):
    """A turn around a hit."""

    id: str
    kind: Literal["entry", "summary"]
    speaker: str | None
    content: str
    truncated: bool
    occurred_at: datetime
    created_at: datetime
    version: int


class SearchHit(BaseModel):
    """One entry found."""

    entry: SearchEntry
    score: float = Field(ge=0, le=1)
    matched_text: str = Field(description="The chunk that matched best")
    neighbors: list[Neighbor] = Field(description="The turns around the hit, oldest first")
    debug: dict[str, Any] | None = Field(None, description="How the score came about, when asked for")


class SearchResults(BaseModel):
    """Entries found, best first."""

    results: list[SearchHit]


class ContextParts(BaseModel):
    """The entries of a context."""

    summary: Entry | None
    relevant: list[Entry] = Field(description="Found by the query, in the order they were written")
    recent: list[Entry] = Field(description="The newest turns, oldest first")


class Context(BaseModel):
    """What a prompt should know."""

    text: str
    messages: list[ChatMessage]
    parts: ContextParts
    tokens: int = Field(description="Of the text")


class Evaluation(BaseModel):
    """What a judge says of a summary."""

    verdict: Literal["pass", "fail"]
    score: int = Field(ge=1, le=5)
    reasoning: str


class CompactionTest(BaseModel):
    """What came of a trial."""

    original_entries: list[str]
    compaction_summary: str | None
    surviving_entries: list[str]
    generated: bool
    evaluation: Evaluation


class ExamplePrompt(BaseModel):
    """Something to ask the assistant."""

    text: str
    label: str


class Proposal(BaseModel):
    """What the assistant proposes; it applies nothing."""

    conversation_id: str
    note: str
    success: bool
    config: dict[str, Any] | None = Field(description="A body to create a bank with")
    example_prompts: list[ExamplePrompt]
    prompt_call_id: str


class AssistantTurn(BaseModel):
    """One turn with the assistant."""

    conversation_id: str
    user_input: str
    ai_note: str
    resulting_config: dict[str, Any] | None
    accepted: bool | None


class LastConversation(BaseModel):
    """Turns, oldest first; the last one's texts again beside them."""

    turns: list[AssistantTurn]
    total: int
    user_input: str | None
    ai_note: str | None
    accepted: bool | None


class Recorded(BaseModel):
    """It was noted."""

    ok: bool


class Export(BaseModel):
    """A bank's entries as a file."""

    id: str
    source_connection_id: str
    account_id: str
    format: Literal["jsonl", "csv", "parquet", "zip", "json"]
    destination: Literal["download"]
    status: Literal["queued", "running", "completed", "failed", "cancelled"]
    created_at: datetime
    updated_at: datetime
    progress_current: int | None = Field(description="Entries looked at")
    progress_total: int | None
    item_count: int | None = Field(description="Entries in the file")
    file_size_bytes: int | None
    estimated_size_bytes: int | None = Field(description="Of all entries, whatever the filters")
    error: str | None
    started_at: datetime | None
    completed_at: datetime | None
    expires_at: datetime | None
    storage_key: str | None = Field(description="In the bucket")
    requested_by_user_id: str | None = Field(description="Id of the API key")
    requested_by_user_name: str | None
    neutralise_formulas: bool
    date_from: datetime | None
    date_to: datetime | None
    query_filter: str | None
    metadata_filter: dict[str, Any] | None


class ExportPage(BaseModel):
    """A page of exports."""

    data: list[Export]
    pagination: Pagination


class ExportEstimate(BaseModel):
    """How large an export would be."""

    source_connection_id: str
    estimated_size_bytes: int


class ExportFile(BaseModel):
    """A file in JSON."""

    export_type: Literal["memory_bank"]
    software_version: str
    account_id: str
    exported_at: datetime
    memory_bank: dict[str, Any] = Field(description="Its `configuration`")
    entries: list[dict[str, Any]]


class Content(BaseModel):
    """An entry as a source's content."""

    content_version_id: str
    source_connection_content_version_id: str | None = Field(description="The same once it is searchable")
    content_status: Literal["indexing", "completed", "failed"]
    content_type: Literal["text"]
    content_url: str
    content_token_count: int
    content_word_count: int
    error: str | None = Field(description="Why it can't be indexed")
    indexed_at: datetime | None
    mime_type: Literal["text/plain"]
    published_at: datetime = Field(description="occurred_at")
    pulled_at: datetime = Field(description="created_at")
    title: str | None = Field(description="The first line")
    entry_id: str = Field(description="The entry's id in the bank")


class ContentPage(BaseModel):
    """A page of contents."""

    data: list[Content]
    pagination: Pagination


class ContentProperty(BaseModel):
    """Something known of a content."""

    name: str
    value: str


class ContentDetail(BaseModel):
    """A content with a part of its text."""

    id: str
    source_connection_content_version_id: str
    source_connection_id: str
    source_name: str = Field(description="The bank's name")
    source_type: Literal["memory_bank"]
    content_status: Literal["indexing", "completed", "failed"]
    content_type: Literal["text"]
    content_type_display: str
    content_url: str
    content_word_count: int
    content_duration: None
    content_duration_display: None
    description: None
    error: str | None
    metadata: list[ContentProperty] = Field(description="key, kind, speaker, tags, and metadata.… for each field of its metadata")
    published_at: datetime
    pulled_at: datetime
    title: str | None
    text_content: str
    text_content_start: int
    text_content_end: int
    text_content_total_length: int
    memory_bank_id: str
    entry_id: str


class ContentEmbedding(BaseModel):
    """A piece of a content with its vector."""

    id: str
    text: str
    text_start: int
    text_end: int
    vector: list[float]
    batch_size: int = Field(description="Pieces that were embedded together")
    batch_duration: float = Field(description="Seconds that took")


class ContentEmbeddings(BaseModel):
    """A page of embeddings."""

    data: list[ContentEmbedding]
    pagination: Pagination


class StoreItem(BaseModel):
    """A document of the store."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime = Field(description="Of the last write; reading changes nothing")
    version: str = Field(description="Of the last write, for If-Match")


class NoItem(RootModel[None]):
    """There is none."""


class ScoredItem(StoreItem):
    """An item that a search found."""

    score: float | None = Field(description="Cosine of its nearest text; null without a query, or without vectors")


class FoundItems(BaseModel):
    """A page of items."""

    items: list[ScoredItem]


class Namespaces(BaseModel):
    """A page of namespaces."""

    namespaces: list[list[str]]


class BatchResults(BaseModel):
    """A result for each operation, in order; null of a write and of an item that is not there."""

    results: list[StoreItem | FoundItems | Namespaces | None]


class StatsSpan(BaseModel):
    """The range that was asked for."""

    start_date: datetime
    end_date: datetime


class StatsSummary(BaseModel):
    """Counts."""

    entries: int
    keys: int = Field(description="Distinct; exact up to 10,000, within 1 % beyond")
    speakers: int | None = Field(description="Distinct; null of a general bank")
    first_entry_at: datetime | None
    last_entry_at: datetime | None
    compaction_summaries: int
    last_compacted_at: datetime | None = Field(description="Of the bank, in the range or not")


class Distribution(BaseModel):
    """How some numbers are spread; nulls without entries."""

    avg: float | None
    p95: float | None = Field(description="The smallest that at least 95 % do not exceed")
    min: float | None
    max: float | None


class Distributions(BaseModel):
    """Of the entries in the range."""

    tokens: Distribution
    age_days: Distribution
    entries_per_key: Distribution


class Top(BaseModel):
    """A frequent value."""

    value: str
    entries: int


class Stats(BaseModel):
    """Statistics of a bank."""

    range: StatsSpan
    summary: StatsSummary
    distributions: Distributions
    top_keys: list[Top] = Field(max_length=20)
    top_speakers: list[Top] = Field(max_length=20)
    top_tags: list[Top] = Field(max_length=20)
    as_of: datetime


class Error(BaseModel):
    """What went wrong."""

    code: str = Field(description="Stable, in snake_case")
    message: str = Field(description="For people")


class ErrorAnswer(BaseModel):
    """Every error but a wrong field."""

    error: Error


SHAPES: tuple[type[BaseModel], ...] = (
    MemoryBank,
    MemoryBankPage,
    LegacyMemoryBankPage,
    TemplatePage,
    LegacyTemplates,
    Agent,
    AgentPage,
    LegacyAgents,
    FoundByName,
    Version,
    Entry,
    Written,
    EntryPage,
    MessagePage,
    KeyPage,
    RenamedKey,
    SearchResults,
    JobPage,
    CapturedRun,
    RunPage,
    EditedMessage,
    Mismatch,
    CompactionScheduled,
    Context,
    CompactionTest,
    Proposal,
    LastConversation,
    Recorded,
    Stats,
    ExportPage,
    Content,
    ContentPage,
    ContentDetail,
    ContentEmbeddings,
    ExportEstimate,
    ExportFile,
    StoreItem,
    NoItem,
    FoundItems,
    Namespaces,
    BatchResults,
    ErrorAnswer,
)
UNIONS: dict[str, tuple[str, ...]] = {
    "MemoryBankList": ("MemoryBankPage", "LegacyMemoryBankPage"),
    "TemplateList": ("TemplatePage", "LegacyTemplates"),
    "AgentList": ("AgentPage", "LegacyAgents"),
    "FoundItem": ("StoreItem", "NoItem"),
    "Loaded": ("EntryPage", "MessagePage"),
}
"""Answers of more than one shape."""
