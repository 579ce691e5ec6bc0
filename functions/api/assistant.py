"""Routes of the assistant, under both of the names that the published API has for them."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from memory_banks.requests import AcceptProposal, AskAssistant, AssistantHistory

from .answers import Answer, answer, documented
from .router import Router

router = Router()
TAGS = ["Assistant"]


PROPOSED = documented("Proposal", "The proposal")
TURNS = documented("LastConversation", "The turns")
RECORDED = documented("Recorded", "Noted")


@router.post("/memory_banks/ai-assistant", summary="Propose a configuration", tags=TAGS, responses=PROPOSED)
def propose(body: Annotated[AskAssistant, Body()]) -> Answer:
    """Proposes a configuration and applies nothing. 400 `model_failed` when the model fails."""
    from memory_banks import assistant

    call = router.call("read")
    proposed = assistant.propose(
        call.ports,
        call.account,
        body.user_input,
        current=body.current_config,
        conversation_id=body.conversation_id,
        history_since=body.history_since,
        deadline=call.deadline,
    )
    return answer(proposed.shown())


@router.get("/memory_banks/ai-assistant/last-conversation", summary="What the assistant proposed", tags=TAGS, responses=TURNS)
def last_conversation(query: Annotated[AssistantHistory, Query()]) -> Answer:
    """The newest turns of the account, oldest first."""
    from memory_banks import assistant

    call = router.call("read")
    found = assistant.history(call.ports, call.account, limit=query.limit, offset=query.offset)
    return answer(assistant.shown(found))


@router.patch("/memory_banks/ai-assistant/<conversation_id>", summary="Record a decision", tags=TAGS, responses=RECORDED)
def accept(conversation_id: str, body: Annotated[AcceptProposal, Body()]) -> Answer:
    """Records whether the last proposal of a conversation was taken."""
    from memory_banks import assistant

    call = router.call("write")
    assistant.record(call.ports, call.account, conversation_id, body.accepted)
    return answer({"ok": True})


@router.post("/ai-assistant/memory-bank", summary="Propose a configuration", tags=TAGS, responses=PROPOSED)
def propose_again(body: Annotated[AskAssistant, Body()]) -> Answer:
    """The twin of `/memory_banks/ai-assistant`."""
    return propose(body)


@router.get("/ai-assistant/memory-bank/last-conversation", summary="What the assistant proposed", tags=TAGS, responses=TURNS)
def last_conversation_again(query: Annotated[AssistantHistory, Query()]) -> Answer:
    """The twin of `/memory_banks/ai-assistant/last-conversation`."""
    return last_conversation(query)


@router.patch("/ai-assistant/memory-bank/<conversation_id>", summary="Record a decision", tags=TAGS, responses=RECORDED)
def accept_again(conversation_id: str, body: Annotated[AcceptProposal, Body()]) -> Answer:
    """The twin of `/memory_banks/ai-assistant/{conversation_id}`."""
    return accept(conversation_id, body)
