"""deltalake reads tidelog's tables in every way it has, and writes to none: the protocol names a feature it lacks."""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, QueryBuilder, TableFeatures, write_deltalake
from deltalake.exceptions import CommitFailedError
from support.engine_tables import TABLES, fill_tables

from tidelog.log.delta import layout
from tidelog.log.lake import Lake

SEGMENTS = 25
RECORDS = 3 * SEGMENTS + 1


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake with a topic past its first checkpoint, groups and transactions."""
    with Lake(str(tmp_path_factory.mktemp("other") / "lake")) as lake:
        fill_tables(lake, *([f"{n:02d}-{i}" for i in range(3)] for n in range(SEGMENTS)))
    return lake.uri.removeprefix("file://")


def opened(root: str, name: str, **options: Any) -> DeltaTable:
    return DeltaTable(f"{root}/{name}", **options)


def stored(root: str) -> dict[str, int]:
    return {str(p.relative_to(root)): p.stat().st_size for p in Path(root).rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_the_protocol_in_its_log_and_its_checkpoints(made: str, name: str) -> None:
    with Lake(made) as lake:
        log = lake.log(name) if name == "orders" else None
        version = opened(made, name).version()
        if log is not None:
            log.upkeep.checkpoint(version - 1)
    for table in (opened(made, name), opened(made, name, version=0)):
        protocol = table.protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 7)
        assert (protocol.reader_features, protocol.writer_features) == (None, ["tidelog"])


READS: dict[str, Callable[[DeltaTable], int]] = {
    "Arrow": lambda t: t.to_pyarrow_table().num_rows,
    "a dataset": lambda t: t.to_pyarrow_dataset().count_rows(),
    "pandas": lambda t: len(t.to_pandas()),
    "SQL": lambda t: pa.table(QueryBuilder().register("t", t).execute("select * from t").read_all()).num_rows,
    "changes": lambda t: pa.table(t.load_cdf(starting_version=1).read_all()).num_rows,
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_it_reads(made: str, name: str, read: Callable[[DeltaTable], int]) -> None:
    table = opened(made, name)
    assert read(table) == (RECORDS if name == "orders" else table.to_pyarrow_table().num_rows)
    assert read(table) > 1


def test_it_travels_in_time_and_follows(made: str) -> None:
    table = opened(made, "orders", version=3)
    assert table.to_pyarrow_table().num_rows == 9
    table.update_incremental()
    assert table.to_pyarrow_table().num_rows == RECORDS
    table.load_as_version(5)
    assert table.to_pyarrow_table().num_rows == 15
    table.load_as_version(datetime.now(UTC))
    assert table.to_pyarrow_table().num_rows == RECORDS
    assert len(table.history()) == table.version() + 1


def merge(table: DeltaTable) -> Any:
    some = table.to_pyarrow_table().slice(0, 2)
    return table.merge(some, "s.position = t.position", source_alias="s", target_alias="t")


def write(table: DeltaTable, **options: Any) -> None:
    write_deltalake(table, table.to_pyarrow_table().slice(0, 2), **options)


WRITES: dict[str, Callable[[DeltaTable], Any]] = {
    "append": lambda t: write(t, mode="append"),
    "append with new columns": lambda t: write(t, mode="append", schema_mode="merge"),
    "overwrite": lambda t: write(t, mode="overwrite"),
    "overwrite the schema": lambda t: write(t, mode="overwrite", schema_mode="overwrite"),
    "replace where": lambda t: write(t, mode="overwrite", predicate="base_offset >= 0"),
    "create again": lambda t: DeltaTable.create(t.table_uri, t.schema(), mode="overwrite"),
    "delete everything": lambda t: t.delete(),
    "delete files": lambda t: t.delete("base_offset = 0"),
    "delete rows": lambda t: t.delete("position = 0"),
    "update": lambda t: t.update({"position": "7"}),
    "merge": lambda t: merge(t).when_matched_delete().execute(),
    "merge in": lambda t: merge(t).when_not_matched_by_source_delete().execute(),
    "restore": lambda t: t.restore(1),
    "compact": lambda t: t.optimize.compact(),
    "z-order": lambda t: t.optimize.z_order(["position"]),
    "set a property": lambda t: t.alter.set_table_properties({"delta.appendOnly": "true"}),
    "add a column": lambda t: t.alter.add_columns([Field("more", "string")]),  # type: ignore[arg-type]
    "add a constraint": lambda t: t.alter.add_constraint({"small": "position < 0 or position >= 0"}),
    "add a feature": lambda t: t.alter.add_feature(TableFeatures.AppendOnly, allow_protocol_versions_increase=True),
    "comment": lambda t: t.alter.set_column_metadata("position", {"comment": "x"}),
    "rename": lambda t: t.alter.set_table_name("another"),
    "describe": lambda t: t.alter.set_table_description("another"),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("change", WRITES.values(), ids=WRITES)
def test_it_refuses_to(made: str, name: str, change: Callable[[DeltaTable], Any]) -> None:
    before, rows = stored(made), opened(made, name).to_pyarrow_table()
    with pytest.raises(CommitFailedError, match=r"Unsupported table features required.*tidelog"):
        change(opened(made, name))
    assert opened(made, name).to_pyarrow_table() == rows
    assert {path for path in stored(made).keys() - before.keys() if "base_offset=" not in path} == set()
    assert before.items() <= stored(made).items()


def test_it_refuses_a_vacuum_that_would_delete(made: str) -> None:
    orphan = Path(made, "orders/partition=0/3-15b1877b-7923-4ea2-b092-83ab9158ec3e.parquet")
    orphan.write_bytes(b"on its way into the log")
    os.utime(orphan, (1, 1))
    before = stored(made)
    assert opened(made, "orders").vacuum(dry_run=False) == []  # it finds nothing to delete
    with pytest.raises(CommitFailedError, match="tidelog"):
        opened(made, "orders").vacuum(0, dry_run=False, full=True, enforce_retention_duration=False)
    assert stored(made) == before
    orphan.unlink()


def test_what_it_does_to_the_log_folder_is_harmless(made: str, tmp_path: Path) -> None:
    """Its checkpoint serves as one of ours, and its clean-up finds no entry that is old enough."""
    root = Path(shutil.copytree(made, tmp_path / "copy"))
    log = root / "orders" / layout.LOG_FOLDER
    for entry in log.iterdir():
        os.utime(entry, (1, 1))
    entries = sorted(p.name for p in log.glob("*.json"))
    rows = opened(str(root), "orders").to_pyarrow_table()
    opened(str(root), "orders").create_checkpoint()
    opened(str(root), "orders").cleanup_metadata()
    opened(str(root), "orders").compact_logs(0, 5)
    opened(str(root), "orders").generate()
    opened(str(root), "orders").repair()
    assert set(entries) <= {p.name for p in log.glob("*.json")}
    assert (log / f"{opened(str(root), 'orders').version():020d}.checkpoint.parquet").exists()
    with Lake(str(root), create=False) as lake:
        assert lake.offsets("orders") == Lake(made, create=False).offsets("orders")
        lake.topic("orders").append(pa.table({"value": ["after"]}))
        read = [r["value"] for p in (0, 1) for b in lake.topic("orders").read(p) for r in b.to_pylist()]
        assert sorted(read) == sorted([*rows["value"].to_pylist(), b"after"])
    assert opened(str(root), "orders").to_pyarrow_table().num_rows == RECORDS + 1
