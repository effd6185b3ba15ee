"""What each request of HTTP goes through: the order of the steps, what handlers may give, and what errors become."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse

from tidelog.log.base.errors import TidelogError, UnknownTopicError
from tidelog.server.app import App, HttpRefusal, Refusals, by_status
from tidelog.server.errors import RequestRefusedError
from tidelog.server.routes import Answer, HttpCall, Route, Routes


class Steps(App[HttpCall]):
    """An application that keeps the order of what is done with a request."""

    logger: ClassVar[logging.Logger] = logging.getLogger("tidelog.tests")
    refusals: ClassVar[Refusals] = (
        (RequestRefusedError, by_status),
        (UnknownTopicError, lambda error: HttpRefusal(404, str(error), 40403)),
        (TidelogError, lambda error: HttpRefusal(409, str(error))),
    )

    def __init__(self, handler: Callable[[HttpCall], Any], method: str = "GET", body: int | None = None) -> None:
        self.steps: list[str] = []

        def handle(call: HttpCall) -> Any:
            self.steps.append("handler")
            return handler(call)

        row = Route(method, "things/{thing}", handle, lambda _: self.steps.append("right"), body)
        super().__init__(Routes([row]), HttpCall)

    def admit(self, request: Request, route: Route[HttpCall], call: HttpCall) -> None:
        self.steps.append("admit")

    def read(self, request: Request, body: bytes) -> Any:
        self.steps.append("read")
        return super().read(request, body)

    def send(self, method: str = "GET", path: str = "/things/a%2Fb", **more: Any) -> httpx.Response:
        async def sent() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self), base_url="http://server") as client:
                return await client.request(method, path, **more)

        return asyncio.run(sent())


class RightsFirst(Steps):
    """The same, of which a right needs no body."""

    rights_first: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("application", "steps"),
    [(Steps, ["admit", "read", "right", "handler"]), (RightsFirst, ["right", "admit", "read", "handler"])],
)
def test_the_order_of_the_steps(application: type[Steps], steps: list[str]) -> None:
    app = application(lambda call: [dict(call.variables), dict(call.query), call.body, call.changes], "PUT")
    assert app.send("PUT", json={"x": 1}, params={"q": ""}).json() == [{"thing": "a/b"}, {"q": [""]}, {"x": 1}, True]
    assert app.steps == steps
    assert app.answered == {("PUT things/{thing}", 200): 1}


def test_a_body_that_is_not_looked_at() -> None:
    app = Steps(lambda call: [call.body, call.changes], "DELETE", body=0)
    assert app.send("DELETE", content=b"no JSON").json() == [None, True]
    reading = Steps(lambda call: [call.body, call.changes])
    assert reading.send("GET", content=b"no JSON").json() == [None, False]


@pytest.mark.parametrize(
    ("given", "status", "media_type", "body"),
    [
        (None, 200, "application/json", b"null"),
        (["é"], 200, "application/json", '["é"]'.encode()),
        (Answer(201, {"a": 1}, {"location": "/a"}), 201, "application/json", b'{"a": 1}'),
        (Answer(204), 204, None, b""),
        (Answer(value=b"as it is"), 200, "application/json", b"as it is"),
        (PlainTextResponse("a text", 202), 202, "text/plain; charset=utf-8", b"a text"),
    ],
)
def test_what_handlers_may_give(given: Any, status: int, media_type: str | None, body: bytes) -> None:
    answer = Steps(lambda _: given).send()
    assert (answer.status_code, answer.headers.get("content-type"), answer.content) == (status, media_type, body)
    assert answer.headers.get("location") == ("/a" if status == 201 else None)


@pytest.mark.parametrize(
    ("error", "status", "code", "message"),
    [
        (UnknownTopicError("no topic"), 404, 40403, "no topic"),
        (TidelogError("a conflict"), 409, 409, "a conflict"),
        (RequestRefusedError(503, "full"), 503, 503, "full"),
        (ValueError("a secret"), 500, 500, "Internal Server Error"),
    ],
)
def test_the_first_row_that_fits_an_error_counts(
    error: Exception, status: int, code: int, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: HttpCall) -> None:
        raise error

    app = Steps(fails)
    answer = app.send()
    assert (answer.status_code, answer.json()) == (status, {"error_code": code, "message": message})
    assert answer.headers.get("connection") == ("close" if status == 503 else None)
    assert app.answered == {("GET things/{thing}", status): 1}
    assert [record.levelname for record in caplog.records if record.name == "tidelog.tests"] == ["ERROR"] * (
        code == 500
    )


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [("GET", "/", 404, "HTTP 404 Not Found"), ("PUT", "/things/a", 405, "HTTP 405 Method Not Allowed")],
)
def test_what_is_not_there_has_no_name(method: str, path: str, status: int, message: str) -> None:
    app = Steps(lambda _: None)
    answer = app.send(method, path)
    assert (answer.status_code, answer.json()["message"], app.steps) == (status, message, [])
    assert app.answered == {("", status): 1}


def test_a_head_gets_no_body_of_an_answer_without_an_end() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"more"

    answer = Steps(lambda _: StreamingResponse(endless(), headers={"x-kind": "stream"})).send("HEAD")
    assert (answer.status_code, answer.headers["x-kind"], answer.content) == (200, "stream", b"")
