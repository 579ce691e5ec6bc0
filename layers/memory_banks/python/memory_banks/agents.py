"""Which agents and flows use a bank: registered by hand, or noted when a request names them.

One item each, `N#{bank} / {agent}`; they go with the bank (`generations`), not with its source.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .bank import Bank
from .errors import Conflict, NotFound
from .ports import ConditionFailed, Contended, Delete, Is, Item, Key, Ports, Put, TableUnavailable, Update
from .remembering import Remembered

MOST = 200
"""Agents of a bank."""

_noted: Remembered[bool] = Remembered(600_000)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent or a flow that uses a bank."""

    id: str
    name: str
    url: str | None = None

    def shown(self) -> dict[str, Any]:
        """As the API shows it."""
        return {"agent_id": self.id, "agent_name": self.name, "url": self.url}


def agents_pk(bank_id: str) -> str:
    """The table partition of a bank's agents."""
    return f"N#{bank_id}"


def register(ports: Ports, bank: Bank, agent: Agent) -> Agent:
    """Register an agent, or change its name and address. `Conflict` when the bank has as many as it may have."""
    key = Key(agents_pk(bank.id), agent.id)
    change = {"name": agent.name} | ({"url": agent.url} if agent.url else {})
    removed = () if agent.url else ("url",)
    try:
        ports.table.write(Update(key, set=change, remove=removed, when=(Is("pk", "exists"),)))
    except ConditionFailed:
        if ports.table.count(key.pk) >= MOST:
            raise Conflict(f"The bank has {MOST} agents already; remove one first.", code="too_many_agents") from None
        ports.table.write(Put({"pk": key.pk, "sk": key.sk} | change))
    return agent


def note(ports: Ports, bank_id: str, agent_id: str | None) -> None:
    """Register an agent that a request has named, under its id, unless it is known. What hinders it never fails the request."""
    if agent_id is None:
        return
    name, now = f"{bank_id}/{agent_id}", ports.clock.now()
    if _noted.get(ports.table, name, now):
        return
    with suppress(TableUnavailable, Contended, ConditionFailed):
        key = Key(agents_pk(bank_id), agent_id)
        if ports.table.read([key])[0] is None and ports.table.count(key.pk) < MOST:
            ports.table.write(Put({"pk": key.pk, "sk": key.sk, "name": agent_id}, when=(Is("pk", "missing"),)))
        _noted.put(ports.table, name, True, now)


def unregister(ports: Ports, bank: Bank, agent_id: str) -> None:
    """Forget an agent; the next request that names it notes it again. `NotFound` when there is none."""
    try:
        ports.table.write(Delete(Key(agents_pk(bank.id), agent_id), when=(Is("pk", "exists"),)))
    except ConditionFailed:
        raise NotFound("There is no such agent.") from None
    _noted.forget(ports.table, f"{bank.id}/{agent_id}")


def listed(ports: Ports, bank: Bank) -> list[Agent]:
    """The agents of a bank, by name."""
    items: list[Item] = []
    after: str | None = None
    while True:
        page = ports.table.query(agents_pk(bank.id), after=after)
        items += page.items
        if page.after is None:
            break
        after = page.after
    found = [Agent(item["sk"], item["name"], item.get("url")) for item in items]
    return sorted(found, key=lambda agent: (agent.name.casefold(), agent.id))
