"""SCRAM credentials: what is kept of a password, and how a password or an exchange is checked against it (RFC 5802).

No password is kept. A name that is not known is checked like any other, on a credential that a server secret makes of
the name, so that neither time nor salt tells whether there is such a user.
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import scramp
from scramp.utils import saslprep

from tidelog.log.base.errors import InvalidConfigError

# As Kafka's `ScramMechanism` and `ScramCredentialUtils` have them.
LEAST_ITERATIONS: Final = 4_096
MOST_ITERATIONS: Final = 16_384
# Hashes are all that a broker computes for one login: more would let anyone keep it busy.
DEFAULT_ITERATIONS: Final = 4_096
SALT_BYTES: Final = 16
# Longer ones are no passwords: what prepares and hashes them would be kept busy.
MOST_PASSWORD_CHARS: Final = 1_024


class ScramMechanism(StrEnum):
    """The mechanisms, by SASL's names."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """The hash, as `hashlib` names it."""
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What is kept of a password. Nothing in it gives the password, but by trying all."""

    mechanism: ScramMechanism
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential({self.mechanism.value}, iterations={self.iterations})"


def credential(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = DEFAULT_ITERATIONS
) -> ScramCredential:
    """The credential of a password, prepared as SASLprep has it. Raises `InvalidConfigError`."""
    if not password:
        raise InvalidConfigError("A password has at least one character.")
    require_iterations(iterations)
    try:
        made = scramp.ScramMechanism(mechanism.value).make_auth_info(password, iterations, salt)
    except scramp.ScramException:  # its text may hold the password
        raise InvalidConfigError("The password has characters that SASL does not permit (RFC 4013).") from None
    return ScramCredential(mechanism, *made)


def require_iterations(iterations: int) -> None:
    """Refuse what is too cheap to try, or too dear to check. Raises `InvalidConfigError`."""
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise InvalidConfigError(
            f"iterations={iterations}: a SCRAM credential has {LEAST_ITERATIONS} to {MOST_ITERATIONS} iterations."
        )


def of_salted_password(
    mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
) -> ScramCredential:
    """The credential of what `kafka-configs.sh` sends in place of a password (KIP-554)."""
    require_iterations(iterations)
    stored_key, server_key = _keys(mechanism, salted_password)
    return ScramCredential(mechanism, salt, stored_key, server_key, iterations)


def decoy(mechanism: ScramMechanism, user: str, secret: bytes, iterations: int = DEFAULT_ITERATIONS) -> ScramCredential:
    """The credential that an unknown user is checked on: always the same for a name, and no password is right."""

    def derived(what: str, size: int) -> bytes:
        made = hmac.digest(secret, f"{what}\0{mechanism.value}\0{user}".encode(), "sha512")
        return made[:size]

    size = hashlib.new(mechanism.hash_name).digest_size
    return ScramCredential(
        mechanism, derived("salt", SALT_BYTES), derived("stored", size), derived("server", size), iterations
    )


def is_password(scram: ScramCredential, password: str) -> bool:
    """Whether it is the password of a credential: for SASL PLAIN and HTTP Basic. It costs all iterations.

    Kafka's clients and tools take a password as it is, others prepare it as SASLprep has it: either is right.
    """
    raw = password.encode("utf-8", "replace")
    try:
        prepared = saslprep(password).encode()
    except scramp.ScramException:
        prepared = raw
    checks = [_is_prepared_password(scram, one) for one in dict.fromkeys((prepared, raw))]
    return any(checks)


def _is_prepared_password(known: ScramCredential, password: bytes) -> bool:
    salted = hashlib.pbkdf2_hmac(known.mechanism.hash_name, password, known.salt, known.iterations)
    return hmac.compare_digest(_keys(known.mechanism, salted)[0], known.stored_key)


def exchange(mechanism: ScramMechanism, look_up: Callable[[str], ScramCredential]) -> scramp.core.ScramServer:
    """The server's side of an exchange; `look_up` gives a user's credential, or a decoy."""

    def auth_fn(user: str) -> tuple[bytes, bytes, bytes, int]:
        found = look_up(user)
        return found.salt, found.stored_key, found.server_key, found.iterations

    return scramp.ScramMechanism(mechanism.value).make_server(auth_fn)


def _keys(mechanism: ScramMechanism, salted_password: bytes) -> tuple[bytes, bytes]:
    """The stored key and the server key (RFC 5802, 3)."""
    name = mechanism.hash_name
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return hashlib.new(name, client_key).digest(), hmac.digest(salted_password, b"Server Key", name)
