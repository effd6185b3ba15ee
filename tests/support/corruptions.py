"""A lake for each kind of finding, corrupted by hand: how it is made, and what `check` must find."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from support.corruptible_lakes import CorruptibleLake, Line

from tidelog.check.lake import Kind
from tidelog.log.base.errors import StoragePermissionError
from tidelog.log.delta import layout

ENTRY = "_delta_log/{:020d}.json"
CHECKPOINT = "_delta_log/{:020d}.checkpoint.parquet"
HOUR_S = 3_600


@dataclass(frozen=True)
class Corruption:
    """`kind` is found at `where` (in its text); `also` are the other errors and warnings that come with it."""

    name: str
    kind: Kind
    where: str
    do: Callable[[], CorruptibleLake]
    also: frozenset[Kind] = frozenset()
    deep: bool = False


CORRUPTIONS: list[Corruption] = []


def corruption(
    kind: Kind, where: str, *also: Kind, deep: bool = False
) -> Callable[[Callable[[], CorruptibleLake]], None]:
    def note(do: Callable[[], CorruptibleLake]) -> None:
        CORRUPTIONS.append(Corruption(do.__name__.replace("_", " "), kind, where, do, frozenset(also), deep))

    return note


def lake_file(text: bytes) -> CorruptibleLake:
    corruptible = CorruptibleLake()
    corruptible.storage.put("__lake.json", text)
    return corruptible


# --- the lake ------------------------------------------------------------------------------------------------


@corruption(Kind.LAKE_FILE_MISSING, "__lake.json")
def lake_file_gone() -> CorruptibleLake:
    corruptible = CorruptibleLake()
    corruptible.storage.delete("__lake.json")
    return corruptible


for text in (b"", b"{", b"[]", b"{}", b'{"format": "1"}', b'{"format": 2, "config": [1]}'):
    corruption(Kind.LAKE_FILE_BROKEN, "__lake.json")(lambda text=text: lake_file(text))  # type: ignore[misc]
corruption(Kind.LAKE_FORMAT_UNKNOWN, "__lake.json")(lambda: lake_file(b'{"format": 1, "config": {}}'))
corruption(Kind.LAKE_FORMAT_UNKNOWN, "__lake.json")(lambda: lake_file(b'{"format": 3, "config": {}}'))
corruption(Kind.LAKE_CONFIG_INVALID, "__lake.json")(
    lambda: lake_file(b'{"format": 2, "config": {"num.partitions": "0"}}')
)
corruption(Kind.LAKE_CONFIG_INVALID, "__lake.json")(lambda: lake_file(b'{"format": 2, "config": {"no.such.key": "0"}}'))
corruption(Kind.LAKE_CONFIG_INVALID, "__lake.json")(
    lambda: lake_file(b'{"format": 2, "config": {"num.partitions": 3}}')
)


@corruption(Kind.TOPIC_NAME_INVALID, "folder", Kind.LOG_OF_ANOTHER_TOPIC)
def a_folder_no_topic_can_have() -> CorruptibleLake:
    corruptible = CorruptibleLake()
    copy_topic(corruptible, "orders (1)")
    return corruptible


@corruption(Kind.TOPIC_NAMES_COLLIDE, "folder", Kind.LOG_OF_ANOTHER_TOPIC)
def names_that_collide() -> CorruptibleLake:
    corruptible = CorruptibleLake(0)
    corruptible.lake.create_topic("a.b")
    copy_topic(corruptible, "a_b", "a.b")
    return corruptible


def copy_topic(corruptible: CorruptibleLake, name: str, of: str = "orders") -> None:
    path = f"{of}/{ENTRY.format(0)}"
    corruptible.storage.put(f"{name}/{ENTRY.format(0)}", corruptible.storage.get(path))


@corruption(Kind.NOT_A_TOPIC, "entry 0")
def a_table_of_another_engine() -> CorruptibleLake:
    corruptible = CorruptibleLake()
    body = {"id": "1", "schemaString": "{}", "partitionColumns": []}
    lines = [{"commitInfo": {"operation": "CREATE TABLE"}}, {"metaData": body}]
    corruptible.storage.put(f"foreign/{ENTRY.format(0)}", b"\n".join(orjson.dumps(x) for x in lines))
    return corruptible


@corruption(Kind.LOG_MISSING, "_delta_log")
def log_folder_gone() -> CorruptibleLake:
    corruptible = CorruptibleLake()
    for version in range(4):
        corruptible.delete(ENTRY.format(version))
    return corruptible


# --- entries -------------------------------------------------------------------------------------------------


@corruption(Kind.LOG_START_MISSING, "entry 0")
def first_entry_gone() -> CorruptibleLake:
    return CorruptibleLake().delete(ENTRY.format(0))


@corruption(Kind.FLOOR_WITHOUT_CHECKPOINT, "floor 1", Kind.HINT_DANGLING)
def the_checkpoint_past_the_floor_gone() -> CorruptibleLake:
    return CorruptibleLake().checkpoint(2).trim().delete(CHECKPOINT.format(2))


@corruption(Kind.TRIMMED_WITHOUT_FLOOR, "entry 2")
def entries_removed_by_another_engine() -> CorruptibleLake:
    return CorruptibleLake().checkpoint(2).delete(ENTRY.format(0)).delete(ENTRY.format(1))


@corruption(Kind.ENTRY_GAP, "entry 2")
def an_entry_gone() -> CorruptibleLake:
    return CorruptibleLake().delete(ENTRY.format(2))


@corruption(Kind.ENTRY_GAP, "entry 4")
def an_entry_gone_after_a_checkpoint() -> CorruptibleLake:
    return CorruptibleLake(5).checkpoint(2).delete(ENTRY.format(4))


@corruption(Kind.ENTRY_GAP_PASSED, "entry 2")
def an_entry_gone_before_a_checkpoint() -> CorruptibleLake:
    return CorruptibleLake(5).checkpoint(3).delete(ENTRY.format(2))


@corruption(Kind.ENTRY_GAP_PASSED, "entry 3")
def all_entries_from_a_checkpoint_on_gone() -> CorruptibleLake:
    return CorruptibleLake(3).checkpoint(3).delete(ENTRY.format(3))


def torn(cut: Callable[[bytes], bytes], version: int = 3) -> CorruptibleLake:
    corruptible = CorruptibleLake()
    return corruptible.put(ENTRY.format(version), cut(corruptible.get(ENTRY.format(version))))


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "in the first line": lambda data: data[:40],
    "between two lines": lambda data: b"".join(data.splitlines(True)[:2]),
    "in a later line": lambda data: b"".join(data.splitlines(True)[:2]) + data.splitlines()[2][:20],
    "before the last line": lambda data: b"".join(data.splitlines(True)[:-1]),
    "two letters into the last line": lambda data: b"".join(data.splitlines(True)[:-1]) + b"{",
    "in the last line": lambda data: data[:-30],
    "one bracket short": lambda data: data[:-2],
    "a line lost": lambda data: b"".join(data.splitlines(True)[1:]),
}
for cut in CUTS.values():
    corruption(Kind.ENTRY_TORN, "entry 3")(lambda cut=cut: torn(cut))  # type: ignore[misc]
corruption(Kind.ENTRY_TORN, "entry 2")(lambda: torn(CUTS["in the last line"], 2))
corruption(Kind.ENTRY_TORN, "entry 0")(lambda: torn(CUTS["in the first line"], 0))


def reaching(corruptible: CorruptibleLake, end: int) -> CorruptibleLake:
    """The newest append, of offsets [2, 4), says another end in each place."""

    def change(lines: list[Line]) -> None:
        lines[0]["add"]["tags"]["tidelog.end"] = str(end)
        next(line["txn"] for line in lines if line.get("txn", {}).get("appId") == "tidelog/end/0")["version"] = end

    return corruptible.edit(3, change)


BROKEN: dict[str, Callable[[CorruptibleLake], CorruptibleLake]] = {
    "no action at all": lambda p: p.put(ENTRY.format(3), b'{"commitInfo":{}}\n7\n'),
    "an action nobody knows": lambda p: p.edit(3, lambda ls: ls.insert(0, {"checkpointMetadata": {}})),
    "a wrong base": lambda p: p.edit_add(3, base=2),
    "a base too far": lambda p: p.edit_add(3, base=7),
    "no tag": lambda p: p.edit_add(3, tags=None),
    "an end that is not the segments'": lambda p: p.edit_add(3, end=9),
    "an end past the slots": lambda p: reaching(p, 9),
    "an end below the slots": lambda p: reaching(p, 3),
    "an end past any offset": lambda p: reaching(p, 2**63),
    "an end of 64 bits": lambda p: reaching(p, 2**64 - 1),
    "more records than slots": lambda p: p.edit_add(3, stats={"numRecords": 7}),
    "records that are not counted": lambda p: p.edit(3, lambda ls: ls[0]["add"].update(stats=None)),
    "a partition that is not there": lambda p: p.edit(
        3, lambda ls: ls[0]["add"]["partitionValues"].update(partition="7")
    ),
    "a file added twice": lambda p: p.edit(3, lambda ls: ls.insert(0, ls[0])),
    "a transaction id twice": lambda p: p.edit(3, lambda ls: ls.insert(2, ls[2])),
    "an offset that is no number": lambda p: p.edit(
        3, lambda ls: ls.insert(0, {"txn": {"appId": "tidelog/clean/x", "version": 1}})
    ),
    "no partition value": lambda p: p.edit(3, lambda ls: ls[0]["add"].update(partitionValues={})),
}
for break_it in BROKEN.values():
    corruption(Kind.ENTRY_BROKEN, "entry 3")(lambda break_it=break_it: break_it(CorruptibleLake()))  # type: ignore[misc]


OTHERS: dict[str, Callable[[CorruptibleLake], CorruptibleLake]] = {
    "an append": lambda p: p.foreign(4, foreign_add(0, 0)),
    "an append at the end": lambda p: p.foreign(4, foreign_add(0, 6)),
    "a file without anything": lambda p: p.foreign(4, {"add": {"path": "part-1.parquet"}}),
    "a delete of a file": lambda p: p.foreign(4, {"remove": {"path": p.segment().path}}),
    "a rewrite": lambda p: p.foreign(4, {"remove": {"path": p.segment().path}}, foreign_add(0, 0)),
    "a transaction id": lambda p: p.foreign(4, {"txn": {"appId": "tidelog/start/0", "version": -1}}),
    "a schema": lambda p: p.foreign(4, {"metaData": {"schemaString": "{}"}}),
    "an upgrade": lambda p: p.foreign(4, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}),
    "an action that nobody knows": lambda p: p.foreign(4, {"checkpointMetadata": {}}, foreign_add(0, 0)),
    "several": lambda p: p.foreign(5, {"remove": {"path": p.segment().path}}).foreign(4, foreign_add(0, 0)),
    "by hand, without commitInfo": lambda p: p.put(ENTRY.format(4), json.dumps(foreign_add(0, 0)).encode()),
    "in place of tidelog's last": lambda p: p.foreign(3, foreign_add(0, 0)),
}
for come_in in OTHERS.values():
    corruption(Kind.ENTRY_FOREIGN, "entry ")(lambda come_in=come_in: come_in(CorruptibleLake()))  # type: ignore[misc]


@corruption(Kind.ENTRY_FOREIGN, "entry 4", Kind.CHECKPOINT_FOREIGN)
def another_engine_and_its_checkpoint() -> CorruptibleLake:
    """The engine's checkpoint holds what it wrote."""
    corruptible = CorruptibleLake().checkpoint(3)
    rows = corruptible.get(CHECKPOINT.format(3))
    corruptible.foreign(4, foreign_add(0, 0)).put(CHECKPOINT.format(4), rows)
    return corruptible.edit_checkpoint(4, lambda rows: None, mark=False)


