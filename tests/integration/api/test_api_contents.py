"""Contents over the API: a bank's entries seen through its source, single ones removed."""

from __future__ import annotations

import math
from typing import Any

import pytest
from memory_banks import banks, contents, ingestion
from memory_banks.ports import Filter

from .conftest import Client, World

DAY = 86_400


def source_of(api: Client, bank: str) -> str:
    return str(api("GET", f"/memory_banks/{bank}").json["source_connection_id"])


def listing(api: Client, bank: str, **query: Any) -> Any:
    answer = api("GET", f"/sources/{source_of(api, bank)}/contents", query=query)
    assert answer.status == 200, answer
    return answer.json


def titles(api: Client, bank: str, **query: Any) -> list[str]:
    return [row["title"] for row in listing(api, bank, **query)["data"]]


def test_a_content_from_its_writing_to_its_end(api: Client, world: World) -> None:
    bank = api.bank()
    text = "First line of it\nand a second one"
    entry = api.write(
        bank, text, id="mine", tags=["a", "b"], metadata={"n": {"x": 1}, "s": "t"}, occurred_at="2026-01-02T03:04:05Z"
    )
    [row] = listing(api, bank)["data"]
    assert (row["content_status"], row["source_connection_content_version_id"], row["indexed_at"]) == ("indexing", None, None)
    world.clock.advance(2)
    world.ingest()
    [row] = listing(api, bank)["data"]
    content = row["content_version_id"]
    assert row == {
        "content_version_id": content,
        "source_connection_content_version_id": content,
        "content_status": "completed",
        "content_type": "text",
        "content_url": row["content_url"],
        "content_token_count": entry["tokens"],
        "content_word_count": 8,
        "error": None,
        "indexed_at": row["indexed_at"],
        "mime_type": "text/plain",
        "published_at": "2026-01-02T03:04:05.000Z",
        "pulled_at": entry["created_at"],
        "title": "First line of it",
        "entry_id": "mine",
    }
    assert row["indexed_at"] > row["pulled_at"]
    assert api("GET", f"/sources/{source_of(api, bank)}/contents/{content}").json == row
    detail = api("GET", f"/contents/{content}").json
    assert (detail["text_content"], detail["text_content_total_length"], detail["source_name"]) == (text, len(text), "Support")
    assert (detail["memory_bank_id"], detail["entry_id"], detail["source_connection_id"]) == (bank, "mine", source_of(api, bank))
    known = {one["name"]: one["value"] for one in detail["metadata"]}
    assert known == {"key": "k", "kind": "entry", "speaker": "user", "tags": "a,b", "metadata.n": '{"x": 1}', "metadata.s": "t"}
    part = api("GET", f"/contents/{content}", query={"start": 6, "end": 10}).json
    assert (part["text_content"], part["text_content_start"], part["text_content_end"]) == ("line", 6, 10)
    beyond = api("GET", f"/contents/{content}", query={"start": 900, "end": 1000}).json
    assert (beyond["text_content"], beyond["text_content_start"], beyond["text_content_end"]) == ("", len(text), len(text))
    assert api("GET", f"/contents/{content}", query={"start": 5, "end": 4}).status == 422
    gone = api("DELETE", f"/contents/{content}")
    assert (gone.status, gone.text) == (204, None)
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/embeddings")):
        assert api(method, f"/contents/{content}{path}").json["error"]["code"] == "content_not_found"
    assert listing(api, bank)["pagination"]["total"] == 0
    assert api("GET", f"/memory_banks/{bank}/entries/mine").status == 404


def test_pages_cover_every_entry_once_in_order_of_age(api: Client, world: World) -> None:
    bank = api.bank(type="general")
    for number in range(45):
        body = {"content": f"{number:02}", "key": f"k{number % 7}"} | ({"id": f"own{number}"} if number % 3 else {})
        assert api("POST", f"/memory_banks/{bank}/entries", body=body).status == 201
        world.clock.advance(1)
    other = api.bank(type="general")
    api("POST", f"/memory_banks/{other}/entries", body={"content": "other"})
    expected = [f"{number:02}" for number in range(45)]
    for order, wanted in (("asc", expected), ("desc", expected[::-1])):
        pages = [listing(api, bank, limit=20, page=page, order=order) for page in (1, 2, 3)]
        assert [row["title"] for page in pages for row in page["data"]] == wanted
        assert pages[1]["pagination"] == {"page": 2, "limit": 20, "total": 45, "pages": 3, "has_next": True, "has_prev": True}
    assert titles(api, bank) == expected[::-1][:20]
    assert listing(api, bank, page=1_000_000_000, limit=100)["data"] == []


