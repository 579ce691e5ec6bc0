"""Exports over the API: asked for, made by the `export` function, downloaded, removed."""

from __future__ import annotations

import base64
import csv
import io
import json
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from memory_banks import cleaning, exporting, exports, sweeping
from memory_banks.ports import BlobsUnavailable, Key, QueueUnavailable, TableUnavailable

from functions.api.handler import handler as api_handler
from functions.export.handler import handler
from tests.doubles.gateway import event

from .conftest import Client, World

DAY = 86_400
FORMATS = ("jsonl", "json", "csv", "zip", "parquet")


@dataclass
class Source:
    """A bank's source and what is done with its exports."""

    api: Client
    world: World
    bank: str

    def __post_init__(self) -> None:
        self.id = self.api("GET", f"/memory_banks/{self.bank}").json["source_connection_id"]
        self.path = f"/sources/{self.id}/exports"

    def create(self, format: str = "jsonl", **filters: Any) -> dict[str, Any]:
        answer = self.api("POST", self.path, body={"format": format} | filters)
        assert answer.status == 202, answer
        return dict(answer.json)

    def work(self) -> list[Any]:
        """What the queue holds goes to the function, an event a message; what it gives back."""
        messages, self.world.exports.sent = self.world.exports.sent, []
        return [call(message)["batchItemFailures"] for message in messages]

    def get(self, export: str) -> dict[str, Any]:
        return dict(self.api("GET", f"{self.path}/{export}").json)

    def made(self, format: str = "jsonl", **filters: Any) -> bytes:
        """The file of a new export."""
        export = self.create(format, **filters)["id"]
        assert self.work() == [[]]
        assert self.get(export)["status"] == "completed", self.get(export)
        return self.download(export)

    def download(self, export: str) -> bytes:
        asked = event("GET", f"{self.path}/{export}/download", headers={"x-api-key": self.api.secret or ""})
        answer = api_handler(asked, None)
        assert (answer["statusCode"], answer["isBase64Encoded"]) == (200, True), answer
        return base64.b64decode(answer["body"])

    def lines(self, **filters: Any) -> list[str]:
        """Contents, sorted."""
        return sorted(json.loads(line)["content"] for line in self.made(**filters).decode().splitlines())


def call(message: dict[str, Any]) -> Any:
    record = {"messageId": "1", "body": json.dumps(message), "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:x:1:q"}
    return handler({"Records": [record]}, None)


@pytest.fixture
def source(api: Client, world: World) -> Source:
    return Source(api, world, api.bank(retention_days=None))


NASTY = ['=1+1"\n', "@SUM(A1)", "line one\r\nline two, with 'quotes' and \"more\"", "ünïcode 漢字 🙂", "-5", "plain"]


@pytest.mark.parametrize("format", FORMATS)
def test_every_entry_is_once_in_a_file_of_every_format(source: Source, format: str) -> None:
    written = [source.api.write(source.bank, text, key=f"k{n % 3}", tags=["a"], metadata={"n": n}) for n, text in enumerate(NASTY)]
    found = read(format, source.made(format))
    assert sorted(one["id"] for one in found) == sorted(one["id"] for one in written)
    by_id = {one["id"]: one for one in found}
    for one in written:
        got = by_id[one["id"]]
        assert (got["content"], got["key"], got["speaker"], got["tags"]) == (one["content"], one["key"], "user", ["a"])
        assert got["metadata"] == one["metadata"]
        assert (got["created_at"], got["occurred_at"]) == (one["created_at"], one["occurred_at"])
        assert "indexed" not in got


def read(format: str, body: bytes) -> list[dict[str, Any]]:
    """The entries of a file, read by who knows the format."""
    match format:
        case "jsonl":
            return [json.loads(line) for line in body.decode().split("\n") if line]
        case "json":
            whole = json.loads(body)
            assert set(whole) == {"export_type", "software_version", "account_id", "exported_at", "memory_bank", "entries"}
            assert (whole["export_type"], whole["account_id"]) == ("memory_bank", "acme")
            assert whole["memory_bank"]["configuration"]["name"] == "Support"
            assert "secret" not in whole["memory_bank"]["configuration"]
            return list(whole["entries"])
        case "csv":
            rows = csv.DictReader(io.StringIO(body.decode(), newline=""))
            return [row | {"tags": json.loads(row["tags"]), "metadata": json.loads(row["metadata"])} for row in rows]
        case "zip":
            archive = zipfile.ZipFile(io.BytesIO(body))
            assert archive.testzip() is None
            assert json.loads(archive.read("memory_bank.json"))["memory_bank"]["configuration"]["name"] == "Support"
            return read("jsonl", archive.read("entries.jsonl"))
    from memory_banks.clock import iso
    from pyarrow import parquet

    rows = parquet.read_table(io.BytesIO(body)).to_pylist()
    times = ("created_at", "occurred_at")
    shown = [{name: iso(round(row[name].timestamp() * 1000)) for name in times} for row in rows]
    return [row | one | {"metadata": json.loads(row["metadata"])} for row, one in zip(rows, shown, strict=True)]


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_bank_makes_a_file_too(source: Source, format: str) -> None:
    assert read(format, source.made(format)) == []


