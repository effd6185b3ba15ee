"""Typed topics: created, altered, and grown by what writers bring, of any number of processes."""

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest
from support.logs import Calls, memory_lake, open_lake, values
from support.value_subjects import Subjects, avro_record, framed_as

from tidelog.log.base.errors import InvalidConfigError, OutcomeUnknownError, StorageUnavailableError
from tidelog.log.delta.schema import DELTA_SCHEMA, HEADERS
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import decide_create, decide_grow
from tidelog.log.segments.fetch import find_latest
from tidelog.log.state.topic_state import FORMAT, VALUE_SCHEMAS, TopicState
from tidelog.log.topic import Topic
from tidelog.log.typed import tables
from tidelog.log.typed.value_typing import Typing
from tidelog.log.value_schemas import ANSWERS_COUNT_S
from tidelog.schemas.base.errors import SchemaError

A, B, C = avro_record(a="int"), avro_record(a="int", b="string"), avro_record(c="long")
AVRO = {"value.columns": "avro", "value.schema.subject": "s"}
INLINE = {"value.columns": "avro", "value.schema": A}
COLUMN_A, COLUMN_B, COLUMN_C = pa.field("a", pa.int32()), pa.field("b", pa.string()), pa.field("c", pa.int64())


def typing(lake: Lake, name: str = "t") -> Typing:
    topic = lake.topic(name)
    topic.state()
    found = topic.typing()
    assert found is not None
    return found


def properties(lake: Lake, name: str = "t") -> dict[str, str]:
    state = lake.peek(name)
    assert state is not None
    assert state.metadata is not None
    return dict(state.metadata.configuration)


def entries(lake: Lake, name: str = "t") -> int:
    state = lake.peek(name)
    assert state is not None
    return state.version + 1


def typed_lake() -> tuple[Lake, Subjects]:
    lake, _, _ = memory_lake()
    return lake, Subjects(lake).no_rules()


# --- create and alter --------------------------------------------------------------------------------------


def test_a_topic_is_created_with_the_newest_schema_of_its_subject() -> None:
    lake, subjects = typed_lake()
    subjects.register("s", A)
    newest = subjects.register("s", B)
    lake.create_topic("t", 1, AVRO)
    found = typing(lake)
    assert (found.kind, sorted(found.writers), found.newest) == ("avro", [newest], newest)
    assert found.columns == pa.struct([COLUMN_A, COLUMN_B])
    assert properties(lake)[FORMAT] == "3"
    assert VALUE_SCHEMAS not in {f"tidelog.{key}" for key in lake.describe_topic("t").config}  # a fact, no key
    assert entries(lake) == 1


@pytest.mark.parametrize("registers", [False, True])
def test_a_topic_whose_subject_has_no_schema_yet_may_be_created(registers: bool) -> None:
    lake, subjects = typed_lake()
    if registers:
        subjects.register("another", A)
    lake.create_topic("t", 1, AVRO)
    assert (typing(lake).columns, typing(lake).newest) == (None, None)


def test_plain_topics_have_the_format_that_they_always_had() -> None:
    lake, _ = typed_lake()
    lake.create_topic("t", 1, {"retention.ms": "1"})
    assert properties(lake)[FORMAT] == "2"
    assert VALUE_SCHEMAS not in properties(lake)
    assert lake.topic("t").typing() is None
    state = lake.peek("t")
    assert state is not None
    assert state.metadata is not None
    assert state.metadata.schema == DELTA_SCHEMA


@pytest.mark.parametrize(
    ("config", "error", "why"),
    [
        ({"value.columns": "avro"}, InvalidConfigError, "without a schema"),
        (AVRO | {"value.schema": A}, InvalidConfigError, "Set one of the two"),
        ({"value.columns": "avro", "value.schema": "no schema"}, SchemaError, "."),
        (AVRO | {"value.columns": "json"}, InvalidConfigError, "Subject 's' has schemas of the type AVRO"),
    ],
)
def test_what_can_not_be_typed_is_refused_when_it_is_created_and_altered(
    config: dict[str, str], error: type[Exception], why: str
) -> None:
    lake, subjects = typed_lake()
    subjects.register("s", A)
    with pytest.raises(error, match=why):
        lake.create_topic("t", 1, config)
    with pytest.raises(error, match=why):
        lake.check_new_topic("t", 1, config)
    assert lake.peek("t") is None
    lake.create_topic("t", 1)
    with pytest.raises(error, match=why):
        lake.alter_topic("t", config={**config})
    with pytest.raises(error, match=why):
        lake.check_altered_topic("t", {**config})
    assert (entries(lake), properties(lake)[FORMAT]) == (1, "2")


