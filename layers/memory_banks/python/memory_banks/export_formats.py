"""The formats of an export. Each writer takes entries a page at a time and keeps no more than that in memory."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from .bank import Bank
from .clock import iso
from .entries import Entry
from .ports import Upload

COLUMNS = ("id", "key", "kind", "speaker", "content", "tags", "metadata", "occurred_at", "created_at", "tokens", "version")
"""Of a table: csv and parquet. Tags and metadata are JSON in csv; metadata also in parquet."""

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet would calculate."""


_GROUP, _ROW = 8 << 20, 500
"""Characters of a row group of a parquet file, and about how many a row has besides its content."""


class Sink(io.RawIOBase):
    """A file to write, which goes on to an upload."""

    def __init__(self, upload: Upload) -> None:
        super().__init__()
        self._upload = upload
        self.size = 0
        """Bytes written so far."""

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Pass bytes on."""
        piece = bytes(data)
        self._upload.write(piece)
        self.size += len(piece)
        return len(piece)

    def tell(self) -> int:
        """Where the next byte goes; there is no way back."""
        return self.size


class Writer(Protocol):
    """What makes a file of entries."""

    def add(self, entries: Sequence[Entry]) -> None:
        """Write these entries."""
        ...

    def close(self) -> None:
        """Write what comes after the last entry."""
        ...


def writer(format: str, sink: Sink, bank: Bank, now: int, *, neutralise: bool) -> Writer:
    """The writer of a format."""
    match format:
        case "csv":
            return _Csv(sink, neutralise)
        case "json":
            return _Json(sink, bank, now)
        case "zip":
            return _Zip(sink, bank, now)
        case "parquet":
            return _Parquet(sink)
    return _Lines(sink)


def _row(entry: Entry) -> dict[str, Any]:
    """An entry as a file tells it: as the API does, without what changes by itself."""
    return {name: value for name, value in entry.shown().items() if name != "indexed"}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _about(bank: Bank, now: int) -> dict[str, Any]:
    """What a file says about itself."""
    try:
        software = version("memory-banks")
    except PackageNotFoundError:  # a function has the package without its metadata
        software = "0.1.0"
    return {
        "export_type": "memory_bank",
        "software_version": software,
        "account_id": bank.account,
        "exported_at": iso(now),
        "memory_bank": {"configuration": bank.shown()},
    }


class _Lines:
    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def add(self, entries: Sequence[Entry]) -> None:
        self._sink.write("".join(_text(_row(entry)) + "\n" for entry in entries).encode())

    def close(self) -> None:
        """Nothing comes after the last line."""


class _Json:
    def __init__(self, sink: Sink, bank: Bank, now: int) -> None:
        self._sink = sink
        self._between = ""
        self._sink.write((_text(_about(bank, now))[:-1] + ',"entries":[').encode())

    def add(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._sink.write((self._between + _text(_row(entry))).encode())
            self._between = ",\n"

    def close(self) -> None:
        self._sink.write(b"]}\n")


class _Csv:
    def __init__(self, sink: Sink, neutralise: bool) -> None:
        self._sink = sink
        self._neutralise = neutralise
        self._write([COLUMNS])

    def add(self, entries: Sequence[Entry]) -> None:
        self._write([[self._cell(_row(entry)[name]) for name in COLUMNS] for entry in entries])

    def close(self) -> None:
        """Nothing comes after the last row."""

    def _cell(self, value: Any) -> Any:
        if isinstance(value, list | Mapping):
            return _text(value)
        if self._neutralise and isinstance(value, str) and value.startswith(FORMULAS):
            return "'" + value
        return value

    def _write(self, rows: Sequence[Sequence[Any]]) -> None:
        page = io.StringIO(newline="")
        csv.writer(page).writerows(rows)
        self._sink.write(page.getvalue().encode())


class _Zip:
    def __init__(self, sink: Sink, bank: Bank, now: int) -> None:
        self._zip = zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED)
        self._zip.writestr("memory_bank.json", json.dumps(_about(bank, now), ensure_ascii=False, indent=2))
        self._file = self._zip.open("entries.jsonl", "w", force_zip64=True)
        self._lines = _Lines(self._file)

    def add(self, entries: Sequence[Entry]) -> None:
        self._lines.add(entries)

    def close(self) -> None:
        self._file.close()
        self._zip.close()


class _Parquet:
    def __init__(self, sink: Sink) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        kinds = {"tags": pa.list_(pa.string()), "tokens": pa.int64(), "version": pa.int64()}
        kinds |= {name: pa.timestamp("ms", tz="UTC") for name in ("occurred_at", "created_at")}
        self._schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
        self._table = pa.Table
        self._writer = parquet.ParquetWriter(sink, self._schema)
        self._rows: list[dict[str, Any]] = []
        self._size = 0

    def add(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            times = {"occurred_at": entry.occurred_at, "created_at": entry.created_at}
            self._rows.append(_row(entry) | {"metadata": _text(dict(entry.metadata))} | times)
            self._size += len(entry.content) + _ROW
            if self._size > _GROUP:
                self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        """Write a row group: large enough to be read fast, small enough for memory."""
        if self._rows:
            self._writer.write_table(self._table.from_pylist(self._rows, schema=self._schema))
            self._rows, self._size = [], 0
