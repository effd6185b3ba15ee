"""Protobuf schemas as texts: canonical, normalised, serialized, valid; imports."""

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.protobuf.parsed import ProtobufSchema

ALL = """
// A comment
syntax = 'proto3'; package a.b;
import "google/protobuf/timestamp.proto"; import public "google/protobuf/duration.proto";
import "google/protobuf/descriptor.proto";
option java_package = "q\\"\\x41"; option java_multiple_files=true;
enum Top { reserved 4 to max, 2; reserved "Z"; option allow_alias = true; A = 0; B = 0 [deprecated = true]; }
message M { /* another { */
  repeated int32 r = 10 [packed = false, json_name = "rr", (twice) = 2.5];
  string a = 1 [deprecated = true]; map<string, N> m = 2;
  oneof z { .a.b.M.N n = 4; int32 q = 3; }
  message N {} reserved 5, 7 to 9; reserved "foo", 'bar';
  optional google.protobuf.Timestamp t = 11; option deprecated = true;
}
extend google.protobuf.FieldOptions { double twice = 50000; }
service S { rpc A (M) returns (stream M.N); rpc B (stream M) returns (M) { option deprecated = true; } }
"""

CANONICAL = """\
syntax = "proto3";
package a.b;

import "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto";
import public "google/protobuf/duration.proto";

option java_package = "q\\"A";
option java_multiple_files = true;

message M {
  reserved 5, 7 to 9;
  reserved "foo", "bar";

  option deprecated = true;

  repeated int32 r = 10 [
    packed = false,
    (twice) = 2.5,
    json_name = "rr"
  ];
  string a = 1 [deprecated = true];
  map<string, N> m = 2;
  optional google.protobuf.Timestamp t = 11;

  oneof z {
    .a.b.M.N n = 4;
    int32 q = 3;
  }

  message N {}
}
enum Top {
  reserved 4 to max, 2;
  reserved "Z";
  option allow_alias = true;
  A = 0;
  B = 0 [deprecated = true];
}

extend google.protobuf.FieldOptions {
  double twice = 50000;
}

service S {
  rpc A (M) returns (stream M.N);
  rpc B (stream M) returns (M) {
    option deprecated = true;
  };
}
"""

NORMALIZED = """\
syntax = "proto3";
package a.b;

import "google/protobuf/descriptor.proto";
import "google/protobuf/timestamp.proto";
import public "google/protobuf/duration.proto";

option java_multiple_files = true;
option java_package = "q\\"A";

message M {
  reserved 5;
  reserved 7 to 9;
  reserved "bar";
  reserved "foo";

  option deprecated = true;

  string a = 1 [deprecated = true];
  map<string, .a.b.M.N> m = 2;
  repeated int32 r = 10 [
    (twice) = 2.5,
    json_name = "rr",
    packed = false
  ];
  optional .google.protobuf.Timestamp t = 11;

  oneof z {
    int32 q = 3;
    .a.b.M.N n = 4;
  }

  message N {}
}
enum Top {
  reserved 2;
  reserved 4 to max;
  reserved "Z";
  option allow_alias = true;
  A = 0;
  B = 0 [deprecated = true];
}

extend .google.protobuf.FieldOptions {
  double twice = 50000;
}

service S {
  rpc A (.a.b.M) returns (stream .a.b.M.N);
  rpc B (stream .a.b.M) returns (.a.b.M) {
    option deprecated = true;
  };
}
"""


def checked(text, **references):
    schema = ProtobufSchema(text, {name.replace("_", "."): other for name, other in references.items()})
    schema.check()
    return schema


def test_the_canonical_text():
    assert checked(ALL).canonical == CANONICAL
    assert checked(CANONICAL).canonical == CANONICAL


def test_the_normalised_text():
    assert checked(ALL).normalized == NORMALIZED
    assert checked(NORMALIZED).normalized == NORMALIZED


