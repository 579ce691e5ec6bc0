"""The promises, checked against all that a service holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from memory_banks import chunking, entries, homes, ids, partitions, search
from memory_banks.entries import Entry
from memory_banks.errors import NotFound
from memory_banks.ports import Item

from tests.faults.life import Life, told_in

Shown = dict[str, list[Entry]]
"""What Load shows, by key."""


def check(life: Life, *, settled: bool = True, searched: bool = True) -> None:
    """Every promise that holds at any moment; with `settled`, also what holds once the schedules have run for some hours."""
    with life.gate.open():
        try:
            life.current()
        except NotFound:
            _nothing_left(life, settled)
            return
        items = life.memory_table.everything()
        shown = {head.key: life.load(head.key) for head in partitions.heads(life.memory_table, life.current())}
        for key, found in shown.items():
            _partition(life, key, found)
        _remembered(life, shown)
        if searched:
            _found(life, shown)
        if settled:
            _nothing_dead(life, items)
            _index_equals_table(life, shown)
            _nothing_due(life, items)


def _remembered(life: Life, shown: Shown) -> None:
    """Each note is shown once, as an entry or as told by a summary, when it must be; and never when it must not."""
    places = Counter(number for found in shown.values() for entry in found for number in told_in(entry.content))
    cutoff = life.current().cutoff(life.clock.now())
    sheds = life.sheds
    for number, note in life.expected.notes.items():
        expired = cutoff is not None and note.created_at <= cutoff
        least = int(not note.gone and not note.doubts and not expired)
        if places[number] == 0 and sheds and least:
            _shed_in_order(life, number, shown[note.key])
            least = 0
        most = 0 if note.gone else 1
        assert least <= places[number] <= most, f"note{number} ({note}, expired: {expired}) is remembered {places[number]} times"
    for batch in life.expected.batches:
        there = {places[number] for number in batch}
        assert len(there) == 1 or sheds or cutoff, f"one transaction, half of it visible: {dict(places)}, {batch}"


def _shed_in_order(life: Life, number: int, shown: list[Entry]) -> None:
    """Without a prompt the oldest go, as long as a threshold is exceeded."""
    left = [entry.created_at for entry in shown if entry.kind == "entry"]
    mine = life.expected.notes[number]
    newer = [
        other
        for other, note in life.expected.notes.items()
        # In the shards of a general bank, what was written in the same millisecond may swap.
        if (other > number or (other != number and note.created_at >= mine.created_at)) and (note.gone or note.doubts)
    ]
    assert left or newer, f"note{number} was the newest"
    assert not left or min(left) >= mine.created_at, f"note{number} is lost, older ones live"


def _partition(life: Life, key: str, shown: list[Entry]) -> None:
    """Order, one summary, the view's own consistency, and counters equal to a recount."""
    bank = life.current()
    partition, _ = homes.find(life.memory_table, bank, key)
    found = partitions.read_all(life.memory_table, bank, partition)
    if found is None:
        assert shown == [], "nothing was ever written where the key lives"
        return
    head, shards = found
    pk = partitions.partition_pk(bank, partition)
    living: list[Entry] = []
    position: str | None = "E#" + head.watermark
    while position is not None:
        page = life.memory_table.query(pk, after=position, last="E~")
        living += [entries.from_item(item) for item in page.items]
        position = page.after
    counted = partitions.count(head, shards)
    recount = partitions.Counters(
        sum(entry.kind == "entry" for entry in living), sum(entry.tokens for entry in living), sum(entry.chunks for entry in living)
    )
    assert counted == recount, f"the counters of {key} say {counted}, a recount {recount}"
    summaries = [entry for entry in living if entry.kind == "summary"]
    assert len(summaries) <= 1, "two summaries of one key"
    if summaries:
        assert living[0] is summaries[0] and summaries[0].ulid == head.watermark, "a summary in the middle of the dialogue"
        assert head.summary == summaries[0].sort
    assert [entry.sort for entry in shown] == sorted(entry.sort for entry in shown)
    if bank.conversation and life.ordered:
        first_words = [told_in(entry.content)[0] for entry in shown if entry.kind == "entry" and entry.version == 1]
        assert first_words == sorted(first_words), f"order: {first_words}"
    cutoff = bank.cutoff(life.clock.now())
    assert cutoff is None or all(entry.created_at > cutoff for entry in shown), "an expired entry is shown"


