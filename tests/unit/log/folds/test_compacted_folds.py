"""Every fold of a compacted topic says what the topic says, whatever happens to the topic meanwhile."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from support.compacted_folds import KINDS, TOPIC, Kind, Seen, make, plain, records, write
from support.logs import memory_lake, open_lake

from tidelog.log.base.errors import InvalidConfigError, StorageUnavailableError
from tidelog.log.lake import Lake
from tidelog.log.topic import Topic
from tidelog.retention.maintenance import maintain


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def test_a_topic_that_is_not_there_is_empty_and_followed_once_it_is(kind: Kind) -> None:
    lake, storage, clock = memory_lake()
    reader = kind.reader(lake)
    assert kind.seen(reader) == {}
    assert lake.topics(internal=True) == []
    other = open_lake(storage, clock)
    make(kind, other)
    write(kind, other, a="1")
    assert kind.seen(reader) == {"a": "1"}


def test_the_newest_record_counts_and_a_tombstone_takes_away(kind: Kind) -> None:
    lake, storage, clock = memory_lake()
    make(kind, lake)
    reader = kind.reader(lake)
    steps: list[tuple[dict[str, str | None], Seen]] = [
        ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}),
        ({"a": "3"}, {"a": "3", "b": "2"}),
        ({"a": None}, {"b": "2"}),
        ({"c": None, "b": None}, {}),
        ({"a": "4"}, {"a": "4"}),
    ]
    for written, wanted in steps:
        write(kind, lake, **written)
        assert kind.seen(reader) == wanted
        assert kind.seen(kind.reader(open_lake(storage, clock))) == wanted  # a reader that starts late


def test_a_topic_that_is_compacted_says_the_same_to_all(kind: Kind) -> None:
    lake, storage, clock = memory_lake()
    make(kind, lake)
    reader = kind.reader(open_lake(storage, clock))
    write(kind, lake, a="1", b="1", c="1")
    write(kind, lake, a="2", b=None)
    assert kind.seen(reader) == {"a": "2", "c": "1"}
    for turn in range(4):
        clock.pass_s(10.0)
        maintain(lake)
        write(kind, lake, d=str(turn))
        wanted = {"a": "2", "c": "1", "d": str(turn)}
        assert kind.seen(reader) == wanted
        assert kind.seen(kind.reader(open_lake(storage, clock))) == wanted
    assert len(records(kind, lake)) < 9


def test_a_tombstone_that_came_and_went_unseen_is_not_missed(kind: Kind) -> None:
    lake, storage, clock = memory_lake()
    make(kind, lake)
    reader = kind.reader(open_lake(storage, clock))
    write(kind, lake, a="1", b="1")
    assert kind.seen(reader) == {"a": "1", "b": "1"}
    write(kind, lake, a=None)
    for turn in range(6):
        clock.pass_s(70.0)
        maintain(lake)
        write(kind, lake, b=str(turn))
    assert kind.pair("a", None) not in records(kind, lake)
    assert kind.seen(reader) == {"b": "5"}


@pytest.mark.parametrize("moved", ["ms", "seconds"])
def test_a_clock_that_stood_still_hides_no_pause(kind: Kind, moved: str) -> None:
    """The wall clock may be set back while a process is stopped, and the elapsed one may stop with it."""
    lake, _, clock = memory_lake()
    make(kind, lake)
    reader = kind.reader(lake)
    write(kind, lake, a="1")
    kind.seen(reader)
    fold = reader.known(lambda state: state)
    kind.seen(reader)
    assert reader.known(lambda state: state) is fold
    setattr(clock, moved, getattr(clock, moved) + (30_001 if moved == "ms" else 30.001))
    assert kind.seen(reader) == {"a": "1"}
    assert reader.known(lambda state: state) is not fold


def test_a_topic_that_was_made_again_is_read_from_its_start(kind: Kind) -> None:
    lake, storage, clock = memory_lake()
    make(kind, lake)
    reader = kind.reader(lake)
    write(kind, lake, a="1", b="1")
    assert kind.seen(reader) == {"a": "1", "b": "1"}
    other = open_lake(storage, clock)
    other.delete_topic(kind.topic)
    assert kind.seen(reader) == {}
    make(kind, other)
    write(kind, other, c="1", d="1", e="1")
    assert kind.seen(reader) == {"c": "1", "d": "1", "e": "1"}


def test_a_topic_that_was_made_again_between_two_looks_is_read_from_its_start(kind: Kind) -> None:
    lake, storage, clock = memory_lake()
    make(kind, lake)
    reader = kind.reader(lake)
    write(kind, lake, a="1", b="1")
    kind.seen(reader)
    other = open_lake(storage, clock)
    other.delete_topic(kind.topic)
    make(kind, other)
    write(kind, other, c="1", d="1", e="1")
    assert kind.seen(reader) == {"c": "1", "d": "1", "e": "1"}


def truncate(kind: Kind, lake: Lake) -> None:
    """Delete all records, as an administrator may where the topic is deleted by age, too."""
    lake.delete_records(kind.topic, {partition: end for partition, (_, end) in lake.offsets(kind.topic).items()})


def test_what_was_truncated_is_forgotten(kind: Kind) -> None:
    lake, storage, clock = memory_lake()
    make(kind, lake)
    reader, other = kind.reader(lake), open_lake(storage, clock)
    write(kind, lake, a="1", b="1", c="1")
    assert kind.seen(reader) == {"a": "1", "b": "1", "c": "1"}
    other.alter_topic(kind.topic, config={"cleanup.policy": "compact,delete"})
    write(kind, other, a="2", b="2", c="2")
    truncate(kind, other)
    write(kind, other, d="1", e="1")
    assert kind.seen(reader) == {"d": "1", "e": "1"}


def test_what_is_truncated_between_a_look_and_the_read_is_forgotten(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, storage, clock = memory_lake()
    make(kind, lake)
    reader, other = kind.reader(lake), open_lake(storage, clock)
    write(kind, lake, a="1", b="1", c="1")
    kind.seen(reader)
    other.alter_topic(kind.topic, config={"cleanup.policy": "compact,delete"})
    write(kind, other, a="2", b="2", c="2")
    offsets, looks = Topic.offsets, []

    def truncated_meanwhile(topic: Topic) -> dict[int, tuple[int, int]]:
        found = offsets(topic)
        looks.append(found)
        if len(looks) == 1:
            with monkeypatch.context() as patched:
                patched.setattr(Topic, "offsets", offsets)
                write(kind, other, a="3", b="3", c="3")
                truncate(kind, other)
                other.alter_topic(kind.topic, config={"cleanup.policy": "compact"})
                write(kind, other, d="1")
        return found

    monkeypatch.setattr(Topic, "offsets", truncated_meanwhile)
    assert kind.seen(reader) == {"d": "1"}


def test_a_read_that_ends_early_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, _, _ = memory_lake()
    kind = KINDS["plain"]
    make(kind, lake)
    reader = plain(lake)
    write(kind, lake, a="1", b="1", c="1")
    read = Topic.read

    def cut(topic: Topic, *span: int) -> Iterator[pa.RecordBatch]:
        yield next(read(topic, *span)).slice(0, 2)
        raise StorageUnavailableError("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(Topic, "read", cut)
        with pytest.raises(StorageUnavailableError):
            kind.seen(reader)
    assert reader.known(lambda fold: dict(fold.texts)) == {"a": "1", "b": "1"}
    assert kind.seen(reader) == {"a": "1", "b": "1", "c": "1"}
    assert reader.known(lambda fold: fold.taken) == [0, 1, 2]


def test_only_one_partition_of_an_ordered_topic_counts() -> None:
    """A topic that has grown keeps its order for those that have it open; for others it has none."""
    lake, storage, clock = memory_lake()
    kind = KINDS["plain"]
    make(kind, lake)
    topic = plain(lake)
    topic.append([(b"a", b"1")])
    assert kind.seen(topic) == {"a": "1"}
    lake.alter_topic(TOPIC, partitions=3)
    lake.topic(TOPIC).append(pa.table({"key": [b"x"], "value": [b"1"], "partition": pa.array([2], pa.int32())}))
    topic.append([(bytes([97 + number]), b"2") for number in range(1, 9)])
    topic.decide(lambda _: (None, [(b"j", b"3")]))
    assert kind.seen(topic) == {"a": "1", **dict.fromkeys("bcdefghi", "2"), "j": "3"}
    assert lake.offsets(TOPIC) == {0: (0, 10), 1: (0, 0), 2: (0, 1)}
    with pytest.raises(InvalidConfigError, match="3 partitions"):
        kind.seen(plain(open_lake(storage, clock)))
