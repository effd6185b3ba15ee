"""What the things that are done all the time ask of an object store: each request costs money and a round trip.

Nothing here lists: what a log has, its entries say. Opening does, and a program that was away for so long that the log
may have been trimmed meanwhile.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from obstore.store import MemoryStore
from support.logs import CountingIds, FakeClock, put_checkpoint, values
from support.transactions import AtOnce

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.producer.producer import Producer
from tidelog.groups.member.events import MemberConfig
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import Membership
from tidelog.groups.store.adapters import LoggedOffsets, LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.delta.layout import LAKE_FILE
from tidelog.log.follow.tailing import LAST_PAUSE_S, LookSchedule
from tidelog.log.lake import Lake
from tidelog.log.segments.staging import stage_records
from tidelog.log.storage import ObjectInfo, ObjectStorage
from tidelog.log.storage.requests import RequestKind, Requests
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit

GET, RANGED_GET, HEAD, LIST, PUT, CREATE = (
    RequestKind.GET,
    RequestKind.RANGED_GET,
    RequestKind.HEAD,
    RequestKind.LIST,
    RequestKind.PUT,
    RequestKind.CONDITIONAL_PUT,
)


class OneClock(ObjectStorage):
    """An object store that goes by a test's clock."""

    def __init__(self, clock: FakeClock, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.clock = clock

    def head(self, path: str) -> ObjectInfo:
        return replace(super().head(path), modified_ms=self.clock.now_ms())


class World:
    """An object store with topic `t` of three partitions, and processes on one clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.seen: list[tuple[RequestKind, str]] = []
        self.ids = count(1_000_000, 1_000_000)
        self.lake = self.process()
        self.lake.create_topic("t", 3)
        self.topic = self.lake.topic("t")
        self.topic.append(values("warm", partition=[0]))
        self.take()

    def process(self) -> Lake:
        """Another process's view of the lake, whose requests are seen like all others'."""
        requests = Requests(lambda *call: self.seen.append(call))
        storage = OneClock(self.clock, "s3://bucket/lake", store=self.store, requests=requests)
        lake = Lake("s3://bucket/lake", storage=storage, clock=self.clock, ids=CountingIds(next(self.ids)))
        lake.background = AtOnce()
        return lake

    def take(self, below: str = "") -> list[RequestKind]:
        """The requests since the last take, in order; of them those below a folder.

        Without the looks at the lake's configuration, which come by time and not by what is done.
        """
        found = [kind for kind, path in self.seen if path.startswith(below) and path != LAKE_FILE]
        self.seen.clear()
        return found

    def asked(self, act: Callable[[], object]) -> list[RequestKind]:
        """What something asks."""
        self.seen.clear()
        act()
        return self.take()


@pytest.fixture
def world() -> World:
    return World()


def noise(records: int, size: int, partition: int = 0) -> pa.Table:
    """Records that don't compress."""
    rng = np.random.default_rng(7)
    value = [rng.bytes(size) for _ in range(records)]
    return pa.table({"value": value, "partition": pa.array([partition] * records, pa.int32())})


# --- append ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [1, "all"])
def test_an_append_is_a_put_of_its_data_and_one_of_its_entry_whose_time_is_asked(world: World, acks: int | str):
    for _ in range(50):
        world.clock.pass_s(1)
        assert world.asked(lambda: world.topic.append(values("a", partition=[0]), acks=acks)) == [PUT, CREATE, HEAD]


def test_a_program_looks_at_the_lakes_configuration_every_10_s(world: World):
    for _ in range(600):
        world.clock.pass_s(0.1)
        world.topic.append(values("a", partition=[0]))
    assert Counter(kind for kind, path in world.seen if path == LAKE_FILE) == {GET: 6}


def test_an_append_to_three_partitions_is_a_put_for_each(world: World):
    table = values("a", "b", "c", partition=[0, 1, 2])
    assert world.asked(lambda: world.topic.append(table)) == [PUT, PUT, PUT, CREATE, HEAD]


def test_a_commit_of_what_another_process_staged_looks_each_segment_up(world: World):
    stager = world.process().topic("t").stager()
    stage_records(stager, values("a", "b", partition=[0, 1]), "t", world.topic.config(), "murmur2", 0, 0)
    staged = stager.finish()
    assert world.asked(lambda: world.topic.commit(staged)) == [HEAD, HEAD, CREATE, HEAD]


def test_a_segment_of_megabytes_is_still_one_put(world: World):
    assert world.asked(lambda: world.topic.append(noise(1_500, 10_000))) == [PUT, CREATE, HEAD]


def test_a_segment_that_is_written_on_and_on_goes_in_parts_of_10_mib(world: World):
    calls = Counter(world.asked(lambda: world.topic.append(noise(3_500, 10_000))))
    assert calls == {"multipart_create": 1, "multipart_part": 4, "multipart_complete": 1, CREATE: 1, HEAD: 1}


@pytest.mark.parametrize(
    ("pause_s", "more"),
    [(2.5, []), (4, [GET]), (6, [GET, LIST, HEAD])],
    ids=["a moment", "seconds", "so long that entries may be deleted"],
)
def test_an_append_after_a_pause_looks_at_the_log_first(world: World, pause_s: float, more: list[RequestKind]):
    world.clock.pass_s(pause_s)
    assert world.asked(lambda: world.topic.append(values("a", partition=[0]))) == [PUT, *more, CREATE, HEAD]


def test_a_producers_flush_is_a_put_for_each_partition_and_one_for_the_entry(world: World):
    with Producer({"lake": world.lake, "linger.ms": 1000}) as producer:
        for flush in range(3):
            world.seen.clear()
            for number in range(300):
                producer.produce("t", b"%d" % number, partition=number % 3)
            producer.flush()
            if flush:  # the first one makes the producer known to the topic
                assert sorted(world.take()) == [CREATE, HEAD, PUT, PUT, PUT]


def test_a_writer_asks_for_the_stores_time_when_it_begins_and_after_ten_minutes_without_an_entry(world: World):
    other = world.process()
    for minutes, asked in ((0, [PUT, HEAD]), (9, []), (9, []), (11, [PUT, HEAD])):
        world.clock.pass_s(60 * minutes)
        other.topic("t").append(values("a"))  # a lake's topics are in one store
        assert world.take("t/_tidelog/clock") == asked


# --- waiting -----------------------------------------------------------------------------------------------


def test_an_idle_look_is_one_get_and_one_a_minute_lists_the_floors(world: World):
    """A machine that was paused, and doesn't know, would else take its log for one at rest for ever."""
    lists = 0
    for _ in range(90):
        world.clock.pass_s(4)
        look, *more = world.asked(world.topic.state)
        assert look is GET
        assert more in ([], [LIST, HEAD])  # of the floors, and of the entry that was read last
        lists += LIST in more
    assert lists == 5  # in six minutes


def test_an_idle_reader_looks_less_and_less_often():
    """Pauses double up to a bound, below which no waiting reader counts as late."""
    schedule, now_s, looks = LookSchedule(), 0.0, []
    schedule.add("t", now_s)
    for _ in range(20):
        now_s = max(now_s, schedule.next_s())
        assert schedule.due(now_s) == {"t"}
        schedule.looked("t", grew=False, took_s=0.0, now_s=now_s)
        looks.append(now_s)
    pauses = np.diff(looks)
    assert pauses[0] < 0.01
    assert (np.diff(pauses) >= -1e-9).all()
    assert pauses[-1] == pytest.approx(LAST_PAUSE_S)
    schedule.looked("t", grew=True, took_s=0.0, now_s=now_s)
    assert schedule.next_s() - now_s < 0.01


# --- fetch -------------------------------------------------------------------------------------------------


def fetched(world: World, partition: int, start: int = 0, end: int | None = None) -> list[RequestKind]:
    """What reading a range asks, without the look at the log's head before it."""
    calls = world.asked(lambda: list(world.topic.read(partition, start, end)))
    assert calls[0] is GET
    return calls[1:]


def test_a_small_segment_is_fetched_by_one_get(world: World):
    for _ in range(4):
        world.topic.append(values("a", partition=[1]))
    assert fetched(world, 1) == [GET] * 4
    assert fetched(world, 1, 2, 3) == [GET]


def test_a_segment_up_to_a_mebibyte_is_fetched_by_one_ranged_get(world: World):
    world.topic.append(noise(900, 1_000, partition=1))
    assert fetched(world, 1) == [RANGED_GET]


def test_a_large_segment_is_its_end_and_each_row_group_that_is_read(world: World):
    """Three row groups: 16 MiB, 16 MiB, 2 MiB. No reader asks for its size: the log's entry says it."""
    world.topic.append(noise(3_500, 10_000, partition=1))
    assert fetched(world, 1) == [RANGED_GET] * 4
    assert fetched(world, 1, 0, 10) == [RANGED_GET] * 2
    assert fetched(world, 1, 1_000, 2_000) == [RANGED_GET] * 3


# --- groups ------------------------------------------------------------------------------------------------


def test_a_commit_of_offsets_is_a_look_at_the_topic_and_two_puts(world: World):
    world.topic.append(values(*"abcdefghij", partition=[0] * 10))
    positions = LoggedPositions(GroupLog(world.lake))
    positions.publish("g", {"t": {0: 1}})
    for offset in range(2, 8):
        world.clock.pass_s(2)
        assert world.asked(lambda: positions.publish("g", {"t": {0: offset}})) == [GET, PUT, CREATE, HEAD]  # noqa: B023


def test_a_heartbeat_is_one_put(world: World):
    lease = Leases(world.lake.storage).of_member("g", "member")
    assert world.asked(lease.renew) == [PUT]


def test_a_member_alone_in_its_group_lists_no_members(world: World):
    """A minute: a heartbeat each second, and looks at the group's log."""
    log, clock = GroupLog(world.lake), world.clock
    config = MemberConfig(
        group_id="g", client_id="m", session_timeout_ms=10_000, heartbeat_interval_ms=1_000, strategies=("range",)
    )
    member = Membership(
        log,
        Leases(world.lake.storage),
        lambda topics: dict.fromkeys(topics, 3),
        config,
        clock=clock,
        ids=CountingIds(next(world.ids)),
    )
    member.subscribe(["t"])
    member.polled()
    while len(member.owned) < 3:
        member.step()
        clock.pass_s(0.05)
    world.seen.clear()
    for _ in range(1200):
        member.polled()
        if member.due_s() <= 0:
            member.step()
        clock.pass_s(0.05)
    calls = Counter(world.take())
    assert set(calls) - {LIST} == {GET, PUT}
    assert calls[LIST] <= 1  # the floors, once a minute
    assert 55 <= calls[PUT] <= 65


def test_a_consumer_that_reads_and_commits_lists_nothing(world: World):
    world.topic.append(values(*(str(i) for i in range(20)), partition=[0] * 20))
    reader = Consumer(
        {"lake": world.lake, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    reader.subscribe(["t"])
    first = reader.poll(20)
    assert first is not None
    reader.commit(first, asynchronous=False)
    world.seen.clear()
    for _ in range(10):
        message = reader.poll(20)
        assert message is not None
        reader.commit(message, asynchronous=False)
    calls = Counter(world.take())
    reader.close()
    assert calls[CREATE] == calls[HEAD] == 10
    assert set(calls) <= {GET, PUT, CREATE, HEAD}


# --- transactions ------------------------------------------------------------------------------------------


def test_a_transaction_is_its_data_an_intent_an_entry_for_each_topic_and_the_groups(world: World):
    """Data of two topics, offsets of a group, first pending and then committed: five entries, and five files."""
    world.lake.create_topic("b", 1)
    groups = GroupLog(world.lake)
    producer = TransactionManager(world.lake, "x", LoggedOffsets(groups))
    producer.init()
    group = GroupIdentity("g")

    def transaction(offset: int) -> None:
        producer.begin()
        for topic in ("t", "b"):
            producer.stage(topic, values("1"), np.array([0], np.int32))
        producer.add_offsets(group, {("t", 0): OffsetToCommit(offset)})
        producer.commit()

    transaction(0)
    for _ in range(5):
        calls = Counter(world.asked(lambda: transaction(1)))
        assert set(calls) <= {GET, PUT, CREATE, HEAD}
        assert (calls[PUT], calls[CREATE], calls[HEAD]) == (5, 5, 5)
        world.clock.pass_s(0.1)


# --- opening -----------------------------------------------------------------------------------------------


def test_opening_a_lake_is_one_get(world: World):
    world.process()
    assert world.seen == [(GET, LAKE_FILE)]


def test_opening_a_topic_is_its_checkpoint_and_the_entries_since(world: World):
    """The floors are looked at before and after; without a checkpoint the log is listed once for one."""
    for _ in range(4):
        world.topic.append(values("a", partition=[0]))
    assert opening(world, since=0) == {LIST: 3, GET: 1}
    put_checkpoint(world.lake.storage, "t", 3)
    assert opening(world, since=4) == {LIST: 2, GET: 1, RANGED_GET: 1}


def opening(world: World, since: int) -> Counter[RequestKind]:
    """What opening the topic asks but for entries, which are asked for once each, from `since` to past the head."""
    lake = world.process()
    world.seen.clear()
    version = lake.topic("t").known.version
    entries = [path for _, path in world.seen if path.endswith(".json")]
    wanted = [f"t/_delta_log/{v:020d}.json" for v in range(since, version + 1)]
    assert entries[: len(wanted)] == wanted
    assert f"t/_delta_log/{version + 1:020d}.json" in entries
    assert len(entries) <= 3 * len(wanted)  # several are asked for at once, some of them beyond the head
    return Counter(kind for kind, path in world.seen if not path.endswith(".json"))


def test_a_topic_that_is_open_is_opened_again_by_one_get(world: World):
    assert world.asked(lambda: world.lake.topic("t")) == [GET]
