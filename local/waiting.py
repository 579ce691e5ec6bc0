"""`?wait=true` on one machine: the front waits until a write is searchable, so the function does not have to.

In the cloud the function waits itself: it has an instance of its own. Here it would hold everybody up.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from memory_banks import access, bank, loading
from memory_banks.errors import MemoryBanksError
from memory_banks.ports import Contended, Ports, TableUnavailable

from local.gateway import Answer, Request

logger = logging.getLogger(__name__)

MILLISECONDS = 20_000
"""How long a write waits at most."""

_WRITE = re.compile(rb"/memory_banks/([^/]+)/entries")


class Waiter:
    """Waits on behalf of requests; many at once."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @staticmethod
    def taken_out(request: Request) -> tuple[Request, bool]:
        """The request without its wish to wait, and whether it had one. Any other value than true is the function's to judge."""
        if request.method != "POST" or not _WRITE.fullmatch(request.path):
            return request, False
        pairs = parse_qsl(request.query.decode("latin-1"), keep_blank_values=True)
        others = [(name, value) for name, value in pairs if name != "wait"]
        if [value.lower() for name, value in pairs if name == "wait"] != ["true"]:
            return request, False
        return replace(request, query=urlencode(others).encode()), True

    def waited(self, request: Request, answer: Answer) -> Answer:
        """The answer with the entries as they are when all are searchable, or after 20 s. What fails here changes nothing."""
        written = json.loads(answer.body)
        deadline = self._ports.clock.now() + MILLISECONDS
        try:
            caller = access.authenticate(self._ports, dict(request.headers))
            place = _WRITE.fullmatch(request.path)
            item = self._ports.table.read([bank.key_of(caller.account, place[1].decode())])[0] if place else None
            if item is None:
                return answer
            of = bank.from_item(item)
            entries = [loading.get(self._ports, of, entry["id"]) for entry in written["entries"]]
            entries = loading.wait_until_indexed(self._ports, of, entries, deadline)
        except (MemoryBanksError, TableUnavailable, Contended) as error:
            logger.info("could not wait until the write is searchable: %s", error)
            return answer
        shown = written | {"entries": [before | now.shown() for before, now in zip(written["entries"], entries, strict=True)]}
        return replace(answer, body=json.dumps(shown, ensure_ascii=False).encode())
