"""A topic's state: the same from its entries one by one as from a checkpoint and the entries after it."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, add, apply_all, created, end_txn, entry, metadata, remove, start_txn

from tidelog.log.checkpoints.reading import checkpoints_from, read_checkpoint
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Entry, Metadata, Remove, Touched, Txn, decode_entry, encode_entry
from tidelog.log.door.topic_machine import table_properties, verify_restored
from tidelog.log.rules.topics import decide_create, decide_delete
from tidelog.log.state.foreign_entries import take_back
from tidelog.log.state.lazy_list import LazyList
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.state.verify import verify_entry
from tidelog.log.storage import LocalStorage, MemoryStorage, Storage

PARTITIONS = 3
DAY_MS = 86_400_000


class History:
    """A random history of a topic that the rules allow: entries, and the state after them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.now_ms = START_MS
        self.state = TopicState()
        self.entries: list[Entry] = []
        self.create()
        self.put(add(0, 0, 4, "first"), end_txn(0, 4))

    def put(self, *actions: Action) -> None:
        self.take(entry(self.state.version + 1, *actions, request="r"))

    def take(self, one: Entry) -> None:
        verify_entry(self.state, one, "t")
        self.state.apply(one)
        self.entries.append(one)

    def path(self, partition: int, unique: str = "") -> str:
        """A file that its writer opened at some version before."""
        known = self.number(0, self.state.version)
        return layout.segment_path(partition, known, f"{len(self.entries)}-{partition}{unique}")

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def create(self) -> None:
        n = self.state.version + 2
        properties = table_properties(TopicConfig.parse({}), LakeConfig.parse({}))
        made = decide_create(
            self.state,
            "t",
            self.number(1, PARTITIONS),
            {},
            properties,
            topic_id=f"id{n}",
            table_id="x",
            now_ms=START_MS,
        )
        self.put(*made.actions)

    def append(self) -> None:
        self.now_ms += self.number(0, 3)
        actions: list[Action] = []
        for p in range(self.state.partitions):
            end = self.state.end(p)
            for i in range(self.number(0, 2)):
                more = end + self.number(1, 4)
                actions.append(add(p, end, more, self.path(p, f"-{i}"), modification_ms=self.now_ms))
                end = more
            if end > self.state.end(p):
                actions.append(end_txn(p, end))
        if self.number(0, 3) == 0:
            actions.append(Txn("tidelog/sink/q", len(self.entries)))
        if self.number(0, 3) == 0:
            # Producers come and go: of three that append now and then one may be silent for more than a day.
            self.now_ms += self.number(0, 1) * self.number(0, DAY_MS)
            name = f"tidelog/producer/{self.number(0, 2)}/{self.number(0, 1)}"
            actions.append(Txn(name, len(self.entries), self.now_ms))
        if self.number(0, 5) == 0:
            # A transactional id's mark, retired, and kept for two weeks.
            self.now_ms += self.number(0, 1) * self.number(0, 8 * DAY_MS)
            actions.append(Txn(f"tidelog/transaction/{self.number(0, 2)}", len(self.entries), self.now_ms))
        self.put(*actions)

    def some(self) -> tuple[int, list[Segment]]:
        p = self.number(0, self.state.partitions - 1)
        live = self.state.live(p)
        low = self.number(0, len(live))
        return p, live[low : low + self.number(1, 3)]

    def merge(self) -> None:
        """Segments that lie end to end become one."""
        p, some = self.some()
        old = [s for i, s in enumerate(some) if all(b.base_offset <= a.end for a, b in pairwise(some[: i + 1]))]
        if old:
            made = add(p, old[0].base_offset, old[-1].end, self.path(p), modification_ms=old[0].modification_ms)
            clean = [Txn(f"tidelog/clean/{p}", old[-1].end)] if self.number(0, 1) else []
            self.put(*map(gone, old), made, *clean)

    def retain(self) -> None:
        p = self.number(0, self.state.partitions - 1)
        start = self.number(self.state.start(p), self.state.end(p))
        self.put(*(gone(s) for s in self.state.live(p) if s.end <= start), start_txn(p, start))

    def another_engine_comes_in(self) -> None:
        """Some segments vanish, other files, ids and metaData come; all that is taken back, sooner or later."""
        for _ in range(self.number(1, 3)):
            some: list[dict[str, Any]] = [{"remove": {"path": s.path}} for s in self.some()[1]]
            some += [{"add": {"path": self.path(0)}} for _ in range(self.number(0, 2))]
            some += [{"txn": {"appId": self.draw(FOREIGN_IDS), "version": 3}} for _ in range(self.number(0, 1))]
            some += [{"metaData": {"configuration": {}}}, {"protocol": {}}][: self.number(0, 2)]
            self.take(foreign(self.state.version + 1, *some))
        if self.state.foreign and (self.number(0, 3) or len(self.entries) < 8):
            self.put(*take_back(self.state, START_MS))

    def configure(self) -> None:
        now = self.state.metadata
        assert now is not None
        more = min(PARTITIONS, self.state.partitions + self.number(0, 1))
        facts = {"tidelog.partitions": str(more), "tidelog.retention.ms": str(len(self.entries))}
        self.put(
            Metadata(now.table_id, "t", now.schema, now.partition_columns, {**now.configuration, **facts}, START_MS)
        )

    def delete_and_maybe_create(self) -> None:
        self.put(*decide_delete(self.state, "t", now_ms=START_MS).actions)
        if self.number(0, 2):
            self.create()

    def step(self) -> None:
        if self.state.foreign:
            return
        if not self.state.exists:
            self.create()
            return
        weighted: list[Callable[[], None]] = [
            *[self.append] * 4,
            *[self.merge] * 2,
            self.retain,
            self.another_engine_comes_in,
            self.configure,
            self.delete_and_maybe_create,
        ]
        weighted[self.number(0, len(weighted) - 1)]()


