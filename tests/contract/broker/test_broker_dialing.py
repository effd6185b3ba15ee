"""Brokers that ask each other by listeners with TLS and log-ins, without any credentials configured."""

import asyncio
import struct
from collections import Counter
from contextlib import suppress

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from support.brokers import running_broker
from support.certificates import Authority
from support.waiting import eventually

from tidelog.access.access_log import AccessLog
from tidelog.access.broker_user import BROKER_PRINCIPAL
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.dialing import BrokerDialer, BrokerLogin, LoginFailedError
from tidelog.broker.cluster.links import BrokerLinks, Link
from tidelog.broker.produce.hand_over import HandOvers
from tidelog.broker.server.connection import ClientConnection
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import CommitOutcome
from tidelog.server.base.listener_settings import ClientAuth, ListenerSettings, SecurityProtocol, TlsSettings

PARTITIONS = 12
SCRAM_512 = ScramMechanism.SHA_512
ANN = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "ann", "sasl.password": "ann's own"}


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as opened:
        opened.create_topic("t", PARTITIONS)
        yield opened


@pytest.fixture
def counts(monkeypatch):
    """What became of hand-overs, how often; and the principals that logged in."""
    counted: Counter[str] = Counter()
    handed_over, logged_in = HandOvers._handed_over, ClientConnection._logged_in

    async def noted(self, committer, topic, share):
        answer = await handed_over(self, committer, topic, share)
        counted["handed over" if answer.outcome is CommitOutcome.COMMITTED else answer.outcome] += 1
        return answer

    def seen(self, principal):
        counted[principal] += 1
        logged_in(self, principal)

    monkeypatch.setattr(HandOvers, "_handed_over", noted)
    monkeypatch.setattr(ClientConnection, "_logged_in", seen)
    return counted


@pytest.fixture
def links(monkeypatch):
    """All links between brokers: how each was reached last."""
    found: dict[tuple[int, str], Link] = {}
    reached = BrokerLinks.reached

    def noted(self, broker):
        link = found[id(self), broker.registration] = reached(self, broker)
        return link

    monkeypatch.setattr(BrokerLinks, "reached", noted)
    return found


def secured(protocol, folder, **tls):
    """A listener's settings, and what its clients need."""
    client = {"security.protocol": protocol.value}
    if protocol.has_sasl:
        client |= ANN
    if not protocol.is_encrypted:
        return ListenerSettings("127.0.0.1", 0, protocol, mechanisms=("SCRAM-SHA-512",)), client
    authority = Authority(folder)
    keystore = str(authority.issue("broker.pem"))
    settings = TlsSettings(keystore, truststore=str(authority.path), **tls)
    client |= {"ssl.ca.location": str(authority.path)}
    if tls:
        client |= {"ssl.certificate.location": keystore, "ssl.key.location": keystore}
    mechanisms = ("SCRAM-SHA-512",) if protocol.has_sasl else ()
    return ListenerSettings("127.0.0.1", 0, protocol, settings, mechanisms), client


@pytest.mark.parametrize(
    ("protocol", "tls"),
    [
        (SecurityProtocol.SSL, {}),
        (SecurityProtocol.SSL, {"client_auth": ClientAuth.REQUIRED}),
        (SecurityProtocol.SASL_PLAINTEXT, {}),
        (SecurityProtocol.SASL_SSL, {}),
    ],
    ids=["SSL", "SSL with certificates", "SASL_PLAINTEXT", "SASL_SSL"],
)
def test_brokers_hand_over_by_a_listener_with_security(tmp_path, lake, counts, links, protocol, tls):
    listener, client = secured(protocol, tmp_path, **tls)
    if protocol.has_sasl:
        AccessLog(lake).upsert_scram("ann", credential(SCRAM_512, ANN["sasl.password"], b"salt of 16 bytes"))
    access = AccessSettings(super_users=frozenset({"User:ann", "User:CN=broker"}))
    told = {"listeners": {"INSIDE": listener}, "access": access, "drain_s": 1.0, "topic_leaders": "all"}
    with (
        Lake(lake.uri) as other,
        running_broker(lake, **told) as first,
        running_broker(other, **told),
    ):
        client |= {"bootstrap.servers": first, "linger.ms": 0}
        admin = AdminClient(client)
        eventually(lambda: len(admin.list_topics(timeout=60).brokers) == 2, "two brokers")
        eventually(lambda: [*links.values()].count(Link.ANSWERS) == 2, "both answer each other")

        def handed_over():
            producer = Producer(client)
            for partition in range(PARTITIONS):
                producer.produce("t", b"x", partition=partition)
            assert producer.flush(60) == 0
            return counts["handed over"]

        eventually(handed_over, "a hand-over")
    assert (counts[BROKER_PRINCIPAL] > 0) == protocol.has_sasl


