"""Messages of Protobuf by hand, byte by byte, and two schemas that have every kind of field."""

from google.protobuf import descriptor_pool, message_factory

from tidelog.schemas.protobuf.text import compiled

TEXT = """syntax = "proto3"; package p;
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
enum E { A = 0; B = 1; C = -5; }
message In { int32 a = 1; repeated string s = 2; optional uint64 u = 3; }
message M {
  double d = 1; float f = 2; int32 i32 = 3; int64 i64 = 4; uint32 u32 = 5; uint64 u64 = 6; sint32 s32 = 7;
  sint64 s64 = 8; fixed32 f32 = 9; fixed64 f64 = 10; sfixed32 x32 = 11; sfixed64 x64 = 12; bool b = 13;
  string s = 14; bytes y = 15; E e = 16; optional int32 o = 17; optional E oe = 18; In n = 19;
  repeated In rn = 20; repeated int32 ri = 21; repeated E re = 22; map<string, int64> ms = 23; map<int32, In> mi = 24;
  map<bool, E> mb = 25; oneof x { int32 x1 = 26; string x2 = 27; In x3 = 28; }
  google.protobuf.Timestamp ts = 29; repeated google.protobuf.Timestamp rts = 30;
  google.protobuf.Int32Value w = 31; google.protobuf.StringValue ws = 32; repeated google.protobuf.BoolValue rw = 33;
  repeated uint64 ru = 34; map<string, google.protobuf.Timestamp> mt = 35; repeated bytes ry = 36;
  google.protobuf.UInt64Value wu = 37; repeated double rd = 38;
}"""
PROTO2 = """syntax = "proto2"; package p; enum E { A = 0; B = 1; }
message M { required int32 id = 1; optional string s = 2 [default = "x"]; optional E e = 3; repeated E re = 4;
  repeated int32 ri = 5; optional group G = 6 { optional int32 a = 1; } extensions 100 to 200; }
extend M { optional int32 extra = 100; }"""
# Of M in TEXT: the second message of its file.
PLACE = b"\2\2"


def message_of(text, name):
    pool = descriptor_pool.DescriptorPool()
    for file in compiled(text, {}).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def varint(number):
    made = bytearray()
    number &= 2**64 - 1
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def field(number, kind, *data):
    return varint(number << 3 | kind) + b"".join(data)


def within(number, data):
    return field(number, 2, varint(len(data)), data)


def instant(seconds, nanos=0):
    return field(1, 0, varint(seconds)) + field(2, 0, varint(nanos))
