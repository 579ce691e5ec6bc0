"""A guided talk with the two graphs: `python -m examples.memory_service --offline`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from clients.cli.failure import Failure
from examples import models
from examples.memory import FINAL, NotDistilled
from examples.memory_service import chatbot, connection, memory_graph
from examples.offline import model_server, service
from examples.offline.distiller import distilled

QUICK = ("Hi, my name is Bob.", "I like jazz and chess.", "My friend Ana plays the cello.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Talk, wait until memory has formed, and talk again. 1 when it could not."""
    parser = argparse.ArgumentParser(prog="python -m examples.memory_service", description=__doc__)
    parser.add_argument("--offline", action="store_true", help="models of rules and a service of its own, no network")
    parser.add_argument("--quiet", type=int, default=5, help="seconds after which a bank made here distils (default 5)")
    options = parser.parse_args(arguments)
    try:
        with _environment(options.offline, options.quiet):
            _show(connection.Memory())
    except (models.NoModel, service.NotStarted, NotDistilled, Failure) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _show(memory: connection.Memory) -> None:
    _ = memory.model  # One that is missing is told before the talk begins.
    bot = chatbot.build(memory, InMemorySaver())
    user, first, second = (f"{name}-{uuid4().hex[:6]}" for name in ("bob", "first", "second"))

    print("\n1. Three quick turns. Each is handed in as it ends, and nothing is distilled yet.\n")
    for said in QUICK:
        _turn(bot, user, first, said)

    print("\n2. The thread is quiet, and the service makes one distillation of the three turns.\n")
    started = time.monotonic()
    jobs = _distilled(memory, first)
    print(f"after {time.monotonic() - started:.1f} seconds: {len(jobs)} job, {jobs[0]['status']}")
    _tell(memory, user)

    print("\n3. Another thread knows it; another user does not.\n")
    _turn(bot, user, second, "What is my name?")
    _turn(bot, f"eve-{uuid4().hex[:6]}", "third", "What is my name?")

    print("\n4. Something changes, and memory_graph forms it at once.\n")
    _turn(bot, user, second, "Please call me Robert.")
    memory_graph.build(memory).invoke({"user_id": user, "thread_id": second})
    _tell(memory, user)


def _turn(bot: chatbot.Chatbot, user: str, thread: str, said: str) -> None:
    answer = bot.invoke({"messages": [HumanMessage(said)]}, {"configurable": {"user_id": user, "thread_id": thread}})
    print(f"[{thread}] {user}: {said}\n[{thread}] chatbot: {answer['messages'][-1].text}")


def _distilled(memory: connection.Memory, thread: str) -> list[dict[str, Any]]:
    """The distillations of a thread, when there is one and all have ended."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        jobs = [job for job in memory.bank.jobs() if job["key"] == thread]
        if jobs and all(job["status"] in FINAL for job in jobs):
            if jobs[0]["error"]:
                raise NotDistilled(f"job {jobs[0]['id']}: {jobs[0]['error']}")
            return jobs
        time.sleep(0.2)
    raise NotDistilled("nothing was distilled in five minutes")


def _tell(memory: connection.Memory, user: str) -> None:
    for item in memory.all(user):
        print(f"{item.namespace[-1]}: {item.value}")


@contextmanager
def _environment(offline: bool, quiet: int) -> Iterator[None]:
    """The variables that the graphs read; offline those of a service of its own."""
    os.environ.setdefault(connection.IDLE_SECONDS, str(quiet))
    if not offline:
        if service.named() is None:
            raise service.NotStarted(f"name a memory service ({service.URL} and {service.API_KEY}), or run with --offline")
        yield
        return
    with model_server.playing(distilled) as url:
        # Settings of the user's own (.env) are not for this service.
        others = {name: "" for name in os.environ if name.startswith("MEMORY_BANKS_")}
        with service.serving(environment=others | dict(model_server.settings(url))) as own:
            os.environ |= {service.URL: own.url, service.API_KEY: own.api_key, models.MODEL: models.OFFLINE}
            yield


if __name__ == "__main__":
    sys.exit(main())
