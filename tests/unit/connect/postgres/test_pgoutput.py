"""pgoutput's messages: bytes that PostgreSQL 15 sent, and built ones."""

import struct
from contextlib import suppress

import pytest

from tidelog.connect.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Relation,
    RelationColumn,
    ReplicaIdentity,
    TransactionOrigin,
    Truncate,
    TypeName,
    Update,
    decode,
)
from tidelog.connect.data.errors import DataError

KEYED = Relation(
    17881,
    "public",
    "t1",
    ReplicaIdentity.DEFAULT,
    (RelationColumn(True, "id", 23, -1), RelationColumn(False, "c", 17876, -1), RelationColumn(False, "big", 25, -1)),
)
WHOLE = Relation(
    17888,
    "public",
    "t2",
    ReplicaIdentity.FULL,
    (RelationColumn(True, "a", 23, -1), RelationColumn(True, "b", 25, -1)),
)
# What a server sent for: inserts, updates (of another column, of the key, under REPLICA IDENTITY FULL), deletes, a
# truncate of two tables, both kinds of logical messages, and a transaction with an origin.
SENT: tuple[tuple[str, Message], ...] = (
    ("4200000000191ccf50000303ebd448cef20000037c", Begin(421318480, 1795421143871218, 892)),
    ("430000000000191ccf5000000000191ccf80000303ebd448cef2", Commit(421318480, 421318528, 1795421143871218)),
    ("59000045d47075626c696300636f6c00", TypeName(17876, "public", "col")),
    (
        "52000045d97075626c6963007431006400030169640000000017ffffffff006300000045d4ffffffff006269670000000019ffffffff",
        KEYED,
    ),
    ("52000045e07075626c69630074320066000201610000000017ffffffff01620000000019ffffffff", WHOLE),
    ("49000045e04e00027400000001376e", Insert(17888, ["7", None])),
    ("55000045d94e000374000000013174000000016775", Update(17881, None, None, ["1", "g", UNCHANGED])),
    (
        "55000045d94b00037400000001316e6e4e000374000000013274000000016775",
        Update(17881, ["1", None, None], None, ["2", "g", UNCHANGED]),
    ),
    ("55000045e04f00027400000001376e4e00027400000001377400000002c3a9", Update(17888, None, ["7", None], ["7", "é"])),
    ("44000045d94b00037400000001326e6e", Delete(17881, ["2", None, None], None)),
    ("44000045e04f00027400000001377400000002c3a9", Delete(17888, None, ["7", "é"])),
    ("540000000202000045d9000045e0", Truncate((17881, 17888), False, True)),
    ("4d0100000000191cedd070000000000200ff", LogicalMessage(True, 421326288, "p", b"\x00\xff")),
    ("4d0000000000191cee3870000000000171", LogicalMessage(False, 421326392, "p", b"q")),
    ("4f000000000000009966617200", TransactionOrigin(0x99, "far")),
)


@pytest.mark.parametrize(("data", "message"), SENT, ids=lambda one: one[:12] if isinstance(one, str) else "")
def test_a_server_s_bytes(data: str, message: Message) -> None:
    assert decode(bytes.fromhex(data)) == message


def cell(kind: bytes, value: bytes = b"") -> bytes:
    return kind + (struct.pack("!I", len(value)) + value if kind in b"tb" else b"")


def row(*cells: bytes) -> bytes:
    return struct.pack("!H", len(cells)) + b"".join(cells)


BUILT: tuple[tuple[bytes, Message], ...] = (
    (b"I" + struct.pack("!I", 1) + b"N" + row(), Insert(1, [])),
    (b"I" + struct.pack("!I", 1) + b"N" + row(cell(b"t")), Insert(1, [""])),
    (b"I" + struct.pack("!I", 1) + b"N" + row(cell(b"b", b"\x00\x01")), Insert(1, [b"\x00\x01"])),
    (b"I" + struct.pack("!I", 0xFFFFFFFF) + b"N" + row(*[cell(b"n")] * 1600), Insert(0xFFFFFFFF, [None] * 1600)),
    (b"T" + struct.pack("!IBI", 1, 1, 5), Truncate((5,), True, False)),
    (
        b"R" + struct.pack("!I", 2) + b"\0t\0" + b"n" + struct.pack("!H", 0),
        Relation(2, "pg_catalog", "t", ReplicaIdentity.NOTHING, ()),
    ),
    (
        b"R"
        + struct.pack("!I", 2)
        + b"s\0t\0"
        + b"i"
        + struct.pack("!HB", 1, 0)
        + b"c\0"
        + struct.pack("!Ii", 1700, 6),
        Relation(2, "s", "t", ReplicaIdentity.INDEX, (RelationColumn(False, "c", 1700, 6),)),
    ),
)


@pytest.mark.parametrize(("data", "message"), BUILT)
def test_built_bytes(data: bytes, message: Message) -> None:
    assert decode(data) == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"S\0\0\0\1",  # of the streaming protocols
        b"B\0",
        b"I\0\0\0\1K" + row(),
        b"I\0\0\0\1N" + row(b"z"),
        b"I\0\0\0\1N" + row(b"t\0\0\0\5abc"),
        b"U\0\0\0\1K" + row(cell(b"n")) + b"X",
        b"D\0\0\0\1N" + row(),
        b"R\0\0\0\1schema without its end",
        b"R\0\0\0\1s\0t\0q\0\0",
        b"M\0" + bytes(8) + b"p\0" + struct.pack("!I", 9) + b"short",
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="pgoutput"):
        decode(data)


def test_every_cut_of_a_message_is_refused_or_another_message() -> None:
    """A message that lacks its end never becomes the whole one, and never another error than ours."""
    for text, message in SENT:
        data = bytes.fromhex(text)
        for size in range(len(data)):
            with suppress(DataError):
                assert decode(data[:size]) != message
