"""The listeners of one broker that are more than PLAINTEXT: their TLS, and how brokers get in at each other's."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from tidelog.access.broker_user import BROKER_PRINCIPAL
from tidelog.access.credentials import ScramMechanism
from tidelog.access.distinguished_names import subject_of
from tidelog.access.principal_rules import NoPrincipalError, PrincipalRules
from tidelog.broker.base.calls import Peer
from tidelog.broker.base.dialing import BrokerDialer, BrokerLogin
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.server.tls_handshake import Accepting
from tidelog.broker.server.tls_listening import TlsServer
from tidelog.log.base.clock import Clock
from tidelog.server.base.blocking import Blocking, pause
from tidelog.server.base.listener_settings import ClientAuth, ListenerSettings, any_authenticates
from tidelog.server.base.tls import ListenerTls

logger = logging.getLogger(__name__)

# How often a broker looks whether its certificates have changed.
CERTIFICATES_EVERY_S: Final = 1.0
_ANONYMOUS: Final = Peer().principal


class SecuredListeners:
    """For the loop's thread. Raises `TlsError`, and `InvalidConfigError` for a listener that can't be as configured."""

    def __init__(self, settings: BrokerSettings, clock: Clock, blocking: Blocking) -> None:
        self._settings = settings
        self._clock = clock
        self._blocking = blocking
        self._tls = {
            name: ListenerTls(name, listener.tls, self._now())
            for name, listener in settings.listeners.items()
            if listener.tls is not None
        }
        self._principals = {name: CertifiedPrincipals(settings.listeners[name]) for name in self._tls}
        self._reading: asyncio.Task[None] | None = None

    def server(self, name: str, bound: asyncio.Server, connections: Accepting) -> asyncio.Server | TlsServer:
        """A listener's server: where TLS is spoken, one that does, at the addresses of `bound`."""
        tls = self._tls.get(name)
        if tls is None:
            return bound
        return TlsServer(connections, name, bound, lambda: tls.server, self._principals[name].of)

    @property
    def brokers_log_in(self) -> bool:
        """Whether brokers log in at each other."""
        listener = self._settings.listeners.get(self._settings.brokers_listener)
        return listener is not None and listener.protocol.has_sasl

    def dialer(self, secret: Callable[[], bytes]) -> BrokerDialer:
        """What connects to other brokers, by the listener on which they ask each other. `secret`: the server's."""
        name = self._settings.brokers_listener
        tls, login = self._tls.get(name), None
        if self.brokers_log_in:
            offered = self._settings.listeners[name].mechanisms
            mechanism = next((one for one in ScramMechanism if one.value in offered), None)
            if mechanism is None:
                logger.warning(
                    "The listener %s has no SCRAM, by which brokers log in at each other: each commits alone. Add"
                    " SCRAM-SHA-512 to its sasl.enabled.mechanisms, or name another inter.broker.listener.name.",
                    name,
                )
            login = BrokerLogin(mechanism, secret, self._blocking)
        return BrokerDialer(name, None if tls is None else lambda: tls.client, login)

    def begin(self) -> None:
        """Read certificates again when they change, from now on."""
        name = self._settings.brokers_listener
        listener = self._settings.listeners.get(name)
        if any_authenticates(self._settings.listeners) and listener is not None and not listener.authenticates:
            logger.warning(
                "Brokers ask each other on the listener %s, where no client authenticates: one that reaches it can hand"
                " over records to any topic, whatever the ACLs say. Name one that authenticates as"
                " inter.broker.listener.name, or let nothing but brokers reach this one.",
                name,
            )
        if self._tls:
            self._reading = asyncio.get_running_loop().create_task(self._read())

    def close(self) -> None:
        """Read them no more."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        while True:
            await pause(CERTIFICATES_EVERY_S)
            for tls in self._tls.values():
                await self._blocking(tls.look, self._now())

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)


class CertifiedPrincipals:
    """Principals of one listener's clients. Raises `InvalidConfigError` for rules that are none."""

    def __init__(self, listener: ListenerSettings) -> None:
        tls = listener.tls
        # Where SASL says which principal it is, the certificate only opens the way there, as Kafka has it.
        self._counts = tls is not None and tls.client_auth is not ClientAuth.NONE and not listener.protocol.has_sasl
        self._rules = PrincipalRules("DEFAULT" if tls is None else tls.principal_rules)

    def of(self, tls: ssl.SSLObject) -> str:
        """The principal of the client at the other end; the anonymous one without a certificate.

        Raises `NoPrincipalError`.
        """
        shown = tls.getpeercert(binary_form=True) if self._counts else None
        if shown is None:
            return _ANONYMOUS
        name = subject_of(shown)
        principal = self._rules.principal(name)
        if principal == BROKER_PRINCIPAL:
            raise NoPrincipalError(f"The certificate of {name!r} would make a client the brokers' own user.")
        return principal
