"""A registry's server among clients that send what no client should: each gets JSON with a code, or is dropped.

Raw sockets, since clients of HTTP refuse to send most of it.
"""

import http.client
import json
import logging
import random
import re
import socket
import ssl
import threading
import time
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from support.certificates import Authority
from support.registry_servers import running_registry
from support.waiting import eventually
from test_registry_processes import registry_process

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.log.lake import Lake
from tidelog.registry.api.app import ROWS
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess, HttpLogins

MIB = 2**20
JSON_TYPE = b"content-type: application/json\r\n"
# Of Confluent's documentation, and those of HTTP itself that its server gives, too.
CODES = {200, 400, 401, 403, 404, 405, 406, 408, 409, 415, 422, 429}


def connected(url):
    found = urlsplit(url)
    return socket.create_connection((found.hostname, found.port), timeout=60)


def answers(connection):
    """(status, JSON) of every answer until the server ends the connection."""
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionError:
        pass
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        status, length = int(head.split()[1]), re.search(rb"(?i)content-length: (\d+)", head)
        if status == 100:
            data = rest
            continue
        size = int(length[1]) if length else len(rest)
        assert b"application/" in head, head
        found.append((status, json.loads(rest[:size]) if rest[:size] else None))
        data = rest[size:]
    return found


def sent(url, data):
    """The answers to bytes, after which the client sends nothing more."""
    with connected(url) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server has ended the connection before the last byte
        return answers(connection)


def post(path, body, *headers):
    lines = b"".join((JSON_TYPE, b"host: a\r\n", b"content-length: %d\r\n" % len(body), *headers))
    return b"POST " + path + b" HTTP/1.1\r\n" + lines + b"\r\n" + body


@pytest.fixture
def log(caplog):
    """What the server says; no test here has anything that it should be alarmed about."""
    caplog.set_level(logging.WARNING)
    yield caplog
    said = caplog.get_records("call")
    assert [one.getMessage() for one in said if one.levelno >= logging.ERROR or one.exc_info] == []


@pytest.fixture
def registry(tmp_path, log):
    with running_registry(tmp_path / "lake") as running:
        yield running
        assert httpx.get(f"{running.url}/subjects", timeout=None).status_code == 200


# --- whatever is sent ----------------------------------------------------------------------------------------

PIECES = [
    b"", b"a", b"a%2Fb", b"%", b"%zz", b"%ff%fe", b"%00", b"..", b".", b"%2e%2e", b":.c:", b":.c:a", b":.:",
    b":", b"::",
    b":*:", b"%E2%98%83", b"-1", b"latest", b"0", b"1", b"99999999999999999999", b"-" * 9, b"1e9", b"%F0%9F%92%A9",
    b"subjects", b"versions", b"x" * 3000, b"a%0d%0ab", b"%20", b"__GLOBAL", b"a'b", b'a"b', b"a;b", b"a&b", b"\\",
]  # fmt: skip
QUERIES = [
    b"", b"?", b"?offset=-1", b"?offset=99999999999999999999", b"?limit=x", b"?limit=-99", b"?format=x",
    b"?deleted=%ff",
    b"?subject=%00", b"?subject=:.c:", b"?subjectPrefix=:*:", b"?normalize=true&verbose=true", b"?key=a&key=b&value=c",
    b"?" + b"a=b&" * 500, b"?permanent=true", b"?force=true", b"?id=1;2", b"?subject=%20", b"?format=serialized",
]  # fmt: skip
BODIES = [
    b"", b"{", b"null", b"[]", b"1e400", b"NaN", b'"a"', b"\xff\xfe", b"\x00", b"[" * 50_000, b'{"schema":' * 9000,
    b"{}",
    b'{"schema":"\\"int\\""}', b'{"schema":"\\u0000"}', b'{"schema":null}', b'{"schema":1e400}', b'{"mode":"IMPORT"}',
    b'{"schema":"{}","id":' + b"9" * 5000 + b"}", b'{"schema":"\\"int\\"","version":-5}', b'{"compatibility":{}}',
    b'{"schema":"\\"int\\"","id":4294967296}', b'{"schema":"\\"int\\"","version":99999999999}', b'{"mode":1}',
    b'{"schema":"syntax=\\"proto3\\";","schemaType":"PROTOBUF"}', b'{"schema":"true","schemaType":"JSON"}',
    b'{"schema":"\\"int\\"","references":[{"name":"","subject":"","version":0}]}', b'{"defaultMetadata":{"tags":1}}',
    b'{"schema":"\\"int\\"","references":[{"name":"a","subject":"a","version":1e99}]}', b'{"compatibility":"NONE"}',
    b'{"schema":"\\"int\\"","metadata":{"properties":{"confluent:version":"x"}}}', b'{"normalize":"a"}',
    b'{"schema":"\\"int\\"","ruleSet":{"domainRules":[{"name":1}]}}', b'{"alias":"' + b"a" * 100_000 + b'"}',
]  # fmt: skip
HEADERS = [
    b"", b"accept: x/y\r\n", b"accept: */*;q=x\r\n", b"accept: application/json\r\n", b"authorization: Basic !!!\r\n",
    b"authorization: Bearer \xe4\r\n", b"connection: upgrade\r\nupgrade: websocket\r\n",
    b"x: " + b"y" * 30_000 + b"\r\n",
    b"content-type: text/plain\r\n", b"content-type: \xff\r\n", b"expect: 100-continue\r\n",
    b"x-forwarded-for: 1.2.3.4\r\n",
    b"content-encoding: gzip\r\n",
]  # fmt: skip
METHODS = [b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"PATCH", b"OPTIONS", b"TRACE", b"CONNECT", b"get", b"BREW"]


def anything(chance):
    """A request of HTTP, right in its form: known paths with odd parts, or odd paths."""
    if chance.random() < 0.8:
        path = chance.choice(ROWS).path
        path = re.sub(r"\{\w+\}", lambda _: chance.choice(PIECES).decode(), path).encode()
    else:
        path = b"/".join(chance.choice(PIECES) for _ in range(chance.randrange(6)))
    prefix = b"/contexts/" + chance.choice(PIECES) if chance.random() < 0.1 else b""
    body = chance.choice(BODIES)
    kind = b"" if chance.random() < 0.2 else JSON_TYPE
    framing = b"content-length: %d\r\n" % len(body)
    if chance.random() < 0.3:
        body = b"".join(b"%x\r\n%s\r\n" % (len(body[i : i + 999]), body[i : i + 999]) for i in range(0, len(body), 999))
        framing, body = b"transfer-encoding: chunked\r\n", body + b"0\r\n\r\n"
    head = chance.choice(METHODS) + b" " + prefix + b"/" + path + chance.choice(QUERIES) + b" HTTP/1.1\r\n"
    return head + b"host: a\r\nconnection: close\r\n" + kind + framing + chance.choice(HEADERS) + b"\r\n" + body


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_asked_is_answered_by_a_code(registry, seed):
    chance = random.Random(seed)
    for _ in range(250):
        data = anything(chance)
        found = sent(registry.url, data)
        assert len(found) == 1, data[:300]
        ((status, body),) = found
        assert status in CODES, (data[:300], body)
        if status != 200 and body is not None:
            assert sorted(body) == ["error_code", "message"]
            assert str(body["error_code"]).startswith(str(status))


@pytest.mark.parametrize("seed", range(2))
def test_whatever_bytes_come_the_server_stays(registry, seed):
    """Requests cut anywhere, with bytes changed or doubled: an answer of JSON, or none."""
    chance = random.Random(seed)
    for _ in range(200):
        data = bytearray(anything(chance)[:5000])
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data))
            data[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
        for status, body in sent(registry.url, bytes(data[: chance.randrange(1, len(data) + 1)])):
            assert status in CODES
            assert status == 200 or body is None or sorted(body) == ["error_code", "message"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n" + JSON_TYPE + b"\r\nzz\r\n",
        b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 100_000,
    ],
    ids=["tls", "old", "no-host", "bytes", "chunk", "length", "lengths", "headers"],
)
def test_what_is_no_request_is_refused_as_json(registry, data):
    ((status, body),) = sent(registry.url, data)
    assert (status, body["error_code"]) == (400, 400)


