"""Which records a compaction keeps, against the definition, for maps of any size."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage import MemoryStorage
from tidelog.retention.compaction.newest_keys import NewestKeys
from tidelog.retention.compaction.plan import PartitionCompaction
from tidelog.retention.compaction.survivors import pack, survivors, unpack

KEYS = st.sampled_from([b"", b"a", b"b", b"c" * 40, None])


@given(st.lists(st.integers(0, 2**62), unique=True))
def test_kept_offsets_come_back_from_their_bytes(offsets: list[int]) -> None:
    rising = np.array(sorted(offsets), np.int64)
    assert unpack(pack(rising)).tolist() == rising.tolist()


def test_close_offsets_take_a_byte_each() -> None:
    assert len(pack(np.arange(10**12, 10**12 + 1000))) < 1010


@given(st.lists(st.tuples(st.lists(KEYS, max_size=5), st.booleans()), max_size=6))
def test_newest_keys_know_the_newest_offset_of_each_key(blocks: list[tuple[list[bytes | None], bool]]) -> None:
    found, expected, offset = NewestKeys(), {}, 0
    for keys, look in blocks:
        offsets = np.arange(offset, offset + len(keys))
        found.add(pa.array(keys, pa.binary()), offsets)
        expected |= {key: at for key, at in zip(keys, offsets.tolist(), strict=True) if key is not None}
        offset += len(keys)
        if look:
            asked = [b"", b"a", b"b", b"c" * 40, b"never", None]
            assert found.newest(pa.array(asked, pa.binary())).tolist() == [expected.get(key, -1) for key in asked]
    assert dict(zip(found.keys.to_pylist(), found.offsets.tolist(), strict=True)) == expected


@given(
    appends=st.lists(st.lists(KEYS, min_size=1, max_size=6), min_size=1, max_size=6),
    bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    map_bytes=st.sampled_from([1, 70, 150, 10**6]),
    batch_records=st.sampled_from([1, 2, 100]),
)
def test_the_newest_record_of_each_key_stays_whatever_the_map_holds(
    appends: list[list[bytes | None]], bounds: tuple[float, float], map_bytes: int, batch_records: int
) -> None:
    """[ start | clean: each key once | dirty | end )."""
    keys = [key for append in appends for key in append]
    start, dirty = sorted(int(bound * (len(keys) - 1)) for bound in bounds)
    clean = {key: at for at, key in enumerate(keys[:dirty]) if at >= start and key is not None}
    with Lake("memory://", storage=MemoryStorage("survivors")) as lake:
        # What an earlier compaction would have dropped is not there.
        state = _appended(lake, appends)
        plan = PartitionCompaction(0, start, dirty, len(keys), 0, None, _above(state, start))
        gone = {at for at in range(start, dirty) if at not in clean.values()}
        found = survivors(lake.storage, "t", plan, map_bytes=map_bytes, batch_records=batch_records)
        kept = [offset for _, offsets in found for offset in offsets.tolist() if offset not in gone]
    newest = {key: at for at, key in enumerate(keys) if at >= start and key is not None}
    assert kept == sorted(newest.values())


def test_a_map_that_is_full_takes_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    appends = [[f"k{n % 100}".encode() for n in range(first, first + 50)] for first in range(0, 400, 50)]
    rounds = []
    monkeypatch.setattr("tidelog.retention.compaction.survivors._Round", _counting(rounds))
    with Lake("memory://", storage=MemoryStorage("rounds")) as lake:
        state = _appended(lake, appends)
        plan = PartitionCompaction(0, 0, 0, 400, 0, None, _above(state, 0))
        kept = [o for _, offsets in survivors(lake.storage, "t", plan, map_bytes=2_000) for o in offsets.tolist()]
    assert kept == list(range(300, 400))
    assert len(rounds) >= 3


def _counting(rounds: list[object]) -> object:
    from tidelog.retention.compaction import survivors as module

    real = module._Round

    def begin(*args: object) -> object:
        rounds.append(args)
        return real(*args)  # type: ignore[arg-type]

    return begin


def _appended(lake: Lake, appends: Sequence[Sequence[bytes | None]]) -> TopicState:
    lake.create_topic("t", partitions=1)
    for keys in appends:
        lake.topic("t").append(pa.table({"key": pa.array(keys, pa.binary()), "value": [b"v"] * len(keys)}))
    return lake.topic("t").state()


def _above(state: TopicState, start: int) -> tuple:
    return tuple(segment for segment in state.live(0) if segment.end > start)
