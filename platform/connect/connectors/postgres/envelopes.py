"""The schemas of Debezium's records that are the same for every table: source, envelope, transactions, heartbeats."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tidelog.connect.data.schema import BYTES, INT64, STRING, ConnectSchema, array_of, struct_of

# The version in each record's source: that of the Debezium whose envelope this is.
ENVELOPE_VERSION: Final = "3.2.3.Final"
CONNECTOR: Final = "postgresql"

# What `source.snapshot` may say.
_SNAPSHOT: Final = replace(
    STRING,
    name="io.debezium.data.Enum",
    version=1,
    optional=True,
    default="false",
    parameters={"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},
)
SOURCE: Final = struct_of(
    {
        "version": STRING,
        "connector": STRING,
        "name": STRING,
        "ts_ms": INT64,
        "snapshot": _SNAPSHOT,
        "db": STRING,
        "sequence": STRING.as_optional(),
        "ts_us": INT64.as_optional(),
        "ts_ns": INT64.as_optional(),
        "schema": STRING,
        "table": STRING,
        "txId": INT64.as_optional(),
        "lsn": INT64.as_optional(),
        "xmin": INT64.as_optional(),
    },
    name="io.debezium.connector.postgresql.Source",
    version=1,
)
TRANSACTION_BLOCK: Final = struct_of(
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64},
    name="event.block",
    version=1,
    optional=True,
)
_TIMES: Final = {"ts_ms": INT64.as_optional(), "ts_us": INT64.as_optional(), "ts_ns": INT64.as_optional()}
TRANSACTION_KEY: Final = struct_of(
    {"id": STRING}, name="io.debezium.connector.common.TransactionMetadataKey", version=1
)
_COUNT_OF_TABLE: Final = struct_of(
    {"data_collection": STRING, "event_count": INT64}, name="event.collection", version=1, optional=True
)
TRANSACTION_VALUE: Final = struct_of(
    {
        "status": STRING,
        "id": STRING,
        "event_count": INT64.as_optional(),
        "data_collections": array_of(_COUNT_OF_TABLE, optional=True),
        "ts_ms": INT64,
    },
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)
HEARTBEAT_KEY: Final = struct_of({"serverName": STRING}, name="io.debezium.connector.common.ServerNameKey", version=1)
HEARTBEAT_VALUE: Final = struct_of({"ts_ms": INT64}, name="io.debezium.connector.common.Heartbeat", version=1)
MESSAGE_KEY: Final = struct_of(
    {"prefix": STRING.as_optional()}, name="io.debezium.connector.postgresql.MessageKey", version=1
)
_MESSAGE_BLOCK: Final = struct_of(
    {"prefix": STRING.as_optional(), "content": BYTES.as_optional()},
    name="io.debezium.connector.postgresql.Message",
    version=1,
)
MESSAGE_VALUE: Final = struct_of(
    {
        "op": STRING,
        "ts_ms": INT64.as_optional(),
        "source": SOURCE,
        "transaction": TRANSACTION_BLOCK,
        "message": _MESSAGE_BLOCK,
    },
    name="io.debezium.connector.postgresql.MessageValue",
    version=1,
)


def envelope_of(topic: str, row: ConnectSchema) -> ConnectSchema:
    """The schema of a table's records. `row`: the optional schema of its rows."""
    return struct_of(
        {
            "before": row,
            "after": row,
            "source": SOURCE,
            "transaction": TRANSACTION_BLOCK,
            "op": STRING,
            **_TIMES,
        },
        name=f"{topic}.Envelope",
        version=2,
    )


class EventTime(NamedTuple):
    """A time in the three units that Debezium gives."""

    ms: int
    us: int
    ns: int

    @classmethod
    def of_us(cls, micros: int) -> "EventTime":
        """The moment of microseconds since 1970."""
        return cls(micros // 1000, micros, micros * 1000)


def source_block(name: str, database: str) -> Mapping[str, Any]:
    """What is the same in the source of every record of a connector."""
    return {"version": ENVELOPE_VERSION, "connector": CONNECTOR, "name": name, "db": database}
