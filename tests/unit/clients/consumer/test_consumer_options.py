"""Each option of a consumer changes what it does; and the parts it is made of, one by one."""

import itertools
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.consumers import consumer, exactly, fill, poll_some, poll_texts, text
from support.logs import values
from support.waiting import eventually

from tidelog.clients.consumer.assignment import ConsumerAssignment
from tidelog.clients.consumer.buffer import Buffer
from tidelog.clients.consumer.commits import to_offsets
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.consumer.start_offsets import RESET, Start, find_start
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import Message
from tidelog.clients.values.partitions import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TopicPartition,
)
from tidelog.groups.model import CommittedOffset
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState


def big(lake: Lake, count: int, partition: int = 0) -> None:
    """Records of 1,000 bytes, one segment."""
    table = pa.table({"value": [bytes([i % 251]) * 1000 for i in range(count)], "partition": [partition] * count})
    lake.topic("t").append(table, acks=1)


def read_ahead(reader: Consumer) -> int:
    """How many records are read ahead, once the fetcher reads no further."""
    eventually(lambda: reader._fetcher._paused, "the fetcher pauses")
    return reader._buffer.records


def both(start: int = 0) -> list[TopicPartition]:
    return [TopicPartition("t", p, start) for p in range(2)]


class TestFetching:
    def test_max_partition_fetch_bytes_makes_partitions_take_turns(self, lake: Lake) -> None:
        for partition in range(2):
            big(lake, 1000, partition)
        longest = {}
        for limit in (10_000, 10_000_000):
            with consumer(lake, max_partition_fetch_bytes=limit) as reader:
                reader.assign(both())
                runs = itertools.groupby(poll_some(reader, 2000), key=Message.partition)
                longest[limit] = max(len(list(run)) for _, run in runs)
        assert longest[10_000] <= 10
        assert longest[10_000_000] == 1000

    def test_fetch_max_bytes_ends_a_read(self, lake: Lake) -> None:
        for partition in range(2):
            big(lake, 100, partition)
        with consumer(lake, fetch_max_bytes=1) as reader:
            assert reader._fetcher._limits.max_bytes == 1
            reader.assign(both())
            assert len(poll_some(reader, 200)) == 200

    def test_fetch_min_bytes_waits_for_more_at_most_fetch_wait_max_ms(self, lake: Lake) -> None:
        fill(lake, "t", "a")
        for wait_ms in (0, 1_000):
            with consumer(lake, fetch_min_bytes=100_000_000, fetch_wait_max_ms=wait_ms) as reader:
                began = time.monotonic()
                reader.assign(both())
                assert poll_texts(reader, 1) == ["a"]
                assert time.monotonic() - began >= wait_ms / 1000
        with consumer(lake, fetch_min_bytes=100_000_000, fetch_wait_max_ms=300_000) as reader:
            reader.assign(both())
            assert poll_texts(reader, 1, 1.0) == []

    def test_queued_max_messages_kbytes_bounds_what_is_read_ahead(self, lake: Lake) -> None:
        big(lake, 2000)
        with consumer(lake, queued_max_messages_kbytes=100, max_partition_fetch_bytes=50_000) as reader:
            reader.assign(both())
            assert 50 < read_ahead(reader) < 200
            assert len(poll_some(reader, 2000)) == 2000

    def test_queued_min_messages_bounds_it_too(self, lake: Lake) -> None:
        big(lake, 2000)
        with consumer(lake, queued_min_messages=10, max_partition_fetch_bytes=50_000) as reader:
            reader.assign(both())
            assert 10 < read_ahead(reader) < 100
            assert len(poll_some(reader, 2000)) == 2000

    def test_max_poll_records_bounds_consume(self, lake: Lake) -> None:
        fill(lake, "t", *"abcde")
        with consumer(lake, max_poll_records=2) as reader:
            reader.assign(both())
            assert poll_texts(reader, 100) == ["a", "b"]

    def test_enable_partition_eof_tells_of_each_end(self, lake: Lake) -> None:
        fill(lake, "t", "a")
        with consumer(lake, enable_partition_eof=True) as reader:
            reader.assign(both()[:1])
            _, end = poll_some(reader, 2)
            assert (end.error(), end.topic(), end.partition(), end.offset()) == (KafkaError._PARTITION_EOF, "t", 0, 1)
            fill(lake, "t", "b")
            exactly(reader, "b", "_PARTITION_EOF")
        with consumer(lake) as reader:
            reader.assign(both()[:1])
            exactly(reader, "a", "b")

    def test_fetch_error_backoff_ms(self, lake: Lake, tmp_path: Path) -> None:
        fill(lake, "t", "a")
        path = tmp_path / "t" / lake.topic("t").state().live(0)[0].path
        path.rename(tmp_path / "kept")
        with consumer(lake, fetch_error_backoff_ms=20) as reader, consumer(lake, fetch_error_backoff_ms=60_000) as slow:
            for one in (reader, slow):
                one.assign(both())
                assert poll_texts(one, 1) == ["INVALID_MSG"]
            (tmp_path / "kept").rename(path)
            while (texts := poll_texts(reader, 1)) == ["INVALID_MSG"]:
                pass  # it has looked again before the file was back
            assert texts == ["a"]
            assert poll_texts(slow, 1, 0.2) == []


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted", None])
def test_isolation_level_is_taken_without_a_word(level: str | None, lake: Lake, caplog: Any) -> None:
    consumer(lake, isolation_level=level).close()
    assert not caplog.records


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ({"group.id": None}, "group.id must be set"),
        ({"group.id": ""}, "group.id"),
        ({"group.id": "g" * 250}, "group.id"),
        ({"auto.offset.rest": "earliest"}, "auto.offset.reset"),
        ({"auto.offset.reset": "first"}, "auto.offset.reset"),
        ({"isolation.level": "dirty"}, "read_uncommitted, read_committed"),
        ({"session.timeout.ms": 10_000, "max.poll.interval.ms": 5_000}, "max.poll.interval.ms"),
        ({"partition.assignment.strategy": "range,cooperative-sticky"}, "cooperative-sticky"),
    ],
)
def test_configurations_that_are_refused(lake: Lake, conf: dict[str, Any], words: str) -> None:
    with pytest.raises((KafkaException, ValueError), match=words):
        Consumer({"lake": lake, "group.id": "g", **conf})


