"""Rewinds to a cut: which records leave, that offsets and sequences stay, which groups go back, what is named."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.faults import FaultyStorage
from support.logs import CountingIds, FakeClock, memory_lake, open_lake, quiet, read_offsets, values
from support.rewrites import merge
from support.transactions import GROUP, SharedLake, copy, dies_before, stage

from tidelog.check.lake import Severity, check_lake
from tidelog.cuts.model import Cut, CutLostError, CutTable
from tidelog.groups.member.heartbeats import Leases, lease_path
from tidelog.groups.model import CommittedOffset, Decision, Group, GroupPhase, Member
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import (
    LakeFollowsError,
    PolicyViolationError,
    StorageUnavailableError,
    UnknownTopicError,
)
from tidelog.log.checkpoints.entry_ranges import decoded_entries
from tidelog.log.config.lake_file import Follows
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Entry
from tidelog.log.lake import Lake
from tidelog.log.storage import Storage
from tidelog.mirror.branch.making import make_branch
from tidelog.operations import rewinds
from tidelog.operations.cuts import create_cut, take_cut
from tidelog.operations.rewinds import rewind_lake, rewind_topics
from tidelog.retention.compaction.run import LocalCompactor, compact
from tidelog.retention.key_erasure import erase_keys
from tidelog.retention.predicates.parse import parse_where

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
T0_MS = 1_700_000_000_000


def records(*texts: str, deploy: str | None = None, at_s: int = 0, partition: int = 0) -> pa.Table:
    """Records of a deploy; the key of each is its first letter."""
    headers = None if deploy is None else [("deploy", deploy.encode())]
    return values(
        *texts,
        key=[text[0].encode() for text in texts],
        headers=pa.array([headers] * len(texts), HEADERS),
        partition=pa.array([partition] * len(texts), pa.int32()),
        timestamp=pa.array([(T0_MS + 1000 * at_s) * 1000] * len(texts), pa.timestamp("us", tz="UTC")),
    )


def lake_with(*batches: pa.Table, partitions: int = 1) -> tuple[Lake, FaultyStorage, FakeClock]:
    """Topic "t", an entry for each batch."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions)
    for batch in batches:
        lake.topic("t").append(batch)
    return lake, storage, clock


def seen(storage: FaultyStorage, clock: FakeClock, topic: str = "t", partition: int = 0) -> list[tuple[int, str]]:
    """What a process reads that starts now; the lake is sound."""
    assert not check_lake(storage, deep=True, clock=clock).of(Severity.ERROR)
    return read_offsets(open_lake(storage, clock), topic, partition)


def test_what_came_after_the_cut_leaves_and_offsets_are_not_given_again() -> None:
    lake, storage, clock = lake_with(records("a0", "a1"))
    cut = take_cut(lake, "friday")
    lake.topic("t").append(records("b0"))
    lake.topic("t").append(records("b1", "b2"))
    shown = rewind_topics(lake, cut, ["t"])
    assert (shown.records, shown.executed, [one.rewritten for one in shown.topics]) == (3, False, [2])
    assert len(seen(storage, clock)) == 5
    done = rewind_topics(lake, cut, ["t"], execute=True)
    assert (done.records, done.failed) == (3, False)
    assert seen(storage, clock) == [(0, "a0"), (1, "a1")]
    assert lake.offsets("t") == {0: (0, 5)}
    [kept, hole] = lake.topic("t").state().live(0)
    assert (kept.records, hole.records, hole.base_offset, hole.end) == (2, 0, 2, 5)
    assert lake.topic("t").append(records("c0")) == {0: (5, 6)}
    assert seen(storage, clock) == [(0, "a0"), (1, "a1"), (5, "c0")]
    history = lake.topic("t").state().version
    assert rewind_topics(lake, cut, ["t"]).records == 1
    assert rewind_topics(lake, take_cut(lake), ["t"], execute=True).records == 0
    assert lake.topic("t").state().version == history


