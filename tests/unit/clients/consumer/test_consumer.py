"""A consumer with assigned partitions, on a local disk: what it hands out, from where, and what it answers."""

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from support.consumers import (
    at,
    consumer,
    exactly,
    fill,
    offsets,
    places,
    poll_some,
    poll_texts,
    poll_until,
    raised,
)
from support.faults import FaultyStorage
from support.storage_adapters import ADAPTERS
from support.waiting import eventually

from tidelog.clients.consumer.assignment import PartitionState
from tidelog.clients.consumer.buffer import Buffer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from tidelog.clients.values.partitions import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED
from tidelog.log.delta.schema import RECORDS, RECORDS_WITH_HEADERS
from tidelog.log.follow import tailing
from tidelog.log.follow.cursor import Cursor, FollowedLog
from tidelog.log.lake import Lake
from tidelog.log.storage import LocalStorage
from tidelog.retention.lost_segments import give_up


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

    def test_offsets_of_a_topic_that_is_gone_are_not_committed(self, lake: Lake) -> None:
        fill(lake, "t", "old", "old")
        with consumer(lake, enable_auto_commit=False) as reader:
            reader.assign([at()])
            poll_texts(reader, 2)
            lake.delete_topic("t")
            lake.create_topic("t", partitions=1)
            poll_until(lambda: offsets(reader.position([at()])) == [OFFSET_INVALID], reader)
            assert raised(lambda: reader.commit(asynchronous=False)) == KafkaError._NO_OFFSET

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
            eventually(lambda: len(reader._buffer._entries) >= 2, "both partitions are read ahead")
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
            seen = poll_texts(reader, 1)
            if seen != ["a"]:
                seen += poll_texts(reader, 3)
            reader.pause([at(), at(partition=5)])
            seen += poll_texts(reader, 4 - len(seen))
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


def test_waiting_without_a_watcher_looks_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tailing, "open_watcher", lambda _: None)
    calls: list[str] = []
    faulty = FaultyStorage(LocalStorage(tmp_path), lambda m, p, phase: calls.append(m) if phase == "before" else None)
    with Lake(str(tmp_path), storage=faulty) as lake, consumer(lake, heartbeat_interval_ms=1000) as reader:
        lake.create_topic("t", partitions=2)
        reader.subscribe(["t"])
        reader.poll(0.5)
        calls.clear()
        reader.poll(1.0)
        assert len(calls) < 60


def test_a_lost_segment_is_told_at_each_retry_and_passed_once_it_is_given_up(tmp_path: Path) -> None:
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("t", 1)
        for value in ("before", "lost", "after"):
            fill(lake, "t", value)
        lost = lake.topic("t").state().live(0)[1].path
        lake.storage.delete(f"t/{lost}")
        with consumer(lake, fetch_error_backoff_ms=10) as reader:
            reader.assign([at(0)])
            first, *errors = poll_some(reader, 4)
            assert first.value() == b"before"
            assert [(m.error().name(), m.offset()) for m in errors] == [("INVALID_MSG", 1)] * 3
            assert all("and no others, by 'tidelog check --repair --give-up'" in m.error().str() for m in errors)
            assert [place.offset for place in reader.position([at()])] == [1]
            assert [given.done for given in give_up(lake, "t", [lost], execute=True)] == [True]
            poll_until(lambda: reader.position([at()])[0].offset == 3, reader)


def test_an_error_that_the_application_has_not_taken_yet_waits_once(lake: Lake) -> None:
    """A partition that stands still is retried for as long as the application is busy, and fills no memory."""
    buffer, one, other = Buffer(store=False), PartitionState("t", 0, 0), PartitionState("t", 1, 0)
    one.cursor, other.cursor = (Cursor(FollowedLog(lake, "t"), partition, 0) for partition in range(2))
    for _ in range(100):
        for owned in (one, other):
            buffer.notice(owned, KafkaError(KafkaError._FAIL, "lost"), 7)
    buffer.notice(one, KafkaError(KafkaError._FAIL, "lost"), 8)
    buffer.notice(one, KafkaError(KafkaError._FAIL, "gone"), 7)
    told = [(m.partition(), m.offset(), m.error().str()) for m in iter(buffer.take, None)]
    assert told == [(0, 7, "lost"), (1, 7, "lost"), (0, 8, "lost"), (0, 7, "gone")]
    buffer.notice(one, KafkaError(KafkaError._FAIL, "lost"), 7)
    assert buffer.take() is not None
