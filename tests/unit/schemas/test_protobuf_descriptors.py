"""Protobuf schemas as descriptors: texts and descriptors of either kind, and messages by their places."""

import base64

import pytest

from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.protobuf.descriptors import message_at, place_of, pool_of
from tidelog.schemas.protobuf.loading import files_of

UNIT = 'syntax = "proto3"; package geo; enum Unit { METER = 0; }'
POINT = 'syntax = "proto3"; package geo; import "unit.proto"; message Point { Unit u = 1; }'
MOVE = """syntax = "proto3"; import "geo/point.proto"; import "google/protobuf/timestamp.proto";
    message Move { message Leg { geo.Point to = 1; } repeated Leg legs = 1; google.protobuf.Timestamp at = 2; }
    message Stop {}"""


def loaded(text, references):
    files = files_of(text, references).file
    return pool_of(files).FindFileByName(files[-1].name)


def serialized(text, references):
    return base64.b64encode(files_of(text, references).file[-1].SerializeToString()).decode()


@pytest.mark.parametrize("descriptors", [(), ("move",), ("point",), ("unit", "point"), ("unit", "point", "move")])
def test_texts_and_descriptors_are_loaded_alike(descriptors):
    unit, point, move = UNIT, POINT, MOVE
    if "unit" in descriptors:
        unit = serialized(UNIT, {})
    if "point" in descriptors:
        point = serialized(POINT, {"unit.proto": UNIT})
    references = {"unit.proto": unit, "geo/point.proto": point}
    if "move" in descriptors:
        move = serialized(MOVE, references)
    file = loaded(move, references)
    assert [one.name for one in file.message_types_by_name.values()] == ["Move", "Stop"]
    assert file.message_types_by_name["Move"].nested_types[0].fields[0].message_type.full_name == "geo.Point"


def test_a_pool_refuses_what_breaks_the_rules():
    file = files_of(UNIT, {}).file[-1]
    file.message_type.add(name="M").field.add(name="f", number=1, type=11, type_name=".None", label=1)
    with pytest.raises(SchemaError, match="Protobuf's rules"):
        pool_of([file])


def test_messages_have_places():
    file = loaded(MOVE, {"unit.proto": UNIT, "geo/point.proto": POINT})
    names = {(0,): "Move", (1,): "Stop", (0, 0): "Leg"}
    assert {place: message_at(file, place).name for place in names} == names
    assert all(place_of(message_at(file, place)) == place for place in names)
    assert [message_at(file, place) for place in ((), (2,), (-1,), (1, 0), (0, 1), (0, 0, 0))] == [None] * 6