@corruption(Kind.ENTRY_TORN, "entry 5", Kind.ENTRY_FOREIGN)
def another_engine_and_a_torn_entry() -> CorruptibleLake:
    corruptible = CorruptibleLake(4).foreign(4, {"remove": {"path": CorruptibleLake().segment().path}})
    return corruptible.put(ENTRY.format(5), b"")


def foreign_add(partition: int, base: int) -> Line:
    body: dict[str, Any] = {
        "path": f"partition={partition}/base_offset={base}/part-1.parquet",
        "partitionValues": {"partition": str(partition), "base_offset": str(base)},
        "size": 9,
        "modificationTime": 1,
        "dataChange": True,
        "stats": '{"numRecords":1}',
    }
    return {"add": body}


@corruption(Kind.ENTRY_UNREADABLE, "entry 2")
def an_entry_without_permission() -> CorruptibleLake:
    corruptible = CorruptibleLake()

    def deny(method: str, path: str, phase: str) -> None:
        if method == "get" and path.endswith(ENTRY.format(2)):
            raise StoragePermissionError(f"{path}: permission denied")

    corruptible.storage.hook = deny
    return corruptible


@corruption(Kind.TOPIC_UNREADABLE, "folder")
def a_topic_without_permission() -> CorruptibleLake:
    corruptible = CorruptibleLake()

    def deny(_: str, path: str, __: str) -> None:
        if path == "orders" or path.startswith("orders/"):
            raise StoragePermissionError(f"{path}: permission denied.")

    corruptible.storage.hook = deny
    return corruptible


