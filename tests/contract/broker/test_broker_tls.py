"""Listeners of TLS, by real sockets: versions, certificates of both sides, and certificates that change."""

import asyncio
import random
import socket
import ssl
import struct
import threading
from contextlib import suppress

import pytest
import uvloop
from confluent_kafka import Consumer, Producer
from cryptography.x509.oid import NameOID
from support.brokers import running_broker
from support.certificates import DAY, Authority, name
from support.waiting import eventually

import tidelog.broker.server.connections as connections_module
import tidelog.broker.server.secured_listeners as secured_module
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.settings import Bounds
from tidelog.broker.server import tls_handshake
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ClientAuth, ListenerSettings, SecurityProtocol, TlsSettings
from tidelog.server.base.tls import ListenerTls

QUESTION = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 7, -1)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def lake(tmp_path):
    with Lake(str(tmp_path / "lake")) as opened:
        yield opened


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def make_loop(request):
    return request.param


def listeners(keystore, **tls):
    return {"SECURE": ListenerSettings("127.0.0.1", 0, SecurityProtocol.SSL, TlsSettings(str(keystore), **tls))}


def trusting(authority, keystore=None, version=None):
    context = ssl.create_default_context(cafile=authority.path)
    if keystore is not None:
        context.load_cert_chain(keystore)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def connect(address, context, host="localhost"):
    connection = plain(address)
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except OSError:
        connection.close()
        raise


def is_answered(connection):
    """Whether the broker answers a request of the smallest kind; False when it closes the connection."""
    connection.sendall(QUESTION)
    stream = connection.makefile("rb")
    start = stream.read(8)
    return len(start) == 8 and struct.unpack(">ii", start)[1] == 7


def asked(address, context, **more):
    with connect(address, context, **more) as connection:
        return is_answered(connection)


def is_refused(address, context):
    """Whether the broker ends the connection, by an alert or without, before it answers."""
    try:
        return not asked(address, context)
    except OSError:
        return True


def plain(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), 30)


# --- the broker's certificate ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(authority, lake, make_loop, version):
    keystore = authority.issue("broker.pem")
    with (
        running_broker(lake, make_loop, listeners=listeners(keystore)) as address,
        connect(address, trusting(authority, version=version)) as connection,
    ):
        assert connection.version() == version.name.replace("_", ".")
        assert is_answered(connection)


def test_a_version_that_is_not_enabled_is_refused(authority, lake, make_loop):
    keystore = authority.issue("broker.pem")
    only = listeners(keystore, protocols=("TLSv1.3",))
    with running_broker(lake, make_loop, listeners=only) as address:
        assert is_refused(address, trusting(authority, version=ssl.TLSVersion.TLSv1_2))
        assert asked(address, trusting(authority))


def test_an_encrypted_key_is_read_with_its_password(authority, lake):
    keystore = authority.issue("broker.pem", password="s3cret")
    with running_broker(lake, listeners=listeners(keystore, key_password="s3cret")) as address:
        assert asked(address, trusting(authority))


@pytest.mark.parametrize(
    ("issued", "host", "why"),
    [
        ({"lasts": -DAY}, "localhost", "expired"),
        ({"hosts": ["other.example"]}, "localhost", "Hostname mismatch"),
        (None, "localhost", "unable to get local issuer|self.signed"),
    ],
    ids=["expired", "another name", "another authority"],
)
def test_clients_refuse_a_certificate_that_is_wrong(tmp_path, authority, lake, issued, host, why):
    signer = Authority(tmp_path, "stranger") if issued is None else authority
    keystore = signer.issue("broker.pem", **(issued or {}))
    with running_broker(lake, listeners=listeners(keystore)) as address:
        with pytest.raises(ssl.SSLCertVerificationError, match=why):
            asked(address, trusting(authority), host=host)
        for _ in range(3):  # and the broker goes on
            with pytest.raises(ssl.SSLCertVerificationError):
                asked(address, trusting(authority), host=host)


# --- clients' certificates ---------------------------------------------------------------------------------


def principals(monkeypatch):
    """The principals of the connections that are made."""
    seen = []
    secured = connections_module.Connections.secured

    def noted(self, handshake, connection):
        seen.append(connection.peer.principal)
        secured(self, handshake, connection)

    monkeypatch.setattr(connections_module.Connections, "secured", noted)
    return seen


