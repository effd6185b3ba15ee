"""A checkpoint of ours says to deltalake what the entries say, and what deltalake's own checkpoint of them says."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from support.careless_engines import careless
from support.logs import values

from tidelog.check.lake import repair
from tidelog.log.base.clock import SystemClock
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import Outcome
from tidelog.log.storage import LocalStorage

ROWS = 10


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A topic's folder without a checkpoint: appends, deleted records, a configuration, a DELETE that is taken back."""
    root = tmp_path_factory.mktemp("lake")
    lake = Lake(str(root))  # never closed, so that no checkpoint is written
    lake.create_topic("t", partitions=2, config={"retention.ms": "5"})
    for i in range(ROWS):
        lake.topic("t").append(values(f"{i}", f"{i} again", partition=[0, 1]))
    lake.delete_records("t", {0: 3})
    lake.alter_topic("t", partitions=3, config={"retention.ms": "100000", "segment.bytes": "2000000"})
    ids = (Txn("stream-of-old", 7, 1_000), Txn("stream", 8, SystemClock().now_ms()))
    lake.commit("t", lambda _: Outcome(ids, None))
    with careless(root / "t") as address:
        for predicate in ("base_offset = 4", "base_offset = 5 AND position = 0"):
            at = CommitProperties(app_transactions=[Transaction("theirs", 3)])
            DeltaTable(address).delete(predicate, commit_properties=at)
    assert repair(lake, execute=True).report.green
    for _ in range(3):
        lake.topic("t").append(values("last"))
    return root / "t"


def head(table: Path) -> int:
    return max(int(p.name[:20]) for p in (table / layout.LOG_FOLDER).glob("*.json"))


def checkpointed(eventful: Path, to: Path, *versions: int) -> Path:
    """A copy with our checkpoints of some versions, without the entries up to the last of them."""
    table = shutil.copytree(eventful, to / "t")
    for version in versions:
        write_checkpoint(LocalStorage(to), "t", version, SystemClock().now_ms())
    for entry in (table / layout.LOG_FOLDER).glob("*.json"):
        if int(entry.name[:20]) <= versions[-1]:
            entry.unlink()
    return table


def view(table: Path) -> dict[str, Any]:
    """What deltalake says of a table."""
    opened = DeltaTable(str(table))
    ids = ("stream", "stream-of-old", "tidelog/end/0", "tidelog/end/1", "tidelog/start/0")
    metadata = opened.metadata()
    return {
        "version": opened.version(),
        "protocol": str(opened.protocol()),
        "metadata": (metadata.id, metadata.name, metadata.partition_columns, metadata.created_time),
        "configuration": metadata.configuration,
        "schema": opened.schema().to_json(),
        "ids": {one: opened.transaction_version(one) for one in ids},
        "files": sorted(str(row) for row in pa.table(opened.get_add_actions(flatten=True)).to_pylist()),
        "rows": sorted(str(row) for row in opened.to_pyarrow_table().to_pylist()),
    }


@pytest.mark.parametrize("behind", [0, 3])
def test_deltalake_sees_the_same_table_through_a_checkpoint_of_ours(
    eventful: Path, tmp_path: Path, behind: int
) -> None:
    table = checkpointed(eventful, tmp_path, 4, head(eventful) - behind)
    assert view(table) == view(eventful)
    assert len(view(table)["files"]) > 10


def rows(table: Path, version: int) -> Counter[str]:
    """A checkpoint's rows as JSON; an empty map is none at all."""
    found = pq.read_table(table / layout.checkpoint_path(version)).to_pylist(maps_as_pydicts="strict")
    return Counter(orjson.dumps(said(row), option=orjson.OPT_SORT_KEYS).decode() for row in found)


def said(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: said(v) for k, v in value.items() if v not in (None, {})}
    return value


def test_it_has_the_rows_that_deltalake_writes(eventful: Path, tmp_path: Path) -> None:
    version = head(eventful)
    theirs = shutil.copytree(eventful, tmp_path / "theirs" / "t")
    DeltaTable(str(theirs)).create_checkpoint()
    ours = checkpointed(eventful, tmp_path / "ours", version)
    assert rows(ours, version) == rows(theirs, version)
    kinds = Counter(next(iter(orjson.loads(row))) for row in rows(ours, version).elements())
    assert kinds.keys() == {"protocol", "metaData", "txn", "add", "remove"}
    assert (kinds["protocol"], kinds["metaData"]) == (1, 1)
    ids = {orjson.loads(row)["txn"]["appId"] for row in rows(ours, version) if row.startswith('{"txn"')}
    assert "stream" in ids
    assert "stream-of-old" not in ids


def test_it_is_made_of_deltalakes_checkpoint_as_of_its_own(eventful: Path, tmp_path: Path) -> None:
    version = head(eventful)
    for name, middle in (("theirs", "deltalake"), ("ours", "tidelog"), ("none", None)):
        table = shutil.copytree(eventful, tmp_path / name / "t")
        storage, now_ms = LocalStorage(tmp_path / name), SystemClock().now_ms()
        if middle == "deltalake":
            DeltaTable(str(table), version=version - 2).create_checkpoint()
        elif middle:
            write_checkpoint(storage, "t", version - 2, now_ms)
        if middle:  # so that it can't be passed over
            for entry in range(version - 1):
                (table / layout.entry_path(entry)).unlink()
        write_checkpoint(storage, "t", version, now_ms)
    whole = rows(tmp_path / "none" / "t", version)
    assert rows(tmp_path / "ours" / "t", version) == whole
    assert rows(tmp_path / "theirs" / "t", version) == whole


def test_last_checkpoint_names_it(eventful: Path, tmp_path: Path) -> None:
    version = head(eventful)
    table = checkpointed(eventful, tmp_path, version)
    path, found = table / layout.checkpoint_path(version), rows(table, version)
    assert orjson.loads((table / layout.LAST_CHECKPOINT).read_bytes()) == {
        "version": version,
        "size": sum(found.values()),
        "sizeInBytes": path.stat().st_size,
        "numOfAddFiles": sum(n for row, n in found.items() if row.startswith('{"add"')),
    }