# --- large and slow ------------------------------------------------------------------------------------------


def resident(process):
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def test_a_body_of_100_mb_is_refused_early_and_takes_no_memory(tmp_path):
    with registry_process(tmp_path / "lake") as (process, ready):
        path = f"{ready['url']}/subjects/a/versions"
        httpx.post(path, json={"schema": '"int"'}, timeout=None)
        before = resident(process)
        piece = b"x" * MIB
        for chunked in (False, True):
            framing = b"transfer-encoding: chunked\r\n" if chunked else b"content-length: %d\r\n" % (100 * MIB)
            head = b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\n" + JSON_TYPE + framing + b"\r\n"
            with connected(ready["url"]) as connection:
                connection.sendall(head)
                for _ in range(100):
                    try:
                        connection.sendall(b"%x\r\n%s\r\n" % (MIB, piece) if chunked else piece)
                    except ConnectionError:
                        break
                ((status, body),) = answers(connection)
            assert (status, body["error_code"]) == (422, 42209)
        assert resident(process) - before < 64 * MIB
        assert httpx.get(path, timeout=None).json() == [1]


def test_a_client_that_sends_its_whole_body_first_sees_the_refusal(registry):
    """As most clients do; a connection that ended at once would be reset, and the answer lost."""
    at = urlsplit(registry.url)
    client = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    client.request("POST", "/subjects/a/versions", b"x" * (64 * MIB), {"content-type": "application/json"})
    with client.getresponse() as answer:
        assert (answer.status, json.loads(answer.read())["error_code"]) == (422, 42209)
    client.close()


