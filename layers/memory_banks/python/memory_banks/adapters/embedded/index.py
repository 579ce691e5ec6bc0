"""The index of one machine: SQLite for what must last, FTS5 for words, numpy for vectors.

It stands in for OpenSearch behind the same port and answers alike. One file serves several processes: rows only ever
come and go (a change is a new row), so a process brings its memory up to date by reading the rows above the last it
knows and the removals since; `PRAGMA data_version` tells when there is anything to read.

A process that dies in the middle of a write leaves nothing of it: every call is one SQLite transaction.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...ids import ULID_LENGTH
from ...ports import (
    Counted,
    Filter,
    Form,
    Hit,
    IndexDocument,
    Indexed,
    IndexUnavailable,
    Member,
    Outcome,
    Ranking,
    Statistics,
)
from . import analysis, counting
from .segment import Columns, Mask, Rows, Segment

MEMORY = 2 << 30
"""Bytes of segments a process keeps; the least recently searched go first."""

REMOVALS = 100_000
"""How many removals are remembered for other processes; one that missed more reads its segments anew."""

_TOKEN_CHARACTERS = "_.:,;''"  # besides letters and digits, what a term may hold (the quote is doubled for SQL)

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS indexes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS scopes (
    id INTEGER PRIMARY KEY, name INTEGER NOT NULL, bank TEXT NOT NULL, generation INTEGER NOT NULL, form TEXT NOT NULL,
    UNIQUE (name, bank, generation, form)
);
CREATE TABLE IF NOT EXISTS documents (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    name INTEGER NOT NULL, id TEXT NOT NULL, scope INTEGER NOT NULL, bank TEXT NOT NULL,
    partition TEXT NOT NULL, sort TEXT NOT NULL, entry TEXT NOT NULL, version INTEGER NOT NULL, members TEXT NOT NULL,
    previous TEXT, "start" INTEGER NOT NULL, "end" INTEGER NOT NULL,
    summary INTEGER NOT NULL, speaker TEXT, tags TEXT NOT NULL, metadata TEXT NOT NULL,
    occurred_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
    length INTEGER NOT NULL, terms TEXT NOT NULL, vector BLOB NOT NULL, tokens INTEGER
);
CREATE UNIQUE INDEX IF NOT EXISTS documents_id ON documents (name, id);
CREATE INDEX IF NOT EXISTS documents_place ON documents (scope, partition, sort);
CREATE INDEX IF NOT EXISTS documents_scope ON documents (scope, row);
CREATE TABLE IF NOT EXISTS members (entry TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (entry, row)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS removals (id INTEGER PRIMARY KEY AUTOINCREMENT, scope INTEGER NOT NULL, row INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS removals_scope ON removals (scope, id);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    terms, content = 'documents', content_rowid = 'row', tokenize = "ascii tokenchars '{_TOKEN_CHARACTERS}'"
);
CREATE VIRTUAL TABLE IF NOT EXISTS postings USING fts5vocab (words, 'instance');
"""

_MARKERS = """
CREATE INDEX IF NOT EXISTS documents_markers
ON documents (scope, created_at, tokens, summary, partition, sort, speaker, tags) WHERE tokens IS NOT NULL
"""
"""All that statistics read, so that they never touch a document's text or vector."""

_COLUMNS = "row, partition, sort, summary, speaker, tags, metadata, occurred_at, created_at, length, vector"
_KNOWN = "row, scope, terms, entry, members"
_SHOWN = 'row, id, entry, version, members, previous, "start", "end", occurred_at'


class _Cached(NamedTuple):
    segment: Segment
    removal: int
    """The last removal that the segment knows."""


