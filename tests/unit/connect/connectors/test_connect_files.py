"""FileStream's source and sink, and folders as sources and sinks: crashes between steps, and bad input."""

import gzip
import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.connect_records import sink_record
from support.connect_tasks import StoredOffsets, polled, started_sink, started_source

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.files.folder_sink import FolderSink
from tidelog.connect.connectors.files.folder_source import FolderSource
from tidelog.connect.connectors.files.stream import FileStreamSink, FileStreamSource, LineReader
from tidelog.connect.data.errors import ConnectError, DataError
from tidelog.connect.data.schema import INT32, STRING, struct_of, timestamp_schema
from tidelog.connect.spi.connectors import ExactlyOnceSupport

P0 = ("test", 0)


class Clock:
    seconds = 0.0

    def elapsed_s(self):
        return self.seconds


# --- FileStream --------------------------------------------------------------------------------------------


def test_lines_end_as_javas_readers_have_it(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"one\ntwo\r\nthree\rfour\n\nrest")
    reader = LineReader(path)
    assert [(line.data, line.end) for line in reader.lines(3)] == [(b"one", 4), (b"two", 9), (b"three", 15)]
    assert [line.data for line in reader.lines(9)] == [b"four", b""]
    assert reader.lines(9) == []
    with path.open("ab") as file:
        file.write(b" of it\r")
    assert reader.lines(9) == []  # a \n may follow
    with path.open("ab") as file:
        file.write(b"\nlast\n")
    assert [line.data for line in reader.lines(9)] == [b"rest of it", b"last"]


@given(st.lists(st.binary(max_size=12), max_size=8), st.data())
def test_every_position_is_one_to_go_on_from(tmp_path_factory, chunks, data):
    path = tmp_path_factory.mktemp("lines") / "f"
    path.write_bytes(b"".join(chunks))
    whole = LineReader(path).lines(1000)
    if whole:
        at = data.draw(st.integers(0, len(whole) - 1))
        assert LineReader(path, whole[at].end).lines(1000) == whole[at + 1 :]


def test_file_stream_source_goes_on_behind_the_stored_position(tmp_path):
    path, stored = tmp_path / "in.txt", StoredOffsets()
    config = {"file": str(path), "topic": "lines", "batch.size": "2"}
    task, context = started_source(FileStreamSource, config, stored)
    assert task.poll() == []  # no file yet: it waits
    assert context.waits
    path.write_text("a\nb\nc\nd")
    first = task.poll()
    assert [record.value for record in first] == ["a", "b"]
    assert {(record.topic, record.value_schema) for record in first} == {("lines", STRING)}
    stored.keep(first)
    task.poll()  # c is read, and lost with the worker
    task, _ = started_source(FileStreamSource, config, stored)
    with path.open("a") as file:
        file.write("\n")
    assert [record.value for record in polled(task)] == ["c", "d"]


def test_file_stream_source_refuses_a_file_that_was_cut(tmp_path):
    path, stored = tmp_path / "in.txt", StoredOffsets()
    path.write_text("a\nb\n")
    config = {"file": str(path), "topic": "lines"}
    polled(started_source(FileStreamSource, config, stored)[0], stored)
    path.write_text("a\n")
    task, _ = started_source(FileStreamSource, config, stored)
    with pytest.raises(ConnectError, match="it was replaced or cut"):
        task.poll()


@pytest.mark.parametrize(
    ("config", "missing"),
    [({"topic": "t"}, "file"), ({"file": "f"}, "topic"), ({"file": "", "topic": "t"}, "file")],
)
def test_file_stream_source_needs_a_file_and_a_topic(config, missing):
    errors = {value.name: value.errors for value in FileStreamSource.validate(config)}
    assert [name for name, found in errors.items() if found] == [missing]


def test_file_stream_offsets_are_checked():
    config = {"file": "f", "topic": "t"}
    assert FileStreamSource.exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED
    assert FileStreamSource.alter_offsets(config, [({"filename": "f"}, {"position": 3}), ({"filename": "g"}, None)])
    for partition, offset in [({"file": "f"}, None), ({"filename": "f"}, {"position": -1}), ({"filename": "f"}, {})]:
        with pytest.raises(ConnectError, match=r"source partition|source offset"):
            FileStreamSource.alter_offsets(config, [(partition, offset)])


