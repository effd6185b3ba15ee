"""A server of HTTP: an address, TLS whose files may change, ids of requests; started and stopped."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from typing import Final

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.request_ids import REQUEST, RequestId, one_word
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.base.listeners import shown
from tidelog.server.base.tls import ListenerTls
from tidelog.server.connections import HttpBounds, HttpCounts, bounded
from tidelog.server.hosts import KnownHosts, OwnHosts
from tidelog.server.logins import HttpLogins
from tidelog.server.process.serving import Ready, Service
from tidelog.server.process.stopping import Stop
from tidelog.server.telemetry.tracing import Tracing, traceparents

_LOG: Final = logging.getLogger("tidelog.web")
BACKLOG: Final = 1024
_REQUEST_ID: Final = b"x-request-id"
_TRACEPARENT: Final = b"traceparent"
_SERVER_FAILED: Final = 500
# Those that name a span: what a client calls its request otherwise may be of any length, and any number of names.
_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class RequestIds:
    """An application whose requests have ids. A client that names a request in `X-Request-Id` finds that in the log.

    Other requests are numbered. The answer has the header, too. At level DEBUG each answer is a line of the log.
    A client that names its trace in `traceparent` finds its request there, where requests are traced.
    """

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._numbers = count(1)
        self.tracing: Tracing | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        named = one_word(headers.get(_REQUEST_ID, b"").decode("latin-1")) or str(next(self._numbers))
        host, port = scope.get("client") or ("", 0)
        agent = headers.get(b"user-agent", b"").decode("latin-1").split(" ")[0]
        span = None
        if self.tracing is not None:
            parents = traceparents([headers.get(_TRACEPARENT, b"")])
            name = scope["method"] if scope["method"] in _METHODS else "HTTP"
            span = self.tracing.begin(name, self._clock.elapsed_s(), parents)
        REQUEST.set(RequestId(host, port, agent or None, named, span))
        status = 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (_REQUEST_ID, named.encode("ascii", "replace"))]
                path = "/".join(map(one_word, scope["path"].split("/")))
                _LOG.debug("Answered: method=%s path=%s status=%d", scope["method"], path, message["status"])
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            if span is not None:
                span.note({
                    "http.request.method": scope["method"],
                    "url.path": scope["path"],
                    "http.response.status_code": status,
                    "client.address": host,
                    "user_agent.original": agent,
                })  # fmt: skip
                span.end(self._clock.elapsed_s(), "" if 0 < status < _SERVER_FAILED else str(status))


class HttpAddressError(TidelogError):
    """An address that a server can't listen at."""


class HttpServer(Service):
    """An application at an address. `named`: what it is, for refusals and the log. `media_type`: of refusals.

    `tls`: None speaks HTTP without encryption; files that change are read again within a second, and count for new
    connections. `stops_within_s`: how long requests may take to end once the server is asked to stop. `address`: (host,
    port); port 0 takes a free one. `path`: what clients ask for first. `host_names`: by which clients may call it
    besides the address and what `KnownHosts` knows; `authenticates`: clients must log in. Raises `HttpAddressError`,
    `TlsError`.

    A face of a lake gives its log, its metrics, what begins and ends with its application, and in `about` what is said
    of it beside its address: its lake first.
    """

    logger: logging.Logger
    about: Mapping[str, object]
    _logins: HttpLogins | None = None

    def __init__(
        self,
        app: ASGIApp,
        address: tuple[str, int],
        clock: Clock,
        *,
        named: str,
        path: str = "",
        media_type: str = "application/json",
        bounds: HttpBounds | None = None,
        tls: TlsSettings | None = None,
        stops_within_s: int = 10,
        host_names: Iterable[str] = (),
        authenticates: bool = False,
    ) -> None:
        bounds = bounds or HttpBounds()
        self.named = named
        self._clock = clock
        self._tls = None if tls is None else ListenerTls(named, tls, self._now())
        self.scheme = "http" if tls is None else "https"
        if authenticates and tls is None:
            self.logger.warning("The %s has no TLS: passwords and tokens come to it as they are.", named)
        self.connections = HttpCounts()
        known = KnownHosts((address[0], *host_names)) if tls is None else None
        own = OwnHosts(app, known, named=named, media_type=media_type, authenticates=authenticates)
        self._requests = RequestIds(own, clock)
        config = uvicorn.Config(
            self._requests,
            interface="asgi3",  # uvicorn takes a method for an older kind
            http=bounded(bounds, self.connections, media_type),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # ACLs go by the address that a connection comes from
            ssl_context_factory=None if self._tls is None else lambda *_: self._context(),
            timeout_keep_alive=int(bounds.idle_s) or 1,
            h11_max_incomplete_event_size=bounds.headers,
            timeout_graceful_shutdown=stops_within_s,
            callback_notify=self._look,
            timeout_notify=1,
        )
        # What it says of itself, and of requests that are none, is said by the server that it is part of.
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        config.load()
        self._server = uvicorn.Server(config)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=named)
        self._served: Future[None] | None = None
        self._socket = bound_socket(address, named)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self.url = f"{self.scheme}://{shown(self.address)}{path}"

    def trace(self, tracing: Tracing) -> None:
        """Requests become traces."""
        self._requests.tracing = tracing

    def start(self) -> None:
        """Serve in a thread: there uvicorn leaves signals alone. The socket has taken connections before."""
        self.begin()
        self._served = self._thread.submit(self._server.run, [self._socket])

    def ready(self, metrics: str | None) -> Ready:
        """Its address."""
        document = {"url": self.url, **self.about, **({} if metrics is None else {"metrics": metrics})}
        return Ready(f"{self.named.capitalize()} ready at {self.url} ({self.about['lake']})", document)

    def run(self, stop: Stop) -> None:
        """Serve until `stop`, or until the server has failed, which `stop` raises."""
        if self._served is not None:
            self._served.add_done_callback(lambda _: stop.ask("its server has ended"))
        super().run(stop)

    def drain(self) -> None:
        """Ask the server to end, from any thread: requests that began, end."""
        self._server.should_exit = True

    def stop(self) -> None:
        """End once requests that began have ended."""
        self.drain()
        try:
            if self._served is not None:
                self._served.result()
        finally:
            self._thread.shutdown()
            self._socket.close()
            if self._served is not None:
                self.end()

    def begin(self, **counts: int) -> None:
        """Begin what runs beside the application. `counts`: what the log says of it, besides."""
        said = "".join(f" {name}={value}" for name, value in {**self.about, **counts}.items())
        self.logger.info("%s started: listener=%s:%d%s", self.named.capitalize(), *self.address, said)

    def end(self) -> None:
        """End what runs beside the application, which answers no more."""
        if self._logins is not None:
            self._logins.close()
        self.logger.info("%s stopped", self.named.capitalize())

    def _context(self) -> ssl.SSLContext:
        """A context whose handshakes take the certificate of the moment."""
        tls = self._tls
        assert tls is not None  # the caller looks

        def newest(handshake: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
            handshake.context = tls.server

        tls.server.sni_callback = newest
        return tls.server

    async def _look(self) -> None:
        if self._tls is not None:
            await asyncio.to_thread(self._tls.look, self._now())

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)


def bound_socket(address: tuple[str, int], named: str) -> socket.socket:
    """A socket that listens. `named`: for the refusal, `HttpAddressError`."""
    host, port = address
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
    except OSError as error:
        raise HttpAddressError(
            f"The {named} can't listen at {host}:{port}: {error.strerror or error}. Give another address, or end what"
            " listens there."
        ) from error