def test_the_topic_of_schemas_is_no_typed_one() -> None:
    lake, _ = typed_lake()
    with pytest.raises(InvalidConfigError, match="where a registry keeps its schemas"):
        lake.alter_topic("_schemas", config=INLINE)
    other, _, _ = memory_lake()
    with pytest.raises(InvalidConfigError, match="where a registry keeps its schemas"):
        other.create_topic("_schemas", config=INLINE)
    assert other.create_topic("_schemas", config={"cleanup.policy": "compact"}).id


def test_a_topic_with_records_becomes_typed_and_plain_again() -> None:
    lake, subjects = typed_lake()
    lake.create_topic("t", 1)
    lake.topic("t").append(values("x"))
    subjects.register("s", A)
    lake.alter_topic("t", config={**AVRO, "value.bytes": "derive"})
    assert typing(lake).columns == pa.struct([COLUMN_A])
    before = properties(lake)
    lake.alter_topic("t", config=dict.fromkeys([*AVRO, "value.bytes"]))
    found = typing(lake)
    assert (found.kind, found.bytes, found.newest, sorted(found.writers)) == (None, "keep", None, [1])
    assert found.columns == pa.struct([COLUMN_A])
    assert {k: properties(lake)[k] for k in (FORMAT, VALUE_SCHEMAS)} == {k: before[k] for k in (FORMAT, VALUE_SCHEMAS)}
    lake.alter_topic("t", config={"retention.ms": "5"})
    assert properties(lake)[VALUE_SCHEMAS] == before[VALUE_SCHEMAS]


def test_an_entry_changes_configuration_schemas_and_columns_together() -> None:
    lake, _ = typed_lake()
    lake.create_topic("t", 1, INLINE)
    assert (typing(lake).newest, typing(lake).columns) == (-1, pa.struct([COLUMN_A]))
    lake.alter_topic("t", config={"value.schema": B})
    assert (typing(lake).newest, sorted(typing(lake).writers)) == (-2, [-2, -1])
    assert typing(lake).columns == pa.struct([COLUMN_A, COLUMN_B])
    lake.alter_topic("t", config={"value.schema": A})
    assert (typing(lake).newest, sorted(typing(lake).writers)) == (-1, [-2, -1])
    assert entries(lake) == 3
    lake.alter_topic("t", config={"value.schema": A})
    assert entries(lake) == 3  # as it was


def test_keys_that_say_nothing_of_values_are_altered_whatever_the_registry_has() -> None:
    lake, subjects = typed_lake()
    subjects.register("s", A)
    lake.create_topic("t", 1, AVRO)
    subjects.delete("s")
    subjects.register("s", '{"type":"object"}', "JSON")
    lake.alter_topic("t", config={"retention.ms": "5"})
    assert sorted(typing(lake).writers) == [1]


def test_a_new_life_forgets_what_values_were() -> None:
    lake, _ = typed_lake()
    lake.create_topic("t", 1, INLINE)
    first = lake.peek("t")
    assert first is not None
    assert first.metadata is not None
    lake.delete_topic("t")
    lake.create_topic("t", 1, {"value.columns": "avro", "value.schema": C})
    assert typing(lake).columns == pa.struct([COLUMN_C])
    assert sorted(typing(lake).writers) == [-1]
    lake.delete_topic("t")
    lake.create_topic("t", 1)
    state = open_lake(lake.storage, lake.clock).peek("t")  # type: ignore[arg-type]
    assert state is not None
    assert state.metadata is not None
    assert (state.metadata.schema, state.metadata.table_id) == (DELTA_SCHEMA, first.metadata.table_id)
    assert properties(lake)[FORMAT] == "2"


