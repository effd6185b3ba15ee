"""Unmodified Kafka clients of several languages at a broker: produce by every codec, consume in a group, commit."""

import json
import subprocess
from pathlib import Path

import pytest
from support.brokers import running_broker
from support.kafka_clients import NEWEST, KafkaClient, expected, ready, round_trip
from support.tools import require

from tidelog.broker.base.settings import GroupSettings
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

QUICK = GroupSettings(initial_rebalance_delay_ms=0)
RECORDS = 200
PARTITIONS = 3


@pytest.mark.parametrize("transactional_id", ["", "tx"], ids=["", "transactional"])
@pytest.mark.parametrize("client", NEWEST, ids=str)
def test_a_round_trip(tmp_path: Path, client: KafkaClient, transactional_id: str) -> None:
    """What the client reads, the lake's own reader reads alike, and it is what the client sent and did not abort."""
    ready(client)
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("t", partitions=PARTITIONS)
        with running_broker(lake, groups=QUICK) as address:
            found = round_trip(client, address, "t", "g", RECORDS, transactional_id)
        check_round_trip(lake, client, found, RECORDS)


def check_round_trip(lake: Lake, client: KafkaClient, found: list[dict], count: int) -> None:
    seen = {one["key"]: (one["value"], one["number"], one["timestamp"]) for one in found}
    assert seen == expected(client, count)
    assert len(found) == len(seen)
    stored = {}
    for partition in range(PARTITIONS):
        for batch in lake.topic("t").read(partition, include_headers=True):
            for row in batch.to_pylist():
                (header,) = row["headers"]
                value = None if row["value"] is None else row["value"].decode()
                at_ms = round(row["timestamp"].timestamp() * 1000)
                stored[partition, row["offset"]] = (row["key"].decode(), value, header["value"].decode(), at_ms)
    read = {
        (one["partition"], one["offset"]): (one["key"], one["value"], one["number"], one["timestamp"]) for one in found
    }
    assert read == stored
    committed = {place[1]: offset.offset for place, offset in GroupLog(lake).offsets("g").items()}
    ends = {partition: end for partition, (_, end) in lake.offsets("t").items() if end}
    assert committed == ends


def test_kcat(tmp_path: Path) -> None:
    """kcat lists, produces with keys and headers, and consumes by partition and as a member of a group."""
    require("kcat")
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("t", partitions=PARTITIONS)
        with running_broker(lake, groups=QUICK) as address:
            listed = json.loads(kcat(address, "-L", "-J"))
            lines = "".join(f"k{i}:value {i}\n" for i in range(100))
            kcat(address, "-P", "-t", "t", "-K:", "-z", "zstd", "-H", "source=kcat", given=lines)
            read = kcat(address, "-C", "-t", "t", "-e", "-q", "-f", "%p:%o:%k:%h:%s\\n")
            in_group = kcat(
                address,
                "-G",
                "g",
                "-c",
                "100",
                "-q",
                "-f",
                "%p:%o:%k:%h:%s\\n",
                "-X",
                "auto.offset.reset=earliest",
                "t",
            )
        assert [(one["topic"], len(one["partitions"])) for one in listed["topics"]] == [("t", PARTITIONS)]
        assert sorted(read.splitlines()) == sorted(in_group.splitlines())
        assert {line.split(":", 2)[2] for line in read.splitlines()} == {
            f"k{i}:source=kcat:value {i}" for i in range(100)
        }
        assert sum(end for _, end in lake.offsets("t").values()) == 100


def kcat(address: str, *args: str, given: str = "") -> str:
    done = subprocess.run(
        ["kcat", "-b", address, *args], input=given, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
