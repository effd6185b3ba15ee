"""Real clients, librdkafka and aiokafka, that log in at a broker by each mechanism; a thousand log-ins at once."""

import asyncio
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import scramp
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from support.brokers import running_broker
from support.certificates import Authority
from support.kafka_clients import ACCESS_TOOLS, NEWEST, OLD, KafkaClient, ready, round_trip
from support.kafka_wire import WireClient
from support.token_issuers import AUDIENCE, ISSUER, Issuer
from support.waiting import eventually

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.token_settings import TokenSettings
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.settings import GroupSettings, SaslSettings
from tidelog.broker.sasl.logins import Logins
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol, TlsSettings

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "alice", "correct horse, battery=staple"
SASL_LISTENER = {"PLAINTEXT": ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_PLAINTEXT, mechanisms=MECHANISMS)}
# Once a listener authenticates, a user needs rights; these tests are about log-ins.
ALLOWED = AccessSettings(super_users=frozenset({f"User:{USER}"}))


def add_user(lake: Lake, user: str = USER, password: str = PASSWORD) -> None:
    AccessLog(lake).upsert_scram(user, *(credential(one, password, b"salt of 16 bytes") for one in ScramMechanism))


@pytest.fixture
def address(lake: Lake) -> Iterator[str]:
    add_user(lake)
    with running_broker(lake, listeners=SASL_LISTENER, access=ALLOWED) as address:
        yield address