def test_the_principal_is_the_certificates_subject_by_the_rules(monkeypatch, authority, lake, make_loop):
    seen = principals(monkeypatch)
    ann = authority.issue("ann.pem", name("Ann", (NameOID.ORGANIZATION_NAME, "Example")))
    bob = authority.issue("bob.pem", "bob")
    asks = listeners(
        authority.issue("broker.pem"),
        truststore=str(authority.path),
        client_auth=ClientAuth.REQUESTED,
        principal_rules="RULE:^CN=([^,]+),O=Example$/$1/L,DEFAULT",
    )
    with running_broker(lake, make_loop, listeners=asks) as address:
        for keystore in (ann, bob, None):
            assert asked(address, trusting(authority, keystore))
    assert seen == ["User:ann", "User:CN=bob", "User:ANONYMOUS"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("shown", ["none", "expired", "stranger"])
def test_a_client_without_a_certificate_that_counts_is_refused(
    monkeypatch, tmp_path, authority, lake, make_loop, shown, version
):
    seen = principals(monkeypatch)
    keystore = {
        "none": lambda: None,
        "expired": lambda: authority.issue("client.pem", "ann", lasts=-DAY),
        "stranger": lambda: Authority(tmp_path, "stranger").issue("client.pem", "ann"),
    }[shown]()
    asks = listeners(authority.issue("broker.pem"), truststore=str(authority.path), client_auth=ClientAuth.REQUIRED)
    with running_broker(lake, make_loop, listeners=asks) as address:
        assert is_refused(address, trusting(authority, keystore, version))
        assert seen == []
        assert asked(address, trusting(authority, authority.issue("ann.pem", "ann"), version))


def test_no_certificate_makes_a_client_the_brokers_own_user(monkeypatch, authority, lake, make_loop):
    seen = principals(monkeypatch)
    asks = listeners(
        authority.issue("broker.pem"),
        truststore=str(authority.path),
        client_auth=ClientAuth.REQUIRED,
        principal_rules="RULE:^CN=(.*)$/$1/",
    )
    with running_broker(lake, make_loop, listeners=asks) as address:
        assert is_refused(address, trusting(authority, authority.issue("client.pem", "__broker")))
    assert seen == []


# --- handshakes that are none ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (QUESTION, "take the listener for PLAINTEXT"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "speaks HTTP"),
        (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", "TLS handshake failed"),
        (random.Random(1).randbytes(4096), "TLS handshake failed"),
    ],
    ids=["Kafka without TLS", "HTTP", "half a hello", "garbage"],
)
def test_what_is_no_handshake_ends_the_connection(authority, lake, make_loop, caplog, sent, why):
    with running_broker(lake, make_loop, listeners=listeners(authority.issue("broker.pem"))) as address:
        with plain(address) as connection:
            connection.sendall(sent)
            with suppress(ConnectionError):
                while connection.recv(4096):
                    pass
        assert asked(address, trusting(authority))
    (line,) = [one for one in caplog.messages if one.startswith("Connection closed")]
    assert why in line


def test_a_client_that_says_nothing_is_dropped(monkeypatch, authority, lake, make_loop, caplog):
    monkeypatch.setattr(tls_handshake, "HANDSHAKE_S", 0.1)
    secure = listeners(authority.issue("broker.pem"))
    with running_broker(lake, make_loop, listeners=secure) as address, plain(address) as connection:
        assert connection.recv(1) == b""
    assert any("it took more than 0.1 s" in one for one in caplog.messages)


def test_handshakes_count_as_connections(authority, lake, make_loop):
    one = listeners(authority.issue("broker.pem"))
    with running_broker(lake, make_loop, listeners=one, bounds=Bounds(max_connections_per_ip=2)) as address:
        with plain(address), plain(address), plain(address) as third, suppress(ConnectionError):
            assert third.recv(1) == b""
        eventually(lambda: not is_refused(address, trusting(authority)), "a connection once there is room")


def test_a_handshake_does_not_outlive_its_broker(authority, lake, make_loop):
    one = listeners(authority.issue("broker.pem"))
    with running_broker(lake, make_loop, listeners=one) as address:
        connection = plain(address)
        assert asked(address, trusting(authority))
    with connection, suppress(ConnectionError):
        assert connection.recv(1) == b""


# --- certificates that change ------------------------------------------------------------------------------


