"""Branches: what is in one, what goes on on both sides, and what is refused."""

from collections.abc import Callable
from itertools import count

import pytest
from support.branched_lakes import HOUR_S, Branched, a_lake, green, trim
from support.faults import FaultyStorage
from support.logs import put_checkpoint, quiet, read, values
from support.memory_disk import MemoryDisk
from support.mirrored_lakes import Pair
from support.purges import missing_files, purge_once
from support.rewrites import merge
from support.transactions import GROUP, SharedLake, copy, dies_before, offsets_to, stage

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.groups.model import CommittedOffset, Member
from tidelog.groups.rules.members import join
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import (
    LakeFollowsError,
    LakeNotWholeError,
    MissingSegmentError,
    ProducerFencedError,
    StorageFullError,
)
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.config.branch_facts import Branch
from tidelog.log.lake import Lake
from tidelog.mirror.branch.plan import NotABranchError, OutOfReachError
from tidelog.operations.branches import BranchState
from tidelog.operations.cuts import create_cut
from tidelog.transactions.model import TransactionKey
from tidelog.transactions.ports import GroupIdentity


def test_a_branch_holds_what_its_lake_holds() -> None:
    pair = a_lake()
    pair.lake().alter_config({"num.partitions": "7"})
    done = pair.make()
    assert pair.differences() == []
    assert green(pair.branch())
    assert (done.tables, done.files) == (3, 3)
    facts = pair.branch().branch_facts()
    assert facts is not None
    assert (facts.of, facts.cut, facts.is_whole) == (pair.source.uri, "", True)
    assert pair.branch().config().num_partitions == 7


def test_both_sides_go_on_without_knowing_each_other() -> None:
    pair = a_lake()
    pair.make()
    pair.lake().topic("t").append(values("source"))
    pair.branch().topic("t").append(values("branch", "too"))
    merge(pair.lake(), "t")
    merge(pair.branch(), "t")
    for _ in range(2):
        pair.clock.pass_s(HOUR_S)
        for lake in (pair.lake(), pair.branch()):
            lake.topic("t").append(values("late"))
            purge_once(lake)
    assert read(pair.lake(), "t") == ["a", "b", "c", "source", "late", "late"]
    assert read(pair.branch(), "t") == ["a", "b", "c", "branch", "too", "late", "late"]
    for store in (pair.source, pair.target):
        assert newest_floor(store, "t") > 0
        assert missing_files(store) == set()
    assert green(pair.lake())
    assert green(pair.branch())


def test_a_trimmed_log_with_a_checkpoint_is_branched() -> None:
    pair = a_lake()
    pair.clock.pass_s(HOUR_S)
    pair.lake().topic("t").append(values("late"))
    pair.clock.pass_s(HOUR_S)
    purge_once(pair.lake())
    assert newest_floor(pair.source, "t") > 0
    pair.make()
    assert pair.differences() == []
    assert newest_floor(pair.target, "t") >= newest_floor(pair.source, "t")
    assert missing_files(pair.target) == set()
    assert green(pair.branch())


def test_what_time_travel_reaches_is_in_the_branch() -> None:
    pair = a_lake()
    put_checkpoint(pair.source, "t", 1)
    pair.make()
    assert newest_floor(pair.target, "t") == 0
    assert missing_files(pair.target) == set()


def test_a_checkpoint_whose_writer_died_before_it_synced_it_survives_a_power_loss_in_the_branch() -> None:
    pair = a_lake()

    def die(method: str, path: str, phase: str) -> None:
        if method == "sync" and "checkpoint" in path:
            raise StorageFullError("dead")

    assert isinstance(pair.source, FaultyStorage)
    pair.source.hook = die
    with pytest.raises(StorageFullError):
        write_checkpoint(pair.source, "t", 1, pair.clock.now_ms())
    pair.source.hook = quiet
    pair.make()
    assert newest_floor(pair.target, "t") == 0  # it begins with that checkpoint
    assert isinstance(pair.target.inner, MemoryDisk)
    pair.target.inner.lose_power()
    assert read(pair.branch(), "t") == ["a", "b", "c"]
    assert green(pair.branch())


def test_maintenance_does_not_trim_what_is_being_branched() -> None:
    pair = a_lake()
    held: set[int] = set()

    def watch(method: str, path: str, phase: str) -> None:
        if "partition=" in path:
            held.add(len(list(pair.source.list_after("t/_tidelog/holds"))))

    pair.target.hook = watch
    pair.make()
    assert held == {1}
    assert list(pair.source.list_after("t/_tidelog/holds")) == []