def librdkafka(address: str, mechanism: str, password: str = PASSWORD, **more: object) -> dict[str, object]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
        **more,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_logs_in_and_takes_records_there_and_back(address: str, mechanism: str) -> None:
    producer = Producer(librdkafka(address, mechanism, acks="all"))
    producer.produce("t", b"x", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer(librdkafka(address, mechanism, **{"group.id": mechanism, "auto.offset.reset": "earliest"}))
    consumer.subscribe(["t"])
    try:
        found = eventually(lambda: (m := consumer.poll(0.2)) and not m.error() and m, "a record")
        assert found.topic() == "t"
    finally:
        consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_learns_of_a_wrong_password(address: str, mechanism: str) -> None:
    heard: list[KafkaError] = []
    admin = AdminClient(librdkafka(address, mechanism, "wrong", error_cb=heard.append))

    def is_refused() -> bool:
        admin.poll(0.1)
        return any(error.code() == KafkaError._AUTHENTICATION for error in heard)

    eventually(is_refused, "the refusal")
    assert any("invalid credentials" in error.str() for error in heard)


def aiokafka(address: str, mechanism: str, password: str = PASSWORD) -> dict[str, object]:
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_logs_in_and_takes_records_there_and_back(address: str, mechanism: str) -> None:
    async def there_and_back() -> None:
        async with AIOKafkaProducer(**aiokafka(address, mechanism)) as producer:
            await producer.send_and_wait("t", b"y")
        async with AIOKafkaConsumer("t", auto_offset_reset="earliest", **aiokafka(address, mechanism)) as consumer:
            async with asyncio.timeout(60):
                assert (await consumer.getone()).topic == "t"

    asyncio.run(there_and_back())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_learns_of_a_wrong_password(address: str, mechanism: str) -> None:
    async def refused() -> None:
        producer = AIOKafkaProducer(**aiokafka(address, mechanism, "wrong"))
        try:
            with pytest.raises(AiokafkaError):
                await producer.start()
        finally:
            await producer.stop()

    asyncio.run(refused())


def test_a_user_that_is_removed_does_not_come_in_again(lake: Lake, address: str) -> None:
    config = librdkafka(address, "SCRAM-SHA-512")
    assert AdminClient(config).list_topics(timeout=30).topics
    AccessLog(lake).delete_user(USER)

    def is_refused() -> bool:
        heard: list[KafkaError] = []
        admin = AdminClient({**config, "error_cb": heard.append})
        with suppress(KafkaException):
            admin.list_topics(timeout=0.5)
        admin.poll(0.1)
        return any(error.code() == KafkaError._AUTHENTICATION for error in heard)

    eventually(is_refused, "the user is unknown to the broker")


def test_a_session_of_librdkafka_goes_on_over_its_end(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It logs in again before each session ends (KIP-368), and the broker has to end none of them."""
    add_user(lake)
    logged_in: list[object] = []
    lasts = Logins.lasts
    monkeypatch.setattr(Logins, "lasts", lambda self, identity: logged_in.append(identity) or lasts(self, identity))
    sasl = SaslSettings(max_reauth_s=2.0)
    with running_broker(lake, listeners=SASL_LISTENER, access=ALLOWED, sasl=sasl) as address:
        producer = Producer(librdkafka(address, "SCRAM-SHA-512", acks="all"))

        def has_logged_in_again() -> bool:
            producer.produce("t", b"x", partition=0)
            assert producer.flush(60) == 0
            return len(logged_in) >= 4

        eventually(has_logged_in_again, "log-ins of sessions that go on")
    assert "it did not log in again" not in caplog.text


# --- tokens ------------------------------------------------------------------------------------------------

BEARER = {"PLAINTEXT": ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_PLAINTEXT, mechanisms=("OAUTHBEARER",))}


@contextmanager
def published(issuer: Issuer) -> Iterator[str]:
    """The issuer's keys on a port of this machine; their address."""

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/keys" else 302)
            self.send_header("Location", "/keys")
            self.end_headers()
            self.wfile.write(issuer.published())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Keys) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/moved"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def issuer() -> Issuer:
    return Issuer(kind="EC")


@pytest.fixture
def bearer_address(lake: Lake, issuer: Issuer) -> Iterator[str]:
    with published(issuer) as keys:
        sasl = SaslSettings(tokens=TokenSettings(keys, (AUDIENCE,), ISSUER))
        with running_broker(lake, listeners=BEARER, access=ALLOWED, sasl=sasl) as address:
            yield address


def test_librdkafka_logs_in_by_a_token(bearer_address: str, issuer: Issuer) -> None:
    def token(_: str) -> tuple[str, float]:
        now_s = time.time()
        return issuer.token(now_s), now_s + 300

    config = {
        "bootstrap.servers": bearer_address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
    }
    producer = Producer({**config, "acks": "all"})
    reports: list[object] = []
    producer.produce("t", b"x", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(60) == 0
    assert reports == [None]


@pytest.mark.parametrize("claims", [{"exp": 1}, {"aud": "another"}])
def test_librdkafka_learns_that_its_token_is_refused(
    bearer_address: str, issuer: Issuer, claims: dict[str, object]
) -> None:
    heard: list[KafkaError] = []
    admin = AdminClient(
        {
            "bootstrap.servers": bearer_address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (issuer.token(time.time(), **claims), time.time() + 300),
            "error_cb": heard.append,
        }
    )
    eventually(lambda: admin.poll(0.1) is not None and heard, "the refusal")
    assert KafkaError._AUTHENTICATION in {error.code() for error in heard}


def test_aiokafka_logs_in_by_a_token(bearer_address: str, issuer: Issuer) -> None:
    class Tokens(AbstractTokenProvider):
        async def token(self) -> str:
            return issuer.token(time.time())

    async def sent() -> None:
        config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        async with AIOKafkaProducer(
            bootstrap_servers=bearer_address, sasl_oauth_token_provider=Tokens(), **config
        ) as producer:
            await producer.send_and_wait("t", b"y")

    asyncio.run(sent())


# --- Java, kafka-python -----------------------------------------------------------------------------------

JAVA = NEWEST[0]
(KAFKA_PYTHON,) = (client for client in OLD if client.name == "kafka-python")
_MODULES = "org.apache.kafka.common.security"
_QUIET = GroupSettings(initial_rebalance_delay_ms=0)


def java_settings(mechanism: str, module: str, **options: str) -> dict[str, str]:
    given = "".join(f' {name}="{value}"' for name, value in options.items())
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_MODULES}.{module} required{given};",
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_java_takes_records_there_and_back(lake: Lake, mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    """A round trip, and sessions so short that a client of a second or two logs in again."""
    ready(JAVA)
    add_user(lake)
    lake.create_topic("java", partitions=2)
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    settings = java_settings(mechanism, module, username=USER, password=PASSWORD)
    sasl = SaslSettings(max_reauth_s=1.5)
    with running_broker(lake, listeners=SASL_LISTENER, access=ALLOWED, sasl=sasl, groups=_QUIET) as address:
        found = round_trip(JAVA, address, "java", "g", 50, settings=settings)
    assert len(found) == 50 * len(JAVA.codecs)
    assert "it did not log in again" not in caplog.text


PYTHON_SETTINGS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.plain.username": USER,
    "sasl.plain.password": PASSWORD,
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_takes_records_there_and_back(lake: Lake, mechanism: str) -> None:
    ready(KAFKA_PYTHON)
    add_user(lake)
    lake.create_topic("python", partitions=2)
    settings = {**PYTHON_SETTINGS, "sasl.mechanism": mechanism}
    with running_broker(lake, listeners=SASL_LISTENER, access=ALLOWED, groups=_QUIET) as address:
        found = round_trip(KAFKA_PYTHON, address, "python", "g", 20, settings=settings)
    assert len(found) == 20 * len(KAFKA_PYTHON.codecs)


@pytest.mark.parametrize(
    ("client", "settings"),
    [
        pytest.param(
            JAVA,
            {
                **java_settings("SCRAM-SHA-512", "scram.ScramLoginModule", username=USER, password=PASSWORD),
                "ssl.truststore.type": "PEM",
            },
            id="java",
        ),
        pytest.param(KAFKA_PYTHON, {**PYTHON_SETTINGS, "sasl.mechanism": "SCRAM-SHA-256"}, id="kafka-python"),
    ],
)
def test_clients_log_in_over_tls(lake: Lake, tmp_path: Path, client: KafkaClient, settings: dict[str, str]) -> None:
    """They check the broker's certificate and its name, and take records there and back."""
    ready(client)
    add_user(lake)
    lake.create_topic("secret", partitions=2)
    authority = Authority(tmp_path)
    tls = TlsSettings(str(authority.issue("broker.pem")))
    listener = ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_SSL, tls, MECHANISMS)
    trusted = "ssl.truststore.location" if client is JAVA else "ssl.cafile"
    settings = {**settings, "security.protocol": "SASL_SSL", trusted: str(authority.path)}
    with running_broker(lake, listeners={"SECURE": listener}, access=ALLOWED, groups=_QUIET) as address:
        found = round_trip(client, address, "secret", "g", 20, settings=settings)
    assert len(found) == 20 * len(client.codecs)


def test_java_logs_in_by_a_token(
    lake: Lake, issuer: Issuer, bearer_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in (JAVA, ACCESS_TOOLS):  # whose folder has what Java's client reads tokens with
        ready(needed)
    jars = ":".join([str(JAVA.folder), *(f"{one.folder}/*" for one in (JAVA, ACCESS_TOOLS))])
    client = replace(JAVA, command=lambda _: ["java", "-Xmx256m", "-cp", jars, "RoundTrip"])
    lake.create_topic("java", partitions=2)
    token = tmp_path / "token.jwt"
    token.write_text(issuer.token(round(time.time())))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token.as_uri()}")
    settings = {
        **java_settings("OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule"),
        "sasl.login.callback.handler.class": f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
    }
    found = round_trip(client, bearer_address, "java", "g", 10, settings=settings)
    assert len(found) == 10 * len(JAVA.codecs)


# --- many --------------------------------------------------------------------------------------------------

CROWD = 1000


async def wire_log_in(client: WireClient, mechanism: str) -> None:
    shaken = await client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=mechanism)
    assert shaken.error_code.value == 0
    if mechanism == "PLAIN":
        message = f"\0{USER}\0{PASSWORD}".encode()
        assert (await client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=message)).error_code.value == 0
        return
    theirs = scramp.ScramClient([mechanism], USER, PASSWORD)
    first = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=theirs.get_client_first().encode())
    theirs.set_server_first(first.auth_bytes.decode())
    final = await asyncio.to_thread(theirs.get_client_final)
    last = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=final.encode())
    theirs.set_server_final(last.auth_bytes.decode())


