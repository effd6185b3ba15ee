"""Typical files of Kafka's brokers start a broker as they are, but for ports, and clients use it."""

import re
import socket
import ssl

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from support.broker_processes import broker_command
from support.certificates import Authority
from support.java_stores import PASSWORD, jks, pkcs12, trusting
from support.kafka_files import typical

from tidelog.log.lake import Lake

WAIT_S = 60


def on_free_ports(text):
    """A file with loopback addresses and free ports in place of those in it; {port in it: the free one}."""
    ports = {}
    for port in sorted(set(re.findall(r":(909\d)\b", text))):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports[port] = free.getsockname()[1]
    text = re.sub(r"(listeners=.*)", lambda found: re.sub(r"://(0\.0\.0\.0)?:", "://127.0.0.1:", found[1]), text)
    return re.sub(r":(909\d)\b", lambda found: f":{ports[found[1]]}", text), ports


@pytest.fixture
def stores(tmp_path):
    """An authority, and the files that the typical ones name."""
    authority = Authority(tmp_path)
    keys = pkcs12(tmp_path / "cluster.keystore.p12", authority.issue("broker.pem"))
    trusting(tmp_path / "cluster.truststore.p12", authority.path)
    jks(tmp_path / "keystore.jks", keys)
    trusting(tmp_path / "truststore.jks", authority.path, "JKS")
    return authority


@pytest.mark.parametrize("name", ["kraft", "kraft_broker", "zookeeper", "confluent", "strimzi"])
def test_a_typical_file_starts_a_broker(tmp_path, stores, name):
    text, ports = on_free_ports(typical(name, folder=str(tmp_path), password=PASSWORD))
    path = tmp_path / "server.properties"
    path.write_text(text)
    env = {"CERTS_STORE_PASSWORD": PASSWORD}
    with broker_command(tmp_path / "lake", "--config", str(path), env=env) as command:
        command.ready()
        if name == "confluent":
            trusts = ssl.create_default_context(cafile=str(stores.path))
            with (
                socket.create_connection(("127.0.0.1", ports["9092"]), WAIT_S) as plain,
                trusts.wrap_socket(plain, server_hostname="localhost") as secured,
            ):
                assert secured.version() == "TLSv1.3"
        elif name == "strimzi":  # its ACLs allow nothing to a client without a name
            tls = {"security.protocol": "ssl", "ssl.ca.location": str(stores.path)}
            admin = AdminClient({"bootstrap.servers": f"localhost:{ports['9093']}", **tls})
            assert list(admin.list_topics(timeout=WAIT_S).brokers) == [0]
        else:
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{ports['9092']}"})
            (made,) = admin.create_topics([NewTopic("orders")]).values()
            made.result(WAIT_S)
        assert command.stop() == 0
    (said,) = [line for line in command.log if "WARNING" in line]
    assert re.search(
        r"Passed over: \d+ of the \d+ keys of .*/server.properties\. .*log\.dirs.*: the lake's address", said
    )
    assert PASSWORD not in "\n".join(command.log)
    with Lake(tmp_path / "lake", create=False) as lake:
        assert lake.config().overrides.get("log.retention.ms") == ("172800000" if name == "confluent" else None)