def test_formulas_are_neutralised_where_asked(source: Source) -> None:
    for text in NASTY:
        source.api.write(source.bank, text)
    found = [one["content"] for one in read("csv", source.made("csv", neutralise_formulas=True))]
    assert found == ["'" + text if text[0] in "=@-" else text for text in NASTY]


def test_what_an_export_tells_of_itself(source: Source, world: World) -> None:
    source.api.write(source.bank, "x" * 1000)
    made = source.create("jsonl", query_filter="X", metadata_filter={"a": 1}, date_from="2020-01-01", date_to="2030-01-31")
    assert {name: value for name, value in made.items() if not name.endswith("_at")} == {
        "id": made["id"],
        "source_connection_id": source.id,
        "account_id": "acme",
        "format": "jsonl",
        "destination": "download",
        "status": "queued",
        "progress_current": 0,
        "progress_total": None,
        "item_count": None,
        "file_size_bytes": None,
        "estimated_size_bytes": 1330,
        "error": None,
        "storage_key": None,
        "requested_by_user_id": made["requested_by_user_id"],
        "requested_by_user_name": None,
        "neutralise_formulas": False,
        "date_from": "2020-01-01T00:00:00.000Z",
        "date_to": "2030-01-31T23:59:59.999Z",
        "query_filter": "X",
        "metadata_filter": {"a": 1},
    }
    assert source.api("GET", f"{source.path}/{made['id']}/download").json["error"]["code"] == "export_not_ready"
    source.work()
    done = source.get(made["id"])
    assert (done["status"], done["item_count"], done["progress_current"], done["progress_total"]) == ("completed", 0, 1, 1)
    assert (done["file_size_bytes"], done["expires_at"] > done["completed_at"] >= done["started_at"]) == (0, True)
    job = source.api("GET", f"/memory_banks/{source.bank}/jobs/{made['id']}").json
    assert (job["kind"], job["status"]) == ("export", "completed")


def test_filters(source: Source) -> None:
    def write(text: str, day: int, **metadata: Any) -> None:
        source.api.write(source.bank, text, occurred_at=f"2026-03-{day:02}T12:00:00Z", metadata=metadata)

    write("The Straße", 1, who={"name": "Ann", "age": 3}, list=[1, {"a": 1, "b": 2}])
    write("the second", 2, who={"name": "Bob"}, yes=True)
    write("third", 3, yes=1)
    assert source.lines(query_filter="THE S") == ["The Straße", "the second"]
    assert source.lines(query_filter="STRASSE") == ["The Straße"]
    assert source.lines(date_from="2026-03-02", date_to="2026-03-02") == ["the second"]
    assert source.lines(date_from="2026-03-02T12:00:00Z") == ["the second", "third"]
    assert source.lines(date_to="2026-03-02T12:00:00Z") == ["The Straße", "the second"]
    assert source.lines(metadata_filter={"who": {"name": "Ann"}}) == ["The Straße"]
    assert source.lines(metadata_filter={"list": [{"b": 2}]}) == ["The Straße"]
    assert source.lines(metadata_filter={"yes": True}) == ["the second"]
    assert source.lines(metadata_filter={"yes": 1}) == ["third"]
    assert source.lines(metadata_filter={}) == ["The Straße", "the second", "third"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "format"),
        ({"format": "xml"}, "format"),
        ({"format": "csv", "date_from": "soon"}, "date_from"),
        ({"format": "csv", "date_from": "2026-02-01", "date_to": "2026-01-01"}, "date_from"),
        ({"format": "csv", "metadata_filter": [1]}, "metadata_filter"),
        ({"format": "csv", "query_filter": "x" * 1001}, "query_filter"),
    ],
)
def test_wrong_bodies_are_named_and_make_nothing(source: Source, body: dict[str, Any], field: str) -> None:
    for path in (source.path, source.path + "/estimate"):
        answer = source.api("POST", path, body=body)
        assert answer.status == 422
        assert answer.json["detail"][0]["loc"] == ["body", field]
    assert source.world.exports.sent == []