FOREIGN_IDS = st.sampled_from(["x", "tidelog/end/0", "tidelog/clean/x", "tidelog/sink/q", "tidelog/start/00"])


def foreign(version: int, *bodies: dict[str, Any]) -> Entry:
    return decode_entry(version, foreign_bytes(bodies), "here")


def foreign_bytes(bodies: Iterable[dict[str, Any]]) -> bytes:
    return b"\n".join(orjson.dumps(b) for b in ({"commitInfo": {}}, *bodies))


def foreign_bodies(touched: Touched) -> list[dict[str, Any]]:
    """What touches the same."""
    files = [{"remove": {"path": file.path}} for file in touched.files]
    ids = [{"txn": {"appId": app_id, "version": 3}} for app_id in touched.txns]
    return [*files, *ids, *[{"metaData": {}}] * touched.metadata, *[{"protocol": {}}] * touched.protocol]


def gone(segment: Segment) -> Remove:
    return Remove(segment.path, segment.partition, segment.base_offset, segment.size, START_MS, False)


@st.composite
def histories(draw: st.DrawFn, most: int = 14) -> list[Entry]:
    history = History(draw)
    for _ in range(draw(st.integers(1, most))):
        history.step()
    return history.entries


def says(state: TopicState) -> dict[str, Any]:
    producers = sorted(state.producer_txns(), key=lambda txn: txn.app_id)
    return {f.name: getattr(state, f.name) for f in fields(state) if f.compare} | {"producers": producers}


def store(storage: Storage, entries: list[Entry]) -> None:
    for one in entries:
        if one.info.request_id:
            data = encode_entry(one.actions, one.info)
        else:
            data = foreign_bytes(foreign_bodies(one.touched) if one.touched else [])
        assert storage.put_if_absent(f"t/{layout.entry_path(one.version)}", data)


def pinned(entries: list[Entry], version: int) -> int:
    """The newest version up to this one that a checkpoint may hold: nothing in it waits to be taken back."""
    state, newest = TopicState(), 0
    for one in entries[: version + 1]:
        state.apply(one)
        newest = newest if state.foreign else one.version
    return newest


