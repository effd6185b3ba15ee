"""A registry's client over HTTP: retries, log-ins by passwords, tokens and certificates, and TLS."""

import base64
import json

import pytest
from support.certificates import Authority
from support.logs import CountingIds, FakeClock
from support.registry_servers import running_registry
from support.scripted_http import Answer, scripted_server

from tidelog.clients.schema_registry.tokens import OAuthTokenError
from tidelog.schema_registry import SchemaRegistryClient, SchemaRegistryError
from tidelog.server.base.listener_settings import TlsSettings

SUBJECTS = Answer(200, b'["a"]')
BEARER = {"bearer.auth.logical.cluster": "lsrc-1", "bearer.auth.identity.pool.id": ["p1", "p2"]}
FAST = {"retries.wait.ms": 0}


@pytest.fixture
def server():
    with scripted_server() as scripted:
        yield scripted


def client_of(server, **conf):
    return SchemaRegistryClient({"url": server.url, **FAST, **conf})


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 0])
def test_what_may_pass_is_tried_again(server, status):
    server.script = [Answer(status), Answer(status), SUBJECTS]
    with client_of(server) as client:
        assert client.get_subjects() == ["a"]
    assert server.seen == ["GET /subjects"] * 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 501])
def test_what_will_not_pass_is_not(server, status):
    server.script = [Answer(status, b'{"error_code": 7, "message": "no"}')]
    with client_of(server) as client, pytest.raises(SchemaRegistryError) as refused:
        client.get_subjects()
    assert (refused.value.http_status_code, refused.value.error_code) == (status, 7)
    assert len(server.seen) == 1


def test_retries_end_and_the_next_url_is_asked(server):
    with scripted_server() as other:
        server.script, other.script = [Answer(503)] * 3, [SUBJECTS]
        with SchemaRegistryClient({"url": f"{server.url},{other.url}", "max.retries": 2, **FAST}) as client:
            assert client.get_subjects() == ["a"]
        assert (len(server.seen), len(other.seen)) == (3, 1)
        server.script, other.script = [Answer(503)], [Answer(503, b"busy")]
        client = SchemaRegistryClient({"url": f"{server.url},{other.url}", "max.retries": 0})
        with client, pytest.raises(SchemaRegistryError, match="busy") as refused:
            client.get_subjects()
        assert refused.value.http_status_code == 503


def test_waits_double_up_to_a_bound(server):
    clock, slept = FakeClock(), []
    clock.sleep = slept.append
    server.script = [Answer(503)] * 5
    conf = {"url": server.url, "max.retries": 4, "retries.wait.ms": 100, "retries.max.wait.ms": 300}
    with SchemaRegistryClient(conf, clock, CountingIds()) as client, pytest.raises(SchemaRegistryError):
        client.get_subjects()
    assert slept == [0.05, 0.1, 0.15, 0.15]


def test_the_user_of_a_url(server):
    server.script = [SUBJECTS]
    address = server.url.replace("http://", "http://ann:pass%20word@")
    with SchemaRegistryClient({"url": address}) as client:
        client.get_subjects()
    assert server.sent[0]["authorization"] == "Basic " + base64.b64encode(b"ann:pass word").decode()


