"""An unmodified confluent-kafka program with Avro serializers at a broker and its registry in one process."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.broker_processes import broker_command
from support.certificates import Authority
from support.cli_calls import done

from tidelog.log.lake import Lake
from tidelog.schema_registry import SchemaRegistryClient
from tidelog.schema_registry.avro import AvroDeserializer

PROGRAM = Path(__file__).with_name("orders_program.py")
REGISTRY = ("--registry", "127.0.0.1:0")


def ran(listener, address, **settings):
    given = json.dumps({"kafka": {}, "registry": {}, **settings})
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), listener, address, "orders", given],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def worked(answer):
    assert answer.returncode == 0, answer.stderr[-3000:]
    return answer.stdout.splitlines()


def test_a_program_of_confluent_kafka_with_avro(tmp_path):
    done("--lake", str(tmp_path / "lake"), "topic", "create", "orders", "--partitions", "2")
    with broker_command(tmp_path / "lake", "--listener", "127.0.0.1:0", *REGISTRY) as command:
        ready = command.ready()
        assert worked(ran(ready["listener"], ready["registry"])) == ["50 orders, versions [1]"]
        assert command.stop(signal.SIGTERM) == 0
    # What it wrote is read from the lake, while neither broker nor registry runs.
    with Lake(tmp_path / "lake") as lake, SchemaRegistryClient({"lake": lake}) as client:
        read = AvroDeserializer(client)
        assert sorted(read(value)["id"] for value in _values(lake)) == list(range(50))


def _values(lake):
    topic = lake.topic("orders")
    return [
        value
        for partition, (start, end) in topic.offsets().items()
        for batch in topic.read(partition, start, end)
        for value in batch.column("value").to_pylist()
    ]


@pytest.fixture
def secured(tmp_path):
    """A lake with two users: ann may produce and consume orders, bob may only consume them."""
    lake = str(tmp_path / "lake")
    done("--lake", lake, "topic", "create", "orders", "--partitions", "2")
    for user in ("ann", "bob"):
        (tmp_path / user).write_text(f"{user}-pw")
        done("--lake", lake, "user", "add", user, "--password-file", str(tmp_path / user))
    done("--lake", lake, "acl", "add", "--principal", "ann", "--producer", "--topic", "orders")
    for user in ("ann", "bob"):
        done("--lake", lake, "acl", "add", "--principal", user, "--consumer", "--topic", "orders", "--group", "orders")
    authority = Authority(tmp_path)
    keystore = authority.issue("broker.pem")
    config = tmp_path / "broker.properties"
    config.write_text(
        f"listeners=SASL_SSL://127.0.0.1:0\nssl.keystore.location={keystore}\nssl.truststore.location={authority.path}\n"
    )
    with broker_command(tmp_path / "lake", "--config", str(config), *REGISTRY) as command:
        yield command.ready(), str(authority.path)
        assert command.stop(signal.SIGTERM) == 0


def of(user, ca, password=None):
    password = password or f"{user}-pw"
    kafka = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": ca,
    }
    return {"kafka": kafka, "registry": {"ssl.ca.location": ca, "basic.auth.user.info": f"{user}:{password}"}}


def test_the_program_logs_in_to_both_and_has_the_rights_of_its_topic(secured):
    ready, ca = secured
    listener, registry = ready["listener"], ready["registry"]
    # One that may only consume registers nothing.
    refused = ran(listener, registry, **of("bob", ca))
    assert refused.returncode != 0
    assert "40301" in refused.stderr
    assert worked(ran(listener, registry, **of("ann", ca))) == ["50 orders, versions [1]"]
    conf = {"url": registry, "ssl.ca.location": ca}
    with SchemaRegistryClient({**conf, "basic.auth.user.info": "bob:bob-pw"}) as bob:
        assert bob.get_latest_version("orders-value").schema_id == 1
    wrong = ran(listener, registry, kafka=of("ann", ca)["kafka"], registry=of("ann", ca, "other")["registry"])
    assert "401" in wrong.stderr
