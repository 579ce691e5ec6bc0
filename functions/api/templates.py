"""The route of templates."""

from __future__ import annotations

from .answers import Answer, answer, documented
from .lists import whole
from .router import Router

router = Router()


@router.get(
    "/memory_banks/templates", summary="List templates", tags=["Banks"], responses=documented("TemplateList", "All templates")
)
def list_templates() -> Answer:
    """Settings for the patterns that agents need; `defaults` is a body to create a bank with."""
    from memory_banks.templates import TEMPLATES

    call = router.call("read")
    return answer(whole([template.shown() for template in TEMPLATES], call.version))
