"""Writers and readers that were frozen while others went on and cleanup trimmed the log.

frozen at v          others: v+1 ... v+n, checkpoint, floor F > v, entries up to F deleted          awake: v+1?
"""

from collections.abc import Callable

import pytest
from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, put_checkpoint, quiet, read, read_offsets, stage, values

from tidelog.log.base.errors import OutcomeUnknownError, StorageUnavailableError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.upkeep.trim import trim

MIN_AGE_MS = 10_000
ENTRIES = 12
LATE = 10  # as many gaps as make an entry old, however long they are


def others_go_on(storage: FaultyStorage, clock: FakeClock, *, keep: str = "o") -> None:
    """Another process appends, writes a checkpoint of its head and trims what is old; the clock moves past it all."""
    inner = storage.inner
    with open_lake(inner, clock) as lake:
        for i in range(ENTRIES):
            lake.topic("t").append(values(f"{keep}{i}"))
            clock.pass_s(1)
        head = lake.topic("t").state().version
        for i in range(LATE):
            clock.pass_s(6)
            lake.topic("t").append(values(f"{keep}-late{i}"))
        put_checkpoint(inner, "t", head)
        assert trim(inner, "t", MIN_AGE_MS).floor == head - 1
        assert not any(o.path.endswith(layout.entry_path(head - 1)) for o in inner.list_after("t/_delta_log"))


def frozen_at(
    storage: FaultyStorage, clock: FakeClock, method: str, phase: str, *, on: str = ".json"
) -> Callable[[], bool]:
    """The next call of `method` freezes while others go on. The answer says whether it came to that."""
    done: list[bool] = []

    def hook(called: str, path: str, at: str) -> None:
        if (called, at) == (method, phase) and on in path and not done:
            done.append(True)
            others_go_on(storage, clock)

    storage.hook = hook
    return lambda: bool(done)


def started() -> tuple[Lake, FaultyStorage, FakeClock]:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=1, config={"log.min.age.ms": str(MIN_AGE_MS)})
    lake.topic("t").append(values("a", "b"))
    return lake, storage, clock


def whole(lake: Lake, storage: FaultyStorage, clock: FakeClock, *own: str) -> None:
    """All readers read all of it once, at dense offsets: the start, the others' records, and one's own."""
    wanted = sorted(["a", "b", *(f"o{i}" for i in range(ENTRIES)), *(f"o-late{i}" for i in range(LATE)), *own])
    fresh = open_lake(storage.inner, clock)
    for seen in (read_offsets(lake, "t"), read_offsets(fresh, "t")):
        assert sorted(v for _, v in seen) == wanted
        assert [o for o, _ in seen] == list(range(len(wanted)))


# Every call that an append makes, as a place to freeze; but for one, see below.
PLACES = [
    ("get", "before"),
    ("put", "before"),
    ("put", "after"),
    ("sync", "before"),
    ("sync", "after"),
    ("put_if_absent", "after"),
]


@pytest.mark.parametrize(("method", "phase"), PLACES)
def test_a_writer_frozen_anywhere_in_an_append_neither_loses_nor_doubles_it(method: str, phase: str) -> None:
    lake, storage, clock = started()
    froze = frozen_at(storage, clock, method, phase, on="")
    ranges = lake.topic("t").append(values("mine"))
    assert froze()
    whole(lake, storage, clock, "mine")
    ((first, end),) = ranges.values()
    assert read(lake, "t", 0, first, end) == ["mine"]


def test_a_writer_frozen_inside_its_put_does_not_know() -> None:
    """Whether its entry came in time, and was compacted away and trimmed since, or came too late, is unknown."""
    lake, storage, clock = started()
    frozen_at(storage, clock, "put_if_absent", "before")
    with pytest.raises(OutcomeUnknownError, match="trimmed past"):
        lake.topic("t").append(values("mine"))
    whole(lake, storage, clock)


def test_a_writer_from_the_past_whose_put_succeeded_is_not_believed() -> None:
    """The place of its entry had become free again: cleanup deleted the entry that was there."""
    lake, storage, clock = started()
    before = lake.topic("t").state().version
    frozen_at(storage, clock, "sync", "after", on="parquet")
    lake.topic("t").append(values("mine"))
    stray = storage.inner.get(f"t/{layout.entry_path(before + 1)}")
    assert b"commitInfo" in stray
    assert lake.topic("t").state().version == before + ENTRIES + LATE + 1
    whole(lake, storage, clock, "mine")


def test_the_next_trim_sweeps_the_stray_away() -> None:
    lake, storage, clock = started()
    before = lake.topic("t").state().version
    frozen_at(storage, clock, "sync", "after", on="parquet")
    lake.topic("t").append(values("mine"))
    clock.pass_s(60)
    lake.topic("t").append(values("later"))
    trim(storage.inner, "t", MIN_AGE_MS)
    assert f"t/{layout.entry_path(before + 1)}" not in [o.path for o in storage.inner.list_after("t/_delta_log")]


def test_an_idle_reader_does_not_take_a_stray_for_the_next_entry() -> None:
    lake, storage, clock = started()
    idle = open_lake(storage.inner, clock)
    assert read(idle, "t") == ["a", "b"]
    frozen_at(storage, clock, "sync", "after", on="parquet")
    lake.topic("t").append(values("mine"))
    whole(idle, storage, clock, "mine")


