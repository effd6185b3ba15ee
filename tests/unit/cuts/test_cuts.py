"""Cuts of a lake in memory while others write: transactions whole, positions within, names, and what is held."""

from collections.abc import Callable

import pytest
from support.logs import Calls, memory_lake, quiet, read, values
from support.transactions import GROUP, SharedLake, copy, dies_before, offsets_to, stage

from tidelog.check.lake import check_lake
from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.model import Cut, CutExistsError, CutLostError, UnknownCutError
from tidelog.groups.model import CommittedOffset
from tidelog.log.base.errors import ContendedLogError, InvalidTopicError, LakeFollowsError, OutcomeUnknownError
from tidelog.log.config.lake_file import Follows
from tidelog.log.delta import layout
from tidelog.log.storage import Storage
from tidelog.log.upkeep.holds import keep_version, read_holds
from tidelog.operations import cuts
from tidelog.operations.cuts import HeldByCuts, create_cut, delete_cut, held_files, take_cut
from tidelog.transactions.ports import GroupIdentity


def ends(cut: Cut) -> dict[str, int]:
    return {name: table.ranges[0][1] for name, table in cut.topics.items()}


def once(does: Callable[[], None], method: str, path: str) -> Callable[[str, str, str], None]:
    """A hook that does something before the first such call to the store."""
    left = [does]

    def hook(called: str, at: str, phase: str) -> None:
        if left and (called, phase) == (method, "before") and at.startswith(path):
            left.pop()()

    return hook


def test_a_cut_has_what_was_acknowledged_before_it() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    copy(producer, "1", offset=4)
    shared.first.groups.commit_offsets("plain", {("in", 0): CommittedOffset(10)})
    cut = take_cut(shared.process().lake)
    assert ends(cut) == {"in": 10, "a": 1, "b": 1}
    assert cut.positions == {GROUP: {("in", 0): 4}, "plain": {("in", 0): 10}}
    assert set(cut.tables) == {"in", "a", "b", "__consumer_offsets", "__transaction_state"}
    assert cut.tables["a"].topic_id == shared.first.lake.topic("a").id
    assert cut.records == 12


def test_an_open_transaction_is_not_in_a_cut() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    producer.add_offsets(GroupIdentity(GROUP), offsets_to(4))
    cut = take_cut(shared.process().lake)
    assert (ends(cut)["a"], cut.positions) == (0, {})


@pytest.mark.parametrize("topic", ["a", "b"])
def test_a_transaction_that_is_decided_is_applied_for_the_cut(topic: str) -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    stage(producer, "b", "1")
    producer.add_offsets(GroupIdentity(GROUP), offsets_to(4))
    dies_before(shared, topic, producer)
    cut = take_cut(shared.process().lake)
    assert ends(cut) == {"in": 10, "a": 1, "b": 1}
    assert cut.positions == {GROUP: {("in", 0): 4}}


@pytest.mark.parametrize("table", ["__consumer_offsets", "in", "a", "b"])
@pytest.mark.parametrize("look", range(1, 4))
def test_a_transaction_amid_a_cut_is_whole_in_it_or_not_at_all(table: str, look: int) -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    copy(producer, "1", offset=1)
    lake = shared.process().lake
    looks = [0]

    def hook(method: str, path: str, phase: str) -> None:
        if phase == "before" and method == "get" and path.startswith(f"{table}/_delta_log"):
            looks[0] += 1
            if looks[0] == look:
                copy(producer, "2", offset=2)
                shared.first.lake.topic("a").append(values("plain"))

    shared.storage.hook = hook
    cut = take_cut(lake)
    shared.storage.hook = quiet
    assert looks[0] >= look
    both = ends(cut)["b"]
    positions = cut.positions[GROUP]["in", 0]
    in_a = [text for text in read(lake, "a", end=ends(cut)["a"]) if text != "plain"]
    assert (len(in_a), positions) == (both, both)