def _found(life: Life, shown: Shown) -> None:
    """Search, by meaning and words, shows nothing that Load does not."""
    bank = life.current()
    alive = {entry.internal_id: entry for found in shown.values() for entry in found}
    for number, note in list(life.expected.notes.items())[:2]:
        for keys in (None, [note.key]):
            for hit in search.search(life, bank, search.SearchRequest(f"note{number} words", keys=keys)):
                assert hit.entry.internal_id in alive, f"search shows what is gone: {hit.entry.content}"
                assert hit.entry.content == alive[hit.entry.internal_id].content


def _nothing_dead(life: Life, items: list[Item]) -> None:
    """What is dead is gone from the table."""
    bank = life.current()
    cutoff = bank.cutoff(life.clock.now())
    heads = {head.partition: head for head in partitions.heads(life.memory_table, bank)}
    for item in items:
        kind = item["pk"].split("#")[0]
        assert kind not in "PHI" or item["pk"].split("#")[2] == str(bank.generation), f"left of an old generation: {item}"
        assert not item["sk"].startswith("X#"), f"a clean-up that does not end: {item}"
        if item["sk"].startswith("E#"):
            assert partitions.alive(heads[item["partition"]], entries.from_item(item), cutoff), f"dead, and still there: {item}"
        if kind == "I":
            head = heads[item["partition"]]
            # The pointer of a compacted entry stays while its summary may, so that importing twice doubles nothing.
            kept = life.memory_table.read([partitions.entry_key(bank, item["partition"], item["sort"])])[0] is not None
            expired = cutoff is not None and ids.milliseconds_of(item["sort"]) <= cutoff
            compacted = head.forgotten < item["sort"] <= head.watermark
            assert kept or (compacted and not expired), f"the pointer of a dead entry: {item}"
        if item["sk"].startswith("C#"):
            head = heads[item["pk"].split("#")[3]]
            expired = cutoff is not None and ids.milliseconds_of(item["sk"][2:]) <= cutoff
            assert item["sk"][2:] > head.forgotten and not expired, f"the trace of an erased entry: {item}"


def _index_equals_table(life: Life, shown: Shown) -> None:
    bank = life.current()
    wanted: dict[str, tuple[int | None, tuple[tuple[str, int], ...]]] = {}
    for living in shown.values():
        for entry in living:
            members = ((entry.internal_id, entry.version),)
            assert entry.indexed, f"not indexed: {entry}"
            for number in range(len(chunking.spans(entry.content, bank.chunk_size, bank.chunk_overlap))):
                wanted[f"{entry.internal_id}#{number}"] = (entry.version, members)
        if bank.conversation:
            wanted |= _windows([entry for entry in living if entry.kind == "entry"])
    found = {
        one.id: (one.version if one.form == "chunk" else None, tuple((m.entry, m.version) for m in one.members))
        for _, one in life.memory_index.everything()
    }
    missing = {one: wanted[one] for one in wanted.keys() - found.keys()}
    surplus = {one: found[one] for one in found.keys() - wanted.keys()}
    other = {one: (found[one], wanted[one]) for one in wanted.keys() & found.keys() if found[one] != wanted[one]}
    assert not (missing or surplus or other), f"index ≠ table: missing {missing}, surplus {surplus}, other {other}"


def _windows(spoken: list[Entry]) -> dict[str, tuple[int | None, tuple[tuple[str, int], ...]]]:
    return {
        f"{middle.internal_id}#w": (None, tuple((one.internal_id, one.version) for one in spoken[max(place - 1, 0) : place + 2]))
        for place, middle in enumerate(spoken[:-1])
    }


def _nothing_due(life: Life, items: list[Item]) -> None:
    """No mark is left but a bank's own, for when the next entry expires."""
    now = life.clock.now()
    for item in items:
        if "due_pk" in item:
            assert item["pk"].startswith("B#") and item["due_at"] > now - 3_600_000, f"due for ever: {_brief(item)}"
    bank = life.current()
    if bank.retention_days:
        [record] = [item for item in items if item["pk"].startswith("B#")]
        assert "due_at" in record, "a bank with a retention that no pass will ever look at"


def _nothing_left(life: Life, settled: bool) -> None:
    """A deleted bank leaves nothing but jobs, which end by themselves."""
    if settled:
        left = [item for item in life.memory_table.everything() if item["pk"][0] not in "JR"]
        assert not left, f"left of a deleted bank: {[_brief(item) for item in left]}"
        assert not life.memory_index.everything()


def _brief(item: Item) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "secret"}
