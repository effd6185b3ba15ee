"""Clients that log in by SASL, one request at a time: over transports that are none, or over sockets."""

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import scramp
from kio.index import load_response_schema
from kio.serial import entity_reader
from support.broker_connections import Client, FakeClock, settle
from support.kafka_wire import request_frame
from support.logs import CountingIds

from tidelog.access.audit import Audit
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.state import AccessState
from tidelog.broker.access.throttling import Throttling
from tidelog.broker.admin.api_versions import api_versions
from tidelog.broker.base.access import BrokerAccess
from tidelog.broker.base.calls import Call
from tidelog.broker.base.client_software import ClientSoftware
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.settings import Bounds, BrokerSettings, SaslSettings
from tidelog.broker.sasl.handlers import new_logins
from tidelog.broker.sasl.logins import Logins, LoginThreads
from tidelog.broker.server.connections import Connections
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.messages import is_flexible
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol

SECRET = b"s" * 32
SALT = b"salt" * 4
SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
PASSWORDS = {"alice": "alice's own", "bob": "bob's own"}
STATE = AccessState(
    scram={
        ("alice", SHA_256): credential(SHA_256, PASSWORDS["alice"], SALT),
        ("alice", SHA_512): credential(SHA_512, PASSWORDS["alice"], SALT),
        ("bob", SHA_512): credential(SHA_512, PASSWORDS["bob"], SALT),
    },
    secret=SECRET,
)
LISTENER = "PLAINTEXT"  # the name that `broker_connections.Client` comes by
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


async def at_once(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Blocking calls where there are no threads."""
    return call(*args, **kwargs)


class LoginWorld:
    """The connections of a broker whose one listener has SASL. `seen`: requests that reached a handler."""

    def __init__(
        self, mechanisms: tuple[str, ...] = PASSWORD_MECHANISMS, bounds: Mapping[str, Any] | None = None, **sasl: Any
    ) -> None:
        self.clock = FakeClock()
        self.access = BrokerAccess(frozenset(), Audit(self.clock), everyone=True)
        self.access.take(STATE)
        self.meter = BrokerMeter()
        self.seen: list[Call] = []
        self.settings = SaslSettings(**{"failed_delay_s": 0.0, **sasl})
        listener = ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_PLAINTEXT, mechanisms=mechanisms)
        broker = BrokerSettings({LISTENER: listener}, sasl=self.settings)
        threads = LoginThreads(at_once)
        self.logins = Logins(self.settings, self.access, threads, self.clock, CountingIds(), self.meter)
        handlers = {
            ApiKey.LIST_GROUPS: self._groups,
            ApiKey.API_VERSIONS: api_versions([ApiKey.API_VERSIONS], ClientSoftware()),
        }
        login = new_logins(broker, self.logins)
        throttling = Throttling(lambda: self.access.state.quotas, self.clock, broker.quotas)
        self.connections = Connections(handlers, self.clock, Bounds(**(bounds or {})), self.meter, throttling, login)

    async def _groups(self, call: Call) -> Any:
        self.seen.append(call)
        return {"error_code": 0, "groups": []}


class SaslClient:
    """One connection to a `LoginWorld`."""

    def __init__(self, world: LoginWorld, host: str = "10.0.0.1") -> None:
        self.client = Client(world.connections, host=host)
        self._number = 0

    @property
    def principal(self) -> str:
        return self.client.protocol.peer.principal

    @property
    def is_closed(self) -> bool:
        return self.client.transport.lost

    async def ask(self, api: ApiKey, version: int, **fields: Any) -> Any:
        """The answer; None when none came."""
        self._number += 1
        self.client.send(request_frame(api, version, self._number, "test", fields))
        await settle()
        frame = self.client.transport.take()
        if not frame:
            return None
        size, number = struct.unpack_from(">ii", frame)
        assert (size, number) == (len(frame) - 4, self._number)
        start = 9 if is_flexible(api, version) and api is not ApiKey.API_VERSIONS else 8
        return entity_reader(load_response_schema(api, version))(memoryview(frame)[start:], 0)[0]

    async def handshake(self, mechanism: str, version: int = 1) -> Any:
        return await self.ask(ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)

    async def authenticate(self, message: bytes, version: int = 2) -> Any:
        return await self.ask(ApiKey.SASL_AUTHENTICATE, version, auth_bytes=message)

    async def send_raw(self, message: bytes) -> bytes | None:
        """The answer to a message without a header; None when none came."""
        self.client.send(struct.pack(">i", len(message)) + message)
        await settle()
        frame = self.client.transport.take()
        assert not frame or struct.unpack_from(">i", frame)[0] == len(frame) - 4
        return frame[4:] if frame else None

    async def log_in(self, mechanism: str, user: str, password: str) -> Any:
        """The last answer of a log-in."""
        shaken = await self.handshake(mechanism)
        if shaken is None or shaken.error_code.value:
            return shaken
        found = None
        for message in messages(mechanism, user, password):
            answer = message.send(found.auth_bytes if found else None)
            found = await self.authenticate(answer)
            if found is None or found.error_code.value:
                break
        return found

    async def groups(self) -> Any:
        """Ask something that needs a log-in."""
        return await self.ask(ApiKey.LIST_GROUPS, 0)


class Message:
    """A client's message, made of the server's before."""

    def __init__(self, make: Callable[[bytes | None], bytes]) -> None:
        self.send = make


def messages(mechanism: str, user: str, password: str) -> Iterator[Message]:
    """The messages of a client by a mechanism of passwords."""
    if mechanism == "PLAIN":
        yield Message(lambda _: plain(user, password))
        return
    client = scramp.ScramClient([mechanism], user, password)
    yield Message(lambda _: client.get_client_first().encode())

    def final(answer: bytes | None) -> bytes:
        client.set_server_first((answer or b"").decode())
        return client.get_client_final().encode()

    yield Message(final)


def plain(user: str, password: str, other: str = "") -> bytes:
    return f"{other}\0{user}\0{password}".encode()


@contextmanager
def counted_hashes(monkeypatch: Any) -> Iterator[dict[str, int]]:
    """How many iterations of which hash are computed meanwhile."""
    import hashlib

    spent: dict[str, int] = {}
    real = hashlib.pbkdf2_hmac

    def counting(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        spent[name] = spent.get(name, 0) + iterations
        return real(name, password, salt, iterations)

    with monkeypatch.context() as patch:
        patch.setattr(hashlib, "pbkdf2_hmac", counting)
        yield spent
