"""`check` and its repair on tables of rows: a healthy one is green, a torn commit comes back whole."""

from collections.abc import Callable

import orjson
import pytest
from support.corruptible_lakes import CorruptibleLake
from support.corruptions_of_rows import grouped, path, undone
from support.logs import put_checkpoint

from tidelog.check.lake import Kind, check_lake, repair
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.store.rows import KIND as GROUPS
from tidelog.log.base.errors import ForeignEntryError
from tidelog.log.delta.layout import OFFSETS_TABLE, TRANSACTIONS_TABLE, entry_path, entry_version, floor_path
from tidelog.log.upkeep.trim import trim
from tidelog.transactions.rows import KIND as TRANSACTIONS


def offset(corruptible: CorruptibleLake) -> int:
    return GroupLog(corruptible.reopened()).offsets("g")["orders", 0].offset


def test_a_healthy_table_is_green_and_its_rows_are_counted() -> None:
    corruptible = grouped(40)
    report = corruptible.check(deep=True)
    assert report.green, report.findings
    summary = next(t for t in report.topics if t.topic == OFFSETS_TABLE)
    assert (summary.entries, summary.segments, summary.records) == (41, 40, 40)


def test_offsets_of_an_earlier_life_of_a_topic_are_no_corruption() -> None:
    corruptible = grouped()
    corruptible.lake.delete_topic("orders")
    corruptible.lake.create_topic("orders", 1)
    assert corruptible.check(deep=True).green, corruptible.check(deep=True).findings


def test_it_stays_green_through_compaction_checkpoints_and_trimming() -> None:
    corruptible = grouped(1)
    log = GroupLog(corruptible.lake)
    for i in range(40):
        log.commit_offsets("g", {("orders", 0): CommittedOffset(i % 6)})
        corruptible.clock.pass_s(60)
    assert log._first().chores.compact()
    put_checkpoint(corruptible.storage, OFFSETS_TABLE, log.version("g"))
    for deep in (False, True):
        assert corruptible.check(deep=deep).green, corruptible.check(deep=deep).findings
    for i in range(16):
        log.commit_offsets("g", {("orders", 0): CommittedOffset(i % 6)})
        corruptible.clock.pass_s(60)
    assert trim(corruptible.storage, OFFSETS_TABLE, 300_000).floor == 41
    report = corruptible.check(deep=True)
    assert report.green, report.findings
    assert offset(corruptible) == 3


def test_a_torn_commit_is_made_whole_from_its_file() -> None:
    corruptible = grouped()
    where = f"{OFFSETS_TABLE}/{entry_path(3)}"
    data = corruptible.storage.get(where)
    corruptible.storage.put(where, data[: data.index(b'"tidelog"')])
    assert {f.kind for f in corruptible.check().findings if f.topic == OFFSETS_TABLE} == {Kind.ENTRY_TORN}
    done = repair(corruptible.storage, execute=True, clock=corruptible.clock)
    assert done.report.green, done.report.findings
    assert not done.refusals
    assert offset(corruptible) == 3


def test_a_torn_commit_without_its_file_is_set_aside() -> None:
    corruptible = grouped()
    where = f"{OFFSETS_TABLE}/{entry_path(3)}"
    data = corruptible.storage.get(where)
    corruptible.storage.delete(path(corruptible, 3))
    corruptible.storage.put(where, data[: data.index(b'"tidelog"')])
    done = repair(corruptible.storage, execute=True, clock=corruptible.clock)
    assert check_lake(corruptible.storage, clock=corruptible.clock).green
    assert [s.where for s in done.steps] == ["entry 3"]
    assert offset(corruptible) == 2


def test_a_lost_file_is_written_again_from_its_entry() -> None:
    corruptible = grouped()
    where = path(corruptible, 2)
    data = corruptible.storage.get(where)
    corruptible.storage.delete(where)
    planned = repair(corruptible.storage, clock=corruptible.clock)
    assert planned.report.green, planned.report.findings
    done = repair(corruptible.storage, execute=True, clock=corruptible.clock)
    assert done.report.green
    assert not done.refusals
    assert corruptible.storage.get(where) == data


