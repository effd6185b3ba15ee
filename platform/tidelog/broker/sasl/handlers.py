"""SASL's part of a broker: which listeners have clients log in, and what is answered at the others."""

from collections.abc import Callable, Mapping
from typing import Final

from tidelog.broker.base.calls import Handlers
from tidelog.broker.base.context import Context
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.sasl.exchanges import MECHANISMS, OAUTHBEARER
from tidelog.broker.sasl.login import ConnectionLogin, not_here
from tidelog.broker.sasl.logins import Logins
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.base.errors import InvalidConfigError
from tidelog.server.base.listener_settings import DEFAULT_MECHANISMS, ListenerSettings

SETTING: Final = "sasl.enabled.mechanisms"

# (listener, what hears of the principal) -> how a client logs in there, None where it needn't.
NewLogin = Callable[[str, Callable[[str], None]], ConnectionLogin | None]


def handlers(context: Context) -> Handlers:  # noqa: ARG001 - as each part's
    """What is answered on listeners without SASL."""
    return {ApiKey.SASL_HANDSHAKE: not_here, ApiKey.SASL_AUTHENTICATE: not_here}


def new_logins(settings: BrokerSettings, logins: Logins) -> NewLogin:
    """How connections begin that clients log in on. Raises `InvalidConfigError` for mechanisms that there are not."""
    offered = {name: _mechanisms(name, one, settings) for name, one in settings.listeners.items()}
    asked: Mapping[str, tuple[str, ...]] = {name: found for name, found in offered.items() if found}

    def new(listener: str, logged_in: Callable[[str], None]) -> ConnectionLogin | None:
        mechanisms = asked.get(listener)
        return None if mechanisms is None else ConnectionLogin(logins, mechanisms, logged_in)

    return new


def _mechanisms(name: str, listener: ListenerSettings, settings: BrokerSettings) -> tuple[str, ...]:
    if not listener.protocol.has_sasl:
        return ()
    mechanisms = listener.mechanisms or DEFAULT_MECHANISMS
    for mechanism in mechanisms:
        if mechanism not in MECHANISMS:
            raise InvalidConfigError(
                f"{SETTING} of the listener {name} has {mechanism!r}; there are {', '.join(MECHANISMS)}."
            )
    if OAUTHBEARER in mechanisms and settings.sasl.tokens is None:
        raise InvalidConfigError(
            f"The listener {name} has {OAUTHBEARER}, which needs the keys of the tokens' issuer:"
            " set sasl.oauthbearer.jwks.endpoint.url."
        )
    return mechanisms
