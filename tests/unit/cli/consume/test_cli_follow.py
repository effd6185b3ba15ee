"""Following a topic: records as they come, new partitions, pauses, ends."""

import io
import os

import pyarrow as pa
import pytest
from support.logs import memory_lake, values

from tidelog.cli.consume import follow as consume_follow
from tidelog.cli.consume.follow import Following, Idle, Reached
from tidelog.cli.consume.offsets import parse_span
from tidelog.cli.consume.output import Printer, reader_is_gone, text_style
from tidelog.log.base.errors import OffsetOutOfRangeError, TopicChangedError
from tidelog.server.process.stopping import Stop


def told(events):
    """Events as words: "0:a,b" for records of partition 0, "0|2" for its end at 2, "." for a pause."""
    for event in events:
        if isinstance(event, Idle):
            yield "."
        elif isinstance(event, Reached):
            yield f"{event.partition}|{event.offset}{'!' if event.last else ''}"
        else:
            yield f"{event.column('partition')[0]}:{','.join(v.decode() for v in event.column('value').to_pylist())}"


@pytest.fixture
def lake():
    lake, _, _ = memory_lake()
    lake.create_topic("orders", 2)
    return lake


def append(lake, partition, *texts):
    lake.topic("orders").append(values(*texts, partition=[partition] * len(texts)))


def follow(lake, *positions, **more):
    return told(Following(lake, "orders", parse_span(positions), **more).events())


def until_idle(events):
    """What is printed up to the next pause."""
    found = []
    for event in events:
        if event == ".":
            return found
        found.append(event)
    return [*found, "over"]


def test_records_that_come_later_are_told(lake):
    append(lake, 0, "a")
    events = follow(lake)
    assert until_idle(events) == ["0:a", "1|0", "0|1"]
    assert until_idle(events) == []
    append(lake, 0, "b", "c")
    append(lake, 1, "d")
    assert until_idle(events) == ["0:b,c", "1:d", "0|3", "1|1"]


def test_from_the_end_only_new_records_count(lake):
    append(lake, 0, "a")
    events = follow(lake, "end")
    assert until_idle(events) == ["0|1", "1|0"]
    append(lake, 0, "b")
    assert until_idle(events) == ["0:b", "0|2"]


def test_new_partitions_are_followed_from_their_beginning(lake):
    events = follow(lake, "end")
    until_idle(events)
    lake.alter_topic("orders", partitions=4)
    append(lake, 3, "x")
    assert until_idle(events) == ["2|0", "3:x", "3|1"]


def test_new_partitions_are_no_part_of_a_choice(lake):
    events = follow(lake, only=[1])
    until_idle(events)
    lake.alter_topic("orders", partitions=3)
    append(lake, 2, "x")
    assert until_idle(events) == []


def test_to_the_end_as_of_the_start(lake):
    append(lake, 0, "a", "b")
    work = Following(lake, "orders", parse_span([]), to_end=True)
    append(lake, 0, "late")
    append(lake, 1, "late")
    assert until_idle(told(work.events())) == ["0:a,b", "1|0", "0|2!", "over"]


def test_to_a_time(lake):
    lake.topic("orders").append(values("a", "b", "c", partition=[0] * 3, timestamp=[1000, 2000, 3000]))
    events = follow(lake, "e@2000")
    assert until_idle(events) == ["0:a", "0|1", "1|0"]
    append(lake, 0, "not any more")
    append(lake, 1, "late")  # the clock of the test is past that time
    assert until_idle(events) == ["1|0!", "over"]


def test_partitions_take_turns(lake, monkeypatch):
    monkeypatch.setattr(consume_follow, "BATCH_RECORDS", 2)
    append(lake, 0, "a", "b", "c", "d")
    append(lake, 1, "e", "f", "g")
    assert until_idle(follow(lake)) == ["0:a,b", "1:e,f", "0:c,d", "1:g", "0|4", "1|3"]


def test_only_so_many_partitions_hold_a_file_open(lake, monkeypatch):
    monkeypatch.setattr(consume_follow, "PARTITIONS_AT_ONCE", 1)
    monkeypatch.setattr(consume_follow, "BATCH_RECORDS", 1)
    append(lake, 0, "a", "b")
    append(lake, 1, "c", "d")
    assert until_idle(follow(lake)) == ["0:a", "0:b", "0|2", "1:c", "1:d", "1|2"]


def test_records_deleted_before_they_were_read_are_an_error(lake):
    append(lake, 0, "a")
    events = follow(lake)
    until_idle(events)
    append(lake, 0, "b", "c")
    lake.delete_records("orders", {0: 2})
    with pytest.raises(OffsetOutOfRangeError, match="partition 0: offsets 1 to 3 are asked for, but it has 2 to 3"):
        until_idle(events)


def test_a_topic_that_is_created_again_is_another_one(lake):
    events = follow(lake)
    until_idle(events)
    lake.delete_topic("orders")
    lake.create_topic("orders", 2)
    with pytest.raises(TopicChangedError):
        until_idle(events)


def test_each_partition_starts_by_its_own_offsets(lake):
    append(lake, 0, "a", "b", "c")
    append(lake, 1, "d")
    assert until_idle(follow(lake, "-2")) == ["0:b,c", "1:d", "0|3", "1|1"]


def test_an_idle_topic_is_looked_at_ever_less_often_and_cheaply():
    calls = []
    lake, _, clock = memory_lake(lambda method, path, phase: calls.append(method) if phase == "before" else None)
    lake.create_topic("orders", 2)
    events = follow(lake)
    until_idle(events)
    pauses = []
    for _ in range(15):
        calls.clear()
        before = clock.elapsed_s()
        assert until_idle(events) == []
        pauses.append(round(clock.elapsed_s() - before, 4))
        assert calls == ["get"]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.005, 0.2)
    append(lake, 0, "a")
    until_idle(events)
    before = clock.elapsed_s()
    until_idle(events)
    assert round(clock.elapsed_s() - before, 4) == 0.005


# --- printing ----------------------------------------------------------------------------------------------


class Watched(io.BytesIO):
    """Bytes in memory that remember how much there was at the last flush."""

    flushed = b""

    def flush(self):
        self.flushed = self.getvalue()


def batch(*texts):
    return pa.RecordBatch.from_pylist([{"partition": 0, "offset": n, "value": t.encode()} for n, t in enumerate(texts)])


def test_what_is_printed_is_flushed_when_nothing_comes():
    out = Watched()
    seen = []

    def events():
        yield batch("a")
        yield batch("b")
        seen.append(out.flushed)
        yield Idle()
        seen.append(out.flushed)

    Printer("t", text_style(r"%s\n", nulls=False), out, None, quiet=True).print_all(events(), Stop())
    assert seen == [b"", b"a\nb\n"]


def test_a_stop_ends_it_after_a_whole_batch():
    out, stop = Watched(), Stop()

    def events():
        yield batch("a", "b")
        stop.reason = "SIGTERM"
        yield batch("c", "d")
        yield batch("never")

    Printer("t", text_style("%s", nulls=False), out, None, quiet=True).print_all(events(), stop)
    assert out.flushed == b"abcd"


def test_a_reader_that_is_gone_is_noticed_without_a_record():
    read, write = os.pipe()
    with open(write, "wb") as out:
        assert not reader_is_gone(out)
        os.close(read)
        assert reader_is_gone(out)
        with pytest.raises(BrokenPipeError):
            Printer("t", text_style("%s", nulls=False), out, None, quiet=True).print_all([Idle()], Stop())
    assert not reader_is_gone(io.BytesIO())
