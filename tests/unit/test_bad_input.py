"""What other engines, other tools and people may do to a lake's files: a clear error, and nothing is lost or wedged."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from support.faults import FaultyStorage
from support.logs import START_MS, FakeClock, memory_lake, open_lake, read, values

from tidelog.log.base.errors import (
    CorruptLogError,
    CorruptSegmentError,
    InvalidConfigError,
    InvalidUriError,
    NotATopicError,
    StorageError,
    TornEntryError,
    UnsupportedFormatError,
)
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.storage import LocalStorage
from tidelog.log.storage.port import Storage

Started = tuple[Lake, FaultyStorage, FakeClock]


@pytest.fixture
def started() -> Started:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=2)
    lake.topic("t").append(values("a", "b", partition=[0, 1]))
    return lake, storage, clock


def put_entry(storage: Storage, *bodies: dict[str, Any]) -> int:
    """An entry of another tidelog at the head of the log; its version."""
    version = max(layout.entry_version(o.path) or 0 for o in storage.list_after("t/_delta_log")) + 1
    own = {"request": f"request-{version}", "actions": len(bodies), "durable": True}
    info = {"commitInfo": {"timestamp": START_MS, "operation": "X", "engineInfo": "tidelog", "tidelog": own}}
    data = b"\n".join(orjson.dumps(b) for b in (*bodies, info)) + b"\n"
    assert storage.put_if_absent(f"t/{layout.entry_path(version)}", data)
    return version


def metadata_now(lake: Lake) -> dict[str, Any]:
    """The topic's metaData as JSON has it."""
    now = lake.log("t").door.refresh().metadata
    assert now is not None
    return {
        "id": now.table_id,
        "name": now.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": now.schema,
        "partitionColumns": list(now.partition_columns),
        "configuration": dict(now.configuration),
        "createdTime": now.created_ms,
    }


def set_properties(lake: Lake, storage: Storage, **properties: str | None) -> int:
    """Set or unset (None) properties as another tidelog may; `_` stands for `.`."""
    metadata = metadata_now(lake)
    for key, value in properties.items():
        name = key.replace("_", ".")
        metadata["configuration"].pop(name, None)
        if value is not None:
            metadata["configuration"][name] = value
    return put_entry(storage, {"metaData": metadata})


# --- configuration -----------------------------------------------------------------------------------------

WRONG = {"tidelog_retention_ms": "soon", "tidelog_retention_msec": "5", "tidelog_max_message_bytes": "-1"}


@pytest.mark.parametrize(("key", "value"), WRONG.items())
def test_a_configuration_that_is_not_taken_here_stops_no_reader_and_can_be_mended(
    started: Started, key: str, value: str
) -> None:
    lake, storage, clock = started
    set_properties(lake, storage, **{key: value})
    name = key.replace("_", ".").removeprefix("tidelog.")
    for one in (lake, open_lake(storage, clock)):
        assert read(one, "t") == ["a"]
        assert one.offsets("t") == {0: (0, 1), 1: (0, 1)}
        assert one.describe_topic("t").config[name] == value
        assert one.topics() == ["t"]
        with pytest.raises(
            InvalidConfigError, match=rf"Topic 't' holds.*this tidelog does not take.*{name}.*alter_topic"
        ):
            one.topic("t").append(values("x", partition=[0]))
    assert lake.delete_records("t", {1: 1}) == {1: 1}
    with pytest.raises(InvalidConfigError, match="does not take"):
        lake.alter_topic("t", config={"segment.ms": "5"})
    assert lake.alter_topic("t", config={name: None, "segment.ms": "5"}).config == {"segment.ms": "5"}
    assert lake.topic("t").append(values("x", partition=[0])) == {0: (1, 2)}


def test_a_wrong_value_may_be_set_right(started: Started) -> None:
    lake, storage, _ = started
    set_properties(lake, storage, tidelog_retention_ms="soon")
    assert lake.alter_topic("t", config={"retention.ms": "7"}).config == {"retention.ms": "7"}


def test_a_wrong_cleanup_policy_is_no_licence_to_delete(started: Started) -> None:
    lake, storage, _ = started
    set_properties(lake, storage, tidelog_cleanup_policy="compcat")
    with pytest.raises(InvalidConfigError, match=r"cleanup\.policy"):
        lake.delete_records("t", {0: 1})


def test_a_topic_that_is_set_wrong_can_be_deleted(started: Started) -> None:
    lake, storage, _ = started
    set_properties(lake, storage, tidelog_retention_ms="soon")
    lake.delete_topic("t")
    assert lake.create_topic("t").config == {}


# --- what a tidelog that knows more can take back ----------------------------------------------------------


def test_what_is_not_implemented_stops_the_topic_until_it_is_taken_back(started: Started) -> None:
    lake, storage, clock = started
    topic, other, before = lake.topic("t"), open_lake(storage, clock), metadata_now(lake)
    schema = before["schemaString"].replace('"value"', '"payload"')
    property_more = {**before["configuration"], "delta.appendOnly": "true"}
    for changed, says in (
        ({"schemaString": schema}, "column 'payload' is not known.*Use a tidelog that knows it"),
        ({"configuration": property_more}, r"delta\.appendOnly\. Use a tidelog that knows them"),
    ):
        put_entry(storage, {"metaData": {**before, **changed}})
        uses = (lambda: topic.append(values("x")), lambda: topic.read(0), lambda: lake.delete_topic("t"))
        for use in (*uses, lambda: open_lake(storage, clock).topic("t")):
            with pytest.raises(UnsupportedFormatError, match=says):
                use()
        assert lake.topics() == ["t"]
        put_entry(storage, {"metaData": before})
        end = topic.offsets()[0][1]
        assert topic.append(values("x", partition=[0])) == {0: (end, end + 1)}
    assert read(other, "t") == ["a", "x", "x"]