# --- growth ------------------------------------------------------------------------------------------------


def test_a_schema_that_a_value_has_becomes_columns_by_one_entry() -> None:
    lake, subjects = typed_lake()
    lake.create_topic("t", 1, AVRO)
    first, second = subjects.register("s", A), subjects.register("s", B)
    topic = lake.topic("t")
    topic.grow_for(framed_as(first, second, first, 0))
    assert (sorted(typing(lake).writers), typing(lake).newest) == ([first, second], second)
    assert typing(lake).columns == pa.struct([COLUMN_A, COLUMN_B])
    assert entries(lake) == 2
    topic.grow_for(framed_as(first, second))
    assert entries(lake) == 2


def test_a_header_that_names_a_guid_makes_its_schema_known() -> None:
    lake, subjects = typed_lake()
    lake.create_topic("t", 1, AVRO)
    number = subjects.register("s", A)
    header = {"key": "__value_schema_id", "value": b"\x01" + subjects.guid(number)}
    table = pa.table({"value": [b"\x02", b"\x02"], "headers": pa.array([None, [header]], HEADERS)})
    lake.topic("t").grow_for(table)
    assert typing(lake).guids == {subjects.guid(number): number}


@pytest.mark.parametrize(
    "table",
    [
        framed_as(7),
        pa.table({"value": ["text", None]}),
        pa.table({"value": [1, 2]}),
        pa.table({"value": [b"x"], "headers": ["no headers"]}),
        pa.table({"key": [b"x"]}),
        framed_as(0)[:0],
        pa.table({"columns": [{"a": 1}]}),
    ],
)
def test_what_names_no_schema_of_the_subject_changes_nothing(table: pa.Table) -> None:
    lake, subjects = typed_lake()
    lake.create_topic("t", 1, AVRO)
    subjects.register("other", A)
    lake.topic("t").grow_for(table)
    assert (typing(lake).columns, entries(lake)) == (None, 1)


@pytest.mark.parametrize("config", [{}, INLINE])
def test_topics_without_a_subject_ask_nobody(config: dict[str, str]) -> None:
    calls = Calls()
    lake, _, _ = memory_lake(calls)
    lake.create_topic("t", 1, config)
    topic = lake.topic("t")
    calls.take()
    topic.grow_for(framed_as(1, 2, 3))
    assert calls.take() == []


def test_known_schemas_are_not_looked_up_and_unknown_ones_once_in_a_while() -> None:
    calls = Calls()
    lake, _, clock = memory_lake(calls)
    subjects = Subjects(lake).no_rules()
    number = subjects.register("s", A)
    lake.create_topic("t", 1, AVRO)
    topic = lake.topic("t")
    topic.grow_for(framed_as(number, number + 1))
    calls.take()
    topic.grow_for(framed_as(number, number + 1))
    assert calls.take() == []
    assert subjects.register("s", B) == number + 1
    topic.grow_for(framed_as(number, number + 1))
    assert sorted(typing(lake).writers) == [number]
    clock.pass_s(ANSWERS_COUNT_S)
    topic.grow_for(framed_as(number, number + 1))
    assert sorted(typing(lake).writers) == [number, number + 1]


def test_a_schema_of_another_kind_is_no_schema_of_the_topic() -> None:
    lake, subjects = typed_lake()
    lake.create_topic("t", 1, AVRO)
    number = subjects.register("s", '{"type":"object","properties":{"a":{"type":"integer"}}}', "JSON")
    topic = lake.topic("t")
    topic.grow_for(framed_as(number))
    assert entries(lake) == 1
    assert lake.value_schemas.why_not(("t", "s", number)) == "it is of the type JSON, and value.columns is avro"
    assert lake.value_schemas.why_not(("s", number)) is None  # for other topics it may be one


