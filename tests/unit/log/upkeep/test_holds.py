"""Holds: what a running job needs stays, by the store's times, and a job that is gone holds nothing for long."""

import threading
from collections.abc import Callable

import orjson
import pytest
from support.faults import FaultyStorage
from support.logs import START_MS, CountingIds, FakeClock, memory_lake, quiet, values

from tidelog.log.base.errors import ContendedLogError, StorageUnavailableError
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.upkeep.holds import ABANDONED_AFTER, LASTS_MS, Hold, Holder, abandoned, held_version, read_holds
from tidelog.log.upkeep.trim import trim

MIN_AGE_MS = 10_000
FOLDER = f"t/{layout.HOLDS_FOLDER}"


def hold(version: int, ago_ms: int, lasts_ms: int = 1000) -> Hold:
    return Hold(f"h{version}", version, lasts_ms, START_MS - ago_ms)


# Holds -> the oldest version that is held.
HELD: dict[str, tuple[list[Hold], int | None]] = {
    "none": ([], None),
    "one": ([hold(7, 0)], 7),
    "until its time is up": ([hold(7, 1000)], 7),
    "its time is up": ([hold(7, 1001)], None),
    "the oldest version of those that stand": ([hold(7, 0), hold(4, 500), hold(1, 5000)], 4),
    "each lasts as long as it says": ([hold(7, 5000, 6000), hold(3, 5000)], 7),
    "one from the future of a clock that jumped": ([hold(7, -50_000)], 7),
}


@pytest.mark.parametrize(("holds", "version"), HELD.values(), ids=HELD)
def test_what_is_held(holds: list[Hold], version: int | None) -> None:
    assert held_version(holds, START_MS) == version


def test_what_nobody_renews_is_forgotten_long_after_it_counted_for_anything() -> None:
    holds = [hold(1, 1000 * ABANDONED_AFTER), hold(2, 1000 * ABANDONED_AFTER + 1)]
    assert abandoned(holds, START_MS) == ["h2"]


# --- a job's own -------------------------------------------------------------------------------------------


def job(hook: Callable[[str, str, str], None] = quiet) -> tuple[Holder, FaultyStorage, FakeClock]:
    _, storage, clock = memory_lake(hook)
    return Holder(storage, clock, CountingIds(), "merge"), storage, clock


def test_a_hold_names_the_head_and_is_renewed_and_given_back() -> None:
    holder, storage, clock = job()
    assert holder.hold("t", lambda: 17) == 17
    assert holder.hold("t", lambda: 18) == 17  # held already
    (found,) = read_holds(storage, "t")
    assert (found.version, found.lasts_ms, found.renewed_ms, found.by) == (17, LASTS_MS, clock.ms, "merge")
    clock.pass_s(50)
    holder.renew()
    assert read_holds(storage, "t")[0].renewed_ms == holder.store_ms("t") == clock.ms
    holder.release()
    assert read_holds(storage, "t") == []
    assert holder.store_ms("t") is None


def test_whoever_takes_a_hold_slowly_looks_again() -> None:
    """Entries may be trimmed past a version that was the head more than 5 s ago, before the hold on it is there."""
    slow = [6.0, 6.0, 1.0]
    heads = iter([3, 8, 9])

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            clock.pass_s(slow.pop(0))

    holder, storage, clock = job(hook)
    assert holder.hold("t", lambda: next(heads)) == 9
    assert [h.version for h in read_holds(storage, "t")] == [9]


def test_a_store_that_is_always_slow_holds_nothing() -> None:
    holder, storage, clock = job(lambda method, path, phase: clock.pass_s(6) if method == "put" else None)
    with pytest.raises(ContendedLogError, match="hold"):
        holder.hold("t", lambda: 3)
    assert read_holds(storage, "t") == []


def test_a_hold_that_was_not_renewed_in_time_stays_lost() -> None:
    holder, storage, clock = job()
    holder.hold("t", lambda: 3)
    clock.pass_s(LASTS_MS / 1000)
    assert holder.is_valid("t")
    clock.pass_s(0.001)
    assert not holder.is_valid("t")
    before = read_holds(storage, "t")
    holder.renew()
    assert read_holds(storage, "t") == before


def test_a_store_that_fails_at_the_end_is_left_to_forget() -> None:
    holder, storage, _ = job()
    holder.hold("t", lambda: 3)

    def hook(method: str, path: str, phase: str) -> None:
        if method == "delete":
            raise StorageUnavailableError("gone")

    storage.hook = hook
    holder.release()
    assert len(read_holds(storage.inner, "t")) == 1