def test_a_thousand_connections_log_in_at_once(address: str, record_property: Callable[[str, object], None]) -> None:
    """All get in, none has to try twice, and a client that is in is answered meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * CROWD)), hard))

    async def crowd() -> tuple[float, list[float]]:
        loop, waits = asyncio.get_running_loop(), []
        clients = [WireClient(address) for _ in range(CROWD)]
        async with WireClient(address) as inside:
            await wire_log_in(inside, "PLAIN")
            for client in clients:
                await client.__aenter__()
            began_s = loop.time()
            work = asyncio.gather(
                *(wire_log_in(client, MECHANISMS[at % len(MECHANISMS)]) for at, client in enumerate(clients))
            )
            while not work.done():
                asked_s = loop.time()
                assert (await inside.ask(ApiKey.LIST_GROUPS, 0)).error_code.value == 0
                waits.append(loop.time() - asked_s)
            await work
            took_s = loop.time() - began_s
            for client in clients:
                assert (await client.ask(ApiKey.LIST_GROUPS, 0)).error_code.value == 0
                await client.__aexit__()
        return took_s, waits

    took_s, waits = asyncio.run(crowd())
    record_property("took_s", round(took_s, 2))
    record_property("longest_wait_of_another_s", round(max(waits), 3))
    print(f"{CROWD} log-ins: {took_s:.1f} s; another client had {len(waits)} answers, each in {max(waits):.3f} s")