class EmbeddedIndex:
    """`EmbeddedIndex("data/index.sqlite")`; `":memory:"` is private to the process. Safe for threads and processes."""

    def __init__(self, path: str, *, busy_seconds: float = 10) -> None:
        """`busy_seconds`: how long to wait for another process's write before `IndexUnavailable`."""
        self._path = path
        self._busy_seconds = busy_seconds
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._segments: OrderedDict[int, _Cached] = OrderedDict()
        self._fresh: set[int] = set()
        self._data_version = -1

    # ----------------------------------------------------------------------------------------------------------------
    # The file

    def _connect(self) -> sqlite3.Connection:
        if self._open is None:
            if self._path != ":memory:":
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            try:
                connection.execute("PRAGMA page_size = 8192")
                connection.execute("PRAGMA journal_mode = WAL")
                # With WAL this survives the death of the process; only a power cut can take the last moments, and the
                # index can be rebuilt from the table.
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA.split(";\n"):
                    if statement.strip():
                        connection.execute(statement)
                if "tokens" not in {column[1] for column in connection.execute("PRAGMA table_info (documents)")}:
                    connection.execute("ALTER TABLE documents ADD COLUMN tokens INTEGER")  # a file of an earlier version
                connection.execute(_MARKERS)
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._open = connection
        return self._open

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the file, one thread at a time."""
        with self._lock:
            try:
                connection = self._connect()
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
            except (sqlite3.Error, OSError) as error:
                raise IndexUnavailable(f"the embedded index can't be used: {error}") from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, one thread and process at a time."""
        with self._lock:
            try:
                connection = self._connect()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
                self._fresh.clear()
            except (sqlite3.Error, OSError) as error:
                raise IndexUnavailable(f"the embedded index can't be used: {error}") from error

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None
            self._segments.clear()
            self._fresh.clear()

    def refresh(self, name: str) -> None:
        """Nothing to do: a write is visible as soon as it returns."""

    # ----------------------------------------------------------------------------------------------------------------
    # Writes

    def write(self, name: str, documents: Sequence[IndexDocument], dimensions: int) -> list[Outcome]:
        with self._writing() as connection:
            number, has = _index(connection, name, dimensions)
            scopes: dict[tuple[str, int, Form], int] = {}
            return [self._put(connection, number, has, document, scopes) for document in documents]

    def _put(
        self,
        connection: sqlite3.Connection,
        name: int,
        dimensions: int,
        document: IndexDocument,
        scopes: dict[tuple[str, int, Form], int],
    ) -> Outcome:
        vector = np.asarray(document.vector, np.float64)
        norm = float(np.linalg.norm(vector)) if vector.ndim == 1 else 0.0
        if vector.shape != (dimensions,):
            return Outcome(document.id, "failed", f"the vector has shape {vector.shape}, the index {dimensions} dimensions")
        if not np.isfinite(norm) or norm == 0:
            return Outcome(document.id, "failed", "the vector has no direction (all zero, or not finite)")
        there = connection.execute(
            f"SELECT {_KNOWN}, version FROM documents WHERE name = ? AND id = ?", (name, document.id)
        ).fetchone()
        if there and there[-1] > document.version:
            return Outcome(document.id, "stale")
        if there:
            _remove(connection, [there[:-1]])
        where = (document.bank, document.generation, document.form)
        if where not in scopes:
            scopes[where] = _scope(connection, name, *where)
        scope = scopes[where]
        terms = analysis.terms(document.text)
        text = f" {_word(scope, '')}".join(["", *terms])[1:]
        row = connection.execute(
            """INSERT INTO documents (name, id, scope, bank, partition, sort, entry, version, members, previous, "start", "end",
                   summary, speaker, tags, metadata, occurred_at, created_at, length, terms, vector, tokens)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                name,
                document.id,
                scope,
                document.bank,
                document.partition,
                _sort(document.entry),
                document.entry,
                document.version,
                json.dumps(document.members),
                document.previous,
                document.start,
                document.end,
                document.kind == "summary",
                document.speaker,
                json.dumps(document.tags),
                json.dumps(dict(document.metadata)),
                document.occurred_at,
                document.created_at,
                len(terms),
                text,
                (vector / norm).astype("<f4").tobytes(),
                document.tokens,
            ),
        ).lastrowid
        connection.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (row, text))
        named = {document.entry, *(member.entry for member in document.members)}
        connection.executemany("INSERT INTO members (entry, row) VALUES (?, ?)", [(entry, row) for entry in sorted(named)])
        return Outcome(document.id, "written")

    def delete(self, name: str, bank: str, ids: Sequence[str]) -> None:
        self._delete(
            f"SELECT {_KNOWN} FROM documents WHERE name = (SELECT id FROM indexes WHERE name = ?) AND id = ? AND bank = ?",
            [(name, id, bank) for id in ids],
        )

    def delete_entries(self, name: str, bank: str, entries: Sequence[str]) -> None:
        self._delete(
            f"""SELECT {_KNOWN} FROM documents WHERE row IN (SELECT row FROM members WHERE entry = ?)
                AND bank = ? AND name = (SELECT id FROM indexes WHERE name = ?)""",
            [(entry, bank, name) for entry in entries],
        )

    def delete_partition(self, name: str, bank: str, generation: int, partition: str | None, through: str | None = None) -> None:
        self._delete(
            f"""SELECT {_KNOWN} FROM documents WHERE scope IN (
                   SELECT scopes.id FROM scopes JOIN indexes ON indexes.id = scopes.name
                   WHERE indexes.name = ? AND bank = ? AND generation = ?
               ) AND (? IS NULL OR partition = ?) AND (? IS NULL OR sort <= ?)""",
            [(name, bank, generation, partition, partition, through, through)],
        )

    def _delete(self, found: str, values: Sequence[tuple[Any, ...]]) -> None:
        with self._writing() as connection:
            for value in values:
                _remove(connection, connection.execute(found, value).fetchall())

    # ----------------------------------------------------------------------------------------------------------------
    # Reads

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
        rankings = []
        terms = Counter(analysis.terms(text)) if text is not None else None
        with self._reading() as connection:
            for form in forms:
                scope = connection.execute(
                    """SELECT scopes.id, dimensions FROM scopes JOIN indexes ON indexes.id = scopes.name
                       WHERE indexes.name = ? AND bank = ? AND generation = ? AND form = ?""",
                    (name, filter.bank, filter.generation, form),
                ).fetchone()
                segment = self._segment(connection, *scope) if scope else None
                mask = segment.mask(filter) if segment else None
                if vector is not None:
                    best = _nearest(segment, mask, vector, size)
                    rankings.append(Ranking(form, "vector", _hits(connection, form, best)))
                if terms is not None:
                    best = (
                        segment.wordiest(terms, _postings(connection, scope[0]), mask, size) if segment and mask is not None else []
                    )
                    rankings.append(Ranking(form, "keyword", _hits(connection, form, best)))
        return rankings

    def scan(self, name: str, bank: str, generation: int, partition: str | None = None) -> Iterator[Indexed]:
        row = 0
        while True:
            with self._reading() as connection:
                found = connection.execute(
                    """SELECT row, documents.id, entry, form, version, members FROM documents JOIN scopes ON scopes.id = scope
                       WHERE row > ? AND scope IN (
                           SELECT scopes.id FROM scopes JOIN indexes ON indexes.id = scopes.name
                           WHERE indexes.name = ? AND bank = ? AND generation = ?
                       ) AND (? IS NULL OR partition = ?) ORDER BY row LIMIT 1000""",
                    (row, name, bank, generation, partition, partition),
                ).fetchall()
            for row, id, entry, form, version, members in found:  # noqa: B007
                yield Indexed(id, entry, form, version, _members(members))
            if not found:
                return

    def statistics(self, name: str, counted: Counted, top: int) -> Statistics:
        with self._reading() as connection:
            found = connection.execute(
                """SELECT documents.partition, sort, summary, speaker, tags, tokens, created_at FROM documents
                   WHERE scope = (
                       SELECT scopes.id FROM scopes JOIN indexes ON indexes.id = scopes.name
                       WHERE indexes.name = ? AND bank = ? AND generation = ? AND form = 'chunk'
                   ) AND tokens IS NOT NULL AND created_at >= ? AND created_at < ?""",
                (name, counted.bank, counted.generation, counted.since, counted.until),
            )
            return counting.count((counting.Marker(*row) for row in found), counted.hidden, top)

    # ----------------------------------------------------------------------------------------------------------------
    # Memory

    def _segment(self, connection: sqlite3.Connection, scope: int, dimensions: int) -> Segment:
        """The scope's documents in memory, brought up to the view of the connection's transaction."""
        data_version = connection.execute("PRAGMA data_version").fetchone()[0]
        if data_version != self._data_version:  # another process wrote
            self._data_version = data_version
            self._fresh.clear()
        cached = self._segments.get(scope)
        if cached is None or scope not in self._fresh:
            cached = self._up_to_date(connection, scope, dimensions, cached)
            self._segments[scope] = cached
            self._fresh.add(scope)
        self._segments.move_to_end(scope)
        while len(self._segments) > 1 and sum(one.segment.bytes for one in self._segments.values()) > MEMORY:
            self._fresh.discard(self._segments.popitem(last=False)[0])
        return cached.segment

    @staticmethod
    def _up_to_date(connection: sqlite3.Connection, scope: int, dimensions: int, cached: _Cached | None) -> _Cached:
        first, last = connection.execute("SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM removals").fetchone()
        missed = cached is not None and cached.removal < first - 1
        if cached is None or missed or cached.segment.dead > 1_000 + cached.segment.size // 2:
            cached = _Cached(Segment(dimensions), last)
        gone = connection.execute("SELECT row FROM removals WHERE scope = ? AND id > ?", (scope, cached.removal)).fetchall()
        cached.segment.remove([row for (row,) in gone])
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM documents WHERE scope = ? AND row > ? ORDER BY row", (scope, cached.segment.through)
        )
        while some := rows.fetchmany(5_000):
            cached.segment.add([Columns(*one) for one in some])
        return _Cached(cached.segment, last)


def _index(connection: sqlite3.Connection, name: str, dimensions: int) -> tuple[int, int]:
    """The index's number and dimensions, created when it is new."""
    connection.execute("INSERT INTO indexes (name, dimensions) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, dimensions))
    number, has = connection.execute("SELECT id, dimensions FROM indexes WHERE name = ?", (name,)).fetchone()
    return number, has


def _scope(connection: sqlite3.Connection, name: int, bank: str, generation: int, form: Form) -> int:
    """The number of a form of a generation of a bank in an index, created when it is new."""
    values = (name, bank, generation, form)
    find = "SELECT id FROM scopes WHERE name = ? AND bank = ? AND generation = ? AND form = ?"
    found = connection.execute(find, values).fetchone()
    if found is None:
        connection.execute("INSERT INTO scopes (name, bank, generation, form) VALUES (?, ?, ?, ?)", values)
        found = connection.execute(find, values).fetchone()
    return int(found[0])


def _remove(connection: sqlite3.Connection, found: Sequence[tuple[int, int, str, str, str]]) -> None:
    """Remove rows, given by what `_KNOWN` selects, from everything that knows them."""
    for row, scope, terms, entry, members in found:
        # FTS5 finds what to forget by the very terms that were written.
        connection.execute("INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)", (row, terms))
        named = {entry, *(member.entry for member in _members(members))}
        connection.executemany("DELETE FROM members WHERE entry = ? AND row = ?", [(one, row) for one in named])
        connection.execute("DELETE FROM documents WHERE row = ?", (row,))
        connection.execute("INSERT INTO removals (scope, row) VALUES (?, ?)", (scope, row))
    connection.execute("DELETE FROM removals WHERE id <= (SELECT max(id) FROM removals) - ?", (REMOVALS,))


def _word(scope: int, term: str) -> str:
    """A term as FTS5 has it: apart for each scope, so that a common word of one bank costs another bank nothing."""
    return f"{scope}_{term}"


def _postings(connection: sqlite3.Connection, scope: int) -> Callable[[str], Rows]:
    def postings(term: str) -> Rows:
        found = connection.execute("SELECT doc FROM postings WHERE term = ?", (_word(scope, term),))
        return np.fromiter((row for (row,) in found), np.int64)

    return postings


def _nearest(segment: Segment | None, mask: Mask | None, vector: Sequence[float], size: int) -> list[tuple[int, float]]:
    wanted = np.asarray(vector, np.float32)
    norm = float(np.linalg.norm(wanted))
    if segment is None or mask is None or norm == 0:
        return []
    return segment.nearest(wanted / np.float32(norm), mask, size)


def _hits(connection: sqlite3.Connection, form: Form, best: Sequence[tuple[int, float]]) -> list[Hit]:
    shown = {}
    for first in range(0, len(best), 500):
        rows = [row for row, _ in best[first : first + 500]]
        marks = ", ".join("?" * len(rows))
        for values in connection.execute(f"SELECT {_SHOWN} FROM documents WHERE row IN ({marks})", rows):
            shown[values[0]] = values
    hits = []
    for row, score in best:
        _, id, entry, version, members, previous, start, end, occurred_at = shown[row]
        # A chunk has one member, itself: not worth reading JSON for.
        members_of = (Member(entry, version),) if form == "chunk" else _members(members)
        hits.append(Hit(id, entry, form, members_of, previous, start, end, occurred_at, score))
    return hits


def _members(text: str) -> tuple[Member, ...]:
    return tuple(Member(entry, version) for entry, version in json.loads(text))


def _sort(entry: str) -> str:
    """The entry's place in its partition: its ULID, plus `S` for a summary."""
    return entry[:ULID_LENGTH] + entry[2 * ULID_LENGTH :]