def test_a_transaction_that_is_applied_after_a_later_one_has_the_cut_made_again() -> None:
    shared = SharedLake()
    late, soon = shared.first.ready("late"), shared.first.ready("soon")
    late.begin()
    stage(late, "a", "late")
    stage(late, "b", "late")
    dies_before(shared, "a", late)
    lake = shared.process().lake
    lake.topic("a").state()

    # Between the look at the transactions and the roll-forward of the one that waits, another one is applied.
    shared.storage.hook = once(lambda: copy(soon, "soon"), "put_if_absent", "a/_delta_log")
    cut = take_cut(lake)
    shared.storage.hook = quiet
    assert read(lake, "a", end=ends(cut)["a"]) == ["soon", "late"]
    assert sorted(read(lake, "b", end=ends(cut)["b"])) == ["late", "soon"]


def test_a_position_is_never_past_the_end() -> None:
    shared = SharedLake()
    late, lake = shared.first.ready("late"), shared.process().lake
    copy(late, "1")

    def goes_on() -> None:
        copy(late, "2")
        shared.first.groups.commit_offsets("g", {("a", 0): CommittedOffset(2)})

    # It is committed, past the transaction, after the look at the transactions and before that at the groups.
    shared.first.groups.commit_offsets("g", {("a", 0): CommittedOffset(1)})
    after_groups = once(goes_on, "get", "__consumer_offsets/_delta_log")

    def hook(method: str, path: str, phase: str) -> None:
        if path.startswith("__transaction_state/_delta_log"):
            shared.storage.hook = after_groups

    lake.topic("a").state()
    take_cut(lake)
    shared.storage.hook = hook
    cut = take_cut(lake)
    shared.storage.hook = quiet
    assert (ends(cut)["a"], cut.positions) == (1, {"g": {("a", 0): 1}})


def test_a_lake_without_rest_gives_no_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "is_torn", lambda *_: True)
    with pytest.raises(ContendedLogError, match="50 times"):
        take_cut(SharedLake().first.lake)


def test_cuts_have_names() -> None:
    shared = SharedLake()
    lake = shared.first.lake
    friday = create_cut(lake, "friday")
    lake.topic("a").append(values("1"))
    saturday = create_cut(lake, "saturday")
    log = CutLog(shared.process().lake)
    assert log.all() == {"friday": friday, "saturday": saturday}
    assert (ends(log.get("friday"))["a"], ends(log.get("saturday"))["a"]) == (0, 1)
    with pytest.raises(CutExistsError, match="already"):
        create_cut(lake, "friday")
    assert delete_cut(lake, "friday") == friday
    with pytest.raises(UnknownCutError, match="tidelog cut list"):
        log.get("friday")
    create_cut(lake, "friday")
    assert not check_lake(lake, deep=True).findings
    with pytest.raises(InvalidTopicError):
        lake.create_topic("__cuts", 1)
    assert "__cuts" not in take_cut(lake).tables


def test_a_kept_cut_holds_its_versions_until_it_is_deleted() -> None:
    shared = SharedLake()
    lake = shared.first.lake
    copy(shared.first.ready(), "1", offset=3)
    cut = create_cut(lake, "friday", keep=True)
    assert cut.kept
    for folder, table in cut.tables.items():
        [hold] = read_holds(lake.storage, folder)
        assert (hold.version, hold.by) == (table.version, "cut friday")
        assert hold.is_valid(shared.clock.now_ms() + 10**12)
    delete_cut(lake, "friday")
    assert [hold for folder in cut.tables for hold in read_holds(lake.storage, folder)] == []


