"""The protocols between the domain and the outside world.

The domain knows these and nothing behind them; an adapter implements one of them; `bootstrap` chooses. Each port has one
contract suite in `tests/contract/` that every adapter passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

# --------------------------------------------------------------------------------------------------------------------
# Time and chance


class Clock(Protocol):
    """Where time comes from. Tests inject one that they move by hand."""

    def now(self) -> int:
        """Milliseconds since the Unix epoch, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; a test clock only moves."""
        ...


class Chance(Protocol):
    """Where randomness comes from (`random.Random` and `random.SystemRandom` fit)."""

    def random(self) -> float: ...
    def randrange(self, stop: int, /) -> int: ...
    def getrandbits(self, bits: int, /) -> int: ...


# --------------------------------------------------------------------------------------------------------------------
# The table: DynamoDB's model, without its wire format

Item = dict[str, Any]
"""Attributes of an item: str, int, bool, None, bytes, float, list, dict and set[str]. Always has `pk` and `sk` (both str)."""


class Key(NamedTuple):
    """The primary key of an item."""

    pk: str
    sk: str


Operator = Literal["=", "<>", "<", "<=", ">", ">=", "exists", "missing"]


@dataclass(frozen=True, slots=True)
class Is:
    """One test of an attribute: `Is("watermark", "=", "01J…")`, `Is("pk", "missing")`.

    A comparison with an absent attribute is false; combine with `missing` in an `Either` to allow absence.
    """

    attribute: str
    operator: Operator
    value: Any = None


@dataclass(frozen=True, slots=True)
class Either:
    """True when at least one of its tests is."""

    tests: tuple[Is, ...]


Condition = tuple[Is | Either, ...]
"""All must hold. Empty: no condition."""


@dataclass(frozen=True, slots=True)
class Put:
    """Write a whole item, replacing any that is there."""

    item: Item
    when: Condition = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Change some attributes of an item, creating it when it is absent (unless `when` forbids).

    `add` adds to numbers (an absent one counts as 0); `set` replaces; `remove` drops.
    """

    key: Key
    set: Mapping[str, Any] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    when: Condition = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an item; removing an absent one is no error."""

    key: Key
    when: Condition = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Only a condition, inside a transaction."""

    key: Key
    when: Condition


Action = Put | Update | Delete | Check

DUE_PARTITIONS = 16
"""How many partitions the `due` index has."""


class Page(NamedTuple):
    """Some items of a query and, when there may be more, the sort key after which to go on."""

    items: list[Item]
    after: str | None


class Due(NamedTuple):
    """An entry of the `due` index: the item's key and when it is due (ms)."""

    key: Key
    at: int


class Aged(NamedTuple):
    """An entry of the `age` index: the item's key and its sort value (a ULID)."""

    key: Key
    age: str


class ConditionFailed(Exception):
    """A condition did not hold; nothing was written. `failed` are the positions of the actions whose condition failed."""

    def __init__(self, failed: tuple[int, ...] = (0,)) -> None:
        super().__init__(f"condition failed at {failed}")
        self.failed = failed


class Contended(Exception):
    """Another transaction was at work on an item, or the table throttled; nothing was written. Try again after a pause."""


class TableUnavailable(Exception):
    """The table can't be reached or answers with a server error. Whether a write took effect is unknown."""


