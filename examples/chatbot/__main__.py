"""Talk to the chatbot: `python -m examples.chatbot --offline`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from clients.langgraph import MemoryBankStore
from examples import models
from examples.chatbot import graph, prompts
from examples.chatbot.scripted import ScriptedModel
from examples.offline import service

HELP = """/thread        begin another conversation: the old one is out of sight, what was learned is not
/user NAME     be somebody else
/memory        show what is remembered of you
/quit          leave (or Ctrl-D)"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Read lines and answer them until the end of input. 1 when there is no model or no service to talk to."""
    parser = argparse.ArgumentParser(prog="python -m examples.chatbot", description=__doc__)
    parser.add_argument("--offline", action="store_true", help="a model of rules, no network")
    parser.add_argument("--model", help=f"as LangChain names it, openai:gpt-4.1-mini; default {models.MODEL}")
    parser.add_argument("--user", default="you", help="whose memory it is (default: you)")
    parser.add_argument("--data-dir", type=Path, help="where a service of its own keeps memory (default: nowhere)")
    options = parser.parse_args(arguments)
    try:
        offline = options.offline or (options.model or os.environ.get(models.MODEL)) == models.OFFLINE
        model = ScriptedModel() if offline else models.chosen(options.model)
        with ExitStack() as stack:
            place = service.named() or stack.enter_context(service.serving(options.data_dir))
            store = stack.enter_context(MemoryBankStore(place.url, place.api_key))
            _talk(graph.build(model, store=store, checkpointer=InMemorySaver()), store, options.user)
    except (models.NoModel, service.NotStarted) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _talk(chatbot: graph.Chatbot, store: MemoryBankStore, user: str) -> None:
    print(f"You are {user}. Say something; /help tells what else there is.")
    threads = count(1)
    config = _config(user, next(threads))
    while (line := _line(f"{user}> ")) not in {None, "/quit"}:
        command, _, rest = (line or "").partition(" ")
        if command == "/thread":
            config = _config(user, next(threads))
            print("(another conversation)")
        elif command == "/user" and rest.strip():
            user = rest.strip()
            config = _config(user, next(threads))
        elif command == "/memory":
            item = store.get(graph.namespace(config), graph.KEY)
            print(item.value["memory"] if item else prompts.NO_MEMORY)
        elif command.startswith("/"):
            print(HELP)
        elif command:
            answer = chatbot.invoke({"messages": [HumanMessage(line)]}, config)
            print(answer["messages"][-1].text)


def _config(user: str, thread: int) -> RunnableConfig:
    return {"configurable": {"user_id": user, "thread_id": f"{user}-{thread}"}}


def _line(prompt: str) -> str | None:
    try:
        return input(prompt).strip()
    except EOFError:
        print()
        return None


if __name__ == "__main__":
    sys.exit(main())