def test_a_segment_that_the_cut_is_amid_is_cut() -> None:
    lake, storage, clock = lake_with(records("a0", "a1"))
    cut = take_cut(lake)
    lake.topic("t").append(records("b0", "b1"))
    merge(lake, "t")
    assert len(lake.topic("t").state().live(0)) == 1
    assert rewind_topics(lake, cut, ["t"]).records == 2
    rewind_topics(lake, cut, ["t"], execute=True)
    assert seen(storage, clock) == [(0, "a0"), (1, "a1")]
    assert lake.offsets("t") == {0: (0, 4)}


def test_only_what_a_condition_means_leaves() -> None:
    lake, storage, clock = lake_with(records("a0", deploy="42"))
    cut = take_cut(lake)
    lake.topic("t").append(records("b0", "c0", deploy="41"))
    lake.topic("t").append(pa.concat_tables([records("d0", deploy="42"), records("e0", deploy="41")]))
    lake.topic("t").append(records("f0"))
    where = parse_where("headers['deploy'] = '42'")
    files = [segment.path for segment in lake.topic("t").state().live(0)]
    assert rewind_topics(lake, cut, ["t"], where=where).records == 1
    done = rewind_topics(lake, cut, ["t"], where=where, execute=True)
    assert (done.records, [one.rewritten for one in done.topics]) == (1, [1])
    assert seen(storage, clock) == [(0, "a0"), (1, "b0"), (2, "c0"), (4, "e0"), (5, "f0")]
    after = [segment.path for segment in lake.topic("t").state().live(0)]
    assert [path in after for path in files] == [True, True, False, True]


def test_segments_of_other_times_are_not_read() -> None:
    lake, storage, clock = lake_with(*(records(f"{n}", at_s=n) for n in range(5)))
    reads: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if phase == "before" and method in ("get", "open") and "/partition=" in path:
            reads.append(path)

    storage.hook = hook
    empty = Cut("", "", 0, {"t": CutTable(0, lake.topic("t").id, ((0, 0),))})
    done = rewind_topics(lake, empty, ["t"], where=parse_where(f"timestamp > {T0_MS + 2500}"), execute=True)
    storage.hook = quiet
    assert (done.records, len(set(reads))) == (2, 2)
    assert seen(storage, clock) == [(0, "0"), (1, "1"), (2, "2")]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_is_appended_meanwhile_stays_and_is_named(moment: str) -> None:
    lake, storage, clock = lake_with(records("a0"))
    cut = take_cut(lake)
    lake.topic("t").append(records("b0"))
    other = open_lake(storage, clock)
    left = [lambda: other.topic("t").append(records("new"))]

    def hook(method: str, path: str, phase: str) -> None:
        if left and method == "put_if_absent" and path.startswith("t/_delta_log") and phase == moment:
            left.pop()()

    storage.hook = hook
    done = rewind_topics(lake, cut, ["t"], execute=True)
    storage.hook = quiet
    assert done.topics[0].arrived == {0: 1}
    assert seen(storage, clock) == [(0, "a0"), (2, "new")]


def test_partitions_and_topics_that_came_after_the_cut() -> None:
    lake, storage, clock = lake_with(records("a0"))
    cut = take_cut(lake)
    lake.alter_topic("t", 2)
    lake.topic("t").append(records("b0", partition=1))
    rewind_topics(lake, cut, ["t"], execute=True)
    assert (seen(storage, clock), seen(storage, clock, partition=1)) == ([(0, "a0")], [])
    lake.create_topic("later", 1)
    lake.topic("later").append(records("c0"))
    with pytest.raises(CutLostError):
        rewind_topics(lake, cut, ["later"])
    with pytest.raises(UnknownTopicError):
        rewind_topics(lake, cut, ["none"])
    lake.create_topic("_schemas", 1)
    with pytest.raises(PolicyViolationError, match="schema delete"):
        rewind_topics(lake, take_cut(lake), ["_schemas"])
    done = rewind_lake(lake, cut, execute=True)
    assert (seen(storage, clock, "later"), list(done.left)) == ([], ["_schemas"])
    lake.delete_topic("t")
    assert rewind_lake(lake, cut).left["t"] == "it was deleted since"