# --- parts -------------------------------------------------------------------------------------------------


def state(start: int, end: int) -> TopicState:
    return TopicState(starts={0: start}, ends={0: end})


@pytest.mark.parametrize(
    ("start", "committed", "reset", "found"),
    [
        (7, 5, "earliest", Start(7)),
        (99, None, "earliest", Start(99)),
        (OFFSET_BEGINNING, 5, "latest", Start(3)),
        (OFFSET_END, 5, "earliest", Start(10)),
        (OFFSET_STORED, 5, "latest", Start(5, 5)),
        (OFFSET_INVALID, 5, "latest", Start(5, 5)),
        (OFFSET_STORED, None, "latest", Start(10)),
        (OFFSET_STORED, None, "earliest", Start(3)),
        (OFFSET_STORED, None, "error", None),
        (RESET, 5, "earliest", Start(3)),
        (RESET, 5, "latest", Start(10)),
        (RESET, 5, "error", None),
        (-2000 - 2, 5, "error", Start(8)),
        (-2000 - 50, 5, "error", Start(3)),
    ],
)
def test_where_to_start(start: int, committed: int | None, reset: str, found: Start | None) -> None:
    offsets = {} if committed is None else {("t", 0): CommittedOffset(committed)}
    answer = find_start(("t", 0), start, state(3, 10), offsets, reset, "why")
    if found is None:
        assert isinstance(answer, KafkaError)
        assert answer == KafkaError._AUTO_OFFSET_RESET
    else:
        assert answer == found


def test_what_a_commit_names() -> None:
    message = Message("t", 1, 41)
    assert to_offsets(message, None) == {("t", 1): CommittedOffset(42)}
    one = TopicPartition("t", 0, 5, "m", 3)
    assert to_offsets(None, [one, TopicPartition("t", 1)]) == {("t", 0): CommittedOffset(5, "m", 3)}
    assert to_offsets(None, None) is None
    with pytest.raises(KafkaException):
        to_offsets(Message("t", 1, 41, error=KafkaError(KafkaError._PARTITION_EOF)), None)


class TestBuffer:
    def filled(self, lake: Lake) -> tuple[ConsumerAssignment, Buffer]:
        assignment, buffer = ConsumerAssignment(), Buffer(store=True)
        assignment.add(both())
        fill(lake, "t", "a", "b", "c")
        (batch,) = lake.topic("t").read(0, include_headers=True)
        for owned in assignment:
            owned.cursor = Any  # type: ignore[assignment]
            buffer.add(owned, owned.cursor, batch, batch.nbytes, 1)  # type: ignore[arg-type]
        return assignment, buffer

    def test_it_counts_what_is_in_it(self, lake: Lake) -> None:
        _, buffer = self.filled(lake)
        full = buffer.bytes
        assert buffer.records == 6
        taken = [buffer.take() for _ in range(3)]
        assert [text(m) for m in taken if m] == ["a", "b", "c"]
        assert (buffer.records, buffer.bytes) == (3, full / 2)
        assert len(buffer.take_many(9)) == 3
        assert (buffer.records, buffer.bytes, buffer.take(), buffer.take_many(1)) == (0, 0, None, [])

    def test_what_was_moved_is_passed_over(self, lake: Lake) -> None:
        assignment, buffer = self.filled(lake)
        first = assignment.get(("t", 0))
        assert first is not None
        buffer.take()
        first.move(0)
        message = buffer.take()
        assert message is not None
        assert message.partition() == 1
        assert buffer.records == 2

    def test_a_purge_counts_again(self, lake: Lake) -> None:
        assignment, buffer = self.filled(lake)
        buffer.take()
        full = buffer.bytes
        assignment.drop([("t", 1)])
        buffer.purge()
        assert (buffer.records, buffer.bytes) == (2, full / 2)

    def test_what_is_taken_is_stored(self, lake: Lake) -> None:
        assignment, buffer = self.filled(lake)
        buffer.take()
        buffer.take_batch(1)
        assert assignment.uncommitted() == {("t", 0): CommittedOffset(2)}
        assignment.committed(assignment.uncommitted())
        assert assignment.uncommitted() == {}


def test_values_are_bytes_of_any_type_of_column(lake: Lake) -> None:
    lake.topic("t").append(values("a", key=["é"], partition=[0]))
    with consumer(lake) as reader:
        reader.assign(both())
        (message,) = poll_some(reader, 1)
    assert (message.key(), message.value(), len(message)) == ("é".encode(), b"a", 1)
