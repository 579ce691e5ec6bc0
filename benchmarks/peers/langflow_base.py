"""A memory base of langflow-base, driven in its own process: bulk flushes and single runs, timed. Prints a line of JSON a figure.

Runs in an environment where langflow-base is installed (`benchmarks.capture` makes it); its database and its vectors are
SQLite files in a folder that goes at the end. Only the embedding is replaced, by the one of `hashed`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from hashed import embed, texts


def main() -> None:
    """Set up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--runs", type=int, default=30, help="single runs timed after each bulk flush")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "LANGFLOW_CONFIG_DIR": folder,
            "LANGFLOW_DATABASE_URL": f"sqlite:///{folder}/langflow.db",
            "LANGFLOW_AUTO_LOGIN": "true",
            "LANGFLOW_LOG_LEVEL": "ERROR",
            "LANGFLOW_DISABLE_WORKER_LOGS": "true",
            "DO_NOT_TRACK": "true",
            "LANGFLOW_DO_NOT_TRACK": "true",
        }
        asyncio.run(measure(arguments.sizes, arguments.runs))
        sys.stdout.flush()
        os._exit(0)  # its background tasks would go on


async def measure(sizes: list[int], runs: int) -> None:
    """A new base for each size: its bulk flush, then single runs of another session in the full base."""
    base = await _Langflow.started()
    for size in sizes:
        await base.renewed(f"base-{size}")
        await base.remember("bulk", list(islice(texts(1), size)))
        began = time.perf_counter()
        await base.flush("bulk")
        seconds = time.perf_counter() - began
        print(json.dumps({"what": "bulk", "size": size, "seconds": seconds, "ingested": await base.ingested("bulk")}), flush=True)
        took = []
        for number, text in enumerate(islice(texts(2), runs)):
            began = time.perf_counter()  # as with ours, the run's message is stored first
            await base.remember("single", [text])
            await base.run("single")
            while await base.ingested("single") <= number:
                await asyncio.sleep(0.002)
            took.append(time.perf_counter() - began)
        took.sort()
        p50, p95 = statistics.median(took), took[int(len(took) * 0.95)]
        print(json.dumps({"what": "run", "size": size, "p50": p50, "p95": p95}), flush=True)


class _Langflow:
    """The services of a process, a user, a flow and its memory base."""

    user: Any
    flow: Any
    base: Any

    @classmethod
    async def started(cls) -> _Langflow:
        from langflow.api.utils.kb_helpers import KBIngestionHelper
        from langflow.services.database.models.flow.model import Flow
        from langflow.services.database.models.user.model import User
        from langflow.services.deps import session_scope
        from langflow.services.utils import initialize_services

        async def hashed(*_: Any) -> Any:
            from langchain_core.embeddings import Embeddings

            class Hashed(Embeddings):
                def embed_documents(self, texts: list[str]) -> list[list[float]]:
                    return [embed(text) for text in texts]

                def embed_query(self, text: str) -> list[float]:
                    return embed(text)

            return Hashed()

        KBIngestionHelper.build_embeddings = staticmethod(hashed)
        await initialize_services()
        made = cls()
        async with session_scope() as session:
            made.user = User(username="bench", password="none", is_active=True, is_superuser=True)
            session.add(made.user)
            await session.flush()
            made.flow = Flow(name="bench", data={"nodes": [], "edges": []}, user_id=made.user.id)
            session.add(made.flow)
            await session.commit()
            await session.refresh(made.user)
            await session.refresh(made.flow)
        return made

    async def renewed(self, name: str) -> None:
        """Another base that takes each run at once; the one before is deleted."""
        from langflow.services.database.models.memory_base.model import MemoryBaseCreate
        from langflow.services.deps import get_memory_base_service

        self.service = get_memory_base_service()
        if hasattr(self, "base") and self.base:
            await self.service.delete(self.base.id, self.user.id)
            await self._forget()
        self.base = await self.service.create(
            MemoryBaseCreate(
                name=name,
                flow_id=self.flow.id,
                user_id=self.user.id,
                threshold=1,
                embedding_model="text-embedding-3-small",
                embedding_provider="OpenAI",
            ),
            self.user.id,
            is_superuser=True,
        )

    async def _forget(self) -> None:
        from langflow.services.database.models.message.model import MessageTable
        from langflow.services.deps import session_scope
        from sqlmodel import delete

        async with session_scope() as session:
            await session.exec(delete(MessageTable))
            await session.commit()

    async def remember(self, session_id: str, all_texts: list[str]) -> None:
        """Messages of finished runs, as its chat components store them."""
        from langflow.services.database.models.message.model import MessageTable
        from langflow.services.deps import session_scope

        now = datetime.now(UTC)
        async with session_scope() as session:
            session.add_all(
                MessageTable(
                    id=uuid.uuid4(),
                    flow_id=self.flow.id,
                    user_id=self.user.id,
                    run_id=uuid.uuid4(),
                    session_id=session_id,
                    sender="User" if number % 2 else "Machine",
                    sender_name="User" if number % 2 else "AI",
                    text=text,
                    is_output=not number % 2,
                    timestamp=now + timedelta(microseconds=number),
                    files=[],
                    category="message",
                    content_blocks=[],
                )
                for number, text in enumerate(all_texts)
            )
            await session.commit()

    async def flush(self, session_id: str) -> None:
        """Ask for the ingestion of a session and wait until it is done."""
        from langflow.services.deps import get_job_service

        job = uuid.UUID(await self.service.trigger_ingestion(self.base.id, self.user.id, self.user.id, session_id))
        while True:
            found = await get_job_service().get_job_by_job_id(job)
            if found and found.status.value not in {"queued", "in_progress"}:
                assert found.status.value == "completed", found
                return
            await asyncio.sleep(0.01)

    async def run(self, session_id: str) -> None:
        """A run of the flow has finished: what its API does then."""
        from langflow.services.database.models.jobs.model import JobType
        from langflow.services.deps import get_job_service

        job = uuid.uuid4()
        await get_job_service().create_job(job_id=job, flow_id=self.flow.id, user_id=self.user.id, job_type=JobType.WORKFLOW)
        await self.service.on_flow_output(self.flow.id, session_id, job)

    async def ingested(self, session_id: str) -> int:
        """Messages of a session that the base says it has."""
        from langflow.services.database.models.memory_base.model import MemoryBaseSession
        from langflow.services.deps import session_scope
        from sqlmodel import select

        async with session_scope() as session:
            found = await session.exec(
                select(MemoryBaseSession.total_processed)
                .where(MemoryBaseSession.memory_base_id == self.base.id)
                .where(MemoryBaseSession.session_id == session_id)
            )
            return int(found.first() or 0)


if __name__ == "__main__":
    main()