def test_a_table_that_is_full_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_SCHEMAS", 1)
    lake, subjects = typed_lake()
    first = subjects.register("s", A)
    lake.create_topic("t", 1, AVRO)
    second = subjects.register("s", B)
    topic = lake.topic("t")
    topic.grow_for(framed_as(second))
    assert sorted(typing(lake).writers) == [first]
    assert "as many schemas as it takes" in str(lake.value_schemas.why_not(("t", "s", second)))


def test_columns_without_bytes_make_the_newest_schema_known() -> None:
    lake, subjects = typed_lake()
    lake.create_topic("t", 1, AVRO)
    number = subjects.register("s", A)
    topic = lake.topic("t")
    topic.grow_for(pa.table({"columns": [{"a": 1}]}))
    assert (typing(lake).newest, typing(lake).columns) == (number, pa.struct([COLUMN_A]))


def test_of_two_growers_at_once_the_second_finds_it_there() -> None:
    lake, subjects = typed_lake()
    storage, clock = lake.storage, lake.clock
    lake.create_topic("t", 1, AVRO)
    number = subjects.register("s", A)
    others = [open_lake(storage, clock).topic("t") for _ in range(2)]  # type: ignore[arg-type]
    for topic in others:  # both have looked at the log before either of them changes it
        topic.state()
    for topic in others:
        topic.grow_for(framed_as(number))
        found = topic.typing()
        assert found is not None
        assert sorted(found.writers) == [number]
    assert entries(lake) == 2


def test_two_growers_with_two_schemas_bring_both() -> None:
    lake, subjects = typed_lake()
    lake.create_topic("t", 1, AVRO)
    first, second = subjects.register("s", A), subjects.register("s", C)
    others = [open_lake(lake.storage, lake.clock).topic("t") for _ in range(2)]  # type: ignore[arg-type]
    for topic in others:
        topic.state()
    for topic, number in zip(others, (first, second), strict=True):
        topic.grow_for(framed_as(number))
    assert typing(lake).columns == pa.struct([COLUMN_A, COLUMN_C])
    assert entries(lake) == 3


