"""Typed topics on the command line: created, described, changed."""

import pytest
from support.cli_calls import answer, done, lake_address, open_lake, refused
from support.value_subjects import Subjects, avro_record

SCHEMA = avro_record(carrier="string", delay=["null", "long"], gate=["int", "string"])


@pytest.fixture
def lake():
    """A lake whose registry has a schema, one of whose fields can't be a column."""
    address = lake_address()
    with open_lake(address) as opened:
        Subjects(opened).register("flights-value", SCHEMA)
    return address


TYPED = ("--config", "value.columns=avro", "--config", "value.schema.subject=flights-value")
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "long"}]


def test_create_shows_columns_and_what_is_none(lake):
    shown = done("topic", "create", "flights", *TYPED, "--lake", lake).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["carrier", "string"] in lines
    assert ["1", "avro", "flights-value,", "version", "1", "no", "newest"] in lines
    assert any(line[:2] == ["1", "gate"] for line in lines)


def test_describe_shows_them_too_and_gives_them_as_json(lake):
    done("topic", "create", "flights", *TYPED, "--lake", lake)
    shown = done("topic", "describe", "flights", "--lake", lake).stdout
    assert "carrier" in shown
    assert "gate" in shown
    values = answer("topic", "describe", "flights", "--lake", lake)["values"]
    assert (values["kind"], values["newest"], values["columns"]) == ("avro", 1, COLUMNS)
    assert answer("topic", "create", "more", *TYPED, "--lake", lake)["values"] == values
    (schema,) = values["schemas"]
    why = schema.pop("left_out")
    assert why.keys() == {"gate"}
    assert schema == {"id": 1, "type": "AVRO", "subject": "flights-value", "version": 1, "derives": False}


def test_alter_names_views_from_before_values_were_derived(lake):
    done("topic", "create", "flights", "--lake", lake)
    typed = ("--config", "value.columns=avro", "--config", "value.schema.subject=flights-value")
    words = "show those as null: make them again"
    assert words not in " ".join(done("topic", "alter", "flights", *typed, "--lake", lake).stdout.split())
    derive = done("topic", "alter", "flights", "--config", "value.bytes=derive", "--lake", lake).stdout
    assert words in " ".join(derive.split())


def test_a_plain_topic_has_no_values_to_show(lake):
    done("topic", "create", "plain", "--lake", lake)
    assert "values" not in answer("topic", "describe", "plain", "--lake", lake)


def test_a_subject_without_a_schema_is_named(lake):
    config = ("--config", "value.columns=avro", "--config", "value.schema.subject=later")
    shown = done("topic", "create", "flights", *config, "--lake", lake).stdout
    assert "Subject later has no schema yet: the columns come with the first value that has one." in " ".join(
        shown.split()
    )
    assert answer("topic", "describe", "flights", "--lake", lake)["values"]["columns"] == []
    described = " ".join(done("topic", "describe", "flights", "--lake", lake).stdout.split())
    assert "No columns yet: the topic knows no schema." in described
    assert "derives bytes" not in described


def test_an_inline_schema_may_be_changed_and_given_up(lake):
    inline = ("--config", "value.columns=avro", "--config", f"value.schema={avro_record(a='int')}")
    done("topic", "create", "flights", *inline, "--config", "value.bytes=derive", "--lake", lake)
    changed = f"value.schema={avro_record(a='int', b='string')}"
    done("topic", "alter", "flights", "--config", changed, "--lake", lake)
    values = answer("topic", "describe", "flights", "--lake", lake)["values"]
    assert [one["name"] for one in values["columns"]] == ["a", "b"]
    assert [(one["id"], one["derives"], one["subject"]) for one in values["schemas"]] == [
        (-2, True, None),
        (-1, True, None),
    ]
    keys = ("value.columns", "value.schema", "value.bytes")
    done("topic", "alter", "flights", *(part for key in keys for part in ("--delete-config", key)), "--lake", lake)
    after = answer("topic", "describe", "flights", "--lake", lake)["values"]
    assert (after["kind"], after["newest"], after["columns"]) == (None, None, values["columns"])


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (["value.columns=avro"], "without a schema"),
        (["value.columns=avro", "value.schema=no schema"], "."),
        (["value.columns=avro", "value.schema=order.avsc"], "Give the text: that of a file, not its name."),
        (["value.columns=json", "value.schema.subject=flights-value"], "has schemas of the type AVRO"),
        (["topic.validate=true"], "without value.columns"),
    ],
)
def test_what_can_not_be_typed_is_refused_with_the_reason(lake, config, why):
    options = [part for one in config for part in ("--config", one)]
    error = refused(1, "topic", "create", "flights", *options, "--lake", lake)
    assert why in " ".join(error.split())
    assert "Traceback" not in error
