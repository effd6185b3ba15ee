"""The principal of credentials, as HTTP and SASL bring them: a user's name and password, or a token."""

from typing import TYPE_CHECKING

from tidelog.access.credentials import MOST_PASSWORD_CHARS, is_password
from tidelog.access.model import Identity
from tidelog.access.users import Users
from tidelog.log.base.errors import AuthenticationError

if TYPE_CHECKING:  # what reads tokens is heavy, and most brokers accept none
    from tidelog.access.tokens import Tokens

# Longer ones are no names: what prepares and hashes them would be kept busy.
MOST_NAME_CHARS = 1024


class Authenticator:
    """Checks credentials against the users and the tokens' issuer of now.

    For worker threads: a password costs thousands of hashes, a token may wait for its issuer's keys. `tokens`: None
    accepts none.
    """

    def __init__(self, users: Users, tokens: "Tokens | None") -> None:
        self.users = users
        self._tokens = tokens

    def basic(self, user: str, password: str, *, only: str | None = None) -> Identity:
        """The principal of a user and its password. Raises `AuthenticationError`.

        `only`: the one principal that is welcome; another one's password counts as a wrong one.
        """
        if not user or not password or len(user) > MOST_NAME_CHARS or len(password) > MOST_PASSWORD_CHARS:
            raise AuthenticationError("no name or no password, or longer ones than are accepted", user)
        principal = f"User:{user}"
        if not is_password(self.users.plain(user, welcome=only in (None, principal)), password):
            raise AuthenticationError("no such user, or another password", user)
        return Identity(principal)

    def bearer(self, token: str) -> Identity:
        """The principal of a token, and when the token ends. Raises `AuthenticationError`."""
        if self._tokens is None:
            raise AuthenticationError("no tokens are accepted: sasl.oauthbearer.jwks.endpoint.url is not set")
        return self._tokens.identity(token)
