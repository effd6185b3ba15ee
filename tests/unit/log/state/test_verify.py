"""Which entry may follow which state: each rule has an entry that breaks exactly it."""

from dataclasses import replace

import orjson
import pytest
from support.logs import add, created, end_txn, entry, metadata, remove, start_txn

from tidelog.log.base.errors import CorruptLogError, NotATopicError, UnsupportedFormatError
from tidelog.log.delta.actions import Action, CommitInfo, Entry, Metadata, Protocol, Txn
from tidelog.log.delta.disk_format import PROTOCOL
from tidelog.log.delta.schema import DELTA_SCHEMA, PARTITION_COLUMNS
from tidelog.log.door.topic_machine import topic_machine
from tidelog.log.state.topic_state import TopicState
from tidelog.log.state.verify import verify_entry, verify_protocol, verify_table

A, B, C = add(0, 0, 5), add(0, 5, 8), add(1, 0, 3)


def log_of(*entries: Entry) -> TopicState:
    state = TopicState()
    for one in entries:
        topic_machine("t").verify(state, one)
        state.apply(one)
    return state


def two_partitions() -> TopicState:
    """p0: [0, 5) A, [5, 8) B; p1: [0, 3) C."""
    return log_of(
        created(),
        entry(1, A, end_txn(0, 5)),
        entry(2, B, C, end_txn(0, 8), end_txn(1, 3)),
    )


DELETED = metadata(tidelog_deleted="true")


def problem(state: TopicState, *actions: Action) -> str | None:
    """What is wrong with an entry of these actions; None when nothing is."""
    version = state.version + 1
    try:
        verify_entry(state, entry(version, *actions), "t")
    except CorruptLogError as e:
        start, _, rest = str(e).partition(" breaks the format: ")
        return rest if (start, e.version) == (f"Topic 't': log entry {version} (WRITE)", version) else "not named"
    return None


ACCEPTED: dict[str, tuple[Action, ...]] = {
    "nothing": (),
    "another engine's own marker": (Txn("spark-app", 3),),
    "an append": (add(0, 8, 9), end_txn(0, 9)),
    "an append of two segments to one partition": (add(0, 8, 9), add(0, 9, 11), end_txn(0, 11)),
    "an append to two partitions": (add(0, 8, 9), add(1, 3, 4), end_txn(0, 9), end_txn(1, 4)),
    "a merge": (remove(A), remove(B), add(0, 0, 8)),
    "a rewrite of which nothing is left": (remove(A), add(0, 0, 5, "new", stats='{"numRecords":0}')),
    "a merge that compacts": (remove(A), remove(B), add(0, 0, 8), Txn("tidelog/clean/0", 8)),
    "a split": (remove(A), add(0, 0, 2), add(0, 2, 5)),
    "retention": (remove(A), start_txn(0, 5)),
    "retention of all": (remove(A), remove(B), start_txn(0, 8)),
    "the start moves inside a segment": (start_txn(0, 3),),
    "the rewritten boundary segment": (remove(A), add(0, 3, 5), start_txn(0, 3)),
    "a merge that drops what is below the start": (remove(A), remove(B), add(0, 6, 8), start_txn(0, 6)),
    "a change of configuration": (metadata(tidelog_retention_ms="1"),),
    "more partitions": (metadata(partitions=3),),
    "a delete": (DELETED, remove(A), remove(B), remove(C)),
}


@pytest.mark.parametrize("actions", ACCEPTED.values(), ids=ACCEPTED)
def test_entries_that_may_follow(actions: tuple[Action, ...]) -> None:
    assert problem(two_partitions(), *actions) is None


