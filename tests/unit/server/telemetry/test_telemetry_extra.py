"""`--otlp` where the extra `otel` is not installed: each command that takes it says what to install."""

import pytest
from support.cli_calls import lake_address, refused

from tidelog.log.base import extras
from tidelog.log.lake import Lake

COMMANDS = {
    "broker": ("broker", "start", "--lake", "{lake}"),
    "registry": ("registry", "start", "--lake", "{lake}"),
    "console": ("console", "--lake", "{lake}"),
    "connect": ("connect", "start", "--lake", "{lake}"),
    "mirror": ("mirror", "start", "--from", "{lake}", "--to", "{lake}-copy"),
    "metrics": ("metrics", "--listener", "127.0.0.1:0", "--lake", "{lake}"),
    "maintain": ("maintain", "--every", "5m", "--lake", "{lake}"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_without_the_extra_says_what_to_install(monkeypatch, command):
    there = extras._is_there
    monkeypatch.setattr(extras, "_is_there", lambda module: "opentelemetry" not in module and there(module))
    lake = lake_address()
    with Lake(lake) as made:
        made.create_topic("orders", 1)
        said = refused(1, *(word.format(lake=lake) for word in command), "--otlp", "http://127.0.0.1:4318")
    assert "opentelemetry.sdk" in said
    assert "tidelog[otel]" in said
