"""A lake: its topics' lives, its configuration, and what each key of it and of a topic does to the log."""

from typing import Any

import pytest
from support.logs import CountingIds, FakeClock, memory_lake, open_lake, read, values

from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidTopicError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    TopicExistsError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake
from tidelog.log.state.descriptions import PartitionDescription


@pytest.fixture
def lake() -> Lake:
    return memory_lake()[0]


# --- topics ------------------------------------------------------------------------------------------------


def test_create_list_describe_delete(lake: Lake) -> None:
    made = lake.create_topic("orders", partitions=2, config={"retention.ms": "5"})
    assert (made.name, made.config, made.id != "") == ("orders", {"retention.ms": "5"}, True)
    assert made.partitions == (PartitionDescription(0, 0, 0, 0, 0), PartitionDescription(1, 0, 0, 0, 0))
    lake.create_topic("another")
    assert lake.topics() == ["another", "orders"]
    lake.topic("orders").append(values("a", "b", partition=[1, 1]))
    row = lake.describe_topic("orders").partitions[1]
    assert (row.start, row.end, row.segments, row.bytes > 500) == (0, 2, 1, True)
    lake.delete_topic("orders")
    assert lake.topics() == ["another"]
    for ask in (lake.describe_topic, lake.delete_topic, lake.offsets, lake.topic_config):
        with pytest.raises(UnknownTopicError, match="Topic 'orders' does not exist"):
            ask("orders")


def test_internal_topics_are_shown_where_asked_for(lake: Lake) -> None:
    lake.create_topic("__internal")
    assert lake.topics() == []
    assert lake.topics(internal=True) == ["__internal"]


@pytest.mark.parametrize("name", ["__consumer_offsets", "__consumer_offsets-3", "__transaction_state"])
def test_a_topic_does_not_take_the_place_of_a_table_that_groups_or_transactions_need(lake: Lake, name: str) -> None:
    for make in (lake.create_topic, lake.ensure_topic):
        with pytest.raises(InvalidTopicError, match=f"Topic '{name}' can't be created"):
            make(name)
    lake.create_topic(f"{name}_of_mine")
    assert lake.topics(internal=True) == [f"{name}_of_mine"]


def test_a_topic_that_is_there(lake: Lake) -> None:
    lake.create_topic("t")
    with pytest.raises(TopicExistsError, match=r"'t' already exists\. Use it, change it"):
        lake.create_topic("t")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, "__lake.json", "_delta_log"])
def test_names_that_can_not_be(lake: Lake, name: str) -> None:
    for use in (lake.create_topic, lake.topic, lake.delete_topic, lake.describe_topic, lake.ensure_topic):
        with pytest.raises(InvalidTopicError, match="Topic name is invalid"):
            use(name)


def test_names_that_collide(lake: Lake) -> None:
    lake.create_topic("a.b_c")
    for name in ("a_b.c", "a.b.c", "a_b_c"):
        with pytest.raises(InvalidTopicError, match=r"collides with existing topic: a\.b_c"):
            lake.create_topic(name)
        with pytest.raises(InvalidTopicError):
            lake.topic(name).append(values("x"))
    lake.delete_topic("a.b_c")
    lake.create_topic("a_b.c")
    assert lake.topics() == ["a_b.c"]


def test_creating_a_topic_opens_no_other(lake: Lake) -> None:
    for i in range(5):
        lake.create_topic(f"t{i}")
    fresh = Lake("", storage=lake.storage, clock=FakeClock(), ids=CountingIds(5_000))
    fresh.create_topic("more")
    assert set(fresh._logs) == {"more"}


def test_partitions_only_grow(lake: Lake) -> None:
    lake.create_topic("t", partitions=2)
    lake.topic("t").append(values("a", partition=[1]))
    assert len(lake.alter_topic("t", partitions=5).partitions) == 5
    assert lake.topic("t").append(values("b", partition=[4])) == {4: (0, 1)}
    assert lake.alter_topic("t", partitions=5).partitions[1].end == 1
    with pytest.raises(InvalidPartitionsError, match="Partitions only grow"):
        lake.alter_topic("t", partitions=4)
    with pytest.raises(UnknownPartitionError):
        lake.topic("t").append(values("a", partition=[5]))