REFUSED: dict[str, tuple[tuple[Action, ...], str]] = {
    "an append that leaves a gap": ((add(0, 9, 10), end_txn(0, 10)), "at offset 9, but the partition ends at 8"),
    "an append below the end": ((add(0, 7, 9),), "replaces offsets [] of partition 0 by [(7, 9)]"),
    "appended segments that overlap": (
        (add(0, 8, 10), add(0, 9, 11), end_txn(0, 11)),
        "offset 9, but the partition ends at 10",
    ),
    "an append that does not say its end": (
        (add(0, 8, 9),),
        "sets the end of partition 0 to 8, but its segments end at 9",
    ),
    "an append that says too low an end": ((add(0, 8, 10), end_txn(0, 9)), "to 9, but its segments end at 10"),
    "an end without segments": ((end_txn(0, 9),), "to 9, but its segments end at 8"),
    "an end that goes back": ((end_txn(0, 7),), "to 7, but its segments end at 8"),
    "an append without coverage": ((add(0, 8, None), end_txn(0, 9)), "does not say (tag tidelog.end)"),
    "an end past its slots": (
        (replace(add(0, 8, 9), end=14), end_txn(0, 14)),
        "0-8-9.parquet covers 6 offsets, but holds 1 records",
    ),
    "an end below its slots": ((replace(add(0, 8, 12), end=9), end_txn(0, 9)), "covers 1 offsets, but holds 4 records"),
    "an append that does not count its records": (
        (add(0, 8, 9, stats='{"numRecords":"1"}'), end_txn(0, 9)),
        "covers 1 offsets, but does not say how many",
    ),
    "an append without statistics": ((add(0, 8, 9, stats=None), end_txn(0, 9)), "does not say how many records"),
    "a rewrite of more records than slots": (
        (remove(A), add(0, 0, 5, "new", stats='{"numRecords":6}')),
        "covers 5 offsets, but holds 6 records",
    ),
    "a rewrite of fewer than no records": (
        (remove(A), add(0, 0, 5, "new", stats='{"numRecords":-1}')),
        "covers 5 offsets, but holds -1 records",
    ),
    "an empty segment": ((add(0, 8, 8),), "does not say (tag tidelog.end)"),
    "a partition that is not there": ((add(2, 0, 1), end_txn(2, 1)), "appends to partition 2 of 2"),
    "no partition at all": ((add(-1, -1, 1),), "its files of partition -1 overlap, or don't say"),
    "a file twice": ((add(0, 8, 9, "x"), add(0, 9, 10, "x"), end_txn(0, 10)), "adds one file twice"),
    "a transaction id twice": ((Txn("a", 1), Txn("a", 2)), "one transaction id twice"),
    "an append and a removal": ((add(0, 8, 9), end_txn(0, 9), remove(C)), "appends, and changes more"),
    "an append and a configuration": ((add(0, 8, 9), end_txn(0, 9), metadata()), "appends, and changes more"),
    "a rewrite that loses a range": (
        (remove(A), remove(B), add(0, 0, 5)),
        "replaces offsets [(0, 8)] of partition 0 by [(0, 5)]",
    ),
    "a rewrite that covers more": ((remove(A), add(0, 0, 6)), "replaces offsets [(0, 5)] of partition 0 by [(0, 6)]"),
    "a rewrite into another partition": (
        (remove(A), add(1, 0, 3, "x")),
        "replaces offsets [(0, 5)] of partition 0 by []",
    ),
    "a rewrite of what is not there": (
        (remove(add(0, 0, 5, "gone")), add(0, 0, 5, "new")),
        "replaces offsets [] of partition 0",
    ),
    "rewritten files that overlap": ((remove(A), add(0, 0, 4), add(0, 3, 5)), "partition 0 overlap"),
    "an append of a live file": ((replace(B, base_offset=8, end=11), end_txn(0, 11)), f"adds {B.path}, whose records"),
    "an append of a live file's records, written again": (
        (add(0, 8, 11, "partition=0/2-5-8_0-x.parquet"), end_txn(0, 11)),
        "whose records are in the table already",
    ),
    "a rewrite by a live file": ((remove(A), add(0, 0, 5, B.path)), f"adds {B.path}, whose records"),
    "a rewritten file without coverage": ((remove(A), add(0, 0, None)), "partition 0 overlap, or don't say"),
    "a removal without a new start": ((remove(A),), "replaces offsets [(0, 5)] of partition 0 by []"),
    "a removal that names another offset": (
        (replace(remove(A), base_offset=7),),
        "replaces offsets [(0, 5)] of partition 0",
    ),
    "a removal beyond the new start": ((remove(A), start_txn(0, 4)), "replaces offsets [(0, 5)] of partition 0 by []"),
    "a start that goes back": ((start_txn(0, 1),), "back to 1"),
    "a start past the end": ((start_txn(0, 9),), "past its end to 9"),
    "compacted past the end": ((Txn("tidelog/clean/0", 9),), "compacted up to 9, past its end"),
    "an end of no partition": ((Txn("tidelog/end/x", 9),), "tidelog/end/x (9) names no partition"),
    "an end of a partition in two spellings": ((Txn("tidelog/end/01", 3),), "tidelog/end/01 (3) names no partition"),
    "a producer of no partition": ((Txn("tidelog/producer/7", 1, 5),), "tidelog/producer/7 names no producer"),
    "a producer without a time": ((Txn("tidelog/producer/7/0", 1),), "names no producer and partition, or has no time"),
    "a negative end": ((Txn("tidelog/end/0", -1),), "names no partition, or no offset"),
    "metaData twice": ((metadata(), metadata(partitions=3)), "two metaData"),
    "metaData without an id": ((metadata(topic_id=""),), "no tidelog.topic.id"),
    "metaData of another topic": ((metadata(name="u"),), "belongs to topic 'u'"),
    "a number of partitions in words": ((metadata(tidelog_partitions="many"),), "tidelog.partitions 'many'"),
    "no partitions": ((metadata(partitions=0),), "tidelog.partitions '0'"),
    "fewer partitions": ((metadata(partitions=1),), "leaves 1 of 2 partitions"),
    "a format in words": ((metadata(tidelog_format="x"),), "tidelog.format 'x'"),
    "created again without a delete": ((metadata(topic_id="id-2"),), "which was not deleted"),
    "a delete that leaves a segment": ((DELETED, remove(A), remove(C)), "not all of its segments"),
    "a delete that appends": ((DELETED, remove(A), remove(B), remove(C), add(0, 8, 9)), "not all of its segments"),
}


