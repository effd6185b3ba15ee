"""Entries that tidelog did not write: they change nothing, stop readers and writers, and one entry takes them back."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, add, apply_all, created, end_txn, entry, metadata, remove, start_txn

from tidelog.log.base.errors import CorruptLogError, ForeignEntryError
from tidelog.log.delta.actions import Action, Add, Entry, Metadata, Protocol, Remove, Txn, decode_entry, encode_entry
from tidelog.log.delta.disk_format import PROTOCOL
from tidelog.log.door.topic_machine import topic_machine
from tidelog.log.rules.topics import decide_take_back
from tidelog.log.state.foreign_entries import take_back
from tidelog.log.state.topic_state import TopicState
from tidelog.log.state.verify import verify_entry

A, B, C = add(0, 0, 5), add(0, 5, 8), add(1, 0, 3)
SINK = Txn("tidelog/sink/q", 4)
PRODUCER = Txn("tidelog/producer/7/0", 5, START_MS)
NOW = START_MS + 1000
OTHERS = "partition=0/base_offset=0/part-0.parquet"


def topic() -> TopicState:
    """Offsets 0 to 8 and 0 to 3, a log start, a sink's marker."""
    state: TopicState = apply_all(
        TopicState(),
        [
            created(partitions=2),
            entry(1, A, B, C, end_txn(0, 8), end_txn(1, 3), SINK, PRODUCER),
            entry(2, start_txn(0, 2)),
        ],
    )
    return state


def foreign(version: int, *bodies: dict[str, Any], operation: str = "DELETE") -> Entry:
    """An entry as another engine writes it."""
    info = {"commitInfo": {"operation": operation, "engineInfo": "other"}}
    return decode_entry(version, b"\n".join(orjson.dumps(b) for b in (info, *bodies)), "here")


def file(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "partitionValues": {"partition": "0", "base_offset": "0"}, "size": 9, **more}


def again(segment: Add) -> Add:
    return replace(segment, data_change=False)


def gone(path: str, vector: str | None = None) -> Remove:
    return Remove(path, 0, 0, 9, NOW, False, vector)


VECTOR = {"storageType": "u", "pathOrInlineDv": "x"}
VECTOR_TEXT = orjson.dumps(VECTOR, option=orjson.OPT_SORT_KEYS).decode()
# What another engine did, entry by entry -> what takes it back.
CASES: dict[str, tuple[list[list[dict[str, Any]]], list[Action]]] = {
    "an append": ([[{"add": file(OTHERS)}]], [gone(OTHERS)]),
    "a delete of a whole file": ([[{"remove": file(A.path)}]], [again(A)]),
    "a rewrite": ([[{"remove": file(A.path)}, {"add": file(OTHERS)}]], [gone(OTHERS), again(A)]),
    "a file that came and went": ([[{"add": file(OTHERS)}], [{"remove": file(OTHERS)}]], [gone(OTHERS)]),
    "a file that went and came back otherwise": (
        [[{"remove": file(A.path)}], [{"add": file(A.path, size=7)}]],
        [again(A)],
    ),
    "rows deleted by a vector": (
        [[{"remove": file(A.path)}, {"add": file(A.path, deletionVector=VECTOR)}]],
        [gone(A.path, VECTOR_TEXT), again(A)],
    ),
    "a configuration": ([[{"metaData": {}}]], [metadata()]),
    "an upgrade": ([[{"protocol": {"minReaderVersion": 3}}], [{"metaData": {}}]], [metadata(), PROTOCOL]),
    "an id of its own": ([[{"txn": {"appId": "x", "version": 3}}]], [Txn("x", -1)]),
    "an id of a sink": ([[{"txn": {"appId": SINK.app_id, "version": 9}}]], [SINK]),
    "offsets": (
        [[{"txn": {"appId": f"tidelog/{which}", "version": 1}} for which in ("end/0", "start/0", "clean/0")]],
        [end_txn(0, 8), start_txn(0, 2), Txn("tidelog/clean/0", 0)],
    ),
    "a producer's sequence, known and not": (
        [[{"txn": {"appId": f"tidelog/producer/{n}/0", "version": 99, "lastUpdated": NOW}}] for n in (7, 8)],
        [PRODUCER, Txn("tidelog/producer/8/0", -1, 0)],
    ),
    "an id that looks like a producer's": (
        [[{"txn": {"appId": "tidelog/producer/x/0", "version": 9, "lastUpdated": NOW}}]],
        [Txn("tidelog/producer/x/0", -1)],
    ),
    "offsets of no partition": ([[{"txn": {"appId": "tidelog/end/00"}}]], [Txn("tidelog/end/00", -1)]),
}


def followed(state: TopicState, entries: list[list[dict[str, Any]]]) -> TopicState:
    for bodies in entries:
        one = foreign(state.version + 1, *bodies)
        verify_entry(state, one, "t")
        state.apply(one)
    return state


@pytest.mark.parametrize(("entries", "actions"), CASES.values(), ids=CASES)
def test_what_takes_it_back(entries: list[list[dict[str, Any]]], actions: list[Action]) -> None:
    state = followed(topic(), entries)
    before = topic()
    assert replace(state, version=2, foreign=()) == before
    outcome = decide_take_back(state, NOW)
    assert list(outcome.actions) == actions
    repair = entry(state.version + 1, *outcome.actions)
    stored = decode_entry(repair.version, encode_entry(repair.actions, repair.info), "here")
    verify_entry(state, stored, "t")
    state.apply(stored)
    assert state.foreign == ()
    assert list(state.all_segments()) == list(before.all_segments())
    assert [state.end(0), state.end(1), state.start(0)] == [8, 3, 2]
    assert state.producer_txns() == before.producer_txns() == [PRODUCER]
    append = entry(state.version + 1, add(0, 8, 9), end_txn(0, 9))
    verify_entry(state, append, "t")


def test_nothing_is_to_be_taken_back_where_tidelog_wrote_the_head() -> None:
    assert decide_take_back(topic(), NOW).actions == ()
    state = followed(topic(), [[{"cdc": {"path": "c"}}]])
    assert decide_take_back(state, NOW).actions == ()
    verify_entry(state, entry(4, add(0, 8, 9), end_txn(0, 9)), "t")


@pytest.mark.parametrize(("entries", "_"), CASES.values(), ids=CASES)
def test_it_stops_readers_and_writers_at_the_head(entries: list[list[dict[str, Any]]], _: object) -> None:
    state = followed(topic(), entries)
    with pytest.raises(
        ForeignEntryError, match=r"'t': Log entr.* 3 .*not written by tidelog \(DELETE by other\).*check --repair"
    ) as e:
        topic_machine("t").verify_head(state)
    assert (e.value.version, e.value.retriable) == (3, False)


REWRITE = CASES["a rewrite"][0]
WRONG: dict[str, tuple[Action, ...]] = {
    "an append": (add(0, 8, 9), end_txn(0, 9)),
    "nothing": (),
    "half of it": (gone(OTHERS),),
    "more than that": (gone(OTHERS), again(A), Txn("x", 1)),
    "a segment with another end": (gone(OTHERS), replace(again(A), end=4)),
    "a segment that is delivered again": (gone(OTHERS), A),
    "another segment": (gone(OTHERS), again(A), remove(B)),
}


@pytest.mark.parametrize("actions", WRONG.values(), ids=WRONG)
def test_only_what_takes_all_of_it_back_may_follow(actions: tuple[Action, ...]) -> None:
    state = followed(topic(), REWRITE)
    with pytest.raises(CorruptLogError, match=r"log entry 4 .*follows entries that tidelog did not write \(3\)"):
        verify_entry(state, entry(4, *actions), "t")


def test_a_deleted_topic_comes_back_to_be_deleted() -> None:
    state = topic()
    deleted = metadata(tidelog_deleted="true")
    state.apply(entry(3, deleted, *map(remove, (A, B, C))))
    state.apply(foreign(4, {"add": file(A.path)}, {"metaData": {}}))
    assert take_back(state, NOW) == (gone(A.path), deleted)


# --- any entries: other engines come back to what tidelog goes by ------------------------------------------


class Delta:
    """What an engine sees that knows Delta's action reconciliation and nothing of tidelog."""

    def __init__(self, state: TopicState) -> None:
        self.files = {(s.path, None): (s.base_offset, s.size) for s in state.all_segments()}
        ends = {f"tidelog/end/{p}": end for p, end in state.ends.items()}
        starts = {f"tidelog/start/{p}": start for p, start in state.starts.items()}
        ids = [*state.txns.values(), *state.producer_txns()]
        self.ids = {**ends, **starts, **{txn.app_id: txn.version for txn in ids}}
        self.metadata: object = state.metadata
        self.protocol: object = state.protocol

    def take(self, bodies: list[dict[str, Any]]) -> None:
        for body in bodies:
            ((kind, said),) = body.items()
            if kind in ("add", "remove"):
                vector = said.get("deletionVector")
                key = (said["path"], None if vector is None else vector["pathOrInlineDv"])
                self.files.pop(key, None)
                if kind == "add":
                    self.files[key] = (int(said["partitionValues"]["base_offset"]), said["size"])
            elif kind == "txn":
                self.ids[said["appId"]] = said["version"]
            elif kind == "metaData":
                self.metadata = said
            elif kind == "protocol":
                self.protocol = said

    def sees(self) -> tuple[object, ...]:
        ids = {k: v for k, v in self.ids.items() if v not in (-1, 0)}
        return self.files, ids, self.metadata, self.protocol


PATHS = st.sampled_from([A.path, B.path, C.path, OTHERS, "partition=1/base_offset=0/part-1.parquet"])
FILES = st.builds(
    lambda path, size, vector: file(path, size=size, **({} if vector is None else {"deletionVector": vector})),
    PATHS,
    st.integers(1, 9),
    st.sampled_from([None, None, VECTOR, {**VECTOR, "pathOrInlineDv": "y"}]),
)
IDS = st.sampled_from(
    ["x", SINK.app_id, PRODUCER.app_id, "tidelog/producer/9/1", "tidelog/end/0", "tidelog/start/1", "tidelog/clean/x"]
)
BODIES = st.one_of(
    st.builds(lambda f: {"add": f}, FILES),
    st.builds(lambda f: {"remove": f}, FILES),
    st.builds(lambda i, v: {"txn": {"appId": i, "version": v}}, IDS, st.integers(0, 9)),
    st.just({"metaData": {"configuration": {}}}),
    st.just({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
)


@given(st.lists(st.lists(BODIES, max_size=4), min_size=1, max_size=4))
def test_other_engines_see_what_was_there_before(entries: list[list[dict[str, Any]]]) -> None:
    state, delta = topic(), Delta(topic())
    wanted = Delta(topic()).sees()
    for bodies in entries:
        delta.take(bodies)
    followed(state, entries)
    actions = take_back(state, NOW)
    repair = encode_entry(actions, entry(9).info)
    lines = [orjson.loads(line) for line in repair.splitlines()[:-1]]
    delta.take([line for line in lines if not {"metaData", "protocol"} & line.keys()])
    for action in actions:
        if isinstance(action, Metadata):
            delta.metadata = action
        elif isinstance(action, Protocol):
            delta.protocol = action
    assert delta.sees() == wanted
    # A commit names no file twice, but for different deletion vectors.
    named = [(a.path, a.vector if isinstance(a, Remove) else None) for a in actions if isinstance(a, Add | Remove)]
    assert len(set(named)) == len(named)
