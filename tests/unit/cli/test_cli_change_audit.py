"""Changes by commands are in the lake's audit, as those over brokers are."""

import json
import logging

import pytest
import typer
from support.cli_calls import cli, done, lake_address, open_lake, refused

from tidelog.cli.main import app
from tidelog.cli.records.opening import RegistryOptions
from tidelog.commands.change_audit import PRINCIPAL_VARIABLE, audited, principal
from tidelog.commands.options import Session
from tidelog.log.base.errors import OutcomeUnknownError

# Commands that only look, that serve until they are stopped, or that write records.
NO_CHANGES = {
    *("acl export", "acl list", "broker check-config", "broker describe", "broker list", "broker start"),
    *("connect list", "connect plugins", "connect start", "connect status", "console", "consume", "demo", "doctor"),
    *("cut describe", "cut list", "lake branch", "lake branches", "lake diff"),
    *("group describe", "group list", "lake describe", "maintain", "metrics", "mirror compare", "mirror start"),
    *("mirror status", "perf consume", "perf produce", "produce", "producer list", "quota list", "registry start"),
    *("schema check", "schema list", "schema show", "tenant list", "topic describe", "topic list"),
    *("transaction describe", "transaction list", "user list"),
}
CHANGES = {
    *(
        "acl add",
        "acl remove",
        "check",
        "cut create",
        "cut delete",
        "forget",
        "group alter",
        "group delete",
        "group delete-offsets",
        "group reset-offsets",
        "lake rewind",
        "topic rewind",
    ),
    *("lake alter", "mirror promote", "quota remove", "quota set", "schema config", "schema delete"),
    *("schema register", "tenant alter", "tenant create", "tenant remove", "topic alter", "topic create"),
    *("topic delete", "topic delete-records", "transaction abort", "user add", "user remove"),
}


@pytest.fixture
def lake():
    address = lake_address()
    with open_lake(address) as opened:
        opened.alter_config({"audit.topic": "audit"})
    return address


def lines(address):
    """The lines of the audit's topic, without what differs from run to run."""
    with open_lake(address) as opened:
        if "audit" not in opened.topics():
            return []
        found = [json.loads(v) for b in opened.topic("audit").read(0) for v in b.column("value").to_pylist()]
    return [{key: value for key, value in one.items() if key not in ("time_ms", "host")} for one in found]


def commands(group, prefix=""):
    """{words of a command: its function}"""
    found = {}
    for one in group.registered_commands:
        found[f"{prefix}{one.name}"] = one.callback
    for one in group.registered_groups:
        found |= commands(one.typer_instance, f"{prefix}{one.name} ")
    return found


def test_every_command_is_known_to_change_something_or_not():
    flags = {name: function.changes for name, function in commands(app).items()}
    assert {name for name, changes in flags.items() if changes} == CHANGES
    assert {name for name, changes in flags.items() if not changes} == NO_CHANGES


def test_a_change_names_who_made_it_and_what(lake):
    env = {PRINCIPAL_VARIABLE: "ann"}
    done("topic", "create", "orders", "--partitions", "2", "--config", "retention.ms=5", "--lake", lake, env=env)
    who = {"principal": "User:ann", "listener": "", "client_id": "tidelog"}
    assert lines(lake) == [
        {
            "event": "changed",
            **who,
            "api": "tidelog topic create",
            "arguments": {"name": "orders", "config": ["retention.ms=5"], "partitions": 2},
            "outcome": "done",
        }
    ]


def test_each_kind_of_change_is_there(lake, tmp_path):
    password = tmp_path / "password"
    password.write_text("s3cret-word")
    for words in (
        ("lake", "alter", "--config", "log.retention.ms=5"),
        ("topic", "create", "orders"),
        ("topic", "alter", "orders", "--partitions", "3"),
        ("acl", "add", "--principal", "User:ann", "--operation", "read", "--topic", "orders"),
        ("user", "add", "ann", "--password-file", str(password)),
        ("quota", "set", "--user", "ann", "producer_byte_rate=1024"),
        ("topic", "delete", "orders", "--yes"),
    ):
        done(*words, "--lake", lake)
    assert [one["api"].removeprefix("tidelog ") for one in lines(lake)] == [
        *("lake alter", "topic create", "topic alter", "acl add", "user add", "quota set", "topic delete")
    ]
    assert "s3cret" not in json.dumps(lines(lake))
    assert str(password) not in json.dumps(lines(lake))


def test_settings_of_schemas_are_a_change_when_they_are_set_and_none_when_they_are_shown(lake):
    done("schema", "config", "--no-normalize", "--lake", lake)
    done("schema", "config", "--lake", lake)
    assert [one["arguments"] for one in lines(lake)] == [{"normalize": False}]


def test_what_was_refused_or_only_looked_at_is_not_there(lake):
    refused(1, "topic", "create", "bad name", "--lake", lake)
    done("topic", "list", "--lake", lake)
    assert lines(lake) == []


def test_a_plan_is_no_change(lake):
    done("topic", "create", "orders", "--lake", lake)
    cli("forget", "--topic", "orders", "--key", "customer-17", "--dry-run", "--lake", lake)
    assert [one["api"] for one in lines(lake)] == ["tidelog topic create"]
    done("forget", "--topic", "orders", "--key", "customer-17", "--lake", lake)
    *_, forgotten = lines(lake)
    assert (forgotten["api"], forgotten["arguments"]["keys"]) == ("tidelog forget", "(hidden)")


@pytest.mark.parametrize("address", [None, "the lake"])
def test_a_change_of_a_registry_elsewhere_is_none_of_the_lakes(lake, address):
    where = RegistryOptions(registry="http://127.0.0.1:1")
    audited(Session(address and lake), "tidelog schema delete", {"where": where}, lambda: None)
    assert lines(lake) == []


def test_an_outcome_that_is_unknown_is_there_as_one(lake):
    def unknown():
        raise OutcomeUnknownError("no answer", request_id="r")

    with pytest.raises(OutcomeUnknownError):
        audited(Session(lake), "tidelog topic create", {"name": "a"}, unknown)
    assert [one["outcome"] for one in lines(lake)] == ["unknown"]


def test_a_command_that_failed_by_its_exit_code_is_not_there(lake):
    def failed():
        raise typer.Exit(1)

    with pytest.raises(typer.Exit):
        audited(Session(lake), "tidelog forget", {}, failed)
    assert lines(lake) == []


def test_without_a_topic_the_log_has_it(caplog):
    address = lake_address()
    with caplog.at_level(logging.INFO, "tidelog.audit"):
        done("topic", "create", "orders", "--lake", address)
    (line,) = [one.getMessage() for one in caplog.records if one.name == "tidelog.audit"]
    assert json.loads(line)["api"] == "tidelog topic create"
    with open_lake(address) as opened:
        assert opened.topics() == ["orders"]


def test_a_topic_that_takes_nothing_fails_no_change(lake, caplog):
    with open_lake(lake) as opened:
        opened.create_topic("audit", 1, {"max.message.bytes": "1"})
    done("topic", "create", "orders", "--lake", lake)
    assert "The change is done, and the audit's topic does not have it" in caplog.text


def test_who_it_is(monkeypatch):
    monkeypatch.delenv(PRINCIPAL_VARIABLE, raising=False)
    monkeypatch.setattr("getpass.getuser", lambda: "bo")
    assert principal() == "User:bo"
    monkeypatch.setenv(PRINCIPAL_VARIABLE, "Service:nightly")
    assert principal() == "Service:nightly"