# --- what stops the log at an entry ------------------------------------------------------------------------

APPEND = {
    "path": "part-0000.parquet",
    "partitionValues": {"partition": "0", "base_offset": "1"},
    "size": 10,
    "modificationTime": START_MS,
    "dataChange": True,
    "stats": '{"numRecords":1}',
}
STOPS: dict[str, tuple[list[dict[str, Any]], type[Exception], str]] = {
    "an append": ([{"add": APPEND}], CorruptLogError, r"log entry 2 \(X\) breaks the format.*does not say"),
    "an append without partition": (
        [{"add": {**APPEND, "partitionValues": {"partition": None, "base_offset": None}}}],
        CorruptLogError,
        "log entry 2",
    ),
    "an unknown action": ([{"teleport": {}}], CorruptLogError, "00000000000000000002.json holds an action 'teleport'"),
    "an upgrade": (
        [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}}],
        UnsupportedFormatError,
        r"protocol \(reader 3, writer 7, reader features \[deletionVectors\]\)",
    ),
}


@pytest.mark.parametrize(("bodies", "error", "says"), STOPS.values(), ids=STOPS)
def test_readers_and_writers_stop_at_the_entry(
    started: Started, bodies: list[dict[str, Any]], error: type[Exception], says: str
) -> None:
    lake, storage, clock = started
    topic = lake.topic("t")
    put_entry(storage, *bodies)
    uses = (lambda: topic.append(values("x")), lambda: topic.read(0), lambda: open_lake(storage, clock).topic("t"))
    for use in (*uses, *uses):  # it says the same each time
        with pytest.raises(error, match=says):
            use()
    assert lake.topics() == ["t"]
    lake.create_topic("another")  # no other program is held up
    assert lake.topic("another").append(values("x")) == {0: (0, 1)}


def test_a_newer_format_version_is_told(started: Started) -> None:
    lake, storage, clock = started
    set_properties(lake, storage, tidelog_format="4")
    for one in (lake, open_lake(storage, clock)):
        with pytest.raises(UnsupportedFormatError, match=r"on-disk format 4; .* Upgrade tidelog"):
            one.topic("t")


@pytest.mark.parametrize("keep", [0, 1, 100, -20])
def test_a_torn_entry_is_told(started: Started, keep: int) -> None:
    lake, storage, clock = started
    data = storage.get(f"t/{layout.entry_path(1)}")
    storage.inner.put(f"t/{layout.entry_path(2)}", data[:keep])
    for one in (lake, open_lake(storage, clock)):
        with pytest.raises(TornEntryError, match=r"00002\.json is torn.*run 'tidelog check --repair'") as torn:
            one.topic("t").append(values("x"))
        assert torn.value.version == 2


def test_a_segment_that_is_gone_is_named_and_the_rest_is_served(started: Started) -> None:
    lake, storage, _ = started
    lake.topic("t").append(values("c", partition=[0]))
    first = lake.topic("t").state().live(0)[0]
    storage.inner.delete(f"t/{first.path}")
    with pytest.raises(CorruptSegmentError, match=r"offsets 0 to 1\) is missing.*check --repair --give-up"):
        read(lake, "t")
    assert read(lake, "t", 0, 1) == ["c"]
    lake.delete_records("t", {0: 1})
    assert read(lake, "t") == ["c"]


# --- folders that are no topics ----------------------------------------------------------------------------


def test_a_table_that_is_no_topic(started: Started) -> None:
    lake, storage, _ = started
    info = {"commitInfo": {"timestamp": 1, "operation": "CTAS"}}
    schema = '{"type":"struct","fields":[]}'
    table = {"metaData": {"id": "x", "schemaString": schema, "partitionColumns": [], "configuration": {}}}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping"]}}
    file = {"add": {"path": "p", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}
    data = b"\n".join(orjson.dumps(b) for b in (info, protocol, table, file))
    storage.inner.put(f"plain/{layout.entry_path(0)}", data)
    storage.inner.put("notes/readme.txt", b"hello")
    assert lake.topics() == ["t"]
    for use in (lake.topic, lake.create_topic, lake.describe_topic):
        with pytest.raises(NotATopicError, match=r"'plain' is a Delta table but not a topic: it has no property"):
            use("plain")
    lake.create_topic("notes")
    assert storage.get("notes/readme.txt") == b"hello"


# --- addresses ---------------------------------------------------------------------------------------------


def test_a_lake_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for create in (True, False):
        with pytest.raises(StorageError, match=r"is a file, not a folder: check the lake's address"):
            Lake(str(tmp_path / "file"), create=create)
        with pytest.raises(StorageError, match="is a file, not a folder"):
            Lake(str(tmp_path / "file/lake"), create=create)


def test_a_topic_whose_folder_is_a_file(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    (tmp_path / "t").write_text("not a folder")
    with pytest.raises(StorageError, match="is a file, not a folder"):
        lake.create_topic("t")
    assert lake.topics() == []


def test_a_folder_that_can_not_be_read_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Root ignores modes, so the store says it."""
    storage = FaultyStorage(LocalStorage(tmp_path), lambda *call: None)

    def denied(method: str, path: str, phase: str) -> None:
        if method == "get":
            raise StorageError("EACCES")

    storage.hook = denied
    with pytest.raises(StorageError, match="EACCES"):
        Lake("", storage=storage)


@pytest.mark.parametrize("name", ["a%20b", "a?b", "a#b"])
def test_a_folder_whose_name_others_would_read_differently(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidUriError, match="Use a folder without them in its path"):
        Lake(str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []
