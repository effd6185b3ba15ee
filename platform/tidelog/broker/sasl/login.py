"""The log-in of one connection: nothing may be asked before it, and again from time to time (KIP-43, 152, 368).

A client says which mechanism it wants (SaslHandshake), then the mechanism's messages go to and fro: as SaslAuthenticate
after a SaslHandshake 1, as frames with nothing else in them after a SaslHandshake 0. Later it may log in again as the
same principal, and must do so before its session ends. Source: Kafka's `SaslServerAuthenticator`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tidelog.broker.base.calls import Call, Encoded, Handler, Reply
from tidelog.broker.sasl.exchanges import MECHANISMS, Exchange, ExchangeStep
from tidelog.broker.sasl.logins import MOST_SHOWN, Logins
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import (
    ILLEGAL_SASL_STATE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    IllegalSaslStateError,
    LoginClosedError,
)
from tidelog.broker.wire.frames import Header, header_of
from tidelog.log.base.errors import AuthenticationError

# Between two times that a client begins to log in again, as in Kafka.
LEAST_S: Final = 1.0
# The length of a session without an end.
_FOR_EVER: Final = 0


@dataclass(frozen=True, slots=True)
class _Session:
    """The client's principal. `ends_s`: on the elapsed clock; None for never."""

    principal: str
    mechanism: str
    ends_s: float | None


