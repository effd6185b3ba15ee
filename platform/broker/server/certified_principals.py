"""Principals of clients by the certificates that they show: `ssl.principal.mapping.rules`."""

import ssl

from tidelog.access.broker_user import BROKER_PRINCIPAL
from tidelog.access.distinguished_names import subject_of
from tidelog.access.principal_rules import NoPrincipalError, PrincipalRules
from tidelog.broker.base.calls import Peer
from tidelog.broker.base.listener_settings import ClientAuth, ListenerSettings

_ANONYMOUS = Peer().principal


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
        found = self._rules.principal(name)
        if found == BROKER_PRINCIPAL:
            raise NoPrincipalError(f"The certificate of {name!r} would make a client the brokers' own user.")
        return found
