"""A streaming source tells a group how far it is; it goes on whatever comes of that."""

import logging
import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from support.admin_groups import stable_group
from support.logs import values

from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.sources.options import parse_stream
from tidelog.sources.stream import StreamReader


@pytest.fixture
def lake(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    for topic in ("t", "u"):
        lake.create_topic(topic, 2)
        lake.topic(topic).append(values("0", "1", "2", "3", partition=[0, 0, 0, 1]))
    return lake


def reader(lake, **options):
    positions = lambda lake: LoggedPositions(GroupLog(lake))  # noqa: E731
    return StreamReader(parse_stream({"lake": lake.uri, "subscribe": "t,u", **options}, None), positions)


def told(lake, group="g"):
    return {place: committed.offset for place, committed in GroupLog(lake).offsets(group).items()}


def test_a_committed_batch_shows_in_its_group(lake):
    stream = reader(lake, **{"kafka.group.id": "g"})
    stream.commit({"t": {"0": 2, "1": 0}, "u": {"0": 3, "1": 1}})
    assert told(lake) == {("t", 0): 2, ("t", 1): 0, ("u", 0): 3, ("u", 1): 1}
    stream.commit({"t": {"0": 3, "1": 1}, "u": {"0": 3, "1": 1}})
    assert told(lake) == {("t", 0): 3, ("t", 1): 1, ("u", 0): 3, ("u", 1): 1}


def test_a_batch_is_done_when_spark_asks_for_the_next_ones_end(lake):
    """Spark commits a batch only when another follows: a query that has read everything must show no lag."""
    stream = reader(lake, **{"kafka.group.id": "g"})
    done = {"t": {"0": 3, "1": 1}, "u": {"0": 3, "1": 1}}
    assert stream.latestOffset(done, ReadAllAvailable()) == done
    assert told(lake) == {("t", 0): 3, ("t", 1): 1, ("u", 0): 3, ("u", 1): 1}


def test_what_did_not_change_is_not_told_again(lake):
    stream = reader(lake, **{"kafka.group.id": "g"})
    end = {"t": {"0": 2, "1": 0}, "u": {"0": 0, "1": 0}}
    stream.commit(end)
    version = GroupLog(lake).version("g")
    stream.commit(end)
    log = GroupLog(lake)
    assert told(lake) != {}
    assert log.version("g") == version


def test_without_a_group_nothing_is_told(lake):
    reader(lake, groupIdPrefix="p").commit({"t": {"0": 2, "1": 0}})
    StreamReader(parse_stream({"lake": lake.uri, "subscribe": "t", "kafka.group.id": "g"}, None)).commit(
        {"t": {"0": 2}}
    )
    assert GroupLog(lake).groups() == []


def test_a_topic_that_is_gone_does_not_hide_the_others(lake):
    stream = reader(lake, **{"kafka.group.id": "g"})
    lake.delete_topic("u")
    stream.commit({"t": {"0": 2, "1": 0}, "u": {"0": 3, "1": 1}})
    assert told(lake) == {("t", 0): 2, ("t", 1): 0}


def test_a_group_that_can_not_be_told_stops_no_query(lake, caplog):
    """Members own their group's offsets; the query says so once and goes on."""
    stable_group(lake, "g", {"m": [("t", 0)]})
    stream = reader(lake, **{"kafka.group.id": "g"})
    with caplog.at_level(logging.WARNING, "tidelog.spark"):
        for offset in (1, 2, 3):
            stream.commit({"t": {"0": offset, "1": 0}})
    assert [message[:27] for message in caplog.messages if "progress" in message] == ["The query's progress could "]
    assert "has members" in caplog.text
    assert told(lake) == {}


def test_tasks_get_a_copy_without_the_way_to_the_groups(lake):
    assert b"LoggedPositions" not in pickle.dumps(reader(lake, **{"kafka.group.id": "g"}))
