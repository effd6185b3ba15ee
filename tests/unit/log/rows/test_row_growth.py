"""Tables of rows that grow: columns come before their first value, and a program that lacks them is refused by name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import entry, put_checkpoint
from support.row_tables import NAME, WORDS, Table, WordsFold, put, words

from tidelog.log.base.errors import CorruptLogError, UnsupportedFormatError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Metadata, encode_entry
from tidelog.log.rows import row_log, rules, state
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import RowSchema
from tidelog.log.rows.state import RowKind, rows_version
from tidelog.log.state.topic_state import ROWS_VERSION

# What a newer program knows of the same table: a word's author and, since a version later, its weight.
NEWER: RowKind[WordsFold] = replace(
    WORDS,
    schema=RowSchema(
        {"key": pa.string(), "value": pa.int64()}, growth=({"author": pa.string()}, {"weight": pa.int64()})
    ),
)


def newer(table: Table) -> RowLog[WordsFold]:
    return table.lake_now().row_log(NAME, NEWER)


def write(log: RowLog[WordsFold], **row: Any) -> None:
    log.commit(lambda _: RowOutcome([row], None))


def rows(log: RowLog[WordsFold]) -> list[dict[str, Any]]:
    """All rows, as the table's files have them."""
    log.look(lambda fold: None)
    current = log.door.state
    return [dict(row) for file in current.files for _, row in current.read(file)]


def metadata(log: RowLog[WordsFold]) -> Metadata:
    log.look(lambda fold: None)
    made = log.door.state.metadata
    assert made is not None
    return made


def test_columns_come_before_the_first_value_and_not_sooner() -> None:
    table = Table()
    log = newer(table)
    write(log, key="a", value=1)
    assert ROWS_VERSION not in metadata(log).configuration
    assert [f["name"] for f in orjson.loads(metadata(log).schema)["fields"]][-1] == "value"
    put(table.log, b=2)  # an older program goes on until then
    write(log, key="a", value=3, author="ann")
    assert metadata(log).configuration[ROWS_VERSION] == "2"
    assert [f["name"] for f in orjson.loads(metadata(log).schema)["fields"]][-1] == "author"
    write(log, key="c", value=4, weight=5)
    assert metadata(log).configuration[ROWS_VERSION] == "3"
    assert words(newer(table)) == {"a": 3, "b": 2, "c": 4}
    operations = [orjson.loads(table.storage.get(path).splitlines()[-1])["commitInfo"] for path in table.entries()]
    assert [one["operation"] for one in operations].count("ADD COLUMNS") == 2


def test_a_table_that_is_made_for_such_a_row_grows_first() -> None:
    log = newer(Table())
    write(log, key="a", value=1, weight=2)
    assert metadata(log).configuration[ROWS_VERSION] == "3"
    assert rows(log) == [{"key": "a", "value": 1, "weight": 2}]


def test_two_programs_that_see_the_need_at_once_grow_it_once() -> None:
    table = Table()
    log, other = newer(table), newer(table)
    write(log, key="a", value=1)

    def first(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before"):
            table.storage.hook = lambda *call: None
            write(other, key="b", value=2, author="bob")

    table.storage.hook = first
    write(log, key="c", value=3, author="cy")
    assert [row["key"] for row in rows(log)] == ["a", "b", "c"]
    assert len(table.entries()) == 5  # creation, a, the columns, b, c


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_older_program_is_refused_by_name(checkpoint: bool) -> None:
    table = Table()
    put(table.log, a=1)
    log = newer(table)
    write(log, key="a", value=1, author="ann")
    if checkpoint:
        put_checkpoint(table.storage, NAME, log.version)
    for old in (table.log, table.reopened()):
        with pytest.raises(UnsupportedFormatError, match=r"'words' in version '2'; this tidelog knows versions 1 to 1"):
            put(old, b=2)
    assert words(log) == {"a": 1}


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "9" * 5_000])
def test_a_version_that_is_no_number_is_refused_by_a_sentence(text: str) -> None:
    table = Table()
    put(table.log, a=1)
    known = table.log.door.state
    assert known.metadata is not None
    told = replace(known.metadata, configuration={**known.metadata.configuration, ROWS_VERSION: text})
    with pytest.raises(UnsupportedFormatError, match="this tidelog knows versions 1 to 1"):
        rows_version(told, known.kind)


