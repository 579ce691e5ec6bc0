"""Routes of contents: single entries of a bank, seen through its source."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from memory_banks import versions
from memory_banks.requests import ContentRange, ListContents, ListEmbeddings

from .answers import Answer, answer, documented, nothing
from .lists import listed
from .router import Router

router = Router()
TAGS = ["Contents"]


@router.get(
    "/sources/<source_connection_id>/contents",
    summary="List contents",
    tags=TAGS,
    responses=documented("ContentPage", "A page of contents"),
)
def list_contents(source_connection_id: str, query: Annotated[ListContents, Query()]) -> Answer:
    """The bank's entries, newest first; one written within the last second may be missing.

    Sorting by title or status, and filtering by status, is for banks of up to 10,000 entries: 400 `too_many_contents`.
    """
    from memory_banks import contents, exports

    call = router.call("read")
    bank = exports.bank_of_source(call.ports, call.account, source_connection_id)
    wanted = contents.Wanted(query.page, query.limit, query.sort, query.order, query.status, query.content_version_id)
    found = contents.listed(call.ports, bank, wanted, deadline=call.deadline)
    return answer(listed("contents", found.contents, versions.LATEST, page=query.page, limit=query.limit, total=found.total))


@router.get(
    "/sources/<source_connection_id>/contents/<content_id>",
    summary="Get a content's status",
    tags=TAGS,
    responses=documented("Content", "The content"),
)
def get_content_status(source_connection_id: str, content_id: str) -> Answer:
    """Whether it can be searched."""
    from memory_banks import contents, exports

    call = router.call("read")
    bank = exports.bank_of_source(call.ports, call.account, source_connection_id)
    return answer(contents.status(call.ports, bank, content_id))


@router.get("/contents/<content_id>", summary="Get a content", tags=TAGS, responses=documented("ContentDetail", "The content"))
def get_content(content_id: str, query: Annotated[ContentRange, Query()]) -> Answer:
    """With the characters of its text from `start` up to `end`."""
    from memory_banks import contents

    call = router.call("read")
    return answer(contents.detail(call.ports, call.account, content_id, query.start, query.end))


@router.delete(
    "/contents/<content_id>", summary="Delete a content", tags=TAGS, status_code=204, responses=documented(None, "Gone", 204)
)
def delete_content(content_id: str) -> Answer:
    """The entry is gone from every answer at once; with a summary go the entries it replaced."""
    from memory_banks import contents

    call = router.call("write")
    contents.delete(call.ports, call.account, content_id, deadline=call.deadline)
    return nothing()


@router.get(
    "/contents/<content_id>/embeddings",
    summary="List a content's embeddings",
    tags=TAGS,
    responses=documented("ContentEmbeddings", "A page of embeddings"),
)
def list_embeddings(content_id: str, query: Annotated[ListEmbeddings, Query()]) -> Answer:
    """Its chunks and their vectors: made again by the bank's model, because no index gives vectors back."""
    from memory_banks import contents

    call = router.call("read")
    found, total = contents.embeddings(
        call.ports, call.account, content_id, page=query.page, limit=query.limit, deadline=call.deadline
    )
    return answer(listed("embeddings", found, versions.LATEST, page=query.page, limit=query.limit, total=total))
