"""The schemas of Debezium's records that are the same for every table: source, envelope, transactions, heartbeats."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tidelog.connect.data.packed import Constant, StructLayout
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


# The parts that a source's layout takes, and those of a record's own times, each in this order.
_SOURCE_PARTS: Final = ("ts_ms", "snapshot", "sequence", "ts_us", "ts_ns", "txId", "lsn")
_TIME_PARTS: Final = ("ts_ms", "ts_us", "ts_ns")


class SourcePosition(NamedTuple):
    """Where a record's change is in the log, in the order of a source's parts."""

    ts_ms: int
    snapshot: str
    sequence: str
    ts_us: int
    ts_ns: int
    transaction_id: int | None
    lsn: int


def source_position(
    at: EventTime, lsn: int, last_commit: int | None, transaction_id: int | None, snapshot: str = "false"
) -> SourcePosition:
    """When a change was made, and by which transaction. `last_commit`: the end of the last whole one before it."""
    sequence = f'[null,"{lsn}"]' if last_commit is None else f'["{last_commit}","{lsn}"]'
    return SourcePosition(at.ms, snapshot, sequence, at.us, at.ns, transaction_id, lsn)


def source_layout(name: str, database: str, schema: str, table: str, first: int = 0) -> StructLayout:
    """The source of a table's records: its parts are a `SourcePosition`, from the number `first` on."""
    constants = {
        "version": ENVELOPE_VERSION, "connector": CONNECTOR, "name": name, "db": database, "schema": schema,
        "table": table, "xmin": None,
    }  # fmt: skip
    parts = {part: number for number, part in enumerate(_SOURCE_PARTS, first)}
    return StructLayout(SOURCE, {**{key: Constant(value) for key, value in constants.items()}, **parts})


def change_layout(
    envelope: ConnectSchema, row: ConnectSchema, source: Callable[[int], StructLayout], op: str, rows: Sequence[str]
) -> StructLayout:
    """The envelopes of an operation. `rows`: before, after, both or none, in the order of their parts.

    The parts are each row's values, a `SourcePosition`, the block of the transaction, and the record's `EventTime`.
    `source`: the layout of the source from a number on.
    """
    fields: dict[str, int | StructLayout | Constant] = dict.fromkeys(("before", "after"), Constant(None))
    fields["op"] = Constant(op)
    at = 0
    for name in rows:
        fields[name] = StructLayout.of_run(row, at)
        at += len(row.fields)
    fields["source"] = source(at)
    at += len(_SOURCE_PARTS)
    fields["transaction"] = at
    fields.update((name, number) for number, name in enumerate(_TIME_PARTS, at + 1))
    return StructLayout(envelope, fields)
