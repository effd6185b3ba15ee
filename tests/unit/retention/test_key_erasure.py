"""Erasing keys: the records leave, offsets stay, the bytes go as soon as no reader may need them."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, quiet, read_offsets, values
from support.purges import HOUR_S, everything_in, missing_files, purge_once
from support.rewrites import merge

from tidelog.check.lake import Severity, check_lake
from tidelog.log.base.errors import InvalidRecordError, NotATopicError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Holder, read_holds
from tidelog.retention.key_erasure import erase_keys
from tidelog.retention.rewrites.executors import LocalExecutor

SECRET = b"customer-17"


def topic_of(*keys: bytes | None, partitions: int = 1) -> tuple[Lake, FaultyStorage, FakeClock]:
    """Topic "t" with one segment for each record; the i-th has value "i"."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions, config={"log.min.age.ms": "10000", "file.delete.delay.ms": "1000"})
    for i, key in enumerate(keys):
        lake.topic("t").append(values(f"{i}", key=pa.array([key], pa.binary())))
        clock.pass_s(1)
    return lake, storage, clock


def bytes_with(storage: FaultyStorage, key: bytes) -> list[str]:
    """The objects that hold a key's bytes. Keys of test segments are stored as they are."""
    return sorted(path for path, data in everything_in(storage.inner).items() if key in data)


def test_the_records_leave_and_other_offsets_stay() -> None:
    lake, storage, clock = topic_of(b"a", SECRET, None, SECRET, b"b")
    done = erase_keys(lake, "t", [SECRET])
    assert (done.records, len(done.rewritten), done.failures) == (2, 2, {})
    assert read_offsets(open_lake(storage, clock), "t") == [(0, "0"), (2, "2"), (4, "4")]
    assert lake.offsets("t") == {0: (0, 5)}
    assert not check_lake(storage).of(Severity.ERROR)


def test_every_partition_and_the_newest_segment() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 3)
    rows = {"key": pa.array([SECRET, b"b", SECRET, b"d", SECRET]), "partition": pa.array([0, 0, 1, 2, 2], pa.int32())}
    lake.topic("t").append(values(*"01234", **rows))
    assert erase_keys(lake, "t", [SECRET]).records == 3
    reader = open_lake(storage, clock)
    assert {p: read_offsets(reader, "t", p) for p in range(3)} == {0: [(1, "1")], 1: [], 2: [(0, "3")]}
    lake.topic("t").append(values("new", key=[SECRET], partition=pa.array([1], pa.int32())))
    assert read_offsets(reader, "t", 1) == [(1, "new")]


def test_what_is_not_there_changes_nothing() -> None:
    lake, _, _ = topic_of(b"a", None, b"")
    version = lake.topic("t").state().version
    done = erase_keys(lake, "t", [SECRET])
    assert (done.records, done.rewritten, done.done) == (0, (), True)
    assert lake.topic("t").state().version == version
    assert erase_keys(lake, "t", [b""]).records == 1  # an empty key is one


def test_the_bytes_wait_for_time_travel_and_then_go() -> None:
    lake, storage, clock = topic_of(b"a", SECRET)
    first = erase_keys(lake, "t", [SECRET])
    assert not first.done
    assert [(w.path, w.why) for w in first.waiting] == [(first.rewritten[0].path, "time travel (log.min.age.ms)")]
    assert bytes_with(storage, SECRET) == [f"t/{first.rewritten[0].path}"]
    assert missing_files(storage) == set()
    clock.pass_s(11)
    again = erase_keys(open_lake(storage, clock), "t", [SECRET])
    assert [d.path for d in again.deleted] == [first.rewritten[0].path]
    assert again.done
    assert bytes_with(storage, SECRET) == []
    assert missing_files(storage) == set()


def test_waiting_until_the_bytes_are_gone() -> None:
    lake, storage, clock = topic_of(b"a", SECRET)
    began_s = clock.elapsed_s()
    done = erase_keys(lake, "t", [SECRET], wait=True)
    assert done.done
    assert [d.path for d in done.deleted] == [s.path for s in done.rewritten]
    assert bytes_with(storage, SECRET) == []
    assert clock.elapsed_s() - began_s < 60


def test_a_running_job_is_waited_for() -> None:
    lake, storage, clock = topic_of(b"a", SECRET)
    job = Holder(storage, clock, lake.ids, "export")
    job.hold("t", lambda: 2)
    clock.pass_s(20)
    assert [w.why for w in erase_keys(lake, "t", [SECRET]).waiting] == ["a running job (export)"]
    job.release()
    assert erase_keys(lake, "t", [SECRET], wait=True).done


def test_files_that_others_had_rewritten_before_are_told_too() -> None:
    """A merge has copied the record; the file that it replaced still holds it, too."""
    lake, storage, _ = topic_of(b"a", SECRET)
    merge(lake, "t")
    done = erase_keys(lake, "t", [SECRET], wait=True)
    assert len(done.deleted) == 3
    assert bytes_with(storage, SECRET) == []


def test_records_below_the_log_start_are_taken_out_of_the_file_that_it_cuts() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 1)
    lake.topic("t").append(values("0", "1", key=[SECRET, b"b"]))
    lake.delete_records("t", {0: 1})
    done = erase_keys(lake, "t", [SECRET], wait=True)
    assert (done.records, len(done.rewritten)) == (0, 1)
    assert bytes_with(storage, SECRET) == []
    assert erase_keys(lake, "t", [SECRET]).rewritten == ()


def test_a_dry_run_counts_and_changes_nothing() -> None:
    lake, storage, _ = topic_of(b"a", SECRET, SECRET)
    before = everything_in(storage.inner)
    done = erase_keys(lake, "t", [SECRET], dry_run=True)
    assert (done.records, len(done.rewritten), done.done) == (2, 2, False)
    assert everything_in(storage.inner) == before