@pytest.mark.parametrize("body", [b"", b"[]", b'{"version": "7"}', b'{"version": 7}', b"{", b"\xff"])
def test_a_hold_that_nobody_understands_holds_everything_for_a_while(body: bytes) -> None:
    _, storage, clock = memory_lake()
    storage.put(f"{FOLDER}/x", body)
    (found,) = read_holds(storage, "t")
    assert found.version == -1
    assert held_version([found], clock.ms + LASTS_MS) == -1
    assert held_version([found], clock.ms + LASTS_MS + 1) is None


def test_in_the_background_a_job_renews_its_holds() -> None:
    _, storage, clock = memory_lake()
    renewed: list[str] = []
    often = threading.Event()

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "after"):
            renewed.append(path)
            if len(renewed) == 4:
                often.set()

    with Holder(storage, clock, CountingIds(), "merge", lasts_ms=20) as holder:
        storage.hook = hook
        holder.hold("t", lambda: 3)
        assert often.wait(60)
    assert set(renewed) == {f"{FOLDER}/00000000-0000-4000-8000-000000000001"}
    assert read_holds(storage, "t") == []


def test_a_hold_that_can_not_be_renewed_keeps_no_other_from_it() -> None:
    holder, storage, clock = job()
    for folder in ("t", "u", "v"):
        holder.hold(folder, lambda: 3)
    clock.pass_s(50)

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before") and path.startswith("u/"):
            raise StorageUnavailableError("away")

    storage.hook = hook
    with pytest.raises(StorageUnavailableError, match="away"):
        holder.renew()
    clock.pass_s(LASTS_MS / 1000 - 40)
    assert [holder.is_valid(folder) for folder in ("t", "u", "v")] == [True, False, True]


def test_what_was_renewed_the_longest_ago_comes_first() -> None:
    holder, storage, clock = job()
    for folder in ("t", "u", "v"):
        clock.pass_s(1)
        holder.hold(folder, lambda: 3)
    clock.pass_s(10)
    seen: list[str] = []
    away = {"v"}

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            seen.append(path[0])
            if path[0] in away:
                raise StorageUnavailableError("away")

    storage.hook = hook
    with pytest.raises(StorageUnavailableError):
        holder.renew()
    away.clear()
    seen.clear()
    holder.renew()
    assert seen == ["v", "t", "u"]


# --- what a trim makes of it -------------------------------------------------------------------------------


def old_log() -> tuple[FaultyStorage, FakeClock]:
    """Entries 0 to 31 of which 30 are old, with checkpoints of 5 and 20."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", config={"log.min.age.ms": str(MIN_AGE_MS)})
    for i in range(30):
        clock.pass_s(1)
        lake.topic("t").append(values(f"{i}"))
    for version in (5, 20):
        write_checkpoint(storage.inner, "t", version, clock.ms)
    clock.pass_s(60)
    lake.topic("t").append(values("young"))
    return storage, clock


def put_hold(storage: FaultyStorage, version: int, lasts_ms: int = LASTS_MS) -> None:
    storage.put(f"{FOLDER}/x", orjson.dumps({"version": version, "lasts_ms": lasts_ms, "by": "merge"}))


@pytest.mark.parametrize(("version", "floor"), [(30, 19), (20, 19), (19, 4), (5, 4), (4, -1)])
def test_a_trim_stops_before_what_is_held(version: int, floor: int) -> None:
    storage, _ = old_log()
    put_hold(storage, version)
    assert trim(storage, "t", MIN_AGE_MS).floor == floor


def test_a_hold_whose_time_is_up_stops_nothing_and_is_forgotten_later() -> None:
    storage, clock = old_log()
    put_hold(storage, 4, lasts_ms=1000)
    clock.pass_s(2)
    storage.put(f"t/{layout.LAST_CHECKPOINT}", storage.get(f"t/{layout.LAST_CHECKPOINT}"))  # the store's clock goes on
    assert trim(storage, "t", MIN_AGE_MS).floor == 19
    assert len(read_holds(storage, "t")) == 1
    clock.pass_s(ABANDONED_AFTER)
    storage.put(f"t/{layout.LAST_CHECKPOINT}", storage.get(f"t/{layout.LAST_CHECKPOINT}"))
    trim(storage, "t", MIN_AGE_MS)
    assert read_holds(storage, "t") == []


def test_holds_are_listed_after_the_entries() -> None:
    """A job that has not seen an entry of the listing had its hold there by then."""
    storage, _ = old_log()
    listed = []
    storage.hook = lambda method, path, phase: listed.append(path) if method == "list_after" else None
    trim(storage, "t", MIN_AGE_MS)
    assert listed.index(f"t/{layout.LOG_FOLDER}") < listed.index(FOLDER)