def test_tables_that_came_after_the_cut_are_no_topics() -> None:
    lake, _, _ = lake_with(records("a0"))
    cut = take_cut(lake)
    GroupLog(lake).commit_offsets("g", {("t", 0): CommittedOffset(1)})
    create_cut(lake, "later")
    assert rewind_lake(lake, cut).left == {}


def test_a_follower_is_not_rewound() -> None:
    lake, storage, clock = lake_with(records("a0"))
    cut = take_cut(lake)
    lake.topic("t").append(records("b0"))
    open_lake(storage, clock).follow(Follows("memory://source"))
    clock.pass_s(20)
    written: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if method in ("put", "put_if_absent", "create"):
            written.append(path)

    storage.hook = hook
    with pytest.raises(LakeFollowsError):
        rewind_topics(lake, cut, ["t"], execute=True)
    storage.hook = quiet
    assert written == []
    assert rewind_topics(lake, cut, ["t"]).records == 1


# --- groups and transactions -------------------------------------------------------------------------------


def test_positions_after_the_cut_go_back_to_it() -> None:
    lake, _, _ = lake_with(records("a0", "a1", "a2"))
    groups = GroupLog(lake)
    groups.commit_offsets("behind", {("t", 0): CommittedOffset(1)})
    groups.commit_offsets("went on", {("t", 0): CommittedOffset(2)})
    cut = take_cut(lake)
    lake.topic("t").append(records("b0", "b1"))
    groups.commit_offsets("went on", {("t", 0): CommittedOffset(5)})
    groups.commit_offsets("new", {("t", 0): CommittedOffset(4)})
    groups.commit_offsets("new, and within", {("t", 0): CommittedOffset(3)})
    shown = rewind_topics(lake, cut, ["t"], groups=True)
    assert [(one.group, one.before, one.after) for one in shown.positions] == [("new", 4, 3), ("went on", 5, 2)]
    assert groups.offsets("new")["t", 0].offset == 4
    rewind_topics(lake, cut, ["t"], execute=True)
    assert groups.offsets("went on")["t", 0].offset == 5
    rewind_topics(lake, cut, ["t"], groups=True, execute=True)
    found = {name: view.offsets["t", 0].offset for name, view in groups.views().items()}
    assert found == {"behind": 1, "went on": 2, "new": 3, "new, and within": 3}


def read_past_a_cut() -> tuple[Lake, FaultyStorage, Cut]:
    """A lake of which group "g" has read past the cut in two partitions."""
    lake, storage, _ = lake_with(records("a0"), partitions=2)
    cut = take_cut(lake)
    lake.topic("t").append(records("b0"))
    lake.topic("t").append(records("b1", partition=1))
    GroupLog(lake).commit_offsets("g", {("t", 0): CommittedOffset(2), ("t", 1): CommittedOffset(1)})
    return lake, storage, cut


def offsets_of(lake: Lake) -> list[int]:
    return [GroupLog(lake).offsets("g")["t", p].offset for p in (0, 1)]


def test_a_group_goes_back_in_one_entry() -> None:
    lake, _, cut = read_past_a_cut()
    [table] = GroupLog(lake).tables()
    before = table.version
    rewind_topics(lake, cut, ["t"], groups=True, execute=True)
    assert (offsets_of(lake), table.version) == ([1, 0], before + 1)


