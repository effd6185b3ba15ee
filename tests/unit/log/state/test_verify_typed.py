"""Which entries of a typed topic's log may follow a state: columns and schemas only grow, all else is refused."""

from dataclasses import replace

import orjson
import pyarrow as pa
import pytest
from support.logs import add, created, end_txn, entry, metadata, remove

from tidelog.log.base.errors import CorruptLogError, UnsupportedFormatError
from tidelog.log.delta.actions import Action, Metadata
from tidelog.log.delta.disk_format import FORMAT_VERSION, other_format
from tidelog.log.delta.schema import DELTA_SCHEMA, PARTITION_COLUMNS, typed_schema
from tidelog.log.delta.written_schemas import WrittenSchema, written_schemas_text
from tidelog.log.door.topic_machine import topic_machine
from tidelog.log.state.topic_state import ROWS, VALUE_SCHEMAS, TopicState
from tidelog.log.state.verify import verify_entry, verify_format, verify_table

INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
COLUMNS = pa.struct(
    [
        ("a", pa.int32()),
        ("s", INNER),
        ("l", pa.list_(pa.field("element", INNER))),
        ("m", pa.map_(pa.string(), INNER)),
        ("d", pa.decimal128(9, 2)),
    ]
)
ONE, TWO = WrittenSchema(1, "avro", "one", (("n", "t"),), "s", 1), WrittenSchema(2, "avro", "two")


def typed(
    columns: pa.StructType | None = COLUMNS, schemas: tuple[WrittenSchema, ...] = (ONE,), **more: str
) -> Metadata:
    """A typed topic's metaData, with two partitions."""
    own = {"tidelog_format": "3", **more}
    found = metadata(**own)
    facts = {VALUE_SCHEMAS: written_schemas_text(schemas), **found.configuration}
    return replace(found, schema=typed_schema(columns), configuration=facts)


def without(path: str, kind: pa.DataType = COLUMNS) -> pa.DataType:
    """The columns without a field."""
    name, _, rest = path.partition(".")
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", without(rest, kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), without(rest, kind.item_type))
    kept = [pa.field(f.name, without(rest, f.type)) if f.name == name else f for f in kind if f.name != name or rest]
    return pa.struct(kept)


def changed(path: str, to: pa.DataType) -> pa.StructType:
    """The columns with another type of one of the first level."""
    return pa.struct([pa.field(f.name, to) if f.name == path else f for f in COLUMNS])


SEGMENT = add(0, 0, 5)


def state_of(*first: Metadata) -> TopicState:
    state = TopicState()
    made = created()
    made = replace(made, actions=tuple(first[0] if isinstance(a, Metadata) else a for a in made.actions))
    for one in (made, entry(1, SEGMENT, end_txn(0, 5))):
        topic_machine("t").verify(state, one)
        state.apply(one)
    return state


def problem(state: TopicState, *actions: Action) -> str | None:
    try:
        verify_entry(state, entry(state.version + 1, *actions), "t")
    except CorruptLogError as e:
        return str(e)
    return None


WIDER = pa.struct([*COLUMNS, ("new", pa.float64())])
GONE = {"tidelog_deleted": "true"}
ACCEPTED: dict[str, tuple[Metadata, tuple[Action, ...]]] = {
    "the same again": (typed(), (typed(),)),
    "a schema more": (typed(), (typed(schemas=(ONE, TWO)),)),
    "a schema found elsewhere": (typed(), (typed(schemas=(replace(ONE, subject="t", version=9),)),)),
    "a column more": (typed(), (typed(WIDER),)),
    "the first columns": (typed(None, ()), (typed(),)),
    "columns in another order": (typed(), (typed(pa.struct(list(reversed(list(COLUMNS))))),)),
    "a key of the configuration": (typed(), (typed(tidelog_value_columns="none"),)),
    "a plain topic that becomes typed": (metadata(), (typed(),)),
    "a delete": (typed(), (typed(**GONE), remove(SEGMENT))),
    "columns that no tidelog reads": (
        typed(),
        (replace(typed(), schema="{}"),),  # judged at the head of the log
    ),
}


