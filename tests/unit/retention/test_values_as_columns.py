"""A typed topic gives every value back as it was sent, whatever is done to its segments."""

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import one_in
from support.logs import memory_lake, open_lake
from support.transactions import Process
from support.value_subjects import Subjects
from support.value_typings import FLIGHT, LATER, avro_payload, flight, prefixed

from tidelog.check.lake import check_lake
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.delta import schema
from tidelog.log.lake import Lake
from tidelog.log.segments.reader import read_segment
from tidelog.log.segments.staging import stage_records
from tidelog.retention.compaction.run import LocalCompactor, compact
from tidelog.retention.key_erasure import erase_keys
from tidelog.retention.lost_segments import give_up
from tidelog.retention.rewrites.commit import rewrite
from tidelog.retention.rewrites.executors import LocalExecutor, Task
from tidelog.retention.rewrites.units import rewrite_codec, runs, unit_of

# What another team made of the same record: `number` of another type, and a field that is no column.
OTHER = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "number", "type": "string"}, {"name": "any", "type": ["int", "string"]}],
}
VERSIONS = (FLIGHT, LATER, OTHER)
CONFIG = {
    "value.columns": "avro",
    "value.schema.subject": "s",
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "86400000",
}
FORMS = ("good", "header", "truncated", "more", "foreign", "text", "empty", "tombstone", "no-guid", "nan")


