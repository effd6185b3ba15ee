"""The server's application: routes, content types, and errors as JSON whatever goes wrong."""

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
from tidelog.log.base.errors import OutcomeUnknownError, RecordTooLargeError, TidelogError
from tidelog.registry.api.calls import ApiCall, SchemaText
from tidelog.registry.api.guard import answered
from tidelog.registry.api.rights import EVERYTHING, ApiRights
from tidelog.registry.api.routing import Route, routed
from tidelog.registry.base.errors import RegistryError, schema_too_large
from tidelog.registry.log.registry_log import RegistryLog
from tidelog.web.connections import HttpBounds
from tidelog.web.logins import HttpLogins, LoginRefusedError

logger = logging.getLogger("tidelog.registry")

V1: Final = "application/vnd.schemaregistry.v1+json"
# What answers are written as, the first where the client takes any; requests may be plain bytes, too.
PRODUCES: Final = (V1, "application/vnd.schemaregistry+json", "application/json")
CONSUMES: Final = (*PRODUCES, "application/octet-stream")
# How many requests that may write are in work at a time: one is decided after the other, and reads go on.
_WRITERS: Final = 16


class RegistryApp:
    """Confluent's API over a lake's registry, as an ASGI application.

    Handlers run in threads. `logins`: None lets everyone do everything.
    """

    def __init__(self, log: RegistryLog, bounds: HttpBounds | None = None, logins: HttpLogins | None = None) -> None:
        self._log = log
        self._bounds = bounds or HttpBounds()
        self._logins = logins
        self.held = 0  # bytes of the bodies of requests in work
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
        held: list[int] = []
        try:
            name, response = await self._handled(request, held)
        finally:
            self.held -= sum(held)
        self.answered[name, response.status_code] += 1
        return response

    async def _handled(self, request: Request, held: list[int]) -> tuple[str, Response]:
        """The name of the handler, "" before there is one, and its answer. `held`: what its body takes of the bound."""
        content_type, name = V1, ""
        try:
            raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
            route = routed("GET" if request.method == "HEAD" else request.method, raw.decode("latin-1").split("?")[0])
            name = route.handler.__name__
            content_type = _accepted(request.headers.get("accept", "*/*"))
            rights = await self._rights(request, route)
            body = await self._body(request, held)
            query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            changes = request.method not in ("GET", "HEAD")
            call = ApiCall(self._log, route.variables, query, body, route.context, rights, changes)
            limiter = self._limiter() if changes else None
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

    async def _rights(self, request: Request, route: Route) -> ApiRights:
        """What the client may do, before its body is read. Raises `RegistryError` 401."""
        if self._logins is None:
            return EVERYTHING
        host = request.client.host if request.client is not None else ""
        name, sent = route.handler.__name__, request.headers.get("authorization")
        try:
            client = await to_thread.run_sync(self._logins.client, sent, host, name)
        except LoginRefusedError as error:
            if error.status == 401 and sent is not None:  # as brokers have it: guesses take their time
                await pause(self._logins.failed_delay_s)
            raise RegistryError(42901 if error.status == 429 else error.status, str(error)) from error
        return EVERYTHING if client.may is None else ApiRights(client.may)

    async def _body(self, request: Request, held: list[int]) -> bytes:
        """The body. Raises `RegistryError` 415 for a type that isn't JSON's, or that is compressed, 42209 for one that
        is too large, 503 where requests hold too much, 403 for one that a page of another site has a browser send.
        """
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and request.method != "GET":
            raise RegistryError(403, "A page of another site can't change schemas.")
        if request.method in ("GET", "HEAD", "DELETE"):
            return b""
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise RegistryError(415, "HTTP 415 Unsupported Media Type: send the body as it is, not compressed.")
        named = request.headers.get("content-type", "application/octet-stream").split(";")[0].strip().lower()
        if named not in CONSUMES:
            raise RegistryError(415, "HTTP 415 Unsupported Media Type")
        most = self._bounds.body
        too_large = schema_too_large(f"The request's body has more than {most} bytes.")
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced[:20]) > most:
            raise too_large
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise too_large
            if self.held + len(chunk) > self._bounds.bodies:
                raise RegistryError(503, "Other requests hold too much of the registry's memory. Send it again later.")
            held.append(len(chunk))
            self.held += len(chunk)
        return bytes(body)


def _failed(error: Exception, content_type: str) -> Response:
    """The answer to a request that failed."""
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


def _refusal(status: int, code: int, message: str, content_type: str) -> Response:
    body = _json({"error_code": code, "message": message})
    headers = {"connection": "close"} if code in (42209, 503) else {}
    if status == 401:
        headers["www-authenticate"] = 'Basic realm="tidelog", charset="UTF-8"'
    return Response(body, status, headers, content_type)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
