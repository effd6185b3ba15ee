"""Files of Kafka's brokers: what becomes of every key, and that typical ones are taken as they are."""

import logging
from pathlib import Path

import pytest
from support.cli_calls import answer, cli, done, refused
from support.kafka_files import typical

from tidelog.cli.broker.lake_keys import take_lake_keys
from tidelog.cli.serving.configuration import checked, given_by_file, settings_of
from tidelog.cli.serving.kafka_file import KeyOutcome, take
from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.properties import properties
from tidelog.log.config.broker_keys import BROKER_KEYS
from tidelog.log.config.kafka_brokers import PASSED_OVER
from tidelog.log.config.lake_file import Follows
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ClientAuth, SecurityProtocol

# All keys of `AbstractKafkaConfig.CONFIG_DEF` of Kafka 4.1.2.
KAFKAS = (Path(__file__).parents[3] / "support/kafka_files/broker_keys_4.1.2.txt").read_text().split()
PATH = "server.properties"


def fates(text):
    """{key: its fate} of a file."""
    return {row.key: row.fate for row in take(properties(text), PATH).rows}


def reason(text):
    (row,) = take(properties(text), PATH).rows
    return row.why


def refusal(text):
    _, taken = checked({}, properties(text), PATH)
    with pytest.raises(UsageProblemError) as refused:
        taken.problems.refuse()
    return str(refused.value)


# --- every key ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KAFKAS)
def test_every_key_of_kafkas_brokers_is_known(key):
    assert key in BROKER_KEYS or LakeConfig.knows(key) or LakeConfig.refusal(key)


def test_no_key_has_two_fates_but_one():
    """A lake has that one, too, but what a file says of it is not for its number of tables."""
    assert {key for key in PASSED_OVER if key in BROKER_KEYS or LakeConfig.knows(key)} == {
        "offsets.topic.num.partitions"
    }


# --- typical files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kraft", "kraft_broker", "zookeeper"])
def test_files_of_kafkas_distribution(name):
    settings, taken = checked({}, properties(typical(name)), PATH)
    assert taken.problems.found == []
    assert {listener.protocol for listener in settings.listeners.values()} == {SecurityProtocol.PLAINTEXT}
    assert list(settings.listeners) == ["PLAINTEXT"]
    assert settings.maintain_every_s == 300
    assert taken.lake["log.retention.hours"] == "168"
    assert {row.key: row.fate for row in taken.rows}["log.dirs"] is KeyOutcome.PASSED_OVER


def test_a_file_of_confluents():
    settings, taken = checked({}, properties(typical("confluent")), PATH)
    assert taken.problems.found == []
    assert {name: one.protocol for name, one in settings.listeners.items()} == {
        "BROKER": SecurityProtocol.SASL_SSL,
        "CLIENTS": SecurityProtocol.SASL_SSL,
    }
    assert settings.listeners["CLIENTS"].mechanisms == ("SCRAM-SHA-512", "PLAIN")
    assert settings.inter_broker == "BROKER"
    assert (settings.default_replication_factor, settings.access.super_users) == (3, {"User:admin", "User:b"})
    assert taken.lake == {
        "num.partitions": "6",
        "min.insync.replicas": "1",
        "auto.create.topics.enable": "false",
        "log.retention.hours": "48",
    }
    assert "s3cret" not in taken.passed_over() + "".join(row.value for row in taken.rows)


def test_a_file_of_strimzis(monkeypatch):
    monkeypatch.setenv("CERTS_STORE_PASSWORD", "s3cret")
    settings, taken = checked({}, properties(typical("strimzi")), PATH)
    assert taken.problems.found == []
    assert list(settings.listeners) == ["REPLICATION-9091", "PLAIN-9092", "TLS-9093"]
    replication = settings.listeners["REPLICATION-9091"].tls
    assert (replication.keystore_password, replication.client_auth) == ("s3cret", ClientAuth.REQUIRED)
    assert settings.access.super_users == {
        "User:CN=my-cluster-kafka,O=io.strimzi",
        "User:CN=my-cluster-entity-topic-operator,O=io.strimzi",
    }
    of_controller = [row for row in taken.rows if row.key.startswith("listener.name.controlplane")]
    assert {row.why for row in of_controller} == {"the listener CONTROLPLANE-9090 is not one of this broker's"}


# --- single keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        ("zookeeper.ssl.protocol=x", KeyOutcome.PASSED_OVER),
        ("listener.name.plaintext.max.connections=1", KeyOutcome.PASSED_OVER),
        ("principal.builder.class=com.example.Mine", KeyOutcome.PASSED_OVER),
        ("com.example.reporter.url=x", KeyOutcome.PASSED_OVER),
        ("offsets.topic.num.partitions=50", KeyOutcome.PASSED_OVER),
        ("log.roll.hours=1", KeyOutcome.LAKE),
        ("compression.type=lz4", KeyOutcome.LAKE),
        ("log.message.timestamp.type=LogAppendTime", KeyOutcome.LAKE),
        ("delete.topic.enable=false", KeyOutcome.USED),
        ("retention.ms=1", KeyOutcome.WRONG),
        ("num.partition=1", KeyOutcome.WRONG),
        ("num.partitions=many", KeyOutcome.WRONG),
        ("max.connections=many", KeyOutcome.WRONG),
        ("authorizer.class.name=com.example.Mine", KeyOutcome.WRONG),
        ("process.roles=controller", KeyOutcome.WRONG),
    ],
)
def test_the_fate_of_a_key(text, fate):
    assert list(fates(text).values()) == [fate]


