"""A mirror that dies between any two steps: what the follower has can be promoted, and the next mirror goes on."""

from itertools import count

import pytest
from support.crashes import Crash, CrashAt
from support.logs import quiet, read
from support.mirrored_lakes import Pair
from support.rewrites import merge
from support.transactions import Process, SharedLake, copy, dies_before, offsets_to, stage

from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.log.base.clock import SystemIds
from tidelog.log.delta import layout
from tidelog.mirror import round_journal
from tidelog.transactions.ports import GroupIdentity
from tidelog.transactions.upkeep import TransactionUpkeep


def transactions_of_a_source() -> Pair:
    """Each transaction writes one record to `a` and to `b`, and moves the group on by one. Two are shipped."""
    shared = SharedLake()
    producer = shared.first.ready()
    copy(producer, "one", 1)
    copy(producer, "two", 2)
    pair = Pair(shared.storage, shared.clock)
    pair.ship()
    copy(producer, "three", 3)
    merge(shared.first.lake, "a")
    producer.begin()
    stage(producer, "a", "four")
    stage(producer, "b", "four")
    producer.add_offsets(GroupIdentity("g"), offsets_to(4))
    dies_before(shared, "b", producer)  # decided, and applied to one of its topics
    return pair


def require_promotable(pair: Pair) -> int:
    """What the follower has is whole: every transaction is in all of its places, or in none; how many there are."""
    process = Process(pair.copy(to_promote=True))
    round_journal.finish(pair.follower, SystemIds())
    TransactionUpkeep(process.lake, LoggedOffsets(process.groups)).run()
    a, b = read(process.lake, "a"), read(process.lake, "b")
    assert a == b
    assert process.stable() == {("in", 0): len(a)}
    return len(a)


def test_a_mirror_may_die_between_any_two_steps() -> None:
    seen = set()
    for moment in count():
        pair = transactions_of_a_source()
        hook = CrashAt(moment)
        pair.follower.hook = hook
        try:
            pair.ship()
        except Crash:
            pass
        finally:
            pair.follower.hook = quiet
        if not hook.crashed:
            break
        pair.ship()
        pair.require_equal()
        seen.add(moment)
    assert len(seen) > 30


def require_no_holes(pair: Pair) -> None:
    """Entries of a table that are put together are there from the first one on, or not at all."""
    for table in pair.follower.list_folders(""):
        log = [layout.entry_version(info.path) for info in pair.follower.list_after(f"{table}/{layout.LOG_FOLDER}")]
        entries = [version for version in log if version is not None]
        assert entries == list(range(len(entries)))


@pytest.mark.parametrize("power", [True, False], ids=["the power goes", "its process dies"])
def test_what_a_dead_mirror_left_can_be_promoted(power: bool) -> None:
    found = []
    for moment in count():
        pair = transactions_of_a_source()
        hook = CrashAt(moment)
        pair.follower.hook = hook
        try:
            pair.ship()
        except Crash:
            pass
        finally:
            pair.follower.hook = quiet
        if not hook.crashed:
            break
        if power:
            pair.follower.inner.lose_power()  # type: ignore[attr-defined]
        require_no_holes(pair)
        found.append(require_promotable(pair))
    assert found[0] == 2
    assert found[-1] == 4
    assert set(found) == {2, 4}  # all of the round, or nothing of it


def test_a_source_that_fails_at_any_step_is_tried_again() -> None:
    for moment in count():
        pair = transactions_of_a_source()
        hook = CrashAt(moment)
        pair.source.hook = hook  # type: ignore[attr-defined]
        try:
            pair.ship()
        except Crash:
            pass
        finally:
            pair.source.hook = quiet  # type: ignore[attr-defined]
        if not hook.crashed:
            break
        assert require_promotable(pair) in (2, 4)
    assert moment > 20
