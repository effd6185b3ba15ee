"""Failovers: a follower is promoted, the old source follows it back, and what diverged is named."""

import pytest
from support.logs import read, values
from support.mirrored_lakes import Pair
from support.purges import purge_once
from support.rewrites import merge
from support.transactions import Process, SharedLake, copy, offsets_to, stage

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import RegisteredBroker
from tidelog.log.base.errors import LakeFollowsError, ProducerFencedError, StorageError
from tidelog.log.config.lake_file import Follows
from tidelog.log.upkeep.holds import read_holds
from tidelog.mirror.promotion import NotPromotedError, promote
from tidelog.mirror.truncation import noted_diverged
from tidelog.operations.cuts import create_cut, delete_cut
from tidelog.operations.mirrors import read_status
from tidelog.transactions.ports import GroupIdentity


def shipped_transactions() -> tuple[SharedLake, Pair]:
    shared = SharedLake()
    copy(shared.first.ready(), "one", 1)
    pair = Pair(shared.storage, shared.clock)
    pair.ship()
    return shared, pair


def turned(pair: Pair) -> Pair:
    """The same two lakes, the other way round."""
    back = Pair(pair.follower, pair.clock)
    back.follower = pair.source  # type: ignore[assignment]
    return back


def test_a_promoted_follower_takes_writes_and_the_mirror_stops() -> None:
    _, pair = shipped_transactions()
    done = promote(pair.copy(to_promote=True), None)
    assert (done.source, done.in_order, done.fenced) == (pair.source.uri, False, 1)
    assert pair.copy().follows() is None
    process = Process(pair.copy())
    copy(process.ready(), "two", 2)
    assert read(process.lake, "a") == ["one", "two"]
    assert process.stable() == {("in", 0): 2}


def test_what_kept_cuts_need_is_held_at_a_promoted_follower() -> None:
    shared, pair = shipped_transactions()
    kept = create_cut(shared.first.lake, "friday", keep=True)
    create_cut(shared.first.lake, "saturday")
    pair.ship()
    promote(pair.copy(to_promote=True), None)
    lake = pair.copy()
    held = {(folder, hold.version) for folder in kept.tables for hold in read_holds(lake.storage, folder)}
    assert held == {(folder, table.version) for folder, table in kept.tables.items()}
    delete_cut(lake, "friday")
    assert not any(read_holds(lake.storage, folder) for folder in kept.tables)