def test_a_token_of_the_configuration(server):
    server.script = [SUBJECTS]
    with client_of(
        server, **{"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "abc", **BEARER}
    ) as client:
        client.get_subjects()
    sent = server.sent[0]
    assert sent["authorization"] == "Bearer abc"
    assert (sent["target-sr-cluster"], sent["confluent-identity-pool-id"]) == ("lsrc-1", "p1,p2")


def test_a_function_gives_tokens(server):
    server.script, asked = [SUBJECTS], []
    with client_of(
        server,
        **{
            "bearer.auth.credentials.source": "CUSTOM",
            "bearer.auth.custom.provider.function": lambda conf: (asked.append(conf), {"bearer.auth.token": "own"})[1],
            "bearer.auth.custom.provider.config": {"k": "v"},
        },
    ) as client:
        client.get_subjects()
    assert asked == [{"k": "v"}]
    assert server.sent[0]["authorization"] == "Bearer own"


def test_an_issuer_gives_tokens_and_is_asked_again_before_they_end(server):
    def token(name, lasts_s=100):
        return Answer(200, json.dumps({"access_token": name, "expires_in": lasts_s}).encode())

    clock = FakeClock()
    with scripted_server() as issuer:
        issuer.script = [Answer(503), token("one"), token("two")]
        server.script = [SUBJECTS] * 4
        conf = {
            "url": server.url,
            **FAST,
            "bearer.auth.credentials.source": "OAUTHBEARER",
            "bearer.auth.issuer.endpoint.url": f"{issuer.url}/token",
            "bearer.auth.client.id": "id",
            "bearer.auth.client.secret": "secret",
            "bearer.auth.scope": "schemas",
        }
        with SchemaRegistryClient(conf, clock) as client:
            for wait_s in (0, 79, 2, 0):
                clock.pass_s(wait_s)
                client.get_subjects()
        assert [sent["authorization"] for sent in server.sent] == [
            "Bearer one",
            "Bearer one",
            "Bearer two",
            "Bearer two",
        ]
        assert issuer.seen == ["POST /token"] * 3
        assert issuer.sent[0]["authorization"] == "Basic " + base64.b64encode(b"id:secret").decode()
        assert issuer.bodies[0] == b"grant_type=client_credentials&scope=schemas"


@pytest.mark.parametrize("answer", [Answer(401, b"no"), Answer(200, b"no"), Answer(200, b"{}")])
def test_an_issuer_that_gives_no_token(server, answer):
    server.script = [answer]
    conf = {
        "bearer.auth.credentials.source": "OAUTHBEARER_AZURE_IMDS",
        "bearer.auth.issuer.endpoint.url": f"{server.url}/token",
    }
    with client_of(server, **conf) as client, pytest.raises(OAuthTokenError):
        client.get_subjects()
    assert server.sent[0]["metadata"] == "true"


def test_the_newest_version_is_kept_for_its_time(server):
    version = Answer(200, b'{"subject": "s", "version": 1, "id": 1, "schema": "\\"int\\""}')
    clock = FakeClock()
    server.script = [version] * 9
    with SchemaRegistryClient({"url": server.url, "cache.latest.ttl.sec": 10}, clock) as client:
        for wait_s in (0, 9, 2):
            clock.pass_s(wait_s)
            client.get_latest_version("s")
        assert len(server.seen) == 2
        client.get_latest_with_metadata("s", {"k": "v"})
        client.get_latest_with_metadata("s", {"k": "v"})
        assert len(server.seen) == 3
        client.clear_latest_caches()
        client.get_latest_version("s")
        assert len(server.seen) == 4
    with SchemaRegistryClient({"url": server.url}) as client:
        client.get_latest_version("s")
        client.get_latest_version("s")
    assert len(server.seen) == 6


def test_tls_by_an_authority_of_ones_own(tmp_path):
    authority = Authority(tmp_path)
    tls = TlsSettings(str(authority.issue("registry.pem")))
    with running_registry(tmp_path / "lake", tls=tls) as running:
        assert running.url.startswith("https://")
        for ca in (str(authority.path), False):
            with SchemaRegistryClient({"url": running.url, "ssl.ca.location": ca}) as client:
                assert client.get_subjects() == []
        client = SchemaRegistryClient({"url": running.url, "max.retries": 0})
        with client, pytest.raises(SchemaRegistryError, match="No registry answers"):
            client.get_subjects()


def test_a_client_with_a_certificate_loads_it(tmp_path):
    authority = Authority(tmp_path)
    own = str(authority.issue("client.pem"))
    SchemaRegistryClient({"url": "https://a", "ssl.certificate.location": own}).close()
    (tmp_path / "none.pem").write_text("nothing")
    for key in ("ssl.certificate.location", "ssl.ca.location"):
        with pytest.raises(ValueError, match=r"can't speak TLS by ssl\.ca\.location"):
            SchemaRegistryClient({"url": "https://a", key: str(tmp_path / "none.pem")})
