"""A connection's TLS handshake. It counts as a connection from the moment it is accepted, and is bounded in time."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from tidelog.access.principal_rules import NoPrincipalError
from tidelog.broker.base.calls import Peer
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.server.connection import TOO_MANY, ClientConnection
from tidelog.broker.server.connection_lines import ConnectionLines
from tidelog.broker.server.connection_port import Server
from tidelog.server.base.blocking import pause

# How long a handshake may take: many clients may come at once.
HANDSHAKE_S: Final = 30.0
# How long a client may take to end TLS once the broker has.
_SHUTDOWN_S: Final = 5.0
# What OpenSSL calls that clients do by mistake.
_MISTAKES: Final = {
    "HTTP_REQUEST": "it speaks HTTP, without TLS",
    "HTTPS_PROXY_REQUEST": "it speaks HTTP, without TLS",
    "WRONG_VERSION_NUMBER": "what it speaks is no TLS; it may take the listener for PLAINTEXT",
    "UNSUPPORTED_PROTOCOL": "it knows no version of ssl.enabled.protocols",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate, and ssl.client.auth is required",
}
# The principal of the client at the other end of TLS. Raises `NoPrincipalError`.
PrincipalOf = Callable[[ssl.SSLObject], str]


class Accepting(Server, Protocol):
    """What a handshake needs of its broker's connections."""

    meter: BrokerMeter
    lines: ConnectionLines

    def opened(self, connection: "ClientConnection | TlsHandshake") -> str:
        """A connection has come; why it is refused, "" when it is not."""

    def closed(self, connection: "ClientConnection | TlsHandshake") -> None:
        """It is gone."""

    def secured(self, handshake: "TlsHandshake", connection: ClientConnection) -> None:
        """The client's connection takes the handshake's place."""


class SecuredConnection(ClientConnection):
    """A client's connection after its handshake."""

    __slots__ = ("_handshake",)

    def __init__(self, server: Accepting, handshake: "TlsHandshake") -> None:
        super().__init__(server, handshake.peer.listener)
        self._handshake = handshake

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is over: begin."""
        if self._handshake.is_over(self, transport):
            super().connection_made(transport)

    def _counted_wait_s(self) -> float:
        """Its handshake was counted."""
        return 0.0


class TlsHandshake:
    """A handshake. For the loop's thread."""

    waiting = 0  # requests that are not answered

    def __init__(self, server: Accepting, peer: Peer, principal_of: PrincipalOf) -> None:
        self._server = server
        self.peer = peer
        self._principal_of = principal_of
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def begin(self, accepted: socket.socket, context: ssl.SSLContext) -> None:
        """Begin, unless there are too many connections."""
        refused = self._server.opened(self)
        if refused:
            self._server.lines.say("refused", self.peer, refused, logging.WARNING)
            self._server.closed(self)
            accepted.close()
        elif wait_s := self._server.throttling.connection(self.peer.host):
            self._server.meter.connections_refused += 1
            self._task = asyncio.get_running_loop().create_task(self._keep_out(accepted, wait_s))
        else:
            self._task = asyncio.get_running_loop().create_task(self._shake(accepted, context))

    async def _shake(self, accepted: socket.socket, context: ssl.SSLContext) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: SecuredConnection(self._server, self),
                accepted,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=_SHUTDOWN_S,
            )
        except ssl.SSLError as e:
            self.abort(f"TLS handshake failed: {_why(e)}")
        except ConnectionAbortedError:
            self.abort(f"TLS handshake failed: it took more than {HANDSHAKE_S:g} s")
        except OSError:
            pass  # the client has closed it, as probes do
        finally:
            self._end()

    async def _keep_out(self, accepted: socket.socket, wait_s: float) -> None:
        """Leave a client waiting whose address opens connections too quickly, and close it."""
        with accepted:
            await pause(wait_s)
        self._server.lines.say("closed", self.peer, TOO_MANY, logging.WARNING)
        self._end()

    def is_over(self, connection: ClientConnection, transport: asyncio.BaseTransport) -> bool:
        """Hand on to the connection; False where it is refused."""
        peer = self.peer
        try:
            principal = self._principal_of(transport.get_extra_info("ssl_object"))
        except NoPrincipalError as e:
            self.abort(str(e))
            return False
        except ValueError as e:
            self.abort(f"its certificate can't be read: {e}")
            return False
        if self._ended:
            return False
        connection.peer = replace(peer, principal=principal)
        self._ended = True
        self._server.secured(self, connection)
        return True

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._server.closed(self)
            if self._task is not None:
                self._task.cancel()  # which closes its socket

    # --- for the broker ------------------------------------------------------------------------------------

    def look(self, now_s: float) -> None:
        """Nothing to drop: its time is bounded by TLS."""

    def wait_for_room(self) -> None:
        """A handshake is no request."""

    def drain(self) -> None:
        """Nothing was asked that could be answered."""
        self._end()

    def abort(self, reason: str) -> None:
        """Cut the connection."""
        if not self._ended:
            self._server.meter.connections_dropped += 1
            self._server.lines.say("closed", self.peer, reason, logging.WARNING)
            self._end()


def _why(error: ssl.SSLError) -> str:
    reason = error.reason or "the client has closed the connection"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if "_ALERT_" in reason:
        return f"it has refused the broker's certificate or version ({reason})"
    return _MISTAKES.get(reason, reason)