def from_checkpoint(storage: Storage, entries: list[Entry], version: int) -> TopicState:
    version = pinned(entries, version)
    found = next(checkpoints_from(storage, "t", 0))
    assert found.version == version
    state = TopicState()
    state.restore(version, read_checkpoint(storage, "t", found))
    verify_restored(state, version, "t")
    for one in entries[version + 1 :]:
        verify_entry(state, one, "t")
        state.apply(one)
    return state


@given(histories(), st.data())
def test_checkpoints_and_tail_say_what_the_entries_say(entries: list[Entry], data: st.DataObject) -> None:
    """Each checkpoint is made of the one before it, the last one of all of them."""
    storage = MemoryStorage("m")
    store(storage, entries)
    for version in sorted(data.draw(st.sets(st.integers(0, len(entries) - 1), min_size=1, max_size=3))):
        write_checkpoint(storage, "t", version, START_MS)
    assert says(from_checkpoint(storage, entries, version)) == says(apply_all(TopicState(), entries))


@given(histories(), st.data())
def test_a_live_file_is_found_and_no_other(entries: list[Entry], data: st.DataObject) -> None:
    """Whatever its writer knew of the log, live and from a checkpoint, and under the name of a second writing."""
    storage = MemoryStorage("m")
    store(storage, entries)
    write_checkpoint(storage, "t", data.draw(st.integers(0, len(entries) - 1)), START_MS)
    version = next(checkpoints_from(storage, "t", 0)).version
    for state in (apply_all(TopicState(), entries), from_checkpoint(storage, entries, version)):
        live = {s.path: s for s in state.all_segments()}
        for one in (a for e in entries for a in e.actions if isinstance(a, Add)):
            assert state.find(one.partition, one.path) == live.get(one.path)
            if one.path.startswith("partition="):
                again = layout.written_again(one.path, layout.segment_name(one.path)[0] + 1, "u")
                assert state.find(one.partition, again) == live.get(one.path)
            assert state.find(one.partition + 1, one.path) is None


def test_columns_of_a_checkpoint_go_when_most_of_their_segments_have_left() -> None:
    """One partition was merged, the other is at rest: it keeps its own rows, and none of the others'."""
    files = [add(0, n, n + 1) for n in range(100)] + [add(1, n, n + 1) for n in range(5)]
    entries = [created(), entry(1, *files, end_txn(0, 100), end_txn(1, 5)), entry(2, add(1, 5, 6), end_txn(1, 6))]
    storage = MemoryStorage("m")
    store(storage, entries)
    write_checkpoint(storage, "t", 1, START_MS)
    state = from_checkpoint(storage, entries, 1)
    before = state.live(1)
    merged = add(0, 0, 100, "partition=0/2-merged.parquet", data_change=False)
    state.apply(entry(3, *map(remove, files[:100]), merged))
    held = state.live(1)
    assert isinstance(held, LazyList)
    assert len(held.make.adds) == 5  # type: ignore[attr-defined]
    assert list(held) == list(before) == apply_all(TopicState(), entries).live(1)
    assert state.find(1, files[102].path) == held[2]
    state.apply(entry(4, remove(files[100]), start_txn(1, 1)))
    assert [s.base_offset for s in state.live(1)] == [1, 2, 3, 4, 5]


def test_a_checkpoint_forgets_producers_of_long_ago_and_nothing_else(tmp_path: Path) -> None:
    """What must never expire has no lastUpdated: Delta keeps it, whatever its retention."""
    long_ago = START_MS - 400 * DAY_MS
    properties = metadata(delta_setTransactionRetentionDuration="interval 14 days")
    storage = LocalStorage(tmp_path)
    entries = [
        entry(0, *created().actions[:1], properties),
        entry(1, add(0, 0, 4), end_txn(0, 4)),
        entry(
            2,
            Txn("tidelog/producer/1/0", 5, long_ago),
            Txn("tidelog/producer/2/0", 6, 9_999_999_999_999),
            Txn("tidelog/sink/q", 7),
            Txn("tidelog/purge", 1),
            start_txn(0, 2),
            Txn("tidelog/clean/0", 3),
        ),
    ]
    store(storage, entries)
    write_checkpoint(storage, "t", 2, START_MS)
    state = from_checkpoint(storage, entries, 2)
    assert sorted(state.txns) == ["tidelog/purge", "tidelog/sink/q"]
    assert [txn.app_id for txn in state.producer_txns()] == ["tidelog/producer/2/0"]
    assert (state.ends, state.starts, state.cleans) == ({0: 4}, {0: 2}, {0: 3})


