"""Words of Kafka's tools in a command line: the refusal says what to write here."""

import json

import pytest
from support.cli_calls import cli

HABITS = [
    (("topic", "--list"), "'tidelog topic list' lists topics."),
    (("topic", "--create", "--topic", "orders"), "'tidelog topic create NAME --partitions N' creates a topic."),
    (("topic", "--describe"), "'tidelog topic describe NAME'"),
    (("topic", "create", "--topic", "orders"), "A topic's name is an argument"),
    (("topic", "create", "o", "--replication-factor=3"), "leave --replication-factor out"),
    (("group", "--describe", "--group", "g"), "'tidelog group describe NAME' describes a group."),
    (("consume", "--topic", "orders"), "The topic is an argument: 'tidelog consume NAME'."),
    (("consume", "orders", "--from-beginning"), "begins at the beginning"),
    (("consume", "orders", "--max-messages", "5"), "'-c N' stops after N records."),
    (("produce", "--topic", "orders"), "The topic is an argument: 'tidelog produce NAME'."),
    (("topic", "list", "--bootstrap-server", "localhost:9092"), "Commands need no broker: '--lake ADDRESS'"),
    (("topics", "list"), "The command is 'tidelog topic'."),
    (("kafka-topics.sh", "--list"), "'tidelog topic list' lists topics."),
    (("acl", "--add", "--allow-principal", "User:a"), "'tidelog acl add --principal User:NAME"),
]


@pytest.mark.parametrize(("words", "said"), HABITS, ids=lambda one: " ".join(one) if isinstance(one, tuple) else "")
def test_the_refusal_names_the_command(words, said):
    result = cli(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_a_document_has_the_hint_too():
    result = cli("--format", "json", "topic", "--list")
    assert "'tidelog topic list' lists topics." in json.loads(result.stderr)["error"]["message"]


def test_another_mistake_gets_no_hint():
    assert "tidelog topic list' lists" not in cli("topic", "list", "--no-such").stderr


def test_a_command_that_is_right_gets_no_hint(tmp_path):
    result = cli("topic", "create", "list", "--lake", str(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
