"""Requests of HTTP have ids: in the log, also of threads that work for them, and in the answer."""

import asyncio
import logging
import re

import httpx
import pytest
from anyio import to_thread
from starlette.responses import PlainTextResponse

from tidelog.log.base.clock import SystemClock
from tidelog.log.base.request_ids import REQUEST
from tidelog.server.serving import RequestIds


async def app(scope, receive, send):
    told = await to_thread.run_sync(lambda: str(REQUEST.get()))
    await PlainTextResponse(told, 201)(scope, receive, send)


def answers(*requests):
    """The answers to requests, of headers each."""

    async def run():
        transport = httpx.ASGITransport(RequestIds(app, SystemClock()), client=("10.0.0.7", 51234))
        async with httpx.AsyncClient(transport=transport, base_url="http://h") as client:
            return [await client.get("/a b/c%0Ad", headers=headers) for headers in requests]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"user-agent": "curl/8.0 (x)", "x-request-id": "mine-17"}, "10.0.0.7:51234/curl_8.0/mine-17"),
        ({"user-agent": "", "x-request-id": "a b/c"}, "10.0.0.7:51234/-/a_b_c"),
        ({"x-request-id": "x" * 500}, f"10.0.0.7:51234/python-httpx_{httpx.__version__}/{'x' * 64}"),
    ],
)
def test_a_request_has_the_id_that_its_client_gave(headers, named):
    (answer,) = answers(headers)
    assert answer.text == named
    assert answer.headers["x-request-id"] == named.rpartition("/")[2]
    assert REQUEST.get() is None


def test_other_requests_are_numbered():
    assert [answer.headers["x-request-id"] for answer in answers({}, {"x-request-id": ""}, {})] == ["1", "2", "3"]


def test_each_answer_is_a_line_of_the_log(caplog):
    with caplog.at_level(logging.DEBUG, "tidelog.web"):
        answers({})
    (line,) = (record.getMessage() for record in caplog.records if record.name == "tidelog.web")
    assert re.fullmatch(r"Answered: method=GET path=/a_b/c_d status=201", line)


@pytest.mark.parametrize(("method", "name"), [("GET", "GET"), ("PUT", "PUT"), ("X" * 5_000, "HTTP")])
def test_a_span_is_named_by_a_method_that_there_is(method, name):
    begun = []

    class Tracing:
        def begin(self, name, start_s, parents, *, is_request=True):
            begun.append(name)

    async def run():
        ids = RequestIds(app, SystemClock())
        ids.tracing = Tracing()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(ids), base_url="http://h") as client:
            await client.request(method, "/")

    asyncio.run(run())
    assert begun == [name]
