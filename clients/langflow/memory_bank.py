"""Langflow component: keeps a flow's turns in a memory bank, and finds what was said.

One file without imports of this project: put it into a folder of `LANGFLOW_COMPONENTS_PATH`, or paste it into a custom
component of Langflow's editor.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from typing import Any, ClassVar

import httpx
from lfx.custom import Component
from lfx.io import BoolInput, IntInput, MessageTextInput, Output, SecretStrInput, StrInput
from lfx.schema.data import Data
from lfx.schema.dataframe import DataFrame
from lfx.schema.message import Message

VERSION = "2026-10-21"
TRIES, LONGEST_PAUSE = 5, 10.0
SECONDS = 30


class MemoryBankComponent(Component):  # type: ignore[misc]
    """A memory bank: retrieve before the model answers, capture what was said after it."""

    display_name = "Memory Bank"
    description = "Remembers a flow's conversations and finds what was said, in a Memory Banks service."
    icon = "brain"
    name = "MemoryBank"

    inputs: ClassVar[list[Any]] = [
        StrInput(
            name="url",
            display_name="Service URL",
            value="http://127.0.0.1:8000",
            info="Where Memory Banks answers.",
        ),
        SecretStrInput(name="api_key", display_name="API Key", value="MEMORY_BANKS_API_KEY", info="A key of that service."),
        StrInput(name="bank", display_name="Bank", info="Name or id of the memory bank.", required=True),
        MessageTextInput(name="search_query", display_name="Search Query", info="What to look for.", tool_mode=True),
        IntInput(name="top_k", display_name="Top K Results", value=5, advanced=True, info="How many memories to give."),
        BoolInput(
            name="filter_by_session",
            display_name="Filter by Session",
            value=True,
            advanced=True,
            info="Only memories of the current session. Off: of every session in the bank.",
        ),
        BoolInput(
            name="include_metadata",
            display_name="Include Metadata",
            value=True,
            advanced=True,
            info="With speaker, time, session, tags and metadata of each memory.",
        ),
        IntInput(name="max_tokens", display_name="Context Tokens", value=1_000, advanced=True, info="Size of the context at most."),
        MessageTextInput(name="user_message", display_name="User Message", info="To capture: what the user said."),
        MessageTextInput(name="answer", display_name="Answer", info="To capture: what the model answered."),
        MessageTextInput(
            name="user_id",
            display_name="User ID",
            advanced=True,
            info="Whose memory it is, for banks that distil profiles and notes.",
        ),
    ]

    outputs: ClassVar[list[Output]] = [
        Output(name="results", display_name="Results", method="retrieve", info="Memories, best first, each with its score."),
        Output(name="context", display_name="Context", method="give_context", info="Memories as text, ready for a prompt."),
        Output(name="captured", display_name="Captured", method="capture", info="Hands in the turn, to be remembered."),
    ]

    async def retrieve(self) -> DataFrame:
        """The memories nearest to the query."""
        query = (self.search_query or "").strip()
        if not query:
            return DataFrame(data=[])
        body = {"query": query, "top_k": self.top_k} | self._scope()
        found = await self._of_bank("POST", "/search", body)
        return DataFrame(data=[Data(**self._row(result)) for result in found["results"]])

    async def give_context(self) -> Message:
        """What is remembered of the query's matter, and what was said last, inside a budget."""
        if not self.filter_by_session:
            # A context has the newest turns of one session; without one, there is what a search finds.
            rows = await self.retrieve()
            return Message(text="\n".join(str(row["content"]) for row in rows.to_dict(orient="records")))
        body = {"query": (self.search_query or "").strip() or None, "max_tokens": self.max_tokens} | self._scope()
        answer = await self._of_bank("POST", "/context", {name: value for name, value in body.items() if value is not None})
        return Message(text=answer["text"])

    async def capture(self) -> Data:
        """Hand in what was said. The same run again counts once."""
        said = (("user", self.user_message), ("assistant", self.answer))
        messages = [{"sender": sender, "text": text} for sender, text in said if (text or "").strip()]
        if not messages:
            return Data(captured=False, reason="nothing was said")
        session, run, flow = self._session(), self._of_graph("run_id"), self._of_graph("flow_id")
        body: dict[str, Any] = {"key": session, "messages": messages}
        if run:
            # A flow may have this component more than once: what each hands in is a run of its own.
            told = "\0".join(f"{one['sender']}\0{one['text']}" for one in messages)
            body["run_id"] = f"{run}:{hashlib.sha256(told.encode()).hexdigest()[:16]}"
        body |= {"flow_id": flow} if flow else {}
        body |= {"user_id": self.user_id} if self.user_id else {}
        answer = await self._of_bank("POST", "/runs", body)
        return Data(captured=True, **answer)

    # ----------------------------------------------------------------------------------------------------------------

    def _row(self, result: dict[str, Any]) -> dict[str, Any]:
        entry = result["entry"]
        row = {"content": result["matched_text"] or entry["content"], "_score": result["score"]}
        if not self.include_metadata:
            return row
        row |= {"session_id": entry["key"], "sender": entry["speaker"], "timestamp": entry["occurred_at"], "id": entry["id"]}
        row |= {"kind": entry["kind"], "tags": entry["tags"]}
        # The caller's own names never hide ours.
        return (entry["metadata"] or {}) | row

    def _scope(self) -> dict[str, Any]:
        return {"key": self._session()} if self.filter_by_session else {}

    def _session(self) -> str:
        session = self._of_graph("session_id")
        if not session:
            raise ValueError("The run has no session id: give one, or (to retrieve) turn Filter by Session off.")
        return session

    def _of_graph(self, name: str) -> str:
        try:
            return str(getattr(self.graph, name, "") or "")
        except (AttributeError, ValueError):
            # Outside a flow there is no graph, and a graph that does not run has no run id.
            return ""

    async def _of_bank(self, method: str, path: str, body: dict[str, Any]) -> Any:
        key = self.api_key or os.environ.get("MEMORY_BANKS_API_KEY") or ""
        headers = {"X-API-Key": key, "Seclai-Version": VERSION}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, timeout=SECONDS) as http:
            bank = await self._bank_id(http)
            return await _asked(http, method, f"/memory_banks/{bank}{path}", json=body)

    async def _bank_id(self, http: httpx.AsyncClient) -> str:
        named: list[str] = []
        page, more = 1, True
        while more:
            answer = await _asked(http, "GET", "/memory_banks", params={"page": page, "limit": 100})
            for bank in answer["data"]:
                if bank["id"] == self.bank:
                    return str(bank["id"])
                if bank["name"] == self.bank:
                    named.append(bank["id"])
            page, more = page + 1, answer["pagination"]["has_next"]
        if len(named) != 1:
            many = f"several memory banks are called {self.bank!r}; give the id of one" if named else ""
            raise ValueError(many or f"there is no memory bank {self.bank!r}")
        return named[0]


async def _asked(http: httpx.AsyncClient, method: str, path: str, **request: Any) -> Any:
    """The answer's JSON. A service that is away for a moment is asked again; ValueError says what it refuses."""
    for attempt in range(TRIES):
        last = attempt == TRIES - 1
        try:
            answer = await http.request(method, path, **request)
        except httpx.TransportError as error:
            if last:
                raise ValueError(f"Memory Banks can't be reached at {http.base_url}: {error}") from error
            answer = None
        if answer is not None and (answer.status_code not in {429, 502, 503, 504} or last):
            break
        asked = answer.headers.get("retry-after", "") if answer is not None else ""
        await asyncio.sleep(min(LONGEST_PAUSE, float(asked) if asked.isdigit() else 0.5 * 2**attempt))
    assert answer is not None
    if answer.is_error:
        raise ValueError(f"Memory Banks answered {answer.status_code}: {_reason(answer)}")
    return answer.json()


def _reason(answer: httpx.Response) -> str:
    try:
        body = answer.json()
        detail = body.get("detail")
        if isinstance(detail, list):
            return "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in detail)
        return str(body["error"]["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return answer.text[:200]
