"""The connector's keys: those of Debezium's that change what is delivered are followed, or refused by name."""

import pytest

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.postgres.settings import UNSUPPORTED, config_def, read_settings, validate

CONFIG = {
    "topic.prefix": "shop", "database.hostname": "db", "database.user": "u", "database.dbname": "shop",
}  # fmt: skip
# Keys as Debezium's documentation has them: one at least below each refused name.
REFUSED = {
    "column.mask.with.10.chars": "public.a.b", "column.mask.hash.SHA-256.with.salt.x": "public.a.b",
    "column.propagate.source.type": ".*", "column.truncate.to.20.chars": "public.a.b", "converters": "isbn",
    "datatype.propagate.source.type": ".*", "event.processing.failure.handling.mode": "skip",
    "field.name.adjustment.mode": "avro", "incremental.snapshot.chunk.size": "1024", "post.processors": "x",
    "replica.identity.autoset.values": "public.a:FULL", "schema.name.adjustment.mode": "avro",
    "signal.data.collection": "public.signals", "signal.enabled.channels": "source",
    "skip.messages.without.change": "true", "snapshot.include.collection.list": "public.a",
    "snapshot.mode.configuration.based.snapshot.data": "true", "snapshot.mode.custom.name": "x",
    "snapshot.select.statement.overrides": "public.a", "topic.naming.strategy": "x",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_key_that_is_not_followed_is_refused_by_name(name):
    given = {**CONFIG, name: REFUSED[name]}
    errors = {value.name: value.errors for value in validate(given) if value.errors}
    assert list(errors) == [name]
    with pytest.raises(ConnectConfigError, match="is not supported"):
        read_settings(given)


def test_every_refused_name_has_a_row_here():
    assert {one for one in UNSUPPORTED if not any(name.startswith(one) for name in REFUSED)} == set()
    assert not [key.name for key in config_def() if key.name.startswith(UNSUPPORTED)]


def test_keys_of_others_are_left_alone():
    given = {**CONFIG, "transforms": "x", "some.thing": "else", "signalling": "x"}
    assert not [value for value in validate(given) if value.errors]


KEYS = [
    ("public.a:x", [("public.a", ("x",))]),
    ("public.a:x,y;(.*).b:z", [("public.a", ("x", "y")), ("(.*).b", ("z",))]),
    (" public.a : x , y ; ", [("public.a", ("x", "y"))]),
    ("(?:public|other).a:x", [("(?:public|other).a", ("x",))]),
]


@pytest.mark.parametrize(("text", "keys"), KEYS)
def test_message_key_columns_are_read(text, keys):
    found = read_settings({**CONFIG, "message.key.columns": text}).records.selection
    assert list(found.keys) == keys


@pytest.mark.parametrize("text", ["public.a", ":x", "public.a:", "public.a:x,,y", "(:x"])
def test_message_key_columns_of_another_form_are_refused(text):
    with pytest.raises(ConnectConfigError, match=r"message\.key\.columns"):
        read_settings({**CONFIG, "message.key.columns": text})
