"""The user that brokers are to each other: its credentials follow from the server's secret, so none are configured.

All brokers of a lake read the secret from `__access`; a process that can read it holds the store's credentials, which
allow more. No administrator adds, changes or removes this user, and certificates and tokens don't give its principal.
"""

import base64
import hmac
from functools import lru_cache
from typing import Final

from tidelog.access.credentials import DEFAULT_ITERATIONS, SALT_BYTES, ScramCredential, ScramMechanism, credential
from tidelog.access.state import AccessState

BROKER_USER: Final = "__broker"
# A super user, on every broker.
BROKER_PRINCIPAL: Final = f"User:{BROKER_USER}"


def broker_password(secret: bytes) -> str:
    """The user's password, of the server's secret. Raises ValueError where there is none yet."""
    return base64.b64encode(_derived(secret, "password")).decode()


@lru_cache(maxsize=8)
def broker_credential(secret: bytes, mechanism: ScramMechanism) -> ScramCredential:
    """What the password is checked against. Raises ValueError where there is no secret yet."""
    salt = _derived(secret, f"salt {mechanism.value}")[:SALT_BYTES]
    return credential(mechanism, broker_password(secret), salt, DEFAULT_ITERATIONS)


def known_credential(state: AccessState, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
    """A user's credential of a mechanism; None for a user that has none. The first time it costs all iterations."""
    if user == BROKER_USER:
        return broker_credential(state.secret, mechanism) if state.secret else None
    return state.scram.get((user, mechanism))


def _derived(secret: bytes, what: str) -> bytes:
    if not secret:
        raise ValueError("no secret: anyone could derive the password")
    return hmac.digest(secret, f"tidelog {BROKER_USER} {what}".encode(), "sha256")