def test_file_stream_sink_appends_lines(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("before\n")
    task, _ = started_sink(FileStreamSink, {"file": str(path)})
    task.put(
        [sink_record(None, "text"), sink_record(None, b"bytes"), sink_record(None, {"a": 1}), sink_record(None, None)]
    )
    task.flush({P0: 4})
    assert path.read_text() == 'before\ntext\nbytes\n{"a":1}\n\n'
    task.stop()
    with pytest.raises(ConnectError, match="Couldn't find or create file"):
        started_sink(FileStreamSink, {"file": str(tmp_path / "no" / "out.txt")})


# --- a folder as a source ----------------------------------------------------------------------------------


def folder_config(folder, **others):
    return {"input.path": str(folder), "topic": "t", **{key.replace("_", "."): value for key, value in others.items()}}


def test_folder_source_gives_files_as_they_arrive_each_once(tmp_path):
    stored = StoredOffsets()
    config = folder_config(tmp_path, input_file_pattern=r".*\.log", batch_size="2")
    (tmp_path / "a.log").write_text("1\n2\n3\n")
    (tmp_path / "other.txt").write_text("no\n")
    (tmp_path / "sub.log").mkdir()
    task, _ = started_source(FolderSource, config, stored)
    assert [record.value for record in polled(task, stored)] == ["1", "2", "3"]
    (tmp_path / "b.log").write_text("4\npart")
    (tmp_path / "a.log").open("a").write("3b\n")
    assert [record.value for record in polled(task, stored)] == ["3b", "4"]
    assert polled(task, stored) == []
    task, _ = started_source(FolderSource, config, stored)  # another worker
    assert polled(task, stored) == []
    (tmp_path / "b.log").open("a").write("ial\n")
    assert [record.value for record in polled(task, stored)] == ["partial"]


def test_folder_source_gives_again_only_what_was_not_stored(tmp_path):
    stored = StoredOffsets()
    config = folder_config(tmp_path, batch_size="3")
    (tmp_path / "f").write_text("".join(f"{number}\n" for number in range(10)))
    task, _ = started_source(FolderSource, config, stored)
    stored.keep(task.poll())
    task.poll()  # crash before these are stored
    task, _ = started_source(FolderSource, config, stored)
    assert [record.value for record in polled(task, stored)] == [str(number) for number in range(3, 10)]


def test_folder_source_shares_files_among_tasks(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}").write_text(f"{number}\n")
    shares = [
        [
            record.value
            for record in polled(started_source(FolderSource, folder_config(tmp_path), None, 3, number)[0], polls=50)
        ]
        for number in range(3)
    ]
    assert sorted(value for share in shares for value in share) == sorted(map(str, range(20)))
    assert all(shares)


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("lines", "one\ntwo\nthree\n", ["one", "two", "three"]),
        ("json", '{"n":1}\n{"n":2}\n', [{"n": 1}, {"n": 2}]),
        ("csv", "a,b\n1,2\n3,4\n5,6\n", [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}, {"a": "5", "b": "6"}]),
    ],
)
def test_folder_source_reads_files_of_gzip_and_goes_on_within_them(tmp_path, kind, text, values):
    (tmp_path / "a.gz").write_bytes(gzip.compress(text.encode()))
    config = {"input.path": str(tmp_path), "topic": "t", "format": kind, "batch.size": "1"}
    stored, found = StoredOffsets(), []
    for _ in values:  # each record by a task that goes on behind the one before
        task, _ = started_source(FolderSource, config, stored)
        records = task.poll()
        stored.keep(records)
        found += [record.value for record in records]
        task.stop()
    assert found == values
    task, _ = started_source(FolderSource, config)
    assert [record.value for record in polled(task)] == values
    assert [record.value for record in polled(started_source(FolderSource, config, stored)[0])] == []


@pytest.mark.parametrize(
    "data",
    [b"no gzip\n", gzip.compress(b"line\n" * 1000, mtime=0)[:-12], gzip.compress(b"a\n", mtime=0)[:5]],
    ids=["plain", "no end", "no head"],
)
def test_folder_source_names_a_file_that_is_no_whole_gzip(tmp_path, data):
    (tmp_path / "a.gz").write_bytes(data)
    task, _ = started_source(FolderSource, {"input.path": str(tmp_path), "topic": "t"})
    with pytest.raises(ConnectError, match=r"a\.gz is no whole file of gzip"):
        polled(task)


def test_lines_of_a_large_file_of_gzip_are_read_in_one_pass(tmp_path, monkeypatch):
    opened, original = [], gzip.open
    monkeypatch.setattr(gzip, "open", lambda *call: opened.append(call) or original(*call))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\n" % number for number in range(300_000))))
    reader, found = LineReader(path, compressed=True), []
    while lines := reader.lines(50_000):
        found += lines
    assert [line.data for line in found[:2] + found[-1:]] == [b"0", b"1", b"299999"]
    assert len(found) == 300_000
    assert len(opened) <= 2  # the second one finds nothing more