def test_alter_merges_and_none_resets(lake: Lake) -> None:
    lake.create_topic("t", config={"retention.ms": "5", "segment.ms": "6"})
    changed = lake.alter_topic("t", config={"retention.ms": None, "retention.bytes": "7"})
    assert changed.config == {"segment.ms": "6", "retention.bytes": "7"}
    version = lake.topic("t").state().version
    lake.alter_topic("t", config={"retention.bytes": "7"})
    lake.alter_topic("t")
    assert lake.topic("t").state().version == version


def test_two_alters_at_once_both_count() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    other = open_lake(storage.inner, clock)

    def meanwhile(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent":
            storage.hook = lambda *call: None
            other.alter_topic("t", partitions=3, config={"segment.ms": "6"})

    storage.hook = meanwhile
    changed = lake.alter_topic("t", config={"retention.ms": "5"})
    assert (changed.config, len(changed.partitions)) == ({"retention.ms": "5", "segment.ms": "6"}, 3)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"retention.ms": "soon"}, r"Invalid value soon for configuration retention\.ms"),
        ({"retention.ms": 5}, "values are strings"),
        (
            {"retention.msec": "5"},
            r"Unknown topic configuration 'retention\.msec'.*nearest known one is 'retention\.ms'",
        ),
        ({"flush.messages": "2"}, "is refused, because it would do nothing"),
        ({"num.partitions": "2"}, "is no key of a topic"),
        ({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"}, "conflict topic config"),
    ],
)
def test_configuration_that_is_refused(lake: Lake, config: Any, says: str) -> None:
    with pytest.raises(InvalidConfigError, match=says):
        lake.create_topic("t", config=config)
    assert lake.topics() == []
    lake.create_topic("t")
    with pytest.raises(InvalidConfigError, match=says):
        lake.alter_topic("t", config=config)
    assert lake.describe_topic("t").config == {}


def test_resetting_a_key_that_is_not_known_is_refused(lake: Lake) -> None:
    lake.create_topic("t")
    with pytest.raises(InvalidConfigError, match="Unknown topic configuration"):
        lake.alter_topic("t", config={"retention": None})


# --- delete records ----------------------------------------------------------------------------------------


def test_delete_records(lake: Lake) -> None:
    lake.create_topic("t", partitions=2)
    for part in ("ab", "cd", "ef"):
        lake.topic("t").append(values(*part, partition=[0, 0]))
    assert lake.delete_records("t", {0: 3}) == {0: 3}
    assert lake.offsets("t") == {0: (3, 6), 1: (0, 0)}
    assert read(lake, "t") == ["d", "e", "f"]
    assert lake.describe_topic("t").partitions[0].segments == 2
    assert lake.delete_records("t", {0: -1, 1: -1}) == {0: 6, 1: 0}
    assert lake.describe_topic("t").partitions[0].segments == 0
    assert lake.topic("t").append(values("g", partition=[0])) == {0: (6, 7)}
    with pytest.raises(OffsetOutOfRangeError):
        lake.delete_records("t", {0: 8})
    with pytest.raises(UnknownPartitionError):
        lake.delete_records("t", {2: 0})


@pytest.mark.parametrize(
    ("policy", "allowed"), [("delete", True), ("compact", False), ("compact,delete", True), ("", True)]
)
def test_cleanup_policy_decides_about_delete_records(lake: Lake, policy: str, allowed: bool) -> None:
    lake.create_topic("t", config={"cleanup.policy": policy})
    lake.topic("t").append(values("a", "b", key=[b"k", b"k"]))
    if allowed:
        assert lake.delete_records("t", {0: 1}) == {0: 1}
    else:
        with pytest.raises(PolicyViolationError, match=r"cleanup\.policy=compact.*Set cleanup\.policy=compact,delete"):
            lake.delete_records("t", {0: 1})


def test_ten_thousand_partitions() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=10_000)
    spread = values(*["x"] * 400, partition=list(range(0, 10_000, 50)) * 2)
    ranges = lake.topic("t").append(spread, acks=1)
    assert ranges == dict.fromkeys(range(0, 10_000, 50), (0, 2))
    offsets = open_lake(storage, clock).offsets("t")
    assert (len(offsets), offsets[9_950], offsets[9_999]) == (10_000, (0, 2), (0, 0))
