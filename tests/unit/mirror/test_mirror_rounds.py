"""Rounds of a mirror over stores in memory: the follower ends equal to its source."""

import re

import pytest
from support.logs import memory_lake, open_lake, quiet, read, values
from support.mirrored_lakes import Pair
from support.purges import everything_in
from support.rewrites import merge
from support.transactions import Process, SharedLake, copy, dies_before, offsets_to, stage

from tidelog.log.base.errors import LakeFollowsError
from tidelog.log.config.lake_file import Follows
from tidelog.mirror.source_logs import MOST_LOOKS
from tidelog.operations.mirrors import read_status
from tidelog.transactions.ports import GroupIdentity


def test_a_follower_has_the_sources_entries_byte_by_byte() -> None:
    pair = Pair()
    lake = pair.lake()
    lake.create_topic("orders", 3, {"retention.ms": "1000000"})
    for n in range(5):
        lake.topic("orders").append(values(*(f"{n}-{i}" for i in range(10))))
    lake.delete_records("orders", {2: 1})
    pair.ship()
    pair.require_equal()
    entries = {p: data for p, data in everything_in(pair.source).items() if re.search(r"_delta_log/\d+\.json$", p)}
    assert len(entries) == 7
    assert all(pair.follower.get(path) == data for path, data in entries.items())


def test_groups_and_transactions_are_the_same_on_the_other_side() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    copy(producer, "one", 1)
    copy(producer, "two", 2)
    pair = Pair(shared.storage, shared.clock)
    pair.ship()
    pair.require_equal()
    copy(producer, "three", 3)
    pair.ship()
    pair.require_equal()
    assert read(pair.copy(), "b") == ["one", "two", "three"]


def test_what_an_intent_names_is_there_although_no_entry_names_it_yet() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "one")
    stage(producer, "b", "one")
    producer.add_offsets(GroupIdentity("g"), offsets_to(1))
    dies_before(shared, "a", producer)
    pair = Pair(shared.storage, shared.clock)
    pair.ship()
    for lake in (pair.copy(to_promote=True), pair.lake()):
        Process(lake).producer().init()  # rolls it forward
        assert read(lake, "a") == read(lake, "b") == ["one"]


def test_a_topic_that_is_deleted_and_created_again_is_so_at_the_follower() -> None:
    pair = Pair()
    lake = pair.lake()
    lake.create_topic("orders", 2)
    lake.topic("orders").append(values("a"))
    pair.ship()
    lake.delete_topic("orders")
    lake.create_topic("orders", 1)
    lake.topic("orders").append(values("b"))
    pair.ship()
    pair.require_equal()
    assert read(pair.copy(), "orders") == ["b"]


def test_rewrites_and_configuration_are_shipped() -> None:
    pair = Pair()
    lake = pair.lake()
    lake.alter_config({"num.partitions": "3"})
    lake.create_topic("t", 1)
    for n in range(4):
        lake.topic("t").append(values(f"{n}"))
    pair.ship()
    merge(lake, "t")
    lake.alter_config({"num.partitions": "4", "log.retention.ms": "99999999"})
    pair.ship()
    pair.require_equal()
    assert pair.copy().config() == pair.lake().config()


def test_only_the_topics_that_are_asked_for_and_tidelogs_own_are_shipped() -> None:
    shared = SharedLake()
    copy(shared.first.ready(), "one", 1)
    shared.first.lake.create_topic("_schemas", 1)
    pair = Pair(shared.storage, shared.clock)
    pair.ship(wanted=re.compile("a|in"))
    folders = set(pair.follower.list_folders(""))
    assert folders == {"__consumer_offsets", "__transaction_state", "__mirror", "_schemas", "a", "in"}


def test_a_mirror_stops_when_the_follower_is_promoted() -> None:
    pair = Pair()
    pair.lake().create_topic("t", 1)
    with pair.mirror() as mirror:
        mirror.round()
        pair.copy(to_promote=True).follow(Follows(pair.source.uri, promoting=True))
        pair.clock.pass_s(3)
        with pytest.raises(LakeFollowsError, match="being made a lake of its own"):
            mirror.round()
        pair.copy(to_promote=True).follow(None)
        pair.clock.pass_s(3)
        with pytest.raises(LakeFollowsError, match="follows none"):
            mirror.round()


def test_a_status_says_how_far_the_follower_is_behind() -> None:
    lake, storage, clock = memory_lake()
    pair = Pair(storage, clock)
    lake.create_topic("t", 1)
    pair.ship()
    status = read_status(pair.follower)
    assert status is not None
    assert (status.behind_entries, status.behind_ms, status.shipped_entries, status.ended) == (0, 0, 1, True)
    assert status.whole_ms == clock.now_ms()
    for _ in range(3):
        lake.topic("t").append(values("a"))
    clock.pass_s(2)
    with pair.mirror() as mirror:
        mirror._look_at_lakes()
        mirror._tables.look(())
        status = mirror.status()
        assert (status.behind_entries, status.behind_ms) == (3, 2000)
        assert status.behind_bytes > 0
        assert status.tables["t"].source == 3
        assert status.tables["t"].follower == 0


def test_while_transactions_never_rest_records_go_on_and_nothing_is_halved() -> None:
    shared = SharedLake()
    shared.first.lake.topic("in").append(values(*map(str, range(100))))
    copy(shared.first.ready(), "one", 1)
    pair = Pair(shared.storage, shared.clock)
    pair.ship()
    busy = Process(open_lake(shared.storage.inner, shared.clock))
    producer, done = busy.ready("busy"), 1

    def go_on(method: str, path: str, phase: str) -> None:
        nonlocal done
        if (method, path, phase) == ("list_folders", "", "before"):
            done += 1
            copy(producer, f"{done}", done)

    pair.lake().topic("in").append(values("plain"))
    shared.storage.hook = go_on
    with pair.mirror() as mirror:
        result = mirror.round()
    shared.storage.hook = quiet
    assert not result.whole
    assert done == 1 + MOST_LOOKS
    follower = Process(pair.copy())
    assert read(follower.lake, "in")[-1] == "plain"
    assert read(follower.lake, "a") == read(follower.lake, "b") == ["one"]
    assert follower.stable() == {("in", 0): 1}
    pair.ship()
    pair.require_equal()
    assert len(read(pair.copy(), "a")) == done