@pytest.mark.parametrize(("actions", "says"), REFUSED.values(), ids=REFUSED)
def test_entries_that_break_one_rule(actions: tuple[Action, ...], says: str) -> None:
    state = two_partitions()
    state.apply(entry(3, start_txn(0, 2)))
    found = problem(state, *actions)
    assert found is not None
    assert says in found


AGAIN = metadata(topic_id="id-2", partitions=1)
NEW_ENDS = (end_txn(0, 0), end_txn(1, 0))
AFTER_A_DELETE: dict[str, tuple[tuple[Action, ...], str | None]] = {
    "created again": ((AGAIN, *NEW_ENDS, start_txn(0, 0)), None),
    "a marker": ((Txn("tidelog/purge", 5),), None),
    "created again but for one end": ((AGAIN, end_txn(0, 0), start_txn(0, 0)), "the end of partition 1 is not 0"),
    "created again but for the start": ((AGAIN, *NEW_ENDS), "the start of partition 0 is not 0"),
    "created again at another end": ((AGAIN, end_txn(0, 0), end_txn(1, 4), start_txn(0, 0)), "the end of partition 1"),
    "created again with records": ((AGAIN, *NEW_ENDS, start_txn(0, 0), add(0, 0, 1)), "changes its segments at once"),
    "brought back": ((metadata(),), "a deleted topic"),
    "an append": ((add(0, 8, 9), end_txn(0, 9)), "a deleted topic"),
    "a start": ((start_txn(0, 8),), "a deleted topic"),
}


@pytest.mark.parametrize(("actions", "says"), AFTER_A_DELETE.values(), ids=AFTER_A_DELETE)
def test_what_may_follow_a_delete(actions: tuple[Action, ...], says: str | None) -> None:
    state = two_partitions()
    state.apply(entry(3, start_txn(0, 2)))
    state.apply(entry(4, DELETED, remove(A), remove(B), remove(C)))
    found = problem(state, *actions)
    assert found == says if says is None else says in (found or "")


def test_the_first_entry_makes_it_a_topic() -> None:
    with pytest.raises(NotATopicError, match=r"'t' is a Delta table but not a topic.*tidelog\.format"):
        log_of(Entry(0, (PROTOCOL, Metadata("x", "", "{}", (), {}, 0)), CommitInfo(0, "CREATE TABLE")))
    with pytest.raises(NotATopicError):
        log_of(entry(0, A))


