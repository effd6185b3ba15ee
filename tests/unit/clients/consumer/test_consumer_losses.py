"""A member that the group went on without, and that is one again before its application hears of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.consumers import PATIENCE_S, Told, consumer, filled_lake, offsets, poll_some
from support.producers import producer
from support.waiting import eventually

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import OFFSET_INVALID, TopicPartition
from tidelog.groups.rules.members import leave
from tidelog.log.lake import Lake

ALL = [("t", p) for p in range(4)]
Calls = list[tuple[str, list[tuple[str, int]]]]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with filled_lake(tmp_path) as opened:
        yield opened


def subscribe(reader: Consumer) -> Calls:
    """Subscribe to `t`; the callbacks' arguments."""
    told = Told()
    told.subscribe(reader)
    return told.calls


def thrown_out_and_back(reader: Consumer) -> None:
    """Take a reader out of group `g`, as after a silence, and wait until it is a member again, by itself."""
    log, member_id = reader._group.log, reader.memberid() or ""
    log.decide("g", lambda view: leave(view, "g", member_id, now_ms=0))
    eventually(lambda: (reader.memberid() or member_id) != member_id and reader._group.owned(), "it is a member again")


def test_what_was_lost_is_not_committed_in_a_later_generation(lake: Lake) -> None:
    with consumer(lake, enable_auto_commit=False) as reader:
        calls = subscribe(reader)
        messages = poll_some(reader, 20)
        thrown_out_and_back(reader)
        with pytest.raises(KafkaException) as caught:
            reader.commit(asynchronous=False)
        assert caught.value.args[0] == KafkaError._NO_OFFSET
        assert len(poll_some(reader, 20)) == len(messages)
    assert [name for name, _ in calls] == ["assign", "lost", "assign", "revoke"]


def test_what_was_lost_is_in_no_transaction_of_a_later_generation(lake: Lake) -> None:
    """The application has not polled since, so that it does not know that others may have read the same."""
    lake.create_topic("out", 1)
    with consumer(lake, enable_auto_commit=False) as reader, producer(lake, transactional_id="x") as writer:
        reader.subscribe(["t"])
        poll_some(reader, 20)
        read_as = reader.consumer_group_metadata()
        thrown_out_and_back(reader)
        assert reader.consumer_group_metadata() == read_as
        writer.init_transactions()
        writer.begin_transaction()
        writer.produce("out", "copied")
        with pytest.raises(KafkaException) as caught:
            writer.send_offsets_to_transaction(reader.position(reader.assignment()), reader.consumer_group_metadata())
        assert caught.value.args[0].txn_requires_abort()
        writer.abort_transaction()
        assert len(poll_some(reader, 20)) == 20
        assert reader.consumer_group_metadata().generation > read_as.generation
    with consumer(lake) as asker:
        assert offsets(asker.committed([TopicPartition(*place) for place in ALL])) == [OFFSET_INVALID] * 4


@pytest.mark.parametrize("as_table", [False, True])
def test_a_call_that_has_records_does_not_go_on_after_their_partitions_are_lost(lake: Lake, as_table: bool) -> None:
    """Else it would give them again with what is read after the loss, and as a later generation's."""
    with consumer(lake, enable_auto_commit=False) as reader:
        calls = subscribe(reader)

        def lose() -> None:
            everywhere = [TopicPartition(*place) for place in ALL]
            eventually(lambda: sum(offsets(reader.position(everywhere))) >= 20, "all records are read")
            thrown_out_and_back(reader)

        with ThreadPoolExecutor(1) as thread:
            losing = thread.submit(lose)
            found = reader.consume_table(40, PATIENCE_S).num_rows if as_table else len(reader.consume(40, PATIENCE_S))
            assert (found, calls) == (20, [("assign", ALL)])
            losing.result(PATIENCE_S)
        assert len(poll_some(reader, 20)) == 20
        assert [name for name, _ in calls] == ["assign", "lost", "assign"]