@pytest.mark.parametrize(("before", "actions"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_may_follow(before: Metadata, actions: tuple[Action, ...]) -> None:
    assert problem(state_of(before), *actions) is None


REFUSED: dict[str, tuple[Metadata, str]] = {
    "plain again": (metadata(), "it makes a table of format 3 one of 2"),
    "a schema gone": (typed(schemas=()), "it takes the schema 1 of values away"),
    "no schemas at all": (
        replace(typed(), configuration=metadata(tidelog_format="3").configuration),
        "it takes the schema 1 of values away",
    ),
    "another text": (typed(schemas=(replace(ONE, text="1"),)), "it makes the schema 1 of values another one"),
    "another kind": (typed(schemas=(replace(ONE, kind="json"),)), "it makes the schema 1 of values another one"),
    "other references": (typed(schemas=(replace(ONE, references=()),)), "it makes the schema 1 of values another one"),
    "no columns": (typed(None), "it takes the column columns away"),
    "a column gone": (typed(without("a")), "it takes the column columns.a away"),
    "a field of a struct gone": (typed(without("s.x")), "it takes the column columns.s.x away"),
    "a field of a list gone": (typed(without("l.element.x")), "it takes the column columns.l.element.x away"),
    "a field of a map gone": (typed(without("m.value.x")), "it takes the column columns.m.value.x away"),
    "a wider type": (typed(changed("a", pa.int64())), "it makes the column columns.a, which is int32, int64"),
    "another scale": (typed(changed("d", pa.decimal128(9, 3))), "which is decimal128(9, 2), decimal128(9, 3)"),
    "a list of a struct": (typed(changed("s", pa.list_(INNER))), "it makes the column columns.s, which is struct"),
    "facts that are none": (
        typed(tidelog_value_schemas="[7]"),
        "has a property tidelog.value.schemas that can't be read: its element 0 is no JSON object",
    ),
    "facts of a plain topic": (
        metadata(tidelog_value_schemas="[]"),
        "its metaData has tidelog.value.schemas, which only tables of format 3 have",
    ),
}


@pytest.mark.parametrize(("after", "says"), REFUSED.values(), ids=REFUSED)
def test_what_takes_back_what_rows_need_is_refused(after: Metadata, says: str) -> None:
    found = problem(state_of(typed()), after)
    assert found is not None
    assert says in found


def test_a_new_incarnation_begins_with_any_columns() -> None:
    for again in (
        metadata(topic_id="id-2"),
        typed(pa.struct([("a", pa.string())]), (replace(ONE, text="1"),), tidelog_topic_id="id-2"),
    ):
        state = state_of(typed())
        state.apply(entry(2, typed(**GONE), remove(SEGMENT)))
        assert problem(state, again, end_txn(0, 0)) is None


def test_a_checkpoint_with_facts_that_can_not_be_read_is_refused() -> None:
    state = TopicState()
    broken = typed(tidelog_value_schemas="{}")
    state.restore(0, [*created().actions[:1], broken])
    with pytest.raises(CorruptLogError, match=r"checkpoint of version 0 .*tidelog\.value\.schemas that can't be read"):
        topic_machine("t").verify_checkpoint(state, 0)


# --- the head ----------------------------------------------------------------------------------------------


def field(name: str, kind: object, **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}, **more}


def schema_with(*fields: dict[str, object], base: str = typed_schema(None)) -> str:
    body = orjson.loads(base)
    return orjson.dumps({**body, "fields": [*body["fields"], *fields]}).decode()


STRUCT = {"type": "struct", "fields": [field("a", "integer")]}
SCHEMAS: dict[str, tuple[str, str, str | None]] = {
    "no columns yet": ("3", typed_schema(None), None),
    "columns": ("3", typed_schema(COLUMNS), None),
    "columns, written by hand": ("3", schema_with(field("columns", STRUCT)), None),
    "a plain topic's": ("3", DELTA_SCHEMA, "'value_schema' is gone; column 'value_length' is gone"),
    "a typed topic's as a plain one": ("2", typed_schema(None), "'value_schema' is not known; column 'value_length'"),
    "columns of a plain topic": (
        "2",
        schema_with(field("columns", STRUCT), base=DELTA_SCHEMA),
        "'columns' is not known",
    ),
    "a column beside": ("3", schema_with(field("more", "string")), "column 'more' is not known"),
    "columns that are no struct": (
        "3",
        schema_with(field("columns", "string")),
        "column 'columns' has what no value's",
    ),
    "columns without a field": (
        "3",
        schema_with(field("columns", {"type": "struct", "fields": []})),
        "column 'columns' has what no value's column has",
    ),
    "a type that no value has": (
        "3",
        schema_with(field("columns", {"type": "struct", "fields": [field("a", "variant")]})),
        "'columns' has what no value's column has .*variant",
    ),
    "a rule of another engine": (
        "3",
        schema_with(field("columns", {"type": "struct", "fields": [field("a", "long", nullable=False)]})),
        "'columns' has what no value's column has",
    ),
    "columns that take no null": ("3", schema_with(field("columns", STRUCT, nullable=False)), "column 'columns' is .*"),
}


@pytest.mark.parametrize(("version", "text", "says"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_tables_columns_are_those_of_its_format(version: str, text: str, says: str | None) -> None:
    found = Metadata("id", "t", text, PARTITION_COLUMNS, {"tidelog.format": version}, 0)
    if says is None:
        verify_table(found, "t")
    else:
        with pytest.raises(UnsupportedFormatError, match=says):
            verify_table(found, "t")


# --- programs of format 2 ----------------------------------------------------------------------------------


def test_a_program_that_knows_no_typed_topics_refuses_them_by_a_clear_sentence() -> None:
    what, todo = other_format("Topic 't'", 3, (FORMAT_VERSION,))
    assert what == "Topic 't' has on-disk format 3; this tidelog reads and writes format 2 and no other."
    assert todo == "Upgrade tidelog."
    # Tables of rows have no typed form: for them this program is such a one.
    with pytest.raises(UnsupportedFormatError, match="on-disk format 3; this tidelog reads and writes format 2 and"):
        verify_format(replace(typed(), configuration={**typed().configuration, ROWS: "groups"}), "t")
