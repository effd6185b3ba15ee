"""What a consumer has read ahead follows the log: it hands out no record that a rewrite took away since."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.consumers import consumer, exactly, poll_texts
from support.logs import read_offsets
from support.rewrites import TAKE_RECORDS_AWAY, append_new, fill_rounds, merge
from support.waiting import eventually

from tidelog.clients.consumer.buffer import Records
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.lake import Lake

KINDS = pytest.mark.parametrize("kind", TAKE_RECORDS_AWAY)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as opened:
        fill_rounds(opened)
        yield opened


def read_ahead(reader: Consumer) -> list[Records]:
    """What waits for the application."""
    with reader._lock:
        found = [one for one in reader._buffer._entries if isinstance(one, Records)]
        return [one for one in found if one.cursor is one.owned.cursor]


def has_read(reader: Consumer, records: int) -> bool:
    return sum(one.batch.num_rows - one.taken for one in read_ahead(reader)) >= records


def is_of(reader: Consumer, version: int) -> bool:
    """Whether the consumer has read again what it had read ahead."""
    found = read_ahead(reader)
    return bool(found) and all(one.version >= version for one in found)


@KINDS
def test_a_consumer_amid_gets_what_the_log_holds_by_then(lake: Lake, kind: str) -> None:
    with consumer(lake, enable_auto_commit=False) as reader:
        reader.assign([TopicPartition("t", 0)])
        assert poll_texts(reader, 3) == ["0", "1", "2"]
        eventually(lambda: has_read(reader, 27), "all is read ahead")
        TAKE_RECORDS_AWAY[kind](lake, "t")
        left = [text for offset, text in read_offsets(lake, "t") if offset >= 3]
        assert len(left) < 27
        version = lake.topic("t").state().rewrites.version
        eventually(lambda: is_of(reader, version), "what was read ahead is read again")
        exactly(reader, *left)
        append_new(lake)
        assert poll_texts(reader, 1) == ["new"]


@KINDS
def test_a_consumer_that_begins_again_gets_what_the_log_holds(lake: Lake, kind: str) -> None:
    TAKE_RECORDS_AWAY[kind](lake, "t")
    with consumer(lake, enable_auto_commit=False) as reader:
        reader.assign([TopicPartition("t", 0)])
        exactly(reader, *(text for _, text in read_offsets(lake, "t")))


def test_a_full_buffer_is_read_again_too(lake: Lake) -> None:
    """No fetch waits to be answered then."""
    with consumer(lake, enable_auto_commit=False, queued_min_messages=1) as reader:
        reader.assign([TopicPartition("t", 0)])
        assert poll_texts(reader, 1) == ["0"]
        eventually(lambda: reader._fetcher._paused and has_read(reader, 1), "as much is read ahead as may be")
        TAKE_RECORDS_AWAY["forget"](lake, "t")
        version = lake.topic("t").state().rewrites.version
        eventually(lambda: is_of(reader, version), "what was read ahead is read again")
        exactly(reader, *(text for offset, text in read_offsets(lake, "t") if offset >= 1))


def test_a_merge_leaves_what_is_read_ahead(lake: Lake) -> None:
    with consumer(lake, enable_auto_commit=False) as reader:
        reader.assign([TopicPartition("t", 0)])
        assert poll_texts(reader, 3) == ["0", "1", "2"]
        eventually(lambda: has_read(reader, 27), "all is read ahead")
        before = read_ahead(reader)
        merge(lake, "t")
        append_new(lake)
        eventually(lambda: has_read(reader, 28), "what came after it is read ahead")
        assert read_ahead(reader)[: len(before)] == before
        exactly(reader, *map(str, range(3, 30)), "new")


@KINDS
def test_a_read_that_lasts_hands_out_nothing_that_is_gone(
    lake: Lake, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a download from the console, whose client takes its time."""
    monkeypatch.setattr("tidelog.log.read_on.LOOK_S", 0.0)
    rows = (
        (row["offset"], row["value"].decode())
        for batch in lake.topic("t").read(0, batch_records=1)
        for row in batch.to_pylist()
    )
    first = [next(rows) for _ in range(3)]
    assert first == [(at, str(at)) for at in range(3)]
    TAKE_RECORDS_AWAY[kind](lake, "t")
    assert list(rows) == [one for one in read_offsets(lake, "t") if one[0] >= 3]
