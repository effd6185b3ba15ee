"""The application of a worker's REST API: bodies, and errors as JSON whatever goes wrong."""

import json
import logging
from collections import Counter
from typing import Any, Final
from urllib.parse import parse_qs

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidelog.broker.base.blocking import pause
from tidelog.connect.api.guard import require_right
from tidelog.connect.api.routes import RestAnswer, RestCall, RestRoutes
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.store.errors import RestError
from tidelog.log.base.errors import TidelogError
from tidelog.web.connections import HttpBounds
from tidelog.web.logins import HttpLogins, LoginRefusedError

logger = logging.getLogger("tidelog.connect")

JSON: Final = "application/json"
# How many requests are in work at a time.
_THREADS: Final = 16


class RestApp:
    """The REST API as an ASGI application. Operations run in threads. `answered`: {(route, status): count}.

    `logins`: None lets everyone do everything.
    """

    def __init__(self, routes: RestRoutes, bounds: HttpBounds | None = None, logins: HttpLogins | None = None) -> None:
        self._routes = routes
        self._logins = logins
        self._bounds = bounds or HttpBounds()
        self._limiter: CapacityLimiter | None = None
        self._held = 0
        self.answered: Counter[tuple[str, int]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of HTTP."""
        if scope["type"] != "http":
            return
        named: list[str] = [""]
        held: list[int] = []
        try:
            response = await self._response(Request(scope, receive), named, held)
        except ClientDisconnect:
            return
        finally:
            self._held -= sum(held)
        self.answered[named[0], response.status_code] += 1
        await response(scope, receive, send)

    async def _response(self, request: Request, named: list[str], held: list[int]) -> Response:
        try:
            raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
            method = "GET" if request.method == "HEAD" else request.method
            named[0], operation, variables = self._routes.routed(method, raw.decode("latin-1").split("?")[0])
            await self._check_rights(request, method, named[0])
            body = await self._body(request, held)
            query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            call = RestCall(variables, query, body)
            self._limiter = self._limiter or CapacityLimiter(_THREADS)
            return _response(await to_thread.run_sync(operation, call, limiter=self._limiter))
        except ClientDisconnect:
            raise
        except Exception as error:
            return _failed(error)

    async def _check_rights(self, request: Request, method: str, route: str) -> None:
        """Refuse what the client may not do, before its body is read. Raises `LoginRefusedError`, `RestError` 403."""
        if self._logins is None:
            return
        host = request.client.host if request.client is not None else ""
        sent, named = request.headers.get("authorization"), f"{method} {route}"
        try:
            client = await to_thread.run_sync(self._logins.client, sent, host, named)
        except LoginRefusedError as error:
            if error.status == 401 and sent is not None:  # as brokers have it: guesses take their time
                await pause(self._logins.failed_delay_s)
            raise
        require_right(client.may, named)

    async def _body(self, request: Request, held: list[int]) -> Any:
        """The body's JSON, None where there is none. Raises `RestError` 400, 403, 413, 415 and 503."""
        if request.method in ("GET", "HEAD"):
            return None
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise RestError(403, "A page of another site can't change connectors.")
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise RestError(415, "HTTP 415 Unsupported Media Type: send the body as it is, not compressed.")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._bounds.body:
                raise RestError(413, f"The request's body has more than {self._bounds.body} bytes.")
            if self._held + len(chunk) > self._bounds.bodies:
                raise RestError(503, "Other requests hold too much of the worker's memory. Send it again later.")
            held.append(len(chunk))
            self._held += len(chunk)
        if not body.strip():
            return None
        kind = request.headers.get("content-type", JSON).split(";")[0].strip().lower()
        if kind != JSON:
            raise RestError(415, "HTTP 415 Unsupported Media Type: send JSON, as application/json.")
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RestError(400, f"The request's body is no JSON: {error or 'it is nested too deep'}") from None


def _response(answer: RestAnswer) -> Response:
    body = (
        b"" if answer.value is None else json.dumps(answer.value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    )
    return Response(body, answer.status, dict(answer.headers), JSON if body else None)


def _failed(error: Exception) -> Response:
    """The answer to a request that failed, as {error_code, message}."""
    status, message = 500, str(error)
    if isinstance(error, (RestError, LoginRefusedError)):
        status = error.status
    elif isinstance(error, ConnectError):
        status = 400
    elif isinstance(error, TidelogError):
        logger.warning("A request failed in the store: error=%s: %s", type(error).__name__, error)
    else:
        logger.error("A request failed: this is a bug.", exc_info=error)
        message = "Internal Server Error"
    headers = {"connection": "close"} if status in (413, 503) else {}
    if status == 401:
        headers["www-authenticate"] = 'Basic realm="tidelog", charset="UTF-8"'
    return _response(RestAnswer(status, {"error_code": status, "message": message}, headers))
