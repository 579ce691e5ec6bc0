"""Removing a whole generation of a bank: every partition, pointer and vector of a source that was deleted."""

from __future__ import annotations

from collections.abc import Sequence

from . import agents, exports, jobs, partitions
from .bank import Bank, Target, key_of
from .capture import ledger as ledgers
from .ports import Delete, Key, Ports

BATCH = 100
MOST = 2_000
"""Items removed by one call; the rest is for the next."""


def clean(ports: Ports, bank: Bank, targets: Sequence[Target]) -> bool:
    """Remove what is left of the generation, heads last, so that a death loses none of what is still to be found."""
    for target in targets:
        ports.index.delete_partition(target.index, bank.id, bank.generation, None)
    exports.clear(ports, bank)
    budget = MOST
    for group in range(partitions.HEAD_GROUPS):
        while True:
            page = ports.table.query(partitions.heads_pk(bank, group), limit=BATCH, attributes=[])
            if not page.items:
                break
            for head in page.items:
                for pk in (partitions.partition_pk(bank, head["sk"]), ledgers.runs_pk(bank, head["sk"])):
                    budget = _empty(ports, pk, budget)
                if budget <= 0:
                    return False
                ports.table.write(Delete(Key(head["pk"], head["sk"])))
                budget -= 1
        for pk in (partitions.pointers_pk(bank, group), ledgers.ledgers_pk(bank, group), ledgers.names_pk(bank, group)):
            budget = _empty(ports, pk, budget)
        if budget <= 0:
            return False
    if ports.table.read([key_of(bank.account, bank.id)])[0] is None:
        # The bank itself is gone: so are its jobs, and who used it.
        for pk in (jobs.key_of(bank.id, "").pk, agents.agents_pk(bank.id)):
            budget = _empty(ports, pk, budget)
    return budget > 0


def _empty(ports: Ports, pk: str, budget: int) -> int:
    """Remove the items of a table partition; gives what is left of the budget."""
    while budget > 0:
        page = ports.table.query(pk, limit=min(BATCH, budget), attributes=[])
        if not page.items:
            break
        ports.table.transact([Delete(Key(item["pk"], item["sk"])) for item in page.items])
        budget -= len(page.items)
    return budget