# --- cuts --------------------------------------------------------------------------------------------------


def test_a_branch_of_a_cut_is_as_the_lake_was() -> None:
    pair = a_lake()
    create_cut(pair.lake(), "friday")
    pair.lake().topic("t").append(values("after"))
    pair.lake().create_topic("new", 1)
    GroupLog(pair.lake()).commit_offsets("g", {("t", 0): CommittedOffset(4)})
    merge(pair.lake(), "t")
    assert pair.make("friday").cut == "friday"
    branch = pair.branch()
    assert (branch.topics(), read(branch, "t")) == (["t", "u"], ["a", "b", "c"])
    assert GroupLog(branch).offsets("g")["t", 0].offset == 1
    assert green(branch)
    branch.topic("t").append(values("another"))
    assert read(pair.lake(), "t") == ["a", "b", "c", "after"]


def test_a_cut_that_is_kept_stays_within_reach() -> None:
    pair = a_lake()
    create_cut(pair.lake(), "friday", keep=True)
    trim(pair)
    pair.make("friday")
    assert read(pair.branch(), "t") == ["a", "b", "c"]


def test_a_cut_that_is_trimmed_is_out_of_reach() -> None:
    pair = a_lake()
    create_cut(pair.lake(), "friday")
    trim(pair)
    with pytest.raises(OutOfReachError, match=r"does not reach back to its version .*--keep"):
        pair.make("friday")


def test_a_position_past_the_end_is_the_end() -> None:
    """A commit may be in a table of groups before its record is in the part of the topic that was looked at."""
    pair = a_lake()
    plan = Branch(pair.source.uri, "", 1, "n", {"t": 1, "u": 0, "__consumer_offsets": 1})
    lake = pair.lake()
    GroupLog(lake).commit_offsets("g", {("t", 0): CommittedOffset(3), ("u", 1): CommittedOffset(0)})
    plan = Branch(pair.source.uri, "", 1, "n", {"t": 1, "u": 0, "__consumer_offsets": 2})
    Lake("", None, storage=pair.target, clock=pair.clock, may_change_follower=True).begin_branch(plan, {})
    pair.make()
    assert {place: one.offset for place, one in GroupLog(pair.branch()).offsets("g").items()} == {
        ("t", 0): 1,
        ("u", 1): 0,
    }


# --- transactions and groups -------------------------------------------------------------------------------


def test_a_producer_with_an_open_transaction_is_fenced_in_the_branch_alone() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    copy(producer, "one", 1)
    producer.begin()
    stage(producer, "a", "two")
    producer.add_offsets(GroupIdentity(GROUP), offsets_to(2))
    pair = Branched(shared.storage, shared.clock)
    assert pair.make().fenced == 1
    producer.commit()
    assert read(pair.lake(), "a") == ["one", "two"]
    assert read(pair.branch(), "a") == ["one"]
    process = pair.process()
    assert process.stable() == {("in", 0): 1}
    assert green(pair.branch())
    own = process.ready()
    copy(own, "three", 3)
    assert read(pair.branch(), "b") == ["one", "three"]


def test_a_producer_that_began_in_the_source_can_not_commit_in_the_branch() -> None:
    shared = SharedLake()
    old = shared.first.ready()
    copy(old, "one")
    pair = Branched(shared.storage, shared.clock)
    pair.make()
    one = shared.first.log.all()[0]
    key = TransactionKey(one.transactional_id, one.producer_id, one.epoch, one.number + 1)
    with pytest.raises(ProducerFencedError):
        pair.process().log.intent(key, [], [])


def test_members_of_groups_stay_with_the_source() -> None:
    pair = a_lake()
    log = GroupLog(pair.lake())
    member = Member("m", "client", "host", 10_000, 60_000, (("range", b""),))
    log.decide("g", lambda view: join(view, "g", member, rejoins=False, now_ms=1))
    assert GroupLog(pair.lake()).with_members().keys() == {"g"}
    pair.make()
    groups = GroupLog(pair.branch())
    assert groups.with_members() == {}
    groups.commit_offsets("g", {("t", 0): CommittedOffset(2)})
    assert GroupLog(pair.lake()).with_members().keys() == {"g"}


# --- of a follower -----------------------------------------------------------------------------------------


def test_a_branch_of_a_follower_is_a_lake_of_its_own() -> None:
    shared = SharedLake()
    copy(shared.first.ready(), "one", 1)
    mirrored = Pair(shared.storage, shared.clock)
    mirrored.ship()
    pair = Branched(mirrored.follower, shared.clock)
    pair.make()
    copy(pair.process().ready(), "two", 2)
    assert read(pair.branch(), "b") == ["one", "two"]
    assert read(mirrored.copy(), "b") == ["one"]
    assert green(pair.branch())


