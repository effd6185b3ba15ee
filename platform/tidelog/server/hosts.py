"""Which names a server of HTTP is called by: a page of a stranger's site must not reach it by that site's own name.

A page can have its name server answer with the address of a server in its reader's network (DNS rebinding). For the
browser page and server are then one site: it sends what the page asks, without a word of another origin. All that tells
such a request from others is the name in its header Host.
Source: OWASP's cheat sheets; RFC 6761, RFC 6762 and RFC 8375 for names that no stranger can have.
"""

import ipaddress
import logging
import socket
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger("tidelog.web")

# Takes any name, for a server that is behind a proxy which looks at names itself.
ANY: Final = "*"
_PRIVATE: Final = frozenset({"localhost", "local", "internal", "svc", "home.arpa"})
_LIVES: Final = frozenset({"/healthz", "/livez"})
# Names that the log warns of, each once.
_MOST_WARNED: Final = 20
_FORBIDDEN: Final = 403


class KnownHosts:
    """The names of one server: `names`, and those that no page of a stranger's site can have.

    These are addresses (they need no name server), names without a dot, and names below those that networks keep for
    themselves: localhost, local, internal, svc, home.arpa.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower().rstrip(".") for name in (*names, socket.gethostname()))

    def knows(self, host: str) -> bool:
        """Whether the server is called by the name of a header Host, which may have a port.

        >>> known = KnownHosts(["lake.example"])
        >>> [known.knows(host) for host in ("Lake.example:8080", "registry:8081", "[::1]", "evil.example", "")]
        [True, True, True, False, False]
        """
        named = _host_name(host)
        if not named:
            return False
        private = "." not in named or any(named.endswith(f".{ending}") for ending in _PRIVATE)
        return ANY in self._names or named in self._names or private or _is_address(named)


class OwnHosts:
    """An application that answers requests by a server's own names only, others by 403; and `/healthz` by any.

    `hosts`: None takes any name: with TLS the browser itself compares it with the certificate. `authenticates`: clients
    must log in, so that one that does is no stranger's page. `media_type`: of refusals.
    """

    def __init__(
        self, app: ASGIApp, hosts: KnownHosts | None, *, named: str, media_type: str, authenticates: bool = False
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._named = named
        self._media_type = media_type
        self._authenticates = authenticates
        self._warned: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] in _LIVES and scope["method"] in ("GET", "HEAD"):
            headers = {"cache-control": "no-store"}
            await Response(b'{"status":"ok"}', 200, headers, "application/json")(scope, receive, send)
        elif self._may(Headers(scope=scope)):
            await self._app(scope, receive, send)
        else:
            await self._refusal(Headers(scope=scope)["host"])(scope, receive, send)

    def _may(self, headers: Headers) -> bool:
        host = headers.get("host")  # a client of HTTP/1.0 may have none; a browser always has one
        if self._hosts is None or host is None or (self._authenticates and "authorization" in headers):
            return True
        return self._hosts.knows(host)

    def _refusal(self, host: str) -> Response:
        if host not in self._warned and len(self._warned) < _MOST_WARNED:
            self._warned.add(host)
            logger.warning("The %s is not known by this name, and refuses its requests: host=%r", self._named, host)
        said = (
            f"The {self._named} isn't known by the host that the request names. Start it with --host-name (a broker"
            " with --registry-host-name) to have it be."
        )
        body = orjson.dumps({"error_code": _FORBIDDEN, "message": said})
        return Response(body, _FORBIDDEN, {"x-content-type-options": "nosniff"}, self._media_type)


def _host_name(host: str) -> str | None:
    """The name in a header Host, in small letters; None where there is anything but a name and a port."""
    try:
        split = urlsplit(f"//{host}")
        valid = split.port is None or split.port > 0
    except ValueError:
        return None
    named = split.hostname if valid and split.netloc == host and "@" not in host else None
    return None if named is None else named.removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