class Table(Protocol):
    """One table of items under (`pk`, `sk`), strongly consistent, with transactions.

    Two sparse indexes, eventually consistent: items with `due_pk` and `due_at` (int ms) are in the `due` index; items with
    `age_pk` and `age` (str) are in the `age` index. Every method may raise `TableUnavailable` and `Contended`.
    """

    def read(self, keys: Sequence[Key]) -> list[Item | None]:
        """Strong batch read, answers in the order of the keys; unprocessed keys are retried. 100 keys a call underneath."""
        ...

    def query(
        self,
        pk: str,
        *,
        after: str | None = None,
        before: str | None = None,
        first: str | None = None,
        last: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
        attributes: Sequence[str] | None = None,
    ) -> Page:
        """Strong query of one partition in sort-key order (`reverse`: descending).

        Bounds on `sk`: `after` and `before` exclusive, `first` and `last` inclusive; at most one lower and one upper.
        One call underneath: at most `limit` items and at most 1 MB; `Page.after` is the `sk` to go on from (exclusive, in
        the direction of the query), None at the end.
        """
        ...

    def count(self, pk: str, *, after: str | None = None, before: str | None = None) -> int:
        """How many items lie strictly between the bounds (all pages)."""
        ...

    def write(self, action: Put | Update | Delete) -> Item:
        """One conditional write. Returns the item as it is afterwards (empty after a delete). Raises `ConditionFailed`."""
        ...

    def transact(self, actions: Sequence[Action]) -> None:
        """All or nothing; at most 100 actions on distinct items, 4 MB. Raises `ConditionFailed` with the positions.

        Not retried after `TableUnavailable`: the caller re-reads and decides.
        """
        ...

    def due(self, partition: int, until: int, limit: int) -> list[Due]:
        """The items of a `due` partition (0 … `DUE_PARTITIONS` - 1) due at or before `until`, earliest first."""
        ...

    def aged(
        self, age_pk: str, *, after: str | None = None, before: str | None = None, limit: int = 100, reverse: bool = False
    ) -> list[Aged]:
        """The oldest items of an `age` partition strictly between the bounds that are given, oldest first.

        `reverse`: the newest, newest first.
        """
        ...


# --------------------------------------------------------------------------------------------------------------------
# The queue and the bucket


class Queue(Protocol):
    """A standard queue: at least once, no order. Messages are JSON objects that carry ids, never text."""

    def send(self, messages: Sequence[Mapping[str, Any]], delay_seconds: int = 0) -> None:
        """Send any number of messages (10 a call underneath). Raises `QueueUnavailable` if one was not taken."""
        ...


class QueueUnavailable(Exception):
    """The queue did not take a message. What it would have announced is found by the sweep."""