@pytest.mark.parametrize(
    ("topic", "keys", "error"),
    [
        ("nothing", [SECRET], UnknownTopicError),
        ("t", [], InvalidRecordError),
        ("__consumer_offsets", [b"a"], Exception),
    ],
)
def test_refused(topic: str, keys: list[bytes], error: type[Exception]) -> None:
    lake, storage, _ = topic_of(SECRET)
    with pytest.raises(error):
        erase_keys(lake, topic, keys)
    assert storage.list_folders("") == ["t"]


def test_a_table_of_rows_is_no_topic() -> None:
    from support.row_tables import NAME, WORDS, put

    lake, _, _ = memory_lake()
    put(lake.row_log(NAME, WORDS), a=1)
    with pytest.raises(NotATopicError):
        erase_keys(lake, NAME, [b"a"])


def test_a_segment_that_cant_be_read_is_named_and_the_other_partitions_go_on() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t", 2)
    both = {"key": pa.array([SECRET, SECRET]), "partition": pa.array([0, 1], pa.int32())}
    lake.topic("t").append(values("a", "b", **both))
    broken = lake.topic("t").state().live(0)[0].path
    storage.put(f"t/{broken}", b"PAR1 not")
    done = erase_keys(lake, "t", [SECRET], wait=True)
    assert list(done.failures) == [0]
    assert broken in done.failures[0]
    assert not done.done
    assert done.records == 1
    assert read_offsets(lake, "t", 1) == []
    assert storage.get(f"t/{broken}") == b"PAR1 not"


class Meanwhile(LocalExecutor):
    """Lets others act before each pass."""

    def __init__(self, lake: Lake, *acts: object) -> None:
        super().__init__(lake.storage, lake.ids)
        self.acts = list(acts)

    def run(self, tasks: object) -> Iterator[object]:  # type: ignore[override]
        done = list(super().run(tasks))  # type: ignore[arg-type]
        if self.acts:
            self.acts.pop(0)()  # type: ignore[operator]
        return iter(done)


def test_producers_and_merges_go_on_meanwhile() -> None:
    """A merge wins the race for the segments: its output is looked at. Records that come later stay."""
    lake, storage, clock = topic_of(b"a", SECRET, b"b", SECRET)
    other = open_lake(storage, clock)

    def append() -> None:
        other.topic("t").append(values("later", key=[SECRET]))

    executor = Meanwhile(lake, lambda: merge(other, "t"), append)
    done = erase_keys(lake, "t", [SECRET], executor=executor)  # type: ignore[arg-type]
    assert (done.records, done.passes) == (2, 2)
    assert read_offsets(open_lake(storage, clock), "t") == [(0, "0"), (2, "2"), (4, "later")]


def test_while_it_runs_it_holds_what_it_reads() -> None:
    lake, storage, _ = topic_of(b"a", SECRET)
    seen = []
    executor = Meanwhile(lake, lambda: seen.extend(read_holds(storage, "t")))
    done = erase_keys(lake, "t", [SECRET], executor=executor)  # type: ignore[arg-type]
    assert [(h.version, h.by) for h in seen] == [(2, f"key erasure {done.run_id}")]
    assert read_holds(storage, "t") == []


@pytest.mark.parametrize("killed_at", range(1, 120, 4))
def test_killed_anywhere_it_is_run_again(killed_at: int) -> None:
    lake, storage, clock = topic_of(b"a", SECRET, SECRET, b"b")
    clock.pass_s(30)
    calls = [0]

    def hook(method: str, path: str, phase: str) -> None:
        calls[0] += phase == "before"
        if calls[0] >= killed_at:
            raise KeyboardInterrupt

    storage.hook = hook
    with suppress(KeyboardInterrupt):
        erase_keys(lake, "t", [SECRET], wait=True)
    storage.hook = quiet
    offsets = [offset for offset, _ in read_offsets(open_lake(storage, clock), "t")]
    assert set(offsets) >= {0, 3}
    assert missing_files(storage) == set()
    clock.pass_s(2 * HOUR_S)  # what it had staged is an orphan by then
    again = erase_keys(open_lake(storage, clock), "t", [SECRET], wait=True)
    assert again.done
    assert read_offsets(open_lake(storage, clock), "t") == [(0, "0"), (3, "3")]
    assert bytes_with(storage, SECRET) == []
    assert missing_files(storage) == set()


KEYS = st.lists(st.lists(st.sampled_from([b"a", b"b", SECRET, None]), min_size=1, max_size=4), min_size=1, max_size=8)


@given(KEYS, st.integers(0, 6), st.booleans())
def test_exactly_the_keys_records_leave(appends: list[list[bytes | None]], start: int, merged: bool) -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1)
    expected: list[tuple[int, str]] = []
    for keys in appends:
        base = lake.offsets("t")[0][1]
        texts = [f"{base + i}" for i in range(len(keys))]
        lake.topic("t").append(values(*texts, key=pa.array(keys, pa.binary())))
        expected += [(base + i, t) for i, (t, key) in enumerate(zip(texts, keys, strict=True)) if key != SECRET]
    if merged:
        merge(lake, "t")
    start = min(start, lake.offsets("t")[0][1])
    lake.delete_records("t", {0: start})
    erase_keys(lake, "t", [SECRET])
    assert read_offsets(open_lake(storage, clock), "t") == [(o, t) for o, t in expected if o >= start]
    clock.pass_s(600)
    purge_once(open_lake(storage, clock))
    clock.pass_s(600)
    purge_once(open_lake(storage, clock))
    assert bytes_with(storage, SECRET) == []
    assert not check_lake(storage).of(Severity.ERROR)