def with_a_member(alive: bool) -> tuple[Lake, Cut]:
    """The same with a member of the group, which goes on with its heartbeats or not."""
    lake, storage, cut = read_past_a_cut()
    member = Member("m", "client", "host", 45_000, 300_000, ())
    group = Group("g", GroupPhase.STABLE, 1, "consumer", members={"m": member})
    GroupLog(lake).decide("g", lambda _: Decision(response=None, group=group))
    lease = Leases(storage).of_member("g", "m")
    lease.renew()

    def beat(method: str, path: str, phase: str) -> None:
        if (method, phase, path) == ("get", "before", lease_path("g", "m")):
            lease.renew()

    storage.hook = beat if alive else quiet
    return lake, cut


def test_groups_with_members_stay_and_are_named() -> None:
    lake, cut = with_a_member(alive=True)
    done = rewind_topics(lake, cut, ["t"], groups=True, execute=True)
    assert done.failed
    assert [(one.group, "has 1 members" in one.why_not) for one in done.positions] == [("g", True), ("g", True)]
    assert offsets_of(lake) == [2, 1]


def test_groups_whose_members_are_dead_go_back() -> None:
    lake, cut = with_a_member(alive=False)
    shown = rewind_topics(lake, cut, ["t"], groups=True)
    assert ["has 1 members" in one.why_not for one in shown.positions] == [True, True]
    done = rewind_topics(lake, cut, ["t"], groups=True, execute=True)
    assert (done.failed, [one.why_not for one in done.positions]) == (False, ["", ""])
    assert offsets_of(lake) == [1, 0]


def test_parts_of_transactions_in_other_topics_are_named_and_a_lake_is_rewound_whole() -> None:
    shared = SharedLake()
    producer = shared.first.ready("copier")
    copy(producer, "before", offset=1)
    lake = shared.first.lake
    cut = take_cut(lake)
    copy(producer, "after", offset=2)
    done = rewind_topics(lake, cut, ["a"], execute=True)
    assert done.crossing == {"copier": ("b",)}
    assert shared.seen() == [["before"], ["before", "after"]]
    whole = rewind_lake(lake, cut, execute=True)
    assert (whole.crossing, whole.records) == ({}, 1)
    assert shared.seen() == [["before"], ["before"]]
    assert shared.process().offsets() == {("in", 0): 1}
    copy(producer, "next", offset=2)
    assert shared.seen() == [["before", "next"], ["before", "next"]]


def test_a_topic_that_cant_be_opened_may_have_a_part_and_hinders_no_rewind() -> None:
    shared = SharedLake()
    producer = shared.first.ready("copier")
    lake = shared.first.lake
    lake.create_topic("broken", 1)
    cut = take_cut(lake)
    copy(producer, "after")
    lake.topic("broken").append(values("1"))
    shared.storage.put(f"broken/{layout.entry_path(1)}", b"no entry")
    for execute in (False, True):
        done = rewind_topics(shared.process().lake, cut, ["a"], execute=execute)
        assert (done.crossing, done.records) == ({"copier": ("b", "broken")}, 1)
    assert shared.seen() == [[], ["after"]]


def test_a_store_that_fails_while_other_topics_are_looked_at_leaves_all_as_it_was() -> None:
    shared = SharedLake()
    cut = take_cut(shared.first.lake)
    copy(shared.first.ready("copier"), "after")

    def fail(method: str, path: str, phase: str) -> None:
        if path.startswith("in/_delta_log"):
            raise StorageUnavailableError("down")

    lake = shared.process().lake
    shared.storage.hook = fail
    with pytest.raises(StorageUnavailableError):
        rewind_topics(lake, cut, ["a"], execute=True)
    shared.storage.hook = quiet
    assert shared.seen() == [["after"], ["after"]]


@pytest.mark.parametrize("topic", ["a", "b"])
def test_a_transaction_that_is_decided_and_not_applied_leaves_too(topic: str) -> None:
    shared = SharedLake()
    producer = shared.first.ready("copier")
    cut = take_cut(shared.first.lake)
    producer.begin()
    stage(producer, "a", "1")
    stage(producer, "b", "1")
    dies_before(shared, topic, producer)
    done = rewind_topics(shared.process().lake, cut, ["a"], execute=True)
    assert (done.records, done.crossing) == (1, {"copier": ("b",)})
    assert shared.seen() == [[], ["1"]]
    assert GROUP not in shared.process().groups.views()