@corruption(Kind.FORMAT_UNSUPPORTED, "entry 3")
def protocol_upgraded() -> CorruptibleLake:
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
    return CorruptibleLake().edit(3, lambda ls: ls.insert(0, {"protocol": features}))


corruption(Kind.FORMAT_UNSUPPORTED, "entry 0")(lambda: CorruptibleLake().edit_property("tidelog.format", "4"))
# Only the table of a typed topic knows schemas.
corruption(Kind.ENTRY_BROKEN, "entry 0")(lambda: CorruptibleLake().edit_property("tidelog.value.schemas", "[]"))
corruption(Kind.ENTRY_BROKEN, "entry 0")(lambda: CorruptibleLake().edit_property("tidelog.value.derived", "true"))
corruption(Kind.FORMAT_UNSUPPORTED, "delta.appendOnly")(
    lambda: CorruptibleLake().edit_property("delta.appendOnly", "true")
)
corruption(Kind.FORMAT_UNSUPPORTED, "checkpoint 2")(
    lambda: CorruptibleLake().checkpoint(2).trim().edit_checkpoint(2, row("protocol", minReaderVersion=3))
)


@corruption(Kind.LOG_OF_ANOTHER_TOPIC, "entry 0")
def a_copied_folder() -> CorruptibleLake:
    corruptible = CorruptibleLake(0)
    copy_topic(corruptible, "copy")
    return corruptible


