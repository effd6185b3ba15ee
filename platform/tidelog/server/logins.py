"""Principals of HTTP: users by their passwords (Basic), and tokens (Bearer), with the ACLs of the lake."""

import binascii
import hashlib
import threading
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tidelog.access.access_log import AccessLog
from tidelog.access.audit import Audit, Requester
from tidelog.access.authenticator import Authenticator
from tidelog.access.authorizer import AclVerdict, Subject
from tidelog.access.broker_user import BROKER_PRINCIPAL
from tidelog.access.following import AccessFollower
from tidelog.access.in_force import AccessInForce
from tidelog.access.model import ANONYMOUS, AclOperation, Identity, seen_address
from tidelog.access.public_keys import PublicKeys
from tidelog.access.token_settings import TokenSettings
from tidelog.access.tokens import Tokens
from tidelog.access.users import Users
from tidelog.log.base.errors import AuthenticationError
from tidelog.log.lake import Lake
from tidelog.operations.rights import AskedRight, Right
from tidelog.server.base.tries import FailedTries
from tidelog.server.errors import RequestRefusedError

# How long a password that was right counts without being hashed again: as long as no credential changes.
KNOWN_FOR_S: Final = 60.0
MOST_KNOWN: Final = 10_000
_SECRET_BYTES: Final = 32


class LoginRefusedError(RequestRefusedError):
    """A client that is not logged in. `status`: 401, or 429 for an address that has failed too often."""


@dataclass(frozen=True, slots=True)
class ClientRights:
    """What the access in force says of the sender of a request. `denied`: has a denial written to the audit."""

    access: AccessInForce
    sender: Subject
    denied: Callable[[AskedRight, AclVerdict], None]


@dataclass(frozen=True, slots=True)
class RequestSender:
    """The sender of a request. `rights`: None: it may do everything.

    `now`: the sender as of now, for what lasts longer than a request; it raises `LoginRefusedError` for one that could
    not log in any more.
    """

    principal: str
    rights: ClientRights | None = None
    now: "Callable[[], RequestSender] | None" = None

    def may(self, right: Right, **named: str) -> bool:
        """Whether it has the right to what is named; a denial is in the audit, unless it is of what lists leave out."""
        if self.rights is None:
            return True
        asked = right.asked(**named)
        verdict = asked.verdict(self.rights.access, self.rights.sender)
        if not verdict.allowed and asked.operation is not AclOperation.DESCRIBE:
            self.rights.denied(asked, verdict)
        return verdict.allowed

    def offered(self, right: Right, **named: str) -> bool:
        """As `may`, for what a page offers: nothing is tried, so the audit has nothing of it."""
        return self.rights is None or right.asked(**named).verdict(self.rights.access, self.rights.sender).allowed

    def offered_any(self, right: Right) -> bool:
        """As `offered`, to anything that there may be to name."""
        return self.rights is None or right.only.for_any(self.rights.access, self.rights.sender)


# The sender of a request to a server where clients do not log in.
ANYONE: Final = RequestSender(ANONYMOUS)


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """How a server decides what a client may do; the settings of brokers in the comments.

    `authenticates`: clients must log in. `everyone`: what no ACL is about is allowed to all; None: unless they must.
    """

    authenticates: bool = False
    super_users: frozenset[str] = field(default_factory=frozenset)  # super.users
    everyone: bool | None = None  # allow.everyone.if.no.acl.found
    tokens: TokenSettings | None = None  # sasl.oauthbearer.*
    failures_per_minute: int = 1000
    failed_delay_s: float = 0.1  # connection.failed.authentication.delay.ms


@dataclass(frozen=True, slots=True)
class _Known:
    identity: Identity
    at_s: float


