"""Where `serve` listens: an answer must not wait for the acknowledgement of what was sent before it."""

from __future__ import annotations

import asyncio
import socket

from local import service


def test_what_is_accepted_sends_at_once() -> None:
    async def accepted() -> int:
        seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with service._listening(0) as listener:
            async with await asyncio.start_server(connected, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname())
                writer.close()
                return await seen

    assert asyncio.run(accepted()) == 1