class Blobs(Protocol):
    """Named byte strings too large for an item. Every method may raise `BlobsUnavailable`."""

    def put(self, name: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        """Store, replacing what is there."""
        ...

    def get(self, name: str) -> bytes | None:
        """The bytes, or None when there are none of that name."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Remove; absent ones are no error."""
        ...

    def upload(self, name: str, content_type: str) -> Upload:
        """Begin to store a byte string that never is in memory as a whole."""
        ...

    def link(self, name: str, seconds: int, file_name: str) -> str:
        """An address where anyone can fetch it for so long, as a file of that name."""
        ...


class Upload(Protocol):
    """A byte string on its way. It is there once it is finished, and not before; one that is left alone leaves nothing."""

    def write(self, piece: bytes) -> None:
        """The next bytes, any number. Raises `BlobsUnavailable`."""
        ...

    def finish(self) -> None:
        """Store it. Raises `BlobsUnavailable`."""
        ...

    def abort(self) -> None:
        """Leave nothing of it; raises nothing. After `finish` it does nothing."""
        ...


class BlobsUnavailable(Exception):
    """The bucket can't be reached or refused."""


# --------------------------------------------------------------------------------------------------------------------
# The index

Form = Literal["chunk", "window"]
"""What a document of the index is made of: a piece of one entry, or an entry with its neighbours in the conversation."""

Method = Literal["vector", "keyword"]


class Member(NamedTuple):
    """An entry that a window holds, in the version whose text was indexed."""

    entry: str
    version: int


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """What ingest writes: one chunk of an entry, or one window. Routed by `bank`."""

    id: str
    """`{entry}#{n}` for the n-th chunk, `{entry}#w` for the window around the entry. Unique in the index."""
    bank: str
    generation: int
    partition: str
    """The hash of the key (see `ids.partition_of`)."""
    entry: str
    """Internal id of the (middle) entry: 26 characters of ULID, then those of the partition."""
    form: Form
    kind: Literal["entry", "summary"]
    version: int
    """Grows with every newer state of this document id; an older write never replaces a newer one."""
    members: tuple[Member, ...]
    """Of a window: all entries in it, in order. Of a chunk: its own entry and version."""
    previous: str | None
    """Internal id of the entry written before this one in the partition, when known."""
    start: int
    end: int
    """Where the chunk lies in the entry's content, in characters; 0, 0 for a window."""
    speaker: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    occurred_at: int
    created_at: int
    text: str
    """What is analysed for keyword search; never returned."""
    vector: Sequence[float]
    tokens: int | None = None
    """Of the whole entry, on its first chunk alone: the document that stands for the entry in statistics."""


@dataclass(frozen=True, slots=True)
class MetadataTest:
    """A condition on one metadata value. `path` is dotted (`a.b`); a list matches when one of its values does.

    Strings and booleans compare by equality; `gt`, `gte`, `lt`, `lte` compare numbers with numbers and strings with
    strings; `exists` takes true or false.
    """

    path: str
    operator: Literal["eq", "in", "gt", "gte", "lt", "lte", "exists"]
    value: Any


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search may see; part of the k-NN query itself, not applied afterwards. All fields are ANDed."""

    bank: str
    generation: int
    above: Mapping[str, str] | None = None
    """Partitions to look in, each with its watermark: only entries with a ULID strictly above it (a summary at the
    watermark counts as above). None: every partition of the bank."""
    kinds: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    metadata: tuple[MetadataTest, ...] = ()
    since: int | None = None
    """`occurred_at` at or after, ms."""
    until: int | None = None
    """`occurred_at` before, ms."""
    created_after: int | None = None
    """`created_at` strictly after, ms: the retention cut-off."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One document found by one ranking."""

    id: str
    entry: str
    form: Form
    members: tuple[Member, ...]
    previous: str | None
    start: int
    end: int
    occurred_at: int
    score: float
    """Vector: (1 + cosine) / 2. Keyword: BM25, unbounded."""


class Ranking(NamedTuple):
    """The best documents of one form by one method, best first."""

    form: Form
    method: Method
    hits: list[Hit]


class Outcome(NamedTuple):
    """What became of one written document."""

    id: str
    status: Literal["written", "stale", "failed"]
    """`stale`: the index already has a newer state. `failed`: refused, `reason` says why; writing it again won't help."""
    reason: str | None = None


class IndexUnavailable(Exception):
    """The index can't be reached, or is overloaded beyond the retries. Not the document's fault: a pause, not an attempt."""


class Indexed(NamedTuple):
    """What a scan of the index shows of a document."""

    id: str
    entry: str
    form: Form
    version: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """Which entries `Index.statistics` counts. `created_at` from `since` (inclusive) until `until` (exclusive), ms."""

    bank: str
    generation: int
    since: int
    until: int
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Sort positions by partition: what lies at or below is gone, though it may not be removed yet. A watermark, with an `S`
    where its summary is gone too. At most 500."""


class Spread(NamedTuple):
    """How some numbers are spread. `p95`: the smallest of them that at least 95 % do not exceed."""

    avg: float
    p95: float
    min: float
    max: float


class Tally(NamedTuple):
    """How many entries have a value."""

    value: str
    entries: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """What an index counts: entries, told apart from summaries. Spreads are None without entries; times are ms."""

    entries: int = 0
    summaries: int = 0
    partitions: int = 0
    """Distinct ones with an entry; exact up to 10,000, within 1 % beyond."""
    speakers: int = 0
    """Distinct ones; exact up to 40,000, within 1 % beyond."""
    tokens: Spread | None = None
    created_at: Spread | None = None
    """`p95` is of the ages: the newest moment that at least 95 % of the entries were not created before."""
    entries_per_partition: Spread | None = None
    top_partitions: tuple[Tally, ...] = ()
    top_speakers: tuple[Tally, ...] = ()
    top_tags: tuple[Tally, ...] = ()
    """The most frequent first, ties by value."""


class Index(Protocol):
    """Chunks and windows with vectors and text, found by similarity and by words, filtered inside the search.

    `name` is one index per (model, dimensions); it is created on first use, safely when two processes race.
    Every method may raise `IndexUnavailable`.
    """

    def write(self, name: str, documents: Sequence[IndexDocument], dimensions: int) -> list[Outcome]:
        """Write documents, each only over an older or equal version; outcomes in their order. Creates the index."""
        ...

    def search(
        self,
        name: str,
        filter: Filter,
        *,
        vector: Sequence[float] | None,
        text: str | None,
        forms: Sequence[Form],
        size: int,
    ) -> list[Ranking]:
        """One round trip: for each form, the `size` best by vector (if given) and by keyword (if text is given).

        An index that does not exist yet has no hits.
        """
        ...

    def delete(self, name: str, bank: str, ids: Sequence[str]) -> None:
        """Remove documents of a bank by id; absent ones are no error."""
        ...

    def delete_entries(self, name: str, bank: str, entries: Sequence[str]) -> None:
        """Remove every chunk of these entries, and every window that has one of them as a member."""
        ...

    def delete_partition(self, name: str, bank: str, generation: int, partition: str | None, through: str | None = None) -> None:
        """Remove a generation's documents: of one partition, or all of it.

        `through`, a ULID, keeps all that sorts after it; the summary *at* it sorts after it and stays.
        """
        ...

    def scan(self, name: str, bank: str, generation: int, partition: str | None = None) -> Iterator[Indexed]:
        """Every document of a generation of a bank, in any order."""
        ...

    def statistics(self, name: str, counted: Counted, top: int) -> Statistics:
        """Counts, spreads and the `top` most frequent values, from one document an entry; nothing is loaded.

        Entries whose index was made before it kept `IndexDocument.tokens` are not counted until a rebuild.
        """
        ...

    def refresh(self, name: str) -> None:
        """Make what was written so far visible to `search` and `statistics`."""
        ...


# --------------------------------------------------------------------------------------------------------------------
# Models


class ModelError(Exception):
    """A model refused, failed, or answered what is no answer. The message is safe to show."""


class ModelUnavailable(ModelError):
    """The model can't be reached, throttles, or timed out: a pause, not the text's fault."""


class UnknownModel(ModelError):
    """No provider has such a model, or it can't give that size: a mistake in a request or a setting. Says what is allowed."""


class AnswerCut(ModelError):
    """The model was stopped at `max_tokens` in the middle of its answer; `text` is what there is of it."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class Embedder(Protocol):
    """Text to vectors of unit length."""

    @property
    def model(self) -> str:
        """`provider/model-name`."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, in order. Raises `ModelUnavailable`, or `ModelError` for a text that can't be embedded."""
        ...

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a search query (some models embed queries otherwise than passages)."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a chat model."""

    role: Literal["user", "assistant"]
    content: str


class ChatModel(Protocol):
    """A text-generating model."""

    @property
    def model(self) -> str:
        """`provider/model-name`."""
        ...

    @property
    def window(self) -> int:
        """How many tokens (see `tokens`) of input fit."""
        ...

    def complete(self, system: str, messages: Sequence[Message], *, max_tokens: int, timeout_seconds: float) -> str:
        """The model's answer as text. Raises `ModelError`."""
        ...


class Reranker(Protocol):
    """A model that reads a query together with each text, and tells how well the text answers it."""

    @property
    def model(self) -> str:
        """`provider/model-name`."""
        ...

    def rerank(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> Sequence[float]:
        """One score a text, in their order, between 0 and 1, higher is better. Raises `ModelError`.

        At most 100 texts, none empty. Texts longer than the model reads are cut by it.
        """
        ...


class ChatModels(Protocol):
    """Gives a chat model by its name, built once a process."""

    def __call__(self, model: str | None) -> ChatModel:
        """The model `provider/model-name`; of None the service's own. Calls nothing. Raises `UnknownModel`."""
        ...


class Embedders(Protocol):
    """Gives the embedder of a bank's model and size, built once a process."""

    @property
    def default(self) -> str:
        """The embedding model of new banks, `provider/model-name`."""
        ...

    def sizes(self, model: str) -> tuple[int, ...]:
        """The dimensions a model can give, smallest first; without loading it. Raises `UnknownModel`."""
        ...

    def __call__(self, model: str, dimensions: int) -> Embedder: ...


class Metrics(Protocol):
    """Counts what an operator should see."""

    def count(self, name: str, value: int = 1, **dimensions: str) -> None: ...


# --------------------------------------------------------------------------------------------------------------------
# All of them


class Ports(Protocol):
    """What a domain function may use. `bootstrap.Wiring` builds each one on first use; tests pass a plain object."""

    @property
    def clock(self) -> Clock: ...
    @property
    def chance(self) -> Chance: ...
    @property
    def table(self) -> Table: ...
    @property
    def ingestion(self) -> Queue: ...
    @property
    def compaction(self) -> Queue: ...
    @property
    def exports(self) -> Queue: ...
    @property
    def distillation(self) -> Queue: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def index(self) -> Index: ...
    @property
    def embedders(self) -> Embedders: ...
    @property
    def chat(self) -> ChatModel: ...
    @property
    def chat_models(self) -> ChatModels: ...
    @property
    def reranker(self) -> Reranker | None:
        """None: searches are not reranked. Raises `UnknownModel` for a setting that names no such model."""
        ...

    @property
    def metrics(self) -> Metrics: ...
