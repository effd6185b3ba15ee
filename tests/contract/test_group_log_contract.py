"""The log of groups on every store, and what SQL sees of it."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from support.logs import values
from support.storage_adapters import ADAPTERS

from tidelog.groups.model import CommittedOffset, Decision, Group, GroupPhase
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_groups_on_every_store(adapter: str, tmp_path: Path) -> None:
    storage = ADAPTERS[adapter](tmp_path)

    def open_lake() -> Lake:
        return Lake(storage.uri, storage=storage)

    with open_lake() as lake, open_lake() as elsewhere:
        lake.topic("t").append(values(*"abcdefghij"))
        log, other = GroupLog(lake), GroupLog(elsewhere)
        for i in range(10):
            (log, other)[i % 2].commit_offsets("g", {("t", 0): CommittedOffset(i, f"note {i}")})
        assert (log.offsets("g")["t", 0].offset, other.offsets("g")["t", 0].metadata) == (9, "note 9")
    with open_lake() as lake:
        assert GroupLog(lake).offsets("g")["t", 0].offset == 9


def rows_of(root: Path) -> list[dict]:
    table = DeltaTable(f"{root}/__consumer_offsets").to_pyarrow_table()
    return table.sort_by([("base_offset", "ascending"), ("position", "ascending")]).to_pylist()


def test_sql_sees_a_commit_as_soon_as_it_is_acknowledged(tmp_path: Path) -> None:
    with Lake(str(tmp_path)) as lake:
        lake.topic("t").append(values(*"abc"))
        log = GroupLog(lake)
        log.commit_offsets("g", {("t", 0): CommittedOffset(2, "note", 5)})
        (row,) = rows_of(tmp_path)
        committed = log.offsets("g")["t", 0]
        assert {k: row[k] for k in ("group", "topic", "partition", "offset", "metadata", "leader_epoch")} == {
            "group": "g",
            "topic": "t",
            "partition": 0,
            "offset": 2,
            "metadata": "note",
            "leader_epoch": 5,
        }
        assert (row["generation"], row["kind"], row["deleted"]) == (-1, "offset", None)
        assert round(row["commit_time"].timestamp() * 1000) == committed.commit_ms

        log.decide("g", lambda view: Decision(response=None, group=Group("g", GroupPhase.EMPTY, 4, "consumer")))
        log.delete_offsets("g", [("t", 0)])
        _, group, gone = rows_of(tmp_path)
        assert (group["kind"], group["phase"], group["generation"], group["members"]) == ("group", "Empty", 4, [])
        assert (gone["topic"], gone["partition"], gone["offset"], gone["deleted"]) == ("t", 0, None, True)


def test_the_formats_query_shows_where_groups_stand(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/format.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(SELECT.*?)```", page, re.DOTALL)
    query = query.replace("delta.`<lake>/__consumer_offsets`", "offsets").replace("`", '"')  # DataFusion's quotes
    with Lake(str(tmp_path)) as lake:
        lake.topic("t").append(values(*"abc"))
        log = GroupLog(lake)
        for group, offset in (("g", 1), ("h", 1), ("g", 2), ("gone", 3), ("g", 3)):
            log.commit_offsets(group, {("t", 0): CommittedOffset(offset)})
        log.delete_group("gone")
    table = DeltaTable(f"{tmp_path}/__consumer_offsets")
    rows = pa.table(QueryBuilder().register("offsets", table).execute(query).read_all())
    assert sorted((r["group"], r["topic"], r["partition"], r["offset"]) for r in rows.to_pylist()) == [
        ("g", "t", 0, 3),
        ("h", "t", 0, 1),
    ]


def test_a_busy_table_stays_small_and_says_the_same(tmp_path: Path) -> None:
    """Compaction, checkpoints and trimming by committers; then by others, with `deltalake`."""
    with Lake(str(tmp_path)) as lake:
        lake.alter_config({"log.checkpoint.interval": "50", "log.min.age.ms": "10000"})
        lake.topic("t").append(values(*[str(i) for i in range(300)]))
        log = GroupLog(lake)
        for i in range(300):
            log.commit_offsets(f"g{i % 3}", {("t", 0): CommittedOffset(i)})
        expected = {name: view.offsets for name, view in log.views().items()}
    with Lake(str(tmp_path)) as lake:
        log = GroupLog(lake)
        assert {name: view.offsets for name, view in log.views().items()} == expected
        assert {g: o["t", 0].offset for g, o in expected.items()} == {"g0": 297, "g1": 298, "g2": 299}
    rows = rows_of(tmp_path)
    assert len(rows) < 150
    assert len(DeltaTable(f"{tmp_path}/__consumer_offsets").file_uris()) < 150
    assert {r["group"]: r["offset"] for r in rows} == {"g0": 297, "g1": 298, "g2": 299}  # the newest row counts
