"""What servers of HTTP do with each request before they work on it: its sender, and its body within bounds."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.requests import Request

from tidelog.server.base.blocking import pause
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.logins import HttpLogins, LoginRefusedError, RequestSender

JSON: Final = "application/json"


def path_of(request: Request) -> str:
    """The path as it was sent, with what is quoted in it."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return raw.decode("latin-1").split("?")[0]


async def sender(logins: HttpLogins, request: Request, named: str) -> RequestSender:
    """The request's sender, without a look at the body. `named`: how the audit calls it.

    Raises `LoginRefusedError`, after a while where a log-in failed: guesses take their time, as brokers have it.
    """
    host = request.client.host if request.client is not None else ""
    sent = request.headers.get("authorization")
    try:
        return await to_thread.run_sync(logins.client, sent, host, named)
    except LoginRefusedError as error:
        if error.status == 401 and sent is not None:
            await pause(logins.failed_delay_s)
        raise


def refuse_other_sites(request: Request, what: str) -> None:
    """Raise `RequestRefusedError` 403 where a page of another site has a browser send the request.

    Browsers say so to servers that they trust, by TLS or at this machine; to others they name the page's origin only.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = site is None and origin is not None and authority_of(origin) != request.headers.get("host", "").lower()
    if foreign or site in ("cross-site", "same-site"):
        raise RequestRefusedError(403, f"A page of another site can't change {what}.")


def authority_of(origin: str) -> str:
    """The host and the port of a header Origin, "" where it names none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


class RequestBodies:
    """Reads bodies within a server's bounds. `held`: bytes of those whose requests are in work."""

    def __init__(self, bounds: HttpBounds) -> None:
        self._bounds = bounds
        self.held = 0

    @asynccontextmanager
    async def of(self, request: Request, most: int | None = None) -> AsyncIterator[bytes]:
        """The request's body, which is held until the block ends. `most`: bytes, the bounds' unless given; 0: none.

        Raises `RequestRefusedError` 413 for one that is larger, 415 for one that is compressed, 503 where requests hold
        too much, and starlette's `ClientDisconnect`.
        """
        if most == 0:
            yield b""
            return
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise RequestRefusedError(415, "HTTP 415 Unsupported Media Type: send the body as it is, not compressed.")
        most = self._bounds.body if most is None else most
        too_large = RequestRefusedError(413, f"The request's body has more than {most} bytes.")
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced[:20]) > most:
            raise too_large
        body = bytearray()
        try:
            async for chunk in request.stream():
                if len(body) + len(chunk) > most:
                    raise too_large
                if self.held + len(chunk) > self._bounds.bodies:
                    raise RequestRefusedError(
                        503, "Other requests hold too much of the server's memory. Send it again later."
                    )
                body += chunk
                self.held += len(chunk)
            yield bytes(body)
        finally:
            self.held -= len(body)


def from_json(request: Request, body: bytes, loads: Callable[[bytes], Any] = json.loads) -> Any:
    """The body's value, None where there is none. Raises `RequestRefusedError` 400 and 415.

    `loads` reads JSON; the standard library's takes whole numbers of any size, which orjson's gives as floats.
    """
    if not body.strip():
        return None
    if request.headers.get("content-type", JSON).split(";")[0].strip().lower() != JSON:
        raise RequestRefusedError(415, f"HTTP 415 Unsupported Media Type: send JSON, as {JSON}.")
    try:
        return loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRefusedError(400, f"The request's body is no JSON: {error or 'it is nested too deep'}") from None


def refusal_headers(status: int) -> dict[str, str]:
    """What an answer of this status says beside its body: how to log in, or that the connection ends."""
    if status == 401:
        return {"www-authenticate": 'Basic realm="tidelog", charset="UTF-8"'}
    return {"connection": "close"} if status in (413, 503) else {}
