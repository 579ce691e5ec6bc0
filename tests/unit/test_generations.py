"""What a process remembers of a bank's generation holds for that bank in that table."""

from __future__ import annotations

from memory_banks import deletion

from tests.doubles.world import World


def reads_of_a_write(world: World, bank: object) -> int:
    before = world.table.reads
    world.write(bank, "text")  # type: ignore[arg-type]
    return int(world.table.reads - before)


def test_a_bank_of_the_same_id_in_another_table_is_read_once() -> None:
    one, other = World(), World()
    bank, same = one.bank(), other.bank()
    assert bank.id == same.id
    deletion.delete_source(one, bank, deadline=one.deadline())
    # Until it is known that the generation is another, a write reads twice; then once.
    assert reads_of_a_write(one, bank) - reads_of_a_write(one, bank) == 1
    assert reads_of_a_write(other, same) == reads_of_a_write(other, same)
