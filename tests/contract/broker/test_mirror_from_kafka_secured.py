"""`tidelog mirror start --from kafka://…` at a broker that asks for TLS and a password, and grants what it must."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType
from confluent_kafka.admin import ResourceType as Kind
from support.brokers import running_broker
from support.certificates import Authority
from support.cli_calls import cli
from support.logs import read, values

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.broker.base.access import AccessSettings
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol, TlsSettings

ROOT = AccessSettings(super_users=frozenset({"User:root"}))
WAIT_S = 60
# What docs/mirror.md says that the mirror's user needs.
NEEDED = (
    (Kind.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    (Kind.TOPIC, "orders", AclOperation.READ),
    (Kind.TOPIC, "orders", AclOperation.DESCRIBE_CONFIGS),
)
OF_GROUPS = (Kind.GROUP, "readers", AclOperation.DESCRIBE)
Keys = Callable[[str, str], dict[str, str]]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """What a client says to be a user, over TLS."""
    authority = Authority(tmp_path)

    def of(user: str, password: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(authority.path),
        }

    authority.issue("broker.pem")
    return of


@pytest.fixture
def address(tmp_path: Path, keys: Keys) -> Iterator[str]:
    tls = TlsSettings(str(tmp_path / "broker.pem"))
    listener = ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_SSL, tls, mechanisms=("SCRAM-SHA-512",))
    with Lake(str(tmp_path / "source")) as source:
        for user in ("root", "mirror"):
            AccessLog(source).upsert_scram(user, credential(ScramMechanism.SHA_512, f"of {user}", b"salt of 16 bytes"))
        for topic in ("orders", "secret"):
            source.create_topic(topic, 1)
            source.topic(topic).append(values("a", "b", "c"))
        with running_broker(source, listeners={"SECURE": listener}, access=ROOT) as found:
            as_root = {"bootstrap.servers": found} | keys("root", "of root")
            consumer = Consumer(as_root | {"group.id": "readers", "auto.offset.reset": "earliest"})
            consumer.subscribe(["orders"])
            assert len(consumer.consume(2, WAIT_S)) == 2
            consumer.close()
            yield found


def grant(address: str, root: dict[str, str], *rights: tuple[Kind, str, AclOperation]) -> None:
    bindings = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:mirror", "*", operation, AclPermissionType.ALLOW)
        for kind, name, operation in rights
    ]
    admin = AdminClient({"bootstrap.servers": address, **root})  # what it was asked is forgotten when it goes
    for future in admin.create_acls(bindings).values():
        future.result(WAIT_S)


def mirrored(address: str, tmp_path: Path, conf: dict[str, str]) -> tuple[int, str]:
    """Run a mirror once, with its keys in a file of properties; its exit code, and what it says of failures."""
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in conf.items()), encoding="utf-8")
    done = cli(
        "mirror", "start", "--from", f"kafka://{address}", "--to", str(tmp_path / "copy"), "--once",
        "--config-file", str(file),
    )  # fmt: skip
    return done.exit_code, done.stderr


def test_a_user_with_what_the_page_says_copies_topics_and_groups(address: str, tmp_path: Path, keys: Keys) -> None:
    grant(address, keys("root", "of root"), *NEEDED, OF_GROUPS)
    code, says = mirrored(address, tmp_path, keys("mirror", "of mirror"))
    assert code == 0, says
    with Lake(str(tmp_path / "copy"), create=False) as copy:
        assert copy.topics() == ["orders"], "what it may not describe is not there for it"
        assert read(copy, "orders") == ["a", "b", "c"]
        assert {place: one.offset for place, one in GroupLog(copy).offsets("readers").items()} == {("orders", 0): 2}


def test_groups_that_it_may_not_describe_do_not_hold_up_records(address: str, tmp_path: Path, keys: Keys) -> None:
    grant(address, keys("root", "of root"), *NEEDED)
    code, says = mirrored(address, tmp_path, keys("mirror", "of mirror"))
    assert code == 1
    assert "Offsets of group 'readers' are not copied. Its offsets can't be read" in says
    with Lake(str(tmp_path / "copy"), create=False) as copy:
        assert read(copy, "orders") == ["a", "b", "c"]
        assert GroupLog(copy).offsets("readers") == {}


def test_a_wrong_password_is_said(address: str, tmp_path: Path, keys: Keys) -> None:
    code, says = mirrored(address, tmp_path, keys("mirror", "of nobody"))
    assert code == 1
    assert "uthentication failed" in says
    assert "at the keys of security (--config)" in says
    assert "of nobody" not in says, "the password is not said"