def test_a_follower_that_lacks_a_part_of_a_transaction_is_branched_when_that_has_come() -> None:
    shared = SharedLake()
    create_cut(shared.first.lake, "before")
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "one")
    dies_before(shared, "a", producer)
    mirrored = Pair(shared.storage, shared.clock)
    mirrored.ship()
    pair = Branched(mirrored.follower, shared.clock)
    with pytest.raises(LakeFollowsError, match=r"is committed of which a part is not here yet\. Try again"):
        pair.make()
    assert pair.facts() is None
    pair.make("before")
    assert read(pair.branch(), "a") == []
    pair.discard()
    shared.process().producer().init()  # the source has it rolled forward
    mirrored.ship()
    pair.make()
    assert read(pair.branch(), "a") == ["one"]
    assert green(pair.branch())


# --- while it is made, and when that was broken off --------------------------------------------------------


def broken_off(pair: Branched) -> Branched:
    moment = next(m for m in count(3) if pair.breaks_off(m) and (facts := pair.facts()) and not facts.is_whole)
    assert moment
    return pair


def test_writers_refuse_a_branch_that_was_broken_off() -> None:
    pair = broken_off(a_lake())
    writes: list[Callable[[Lake], object]] = [
        lambda lake: lake.topic("t").append(values("x")),
        lambda lake: lake.create_topic("v", 1),
        lambda lake: lake.alter_config({"num.partitions": "2"}),
        lambda lake: ClusterLog(lake).raise_epoch(3),
    ]
    for write in writes:
        with pytest.raises(LakeNotWholeError, match=r"not whole.*goes on.*--discard"):
            write(pair.branch())
    assert issubclass(LakeNotWholeError, LakeFollowsError)
    pair.make()
    pair.branch().create_topic("v", 1)


def test_a_branch_that_was_broken_off_goes_on_as_what_it_was_begun() -> None:
    pair = a_lake()
    create_cut(pair.lake(), "friday")
    broken_off(pair)
    with pytest.raises(NotABranchError, match=r"is being made of .*Call it as it was called"):
        pair.make("friday")
    before = pair.facts()
    pair.lake().topic("t").append(values("later"))
    pair.make()
    assert read(pair.branch(), "t") == ["a", "b", "c"]
    after = pair.facts()
    assert before is not None
    assert after == before.made()


def test_a_file_that_is_lost_is_named() -> None:
    pair = a_lake()
    lost = next(o.path for o in pair.source.list_after("t/partition=0") if "late" not in o.path)
    for info in pair.source.list_after("t/partition=0"):
        lost = info.path
    pair.source.delete(lost)
    with pytest.raises(MissingSegmentError, match=f"{lost} is not at"):
        pair.make()


# --- what is refused, and discarded ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["notes.txt", "photos/2026/sea.jpg"])
def test_a_folder_with_other_files_does_not_become_a_branch(path: str) -> None:
    pair = a_lake()
    pair.target.put(path, b"mine")
    with pytest.raises(NotABranchError, match=rf"{path} is at .* would delete it, too"):
        pair.make()
    assert pair.notes() == []
    pair.target.delete(path)
    pair.make()


def test_a_lake_does_not_become_a_branch() -> None:
    pair = a_lake()
    pair.branch().create_topic("own", 1)
    with pytest.raises(NotABranchError, match="it is no branch"):
        pair.make()
    with pytest.raises(NotABranchError, match="is no branch, so nothing"):
        pair.discard()
    assert pair.branch().topics() == ["own"]


def test_a_branch_is_made_once() -> None:
    pair = a_lake()
    pair.make()
    with pytest.raises(NotABranchError, match=r"is a branch of .* already"):
        pair.make()


@pytest.mark.parametrize("below", ["", "/branches/x"])
def test_a_branch_is_beside_its_lake(below: str) -> None:
    pair = a_lake()
    pair.target.inner.uri = f"{pair.source.uri}{below}"  # type: ignore[misc]
    with pytest.raises(NotABranchError, match="one of the two would be in the other"):
        pair.make()


def test_a_discarded_branch_leaves_nothing() -> None:
    pair = a_lake()
    pair.make()
    assert [one.state for one in pair.notes()] == [BranchState.WHOLE]
    pair.discard()
    assert (list(pair.target.list_after("")), pair.target.list_folders("")) == ([], [])
    assert pair.notes() == []
    assert read(pair.lake(), "t") == ["a", "b", "c"]
    assert green(pair.lake())
