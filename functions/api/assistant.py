"""Routes of the assistant, under both of the names that the published API has for them."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from memory_banks.requests import AcceptProposal, AskAssistant, AssistantHistory

from .answers import Answer, answer, documented
from .router import Router

router = Router()
TAGS = ["Assistant"]
ROOTS = ("/memory_banks/ai-assistant", "/ai-assistant/memory-bank")


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


def last_conversation(query: Annotated[AssistantHistory, Query()]) -> Answer:
    """The newest turns of the account, oldest first."""
    from memory_banks import assistant

    call = router.call("read")
    found = assistant.history(call.ports, call.account, limit=query.limit, offset=query.offset)
    return answer(assistant.shown(found))


def accept(conversation_id: str, body: Annotated[AcceptProposal, Body()]) -> Answer:
    """Records whether the last proposal was taken."""
    from memory_banks import assistant

    call = router.call("write")
    assistant.record(call.ports, call.account, conversation_id, body.accepted)
    return answer({"ok": True})


for root in ROOTS:
    router.post(
        root,
        summary="Propose a configuration",
        tags=TAGS,
        responses=documented("Proposal", "The proposal"),
        operation_id=f"propose{ROOTS.index(root)}",
    )(propose)
    router.get(
        f"{root}/last-conversation",
        summary="What the assistant proposed",
        tags=TAGS,
        responses=documented("LastConversation", "The turns"),
        operation_id=f"lastConversation{ROOTS.index(root)}",
    )(last_conversation)
    router.patch(
        f"{root}/<conversation_id>",
        summary="Record a decision",
        tags=TAGS,
        responses=documented("Recorded", "Noted"),
        operation_id=f"accept{ROOTS.index(root)}",
    )(accept)
