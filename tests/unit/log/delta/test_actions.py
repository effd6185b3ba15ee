"""Log entries as bytes: the round trip, and that an entry is whole or refused."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, add, end_txn, metadata

from tidelog.log.base.errors import CorruptLogError, TornEntryError
from tidelog.log.delta.actions import (
    Action,
    Add,
    CommitInfo,
    Entry,
    Metadata,
    Protocol,
    Remove,
    Touched,
    Txn,
    decode_entry,
    encode_entry,
)
from tidelog.log.delta.disk_format import PROTOCOL

# Control characters, line ends of every kind and other alphabets have to survive; lone surrogates are no text.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LONG = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**63 - 1)
MAYBE = st.none() | COUNT
TEXTS = st.dictionaries(TEXT, TEXT, max_size=3)

ACTIONS = st.one_of(
    st.builds(Add, TEXT, COUNT, COUNT, COUNT, LONG, st.booleans(), st.none() | TEXT, MAYBE),
    st.builds(Remove, TEXT, COUNT, COUNT, COUNT, COUNT, st.booleans()),
    st.builds(Txn, TEXT, LONG, MAYBE),
    st.builds(Metadata, TEXT, TEXT, TEXT, st.lists(TEXT, max_size=2).map(tuple), TEXTS, COUNT),
    st.builds(Protocol, st.integers(1, 3), st.integers(1, 7)),
)
INFOS = st.builds(CommitInfo, COUNT, TEXT, TEXT, st.booleans(), st.booleans(), TEXTS)


@given(st.lists(ACTIONS, max_size=5), INFOS)
def test_an_entry_reads_as_it_was_written(actions: list[Action], info: CommitInfo) -> None:
    data = encode_entry(actions, info)
    assert decode_entry(7, data, "here") == Entry(7, tuple(actions), info)


@given(st.lists(ACTIONS, max_size=3), INFOS, st.data())
def test_any_part_of_an_entry_from_its_beginning_is_refused(
    actions: list[Action], info: CommitInfo, data: st.DataObject
) -> None:
    whole = encode_entry(actions, info)
    size = data.draw(st.integers(0, len(whole) - 2))  # without its last line end it still says everything
    with pytest.raises(CorruptLogError, match="here"):
        decode_entry(7, whole[:size], "here")


def test_every_truncation_of_an_append_is_torn() -> None:
    whole = encode_entry([add(0, 0, 5), end_txn(0, 5)], CommitInfo(START_MS, "WRITE", "id"))
    for size in range(len(whole) - 1):
        with pytest.raises(TornEntryError) as torn:
            decode_entry(3, whole[:size], "here")
        assert torn.value.version == 3
    assert decode_entry(3, whole[:-1], "here") == decode_entry(3, whole, "here")


def test_a_tail_of_zeros_is_torn() -> None:
    """What a file system may leave of the last block after a power failure."""
    whole = encode_entry([add(0, 0, 5)], CommitInfo(START_MS, "WRITE", "id"))
    with pytest.raises(TornEntryError):
        decode_entry(3, whole[:-40] + b"\0" * 40, "here")


def test_a_lost_line_in_the_middle_is_torn() -> None:
    lines = encode_entry([add(0, 0, 5), end_txn(0, 5)], CommitInfo(START_MS, "WRITE", "id")).splitlines(keepends=True)
    with pytest.raises(TornEntryError, match="1 actions of 2"):
        decode_entry(3, b"".join([lines[0], lines[2]]), "here")


FOREIGN_ADD = {
    "path": "partition=0/base_offset=0/part-0.parquet",
    "partitionValues": {"partition": "0", "base_offset": "10"},
    "size": 5,
    "modificationTime": START_MS,
    "dataChange": True,
}


def lines(*bodies: dict[str, Any]) -> bytes:
    return b"\n".join(orjson.dumps(b) for b in bodies)


INFO = {"commitInfo": {"timestamp": 5, "operation": "DELETE", "engineInfo": "Apache-Spark", "txnId": "x"}}
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "sizeInBytes": 4, "cardinality": 1}


def test_another_engines_entry_has_no_actions_and_says_what_it_changed() -> None:
    data = lines(
        INFO,
        {"remove": {"path": "a.parquet", "deletionTimestamp": 5, "dataChange": True}},
        {"add": {**FOREIGN_ADD, "clusteringProvider": None, "tags": None}},
        {"add": {**FOREIGN_ADD, "deletionVector": VECTOR}},
        {"txn": {"appId": "a", "version": 1}},
        {"cdc": {"path": "c"}},
        {"domainMetadata": {"domain": "d"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    )
    entry = decode_entry(4, data, "here")
    assert (entry.info.request_id, entry.actions) == (None, ())
    path, vector = FOREIGN_ADD["path"], orjson.dumps(VECTOR, option=orjson.OPT_SORT_KEYS).decode()
    files = (
        Remove("a.parquet", -1, -1, 0, 0, False),
        Remove(path, 0, 10, 5, 0, False),
        Remove(path, 0, 10, 5, 0, False, vector),
    )
    assert entry.touched == Touched("DELETE by Apache-Spark", files, ("a",), metadata=False, protocol=True)
    (again,) = decode_entry(5, encode_entry(files[2:], CommitInfo(5, "REPAIR", "id")), "here").actions
    assert again == files[2]


# What others may write into an entry, or a person by hand -> the paths and the ids that it touches.
ODD: dict[str, tuple[list[Any], list[str], list[str]]] = {
    "an action that is not known": ([{"teleport": {}}, {"add": {"path": "a"}}], ["a"], []),
    "a file without anything": ([{"add": {"path": "a"}}, {"remove": {"path": "b"}}], ["a", "b"], []),
    "a file without a path": ([{"add": {"size": 1}}, {"txn": {"appId": "x"}}], [], ["x"]),
    "values of other types": (
        [{"add": {"path": "a", "size": "5", "partitionValues": {"partition": 0, "base_offset": None}}}],
        ["a"],
        [],
    ),
    "a text for an action": ([{"add": "x"}, {"txn": {"appId": "x", "version": "1"}}], [], ["x"]),
    "an id without a version": ([{"txn": {"appId": "x"}}, {"txn": {}}], [], ["x"]),
}


@pytest.mark.parametrize(("bodies", "paths", "ids"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("info", [[INFO], [{"commitInfo": {}}], []])
def test_what_others_wrote_is_read_as_far_as_it_can_be(
    bodies: list[Any], paths: list[str], ids: list[str], info: list[Any]
) -> None:
    touched = decode_entry(4, lines(*info, *bodies), "here").touched
    assert touched is not None
    assert ([file.path for file in touched.files], list(touched.txns)) == (paths, ids)


@pytest.mark.parametrize("bodies", [[], [{"cdc": {"path": "c"}}, {"domainMetadata": {"domain": "d"}}]])
def test_an_entry_that_changes_nothing_that_counts_here_need_not_be_taken_back(bodies: list[Any]) -> None:
    entry = decode_entry(4, lines(INFO, *bodies), "here")
    assert (entry.actions, entry.touched) == ((), None)


def test_whole_lines_without_commit_info_are_torn_only_when_tidelog_may_have_written_them() -> None:
    own = encode_entry([add(0, 0, 5), end_txn(0, 5)], CommitInfo(START_MS, "WRITE", "id")).splitlines()[:-1]
    with pytest.raises(TornEntryError):
        decode_entry(3, b"\n".join(own), "here")
    by_hand = json.dumps(orjson.loads(own[0])).encode()  # with spaces
    touched = decode_entry(3, by_hand, "here").touched
    assert touched is not None
    assert touched.by == "no operation by an engine without a name"


def own_entry(*bodies: Any) -> bytes:
    return lines(*bodies, {"commitInfo": {"tidelog": {"request": "id", "actions": len(bodies)}}})


# An entry's lines -> what the error says.
BROKEN: dict[str, tuple[list[dict[str, Any]], str]] = {
    "an action nobody knows": ([{"teleport": {}}], "action 'teleport'"),
    "two actions in a line": ([{"txn": {}, "add": {}}], "line 1"),
    "an add without a path": ([{"add": {"size": 1}}], "'path'"),
    "a size in words": ([{"add": {**FOREIGN_ADD, "size": "five"}}], "'five' is no whole number"),
    "a txn version in words": ([{"txn": {"appId": "a", "version": "1"}}], "'1' is no whole number"),
    "a txn version that is a truth": ([{"txn": {"appId": "a", "version": True}}], "no whole number"),
    "a list": ([[]], "line 1"),  # type: ignore[list-item]
    "a text for an action": ([{"add": "x"}], "line 1"),
    "the second line": ([{"txn": {"appId": "a", "version": 1}}, {"txn": {}}], "line 2"),
    "a protocol without versions": ([{"protocol": {}}], "minReaderVersion"),
    "a tag that is no number": ([{"add": {**FOREIGN_ADD, "tags": {"tidelog.end": "soon"}}}], "soon"),
}


@pytest.mark.parametrize(("bodies", "says"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_entry_is_refused_by_line(bodies: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(CorruptLogError, match=says) as broken:
        decode_entry(9, own_entry(*bodies), "the/path.json")
    assert "the/path.json" in str(broken.value)
    assert broken.value.version == 9
    assert not isinstance(broken.value, TornEntryError)


@pytest.mark.parametrize(
    "values", [None, {}, {"partition": None, "base_offset": None}, {"partition": "²", "base_offset": "x"}]
)
def test_a_file_of_a_table_that_is_no_topic_is_in_no_partition(values: dict[str, str] | None) -> None:
    data = own_entry({"add": {**FOREIGN_ADD, "partitionValues": values}})
    (found,) = decode_entry(0, data, "here").actions
    assert isinstance(found, Add)
    assert (found.partition, found.base_offset) == (-1, -1)


@pytest.mark.parametrize(
    "protocol", [PROTOCOL, Protocol(1, 2), Protocol(1, 7, (), ("tidelog",)), Protocol(3, 7, ("b",), ("a", "b"))]
)
def test_a_protocol_is_read_as_it_was_written(protocol: Protocol) -> None:
    data = encode_entry([protocol], CommitInfo(START_MS, "CREATE TABLE", "id"))
    assert decode_entry(0, data, "here").actions == (protocol,)


def test_no_list_of_reader_features_is_written() -> None:
    """Spark and deltalake refuse to read a table with an empty one."""
    (first, _) = map(orjson.loads, encode_entry([PROTOCOL], CommitInfo(START_MS, "X", "id")).splitlines())
    assert first == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["tidelog"]}}


def test_an_entrys_last_line_counts_what_is_before_it() -> None:
    data = encode_entry([metadata(), end_txn(0, 1)], CommitInfo(START_MS, "WRITE", "id", durable=True))
    assert orjson.loads(data.splitlines()[-1])["commitInfo"]["tidelog"] == {
        "request": "id",
        "actions": 2,
        "durable": True,
    }
    assert data.endswith(b"\n")


@pytest.mark.parametrize("version", [1.5, 2.0, True, "3", None])
def test_a_version_that_no_reader_takes_is_not_written(version: Any) -> None:
    with pytest.raises(TypeError, match=f"{version!r} is no whole number"):
        encode_entry([Txn("app", version)], CommitInfo(START_MS, "r", "WRITE", True, True, {}))


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**200])
@pytest.mark.parametrize("field", ["version", "tidelog.end", "size", "modificationTime"])
def test_a_number_that_no_reader_can_hold_is_refused(field: str, number: int) -> None:
    add = Add("a", 0, 0, 1, 1, True, None, 5)
    data = encode_entry((add, Txn("tidelog/end/0", 5)), CommitInfo(0, "WRITE", "id"))
    lines = [orjson.loads(line) for line in data.splitlines()]
    if field == "tidelog.end":
        lines[0]["add"]["tags"][field] = str(number)
    else:
        next(body for line in lines for body in line.values() if field in body)[field] = number
    with pytest.raises(CorruptLogError, match="breaks the format"):
        decode_entry(1, b"".join(json.dumps(line).encode() + b"\n" for line in lines), "1.json")
