"""An application of HTTP: the steps that each request goes through, each written once for all servers."""

import json
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Generic, TypeAlias
from urllib.parse import parse_qs

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tidelog.operations.metric_families import Labels
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.lasting import RightEndedError
from tidelog.server.logins import ANYONE, HttpLogins
from tidelog.server.requests import JSON, RequestBodies, from_json, path_of, refusal_headers, sender
from tidelog.server.routes import Answer, C, Route, Routes

# How many requests are in work at a time.
_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """The answer to a request that failed, as {error_code, message}. `code`: what it names, the status unless given."""

    status: int
    message: str
    code: int = 0


def by_status(error: Any) -> HttpRefusal:
    """The refusal of an error that has a status of HTTP."""
    return HttpRefusal(error.status, str(error))


# What is said of each kind of error; the first row that fits counts.
Refusals: TypeAlias = tuple[tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Any], HttpRefusal]], ...]


class App(Generic[C]):
    """An ASGI application. A request is routed, its sender logs in, it is admitted, its body is read, and its handler
    runs in a thread; what one of these raises becomes an answer, too, and each answer is counted.

    A face gives `routes`, `call`, which makes what handlers get of the fields of `HttpCall`, and below what its dialect
    is. `logins`: None lets everyone do everything. `answered`: {(name of the request, status): count}.
    """

    logger: ClassVar[logging.Logger]
    refusals: ClassVar[Refusals]
    media_type: ClassVar[str] = JSON
    # Whether rights need nothing of a body, and are asked for before it is read.
    rights_first: ClassVar[bool] = False
    # Whether requests that change nothing count in the bound of those that are in work at a time.
    bounds_reads: ClassVar[bool] = True

    def __init__(
        self,
        routes: Routes[C],
        call: Callable[..., C],
        bounds: HttpBounds | None = None,
        logins: HttpLogins | None = None,
    ) -> None:
        self._routes = routes
        self._call = call
        self._logins = logins
        self.bodies = RequestBodies(bounds or HttpBounds())
        self._limiter: CapacityLimiter | None = None
        self.answered: Counter[tuple[str, int]] = Counter()

    @property
    def answers(self) -> list[tuple[Labels, float]]:
        """How many requests were answered, by name and status, as samples of a metric."""
        answered = sorted(self.answered.copy().items())
        return [({"request": name or "none", "status": str(status)}, count) for (name, status), count in answered]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of HTTP."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            name, response = await self.handled(request)
        except ClientDisconnect:
            return
        if request.method == "HEAD" and isinstance(response, StreamingResponse):  # its body may have no end
            response = Response(None, response.status_code, dict(response.headers))
        self.answered[name, response.status_code] += 1
        try:
            await response(scope, receive, send)
        except RightEndedError as error:  # the server sees an answer that has no end, and breaks the connection
            self.logger.warning("An answer was broken off: request=%s: %s", name, error)

    async def handled(self, request: Request) -> tuple[str, Response]:
        """The name of the request, "" before there is one, and its answer."""
        name, media_type = "", self.media_type
        try:
            route, variables = self._routes.routed(method_of(request), path_of(request))
            name = self.counted(route)
            media_type = self.accepted(request.headers.get("accept", "*/*"))
            logins = self._logins
            client = ANYONE if logins is None else await sender(logins, request, self.audited(route))
            query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            call = self._call(variables, query, None, client, route.changes)
            if self.rights_first:
                route.right(call)
            self.admit(request, route, call)
            self._limiter = self._limiter or CapacityLimiter(_THREADS)  # made here: it belongs to the loop
            limiter = self._limiter if call.changes or self.bounds_reads else None
            async with self.bodies.of(request, route.most_bytes) as body:
                call = replace(call, body=self.read(request, body))
                return name, await to_thread.run_sync(self._written, route, call, media_type, limiter=limiter)
        except ClientDisconnect:
            raise
        except Exception as error:
            return name, self.failed(error, media_type)

    def _written(self, route: Route[C], call: C, media_type: str) -> Response:
        answer = self.work(route, call)
        if isinstance(answer, Response):
            return answer
        if not isinstance(answer, Answer):
            return Response(self.json(answer), media_type=media_type)
        if answer.value is None:
            return Response(None, answer.status, dict(answer.headers))
        body = answer.value if isinstance(answer.value, bytes) else self.json(answer.value)
        return Response(body, answer.status, dict(answer.headers), media_type)

    def failed(self, error: Exception, media_type: str) -> Response:
        """The answer to a request that failed."""
        refusal = next((said(error) for kinds, said in self.refusals if isinstance(error, kinds)), None)
        if refusal is None:
            self.logger.error("A request failed: this is a bug.", exc_info=error)
            refusal = HttpRefusal(500, "Internal Server Error")
        body = self.json({"error_code": refusal.code or refusal.status, "message": refusal.message})
        refused = (
            error.status if isinstance(error, RequestRefusedError) else refusal.status
        )  # a dialect may have others
        return Response(body, refusal.status, refusal_headers(refused), media_type)

    # --- the dialect -------------------------------------------------------------------------------------------

    def audited(self, route: Route[C]) -> str:
        """How the audit names a request."""
        return f"{route.method} {route.path}"

    def counted(self, route: Route[C]) -> str:
        """How metrics name a request."""
        return self.audited(route)

    def accepted(self, accept: str) -> str:  # noqa: ARG002 - for those that have a choice
        """The media type that a header Accept has answers be of."""
        return self.media_type

    def admit(self, request: Request, route: Route[C], call: C) -> None:
        """Raise for a request that is refused by its head, before its body is read."""

    def read(self, request: Request, body: bytes) -> Any:
        """A body, b"" where there is none, as handlers get it."""
        return from_json(request, body)

    def work(self, route: Route[C], call: C) -> Any:
        """What the handler gives, for a client that may have it. In a thread."""
        if not self.rights_first:
            route.right(call)
        return route.handler(call)

    def json(self, value: Any) -> bytes:
        """A value as JSON."""
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def method_of(request: Request) -> str:
    """The method whose route a request takes: a HEAD is a GET whose answer has no body."""
    return "GET" if request.method == "HEAD" else request.method
