"""Schemas: of a topic's table (docs/format.md), of a segment file, and of what readers get."""

import orjson
import pyarrow as pa

PARTITION_COLUMNS = ("partition", "base_offset")

HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
TIMESTAMP = pa.timestamp("us", tz="UTC")
CREATE_TIME = 0
LOG_APPEND_TIME = 1

# The columns of a segment file, in its order.
SEGMENT = pa.schema(
    [
        pa.field("position", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestamp_type", pa.int32()),
    ]
)

# What readers get: the columns of Spark's Kafka source, `headers` where asked for.
RECORDS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32()),
    ]
)
RECORDS_WITH_HEADERS = RECORDS.append(pa.field("headers", HEADERS))


def _field(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


# Delta's JSON of the table schema ("Schema Serialization Format" of the Delta protocol).
DELTA_SCHEMA = orjson.dumps(
    {
        "type": "struct",
        "fields": [
            _field("partition", "integer"),
            _field("base_offset", "long"),
            _field("position", "long"),
            _field("key", "binary"),
            _field("value", "binary"),
            _field(
                "headers",
                {
                    "type": "array",
                    "elementType": {
                        "type": "struct",
                        "fields": [_field("key", "string"), _field("value", "binary")],
                    },
                    "containsNull": True,
                },
            ),
            _field("timestamp", "timestamp"),
            _field("timestamp_type", "integer"),
        ],
    }
).decode()
