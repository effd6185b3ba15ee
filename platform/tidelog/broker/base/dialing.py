"""Connections of a broker to others, by the listener on which they ask each other: with its TLS, and logged in."""

import asyncio
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Final

import scramp

from tidelog.access.broker_user import BROKER_USER, broker_password
from tidelog.access.credentials import MOST_ITERATIONS, ScramMechanism
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.frames import LENGTH
from tidelog.server.base.blocking import Blocking

BrokerConnection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
# How long a connection may take; one that begins with TLS, or with a log-in, takes some messages more.
CONNECT_WITHIN_S: Final = 0.5
_SECURED_WITHIN_S: Final = 5.0
# API key, version, correlation id, no client id.
_HEADER: Final = struct.Struct(">hhih")
_ANSWER: Final = struct.Struct(">ih")
_SIZE: Final = struct.Struct(">i")
_SHORT: Final = struct.Struct(">h")
_MOST_BYTES: Final = 64 * 1024


class LoginFailedError(ConnectionError):
    """The other broker does not let this one in."""


class BrokerLogin:
    """How a broker logs in at others, by SCRAM, as the brokers' own user; by none it does not get in.

    `secret()`: the server's, b"" before it is known.
    """

    def __init__(self, mechanism: ScramMechanism | None, secret: Callable[[], bytes], blocking: Blocking) -> None:
        self._mechanism = mechanism
        self._secret = secret
        self._blocking = blocking

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Log in. Raises `LoginFailedError`, OSError."""
        secret, mechanism = self._secret(), self._mechanism
        if mechanism is None:
            raise LoginFailedError("its listener has no SCRAM")
        if not secret:
            raise LoginFailedError("the server's secret is not known yet")
        name = mechanism.value.encode()
        await _ask(reader, writer, ApiKey.SASL_HANDSHAKE, _SHORT.pack(len(name)) + name)
        client = scramp.ScramClient([mechanism.value], BROKER_USER, broker_password(secret))
        try:
            first = await _exchanged(reader, writer, client.get_client_first())
            client.set_server_first(first)
            if int(client.iterations) > MOST_ITERATIONS:  # no broker has more
                raise LoginFailedError(f"the other end asks for {client.iterations} iterations")
            final = await self._blocking(client.get_client_final)  # which computes them
            client.set_server_final(await _exchanged(reader, writer, final))
        except scramp.ScramException as e:
            raise LoginFailedError(f"the other end does not know the server's secret: {e}") from e
        except (struct.error, ValueError) as e:  # whatever listens at the address by now may say anything
            raise LoginFailedError(f"what the other end says is no message of SCRAM: {e}") from e


class BrokerDialer:
    """Connects to the listener of that name. `context()`: of TLS, as of now; `log_in`: what comes first."""

    def __init__(
        self,
        listener: str,
        context: Callable[[], ssl.SSLContext] | None = None,
        log_in: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None = None,
    ) -> None:
        self.listener = listener
        self._context = context
        self._log_in = log_in
        self._within_s = CONNECT_WITHIN_S if context is None and log_in is None else _SECURED_WITHIN_S

    async def connect(self, host: str, port: int) -> BrokerConnection:
        """A connection by which the other broker answers. Raises OSError, TimeoutError, and `LoginFailedError`."""
        async with asyncio.timeout(self._within_s):
            if self._context is None:
                reader, writer = await asyncio.open_connection(host, port)
            else:
                reader, writer = await asyncio.open_connection(host, port, ssl=self._context(), server_hostname=host)
            try:
                if self._log_in is not None:
                    await self._log_in(reader, writer)
            except BaseException as e:
                writer.transport.abort()
                if isinstance(e, asyncio.IncompleteReadError):
                    raise LoginFailedError("the other broker has closed the connection") from e
                raise
        return reader, writer


async def _exchanged(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: str) -> str:
    """The answer to a message of SCRAM."""
    data = message.encode()
    answer = await _ask(reader, writer, ApiKey.SASL_AUTHENTICATE, _SIZE.pack(len(data)) + data)
    (length,) = _SHORT.unpack_from(answer)
    start = _SHORT.size + max(length, 0)  # after the error's message
    (size,) = _SIZE.unpack_from(answer, start)
    start += _SIZE.size
    return answer[start : start + size].decode()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: ApiKey, body: bytes) -> bytes:
    """The answer of version 1 after its error code. Raises `LoginFailedError` where that is one."""
    request = _HEADER.pack(key, 1, 0, -1) + body
    writer.write(LENGTH.pack(len(request)) + request)
    (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if not _ANSWER.size <= size <= _MOST_BYTES:
        raise LoginFailedError(f"an answer of {size} bytes")
    answer = await reader.readexactly(size)
    _, error = _ANSWER.unpack_from(answer)
    if error:
        raise LoginFailedError(f"{key.name} was answered with error {error}")
    return answer[_ANSWER.size :]