@pytest.mark.parametrize(
    ("secret", "why"), [(b"", "not known yet"), (b"another", "SASL_AUTHENTICATE was answered with error 58")]
)
def test_a_process_without_the_secret_does_not_get_in(tmp_path, lake, secret, why):
    listener, _ = secured(SecurityProtocol.SASL_PLAINTEXT, tmp_path)

    async def at_once(call, *args):
        return call(*args)

    async def dialed(address, known):
        host, port = address.rsplit(":", 1)
        _, writer = await BrokerDialer("IN", None, BrokerLogin(SCRAM_512, lambda: known, at_once)).connect(host, port)
        writer.close()

    with running_broker(lake, listeners={"IN": listener}) as address:
        with pytest.raises(LoginFailedError, match=why):
            asyncio.run(dialed(address, secret))
        asyncio.run(dialed(address, AccessLog(lake).look().secret))


@pytest.mark.parametrize(
    "said", [b"", b"\xff\xff\0\0\0\3\xff\xff\xff", b"\xff\xff\0\0\0\5r=abc", b"\xff\xff\x7f\xff\xff\xff"]
)
def test_what_listens_in_place_of_a_broker_may_say_anything(said):
    async def at_once(call, *args):
        return call(*args)

    async def answer(reader, writer):
        for body in (b"", said):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            await reader.readexactly(size)
            writer.write(struct.pack(">iih", 6 + len(body), 0, 0) + body)
        writer.close()

    async def dialed():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            login = BrokerLogin(SCRAM_512, lambda: b"the secret", at_once)
            await BrokerDialer("IN", None, login).connect("127.0.0.1", port)

    with pytest.raises(LoginFailedError):
        asyncio.run(dialed())


@pytest.mark.parametrize(("iterations", "hashed"), [(4096, ["get_client_final"]), (16_385, [])])
def test_iterations_are_computed_by_a_thread_and_no_more_than_brokers_have(iterations, hashed):
    in_threads = []

    async def noted(call, *args):
        in_threads.append(call.__name__)
        return call(*args)

    async def answer(reader, writer):
        async def asked():
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            return await reader.readexactly(size)

        await asked()
        writer.write(struct.pack(">iih", 6, 0, 0))
        nonce = (await asked()).rpartition(b"r=")[2]
        said = b"r=%sand,s=c2FsdHNhbHRzYWx0c2FsdA==,i=%d" % (nonce, iterations)
        writer.write(struct.pack(">iihhi", 12 + len(said), 0, 0, -1, len(said)) + said)
        with suppress(asyncio.IncompleteReadError):
            await asked()
        writer.close()

    async def dialed():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            login = BrokerLogin(SCRAM_512, lambda: b"the secret", noted)
            await BrokerDialer("IN", None, login).connect("127.0.0.1", port)

    with pytest.raises(LoginFailedError, match="closed the connection" if hashed else "asks for 16385 iterations"):
        asyncio.run(dialed())
    assert in_threads == hashed


@pytest.mark.parametrize(
    ("first", "warned"), [(SecurityProtocol.PLAINTEXT, True), (SecurityProtocol.SASL_PLAINTEXT, False)]
)
def test_a_brokers_listener_that_lets_clients_in_unknown_is_warned_of(tmp_path, caplog, first, warned):
    """Beside one that authenticates: what comes by it is a broker's, whatever the ACLs say."""

    def listener(protocol):
        return ListenerSettings("127.0.0.1", 0, protocol, mechanisms=("SCRAM-SHA-512",) if protocol.has_sasl else ())

    both = {"FIRST": listener(first), "SECOND": listener(SecurityProtocol.SASL_PLAINTEXT)}
    with Lake(str(tmp_path / "lake")) as lake, running_broker(lake, listeners=both):
        assert ("Brokers ask each other on the listener FIRST" in caplog.text) is warned