def test_folder_source_reads_folders_below_when_asked(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "deep").write_text("1\n")
    assert polled(started_source(FolderSource, folder_config(tmp_path))[0]) == []
    found = polled(started_source(FolderSource, folder_config(tmp_path, input_path_walk_recursively="true"))[0])
    assert [record.source_partition for record in found] == [{"file": "x/deep"}]


def test_folder_source_of_json(tmp_path):
    (tmp_path / "f").write_text('{"a": 1}\n\n[2]\n"x"\n')
    found = polled(started_source(FolderSource, folder_config(tmp_path, format="json"))[0])
    assert [(record.value, record.value_schema) for record in found] == [({"a": 1}, None), ([2], None), ("x", None)]


def test_folder_source_of_csv_goes_on_below_its_header(tmp_path):
    stored = StoredOffsets()
    (tmp_path / "f").write_text('a;b\n1;"two\nlines"\n3;"fo""ur"\n', newline="")
    config = folder_config(tmp_path, format="csv", csv_separator_char=";", batch_size="1")
    task, _ = started_source(FolderSource, config, stored)
    first = task.poll()
    stored.keep(first)
    schema = struct_of({"a": STRING.as_optional(), "b": STRING.as_optional()})
    assert [(record.value, record.value_schema) for record in first] == [({"a": "1", "b": "two\nlines"}, schema)]
    task, _ = started_source(FolderSource, config, stored)
    assert [record.value for record in polled(task, stored)] == [{"a": "3", "b": 'fo"ur'}]


def test_folder_source_of_parquet_goes_on_at_a_row(tmp_path):
    stored = StoredOffsets()
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    table = pa.table(
        {"n": pa.array(range(10), pa.int32()), "d": pa.array([Decimal("1.50")] * 10, pa.decimal128(9, 2)),
         "t": pa.array([moment] * 10, pa.timestamp("us", "UTC")), "l": [[1, None]] * 10, "s": [{"x": "y"}] * 10}
    )  # fmt: skip
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=4)
    config = folder_config(tmp_path, format="parquet", batch_size="3")
    task, _ = started_source(FolderSource, config, stored)
    first = task.poll()
    assert first[0].value == {"n": 0, "d": Decimal("1.50"), "t": moment, "l": [1, None], "s": {"x": "y"}}
    assert [field.schema.type for field in first[0].value_schema.fields[:1]] == [INT32.type]
    stored.keep(first)
    task, _ = started_source(FolderSource, config, stored)
    assert [record.value["n"] for record in polled(task, stored)] == [*range(3, 10)]
    (tmp_path / "g.parquet").write_text("no")
    with pytest.raises(ConnectError, match="is no Parquet file"):
        polled(task, stored)


@pytest.mark.parametrize(
    ("kind", "good", "bad", "why"),
    [
        ("json", b'{"a": 1}\n', b"{\n", "no JSON"),
        ("lines", b"x\n", b"\xff\n", "no UTF-8"),
        ("csv", b"a,b\n1,2\n", b"1\n", "1 cells where the header has 2"),
    ],
)
def test_folder_source_halts_at_bad_lines_or_leaves_them_out(tmp_path, kind, good, bad, why):
    path = tmp_path / "f"
    path.write_bytes(good + bad + good.splitlines(keepends=True)[-1])
    stored = StoredOffsets()
    task, _ = started_source(FolderSource, folder_config(tmp_path, format=kind), stored)
    before = task.poll()
    assert len(before) == 1  # what was good is delivered
    stored.keep(before)
    for _ in range(2):
        with pytest.raises(DataError, match=why):
            task.poll()
        task, _ = started_source(FolderSource, folder_config(tmp_path, format=kind), stored)
    task, _ = started_source(FolderSource, folder_config(tmp_path, format=kind, halt_on_error="false"), stored)
    assert [record.value for record in polled(task, stored)] == [before[0].value]


def test_folder_source_needs_a_folder(tmp_path):
    with pytest.raises(ConnectConfigError, match="is no folder"):
        started_source(FolderSource, folder_config(tmp_path / "no"))
    errors = {
        value.name: value.errors
        for value in FolderSource.validate(
            {"input.path": "x", "topic": "t", "format": "xml", "input.file.pattern": "*.log"}
        )
    }
    assert [name for name, found in errors.items() if found] == ["input.file.pattern", "format"]


def test_folder_source_reads_more_files_than_it_holds_open(tmp_path, monkeypatch):
    monkeypatch.setattr("tidelog.connect.connectors.files.folder_source._OPEN_FILES", 2)
    for name in "abcd":
        (tmp_path / name).write_text(f"{name}1\n")
    task, _ = started_source(FolderSource, folder_config(tmp_path))
    assert len(polled(task)) == 4
    for name in "abcd":
        (tmp_path / name).open("a").write(f"{name}2\n")
    assert [record.value for record in polled(task)] == ["a2", "b2", "c2", "d2"]  # positions not stored yet are kept


