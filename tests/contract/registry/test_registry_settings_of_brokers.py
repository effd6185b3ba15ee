"""A registry in a broker's process, and one that has clients log in and speaks TLS, by the settings of brokers."""

import signal
import ssl

import httpx
import pytest
from support.broker_processes import api_versions, broker_command, connect
from support.certificates import Authority
from support.cli_calls import done, refused

INT = {"schema": '"int"'}
FREE = ("--listener", "127.0.0.1:0")


@pytest.fixture
def lake(tmp_path):
    password = tmp_path / "password"
    password.write_text("secret")
    done("--lake", str(tmp_path / "lake"), "topic", "create", "orders")
    done("--lake", str(tmp_path / "lake"), "user", "add", "ann", "--password-file", str(password))
    done("--lake", str(tmp_path / "lake"), "acl", "add", "--principal", "ann", "--producer", "--topic", "orders")
    return tmp_path / "lake"


def test_a_broker_serves_schemas_beside_records(tmp_path):
    with broker_command(tmp_path / "lake", *FREE, "--registry", "127.0.0.1:0") as command:
        ready = command.ready()
        assert ready["registry"].startswith("http://127.0.0.1:")
        answer = httpx.post(f"{ready['registry']}/subjects/orders-value/versions", json=INT, timeout=None)
        assert answer.json()["id"] == 1
        with connect(ready["listener"]) as client:
            assert api_versions(client) > 0
        assert command.stop(signal.SIGTERM) == 0
    assert done("--lake", str(tmp_path / "lake"), "schema", "list").stdout == "orders-value\n"


def test_a_broker_whose_clients_log_in_has_those_of_its_registry_do_so(lake, tmp_path):
    authority = Authority(tmp_path)
    keystore = authority.issue("broker.pem")
    config = tmp_path / "broker.properties"
    config.write_text(
        f"listeners=SASL_SSL://127.0.0.1:0\nssl.keystore.location={keystore}\nssl.truststore.location={authority.path}\n"
    )
    with broker_command(lake, "--config", str(config), "--registry", "127.0.0.1:0") as command:
        url = command.ready()["registry"]
        assert url.startswith("https://")
        trust = ssl.create_default_context(cafile=str(authority.path))
        with httpx.Client(base_url=url, verify=trust, timeout=None) as client:
            assert client.post("/subjects/orders-value/versions", json=INT).status_code == 401
            assert client.get("/subjects", auth=("ann", "other")).status_code == 401
            # A client that may produce to a topic registers its schemas, and no other ones.
            assert client.post("/subjects/orders-value/versions", json=INT, auth=("ann", "secret")).json()["id"] == 1
            assert client.post("/subjects/other-value/versions", json=INT, auth=("ann", "secret")).status_code == 403
        assert command.stop(signal.SIGTERM) == 0


def test_what_is_no_certificate_is_refused(tmp_path):
    keystore = tmp_path / "none.pem"
    keystore.write_text("nothing")
    config = tmp_path / "registry.properties"
    config.write_text(f"ssl.keystore.location={keystore}\n")
    said = refused(1, "--lake", str(tmp_path / "lake"), "registry", "start", "--config", str(config))
    assert f"{keystore} has no certificate that can be read" in said
