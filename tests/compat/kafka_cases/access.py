"""The scripts for ACLs, users and quotas, judged by what the lake then holds of them."""

from compat.kafka_cases.lakes import access
from compat.kafka_scripts import Tools

from tidelog.access.credentials import is_password
from tidelog.access.quotas import Entity, Quota


def acls(tools: Tools) -> None:
    """Add for a producer and for a consumer, list, remove."""
    tool, dora = "kafka-acls", ("--allow-principal", "User:dora")
    tools(tool, "--add", *dora, "--producer", "--topic", "guarded.", "--resource-pattern-type", "prefixed")
    tools(tool, "--add", *dora, "--consumer", "--topic", "guarded.a", "--group", "guards")
    tools(tool, "--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.9", "--topic", "guarded.a")
    added = {(acl.name, acl.principal, acl.operation.name) for acl in access(tools).acls}
    assert added >= {
        ("guarded.", "User:dora", "WRITE"),
        ("guards", "User:dora", "READ"),
        ("guarded.a", "User:eve", "ALL"),
    }
    shown = tools(tool, "--list", "--topic", "guarded.a", "--resource-pattern-type", "match")
    assert shown.count("principal=User:dora") == 5, shown
    assert "principal=User:eve, host=10.0.0.9, operation=ALL, permissionType=DENY" in shown
    assert "User:eve" not in tools(tool, "--list", "--principal", "User:dora")
    for place in (
        ("--topic", "guarded.", "--resource-pattern-type", "prefixed"),
        ("--topic", "guarded.a"),
        ("--group", "guards"),
    ):
        tools(tool, "--remove", "--force", *place)
    assert not [acl for acl in access(tools).acls if acl.name.startswith("guard")]


def users(tools: Tools) -> None:
    """A user is made, described, logs in, and is removed."""
    place = ("--entity-type", "users", "--entity-name", "fred")
    tools("kafka-configs", *place, "--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=sesame]")
    ((_, credential),) = [item for item in access(tools).scram.items() if item[0][0] == "fred"]
    assert is_password(credential, "sesame")
    assert "SCRAM-SHA-512=iterations=8192" in tools("kafka-configs", *place, "--describe")
    tools("kafka-configs", *place, "--alter", "--delete-config", "SCRAM-SHA-512")
    assert not [user for user, _ in access(tools).scram if user == "fred"]


def quotas(tools: Tools) -> None:
    """Quotas of a user's client and of an address are set, described, removed."""
    both = ("--entity-type", "users", "--entity-name", "gina", "--entity-type", "clients", "--entity-name", "c")
    address = ("--entity-type", "ips", "--entity-name", "10.0.0.9")
    tools("kafka-configs", *both, "--alter", "--add-config", "producer_byte_rate=100000,request_percentage=50")
    tools("kafka-configs", *address, "--alter", "--add-config", "connection_creation_rate=7")
    entity, place = Entity("gina", "c"), Entity(ip="10.0.0.9")
    assert access(tools).quotas[entity] == {Quota.PRODUCER_BYTE_RATE: 100000.0, Quota.REQUEST_PERCENTAGE: 50.0}
    assert access(tools).quotas[place] == {Quota.CONNECTION_CREATION_RATE: 7.0}
    assert "producer_byte_rate=100000.0" in tools("kafka-configs", *both, "--describe")
    assert "connection_creation_rate=7.0" in tools("kafka-configs", *address, "--describe")
    tools("kafka-configs", *both, "--alter", "--delete-config", "producer_byte_rate,request_percentage")
    tools("kafka-configs", *address, "--alter", "--delete-config", "connection_creation_rate")
    assert not {entity, place} & access(tools).quotas.keys()


def delegation_tokens(tools: Tools) -> None:
    """A token is made and described."""
    made = tools("kafka-delegation-tokens", "--create", "--max-life-time-period", "-1")
    assert "TOKENID" in made
    tools("kafka-delegation-tokens", "--describe")
