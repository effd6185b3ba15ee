"""The console as an ASGI application: guards, log-ins, bodies, and errors as JSON whatever goes wrong."""

import logging
from collections import Counter
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qs

import orjson
from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.base.errors import ConsoleError
from tidelog.console.base.rights import EVERYTHING, ConsoleRights
from tidelog.console.base.routing import ConsoleRoute, Routes
from tidelog.console.guard import CSRF_HEADER, HEADERS, require_own_page, require_token
from tidelog.console.sql.box import InvalidQueryError, NoSuchQueryError, TooManyQueriesError
from tidelog.console.static import PageFiles
from tidelog.log.base.errors import (
    GroupNotEmptyError,
    GroupNotFoundError,
    InvalidConfigError,
    InvalidGroupError,
    InvalidPartitionsError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTopicError,
    LakeFollowsError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    RecordTooLargeError,
    TidelogError,
    TopicExistsError,
    TransactionalIdNotFoundError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.lasting import RightEndedError, while_it_stands
from tidelog.server.logins import HttpLogins
from tidelog.server.requests import JSON, RequestBodies, from_json, path_of, refusal_headers, sender

logger = logging.getLogger("tidelog.console")

# How many requests are in work at a time.
_THREADS: Final = 16
_STATUSES: Final[tuple[tuple[type[TidelogError], int], ...]] = (
    (UnknownTopicError, 404),
    (UnknownPartitionError, 404),
    (TopicExistsError, 409),
    (LakeFollowsError, 409),
    (GroupNotFoundError, 404),
    (TransactionalIdNotFoundError, 404),
    (NoSuchQueryError, 404),
    (GroupNotEmptyError, 409),
    (InvalidGroupError, 400),
    (InvalidQueryError, 400),
    (TooManyQueriesError, 429),
    (RecordTooLargeError, 413),
    (InvalidTopicError, 400),
    (InvalidConfigError, 400),
    (InvalidPartitionsError, 400),
    (InvalidRecordError, 400),
    (InvalidTimestampError, 400),
    (OffsetOutOfRangeError, 400),
    (PolicyViolationError, 400),
)


class ConsoleApp:
    """Static files, and routes below /api. Handlers run in threads. `answered`: {(method and path, status): count}.

    `logins`: None lets everyone do everything.
    """

    def __init__(
        self,
        console: Console,
        routes: Routes,
        logins: HttpLogins | None = None,
        bounds: HttpBounds | None = None,
    ) -> None:
        self._console = console
        self._routes = routes
        self._logins = logins
        self._bodies = RequestBodies(bounds or HttpBounds())
        self._page = PageFiles()
        self._limiter: CapacityLimiter | None = None
        self.answered: Counter[tuple[str, int]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of HTTP."""
        if scope["type"] != "http":
            return
        named = [""]
        try:
            response = await self._response(Request(scope, receive), named)
        except ClientDisconnect:
            return
        if scope["method"] == "HEAD" and isinstance(response, StreamingResponse):  # its body may have no end
            response = Response(None, response.status_code, dict(response.headers))
        for name, value in HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("cache-control", "no-store")
        self.answered[named[0], response.status_code] += 1
        try:
            await response(scope, receive, send)
        except RightEndedError as error:  # the server sees an answer that has no end, and breaks the connection
            logger.warning("An answer was broken off: request=%s: %s", named[0], error)

    async def _response(self, request: Request, named: list[str]) -> Response:
        try:
            path = path_of(request)
            method = "GET" if request.method == "HEAD" else request.method
            if path != "/api" and not path.startswith("/api/"):
                named[0] = "page"
                if method != "GET":
                    raise ConsoleError(405, f"This path does not take {method}.")
                return self._page.answer(path, request.headers.get("if-none-match"))
            require_own_page(method, request.headers)
            route, variables = self._routes.routed(method, path)
            named[0] = f"{route.method} {route.path}"
            rights = EVERYTHING
            if self._logins is not None:
                rights = ConsoleRights(await sender(self._logins, request, named[0]))
            if method != "GET":
                sent = request.headers.get(CSRF_HEADER)
                require_token(sent, self._console.csrf_token(rights.client.principal))
            if route.changes and self._console.settings.read_only:
                raise ConsoleError(403, "This console is read-only (--read-only).")
            query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            self._limiter = self._limiter or CapacityLimiter(_THREADS)
            if method == "GET":
                call = ConsoleCall(self._console, variables, query, None, rights)
                return await to_thread.run_sync(_answered, route, call, limiter=self._limiter)
            async with self._bodies.of(request, route.body) as body:
                call = ConsoleCall(self._console, variables, query, from_json(request, body, orjson.loads), rights)
                return await to_thread.run_sync(_answered, route, call, limiter=self._limiter)
        except ClientDisconnect:
            raise
        except Exception as error:
            return _failed(error)


def _answered(route: ConsoleRoute, call: ConsoleCall) -> Response:
    route.rule(call)
    answer = route.handler(call)
    if isinstance(answer, StreamingResponse) and call.rights.client.now is not None:
        again = lambda: route.rule(replace(call, rights=call.rights.now()))  # noqa: E731
        answer.body_iterator = while_it_stands(answer.body_iterator, again)
    return answer if isinstance(answer, Response) else Response(orjson.dumps(answer), media_type=JSON)


def _failed(error: Exception) -> Response:
    """The answer to a request that failed, as {error_code, message}."""
    message, code = str(error), 0
    if isinstance(error, ConsoleError):
        status, code = error.status, error.code
    elif isinstance(error, RequestRefusedError):
        status = error.status
    elif isinstance(error, TidelogError):
        status = next((found for kind, found in _STATUSES if isinstance(error, kind)), 500)
        code = error.kafka_code if error.kafka_code > 0 else 0
        if status == 500:
            logger.warning("A request failed in the store: error=%s: %s", type(error).__name__, error)
    else:
        logger.error("A request failed: this is a bug.", exc_info=error)
        status, message = 500, "Internal Server Error"
    body = orjson.dumps({"error_code": code or status, "message": _safe(message)})
    return Response(body, status, refusal_headers(status), JSON)


def _safe(text: str) -> str:
    """A text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
