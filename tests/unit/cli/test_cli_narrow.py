"""Tables on a narrow terminal: no word and no number is cut, whatever is shown."""

import re

import pytest
from support.cli_calls import cli, lake_address, open_lake
from support.logs import values

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
