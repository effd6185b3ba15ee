"""Maintenance killed at each of its steps, and run again: no record changes, no lake breaks, the work gets done."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from support.logs import FakeClock, memory_lake, open_lake, read_offsets, values

from tidelog.check.lake import Severity, check_lake
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.lake import Lake
from tidelog.log.storage import Storage
from tidelog.retention.maintenance import maintain

CHANGES = ("put", "put_if_absent", "create", "write", "delete")
DAY_MS = 86_400_000


class KilledError(BaseException):
    """The process ends here."""


def fed(**config: str) -> tuple[Lake, Any, FakeClock]:
    """Two partitions with small segments of three keys, of which some records are deleted and some have expired."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=2, config={k.replace("_", "."): v for k, v in config.items()})
    for n in range(6):
        clock.pass_s(20)
        numbers = [0, 1]
        lake.topic("t").append(values(f"v{n}", f"w{n}", f"x{n}", key=[f"k{n % 3}", "k", "l"], partition=[*numbers, 1]))
    lake.delete_records("t", {1: 3})
    return lake, storage, clock


def counting(seen: list[tuple[str, str]]) -> Callable[[str, str, str], None]:
    def count(method: str, path: str, phase: str) -> None:
        if method in CHANGES and phase == "before":
            seen.append((method, phase))

    return count


def killing(at: int, error: Callable[[], BaseException], *, dead: bool) -> Callable[[str, str, str], None]:
    """A hook that raises at the `at`-th change; `dead`: at all later ones, too, as of a process that is gone."""
    calls = iter(range(1 << 30))

    def kill(method: str, path: str, phase: str) -> None:
        if method in CHANGES and phase == "before":
            number = next(calls)
            if number == at or (dead and number > at):
                raise error()

    return kill


def all_records(lake: Lake) -> list[list[tuple[int, str]]]:
    return [read_offsets(lake, "t", p) for p in (0, 1)]


def green(storage: Storage) -> bool:
    return not check_lake(storage, None, True).of(Severity.ERROR)


MERGED = {"segment_ms": "99999999", "log_min_age_ms": "10000", "file_delete_delay_ms": "0"}
EXPIRED = {**MERGED, "retention_ms": "70000"}
COMPACTED = {**MERGED, "cleanup_policy": "compact,delete", "segment_ms": "1", "min_cleanable_dirty_ratio": "0"}


def steps(config: dict[str, str]) -> int:
    """How many changes a whole run makes."""
    seen: list[tuple[str, str]] = []
    lake, storage, _ = fed(**config)
    storage.hook = counting(seen)
    maintain(lake)
    return len(seen)


@pytest.mark.parametrize("config", [MERGED, EXPIRED, COMPACTED], ids=["merge", "expire", "compact"])
def test_killed_anywhere_and_run_again(config: dict[str, str]) -> None:
    whole = fed(**config)
    maintain(whole[0])
    expected = all_records(whole[0])
    count = steps(config)
    assert count > 20
    for at in range(count):
        lake, storage, clock = fed(**config)
        before = all_records(lake)
        storage.hook = killing(at, KilledError, dead=True)
        with pytest.raises(KilledError):
            maintain(lake)
        storage.hook = lambda *_: None
        again = open_lake(storage, clock)
        seen = all_records(again)
        assert all(set(now) <= set(then) for now, then in zip(seen, before, strict=True)), at
        assert green(storage), at
        report = maintain(again)
        assert not report.failed, (at, report.failures())
        assert all_records(again) == expected, at
        assert green(storage), at


def test_a_store_that_fails_once_anywhere_is_told_or_overcome() -> None:
    whole = fed(**EXPIRED)
    maintain(whole[0])
    expected = all_records(whole[0])
    for at in range(0, steps(EXPIRED), 3):
        lake, storage, _ = fed(**EXPIRED)
        storage.hook = killing(at, lambda: StorageUnavailableError("no answer"), dead=False)
        with suppress(StorageUnavailableError):  # of the run's own holds, before anything was done
            maintain(lake)
        storage.hook = lambda *_: None
        assert not maintain(lake).failed, at
        assert all_records(lake) == expected, at
        assert green(storage), at
