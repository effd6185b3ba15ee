"""A worker's listener by its file: TLS by Connect's keys, log-ins, and what is refused before it starts."""

import ssl

import httpx
from support.broker_processes import broker_command
from support.certificates import Authority
from support.cli_calls import done, refused


def test_a_worker_speaks_tls_and_has_its_clients_log_in(tmp_path):
    lake, password = tmp_path / "lake", tmp_path / "password"
    password.write_text("secret")
    done("--lake", str(lake), "topic", "create", "orders")
    for user in ("ann", "bob"):
        done("--lake", str(lake), "user", "add", user, "--password-file", str(password))
    authority = Authority(tmp_path)
    keystore = authority.issue("worker.pem")
    config = tmp_path / "worker.properties"
    config.write_text(
        "group.id=workers\nssl.keystore.location=/nowhere.pem\nsuper.users=User:ann\n"
        f"listeners.https.ssl.keystore.location={keystore}\n"
    )
    arguments = ("--listener", "127.0.0.1:0", "--config", str(config), "--authenticate")
    with broker_command(lake, *arguments, family="connect") as command:
        ready = command.ready()
        assert ready["url"].startswith("https://127.0.0.1:")
        assert ready["group"] == "workers"
        trust = ssl.create_default_context(cafile=str(authority.path))
        with httpx.Client(base_url=ready["url"], verify=trust, timeout=None) as client:
            assert client.get("/connectors").status_code == 401
            assert client.get("/connectors", auth=("ann", "other")).status_code == 401
            assert client.get("/connectors", auth=("bob", "secret")).status_code == 403
            assert client.get("/", auth=("bob", "secret")).json()["version"]
            assert client.get("/connectors", auth=("ann", "secret")).json() == []
        assert command.stop() == 0


def test_files_that_are_wrong_are_named_before_a_worker_starts(tmp_path):
    keystore, config = tmp_path / "none.pem", tmp_path / "worker.properties"
    keystore.write_text("nothing")
    start = ("--lake", str(tmp_path / "lake"), "connect", "start", "--listener", "127.0.0.1:0", "--config", str(config))
    config.write_text(f"listeners.https.ssl.keystore.location={keystore}\n")
    assert f"{keystore} has no certificate that can be read" in refused(1, *start)
    config.write_text("listeners.https.ssl.keystore.locaton=x\n")
    assert "ssl.keystore.location" in refused(2, *start)
    config.write_text("super.users=ann\n")
    assert "User:NAME" in refused(2, *start)