# --- a folder as a sink ------------------------------------------------------------------------------------


def sink_config(folder, **others):
    return {"output.path": str(folder), **{key.replace("_", "."): value for key, value in others.items()}}


def records(offsets, value=lambda offset: {"n": offset}, schema=None):
    return [sink_record(schema, value(offset), offset=offset) for offset in offsets]


def names(folder):
    return sorted(path.name for path in (folder / "topics" / "test" / "partition=0").glob("*"))


def lines(folder):
    return [json.loads(line) for name in names(folder)
            for line in (folder / "topics" / "test" / "partition=0" / name).read_text().splitlines()]  # fmt: skip


def test_folder_sink_writes_full_files_and_commits_what_is_in_them(tmp_path):
    task, _ = started_sink(FolderSink, sink_config(tmp_path, flush_size="3"), [P0])
    task.put(records(range(8)))
    assert names(tmp_path) == ["test+0+0000000000+0000000002.json", "test+0+0000000003+0000000005.json"]
    assert task.pre_commit({P0: 8}) == {P0: 6}
    task.put(records([8]))
    assert task.pre_commit({P0: 9, ("other", 1): 5}) == {P0: 9, ("other", 1): 5}
    assert lines(tmp_path) == [{"n": offset} for offset in range(9)]


def test_folder_sink_rotates_by_time(tmp_path):
    clock = Clock()
    config = sink_config(tmp_path, rotate_interval_ms="1000")
    task, _ = started_sink(FolderSink, config, [P0], clock=clock)
    task.put(records([0, 1]))
    clock.seconds = 0.9
    task.put([])
    assert names(tmp_path) == []
    clock.seconds = 1.1
    task.put([])
    assert names(tmp_path) == ["test+0+0000000000+0000000001.json"]


@pytest.mark.parametrize("crash", ["before the file", "before the rename", "before the commit"])
def test_folder_sink_has_every_record_once_through_crashes(tmp_path, crash, monkeypatch):
    config = sink_config(tmp_path, flush_size="3")
    task, _ = started_sink(FolderSink, config, [P0])
    task.put(records(range(2 if crash == "before the file" else 0)))
    if crash == "before the rename":
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.rename", lambda *_: (_ for _ in ()).throw(OSError("crash")))
            with pytest.raises(ConnectError, match="can't be written"):
                task.put(records(range(3)))
        assert names(tmp_path)[0].endswith(".tmp")
    elif crash == "before the commit":
        task.put(records(range(3)))
    # Another worker begins at the committed offset, 0, unless the task seeks.
    task, context = started_sink(FolderSink, config, [P0])
    assert context.seeks == ({P0: 3} if crash == "before the commit" else {})
    task.put(records(range(6)))
    assert lines(tmp_path) == [{"n": offset} for offset in range(6)]
    assert not [name for name in names(tmp_path) if name.endswith(".tmp")]


def test_folder_sink_reads_lost_partitions_again(tmp_path):
    task, _ = started_sink(FolderSink, sink_config(tmp_path, flush_size="3"), [P0])
    task.put(records([0, 1]))
    task.close([P0])
    task.open([P0])
    task.put(records(range(3)))
    assert lines(tmp_path) == [{"n": offset} for offset in range(3)]


def test_folder_sink_of_parquet_and_csv(tmp_path):
    schema = struct_of({"n": INT32, "t": timestamp_schema(optional=True)})
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    for kind in ("parquet", "csv"):
        task, _ = started_sink(FolderSink, sink_config(tmp_path / kind, format=kind, flush_size="2"), [P0])
        task.put(records(range(2), lambda offset: {"n": offset, "t": moment}, schema))
        with pytest.raises(DataError, match="is no struct or map"):
            task.put(records([2, 3], str))
    written = next((tmp_path / "parquet").rglob("*.parquet"))
    assert pq.read_table(written).to_pylist() == [{"n": 0, "t": moment}, {"n": 1, "t": moment}]
    assert pq.read_schema(written).field("n").type == pa.int32()
    assert next((tmp_path / "csv").rglob("*.csv")).read_text() == (
        "n,t\n0,2026-01-02 00:00:00+00:00\n1,2026-01-02 00:00:00+00:00\n"
    )


def test_folder_sink_of_lines_and_what_its_source_reads_back(tmp_path):
    task, _ = started_sink(FolderSink, sink_config(tmp_path, format="lines", flush_size="2"), [P0])
    task.put(records(range(4), lambda offset: f"line {offset}"))
    found = polled(started_source(FolderSource, folder_config(tmp_path, input_path_walk_recursively="true"))[0])
    assert [record.value for record in found] == [f"line {offset}" for offset in range(4)]