def replace_file(path, content):
    """All at once, as a broker may look at any moment."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


def served(address, authority):
    with connect(address, trusting(authority)) as connection:
        return dict(pair for ((pair),) in connection.getpeercert()["subject"])["commonName"]


def test_certificates_are_read_again_under_load(authority, lake, make_loop):
    keystore = authority.issue("broker.pem", "first")
    failures, over = [], threading.Event()

    def load(address):
        while not over.is_set():
            try:
                assert asked(address, trusting(authority))
            except Exception as e:
                failures.append(e)
                return

    with running_broker(lake, make_loop, listeners=listeners(keystore)) as address:
        clients = [threading.Thread(target=load, args=(address,)) for _ in range(4)]
        for client in clients:
            client.start()
        try:
            with connect(address, trusting(authority)) as before:
                for common in ("second", "third"):
                    authority.issue("broker.pem", common)
                    eventually(lambda: served(address, authority) == common, common)  # noqa: B023 - called at once
                assert is_answered(before), "connections go on that have the certificate of before"
        finally:
            over.set()
            for client in clients:
                client.join()
    assert failures == []


@pytest.mark.parametrize("broken", ["half", "gone", "expired", "another key"])
def test_a_certificate_that_is_wrong_leaves_the_one_of_before(monkeypatch, authority, lake, make_loop, caplog, broken):
    looked = threading.Semaphore(0)
    look = ListenerTls.look

    def noted(self, now):
        found = look(self, now)
        looked.release()
        return found

    monkeypatch.setattr(ListenerTls, "look", noted)
    monkeypatch.setattr(secured_module, "CERTIFICATES_EVERY_S", 0.01)
    keystore = authority.issue("broker.pem", "first")
    with running_broker(lake, make_loop, listeners=listeners(keystore)) as address:
        right = keystore.read_bytes()
        if broken == "half":
            replace_file(keystore, right[: len(right) // 2])
        elif broken == "gone":
            keystore.unlink()
        elif broken == "expired":
            authority.issue("broker.pem", "second", lasts=-DAY)
        else:
            key, _, certificate = right.rpartition(b"-----BEGIN CERTIFICATE")
            other = authority.issue("other.pem", "second").read_bytes().rpartition(b"-----BEGIN CERTIFICATE")
            replace_file(keystore, key + b"-----BEGIN CERTIFICATE" + other[2])
            assert certificate != other[2]
        for _ in range(5):
            assert looked.acquire(timeout=60)
        assert served(address, authority) == "first"
        assert sum("its new files are not used" in one for one in caplog.messages) == 1
        authority.issue("broker.pem", "third")
        eventually(lambda: served(address, authority) == "third", "the third certificate")


# --- real clients ------------------------------------------------------------------------------------------


def test_librdkafka_produces_and_consumes_with_certificates(authority, lake):
    keystore = authority.issue("client.pem", "ann")
    asks = listeners(authority.issue("broker.pem"), truststore=str(authority.path), client_auth=ClientAuth.REQUIRED)
    # A message that takes many of TLS's records, both ways.
    value = random.Random(2).randbytes(900_000)
    access = AccessSettings(everyone=True)
    with running_broker(lake, uvloop.new_event_loop, listeners=asks, access=access) as address:
        client = {
            "bootstrap.servers": f"localhost:{address.rsplit(':', 1)[1]}",
            "security.protocol": "ssl",
            "ssl.ca.location": str(authority.path),
            "ssl.certificate.location": str(keystore),
            "ssl.key.location": str(keystore),
        }
        producer = Producer(client)
        for number in range(100):
            producer.produce("t", key=str(number))
        producer.produce("t", value)
        assert producer.flush(60) == 0
        consumer = Consumer(client | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        found = []
        eventually(lambda: found.extend(consumer.consume(200, 1.0)) or len(found) >= 101, "all messages")
        consumer.close()
    assert sorted(one.key() for one in found if one.key()) == sorted(str(n).encode() for n in range(100))
    assert [one.value() for one in found if not one.key()] == [value]


def test_a_thousand_clients_at_once(monkeypatch, authority, lake):
    monkeypatch.setattr(tls_handshake, "HANDSHAKE_S", 600.0)
    context = trusting(authority)

    async def client(host, port):
        reader, writer = await asyncio.open_connection(
            host, port, ssl=context, server_hostname="localhost", ssl_handshake_timeout=600.0
        )
        writer.write(QUESTION)
        answer = await reader.readexactly(8)
        writer.transport.abort()
        return struct.unpack(">ii", answer)[1]

    async def all_of(address):
        host, port = address.rsplit(":", 1)
        return await asyncio.gather(*(client(host, int(port)) for _ in range(1000)))

    with running_broker(lake, uvloop.new_event_loop, listeners=listeners(authority.issue("broker.pem"))) as address:
        assert asyncio.run(all_of(address)) == [7] * 1000