def test_milliseconds_come_before_minutes_and_hours():
    text = "log.retention.hours=1\nlog.retention.ms=5\nlog.roll.hours=2"
    taken = take(properties(text), PATH)
    assert taken.lake == {"log.retention.ms": "5", "log.roll.hours": "2"}
    assert [row.why for row in taken.rows if row.key == "log.retention.hours"] == ["log.retention.ms comes before it"]


def test_values_that_mean_no_bound():
    settings = settings_of(given_by_file(properties("connections.max.idle.ms=-1\nqueued.max.request.bytes=-1"), PATH))
    assert settings.bounds.idle_s > 1e8
    assert settings.bounds.queued_max_bytes == 134_217_728
    assert settings_of(given_by_file({"broker.id": "-1"}, PATH)).id is None


@pytest.mark.parametrize(("protocol", "found"), [("SSL", "IN"), ("PLAINTEXT", "OUT"), ("", None)])
def test_brokers_ask_each_other_at_the_listener_of_their_protocol(protocol, found):
    text = (
        "listeners=OUT://:1,IN://:2\nlistener.security.protocol.map=OUT:PLAINTEXT,IN:SSL\n"
        f"ssl.keystore.location=b.pem\nsecurity.inter.broker.protocol={protocol}"
    )
    assert settings_of(given_by_file(properties(text), PATH)).inter_broker == found


def test_one_error_names_all_that_is_wrong():
    said = refusal(
        "listeners=SSL://:1,SASL_PLAINTEXT://:2\nsasl.enabled.mechanisms=GSSAPI\nmax.connections=many\n"
        "broker.id=x\nsuper.users=admin\nnum.partition=3"
    )
    assert said.startswith("6 things are wrong with the broker's settings:\n- ")
    for one in ("needs a certificate", "no GSSAPI", "max.connections is a whole", "broker.id is a", "Write User:NAME"):
        assert one in said
    assert "Do you mean num.partitions?" in said


def test_a_command_names_all_that_is_wrong_with_names_and_values(tmp_path):
    (tmp_path / PATH).write_text("num.partition=3\nmax.connections=many\nlog.retention.ms=x\nlog.dirs=/tmp")
    said = refused(2, "--lake", str(tmp_path), "broker", "start", "--config", str(tmp_path / PATH))
    assert "3 things are wrong" in said
    for one in ("Do you mean num.partitions?", "max.connections is a whole number", "log.retention.ms: Not a number"):
        assert one in said


# --- the lake's keys ---------------------------------------------------------------------------------------


def test_the_lake_takes_what_it_does_not_set(caplog):
    with Lake("memory://taken") as lake:
        lake.alter_config({"num.partitions": "6"})
        take_lake_keys(lake, {"num.partitions": "3", "log.retention.hours": "1", "log.segment.bytes": "1073741824"})
        assert lake.config().overrides == {"log.retention.ms": "3600000", "num.partitions": "6"}
    assert "num.partitions=6 (the file has 3). 'tidelog lake alter' changes them." in caplog.text


def test_a_broker_that_starts_again_says_nothing_of_what_the_lake_took(caplog):
    with Lake("memory://again") as lake:
        for _ in range(2):
            take_lake_keys(lake, {"log.retention.hours": "1"})
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_follower_takes_nothing(caplog):
    with Lake("memory://takes-nothing") as lake:
        lake.ensure_lake()
        lake.follow(Follows("memory://source"))
        take_lake_keys(lake, {"num.partitions": "3"})
        assert lake.config().overrides == {}
    assert "whose configuration counts, and not: num.partitions=3" in caplog.text


# --- the command -------------------------------------------------------------------------------------------


def test_check_config_shows_what_becomes_of_each_key(tmp_path):
    file = tmp_path / PATH
    file.write_text("broker.id=1\nnum.partitions=3\nlog.dirs=/tmp\nssl.keystore.password=s3cret")
    assert answer("broker", "check-config", str(file)) == {
        "file": str(file),
        "problems": [],
        "keys": [
            {"key": "broker.id", "value": "1", "becomes": "used", "why": BROKER_KEYS["broker.id"].doc},
            {
                "key": "num.partitions",
                "value": "3",
                "becomes": "the lake's",
                "why": LakeConfig.KEYS["num.partitions"].doc,
            },
            {"key": "log.dirs", "value": "/tmp", "becomes": "passed over", "why": PASSED_OVER["log.dirs"]},
            {
                "key": "ssl.keystore.password",
                "value": "(hidden)",
                "becomes": "used",
                "why": BROKER_KEYS["ssl.keystore.password"].doc,
            },
        ],
    }
    table = done("broker", "check-config", str(file)).stdout
    assert "passed over" in table
    assert "s3cret" not in table


def test_check_config_ends_with_all_that_is_wrong(tmp_path):
    (tmp_path / PATH).write_text("num.partition=3\nmax.connections=many")
    result = cli("broker", "check-config", str(tmp_path / PATH))
    assert result.exit_code == 2
    assert [line.split()[2] for line in result.stdout.splitlines()[1:] if "num.partition=" not in line][:1] == ["wrong"]
    assert "2 things are wrong" in result.stderr
