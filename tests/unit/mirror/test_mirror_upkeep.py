"""What a follower does for itself: checkpoints, trims, and files that leave by shipped removes."""

import io

import pyarrow as pa
from rich.console import Console
from support.logs import FakeClock, read, stage, values
from support.mirrored_lakes import Pair
from support.purges import data_files, missing_files
from support.rewrites import merge

from tidelog.cli.mirror.commands import status_lines
from tidelog.log.checkpoints.reading import newest_checkpoint_version, newest_floor
from tidelog.log.lake import Lake
from tidelog.mirror.follower_upkeep import FollowerUpkeep, live_files, newest_configuration
from tidelog.operations.mirrors import MirrorStatus
from tidelog.retention.key_erasure import erase_keys

CONFIG = {"log.min.age.ms": "10000", "file.delete.delay.ms": "1000", "log.checkpoint.interval": "10"}
HOUR_S = 3600


def fill(lake: Lake, *texts: str) -> None:
    for text in texts:
        lake.topic("t").append(values(text))


def a_pair() -> tuple[Pair, Lake]:
    pair = Pair()
    lake = pair.lake()
    lake.create_topic("t", 1, CONFIG)
    return pair, lake


def head(pair: Pair) -> int:
    return pair.copy().log("t").door.refresh().version


def test_a_follower_writes_its_own_checkpoints_and_trims_by_its_own_clock() -> None:
    pair, lake = a_pair()
    fill(lake, *map(str, range(30)))
    pair.follower.inner._clock = FakeClock(pair.clock.ms + 10**9)  # type: ignore[attr-defined]
    pair.ship()
    upkeep = FollowerUpkeep(pair.copy(to_promote=True))
    upkeep.checkpoint("t", head(pair))  # unless a round did
    assert newest_checkpoint_version(pair.follower, "t") == 28
    assert upkeep.checkpoint("t", head(pair)) is None  # the next is due later
    assert read(pair.copy(), "t") == list(map(str, range(30)))
    assert live_files(pair.follower, "t") == data_files(pair.follower)
    assert newest_configuration(pair.follower, "t")["tidelog.log.checkpoint.interval"] == "10"


def test_files_leave_by_shipped_removes_after_the_followers_own_delay_and_not_before() -> None:
    pair, lake = a_pair()
    fill(lake, "a", "b", "c")
    pair.ship()
    merge(lake, "t")
    pair.ship()
    upkeep = FollowerUpkeep(pair.copy(to_promote=True))
    assert len(data_files(pair.follower)) == 4
    upkeep.purge("t", head(pair))
    assert len(data_files(pair.follower)) == 4  # a version that can be read names them
    (first, *_) = upkeep.waiting("t")
    assert first.until_ms is not None  # the report says when
    pair.clock.pass_s(HOUR_S)
    fill(pair.lake(), "d")
    pair.ship()
    pair.clock.pass_s(60)
    upkeep = FollowerUpkeep(pair.copy(to_promote=True))
    upkeep.purge("t", head(pair))
    pair.clock.pass_s(60)
    upkeep.purge("t", head(pair))
    assert data_files(pair.follower) == live_files(pair.follower, "t")
    assert missing_files(pair.follower) == set()
    assert newest_floor(pair.follower, "t") > 0
    assert read(pair.copy(), "t") == ["a", "b", "c", "d"]


def test_what_a_dead_mirror_copied_leaves_after_an_hour_and_what_transactions_need_stays() -> None:
    pair, lake = a_pair()
    fill(lake, "a")
    pair.ship()
    fill(lake, "b")
    left = stage(pair.copy(to_promote=True).topic("t"), "left behind")
    assert len(data_files(pair.follower)) == 2
    upkeep = FollowerUpkeep(pair.copy(to_promote=True))
    upkeep.purge("t", head(pair))
    assert len(data_files(pair.follower)) == 2, left
    pair.clock.pass_s(2 * HOUR_S)
    upkeep.purge("t", head(pair))
    assert data_files(pair.follower) == live_files(pair.follower, "t")


def test_forgotten_bytes_leave_the_follower() -> None:
    pair, lake = a_pair()
    columns = {"key": [b"customer-17", b"customer-18"], "value": [b"forget me", b"keep me"]}
    lake.topic("t").append(pa.table(columns), compression="none")
    pair.ship()
    assert any(b"forget me" in pair.follower.get(f"t/{p}") for p in data_files(pair.follower))
    assert erase_keys(lake, "t", [b"customer-17"]).records == 1
    pair.ship()
    upkeep = FollowerUpkeep(pair.copy(to_promote=True))
    for _ in range(3):
        pair.clock.pass_s(HOUR_S)
        fill(pair.lake(), "new")
        pair.ship()
        upkeep.purge("t", head(pair))
    assert not any(b"forget me" in pair.follower.get(f"t/{p}") for p in data_files(pair.follower))
    assert read(pair.copy(), "t") == ["keep me", "new", "new", "new"]


def test_the_report_says_how_many_forgotten_bytes_are_still_there_and_until_when() -> None:
    pair, lake = a_pair()
    columns = {"key": [b"customer-17", b"customer-18"], "value": [b"forget me", b"keep me"]}
    lake.topic("t").append(pa.table(columns))
    with pair.mirror() as mirror:
        mirror.round()
        before = mirror.status().tables["t"]
        assert (before.waiting_bytes, before.waiting_until_ms) == (0, None)
        (path,) = data_files(pair.follower)
        erase_keys(lake, "t", [b"customer-17"])
        mirror.round()
        mirror._upkeep.purge("t", head(pair))  # as a round has it done in the background
        told = mirror.status().tables["t"]
        assert told.waiting_bytes == pair.follower.head(f"t/{path}").size
        assert told.waiting_until_ms is not None
        assert told.waiting_until_ms > pair.clock.now_ms()
        (line,) = [row for row in shown(mirror.status(), pair.clock.now_ms()) if "within" in row]
        assert line.startswith("t ")


def shown(status: MirrorStatus, now_ms: int) -> list[str]:
    """The lines that `mirror status` prints."""
    out = Console(width=200, record=True, file=io.StringIO())
    for line in status_lines(status, follows=True, now_ms=now_ms):
        out.print(line)
    return [line.strip(" │┃") for line in out.export_text().splitlines()]
