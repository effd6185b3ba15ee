"""The server's side of SASL's mechanisms: one message in, one out, until the client's principal is known.

Exchanges are for worker threads: they hash, and may wait for keys. They raise `AuthenticationError` for whatever is no
message of theirs; their clients get the same answer for all that can be wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import scramp

from tidelog.access.authenticator import MOST_NAME_CHARS, Authenticator
from tidelog.access.credentials import ScramCredential, ScramMechanism, exchange
from tidelog.access.model import Identity
from tidelog.log.base.errors import AuthenticationError

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
# A message of names, passwords and hashes; tokens are longer.
_MOST_BYTES: Final = 16 * 1024
# What a client gets for a token that is not accepted, before its log-in fails (RFC 7628, 3.2.2).
_INVALID_TOKEN: Final = b'{"status":"invalid_token"}'
_SEPARATOR: Final = "\x01"


@dataclass(frozen=True, slots=True)
class ExchangeStep:
    """What a message led to. `answer`: what the client gets; `identity`: its principal, once known.

    `refused`: why it has none, where the mechanism has the client end the exchange.
    """

    answer: bytes = b""
    identity: Identity | None = None
    refused: str = ""


class Exchange(Protocol):
    """One log-in. For one thread at a time."""

    def step(self, message: bytes) -> ExchangeStep:
        """Take the client's next message. Raises `AuthenticationError`."""


class PlainExchange:
    """PLAIN (RFC 4616): a name and a password as they are, checked against the user's SCRAM keys."""

    def __init__(self, authenticator: Authenticator, only: str | None) -> None:
        self._authenticator = authenticator
        self._only = only

    def step(self, message: bytes) -> ExchangeStep:
        """The one message: whom to act for, the user, the password."""
        parts = _text(message).split("\0")
        if len(parts) != 3:
            raise AuthenticationError(f"a PLAIN message has 3 parts, this one {len(parts)}")
        other, user, password = parts
        if other not in ("", user):
            raise AuthenticationError("no user may act for another one")
        return ExchangeStep(identity=self._authenticator.basic(user, password, only=self._only))


class ScramExchange:
    """SCRAM (RFC 5802): client and server show each other that they know what follows from the password.

    Connections are not bound to their TLS channel: a client that asks for it is refused, as the RFC demands.
    """

    def __init__(self, mechanism: ScramMechanism, authenticator: Authenticator, only: str | None) -> None:
        self._users = authenticator.users
        self._mechanism = mechanism
        self._only = only
        self._user = ""
        self._begun = False
        self._server = exchange(mechanism, self._credential)

    def step(self, message: bytes) -> ExchangeStep:
        """The first message names the user, the second one proves it."""
        text = _text(message)
        try:
            if not self._begun:
                self._begun = True
                self._server.set_client_first(text)
                return ExchangeStep(self._server.get_server_first().encode())
            self._server.set_client_final(text)
            return ExchangeStep(self._server.get_server_final().encode(), Identity(f"User:{self._user}"))
        except scramp.ScramException as e:
            said = e.server_error.value if e.server_error is not None else "no message of SCRAM"
            raise AuthenticationError(said, self._user) from None
        except (ValueError, IndexError, KeyError) as e:
            raise AuthenticationError(f"no message of SCRAM: {type(e).__name__}") from None

    def _credential(self, user: str) -> ScramCredential:
        if len(user) > MOST_NAME_CHARS:
            raise AuthenticationError("a longer name than is accepted")
        self._user = user
        return self._users.scram(self._mechanism, user, welcome=self._only in (None, f"User:{user}"))


class BearerExchange:
    """OAUTHBEARER (RFC 7628): a token."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._refused = ""

    def step(self, message: bytes) -> ExchangeStep:
        """The token; after one that is refused, the client says that it has understood."""
        if self._refused:
            raise AuthenticationError(self._refused)
        other, token = _bearer(message)
        try:
            identity = self._authenticator.bearer(token)
            if other not in ("", identity.principal.removeprefix("User:")):
                raise AuthenticationError("no principal may act for another one")
        except AuthenticationError as e:
            self._refused = e.reason
            return ExchangeStep(_INVALID_TOKEN, refused=e.reason)
        return ExchangeStep(identity=identity)


def _bearer(message: bytes) -> tuple[str, str]:
    """Whom the client wants to act for, "" for itself, and its token. Raises `AuthenticationError`."""
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("a message that is not UTF-8") from None
    header, *pairs = text.split(_SEPARATOR)
    parts = header.split(",")
    values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    if len(parts) != 3 or parts[2] or parts[0] not in ("n", "y") or pairs[-2:] != ["", ""]:
        raise AuthenticationError("no message of OAUTHBEARER")
    if parts[1] and not parts[1].startswith("a="):
        raise AuthenticationError("no message of OAUTHBEARER")
    scheme, _, token = values.get("auth", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise AuthenticationError("a message of OAUTHBEARER without a token")
    return parts[1].removeprefix("a=").replace("=2C", ",").replace("=3D", "="), token.strip()


def _text(message: bytes) -> str:
    """Raises `AuthenticationError`."""
    if len(message) > _MOST_BYTES:
        raise AuthenticationError(f"a message of {len(message)} bytes")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("a message that is not UTF-8") from None


Begin = Callable[[Authenticator, str | None], Exchange]
# {mechanism: begins an exchange}. The second value is the one principal that may log in, None for any.
MECHANISMS: Final[Mapping[str, Begin]] = {
    PLAIN: PlainExchange,
    ScramMechanism.SHA_256.value: lambda found, only: ScramExchange(ScramMechanism.SHA_256, found, only),
    ScramMechanism.SHA_512.value: lambda found, only: ScramExchange(ScramMechanism.SHA_512, found, only),
    OAUTHBEARER: lambda found, _: BearerExchange(found),
}
