"""Names by which a server of HTTP is called: a stranger's page must not reach it by the page's own name."""

import asyncio

import httpx
import pytest
from starlette.responses import PlainTextResponse

from tidelog.server.hosts import ANY, KnownHosts, OwnHosts


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("10.1.2.3", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("localhost.", True),
        ("me.localhost:8080", True),
        ("registry:8081", True),
        ("registry.default.svc:8081", True),
        ("registry.default.svc.cluster.local", True),
        ("nas.home.arpa", True),
        ("lake.example", True),
        ("Lake.Example.:8080", True),
        ("evil.example", False),
        ("evil.example.", False),
        ("evil.example:8080", False),
        ("lake.example.evil.example", False),
        ("localhost.evil.example", False),
        ("local.evil", False),
        ("localhost@evil.example", False),
        ("evil.example#localhost", False),
        ("localhost/..", False),
        ("localhost:x", False),
        ("[evil", False),
        ("", False),
        (".", False),
    ],
)
def test_names_that_no_stranger_can_have_are_known(host, known):
    assert KnownHosts(["lake.example"]).knows(host) is known


def test_any_name_may_be_taken():
    assert KnownHosts([ANY]).knows("evil.example:8080")
    assert not KnownHosts([ANY]).knows("localhost@evil.example")


def answers(app, path="/", **headers):
    """The status, and what was said, of a request with these headers."""

    async def send():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://evil.example") as client:
            answer = await client.get(path, headers=headers)
            return answer.status_code, answer.text

    return asyncio.run(send())


def guarded(known, **more):
    return OwnHosts(PlainTextResponse("the lake"), known, named="registry", media_type="application/json", **more)


def test_other_names_are_refused_with_what_to_do(caplog):
    app = guarded(KnownHosts())
    status, said = answers(app)
    assert status == 403
    assert "--host-name" in said
    assert answers(app, host="127.0.0.1") == (200, "the lake")
    assert answers(app, authorization="Basic YTpi")[0] == 403
    assert [record.args[1] for record in caplog.records] == ["evil.example"]


def test_clients_that_log_in_are_no_strangers_page():
    app = guarded(KnownHosts(), authenticates=True)
    assert answers(app, authorization="Basic YTpi") == (200, "the lake")
    assert answers(app)[0] == 403


def test_with_tls_the_browser_looks_at_the_name():
    assert answers(guarded(None)) == (200, "the lake")


def test_a_server_says_by_any_name_that_it_lives():
    for path in ("/healthz", "/livez"):
        assert answers(guarded(KnownHosts()), path) == (200, '{"status":"ok"}')