def test_parquet_without_pyarrow_is_refused_in_a_sentence(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports.importlib.util, "find_spec", lambda name: None)
    answer = source.api("POST", source.path, body={"format": "parquet"})
    assert (answer.status, answer.json["detail"][0]["loc"]) == (422, ["body", "format"])
    assert "pyarrow" in answer.json["detail"][0]["msg"]


def test_the_documented_alias_answers_the_same(source: Source) -> None:
    source.api.write(source.bank, "hello")
    body = {"resource_type": "memory_bank", "resource_id": source.bank}
    made = source.api("POST", "/authenticated/resource-exports", body=body)
    assert (made.status, made.json["format"], made.json["source_connection_id"]) == (202, "json", source.id)
    source.work()
    assert [one["content"] for one in read("json", source.download(made.json["id"]))] == ["hello"]
    wrong = source.api("POST", "/authenticated/resource-exports", body=body | {"resource_type": "agent"})
    assert wrong.status == 422
    assert source.api("POST", "/authenticated/resource-exports", body=body | {"resource_id": "none"}).status == 404


def test_lists_and_estimates(source: Source, world: World) -> None:
    made = []
    for _ in range(3):
        made.append(source.create()["id"])
        world.clock.advance(1)
    page = source.api("GET", source.path, query={"page": 1, "limit": 2}).json
    assert [one["id"] for one in page["data"]] == made[:0:-1]
    assert page["pagination"] == {"page": 1, "limit": 2, "total": 3, "pages": 2, "has_next": True, "has_prev": False}
    assert [one["id"] for one in source.api("GET", source.path, query={"page": 2, "limit": 2}).json["data"]] == made[:1]
    source.work()
    source.api.write(source.bank, "x" * 10_000)
    estimated = source.api("POST", source.path + "/estimate", body={"format": "jsonl"}).json
    assert estimated == {"source_connection_id": source.id, "estimated_size_bytes": 10_330}
    assert len(source.made()) == pytest.approx(10_330, rel=0.1)


def test_long_files_are_fetched_elsewhere(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "ANSWERED_BYTES", 100)
    source.api.write(source.bank, "x" * 1000)
    export = source.create()["id"]
    source.work()
    answer = source.api("GET", f"{source.path}/{export}/download")
    error = answer.json["error"]
    assert (answer.status, error["code"]) == (413, "download_elsewhere")
    assert error["url"] in error["message"]
    assert source.get(export)["storage_key"] in error["url"]


def test_a_direct_answer_names_its_type_and_its_file(source: Source) -> None:
    for format in FORMATS:
        export = source.create(format)["id"]
        source.work()
        answer = source.api("GET", f"{source.path}/{export}/download")
        assert answer.headers["content-type"] == exports.CONTENT_TYPES[format]
        assert answer.headers["content-disposition"].endswith(f'{export}.{format}"')


# --------------------------------------------------------------------------------------------------------------------
# Ends


def test_an_export_expires_after_seven_days_and_its_file_goes(source: Source, world: World) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    source.work()
    world.clock.advance(3600)
    sweeping.sweep(world, "compaction", deadline=world.clock.now() + 10_000)
    assert len(world.blobs.kept) == 1
    world.clock.advance(7 * DAY - 3600)
    answer = source.api("GET", f"{source.path}/{export}/download")
    assert (answer.status, answer.json["error"]["code"]) == (410, "export_expired")
    swept = sweeping.sweep(world, "compaction", deadline=world.clock.now() + 10_000)
    assert (swept.exports, swept.left, world.blobs.kept) == (1, 0, {})
    assert source.get(export)["status"] == "completed"
    assert sweeping.sweep(world, "compaction", deadline=world.clock.now() + 10_000).exports == 0


def test_a_cancelled_export_is_not_made(source: Source, world: World) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    assert source.api("POST", f"{source.path}/{export}/cancel").json["status"] == "cancelled"
    source.work()
    assert (source.get(export)["status"], world.blobs.kept) == ("cancelled", {})
    assert source.api("GET", f"{source.path}/{export}/download").status == 409
    assert source.api("POST", f"{source.path}/{export}/cancel").json["status"] == "cancelled"


