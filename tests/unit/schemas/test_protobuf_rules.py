"""Each rule of Protobuf compatibility: a change it is about, and its place."""

import pytest

from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.protobuf.parsed import ProtobufSchema
from tidelog.schemas.protobuf.rules import ENCODINGS, RULES


def proto3(body, head=""):
    return f'syntax = "proto3"; {head} {body}'


def m(body):
    return proto3(f"message M {{ {body} }}")


def m2(body):
    return f'syntax = "proto2"; message M {{ {body} }}'


def enum(values):
    return proto3(f"enum E {{ {values} }}")


# (rule, place, old schema, new schema)
ROWS = [
    ("PACKAGE_CHANGED", "#", proto3("message M {}", "package a;"), proto3("message M {}", "package b;")),
    ("MESSAGE_ADDED", "#/N", m(""), m("") + "message N {}"),
    ("MESSAGE_MOVED", "#/M", m("") + "message N {}", proto3("message N {} message M {}")),
    ("MESSAGE_REMOVED", "#/M/N", m("message N {}"), m("")),
    ("ENUM_ADDED", "#/E", m(""), m("") + "enum E { A = 0; }"),
    ("ENUM_REMOVED", "#/M/E", m("enum E { A = 0; }"), m("")),
    ("ENUM_CONST_ADDED", "#/E/1", enum("A = 0;"), enum("A = 0; B = 1;")),
    ("ENUM_CONST_CHANGED", "#/E/0", enum("A = 0;"), enum("B = 0;")),
    ("ENUM_CONST_REMOVED", "#/E/1", enum("A = 0; B = 1;"), enum("A = 0;")),
    ("FIELD_ADDED", "#/M/1", m(""), m("string a = 1;")),
    ("FIELD_REMOVED", "#/M/1", m("string a = 1;"), m("")),
    ("FIELD_NAME_CHANGED", "#/M/1", m("string a = 1;"), m("string b = 1;")),
    ("FIELD_KIND_CHANGED", "#/M/1", m("string a = 1;"), m("M a = 1;")),
    ("FIELD_SCALAR_KIND_CHANGED", "#/M/1", m("string a = 1;"), m("int32 a = 1;")),
    ("FIELD_NAMED_TYPE_CHANGED", "#/M/1", m("M a = 1; message N {}"), m("N a = 1; message N {}")),
    ("FIELD_NUMERIC_LABEL_CHANGED", "#/M/1", m2("optional int32 a = 1;"), m2("repeated int32 a = 1;")),
    ("FIELD_STRING_OR_BYTES_LABEL_CHANGED", "#/M/1", m("optional string a = 1;"), m("repeated string a = 1;")),
    ("REQUIRED_FIELD_ADDED", "#/M/1", m2(""), m2("required string a = 1;")),
    ("REQUIRED_FIELD_REMOVED", "#/M/1", m2("required string a = 1;"), m2("")),
    ("ONEOF_ADDED", "#/M/o", m("string a = 1;"), m("oneof o { string a = 1; }")),
    ("ONEOF_REMOVED", "#/M/o", m("oneof o { string a = 1; }"), m("string a = 1;")),
    ("ONEOF_FIELD_ADDED", "#/M/o/2", m("oneof o { string a = 1; }"), m("oneof o { string a = 1; string b = 2; }")),
    ("ONEOF_FIELD_REMOVED", "#/M/o/2", m("oneof o { string a = 1; string b = 2; }"), m("oneof o { string a = 1; }")),
    ("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", "#/M/1", m("oneof o { string a = 1; }"), m("string a = 1;")),
    ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o", m("string a = 1; string b = 2;"),
     m("oneof o { string a = 1; string b = 2; }")),
    ("FIELD_MOVED_TO_EXISTING_ONEOF", "#/M/o", m("string a = 1; oneof o { string b = 2; }"),
     m("oneof o { string a = 1; string b = 2; }")),
]  # fmt: skip

