"""The registry as a server of HTTP: started, and stopped."""

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import uvicorn

from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.registry.api.app import MOST_BYTES, RegistryApp
from tidelog.registry.api.logins import RegistryAccess, RegistryLogins
from tidelog.registry.log.registry_log import SCHEMAS_TOPIC, RegistryLog

logger = logging.getLogger("tidelog.registry")

BACKLOG: Final = 1024
# How long requests may take to end once the server is asked to stop.
_STOPS_WITHIN_S: Final = 10


class RegistryAddressError(TidelogError):
    """An address that a registry can't listen at."""


@dataclass(frozen=True, slots=True)
class RegistryTls:
    """`keystore`: a PEM file of a certificate and its private key (ssl.keystore.location)."""

    keystore: str
    key_password: str | None = field(default=None, repr=False)


class RegistryServer:
    """A registry over a lake at an address. `topic`: where its records are.

    `access`: what clients may do; None: everything. `tls`: None speaks HTTP without encryption.

    `address`: (host, port); port 0 takes a free one. Raises `RegistryAddressError`, and what reading the topic raises.
    """

    def __init__(
        self,
        lake: Lake,
        address: tuple[str, int],
        *,
        topic: str = SCHEMAS_TOPIC,
        most_bytes: int = MOST_BYTES,
        access: RegistryAccess | None = None,
        tls: RegistryTls | None = None,
    ) -> None:
        self.log = RegistryLog(lake, topic)
        self.schemas = self.log.look(len)
        self._logins = None if access is None else RegistryLogins(lake, access)
        if access is not None and access.authenticates and tls is None:
            logger.warning("The registry has no TLS: passwords and tokens come to it as they are.")
        self.scheme = "http" if tls is None else "https"
        config = uvicorn.Config(
            RegistryApp(self.log, most_bytes, self._logins),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # ACLs go by the address that a connection comes from
            ssl_certfile=None if tls is None else tls.keystore,
            ssl_keyfile_password=None if tls is None else tls.key_password,
            timeout_graceful_shutdown=_STOPS_WITHIN_S,
        )
        try:
            config.load()
        except (OSError, ValueError) as error:  # what ssl raises is one of them
            named = "" if tls is None else tls.keystore
            raise RegistryAddressError(
                f"The registry can't speak TLS with {named}: {error}. It must be a PEM file with the certificate,"
                " those up to its authority, and the private key."
            ) from error
        self._server = uvicorn.Server(config)
        self._socket = _bound(address)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`; `ready` is called once clients can connect. Requests that began, end.

        Signals are the caller's, unless it calls this in the main thread: then SIGTERM and SIGINT end the server, too,
        and are raised again.
        """
        host, port = self.address
        logger.info("Registry started: listener=%s:%d lake=%s schemas=%d", host, port, self.log.uri, self.schemas)
        ready()  # the socket takes connections already, and keeps them until the server accepts them
        try:
            self._server.run([self._socket])
        finally:
            self._socket.close()
            if self._logins is not None:
                self._logins.close()
            logger.info("Registry stopped")

    def stop(self) -> None:
        """Ask the server to end, from any thread."""
        self._server.should_exit = True


def _bound(address: tuple[str, int]) -> socket.socket:
    host, port = address
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
    except OSError as error:
        raise RegistryAddressError(
            f"The registry can't listen at {host}:{port}: {error.strerror or error}. Give another address, or end what"
            " listens there."
        ) from error
