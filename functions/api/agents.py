"""Routes of agents: who uses a bank."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body
from memory_banks import banks
from memory_banks.errors import Invalid, NotFound
from memory_banks.ids import CALLER_ID
from memory_banks.requests import RegisterAgent

from .answers import Answer, answer, documented, nothing
from .lists import whole
from .router import Router

router = Router()
TAGS = ["Agents"]


@router.get("/memory_banks/<bank_id>/agents", summary="List agents", tags=TAGS, responses=documented("AgentList", "All agents"))
def list_agents(bank_id: str) -> Answer:
    """Agents and flows that use the bank: registered, or named by a write, load, search or context."""
    from memory_banks import agents

    call = router.call("read")
    found = agents.listed(call.ports, banks.get(call.ports, call.account, bank_id))
    return answer(whole([agent.shown() for agent in found], call.version))


@router.put(
    "/memory_banks/<bank_id>/agents/<agent_id>", summary="Register an agent", tags=TAGS, responses=documented("Agent", "The agent")
)
def register_agent(bank_id: str, agent_id: str, body: Annotated[RegisterAgent | None, Body()] = None) -> Answer:
    """Registers it, or changes its name and address."""
    from memory_banks import agents

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    if not CALLER_ID.fullmatch(agent_id):
        raise Invalid(("path", "agent_id"), "an agent's id has 1 to 128 characters of A-Z, a-z, 0-9, '.', '_' and '-'")
    name = body.agent_name if body else None
    agent = agents.Agent(agent_id, name or agent_id, body.url if body else None)
    return answer(agents.register(call.ports, bank, agent).shown())


@router.delete(
    "/memory_banks/<bank_id>/agents/<agent_id>",
    summary="Unregister an agent",
    tags=TAGS,
    status_code=204,
    responses=documented(None, "Gone", 204),
)
def unregister_agent(bank_id: str, agent_id: str) -> Answer:
    """A later request that names the agent registers it again."""
    from memory_banks import agents

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    if not CALLER_ID.fullmatch(agent_id):
        raise NotFound("There is no such agent.")
    agents.unregister(call.ports, bank, agent_id)
    return nothing()