# --- any order of things -----------------------------------------------------------------------------------


@given(
    before=st.lists(st.sampled_from("ab"), max_size=6),
    after=st.lists(st.sampled_from("ab"), max_size=8),
    sizes=st.lists(st.integers(1, 3), min_size=14, max_size=14),
    merged=st.booleans(),
    condition=st.sampled_from([None, "key = 'a'", "NOT key = 'a'"]),
)
def test_exactly_these_records_leave(
    before: list[str], after: list[str], sizes: list[int], merged: bool, condition: str | None
) -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1)
    count = iter(sizes)
    written: list[str] = []

    def write(letters: list[str]) -> None:
        while letters:
            size = next(count)
            texts = [f"{letter}{len(written) + n}" for n, letter in enumerate(letters[:size])]
            letters = letters[size:]
            lake.topic("t").append(records(*texts))
            written.extend(texts)

    write(before)
    cut = take_cut(lake)
    write(after)
    if merged and written:  # an empty topic has no segments to merge
        merge(lake, "t")
    where = None if condition is None else parse_where(condition)
    goes = {None: "ab", "key = 'a'": "a"}.get(condition, "b")
    done = rewind_topics(lake, cut, ["t"], where=where, execute=True)
    stays = [(n, text) for n, text in enumerate(written) if n < len(before) or text[0] not in goes]
    assert seen(storage, clock) == stays
    assert done.records == len(written) - len(stays)
    assert lake.offsets("t")[0][1] == len(written)


# --- what compaction dropped -------------------------------------------------------------------------------


def keyed(*texts: str) -> pa.Table:
    """Records of keys, the first letter of each."""
    return values(*texts, key=pa.array([text[0].encode() for text in texts], pa.binary()))


