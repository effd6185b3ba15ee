"""What all log-ins at a broker share: the credentials, the threads that check them, the limits."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from tidelog.access.audit import Requester
from tidelog.access.authenticator import Authenticator
from tidelog.access.broker_user import BROKER_PRINCIPAL
from tidelog.access.model import Identity
from tidelog.access.token_settings import TokenSettings
from tidelog.access.users import Users
from tidelog.broker.base.access import BrokerAccess
from tidelog.broker.base.calls import Call
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.settings import SaslSettings
from tidelog.broker.sasl.exchanges import BearerExchange, Exchange, ExchangeStep
from tidelog.broker.wire.errors import LoginClosedError
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import AuthenticationError
from tidelog.server.base.blocking import Blocking, in_threads, pause
from tidelog.server.base.tries import FailedTries

if TYPE_CHECKING:
    from tidelog.access.tokens import Tokens

# Log-ins of a kind that are checked at once.
THREADS: Final = 2
# Of a name that a client gives, in logs.
MOST_SHOWN: Final = 64
_SECRET_BYTES: Final = 32


class LoginThreads:
    """Where credentials are checked, apart from where a broker reads and writes: a crowd of log-ins holds up no record.

    Tokens have threads of their own, as they may wait for their issuer's keys. `instead`: where to run all, in tests
    and simulations.
    """

    def __init__(self, instead: Blocking | None = None) -> None:
        self._pools = [ThreadPoolExecutor(THREADS, thread_name_prefix="tidelog-login") for _ in range(2)]
        self.of_passwords, self.of_tokens = (instead or in_threads(pool) for pool in self._pools)

    def close(self) -> None:
        """End the threads; what they are at is lost."""
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)


class Logins:
    """Log-ins of one broker's listeners. For the loop's thread. Raises `InvalidConfigError`."""

    def __init__(
        self,
        settings: SaslSettings,
        access: BrokerAccess,
        threads: LoginThreads,
        clock: Clock,
        ids: Ids,
        meter: BrokerMeter,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.meter = meter
        self.tries = FailedTries(settings.failures_per_minute, clock)
        users = Users(lambda: access.state, ids.secret(_SECRET_BYTES))
        self.authenticator = Authenticator(users, None if settings.tokens is None else _tokens(settings.tokens, clock))
        self._threads = threads
        self._audit = access.audit
        self._password_turns = asyncio.Semaphore(THREADS)
        self._token_turns = asyncio.Semaphore(THREADS)

    async def step(
        self, exchange: Exchange, message: bytes, call: Call, mechanism: str, *, first_time: bool, counts: bool
    ) -> ExchangeStep:
        """Have a client's message checked when its turn comes. Raises `AuthenticationError`.

        Raises `LoginClosedError` for an address that has failed too often meanwhile. `first_time`: the client is not
        logged in; `counts`: whether a failure is one more of its address.
        """
        is_token = isinstance(exchange, BearerExchange)
        run = self._threads.of_tokens if is_token else self._threads.of_passwords
        async with self._token_turns if is_token else self._password_turns:
            if first_time and self.tries.is_over(call.peer.host):
                raise self.too_many(call, mechanism)
            try:
                step = await run(exchange.step, message)
            except AuthenticationError:
                self._failed(call.peer.host, counts=counts)
                raise
        if step.refused:
            self._failed(call.peer.host, counts=counts)
        return step

    def _failed(self, host: str, *, counts: bool) -> None:
        if counts:
            self.meter.logins_failed += 1
            self.tries.failed(host)

    def too_many(self, call: Call, mechanism: str) -> LoginClosedError:
        """The error of an address that is not heard for now."""
        why = "too many log-ins of its address have failed of late"
        self.audit(call, mechanism, "", why)
        return LoginClosedError(why)

    def audit(self, call: Call, mechanism: str, user: str, why: str) -> None:
        """Have the failure in the audit."""
        peer = call.peer
        requester = Requester(peer.principal, peer.host, peer.listener, call.client_id)
        self._audit.not_authenticated(requester, mechanism[:MOST_SHOWN], user[:MOST_SHOWN], why)

    async def delay(self) -> None:
        """Let a client wait for the answer that it has failed."""
        await pause(self.settings.failed_delay_s)

    def lasts(self, identity: Identity) -> tuple[float | None, int]:
        """How long a session lasts that begins now, s, None for ever; and how long for its client, ms, 0 for ever.

        A token's session ends later than its client expects, by what clocks may differ. Source: KIP-368.
        """
        if identity.principal == BROKER_PRINCIPAL:  # what brokers ask each other can't wait for a log-in
            return None, 0
        most_s, tokens = self.settings.max_reauth_s or None, self.settings.tokens
        if identity.until_s is None:
            return most_s, round((most_s or 0.0) * 1000)
        told_s = max(identity.until_s - self.clock.now_ms() / 1000, 0.001)
        lasts_s = told_s + (tokens.clock_skew_s if tokens is not None else 0)
        if most_s is not None:
            told_s, lasts_s = min(told_s, most_s), min(lasts_s, most_s)
        return lasts_s, max(1, round(told_s * 1000))


def _tokens(settings: TokenSettings, clock: Clock) -> "Tokens":
    # Heavy, and most brokers accept no tokens.
    from tidelog.access.public_keys import PublicKeys
    from tidelog.access.tokens import Tokens

    return Tokens(settings, PublicKeys(settings.jwks, settings.refresh_s, clock), clock)
