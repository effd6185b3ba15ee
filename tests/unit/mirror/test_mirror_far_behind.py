"""A mirror that is far behind: what it keeps in memory is bounded, and the source may trim its log meanwhile."""

import pytest
from support.logs import quiet, read, values
from support.mirrored_lakes import Pair
from support.purges import missing_files, purge_once
from support.rewrites import merge
from support.transactions import SharedLake, copy

from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.mirror import plan, source_logs
from tidelog.mirror.source_logs import PassedEntryError, SourceLog

KEPT = 3_000
CONFIG = {"log.min.age.ms": "10000", "file.delete.delay.ms": "1000"}
HOUR_S = 3600


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_logs, "MOST_KEPT_BYTES", KEPT)
    monkeypatch.setattr(source_logs, "MOST_AT_ONCE", 8)


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


def a_pair(count: int) -> Pair:
    pair = Pair()
    lake = pair.lake()
    lake.create_topic("t", 1, CONFIG)
    fill(lake, *map(str, range(count)))
    return pair


def largest_entry(pair: Pair) -> int:
    return max(info.size for info in pair.source.list_after(f"t/{layout.LOG_FOLDER}"))


def test_a_log_keeps_some_of_its_entries_and_reads_the_others_again() -> None:
    pair = a_pair(30)
    log = SourceLog(pair.source, "t", pair.clock, -1)
    log.look()
    assert (log.head.version, log.next_head is not None) == (30, True)
    assert log.kept_bytes <= KEPT + largest_entry(pair)
    assert [version for version, _ in log.entries(30)] == list(range(31))
    files = sum(info.size for info in pair.source.list_after("t/partition=0"))
    entries = sum(info.size for info in pair.source.list_after(f"t/{layout.LOG_FOLDER}") if info.path.endswith("json"))
    assert log.bytes_ahead() == files + entries
    log.shipped(30)
    assert (log.bytes_ahead(), log.kept_bytes, log.next_head) == (0, 0, None)
    fill(pair.lake(), "new")
    assert log.look()
    assert [version for version, _ in log.entries(31)] == [31]


def test_a_follower_far_behind_gets_everything_round_by_round() -> None:
    pair = a_pair(30)
    with pair.mirror() as mirror:
        first = mirror.round()
        assert 0 < first.entries < 31
        assert not first.whole
        rounds = 1
        while not mirror.round().whole:
            rounds += 1
            assert rounds < 100
    assert rounds >= 2
    pair.require_equal()


def test_a_follower_with_many_entries_to_go_gets_some_of_them_each_round() -> None:
    pair = Pair()
    pair.lake().create_topic("t", 1, CONFIG)
    with pair.mirror() as mirror:
        assert mirror.round().whole
        fill(pair.lake(), *map(str, range(20)))
        assert [mirror.round().entries for _ in range(3)] == [8, 8, 4]
    pair.require_equal()


def test_a_long_log_begins_at_a_checkpoint_and_not_at_its_first_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MANY_ENTRIES", 20)
    pair = Pair()
    pair.lake().create_topic("t", 1, CONFIG | {"log.checkpoint.interval": "10"})
    lake = pair.lake()
    fill(lake, *map(str, range(60)))
    lake.close()  # which waits for its checkpoints
    with pair.mirror() as mirror:
        first = mirror.round()
    assert first.whole
    assert 0 < first.entries < 20
    assert newest_floor(pair.follower, "t") > 30
    pair.require_equal()


def test_transactions_that_are_far_ahead_arrive_whole() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    pair = Pair(shared.storage, shared.clock)
    for n in range(10):
        copy(producer, f"{n}", n + 1)
    with pair.mirror() as mirror:
        rounds = 0
        while not mirror.round().whole:
            a, b = (read(pair.copy(), topic) for topic in ("a", "b") if topic in pair.copy().topics())
            assert a == b
            rounds += 1
            assert rounds < 100
    pair.require_equal()
    assert read(pair.copy(), "b") == [f"{n}" for n in range(10)]


def test_entries_that_are_trimmed_before_they_are_read_again_are_missed() -> None:
    pair = a_pair(30)
    log = SourceLog(pair.source, "t", pair.clock, -1)
    log.look()
    trimmed(pair)
    with pytest.raises(PassedEntryError, match="is gone from the source"):
        list(log.entries(30))


def test_a_mirror_that_runs_and_lags_behind_the_trimming_of_the_source_begins_again() -> None:
    pair = a_pair(1)
    with pair.mirror() as mirror:
        while not mirror.round().whole:
            pass
        fill(pair.lake(), *map(str, range(1, 30)))
        done: list[str] = []

        def trim_meanwhile(method: str, path: str, phase: str) -> None:
            """The source's log is trimmed when the first of the new files was copied."""
            if (method, phase) == ("put", "after") and "partition=" in path and not done:
                done.append(path)
                trimmed(pair)

        pair.follower.hook = trim_meanwhile
        mirror.round()
        pair.follower.hook = quiet
        assert done
        assert newest_floor(pair.source, "t") > 1
        rounds = 0
        while not mirror.round().whole:
            rounds += 1
            assert rounds < 10
        assert mirror.problems == {}
    pair.require_equal()
    assert missing_files(pair.follower) == set()
    assert newest_floor(pair.follower, "t") > 1
