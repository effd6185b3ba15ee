"""A consumer with assigned partitions: offsets it stores and commits, what it answers, and what it refuses."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from support.consumers import at, consumer, fill, offsets, poll_some, poll_until, raised
from support.logs import START_MS, Calls, memory_lake, values
from support.waiting import eventually

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import OFFSET_END, OFFSET_INVALID, ConsumerGroupMetadata, TopicPartition
from tidelog.log.lake import Lake


class TestOffsets:
    def test_commits_of_all_kinds(self, lake: Lake) -> None:
        fill(lake, "t", *"abcde")
        with consumer(lake, enable_auto_commit=False) as reader:
            reader.assign([at()])
            _, second = poll_some(reader, 2)
            assert offsets(reader.committed([at(), at(partition=1)])) == [OFFSET_INVALID, OFFSET_INVALID]
            assert offsets(reader.commit(asynchronous=False) or []) == [2]
            assert raised(lambda: reader.commit(asynchronous=False)) == KafkaError._NO_OFFSET
            poll_some(reader, 1)
            reader.commit(message=second, asynchronous=False)
            assert offsets(reader.committed([at()])) == [2]
            wanted = TopicPartition("t", 0, 4, metadata="why")
            assert reader.commit(offsets=[wanted, at(partition=1)], asynchronous=False) == [at()]
            (found,) = reader.committed([at()], timeout=1)
            assert (found.offset, found.metadata) == (4, "why")

    def test_a_commit_in_the_background_tells_its_callback(self, lake: Lake) -> None:
        fill(lake, "t", *"ab")
        told: list[tuple[KafkaError | None, list[int]]] = []
        with consumer(lake, on_commit=lambda e, ps: told.append((e, offsets(ps))), enable_auto_commit=False) as reader:
            reader.assign([at()])
            poll_some(reader, 2)
            assert reader.commit() is None
            poll_until(lambda: bool(told), reader)
            assert told == [(None, [2])]
            reader.commit()
            reader.poll(0)
            assert told[1:] == [(KafkaError(KafkaError._NO_OFFSET), [])]
            reader.commit(offsets=[at(77)])
            poll_until(lambda: len(told) == 3, reader)
            assert told[2] == (KafkaError(KafkaError.OFFSET_OUT_OF_RANGE), [77])

    def test_closing_waits_for_commits_in_the_background(self, lake: Lake) -> None:
        fill(lake, "t", *"ab")
        told: list[list[int]] = []
        with consumer(lake, on_commit=lambda _, ps: told.append(offsets(ps)), enable_auto_commit=False) as reader:
            reader.commit(offsets=[at(1)])
            reader.commit(offsets=[at(2)])
        assert told == [[1], [2]]

    @pytest.mark.parametrize(
        ("wanted", "code"),
        [
            (at(3), KafkaError.OFFSET_OUT_OF_RANGE),
            (at(-5), KafkaError.OFFSET_OUT_OF_RANGE),
            (at(0, partition=2), KafkaError.UNKNOWN_TOPIC_OR_PART),
            (at(0, topic="u"), KafkaError.UNKNOWN_TOPIC_OR_PART),
            (at(), KafkaError._NO_OFFSET),
            (TopicPartition("t", 0, 1, metadata="m" * 5000), KafkaError.OFFSET_METADATA_TOO_LARGE),
        ],
    )
    def test_offsets_that_can_not_be_committed(self, lake: Lake, wanted: TopicPartition, code: int) -> None:
        fill(lake, "t", *"ab")
        with consumer(lake) as reader:
            assert raised(lambda: reader.commit(offsets=[wanted], asynchronous=False)) == code
            assert offsets(reader.committed([at()])) == [OFFSET_INVALID]

    def test_stored_offsets_are_what_is_committed(self, lake: Lake) -> None:
        fill(lake, "t", *"abc")
        with consumer(lake, enable_auto_offset_store=False, enable_auto_commit=False) as reader:
            reader.assign([at()])
            first, *_ = poll_some(reader, 3)
            assert raised(lambda: reader.commit(asynchronous=False)) == KafkaError._NO_OFFSET
            reader.store_offsets(message=first)
            assert offsets(reader.commit(asynchronous=False) or []) == [1]
            reader.store_offsets(offsets=[TopicPartition("t", 0, 2, metadata="m")])
            reader.commit(asynchronous=False)
            (found,) = reader.committed([at()])
            assert (found.offset, found.metadata) == (2, "m")
            assert raised(lambda: reader.store_offsets(offsets=[at(1, partition=1)])) == KafkaError._STATE
            with pytest.raises(ValueError, match="either message or offsets"):
                reader.store_offsets()
        with consumer(lake) as other:
            other.assign([at()])
            assert raised(lambda: other.store_offsets(offsets=[at(1)])) == KafkaError._INVALID_ARG

    def test_closing_and_unassigning_commit_what_was_handed_out(self, lake: Lake) -> None:
        fill(lake, "t", *"abc")
        fill(lake, "t", *"xyz", partition=1)
        with consumer(lake, group_id="closing") as reader:
            reader.assign([at()])
            poll_some(reader, 2)
            reader.assign([at(partition=1)])
            assert offsets(reader.committed([at()])) == [2]
            poll_some(reader, 1)
        with consumer(lake, group_id="closing") as reader:
            assert offsets(reader.committed([at(), at(partition=1)])) == [2, 1]

    def test_without_auto_commit_nothing_is(self, lake: Lake) -> None:
        fill(lake, "t", "a")
        with consumer(lake, enable_auto_commit=False, auto_commit_interval_ms=10) as reader:
            reader.assign([at()])
            poll_some(reader, 1)
            assert reader.poll(0.2) is None
        with consumer(lake) as reader:
            assert offsets(reader.committed([at()])) == [OFFSET_INVALID]

    def test_auto_commit_in_its_interval(self, lake: Lake) -> None:
        fill(lake, "t", "a")
        with consumer(lake, auto_commit_interval_ms=20) as reader, consumer(lake) as other:
            reader.assign([at()])
            poll_some(reader, 1)
            eventually(lambda: offsets(other.committed([at()])) == [1], "a commit in the interval")


class TestQuestions:
    def test_positions_and_watermarks(self, lake: Lake) -> None:
        fill(lake, "t", *"abc")
        lake.delete_records("t", {0: 1})
        with consumer(lake) as reader:
            assert reader.get_watermark_offsets(at()) == (1, 3)
            assert reader.get_watermark_offsets(at(), cached=True) == (OFFSET_INVALID, OFFSET_INVALID)
            assert raised(lambda: reader.get_watermark_offsets(at(partition=9))) == KafkaError.UNKNOWN_TOPIC_OR_PART
            reader.assign([at()])
            assert offsets(reader.position([at(), at(topic="u")])) == [OFFSET_INVALID, OFFSET_INVALID]
            poll_some(reader, 1)
            assert offsets(reader.position([at()])) == [2]
            assert reader.get_watermark_offsets(at(), cached=True) == (1, 3)

    def test_offsets_for_times(self, lake: Lake) -> None:
        lake.topic("t").append(
            pa.table({"value": ["a", "b"], "timestamp": [START_MS, START_MS + 10], "partition": [0, 0]})
        )
        with consumer(lake) as reader:
            asked = [at(START_MS + 1), at(START_MS + 11), at(0, topic="u")]
            found = reader.offsets_for_times(asked)
        assert offsets(found) == [1, OFFSET_END, OFFSET_INVALID]
        assert [p.error for p in found] == [None, None, KafkaError.UNKNOWN_TOPIC_OR_PART]

    def test_the_rest(self, lake: Lake) -> None:
        with consumer(lake) as reader:
            assert list(reader.list_topics().topics) == ["t"]
            assert len(reader.list_topics("t").topics["t"].partitions) == 2
            assert reader.cluster_id() == lake.uri
            assert reader.memberid() is None
            assert reader.consumer_group_metadata() == ConsumerGroupMetadata("g")
            assert raised(lambda: reader.set_sasl_credentials("u", "p")) == KafkaError._NOT_IMPLEMENTED


def test_a_closed_consumer_refuses_everything(lake: Lake) -> None:
    reader = consumer(lake)
    reader.close()
    reader.close()
    calls: list[Any] = [
        reader.poll, reader.consume, reader.consume_table, reader.assignment, reader.unassign, reader.unsubscribe,
        reader.commit, reader.memberid, reader.list_topics, reader.consumer_group_metadata, reader.store_offsets,
        reader.__enter__, lambda: next(reader), lambda: reader.subscribe(["t"]), lambda: reader.assign([]),
        lambda: reader.seek(at(0)), lambda: reader.pause([]), lambda: reader.resume([]), lambda: reader.position([]),
        lambda: reader.committed([]), lambda: reader.get_watermark_offsets(at()), lambda: reader.offsets_for_times([]),
        lambda: reader.incremental_assign([]), lambda: reader.incremental_unassign([]),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(RuntimeError, match="Consumer closed"):
            call()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: c.subscribe("t"), TypeError),
        (lambda c: c.subscribe([1]), TypeError),
        (lambda c: c.subscribe(["t"], on_assign=1), TypeError),
        (lambda c: c.assign("t"), TypeError),
        (lambda c: c.assign([("t", 0)]), TypeError),
        (lambda c: c.seek(("t", 0)), TypeError),
        (lambda c: c.commit(message=1), TypeError),
        (lambda c: c.commit(message=1, offsets=[]), ValueError),
        (lambda c: c.consume(-1), ValueError),
        (lambda c: c.consume(1_000_001), ValueError),
        (lambda c: c.consume_table(-1), ValueError),
        (lambda c: c.poll("a"), TypeError),
        (lambda c: c.subscribe([]), KafkaException),
        (lambda c: c.subscribe([""]), KafkaException),
        (lambda c: c.subscribe(["^("]), KafkaException),
        (lambda c: c.commit(offsets=[]), KafkaException),
    ],
)
def test_bad_arguments(lake: Lake, call: Any, error: type[Exception]) -> None:
    with consumer(lake) as reader, pytest.raises(error):
        call(reader)


def test_keywords_are_configuration_too(lake: Lake) -> None:
    with Consumer({"group.id": "g"}, lake=lake) as reader:
        assert reader.list_topics().topics


class TestManyPartitions:
    """What is asked for many partitions takes as many looks at the log as for one."""

    def looks(self, partitions: int, ask: Callable[[Consumer, list[TopicPartition]], list[TopicPartition]]) -> int:
        lake, storage, _ = memory_lake()
        lake.create_topic("t", partitions=partitions)
        everywhere = list(range(partitions))
        lake.topic("t").append(values(*["v"] * partitions, partition=everywhere, timestamp=[START_MS] * partitions))
        with consumer(lake) as reader:
            wanted = [at(START_MS, partition=p) for p in everywhere]
            storage.hook = calls = Calls()
            found = ask(reader, wanted)
            storage.hook = lambda *_: None
        assert [p.error for p in found] == [None] * partitions
        return len([path for _, path in calls.seen if "_delta_log" in path])

    @pytest.mark.parametrize("ask", [Consumer.offsets_for_times, Consumer.committed])
    def test_one_look_for_all(self, ask: Callable[[Consumer, list[TopicPartition]], list[TopicPartition]]) -> None:
        assert 0 < self.looks(64, ask) == self.looks(1, ask)

    def test_a_partition_that_is_refused_is_so_alone(self, lake: Lake) -> None:
        fill(lake, "t", "a")
        with consumer(lake) as reader:
            found = reader.offsets_for_times([at(0), at(0, partition=9), at(0, partition=1)])
        assert [(p.offset, p.error) for p in found] == [
            (0, None),
            (OFFSET_INVALID, KafkaError.UNKNOWN_TOPIC_OR_PART),
            (OFFSET_END, None),
        ]