@corruption(Kind.STRAY_ENTRIES, "floor 1")
def an_entry_of_a_writer_that_slept() -> CorruptibleLake:
    corruptible = CorruptibleLake().checkpoint(2)
    old = corruptible.get(ENTRY.format(1))
    return corruptible.trim().put(ENTRY.format(1), old)


# --- checkpoints ---------------------------------------------------------------------------------------------


def row(column: str, **fields: Any) -> Callable[[list[Line]], None]:
    """Change fields of the first row that has this column."""
    return lambda rows: next(r[column] for r in rows if r[column]).update(fields)


def without(column: str, at: int = 0) -> Callable[[list[Line]], None]:
    """Take out the row that is the n-th to have this column."""
    return lambda rows: rows.remove([r for r in rows if r[column]][at])


DIFFERENT: dict[str, Callable[[list[Line]], Any]] = {
    "lacks a segment": without("add"),
    "holds a segment twice": lambda rows: rows.append(next(r for r in rows if r["add"])),
    "another size": row("add", size=7),
    "another base": row("add", partitionValues=[("partition", "0"), ("base_offset", "9")]),
    "another end": row("add", tags=[("tidelog.end", "9")]),
    "other statistics": row("add", stats='{"numRecords":1}'),
    "lacks a transaction id": without("txn"),
    "another offset": row("txn", version=99),
    "another configuration": lambda rows: next(r for r in rows if r["metaData"])["metaData"]["configuration"].append(
        ("tidelog.x", "1")
    ),
}
for change in DIFFERENT.values():
    corruption(Kind.CHECKPOINT_DIFFERS, "checkpoint 2")(
        lambda change=change: CorruptibleLake().checkpoint(2).edit_checkpoint(2, change)  # type: ignore[misc]
    )


