"""A worker's file: its settings, and its listener's TLS and log-ins, by the keys that Connect and brokers have."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tidelog.cli.serving.config_file import read_config
from tidelog.cli.serving.configuration import given_by_file, settings_of
from tidelog.cli.serving.registry_serving import http_settings
from tidelog.commands.failures import UsageProblemError
from tidelog.connect.config.providers import ConfigProviders
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess

# Connect's prefix of what counts for the listener of its API alone.
_OWN: Final = "listeners.https."
# Settings of brokers that a worker's file may have, too.
_SHARED: Final = ("ssl.", "sasl.oauthbearer.", "super.users", "allow.everyone.if.no.acl.found", "max.connections")
_ADDRESS: Final = ("127.0.0.1", 0)  # for the settings' sake: where the worker listens is the command's option


class WorkerFile(NamedTuple):
    """What a worker's file says. `access`: None lets clients do everything; `tls`: None is without encryption.

    `hide`: puts variables in place of their values in a text.
    """

    settings: WorkerSettings
    access: HttpAccess | None
    bounds: HttpBounds
    tls: TlsSettings | None
    hide: Callable[[str], str]


def read_worker_file(path: str | None, *, authenticate: bool) -> WorkerFile:
    """Read it; the defaults without one. `authenticate`: clients must log in. Raises `UsageProblemError`."""
    raw = {} if path is None else read_config(path)
    try:
        providers = ConfigProviders(raw)
        given = providers.resolved(raw).config
        settings = WorkerSettings.of(given)
    except ConnectError as error:
        raise UsageProblemError(str(error)) from None
    access, bounds, tls = listener_of(given, path or "", authenticate=authenticate)
    return WorkerFile(settings, access, bounds, tls, providers.secrets.hidden)


def listener_of(
    properties: Mapping[str, str], path: str, *, authenticate: bool
) -> tuple[HttpAccess | None, HttpBounds, TlsSettings | None]:
    """What clients may do (None: everything), what they may hold, and TLS (None: without encryption).

    `properties`: a worker's, of which others than a listener's are left alone; `path`: their file, for refusals. Raises
    `UsageProblemError`.
    """
    shared = {key: value for key, value in properties.items() if key.startswith(_SHARED)}
    own = {key.removeprefix(_OWN): value for key, value in properties.items() if key.startswith(_OWN)}
    given = given_by_file({**shared, **own}, path)
    name = "SSL" if "ssl.keystore.location" in given else "PLAINTEXT"
    settings = settings_of(given, {name: _ADDRESS})
    found = http_settings(given, "https", authenticate=authenticate)
    return found.access if authenticate else None, found.bounds, settings.listeners[name].tls
