"""Listeners of a configuration: Kafka's keys, as values."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tidelog.access.principal_rules import PrincipalRules
from tidelog.cli.serving.kafka_file import Problems
from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import listed
from tidelog.log.config.broker_keys import LISTENER_PREFIX
from tidelog.server.base.listener_settings import (
    DEFAULT_MECHANISMS,
    ClientAuth,
    ListenerSettings,
    SecurityProtocol,
    TlsSettings,
)
from tidelog.server.base.listeners import Address, ListenerError, parse_address
from tidelog.server.base.tls import VERSIONS

MECHANISMS: Final = ("PLAIN", *DEFAULT_MECHANISMS, "OAUTHBEARER")
# One file may configure brokers and the servers of HTTP beside them, whose settings are named in the same way.
HTTP_SERVERS: Final = frozenset({"REGISTRY", "CONSOLE"})
_STORES: Final = ("PEM", "PKCS12", "JKS")
_PROTOCOLS: Final = ", ".join(SecurityProtocol)


def addresses_of(key: str, text: str) -> dict[str, Address]:
    """{listener: (host, port)} of NAME://HOST:PORT, separated by commas. Raises `UsageProblemError`."""
    addresses: dict[str, Address] = {}
    for listener in listed(text):
        name, mark, address = listener.partition("://")
        name = name.strip().upper()
        if not mark or not name:
            raise UsageProblemError(
                f"{key}: {listener!r} is no listener. Write NAME://HOST:PORT, as in SSL://0.0.0.0:9093."
            )
        if name in addresses:
            raise UsageProblemError(f"{key}: {name} is there twice. Give each listener a name of its own.")
        try:
            addresses[name] = parse_address(address)
        except ListenerError as e:
            raise UsageProblemError(f"{key}: {e}") from e
    return addresses


def listeners_of(
    config: Mapping[str, str], addresses: Mapping[str, Address], problems: Problems
) -> dict[str, ListenerSettings]:
    """The listeners at these addresses, as configured; those that are wrong are in `problems` instead."""
    protocols = _protocols(config, problems)
    with problems.noted():
        _require_names(config, addresses)
    listeners = {}
    for name, address in addresses.items():
        with problems.noted():
            listeners[name] = _listener(name, address, _protocol(name, protocols), config)
    return listeners


def inter_broker_of(
    config: Mapping[str, str], names: Mapping[str, object], listeners: Mapping[str, ListenerSettings]
) -> str | None:
    """The listener that brokers ask each other on: by its name, or the first of a protocol. None where neither is said.

    `names`: of all listeners, of those too whose settings are wrong. Raises `UsageProblemError`.
    """
    key = "inter.broker.listener.name"
    name = config.get(key, "").upper()
    if name and name not in names:
        raise UsageProblemError(f"{key}: {name} is none of listeners. There are {', '.join(names)}.")
    protocol = config.get("security.inter.broker.protocol", "").strip().upper()
    if name or not protocol:
        return name or None
    if protocol in names:
        return protocol
    listener_name = next((one for one, listener in listeners.items() if listener.protocol == protocol), None)
    if listener_name is None and listeners.keys() == names.keys():
        raise UsageProblemError(
            f"security.inter.broker.protocol: no listener is {protocol}. Name one of {', '.join(names)} as {key}."
        )
    return listener_name


def advertised_of(config: Mapping[str, str], names: Mapping[str, object]) -> dict[str, Address]:
    """Where clients are sent. Raises `UsageProblemError`."""
    key = "advertised.listeners"
    addresses = addresses_of(key, config.get(key, ""))
    for name, (host, port) in addresses.items():
        if name not in names:
            raise UsageProblemError(f"{key}: {name} is none of listeners. There are {', '.join(names)}.")
        if host in ("0.0.0.0", "::") or not port:  # noqa: S104 - compared, not bound
            raise UsageProblemError(f"{key}: {name} needs a host and a port that clients can connect to.")
    return addresses


def _protocols(config: Mapping[str, str], problems: Problems) -> dict[str, SecurityProtocol]:
    key = "listener.security.protocol.map"
    protocols = {str(one): one for one in SecurityProtocol}
    for part in listed(config.get(key, "")):
        name, _, protocol = (word.strip().upper() for word in part.partition(":"))
        if protocol in SecurityProtocol.__members__:
            protocols[name] = SecurityProtocol[protocol]
        else:
            problems.add(f"{key}: {part!r} names no protocol. Write NAME:PROTOCOL with one of {_PROTOCOLS}.")
    return protocols


