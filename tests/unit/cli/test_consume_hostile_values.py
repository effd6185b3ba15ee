"""`consume --value-as` of values that strangers wrote: the others are shown, and why one is not."""

import struct

from support.cli_calls import cli, lake_address

from tidelog.log.lake import Lake
from tidelog.schema_registry import Schema, SchemaRegistryClient

NODE = '{"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}'


def test_a_value_that_can_not_be_read_is_shown_as_its_bytes():
    address = lake_address()
    with Lake(address, create=True) as lake, SchemaRegistryClient({"lake": lake}) as client:
        framed = b"\0" + struct.pack(">I", client.register_schema("t-value", Schema(NODE)))
        sound, deep = framed + b"\x02\0", framed + b"\x02" * 300 + b"\0"
        lake.create_topic("t", 1)
        lake.topic("t").append([{"value": one} for one in (sound, deep, framed + b"\x02" * 30_000, sound)])
        found = cli("--lake", address, "consume", "t", "-e", "-q", "-o", "beginning", "--value-as", "avro")
    assert found.exit_code == 0, found.output
    lines = found.stdout_bytes.split(b"\n")
    assert (lines[0], lines[1], lines[-2]) == (b'{"next":{"next":null}}', deep, b'{"next":{"next":null}}')
    told = [line for line in found.stderr.splitlines() if "is shown as its bytes" in line]
    assert ["at offset 1" in told[0], "at offset 2" in told[1], len(told)] == [True, True, 2]
    assert "nested deeper than" in told[1]
