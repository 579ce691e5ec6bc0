"""Keeps the emulator's table on disk: what was acknowledged survives `kill -9`, but for about the last second.

The journal remembers the keys that writes touch. Once a second it lets no write run, reads those items strongly and stores
them as they are now, or that they are gone, in one SQLite transaction. So the file is always a state the table really had,
storing an item twice changes nothing, and the file never grows beyond the table. At the start it fills the new table.

Several processes may journal one table (a `keys create` next to `serve`): each takes SQLite's write lock before it reads, so
an older image never replaces a newer one.
"""

from __future__ import annotations

import base64
import json
import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from memory_banks.ports import Action, Aged, Check, Delete, Due, Item, Key, Page, Put, Table, Update

from local.locks import SharedLock

logger = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between flushes: about what a kill loses."""

READ, WRITE = 100, 25
"""Items of one BatchGetItem and of one BatchWriteItem."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS items (pk TEXT NOT NULL, sk TEXT NOT NULL, item TEXT NOT NULL, PRIMARY KEY (pk, sk))
"""


class Journal:
    """The file of one table. `client` is DynamoDB's low-level client; nothing of the domain's types is in the file.

    Use `load` once on an empty table, `start` to flush in the background, and `close` to flush for the last time.
    """

    def __init__(self, path: Path, client: Any, table: str) -> None:
        self._client = client
        self._table = table
        self._file = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._file.executescript("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + SCHEMA)
        path.chmod(0o600)
        self._writes = SharedLock()
        self._touched: set[Key] = set()
        self._noting = threading.Lock()
        self._flushing = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._flush_regularly, name="journal", daemon=True)

    @contextmanager
    def writing(self, keys: Sequence[Key]) -> Iterator[None]:
        """Around a write of these keys. Whether it succeeds does not matter: what is stored is what is there later."""
        with self._writes.shared():
            try:
                yield
            finally:
                with self._noting:
                    self._touched.update(keys)

    def load(self) -> int:
        """Put everything the file holds into the table; how many items that were."""
        loaded = 0
        with closing(self._file.execute("SELECT item FROM items")) as rows:
            while batch := rows.fetchmany(WRITE):
                requests = [{"PutRequest": {"Item": json.loads(item, object_hook=_bytes_back)}} for (item,) in batch]
                while requests:
                    answer = self._client.batch_write_item(RequestItems={self._table: requests})
                    requests = answer.get("UnprocessedItems", {}).get(self._table, [])
                loaded += len(batch)
        return loaded

    def flush(self) -> int:
        """Store what was touched since the last time; how many items. When it fails, they stay noted for the next."""
        keys: set[Key] = set()
        with self._flushing:
            try:
                with self._transaction(), self._writes.alone():
                    with self._noting:
                        keys, self._touched = self._touched, set()
                    for images in self._images(keys):
                        self._store(images)
            except BaseException:
                with self._noting:
                    self._touched |= keys
                raise
        return len(keys)

    def start(self) -> None:
        """Flush every second from now on."""
        self._thread.start()

    def close(self) -> None:
        """Flush once more and close the file. When the table is gone, the file stays as it was a second before."""
        self._ending.set()
        if self._thread.ident:
            self._thread.join()
        try:
            self.flush()
        except (BotoCoreError, ClientError) as error:
            logger.error("the last writes could not be stored: %s", error)
        finally:
            self._file.close()

    def _flush_regularly(self) -> None:
        while not self._ending.wait(INTERVAL):
            if self._touched:
                try:
                    self.flush()
                except Exception:
                    logger.exception("the journal could not store the last writes; it tries again in %s s", INTERVAL)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def _images(self, keys: Iterable[Key]) -> Iterator[dict[Key, str | None]]:
        ordered = sorted(keys)
        for start in range(0, len(ordered), READ):
            images: dict[Key, str | None] = dict.fromkeys(ordered[start : start + READ])
            wanted = [{"pk": {"S": key.pk}, "sk": {"S": key.sk}} for key in images]
            while wanted:
                answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": wanted, "ConsistentRead": True}})
                for item in answer["Responses"].get(self._table, []):
                    images[Key(item["pk"]["S"], item["sk"]["S"])] = json.dumps(item, default=_bytes_as_text)
                wanted = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            yield images

    def _store(self, images: Mapping[Key, str | None]) -> None:
        here = [(key.pk, key.sk, image) for key, image in images.items() if image is not None]
        gone = [(key.pk, key.sk) for key, image in images.items() if image is None]
        self._file.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", here)
        self._file.executemany("DELETE FROM items WHERE pk = ? AND sk = ?", gone)


class JournaledTable:
    """`ports.Table` whose writes a journal notes."""

    def __init__(self, table: Table, journal: Journal) -> None:
        self._inner = table
        self._journal = journal

    def write(self, action: Put | Update | Delete) -> Item:
        """See `ports.Table.write`."""
        with self._journal.writing([_key(action)]):
            return self._inner.write(action)

    def transact(self, actions: Sequence[Action]) -> None:
        """See `ports.Table.transact`."""
        with self._journal.writing([_key(action) for action in actions if not isinstance(action, Check)]):
            self._inner.transact(actions)

    def read(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `ports.Table.read`."""
        return self._inner.read(keys)

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
        """See `ports.Table.query`."""
        return self._inner.query(
            pk, after=after, before=before, first=first, last=last, reverse=reverse, limit=limit, attributes=attributes
        )

    def count(self, pk: str, *, after: str | None = None, before: str | None = None) -> int:
        """See `ports.Table.count`."""
        return self._inner.count(pk, after=after, before=before)

    def due(self, partition: int, until: int, limit: int) -> list[Due]:
        """See `ports.Table.due`."""
        return self._inner.due(partition, until, limit)

    def aged(
        self, age_pk: str, *, after: str | None = None, before: str | None = None, limit: int = 100, reverse: bool = False
    ) -> list[Aged]:
        """See `ports.Table.aged`."""
        return self._inner.aged(age_pk, after=after, before=before, limit=limit, reverse=reverse)


def _key(action: Action) -> Key:
    return Key(action.item["pk"], action.item["sk"]) if isinstance(action, Put) else action.key


def _bytes_as_text(value: object) -> dict[str, str]:
    """Binary values as an object no attribute value of DynamoDB looks like."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(type(value).__name__)


def _bytes_back(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} and isinstance(value["base64"], str) else value