# --- what a state says -------------------------------------------------------------------------------------


def test_an_empty_state_is_no_topic() -> None:
    state = TopicState()
    assert (state.exists, state.topic_id, state.partitions, state.overrides) == (False, "", 0, {})
    assert (state.start(0), state.end(0), state.live(0), state.txn("a")) == (0, 0, [], None)


def test_facts_are_no_overrides() -> None:
    state = apply_all(TopicState(), [entry(0, metadata(tidelog_retention_ms="5", delta_checkpointInterval="9"))])
    assert state.overrides == {"retention.ms": "5"}
    assert (state.topic_id, state.partitions) == ("id-1", 2)


def test_a_list_of_segments_that_somebody_holds_stays_as_it_was_when_segments_leave() -> None:
    old, more = add(0, 0, 5), add(0, 5, 8)
    state = apply_all(TopicState(), [created(), entry(1, old, more, end_txn(0, 8))])
    held = state.live(0)
    state.apply(entry(2, remove(old), remove(more), add(0, 0, 8)))
    assert [(s.base_offset, s.end) for s in held] == [(0, 5), (5, 8)]
    assert [(s.base_offset, s.end) for s in state.live(0)] == [(0, 8)]


def test_a_rewrite_takes_its_place_among_the_others() -> None:
    parts = [add(0, i, i + 1) for i in range(5)]
    state = apply_all(TopicState(), [created(), entry(1, *parts, end_txn(0, 5))])
    state.apply(entry(2, remove(parts[1]), remove(parts[2]), add(0, 1, 3)))
    assert [(s.base_offset, s.end) for s in state.live(0)] == [(0, 1), (1, 3), (3, 4), (4, 5)]


STATS: dict[str, tuple[str | None, tuple[int | None, int | None, int | None]]] = {
    "none": (None, (None, None, None)),
    "tidelog's": (
        '{"numRecords":3,"minValues":{"timestamp":"1970-01-01T00:00:00.001Z"},'
        '"maxValues":{"timestamp":"1970-01-01T00:00:01.002Z"}}',
        (3, 1, 1002),
    ),
    "with an offset of hours": ('{"minValues":{"timestamp":"1970-01-01T01:00:00.000+01:00"}}', (None, 0, None)),
    "count only": ('{"numRecords":3}', (3, None, None)),
    "no bounds": ('{"numRecords":3,"minValues":null}', (3, None, None)),
    "a time of no calendar": ('{"numRecords":3,"maxValues":{"timestamp":"+12345-01-01"}}', (None, None, None)),
    "no JSON": ("{", (None, None, None)),
    "a list": ("[]", (None, None, None)),
}


@pytest.mark.parametrize(("text", "says_"), STATS.values(), ids=STATS)
def test_statistics(text: str | None, says_: tuple[int | None, ...]) -> None:
    state = apply_all(TopicState(), [created(), entry(1, add(0, 0, 3, stats=text), end_txn(0, 3))])
    assert tuple(state.live(0)[0].stats) == says_
    assert state.last_timestamp_ms(0) == (says_[2] or 0)


def test_a_segment_that_is_live_proves_its_entry() -> None:
    mine: Add = add(0, 0, 5)
    state = apply_all(TopicState(), [created(), entry(1, mine, end_txn(0, 5))])
    assert state.proves_committed(entry(1, mine, end_txn(0, 5)))
    assert not state.proves_committed(entry(1, add(0, 0, 5, "other")))
    assert not state.proves_committed(entry(1, Txn("a", 1)))