def test_a_descriptor_in_base64_is_the_same_schema():
    plain = "\n".join(line for line in ALL.splitlines() if "extend" not in line).replace(", (twice) = 2.5", "")
    schema = checked(plain)
    again = checked(schema.serialized)
    assert again.normalized == schema.normalized
    assert again.serialized == schema.serialized
    assert FileDescriptorProto.FromString(base64.b64decode(schema.serialized)).message_type[0].name == "M"


def test_a_descriptor_of_proto2_is_the_same_schema():
    text = """message M { required string a = 1 [default = "x\\\\y"]; repeated E e = 2; optional E d = 3 [default = B];
        optional bytes z = 9 [default = "a\\001b"]; oneof o { int32 n = 4; } extensions 100 to 199, 500 to max;
        enum E { A = 0; B = 1; reserved 4 to 7, 9; } extend M { optional int32 x = 100; } reserved 1000; }"""
    schema = checked(f'syntax = "proto2"; {text}')
    again = checked(schema.serialized)
    assert again.normalized == schema.normalized
    assert "enum E {\n    reserved 4 to 7;\n    reserved 9;\n    A = 0;\n    B = 1;\n  }" in again.normalized


def test_references_may_be_descriptors():
    inner = checked('syntax = "proto3"; package n; message N {}').serialized
    outer = checked('syntax = "proto3"; import "n.proto"; message M { n.N n = 1; }', n_proto=inner)
    assert "n.N n = 1" in outer.canonical


def test_confluents_own_files_need_no_reference():
    checked(
        """syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";
        message M { confluent.type.Decimal d = 1 [(confluent.field_meta) = { doc: "a", tags: ["PII"] }]; }"""
    )


def test_names_are_looked_for_from_the_inside_out():
    text = (
        'syntax = "proto3"; package a; message N {} message M { message N { N n = 1; M.N m = 2; a.N o = 3; } N p = 1; }'
    )
    normalized = checked(text).normalized
    for line in (".a.M.N n = 1", ".a.M.N m = 2", ".a.N o = 3", ".a.M.N p = 1"):
        assert line in normalized


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "not Protobuf at line 1, column 1: 'nonsense' can't be here."),
        ("message {", "at line 1, column 9: '{' can't be here."),
        ("message M {\n int32 a = 1 }", "at line 2, column 14: '}' can't be here; ';' or '[' is missing."),
        ("message M { int32 a = ; }", "at line 1, column 23: ';' can't be here; a number is missing."),
        ("message M { int32 a = 1;", "at line 1, column 25: the text ends here, and is not whole."),
        ('syntax = "proto3";\nmessage M { string a = 1 }', "line 2, column 26"),
        ('syntax = "proto3"; message M { strin a = 1; }', "'strin' is not defined"),
        (
            'syntax = "proto3";\nmessage M { string a = 1;\n string b = 1; }',
            "at line 3: field number '1' is already used",
        ),
        ('syntax = "proto3"; message M {} message M {}', "'M'"),
        ('syntax = "proto3"; enum E { A = 1; }', "at line 1"),
        ('import "nowhere.proto";', "The import 'nowhere.proto' is not found"),
        ('import "../../etc/passwd";', "The import '../../etc/passwd' is not found"),
        ('import "/etc/passwd";', "is not found"),
        ('syntax = "proto3"; message M { reserved 5, "a"; }', "not Protobuf at line 1"),
        ("message A {" * 100_000, "nested deeper than 40 levels"),
        ("\0", "not Protobuf"),
    ],
)
def test_what_is_no_schema_is_refused_by_a_sentence(text, message, capfd):
    with pytest.raises(RegistryError) as refused:
        checked(text)
    assert refused.value.code == 42201
    assert message in str(refused.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["/etc/x.proto", "../x.proto", "a/../../x.proto", "", ".", "schema.proto", "a\0b"])
def test_references_that_are_no_relative_paths_are_refused(name):
    with pytest.raises(RegistryError, match="must be a relative path"):
        ProtobufSchema('syntax = "proto3";', {name: 'syntax = "proto3";'}).check()


def test_braces_in_texts_and_comments_are_no_levels():
    checked('syntax = "proto3"; /* ' + "{" * 100 + ' */ // [[[[\n option java_package = "' + "{" * 100 + '";')
