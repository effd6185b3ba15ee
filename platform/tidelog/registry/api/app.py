"""The server's application: routes, content types, and errors as JSON whatever goes wrong."""

import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qs

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidelog.log.base.errors import OutcomeUnknownError, RecordTooLargeError, TidelogError
from tidelog.registry.api.calls import ApiCall, SchemaText
from tidelog.registry.api.guard import answered
from tidelog.registry.api.rights import EVERYTHING, ApiRights
from tidelog.registry.api.routing import routed
from tidelog.registry.base.errors import RegistryError, schema_too_large
from tidelog.registry.log.registry_log import RegistryLog
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.logins import HttpLogins
from tidelog.server.requests import RequestBodies, path_of, refusal_headers, refuse_other_sites, sender

logger = logging.getLogger("tidelog.registry")

V1: Final = "application/vnd.schemaregistry.v1+json"
# What answers are written as, the first where the client takes any; requests may be plain bytes, too.
PRODUCES: Final = (V1, "application/vnd.schemaregistry+json", "application/json")
CONSUMES: Final = (*PRODUCES, "application/octet-stream")
# Codes of the API for refusals that HTTP knows by its own.
_CODES: Final = {413: 42209, 429: 42901}
# How many requests that may write are in work at a time: one is decided after the other, and reads go on.
_WRITERS: Final = 16


class RegistryApp:
    """Confluent's API over a lake's registry, as an ASGI application.

    Handlers run in threads. `logins`: None lets everyone do everything.
    """

    def __init__(self, log: RegistryLog, bounds: HttpBounds | None = None, logins: HttpLogins | None = None) -> None:
        self._log = log
        self._logins = logins
        self.bodies = RequestBodies(bounds or HttpBounds())
        self._writers: CapacityLimiter | None = None
        # {(handler, status of HTTP): requests that were answered so}
        self.answered: Counter[tuple[str, int]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of HTTP."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            response = await self._answered(Request(scope, receive))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        name, response = await self._handled(request)
        self.answered[name, response.status_code] += 1
        return response

    async def _handled(self, request: Request) -> tuple[str, Response]:
        """The name of the handler, "" before there is one, and its answer."""
        content_type, name = V1, ""
        try:
            route = routed("GET" if request.method == "HEAD" else request.method, path_of(request))
            name = route.handler.__name__
            content_type = _accepted(request.headers.get("accept", "*/*"))
            rights = EVERYTHING
            if self._logins is not None:
                client = await sender(self._logins, request, name)
                rights = EVERYTHING if client.may is None else ApiRights(client.may)
            query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            changes = request.method not in ("GET", "HEAD")
            limiter = self._limiter() if changes else None
            async with self._body(request) as body:
                call = ApiCall(self._log, route.variables, query, body, route.context, rights, changes)
                answer = await to_thread.run_sync(answered, route.handler, call, limiter=limiter)
            text = answer.text if isinstance(answer, SchemaText) else _json(answer)
            return name, Response(text, media_type=content_type)
        except ClientDisconnect:
            raise
        except Exception as error:
            return name, _failed(error, content_type)

    def _limiter(self) -> CapacityLimiter:
        """Made at the first request: it belongs to the loop."""
        if self._writers is None:
            self._writers = CapacityLimiter(_WRITERS)
        return self._writers

    @asynccontextmanager
    async def _body(self, request: Request) -> AsyncIterator[bytes]:
        """The body, empty for a request that needs none. Raises `RequestRefusedError`, 415 also for other types."""
        if request.method != "GET":
            refuse_other_sites(request, "schemas")
        if request.method in ("GET", "HEAD", "DELETE"):
            yield b""
            return
        named = request.headers.get("content-type", CONSUMES[-1]).split(";")[0].strip().lower()
        if named not in CONSUMES:
            raise RequestRefusedError(415, "HTTP 415 Unsupported Media Type")
        async with self.bodies.of(request) as body:
            yield body


def _failed(error: Exception, content_type: str) -> Response:
    """The answer to a request that failed."""
    if isinstance(error, RequestRefusedError):
        own = RegistryError(_CODES.get(error.status, error.status), str(error))
        return _refusal(own.status, own.code, str(own), content_type, refusal_headers(error.status))
    if isinstance(error, RegistryError):
        return _refusal(error.status, error.code, str(error), content_type)
    if isinstance(error, RecordTooLargeError):
        large = schema_too_large(f"Write failed because schema is too large: {error}")
        return _refusal(large.status, large.code, str(large), content_type)
    if isinstance(error, OutcomeUnknownError):
        return _refusal(500, 50002, f"Write to the store timed out: {error}", content_type)
    if isinstance(error, TidelogError):
        logger.warning("A request failed in the store.", exc_info=error)
        return _refusal(500, 50001, f"Error in the store: {error}", content_type)
    logger.error("A request failed: this is a bug.", exc_info=error)
    return _refusal(500, 500, "Internal Server Error", content_type)


def _accepted(header: str) -> str:
    """The content type that an Accept header prefers (RFC 9110, 12.5.1). Raises `RegistryError` 406."""
    found: list[tuple[float, int, str]] = []
    for listed in header.split(","):
        name, *parameters = (part.strip().lower() for part in listed.split(";"))
        weights = [part.removeprefix("q=") for part in parameters if part.startswith("q=")]
        try:
            weight = float(weights[0]) if weights else 1.0
        except ValueError:
            weight = 0.0
        for place, own in enumerate(PRODUCES):
            if weight > 0 and name in (own, "*/*", "application/*", ""):
                found.append((-weight, place, own))
                break
    if not found:
        raise RegistryError(406, "HTTP 406 Not Acceptable")
    return min(found)[2]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _refusal(
    status: int, code: int, message: str, content_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(_json({"error_code": code, "message": message}), status, headers, content_type)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
