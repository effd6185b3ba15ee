"""Topics: read, created, given partitions and emptied; what each is refused with."""

from collections.abc import Callable
from typing import Any

import pytest
from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, values

from tidelog.log.base.errors import (
    CorruptLogError,
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidTopicError,
    LakeNotFoundError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    StoragePermissionError,
    TidelogError,
    TopicExistsError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.operations.topics import (
    LiveFiles,
    add_partitions,
    create_topic,
    delete_records,
    live_files,
    read_topic,
    read_topics,
)

World = tuple[Lake, FaultyStorage, FakeClock]


@pytest.fixture
def world() -> World:
    return memory_lake()


@pytest.fixture
def lake(world: World) -> Lake:
    return world[0]


def nowhere() -> Lake:
    """A lake that is not there, and that looking makes none of."""
    return Lake("memory://no-lake-of-topics", None)


# --- reading -----------------------------------------------------------------------------------------------


def test_topics_are_read_by_name(lake: Lake) -> None:
    for name in ("b", "a", "__own"):
        lake.create_topic(name, 2)
    lake.create_topic("gone")
    lake.delete_topic("gone")
    lake.storage.put("notes/today.txt", b"no topic")
    assert list(read_topics(lake)) == ["a", "b"]
    assert list(read_topics(lake, internal=True)) == ["__own", "a", "b"]
    found = read_topics(lake)["a"]
    assert isinstance(found, TopicState)
    assert (found.partitions, found.topic_id) == (2, lake.describe_topic("a").id)


@pytest.mark.parametrize("error", [CorruptLogError("torn"), StoragePermissionError("denied")])
def test_a_topic_that_can_not_be_opened_hides_no_other(world: World, error: TidelogError) -> None:
    lake, storage, clock = world
    for name in ("broken", "sound"):
        lake.create_topic(name)

    def hook(_: str, path: str, __: str) -> None:
        if path.startswith("broken/"):
            raise error

    storage.hook = hook
    topics = read_topics(open_lake(storage, clock))
    assert list(topics) == ["broken", "sound"]
    assert isinstance(topics["broken"], type(error))
    assert isinstance(topics["sound"], TopicState)


def test_one_topic_is_read(lake: Lake) -> None:
    lake.create_topic("t", 3)
    assert read_topic(lake, "t").partitions == 3
    with pytest.raises(UnknownTopicError, match="'missing' does not exist"):
        read_topic(lake, "missing")
    with pytest.raises(InvalidTopicError):
        read_topic(lake, "bad name")


def test_where_there_is_no_lake_there_is_nothing_to_read() -> None:
    with pytest.raises(LakeNotFoundError):
        read_topics(nowhere())
    with pytest.raises(LakeNotFoundError):
        read_topic(nowhere(), "t")


def test_small_files_are_those_far_below_segment_bytes() -> None:
    sizes = {0: [99, 100], 1: [1]}
    state = TopicState(
        segments={p: [Segment(f"{p}-{n}", p, n, n + 1, n, 0, None) for n in of] for p, of in sizes.items()}
    )
    assert live_files(state, LakeConfig.parse({"log.segment.bytes": "1600"})) == LiveFiles(3, 2, 200)
    assert live_files(TopicState(), LakeConfig.parse({})) == LiveFiles(0, 0, 0)


# --- creating ----------------------------------------------------------------------------------------------


def test_a_topic_is_created(lake: Lake) -> None:
    lake.alter_config({"num.partitions": "3"})
    create_topic(lake, "plain", None, {})
    create_topic(lake, "full", 2, {"retention.ms": "5"}, 1)
    create_topic(lake, "checked", 2, {"retention.ms": "5"}, validate_only=True)
    assert lake.topics() == ["full", "plain"]
    described = lake.describe_topic("full")
    assert (len(described.partitions), described.config) == (2, {"retention.ms": "5"})
    assert read_topic(lake, "full").replication_factor == 1
    assert (read_topic(lake, "plain").partitions, read_topic(lake, "plain").replication_factor) == (3, None)


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("name", "partitions", "config", "error"),
    [
        ("a.b", 1, {}, TopicExistsError),
        ("a_b", 1, {}, InvalidTopicError),
        ("bad name", 1, {}, InvalidTopicError),
        ("__consumer_offsets", 1, {}, InvalidTopicError),
        ("t", 0, {}, InvalidPartitionsError),
        ("t", 10_001, {}, InvalidPartitionsError),
        ("t", 1, {"no.such.key": "1"}, InvalidConfigError),
        ("t", 1, {"retention.ms": "soon"}, InvalidConfigError),
    ],
)
def test_a_topic_that_can_not_be_created(
    lake: Lake, name: str, partitions: int, config: dict[str, str], error: type[TidelogError], validate_only: bool
) -> None:
    lake.create_topic("a.b")
    with pytest.raises(error):
        create_topic(lake, name, partitions, config, validate_only=validate_only)
    assert lake.topics(internal=True) == ["a.b"]