class World:
    """A lake with a typed topic, and what it must hold: {offset: (key, value)}."""

    def __init__(self, bytes_: str) -> None:
        self.lake, self.storage, self.clock = memory_lake()
        self.subjects = Subjects(self.lake).no_rules()
        self.lake.create_topic("t", 1, CONFIG | {"value.bytes": bytes_})
        self.process = Process(self.lake)
        self.producer = self.process.ready()
        self.ids = [self.subjects.register("s", orjson.dumps(FLIGHT).decode())]
        self.guids = [self.subjects.guid(self.ids[0])]
        self.foreign = self.subjects.register("another", '"string"')
        self.expected: dict[int, tuple[bytes, bytes | None]] = {}

    def value(self, form: str, number: int) -> tuple[bytes | None, list[dict[str, Any]] | None]:
        """A value and its headers."""
        which = number % len(self.ids)
        record: dict[str, Any] = {"number": str(number), "any": number} if which == 2 else flight(number)
        if which == 1:
            record |= {"cancelled": bool(number % 2), "plane": {"tail": "x" * number, "year": number}}
        if form == "nan" and which < 2:
            record["dep_delay"] = np.frombuffer((0x7FF8000000000000 + number).to_bytes(8, "little"))[0]
        payload = avro_payload(VERSIONS[which], record)
        value = prefixed(self.ids[which], payload)
        if form == "header":
            return payload, [{"key": "__value_schema_id", "value": b"\1" + self.guids[which]}]
        if form == "no-guid":
            return value, [{"key": "__value_schema_id", "value": b"\1" + bytes(16)}]
        others: dict[str, bytes | None] = {
            "truncated": value[:-1],
            "more": value + b"\0",
            "foreign": prefixed(self.foreign, payload),
            "text": b"text %d" % number,
            "empty": b"",
            "tombstone": None,
        }
        return others.get(form, value), None

    def table(self, given: list[tuple[str, str, int]]) -> pa.Table:
        """Records (key, form, number)."""
        made = [self.value(form, number) for _, form, number in given]
        return pa.table(
            {
                "key": pa.array([key.encode() for key, _, _ in given]),
                "value": pa.array([value for value, _ in made], pa.binary()),
                "headers": pa.array([headers for _, headers in made], schema.HEADERS),
            }
        )

    def note(self, table: pa.Table, first: int) -> None:
        rows = zip(table.column("key").to_pylist(), table.column("value").to_pylist(), strict=True)
        self.expected |= {first + at: row for at, row in enumerate(rows)}

    def end(self) -> int:
        return self.lake.topic("t").offsets()[0][1]

    # --- steps ---------------------------------------------------------------------------------------------

    def append(self, given: list[tuple[str, str, int]]) -> None:
        table = self.table(given)
        self.note(table, self.lake.topic("t").append(table)[0][0])

    def transaction(self, given: list[tuple[str, str, int]]) -> None:
        first, tables = self.end(), []
        self.producer.begin()
        for part in (given[:1], given[1:]):
            tables.append(self.table(part))
            self.producer.stage("t", tables[-1], np.zeros(len(part), np.int32))
            if len(self.ids) < len(VERSIONS):  # a schema that comes in the middle of it
                self.new_schema([])
        self.producer.commit()
        self.note(pa.concat_tables(tables), first)

    def restaged(self, given: list[tuple[str, str, int]]) -> None:
        table, topic = self.table(given), self.lake.topic("t")
        topic.grow_for(table)
        stager = topic.stager()
        stage_records(stager, table, "t", topic.config(), "murmur2", 0, topic.now_ms())
        staged = stager.finish()
        self.new_schema([])  # and meanwhile its table grows
        self.lake.topic("t").append(self.table([("z", "good", len(self.ids) - 1)]))
        self.note(self.table([("z", "good", len(self.ids) - 1)]), self.end() - 1)
        first = self.end()
        topic.state()
        topic.commit(topic.restage(staged, self.clock.now_ms()))
        self.note(table, first)

    def new_schema(self, _: list[Any]) -> None:
        if len(self.ids) < len(VERSIONS):
            text = orjson.dumps(VERSIONS[len(self.ids)]).decode()
            self.ids.append(self.subjects.register("s", text))
            self.guids.append(self.subjects.guid(self.ids[-1]))

    def merge(self, _: list[Any]) -> None:
        state, config = self.lake.topic("t").state(), self.lake.topic_config("t")
        units = [unit_of(state, "t", run, config, rewrite_codec(config)) for run in runs(state, 0)]
        executor = LocalExecutor(self.lake.storage, self.lake.ids)
        done = rewrite(self.lake, "t", [Task(unit) for unit in units], executor, operation="OPTIMIZE", parameters={})
        assert not done.failures

    def compact(self, _: list[Any]) -> None:
        self.clock.pass_s(8 * 86_400)  # the newest segment is active for so long
        compactor = LocalCompactor(self.lake.storage, self.lake.ids)
        report = compact(self.lake, "t", now_ms=self.clock.now_ms(), compactor=compactor)
        assert not report.failures
        newest: dict[bytes, int] = {}
        for offset, (key, _) in self.expected.items():
            newest[key] = max(offset, newest.get(key, -1))
        there = {offset for offset, _, _ in self.read()}
        for offset, (key, value) in list(self.expected.items()):
            if offset not in there:
                assert newest[key] > offset or value is None, f"offset {offset} is gone"
                del self.expected[offset]

    def erase(self, given: list[tuple[str, str, int]]) -> None:
        key = given[0][0].encode() if given else b"a"
        assert not erase_keys(self.lake, "t", [key]).failures
        self.expected = {offset: one for offset, one in self.expected.items() if one[0] != key}

    def turn(self, _: list[Any]) -> None:
        """Store bytes in the other way, from here on."""
        bytes_ = self.lake.topic_config("t").value_bytes
        self.lake.alter_topic("t", config={"value.bytes": "keep" if bytes_ == "derive" else "derive"})

    def untype(self, given: list[tuple[str, str, int]]) -> None:
        """Some records come while values get no columns."""
        names = {"value.columns": None, "value.schema.subject": None, "value.bytes": None}
        bytes_ = self.lake.topic_config("t").value_bytes
        self.lake.alter_topic("t", config=names)
        if given:
            self.append(given)
        self.lake.alter_topic("t", config={"value.columns": "avro", "value.schema.subject": "s", "value.bytes": bytes_})

    # --- what is there -------------------------------------------------------------------------------------

    def read(self, **more: bool) -> list[tuple[int, bytes, bytes | None]]:
        table = pa.Table.from_batches(self.lake.topic("t").read(0, include_headers=True, **more))
        columns = [table.column(name).to_pylist() for name in ("offset", "key", "value")]
        return list(zip(*columns, strict=True))

    def verify(self) -> None:
        expected = [(offset, *one) for offset, one in sorted(self.expected.items())]
        if not expected:
            return
        assert self.read() == expected
        assert self.read(include_columns=True) == expected
        report = check_lake(self.storage, deep=True, clock=self.clock)
        assert [f for f in report.findings if f.severity == "error"] == []


RECORDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(FORMS), st.integers(0, 40)), min_size=2, max_size=6
)
STEPS = ("append", "transaction", "restaged", "new_schema", "merge", "compact", "erase", "turn", "untype")


@pytest.mark.parametrize("bytes_", ["keep", "derive"])
@one_in(3)
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), RECORDS), min_size=1, max_size=7))
def test_values_are_given_back_byte_for_byte(bytes_: str, steps: list[tuple[str, list[tuple[str, str, int]]]]) -> None:
    world = World(bytes_)
    world.append([(key, form, number) for key, form, number in zip("abcabcabca", FORMS, range(10), strict=True)])
    for name, given_ in steps:
        getattr(world, name)(given_)
        world.verify()
    world.merge([])
    world.verify()


def derived(lake: Lake) -> tuple[int, int]:
    """How many values of the topic are stored, and how many derived."""
    stored = lengths = 0
    topic = lake.topic("t")
    for segment in topic.state().live(0):
        names = ["value", "value_length"]
        for batch in read_segment(
            lake.storage, "t", segment, segment.base_offset, segment.end, names, typing=topic.typing(), stored=True
        ):
            stored += len(batch) - batch.column("value").null_count
            lengths += len(batch) - batch.column("value_length").null_count
    return stored, lengths


def test_derived_values_stay_derived_through_a_merge_and_a_compaction() -> None:
    world = World("derive")
    for number in range(4):
        world.append([(f"k{number}", "good", number), (f"l{number}", "good", number)])
    assert derived(world.lake) == (0, 8)
    world.merge([])
    assert derived(world.lake) == (0, 8)
    world.append([("k0", "tombstone", 0), ("k1", "good", 9)])
    world.compact([])
    assert derived(world.lake) == (0, 7)
    for key in ("x", "y"):  # when tombstones go, values that are derived stay
        world.append([(key, "good", 4)])
        world.compact([])
    assert derived(world.lake) == (0, 9)
    assert all(value is not None for _, _, value in world.read())
    world.verify()
    assert give_up(world.lake, "t", [s.path for s in world.lake.topic("t").state().live(0)], execute=True) == []


def test_who_staged_before_a_table_grew_stages_again() -> None:
    world = World("derive")
    world.append([("a", "good", 1)])
    world.new_schema([])
    other, staged = open_lake(world.storage.inner, world.clock), []

    def hook(call: str, path: str, phase: str) -> None:
        if phase == "before" and call == "put" and path.endswith(".parquet"):
            staged.append(path)
        if phase == "before" and call == "put_if_absent" and len(staged) == 1:
            staged.append("another's")
            table = world.table([("b", "good", 3)])
            world.note(table, other.topic("t").append(table)[0][0])

    world.storage.hook = hook
    table = world.table([("a", "good", 2), ("b", "truncated", 4), ("c", "text", 6)])
    world.note(table, world.lake.topic("t").append(table)[0][0])
    assert len(staged) == 3
    world.verify()
    assert derived(world.lake) == (2, 3)


def test_an_answer_that_is_lost_stages_nothing_twice() -> None:
    world, lost = World("derive"), []
    world.append([("a", "good", 1)])

    def hook(call: str, path: str, phase: str) -> None:
        if call == "put_if_absent" and phase == "after" and not lost:
            lost.append(path)
            raise StorageUnavailableError("no answer")

    world.storage.hook = hook
    table = world.table([("a", "good", 2), ("b", "good", 4)])
    world.note(table, world.lake.topic("t").append(table)[0][0])
    assert lost
    world.verify()
