"""A registry in a process, configured as brokers are."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidelog.cli.serving.config_file import read_config
from tidelog.cli.serving.configuration import Given, given_by_environment, given_by_file, settings_of
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.lake import Lake
from tidelog.registry.api.serving import RegistryServer
from tidelog.server.base.listener_settings import TlsSettings, any_authenticates
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess


class HttpListenerSettings(NamedTuple):
    """Settings of brokers, as a server of HTTP goes by them."""

    access: HttpAccess
    tls: TlsSettings | None
    bounds: HttpBounds


def new_registry(
    lake: Lake,
    address: tuple[str, int],
    given: Given,
    *,
    topic: str = SCHEMAS_TOPIC,
    authenticate: bool = False,
    host_names: Iterable[str] = (),
) -> RegistryServer:
    """A registry with the settings of brokers that are about access and TLS.

    `authenticate`: clients must log in, also where no listener of brokers has them do so. `host_names`: by which
    clients may call it. Raises `UsageProblemError`.
    """
    access, tls, bounds = http_settings(given, "registry", authenticate=authenticate)
    return RegistryServer(lake, address, topic=topic, bounds=bounds, access=access, tls=tls, host_names=host_names)


def http_settings(given: Given, listener: str, *, authenticate: bool) -> HttpListenerSettings:
    """What is said of access, TLS and bounds. `listener`: what is set for `listener.name.LISTENER.` comes first.

    `authenticate`: as `new_registry` has it. Raises `UsageProblemError`.
    """
    settings = settings_of(given)
    access = HttpAccess(
        authenticate or any_authenticates(settings.listeners),
        settings.access.super_users,
        settings.access.everyone,
        settings.sasl.tokens,
        settings.sasl.failures_per_minute,
        settings.sasl.failed_delay_s,
    )
    keystore = _text(given, listener, "ssl.keystore.location")
    password = _text(given, listener, "ssl.key.password")
    of_store = _text(given, listener, "ssl.keystore.password")
    tls = TlsSettings(keystore, password or None, keystore_password=of_store or None) if keystore else None
    bounds = settings.bounds
    return HttpListenerSettings(
        access, tls, HttpBounds(bounds.max_connections, bounds.max_connections_per_ip, bounds.idle_s)
    )


def given_settings(config: str | None, environment: Mapping[str, str]) -> Given:
    """The settings of a configuration file and of the environment. Raises `UsageProblemError`."""
    in_file = {} if config is None else given_by_file(read_config(config), config)
    return in_file | given_by_environment(environment)


def _text(given: Given, listener: str, name: str) -> str:
    found = given.get(f"listener.name.{listener}.{name}") or given.get(name)
    return "" if found is None else found.text.strip()
