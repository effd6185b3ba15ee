"""How a listener is configured: its address, its protocol, its TLS, and its authentication."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

# The mechanisms that a listener offers where nothing else is configured: those that need no more than a password.
DEFAULT_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


class SecurityProtocol(StrEnum):
    """What is spoken on a listener, by Kafka's names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is spoken."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        """Whether clients authenticate by SASL, before anything else."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class ClientAuth(StrEnum):
    """Whether clients show a certificate: `ssl.client.auth`."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS of a listener; Kafka's setting in the comment. Files are PEM, PKCS#12 or JKS, or are in folders, as PEM.

    `keystore`: the certificate, those between it and its authority, and its private key; `truststore`: the
    authorities of clients' certificates, and of other brokers'. Without one, brokers trust the system's. `…_pem`: what
    such a file would hold, in place of one; `keystore` is then "".
    """

    keystore: str  # ssl.keystore.location
    key_password: str | None = field(default=None, repr=False)  # ssl.key.password
    truststore: str | None = None  # ssl.truststore.location
    client_auth: ClientAuth = ClientAuth.NONE  # ssl.client.auth
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")  # ssl.enabled.protocols
    principal_rules: str = "DEFAULT"  # ssl.principal.mapping.rules
    checks_host: bool = True  # ssl.endpoint.identification.algorithm: of other brokers, by their certificates
    keystore_password: str | None = field(default=None, repr=False)  # ssl.keystore.password
    truststore_password: str | None = field(default=None, repr=False)  # ssl.truststore.password
    keystore_pem: str | None = field(default=None, repr=False)  # ssl.keystore.certificate.chain and ssl.keystore.key
    truststore_pem: str | None = None  # ssl.truststore.certificates


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """A listener: where it is bound (port 0 takes a free one), and what is spoken there.

    `tls`: of a protocol that is encrypted, and of no other. `mechanisms`: SASL's, of a protocol that has it.
    """

    host: str
    port: int
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsSettings | None = None
    mechanisms: tuple[str, ...] = ()

    @property
    def authenticates(self) -> bool:
        """Whether clients can authenticate here: by SASL, or by certificates."""
        return self.protocol.has_sasl or (self.tls is not None and self.tls.client_auth is not ClientAuth.NONE)


def any_authenticates(listeners: Mapping[str, ListenerSettings]) -> bool:
    """Whether clients can authenticate at one of the listeners."""
    return any(one.authenticates for one in listeners.values())