class ConnectionLogin:
    """One connection's way in. `logged_in` gets the principal. For the loop's thread, one request at a time.

    `ended`: why the connection ends when the answer of now is written; "" for not.
    """

    __slots__ = (
        "_again_s",
        "_exchange",
        "_logged_in",
        "_logins",
        "_mechanism",
        "_offered",
        "_raw",
        "_session",
        "_told",
        "ended",
    )

    def __init__(self, logins: Logins, offered: tuple[str, ...], logged_in: Callable[[str], None]) -> None:
        self._logins = logins
        self._offered = offered
        self._logged_in = logged_in
        self._session: _Session | None = None
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._again_s: float | None = None  # when it last began to log in again
        self._raw = False
        self._told = False  # that its token is not accepted: the client ends the exchange
        self.ended = ""

    @property
    def most_bytes(self) -> int:
        """The largest request before the client has logged in."""
        return self._logins.settings.max_receive_bytes

    @property
    def within_s(self) -> float:
        """How long a connection may take to log in."""
        return self._logins.settings.login_within_s

    @property
    def is_done(self) -> bool:
        """Whether the client has logged in."""
        return self._session is not None

    @property
    def is_valid(self) -> bool:
        """Whether the client has logged in and need not do so again yet."""
        session = self._session
        return session is not None and (session.ends_s is None or self._logins.clock.elapsed_s() < session.ends_s)

    def header_of(self, frame: memoryview) -> Header:
        """The header of a frame that has come, or that there is none: as `frames.header_of`."""
        if self._session is None and self._raw:
            return Header(ApiKey.SASL_AUTHENTICATE, 0, 0, None, 0, raw=True)
        header = header_of(frame)
        if self._session is None and header.key is ApiKey.SASL_HANDSHAKE and header.version == 0:
            self._raw = True
        return header

    def handler(self, key: ApiKey, otherwise: Handler | None) -> Handler | None:
        """What answers a request of now. Raises `ClosedConnectionError` where the client may not send it."""
        if key is ApiKey.SASL_HANDSHAKE:
            return self._handshake
        if key is ApiKey.SASL_AUTHENTICATE:
            return self._authenticate
        session = self._session
        if session is None:
            if key is ApiKey.API_VERSIONS and self._exchange is None:
                return otherwise
            raise IllegalSaslStateError(f"it sent {key.name} before it had logged in")
        if not self.is_valid:
            raise LoginClosedError(f"the session of {session.principal!r} is over, and it did not log in again")
        return otherwise

    # --- requests ------------------------------------------------------------------------------------------

    async def _handshake(self, call: Call) -> Reply:
        wanted, session, logins = call.body.mechanism, self._session, self._logins
        if session is None and self._exchange is not None:
            return self._end_handshake(ILLEGAL_SASL_STATE, "a second SaslHandshake within a log-in")
        if session is None and logins.tries.is_over(call.peer.host):
            await logins.delay()
            raise logins.too_many(call, wanted)
        if session is not None and not self._may_begin_again(call.version):
            return _handshake_answer(ILLEGAL_SASL_STATE, ())
        offered = self._offered if session is None else (session.mechanism,)
        if wanted not in offered:
            await logins.delay()
            return self._end_handshake(UNSUPPORTED_SASL_MECHANISM, f"the mechanism {wanted[:32]!r} is not offered here")
        self._mechanism = wanted
        self._exchange = MECHANISMS[wanted](logins.authenticator, None if session is None else session.principal)
        return _handshake_answer(0, self._offered)

    def _may_begin_again(self, version: int) -> bool:
        """Whether a client that is logged in may now begin to log in again: if so, it does."""
        now_s, before_s = self._logins.clock.elapsed_s(), self._again_s
        if version == 0 or (before_s is not None and now_s - before_s < LEAST_S):
            return False
        self._again_s = now_s
        return True

    async def _authenticate(self, call: Call) -> Reply:
        exchange, session = self._exchange, self._session
        if exchange is None:
            if session is None:
                self.ended = "SaslAuthenticate without a SaslHandshake"
            return _authenticate_answer(call, ILLEGAL_SASL_STATE, "SaslAuthenticate needs a SaslHandshake before it.")
        raw = isinstance(call.body, memoryview)
        message = bytes(call.body if raw else call.body.auth_bytes)
        try:
            step = await self._logins.step(
                exchange, message, call, self._mechanism, first_time=session is None, counts=not self._told
            )
            self._told = bool(step.refused)
            told_ms = self._taken(step)
        except AuthenticationError as e:
            self._exchange, self._session = None, None
            return await self._refused(call, raw, e)
        if raw:
            return Encoded([step.answer])
        return _authenticate_answer(call, 0, None, step.answer, told_ms)

    def _taken(self, step: ExchangeStep) -> int:
        """The length of its session that the client gets, ms. Raises `AuthenticationError`."""
        identity, before = step.identity, self._session
        if identity is None:
            return _FOR_EVER
        if before is not None and identity.principal != before.principal:
            raise AuthenticationError(f"{before.principal!r} may not become another", identity.principal)
        lasts_s, told_ms = self._logins.lasts(identity)
        now_s = self._logins.clock.elapsed_s()
        self._session = _Session(identity.principal, self._mechanism, None if lasts_s is None else now_s + lasts_s)
        self._exchange = None
        meter = self._logins.meter
        if before is not None:
            meter.logins_again += 1
        else:
            meter.logins += 1
            self._logged_in(identity.principal)
        return told_ms

    async def _refused(self, call: Call, raw: bool, error: AuthenticationError) -> Reply:
        why = f"its log-in by {self._mechanism} as {error.user[:MOST_SHOWN]!r} failed: {error.reason}"
        self._logins.audit(call, self._mechanism, error.user, error.reason)
        await self._logins.delay()
        if raw:
            raise LoginClosedError(why)
        self.ended = why
        said = f"Authentication failed: invalid credentials with SASL mechanism {self._mechanism}."
        return _authenticate_answer(call, SASL_AUTHENTICATION_FAILED, said)

    def _end_handshake(self, error: int, why: str) -> Reply:
        self.ended = why
        return _handshake_answer(error, self._offered)


def _handshake_answer(error: int, mechanisms: tuple[str, ...]) -> Reply:
    return {"error_code": error, "mechanisms": mechanisms}


def _authenticate_answer(
    call: Call, error: int, message: str | None, answer: bytes = b"", session_lifetime_ms: int = _FOR_EVER
) -> Reply:
    if isinstance(call.body, memoryview):
        raise IllegalSaslStateError("a message of SASL without a SaslHandshake")
    return {
        "error_code": error,
        "error_message": message,
        "auth_bytes": answer,
        "session_lifetime": session_lifetime_ms,
    }


async def not_here(call: Call) -> Reply:
    """Answers SASL's requests on a listener without SASL, where no client logs in."""
    if call.key is ApiKey.SASL_HANDSHAKE:
        return _handshake_answer(ILLEGAL_SASL_STATE, ())
    return _authenticate_answer(call, ILLEGAL_SASL_STATE, "This listener has no SASL: no log-in is needed.")
