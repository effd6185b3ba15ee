"""Habits of Kafka's command-line tools, and what tidelog's commands say instead."""

from collections.abc import Iterator, Sequence
from typing import Final

# {command: {option of Kafka's tool: what to write}}; "" is any command.
_INSTEAD: Final = {
    "topic": {
        "--list": "'tidelog topic list' lists topics.",
        "--create": "'tidelog topic create NAME --partitions N' creates a topic.",
        "--describe": "'tidelog topic describe NAME' describes a topic.",
        "--alter": "'tidelog topic alter NAME --partitions N' alters a topic, --config KEY=VALUE its configuration.",
        "--delete": "'tidelog topic delete NAME' deletes a topic.",
        "--topic": "A topic's name is an argument, as in 'tidelog topic describe NAME'.",
        "--add-config": "'tidelog topic alter NAME --config KEY=VALUE' sets a key.",
    },
    "group": {
        "--list": "'tidelog group list' lists groups.",
        "--describe": "'tidelog group describe NAME' describes a group.",
        "--reset-offsets": "'tidelog group reset-offsets NAME --topic TOPIC --to-earliest' resets a group's offsets.",
        "--delete": "'tidelog group delete NAME' deletes a group.",
        "--delete-offsets": "'tidelog group delete-offsets NAME --topic TOPIC' deletes a group's offsets.",
        "--group": "A group's name is an argument, as in 'tidelog group describe NAME'.",
    },
    "consume": {
        "--topic": "The topic is an argument: 'tidelog consume NAME'.",
        "--from-beginning": "'tidelog consume NAME' begins at the beginning; '-o end' begins at the end.",
        "--max-messages": "'-c N' stops after N records.",
        "--timeout-ms": "'-e' stops at the end of the topic.",
        "--property": "'-f FORMAT' says how records are printed, '-K DELIM' prints keys, too.",
        "--formatter-property": "'-f FORMAT' says how records are printed, '-K DELIM' prints keys, too.",
    },
    "produce": {
        "--topic": "The topic is an argument: 'tidelog produce NAME'.",
        "--property": "'-K DELIM' divides a line into key and value.",
        "--reader-property": "'-K DELIM' divides a line into key and value.",
    },
    "acl": {
        "--list": "'tidelog acl list' lists ACLs.",
        "--add": "'tidelog acl add --principal User:NAME --operation read --topic NAME' adds an ACL.",
        "--remove": "'tidelog acl remove' takes the same options as 'tidelog acl add'.",
        "--allow-principal": "'--principal User:NAME' names the user that is allowed, or refused with --deny.",
    },
    "transaction": {
        "--transactional-id": "The id is an argument, as in 'tidelog transaction describe ID'.",
    },
    "lake": {"--entity-type": "'tidelog lake alter --config KEY=VALUE' changes what counts for all topics."},
    "": {
        "--bootstrap-server": "{lake}",
        "--bootstrap-servers": "{lake}",
        "--bootstrap-controller": "{lake}",
        "--broker-list": "{lake}",
        "--zookeeper": "{lake}",
        "--replication-factor": "The lake's store keeps the copies of records: leave --replication-factor out.",
        "--command-config": "{store}",
        "--consumer.config": "{store}",
        "--consumer-config": "{store}",
        "--producer.config": "{store}",
        "--producer-config": "{store}",
    },
}
_SENTENCES: Final = {
    "{lake}": "Commands need no broker: '--lake ADDRESS' or the environment's TIDELOG_LAKE names the lake itself.",
    "{store}": "Commands are no clients of brokers: '--store-option KEY=VALUE' says how to reach the lake's store.",
}
# Names of Kafka's tools, and words that come near: the command here.
_NAMES: Final = {
    "topics": "topic",
    "kafka-topics": "topic",
    "groups": "group",
    "consumer-groups": "group",
    "kafka-consumer-groups": "group",
    "acls": "acl",
    "kafka-acls": "acl",
    "configs": "lake",
    "kafka-configs": "lake",
    "transactions": "transaction",
    "kafka-transactions": "transaction",
    "console-consumer": "consume",
    "kafka-console-consumer": "consume",
    "consumer": "consume",
    "console-producer": "produce",
    "kafka-console-producer": "produce",
    "producer": "produce",
    "users": "user",
    "brokers": "broker",
}


def hints(arguments: Sequence[str]) -> list[str]:
    """What to write instead of Kafka's words in a command line that was refused; nothing where there are none."""
    return list(dict.fromkeys(_SENTENCES.get(said, said) for said in _found(arguments) if said))


def _found(arguments: Sequence[str]) -> Iterator[str]:
    words = [word for word in arguments if not word.startswith("-")]
    command = next((word for word in words if word in _INSTEAD or word.removesuffix(".sh") in _NAMES), "")
    bare = command.removesuffix(".sh")
    if bare in _NAMES and command not in _INSTEAD:
        command = _NAMES[bare]
        yield f"The command is 'tidelog {command}'."
    for word in arguments:
        option = word.partition("=")[0]
        yield _INSTEAD.get(command, {}).get(option, "") or _INSTEAD[""].get(option, "")
