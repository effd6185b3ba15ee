"""Where a follower begins: at a checkpoint of a trimmed log, and again when it was away for too long."""

from itertools import count

import pytest
from support.crashes import Crash, CrashAt
from support.logs import quiet, read, values
from support.mirrored_lakes import Pair, empty_store
from support.purges import missing_files, purge_once
from support.rewrites import merge

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.lake import Lake
from tidelog.mirror.follower_setup import NotItsFollowerError
from tidelog.operations.mirrors import read_status

CONFIG = {"log.min.age.ms": "10000", "file.delete.delay.ms": "1000"}
HOUR_S = 3600


def fill(lake: Lake, *texts: str) -> None:
    for text in texts:
        lake.topic("t").append(values(text))


def trimmed(pair: Pair) -> None:
    """The source's log is trimmed, and the files that it removed are gone."""
    merge(pair.lake(), "t")
    pair.clock.pass_s(HOUR_S)
    fill(pair.lake(), "late")
    pair.clock.pass_s(HOUR_S)
    purge_once(pair.lake())
    assert newest_floor(pair.source, "t") > 0


def a_trimmed_source() -> Pair:
    pair = Pair()
    lake = pair.lake()
    lake.create_topic("t", 1, CONFIG)
    fill(lake, "a", "b", "c")
    trimmed(pair)
    fill(pair.lake(), "d")
    return pair


def test_a_follower_of_a_trimmed_log_begins_at_a_checkpoint() -> None:
    pair = a_trimmed_source()
    pair.ship()
    pair.require_equal()
    assert read(pair.copy(), "t") == ["a", "b", "c", "late", "d"]
    assert newest_floor(pair.follower, "t") >= 0
    assert missing_files(pair.follower) == set()
    fill(pair.lake(), "e")
    pair.ship()
    pair.require_equal()


def test_the_source_is_held_while_a_table_begins_and_not_any_longer() -> None:
    pair = a_trimmed_source()
    held: set[int] = set()

    def watch(method: str, path: str, phase: str) -> None:
        if method == "put" and "partition=" in path:
            held.add(len(list(pair.source.list_after("t/_tidelog/holds"))))

    pair.follower.hook = watch
    pair.ship()
    assert held == {1}
    assert list(pair.source.list_after("t/_tidelog/holds")) == []


def test_a_start_may_die_between_any_two_steps() -> None:
    for moment in count():
        pair = a_trimmed_source()
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
        pair.clock.pass_s(3)
        pair.ship()
        pair.require_equal()
    assert moment > 20


def test_a_follower_that_was_away_for_too_long_begins_again() -> None:
    pair = Pair()
    lake = pair.lake()
    lake.create_topic("t", 1, CONFIG)
    fill(lake, "a", "b")
    pair.ship()
    reader = pair.copy().topic("t")
    assert reader.offsets() == {0: (0, 2)}
    fill(pair.lake(), "c", "d")
    trimmed(pair)
    pair.ship()
    pair.require_equal()
    assert missing_files(pair.follower) == set()
    pair.clock.pass_s(61)
    assert reader.offsets() == {0: (0, 5)}  # one that had the log open before finds its way


def test_a_follower_that_begins_again_can_not_be_promoted_before_it_is_whole() -> None:
    pair = Pair()
    lake = pair.lake()
    lake.create_topic("t", 1, CONFIG)
    pair.ship()
    fill(lake, "a", "b", "c")
    trimmed(pair)

    def fail(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and path.endswith(".json"):
            raise StorageUnavailableError("away")

    pair.follower.hook = fail
    with pytest.raises(StorageUnavailableError):
        pair.ship()
    pair.follower.hook = quiet
    status = read_status(pair.follower)
    assert status is not None
    assert status.whole_ms is None
    pair.ship()
    status = read_status(pair.follower)
    assert status is not None
    assert status.whole_ms is not None


def test_a_lake_with_tables_of_its_own_does_not_become_a_follower() -> None:
    pair = Pair()
    pair.lake().create_topic("t", 1)
    pair.copy().create_topic("t", 1)
    pair.copy().create_topic("u", 1)
    with pytest.raises(NotItsFollowerError, match=r"holds tables that are not those of .*: t, u\."):
        pair.ship()
    assert pair.copy().follows() is None


def test_a_follower_follows_one_lake() -> None:
    pair = Pair()
    pair.lake().create_topic("t", 1)
    pair.ship()
    other = Pair(empty_store(pair.clock, "third"), pair.clock)
    other.lake().create_topic("t", 1)
    other.follower = pair.follower
    with pytest.raises(NotItsFollowerError, match=r"follows .*, not .*Promote it first"):
        other.ship()
    turned = Pair(pair.follower, pair.clock)
    turned.follower = pair.source  # type: ignore[assignment]
    with pytest.raises(NotItsFollowerError, match="Promote it first"):
        turned.ship()
