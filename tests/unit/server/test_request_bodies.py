"""Bodies of requests: what is refused, and that what is held is given back however a request ends."""

import asyncio
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.requests import RequestBodies, from_json, path_of, refuse_other_sites


def request(*chunks: bytes | None, **headers: str) -> Request:
    """A request whose body comes in these chunks; None: its client goes away."""
    left = list(chunks)

    async def receive() -> dict[str, Any]:
        chunk = left.pop(0) if left else b""
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": bool(left)}

    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/a b", "raw_path": b"/a%20b?c=d", "headers": sent}
    return Request(scope, receive)


async def read(bodies: RequestBodies, asked: Request, most: int | None = None) -> tuple[bytes, int]:
    async with bodies.of(asked, most) as body:
        return body, bodies.held


def test_a_body_is_held_until_its_request_ends() -> None:
    bodies = RequestBodies(HttpBounds(body=10, bodies=15))
    assert asyncio.run(read(bodies, request(b"123", b"4567"))) == (b"1234567", 7)
    assert bodies.held == 0

    async def two() -> None:
        async with bodies.of(request(b"1234567890")):
            with pytest.raises(RequestRefusedError, match="hold too much") as refused:
                await read(bodies, request(b"12345", b"6"))
            assert (refused.value.status, bodies.held) == (503, 10)
            assert await read(bodies, request(b"12345")) == (b"12345", 15)

    asyncio.run(two())
    assert bodies.held == 0


@pytest.mark.parametrize(
    ("asked", "most", "error", "status"),
    [
        (request(b"12345", b"678901"), None, RequestRefusedError, 413),
        (request(b"123"), 2, RequestRefusedError, 413),
        (request(content_length="11"), None, RequestRefusedError, 413),
        (request(b"1", content_encoding="gzip"), None, RequestRefusedError, 415),
        (request(b"123", None), None, ClientDisconnect, None),
    ],
    ids=["in pieces", "this route's bound", "announced", "compressed", "client gone"],
)
def test_what_is_refused_holds_nothing(asked: Request, most: int | None, error: Any, status: int | None) -> None:
    bodies = RequestBodies(HttpBounds(body=10, bodies=15))
    with pytest.raises(error) as refused:
        asyncio.run(read(bodies, asked, most))
    assert getattr(refused.value, "status", None) == status
    assert bodies.held == 0


@pytest.mark.parametrize(
    ("body", "kind", "found"),
    [
        (b" \n", "text/plain", None),
        (b'{"a": 1}', "Application/JSON; charset=utf-8", {"a": 1}),
        (b"{", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"{}", "text/plain", 415),
    ],
    ids=["nothing", "an object", "half an object", "nested too deep", "another type"],
)
def test_json(body: bytes, kind: str, found: Any) -> None:
    asked = request(content_type=kind)
    if isinstance(found, int):
        with pytest.raises(RequestRefusedError) as refused:
            from_json(asked, body)
        assert refused.value.status == found
    else:
        assert from_json(asked, body) == found


def test_pages_of_other_sites_are_refused() -> None:
    refuse_other_sites(request(sec_fetch_site="same-origin"), "schemas")
    with pytest.raises(RequestRefusedError, match="can't change schemas"):
        refuse_other_sites(request(sec_fetch_site="cross-site"), "schemas")


def test_a_path_keeps_what_is_quoted() -> None:
    assert path_of(request()) == "/a%20b"


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"host": "a:1"}, True),
        ({"host": "A:1", "origin": "http://a:1"}, True),
        ({"host": "a:1", "origin": "http://a:2"}, False),
        ({"host": "a:1", "origin": "http://evil.example"}, False),
        ({"host": "a:1", "origin": "null"}, False),
        ({"host": "a:1", "origin": "http://[a"}, False),
        ({"host": "registry:1", "origin": "http://ui", "sec_fetch_site": "same-origin"}, True),  # a proxy of the page's
    ],
)
def test_where_browsers_say_no_more_the_origin_tells_another_site(headers: dict[str, str], own: bool) -> None:
    """Browsers send Sec-Fetch-Site to servers with TLS or at their own machine alone."""
    if own:
        refuse_other_sites(request(**headers), "schemas")
        return
    with pytest.raises(RequestRefusedError) as refused:
        refuse_other_sites(request(**headers), "schemas")
    assert refused.value.status == 403