# (what, whether it is compatible, old schema, new schema)
CASES = [
    ("one field moves to a new oneof", True, m("string a = 1;"), m("oneof o { string a = 1; string b = 2; }")),
    ("a oneof has another name", True, m("oneof o { string a = 1; string b = 2; }"),
     m("oneof p { string a = 1; string b = 2; }")),
    ("two oneofs become one", False, m("oneof o { string a = 1; } oneof p { string b = 2; }"),
     m("oneof o { string a = 1; string b = 2; }")),
    ("a oneof is gone with all its fields", True, m("oneof o { string a = 1; string b = 2; }"), m("string c = 3;")),
    ("a oneof is gone with some fields", False, m("oneof o { string a = 1; string b = 2; }"), m("string a = 1;")),
    ("a field in a oneof has another type", False, m("oneof o { string a = 1; }"), m("oneof o { int32 a = 1; }")),
    ("a field that moves has another type", False, m("oneof o { string a = 1; }"), m("int32 a = 1;")),
    ("optional is written in proto3", True, m("int32 a = 1;"), m("optional int32 a = 1;")),
    ("a field of proto3 without a label becomes repeated", True, m("int32 a = 1;"), m("repeated int32 a = 1;")),
    ("a map's value has another type", False, m("map<string, int32> a = 1;"), m("map<string, string> a = 1;")),
    ("a map's value has another type of its encoding", True, m("map<string, int32> a = 1;"),
     m("map<string, bool> a = 1;")),
    ("a map becomes a list of messages", False, m("map<string, int32> a = 1;"), m("repeated M a = 1;")),
    ("a message's name is written in full", True, m("M a = 1;"), m(".M a = 1;")),
    ("a group becomes a message", True, m2("optional group G = 1 { optional int32 a = 1; }"),
     m2("optional G g = 1; message G { optional int32 a = 1; }")),
    ("reserved numbers change", True, m("reserved 4, 8 to 9; reserved 'x';"), m("string a = 4;")),
    ("services don't count", True, m(""), m("") + "service S { rpc A (M) returns (M); }"),
    ("options don't count", True, m("string a = 1;"), m("string a = 1 [deprecated = true];")),
]  # fmt: skip


def differences(old, new, old_references=None, new_references=None):
    schemas = [ProtobufSchema(old, old_references or {}), ProtobufSchema(new, new_references or {})]
    return schemas[1].differences_from(schemas[0])


@pytest.mark.parametrize(("rule", "place", "old", "new"), ROWS, ids=[row[0] for row in ROWS])
def test_a_change_is_found_at_its_place_and_judged_by_its_rule(rule, place, old, new):
    found = differences(old, new)
    assert (rule, place) in [(one.rule.name, "/".join(("#", *one.path))) for one in found]
    assert any(one.breaking() for one in found) is not RULES[rule].compatible


def test_every_rule_has_a_row():
    assert sorted(row[0] for row in ROWS) == sorted(RULES)


@pytest.mark.parametrize(("what", "compatible", "old", "new"), CASES, ids=[row[0] for row in CASES])
def test_whether_a_change_is_compatible(what, compatible, old, new):
    assert any(one.breaking() for one in differences(old, new)) is not compatible


@pytest.mark.parametrize("before", ENCODINGS)
def test_scalars_of_one_encoding_read_each_other(before):
    groups = [
        {"int32", "int64", "uint32", "uint64", "bool", "enum"}, {"sint32", "sint64"}, {"string", "bytes"},
        {"fixed32", "sfixed32"}, {"fixed64", "sfixed64"}, {"float"}, {"double"},
    ]  # fmt: skip

    def fields(kinds):
        listed = (f"{'E' if kind == 'enum' else kind} f{i} = {i};" for i, kind in enumerate(kinds, 1))
        return m(f"{' '.join(listed)} enum E {{ A = 0; }}")

    found = differences(fields([before] * len(ENCODINGS)), fields(ENCODINGS))
    (readable,) = (group for group in groups if before in group)
    assert {one.path[-1] for one in found if one.breaking()} == {
        str(i) for i, after in enumerate(ENCODINGS, 1) if after not in readable
    }


IMPORTING = proto3("message M { a.N n = 1; }", 'import "n.proto";')
ONE = proto3("message N { int32 v = 1; }", "package a;")


def test_messages_of_imports_are_compared_where_they_are_used():
    other = proto3("message N { string v = 1; }", "package a;")
    found = differences(IMPORTING, IMPORTING, {"n.proto": ONE}, {"n.proto": other})
    assert [(one.rule.name, one.path) for one in found] == [
        ("FIELD_SCALAR_KIND_CHANGED", ("M", "1", "1")),
        ("FIELD_NAMED_TYPE_CHANGED", ("M", "1")),
    ]


def test_a_message_may_move_to_an_import():
    found = differences(proto3("message M { N n = 1; message N {} }"), proto3("message M { M.N n = 1; message N {} }"))
    assert not any(one.breaking() for one in found)
    local = proto3("message M { a.N n = 1; }  ", 'import "other.proto";')
    assert not differences(IMPORTING, local, {"n.proto": ONE}, {"other.proto": ONE})


def test_messages_of_imports_that_hold_each_other_are_compared():
    def pair(kind):
        return proto3(f"message N {{ O o = 1; {kind} v = 2; }} message O {{ N n = 1; }}", "package a;")

    assert not differences(IMPORTING, IMPORTING, {"n.proto": pair("int32")}, {"n.proto": pair("int64")})
    assert differences(IMPORTING, IMPORTING, {"n.proto": pair("int32")}, {"n.proto": pair("string")})


def test_deep_schemas_are_refused():
    deep = "message A { " * 41 + "}" * 41
    with pytest.raises(RegistryError, match="deeper than 40 levels"):
        ProtobufSchema(proto3(deep), {})
    almost = "message A { " * 40 + "}" * 40
    assert not any(one.breaking() for one in differences(proto3(almost), proto3(almost)))