@pytest.mark.parametrize("how", ["cancel", "delete", "source"])
def test_one_that_is_ended_under_way_leaves_no_file(
    source: Source, world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """At the very last moment: the file is complete and about to be noted."""
    source.api.write(source.bank)
    export = source.create()["id"]
    upload = world.blobs.upload

    def finishing(*asked: Any) -> Any:
        one = upload(*asked)
        finish = one.finish

        def finished() -> None:
            finish()
            if how == "cancel":
                source.api("POST", f"{source.path}/{export}/cancel")
            elif how == "delete":
                assert source.api("DELETE", f"{source.path}/{export}").status == 204
            else:
                assert source.api("DELETE", f"/memory_banks/{source.bank}/source").status == 204
                clean_up(world)

        one.finish = finished
        return one

    monkeypatch.setattr(world.blobs, "upload", finishing)
    assert source.work() == [[]]
    assert world.blobs.kept == {}


def clean_up(world: World) -> None:
    for message in [message for message in world.ingestion.sent if "clean" in message]:
        cleaning.clean(world, Key(*message["clean"]))


def test_deleting_removes_record_and_file(source: Source, world: World) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    source.work()
    assert source.api("DELETE", f"{source.path}/{export}").status == 204
    assert world.blobs.kept == {}
    assert source.api("GET", f"{source.path}/{export}").json["error"]["code"] == "export_not_found"
    assert source.api("DELETE", f"{source.path}/{export}").status == 404


def test_deleting_dies_half_way_and_is_repeated(source: Source, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    source.work()
    with monkeypatch.context() as broken:
        broken.setattr(world.blobs, "delete", failing(BlobsUnavailable("gone")))
        assert source.api("DELETE", f"{source.path}/{export}").status == 503
    assert len(world.blobs.kept) == 1
    assert source.api("DELETE", f"{source.path}/{export}").status == 204
    assert world.blobs.kept == {}


@pytest.mark.parametrize("what", ["", "/source"])
def test_files_go_with_the_source_and_the_bank(source: Source, world: World, what: str) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    source.work()
    assert source.api("DELETE", f"/memory_banks/{source.bank}{what}").status == 204
    assert source.api("GET", f"{source.path}/{export}/download").status == 404
    clean_up(world)
    assert world.blobs.kept == {}
    assert not [item for item in world.table.everything() if item.get("kind") == "export"]


def test_what_is_gone_is_not_exported(source: Source, world: World) -> None:
    source.api.write(source.bank, "forgotten", key="f")
    source.api.write(source.bank, "kept", key="k")
    source.api("DELETE", f"/memory_banks/{source.bank}/entries", query={"key": "f"})
    world.clock.advance(3 * DAY)
    source.api.write(source.bank, "new", key="k")
    assert source.lines() == ["kept", "new"]
    source.api("PUT", f"/memory_banks/{source.bank}", body={"retention_days": 2})
    assert source.lines() == ["new"]


# --------------------------------------------------------------------------------------------------------------------
# Deaths


class Killed(BaseException):
    """The process dies: nothing catches it."""


def failing(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def test_an_export_whose_message_was_lost_is_made_all_the_same(
    source: Source, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.api.write(source.bank)
    with monkeypatch.context() as broken:
        broken.setattr(world.exports, "send", failing(QueueUnavailable("gone")))
        export = source.create()["id"]
    assert source.work() == []
    world.clock.advance(exports.STALLED_MS / 1000)
    sweeping.sweep(world, "compaction", deadline=world.clock.now() + 10_000)
    source.work()
    assert source.get(export)["status"] == "completed"


def test_killed_at_any_call_it_is_resumed_or_fails_with_its_reason(source: Source, world: World) -> None:
    """Every call to table and bucket in turn; each time the sweep has another attempt made, and the file is whole."""
    for number in range(5):
        source.api.write(source.bank, f"text {number}", key=f"k{number % 2}")
    calls = 0
    while True:
        calls += 1
        export = source.create()["id"]
        message = world.exports.sent.pop()
        with killing(world, calls) as spent, suppress(Killed):
            exporting.handle(world, message, deadline=world.clock.now() + 900_000)
        if not spent.killed:
            break
        for _ in range(4):
            world.clock.advance(exports.STALLED_MS / 1000)
            sweeping.sweep(world, "compaction", deadline=world.clock.now() + 10_000)
            source.work()
        assert source.get(export)["status"] == "completed", calls
        contents = [one["content"] for one in read("jsonl", source.download(export))]
        assert sorted(contents) == [f"text {number}" for number in range(5)], calls
        assert source.api("DELETE", f"{source.path}/{export}").status == 204
        assert world.blobs.kept == {}, calls
    assert calls > 8


class killing:
    """Dies after the n-th call to the table or the bucket took effect."""

    def __init__(self, world: World, calls: int) -> None:
        self._world, self._left, self.killed = world, calls, False

    def __enter__(self) -> killing:
        self._table, self._blobs = self._world.table, self._world.blobs
        self._world.table, self._world.blobs = _Counting(self._table, self), _Counting(self._blobs, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._world.table, self._world.blobs = self._table, self._blobs

    def count(self) -> None:
        """One more call; perhaps the last. Afterwards the process does nothing any more."""
        self._left -= 1
        if self._left <= 0:
            self.killed = True
            raise Killed


class _Counting:
    def __init__(self, inner: Any, killer: killing) -> None:
        self._inner, self._killer = inner, killer

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def counted(*args: Any, **options: Any) -> Any:
            if self._killer.killed:
                raise Killed
            result = method(*args, **options)
            self._killer.count()
            return _Counting(result, self._killer) if name == "upload" else result

        return counted


def test_the_third_death_is_the_last(source: Source, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    with monkeypatch.context() as broken:
        broken.setattr(world.blobs, "upload", failing(Killed()))
        for _ in range(3):
            with pytest.raises(Killed):
                exporting.handle(world, world.exports.sent.pop(), deadline=world.clock.now() + 900_000)
            world.clock.advance(exports.STALLED_MS / 1000)
            sweeping.sweep(world, "compaction", deadline=world.clock.now() + 10_000)
        source.work()
    found = source.get(export)
    assert (found["status"], "cut off 3 times" in found["error"]) == ("failed", True)
    assert source.api("GET", f"{source.path}/{export}/download").json["error"]["code"] == "export_not_ready"


@pytest.mark.parametrize("error", [BlobsUnavailable("away"), TableUnavailable("away")])
def test_what_is_away_for_a_while_gives_the_message_back(
    source: Source, world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    with monkeypatch.context() as broken:
        broken.setattr(
            *((world.blobs, "upload") if isinstance(error, BlobsUnavailable) else (world.table, "query")), failing(error)
        )
        message = world.exports.sent.pop()
        assert call(message)["batchItemFailures"] == [{"itemIdentifier": "1"}]
    assert source.get(export)["status"] == "running"
    world.clock.advance(exports.RUNS_MS / 1000)
    call(message)
    assert source.get(export)["status"] == "completed"


def test_what_nobody_foresaw_is_a_failure_that_is_told(source: Source, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    monkeypatch.setattr(exporting, "contains", failing(ZeroDivisionError()))
    source.work()
    found = source.get(export)
    assert (found["status"], "ZeroDivisionError" in found["error"], world.blobs.kept) == ("failed", True, {})


def test_too_long_an_export_says_so(source: Source, world: World) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    exporting.handle(world, world.exports.sent.pop(), deadline=world.clock.now() + 1_000)
    assert source.get(export)["status"] == "failed"
    assert "narrow date_from" in source.get(export)["error"]


def test_a_message_that_comes_twice_makes_one_file(source: Source, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    source.api.write(source.bank)
    export = source.create()["id"]
    message = world.exports.sent.pop()
    upload = world.blobs.upload

    def again(*asked: Any) -> Any:
        exporting.handle(world, message, deadline=world.clock.now() + 900_000)
        return upload(*asked)

    monkeypatch.setattr(world.blobs, "upload", again)
    call(message)
    call(message)
    assert (source.get(export)["status"], len(world.blobs.kept)) == ("completed", 1)


def test_a_compaction_meanwhile_tells_nothing_twice(api: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key's second page is read after a summary has replaced its first."""
    from memory_banks import compaction

    monkeypatch.setattr(exporting, "PAGE", 4)
    source = Source(api, world, api.bank(max_turns=6, compaction_prompt="Keep what matters."))
    texts = [f"The quick brown fox number {n} jumps over the lazy dog and runs far away home. " * 6 for n in range(12)]
    for text in texts:
        api.write(source.bank, text)
    world.ingest()
    source.create()
    query = world.table.query
    done: list[int] = []

    def compacting(pk: str, **asked: Any) -> Any:
        page = query(pk, **asked)
        if asked.get("limit") == 4 and not done:
            done.append(1)
            for message in list(world.compaction.sent):
                compaction.handle(world, message, deadline=world.clock.now() + 60_000)
        return page

    monkeypatch.setattr(world.table, "query", compacting)
    source.work()
    monkeypatch.setattr(world.table, "query", query)
    export = source.api("GET", source.path).json["data"][0]["id"]
    assert [one["content"] for one in read("jsonl", source.download(export))] == texts
    assert "summary" in {one["kind"] for one in read("jsonl", source.made())}