def test_one_moment_s_entries_and_their_pointers_are_cut_by_no_batch(
    api: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry and the pointer of its caller-given id have one age; a batch of the index may end between them."""
    bank = api.bank()
    for number in range(23):
        api.write(bank, f"{number:02}", **({"id": f"i{number}"} if number % 2 else {}))
        world.clock.advance(0.001)
    for size in (2, 3, 4, 5, 7, 100):
        monkeypatch.setattr(contents, "_BATCH", size)
        for order in ("asc", "desc"):
            assert sorted(titles(api, bank, limit=100, order=order)) == [f"{number:02}" for number in range(23)], (size, order)


def test_sorted_and_filtered(api: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = api.bank()
    for text in ("pear", "apple", "quince"):
        api.write(bank, text)
        world.clock.advance(1)
    world.ingest()
    api.write(bank, "fig")
    assert titles(api, bank, sort="title", order="asc") == ["apple", "fig", "pear", "quince"]
    assert titles(api, bank, sort="title", limit=3) == ["quince", "pear", "fig"]
    assert titles(api, bank, sort="status", order="asc") == ["pear", "apple", "quince", "fig"]
    assert titles(api, bank, status="indexing") == ["fig"]
    assert listing(api, bank, status="completed", limit=2)["pagination"]["total"] == 3
    assert titles(api, bank, status="transcribing") == []
    ids = {row["title"]: row["content_version_id"] for row in listing(api, bank)["data"]}
    chosen = [ids["pear"], ids["fig"], ids["pear"], "nonsense", "", ids["pear"][26:]]
    assert titles(api, bank, content_version_id=chosen) == ["fig", "pear"]
    assert titles(api, bank, content_version_id=chosen, status="completed") == ["pear"]
    assert api("GET", f"/sources/{source_of(api, bank)}/contents", query={"status": "lost"}).status == 422
    monkeypatch.setattr(contents, "LOOKED_AT", 3)
    refused = api("GET", f"/sources/{source_of(api, bank)}/contents", query={"sort": "title"})
    assert (refused.status, refused.json["error"]["code"]) == (400, "too_many_contents")
    assert len(titles(api, bank)) == 4


def test_what_is_compacted_forgotten_or_expired_is_no_content(api: Client, world: World) -> None:
    bank = api.bank(max_turns=4, compaction_prompt="Keep it.", retention_days=10)
    for number in range(6):
        api.write(bank, f"turn {number}, about the weather and much else besides, at some length")
        world.clock.advance(1)
    old = {row["title"][:6]: row["content_version_id"] for row in listing(api, bank)["data"]}
    world.drain()
    page = listing(api, bank)
    kinds = [api("GET", f"/contents/{row['content_version_id']}").json["metadata"][1]["value"] for row in page["data"]]
    assert kinds == ["entry", "entry", "summary"] and page["pagination"]["total"] == 3
    gone = api("GET", f"/contents/{old['turn 0']}")
    assert (gone.status, gone.json["error"]["code"]) == (410, "compacted")
    assert api("GET", f"/sources/{source_of(api, bank)}/contents/{old['turn 0']}").status == 404
    assert titles(api, bank, content_version_id=[old["turn 0"]]) == []
    api.write(bank, "elsewhere", key="other")
    assert api("DELETE", f"/memory_banks/{bank}/entries", query={"key": "k"}).status == 204
    assert titles(api, bank) == ["elsewhere"]
    world.clock.advance(5 * DAY)
    api.write(bank, "newer", key="other")
    world.clock.advance(6 * DAY)
    page = listing(api, bank)
    assert ([row["title"] for row in page["data"]], page["pagination"]["total"]) == (["newer"], 1)
    assert titles(api, bank, sort="title") == ["newer"]


def test_deleting_a_summary_takes_what_it_replaced(api: Client, world: World) -> None:
    bank = api.bank(max_turns=4, compaction_prompt="Keep it.")
    for number in range(6):
        api.write(bank, f"turn {number}, about the weather and much else besides, at some length")
    world.drain()
    summary = listing(api, bank, order="asc")["data"][0]["content_version_id"]
    assert summary.endswith("S")
    assert api("DELETE", f"/contents/{summary}").status == 204
    assert listing(api, bank)["pagination"]["total"] == 2
    assert api("GET", f"/contents/{summary}").status == 404


def test_a_content_that_can_not_be_indexed_says_why(api: Client, world: World) -> None:
    bank = api.bank()
    api.write(bank, "strange")
    found = banks.get(world, "acme", bank)
    for _ in range(len(ingestion.RETRY_HOURS) + 1):
        entry = world.load(found)[0]
        ingestion.settle(world, found, entry.partition, [entry], {entry.sort: "the model refuses it"})
    [row] = listing(api, bank, status="failed")["data"]
    assert (row["error"], row["source_connection_content_version_id"]) == ("the model refuses it", None)
    assert api("GET", f"/contents/{row['content_version_id']}").json["content_status"] == "failed"


def test_embeddings_are_those_of_the_index(api: Client, world: World) -> None:
    bank = api.bank(mode="custom", chunk_size=60, chunk_overlap=10)
    text = " ".join(f"Sentence number {number} is here." for number in range(12))
    api.write(bank, text)
    world.ingest()
    content = listing(api, bank)["data"][0]["content_version_id"]
    whole = api("GET", f"/contents/{content}/embeddings").json
    total = whole["pagination"]["total"]
    assert total == len(whole["data"]) > 3
    for row in whole["data"]:
        assert row["text"] == text[row["text_start"] : row["text_end"]]
        assert math.isclose(math.hypot(*row["vector"]), 1, rel_tol=1e-6)
        assert row["batch_size"] == (10 if int(row["id"].rpartition("-")[2]) < 10 else total - 10)
    part = api("GET", f"/contents/{content}/embeddings", query={"limit": 2, "page": 2}).json
    assert [(row["id"], row["vector"]) for row in part["data"]] == [(row["id"], row["vector"]) for row in whole["data"][2:4]]
    assert part["pagination"]["pages"] == math.ceil(total / 2)
    assert api("GET", f"/contents/{content}/embeddings", query={"page": 99}).json["data"] == []
    found = banks.get(world, "acme", bank)
    [vectors, *_] = world.index.search(
        found.reads.index,
        Filter(found.id, found.generation),
        vector=whole["data"][3]["vector"],
        text=None,
        forms=["chunk"],
        size=1,
    )
    assert vectors.hits[0].start == whole["data"][3]["text_start"] and vectors.hits[0].score > 0.999_999


def test_embeddings_that_take_too_long_are_a_503_that_says_what_helps(
    api: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = api.bank(mode="custom", chunk_size=50, chunk_overlap=0)
    content = contents.id_of(bank, api.write(bank, "Some words. " * 100)["id"])
    found = banks.get(world, "acme", bank)
    embedder = world.embedders(found.embedding_model, found.dimensions)
    embed = embedder.embed

    def slowly(_: Any, texts: list[str]) -> Any:
        world.clock.advance(20)
        return embed(texts)

    monkeypatch.setattr(type(embedder), "embed", slowly)
    refused = api("GET", f"/contents/{content}/embeddings", query={"limit": 100})
    assert (refused.status, "(limit)" in refused.json["error"]["message"]) == (503, True)
    assert api("GET", f"/contents/{content}/embeddings", query={"limit": 10}).status == 200


@pytest.mark.parametrize(
    "content", ["x", "0" * 78, "8" + "0" * 77, "é" * 78, "a" * 78, "0" * 10_000, "%00", "0" * 25 + "L" + "0" * 52]
)
def test_what_is_no_id_is_a_404(api: Client, content: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/embeddings")):
        assert api(method, f"/contents/{content}{path}").status == 404


def test_nothing_is_left_of_a_source_that_was_deleted(api: Client, world: World) -> None:
    bank = api.bank()
    api.write(bank)
    source, content = source_of(api, bank), listing(api, bank)["data"][0]["content_version_id"]
    api("DELETE", f"/memory_banks/{bank}/source")
    assert api("GET", f"/sources/{source}/contents").status == 404
    assert api("GET", f"/contents/{content}").status == 404
    api.write(bank, "anew")
    assert titles(api, bank) == ["anew"]


def test_reading_needs_no_right_to_write(api: Client, world: World) -> None:
    bank = api.bank()
    api.write(bank)
    content = listing(api, bank)["data"][0]["content_version_id"]
    reader = Client(world, world.key("acme", "read"))
    assert reader("GET", f"/contents/{content}").status == 200
    assert reader("DELETE", f"/contents/{content}").status == 403
