"""The application of a worker's REST API: bodies, and errors as JSON whatever goes wrong."""

import json
import logging
from collections import Counter
from typing import Final
from urllib.parse import parse_qs

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidelog.connect.api.guard import require_right
from tidelog.connect.api.routes import RestAnswer, RestCall, RestRoutes
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.store.errors import RestError
from tidelog.log.base.errors import TidelogError
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.logins import HttpLogins
from tidelog.server.requests import JSON, RequestBodies, from_json, path_of, refusal_headers, refuse_other_sites, sender

logger = logging.getLogger("tidelog.connect")

# How many requests are in work at a time.
_THREADS: Final = 16


class RestApp:
    """The REST API as an ASGI application. Operations run in threads. `answered`: {(route, status): count}.

    `logins`: None lets everyone do everything.
    """

    def __init__(self, routes: RestRoutes, bounds: HttpBounds | None = None, logins: HttpLogins | None = None) -> None:
        self._routes = routes
        self._logins = logins
        self._bodies = RequestBodies(bounds or HttpBounds())
        self._limiter: CapacityLimiter | None = None
        self.answered: Counter[tuple[str, int]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of HTTP."""
        if scope["type"] != "http":
            return
        named: list[str] = [""]
        try:
            response = await self._response(Request(scope, receive), named)
        except ClientDisconnect:
            return
        self.answered[named[0], response.status_code] += 1
        await response(scope, receive, send)

    async def _response(self, request: Request, named: list[str]) -> Response:
        try:
            method = "GET" if request.method == "HEAD" else request.method
            named[0], operation, variables = self._routes.routed(method, path_of(request))
            if self._logins is not None:
                request_name = f"{method} {named[0]}"
                client = await sender(self._logins, request, request_name)
                require_right(client.may, request_name)
            query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            self._limiter = self._limiter or CapacityLimiter(_THREADS)
            if method == "GET":
                call = RestCall(variables, query, None)
                return _response(await to_thread.run_sync(operation, call, limiter=self._limiter))
            refuse_other_sites(request, "connectors")
            async with self._bodies.of(request) as body:
                call = RestCall(variables, query, from_json(request, body))
                return _response(await to_thread.run_sync(operation, call, limiter=self._limiter))
        except ClientDisconnect:
            raise
        except Exception as error:
            return _failed(error)


def _response(answer: RestAnswer) -> Response:
    body = (
        b"" if answer.value is None else json.dumps(answer.value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    )
    return Response(body, answer.status, dict(answer.headers), JSON if body else None)


def _failed(error: Exception) -> Response:
    """The answer to a request that failed, as {error_code, message}."""
    status, message = 500, str(error)
    if isinstance(error, (RestError, RequestRefusedError)):
        status = error.status
    elif isinstance(error, ConnectError):
        status = 400
    elif isinstance(error, TidelogError):
        logger.warning("A request failed in the store: error=%s: %s", type(error).__name__, error)
    else:
        logger.error("A request failed: this is a bug.", exc_info=error)
        message = "Internal Server Error"
    return _response(RestAnswer(status, {"error_code": status, "message": message}, refusal_headers(status)))