# --- more partitions ---------------------------------------------------------------------------------------


def test_partitions_are_added(lake: Lake) -> None:
    lake.create_topic("t", 2)
    add_partitions(lake, "t", 5, validate_only=True)
    assert read_topic(lake, "t").partitions == 2
    add_partitions(lake, "t", 5)
    assert read_topic(lake, "t").partitions == 5


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("name", "partitions", "error"),
    [
        ("missing", 5, UnknownTopicError),
        ("bad name", 5, InvalidTopicError),
        ("t", 2, InvalidPartitionsError),
        ("t", 1, InvalidPartitionsError),
        ("t", 10_001, InvalidPartitionsError),
        ("odd", 5, InvalidConfigError),  # the lake's default has come to contradict the topic's own value
    ],
)
def test_partitions_that_can_not_be_added(
    lake: Lake, name: str, partitions: int, error: type[TidelogError], validate_only: bool
) -> None:
    lake.create_topic("t", 2)
    lake.create_topic("odd", 2, {"min.compaction.lag.ms": "5"})
    lake.alter_config({"log.cleaner.max.compaction.lag.ms": "4"})
    with pytest.raises(error):
        add_partitions(lake, name, partitions, validate_only=validate_only)
    assert (read_topic(lake, "t").partitions, read_topic(lake, "odd").partitions) == (2, 2)


# --- fewer records -----------------------------------------------------------------------------------------


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.create_topic("t", 2)
    lake.topic("t").append(values("0", "1", "2", "x", partition=[0, 0, 0, 1]))
    return lake


def test_records_are_deleted_in_one_entry(filled: Lake) -> None:
    before = read_topic(filled, "t").version
    assert delete_records(filled, "t", {0: 2, 1: -1}) == {0: 2, 1: 1}
    assert (filled.offsets("t"), read_topic(filled, "t").version) == ({0: (2, 3), 1: (1, 1)}, before + 1)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({1: 9}, OffsetOutOfRangeError), ({7: 0}, UnknownPartitionError), ({1: -2}, OffsetOutOfRangeError)],
)
def test_a_partition_that_is_refused_keeps_no_other(
    filled: Lake, wrong: dict[int, int], error: type[TidelogError]
) -> None:
    found = delete_records(filled, "t", {0: 2} | wrong)
    assert found.pop(0) == 2
    assert {type(one) for one in found.values()} == {error}
    assert filled.offsets("t") == {0: (2, 3), 1: (0, 1)}


def compacted(lake: Lake) -> None:
    lake.alter_topic("t", config={"cleanup.policy": "compact"})


@pytest.mark.parametrize(
    ("changed", "name", "error"),
    [
        (lambda _: None, "missing", UnknownTopicError),
        (lambda _: None, "bad name", InvalidTopicError),
        (compacted, "t", PolicyViolationError),
    ],
)
def test_a_topic_whose_records_stay_says_so_for_each_partition(
    filled: Lake, changed: Callable[[Lake], Any], name: str, error: type[TidelogError]
) -> None:
    changed(filled)
    assert {p: type(one) for p, one in delete_records(filled, name, {0: 1, 1: 1}).items()} == {0: error, 1: error}
    assert filled.offsets("t") == {0: (0, 3), 1: (0, 1)}