class HttpLogins:
    """The rights of requests. For worker threads: a password costs thousands of hashes. Raises StorageError.

    `listener`: how the audit names it.
    """

    def __init__(self, lake: Lake, settings: HttpAccess, listener: str) -> None:
        self._listener = listener
        self._settings = settings
        # How long a client waits for the answer to a log-in that failed.
        self.failed_delay_s = settings.failed_delay_s
        self._clock = lake.clock
        self._lock = threading.Lock()
        everyone = not settings.authenticates if settings.everyone is None else settings.everyone
        self._access = AccessInForce(settings.super_users, everyone=everyone)
        self._follower = AccessFollower(AccessLog(lake), self._access, lake.clock)
        self._follower.look_now()
        # {keyed digest of what was sent: its principal}, by the credentials of this state.
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._known_by = self._access.state
        users = Users(lambda: self._access.state, lake.ids.secret(_SECRET_BYTES))
        keys = settings.tokens and PublicKeys(settings.tokens.jwks, settings.tokens.refresh_s, lake.clock)
        tokens = Tokens(settings.tokens, keys, lake.clock) if settings.tokens and keys else None
        self._authenticator = Authenticator(users, tokens)
        self._tries = FailedTries(settings.failures_per_minute, lake.clock)
        self._audit = Audit(lake.clock)
        self._salt = lake.ids.secret(_SECRET_BYTES)

    def close(self) -> None:
        """Write what the audit only counted so far, and close the log of access."""
        with self._lock:
            self._audit.close()
        self._follower.close()

    def client(self, authorization: str | None, host: str, request: str) -> RequestSender:
        """The sender of a request, and what it may do. `authorization`: its header; `request`: how the audit names it.

        Raises `LoginRefusedError`.
        """
        self._follower.look_again()
        host = seen_address(host) if host else host
        identity = self._identity(authorization, host)

        def now() -> RequestSender:
            return self.client(authorization, host, request)

        def denied(asked: AskedRight, verdict: AclVerdict) -> None:
            sender = Requester(identity.principal, host, self._listener)
            with self._lock:
                self._audit.denied(sender, request, asked.operation, asked.resource, asked.name, verdict.by)

        if self._access.is_open:
            return RequestSender(identity.principal, now=now)
        rights = ClientRights(self._access, Subject(identity.principal, host), denied)
        return RequestSender(identity.principal, rights, now)

    # --- the principal -----------------------------------------------------------------------------------------

    def _identity(self, authorization: str | None, host: str) -> Identity:
        if not self._settings.authenticates:
            return Identity(ANONYMOUS)
        if authorization is None:
            raise _unauthorized("Log in: by a user's name and password (Basic), or by a token (Bearer).")
        now_s = self._clock.elapsed_s()
        digest = hashlib.blake2b(authorization.encode("latin-1", "replace"), key=self._salt).digest()
        with self._lock:
            state = self._access.state
            if state is not self._known_by and state.scram != self._known_by.scram:
                self._known = OrderedDict()
            self._known_by = state
            known = self._known.get(digest)
            if known is not None and now_s - known.at_s < KNOWN_FOR_S and self._lasts(known.identity):
                return known.identity
            if self._tries.is_over(host):
                raise LoginRefusedError(429, "Too many log-ins of this address have failed of late. Try it later.")
        scheme, _, sent = authorization.partition(" ")
        user = ""
        try:
            if scheme.lower() == "bearer":
                identity = self._authenticator.bearer(sent.strip())
            elif scheme.lower() == "basic":
                user, password = _pair(sent)
                identity = self._authenticator.basic(user, password)
            else:
                raise AuthenticationError("neither Basic nor Bearer")
            if identity.principal == BROKER_PRINCIPAL or not self._lasts(identity):
                raise AuthenticationError("the brokers' own user, or a token that has ended", user)
        except AuthenticationError as error:
            with self._lock:
                self._tries.failed(host)
                sender = Requester("", host, self._listener)
                self._audit.not_authenticated(sender, scheme[:16], user, str(error))
            raise _unauthorized("The name or the password, or the token, is not right.") from error
        with self._lock:
            if state is self._access.state:
                self._known[digest] = _Known(identity, now_s)
                while len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
        return identity

    def _lasts(self, identity: Identity) -> bool:
        return identity.until_s is None or self._clock.now_ms() / 1000 < identity.until_s


def _pair(sent: str) -> tuple[str, str]:
    """Name and password (RFC 7617). Raises `AuthenticationError`."""
    try:
        user, colon, password = b64decode(sent.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        colon = ""
    if not colon:
        raise AuthenticationError("no user:password in base64 and UTF-8")
    return user, password


def _unauthorized(message: str) -> LoginRefusedError:
    return LoginRefusedError(401, message)