def _protocol(name: str, protocols: Mapping[str, SecurityProtocol]) -> SecurityProtocol:
    if name not in protocols:
        raise UsageProblemError(
            f"listeners: {name} has no protocol. Add {name}:PROTOCOL to listener.security.protocol.map, with one of"
            f" {_PROTOCOLS}."
        )
    return protocols[name]


def _require_names(config: Mapping[str, str], names: Mapping[str, object]) -> None:
    """Refuse settings of a listener that is not there."""
    for key in config:
        if key.startswith(LISTENER_PREFIX):
            name = key.removeprefix(LISTENER_PREFIX).partition(".")[0].upper()
            if name not in names and name not in HTTP_SERVERS:
                raise UsageProblemError(f"{key}: {name} is none of listeners. There are {', '.join(names)}.")


def _listener(name: str, address: Address, protocol: SecurityProtocol, config: Mapping[str, str]) -> ListenerSettings:
    own = f"{LISTENER_PREFIX}{name.lower()}."

    def value(key: str, default: str = "", *, of_all: bool = True, or_empty: bool = False) -> str:
        found = config.get(own + key, config.get(key) if of_all else None)
        return default if found is None or not (found or or_empty) else found

    tls = _tls(name, protocol, value) if protocol.is_encrypted else None
    mechanisms: tuple[str, ...] = ()
    if protocol.has_sasl:
        mechanisms = tuple(one.upper() for one in listed(value("sasl.enabled.mechanisms"))) or DEFAULT_MECHANISMS
        for mechanism in mechanisms:
            if mechanism not in MECHANISMS:
                raise UsageProblemError(
                    f"sasl.enabled.mechanisms: brokers have no {mechanism}. There are {', '.join(MECHANISMS)}."
                )
    return ListenerSettings(*address, protocol, tls, mechanisms)


def _tls(name: str, protocol: SecurityProtocol, value: Callable[..., str]) -> TlsSettings:
    keystore, truststore = value("ssl.keystore.location"), value("ssl.truststore.location")
    chain, key, authorities = (
        value(f"ssl.{one}") for one in ("keystore.certificate.chain", "keystore.key", "truststore.certificates")
    )
    if not keystore and not chain:
        raise UsageProblemError(
            f"The listener {name} is {protocol}, which needs a certificate: name a file with it and its key (PEM,"
            " PKCS#12 or JKS) as ssl.keystore.location."
        )
    for what in ("keystore", "truststore"):
        if (kind := value(f"ssl.{what}.type", "PEM").upper()) not in _STORES:
            raise UsageProblemError(f"ssl.{what}.type: {kind} is none of {', '.join(_STORES)}.")
    auth: dict[str, Any] = {str(one): one for one in ClientAuth}
    # As Kafka has it: where clients log in by SASL, certificates are asked for only if that listener says so.
    asked = value("ssl.client.auth", "none", of_all=not protocol.has_sasl).lower()
    if asked not in auth:
        raise UsageProblemError(f"ssl.client.auth: {asked!r} is none of {', '.join(auth)}.")
    if asked != "none" and not truststore and not authorities:
        raise UsageProblemError(
            f"The listener {name} asks for clients' certificates: name a file of their authorities as"
            " ssl.truststore.location. Any authority of the system's could else make a principal."
        )
    versions = listed(value("ssl.enabled.protocols", ",".join(VERSIONS)))
    for one in versions:
        if one not in VERSIONS:
            raise UsageProblemError(f"ssl.enabled.protocols: {one!r} is none of {', '.join(VERSIONS)}.")
    rules = value("ssl.principal.mapping.rules", "DEFAULT")
    try:
        PrincipalRules(rules)
    except InvalidConfigError as e:
        raise UsageProblemError(str(e)) from e
    return TlsSettings(
        keystore,
        value("ssl.key.password") or None,
        truststore or None,
        auth[asked],
        tuple(versions),
        rules,
        checks_host=_checks_host(value),
        keystore_password=value("ssl.keystore.password") or None,
        truststore_password=value("ssl.truststore.password") or None,
        keystore_pem=None if keystore else f"{chain}\n{key}\n",
        truststore_pem=authorities or None if not truststore else None,
    )


def _checks_host(value: Callable[..., str]) -> bool:
    algorithm = value("ssl.endpoint.identification.algorithm", "https", or_empty=True).lower()
    if algorithm not in ("https", ""):
        raise UsageProblemError(
            f"ssl.endpoint.identification.algorithm: {algorithm!r} is neither https nor empty, which checks no names."
        )
    return bool(algorithm)