def compacted_since(cut_name: str) -> tuple[Lake, Lake, Cut, FaultyStorage, FakeClock]:
    """A topic that was compacted after a cut, and a branch of the cut."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1"})
    lake.topic("t").append(keyed("a0", "b0"))
    lake.topic("t").append(keyed("c0"))
    cut = create_cut(lake, cut_name)
    branch = Lake(f"{storage.uri}-branch", None, clock=clock, ids=CountingIds(7_000_000), may_change_follower=True)
    make_branch(lake, branch, cut_name)
    lake.topic("t").append(keyed("a1"))
    lake.topic("t").append(keyed("z1"))
    clock.pass_s(10)
    assert compact(lake, "t", now_ms=clock.ms, compactor=LocalCompactor(lake.storage, lake.ids)).landed
    assert [text for _, text in seen(storage, clock)] == ["b0", "c0", "a1", "z1"]
    return lake, Lake(branch.uri, False, clock=clock, ids=CountingIds(8_000_000)), cut, storage, clock


def test_what_compaction_dropped_comes_back_from_a_branch() -> None:
    lake, branch, cut, storage, clock = compacted_since("friday")
    assert rewind_topics(lake, cut, ["t"]).compacted == ("t",)
    shown = rewind_topics(lake, cut, ["t"], branch=branch)
    assert ([one.records for one in shown.restored], shown.compacted) == ([1], ())
    done = rewind_topics(lake, cut, ["t"], execute=True, branch=branch)
    assert (done.failed, [one.records for one in done.restored]) == (False, [1])
    assert seen(storage, clock) == [(0, "a0"), (1, "b0"), (2, "c0")]
    assert lake.offsets("t") == {0: (0, 5)}
    version = lake.topic("t").state().version
    assert rewind_topics(lake, cut, ["t"], execute=True, branch=branch).restored[0].records == 0
    assert lake.topic("t").state().version == version
    # What was compared before is compared again: no older value stays.
    lake.topic("t").append(keyed("a2"))
    lake.topic("t").append(keyed("z2"))
    clock.pass_s(10)
    assert compact(lake, "t", now_ms=clock.ms, compactor=LocalCompactor(lake.storage, lake.ids)).landed
    assert [text for _, text in seen(storage, clock)] == ["b0", "c0", "a2", "z2"]


def test_what_was_erased_since_the_cut_does_not_come_back() -> None:
    lake, branch, cut, storage, clock = compacted_since("friday")
    erase_keys(lake, "t", [b"b"])
    with pytest.raises(PolicyViolationError, match="keys were erased from it since the cut"):
        rewind_topics(lake, cut, ["t"], execute=True, branch=branch)
    assert [text for _, text in seen(storage, clock)] == ["c0", "a1", "z1"]
    with pytest.raises(PolicyViolationError, match="give one of"):
        rewind_topics(lake, cut, ["t"], branch=branch, where=parse_where("key = 'a'"))


def branch_of(lake: Lake, name: str, cut: str = "") -> Lake:
    """A branch beside a lake."""
    with Lake(
        f"{lake.uri}-{name}", None, clock=lake.clock, ids=CountingIds(9_000_000), may_change_follower=True
    ) as made:
        make_branch(lake, made, cut)
    return Lake(f"{lake.uri}-{name}", False, clock=lake.clock, ids=CountingIds(9_500_000))


def test_only_a_branch_that_was_made_at_the_cut_brings_something_back() -> None:
    lake, _, _, storage, clock = compacted_since("friday")
    earlier = branch_of(lake, "earlier", "friday")
    erase_keys(lake, "t", [b"b"])
    cut = create_cut(lake, "saturday")
    clock.pass_s(1)
    stranger, _, _ = memory_lake()
    stranger.create_topic("t", 1)
    later, of_branch = branch_of(lake, "later"), branch_of(earlier, "of-branch")
    for other in (earlier, later, of_branch, stranger, lake):
        with pytest.raises(PolicyViolationError, match="made at the cut 'saturday'"):
            rewind_topics(lake, cut, ["t"], execute=True, branch=other)
    unfinished = branch_of(lake, "unfinished", "saturday")
    facts = unfinished.branch_facts()
    assert facts is not None
    unfinished.note_branch(replace(facts, discarding=True))
    with pytest.raises(PolicyViolationError, match="no whole branch"):
        rewind_topics(lake, cut, ["t"], branch=unfinished)
    assert [text for _, text in seen(storage, clock)] == ["c0", "a1", "z1"]
    made = branch_of(lake, "made", "saturday")
    assert not rewind_topics(lake, cut, ["t"], execute=True, branch=made).failed


def test_what_came_since_the_cut_is_looked_at_once_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, branch, cut, _, _ = compacted_since("friday")
    lake.create_topic("other", 1)
    looked_at: list[str] = []

    def spy(storage: Storage, folder: str, versions: range) -> Iterator[Entry]:
        looked_at.append(folder)
        return decoded_entries(storage, folder, versions)

    monkeypatch.setattr(rewinds, "decoded_entries", spy)
    rewind_topics(lake, cut, ["t"], branch=branch)
    assert looked_at == ["t"]


def test_a_branch_that_went_on_within_a_segment_brings_nothing_back() -> None:
    lake, branch, cut, storage, clock = compacted_since("friday")
    branch.topic("t").append(keyed("q0"))
    merge(branch, "t")
    done = rewind_topics(lake, cut, ["t"], execute=True, branch=branch)
    assert done.failed
    assert [*done.restored[0].problems.values()] == [
        "no segment of the branch ends at offset 3, where the cut does: make the branch at the cut"
    ]
    assert seen(storage, clock) == [(1, "b0"), (2, "c0")]