@corruption(Kind.CHECKPOINT_DIFFERS, "checkpoint 4")
def a_checkpoint_against_an_older_one() -> CorruptibleLake:
    return CorruptibleLake(5).checkpoint(2).trim().checkpoint(4).edit_checkpoint(4, without("add"))


for data in (b"", b"PAR1", b"nothing like it", b"PAR1" + bytes(200) + b"PAR1"):
    corruption(Kind.CHECKPOINT_UNREADABLE, "checkpoint 2")(
        lambda data=data: CorruptibleLake().checkpoint(2).put(CHECKPOINT.format(2), data)  # type: ignore[misc]
    )
corruption(Kind.CHECKPOINT_UNREADABLE, "checkpoint 2")(
    lambda: CorruptibleLake().checkpoint(2).edit_checkpoint(2, row("add", tags=[("tidelog.end", "x")]))
)


@corruption(Kind.CHECKPOINT_FOREIGN, "checkpoint 2")
def a_checkpoint_of_another_topic() -> CorruptibleLake:
    corruptible = CorruptibleLake()
    corruptible.lake.create_topic("other", 2)
    corruptible.append(2, "other").checkpoint(2, "other").checkpoint(2)
    return corruptible.put(CHECKPOINT.format(2), corruptible.storage.get(f"other/{CHECKPOINT.format(2)}"))


corruption(Kind.CHECKPOINT_FOREIGN, "checkpoint 2")(
    lambda: CorruptibleLake().checkpoint(2).edit_checkpoint(2, without("metaData"))
)
corruption(Kind.CHECKPOINT_FOREIGN, "checkpoint 2")(
    lambda: CorruptibleLake().checkpoint(2).edit_checkpoint(2, row("metaData", configuration=[]))
)


@corruption(Kind.CHECKPOINT_INCOMPLETE, "00000000000000000002.checkpoint.0000000001.0000000002.parquet")
def half_a_checkpoint() -> CorruptibleLake:
    return CorruptibleLake().put("_delta_log/00000000000000000002.checkpoint.0000000001.0000000002.parquet", b"PAR1")


@corruption(Kind.CHECKPOINT_OVERDUE, "entry 0")
def no_checkpoint_for_a_long_time() -> CorruptibleLake:
    corruptible = CorruptibleLake(20, log_checkpoint_interval="10").settled()
    corruptible.storage.delete(f"orders/{layout.LAST_CHECKPOINT}")
    for version in (8, 18):
        corruptible.storage.delete(f"orders/{CHECKPOINT.format(version)}")
    corruptible.clock.pass_s(61)
    return corruptible


@corruption(Kind.HINT_MISSING, "_last_checkpoint")
def last_checkpoint_gone() -> CorruptibleLake:
    corruptible = CorruptibleLake().checkpoint(2).delete(layout.LAST_CHECKPOINT)
    corruptible.clock.pass_s(61)
    return corruptible


for hint in (b"", b"{", b"[]", b'{"version":"2"}', b'{"version":-1}', b'{"version":2,"parts":"2"}'):
    corruption(Kind.HINT_BROKEN, "_last_checkpoint")(
        lambda hint=hint: CorruptibleLake().checkpoint(2).put(layout.LAST_CHECKPOINT, hint)  # type: ignore[misc]
    )
for hint in (b'{"version":9}', b'{"version":2,"parts":2}'):
    corruption(Kind.HINT_DANGLING, "_last_checkpoint")(
        lambda hint=hint: CorruptibleLake().checkpoint(2).put(layout.LAST_CHECKPOINT, hint)  # type: ignore[misc]
    )