# --- protocol, format, properties, schema ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        (PROTOCOL, None),
        (Protocol(1, 2), r"\(reader 1, writer 2\)"),
        (Protocol(2, 7, None, ("tidelog",)), r"\(reader 2, writer 7, writer features \[tidelog\]\)"),
        (Protocol(1, 7), r"\(reader 1, writer 7\)"),
        (Protocol(1, 7, (), ("tidelog",)), r"\(reader 1, writer 7, reader features \[\], writer features"),
        (Protocol(1, 7, None, ("appendOnly", "tidelog")), r"writer features \[appendOnly, tidelog\]"),
        (Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "tidelog")), r"reader features \[deletionVectors\]"),
    ],
)
def test_protocols(protocol: Protocol, says: str | None) -> None:
    if says is None:
        verify_protocol(protocol, "t")
    else:
        with pytest.raises(UnsupportedFormatError, match=says):
            verify_entry(two_partitions(), entry(3, protocol), "t")


@pytest.mark.parametrize(("version", "todo"), [("4", "Upgrade tidelog"), ("1", "Use the tidelog that wrote it")])
def test_another_format_is_refused_whatever_else_changes(version: str, todo: str) -> None:
    changed = metadata(tidelog_format=version, name="renamed", partitions=0)
    with pytest.raises(
        UnsupportedFormatError, match=rf"on-disk format {version}; .* formats 2 and 3 and no other. {todo}"
    ):
        verify_entry(two_partitions(), entry(3, Protocol(3, 7), changed), "t")


def test_a_property_that_is_not_implemented_is_named() -> None:
    found = metadata(delta_appendOnly="true", delta_enableChangeDataFeed="true", delta_checkpointInterval="10")
    with pytest.raises(UnsupportedFormatError, match=r"delta\.appendOnly, delta\.enableChangeDataFeed\. Use"):
        verify_table(found, "t")


def schema(**changes: object) -> str:
    """The topic's schema with fields changed by name; None takes a field away."""
    body = orjson.loads(DELTA_SCHEMA)
    by_name = {f["name"]: f for f in body["fields"]}
    for name, change in changes.items():
        if change is None:
            del by_name[name]
        else:
            by_name[name] = {**by_name.get(name, {"name": name, "nullable": True, "metadata": {}}), **change}  # type: ignore[dict-item]
    return orjson.dumps({**body, "fields": list(by_name.values())}).decode()


SCHEMAS: dict[str, tuple[str, str | None]] = {
    "its own": (DELTA_SCHEMA, None),
    "its own, with line breaks": (DELTA_SCHEMA.replace("},{", "},\n {"), None),
    "a column more": (schema(extra={"type": "string"}), "column 'extra' is not known"),
    "a comment": (schema(value={"metadata": {"comment": "the payload"}}), "column 'value' is .*the payload"),
    "a column renamed": (schema(value=None, payload={"type": "binary"}), "'value' is gone; column 'payload' is not"),
    "a column of another type": (schema(timestamp_type={"type": "long"}), "column 'timestamp_type' is .*long"),
    "a column that takes no null": (schema(key={"nullable": False}), "column 'key' is .*false"),
    "a rule": (schema(key={"metadata": {"delta.invariants": "x"}}), r"column 'key' is .*delta\.invariants"),
    "nothing that can be read": ("{", "can't be read"),
}


@pytest.mark.parametrize(("text", "says"), SCHEMAS.values(), ids=SCHEMAS)
def test_schemas(text: str, says: str | None) -> None:
    found = Metadata("id", "t", text, PARTITION_COLUMNS, {}, 0)
    if says is None:
        verify_table(found, "t")
    else:
        with pytest.raises(UnsupportedFormatError, match=says):
            verify_table(found, "t")


def test_other_partition_columns_are_refused() -> None:
    with pytest.raises(
        UnsupportedFormatError, match=r"partitioned by \(partition\), not by \(partition, base_offset\)"
    ):
        verify_table(Metadata("id", "t", DELTA_SCHEMA, ("partition",), {}, 0), "t")
