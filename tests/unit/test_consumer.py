"""A consumer with assigned partitions, on a local disk: what it hands out, from where, and what it answers."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.consumers import consumer, exactly, fill, offsets, places, poll_some, poll_texts
from support.logs import START_MS
from support.storage_adapters import ADAPTERS

from tidelog.clients.constants import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
)
from tidelog.clients.consumer import Consumer
from tidelog.clients.consumer_metadata import ConsumerGroupMetadata
from tidelog.clients.errors import KafkaError, KafkaException
from tidelog.clients.topic_partition import TopicPartition
from tidelog.log import tailing
from tidelog.log.lake import Lake
from tidelog.log.schema import RECORDS, RECORDS_WITH_HEADERS


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as opened:
        opened.create_topic("t", partitions=2)
        yield opened


def at(offset: int = OFFSET_INVALID, partition: int = 0, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition, offset)


def raised(call: Any) -> KafkaError:
    with pytest.raises(KafkaException) as caught:
        call()
    error: KafkaError = caught.value.args[0]
    return error


class TestMessages:
    def test_a_record_as_a_message(self, lake: Lake) -> None:
        lake.topic("t").append(
            pa.table(
                {
                    "key": [b"k", None],
                    "value": [b"v", None],
                    "headers": [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None],
                    "timestamp": [1234, 5678],
                    "partition": [1, 1],
                }
            )
        )
        with consumer(lake) as reader:
            reader.assign([at(partition=1)])
            first, second = poll_some(reader, 2)
        assert (first.topic(), first.partition(), first.offset()) == ("t", 1, 0)
        assert (first.key(), first.value()) == (b"k", b"v")
        assert first.headers() == [("a", b"1"), ("a", None)]
        assert first.timestamp() == (TIMESTAMP_CREATE_TIME, 1234)
        assert (second.offset(), second.key(), second.value(), second.headers()) == (1, None, None, None)
        assert second.timestamp() == (TIMESTAMP_CREATE_TIME, 5678)
        assert (first.error(), first.latency(), first.leader_epoch()) == (None, None, None)

    def test_log_append_time_is_told(self, lake: Lake) -> None:
        lake.create_topic("l", partitions=1, config={"message.timestamp.type": "LogAppendTime"})
        fill(lake, "l", "a")
        with consumer(lake) as reader:
            reader.assign([at(topic="l")])
            (message,) = poll_some(reader, 1)
        assert message.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME

    def test_poll_waits_for_what_comes(self, lake: Lake) -> None:
        with consumer(lake) as reader:
            reader.assign([at(0)])
            assert reader.poll(0.05) is None
            threading.Timer(0.1, fill, (lake, "t", "new")).start()
            message = reader.poll()
            assert message is not None
            assert message.value() == b"new"

    def test_consume_waits_for_all_or_its_time(self, lake: Lake) -> None:
        fill(lake, "t", "a", "b", "c")
        with consumer(lake) as reader:
            reader.assign([at(0)])
            assert poll_texts(reader, 2) == ["a", "b"]
            began = time.monotonic()
            assert poll_texts(reader, 2, 1.0) == ["c"]
            assert time.monotonic() - began >= 1.0
            assert reader.consume(0, 0.0) == []

    def test_a_large_batch_is_handed_out_in_parts(self, lake: Lake) -> None:
        lake.topic("t").append(pa.table({"value": [str(i) for i in range(10_000)], "partition": [0] * 10_000}))
        with consumer(lake) as reader:
            reader.assign([at(0)])
            mixed = [*poll_texts(reader, 3), *[text for _ in range(4_200) for text in poll_texts(reader, 1)]]
            first = reader.poll(5)
            assert first is not None
            mixed += [first.value().decode(), *reader.consume_table(1_000, 5).column("value").to_pylist()]
            mixed += poll_texts(reader, 10_000 - len(mixed))
        assert [t if isinstance(t, str) else t.decode() for t in mixed] == [str(i) for i in range(10_000)]

    def test_a_consumer_is_iterated(self, lake: Lake) -> None:
        fill(lake, "t", "a", "b")
        with consumer(lake, enable_partition_eof=True) as reader:
            reader.assign([at(0)])
            found = [message.value() for _, message in zip(range(2), reader, strict=False)]
            assert found == [b"a", b"b"]
            reader.assign([at(partition=9)])
            assert raised(lambda: next(reader)) == KafkaError.UNKNOWN_TOPIC_OR_PART


class TestTables:
    def test_columns_are_those_of_a_read(self, lake: Lake) -> None:
        fill(lake, "t", "a", "b")
        with consumer(lake) as reader:
            reader.assign([at(0)])
            table = reader.consume_table(2)
            assert table.schema == RECORDS
            assert table.to_pylist() == pa.Table.from_batches(lake.topic("t").read(0)).to_pylist()
            reader.seek(at(1))
            assert reader.consume_table(1, include_headers=True).schema == RECORDS_WITH_HEADERS

    def test_an_empty_table_has_columns_too(self, lake: Lake) -> None:
        with consumer(lake) as reader:
            reader.assign([at(0)])
            assert reader.consume_table(5, 0.01).schema == RECORDS

    def test_a_table_ends_at_an_error_which_is_raised_next(self, lake: Lake) -> None:
        fill(lake, "t", "a")
        with consumer(lake) as reader:
            reader.assign([at(0)])
            assert reader.consume_table(1, 5).num_rows == 1
            reader.incremental_assign([at(0, partition=7)])
            fill(lake, "t", "b")
            found = []
            with pytest.raises(KafkaException) as caught:  # noqa: PT012 - before or after the other record
                for _ in range(3):
                    found += reader.consume_table(2, 1).column("value").to_pylist()
            assert caught.value.args[0] == KafkaError.UNKNOWN_TOPIC_OR_PART
            found += reader.consume_table(1, 1 if not found else 0).column("value").to_pylist()
            assert found == [b"b"]

    def test_tables_move_the_position_and_are_committed(self, lake: Lake) -> None:
        fill(lake, "t", "a", "b", "c")
        with consumer(lake) as reader:
            reader.assign([at(0)])
            reader.consume_table(2, 5)
            assert offsets(reader.position([at()])) == [2]
            assert offsets(reader.commit(asynchronous=False) or []) == [2]


class TestStarts:
    @pytest.mark.parametrize(
        ("offset", "first"),
        [(0, "0"), (7, "7"), (OFFSET_BEGINNING, "2"), (OFFSET_INVALID, "5"), (OFFSET_STORED, "5"), (-2003, "7")],
    )
    def test_an_assigned_offset(self, lake: Lake, offset: int, first: str) -> None:
        fill(lake, "t", *map(str, range(10)))
        with consumer(lake) as setter:
            setter.commit(offsets=[at(5)], asynchronous=False)
        if offset != 0:
            lake.delete_records("t", {0: 2})
        with consumer(lake) as reader:
            reader.assign([at(offset)])
            assert poll_texts(reader, 1) == [first]

    @pytest.mark.parametrize("policy", ["latest", "largest", "end"])
    def test_latest_is_the_end_as_of_the_assignment(self, lake: Lake, policy: str) -> None:
        fill(lake, "t", "old")
        with consumer(lake, auto_offset_reset=policy, enable_partition_eof=True) as reader:
            reader.assign([at()])
            assert poll_texts(reader, 1) == ["_PARTITION_EOF"]
            fill(lake, "t", "new")
            assert poll_texts(reader, 1) == ["new"]

    @pytest.mark.parametrize("policy", ["earliest", "smallest", "beginning"])
    def test_earliest_is_the_log_start(self, lake: Lake, policy: str) -> None:
        fill(lake, "t", "a", "b")
        lake.delete_records("t", {0: 1})
        with consumer(lake, auto_offset_reset=policy) as reader:
            reader.assign([at()])
            assert poll_texts(reader, 1) == ["b"]

    @pytest.mark.parametrize("policy", ["error", "none"])
    def test_error_says_so_until_it_is_told_where(self, lake: Lake, policy: str) -> None:
        fill(lake, "t", "a")
        with consumer(lake, auto_offset_reset=policy) as reader:
            reader.assign([at()])
            exactly(reader, "_AUTO_OFFSET_RESET")
            reader.seek(at(0))
            assert poll_texts(reader, 1) == ["a"]

    @pytest.mark.parametrize(
        ("policy", "found"), [("earliest", ["1", "2"]), ("latest", []), ("error", ["_AUTO_OFFSET_RESET"])]
    )
    @pytest.mark.parametrize("offset", [0, 99])
    def test_out_of_range_is_for_the_policy(self, lake: Lake, policy: str, found: list[str], offset: int) -> None:
        fill(lake, "t", "0", "1", "2")
        lake.delete_records("t", {0: 1})
        with consumer(lake, auto_offset_reset=policy) as reader:
            reader.assign([at(offset)])
            exactly(reader, *found)

    def test_a_topic_made_again_is_read_by_the_policy(self, lake: Lake) -> None:
        fill(lake, "t", "old", "old")
        with consumer(lake) as reader:
            reader.assign([at()])
            poll_texts(reader, 2)
            lake.delete_topic("t")
            assert poll_texts(reader, 1) == ["UNKNOWN_TOPIC_OR_PART"]
            lake.create_topic("t", partitions=1)
            fill(lake, "t", "new")
            assert poll_texts(reader, 1) == ["new"]
            assert offsets(reader.commit(asynchronous=False) or []) == [1]

    def test_a_topic_that_comes_later(self, lake: Lake) -> None:
        with consumer(lake) as reader:
            reader.assign([at(topic="later")])
            exactly(reader, "UNKNOWN_TOPIC_OR_PART")
            lake.create_topic("later", partitions=1)
            fill(lake, "later", "a")
            assert poll_texts(reader, 1) == ["a"]


class TestAssignment:
    def test_it_is_replaced_as_a_whole_or_in_parts(self, lake: Lake) -> None:
        with consumer(lake) as reader:
            assert reader.assignment() == []
            reader.assign([at(0), at(partition=1)])
            assert places(reader.assignment()) == [("t", 0), ("t", 1)]
            reader.assign([at(partition=1)])
            assert places(reader.assignment()) == [("t", 1)]
            reader.incremental_assign([at(0)])
            assert places(reader.assignment()) == [("t", 0), ("t", 1)]
            reader.incremental_unassign([at(partition=1)])
            assert places(reader.assignment()) == [("t", 0)]
            assert raised(lambda: reader.incremental_assign([at(0)])) == KafkaError._CONFLICT
            assert raised(lambda: reader.incremental_unassign([at(partition=1)])) == KafkaError._INVALID_ARG
            reader.unassign()
            assert reader.assignment() == []

    def test_what_was_read_ahead_of_a_partition_that_left_is_dropped(self, lake: Lake) -> None:
        fill(lake, "t", *"abc")
        fill(lake, "t", *"xyz", partition=1)
        with consumer(lake) as reader:
            reader.assign([at(0), at(0, partition=1)])
            while len(reader._buffer._entries) < 2:
                time.sleep(0.001)
            reader.incremental_unassign([at(0)])
            exactly(reader, "x", "y", "z")

    def test_new_partitions_are_not_found(self, lake: Lake) -> None:
        with consumer(lake, topic_metadata_refresh_interval_ms=10) as reader:
            reader.assign([at(0), at(0, partition=1)])
            lake.alter_topic("t", partitions=3)
            fill(lake, "t", "c", partition=2)
            fill(lake, "t", "a")
            exactly(reader, "a")

    def test_seek(self, lake: Lake) -> None:
        fill(lake, "t", *"abcde")
        with consumer(lake) as reader:
            reader.assign([at(0)])
            assert poll_texts(reader, 2) == ["a", "b"]
            reader.seek(at(4))
            assert offsets(reader.position([at()])) == [4]
            assert poll_texts(reader, 1) == ["e"]
            reader.seek(at(OFFSET_BEGINNING))
            assert poll_texts(reader, 1) == ["a"]
            reader.seek(at(OFFSET_END))
            assert poll_texts(reader, 1, 0.1) == []
            assert raised(lambda: reader.seek(at(0, partition=1))) == KafkaError._UNKNOWN_PARTITION

    def test_paused_partitions_are_silent_and_nothing_of_them_is_lost(self, lake: Lake) -> None:
        fill(lake, "t", *"abc")
        fill(lake, "t", *"xyz", partition=1)
        with consumer(lake, auto_offset_reset="latest") as reader:
            reader.assign([at(0), at(0, partition=1)])
            seen: list[str] = []
            while "a" not in seen:
                seen += poll_texts(reader, 1)
            reader.pause([at(), at(partition=5)])
            while len(seen) < 4:
                seen += poll_texts(reader, 1)
            assert poll_texts(reader, 1, 0.2) == []
            assert sorted(seen) == ["a", "x", "y", "z"]
            reader.resume([at()])
            assert poll_texts(reader, 2) == ["b", "c"]

    def test_a_partition_paused_before_its_first_record_starts_where_it_was_assigned(self, lake: Lake) -> None:
        with consumer(lake, auto_offset_reset="latest", enable_partition_eof=True) as reader:
            reader.assign([at()])
            assert poll_texts(reader, 1) == ["_PARTITION_EOF"]
            reader.pause([at()])
            fill(lake, "t", "meanwhile")
            reader.resume([at()])
            assert poll_texts(reader, 1) == ["meanwhile"]


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
            while not told:
                reader.poll(0.01)
            assert told == [(None, [2])]
            reader.commit()
            reader.poll(0)
            assert told[1:] == [(KafkaError(KafkaError._NO_OFFSET), [])]
            reader.commit(offsets=[at(77)])
            while len(told) < 3:
                reader.poll(0.01)
            assert told[2] == (KafkaError(KafkaError.OFFSET_OUT_OF_RANGE), [77])

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
            until = time.monotonic() + 10
            while offsets(other.committed([at()])) != [1]:
                assert time.monotonic() < until
                time.sleep(0.01)


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


def test_a_forgotten_consumer_stops_its_threads(lake: Lake) -> None:
    before = threading.active_count()
    reader = consumer(lake)
    reader.assign([at()])
    assert threading.active_count() > before
    del reader
    assert threading.active_count() == before


@pytest.mark.parametrize("adapter", ["memory", "objects in files"])
def test_a_consumer_reads_from_other_stores_too(tmp_path: Path, adapter: str) -> None:
    storage = ADAPTERS[adapter](tmp_path)
    with Lake(storage.uri, storage=storage, checkpointer=lambda *_: None) as lake, consumer(lake) as reader:
        lake.create_topic("t", partitions=2)
        reader.subscribe(["t"])
        fill(lake, "t", "a")
        assert poll_texts(reader, 1) == ["a"]
        fill(lake, "t", "b", partition=1)
        assert poll_texts(reader, 1) == ["b"]


def test_waiting_without_a_watcher_is_cheap_too(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tailing, "open_watcher", lambda _: None)
    with consumer(lake, heartbeat_interval_ms=1000) as reader:
        reader.subscribe(["t"])
        reader.poll(0.5)
        began = time.process_time()
        reader.poll(1.0)
        assert time.process_time() - began < 0.05
