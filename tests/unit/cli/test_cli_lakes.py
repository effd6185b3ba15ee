"""tidelog lake …"""

import pytest
from support.cli_calls import answer, done, lake_address, open_lake, refused

from tidelog.log.delta.disk_format import FORMAT_VERSION


@pytest.fixture
def lake():
    address = lake_address()
    with open_lake(address) as opened:
        opened.create_topic("orders")
    return address


def test_describe(lake):
    assert answer("lake", "describe", "--lake", lake) == {
        "uri": lake,
        "format": FORMAT_VERSION,
        "topics": 1,
        "config": {},
    }
    assert done("lake", "describe", "--lake", lake).stdout == (
        f"{lake}  format {FORMAT_VERSION}, 1 topic\nIts configuration is all defaults; --all shows them.\n"
    )


def test_describe_all(lake):
    open_lake(lake).alter_config({"num.partitions": "4"})
    shown = {row["name"]: row for row in answer("lake", "describe", "--all", "--lake", lake)["settings"]}
    assert (shown["num.partitions"]["value"], shown["num.partitions"]["source"]) == ("4", "lake")
    assert (shown["auto.create.topics.enable"]["value"], shown["auto.create.topics.enable"]["source"]) == (
        "true",
        "default",
    )
    assert "auto.create.topics.enable" in done("lake", "describe", "--all", "--lake", lake).stdout


def test_alter(lake):
    shown = done("lake", "alter", "--config", "num.partitions=4", "--config", "log.retention.ms=5", "--lake", lake)
    assert shown.stdout == f"Altered lake {lake}: log.retention.ms=5, num.partitions=4.\n"
    assert answer("lake", "alter", "--delete-config", "num.partitions", "--lake", lake) == {
        "uri": lake,
        "config": {"log.retention.ms": "5"},
    }
    assert open_lake(lake).config().overrides == {"log.retention.ms": "5"}
    table = done("lake", "describe", "--lake", lake).stdout
    assert ["log.retention.ms", "5"] in [line.split() for line in table.splitlines()]


@pytest.mark.parametrize(
    ("code", "args", "why"),
    [
        (2, ["alter"], "Nothing to change"),
        (1, ["alter", "--config", "num.partition=4"], "The nearest known one is 'num.partitions'"),
        (1, ["alter", "--config", "num.partitions=0"], "Value must be at least 1"),
        (1, ["alter", "--config", "retention.ms=1"], "log.retention.ms"),
        (1, ["alter", "--delete-config", "num.partition"], "The nearest known one is 'num.partitions'"),
    ],
)
def test_refusals(lake, code, args, why):
    assert why in refused(code, "lake", *args, "--lake", lake)


@pytest.mark.parametrize("command", [["describe"], ["alter", "--config", "num.partitions=2"]])
def test_a_lake_that_is_not_there_is_not_created(command):
    assert "There is no lake at memory://" in refused(1, "lake", *command, "--lake", lake_address())