@pytest.mark.parametrize(
    ("version", "body", "why"),
    [
        ("1", None, "makes a table of version 2 one of version 1"),
        (None, {"key": "b", "weight": 1}, "rows of version 3 in a table of version 2"),
    ],
)
def test_entries_that_break_the_rule_stop_the_log(version: str | None, body: dict[str, Any] | None, why: str) -> None:
    table = Table()
    log = newer(table)
    write(log, key="a", value=1, author="ann")
    if body is None:
        made = metadata(log)
        changed = replace(made, configuration={**made.configuration, ROWS_VERSION: str(version)})
        data = encode_entry([changed], entry(0, request="r").info)
    else:
        lines = [orjson.loads(line) for line in table.storage.get(table.entries()[-1]).splitlines()]
        base, end = {"base_offset": "1"}, {"tidelog.end": "2"}
        lines[0]["add"] |= {"path": "rows/x.parquet", "partitionValues": base, "tags": end}
        lines[1]["txn"]["version"] = 2
        lines[-1]["commitInfo"]["tidelog"] |= {"rows": [body], "request": "r"}
        data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    assert table.storage.put_if_absent(f"{NAME}/{layout.entry_path(len(table.entries()))}", data)
    with pytest.raises(CorruptLogError, match=why):
        words(newer(table))


# --- what older programs would do, and that it is found -------------------------------------------------------

STEPS = st.lists(st.tuples(st.sampled_from(["old", "new"]), st.sampled_from(["put", "compact"])), max_size=30)


def authors_lost(steps: Sequence[tuple[str, str]]) -> set[str]:
    """Programs of two versions write and compact, in turn; the authors that are gone after it."""
    table = Table()
    logs = {"old": table.log, "new": newer(table)}
    written = {}
    for number, (program, what) in enumerate(steps):
        log = logs[program]
        try:
            if what == "compact":
                words(log)
                log.chores.compact(fewest=2)
            elif program == "new":
                write(log, key=f"k{number}", value=number, author=f"a{number}")
                written[f"k{number}"] = f"a{number}"
            else:
                put(log, **{f"k{number}": number})
        except UnsupportedFormatError:
            assert (program, bool(written)) == ("old", True)
    there = {row["key"]: row.get("author") for row in rows(newer(table))}
    return {key for key, author in written.items() if there[key] != author}


@given(STEPS)
def test_no_value_is_lost_by_programs_of_two_versions(steps: list[tuple[str, str]]) -> None:
    assert authors_lost(steps) == set()


@contextmanager
def takes_any_version() -> Iterator[None]:
    """A program that goes on in a table whose columns it does not know all."""

    def lenient(made: Metadata, kind: RowKind[Any]) -> int:
        return min(int(made.configuration.get(ROWS_VERSION, "1")), kind.schema.version)

    class Knowing(RowSchema):
        def from_json(self, body: Any) -> Any:
            return super().from_json({name: value for name, value in body.items() if name in self._kinds})

        def version_of(self, rows: Any) -> int:
            return 1

    schema = Knowing({"key": pa.string(), "value": pa.int64()}, later=("author",))
    with (
        patch.object(state, "rows_version", lenient),
        patch.object(rules, "rows_version", lenient),
        patch.object(row_log, "rows_version", lenient),
        patch("tidelog.log.state.verify.schema_problems", lambda *_: []),
        patch.dict(WORDS.__dict__, {"schema": schema}),
    ):
        yield


def test_a_program_that_goes_on_in_a_newer_table_is_found() -> None:
    assert rows_version is state.rows_version
    steps = [("new", "put"), ("old", "put"), ("new", "put"), ("old", "compact")]
    assert authors_lost(steps) == set()
    with takes_any_version():
        assert authors_lost(steps) == {"k0", "k2"}