def test_an_idle_reader_finds_its_next_entry_gone_and_opens_again() -> None:
    _, storage, clock = started()
    idle = open_lake(storage.inner, clock)
    assert read(idle, "t") == ["a", "b"]
    others_go_on(storage, clock)
    whole(idle, storage, clock)


@pytest.mark.parametrize("nth_get", range(1, ENTRIES))
def test_a_reader_frozen_between_two_entries_does_not_take_the_gap_for_the_head(nth_get: int) -> None:
    """It reads on entry by entry, slowly, and cleanup overtakes it: what is missing is not the end."""
    lake, storage, clock = started()
    idle = open_lake(storage, clock).topic("t")
    assert idle.offsets() == {0: (0, 2)}
    for i in range(nth_get):
        lake.topic("t").append(values(f"x{i}"))
    gets: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("get", "before") and path.endswith(".json") and "_delta_log" in path:
            gets.append(path)
            if len(gets) == nth_get:
                others_go_on(storage, clock)

    storage.hook = hook
    assert idle.offsets() == {0: (0, 2 + nth_get + ENTRIES + LATE)}


@pytest.mark.parametrize(
    ("method", "on"), [("list_after", "floor"), ("get", "_last_checkpoint"), ("open", "checkpoint"), ("get", ".json")]
)
@pytest.mark.parametrize("phase", ["before", "after"])
def test_opening_while_cleanup_runs(method: str, phase: str, on: str) -> None:
    """The checkpoint, or the entries after it, may go between two looks."""
    _, storage, clock = started()
    others_go_on(storage, clock)
    frozen = FaultyStorage(storage.inner, quiet)
    opening = open_lake(frozen, clock)
    done: list[bool] = []

    def hook(called: str, path: str, at: str) -> None:
        if (called, at) == (method, phase) and on in path and not done:
            done.append(True)
            others_go_on(storage, clock, keep="p")

    frozen.hook = hook
    got = opening.topic("t").append(values("mine"))
    assert done
    seen = read_offsets(open_lake(storage.inner, clock), "t")
    assert [o for o, _ in seen] == list(range(2 + 2 * (ENTRIES + LATE) + 1))
    assert (got[0][0], "mine") in seen


def test_the_floors_can_not_be_looked_at_after_a_late_put() -> None:
    """Whether the entry counts is then not known, and its segments stay."""
    lake, storage, clock = started()
    lake.topic("t")

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "after"):
            clock.pass_s(60)
            storage.hook = no_listing

    def no_listing(method: str, path: str, phase: str) -> None:
        if method == "list_after":
            raise StorageUnavailableError("timed out")

    storage.hook = hook
    with pytest.raises(OutcomeUnknownError):
        lake.topic("t").append(values("mine"))
    storage.hook = quiet
    assert read(open_lake(storage.inner, clock), "t") == ["a", "b", "mine"]


def test_a_request_that_timed_out_and_was_trimmed_past_can_still_be_settled_by_its_segment() -> None:
    lake, storage, clock = started()
    topic = lake.topic("t")
    staged = stage(topic, "mine")
    storage.hook = _stored_but_unanswered()
    with pytest.raises(OutcomeUnknownError):
        topic.commit(staged, request_id="mine")
    storage.hook = quiet
    others_go_on(storage, clock)
    assert topic.commit(staged, request_id="mine") == {0: (2, 3)}
    whole(lake, storage, clock, "mine")


def test_a_request_that_timed_out_and_was_trimmed_past_without_a_trace_stays_unknown() -> None:
    lake, storage, clock = started()
    topic = lake.topic("t")
    storage.hook = _unanswered()
    with pytest.raises(OutcomeUnknownError):
        topic.commit(stage(topic, "mine"), request_id="mine")
    storage.hook = quiet
    others_go_on(storage, clock)
    with pytest.raises(OutcomeUnknownError, match="trimmed past"):
        topic.commit(stage(topic, "mine"), request_id="mine")
    whole(lake, storage, clock)


def test_ones_own_stray_is_no_proof_that_a_request_was_committed() -> None:
    """Timed out, frozen, trimmed past; then the put of long ago arrives at its place, which is free again."""
    lake, storage, clock = started()
    topic = lake.topic("t")
    storage.hook = _unanswered()
    with pytest.raises(OutcomeUnknownError):
        topic.commit(stage(topic, "mine"), request_id="mine")
    storage.hook = quiet
    pending = topic._door._unanswered._open["mine"]
    others_go_on(storage, clock)
    assert storage.inner.put_if_absent(f"t/{layout.entry_path(pending.entry.version)}", pending.data)
    with pytest.raises(OutcomeUnknownError, match="trimmed past"):
        topic.commit(stage(topic, "mine"), request_id="mine")
    whole(lake, storage, clock)


def _unanswered() -> Callable[[str, str, str], None]:
    def hook(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and phase == "before":
            raise StorageUnavailableError("timed out")

    return hook


def _stored_but_unanswered() -> Callable[[str, str, str], None]:
    puts: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent":
            puts.append(path)
            if phase == "after":
                raise StorageUnavailableError("timed out")
        if method == "get" and puts:
            raise StorageUnavailableError("timed out")

    return hook