def test_holds_that_a_crash_left_are_swept_with_the_next_cut() -> None:
    shared = SharedLake()
    lake = shared.first.lake

    class Dead(BaseException):
        pass

    def die(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and path.startswith(f"{layout.CUTS_TABLE}/_delta_log"):
            raise Dead

    shared.storage.hook = die
    with pytest.raises(Dead):
        create_cut(lake, "friday", keep=True)
    shared.storage.hook = quiet
    assert read_holds(lake.storage, "a")
    assert CutLog(lake).all() == {}
    shared.clock.pass_s(2 * 3600)
    kept = create_cut(lake, "saturday", keep=True)
    create_cut(lake, "sunday")
    delete_cut(lake, "sunday")
    assert [hold.path.rpartition("cut-")[2] for hold in read_holds(lake.storage, "a")] == [kept.id]


def test_holds_that_a_crash_left_are_swept_where_nothing_else_is_held() -> None:
    shared = SharedLake()
    lake = shared.first.lake
    keep_version(lake.storage, "a", "cut-left", 0, "cut friday")
    shared.clock.pass_s(2 * 3600)
    keep_version(lake.storage, "b", "cut-young", 0, "cut sunday")
    create_cut(lake, "saturday", keep=True)
    delete_cut(lake, "saturday")
    assert (read_holds(lake.storage, "a"), len(read_holds(lake.storage, "b"))) == ([], 1)


def cut_holds(storage: Storage) -> list[str]:
    """The objects that hold versions for cuts."""
    return [h.path for folder in storage.list_folders("") for h in read_holds(storage, folder) if "/cut-" in h.path]


def test_a_log_that_is_trimmed_amid_the_making_of_a_kept_cut_leaves_no_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = SharedLake().first.lake
    monkeypatch.setattr(cuts, "newest_floor", lambda _, folder: 10**6 if folder == "b" else -1)
    with pytest.raises(CutLostError, match="'b' was trimmed"):
        create_cut(lake, "friday", keep=True)
    assert cut_holds(lake.storage) == []


def test_a_follower_gets_no_cut_and_nothing_is_applied_for_it() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    dies_before(shared, "a", producer)
    shared.process().lake.follow(Follows("memory://source"))
    shared.clock.pass_s(20)
    before = shared.first.lake.topic("a").state().version
    for keep in (False, True):
        with pytest.raises(LakeFollowsError):
            create_cut(shared.first.lake, "friday", keep=keep)
    assert shared.process().lake.topic("a").state().version == before
    assert cut_holds(shared.storage) == []


def test_a_lake_that_becomes_a_follower_amid_the_making_of_a_kept_cut_holds_nothing() -> None:
    shared = SharedLake()

    def follow() -> None:
        shared.process().lake.follow(Follows("memory://source"))
        shared.clock.pass_s(20)

    shared.storage.hook = once(follow, "put", "b/_tidelog/holds/cut-")
    with pytest.raises(LakeFollowsError):
        create_cut(shared.first.lake, "friday", keep=True)
    shared.storage.hook = quiet
    assert cut_holds(shared.storage) == []


def test_holds_stay_where_it_is_not_known_whether_the_cut_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = SharedLake()

    def lose_the_answer(*_: object) -> None:
        raise OutcomeUnknownError("no answer", request_id="")

    monkeypatch.setattr(CutLog, "create", lose_the_answer)
    with pytest.raises(OutcomeUnknownError):
        create_cut(shared.first.lake, "friday", keep=True)
    assert {path.partition("/")[0] for path in cut_holds(shared.storage)} == {"in", "a", "b"}


def test_what_several_kept_cuts_hold_is_found_by_one_look_at_each_entry() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 1)
    for text in ("a", "b", "c"):
        lake.topic("t").append(values(text))
    sizes = [segment.size for segment in lake.topic("t").state().live(0)]
    first = create_cut(lake, "first", keep=True)
    lake.delete_records("t", {0: 1})
    create_cut(lake, "second", keep=True)
    lake.delete_records("t", {0: 2})
    create_cut(lake, "last", keep=True)
    head = lake.topic("t").state().version
    storage.hook = calls = Calls()
    held = held_files(lake, CutLog(lake).all().values())
    assert held == HeldByCuts({"first": sizes[0] + sizes[1], "second": sizes[1], "last": 0}, sizes[0] + sizes[1])
    entries = [path for method, path in calls.seen if method == "get" and path.startswith(f"t/{layout.LOG_FOLDER}")]
    assert entries == [f"t/{layout.entry_path(v)}" for v in range(first.tables["t"].version + 1, head + 1)]