def test_a_lost_file_of_a_compaction_is_left_to_a_copy() -> None:
    corruptible = grouped(20)
    log = GroupLog(corruptible.lake)
    assert log._first().chores.compact()
    corruptible.storage.delete(f"{OFFSETS_TABLE}/{log._first().door.state.files[0].path}")
    done = repair(corruptible.storage, execute=True, clock=corruptible.clock)
    assert Kind.SEGMENT_MISSING in {f.kind for f in done.report.findings}
    assert "restore it from a copy" in done.refusals[0].why


def without_column(corruptible: CorruptibleLake, table: str, version: int, column: str) -> None:
    """An entry of a table of rows, and its file, as one that writes its rows without that column has them."""
    where = f"{table}/{entry_path(version)}"
    lines = [orjson.loads(line) for line in corruptible.storage.get(where).splitlines()]
    rows = lines[-1]["commitInfo"]["tidelog"]["rows"]
    for row in rows:
        row.pop(column)
    schema = {kind.name: kind.schema for kind in (GROUPS, TRANSACTIONS)}[KINDS[table]]
    data = schema.to_file(list(enumerate(map(schema.from_json, rows))))
    (add,) = (line["add"] for line in lines if "add" in line)
    add["size"] = len(data)
    corruptible.storage.put(f"{table}/{add['path']}", data)
    corruptible.storage.put(where, b"".join(orjson.dumps(line) + b"\n" for line in lines))


def keep_the_files_alone(corruptible: CorruptibleLake, table: str) -> None:
    """The rows are in files only: the entries that said them too are trimmed."""
    entries = [o.path for o in corruptible.storage.list_after(f"{table}/_delta_log") if o.path.endswith(".json")]
    head = max(version for path in entries if (version := entry_version(path)) is not None)
    put_checkpoint(corruptible.storage, table, head)
    corruptible.storage.put_if_absent(f"{table}/{floor_path(head - 1)}", b"")
    for entry in entries:
        corruptible.storage.delete(entry)


KINDS = {OFFSETS_TABLE: GROUPS.name, TRANSACTIONS_TABLE: TRANSACTIONS.name}
# What rows say besides that is not needed to read them.
OPTIONAL = {"event", "outcome", "deleted"}


@pytest.mark.parametrize(("make", "table"), [(grouped, OFFSETS_TABLE), (undone, TRANSACTIONS_TABLE)])
@pytest.mark.parametrize("trimmed", [False, True])
def test_rows_of_another_format_are_named_whatever_column_they_lack(
    make: Callable[[], CorruptibleLake], table: str, trimmed: bool
) -> None:
    """By the real decoding of groups and transactions: `check` must not pass over what a reader refuses."""
    last = make().storage.get(f"{table}/{entry_path(2)}").splitlines()[-1]
    columns = orjson.loads(last)["commitInfo"]["tidelog"]["rows"][0].keys() - OPTIONAL
    assert len(columns) > 5
    for column in sorted(columns):
        corruptible = make()
        without_column(corruptible, table, 2, column)
        if trimmed:
            keep_the_files_alone(corruptible, table)
        report = corruptible.check(deep=True)
        kinds = {finding.kind for finding in report.findings if finding.topic == table}
        assert (Kind.SEGMENT_ROWS_WRONG if trimmed else Kind.ENTRY_BROKEN) in kinds, column
        assert not report.green


def test_another_engines_change_is_taken_back() -> None:
    corruptible = grouped()
    before = corruptible.storage.get(f"{OFFSETS_TABLE}/{entry_path(1)}").splitlines()
    removed = before[0].replace(b'"add"', b'"remove"')
    info = b'{"commitInfo": {"operation": "DELETE", "engineInfo": "other"}}'
    corruptible.storage.put(f"{OFFSETS_TABLE}/{entry_path(4)}", b"\n".join([removed, info]) + b"\n")
    assert Kind.ENTRY_FOREIGN in {f.kind for f in corruptible.check().findings}
    with pytest.raises(ForeignEntryError):
        offset(corruptible)
    assert repair(corruptible.storage, execute=True, clock=corruptible.clock).report.green
    taken_back = orjson.loads(corruptible.storage.get(f"{OFFSETS_TABLE}/{entry_path(5)}").splitlines()[0])
    assert taken_back["add"]["partitionValues"] == {"base_offset": "0"}
    assert offset(corruptible) == 3