def test_a_request_that_is_late_while_its_sender_logs_in_is_answered_once(tmp_path, log, monkeypatch):
    deciding, go_on = threading.Event(), threading.Event()
    rights = HttpLogins.client

    def slow(*call):
        deciding.set()
        go_on.wait()
        return rights(*call)

    monkeypatch.setattr(HttpLogins, "client", slow)
    head = b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n" + JSON_TYPE + b"\r\n{"
    settings = {"access": HttpAccess(authenticates=True), "bounds": HttpBounds(request_s=0.2)}
    with running_registry(tmp_path / "lake", **settings) as running, connected(running.url) as late:
        late.sendall(head)
        deciding.wait()
        eventually(lambda: running.server.connections.slow == 1, "the request is late")
        go_on.set()
        eventually(lambda: running.server.app.answered.total(), "the log-in is refused, too")
        assert [status for status, _ in answers(late)] == [408]


def test_a_body_that_waits_to_be_asked_for_is_refused_before_it_is_sent(registry):
    head = b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n" + JSON_TYPE
    with connected(registry.url) as connection:
        connection.sendall(head + b"content-length: 999999999\r\n\r\n")
        ((status, body),) = answers(connection)
        assert status == 422
        assert body["error_code"] == 42209


@pytest.mark.parametrize(
    "start",
    [b"G", b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n" + JSON_TYPE + b"\r\n{"],
    ids=["headers", "body"],
)
def test_a_request_that_arrives_too_slowly_is_refused(tmp_path, log, start):
    with (
        running_registry(tmp_path / "lake", bounds=HttpBounds(request_s=0.3)) as running,
        connected(running.url) as slow,
    ):
        slow.sendall(start)
        ((status, body),) = answers(slow)
        assert (status, body["error_code"]) == (408, 408)
        assert running.server.connections.slow == 1
        assert httpx.get(f"{running.url}/subjects", timeout=None).json() == []


def test_a_connection_that_sends_nothing_ends(tmp_path, log):
    with running_registry(tmp_path / "lake", bounds=HttpBounds(idle_s=0.2)) as running, connected(running.url) as idle:
        assert answers(idle) == []


@pytest.mark.parametrize("bounds", [HttpBounds(connections=2), HttpBounds(connections_per_host=2)])
def test_more_connections_than_the_bound_are_ended(tmp_path, log, bounds):
    with running_registry(tmp_path / "lake", bounds=bounds) as running, ExitStack() as ends:
        held = [ends.enter_context(connected(running.url)) for _ in range(2)]
        eventually(lambda: running.server.connections.open.total() == 2, "both are counted")
        with connected(running.url) as refused:
            assert answers(refused) == []
        assert running.server.connections.refused == 1
        held[0].close()
        eventually(lambda: running.server.connections.open.total() == 1, "one is gone")
        assert httpx.get(f"{running.url}/subjects", timeout=None).json() == []


def test_bodies_that_hold_too_much_in_all_are_refused(tmp_path, log):
    bounds = HttpBounds(bodies=3 * MIB)
    head = b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\n" + JSON_TYPE + b"content-length: %d\r\n\r\n" % (2 * MIB)
    with running_registry(tmp_path / "lake", bounds=bounds) as running:
        with connected(running.url) as first:
            first.sendall(head + b"x" * (2 * MIB - 1))
            eventually(lambda: running.server.app.bodies.held == 2 * MIB - 1, "the first body is held")
            ((status, body),) = sent(running.url, head + b"x" * (2 * MIB - 1))
            assert (status, body["error_code"]) == (503, 503)
        eventually(lambda: running.server.app.bodies.held == 0, "the first client is gone")
        ((status, _),) = sent(running.url, post(b"/subjects/a/versions", b"x" * 2 * MIB, b"connection: close\r\n"))
        assert status == 400


# --- log-ins, certificates, stopping -------------------------------------------------------------------------


def test_a_failed_log_in_waits(tmp_path, log):
    with Lake(tmp_path / "lake") as lake:
        AccessLog(lake).upsert_scram("ann", credential(ScramMechanism.SHA_512, "secret", b"salt" * 4))
    access = HttpAccess(authenticates=True, everyone=True, failed_delay_s=0.5)
    with running_registry(tmp_path / "lake", access=access) as running:
        began = time.monotonic()
        assert httpx.get(f"{running.url}/subjects", auth=("ann", "other"), timeout=None).status_code == 401
        assert time.monotonic() - began >= 0.5
        assert httpx.get(f"{running.url}/subjects", auth=("ann", "secret"), timeout=None).status_code == 200


def test_a_certificate_is_read_again_when_its_file_changes(tmp_path, caplog):
    authority = Authority(tmp_path)
    keystore = authority.issue("registry.pem")
    with running_registry(tmp_path / "lake", tls=TlsSettings(str(keystore))) as running:
        trust = ssl.create_default_context(cafile=str(authority.path))

        def shown():
            with connected(running.url) as plain, trust.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
                return secured.getpeercert()["serialNumber"]

        first = shown()
        with httpx.Client(base_url=running.url, verify=trust, timeout=None) as client:
            assert client.get("/subjects").json() == []
            keystore.write_text("nothing")
            eventually(lambda: "its new files are not used" in caplog.text, "the broken file is seen")
            assert shown() == first
            authority.issue("registry.pem", lasts=timedelta(days=2))
            eventually(lambda: shown() != first, "the new certificate is shown")
            assert client.get("/subjects").json() == []


def test_a_registry_that_stops_ends_what_still_arrives_and_answers_the_rest(tmp_path, log):
    with running_registry(tmp_path / "lake") as running, connected(running.url) as slow, connected(running.url) as idle:
        slow.sendall(b"POST /subjects/a/versions HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n" + JSON_TYPE + b"\r\n{")
        eventually(lambda: running.server.connections.open.total() == 2, "both are connected")
        running.server.drain()
        assert answers(idle) == []
        assert [status for status, _ in answers(slow)] == [503]


def test_metrics_count_requests_and_schemas(tmp_path):
    with registry_process(tmp_path / "lake", "--metrics", "127.0.0.1:0") as (_, ready):
        httpx.post(f"{ready['url']}/subjects/a/versions", json={"schema": '"int"'}, timeout=None)
        httpx.get(f"{ready['url']}/nowhere", timeout=None)
        text = httpx.get(f"http://{ready['metrics']}/metrics", timeout=None).text
        for line in (
            'tidelog_registry_requests_total{request="register",status="200"} 1',
            'tidelog_registry_requests_total{request="none",status="404"} 1',
            "kafka_schema_registry_registered_count 1",
            "tidelog_registry_subjects 1",
            "tidelog_registry_request_bytes 0",
        ):
            assert line in text
