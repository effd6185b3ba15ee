"""Listeners of TLS: each connection is accepted here, so that it counts before its handshake, and has its own context.

The loop's own servers have one context for ever, and say nothing of handshakes that go on.
"""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final

from tidelog.broker.base.calls import Peer
from tidelog.broker.server.tls_handshake import Accepting, PrincipalOf, TlsHandshake
from tidelog.server.base.blocking import pause
from tidelog.server.base.listeners import BACKLOG

logger = logging.getLogger(__name__)

# How long no connection is accepted after the system had no room for one.
_NO_ROOM_S: Final = 1.0


class TlsServer:
    """Accepts at the addresses that `bound` has, with the context of the moment."""

    def __init__(
        self,
        connections: Accepting,
        listener: str,
        bound: asyncio.Server,
        context: Callable[[], ssl.SSLContext],
        principal_of: PrincipalOf,
    ) -> None:
        self._connections = connections
        self._listener = listener
        self._bound = bound
        self._context = context
        self._principal_of = principal_of
        self._tasks: list[asyncio.Task[None]] = []

    async def start_serving(self) -> None:
        """Let clients connect."""
        for one in self._bound.sockets:
            listening = socket.socket(fileno=os.dup(one.fileno()))
            listening.setblocking(False)
            listening.listen(BACKLOG)
            self._tasks.append(asyncio.get_running_loop().create_task(self._accept(listening)))

    def close(self) -> None:
        """Accept no more; what was accepted goes on."""
        for task in self._tasks:
            task.cancel()
        self._bound.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                try:
                    accepted, address = await loop.sock_accept(listening)
                except ConnectionError:
                    continue  # it was gone before it was accepted
                except OSError as e:
                    logger.error("Listener %s accepts no connection for now: %s", self._listener, e)
                    await pause(_NO_ROOM_S)
                    continue
                peer = Peer(self._listener, str(address[0]))
                TlsHandshake(self._connections, peer, self._principal_of).begin(accepted, self._context())
