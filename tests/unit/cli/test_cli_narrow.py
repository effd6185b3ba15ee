"""Tables on a narrow terminal: no word and no number is cut, whatever is shown."""

import re

import pytest
from support.cli_calls import cli, lake_address, open_lake
from support.logs import values

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.quotas import Quota
from tidelog.access.state import Tenant
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.transactions.transaction_log import TransactionLog

COMMANDS = [
    "topic list",
    "topic describe orders-of-the-north",
    "topic describe orders-of-the-north --all",
    "lake describe --all",
    "check",
    "maintain --dry-run",
    "group list",
    "group describe billing",
    "transaction list",
    "transaction describe copier",
    "producer list",
    "user list",
    "acl list",
    "quota list",
    "tenant list",
]
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def lake() -> str:
    address = lake_address()
    with open_lake(address) as opened:
        opened.create_topic("orders-of-the-north", 3, {"retention.ms": "604800000"})
        opened.topic("orders-of-the-north").append(values(*"abc", partition=[0, 1, 2]))
        LoggedPositions(GroupLog(opened)).publish("billing", {"orders-of-the-north": {0: 1}})
        TransactionLog(opened).init("copier", 60_000)
        access = AccessLog(opened)
        access.upsert_scram("alice", credential(ScramMechanism.SHA_512, "secret", b"salt" * 4))
        limits = {Quota.PRODUCER_BYTE_RATE: 1048576.0, Quota.CONTROLLER_MUTATION_RATE: 2.5}
        access.create_tenant(Tenant("the-north", "orders-of-the-north.", ("alice", "bo-of-the-north"), limits))
    return address


def shown(command: str, lake: str, width: int) -> list[str]:
    env = {"FORCE_COLOR": "1", "COLUMNS": str(width), "TERM": "xterm"}
    result = cli(*command.split(), "--lake", lake, env=env)
    assert result.exit_code == 0, result.stderr
    return ANSI.sub("", result.stdout).splitlines()


def words(lines: list[str]) -> set[str]:
    return {word for line in lines for word in line.split() if len(word) <= 20 and not set(word) <= set("─")}


@pytest.mark.parametrize("width", [60, 72])
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_cut(command: str, width: int, lake: str):
    narrow, wide = shown(command, lake, width), shown(command, lake, 400)
    assert max(map(len, narrow)) <= width
    assert words(wide) <= words(narrow)
