"""`tidelog console` as a process: its options, TLS, log-ins by the settings of brokers, metrics, and its end."""

import signal
import ssl
import subprocess

import httpx
import pytest
from support.broker_processes import broker_command, metrics
from support.certificates import Authority
from support.cli_calls import done, refused

FREE = ("--listener", "127.0.0.1:0")


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    password = tmp_path / "password"
    password.write_text("secret")
    done("--lake", str(folder), "topic", "create", "orders")
    done("--lake", str(folder), "topic", "create", "payments")
    for user in ("ann", "root"):
        done("--lake", str(folder), "user", "add", user, "--password-file", str(password))
    done("--lake", str(folder), "acl", "add", "--principal", "ann", "--operation", "Read", "--topic", "orders")
    return folder


def names(answer):
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()["topics"]]


def test_a_console_for_all_says_its_address_and_ends_when_asked(lake):
    told = ("--read-only", "--host-name", "lake.example")
    with broker_command(lake, *FREE, *told, family="console", start=subprocess.Popen) as command:
        ready = command.ready()
        assert ready["lake"] == f"file://{lake}"
        with httpx.Client(base_url=ready["url"], timeout=None) as client:
            assert client.get("/api/session").json()["read_only"] is True
            # Clients that are not logged in may do what no ACL is about, as at brokers.
            assert names(client.get("/api/topics", headers={"host": "lake.example"})) == ["payments"]
            assert client.get("/api/topics", headers={"host": "other.example"}).status_code == 403
        assert command.stop(signal.SIGTERM) == 0
    assert command.log[-1].endswith("Console stopped")


def test_settings_of_brokers_give_tls_log_ins_and_super_users(lake, tmp_path):
    authority = Authority(tmp_path)
    config = tmp_path / "broker.properties"
    config.write_text(
        "super.users=User:root\nssl.keystore.location=/nowhere.pem\n"
        f"listener.name.console.ssl.keystore.location={authority.issue('console.pem')}\n"
    )
    options = ("--config", str(config), "--authenticate", "--metrics", "127.0.0.1:0")
    with broker_command(lake, *FREE, *options, family="console") as command:
        ready = command.ready()
        assert ready["url"].startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=str(authority.path))
        with httpx.Client(base_url=ready["url"], verify=trust, timeout=None) as client:
            asked = client.get("/api/topics")
            assert (asked.status_code, asked.headers["www-authenticate"][:5]) == (401, "Basic")
            assert names(client.get("/api/topics", auth=("ann", "secret"))) == ["orders"]
            assert names(client.get("/api/topics", auth=("root", "secret"))) == ["orders", "payments"]
        found = metrics(ready["metrics"])
        assert found["tidelog_console_requests_total", ("GET /api/topics", "401")] == 1
        assert found["tidelog_console_requests_total", ("GET /api/topics", "200")] == 2
        assert found["tidelog_console_looks_total", ()] >= 1
        for path in ("healthz", "readyz"):
            assert httpx.get(f"http://{ready['metrics']}/{path}", timeout=None).json() == {"status": "ok"}
        assert command.stop(signal.SIGINT) == 0
    assert not any("passwords and tokens come to it as they are" in line for line in command.log)


def test_without_tls_log_ins_are_warned_of(lake):
    with broker_command(lake, *FREE, "--authenticate", family="console") as command:
        assert httpx.get(f"{command.ready()['url']}api/topics", timeout=None).status_code == 401
        command.stop()
    assert any("The console has no TLS" in line for line in command.log)


def test_what_can_not_be_served_is_said(lake, tmp_path):
    start = ("--lake", str(lake), "console", *FREE)
    assert "none.properties" in refused(2, *start, "--config", str(tmp_path / "none.properties"))
    config = tmp_path / "broker.properties"
    config.write_text("ssl.client.auht=required\n")
    assert "Do you mean ssl.client.auth?" in refused(2, *start, "--config", str(config))
    keystore = tmp_path / "none.pem"
    keystore.write_text("nothing")
    config.write_text(f"ssl.keystore.location={keystore}\n")
    assert f"{keystore} has no certificate that can be read" in refused(1, *start, "--config", str(config))
    assert "no.such.host" in refused(1, "--lake", str(lake), "console", "--listener", "no.such.host:1")
    none = tmp_path / "none"
    assert str(none) in refused(1, "--lake", str(none), "console", *FREE)
    assert not none.exists()