def test_a_source_that_goes_away_while_it_is_stopped_leaves_a_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is mirrored on, or promoted again."""
    _, pair = shipped_transactions()
    source, copied = pair.lake(), pair.copy(to_promote=True)
    told, follows = source.follow, copied.follows()

    def gone(follows: Follows | None = None) -> None:
        if follows is None:
            raise StorageError("no answer")
        told(follows)

    monkeypatch.setattr(source, "follow", gone)
    monkeypatch.setattr("tidelog.mirror.promotion.Mirror.round", lambda _: gone())
    with pytest.raises(NotPromotedError, match="source-is-gone"):
        promote(copied, source)
    assert pair.copy().follows() == follows
    assert not promote(copied, None).in_order
    assert pair.copy().follows() is None


def test_a_producer_of_the_lost_source_can_not_commit_here_what_it_began_there() -> None:
    shared = SharedLake()
    producer = shared.first.ready("x")
    producer.begin()
    stage(producer, "a", "half")
    producer.add_offsets(GroupIdentity("g"), offsets_to(1))
    pair = Pair(shared.storage, shared.clock)
    pair.ship()
    promote(pair.copy(to_promote=True), None)
    log = Process(pair.copy()).log
    one = producer._id
    assert one is not None
    with pytest.raises(ProducerFencedError):
        log.intent(one.key(1), (), ("g",))
    assert Process(pair.copy()).stable() == {}  # what waited for it was aborted


def test_the_leader_epoch_rises_above_the_sources() -> None:
    shared, pair = shipped_transactions()
    cluster = ClusterLog(shared.first.lake)
    for number in range(3):
        cluster.register(RegisteredBroker(number + 1, f"r{number}"), any_id=False)
    epoch = cluster.look().epoch
    assert epoch >= 3
    pair.ship()
    assert promote(pair.copy(to_promote=True), None).epoch == epoch + 1
    assert ClusterLog(pair.copy()).look().epoch == epoch + 1


def test_a_promotion_in_order_loses_nothing_and_turns_the_two_round() -> None:
    shared, pair = shipped_transactions()
    producer = shared.process().ready("y")
    copy(producer, "two", 2)  # not shipped yet
    done = promote(pair.copy(to_promote=True), pair.lake())
    assert done.in_order
    assert read(pair.copy(), "a") == ["one", "two"]
    assert pair.lake().follows() == Follows(pair.follower.uri)
    with pytest.raises(LakeFollowsError):
        pair.lake().topic("a").append(values("late"))
    copy(Process(pair.copy()).ready("z"), "three", 3)
    back = turned(pair)
    back.ship()
    back.require_equal()
    assert read(pair.lake(), "a") == ["one", "two", "three"]


def test_the_old_source_follows_back_what_did_not_diverge_and_names_the_rest() -> None:
    _, pair = shipped_transactions()
    pair.lake().topic("a").append(values("lost", "lost too"))  # never shipped
    promote(pair.copy(to_promote=True), None)
    pair.copy().topic("a").append(values("new"))
    pair.copy().topic("b").append(values("new"))
    back = turned(pair)
    mirror = back.ship()
    (found,) = mirror.diverged
    assert (found.table, found.entries, found.offsets) == ("a", 1, {0: (1, 3)})
    assert found.source.startswith("WRITE of request")
    assert "offsets 1 to 2" in str(found)
    assert read(pair.lake(), "b") == ["one", "new"]
    assert read(pair.lake(), "a") == ["one", "lost", "lost too"]
    assert read_status(pair.source).diverged[0]["table"] == "a"  # type: ignore[union-attr]
    again = back.ship()  # it stays refused
    assert [one.table for one in again.diverged] == ["a"]
    assert set(noted_diverged(pair.source)) == {"a"}


@pytest.mark.parametrize("shipped_before", [True, False])
def test_what_diverged_is_cut_off_where_an_operator_asks_for_it(shipped_before: bool) -> None:
    _, pair = shipped_transactions()
    pair.lake().topic("a").append(values("lost", "lost too"))
    copy(Process(pair.lake()).ready("late"), "late", 2)
    promote(pair.copy(to_promote=True), None)
    pair.copy().topic("a").append(values("new"))
    back = turned(pair)
    if shipped_before:
        back.ship()
    mirror = back.ship(discard=True)
    assert {"a", "__transaction_state", "__consumer_offsets"} <= {one.table for one in mirror.discarded}
    assert mirror.diverged == []
    back.require_equal()
    aside = [o.path for o in pair.source.list_after("a/_tidelog/torn")]
    assert len(aside) == 2
    assert noted_diverged(pair.source) == {}
    assert back.ship().diverged == []


def test_what_diverged_is_known_although_the_new_sources_log_is_trimmed_past_it() -> None:
    pair = Pair()
    lake = pair.lake()
    lake.create_topic("t", 1, {"log.min.age.ms": "10000", "file.delete.delay.ms": "1000"})
    lake.topic("t").append(values("both"))
    pair.ship()
    lake.topic("t").append(values("lost"))
    promote(pair.copy(to_promote=True), None)
    for text in "abcdef":
        pair.copy().topic("t").append(values(text))
    merge(pair.copy(), "t")
    pair.clock.pass_s(3600)
    pair.copy().topic("t").append(values("g"))
    pair.clock.pass_s(3600)
    purge_once(pair.copy())
    back = turned(pair)
    (found,) = back.ship().diverged
    assert found.offsets == {0: (1, 2)}
    assert back.ship(discard=True).discarded == [found]
    back.require_equal()


def test_a_follower_that_was_never_whole_is_not_promoted_unless_forced() -> None:
    pair = Pair()
    pair.lake().create_topic("t", 1)
    with pair.mirror():
        pass
    with pytest.raises(NotPromotedError, match="is not whole"):
        promote(pair.copy(to_promote=True), None)
    assert pair.copy().follows() == Follows(pair.source.uri)  # as it was
    promote(pair.copy(to_promote=True), None, force=True)
    with pytest.raises(NotPromotedError, match="follows none"):
        promote(pair.copy(to_promote=True), None)


def test_an_entry_of_another_writer_stops_its_table_and_no_other() -> None:
    pair = Pair()
    lake = pair.lake()
    for name in ("t", "u"):
        lake.create_topic(name, 1)
    pair.ship()
    with pair.mirror() as mirror:
        mirror.round()
        pair.copy(to_promote=True).topic("t").append(values("a stranger's"))
        for name in ("t", "u"):
            lake.topic(name).append(values("ours"))
        result = mirror.round()
        assert not result.whole
        (found,) = mirror.diverged
        assert (found.table, found.version, found.offsets) == ("t", 1, {0: (0, 1)})
    assert read(pair.copy(), "u") == ["ours"]