def test_many_threads_of_many_processes_grow_a_table_once_for_each_schema() -> None:
    lake, subjects = typed_lake()
    lake.create_topic("t", 1, AVRO)
    numbers = [subjects.register("s", avro_record(**{f"f{i}": "int"})) for i in range(5)]
    failed: list[BaseException] = []

    def grow(topic: Topic, ids: list[int]) -> None:
        try:
            for one in ids:
                topic.grow_for(framed_as(one))
        except BaseException as e:
            failed.append(e)

    topics = [open_lake(lake.storage, lake.clock).topic("t") for _ in range(3)]  # type: ignore[arg-type]
    threads = [
        threading.Thread(target=grow, args=(topic, numbers[i:] + numbers[:i])) for topic in topics for i in range(2)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == []
    assert sorted(typing(lake).writers) == numbers
    assert {field.name for field in typing(lake).columns} == {f"f{i}" for i in range(5)}
    assert entries(lake) == 1 + len(numbers)


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_growth_whose_answer_is_lost_is_there_once(phase: str) -> None:
    lake, storage, _ = memory_lake()
    subjects = Subjects(lake)
    lake.create_topic("t", 1, AVRO)
    number = subjects.register("s", A)
    left = [2]

    def fail(method: str, path: str, when: str) -> None:
        if method == "put_if_absent" and path.startswith("t/_delta_log") and when == phase and left[0]:
            left[0] -= 1
            raise StorageUnavailableError("no answer")

    storage.hook = fail
    lake.topic("t").grow_for(framed_as(number))
    storage.hook = lambda *call: None
    assert left == [0]
    assert sorted(typing(lake).writers) == [number]
    assert entries(lake) == 2


def test_a_growth_that_never_gets_an_answer_is_said_to_be_unknown() -> None:
    lake, storage, _ = memory_lake()
    number = Subjects(lake).register("s", A)
    lake.create_topic("t", 1, {"value.columns": "avro", "value.schema.subject": "s"})
    second = Subjects(lake).no_rules().register("s", C)
    topic = lake.topic("t")

    def fail(method: str, path: str, when: str) -> None:
        if method == "put_if_absent" and path.startswith("t/_delta_log") and when == "before":
            raise StorageUnavailableError("no answer")

    storage.hook = fail
    with pytest.raises((OutcomeUnknownError, StorageUnavailableError)):
        topic.grow_for(framed_as(second))
    storage.hook = lambda *call: None
    assert sorted(typing(lake).writers) == [number]
    topic.grow_for(framed_as(second))  # nothing was remembered of what failed
    assert sorted(typing(lake).writers) == [number, second]


def test_who_staged_before_the_growth_stages_again() -> None:
    lake, subjects = typed_lake()
    number = subjects.register("s", A)
    lake.create_topic("t", 1, AVRO)
    stale = open_lake(lake.storage, lake.clock).topic("t")  # type: ignore[arg-type]
    stale.state()
    lake.topic("t").grow_for(framed_as(subjects.register("s", B)))
    stale.append(framed_as(number, payload=lambda row: b"\x08"))
    found = next(iter(lake.topic("t").read(0)))
    assert found.column("value").to_pylist() == [b"\x00" + number.to_bytes(4, "big") + b"\x08"]


# --- the rule by itself ------------------------------------------------------------------------------------


def state_of(config: dict[str, str]) -> TopicState:
    lake, _, _ = memory_lake()
    lake.create_topic("t", 1, config)
    state = lake.peek("t")
    assert state is not None
    return state


@pytest.mark.parametrize(
    ("config", "schema"),
    [
        ({}, WrittenSchema(1, "avro", A, (), "s", 1)),
        (INLINE, WrittenSchema(1, "avro", A, (), "s", 1)),
        (AVRO, WrittenSchema(1, "avro", A, (), "another", 1)),
        (AVRO, WrittenSchema(1, "json", "{}", (), "s", 1)),
    ],
)
def test_a_topic_grows_by_schemas_of_its_own_kind_and_subject_alone(
    config: dict[str, str], schema: WrittenSchema
) -> None:
    state = state_of(config)
    assert decide_grow(state, "t", state.topic_id, [schema]).actions == ()


def test_the_entry_of_a_growth_is_a_configuration_entry() -> None:
    state = state_of(AVRO)
    outcome = decide_grow(state, "t", state.topic_id, [WrittenSchema(1, "avro", A, (), "s", 1)])
    (changed,) = outcome.actions
    assert state.metadata is not None
    kept = {k: v for k, v in changed.configuration.items() if k != VALUE_SCHEMAS}  # type: ignore[union-attr]
    assert kept == {k: v for k, v in state.metadata.configuration.items() if k != VALUE_SCHEMAS}
    assert outcome.operation == "ADD COLUMNS"


def test_a_creation_by_the_rule_alone_is_typed_too() -> None:
    made: Callable[[dict[str, str]], object] = lambda config: decide_create(  # noqa: E731
        TopicState(), "t", 1, config, {}, topic_id="i", table_id="i", now_ms=0
    ).actions[1]
    assert made({}).configuration[FORMAT] == "2"  # type: ignore[attr-defined]
    assert made(INLINE).configuration[FORMAT] == "3"  # type: ignore[attr-defined]


def test_who_asks_for_offsets_derives_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets by time, and the latest record, are found by timestamps alone."""
    lake, subjects = typed_lake()
    number = subjects.register("s", A)
    lake.create_topic("t", 1, AVRO | {"value.bytes": "derive"})
    lake.topic("t").append(framed_as(number, number, number))
    derived: list[int] = []
    bytes_of = Typing.bytes_of

    def counted(self: Typing, value: pa.Array, *more: pa.Array) -> pa.Array:
        derived.append(len(value))
        return bytes_of(self, value, *more)

    monkeypatch.setattr(Typing, "bytes_of", counted)
    topic = lake.topic("t")
    assert lake.offsets("t") == {0: (0, 3)}
    assert lake.offsets_for_times("t", {0: 0}) == {0: 0}
    latest = find_latest(lake.storage, topic.folder, topic.plan(0))
    assert latest is not None
    assert derived == []
    assert sum(batch.num_rows for batch in topic.read(0)) == 3
    assert derived == [3]
