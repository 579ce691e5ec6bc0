"""`memory-banks reconcile` against the real `api` function: an index with gaps and orphans is mended both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx
import pytest
from memory_banks import access, bootstrap
from memory_banks.bank import Bank

from clients.cli.main import main
from tests.doubles.gateway import event, reply
from tests.doubles.world import World
from tests.unit.test_rebuild import as_written, filled, held, plant_orphans, texts_found, wanted

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def reconcile(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """The command, whose requests reach the function as events; while it waits the service works on, and time passes."""
    from functions.api.handler import handler

    def answer(request: httpx.Request) -> httpx.Response:
        sent = event(
            request.method,
            request.url.path,
            query=request.url.query.decode(),
            headers=dict(request.headers),
            raw=request.content.decode() or None,
        )
        made = reply(handler(sent, None))
        return httpx.Response(made.status, headers=made.headers, text=made.text or "")

    def pause(_: float) -> None:
        world.drain()
        world.clock.advance(91)
        world.compaction.sent += world.compaction.delayed
        world.compaction.delayed = []

    real = httpx.Client
    monkeypatch.setattr(httpx, "Client", lambda **options: real(**options, transport=httpx.MockTransport(answer)))
    monkeypatch.setattr("clients.cli.reconcile.time.sleep", pause)
    monkeypatch.setenv("MEMORY_BANKS_URL", "http://service")
    monkeypatch.setenv("MEMORY_BANKS_API_KEY", access.create_key(world, "acme", scopes=("admin",), expires_at=None)[1])

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["reconcile", *arguments])
        return code, *capsys.readouterr()

    bootstrap.use(world)
    yield run
    bootstrap.use(None)


def damage(world: World, one: Bank) -> None:
    """Take a chunk and a window of two entries, and leave three documents that belong to nothing."""
    entries = world.load(one)
    plant_orphans(world, one)
    world.index.delete(one.reads.index, one.id, [f"{entries[4].internal_id}#0", f"{entries[20].internal_id}#w"])


def test_an_index_that_lacks_entries_and_has_orphans_is_mended_both_ways(world: World, reconcile: Command) -> None:
    one = filled(world)
    damage(world, one)
    assert held(world, one) != wanted(world, one)
    assert reconcile(one.id) == (0, "bank: 30 entries compared, 2 indexed again, 3 documents removed\n", "")
    assert held(world, one) == wanted(world, one)
    assert reconcile("bank") == (0, "bank: 30 entries compared, 0 indexed again, 0 documents removed\n", "")


def test_an_index_that_was_dropped_is_filled_again(world: World, reconcile: Command) -> None:
    one = filled(world)
    text = world.load(one)[7].content
    world.index.delete_partition(one.reads.index, one.id, one.generation, None)
    assert texts_found(world, one, text) == []
    assert reconcile(one.id)[:2] == (0, "bank: 30 entries compared, 30 indexed again, 0 documents removed\n")
    assert held(world, one) == wanted(world, one)
    assert texts_found(world, one, text)[0] == text


def test_documents_of_lost_keys_and_of_newer_versions_go(world: World, reconcile: Command) -> None:
    """As after the table was restored to an earlier time."""
    one = filled(world)
    newer = replace(as_written(world, one)[3], version=9)
    stranger = "Z" * 26
    lost = replace(newer, entry=newer.entry[:26] + stranger, partition=stranger, id=f"{newer.entry[:26]}{stranger}#0", version=1)
    world.index.write(one.reads.index, [newer, lost], one.dimensions)
    code, out, errors = reconcile(one.id)
    assert (code, errors) == (0, ""), out
    assert held(world, one) == wanted(world, one)


def test_another_bank_in_the_index_is_untouched(world: World, reconcile: Command) -> None:
    one, other = filled(world), filled(world)
    damage(world, one)
    damage(world, other)
    before = held(world, other)
    assert reconcile(one.id)[0] == 0
    assert held(world, other) == before != wanted(world, other)


def test_without_waiting_it_is_only_begun(world: World, reconcile: Command) -> None:
    one = filled(world)
    damage(world, one)
    code, out, _ = reconcile(one.id, "--no-wait")
    assert (code, out.startswith(f"bank ({one.id}): job "), out.endswith("queued\n")) == (0, True, True)
    assert held(world, one) != wanted(world, one)
    code, _, errors = reconcile(one.id)
    assert code == 1
    assert "rebuild" in errors
    world.drain()
    assert held(world, one) == wanted(world, one)
