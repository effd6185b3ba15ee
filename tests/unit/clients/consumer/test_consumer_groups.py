"""Consumers that share topics: callbacks, commits, revoked and lost partitions, patterns, growth, fencing."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.consumers import (
    PATIENCE_S,
    Told,
    consumer,
    fill,
    filled_lake,
    offsets,
    places,
    poll_some,
    poll_until,
    raised,
    text,
)
from support.waiting import eventually

from tidelog.admin import AdminClient
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.consumer.subscription import Topics, TopicSelection
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import OFFSET_INVALID, TopicPartition
from tidelog.log.lake import Lake

ALL = [("t", p) for p in range(4)]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with filled_lake(tmp_path) as opened:
        yield opened


def is_shared(*readers: Consumer) -> bool:
    """Whether the readers have all partitions between them, each some."""
    own = [places(r.assignment()) for r in readers]
    return sorted(p for ps in own for p in ps) == ALL and all(own)


def committed(lake: Lake, group: str = "g") -> list[int]:
    with consumer(lake, group_id=group) as asker:
        return offsets(asker.committed([TopicPartition(*place) for place in ALL]))


class TestRebalance:
    def test_one_member_reads_everything_once(self, lake: Lake) -> None:
        told = Told()
        with consumer(lake) as reader:
            told.subscribe(reader)
            found = sorted(text(m) for m in poll_some(reader, 20))
            assert found == sorted(f"{p}.{i}" for p in range(4) for i in range(5))
            assert reader.memberid()
            metadata = reader.consumer_group_metadata()
            assert (metadata.member_id, metadata.generation) == (reader.memberid(), 1)
        assert told.calls == [("assign", ALL), ("revoke", ALL)]
        assert committed(lake) == [5, 5, 5, 5]

    @pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
    def test_a_second_member_takes_its_share_and_leaves_it_again(self, lake: Lake, strategy: str) -> None:
        told = Told()
        with consumer(lake, partition_assignment_strategy=strategy) as first:
            told.subscribe(first)
            poll_some(first, 20)
            with consumer(lake, partition_assignment_strategy=strategy) as second:
                second.subscribe(["t"])
                assert poll_until(lambda: is_shared(first, second), first, second) == []
                revoked = dict(told.calls)["revoke"]
                given = 2 if strategy == "cooperative-sticky" else 4
                assert len(revoked) == given
                for partition in range(4):
                    fill(lake, "t", "new", partition=partition)
                both: list[Any] = []
                poll_until(lambda: len(both) >= 4, _Into(first, both), _Into(second, both))
                assert sorted(m.partition() for m in both) == [0, 1, 2, 3]
            poll_until(lambda: places(first.assignment()) == ALL, first)

    def test_a_callback_may_start_elsewhere(self, lake: Lake) -> None:
        def from_three(reader: Consumer, partitions: list[TopicPartition]) -> None:
            for partition in partitions:
                partition.offset = 3
            reader.assign(partitions)

        with consumer(lake) as reader:
            reader.subscribe(["t"], on_assign=from_three)
            assert sorted(text(m) for m in poll_some(reader, 8)) == sorted(f"{p}.{i}" for p in range(4) for i in (3, 4))

    def test_a_callback_may_commit_what_is_revoked(self, lake: Lake) -> None:
        def commit(reader: Consumer, partitions: list[TopicPartition]) -> None:
            with suppress(KafkaException):  # nothing is stored, the second time
                reader.commit(asynchronous=False)

        with consumer(lake, enable_auto_commit=False) as first, consumer(lake) as second:
            first.subscribe(["t"], on_revoke=commit)
            poll_some(first, 20)
            second.subscribe(["t"])
            again = poll_until(lambda: is_shared(first, second), first, second)
            assert again == []
            assert committed(lake) == [5, 5, 5, 5]

    def test_an_exception_of_a_callback_leaves_the_poll(self, lake: Lake) -> None:
        def fail(reader: Consumer, partitions: list[TopicPartition]) -> None:
            raise ZeroDivisionError

        with consumer(lake) as reader:
            reader.subscribe(["t"], on_assign=fail)
            with pytest.raises(ZeroDivisionError):
                reader.poll(10)
            assert places(reader.assignment()) == ALL

    def test_unsubscribing_gives_up_and_leaves(self, lake: Lake) -> None:
        told = Told()
        with consumer(lake) as reader, consumer(lake) as other:
            told.subscribe(reader)
            poll_some(reader, 20)
            reader.unsubscribe()
            assert told.calls[1:] == [("revoke", ALL)]
            assert reader.assignment() == []
            assert reader.memberid() is None
            other.subscribe(["t"])
            poll_until(lambda: places(other.assignment()) == ALL, other)
            told.subscribe(reader)
            poll_until(lambda: is_shared(reader, other), reader, other)

    def test_a_subscription_is_replaced(self, lake: Lake) -> None:
        lake.create_topic("u", partitions=1)
        fill(lake, "u", "u")
        with consumer(lake) as reader:
            reader.subscribe(["t"])
            poll_some(reader, 20)
            reader.subscribe(["u"])
            assert [text(m) for m in poll_some(reader, 1)] == ["u"]
            assert places(reader.assignment()) == [("u", 0)]

    def test_more_members_than_partitions_leave_some_idle(self, lake: Lake) -> None:
        lake.create_topic("one", partitions=1)
        readers = [consumer(lake, auto_commit_interval_ms=20) for _ in range(3)]
        try:
            assigned: list[int] = []
            for reader in readers:
                reader.subscribe(["one"], on_assign=lambda _, ps: assigned.append(len(ps)))
            poll_until(lambda: len(assigned) >= 3 and sum(len(r.assignment()) for r in readers) == 1, *readers)
            fill(lake, "one", "x")
            assert [text(m) for m in poll_until(lambda: committed_one(lake) == 1, *readers)] == ["x"]
        finally:
            for reader in readers:
                reader.close()

    def test_groups_do_not_touch_one_another(self, lake: Lake) -> None:
        with consumer(lake) as one, consumer(lake, group_id="h") as other:
            one.subscribe(["t"])
            other.subscribe(["t"])
            assert len(poll_some(one, 20)) == len(poll_some(other, 20)) == 20
            one.commit(asynchronous=False)
            assert committed(lake, "h") == [OFFSET_INVALID] * 4


class _Into:
    """A reader whose messages go into a list."""

    def __init__(self, reader: Consumer, found: list[Any]) -> None:
        self.reader, self.found = reader, found

    def poll(self, timeout: float) -> None:
        message = self.reader.poll(timeout)
        if message is not None:
            self.found.append(message)


def committed_one(lake: Lake) -> int:
    with consumer(lake) as asker:
        return asker.committed([TopicPartition("one", 0)])[0].offset


class TestFencing:
    def test_a_commit_of_another_members_partition_is_refused(self, lake: Lake) -> None:
        with consumer(lake) as first, consumer(lake) as second:
            first.subscribe(["t"])
            second.subscribe(["t"])
            poll_until(lambda: is_shared(first, second), first, second)
            place = places(second.assignment())[0]
            with pytest.raises(KafkaException, match="is not assigned to this consumer") as caught:
                first.commit(offsets=[TopicPartition(*place, 1)], asynchronous=False)
            assert caught.value.args[0] == KafkaError._STATE

    def test_a_commit_before_the_assignment_is_refused(self, lake: Lake) -> None:
        with consumer(lake) as reader:
            reader.subscribe(["t"])
            with pytest.raises(KafkaException) as caught:
                reader.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
            assert caught.value.args[0] == KafkaError.UNKNOWN_MEMBER_ID

    def test_who_is_no_member_can_not_commit_for_a_live_group(self, lake: Lake) -> None:
        with consumer(lake) as reader, consumer(lake) as stranger:
            reader.subscribe(["t"])
            poll_some(reader, 20)
            with pytest.raises(KafkaException) as caught:
                stranger.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
            assert caught.value.args[0] == KafkaError.UNKNOWN_MEMBER_ID

    def test_a_second_static_member_of_a_name_fences_the_first(self, lake: Lake) -> None:
        """Every call of the first fails with that, the one that finds it out and later ones, until it closes."""
        fenced = (KafkaError.FENCED_INSTANCE_ID, True)

        def refused(call: Callable[[], object]) -> tuple[int, bool]:
            error = raised(call)
            return error.code(), error.fatal()

        with consumer(lake, group_instance_id="i") as first:
            first.subscribe(["t"])
            poll_some(first, 20)
            with consumer(lake, group_instance_id="i") as second:
                second.subscribe(["t"])
                poll_until(lambda: places(second.assignment()) == ALL, second)
                assert refused(lambda: first.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)) == fenced
                poll_until(lambda: first.assignment() == [], first)
                for timeout_s in (0, 0.05, -1):
                    (found,) = first.consume(3, timeout_s)
                    assert (found.error().code(), found.error().fatal()) == fenced
                assert first.poll().error() == KafkaError.FENCED_INSTANCE_ID
                for call in (
                    lambda: next(first),
                    lambda: first.consume_table(3, 0.05),
                    first.commit,
                    lambda: first.commit(asynchronous=False),
                    lambda: first.commit(offsets=[TopicPartition("t", 0, 1)]),
                    lambda: first.subscribe(["t"]),
                ):
                    assert refused(call) == fenced
                assert places(second.assignment()) == ALL
                first.close()
                second.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)

    def test_on_commit_is_told_that_another_has_the_name(self, lake: Lake) -> None:
        told: list[KafkaError | None] = []
        quiet = {"enable_auto_commit": False, "heartbeat_interval_ms": 3_000}
        with consumer(lake, group_instance_id="i", on_commit=lambda e, _: told.append(e), **quiet) as first:
            first.subscribe(["t"])
            poll_some(first, 20)
            with consumer(lake, group_instance_id="i") as second:
                second.subscribe(["t"])
                poll_until(lambda: places(second.assignment()) == ALL, second)
                try:
                    first.commit()
                    poll_until(lambda: bool(told), first)
                except KafkaException as e:
                    told.append(e.args[0])
        assert [(e.code(), e.fatal()) for e in told if e is not None] == [(KafkaError.FENCED_INSTANCE_ID, True)]

    def test_a_static_member_that_comes_back_causes_no_rebalance(self, lake: Lake) -> None:
        told = Told()
        with consumer(lake) as other:
            told.subscribe(other)
            with consumer(lake, group_instance_id="i") as static:
                static.subscribe(["t"])
                poll_until(lambda: is_shared(other, static), other, static)
            told.calls.clear()
            with consumer(lake, group_instance_id="i") as static:
                static.subscribe(["t"])
                poll_until(lambda: is_shared(other, static), other, static)
            assert told.calls == []


def test_a_member_is_described_with_the_host_that_it_runs_on(lake: Lake) -> None:
    with consumer(lake) as reader, AdminClient({"lake": lake}) as client:
        reader.subscribe(["t"])
        poll_some(reader, 1)
        (member,) = client.describe_consumer_groups(["g"])["g"].result().members
        (listed,) = client.list_groups("g")[0].members
    assert member.host == listed.client_host == socket.gethostname() != ""


class TestMaxPollInterval:
    def test_who_does_not_poll_leaves_and_comes_back(self, lake: Lake) -> None:
        told = Told()
        quiet = {"enable_auto_commit": False, "topic_metadata_refresh_interval_ms": -1}  # nothing else wakes the thread
        with consumer(lake, session_timeout_ms=1500, max_poll_interval_ms=1500, **quiet) as reader:
            told.subscribe(reader)
            poll_some(reader, 20)
            group = reader._group.log
            eventually(lambda: (state := group.group("g")) and not state.members, "the member leaves")
            found = [
                text(m)
                for m in poll_until(lambda: told.calls[-1:] == [("assign", ALL)] and len(told.calls) > 2, reader)
            ]
        assert found[0] == "_MAX_POLL_EXCEEDED"
        assert [name for name, _ in told.calls] == ["assign", "lost", "assign", "revoke"]

    def test_waiting_in_a_poll_is_polling(self, lake: Lake) -> None:
        told = Told()
        with consumer(lake, session_timeout_ms=1500, max_poll_interval_ms=1500, heartbeat_interval_ms=100) as reader:
            told.subscribe(reader)
            poll_some(reader, 20)
            assert reader.poll(3.5) is None
            assert [name for name, _ in told.calls] == ["assign"]


class TestTopics:
    def test_a_pattern_matches_topics_that_come_and_no_internal_ones(self, lake: Lake) -> None:
        lake.create_topic("other", partitions=1)
        with consumer(lake, topic_metadata_refresh_interval_ms=50) as reader:
            reader.subscribe(["^t", "^__consumer"])
            poll_some(reader, 20)
            assert {topic for topic, _ in places(reader.assignment())} == {"t"}
            lake.create_topic("tt", partitions=1)
            fill(lake, "tt", "new")
            assert [text(m) for m in poll_some(reader, 1)] == ["new"]

    def test_new_partitions_are_found(self, lake: Lake) -> None:
        with consumer(lake, topic_metadata_refresh_interval_ms=50) as reader:
            reader.subscribe(["t"])
            poll_some(reader, 20)
            lake.alter_topic("t", partitions=5)
            fill(lake, "t", "new", partition=4)
            assert [text(m) for m in poll_some(reader, 1)] == ["new"]

    def test_but_not_when_nobody_is_to_look(self, lake: Lake) -> None:
        with consumer(lake, topic_metadata_refresh_interval_ms=-1) as reader:
            reader.subscribe(["^t"])
            poll_some(reader, 20)
            lake.alter_topic("t", partitions=5)
            lake.create_topic("tt", partitions=1)
            fill(lake, "t", "new", partition=4)
            assert reader.poll(1.0) is None

    def test_a_topic_that_is_missing_is_named_and_found_when_it_comes(self, lake: Lake) -> None:
        with consumer(lake) as reader:
            reader.subscribe(["later"])
            (message,) = poll_some(reader, 1)
            assert message.error() == KafkaError.UNKNOWN_TOPIC_OR_PART
            assert "Subscribed topic not available: later" in message.error().str()
            lake.create_topic("later", partitions=1)
            fill(lake, "later", "new")
            assert [text(m) for m in poll_some(reader, 1)] == ["new"]

    @pytest.mark.parametrize("allowed", [True, False])
    def test_a_subscription_may_create_topics(self, lake: Lake, allowed: bool) -> None:
        with consumer(lake, allow_auto_create_topics=allowed) as reader:
            reader.subscribe(["made"])
            reader.poll(0.5)
            assert ("made" in lake.topics()) == allowed

    def test_a_subscription_in_words(self, lake: Lake) -> None:
        parsed = TopicSelection.parse(["b", "^a.*c$", "a"])
        assert parsed == TopicSelection(frozenset("ab"), (re.compile("^a.*c$"),))
        assert parsed.matches(["abc", "abcd", "xabc", "ac"]) == {"abc", "ac"}

    def test_looks_for_topics_are_rare(self, lake: Lake) -> None:
        topics = Topics(lake, TopicSelection.parse(["t"]), 300.0, create_missing=False)
        topics.look(100.0)
        assert topics.due_s(100.0) == 300.0
        assert topics.counts(["t", "u"]) == {"t": 4}
        lake.alter_topic("t", partitions=6)
        assert topics.counts(["t"]) == {"t": 4}
        topics.look(400.0)
        assert topics.counts(["t"]) == {"t": 6}


def test_two_threads_may_poll_one_consumer(lake: Lake) -> None:
    with consumer(lake) as reader, ThreadPoolExecutor(2) as threads:
        reader.subscribe(["t"])
        left = threading.Semaphore(20)

        def read() -> list[str]:
            found = []
            while left.acquire(blocking=False):
                message = reader.poll(PATIENCE_S)
                assert message is not None, "a record did not come in time"
                found.append(text(message))
            return found

        found = [future.result() for future in [threads.submit(read), threads.submit(read)]]
    assert sorted(found[0] + found[1]) == sorted(f"{p}.{i}" for p in range(4) for i in range(5))
