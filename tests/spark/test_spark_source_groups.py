"""A streaming query's progress as the offsets of a consumer group."""

import pytest
from pyspark.sql import SparkSession
from support.admin_groups import stable_group
from support.spark_queries import Collected, append, fill, numbered, stream

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake


@pytest.fixture
def topic(lake: Lake) -> Lake:
    lake.create_topic("t", partitions=2)
    fill(lake, "t", 0, *numbered("a", 3))
    fill(lake, "t", 1, *numbered("b", 2))
    return lake


def told(lake: Lake) -> dict[tuple[str, int], int]:
    return {place: committed.offset for place, committed in GroupLog(lake).offsets("g").items()}


def test_a_querys_lag_shows_under_its_group(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    rows = stream(spark, topic, subscribe="t", startingOffsets="earliest", **{"kafka.group.id": "g"})
    collected = Collected()
    collected.run(rows, checkpoint)
    assert told(topic) == {("t", 0): 3, ("t", 1): 2}

    append(topic, "t", "late")
    collected.run(rows, checkpoint)
    assert "late" in collected.values
    assert sum(told(topic).values()) == 6


def test_a_group_with_members_of_its_own_stops_no_query(spark: SparkSession, topic: Lake, checkpoint: str) -> None:
    stable_group(topic, "g", {"m": [("t", 0)]})
    collected = Collected()
    collected.run(
        stream(spark, topic, subscribe="t", startingOffsets="earliest", **{"kafka.group.id": "g"}), checkpoint
    )
    assert len(collected.values) == 5
    assert told(topic) == {}
