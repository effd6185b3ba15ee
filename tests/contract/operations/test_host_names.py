"""Every server of HTTP refuses a stranger's name for it (DNS rebinding), and takes those that its options give."""

import httpx
import pytest
from support.broker_processes import broker_command
from support.cli_calls import done

FREE = ("--listener", "127.0.0.1:0")
NAMED = ("--host-name", "lake.example")


@pytest.mark.parametrize(
    ("family", "options", "path", "address"),
    [
        ("console", (*FREE, *NAMED), "/api/topics", "url"),
        ("registry", (*FREE, *NAMED), "/subjects", "url"),
        ("connect", (*FREE, *NAMED, "--advertised", "worker.example:8083"), "/connectors", "url"),
        (
            "broker",
            (*FREE, "--registry", "127.0.0.1:0", "--registry-host-name", "lake.example"),
            "/subjects",
            "registry",
        ),
    ],
)
def test_a_strangers_name_is_refused(tmp_path, family, options, path, address):
    lake = tmp_path / "lake"
    done("--lake", str(lake), "topic", "create", "orders")
    with broker_command(lake, *options, family=family) as command:
        with httpx.Client(base_url=command.ready()[address].rstrip("/"), timeout=None) as client:

            def status(host, path=path, method="GET", **more):
                return client.request(method, path, headers={"host": host}, **more).status_code

            assert status("evil.example") == 403
            assert status("evil.example", method="POST", json={"schema": '"int"'}) == 403
            assert status("lake.example:8080") == 200
            assert status("registry:8081") == 200
            assert client.get(path).status_code == 200
            assert status("evil.example", "/healthz") == 200
            assert status("worker.example") == (200 if family == "connect" else 403)
        assert command.stop() == 0
    assert any("evil.example" in line for line in command.log)
